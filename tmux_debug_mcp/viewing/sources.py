"""Audits as files: opened, read, merged by time, and followed while servers write them."""

import heapq
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tmux_debug_mcp.linux import files
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.vt.printable import visible

from .audits import Damage, Line, Parser

STANDARD_INPUT = "-"
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK_BYTES = 1 << 18
# No event tells that a file was moved away and made anew, or written from another machine.
_LOOK_MS = 1000
# Poll interval without inotify.
_LOOK_WITHOUT_EVENTS_MS = 200


class Source:
    """An open audit.

    Args:
        word: Its path, or `-` for standard input.
        before_waiting: Called before a read that may wait for a writer.

    Attributes:
        path: Its path, for people.
        fd: Its descriptor, which changes when it is made anew.

    Raises:
        CommandError: It can't be opened.
    """

    def __init__(self, word: str, before_waiting: Callable[[], None]) -> None:
        self._before_waiting = before_waiting
        self._is_input = word == STANDARD_INPUT
        self.path = Path("standard input" if self._is_input else word)
        self.fd = self._open()
        self._parser = Parser(self.path)
        self._position = 0
        self._is_regular = stat.S_ISREG(os.fstat(self.fd).st_mode)

    def check_can_be_followed(self) -> None:
        """Check that this is a file that can grow and be moved away.

        Raises:
            CommandError: It is not.
        """
        if self._is_input or not self._is_regular:
            raise CommandError(
                f"--follow follows regular files, and {visible(str(self.path))} is none. Without "
                "--follow it is read to its end, as it comes."
            )

    def check_is_not(self, out: str) -> None:
        """Check that a page is not to be written over this audit.

        Raises:
            CommandError: It is.
        """
        if not self._is_regular or not os.path.exists(out):
            return
        if os.path.samestat(os.stat(out), os.fstat(self.fd)):
            raise CommandError(
                f"The page '{visible(out)}' would replace the audit that it shows. Name another "
                "file."
            )

    def to_end(self) -> Iterator[Line | Damage]:
        """Yield all lines, the last one also without a line feed."""
        yield from self._written()
        yield from self._parser.finish()

    def new(self) -> Iterator[Line | Damage]:
        """Yield the whole lines that have been written since the last time.

        An audit that was made anew or truncated is read from its beginning.
        """
        if os.fstat(self.fd).st_size < self._position:
            self._begin()
        yield from self._written()
        while True:
            fd = self._made_anew()
            if fd < 0:
                return
            # What was written to the old file between our last look and its move.
            yield from self.to_end()
            os.close(self.fd)
            self.fd = fd
            self._begin()
            yield from self._written()

    def _begin(self) -> None:
        os.lseek(self.fd, 0, os.SEEK_SET)
        self._position = 0
        self._parser = Parser(self.path)

    def _written(self) -> Iterator[Line | Damage]:
        while data := self._read():
            self._position += len(data)
            yield from self._parser.feed(data)

    def _read(self) -> bytes:
        if not self._is_regular:
            self._before_waiting()
        try:
            return os.read(self.fd, _CHUNK_BYTES)
        except OSError as error:
            raise self._unreadable(error) from None

    def _made_anew(self) -> int:
        """Open the file that the path leads to, if it is another one.

        Returns:
            Its descriptor; -1 if the path leads to the open file, or nowhere yet.
        """
        try:
            if os.path.samestat(self.path.stat(), os.fstat(self.fd)):
                return -1
            return os.open(self.path, _OPEN_FLAGS | os.O_NONBLOCK)
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise self._unreadable(error) from None

    def _open(self) -> int:
        try:
            if self._is_input:
                return os.dup(0)
            return os.open(self.path, _OPEN_FLAGS)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> CommandError:
        return CommandError(
            f"{visible(str(self.path))} can't be read: {error.strerror}. Give the path of an "
            "audit, as --audit of the server has it."
        )


class Growth:
    """Waits until audits have grown."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._inotify = files.open_inotify()
        # The numbers of the watches.
        self._watched: dict[Path, int] = {}
        self._poll = select.poll()
        if self._inotify >= 0:
            self._poll.register(self._inotify, select.POLLIN)
        # Only whether the reader of our output is gone.
        self._poll.register(1, 0)
        self.watch()

    def watch(self) -> None:
        """Watch the files that the audits are now."""
        if self._inotify < 0:
            return
        for source in self._sources:
            number = files.watch(self._inotify, source.fd)
            before = self._watched.get(source.path, number)
            if before != number:
                files.unwatch(self._inotify, before)
            self._watched[source.path] = number

    def wait(self) -> bool:
        """Wait until an audit has grown, or a moment.

        Returns:
            False if nobody reads our output any more.
        """
        is_blind = self._inotify < 0
        events = self._poll.poll(_LOOK_WITHOUT_EVENTS_MS if is_blind else _LOOK_MS)
        for fd, event in events:
            if fd == 1 and event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                return False
        if not is_blind:
            files.read_watches(self._inotify)
        return True


def merged(sources: Iterable[Iterator[Line]]) -> Iterator[Line]:
    """Yield the lines of audits by time, with one line of each in memory."""
    iterators = list(sources)
    if len(iterators) == 1:
        return iterators[0]
    return heapq.merge(*iterators, key=_ended_at)


def _ended_at(line: Line) -> float:
    return line.ended_at
