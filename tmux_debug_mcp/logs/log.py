"""The log of a pane: every byte that its terminal got, in a file that tmux's pipe-pane writes.

A *cursor* is an offset into the log, in bytes. pane.sh writes the end mark, with the exit code,
after the last byte of the program; the cursor of a pane that has ended is that of its end mark,
until something that the program has left running prints more.
"""

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files
from tmux_debug_mcp.turns import next_turn
from tmux_debug_mcp.vt.marks import MAX_MARK_BYTES, PANE_MARK
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS
from tmux_debug_mcp.vt.transcript import Transcript

from .timing import MAX_TIMING_BYTES, Timing

# We search for the end mark backwards, in pieces that overlap by the length of a mark. Retention
# keeps less than this, unless the file system has no holes.
_PIECE_BYTES = 1 << 16
_MAX_SEARCHED_BYTES = 32 << 20
_MAX_EXIT_CODE = 255
# What was written between two looks is read for its lines up to this size.
_MAX_NOTED_BYTES = 1 << 14
_LINE_FEED = re.compile(b"\n")
# Holes begin and end at multiples of this.
_BLOCK_BYTES = 4096

OnClose = Callable[["Log"], None]


class Mark(NamedTuple):
    """The end mark of a pane's program: its cursor, and the exit code as in a shell's `$?`."""

    offset: int
    exit_code: int

    def output_end(self, size: int) -> int:
        """Return where the output ends in a log of some size: behind the mark, if there is more."""
        mark_bytes = len("\033\\\033]7777;0123456789abcdef;\a") + len(str(self.exit_code))
        return self.offset if size <= self.offset + mark_bytes else size


class Checkpoint(NamedTuple):
    """A transcript whose screen is as it was at a cursor."""

    cursor: int
    transcript: Transcript


