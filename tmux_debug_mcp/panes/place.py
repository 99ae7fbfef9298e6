"""Where a pane is, in tmux and among the processes, and how to end all its processes."""

import functools
import os
import shlex
import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NewType

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.tmux.client import Command, ControlClient

PaneId = NewType("PaneId", str)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pane is.

    Attributes:
        client: The connection to its tmux server.
        target: tmux's id of the pane, such as %3.
        ids: Our ids of its session, window and pane, when it was made: `$N`, `@N` and `%N`. They
            count on across all tmux servers of this server run.
        leader: pane.sh at its start, the session leader of the pane's terminal.
        tag: The value of `processes.TAG` in the environment of all processes started in the pane.
        writes_log: The tmux command that makes tmux write the pane's output to its log.
    """

    client: ControlClient
    target: str
    ids: tuple[str, str, str]
    leader: processes.Stat
    tag: str
    writes_log: Command

    def living_leader(self) -> processes.Stat | None:
        """Return the current state of pane.sh, None once it has ended."""
        return processes.read_living(self.leader.pid, self.leader.starttime)

    async def end_processes(self, clock: Clock, signals: tuple[int, ...], grace_s: float) -> bool:
        """End the processes that belong to the pane; return whether that took less than `kill_s`.

        These are the descendants of pane.sh, and the orphans that the supervisor has adopted and
        that are in the pane's session or carry its tag. pane.sh itself is left alone, so it can
        report how its command ended. Each process first gets the signals and SIGCONT, and SIGKILL
        after the grace period. A command that has not begun gets them once it has: until then,
        pane.sh and its fork catch them.
        """
        times = clock.times
        begin = clock.now()
        signalled: set[int] = set()
        has_begun = grace_s <= 0
        leader = self.living_leader()
        if leader:
            processes.send_signals([leader.pid], signal.SIGCONT)
        while clock.now() < begin + times.kill_s:
            grace_left_s = begin + grace_s - clock.now()
            has_begun = has_begun or leader is None or leader.has_begun_command
            if grace_left_s > 0 and not has_begun:
                await clock.sleep(times.fast_poll_s)
                leader = self.living_leader()
                continue
            living = self.members()
            if not living:
                return True
            if grace_left_s > 0:
                new = [pid for pid in living if pid not in signalled]
                processes.send_signals(new, *signals, signal.SIGCONT)
                signalled.update(new)
                await wait_for_exit(clock, living, grace_left_s)
            else:
                processes.send_signals(living, signal.SIGKILL)
                await wait_for_exit(clock, living, times.kill_again_s)
        return False

    def members(self) -> list[int]:
        """Return the living processes that belong to the pane: descendants first, then orphans."""
        living = processes.descendants(self.leader.pid) if self._runs_command() else []
        # Asked again, since the command may have just ended: what it has left is an orphan then.
        if living and not self._runs_command():
            living.clear()

        def is_orphan(stat: processes.Stat) -> bool:
            if stat.starttime < self.leader.starttime:
                return False
            return stat.session == self.leader.pid or processes.tag(stat.pid) == self.tag

        # Orphans last, so that they include a process that has just left the tree.
        orphans = processes.living_children(self.client.supervisor_pid, is_orphan)
        living += orphans
        for orphan in orphans:
            living += processes.descendants(orphan)
        return living

    def _runs_command(self) -> bool:
        """Return whether pane.sh lives, and doesn't only wait for tmux to read all output."""
        leader = self.living_leader()
        return leader is not None and not leader.has_ended_command


async def wait_for_exit(clock: Clock, pids: Iterable[int], timeout_s: float) -> None:
    """Wait until all of the processes have ended or the timeout is over."""
    with clock.move_on_after(timeout_s):
        for pid in pids:
            fd = processes.open_pidfd(pid)
            if fd >= 0:
                try:
                    await anyio.wait_readable(fd)
                finally:
                    os.close(fd)


@functools.cache
def system_program(name: str, path: str | None) -> str:
    """Return the path of a program that every system has; its name if it is missing.

    The system's own comes first, then what PATH has.
    """
    return shutil.which(name, path=os.defpath) or shutil.which(name, path=path) or name


def writes_log(target: str, log: Log, path: str | None) -> Command:
    """Return `Place.writes_log` of a target, given PATH. Source: tmux(1), pipe-pane."""
    cat = shlex.quote(system_program("cat", path))
    return ("pipe-pane", "-t", target, f"exec {cat} >>{log.writable}")
