"""The audit: a record of every call in JSON Lines, and what calls returned of panes in files.

Each record is one write(2) to a file opened for appending, so several servers can share one. A record that
can't be written is kept and tried first before the next call: nothing is done that is not on record.
"""

import contextlib
import errno
import json
import os
import re
from collections import deque
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from .errors import StartError, ToolError

# What ids and names may have and names of files had better not.
_NO_FILE_NAME = re.compile(r"[^\w@%.-]")
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
        self._unwritten: deque[bytes] = deque()
        self._torn: tuple[int, bytes] | None = None  # the file's size after a part of a record, and the rest of it
        self._fd = -1
        try:
            if path is not None:
                self._fd = _open(path)
            if captures is not None:
                _make_directory(captures)
        except OSError as error:
            raise StartError(f"The audit can't be opened: {error}. Give a path that can be written.") from error

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def check(self) -> None:
        """Write what earlier calls left unwritten.

        Raises:
            AuditError: It still can't be written.
        """
        try:
            self._flush()
        except OSError as error:
            raise AuditError(
                f"Nothing was done: the audit can't be written ({error.strerror}) and an earlier call is not on "
                f"record yet. Mend {self._path} and call again."
            ) from error

    def record(self, record: dict[str, Any]) -> None:
        """Write a record of a call that was made.

        Raises:
            AuditError: It can't be written now; it is kept for `check`.
        """
        if self._fd < 0:
            return
        self._unwritten.append(_encode(record) + b"\n")
        try:
            self._flush()
        except OSError as error:
            raise AuditError(
                f"The call was made, but the audit can't be written ({error.strerror}). Further calls are refused "
                f"until it can: mend {self._path}."
            ) from error

    def capture(self, pane_id: str, text: str) -> None:
        """Keep what a call returned of a pane in a file of its own, never one that exists.

        Raises:
            AuditError: It can't be written.
        """
        if self._captures is None:
            return
        try:
            _make_directory(self._captures)
            with _new_capture(self._captures, pane_id) as file:
                file.write(text.encode())
        except OSError as error:
            raise AuditError(
                f"The call was made, but its text can't be kept in {self._captures} ({error.strerror}). "
                "Mend that directory."
            ) from error

    def _flush(self) -> None:
        while self._unwritten and self._path is not None:
            if _is_moved(self._path, self._fd):
                fd = _open(self._path)
                os.close(self._fd)
                self._fd = fd
                self._torn = None
            self._write(self._unwritten[0])
            self._unwritten.popleft()

    def _write(self, record: bytes) -> None:
        """Write a record by one write(2), or the rest of one of which a full disk took only a part."""
        data = record
        if self._torn is not None:
            size, rest = self._torn
            # When another server has written meanwhile, that part stays a line of its own.
            data = rest if os.fstat(self._fd).st_size == size else b"\n" + record
        written = os.write(self._fd, data)
        self._torn = None
        if written < len(data):
            self._torn = os.fstat(self._fd).st_size, data[written:]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _encode(record: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(record)
    except TypeError:  # a number beyond 64 bits, half a surrogate pair: what the standard library's writes
        return json.dumps(record, separators=(",", ":")).encode()


def _make_directory(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _new_capture(directory: Path, pane_id: str) -> BinaryIO:
    pane_id = _NO_FILE_NAME.sub("-", pane_id)
    found = (_CAPTURE_NUMBER.search(path.name) for path in directory.glob(f"{pane_id}-capture-*.txt"))
    number = max((int(match[1]) for match in found if match), default=0)
    while True:
        number += 1
        path = directory / f"{pane_id}-capture-{number:03d}.txt"
        with contextlib.suppress(FileExistsError):  # another server's, made meanwhile
            return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


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
