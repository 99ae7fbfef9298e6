"""A PTY as coding agents' harnesses offer it: start, write and read, each with a time to yield."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from dataclasses import dataclass, field

from .tools import COLUMNS, KEYS, LOOK_S, REACT_S, ROWS, Ran, Tool, plain, run_by_marker, until

_PIECE_BYTES = 1 << 16


@dataclass
class _Session:
    pid: int
    fd: int
    output: bytearray = field(default_factory=bytearray)
    status: int | None = None
    told: int = 0


class HarnessPty(Tool):
    """What Codex calls exec_command and write_stdin."""

    title = "PTY of a harness"
    keeps_output = False

    def version(self) -> str:
        """Return what it stands for."""
        return "like Codex's exec_command and write_stdin"

    def start(self) -> None:
        """Nothing has to be started."""
        self._sessions: dict[str, _Session] = {}

    def open(self, command: str, name: str = "") -> str:
        """Start it, and yield for a second."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.home)
            os.execvpe("bash", ["bash", "-c", command], self.env)  # noqa: S606
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
        terminal = name or str(pid)
        self._sessions[terminal] = _Session(pid, fd)
        self._yield(terminal, REACT_S)
        return terminal

    def type(self, terminal: str, text: str) -> None:
        """Write it."""
        data = text.encode()
        session = self._sessions[terminal]
        while data:
            _, writable, _ = select.select([], [session.fd], [], REACT_S)
            if not writable:
                return
            data = data[os.write(session.fd, data[:1024]) :]
        self._yield(terminal, 0.0)

    def press(self, terminal: str, key: str) -> None:
        """Write what terminals send for it."""
        self.type(terminal, KEYS[key])

    def enter(self, terminal: str, *lines: str) -> None:
        """Write them all at once."""
        self.type(terminal, "".join(f"{line}\r" for line in lines))

    def read(self, terminal: str) -> str:
        """Return the output so far, without escape sequences."""
        self._yield(terminal, LOOK_S)
        return plain(self._sessions[terminal].output.decode(errors="replace"))

    def news(self, terminal: str) -> str:
        """Return what has come since the last time, as it is."""
        self._yield(terminal, LOOK_S)
        session = self._sessions[terminal]
        new = session.output[session.told :].decode(errors="replace")
        session.told = len(session.output)
        return new

    def ending(self, terminal: str) -> str:
        """Return what a later write tells."""
        until(lambda: self._has_ended(terminal), REACT_S)
        status = self._sessions[terminal].status
        return "" if status is None else str(status)

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Start it and yield until it has ended; into a shell, type it with markers."""
        if terminal:
            return run_by_marker(self, command, terminal, timeout_s)
        started = self.open(command)
        session = self._sessions[started]
        has_ended = until(lambda: self._has_ended(started), timeout_s)
        return Ran(self.read(started), session.status, has_ended=has_ended)

    def end(self, terminal: str) -> None:
        """Kill the process group."""
        os.killpg(self._sessions[terminal].pid, signal.SIGKILL)

    def finish(self) -> None:
        """Kill all process groups."""
        for session in self._sessions.values():
            if session.status is None:
                os.killpg(session.pid, signal.SIGKILL)

    def _has_ended(self, terminal: str) -> bool:
        self._yield(terminal, 0.0)
        return self._sessions[terminal].status is not None

    def _yield(self, terminal: str, yield_s: float) -> None:
        """Read what comes in a time, and note the end."""
        session = self._sessions[terminal]
        deadline = time.monotonic() + yield_s
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([session.fd], [], [], left_s)
            if not readable:
                break
            try:
                session.output += os.read(session.fd, _PIECE_BYTES)
            except OSError:  # the terminal was hung up
                break
        if session.status is None:
            pid, status = os.waitpid(session.pid, os.WNOHANG)
            if pid:
                session.status = os.waitstatus_to_exitcode(status)
