"""Reads a client's file, and replaces it in one step, with a backup beside it.

A symbolic link stays one: what it leads to is replaced. Mode and owner stay, too.
"""

import contextlib
import difflib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from tmux_debug_mcp.sockets.servers import CommandError

_BACKUP = ".bak-"
_MAX_BACKUPS_READ = 20
_MAX_DIFF_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class File:
    """A client's file, as it was read.

    Attributes:
        path: Where the client looks for it.
        target: Where it is: the same, or what a symbolic link leads to.
        text: Its text, None if there is no such file.
        status: Its status, None if there is no such file.
    """

    path: Path
    target: Path
    text: str | None
    status: os.stat_result | None


def read(path: Path) -> File:
    """Return a file.

    Raises:
        CommandError: It can't be read, or is no file with UTF-8.
    """
    target = Path(os.path.realpath(path))
    try:
        with target.open("rb") as stream:
            status = os.fstat(stream.fileno())
            data = stream.read()
    except FileNotFoundError:
        return File(path, target, None, None)
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise CommandError(f"{path} is no regular file. It stays as it is.")
    return File(path, target, _decoded(path, data), status)


def backups(path: Path) -> list[str]:
    """Return the texts of a file's backups, the newest first."""
    found = sorted(path.parent.glob(f"{_escaped(path.name)}{_BACKUP}*"), reverse=True)
    texts = []
    for backup in found[:_MAX_BACKUPS_READ]:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            texts.append(backup.read_bytes().decode())
    return texts


def write(file: File, text: str) -> Path | None:
    """Replace a file by this text, and return the path of the backup, None if it was not there.

    Raises:
        CommandError: It can't be written, or has changed since it was read.
    """
    try:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        backup = _backup(file)
        _replace(file, text.encode())
    except OSError as error:
        raise _refusal(file, error) from None
    return backup


def delete(file: File, *, has_backup: bool) -> Path | None:
    """Delete a file, and return the path of the backup, None if none is wanted.

    Raises:
        CommandError: It can't be deleted, or has changed since it was read.
    """
    try:
        backup = _backup(file) if has_backup else None
        _check_unchanged(file)
        file.target.unlink()
        if file.path.is_symlink():
            file.path.unlink()
    except OSError as error:
        raise _refusal(file, error) from None
    return backup


def diff(path: Path, before: str, after: str) -> str:
    """Return the difference between two texts, for a terminal. Long lines are cut."""
    old, new = (text.removesuffix("\n").split("\n") if text else [] for text in (before, after))
    name = str(path)
    lines = difflib.unified_diff(old, new, name, name, n=2, lineterm="")
    return "".join(f"{_cut(shown(line.removesuffix(chr(13))))}\n" for line in lines)


def shown(text: str) -> str:
    """Return a text without characters that a terminal would act on."""
    return "".join(
        one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in text
    )


def _replace(file: File, data: bytes) -> None:
    """Put a new file in the place of an old one. Readers see the old one or the new one."""
    temporary = file.target.with_name(f".{file.target.name}.{os.getpid()}.tmp")
    try:
        _create(temporary, data, file.status)
        _check_unchanged(file)
        os.replace(temporary, file.target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _backup(file: File) -> Path | None:
    """Write what a file has into a new file beside it. Source of the name: ours."""
    if file.text is None:
        return None
    if file.status and not file.status.st_mode & stat.S_IWUSR:
        raise PermissionError(0, "it is read-only")
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for number in range(1000):
        name = f"{file.path.name}{_BACKUP}{stamp}" + (f"-{number:03}" if number else "")
        backup = file.path.with_name(name)
        with contextlib.suppress(FileExistsError):
            _create(backup, file.text.encode(), file.status)
            return backup
    raise FileExistsError(0, "too many backups are there")


def _create(path: Path, data: bytes, like: os.stat_result | None) -> None:
    """Create a file with the mode and the owner of another one, or as the umask has it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    fd = os.open(path, flags, 0o666 if like is None else 0o600)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)
        stream.flush()
        if like is not None:
            status = os.fstat(fd)
            if (status.st_uid, status.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, stat.S_IMODE(like.st_mode))
        os.fsync(fd)


def _check_unchanged(file: File) -> None:
    """Check that nobody has written the file since it was read.

    Raises:
        CommandError: Somebody has.
    """
    now = read(file.path)
    if now.text != file.text or now.target != file.target:
        raise CommandError(f"{file.path} has just been changed by another program. Try again.")


def _refusal(file: File, error: OSError) -> CommandError:
    where = f" (a link to {file.target})" if file.target != file.path else ""
    return CommandError(
        f"{file.path}{where} can't be written: {error.strerror}. Put the entry there yourself: the "
        "same line without --write or --remove shows it."
    )


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(f"{path} is no UTF-8 (line {line}). It stays as it is.") from None


def _escaped(name: str) -> str:
    return "".join(f"[{one}]" if one in "*?[" else one for one in name)


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_DIFF_CHARACTERS else f"{line[:_MAX_DIFF_CHARACTERS]}…"
