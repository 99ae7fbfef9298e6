"""What a thread waits for, told by the system call that it is in.

A thread waits for a terminal while it is in a call that returns once something was typed: read(2)
of the terminal, or poll(2), select(2) or epoll_wait(2) with it among the files. The kernel hides
the threads of other users' programs from us.
"""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from . import processes, terminals

# System calls by machine: read, readv; poll; ppoll; select, pselect6; epoll_wait, epoll_pwait, epoll_pwait2;
# restart_syscall, which a poll that a signal has interrupted becomes.
_X86_64 = {0: "read", 19: "read", 7: "poll", 271: "poll", 219: "restart", 23: "select", 270: "select"}
_X86_64 |= dict.fromkeys((232, 281, 441), "epoll")
_AARCH64 = {63: "read", 65: "read", 73: "poll", 72: "select", 128: "restart"} | dict.fromkeys((22, 441), "epoll")
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(os.uname().machine, {})

_POLLIN = 0x0001 | 0x0040
_EPOLLIN = 0x001
_POLL_ENTRY = struct.Struct("<ihh")
# Who waits for more files than that is no program with a terminal.
_MAX_FILES = 1024
# The controlling terminal by its other name, /dev/tty; and what makes terminals, /dev/ptmx.
_DEV_TTY, _DEV_PTMX = os.makedev(5, 0), os.makedev(5, 2)


class Wait(NamedTuple):
    """What a thread waits for, as far as a terminal is concerned.

    Attributes:
        is_for_terminal: For input of the terminal.
        is_for_it_alone: And for nothing else, nor for a time.
        is_for_others: For another terminal as well, one that the process itself has opened.
        reads_a_byte: It reads a single byte, as shells do that run `read`.
    """

    is_for_terminal: bool = False
    is_for_it_alone: bool = False
    is_for_others: bool = False
    reads_a_byte: bool = False


def wait_of(pid: int, thread: str, tty: int) -> Wait | None:
    """Return what a thread waits for; None when the kernel hides that from us.

    Args:
        pid: The process.
        thread: The thread's id.
        tty: The terminal, as /proc/PID/stat has it.

    Raises:
        OSError: No more files can be opened.
    """
    words = _system_call(pid, thread)
    if words is None:
        return None
    if len(words) < 4:  # noqa: PLR2004  it is gone, or in no system call
        return Wait()
    return _wait(pid, thread, [int(word, 0) for word in words[:7]], tty)


def _system_call(pid: int, thread: str) -> list[bytes] | None:
    """Return the words for the system call that a thread is in, none of one that has ended, None if not allowed."""
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/syscall", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return None
    except OSError as error:
        if error.errno in processes.OUT_OF_FILES:
            raise
        return []
    try:
        return os.read(fd, 512).split()
    except PermissionError:
        return None
    except OSError:
        return []
    finally:
        os.close(fd)


def _wait(pid: int, thread: str, call: list[int], tty: int) -> Wait:
    """Return what a thread waits for, given the number of its system call and the arguments."""
    number, *arguments = call
    match _CALLS.get(number):
        case "read":
            is_terminal = _is_terminal(pid, arguments[0], tty)
            return Wait(is_terminal, is_terminal, reads_a_byte=is_terminal and arguments[2] == 1)
        case "poll":
            return _wait_for(pid, _polled(pid, arguments[0], arguments[1]), tty, arguments[2])
        case "select":
            return _wait_for(pid, _selected(pid, arguments[0], arguments[1]), tty, arguments[4])
        case "restart" if b"poll" in processes.read(f"/proc/{pid}/task/{thread}/wchan"):
            return _wait_for(pid, _polled(pid, arguments[0], arguments[1]), tty, 0)
        case "epoll":
            return _wait_for(pid, _epolled(pid, arguments[0]), tty, 0)
    return Wait()


def _wait_for(pid: int, files: Iterator[int], tty: int, timeout: int) -> Wait:
    """Return what a thread waits for, given its files and the argument that limits the time."""
    devices = [_device(pid, number) for number in files]
    are_terminal = [_is_device_of(device, tty) for device in devices]
    has_no_timeout = timeout == 0 or timeout & 0xFFFFFFFF == 0xFFFFFFFF  # noqa: PLR2004  NULL, or -1
    return Wait(
        is_for_terminal=any(are_terminal),
        is_for_it_alone=all(are_terminal) and has_no_timeout,
        is_for_others=_DEV_PTMX in devices,
    )


def _polled(pid: int, address: int, count: int) -> Iterator[int]:
    if count <= _MAX_FILES:
        data = _memory(pid, address, count * _POLL_ENTRY.size)
        for number, events, _ in _POLL_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
            if number >= 0 and events & _POLLIN:
                yield number


def _selected(pid: int, count: int, address: int) -> Iterator[int]:
    if address and count <= _MAX_FILES:
        for index, byte in enumerate(_memory(pid, address, (count + 7) // 8)):
            numbers = (index * 8 + bit for bit in range(8) if byte >> bit & 1)
            yield from (number for number in numbers if number < count)


def _epolled(pid: int, number: int) -> Iterator[int]:
    for line in processes.read(f"/proc/{pid}/fdinfo/{number}").splitlines():
        words = line.split()
        if words[:1] == [b"tfd:"] and int(words[3], 16) & _EPOLLIN:
            yield int(words[1])


def _is_terminal(pid: int, number: int, tty: int) -> bool:
    """Tell whether a file of a process is this terminal."""
    return _is_device_of(_device(pid, number), tty)


def _is_device_of(device: int, tty: int) -> bool:
    """Tell whether a device is this terminal, possibly by its other name, /dev/tty."""
    return device == _DEV_TTY or (device != 0 and device == terminals.device(tty))


def _device(pid: int, number: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/fd/{number}").st_rdev
    except OSError:
        return 0


def _memory(pid: int, address: int, size: int) -> bytes:
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
