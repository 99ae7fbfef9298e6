"""For how long event loops sleep: real ones, each on a terminal of its own."""

import ctypes
import math
import os
import shlex
import sys
from pathlib import Path

import pytest
from own_terminals import on_terminal
from support import ask_until

from tmux_debug_mcp.panes.looking.activity import Snapshot, WaitKind
from tmux_debug_mcp.panes.looking.snapshot import look

# What programs do before their loop. `files` are what it waits for beside the terminal.
HEAD = """import ctypes, os, select, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None)
files = []
sleep = [sys.executable, '-c', 'import time; time.sleep(1000)']
def thread(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()
def timer(seconds):
    files.append(libc.timerfd_create(1, 0))
    libc.timerfd_settime(files[-1], 0, ctypes.byref((ctypes.c_long * 4)(0, 0, seconds, 0)), None)
def posix_timer(clock, signal, way=0):
    event, number = (ctypes.c_int * 16)(0, 0, signal, way), ctypes.c_void_p()
    assert libc.timer_create(clock, event, ctypes.byref(number)) == 0
"""
SELECT = "select.select([0, *files], [], [])"
RING = """parameters = (ctypes.c_uint32 * 30)()
ring = libc.syscall(425, 1, parameters)
assert ring >= 0
"""
# Reads a pipe in the background. Source: io_uring_setup(2), io_uring_enter(2), linux/io_uring.h.
READING = f"""{RING}
import mmap, struct
queue, entries = mmap.mmap(ring, 4096), mmap.mmap(ring, 4096, offset=0x10000000)
room, (pipe, _) = ctypes.create_string_buffer(1), os.pipe()
entries[:28] = struct.pack('=BBHiQQI', 22, 0, 0, pipe, 0, ctypes.addressof(room), 1)
queue[parameters[11]:parameters[11] + 4] = struct.pack('=I', 1)
assert libc.syscall(426, ring, 1, 0, 0, None, 0) == 1
"""
EVENTS = "select.select([0, os.eventfd(0)], [], [])"
EPOLL = """epoll = select.epoll()
for fd in [0, *files]: epoll.register(fd, select.EPOLLIN)
epoll.poll()"""

ASLEEP = {
    "epoll": ("files.append(os.eventfd(0))", EPOLL, math.inf),
    "epoll with a timeout": (
        "files.append(os.eventfd(0))",
        EPOLL.replace("l.poll()", "l.poll(9.5)"),
        9.5,
    ),
    "poll with a timeout": (
        "poll = select.poll(); poll.register(0, select.POLLIN)",
        "poll.poll(9500)",
        9.5,
    ),
    "select with a timeout": ("", "select.select([0], [], [], 9.5)", 9.5),
    "pselect with a timeout": (
        "bits, time = (ctypes.c_long * 16)(1), (ctypes.c_long * 2)(9, 500_000_000)",
        "libc.pselect(1, bits, None, None, time, None)",
        9.5,
    ),
    "pipe of its own": ("reading, writing = os.pipe(); files.append(reading)", SELECT, math.inf),
    "sockets of its own": ("pair = socket.socketpair(); files += pair", SELECT, math.inf),
    "eventfd": ("files.append(os.eventfd(0))", SELECT, math.inf),
    "timer that isn't armed": ("timer(0)", SELECT, math.inf),
    "thread that waits for a lock": ("thread(threading.Event().wait)", SELECT, math.inf),
    "thread that waits for a signal": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [10]); thread(signal.sigwait, [10])",
        SELECT,
        math.inf,
    ),
    "thread with a loop": ("thread(select.select, [os.eventfd(0)], [], [])", SELECT, math.inf),
    "thread with a loop with a timeout": (
        "thread(select.select, [os.eventfd(0)], [], [], 999)",
        SELECT,
        999,
    ),
    "thread that reads a pipe of its own": ("thread(os.read, os.pipe()[0], 1)", SELECT, math.inf),
    "reader in a thread": ("thread(os.read, 0, 1)", "threading.Event().wait()", math.inf),
    "all signals": (
        "for one in {*signal.Signals} - {9, 19}: signal.signal(one, print)",
        EVENTS,
        math.inf,
    ),
    "timer of its processor time": (
        "posix_timer(2, 12)",
        EVENTS,
        math.inf,
    ),
    "timer without a signal": (
        "posix_timer(1, 12, 1)",
        EVENTS,
        math.inf,
    ),
    "ended child": (
        "true = subprocess.Popen(['true']); os.waitid(os.P_PID, true.pid, os.WEXITED | os.WNOWAIT)",
        EVENTS,
        math.inf,
    ),
}
NOT_ASLEEP = {
    "pipe of a child": ("files.append(subprocess.Popen(sleep, stdout=-1).stdout)", SELECT),
    "server": ("files.append(socket.create_server(('127.0.0.1', 0)))", SELECT),
    "file changes": ("files.append(libc.inotify_init())", SELECT),
    "other loop": ("files.append(select.epoll())", SELECT),
    "pipe that is full": (
        "_, writing = os.pipe(); os.write(writing, bytes(1 << 16))",
        "select.select([0], [writing], [])",
    ),
    "thread that sleeps": ("thread(time.sleep, 1000)", SELECT),
    "thread with a timeout": ("thread(threading.Event().wait, 1000)", SELECT),
    "thread that reads a child": ("thread(subprocess.Popen(sleep, stdout=-1).stdout.read)", SELECT),
    "thread that polls nothing": ("thread(select.select, [], [], [], 5)", SELECT),
    "thread that computes": ("def work():\n while True: pass\nthread(work)", SELECT),
    "thread that waits for a child": ("thread(subprocess.Popen(sleep).wait)", SELECT),
    "alarm": ("signal.signal(signal.SIGALRM, print)", EVENTS),
    "blocked alarm": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [14])",
        EVENTS,
    ),
    "timer with a signal": ("posix_timer(1, 12)", EVENTS),
    "child": ("subprocess.Popen(sleep)", EVENTS),
    "detached child": (
        "subprocess.Popen(sleep, start_new_session=True)",
        EVENTS,
    ),
}


