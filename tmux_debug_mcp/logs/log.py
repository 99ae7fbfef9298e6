"""The log of a pane: all that its terminal got, byte for byte, written by tmux's pipe-pane.

A *cursor* is an offset into the log, in bytes. Behind the program's last byte stands the mark with its exit
code, which pane.sh writes; the cursor of an ended pane stands before the mark.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tmux_debug_mcp.linux import files
from tmux_debug_mcp.vt.marks import PANE_MARK
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS

# Marks are found by reading back from the end in pieces of this size.
_PIECE_BYTES = 1 << 16
_MAX_MARK_BYTES = 128
_BLOCK_BYTES = 4096
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class Mark(NamedTuple):
    """The end of a pane's program: where in the log, and its exit code as a shell tells it."""

    offset: int
    exit_code: int


class Log:
    """A pane's log, open from before its first byte until `close`.

    Args:
        path: Where to make it.
        mark: The nonce of the mark that the pane's program has ended, or its digest.
        on_close: Called when the file is closed, which is kept then; without it, it is removed.

    Attributes:
        kept_from: The cursor of the oldest byte that is kept.
        columns: The width of the terminal.
        rows: Its height.
    """

    def __init__(self, path: Path, mark: str, *, on_close: Callable[["Log"], None] | None = None) -> None:
        self.path = path
        self._on_close = on_close
        self._mark = mark
        self._fd = self._open()
        self._last: os.stat_result | None = None
        self.columns, self.rows = COLUMNS, ROWS
        self.kept_from = files.first_data(self._fd)

    def resize(self, columns: int, rows: int) -> None:
        """Take note of the terminal's size, which decides where its lines wrap."""
        self.columns, self.rows = columns, rows

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
        if self._on_close:
            self._on_close(self)
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
        super().__init__(directory, mark, on_close=lambda _log: None)

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
        super().__init__(path, mark, on_close=lambda _log: None)

    def _open(self) -> int:
        return files.open_file(str(self.path))
