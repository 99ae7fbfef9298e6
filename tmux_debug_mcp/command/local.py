"""The verbs that concern servers, not panes: `start`, `stop` and `ps`; and what is printed."""

import os
import sys
import time

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OptionError, parse_all
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import CommandError, Server, choose, running

from . import looking
from .starting import DEFAULT_KEEP, connect

_HELP = ("-h", "--help", "help")
_REFUSED = 125
_REDRAW_S = 1.0
_CLEAR = "\x1b[H\x1b[J"


def show_help(words: list[str]) -> int:
    """Print help and return the exit status: without any words the command line is wrong."""
    from tmux_debug_mcp.verbs import help as texts  # noqa: PLC0415  verbs don't need it

    if not words:
        os.write(2, texts.overview().encode())
        return _REFUSED
    verbs = [word for word in words if word not in _HELP]
    if verbs and verbs[0] in looking.VERBS:
        _print(looking.help_of(verbs[0]).rstrip("\n"))
    elif verbs:
        _print(texts.help_of(verbs).rstrip("\n"))
    else:
        _print(texts.overview().rstrip("\n"))
    return 0


def run(words: list[str], wanted: str) -> int:
    """Run one of these verbs and return its exit status.

    Args:
        words: The command line, from the verb on.
        wanted: The server that `--server` or the environment names, "" for none.

    Raises:
        CommandError: It can't be done.
    """
    verb, *arguments = words
    if verb in _WITHOUT_SERVERS:
        return _WITHOUT_SERVERS[verb](arguments)
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    servers = running(runtime)
    if verb == "stop":
        _check_words(verb, arguments, ())
        server = choose(servers, wanted, os.getpid(), runtime)
        if server.keep_s is None and not wanted:
            raise CommandError(
                f"Server {server.pid} ends with its MCP client. To end it now, say which: "
                f"tmux-debug --server {server.pid} stop"
            )
        return _stop(server)
    _check_words(verb, arguments, ("--follow", "--names"))
    if "--names" in arguments:
        return _names(choose(servers, wanted, os.getpid(), runtime))
    return _list(follows="--follow" in arguments)


def _version(_: list[str]) -> int:
    _print(f"tmux-debug {__version__}")
    return 0


def _demo(words: list[str]) -> int:
    from tmux_debug_mcp import cli  # noqa: PLC0415  the whole server
    from tmux_debug_mcp.errors import StartError  # noqa: PLC0415

    _check_words("demo", words, ())
    try:
        status = cli.run(["demo"], os.environ)
    except StartError as error:
        raise CommandError(str(error)) from None
    sys.stdout.flush()
    return status


def _completion(words: list[str]) -> int:
    from tmux_debug_mcp.verbs import help as texts  # noqa: PLC0415  verbs don't need it

    if len(words) != 1 or words[0] not in texts.SHELLS:
        raise CommandError(f"Give one shell: completion {' or '.join(texts.SHELLS)}.")
    _print(texts.completion(words[0], looking.helps()).rstrip("\n"))
    return 0


def _check_words(verb: str, words: list[str], known: tuple[str, ...]) -> None:
    for word in words:
        if word not in known:
            takes = " and ".join(known) or "no arguments"
            raise CommandError(f"{verb} does not know '{word}'. It takes {takes}.")


def _start(words: list[str]) -> int:
    try:
        values = parse_all(words, os.environ)
    except OptionError as error:
        raise CommandError(str(error)) from None
    keep = values["keep"]
    connection, is_new = connect(values, os.environ)
    connection.send({"want": "keep", "keep": keep})
    for message in connection.messages():
        if "err" in message:
            raise CommandError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
        ends = f"It ends when nobody has used it for {keep or DEFAULT_KEEP}."
        if is_new:
            _print(f"Started server {message['pid']}. {ends}")
            return 0
        text = f"Server {message['pid']} runs already for this directory and these options."
        if message["changed"]:
            text += f" From now on, it {ends.removeprefix('It ')}"
        _print(text)
        return 0
    raise ServerGoneError("The server has ended.")


def _stop(server: Server) -> int:
    connection = Connection(server.socket)
    connection.send({"want": "stop"})
    for _ in connection.messages():
        pass  # it closes the connection at its end
    _print(f"Stopped server {server.pid}, and everything in its panes.")
    return 0


def _list(*, follows: bool) -> int:
    """Print the servers with their panes, and with `--follow` again every second."""
    while True:
        servers = running(os.environ.get("XDG_RUNTIME_DIR", ""))
        text = "\n".join(_described(server) for server in servers) or "No server is running."
        if not follows:
            _print(text)
            return 0
        _print(f"{_CLEAR}{text}")
        time.sleep(_REDRAW_S)


def _described(server: Server) -> str:
    from tmux_debug_mcp.viewing.visible import visible  # noqa: PLC0415  verbs don't need it

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


def _names(server: Server) -> int:
    for pane in _panes(server):
        _print(str(pane["name"]))
    return 0


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


def _print(line: str) -> None:
    data = f"{line}\n".encode()
    while data:
        data = data[os.write(1, data) :]


# The verbs that don't look for servers.
_WITHOUT_SERVERS = {
    "--version": _version,
    "start": _start,
    "completion": _completion,
    "demo": _demo,
}
