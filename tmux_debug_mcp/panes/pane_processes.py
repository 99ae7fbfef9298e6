"""All processes that belong to a pane, and how they are ended."""

import os
import signal
from collections.abc import Iterable

import anyio

from tmux_debug_mcp.linux import processes

from .place import Place

# Time for processes to be gone.
KILL_S = 2.0
# Interval of SIGKILLs, for processes that others start meanwhile.
_KILL_AGAIN_S = 0.05


class PaneProcesses:
    """The processes that belong to a pane, except pane.sh.

    These are the descendants of pane.sh, and the orphans that were adopted by the supervisor and
    are in the pane's session or carry its tag.

    Args:
        place: Where the pane is.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    async def end(self, signals: tuple[int, ...], grace_s: float) -> None:
        """End the processes, but wait for at most `KILL_S`.

        pane.sh is left alone, so that it can tell how its command ended.

        Args:
            signals: What each process gets first, followed by SIGCONT.
            grace_s: The grace period before SIGKILL, in seconds.
        """
        begin = anyio.current_time()
        signalled: set[int] = set()
        if self._place.living_leader():
            processes.send_signals([self._place.leader.pid], signal.SIGCONT)
        while anyio.current_time() < begin + KILL_S:
            living = self._living()
            if not living:
                return
            grace_left_s = begin + grace_s - anyio.current_time()
            if grace_left_s > 0:
                new = [pid for pid in living if pid not in signalled]
                processes.send_signals(new, *signals, signal.SIGCONT)
                signalled.update(new)
                await wait_for_exit(living, grace_left_s)
            else:
                processes.send_signals(living, signal.SIGKILL)
                await wait_for_exit(living, _KILL_AGAIN_S)

    def _living(self) -> list[int]:
        """Return the processes that belong to the pane: descendants first, then orphans."""
        living: list[int] = []
        leader = self._place.living_leader()
        # After its command, pane.sh only runs a sleep, which lets tmux read all output.
        if leader and not leader.reaped:
            living += processes.descendants(leader.pid)
        # Orphans last: a process that leaves the tree meanwhile is among them then.
        orphans = processes.living_children(self._place.client.supervisor_pid, self._is_orphan)
        living += orphans
        for orphan in orphans:
            living += processes.descendants(orphan)
        return living

    def _is_orphan(self, stat: processes.Stat) -> bool:
        is_in_session = stat.session == self._place.leader.pid
        return is_in_session or processes.tag(stat.pid) == self._place.tag


async def wait_for_exit(pids: Iterable[int], timeout_s: float) -> None:
    """Wait until all of the processes have ended or the timeout is over."""
    with anyio.move_on_after(timeout_s):
        for pid in pids:
            fd = processes.open_pidfd(pid)
            if fd >= 0:
                try:
                    await anyio.wait_readable(fd)
                finally:
                    os.close(fd)
