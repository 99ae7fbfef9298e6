"""`tmux-debug dev`: one development server for all who come to a directory; restart, resize."""

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from people import Person
from support import ask_until
from wire import Server

from .conftest import PROGRAM, Shell

UP = "echo up; exec cat"


def panes(shell: Shell) -> list[dict[str, object]]:
    text = shell.out("list", "--all")
    return list(json.loads(text)) if text.startswith("[") else []


@pytest.fixture
def sits(shell: Shell) -> Iterator[Callable[..., Person]]:
    """Return what makes a person call `tmux-debug`, in the directory of the shell."""
    people: list[Person] = []

    def sits(*words: str) -> Person:
        people.append(Person([*PROGRAM, *words], shell.env, shell.cwd))
        return people[-1]

    yield sits
    for person in people:
        person.close()


def test_of_many_who_come_at_once_one_starts_it_and_all_see_it(shell: Shell) -> None:
    callers = [shell.start("dev", "--", UP) for _ in range(20)]
    answers = [caller.communicate(timeout=60) for caller in callers]

    assert [caller.wait() for caller in callers] == [0] * 20, answers
    assert [out for out, _ in answers] == ["up\n"] * 20
    assert all("[debug-1 dev running " in err for _, err in answers)
    assert [pane["name"] for pane in panes(shell)] == ["dev"]


def test_who_comes_while_it_comes_up_sees_it_up(shell: Shell) -> None:
    first = shell.start("dev", "--", f"until [ -e go ]; do :; done; {UP}")
    ask_until(lambda: shell.run("list").stdout, lambda printed: '"dev"' in printed)
    second = shell.start("dev")

    def has_come() -> bool:
        """Tell whether it waits for the first one, or has ended."""
        names: list[str] = []
        with contextlib.suppress(OSError):
            names += map(os.readlink, Path(f"/proc/{second.pid}/fd").iterdir())
        return any(name.endswith("dev.lock") for name in names) or second.poll() is not None

    ask_until(has_come, bool)
    (shell.cwd / "go").touch()

    assert [caller.communicate(timeout=60)[0] for caller in (first, second)] == ["up\n"] * 2


def test_agent_and_person_share_it_whoever_has_started_it(
    shell: Shell, launch: Callable[..., Server], sits: Callable[..., Person]
) -> None:
    """Also where the agent's shell has a server of its own, which ends with the agent."""
    agents = launch()
    person = sits("dev", "--name", "web", "--", UP)
    person.sees("up")
    person.sees("you have the keyboard")
    person.types(b"by hand\r")

    out, err = ask_until(
        lambda: shell.start("dev", "--name", "web").communicate(timeout=60),
        lambda told: told[0].count("by hand") > 1,  # the echo, and the answer
    )

    assert (out, err.startswith("[debug-1 web running ")) == ("up\nby hand\nby hand\n", True)
    assert agents.text("list_panes").startswith("No active panes")
    assert person.leaves() == 0
    person.sees("'web' keeps running. To see it again: ")
    person.sees(" --server ")
    [detached] = [one for one in shell.servers() if one.keep_s is not None]
    assert shell.out("--server", str(detached.pid), "ps", "--names") == "web\n"


def test_agent_whose_server_is_kept_has_it_among_its_own_panes(
    shell: Shell, launch: Callable[..., Server]
) -> None:
    agent = launch("--keep", "60m", cwd=shell.cwd)

    shell.out("dev", "--name", "web", "--", UP)

    assert '"web"' in agent.text("list_panes")
    assert shell.out("wait", "web") == "up\n"
    assert len(shell.servers()) == 1


def test_pane_has_the_size_of_the_terminal_of_the_person_who_starts_it(
    sits: Callable[..., Person], shell: Shell
) -> None:
    person = sits("dev", "--", "bash --norc")
    person.sees("dev: you have the keyboard")
    assert person.leaves() == 0

    assert " screen 80x23, " in shell.run("capture", "dev", "--view", "screen").stderr


def test_person_who_comes_later_is_told_that_it_runs(
    shell: Shell, sits: Callable[..., Person]
) -> None:
    shell.out("dev", "--", UP)
    person = sits("dev", "--", UP)

    person.sees("'dev' is already running; nothing was started.")
    person.sees("you have the keyboard")
    assert person.leaves() == 0


