"""`dev`: one development server for a directory, which people and agents share.

It is a pane of the detached server of the directory, even in the shell of an agent: the agent's own
server ends with the agent. Whoever comes first starts it; all others find it running.
"""

import fcntl
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.sockets.choosing import SHARES, NoServerError, server_for
from tmux_debug_mcp.sockets.connection import Connection, panes_of
from tmux_debug_mcp.sockets.servers import SOCKET, VerbError, inode_of
from tmux_debug_mcp.verbs.parsing import VerbParser, parser_of
from tmux_debug_mcp.verbs.registry import VERBS
from tmux_debug_mcp.verbs.requests import check

from .caller import directory, write
from .main import call
from .starting import connect_here
from .terminal import pane_size

# What `dev` does about a pane.
SHOW = "show"
CREATE = "create"
RESTART = "restart"
_NAME = "dev"
_LOCK = "dev.lock"
# Servers take a few seconds to start, and few print all the time.
_REST_S = "10"
# How many last lines those who come later see.
_LINES = "10"
# The exit status of what has ended otherwise, as for a wait.
_ENDED = 1
_LOCK_POLL_S = 0.05


def add_arguments(parser: VerbParser) -> None:
    """Add the arguments of `dev`."""
    parser.description = (
        "Start this directory's development server, or show it if it is already running. In a "
        "terminal, you get its screen and keyboard; C-b d leaves it running. Elsewhere, the "
        "command returns once the server is at rest or listens."
    )
    pane = f"name of the server's pane (default {_NAME})"
    parser.add_argument("--name", default=_NAME, help=pane)
    port = (
        "outside a terminal: wait until the server listens on PORT, or say which process has that "
        "port"
    )
    parser.add_argument("--port", metavar="PORT", type=int, help=port)
    parser.add_argument(
        "--restart", action="store_true", help="end the running server, and start it again"
    )
    starts = "the command that starts the server"
    parser.add_argument("command", metavar="COMMAND", nargs="*", help=starts)


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Start the development server of the directory unless it runs, and show it."""
    given = parser_of(VERBS["dev"]).parse_args(words)
    command = given.command[0] if len(given.command) == 1 else shlex.join(given.command)
    name, port = given.name, ["--port", str(given.port)] if given.port else []
    # What runs in a pane has a terminal, but nobody sits at it.
    is_person = os.isatty(0) and os.isatty(1) and processes.TAG not in environ
    # A person sees it in the terminal. The wait for a port comes later, without the lock.
    soon = ["-q", "--timeout", "0"] if is_person or port else ["--timeout", _REST_S]
    size = ["--size", pane_size()] if is_person else []
    cwd, inode = directory(), inode_of(".")
    if port and command:  # only the wait for it would refuse a wrong one, and that comes last
        check(["create", "--name", name, *port, "--", command], cwd)
    server_directory = _reach(name, command, environ, cwd)
    path = f"{server_directory}/{SOCKET}"

    def decided(pane: dict[str, object] | None) -> str:
        return decide(pane, inode, name, command, restarts=given.restart)

    def ask(*line: str) -> int:
        return call(Connection(path), list(line), cwd)

    def may_join() -> bool:
        """Return whether it runs and may be joined before it is up.

        A person watches it come up, and `--port` waits for that.
        """
        pane = _running(path, name) if is_person or port else None
        return pane is not None and decided(pane) == SHOW

    status = 0
    with _alone(server_directory, may_join):
        does = decided(_newest(path, name))
        if does == CREATE:
            status = ask("create", "--name", name, *size, *soon, "--", command)
        elif does == RESTART:
            other = [f"--command={command}"] if command else []
            status = ask("restart", name, *other, *soon)
    if not is_person:
        if port and not status:
            status = ask("wait", name, *port)
        elif does == SHOW:
            status = ask("capture", name, "--lines", _LINES)
        return status
    if does == SHOW:
        write(2, f"'{name}' is already running; nothing was started.\n")
    if _running(path, name) is None:  # it ended before anybody could see it
        ask("capture", name, "--lines", _LINES)
        return _ENDED
    return ask("attach", "--write", name)


def decide(
    pane: dict[str, object] | None, inode: str, name: str, command: str, *, restarts: bool
) -> str:
    """Return what to do about the newest pane of that name: SHOW it, CREATE or RESTART it.

    `inode` identifies the caller's directory: another one may have its path. `command` is "" if
    none is given; `restarts` says that a running one is to be ended.

    Raises:
        VerbError: It runs for another directory, or it runs another command and is not to be
            ended; or nothing runs and there is no command.
    """
    is_here = pane is not None and pane["inode"] == inode
    if pane is not None and pane["status"] == "running":
        if not is_here:
            raise VerbError(
                f"'{name}' is running for another directory: {pane['directory']}. Give another "
                "--name."
            )
        if command not in ("", pane["line"]) and not restarts:
            raise VerbError(
                f"'{name}' is already running another command: {pane['command']}. Give --restart "
                "to end it, or another --name."
            )
        return RESTART if restarts else SHOW
    if command:
        return CREATE
    if is_here:
        return RESTART
    raise VerbError(
        f"'{name}' is not running for this directory. Give its command: tmux-debug dev -- COMMAND"
    )


def _reach(name: str, command: str, environ: Mapping[str, str], cwd: str) -> str:
    """Return the directory of the server, which is started if need be."""
    try:
        return server_for(environ, SHARES, lambda: [name]).directory
    except NoServerError:
        decide(None, "", name, command, restarts=False)
        check(["create", "--name", name, "--", command], cwd)
    return connect_here(environ).directory


def _newest(path: str, name: str) -> dict[str, object] | None:
    """Return the row of the newest pane of a name; None if there is none."""
    named = [pane for pane in panes_of(path) if pane["name"] == name]
    return named[-1] if named else None


def _running(path: str, name: str) -> dict[str, object] | None:
    pane = _newest(path, name)
    return pane if pane and pane["status"] == "running" else None


@contextmanager
def _alone(server_directory: str, may_join: Callable[[], bool]) -> Iterator[None]:
    """Let nobody else start a development server at this server while the block runs.

    Others wait for the one who starts it, unless they `may_join` it earlier.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    path = f"{server_directory}/{_LOCK}"
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:  # the server has ended, or there is no room
        raise VerbError(f"{path} can't be created: {error.strerror}. Try again.") from error
    try:
        while not _locks(fd) and not may_join():
            time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(fd)


def _locks(fd: int) -> bool:
    """Lock a file; return False if somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
