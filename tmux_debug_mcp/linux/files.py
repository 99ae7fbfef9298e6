"""Files, as only Linux has them: events, holes, locked directories and their safe removal.

Standard library only: the supervisor (`supervise.py`) runs on this.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator

_IN_MODIFY = 2
_IN_ONESHOT = 0x80000000
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory is gone after as many looks as it is deep.
_MOST_LOOKS = 10_000


def open_inotify() -> int:
    """Return a file that tells of changes to watched files, or -1 where no more of them are to be had."""
    return int(ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))


def watch(inotify: int, fd: int, *, once: bool = False) -> int:
    """Watch what is written to an open file, or only the first thing that is.

    Returns:
        The watch's number, the same for the same file, or -1 where there can't be one.
    """
    mask = _IN_MODIFY | (_IN_ONESHOT if once else 0)
    return int(ctypes.CDLL(None).inotify_add_watch(inotify, f"/proc/self/fd/{fd}".encode(), mask))


def unwatch(inotify: int, number: int) -> None:
    """End a watch."""
    ctypes.CDLL(None).inotify_rm_watch(inotify, number)


def read_watches(inotify: int) -> set[int]:
    """Return the numbers of the watches whose files have changed."""
    numbers: set[int] = set()
    try:
        data = os.read(inotify, 1 << 16)
    except BlockingIOError:
        return numbers
    while data:
        number, _, _, length = struct.unpack_from("iIII", data)
        numbers.add(number)
        data = data[16 + length :]
    return numbers


def punch_hole(fd: int, offset: int, length: int) -> bool:
    """Give back the space of a part of a file, which reads as zeros from then on; tell whether that was possible.

    Both numbers are multiples of 4096. What lies behind stays where it is, also for those who append meanwhile.
    """
    fallocate = ctypes.CDLL(None).fallocate
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return int(fallocate(fd, _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE, offset, length)) == 0


def first_data(fd: int) -> int:
    """Return the offset of a file's first byte that is in no hole, and 0 where there is none or it can't be told."""
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0


def open_file(path: str) -> int:
    """Return a file that is to be read, open.

    Raises:
        OSError: There is none, or something else, such as a link or a pipe.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return fd


def hold(directory: str) -> int:
    """Lock a directory as in use until the returned file is closed or this process ends."""
    fd = os.open(directory, _DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


@contextlib.contextmanager
def unheld(directory: str) -> Iterator[bool]:
    """Tell whether nobody holds an existing directory, and keep it so for the time of the block."""
    fd = os.open(directory, _DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except BlockingIOError:
        is_free = False
    try:
        yield is_free
    finally:
        os.close(fd)


def remove(directory: str) -> None:
    """Remove a directory with all that is in it, if it is there and no link.

    Directories in it are emptied from the top, what they have being moved there: so it may be deep, and no path is
    followed that somebody could change meanwhile.
    """
    try:
        if stat.S_ISDIR(os.lstat(directory).st_mode):
            os.chmod(directory, 0o700)
        root = os.open(directory, _DIRECTORY)
    except OSError:
        return
    try:
        moved = 0
        for _ in range(_MOST_LOOKS):
            directories = [name for name in os.listdir(root) if not _unlinked(name, root)]
            for name in directories:
                moved = _emptied(name, root, moved)
            if not directories:
                break
        os.rmdir(directory)
    except OSError:
        return
    finally:
        os.close(root)


def _unlinked(name: str, directory: int) -> bool:
    """Remove what is no directory; tell whether it was none."""
    try:
        os.unlink(name, dir_fd=directory)
    except OSError as error:
        return error.errno not in (errno.EISDIR, errno.EPERM)
    return True


def _emptied(name: str, root: int, moved: int) -> int:
    """Remove a directory; what is in it goes, or directories to the root. Return how many have been moved there."""
    with contextlib.suppress(OSError):
        found = os.open(name, _DIRECTORY | os.O_PATH, dir_fd=root)
        try:
            os.chmod(f"/proc/self/fd/{found}", 0o700)
        finally:
            os.close(found)
        opened = os.open(name, _DIRECTORY, dir_fd=root)
        try:
            for inner in os.listdir(opened):
                if not _unlinked(inner, opened):
                    moved += 1
                    os.rename(inner, f".removed-{moved}", src_dir_fd=opened, dst_dir_fd=root)
        finally:
            os.close(opened)
        os.rmdir(name, dir_fd=root)
    return moved
