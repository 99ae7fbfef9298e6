"""The toolset `tabs` on the user's own tmux server, as spec 002 wants it.

A tab is a window of any session there, and stands for its active pane. Nothing there is changed
that was not asked for. So there is no pipe and no log: what a tab printed is what tmux keeps of it,
and what needs a log is refused with a sentence.
"""

import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from tmux_debug_mcp.errors import (
    ArgumentError,
    KillNotAllowedError,
    PaneExitedError,
    PaneNotFoundError,
    ToolError,
)
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.excerpts import end_of
from tmux_debug_mcp.panes.creation import NewPane, check, check_name, directory
from tmux_debug_mcp.panes.shells.dialects import DIALECTS, Shell
from tmux_debug_mcp.panes.stopping import OTHER_SHELLS
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.targets import PaneRow
from tmux_debug_mcp.tmux.users_server import MAX_COMMAND_BYTES, UsersServer, escaped
from tmux_debug_mcp.vt.keys import INTERRUPT
from tmux_debug_mcp.vt.steps import command_lines

from .toolset import Answer, json_answer

TAB_ID = re.compile(r"@\d+")
MAX_LOG_CHARACTERS = 400_000
_SHELLS = frozenset({*DIALECTS, *OTHER_SHELLS, "sh", "ash"})