def python(setup: str, loop: str) -> str:
    """Return a shell command whose last program comes to its loop, and stays there."""
    return shlex.join([sys.executable, "-c", f"{HEAD}{setup}\n{loop}"]) + "; :"


@pytest.mark.parametrize("name", ASLEEP)
def test_loop_sleeps_that_only_keys_and_its_own_threads_wake(name: str) -> None:
    setup, loop, expected_s = ASLEEP[name]
    with on_terminal(python(setup, loop)) as terminal:
        ask_until(lambda: look(terminal.leader, 0), lambda seen: seen.sleeps_s == expected_s)


@pytest.mark.parametrize("name", NOT_ASLEEP)
def test_loop_does_not_sleep_that_something_else_wakes(name: str) -> None:
    with on_terminal(python(*NOT_ASLEEP[name])) as terminal:
        ask_until(lambda: look(terminal.leader, 0), waits_among_others)
        looks = [look(terminal.leader, 0) for _ in range(5)]

    assert all(map(waits_among_others, looks))
    assert {seen.sleeps_s for seen in looks} == {0}


def waits_among_others(snapshot: Snapshot) -> bool:
    return snapshot.waiting is WaitKind.AMONG_OTHERS


def test_armed_timer_ends_the_sleep_of_its_loop() -> None:
    with on_terminal(python("timer(500)", SELECT)) as terminal:
        asleep = ask_until(lambda: look(terminal.leader, 0), lambda seen: bool(seen.sleeps_s))

    assert 0 < asleep.sleeps_s <= 500


@pytest.mark.parametrize(("ring", "sleeps_s"), [(RING, math.inf), (READING, 0)], ids=["", "busy"])
def test_only_a_ring_with_requests_may_wake_its_loop_by_an_eventfd(
    ring: str, sleeps_s: float
) -> None:
    number = ctypes.CDLL(None).syscall(425, 1, (ctypes.c_char * 120)())
    if number < 0:
        pytest.skip("there is no io_uring here")
    about = Path(f"/proc/self/fdinfo/{number}").read_text()
    os.close(number)
    if "CachedSqHead" not in about:
        pytest.skip("the kernel doesn't tell whether an io_uring has requests")
    setup = f"{ring}\nfiles.append(os.eventfd(0))"
    with on_terminal(python(setup, SELECT)) as terminal:
        seen = ask_until(lambda: look(terminal.leader, 0), waits_among_others)

    assert seen.sleeps_s == sleeps_s
