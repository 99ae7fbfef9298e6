"""What is done to a pane's terminal itself: another size, a clear screen."""

import anyio

from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.vt.keys import pressed

from .pane import Pane
from .sending import send_one

_REDRAW = pressed(("C-l",))
_NEW_PROMPT = pressed(("Enter",))
_CLEAR = b"\033[H\033[2J"
# A shell draws its prompt anew at once, and is through with that when it has been quiet for so long.
_REDRAW_S = 0.3
_QUIET_S = 0.02
_PROMPT_S = 0.05
# tmux tells a terminal of one size in 0.25 s, and of the last one of several then.
_RESIZE_S = 1.0
_LOOK_AGAIN_S = 0.005


async def resize(pane: Pane, columns: int, rows: int) -> None:
    """Give a pane's window another size; the programs in it have that when this returns.

    Raises:
        PaneLostError: The pane is gone.
    """
    await pane.tmux(("resize-window", "-t", pane.target, "-x", str(columns), "-y", str(rows)))
    await take_size(pane, columns, rows)


async def take_size(pane: Pane, columns: int, rows: int) -> None:
    """Take note of the size that a pane has got, and wait until its terminal has it, too."""
    if (pane.log.columns, pane.log.rows) == (columns, rows):
        return
    pane.log.resize(columns, rows)
    pane.events.notify(pane.log)
    with anyio.move_on_after(_RESIZE_S):
        while terminals.size(pane.leader.pid) not in (None, (columns, rows)):
            await anyio.sleep(_LOOK_AGAIN_S)


async def clear(pane: Pane) -> None:
    """Clear a terminal's screen and its history; a shell at its prompt shows that again.

    The screen of a full-screen program is its own, and stays.

    Raises:
        PaneExitedError: The pane's program has ended.
        PaneLostError: The pane is gone.
    """
    await pane.check_running()
    shell = await pane.terminal.prompt(_PROMPT_S)
    [[is_alternate]] = await pane.tmux(("display-message", "-p", "-t", pane.target, "#{alternate_on}"))
    has_editor = shell is not None and shell.dialect.has_editor
    if is_alternate == b"0" and not has_editor:
        terminals.write(pane.leader.pid, _CLEAR)
    if shell:
        async with pane.subscribe() as subscription:
            await send_one(pane, _REDRAW if has_editor else _NEW_PROMPT)
            size = -1
            with anyio.move_on_after(_REDRAW_S):
                await subscription.wait(_REDRAW_S)
                while size != pane.log.size:
                    size = pane.log.size
                    await anyio.sleep(_QUIET_S)
    await pane.tmux(("display-message", "-p", ""), ("clear-history", "-t", pane.target))
