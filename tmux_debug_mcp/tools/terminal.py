"""The toolset `terminal`: spec 003, a terminal emulator with its true state, and its planned features.

A session is a pane by its name. The one called `default` is made when it is first used, and again when it was closed.
"""

import contextlib
import os
import sys
import time
from typing import Any

import anyio.to_thread
import orjson

from tmux_debug_mcp.archive import PastPane, names_run
from tmux_debug_mcp.capturing import capture, capture_screen
from tmux_debug_mcp.creation import NewPane, check, interactive_shell
from tmux_debug_mcp.display import MAX_COLUMNS, MAX_ROWS, clear, resize
from tmux_debug_mcp.errors import (
    AmbiguousNameError,
    ArgumentError,
    CommandError,
    LimitReachedError,
    PaneExitedError,
    PaneLimitError,
    PaneLostError,
    PaneNotFoundError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.keys import MAX_KEYS_BYTES, key_name, parse, pressed
from tmux_debug_mcp.panes import Pane, State
from tmux_debug_mcp.reading import end_of, read_last_lines, read_screen
from tmux_debug_mcp.sending import send_one
from tmux_debug_mcp.session import Session
from tmux_debug_mcp.waiting import EARLY_DEATH_S, rest

from . import Answer, Arguments, Tool, Toolset
from .arguments import CWD, ENV, NAME

INSTRUCTIONS = (
    "A terminal emulator. type types text, sendKey presses a key such as Enter; getContent and takeScreenshot show "
    "what came of it. A session that is not named is the default one, a shell that is started when it is first used."
)

DEFAULT = "default"
MAX_CONTENT_CHARACTERS = 40_000
_MAX_LINES = 1000
_EARLIER_SESSIONS = 20
_PROMPT_S = 0.05
# What comes of keys is waited for so long.
_REST_S = 1.0

_KEYS = (
    "Enter, Tab, Escape, Backspace, Delete, Insert, Home, End, PageUp, PageDown, ArrowUp, ArrowDown, ArrowLeft, "
    "ArrowRight, F1 to F12, Ctrl+A to Ctrl+Z, Ctrl+[, Ctrl+\\, Ctrl+Space"
)

_SENTENCES: dict[type[ToolError], str] = {
    PaneNotFoundError: "Session '{session}' not found. Use listSessions to see the sessions, or createSession.",
    AmbiguousNameError: "Name '{name}' is that of {count} sessions: {ids}. Give one of these instead.",
    PaneExitedError: "Session '{session}' has ended ({ending}). Use getContent to read its last output, or "
    "createSession to start anew.",
    PaneLostError: "Session '{session}' was lost: its tmux window or server ended from outside. Use createSession to "
    "make another.",
    PaneLimitError: "There are {most} sessions and all are running. Use closeSession to close those that are no "
    "longer needed.",
    CommandError: "tmux {tmux_command} failed: {reason}. Use listSessions to see what is there.",
    TmuxGoneError: "The tmux server has ended and its sessions with it. The next call starts a new one.",
}


async def find(session: Session, arguments: Arguments, *, to_write: bool = False) -> Pane:
    """Return the session that is named; the default one is made when it is not there.

    Args:
        session: All panes.
        arguments: Those of the call.
        to_write: A default session that has ended is no good.

    Raises:
        PaneNotFoundError: There is none of this name.
        AmbiguousNameError: There are several.
    """
    name = arguments.get("session", DEFAULT)
    if name != DEFAULT:
        try:
            return await session.find(name)
        except PaneNotFoundError:
            if not names_run(name):
                raise
            raise ArgumentError(
                f"Session '{name[:80]}' has ended, and at best its log is left. Use getContent, or createSession to "
                "make another."
            ) from None
    async with session.naming:
        try:
            pane = await session.find(name)
            state = await pane.state()
        except PaneNotFoundError:
            return await _create(session, name, {})
        is_good = state.is_running or not (to_write or state.is_lost)
        return pane if is_good else await _create(session, name, {})


async def _create(session: Session, name: str, arguments: Arguments) -> Pane:
    shell = interactive_shell(session.settings)
    columns, rows = session.settings.size
    command = arguments.get("command")
    new = NewPane(
        command or shell,
        name,
        arguments.get("cwd"),
        arguments.get("env", {}),
        () if command else (shell,),
        int(arguments.get("cols", columns)),
        int(arguments.get("rows", rows)),
        is_shown=True,
    )
    check(new)
    pane = await session.create(new)
    if command:
        await rest(pane, EARLY_DEATH_S)
    else:
        await pane.terminal.prompt(_PROMPT_S)  # so that whoever looks sees its prompt
    return pane


async def type_text(session: Session, arguments: Arguments) -> Answer:
    """Type text as it is."""
    text = arguments["text"]
    if (size := len(text.encode())) > MAX_KEYS_BYTES:
        raise ArgumentError(
            f"Parameter 'text' has {size} bytes; at most {MAX_KEYS_BYTES} go at once. Send it in parts."
        )
    pane = await find(session, arguments, to_write=True)
    await send_one(pane, parse(text, literal=True))
    return Answer([f"Typed {len(text)} character(s) to terminal"], pane_id=pane.name)


async def send_key(session: Session, arguments: Arguments) -> Answer:
    """Press a key."""
    key = arguments["key"]
    name = key_name(key)
    if name is None:
        raise ArgumentError(f"Parameter 'key' is '{key[:40]}', which is no key. Keys are {_KEYS}. Use type for text.")
    pane = await find(session, arguments, to_write=True)
    await send_one(pane, pressed((name,)))
    return Answer([f"Sent key: {key}"], pane_id=pane.name)


async def get_content(session: Session, arguments: Arguments) -> Answer:
    """Return the text of a terminal, with its history unless told otherwise."""
    pane = await _find_readable(session, arguments)
    if isinstance(pane, PastPane):
        text = await _read_past(pane, visible_only=bool(arguments.get("visibleOnly")))
    elif arguments.get("visibleOnly"):
        await _settle(pane)
        text = (await capture_screen(pane)).text()
    else:
        await _settle(pane)
        text = await capture(pane, _MAX_LINES)
    shown = end_of(text, MAX_CONTENT_CHARACTERS)
    is_cut = len(shown) < len(text) or text.count("\n") + 1 == _MAX_LINES
    notes = [f"[the last {shown.count(chr(10)) + 1} lines; what came before is left out]"] if is_cut else []
    return Answer([shown or "(empty terminal)", *notes], pane_id=pane.name, output=shown)


async def _settle(pane: Pane) -> None:
    """Wait for what comes of keys that have just been sent."""
    sent = pane.keyboard.sent
    if sent and time.time() < sent[-1].at + _REST_S:
        await rest(pane, _REST_S)


async def _read_past(pane: PastPane, *, visible_only: bool) -> str:
    """Return the last lines of a session of an earlier run, or what its screen showed at the end."""
    try:
        end = (await pane.state()).cursor
        if visible_only:
            return await read_screen(pane.log, end)
        lines, _ = await read_last_lines(pane.log, end, _MAX_LINES, MAX_CONTENT_CHARACTERS)
        return "\n".join(lines)
    finally:
        pane.log.close()


async def take_screenshot(session: Session, arguments: Arguments) -> Answer:
    """Return the screen with cursor and size, and a picture of it if that is wanted."""
    pane = await find(session, arguments)
    await _settle(pane)
    screen = await capture_screen(pane)
    (x, y), text = screen.cursor, screen.text()
    result = {
        "content": text,
        "cursor": {"x": x, "y": y},
        "dimensions": {"cols": screen.columns, "rows": screen.height},
    }
    image = None
    if arguments.get("format") == "png":
        try:
            from tmux_debug_mcp.picture import draw  # noqa: PLC0415  which needs what may not be installed
        except ImportError:
            raise ToolError(
                "A PNG needs Pillow, which the server's Python does not have. Ask the user to install it: "
                f"{sys.executable} -m pip install pillow (pipx inject tmux-debug-mcp pillow; uvx --with pillow). Use "
                "format 'text'."
            ) from None
        image = await anyio.to_thread.run_sync(draw, screen, limiter=session.drawing)
    return Answer([orjson.dumps(result).decode()], pane_id=pane.name, output=text, image=image)


async def clear_terminal(session: Session, arguments: Arguments) -> Answer:
    """Clear the screen and its history."""
    pane = await find(session, arguments, to_write=True)
    await clear(pane)
    return Answer(["Terminal cleared"], pane_id=pane.name)


async def resize_terminal(session: Session, arguments: Arguments) -> Answer:
    """Change the size of a terminal."""
    pane = await find(session, arguments)
    columns, rows = int(arguments["cols"]), int(arguments["rows"])
    await resize(pane, columns, rows)
    return Answer([f"Terminal resized to {columns}x{rows}"], pane_id=pane.name)


async def create_session(session: Session, arguments: Arguments) -> Answer:
    """Start a named session."""
    name = arguments["name"]
    async with session.naming:
        for pane in session.panes:
            if pane.name == name and (await pane.state()).is_running:
                raise LimitReachedError(f"Session '{name}' is there already. Use it, or closeSession first.")
        pane = await _create(session, name, arguments)
    state = await pane.state()
    ended = "" if state.is_running else f"; it has ended: {state}"
    return Answer([f"Created session '{name}' ({pane.log.columns}x{pane.log.rows}){ended}"], pane_id=name)


async def list_sessions(session: Session, _arguments: Arguments) -> Answer:
    """Return the sessions, those of earlier runs behind the others, as JSON."""
    rows: list[dict[str, Any]] = []
    for pane, state in await _sessions(session):
        recording = session.recording(pane)
        row: dict[str, Any] = {"session": pane.name, "status": "running" if state.is_running else "exited"}
        row |= {"cols": pane.log.columns, "rows": pane.log.rows}
        facts: dict[str, Any] = {"foreground": state.foreground, "exit_code": state.exit_code, "signal": state.signal}
        facts |= {"awaits": state.awaits and state.awaits.value, "lost": state.is_lost or None}
        facts["recording"] = str(recording.path) if recording and not recording.is_over else None
        rows.append(row | {key: value for key, value in facts.items() if value is not None})
    kept = session.earlier()
    newest = {(run, name): window for run, window, name in kept}
    earlier: list[dict[str, Any]] = []
    for run, window, name in kept:
        if newest[run, name] == window:
            earlier.append({"session": f"{run}/{name}", "status": "exited"})
        else:
            earlier.append({"session": f"{run}/{window}", "name": name, "status": "exited"})
    return Answer([orjson.dumps(rows + earlier[:_EARLIER_SESSIONS]).decode()])


async def _sessions(session: Session) -> list[tuple[Pane, State]]:
    """Return the running sessions, and the newest of each name that none of them has."""
    states = [(pane, await pane.state()) for pane in session.panes]
    running = {pane.name for pane, state in states if state.is_running}
    newest = {pane.name: pane for pane, _ in states}
    return [
        (pane, state)
        for pane, state in states
        if state.is_running or (pane.name not in running and newest[pane.name] is pane)
    ]


async def close_session(session: Session, arguments: Arguments) -> Answer:
    """End a session and all that runs in it."""
    name = arguments.get("session", DEFAULT)
    pane = await session.find(name)
    state = await session.kill(pane)
    for older in session.panes:
        if older.name == pane.name and not (await older.state()).is_running:
            with contextlib.suppress(PaneNotFoundError):  # it was closed meanwhile
                await session.kill(older)
    return Answer([f"Closed session '{pane.name}' ({state})"], pane_id=pane.name)


async def start_recording(session: Session, arguments: Arguments) -> Answer:
    """Begin to record a session."""
    pane = await find(session, arguments, to_write=True)
    settings = session.settings
    if "path" in arguments:
        path = settings.cwd / os.path.expanduser(arguments["path"])  # noqa: ASYNC240  which looks at no file
    else:
        moment = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 1000:03d}"
        path = settings.state / "recordings" / f"{pane.id}-{moment}.cast"
    recording = await session.record(pane, path)
    return Answer([f"Recording session '{pane.name}' to {recording.path}"], pane_id=pane.name)


