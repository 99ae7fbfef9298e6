"""Processes on Linux: what /proc tells of them, how they are ended, and the warden.

This is the one module that knows Linux. It imports only the standard library, because it is also a program:
the *warden*, the parent of a tmux server and so the ancestor of everything in its panes. Daemons that leave
their session and their parents fall to the warden too (it is a subreaper), so when it ends its descendants,
nothing is left. It ignores signals and works on the end of its standard input, the lifeline: the kernel
closes that however its owner ends, by SIGKILL too.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# Gentle signals get this long before SIGKILL: clients kill their server 500 ms after asking it to end.
GRACE_S = 0.1
# What SIGKILL has not ended after this long hangs in the kernel or belongs to another user.
_GIVE_UP_S = 2.0
# A tmux server needs two files per pane; the panes themselves get the limit that we were started with.
_TMUX_OPEN_FILES = 4096

# What a warden does not end of. To ignore SIGCHLD is to have children reaped.
_IGNORED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD),
)


class Stat(NamedTuple):
    """One process in /proc/PID/stat, proc(5)'s names. `reaped` tells whether it ever waited for a child."""

    pid: int
    comm: str
    state: str
    ppid: int
    pgrp: int
    session: int
    tpgid: int
    reaped: bool
    starttime: int


def read_stat(pid: int) -> Stat | None:
    """Return the process's state, or None when there is no such process."""
    data = _read(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name is in parentheses and may hold any byte, parentheses too.
    name, _, rest = data.partition(b"(")[2].rpartition(b")")
    words = rest.split()
    ppid, pgrp, session, _, tpgid = map(int, words[1:6])
    comm = name.decode(errors="replace")
    return Stat(pid, comm, chr(words[0][0]), ppid, pgrp, session, tpgid, words[8] != b"0", int(words[19]))


def cpu_time(pid: int) -> bytes:
    """Return a mark that changes whenever the process runs; empty when it is gone."""
    return _read(f"/proc/{pid}/schedstat")


def has_in_environ(pid: int, entry: bytes) -> bool:
    """Tell whether the process was started with this `NAME=value` in its environment."""
    return entry in _read(f"/proc/{pid}/environ").split(b"\0")


def children(pid: int) -> list[int]:
    """Return the children of all threads of the process, oldest first within a thread."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def descendants(pid: int) -> list[int]:
    """Return the children, their children and so on, parents first, without zombies."""
    found: list[int] = []
    queue = [pid]
    for parent in queue:
        for child in children(parent):
            if is_alive(child):
                found.append(child)
                queue.append(child)
    return found


def is_alive(pid: int) -> bool:
    """Tell whether the process is there and more than a zombie."""
    stat = read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def send_signals(pids: Iterable[int], *signals: int) -> None:
    """Send each process each signal in order; those that are gone or another user's are passed over."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def end_descendants(root: int, spare: frozenset[int] = frozenset()) -> bool:
    """End all descendants of a process but the spared ones: gently, then by SIGKILL.

    A process that forks faster than it can be killed is stopped first.

    Returns:
        Whether all of them are gone.
    """
    begin = time.monotonic()
    living = _living(root, spare)
    send_signals(living, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)
    while living and time.monotonic() < begin + GRACE_S:
        time.sleep(0.002)
        living = _living(root, spare)
    while living and time.monotonic() < begin + _GIVE_UP_S:
        stopped: set[int] = set()
        while living := _living(root, spare) - stopped:
            send_signals(living, signal.SIGSTOP)
            stopped |= living
        send_signals(stopped, signal.SIGKILL)
        time.sleep(0.001)
        living = _living(root, spare)
    return not living


def open_files_limit() -> str:
    """Return our soft limit of open files, as `ulimit -n` has it."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


def become_subreaper() -> None:
    """Make orphaned descendants children of this process instead of init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _living(root: int, spare: frozenset[int]) -> set[int]:
    return set(descendants(root)) - spare


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        # ProcessLookupError and the like: it ended meanwhile.
        data = os.read(fd, 65536)
        while data and len(data) % 4096 == 0 and (more := os.read(fd, 65536)):
            data += more
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data


def _exec_tmux(control_in: int, control_out: int, argv: list[str]) -> NoReturn:
    # The client goes with the warden, so that its owner sees the warden's death at once.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = _TMUX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_TMUX_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    for number in (*_IGNORED, signal.SIGXFSZ):  # the last one Python itself ignores
        signal.signal(number, signal.SIG_DFL)
    os.dup2(control_in, 0)
    os.dup2(control_out, 1)
    os.dup2(control_out, 2)
    try:
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _remove(directory: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            with contextlib.suppress(OSError):
                os.unlink(f"{directory}/{name}")
        os.rmdir(directory)


def warden(directory: str, control_in: int, control_out: int, argv: list[str]) -> None:
    """Start tmux in a new directory of its own; at the end of standard input end all and remove it.

    A byte on standard input ends all descendants and leaves the directory.
    """
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    become_subreaper()
    os.chdir("/")
    os.mkdir(directory, 0o700)
    if os.fork() == 0:
        _exec_tmux(control_in, control_out, argv)
    os.close(control_in)
    os.close(control_out)
    while os.read(0, 1):
        end_descendants(os.getpid())
    end_descendants(os.getpid())
    _remove(directory)


if __name__ == "__main__":
    warden(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
