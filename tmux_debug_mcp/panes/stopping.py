"""Stopping what runs in the foreground of a shell's pane, until the shell is back.

A pane of ours has stopped once its shell is at its prompt. A pane on the user's own tmux server has
no log, so there it is enough that a shell has the terminal.
"""

import contextlib
import math
import os
import signal
from collections.abc import Awaitable, Callable
from enum import Enum

from tmux_debug_mcp.clock import Clock, Times
from tmux_debug_mcp.errors import KillNotAllowedError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.vt.steps import INTERRUPT

from .looking.activity import Activity, Snapshot
from .pane import Pane
from .prompts import AtPrompt
from .shells.dialects import OTHER_SHELLS, SHELLS, Shell, shell_of
from .watching import Later, Moment, Need, until


class StopAction(Enum):
    """The next action of a stop."""

    SIGNAL = "signal the foreground process group"
    SIGNAL_LIST = "signal that group, and interrupt the shell, which would go on with its list"
    RESTORE = "restore the terminal's modes"
    REFUSE = "give up, since a signal would end the shell"
    GIVE_UP = "give up, since the program awaits something all the same"
    END = "nothing: it has stopped"


class StopPlan:
    """Decides, as a rule, how to stop what runs in a shell until the shell itself has the terminal.

    - It has stopped when the shell is at its prompt, or has ended.
    - Each process group gets the signal once, after it has had the terminal for `times.steady_s`.
    - If another program follows a signalled program, the shell runs a loop or a list, which only
      C-c ends. So the shell is interrupted, too.
    - While no process group has the terminal, as between two programs, there is none to signal.
    - A shell in the foreground is left alone once a program was signalled: it goes to its prompt.
    - A shell that is itself at work gets C-c, which it obeys, and no other signal.
    - Debuggers, pagers and editors take C-c for a key or go back to their prompt. So a program
      that has got the signal and awaits something won't stop.
    """

    def __init__(self, times: Times, *, is_interrupt: bool) -> None:
        self._times = times
        self._is_interrupt = is_interrupt
        self._begun_at: float | None = None
        self._group = -1
        self._group_since = 0.0
        self._signalled: dict[int, float] = {}  # when each group got the signal
        self._restored_at = -math.inf

    def __call__(self, moment: Moment) -> StopAction | Need | None:
        """Return what to do at this moment; None for nothing."""
        if moment.ending:
            return StopAction.END
        if moment.activity is None:
            return Need.LOOK
        if moment.activity.snapshot.is_over or moment.activity.shell:
            return StopAction.END
        action = self._act(moment.activity.snapshot, moment)
        told_at = max(self._signalled.values(), default=math.inf)
        is_in_vain = moment.activity.only_awaits and moment.now >= told_at + self._times.quiet_s
        return StopAction.GIVE_UP if not action and is_in_vain else action

    def _act(self, snapshot: Snapshot, moment: Moment) -> StopAction | None:
        now = moment.now
        if self._begun_at is None:
            self._begun_at = now
        if snapshot.group != self._group:
            self._group = snapshot.group
            self._group_since = now
        is_late = now > self._begun_at + self._times.unsteady_s
        is_steady = now > self._group_since + self._times.steady_s
        if snapshot.group <= 0 or not (is_steady or is_late):
            return None
        if not moment.takes_commands:
            return self._signal_once(snapshot.group, now)
        if self._signalled:
            # Only a shell with a line editor resets the modes that a program left behind.
            keeps_modes = snapshot.shell and not snapshot.shell.dialect.has_editor
            if not keeps_modes or now < self._restored_at + self._times.poll_s:
                return None
            self._restored_at = now
            return StopAction.RESTORE
        if self._is_interrupt:
            return self._signal_once(snapshot.group, now)
        return StopAction.REFUSE if is_late else None

    def _signal_once(self, group: int, now: float) -> StopAction | None:
        if group in self._signalled:
            return None
        is_list = bool(self._signalled) and not self._is_interrupt
        self._signalled[group] = now
        return StopAction.SIGNAL_LIST if is_list else StopAction.SIGNAL


async def stop(pane: Pane, number: signal.Signals, advice: str) -> str | None:
    """Stop what runs in the foreground of a pane whose program is a shell.

    This also stops the rest of a loop or of a list of commands. For SIGINT, it presses C-c, which
    clears the command line of a shell at its prompt; it sends other signals to the foreground
    process group.

    Return None once the shell is at its prompt or has ended; else why it is not known to have
    stopped, with the `advice` on what to try next if a program still runs.
    """
    await pane.check_running()
    pane.keyboard.check_free()
    if await _is_at_prompt(pane):
        if number == signal.SIGINT and pane.keyboard.is_line_used:
            await pane.keyboard.press(INTERRUPT)
            pane.keyboard.release_line()
        return "nothing runs there: the shell is at its prompt"
    clock, times = pane.clock, pane.clock.times
    plan = StopPlan(times, is_interrupt=number == signal.SIGINT)
    deadline = clock.now() + times.stop_s

    def rule(moment: Moment) -> StopAction | Need | None:
        return StopAction.END if _is_other_shell(pane) else plan(moment)

    while True:
        action, moment = await until(pane, rule, deadline)
        if moment.ending:
            return None
        if action is StopAction.END:
            await pane.flush()
            await pane.drain()
            return None
        if action is None or moment.activity is None:
            break
        refusal = await _act(pane, action, moment.activity, number, advice)
        if refusal:
            return refusal
    state = await pane.state()
    if not state.is_running:
        return None
    return f"{state.foreground or 'it'} is still running {times.stop_s:g} s later; {advice}"


