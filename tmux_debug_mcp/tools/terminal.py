"""The toolset `terminal`: spec 003's terminal emulator, with the features it plans."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread

from tmux_debug_mcp import errors
from tmux_debug_mcp.logs.archive import IndexEntry, names_run
from tmux_debug_mcp.logs.excerpts import end_of
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import last_lines, shown_screen
from tmux_debug_mcp.panes.sending import clear, send
from tmux_debug_mcp.panes.sizing import resize
from tmux_debug_mcp.panes.watching import rest
from tmux_debug_mcp.pictures.pillow import how_to_add_pillow
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.keys import key_name
from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS, MIN_SIZE, SESSION_COLUMNS, SESSION_ROWS
from tmux_debug_mcp.vt.steps import MAX_KEYS_BYTES, pressed, typed_at_once

from .arguments import (
    MAX_TEXT_CHARACTERS,
    MAX_TEXT_LINES,
    Directory,
    Variables,
    argument,
    short_name,
    string,
)
from .sessions import DEFAULT, Sessions, wait_for_first_look
from .toolset import (
    CREATES,
    DESTROYS,
    READS,
    Answer,
    Toolset,
    came_out,
    compact,
    started,
    state_facts,
)

INSTRUCTIONS = (
    "A terminal emulator. type types text, sendKey presses a key such as Enter; getContent and "
    "takeScreenshot show what came of it. A session that is not named is the default one, a "
    "shell that is started when it is first used."
)

WORDS = errors.Words(
    pane="session",
    argument="session",
    default=DEFAULT,
    list="listSessions",
    create="createSession",
    read="getContent",
    send="type",
    kill="closeSession",
    interrupt="sendKey with Ctrl+C",
    if_busy="Wait, or work in another session.",
    if_running="Work in another session.",
    own={
        errors.NameTakenError: "Session '{name}' already exists. Use it, or closeSession first.",
    },
)

_MAX_EARLIER_SESSIONS = 20

_KEYS = (
    "Enter, Tab, Escape, Backspace, Delete, Insert, Home, End, PageUp, PageDown, ArrowUp, "
    "ArrowDown, ArrowLeft, ArrowRight, F1 to F12, Ctrl+A to Ctrl+Z, Ctrl+[, Ctrl+\\, Ctrl+Space"
)


def _resources(sessions: Sessions) -> Mapping[str, Any]:
    from .resources import Screens  # noqa: PLC0415  it imports the SDK's server

    return Screens(sessions, WORDS).handlers()


_Session = Annotated[str, string("Session name (default: default)")]

TOOLSET = Toolset(
    "terminal",
    Sessions,
    INSTRUCTIONS,
    words=WORDS,
    resources=_resources,
    keeps_logs=True,
    uses_size=True,
)


@TOOLSET.tool(
    "type",
    "Type text into the terminal, exactly; a line feed is Enter. Use sendKey for other keys.",
    DESTROYS,
)
async def type_text(
    sessions: Sessions,
    text: Annotated[str, string("Text to type")],
    session: _Session = DEFAULT,
) -> Answer:
    size = len(text.encode())
    if size > MAX_KEYS_BYTES:
        raise errors.ArgumentError(
            f"Parameter 'text' has {size} bytes; one call takes at most {MAX_KEYS_BYTES}. Send "
            "it in parts."
        )
    pane = await sessions.find(session, to_write=True)
    sent = await send(pane, [typed_at_once(text)])
    if sent.why_not:
        raise errors.ToolError(f"{sent.why_not[0].upper()}{sent.why_not[1:]}.")
    return Answer([f"Typed {len(text)} character(s) to terminal"], pane_id=pane.name)


@TOOLSET.tool("sendKey", f"Press a key: {_KEYS}.", DESTROYS)
async def send_key(
    sessions: Sessions,
    key: Annotated[str, string("Key name, e.g. Ctrl+C")],
    session: _Session = DEFAULT,
) -> Answer:
    name = key_name(key)
    if name is None:
        raise errors.ArgumentError(
            f"Parameter 'key' is '{key[:40]}', which is not a key. Keys are {_KEYS}. Use "
            "type for text."
        )
    pane = await sessions.find(session, to_write=True)
    await send(pane, [pressed((name,))])
    return Answer([f"Sent key: {key}"], pane_id=pane.name)


@TOOLSET.tool(
    "getContent",
    f"Return the terminal's text, the last {MAX_TEXT_LINES} lines with its scrollback, or only "
    "the visible screen. Also of a session of an earlier run, RUN/NAME.",
    READS,
)
async def get_content(
    sessions: Sessions,
    *,
    visible_only: Annotated[
        bool, argument("Only the visible screen (default false)", called="visibleOnly")
    ] = False,
    session: _Session = DEFAULT,
) -> Answer:
    target = session
    if not names_run(target):
        pane = await sessions.find(target)
        await _rest_after_keys(pane)
        target = pane.id
    async with sessions.engine.open_readable(target) as readable:
        name = readable.name
        if visible_only:
            text = await shown_screen(readable)
        else:
            text = await last_lines(readable, MAX_TEXT_LINES + 1, 2 * MAX_TEXT_CHARACTERS + 2)
    shown = end_of(text, MAX_TEXT_CHARACTERS, MAX_TEXT_LINES)
    blocks = [shown or "(empty terminal)"]
    if len(shown) < len(text):
        lines = shown.count("\n") + 1
        blocks.append(f"[the last {lines} lines; earlier ones are left out]")
    return Answer(blocks, pane_id=name, output=shown)


async def _rest_after_keys(pane: Pane) -> None:
    """Wait until a pane is at rest, if keys have just been sent to it."""
    sent, rest_s = pane.keyboard.last_sent, pane.clock.times.rest_s
    if sent and pane.clock.now() < sent.at + rest_s:
        await rest(pane, rest_s)


@TOOLSET.tool(
    "takeScreenshot",
    "Return the visible screen with cursor position and dimensions, as text or also as a "
    "picture with its colours.",
    READS,
)
async def take_screenshot(
    sessions: Sessions,
    kind: Annotated[
        Literal["text", "png"],
        argument("png adds a picture (default text)", called="format"),
    ] = "text",
    session: _Session = DEFAULT,
) -> Answer:
    pane = await sessions.find(session)
    await _rest_after_keys(pane)
    screen = await capture_screen(pane)
    (x, y), text = screen.cursor, screen.text()
    result = {
        "content": text,
        "cursor": {"x": x, "y": y},
        "dimensions": {"cols": screen.columns, "rows": screen.height},
    }
    image = None
    if kind == "png":
        try:
            from tmux_debug_mcp.pictures.png import draw  # noqa: PLC0415  it imports Pillow
        except ImportError:
            raise errors.ToolError(
                "A PNG needs Pillow, which the server's Python does not have. Ask the user to "
                f"install it: {how_to_add_pillow()}. Use format 'text'."
            ) from None
        image = await anyio.to_thread.run_sync(draw, screen, limiter=sessions.drawing)
    return Answer([compact(result)], pane_id=pane.name, output=text, image=image)


@TOOLSET.tool("clear", "Clear the terminal's screen and scrollback.", DESTROYS)
async def clear_session(sessions: Sessions, session: _Session = DEFAULT) -> Answer:
    pane = await sessions.find(session, to_write=True)
    await clear(pane)
    return Answer(["Terminal cleared"], pane_id=pane.name)


@TOOLSET.tool("resize", "Change the terminal's size.", CREATES)
async def resize_session(
    sessions: Sessions,
    cols: Annotated[int, argument(minimum=MIN_SIZE, maximum=MAX_COLUMNS)],
    rows: Annotated[int, argument(minimum=MIN_SIZE, maximum=MAX_ROWS)],
    session: _Session = DEFAULT,
) -> Answer:
    pane = await sessions.find(session)
    await resize(sessions.engine, pane, cols, rows)
    return Answer([f"Terminal resized to {cols}x{rows}"], pane_id=pane.name)


@TOOLSET.tool(
    "createSession", "Start another terminal session, with a shell or a command.", CREATES
)
async def create_session(
    sessions: Sessions,
    name: Annotated[str, short_name()],
    cols: Annotated[
        int | None,
        argument(
            f"Width (default {SESSION_COLUMNS}, or as configured)",
            minimum=MIN_SIZE,
            maximum=MAX_COLUMNS,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        argument(
            f"Height (default {SESSION_ROWS}, or as configured)", minimum=MIN_SIZE, maximum=MAX_ROWS
        ),
    ] = None,
    cwd: Directory = None,
    env: Variables = None,
    command: Annotated[str | None, string("Command to run instead of a shell")] = None,
) -> Answer:
    pane = await sessions.create(
        name, command, cwd=cwd, env=env, columns=cols, rows=rows, is_only=True
    )
    await wait_for_first_look(pane, command)
    state = await pane.state()
    text = f"Created session '{name}' ({pane.log.columns}x{pane.log.rows})"
    if not state.is_running:
        text += f"; it has ended: {state}"
    return Answer([text], pane_id=name, outcome=started(state))


@TOOLSET.tool("listSessions", "List the sessions as JSON, with size and what runs there.", READS)
async def list_sessions(sessions: Sessions) -> Answer:
    states = await sessions.engine.states()
    running = {pane.name for pane, state in states if state.is_running}
    newest = {pane.name: pane for pane, _ in states}
    rows = []
    for pane, state in states:
        # Of ended ones, only the newest of each name that no running one has.
        if not state.is_running and (pane.name in running or newest[pane.name] is not pane):
            continue
        row = {
            "session": pane.name,
            "status": "running" if state.is_running else "exited",
            "cols": pane.log.columns,
            "rows": pane.log.rows,
            **state_facts(state),
        }
        recording = sessions.recordings.of(pane)
        if recording:
            row["recording"] = str(recording.path)
        rows.append(row)
    blocks = []
    archive = sessions.engine.archive
    if archive:
        latest, others = archive.latest(_MAX_EARLIER_SESSIONS)
        rows += _earlier_rows(latest)
        if others:
            blocks = [f"[sessions of earlier runs that are not listed: {others}]"]
    return Answer([compact(rows), *blocks])


def _earlier_rows(kept: Sequence[tuple[str, IndexEntry]]) -> list[dict[str, Any]]:
    """Return the sessions of earlier runs: by name, or by window if a newer one has the name."""
    newest = {(run, entry.name): entry.window for run, entry in kept}
    rows = []
    for run, entry in kept:
        row = {"session": f"{run}/{entry.name}", "status": "exited"}
        if newest[run, entry.name] != entry.window:
            row = {"session": f"{run}/{entry.window}", "name": entry.name, "status": "exited"}
        rows.append(row)
    return rows


@TOOLSET.tool("closeSession", "End a session and all that runs in it.", DESTROYS)
async def close_session(sessions: Sessions, session: _Session = DEFAULT) -> Answer:
    engine = sessions.engine
    pane = await engine.find(session)
    state = await engine.kill(pane)
    older = [other for other in engine.panes if other.name == pane.name]
    await engine.kill_all([other for other in older if await other.ending()])
    text = f"Closed session '{pane.name}' ({state})"
    return Answer([text], pane_id=pane.name, outcome=came_out("killed", state))


@TOOLSET.tool(
    "startRecording",
    "Record what a session prints to an asciicast file, which asciinema plays.",
    CREATES,
)
async def start_recording(
    sessions: Sessions,
    path: Annotated[str | None, string("New file (default: a name of its own)")] = None,
    session: _Session = DEFAULT,
) -> Answer:
    pane = await sessions.find(session, to_write=True)
    file = _recording_path(sessions.engine.settings, pane, path)
    await sessions.recordings.start(pane, file)
    return Answer([f"Recording session '{pane.name}' to {file}"], pane_id=pane.name)


def _recording_path(settings: Settings, pane: Pane, given: str | None) -> Path:
    """Return the file for a recording, `~` expanded."""
    if given is not None:
        return settings.cwd / os.path.expanduser(given)
    moment = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 1000:03d}"
    return settings.state_dir / "recordings" / f"{pane.id}-{moment}.cast"


@TOOLSET.tool("stopRecording", "End a recording; returns its file.", CREATES)
async def stop_recording(sessions: Sessions, session: _Session = DEFAULT) -> Answer:
    recording = sessions.recordings.stop(session)
    if recording is None:
        await sessions.engine.find(session)
        raise errors.ToolError(
            f"Session '{session}' is not being recorded. Use startRecording first."
        )
    if not recording.path.exists():
        raise errors.ToolError(
            f"The recording is lost: its file {recording.path} has been removed."
        )
    cut = f" until {recording.reason}" if recording.reason else ""
    text = f"Recorded {recording.duration_s:.1f} s{cut}, {recording.events} events: "
    return Answer([text + str(recording.path)], pane_id=session)
