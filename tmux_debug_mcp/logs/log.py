"""The log of a pane: every byte that its terminal got, in a file that tmux's pipe-pane writes.

A *cursor* is an offset into the log, in bytes. pane.sh writes the end mark, with the exit code,
behind the last byte of the program; the cursor of a pane that has ended is that of its end mark.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files
from tmux_debug_mcp.vt.marks import MAX_MARK_BYTES, PANE_MARK
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS

from .timing import MAX_TIMING_BYTES, Timing

# The end mark is searched backwards in pieces, which overlap by the length of a mark.
_PIECE_BYTES = 1 << 16
_MAX_EXIT_CODE = 255
# Holes begin and end at multiples of this.
_BLOCK_BYTES = 4096
_OPEN_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class Mark(NamedTuple):
    """The end mark of a pane's program.

    Attributes:
        offset: Its cursor.
        exit_code: The program's exit code, from 0 to 255, as a shell has it in `$?`.
    """

    offset: int
    exit_code: int


class Log:
    """A pane's log, which exists from before the first byte until `close`.

    Args:
        path: The file to create.
        nonce: The nonce of the pane's end mark, or the digest of the nonce.
        clock: Tells when the log grows.
        on_close: Called when the log is closed. The file is kept then; without it, it is removed.

    Attributes:
        path: The file.
        kept_from: The cursor of the oldest byte that is kept.
        columns: The width of the terminal.
        rows: The height of the terminal.
        timing: When it grew, and when the terminal's size changed.

    Raises:
        OSError: The file exists or can't be created, or the disk is full.
    """

    def __init__(
        self,
        path: Path,
        nonce: str,
        clock: Clock | None = None,
        *,
        on_close: Callable[["Log"], None] | None = None,
    ) -> None:
        self.path = path
        self._clock = clock or Clock()
        self._on_close = on_close
        self._nonce = nonce
        self._fd = self._open()
        self._status_at_close: os.stat_result | None = None
        self.columns, self.rows = COLUMNS, ROWS
        self.kept_from = files.first_data(self._fd)
        self.timing = Timing(self._clock.wall())
        self._made_at = self._grew_at = self._looked_at = self._clock.now()
        self._size_at_look = 0

    def _open(self) -> int:
        fd = os.open(self.path, os.O_CREAT | os.O_EXCL | _OPEN_APPEND, 0o600)
        try:
            _check_room(fd)
        except BaseException:
            self.path.unlink()
            raise
        return fd

    def close(self) -> None:
        """Close the log, and remove its file unless it is kept. A second call does nothing.

        A closed log reads as empty, but still has its size and times.
        """
        if self._status_at_close:
            return
        self.note_growth()
        self._status_at_close = os.fstat(self._fd)
        os.close(self._fd)
        self._fd = -1
        if self._on_close:
            self._on_close(self)
            return
        with contextlib.suppress(OSError):
            self.path.unlink()

    def begin(self, columns: int, rows: int) -> None:
        """Set the size that the terminal has at first, which decides where lines wrap."""
        self.columns, self.rows = columns, rows
        self._keep_timing(self.timing.begin(columns, rows))

    def resize(self, columns: int, rows: int) -> None:
        """Record a new size of the terminal."""
        self.columns, self.rows = columns, rows
        self._keep_timing(self.timing.resize(self._age_s(), self.size, columns, rows))

    def note_growth(self) -> None:
        """Note the present size and time in `timing`."""
        self._keep_timing(self.timing.grow(self._age_s(), self.size))

    def _age_s(self) -> float:
        return self._clock.now() - self._made_at

    def _keep_timing(self, lines: str) -> None:
        """Keep the lines of `timing`, where the log itself is kept."""

    @property
    def fd(self) -> int:
        """The file descriptor, which the log owns; -1 when it is closed."""
        return self._fd

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._status_at_close is not None

    @property
    def size(self) -> int:
        """The bytes that were written, also those that are no longer kept: the next cursor."""
        return self._status().st_size

    @property
    def written_at(self) -> float:
        """When the file was written last, in seconds since the epoch, by a clock that may be set.

        `quiet_s` tells how long ago that is.
        """
        return self._status().st_mtime

    def quiet_s(self) -> float:
        """Return the seconds since the log grew, or since it was made if it is empty.

        The file's time is trusted as far as it lies between the last call and this one, since the
        system's clock may have been set meanwhile.
        """
        status = self._status()
        now = self._clock.now()
        if status.st_size != self._size_at_look:
            grew_at = now - (self._clock.wall() - status.st_mtime)
            self._grew_at = min(max(grew_at, self._looked_at), now)
            self._size_at_look = status.st_size
        self._looked_at = now
        return now - self._grew_at

    @property
    def kept_bytes(self) -> int:
        """The number of bytes that can be read, from `kept_from` on."""
        return self.size - self.kept_from

    @property
    def writable(self) -> str:
        """A path by which other processes open the file. It needs no quoting in a shell.

        The path leads through our descriptor, so it works for a file without a name, too.
        """
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def is_at(self, path: str) -> bool:
        """Tell whether a path leads to this log's file."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(path), self._status())
        return False

    def _status(self) -> os.stat_result:
        return self._status_at_close or os.fstat(self._fd)

    def read(self, start: int, size: int) -> bytes:
        """Return bytes from a cursor on: fewer at the end of the log, none of a closed log.

        Bytes that are no longer kept read as zeros.
        """
        if self.is_closed or size <= 0:
            return b""
        return os.pread(self._fd, size, start)

    def trim(self, keep_bytes: int) -> bool:
        """Free the disk space of the oldest bytes. Cursors do not change.

        Args:
            keep_bytes: How many of the newest bytes to keep; up to 4 KiB more are kept.

        Returns:
            False if the file system has no holes; everything is kept then.
        """
        end = (self.size - keep_bytes) // _BLOCK_BYTES * _BLOCK_BYTES
        if self.is_closed or end <= self.kept_from:
            return True
        if not files.punch_hole(self._fd, self.kept_from, end - self.kept_from):
            return False
        self.kept_from = end
        return True

    def find_mark(self) -> Mark | None:
        """Return the program's end mark, the last one if there are several; None without one."""
        if self.is_closed:
            return None
        end = self.size
        while end > 0:
            start = max(0, end - _PIECE_BYTES)
            mark = self._last_mark(start, end)
            if mark is not None or start == 0:
                return mark
            end = start + MAX_MARK_BYTES
        return None

    def _last_mark(self, start: int, end: int) -> Mark | None:
        piece = os.pread(self._fd, end - start, start)
        for match in reversed(list(PANE_MARK.finditer(piece))):
            nonce, exit_code = match[1].decode(), int(match[2])
            if exit_code <= _MAX_EXIT_CODE and self._is_ours(nonce):
                return Mark(start + match.start(), exit_code)
        return None

    def _is_ours(self, nonce: str) -> bool:
        return self._nonce in (nonce, nonce_digest(nonce))