async def _is_at_prompt(pane: Pane) -> bool:
    """Return whether the shell is at its prompt to stay: it has read everything typed."""
    times = pane.clock.times
    at_prompt = AtPrompt(pane, times.prompt_soon_s, times.stop_starting_s)

    def stays(moment: Moment) -> bool | Need | Later:
        answer = _is_other_shell(pane) or at_prompt(moment)
        if isinstance(answer, Need | Later):
            return answer
        if answer and pane.terminal.typed_s <= times.typed_s:
            return Later(moment.now + times.poll_s)
        return bool(answer)

    is_at_prompt, _ = await until(pane, stays, math.inf)
    return bool(is_at_prompt)


async def _act(
    pane: Pane, action: StopAction, activity: Activity, number: signal.Signals, advice: str
) -> str | None:
    """Do what the plan says for a look. Return why the stop ends with that, or None."""
    snapshot = activity.snapshot
    if action is StopAction.GIVE_UP:
        awaits = activity.awaits.value if activity.awaits else "input"
        return f"{snapshot.foreground or 'it'} keeps running and awaits {awaits}; {advice}"
    if action is StopAction.REFUSE:
        return "the shell itself is busy, and only SIGINT stops it"
    if action is StopAction.RESTORE:
        if terminals.restore(pane.leader.pid):
            await pane.keyboard.press(INTERRUPT)
        return None
    if action is StopAction.SIGNAL_LIST:
        # The shell that started the program, and waits for it.
        program = processes.read_stat(snapshot.pid) if snapshot.pid else None
        shell = shell_of(processes.read_stat(program.ppid)) if program else None
        if shell and shell.is_interactive():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(shell.pid, signal.SIGINT)
    if number == signal.SIGINT:
        await pane.keyboard.press(INTERRUPT)
        return None
    pane.keyboard.check_free()
    return _kill(snapshot.group, number)


def _kill(group: int, number: signal.Signals) -> str | None:
    try:
        os.killpg(group, number)
    except PermissionError:
        return "the program belongs to another user"
    except ProcessLookupError:  # it has just ended
        return None
    return None


def _is_other_shell(pane: Pane) -> bool:
    """Return whether the pane's program is one of OTHER_SHELLS and has the terminal."""
    leader = processes.read_stat(pane.leader.pid)
    children = processes.children(pane.leader.pid)
    if leader is None or not children:
        return False
    program = processes.read_stat(children[0])
    if program is None or leader.tpgid != program.pgrp:
        return False
    return processes.program(program.pid) in OTHER_SHELLS


async def stop_for_shell(
    leader: Stat,
    number: signal.Signals,
    interrupt: Callable[[], Awaitable[object]],
    clock: Clock,
    *,
    may_close: bool,
) -> str | None:
    """Stop the foreground of a terminal that is not ours, until a shell has it or the leader ends.

    Each process group gets the signal once, after it has had the terminal for `times.steady_s`; for
    SIGINT, `interrupt` presses C-c. This goes on as long as a program does, so the caller sets a
    limit. `may_close` allows stopping the leader itself, which closes the terminal; without it,
    KillNotAllowedError is raised if only the leader runs there.

    Return None once it has stopped, else why it has not.
    """
    times = clock.times
    signalled: set[int] = set()
    group, group_since = -1, 0.0
    while now := processes.read_living(leader.pid, leader.starttime):
        if now.tpgid != group:
            group, group_since = now.tpgid, clock.now()
        if group > 0 and clock.now() > group_since + times.steady_s:
            if _is_shell(group):
                break
            if group == now.pgrp and not may_close:
                if not signalled:
                    raise KillNotAllowedError
                break
            if group not in signalled:
                signalled.add(group)
                if number == signal.SIGINT:
                    await interrupt()
                elif reason := _kill(group, number):
                    return reason
        await clock.sleep(times.poll_s)
    if signalled:
        return None
    if number == signal.SIGINT:  # which clears the line
        before = processes.run_ns(group)
        await interrupt()
        with clock.move_on_after(times.redraw_s):
            await _prompts(group, before, clock)
    return "nothing runs there: the shell has the terminal"


async def _prompts(shell: int, before_ns: int, clock: Clock) -> None:
    """Wait until a shell has used more processor time than `before_ns`, and sleeps."""
    while True:
        has_run = processes.run_ns(shell) != before_ns
        stat = processes.read_stat(shell)
        if has_run and (stat is None or stat.state == "S"):
            return
        await clock.sleep(clock.times.poll_s)


def _is_shell(pid: int) -> bool:
    process = processes.read_stat(pid)
    if process is None or process.is_fork or process.comm not in SHELLS:
        return False
    return Shell(pid, process.comm, (0, 0)).is_interactive()
