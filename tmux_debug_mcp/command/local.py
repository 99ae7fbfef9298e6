"""The verbs of servers, not of panes: `start` and `stop`; and `demo` and `completion`."""

import contextlib
import os
from collections.abc import Mapping

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OptionError, Values, default_of
from tmux_debug_mcp.sockets.choosing import (
    CHANGES,
    SHARES,
    STARTS,
    NoServerError,
    WhichServerError,
    server_for,
    surroundings,
)
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import Server, VerbError
from tmux_debug_mcp.verbs import help as texts
from tmux_debug_mcp.verbs.parsing import VerbParser, parser_of
from tmux_debug_mcp.verbs.registry import VERBS
from tmux_debug_mcp.vt.printable import visible

from .caller import write
from .starting import DEFAULT_KEEP, connect, values_here

# Ending panes takes a second at most, but on a busy machine longer.
_STOP_S = 30.0
# How many panes a stop names.
_MAX_PANES = 20


def add_start_arguments(parser: VerbParser) -> None:
    """Add the arguments of `start`."""
    parser.description = (
        "Start a server that outlives its callers, for the current directory. It takes the options "
        "of `tmux-debug-mcp`(1)."
    )
    keep = "end after TIME without use, such as 90s, 2h or 1d (default 60m)"
    parser.add_argument("--keep", metavar="TIME", help=keep)
    export = "print a line for `eval` that makes this shell use that server"
    parser.add_argument("--export", action="store_true", help=export)
    parser.add_argument("options", metavar="OPTION", nargs="*")


def start(words: list[str], environ: Mapping[str, str]) -> int:
    """Start a detached server, or change the lease of the one that verbs reach.

    With `--cwd`, this is as if it was called there. With other options, another server is started
    beside that one. With `--export`, standard output gets only a line for `eval` that names the
    server.
    """
    if words and not words[0].startswith("-"):
        raise VerbError(
            f"start starts a server, and has no option '{words[0]}'. To start a command in a pane: "
            "tmux-debug create COMMAND; again: tmux-debug restart PANE"
        )
    is_export = "--export" in words
    options = [word for word in words if word != "--export"]
    try:
        given, values = values_here(options, {}), values_here(options, environ)
    except OptionError as error:
        raise VerbError(str(error)) from None
    if os.path.isdir(os.path.expanduser(given["cwd"])):
        os.chdir(os.path.expanduser(given["cwd"]))
        given, values = ({**options, "cwd": ""} for options in (given, values))
    connection, is_new, remark = _reach(given, values, environ)
    keep = values["keep"]
    connection.send({"want": "keep", "keep": keep})
    for message in connection.answers():
        pid = message["pid"]
        text = f"Started server {pid}." if is_new else f"Server {pid} is already running.{remark}"
        if is_new or message["changed"]:
            keep = keep or DEFAULT_KEEP
            text += f" It ends after {keep}{'s' * keep[-1].isdigit()} without use."
        if is_export:
            write(1, f"export TMUX_DEBUG_SERVER={pid}\n")
        elif not _is_reached(pid, environ):
            text += f" Name it in each call, such as: tmux-debug --server {pid} list"
        write(2 if is_export else 1, f"{text}\n")
        return 0
    raise ServerGoneError("The server has ended.")


def _reach(
    given: Values, values: Values, environ: Mapping[str, str]
) -> tuple[Connection, bool, str]:
    """Connect to the server that verbs reach, or to one with the options if there are any.

    `given` are the options in the words, `values` also those of the environment. Return the
    connection, whether the server was started, and else what else there is to say about it.
    """
    server = None
    with contextlib.suppress(NoServerError):
        server = server_for(environ, STARTS if _has_options(values) else SHARES)
    if server is None:
        return *connect(values, environ), ""
    if _has_options(given):
        raise VerbError(
            f"Calls from here reach server {server.pid}, whose options can't be changed. Start a "
            "server with other options outside of its panes, and without naming a server."
        )
    remark = ""
    if server.keep_s is None:
        remark = " It ends with its MCP client."
    elif server.version != __version__:
        remark = f" It has version {server.version}, and this is {__version__}."
    return Connection(server.socket), False, remark


def _has_options(values: Values) -> bool:
    return any(values[flag] != default_of(flag) for flag in values if flag != "keep")


def _is_reached(pid: object, environ: Mapping[str, str]) -> bool:
    """Return whether verbs that are called here reach a server without naming it."""
    try:
        return server_for(environ, CHANGES).pid == pid
    except (NoServerError, WhichServerError):
        return False


def stop(words: list[str], environ: Mapping[str, str]) -> int:
    """End a server, and say whose panes that ends.

    It must be named if it ends with an MCP client, or is another directory's.
    """
    if words and not words[0].startswith("-"):
        raise VerbError(
            "stop ends the server of this directory. To end a pane: tmux-debug kill PANE; another "
            "server: tmux-debug --server PID stop"
        )
    parser_of(VERBS["stop"]).parse_args(words)
    try:
        server = server_for(environ, CHANGES)
    except NoServerError as error:
        raise VerbError(
            f"You have no server here, so there is nothing to stop.{error.others}"
        ) from None
    here = surroundings(environ)
    why_not = None
    if server.keep_s is None:
        why_not = "ends when its MCP client does"
    elif not here.has(server):
        why_not = f"is of another directory, {visible(server.place)}"
    if why_not and not here.wanted:
        raise VerbError(
            f"Server {server.pid} {why_not}. To end it now: tmux-debug --server {server.pid} stop"
        )
    told = "and everything in its panes"  # by a server that doesn't say more
    connection = Connection(server.socket)
    connection.limit(_STOP_S)
    connection.send({"want": "stop"})
    try:
        for message in connection.answers():  # it closes the connection at its end
            panes = message.get("panes")
            if isinstance(panes, list):
                told = _in_words(panes, server)
    finally:
        connection.close()
    write(1, f"Stopped server {server.pid} of {visible(server.place)}, {told}.\n")
    return 0


def _in_words(panes: list[dict[str, object]], server: Server) -> str:
    """Return what a server ends with it: the panes whose programs run, by name.

    Panes of other directories than the server's have these beside them.
    """
    running = [pane for pane in panes if pane["status"] == "running" or "still_running" in pane]
    if not running:
        return "in which nothing ran"
    names = []
    for pane in running[:_MAX_PANES]:
        is_elsewhere = pane.get("inode", server.inode) != server.inode
        place = f" ({pane['directory']})" if is_elsewhere else ""
        names.append(visible(f"{pane['name']}{place}"))
    more = len(running) - len(names)
    rest = f" and {more} more" if more > 0 else ""
    return f"and everything in its panes: {', '.join(names)}{rest}"


def demo(words: list[str], environ: Mapping[str, str]) -> int:
    """Show a client that debugs."""
    from tmux_debug_mcp import cli  # noqa: PLC0415  the whole server

    parser_of(VERBS["demo"]).parse_args(words)
    return cli.run(["demo"], environ)


def add_completion_arguments(parser: VerbParser) -> None:
    """Add the arguments of `completion`."""
    parser.description = "Print a script for tab completion in a shell."
    parser.add_argument("shell", choices=texts.SHELLS)


def completion(words: list[str], _environ: Mapping[str, str]) -> int:
    """Print a script for tab completion."""
    arguments = parser_of(VERBS["completion"]).parse_args(words)
    write(1, texts.completion(arguments.shell))
    return 0
