"""The parts of `doctor` that need no programs: configurations, options, the report."""

import io
import json
import shlex
import sys
from pathlib import Path

import pytest

from tmux_debug_mcp.clients import agent_file
from tmux_debug_mcp.clients.table import CLIENTS, Homes
from tmux_debug_mcp.doctor import machine
from tmux_debug_mcp.doctor.clients import Clients, ConfiguredServer, read, refusal
from tmux_debug_mcp.doctor.probe import Answers
from tmux_debug_mcp.doctor.report import (
    Severity,
    as_json,
    ok,
    plain,
    problem,
    show,
    verdict,
    warning,
)
from tmux_debug_mcp.options import OPTIONS

COMMAND = "/opt/bin/tmux-debug-mcp"
STDIO = {"command": COMMAND, "args": ["--toolsets", "debug"], "env": {"A": "1"}}


class TestReport:
    def test_verdict_counts(self) -> None:
        good, odd, bad = ok("a", ""), warning("b", "", ""), problem("c", "", "")

        assert verdict([good]) == "tmux-debug-mcp works here."
        assert verdict([good, odd]) == "tmux-debug-mcp works here, with 1 warning."
        assert verdict([bad, bad, odd]).startswith("2 problems and 1 warning: ")

    def test_problems_come_last(self) -> None:
        out = io.StringIO()
        show([problem("c", "x", "do it"), warning("b", "y", ""), ok("a", "z")], out, {})

        lines = out.getvalue().splitlines()
        assert lines[:4] == ["ok       a: z", "warning  b: y", "problem  c: x", "         -> do it"]

    @pytest.mark.parametrize("text", ["a\x1b[31mb", "a\x9bb", "a\u202eb", "a\x07b", "a\udc80b"])
    def test_characters_that_act_on_a_terminal_are_escaped(self, text: str) -> None:
        assert plain(text).startswith(("a\\x", "a\\u"))
        assert plain(text).isprintable()
        out = Terminal()
        show([ok(text, f"{text}[bold]x[/bold]")], out, {"NO_COLOR": "1"})
        assert "[bold]x[/bold]" in out.getvalue()
        for character in ("\x9b", "\u202e", "\x07", "\udc80", "\x1b[31mb"):
            assert character not in out.getvalue()

    def test_text_is_cut(self) -> None:
        assert len(plain("x" * 1_000_000)) == 603
        assert plain("x" * 600) == "x" * 600

    def test_json_is_a_list_of_objects(self) -> None:
        assert json.loads(as_json([problem("tmux", "é\x1b", "x")])) == [
            {"name": "tmux", "state": "problem", "found": "é\x1b", "advice": "x"}
        ]
        assert as_json([ok("é\x1b", "")]).isascii()


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class TestOptions:
    @pytest.mark.parametrize(
        ("name", "near"),
        [
            ("TMUX_DEBUG_TOOLSET", "TMUX_DEBUG_TOOLSETS"),
            ("TMUX_DEBUG_AUDITFULL", "TMUX_DEBUG_AUDIT_FULL"),
            ("TMUX_DEBUG_LOGDIR", "TMUX_DEBUG_LOG_DIR"),
        ],
    )
    def test_unknown_variable_is_a_warning_with_the_nearest_name(
        self, name: str, near: str
    ) -> None:
        [found] = machine._options({name: "x"})

        assert found.state is Severity.WARNING
        assert name in found.found
        assert found.advice == f"Did you mean {near}?"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SIZE", "12"),
            ("TOOLSETS", "debgu"),
            ("CWD", "/nonexistent"),
            ("SHELL", "/nonexistent"),
            ("ENV", "A"),
            ("KEEP", "soon"),
            ("ALLOW_KILL", "perhaps"),
        ],
    )
    def test_value_that_the_server_refuses_is_a_problem(self, name: str, value: str) -> None:
        [found] = machine._options({f"TMUX_DEBUG_{name}": value})

        assert found.state is Severity.PROBLEM
        assert value in found.found

    def test_values_that_the_server_takes_are_well(self) -> None:
        env = {
            "SIZE": "80x24",
            "TOOLSETS": "tmux,terminal",
            "KEEP": "1h",
            "ALLOW_KILL": "1",
            "ENV": "",
        }
        env |= {"SOCKET": "default"}
        [found] = machine._options({f"TMUX_DEBUG_{name}": value for name, value in env.items()})

        assert found.state is Severity.OK

    def test_every_option_is_taken_in_a_command_line(self) -> None:
        words = [f"--{one.flag}" for one in OPTIONS if not one.value]
        words += ["--socket", "default", "--toolsets", "tmux"]
        assert refusal(words, {}) == ""

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (
                ["--toolset=debug", "--size", "1x1"],
                "Option '--toolset=debug' is unknown. Did you mean --toolsets?",
            ),
            (["--audit"], "Option --audit needs a value. Give --audit=FILE."),
        ],
    )
    def test_reason_of_a_refusal_is_what_the_server_says(
        self, words: list[str], reason: str
    ) -> None:
        assert refusal(words, {}) == reason


