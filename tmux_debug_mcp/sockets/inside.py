"""How programs in a server's panes call that server: by `tmux-debug`, on the PATH of every pane.

It comes last there, so one that the user has installed is found first. Wherever the program is,
`choosing` says which server a caller in a pane reaches.
"""

import errno
import os
import shlex
import sys
from pathlib import Path

from tmux_debug_mcp.own_command import installed_program

_PROGRAM = "tmux-debug"
_ROOT = str(Path(__file__).parents[2])
# Like an installed program, but without the site module, which takes as long as the verb.
_MAIN = (
    "import sys; sys.path[:] = {path!r}; sys.prefix = sys.exec_prefix = {prefix!r}; "
    "from tmux_debug_mcp.command.main import main; main()"
)


def add_program(directory: str) -> str:
    """Write `tmux-debug` into a server's directory; return the directory for the PATH of panes.

    It runs this package in this interpreter, however these were found. In a file system whose files
    can't be run, it is a link to the program that is installed with this package.

    Raises:
        OSError: It can't be written, or could not be run.
    """
    programs = f"{directory}/bin"
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        installed = os.path.realpath(installed_program() or directory)
        if os.statvfs(installed).f_flag & os.ST_NOEXEC:
            raise OSError(errno.EACCES, "the file system is mounted with noexec", directory)
        os.mkdir(programs, 0o700)
        os.symlink(installed, f"{programs}/{_PROGRAM}")
        return programs
    path = list(dict.fromkeys([*filter(os.path.isabs, sys.path), _ROOT]))
    code = _MAIN.format(path=path, prefix=sys.prefix)
    # Through a shell, since a path may be too long for a `#!` line, or contain blanks.
    words = shlex.join([sys.executable, "-I", "-S", "-c", code])
    text = f'#!/bin/sh\nexec {words} "$@"\n'
    os.mkdir(programs, 0o700)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(f"{programs}/{_PROGRAM}", flags, 0o700), "wb") as file:
        file.write(os.fsencode(text))
    return programs
