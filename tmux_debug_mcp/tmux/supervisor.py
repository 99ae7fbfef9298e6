"""What makes our end complete: the wardens that we start, and the signals that end us."""

import contextlib
import os
import re
import secrets
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tmux_debug_mcp
from tmux_debug_mcp.errors import StorageError, TmuxGoneError
from tmux_debug_mcp.linux import files, processes, supervise

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Starts the supervisor without the site module, whose import costs memory: only where our own
# package is has to be told.
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from tmux_debug_mcp.linux.supervise import main; main()"
_ROOT = Path(tmux_debug_mcp.__file__).parents[1]
# Socket paths have 107 bytes, and tmux expands formats in the paths of files: so short and plain.
_USABLE_DIRECTORY = re.compile(r"[A-Za-z0-9/._+-]{1,64}")

# A directory that was changed this recently may be one that is being made and not held yet.
_MAKING_S = 10.0
# How long a start may take to end what was left; clients wait for seconds.
_ABANDONED_S = 0.5


class Supervisor:
    """The process that owns one tmux server and everything in its panes.

    Whoever makes one must call `end` or `close`; when its owner ends without that, the kernel does.

    Attributes:
        pid: Its process id.
        directory: Its directory, mode 0700: the tmux socket and files of the owner, removed at its end.
        control_in: Where to write tmux's control mode commands, not blocking.
        control_out: Where to read what tmux prints, not blocking.
    """

    def __init__(self, argv: Callable[[Path], Sequence[str]], env: Mapping[str, str], runtime: str) -> None:
        """Start it with the tmux command that `argv` makes for its directory, and this environment.

        Its directory is in the first of `runtime_directories(runtime)`.
        """
        name = f"tmux-debug-mcp-{os.getpid()}-{secrets.token_hex(4)}"
        self._places = [base / name for base in runtime_directories(runtime)]
        self.directory = self._places[0]
        tmux_in, self.control_in = os.pipe()
        self.control_out, tmux_out = os.pipe()
        lifeline, self._lifeline = os.pipe()
        program = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT)]
        self._process = subprocess.Popen(
            [*program, str(self.directory), str(tmux_in), str(tmux_out), *argv(self.directory)],
            stdin=lifeline,
            stdout=subprocess.DEVNULL,
            pass_fds=(tmux_in, tmux_out),
            env=dict(env) | {processes.TAG: self.directory.name},
            start_new_session=True,  # the terminal and the process group of our client are not its
        )
        self.pid = self._process.pid
        self._holds: list[int] = []  # of directories that were made again
        for fd in (tmux_in, tmux_out, lifeline):
            os.close(fd)
        for fd in (self.control_in, self.control_out):
            os.set_blocking(fd, False)

    def file(self, name: str) -> Path:
        """Return the path of a file in its directory, which is made again if somebody has removed it.

        Raises:
            StorageError: That can't be made again.
            TmuxGoneError: It has been ended.
        """
        try:
            status = self.directory.lstat()
        except FileNotFoundError:
            self._make_again()
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error
        else:
            if not (stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()):
                raise StorageError(str(self.directory), "it was removed, and something else is there")
        return self.directory / name

    def write(self, name: str, data: bytes) -> Path:
        """Write a new file into its directory, for us alone, and return its path.

        Raises:
            StorageError: There is no room for it.
        """
        path = self.file(name)
        try:
            with open(os.open(path, _NEW_FILE, 0o600), "wb") as file:
                file.write(data)
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error
        return path

    def _make_again(self) -> None:
        """Make the directory again, or elsewhere where the one that it was in is gone as well."""
        if self._lifeline < 0:
            raise TmuxGoneError
        for place in self._places:
            try:
                place.mkdir(0o700)
                self._holds.append(files.hold(str(place)))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StorageError(str(place), f"it was removed, and {error.strerror}") from error
            self.directory = place
            return
        raise StorageError(str(self.directory), "it was removed, and that which it was in")

    def end(self) -> None:
        """Let it end everything and then itself; returns at once, and may be called again."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
            processes.send_signals([self.pid], signal.SIGCONT)  # it may have been stopped

    def close(self) -> None:
        """End it and close the pipes to tmux, which nobody may be waiting on."""
        self.end()
        for fd in (self.control_in, self.control_out):
            if fd >= 0:
                os.close(fd)
        self.control_in = self.control_out = -1
        while self._holds:
            os.close(self._holds.pop())

    def wait(self, timeout_s: float) -> None:
        """Wait until it has ended or the time is over; blocks. Call `close` before.

        When it was killed, its descendants are left to the nearest subreaper; what is in its directory is not.
        """
        if self._process.poll() is None:
            self._poll(timeout_s)
        if self._process.poll() is not None:
            files.remove(str(self.directory))

    def _poll(self, timeout_s: float) -> None:
        fd = os.pidfd_open(self.pid)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(timeout_s * 1000)
        os.close(fd)


def on_end_signals(end: Callable[[], None]) -> None:
    """Have SIGINT, SIGTERM and SIGHUP call `end`, in the main thread, between two steps of Python."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: end())


def remove_abandoned(runtime: str) -> None:
    """End and remove what is left of servers that were killed in the same instant as their wardens.

    Args:
        runtime: As for `runtime_directories`.
    """
    deadline = time.monotonic() + _ABANDONED_S
    for base in runtime_directories(runtime):
        for directory in base.glob("tmux-debug-mcp-*-*"):
            with contextlib.suppress(OSError):
                status = directory.lstat()
                is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
                if is_ours and time.time() - status.st_mtime > _MAKING_S:
                    supervise.remove_if_unused(str(directory), deadline)


def runtime_directories(runtime: str) -> list[Path]:
    """Return where directories of wardens may be, the best place first.

    That is the user's own directory for such things, which no clearing of temporary files reaches.

    Args:
        runtime: What the environment has for that directory, or nothing.
    """
    usual = [runtime, f"/run/user/{os.getuid()}"]
    found = [path for path in usual if _USABLE_DIRECTORY.fullmatch(path) and _is_private(path)]
    temporary = tempfile.gettempdir()
    # The names in it are ours alone, and directories are made with mode 0700.
    found.append(temporary if _USABLE_DIRECTORY.fullmatch(temporary) else "/tmp")  # noqa: S108
    return [Path(base) for base in dict.fromkeys(found)]


def _is_private(path: str) -> bool:
    """Tell whether a directory is ours alone and we may write there."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return is_ours and os.access(path, os.W_OK | os.X_OK)
