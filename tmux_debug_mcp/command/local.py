"""The verbs of servers, not of panes: `start`, `stop` and `ps`; and `demo` and `completion`."""

import os
import time
from collections.abc import Collection, Mapping

from tmux_debug_mcp.options import OptionError, parse_all
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import CommandError, Server, choose, running
from tmux_debug_mcp.verbs.registry import VERBS

from .main import write
from .starting import DEFAULT_KEEP, connect

_REDRAW_S = 1.0
_CLEAR = "\x1b[H\x1b[J"


def ps(words: list[str], environ: Mapping[str, str]) -> int:
    """List the servers with their panes, or the names of one's panes."""
    flags = _flags("ps", words, {"--follow", "--names"})
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if "--names" in flags:
        wanted = environ.get("TMUX_DEBUG_SERVER", "")
        for pane in _panes(choose(running(runtime), wanted, os.getpid(), runtime)):
            write(1, f"{pane['name']}\n")
        return 0
    while True:
        servers = running(runtime)
        text = "\n".join(_described(server) for server in servers) or "No server is running."
        if "--follow" not in flags:
            write(1, f"{text}\n")
            return 0
        write(1, f"{_CLEAR}{text}\n")
        time.sleep(_REDRAW_S)


def start(words: list[str], environ: Mapping[str, str]) -> int:
    """Start a detached server, or change how long one goes on that runs already."""
    try:
        values = parse_all(words, environ)
    except OptionError as error:
        raise CommandError(str(error)) from None
    keep = values["keep"]
    connection, is_new = connect(values, environ)
    connection.send({"want": "keep", "keep": keep})
    for message in connection.messages():
        if "err" in message:
            raise CommandError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
        ends = f"It ends when nobody has used it for {keep or DEFAULT_KEEP}."
        if is_new:
            write(1, f"Started server {message['pid']}. {ends}\n")
            return 0
        text = f"Server {message['pid']} runs already for this directory and these options."
        if message["changed"]:
            text += f" From now on, it {ends.removeprefix('It ')}"
        write(1, f"{text}\n")
        return 0
    raise ServerGoneError("The server has ended.")


def stop(words: list[str], environ: Mapping[str, str]) -> int:
    """End a server, which must be named if an MCP client ends it."""
    _flags("stop", words)
    runtime, wanted = environ.get("XDG_RUNTIME_DIR", ""), environ.get("TMUX_DEBUG_SERVER", "")
    server = choose(running(runtime), wanted, os.getpid(), runtime)
    if server.keep_s is None and not wanted:
        raise CommandError(
            f"Server {server.pid} ends with its MCP client. To end it now, say which: "
            f"tmux-debug --server {server.pid} stop"
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

    _flags("demo", words)
    return cli.run(["demo"], environ)


def completion(words: list[str], _environ: Mapping[str, str]) -> int:
    """Print a script for tab completion."""
    from tmux_debug_mcp.verbs import help as texts  # noqa: PLC0415  it takes all parsers
    from tmux_debug_mcp.verbs.parsing import parser_of  # noqa: PLC0415

    arguments = parser_of(VERBS["completion"]).parse_args(words)
    write(1, texts.completion(arguments.shell))
    return 0


def _flags(name: str, words: list[str], known: Collection[str] = ()) -> list[str]:
    """Return the flags of a verb that takes no values. argparse would take longer than the verb."""
    if any(word not in known for word in words):
        from tmux_debug_mcp.verbs.parsing import parser_of  # noqa: PLC0415  it says what is wrong

        parser_of(VERBS[name]).parse_args(words)
    return words


def _described(server: Server) -> str:
    from tmux_debug_mcp.vt.printable import visible  # noqa: PLC0415  verbs don't need it

    lines = [str(server)]
    for pane in _panes(server):
        facts = [f"{pane['id']} {pane['name']}", str(pane["status"])]
        if "awaits" in pane:
            facts.append(f"awaits {pane['awaits']}")
        if "exit_code" in pane:
            facts.append(f"code {pane['exit_code']}")
        if "signal" in pane:
            facts.append(f"killed by {pane['signal']}")
        if "lost" in pane:
            facts.append("lost")
        lines.append(f"    {', '.join(facts)}: {pane['command']}")
    return "\n".join(map(visible, lines))


def _panes(server: Server) -> list[dict[str, object]]:
    """Return the rows of a server's panes; none of a server that has just ended."""
    try:
        connection = Connection(server.socket)
    except ServerGoneError:
        return []
    connection.send({"want": "panes"})
    for message in connection.messages():
        panes = message.get("panes")
        if isinstance(panes, list):
            return panes
    return []
