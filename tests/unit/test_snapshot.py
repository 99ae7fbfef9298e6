"""Snapshots of a terminal that changes while they are taken."""

import os
import pty
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from support import ask_until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.waits import Wait, wait_of
from tmux_debug_mcp.panes.looking import snapshot
from tmux_debug_mcp.panes.looking.activity import Awaits, awaited
from tmux_debug_mcp.panes.looking.snapshot import look

# A program whose threads end all the time.
SHORT_THREADS = """import threading
while True:
    threads = [threading.Thread(target=int) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
LOOKING_S = 2


class Reading(NamedTuple):
    """A terminal that `cat` reads.

    Attributes:
        leader: The leader of its session.
        keyboard: The file to type into.
    """

    leader: int
    keyboard: int


@pytest.fixture
def reading() -> Iterator[Reading]:
    keyboard, terminal = pty.openpty()
    # The leader of a session gets the first terminal that it opens as its own.
    script = f"exec <>{os.ttyname(terminal)} >&0 2>&0; (exec cat); :"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        os.close(terminal)
        ask_until(lambda: awaited(look(process.pid, 0)), lambda awaits: awaits is Awaits.INPUT)
        yield Reading(process.pid, keyboard)
        os.close(keyboard)


@contextmanager
def running(*command: str) -> Iterator[int]:
    """Run a program during the block, and yield its pid."""
    with subprocess.Popen(command) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _is_for_terminal(wait: Wait | None) -> bool:
    return wait is not None and wait.is_for_terminal


def test_modes_from_before_a_program_set_its_own_are_not_those_it_reads_with(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as `more`, which sets the modes and reads while the snapshot is taken."""

    def late(pid: int, thread: str, number: int) -> Wait | None:
        tty.setraw(reading.keyboard)
        # The kernel wakes a reader when the modes change.
        return ask_until(lambda: wait_of(pid, thread, number), _is_for_terminal)

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "wait_of", late)
        changed = look(reading.leader, 0)

    assert awaited(changed) is None
    assert changed.readers == ()
    assert awaited(look(reading.leader, 0)) is Awaits.KEYS


def test_run_of_a_reader_after_it_was_seen_to_wait_is_noticed(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early(pid: int, thread: str, number: int) -> Wait | None:
        wait = ask_until(lambda: wait_of(pid, thread, number), _is_for_terminal)
        os.write(reading.keyboard, b"x\n")
        shown = b""
        while shown.count(b"x") < 2:  # the echo and what `cat` prints
            shown += os.read(reading.keyboard, 100)
        return wait

    monkeypatch.setattr(snapshot, "wait_of", early)
    seen = look(reading.leader, 0)
    [(pid, thread)] = seen.readers

    assert seen.reader_ns < processes.cpu_ns(pid, thread)


def test_ending_threads_do_not_count_as_hidden() -> None:
    """The kernel lets nobody but root look into a thread that ends, so root sees no difference."""
    looks = 0
    with running(sys.executable, "-c", SHORT_THREADS) as pid:
        deadline = time.monotonic() + LOOKING_S
        while time.monotonic() < deadline:
            for thread in processes.threads(pid):
                looks += 1
                assert wait_of(pid, thread, 0) is not None

    assert looks


@pytest.mark.parametrize(
    ("command", "expected"), [("exec sleep 1001", None), ("while :; do :; done", Wait())]
)
def test_hidden_thread_may_wait_only_while_it_sleeps(
    monkeypatch: pytest.MonkeyPatch, command: str, expected: Wait | None
) -> None:
    """Nothing is hidden from root, so what the kernel says to others is a stand-in here."""

    def refuse(path: str, flags: int) -> int:
        if path.endswith("/syscall"):
            raise PermissionError(path)
        return really_open(path, flags)

    really_open = os.open
    with running("sh", "-c", command) as pid:
        monkeypatch.setattr(os, "open", refuse)
        ask_until(lambda: wait_of(pid, str(pid), 0), lambda wait: wait == expected)
        monkeypatch.undo()
