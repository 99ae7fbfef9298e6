"""The audit: one record per call in JSON Lines, and on request the text that calls returned.

Each record is one write(2) to a file opened for appending, so several servers can share a file. A
record that can't be written is kept, and written before the next call: no call is made until all
earlier ones are on record.

An audit is opened only if its path leads to an audit, an empty file or nothing. A pipe would block
the server, a symbolic link leads elsewhere, and a shell could execute a record appended to a file
that it reads. The directories of the path are not checked: symbolic links among them are followed,
and the user decides who else may write to them.

A detached server for which no audit was chosen has the default one of its directory, in the state
directory. That one is bounded, and no call fails because of it.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
from _blake2 import blake2b  # of hashlib, which loads OpenSSL as well
from collections import deque
from pathlib import Path
from typing import Any

import orjson

from .errors import StartError, ToolError

# Limits for the file of a default audit, of which an older one is kept, and for all together.
MAX_DEFAULT_BYTES = 8 << 20
MAX_DEFAULTS_BYTES = 64 << 20
_MAX_NAME_CHARACTERS = 40

# Characters of ids and names that are replaced in file names.
_UNSAFE_IN_FILE_NAMES = re.compile(r"[^\w@%.-]")
_CAPTURE = re.compile(r"(.+)-capture-(\d{3,9})\.txt")

# A file is an audit if its head contains the beginning of a record.
_RECORD = re.compile(rb'\s*\{\s*"ts"\s*:')
_RECORD_START = b'{"ts":'
_HEAD_BYTES = 64 << 10

# Nothing here blocks: neither a pipe without a reader, nor a lease that another process holds.
_OPEN_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# File types other than regular files.
_FILE_TYPES = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class AuditError(ToolError):
    """Raised when a call can't be put on record."""


class _UnfitError(OSError):
    """Raised when a path can't be an audit, because it "is a directory" or the like."""

    def __init__(self, path: Path, state: str, advice: str) -> None:
        super().__init__(errno.EINVAL, f"it {state}", str(path))
        self.sentence = f"{path} {state}. {advice}"


