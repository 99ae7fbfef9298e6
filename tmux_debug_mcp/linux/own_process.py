"""Our own process: its user, its memory, and the limit on open files. Standard library only."""

import getpass
import os
import resource

# The limit that we ask for: a pane takes one file, and a call a few. Source: getrlimit(2).
_MAX_OPEN_FILES = 65_536


def user_name() -> str:
    """Return the name of our user, or `uid N` where they have none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the latter from Python 3.13 on
        return f"uid {os.getuid()}"


def give_back_memory() -> None:
    """Give the memory that is free back to the kernel, where the C library doesn't do it itself.

    glibc keeps most of it: what was freed lies between what is in use. Source: malloc_trim(3).
    """
    import ctypes  # noqa: PLC0415  only servers need it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # musl has none
        trim(0)


def open_files_limit() -> str:
    """Return our soft limit on open files, as `ulimit -n` prints it."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


def open_files_limit_of(pid: int) -> int:
    """Return a process's soft limit on open files, 65,536 for none, or 0 if the process is gone."""
    try:
        soft = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return 0
    if soft == resource.RLIM_INFINITY:
        return _MAX_OPEN_FILES
    return soft


def raise_open_files_limit() -> None:
    """Raise our soft limit on open files to 65,536, or to the hard limit if that is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_OPEN_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
