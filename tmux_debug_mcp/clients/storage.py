"""Reads a client's file, and replaces it in one step, with a backup in our own directory.

A symbolic link stays, and its target is replaced. Mode and owner stay, too. A project may be
somebody else's: only files inside it are read, and backups are never written there.
"""

import codecs
import contextlib
import difflib
import errno
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tmux_debug_mcp.linux.files import open_file
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.vt.printable import visible

from .editing import EditError

# `~/.claude.json` also contains the client's history. A project's file may be somebody else's.
_MAX_MIB = 32
_MAX_MIB_OF_PROJECT = 1
# No line that we write into a new file is longer, but for long paths.
_MAX_DIFF_CHARACTERS = 250


@dataclass(frozen=True, slots=True)
class File:
    """A client's file, as it was read. Status is None if there is no such file.

    The client looks for it at `path`; `target` is that path without symbolic links. `project` is
    the directory that it has to be in, None for a file of the person's.
    """

    path: Path
    target: Path
    project: Path | None
    data: bytes
    status: os.stat_result | None

    @property
    def text(self) -> str:
        """What is in it, without a byte order mark."""
        return text_of(self.data)


def read(path: Path, project: Path | None = None) -> File:
    """Return the file at a path, which must not lead out of the project, if any.

    Raises:
        VerbError: It can't be read, is outside the project, too large, or not UTF-8.
    """
    target = Path(os.path.realpath(path))
    if project is not None and not target.is_relative_to(os.path.realpath(project)):
        raise VerbError(
            f"{path} leads through a link to {target}, outside the project. Replace the link."
        )
    try:
        data, status = read_data(target, is_of_project=project is not None)
        text_of(data)
    except FileNotFoundError:
        return File(path, target, project, b"", None)
    except OSError as error:
        raise VerbError(f"{path} can't be read: {error.strerror}.") from None
    except EditError as error:
        raise VerbError(f"{path} {error}. Nothing was changed.") from None
    return File(path, target, project, data, status)


def read_data(target: Path, *, is_of_project: bool) -> tuple[bytes, os.stat_result]:
    """Return the content and status of a regular file.

    Raises:
        OSError: It can't be read, or is too large.
    """
    limit = _MAX_MIB_OF_PROJECT if is_of_project else _MAX_MIB
    with open(open_file(str(target)), "rb") as stream:
        data = stream.read((limit << 20) + 1)
        if len(data) > limit << 20:
            raise OSError(errno.EFBIG, f"larger than {limit} MiB", str(target))
        return data, os.fstat(stream.fileno())


def text_of(data: bytes) -> str:
    """Return the text of a file, without a byte order mark; EditError if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise EditError("is not UTF-8", line, column) from None


def write(file: File, text: str, directory: Path) -> Path | None:
    """Replace a file's text, and return the path of the backup; None if there was no file.

    A byte order mark, as editors on Windows write it, stays. Readers see the old or the new
    file. The directory holds the backups of all files.

    Raises:
        VerbError: It can't be written, or has changed since it was read.
    """
    temporary = file.target.with_name(f".{file.target.name}.{os.getpid()}.tmp")
    has_mark = file.data.startswith(codecs.BOM_UTF8)
    data = text.encode("utf-8-sig" if has_mark else "utf-8")
    with _backed_up(file, directory) as backup:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _create(temporary, data, 0o600 if file.status else 0o666)
            if file.status:
                own, meant = temporary.stat(), file.status
                if (own.st_uid, own.st_gid) != (meant.st_uid, meant.st_gid):
                    os.chown(temporary, meant.st_uid, meant.st_gid)
                temporary.chmod(stat.S_IMODE(meant.st_mode))
            _check_unchanged(file)
            os.replace(temporary, file.target)
        finally:
            temporary.unlink(missing_ok=True)
    return backup


def delete(file: File, directory: Path | None) -> Path | None:
    """Delete a file and the link to it, and return the path of the backup.

    The directory holds the backups of all files; with None, there is no backup.

    Raises:
        VerbError: It can't be deleted, or has changed since it was read.
    """
    with _backed_up(file, directory) as backup:
        _check_unchanged(file)
        file.target.unlink()
        if file.path.is_symlink():
            file.path.unlink()
    return backup


def diff(path: Path, before: str, after: str) -> str:
    """Return the difference between two texts, for a terminal. Long lines are cut."""
    old, new = (text.removesuffix("\n").split("\n") if text else [] for text in (before, after))
    lines = list(difflib.unified_diff(old, new, str(path), str(path), n=2, lineterm=""))
    shown = [visible(line) for line in lines[:2]]  # the path is not cut
    for line in lines[2:]:
        change = visible(line.removesuffix("\r"), keep="\t")
        is_long = len(change) > _MAX_DIFF_CHARACTERS
        shown.append(f"{change[:_MAX_DIFF_CHARACTERS]}…" if is_long else change)
    return "".join(f"{line}\n" for line in shown)


@contextlib.contextmanager
def _backed_up(file: File, directory: Path | None) -> Iterator[Path | None]:
    """Back up a file, and remove the backup if the block fails."""
    if file.status and not file.status.st_mode & stat.S_IWUSR:
        raise _refusal(file, "it is read-only")
    backup = None
    try:
        if file.status and directory is not None:
            backup = _create_backup(file.path, file.data, directory)
        yield backup
    except BaseException as error:
        if backup:
            backup.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _refusal(file, error.strerror) from None
        raise


def _refusal(file: File, reason: str | None) -> VerbError:
    where = f" (a link to {file.target})" if file.target != file.path else ""
    return VerbError(
        f"{file.path}{where} can't be written: {reason}. Edit it yourself: the same command "
        "without --write or --remove prints the entry."
    )


def _create_backup(path: Path, data: bytes, directory: Path) -> Path:
    """Return a new file with this data, below the directory, named after a path and the time."""
    stamp = f"{os.path.abspath(path).lstrip('/')}.{time.strftime('%Y%m%dT%H%M%S')}"
    (directory / stamp).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(1000):
        backup = directory / (stamp + (f"-{number:03}" if number else ""))
        with contextlib.suppress(FileExistsError):
            _create(backup, data, 0o600)
            return backup
    raise FileExistsError(0, "there are too many backups")


def _create(path: Path, data: bytes, mode: int) -> None:
    """Write a new file, and remove it if that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(fd)
    except BaseException:
        path.unlink()
        raise


def _check_unchanged(file: File) -> None:
    """Raise `VerbError` if the file has changed since it was read."""
    now = read(file.path, file.project)
    if now.data != file.data or now.target != file.target:
        raise VerbError(f"Another program has just changed {file.path}. Try again.")
