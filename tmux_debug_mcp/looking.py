"""One look at the terminal of a pane: who has it, what it does with keys, and who waits for them.

All of it is asked of the kernel, through /proc; nothing is guessed from what the screen shows. What follows from it is
decided in `doing`, which does no I/O.

A thread waits for the terminal when it is in a system call that returns once something was typed: read(2) of it, or
poll(2), select(2) or epoll_wait(2) with it. That may be hidden from us, as of programs of other users.
"""

import fcntl
import os
import struct
import termios
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import anyio

from . import linux, terminals
from .doing import CONFIRM_S, Activity, Coming, Doing, Facts, Reader
from .linux import Stat
from .logs import Log
from .sequences import plain_name
from .shells import SHELLS, Shell, foreground_shell
from .terminals import Modes

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
_MOST_FILES = 1024
# The controlling terminal by its other name, /dev/tty; and what makes terminals, /dev/ptmx.
_DEV_TTY, _DEV_PTMX = os.makedev(5, 0), os.makedev(5, 2)
# Programs with more processes or threads are not looked at one by one.
_MOST_PROCESSES = 256
_MOST_THREADS = 256

# A shell that starts sets up things; keys wait so long for that.
_STARTING_S = 10.0
_LOOK_AGAIN_S = 0.001
# What a pane was made for may be a shell that has not begun after a shorter time.
_YOUNG_S = 0.05

# They wait for keys in raw mode all the time, for a program that we can't see.
_RELAYS = frozenset(
    (
        *("ssh", "mosh-client", "telnet", "rlogin", "nc", "ncat", "socat", "minicom", "picocom", "cu", "adb"),
        *("docker", "podman", "kubectl", "oc", "lxc", "machinectl", "systemd-run", "runc", "crun", "nsenter"),
        *("tmux", "screen", "dtach", "abduco", "vagrant", "gcloud", "aws", "fly", "heroku"),
    )
)


class _Wait(NamedTuple):
    """What a thread waits for.

    Attributes:
        is_for_terminal: The terminal.
        is_for_it_alone: And nothing else.
        is_for_others: A terminal that it has made for others, too.
    """

    is_for_terminal: bool
    is_for_it_alone: bool
    is_for_others: bool = False


_ELSEWHERE = _Wait(is_for_terminal=False, is_for_it_alone=False)


class _Readers(NamedTuple):
    """Those threads of a process that wait for a terminal.

    Attributes:
        kind: The one that tells most.
        relays: They wait for terminals as well that the process has made for others.
        threads: Their ids, with that of the process.
        cpu_ns: The processor time that they have used.
    """

    kind: Reader = Reader.NOBODY
    relays: bool = False
    threads: tuple[tuple[int, str], ...] = ()
    cpu_ns: int = 0


def look(pane_pid: int, printed: int) -> Facts:
    """Return what the kernel tells of a pane at this moment.

    Args:
        pane_pid: The process of pane.sh.
        printed: How many bytes its log has.
    """
    leader = linux.read_stat(pane_pid)
    if leader is None or leader.reaped or leader.state == "Z":
        return Facts(is_over=True, printed=printed)
    # pane.sh only waits for the others.
    facts = _look_at(leader, _members(leader), terminals.modes(leader.pid), printed)
    return replace(facts, shell=foreground_shell(pane_pid))