class UnnamedLog(Log):
    """A log whose file has no name. The kernel removes it when nobody has it open any more.

    Args:
        directory: A directory on the file system to use.
        nonce: The nonce of the pane's end mark.
        clock: Tells when the log grows.

    Raises:
        OSError: The file system has no such files (EOPNOTSUPP or EISDIR), or the disk is full.
    """

    def __init__(self, directory: Path, nonce: str, clock: Clock | None = None) -> None:
        super().__init__(directory, nonce, clock, on_close=_leave_file)

    def _open(self) -> int:
        fd = os.open(self.path, os.O_TMPFILE | _OPEN_APPEND, 0o600)
        _check_room(fd)
        return fd


class LastingLog(Log):
    """A log whose file stays after the end, with its timing in a file beside it.

    Args:
        path: The file to create.
        nonce: The nonce of the pane's end mark.
        clock: Tells when the log grows.
        on_close: Called when the log is closed.

    Raises:
        OSError: The file exists or can't be created, or the disk is full.
    """

    def _keep_timing(self, lines: str) -> None:
        if not lines:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):  # a full disk costs the times, not the log
            fd = os.open(timing_path(self.path), flags, 0o600)
            try:
                os.write(fd, lines.encode())
            finally:
                os.close(fd)


class KeptLog(Log):
    """A log that stays after the end, open for reading only.

    Args:
        path: Its file.
        nonce: The nonce of the pane's end mark, or the digest of the nonce.

    Raises:
        OSError: There is no such file, or it is no regular file.
    """

    def __init__(self, path: Path, nonce: str) -> None:
        super().__init__(path, nonce, on_close=_leave_file)

    def _open(self) -> int:
        return files.open_file(str(self.path))

    def note_growth(self) -> None:
        """Note nothing: the times are those in the file."""

    def read_timing(self, began_at: float) -> None:
        """Read the timing from the file beside the log, if there is one.

        Args:
            began_at: When the log was made, in seconds since the epoch, if the file does not tell.
        """
        self.timing = Timing(began_at, self.columns, self.rows)
        with contextlib.suppress(OSError):
            fd = files.open_file(str(timing_path(self.path)))
            with open(fd, "rb") as file:
                self.timing.read(file.read(MAX_TIMING_BYTES).decode(errors="replace"))


class SharedLog(KeptLog):
    """A log that a server has open, read by another process of the same user.

    Args:
        path: What the log's `writable` says.
        timing: The log's timing.

    Raises:
        OSError: The server has closed it.
    """

    def __init__(self, path: Path, timing: Timing) -> None:
        super().__init__(path, "")
        self.timing = timing

    def _open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)


def unlinked_log(path: Path, nonce: str, clock: Clock | None = None) -> Log:
    """Return a new log whose file has lost its name, so that it vanishes like an `UnnamedLog`.

    For file systems without files that never had a name.

    Args:
        path: Where the file is created.
        nonce: The nonce of the pane's end mark.
        clock: Tells when the log grows.

    Raises:
        OSError: The file exists, or can't be created or unlinked, or the disk is full.
    """
    log = Log(path, nonce, clock)
    try:
        path.unlink()
    except BaseException:
        log.close()
        raise
    return log


def timing_path(log: Path) -> Path:
    """Return the path of the timing that is kept beside a log."""
    return log.with_suffix(".timing")


def nonce_digest(nonce: str) -> str:
    """Return the SHA-256 of a nonce: enough to recognize an end mark, not enough to write one."""
    return hashlib.sha256(nonce.encode()).hexdigest()


def _leave_file(_log: Log) -> None:
    """Leave the file of a closed log where it is."""


def _check_room(fd: int) -> None:
    """Check that a new file can grow, and close it if that is not so.

    Raises:
        OSError: The disk is full. The descriptor is closed.
    """
    try:
        os.posix_fallocate(fd, 0, _BLOCK_BYTES)
        os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
