"""Changes to a pane's terminal itself: another size, a clear screen."""

from collections.abc import Iterable

from tmux_debug_mcp.errors import TmuxGoneError
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.vt.keys import pressed

from .pane import Pane
from .sending import send

_REDRAW = pressed(("C-l",))
_NEW_PROMPT = pressed(("Enter",))
# Cursor to the first column of the first row, then erase the display. Source: ECMA-48, CUP and ED.
_CLEAR = b"\033[H\033[2J"


async def resize(pane: Pane, columns: int, rows: int) -> None:
    """Resize a pane's window, and wait until the terminal has the new size."""
    await pane.tmux(("resize-window", "-t", pane.target, "-x", str(columns), "-y", str(rows)))
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


async def clear(pane: Pane) -> None:
    """Clear the screen and the history of a terminal.

    A shell at its prompt draws the prompt again. The alternate screen stays as it is, since it
    belongs to the program that draws on it.
    """
    await pane.check_running()
    clock, times = pane.clock, pane.clock.times
    shell = await pane.terminal.prompt(times.prompt_soon_s)
    has_editor = shell is not None and shell.dialect.has_editor
    ask = ("display-message", "-p", "-t", pane.target, "#{alternate_on}")
    [[is_alternate]] = await pane.tmux(ask)
    # A line editor clears the screen itself, at C-l.
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
