"""Waiting for the first thing that happens in a pane, or in one of several.

A wait reads the pane's log as it grows, and does nothing in between. If a condition depends on what
the program is doing, it also looks at the pane from time to time. A program that draws on the whole
screen prints no lines, so the wait matches the rows that have changed since it began.

The log may be late. So before a wait ends because something was not printed, it drains the log.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.errors import PaneLostError, ToolError
from tmux_debug_mcp.logs.growth import MAX_LOG_BYTES
from tmux_debug_mcp.logs.matching import Matcher, MatchReason
from tmux_debug_mcp.turns import next_turn

from .looking.activity import Activity, Awaits
from .looking.state import State
from .observing import SLICE_BYTES, Observation
from .pane import Pane
from .reports import Reason, Report, Shows, report
from .sessions import CallerSession
from .watching import Watch, watching

# After more output than this between two pauses, the next pause is at least `Times.flood_s`.
_FLOOD_BYTES = 1 << 16

# Begins the observation of a wait, given its pane and its patterns.
Begin = Callable[[Pane, Matcher], Awaitable[Observation]]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What ends a wait: the first of these conditions, the program's end, or the timeout.

    A wait for patterns also ends when nothing more can come: a shell is at its prompt and nothing
    else runs in the pane, or the program awaits hidden input.

    Attributes:
        pattern: A regular expression of RE2 that a line of output must match.
        stop_pattern: Another one, whose match means that there is no point in waiting longer.
        idle_s: Nothing was printed and nothing typed for this long.
        is_for_rest: Wait until the pane is at rest.
        is_for_input: Wait until the program awaits something.
        port: A process of the pane listens on this TCP port.
        timeout_s: The time to wait; 0 only looks at what is there.
        shows: What the report shows.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    idle_s: float | None = None
    is_for_rest: bool = False
    is_for_input: bool = False
    port: int | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    shows: Shows = field(default_factory=Shows)

    @property
    def is_look(self) -> bool:
        """Whether there is no condition and no time to wait."""
        return self == Conditions(timeout_s=0, shows=self.shows)

    def matcher(self) -> Matcher:
        """Return the compiled patterns; ArgumentError if one is not valid."""
        return Matcher(self.pattern, self.stop_pattern, self.shows.pattern)


async def wait(
    panes: Sequence[Pane],
    conditions: Conditions,
    begin: Begin,
    session: CallerSession | None = None,
) -> list[Report]:
    """Wait for the first thing that happens in any of one or more panes, for the caller's session.

    Returns:
        One report of what happened; if nothing did before the timeout, one for each pane, in the
        order of `panes`.

    Raises:
        ArgumentError: A pattern is not valid.
    """
    matcher = conditions.matcher()
    deadline = panes[0].clock.now() + conditions.timeout_s
    happened: list[Report] = []
    timed_out: dict[int, Report] = {}
    errors: list[ToolError] = []

    async def wait_for_one(number: int) -> None:
        try:
            observation = await begin(panes[number], matcher)
            if session:
                observation.session = session
                observation.shown_to = session.shown(panes[number]).cursor
            one = await observe(observation, conditions, deadline)
        except ToolError as error:  # raised below, since the task group would wrap it
            errors.append(error)
            tasks.cancel_scope.cancel()
            return
        if one.reason is Reason.TIMED_OUT:
            timed_out[number] = one
        elif not happened:
            happened.append(one)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for number in range(len(panes)):
            tasks.start_soon(wait_for_one, number)
    if happened:
        return happened
    if errors:
        raise errors[0]
    return [timed_out[number] for number in sorted(timed_out)]


async def observe(observation: Observation, conditions: Conditions, deadline: float) -> Report:
    """Continue an observation until a condition is met, and report what there is then."""
    try:
        async with watching(observation.pane) as watch:
            return await _Wait(watch, conditions, observation, deadline).first()
    except PaneLostError:  # now its program is known to have ended
        async with watching(observation.pane) as watch:
            return await _Wait(watch, conditions, observation, deadline).first()


class _Wait:
    """The wait for one pane."""

    def __init__(
        self, watch: Watch, conditions: Conditions, observation: Observation, deadline: float
    ) -> None:
        self._watch = watch
        self._pane = pane = watch.pane
        self._clock = pane.clock
        self._times = pane.clock.times
        self._conditions = conditions
        self._observation = observation
        self._deadline = deadline
        # How long the pane must be quiet before we check again whether anything can come.
        self._vain_look_s = pane.clock.times.quiet_s
        # The time is over, and the log was drained then.
        self._is_last_look = not conditions.timeout_s

    async def first(self) -> Report:
        """Return a report of what first meets a condition, or of what there is at the deadline."""
        pane, observation = self._pane, self._observation
        await next_turn()
        await pane.ensure_log_writer()
        if self._is_last_look and not await pane.ending():
            await pane.drain()
        while True:
            position = observation.position
            ending = await pane.ending()
            reason = await self._reason(ending)
            if reason:
                if reason.is_match and observation.early is None:
                    await self._read_rest_of_line()
                if reason.is_match:
                    await self._let_it_end()
                if reason is Reason.LISTENS and self._conditions.shows.pattern is not None:
                    await self._read_until_rest()
                return await report(
                    observation, reason, self._watch.activity, self._conditions.shows
                )
            if observation.position != position:
                self._vain_look_s = self._times.quiet_s
            if observation.position - position > _FLOOD_BYTES:
                flood_s = max(0.0, self._next_at() - self._clock.now())
                await self._clock.sleep(min(self._times.flood_s, flood_s))
            else:
                await self._watch.wait(self._next_at())

    def _next_at(self) -> float:
        """Return when to go on even without news."""
        quiet_since = self._clock.now() - self._idle_s()
        until = self._deadline
        if self._conditions.port is not None or self._pane.has_exited:
            until = min(until, self._clock.now() + self._times.max_look_s)
        if self._conditions.idle_s is not None:
            until = min(until, quiet_since + self._conditions.idle_s)
        if self._observation.matcher.has_patterns:
            until = min(until, quiet_since + self._vain_look_s)
        return until

    async def _reason(self, ending: State | None) -> Reason | None:
        """Return why the wait ends now, or None to go on."""
        conditions, observation = self._conditions, self._observation
        if observation.early is MatchReason.STOPPED:
            return self._early_reason()
        if ending and not self._may_go_on(ending):
            # All that there is can be read, which takes a while.
            until = max(self._deadline, self._clock.now() + self._times.starting_s)
            match = await observation.read(ending.cursor, until)
            return self._matched(match) if match else self._early_reason() or Reason.EXITED
        # Look at the pane before reading its log: lines printed before it came to rest can match.
        activity_reason = await self._reason_of_activity()
        # Without a timeout the wait is a single look at all there is.
        until = self._deadline + (0.0 if conditions.timeout_s else self._times.starting_s)
        match = await observation.read(self._pane.log.size, until)
        match = match or await observation.match_screen(is_look=not conditions.timeout_s)
        if match:
            return self._matched(match)
        if activity_reason:
            return activity_reason
        is_idle = conditions.idle_s is not None and self._idle_s() >= conditions.idle_s
        if is_idle and await self._has_seen_all():
            return Reason.IDLE
        printed_bytes = observation.position - observation.cursor
        if conditions.pattern is None and printed_bytes > MAX_LOG_BYTES:
            return Reason.FLOODED
        if self._clock.now() >= self._deadline:
            if self._is_last_look or await self._has_seen_all():
                return self._early_reason() or Reason.TIMED_OUT
            self._is_last_look = True
            return None
        if await self._is_in_vain():
            return Reason.INPUT
        return None

    def _may_go_on(self, ending: State) -> bool:
        """Return whether what a program has left running may still meet a condition.

        Not if the program has failed: then that is the news.
        """
        conditions = self._conditions
        is_for_rest = conditions.is_for_rest or conditions.is_for_input
        if is_for_rest or self._observation.early or ending.exit_code != 0:
            return False
        return bool(self._pane.left())

    async def _reason_of_activity(self) -> Reason | None:
        """Look at the pane, if a condition depends on what it is doing."""
        conditions, early, port = self._conditions, self._observation.early, self._conditions.port
        needs_looks = conditions.is_for_rest or conditions.is_for_input or early is not None
        if not needs_looks and port is None:
            return None
        moment = await self._watch.moment()
        if port is not None and self._pane.ports.listens_on(port):
            return Reason.LISTENS
        if not needs_looks:
            return None
        reason = self._reason_of(moment.activity)
        if reason:
            await self._pane.drain()
            if not self._is_fresh(moment.activity):
                # The log was late. Look again, now that it contains all output.
                reason = self._reason_of(await self._watch.look())
        return reason

    def _reason_of(self, activity: Activity | None) -> Reason | None:
        if activity is None or activity.snapshot.is_over:
            return None
        if self._observation.early:
            return self._early_reason() if activity.is_at_rest else None
        if activity.is_awaiting:
            return Reason.INPUT
        if activity.is_at_rest and self._conditions.is_for_rest:
            return Reason.REST
        return None

    def _matched(self, match: MatchReason) -> Reason:
        """Return the reason of a match after the last step. An early one no longer counts."""
        self._observation.early = None
        return Reason(match)

    def _early_reason(self) -> Reason | None:
        """Return the reason of a match before the last step, which counts now."""
        early = self._observation.early
        return Reason(early) if early else None

    async def _has_seen_all(self) -> bool:
        """Drain the log; return whether everything printed so far has been matched already."""
        return await self._pane.drain() and self._observation.position >= self._pane.log.size

    def _is_fresh(self, activity: Activity | None) -> bool:
        """Return whether nothing was printed since a look."""
        return activity is not None and activity.snapshot.printed_bytes == self._pane.log.size

    async def _is_in_vain(self) -> bool:
        """Return whether nothing more can come until somebody types; look only now and then."""
        pane, quiet_s = self._pane, self._idle_s()
        is_wait = bool(self._conditions.timeout_s) and self._observation.matcher.has_patterns
        is_early = quiet_s + self._times.min_look_s < self._vain_look_s
        if not is_wait or is_early:
            return False
        self._vain_look_s = max(quiet_s, self._vain_look_s) * 2
        if pane.keyboard.holder:
            return False
        # Not by the watch, which would have to look again and again.
        activity = await pane.terminal.observe()
        if not activity.is_awaiting or not await self._has_seen_all():
            return False
        if not self._is_fresh(activity):
            return False
        if activity.awaits is Awaits.HIDDEN_INPUT:
            return True
        if activity.shell is None:
            return False
        return pane.is_alone(activity.shell)

    def _idle_s(self) -> float:
        """Return the seconds since something was printed or typed, or the pane was made."""
        quiet_s = self._pane.log.quiet_s()
        sent = self._pane.keyboard.last_sent
        return quiet_s if sent is None else min(quiet_s, self._clock.now() - sent.at)

    async def _let_it_end(self) -> None:
        """Let a program end that is about to, so that the result has its exit code.

        One that goes on after a match is soon at rest. One that works goes on without us.
        """
        until = self._clock.now() + self._times.ending_soon_s
        while not await self._pane.ending() and self._clock.now() < until:
            snapshot = self._pane.terminal.look().snapshot
            if not (snapshot.is_over or snapshot.is_at_work):
                return
            await self._clock.sleep(self._times.fast_poll_s)

    async def _read_until_rest(self) -> None:
        """Read what is printed until the pane is at rest: servers tell of their ports late."""
        until = min(self._deadline, self._clock.now() + self._times.rest_s)
        async for moment in self._watch.moments(until):
            if moment.is_at_rest:
                break
        await self._pane.drain()
        await self._observation.read(self._pane.log.size)

    async def _read_rest_of_line(self) -> None:
        """Read the rest of the line that matched, if it follows at once."""
        pane, observation = self._pane, self._observation
        deadline = self._clock.now() + self._times.rest_of_line_s
        while not observation.text.is_at_line_end and not observation.text.is_drawn_on:
            ending = await pane.ending()
            end = ending.cursor if ending else pane.log.size
            data = pane.log.read(observation.position, min(SLICE_BYTES, end - observation.position))
            line, line_feed, _ = data.partition(b"\n")
            await observation.read(observation.position + len(line) + len(line_feed))
            if len(data) == SLICE_BYTES:
                return
            if not data:
                if ending or self._clock.now() >= deadline:
                    return
                await self._watch.wait(deadline)
