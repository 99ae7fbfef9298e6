"""Replays a log in a terminal of tmux, so that it shows what tmux showed then.

The bytes of the log go through a pipe into a pane of a private tmux server, up to the wanted
cursor, and the terminal is resized where it was resized. The log reaches the viewer's terminal only
by way of tmux.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path

import anyio

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes.creation import NewPane
from tmux_debug_mcp.panes.engine import open_engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.settings import Settings

_PIECE_BYTES = 1 << 16
_POLL_S = 0.002
# Time for the pane's program to open the pipe.
_START_S = 10.0
# Prints what comes through a pipe. The terminal is raw, since the bytes of a log came out of a
# terminal, which has already changed the ends of lines.
_PRINT = """
import shutil, sys, tty

tty.setraw(0)
with open(sys.argv[1], "rb", 0) as source, open(1, "wb", 0) as terminal:
    shutil.copyfileobj(source, terminal)
"""


class Replay:
    """A log, replayed in a pane up to `cursor`. `open_replay` makes it.

    The pane prints what is written to `pipe`.
    """

    def __init__(self, log: Log, pane: Pane, pipe: int) -> None:
        self.pane = pane
        self.cursor = log.kept_from
        self._log = log
        self._pipe = pipe
        self._before = pane.log.size
        self._fed = 0
        self._resizes = list(log.timing.resizes)

    async def advance(self, cursor: int) -> None:
        """Show the log up to a cursor, which must not be before the present cursor."""
        due = [change for change in self._resizes if change.cursor <= cursor]
        del self._resizes[: len(due)]
        for at, changes in groupby(due, key=lambda change: change.cursor):
            await self._feed(at)
            # It doesn't matter when the pane's program learns of it.
            resize = ("resize-window", "-t", self.pane.target)
            sizes = [(change.columns, change.rows) for change in changes]
            await self.pane.tmux(
                *((*resize, "-x", str(columns), "-y", str(rows)) for columns, rows in sizes)
            )
            self.pane.log.resize(*sizes[-1])
        await self._feed(cursor)

    async def _feed(self, end: int) -> None:
        while self.cursor < end:
            data = self._log.read(self.cursor, min(_PIECE_BYTES, end - self.cursor))
            if not data:
                break
            view = memoryview(data)
            while view:
                try:
                    written = os.write(self._pipe, view)
                except BlockingIOError:
                    await anyio.wait_writable(self._pipe)
                    continue
                view = view[written:]
                self._fed += written
            self.cursor += len(data)
        while self.pane.log.size - self._before < self._fed:
            await self.pane.check_running()
            await anyio.sleep(_POLL_S)


@asynccontextmanager
async def open_replay(log: Log, settings: Settings) -> AsyncIterator[Replay]:
    """Open a replay at the beginning of what is kept of a log. The block leaves nothing behind.

    Raises:
        TmuxStartError: tmux does not start.
    """
    timing = log.timing
    async with open_engine(settings) as engine:
        # The supervisor removes this directory, even after a SIGKILL of this process.
        directory = (await engine.host.connected()).directory
        printed = directory / "printed"
        os.mkfifo(printed, 0o600)
        program = (sys.executable, "-I", "-S", "-c", _PRINT, str(printed))
        pane = await engine.create(
            NewPane("replay", program=program, columns=timing.columns, rows=timing.rows)
        )
        pipe = await _open_for_writing(printed)
        try:
            yield Replay(log, pane, pipe)
        finally:
            os.close(pipe)


async def _open_for_writing(fifo: Path) -> int:
    """Open a named pipe once somebody reads it."""
    with anyio.fail_after(_START_S):
        while True:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:  # nobody reads it yet
                await anyio.sleep(_POLL_S)
