"""The toolset `terminal`: spec 003's terminal emulator, with the features it plans.

A session is a pane by its name. The one called `default` is made when it is first used, and again
when it was closed.
"""

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import orjson

from tmux_debug_mcp.errors import (
    ArgumentError,
    LimitReachedError,
    PaneNotFoundError,
    ToolError,
)
from tmux_debug_mcp.logs.archive import names_run
from tmux_debug_mcp.logs.excerpts import end_of
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.creation import NewPane, check, interactive_shell
from tmux_debug_mcp.panes.display import clear, resize
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.sending import send
from tmux_debug_mcp.panes.waiting.wait import rest
from tmux_debug_mcp.vt.key_names import key_name
from tmux_debug_mcp.vt.keys import MAX_KEYS_BYTES, pressed, typed_at_once
from tmux_debug_mcp.vt.screen import Screen

from . import sentences
from .limits import MAX_TEXT_CHARACTERS, MAX_TEXT_LINES
from .recordings import Recordings
from .terminal_arguments import (
    DEFAULT,
    CreateSession,
    GetContent,
    OfSession,
    Resize,
    SendKey,
    StartRecording,
    TakeScreenshot,
    TypeText,
)
from .toolset import CREATES, DESTROYS, READS, Answer, NoArguments, Tool, Toolset, came_out, started

INSTRUCTIONS = (
    "A terminal emulator. type types text, sendKey presses a key such as Enter; getContent and "
    "takeScreenshot show what came of it. A session that is not named is the default one, a "
    "shell that is started when it is first used."
)

_MAX_EARLIER_SESSIONS = 20

_KEYS = (
    "Enter, Tab, Escape, Backspace, Delete, Insert, Home, End, PageUp, PageDown, ArrowUp, "
    "ArrowDown, ArrowLeft, ArrowRight, F1 to F12, Ctrl+A to Ctrl+Z, Ctrl+[, Ctrl+\\, Ctrl+Space"
)


