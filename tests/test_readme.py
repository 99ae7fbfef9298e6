"""The README is true: its clients and tools."""

import re
from pathlib import Path

from tmux_debug_mcp.clients.table import CLIENTS
from tmux_debug_mcp.tools import debug

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_clients_are_those_of_config() -> None:
    text = " ".join(README.split())

    for client in CLIENTS:
        assert re.search(rf"[ `]{client}[,.; `]", text), client


def test_table_has_the_tools_of_the_default_toolset() -> None:
    rows = [line.split("`")[1] for line in README.splitlines() if line.startswith("| `")]

    assert rows == [tool.name for tool in debug.TOOLSET.tools]
