"""`doctor` on machines that are well, and on such that are not."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ask_until

from tmux_debug_mcp import __version__
from tmux_debug_mcp.linux.processes import is_alive

from .conftest import PROGRAM, Shell

Finding = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs/doctor.md"
# A machine under load takes seconds for what usually takes one.
PATIENT = ("--timeout", "60")
REFUSAL = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no luck"}}'
NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")


class Report:
    """What `doctor --json` has printed.

    Args:
        status: Its exit status.
        findings: Its findings.
    """

    def __init__(self, status: int, findings: list[Finding]) -> None:
        self.status = status
        self.findings = findings

    def named(self, name: str) -> list[Finding]:
        """Return the findings of a name."""
        return [finding for finding in self.findings if finding["name"] == name]

    def __getitem__(self, name: str) -> Finding:
        """Return the only finding of a name."""
        [finding] = self.named(name)
        return finding

    @property
    def problems(self) -> list[str]:
        """The names of the findings that are problems."""
        return [finding["name"] for finding in self.findings if finding["state"] == "problem"]


def examine(shell: Shell, *words: str, **env: str) -> Report:
    """Run `doctor`, and check what is so of every report."""
    done = shell.run("doctor", "--json", *PATIENT, *words, **env)
    assert done.stderr == ""
    report = Report(done.returncode, json.loads(done.stdout))
    assert report.status == int(bool(report.problems)), report.findings
    for finding in report.findings:
        assert list(finding) == ["name", "state", "found", "advice"]
        assert finding["found"]
        assert finding["state"] == "ok" or finding["advice"], finding
    return report


def examine_without_server(shell: Shell, *words: str, **env: str) -> Report:
    """Run `doctor` where tmux is missing, so that no server of its own stays.

    Returns:
        What else it has found.
    """
    report = examine(shell, "--tmux", "/nonexistent", *words, **env)
    assert report["tmux"]["state"] == "problem"
    found = [one for one in report.findings if one["name"] != "tmux"]
    return Report(report.status, found)


def script(path: Path, text: str) -> Path:
    """Write a program for /bin/sh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return a command as a client's configuration names it."""
    server = shlex.join([sys.executable, "-m", "tmux_debug_mcp"])
    return script(tmp_path / "ours/tmux-debug-mcp", f'exec {server} "$@"')


def configure(home: Path, **server: object) -> Path:
    """Write the user's configuration of Cursor."""
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"tmux-debug": server}}))
    return path


@pytest.fixture
def home(shell: Shell) -> Path:
    return Path(shell.env["HOME"])


def test_machine_with_all_that_is_needed_is_well(shell: Shell, home: Path) -> None:
    before = sorted(home.rglob("*"))
    report = examine(shell)

    assert report.status == 0
    assert report["tmux"]["found"].startswith("tmux ")
    assert report["server start"]["state"] == "ok"
    assert report["terminal"]["found"] == "TERM=tmux-256color"
    assert report["awaits input"]["state"] == "ok"
    assert report["locale"]["found"] == "UTF-8"
    assert __version__ in report["package"]["found"]
    # Looking has changed nothing.
    assert shell.left() == []
    assert sorted(home.rglob("*")) == before


@pytest.mark.skipif(not PAGE.exists(), reason="Nix builds without the documents")
def test_page_names_every_finding(shell: Shell, home: Path, ours: Path) -> None:
    configure(home, command=str(ours))
    report = examine(shell)

    text = PAGE.read_text()
    for finding in report.findings:
        assert f"`{finding['name']}`" in text, finding


def test_report_ends_with_the_verdict(shell: Shell) -> None:
    done = shell.run("doctor", *PATIENT)

    lines = done.stdout.splitlines()
    assert lines[-1].startswith("tmux-debug-mcp works here")
    assert "\x1b" not in done.stdout
    assert any(line.startswith("ok       tmux: tmux ") for line in lines)