def _look_at(leader: Stat, members: list[Stat], modes: Modes | None, printed: int) -> Facts:
    """Return what is to be seen at the terminal of a session leader, given those of the foreground group."""
    group = leader.tpgid
    found = {member.pid: _readers(member, leader.tty) for member in members}
    members = [member for member in members if member.pgrp == group or found[member.pid].kind >= Reader.AMONG_OTHERS]
    found = {member.pid: found[member.pid] for member in members}
    reader = max((one.kind for one in found.values()), default=Reader.NOBODY)
    if reader > Reader.AMONG_OTHERS and ((modes and modes.polls) or not _is_last(members, found)):
        reader = Reader.AMONG_OTHERS
    waiting = tuple(thread for one in found.values() for thread in one.threads)
    reader_ns = sum(one.cpu_ns for one in found.values())
    front = _front(leader, group, members)
    relays = any(linux.program(pid) in _RELAYS for pid, one in found.items() if one.kind >= Reader.AMONG_OTHERS)
    cpu_ns = sum(_cpu_ns(member.pid) for member in members)
    for member in members if modes and not modes.is_canonical else ():
        if not found[member.pid].relays:
            continue
        relays = True
        if behind := _behind(member, printed):
            modes, reader, relays = behind.modes, behind.reader, behind.relays
            waiting, reader_ns = behind.readers, behind.reader_ns
            cpu_ns += behind.cpu_ns
    return Facts(
        group=group,
        pid=front.pid if front else None,
        foreground=plain_name(front.comm) if front else None,
        modes=modes,
        reader=reader,
        relays=relays,
        readers=waiting,
        reader_ns=reader_ns,
        is_at_work=any(member.state in "RD" for member in members),
        cpu_ns=cpu_ns,
        printed=printed,
    )


def _members(leader: Stat) -> list[Stat]:
    """Return the living processes of the foreground group below a session leader, and those without a terminal."""
    found: list[Stat] = []
    parents = [leader.pid]
    for _ in range(_MOST_PROCESSES):
        if not parents:
            break
        for child in linux.children(parents.pop(0)):
            stat = linux.read_stat(child)
            if stat is None:
                continue
            parents.append(child)
            # Who has left for a session without a terminal, as `su -c` does, may still read this one.
            is_apart = stat.session != leader.session and stat.tty == 0
            if (stat.pgrp == leader.tpgid or is_apart) and stat.state not in "ZX":
                found.append(stat)
    return found


def _is_last(members: list[Stat], found: Mapping[int, _Readers]) -> bool:
    """Tell whether those that do not wait for the terminal are the parents of one that does, and wait for that."""
    parents = {member.pid: member.ppid for member in members}
    pid: int | None = next(pid for pid, one in found.items() if one.kind > Reader.AMONG_OTHERS)
    line = set()
    while pid in parents and pid not in line:
        line.add(pid)
        pid = parents[pid]
    return all(pid in line or one.kind > Reader.AMONG_OTHERS for pid, one in found.items())


def _front(leader: Stat, group: int, members: list[Stat]) -> Stat | None:
    """Return the process to name: the leader of the group, or who has its place once that has ended."""
    members = [stat for stat in members if stat.pgrp == group]
    first = next((stat for stat in members if stat.pid == group), members[0] if members else None)
    if first is None or leader.pgrp != group:
        return first
    # `$SHELL -c` stays for a list of commands; then the one that it waits for has the terminal.
    below = [stat for stat in members if stat.ppid == first.pid] if first.comm in SHELLS else []
    return below[-1] if below else first


def _readers(process: Stat, tty: int) -> _Readers:
    """Return the threads of a process that wait for a terminal."""
    if process.state in "Tt":
        return _Readers()
    threads = linux.threads(process.pid)[:_MOST_THREADS]
    kind, relays, waiting = Reader.NOBODY, False, []
    for thread in threads:
        words = _system_call(process.pid, thread)
        if words is None:
            kind = max(kind, Reader.UNKNOWN)
        elif len(words) > 3:  # noqa: PLR2004  with arguments, so it is in a system call
            wait = _wait(process.pid, thread, [int(word, 0) for word in words[:7]], tty)
            if wait.is_for_terminal:
                alone = Reader.BYTES if _reads_bytes(words) else Reader.ALONE
                is_alone = wait.is_for_it_alone and len(threads) == 1
                kind = max(kind, alone if is_alone else Reader.AMONG_OTHERS)
                relays |= wait.is_for_others
                waiting.append((process.pid, thread))
    return _Readers(kind, relays, tuple(waiting), sum(_cpu_ns_of(*reader) for reader in waiting))


def _system_call(pid: int, thread: str) -> list[bytes] | None:
    """Return the words for the system call that a thread is in, none of one that has ended, None if not allowed."""
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/syscall", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return None
    except OSError as error:
        if error.errno in linux.OUT_OF_FILES:
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