class Log:
    """A pane's log, which exists from before the first byte until `close`.

    `create`, `unnamed` and `unlinked` make a log for a new pane, `kept` and `shared` open one.
    These raise OSError if there is no such file, or it can't be made, or the disk is full.
    The nonce is that of the pane's end mark; a log that is read may have its digest instead.

    Attributes:
        path: Where the file was made. It may no longer be there.
        fd: The file descriptor, which the log owns; -1 when it is closed.
        kept_from: The cursor of the oldest byte that is kept.
        timing: When it grew, and when the terminal's size changed.
        checkpoint: A place at which `positioning` knows the terminal, if any.
    """

    def __init__(
        self,
        fd: int,
        path: Path,
        nonce: str,
        clock: Clock | None = None,
        *,
        timing: Timing | None = None,
        keeps_timing: bool = False,
        on_close: OnClose | None = None,
    ) -> None:
        self.path = path
        self.fd = fd
        self._nonce = nonce
        self._clock = clock or Clock()
        self._is_new = timing is None
        self._keeps_timing = keeps_timing
        self._on_close = on_close
        self._status_at_close: os.stat_result | None = None
        self.timing = timing or Timing(self._clock.wall())
        self.columns, self.rows = COLUMNS, ROWS
        self.kept_from = files.first_data(fd)
        self.checkpoint: Checkpoint | None = None
        self._unmarked_to = 0  # there is no end mark before
        self._made_at = self._grew_at = self._looked_at = self._noted_at = self._clock.now()
        self._size_at_look = 0

    @classmethod
    def create(
        cls, path: Path, nonce: str, clock: Clock | None = None, *, on_close: OnClose | None = None
    ) -> Self:
        """Return a new log whose file stays after the end, with its timing in a file beside it."""
        fd = _new_file(path, os.O_CREAT | os.O_EXCL)
        return cls(fd, path, nonce, clock, keeps_timing=True, on_close=on_close)

    @classmethod
    def unnamed(cls, directory: Path, nonce: str, clock: Clock | None = None) -> Self:
        """Return a new log whose file has no name, so that it vanishes when nobody has it open.

        If the directory's file system has no such files, OSError is EOPNOTSUPP or EISDIR.
        """
        return cls(_new_file(directory, os.O_TMPFILE), directory, nonce, clock)

    @classmethod
    def unlinked(cls, path: Path, nonce: str, clock: Clock | None = None) -> Self:
        """Return a new log whose file has lost its name: for file systems without unnamed files."""
        log = cls(_new_file(path, os.O_CREAT | os.O_EXCL), path, nonce, clock)
        try:
            path.unlink()
        except BaseException:
            log.close()
            raise
        return log

    @classmethod
    def kept(cls, path: Path, nonce: str) -> Self:
        """Return a log that was kept, open for reading only. `read_timing` reads its times."""
        return cls(files.open_file(str(path)), path, nonce, timing=Timing(0.0))

    @classmethod
    def shared(cls, path: Path, timing: Timing) -> Self:
        """Return a log for reading only, given `writable` and `timing` of one that is open."""
        return cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path, "", timing=timing)

    def close(self) -> None:
        """Close the log. A second call does nothing.

        A closed log reads as empty, but still has its size and times.
        """
        if self._status_at_close:
            return
        self.note_growth()
        self.keep_timing()
        self._status_at_close = os.fstat(self.fd)
        os.close(self.fd)
        self.fd = -1
        if self._on_close:
            self._on_close(self)

    def begin(self, columns: int, rows: int) -> None:
        """Set the terminal's first size, which decides where lines wrap."""
        self.columns, self.rows = columns, rows
        self.timing.begin(columns, rows)
        self.keep_timing()

    def resize(self, columns: int, rows: int) -> None:
        """Record a new size of the terminal."""
        self.columns, self.rows = columns, rows
        self.note_growth()
        self.timing.resize(self._clock.now() - self._made_at, self.size, columns, rows)
        self.keep_timing()

    def age_s(self, cursor: int) -> float:
        """Return how long ago all bytes before a cursor were there, in seconds, as far as noted."""
        self.note_growth()
        return self._clock.now() - self._made_at - self.timing.time_of(cursor)

    def began_at(self, ahead_s: float) -> float:
        """Return when the log was made, in seconds since the epoch.

        The system's clock may have been set since. Logs that were made by one server can be
        compared all the same, if they are given the same `ahead_s`, which their clock returns.
        """
        return self._made_at + ahead_s if self._is_new else self.timing.began_at

    def read_timing(self, began_at: float) -> None:
        """Read the timing from the file beside a kept log, if any.

        If the file does not say when the log was made, `began_at` does, in seconds since the epoch.
        """
        self.timing = Timing(began_at, self.columns, self.rows)
        with contextlib.suppress(OSError):
            fd = files.open_file(str(timing_path(self.path)))
            with open(fd, "rb") as file:
                self.timing.read(file.read(MAX_TIMING_BYTES).decode(errors="replace"))

    def keep_timing(self, *, is_quiet: bool = True) -> None:
        """Write to the file beside the log what was noted of its growth, if there is such a file.

        That is all if the log `is_quiet`: it may not grow for a long time.
        """
        entries = self.timing.entries(is_quiet=is_quiet) if self._keeps_timing else ""
        if not entries:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):  # a full disk costs the times, not the log
            fd = os.open(timing_path(self.path), flags, 0o600)
            with open(fd, "ab", 0) as file:
                file.write(entries.encode())

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._status_at_close is not None

    @property
    def size(self) -> int:
        """The bytes that were written, even those that are no longer kept: the next cursor."""
        return self._status().st_size

    @property
    def written_at(self) -> float:
        """When the file was last written, in seconds since the epoch by the system's clock."""
        return self._status().st_mtime

    def grew_at(self) -> float:
        """Return when the log grew, or was made if it is empty, by the clock.

        The file's time is limited to between the last call and this call, since the system's clock
        may have been set meanwhile.
        """
        status, now = self._status(), self._clock.now()
        if status.st_size != self._size_at_look:
            grew_at = now - (self._clock.wall() - status.st_mtime)
            self._grew_at = min(max(grew_at, self._looked_at), now)
            self._size_at_look = status.st_size
        self._looked_at = now
        return self._grew_at

    def note_growth(self, since: float = -math.inf, moments: Sequence[float] = ()) -> bool:
        """Return whether the log has grown since the last call; if so, note when in `timing`.

        It has not before `since`, by the clock. At these `moments` it was written, more than once
        at each if nothing was written elsewhere between. Where each write may have been a line,
        each line is noted.
        """
        noted_at, self._noted_at = max(self._noted_at, since), self._clock.now()
        size, noted_to = self.size, self.timing.sizes[-1] if self.timing.sizes else 0
        if not self._is_new or size <= noted_to:
            return False
        made_at = self._made_at
        ends = self._line_ends(noted_to, size) if len(moments) > 1 else [size] * len(moments)
        if moments and len(ends) == len(moments):
            for at, end in zip(moments, ends, strict=True):
                self.timing.grow(at - made_at, end, at - made_at)
        else:
            at = moments[-1] if moments else self._noted_at
            self.timing.grow(at - made_at, size, min(noted_at, at) - made_at)
        return True

    def _line_ends(self, start: int, end: int) -> list[int]:
        """Return the cursors where lines end between two; none if there are too many bytes."""
        if end - start > _MAX_NOTED_BYTES:
            return []
        data = self.read(start, end - start)
        ends = [start + line.end() for line in _LINE_FEED.finditer(data)]
        return ends if ends[-1:] == [end] else [*ends, end]

    @property
    def kept_bytes(self) -> int:
        """The number of bytes that can be read, from `kept_from` on."""
        return self.size - self.kept_from

    @property
    def writable(self) -> str:
        """A path by which other processes open the file. It needs no quoting in a shell.

        The path leads through our descriptor, so it also works for a file without a name.
        """
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def is_at(self, path: str) -> bool:
        """Tell whether a path leads to this log's file."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(path), self._status())
        return False

    def _status(self) -> os.stat_result:
        return self._status_at_close or os.fstat(self.fd)

    def read(self, start: int, size: int) -> bytes:
        """Return bytes from a cursor on: fewer at the end of the log, none from a closed log.

        Bytes that are no longer kept read as zeros.
        """
        if self.is_closed or size <= 0:
            return b""
        return os.pread(self.fd, size, start)

    def trim(self, keep_bytes: int) -> bool:
        """Free the disk space of all but the newest bytes, in blocks of 4 KiB. Cursors stay valid.

        Returns False if the file system has no holes; everything is kept then.
        """
        end = (self.size - keep_bytes) // _BLOCK_BYTES * _BLOCK_BYTES
        if self.is_closed or end <= self.kept_from:
            return True
        if not files.punch_hole(self.fd, self.kept_from, end - self.kept_from):
            return False
        self.kept_from = end
        return True

    async def find_mark(self) -> Mark | None:
        """Return the program's end mark, the last if there are several, or None.

        Only what is kept is searched, at most its newest 32 MiB, and after a search without success
        only what is new. A daemon may print after the mark.
        """
        if self.is_closed:
            return None
        end = size = self.size
        known = self._unmarked_to - MAX_MARK_BYTES
        oldest = max(self.kept_from, known, size - _MAX_SEARCHED_BYTES)
        while end > oldest:
            start = max(oldest, end - _PIECE_BYTES)
            for match in reversed(list(PANE_MARK.finditer(self.read(start, end - start)))):
                nonce, exit_code = match[1].decode(), int(match[2])
                if exit_code <= _MAX_EXIT_CODE and self._nonce in (nonce, nonce_digest(nonce)):
                    return Mark(start + match.start(), exit_code)
            if start == oldest:
                break
            end = start + MAX_MARK_BYTES
            await next_turn()
        self._unmarked_to = max(self._unmarked_to, size)
        return None


def timing_path(log: Path) -> Path:
    """Return the path of the timing that is kept beside a log."""
    return log.with_suffix(".timing")


def nonce_digest(nonce: str) -> str:
    """Return the SHA-256 of a nonce: enough to recognize an end mark, but not to write it."""
    return hashlib.sha256(nonce.encode()).hexdigest()


def _new_file(path: Path, flags: int) -> int:
    """Return the descriptor of a new file that has room to grow; without room, no file is left."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
    try:
        files.check_room(fd)
    except BaseException:
        os.close(fd)
        if flags & os.O_EXCL:
            path.unlink()
        raise
    return fd