def test_both_programs_have_it(shell: Shell) -> None:
    program = "from tmux_debug_mcp.command.serve import main; main()"
    words = [sys.executable, "-c", program, "doctor", "--tmux", "/nonexistent", *PATIENT]
    done = subprocess.run(words, env=shell.env, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("1 problem")


@pytest.mark.parametrize(("no_color", "has_colour"), [("", True), ("1", False)])
def test_colours_are_for_terminals_without_no_color(
    shell: Shell, no_color: str, *, has_colour: bool
) -> None:
    outer, inner = os.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "doctor", "--tmux", "/nonexistent", *PATIENT],
        env=shell.env | {"NO_COLOR": no_color, "TERM": "xterm-256color"},
        stdout=inner,
        cwd=shell.cwd,
    )
    os.close(inner)
    text = b""
    try:
        while data := os.read(outer, 4096):
            text += data
    except OSError:  # the other side is closed
        pass
    os.close(outer)

    assert process.wait() == 1
    assert (b"\x1b[32m" in text) == has_colour
    assert b"/nonexistent" in text


@pytest.mark.parametrize("has_sudo", [True, False])
def test_path_without_tmux(shell: Shell, tmp_path: Path, *, has_sudo: bool) -> None:
    installer = script(tmp_path / "bin/apt-get", "exit 1").parent
    if has_sudo:
        script(installer / "sudo", "exit 1")
    # Nix has a path of its own for a tmux that is not named.
    report = examine(shell, PATH=str(installer), TMUX_DEBUG_TMUX="tmux")

    assert report.problems == ["tmux"]
    assert report["tmux"]["found"] == "tmux is not on PATH."
    is_root = os.geteuid() == 0
    sudo = "sudo " if has_sudo and not is_root else ""
    who = "" if has_sudo or is_root else " as root"
    line = f"{sudo}apt-get update && {sudo}apt-get install tmux"
    assert report["tmux"]["advice"] == f"Install it{who}: {line}"
    assert report.named("server start") == []


@pytest.mark.parametrize("by_flag", [True, False])
def test_tmux_that_is_too_old(shell: Shell, tmp_path: Path, *, by_flag: bool) -> None:
    old = str(script(tmp_path / "old/tmux", "echo tmux 2.9a"))
    report = examine(shell, "--tmux", old) if by_flag else examine(shell, TMUX_DEBUG_TMUX=old)

    assert report.problems == ["server start"]
    assert (
        f"tmux 3.3 or newer is needed, but '{old}' is tmux 2.9a." in report["server start"]["found"]
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("echo need UTF-8 locale >&2; exit 1", "need UTF-8 locale"),
        (r"printf '\033]0;evil\a' >&2; exit 1", r"\\x1b]0;evil"),
        ("[ $1 = -V ] && exec echo tmux 3.4; echo no such luck; exit 1", "no such luck"),
    ],
)
def test_what_the_server_says_of_its_tmux_is_the_finding(
    shell: Shell, tmp_path: Path, text: str, found: str
) -> None:
    report = examine(shell, TMUX_DEBUG_TMUX=str(script(tmp_path / "tmux", text)))

    assert report.problems == ["server start"]
    assert found in json.dumps(report["server start"]["found"])


