"""`tmux-debug` in a pane: a script there calls the pane's own server, and only programs print."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import SHELLS, ask_until, python, wait_until
from wire import SERVER, Server

from tmux_debug_mcp.sockets.inside import add_program

from .conftest import Shell

# Draws two rows, and a third one that says how many keys were pressed, and which was the last.
UI = python(
    "import os, tty\ntty.setcbreak(0)\ncount, last = 0, ''\nwhile True:\n"
    " print('\\033[?1049h\\033[H\\033[2Jthe first row of a screen\\r\\ntwo', end='')\n"
    " print(f'\\r\\n{count} {last}' if count else '', end='', flush=True)\n"
    " count, last = count + 1, os.read(0, 1).decode()\n"
)
SCREEN = "the first row of a screen\ntwo\n"


@pytest.fixture(autouse=True)
def without_ours_on_path(shell: Shell) -> None:
    """Let PATH have no `tmux-debug` but the server's."""
    places = shell.env["PATH"].split(":")
    shell.env["PATH"] = ":".join(one for one in places if not Path(one, "tmux-debug").exists())
    assert shutil.which("tmux-debug", path=shell.env["PATH"]) is None


def ran(server: Server, command: str, **arguments: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Run a command by an MCP client; return its output, and what is said of it for programs."""
    result = server.call("run", command=command, timeout_s=60, **arguments)
    assert not result.get("isError"), result
    return result["content"][0]["text"], result["_meta"]


class TestOfAClient:
    """The server of an MCP client."""

    @pytest.fixture
    def records(self, tmp_path: Path) -> Path:
        return tmp_path / "audit.log"

    @pytest.fixture
    def server(self, launch: Callable[..., Server], records: Path) -> Server:
        return launch("--audit", str(records))

    def test_run_drives_all_panes_by_a_script_whose_output_is_what_programs_print(
        self, server: Server, records: Path
    ) -> None:
        serve = 'stty -echo; echo ready; while read line; do echo "served $line"; done'
        script = f"""
            tmux-debug create --name web --wait-for ready -- {shlex.quote(serve)}
            for path in one two; do
                tmux-debug send web "$path" Enter
            done
            tmux-debug send web boom Enter --wait-for boom >/dev/null
            tmux-debug capture web --pattern 'served b' | grep -c boom
            tmux-debug run 'echo in a pane of its own; exit 7' || echo "code $?"
            tmux-debug kill web
        """

        output, facts = ran(server, script)

        assert output.splitlines() == [
            "ready",
            "served one",
            "served two",
            "1",
            "in a pane of its own",
            "code 7",
        ]
        assert facts["exit_code"] == 0
        lines = [json.loads(line) for line in records.read_text().splitlines()]
        tools = [line["tool"] for line in lines]
        sent = ["send_keys"] * 3
        assert tools == ["create_pane", *sent, "capture_pane", "run", "kill_pane", "run"]
        assert [bool(line.get("caller")) for line in lines] == [True] * 7 + [False]
        assert not any("error" in line for line in lines)

    def test_refusal_is_a_line_and_an_exit_status(self, server: Server) -> None:
        output, _ = ran(
            server, "tmux-debug send nope x; echo $?; tmux-debug capture nope 2>/dev/null"
        )

        sentence = "Pane 'nope' not found. Use tmux-debug list to see active panes."
        assert output == f"tmux-debug: {sentence}\n125\n"

    @pytest.mark.parametrize("timeout", ["0.2", "0"])
    def test_step_that_was_not_sent_is_told(self, server: Server, timeout: str) -> None:
        server.call("create_pane", command="sleep 1000", name="busy")

        send = f"tmux-debug send busy one Enter two Enter --timeout {timeout}"
        output, _ = ran(server, f"{send}; echo $?")

        told, status = output.splitlines()[-2:]
        assert told.startswith("Sent 1 of 4 steps to pane 'busy' (")
        assert "is not reading input" in told
        assert status == "1"

    def test_end_of_a_program_is_told(self, server: Server) -> None:
        server.call("create_pane", command="read x; exit 3", name="asks")

        output, _ = ran(server, "tmux-debug send asks x; tmux-debug send asks y Enter")
        waited, _ = ran(server, "tmux-debug wait asks | cat")

        assert re.fullmatch(r"x\nx?y\n\[debug-1 asks exited with code 3 after .*\]\n", output)
        assert waited.splitlines()[-1].startswith("[debug-1 asks exited with code 3 after ")

    def test_status_goes_where_standard_error_is_sent(self, server: Server, tmp_path: Path) -> None:
        script = "tmux-debug run 'echo out' 2>status; echo; cat status"
        output, _ = ran(server, script, cwd=str(tmp_path))

        out, status = output.split("\n\n")
        assert out == "out"
        assert status.startswith("[debug-2 exited with code 0 ")

    def test_what_a_script_is_shown_is_new_to_the_client(self, server: Server) -> None:
        server.call("create_pane", command=UI, name="ui", timeout_s=0)
        script = """
            tmux-debug wait ui
            tmux-debug send ui x | grep -c two
        """
        assert ran(server, script)[0] == f"{SCREEN}0\n"

        assert server.call("wait", pane_id="ui")["content"][0]["text"] == f"{SCREEN}1 x"
        # The script of another run is another caller.
        assert ran(server, "tmux-debug wait ui")[0] == f"{SCREEN}1 x\n"
        assert server.call("wait", pane_id="ui")["content"][0]["text"] == "[screen unchanged]"

    @pytest.mark.parametrize("shell_name", SHELLS)
    def test_verbs_of_a_script_are_one_caller_also_in_its_subshells(
        self, server: Server, tmp_path: Path, shell_name: str
    ) -> None:
        server.call("create_pane", command=UI, name="ui", timeout_s=0)
        in_parentheses = "begin; tmux-debug wait ui; true; end"
        loop = "for turn in 1 2; tmux-debug wait ui; end"
        if shell_name != "fish":
            in_parentheses = "(tmux-debug wait ui; true)"
            loop = "for turn in 1 2; do tmux-debug wait ui; done"
        script = tmp_path / "script"
        within = "echo $(tmux-debug wait ui)"
        lines = ["tmux-debug wait ui", f"{loop} | cat", in_parentheses, within, "true"]
        script.write_text("\n".join(lines))

        output, _ = ran(server, f"{SHELLS[shell_name]} {shlex.quote(str(script))}")

        assert output == SCREEN + "[screen unchanged]\n" * 4

    def test_end_of_a_run_is_told_once_to_the_client_and_to_a_script(self, server: Server) -> None:
        server.call("create_pane", command="bash --norc", name="sh", wait_for="\\$ ")
        server.call("run", pane_id="sh", command="read -r code; (exit $code)")
        script = """
            tmux-debug send sh 3 Enter
            for look in 1 2 3; do tmux-debug wait sh; done
        """
        output, _ = ran(server, f"{{ {script} }} 2>&1 | cat")
        assert output.count("run ended with code 3") == 1

        def status() -> str:
            return str(server.call("wait", pane_id="sh")["content"][-1]["text"])

        assert "; run ended with code 3; " in status()
        assert "run ended" not in status()

    def test_match_in_what_was_shown_says_how_old_it_is(self, server: Server) -> None:
        server.call("create_pane", command="echo up; cat", name="web", timeout_s=0)
        wait = "tmux-debug wait web --pattern up"

        output, _ = ran(server, f"{wait}; {wait} 2>&1 | cat")

        up, again, status = output.splitlines()
        assert (up, again) == ("up", "up")
        assert re.search(r"; matched output from \S+ s before this call; --since 4 for new", status)

    def test_start_in_a_pane_starts_nothing_and_names_its_server(
        self, shell: Shell, server: Server
    ) -> None:
        script = """
            cd /
            tmux-debug start; echo $?
            tmux-debug start --keep 2h >/dev/null; echo $?
            eval "$(tmux-debug start --export)"
            echo $TMUX_DEBUG_SERVER
            tmux-debug start --audit /nowhere; echo $?
        """

        said, *statuses, exported, named, refused, status = ran(server, script)[0].splitlines()

        assert said == f"Server {server.pid} is already running. It ends with its MCP client."
        assert (statuses, exported, named) == (["0", "0"], said, str(server.pid))
        assert refused.startswith(f"tmux-debug: Calls from here reach server {server.pid}, whose")
        assert status == "125"
        assert [running.pid for running in shell.servers()] == [server.pid]

    def test_development_server_that_a_script_starts_outlives_the_scripts_pane(
        self, shell: Shell, server: Server, tmp_path: Path
    ) -> None:
        (tmp_path / "project").mkdir()
        script = """
            cd project
            tmux-debug dev -- 'pwd; exec cat'
            tmux-debug create --name web 'exec cat'
            tmux-debug dev
            tmux-debug ps --names
        """

        output, facts = ran(server, script, cwd=str(tmp_path))

        project = f"{tmp_path}/project"
        assert output.splitlines() == [project, project, facts["pane_id"], "dev", "web"]
        server.call("kill_pane", pane_id=facts["pane_id"])
        for _ in range(21):  # more than are kept
            server.call("run", command="true")
        rows = json.loads(server.text("list_panes"))
        running = [row["name"] for row in rows if row["status"] == "running"]
        assert running == ["dev", "web"]
        assert [running.pid for running in shell.servers()] == [server.pid]

    def test_panes_of_a_script_have_its_environment_and_directory(self, server: Server) -> None:
        script = """
            export WHOSE='the script' PATH="/nowhere:$PATH" && cd /
            tmux-debug run 'echo $WHOSE; pwd; echo $PATH'; echo $PATH
            unset WHOSE
            tmux-debug run 'echo [$WHOSE]; echo $MCP_DEBUG_PANE'; echo $MCP_DEBUG_PANE
        """

        whose, cwd, path, own_path, unset, tag, own_tag = ran(server, script)[0].splitlines()

        assert (whose, cwd, unset) == ("the script", "/", "[]")
        assert path == own_path
        assert (tag.rpartition("/")[2], own_tag.rpartition("/")[2]) == ("debug-3", "debug-1")

    def test_json_is_whole(self, server: Server) -> None:
        output, _ = ran(server, "tmux-debug create --json true")

        assert json.loads(output)["content"][0]["text"].startswith("Created pane 'debug-2'")

    def test_pane_of_the_run_itself_is_read_but_takes_no_second_run(self, server: Server) -> None:
        server.call("create_pane", command="bash --norc", name="sh", wait_for="\\$ ")
        script = """
            echo begun
            tmux-debug capture sh --lines 1
            tmux-debug wait sh --pattern begun --since 0 --timeout 5 | tail -n1
            tmux-debug run --pane sh true; echo $?
            tmux-debug run true; echo $?
        """

        output, facts = ran(server, script, pane_id="sh")

        assert facts["exit_code"] == 0
        begun, captured, waited, refused, *statuses = output.splitlines()
        assert [begun, captured, waited] == ["begun"] * 3
        assert refused.startswith("tmux-debug: Pane 'sh' is busy: ")
        assert statuses == ["125", "0"]
        assert ran(server, "echo usable", pane_id="sh")[0] == "usable\n"

    def test_program_is_behind_all_else_on_path_also_where_a_call_gives_one(
        self, shell: Shell, server: Server
    ) -> None:
        [running] = shell.servers()
        programs = f"{running.directory}/bin"

        assert ran(server, "echo $PATH; command -v tmux-debug")[0].splitlines() == [
            f"{shell.env['PATH']}:{programs}",
            f"{programs}/tmux-debug",
        ]
        server.call("create_pane", command="echo $PATH", name="own", env={"PATH": "/bin:/usr/bin"})
        server.shows("own", f"/bin:/usr/bin:{programs}")
        assert os.stat(programs).st_mode & 0o777 == 0o700
        assert os.stat(f"{programs}/tmux-debug").st_mode & 0o777 == 0o700

    def test_path_that_is_not_set_is_what_tmux_makes_of_it(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        server = launch("--drop-env", "TMUX*,PATH")

        [running] = [one for one in shell.servers() if one.pid == server.pid]
        assert (
            ran(server, "env | grep ^PATH=")[0] == f"PATH=/usr/bin:/bin:{running.directory}/bin\n"
        )

    def test_pane_calls_its_own_server_also_by_a_program_of_the_user(
        self, shell: Shell, server: Server, launch: Callable[..., Server], on_path: Path
    ) -> None:
        launch("--env", "A=other")
        shell.env["PATH"] = f"{on_path}:{shell.env['PATH']}"
        third = launch("--env", "A=third")
        name_all = "tmux-debug create --name $A-pane true; tmux-debug ps --names"

        assert ran(server, "A=first; " + name_all)[0] == "debug-1\nfirst-pane\n"
        assert ran(third, name_all)[0] == "debug-1\nthird-pane\n"
        assert ran(third, "command -v tmux-debug")[0] == f"{on_path}/tmux-debug\n"

    def test_server_that_the_shell_of_the_client_calls_is_not_told_to_panes(
        self, shell: Shell, server: Server, launch: Callable[..., Server]
    ) -> None:
        shell.env["TMUX_DEBUG_SERVER"] = str(server.pid)
        other = launch("--drop-env", "NOTHING")

        assert ran(other, "tmux-debug ps --names; echo $TMUX_DEBUG_SERVER")[0] == "debug-1\n\n"


def test_panes_of_a_detached_server_call_it(shell: Shell) -> None:
    shell.out("start")

    out = shell.out("run", "tmux-debug create --name web 'echo up; cat'; tmux-debug ps --names")

    assert out.splitlines() == ["up", "debug-1", "web"]


def test_server_that_a_client_in_a_pane_keeps_ends_with_the_pane(shell: Shell) -> None:
    (shell.cwd / "other" / ".git").mkdir(parents=True)
    client = f"sleep 1000 | {shlex.join(SERVER)} --keep 60m | cat"
    shell.out("create", "--name", "agent", "--cwd", "other", "--timeout", "0", client)
    [own] = shell.servers()
    ask_until(lambda: {one.cwd for one in shell.servers()}, lambda cwds: len(cwds) == 2)

    shell.out("kill", "agent")

    assert [one.pid for one in shell.servers()] == [own.pid]


def test_calls_of_panes_do_not_keep_a_detached_server(shell: Shell, tmp_path: Path) -> None:
    called = tmp_path / "called"
    loop = f"while tmux-debug list >/dev/null; do echo >>{shlex.quote(str(called))}; done"
    shell.out("create", "--timeout", "0", loop)
    wait_until(called.exists)

    shell.out("start", "--keep", "1s")

    ask_until(shell.left, lambda left: left == [])


def test_program_runs_wherever_interpreter_and_package_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / 'it\'s "odd" $HOME é'
    odd.mkdir()
    (odd / "python").symlink_to(os.path.realpath(sys.executable))
    package = Path(__file__).parents[2] / "tmux_debug_mcp"
    (odd / "tmux_debug_mcp").symlink_to(package)
    monkeypatch.setattr(sys, "executable", str(odd / "python"))
    monkeypatch.setattr("tmux_debug_mcp.sockets.inside._ROOT", str(odd))
    monkeypatch.setattr(sys, "path", ["", *(one for one in sys.path if "site-packages" not in one)])
    (tmp_path / "json.py").write_text("raise SystemExit('not ours')")

    programs = add_program(str(tmp_path))

    env = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"}
    done = subprocess.run(
        [f"{programs}/tmux-debug", "--version"],
        env=env,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.stdout.startswith("tmux-debug ")


def test_program_runs_where_files_of_the_runtime_directory_can_not(
    tmp_path: Path, short_path: Path, environment: dict[str, str]
) -> None:
    """A mount with noexec, as hardened systems have it, which only this script's processes see."""
    program = Path(sys.executable).with_name("tmux-debug")
    script = f"""
        mount -t tmpfs -o noexec,mode=700 none "$XDG_RUNTIME_DIR" || exit 42
        {program} run 'tmux-debug run "echo inner"'
        {program} stop
    """
    as_root = ["--map-root-user"] if os.getuid() else []
    done = subprocess.run(
        ["unshare", "--mount", *as_root, "sh", "-c", script],
        env=environment | {"XDG_RUNTIME_DIR": str(short_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or done.returncode == 42:
        pytest.skip("nothing can be mounted here")
    assert done.stdout.splitlines()[0] == "inner"
    assert done.returncode == 0


def test_server_that_can_not_have_a_program_to_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoExec:
        f_flag = os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda _path: NoExec)

    with pytest.raises(OSError, match="is mounted with noexec"):
        add_program(str(tmp_path))
    assert not list(tmp_path.iterdir())
