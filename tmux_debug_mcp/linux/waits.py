"""What a thread waits for, according to the system call that it is in.

A thread waits for a terminal while it is in a call that returns once something is typed: read(2) of
the terminal, or poll(2), select(2) or epoll_wait(2) with the terminal among the files. `calls`
returns the calls of threads. Among threads whose calls are hidden from us, `HiddenWaits` finds
those that wait for it; among the processes of other sessions, `OutsideReaders` does.
"""

import contextlib
import math
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from . import processes, terminals
from .calls import INPUT, OUTPUT, WakeCondition, awaited, call_of
from .containers import ContainerSessions

# /dev/tty, which is the controlling terminal, and /dev/ptmx, through which a process owns others.
_DEV_TTY = os.makedev(5, 0)
_DEV_PTMX = os.makedev(5, 2)
# A thread that is woken has run after this time, unless the machine is busy.
_WAKE_UP_S = 0.0005
# How long a thread must not run before each time that we wake it. A thread that runs at regular
# times can't do so in the moment after each of these pauses and never else, whatever its interval.
_QUIETS_S = (0.0005, 0.0023, 0.0037)
# How long the answer that a thread does not wait holds.
_ASK_AGAIN_S = 0.5
# A search through all processes ends after this much processor time.
_SEARCH_S = 0.003
# Until the next search, at least this time passes, and this many times what the search took.
_SEARCH_AGAIN_S = 0.02
_PAUSE_PER_SEARCH = 20

# A process and one of its threads.
Thread = tuple[int, str]


class KernelWait(NamedTuple):
    """What a thread waits for, in relation to a terminal.

    Attributes:
        is_for_terminal: It waits for input of the terminal, perhaps among other things.
        is_for_it_alone: It waits for nothing else, and without a timeout.
        is_for_others: It also waits for a terminal that the process itself has made.
        reads_a_byte: It reads a single byte, as the `read` of shells does.
        other_files: The descriptors of the other files that it waits for; None if it may wait for
            something else than input of files, a signal or another thread.
        timeout_s: How long it waits, infinite for no timeout.
    """

    is_for_terminal: bool = False
    is_for_it_alone: bool = False
    is_for_others: bool = False
    reads_a_byte: bool = False
    other_files: tuple[int, ...] | None = None
    timeout_s: float = math.inf


def wait_of(pid: int, thread: str, tty: int) -> KernelWait | None:
    """Return what a thread waits for, or None if the kernel does not let us see it.

    `tty` is the terminal, as in /proc/PID/stat. Raises OSError if too many files are open.
    """
    call = call_of(pid, thread)
    if call is None:
        return None
    waited = awaited(pid, thread, call)
    # A call that only looks sleeps, too, until input that is on its way has arrived.
    if waited is None or waited.timeout_s == 0:
        return KernelWait()
    files = _input_files(pid, thread, waited)
    # /dev/tty is another name of the terminal.
    names = _DEV_TTY, terminals.device(tty)
    terminal = {fd for fd, file in files if file.st_rdev in names}
    others = tuple(fd for fd, _ in waited.files if fd not in terminal)
    inputs = {fd for fd, events in waited.files if events & INPUT}
    is_for_input = not any(events & OUTPUT for _, events in waited.files)
    is_for_nothing_else = inputs == terminal and is_for_input and waited.timeout_s == math.inf
    return KernelWait(
        is_for_terminal=bool(terminal),
        is_for_it_alone=bool(terminal) and is_for_nothing_else,
        is_for_others=any(file.st_rdev == _DEV_PTMX for _, file in files),
        reads_a_byte=bool(terminal) and waited.reads_a_byte,
        other_files=others if is_for_input else None,
        timeout_s=waited.timeout_s,
    )


def _input_files(pid: int, thread: str, waited: WakeCondition) -> list[tuple[int, os.stat_result]]:
    """Return the files for whose input a thread waits, by their descriptors."""
    found = []
    for fd, events in waited.files:
        if events & INPUT:
            with contextlib.suppress(OSError):
                # A thread may have a table of files of its own.
                found.append((fd, os.stat(f"/proc/{pid}/task/{thread}/fd/{fd}")))
    return found


