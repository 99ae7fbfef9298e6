"""Processes: what proc(5) says about them, trees of descendants, and how to end them.

Standard library only, and of that only what is light: the supervisor (`supervise.py`) uses this.
"""

import _signal as signal  # `signal` imports enum
import contextlib
import ctypes
import errno
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator

# The environment variable by which a pane's processes are found when they have left its tree.
# Its value: the name of the supervisor's directory, a slash and the pane's id.
TAG = "MCP_DEBUG_PANE"

# Threads of one process that are inspected; a process may have thousands.
MAX_THREADS = 256
# Error numbers that mean that this process, or the system, has too many files open.
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)

# Grace period between SIGTERM and SIGKILL: clients kill their server 500 ms after asking it to end.
_GRACE_S = 0.1
_TAG_PREFIX = f"{TAG}=".encode()
# A process that survives SIGKILL for this long hangs in the kernel or belongs to another user.
_GIVE_UP_S = 2.0
# A shell reports a program that signal N ended with this exit code plus N. Source: POSIX, sh.
_SIGNAL_BASE = 128

# A read of a file in /proc that returns no more than this has reached its end: the kernel hands out
# pages of 4096 bytes, and no entry of a list that we read is longer than the rest.
_MAX_LAST_READ_BYTES = 2048

# From the kernel's linux/sched.h and linux/prctl.h.
_PF_EXITING = 0x4
_PF_FORKNOEXEC = 0x40
_PR_SET_CHILD_SUBREAPER = 36
# From linux/posix-timers_types.h: the clock of a process that counts in nanoseconds.
_CPUCLOCK_SCHED = 2
_CPUCLOCK_PID_SHIFT = 3


class Stat:
    """A process as /proc/PID/stat describes it, with the names of proc(5).

    Not a named tuple, since `typing` is not light.

    Attributes:
        is_fork: It has not called execve(2) since it was forked, like a subshell.
        has_waited: It has waited for a child that had ended: cminflt is not 0, as no process runs
            without page faults.
        start_stack: The address of the bottom of its stack, which changes with each execve(2).
    """

    def __init__(
        self,
        pid: int,
        comm: str = "",
        state: str = "X",
        ppid: int = 0,
        pgrp: int = 0,
        session: int = 0,
        tty: int = 0,
        tpgid: int = -1,
        starttime: int = -1,
        start_stack: int = 0,
        *,
        is_fork: bool = False,
        has_waited: bool = False,
    ) -> None:
        self.pid = pid
        self.comm = comm
        self.state = state
        self.ppid = ppid
        self.pgrp = pgrp
        self.session = session
        self.tty = tty
        self.tpgid = tpgid
        self.starttime = starttime
        self.start_stack = start_stack
        self.is_fork = is_fork
        self.has_waited = has_waited

    @property
    def has_begun_command(self) -> bool:
        """Whether this is a pane.sh whose command has called execve(2), or has ended."""
        below = map(read_stat, children(self.pid))
        return any(stat and not stat.is_fork for stat in below) or self.has_ended_command

    @property
    def has_ended_command(self) -> bool:
        """Whether this is a pane.sh whose command has ended. From then on, it ignores SIGTTIN.

        That it has waited for a child does not suffice: a program can add children to its parent.
        """
        return self.has_waited and _ignores(self.pid, signal.SIGTTIN)


def read_stat(pid: int) -> Stat | None:
    """Return the state of a process, or None if there is no such process."""
    line = read(f"/proc/{pid}/stat")
    if not line:
        return None
    # The name is in parentheses and may contain any byte, even a parenthesis.
    comm, _, rest = line.partition(b"(")[2].rpartition(b")")
    fields = rest.split(None, 26)  # fields[N] is field N + 3 of proc(5)
    ppid, pgrp, session, tty, tpgid, flags = map(int, fields[1:7])
    is_fork, has_waited = bool(flags & _PF_FORKNOEXEC), fields[8] != b"0"
    start = int(fields[19]), int(fields[25])
    name, state = comm.decode(errors="replace"), chr(fields[0][0])
    ids = ppid, pgrp, session, tty, tpgid
    return Stat(pid, name, state, *ids, *start, is_fork=is_fork, has_waited=has_waited)


def _ignores(pid: int, number: int) -> bool:
    """Return whether a process ignores a signal, or is gone."""
    [mask] = signal_masks(pid, "SigIgn")
    return mask is None or bool(mask >> number - 1 & 1)


