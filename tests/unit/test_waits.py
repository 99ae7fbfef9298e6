"""What a thread waits for, told by its system call."""

import ctypes
import itertools
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import ask_until

from tmux_debug_mcp.linux import processes, terminals, waits
from tmux_debug_mcp.linux.calls import SystemCall
from tmux_debug_mcp.linux.waits import HiddenWaits, KernelWait, OutsideReaders, wait_of


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
    monkeypatch.setattr(
        "tmux_debug_mcp.linux.waits.call_of", lambda *_: SystemCall(name, arguments)
    )
    monkeypatch.setattr("tmux_debug_mcp.linux.calls.polled", lambda *_: [(terminal, 1)])
    monkeypatch.setattr("tmux_debug_mcp.linux.calls.selected", lambda *_: [terminal])
    monkeypatch.setattr("tmux_debug_mcp.linux.calls.epolled", lambda *_: [(terminal, 1)])

    wait = wait_of(os.getpid(), str(os.getpid()), _number(terminal))

    assert wait is not None
    assert wait.is_for_terminal == waits
    os.close(terminal)
    os.close(master)


# Reads a byte from standard input, for ever: a program of 32 bits.
READING_32 = bytes.fromhex("b803000000 31db 89e1 ba01000000 cd80 ebee")


def _executable_32(code: bytes) -> bytes:
    """Return an executable file with this code. Source: elf(5)."""
    base, header, size = 0x08048000, 0x54, 0x54 + len(code)
    elf = (2, 3, 1, base + header, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    load = (1, 0, base, base, size, size, 5, 0x1000)
    identity = b"\x7fELF\1\1\1".ljust(16, b"\0")
    return identity + struct.pack("<HHIIIIIHHHHHH", *elf) + struct.pack("<8I", *load) + code


def test_program_of_32_bits_is_seen_to_wait(tmp_path: Path) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("this is code for x86")
    program = tmp_path / "program"
    program.write_bytes(_executable_32(READING_32))
    program.chmod(0o755)
    master, terminal = os.openpty()
    try:
        process = subprocess.Popen([program], stdin=terminal)
    except OSError as error:
        pytest.skip(f"this kernel runs no programs of 32 bits: {error}")
    finally:
        number = _number(terminal)
        os.close(terminal)
    with process:
        try:
            wait = ask_until(
                lambda: wait_of(process.pid, str(process.pid), number),
                lambda wait: wait is not None and wait.is_for_terminal,
            )
        finally:
            process.kill()
            os.close(master)
    assert wait == KernelWait(
        is_for_terminal=True, is_for_it_alone=True, reads_a_byte=True, other_files=()
    )


def test_search_for_outside_readers_skips_what_has_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really_awaited = waits._terminals_awaited
    looked_at: list[int] = []

    def awaited(pid: int, file_system: int) -> frozenset[int]:
        looked_at.append(pid)
        return really_awaited(pid, file_system)

    monkeypatch.setattr(waits, "_terminals_awaited", awaited)
    outside = OutsideReaders()
    master, terminal = os.openpty()
    with subprocess.Popen(["cat"], stdin=terminal, stdout=subprocess.DEVNULL) as reader:
        try:
            found = ask_until(lambda: outside.find(_number(terminal)), bool)
            # The reader may have been seen before it slept. This process runs all the time.
            was_looked_at = [True]
            while any(was_looked_at[-5:]) and len(was_looked_at) < 100:
                looked_at.clear()
                ask_until(
                    lambda: outside.find(_number(terminal)), lambda _: os.getpid() in looked_at
                )
                was_looked_at.append(reader.pid in looked_at)
            assert not any(was_looked_at[-5:])

            os.write(master, b"x\n")
            ask_until(lambda: outside.find(_number(terminal)), lambda _: reader.pid in looked_at)
        finally:
            reader.kill()
            os.close(terminal)
            os.close(master)
    assert found == [reader.pid]


def test_search_for_outside_readers_ends_and_goes_on_with_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []
    seconds = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    monkeypatch.setattr(waits, "_PAUSE_PER_SEARCH", 0)
    monkeypatch.setattr(waits, "_SEARCH_AGAIN_S", 0)

    def awaited(pid: int, _: int) -> frozenset[int]:
        looked_at.append(pid)
        return frozenset()

    monkeypatch.setattr(waits, "_terminals_awaited", awaited)
    monkeypatch.setattr(os, "listdir", lambda _: ["1", "2", "3", "self"])
    spent = itertools.count()
    monkeypatch.setattr(processes, "run_ns", lambda _: next(spent))  # all of them run

    outside = OutsideReaders()
    for _ in range(6):
        outside.find(0)

    assert sorted(looked_at[:3]) == [1, 2, 3]
    assert looked_at[3:] == looked_at[:3]


def _number(terminal: int) -> int:
    """Return the number of a terminal as /proc/PID/stat has it."""
    device = os.fstat(terminal).st_rdev
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12


def _wait_of(pid: int) -> KernelWait | None:
    """Return it once it is for the terminal."""
    stat = processes.read_stat(pid)
    wait = stat and wait_of(pid, str(pid), stat.tty)
    return wait if wait and wait.is_for_terminal else None


Waits = Callable[[Callable[[float], int]], bool]


@pytest.fixture
def waits_when_asked(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Return what asks a thread of another user whether it waits, given how often it has run.

    It has run so often, by the time, in seconds; and once for each time that it was woken, if the
    number is negative.
    """

    def ask(runs: Callable[[float], int]) -> bool:
        now, woken = 0.0, 0

        def sleep(duration_s: float) -> None:
            nonlocal now
            now += duration_s

        def rouse(_terminal: str) -> None:
            nonlocal woken
            woken += 1

        def cpu_ns(_pid: int, _thread: str) -> int:
            return woken if runs(now) < 0 else runs(now)

        monkeypatch.setattr(time, "sleep", sleep)
        monkeypatch.setattr(terminals, "rouse_readers", rouse)
        monkeypatch.setattr(processes, "cpu_ns", cpu_ns)
        return bool(HiddenWaits().find([(1, "1")], "/dev/pts/0"))

    return ask


def test_thread_of_another_user_that_runs_when_it_is_woken_waits(waits_when_asked: Waits) -> None:
    assert waits_when_asked(lambda _now: -1)
    assert not waits_when_asked(lambda _now: 0)


def test_thread_of_another_user_that_runs_at_regular_times_does_not_wait(
    waits_when_asked: Waits,
) -> None:
    def ticks(interval: int, phase: int, now: float) -> int:
        return (round(now * 1e6) + phase) // interval

    for interval in range(200, 12_000, 50):
        for phase in range(0, interval, 50):
            assert not waits_when_asked(partial(ticks, interval, phase)), (interval, phase)
