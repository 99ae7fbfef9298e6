"""What can be read of a pane: a live one, or one of which only a kept log is left."""

import contextlib
from dataclasses import replace
from typing import Protocol

from tmux_debug_mcp.errors import PaneLostError
from tmux_debug_mcp.logs.archive import ArchivedPane
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import read_last_lines, read_screen

from .capturing import capture, capture_screen
from .looking.state import State, ended_state
from .pane import Pane


class Readable(Protocol):
    """A pane that can be read. Whoever has one must close it."""

    @property
    def id(self) -> str:
        """Our id of the pane, or `RUN/ID` of a kept log."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def command(self) -> str:
        """The command that it was made for."""

    @property
    def log(self) -> Log:
        """Its log."""

    async def state(self) -> State:
        """Return its present state. If its program has ended, its output is complete."""

    async def ensure_log_writer(self) -> None:
        """Start the log's writer again if it has ended."""

    async def last_lines(self, lines: int, max_characters: int, *, ansi: bool = False) -> str:
        """Return the last lines of the screen and its history, or of the alternate screen alone.

        Args:
            lines: The maximum number of logical lines.
            max_characters: The maximum length of all of them. A live pane may have more.
            ansi: Keep colours and attributes. Lines of a log have none.

        Raises:
            StorageError: There is no room for the capture.
        """

    async def screen(self) -> str:
        """Return what the screen shows.

        Raises:
            StorageError: There is no room for the capture.
        """

    @property
    def has_gaps(self) -> bool:
        """Whether some output is missing in the log, since there was no room for it."""

    def take_notices(self) -> list[str]:
        """Return the notices to add to the next result."""

    def close(self) -> None:
        """Release what was opened for reading."""


class LivePane:
    """A pane of this server.

    Args:
        pane: The pane, which stays open.
    """

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self.id: str = pane.id
        self.name = pane.name
        self.command = pane.command
        self.log = pane.log

    @property
    def has_gaps(self) -> bool:
        """Whether some output is missing in the log, since there was no room for it."""
        return self._pane.has_gaps

    async def state(self) -> State:
        """Return the pane's present state."""
        return await self._pane.state()

    async def ensure_log_writer(self) -> None:
        """Start the writer of the pane's log again if it has ended."""
        await self._pane.ensure_log_writer()

    async def last_lines(self, lines: int, max_characters: int, *, ansi: bool = False) -> str:
        """Return the last lines that tmux has; of a pane that is gone, those of its log."""
        with contextlib.suppress(PaneLostError):
            return await capture(self._pane, lines, ansi=ansi)
        return await _logged_lines(self.log, await self.state(), lines, max_characters)

    async def screen(self) -> str:
        """Return what tmux shows; of a pane that is gone, what it showed at the end."""
        with contextlib.suppress(PaneLostError):
            return (await capture_screen(self._pane)).text()
        return await read_screen(self.log, (await self.state()).cursor)

    def take_notices(self) -> list[str]:
        """Return the pane's notices."""
        return self._pane.take_notices()

    def close(self) -> None:
        """Do nothing: the pane is not ours."""


class KeptPane:
    """A pane of which only the log is left.

    Args:
        kept: What the archive has of it; `close` closes its log.
    """

    has_gaps = False

    def __init__(self, kept: ArchivedPane) -> None:
        self._kept = kept
        self.id = kept.target
        self.name = kept.entry.name
        self.command = kept.entry.command
        self.log = kept.log

    async def state(self) -> State:
        """Return how the program ended; it is lost if it ended with its server."""
        runtime_s = max(0.0, self.log.written_at - self._kept.entry.started_at)
        mark = self.log.find_mark()
        if mark:
            return ended_state(mark.exit_code, runtime_s, mark.offset)
        lost = ended_state(None, runtime_s, self.log.size)
        return replace(lost, may_grow=self._kept.is_held)

    async def ensure_log_writer(self) -> None:
        """Do nothing: the log is complete, or another server's."""

    async def last_lines(self, lines: int, max_characters: int, *, ansi: bool = False) -> str:  # noqa: ARG002  logs have no cells
        """Return the last lines that were printed."""
        return await _logged_lines(self.log, await self.state(), lines, max_characters)

    async def screen(self) -> str:
        """Return what the screen showed at the end."""
        return await read_screen(self.log, (await self.state()).cursor)

    def take_notices(self) -> list[str]:
        """Return no notices: a kept log has none."""
        return []

    def close(self) -> None:
        """Close the log."""
        self.log.close()


async def _logged_lines(log: Log, state: State, lines: int, max_characters: int) -> str:
    """Return the last lines of a log up to the cursor of a state, without blank ones at the end."""
    found, _ = await read_last_lines(log, state.cursor, lines, max_characters)
    return "\n".join(found).rstrip(" \n")
