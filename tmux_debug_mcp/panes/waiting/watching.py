"""The watch of one pane: it waits for the first thing that meets the conditions of a wait.

A watch reads the pane's log as it grows, and does nothing in between. Only for conditions that
depend on what the program is doing does it also look at the pane from time to time, since the
kernel does not report that.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from tmux_debug_mcp.logs.growth import MAX_LOG_BYTES, Subscription
from tmux_debug_mcp.logs.matching import Matcher, Scan
from tmux_debug_mcp.logs.reading import Abridgement
from tmux_debug_mcp.panes.looking.activity import Activity, ActivityTracker
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane

from .conditions import Conditions
from .drawn_screen import DrawnScreen
from .observations import (
    Observation,
    Sighting,
    WaitReason,
    observed_output,
    observed_screen,
)
from .origins import Origin

# The log is matched in slices: the output that an observation shows after a match is at most this.
_SLICE_BYTES = 4096
# After more output than this between two pauses, the next pause is at least `Times.flood_s`.
_FLOOD_BYTES = 1 << 16


class Watch:
    """The watch of one pane.

    Args:
        pane: The pane.
        conditions: What to wait for.
        origin: Where to begin to look.
        matcher: The patterns of the conditions.
    """

    def __init__(
        self, pane: Pane, conditions: Conditions, origin: Origin, matcher: Matcher
    ) -> None:
        self._pane = pane
        self._clock = pane.clock
        self._times = pane.clock.times
        self._conditions = conditions
        self._origin = origin
        self._matcher = matcher
        self._scan = Scan(pane.log, origin.cursor, pane.keyboard.sent)
        self._screen = DrawnScreen(pane, origin, matcher)
        self._activity = _ActivityWatch(pane, conditions, origin)

    async def first(self, deadline: float) -> Observation:
        """Return what meets a condition first, or what there is at the deadline.

        Args:
            deadline: The end of the wait, by the pane's clock.

        Raises:
            StorageError: There is no room for a capture of the screen.
        """
        async with self._pane.subscribe() as subscription:
            async with self._pane.events.reading:
                await self._pane.ensure_log_writer()
            if not self._conditions.timeout_s and not await self._pane.ending():
                # Only one look is taken, and the log may lag behind the screen.
                await self._pane.drain()
            while True:
                position = self._scan.position
                ending = await self._pane.ending()
                reason = await self._reason(ending, deadline)
                if reason:
                    if reason.is_match:
                        await self._read_rest_of_line(subscription)
                    return await self._observation(reason, ending)
                read_bytes = self._scan.position - position
                await self._pause(subscription, deadline, read_bytes)

    async def _reason(self, ending: State | None, deadline: float) -> WaitReason | None:
        """Return why the wait ends now, or None to go on.

        Args:
            ending: How the program ended; None while it runs.
            deadline: The end of the wait.
        """
        if ending:
            match = await self._match_output(ending.cursor, deadline)
            if match:
                return match
            return WaitReason.EXITED
        # Look at the pane before reading its log: lines printed before it came to rest can match.
        activity_reason = await self._activity.reason()
        match = await self._match_output(self._pane.log.size, deadline)
        if match is None:
            may_wait = self._conditions.timeout_s > 0
            match = await self._screen.match(self._scan.position, may_wait=may_wait)
        if match:
            return match
        if activity_reason:
            return activity_reason
        return await self._reason_to_give_up(deadline)

    async def _match_output(self, end: int, deadline: float) -> WaitReason | None:
        """Match new output up to a cursor, while there is time; return which pattern matches."""
        position = -1
        while position != self._scan.position:
            position = self._scan.position
            async with self._pane.events.reading:
                lines = await self._scan.step(end, _SLICE_BYTES, self._screen.drawing)
                reason = self._matcher.first(lines)
            if reason:
                return WaitReason(reason)
            # Without a timeout the wait is a single look at all there is.
            if self._conditions.timeout_s and self._clock.now() > deadline:
                return None
        return None

    async def _reason_to_give_up(self, deadline: float) -> WaitReason | None:
        """Return why the wait ends though nothing has happened, or None to go on."""
        conditions = self._conditions
        if conditions.idle_s is not None and self._idle_s() >= conditions.idle_s:
            return WaitReason.IDLE
        printed_bytes = self._scan.position - self._origin.cursor
        if conditions.pattern is None and printed_bytes > MAX_LOG_BYTES:
            return WaitReason.FLOODED
        if self._clock.now() >= deadline:
            await self._pane.ensure_log_writer()
            return WaitReason.TIMED_OUT
        return None

    def _idle_s(self) -> float:
        """Return the seconds since something was printed or typed, or the pane was made."""
        quiet_s = self._pane.log.quiet_s()
        sent = self._pane.keyboard.last_sent
        if sent is None:
            return quiet_s
        return min(quiet_s, self._clock.now() - sent.at)

    async def _pause(self, subscription: Subscription, deadline: float, read_bytes: int) -> None:
        """Wait until there may be something new.

        Args:
            subscription: The subscription to the log.
            deadline: The end of the wait.
            read_bytes: How much output was read since the last pause.
        """
        wait_s = min(deadline - self._clock.now(), self._activity.next_look_s)
        if self._conditions.idle_s is not None:
            wait_s = min(wait_s, self._conditions.idle_s - self._idle_s())
        if read_bytes > _FLOOD_BYTES:
            await self._clock.sleep(min(self._times.flood_s, max(0.0, wait_s)))
        else:
            await subscription.wait(wait_s)

    async def _read_rest_of_line(self, subscription: Subscription) -> None:
        """Read the rest of the line that matched, if it follows at once."""
        pane, scan = self._pane, self._scan
        deadline = self._clock.now() + self._times.rest_of_line_s
        while not scan.is_at_line_end and not self._screen.drawing.is_on:
            ending = await pane.ending()
            end = pane.log.size
            if ending:
                end = ending.cursor
            data = pane.log.read(scan.position, min(_SLICE_BYTES, end - scan.position))
            line, line_feed, _ = data.partition(b"\n")
            line_end = scan.position + len(line) + len(line_feed)
            await scan.step(line_end, _SLICE_BYTES, self._screen.drawing)
            if len(data) == _SLICE_BYTES:
                return
            if not data:
                wait_s = deadline - self._clock.now()
                if ending or wait_s <= 0:
                    return
                await subscription.wait(wait_s)

    async def _observation(self, reason: WaitReason, ending: State | None) -> Observation:
        """Return the observation with which the wait ends.

        It shows the screen of a program that draws on it, else the output. A program that has
        crashed leaves no screen, so the one from before goes before the output.
        """
        sighting = await self._sighting(reason, ending)
        if ending:
            has_crashed = bool(ending.exit_code or ending.signal)
            last_screen = self._screen.rows_at_origin if has_crashed else None
            return await self._observed_output(sighting, last_screen)
        drawer = self._screen.drawer()
        if drawer:
            return await self._observed_screen(sighting, drawer.group)
        return await self._observed_output(sighting, last_screen=None)

    async def _sighting(self, reason: WaitReason, ending: State | None) -> Sighting:
        scan = self._scan
        end = scan.seen_to
        # Without a match, all output of a program that has ended is shown.
        if ending and not reason.is_match:
            end = ending.cursor
        start = min(self._origin.shown_from, end)
        state = ending or await self._activity.state()
        return Sighting(reason, state, start, end, scan.unseen_bytes)

    async def _observed_screen(self, sighting: Sighting, group: int) -> Observation:
        """Return an observation of the screen that the process group `group` has drawn."""
        pane, screen = self._pane, self._screen
        # The screen shows at least the output up to here.
        sighting = replace(sighting, end=pane.log.size)
        rows = await screen.rows()
        pane.show(sighting.end, rows, group)
        matching_row = None
        if sighting.reason is WaitReason.MATCHED:
            matching_row = screen.matching_row(rows)
        max_characters = self._conditions.max_characters
        return observed_screen(pane, sighting, rows, matching_row, max_characters)

    async def _observed_output(
        self, sighting: Sighting, last_screen: Sequence[str] | None
    ) -> Observation:
        """Return an observation of the output, after the screen of a program that has crashed."""
        pane = self._pane
        start, end = sighting.start, sighting.end
        # All that was read is trimmed from the log already.
        if end < pane.log.kept_from and not sighting.reason.is_match:
            end = pane.log.size
        # Output before the program left the alternate screen is gone with that screen.
        left_at = self._screen.drawing.switched_at
        if left_at:
            start = min(end, max(start, self._origin.cursor + left_at))
        sighting = replace(sighting, start=start, end=end)
        conditions = self._conditions
        abridgement = Abridgement(conditions.max_characters, folds=True, advice=conditions.advice)
        async with pane.events.reading:  # many waits may end at the same time
            return await observed_output(pane, sighting, last_screen, abridgement)


class _ActivityWatch:
    """Watches what a pane is doing, for conditions that depend on it.

    Args:
        pane: The pane.
        conditions: What to wait for.
        origin: Where the wait begins to look.
    """

    def __init__(self, pane: Pane, conditions: Conditions, origin: Origin) -> None:
        self._pane = pane
        self._clock = pane.clock
        self._times = pane.clock.times
        self._conditions = conditions
        self._tracker = ActivityTracker(pane.clock.times, origin.before)
        self._last: Activity | None = None
        self._look_at = 0.0

    async def reason(self) -> WaitReason | None:
        """Look at the pane, unless it is too early; return why the wait ends now, None to go on."""
        if not self._conditions.depends_on_activity or self._clock.now() < self._look_at:
            return None
        reason = self._reason_of(await self._look())
        if reason is None:
            return None
        await self._pane.drain()
        if self._has_printed_since():
            # The log was late. What the pane is doing is told together with all that it printed.
            reason = self._reason_of(await self._look())
        return reason

    async def _look(self) -> Activity:
        async with self._pane.events.looking:
            activity = await self._pane.terminal.observe(self._tracker)
        self._last = activity
        # Output wakes the watch much more often than looks are worth their time.
        self._look_at = self._clock.now() + self._times.min_look_s
        return activity

    def _has_printed_since(self) -> bool:
        last = self._last
        return last is not None and last.snapshot.printed_bytes != self._pane.log.size

    def _reason_of(self, activity: Activity) -> WaitReason | None:
        if activity.snapshot.is_over:
            return None
        if activity.is_awaiting:
            return WaitReason.INPUT
        if activity.is_at_rest and self._conditions.is_for_rest:
            return WaitReason.REST
        return None

    @property
    def next_look_s(self) -> float:
        """Seconds until the next look is due; infinite if no condition depends on it."""
        if self._last is None:
            return math.inf
        return max(self._times.min_look_s, self._last.look_again_s * self._pane.events.load)

    async def state(self) -> State:
        """Return the state of the pane, as the last look has it if nothing was printed since."""
        pane, activity = self._pane, self._last
        is_fresh = activity is not None and activity.snapshot.printed_bytes == pane.log.size
        if activity and is_fresh and not await pane.ending():
            return pane.running(activity.snapshot, activity.awaits)
        return await pane.state()
