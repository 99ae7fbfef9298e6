"""pexpect, as a script of an agent uses it."""

import contextlib
import io
import termios
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pexpect

from .tools import (
    COLUMNS,
    END_S,
    KEYS,
    REACT_S,
    ROWS,
    TOGETHER_S,
    NotOfferedError,
    Ran,
    Tool,
    left_in_session,
    plain,
    run_by_marker,
    until,
)

_PRINTED_S = 0.3
# How long it reads of one of several terminals.
_TURN_S = 0.005


class Pexpect(Tool):
    """pexpect."""

    title = "pexpect"
    has_wait = True

    def version(self) -> str:
        """Return the library's own."""
        return f"pexpect {pexpect.__version__}"

    def start(self) -> None:
        """Nothing has to be started."""
        self._children: dict[str, Any] = {}
        self._printed: dict[str, io.StringIO] = {}
        self._told: Counter[str] = Counter()

    def open(self, command: str, name: str = "") -> str:
        """Spawn it."""
        child = pexpect.spawn(
            "bash",
            ["-c", command],
            encoding="utf-8",
            codec_errors="replace",
            dimensions=(ROWS, COLUMNS),
            env=self.env,
            cwd=str(self.home),
        )
        terminal = name or str(child.pid)
        child.logfile_read = self._printed[terminal] = io.StringIO()
        self._children[terminal] = child
        return terminal

    def type(self, terminal: str, text: str) -> None:
        """Send it."""
        self._children[terminal].send(text)

    def press(self, terminal: str, key: str) -> None:
        """Send what terminals send for it."""
        self._children[terminal].send(KEYS[key])

    def enter(self, terminal: str, *lines: str) -> None:
        """Send them as lines."""
        for line in lines:
            self._children[terminal].sendline(line)

    def read(self, terminal: str) -> str:
        """Return what was read so far and what is there, without escape sequences."""
        child = self._children[terminal]
        try:
            while True:
                child.read_nonblocking(1 << 16, _PRINTED_S)
        except (pexpect.TIMEOUT, pexpect.EOF):
            pass
        return plain(self._printed[terminal].getvalue())

    def screen(self, terminal: str) -> str:
        """Show what was read with its own emulator, which is deprecated."""
        self.read(terminal)
        with warnings.catch_warnings(action="ignore"):
            from pexpect.ANSI import ANSI  # noqa: PLC0415
        emulator = ANSI(ROWS, COLUMNS)
        emulator.write(self._printed[terminal].getvalue())
        return str(emulator).rstrip()

    def together(self, commands: Sequence[str], is_over: Callable[[], bool]) -> str:
        """Read of one and the other."""
        children = [self._children[self.open(command)] for command in commands]
        printed = ""

        def read() -> bool:
            nonlocal printed
            has_ended = is_over()
            for child in children:
                with contextlib.suppress(pexpect.TIMEOUT):
                    printed += child.read_nonblocking(1 << 16, _TURN_S)
            return has_ended

        until(read, TOGETHER_S, 0.0)
        return plain(printed)

    def news(self, terminal: str) -> str:
        """Return what has come since the last time, without escape sequences."""
        printed = self.read(terminal)
        new = printed[self._told[terminal] :]
        self._told[terminal] = len(printed)
        return new

    def wait(self, terminal: str, pattern: str, timeout_s: float) -> bool:
        """Expect it."""
        child = self._children[terminal]
        return bool(child.expect([pattern, pexpect.TIMEOUT, pexpect.EOF], timeout_s) == 0)

    def ending(self, terminal: str) -> str:
        """Close what has ended."""
        child = self._children[terminal]
        self.read(terminal)
        if child.isalive():
            return ""
        child.close()
        return str(child.signalstatus or child.exitstatus)

    def awaits(self, terminal: str) -> str:
        """Wait until the terminal doesn't echo, and look whether it collects lines."""
        child = self._children[terminal]
        if not child.waitnoecho(REACT_S):
            raise NotOfferedError
        is_canonical = termios.tcgetattr(child.child_fd)[3] & termios.ICANON
        return "hidden input" if is_canonical else "keys"

    def left_by(self, command: str) -> str:
        """Look at the session of the process that it has started."""
        child = self._children[self.open(command)]
        until(lambda: not child.isalive(), END_S)
        return left_in_session(str(child.pid))

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Use its own run; into a shell, type it with markers."""
        if terminal:
            return run_by_marker(self, command, terminal, timeout_s)
        output, code = pexpect.run(
            f"bash -c {command!r}",
            timeout=timeout_s,
            withexitstatus=True,
            encoding="utf-8",
            env=self.env,
        )
        return Ran(plain(output), code, has_ended=code is not None)

    def end(self, terminal: str) -> None:
        """Close it by force."""
        self._children[terminal].close(force=True)

    def finish(self) -> None:
        """Close all by force."""
        for child in self._children.values():
            child.close(force=True)