class AuditLog:
    """An open audit: a file for records, and a directory for texts that calls returned.

    Either may be None. Both are created if need be; StartError if they can't be created or opened.
    """

    def __init__(self, path: Path | None, captures: Path | None) -> None:
        self._path = path
        self._captures = captures
        self._unwritten: deque[bytes] = deque()
        # After a partial write: the file's size then, and the rest of the record.
        self._partial: tuple[int, bytes] | None = None
        self._fd = -1
        # The number of each pane's last capture, by the beginning of the file's name. Listed once:
        # a directory of many files takes too long to be listed at each call.
        self._last: dict[str, int] = {}
        try:
            if path is not None:
                self._fd = _open(path)
            if captures is not None:
                self._last = _last_captures(captures)
        except _UnfitError as error:
            self.close()
            raise StartError(f"The audit can't be opened: {error.sentence}") from error
        except OSError as error:
            self.close()
            raise StartError(
                f"The audit can't be opened: {error}. Give a writable path."
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def flush(self) -> None:
        """Write the records of earlier calls; AuditError if they still can't be written."""
        try:
            self._write_unwritten()
        except OSError as error:
            raise AuditError(
                f"Nothing was done: the audit can't be written ({error.strerror}), and an earlier "
                f"call is not recorded yet. Make room for {self._path} or make it writable, and "
                "call again."
            ) from error

    def record(self, record: dict[str, Any]) -> None:
        """Write the record of a call that was made.

        Raises:
            AuditError: It can't be written now. It is kept, and `flush` tries again.
        """
        if self._fd < 0:
            return
        try:
            line = orjson.dumps(record)
        except TypeError:  # an integer beyond 64 bits, or half a surrogate pair
            line = json.dumps(record, separators=(",", ":")).encode()
        self._unwritten.append(line + b"\n")
        try:
            self._write_unwritten()
        except OSError as error:
            raise AuditError(
                f"The call was made, but the audit can't be written ({error.strerror}). Make room "
                f"for {self._path} or make it writable. Until then, further calls are refused."
            ) from error

    @property
    def keeps_texts(self) -> bool:
        """Whether the texts that calls return are kept."""
        return self._captures is not None

    def capture(self, pane_id: str, text: str) -> str:
        """Write the text that a call returned to a new file, `<pane>-capture-NNN.txt`.

        Return the file's name, "" if no texts are kept. Raise AuditError if it can't be written.
        """
        if self._captures is None:
            return ""
        try:
            directory = _open_directory(self._captures)
            try:
                name, fd = self._new_capture(directory, pane_id)
            finally:
                os.close(directory)
            with open(fd, "wb") as file:
                file.write(text.encode())
        except OSError as error:
            raise AuditError(
                f"The call was made, but its text can't be kept in {self._captures} "
                f"({error.strerror}). Make room there, or make it writable."
            ) from error
        return name

    def _new_capture(self, directory: int, pane_id: str) -> tuple[str, int]:
        """Open a new file, numbered after the last one; return its name and its descriptor."""
        prefix = _UNSAFE_IN_FILE_NAMES.sub("-", pane_id)
        taken = self._last.get(prefix, 0)
        while True:
            number = _next_number(directory, prefix, taken)
            name = _capture_name(prefix, number)
            try:
                fd = os.open(name, _NEW_FILE_FLAGS, 0o600, dir_fd=directory)
            except FileExistsError:  # another server was faster
                taken = number
                continue
            self._last[prefix] = number
            return name, fd

    def _write_unwritten(self) -> None:
        while self._unwritten and self._path is not None:
            if _was_moved(self._path, self._fd):
                fd = _open(self._path)
                os.close(self._fd)
                self._fd = fd
                self._partial = None
            self._write(self._unwritten[0])
            self._unwritten.popleft()

    def _write(self, record: bytes) -> None:
        """Write a record, or the rest of one after a partial write, with one write(2)."""
        data = record
        if self._partial is not None:
            size, rest = self._partial
            has_grown = os.fstat(self._fd).st_size != size
            # If another server has appended since, the partial record stays as a separate line.
            data = b"\n" + record if has_grown else rest
        written = os.write(self._fd, data)
        self._partial = None
        if written < len(data):
            self._partial = os.fstat(self._fd).st_size, data[written:]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class DefaultAudit(AuditLog):
    """The audit of a detached server for which none was chosen; several servers may share it.

    Nobody asked for it, so calls go on without it. Of the records that can't be written, the oldest
    is tried again with the next one, and the others are lost.
    """

    def __init__(self, path: Path, captures: Path | None) -> None:
        with contextlib.suppress(OSError):  # opening the file fails, too, and says why
            path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(path, captures)
        self._file = path
        _remove_oldest(path.parent)

    def flush(self) -> None:
        """Do nothing: no call waits for a record to be written."""

    def record(self, record: dict[str, Any]) -> None:
        """Write the record of a call that was made, if it can be written."""
        try:
            super().record(record)
            if os.fstat(self._fd).st_size > MAX_DEFAULT_BYTES:
                self._rotate()
        except (AuditError, OSError):
            while len(self._unwritten) > 1:
                self._unwritten.pop()

    def _rotate(self) -> None:
        """Move the file away, unless another server does; BlockingIOError if it is doing so."""
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _was_moved(self._file, self._fd):
            self._file.replace(older(self._file))
        _remove_oldest(self._file.parent)


def default_path(state: Path, directory: Path) -> Path:
    """Return the path of the default audit of a server's directory, in the state directory."""
    digest = blake2b(os.fsencode(directory), digest_size=8).hexdigest()
    name = _UNSAFE_IN_FILE_NAMES.sub("-", directory.name)[:_MAX_NAME_CHARACTERS]
    return state / "audits" / f"{name}-{digest}.jsonl"


def older(path: Path) -> Path:
    """Return where the records go that were in a default audit until it was too large."""
    return path.with_name(f"{path.name}.1")


def _remove_oldest(directory: Path) -> None:
    """Remove the default audits that were not written for the longest time, beyond the limit.

    A server whose audit was removed makes it again with the next record.
    """
    kept_bytes = 0
    with contextlib.suppress(OSError):  # another server may remove them, too
        files = [(path.lstat(), path) for path in directory.iterdir()]
        for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns, reverse=True):
            kept_bytes += status.st_blocks * 512
            if kept_bytes > MAX_DEFAULTS_BYTES:
                path.unlink()


