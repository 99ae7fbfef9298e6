"""What a thread waits for, according to the system call that it is in.

A thread waits for a terminal while it is in a call that returns once something is typed: read(2) of
the terminal, or poll(2), select(2) or epoll_wait(2) with the terminal among the files. The kernel
shows us only threads of our user's programs, and none that is ending. Source: proc(5),
/proc/PID/task/TID/syscall. `HiddenWaits` tells of the other threads whether they wait for it.
"""

import os
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from . import processes, terminals

# System call numbers of each machine, with the call whose arguments they have. A poll that a signal
# interrupted goes on as restart_syscall(2).
_CALLS_OF_MACHINES = {
    "x86_64": {
        0: "read",
        19: "read",  # readv
        7: "poll",
        271: "poll",  # ppoll
        219: "restart",
        23: "select",
        270: "select",  # pselect6
        232: "epoll",  # epoll_wait
        281: "epoll",  # epoll_pwait
        441: "epoll",  # epoll_pwait2
    },
    "aarch64": {
        63: "read",
        65: "read",  # readv
        73: "poll",  # ppoll
        128: "restart",
        72: "select",  # pselect6
        22: "epoll",  # epoll_pwait
        441: "epoll",  # epoll_pwait2
    },
}
# On other machines, no thread is known to wait for a terminal.
_CALLS = _CALLS_OF_MACHINES.get(os.uname().machine, {})

# POLLIN and POLLRDNORM; EPOLLIN.
_POLL_INPUT = 0x0001 | 0x0040
_EPOLL_INPUT = 0x001
# struct pollfd: fd, events, revents.
_POLLFD = struct.Struct("<ihh")
# A program that waits for more files than this is a server, not one that reads a terminal.
_MAX_FILES = 1024
# /dev/tty, which is the controlling terminal, and /dev/ptmx, through which a process owns others.
_DEV_TTY = os.makedev(5, 0)
_DEV_PTMX = os.makedev(5, 2)
# A thread that is woken has run after this time, unless the machine is busy.
_WAKE_UP_S = 0.0005
# A thread that runs every few milliseconds by itself can pass for a woken one once.
_ROUSES = 2
# For so long it is believed that a thread does not wait.
_ASK_AGAIN_S = 0.5

# A process and one of its threads.
Thread = tuple[int, str]


class Wait(NamedTuple):
    """What a thread waits for, in relation to a terminal.

    Attributes:
        is_for_terminal: It waits for input of the terminal, perhaps among other things.
        is_for_it_alone: It waits for nothing else, and without a timeout.
        is_for_others: It also waits for a terminal that the process itself has made.
        reads_a_byte: It reads a single byte, as the `read` of shells does.
    """

    is_for_terminal: bool = False
    is_for_it_alone: bool = False
    is_for_others: bool = False
    reads_a_byte: bool = False


def is_known_machine() -> bool:
    """Tell whether the numbers of system calls are known for this machine."""
    return bool(_CALLS)


def wait_of(pid: int, thread: str, tty: int) -> Wait | None:
    """Return what a thread waits for, or None if the kernel does not let us see it.

    `tty` is the terminal, as in /proc/PID/stat. Raises OSError if too many files are open.
    """
    words = _system_call(pid, thread)
    if words is None:
        return None
    if len(words) < 4:  # noqa: PLR2004  "running", "-1 SP PC", or nothing: in no system call
        return Wait()
    number, *arguments = [int(word, 0) for word in words[:7]]
    # A thread may have a table of files of its own: clone(2) without CLONE_FILES, unshare(2).
    files_of = f"/proc/{pid}/task/{thread}"
    call = _CALLS.get(number)
    if call == "restart" and b"poll" in processes.read(f"{files_of}/wchan"):
        call = "restarted poll"
    match call:
        case "read":
            fd, _buffer, count, *_ = arguments
            if not _is_device_of(_device(files_of, fd), tty):
                return Wait()
            return Wait(is_for_terminal=True, is_for_it_alone=True, reads_a_byte=count == 1)
        case "poll":
            files, count, timeout, *_ = arguments
            return _wait_among(files_of, _polled(pid, files, count), timeout, tty)
        case "restarted poll":
            files, count, *_ = arguments
            return _wait_among(files_of, _polled(pid, files, count), 0, tty)
        case "select":
            count, bits, _writing, _failing, timeout, *_ = arguments
            return _wait_among(files_of, _selected(pid, count, bits), timeout, tty)
        case "epoll":
            return _wait_among(files_of, _epolled(files_of, arguments[0]), 0, tty)
    return Wait()


def _system_call(pid: int, thread: str) -> list[bytes] | None:
    """Return the words of a thread's `syscall` file: number, arguments, stack and program counter.

    None are there of a thread that has ended or runs. It is None if the thread sleeps, and we may
    not read them.
    """
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/syscall", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, 512).split()
        finally:
            os.close(fd)
    except PermissionError:
        return None if processes.is_asleep(pid, thread) else []
    except OSError as error:
        if error.errno in processes.OUT_OF_FILES:
            raise
        return []


