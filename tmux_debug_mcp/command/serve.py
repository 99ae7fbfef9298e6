"""`tmux-debug-mcp`: serves MCP itself, or with `--keep` through a detached server.

The detached server gets this process's standard input and output, so that nothing has to be copied.
This process stays until the client or the server is done.
"""

import os
import sys

from tmux_debug_mcp.options import OptionError, Values, parse
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.own_environment import ignore_python_path, of_project
from tmux_debug_mcp.sockets.connection import sent_environment
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.verbs.registry import LOOKING, SECTIONS

from . import main as tmux_debug
from .caller import open_standard_streams, write
from .starting import connect

_CLOSED = (
    "Standard input or output is closed, and MCP needs both. Let an MCP client start the server."
)


def main() -> None:
    """Run the command and exit."""
    ignore_python_path(os.environ)
    words = sys.argv[1:]
    # The verbs that newcomers look for here, except the demo, which `cli` runs.
    looking = [verb.name for verb in SECTIONS[LOOKING] if verb.name != "demo"]
    if words and words[0] in looking:
        tmux_debug.main()
    if open_standard_streams() & {0, 1}:
        write(2, f"tmux-debug-mcp: {_CLOSED}\n")
        os._exit(1)
    try:
        values, others = parse(words, os.environ)
    except OptionError:
        pass  # `cli` reports it
    else:
        if not others and os.isatty(0):
            write(2, _greeting())
        if values["keep"] and not others:
            os._exit(_relay(values))
    from tmux_debug_mcp import cli  # noqa: PLC0415  the whole server

    cli.main()


def _greeting() -> str:
    """Return what to tell somebody who has started a server in a terminal."""
    from tmux_debug_mcp.clients.table import CLIENTS  # noqa: PLC0415  no client needs it

    verbs = own_command(is_for_here=True)
    lines = {
        f"{verbs} demo": "watch it find a bug in a small web service",
        f"{verbs} config CLIENT": f"add it to a client: {', '.join(CLIENTS)}",
        f"{verbs} --help": "use its terminals from this shell",
    }
    width = max(map(len, lines))
    return (
        "tmux-debug-mcp is an MCP server: an MCP client starts it and talks to it in JSON. Here\n"
        "it reads JSON from your terminal. Press C-d to end it. You may want one of these:\n\n"
        + "".join(f"  {line:<{width}}  {what}\n" for line, what in lines.items())
        + "\n"
    )


def _relay(values: Values) -> int:
    """Serve this process's client through the detached server; return the exit status."""
    try:
        connection, _ = connect(values, os.environ)
        environment = sent_environment(of_project(os.environ))
        connection.send({"want": "mcp", "environment": environment}, fds=(0, 1))
        status = tmux_debug.answered(connection)
    except CommandError as error:
        write(2, f"tmux-debug-mcp: {error}\n")
        return 1
    if status is not None:
        return status
    write(2, "tmux-debug-mcp: The detached server has ended, and its panes with it.\n")
    return 1
