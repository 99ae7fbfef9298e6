"""Stopping what runs in the foreground of a shell's pane, and knowing whether that stopped."""

import os
import signal
import time

import anyio

from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.vt.keys import INTERRUPT

from .activity import Activity, ActivityTracker, StopAction, StopPlan
from .pane import Pane

# Shells that we can't tell a prompt of.
OTHER_SHELLS = ("ksh", "ksh93", "mksh", "tcsh", "bsd-csh", "csh", "yash", "elvish", "nu", "xonsh", "pwsh")
# How long what was told to stop gets for it.
STOP_S = 5.0
_LOOK_AGAIN_S = 0.005
# What was typed so long ago has been read by a shell at its prompt.
_TAKE_S = 0.1
# A shell that has just started, or has just got its terminal back, comes to its prompt.
_SHELL_S, _PROMPT_S = 0.5, 0.05


async def stop(pane: Pane, number: signal.Signals) -> str | None:
    """Stop what runs in the foreground of a pane whose program is a shell, until that is at its prompt.

    What follows in a list of commands is stopped, too. At its prompt, C-c clears what stands on the line.

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
    while await pane.terminal.prompt(_PROMPT_S, starting_s=_SHELL_S) or _is_other_shell(pane):
        if not pane.keyboard.sent or time.time() > pane.keyboard.sent[-1].at + _TAKE_S:
            if pane.keyboard.is_line_used and number == signal.SIGINT:
                await pane.keyboard.press(INTERRUPT)
                pane.keyboard.release_line()
            return "nothing runs there, the shell is at its prompt"
        await anyio.sleep(_LOOK_AGAIN_S)
    tracker, plan = ActivityTracker(), StopPlan(is_interrupt=number == signal.SIGINT)
    deadline = anyio.current_time() + STOP_S
    while anyio.current_time() < deadline:
        activity = await pane.terminal.observe(tracker)
        if activity.snapshot.is_over or activity.shell or _is_other_shell(pane):
            await pane.flush()
            await pane.drain()
            return None
        if reason := await _act(pane, plan, activity, number):
            return reason
        await anyio.sleep(_LOOK_AGAIN_S)
    state = await pane.state()
    running = f"{state.foreground or 'it'} still runs {STOP_S:g} s after that; {advice(number)}"
    return running if state.is_running else None


async def _act(pane: Pane, plan: StopPlan, activity: Activity, number: signal.Signals) -> str | None:
    """Do what it is time for; return why nothing can be done."""
    snapshot = activity.snapshot
    is_interactive = snapshot.shell is not None and snapshot.shell.is_interactive()
    match plan.step(snapshot, anyio.current_time(), is_interactive=is_interactive):
        case StopAction.SIGNAL:
            return await _tell(pane, snapshot.group, number)
        case StopAction.RESTORE:
            if terminals.restore(pane.leader.pid):
                await pane.keyboard.press(INTERRUPT)
        case StopAction.REFUSE:
            return "the shell itself is at work, which only SIGINT stops"
        case StopAction.WAIT:
            pass
    return None


async def _tell(pane: Pane, group: int, number: signal.Signals) -> str | None:
    """Tell a process group to stop; return why it can't be told."""
    if number == signal.SIGINT:
        await pane.keyboard.press(INTERRUPT)
        return None
    try:
        os.killpg(group, number)
    except PermissionError:
        return "it belongs to another user"
    except ProcessLookupError:  # it has ended meanwhile
        return None
    return None


def _is_other_shell(pane: Pane) -> bool:
    """Tell whether a shell that we can't tell a prompt of has the terminal."""
    stat, below = processes.read_stat(pane.leader.pid), processes.children(pane.leader.pid)
    main = processes.read_stat(below[0]) if below else None
    if stat is None or main is None or stat.tpgid != main.pgrp:
        return False
    return processes.program(main.pid) in OTHER_SHELLS


def advice(number: signal.Signals) -> str:
    """Say what may help when a signal did not."""
    return "SIGTERM may help" if number == signal.SIGINT else "close_tab ends all that runs there"
