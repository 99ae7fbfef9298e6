"""The toolset `tmux`: spec 004, sessions, windows and panes by tmux's targets.

It works on our own tmux server, or with a socket on the user's. Results are the spec's texts; lists
have a line for each thing, its fields separated by tabs.
"""

import re
from collections.abc import Sequence

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.logs.excerpts import end_of
from tmux_debug_mcp.panes.creation import NewPane, check, check_name
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.tmux.targets import (
    PaneRow,
    find_pane,
    find_panes,
    find_session,
    names_less_than_session,
)
from tmux_debug_mcp.tmux.users_server import Made, escaped
from tmux_debug_mcp.vt.steps import steps

from . import sentences
from .limits import MAX_TEXT_CHARACTERS, MAX_TEXT_LINES
from .servers import OwnServer, TmuxServer
from .tmux_arguments import (
    CreateSession,
    CreateWindow,
    Kill,
    ListPanes,
    ListWindows,
    ReadPane,
    RenameSession,
    RenameWindow,
    ResizePane,
    SelectPane,
    SelectWindow,
    SendKeys,
    SplitWindow,
)
from .toolset import (
    CREATES,
    DESTROYS,
    READS,
    Answer,
    NoArguments,
    Tool,
    Toolset,
    came_out,
    may_kill,
)

INSTRUCTIONS = (
    "tmux sessions, windows and panes. Targets are tmux's: 'work', 'work:0', 'work:logs.1', or "
    "ids such as $0, @1, %3, which are safest; tools that create something return its ids. Type "
    "with tmux_send_keys, see what came of it with tmux_read_pane."
)

_SIZE = re.compile(r"[1-9]\d{0,4}|(?:[1-9]\d?|100)%")
_ANY_ID = re.compile(r"[$@%]\d+")
_FLAGS = {"up": "-U", "down": "-D", "left": "-L", "right": "-R"}


