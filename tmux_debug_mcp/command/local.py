"""The verbs of servers, not of panes: `start` and `stop`; and `demo` and `completion`."""

from collections.abc import Mapping

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OptionError, Values, default_of, parse_all
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import (
    ONLY_ONE,
    CommandError,
    NoServerError,
    Server,
    is_held,
    meant,
    running,
    surroundings,
)
from tmux_debug_mcp.verbs.registry import VERBS

from .caller import flags, write
from .starting import DEFAULT_KEEP, connect, server_of_pane


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
    here = _of_directory(environ)
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


def _of_directory(environ: Mapping[str, str]) -> list[Server]:
    """Return the living detached servers of this version that serve the current directory."""
    caller = surroundings(environ)
    return [
        server
        for server in running(caller.runtime)
        if server.keep_s is not None
        and (server.cwd, server.version) == (caller.cwd, __version__)
        and is_held(server.directory)
    ]


def _reach(
    values: Values, environ: Mapping[str, str], here: list[Server]
) -> tuple[Connection, bool]:
    """Connect to the only server `here` if no options are given, else to the one that has them.

    Return the connection, and whether the server was started.
    """
    if len(here) == 1 and not _has_options(values):
        try:
            return Connection(here[0].socket), False
        except ServerGoneError:
            here.clear()  # it was killed
    return connect(values, environ)


def stop(words: list[str], environ: Mapping[str, str]) -> int:
    """End a server. It must be named if it ends with an MCP client."""
    flags("stop", words)
    caller = surroundings(environ)
    try:
        server, reason = meant(running(caller.runtime), caller)
    except NoServerError as error:
        raise CommandError(
            f"You have no server here, so there is nothing to stop.{error.others}"
        ) from None
    is_above = bool(caller.cwd) and server.cwd.startswith(f"{caller.cwd}/")
    if reason == ONLY_ONE and not is_above:
        raise CommandError(
            f"Server {server.pid} serves another directory, {server.cwd}. To end it: tmux-debug "
            f"--server {server.pid} stop"
        )
    if server.keep_s is None and not caller.wanted:
        raise CommandError(
            f"Server {server.pid} ends when its MCP client does. To end it now: tmux-debug "
            f"--server {server.pid} stop"
        )
    connection = Connection(server.socket)
    connection.send({"want": "stop"})
    for _ in connection.messages():
        pass  # it closes the connection at its end
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
