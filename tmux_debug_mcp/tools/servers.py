"""The tmux servers that the toolset `tmux` works on: our own, and through `UsersServer` the user's.

On our own server every pane is one of the engine's, with its log.
"""

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from tmux_debug_mcp.errors import (
    CommandError,
    PaneNotFoundError,
)
from tmux_debug_mcp.panes.capturing import capture, capture_rows
from tmux_debug_mcp.panes.creation import Destination, NewPane, check, interactive_shell
from tmux_debug_mcp.panes.display import take_size
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.sending import send_one
from tmux_debug_mcp.panes.state import State
from tmux_debug_mcp.panes.waiting import EARLY_DEATH_S, rest
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.targets import PaneRow, panes_format, parse
from tmux_debug_mcp.tmux.users_server import Made, escaped
from tmux_debug_mcp.vt.keys import Keystrokes
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS


class TmuxServer(Protocol):
    """A tmux server, by ids alone."""

    async def rows(self) -> list[PaneRow]:
        """Return all panes, in tmux's order; none where no server runs."""

    async def command_of(self, row: PaneRow) -> str:
        """Return the name of the program that has a pane's terminal, or how its program ended."""

    async def run(self, *words: str) -> None:
        """Run a tmux command."""

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        """Resize a pane by flags of resize-pane."""

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> Made:
        """Make a session."""

    async def create_window(self, row: PaneRow, name: str | None, command: str | None) -> Made:
        """Make a window in the session of a row."""

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> Made:
        """Split a pane."""

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        """Type and press, whole and in order."""

    async def read_rows(self, row: PaneRow, start: int, end: int) -> str:
        """Return rows of the screen and its history, 0 being the screen's first."""

    async def read_lines(self, row: PaneRow, lines: int) -> str:
        """Return the last lines; one that the terminal wrapped is one."""

    async def read_screen(self, row: PaneRow) -> str:
        """Return what the screen shows."""

    async def kill(self, kind: str, row: PaneRow) -> None:
        """End a session, window or pane."""


class OwnServer:
    """Our own tmux server, as far as it has panes of the engine.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def rows(self) -> list[PaneRow]:
        client = self._engine.host.client
        if client is None:
            return []
        separator = secrets.token_hex(8)
        [lines] = await client.run(("list-panes", "-a", "-F", panes_format(separator)))
        rows = parse("\n".join(line.decode(errors="replace") for line in lines), separator, client.offsets)
        ours = {pane.target for pane in self._engine.panes if pane.client is client}
        return [_without_us(row, client.session) for row in rows if row.tmux_pane in ours]

    async def command_of(self, row: PaneRow) -> str:
        try:
            state = await self._pane(row).state()
        except PaneNotFoundError:  # it was killed meanwhile
            return "killed"
        return state.foreground or "" if state.is_running else _ending(state)

    async def run(self, *words: str) -> None:
        if client := self._engine.host.client:
            await client.run(words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        window = [other for other in await self.rows() if other.window_id == row.window_id]
        # Alone a pane has its window's size.
        is_window = len(window) == 1 and flags[0] in ("-x", "-y")
        await self.run("resize-window" if is_window else "resize-pane", "-t", row.tmux_pane, *flags)
        await self._take_sizes()

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> Made:
        client = await self._engine.host.connected()
        keeper = self._engine.host.session
        if name == keeper:
            raise CommandError("new-session", f"duplicate session: {name}")
        # The name that tmux makes of one is told by tmux alone. So a session of ours has it for a moment, which fails
        # before anything is started; and the new one has another name at first.
        probe = ("rename-session", "-t", client.session, "--", escaped(name))
        back = ("rename-session", "-t", client.session, "--", keeper)
        first = secrets.token_hex(8)
        title = escaped(window_name or _title(self._engine.settings, command))
        words = ["new-session", "-d", "-s", first, "-x", str(COLUMNS), "-y", str(ROWS), "-n", title]
        rename = ("rename-session", "-t", f"={first}", "--", escaped(name))
        undo = ("kill-session", "-t", f"={first}")
        try:
            return await self._create(name, command, Destination(words, f"={first}:", (probe, back), rename, undo))
        except CommandError as error:
            raise CommandError("new-session", error.reason) from error

    async def create_window(self, row: PaneRow, name: str | None, command: str | None) -> Made:
        title = escaped(name or _title(self._engine.settings, command))
        words = ["new-window", "-n", title, "-t", f"{row.tmux_session}:"]
        return await self._create(name, command, Destination(words, f"{row.tmux_session}:"))

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> Made:
        destination = Destination(["split-window", *flags, "-t", row.tmux_pane], row.tmux_window)
        made = await self._create(None, command, destination)
        await self._take_sizes()
        return made

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        await send_one(self._pane(row), keystrokes)

    async def read_rows(self, row: PaneRow, start: int, end: int) -> str:
        return await capture_rows(self._pane(row), start, end)

    async def read_lines(self, row: PaneRow, lines: int) -> str:
        return await capture(self._pane(row), lines)

    async def read_screen(self, row: PaneRow) -> str:
        return await capture_rows(self._pane(row), 0, int(row.pane_height) - 1)

    async def kill(self, kind: str, row: PaneRow) -> None:
        for other in await self.rows():
            if _is_in(other, kind, row):
                await self._engine.kill(self._pane(other))
        await self._take_sizes()

    async def _create(self, name: str | None, command: str | None, destination: Destination) -> Made:
        shell = interactive_shell(self._engine.settings)
        new = NewPane(command or shell, name, program=() if command else (shell,), destination=destination)
        check(new)
        pane = await self._engine.create(new)
        await rest(pane, EARLY_DEATH_S)
        for row in await self.rows():
            if row.tmux_pane == pane.target:
                return Made(row.session_id, row.session_name, row.window_id, row.window_index, row.pane_id)
        raise PaneNotFoundError(name or pane.id)  # it was killed meanwhile

    async def _take_sizes(self) -> None:
        """Take note of what size all panes have, and wait until their terminals have it."""
        for row in await self.rows():
            with contextlib.suppress(PaneNotFoundError):  # it was killed meanwhile
                await take_size(self._pane(row), int(row.pane_width), int(row.pane_height))

    def _pane(self, row: PaneRow) -> Pane:
        client = self._engine.host.client
        for pane in self._engine.panes:
            if pane.target == row.tmux_pane and pane.client is client:
                return pane
        raise PaneNotFoundError(row.pane_id)


def _title(settings: Settings, command: str | None) -> str:
    """Return the name that tmux itself gives to a window: that of its program."""
    return os.path.basename(command.split()[0]) if command else os.path.basename(interactive_shell(settings))


def _is_in(row: PaneRow, kind: str, other: PaneRow) -> bool:
    """Tell whether a pane goes when the session, window or pane of another row does."""
    key = {"session": "session_id", "window": "window_id", "pane": "pane_id"}[kind]
    return bool(getattr(row, key) == getattr(other, key))


def _without_us(row: PaneRow, session: str) -> PaneRow:
    """Return a row that does not count our own connection, which is attached to a session of ours."""
    if row.tmux_session != session:
        return row
    return replace(row, session_attached=str(int(row.session_attached) - 1))


def _ending(state: State) -> str:
    if state.is_lost:
        return "lost"
    return f"killed by {state.signal}" if state.signal else f"exited with code {state.exit_code}"
