"""The pages in `docs/` are true: tables, configurations; their sessions are run again."""

import ast
import json
import os
import re
import shutil
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import orjson
import pytest
import reference
from clocks import TIMES
from mcp import Client, StdioServerParameters
from sessions import Call, facts_of, fenced, joined, sessions_of, with_facts
from support import PATIENCE_S, Tools, in_process, run_of, texts

from tmux_debug_mcp.audit import AuditLog
from tmux_debug_mcp.clients import agent_file
from tmux_debug_mcp.clients.table import CLIENTS, Homes
from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S, Clock, Times
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.panes import engine, hidden_input, reports
from tmux_debug_mcp.settings import Settings, pane_environment
from tmux_debug_mcp.sockets import connection
from tmux_debug_mcp.tmux import client
from tmux_debug_mcp.tools import debug_arguments, tabs, terminal
from tmux_debug_mcp.tools.arguments import MAX_TEXT_LINES
from tmux_debug_mcp.tools.toolset import TOOLSETS, choose
from tmux_debug_mcp.vt import sizes
from tmux_debug_mcp.vt.steps import MAX_KEYS_BYTES, read

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
PACKAGE = ROOT / "tmux_debug_mcp"

# Pages with sessions, each with the toolset that its calls are for.
SESSIONS = [
    ("recipes/README.md", "debug"),
    ("look-back.md", "debug"),
    *((f"toolsets/{name}.md", name) for name in TOOLSETS),
]


def page(name: str) -> str:
    return (DOCS / name).read_text()


def rows_of(text: str, head: str) -> list[list[str]]:
    """Return the cells of the table that begins with this."""
    table = text.partition(f"\n{head}")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_reference_is_that_of_the_code() -> None:
    """After a change that is meant, write the page anew: see CONTRIBUTING.md."""
    assert reference.PAGE.read_text() == reference.page()


@pytest.mark.parametrize("name", TOOLSETS)
def test_table_of_tools_is_that_of_the_code(name: str) -> None:
    rows = [row[:2] for row in rows_of(page(f"toolsets/{name}.md"), "| tool |")]

    tools = choose(name)[0].tools
    parameters = [
        ", ".join(
            f"**{one.name}**" if one.is_required else one.name for one in tool.parser.parameters
        )
        for tool in tools
    ]
    assert rows == [
        [f"`{tool.name}`", shown] for tool, shown in zip(tools, parameters, strict=True)
    ]


def test_tools_cost_what_the_page_says() -> None:
    rows = rows_of(page("context.md"), "| toolset |")

    assert [row[0] for row in rows] == list(TOOLSETS)
    for name, count, cost in rows:
        [toolset] = choose(name)
        definitions = [
            tool.definition().model_dump(by_alias=True, exclude_none=True) for tool in toolset.tools
        ]
        size = len(orjson.dumps(definitions)) + len(toolset.instructions)
        shown = float(cost.partition(" kB")[0])
        assert int(count) == len(toolset.tools)
        assert abs(shown * 1000 - size) <= 100, (name, size)


def test_subagent_costs_what_the_page_says() -> None:
    """Claude Code tells the main session about each subagent in a line."""
    entry = {"command": "tmux-debug-mcp", "args": [*agent_file.OPTIONS]}
    front = agent_file.put("", ("mcpServers", "tmux-debug"), entry).split("---\n")[1]
    name, description, tools = (
        re.findall(rf'^{field}: "?(.*?)"?$', front, re.MULTILINE)[0]
        for field in ("name", "description", "tools")
    )
    cost = len(f"- {name}: {description} (Tools: {tools})\n".encode())

    assert f" {cost} bytes: its name, its description\n" in page("context.md")
    assert f"[{cost} bytes of context](docs/context.md)" in (ROOT / "README.md").read_text()