class TmuxTools:
    """The handlers of `tmux`.

    Those that take a target may raise TargetNotFoundError and AmbiguousTargetError. All may raise
    what `TmuxServer` does.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._server: TmuxServer = engine.users_server or OwnServer(engine)

    async def list_sessions(self, _arguments: NoArguments) -> Answer:
        """Return the sessions."""
        sessions: dict[str, list[PaneRow]] = {}
        for row in await self._server.rows():
            sessions.setdefault(row.session_id, []).append(row)
        lines = []
        for rows in sessions.values():
            first = rows[0]
            windows = len({row.window_index for row in rows})
            words = [first.session_name, first.session_id, f"{windows} windows"]
            lines.append("\t".join([*words, f"{first.session_attached} attached"]))
        return _list(lines, "No sessions found.")

    async def create_session(self, arguments: CreateSession) -> Answer:
        """Make a session with a window.

        Raises:
            ArgumentError: A name or the command can't be used.
        """
        check_name(arguments.name, ids=_ANY_ID)
        if arguments.window_name is not None:
            check_name(arguments.window_name, "window_name", _ANY_ID)
        _check_command(arguments.command)
        made = await self._server.create_session(
            arguments.name, arguments.window_name, arguments.command
        )
        ids = f"session_id={made.session_id} window_id={made.window_id} pane_id={made.pane_id}"
        return _created(f"Session '{made.session_name}' created. {ids}", made)

    async def rename_session(self, arguments: RenameSession) -> Answer:
        """Give a session another name.

        Raises:
            ArgumentError: The name can't be used.
        """
        server, new = self._server, arguments.new_name
        check_name(new, "new_name", _ANY_ID)
        row = find_session(await server.rows(), arguments.old_name)
        await server.run("rename-session", "-t", row.tmux_session, "--", escaped(new))
        name = find_session(await server.rows(), row.session_id).session_name
        return Answer([f"Session '{row.session_name}' renamed to '{name}'."])

    async def kill(self, arguments: Kill) -> Answer:
        """End a session, a window or a pane.

        Raises:
            ArgumentError: The target of a session is a part of one.
        """
        target, kind = arguments.target, arguments.kind
        rows = await self._server.rows()
        if kind == "session":
            if names_less_than_session(rows, target):
                session_name = find_session(rows, target).session_name
                raise ArgumentError(
                    f"Target '{target}' is no session but a part of session '{session_name}'. "
                    "Give that."
                )
            row = find_session(rows, target)
        else:
            row = find_pane(rows, target)
        state = await self._server.kill(kind, row)
        pane_id = row.pane_id if kind == "pane" else None
        outcome = came_out("killed", state) if state else {"reason": "killed"}
        return Answer([f"Killed {kind} '{target}'."], pane_id=pane_id, outcome=outcome)

    async def list_windows(self, arguments: ListWindows) -> Answer:
        """Return the windows of a session or of all."""
        rows = await self._server.rows()
        if arguments.session is not None:
            session_id = find_session(rows, arguments.session).session_id
            rows = [row for row in rows if row.session_id == session_id]
        windows: dict[tuple[str, str], list[PaneRow]] = {}
        for row in rows:
            windows.setdefault((row.session_id, row.window_index), []).append(row)
        return _list([_window_line(panes) for panes in windows.values()], "No windows found.")

    async def create_window(self, arguments: CreateWindow) -> Answer:
        """Make a window in a session."""
        if arguments.name is not None:
            check_name(arguments.name, ids=_ANY_ID)
        _check_command(arguments.command)
        row = find_session(await self._server.rows(), arguments.session)
        made = await self._server.create_window(row, arguments.name, arguments.command)
        ids = f"window_id={made.window_id} window_index={made.window_index} pane_id={made.pane_id}"
        return _created(f"Window created in session '{arguments.session}'. {ids}", made)

    async def select_window(self, arguments: SelectWindow) -> Answer:
        """Make a window the one that is shown."""
        rows = await self._server.rows()
        row = find_pane(rows, arguments.target)
        indexes = {
            other.window_index
            for other in rows
            if other.session_id == row.session_id and other.window_id == row.window_id
        }
        # A window may be linked into a session twice; then only its index tells which is meant.
        window = row.tmux_window if len(indexes) == 1 else row.window_index
        await self._server.run("select-window", "-t", f"{row.tmux_session}:{window}")
        return Answer([f"Selected window '{arguments.target}'."])

    async def rename_window(self, arguments: RenameWindow) -> Answer:
        """Give a window another name."""
        server, target, new = self._server, arguments.target, arguments.new_name
        check_name(new, "new_name", _ANY_ID)
        row = find_pane(await server.rows(), target)
        await server.run("rename-window", "-t", row.tmux_window, "--", escaped(new))
        name = find_pane(await server.rows(), row.window_id).window_name
        return Answer([f"Window '{target}' renamed to '{name}'."])

    async def list_panes(self, arguments: ListPanes) -> Answer:
        """Return the panes of a window, of a session or of all."""
        rows = await self._server.rows()
        if arguments.target is not None:
            rows = find_panes(rows, arguments.target)
        lines = []
        for row in rows:
            size = f"{row.pane_width}x{row.pane_height}"
            words = [row.session_name, row.window_index, row.pane_id, row.pane_index, size]
            lines.append("\t".join([*words, row.pane_active, await self._server.command_of(row)]))
        return _list(lines, "No panes found.")

    async def split_window(self, arguments: SplitWindow) -> Answer:
        """Split a pane in two.

        Raises:
            ArgumentError: The size or the command can't be used.
        """
        size = arguments.size
        if size is not None and not _SIZE.fullmatch(size):
            raise ArgumentError(
                f"Parameter 'size' is '{size[:40]}'. Give cells, such as '20', or a share, such "
                "as '50%'."
            )
        _check_command(arguments.command)
        row = find_pane(await self._server.rows(), arguments.target)
        flags = ["-v" if arguments.horizontal else "-h"]
        if size:
            flags += ["-l", size]
        made = await self._server.split(row, flags, arguments.command)
        return _created(f"Pane created. pane_id={made.pane_id}", made)

    async def select_pane(self, arguments: SelectPane) -> Answer:
        """Make a pane the active one of its window."""
        row = find_pane(await self._server.rows(), arguments.target)
        await self._server.select_pane(row)
        return Answer([f"Selected pane '{arguments.target}'."], pane_id=row.pane_id)

    async def resize_pane(self, arguments: ResizePane) -> Answer:
        """Resize a pane, by a direction or to a size.

        Raises:
            ArgumentError: Neither is given, or there is no room for that.
        """
        flags = _resize_flags(arguments)
        row = find_pane(await self._server.rows(), arguments.target)
        await self._server.resize(row, flags)
        after = find_pane(await self._server.rows(), row.pane_id)
        before, size = _size_of(row), _size_of(after)
        wanted = arguments.width or size[0], arguments.height or size[1]
        names_size = arguments.width is not None or arguments.height is not None
        has_wanted = names_size and size == wanted
        if size == before and not has_wanted:
            raise ArgumentError(
                f"Pane '{arguments.target}' stays {size[0]}x{size[1]}: its window has no room for "
                "that, or no other pane to take it from."
            )
        text = f"Pane '{arguments.target}' resized. It is {size[0]}x{size[1]} now"
        text += "." if size == wanted else ", which is what its window has room for."
        return Answer([text], pane_id=row.pane_id)

    async def send_keys(self, arguments: SendKeys) -> Answer:
        """Type and press what `keys` says.

        Raises:
            KeysError: The keys can't be typed.
        """
        parts = steps(arguments.keys, literal=arguments.literal)
        row = find_pane(await self._server.rows(), arguments.target)
        text = await self._server.send(row, arguments.target, parts)
        return Answer([text], pane_id=row.pane_id)

    async def read_pane(self, arguments: ReadPane) -> Answer:
        """Return what a pane shows."""
        row = find_pane(await self._server.rows(), arguments.target)
        if arguments.start_line is not None:
            return await self._read_rows(row, arguments.start_line, arguments.line_count)
        asked = arguments.line_count
        if asked is None:
            text = await self._server.capture_screen(row)
        else:
            text = await self._server.capture_lines(row, min(asked, MAX_TEXT_LINES))
        shown = end_of(text, MAX_TEXT_CHARACTERS)
        has_all_lines = (asked or 0) <= MAX_TEXT_LINES or text.count("\n") + 1 < MAX_TEXT_LINES
        blocks = [shown]
        if len(shown) < len(text) or not has_all_lines:
            blocks.append("[what came before is left out]")
        return Answer(blocks, pane_id=row.pane_id, output=shown)

    async def _read_rows(self, row: PaneRow, first: int, count: int | None) -> Answer:
        """Return rows of the screen and its history from one on."""
        start = max(first, -int(row.history_size))
        last = int(row.pane_height) - 1
        if count is not None:
            last = min(start + count - 1, last)
        end = min(start + MAX_TEXT_LINES - 1, last)
        text = await self._server.capture_rows(row, start, end) if start <= end else ""
        shown, after = text, end + 1
        if len(text) > MAX_TEXT_CHARACTERS:
            head = text[:MAX_TEXT_CHARACTERS]
            shown = head.rpartition("\n")[0] or head
            after = start + shown.count("\n") + 1
        blocks = [shown]
        if len(shown) < len(text) or end < last:
            blocks.append(f"[go on with start_line {after}]")
        return Answer(blocks, pane_id=row.pane_id, output=shown)


def _window_line(panes: Sequence[PaneRow]) -> str:
    """Return the line of a list for the window of these panes."""
    active = next((row for row in panes if row.pane_active == "1"), panes[0])
    words = [active.session_name, active.window_index, active.window_id, active.window_name]
    return "\t".join([*words, active.window_active, f"{len(panes)} panes", active.pane_id])


def _resize_flags(arguments: ResizePane) -> Sequence[str]:
    """Return the flags of resize-pane. A size comes before a direction.

    Raises:
        ArgumentError: Neither is given.
    """
    flags = []
    if arguments.width is not None:
        flags += ["-x", str(arguments.width)]
    if arguments.height is not None:
        flags += ["-y", str(arguments.height)]
    if flags:
        return flags
    if arguments.direction is None:
        raise ArgumentError("Give 'direction', or 'width' or 'height'.")
    return [_FLAGS[arguments.direction], str(arguments.amount)]


def _size_of(row: PaneRow) -> tuple[int, int]:
    return int(row.pane_width), int(row.pane_height)


def _created(text: str, made: Made) -> Answer:
    if made.is_gone:
        text += "; its command has ended already"
    has_ended = made.is_gone or made.exit_code is not None or made.signal is not None
    outcome = {
        "reason": "exited" if has_ended else "started",
        "exit_code": made.exit_code,
        "signal": made.signal,
    }
    return Answer([text], pane_id=made.pane_id, outcome=outcome)


def _check_command(command: str | None) -> None:
    """See that a command can be run, before anything is made for it.

    Raises:
        ArgumentError: It can't.
    """
    if command is not None:
        check(NewPane(command))


def _list(lines: Sequence[str], nothing: str) -> Answer:
    return Answer(["\n".join(lines) or nothing])


TOOLS = (
    Tool(
        "tmux_list_sessions",
        "List all sessions: name, id, number of windows, clients attached.",
        TmuxTools.list_sessions,
        NoArguments,
        hints=READS,
    ),
    Tool(
        "tmux_create_session",
        "Create a session with a window. Returns the ids of session, window and pane.",
        TmuxTools.create_session,
        CreateSession,
        hints=CREATES,
    ),
    Tool(
        "tmux_rename_session",
        "Rename a session.",
        TmuxTools.rename_session,
        RenameSession,
        hints=CREATES,
    ),
    Tool(
        "tmux_kill",
        "End a session, window or pane with all that runs in it.",
        TmuxTools.kill,
        Kill,
        hints=DESTROYS,
        is_offered=may_kill,
    ),
    Tool(
        "tmux_list_windows",
        "List windows: session name, index, id, name, active (1 or 0), number of panes, active "
        "pane.",
        TmuxTools.list_windows,
        ListWindows,
        hints=READS,
    ),
    Tool(
        "tmux_create_window",
        "Create a window in a session. Returns the ids of window and pane.",
        TmuxTools.create_window,
        CreateWindow,
        hints=CREATES,
    ),
    Tool(
        "tmux_select_window",
        "Switch to a window.",
        TmuxTools.select_window,
        SelectWindow,
        hints=CREATES,
    ),
    Tool(
        "tmux_rename_window",
        "Rename a window.",
        TmuxTools.rename_window,
        RenameWindow,
        hints=CREATES,
    ),
    Tool(
        "tmux_list_panes",
        "List panes: session name, window index, id, index, size, active (1 or 0), command or "
        "how it ended.",
        TmuxTools.list_panes,
        ListPanes,
        hints=READS,
    ),
    Tool(
        "tmux_split_window",
        "Split a pane in two. Returns the new pane's id.",
        TmuxTools.split_window,
        SplitWindow,
        hints=CREATES,
    ),
    Tool("tmux_select_pane", "Focus a pane.", TmuxTools.select_pane, SelectPane, hints=CREATES),
    Tool(
        "tmux_resize_pane",
        "Resize a pane: by direction and amount, or to a width or height.",
        TmuxTools.resize_pane,
        ResizePane,
        hints=CREATES,
    ),
    Tool(
        "tmux_send_keys",
        "Type into a pane. Key names alone are pressed: 'C-c', 'Up Enter'. Anything else is typed "
        "exactly; end it with ' Enter' to press Enter after it: 'ls -la Enter'.",
        TmuxTools.send_keys,
        SendKeys,
        hints=DESTROYS,
    ),
    Tool(
        "tmux_read_pane",
        "Read a pane's screen, or its last lines, or lines from one on.",
        TmuxTools.read_pane,
        ReadPane,
        hints=READS,
    ),
)

TOOLSET = Toolset(
    "tmux",
    TmuxTools,
    TOOLS,
    INSTRUCTIONS,
    sentences.TMUX,
    placeholders={"target": "it"},
    uses_socket=True,
)