async def stop_recording(session: Session, arguments: Arguments) -> Answer:
    """End a recording."""
    name = arguments.get("session", DEFAULT)
    recording = session.take_recording(name)
    if recording is None:
        await session.find(name)
        raise ToolError(f"Session '{name}' is not being recorded. Use startRecording first.")
    if not recording.path.exists():
        raise ToolError(f"The recording is lost: its file {recording.path} was removed meanwhile.")
    cut = f" until {recording.reason}" if recording.reason else ""
    text = f"Recorded {recording.duration_s:.1f} s{cut}, {recording.events} events: {recording.path}"
    return Answer([text], pane_id=name)


async def _find_readable(session: Session, arguments: Arguments) -> Pane | PastPane:
    """Return a session, or one of an earlier run."""
    if names_run(arguments.get("session", "")):
        return await session.find_readable(arguments["session"])
    return await find(session, arguments)


_SESSION = {"session": {"type": "string", "minLength": 1, "description": "Session name (default: default)"}}
_COLS = {"type": "integer", "minimum": 2, "maximum": MAX_COLUMNS}
_ROWS = {"type": "integer", "minimum": 2, "maximum": MAX_ROWS}

TOOLS = (
    Tool(
        "type",
        "Type text into the terminal, exactly; a line feed is Enter. Use sendKey for other keys.",
        type_text,
        {"text": {"type": "string", "minLength": 1, "description": "Text to type"}, **_SESSION},
        required=("text",),
        hints={"destructive_hint": True},
    ),
    Tool(
        "sendKey",
        f"Press a key: {_KEYS}.",
        send_key,
        {"key": {"type": "string", "minLength": 1, "description": "Key name, e.g. Ctrl+C"}, **_SESSION},
        required=("key",),
        hints={"destructive_hint": True},
    ),
    Tool(
        "getContent",
        "Return the terminal's text, the last 1000 lines with its scrollback, or only the visible screen. Also of a "
        "session of an earlier run, RUN/NAME.",
        get_content,
        {"visibleOnly": {"type": "boolean", "description": "Only the visible screen (default false)"}, **_SESSION},
        hints={"read_only_hint": True},
    ),
    Tool(
        "takeScreenshot",
        "Return the visible screen with cursor position and dimensions, as text or also as a picture with its colours.",
        take_screenshot,
        {
            "format": {"type": "string", "enum": ["text", "png"], "description": "png adds a picture (default text)"},
            **_SESSION,
        },
        hints={"read_only_hint": True},
    ),
    Tool(
        "clear",
        "Clear the terminal's screen and scrollback.",
        clear_terminal,
        {**_SESSION},
        hints={"destructive_hint": True},
    ),
    Tool(
        "resize",
        "Change the terminal's size.",
        resize_terminal,
        {"cols": _COLS, "rows": _ROWS, **_SESSION},
        required=("cols", "rows"),
        hints={"destructive_hint": False},
    ),
    Tool(
        "createSession",
        "Start another terminal session, with a shell or a command.",
        create_session,
        {
            "name": NAME,
            "cols": {**_COLS, "description": "Width (default 120, or as configured)"},
            "rows": {**_ROWS, "description": "Height (default 40, or as configured)"},
            "cwd": CWD,
            "env": ENV,
            "command": {"type": "string", "minLength": 1, "description": "Command to run instead of a shell"},
        },
        required=("name",),
        hints={"destructive_hint": False},
    ),
    Tool(
        "listSessions",
        "List the sessions as JSON, with size and what runs there.",
        list_sessions,
        hints={"read_only_hint": True},
    ),
    Tool(
        "closeSession",
        "End a session and all that runs in it.",
        close_session,
        {**_SESSION},
        hints={"destructive_hint": True},
    ),
    Tool(
        "startRecording",
        "Record what a session prints to an asciicast file, which asciinema plays.",
        start_recording,
        {
            "path": {"type": "string", "minLength": 1, "description": "New file (default: a name of its own)"},
            **_SESSION,
        },
        hints={"destructive_hint": False},
    ),
    Tool(
        "stopRecording",
        "End a recording; returns its file.",
        stop_recording,
        {**_SESSION},
        hints={"destructive_hint": False},
    ),
)

TOOLSET = Toolset("terminal", TOOLS, INSTRUCTIONS, _SENTENCES, {"session": DEFAULT}, keeps_logs=True, has_screens=True)
