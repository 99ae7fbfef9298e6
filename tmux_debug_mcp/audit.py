"""The audit: a record of every call in JSON Lines, and what calls returned of panes in files.

Each record is one write(2) to a file opened for appending, so several servers can share one. A record that
can't be written is kept and tried first before the next call: nothing is done that is not on record.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import orjson

from .errors import StartError, ToolError

_CAPTURE = "{pane_id}-capture-{number:03d}.txt"
_CAPTURE_NUMBER = re.compile(r"-capture-(\d+)\.txt$")


class AuditError(ToolError):
    """Raised when a call can't be put on record."""


class AuditLog:
    """An open audit.

    Args:
        path: The file of records, or None to keep none. It and its directories are made.
        captures: The directory for what calls returned of panes, or None to keep nothing.

    Raises:
        StartError: The file or a directory can't be made or opened.
    """

    def __init__(self, path: Path | None, captures: Path | None) -> None:
        self._path = path
        self._captures = captures
        self._unwritten = b""
        try:
            self._fd = -1 if path is None else _open(path)
            if captures is not None:
                captures.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StartError(f"The audit can't be opened: {error}. Give a path that can be written.") from error

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def check(self) -> None:
        """Write what an earlier call left unwritten.

        Raises:
            AuditError: It still can't be written.
        """
        try:
            self._flush()
        except OSError as error:
            raise AuditError(
                f"Nothing was done: the audit can't be written ({error.strerror}) and an earlier call is not on "
                f"record yet. Make room for {self._path} and call again."
            ) from error

    def record(self, record: dict[str, Any]) -> None:
        """Write a record of a call that was made.

        Raises:
            AuditError: It can't be written now; it is kept for `check`.
        """
        if self._fd < 0:
            return
        self._unwritten += orjson.dumps(record) + b"\n"
        try:
            self._flush()
        except OSError as error:
            raise AuditError(
                f"The call was made, but the audit can't be written ({error.strerror}). Further calls are refused "
                f"until it can: make room for {self._path}."
            ) from error

    def capture(self, pane_id: str, text: str) -> None:
        """Keep what a call returned of a pane in a file of its own, never one that exists.

        Raises:
            AuditError: It can't be written.
        """
        if self._captures is None:
            return
        number = 1 + max(
            (int(match[1]) for path in self._captures.glob(f"{pane_id}-capture-*.txt")
             if (match := _CAPTURE_NUMBER.search(path.name))),
            default=0,
        )  # fmt: skip
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            while True:
                path = self._captures / _CAPTURE.format(pane_id=pane_id, number=number)
                with contextlib.suppress(FileExistsError), open(os.open(path, flags, 0o600), "wb") as file:
                    file.write(text.encode())
                    return
                number += 1
        except OSError as error:
            raise AuditError(
                f"The call was made, but its text can't be kept in {self._captures} ({error.strerror}). "
                "Make room there."
            ) from error

    def _flush(self) -> None:
        if not self._unwritten or self._path is None:
            return
        if _is_moved(self._path, self._fd):
            os.close(self._fd)
            self._fd = _open(self._path)
        written = os.write(self._fd, self._unwritten)
        if written < len(self._unwritten):
            # Half a line is in the file; the whole one goes after it when there is room.
            self._unwritten = b"\n" + self._unwritten.lstrip(b"\n")
            raise OSError(28, "No space left on device")
        self._unwritten = b""


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a device or a pipe has no end to look at
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.write(fd, b"\n")
    return fd


def _is_moved(path: Path, fd: int) -> bool:
    try:
        return not os.path.samestat(path.stat(), os.fstat(fd))
    except OSError:
        return True
