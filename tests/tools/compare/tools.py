"""What a tool that gives agents a terminal is asked for, so that it can be compared.

An adapter does what a good agent would do with the tool: it uses the tool's own waiting and
running where there are such, and looks again and again where there are not. What can't be done
with a tool raises `NotOfferedError`.
"""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

COLUMNS, ROWS = 120, 40
# What an agent that can only look leaves between two looks.
LOOK_S = 0.5
# What it gives a program to react.
REACT_S = 1.0
# What it gives a short program to end, and a command on another machine.
END_S = 5.0
ELSEWHERE_S = 10.0
# The longest that two programs may print in turn.
TOGETHER_S = 20.0

# What terminals send for keys. Source: xterm control sequences.
KEYS = {
    "Enter": "\r",
    "C-c": "\x03",
    "C-d": "\x04",
    "Up": "\x1b[A",
    "F5": "\x1b[15~",
    "q": "q",
}


class NotOfferedError(Exception):
    """The tool has no way to do this."""


@dataclass(frozen=True)
class Ran:
    """What a tool says of a command that it has run.

    Attributes:
        output: The command's output, without blanks and line feeds at its end.
        exit_code: None if the tool tells none.
        has_ended: Whether the tool says that the command has ended.
    """

    output: str
    exit_code: int | None
    has_ended: bool = True


class Tool:
    """A tool, started for one truth.

    Args:
        command: What starts it, where that is for the user to say.
        home: A private directory, empty at first.
        env: The environment for all that it starts.
    """

    title: ClassVar[str]
    # Whether it waits for patterns itself.
    has_wait: ClassVar[bool] = False
    # Whether an agent can search what was printed long ago.
    keeps_output: ClassVar[bool] = True

    def __init__(self, command: str, home: Path, env: Mapping[str, str]) -> None:
        self.command = command
        self.home = home
        self.env = dict(env)
        # How much an agent has done with it, and how much text it was sent for that.
        self.turns = 0
        self.received = 0

    def version(self) -> str:
        """Return the name and version of what is compared."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the tool."""

    def finish(self) -> None:
        """End it as its user would."""

    def die(self) -> None:
        """End it by SIGKILL: by default this process, which uses it."""
        os.kill(os.getpid(), signal.SIGKILL)

    def open(self, command: str, name: str = "") -> str:
        """Start a command in a new terminal, and return what the tool calls that."""
        raise NotOfferedError

    def type(self, terminal: str, text: str) -> None:
        """Type text."""
        raise NotOfferedError

    def press(self, terminal: str, key: str) -> None:
        """Press a key, one of `KEYS`."""
        raise NotOfferedError

    def enter(self, terminal: str, *lines: str) -> None:
        """Type lines, each with Enter; several go into one call where the tool takes them."""
        for line in lines:
            self.type(terminal, line)
            self.press(terminal, "Enter")

    def submit(self, terminal: str, line: str) -> None:
        """Type a line and Enter into a program that takes both for a paste if they come at once.

        A good agent leaves some time between them, unless the tool does.
        """
        self.type(terminal, line)
        time.sleep(LOOK_S)
        self.press(terminal, "Enter")

    def read(self, terminal: str) -> str:
        """Return all that the program printed, as far as the tool has it."""
        raise NotOfferedError

    def screen(self, terminal: str) -> str:
        """Return the rows of the screen as a person would see them."""
        raise NotOfferedError

    def news(self, terminal: str) -> str:
        """Return what an agent looks at after an action: the screen, unless there is none."""
        return self.screen(terminal)

    def together(self, commands: Sequence[str], is_over: Callable[[], bool]) -> str:
        """Start commands, each in a terminal of its own, and return what they print until the end.

        That is one text, in which the lines of all of them are in the order of printing.
        """
        raise NotOfferedError

    def wait(self, terminal: str, pattern: str, timeout_s: float) -> bool:
        """Wait for a pattern; return whether the tool says that it came."""
        return until(lambda: bool(re.search(pattern, self.read(terminal))), timeout_s, LOOK_S)

    def ending(self, terminal: str) -> str:
        """Return how the program ended, such as `3` or `SIGSEGV`, and an empty text if it runs."""
        raise NotOfferedError

    def left_by(self, command: str) -> str:
        """Run a command to its end in a terminal, and return what it has left running there.

        By default, a shell runs it, and `ps` then lists the processes of the shell's terminal.
        """
        shell = self.open("bash --norc")
        time.sleep(LOOK_S)
        for line in (command, "ps"):
            self.enter(shell, line)
            time.sleep(REACT_S)
        return self.read(shell)

    def awaits(self, terminal: str) -> str:
        """Return what the program awaits: `input`, `hidden input`, `keys`, or an empty text."""
        raise NotOfferedError

    def blocked_on(self, terminal: str) -> str:
        """Return what the program is blocked on. Any shell can at least list all locks."""
        return self.run("lslocks -n -u -o PID,PATH,BLOCKER").output

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Run a command to its end, in the shell of a terminal where one is given."""
        raise NotOfferedError

    def run_elsewhere(self, command: str, terminal: str) -> Ran:
        """Run a command in the shell of a terminal, which is on another machine."""
        return run_by_marker(self, command, terminal, ELSEWHERE_S, has_files=False)

    def end(self, terminal: str) -> None:
        """End the terminal with all that runs in it."""
        raise NotOfferedError


# Escape sequences as scripts remove them from what a terminal prints.
_SEQUENCES = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Za-z]|\x1b[=>]"
)


def plain(printed: str) -> str:
    """Return what was printed on a terminal without escape sequences, as a script would read it."""
    text = _SEQUENCES.sub("", printed).replace("\r\n", "\n")
    return re.sub(r"^\r+", "", text, flags=re.MULTILINE).rstrip()


def until(condition: Callable[[], bool], timeout_s: float, poll_s: float = 0.02) -> bool:
    """Wait until a condition holds; return whether it did in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


