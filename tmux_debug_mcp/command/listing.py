"""`ps`: the servers of this user and their panes, once or as a live board."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.sockets.choosing import (
    HIDDEN_INPUT,
    LOOKS,
    NoServerError,
    Surroundings,
    WhichServerError,
    meant,
    server_for,
    surroundings,
)
from tmux_debug_mcp.sockets.connection import ServerGoneError, panes_of
from tmux_debug_mcp.sockets.servers import Server, running
from tmux_debug_mcp.verbs.parsing import VerbParser, parser_of
from tmux_debug_mcp.verbs.registry import VERBS
from tmux_debug_mcp.vt.printable import visible

from .caller import write

_REDRAW_S = 1.0
_HOME = "\x1b[H"
_LINE = "\x1b[K{}\r\n"  # over what was there
_ERASE_BELOW = "\x1b[J"
_NO_WRAP = "\x1b[?7l{}\x1b[?7h"
# How a terminal shows lines, and those of panes by their marks.
_PLAIN = "{}"
_BRIGHT = "\x1b[7m{}\x1b[m"
_LOOKS = {"!": _BRIGHT, "-": "\x1b[2m{}\x1b[m"}
_TYPE_IT = "    type it: "
_MAX_COMMAND = 32  # characters
_BELL = "\a"


def add_arguments(parser: VerbParser) -> None:
    """Add the arguments of `ps`."""
    parser.description = (
        "List the servers, with the running panes of this directory's. Panes that have ended and "
        "those of other directories are only counted, unless they ask for a secret."
    )
    parser.add_argument("--all", action="store_true", help="list all panes, running ones first")
    follows = "live view; rings the bell when a program asks for a secret"
    parser.add_argument("--follow", action="store_true", help=follows)
    parser.add_argument("--names", action="store_true", help="list only pane names")


def ps(words: list[str], environ: Mapping[str, str]) -> int:
    """List the servers with their panes, or the names of one server's panes."""
    given = parser_of(VERBS["ps"]).parse_args(words)
    if given.names:
        for pane in _listed(server_for(environ, LOOKS)):
            write(1, f"{pane['name']}\n")
        return 0
    here, runtime = surroundings(environ), environ.get("XDG_RUNTIME_DIR", "")
    if not given.follow:
        is_terminal = os.isatty(1)
        for line, look in _lines(here, runtime, is_all=given.all):
            write(1, f"{look.format(line) if is_terminal else line}\n")
        return 0
    _follow(here, runtime, is_all=given.all)
    return 0


def in_lines(panes: Sequence[Mapping[str, object]]) -> list[str]:
    """Return panes as people see them in a list, from their rows: the commands first, in a column.

    A mark at the beginning tells what each does: `!` asks for a secret, `?` awaits input or keys,
    `+` runs otherwise, `-` has ended.
    """
    commands = [_shortened(visible(str(pane["command"])), _MAX_COMMAND) for pane in panes]
    width = max(map(len, commands), default=0)
    return [
        f"{_mark(pane)} {command:{width}}  {visible(str(pane['shown']))}"
        for pane, command in zip(panes, commands, strict=True)
    ]


def _mark(pane: Mapping[str, object]) -> str:
    if _asks(pane):
        return "!"
    if _has_ended(pane):
        return "-"
    return "?" if "awaits" in pane else "+"


def terminal_size(fd: int) -> tuple[int, int]:
    """Return the columns and rows of a terminal, 80 and 24 if it does not know them."""
    columns, rows = os.get_terminal_size(fd)
    return columns or 80, rows or 24


def cut_off(line: str, columns: int) -> str:
    """Return a line that a terminal of so many columns does not wrap."""
    return _NO_WRAP.format(_shortened(line, columns))  # some characters take two columns


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _follow(here: Surroundings, runtime: str, *, is_all: bool) -> None:
    """List them again and again, until C-c. A terminal's bell rings when a secret is asked for.

    A terminal shows as much as it has room for.
    """
    is_terminal = os.isatty(1)
    asking: set[str] = set()
    while True:
        lines = list(_lines(here, runtime, is_all=is_all))
        asked = _asked(lines)
        if is_terminal:
            write(1, _board(lines) + (_BELL if asked - asking else ""))
        else:
            write(1, "".join(f"{line}\n" for line, _ in lines) + "\n")
        asking = asked
        time.sleep(_REDRAW_S)


