"""The log of a pane: all that its terminal got, byte for byte, written by tmux's pipe-pane.

A *cursor* is an offset into the log, in bytes. Behind the program's last byte stands the mark with its exit
code, which pane.sh writes; the cursor of an ended pane stands before the mark.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio

from . import files
from .marks import PANE_MARK
from .transcript import COLUMNS, ROWS

# Marks are found by reading back from the end in pieces of this size.
_PIECE_BYTES = 1 << 16
_MAX_MARK_BYTES = 128
_BLOCK_BYTES = 4096
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
# A log keeps this much, and all logs of a server together no more than that.
MAX_LOG_BYTES = 16 << 20
MAX_LOGS_BYTES = 512 << 20
# How often logs that grow are trimmed. A terminal prints 40 MB in a second at most.
_TRIM_S = 0.25
# How often to look at a log that no news can be had of.
_LOOK_AGAIN_S = 0.005


class Mark(NamedTuple):
    """The end of a pane's program: where in the log, and its exit code as a shell tells it."""

    offset: int
    exit_code: int


class Log:
    """A pane's log, open from before its first byte until `close`.

    Args:
        path: Where to make it.
        mark: The nonce of the mark that the pane's program has ended, or its digest.
        keeper: Is told when the file, which is left then, is closed. Without one it is removed.

    Attributes:
        kept_from: The cursor of the oldest byte that is kept.
        columns: The width of the terminal.
        rows: Its height.
    """

    def __init__(self, path: Path, mark: str, *, keeper: Callable[["Log"], None] | None = None) -> None:
        self.path = path
        self._keeper = keeper
        self._mark = mark
        self._fd = self._open()
        self._last: os.stat_result | None = None
        self.columns, self.rows = COLUMNS, ROWS
        self.kept_from = files.first_data(self._fd)

    def _open(self) -> int:
        fd = os.open(self.path, os.O_CREAT | os.O_EXCL | _APPEND, 0o600)
        try:
            _check_room(fd)
        except OSError:
            self.path.unlink()
            raise
        return fd

    def close(self) -> None:
        """Close and remove it, unless it is kept. What it was can still be asked."""
        if self._last:
            return
        self._last = os.fstat(self._fd)
        os.close(self._fd)
        self._fd = -1
        if self._keeper:
            self._keeper(self)
        else:
            with contextlib.suppress(OSError):
                self.path.unlink()

    @property
    def fd(self) -> int:
        """The open file, or -1."""
        return self._fd

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._last is not None

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._stat().st_size

    @property
    def written_at(self) -> float:
        """When bytes were last added, in seconds since the epoch, as time.time() has it."""
        return self._stat().st_mtime

    @property
    def kept_bytes(self) -> int:
        """How many bytes can still be read: all, or those behind `kept_from`."""
        return self.size - self.kept_from

    def is_at(self, path: str) -> bool:
        """Tell whether a path leads to its file."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(path), self._stat())
        return False

    @property
    def writable(self) -> str:
        """A path that leads to the file through us, wherever it is, and without what a shell would act on."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def trim(self, keep_bytes: int) -> bool:
        """Give back the oldest bytes, so that little more than this many are kept. Cursors stay what they are.

        Returns:
            Whether the file system can do that; where it can't, all is kept.
        """
        end = (self.size - keep_bytes) // _BLOCK_BYTES * _BLOCK_BYTES
        if self._last or end <= self.kept_from:
            return True
        if not files.punch_hole(self._fd, self.kept_from, end - self.kept_from):
            return False
        self.kept_from = end
        return True

    def _is_ours(self, nonce: str) -> bool:
        return self._mark in (nonce, mark_digest(nonce))

    def _stat(self) -> os.stat_result:
        return self._last or os.fstat(self._fd)

    def read(self, start: int, size: int) -> bytes:
        """Return bytes from a cursor on, fewer at the end."""
        return b"" if self._last or size <= 0 else os.pread(self._fd, size, start)

    def find_mark(self) -> Mark | None:
        """Return the mark that the program has ended, or None while there is none."""
        end = 0 if self._last else self.size
        while end > 0:
            start = max(0, end - _PIECE_BYTES)
            piece = os.pread(self._fd, end - start, start)
            for found in reversed(list(PANE_MARK.finditer(piece))):
                exit_code = int(found[2])
                if exit_code <= 255 and self._is_ours(found[1].decode()):  # noqa: PLR2004
                    return Mark(start + found.start(), exit_code)
            # Pieces overlap by a mark, so that none is cut in two.
            end = start + _MAX_MARK_BYTES if start else 0
        return None


class UnnamedLog(Log):
    """A log in a directory, without a name: it is gone when nobody has it open.

    Raises:
        OSError: The file system can't do that (EOPNOTSUPP or EISDIR), or there is no room.
    """

    def __init__(self, directory: Path, mark: str) -> None:
        super().__init__(directory, mark, keeper=lambda _log: None)

    def _open(self) -> int:
        fd = os.open(self.path, os.O_TMPFILE | _APPEND, 0o600)
        _check_room(fd)
        return fd


