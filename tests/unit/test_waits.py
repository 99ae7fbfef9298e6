"""What a thread waits for, told by its system call."""

import ctypes
import os
import subprocess
import sys
from functools import partial

import pytest
from support import ask_until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.calls import Call
from tmux_debug_mcp.linux.waits import Wait, wait_of


@pytest.mark.parametrize(("timeout_s", "is_alone"), [(None, True), (1000, False)])
def test_wait_with_a_timeout_is_not_for_the_terminal_alone(
    timeout_s: float | None, *, is_alone: bool
) -> None:
    waits = f"""
import fcntl, select, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
poll = select.epoll()
poll.register(0, select.EPOLLIN)
poll.poll({timeout_s})
"""
    master, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", waits], stdin=terminal, start_new_session=True
    ) as process:
        try:
            wait = ask_until(partial(_wait_of, process.pid), lambda wait: wait is not None)
            assert wait is not None
            assert wait.is_for_it_alone == is_alone
        finally:
            process.kill()
            os.close(terminal)
            os.close(master)


# The addresses of two struct timespec of ours.
_TIMES = [ctypes.create_string_buffer(16), ctypes.create_string_buffer(b"\x01".ljust(15))]
ZERO_TIME, SOME_TIME = map(ctypes.addressof, _TIMES)


@pytest.mark.parametrize(
    ("name", "arguments", "waits"),
    [
        ("poll", (0, 1, 0), False),
        ("poll", (0, 1, 0xFFFFFFFF), True),
        ("poll", (0, 1, 100), True),
        ("ppoll", (0, 1, 0), True),  # a null pointer
        ("ppoll", (0, 1, ZERO_TIME), False),
        ("ppoll", (0, 1, SOME_TIME), True),
        ("pselect6", (1, 0, 0, 0, ZERO_TIME), False),
        ("pselect6", (1, 0, 0, 0, SOME_TIME), True),
        ("select", (1, 0, 0, 0, 0), True),
        ("epoll_wait", (3, 0, 1, 0), False),
        ("epoll_wait", (3, 0, 1, 0xFFFFFFFFFFFFFFFF), True),
        ("epoll_pwait2", (3, 0, 1, 0), True),
    ],
)
def test_look_without_time_to_wait_is_no_wait(
    monkeypatch: pytest.MonkeyPatch, name: str, arguments: tuple[int, ...], *, waits: bool
) -> None:
    """As of a game that takes keys at each frame; it may be stopped by chance while it looks."""
    master, terminal = os.openpty()
    monkeypatch.setattr("tmux_debug_mcp.linux.waits.call_of", lambda *_: Call(name, arguments))
    monkeypatch.setattr("tmux_debug_mcp.linux.waits.polled", lambda *_: [(terminal, 1)])
    monkeypatch.setattr("tmux_debug_mcp.linux.waits.selected", lambda *_: [terminal])
    monkeypatch.setattr("tmux_debug_mcp.linux.waits.epolled", lambda *_: [(terminal, 1)])

    wait = wait_of(os.getpid(), str(os.getpid()), _number(terminal))

    assert wait is not None
    assert wait.is_for_terminal == waits
    os.close(terminal)
    os.close(master)


def _number(terminal: int) -> int:
    """Return the number of a terminal as /proc/PID/stat has it."""
    device = os.fstat(terminal).st_rdev
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12


def _wait_of(pid: int) -> Wait | None:
    """Return it once it is for the terminal."""
    stat = processes.read_stat(pid)
    wait = stat and wait_of(pid, str(pid), stat.tty)
    return wait if wait and wait.is_for_terminal else None
