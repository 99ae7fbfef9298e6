"""The caller's side of the verbs for people: their terminal shows a pane, or asks for a secret."""

import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Mapping

from tmux_debug_mcp.linux.own_process import user_name
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.vt.printable import visible
from tmux_debug_mcp.vt.sizes import above_line

from .caller import write
from .listing import cut_off, in_lines, terminal_size

_INTERRUPTED = 130
# What the exit statuses of tmux mean, as `tmux.conf` sets them. It is 0 when the pane was killed.
_LEFT = (0, 3)
_WISHES = {4: "switch", 5: "scroll", 6: "return"}
# Much more than a terminal takes, so that the server can say how long a line is.
_MAX_PIPED_BYTES = 1 << 20


def name() -> str:
    """Return who this is, for the agent and the record."""
    user = user_name()
    try:
        return f"{user} at {os.ttyname(0)}"
    except OSError:
        return user


def pane_size() -> str:
    """Return the size that this terminal has for a pane, such as `80x23`."""
    return above_line(*terminal_size(0))


def answer(connection: Connection, message: Mapping[str, object]) -> int | None:
    """Do what the server asks of a person; return the exit status, None if the verb goes on.

    Raises:
        VerbError: There is no terminal, or the secret can't be read.
    """
    try:
        if "attach" in message:
            return _attach(connection, message["attach"])
        if "choose" in message:
            connection.send({"pane": _choose(message["choose"])})
        else:
            connection.send({"secret": _ask(str(message["ask"]))})
    except KeyboardInterrupt:
        write(2, "\n")  # after the question
        return _INTERRUPTED
    return None


def _attach(connection: Connection, argv: object) -> int | None:
    """Show the pane until the person leaves, or wants to see it otherwise.

    When this process ends, so does their session. tmux draws on the terminal at its standard input;
    on standard output it would only say, in its words, why it has ended. The server is told when
    the terminal gets another size.
    """
    if not (isinstance(argv, list) and os.isatty(0) and os.isatty(1)):
        raise VerbError("attach needs a terminal. Run it in one.")
    env = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
    signal.signal(signal.SIGWINCH, lambda *_: connection.send({"size": pane_size()}))
    connection.send({"size": pane_size()})  # it may have changed before
    status = subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=False).returncode
    signal.signal(signal.SIGWINCH, signal.SIG_DFL)
    if status in _WISHES:
        connection.send({"wish": _WISHES[status]})
        return None
    connection.hang_up()
    if status in _LEFT:
        return None
    if not any("exit" in message for message in connection.messages()):
        raise ServerGoneError("The server has ended.")
    terminal = env.get("TERM") or "not set"
    raise VerbError(
        f"tmux can't show the pane on this terminal. TERM is {terminal}. Set it to this terminal's "
        "type, such as xterm-256color."
    )


def _choose(panes: object) -> str:
    """Return the id of the pane that the person chooses by its number, its name or its id."""
    rows = panes if isinstance(panes, list) else []
    width, (columns, _) = len(str(len(rows))), terminal_size(2)
    for number, line in enumerate(in_lines(rows), 1):
        write(2, cut_off(f"{number:{width}}  {line}", columns) + "\n")
    while True:
        chosen = _line("Which one? ")
        numbered = {str(number): row for number, row in enumerate(rows, 1)}
        named = {row[key]: row for key in ("name", "id") for row in rows}
        # Numbers win over names.
        if row := numbered.get(chosen) or named.get(chosen):
            return str(row["id"])
        shown = visible(chosen)
        write(2, f"'{shown}' is not one of them. Enter a number from 1 to {len(rows)}.\n")


def _line(prompt: str) -> str:
    """Return a line typed in the terminal, without spaces around it."""
    _interrupts()
    write(2, prompt)
    line = sys.stdin.buffer.readline()
    if not line:
        raise VerbError("No pane was chosen.")
    return line.decode(errors="replace").strip()


def _interrupts() -> None:
    """Have C-c raise an exception, so that the terminal's echo is turned back on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _ask(prompt: str) -> str:
    """Return a secret: typed without echo, or piped, without its final line feed."""
    if os.isatty(0):
        _interrupts()
        return getpass.getpass(prompt)
    # As bytes: text would end at a carriage return, and the rest would be dropped silently.
    with open(0, "rb", closefd=False) as piped:  # Python has no stream where it was closed
        data = piped.read(_MAX_PIPED_BYTES)
    if not data:
        raise VerbError(
            "Standard input was empty: the command that writes to it may have failed. Nothing was "
            "typed."
        )
    line = data.removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in line:
        raise VerbError(
            "The secret has more than one line. Nothing was typed. Pipe a single line, e.g. with "
            "'| head -n 1'."
        )
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise VerbError("The secret is not UTF-8. Nothing was typed.") from None
