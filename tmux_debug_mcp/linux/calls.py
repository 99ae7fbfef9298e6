"""The system call that a thread is in, by name, and what its arguments say ends it.

The kernel shows us only threads of our user's programs, and none that is ending. Source: proc(5),
/proc/PID/task/TID/syscall; syscalls(2); the kernel's asm/unistd.h of each machine.
"""

import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from . import processes

# The system calls that wait for a child.
CHILD_WAITS = frozenset({"wait4", "waitid"})
# Calls that wait until one of several files is ready.
_POLLS = "poll", "ppoll", "restarted_poll", "select", "pselect6"
FILE_WAITS = frozenset({*_POLLS, "epoll_wait", "epoll_pwait", "epoll_pwait2"})
# Events of poll(2) and epoll(7). Hang-ups and errors come without being asked.
INPUT, OUTPUT = 0x0001 | 0x0040, 0x0004 | 0x0100
# The part of futex(2)'s operation that is not flags; the one that waits for a relative time.
FUTEX_COMMANDS = 0x7F
_FUTEX_WAIT = 0
# The bits of an int.
_INT = 0xFFFFFFFF
# The system calls that wait for something, with their numbers on each machine. `i386` means the
# programs of 32 bits of x86_64; of their calls, we know those that wait for a terminal or a child.
_NUMBERS = """
call             x86_64     i386  aarch64
accept               43        -      202
accept4             288        -      242
clock_nanosleep     230        -      115
connect              42        -      203
epoll_pwait         281      319       22
epoll_pwait2        441      441      441
epoll_wait          232      256        -
fcntl                72        -       25
flock                73        -       32
futex               202        -       98
mq_timedreceive     243        -      183
mq_timedsend        242        -      182
msgrcv               70        -      188
msgsnd               69        -      189
nanosleep            35        -      101
open                  2        -        -
openat              257        -       56
openat2             437        -      437
pause                34        -        -
poll                  7      168        -
ppoll               271  309,414       73
pread64              17        -       67
preadv              295        -       69
pselect6            270  308,413       72
pwrite64             18        -       68
pwritev             296        -       70
read                  0        3       63
readv                19      145       65
recvfrom             45        -      207
recvmmsg            299        -      243
recvmsg              47        -      212
restart_syscall     219        0      128
rt_sigsuspend       130        -      133
rt_sigtimedwait     128        -      137
select               23      142        -
semop                65        -      193
semtimedop          220        -      192
sendmmsg            307        -      269
sendmsg              46        -      211
sendto               44        -      206
wait4                61      114      260
waitid              247      284       95
write                 1        -       64
writev               20        -       66
"""


def _calls_of(machine: str) -> Mapping[int, str]:
    """Return the calls of a machine by their numbers; none if we don't know it."""
    names, *rows = [line.split() for line in _NUMBERS.strip().splitlines()]
    if machine not in names:
        return {}
    column = names.index(machine)
    known = [(row[0], row[column].split(",")) for row in rows if row[column] != "-"]
    return {int(number): call for call, numbers in known for number in numbers}


_MACHINE = os.uname().machine
_CALLS = _calls_of(_MACHINE)
_CALLS_OF_32_BITS = _calls_of("i386") if _MACHINE == "x86_64" else {}
# Stack and code of a program of 32 bits lie below this address; of others, at most one of them.
_END_OF_32_BITS = 1 << 32
# For calls that continue after a signal such as SIGCONT: part of the name of the kernel's function
# in which they sleep then, and the call.
_RESTARTED = {b"poll": "restarted_poll", b"nanosleep": "nanosleep", b"futex": "futex"}

# struct pollfd: fd, events, revents.
_POLLFD = struct.Struct("<ihh")
# struct timespec and struct timeval: seconds, and nanoseconds or microseconds.
_TIME = struct.Struct("<QQ")
_MAX_SECONDS = 0x7FFFFFFF
_MICROSECOND_S, _NANOSECOND_S = 1e-6, 1e-9
# A program that waits for more files than this is a server, not a reader of a terminal.
_MAX_FILES = 1024
# The longest line about a file that an epoll instance waits for.
_EPOLLED_BYTES = 128


class SystemCall(NamedTuple):
    """The system call that a thread is in.

    Attributes:
        name: The name in syscalls(2), "" for none or for an unknown call. A poll(2) that
            continues after a signal is `restarted_poll`.
        arguments: Its six arguments; none if there is no call.
        is_running: The thread uses a processor or waits for one.
    """

    name: str = ""
    arguments: tuple[int, ...] = ()
    is_running: bool = False


class WakeCondition(NamedTuple):
    """What ends a call, besides signals.

    Attributes:
        files: The descriptors of which one has to be ready, with the events to be ready for.
        timeout_s: The timeout of the whole call: 0 if it only looks, infinite for none.
        reads_a_byte: It reads a single byte.
    """

    files: Sequence[tuple[int, int]] = ()
    timeout_s: float = math.inf
    reads_a_byte: bool = False


def is_known_machine() -> bool:
    """Tell whether the numbers of system calls are known for this machine."""
    return bool(_CALLS)