USUAL = Times()
NUMBERS = {
    "guarantees.md": [
        f"Typed text up to {MAX_KEYS_BYTES >> 20} MiB arrives",
        f"cuts a line in line mode at {terminals.MAX_LINE_BYTES:,} bytes",
        f"SIGKILL follows the first signal after {USUAL.kill_grace_s * 1000:g} ms,",
        f"or after {processes._GRACE_S * 1000:g} ms when the server ends",
        f"tmux doesn't answer for {client._MAX_WAKES * USUAL.wake_s:g} s, the call fails",
        f"something runs in all {engine.MAX_PANES}.",
        f"if that reads nothing for {connection._ANSWER_S:g} s",
        f"a secret of {hidden_input._MIN_SHOWN_CHARACTERS} or more characters",
    ],
    "toolsets/debug.md": [
        f"terminal's size (default {sizes.COLUMNS}x{sizes.ROWS})",
        f"read it by its id until {engine.KEPT_RUN_PANES} more have ended",
        f"when there are [{engine.MAX_PANES}]",
        f"fails within {reports._MAX_CRASH_S:g} seconds after its last screen",
        f"at most the newest {reports.MAX_SHOWN_LINES}.",
        f"neither printed nor worked for {USUAL.quiet_s:g} s",
        f"after `timeout_s` (default {USUAL.rest_s:g}; 0: at once)",
        f"or `timeout_s` (default {DEFAULT_TIMEOUT_S:g}) elapses",
        f"once nothing has matched for {USUAL.gone_s:g} s",
        f"the last `lines` (default {debug_arguments.MATCHING_LINES}) that match",
        f"usually accurate to {USUAL.order_s * 1000:g} ms",
        f"After `timeout_s` (default {DEFAULT_TIMEOUT_S:g}), we press C-c",
        f"printed nothing for {USUAL.seems_to_ask_s:g} s after a line",
        f"within `timeout_s` (default {DEFAULT_TIMEOUT_S:g}); if one can't",
        f"whatever is running, after at most {USUAL.quiet_s:g} s",
    ],
    "toolsets/tabs.md": [
        f"`list_tabs` shows up to {tabs._MAX_EARLIER_TABS} tabs",
    ],
    "toolsets/terminal.md": [
        f"the last {MAX_TEXT_LINES:,} lines of scrollback",
        f"lists up to {terminal._MAX_EARLIER_SESSIONS} sessions",
    ],
}


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name in NUMBERS for words in NUMBERS[name]]
)
def test_numbers_of_a_page_are_those_of_the_code(name: str, words: str) -> None:
    """Else the code or the page has changed, and the other has to follow."""
    assert words in " ".join(page(name).split())


def test_contributing_names_what_is_there() -> None:
    named = 0
    for row in (ROOT / "CONTRIBUTING.md").read_text().splitlines():
        found = re.findall(
            r"((?:`[\w.]+`(?:, | and ))*`[\w.]+`)(?:,[\w ]+,)? in `([\w/.]+\.\w+)`", row
        )
        for names, path in found:
            [module] = [place / path for place in (PACKAGE, ROOT) if (place / path).exists()]
            for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
                assert re.search(rf"\b{name}\b", module.read_text()), f"{name} in {path}"
                named += 1
    assert named > 20


@pytest.mark.parametrize("keys", ["Enter", "C-c", "^C", "Up Up Enter", "F5", "M-x", "C-S-Left"])
def test_keys_that_are_shown_are_pressed(keys: str) -> None:
    assert f"`{keys}`" in page("toolsets/debug.md")
    assert read(keys).names


def test_every_configuration_in_json_can_be_read() -> None:
    documents = [document for document in DOCUMENTS if document != DOCS / "look-back.md"]
    blocks = [block for document in documents for block in fenced(document.read_text(), "json")]

    assert len(blocks) >= 3
    for block in blocks:
        configuration = json.loads(block)
        if hooks := configuration.get("hooks"):
            [[event]] = hooks.values()
            [entry] = event["hooks"]
            path = ROOT / entry["command"].split()[0].removeprefix("/path/to/tmux-debug-mcp/")
            assert os.access(path, os.X_OK)
            continue
        [server] = (configuration.get("mcpServers") or configuration["mcp"]).values()
        assert server["command"]


async def test_all_clients_start_the_same_server(environment: dict[str, str]) -> None:
    text = page("clients.md")
    configuration, opencode = map(json.loads, fenced(text, "json"))
    [toml] = map(tomllib.loads, fenced(text, "toml"))
    server = configuration["mcpServers"]["tmux-debug"]
    command = server["command"]
    assert toml["mcp_servers"]["tmux-debug"]["command"] == command
    assert opencode["mcp"]["tmux-debug"] == {"type": "local", "command": [command], "enabled": True}
    assert f"$ claude mcp add --scope user tmux-debug -- {command}\n" in text
    shown = command.replace("/path/to/tmux-debug-mcp", "$PWD")
    readme = (ROOT / "README.md").read_text()
    assert f'\nclaude mcp add --scope user tmux-debug -- "{shown}"\n' in readme
    assert f"command: {command}\n" in fenced(text, "markdown")[0]

    here = Path(command.replace("/path/to/tmux-debug-mcp", str(ROOT)))
    parameters = StdioServerParameters(
        command=str(here) if here.exists() else "tmux-debug-mcp",
        args=server["args"],
        env=environment,
    )
    async with Client(parameters) as client:
        assert len((await client.list_tools()).tools) == len(choose("debug")[0].tools)


def test_table_of_clients_is_that_of_the_code() -> None:
    rows = rows_of(page("clients.md"), "| client | file of `--scope user` |")
    homes = Homes({"HOME": "~"}, Path())

    def named(name: str, scope: str) -> str:
        place = CLIENTS[name].places.get(scope)
        return f"`{place(homes)}`" if place else ""

    assert [row[0] for row in rows] == [f"`{name}`" for name in (*CLIENTS, "nix")]
    for name, (_, *files) in zip(CLIENTS, rows, strict=False):
        for scope, file in zip(("user", "project"), files, strict=True):
            assert re.split("[;,]", file)[0] == named(name, scope), name


