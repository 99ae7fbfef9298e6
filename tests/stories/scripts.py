"""The scripts of the stories: what a good agent calls, and what it has learned then."""

import re
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wire import Server

HERE = Path(__file__).parent
PYTHON = shlex.quote(sys.executable)

FLAKY = (
    f"for seed in 1 2 3 4 5 6; do PYTHONHASHSEED=$seed {PYTHON} test_flaky.py 2>&1 | tail -n 1; "
    "done"
)

# In the arguments of calls, this is the id of the story's first pane.
PANE = "PANE"

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Story:
    """A broken system and how it is debugged.

    Attributes:
        calls: Tools and their arguments. PID in a command is the pid that an answer has told first.
        learned: What the answers to these calls have in them, by the number of the call.
    """

    calls: Sequence[Call]
    learned: Mapping[int, str]


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


def stories() -> dict[str, Story]:
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


def _create(command: str, **arguments: Any) -> Call:  # noqa: ANN401
    return "create_pane", {"command": command, "cwd": str(HERE), **arguments}


def _send(pane: str, keys: str | list[str], **arguments: Any) -> Call:  # noqa: ANN401
    return "send_keys", {"pane_id": pane, "keys": keys, **arguments}


def _wait(pane: str, pattern: str) -> Call:
    return "wait", {"pane_id": pane, "pattern": pattern, "since": 0}


def _deadlock() -> Story:
    one, other = ports()
    waits_for_answer = r"in serve\n(.*\n)*.*in ask\n.*in main"
    return Story(
        [
            _create(f"{PYTHON} bank.py north {one} {other}", name="north", wait_for="ready"),
            _create(f"{PYTHON} bank.py south {other} {one}", name="south", wait_for="ready"),
            _send("south", "pay 7\n", wait_for="pay 7"),
            _send("north", ["pay 5\n", "yes\n"]),
            _wait("south", "asked to"),
            _send("south", "yes\n", timeout_s=0),
            _wait("north", "asked to"),
            _send("north", "SIGUSR1"),
            _send("south", "SIGUSR1"),
        ],
        {7: waits_for_answer, 8: waits_for_answer},
    )


def _full_screen_program() -> Story:
    return Story(
        [
            _create(f"{PYTHON} editor.py"),
            _send(PANE, ["j", "j", "j", "d"]),
        ],
        {
            0: r"3 items\n  \* alpha",
            1: r"line 20, in main\n +del items\[at\]\n.*\n?IndexError",
        },
    )


def _crash_in_pdb() -> Story:
    return Story(
        [
            _create(f"{PYTHON} -m pdb -c continue invoice.py"),
            _send(PANE, ["item\n", "type(result)\n"]),
        ],
        {0: r"invoice\.py\(13\)total\(\)", 1: r"'price': '4'"},
    )


def _installer() -> Story:
    return Story(
        [
            _create("bash setup"),
            _send(PANE, ["sesame\n", "2\n"], secret=True, wait_for="code|installed"),
        ],
        {0: "awaits hidden input", 1: "(?s)/nonexistent/large/setup.*exited with code 5"},
    )


def _flaky_test() -> Story:
    return Story(
        [("run", {"command": FLAKY, "cwd": str(HERE)})],
        {0: "(?s)passed.*first is|first is.*passed"},
    )


def _memory_leak() -> Story:
    return Story(
        [
            _create(f"{PYTHON} leak.py", name="leak", wait_for="answered 100"),
            _create("top -d 0.5 -p PID", wait_for=r" \d{6} +\d+ [A-Z] "),
            ("wait", {"pane_id": "leak", "pattern": "entries", "since": 0}),
        ],
        {1: "screen 200x50", 2: r"cache has (\d+) entries"},
    )


def _large_log() -> Story:
    return Story(
        [
            _create(f"{PYTHON} chatty.py", timeout_s=30),
            ("capture_pane", {"pane_id": PANE, "pattern": "WARN|ERROR", "lines": 5}),
        ],
        {0: "all 8 connections are busy", 1: "open transaction by billing.close_month"},
    )


def _stubborn_process() -> Story:
    return Story(
        [
            _create(f"{PYTHON} stubborn.py"),
            _send(PANE, ["C-c", "SIGTERM", "SIGUSR2"]),
            _send(PANE, "SIGKILL"),
        ],
        {1: "(?s)signal 2.*signal 15.*in wait_for_lease", 2: "killed by SIGKILL"},
    )


def play(server: Server, story: Story) -> Cost:
    """Make the calls of a story, see that what is to be learned is, and kill its panes.

    Raises:
        AssertionError: It is not.
    """
    received = 0
    pid = ""
    panes: list[str] = []
    for number, (tool, arguments) in enumerate(story.calls):
        given = dict(arguments)
        if "command" in given:
            given["command"] = given["command"].replace("PID", pid)
        if given.get("pane_id") == PANE:
            given["pane_id"] = panes[0]
        result = server.call(tool, **given)
        text = "\n".join(block["text"] for block in result["content"])
        received += len(text.encode())
        if not pid:
            pid = _last_pid(text)
        assert not result.get("isError"), text
        if tool in ("create_pane", "run"):
            panes.append(result["_meta"]["pane_id"])
        assert re.search(story.learned.get(number, ""), text), (number, text)
    for pane in panes:
        server.call("kill_pane", pane_id=pane)
    return Cost(len(story.calls), received)


def _last_pid(text: str) -> str:
    """Return the pid that the last status line of an answer has, "" for none."""
    pids = re.findall(r"\(pid (\d+)\)", text)
    return pids[-1] if pids else ""
