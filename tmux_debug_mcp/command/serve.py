"""`tmux-debug-mcp`: serves MCP itself, or with `--keep` through a detached server.

The detached server gets this process's standard input and output, so that nothing has to be copied.
This process stays until one of the two is done.
"""

import os
import sys

from tmux_debug_mcp.options import OptionError, Values, parse
from tmux_debug_mcp.sockets.servers import CommandError, client_of
from tmux_debug_mcp.verbs.registry import LOOKING, SECTIONS

from . import main as tmux_debug
from .starting import connect


def main() -> None:
    """Run the command and exit."""
    if sys.argv[1:] and _is_verb(sys.argv[1]):
        tmux_debug.main()
    values = _to_relay(sys.argv[1:])
    if values:
        os._exit(_relay(values))
    from tmux_debug_mcp import cli  # noqa: PLC0415  the whole server

    cli.main()


def _is_verb(word: str) -> bool:
    """Tell whether a word is a verb that newcomers look for here, but for the demo: see `cli`."""
    return word != "demo" and any(word == verb.name for verb in SECTIONS[LOOKING])


def _to_relay(words: list[str]) -> Values | None:
    """Return the options if a detached server is to serve, None if this process does all."""
    try:
        values, others = parse(words, os.environ)
    except OptionError:  # which the other main() says
        return None
    return values if values["keep"] and not others else None


def _relay(values: Values) -> int:
    """Serve this process's client through the detached server; return the exit status."""
    try:
        connection, _ = connect(values, os.environ)
        connection.send({"want": "mcp", "client": client_of(os.getpid())}, fds=(0, 1))
        for message in connection.messages():
            if "err" in message:
                os.write(2, str(message["err"]).encode())
            if "exit" in message:
                return int(str(message["exit"]))
    except CommandError as error:
        os.write(2, f"tmux-debug-mcp: {error}\n".encode())
        return 1
    os.write(2, b"tmux-debug-mcp: The detached server has ended, and its panes with it.\n")
    return 1
