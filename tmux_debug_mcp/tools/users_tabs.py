"""The toolset `tabs` on the user's own tmux server, as spec 002 wants it.

A tab is a window of any session there, and stands for its active pane. Nothing there changes unless
a call asks for it. So there is no pipe and no log: a tab's output is what tmux keeps of it, and
calls that need a log are refused.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tmux_debug_mcp.errors import ArgumentError, PaneExitedError, PaneNotFoundError, ToolError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.excerpts import end_of
from tmux_debug_mcp.panes.creation import check_env, check_length, check_name, directory
from tmux_debug_mcp.panes.shells.dialects import SHELLS
from tmux_debug_mcp.panes.stopping import stop_for_shell
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.targets import PaneRow
from tmux_debug_mcp.tmux.users_server import MAX_COMMAND_BYTES, UsersServer, escaped
from tmux_debug_mcp.vt.steps import INTERRUPT, Keystrokes, command_lines

from .toolset import Answer, Outcome, json_answer

TAB_ID = re.compile(r"@\d+")
MAX_LOG_CHARACTERS = 400_000


class UsersTabs:
    """What the handlers of `tabs` do on the user's tmux server.

    Methods that take a tab may raise PaneNotFoundError. All may raise what `UsersServer` does.
    """

    def __init__(self, server: UsersServer, settings: Settings) -> None:
        self._server = server
        self._settings = settings

    async def create_tab(
        self, name: str | None, cwd: str | None, env: Mapping[str, str], *, login: bool | None
    ) -> Answer:
        """Make a window in the background, in the attached or only session.

        Raises:
            ArgumentError: The name, the directory or the variables can't be used.
            ToolError: There is no session, or several can be meant.
        """
        server = self._server
        check_env(env)
        if name is not None:
            check_name(name, ids=TAB_ID)
        flags = ["-d", "-c", escaped(str(directory(self._settings.cwd, cwd)))]
        variables = [word for key, value in env.items() for word in ("-e", f"{key}={value}")]
        size = sum(len(word.encode()) + 1 for word in variables)
        if size > MAX_COMMAND_BYTES:
            most = f"the user's tmux server takes at most {MAX_COMMAND_BYTES}"
            raise ArgumentError(f"Parameter 'env' has {size} bytes; {most}. Put it into a file.")
        session = self._session_for_tabs(await server.rows())
        made = await server.create_window(session, name, None, flags + variables)
        remarks = []
        if made.is_gone:
            remarks.append("It has already ended.")
        if login is not None:
            remarks.append("The user's tmux decides whether shells are login shells.")
        windows = {row.window_id: row.window_name for row in await server.rows()}
        result = {"window_id": made.window_id, "name": windows.get(made.window_id, "")}
        outcome = Outcome("exited" if made.is_gone else "started")
        return json_answer(made.window_id, noted(result, remarks), outcome=outcome)

    def _session_for_tabs(self, rows: Sequence[PaneRow]) -> PaneRow:
        """Return a row of the one session that is attached, or of the only session."""
        sessions = {row.session_id: row for row in rows}
        attached = [row for row in sessions.values() if row.session_attached != "0"]
        if len(attached) == 1:
            return attached[0]
        if len(sessions) == 1:
            return rows[0]
        problem = "has no session"
        if sessions:
            names = ", ".join(row.session_name for row in sessions.values())
            problem = f"has several sessions ({names}), and none is attached"
        raise ToolError(
            f"The user's tmux server at {self._settings.socket} {problem}, so it is unclear where "
            "to create a tab. Ask the user to create the tab, then use list_tabs."
        )

    async def list_tabs(self) -> Answer:
        """Return the windows of all sessions."""
        tabs: dict[str, dict[str, Any]] = {}
        for row in await self._server.rows():
            # A window may be in several sessions.
            if row.pane_active != "1" or row.window_id in tabs:
                continue
            tabs[row.window_id] = {
                "window_id": row.window_id,
                "name": row.window_name,
                "active": row.window_active == "1",
                "session": row.session_name,
                "status": "exited" if row.pane_dead == "1" else "running",
            }
            if row.pane_dead != "1":
                tabs[row.window_id]["foreground"] = await self._server.command_of(row)
        return json_answer(None, {"tabs": list(tabs.values()), "socket": self._settings.socket})

    async def read_logs(self, window_id: str, lines: int, *, strip_ansi: bool) -> Answer:
        """Return the last lines that tmux keeps of a tab."""
        row = await self._tab(window_id)
        text = await self._server.capture_lines(row, lines + 1, ansi=not strip_ansi)
        content = end_of(text, MAX_LOG_CHARACTERS, lines)
        is_cut = len(content) < len(text)
        remarks = []
        if row.may_have_dropped_lines and not is_cut:
            remarks.append(
                f"tmux keeps {row.history_limit} lines of history there, and may have dropped "
                "earlier ones."
            )
        result = {
            "content": content,
            "returned_lines": len(content.split("\n")) if content else 0,
            "truncated": is_cut or row.may_have_dropped_lines,
        }
        return json_answer(row.window_id, noted(result, remarks), content)

    async def start_process(self, window_id: str, command: str, *, append_newline: bool) -> Answer:
        """Type a command into a tab."""
        lines = lines_of(command, append_newline=append_newline)
        row = await self._tab(window_id)
        await self._server.send(row, window_id, lines)
        foreground = row.pane_current_command
        program = None if foreground in SHELLS else foreground
        remarks = typing_remarks(lines, program)
        return json_answer(row.window_id, noted({"started": True}, remarks))

    async def stop(self, window_id: str, number: signal.Signals, advice: str) -> str | None:
        """Stop what runs in the foreground of a tab; see `stop_for_shell`.

        Raises:
            KillNotAllowedError: It is the tab's own program, whose end would close the user's
                window, and the server was started without --allow-kill.
            PaneExitedError: The tab's program has ended.
        """
        row = await self._tab(window_id)
        name = await self._server.command_of(row)
        if row.pane_dead == "1":
            raise PaneExitedError(row.window_id, name)
        first = processes.read_stat(int(row.pane_pid))
        if first is None or not terminals.is_at(row.pane_tty, first.tty):
            return "the processes of that tab can't be seen from here"
        clock = self._server.clock
        with clock.move_on_after(clock.times.stop_s):
            return await stop_for_shell(
                first,
                number,
                lambda: self._server.send(row, row.window_id, [INTERRUPT]),
                clock,
                may_close=self._settings.allows_kill,
            )
        return f"{name} is still running {clock.times.stop_s:g} s later; {advice}"

    async def close_tab(self, window_id: str) -> Answer:
        """End a window.

        Raises:
            KillNotAllowedError: The server was started without --allow-kill.
        """
        row = await self._tab(window_id)
        await self._server.kill("window", row)
        return json_answer(row.window_id, {"success": True}, outcome=Outcome("killed"))

    async def refuse(self, window_id: str, reason: str) -> NoReturn:
        """Refuse a call that needs a log, with a ToolError."""
        await self._tab(window_id)
        raise ToolError(
            f"Tab '{window_id[:80]}' is on the user's own tmux server, where nothing is logged, so "
            f"{reason}. Use start_process to type a command there, and read_logs_from_tab to read "
            "what tmux keeps of its output."
        )

    async def _tab(self, window_id: str) -> PaneRow:
        """Return the active pane of the window of this id."""
        for row in await self._server.rows():
            if row.window_id == window_id and row.pane_active == "1":
                return row
        raise PaneNotFoundError(window_id)


def lines_of(command: str, *, append_newline: bool) -> Sequence[Keystrokes]:
    """Return the steps that type a command or an answer, one for each of its lines.

    Each line feed is Enter. `append_newline` adds one, unless there is one at the end.

    Raises:
        ArgumentError: The command is too long, or nothing would be typed.
    """
    check_length(command)
    text = command.replace("\r\n", "\n")
    if not (text or append_newline):
        raise ArgumentError(
            "Parameter 'command' is empty, and with append_newline false, nothing would be typed. "
            "Give text, or leave append_newline out to press Enter."
        )
    ends_with_enter = append_newline or text.endswith("\n")
    return command_lines(text.removesuffix("\n"), enters=int(ends_with_enter))


def typing_remarks(lines: Sequence[Keystrokes], program: str | None) -> list[str]:
    """Return remarks on typed lines; `program` is what has the foreground instead of a shell."""
    remarks = []
    if not lines[-1].keys:
        remarks.append("Enter was not pressed.")
    if program:
        remarks.append(f"It was typed into {program}, which is in the foreground.")
    return remarks


def noted(result: Mapping[str, Any], remarks: Sequence[str]) -> dict[str, Any]:
    """Return a result with remarks, if there are any, as its `note`."""
    note = {"note": " ".join(remarks)} if remarks else {}
    return {**result, **note}
