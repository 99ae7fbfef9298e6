"""The toolset `tmux`: spec 004, sessions, windows and panes by tmux's targets.

On our own tmux server, or with a socket on the user's. Results are the spec's texts, lists a line for each, separated
by tabs.
"""

import re
from collections.abc import Sequence

from tmux_debug_mcp.creation import NewPane, check
from tmux_debug_mcp.display import MAX_COLUMNS, MAX_ROWS
from tmux_debug_mcp.errors import (
    AmbiguousNameError,
    ArgumentError,
    CommandError,
    MixedKeysError,
    PaneExitedError,
    PaneLimitError,
    PaneLostError,
    PaneNotFoundError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.keys import parse
from tmux_debug_mcp.reading import end_of
from tmux_debug_mcp.servers import Made, OwnServer, TmuxServer, UsersServer, escaped
from tmux_debug_mcp.session import Session
from tmux_debug_mcp.targets import PaneRow, find_pane, find_panes, find_session, names_less_than_session

from . import Answer, Arguments, Tool, Toolset
from .arguments import NAME

INSTRUCTIONS = (
    "tmux sessions, windows and panes. Targets are tmux's: 'work', 'work:0', 'work:logs.1', or ids such as $0, @1, %3, "
    "which are safest; tools that create something return its ids. Type with tmux_send_keys, see what came of it with "
    "tmux_read_pane."
)

MAX_LINES = 1000
MAX_CHARACTERS = 40_000
_SIZE = re.compile(r"[1-9]\d{0,4}%?")
_ANY_ID = re.compile(r"[$@%]\d+")
_DIRECTIONS = {"up": "-U", "down": "-D", "left": "-L", "right": "-R"}
_NO_SUCH = "Use tmux_list_panes to see what is there."

_SENTENCES: dict[type[ToolError], str] = {
    PaneNotFoundError: "Target '{target}' is gone. " + _NO_SUCH,
    AmbiguousNameError: "Target '{target}' means {count} panes. Give an id.",
    PaneExitedError: "Pane '{target}' has ended ({ending}): nothing there reads keys. "
    "Use tmux_read_pane to read its last output or tmux_create_window to start anew.",
    PaneLostError: "Pane '{target}' was lost: its window or the tmux server ended from outside. " + _NO_SUCH,
    MixedKeysError: "'{key}' is a key's name, and keys do not mix with text. Send these one after the other: {steps}; "
    "or set literal to type all of it as text.",
    PaneLimitError: "There are {most} panes and all are running. Use tmux_kill to end those that are no longer needed.",
    CommandError: "tmux {tmux_command} failed: {reason}. " + _NO_SUCH,
    TmuxGoneError: "The tmux server has ended and its panes with it. The next tmux_create_session starts a new one.",
}


def _server(session: Session) -> TmuxServer:
    settings = session.settings
    return UsersServer(settings, session.typing) if settings.socket else OwnServer(session)


async def list_sessions(session: Session, _arguments: Arguments) -> Answer:
    """Return the sessions."""
    found: dict[str, list[PaneRow]] = {}
    for row in await _server(session).rows():
        found.setdefault(row.session_id, []).append(row)
    lines = [
        f"{rows[0].session_name}\t{rows[0].session_id}\t{len({row.window_index for row in rows})} windows"
        f"\t{rows[0].session_attached} attached"
        for rows in found.values()
    ]
    return _list(lines, "No sessions found.")


async def create_session(session: Session, arguments: Arguments) -> Answer:
    """Make a session with a window."""
    name = arguments["name"]
    _check_names(name, arguments.get("window_name"))
    _check_command(arguments)
    made = await _server(session).create_session(name, arguments.get("window_name"), arguments.get("command"))
    ids = f"session_id={made.session_id} window_id={made.window_id} pane_id={made.pane_id}"
    return _created(f"Session '{made.session_name}' created. {ids}", made)


async def rename_session(session: Session, arguments: Arguments) -> Answer:
    """Give a session another name."""
    server, new = _server(session), arguments["new_name"]
    _check_names(new)
    row = find_session(await server.rows(), arguments["old_name"])
    await server.run("rename-session", "-t", row.tmux_session, "--", escaped(new))
    name = find_session(await server.rows(), row.session_id).session_name
    return Answer([f"Session '{row.session_name}' renamed to '{name}'."])


async def kill(session: Session, arguments: Arguments) -> Answer:
    """End a session, a window or a pane."""
    server, target, kind = _server(session), arguments["target"], arguments.get("type", "pane")
    rows = await server.rows()
    if kind == "session" and names_less_than_session(rows, target):
        session_name = find_session(rows, target).session_name
        raise ArgumentError(f"Target '{target}' is no session but a part of session '{session_name}'. Give that.")
    row = {"session": find_session, "window": find_pane, "pane": find_pane}[kind](rows, target)
    await server.kill(kind, row)
    return Answer([f"Killed {kind} '{target}'."], pane_id=row.pane_id if kind == "pane" else None)


async def list_windows(session: Session, arguments: Arguments) -> Answer:
    """Return the windows of a session or of all."""
    rows = await _server(session).rows()
    if "session" in arguments:
        session_id = find_session(rows, arguments["session"]).session_id
        rows = [row for row in rows if row.session_id == session_id]
    windows: dict[tuple[str, str], list[PaneRow]] = {}
    for row in rows:
        windows.setdefault((row.session_id, row.window_index), []).append(row)
    lines = []
    for panes in windows.values():
        active = next((row for row in panes if row.pane_active == "1"), panes[0])
        words = [active.session_name, active.window_index, active.window_id, active.window_name, active.window_active]
        lines.append("\t".join([*words, f"{len(panes)} panes", active.pane_id]))
    return _list(lines, "No windows found.")


async def create_window(session: Session, arguments: Arguments) -> Answer:
    """Make a window in a session."""
    server, target = _server(session), arguments["session"]
    _check_names(arguments.get("name"))
    _check_command(arguments)
    row = find_session(await server.rows(), target)
    made = await server.create_window(row, arguments.get("name"), arguments.get("command"))
    ids = f"window_id={made.window_id} window_index={made.window_index} pane_id={made.pane_id}"
    return _created(f"Window created in session '{target}'. {ids}", made)


async def select_window(session: Session, arguments: Arguments) -> Answer:
    """Make a window the one that is shown."""
    server, target = _server(session), arguments["target"]
    rows = await server.rows()
    row = find_pane(rows, target)
    indexes = {other.window_index for other in rows if _is_same(other, row, "session_id", "window_id")}
    window = row.tmux_window if len(indexes) == 1 else row.window_index
    await server.run("select-window", "-t", f"{row.tmux_session}:{window}")
    return Answer([f"Selected window '{target}'."])


async def rename_window(session: Session, arguments: Arguments) -> Answer:
    """Give a window another name."""
    server, target, new = _server(session), arguments["target"], arguments["new_name"]
    _check_names(new)
    row = find_pane(await server.rows(), target)
    await server.run("rename-window", "-t", row.tmux_window, "--", escaped(new))
    name = find_pane(await server.rows(), row.window_id).window_name
    return Answer([f"Window '{target}' renamed to '{name}'."])


async def list_panes(session: Session, arguments: Arguments) -> Answer:
    """Return the panes of a window, of a session or of all."""
    server = _server(session)
    rows = await server.rows()
    if "target" in arguments:
        rows = find_panes(rows, arguments["target"])
    lines = []
    for row in rows:
        size = f"{row.pane_width}x{row.pane_height}"
        words = [row.session_name, row.window_index, row.pane_id, row.pane_index, size, row.pane_active]
        lines.append("\t".join([*words, await server.command_of(row)]))
    return _list(lines, "No panes found.")


async def split_window(session: Session, arguments: Arguments) -> Answer:
    """Split a pane in two."""
    server, size = _server(session), arguments.get("size")
    if size is not None and not _SIZE.fullmatch(size):
        raise ArgumentError(f"Parameter 'size' is '{size[:40]}'. Give cells, such as '20', or a share, such as '50%'.")
    _check_command(arguments)
    row = find_pane(await server.rows(), arguments["target"])
    flags = ["-v" if arguments.get("horizontal") else "-h", *(["-l", size] if size else [])]
    made = await server.split(row, flags, arguments.get("command"))
    return _created(f"Pane created. pane_id={made.pane_id}", made)


async def select_pane(session: Session, arguments: Arguments) -> Answer:
    """Make a pane the active one of its window."""
    server, target = _server(session), arguments["target"]
    row = find_pane(await server.rows(), target)
    await server.run("select-pane", "-t", row.tmux_pane)
    return Answer([f"Selected pane '{target}'."], pane_id=row.pane_id)


async def resize_pane(session: Session, arguments: Arguments) -> Answer:
    """Resize a pane, by a direction or to a size."""
    server, target = _server(session), arguments["target"]
    width, height, direction = (arguments.get(name) for name in ("width", "height", "direction"))
    if width is None and height is None and direction is None:
        raise ArgumentError("Give 'direction', or 'width' or 'height'.")
    row = find_pane(await server.rows(), target)
    flags: list[str] = [*(["-x", str(int(width))] if width else []), *(["-y", str(int(height))] if height else [])]
    if direction is not None and not flags:
        flags = [_DIRECTIONS[direction], str(int(arguments.get("amount", 5)))]
    await server.resize(row, flags)
    after = find_pane(await server.rows(), row.pane_id)
    size = int(after.pane_width), int(after.pane_height)
    is_wanted = size == (width or size[0], height or size[1])
    is_to_size = width is not None or height is not None
    if size == (int(row.pane_width), int(row.pane_height)) and not (is_to_size and is_wanted):
        raise ArgumentError(
            f"Pane '{target}' stays {size[0]}x{size[1]}: its window has no room for that, or no other pane to take it "
            "from."
        )
    text = f"Pane '{target}' resized. It is {size[0]}x{size[1]} now"
    text += "." if is_wanted else ", which is what its window has room for."
    return Answer([text], pane_id=row.pane_id)


async def send_keys(session: Session, arguments: Arguments) -> Answer:
    """Type and press what `keys` says."""
    server, target = _server(session), arguments["target"]
    keystrokes = parse(arguments["keys"], literal=arguments.get("literal", False))
    row = find_pane(await server.rows(), target)
    await server.send(row, keystrokes)
    return Answer([f"Sent keys to pane '{target}' ({keystrokes.done})"], pane_id=row.pane_id)


async def read_pane(session: Session, arguments: Arguments) -> Answer:
    """Return what a pane shows."""
    server = _server(session)
    row = find_pane(await server.rows(), arguments["target"])
    if "start_line" in arguments:
        return await _read_rows(server, row, arguments)
    asked = int(arguments.get("line_count", 0))
    text = await (server.read_lines(row, min(asked, MAX_LINES)) if asked else server.read_screen(row))
    shown = end_of(text, MAX_CHARACTERS)
    is_cut = len(shown) < len(text) or (asked > MAX_LINES and text.count("\n") + 1 == MAX_LINES)
    notes = ["[what came before is left out]"] if is_cut else []
    return Answer([shown, *notes], pane_id=row.pane_id, output=shown)


async def _read_rows(server: TmuxServer, row: PaneRow, arguments: Arguments) -> Answer:
    start = max(int(arguments["start_line"]), -int(row.history_size))
    last = int(row.pane_height) - 1
    wanted = min(start + int(arguments["line_count"]) - 1, last) if "line_count" in arguments else last
    end = min(start + MAX_LINES - 1, wanted)
    text = await server.read_rows(row, start, end) if start <= end else ""
    shown, after = text, end + 1
    if len(text) > MAX_CHARACTERS:
        head = text[:MAX_CHARACTERS]
        shown = head.rpartition("\n")[0] or head
        after = start + shown.count("\n") + 1
    is_cut = len(shown) < len(text) or end < wanted
    notes = [f"[go on with start_line {after}]"] if is_cut else []
    return Answer([shown, *notes], pane_id=row.pane_id, output=shown)


def _created(text: str, made: Made) -> Answer:
    return Answer([f"{text}; its command has ended already" if made.is_gone else text], pane_id=made.pane_id)


def _check_command(arguments: Arguments) -> None:
    """See that there is a command where one is given: nothing is made for one that can't be run."""
    if "command" in arguments:
        check(NewPane(arguments["command"]))


def _is_same(row: PaneRow, other: PaneRow, *fields: str) -> bool:
    return all(getattr(row, field) == getattr(other, field) for field in fields)


def _check_names(*names: str | None) -> None:
    for name in names:
        if name is not None and not (name.isprintable() and name.strip()):
            raise ArgumentError(f"The name {name!a} can't be one. It must be printable and not blank.")
        if name is not None and _ANY_ID.fullmatch(name):
            raise ArgumentError(f"The name '{name}' looks like an id. Give another one.")


def _list(lines: Sequence[str], nothing: str) -> Answer:
    return Answer(["\n".join(lines) or nothing])


_TARGET = {"type": "string", "minLength": 1}
_PANE = {**_TARGET, "description": "Pane: %3 or session:window.pane"}
_WINDOW = {**_TARGET, "description": "Window: @1 or session:window"}
_SESSION = {**_TARGET, "description": "Session: name or $0"}
_NEW_NAME = {**NAME, "description": "New name"}
_COMMAND = {"type": "string", "minLength": 1, "description": "Command to run instead of a shell"}
_COLUMNS = {"type": "integer", "minimum": 1, "maximum": MAX_COLUMNS}
_ROWS = {"type": "integer", "minimum": 1, "maximum": MAX_ROWS}
_CREATES = {"destructive_hint": False}
_READS = {"read_only_hint": True}

TOOLS = (
    Tool(
        "tmux_list_sessions",
        "List all sessions: name, id, number of windows, clients attached.",
        list_sessions,
        hints=_READS,
    ),
    Tool(
        "tmux_create_session",
        "Create a session with a window. Returns the ids of session, window and pane.",
        create_session,
        {
            "name": {**NAME, "description": "Name for the session"},
            "command": _COMMAND,
            "window_name": {**NAME, "description": "Name for its window"},
        },
        required=("name",),
        hints=_CREATES,
    ),
    Tool(
        "tmux_rename_session",
        "Rename a session.",
        rename_session,
        {"old_name": _SESSION, "new_name": _NEW_NAME},
        required=("old_name", "new_name"),
        hints=_CREATES,
    ),
    Tool(
        "tmux_kill",
        "End a session, window or pane with all that runs in it.",
        kill,
        {
            "target": {**_TARGET, "description": "Target of that type"},
            "type": {
                "type": "string",
                "enum": ["session", "window", "pane"],
                "description": "What to end (default pane)",
            },
        },
        required=("target",),
        hints={"destructive_hint": True},
    ),
    Tool(
        "tmux_list_windows",
        "List windows: session name, index, id, name, active (1 or 0), number of panes, active pane.",
        list_windows,
        {"session": {**_SESSION, "description": "Only those of this session"}},
        hints=_READS,
    ),
    Tool(
        "tmux_create_window",
        "Create a window in a session. Returns the ids of window and pane.",
        create_window,
        {"session": _SESSION, "name": {**NAME, "description": "Name for the window"}, "command": _COMMAND},
        required=("session",),
        hints=_CREATES,
    ),
    Tool(
        "tmux_select_window",
        "Switch to a window.",
        select_window,
        {"target": _WINDOW},
        required=("target",),
        hints=_CREATES,
    ),
    Tool(
        "tmux_rename_window",
        "Rename a window.",
        rename_window,
        {"target": _WINDOW, "new_name": _NEW_NAME},
        required=("target", "new_name"),
        hints=_CREATES,
    ),
    Tool(
        "tmux_list_panes",
        "List panes: session name, window index, id, index, size, active (1 or 0), command or how it ended.",
        list_panes,
        {"target": {**_TARGET, "description": "Only those of this session or window"}},
        hints=_READS,
    ),
    Tool(
        "tmux_split_window",
        "Split a pane in two. Returns the new pane's id.",
        split_window,
        {
            "target": {**_PANE, "description": "Pane or window to split"},
            "horizontal": {
                "type": "boolean",
                "description": "Divide by a horizontal line, top and bottom (default false: left and right)",
            },
            "size": {"type": "string", "description": "Size of the new pane: '50%', or lines or columns '20'"},
            "command": _COMMAND,
        },
        required=("target",),
        hints=_CREATES,
    ),
    Tool(
        "tmux_select_pane",
        "Focus a pane.",
        select_pane,
        {"target": _PANE},
        required=("target",),
        hints=_CREATES,
    ),
    Tool(
        "tmux_resize_pane",
        "Resize a pane: by direction and amount, or to a width or height.",
        resize_pane,
        {
            "target": _PANE,
            "direction": {"type": "string", "enum": list(_DIRECTIONS), "description": "Direction to grow"},
            "amount": {**_COLUMNS, "description": "Cells to grow by (default 5)"},
            "width": {**_COLUMNS, "description": "Columns to have, instead"},
            "height": {**_ROWS, "description": "Rows to have, instead"},
        },
        required=("target",),
        hints=_CREATES,
    ),
    Tool(
        "tmux_send_keys",
        "Type into a pane. Key names alone are pressed: 'C-c', 'Up Enter'. Anything else is typed exactly; end it with "
        "' Enter' to press Enter after it: 'ls -la Enter'.",
        send_keys,
        {
            "target": _PANE,
            "keys": {"type": "string", "description": "Text to type, or keys to press"},
            "literal": {"type": "boolean", "description": "Type exactly this, key names too; a line feed is Enter"},
        },
        required=("target", "keys"),
        hints={"destructive_hint": True},
    ),
    Tool(
        "tmux_read_pane",
        "Read a pane's screen, or its last lines, or lines from one on.",
        read_pane,
        {
            "target": _PANE,
            "line_count": {"type": "integer", "minimum": 1, "description": "How many (max 1000)"},
            "start_line": {
                "type": "integer",
                "description": "First line: 0 is the top of the screen, -1 the last of the history",
            },
        },
        required=("target",),
        hints=_READS,
    ),
)

TOOLSET = Toolset("tmux", TOOLS, INSTRUCTIONS, _SENTENCES, {"target": "it"}, uses_socket=True)