class OutsideReaders:
    """Finds the processes of other sessions that wait for a terminal, such as gpg's pinentry.

    A daemon may have started them, so any process of the machine may be a reader. A search looks
    only at those that have run since it last did: a process that sleeps can't begin to wait. It
    ends after a few milliseconds, and the next search goes on with those that come after. So what a
    search finds may be late, and may wait no longer.

    Attributes:
        containers: Finds those in containers.
    """

    def __init__(self) -> None:
        self.containers = ContainerSessions()
        # What each process had run when we looked at it, and the terminals that it waits for;
        # those that we looked at last come last.
        self._known: dict[int, tuple[int, frozenset[int]]] = {}
        # The processes that wait for each terminal, by its device.
        self._readers: dict[int, list[int]] = {}
        self._search_at = 0.0

    def find(self, tty: int) -> list[int]:
        """Return the processes that wait for a terminal, given as in /proc/PID/stat."""
        self._search()
        return self._readers.get(terminals.device(tty), [])

    def _search(self) -> None:
        if time.monotonic() < self._search_at:
            return
        begin_s = time.thread_time()  # which stands still while others have the processor
        living = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
        known = self._known
        for pid in known.keys() - living:
            del known[pid]
        # No other instance of the file system has our terminals.
        here = os.stat("/dev/pts").st_dev
        for pid in [*(living - known.keys()), *known]:
            spent = processes.run_ns(pid)
            if pid in known and known[pid][0] == spent:
                continue
            known.pop(pid, None)
            known[pid] = spent, _terminals_awaited(pid, here)
            if time.thread_time() > begin_s + _SEARCH_S:
                break
        self._readers = {}
        for pid, (_, devices) in known.items():
            for device in devices:
                self._readers.setdefault(device, []).append(pid)
        took_s = time.thread_time() - begin_s
        self._search_at = time.monotonic() + max(_SEARCH_AGAIN_S, _PAUSE_PER_SEARCH * took_s)


def _terminals_awaited(pid: int, file_system: int) -> frozenset[int]:
    """Return the terminals in a file system, by device, that threads of a process wait for."""
    found: set[int] = set()
    for thread in processes.threads(pid, processes.MAX_THREADS):
        call = call_of(pid, thread)
        waited = awaited(pid, thread, call) if call else None
        if waited and waited.timeout_s:
            files = _input_files(pid, thread, waited)
            found |= {file.st_rdev for _, file in files if file.st_dev == file_system}
    return frozenset(found)


class HiddenWaits:
    """Finds the threads that wait for a terminal among those whose system calls we may not see.

    We can wake the readers of a terminal, and see how long a thread has run: a thread that waits
    for something else does not run then.

    An answer holds until the thread runs again, so that we disturb each wait only once. Otherwise
    we could set the modes just when the program changes them itself. The answer that a thread does
    not wait holds only for a while: on a busy machine, a woken thread may not have run yet.
    """

    def __init__(self) -> None:
        # How long each thread had run when it was asked, and whether it waits for the terminal.
        self._answers: dict[Thread, tuple[int, bool]] = {}
        self._asked_at = 0.0

    def find(self, threads: Sequence[Thread], terminal: str) -> list[Thread]:
        """Return which of these sleeping threads wait for a terminal that hides what is typed.

        Blocks for some 8 ms if threads have run since the last call.
        """
        now = time.monotonic()
        if now > self._asked_at + _ASK_AGAIN_S:
            self._answers = {thread: found for thread, found in self._answers.items() if found[1]}
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
    """Return how long each thread has run, and whether it runs only when roused."""
    times = {thread: processes.cpu_ns(*thread) for thread in threads}
    waiting = set(threads)
    for quiet_s in _QUIETS_S:
        if not waiting:
            break
        time.sleep(quiet_s)
        waiting -= _run_since(times)
        terminals.rouse_readers(terminal)
        time.sleep(_WAKE_UP_S)
        waiting &= _run_since(times)
    return {thread: (times[thread], thread in waiting) for thread in threads}


def _run_since(times: dict[Thread, int]) -> set[Thread]:
    """Return the threads that have run for longer than the times say, and update the times."""
    before = dict(times)
    for thread in times:
        times[thread] = processes.cpu_ns(*thread)
    return {thread for thread in times if times[thread] != before[thread]}
