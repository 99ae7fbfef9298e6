"""The sessions in containers that clients of podman pass keys to.

A client is connected to the monitor of its session, conmon, which has made the session's terminal
and is the parent of its leader. Source: podman-exec(1), conmon(8).
"""

import contextlib
import os
import time

from . import processes, sockets, terminals
from .processes import Stat

_MONITOR = "conmon"
# A client that isn't connected yet is looked at again after this time.
_AGAIN_S = 0.2


class ContainerSessions:
    """Finds the leaders of sessions in containers, but for docker's, whose daemon is root's."""

    def __init__(self) -> None:
        # By the pid of the client and its start.
        self._leaders: dict[tuple[int, int], Stat] = {}
        self._again_at: dict[tuple[int, int], float] = {}

    def leader(self, client: Stat) -> Stat | None:
        """Return the leader of the session that a client passes keys to, as far as we see it."""
        key = client.pid, client.starttime
        now = time.monotonic()
        if key not in self._leaders and now >= self._again_at.get(key, 0.0):
            self._again_at = {of: at for of, at in self._again_at.items() if at > now}
            self._again_at[key] = now + _AGAIN_S
            for of in [of for of in self._leaders if processes.read_living(*of) is None]:
                del self._leaders[of]
            found = _leader(client.pid)
            if found:
                self._leaders[key] = found
        known = self._leaders.get(key)
        return processes.read_living(known.pid, known.starttime) if known else None


def terminal_of(leader: Stat) -> str | None:
    """Return a path of the terminal of a session in a container; None if it has none open.

    No path in the container is followed, which may lead anywhere.
    """
    for number in range(3):
        path = f"/proc/{leader.pid}/fd/{number}"
        with contextlib.suppress(OSError):
            if os.stat(path).st_rdev == terminals.device(leader.tty):
                return path
    return None


def _leader(client: int) -> Stat | None:
    ends = [sockets.unix_end(inode) for _, inode in sockets.sockets_of(client)]
    peers = {end.peer for end in ends if end and end.peer}
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        if not peers or processes.read(f"/proc/{pid}/comm") != f"{_MONITOR}\n".encode():
            continue
        if all(inode not in peers for _, inode in sockets.sockets_of(pid)):
            continue
        for child in map(processes.read_stat, processes.children(pid)):
            if child and child.session == child.pid and child.tty:
                return child
    return None