def _reads_bytes(words: list[bytes]) -> bool:
    """Tell whether a thread reads a byte only, as shells do that run `read`."""
    return _CALLS.get(int(words[0])) == "read" and int(words[3], 0) == 1


def _wait(pid: int, thread: str, call: list[int], tty: int) -> _Wait:
    """Tell what a thread waits for that is in a system call: its number and its arguments."""
    number, *arguments = call
    match _CALLS.get(number):
        case "read":
            is_terminal = _is_terminal(pid, arguments[0], tty)
            return _Wait(is_terminal, is_terminal)
        case "poll":
            return _wait_for(pid, list(_polled(pid, arguments[0], arguments[1])), tty, arguments[2])
        case "select":
            return _wait_for(pid, list(_selected(pid, arguments[0], arguments[1])), tty, arguments[4])
        case "restart" if b"poll" in linux.read(f"/proc/{pid}/task/{thread}/wchan"):
            return _wait_for(pid, list(_polled(pid, arguments[0], arguments[1])), tty, 0)
        case "epoll":
            return _wait_for(pid, list(_epolled(pid, arguments[0])), tty, 0)
    return _ELSEWHERE


def _wait_for(pid: int, files: list[int], tty: int, timeout: int) -> _Wait:
    """Tell what a thread waits for, given the files and the word for a time: 0 or -1 where there is none."""
    are_terminals = [_is_terminal(pid, number, tty) for number in files]
    is_for_others = any(_device(pid, number) == _DEV_PTMX for number in files)
    has_no_end = timeout == 0 or timeout & 0xFFFFFFFF == 0xFFFFFFFF  # noqa: PLR2004  a null pointer, or -1 of 32 bits
    return _Wait(any(are_terminals), all(are_terminals) and has_no_end, is_for_others)


def _polled(pid: int, address: int, count: int) -> Iterator[int]:
    if count <= _MOST_FILES:
        data = _memory(pid, address, count * _POLL_ENTRY.size)
        for number, events, _ in _POLL_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
            if number >= 0 and events & _POLLIN:
                yield number


