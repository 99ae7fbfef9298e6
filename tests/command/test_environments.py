"""Whose environment and directory a pane has: those of whoever had it made."""

import ast
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support import ask_until
from wire import Server

from .conftest import PROGRAM, Shell

# Writes its environment into a file.
PYTHON = shlex.quote(sys.executable)
WRITES = f'{PYTHON} -IS -c \'import os; open("shown", "w").write(repr(os.environb))\''


@pytest.fixture(params=["detached", "of a client"])
def any_server(
    request: pytest.FixtureRequest, shell: Shell, launch: Callable[..., Server]
) -> Iterator[None]:
    """Run a server that was started in another environment and directory than the callers'."""
    elsewhere = replace(shell, env=shell.env | {"WHOSE": "the server's", "ONLY_SERVER": "1"})
    if request.param == "detached":
        elsewhere.out("start")
        yield
        return
    shell.env |= {"WHOSE": "the server's", "ONLY_SERVER": "1"}
    server = launch()
    for name in ("WHOSE", "ONLY_SERVER"):
        del shell.env[name]
    shell.env["TMUX_DEBUG_SERVER"] = str(server.pid)
    yield


@pytest.mark.usefixtures("any_server")
class TestAnyServer:
    def test_pane_has_the_environment_of_its_caller(self, shell: Shell) -> None:
        show = "echo $WHOSE-$ONLY_SERVER-$ONLY_CALLER"

        assert shell.out("run", show) == "--\n"
        for whose in ("one", "another one; exit 3"):
            caller = replace(shell, env=shell.env | {"WHOSE": whose, "ONLY_CALLER": "2"})
            assert caller.out("run", show) == f"{whose}--2\n"
            assert caller.out("create", show) == f"{whose}--2\n"
            called = caller.out("call", "tmux_run", f"command={show}")
            assert called.startswith(f"{whose}--2\n")

    def test_variables_of_a_call_win(self, shell: Shell) -> None:
        caller = replace(shell, env=shell.env | {"WHOSE": "the caller's", "OTHER": "1"})

        out = caller.out("create", "--env", "WHOSE=the call's", "echo $WHOSE $OTHER")

        assert out == "the call's 1\n"

    def test_program_of_an_active_environment_runs(self, shell: Shell, tmp_path: Path) -> None:
        program = tmp_path / "venv" / "bin" / "whose"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho the venv\\'s $VIRTUAL_ENV\n")
        program.chmod(0o755)
        path = f"{program.parent}:{shell.env['PATH']}"
        venv = str(tmp_path / "venv")
        caller = replace(shell, env=shell.env | {"PATH": path, "VIRTUAL_ENV": venv})

        assert caller.out("run", "whose") == f"the venv's {venv}\n"
        assert caller.out("run", "command -v tmux-debug").endswith("/bin/tmux-debug\n")
        assert shell.run("run", "whose").returncode == 127

    def test_relative_directory_is_the_callers(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "one" / "below").mkdir(parents=True)
        caller = replace(shell, cwd=tmp_path / "one")

        assert caller.out("run", "pwd") == f"{tmp_path}/one\n"
        assert caller.out("run", "--cwd", "below", "pwd") == f"{tmp_path}/one/below\n"
        out = caller.out("call", "tmux_run", "command=pwd", "cwd=below")
        assert out.startswith(f"{tmp_path}/one/below\n")

    def test_shell_is_the_callers(self, shell: Shell, tmp_path: Path) -> None:
        own = tmp_path / "bash"
        own.write_text('#!/bin/sh\necho mine "$SHELL"\nexec /bin/sh "$@"\n')
        own.chmod(0o755)
        caller = replace(shell, env=shell.env | {"SHELL": str(own)})

        assert caller.out("run", "echo run") == f"mine {own}\nrun\n"

    def test_shell_in_a_pane_keeps_its_own_environment(self, shell: Shell) -> None:
        shell.out("create", "--name", "sh", "bash --norc")
        caller = replace(shell, env=shell.env | {"WHOSE": "the caller's"})

        assert caller.out("run", "--pane", "sh", "echo [$WHOSE]") == "[]\n"

    def test_restart_keeps_the_environment_of_whoever_made_the_pane(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        (tmp_path / "one").mkdir()
        caller = replace(shell, env=shell.env | {"WHOSE": "the first's"}, cwd=tmp_path / "one")
        caller.out("create", "--name", "web", "--env", "A=1", "echo $WHOSE $A; pwd; exec cat")
        other = replace(shell, env=shell.env | {"WHOSE": "the second's"})

        assert other.out("restart", "web") == f"the first's 1\n{tmp_path}/one\n"
        assert other.out("restart", "web", "--command", "echo $WHOSE; cat") == "the first's\n"

    def test_what_the_server_drops_and_adds_is_dropped_and_added(self, shell: Shell) -> None:
        dropped = {"CLAUDECODE": "1", "CLAUDE_CODE_X": "1", "TMUX": "x,1,0", "COLUMNS": "7"}
        dropped |= {"TERM_PROGRAM": "vscode", "LC_ALL": "", "TMUX_DEBUG_KEEP": "1h"}
        caller = replace(shell, env=shell.env | dropped | {"TERM": "dumb"})

        variables = caller.out("run", "env").splitlines()

        names = {line.partition("=")[0] for line in variables}
        assert not names & (dropped.keys() - {"TERM_PROGRAM", "LC_ALL"})
        assert "TERM_PROGRAM=tmux" in variables
        assert "TERM=dumb" not in variables
        assert "LC_CTYPE=C.UTF-8" in variables

    def test_thousands_of_variables_arrive(self, shell: Shell, tmp_path: Path) -> None:
        """A command line of tmux has no room for so many words."""
        many = {f"V{number}": str(number) for number in range(6_000)}
        caller = replace(shell, env=shell.env | many | {"TERM": "dumb"})

        caller.out("run", WRITES)

        shown = ast.literal_eval((tmp_path / "shown").read_text()[len("environ(") : -1])
        given = {name.decode(): value.decode() for name, value in shown.items()}
        assert given.items() >= many.items()
        assert given["TERM"] != "dumb"
        assert "ONLY_SERVER" not in given
        assert given["PATH"] == f"{shell.env['PATH']}:{given['PATH'].rpartition(':')[2]}"
        assert "MCP_DEBUG_PANE" in given

    def test_any_bytes_arrive(self, shell: Shell, tmp_path: Path) -> None:
        odd = {"bytes": os.fsdecode(b"\xff\n\t'\"$;#{x}\\ \xc3\xa9"), "a-b.c": "odd name", "E": ""}
        odd |= {"BASH_FUNC_f%%": "() {  echo f\n}", "-x": "dash", "many": "x" * 100_000}
        caller = replace(shell, env=shell.env | odd)

        caller.out("run", WRITES)

        shown = (tmp_path / "shown").read_text()
        for name, value in odd.items():
            assert f"{os.fsencode(name)!r}: {os.fsencode(value)!r}" in shown


def test_restart_of_a_clients_pane_keeps_the_environment_of_its_server(
    shell: Shell, launch: Callable[..., Server]
) -> None:
    shell.env["WHOSE"] = "the server's"
    server = launch()
    server.text("create_pane", command="echo $WHOSE $HOME; cat", name="web")
    caller = replace(shell, env=shell.env | {"WHOSE": "the caller's"})

    out = caller.out("--server", str(server.pid), "restart", "web")

    assert out == f"the server's {shell.env['HOME']}\n"


def test_record_of_a_call_has_the_names_of_its_own_variables_alone(
    shell: Shell, tmp_path: Path
) -> None:
    audit = tmp_path / "audit"
    shell.out("start", "--audit", str(audit))
    caller = replace(shell, env=shell.env | {"TOKEN": "hunter2"})

    caller.out("create", "--env", "GIVEN=secret", "true")

    [record] = [json.loads(line) for line in audit.read_text().splitlines()]
    assert record["env"] == ["GIVEN"]
    assert "TOKEN" not in str(record)
    assert "hunter2" not in str(record)


def test_options_of_the_server_hold_for_every_caller(shell: Shell) -> None:
    sh = "/bin/sh"
    shell.out("start", "--drop-env", "SEC*", "--env", "ADDED=1", "--shell", sh)
    caller = replace(shell, env=shell.env | {"SECRET": "1", "ADDED": "2", "CLAUDECODE": "3"})

    show = "echo [$SECRET] $ADDED $CLAUDECODE $SHELL"
    assert caller.out("run", show) == f"[] 1 3 {sh}\n"


def test_thousands_of_variables_that_the_caller_has_not_are_not_set(
    shell: Shell, tmp_path: Path
) -> None:
    many = {f"V{number}": "" for number in range(12_000)}
    replace(shell, env=shell.env | many).out("start")

    shell.out("run", WRITES)

    shown = (tmp_path / "shown").read_text()
    assert "b'HOME'" in shown
    assert "b'V1'" not in shown


def test_configuration_of_the_users_tmux_is_not_read(shell: Shell) -> None:
    config = Path(shell.env["HOME"], ".config", "tmux")
    config.mkdir(parents=True)
    for file in (config / "tmux.conf", config.parents[1] / ".tmux.conf"):
        file.write_text("set-environment -g FROM_CONFIGURATION 1\n")

    assert shell.out("run", "echo [$FROM_CONFIGURATION]") == "[]\n"


@pytest.mark.parametrize("toolsets", ["debug", "tabs", "terminal", "tmux"])
def test_panes_of_a_client_have_its_environment_through_a_kept_server(
    shell: Shell, launch: Callable[..., Server], toolsets: str
) -> None:
    for whose in ("first", "second"):
        shell.env["WHOSE"] = whose
        kept = launch("--keep", "1m", "--toolsets", toolsets)
        assert f"<{whose}>" in shown_by(kept, toolsets)
    assert len(shell.servers()) == 1


def shown_by(server: Server, toolsets: str) -> str:
    """Return what a new pane's program has in the variable."""
    show = "echo \\<$WHOSE\\>"
    name = f"s{server.pid}"
    match toolsets:
        case "debug":
            return str(server.call_tool("tmux_run", command=show))
        case "tabs":
            made = json.loads(server.call_tool("create_tab")["content"][0]["text"])
            tab = made["window_id"]
            return str(server.call_tool("execute_command", window_id=tab, command=show))
        case "terminal":
            server.call_tool("createSession", name=name, command=f"{show}; cat")
            read = partial(server.call_tool, "getContent", session=name)
        case _:
            server.call_tool("tmux_create_session", name=name, command=f"{show}; cat")
            read = partial(server.call_tool, "tmux_read_pane", target=name)
    return ask_until(lambda: str(read()), lambda shown: ">" in shown)


@pytest.mark.parametrize(
    "program", [["-m", "tmux_debug_mcp"], [f"{Path(sys.executable).parent}/tmux-debug-mcp"]]
)
def test_modules_of_the_project_are_its_own_programs(
    shell: Shell, tmp_path: Path, program: list[str]
) -> None:
    for name in ("anyio", "mcp", "orjson", "re2"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('the project has {name}')")
    own = {"PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, *program],
        env=shell.env | own,
        cwd=tmp_path,  # `-m` also looks there
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    server = Server(process=process).start()
    try:
        imports = f"echo $PYTHONPATH; cd /; {PYTHON} -c 'import mcp' 2>&1"
        shown = f"{tmp_path}\nthe project has mcp\n"
        assert server.text("run", command=imports) == shown
        shell.env |= own
        assert shell.run("--server", str(server.pid), "run", imports).stdout == shown
    finally:
        server.finish()


@pytest.mark.parametrize("words", [["start"], ["run", "true"], ["attach"], ["dev"]], ids=" ".join)
def test_warnings_that_a_project_asks_python_for_are_not_about_us(
    shell: Shell, words: list[str]
) -> None:
    shell.out("dev", "--", "echo up; exec cat")

    done = subprocess.run(
        [*PROGRAM, *words],
        env=shell.env | {"PYTHONDEVMODE": "1"},
        cwd=shell.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "Warning" not in done.stderr
