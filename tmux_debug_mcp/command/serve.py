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
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.verbs.registry import LOOKING, SECTIONS

from .caller import complain, open_standard_streams, run_here, write
from .starting import connect

_WRONG = 2
_PROGRAM = "tmux_debug_mcp.cli:run"
_CLOSED = (
    "Standard input or output is closed, and MCP needs both. Let an MCP client start the server."
)


def main() -> None:
    """Run the command and exit."""
    ignore_python_path(os.environ)
    words = sys.argv[1:]
    # The verbs that newcomers look for here, except the demo, which takes options.
    looking = [verb.name for verb in SECTIONS[LOOKING] if verb.name != "demo"]
    if words and words[0] in looking:
        from .main import main as tmux_debug  # noqa: PLC0415  its parsers stay in memory

        tmux_debug()
    closed = open_standard_streams()
    try:
        values, others = parse(words, os.environ)
        is_served = not others  # else the help, for example
        if is_served:
            _check_streams(closed)
        if is_served and values["keep"]:
            status = _serve_detached(values)
        else:
            status = run_here(_PROGRAM, words)
    except OptionError as error:
        write(2, "usage: tmux-debug-mcp [OPTION ...]\n")
        complain("tmux-debug-mcp", error)
        status = _WRONG
    except VerbError as error:
        complain("tmux-debug-mcp", error)
        status = 1
    os._exit(status)


def _check_streams(closed: set[int]) -> None:
    """Raise VerbError if a client can't be served, and greet a person who is not one."""
    if closed & {0, 1}:
        raise VerbError(_CLOSED)
    if os.isatty(0):
        write(2, _greeting())


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


def _serve_detached(values: Values) -> int:
    """Serve this process's client through the detached server; return the exit status."""
    from .main import answered  # noqa: PLC0415  as above

    connection, _ = connect(values, os.environ)
    environment = sent_environment(of_project(os.environ))
    connection.send({"want": "mcp", "environment": environment}, fds=(0, 1))
    status = answered(connection)
    if status is None:
        raise VerbError("The detached server has ended, and its panes with it.")
    return status
