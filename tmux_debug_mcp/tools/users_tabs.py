"""The toolset `tabs` on the user's own tmux server: spec 002's "attach to an existing tmux session".

A tab is a window of any session there, and means its active pane. Nothing there is changed that was not asked for: no
pipe, so there is no log, and what a tab printed is what tmux keeps of it. What needs a log is refused with a sentence.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import orjson

from tmux_debug_mcp import linux
from tmux_debug_mcp.creation import NewPane, check, directory
from tmux_debug_mcp.doing import STEADY_S
from tmux_debug_mcp.errors import ArgumentError, PaneExitedError, PaneNotFoundError, ToolError
from tmux_debug_mcp.keys import INTERRUPT, typed
from tmux_debug_mcp.reading import end_of
from tmux_debug_mcp.servers import MAX_COMMAND_BYTES, UsersServer, escaped
from tmux_debug_mcp.session import Session
from tmux_debug_mcp.shells import KINDS, Shell
from tmux_debug_mcp.stopping import OTHER_SHELLS, STOP_S, advice
from tmux_debug_mcp.targets import PaneRow

from . import Answer, Arguments

MAX_LOG_CHARACTERS = 400_000
DEFAULT_LINES = 500
# A shell draws its prompt anew in some milliseconds.
_CLEAR_S = 0.2
_LOOK_AGAIN_S = 0.01
_SHELLS = frozenset({*KINDS, *OTHER_SHELLS, "sh", "ash"})


async def create_tab(session: Session, arguments: Arguments) -> Answer:
    """Make a window in the background, in the session that is attached or the only one."""
    server, name = _server(session), arguments.get("name")
    env = arguments.get("env", {})
    check(NewPane("a shell of the user's", name, env=env))
    cwd = directory(session.settings, arguments.get("cwd"))
    flags = ("-c", escaped(str(cwd)), *_words(env))
    row = _session_for_tabs(await server.rows(), session.settings.socket)
    made = await server.create_window(row, name, None, flags)
    notes = []
    if made.is_gone:
        notes.append("It has ended already.")
    if "login" in arguments:
        notes.append("The user's tmux decides whether shells are login shells.")
    names = [row.window_name for row in await server.rows() if row.window_id == made.window_id]
    return answer(made.window_id, {"window_id": made.window_id, "name": "".join(names[:1])} | _noted(notes))


def _words(env: Mapping[str, str]) -> list[str]:
    """Return the words that give variables to tmux.

    Raises:
        ArgumentError: They are too large for a client of tmux.
    """
    words = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
    size = sum(len(word.encode()) + 1 for word in words)
    if size > MAX_COMMAND_BYTES:
        most = f"on a user's tmux server at most {MAX_COMMAND_BYTES}"
        raise ArgumentError(f"Parameter 'env' has {size} bytes; {most}. Put it into a file.")
    return words


def _session_for_tabs(rows: Sequence[PaneRow], socket: str) -> PaneRow:
    """Return a row of the one session that is attached, or of the only one there is.

    Raises:
        ToolError: There is none, or it is not known which is meant.
    """
    sessions = {row.session_id: row for row in rows}
    attached = [row for row in sessions.values() if row.session_attached != "0"]
    if len(attached) == 1:
        return attached[0]
    if len(sessions) == 1:
        return rows[0]
    problem = "has no session"
    if sessions:
        names = ", ".join(row.session_name for row in sessions.values())
        problem = f"has several sessions ({names}), and not one that is attached"
    raise ToolError(
        f"The user's tmux server at {socket} {problem}, so it is not known where to make a tab. Ask the user to make "
        "one, and use list_tabs then."
    )


async def list_tabs(session: Session, _arguments: Arguments) -> Answer:
    """Return the windows of all sessions."""
    server = _server(session)
    found: dict[str, PaneRow] = {}
    for row in await server.rows():
        if row.pane_active == "1":
            found.setdefault(row.window_id, row)  # a window may be in several sessions
    tabs = []
    for row in found.values():
        tab = {"window_id": row.window_id, "name": row.window_name, "active": row.window_active == "1"}
        tab["session"] = row.session_name
        if row.pane_dead == "1":
            tab["status"] = "exited"
        else:
            tab |= {"status": "running", "foreground": await server.command_of(row)}
        tabs.append(tab)
    return Answer([compact({"tabs": tabs, "socket": session.settings.socket})])


async def read_logs(session: Session, arguments: Arguments) -> Answer:
    """Return the last lines that tmux keeps of a tab."""
    server, lines = _server(session), int(arguments.get("lines", DEFAULT_LINES))
    row = await _tab(server, arguments["window_id"])
    text = await server.read_lines(row, lines + 1, ansi=not arguments.get("strip_ansi"))
    last = "\n".join(text.split("\n")[-lines:])
    content = end_of(last, MAX_LOG_CHARACTERS)
    shown = len(content.split("\n")) if content else 0
    return answer(
        row.window_id,
        {"content": content, "returned_lines": shown, "truncated": len(content) < len(text)},
        content,
    )


async def execute_command(session: Session, arguments: Arguments) -> Answer:
    """Say that this is not possible."""
    await _tab(_server(session), arguments["window_id"])
    raise _no_log(arguments["window_id"], "what a command prints, and its exit code, can't be told there")


async def start_process(session: Session, arguments: Arguments) -> Answer:
    """Type a command into a tab."""
    check(NewPane(arguments["command"]))
    server = _server(session)
    row = await _tab(server, arguments["window_id"])
    presses_enter = arguments.get("append_newline", True)
    text = arguments["command"].replace("\r\n", "\n").rstrip("\n")
    await server.send(row, typed(text, int(presses_enter)))
    notes = []
    if not presses_enter:
        notes.append("Enter was not pressed.")
    if row.pane_current_command not in _SHELLS:
        notes.append(f"It was typed into {row.pane_current_command}, which is in the foreground.")
    return answer(row.window_id, {"started": True} | _noted(notes))


async def stop_process(session: Session, arguments: Arguments) -> Answer:
    """Stop what runs in the foreground of a tab."""
    server = _server(session)
    row = await _tab(server, arguments["window_id"])
    reason = await _stop(server, row, signal.Signals[arguments.get("signal", "SIGINT")])
    if reason is None:
        return answer(row.window_id, {"success": True})
    return answer(row.window_id, {"success": False, "note": f"Not stopped: {reason}."})


async def stream_logs(session: Session, arguments: Arguments) -> Answer:
    """Say that this is not possible."""
    await _tab(_server(session), arguments["window_id"])
    raise _no_log(arguments["window_id"], "there are no offsets to read from")


async def set_history_limit(_session: Session, _arguments: Arguments) -> Answer:
    """Say that this is not possible."""
    raise ToolError("The history limit of the user's own tmux server is an option of the user's, and is left alone.")


async def close_tab(session: Session, arguments: Arguments) -> Answer:
    """End a window, where that is allowed."""
    server = _server(session)
    row = await _tab(server, arguments["window_id"])
    await server.kill("window", row)
    return answer(row.window_id, {"success": True})


async def _stop(server: UsersServer, row: PaneRow, number: signal.Signals) -> str | None:
    """Stop what has the terminal, one process group after the other; return why it is not known to have stopped."""
    if row.pane_dead == "1":
        raise PaneExitedError(row.window_id, await server.command_of(row))
    first = linux.read_stat(int(row.pane_pid))
    if first is None or not linux.is_on_terminal(first, row.pane_tty):
        return "the processes of that tab can't be seen from here"
    told: set[int] = set()
    group, since = -1, 0.0
    with anyio.move_on_after(STOP_S):
        while (now := linux.read_stat(first.pid)) and now.starttime == first.starttime and now.state != "Z":
            if now.tpgid != group:
                group, since = now.tpgid, anyio.current_time()
            is_steady = group > 0 and anyio.current_time() > since + STEADY_S
            if is_steady and _is_shell(group):
                break
            if is_steady and group not in told:
                told.add(group)
                if reason := await _tell(server, row, number, group):
                    return reason
            await anyio.sleep(_LOOK_AGAIN_S)
        if told:
            return None
        if number == signal.SIGINT:
            await _clear_line(server, row, group)
        return "nothing runs there, the shell has the terminal"
    return f"{await server.command_of(row)} still runs {STOP_S:g} s after that; {advice(number)}"


async def _clear_line(server: UsersServer, row: PaneRow, shell: int) -> None:
    """Press C-c at a shell's prompt, and wait until it has come to the next: it may drop what is typed before."""
    before = linux.cpu_time(shell)
    await server.send(row, INTERRUPT)
    with anyio.move_on_after(_CLEAR_S):
        while linux.cpu_time(shell) == before or not _sleeps(shell):
            await anyio.sleep(_LOOK_AGAIN_S)