def _asked(lines: Sequence[tuple[str, str]]) -> set[str]:
    """Return the lines that say how to type a secret, which stay the same while it is asked for."""
    return {line for line, _ in lines if line.startswith(_TYPE_IT)}


def _board(lines: list[tuple[str, str]]) -> str:
    columns, rows = terminal_size(1)
    room = max(2, rows - 1)  # the cursor is below them
    if len(lines) > room:
        # What asks comes first, with its pane.
        first = sorted(lines, key=lambda line: line[1] is not _BRIGHT)[: room - 1]
        lines = [*first, (f"… and {len(lines) - len(first)} more lines", _PLAIN)]
    shown = [look.format(cut_off(line, columns)) for line, look in lines]
    return _HOME + "".join(map(_LINE.format, shown)) + _ERASE_BELOW


def _lines(here: Surroundings, runtime: str, *, is_all: bool) -> Iterator[tuple[str, str]]:
    """Yield the servers with their panes, a line each, and how a terminal shows it.

    The server that verbs reach from here comes first, and its line says why; then come the others
    of this directory. Panes that ask for a secret come first, then running ones. Unless all are
    wanted, those that have ended, and those of other directories' servers, are only counted, but
    for those that ask.
    """
    servers = running(runtime)
    if not servers:
        yield "No server is running.", _PLAIN
        return
    taken, is_complete = None, True
    try:
        taken, reason = meant(servers, here, LOOKS, lambda _server: 0)
    except (NoServerError, WhichServerError) as error:
        reason = error.sentence
    for server in sorted(servers, key=lambda server: (server is not taken, here.distance(server))):
        title = visible(f"{server}" + (f"  used here: {reason}" if server is taken else ""))
        try:
            panes = sorted(_listed(server), key=lambda pane: (not _asks(pane), _has_ended(pane)))
        except ServerGoneError:
            yield title, _PLAIN
            yield "    does not answer", _PLAIN
            continue
        is_here = server is taken or server.inode in here.inodes
        shown: list[dict[str, object]] = []
        others: list[dict[str, object]] = []
        for pane in panes:
            is_shown = is_all or _asks(pane) or (is_here and not _has_ended(pane))
            (shown if is_shown else others).append(pane)
        counts = _counted(others)
        is_complete = is_complete and not counts
        yield (title if is_here or not counts else f"{title}  {counts}"), _PLAIN
        command, named = own_command(is_for_here=True), f"--server {server.pid} "
        for pane, line in zip(shown, in_lines(shown), strict=True):
            yield f"  {line}", _LOOKS.get(_mark(pane), _PLAIN)
            if _asks(pane):
                reached = "" if server is taken else named
                yield f"{_TYPE_IT}{command} {reached}secret {pane['id']}", _BRIGHT
        if is_here and counts:
            yield f"    {counts}", _PLAIN
    if taken is None:
        yield reason, _PLAIN
    if not is_complete:
        yield f"{own_command(is_for_here=True)} ps --all lists these panes, too.", _PLAIN


def _listed(server: Server) -> list[dict[str, object]]:
    """Return the rows of a server's panes without those that lists don't show.

    Raises:
        ServerGoneError: As for `panes_of`.
    """
    return [pane for pane in panes_of(server.socket) if pane["is_listed"]]


def _has_ended(pane: Mapping[str, object]) -> bool:
    return pane["status"] != "running" and "still_running" not in pane


def _asks(pane: Mapping[str, object]) -> bool:
    return pane.get("awaits") == HIDDEN_INPUT


def _counted(panes: Sequence[Mapping[str, object]]) -> str:
    """Return how many panes run and how many have ended, in words; "" for no panes."""
    ended = sum(map(_has_ended, panes))
    counts = {"running": len(panes) - ended, "ended": ended}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
