"""The parts of `doctor` that need no programs: findings, configurations, options, the report."""

import io
import json
import os
import threading
from pathlib import Path

import pytest

from tmux_debug_mcp.clients.table import CLIENTS, Homes
from tmux_debug_mcp.doctor import directories, kernel, options, tmux_findings
from tmux_debug_mcp.doctor.clients import Entry, read
from tmux_debug_mcp.doctor.finding import Check, Finding, State, findings_of, ok, problem, warning
from tmux_debug_mcp.doctor.report import as_json, plain, show, verdict
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.options import OPTIONS

COMMAND = "/opt/bin/tmux-debug-mcp"
STDIO = {"command": COMMAND, "args": ["--toolsets", "debug"], "env": {"A": "1"}}


class TestChecks:
    def test_findings_are_in_the_order_of_the_checks(self) -> None:
        second_is_done = threading.Event()

        def first() -> list[Finding]:
            second_is_done.wait()
            return [ok("first", "")]

        def second() -> list[Finding]:
            second_is_done.set()
            return [ok("second", "")]

        checks = [Check("first", first), Check("none", list), Check("second", second)]
        assert [one.name for one in findings_of(checks, 60)] == ["first", "second"]

    def test_look_that_fails_is_a_finding(self) -> None:
        def look() -> list[Finding]:
            raise OSError("the disk is on fire")

        [found] = findings_of([Check("disk", look)], 60)

        assert found.state is State.WARNING
        assert "the disk is on fire" in found.found

    def test_look_that_hangs_is_a_finding_and_the_others_are_there(self) -> None:
        is_over = threading.Event()

        def look() -> list[Finding]:
            is_over.wait()
            return []

        checks = [Check("slow", look), Check("fast", lambda: [ok("fast", "")])]
        slow, fast = findings_of(checks, 1.0)
        is_over.set()

        assert (slow.name, slow.state) == ("slow", State.WARNING)
        assert "--timeout" in slow.advice
        assert fast == ok("fast", "")


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
        [found] = options.variables({name: "x"})

        assert found.state is State.WARNING
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
        [found] = options.variables({f"TMUX_DEBUG_{name}": value})

        assert found.state is State.PROBLEM
        assert f"unset TMUX_DEBUG_{name}" in found.advice

    def test_values_that_the_server_takes_are_well(self) -> None:
        env = {
            "SIZE": "80x24",
            "TOOLSETS": "tmux,terminal",
            "KEEP": "1h",
            "ALLOW_KILL": "1",
            "ENV": "",
        }
        env |= {"SOCKET": "default"}
        [found] = options.variables({f"TMUX_DEBUG_{name}": value for name, value in env.items()})

        assert found.state is State.OK

    def test_every_option_is_taken_in_a_command_line(self) -> None:
        words = [f"--{one.flag}" for one in OPTIONS if not one.value]
        words += ["--socket", "default", "--toolsets", "tmux"]
        assert options.fault_of(words, {}, {}) is None

    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            (
                ["--toolset=debug", "--size", "1x1"],
                ("Option '--toolset=debug' is unknown.", "Did you mean --toolsets?"),
            ),
            (["--audit"], ("Option --audit needs a value.", "Give --audit=FILE.")),
        ],
    )
    def test_fault_of_a_command_line_is_what_the_server_would_say(
        self, words: list[str], fault: tuple[str, str]
    ) -> None:
        assert options.fault_of(words, {}, {}) == fault

    def test_variables_of_a_client_are_judged_and_not_those_of_the_shell(self) -> None:
        fault = options.fault_of([], {"TMUX_DEBUG_SIZE": "big"}, {"TMUX_DEBUG_SIZE": "small"})

        assert fault
        assert "big" in fault[0]

    @pytest.mark.parametrize(
        ("words", "added", "reason"),
        [
            (["--socket", "default"], {}, "--socket needs the toolset tmux or tabs"),
            (["--allow-kill"], {}, "--allow-kill needs --socket"),
            (["--size", "80x24"], {}, "--size (TMUX_DEBUG_SIZE) needs the toolset terminal"),
            ([], {"TMUX_DEBUG_ALLOW_KILL": "1"}, "--allow-kill needs --socket"),
            (["--log-dir", "/dev/null/logs"], {}, "/dev/null"),
            (["--log-dir", "/proc/logs"], {}, "/proc"),
            ([], {"TMUX_DEBUG_AUDIT": "/dev/null/audit"}, "/dev/null"),
            (["--audit-full=/dev/null/full"], {}, "/dev/null"),
        ],
    )
    def test_options_that_the_server_refuses_together_are_a_fault(
        self, words: list[str], added: dict[str, str], reason: str
    ) -> None:
        fault = options.fault_of(words, added, {})

        assert fault
        assert reason in fault[0]
        assert fault[1]
        if added and "--" in reason:
            [of_shell] = options.variables(added)
            assert of_shell.state is State.PROBLEM

    def test_options_of_flags_and_variables_are_looked_at_together(self) -> None:
        added = {"TMUX_DEBUG_SOCKET": "default"}
        assert options.fault_of(["--toolsets", "tmux", "--allow-kill"], added, {}) is None

    def test_panes_have_an_environment_although_options_are_wrong(self) -> None:
        assert options.pane_environment({"TMUX_DEBUG_ENV": "'"})["LC_CTYPE"] == "C.UTF-8"
        assert options.pane_environment({"TMUX_DEBUG_ENV": "LC_ALL=C"})["LC_ALL"] == "C"


