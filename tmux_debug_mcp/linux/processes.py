"""Processes, as /proc and signals know them: trees of descendants, and how to end them.

Standard library only: the supervisor (`supervise.py`) runs on this.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

# The environment variable by which a pane's processes are found again when they have left its
# process tree: the name of the supervisor's directory, a slash and the pane's id.
TAG = "MCP_DEBUG_PANE"

_TAG = f"{TAG}=".encode()
# Of a process with more threads, only these are looked at one by one.
MAX_THREADS = 256

_PF_FORKNOEXEC = 0x40
_PR_SET_CHILD_SUBREAPER = 36

# Grace period between SIGTERM and SIGKILL: clients kill their server 500 ms after asking it to end.
GRACE_S = 0.1
# A process that survives SIGKILL for this long hangs in the kernel or belongs to another user.
_GIVE_UP_S = 2.0
# One for each pane, and some for each call.
_MAX_OPEN_FILES = 65_536
# This process has too many files open, or the whole system has.
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


class Stat(NamedTuple):
    """One process in /proc/PID/stat, proc(5)'s names.

    Attributes:
        is_fork: It has not started a program since it was forked, as a subshell has not.
        reaped: Whether it has ever waited for a child that had ended: its cminflt is not 0, for no process runs
            without page faults. Of a pane.sh, whose first child is the command, that the command has ended.
        start_stack: Where the stack of its program begins, another address after each execve.
    """

    pid: int
    comm: str
    state: str
    ppid: int
    pgrp: int
    session: int
    tty: int
    tpgid: int
    is_fork: bool
    reaped: bool
    starttime: int
    start_stack: int


def read_stat(pid: int) -> Stat | None:
    """Return the process's state, or None when there is no such process."""
    data = read(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name is in parentheses and may hold any byte, parentheses too.
    name, _, rest = data.partition(b"(")[2].rpartition(b")")
    words = rest.split()
    ppid, pgrp, session, tty, tpgid = map(int, words[1:6])
    comm = name.decode(errors="replace")
    is_fork = bool(int(words[6]) & _PF_FORKNOEXEC)
    times = words[8] != b"0", int(words[19]), int(words[25])
    return Stat(pid, comm, chr(words[0][0]), ppid, pgrp, session, tty, tpgid, is_fork, *times)


def gone(pid: int) -> Stat:
    """Return the stat of a process that ended before it could be read."""
    return Stat(
        pid,
        comm="",
        state="X",
        ppid=0,
        pgrp=pid,
        session=pid,
        tty=0,
        tpgid=-1,
        is_fork=False,
        reaped=False,
        starttime=-1,
        start_stack=0,
    )


def is_on_terminal(process: Stat, path: str) -> bool:
    """Tell whether a process has this terminal, such as /dev/pts/3, as its own."""
    try:
        return os.stat(path).st_rdev == device(process.tty)
    except OSError:
        return False


def device(tty: int) -> int:
    """Return the device number of a terminal, as os.stat() has it, for what /proc/PID/stat says."""
    # As proc(5) has it: the minor number in bits 31 to 20 and 7 to 0, the major one in 15 to 8.
    return os.makedev(tty >> 8 & 0xFFF, tty & 0xFF | tty >> 12 & 0xFFF00)


def cpu_ns(pid: int, thread: str | None = None) -> int:
    """Return the processor time of a thread, or of all threads of a process, in nanoseconds.

    What is gone counts as 0.
    """
    names = threads(pid)[:MAX_THREADS] if thread is None else [thread]
    used = [read(f"/proc/{pid}/task/{name}/schedstat").split() for name in names]
    return sum(int(words[0]) for words in used if words)


def tag(pid: int) -> str:
    """Return the value of `TAG` in the environment that a process was started with, "" without it."""
    for entry in read(f"/proc/{pid}/environ").split(b"\0"):
        if entry.startswith(_TAG):
            return entry.removeprefix(_TAG).decode(errors="replace")
    return ""


def children(pid: int) -> list[int]:
    """Return the children of all threads of the process, oldest first within a thread."""
    found: list[int] = []
    for thread in threads(pid):
        found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def threads(pid: int) -> list[str]:
    """Return the ids of the threads of a process."""
    try:
        # A directory of one thread has three links, and to ask for that is faster than to list it.
        if os.stat(f"/proc/{pid}/task").st_nlink == 3:  # noqa: PLR2004
            return [str(pid)]
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def living_children(pid: int, is_meant: Callable[[Stat], bool]) -> list[int]:
    """Return the living children that are meant, oldest first; of a subreaper, none only if there are none.

    Who ends while this looks leaves its children to the subreaper, behind what has been read. So it looks again until
    all that had ended when the children were read were known to have.
    """
    ended: set[int] = set()
    while True:
        stats = {child: read_stat(child) for child in children(pid)}
        living = {child: stat for child, stat in stats.items() if stat and stat.state not in "ZX"}
        found = [child for child, stat in living.items() if is_meant(stat)]
        newly_ended = stats.keys() - living.keys() - ended
        if found or not newly_ended:
            return found
        ended |= newly_ended


def descendants(pid: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Return the children, their children and so on, parents first, without zombies and the spared and theirs.

    Of a subreaper, none only if there are none.
    """
    found = living_children(pid, lambda stat: stat.pid not in spare)
    for parent in found:
        found += [child for child in children(parent) if child not in spare and is_alive(child)]
    return found


def is_alive(pid: int) -> bool:
    """Tell whether the process is there and more than a zombie."""
    stat = read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def open_pidfd(pid: int) -> int:
    """Return a file that can be read once the process has ended, or -1 when it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1


def send_signals(pids: Iterable[int], *signals: int) -> None:
    """Send each process each signal in order; those that are gone or another user's are passed over."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def signal_exit_code(name: str) -> int:
    """Return the exit code by which a shell tells that this signal ended a program."""
    return 128 + signal.Signals[name.partition("+")[0]] + int(name.partition("+")[2] or 0)


def end_descendants(root: int, spare: frozenset[int] = frozenset()) -> bool:
    """End all descendants of a process, but the spared ones and theirs: gently, then by SIGKILL.

    A process that forks faster than it can be killed is stopped first.

    Returns:
        Whether all of them are gone.
    """
    begin = time.monotonic()
    told: set[int] = set()
    while (living := set(descendants(root, spare))) and time.monotonic() < begin + GRACE_S:
        # Also what the ending ones start, such as the sleep of pane.sh.
        send_signals(living - told, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)
        told |= living
        time.sleep(0.002)
    while living and time.monotonic() < begin + _GIVE_UP_S:
        stopped: set[int] = set()
        while living := set(descendants(root, spare)) - stopped:
            send_signals(living, signal.SIGSTOP)
            stopped |= living
        send_signals(stopped, signal.SIGKILL)
        time.sleep(0.001)
        living = set(descendants(root, spare))
    return not living


def reap_adopted(spare: frozenset[int]) -> None:
    """Reap our dead children but the spared ones, which whoever started them reaps."""
    for pid in children(os.getpid()):
        if pid not in spare and not is_alive(pid):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def program(pid: int) -> str:
    """Return the name of the file that a process runs, or nothing when that can't be told."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def runs(pid: int, path: str) -> bool:
    """Tell whether a process runs the program at this path."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", path)
    except OSError:
        return False


def arguments(pid: int) -> list[str]:
    """Return what a process was started with, its own name first."""
    return read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")[:-1]


def shares_our_files(pid: int) -> bool:
    """Tell whether a process has our user and sees the files that we see."""
    try:
        ours = os.stat("/proc/self/ns/mnt").st_ino, os.readlink("/proc/self/root"), os.geteuid()
        user = os.stat(f"/proc/{pid}").st_uid
        return ours == (os.stat(f"/proc/{pid}/ns/mnt").st_ino, os.readlink(f"/proc/{pid}/root"), user)
    except OSError:
        return False


def open_files(pid: int) -> list[str]:
    """Return the numbers of the files that a process has open."""
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []


def has_input(pid: int) -> bool:
    """Tell whether a process has something to read from the pipe that is its standard input, or is at work on it."""
    try:
        fd = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        unread = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
    except OSError:
        return False
    finally:
        os.close(fd)
    process = read_stat(pid)
    return bool(unread) or (process is not None and process.state != "S")


def open_files_limit_of(pid: int) -> int:
    """Return how many files a process may have open, or 0 when it is gone."""
    try:
        soft = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return 0
    return _MAX_OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def has_open(pid: int, path: str) -> bool:
    """Tell whether a process has a file open, be it removed."""
    for name in open_files(pid):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}").removesuffix(" (deleted)") == path:
                return True
    return False


def open_files_limit() -> str:
    """Return our soft limit of open files, as `ulimit -n` has it."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


def raise_open_files_limit() -> None:
    """Let this process have many files open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def become_subreaper(*, is_one: bool = True) -> None:
    """Make orphaned descendants children of this process instead of init's, or again of init."""
    prctl(_PR_SET_CHILD_SUBREAPER, int(is_one))


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process.

    Source: prctl(2).

    Raises:
        OSError: The kernel refuses it.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def read(path: str) -> bytes:
    """Return what a file of /proc has, or nothing where it is gone or not for us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in OUT_OF_FILES:  # which tells nothing of the process
            raise
        return b""
    try:
        # ProcessLookupError and the like: it ended meanwhile.
        data = os.read(fd, 4096)
        while data and len(data) % 4096 == 0 and (more := os.read(fd, 65536)):
            data += more
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data
