"""What a program is blocked on, or merely waits for: the call that it is in, and what it is about.

The words follow "it": `reads 127.0.0.1:5432 (fd 7)`, `waits for a lock (futex)`. If only the
process itself has the other end of a pipe or a socket, they say so, since nobody else can end such
a wait. If a single other process of the pane has it, perhaps with descendants, they name that
process, and what it is blocked on. Nothing is guessed: there are no words for what runs, what is
hidden from us and what we don't know.

A program merely waits if that is usual: time, a signal, a request or a change ends it, as in a
server that accepts. So does one that waits for such a program. Others are blocked.

- A program that waits for its only child is blocked on what the child is blocked on.
- Of several threads, the main thread decides. While it waits for the others, on a lock or its own
  event, they decide, if all that do something else do the same. While it only accepts, as in a
  server, threads decide that wait for another server, to write, or for the lock of a file.
- What is read here may change meanwhile, so the calls of all threads are read again at the end.

Sources: proc(5), syscalls(2), futex(2), epoll(7), fifo(7), pidfd_open(2).
"""

import contextlib
import math
import os
import re
import signal
import socket
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import cache, reduce
from operator import and_
from typing import NamedTuple

from . import calls, processes, sockets, terminals
from .calls import INPUT, OUTPUT
from .descriptors import EVENTFD, Descriptors, descriptors, has_pipe_end, has_unix_peer
from .waits import Thread

# Bounds for the time that this takes: processes on the way down, threads of each, descriptors that
# one look reads, files that one call waits for, sockets of a protocol. Nothing is said of what is
# beyond.
_MAX_DEPTH = 16
_MAX_THREADS = 64
_MAX_DESCRIPTORS = 2048
_MAX_AWAITED = 1024
_MAX_SOCKETS = 2048
# How many of the things that one call waits for are named.
_MAX_NAMED = 3
_MAX_PATH_BYTES = 4096

