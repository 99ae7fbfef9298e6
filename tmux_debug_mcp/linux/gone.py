"""Where the current directory was. Of the standard library, only what callers load anyway."""

import os

# How the kernel marks the path of a removed directory in links of /proc. Source: proc(5).
REMOVED = " (deleted)"


def gone_directory() -> str:
    """Return the path that the current directory had before it was removed."""
    return os.readlink("/proc/self/cwd").removesuffix(REMOVED)
