r"""Sending steps of keystrokes to a pane, each as soon as the program is ready for it.

A step waits until the program has read what was typed before and awaits something again: what is
typed too early may go to another program than the caller meant, or meet another mode of the
terminal. What interrupts, C-c, C-\, C-z and signals, is for whatever runs. It waits for nothing,
but gives the step before it a moment to start something.
"""

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.errors import BusyError, SignalError, ToolError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.vt.keys import Keystrokes

from .capturing import capture_screen_rows
from .looking.activity import Snapshot, is_ready_for_step, prompting
from .pane import Pane
from .shells.dialects import Shell
from .watching import watching


@dataclass(frozen=True, slots=True)
class Sending:
    """What was sent.

    Attributes:
        done: The number of steps that were sent.
        why_not: Why the next step was not sent; None when all were.
        first_cursor: The pane's cursor before the first step.
        cursor: The pane's cursor before the last step that was sent.
        before: The snapshot before that step.
        rows: The rows of the screen before that step; empty unless the call keeps the screen.
        signalled: The number of processes that got the last signal; 0 when none was sent.
    """

    done: int
    why_not: str | None
    first_cursor: int
    cursor: int
    before: Snapshot
    rows: Sequence[str]
    signalled: int = 0


async def send(
    pane: Pane,
    steps: Sequence[Keystrokes],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    keeps_screen: bool = False,
) -> Sending:
    """Send one or more steps, each as soon as the program is ready for it.

    Each step but the first may wait for the program until the timeout. One that can't be sent is
    an error only if it is the first. With `keeps_screen`, the screen is captured before each step,
    for a wait that follows.

    Raises:
        BusyError: Another call is sending steps to this pane, and goes on until the timeout.
        PaneExitedError: The program had ended before the first step.
        SignalError: The first step is a signal that can't be sent.
    """
    # What interrupts may come amid the steps of another call.
    if all(step.interrupts for step in steps):
        return await _send_steps(pane, steps, timeout_s, keeps_screen=keeps_screen)
    clock, sequence = pane.clock, pane.keyboard.sequence
    begin = clock.now()
    with clock.move_on_after(max(timeout_s, clock.times.quiet_s)) as waiting:
        await sequence.acquire()
    if waiting.cancelled_caught:
        raise BusyError(pane.id, "the keys of another call", clock.now() - begin)
    try:
        return await _send_steps(pane, steps, timeout_s, keeps_screen=keeps_screen)
    finally:
        sequence.release()


async def _send_steps(
    pane: Pane, steps: Sequence[Keystrokes], timeout_s: float, *, keeps_screen: bool
) -> Sending:
    first = last = await _send_one(pane, steps[0], keeps_screen=keeps_screen)
    signalled = last.signalled
    done, why_not = 1, None
    for step in steps[1:]:
        try:
            why_not = await _wait_until_ready(pane, step, last.before, timeout_s)
            if why_not:
                break
            last = await _send_one(pane, step, keeps_screen=keeps_screen)
        except ToolError as error:  # the caller has to learn of the steps that were sent
            why_not = str(error).removesuffix(".")
            break
        done += 1
        signalled = last.signalled or signalled
    return replace(last, done=done, why_not=why_not, first_cursor=first.cursor, signalled=signalled)


async def _send_one(pane: Pane, step: Keystrokes, *, keeps_screen: bool) -> Sending:
    """Send one step at once, whole."""
    keyboard, times = pane.keyboard, pane.clock.times
    keyboard.check_free()
    # A shell may be about to read: one that starts, or that has just read keys. A step that
    # interrupts waits for neither. But C-c drops unread keys, and a signal is for the program that
    # a line starts, so what was typed just before gets a moment.
    if not step.interrupts:
        # Log the prompt first, so that it isn't taken for output of this line.
        if await pane.terminal.prompt(times.prompt_soon_s, is_sure=False):
            await pane.drain_prompt()
    elif pane.terminal.typed_s < times.typed_s:
        await pane.terminal.prompt(times.prompt_soon_s, starting_s=0.0)
    async with keyboard.lock:
        await pane.check_running()
        keyboard.check_free()
        with anyio.CancelScope(shield=True):
            # Earlier output has to be in the log before the cursor of this step.
            if pane.has_just_printed:
                await pane.flush()
            before = pane.begin_typing()
            shell = prompting(before)
            rows: Sequence[str] = []
            if keeps_screen:
                rows, _ = await capture_screen_rows(pane)
            cursor = keyboard.expect_echo(step, shell, rows).cursor
            signalled = 0
            if step.signal:
                signalled = _send_signal(pane, before.group, step.signal, shell)
            else:
                keyboard.use_line(step)
                await keyboard.type(step)
    return Sending(1, None, cursor, cursor, before, rows, signalled)


def _send_signal(pane: Pane, group: int, name: str, shell: Shell | None) -> int:
    """Send a signal to a process group, and return the number of processes that got it."""
    if shell:
        raise SignalError(name, f"{shell.name} is at its prompt there, and no program runs")
    descendants = map(processes.read_stat, processes.descendants(pane.leader.pid))
    members = [stat.pid for stat in descendants if stat and stat.pgrp == group]
    try:
        # One by one: killpg(2) would also signal pane.sh, which may be in the group.
        for pid in members:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.Signals[name])
    except PermissionError:
        raise SignalError(name, "the program belongs to another user") from None
    return len(members)


async def _wait_until_ready(
    pane: Pane, step: Keystrokes, before: Snapshot, timeout_s: float
) -> str | None:
    """Wait until the program is ready for a step; return None then, else why it is not.

    `before` is the snapshot before the previous step.
    """
    times = pane.clock.times
    begin = pane.clock.now()
    async with watching(pane, before) as watch:
        async for moment in watch.moments(begin + timeout_s):
            if moment.ending:
                return f"the program {moment.ending}"
            pane.keyboard.check_free()
            activity, waited_s = moment.activity, moment.now - begin
            if activity is None:
                continue
            is_due = step.interrupts and (activity.is_at_rest or waited_s >= times.quiet_s)
            if is_due or is_ready_for_step(times, activity, before, waited_s):
                return None
    foreground = watch.activity and watch.activity.snapshot.foreground
    return f"after {timeout_s:g} s {foreground or 'the program'} does not read what is typed"
