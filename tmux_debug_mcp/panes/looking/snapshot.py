"""Snapshots of a pane: who has its terminal, in which modes, and who waits for it.

All facts come from the kernel through /proc, none from what the screen shows. `activity` decides
what follows from them.

A thread waits for a terminal while it is in a system call that returns once something is typed:
read(2) of the terminal, or poll(2), select(2) or epoll_wait(2) with it. The kernel may hide that
call from us, as with another user's programs. Then we can find out only a wait for hidden input.

Processes of other sessions may wait for it as well, since they can open it by its name: gpg has its
agent start a pinentry. Programs in the background of the terminal's own session can't read it.

Programs keep running while a snapshot is taken, so the order of the reads matters:

- The modes are read before and after the threads. If a program changed them in between, as a new
  program may do, nothing counts as waiting.
- The processor time of a process is read before anything else that it can change, such as who has
  the terminal. If it runs after that, the next snapshot shows more processor time.
- The name of the foreground is read last. If exec(2) changes it after that, the process has run,
  and the next snapshot shows more processor time.
"""

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tmux_debug_mcp.linux import calls, loops, processes, terminals
from tmux_debug_mcp.linux.containers import terminal_of
from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.linux.terminals import Modes
from tmux_debug_mcp.linux.waits import HiddenWaits, KernelWait, OutsideReaders, Thread, wait_of
from tmux_debug_mcp.panes.shells.dialects import COMMAND_SHELLS, SHELLS, in_front, shell_of
from tmux_debug_mcp.vt.printable import plain_name

from .activity import Snapshot, WaitKind

# At most this many processes and threads are looked at, to bound the time of a snapshot.
_MAX_PROCESSES = 256
_MAX_THREADS = 512

# Programs that always wait for keys in raw mode, on behalf of a program that we can't see.
_REMOTE_SHELLS = ("ssh", "mosh-client", "telnet", "rlogin", "adb")
_CONNECTIONS = ("nc", "ncat", "socat", "minicom", "picocom", "cu")
_CONTAINERS = ("docker", "podman", "kubectl", "oc", "lxc", "runc", "crun", "nsenter")
_PODMAN = "podman"
_MACHINES = ("machinectl", "systemd-run", "vagrant", "gcloud", "aws", "fly", "heroku")
_MULTIPLEXERS = ("tmux", "screen", "dtach", "abduco")
RELAYS = frozenset((*_REMOTE_SHELLS, *_CONNECTIONS, *_CONTAINERS, *_MACHINES, *_MULTIPLEXERS))
# Programs that ask others' users for secrets, and read them key by key.
_PINENTRIES = ("pinentry-curses", "pinentry-gnome3", "pinentry-gtk-2", "pinentry-qt")
_ASKERS = frozenset((*_PINENTRIES, "systemd-ask-password"))