def signal_masks(pid: int, *names: str) -> list[int | None]:
    """Return sets of signals, as bits, by names such as "SigCgt"; None if the process is gone.

    Source: proc(5), /proc/PID/status.
    """
    status = read(f"/proc/{pid}/status")
    masks = [status.partition(f"\n{name}:\t".encode())[2][:16] for name in names]
    return [int(mask, 16) if mask else None for mask in masks]


def read_living(pid: int, starttime: int) -> Stat | None:
    """Return the state of the process with this id and start time.

    None once it has ended, even while it is a zombie or another process has its id.
    """
    stat = read_stat(pid)
    if stat is None or stat.state in "ZX" or stat.starttime != starttime:
        return None
    return stat


def gone(pid: int) -> Stat:
    """Return a stat for a process that ended before its own could be read."""
    return Stat(pid, pgrp=pid, session=pid)


def is_alive(pid: int) -> bool:
    """Tell whether the process exists and is not a zombie."""
    stat = read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def cpu_ns(pid: int, thread: str) -> int:
    """Return the processor time of a thread in nanoseconds, 0 if it is gone."""
    words = read(f"/proc/{pid}/task/{thread}/schedstat").split()
    return int(words[0]) if words else 0


def run_ns(pid: int) -> int:
    """Return the processor time of a process in nanoseconds, 0 if it is gone.

    Threads that have ended count, too. This is a single system call, unlike reading a file in
    /proc. Source: clock_getcpuclockid(3).
    """
    try:
        return time.clock_gettime_ns(~pid << _CPUCLOCK_PID_SHIFT | _CPUCLOCK_SCHED)
    except OSError:
        return 0


def threads(pid: int, most: int | None = None) -> list[str]:
    """Return a process's thread ids, at most `most`; none if it is gone."""
    try:
        # A directory has 2 links and 1 for each subdirectory; stat(2) is faster than a listing.
        has_one_thread = os.stat(f"/proc/{pid}/task").st_nlink == 3  # noqa: PLR2004
        if has_one_thread:
            return [str(pid)][:most]
        with os.scandir(f"/proc/{pid}/task") as entries:
            return [entry.name for entry in itertools.islice(entries, most)]
    except OSError:
        return []


def is_asleep(pid: int, thread: str) -> bool:
    """Tell whether a thread sleeps until something happens, and is not about to end."""
    fields = read(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split()
    if not fields:
        return False
    return fields[0] == b"S" and not int(fields[6]) & _PF_EXITING


def tag(pid: int) -> str:
    """Return the value of `TAG` in the environment that a process was started with, or ""."""
    for variable in read(f"/proc/{pid}/environ").split(b"\0"):
        if variable.startswith(_TAG_PREFIX):
            return variable.removeprefix(_TAG_PREFIX).decode(errors="replace")
    return ""


def program(pid: int) -> str:
    """Return the name of the executable file of a process, or "" if we can't know it."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def runs(pid: int, path: str) -> bool:
    """Tell whether a process runs the executable file at this path."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", path)
    except OSError:
        return False


def arguments(pid: int) -> list[str]:
    """Return the argument vector of a process, argv[0] first; empty if it is gone or a zombie."""
    return read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")[:-1]


def shares_our_files(pid: int) -> bool:
    """Tell whether a process runs as our user, in our mount namespace and root directory."""
    try:
        user = os.stat(f"/proc/{pid}").st_uid
        namespaces = [os.stat(f"/proc/{one}/ns/mnt").st_ino for one in ("self", pid)]
        roots = [os.readlink(f"/proc/{one}/root") for one in ("self", pid)]
    except OSError:
        return False
    return user == os.geteuid() and len(set(namespaces)) == len(set(roots)) == 1


def open_files(pid: int) -> Iterator[str]:
    """Yield the numbers of a process's file descriptors; none if it is gone or another user's.

    They are listed while they are asked for, since there may be 100,000.
    """
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            yield entry.name


def has_open(pid: int, file: os.stat_result) -> bool:
    """Tell whether a process has a file open, even if the file was removed or renamed since."""
    for number in open_files(pid):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), file):
                return True
    return False


