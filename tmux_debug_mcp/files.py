"""What only Linux has for files: news of changes, holes, and files that are files."""

import ctypes
import errno
import os
import stat
import struct

_IN_MODIFY = 2
_IN_ONESHOT = 0x80000000
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2


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
