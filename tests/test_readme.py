"""The README is true: its demo, clients and tools."""

import re
import subprocess
import sys
from pathlib import Path

from sessions import calls_of

from tmux_debug_mcp.clients.table import CLIENTS
from tmux_debug_mcp.tools import debug

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
# What the demo calls.
CALLS = ["create_pane", "run", "capture_pane", "send_keys", "list_panes"]


def test_demo_finds_the_bug() -> None:
    command = [sys.executable, "-m", "tmux_debug_mcp", "demo"]
    output = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout

    names = [call.tool for call in calls_of(output)]
    assert names == [f"tmux_{tool}" for tool in CALLS]
    assert "\nFound in shop.py, line 38: " in output


def test_clients_are_those_of_config() -> None:
    text = " ".join(README.split())

    for client in CLIENTS:
        assert re.search(rf"[ `]{client}[,.; `]", text), client


def test_table_has_the_tools_of_the_default_toolset() -> None:
    rows = [line.split("`")[1] for line in README.splitlines() if line.startswith("| `")]

    assert rows == [tool.name for tool in debug.TOOLSET.tools]
