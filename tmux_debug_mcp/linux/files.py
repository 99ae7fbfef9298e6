"""File operations that only Linux has: inotify, holes, locked directories and their safe removal.

A process *holds* a directory while it has a lock on it; the kernel releases the lock when the
process ends, even by SIGKILL. Standard library only: the supervisor (`supervise.py`) uses this.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import stat
import struct
from collections.abc import Iterator

# Constants of inotify(7) and fallocate(2), which Python lacks.
_IN_MODIFY = 0x2
_FALLOC_FL_KEEP_SIZE = 0x1
_FALLOC_FL_PUNCH_HOLE = 0x2
# The head of struct inotify_event: wd, mask, cookie, len. A name of `len` bytes follows.
_EVENT = struct.Struct("iIII")
_MAX_READ_BYTES = 1 << 16
OVERFLOW = -1

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Each pass of `remove` removes one level of a tree, so this is also the deepest tree it removes.
_MAX_PASSES = 10_000


@functools.cache
def _libc() -> ctypes.CDLL:
    """Return the C library, cached: Python makes a new class for each request."""
    return ctypes.CDLL(None)


def open_inotify() -> int:
    """Return the descriptor of a new inotify instance, or -1 if the user has too many of them."""
    return int(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))


def watch(inotify: int, fd: int) -> int:
    """Watch an open file for writes.

    Returns the number of the watch, the same each time for the same file; -1 if it can't be made.
    """
    path = f"/proc/self/fd/{fd}".encode()
    return int(_libc().inotify_add_watch(inotify, path, _IN_MODIFY))


def unwatch(inotify: int, number: int) -> None:
    """End a watch."""
    _libc().inotify_rm_watch(inotify, number)


def read_watches(inotify: int) -> list[int]:
    """Return the numbers of the watches whose files were written, in this order, without waiting.

    Writes to one file in a row count as one. A watch that has just ended may be among them; so is
    `OVERFLOW` if there were too many writes to tell of.
    """
    numbers: list[int] = []
    try:
        events = os.read(inotify, _MAX_READ_BYTES)
    except BlockingIOError:
        return []
    while events:
        number, _mask, _cookie, name_bytes = _EVENT.unpack_from(events)
        numbers.append(number)
        events = events[_EVENT.size + name_bytes :]
    return numbers


def punch_hole(fd: int, offset: int, length: int) -> bool:
    """Free the disk space of a range of a file, which then reads as zeros.

    The rest of the file keeps its offsets, even if others append to it meanwhile. Offset and length
    are multiples of 4096. Returns False if the file system has no holes; nothing is freed then.
    """
    mode = _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE
    # Without these types, ctypes passes 32 bits.
    hole = (ctypes.c_int64(offset), ctypes.c_int64(length))
    return int(_libc().fallocate(fd, mode, *hole)) == 0


def check_room(fd: int) -> None:
    """Raise OSError if the file system of an open file has no room for us to write anything.

    Allocating room and freeing it again would also detect a quota, but takes milliseconds.
    """
    status = os.fstatvfs(fd)
    free = status.f_bavail if os.geteuid() else status.f_bfree
    # A file system that does not count its blocks says that it has none.
    if status.f_blocks and not free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def first_data(fd: int) -> int:
    """Return the offset of the first byte that is not in a hole; 0 if there is none."""
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0


def open_file(path: str) -> int:
    """Return the descriptor of a file, open for reading; OSError if it is not a regular file."""
    # Opening some devices and pipes has side effects.
    if stat.S_ISREG(os.lstat(path).st_mode):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)


def hold(directory: str) -> int:
    """Lock a directory as in use, or raise OSError. Several processes can hold the same directory.

    The caller owns the descriptor. Closing it, or the end of the process, unlocks.
    """
    fd = os.open(directory, _OPEN_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


@contextlib.contextmanager
def unheld(directory: str) -> Iterator[bool]:
    """Yield True if nobody holds the directory, and keep others from holding it during the block.

    Raises OSError if there is no such directory.
    """
    fd = os.open(directory, _OPEN_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except BlockingIOError:
        is_free = False
    try:
        yield is_free
    finally:
        os.close(fd)


def is_unheld(directory: str) -> bool:
    """Tell whether a directory is there and nobody holds it."""
    try:
        with unheld(directory) as is_free:
            return is_free
    except OSError:
        return False


def remove_unheld(directory: str) -> None:
    """Remove a directory and everything in it, unless somebody holds it or it is missing.

    A directory that has taken its place meanwhile stays.
    """
    with contextlib.suppress(OSError):
        root = os.open(directory, _OPEN_DIRECTORY)
        try:
            fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_locked(directory, root)
        finally:
            os.close(root)


def remove_locked(directory: str, root: int) -> None:
    """Remove a directory and everything in it, given the descriptor of it that we have locked.

    A directory that has taken its place meanwhile stays: we empty the locked one, and the new one
    is not empty.
    """
    with contextlib.suppress(OSError):
        _empty(root)
        os.rmdir(directory)


def remove(directory: str) -> None:
    """Remove a directory and everything in it. Do nothing if it is missing or a symbolic link.

    Subdirectories are moved into the directory itself before they are emptied. So the tree may be
    deeper than a path can be long, and we follow no path that somebody could replace meanwhile.
    What can't be removed stays.
    """
    try:
        if stat.S_ISDIR(os.lstat(directory).st_mode):
            os.chmod(directory, 0o700)
        root = os.open(directory, _OPEN_DIRECTORY)
    except OSError:
        return
    try:
        _empty(root)
        os.rmdir(directory)
    except OSError:
        return
    finally:
        os.close(root)


def _empty(root: int) -> None:
    moved = 0
    for _ in range(_MAX_PASSES):
        subdirectories = [name for name in os.listdir(root) if not _unlink(name, root)]
        if not subdirectories:
            return
        for name in subdirectories:
            moved = _remove_level(name, root, moved)


def _unlink(name: str, directory: int) -> bool:
    """Remove a file; return False if the name is that of a directory."""
    try:
        os.unlink(name, dir_fd=directory)
    except OSError as error:
        return error.errno not in (errno.EISDIR, errno.EPERM)
    return True


def _remove_level(name: str, root: int, moved: int) -> int:
    """Remove a subdirectory of the root and its files; move its own subdirectories to the root.

    Moved files are numbered: `moved` says how many there were before, and the result how many now.
    """
    with contextlib.suppress(OSError):
        # fchmod(2) can't be used on O_PATH files.
        path_fd = os.open(name, _OPEN_DIRECTORY | os.O_PATH, dir_fd=root)
        try:
            os.chmod(f"/proc/self/fd/{path_fd}", 0o700)
        finally:
            os.close(path_fd)
        directory = os.open(name, _OPEN_DIRECTORY, dir_fd=root)
        try:
            for entry in os.listdir(directory):
                if not _unlink(entry, directory):
                    moved += 1
                    os.rename(entry, f".removed-{moved}", src_dir_fd=directory, dst_dir_fd=root)
        finally:
            os.close(directory)
        os.rmdir(name, dir_fd=root)
    return moved
