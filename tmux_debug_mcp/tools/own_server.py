"""Our own tmux server as the toolset `tmux` uses it; it has the methods of `UsersServer`."""

import contextlib
import operator
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tmux_debug_mcp.errors import CommandError, PaneNotFoundError
from tmux_debug_mcp.panes.capturing import capture, capture_rows
from tmux_debug_mcp.panes.creation import Destination, NewPane, interactive_shell
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.sending import send
from tmux_debug_mcp.panes.sizing import arranging, take_sizes
from tmux_debug_mcp.panes.watching import rest
from tmux_debug_mcp.tmux.targets import PaneRow, panes_format, parse
from tmux_debug_mcp.tmux.users_server import CreatedPane, escaped
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS
from tmux_debug_mcp.vt.steps import Keystrokes, confirmation


class OwnServer:
    """Our own tmux server. Its panes are the engine's; a window without one is not shown.

    Every method may raise CommandError if tmux refuses a command, TmuxGoneError if the server has
    ended, and TmuxStuckError if it does not answer. Those that make, type or read may also raise
    PaneNotFoundError, PaneLostError if the pane is gone, and StorageError if there is no room for a
    file; those that make, PaneLimitError. Those that change the panes of a window raise
    KeyboardHeldError while a person has a keyboard there.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Our ids of the windows that got no name. tmux can't name them after their programs: it
        # would see pane.sh.
        self._unnamed: set[str] = set()

    async def rows(self) -> list[PaneRow]:
        """Return all panes in tmux's order, none if no server runs.

        A window that got no name has that of the program in its active pane, as in tmux itself.
        """
        client = self._engine.host.client
        if client is None:
            return []
        separator = secrets.token_hex(8)
        [lines] = await client.run(("list-panes", "-a", "-F", panes_format(separator)))
        text = "\n".join(line.decode(errors="replace") for line in lines)
        targets = {pane.target for pane in self._engine.panes if pane.client is client}
        rows = [row for row in parse(text, separator, client.offsets) if row.tmux_pane in targets]
        # Our control mode client, which is attached to a session, does not count.
        rows = [
            replace(row, session_attached=str(int(row.session_attached) - 1))
            if row.tmux_session == client.session
            else row
            for row in rows
        ]
        unnamed = [row for row in rows if row.window_id in self._unnamed and row.pane_active == "1"]
        states = await self._states(unnamed)
        names = {
            row.window_id: states[row.tmux_pane].foreground
            for row in unnamed
            if row.tmux_pane in states
        }
        return [
            replace(row, window_name=names.get(row.window_id) or row.window_name) for row in rows
        ]

    async def commands_of(self, rows: Sequence[PaneRow]) -> list[str]:
        """Return the names of panes' foreground programs, or how their programs ended."""
        states = await self._states(rows)
        found = [states.get(row.tmux_pane) for row in rows]
        return [(state.foreground or state.ending) if state else "killed" for state in found]

    async def _states(self, rows: Sequence[PaneRow]) -> dict[str, State]:
        """Return the states of panes that are still there, by tmux's ids."""
        targets = {row.tmux_pane for row in rows}
        client = self._engine.host.client
        panes = [pane for pane in self._engine.panes if pane.client is client]
        states = await self._engine.states([pane for pane in panes if pane.target in targets])
        return {pane.target: state for pane, state in states}

    async def rename_window(self, row: PaneRow, name: str) -> None:
        """Give a window a name, which it keeps."""
        await self.run("rename-window", "-t", row.tmux_window, "--", escaped(name))
        self._unnamed.discard(row.window_id)

    async def run(self, *words: str) -> None:
        """Run a tmux command."""
        client = self._engine.host.client
        if client:
            await client.run(words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        """Resize a pane, by flags of resize-pane."""
        panes = [other for other in await self.rows() if other.window_id == row.window_id]
        command = "resize-pane"
        if len(panes) == 1 and flags[0] in ("-x", "-y"):
            command = "resize-window"  # a pane that is alone has its window's size
        async with arranging(self._engine, row.window_id):
            await self.run(command, "-t", row.tmux_pane, *flags)
        await self._take_sizes()

    async def select_pane(self, row: PaneRow) -> None:
        """Make a pane the active one of its window."""
        async with arranging(self._engine, row.window_id):
            await self.run("select-pane", "-t", row.tmux_pane)

    async def create_session(
        self, name: str, window_name: str | None, command: str | None
    ) -> CreatedPane:
        """Make a session."""
        client = await self._engine.host.connected()
        keeper = self._engine.host.session
        if name == keeper:
            raise CommandError("new-session", f"duplicate session: {name}")
        # Only tmux knows what name it makes of a given one. So our own session gets the name for a
        # moment, which fails if it is taken, before anything is started.
        probe = ("rename-session", "-t", client.session, "--", escaped(name))
        back = ("rename-session", "-t", client.session, "--", keeper)
        temporary = secrets.token_hex(8)
        title = escaped(window_name or _title(self._engine.origin.env, command))
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        destination = Destination(
            ["new-session", "-d", "-s", temporary, *size, "-n", title],
            target=f"={temporary}:",
            first=(probe, back),
            then=("rename-session", "-t", f"={temporary}", "--", escaped(name)),
            undo=("kill-session", "-t", f"={temporary}"),
        )
        try:
            made = await self._create(name, command, destination)
        except CommandError as error:
            raise CommandError("new-session", error.reason) from error
        if window_name is None:
            self._unnamed.add(made.window_id)
        return made

    async def create_window(
        self, row: PaneRow, name: str | None, command: str | None
    ) -> CreatedPane:
        """Make a window in the session of a row."""
        title = escaped(name or _title(self._engine.origin.env, command))
        words = ["new-window", "-n", title, "-t", f"{row.tmux_session}:"]
        destination = Destination(words, f"{row.tmux_session}:")
        made = await self._create(name, command, destination)
        if name is None:
            self._unnamed.add(made.window_id)
        return made

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> CreatedPane:
        """Split a pane, by flags of split-window."""
        destination = Destination(["split-window", *flags, "-t", row.tmux_pane], row.tmux_window)
        async with arranging(self._engine, row.window_id):
            made = await self._create(None, command, destination)
        await self._take_sizes()
        return made

    async def send(self, row: PaneRow, target: str, steps: Sequence[Keystrokes]) -> str:
        """Send steps to a pane, which the call names `target`, and return the confirmation.

        Raises:
            PaneExitedError: The pane's program has ended.
            SignalError: A signal can't be sent.
        """
        sent = await send(self._pane(row), steps)
        return confirmation(target, steps, sent.done, sent.why_not, remarks=sent.remarks)

    async def capture_rows(self, row: PaneRow, start: int, end: int) -> str:
        """Return rows of a pane: 0 is the screen's first, -1 the history's last."""
        return await capture_rows(self._pane(row), start, end)

    async def capture_lines(self, row: PaneRow, lines: int) -> str:
        """Return the last lines; a wrapped line counts as one."""
        return await capture(self._pane(row), lines)

    async def capture_screen(self, row: PaneRow) -> str:
        """Return the rows of the screen."""
        return await capture_rows(self._pane(row), 0, int(row.pane_height) - 1)

    async def kill(self, kind: str, row: PaneRow) -> State | None:
        """End a `session`, `window` or `pane`; return how a pane ended."""
        state = None
        id_of = operator.attrgetter(f"{kind}_id")
        while True:  # another call may add panes meanwhile
            inside = [other for other in await self.rows() if id_of(other) == id_of(row)]
            if not inside:
                break
            # While a person works in one of them, those beside it can't be ended.
            held = {pane.target for pane in self._engine.panes if pane.keyboard.holder}
            for other in sorted(inside, key=lambda row: row.tmux_pane not in held):
                with contextlib.suppress(PaneNotFoundError):  # it was killed meanwhile
                    state = await self._engine.kill(self._pane(other))
        await self._take_sizes()
        return state if kind == "pane" else None

    async def _create(
        self, name: str | None, command: str | None, destination: Destination
    ) -> CreatedPane:
        shell = interactive_shell(self._engine.origin.env)
        new = NewPane(
            command or shell,
            name,
            program=() if command else (shell,),
            destination=destination,
        )
        pane = await self._engine.create(new)
        state = await rest(pane, pane.clock.times.early_death_s)
        for row in await self.rows():
            if row.tmux_pane == pane.target:
                return CreatedPane(
                    row.session_id,
                    row.session_name,
                    row.window_id,
                    row.window_index,
                    row.pane_id,
                    exit_code=state.exit_code,
                    signal=state.signal,
                )
        raise PaneNotFoundError(name or pane.id)  # it was killed meanwhile

    async def _take_sizes(self) -> None:
        client = self._engine.host.client
        if client:
            await take_sizes(client, self._engine.panes)

    def _pane(self, row: PaneRow) -> Pane:
        client = self._engine.host.client
        for pane in self._engine.panes:
            if pane.target == row.tmux_pane and pane.client is client:
                return pane
        raise PaneNotFoundError(row.pane_id)


def _title(env: Mapping[str, str], command: str | None) -> str:
    """Return the name that tmux itself would give a window: that of its program."""
    program = command.split()[0] if command else interactive_shell(env)
    return os.path.basename(program)
