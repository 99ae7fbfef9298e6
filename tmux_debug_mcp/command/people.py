"""The caller's side of the verbs for people: their terminal shows a pane, or asks for a secret."""

import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Mapping

from tmux_debug_mcp.linux.users import user_name
from tmux_debug_mcp.sockets.connection import Connection
from tmux_debug_mcp.sockets.servers import CommandError

_INTERRUPTED = 130
# Much more than a terminal takes, so that the server can say how long a line is.
_MAX_PIPED_BYTES = 1 << 20


def name() -> str:
    """Return who this is, as the agent and the record are told."""
    user = user_name()
    try:
        return f"{user} at {os.ttyname(0)}"
    except OSError:
        return user


def answer(connection: Connection, message: Mapping[str, object]) -> int | None:
    """Do what the server asks of a person; return the exit status, None if the verb goes on.

    Raises:
        CommandError: There is no terminal, or the secret can't be read.
    """
    if "attach" in message:
        return _attach(message["attach"])
    try:
        secret = _ask(str(message["ask"]))
    except KeyboardInterrupt:
        return _INTERRUPTED
    connection.send({"secret": secret})
    return None


def _attach(argv: object) -> int:
    """Show the pane until the person leaves. The end of this process ends their session."""
    if not (isinstance(argv, list) and os.isatty(0) and os.isatty(1)):
        raise CommandError("attach needs a terminal. Call it in one.")
    env = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
    return subprocess.run(argv, env=env, check=False).returncode


def _ask(prompt: str) -> str:
    """Return a secret: typed without echo, or all that is piped, without a final line feed."""
    if os.isatty(0):
        # As an exception, so that the terminal's echo is turned on again.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return getpass.getpass(prompt)
    # As bytes: text would end at a carriage return, and the rest would be dropped silently.
    line = sys.stdin.buffer.read(_MAX_PIPED_BYTES).removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in line:
        raise CommandError(
            "The secret has more than one line. Nothing was typed. Pipe a single line, as by "
            "'| head -n 1'."
        )
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise CommandError("The secret is not UTF-8. Nothing was typed.") from None