def test_pane_has_a_terminal_and_nobody_at_it(shell: Shell, on_path: Path) -> None:
    shell.out("create", "--name", "sh", "bash --norc")

    out = shell.out(
        "run", "--pane", "sh", f"PATH={on_path}:$PATH tmux-debug dev -- '{UP}' 2>/dev/null"
    )

    assert out == "up\n"
    assert [pane["name"] for pane in panes(shell)] == ["sh", "dev"]


def test_person_sees_what_has_ended_at_once(sits: Callable[..., Person]) -> None:
    person = sits("dev", "--", "echo broken; exit 3")

    person.sees("broken")


def test_another_command_is_refused_unless_it_is_to_take_the_place(shell: Shell) -> None:
    shell.out("dev", "--", UP)

    done = shell.run("dev", "--", "echo other; exec cat")

    assert (done.returncode, done.stdout) == (125, "")
    assert f"is already running another command: {UP}. Give --restart" in done.stderr
    assert shell.out("dev", "--restart", "--", "echo other; exec cat") == "other\n"
    assert [pane["command"] for pane in panes(shell)] == ["echo other; exec cat"]
    long = f"echo long; exec cat # {'x' * 200}"
    for _ in range(2):
        assert shell.out("dev", "--name", "long", "--", long) == "long\n"
    assert (
        "is already running another command"
        in shell.run("dev", "--name", "long", "--", f"{long}y").stderr
    )


def test_all_words_of_the_command_are_its_own(shell: Shell) -> None:
    words = ["printf", "%s|", "npm", "--", "--port", "3000"]

    assert shell.run("dev", *words).stdout == "npm|--|--port|3000|\n"
    assert shell.run("dev", "--restart", "--", *words).stdout == "npm|--|--port|3000|\n"
    dashes = ["--", "-odd-", "--name", "x"]  # a program that there isn't
    assert "-odd-" in shell.run("dev", "--restart", *dashes).stdout


def test_one_that_has_ended_is_started_again(shell: Shell) -> None:
    assert shell.run("dev", "--", "echo one; exit 3").stdout == "one\n"
    assert "exited with code 3" in shell.run("dev").stderr  # the same command again
    assert shell.out("dev", "--", UP) == "up\n"
    assert shell.out("dev") == "up\n"
    assert [pane["status"] for pane in panes(shell)] == ["running", "exited"]


def test_named_server_has_that_of_another_directory(shell: Shell, tmp_path: Path) -> None:
    shell.out("dev", "--", UP)
    [server] = shell.servers()
    (tmp_path / "other" / ".git").mkdir(parents=True)
    other = replace(shell, cwd=tmp_path / "other")

    done = other.run("--server", str(server.pid), "dev", "--", UP)

    assert (done.returncode, done.stdout) == (125, "")
    assert f"'dev' is running for another directory: {tmp_path}." in done.stderr
    assert other.run("--server", "1", "dev", "--", UP).returncode == 125
    assert [one.pid for one in shell.servers()] == [server.pid]


def test_one_of_a_directory_that_was_made_anew_is_that_of_another(
    shell: Shell, tmp_path: Path
) -> None:
    """The server is of the directory above."""
    shell.out("start")
    below = tmp_path / "below"
    below.mkdir()
    in_below = replace(shell, cwd=below)
    in_below.out("dev", "--name", "old", "--", UP)
    in_below.run("dev", "--name", "ended", "--", "exit 3")
    below.rmdir()
    below.mkdir()

    done = in_below.run("dev", "--name", "old")
    ended = in_below.run("dev", "--name", "ended")

    place = f"{below} (deleted)"
    assert (done.returncode, done.stdout) == (125, "")
    assert f"'old' is running for another directory: {place}. Give another" in done.stderr
    assert "'ended' is not running for this directory." in ended.stderr
    assert in_below.out("dev", "--", "pwd -P; ls -d ../below/; exec cat").endswith("../below/\n")


