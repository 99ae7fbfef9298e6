"""People: they watch a pane, take its keyboard and let go, and type secrets that no agent sees."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import pytest
from people import Person
from support import PATIENCE_S, Gate, ask_until, wait_until
from wire import Server

from tmux_debug_mcp.linux.own_process import user_name
from tmux_debug_mcp.sockets.connection import panes_of

from .conftest import PROGRAM, Shell

PREFIX = b"\x02"  # C-b


@pytest.fixture
def sits(shell: Shell, server: Server) -> Iterator[Callable[..., Person]]:
    """Return what makes a person call `tmux-debug`, who has named the server of an agent."""
    people: list[Person] = []

    def sits(*words: str, **options: str) -> Person:
        env = shell.env | {"TMUX_DEBUG_SERVER": str(server.pid)}
        people.append(Person([*PROGRAM, *words], env, shell.cwd, **options))
        return people[-1]

    yield sits
    for person in people:
        person.close()
    # What a person had is gone with them, and the server goes on.
    ask_until(lambda: _shown(shell), lambda shown: "keyboard" not in shown)


def _shown(shell: Shell) -> str:
    """Return what `ps` says of the panes of all servers."""
    panes = [pane for server in shell.servers() for pane in panes_of(server.socket)]
    return "\n".join(str(pane["shown"]) for pane in panes)


def _screen_size(server: Server) -> str:
    """Return the size of the pane `web` as its status tells it."""
    status = server.call("capture_pane", pane_id="web", view="screen")["content"][-1]["text"]
    return str(re.findall(r" screen (\d+x\d+),", status)[0])


def size_of(server: Server, pane: str) -> str:
    return server.text("run", pane_id=pane, command="stty size")


def test_person_reaches_an_agents_pane_where_the_agent_works(
    shell: Shell, launch: Callable[..., Server]
) -> None:
    """Also beside agents elsewhere, and a server of their own."""
    launch().call("create_pane", command="cat", name="web")
    agent = launch(cwd=shell.cwd)
    agent.call("create_pane", command="echo up; exec cat", name="web", wait_for="up")
    agent.call(
        "create_pane", command="stty -echo; read -r line; echo got ${#line}; cat", name="login"
    )
    assert shell.by_person("create", "cat").returncode == 0
    person = Person([*PROGRAM, "attach", "web"], shell.env, shell.cwd)
    person.sees("up")

    assert person.leaves() == 0
    person.close()
    piped = subprocess.run(
        [*PROGRAM, "secret", "login"],
        env=shell.env,
        cwd=shell.cwd,
        input="xyzzy\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (piped.stdout.startswith("Typed into pane 'login'."), piped.stderr) == (True, "")
    assert agent.text("wait", pane_id="login", pattern="got 5").startswith("got 5")


class TestAttach:
    @pytest.fixture(autouse=True)
    def panes(self, server: Server) -> None:
        server.call("create_pane", command="echo up; exec bash --norc", name="web")
        server.call("create_pane", command="echo secret of another pane; cat", name="other")

    def test_person_who_watches_sees_the_pane_and_types_nothing(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        size = size_of(server, "web")
        person = sits("attach", "web")
        person.sees("web: watching; C-b ? shows the keys")
        server.call("send_keys", pane_id="web", keys="echo seen by $((1+1)) Enter")
        person.sees("seen by 2")

        # Keys that are typed nevertheless show how to take the keyboard.
        person.types(b"echo typed w\r")

        person.sees("C-b d leaves, C-b w takes the keyboard")
        assert size_of(server, "web") == size
        assert person.leaves() == 0
        assert "typed" not in server.text("capture_pane", pane_id="web")
        assert "another pane" not in person.seen
        assert "you have" not in person.seen
        # What tmux has to say about leaving is not shown.
        again = f"tmux-debug --server {server.pid} attach web"
        person.sees(f"'web' keeps running. To see it again: {again}\r\n")
        assert "[detached" not in person.seen

    def test_person_who_takes_over_types_and_the_agent_is_told(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web", "--write")
        person.sees("web: you have the keyboard; C-b ? shows the keys")
        person.types(b"echo typed by hand\r")
        person.sees("typed by hand")

        status = server.call("capture_pane", pane_id="web")["content"][-1]["text"]
        assert f"at {person.tty} has the keyboard" in status
        for tool, arguments in (
            ("send_keys", {"keys": "echo no Enter"}),
            ("send_keys", {"keys": "C-c"}),
            ("send_keys", {"keys": "SIGTERM"}),
            ("send_keys", {"keys": "", "size": "80x24"}),
            ("run", {"command": "echo no"}),
        ):
            refused = server.call(tool, pane_id="web", **arguments)
            assert refused["isError"]
            assert (
                f"at {person.tty} has the keyboard of pane 'web'. Nothing can be typed, run or "
                "signalled there until they let go. Wait, or work in another pane."
            ) in refused["content"][0]["text"]
        # Other panes, waits and captures go on.
        assert not server.call("send_keys", pane_id="other", keys="on Enter").get("isError")
        server.shows("web", "typed by hand")

        assert person.leaves() == 0

        assert server.text("run", pane_id="web", command="echo agent") == "agent\n"
        assert size_of(server, "web") == "50 200\n"

    def test_person_who_watches_sees_the_size_that_a_call_gives(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("web: watching; C-b ? shows the keys")

        assert not server.call("send_keys", pane_id="web", keys="", size="60x20").get("isError")

        assert size_of(server, "web") == "20 60\n"
        assert person.leaves() == 0
        assert size_of(server, "web") == "20 60\n"

    def test_steps_that_wait_are_refused_when_a_person_takes_over(
        self, sits: Callable[..., Person], server: Server, tmp_path: Path
    ) -> None:
        started = tmp_path / "started"
        command = f"touch {started}; sleep 1000"
        server.send(
            "tools/call",
            name="tmux_send_keys",
            arguments={"pane_id": "web", "keys": [command, "Enter", "echo never", "Enter"]},
        )
        wait_until(started.exists)
        person = sits("attach", "web", "--write")
        person.sees("you have the keyboard")

        text = server.read()["result"]["content"][0]["text"]

        assert "has the keyboard of pane 'debug-1'" in text
        assert person.leaves() == 0
        assert "echo never" not in server.text("capture_pane", pane_id="web")

    def test_run_that_times_out_under_a_person_does_not_interrupt_them(
        self, sits: Callable[..., Person], server: Server, tmp_path: Path
    ) -> None:
        started = tmp_path / "started"
        command = f"touch {started}; sleep 1000"
        server.send(
            "tools/call",
            name="tmux_run",
            arguments={"pane_id": "web", "command": command, "timeout_s": 5},
        )
        # If they had the keyboard before the command was typed, the run would be refused at once.
        wait_until(started.exists)
        person = sits("attach", "web", "--write")
        person.sees("you have the keyboard")

        status = server.read()["result"]["content"][-1]["text"]
        assert "; timed out after 5 s" in status
        assert "; it keeps running; " in status
        assert " has the keyboard; " in status
        assert (
            "foreground sleep"
            in server.call("wait", pane_id="web", timeout_s=0)["content"][-1]["text"]
        )
        person.types(b"\x03")
        assert person.leaves() == 0

    def test_one_person_at_a_time_has_the_keyboard(
        self, sits: Callable[..., Person], shell: Shell
    ) -> None:
        sits("attach", "web", "--write").sees("you have the keyboard")

        done = shell.run("attach", "web", "--write")

        assert done.returncode == 125
        assert "has the keyboard of pane 'web'" in done.stderr
        sits("attach", "web").sees("has the keyboard; C-b ? shows the keys")

    def test_person_whose_terminal_is_gone_has_let_go(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP):
            person = sits("attach", "web", "--write")
            person.sees("you have the keyboard")

            os.kill(person.process.pid, number)

            ask_until(
                lambda: server.call("send_keys", pane_id="web", keys="echo agent Enter"),
                lambda result: not result.get("isError"),
            )

    def test_killing_the_pane_is_not_refused_and_shows_no_other_pane(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web", "--write")
        person.sees("you have the keyboard")

        assert not server.call("kill_pane", pane_id="web").get("isError")

        assert person.process.wait(60) == 0
        assert "another pane" not in person.seen

    def test_person_takes_the_keyboard_and_gives_it_back(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("web: watching")

        person.presses("w")
        person.sees("web: you have the keyboard")
        person.types(b"echo typed by $((1+1))\r")
        person.sees("typed by 2")
        assert server.call("send_keys", pane_id="web", keys="echo no Enter")["isError"]
        person.forgets()
        person.presses("w")
        person.sees("web: watching")

        assert server.text("run", pane_id="web", command="echo agent") == "agent\n"
        assert person.leaves() == 0

    def test_keyboard_that_another_person_has_leaves_one_watching(
        self, sits: Callable[..., Person], shell: Shell
    ) -> None:
        first = sits("attach", "web", "--write")
        first.sees("you have the keyboard")
        second = sits("attach", "web")
        second.sees(f"at {first.tty} has the keyboard")

        second.forgets()

        second.presses("w")

        # It is shown anew.
        second.sees(f"web: {user_name()} at {first.tty} has the keyboard")
        assert f"at {first.tty} has the keyboard" in _shown(shell)
        assert second.leaves() == 0

    def test_keys_are_shown_once_c_b_is_pressed_and_work_as_they_are_shown(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("watching")

        person.types(PREFIX)
        person.sees("C-b d leaves, C-b w takes the keyboard, C-b PgUp scrolls")
        person.types(b"?")
        person.types(b"w")
        person.sees("you have the keyboard")
        person.presses("?")
        person.sees("C-b w returns the keyboard, C-b PgUp scrolls, C-b C-b types C-b")
        for shown, keys in (
            ("web: watching", "C-b d leaves, C-b w takes the keyboard"),
            ("web: you have the keyboard", "C-b w returns the keyboard"),
        ):
            person.forgets()
            person.presses("w")
            person.sees(shown)
            person.presses("?")
            person.sees(keys)

        assert person.leaves() == 0
        assert "^B" not in server.text("capture_pane", pane_id="web")

    def test_terminal_that_tmux_can_not_draw_on_is_named(self, sits: Callable[..., Person]) -> None:
        person = sits("attach", "web", term="dumb")

        person.sees("tmux-debug: tmux can't show the pane on this terminal. TERM is dumb.")
        assert person.process.wait(60) == 125

    def test_end_of_the_program_is_said_and_how_it_ended(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("watching")

        server.call("send_keys", pane_id="web", keys="exit 3 Enter")

        person.sees("web: watching; exited with code 3 after ")
        person.sees("q leaves")  # keys from before that may be lost
        assert person.leaves() == 0
        person.sees("'web' exited with code 3 after ")

    def test_pane_that_is_killed_ends_it(self, sits: Callable[..., Person], server: Server) -> None:
        person = sits("attach", "web")
        person.sees("watching")

        server.call("kill_pane", pane_id="web")

        assert person.process.wait(60) == 0
        person.sees("'web' was killed.\r\n")
        assert "[exited]" not in person.seen

    def test_hidden_input_in_any_pane_rings_the_bell_and_is_said(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web", "--write")
        person.sees("you have the keyboard")
        assert "\a" not in person.seen

        login(server)

        person.sees("hidden input is awaited in login")
        ask_until(lambda: person.seen.count("\a"), lambda rings: rings == 1)
        sits("attach", "login").sees("login: watching; awaits hidden input")
        for shown in ("web: watching; hidden", "web: you have the keyboard; hidden"):
            person.forgets()
            person.presses("w")
            person.sees(shown)
        assert "\a" not in person.seen

    def test_pane_has_the_size_of_the_terminal_of_who_has_its_keyboard(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web", "--write")
        # All but the line at the bottom.
        for columns, rows in ((80, 24), (120, 40), (40, 12)):
            person.resizes(columns, rows)
            ask_until(lambda: _screen_size(server), partial(eq, f"{columns}x{rows - 1}"))

        def asks_again() -> str:
            person.types(b"stty size\r")
            return person.seen

        ask_until(asks_again, lambda seen: "11 40" in seen)
        person.presses("w")
        person.sees("web: watching")

        assert size_of(server, "web") == "50 200\n"
        assert person.leaves() == 0

    @pytest.mark.parametrize(
        ("flags", "ways"),
        [
            ([], [PREFIX + b"\x1b[5~", b"\x1b[5~", b"\x1b[A"]),
            (["--write"], [PREFIX + b"\x1b[5~", b"\x1b[<64;9;9M"]),
        ],
        ids=["watching: C-b PgUp, PgUp, Up", "working: C-b PgUp, wheel"],
    )
    def test_person_scrolls_back_and_returns(
        self, sits: Callable[..., Person], server: Server, flags: list[str], ways: list[bytes]
    ) -> None:
        first = "echo first | tr a-z A-Z; seq 100 Enter"
        server.call("send_keys", pane_id="web", keys=first, wait_for="^100")
        person = sits("attach", "web", *flags)
        person.sees("web: ")
        person.sees("99")
        assert "FIRST" not in person.seen
        for key in ways:
            person.forgets()
            person.types(key)
            person.sees("web: scrolled back; q returns, PgUp and PgDn scroll")

            for _ in range(5):
                person.types(b"\x1b[5~")
            person.sees("FIRST")
            # The pane goes on for all others.
            assert server.text("capture_pane", pane_id="web", lines=1).startswith("bash")
            person.forgets()
            person.types(b"q")

            person.sees("watching" if not flags else "you have the keyboard")
        assert person.leaves() == 0
        assert "[5~" not in server.text("capture_pane", pane_id="web")

    def test_c_b_works_while_a_person_scrolls(self, sits: Callable[..., Person]) -> None:
        person = sits("attach", "web")
        person.sees("watching")
        person.types(PREFIX + b"\x1b[5~")
        person.sees("scrolled back")
        person.presses("w")
        person.sees("you have the keyboard")
        person.forgets()
        person.types(PREFIX + b"\x1b[5~")
        person.sees("scrolled back")
        assert person.leaves() == 0
        person.sees("'web' keeps running.")

    def test_pane_that_is_killed_ends_scrolling(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("watching")
        person.types(PREFIX + b"\x1b[5~")
        person.sees("scrolled back")

        server.call("kill_pane", pane_id="web")

        assert person.process.wait(60) == 0
        person.sees("'web' was killed.")

    @pytest.mark.parametrize("flags", [[], ["--write"]], ids=["watching", "working"])
    def test_end_of_a_pane_that_has_ended_is_seen_first(
        self, sits: Callable[..., Person], server: Server, flags: list[str]
    ) -> None:
        server.call("create_pane", command="seq 75; echo FATAL last; exit 3", name="failed")
        server.call("create_pane", command="seq 75; read x; echo FATAL last; exit 3", name="fails")
        for name in ("failed", "fails"):
            person = sits("attach", name, *flags)
            if name == "fails":
                person.sees("fails: ")
                if flags:
                    person.types(b"\r")
                else:
                    server.call("send_keys", pane_id="fails", keys="Enter")

            person.sees(f"{name}: exited with code 3 after ")
            person.sees("FATAL last")
            person.sees("q leaves, PgUp and PgDn scroll")
            person.types(b"q")

            assert person.process.wait(60) == 0
            person.sees(f"'{name}' exited with code 3 after ")

    def test_smaller_terminal_shows_where_the_cursor_is(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("watching")

        # At the end of 50 rows and of 200 columns, of which the terminal has 24 and 80.
        server.call("send_keys", pane_id="web", keys=["clear Enter", f"{'x' * 170} Enter"])
        server.call("run", pane_id="web", command="seq 100")
        server.call("send_keys", pane_id="web", keys=f"{': ' * 80}here$((6*7))there")

        person.sees("here$((6*7))there")

    def test_without_a_pane_the_only_one_that_runs_is_meant(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        server.call("send_keys", pane_id="other", keys="C-d")

        sits("attach").sees("web: watching")

    def test_several_that_run_are_numbered(self, sits: Callable[..., Person], shell: Shell) -> None:
        assert shell.run("attach").stderr == "tmux-debug: Choose a pane: web, other.\n"
        person = sits("attach")
        person.sees("1  ? echo up; exec bash --norc         debug-1 web running ")
        person.sees("2  ? echo secret of another pane; cat  debug-2 other running ")
        person.sees("Which one? ")

        person.types(b"3\r")
        person.sees("'3' is not one of them. Enter a number from 1 to 2.")
        person.types(b"2\r")

        person.sees("other: watching")

    def test_number_is_none_of_the_names(self, sits: Callable[..., Person], server: Server) -> None:
        server.call("create_pane", command="cat", name="1")
        person = sits("attach")
        person.sees("Which one? ")

        person.types(b"\xe9\r")
        person.sees("is not one of them. Enter a number from 1 to 3.")
        person.types(b"1\r")

        person.sees("web: watching")

    def test_pane_stays_the_same_when_another_gets_its_name(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "web")
        person.sees("watching")
        server.call("send_keys", pane_id="web", keys="exit Enter")
        person.sees("q leaves")
        server.call("create_pane", command="echo the new one; cat", name="web")
        person.forgets()

        person.presses("w")

        person.sees("web: exited with code 0")
        assert "the new one" not in person.seen
        assert person.leaves() == 0

    def test_no_choice_is_no_answer(self, sits: Callable[..., Person]) -> None:
        person = sits("attach")
        person.sees("Which one? ")

        person.types(b"\x04")

        assert person.process.wait(60) == 125
        person.sees("tmux-debug: No pane was chosen.")

    def test_attach_needs_a_terminal(self, shell: Shell) -> None:
        assert shell.run("attach", "web").stderr == (
            "tmux-debug: attach needs a terminal. Run it in one.\n"
        )

    def test_server_that_ends_ends_the_persons_terminal(
        self, sits: Callable[..., Person], shell: Shell, server: Server
    ) -> None:
        person = sits("attach", "web", "--write")
        person.sees("you have the keyboard")

        server.process.terminate()

        assert person.process.wait(60) == 125
        person.sees("tmux-debug: The server has ended.")
        assert server.process.wait(60) == 0
        assert shell.left() == []
        server.call = lambda *_, **__: {"content": [{"text": ""}]}  # type: ignore[method-assign]


@pytest.mark.parametrize("editor", ["emacs", "vim"])
def test_person_searches_what_has_scrolled_away(
    shell: Shell, launch: Callable[..., Server], editor: str
) -> None:
    """With the same key for all, though tmux has other keys for those whose editor is vi."""
    shell.env["VISUAL"] = editor
    first = "echo first | tr a-z A-Z; seq 100; exec cat"
    launch().call("create_pane", command=first, name="web", wait_for="^100")
    person = Person([*PROGRAM, "attach", "web"], shell.naming_env, shell.cwd)
    with contextlib.closing(person):
        person.sees("99")
        person.types(PREFIX + b"\x1b[5~")
        person.sees("web: scrolled back")
        assert "FIRST" not in person.seen

        person.types(b"\x13")
        person.sees("(search down)")
        person.types(b"FIRS")

        person.sees("FIRST")
        person.types(b"\r")
        person.forgets()
        person.types(b"q")
        person.sees("web: watching")
        assert person.leaves() == 0


ASKS = "printf 'Password: '; stty -echo; read x; stty echo; echo; echo got ${#x}; exec cat"


def login(server: Server, command: str = ASKS) -> None:
    """Make the pane `login`, and wait until it awaits a secret."""
    server.call("create_pane", command=command, name="login")
    ask_until(
        lambda: server.call("wait", pane_id="login", timeout_s=0)["content"][-1]["text"],
        lambda status: "awaits hidden input" in status,
    )


def assert_awaits_secret(server: Server) -> None:
    result = server.call("wait", pane_id="login", timeout_s=0)
    assert "awaits hidden input" in result["content"][-1]["text"]


def secret_from_a_pipe(
    shell: Shell, line: bytes, pane: str = "login"
) -> subprocess.CompletedProcess[bytes]:
    """Type the line into a pane; "" names none."""
    return subprocess.run(
        [*PROGRAM, "secret", *pane.split()],
        env=shell.naming_env,
        input=line,
        capture_output=True,
        check=False,
    )


def typed_into(pane: str) -> bytes:
    return (
        f"Typed into pane '{pane}'. Only its output so far was checked for the secret.\n".encode()
    )


class TestSecret:
    def test_agent_is_told_how_a_person_can_type_it(self, server: Server) -> None:
        result = server.call("create_pane", command=ASKS, name="login", timeout_s=PATIENCE_S)

        assert "awaits hidden input" in result["content"][-1]["text"]
        line = f"tmux-debug --server {server.pid} secret debug-1"
        assert f"a person can type it: {line}" in result["content"][-1]["text"]

    def test_secret_reaches_the_terminal_and_nothing_else(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        login(server)
        person = sits("secret", "login")
        person.sees("in pane 'login': ")
        person.types(b"hunter2\r")

        person.sees("Typed into pane 'login'.")
        assert person.process.wait(60) == 0
        server.shows("login", "got 7")
        assert "hunter2" not in person.seen
        assert "hunter2" not in server.text("capture_pane", pane_id="login", since=0)

    def test_without_a_pane_the_one_that_awaits_it_is_meant(
        self, shell: Shell, server: Server
    ) -> None:
        server.call("create_pane", command="cat", name="web")
        assert shell.run("secret").stderr == (
            "tmux-debug: No pane awaits hidden input, so there is nothing to type.\n"
        )
        login(server)

        done = secret_from_a_pipe(shell, b"hunter2\n", pane="")

        assert done.stdout == typed_into("debug-2")
        server.shows("login", "got 7")

    def test_secret_that_is_shown_later_is_in_no_full_capture(
        self, launch: Callable[..., Server], shell: Shell, tmp_path: Path, gate: Gate
    ) -> None:
        server = launch("--audit-full", str(tmp_path / "full"))
        login(server, f"stty -echo; read x; cat {gate}; echo later $x; exec cat")

        done = secret_from_a_pipe(shell, b"hunter2\n")

        assert done.stdout == typed_into("login")
        ask_until(gate.opens, bool)
        server.shows("login", "later hunter2")
        kept = [file.read_text() for file in (tmp_path / "full").iterdir()]
        assert any("later [secret]" in text for text in kept)
        assert not any("hunter2" in text for text in kept)

    def test_secret_may_come_from_a_pipe(self, shell: Shell, server: Server) -> None:
        login(server)

        done = secret_from_a_pipe(shell, b"from a vault\n")

        assert done.stdout == typed_into("login")
        server.shows("login", "got 12")

    def test_nothing_that_is_piped_is_no_empty_secret(self, shell: Shell, server: Server) -> None:
        login(server)

        for stream in ("</dev/null", "<&-"):
            line = f"{shlex.join(PROGRAM)} secret login {stream}"
            done = shell.by_sh(line, **shell.naming_env)

            assert (done.returncode, done.stdout) == (125, "")
            assert done.stderr == (
                "tmux-debug: Standard input was empty: the command that writes to it may have "
                "failed. Nothing was typed.\n"
            )
        assert secret_from_a_pipe(shell, b"\n").returncode == 0
        server.shows("login", "got 0")

    def test_secret_that_a_terminal_does_not_take_as_it_is_is_refused(
        self, shell: Shell, server: Server
    ) -> None:
        login(server)
        for text, reason in (
            (b"pass\rtouch pwned\n", "contains a control character, which could"),
            (b"pass\x04\x04touch pwned\x04\n", "contains a control character"),
            (b"pass\x1b[A\n", "contains a control character"),
            ("é".encode() * 2048 + b"\n", "has 4096 bytes, but a terminal line holds 4095."),
            (b"caf\xe9\n", "is not UTF-8. Nothing was typed.\n"),
            (b"first\nsecond", "has more than one line. Nothing was typed."),
            (b"first\n\n", "has more than one line. Nothing was typed."),
            (b"first\r\nsecond\r\n", "has more than one line. Nothing was typed."),
            (b"\nx", "has more than one line. Nothing was typed."),
        ):
            done = secret_from_a_pipe(shell, text)

            assert (done.returncode, done.stdout) == (125, b"")
            assert done.stderr.decode().startswith(f"tmux-debug: The secret {reason}")
            assert b"Nothing was typed." in done.stderr
            assert_awaits_secret(server)

    def test_secret_with_a_special_character_of_the_terminal_is_refused(
        self, shell: Shell, server: Server
    ) -> None:
        for setting, secret in (
            *(("erase q", "quick"), ("kill @", "p@ss"), ("eof e", "secret")),
            *(("werase w", "password"), ("intr i", "hidden"), ("stop s", "secret")),
        ):
            login(server, f"stty {setting}; {ASKS}")

            done = secret_from_a_pipe(shell, secret.encode())

            assert (done.returncode, done.stdout) == (125, b"")
            assert b"The secret contains a character that erases, ends or interrupts" in done.stderr
            assert_awaits_secret(server)
            server.call("kill_pane", pane_id="login")

    def test_characters_that_are_not_in_force_or_not_in_the_secret_are_typed(
        self, shell: Shell, server: Server
    ) -> None:
        for setting, secret in (("-isig intr q", "quick"), ("kill @", "pass")):
            login(server, f"stty {setting}; {ASKS}")

            assert secret_from_a_pipe(shell, secret.encode()).returncode == 0

            server.shows("login", f"got {len(secret)}")
            server.call("kill_pane", pane_id="login")

    @pytest.mark.parametrize("secret", ["1", "got"])
    def test_short_secret_that_is_printed_by_chance_is_not_taken_for_echo(
        self, shell: Shell, server: Server, secret: str
    ) -> None:
        # What it prints is in the log by the time that typing is done.
        asks = "printf 'Password: '; stty -echo; while read x; do echo got ${#x}; done"
        login(server, asks)

        done = secret_from_a_pipe(shell, secret.encode())

        assert (done.returncode, done.stdout) == (0, typed_into("login"))
        server.shows("login", f"got {len(secret)}")

    def test_longest_line_that_a_terminal_keeps_is_typed_whole(
        self, shell: Shell, server: Server
    ) -> None:
        for end in (b"\n", b"\r\n", b""):
            login(server)

            assert secret_from_a_pipe(shell, b"x" * 4095 + end).returncode == 0

            server.shows("login", "got 4095")
            server.call("kill_pane", pane_id="login")

    def test_secret_reaches_a_tab_by_the_line_that_its_result_names(
        self, shell: Shell, launch: Callable[..., Server]
    ) -> None:
        tabs = launch("--toolsets", "tabs")
        tabs.call_tool("create_tab")
        result = tabs.call_tool(
            "execute_command", window_id="@1", command="read -s x; echo got ${#x}"
        )
        note = json.loads(result["content"][0]["text"])["note"]
        _, line = note.rstrip(".").split(": tmux-debug ")

        done = subprocess.run(
            [*PROGRAM, *line.split()], env=shell.env, input="hunter2\n", text=True, check=False
        )

        assert done.returncode == 0
        ask_until(lambda: shell.out("capture", "debug-1"), lambda text: "got 7" in text)

    def test_secret_is_not_typed_where_it_would_be_shown(
        self, shell: Shell, server: Server
    ) -> None:
        for command in ("cat", "sleep 1000", "bash --norc"):
            server.call("create_pane", command=command, name="open")

            done = shell.run("secret", "open")

            assert (done.returncode, done.stdout) == (125, "")
            assert done.stderr == (
                "tmux-debug: Pane 'open' does not await hidden input, so a secret could be shown "
                "there. Nothing was typed.\n"
            )
            server.call("kill_pane", pane_id="open")

    def test_pane_is_looked_at_again_before_the_secret_is_typed(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        login(server)
        person = sits("secret", "login")
        person.sees("Secret for")
        server.call("send_keys", pane_id="login", keys="x Enter")
        server.shows("login", "got 1")

        person.types(b"hunter2\r")

        person.sees("does not await hidden input")
        assert person.process.wait(60) == 125
        assert "hunter2" not in server.text("capture_pane", pane_id="login", since=0)

    @pytest.mark.parametrize("starts", ["", "exec "])
    def test_secret_goes_to_no_other_program_than_the_one_that_was_asked_for(
        self, sits: Callable[..., Person], server: Server, starts: str
    ) -> None:
        other = shlex.quote("read -rsp other y; echo got ${#y}; exec cat")
        login(server, f"bash -c {shlex.quote(f'read -rs x; {starts}bash -c {other}')}")
        person = sits("secret", "login")
        person.sees("Secret for bash in pane 'login': ")
        server.call("send_keys", pane_id="login", keys="x Enter", wait_for="other")

        person.types(b"hunter2\r")

        person.sees("another program awaits hidden input now, bash (pid ")
        assert person.process.wait(60) == 125
        server.call("send_keys", pane_id="login", keys="one Enter")
        server.shows("login", "got 3")

    def test_interrupted_question_gives_the_terminal_its_echo_back(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        login(server)
        person = sits("secret", "login")
        person.sees("Secret for")

        person.types(b"\x03")

        assert person.process.wait(60) == 130
        fd = os.open(person.tty, os.O_RDWR | os.O_NOCTTY)
        assert termios.tcgetattr(fd)[3] & termios.ECHO
        os.close(fd)


class TestSecretKeys:
    """`send --secret`: the keys stand in no argument."""

    def send(self, shell: Shell, line: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*PROGRAM, "send", *words, "--secret"],
            env=shell.naming_env,
            input=line,
            capture_output=True,
            check=False,
        )

    def test_are_refused_among_the_words_of_the_command(self, shell: Shell, server: Server) -> None:
        login(server)

        for words in (["login", "hunter2", "Enter"], ["hunter2", "Enter"]):
            done = self.send(shell, b"", *words)

            assert done.returncode == 125
            refusal = b"tmux-debug: Other users can read the words of a command,"
            assert done.stderr.startswith(refusal)
            assert b"hunter2" not in done.stderr + server.text("list_panes").encode()

    def test_come_from_standard_input(self, shell: Shell, server: Server) -> None:
        login(server)

        done = self.send(shell, b"C-c Enter\n", "login", "--wait-for", "got")

        assert done.returncode == 0
        assert done.stdout.decode().strip() == "got 9"

    def test_come_from_a_person_at_a_terminal(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        login(server)
        person = sits("send", "login", "--secret", "--wait-for", "got")
        person.sees("Secret for pane 'login': ")
        person.types(b"hunter2\r")

        person.sees("got 7")
        assert "hunter2" not in person.seen

    def test_are_not_typed_where_no_hidden_input_is_awaited(
        self, shell: Shell, server: Server
    ) -> None:
        server.call("create_pane", command="cat", name="open")

        done = self.send(shell, b"hunter2\n", "open")

        assert done.returncode == 125
        assert done.stderr.decode() == (
            "tmux-debug: Pane 'open' does not await hidden input: cat awaits input. Nothing was "
            "typed, since a secret could be shown or run as a command there. To type it anyway, "
            "omit --secret; it is then on record.\n"
        )

    def test_need_a_pane_and_a_line(self, shell: Shell, server: Server) -> None:
        server.call("create_pane", command="cat", name="open")

        # It may be the secret, in the wrong place.
        assert b"Pane '\xe2\x80\xa6' not found" in self.send(shell, b"x\n", "other").stderr
        assert b"Standard input was empty" in self.send(shell, b"", "open").stderr


# What a program does first so that nobody sees where it runs.
HIDING = {
    "not": "import os",
    "behind many processes": """
