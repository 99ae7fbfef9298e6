"""Following a command to its end, and interrupting it when its time is over.

A follower wakes when the log grows, and looks at the pane from time to time for what leaves no
trace in the log. At each step it asks: has the command ended, has it started a shell, does it await
something, is its time over?

Here are what all followers have in common and the one for a pane's own command; `following_jobs`
has the one for a job of a shell.
"""

from collections.abc import Awaitable, Callable

import anyio

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.growth import Subscription
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes.looking.activity import (
    QUIET_S,
    Activity,
    ActivityTracker,
    Awaits,
    Snapshot,
)
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.shells.pane_shell import MAX_INTERRUPTS, POLL_S

from .outcomes import Outcome, RunReason

# Reads the output in a log between two cursors; the first one is at the start of a line.
ReadOutput = Callable[[Log, int, int], Awaitable[Excerpt]]

# The least timeout for a step that is due at once.
_MIN_WAIT_S = 0.002
# A prompt, with all sequences that draw it, is shorter.
_MAX_PROMPT_BYTES = 4096

# What a reason becomes if we have interrupted the command before.
_WHEN_INTERRUPTED = {
    RunReason.DONE: RunReason.TIMED_OUT,
    RunReason.GIVEN_UP: RunReason.TIMED_OUT,
    RunReason.SHELL_STARTED: RunReason.SHELL_INTERRUPTED,
}


class Follower:
    """What following a job and following the command of a pane have in common.

    Args:
        pane: The pane.
        deadline: The end of the command's time, on the clock of anyio.current_time().
        before: The snapshot before the command was given; None if it was not typed.
    """

    def __init__(self, pane: Pane, deadline: float, before: Snapshot | None = None) -> None:
        self._pane = pane
        self._deadline = deadline
        self._interrupts = 0
        self._tracker = ActivityTracker(before)
        self._activity: Activity | None = None  # at the last look
        self._look_at = 0.0

    def _unless_interrupted(self, reason: RunReason) -> RunReason:
        """Return a reason; if we have interrupted the command, the one that says so."""
        if self._interrupts:
            return _WHEN_INTERRUPTED[reason]
        return reason

    async def _awaits_something(self) -> bool:
        """Tell whether the command awaits something. Looks at the pane, unless it is too early.

        An interrupted command gets its whole grace period, so the answer is no until that is over.
        """
        if self._interrupts or anyio.current_time() < self._look_at:
            return False
        pane = self._pane
        async with pane.events.looking:
            activity = await pane.terminal.observe(self._tracker)
        self._look_at = anyio.current_time() + activity.look_again_s * pane.events.load
        self._activity = activity
        return self._is_awaiting(activity)

    def _is_awaiting(self, activity: Activity) -> bool:
        """Tell whether the command awaits input, or has awaited keys for a while."""
        if not activity.is_awaiting:
            return False
        return activity.awaits is not Awaits.KEYS or activity.quiet_s >= QUIET_S

    async def _resists_interrupts(self, *, has_begun: bool) -> bool:
        """Interrupt the command if its time is over.

        Args:
            has_begun: The command has begun. Before, the interrupt would not reach it.

        Returns:
            Whether the grace period after the last interrupt is over, too.
        """
        if anyio.current_time() < self._deadline or not has_begun:
            return False
        if self._interrupts == MAX_INTERRUPTS:
            return True
        grace_s = await self._pane.shell.interrupt(is_second=self._interrupts > 0)
        self._deadline = anyio.current_time() + grace_s
        self._interrupts += 1
        return False

    async def _wait(self, subscription: Subscription) -> None:
        """Wait until the log grows, or something else is due."""
        now = anyio.current_time()
        until = min(self._deadline, now + POLL_S, max(self._look_at, now))
        await subscription.wait(max(_MIN_WAIT_S, until - now))

    async def _state(self, reason: RunReason) -> State:
        """Return the pane's state at the end of the run."""
        pane, activity = self._pane, self._activity
        if reason is RunReason.INPUT and activity and not await pane.ending():
            return pane.running(activity.snapshot, activity.awaits)
        return await pane.state()


class PaneFollower(Follower):
    """Follows the command that a pane was made for, which is not typed: there is no `before`."""

    async def outcome(self, read_output: ReadOutput) -> Outcome:
        """Follow the command until the run is over, and return its outcome.

        Raises:
            PaneLostError: The pane is gone.
        """
        pane = self._pane
        async with pane.subscribe() as subscription:
            reason = await self._follow(subscription)
            state = await self._state(reason)
            end = state.cursor
            if reason.leaves_shell:
                end = before_prompt(pane.log, 0, end)
            elif state.is_lost:
                reason = RunReason.EXITED
            excerpt = await read_output(pane.log, 0, end)
            return Outcome(
                reason=reason,
                exit_code=exit_code_of(state),
                runtime_s=state.runtime_s,
                state=state,
                excerpt=excerpt,
                start=0,
                end=end,
            )

    async def _follow(self, subscription: Subscription) -> RunReason:
        pane = self._pane
        while not await pane.ending():
            if await pane.shell.has_started_shell(None):
                return self._unless_interrupted(RunReason.SHELL_STARTED)
            if await self._awaits_something():
                await pane.drain()
                return RunReason.INPUT
            if await self._resists_interrupts(has_begun=True):
                return RunReason.RUNNING
            await self._wait(subscription)
        return self._unless_interrupted(RunReason.DONE)


def before_prompt(log: Log, start: int, end: int) -> int:
    """Return the cursor of the line that ends at `end`: it is a prompt, and not output.

    Args:
        log: The log.
        start: The cursor where the output begins.
        end: The cursor after the prompt.
    """
    tail_start = max(start, end - _MAX_PROMPT_BYTES)
    tail = log.read(tail_start, end - tail_start)
    return tail_start + tail.rfind(b"\n") + 1


def exit_code_of(state: State) -> int | None:
    """Return how a program ended as the exit code that a shell would give it; None if it runs."""
    if state.signal:
        return processes.signal_exit_code(processes.signal_number(state.signal))
    return state.exit_code
