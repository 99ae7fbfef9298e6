"""Stopping what runs in the foreground of a shell's pane, until the shell is back.

A pane of ours has stopped once its shell is at its prompt. A pane on the user's own tmux server has
no log, so there it is enough that a shell has the terminal.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import KillNotAllowedError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.vt.keys import INTERRUPT

from .looking.activity import Activity, StopAction, StopPlan
from .pane import Pane
from .shells.dialects import DIALECTS, Shell, shell_of
from .watching import watching

# Shells whose prompts we can't recognize: a pane where one has the terminal counts as stopped.
OTHER_SHELLS = (
    *("ksh", "ksh93", "mksh", "tcsh", "bsd-csh", "csh"),
    *("yash", "elvish", "nu", "xonsh", "pwsh"),
)
# The programs that count as shells where only the name is known.
SHELLS = frozenset({*DIALECTS, *OTHER_SHELLS, "sh", "ash"})


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
    async with watching(pane) as watch:
        async for moment in watch.moments(clock.now() + times.stop_s):
            activity = moment.activity
            if moment.ending or activity is None:
                return None
            if activity.snapshot.is_over or activity.shell or _is_other_shell(pane):
                await pane.flush()
                await pane.drain()
                return None
            refusal = await _act(pane, plan, activity, number)
            if refusal:
                return refusal
            if plan.is_in_vain(activity, moment.now):
                foreground = activity.snapshot.foreground or "it"
                awaits = activity.awaits.value if activity.awaits else "input"
                return f"{foreground} keeps running and awaits {awaits}; {advice}"
    state = await pane.state()
    if not state.is_running:
        return None
    return f"{state.foreground or 'it'} is still running {times.stop_s:g} s later; {advice}"


async def _is_at_prompt(pane: Pane) -> bool:
    """Return whether the shell is at its prompt to stay: it has read everything typed."""
    clock, times = pane.clock, pane.clock.times
    while await pane.terminal.prompt(
        times.prompt_soon_s, starting_s=times.stop_starting_s
    ) or _is_other_shell(pane):
        if pane.terminal.typed_s > times.typed_s:
            return True
        await clock.sleep(times.poll_s)
    return False


async def _act(
    pane: Pane, plan: StopPlan, activity: Activity, number: signal.Signals
) -> str | None:
    """Do what the plan says for this moment. Return why that is impossible, or None."""
    snapshot = activity.snapshot
    is_interactive = snapshot.shell is not None and snapshot.shell.is_interactive()
    match plan.step(snapshot, pane.clock.now(), is_interactive=is_interactive):
        case StopAction.WAIT:
            return None
        case StopAction.RESTORE:
            if terminals.restore(pane.leader.pid):
                await pane.keyboard.press(INTERRUPT)
            return None
        case StopAction.REFUSE:
            return "the shell itself is busy, and only SIGINT stops it"
        case StopAction.SIGNAL_LIST:
            # The shell that started the program, and waits for it.
            program = processes.read_stat(snapshot.pid) if snapshot.pid else None
            shell = shell_of(processes.read_stat(program.ppid)) if program else None
            if shell and shell.is_interactive():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(shell.pid, signal.SIGINT)
        case StopAction.SIGNAL:
            pass
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
    """Return whether a process is a shell that takes commands from the terminal."""
    process = processes.read_stat(pid)
    if process is None or process.is_fork or process.comm not in SHELLS:
        return False
    return Shell(pid, process.comm, (0, 0)).is_interactive()