import os
for _ in range(120):
    if os.fork():
        os.wait()
        os._exit(0)
""",
    "in another session": """
import os
if os.fork():
    os._exit(0)
os.setsid()
os.environ.clear()
""",
}
# Says that it is a person at a terminal, and writes down the first answer.
FORGER = """
import json, socket, sys
path, said = sys.argv[1:]
peer = socket.socket(socket.AF_UNIX)
peer.connect(path)
wish = {"want": "verb", "words": ["secret", "login"], "cwd": "/", "terminal": True, "person": "me"}
peer.sendall(json.dumps(wish).encode() + b"\\n")
answer = peer.makefile().readline()
with open(said + ".new", "w") as file:
    file.write(answer)
os.rename(said + ".new", said)
"""


class TestOnlyPeople:
    """`--secrets person`: no call types where hidden input is awaited."""

    @pytest.fixture
    def server(self, launch: Callable[..., Server]) -> Server:
        return launch("--secrets", "person")

    def test_agent_types_nothing_there_and_is_told_how_a_person_does(
        self, sits: Callable[..., Person], shell: Shell, server: Server
    ) -> None:
        login(server)

        how = f"tmux-debug --server {server.pid} secret debug-1"
        for keys in ("hunter2 Enter", "Enter", ["hunter2", "Enter"]):
            refused = server.call("send_keys", pane_id="login", keys=keys)
            assert refused["isError"]
            assert refused["content"][0]["text"] == (
                f"Pane 'login' awaits hidden input, which only a person may type here: {how}. "
                "Nothing was typed. Wait for the person, or use tmux_send_keys with C-c to "
                "interrupt the program."
            )

        done = secret_from_a_pipe(shell, b"hunter2\n")
        assert done.returncode == 125
        assert done.stderr.decode() == (
            "tmux-debug: Only a person at their own terminal may type secrets here.\n"
        )
        person = sits("secret")
        person.sees("in pane 'login': ")
        person.types(b"a person's\r")
        server.shows("login", "got 10")
        assert not server.call("send_keys", pane_id="login", keys="on Enter").get("isError")

    def test_program_in_a_pane_is_no_person(
        self, shell: Shell, server: Server, tmp_path: Path
    ) -> None:
        login(server)
        [running] = shell.servers()
        for number, hides in enumerate(HIDING.values()):
            said = tmp_path / f"said{number}"
            forger = [f"{hides}\n{FORGER}", running.socket, str(said)]

            server.call("create_pane", command=shlex.join([sys.executable, "-c", *forger]))

            wait_until(said.exists)
            assert json.loads(said.read_text())["err"] == (
                "tmux-debug: Only a person at their own terminal may type secrets here.\n"
            )

    def test_program_in_a_pane_takes_no_keyboard(self, server: Server) -> None:
        """It could type into the pane that it shows."""
        login(server)

        told = server.text(
            "run", command=f"script -qc 'tmux-debug attach login --write' {os.devnull}"
        )

        assert told == "tmux-debug: Only a person at their own terminal may attach here.\n"

    def test_terminal_within_the_pane_is_looked_at_too(self, server: Server) -> None:
        inner = "read -s -p 'Password: ' x; echo got ${#x}; exec cat"
        login(server, f"script -qc {shlex.quote(f'bash -c {shlex.quote(inner)}')} /dev/null")

        refused = server.call("send_keys", pane_id="login", keys="hunter2 Enter")

        assert refused["isError"]
        assert "only a person may type here" in refused["content"][0]["text"]

    def test_steps_that_would_be_typed_there_are_not_sent(self, server: Server) -> None:
        server.call("create_pane", command="bash --norc", name="login")

        result = server.call(
            "send_keys", pane_id="login", keys=["read -s x; echo got ${#x}", "Enter", "hunter2"]
        )

        status = result["content"][0]["text"]
        assert status.startswith("Sent 2 of 3 steps to pane 'login'. Step 3 was not sent: ")
        assert "which only a person may type here" in status
        assert "hunter2" not in server.text("capture_pane", pane_id="login", since=0)

    def test_program_that_asks_may_be_interrupted(self, server: Server) -> None:
        login(server)

        assert not server.call("send_keys", pane_id="login", keys="C-c").get("isError")

        ask_until(
            lambda: server.call("wait", pane_id="login", timeout_s=0)["content"][-1]["text"],
            lambda status: "code 130" in status,
        )


@pytest.mark.parametrize("value", ["nobody", "1"])
def test_secrets_that_are_nobodys_are_refused(shell: Shell, value: str) -> None:
    done = shell.run("start", "--secrets", value)

    assert done.returncode == 125
    assert done.stderr == (
        f"tmux-debug: --secrets (TMUX_DEBUG_SECRETS) is '{value}'. Give person, or anyone, which "
        "is the default.\n"
    )


def test_people_and_callers_are_on_record(
    shell: Shell, tmp_path: Path, launch: Callable[..., Server]
) -> None:
    records = tmp_path / "audit.jsonl"
    server = launch("--audit", str(records))
    server.call("create_pane", command=ASKS, name="login", timeout_s=PATIENCE_S)
    env = shell.naming_env
    subprocess.run([*PROGRAM, "list"], env=env, check=True)
    subprocess.run([*PROGRAM, "secret", "login"], env=env, input="hunter2\n", text=True, check=True)
    shell.run("secret", "login")
    shell.run("attach", "login", "--write")

    texts = ask_until(lambda: records.read_text().splitlines(), lambda texts: len(texts) == 5)
    lines = [json.loads(text) for text in texts]

    assert [line["tool"] for line in lines] == [
        "create_pane",
        "list_panes",
        "secret",
        "secret",
        "attach",
    ]
    assert "caller" not in lines[0]
    assert lines[1]["caller"].endswith(f"(pid {os.getpid()})")
    assert lines[2]["pane_id"] == "debug-1"
    assert lines[2]["caller"]
    assert [line["failed"] for line in lines[:4]] == [False, False, False, True]
    assert "hunter2" not in records.read_text()


def test_each_time_that_a_person_watches_or_works_is_on_record(
    shell: Shell, tmp_path: Path, launch: Callable[..., Server]
) -> None:
    records = tmp_path / "audit.jsonl"
    server = launch("--audit", str(records))
    server.call("create_pane", command="cat", name="web")
    person = Person([*PROGRAM, "attach", "web"], shell.naming_env, shell.cwd)
    with contextlib.closing(person):
        person.sees("watching")
        person.presses("w")
        person.sees("you have the keyboard")
        assert person.leaves() == 0

    texts = ask_until(lambda: records.read_text().splitlines(), lambda texts: len(texts) == 3)
    _, watched, worked = [json.loads(text) for text in texts]
    assert (watched["tool"], worked["tool"]) == ("attach", "attach")
    assert (watched.get("write"), worked["write"]) == (None, True)
    assert watched["pane_id"] == worked["pane_id"] == "debug-1"


class TestSplitWindow:
    """People in panes that share a window, which the toolset `tmux` can split."""

    @pytest.fixture
    def server(self, launch: Callable[..., Server]) -> Server:
        """Return a server with two panes in a window, of which the second is the active one."""
        server = launch("--toolsets", "tmux")
        server.call("create_session", name="work", command="stty -echo; echo first; cat")
        server.call("split_window", target="work", command="stty -echo; echo second; cat")
        ask_until(lambda: server.text("list_panes"), lambda text: text.count("\tcat") == 2)
        return server

    @pytest.fixture(params=["debug-1", "debug-2"])
    def taken(self, request: pytest.FixtureRequest) -> str:
        """Return the id of the pane that a person takes: the active one, or the other."""
        return str(request.param)

    def sizes(self, server: Server) -> list[str]:
        rows = [line.split("\t") for line in server.text("list_panes").splitlines()]
        return [row[4] for row in rows]

    def test_keys_of_a_person_go_to_the_pane_that_they_took_and_they_see_no_other(
        self, sits: Callable[..., Person], shell: Shell, server: Server, taken: str
    ) -> None:
        own, others = ("first", "second") if taken == "debug-1" else ("second", "first")
        before = server.text("list_panes")
        person = sits("attach", taken, "--write")
        person.sees(own)

        person.types(b"by hand\r")

        person.sees("by hand")
        assert others not in person.seen
        [other] = {"debug-1", "debug-2"} - {taken}
        assert "by hand" not in shell.out("capture", other)
        # Its neighbour is still typed into.
        server.call("send_keys", target="%2" if taken == "debug-1" else "%1", keys="agent Enter")
        ask_until(lambda: shell.out("capture", other), lambda text: "agent" in text)
        assert person.leaves() == 0
        ask_until(lambda: server.text("list_panes"), lambda text: text == before)

    def test_window_of_a_pane_that_a_person_took_is_not_rearranged(
        self, sits: Callable[..., Person], server: Server
    ) -> None:
        person = sits("attach", "debug-1", "--write")
        person.sees("you have the keyboard")
        before = server.text("list_panes")
        tools = ("split_window", "select_pane", "resize_pane", "kill")

        def call(tool: str) -> Any:  # noqa: ANN401
            arguments = {"direction": "right"} if tool == "resize_pane" else {}
            return server.call(tool, target="%2", **arguments)

        for tool in tools:
            refused = call(tool)

            assert refused["isError"]
            assert refused["content"][0]["text"].endswith(
                f"at {person.tty} has the keyboard of a pane in the window of '%2'. Until they let "
                "go, that pane takes no keys, and that window's panes can't be changed. Wait, or "
                "work in another window."
            )
            assert server.text("list_panes") == before
        person.types(b"by hand\r")
        person.sees("by hand")
        assert person.leaves() == 0
        for tool in tools:
            ask_until(partial(call, tool), lambda result: not result.get("isError"))

    @pytest.mark.usefixtures("server")
    def test_neighbour_of_a_pane_that_a_person_took_is_not_killed_by_a_verb(
        self, sits: Callable[..., Person], shell: Shell
    ) -> None:
        person = sits("attach", "debug-1", "--write")
        person.sees("you have the keyboard")

        refused = shell.run("kill", "debug-2")

        assert refused.returncode == 125
        assert f"at {person.tty} has the keyboard of pane 'debug-1'." in refused.stderr
        assert "second" not in person.seen
        assert person.leaves() == 0
        ask_until(lambda: shell.run("kill", "debug-2").returncode, lambda status: status == 0)

    def test_window_with_a_pane_that_a_person_took_is_killed(
        self, sits: Callable[..., Person], server: Server, taken: str
    ) -> None:
        person = sits("attach", taken, "--write")
        person.sees("you have the keyboard")

        assert not server.call("kill", target="work:0", type="window").get("isError")

        assert person.leaves() == 0
        assert server.text("list_panes") == "No panes found."

    @pytest.mark.parametrize("words", [(), ("--write",)], ids=["watches", "works"])
    def test_person_whose_pane_is_killed_is_not_left_with_its_neighbour(
        self, sits: Callable[..., Person], shell: Shell, server: Server, words: tuple[str, ...]
    ) -> None:
        person = sits("attach", "debug-1", *words)
        person.sees("first")

        assert not server.call("kill", target="%1").get("isError")

        assert person.process.wait(60) == 0
        person.types(b"by hand\r")
        assert "by hand" not in shell.out("capture", "debug-2")

    def test_pane_that_shares_its_window_takes_no_size_of_its_own(
        self, shell: Shell, server: Server
    ) -> None:
        before = self.sizes(server)

        done = shell.run("send", "debug-1", "--size", "80x24")

        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr == (
            "tmux-debug: Pane 'debug-1' shares its window with others, so it can't have its own "
            "size. Omit the size.\n"
        )
        assert self.sizes(server) == before

    @pytest.mark.usefixtures("server")
    def test_one_person_at_a_time_has_a_keyboard_in_a_window(
        self, sits: Callable[..., Person], shell: Shell
    ) -> None:
        sits("attach", "debug-1", "--write").sees("you have the keyboard")

        done = shell.run("attach", "debug-2", "--write")

        assert done.returncode == 125
        assert "has the keyboard of pane 'debug-1'" in done.stderr

    def test_size_that_a_person_sees_is_that_of_the_terminal_and_of_its_log(
        self, sits: Callable[..., Person], shell: Shell, server: Server
    ) -> None:
        server.call("split_window", target="%1", command="bash --norc")
        before = self.sizes(server)
        person = sits("attach", "debug-3", "--write")
        person.sees("you have the keyboard")
        person.types(b"stty size\r")
        person.sees("50 200")
        assert self.sizes(server)[1] == "200x50"

        assert person.leaves() == 0

        ask_until(lambda: self.sizes(server), lambda sizes: sizes == before)
        columns, _, rows = before[1].partition("x")
        ask_until(
            lambda: shell.out("run", "--pane", "debug-3", "stty size"),
            lambda size: size == f"{rows} {columns}\n",
        )
