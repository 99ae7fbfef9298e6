"""The log of a pane: all that its terminal got, byte for byte, written by tmux's pipe-pane.

A *cursor* is an offset into the log, in bytes. Behind the program's last byte stands the mark with its exit
code, which pane.sh writes; the cursor of an ended pane stands before the mark.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio

from . import linux

# Marks are found by reading back from the end in pieces of this size.
_PIECE_BYTES = 1 << 16
_MAX_MARK_BYTES = 128
# How often to look at a log that no news can be had of.
_LOOK_AGAIN_S = 0.005


class Mark(NamedTuple):
    """The end of a pane's program: where in the log, and its exit code as a shell tells it."""

    offset: int
    exit_code: int


class Log:
    """A pane's log, open from before its first byte until `close`."""

    def __init__(self, path: Path, mark: str) -> None:
        self.path = path
        self._mark = re.compile(rb"\033\\\033\]7777;" + mark.encode() + rb";(\d{1,3})\a")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._last: os.stat_result | None = None

    def close(self) -> None:
        """Close and remove it. What it was can still be asked."""
        if self._last:
            return
        self._last = os.fstat(self._fd)
        os.close(self._fd)
        self._fd = -1
        self.path.unlink(missing_ok=True)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._stat().st_size

    @property
    def written_at(self) -> float:
        """When bytes were last added, in seconds since the epoch, as time.time() has it."""
        return self._stat().st_mtime

    def _stat(self) -> os.stat_result:
        return self._last or os.fstat(self._fd)

    def find_mark(self) -> Mark | None:
        """Return the mark that the program has ended, or None while there is none."""
        end = 0 if self._last else self.size
        while end > 0:
            start = max(0, end - _PIECE_BYTES)
            piece = os.pread(self._fd, end - start, start)
            for found in reversed(list(self._mark.finditer(piece))):
                if (exit_code := int(found[1])) <= 255:  # noqa: PLR2004
                    return Mark(start + found.start(), exit_code)
            # Pieces overlap by a mark, so that none is cut in two.
            end = start + _MAX_MARK_BYTES if start else 0
        return None


class News:
    """News of logs that grow: one inotify instance for all who wait, and no work while nobody does.

    Where the system has none left, waiters look again every few milliseconds instead.
    """

    def __init__(self) -> None:
        self._fd = linux.open_inotify()
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
            for number in linux.read_watches(self._fd):
                for growth in self._waiting.get(number, ()):
                    growth.tell()

    @contextmanager
    def of(self, log: Log) -> Iterator["Growth"]:
        """Watch a log: what it grows by within the block is not missed."""
        number = linux.watch(self._fd, str(log.path)) if self._fd >= 0 else -1
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
                linux.unwatch(self._fd, number)


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