@dataclass(frozen=True, slots=True)
class _GroupMember:
    """A process that a snapshot looks at, with its threads that wait for the terminal.

    Attributes:
        has_own_terminals: It also waits for terminals that it has made for other programs.
        sleeps_s: For how long it sleeps if no key and no signal from outside wakes it.
        is_outside: It is neither below the session leader nor in the foreground.
        threads: Its waiting threads, as process and thread id.
        hidden: The threads whose waits the kernel hides.
    """

    stat: Stat
    cpu_ns: int
    waiting: WaitKind = WaitKind.NONE
    has_own_terminals: bool = False
    threads: tuple[Thread, ...] = ()
    threads_ns: int = 0
    hidden: tuple[Thread, ...] = ()
    sleeps_s: float = 0.0
    is_outside: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether a thread is seen to wait for the terminal."""
        return self.waiting >= WaitKind.AMONG_OTHERS


class _Descendants(NamedTuple):
    """The descendants of a process, zombies too, parents before children.

    `runs` has the processor times of the process and of its descendants. No limit left out any if
    it `is_whole`.
    """

    stats: list[Stat]
    runs: dict[int, int]
    is_whole: bool


def look(
    pane_pid: int,
    printed_bytes: int,
    hidden_waits: HiddenWaits | None = None,
    last: Snapshot | None = None,
    outside: OutsideReaders | None = None,
) -> Snapshot:
    """Return a snapshot of a pane, given the pid of its pane.sh, the terminal's session leader.

    `hidden_waits` holds what earlier snapshots of this pane found out about hidden threads. If
    nothing has run since the `last` snapshot, little needs to be read again. Without `outside`,
    readers of other sessions aren't looked for.
    Source: proc(5), termios(3).
    """
    terminal = f"/proc/{pane_pid}/fd/0"
    if last and _is_still_so(last, terminal) and not has_outside_news(last, outside):
        return replace(last, printed_bytes=printed_bytes)
    # Not pane.sh itself, which only waits for its command.
    below = _descendants(pane_pid)
    session_leader = processes.read_stat(pane_pid)
    if session_leader is None or session_leader.has_ended_command or session_leader.state == "Z":
        return Snapshot(is_over=True, printed_bytes=printed_bytes)
    front = in_front(session_leader, [stat.pid for stat in below.stats[:1]])
    hidden_waits = hidden_waits or HiddenWaits()
    snapshot = _look_at_terminal(session_leader, below, front, terminal, hidden_waits, outside)
    named = processes.read_stat(snapshot.pid) if snapshot.pid else None
    shell = named if named and named.pid == front else processes.read_stat(front)
    return replace(
        snapshot,
        foreground=plain_name(named.comm) if named else snapshot.foreground,
        shell=shell_of(shell),
        printed_bytes=printed_bytes,
    )


def has_run(snapshot: Snapshot) -> bool:
    """Return whether a process may have run, or was left out, since it was found in a snapshot.

    A process that had gone when its time was to be read counts, since the kernel may then have left
    others out of a list of children.
    """
    runs = snapshot.runs
    return not runs or any(spent == 0 or processes.run_ns(pid) != spent for pid, spent in runs)


def has_outside_news(snapshot: Snapshot, outside: OutsideReaders | None) -> bool:
    """Return whether a process outside may have begun or ceased to wait for the terminal since."""
    if outside is None or (snapshot.readers and not snapshot.outside):
        return False
    return tuple(outside.find(snapshot.tty)) != snapshot.outside


def _is_still_so(last: Snapshot, terminal: str) -> bool:
    """Return whether another snapshot would be equal, but for what was printed."""
    if last.is_at_work or has_run(last) or terminals.modes_at(terminal) != last.modes:
        return False
    # A process that was woken changes nothing until it runs, but no longer waits.
    stats = [processes.read_stat(pid) for pid, _ in last.runs[1:]]
    if not all(stat and stat.state not in "RD" for stat in stats):
        return False
    return not has_run(last)


def _descendants(pid: int) -> _Descendants:
    """Return the descendants of a process, up to the limits."""
    stats: list[Stat] = []
    runs = {pid: processes.run_ns(pid)}
    parents = deque([pid])
    room = _MAX_PROCESSES
    threads_room = _MAX_THREADS
    while parents and room > 0:
        parent = parents.popleft()
        threads = processes.threads(parent, threads_room)
        threads_room -= len(threads)
        children = [child for thread in threads for child in processes.children_of(parent, thread)]
        for child in children[:room]:
            room -= 1
            runs[child] = processes.run_ns(child)
            stat = processes.read_stat(child)
            if stat:
                parents.append(child)
                stats.append(stat)
    return _Descendants(stats, runs, is_whole=room > 0 and threads_room > 0)


def _look_at_terminal(
    session_leader: Stat,
    below: _Descendants,
    front: int,
    terminal: str,
    hidden_waits: HiddenWaits,
    outside: OutsideReaders | None,
) -> Snapshot:
    """Return a snapshot of one terminal but for `shell`, the process `front`, and what was printed.

    `below` are the processes below the session leader.
    """
    group = session_leader.tpgid
    stats, runs, is_whole = below
    if group not in (session_leader.pid, *(stat.pid for stat in stats)):
        group_leader = processes.read_stat(group)
        if group_leader:  # the limit has left it out
            stats, is_whole = [*stats, group_leader], False
    modes = terminals.modes_at(terminal)
    examined, has_all_threads = _examined(session_leader, stats)
    is_whole = is_whole and has_all_threads
    hidden = [thread for member in examined for thread in member.hidden]
    if modes and modes.hides_lines and not modes.unread_bytes:
        asked = hidden_waits.find(hidden, terminal)
        examined = [_with_hidden_waits(member, asked) for member in examined]
    is_waiting = any(member.is_waiting for member in examined)
    found: list[int] = []
    # A program on whose behalf another one asks has begun, and is at rest.
    nothing_runs = bool(stats) and not any(member.stat.state in "RD" for member in examined)
    if outside and not is_waiting and nothing_runs:
        found = outside.find(session_leader.tty)
        # The time of a process examined before it began to wait stays the earlier time.
        runs = runs | {pid: processes.run_ns(pid) for pid in found if pid not in runs}
        examined += _examine_outside(found, session_leader, examined)
        is_waiting = any(member.is_waiting for member in examined)
    # A program that has just changed the modes may have begun to wait in either.
    if is_waiting and terminals.modes_at(terminal) != modes:
        examined = [_GroupMember(member.stat, member.cpu_ns) for member in examined]
        is_whole = is_whole and not found  # their processor times are from after the change
    members = [member for member in examined if member.stat.pgrp == group or member.is_waiting]
    group_members = [member for member in members if member.stat.pgrp == group]
    named = _named(session_leader, group_members)
    programs = [processes.program(member.stat.pid) for member in members if member.is_waiting]
    has_outside_relay = any(member.is_outside and member.has_own_terminals for member in members)
    waiting, sleeps_s = _waiting(members, modes)
    # A child that isn't looked at may work, and the end of its work wakes its parent.
    others = {stat.ppid for stat in stats if stat.pgrp != group and stat.state not in "ZX"}
    if not is_whole or any(member.stat.pid in others for member in members):
        sleeps_s = 0.0
    snapshot = Snapshot(
        tty=session_leader.tty,
        group=group,
        pid=named.pid if named else None,
        foreground=plain_name(named.comm) if named else None,
        modes=modes,
        own_modes=modes,
        waiting=waiting,
        sleeps_s=sleeps_s,
        shell_waiting=_shell_waiting(front, group_members),
        relays=has_outside_relay or not RELAYS.isdisjoint(programs),
        asks_for_secret=not _ASKERS.isdisjoint(programs),
        readers=tuple(thread for member in members for thread in member.threads),
        outside=tuple(found),
        reader_ns=sum(member.threads_ns for member in members),
        is_at_work=any(member.stat.state in "RD" for member in members),
        cpu_ns=sum(member.cpu_ns for member in members),
        # Hidden threads are asked again and again.
        runs=tuple(runs.items()) if is_whole and not hidden else (),
    )
    if modes is None or modes.is_canonical:
        return snapshot
    for member in members:
        if member.has_own_terminals and not member.is_outside:
            snapshot = _look_behind(member.stat, snapshot, hidden_waits, outside)
        elif outside and member.is_waiting and processes.program(member.stat.pid) == _PODMAN:
            leader = outside.containers.leader(member.stat)
            inside = terminal_of(leader) if leader else None
            if leader and inside:
                snapshot = _look_inside(leader, inside, snapshot, hidden_waits, outside)
    return snapshot


def _examined(session_leader: Stat, below: Sequence[Stat]) -> tuple[list[_GroupMember], bool]:
    """Examine the living processes below a session leader that may read its terminal.

    These are the foreground group, and processes that have moved to a session without a terminal,
    as the child of `su -c` does. Also return whether no limit has left out threads of them.
    """
    group, session = session_leader.tpgid, session_leader.session
    examined: list[_GroupMember] = []
    room = _MAX_THREADS
    for stat in below:
        may_read = stat.pgrp == group or (stat.session != session and stat.tty == 0)
        if may_read and stat.state not in "ZX":
            names = processes.threads(stat.pid, min(room, processes.MAX_THREADS))
            room -= len(names)
            examined.append(_examine(stat, names, session_leader.tty))
    return examined, room > 0


def _examine(process: Stat, names: Sequence[str], tty: int) -> _GroupMember:
    """Find which of these threads of a process wait for a terminal."""
    cpu_ns = processes.run_ns(process.pid)
    if process.state in "Tt":
        return _GroupMember(process, cpu_ns)
    waiting = WaitKind.NONE
    has_own_terminals = False
    threads: list[Thread] = []
    hidden: list[Thread] = []
    threads_ns = 0
    waits: dict[str, KernelWait] = {}
    for name in names:
        thread_ns = processes.cpu_ns(process.pid, name) if len(names) > 1 else cpu_ns
        wait = wait_of(process.pid, name, tty)
        if wait is None:
            waiting = max(waiting, WaitKind.UNKNOWN)
            hidden.append((process.pid, name))
            continue
        waits[name] = wait
        if wait.is_for_terminal:
            if len(names) > 1 or not wait.is_for_it_alone:
                kind = WaitKind.AMONG_OTHERS
            else:
                kind = WaitKind.BYTEWISE if wait.reads_a_byte else WaitKind.ALONE
            waiting = max(waiting, kind)
            has_own_terminals |= wait.is_for_others
            threads.append((process.pid, name))
            threads_ns += thread_ns
    sleeps_s = math.inf if waiting > WaitKind.AMONG_OTHERS else 0.0
    if waiting is WaitKind.AMONG_OTHERS and not hidden and len(names) < processes.MAX_THREADS:
        sleeps_s = loops.sleeps_s(process.pid, waits)
        if processes.run_ns(process.pid) != cpu_ns:
            sleeps_s = 0.0
    return _GroupMember(
        process,
        cpu_ns,
        waiting,
        has_own_terminals,
        tuple(threads),
        threads_ns,
        tuple(hidden),
        sleeps_s,
    )


def _examine_outside(
    pids: Sequence[int], session_leader: Stat, examined: Sequence[_GroupMember]
) -> Iterator[_GroupMember]:
    """Yield those of these processes that do wait for the terminal, and may read it."""
    seen = {member.stat.pid for member in examined}
    for stat in map(processes.read_stat, pids):
        if stat is None or stat.pid in seen:
            continue
        is_background = stat.tty == session_leader.tty and stat.pgrp != session_leader.tpgid
        names = processes.threads(stat.pid, processes.MAX_THREADS)
        member = _examine(stat, names, session_leader.tty)
        if member.is_waiting and not is_background:
            yield replace(member, is_outside=True)


def _with_hidden_waits(member: _GroupMember, waiting: Sequence[Thread]) -> _GroupMember:
    """Return a member that includes its hidden threads known to wait for the terminal."""
    threads = tuple(thread for thread in member.hidden if thread in waiting)
    if not threads:
        return member
    return replace(
        member,
        waiting=max(member.waiting, WaitKind.AMONG_OTHERS),
        threads=member.threads + threads,
        threads_ns=member.threads_ns + sum(processes.cpu_ns(*thread) for thread in threads),
    )


def _named(session_leader: Stat, group: Sequence[_GroupMember]) -> Stat | None:
    """Return the process that names the foreground, None if the group is empty.

    That is the group leader, or the oldest process if the group leader has ended. Where it is a
    shell that waits for a command of its own group, the command has the terminal.
    """
    if not group:
        return None
    leaders = [member for member in group if member.stat.pid == session_leader.tpgid]
    first = (leaders or group)[0]
    if first.is_waiting or first.stat.comm not in SHELLS:
        return first.stat
    # As an editor does in a command substitution.
    reading = [member.stat for member in group if member.is_waiting]
    if reading:
        return reading[-1]
    # `$SHELL -c` stays for a list of commands.
    is_leaders_group = session_leader.pgrp == session_leader.tpgid
    if is_leaders_group and first.stat.comm in COMMAND_SHELLS:
        commands = [member.stat for member in group if member.stat.ppid == first.stat.pid]
        if commands and _waits_for_command(first.stat.pid):
            return commands[-1]
    return first.stat


def _shell_waiting(shell: int, group: Sequence[_GroupMember]) -> WaitKind:
    """Return how the shell in front itself waits for the terminal, given the foreground group.

    If the kernel hides that, another process of the group may be what waits.
    """
    waiting = next((member.waiting for member in group if member.stat.pid == shell), WaitKind.NONE)
    return WaitKind.NONE if waiting is WaitKind.UNKNOWN and len(group) > 1 else waiting


def _waits_for_command(shell: int) -> bool:
    """Return whether a shell waits for one of its children, as far as the kernel shows.

    It does not while it reads the terminal or a file or opens a FIFO, with jobs in the background.
    """
    call = calls.call_of(shell, str(shell))
    if call is None or not call.arguments:  # hidden, or about to wait
        return True
    if call.name != "read":
        return call.name in (*calls.CHILD_WAITS, "rt_sigsuspend")
    try:  # the output of a command, if it is a pipe
        return os.readlink(f"/proc/{shell}/fd/{call.arguments[0]}").startswith("pipe:")
    except OSError:
        return True


def _waiting(members: Sequence[_GroupMember], modes: Modes | None) -> tuple[WaitKind, float]:
    """Return how all members together wait for the terminal, and for how long they sleep."""
    sleeping = {member.stat.pid: member for member in members if member.sleeps_s}
    # A shell that runs a program waits for it, and so does a program that runs another. So the
    # ancestors of the first reader count as waiting for it.
    parents = {member.stat.pid: member.stat.ppid for member in members}
    waits_for_reader: set[int] = set()
    pid = next(iter(sleeping), 0)
    # Processes are read one after another, so reused pids could make a cycle.
    while pid in parents and pid not in waits_for_reader:
        waits_for_reader.add(pid)
        pid = parents[pid]
    do_all_wait = parents.keys() <= sleeping.keys() | waits_for_reader
    # With VMIN 0, read(2) also returns if nothing was typed.
    is_timed = modes is not None and modes.polls
    if not sleeping or not do_all_wait or is_timed:
        waiting = max((member.waiting for member in members), default=WaitKind.NONE)
        return min(waiting, WaitKind.AMONG_OTHERS), 0.0
    waiting = min(member.waiting for member in sleeping.values())
    return waiting, min(member.sleeps_s for member in sleeping.values())


def _look_behind(
    relay: Stat, snapshot: Snapshot, hidden_waits: HiddenWaits, outside: OutsideReaders | None
) -> Snapshot:
    """Return a snapshot with the facts of the terminal that a relay has made, if we find it.

    A relay, such as `script`, waits for keys at the terminal of `snapshot`, and passes them on to
    the terminal of a descendant.
    """
    for leader in _descendants(relay.pid).stats:
        is_living = leader.state not in "ZX"
        if is_living and leader.session == leader.pid and leader.tty not in (0, relay.tty):
            break
    else:
        return replace(snapshot, relays=True)
    # By its number, since the session leader's standard input may be another terminal.
    terminal = f"/dev/pts/{os.minor(terminals.device(leader.tty))}"
    return _look_inside(leader, terminal, snapshot, hidden_waits, outside)


def _look_inside(
    leader: Stat,
    terminal: str,
    snapshot: Snapshot,
    hidden_waits: HiddenWaits,
    outside: OutsideReaders | None,
) -> Snapshot:
    """Return a snapshot with the facts of the terminal of a session that a relay passes keys to."""
    below = _descendants(leader.pid)
    below.stats.insert(0, leader)  # it may be in the foreground itself
    behind = _look_at_terminal(leader, below, 0, terminal, hidden_waits, outside)
    return replace(
        snapshot,
        inside=behind.inside or behind.pid,
        modes=behind.modes,
        waiting=behind.waiting,
        relays=behind.relays,
        asks_for_secret=behind.asks_for_secret,
        readers=behind.readers,
        reader_ns=behind.reader_ns,
        runs=(),
        cpu_ns=snapshot.cpu_ns + behind.cpu_ns,
    )