def _open_directory(path: Path) -> int:
    """Open a directory for new files, creating it if it is missing, or raise OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if path.is_symlink():
        raise _UnfitError(path, "is a symbolic link", "Give the directory's own path.")
    fd = os.open(path, _DIRECTORY_FLAGS)
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=fd):
        os.close(fd)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return fd


def _last_captures(path: Path) -> dict[str, int]:
    """Return the number of each pane's last capture in a directory, or raise OSError."""
    last: dict[str, int] = {}
    directory = _open_directory(path)
    try:
        for name in os.listdir(directory):
            found = _CAPTURE.fullmatch(name)
            if found:
                prefix, number = found[1], int(found[2])
                last[prefix] = max(number, last.get(prefix, 0))
    finally:
        os.close(directory)
    return last


def _capture_name(prefix: str, number: int) -> str:
    return f"{prefix}-capture-{number:03d}.txt"


def _next_number(directory: int, prefix: str, taken: int) -> int:
    """Return the number of a pane's next capture, given one that is taken.

    Another server may have made thousands since, so this takes steps of twice the size each, and
    halves the last one until a free number follows a taken one.
    """

    def is_taken(number: int) -> bool:
        try:
            os.stat(_capture_name(prefix, number), dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    step = 1
    while is_taken(taken + step):
        taken += step
        step *= 2
    while step > 1:
        step //= 2
        if is_taken(taken + step):
            taken += step
    return taken + 1


def _open(path: Path) -> int:
    """Open an audit for appending, creating it if it is missing, or raise OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = _open_audit(path, os.O_CREAT | os.O_APPEND)
    try:
        _end_last_line(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def _open_audit(path: Path, flags: int = 0) -> int:
    """Open a file that is an audit or empty, or raise OSError."""
    with contextlib.suppress(FileNotFoundError):
        _check_type(path, path.lstat())  # before opening, which may act on a device
    fd = os.open(path, _OPEN_FLAGS | flags, 0o600)
    try:
        _check_type(path, os.fstat(fd))
        _check_content(path, os.pread(fd, _HEAD_BYTES, 0))
    except OSError:
        os.close(fd)
        raise
    return fd


def _end_last_line(fd: int) -> None:
    """End the last line of a file, if a server was killed while writing it."""
    size = -1
    while size != os.fstat(fd).st_size:
        size = os.fstat(fd).st_size
        if not size or os.pread(fd, 1, size - 1) == b"\n":
            return
        # Another server may be in the middle of a write. The kernel takes the same lock to write
        # and to change a file's times, so this returns once that write is done.
        os.utime(fd)
    os.write(fd, b"\n")


def _check_type(path: Path, status: os.stat_result) -> None:
    """Raise _UnfitError unless the file is a regular one or /dev/null."""
    mode = status.st_mode
    if stat.S_ISREG(mode) or os.path.samestat(status, os.stat(os.devnull)):
        return
    name = _FILE_TYPES.get(stat.S_IFMT(mode), "not a regular file")
    advice = "Give the path of a regular file."
    if stat.S_ISLNK(mode):
        advice = "Give the file's own path."
    raise _UnfitError(path, f"is {name}", advice)


def _check_content(path: Path, head: bytes) -> None:
    """Raise _UnfitError if something other than a record comes first in a file's head.

    The short beginning of a record, left by a server that was killed while writing, is ignored.
    """
    for line in head.split(b"\n"):
        if _RECORD.match(line) or _is_object(line):
            return
        if not _RECORD_START.startswith(line):
            raise _UnfitError(
                path,
                "contains something other than an audit",
                "Give the audit its own file.",
            )


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _was_moved(path: Path, fd: int) -> bool:
    """Tell whether the path no longer leads to the open file, as after a rotation."""
    try:
        return not os.path.samestat(path.lstat(), os.fstat(fd))
    except OSError:
        return True
