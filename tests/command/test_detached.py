"""Detached servers: what outlives a client, for how long, and that nothing is left after it."""

import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support import Gate, ask_until, marked, wait_until
from wire import SERVER, Server

from tmux_debug_mcp.command import local
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.sockets import servers
from tmux_debug_mcp.sockets.choosing import CHANGES, NoServerError, Surroundings, meant
from tmux_debug_mcp.sockets.connection import Connection
from tmux_debug_mcp.verbs.registry import VERBS

from .conftest import PROGRAM, Shell


def lists(shell: Shell, *at: str) -> list[dict[str, object]]:
    """Return the panes of the only server."""
    panes: list[dict[str, object]] = json.loads(shell.out(*at, "list"))
    return panes


def test_server_is_started_once_for_a_directory(shell: Shell, tmp_path: Path) -> None:
    assert shell.out("start").startswith("Started server ")
    assert "is already running" in shell.out("start")
    [server] = shell.servers()
    assert server.cwd == str(tmp_path)

    (tmp_path / "other" / ".git").mkdir(parents=True)
    other = replace(shell, cwd=tmp_path / "other")
    other.out("start")
    other.out("start", "--toolsets", "tabs")

    assert len(shell.servers()) == 3


def test_start_changes_the_time_of_a_server_that_runs(shell: Shell) -> None:
    shell.out("start", "--keep", "1m")
    [server] = shell.servers()
    runs = f"Server {server.pid} is already running."

    assert shell.out("start") == f"{runs}\n"
    assert shell.out("start", "--keep", "2h") == f"{runs} It ends after 2h without use.\n"
    assert shell.out("start", "--keep", "120m") == f"{runs}\n"
    assert shell.out("start", "--keep", "90") == f"{runs} It ends after 90s without use.\n"
    assert shell.out("start", "--keep", "2h") == f"{runs} It ends after 2h without use.\n"
    assert [one.keep_s for one in shell.servers()] == [7200]
    assert shell.run("start", "--keep", "5w").stderr.startswith("tmux-debug: --keep (TMUX_DEBUG_")

    shell.out("start", "--keep", "1s")
    ask_until(shell.left, lambda left: left == [])


def test_start_without_options_means_the_server_of_the_directory(shell: Shell) -> None:
    shell.out("start", "--audit", "audit.log")
    [server] = shell.servers()

    assert shell.out("start", "--keep", "2h") == (
        f"Server {server.pid} is already running. It ends after 2h without use.\n"
    )
    assert [one.pid for one in shell.servers()] == [server.pid]


def test_server_of_a_directory_that_is_named_is_started_once(shell: Shell, tmp_path: Path) -> None:
    shell.out("start")
    [here] = shell.servers()
    (tmp_path / "other" / ".git").mkdir(parents=True)

    said = shell.out("start", "--cwd", "other")
    [other] = [one for one in shell.servers() if one.pid != here.pid]

    assert said == f"Started server {other.pid}. It ends after 60m without use.\n"
    runs = f"Server {other.pid} is already running.\n"
    assert replace(shell, cwd=tmp_path / "other").out("start") == runs
    assert shell.out("start", "--cwd", str(tmp_path / "other")) == runs
    assert shell.run("start", "--cwd", "~/other", HOME=str(tmp_path)).stdout == runs


def test_second_server_of_a_directory_is_said_to_be_one(shell: Shell) -> None:
    shell.out("start")
    [server] = shell.servers()

    said = shell.out("start", "--audit", "audit.log")

    [other] = [one for one in shell.servers() if one.pid != server.pid]
    assert said == (
        f"Started server {other.pid}. It ends after 60m without use. Name it in each call, such "
        f"as: tmux-debug --server {other.pid} list\n"
    )


@pytest.fixture
def other(shell: Shell, tmp_path: Path) -> Shell:
    """Return a shell in another project."""
    (tmp_path / "other" / ".git").mkdir(parents=True)
    return replace(shell, cwd=tmp_path / "other")