def _selected(pid: int, count: int, address: int) -> Iterator[int]:
    if address and count <= _MOST_FILES:
        for index, byte in enumerate(_memory(pid, address, (count + 7) // 8)):
            numbers = (index * 8 + bit for bit in range(8) if byte >> bit & 1)
            yield from (number for number in numbers if number < count)


def _epolled(pid: int, number: int) -> Iterator[int]:
    for line in linux.read(f"/proc/{pid}/fdinfo/{number}").splitlines():
        words = line.split()
        if words[:1] == [b"tfd:"] and int(words[3], 16) & _EPOLLIN:
            yield int(words[1])


def _is_terminal(pid: int, number: int, tty: int) -> bool:
    """Tell whether a file of a process is this terminal, be it by its other name."""
    device = _device(pid, number)
    return device == _DEV_TTY or (device != 0 and device == linux.device(tty))


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


def _cpu_ns(pid: int) -> int:
    """Return the processor time of all threads of a process."""
    return sum(_cpu_ns_of(pid, thread) for thread in linux.threads(pid)[:_MOST_THREADS])


def _cpu_ns_of(pid: int, thread: str) -> int:
    return int((linux.read(f"/proc/{pid}/task/{thread}/schedstat").split() or [b"0"])[0])


def _behind(relay: Stat, printed: int) -> Facts | None:
    """Return what is to be seen at the terminal that a relay, such as `script`, has made for its child."""
    for pid in linux.descendants(relay.pid):
        stat = linux.read_stat(pid)
        if stat and stat.tty not in (0, relay.tty) and stat.session == stat.pid:
            members = _members(stat)
            # Its standard input may be another terminal.
            modes = terminals.modes_at(f"/dev/pts/{os.minor(linux.device(stat.tty))}")
            return _look_at(stat, [stat, *members] if stat.pgrp == stat.tpgid else members, modes, printed)
    return None


def has_input(pid: int) -> bool:
    """Tell whether a process has something to read from the pipe that is its standard input, or is at work on it."""
    try:
        fd = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        unread = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
    except OSError:
        return False
    finally:
        os.close(fd)
    process = linux.read_stat(pid)
    return bool(unread) or (process is not None and process.state != "S")


class Terminal:
    """The terminal of a pane, to be looked at.

    Args:
        pane_pid: The process of pane.sh.
        log: The pane's log.
        flush: Waits until tmux has read what was printed, and has answered what a program asked its terminal.
    """

    def __init__(self, pane_pid: int, log: Log, flush: Callable[[], Awaitable[object]]) -> None:
        self._pane_pid = pane_pid
        self._log = log
        self._flush = flush
        self._known: set[tuple[int, int]] = set()
        self._made_at = anyio.current_time()
        self._last: Facts | None = None
        self._activity = Activity()

    def look(self) -> Facts:
        """Return what one look tells."""
        self._last = look(self._pane_pid, self._log.size)
        self._activity.step(self._last, anyio.current_time())
        return self._last

    def glance(self) -> Doing:
        """Return what the pane is doing as far as that can be told at once: less than a look where all is as before."""
        if self._last is None or not self._is_as_before(self._last):
            self._last = look(self._pane_pid, self._log.size)
        return self._activity.step(self._last, anyio.current_time())

    def typed(self, before: Facts) -> None:
        """Note that something is typed after a look."""
        self._activity = Activity(before)
        self._activity.step(before, anyio.current_time())

    def _is_as_before(self, last: Facts) -> bool:
        """Tell whether those who waited for the terminal have not run since the last look."""
        if not last.readers or last.printed != self._log.size:
            return False
        leader = linux.read_stat(self._pane_pid)
        is_same_group = leader is not None and not leader.reaped and leader.tpgid == last.group
        return is_same_group and sum(_cpu_ns_of(*reader) for reader in last.readers) == last.reader_ns

    async def doing(self, activity: Activity) -> Doing:
        """Look once, and once more where that may tell what is awaited."""
        doing = activity.step(self.look(), anyio.current_time())
        if doing.is_likely and doing.awaits is None and doing.shell is None:
            await self._flush()
            await anyio.sleep(CONFIRM_S)
            doing = activity.step(self.look(), anyio.current_time())
        return doing

    def _has_begun(self) -> bool:
        """Tell whether the pane's command has begun: what has the terminal is not about to become a shell."""
        if anyio.current_time() < self._made_at + _YOUNG_S:
            return False
        first = next(iter(linux.children(self._pane_pid)), None)
        command = linux.read_stat(first) if first else None
        return command is None or not command.is_fork

    async def prompt(
        self, patience_s: float, *, starting_s: float = _STARTING_S, is_to_run: bool = False
    ) -> Shell | None:
        """Wait until the shell that has the terminal is at its prompt.

        Args:
            patience_s: How long to wait for a shell that has been at its prompt before.
            starting_s: How long to wait for one that has not, as long as it is at work.
            is_to_run: A command is to be run there, so what a starting shell runs itself is waited for, too.

        Returns:
            The shell, or None when none has the terminal, or one that does not come to its prompt.
        """
        activity, coming = Activity(), Coming(patience_s, starting_s)
        has_children = False
        begin = anyio.current_time()
        while True:
            if foreground_shell(self._pane_pid) is None:
                if self._has_begun() or anyio.current_time() >= begin + patience_s:
                    return None
                await anyio.sleep(_LOOK_AGAIN_S)
                continue
            doing = await self.doing(activity)
            shell = doing.facts.shell
            if doing.shell or shell is None:
                self._known.update([doing.shell.start] if doing.shell else ())
                return doing.shell
            is_starting = shell.start not in self._known and shell.is_interactive()
            now = anyio.current_time()
            if not coming.step(doing, now, is_starting=is_starting, has_children=has_children):
                return None
            await anyio.sleep(_LOOK_AGAIN_S)
            # Before the next look: a shell whose last child has ended has run since, and that shows there.
            has_children = is_to_run and bool(linux.children(shell.pid))
