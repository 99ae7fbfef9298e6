"""The verbs for the person who looks, of both programs: `audit`, `replay`, `doctor`, `config`.

Each is a module with `parser()`, which returns its argument parser, and `run(words, environ)`,
which returns its exit status. They are imported only where they are called.
"""

import os
import sys

_MODULES = {
    "audit": "tmux_debug_mcp.viewing.audit_verb",
    "replay": "tmux_debug_mcp.viewing.replay_verb",
    "doctor": "tmux_debug_mcp.doctor.doctor_verb",
    "config": "tmux_debug_mcp.clients.config_verb",
}
VERBS = tuple(_MODULES)


def run(verb: str, words: list[str], server: str = "") -> int:
    """Run one of the verbs and return its exit status.

    Args:
        verb: The verb.
        words: The command line behind it.
        server: The server that the command line or the environment names, "" for none.

    Raises:
        CommandError: It can't be done.
        SystemExit: The command line is wrong, or asks for help.
    """
    # Verbs of the server need none of these.
    import importlib  # noqa: PLC0415

    from tmux_debug_mcp.errors import StartError  # noqa: PLC0415
    from tmux_debug_mcp.sockets.servers import CommandError  # noqa: PLC0415

    environ = dict(os.environ)
    if server:
        environ["TMUX_DEBUG_SERVER"] = server
    try:
        status = importlib.import_module(_MODULES[verb]).run(words, environ)
    except StartError as error:
        raise CommandError(str(error)) from error
    sys.stdout.flush()  # `tmux-debug` ends without it
    return int(status)


def help_of(verb: str) -> str:
    """Return the help of one of the verbs."""
    import importlib  # noqa: PLC0415

    return str(importlib.import_module(_MODULES[verb]).parser().format_help())


def helps() -> dict[str, str]:
    """Return the help of each of the verbs."""
    return {verb: help_of(verb) for verb in VERBS}