@pytest.mark.alone  # all else has to be done in time
def test_tmux_and_a_clients_command_that_hang_are_ended(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    text = 'if [ "$1" = -V ]; then echo tmux 3.4; else exec sleep 1000; fi'
    hanging = str(script(tmp_path / "tmux", text))
    text = f"trap '' TERM; echo $$ >{tmp_path}/pid; exec sleep 1000"
    configure(home, command=str(script(tmp_path / "mute/tmux-debug-mcp", text)))
    done = shell.run("doctor", "--json", "--timeout", "6", TMUX_DEBUG_TMUX=hanging)

    report = Report(done.returncode, json.loads(done.stdout))
    assert sorted(report.problems) == ["cursor", "server start"]
    for name in report.problems:
        assert "did not answer within 6 s" in report[name]["found"]
    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert shell.left() == []


def test_variables_with_typos_and_wrong_values(shell: Shell) -> None:
    report = examine(shell, TMUX_DEBUG_TOOLSET="tmux", TMUX_DEBUG_SIZE="huge")

    unknown, wrong = report.named("options")
    assert wrong["state"] == "problem"
    assert "huge" in wrong["found"]
    assert unknown["state"] == "warning"
    assert unknown["advice"] == "Did you mean TMUX_DEBUG_TOOLSETS?"
    assert report["server start"]["state"] == "ok"  # which gets other options


def test_runtime_directory_with_a_path_too_long_for_sockets(shell: Shell, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir(mode=0o700)
    report = examine(shell, XDG_RUNTIME_DIR=str(long))

    assert report.problems == []
    assert list(long.iterdir()) == []


def test_options_for_panes_are_those_of_the_server_that_is_started(shell: Shell) -> None:
    report = examine(shell, TMUX_DEBUG_ENV="LC_ALL=C TERM_PROGRAM=x")

    assert report["locale"]["state"] == "warning"
    assert "TMUX_DEBUG_ENV" in report["locale"]["advice"]


@pytest.mark.parametrize("start", ["/*x", "/* ", "[", '{"a":'])
def test_hostile_file_of_a_project_holds_nothing_up(
    shell: Shell, tmp_path: Path, start: str
) -> None:
    """In proportion to the square of its size, one of these took half an hour."""
    data = '{"tmux-debug-mcp"' + start * (1 << 20)
    (tmp_path / ".mcp.json").write_text(data[: 1 << 20])
    report = examine_without_server(shell)

    assert report["claude"]["state"] in ("ok", "warning")
    assert f"{tmp_path}/.mcp.json" in report["claude"]["found"]


class TestClients:
    def test_configuration_whose_command_works(self, shell: Shell, home: Path, ours: Path) -> None:
        path = configure(
            home, command=str(ours), args=["--toolsets", "terminal", "--size", "100x40"]
        )
        report = examine_without_server(shell)

        assert report["cursor"]["state"] == "ok"
        assert f"works: version {__version__}" in report["cursor"]["found"]
        assert str(path).removeprefix(str(home)) in report["cursor"]["found"]

    def test_two_clients_with_the_same_command(self, shell: Shell, home: Path, ours: Path) -> None:
        configure(home, command=str(ours))
        (home / ".codex").mkdir()
        (home / ".codex/config.toml").write_text(f'[mcp_servers.t]\ncommand = "{ours}"\n')
        report = examine_without_server(shell)

        for name in ("codex", "cursor"):
            assert "works" in report[name]["found"]

    @pytest.mark.parametrize("text", ["exit 1", "echo tmux 2.9", None])
    def test_fault_of_the_machine_is_said_once(
        self, shell: Shell, home: Path, ours: Path, tmp_path: Path, text: str | None
    ) -> None:
        configure(home, command=str(ours))
        (home / ".codex").mkdir()
        other = script(tmp_path / "other/tmux-debug-mcp", "echo no luck >&2; exit 1")
        servers = f'[mcp_servers.t]\ncommand = "{ours}"\n[mcp_servers.u]\ncommand = "{other}"\n'
        (home / ".codex/config.toml").write_text(servers)
        tmux = str(script(tmp_path / "tmux", text) if text else tmp_path / "gone")
        report = examine(shell, TMUX_DEBUG_TMUX=tmux)

        assert sorted(report.problems) == ["codex", "server start" if text else "tmux"]
        [same, different] = sorted(report.named("codex"), key=lambda one: one["found"])
        for one in (same, report["cursor"]):
            assert one["found"].endswith(" can be judged only when a server works here")
        assert different["found"].endswith(" does not work. no luck")

    def test_configuration_whose_command_is_missing(self, shell: Shell, home: Path) -> None:
        configure(home, command="/nonexistent/tmux-debug-mcp")
        report = examine_without_server(shell)

        assert report.problems == ["cursor"]
        assert "/nonexistent/tmux-debug-mcp" in report["cursor"]["found"]
        assert "Change it to: " in report["cursor"]["advice"]

    def test_configuration_with_an_option_that_is_not_known(
        self, shell: Shell, home: Path, ours: Path
    ) -> None:
        configure(home, command=str(ours), args=["--toolset", "debug"])
        report = examine_without_server(shell)

        assert report.problems == ["cursor"]
        assert report["cursor"]["found"].endswith("Did you mean --toolsets?")

    def test_command_that_does_not_serve(self, shell: Shell, home: Path, tmp_path: Path) -> None:
        texts = {
            "cursor": ("echo 'no module: \033]0;evil\a' >&2; exit 3", "no module"),
            "gemini": ("echo hello; exec cat", "prints something other than MCP: hello"),
            "zed": (f"read -r line; echo '{REFUSAL}'; exec cat >/dev/null", "an error: no luck"),
        }
        files = {
            "cursor": (".cursor/mcp.json", "mcpServers"),
            "gemini": (".gemini/settings.json", "mcpServers"),
            "zed": (".config/zed/settings.json", "context_servers"),
        }
        for client, (text, _) in texts.items():
            command = script(tmp_path / client / "tmux-debug-mcp", text)
            path, key = files[client]
            (home / path).parent.mkdir(parents=True)
            (home / path).write_text(json.dumps({key: {"tmux-debug": {"command": str(command)}}}))
        report = examine_without_server(shell)

        assert sorted(report.problems) == sorted(texts)
        for client, (_, found) in texts.items():
            assert found in report[client]["found"]
            assert report[client]["advice"].endswith("tmux-debug-mcp </dev/null")
        assert "\x1b" not in shell.run("doctor", *PATIENT).stdout

    @pytest.mark.parametrize("env", [{"A": "\0"}, {"A": "\ud800"}, {"A=B": ""}])
    def test_variables_that_no_program_can_be_given(
        self, shell: Shell, home: Path, ours: Path, env: dict[str, str]
    ) -> None:
        configure(home, command=str(ours), env=env)
        report = examine_without_server(shell)

        assert report["cursor"]["found"].endswith("no program can be given its words or variables.")

    def test_program_of_the_project_is_not_started(self, shell: Shell, tmp_path: Path) -> None:
        evil = script(tmp_path / "tmux-debug-mcp", f"touch {tmp_path}/started")
        server = {"command": str(evil)}
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"t": server}}))
        report = examine_without_server(shell)

        assert "not tried" in report["claude"]["found"]
        assert not (tmp_path / "started").exists()

    def test_launcher_is_not_started(self, shell: Shell, home: Path, tmp_path: Path) -> None:
        launcher = script(tmp_path / "bin/uvx", f"touch {tmp_path}/started")
        configure(home, command=str(launcher), args=["tmux-debug-mcp"])
        report = examine_without_server(shell)

        assert "not tried" in report["cursor"]["found"]
        assert not (tmp_path / "started").exists()

    def test_options_and_directories_of_the_configuration_are_left_alone(
        self, shell: Shell, home: Path, ours: Path, tmp_path: Path
    ) -> None:
        audit, logs = tmp_path / "audit.jsonl", tmp_path / "logs"
        configure(
            home,
            command=str(ours),
            args=["--audit", str(audit)],
            env={"TMUX_DEBUG_LOG_DIR": str(logs)},
        )
        report = examine_without_server(shell)

        assert "works" in report["cursor"]["found"]
        assert not audit.exists()
        assert not logs.exists()

    def test_client_that_is_not_set_up(self, shell: Shell, tmp_path: Path) -> None:
        path = script(tmp_path / "clients/goose", f"touch {tmp_path}/started").parent
        report = examine_without_server(shell, PATH=f"{path}:{shell.env['PATH']}")

        assert report.problems == []
        assert "not set up" in report["goose"]["found"]
        assert not (tmp_path / "started").exists()


def test_interrupt_leaves_nothing(shell: Shell, tmp_path: Path) -> None:
    slow = script(tmp_path / "tmux", f"touch {tmp_path}/asked; exec sleep 1000")
    process = shell.start("doctor", *PATIENT, TMUX_DEBUG_TMUX=str(slow))
    ask_until((tmp_path / "asked").exists, lambda is_asked: is_asked)
    process.send_signal(2)
    process.communicate()

    assert process.returncode == 130
    assert shell.left() == []
