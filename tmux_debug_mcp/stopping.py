"""Stopping what runs in the foreground of a shell's pane, and knowing whether that stopped."""

import os
import signal
import time

import anyio

from . import linux
from .keys import Keystrokes
from .panes import Pane
from .shells import foreground_shell

_C_C = Keystrokes("", is_paste=False, keys=("C-c",), done="")
# How long what was told to stop gets for it.
_STOP_S = 5.0
# Programs that come and go are told after so long.
_SHELL_S = 0.5
_LOOK_AGAIN_S = 0.005
# What has the terminal is told once it has had it for so long. A C-c that comes while bash starts a program can leave
# the terminal with that, and then bash takes its end of input for its own.
_STEADY_S = 0.05
# What was typed so long ago has been read by a shell at its prompt.
_TAKE_S = 0.1
# All that was printed has come to the log when it has been quiet for so long.
_QUIET_S = 0.02
_LATE_S = 0.2
# A shell that has just got its terminal back comes to its prompt.
_PROMPT_S = 0.05


async def stop(pane: Pane, number: signal.Signals) -> str | None:
    """Stop what runs in the foreground of a pane whose program is a shell, until that is at its prompt.

    What follows in a list of commands is stopped, too.

    Args:
        pane: The pane.
        number: SIGINT presses C-c; another signal is sent to the foreground process group.

    Returns:
        None once the shell is at its prompt or the pane's program has ended; else why not.

    Raises:
        PaneExitedError: The pane's program has ended.
        PaneLostError: The pane is gone.
    """
    await pane.check_running()
    while await _is_idle(pane, _PROMPT_S):
        if not pane.sent or time.time() > pane.sent[-1].at + _TAKE_S:
            return "nothing runs there, the shell is at its prompt"
        await anyio.sleep(_LOOK_AGAIN_S)
    told: set[int] = set()
    begin = since = anyio.current_time()
    group = -1
    while (time_s := (now := anyio.current_time()) - begin) < _STOP_S:
        stat = linux.read_stat(pane.process.pid)
        if stat is None or stat.reaped or await _is_idle(pane, 0.0):
            await _settle(pane)
            return None
        shell = foreground_shell(pane.process.pid)
        is_shell = shell is not None and shell.is_interactive()
        if stat.tpgid != group:
            group, since = stat.tpgid, now
        is_steady = now > since + _STEADY_S or time_s > _SHELL_S
        is_new = is_steady and group not in told
        if number == signal.SIGINT and is_new and not (is_shell and told):
            await _press(pane)
            told.add(group)
        elif not is_shell and is_new:
            if not _send(group, number):
                return "it belongs to another user"
            told.add(group)
        elif time_s > _SHELL_S and not told:
            return "the shell itself is at work, which only SIGINT stops"
        await anyio.sleep(_LOOK_AGAIN_S)
    state = await pane.state()
    return f"{state.foreground or 'it'} still runs {_STOP_S:g} s after that" if state.is_running else None


async def _is_idle(pane: Pane, patience_s: float) -> bool:
    """Tell whether the pane's shell has the terminal and waits; of one that we don't know, whether it has it."""
    if await pane.prompts.wait(patience_s):
        return True
    stat, below = linux.read_stat(pane.process.pid), linux.children(pane.process.pid)
    main = linux.read_stat(below[0]) if below else None
    if stat is None or main is None or stat.tpgid != main.pgrp or foreground_shell(pane.process.pid):
        return False
    return linux.program(main.pid) == os.path.basename(pane.command.split(" ")[0])


async def _settle(pane: Pane) -> None:
    """Wait until what was printed last has come to the log."""
    with anyio.move_on_after(_LATE_S):
        while time.time() < pane.log.written_at + _QUIET_S:
            await anyio.sleep(_LOOK_AGAIN_S)


async def _press(pane: Pane) -> None:
    with anyio.CancelScope(shield=True):
        async with pane.typing:
            await pane.type(_C_C)


def _send(group: int, number: signal.Signals) -> bool:
    """Signal a process group; tell whether we may."""
    try:
        os.killpg(group, number)
    except PermissionError:
        return False
    except ProcessLookupError:  # it has ended meanwhile
        return True
    return True
