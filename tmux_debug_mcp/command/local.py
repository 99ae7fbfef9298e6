"""The verbs of servers, not of panes: `start` and `stop`; and `demo` and `completion`."""

import os
from collections.abc import Mapping

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OptionError, Values, default_of, parse_all
from tmux_debug_mcp.sockets.choosing import CHANGES, NoServerError, server_for
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import CommandError, Server, inode_of, running
from tmux_debug_mcp.verbs.registry import VERBS

from .caller import flags, write
from .starting import DEFAULT_KEEP, connect, server_of_pane

# Ending panes takes a second at most, but on a busy machine longer.
_STOP_S = 30.0


def start(words: list[str], environ: Mapping[str, str]) -> int:
    """Start a detached server, or change the lease of one that runs already.

    With `--export`, standard output gets only a line for `eval` that names the server.
    """
    is_export = "--export" in words
    try:
        values = parse_all([word for word in words if word != "--export"], environ)
    except OptionError as error:
        raise CommandError(str(error)) from None
    keep = values["keep"]
    own = server_of_pane(environ)
    if own:
        _say_started(_in_pane(own, values), own.pid, is_export=is_export)
        return 0
    here = _of_directory(values["cwd"], environ)
    connection, is_new = _reach(values, environ, here)
    connection.send({"want": "keep", "keep": keep})
    for message in connection.messages():
        if "err" in message:
            raise CommandError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
        ends = f"ends after {keep or DEFAULT_KEEP} without use."
        text = f"Started server {message['pid']}. It {ends}"
        if not is_new:
            text = f"Server {message['pid']} is already running for this directory."
            if message["changed"]:
                text += f" From now on, it {ends}"
        elif here:
            others = ", ".join(str(server.pid) for server in here)
            text += (
                f" Servers with other options for this directory: {others}. Choose a server in "
                f"each call, such as: tmux-debug --server {message['pid']} list"
            )
        _say_started(text, message["pid"], is_export=is_export)
        return 0
    raise ServerGoneError("The server has ended.")


def _say_started(text: str, pid: object, *, is_export: bool) -> None:
    if is_export:
        write(1, f"export TMUX_DEBUG_SERVER={pid}\n")
    write(2 if is_export else 1, f"{text}\n")


def _in_pane(server: Server, values: Values) -> str:
    """Return what `start` says in a pane of a server.

    Raises:
        CommandError: It is to have options, which only another server could have.
    """
    in_pane = f"This is a pane of server {server.pid}"
    if _has_options(values):
        raise CommandError(
            f"{in_pane}. A server with other options would end with the pane. Start it elsewhere."
        )
    return f"{in_pane}, which all verbs here reach. Nothing was started."


def _has_options(values: Values) -> bool:
    return any(values[flag] != default_of(flag) for flag in values if flag != "keep")


def _of_directory(cwd: str, environ: Mapping[str, str]) -> list[Server]:
    """Return the detached servers of this version that serve a directory, "" for the current."""
    here = inode_of(os.path.expanduser(cwd) or ".")
    return [
        server
        for server in running(environ.get("XDG_RUNTIME_DIR", ""))
        if server.keep_s is not None and (server.inode, server.version) == (here, __version__)
    ]


def _reach(
    values: Values, environ: Mapping[str, str], here: list[Server]
) -> tuple[Connection, bool]:
    """Connect to the only server `here` if no options are given, else to the one that has them.

    `--cwd` says where `here` is, so it is none of these options.

    Return the connection, and whether the server was started.
    """
    if len(here) == 1 and not _has_options({**values, "cwd": default_of("cwd")}):
        try:
            return Connection(here[0].socket), False
        except ServerGoneError:
            here.clear()  # it was killed
    return connect(values, environ)


def stop(words: list[str], environ: Mapping[str, str]) -> int:
    """End a server. It must be named if it ends with an MCP client."""
    flags("stop", words)
    try:
        server = server_for(environ, CHANGES)
    except NoServerError as error:
        raise CommandError(
            f"You have no server here, so there is nothing to stop.{error.others}"
        ) from None
    if server.keep_s is None and not environ.get("TMUX_DEBUG_SERVER"):
        raise CommandError(
            f"Server {server.pid} ends when its MCP client does. To end it now: tmux-debug "
            f"--server {server.pid} stop"
        )
    connection = Connection(server.socket)
    connection.limit(_STOP_S)
    connection.send({"want": "stop"})
    try:
        for message in connection.messages():  # it closes the connection at its end
            if "err" in message:
                raise CommandError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
    finally:
        connection.close()
    write(1, f"Stopped server {server.pid}, and everything in its panes.\n")
    return 0


def demo(words: list[str], environ: Mapping[str, str]) -> int:
    """Show a client that debugs."""
    from tmux_debug_mcp import cli  # noqa: PLC0415  the whole server

    flags("demo", words)
    return cli.run(["demo"], environ)


def completion(words: list[str], _environ: Mapping[str, str]) -> int:
    """Print a script for tab completion."""
    from tmux_debug_mcp.verbs import help as texts  # noqa: PLC0415  it needs all parsers
    from tmux_debug_mcp.verbs.parsing import parser_of  # noqa: PLC0415

    arguments = parser_of(VERBS["completion"]).parse_args(words)
    write(1, texts.completion(arguments.shell))
    return 0
