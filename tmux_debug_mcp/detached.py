"""A detached server: it goes on when its clients have ended, until nobody has used it for a while.

`command.starting` has forked this process and waits for what is written into a pipe: that a server
is ready, or why it can't start. It may be killed while it waits, which ends nothing.
"""

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import anyio

from .cli import configuration_of
from .errors import StartError
from .options import Values
from .server import serve_detached
from .settings import seconds_of
from .sockets.listener import claim
from .sockets.servers import JOINED, READY

# What the server has to complain of, such as a bug of ours, or the reason why it ended.
_ERRORS = "errors.log"


def run(directory: str, values: Values, ready_fd: int, environ: Mapping[str, str]) -> None:
    """Serve until the end of the lease.

    Args:
        directory: The directory to make for the socket.
        values: The options of `tmux-debug-mcp`, with `keep`.
        ready_fd: Where to write `READY`, `JOINED`, or why the server can't start.
        environ: The environment.
    """
    # A command line, which has forked this process, ends at a closed pipe. A server does not: a
    # caller may be killed before it has read its answer.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # Until the server is ready, its complaints go to whoever waits for it.
    os.dup2(ready_fd, 2)
    os.close(ready_fd)
    try:
        keep_s = seconds_of(values["keep"])
        configuration = configuration_of(values, environ)
        listener = claim(directory)
    except StartError as error:
        _tell(f"{error}\n".encode())
        return
    if listener is None:
        _tell(JOINED)
        return
    anyio.run(
        serve_detached,
        configuration,
        listener,
        keep_s,
        lambda: _answer(configuration.settings.state_dir),
    )


def _answer(directory: Path) -> None:
    """Tell that the server is ready. What it complains of from now on goes to a file.

    Args:
        directory: The directory for the file, which outlives the server.
    """
    try:
        directory.mkdir(0o700, parents=True, exist_ok=True)
        errors = os.open(directory / _ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        errors = os.open(os.devnull, os.O_WRONLY)
    _tell(READY)
    os.dup2(errors, 2)
    os.close(errors)


def _tell(text: bytes) -> None:
    """Write to whoever started us, if they have not been killed."""
    with contextlib.suppress(BrokenPipeError):
        os.write(2, text)