def _wait_among(files_of: str, numbers: Iterable[int], timeout: int, tty: int) -> Wait:
    """Return what a thread waits for, which has some files and a timeout; 0 and -1 mean none."""
    devices = [_device(files_of, number) for number in numbers]
    are_terminal = [_is_device_of(device, tty) for device in devices]
    has_timeout = timeout != 0 and timeout & 0xFFFFFFFF != 0xFFFFFFFF  # noqa: PLR2004  32 bits of -1
    return Wait(
        is_for_terminal=any(are_terminal),
        is_for_it_alone=all(are_terminal) and not has_timeout,
        is_for_others=_DEV_PTMX in devices,
    )


def _polled(pid: int, address: int, count: int) -> Iterator[int]:
    """Yield the files whose input a poll(2) waits for, given its array of struct pollfd."""
    if count > _MAX_FILES:
        return
    data = _memory(pid, address, count * _POLLFD.size)
    whole_entries = len(data) // _POLLFD.size * _POLLFD.size
    for number, events, _ in _POLLFD.iter_unpack(data[:whole_entries]):
        if number >= 0 and events & _POLL_INPUT:
            yield number


def _selected(pid: int, count: int, address: int) -> Iterator[int]:
    """Yield the files whose input a select(2) waits for, given its fd_set, a bit for each file."""
    if not address or count > _MAX_FILES:
        return
    bits = int.from_bytes(_memory(pid, address, (count + 7) // 8), "little")
    for number in range(count):
        if bits >> number & 1:
            yield number


def _epolled(files_of: str, fd: int) -> Iterator[int]:
    """Yield the files whose input an epoll instance waits for.

    Source: proc(5), /proc/PID/fdinfo: lines such as "tfd: 5 events: 19 data: 5", in hexadecimal
    except the first number.
    """
    for line in processes.read(f"{files_of}/fdinfo/{fd}").splitlines():
        words = line.split()
        if words[:1] == [b"tfd:"] and int(words[3], 16) & _EPOLL_INPUT:
            yield int(words[1])


def _is_device_of(device: int, tty: int) -> bool:
    """Tell whether a device number is that of the terminal, or of /dev/tty, its other name."""
    if device == 0:
        return False
    return device in (_DEV_TTY, terminals.device(tty))


def _device(files_of: str, fd: int) -> int:
    """Return the device number of a thread's open file; 0 for other files than devices."""
    try:
        return os.stat(f"{files_of}/fd/{fd}").st_rdev
    except OSError:
        return 0


def _memory(pid: int, address: int, size: int) -> bytes:
    """Return bytes of a process's memory; fewer or none where we can't read it."""
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, size, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(fd)


class HiddenWaits:
    """Finds the threads that wait for a terminal among those whose system calls we may not see.

    The readers of a terminal can be woken, and how long a thread has run is no secret: a thread
    that waits for something else does not run then.

    An answer holds until the thread runs again, so that each wait is disturbed once. Otherwise we
    could set the modes just when the program changes them itself. That a thread does not wait holds
    for a while only: on a busy machine, one that was woken may not have run yet.
    """

    def __init__(self) -> None:
        # How long each thread had run when it was asked, and whether it waits for the terminal.
        self._answers: dict[Thread, tuple[int, bool]] = {}
        self._asked_at = 0.0

    def find(self, threads: Sequence[Thread], terminal: str) -> list[Thread]:
        """Return those of sleeping threads that wait for a terminal which hides what is typed.

        Blocks for some 2 ms if threads have run since the last call.
        """
        now = time.monotonic()
        if now > self._asked_at + _ASK_AGAIN_S:
            self._answers = {one: found for one, found in self._answers.items() if found[1]}
        answers = {
            thread: self._answers[thread]
            for thread in threads
            if thread in self._answers and self._answers[thread][0] == processes.cpu_ns(*thread)
        }
        new = [thread for thread in threads if thread not in answers]
        if new:
            self._asked_at = now
        self._answers = answers | _ask(new, terminal)
        return [thread for thread, (_, is_waiting) in self._answers.items() if is_waiting]


def _ask(threads: Sequence[Thread], terminal: str) -> dict[Thread, tuple[int, bool]]:
    """Return how long each thread has run, and whether it runs only when it is roused."""
    times = {thread: processes.cpu_ns(*thread) for thread in threads}
    waiting = set(threads)
    for _ in range(_ROUSES):
        if not waiting:
            break
        time.sleep(_WAKE_UP_S)
        waiting -= _run_since(times)
        terminals.rouse_readers(terminal)
        time.sleep(_WAKE_UP_S)
        waiting &= _run_since(times)
    return {thread: (times[thread], thread in waiting) for thread in threads}


def _run_since(times: dict[Thread, int]) -> set[Thread]:
    """Return the threads that have run for longer than the times say, and update these."""
    before = dict(times)
    for thread in times:
        times[thread] = processes.cpu_ns(*thread)
    return {thread for thread in times if times[thread] != before[thread]}
