"""`tmux-debug`: finds the server, passes a verb on to it, and prints the answer."""

import os
import signal
import sys

from tmux_debug_mcp import __version__
from tmux_debug_mcp.own_environment import ignore_python_path, of_project
from tmux_debug_mcp.sockets.choosing import MAKES, NoServerError, server_for
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError, sent_environment
from tmux_debug_mcp.sockets.servers import VerbError, current_directory
from tmux_debug_mcp.verbs.help import overview
from tmux_debug_mcp.verbs.parsing import (
    HelpWanted,
    UsageError,
    asks_for_help,
    parser_of,
    verb_of,
)
from tmux_debug_mcp.verbs.registry import VERBS

from . import terminal
from .caller import complain, directory, open_standard_streams, run_here, write
from .starting import connect_here

_REFUSED = 125
_HELP = ("-h", "--help", "help")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command and exit."""
    open_standard_streams()
    ignore_python_path(os.environ)
    # As in C programs, a closed pipe or C-c ends the process, and with it the connection.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        status = run(sys.argv[1:])
    except VerbError as error:
        complain("tmux-debug", error)
        status = _REFUSED
    # Everything is written. Shutting the interpreter down would take longer than the verb.
    os._exit(status)


def run(words: list[str]) -> int:
    """Run a command line and return its exit status; VerbError if it can't be done."""
    wanted, words = _server_option(words)
    try:
        "".join(words).encode()  # JSON and terminals take only UTF-8
    except UnicodeEncodeError:
        raise VerbError("The arguments are not UTF-8. Give UTF-8.") from None
    if not words or words[0] in _HELP or asks_for_help(words):
        return _show_help(words)
    if words[0] == "--version":
        write(1, f"tmux-debug {__version__}\n")
        return 0
    verb = verb_of(words)
    current_directory()  # for any verb, it must be there
    if words[0] == "capture" and any(word.partition("=")[0] == "--at" for word in words):
        return run_here("tmux_debug_mcp.viewing.replay_verb:run_capture", words[1:], wanted)
    if verb.handler:
        return run_here(verb.handler, words[1:], wanted)
    cwd = directory()
    return call(_reach(wanted, words), words, cwd)


def call(connection: Connection, words: list[str], cwd: str) -> int:
    """Have a server do what a command line says, from a directory; return the exit status."""
    verb = VERBS[words[0]]
    wish: dict[str, object] = {
        "want": "verb",
        "words": words,
        "cwd": cwd,
        "terminal": os.isatty(2),
        "out_terminal": os.isatty(1),
    }
    if verb.asks_person:
        wish |= {"person": terminal.name(), "chooses": os.isatty(0) and os.isatty(2)}
        wish |= {"size": terminal.pane_size()} if os.isatty(0) else {}
    if verb.makes_panes:
        wish["environment"] = sent_environment(of_project(os.environ))
    signals = _hang_up_at_signals(connection) if verb.says_what_runs else []
    connection.send(wish)
    status = answered(connection)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if signals:
        os.kill(os.getpid(), signals[0])  # so that a shell's loop ends, too
    if status is None:
        raise ServerGoneError("The server has ended.")
    return status


def answered(connection: Connection) -> int | None:
    """Print what the server says, and do what it asks; return the exit status, None if it ends.

    If standard output and standard error are the same, the latter begins on a new line.
    """
    is_within_line = False
    for message in connection.messages():
        if "out" in message:
            write(1, message["out"])
            is_within_line = not str(message["out"]).endswith("\n")
        if "err" in message:
            if is_within_line and os.path.sameopenfile(1, 2):
                write(2, "\n")
            write(2, message["err"])
        if "exit" in message:
            return int(str(message["exit"]))
        if message.keys() & {"attach", "ask", "choose"}:
            status = terminal.answer(connection, message)
            if status is not None:
                return status
    return None


def _hang_up_at_signals(connection: Connection) -> list[int]:
    """Hang up at C-c and SIGTERM; the server then says where the command keeps running.

    The same signal again ends this process at once. Return the signals received.
    """
    received: list[int] = []

    def hang_up(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        received.append(number)
        connection.hang_up()

    for number in _SIGNALS:
        signal.signal(number, hang_up)
    return received


def _show_help(words: list[str]) -> int:
    """Print the requested help; return the exit status, that of an error without words."""
    if not words:
        write(2, overview())
        return _REFUSED
    verbs = [word for word in words if word not in _HELP]
    write(1, parser_of(verb_of(verbs)).format_help() if verbs else overview())
    return 0


def _reach(wanted: str, words: list[str]) -> Connection:
    """Return a connection to the server that a verb reaches; some start one if there is none."""
    environ = {**os.environ, "TMUX_DEBUG_SERVER": wanted}
    try:
        server = server_for(environ, VERBS[words[0]].need, lambda: _panes_named(words))
        return Connection(server.socket)
    except NoServerError:
        if not _makes_pane(words):
            raise
    return connect_here(os.environ)


def _panes_named(words: list[str]) -> list[str]:
    """Return the panes that a command line names, to choose the server by; none if it is wrong."""
    from tmux_debug_mcp.verbs.requests import parse  # noqa: PLC0415  only if there are several

    try:
        given = parse(words, {}).arguments.get("pane_id") or []
    except (HelpWanted, UsageError):
        return []
    return [given] if isinstance(given, str) else list(given)


def _makes_pane(words: list[str]) -> bool:
    """Tell whether a command line makes a pane, for which a server is started.

    Raises:
        VerbError: Its words are wrong.
    """
    from tmux_debug_mcp.verbs.requests import check, parse  # noqa: PLC0415  there is no server

    try:
        if VERBS[words[0]].need != MAKES:
            parse(words, {})
            return False
        return "pane_id" not in check(words, directory()).arguments
    except HelpWanted as wanted:  # as in `-qh`
        write(1, wanted)
        os._exit(0)


def _server_option(words: list[str]) -> tuple[str, list[str]]:
    """Return the server that `--server` or the environment names, and the words after it."""
    if words == ["--server"]:
        raise VerbError("--server needs a server's process id. tmux-debug ps lists them.")
    if words[:1] == ["--server"]:
        return words[1], words[2:]
    if words and words[0].startswith("--server="):
        return words[0].removeprefix("--server="), words[1:]
    return os.environ.get("TMUX_DEBUG_SERVER", ""), words
