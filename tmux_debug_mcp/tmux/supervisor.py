"""The handle of a supervisor process, and the cleanup of what supervisors can leave behind.

The process itself runs `linux/supervise.py`. It ends when its *lifeline* closes: a pipe that only
our process holds, so the kernel closes it however our process ends.
"""

import contextlib
import os
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
from tmux_debug_mcp.sockets.servers import bases, is_plain

# Runs the supervisor without the site module, which takes memory. So sys.path lacks our package:
# the first argument is the directory to add. os._exit saves time, since we wait for the end.
_PROGRAM = (
    "import os, sys; sys.path.append(sys.argv.pop(1)); "
    "from tmux_debug_mcp.linux.supervise import main; main(); os._exit(0)"
)
_ROOT = Path(tmux_debug_mcp.__file__).parents[1]
# A directory that was changed more recently may belong to a supervisor that has not locked it yet.
_MIN_ABANDONED_AGE_S = 10.0
# Time for `remove_abandoned`. It delays our start, for which clients wait a few seconds.
_REMOVE_ABANDONED_S = 0.5


class Supervisor:
    """A supervisor process, which owns one tmux server and everything in its panes.

    Creating it starts the process. Whoever does must call `end` or `close`; the kernel closes the
    lifeline of an owner that dies first.

    `argv` returns the command that starts tmux, given the supervisor's directory, which is in the
    first of `runtime_directories(runtime)`. `owners` is a directory that this process holds, ""
    for none. The supervisor removes it if this process is killed.

    Raises:
        OSError: It can't be started. Nothing is left of it.

    Attributes:
        pid: The process id of the supervisor.
        directory: The supervisor's directory, mode 0700, for the tmux socket and the owner's files.
            The supervisor creates it, and removes it when it ends.
        control_in: The non-blocking file descriptor to write control mode commands to.
        control_out: The non-blocking file descriptor to read tmux's output from.
    """

    def __init__(
        self,
        argv: Callable[[Path], Sequence[str]],
        env: Mapping[str, str],
        runtime: str,
        owners: str = "",
    ) -> None:
        name = f"tmux-debug-mcp-{os.getpid()}-{secrets.token_hex(4)}"
        self._candidates = [base / name for base in runtime_directories(runtime)]
        self.directory = self._candidates[0]
        self._locks: list[int] = []  # of directories that `_make_again` made
        opened: list[int] = []
        try:
            for _ in range(3):
                opened += os.pipe()
            tmux_in, self.control_in, self.control_out, tmux_out, lifeline, self._lifeline = opened
            program = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT)]
            fds = [str(tmux_in), str(tmux_out)]
            arguments = [str(self.directory), owners, *fds, *argv(self.directory)]
            self._process = subprocess.Popen(
                [*program, *arguments],
                stdin=lifeline,
                stdout=subprocess.DEVNULL,
                pass_fds=(tmux_in, tmux_out),
                env={**env, processes.TAG: self.directory.name},
                start_new_session=True,  # out of reach of signals to our client's process group
            )
        except BaseException:
            for fd in opened:
                os.close(fd)
            raise
        self.pid = self._process.pid
        for fd in (tmux_in, tmux_out, lifeline):
            os.close(fd)
        for fd in (self.control_in, self.control_out):
            os.set_blocking(fd, False)

    def file(self, name: str) -> Path:
        """Return the path of a file in the directory. Make that again if somebody removed it.

        Raises:
            StorageError: The directory was removed and can't be made again.
            TmuxGoneError: The directory was removed and the supervisor was ended.
        """
        try:
            status = self.directory.lstat()
        except FileNotFoundError:
            self._make_again()
            return self.directory / name
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error
        if not _is_own_directory(status):
            reason = "it was removed, and something else is there"
            raise StorageError(str(self.directory), reason)
        return self.directory / name

    def _make_again(self) -> None:
        """Make the directory again, in the first of the runtime directories that still exists."""
        if self._lifeline < 0:  # nobody would remove the new directory
            raise TmuxGoneError
        for directory in self._candidates:
            try:
                directory.mkdir(0o700)
                self._locks.append(files.hold(str(directory)))
            except FileNotFoundError:
                continue
            except OSError as error:
                reason = f"it was removed, and can't be made again: {error.strerror}"
                raise StorageError(str(directory), reason) from error
            self.directory = directory
            return
        raise StorageError(
            str(self.directory), "it was removed, and so were the directories that could contain it"
        )

    def end(self) -> None:
        """Tell the supervisor to end everything and then itself.

        Returns at once, and may be called again.
        """
        if self._lifeline >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._lifeline, b"\n")  # we were not killed
            os.close(self._lifeline)
            self._lifeline = -1
            # A supervisor that was stopped would not notice.
            processes.send_signals([self.pid], signal.SIGCONT)

    def close(self) -> None:
        """Do what `end` does, and close the pipes to tmux. No task may wait for them."""
        self.end()
        for fd in (self.control_in, self.control_out):
            if fd >= 0:
                os.close(fd)
        self.control_in = self.control_out = -1
        while self._locks:
            os.close(self._locks.pop())

    def wait(self, timeout_s: float) -> None:
        """Block until the supervisor has ended or the timeout is over. Call `close` first.

        Also removes the directory of a supervisor that was killed. The descendants of such a
        supervisor go to the nearest subreaper.
        """
        if self._process.poll() is None:
            fd = os.pidfd_open(self.pid)
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(timeout_s * 1000)
            os.close(fd)
        if self._process.poll() is not None:
            files.remove(str(self.directory))


def remove_abandoned(runtime: str) -> None:
    """Remove the directories and processes of servers that were killed with their supervisors."""
    deadline = time.monotonic() + _REMOVE_ABANDONED_S
    for base in runtime_directories(runtime):
        for directory in base.glob("tmux-debug-mcp-*-*"):
            with contextlib.suppress(OSError):
                status = directory.lstat()
                age_s = time.time() - status.st_mtime
                if _is_own_directory(status) and age_s > _MIN_ABANDONED_AGE_S:
                    supervise.remove_if_unused(str(directory), deadline)


def runtime_directories(runtime: str) -> list[Path]:
    """Return the directories that may hold supervisors' directories, the best first.

    The user's runtime directory comes first, since nothing cleans it up like temporary directories;
    the directory for temporary files comes last. `runtime` is $XDG_RUNTIME_DIR, "" if it is not
    set.
    """
    return [Path(base) for base in bases(runtime, temporary_directory())]


def temporary_directory() -> str:
    """Return the directory for temporary files."""
    temporary = tempfile.gettempdir()
    # Our directories in either have random names and mode 0700.
    return temporary if is_plain(temporary) else "/tmp"  # noqa: S108


def _is_own_directory(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
