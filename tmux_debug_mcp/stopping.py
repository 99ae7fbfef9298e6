"""Stopping what runs in the foreground of a shell's pane, and knowing whether that stopped."""

import os
import signal
import time

import anyio

from . import linux, terminals
from .keys import INTERRUPT
from .panes import Pane
from .shells import foreground_shell

# Shells that we can't tell a prompt of.
OTHER_SHELLS = ("ksh", "ksh93", "mksh", "tcsh", "bsd-csh", "csh", "yash", "elvish", "nu", "xonsh", "pwsh")
# How long what was told to stop gets for it.
STOP_S = 5.0
# Programs that come and go are told after so long.
_SHELL_S = 0.5
_LOOK_AGAIN_S = 0.005
# What has the terminal is told once it has had it for so long. A C-c that comes while bash starts a program can leave
# the terminal with that, and then bash takes its end of input for its own.
STEADY_S = 0.05
# What was typed so long ago has been read by a shell at its prompt.
_TAKE_S = 0.1
# All that was printed has come to the log when it has been quiet for so long.
_QUIET_S = 0.02
_LATE_S = 0.2
# A shell that has just got its terminal back comes to its prompt.
_PROMPT_S = 0.05


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
    while await _is_idle(pane, _PROMPT_S, starting_s=_SHELL_S):
        if not pane.keyboard.sent or time.time() > pane.keyboard.sent[-1].at + _TAKE_S:
            if pane.keyboard.is_line_used and number == signal.SIGINT:
                await pane.keyboard.press(INTERRUPT)
                pane.keyboard.is_line_used = False
            return "nothing runs there, the shell is at its prompt"
        await anyio.sleep(_LOOK_AGAIN_S)
    stopping = _Stopping(pane, number)
    while stopping.time_s < STOP_S:
        stat = linux.read_stat(pane.process.pid)
        if stat is None or stat.reaped or await _is_idle(pane, 0.0, starting_s=0.0):
            await _settle(pane)
            return None
        if reason := await stopping.step(stat.tpgid):
            return reason
        await anyio.sleep(_LOOK_AGAIN_S)
    state = await pane.state()
    running = f"{state.foreground or 'it'} still runs {STOP_S:g} s after that; {advice(number)}"
    return running if state.is_running else None


def advice(number: signal.Signals) -> str:
    """Say what may help when a signal did not."""
    return "SIGTERM may help" if number == signal.SIGINT else "close_tab ends all that runs there"


class _Stopping:
    """What was told to stop, and since when."""

    def __init__(self, pane: Pane, number: signal.Signals) -> None:
        self._pane = pane
        self._number = number
        self._begin = self._since = anyio.current_time()
        self._group = -1
        self._told: set[int] = set()

    @property
    def time_s(self) -> float:
        return anyio.current_time() - self._begin

    async def step(self, group: int) -> str | None:
        """Tell the process group that has the terminal, if it is time for that; return why it can't be."""
        if group != self._group:
            self._group, self._since = group, anyio.current_time()
        is_steady = anyio.current_time() > self._since + STEADY_S or self.time_s > _SHELL_S
        if not is_steady:
            return None
        shell = foreground_shell(self._pane.process.pid)
        if shell is None or not shell.is_interactive():
            return None if group in self._told else await self._tell(group)
        # Dash has no line editor that sets the modes which a program left behind, and has read what was typed then.
        if not shell.kind.has_editor and self._told and terminals.restore(self._pane.process.pid):
            await self._pane.keyboard.press(INTERRUPT)
        if self._told:
            return None
        if self._number == signal.SIGINT:
            return await self._tell(group)
        is_late = self.time_s > _SHELL_S
        return "the shell itself is at work, which only SIGINT stops" if is_late else None

    async def _tell(self, group: int) -> str | None:
        self._told.add(group)
        if self._number == signal.SIGINT:
            await self._pane.keyboard.press(INTERRUPT)
            return None
        try:
            os.killpg(group, self._number)
        except PermissionError:
            return "it belongs to another user"
        except ProcessLookupError:  # it has ended meanwhile
            return None
        return None


async def _is_idle(pane: Pane, patience_s: float, *, starting_s: float) -> bool:
    """Tell whether the pane's shell has the terminal and waits; of one that we don't know, whether it has it."""
    if await pane.terminal.prompt(patience_s, starting_s=starting_s):
        return True
    stat, below = linux.read_stat(pane.process.pid), linux.children(pane.process.pid)
    main = linux.read_stat(below[0]) if below else None
    if stat is None or main is None or stat.tpgid != main.pgrp:
        return False
    return linux.program(main.pid) in OTHER_SHELLS


async def _settle(pane: Pane) -> None:
    """Wait until what was printed last has come to the log."""
    with anyio.move_on_after(_LATE_S):
        while time.time() < pane.log.written_at + _QUIET_S:
            await anyio.sleep(_LOOK_AGAIN_S)
