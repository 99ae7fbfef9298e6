"""The audit: a record of every call in JSON Lines, and what calls returned of panes in files.

Each record is one write(2) to a file opened for appending, so several servers can share one. A record that
can't be written is kept and tried first before the next call: nothing is done that is not on record.

Nothing that is at a path is taken for the audit unless it is one. A pipe would hold up the server, a symbolic link
lead elsewhere, and a record at the end of a file that a shell or a program reads could be executed there. Links among
the directories of a path are the user's business, and so is who may write: rights decide, not owners.
"""

import contextlib
import errno
import json
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from .errors import StartError, ToolError

# What ids and names may have and names of files had better not.
_NO_FILE_NAME = re.compile(r"[^\w@%.-]")
_CAPTURE_NUMBER = re.compile(r"-capture-(\d{3,9})\.txt")

# How every record begins, and so much of a file as tells whether it is an audit.
_RECORD = re.compile(rb'\s*\{\s*"ts"\s*:')
_RECORD_BEGIN = b'{"ts":'
_HEAD_BYTES = 64 << 10

# What else than regular files there is, by the test for its mode.
_KINDS = {
    stat.S_ISLNK: "a symbolic link",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISDIR: "a directory",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


class AuditError(ToolError):
    """Raised when a call can't be put on record."""


class _UnfitError(OSError):
    """Raised when something is at a path that does not become an audit.

    Args:
        path: The path.
        state: What it is.
        advice: What to give instead.
    """

    def __init__(self, path: Path, state: str, advice: str) -> None:
        super().__init__(errno.EINVAL, f"it {state}", str(path))
        self.sentence = f"{path} {state}. {advice}"


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
                os.close(_open_directory(captures))
        except _UnfitError as error:
            self.close()
            raise StartError(f"The audit can't be opened: {error.sentence}") from error
        except OSError as error:
            self.close()
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
            with contextlib.ExitStack() as stack:
                directory = _open_directory(self._captures)
                stack.callback(os.close, directory)
                file = stack.enter_context(open(_new_capture(directory, pane_id), "wb"))
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


def _open_directory(path: Path) -> int:
    """Return a directory, made where there is none, for files to be made in it.

    Raises:
        OSError: It can't be made, listed or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if path.is_symlink():
        raise _UnfitError(path, "is a symbolic link", "Give the directory's own path.")
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=fd):
        os.close(fd)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return fd


def _new_capture(directory: int, pane_id: str) -> int:
    prefix = _NO_FILE_NAME.sub("-", pane_id)
    number = max(_capture_numbers(directory, prefix), default=0)
    while True:
        number += 1
        name = f"{prefix}-capture-{number:03d}.txt"
        with contextlib.suppress(FileExistsError):  # another server's, made meanwhile
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)


def _capture_numbers(directory: int, prefix: str) -> Iterator[int]:
    for name in os.listdir(directory):
        if name.startswith(prefix) and (match := _CAPTURE_NUMBER.fullmatch(name, len(prefix))):
            yield int(match[1])


def _open(path: Path) -> int:
    """Return an audit that can be appended to, made where there is none.

    Raises:
        _UnfitError: What is there is no audit.
        OSError: It can't be made or opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        _check_kind(path, path.lstat())  # before it is opened, which does things to devices
    # Nothing here waits: not for a reader of a pipe that is put there meanwhile, nor for a lease to be given up.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        _check_kind(path, os.fstat(fd))
        _check_content(path, os.pread(fd, _HEAD_BYTES, 0))
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.write(fd, b"\n")
    except OSError:
        os.close(fd)
        raise
    return fd


def _check_kind(path: Path, status: os.stat_result) -> None:
    """Raise _UnfitError for what is neither a regular file nor /dev/null."""
    if stat.S_ISREG(status.st_mode) or os.path.samestat(status, os.stat(os.devnull)):
        return
    kind = next((kind for is_of_kind, kind in _KINDS.items() if is_of_kind(status.st_mode)), "no regular file")
    advice = "Give the file's own path." if stat.S_ISLNK(status.st_mode) else "Give the path of a regular file."
    raise _UnfitError(path, f"is {kind}", advice)


def _check_content(path: Path, head: bytes) -> None:
    """Raise _UnfitError for a file that has other things than records, told by its beginning.

    A record of which only a part was written before its server was killed is passed over when it is short.
    """
    for line in head.split(b"\n"):
        if _RECORD.match(line) or _is_object(line):
            return
        if not _RECORD_BEGIN.startswith(line):
            raise _UnfitError(path, "has something other than an audit in it", "Give a path of its own to the audit.")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _is_moved(path: Path, fd: int) -> bool:
    try:
        return not os.path.samestat(path.lstat(), os.fstat(fd))
    except OSError:
        return True
