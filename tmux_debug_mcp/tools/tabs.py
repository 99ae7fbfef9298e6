"""The toolset `tabs`: specs 000 and 002, a shell in each tab and a log that outlives it.

A tab is a window of tmux and its id is the window's, such as `@3`. A tab that was closed and those of earlier runs
are read as `RUN/@3`. Results are one block of compact JSON, with what the specs have in it and, where it helps,
more.
"""

import contextlib
import os
import re
import signal
from dataclasses import replace
from typing import Any

from tmux_debug_mcp.archive import PastPane
from tmux_debug_mcp.creation import NewPane, check, interactive_shell
from tmux_debug_mcp.doing import Awaits
from tmux_debug_mcp.errors import (
    ArgumentError,
    BusyError,
    CommandError,
    ForeignShellError,
    JobNotTakenError,
    LogLostError,
    NotAtPromptError,
    PaneExitedError,
    PaneLimitError,
    PaneLostError,
    PaneNotFoundError,
    ShellNotReadyError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.giving import MAX_INTERRUPTS_S, turn
from tmux_debug_mcp.keys import typed
from tmux_debug_mcp.logs import Log
from tmux_debug_mcp.panes import Pane
from tmux_debug_mcp.reading import read_clean, read_end, read_last_lines, read_last_raw_lines, read_raw, read_raw_end
from tmux_debug_mcp.running import MAX_OUTPUT_CHARACTERS, run_in_turn
from tmux_debug_mcp.sending import send_one
from tmux_debug_mcp.session import MAX_HISTORY_LINES, Session
from tmux_debug_mcp.stopping import stop
from tmux_debug_mcp.texts import Shown
from tmux_debug_mcp.waiting import EARLY_DEATH_S, rest

from . import Answer, Arguments, Handler, Tool, Toolset, users_tabs
from .arguments import CWD, ENV, NAME
from .users_tabs import DEFAULT_LINES, MAX_LOG_CHARACTERS, answer, compact

INSTRUCTIONS = (
    "Terminal tabs, each with a shell of its own that keeps directory and variables. execute_command runs a command "
    "to its end and returns its output; start_process starts one that goes on, such as a server, in a tab of its own. "
    "read_logs_from_tab shows what a tab printed last. Logs stay when a tab or this server ends: list_tabs shows "
    "the tabs of earlier runs as RUN/@N."
)

_ID = re.compile(r"@\d+")
_DEFAULT_CHUNK_BYTES = 65_536
MAX_CHUNK_BYTES = 1 << 20
_DEFAULT_TIMEOUT_MS = 10_000
_EARLIER_TABS = 20
# A shell that has just run something comes to its prompt.
_PROMPT_S = 0.05

_SENTENCES = {
    PaneNotFoundError: "Tab '{window_id}' not found. Use list_tabs to see the tabs.",
    PaneExitedError: "Tab '{window_id}' has ended ({ending}): no shell is there any more. Use read_logs_from_tab to "
    "read its last output, or create_tab to make another.",
    PaneLostError: "Tab '{window_id}' was lost: its tmux window or server ended from outside. Use create_tab to make "
    "another.",
    PaneLimitError: "There are {most} tabs and all are running. Use close_tab to close those that are no longer "
    "needed.",
    BusyError: "Tab '{window_id}' is busy: {running}, {runtime_s:.0f} s. Use stop_process to stop that, or another "
    "tab.",
    NotAtPromptError: "Tab '{window_id}' runs {foreground}, not a shell at its prompt. Use stop_process to stop that, "
    "or another tab. Shells can be bash, zsh, dash, fish and busybox sh.",
    ShellNotReadyError: "Tab '{window_id}': {shell} is not at its prompt; it is at work, or asks for something. "
    "Nothing was run. Use read_logs_from_tab to see what it shows, start_process to answer, or stop_process to "
    "interrupt it.",
    ForeignShellError: "Tab '{window_id}' has a {shell} of another user or in a container, which can't read the "
    "command's file. Use start_process to type the command there, and read_logs_from_tab.",
    JobNotTakenError: "Tab '{window_id}': {shell} did not take the command, and nothing was run. "
    "Use read_logs_from_tab to see what it is at.",
    LogLostError: "Tab '{window_id}': what it printed could not be written to {path}. The command was run; how it "
    "ended is lost. Make room there.",
    CommandError: "tmux {tmux_command} failed: {reason}. Use list_tabs to see what is there.",
    TmuxGoneError: "The tmux server has ended and its tabs with it. The next create_tab starts a new one.",
}


async def create_tab(session: Session, arguments: Arguments) -> Answer:
    """Start a shell in a new tab."""
    shell = interactive_shell(session.settings)
    program = [shell, *(["-l"] if arguments.get("login") else [])]
    name = arguments.get("name", os.path.basename(shell))
    if _ID.fullmatch(name):
        raise ArgumentError(f"Parameter 'name' is '{name}', which looks like an id. Give another name.")
    cwd, env = arguments.get("cwd"), arguments.get("env", {})
    new = NewPane(" ".join(program), name, cwd, env, program, is_shown=True)
    check(new)
    pane = await session.create(new)
    state = await rest(pane, EARLY_DEATH_S)
    ended = {} if state.is_running else {"note": f"It has ended: {state}."}
    return answer(pane.window, {"window_id": pane.window, "name": pane.name} | ended)


async def list_tabs(session: Session, _arguments: Arguments) -> Answer:
    """Return the tabs, those of earlier runs behind the others."""
    active = await session.active_windows()
    tabs = []
    for pane in {pane.window: pane for pane in reversed(session.panes)}.values():  # the first pane of each
        state = await pane.state()
        row = {"window_id": pane.window, "name": pane.name, "active": pane.window in active}
        row["status"] = "running" if state.is_running else "exited"
        facts: dict[str, Any] = {"foreground": state.foreground, "exit_code": state.exit_code, "signal": state.signal}
        facts |= {"awaits": state.awaits and state.awaits.value, "lost": state.is_lost or None}
        tabs.append(row | {key: value for key, value in facts.items() if value is not None})
    tabs.reverse()
    earlier = [
        {"window_id": f"{run}/{window}", "name": name, "active": False, "status": "exited"}
        for run, window, name in session.earlier()
    ]
    more = {"earlier_tabs_not_shown": len(earlier) - _EARLIER_TABS} if len(earlier) > _EARLIER_TABS else {}
    return Answer([compact({"tabs": tabs + earlier[:_EARLIER_TABS]} | more | session.diagnostics())])


async def read_logs(session: Session, arguments: Arguments) -> Answer:
    """Return the last lines of a tab's log."""
    tab = await _readable(session, arguments["window_id"])
    lines = int(arguments.get("lines", DEFAULT_LINES))
    try:
        gaps = await _gaps(tab)
        end = (await tab.state()).cursor
        if arguments.get("strip_ansi"):
            found, is_cut = await read_last_lines(tab.log, end, lines, MAX_LOG_CHARACTERS)
        else:
            found, is_cut = read_last_raw_lines(tab.log, end, lines, MAX_LOG_CHARACTERS)
    finally:
        _close(tab)
    content = "\n".join(found)
    result = {"content": content, "returned_lines": len(found), "truncated": is_cut} | gaps
    return answer(arguments["window_id"], result, content)


async def execute_command(session: Session, arguments: Arguments) -> Answer:
    """Run a command in a tab's shell and return its output."""
    check(NewPane(arguments["command"]))
    pane = _tab(session, arguments["window_id"])
    timeout_s = arguments.get("timeout_ms", _DEFAULT_TIMEOUT_MS) / 1000
    show = _show_clean if arguments.get("strip_ansi") else _show_raw
    outcome = await run_in_turn(pane, arguments["command"], timeout_s, show)
    output = outcome.shown.text
    result: dict[str, Any] = {
        "output": output,
        "timed_out": outcome.reason in ("timed_out", "running", "shell_interrupted"),
    }
    if outcome.exit_code is not None:
        result["exit_code"] = outcome.exit_code
    notes = []
    if outcome.reason == "input":
        result["awaits"] = outcome.state.awaits.value if outcome.state.awaits else Awaits.KEYS.value
        notes.append("It runs on and awaits that: answer with start_process, or stop it with stop_process.")
    if outcome.shown.cut_bytes:
        begin = max(outcome.start, pane.log.kept_from)
        notes.append(f"The beginning is cut: use stream_logs_from_tab with from_byte {begin}.")
        result |= {"truncated": True, "from_byte": begin, "next_byte": outcome.end}
    told = outcome.note(timeout_s)
    if told and outcome.reason != "input":
        notes.append(f"{told[0].upper()}{told[1:]}.")
    if not outcome.state.is_running:
        notes.append(f"The tab has ended: {outcome.state}.")
    return answer(pane.window, result | ({"note": " ".join(notes)} if notes else {}), output)


async def _show_clean(log: Log, start: int, end: int) -> Shown:
    """Return the end of a command's output."""
    piece = await read_end(log, start, end, MAX_OUTPUT_CHARACTERS, is_line=True)
    return Shown(piece.text.split("\n"), [], piece.start - start)


async def _show_raw(log: Log, start: int, end: int) -> Shown:
    """Return the end of a command's output with escape sequences."""
    piece = read_raw_end(log, start, end, MAX_OUTPUT_CHARACTERS)
    return Shown(piece.text.split("\n"), [], piece.start - start)


async def start_process(session: Session, arguments: Arguments) -> Answer:
    """Type a command into a tab."""
    check(NewPane(arguments["command"]))
    pane = _tab(session, arguments["window_id"])
    enters = 1 if arguments.get("append_newline", True) else 0
    text = arguments["command"].replace("\r\n", "\n").rstrip("\n")
    keystrokes = typed(text, enters)
    if not text.isprintable():  # a line editor takes a tab for one only in a paste
        keystrokes = replace(keystrokes, is_paste=True)
    async with turn(pane, _DEFAULT_TIMEOUT_MS / 1000):
        foreground = (await pane.state()).foreground or "a program"
        is_shell = await pane.terminal.prompt(_PROMPT_S) is not None
        await send_one(pane, keystrokes)
    notes = [] if enters else ["Enter was not pressed."]
    notes += [] if is_shell else [f"It was typed into {foreground}, which is in the foreground."]
    return answer(pane.window, {"started": True} | ({"note": " ".join(notes)} if notes else {}))


async def stop_process(session: Session, arguments: Arguments) -> Answer:
    """Stop what runs in the foreground of a tab."""
    pane = _tab(session, arguments["window_id"])
    reason = await stop(pane, signal.Signals[arguments.get("signal", "SIGINT")])
    note = {} if reason is None else {"note": f"Not stopped: {reason}."}
    return answer(pane.window, {"success": reason is None} | note)


async def stream_logs(session: Session, arguments: Arguments) -> Answer:
    """Return the next bytes of a tab's log."""
    tab = await _readable(session, arguments["window_id"])
    start = int(arguments.get("from_byte", 0))
    max_bytes = int(arguments.get("max_bytes", _DEFAULT_CHUNK_BYTES))
    try:
        gaps = await _gaps(tab)
        state = await tab.state()
        if start > tab.log.size:
            raise ArgumentError(
                f"Parameter 'from_byte' is {start}, and the log has {state.cursor} bytes. Give one up to that."
            )
        if arguments.get("strip_ansi"):
            piece = await read_clean(tab.log, start, state.cursor, max_bytes)
        else:
            piece = read_raw(tab.log, start, state.cursor, max_bytes, is_final=state.is_final)
    finally:
        _close(tab)
    is_end = not piece.left_bytes
    # What is unfinished when a program ends stays so.
    next_byte = max(piece.end, state.cursor) if state.is_final and is_end else piece.end
    result = {"chunk": piece.text, "next_byte": next_byte, "eof": is_end}
    skipped = {"skipped_bytes": piece.start - start} if piece.start > start else {}
    return answer(arguments["window_id"], result | skipped | gaps, piece.text)


async def set_history_limit(session: Session, arguments: Arguments) -> Answer:
    """Set how many lines of scrollback the tabs that are to come keep."""
    await session.set_history_limit(int(arguments["limit"]))
    return Answer([compact({"success": True, "note": "It holds for tabs that are created from now on."})])


async def close_tab(session: Session, arguments: Arguments) -> Answer:
    """End a tab and all that runs in it."""
    tab = _tab(session, arguments["window_id"])
    state = await session.kill(tab)
    for pane in session.panes:  # of a window that was split
        if pane.window == tab.window:
            with contextlib.suppress(PaneNotFoundError):  # it was killed meanwhile
                await session.kill(pane)
    kept = {"log": f"{session.run}/{tab.window}"} if session.run else {}
    return answer(tab.window, {"success": True, "ended": str(state)} | kept)


def _tab(session: Session, window_id: str) -> Pane:
    """Return the tab with this id, to be used."""
    own = window_id.removeprefix(f"{session.run}/")
    for pane in session.panes:
        if pane.window == own:
            return pane
    if "/" in window_id:
        raise ArgumentError(
            f"Tab '{window_id[:80]}' has ended, and at best its log is left. Use read_logs_from_tab, or create_tab to "
            "make another."
        )
    raise PaneNotFoundError(window_id)


async def _readable(session: Session, window_id: str) -> Pane | PastPane:
    """Return a tab, or one whose log is left; an id without a run means the only tab of this and of all runs."""
    run, _, own = window_id.rpartition("/")
    if not _ID.fullmatch(own):
        raise PaneNotFoundError(window_id)
    with contextlib.suppress(ToolError):
        return _tab(session, window_id)
    if run:
        return await session.find_readable(window_id)
    with contextlib.suppress(PaneNotFoundError):
        return await session.find_readable(f"{session.run}/{own}")
    runs = session.earlier_runs_with(own)
    if len(runs) > 1:
        ids = ", ".join(f"{run}/{own}" for run in runs[:_EARLIER_TABS])
        raise ArgumentError(f"Several runs had a tab '{own}': {ids}. Give one of these.")
    if not runs:
        raise PaneNotFoundError(window_id)
    return await session.find_readable(f"{runs[0]}/{own}")


async def _gaps(tab: Pane | PastPane) -> dict[str, str]:
    """Return a note on output that is not in the log."""
    if isinstance(tab, Pane):
        await tab.check_log()
        if tab.has_gaps:
            return {"note": "Some output was lost: there was no room for it."}
    return {}


def _close(tab: Pane | PastPane) -> None:
    if isinstance(tab, PastPane):
        tab.log.close()


def _either(own: Handler, users: Handler) -> Handler:
    """Return the handler that takes a call to the one for our own tabs, or for those on the user's tmux server."""

    async def handle(session: Session, arguments: Arguments) -> Answer:
        is_past = "/" in arguments.get("window_id", "")
        return await (users if session.settings.socket and not is_past else own)(session, arguments)

    return handle


_WINDOW_ID = {"type": "string", "minLength": 1, "description": "Tab id, e.g. @3"}
_READ_ID = {**_WINDOW_ID, "description": "Tab id, e.g. @3; of an earlier run, RUN/@3"}
_WHOLE = {"type": "number", "multipleOf": 1}
_COMMAND = {"type": "string", "minLength": 1, "description": "Shell command"}
_STRIP = {"type": "boolean", "description": "Remove ANSI sequences (default false)"}

TOOLS = (
    Tool(
        "create_tab",
        "Create a new terminal tab with a shell.",
        _either(create_tab, users_tabs.create_tab),
        {
            "name": {**NAME, "description": "Name for the tab"},
            "cwd": CWD,
            "env": ENV,
            "login": {"type": "boolean", "description": "Start a login shell, which reads the user's profile"},
        },
        hints={"destructive_hint": False},
    ),
    Tool(
        "list_tabs",
        "List all terminal tabs; those of earlier runs, of which only logs are left, as RUN/@N.",
        _either(list_tabs, users_tabs.list_tabs),
        hints={"read_only_hint": True},
    ),
    Tool(
        "read_logs_from_tab",
        "Read the last lines that a tab printed, also after it ended.",
        _either(read_logs, users_tabs.read_logs),
        {
            "window_id": _READ_ID,
            "lines": {**_WHOLE, "minimum": 1, "description": "Lines from the end (default 500)"},
            "strip_ansi": _STRIP,
        },
        required=("window_id",),
        hints={"read_only_hint": True},
        meta={"anthropic/maxResultSizeChars": 2 * MAX_LOG_CHARACTERS},
    ),
    Tool(
        "execute_command",
        "Run a command to its end in a tab's shell; return its output, without prompt or echo, and its exit code. "
        "If it awaits input, the call returns with `awaits`: answer with start_process. On timeout it is interrupted "
        f"with C-c, and gets up to {MAX_INTERRUPTS_S:g} s to end. Commands for one tab run one after the other.",
        _either(execute_command, users_tabs.execute_command),
        {
            "window_id": _WINDOW_ID,
            "command": {**_COMMAND, "description": "Shell command; may have several lines"},
            "timeout_ms": {
                "type": "number",
                "minimum": 1,
                "maximum": 3_600_000,
                "description": "Milliseconds to give it (default 10000)",
            },
            "strip_ansi": _STRIP,
        },
        required=("window_id", "command"),
        hints={"destructive_hint": True},
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "start_process",
        "Type a command that goes on, such as a server, into a tab; returns at once. Read what it prints with "
        "read_logs_from_tab.",
        _either(start_process, users_tabs.start_process),
        {
            "window_id": _WINDOW_ID,
            "command": _COMMAND,
            "append_newline": {"type": "boolean", "description": "Press Enter after it (default true)"},
        },
        required=("window_id", "command"),
        hints={"destructive_hint": True},
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "stop_process",
        "Stop what runs in the foreground of a tab, and tell whether it stopped; the shell stays.",
        _either(stop_process, users_tabs.stop_process),
        {
            "window_id": _WINDOW_ID,
            "signal": {
                "type": "string",
                "enum": ["SIGINT", "SIGTERM"],
                "description": "SIGINT, which is C-c (default), or SIGTERM",
            },
        },
        required=("window_id",),
        hints={"destructive_hint": True},
    ),
    Tool(
        "stream_logs_from_tab",
        "Read a tab's log on from a byte offset, oldest first; go on from next_byte. Offsets stay good when the tab or "
        "the server ends.",
        _either(stream_logs, users_tabs.stream_logs),
        {
            "window_id": _READ_ID,
            "from_byte": {**_WHOLE, "minimum": 0, "description": "Offset to start at (default 0)"},
            "max_bytes": {
                **_WHOLE,
                "minimum": 1,
                "maximum": MAX_CHUNK_BYTES,
                "description": "Most bytes to read (default 65536)",
            },
            "strip_ansi": _STRIP,
        },
        required=("window_id",),
        hints={"read_only_hint": True},
        meta={"anthropic/maxResultSizeChars": 2 * MAX_CHUNK_BYTES},
    ),
    Tool(
        "set_history_limit",
        "Set how many lines tmux keeps of each tab for a person who scrolls; logs are kept apart from that. Holds for "
        "tabs created from then on.",
        _either(set_history_limit, users_tabs.set_history_limit),
        {"limit": {**_WHOLE, "minimum": 1, "maximum": MAX_HISTORY_LINES, "description": "Lines"}},
        required=("limit",),
        hints={"destructive_hint": False},
    ),
    Tool(
        "close_tab",
        "Close a tab and end all that runs in it. Its log can still be read.",
        _either(close_tab, users_tabs.close_tab),
        {"window_id": _WINDOW_ID},
        required=("window_id",),
        hints={"destructive_hint": True},
    ),
)

TOOLSET = Toolset("tabs", TOOLS, INSTRUCTIONS, _SENTENCES, keeps_logs=True, uses_socket=True)