class Terminal:
    """The handlers of `terminal`.

    They raise ArgumentError for an argument that can't be used, LimitReachedError for a session or
    a recording that is there already, and ToolError for a picture or a recording that can't be
    had. What `find` and `panes` raise comes through.

    Args:
        engine: The engine.

    Attributes:
        engine: The engine.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._recordings = Recordings(engine)
        self._drawing = anyio.CapacityLimiter(1)  # a picture takes memory

    async def find(self, name: str, *, to_write: bool = False) -> Pane:
        """Return a session; the default one is made when it is not there.

        Args:
            name: Its name.
            to_write: A default session that has ended is made again.

        Raises:
            ArgumentError: It is one of an earlier run.
            PaneNotFoundError: There is none of this name.
            AmbiguousNameError: There are several.
        """
        if name != DEFAULT:
            return await self._find_named(name)
        arguments = CreateSession(name=name)
        async with self.engine.naming:
            with contextlib.suppress(PaneNotFoundError):
                pane = await self.engine.find(name)
                state = await pane.state()
                if state.is_running or not (to_write or state.is_lost):
                    return pane
            pane = await self._create(arguments)
        await self._wait_for_first_look(pane, arguments)
        return pane

    async def _find_named(self, name: str) -> Pane:
        try:
            return await self.engine.find(name)
        except PaneNotFoundError:
            if not names_run(name):
                raise
            raise ArgumentError(
                f"Session '{name[:80]}' has ended, and at best its log is left. Use getContent, or "
                "createSession to make another."
            ) from None

    async def _create(self, arguments: CreateSession) -> Pane:
        settings = self.engine.settings
        shell = interactive_shell(settings)
        columns, rows = settings.size
        command = arguments.command
        new = NewPane(
            command or shell,
            arguments.name,
            cwd=arguments.cwd,
            env=arguments.env or {},
            program=() if command else (shell,),
            columns=arguments.cols or columns,
            rows=arguments.rows or rows,
            is_shown=True,
        )
        check(new)
        return await self.engine.create(new)

    async def _wait_for_first_look(self, pane: Pane, arguments: CreateSession) -> None:
        """Wait for what a new session is expected to show: a prompt, or the end of its command."""
        if arguments.command:
            await rest(pane, pane.clock.times.early_death_s)
        else:
            await pane.terminal.prompt(pane.clock.times.prompt_soon_s)

    async def type(self, arguments: TypeText) -> Answer:
        """Type text as it is."""
        text = arguments.text
        size = len(text.encode())
        if size > MAX_KEYS_BYTES:
            raise ArgumentError(
                f"Parameter 'text' has {size} bytes; at most {MAX_KEYS_BYTES} go at once. Send "
                "it in parts."
            )
        pane = await self.find(arguments.session, to_write=True)
        await send(pane, [typed_at_once(text)])
        return Answer([f"Typed {len(text)} character(s) to terminal"], pane_id=pane.name)

    async def send_key(self, arguments: SendKey) -> Answer:
        """Press a key."""
        key = arguments.key
        name = key_name(key)
        if name is None:
            raise ArgumentError(
                f"Parameter 'key' is '{key[:40]}', which is no key. Keys are {_KEYS}. Use type "
                "for text."
            )
        pane = await self.find(arguments.session, to_write=True)
        await send(pane, [pressed((name,))])
        return Answer([f"Sent key: {key}"], pane_id=pane.name)

    async def get_content(self, arguments: GetContent) -> Answer:
        """Return the text of a terminal, with its history unless told otherwise."""
        target = arguments.session
        if not names_run(target):
            pane = await self.find(target)
            await _rest_after_keys(pane)
            target = pane.id
        async with self.engine.open_readable(target) as readable:
            name = readable.name
            if arguments.visible_only:
                text = await readable.screen()
            else:
                text = await readable.last_lines(MAX_TEXT_LINES, MAX_TEXT_CHARACTERS)
        shown = end_of(text, MAX_TEXT_CHARACTERS)
        blocks = [shown or "(empty terminal)"]
        if len(shown) < len(text) or text.count("\n") + 1 == MAX_TEXT_LINES:
            lines = shown.count("\n") + 1
            blocks.append(f"[the last {lines} lines; what came before is left out]")
        return Answer(blocks, pane_id=name, output=shown)

    async def take_screenshot(self, arguments: TakeScreenshot) -> Answer:
        """Return the screen with cursor and size, and a picture of it if that is wanted."""
        pane = await self.find(arguments.session)
        await _rest_after_keys(pane)
        screen = await capture_screen(pane)
        (x, y), text = screen.cursor, screen.text()
        result = {
            "content": text,
            "cursor": {"x": x, "y": y},
            "dimensions": {"cols": screen.columns, "rows": screen.height},
        }
        image = await self._picture(screen) if arguments.format == "png" else None
        block = orjson.dumps(result).decode()
        return Answer([block], pane_id=pane.name, output=text, image=image)

    async def _picture(self, screen: Screen) -> bytes:
        """Return a PNG of a screen.

        Raises:
            ToolError: Pillow is not installed.
        """
        try:
            from tmux_debug_mcp.vt.picture import draw  # noqa: PLC0415  it imports Pillow
        except ImportError:
            raise ToolError(
                "A PNG needs Pillow, which the server's Python does not have. Ask the user to "
                f"install it: {sys.executable} -m pip install pillow (pipx inject tmux-debug-mcp "
                "pillow; uvx --with pillow). Use format 'text'."
            ) from None
        return await anyio.to_thread.run_sync(draw, screen, limiter=self._drawing)

    async def clear(self, arguments: OfSession) -> Answer:
        """Clear the screen and its history."""
        pane = await self.find(arguments.session, to_write=True)
        await clear(pane)
        return Answer(["Terminal cleared"], pane_id=pane.name)

    async def resize(self, arguments: Resize) -> Answer:
        """Change the size of a terminal."""
        pane = await self.find(arguments.session)
        await resize(pane, arguments.cols, arguments.rows)
        return Answer([f"Terminal resized to {arguments.cols}x{arguments.rows}"], pane_id=pane.name)

    async def create_session(self, arguments: CreateSession) -> Answer:
        """Start a named session."""
        name = arguments.name
        async with self.engine.naming:
            if await self.engine.running_pane(name):
                raise LimitReachedError(
                    f"Session '{name}' is there already. Use it, or closeSession first."
                )
            pane = await self._create(arguments)
        await self._wait_for_first_look(pane, arguments)
        state = await pane.state()
        text = f"Created session '{name}' ({pane.log.columns}x{pane.log.rows})"
        if not state.is_running:
            text += f"; it has ended: {state}"
        return Answer([text], pane_id=name, outcome=started(state))

    async def list_sessions(self, _arguments: NoArguments) -> Answer:
        """Return the sessions, those of earlier runs behind the others, as JSON."""
        rows = [self._row(pane, state) for pane, state in await self._sessions()]
        rows += self._earlier_rows()[:_MAX_EARLIER_SESSIONS]
        return Answer([orjson.dumps(rows).decode()])

    async def _sessions(self) -> list[tuple[Pane, State]]:
        """Return the running sessions, and the newest of each name that none of them has."""
        states = [(pane, await pane.state()) for pane in self.engine.panes]
        running = {pane.name for pane, state in states if state.is_running}
        newest = {pane.name: pane for pane, _ in states}
        return [
            (pane, state)
            for pane, state in states
            if state.is_running or (pane.name not in running and newest[pane.name] is pane)
        ]

    def _row(self, pane: Pane, state: State) -> dict[str, Any]:
        """Return a session as the list has it."""
        recording = self._recordings.of(pane)
        facts: dict[str, Any] = {
            "session": pane.name,
            "status": "running" if state.is_running else "exited",
            "cols": pane.log.columns,
            "rows": pane.log.rows,
            "foreground": state.foreground,
            "exit_code": state.exit_code,
            "signal": state.signal,
            "awaits": state.awaits and state.awaits.value,
            "lost": state.is_lost or None,
            "recording": str(recording.path) if recording else None,
        }
        return {key: value for key, value in facts.items() if value is not None}

    def _earlier_rows(self) -> list[dict[str, Any]]:
        """Return the sessions of earlier runs: by name, or by window where a newer one has that."""
        if self.engine.archive is None:
            return []
        kept = list(self.engine.archive.earlier())
        newest = {(run, entry.name): entry.window for run, entry in kept}
        rows = []
        for run, entry in kept:
            if newest[run, entry.name] == entry.window:
                rows.append({"session": f"{run}/{entry.name}", "status": "exited"})
            else:
                row = {"session": f"{run}/{entry.window}", "name": entry.name, "status": "exited"}
                rows.append(row)
        return rows

    async def close_session(self, arguments: OfSession) -> Answer:
        """End a session and all that runs in it."""
        engine = self.engine
        pane = await engine.find(arguments.session)
        state = await engine.kill(pane)
        for older in engine.panes:
            if older.name == pane.name and not (await older.state()).is_running:
                with contextlib.suppress(PaneNotFoundError):  # it was closed meanwhile
                    await engine.kill(older)
        text = f"Closed session '{pane.name}' ({state})"
        return Answer([text], pane_id=pane.name, outcome=came_out("killed", state))

    async def start_recording(self, arguments: StartRecording) -> Answer:
        """Begin to record a session."""
        pane = await self.find(arguments.session, to_write=True)
        recording = await self._recordings.start(pane, self._recording_path(pane, arguments.path))
        return Answer([f"Recording session '{pane.name}' to {recording.path}"], pane_id=pane.name)

    def _recording_path(self, pane: Pane, given: str | None) -> Path:
        """Return the file for a recording, `~` expanded."""
        settings = self.engine.settings
        if given is not None:
            return settings.cwd / os.path.expanduser(given)
        moment = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 1000:03d}"
        return settings.state_dir / "recordings" / f"{pane.id}-{moment}.cast"

    async def stop_recording(self, arguments: OfSession) -> Answer:
        """End a recording."""
        name = arguments.session
        recording = self._recordings.stop(name)
        if recording is None:
            await self.engine.find(name)
            raise ToolError(f"Session '{name}' is not being recorded. Use startRecording first.")
        if not recording.path.exists():
            raise ToolError(
                f"The recording is lost: its file {recording.path} was removed meanwhile."
            )
        cut = f" until {recording.reason}" if recording.reason else ""
        text = f"Recorded {recording.duration_s:.1f} s{cut}, {recording.events} events: "
        return Answer([text + str(recording.path)], pane_id=name)


async def _rest_after_keys(pane: Pane) -> None:
    """Wait until a pane is at rest, if keys have just been sent to it."""
    sent, rest_s = pane.keyboard.last_sent, pane.clock.times.rest_s
    if sent and pane.clock.now() < sent.at + rest_s:
        await rest(pane, rest_s)


def _resources(terminal: Terminal) -> Mapping[str, Any]:
    from .screens import Screens  # noqa: PLC0415  other toolsets need not import it

    return Screens(terminal).handlers()


TOOLS = (
    Tool(
        "type",
        "Type text into the terminal, exactly; a line feed is Enter. Use sendKey for other keys.",
        Terminal.type,
        TypeText,
        hints=DESTROYS,
    ),
    Tool("sendKey", f"Press a key: {_KEYS}.", Terminal.send_key, SendKey, hints=DESTROYS),
    Tool(
        "getContent",
        f"Return the terminal's text, the last {MAX_TEXT_LINES} lines with its scrollback, or only "
        "the visible screen. Also of a session of an earlier run, RUN/NAME.",
        Terminal.get_content,
        GetContent,
        hints=READS,
    ),
    Tool(
        "takeScreenshot",
        "Return the visible screen with cursor position and dimensions, as text or also as a "
        "picture with its colours.",
        Terminal.take_screenshot,
        TakeScreenshot,
        hints=READS,
    ),
    Tool(
        "clear",
        "Clear the terminal's screen and scrollback.",
        Terminal.clear,
        OfSession,
        hints=DESTROYS,
    ),
    Tool("resize", "Change the terminal's size.", Terminal.resize, Resize, hints=CREATES),
    Tool(
        "createSession",
        "Start another terminal session, with a shell or a command.",
        Terminal.create_session,
        CreateSession,
        hints=CREATES,
    ),
    Tool(
        "listSessions",
        "List the sessions as JSON, with size and what runs there.",
        Terminal.list_sessions,
        NoArguments,
        hints=READS,
    ),
    Tool(
        "closeSession",
        "End a session and all that runs in it.",
        Terminal.close_session,
        OfSession,
        hints=DESTROYS,
    ),
    Tool(
        "startRecording",
        "Record what a session prints to an asciicast file, which asciinema plays.",
        Terminal.start_recording,
        StartRecording,
        hints=CREATES,
    ),
    Tool(
        "stopRecording",
        "End a recording; returns its file.",
        Terminal.stop_recording,
        OfSession,
        hints=CREATES,
    ),
)

TOOLSET = Toolset(
    "terminal",
    Terminal,
    TOOLS,
    INSTRUCTIONS,
    sentences.TERMINAL,
    placeholders={"session": DEFAULT},
    uses_size=True,
    resources=_resources,
    keeps_logs=True,
)