def test_times_are_as_accurate_as_the_page_says() -> None:
    times = Times()
    several, one = f"{times.order_s * 1000:g} ms", f"{times.trim_s:g} s"

    text = " ".join(page("look-back.md").split())
    assert f"accurate to {several} while several panes print, else to {one};" in text


@pytest.fixture
def directory_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that pages mean: with the shop, and a vim on the PATH."""
    directory, programs = tmp_path / "shop", tmp_path / "programs"
    directory.mkdir()
    programs.mkdir()
    shutil.copy(DOCS / "examples" / "shop.py", directory)
    (programs / "python3").symlink_to(sys.executable)
    vim = shutil.which("vim") or shutil.which("vim.tiny")
    if vim:
        (programs / "vim").symlink_to(vim)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return directory


async def repeated(
    tools: Tools, call: Call, facts: Mapping[str, str], *, may_look_again: bool
) -> Mapping[str, str]:
    """Call a tool as a page shows it, and return what this run has in place of the page's facts."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        result = joined(texts(await tools.call(call.tool, **with_facts(call.arguments, facts))))
        found = facts_of(call.result, result)
        if found is not None:
            return found
        # What a program has just been told to do may take a moment.
        if not may_look_again or time.monotonic() > deadline:
            pytest.fail(f"{call.tool} is shown to return\n{call.result}\nand returned\n{result}")
        await anyio.sleep(0.01)


@pytest.mark.alone
@pytest.mark.parametrize(("name", "toolset"), SESSIONS)
async def test_sessions_are_what_happens(
    name: str,
    toolset: str,
    directory_of_sessions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As for readers, `tmux-debug` is on PATH.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    clock = Clock(replace(TIMES, rest_s=PATIENCE_S))
    readers = {tool.name for tool in choose(toolset)[0].tools if tool.hints.get("read_only_hint")}
    sessions = sessions_of(page(name))

    assert sessions
    environment = pane_environment(os.environ, ["TMUX*"])
    for number, session in enumerate(sessions):
        settings = Settings(
            environment, directory_of_sessions, state_dir=tmp_path / f"state-{number}"
        )
        archive = Archive(tmp_path / f"logs-{number}")
        async with in_process(settings, toolsets=toolset, archive=archive, clock=clock) as tools:
            tools.prefix = ""
            facts: dict[str, str] = {"20260130T101546-4711": run_of(tools)}
            for call in session:
                facts |= await repeated(tools, call, facts, may_look_again=call.tool in readers)


async def test_audit_has_the_record_that_is_shown(settings: Settings, tmp_path: Path) -> None:
    [shown] = map(json.loads, fenced(page("look-back.md"), "json"))
    async with in_process(settings, AuditLog(tmp_path / "audit.log", None)) as tools:
        await tools.blocks("create_pane", command="echo hello")
        await tools.blocks("run", command="test -d build")
    *_, record = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())

    assert list(record) == list(shown)
    varying = ("ts", "output_bytes", "cursor", "duration_ms")
    assert {name: record[name] for name in record if name not in varying} == {
        name: shown[name] for name in shown if name not in varying
    }


def pasted(source: str, block: str, place: str) -> str:
    """Return the source of a module with a block in the place that CONTRIBUTING.md names."""
    if place == "at the end":
        return f"{source}\n\n{block}"
    assert place == "with the imports", place
    lines = source.splitlines(keepends=True)
    after = max(
        node.end_lineno or 0 for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)
    )
    return "".join([*lines[:after], block, *lines[after:]])


async def test_tool_of_the_example_works_when_it_is_pasted(
    environment: dict[str, str], tmp_path: Path
) -> None:
    copy = tmp_path / "tmux_debug_mcp"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = fenced((ROOT / "CONTRIBUTING.md").read_text(), "python")
    for comment, block in (block.split("\n", 1) for block in blocks):
        path, place = comment.removeprefix("# ").split(", ")
        (copy / path).write_text(pasted((copy / path).read_text(), block, place))

    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    program += "from tmux_debug_mcp.command.serve import main; main()"
    server = StdioServerParameters(
        command=sys.executable, args=["-I", "-c", program], env=environment
    )
    async with Client(server) as client:
        assert "tmux_count_panes" in [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("tmux_create_pane", {"command": "exec cat"})
        await client.call_tool("tmux_run", {"command": "true"})
        counted = [
            await client.call_tool("tmux_count_panes", {"running_only": only})
            for only in (False, True)
        ]

    assert [texts(result) for result in counted] == [["2 panes"], ["1 panes"]]