def ending_in_shell(tool: Tool, terminal: str) -> str:
    """Return how a program ended, as the shell that started it says."""
    tool.enter(terminal, 'echo "status=$?"')
    time.sleep(REACT_S)
    found = re.findall(r"^status=(\d+)$", tool.read(terminal), re.MULTILINE)
    return found[-1] if found else ""


def awaits_by_modes(modes: Callable[[], str]) -> str:
    """Return what a program awaits if it reads, as far as the output of `stty -a` tells."""
    until(lambda: "-echo " in modes(), REACT_S, LOOK_S)
    seen = modes()
    if "-icanon" in seen:
        return "keys"
    if "-echo " in seen:
        return "hidden input"
    raise NotOfferedError


def left_in_session(pid: str) -> str:
    """Return what runs in the session that a process has led."""
    command = ["ps", "-o", "pid,args", "-s", pid]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def run_by_marker(
    tool: Tool, command: str, terminal: str, timeout_s: float, *, has_files: bool = True
) -> Ran:
    """Run a command in a shell where there is no tool for it.

    The shell runs it between two markers. The command is in a file, or on the line if the shell has
    no files of this machine. After the timeout it is interrupted.
    """
    number = time.monotonic_ns()
    path = tool.home / f"command-{number}"
    path.write_text(f"{command}\n")
    runs = f". {path}" if has_files else f"eval {shlex.quote(command)}"
    tool.enter(terminal, f'echo "begin-{number}"; {runs}; echo "end-{number} $?"')
    pattern = re.compile(rf"^begin-{number}$\n(.*?)end-{number} (\d+)$", re.MULTILINE | re.DOTALL)
    found: list[re.Match[str]] = []

    def has_ended() -> bool:
        found[:] = pattern.finditer(tool.read(terminal))
        return bool(found)

    if until(has_ended, timeout_s, LOOK_S):
        return Ran(found[0][1].rstrip(), int(found[0][2]))
    printed = tool.read(terminal).rpartition(f"begin-{number}\n")[2]
    tool.press(terminal, "C-c")
    return Ran(printed.rstrip(), None, has_ended=False)
