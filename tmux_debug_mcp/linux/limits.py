"""The limit on open files of this process and of others. Standard library only.

Source: getrlimit(2), RLIMIT_NOFILE.
"""

import resource

# The limit that we ask for: a pane takes one file, and a call a few.
_MAX_OPEN_FILES = 65_536


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
