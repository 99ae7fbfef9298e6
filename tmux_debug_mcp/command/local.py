"""The verbs of servers, not of panes: `start`, `stop` and `ps`; and `demo` and `completion`."""

import time
from collections.abc import Collection, Mapping

from tmux_debug_mcp.options import OptionError, parse_all
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError, panes_of
from tmux_debug_mcp.sockets.servers import (
    ONLY_ONE,
    CommandError,
    Server,
    Surroundings,
    choose,
    meant,
    running,
    surroundings,
)
from tmux_debug_mcp.verbs.registry import VERBS

from .main import write
from .starting import DEFAULT_KEEP, connect

_REDRAW_S = 1.0
_CLEAR = "\x1b[H\x1b[J"


def ps(words: list[str], environ: Mapping[str, str]) -> int:
    """List the servers with their panes, or the names of one's panes."""
    flags = _flags("ps", words, {"--follow", "--names"})
    caller = surroundings(environ)
    if "--names" in flags:
        for pane in panes_of(choose(running(caller.runtime), caller).socket):
            write(1, f"{pane['name']}\n")
        return 0
    while True:
        text = _listed(running(caller.runtime), caller)
        if "--follow" not in flags:
            write(1, f"{text}\n")
            return 0
        write(1, f"{_CLEAR}{text}\n")
        time.sleep(_REDRAW_S)


def start(words: list[str], environ: Mapping[str, str]) -> int:
    """Start a detached server, or change how long one goes on that runs already.

    With `--export`, standard output has a line for `eval` that names the server, and nothing else.
    """
    is_export = "--export" in words
    try:
        values = parse_all([word for word in words if word != "--export"], environ)
    except OptionError as error:
        raise CommandError(str(error)) from None
    keep = values["keep"]
    connection, is_new = connect(values, environ)
    connection.send({"want": "keep", "keep": keep})
    for message in connection.messages():
        if "err" in message:
            raise CommandError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
        ends = f"ends when nobody has used it for {keep or DEFAULT_KEEP}."
        text = f"Started server {message['pid']}. It {ends}"
        if not is_new:
            text = f"Server {message['pid']} runs already for this directory and these options."
            if message["changed"]:
                text += f" From now on, it {ends}"
        if is_export:
            write(1, f"export TMUX_DEBUG_SERVER={message['pid']}\n")
        write(2 if is_export else 1, f"{text}\n")
        return 0
    raise ServerGoneError("The server has ended.")


def stop(words: list[str], environ: Mapping[str, str]) -> int:
    """End a server, which must be named if an MCP client ends it."""
    _flags("stop", words)
    caller = surroundings(environ)
    server, reason = meant(running(caller.runtime), caller)
    if reason == ONLY_ONE:
        raise CommandError(
            f"Server {server.pid} serves another directory, {server.cwd}. To end it, say which: "
            f"tmux-debug --server {server.pid} stop"
        )
    if server.keep_s is None and not caller.wanted:
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


def _listed(servers: list[Server], caller: Surroundings) -> str:
    """Return the servers with their panes, and which of them verbs reach from here, and why."""
    if not servers:
        return "No server is running."
    try:
        taken, reason = meant(servers, caller)
    except CommandError:
        none = "None of them is taken here: name one with --server."
        return "\n".join([*(_described(server) for server in servers), none])
    return "\n".join(
        _described(server, f"  taken here: {reason}" if server is taken else "")
        for server in servers
    )


def _described(server: Server, remark: str = "") -> str:
    from tmux_debug_mcp.vt.printable import visible  # noqa: PLC0415  verbs don't need it

    lines = [f"{server}{remark}"]
    for pane in panes_of(server.socket):
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