def call_of(pid: int, thread: str) -> SystemCall | None:
    """Return the call that a thread is in, or None if it sleeps and we may not see where.

    A thread that has ended is in no call. Raises OSError if too many files are open.
    """
    words = _system_call(pid, thread)
    if words is None:
        return None
    if words == [b"running"]:
        return SystemCall(is_running=True)
    if len(words) < 9:  # noqa: PLR2004  "-1 SP PC", or nothing: in no system call
        return SystemCall()
    number, *arguments, stack, code = [int(word, 0) for word in words[:9]]
    if not stack:  # a thread of the kernel
        return SystemCall()
    has_32_bits = max(stack, code) < _END_OF_32_BITS
    name = (_CALLS_OF_32_BITS if has_32_bits else _CALLS).get(number, "")
    if name == "restart_syscall":
        place = processes.read(f"/proc/{pid}/task/{thread}/wchan")
        name = next((call for part, call in _RESTARTED.items() if part in place), "")
    return SystemCall(name, tuple(arguments))


def _system_call(pid: int, thread: str) -> list[bytes] | None:
    """Return the words of a thread's `syscall` file: number, arguments, stack and program counter.

    Empty if the thread has ended; None if it sleeps and we may not read them.
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


def memory(pid: int, address: int, size: int) -> bytes:
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


def awaited(pid: int, thread: str, call: SystemCall) -> WakeCondition | None:
    """Return what ends the call that a thread is in, or None if we don't know of such a call.

    A call without files ends by a signal, the timeout, or an act of another thread.
    """
    match call.name:
        case "read" | "readv":
            fd, _buffer, count, *_ = call.arguments
            return WakeCondition([(fd & _INT, INPUT)], reads_a_byte=count == 1)
        case "poll" | "ppoll" | "restarted_poll":
            address, count, timeout, *_ = call.arguments
            return WakeCondition(list(polled(pid, address, count)), _timeout_s(pid, call, timeout))
        case "select" | "pselect6":
            count, reading, writing, failing, timeout, *_ = call.arguments
            sets = (reading, INPUT), (writing, OUTPUT), (failing, 0)
            files = [(fd, mask) for bits, mask in sets for fd in selected(pid, count, bits)]
            return WakeCondition(files, _timeout_s(pid, call, timeout))
        case "epoll_wait" | "epoll_pwait" | "epoll_pwait2":
            instance, _events, _count, timeout, *_ = call.arguments
            # A thread may have its own table of files: clone(2) without CLONE_FILES, unshare(2).
            files = list(epolled(f"/proc/{pid}/task/{thread}", instance & _INT))
            return WakeCondition(files, _timeout_s(pid, call, timeout))
        case "futex":
            return WakeCondition(timeout_s=_timeout_s(pid, call, call.arguments[3]))
        case "rt_sigtimedwait":
            return WakeCondition(timeout_s=_timeout_s(pid, call, call.arguments[2]))
    return None


def _timeout_s(pid: int, call: SystemCall, argument: int) -> float:
    """Return a call's timeout, infinite for none; a nanosecond if we can't tell."""
    if call.name in ("poll", "restarted_poll", "epoll_wait", "epoll_pwait"):
        milliseconds = argument & _INT
        is_negative = milliseconds >> 31
        return math.inf if is_negative else milliseconds / 1000
    if not argument:
        return math.inf
    data = memory(pid, argument, _TIME.size)
    is_deadline = call.name == "futex" and call.arguments[1] & FUTEX_COMMANDS != _FUTEX_WAIT
    if len(data) < _TIME.size or is_deadline:
        return _NANOSECOND_S
    seconds, fraction = _TIME.unpack(data)
    # A program of 32 bits may have a shorter struct.
    is_whole = seconds <= _MAX_SECONDS and fraction < 1 / _NANOSECOND_S
    unit_s = _MICROSECOND_S if call.name == "select" else _NANOSECOND_S
    return seconds + fraction * unit_s if is_whole else _NANOSECOND_S


def polled(pid: int, address: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the files that a poll(2) waits for, from its array of struct pollfd, with event masks.

    Nothing is yielded if there are too many.
    """
    if count > _MAX_FILES:
        return
    data = memory(pid, address, count * _POLLFD.size)
    whole_entries = len(data) // _POLLFD.size * _POLLFD.size
    for number, events, _ in _POLLFD.iter_unpack(data[:whole_entries]):
        if number >= 0:
            yield number, events


def selected(pid: int, count: int, address: int) -> Iterator[int]:
    """Yield the files of one set of a select(2), given its fd_set, a bit for each file."""
    if not address or count > _MAX_FILES:
        return
    bits = int.from_bytes(memory(pid, address, (count + 7) // 8), "little")
    for number in range(count):
        if bits >> number & 1:
            yield number


def epolled(files_of: str, fd: int) -> Iterator[tuple[int, int]]:
    """Yield the files that an epoll instance waits for, with event masks; only the first of many.

    `files_of` is the process or thread, as a directory of /proc. Source: proc(5),
    /proc/PID/fdinfo: lines such as "tfd: 5 events: 19 data: 5", in hexadecimal except the first
    number.
    """
    lines = processes.read(f"{files_of}/fdinfo/{fd}", _MAX_FILES * _EPOLLED_BYTES).splitlines()
    for line in lines[:_MAX_FILES]:
        words = line.split()
        if words[:1] == [b"tfd:"]:
            yield int(words[1]), int(words[3], 16)
