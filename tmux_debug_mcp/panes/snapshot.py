"""One look at the terminal of a pane: who has it, what it does with keys, and who waits for them.

All of it is asked of the kernel, through /proc; nothing is guessed from what the screen shows. What follows from it is
decided in `doing`, which does no I/O.

A thread waits for the terminal when it is in a system call that returns once something was typed: read(2) of it, or
poll(2), select(2) or epoll_wait(2) with it. That may be hidden from us, as of programs of other users.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.linux.terminals import Modes
from tmux_debug_mcp.linux.waits import Wait, wait_of
from tmux_debug_mcp.vt.sequences import plain_name

from .activity import Reader, Snapshot
from .dialects import SHELLS, foreground_shell

# Programs with more processes or threads are not looked at one by one.
_MAX_PROCESSES = 256

# They wait for keys in raw mode all the time, for a program that we can't see.
_RELAYS = frozenset(
    (
        *("ssh", "mosh-client", "telnet", "rlogin", "nc", "ncat", "socat", "minicom", "picocom", "cu", "adb"),
        *("docker", "podman", "kubectl", "oc", "lxc", "machinectl", "systemd-run", "runc", "crun", "nsenter"),
        *("tmux", "screen", "dtach", "abduco", "vagrant", "gcloud", "aws", "fly", "heroku"),
    )
)


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


def look(pane_pid: int, printed: int) -> Snapshot:
    """Return what the kernel tells of a pane at this moment.

    Args:
        pane_pid: The process of pane.sh.
        printed: How many bytes its log has.
    """
    leader = processes.read_stat(pane_pid)
    if leader is None or leader.reaped or leader.state == "Z":
        return Snapshot(is_over=True, printed=printed)
    # pane.sh only waits for the others.
    snapshot = _look_at(leader, _members(leader), terminals.modes(leader.pid), printed)
    return replace(snapshot, shell=foreground_shell(pane_pid))


def _look_at(leader: Stat, members: list[Stat], modes: Modes | None, printed: int) -> Snapshot:
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
    relays = any(processes.program(pid) in _RELAYS for pid, one in found.items() if one.kind >= Reader.AMONG_OTHERS)
    cpu_ns = sum(processes.cpu_ns(member.pid) for member in members)
    for member in members if modes and not modes.is_canonical else ():
        if not found[member.pid].relays:
            continue
        relays = True
        if behind := _behind(member, printed):
            modes, reader, relays = behind.modes, behind.reader, behind.relays
            waiting, reader_ns = behind.readers, behind.reader_ns
            cpu_ns += behind.cpu_ns
    return Snapshot(
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
    for _ in range(_MAX_PROCESSES):
        if not parents:
            break
        for child in processes.children(parents.pop(0)):
            stat = processes.read_stat(child)
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
    threads = processes.threads(process.pid)[: processes.MAX_THREADS]
    kind, relays, waiting = Reader.NOBODY, False, []
    for thread in threads:
        wait = wait_of(process.pid, thread, tty)
        if wait is None:
            kind = max(kind, Reader.UNKNOWN)
        elif wait.is_for_terminal:
            kind = max(kind, _reader(wait, has_threads=len(threads) > 1))
            relays |= wait.is_for_others
            waiting.append((process.pid, thread))
    return _Readers(kind, relays, tuple(waiting), sum(processes.cpu_ns(*reader) for reader in waiting))


def _reader(wait: Wait, *, has_threads: bool) -> Reader:
    """Return what a wait for the terminal tells of the process."""
    if has_threads or not wait.is_for_it_alone:
        return Reader.AMONG_OTHERS
    return Reader.BYTES if wait.reads_a_byte else Reader.ALONE


def _behind(relay: Stat, printed: int) -> Snapshot | None:
    """Return what is to be seen at the terminal that a relay, such as `script`, has made for its child."""
    for pid in processes.descendants(relay.pid):
        stat = processes.read_stat(pid)
        if stat and stat.tty not in (0, relay.tty) and stat.session == stat.pid:
            members = _members(stat)
            # Its standard input may be another terminal.
            modes = terminals.modes_at(f"/dev/pts/{os.minor(terminals.device(stat.tty))}")
            return _look_at(stat, [stat, *members] if stat.pgrp == stat.tpgid else members, modes, printed)
    return None
