"""What makes our end complete: the wardens that we start, and the signals that end us."""

import os
import re
import secrets
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import processes

# Socket paths have 107 bytes, and tmux expands formats in the paths of files: so short and plain.
_USABLE_DIRECTORY = re.compile(r"[A-Za-z0-9/._+-]{1,64}")


class Warden:
    """The process that owns one tmux server and everything in its panes.

    Whoever makes one must call `close`; when its owner ends without that, the kernel does.

    Attributes:
        pid: Its process id.
        directory: Its directory, mode 0700: the tmux socket and files of the owner, removed at its end.
        control_in: Where to write tmux's control mode commands, not blocking.
        control_out: Where to read what tmux prints, not blocking.
    """

    def __init__(self, argv: Callable[[Path], Sequence[str]], env: Mapping[str, str]) -> None:
        """Start it with the tmux command that `argv` makes for its directory, and this environment."""
        self.directory = _new_directory()
        tmux_in, self.control_in = os.pipe()
        self.control_out, tmux_out = os.pipe()
        lifeline, self._lifeline = os.pipe()
        program = [sys.executable, "-I", "-S", processes.__file__]
        self._process = subprocess.Popen(
            [*program, str(self.directory), str(tmux_in), str(tmux_out), *argv(self.directory)],
            stdin=lifeline,
            stdout=subprocess.DEVNULL,
            pass_fds=(tmux_in, tmux_out),
            env=dict(env),
            start_new_session=True,  # the terminal and the process group of our client are not its
        )
        self.pid = self._process.pid
        for fd in (tmux_in, tmux_out, lifeline):
            os.close(fd)
        for fd in (self.control_in, self.control_out):
            os.set_blocking(fd, False)

    @property
    def is_alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def end_descendants(self) -> None:
        """Ask it to end tmux and everything in its panes, and to keep the directory."""
        if self.is_alive:
            os.write(self._lifeline, b"k")

    def close(self) -> None:
        """Let it end everything and then itself; returns at once, and may be called again."""
        for fd in (self._lifeline, self.control_in, self.control_out):
            if fd >= 0:
                os.close(fd)
        self._lifeline = self.control_in = self.control_out = -1

    def wait(self, timeout_s: float) -> None:
        """Wait until it has ended or the time is over; blocks. Call `close` before."""
        if not self.is_alive:
            return
        fd = os.pidfd_open(self.pid)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(timeout_s * 1000)
        os.close(fd)
        self._process.poll()


def on_end_signals(end: Callable[[], None]) -> None:
    """Have SIGINT, SIGTERM and SIGHUP call `end`, in the main thread, between two steps of Python."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: end())


def _new_directory() -> Path:
    base = tempfile.gettempdir()
    if not _USABLE_DIRECTORY.fullmatch(base):
        base = "/tmp"  # noqa: S108  the name is ours alone and the directory made with mode 0700
    return Path(base) / f"tmux-debug-mcp-{os.getpid()}-{secrets.token_hex(4)}"