_READS = {"read", "readv", "pread64", "preadv", "recvfrom", "recvmsg", "recvmmsg"}
_ACCEPTS = {"accept", "accept4"}
_WRITES = {"write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "sendmmsg"}
_OPENS = {"open", "openat"}
# Calls that need no further look, and what they wait for.
_PLAIN = {
    "nanosleep": "sleeps",
    "clock_nanosleep": "sleeps",
    "semop": "waits for a semaphore",
    "semtimedop": "waits for a semaphore",
    "msgrcv": "waits for a message",
    "msgsnd": "waits for room for a message",
    "mq_timedreceive": "waits for a message",
    "mq_timedsend": "waits for room for a message",
    "pause": "waits for a signal",
    "rt_sigsuspend": "waits for a signal",
    "rt_sigtimedwait": "waits for a signal",
}
# Those that are usual, of these and of `_ANONYMOUS`.
_USUAL = {
    "sleeps",
    "waits for a message",
    "waits for a signal",
    "waits for a timer",
    "waits for file changes",
}
# Files without a path, and what it means to read them.
_ANONYMOUS = {
    "anon_inode:inotify": "waits for file changes",
    "anon_inode:[fanotify]": "waits for file changes",
    "anon_inode:[timerfd]": "waits for a timer",
    "anon_inode:[signalfd]": "waits for a signal",
    EVENTFD: "waits for an event (eventfd)",
}
_PIDFD = re.compile(r"(anon_inode:\[pidfd\]|pidfd:)")
_EPOLL = "anon_inode:[eventpoll]"

_FUTEX_PRIVATE = 128
_FUTEX_WAITS = (0, 6, 9, 11, 13)  # WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2
_LOCKING = (7, 38)  # F_SETLKW, F_OFD_SETLKW
# waitid(2): which children.
_P_PID, _P_PGID, _P_PIDFD = 1, 2, 3
_AT_FDCWD = -100
# Signals, as bits. A handler may release the lock that a program waits for; those of faults and
# Python's own for SIGINT don't.
_SIGCHLD = 1 << (signal.SIGCHLD - 1)
_FAULTS = (signal.SIGINT, signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)
_RELEASING = 0x7FFFFFFF & ~sum(1 << (number - 1) for number in (*_FAULTS, signal.SIGSEGV))
_DEV_TTY = os.makedev(5, 0)
# Instead of a protocol: the sockets that listen.
_LISTENING = "listening"
# The states of sockets but TCP_TIME_WAIT, of which there can be thousands.
_LIVING = 0xFFFFFFFF & ~(1 << 6)


@dataclass(frozen=True, slots=True)
class Blockage:
    """What a program is blocked on, or merely waits for.

    Attributes:
        text: What it does, in words that follow "it".
        is_usual: It merely waits.
        groups: The process groups of the processes that were looked at.
        threads: The threads that this was read from, with the processor time that each had used.
            The text stays true until one of them runs.
    """

    text: str
    is_usual: bool
    groups: frozenset[int]
    threads: tuple[tuple[Thread, int], ...]

    def __str__(self) -> str:
        """Return what it does, as a status says it: `blocked: reads a pipe (fd 0)`, `sleeps`."""
        return self.text if self.is_usual else f"blocked: {self.text}"

    def is_still_so(self) -> bool:
        """Tell whether none of the threads has run since."""
        return all(processes.cpu_ns(*thread) == spent for thread, spent in self.threads)


class _Fact(Flag):
    """What is true of a wait.

    Attributes:
        REQUEST: Somebody has to connect to it.
        WORK: It is for what a thread of a server needs to answer: another server, room to write,
            the lock of a file.
        OWN_EVENT: Only its own threads or signals can end it, as in an event loop.
        CHILD: It is for a child, which the text names.
        LOOP: A signal can end it, too, as in an event loop.
        USUAL: Time, a signal, a request or a change ends it.
    """

    NONE = 0
    REQUEST = auto()
    WORK = auto()
    OWN_EVENT = auto()
    CHILD = auto()
    LOOP = auto()
    USUAL = auto()


@dataclass(frozen=True, slots=True)
class _Wait:
    """What a thread is blocked on: its text follows "it".

    Attributes:
        ends: The other processes of the pane that have the other end of the pipe that it is for.
    """

    text: str
    facts: _Fact = _Fact.NONE
    ends: frozenset[int] = frozenset()


class _UnknownError(Exception):
    """What a process is blocked on is hidden or not clear."""


class _RunningError(_UnknownError):
    """A process runs, or has ended."""


def blocked_on(
    pid: int,
    plain: Callable[[str], str],
    others: Callable[[], Iterable[int]],
    *,
    is_for_group: bool = False,
    is_inside: bool = False,
) -> Blockage | None:
    """Return what a process is blocked on, None if it runs or if we can't be sure.

    Args:
        pid: The process.
        plain: Makes names and paths, which programs choose, safe to print.
        others: Returns all processes that may have the other ends of its pipes.
        is_for_group: Of those, don't look at what is in another process group.
        is_inside: Return what a program waits for that the process is inside of, as in script(1).
    """
    look = _Look(plain, others, is_for_group=is_for_group)
    try:
        wait = look.child(pid) if is_inside else look.process(pid)
        look.check_unchanged()
    except _UnknownError:
        return None
    spent = [(thread, seen) for thread, (_, seen) in look.calls.items()]
    is_usual = _Fact.USUAL in wait.facts
    return Blockage(wait.text, is_usual, frozenset(look.groups), (*spent, *look.stopped.items()))


def _plain_wait(text: str) -> _Wait:
    """Return the wait of a call or a file that needs no further look."""
    return _Wait(text, _Fact.USUAL if text in _USUAL else _Fact.NONE)


class _Ends:
    """The sockets of a protocol, or all that listen; none if there are too many.

    A protocol is given by its name in the kernel, such as `TCPv6`.
    """

    def __init__(self, protocol: str) -> None:
        if protocol == _LISTENING:
            ends = sockets.listening()
        else:
            number = socket.IPPROTO_UDP if protocol.startswith("UDP") else socket.IPPROTO_TCP
            family = socket.AF_INET6 if protocol.endswith("v6") else socket.AF_INET
            ends = sockets.ends(family, number, states=_LIVING, most=_MAX_SOCKETS + 1)
            if len(ends) > _MAX_SOCKETS:
                ends = []
        self.by_inode = {end.inode: end for end in ends if end.inode}
        self.by_way = {(end.host, end.port, end.peer_host, end.peer_port): end for end in ends}
        self.ports = {end.port for end in ends}


class _Look:
    """One look at a process, and at those that it waits for.

    Attributes:
        calls: The call of each thread, and the processor time that it had used before.
        groups: The process groups of the processes.
        stopped: The main threads of the stopped processes that have the other end of a pipe, and
            the processor time that each had used.
        is_full: Some processes have more descriptors than this look reads.
    """

    def __init__(
        self,
        plain: Callable[[str], str],
        others: Callable[[], Iterable[int]],
        *,
        is_for_group: bool,
    ) -> None:
        self.plain = plain
        self._is_for_group = is_for_group
        self.others = cache(lambda: list(others()))
        self.calls: dict[Thread, tuple[calls.SystemCall, int]] = {}
        self.groups: set[int] = set()
        self.stopped: dict[Thread, int] = {}
        self.ends = cache(_Ends)
        self.descriptors = cache(self._descriptors)
        self._room = _MAX_DESCRIPTORS
        self.is_full = False

    def check_unchanged(self) -> None:
        for (pid, thread), (call, spent) in self.calls.items():
            if calls.call_of(pid, thread) != call or processes.cpu_ns(pid, thread) != spent:
                raise _RunningError

    def process(self, pid: int, depth: int = 0) -> _Wait:
        about = processes.read_stat(pid)
        if about is None or about.state in "ZX" or depth > _MAX_DEPTH:
            raise _RunningError
        self.groups.add(about.pgrp)
        if about.state == "T":
            return _Wait("is stopped")
        if not _has_64_bits(pid):  # its calls have other numbers
            raise _UnknownError
        threads = self._read_calls(pid)
        names = {thread: self.calls[pid, thread][0].name for thread in threads}
        if str(pid) not in names:  # the main thread may end before the others
            raise _UnknownError
        # What the main thread does, unless it waits for others.
        main = None if names[str(pid)] == "futex" else self._call(pid, str(pid), depth)
        if main and _Fact.REQUEST in main.facts:
            return self._threads_of_a_server(pid, names, depth) or main
        if main and _Fact.OWN_EVENT not in main.facts:
            return self._or_children(pid, main, depth)
        busy = [thread for thread, name in names.items() if name != "futex"]
        waits = {self._call(pid, thread, depth) for thread in busy}
        waits = {wait for wait in waits if _Fact.OWN_EVENT not in wait.facts}
        if len(waits) == 1:
            [wait] = waits
            if _Fact.CHILD in wait.facts:
                return wait
            return _Wait(f"a thread {wait.text}", wait.facts & _Fact.USUAL, wait.ends)
        if main:
            children = _awaited_children(pid)
            return self._any_child(pid, children, depth) if children else main
        if waits:
            raise _UnknownError
        return _Wait(self._locks(pid, threads))

    def _or_children(self, pid: int, wait: _Wait, depth: int) -> _Wait:
        """Return a wait with the children whose end can also end it, if else it would be stuck."""
        is_stuck_loop = _Fact.LOOP in wait.facts and _Fact.USUAL not in wait.facts
        children = _awaited_children(pid) if is_stuck_loop else []
        if not children:
            return wait
        before = dict(self.calls), set(self.groups), dict(self.stopped)
        try:
            for_child = self._any_child(pid, children, depth)
        except _UnknownError:
            self.calls, self.groups, self.stopped = before
            return wait
        return _Wait(f"{wait.text} or {for_child.text}", for_child.facts & _Fact.USUAL)

    def _threads_of_a_server(self, pid: int, names: Mapping[str, str], depth: int) -> _Wait | None:
        """Return what threads beside the main thread wait for, if it is more than a request."""
        texts = []
        for thread, name in names.items():
            if name == "futex" or thread == str(pid):
                continue
            before = dict(self.calls), set(self.groups), dict(self.stopped)
            with contextlib.suppress(_UnknownError):
                wait = self._call(pid, thread, depth)
                if _Fact.WORK in wait.facts:
                    texts.append(wait.text)
            # None of these texts is about another process.
            self.calls, self.groups, self.stopped = before
        texts.sort()
        if len(texts) > 1:
            return _Wait(f"{len(texts)} threads wait: one {texts[0]}")
        return _Wait(f"a thread {texts[0]}") if texts else None

    def _read_calls(self, pid: int) -> list[str]:
        """Read the calls of a process, and return its threads."""
        for read in (self.others, self.ends, self.descriptors):
            read.cache_clear()
        threads = processes.threads(pid, _MAX_THREADS + 1)
        if len(threads) > _MAX_THREADS:
            raise _UnknownError
        for thread in threads:
            spent = processes.cpu_ns(pid, thread)
            call = calls.call_of(pid, thread)
            if call is None:
                raise _UnknownError
            if not call.arguments or not processes.is_asleep(pid, thread):
                raise _RunningError
            self.calls[pid, thread] = call, spent
        return threads

    def _descriptors(self, pid: int) -> Descriptors | None:
        """Return the descriptors of a process; None if hidden, or too many for this look."""
        try:
            found = descriptors(pid, self._room)
        except PermissionError:
            return None
        if found is None:
            self.is_full = True
            return None
        self._room -= sum(map(len, found.values()))
        return found

    def _locks(self, pid: int, threads: Sequence[str]) -> str:
        """Return what a process waits for if all its threads wait for locks or their own events."""
        ways = [self.calls[pid, thread][0] for thread in threads]
        waits = [call.arguments for call in ways if call.name == "futex"]
        if any(wait[1] & calls.FUTEX_COMMANDS not in _FUTEX_WAITS for wait in waits):
            raise _UnknownError
        can_end = any(wait[3] or not wait[1] & _FUTEX_PRIVATE for wait in waits)
        # By a timeout, a process or another thread, or by the handler of a signal.
        if can_end or len(waits) < len(threads) or _caught(pid) & _RELEASING:
            return "waits for a lock (futex)"
        if len(threads) == 1:
            return "waits for a lock that only it can release (futex)"
        return f"waits for locks in all {len(threads)} threads (futex)"

    def _call(self, pid: int, thread: str, depth: int) -> _Wait:
        name, arguments, _ = self.calls[pid, thread][0]
        files = _Files(self, pid, thread, depth)
        if name in _PLAIN:
            if name == "rt_sigsuspend":
                return self._signal(pid, depth)
            return _plain_wait(_PLAIN[name])
        if name in calls.CHILD_WAITS:
            return self._children(pid, files, name, arguments, depth)
        if name in _READS | _ACCEPTS:
            return files.read(arguments[0])
        if name in _WRITES:
            return files.write(arguments[0])
        if name == "connect":
            return files.connect(arguments[0])
        if name in calls.FILE_WAITS:
            files.check_number()
            waited = calls.awaited(pid, thread, self.calls[pid, thread][0]) or calls.WakeCondition()
            return files.among([*waited.files], has_timeout=waited.timeout_s < math.inf)
        if name == "flock" or (name == "fcntl" and arguments[1] in _LOCKING):
            return files.lock(arguments[0])
        if name in _OPENS:
            return files.open(name, arguments)
        raise _UnknownError

    def other_end(self, about: processes.Stat, depth: int) -> _Wait | None:
        """Return what keeps a process that has the other end of a pipe.

        None if nothing does, if we don't know, or if it was looked at already.
        """
        if about.state == "T":
            self.stopped[about.pid, str(about.pid)] = processes.cpu_ns(about.pid, str(about.pid))
            self.groups.add(about.pgrp)
            return _Wait("is stopped")
        is_elsewhere = self._is_for_group and about.pgrp not in self.groups
        if is_elsewhere or any(about.pid == pid for pid, _ in self.calls):
            return None
        before = dict(self.calls), set(self.groups), dict(self.stopped)
        try:
            return self.process(about.pid, depth + 1)
        except _UnknownError:
            self.calls, self.groups, self.stopped = before
            return None

    def _signal(self, pid: int, depth: int) -> _Wait:
        """Return what a process that waits for a signal is blocked on: perhaps its only child."""
        children = _awaited_children(pid)
        if len(children) == 1:
            return self.child(children[0], depth)
        return _plain_wait(_PLAIN["rt_sigsuspend"])

    def _children(
        self, pid: int, files: "_Files", name: str, arguments: Sequence[int], depth: int
    ) -> _Wait:
        if name == "waitid":
            kind, number = arguments[0], arguments[1]
            if kind == _P_PGID:
                raise _UnknownError
            if kind == _P_PIDFD:
                number = files.pid_of(_signed(number))
            wanted = number if kind in (_P_PID, _P_PIDFD) else -1
        else:
            wanted = _signed(arguments[0])
        children = _living_children(pid)
        if not children:  # as strace that was attached to a process
            children = _traced_by(pid, self.others())
        if wanted > 0:
            children = [child for child in children if child == wanted]
        elif wanted != -1:
            raise _UnknownError  # children of a process group
        if not children:
            raise _UnknownError
        return self._any_child(pid, children, depth)

    def _any_child(self, pid: int, children: Sequence[int], depth: int) -> _Wait:
        if len(children) == 1:
            return self.child(children[0], depth)
        waits = [self.child(child, depth) for child in children]  # none may run
        # In a pipeline, the child that the others wait for. They may wait for the process itself.
        families = [{child, *processes.descendants(child)} for child in children]
        everybody = {pid}.union(*families)
        first = [
            wait
            for wait, family in zip(waits, families, strict=True)
            if not wait.ends & (everybody - family)
        ]
        if len(first) == 1:
            return first[0]
        text = f"waits for pids {', '.join(map(str, children))}"
        if len(children) > _MAX_NAMED:
            text = f"waits for {len(children)} children"
        return _Wait(text, _Fact.CHILD | _usual_of(waits))

    def child(self, pid: int, depth: int = 0) -> _Wait:
        """Return what a process that waits for this child is blocked on."""
        before = dict(self.calls)
        try:
            wait = self.process(pid, depth + 1)
        except _RunningError:
            raise
        except _UnknownError:
            # It may sleep in a call that we don't know.
            self.calls = before
            self._read_calls(pid)
            return _Wait(f"waits for pid {pid}", _Fact.CHILD | _Fact.USUAL)
        if _Fact.CHILD in wait.facts:
            return wait
        child = processes.read_stat(pid)
        if child is None:
            raise _UnknownError
        text = f"waits for {self.plain(child.comm)} (pid {pid}), which {wait.text}"
        return _Wait(text, _Fact.CHILD | wait.facts & _Fact.USUAL, wait.ends)


def _usual_of(waits: Iterable[_Wait]) -> _Fact:
    """Return whether one of several waits is usual: while it is, not all of them are stuck."""
    return _Fact.USUAL if any(_Fact.USUAL in wait.facts for wait in waits) else _Fact.NONE


class _Lock(NamedTuple):
    """A lock of a file: by flock(2), or of bytes; who has it, -1 for an open file description."""

    is_flock: bool
    holder: int
    start: int
    end: float

    def excludes(self, other: "_Lock") -> bool:
        """Tell whether the other lock waits for this; locks of bytes never do for their own."""
        is_common = self.start <= other.end and other.start <= self.end
        may_wait = self.is_flock or self.holder != other.holder
        return is_common and may_wait and self.is_flock == other.is_flock


def _living_children(pid: int) -> list[int]:
    return [child for child in processes.children(pid) if processes.is_alive(child)]


def _awaited_children(pid: int) -> list[int]:
    """Return the children of an event loop, if a signal tells it of their ends."""
    return _living_children(pid) if _caught(pid) & _SIGCHLD else []


def _ancestor_of_all(pids: frozenset[int]) -> processes.Stat | None:
    """Return the process that all other processes here descend from, None if there is none."""
    for pid in pids:
        if pids <= {pid, *processes.descendants(pid)}:
            return processes.read_stat(pid)
    return None


def _traced_by(pid: int, others: Iterable[int]) -> list[int]:
    """Return which of some processes a process traces. Source: proc(5), /proc/PID/status."""
    tracer = b"\nTracerPid:\t%d\n" % pid
    return [traced for traced in others if tracer in processes.read(f"/proc/{traced}/status")]


def _caught(pid: int) -> int:
    """Return the signals that a process catches and does not block, as bits. Source: proc(5)."""
    blocked, caught = processes.signal_masks(pid, "SigBlk", "SigCgt")
    return (caught or 0) & ~(blocked or 0)


def _has_64_bits(pid: int) -> bool:
    """Tell whether a process runs a 64-bit program. Source: elf(5), EI_CLASS."""
    try:
        fd = os.open(f"/proc/{pid}/exe", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(fd, 5) == b"\x7fELF\x02"
    finally:
        os.close(fd)


def _signed(word: int) -> int:
    """Return an argument that is a C int."""
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word


class _Files:
    """The open files of a thread, and what it means to wait for them."""

    def __init__(self, look: _Look, pid: int, thread: str, depth: int) -> None:
        self._look = look
        self._pid = pid
        self._plain = look.plain
        self._depth = depth
        # A thread may have its own table of files.
        self.directory = f"/proc/{pid}/task/{thread}"

    def check_number(self) -> None:
        """Raise _UnknownError if the process has more descriptors than we look at."""
        if self._look.descriptors(self._pid) is None:
            raise _UnknownError

    def read(self, fd: int) -> _Wait:
        """Return what it means to read a file, or to accept from it."""
        fd = _signed(fd)
        link = self._link(fd)
        if link in _ANONYMOUS:
            return _plain_wait(_ANONYMOUS[link])
        if _PIDFD.match(link):
            return _Wait(f"waits for pid {self.pid_of(fd)}", _Fact.CHILD | _Fact.USUAL)
        if link.startswith("socket:"):
            return self._socket(fd, "reads")
        return self._file(fd, link, is_read=True)

    def write(self, fd: int) -> _Wait:
        fd = _signed(fd)
        link = self._link(fd)
        if link.startswith("socket:"):
            return self._socket(fd, "writes to")
        return self._file(fd, link, is_read=False)

    def connect(self, fd: int) -> _Wait:
        return self._socket(_signed(fd), "connects to")

    def among(self, files: list[tuple[int, int]], *, has_timeout: bool) -> _Wait:
        """Return what it means to wait for one of several files, given the events of each."""
        waits: list[_Wait] = []
        is_for_itself = False
        plain = {fd for fd, mask in files if mask & (INPUT | OUTPUT)}
        for fd, mask in files:  # which grows in this loop
            if not mask & (INPUT | OUTPUT):
                if fd not in plain:  # such as for a hang-up
                    raise _UnknownError
                continue
            if len(files) > _MAX_AWAITED:
                raise _UnknownError
            if self._link(fd) == _EPOLL:
                files += calls.epolled(self.directory, fd)
            elif mask & INPUT and self._wakes_itself(fd):
                is_for_itself = True
            else:
                waits.append(self._either(fd, mask))
        if not waits:
            text = "waits for an event of its own" if is_for_itself else "waits for a signal"
            wait = _plain_wait("sleeps" if has_timeout else text)
            own = _Fact.OWN_EVENT | _Fact.LOOP if is_for_itself else _Fact.NONE
            return _Wait(wait.text, wait.facts | own)
        texts = sorted({wait.text for wait in waits})
        # All of them read: say "reads" once.
        do_all_read = all(text.startswith("reads ") for text in texts)
        if len(texts) > _MAX_NAMED:
            more = len(texts) - _MAX_NAMED + 1
            texts = [*texts[: _MAX_NAMED - 1], f"{more} more"]
        joined = " or ".join(texts)
        text = joined.replace(" or reads ", " or ") if do_all_read else joined
        ends = frozenset[int]()
        if all(wait.ends for wait in waits):
            ends = ends.union(*(wait.ends for wait in waits))
        facts = reduce(and_, (wait.facts for wait in waits)) | _usual_of(waits)
        if is_for_itself:
            facts |= _Fact.LOOP
        return _Wait(text, facts, ends)

    def _either(self, fd: int, mask: int) -> _Wait:
        """Return what it means to wait until a file can be read, or written, or either."""
        if not mask & OUTPUT:
            return self.read(fd)
        end = self._end(fd)
        if end and end.state == sockets.TCP_SYN_SENT:
            return self.connect(fd)
        if not mask & INPUT:
            return self.write(fd)
        # Event loops such as Go's ask for both, even for files that can only be read.
        if self._link(fd).startswith("socket:"):
            return self._socket(fd, "waits for")
        try:
            mode = os.lstat(f"{self.directory}/fd/{fd}").st_mode
        except OSError:
            raise _UnknownError from None
        if mode & 0o600 == 0o600:  # noqa: PLR2004  open for both
            raise _UnknownError
        return self.read(fd) if mode & 0o400 else self.write(fd)

    def lock(self, fd: int) -> _Wait:
        """Return what it means to wait for the lock of a file. Source: proc(5), /proc/locks."""
        fd = _signed(fd)
        link = self._link(fd)
        file = self._stat(fd)
        inode = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        held, wanted = [], []
        for line in processes.read("/proc/locks").decode().splitlines():
            _, *words = line.split()
            is_waiting = words[0] == "->"
            kind, _, _, holder, place, start, end = words[is_waiting:]
            if place != inode:
                continue
            last = math.inf if end == "EOF" else int(end)
            lock = _Lock(kind == "FLOCK", int(holder), int(start), last)
            if not is_waiting:
                held.append(lock)
            elif lock.holder == self._pid:
                wanted.append(lock)
        holders = set()
        if len(wanted) == 1:  # else another thread waits for a lock of the file, too
            holders = {lock.holder for lock in held if lock.excludes(wanted[0])}
        text = f"waits for a lock on {self._plain(link)}"
        if holders == {self._pid}:
            text += " that it holds itself"
        elif len(holders) == 1:
            [owner] = holders
            # It may have passed the lock on to a child and ended.
            if self._numbers(owner, file):
                text += f" that pid {owner} holds"
        return _Wait(f"{text} (fd {fd})", _Fact.WORK)

    def open(self, name: str, arguments: Sequence[int]) -> _Wait:
        """Return what it means to open a file: a FIFO waits for whoever opens its other end."""
        directory = "cwd"
        if name == "openat":
            fd = _signed(arguments[0])
            directory = "cwd" if fd == _AT_FDCWD else f"fd/{fd}"
            arguments = arguments[1:]
        path = os.fsdecode(self._string(arguments[0]))
        if not path:
            raise _UnknownError
        base = "root" if path.startswith("/") else directory
        try:
            is_fifo = stat.S_ISFIFO(os.stat(f"{self.directory}/{base}/{path}").st_mode)
        except OSError:
            raise _UnknownError from None
        access = arguments[1] & os.O_ACCMODE
        if not is_fifo or access == os.O_RDWR:
            raise _UnknownError
        nobody_does = "writes" if access == os.O_RDONLY else "reads"
        return _Wait(f"opens the FIFO {self._plain(path)}, which nobody {nobody_does}")

    def _string(self, address: int) -> bytes:
        """Return a C string in the memory of the process; the page after it may be unmapped."""
        room = 4096 - address % 4096
        data = calls.memory(self._pid, address, room)
        if b"\0" not in data:
            data += calls.memory(self._pid, address + room, _MAX_PATH_BYTES)
        text, end, _ = data.partition(b"\0")
        return text if end else b""

    def pid_of(self, fd: int) -> int:
        """Return the process of a pidfd. Source: proc(5), /proc/PID/fdinfo."""
        found = re.search(rb"^Pid:\t(\d+)$", self._info(fd), re.MULTILINE)
        if not found:
            raise _UnknownError
        return int(found[1])

    def _info(self, fd: int) -> bytes:
        return processes.read(f"{self.directory}/fdinfo/{fd}")

    def _link(self, fd: int) -> str:
        try:
            return os.readlink(f"{self.directory}/fd/{fd}")
        except OSError:
            raise _UnknownError from None

    def _stat(self, fd: int) -> os.stat_result:
        try:
            return os.stat(f"{self.directory}/fd/{fd}")
        except OSError:
            raise _UnknownError from None

    def _file(self, fd: int, link: str, *, is_read: bool) -> _Wait:
        file = self._stat(fd)
        does, facts = ("reads", _Fact.NONE) if is_read else ("writes to", _Fact.WORK)
        if not stat.S_ISFIFO(file.st_mode):
            if not link.startswith("/"):
                raise _UnknownError
            name = "the terminal" if self._is_terminal(file) else self._plain(link)
            return _Wait(f"{does} {name} (fd {fd})", facts)
        name = "a pipe" if link.startswith("pipe:") else f"the FIFO {self._plain(link)}"
        verb, way = ("writes", "from") if is_read else ("reads", "to")
        numbered = f"{does} {name} (fd {fd})"
        others = self._others_with(file)
        if others is None:
            return _Wait(numbered, facts)
        ends = frozenset(pid for pid in others if self._has_other_end(pid, file, is_read=is_read))
        if self._has_other_end(self._pid, file, is_read=is_read):
            # Somebody of another pane may have opened a FIFO.
            is_own = not others and link.startswith("pipe:")
            text = f"{does} {name} that only it {verb} (fd {fd})" if is_own else numbered
            return _Wait(text, facts, ends)
        about = _ancestor_of_all(ends)
        if about is None:
            return _Wait(numbered, facts, ends)
        text = f"{numbered} {way} {self._plain(about.comm)} (pid {about.pid})"
        end_wait = self._look.other_end(about, self._depth)
        if end_wait:
            text += f", which {end_wait.text}"
            if is_read:  # who sleeps does not make room in a pipe
                facts |= end_wait.facts & _Fact.USUAL
        return _Wait(text, facts, ends)

    def _is_terminal(self, file: os.stat_result) -> bool:
        process = processes.read_stat(self._pid)
        is_device = process is not None and file.st_rdev == terminals.device(process.tty)
        return file.st_rdev != 0 and (is_device or file.st_rdev == _DEV_TTY)

    def _numbers(self, pid: int, file: os.stat_result) -> list[str]:
        """Return a process's descriptors of a file; none if they are hidden or too many."""
        return (self._look.descriptors(pid) or {}).get((file.st_dev, file.st_ino), [])

    def _has_other_end(self, pid: int, file: os.stat_result, *, is_read: bool) -> bool:
        return has_pipe_end(pid, self._numbers(pid, file), writes=is_read)

    def _others_with(self, file: os.stat_result) -> list[int] | None:
        """Return who else in the pane has a file open; None if some are hidden, or too many."""
        others = [pid for pid in self._look.others() if pid != self._pid]
        if any(self._look.descriptors(pid) is None for pid in (self._pid, *others)):
            return None
        return [pid for pid in others if self._numbers(pid, file)]

    def _wakes_itself(self, fd: int) -> bool:
        """Tell whether a file is of a kind that event loops wake themselves with."""
        link = self._link(fd)
        if link == EVENTFD:
            return True
        if link.startswith("pipe:"):
            file = self._stat(fd)
            if not self._has_other_end(self._pid, file, is_read=True):
                return False
            others = self._others_with(file)
            if others is None and self._look.is_full:
                raise _UnknownError
            if others is None:  # a process that hides has called execve(2)
                return self._closes_on_exec(fd)
            return not any(self._has_other_end(pid, file, is_read=True) for pid in others)
        if link.startswith("socket:") and self._protocol(fd).startswith("UNIX"):
            return has_unix_peer(self._stat(fd), self._look.descriptors(self._pid) or {})
        return False

    def _closes_on_exec(self, fd: int) -> bool:
        flags = re.search(rb"^flags:\t(\d+)$", self._info(fd), re.MULTILINE)
        return flags is not None and bool(int(flags[1], 8) & os.O_CLOEXEC)

    def _has_socket(self, fd: int, inode: int) -> bool:
        """Tell whether the process has another socket besides that at a descriptor."""
        device = self._stat(fd).st_dev  # that of all sockets
        return (device, inode) in (self._look.descriptors(self._pid) or {})

    def _protocol(self, fd: int) -> str:
        """Return the protocol of a socket as the kernel names it: `TCP`, `UDPv6`, `UNIX-STREAM`."""
        try:
            name = os.getxattr(f"{self.directory}/fd/{fd}", "system.sockprotoname")
        except OSError:
            # Where calls are filtered, as in a build of Nix, there may be no extended attributes.
            inode = self._stat(fd).st_ino
            for protocol in ("TCP", "TCPv6", "UDP", "UDPv6"):
                if inode in self._look.ends(protocol).by_inode:
                    return protocol
            return "UNIX" if sockets.unix_end(inode) else ""
        return name.rstrip(b"\0").decode(errors="replace")

    def _end(self, fd: int) -> sockets.End | None:
        protocol = self._protocol(fd)
        if not protocol.startswith("TCP"):
            return None
        return self._look.ends(protocol).by_inode.get(self._stat(fd).st_ino)

    def _socket(self, fd: int, verb: str) -> _Wait:
        protocol = self._protocol(fd)
        inode = self._stat(fd).st_ino
        if protocol.startswith("UNIX"):
            return self._unix_socket(fd, inode, verb)
        unknown = _Wait(f"{verb} a socket (fd {fd})", _facts(verb, is_accepted=True))
        if not protocol.startswith(("TCP", "UDP")):
            return unknown
        # The kernel lists listening sockets at once, and all sockets in milliseconds.
        listening = self._look.ends(_LISTENING)
        end = listening.by_inode.get(inode)
        if end:
            return _Wait(f"accepts on {end.address}", _Fact.REQUEST | _Fact.USUAL)
        ends = self._look.ends(protocol)
        end = ends.by_inode.get(inode)
        if end and protocol.startswith("UDP"):
            place = end.peer if end.peer_port else end.address
            facts = _facts(verb, is_accepted=not end.peer_port)
            if verb == "reads" and not end.peer_port:  # whoever sends to it
                facts |= _Fact.USUAL
            return _Wait(f"{verb} UDP {place} (fd {fd})", facts)
        if end is None or not end.peer_port:
            return unknown
        place = end.peer
        is_accepted = end.port in listening.ports
        if end.peer_port not in listening.ports:
            is_accepted |= _is_ephemeral(end.peer_port) and not _is_ephemeral(end.port)
        if is_accepted:
            place = f"{end.peer}, which connected to :{end.port}"
        facts = _facts(verb, is_accepted=is_accepted)
        if verb == "connects to":
            return _Wait(f"connects to {end.peer} (fd {fd})", facts)
        peer_end = ends.by_way.get((end.peer_host, end.peer_port, end.host, end.port))
        is_open = peer_end is not None and peer_end.state == sockets.TCP_ESTABLISHED
        if peer_end and is_open and not peer_end.inode and verb != "writes to":
            place = f"{end.peer}, which has not accepted the connection"
        elif peer_end and self._has_socket(fd, peer_end.inode):
            place += ", whose other end it has itself"
        return _Wait(f"{verb} {place} (fd {fd})", facts)

    def _is_usual_at(self, fd: int, peer: int) -> bool:
        """Tell whether the only other process of the pane that has the peer of a socket waits."""
        key = self._stat(fd).st_dev, peer
        others = [pid for pid in self._look.others() if key in (self._look.descriptors(pid) or {})]
        about = processes.read_stat(others[0]) if len(others) == 1 else None
        wait = self._look.other_end(about, self._depth) if about else None
        return wait is not None and _Fact.USUAL in wait.facts

    def _unix_socket(self, fd: int, inode: int, verb: str) -> _Wait:
        end = sockets.unix_end(inode)
        if end is None:
            return _Wait(f"{verb} a socket (fd {fd})", _facts(verb, is_accepted=True))
        if end.is_listening:
            return _Wait(f"accepts on {self._plain(end.name)}", _Fact.REQUEST | _Fact.USUAL)
        peer = sockets.unix_end(end.peer) if end.peer else None
        name = self._plain((peer.name if peer else "") or end.name) or "a socket"
        if end.peer and self._has_socket(fd, end.peer):
            name += " whose other end it has itself"
        # A socket that was accepted has the name of the listening socket.
        facts = _facts(verb, is_accepted=not (peer and peer.name))
        if verb == "reads" and end.peer and self._is_usual_at(fd, end.peer):
            facts |= _Fact.USUAL
        return _Wait(f"{verb} {name} (fd {fd})", facts)


def _facts(verb: str, *, is_accepted: bool) -> _Fact:
    """Return what is true of a wait for a socket. If that `is_accepted`, reads await a request."""
    is_work = verb in ("writes to", "connects to") or (verb == "reads" and not is_accepted)
    return _Fact.WORK if is_work else _Fact.NONE


def _is_ephemeral(port: int) -> bool:
    """Tell whether the kernel may give this port if none is asked for. Source: ip(7)."""
    first, last = processes.read("/proc/sys/net/ipv4/ip_local_port_range").split() or (0, 0)
    return int(first) <= port <= int(last)