def _sleeps(pid: int) -> bool:
    stat = linux.read_stat(pid)
    return stat is None or stat.state == "S"


def _is_shell(pid: int) -> bool:
    """Tell whether a process is a shell that takes commands from the terminal."""
    process = linux.read_stat(pid)
    if process is None or process.is_fork or process.comm not in _SHELLS:
        return False
    return Shell(pid, process.comm, (0, 0)).is_interactive()


async def _tell(server: UsersServer, row: PaneRow, number: signal.Signals, group: int) -> str | None:
    """Tell a process group of the tab to stop; return why that can't be done."""
    if number == signal.SIGINT:
        await server.send(row, INTERRUPT)
        return None
    try:
        os.killpg(group, number)
    except ProcessLookupError:  # it has ended meanwhile
        return None
    except OSError as error:
        return str(error.strerror)
    return None


async def _tab(server: UsersServer, window_id: str) -> PaneRow:
    """Return the active pane of the window with this id."""
    for row in await server.rows():
        if row.window_id == window_id and row.pane_active == "1":
            return row
    raise PaneNotFoundError(window_id)


def _no_log(window_id: str, reason: str) -> ToolError:
    return ToolError(
        f"Tab '{window_id[:80]}' is on the user's own tmux server, where nothing is logged: {reason}. Use "
        "start_process to type a command there, and read_logs_from_tab to read what tmux keeps of its output."
    )


def _server(session: Session) -> UsersServer:
    return UsersServer(session.settings, session.typing)


def _noted(notes: Sequence[str]) -> dict[str, str]:
    return {"note": " ".join(notes)} if notes else {}


def answer(window_id: str, result: Mapping[str, Any], output: str | None = None) -> Answer:
    """Return the result of a call about a tab, as all tools of tabs have it."""
    return Answer([compact(result)], pane_id=window_id, output=output)


def compact(result: Mapping[str, Any]) -> str:
    """Return compact JSON."""
    return orjson.dumps(result).decode()
