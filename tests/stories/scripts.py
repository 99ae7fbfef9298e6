"""The scripts of the stories: what a good agent does, and what it has learned then."""

import re
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wire import Server

from .steps import Await, Find, Move, Run, Send, Start, call_of

HERE = Path(__file__).parent
PYTHON = shlex.quote(sys.executable)

FLAKY = (
    f"for seed in 1 2 3 4 5 6; do PYTHONHASHSEED=$seed {PYTHON} test_flaky.py 2>&1 | tail -n 1; "
    "done"
)
# How tools and shells say that a program was killed.
KILLED = frozenset({"SIGKILL", "9", "137", "-9"})

_PID = re.compile(r"\bpid (\d+)")


@dataclass(frozen=True)
class Story:
    """A broken system and how it is debugged.

    Attributes:
        moves: What the agent does. PID in a command is the pid that it has been shown first.
        cwd: Where its programs are.
    """

    moves: Sequence[Move]
    cwd: str = str(HERE)


@dataclass(frozen=True)
class Cost:
    """What a story took: calls, and bytes of text received."""

    calls: int
    bytes: int


def ports() -> tuple[int, int]:
    """Return two ports that nobody listens on."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        return one.getsockname()[1], other.getsockname()[1]


def stories() -> Mapping[str, Story]:
    """Return all stories, by name."""
    return {
        "two services that deadlock": _deadlock(),
        "a full-screen program": _full_screen_program(),
        "pdb on a crash": _crash_in_pdb(),
        "an installer with password and menu": _installer(),
        "a flaky test": _flaky_test(),
        "a memory leak": _memory_leak(),
        "a log of 10 MB": _large_log(),
        "a process that ignores signals": _stubborn_process(),
    }


def _deadlock() -> Story:
    one, other = ports()
    waits_for_answer = r"(?s)in serve\b.*in ask\b.*in main\b"
    return Story(
        [
            Start(pane="north", command=f"{PYTHON} bank.py north {one} {other}", until="ready"),
            Start(pane="south", command=f"{PYTHON} bank.py south {other} {one}", until="ready"),
            Send(pane="south", keys=["pay 7\n"], until="pay 7"),
            Send(pane="north", keys=["pay 5\n", "yes\n"]),
            Await(pane="south", pattern="asked to"),
            Send(pane="south", keys=["yes\n"]),
            Await(pane="north", pattern="asked to"),
            Send(pane="north", keys=["SIGUSR1"], shows=waits_for_answer),
            Send(pane="south", keys=["SIGUSR1"], shows=waits_for_answer),
        ]
    )


def _full_screen_program() -> Story:
    return Story(
        [
            Start(pane="editor", command=f"{PYTHON} editor.py", shows=r"(?s)3 items.*\* alpha"),
            Send(
                pane="editor",
                keys=["j", "j", "j", "d"],
                shows=r"(?s)line 20, in main\s+del items\[at\]\s.*IndexError",
            ),
        ]
    )


def _crash_in_pdb() -> Story:
    return Story(
        [
            Start(
                pane="invoice",
                command=f"{PYTHON} -m pdb -c continue invoice.py",
                shows=r"invoice\.py\(13\)total\(\)",
            ),
            Send(pane="invoice", keys=["item\n", "type(result)\n"], shows=r"'price': '4'"),
        ]
    )


def _installer() -> Story:
    return Story(
        [
            Start(
                pane="setup",
                command="bash setup",
                shows="Password:",
                says="awaits hidden input",
            ),
            Send(
                pane="setup",
                keys=["sesame\n"],
                is_secret=True,
                shows="large",
            ),
            Send(
                pane="setup",
                keys=["2\n"],
                shows="/nonexistent/large/setup",
                says="exited with code 5",
                ending=frozenset({"5"}),
            ),
        ]
    )


def _flaky_test() -> Story:
    return Story([Run(command=FLAKY, shows="(?s)passed.*first is|first is.*passed")])


def _memory_leak() -> Story:
    return Story(
        [
            Start(pane="leak", command=f"{PYTHON} leak.py", until="answered 100"),
            Start(
                pane="top",
                command="top -d 0.5 -p PID",
                until=r" \d{6} +\d+ [A-Z] ",
                shows=r" \d{6} +\d+ [A-Z] ",
                says="screen 200x50",
            ),
            Await(pane="leak", pattern="entries", shows=r"cache has (\d+) entries"),
        ]
    )


def _large_log() -> Story:
    return Story(
        [
            Start(
                pane="chatty",
                command=f"{PYTHON} chatty.py",
                shows="all 8 connections are busy",
            ),
            Find(
                pane="chatty",
                pattern="WARN|ERROR",
                shows=r"open transaction by\s+billing.close_month",
            ),
        ]
    )


def _stubborn_process() -> Story:
    return Story(
        [
            Start(pane="worker", command=f"{PYTHON} stubborn.py"),
            Send(
                pane="worker",
                keys=["C-c", "SIGTERM", "SIGUSR2"],
                shows="(?s)signal 2.*signal 15.*in wait_for_lease",
            ),
            Send(pane="worker", keys=["SIGKILL"], says="killed by SIGKILL", ending=KILLED),
        ]
    )


def with_pid(move: Move, pid: str) -> Move:
    """Return what an agent does who knows a pid."""
    if isinstance(move, Start):
        return replace(move, command=move.command.replace("PID", pid))
    return move


def first_pid(text: str) -> str:
    """Return the first pid that a text tells, "" for none."""
    found = _PID.search(text)
    return found[1] if found else ""


def play(server: Server, story: Story) -> Cost:
    """Make the calls of a story, see that what is to be learned is, and kill its panes.

    Raises:
        AssertionError: It is not.
    """
    received = 0
    pid = ""
    panes: list[str] = []
    for number, move in enumerate(story.moves):
        tool, arguments = call_of(with_pid(move, pid), story.cwd)
        result = server.call(tool, **arguments)
        text = "\n".join(block["text"] for block in result["content"])
        received += len(text.encode())
        pid = pid or first_pid(text)
        assert not result.get("isError"), text
        if tool in ("create_pane", "run"):
            panes.append(result["_meta"]["pane_id"])
        assert re.search(move.shows, text), (number, text)
        assert re.search(move.says, text), (number, text)
    for pane in panes:
        server.call("kill_pane", pane_id=pane)
    return Cost(len(story.moves), received)
