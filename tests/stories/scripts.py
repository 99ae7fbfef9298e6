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

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Story:
    """A broken system and how it is debugged.

    Attributes:
        calls: Tools and their arguments.
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
    one, other = ports()

    def create(command: str, **arguments: Any) -> Call:  # noqa: ANN401
        return "create_pane", {"command": command, "cwd": str(HERE), **arguments}

    def send(pane: str, keys: str | list[str], **arguments: Any) -> Call:  # noqa: ANN401
        return "send_keys", {"pane_id": pane, "keys": keys, **arguments}

    return {
        "two services that deadlock": Story(
            [
                create(f"{PYTHON} bank.py north {one} {other}", name="north", wait_for="ready"),
                create(f"{PYTHON} bank.py south {other} {one}", name="south", wait_for="ready"),
                send("north", "pay 5\n", timeout_s=0),
                send("south", "pay 7\n", wait_for="asked to"),
                send("north", "SIGUSR1"),
                send("south", "SIGUSR1"),
            ],
            {
                4: r"in serve\n(.*\n)*.*in ask\n.*in main",
                5: r"in serve\n(.*\n)*.*in ask\n.*in main",
            },
        ),
        "a full-screen program": Story(
            [create(f"{PYTHON} editor.py"), send("debug-1", ["j", "j", "j", "d"])],
            {0: r"3 items\n  \* alpha", 1: r"line 20, in main\n +del items\[at\]\n.*\n?IndexError"},
        ),
        "pdb on a crash": Story(
            [
                create(f"{PYTHON} -m pdb -c continue invoice.py"),
                send("debug-1", ["item\n", "type(result)\n"]),
            ],
            {0: r"invoice\.py\(13\)total\(\)", 1: r"'price': '4'"},
        ),
        "an installer with password and menu": Story(
            [
                create("bash setup"),
                send("debug-1", ["sesame\n", "2\n"], secret=True, wait_for="code|installed"),
            ],
            {0: "awaits hidden input", 1: "(?s)/nonexistent/large/setup.*exited with code 5"},
        ),
        "a flaky test": Story(
            [
                ("run", {"command": FLAKY, "cwd": str(HERE)}),
            ],
            {0: "(?s)passed.*first is|first is.*passed"},
        ),
        "a memory leak": Story(
            [
                create(f"{PYTHON} leak.py", name="leak", wait_for="answered 100"),
                create("top -d 0.5 -p PID", wait_for=r" \d{6} +\d+ [A-Z] "),
                ("wait", {"pane_id": "leak", "pattern": "entries", "since": 0}),
            ],
            {1: "screen 200x50", 2: r"cache has (\d+) entries"},
        ),
        "a log of 10 MB": Story(
            [
                create(f"{PYTHON} chatty.py", timeout_s=30),
                ("capture_pane", {"pane_id": "debug-1", "pattern": "WARN|ERROR", "lines": 5}),
            ],
            {0: "all 8 connections are busy", 1: "open transaction by billing.close_month"},
        ),
        "a process that ignores signals": Story(
            [
                create(f"{PYTHON} stubborn.py"),
                send("debug-1", ["C-c", "SIGTERM", "SIGUSR2"]),
                send("debug-1", "SIGKILL"),
            ],
            {1: "(?s)signal 2.*signal 15.*in wait_for_lease", 2: "killed by SIGKILL"},
        ),
    }


def play(server: Server, story: Story) -> Cost:
    """Make the calls of a story, and see that what is to be learned is.

    Raises:
        AssertionError: It is not.
    """
    received, pid = 0, ""
    for number, (tool, arguments) in enumerate(story.calls):
        given = {
            key: value.replace("PID", pid) if key == "command" else value
            for key, value in arguments.items()
        }
        result = server.call(tool, **given)
        text = "\n".join(block["text"] for block in result["content"])
        pid = pid or "".join(re.findall(r"\(pid (\d+)\)", text)[-1:])
        received += len(text.encode())
        assert not result.get("isError"), text
        assert re.search(story.learned.get(number, ""), text), (number, text)
    return Cost(len(story.calls), received)
