"""The README is true: its session, configurations and tools."""

import re
import subprocess
import sys
from pathlib import Path

from sessions import Call, calls_of, facts_of, sessions_of

import tmux_debug_mcp.demo
from tmux_debug_mcp.clients.table import CLIENTS
from tmux_debug_mcp.tools import debug

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def calls_of_demo() -> list[Call]:
    """Return the calls that the demo makes, with their results."""
    command = [sys.executable, "-m", "tmux_debug_mcp", "demo"]
    output = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return calls_of(output.replace(f"{Path(tmux_debug_mcp.demo.__file__).parent}/", ""))


def test_session_is_that_of_the_demo() -> None:
    [session] = sessions_of(README)
    demo = calls_of_demo()

    assert len(session) == 4
    for shown, actual in zip(session, demo, strict=False):  # the demo goes on
        assert shown.tool == actual.tool
        assert shown.arguments.keys() == actual.arguments.keys()
        assert facts_of(shown.result, actual.result) is not None, actual.result


def test_clients_are_those_of_config() -> None:
    text = " ".join(README.split())

    for client in CLIENTS:
        assert re.search(rf"[ `]{client}[,.; `]", text), client


def test_table_has_the_tools_of_the_default_toolset() -> None:
    rows = [line.split("`")[1] for line in README.splitlines() if line.startswith("| `")]

    assert rows == [tool.name for tool in debug.TOOLSET.tools]
