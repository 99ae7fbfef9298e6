"""The open files of a process, and which of them have both their ends in it."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from itertools import islice

from . import sockets

# What the link of an eventfd says.
EVENTFD = "anon_inode:[eventfd]"
# A file: its device and inode.
FileId = tuple[int, int]
# The descriptors of a process, by the files that they mean.
Descriptors = Mapping[FileId, list[str]]


def descriptors(pid: int, most: int) -> Descriptors | None:
    """Return the descriptors of a process, none if it is gone; None if there are more than `most`.

    Raises PermissionError if they are hidden.
    """
    directory = f"/proc/{pid}/fd"
    try:
        with os.scandir(directory) as entries:
            numbers = [entry.name for entry in islice(entries, most + 1)]
    except PermissionError:
        raise
    except OSError:
        return {}
    if len(numbers) > most:
        return None
    found: dict[FileId, list[str]] = {}
    for number in numbers:
        with contextlib.suppress(OSError):
            file = os.stat(f"{directory}/{number}")
            found.setdefault((file.st_dev, file.st_ino), []).append(number)
    return found


def has_pipe_end(pid: int, numbers: Iterable[str], *, writes: bool) -> bool:
    """Tell whether one of a process's descriptors of a pipe writes to it, or else reads it."""
    permission = 0o200 if writes else 0o400
    for number in numbers:
        # The permissions of the link are the mode in which the file was opened.
        with contextlib.suppress(OSError):
            if os.lstat(f"/proc/{pid}/fd/{number}").st_mode & permission:
                return True
    return False


def has_unix_peer(file: os.stat_result, found: Descriptors) -> bool:
    """Tell whether a process with these descriptors has both ends of a pair of Unix sockets."""
    end = sockets.unix_end(file.st_ino)
    return bool(end and end.peer and (file.st_dev, end.peer) in found)
