"""The toolset `tmux`: spec 004, sessions, windows and panes by tmux's targets.

It works on our own tmux server or, with a socket, on the user's. Results are the spec's texts; each
item of a list is a line of fields separated by tabs.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Literal

from tmux_debug_mcp import errors
from tmux_debug_mcp.logs.excerpts import end_of
from tmux_debug_mcp.panes.creation import check_command, check_name
from tmux_debug_mcp.tmux.targets import (
    PaneRow,
    find_pane,
    find_panes,
    find_session,
    names_less_than_session,
)
from tmux_debug_mcp.tmux.users_server import CreatedPane, UsersServer, escaped
from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS
from tmux_debug_mcp.vt.steps import steps

from .arguments import MAX_TEXT_CHARACTERS, MAX_TEXT_LINES, argument, short_name, string
from .own_server import OwnServer
from .toolset import CREATES, DESTROYS, READS, Answer, Outcome, Toolset, came_out, may_kill

_TARGETS = (
    "Targets are tmux's: 'work', 'work:0', 'work:logs.1', or ids such as $0, @1, %3, which are "
    "safest; tools that create something return its ids. Type with tmux_send_keys, see what came "
    "of it with tmux_read_pane."
)
INSTRUCTIONS = (
    "tmux sessions, windows and panes on a private tmux server; the user's own sessions are not "
    f"there. {_TARGETS}"
)
USERS_INSTRUCTIONS = (
    "Sessions, windows and panes of the user's own tmux server, where the user may be at work. "
    f"{_TARGETS}"
)
_PRIVATE = (
    "These tools use a private tmux server. To see the user's own sessions, ask the user to start "
    "this MCP server with --socket default."
)

WORDS = replace(
    errors.DEBUG,
    argument="target",
    create="tmux_create_window",
    read="tmux_read_pane",
    kill="tmux_kill",
    if_busy="Wait, or work in another pane.",
    if_running="Work in another pane.",
    own={
        errors.PaneNotFoundError: (
            "Target '{target:head}' is gone. Use tmux_list_panes to see all panes."
        ),
        errors.TmuxGoneError: (
            "The tmux server and its panes have ended. The next tmux_create_session starts a new "
            "one."
        ),
        errors.AmbiguousNameError: "Target '{pane_id}' matches {count} panes. Give an id.",
        errors.MixedKeysError: (
            "'{key:head}' is a key name, which can't be mixed with text. Send these one after the "
            "other: {steps}; or set literal to type all of it as text."
        ),
        errors.KeyboardHeldError: (
            "{person} has the keyboard of a pane in the window of '{pane_id}'. Until they let go, "
            "that pane takes no keys, and that window's panes can't be changed. Wait, or work in "
            "another window."
        ),
    },
)

Server = OwnServer | UsersServer

_SIZE = re.compile(r"[1-9]\d{0,4}|(?:[1-9]\d?|100)%")
_ANY_ID = re.compile(r"[$@%]\d+")
_FLAGS = {"up": "-U", "down": "-D", "left": "-L", "right": "-R"}

_Session = Annotated[str, string("Session: name or $0")]
_Window = Annotated[str, string("Window: @1 or session:window")]
_Pane = Annotated[str, string("Pane: %3 or session:window.pane")]
_NewName = Annotated[str, short_name("New name")]
_Command = Annotated[str | None, string("Command to run instead of a shell")]

TOOLSET = Toolset(
    "tmux",
    lambda engine: engine.users_server or OwnServer(engine),
    INSTRUCTIONS,
    USERS_INSTRUCTIONS,
    WORDS,
    uses_socket=True,
)


@TOOLSET.tool(
    "tmux_list_sessions", "List all sessions: name, id, number of windows, clients attached.", READS
)
async def list_sessions(server: Server) -> Answer:
    lines = []
    for _, group in groupby(await server.rows(), key=lambda row: row.session_id):
        rows = list(group)
        first = rows[0]
        windows = len({row.window_index for row in rows})
        words = [first.session_name, first.session_id, f"{windows} windows"]
        lines.append("\t".join([*words, f"{first.session_attached} attached"]))
    return _list(server, lines, "No sessions found.")


def _list(server: Server, lines: Sequence[str], nothing: str) -> Answer:
    if lines:
        return Answer(["\n".join(lines)])
    return Answer([nothing, _PRIVATE] if isinstance(server, OwnServer) else [nothing])


@TOOLSET.tool(
    "tmux_create_session",
    "Create a session with a window, in the background. Returns the ids of session, window and "
    "pane.",
    CREATES,
)
async def create_session(
    server: Server,
    name: Annotated[str, short_name("Name for the session")],
    command: _Command = None,
    window_name: Annotated[str | None, short_name("Name for its window")] = None,
) -> Answer:
    check_name(name, ids=_ANY_ID)
    if window_name is not None:
        check_name(window_name, "window_name", _ANY_ID)
    _check_command(command)
    made = await server.create_session(name, window_name, command)
    ids = f"session_id={made.session_id} window_id={made.window_id} pane_id={made.pane_id}"
    return _created(f"Session '{made.session_name}' created. {ids}", made)


def _created(text: str, made: CreatedPane) -> Answer:
    if made.is_gone:
        text += "; its command has already ended"
    has_ended = made.is_gone or made.exit_code is not None or made.signal is not None
    outcome = Outcome("exited" if has_ended else "started", made.exit_code, made.signal)
    return Answer([text], pane_id=made.pane_id, outcome=outcome)


def _check_command(command: str | None) -> None:
    if command is not None:
        check_command(command)


@TOOLSET.tool("tmux_rename_session", "Rename a session.", CREATES)
async def rename_session(server: Server, old_name: _Session, new_name: _NewName) -> Answer:
    check_name(new_name, "new_name", _ANY_ID)
    row = find_session(await server.rows(), old_name)
    await server.run("rename-session", "-t", row.tmux_session, "--", escaped(new_name))
    name = find_session(await server.rows(), row.session_id).session_name
    return Answer([f"Session '{row.session_name}' renamed to '{name}'."])


@TOOLSET.tool(
    "tmux_kill",
    "End a session, window or pane with all that runs in it.",
    DESTROYS,
    is_offered=may_kill,
)
async def kill(
    server: Server,
    target: Annotated[str, string("Target of that type")],
    kind: Annotated[
        Literal["session", "window", "pane"], argument("What to end (default pane)", called="type")
    ] = "pane",
) -> Answer:
    rows = await server.rows()
    if kind == "session":
        if names_less_than_session(rows, target):
            session_name = find_session(rows, target).session_name
            raise errors.ArgumentError(
                f"Target '{target}' is not a session but a part of session '{session_name}'. "
                "Give the session."
            )
        row = find_session(rows, target)
    else:
        row = find_pane(rows, target)
    state = await server.kill(kind, row)
    pane_id = row.pane_id if kind == "pane" else None
    outcome = came_out("killed", state) if state else Outcome("killed")
    return Answer([f"Killed {kind} '{target}'."], pane_id=pane_id, outcome=outcome)


@TOOLSET.tool(
    "tmux_list_windows",
    "List windows: session name, index, id, name, active (1 or 0), number of panes, active pane.",
    READS,
)
async def list_windows(
    server: Server, session: Annotated[str | None, string("Only those of this session")] = None
) -> Answer:
    rows = await server.rows()
    if session is not None:
        session_id = find_session(rows, session).session_id
        rows = [row for row in rows if row.session_id == session_id]
    lines = []
    # tmux lists session by session, and the panes of each window together.
    for _, group in groupby(rows, key=lambda row: (row.session_id, row.window_index)):
        panes = list(group)
        active = next((row for row in panes if row.pane_active == "1"), panes[0])
        words = [active.session_name, active.window_index, active.window_id, active.window_name]
        words += [active.window_active, f"{len(panes)} panes", active.pane_id]
        lines.append("\t".join(words))
    return _list(server, lines, "No windows found.")


@TOOLSET.tool(
    "tmux_create_window",
    "Create a window in a session, and switch to it. Returns the ids of window and pane.",
    CREATES,
)
async def create_window(
    server: Server,
    session: _Session,
    name: Annotated[str | None, short_name("Name for the window")] = None,
    command: _Command = None,
) -> Answer:
    if name is not None:
        check_name(name, ids=_ANY_ID)
    _check_command(command)
    row = find_session(await server.rows(), session)
    made = await server.create_window(row, name, command)
    ids = f"window_id={made.window_id} window_index={made.window_index} pane_id={made.pane_id}"
    return _created(f"Window created in session '{session}'. {ids}", made)


@TOOLSET.tool("tmux_select_window", "Switch to a window.", CREATES)
async def select_window(server: Server, target: _Window) -> Answer:
    rows = await server.rows()
    row = find_pane(rows, target)
    indexes = {
        other.window_index
        for other in rows
        if other.session_id == row.session_id and other.window_id == row.window_id
    }
    # A window may be linked into a session twice; then only its index says which is meant.
    window = row.tmux_window if len(indexes) == 1 else row.window_index
    await server.run("select-window", "-t", f"{row.tmux_session}:{window}")
    return Answer([f"Selected window '{target}'."])


@TOOLSET.tool("tmux_rename_window", "Rename a window.", CREATES)
async def rename_window(server: Server, target: _Window, new_name: _NewName) -> Answer:
    check_name(new_name, "new_name", _ANY_ID)
    row = find_pane(await server.rows(), target)
    await server.rename_window(row, new_name)
    name = find_pane(await server.rows(), row.window_id).window_name
    return Answer([f"Window '{target}' renamed to '{name}'."])


@TOOLSET.tool(
    "tmux_list_panes",
    "List panes: session name, window index, id, index, size, active (1 or 0), command or "
    "how it ended.",
    READS,
)
async def list_panes(
    server: Server,
    target: Annotated[str | None, string("Only those of this session or window")] = None,
) -> Answer:
    rows = await server.rows()
    if target is not None:
        rows = find_panes(rows, target)
    lines = []
    for row, command in zip(rows, await server.commands_of(rows), strict=True):
        size = f"{row.pane_width}x{row.pane_height}"
        words = [row.session_name, row.window_index, row.pane_id, row.pane_index, size]
        lines.append("\t".join([*words, row.pane_active, command]))
    return _list(server, lines, "No panes found.")


@TOOLSET.tool(
    "tmux_split_window", "Split a pane in two; the new one is active. Returns its id.", CREATES
)
async def split_window(
    server: Server,
    target: Annotated[str, string("Pane or window to split")],
    *,
    horizontal: Annotated[
        bool,
        argument("Divide by a horizontal line, top and bottom (default false: left and right)"),
    ] = False,
    size: Annotated[
        str | None, argument("Size of the new pane: '50%', or lines or columns '20'")
    ] = None,
    command: _Command = None,
) -> Answer:
    if size is not None and not _SIZE.fullmatch(size):
        raise errors.ArgumentError(
            f"Parameter 'size' is '{size[:40]}'. Give cells, such as '20', or a share, such "
            "as '50%'."
        )
    _check_command(command)
    row = find_pane(await server.rows(), target)
    flags = ["-v" if horizontal else "-h"]
    if size:
        flags += ["-l", size]
    made = await server.split(row, flags, command)
    return _created(f"Pane created. pane_id={made.pane_id}", made)


@TOOLSET.tool("tmux_select_pane", "Focus a pane.", CREATES)
async def select_pane(server: Server, target: _Pane) -> Answer:
    row = find_pane(await server.rows(), target)
    await server.select_pane(row)
    return Answer([f"Selected pane '{target}'."], pane_id=row.pane_id)


@TOOLSET.tool(
    "tmux_resize_pane", "Resize a pane: by direction and amount, or to a width or height.", CREATES
)
async def resize_pane(
    server: Server,
    target: _Pane,
    direction: Annotated[
        Literal["up", "down", "left", "right"] | None, argument("Direction to grow")
    ] = None,
    amount: Annotated[
        int, argument("Cells to grow by (default 5)", minimum=1, maximum=MAX_COLUMNS)
    ] = 5,
    width: Annotated[
        int | None, argument("Columns to have, instead", minimum=1, maximum=MAX_COLUMNS)
    ] = None,
    height: Annotated[
        int | None, argument("Rows to have, instead", minimum=1, maximum=MAX_ROWS)
    ] = None,
) -> Answer:
    flags = []  # a size takes precedence over a direction
    if width is not None:
        flags += ["-x", str(width)]
    if height is not None:
        flags += ["-y", str(height)]
    if not flags:
        if direction is None:
            raise errors.ArgumentError("Give 'direction', or 'width' or 'height'.")
        flags = [_FLAGS[direction], str(amount)]
    row = find_pane(await server.rows(), target)
    await server.resize(row, flags)
    return Answer([f"Pane '{target}' resized."], pane_id=row.pane_id)


@TOOLSET.tool(
    "tmux_send_keys",
    "Type into a pane. Key names alone are pressed: 'C-c', 'Up Enter'. Anything else is typed "
    "exactly; end it with ' Enter' to press Enter after it: 'ls -la Enter'.",
    DESTROYS,
)
async def send_keys(
    server: Server,
    target: _Pane,
    keys: Annotated[str, argument("Text to type, or keys to press")],
    *,
    literal: Annotated[
        bool, argument("Type exactly this, key names too; a line feed is Enter")
    ] = False,
) -> Answer:
    parts = steps(keys, literal=literal)
    row = find_pane(await server.rows(), target)
    text = await server.send(row, target, parts)
    return Answer([text], pane_id=row.pane_id)


@TOOLSET.tool(
    "tmux_read_pane", "Read a pane's screen, or its last lines, or lines from one on.", READS
)
async def read_pane(
    server: Server,
    target: _Pane,
    line_count: Annotated[
        int | None, argument(f"How many (max {MAX_TEXT_LINES})", minimum=1)
    ] = None,
    start_line: Annotated[
        int | None, argument("First line: 0 is the top of the screen, -1 the last of the history")
    ] = None,
) -> Answer:
    row = find_pane(await server.rows(), target)
    if start_line is not None:
        return await _read_rows(server, row, start_line, line_count)
    if line_count is None:
        text = await server.capture_screen(row)
    else:
        text = await server.capture_lines(row, min(line_count, MAX_TEXT_LINES + 1))
    shown = end_of(text, MAX_TEXT_CHARACTERS, MAX_TEXT_LINES)
    blocks = [shown]
    if len(shown) < len(text):
        blocks.append("[earlier lines are left out]")
    return Answer(blocks, pane_id=row.pane_id, output=shown)


async def _read_rows(server: Server, row: PaneRow, first: int, count: int | None) -> Answer:
    """Return rows of the screen and its history, starting at `first`."""
    start = max(first, -int(row.history_size))
    last = int(row.pane_height) - 1
    if count is not None:
        last = min(start + count - 1, last)
    end = min(start + MAX_TEXT_LINES - 1, last)
    text = await server.capture_rows(row, start, end) if start <= end else ""
    shown, after = text, end + 1
    if len(text) > MAX_TEXT_CHARACTERS:
        head = text[:MAX_TEXT_CHARACTERS]
        shown = head.rpartition("\n")[0] or head
        after = start + shown.count("\n") + 1
    blocks = [shown]
    if len(shown) < len(text) or end < last:
        blocks.append(f"[continue with start_line {after}]")
    return Answer(blocks, pane_id=row.pane_id, output=shown)
