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
from tmux_debug_mcp.vt.printable import visible

from .caller import flags, write

_REDRAW_S = 1.0
_HOME = "\x1b[H"
_LINE = "\x1b[K{}\r\n"  # over what was there
_ERASE_BELOW = "\x1b[J"
_NO_WRAP = "\x1b[?7l{}\x1b[?7h"
_BRIGHT = "\x1b[7m{}\x1b[m"
_BELL = "\a"


def ps(words: list[str], environ: Mapping[str, str]) -> int:
    """List the servers with their panes, or the names of one server's panes."""
    given = flags("ps", words, {"--all", "--follow", "--names"})
    if "--names" in given:
        for pane in _listed(server_for(environ, LOOKS)):
            write(1, f"{pane['name']}\n")
        return 0
    here, runtime = surroundings(environ), environ.get("XDG_RUNTIME_DIR", "")
    is_all = "--all" in given
    if "--follow" not in given:
        write(1, "".join(f"{line}\n" for line, _ in _lines(here, runtime, is_all=is_all)))
        return 0
    _follow(here, runtime, is_all=is_all)
    return 0


def in_a_line(pane: Mapping[str, object]) -> str:
    """Return a pane as people see it in a list, from its row."""
    # A server of an earlier version says less.
    shown = pane.get("shown", f"{pane['id']} {pane['name']} {pane['status']}")
    return visible(f"{shown}: {pane['command']}")


def terminal_size(fd: int) -> tuple[int, int]:
    """Return the columns and rows of a terminal, 80 and 24 if it does not know them."""
    columns, rows = os.get_terminal_size(fd)
    return columns or 80, rows or 24


def cut_off(line: str, columns: int) -> str:
    """Return a line that a terminal of so many columns does not wrap."""
    shown = line if len(line) <= columns else f"{line[: columns - 1]}…"
    return _NO_WRAP.format(shown)  # some characters take two columns


def _follow(here: Surroundings, runtime: str, *, is_all: bool) -> None:
    """List them again and again, until C-c. A terminal's bell rings when a secret is asked for.

    A terminal shows as much as it has room for.
    """
    is_terminal = os.isatty(1)
    asking: set[str] = set()
    while True:
        lines = list(_lines(here, runtime, is_all=is_all))
        asked = {line for line, asks in lines if asks}
        if is_terminal:
            write(1, _board(lines) + (_BELL if asked - asking else ""))
        else:
            write(1, "".join(f"{line}\n" for line, _ in lines) + "\n")
        asking = asked
        time.sleep(_REDRAW_S)


def _board(lines: list[tuple[str, bool]]) -> str:
    columns, rows = terminal_size(1)
    room = max(2, rows - 1)  # the cursor is below them
    if len(lines) > room:
        # What asks comes first, with its pane.
        first = sorted(lines, key=lambda one: not one[1])[: room - 1]
        lines = [*first, (f"… and {len(lines) - len(first)} more lines", False)]
    shown = []
    for line, asks in lines:
        cut = cut_off(line, columns)
        shown.append(_BRIGHT.format(cut) if asks else cut)
    return _HOME + "".join(map(_LINE.format, shown)) + _ERASE_BELOW


def _lines(here: Surroundings, runtime: str, *, is_all: bool) -> Iterator[tuple[str, bool]]:
    """Yield the servers with their panes, a line each, and whether a secret is wanted there.

    The server that verbs reach from here comes first, and its line says why; then come the others
    of this directory. Running panes come first. Unless all are wanted, those that have ended, and
    those of other directories' servers, are only counted, but for those that ask for a secret.
    """
    servers = running(runtime)
    if not servers:
        yield "No server is running.", False
        return
    taken, is_complete = None, True
    try:
        taken, reason = meant(servers, here, LOOKS, lambda _server: 0)
    except (NoServerError, WhichServerError) as error:
        reason = error.sentence
    for server in sorted(servers, key=lambda one: (one is not taken, here.distance(one))):
        title = visible(f"{server}" + (f"  used here: {reason}" if server is taken else ""))
        try:
            panes = sorted(_listed(server), key=_has_ended)
        except ServerGoneError:
            yield title, False
            yield "    does not answer", False
            continue
        is_here = server is taken or server.inode in here.inodes
        shown: list[dict[str, object]] = []
        others: list[dict[str, object]] = []
        for pane in panes:
            is_shown = is_all or _asks(pane) or (is_here and not _has_ended(pane))
            (shown if is_shown else others).append(pane)
        counts = _counted(others)
        is_complete = is_complete and not counts
        yield (title if is_here or not counts else f"{title}  {counts}"), False
        for pane in shown:
            yield from _pane(pane, "" if server is taken else f"--server {server.pid} ")
        if is_here and counts:
            yield f"    {counts}", False
    if taken is None:
        yield reason, False
    if not is_complete:
        yield f"{own_command(is_for_here=True)} ps --all lists these panes, too.", False


def _listed(server: Server) -> list[dict[str, object]]:
    """Return the rows of a server's panes without those that lists don't show.

    Raises:
        ServerGoneError: As for `panes_of`.
    """
    # A server of an earlier version lists all.
    return [pane for pane in panes_of(server.socket) if pane.get("is_listed", True)]


def _has_ended(pane: Mapping[str, object]) -> bool:
    return pane["status"] != "running" and "still_running" not in pane


def _asks(pane: Mapping[str, object]) -> bool:
    return pane.get("awaits") == HIDDEN_INPUT


def _counted(panes: Sequence[Mapping[str, object]]) -> str:
    """Return how many panes run and how many have ended, in words; "" for no panes."""
    ended = sum(map(_has_ended, panes))
    counts = {"running": len(panes) - ended, "ended": ended}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _pane(pane: Mapping[str, object], named: str) -> Iterator[tuple[str, bool]]:
    yield f"    {in_a_line(pane)}", _asks(pane)
    if _asks(pane):
        command = own_command(is_for_here=True)
        yield f"    type it: {command} {named}secret {pane['id']}", True
