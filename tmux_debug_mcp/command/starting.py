"""Starts detached servers, and reaches the one that serves a directory and a configuration.

A detached server is a copy of this process that has left its session, its terminal and its open
files. So it runs the same package in the same interpreter, however that was found.
"""

import contextlib
import os
import sys
from _blake2 import blake2b  # of hashlib, which loads OpenSSL as well
from collections.abc import Mapping, Sequence

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import Values, parse_all
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import (
    JOINED,
    PREFIX,
    READY,
    SOCKET,
    VerbError,
    bases,
    current_directory,
    inode_of,
)

from .caller import write

DEFAULT_KEEP = "60m"
_MAX_ANSWER_BYTES = 1 << 16


def directory_for(values: Values, runtime: str) -> str:
    """Return the directory of the detached server for the current directory and these options.

    `--keep` makes no difference. `runtime` is $XDG_RUNTIME_DIR, "" if it is not set.
    """
    options = [f"{flag}={value}" for flag, value in values.items() if flag != "keep"]
    cwd = current_directory()
    configuration = [__version__, __file__, sys.prefix, cwd, inode_of(cwd), *options]
    data = "\0".join(configuration).encode(errors="surrogateescape")
    name = PREFIX + blake2b(data, digest_size=8).hexdigest()
    return f"{bases(runtime)[0]}/{name}"


def values_here(words: Sequence[str], environ: Mapping[str, str]) -> Values:
    """Return the options of a server for the caller's directory; OptionError if one is unknown.

    That is the current directory, also where TMUX_DEBUG_CWD says where servers of clients work.
    """
    return parse_all(words, {**environ, "TMUX_DEBUG_CWD": ""})


def connect_here(environ: Mapping[str, str]) -> Connection:
    """Connect to a detached server for the caller's directory, as `connect` does."""
    return connect(values_here([], environ), environ)[0]


def connect(values: Values, environ: Mapping[str, str]) -> tuple[Connection, bool]:
    """Connect to the detached server for the current directory; start it if it does not run.

    Return the connection, and whether the server was started.

    Raises:
        VerbError: It can't start.
        ServerGoneError: It has already ended.
    """
    directory = directory_for(values, environ.get("XDG_RUNTIME_DIR", ""))
    socket = f"{directory}/{SOCKET}"
    with contextlib.suppress(ServerGoneError):
        return Connection(socket), False
    is_new = _start(directory, values)
    return Connection(socket), is_new


def _start(directory: str, values: Values) -> bool:
    """Start a detached server; return False if another was faster. Either way, one listens."""
    answer_fd, ready_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answer_fd)
        _leave(ready_fd)
        from tmux_debug_mcp.cli import run_detached  # noqa: PLC0415  the whole server

        keep = values["keep"] or DEFAULT_KEEP
        run_detached(directory, {**values, "keep": keep}, ready_fd, os.environ)
        os._exit(0)
    os.close(ready_fd)
    os.waitpid(child, 0)
    answer = b""
    while data := os.read(answer_fd, _MAX_ANSWER_BYTES):
        answer += data
    os.close(answer_fd)
    if answer.endswith(READY):
        write(2, answer.removesuffix(READY))  # what it starts without
        return True
    if answer.endswith(JOINED):
        return False
    text = answer.decode(errors="replace").strip()
    raise VerbError(text or "The detached server ended while starting.")


def _leave(ready_fd: int) -> None:
    """Leave the caller's session, process group, terminal and files."""
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    # A client that waits until its files are closed must not wait for us.
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd not in (0, 1, 2, ready_fd):
            os.closerange(fd, fd + 1)  # ignores errors: the list's own file is closed by now