class UsersTabs:
    """The handlers of `tabs` on the user's tmux server.

    Those that take a tab may raise PaneNotFoundError. All may raise what `UsersServer` does.

    Args:
        server: The user's tmux server.
        settings: The configuration.
    """

    def __init__(self, server: UsersServer, settings: Settings) -> None:
        self._server = server
        self._settings = settings

    async def create_tab(
        self, name: str | None, cwd: str | None, env: Mapping[str, str], *, login: bool | None
    ) -> Answer:
        """Make a window in the background, in the session that is attached or the only one.

        Raises:
            ArgumentError: The name, the directory or the variables can't be used.
            ToolError: There is no session, or it is not known which is meant.
        """
        server = self._server
        check(NewPane("a shell of the user's", env=env))
        if name is not None:
            check_name(name, ids=TAB_ID)
        start = directory(self._settings, cwd)
        flags = ("-c", escaped(str(start)), *_words(env))
        row = _session_for_tabs(await server.rows(), self._settings.socket)
        made = await server.create_window(row, name, None, flags)
        remarks = []
        if made.is_gone:
            remarks.append("It has ended already.")
        if login is not None:
            remarks.append("The user's tmux decides whether shells are login shells.")
        windows = {row.window_id: row.window_name for row in await server.rows()}
        result = {"window_id": made.window_id, "name": windows.get(made.window_id, "")}
        outcome = {"reason": "exited" if made.is_gone else "started"}
        return json_answer(made.window_id, result | _remarked(remarks), outcome=outcome)

    async def list_tabs(self) -> Answer:
        """Return the windows of all sessions."""
        found: dict[str, PaneRow] = {}
        for row in await self._server.rows():
            if row.pane_active == "1":
                found.setdefault(row.window_id, row)  # a window may be in several sessions
        tabs = [await self._row(row) for row in found.values()]
        return json_answer(None, {"tabs": tabs, "socket": self._settings.socket})

    async def _row(self, row: PaneRow) -> dict[str, Any]:
        """Return a tab as the list has it."""
        tab: dict[str, Any] = {
            "window_id": row.window_id,
            "name": row.window_name,
            "active": row.window_active == "1",
            "session": row.session_name,
        }
        if row.pane_dead == "1":
            return tab | {"status": "exited"}
        return tab | {"status": "running", "foreground": await self._server.command_of(row)}

    async def read_logs(self, window_id: str, lines: int, *, strip_ansi: bool) -> Answer:
        """Return the last lines that tmux keeps of a tab."""
        row = await self._tab(window_id)
        text = await self._server.capture_lines(row, lines + 1, ansi=not strip_ansi)
        last = "\n".join(text.split("\n")[-lines:])
        content = end_of(last, MAX_LOG_CHARACTERS)
        result = {
            "content": content,
            "returned_lines": len(content.split("\n")) if content else 0,
            "truncated": len(content) < len(text),
        }
        return json_answer(row.window_id, result, content)

    async def execute_command(self, window_id: str) -> Answer:
        """Refuse: what a command prints is not logged.

        Raises:
            ToolError: Always.
        """
        await self._tab(window_id)
        reason = "what a command prints, and its exit code, can't be told there"
        raise _no_log(window_id, reason)

    async def start_process(self, window_id: str, command: str, *, append_newline: bool) -> Answer:
        """Type a command into a tab."""
        check(NewPane(command))
        row = await self._tab(window_id)
        text = command.replace("\r\n", "\n").rstrip("\n")
        lines = command_lines(text, enters=int(append_newline))
        await self._server.send(row, window_id, lines)
        remarks = []
        if not append_newline:
            remarks.append("Enter was not pressed.")
        if row.pane_current_command not in _SHELLS:
            foreground = row.pane_current_command
            remarks.append(f"It was typed into {foreground}, which is in the foreground.")
        return json_answer(row.window_id, {"started": True} | _remarked(remarks))

    async def stop_process(self, window_id: str, number: signal.Signals) -> Answer:
        """Stop what runs in the foreground of a tab.

        Raises:
            KillNotAllowedError: It is the tab's own program, with which the user's window would
                close, and the server was started without --allow-kill.
            PaneExitedError: The tab's program has ended.
        """
        row = await self._tab(window_id)
        may_close = self._settings.allows_kill
        reason = await _Stop(self._server, row, number, may_close=may_close).run()
        if reason is None:
            return json_answer(row.window_id, {"success": True})
        return json_answer(row.window_id, {"success": False, "note": f"Not stopped: {reason}."})

    async def stream_logs(self, window_id: str) -> Answer:
        """Refuse: there is no log.

        Raises:
            ToolError: Always.
        """
        await self._tab(window_id)
        raise _no_log(window_id, "there are no offsets to read from")

    async def set_history_limit(self) -> Answer:
        """Refuse: it would change the user's options.

        Raises:
            ToolError: Always.
        """
        raise ToolError(
            "The history limit of the user's own tmux server is an option of the user's, and is "
            "left alone."
        )

    async def close_tab(self, window_id: str) -> Answer:
        """End a window.

        Raises:
            KillNotAllowedError: The server was started without --allow-kill.
        """
        row = await self._tab(window_id)
        await self._server.kill("window", row)
        return json_answer(row.window_id, {"success": True}, outcome={"reason": "killed"})

    async def _tab(self, window_id: str) -> PaneRow:
        """Return the active pane of the window of this id.

        Raises:
            PaneNotFoundError: There is none.
        """
        for row in await self._server.rows():
            if row.window_id == window_id and row.pane_active == "1":
                return row
        raise PaneNotFoundError(window_id)


def _words(env: Mapping[str, str]) -> list[str]:
    """Return the words that give variables to tmux.

    Raises:
        ArgumentError: They are too large for a client of tmux.
    """
    words: list[str] = []
    for name, value in env.items():
        words += ["-e", f"{name}={value}"]
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
        f"The user's tmux server at {socket} {problem}, so it is not known where to make a tab. "
        "Ask the user to make one, and use list_tabs then."
    )