def _check_room(fd: int) -> None:
    """See that there is room for something in a new file, which is closed where there is none."""
    try:
        os.posix_fallocate(fd, 0, _BLOCK_BYTES)
        os.ftruncate(fd, 0)
    except OSError:
        os.close(fd)
        raise


def mark_digest(nonce: str) -> str:
    """Return what tells a mark that is found from others, and does not tell how to write it."""
    return hashlib.sha256(nonce.encode()).hexdigest()


class PastLog(Log):
    """A log that was kept by an earlier server, to be read.

    Raises:
        OSError: There is none, or something else than a file.
    """

    def __init__(self, path: Path, mark: str) -> None:
        super().__init__(path, mark, keeper=lambda _log: None)

    def _open(self) -> int:
        return files.open_file(str(self.path))


class Retention:
    """Trims logs while they grow; at rest it waits for the first byte that any of them gets."""

    def __init__(self) -> None:
        self._fd = files.open_inotify()
        self._logs: set[Log] = set()

    def add(self, log: Log) -> None:
        """Take care of a log until it is closed."""
        self._logs.add(log)
        self._watch(log)

    def close(self) -> None:
        """Close it; `serve` must have ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def serve(self) -> None:
        """Trim until cancelled."""
        sizes: dict[Log, int] = {}
        while True:
            if self._fd >= 0:
                await anyio.wait_readable(self._fd)
                files.read_watches(self._fd)
            is_growing = True
            while is_growing:
                await anyio.sleep(_TRIM_S)
                self._logs = {log for log in self._logs if not log.is_closed}
                self.trim()
                before, sizes = sizes, {log: log.size for log in self._logs}
                is_growing = before != sizes
            for log in self._logs:
                self._watch(log)

    def trim(self) -> None:
        """Trim all logs to what one may keep, or to less where that is too much for all."""
        keep_bytes = fair_share([log.kept_bytes for log in self._logs], MAX_LOG_BYTES, MAX_LOGS_BYTES)
        for log in self._logs:
            log.trim(keep_bytes)

    def _watch(self, log: Log) -> None:
        if self._fd >= 0:
            files.watch(self._fd, log.fd, once=True)


def fair_share(sizes: Sequence[int], most_each: int, most_all: int) -> int:
    """Return the most that each may have, so that all together have no more than `most_all`.

    Those who have less than that leave the rest to the others.
    """
    left = most_all
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return min(share, most_each)
        left -= size
    return most_each


class News:
    """News of logs that grow: one inotify instance for all who wait, and no work while nobody does.

    Where the system has none left, waiters look again every few milliseconds instead.

    Attributes:
        reading: Held by who reads what is new, for a piece, so that many who wait leave time for other calls.
        looking: Held by who looks at a pane, likewise.
    """

    def __init__(self) -> None:
        self.reading = anyio.Lock()
        self.looking = anyio.Lock()
        self._fd = files.open_inotify()
        self._waiting: dict[int, set[Growth]] = {}

    def close(self) -> None:
        """Close it; nobody may be waiting."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def serve(self) -> None:
        """Pass the news on until cancelled."""
        while self._fd >= 0:
            await anyio.wait_readable(self._fd)
            for number in files.read_watches(self._fd):
                for growth in self._waiting.get(number, ()):
                    growth.tell()

    @property
    def waiters(self) -> int:
        """How many wait for a log, but at least 1."""
        return max(1, sum(map(len, self._waiting.values())))

    def tell(self, log: Log) -> None:
        """Wake those who wait for a log, for another reason than its growth."""
        number = files.watch(self._fd, log.fd) if self._fd >= 0 else -1
        for growth in self._waiting.get(number, ()):
            growth.tell()
        if number >= 0 and number not in self._waiting:
            files.unwatch(self._fd, number)

    @contextmanager
    def of(self, log: Log) -> Iterator["Growth"]:
        """Watch a log: what it grows by within the block is not missed."""
        number = files.watch(self._fd, log.fd) if self._fd >= 0 else -1
        growth = Growth(is_told=number >= 0)
        if number < 0:
            yield growth
            return
        self._waiting.setdefault(number, set()).add(growth)
        try:
            yield growth
        finally:
            others = self._waiting[number]
            others.discard(growth)
            if not others:
                del self._waiting[number]
                files.unwatch(self._fd, number)


class Growth:
    """The growth of one log, for one waiter."""

    def __init__(self, *, is_told: bool) -> None:
        self._told = anyio.Event()
        self._is_told = is_told

    def tell(self) -> None:
        """Tell that it has grown."""
        self._told.set()

    async def wait(self, at_most_s: float) -> None:
        """Wait until the log has grown since the last call, or the time is over."""
        with anyio.move_on_after(at_most_s if self._is_told else min(at_most_s, _LOOK_AGAIN_S)):
            await self._told.wait()
        self._told = anyio.Event()
