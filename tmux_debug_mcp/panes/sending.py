r"""Sending steps of keystrokes to a pane, each as soon as the program is ready for it.

A step waits until the program has read what was typed before and awaits something again: typed too
early, it may reach the wrong program or the wrong terminal mode. Interrupts (C-c, C-\, C-z and
signals) are for whatever is running. They don't wait for that, but give the step before them a
moment to start something.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.errors import SignalError, ToolError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.matching import Matcher
from tmux_debug_mcp.vt.keys import Keystrokes, pressed

from .keyboard import Sent
from .looking.activity import Snapshot, is_ready_for_step, prompting
from .observing import Observation, rows_now, since_cursor
from .pane import Pane
from .watching import watching

_STOPPED = "stop_pattern matches"

Resize = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Sending:
    """What a call has sent.

    Attributes:
        done: The number of steps that were sent.
        why_not: Why the next step was not sent; None when all were.
        observation: What is new since the first step; None unless asked for.
    """

    done: int = 0
    why_not: str | None = None
    observation: Observation | None = None


async def send(
    pane: Pane,
    steps: Sequence[Keystrokes],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    matcher: Matcher | None = None,
    resize: Resize | None = None,
) -> Sending:
    """Send one or more steps, each as soon as the program is ready for it.

    `resize` runs before them and counts as the first step, so `steps` may then be empty. Each step
    but the first waits for the program until the timeout. A step that can't be sent is an error
    only if it is the first. With a matcher, even one without patterns, the pane is observed from
    the first step on, and no step is sent once its `stop_pattern` has matched.

    Raises:
        BusyError: Another call is still sending steps to this pane at the timeout.
        HiddenInputError: Only a person may type the first step.
        PaneExitedError: The program had ended before the first step.
        SignalError: The first step is a signal that can't be sent.
    """
    # Interrupts may come between the steps of another call.
    if all(step.interrupts for step in steps):
        return await _send_steps(pane, steps, timeout_s, matcher, resize)
    async with pane.keyboard.in_sequence(max(timeout_s, pane.clock.times.quiet_s)):
        return await _send_steps(pane, steps, timeout_s, matcher, resize)


async def _send_steps(
    pane: Pane,
    steps: Sequence[Keystrokes],
    timeout_s: float,
    matcher: Matcher | None,
    resize: Resize | None,
) -> Sending:
    sending = Sending()
    if resize:
        await _resize(pane, resize, sending, matcher)
    if not steps:
        return sending
    last = await _send_one(pane, steps[0], sending, matcher)
    for step in steps[1:]:
        try:
            sending.why_not = await _wait_until_ready(
                pane, step, last.before, timeout_s, sending.observation
            )
            if sending.why_not:
                break
            last = await _send_one(pane, step, sending, matcher)
        except ToolError as error:  # the caller must learn which steps were sent
            sending.why_not = str(error).removesuffix(".")
            break
    return sending


async def _resize(pane: Pane, resize: Resize, sending: Sending, matcher: Matcher | None) -> None:
    """Resize a pane. As with keys, the program may act on it or not."""
    await pane.check_running()
    await _begin(pane, pressed(()), sending, matcher)
    await resize()
    pane.terminal.tmux_has_typed()


async def _begin(pane: Pane, step: Keystrokes, sending: Sending, matcher: Matcher | None) -> Sent:
    """Note that a step is sent now. The first one begins the observation."""
    # Earlier output must be in the log before the cursor of this step.
    if pane.has_just_printed:
        await pane.flush()
    if matcher is None or sending.observation:
        return pane.keyboard.begin(step)
    sent = pane.keyboard.begin(step, await rows_now(pane, matcher))
    sending.observation = await since_cursor(pane, matcher, sent.cursor)
    await sending.observation.step(sent)
    return sent


async def _send_one(
    pane: Pane, step: Keystrokes, sending: Sending, matcher: Matcher | None
) -> Sent:
    """Send one whole step now."""
    keyboard, times = pane.keyboard, pane.clock.times
    keyboard.check_free()
    # A shell that is starting, or has just read keys, may be about to read. An interrupt waits for
    # neither. But C-c drops unread keys, and a signal is for the program that a line starts, so
    # what was typed just before gets a moment.
    if not step.interrupts:
        # Log the prompt first, so that it isn't taken for output of this line.
        if await pane.terminal.prompt(times.prompt_soon_s, is_sure=False):
            await pane.drain_prompt()
    elif pane.terminal.typed_s < times.typed_s:
        await pane.terminal.prompt(times.prompt_soon_s, starting_s=0.0)
    async with keyboard.lock:
        await pane.check_running()
        keyboard.check_free()
        keyboard.check_not_hidden(step)
        with anyio.CancelScope(shield=True):
            observation = sending.observation
            sent = await _begin(pane, step, sending, matcher)
            if observation and not step.interrupts:
                await observation.step(sent)
            if step.signal:
                _send_signal(pane, sent.before, step.signal)
            else:
                keyboard.use_line(step)
                await keyboard.type(step)
    sending.done += 1
    # Reading a flood takes long, and what ends the flood can't wait for that.
    if observation and step.interrupts:
        await observation.step(sent)
    return sent


def _send_signal(pane: Pane, before: Snapshot, name: str) -> None:
    """Send a signal to the processes of the foreground process group."""
    shell, group = prompting(before), before.group
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


async def _wait_until_ready(
    pane: Pane,
    step: Keystrokes,
    before: Snapshot,
    timeout_s: float,
    observation: Observation | None,
) -> str | None:
    """Wait until the program is ready for a step. Return None, or why it is not ready.

    `before` is the snapshot before the previous step.
    """
    times = pane.clock.times
    begin = pane.clock.now()
    is_observed = observation is not None and observation.matcher.has_stop_pattern
    async with watching(pane, before) as watch:
        async for moment in watch.moments(begin + timeout_s):
            size = moment.ending.cursor if moment.ending else pane.log.size
            if observation and is_observed and await observation.has_stopped_at(size):
                return _STOPPED
            if moment.ending:
                verb = "was " if moment.ending.was_killed else ""
                return f"the program {verb}{moment.ending}"
            pane.keyboard.check_free()
            activity, waited_s = moment.activity, moment.now - begin
            if activity is None:
                continue
            is_due = step.interrupts and (activity.is_at_rest or waited_s >= times.quiet_s)
            if is_due or is_ready_for_step(times, activity, before, waited_s):
                if observation and is_observed:
                    await pane.drain()
                    if await observation.has_stopped_at(pane.log.size):
                        return _STOPPED
                return None
    program, blocked = "the program", None
    if watch.activity:
        program = watch.activity.snapshot.foreground or program
        blocked = pane.terminal.blocked_on(watch.activity)
    why_not = f"after {timeout_s:g} s, {program} is not reading input"
    return f"{why_not}; {blocked}" if blocked else why_not