class TestConfigurations:
    @pytest.mark.parametrize(
        ("client", "file", "text"),
        [
            ("claude", ".claude.json", json.dumps({"mcpServers": {"t": STDIO}})),
            (
                "codex",
                ".codex/config.toml",
                (
                    f"[mcp_servers.t]\ncommand = '{COMMAND}'\nargs = ['--toolsets', 'debug']\n"
                    "env = {A = '1'}\n"
                ),
            ),
            ("cursor", ".cursor/mcp.json", json.dumps({"mcpServers": {"t": STDIO}})),
            ("gemini", ".gemini/settings.json", json.dumps({"mcpServers": {"t": STDIO}})),
            (
                "opencode",
                ".config/opencode/opencode.jsonc",
                (
                    '{"mcp": {"t": {"type": "local", "environment": {"A": "1"},\n'
                    f'"command": ["{COMMAND}", "--toolsets", "debug"]}}}}}}'
                ),
            ),
            (
                "zed",
                ".config/zed/settings.json",
                json.dumps(
                    {
                        "context_servers": {
                            "t": {
                                "command": {
                                    "path": COMMAND,
                                    "args": ["--toolsets", "debug"],
                                    "env": {"A": "1"},
                                }
                            }
                        }
                    }
                ),
            ),
        ],
    )
    def test_each_client_is_read(self, home: Path, client: str, file: str, text: str) -> None:
        path = write(home / file, text)
        [entry] = entries_in(home)

        assert (entry.client, entry.source.path, entry.name) == (client, path, "t")
        assert entry.words == (COMMAND, "--toolsets", "debug")
        assert entry.env == {"A": "1"}
        assert entry.is_enabled
        assert not entry.source.is_of_project

    @pytest.mark.parametrize(
        ("file", "key"),
        [
            (".mcp.json", "mcpServers"),
            (".vscode/mcp.json", "servers"),
            (".cursor/mcp.json", "mcpServers"),
            (".gemini/settings.json", "mcpServers"),
        ],
    )
    def test_files_of_the_project_are_known_as_such(
        self, home: Path, here: Path, file: str, key: str
    ) -> None:
        write(here / file, json.dumps({key: {"t": STDIO, "other": {"command": "x"}}}))

        assert [entry.source.is_of_project for entry in entries_in(home)] == [True]

    @pytest.mark.parametrize(
        ("client", "scope"),
        [(name, scope) for name in CLIENTS if name != "goose" for scope in CLIENTS[name].places],
    )
    def test_what_config_writes_is_read(
        self, home: Path, here: Path, client: str, scope: str
    ) -> None:
        table = CLIENTS[client]
        env = {"HOME": str(home), "PATH": "", "GEMINI_CLI_HOME": f"{home}/gemini"}
        entry = table.shape("t", [COMMAND])
        path = table.places[scope](Homes(env, here))
        write(path, table.language.put("", (table.key, "t"), entry))

        [[found], findings] = read(env)

        assert findings == []
        assert (found.source.path, found.words) == (path, (COMMAND,))
        assert found.source.is_of_project is (scope == "project")

    def test_subagent_that_config_has_written_is_read(self, home: Path) -> None:
        entry = {"type": "stdio", "command": COMMAND, "args": ["--keep", "1h"]}
        path = home / ".claude/agents/t.md"
        write(path, agent_file.put("", ("mcpServers", "t"), entry))
        write(path.with_name("other.md"), "---\nname: other\n---\nText\n")

        [found] = entries_in(home)

        assert (found.source.path, found.name) == (path, "t")
        assert found.words == (COMMAND, "--keep", "1h")

    @pytest.mark.parametrize(
        ("client", "file", "text", "reason"),
        [
            ("goose", ".config/goose/config.yaml", f"a: {COMMAND}\n", "is YAML"),
            ("zed", ".config/zed/settings.json", f"{{\n// {COMMAND}\n}}", "line 2: has comments"),
            ("claude", ".claude/agents/x.md", f"a: {COMMAND}\n", "is not a subagent as config"),
        ],
    )
    def test_file_that_only_people_read_is_well(
        self, home: Path, client: str, file: str, text: str, reason: str
    ) -> None:
        write(home / file, text)
        [entries, [found]] = read({"HOME": str(home), "PATH": "/nonexistent"})

        assert entries == []
        assert (found.name, found.state) == (client, Severity.OK)
        assert f"{home / file} names this server; not tried: " in found.found
        assert reason in found.found
        write(home / file, text.replace(COMMAND, "other"))
        assert read({"HOME": str(home), "PATH": "/nonexistent"}) == ([], [])

    def test_byte_order_mark_is_no_fault(self, home: Path) -> None:
        write(home / ".codex/config.toml", f"\ufeff[mcp_servers.t]\ncommand = '{COMMAND}'\n")

        assert [entry.words for entry in entries_in(home)] == [(COMMAND,)]

    def test_entry_of_our_name_is_ours_whatever_it_starts(self, home: Path) -> None:
        servers = {"tmux-debug": {"command": "/gone/server"}, "other": {"command": "/gone/x"}}
        write(home / ".cursor/mcp.json", json.dumps({"mcpServers": servers}))

        assert [entry.words for entry in entries_in(home)] == [("/gone/server",)]

    def test_servers_of_this_directory_in_the_state_of_claude(self, home: Path, here: Path) -> None:
        projects = {str(here): {"mcpServers": {"t": STDIO}}, "/other": {"mcpServers": {"u": STDIO}}}
        write(home / ".claude.json", json.dumps({"projects": projects}))

        assert [entry.name for entry in entries_in(home)] == ["t"]

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ('{"mcpServers": ', "is not JSON: Expecting value (line 1, column 16)."),
            ("[" * 100_000, "is nested too deeply."),
            ('{\n"a": "\xff"}', "is not UTF-8 (line 2, column 7)."),
            ("[]", "is not a JSON object (line 1, column 1)."),
            ("null", "is not a JSON object (line 1, column 1)."),
        ],
        ids=["broken", "deep", "bytes", "list", "null"],
    )
    def test_file_that_can_not_be_read_is_a_fault(self, home: Path, text: str, fault: str) -> None:
        path = write(home / ".cursor/mcp.json", "")
        path.write_bytes(text.encode("latin-1"))
        [entries, [finding]] = read({"HOME": str(home), "PATH": "/nonexistent"})

        assert entries == []
        assert (finding.name, finding.state) == ("cursor", Severity.WARNING)
        assert finding.found.startswith(f"{path} {fault}")

    @pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1])
    def test_file_of_a_project_has_a_bound(self, here: Path, size: int) -> None:
        write(here / ".mcp.json", "{}".ljust(size))
        [entries, findings] = read({"HOME": "/nonexistent", "PATH": "/nonexistent"})

        assert entries == []
        assert ["larger than 1 MiB" in one.found for one in findings] == [True] * (size > 1 << 20)

    def test_program_that_is_missing_is_replaced_by_one_that_no_project_decides(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.prefix", "/nonexistent")
        write(home / ".cursor/mcp.json", json.dumps({"mcpServers": {"t": STDIO}}))

        [found] = Clients({"HOME": str(home), "PATH": "/nonexistent"}).findings

        assert found.advice == f"Change it to: {shlex.quote(sys.executable)} -P -m tmux_debug_mcp"

    @pytest.mark.parametrize(
        "data",
        [
            *({}, {"mcpServers": []}, {"mcpServers": {"t": 1}}),
            {"mcpServers": {"t": {"command": 1}}},
            {"mcpServers": {"t": {"command": {"path": ["tmux-debug-mcp"]}}}},
        ],
    )
    def test_odd_data_has_no_servers(self, home: Path, data: object) -> None:
        write(home / ".cursor/mcp.json", json.dumps(data))

        assert entries_in(home) == []

    def test_disabled_server(self, home: Path) -> None:
        write(
            home / ".codex/config.toml",
            f"[mcp_servers.t]\ncommand = '{COMMAND}'\nenabled = false\n",
        )
        [entry] = entries_in(home)

        assert not entry.is_enabled


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def entries_in(home: Path) -> list[ConfiguredServer]:
    """Return our servers in the files of a person, of which none has a fault."""
    entries, found = read({"HOME": str(home), "PATH": "/nonexistent"})
    assert found == []
    return entries


class TestKernel:
    def test_options_of_proc(self) -> None:
        mounts = "proc /proc proc rw,relatime 0 0\nproc /proc proc rw,hidepid=2 0 0\nx /y z a 0 0\n"
        assert machine._proc_options(mounts) == ["rw", "hidepid=2"]


class TestServer:
    @pytest.mark.parametrize(
        ("output", "reason", "states"),
        [
            ("doctor tmux-256color 3.4 UTF-8\n", "input", {}),
            ("doctor tmux-256color 3.4 ANSI_X3.4-1968\n", "input", {"locale": Severity.WARNING}),
            ("doctor tmux-256color 3.4 \n", "input", {"locale": None}),
            ("doctor tmux-256color 3.4 UTF-8\n", "timed out", {"awaits input": Severity.WARNING}),
        ],
    )
    def test_what_a_pane_prints_and_awaits_is_judged(
        self, output: str, reason: str, states: dict[str, Severity | None]
    ) -> None:
        found = machine._server("/usr/bin/tmux", Answers("1", 7, 0.5, output, reason))

        names = ["tmux", "server start", "terminal", "locale", "awaits input"]
        expected = dict.fromkeys(names, Severity.OK) | states
        assert {one.name: one.state for one in found} == {
            name: state for name, state in expected.items() if state
        }
        assert found[0].found == "tmux 3.4, /usr/bin/tmux"

    @pytest.mark.parametrize(
        "outcome", ["no such luck", Answers("1", 7, 0.5, "-bash: \x1b[31mprintf: oops", "exited")]
    )
    def test_server_that_does_not_work_is_a_problem(self, outcome: Answers | str) -> None:
        [found] = machine._server("/usr/bin/tmux", outcome)

        assert found.state is Severity.PROBLEM
        assert "no such luck" in found.found or "oops" in found.found
