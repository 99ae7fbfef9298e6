r"""Sending steps of keystrokes to a pane, each as soon as the program is ready for it.

A step waits until the program has read what was typed before and awaits something again: typed too
early, it may reach the wrong program or the wrong terminal mode. Interrupts (C-c, C-\, C-z and
signals) are for whatever is running. They don't wait for that, but give the step before them a
moment to start something.

In a text box, such as an agent's, Enter is a write of its own, once the text was read and a moment
later: what arrives together or faster is a paste to such programs, and Enter a line feed in it.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S, Times
from tmux_debug_mcp.errors import SecretNotAwaitedError, SignalError, TmuxStuckError, ToolError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.matching import Matcher, MatchReason
from tmux_debug_mcp.vt.keys import Protocol
from tmux_debug_mcp.vt.steps import Keystrokes, pressed

from .hidden_input import Readers, check_readers, readers_of
from .keyboard import SentStep
from .looking.activity import Activity, Awaits, Snapshot, WaitKind, prompting_shell
from .observing import Observation, rows_now, since_cursor
from .pane import Pane
from .prompts import AtPrompt, is_within_line, prompt
from .shells.jobs import TypedJob
from .watching import Moment, Need, until

# Cursor to the first column of the first row, then erase the display. Source: ECMA-48, CUP and ED.
_CLEAR = b"\033[H\033[2J"

Resize = Callable[[], Awaitable[None]]
IsReady = Callable[[Activity, float], bool]


@dataclass(slots=True)
class SendResult:
    """What a call has sent.

    Attributes:
        done: The number of steps that were sent.
        why_not: Why the next step was not sent; None when all were.
        remarks: What became of text that was not typed as it is.
        observation: What is new since the first step; None unless asked for.
    """

    done: int = 0
    why_not: str | None = None
    remarks: list[str] = field(default_factory=list)
    observation: Observation | None = None


class _NotReadyError(ToolError):
    """Raised when a program is not ready for more keys. Its text is a `why_not`."""


async def send(
    pane: Pane,
    steps: Sequence[Keystrokes],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    matcher: Matcher | None = None,
    resize: Resize | None = None,
    *,
    is_secret: bool = False,
) -> SendResult:
    """Send one or more steps, each as soon as the program is ready for it.

    `resize` runs before them, and `steps` may then be empty. Each step waits for the program, for
    `timeout_s` at most; the first step, whose time begins with the call, only for a shell that is
    about to read. If the text `is_secret`, each step with text waits until hidden input is awaited.
    A step that can't be sent is an error only if it is the first. With a matcher, even one without
    patterns, the pane is observed from the resize or the first step on, and no step is sent once
    its `stop_pattern` has matched.

    Raises:
        BusyError: Another call is still sending steps to this pane at the timeout.
        HiddenInputError: Only a person may type the first step.
        PaneExitedError: The program had ended before the first step.
        SecretNotAwaitedError: No hidden input is awaited for the first step.
        SignalError: The first step is a signal that can't be sent.
    """
    begin, result = pane.clock.now(), SendResult()
    async with contextlib.AsyncExitStack() as stack:
        # Interrupts may come between the steps of another call.
        if not all(step.interrupts for step in steps):
            sequence = pane.keyboard.in_sequence(max(timeout_s, pane.clock.times.quiet_s))
            await stack.enter_async_context(sequence)
        if resize:
            # As with keys, the program may act on it or not.
            await pane.check_running()
            await _begin(pane, pressed(()), result, matcher)
            await resize()
            pane.terminal.tmux_has_typed()
        before: Snapshot | None = None
        for number, step in enumerate(steps):
            readers: Readers | None = None
            # The time of the first step includes the wait for the calls before.
            deadline = (pane.clock.now() if number else begin) + timeout_s
            try:
                if is_secret and step.text:
                    left_s = _left_s(pane, deadline)
                    readers = await _wait_for_readers(pane, left_s, result.observation)
                elif before is None:
                    await _wait_for_prompt(pane, step, _left_s(pane, deadline))
                else:
                    is_ready = partial(
                        is_ready_for_step, pane.clock.times, before, interrupts=step.interrupts
                    )
                    # What the last step printed belongs to that step.
                    await _wait_until(
                        pane, is_ready, timeout_s, result.observation, drains=not step.interrupts
                    )
                before = await _send_one(pane, step, result, matcher, deadline, readers)
            except ToolError as error:
                if not number and isinstance(error, _NotReadyError):  # for secret text
                    raise SecretNotAwaitedError(pane.id, str(error)) from None
                if not number:
                    raise
                # The caller must learn which steps were sent.
                result.why_not = str(error).removesuffix(".")
            if result.why_not:
                break
    return result


def _left_s(pane: Pane, deadline: float) -> float:
    """Return the time until then, as results tell it."""
    return round(max(0.0, deadline - pane.clock.now()), 3)


async def _begin(
    pane: Pane, step: Keystrokes, result: SendResult, matcher: Matcher | None
) -> SentStep:
    """Note that a step is sent now. The first step begins the observation."""
    # Earlier output must be in the log before the cursor of this step.
    if pane.terminal.has_just_printed:
        await pane.flush()
    if matcher is None or result.observation:
        return pane.keyboard.begin(step)
    sent = pane.keyboard.begin(step, await rows_now(pane, matcher))
    result.observation = await since_cursor(pane, matcher, sent.cursor)
    await result.observation.step(sent)
    return sent


async def _wait_for_prompt(pane: Pane, step: Keystrokes, timeout_s: float) -> None:
    """Wait for a shell that is about to read, such as a starting shell, before the first step.

    Its prompt is then in the log, so that it isn't taken for output of this step. Interrupts don't
    wait for that. But C-c drops unread keys, and a signal is for the program that a line starts, so
    what was typed just before gets a moment.
    """
    terminal, times = pane.terminal, pane.clock.times
    pane.keyboard.check_free()
    has_just_typed = terminal.typed_s < times.typed_s
    if step.interrupts:
        if has_just_typed:
            await prompt(AtPrompt(pane, times.prompt_soon_s, starting_s=0.0))
        return
    # What is typed while a shell handles keys, such as C-c, may be lost.
    least_s = times.coming_s if has_just_typed else times.prompt_soon_s
    rule = AtPrompt(pane, times.prompt_soon_s, min(times.starting_s, timeout_s))
    if await prompt(rule, max(timeout_s, least_s), is_sure=False):
        await pane.drain_prompt()
    elif isinstance(pane.jobs.last, TypedJob):
        await _wait_for_prompt_after(pane, pane.jobs.last)
    # Keys that another call presses right after text must not look pasted, either.
    last = pane.keyboard.last_sent
    rest_s = times.paste_s - terminal.typed_s
    is_key = last is not None and bool(last.texts) and not step.text
    if is_key and rest_s > 0 and has_text_box(terminal.look().snapshot):
        await pane.clock.sleep(rest_s)


async def _wait_for_prompt_after(pane: Pane, job: TypedJob) -> None:
    """Wait for the prompt of a shell elsewhere after a job, if nothing was typed since then."""
    last, end = pane.keyboard.last_sent, job.end
    if last is None or last.number != job.sent or end is None:
        return

    def is_prompted(moment: Moment) -> bool | None:
        return moment.ending is not None or is_within_line(pane.log, end) or None

    await until(pane, is_prompted, pane.clock.now() + pane.clock.times.prompt_s)


async def _send_one(
    pane: Pane,
    step: Keystrokes,
    result: SendResult,
    matcher: Matcher | None,
    deadline: float,
    readers: Readers | None,
) -> Snapshot:
    """Send one whole step now. Return the snapshot from just before its last write.

    If the step is secret, only these `readers` may read it.
    """
    keyboard, observation = pane.keyboard, result.observation
    await pane.check_running()
    keyboard.check_free()
    keyboard.check_not_hidden(step)
    await keyboard.check_codes(step.keys)
    is_whole = True
    with anyio.CancelScope(shield=True):
        sent = await _begin(pane, step, result, matcher)
        # Reading what was printed takes long in a flood, and what ends the flood can't wait for it.
        if observation and not step.interrupts:
            await observation.step(sent)
        if step.signal:
            _send_signal(pane, sent.before, step.signal)
        else:
            is_whole = not (step.text and step.keys and await _splits_enter(pane, sent.before))
            result.remarks += _remarks(step, sent.before)
            keyboard.use_line(step)
            try:
                async with keyboard.lock:
                    keyboard.check_not_hidden(step)
                    if readers is not None:
                        check_readers(pane, readers)
                    await keyboard.type(step if is_whole else step.only_text())
            except ToolError as error:
                if not isinstance(error, TmuxStuckError):  # which may type yet
                    keyboard.undo(sent)
                raise
    before = sent.before
    if not is_whole:
        try:
            before = await _press_after_text(pane, step, before, deadline)
        except ToolError as error:
            was_not = "may not be" if isinstance(error, TmuxStuckError) else "was not"
            why_not = str(error).removesuffix(".")
            result.why_not = f"its text was typed, but Enter {was_not} pressed: {why_not}"
            return before
        if result.observation:
            result.observation.before = before
    result.done += 1
    if observation and step.interrupts:
        await observation.step(sent)
    return before


async def _splits_enter(pane: Pane, before: Snapshot) -> bool:
    """Return whether the program may take text and Enter for a paste if they arrive together."""
    if before.relays:
        # A shell on the other side doesn't ask for such keys, as agents do.
        return await pane.keyboard.protocol() is not Protocol.NONE
    return has_text_box(before)


def has_text_box(snapshot: Snapshot) -> bool:
    """Return whether the program may take text and an Enter that arrive together for a paste.

    Programs that read every key themselves, even C-c, may tell typing from pasting by how much
    arrives at once, and how soon the next key follows. Line editors leave C-c to the terminal, or
    read byte by byte. What is behind a relay can't be seen.
    """
    modes = snapshot.modes
    if modes is None or not modes.passes_every_key or snapshot.relays:
        return False
    return prompting_shell(snapshot) is None and snapshot.waiting is not WaitKind.BYTEWISE


async def _press_after_text(
    pane: Pane, step: Keystrokes, before: Snapshot, deadline: float
) -> Snapshot:
    """Press the keys of a step as a write of their own, once its text was read and a moment later.

    A text box would take them for a part of a paste. Return the snapshot from just before them.

    Raises:
        ToolError: They can't be pressed.
    """
    clock, times, keyboard = pane.clock, pane.clock.times, pane.keyboard
    sent = keyboard.last_sent
    await pane.flush()  # tmux has written the text
    timeout_s = max(_left_s(pane, deadline), times.traced_s)
    await _wait_until(pane, partial(is_ready_for_enter, times), timeout_s, drains=False)
    await clock.sleep(times.paste_s)
    with anyio.CancelScope(shield=True):
        async with keyboard.lock:
            now = pane.terminal.look().snapshot
            is_same = keyboard.last_sent is sent and now.group == before.group
            # What reads behind a relay isn't seen while that is at work, as it may have been then.
            was_hidden = before.inside is None and now.inside is not None
            reads_keys = now.modes is not None and now.modes.passes_every_key
            if not (is_same and (reads_keys or was_hidden)):
                raise ToolError("something else was typed, or reads, by then")
            before = pane.terminal.begin_typing(gets_keys=True)
            await keyboard.type(step.only_keys())
    return before


def _remarks(step: Keystrokes, before: Snapshot) -> Iterator[str]:
    """Yield what becomes of text that the terminal, or a line editor, does not take as it is."""
    modes = before.modes
    if modes is None:
        return
    if modes.is_canonical and step.has_line_over(terminals.MAX_LINE_BYTES):
        yield f"the terminal keeps only {terminals.MAX_LINE_BYTES} bytes of a line"
    # A lone tab is the key. In canonical mode, and in a paste, it is text.
    is_tabbed = "\t" in step.text and len(step.text) > 1 and not step.is_paste
    if is_tabbed and not modes.is_canonical:
        yield "a line editor completes words at typed tabs; paste inserts them"


def _send_signal(pane: Pane, before: Snapshot, name: str) -> None:
    """Send a signal to the processes of the foreground process group."""
    shell, group = prompting_shell(before), before.group
    if shell:
        raise SignalError(name, f"{shell.name} is at its prompt there, and no program runs")
    descendants = map(processes.read_stat, processes.descendants(pane.leader.pid))
    members = [stat.pid for stat in descendants if stat and stat.pgrp == group]
    try:
        # Each alone: killpg(2) would also signal pane.sh, which may be in the group.
        for pid in members:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.Signals[name])
    except PermissionError:
        raise SignalError(name, "the program belongs to another user") from None


def can_type(
    is_ready: IsReady, begin: float, moment: Moment, *, drains: bool = True
) -> bool | Need | None:
    """Decide, as a rule, whether more keys can be typed: once `is_ready`, asked since `begin`.

    If this `drains`, the log then contains all that was printed before. False: they can't be typed,
    since the program has ended, a person has the keyboard, or `stop_pattern` matches.
    """
    if moment.match or moment.ending or moment.has_person:
        return False
    if moment.activity is None:
        return Need.LOOK
    if not is_ready(moment.activity, moment.now - begin):
        return None
    return Need.LOG if drains and moment.is_drained is None else True


def is_ready_for_step(
    times: Times, before: Snapshot, activity: Activity, waited_s: float, *, interrupts: bool
) -> bool:
    """Return whether to type the next step: the program has read everything and awaits more.

    A program that also does other things, such as printing a log or drawing, gets `times.quiet_s`
    to act on the previous step, as every program does before a step that `interrupts`.
    Where the kernel can't tell, the pane must be quiet. The wait began `waited_s` ago; the previous
    step was typed right after the snapshot `before`.
    """
    if interrupts and (activity.is_at_rest or waited_s >= times.quiet_s):
        return True
    if activity.only_awaits:
        return True
    after = activity.snapshot
    if after.modes is not None and after.modes.unread_bytes:
        return False
    if activity.is_unclear:
        return activity.inactive_s >= times.quiet_s
    # A program may also read keys that it does not await, as games do at each frame. In canonical
    # mode, a program that keeps working may just have read a line that was typed ahead.
    is_raw = all(snapshot.modes and not snapshot.modes.is_canonical for snapshot in (before, after))
    polls = is_raw and before.group == after.group and before.waiting is WaitKind.NONE
    return (activity.awaits is not None or polls) and waited_s >= times.quiet_s


def is_ready_for_enter(times: Times, activity: Activity, waited_s: float) -> bool:
    """Return whether to press what follows text: the program has read it.

    The wait began `waited_s` ago, right after the text was typed.
    """
    after = activity.snapshot
    if after.modes is None or after.modes.unread_bytes:
        return False
    # A program that keeps drawing may not be seen to await more.
    return activity.awaits is not None or (waited_s >= times.quiet_s and activity.has_read)


async def _wait_until(
    pane: Pane,
    is_ready: IsReady,
    timeout_s: float,
    observation: Observation | None = None,
    *,
    drains: bool = True,
) -> Activity:
    """Wait until a program is ready for more keys, and return what it is doing then.

    An observation ends the wait once its `stop_pattern` has matched.

    Raises:
        KeyboardHeldError: A person has the keyboard.
        _NotReadyError: It is not ready in time, or never will be.
    """

    async def read(moment: Moment) -> None:
        if observation is None or not observation.matcher.has_stop_pattern:
            return
        if await observation.has_stopped_at(moment.size):
            moment.match = MatchReason.STOPPED

    begin = pane.clock.now()
    rule = partial(can_type, is_ready, begin, drains=drains)
    is_now_ready, moment = await until(pane, rule, begin + timeout_s, read)
    if is_now_ready and moment.activity:
        return moment.activity
    if moment.match:
        raise _NotReadyError("stop pattern matches")
    if moment.ending:
        verb = "was " if moment.ending.was_killed else ""
        raise _NotReadyError(f"the program {verb}{moment.ending}")
    pane.keyboard.check_free()
    program, does = "the program", "is not reading input"
    if moment.activity:
        program = moment.activity.snapshot.foreground or program
        awaits, blocked = moment.activity.awaits, pane.terminal.blocked_on(moment.activity)
        if awaits:  # something else than what is to be typed
            does = f"awaits {awaits.value}"
        elif blocked:
            does += f"; {blocked}"
    raise _NotReadyError(f"after {timeout_s:g} s, {program} {does}")


async def _wait_for_readers(
    pane: Pane, timeout_s: float, observation: Observation | None
) -> Readers:
    """Wait until hidden input is awaited, and return who reads it.

    Raises:
        PaneExitedError: The program has ended.
        _NotReadyError: It is not awaited, and can't be before something else is typed.
    """
    await pane.check_running()
    times = pane.clock.times

    def is_decided(activity: Activity, _: float) -> bool:
        if activity.awaits is Awaits.HIDDEN_INPUT:
            return True
        # It awaits something else, and does nothing before that.
        does_nothing_else = (
            activity.shell is not None or activity.snapshot.waiting >= WaitKind.ALONE
        )
        is_quiet = activity.inactive_s >= times.quiet_s
        return activity.only_awaits and does_nothing_else and is_quiet

    activity = await _wait_until(pane, is_decided, timeout_s, observation)
    if activity.awaits is Awaits.HIDDEN_INPUT:
        return readers_of(activity.snapshot)
    if activity.shell:
        raise _NotReadyError(f"{activity.shell.name} is at its prompt")
    awaits = activity.awaits.value if activity.awaits else "something else"
    raise _NotReadyError(f"{activity.snapshot.foreground or 'the program'} awaits {awaits}")


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
            await send(pane, [pressed(("C-l" if has_editor else "Enter",))])
            with clock.move_on_after(times.redraw_s):
                await subscription.wait(times.redraw_s)
                size = -1
                while size != pane.log.size:
                    size = pane.log.size
                    await clock.sleep(times.redrawn_quiet_s)
    await pane.tmux(("display-message", "-p", ""), ("clear-history", "-t", pane.target))
