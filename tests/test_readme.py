"""The README is true: its commands, configurations, options and limits."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tmux_debug_mcp.cli import OPTIONS
from tmux_debug_mcp.logs import archive, matching
from tmux_debug_mcp.panes import conditions, creation, engine, recording, running, shell
from tmux_debug_mcp.tmux import host, users_server
from tmux_debug_mcp.tools import debug, tabs_arguments, terminal, tmux, users_tabs
from tmux_debug_mcp.tools.schema import parameters_of
from tmux_debug_mcp.tools.toolset import TOOLSETS, choose
from tmux_debug_mcp.vt import sizes
from tmux_debug_mcp.vt.keys import MAX_KEYS_BYTES, MAX_PRESSED, parse
from tmux_debug_mcp.vt.steps import MAX_STEPS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def fenced(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_commands_are_those_that_ci_runs() -> None:
    commands = [line for block in fenced("sh") for line in block.splitlines()]

    assert commands
    assert set(commands) <= set((ROOT / ".ci" / "run").read_text().splitlines())


async def test_configured_command_is_a_server(environment: dict[str, str]) -> None:
    configuration, opencode = map(json.loads, fenced("json"))
    [toml] = map(tomllib.loads, fenced("toml"))
    server = configuration["mcpServers"]["tmux-debug"]
    assert toml["mcp_servers"]["tmux-debug"]["command"] == server["command"]
    assert opencode["mcp"]["tmux-debug"] == {"type": "local", "command": [server["command"]], "enabled": True}
    assert f"$ claude mcp add --scope user tmux-debug -- {server['command']}\n" in README
    assert f"command: {server['command']}\n" in fenced("markdown")[0]
    command = Path(server["command"].replace("/path/to/tmux-debug-mcp", str(ROOT)))
    installed = str(command) if command.exists() else "tmux-debug-mcp"

    async with Client(StdioServerParameters(command=installed, args=server["args"], env=environment)) as client:
        assert len((await client.list_tools()).tools) == len(debug.TOOLS)


def test_table_of_options_is_that_of_the_code() -> None:
    for option in OPTIONS:
        default = f" `{option.default}` " if option.default else " "
        first, *words = option.flag.split("-")
        in_nix = first + "".join(map(str.capitalize, words))
        flag = f"--{option.flag} {option.value}".strip()
        assert f"| `{flag}` | `{option.variable}` | `{in_nix}` |{default}| {option.help} |" in README
    assert README.count("| `--") == len(OPTIONS)


def test_table_of_tools_is_that_of_the_code() -> None:
    for tool in (tool for name in TOOLSETS for tool in choose(name)[0].tools):
        parameters = parameters_of(tool.arguments)
        shown = [f"**{one.name}**" if one.is_required else one.name for one in parameters]
        assert f"| `{tool.name}` | {', '.join(shown)}{' ' if shown else ''}|" in README


@pytest.mark.parametrize("keys", ["Enter", "C-c", "^C", "Up Up Enter", "F5", "M-x", "C-S-Left"])
def test_keys_that_are_shown_are_pressed(keys: str) -> None:
    assert f"`{keys}`" in README
    assert parse(keys).text == ""


def test_limits_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", README.partition("| limit |")[2], re.MULTILINE))

    assert rows["panes"] == f"{engine.MAX_PANES}; those that have ended give way"
    assert (
        rows["command"] == f"{creation.MAX_COMMAND_BYTES:,} bytes; with `--socket` {users_server.MAX_COMMAND_BYTES:,}"
    )
    assert rows["`keys`"] == f"{MAX_KEYS_BYTES >> 20} MiB, {MAX_PRESSED:,} keys to press"
    assert rows["pattern"] == f"{matching.MAX_PATTERN_CHARACTERS:,} characters"
    assert rows["wait, run"] == "3,600 s"
    assert rows["steps of one call"] == f"{MAX_STEPS:,}"
    assert rows["panes of `tmux_run` that have ended"] == f"the last {engine.KEPT_RUNS}"
    parts = "the first quarter and the last three"
    assert rows["text of a wait"] == f"{conditions.MAX_OBSERVATION_CHARACTERS:,} characters, {parts}"
    unasked = rows["text of an observation that was not asked for"]
    assert unasked == f"{conditions.MAX_UNASKED_CHARACTERS:,} characters, likewise"
    assert rows["text of a run"] == f"{running.MAX_OUTPUT_CHARACTERS:,} characters, likewise"
    assert rows["history that `set_history_limit` can ask for"] == f"{host.MAX_HISTORY_LINES:,} lines"
    kept = f"the last {archive.MAX_RUNS} runs, {archive.MAX_KEPT_BYTES >> 30} GiB"
    assert rows["kept logs"] == f"{kept} beside the logs of panes that are there"
    assert rows["text of `read_logs_from_tab`"] == f"the last {users_tabs.MAX_LOG_CHARACTERS:,} characters"
    assert rows["chunk of `stream_logs_from_tab`"] == f"{tabs_arguments.MAX_CHUNK_BYTES >> 20} MiB"
    assert rows["calls that wait for a tab"] == str(shell.MAX_WAITING)
    assert rows["text of `getContent`"].endswith(f"the last {terminal.MAX_CONTENT_CHARACTERS:,} characters")
    assert rows["size of a terminal"] == f"{sizes.MAX_COLUMNS} columns, {sizes.MAX_ROWS} rows"
    assert rows["recording"] == f"{recording.MAX_RECORDING_BYTES >> 20} MiB"
    assert debug.MAX_CAPTURE_CHARACTERS == tmux.MAX_CHARACTERS
    assert rows["text of a capture"].startswith(f"{debug.MAX_CAPTURE_CHARACTERS:,} characters, likewise")