def is_busy(pid: int) -> bool:
    """Tell whether a process is awake, as it is once it has got the input that it waited for."""
    stat = read_stat(pid)
    return stat is not None and stat.state != "S"


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process, zombies too, oldest first in each thread."""
    return [child for thread in threads(pid) for child in children_of(pid, thread)]


def children_of(pid: int, thread: str) -> list[int]:
    """Return the children of a thread, zombies too, oldest first. Source: proc(5)."""
    return list(map(int, read(f"/proc/{pid}/task/{thread}/children").split()))


def living_children(pid: int, is_meant: Callable[[Stat], bool]) -> list[int]:
    """Return the children that are not zombies and that `is_meant` accepts, oldest first.

    For a subreaper, an empty list is certain. A child that ends while the kernel lists children
    leaves its own to the subreaper, at a place in the list that the kernel may have passed. So we
    read the list again while children have ended since the last reading.
    """
    ended: set[int] = set()
    while True:
        stats = {child: read_stat(child) for child in children(pid)}
        living = {child: stat for child, stat in stats.items() if stat and stat.state not in "ZX"}
        meant = [child for child, stat in living.items() if is_meant(stat)]
        newly_ended = stats.keys() - living.keys() - ended
        if meant or not newly_ended:
            return meant
        ended |= newly_ended


def descendants(pid: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Return the living descendants of a process, parents before their children.

    Those of `spare` are left out, with their descendants. For a subreaper, an empty list is
    certain, as `living_children` explains.
    """
    pids = living_children(pid, lambda stat: stat.pid not in spare)
    for parent in pids:  # which grows in this loop
        pids += [child for child in children(parent) if child not in spare and is_alive(child)]
    return pids


def end_descendants(root: int, spare: frozenset[int] = frozenset()) -> bool:
    """End the descendants of a process: by SIGTERM, and after a grace period by SIGKILL.

    Those of `spare` are left alone, with their descendants. Returns whether all others are gone.
    """
    begin = time.monotonic()
    signalled: set[int] = set()
    # Those started meanwhile are asked to end, too, such as the sleep of pane.sh.
    while time.monotonic() < begin + _GRACE_S:
        living = set(descendants(root, spare))
        if not living:
            return True
        send_signals(living - signalled, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)
        signalled |= living
        time.sleep(0.002)
    while descendants(root, spare):
        if time.monotonic() >= begin + _GIVE_UP_S:
            return False
        stopped: set[int] = set()
        # Stop all of them first: a program could fork faster than it is killed.
        while running := set(descendants(root, spare)) - stopped:
            send_signals(running, signal.SIGSTOP)
            stopped |= running
        send_signals(stopped, signal.SIGKILL)
        time.sleep(0.001)
    return True


def send_signals(pids: Iterable[int], *signals: int) -> None:
    """Send each process each signal, in order; ignore processes that are gone or another user's."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def signal_exit_code(number: int) -> int:
    """Return the exit code that a shell gives a program killed by a signal: 128 plus its number."""
    return _SIGNAL_BASE + number


def exit_code_signal(exit_code: int) -> int:
    """Return the number of the signal with this exit code; 0 or less if there is none."""
    return exit_code - _SIGNAL_BASE


def open_pidfd(pid: int) -> int:
    """Return a descriptor that becomes readable when the process ends, or -1 if it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1


def reap_adopted(spare: frozenset[int]) -> None:
    """Reap our children that have ended, except the spared, which another part of us reaps."""
    for pid in children(os.getpid()):
        if pid not in spare and not is_alive(pid):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def become_subreaper(*, is_one: bool = True) -> None:
    """Make this process the parent of its orphaned descendants; with False, stop being it.

    Source: prctl(2), PR_SET_CHILD_SUBREAPER.
    """
    prctl(_PR_SET_CHILD_SUBREAPER, int(is_one))


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, or raise OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def read(path: str, max_bytes: int | None = None) -> bytes:
    """Return the content of a file in /proc; b"" if its process is gone or we may not read it.

    After `max_bytes`, no more is read.

    Raises:
        OSError: Too many files are open, which says nothing about the process.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in OUT_OF_FILES:
            raise
        return b""
    try:
        content = more = os.read(fd, 4096)
        # A read of a list ends between two entries, so only a much shorter one is the last.
        while len(more) > _MAX_LAST_READ_BYTES and (max_bytes is None or len(content) < max_bytes):
            more = os.read(fd, 65536)
            content += more
    except OSError:  # such as ESRCH: the process ended meanwhile
        return b""
    finally:
        os.close(fd)
    return content
