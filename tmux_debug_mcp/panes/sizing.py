"""Sizes of terminals: those that calls give, and those that tmux has set.

A pane that is alone in its window has the window's size. While a person has its keyboard, that is
the size of their terminal; people who only watch do not matter.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from tmux_debug_mcp.errors import ArgumentError, SizeError, TmuxGoneError
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS, size_of

from .engine import Engine
from .pane import Pane


def given_size(text: str) -> tuple[int, int]:
    """Return the columns and rows of a size like `80x24`; SizeError if it is not valid."""
    size = size_of(text)
    if size is None:
        raise SizeError(text, f"{MAX_COLUMNS}x{MAX_ROWS}")
    return size


@asynccontextmanager
async def arranging(engine: Engine, window: str) -> AsyncIterator[None]:
    """Let the block change the layout of a window. Meanwhile no person gets a keyboard there.

    Raises:
        KeyboardHeldError: A person has a keyboard there.
    """
    async with engine.arranging:
        for pane in engine.panes_in(window):
            pane.keyboard.check_free()
        yield


async def resize(engine: Engine, pane: Pane, columns: int, rows: int) -> None:
    """Resize a pane, and wait until its terminal has the new size, so that programs know it.

    Raises:
        ArgumentError: Its window has other panes, too.
        KeyboardHeldError: A person has its keyboard, and sees it in this size.
        PaneLostError: The pane is gone.
    """
    async with arranging(engine, pane.window):
        if len(engine.panes_in(pane.window)) > 1:
            raise ArgumentError(
                f"Pane '{pane.id}' shares its window with others, so it can't have its own size. "
                "Omit the size."
            )
        await set_size(pane, columns, rows)


async def set_size(pane: Pane, columns: int, rows: int) -> None:
    """Resize the window of a pane, which it has for itself, and wait as `take_size` does."""
    size = ("-x", str(columns), "-y", str(rows))
    await pane.tmux(("resize-window", "-t", pane.target, *size))
    await take_size(pane, columns, rows)


async def take_size(pane: Pane, columns: int, rows: int) -> None:
    """Note the size that tmux has given a pane, and wait until the terminal has it, too."""
    log = pane.log
    if (log.columns, log.rows) == (columns, rows):
        return
    log.resize(columns, rows)
    pane.events.notify(log)
    clock, times = pane.clock, pane.clock.times
    with clock.move_on_after(times.resize_s):
        while terminals.size(pane.leader.pid) not in (None, (columns, rows)):
            await clock.sleep(times.poll_s)


async def take_sizes(client: ControlClient, panes: Iterable[Pane]) -> None:
    """Note the size that tmux has given each pane, and wait until their terminals have it, too.

    Panes that are gone are skipped. Raises TmuxStuckError if tmux does not answer.
    """
    ask = ("list-panes", "-a", "-F", "#{pane_id} #{pane_width} #{pane_height}")
    try:
        [lines] = await client.run(ask)
    except TmuxGoneError:
        return
    sizes = {}
    for line in lines:
        target, columns, rows = line.decode().split()
        sizes[target] = int(columns), int(rows)
    for pane in panes:
        if pane.client is client and pane.target in sizes:
            await take_size(pane, *sizes[pane.target])