class _Stop:
    """Stops the foreground of a tab, one process group after the other, until its shell is back.

    Args:
        server: The user's tmux server.
        row: The tab's active pane.
        number: SIGINT, which is sent by pressing C-c, or another signal.
        may_close: The tab's own program may be stopped, with which the window closes.
    """

    def __init__(
        self, server: UsersServer, row: PaneRow, number: signal.Signals, *, may_close: bool
    ) -> None:
        self._server = server
        self._clock = server.clock
        self._times = server.clock.times
        self._row = row
        self._number = number
        self._may_close = may_close
        self._signalled: set[int] = set()
        self._group = -1
        self._group_since = 0.0

    async def run(self) -> str | None:
        """Stop it; return None once it has stopped, else the reason why that is not known.

        Raises:
            KillNotAllowedError: Only the tab's own program runs there, and may not be stopped.
            PaneExitedError: The tab's program has ended.
        """
        row = self._row
        if row.pane_dead == "1":
            raise PaneExitedError(row.window_id, await self._server.command_of(row))
        first = processes.read_stat(int(row.pane_pid))
        if first is None or not processes.is_on_terminal(first, row.pane_tty):
            return "the processes of that tab can't be seen from here"
        with self._clock.move_on_after(self._times.stop_s):
            return await self._until_shell(first)
        name = await self._server.command_of(row)
        return f"{name} still runs {self._times.stop_s:g} s after that; {advice(self._number)}"

    async def _until_shell(self, first: processes.Stat) -> str | None:
        """Signal each foreground group once, until a shell has the terminal or the tab ends."""
        while True:
            leader = processes.read_living(first.pid, first.starttime)
            if leader is None:
                break
            if self._is_steady(leader.tpgid):
                if _is_shell(self._group):
                    break
                if leader.pgrp == self._group and not self._may_close:
                    if not self._signalled:
                        raise KillNotAllowedError
                    break
                reason = await self._signal()
                if reason:
                    return reason
            await self._clock.sleep(self._times.poll_s)
        if self._signalled:
            return None
        if self._number == signal.SIGINT:
            await self._clear_line()
        return "nothing runs there, the shell has the terminal"

    def _is_steady(self, group: int) -> bool:
        """Tell whether a process group has had the terminal for a while."""
        now = self._clock.now()
        if group != self._group:
            self._group = group
            self._group_since = now
        return group > 0 and now > self._group_since + self._times.steady_s

    async def _signal(self) -> str | None:
        """Signal the foreground group, if it was not yet; return the reason why that fails."""
        if self._group in self._signalled:
            return None
        self._signalled.add(self._group)
        if self._number == signal.SIGINT:
            await self._server.send(self._row, self._row.window_id, [INTERRUPT])
            return None
        try:
            os.killpg(self._group, self._number)
        except ProcessLookupError:  # it has ended meanwhile
            return None
        except OSError as error:
            return str(error.strerror)
        return None

    async def _clear_line(self) -> None:
        """Press C-c at the shell's prompt, and wait for the next prompt."""
        before = processes.cpu_ns(self._group)
        await self._server.send(self._row, self._row.window_id, [INTERRUPT])
        with self._clock.move_on_after(self._times.redraw_s):
            while processes.cpu_ns(self._group) == before or not _sleeps(self._group):
                await self._clock.sleep(self._times.poll_s)


def _sleeps(pid: int) -> bool:
    stat = processes.read_stat(pid)
    return stat is None or stat.state == "S"


def _is_shell(pid: int) -> bool:
    """Tell whether a process is a shell that takes commands from the terminal."""
    process = processes.read_stat(pid)
    if process is None or process.is_fork or process.comm not in _SHELLS:
        return False
    return Shell(pid, process.comm, (0, 0)).is_interactive()


def advice(number: signal.Signals) -> str:
    """Return what to try next when a signal did not stop a program."""
    if number == signal.SIGINT:
        return "SIGTERM may help"
    return "close_tab ends all that runs there"


def _no_log(window_id: str, reason: str) -> ToolError:
    return ToolError(
        f"Tab '{window_id[:80]}' is on the user's own tmux server, where nothing is logged: "
        f"{reason}. Use start_process to type a command there, and read_logs_from_tab to read what "
        "tmux keeps of its output."
    )


def _remarked(remarks: Sequence[str]) -> dict[str, str]:
    """Return the remarks as the field of a result, no field without remarks."""
    if not remarks:
        return {}
    return {"note": " ".join(remarks)}
