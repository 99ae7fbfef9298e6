"""The sessions in containers that clients of podman pass keys to.

A client is connected to the monitor of its session, conmon, which has made the session's terminal
and is the parent of its leader. Source: podman-exec(1), conmon(8).
"""

import os
import time

from . import processes, sockets
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
        known = self._leaders.get(key)
        if known is None and time.monotonic() >= self._again_at.get(key, 0.0):
            known = _leader(client.pid)
            self._leaders = {of: one for of, one in self._leaders.items() if _is_living(*of)}
            self._again_at = {key: time.monotonic() + _AGAIN_S}
            if known:
                self._leaders[key] = known
        return processes.read_living(known.pid, known.starttime) if known else None


def _is_living(pid: int, starttime: int) -> bool:
    return processes.read_living(pid, starttime) is not None


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
