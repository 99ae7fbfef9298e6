"""For how long the event loop of a process sleeps, if no key and no signal from outside wakes it.

A loop waits for the terminal, and for files through which its own threads and signal handlers wake
it. While all its threads sleep, nobody does, so only a key, a timeout or a signal from outside can
end its sleep. We claim that only where we see all that could wake it:

- Each thread waits for the terminal, for such files, for other threads or for signals.
- No timer and no I/O in the background sends it signals, or makes such a file ready. An io_uring
  with requests could. libuv makes a ring for each loop of node, but seldom leaves requests in it.

The end of a child wakes its parent, too. Who calls this knows the children.
Source: proc(5), eventfd(2), signalfd(2), timerfd_create(2), setitimer(2), timer_create(2),
io_uring_enter(2); the kernel's io_uring/fdinfo.c.
"""

import math
import os
import re
import signal
from collections.abc import Mapping, Sequence

from . import processes
from .descriptors import EVENTFD, Descriptors, descriptors, has_pipe_end, has_unix_peer
from .waits import KernelWait

# A thread that waits for no files may look at a queue at each timeout, and how soon that ends isn't
# known. A timeout as long as this seldom ends: Go has a thread that wakes once a minute.
_RARE_S = 10.0
# Processes with more descriptors than this are not looked at.
_MAX_DESCRIPTORS = 256
# Signals, as bits, that the process may get from the kernel while it sleeps: from a timer or I/O.
_FROM_KERNEL = 1 << (signal.SIGALRM - 1) | 1 << (signal.SIGIO - 1)
# A program that handles all signals, as those in Go do, may need none of them. Some of these leave
# out job control, and none can handle the last two.
_JOB_CONTROL = (signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_LEFT_OUT = (*_JOB_CONTROL, signal.SIGKILL, signal.SIGSTOP)
_ALL = 0x7FFFFFFF & ~sum(1 << (number - 1) for number in _LEFT_OUT)
_TIMERS = re.compile(rb"signal: (\d+)/.*\nnotify: (\w+)/.*\nClockID: (-?\d+)")
# By this signal, timers wake a thread of the C library. Vim always has a timer, to end long
# searches.
_LIBRARY_SIGNAL = 32
# CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID, which stand still while the process sleeps.
_CPU_CLOCKS = (2, 3)
_SIGNALFD, _TIMERFD = "anon_inode:[signalfd]", "anon_inode:[timerfd]"
_IO_URING = "anon_inode:[io_uring]"


def sleeps_s(pid: int, waits: Mapping[str, KernelWait]) -> float:
    """Return for how long a process sleeps, given what each of its threads waits for.

    Infinite without a timeout, and 0 if something else may wake it or if we can't tell. The time is
    that from the beginning of the sleep. Raises OSError if too many files are open.
    """
    least_s = math.inf
    others: list[tuple[str, int]] = []
    for thread, wait in waits.items():
        if wait.other_files is None:
            return 0.0
        if wait.is_for_terminal or wait.other_files:  # a loop
            least_s = min(least_s, wait.timeout_s)
        elif wait.timeout_s < _RARE_S:
            return 0.0
        others += [(thread, fd) for fd in wait.other_files]
    if not least_s or _may_get_signals(pid):
        return 0.0
    return min(least_s, _ready_s(pid, others)) if others else least_s


def _may_get_signals(pid: int) -> bool:
    """Return whether a timer or I/O in the background may send a process signals."""
    if not os.access("/proc/self/timers", os.R_OK):  # the kernel doesn't list timers
        return True
    blocked, caught = processes.signal_masks(pid, "SigBlk", "SigCgt")
    handled = (blocked or 0) | (caught or 0)
    if handled & _FROM_KERNEL and handled & _ALL != _ALL:
        return True
    for number, way, clock in _TIMERS.findall(processes.read(f"/proc/{pid}/timers")):
        stands_still = int(clock) < 0 or int(clock) in _CPU_CLOCKS
        if way != b"none" and int(number) != _LIBRARY_SIGNAL and not stands_still:
            return True
    return False


def _ready_s(pid: int, files: Sequence[tuple[str, int]]) -> float:
    """Return after what time one of these files gets ready while the process sleeps.

    They are descriptors of its threads. 0 if somebody else can make one ready, or we can't tell.
    """
    try:
        found = descriptors(pid, _MAX_DESCRIPTORS) or {}
        return min(
            _file_ready_s(pid, f"/proc/{pid}/task/{thread}", fd, found) for thread, fd in files
        )
    except OSError:
        return 0.0


def _file_ready_s(pid: int, directory: str, fd: int, found: Descriptors) -> float:
    link = os.readlink(f"{directory}/fd/{fd}")
    if link == _TIMERFD:
        return _timer_s(processes.read(f"{directory}/fdinfo/{fd}"))
    if link == _SIGNALFD:
        return math.inf
    file = os.stat(f"{directory}/fd/{fd}")
    if link == EVENTFD:
        is_own = not _has_busy_ring(pid, file.st_dev, found)
    elif link.startswith("pipe:"):
        is_own = has_pipe_end(pid, found.get((file.st_dev, file.st_ino), []), writes=True)
    else:
        is_own = link.startswith("socket:") and has_unix_peer(file, found)
    return math.inf if is_own else 0.0


def _timer_s(about: bytes) -> float:
    """Return after what time a timerfd gets ready, given its fdinfo; infinite if not armed."""
    left = re.search(rb"it_value: \((\d+), (\d+)\)", about)
    if left is None:
        return 0.0
    seconds, nanoseconds = int(left[1]), int(left[2])
    return seconds + nanoseconds / 1e9 if seconds or nanoseconds else math.inf


def _has_busy_ring(pid: int, device: int, found: Descriptors) -> bool:
    """Return whether a process has an io_uring with requests, which can write to its eventfds.

    `device` is that of all files without a path.
    """
    numbers = [number for key, group in found.items() if key[0] == device for number in group]
    rings = [fd for fd in numbers if os.readlink(f"/proc/{pid}/fd/{fd}") == _IO_URING]
    return not all(_is_idle_ring(processes.read(f"/proc/{pid}/fdinfo/{fd}")) for fd in rings)


def _is_idle_ring(about: bytes) -> bool:
    """Return whether an io_uring has answered all requests, given its fdinfo.

    Before Linux 5.18, that doesn't tell. A request with several answers is in the list of polls.
    """
    counts = dict(re.findall(rb"^(\w+):\t(\w+)$", about, re.MULTILINE))
    submitted, answered = counts.get(b"CachedSqHead"), counts.get(b"CachedCqTail")
    has_polls = not re.search(rb"^PollList:\nCq", about, re.MULTILINE)
    return submitted is not None and submitted == answered and not has_polls