def test_start_means_the_server_that_is_named(shell: Shell, other: Shell) -> None:
    shell.out("start")
    [server] = shell.servers()
    pid = str(server.pid)

    assert other.out("--server", pid, "start") == f"Server {pid} is already running.\n"
    changed = other.run("start", "--keep", "2h", TMUX_DEBUG_SERVER=pid, TMUX_DEBUG_AUDIT="audit")
    assert changed.stdout == f"Server {pid} is already running. It ends after 2h without use.\n"
    refused = other.run("--server", pid, "start", "--audit", "audit.log")
    assert refused.stderr.startswith(f"tmux-debug: Calls from here reach server {pid}, whose ")
    gone = other.run("start", TMUX_DEBUG_SERVER="1")
    assert gone.stderr.startswith("tmux-debug: There is no server '1'. Running:\n")
    assert (refused.returncode, gone.returncode) == (125, 125)
    assert [(one.pid, one.keep_s) for one in shell.servers()] == [(server.pid, 7200)]


def test_start_means_the_server_that_verbs_reach(
    shell: Shell, launch: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "below").mkdir()
    shell.out("start")
    [server] = shell.servers()

    assert replace(shell, cwd=tmp_path / "below").out("start") == (
        f"Server {server.pid} is already running.\n"
    )
    agents = launch()  # which the verbs of its shell reach
    runs = f"Server {server.pid} is already running. Name it in each call, such as: tmux-debug"
    assert shell.out("start") == f"{runs} --server {server.pid} list\n"
    named = f"Server {agents.pid} is already running. It ends with its MCP client.\n"
    assert shell.out("--server", str(agents.pid), "start", "--keep", "2h") == named
    assert len(shell.servers()) == 2


@pytest.mark.parametrize(
    "words",
    [["run", "true"], ["create", "cat"], ["dev", "--", "echo up; exec cat"], ["start"]],
    ids=lambda words: words[0],
)
def test_this_directory_is_the_callers_whatever_servers_are_told(
    shell: Shell, other: Shell, words: list[str]
) -> None:
    shell.env["TMUX_DEBUG_CWD"] = str(other.cwd)

    shell.out(*words)

    [server] = shell.servers()
    assert server.cwd == str(shell.cwd)
    assert shell.run("list").returncode == 0
    assert shell.out("start") == f"Server {server.pid} is already running.\n"
    assert replace(other, env=shell.env).run("list").returncode == 125


def test_server_that_was_killed_serves_nothing(shell: Shell) -> None:
    shell.out("start")
    [killed] = shell.servers()
    os.kill(killed.pid, signal.SIGKILL)
    ask_until(lambda: servers.is_held(killed.directory), lambda lives: not lives)

    said = shell.out("start", "--audit", "audit.log")

    assert said.endswith("It ends after 60m without use.\n")


def test_help_among_short_flags_starts_no_server(shell: Shell) -> None:
    for words in (["wait", "-qh"], ["create", "-qh", "x"]):
        assert shell.out(*words).startswith(f"usage: tmux-debug {words[0]}")
    assert shell.left() == []


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", ""],
        ["run", "--timeout", "nan", "true"],
        ["run", "--pane", "nope", "true"],
        ["create", "--bogus", "true"],
        ["create", "--name", "debug-1", "true"],
        ["create", "--env", "X", "true"],
        ["create", "--size", "80", "true"],
        ["create", "--wait-for", "(", "true"],
        ["run", "--show", r"a\nb", "true"],
        ["create", "--cwd", "/nonexistent", "true"],
        ["kill", "one", "two"],
        ["wait"],
        ["call"],
        ["dev"],
        ["dev", "--port", "5173"],
        ["dev", "--restart"],
        ["dev", "--", ""],
        ["dev", "--name", "debug-1", "--", "true"],
        ["dev", "--name", "", "--", "true"],
        ["dev", "--port", "65536", "--", "true"],
        ["start", "--keep", "5w"],
        ["capture", "web"],
        ["restart", "web"],
    ],
    ids=" ".join,
)
def test_wrong_words_start_no_server(shell: Shell, words: list[str]) -> None:
    done = shell.run(*words)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("tmux-debug: ")
    assert shell.left() == []