def test_directories_have_one_each(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "other" / ".git").mkdir(parents=True)
    other = replace(shell, cwd=tmp_path / "other")
    shell.out("dev", "--", UP)

    sentence = (
        "'dev' is not running for this directory. Give its command: tmux-debug dev -- COMMAND"
    )
    assert other.run("dev").stderr == f"tmux-debug: {sentence}\n"
    assert other.out("dev", "--", "pwd; exec cat") == f"{other.cwd}\n"
    assert shell.out("dev") == "up\n"


SERVES = "python3 -u -m http.server --bind 127.0.0.1"


def test_port_is_waited_for_and_who_has_it_is_told(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = shell.run("dev", "--port", port, "--", f"{SERVES} {port}")
    done = shell.run("dev", "--port", port, "--", f"{SERVES} {port}")
    again = shell.run("dev", "--port", port)

    assert refused.returncode == 1
    assert f"port {port}: held by " in refused.stderr
    for one in (done, again):
        assert (one.returncode, f"listens 127.0.0.1:{port}" in one.stderr) == (0, True), one


def test_wrong_port_starts_nothing_at_a_server_that_runs(shell: Shell) -> None:
    shell.out("start")

    refused = shell.run("dev", "--port", "65536", "--", UP)

    assert (refused.returncode, panes(shell)) == (125, []), refused
    assert refused.stderr.startswith("tmux-debug: --port is 65536.")


def test_restart_starts_the_same_again(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    command = "stty size; pwd; echo $X; exec cat"
    started = ("--name", "web", "--cwd", "below", "--env", "X=1", "--size", "90x20", "--", command)
    out = shell.out("create", *started)

    done = shell.run("restart", "web", "--wait-for", "^1")

    assert (done.returncode, done.stdout) == (0, out)
    assert out == f"20 90\n{tmp_path}/below\n1\n"
    assert done.stderr.startswith("[debug-2 web running ")
    [row] = panes(shell)
    assert (row["name"], row["command"]) == ("web", command)


def test_restart_is_in_the_same_directory_where_a_link_is_left(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "there" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("there/below")
    out = shell.out("create", "--name", "web", "--cwd", "link/..", "--", "pwd -P; exec cat")

    assert shell.out("restart", "web", "--wait-for", "^/") == out == f"{tmp_path}\n"


def test_pane_that_can_not_be_made_again_is_left_as_it_is(shell: Shell, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    shell.out("create", "--name", "web", "--cwd", "below", UP)

    wrong = shell.run("restart", "web", "--wait-for", "(")
    below.rmdir()
    gone = shell.run("restart", "web")

    assert (wrong.returncode, gone.returncode) == (125, 125)
    assert wrong.stderr.startswith("tmux-debug: --wait-for is not an RE2 regular expression")
    assert f"The directory of pane 'web' is gone: {below}." in gone.stderr
    assert [(pane["id"], pane["status"]) for pane in panes(shell)] == [("debug-1", "running")]


def test_pane_of_a_client_is_restarted_in_the_servers_directory(
    shell: Shell, server: Server, tmp_path: Path
) -> None:
    server.call("create_pane", command="pwd; exec cat", name="web")

    assert replace(shell, cwd=tmp_path).out("restart", "web") == f"{Path.cwd()}\n"


def test_pane_that_has_ended_or_has_no_name_is_restarted_in_its_size(shell: Shell) -> None:
    shell.out("create", "cat")
    shell.out("resize", "debug-1", "100x34")
    shell.out("kill", "debug-1")
    shell.out("create", "stty size")
    assert shell.run("resize", "debug-2", "100x34").returncode == 125
    assert shell.out("restart", "debug-2") == "50 200\n"
    assert [pane["id"] for pane in panes(shell)] == ["debug-3"]
    assert shell.run("restart", "nope").stderr.startswith("tmux-debug: Pane 'nope' not found.")


def test_resize_gives_a_terminal_its_size(shell: Shell) -> None:
    shell.out("create", "--name", "sh", "bash --norc")

    done = shell.run("resize", "sh", "100x34")
    wrong = shell.run("resize", "sh", "3")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("[debug-1 sh running ")
    assert shell.out("run", "--pane", "sh", "stty size") == "34 100\n"
    assert (wrong.returncode, wrong.stderr.startswith("tmux-debug: SIZE is '3'.")) == (125, True)