class TestConfigurations:
    @pytest.mark.parametrize(
        ("client", "file", "text"),
        [
            ("claude", ".claude.json", json.dumps({"mcpServers": {"t": STDIO}})),
            (
                "claude",
                ".claude/agents/debug.md",
                (
                    "---\nname: x\nmcpServers:\n  - other\n  - t:\n      type: stdio\n"
                    f"      command: {COMMAND}\n      args: [--toolsets, debug]\n"
                    "      env: {A: '1'}\n---\nText\n"
                ),
            ),
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
                "goose",
                ".config/goose/config.yaml",
                (
                    "extensions:\n  t:\n    type: stdio\n    enabled: true\n"
                    f"    cmd: {COMMAND}\n    args: [--toolsets, debug]\n    envs: {{A: '1'}}\n"
                ),
            ),
            (
                "opencode",
                ".config/opencode/opencode.jsonc",
                (
                    '// mine\n{"mcp": {"t": {"type": "local", "environment": {"A": "1"},\n'
                    f'"command": ["{COMMAND}", "--toolsets", "debug"],}}}}}}'
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

    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    @pytest.mark.parametrize(
        ("client", "scope"), [(name, scope) for name in CLIENTS for scope in CLIENTS[name].places]
    )
    def test_what_config_writes_is_read(
        self, home: Path, here: Path, client: str, scope: str, mark: str
    ) -> None:
        table = CLIENTS[client]
        env = {"HOME": str(home), "PATH": "", "GEMINI_CLI_HOME": f"{home}/gemini"}
        entry = table.shape("t", [COMMAND])
        path = table.places[scope](Homes(env, here))
        write(path, next(table.format.put(mark, (table.key, "t"), entry)))

        [[found], findings] = read(env)

        assert findings == []
        assert (found.source.path, found.words) == (path, (COMMAND,))
        assert found.source.is_of_project is (scope == "project")

    def test_entry_of_our_name_is_ours_whatever_it_starts(self, home: Path) -> None:
        servers = {"tmux-debug": {"command": "/gone/server"}, "other": {"command": "/gone/x"}}
        write(home / ".cursor/mcp.json", json.dumps({"mcpServers": servers}))

        assert [entry.words for entry in entries_in(home)] == [("/gone/server",)]

    def test_servers_of_this_directory_in_the_state_of_claude(self, home: Path, here: Path) -> None:
        projects = {str(here): {"mcpServers": {"t": STDIO}}, "/other": {"mcpServers": {"u": STDIO}}}
        write(home / ".claude.json", json.dumps({"projects": projects}))

        assert [entry.name for entry in entries_in(home)] == ["t"]

    @pytest.mark.parametrize(
        "text",
        ['{"mcpServers": ', "[" * 100_000, '{"a": "\xff"}'],
        ids=["broken", "deep", "bytes"],
    )
    def test_file_that_can_not_be_read_is_a_fault(self, home: Path, text: str) -> None:
        path = write(home / ".cursor/mcp.json", "")
        path.write_bytes(text.encode("latin-1"))
        [entries, [finding]] = read({"HOME": str(home), "PATH": "/nonexistent"})

        assert entries == []
        assert (finding.name, finding.state) == ("cursor", State.WARNING)
        assert f"{path} can't be read: " in finding.found

    @pytest.mark.parametrize(
        "data",
        [
            *([], 1, None, {"mcpServers": []}, {"mcpServers": {"t": 1}}),
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


def entries_in(home: Path) -> list[Entry]:
    """Return our servers in the files of a person, of which none has a fault."""
    entries, found = read({"HOME": str(home), "PATH": "/nonexistent"})
    assert found == []
    return entries


class TestDirectories:
    def test_why_a_runtime_directory_is_not_used(self, tmp_path: Path, short_path: Path) -> None:
        missing = tmp_path / "missing"
        open_to_all, file = short_path / "open", short_path / "file"
        open_to_all.mkdir()
        open_to_all.chmod(0o755)
        file.touch()
        long = tmp_path / ("x" * 80)
        long.mkdir(mode=0o700)

        for path, reason, advice in [
            (missing, "can't be entered", "XDG_RUNTIME_DIR"),
            (open_to_all, "mode 0755", f"chmod 700 {open_to_all}"),
            (file, "is not a directory you own", "unset XDG_RUNTIME_DIR"),
            (long, "too long", "mkdir -m 700"),
        ]:
            [found] = directories.runtime_variable({"XDG_RUNTIME_DIR": str(path)})
            assert found.state is State.WARNING
            assert reason in found.found
            assert advice in found.advice

    def test_runtime_directory_that_is_used_is_not_mentioned(self, short_path: Path) -> None:
        assert directories.runtime_variable({"XDG_RUNTIME_DIR": str(short_path)}) == []
        assert directories.runtime_variable({}) == []

    def test_kept_logs_are_counted(self, tmp_path: Path) -> None:
        for number in (1, 2):
            write(tmp_path / f"logs/20260101T000000-{number}/debug-1.log", "x")
        write(tmp_path / "logs/other/file", "x")
        [found] = directories.kept_logs(tmp_path, {})

        assert found.state is State.OK
        assert found.found.startswith("2 runs, ")

    def test_audit_in_the_way_of_which_is_a_file(self, tmp_path: Path) -> None:
        file = write(tmp_path / "file", "")
        environ = {"TMUX_DEBUG_AUDIT": f"{file}/audit.jsonl"}
        [found] = directories.audit(environ)

        assert found.state is State.PROBLEM
        assert str(file) in found.found

    @pytest.mark.parametrize(
        ("text", "state"),
        [('{"ts": 1}\n', State.OK), ("", State.OK), ("#!/bin/sh\n", State.PROBLEM)],
    )
    def test_audit_that_is_there(self, tmp_path: Path, text: str, state: State) -> None:
        file = write(tmp_path / "audit.jsonl", text)
        [found] = directories.audit({"TMUX_DEBUG_AUDIT": str(file)})

        assert found.state is state
        assert file.read_text() == text

    def test_audit_that_is_a_link_or_a_pipe(self, tmp_path: Path) -> None:
        link, pipe = tmp_path / "link", tmp_path / "pipe"
        link.symlink_to(write(tmp_path / "file", ""))
        os.mkfifo(pipe)

        for path, kind in [(link, "symbolic link"), (pipe, "named pipe")]:
            [found] = directories.audit({"TMUX_DEBUG_AUDIT": str(path)})
            assert found.state is State.PROBLEM
            assert kind in found.found

    def test_directories_that_are_missing_are_not_made(self, tmp_path: Path) -> None:
        environ = {
            "TMUX_DEBUG_AUDIT": f"{tmp_path}/a/audit.jsonl",
            "TMUX_DEBUG_AUDIT_FULL": f"{tmp_path}/b",
        }
        found = [
            *directories.audit(environ),
            *directories.kept_logs(tmp_path / "c", environ),
        ]

        assert {one.state for one in found} == {State.OK}
        assert not any((tmp_path / name).exists() for name in "abc")


class TestKernel:
    @pytest.mark.parametrize("minor", [0, 3, 255, 256, 1_000_000])
    def test_terminal_number_is_that_of_the_device(self, minor: int) -> None:
        device = os.makedev(136, minor)
        assert terminals.device(kernel._tty_number(device)) == device

    def test_options_of_proc(self) -> None:
        mounts = "proc /proc proc rw,relatime 0 0\nproc /proc proc rw,hidepid=2 0 0\nx /y z a 0 0\n"
        assert kernel._proc_options(mounts) == ["rw", "hidepid=2"]


class TestLocales:
    def test_locale_of_panes(self) -> None:
        for env, state in [
            ({"LC_CTYPE": "C.UTF-8"}, State.OK),
            ({"LANG": "C"}, State.WARNING),
            ({"LC_ALL": "", "LC_CTYPE": "C", "LANG": "C.UTF-8"}, State.WARNING),
            ({"LC_ALL": "xx_XX.nothing"}, State.WARNING),
        ]:
            [found] = tmux_findings.locale_of_panes(env)
            assert found.state is state, (env, found)