def run_where_it_is_gone(shell: Shell, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a directory `gone` that is removed before."""
    return shell.by_sh(f"mkdir gone && cd gone && rmdir ../gone && exec {shlex.join(words)}")


def test_directory_that_is_gone_is_named(shell: Shell, tmp_path: Path) -> None:
    for verb in VERBS:
        done = run_where_it_is_gone(shell, *PROGRAM, verb, "web")

        assert (done.returncode, done.stdout) == (125, "")
        gone = f"The current directory is gone: {tmp_path}/gone. Run this from another one."
        assert done.stderr == f"tmux-debug: {gone}\n"
    assert shell.left() == []


def test_directory_whose_path_is_not_utf_8_is_only_for_verbs_that_need_none(
    shell: Shell, tmp_path: Path
) -> None:
    odd = tmp_path / os.fsdecode(b"\xff")
    odd.mkdir()

    for words in (["list"], ["dev", "--", "true"], ["create", "true"]):
        done = shell.by_person(*words, cwd=odd)
        assert done.returncode == 125
        assert done.stderr.startswith("tmux-debug: The path of the current directory is not UTF-8.")
    assert shell.left() == []
    assert shell.by_person("ps", cwd=odd).returncode == 0


@pytest.mark.parametrize("options", [[], ["--keep", "60m"], ["--cwd", "x"], ["--audit", "x"]])
def test_server_does_not_start_in_a_directory_that_is_gone(
    shell: Shell, tmp_path: Path, options: list[str]
) -> None:
    done = run_where_it_is_gone(shell, *SERVER, *options)

    assert done.returncode == 1
    gone = f"tmux-debug-mcp: The current directory is gone: {tmp_path}/gone. "
    assert (done.stderr.startswith(gone), done.stderr.count("\n")) == (True, 1)


def test_call_without_a_directory_names_that_of_the_server_if_it_is_gone(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "worktree").mkdir()
    server = launch(cwd=tmp_path / "worktree")
    (tmp_path / "worktree").rmdir()

    for tool in ("create_pane", "run"):
        answer = server.call(tool, command="true")
        assert answer["isError"]
        [block] = answer["content"]
        assert f"gone: {tmp_path}/worktree. Make it again, or give " in block["text"]
    assert not server.call("run", command="true", cwd=str(tmp_path)).get("isError")


def test_directory_made_anew_at_the_same_path_gets_a_server_of_its_own(
    shell: Shell, tmp_path: Path
) -> None:
    worktree = tmp_path / "worktree"
    (worktree / ".git").mkdir(parents=True)
    anew = replace(shell, cwd=worktree)
    assert anew.out("dev", "--", "echo old; exec cat") == "old\n"
    [old] = shell.servers()
    shutil.rmtree(worktree)
    (worktree / ".git").mkdir(parents=True)

    assert "'dev' is not running for this directory." in anew.run("dev").stderr
    assert anew.run("list").returncode == 125
    here = Surroundings("", [], [servers.inode_of(str(worktree))])
    with pytest.raises(NoServerError, match=f": {old.pid} \\({worktree}, which is gone\\)$"):
        meant([old], here, CHANGES, lambda _server: 0)
    assert f"{worktree}, which is gone" in shell.out("ps")
    assert anew.out("dev", "--", "pwd -P; exec cat") == f"{worktree}\n"
    assert anew.out("run", "cat /proc/self/cwd/.git 2>&1 | cut -d: -f3") == " Is a directory\n"
    assert anew.out("start").startswith("Server ")
    assert sorted(one.cwd for one in shell.servers()) == [str(worktree)] * 2
    assert shell.out("--server", str(old.pid), "stop")


@pytest.mark.parametrize("verb", ["create", "run"])
def test_first_verb_starts_a_server(shell: Shell, verb: str) -> None:
    assert "hello" in shell.out(verb, "echo hello")

    assert len(shell.servers()) == 1


def test_starts_at_once_make_one_server(shell: Shell) -> None:
    starting = [shell.start("start") for _ in range(8)]
    done = [process.communicate() for process in starting]

    assert [process.returncode for process in starting] == [0] * 8, done
    assert len(shell.servers()) == 1


# Claims a directory, with a delay before each system call, and prints whether it got it.
CLAIMANT = """
import os, random, sys, time

def late(function):
    def call(*arguments, **options):
        time.sleep(random.choice([0, 0, 0.001, 0.003]))
        return function(*arguments, **options)
    return call

from tmux_debug_mcp.sockets import listener
for name in ("chmod", "lstat", "mkdir", "open", "rename", "rmdir", "unlink"):
    setattr(os, name, late(getattr(os, name)))
for directory in sys.stdin:
    claimed = listener.claim(directory.strip())
    print(int(claimed is not None), flush=True)
    sys.stdin.readline()  # the others are done
    if claimed:
        claimed._socket.close()  # as if it was killed
        os.close(claimed._lock)
"""


def test_of_many_claims_of_the_directory_of_a_killed_server_one_succeeds(short_path: Path) -> None:
    claimants = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMANT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    directory = short_path / "tmux-debug-0123456789abcdef"

    def tell(line: str) -> None:
        for claimant in claimants:
            assert claimant.stdin
            claimant.stdin.write(f"{line}\n")
            claimant.stdin.flush()

    def answers() -> list[str]:
        return [claimant.stdout.readline() for claimant in claimants if claimant.stdout]

    for _ in range(60):
        tell(str(directory))
        assert sorted(answers()) == ["0\n"] * 5 + ["1\n"]
        assert [path.name for path in short_path.iterdir()] == [directory.name]
        Connection(f"{directory}/socket").close()
        tell("")
        ask_until(lambda: servers.is_held(str(directory)), lambda is_held: not is_held)
        os.utime(directory, (0, 0))
    for claimant in claimants:
        claimant.communicate()
        assert claimant.returncode == 0


def test_server_starts_though_whoever_started_it_is_killed(shell: Shell, tmp_path: Path) -> None:
    gate, asked, tmux = (tmp_path / name for name in ("gate", "asked", "tmux"))
    os.mkfifo(gate)
    tmux.write_text(
        f'#!/bin/sh\n[ -p {gate} ] && touch {asked} && read -r _ < {gate}\nexec tmux "$@"\n'
    )
    tmux.chmod(0o755)
    starting = shell.start("start", "--tmux", str(tmux))
    wait_until(asked.exists)
    starting.kill()
    starting.communicate()

    with gate.open("w"):
        gate.unlink()
    ask_until(shell.servers, bool)

    assert "is already running" in shell.out("start", "--tmux", str(tmux))
    assert shell.out("run", "echo on") == "on\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--keep", "5w"], "--keep (TMUX_DEBUG_KEEP) is '5w'. Give a time such as 90s, 60m, 2h"),
        (["--keep", "0"], "--keep (TMUX_DEBUG_KEEP) is '0'."),
        (["--keep", "31d"], "--keep (TMUX_DEBUG_KEEP) is '31d'."),
        (["--cwd", "/no/such"], "--cwd (TMUX_DEBUG_CWD) is '/no/such', which is not a directory"),
        (["--nope"], "Option '--nope' is unknown."),
    ],
)
def test_server_that_can_not_start_says_why(shell: Shell, words: list[str], complaint: str) -> None:
    done = shell.run("start", *words)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"tmux-debug: {complaint}")
    assert shell.left() == []


def test_server_ends_with_everything_when_nobody_has_used_it_for_its_time(
    shell: Shell, census: str
) -> None:
    shell.out("create", "sleep 1000")
    begin = time.monotonic()
    shell.out("start", "--keep", "2s")

    ask_until(lambda: [*shell.left(), *marked(census)], lambda left: left == [])

    assert time.monotonic() - begin >= 2


def test_server_does_not_end_while_a_caller_waits(shell: Shell, gate: Gate) -> None:
    shell.out("start")
    waiting = shell.start("create", "--wait-for", "up", f"cat {gate}; sleep 3; echo up")
    ask_until(lambda: shell.out("list"), lambda listed: "debug-1" in listed)
    shell.out("start", "--keep", "1s")
    wait_until(gate.opens)  # and three times as long passes

    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, "up\n" in out) == (0, True), err


def test_stop_takes_everything_before_it_says_so(shell: Shell, census: str) -> None:
    shell.out("create", "trap '' HUP TERM; sleep 1000; sleep 1000")
    [server] = shell.servers()

    assert shell.out("stop").startswith(f"Stopped server {server.pid} ")

    assert [*shell.left(), *marked(census)] == []
    # The kernel closes its connections a moment before a process that exits is a zombie.
    wait_until(lambda: not processes.is_alive(server.pid))


def test_stop_says_whose_panes_it_ends(shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else\twhere"
    elsewhere.mkdir()
    shell.out("start")
    [server] = shell.servers()
    told = f"Stopped server {server.pid} of {shell.cwd}, "
    shell.run("run", "exit 3")
    shell.run("create", "exit 4")
    assert shell.out("stop") == f"{told}in which nothing ran.\n"

    for words in (["--name", "web", "cat"], ["--cwd", str(elsewhere), "cat"]):
        shell.out("create", *words)
    shell.out("run", "sleep 1000 & echo left")
    [server] = shell.servers()
    told = f"Stopped server {server.pid} of {shell.cwd}, and everything in its panes: "
    place = str(elsewhere).replace("\t", r"\t")
    assert shell.out("stop") == f"{told}web, debug-2 ({place}), debug-3.\n"


def test_stop_of_many_panes_names_the_oldest(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "_MAX_PANES", 1)
    monkeypatch.chdir(shell.cwd)
    for name in ("one", "two", "three"):
        shell.out("create", "--name", name, "cat")

    assert local.stop([], shell.env) == 0
    assert capfd.readouterr().out.endswith(" in its panes: one and 2 more.\n")


def test_stop_in_a_pane_ends_no_server_of_another_directory(shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    shell.out("create", "--name", "sh", "--cwd", str(elsewhere), "bash --norc")
    [server] = shell.servers()

    assert shell.out("run", "--pane", "sh", "tmux-debug stop; echo $?") == (
        f"tmux-debug: Server {server.pid} is of another directory, {shell.cwd}. To end it now: "
        f"tmux-debug --server {server.pid} stop\n125\n"
    )
    assert shell.servers()
    shell.run("run", "--pane", "sh", f"tmux-debug --server {server.pid} stop")
    ask_until(shell.servers, lambda left: left == [])


def test_signal_ends_a_detached_server_with_everything(shell: Shell, census: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        shell.out("create", "sleep 1000")
        [server] = shell.servers()

        os.kill(server.pid, number)

        ask_until(lambda: [*shell.left(), *marked(census)], lambda left: left == [])


def test_killed_server_leaves_no_process_and_is_replaced(shell: Shell, census: str) -> None:
    shell.out("create", "sleep 1000")
    [server] = shell.servers()

    os.kill(server.pid, signal.SIGKILL)

    ask_until(lambda: list(marked(census)), lambda left: left == [])
    ask_until(shell.left, lambda left: left == [])
    assert shell.out("run", "echo on") == "on\n"
    assert [one.pid for one in shell.servers()] != [server.pid]


def test_caller_that_does_not_wait_for_its_answer_ends_nothing(shell: Shell) -> None:
    shell.out("create", "--name", "kept", "sleep 1000")
    [server] = shell.servers()

    for _ in range(20):
        caller = Connection(server.socket)
        caller.send({"want": "verb", "words": ["list"], "cwd": "/"})
        caller.close()

    assert [pane["name"] for pane in lists(shell)] == ["kept"]


def test_start_prints_a_line_by_which_a_shell_names_the_server(
    shell: Shell, tmp_path: Path, on_path: Path
) -> None:
    (tmp_path / "other" / ".git").mkdir(parents=True)
    in_other = replace(shell, cwd=tmp_path / "other")
    for one in (shell, in_other):
        one.out("start")
    script = 'cd other; eval "$(tmux-debug start --export)"; cd ..; tmux-debug ps --names'
    in_other.out("create", "--name", "there", "cat")
    done = shell.by_sh(script, PATH=f"{on_path}:{shell.env['PATH']}")

    assert (done.returncode, done.stdout) == (0, "there\n")
    assert "is already running." in done.stderr


def test_detached_server_has_nothing_of_its_caller(shell: Shell) -> None:
    """Neither its terminal and session, nor its files: a caller waits for their end."""
    reading, writing = os.pipe()
    subprocess.run(
        [*PROGRAM, "start"], env=shell.env, cwd=shell.cwd, pass_fds=[writing], check=True
    )
    os.close(writing)

    assert os.read(reading, 1) == b""
    [server] = shell.servers()
    assert os.getsid(server.pid) != os.getsid(0)
    os.close(reading)


class TestKeep:
    """`tmux-debug-mcp --keep`: panes outlive the client, and a client that comes back has them."""

    def test_client_that_comes_back_finds_its_panes(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        first = launch("--keep", "60s")
        first.call("create_pane", command="cat", name="c")
        first.call("send_keys", pane_id="c", keys="hello Enter")
        before = json.loads(first.text("list_panes"))
        assert first.finish()[1] == b""

        second = launch("--keep", "60s")

        assert json.loads(second.text("list_panes"))[0]["cursor"] == before[0]["cursor"]
        assert second.text("capture_pane", pane_id="debug-1", since=0) == "hello\nhello\n"
        assert lists(shell)[0]["name"] == "c"

    def test_without_keep_nothing_outlives_the_client(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        server = launch()
        server.call("create_pane", command="cat")
        server.finish()

        assert shell.left() == []

    def test_two_clients_share_one_server(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        one, other = launch("--keep", "60s"), launch("--keep", "60s")
        one.call("create_pane", command="cat", name="c")

        other.call("send_keys", pane_id="c", keys="from the other Enter")

        assert "from the other" in one.text("capture_pane", pane_id="c")
        assert len(shell.servers()) == 1

    def test_other_options_and_directories_have_servers_of_their_own(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        launch("--keep", "60s")
        launch("--keep", "60s", "--toolsets", "tabs")

        assert len(shell.servers()) == 2

    def test_call_that_is_cut_is_cancelled_and_the_pane_stays(
        self, launch: Callable[..., Server]
    ) -> None:
        first = launch("--keep", "60s")
        first.call("create_pane", command="cat", name="c")
        first.send("tools/call", name="tmux_wait", arguments={"pane_id": "c", "pattern": "x"})
        first.process.kill()

        second = launch("--keep", "60s")

        assert "awaits input" in second.call("wait", pane_id="c")["content"][-1]["text"]

    def test_client_learns_that_the_server_was_killed(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        client = launch("--keep", "60s")
        [server] = shell.servers()

        os.kill(server.pid, signal.SIGKILL)

        assert client.process.wait(60) == 1
        assert client.finish()[1] == (
            b"tmux-debug-mcp: The detached server has ended, and its panes with it.\n"
        )

    def test_client_whose_streams_fail_is_told_and_harms_nobody(self, shell: Shell) -> None:
        """This standard input can't be read."""
        shell.out("start")
        unreadable = os.open(os.devnull, os.O_WRONLY)
        relay = subprocess.run(
            [*SERVER, "--keep", "60m"],
            env=shell.env,
            cwd=shell.cwd,
            stdin=unreadable,
            capture_output=True,
            text=True,
            check=False,
        )
        os.close(unreadable)

        assert (relay.returncode, relay.stderr) == (
            125,
            (
                "tmux-debug: The server could not do this: OSError(9, 'Bad file descriptor'). "
                "It keeps running.\n"
            ),
        )
        [state] = Path(shell.env["HOME"]).glob(".local/state/tmux-debug-mcp")
        assert "Bad file descriptor" in (state / "errors.log").read_text()
        assert shell.out("run", "echo on") == "on\n"
        assert len(shell.servers()) == 1

    def test_killed_clients_lose_nothing(self, shell: Shell, launch: Callable[..., Server]) -> None:
        """Each client is killed within a call, at a moment that nobody chose."""
        count = 60
        first = launch("--keep", "60s")
        first.call("create_pane", command="cat", name="log")
        moments = random.Random(1)  # noqa: S311
        for number in range(count):
            client = launch("--keep", "60s")
            client.send(
                "tools/call",
                name="tmux_send_keys",
                arguments={"pane_id": "log", "keys": f"line {number} Enter"},
            )
            time.sleep(moments.uniform(0, 0.02))
            client.process.kill()
            client.process.wait()

        first.call("wait", pane_id="log", idle_s=0.5)

        def look() -> tuple[str, dict[str, object]]:
            return first.text("capture_pane", pane_id="log", since=0), lists(shell)[0]

        # On a busy machine, the last line may still come between the two.
        text, row = ask_until(
            look, lambda seen: seen[1]["cursor"] == len(seen[0].replace("\n", "\r\n"))
        )

        # Whatever was typed is there, in order, each line of it once typed and once printed.
        typed = [line for line in text.splitlines() if line.startswith("line ")]
        assert typed == sorted(typed, key=lambda line: int(line.split()[1]))
        assert (row["id"], row["status"]) == ("debug-1", "running")


def test_other_version_has_a_server_of_its_own_beside_the_old_one(shell: Shell) -> None:
    shell.out("create", "--name", "old", "cat")
    upgraded = PROGRAM[2].replace(
        "from", "import tmux_debug_mcp; tmux_debug_mcp.__version__ = '9.9.9'; from", 1
    )

    def run(program: str, *words: str) -> str:
        command = [PROGRAM[0], "-c", program, *words]
        return subprocess.run(
            command,
            env=shell.env,
            cwd=shell.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    [first] = shell.servers()
    version = f"It has version {first.version}, and this is 9.9.9."
    assert run(upgraded, "start") == f"Server {first.pid} is already running. {version}\n"
    run(upgraded.replace("command.main", "command.serve"), "--keep", "60m")

    old, new = sorted(shell.servers(), key=lambda server: server.version)
    assert (old.cwd, new.version) == (new.cwd, "9.9.9")
    # Both are reached by either command.
    assert lists(shell, "--server", str(old.pid))[0]["name"] == "old"
    assert lists(shell, "--server", str(new.pid)) == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_server_that_ends_leaves_its_successor_alone(shell: Shell, end: int) -> None:
    """The directory of the first was removed, so that the next start has the same path."""
    shell.out("create", "sleep 1000")
    [first] = shell.servers()
    client = Connection(first.socket)
    client.send({"want": "verb", "words": ["wait", "debug-1"], "cwd": "/"})
    shutil.rmtree(first.directory)
    shell.out("create", "--name", "kept", "sleep 1000")
    [second] = shell.servers()
    assert (second.directory, second.pid != first.pid) == (first.directory, True)

    os.kill(first.pid, end)
    assert list(client.messages()) == []
    client.close()
    ask_until(lambda: Path(f"/proc/{first.pid}").exists(), lambda there: not there)

    assert [pane["name"] for pane in lists(shell)] == ["kept"]


def test_server_whose_directory_is_removed_ends_when_its_time_is_over(
    shell: Shell, census: str
) -> None:
    """As at a logout, where the runtime directory goes."""
    shell.out("start", "--keep", "2s")
    shell.out("create", "sleep 1000")
    [server] = shell.servers()

    shutil.rmtree(server.directory)

    assert shell.run("list").returncode == 125
    ask_until(lambda: list(marked(census)), lambda left: left == [])


def test_old_directory_of_a_killed_server_does_not_hinder_the_next(shell: Shell) -> None:
    shell.out("start")
    [server] = shell.servers()
    os.kill(server.pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        ask_until(lambda: Path(f"/proc/{server.pid}").exists(), lambda there: not there)

    assert "Started" in shell.out("start")


def test_squatted_directory_is_not_used(shell: Shell) -> None:
    shell.out("start")
    [server] = shell.servers()
    name = Path(server.directory)
    shell.out("stop")
    ask_until(shell.left, lambda left: left == [])
    name.mkdir(mode=0o755)
    name.chmod(0o755)
    (name / "socket").touch()

    assert shell.out("start").startswith("Started")
