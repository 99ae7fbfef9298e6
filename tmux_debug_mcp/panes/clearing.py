"""Clearing a terminal: its screen and its history."""

from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.vt.keys import pressed

from .pane import Pane
from .prompts import AtPrompt, prompt
from .sending import send

_REDRAW = pressed(("C-l",))
_NEW_PROMPT = pressed(("Enter",))
# Cursor to the first column of the first row, then erase the display. Source: ECMA-48, CUP and ED.
_CLEAR = b"\033[H\033[2J"


async def clear(pane: Pane) -> None:
    """Clear the screen and the history of a terminal.

    A shell at its prompt redraws it. The alternate screen stays as it is, since it belongs to the
    program that draws on it.
    """
    await pane.check_running()
    clock, times = pane.clock, pane.clock.times
    shell = await prompt(AtPrompt(pane, times.prompt_soon_s))
    has_editor = shell is not None and shell.dialect.has_editor
    ask = ("display-message", "-p", "-t", pane.target, "#{alternate_on}")
    [[is_alternate]] = await pane.tmux(ask)
    # A line editor clears the screen itself, on C-l.
    if is_alternate == b"0" and not has_editor:
        terminals.write(pane.leader.pid, _CLEAR)
    if shell:
        async with pane.subscribe() as subscription:
            await send(pane, [_REDRAW if has_editor else _NEW_PROMPT])
            with clock.move_on_after(times.redraw_s):
                await subscription.wait(times.redraw_s)
                size = -1
                while size != pane.log.size:
                    size = pane.log.size
                    await clock.sleep(times.redrawn_quiet_s)
    await pane.tmux(("display-message", "-p", ""), ("clear-history", "-t", pane.target))
