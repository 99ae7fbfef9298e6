"""Changes to a pane's terminal itself: another size, a clear screen."""

from collections.abc import Iterable

import anyio

from tmux_debug_mcp.errors import TmuxGoneError
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.vt.keys import pressed

from .looking.terminal import PROMPT_SOON_S
from .pane import Pane
from .sending import send

_REDRAW = pressed(("C-l",))
_NEW_PROMPT = pressed(("Enter",))
# Cursor to the first column of the first row, then erase the display. Source: ECMA-48, CUP and ED.
_CLEAR = b"\033[H\033[2J"
# Time for a shell to draw its prompt again. It has done so once it printed nothing for this long.
_REDRAW_S = 0.3
_REDRAWN_QUIET_S = 0.02
# tmux passes a new size on to the terminal within 0.25 s, and only the last one of several.
_RESIZE_S = 1.0
_POLL_S = 0.005


async def resize(pane: Pane, columns: int, rows: int) -> None:
    """Resize a pane's window, and wait until the terminal has the new size.

    Raises:
        PaneLostError: The pane is gone.
    """
    await pane.tmux(("resize-window", "-t", pane.target, "-x", str(columns), "-y", str(rows)))
    await take_size(pane, columns, rows)


async def take_size(pane: Pane, columns: int, rows: int) -> None:
    """Note the size that tmux has given a pane, and wait until the terminal has it, too."""
    log = pane.log
    if (log.columns, log.rows) == (columns, rows):
        return
    log.resize(columns, rows)
    pane.events.notify(log)
    with anyio.move_on_after(_RESIZE_S):
        while terminals.size(pane.leader.pid) not in (None, (columns, rows)):
            await anyio.sleep(_POLL_S)


async def take_sizes(client: ControlClient, panes: Iterable[Pane]) -> None:
    """Note the size that tmux has given each of some panes, and wait until their terminals have it.

    Panes that are gone are skipped.

    Raises:
        TmuxStuckError: tmux does not answer.
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


async def clear(pane: Pane) -> None:
    """Clear the screen and the history of a terminal.

    A shell at its prompt draws the prompt again. The alternate screen stays as it is, since it
    belongs to the program that draws on it.

    Raises:
        PaneExitedError: The pane's program has ended.
        PaneLostError: The pane is gone.
    """
    await pane.check_running()
    shell = await pane.terminal.prompt(PROMPT_SOON_S)
    has_editor = shell is not None and shell.dialect.has_editor
    ask = ("display-message", "-p", "-t", pane.target, "#{alternate_on}")
    [[is_alternate]] = await pane.tmux(ask)
    # A line editor clears the screen itself, at C-l.
    if is_alternate == b"0" and not has_editor:
        terminals.write(pane.leader.pid, _CLEAR)
    if shell:
        await _redraw_prompt(pane, has_editor=has_editor)
    await pane.tmux(("display-message", "-p", ""), ("clear-history", "-t", pane.target))


async def _redraw_prompt(pane: Pane, *, has_editor: bool) -> None:
    """Have a shell at its prompt draw that again, and wait until it has."""
    keystrokes = _NEW_PROMPT
    if has_editor:
        keystrokes = _REDRAW
    async with pane.subscribe() as subscription:
        await send(pane, [keystrokes])
        with anyio.move_on_after(_REDRAW_S):
            await subscription.wait(_REDRAW_S)
            size = -1
            while size != pane.log.size:
                size = pane.log.size
                await anyio.sleep(_REDRAWN_QUIET_S)
