"""Sending keys: step by step, each when the program awaits it.

A step that is text goes out when nothing typed is unread and the terminal is awaited again. What is typed sooner may be
read by another program than it is meant for, and in another mode of the terminal. Keys and signals are for what runs,
and wait a moment only.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from tmux_debug_mcp.errors import BusyError, SignalError, ToolError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.vt.keys import Keystrokes

from .activity import QUIET_S, Activity, ActivityTracker, Snapshot
from .capturing import capture_screen_rows
from .pane import Pane

# The shell that a program has just returned to comes to its prompt in some milliseconds.
_PROMPT_S = 0.05
# What was printed has come to the log after a millisecond, but on a busy machine.
_IN_FLIGHT_S = 0.01


@dataclass(frozen=True, slots=True)
class Sending:
    """What was sent.

    Attributes:
        done: How many of the steps.
        why_not: Why there are not more.
        first_cursor: Where the pane's log ended before the first step.
        cursor: The same before the last one.
        before: The last look before that.
        rows: What the screen showed then, where a program draws there.
        signalled: How many processes got the last signal.
    """

    done: int
    why_not: str | None
    first_cursor: int
    cursor: int
    before: Snapshot
    rows: Sequence[str]
    signalled: int = 0


async def send(pane: Pane, steps: Sequence[Keystrokes], timeout_s: float, *, keeps_screen: bool = True) -> Sending:
    """Type and press, step by step.

    Args:
        pane: The pane.
        steps: What to type.
        timeout_s: How long each step but the first may wait for its turn.
        keeps_screen: Remember what the screen shows before each step.

    Raises:
        BusyError: Another call types its steps.
        PaneExitedError: The program has ended before the first step.
        PaneLostError: The pane is gone.
        SignalError: A signal can't be sent.
        StorageError: There is no room for the text.
    """
    if not any(step.is_text for step in steps):  # which is for what runs, whatever is typed
        return await _send(pane, steps, timeout_s, keeps_screen=keeps_screen)
    begin = anyio.current_time()
    with anyio.move_on_after(max(timeout_s, QUIET_S)) as waiting:
        await pane.keyboard.sequence.acquire()
    if waiting.cancelled_caught:
        raise BusyError(pane.id, "the keys of another call", anyio.current_time() - begin)
    try:
        return await _send(pane, steps, timeout_s, keeps_screen=keeps_screen)
    finally:
        pane.keyboard.sequence.release()


async def _send(pane: Pane, steps: Sequence[Keystrokes], timeout_s: float, *, keeps_screen: bool) -> Sending:
    first = last = await send_one(pane, steps[0], keeps_screen=keeps_screen)
    signalled = last.signalled
    for number, step in enumerate(steps[1:], 1):
        why_not = await _turn(pane, step, last, timeout_s)
        if why_not is None:
            try:
                last = await send_one(pane, step, keeps_screen=keeps_screen)
            except ToolError as error:  # what was sent before is to be told, too
                why_not = str(error).removesuffix(".")
        if why_not:
            return replace(last, done=number, why_not=why_not, first_cursor=first.cursor, signalled=signalled)
        signalled = last.signalled or signalled
    return replace(last, done=len(steps), first_cursor=first.cursor, signalled=signalled)


async def send_one(pane: Pane, step: Keystrokes, *, keeps_screen: bool = False) -> Sending:
    """Type and press, whole and in order.

    Raises:
        PaneExitedError: The program has ended.
        PaneLostError: The pane is gone.
        SignalError: A signal can't be sent.
        StorageError: There is no room for the text.
    """
    keyboard = pane.keyboard
    async with keyboard.lock:
        await pane.check_running()
        shell = await pane.terminal.prompt(_PROMPT_S)
        with anyio.CancelScope(shield=True):
            if time.time() - pane.log.written_at < _IN_FLIGHT_S:
                await pane.flush()  # so that what was printed before comes to the log before
            before = pane.begin_typing()
            rows = (await capture_screen_rows(pane))[0] if keeps_screen else []
            sent, signalled = keyboard.expect_echo(step, shell, rows), 0
            if step.signal:
                if shell:
                    raise SignalError(step.signal, f"{shell.name} is at its prompt there, and no program runs")
                signalled = _signal(pane, before.group, step.signal)
            else:
                keyboard.use_line()
                await keyboard.type(step)
    return Sending(1, None, sent.cursor, sent.cursor, before, rows, signalled)


def _signal(pane: Pane, group: int, name: str) -> int:
    """Send a signal to the foreground process group; return how many processes that are.

    Raises:
        SignalError: It belongs to another user.
    """
    below = map(processes.read_stat, processes.descendants(pane.leader.pid))
    members = [stat.pid for stat in below if stat and stat.pgrp == group]
    try:
        # One by one: pane.sh, which may be in that group as well, is not meant.
        for pid in members:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.Signals[name])
    except PermissionError:
        raise SignalError(name, "the program belongs to another user") from None
    return len(members)


async def _turn(pane: Pane, step: Keystrokes, last: Sending, timeout_s: float) -> str | None:
    """Wait until it is time for a step; return why it never is."""
    tracker = ActivityTracker(last.before)
    begin = anyio.current_time()
    async with pane.subscribe() as subscription:
        while True:
            if ending := await pane.ending():
                return f"the program {ending}"
            async with pane.events.looking:
                activity = await pane.terminal.observe(tracker)
            waited_s = anyio.current_time() - begin
            if not step.is_text and (activity.is_at_rest or waited_s >= QUIET_S):
                return None
            if _is_awaited(activity, waited_s):
                return None
            if waited_s >= timeout_s:
                return (
                    f"after {timeout_s:g} s {activity.snapshot.foreground or 'the program'} does not read what is typed"
                )
            await subscription.wait(min(activity.look_again_s * pane.events.load, timeout_s - waited_s))


def _is_awaited(activity: Activity, waited_s: float) -> bool:
    """Tell whether text is awaited; where the kernel can't tell, whether all is quiet.

    A program that awaits it and does other things as well, such as to print a log, gets a while for the text before.
    """
    is_taken = activity.awaits is not None and waited_s >= QUIET_S
    return activity.is_awaiting or is_taken or (activity.is_unclear and activity.quiet_s >= QUIET_S)
