"""The TCP ports on which a pane's processes listen, and complaints about ports that are taken.

The kernel lists all listening sockets at once. Finding out whose they are means reading the open
files of processes, which takes as long for each pane. So each pane remembers which sockets are not
its own: those that were seen before it was made, and those that it has not had for
`Times.foreign_socket_s`. A look reads at most 1,024 descriptors, and the next look goes on from
there: a pane may have 100,000. Until all were read, nothing is said of what was not found.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes, sockets
from tmux_debug_mcp.linux.sockets import End, Listeners

from .place import Place

_COMPLAINT = re.compile(
    r"address (is )?already in use|EADDRINUSE|\bport\b.{0,20} (is|was) (already )?in use"
    r"|connection in use",
    re.IGNORECASE,
)
_PORT = re.compile(r"\bport\W{0,3}(\d{2,5})\b|:(\d{2,5})\b|', (\d{2,5})\)", re.IGNORECASE)
# The port is near the complaint: in its line, or in this many lines around it.
_LINES_AROUND = 6
# How many descriptors a look reads.
_MAX_READ = 1024
_NUMBER = re.compile(r"(?<!\d)\d{2,5}(?!\d)")


def complaint(text: str) -> list[int] | None:
    """Return the ports named near a complaint that a port is taken; None without a complaint.

    Each may be another number, such as a line number. Those nearest to the complaint come first.
    """
    lowered = text.lower()
    if "in use" not in lowered and "eaddrinuse" not in lowered:
        return None
    lines = text.split("\n")
    for at in reversed(range(len(lines))):
        if not _COMPLAINT.search(lines[at]):
            continue
        near = sorted(range(len(lines)), key=lambda number: abs(number - at))[: 2 * _LINES_AROUND]
        groups = [found for number in near for found in _PORT.findall(lines[number])]
        return list(dict.fromkeys(int("".join(group)) for group in groups))
    return None


def numbers(command: str) -> list[int]:
    """Return the numbers in a command that could be ports."""
    return [int(number) for number in _NUMBER.findall(command)]


class _Search(NamedTuple):
    """A search for sockets that may be the pane's.

    Attributes:
        version: That of the listeners at its begin.
        wanted: The inodes of the sockets.
        descriptors: What is still to be read.
    """

    version: int
    wanted: set[int]
    descriptors: Iterator[tuple[int, int, int]]


class Ports:
    """The ports on which a pane's processes listen.

    Args:
        place: Where the pane is.
        listeners: The sockets that listen.
        before: Their version before the pane was made, as of the last time that they were read.
        clock: The clock.
    """

    def __init__(self, place: Place, listeners: Listeners, before: int, clock: Clock) -> None:
        self._place = place
        self._listeners = listeners
        self._before = before
        self._clock = clock
        # The pane's sockets: for each, a process that has it open, and as which descriptor.
        self._own: dict[int, tuple[int, int]] = {}
        # When a socket was first found not to be the pane's.
        self._missed_at: dict[int, float] = {}
        self._searched_version = before
        self._search: _Search | None = None

    def ends(self, listening: Sequence[End] | None = None) -> list[End]:
        """Return the sockets on which the pane's processes listen, sorted by port.

        `listening` is all sockets that listen; without it, this reads them.
        """
        if listening is None:
            listening = self._listeners.read()
        for inode, holder in list(self._own.items()):
            if sockets.socket_at(*holder) != inode:
                del self._own[inode]
                self._searched_version = -1  # another process may have it
        if self._listeners.version != self._searched_version:
            self._find_own({end.inode for end in listening})
        if not self._own:
            return []
        return [end for end in listening if end.inode in self._own]

    def _find_own(self, listening: set[int]) -> None:
        """Go on finding out which of the listening sockets are the pane's."""
        now = self._clock.now()
        foreign_before = now - self._clock.times.foreign_socket_s
        if self._search is None:
            unknown = {
                inode
                for inode in listening - self._own.keys()
                if self._listeners.since(inode) > self._before
                and self._missed_at.get(inode, now) >= foreign_before
            }
            self._search = _Search(self._listeners.version, unknown, self._descriptors())
        search = self._search
        if search.wanted:
            read = list(islice(search.descriptors, _MAX_READ))
            self._own |= {inode: (pid, fd) for pid, fd, inode in read if inode in search.wanted}
            if len(read) == _MAX_READ:
                return
        self._search = None
        missed = search.wanted - self._own.keys()
        self._missed_at = {
            inode: self._missed_at.get(inode, now)
            for inode in listening - self._own.keys()
            if inode in missed or inode in self._missed_at
        }
        if not missed:
            self._searched_version = search.version

    def _descriptors(self) -> Iterator[tuple[int, int, int]]:
        """Yield the processes of the pane, each with its descriptors and their sockets or 0."""
        for pid in self._place.members():
            for number in processes.open_files(pid):
                yield pid, int(number), sockets.socket_at(pid, int(number))

    def holder(self, port: int, listening: Sequence[End]) -> int | None:
        """Return the process of the pane that listens on a port, None if none does."""
        for end in self.ends(listening):
            if end.port == port:
                return self._own[end.inode][0]
        return None


def foreign_holder(port: int, listening: Sequence[End]) -> processes.Stat | None:
    """Return the process of our user that listens on a port. Blocks for up to about 100 ms."""
    pid = sockets.holder([end.inode for end in listening if end.port == port])
    return None if pid is None else processes.read_stat(pid)
