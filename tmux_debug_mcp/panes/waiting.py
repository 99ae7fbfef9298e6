"""Waiting for the first thing that happens in a pane, or in one of several.

A wait reads the pane's log as it grows, and does nothing in between. Only for conditions that
depend on what the program is doing does it also look at the pane from time to time. A program that
draws on the whole screen does not print lines; then the rows that have changed since the wait began
are matched.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.errors import PaneLostError, ToolError
from tmux_debug_mcp.logs.growth import MAX_LOG_BYTES
from tmux_debug_mcp.logs.matching import Matcher, Scan
from tmux_debug_mcp.logs.positioning import is_alternate_at
from tmux_debug_mcp.vt.drawing import Drawing

from .capturing import capture_screen_rows
from .looking.activity import Activity, Snapshot, prompting
from .looking.state import State
from .pane import Pane, ShownScreen
from .reports import Reason, Report, output_excerpt, screen_excerpt
from .watching import Watch, watching

MAX_OBSERVATION_CHARACTERS = 10_000
# Limit for the text of an observation that the caller has not asked for.
MAX_UNASKED_CHARACTERS = 2_000
# The log is matched in slices: the output that an observation shows after a match is at most this.
_SLICE_BYTES = 4096
# After more output than this between two pauses, the next pause is at least `Times.flood_s`.
_FLOOD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Conditions:
    """What ends a wait: the first of these conditions, the program's end, or the timeout.

    Attributes:
        pattern: A regular expression of RE2 that a line of output has to match.
        stop_pattern: Another one, which tells that there is no use in waiting any longer.
        idle_s: Nothing was printed and nothing typed for this long.
        is_for_rest: Wait until the pane is at rest.
        is_for_input: Wait until the program awaits something.
        port: A process of the pane listens on this TCP port.
        timeout_s: The time to wait; 0 only looks at what is there.
        max_characters: The limit for the text of the report.
        advice: How to read output that is left out; `{cursor}` stands for where it begins.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    idle_s: float | None = None
    is_for_rest: bool = False
    is_for_input: bool = False
    port: int | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_characters: int = MAX_OBSERVATION_CHARACTERS
    advice: str = ""

    @property
    def is_look(self) -> bool:
        """Whether there is no condition and no time to wait."""
        look = Conditions(timeout_s=0, max_characters=self.max_characters, advice=self.advice)
        return self == look


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a wait begins to look.

    Attributes:
        cursor: Output from this cursor on can match.
        shown_from: Output from this cursor on is shown; at most `cursor`.
        rows: The rows that the screen had at `cursor`; empty if they are not known. Only other
            rows can match.
        before: The snapshot before the last keys; None if the wait does not follow keys.
    """

    cursor: int
    shown_from: int
    rows: Sequence[str] = ()
    before: Snapshot | None = None


def since_last_keys(pane: Pane) -> Origin:
    """Return the origin at the last keys or the last job of the pane's shell, else at its start."""
    job = pane.jobs.last
    job_start = job.start if job and job.start is not None else 0
    sent = pane.keyboard.last_sent
    before = pane.terminal.before_typing
    if sent is None or job_start > sent.cursor:
        return Origin(job_start, job_start, before=before)
    return Origin(sent.cursor, sent.cursor, sent.rows or _rows_shown_at(pane, sent.cursor), before)


def since_cursor(pane: Pane, cursor: int) -> Origin:
    """Return the origin at a cursor, which the pane's log must have reached."""
    last_keys = since_last_keys(pane)
    if cursor == last_keys.cursor:
        return last_keys
    return Origin(cursor, cursor, _rows_shown_at(pane, cursor))


def _rows_shown_at(pane: Pane, cursor: int) -> Sequence[str]:
    """Return the rows of the screen at a cursor; none unless the last result showed them."""
    shown = pane.shown
    return shown.rows if shown and shown.cursor == cursor else ()


async def wait(
    panes: Sequence[Pane], conditions: Conditions, origin_of: Callable[[Pane], Origin]
) -> list[Report]:
    """Wait for the first thing that happens in any of some panes, at least one.

    Returns:
        One report of what happened; if nothing did before the timeout, one of each pane, in the
        order of `panes`.

    Raises:
        ArgumentError: A pattern can't be used.
    """
    matcher = Matcher(conditions.pattern, conditions.stop_pattern)
    deadline = panes[0].clock.now() + conditions.timeout_s
    origins = [origin_of(pane) for pane in panes]
    happened: list[Report] = []
    timed_out: dict[int, Report] = {}
    errors: list[ToolError] = []

    async def first(number: int) -> Report:
        pane, origin = panes[number], origins[number]
        async with watching(pane, origin.before) as watch:
            return await _Wait(watch, conditions, origin, matcher).first(deadline)

    async with anyio.create_task_group() as tasks:

        async def wait_for_one(number: int) -> None:
            try:
                try:
                    report = await first(number)
                except PaneLostError:  # it is known to have ended now, which the next wait sees
                    report = await first(number)
            except ToolError as error:  # raised below, since the task group would wrap it
                errors.append(error)
                tasks.cancel_scope.cancel()
                return
            if report.reason is Reason.TIMED_OUT:
                timed_out[number] = report
            elif not happened:
                happened.append(report)
                tasks.cancel_scope.cancel()

        for number in range(len(panes)):
            tasks.start_soon(wait_for_one, number)
    if happened:
        return happened
    if errors:
        raise errors[0]
    return [timed_out[number] for number in sorted(timed_out)]


class _Wait:
    """The wait for one pane."""

    def __init__(
        self, watch: Watch, conditions: Conditions, origin: Origin, matcher: Matcher
    ) -> None:
        self._watch = watch
        self._pane = pane = watch.pane
        self._clock = pane.clock
        self._times = pane.clock.times
        self._conditions = conditions
        self._origin = origin
        self._matcher = matcher
        self._scan = Scan(pane.log, origin.cursor, pane.keyboard.sent)
        has_shown_screen = (
            origin.before is not None
            and pane.shown is not None
            and origin.before.group == pane.shown.group
        )
        # Is fed all output from the origin on.
        self._drawing = Drawing(
            is_alternate=is_alternate_at(pane.log, origin.cursor), has_addressed=has_shown_screen
        )
        self._was_drawing = self._drawing.is_on
        self._screen_matched_to = origin.cursor  # rows were matched when this had been printed
        self._matching_row: int | None = None

    async def first(self, deadline: float) -> Report:
        """Return what meets a condition first, or what there is at the deadline."""
        pane, scan = self._pane, self._scan
        async with pane.events.reading:
            await pane.ensure_log_writer()
        if not self._conditions.timeout_s and not await pane.ending():
            # Only one look is taken, and the log may lag behind the screen.
            await pane.drain()
        while True:
            position = scan.position
            ending = await pane.ending()
            reason = await self._reason(ending, deadline)
            if reason:
                if reason.is_match:
                    await self._read_rest_of_line()
                return await self._report(reason, ending)
            until = deadline
            if self._conditions.idle_s is not None:
                until = min(until, self._clock.now() + self._conditions.idle_s - self._idle_s())
            if scan.position - position > _FLOOD_BYTES:
                flood_s = max(0.0, until - self._clock.now())
                await self._clock.sleep(min(self._times.flood_s, flood_s))
            else:
                await self._watch.wait(until)

    async def _reason(self, ending: State | None, deadline: float) -> Reason | None:
        """Return why the wait ends now, or None to go on."""
        if ending:
            return await self._match_output(ending.cursor, deadline) or Reason.EXITED
        # Look at the pane before reading its log: lines printed before it came to rest can match.
        activity_reason = await self._reason_of_activity()
        match = await self._match_output(self._pane.log.size, deadline)
        match = match or await self._match_screen() or activity_reason
        if match:
            return match
        conditions = self._conditions
        if conditions.idle_s is not None and self._idle_s() >= conditions.idle_s:
            return Reason.IDLE
        printed_bytes = self._scan.position - self._origin.cursor
        if conditions.pattern is None and printed_bytes > MAX_LOG_BYTES:
            return Reason.FLOODED
        if self._clock.now() >= deadline:
            await self._pane.ensure_log_writer()
            return Reason.TIMED_OUT
        return None

    async def _reason_of_activity(self) -> Reason | None:
        """Look at the pane, if a condition depends on what it is doing."""
        port = self._conditions.port
        needs_looks = self._conditions.is_for_rest or self._conditions.is_for_input
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
                # The log was late. What the pane is doing is told with all that it printed.
                reason = self._reason_of(await self._watch.look())
        return reason

    def _reason_of(self, activity: Activity | None) -> Reason | None:
        if activity is None or activity.snapshot.is_over:
            return None
        if activity.is_awaiting:
            return Reason.INPUT
        if activity.is_at_rest and self._conditions.is_for_rest:
            return Reason.REST
        return None

    def _is_fresh(self, activity: Activity | None) -> bool:
        """Tell whether nothing was printed since a look."""
        return activity is not None and activity.snapshot.printed_bytes == self._pane.log.size

    async def _match_output(self, end: int, deadline: float) -> Reason | None:
        """Match new output up to a cursor, while there is time; return which pattern matches."""
        position = -1
        while position != self._scan.position:
            position = self._scan.position
            async with self._pane.events.reading:
                lines = await self._scan.step(end, _SLICE_BYTES, self._drawing)
                reason = self._matcher.first(lines)
            if reason:
                return Reason(reason)
            # Without a timeout the wait is a single look at all there is.
            if self._conditions.timeout_s and self._clock.now() > deadline:
                return None
        return None

    def _drawer(self) -> Snapshot | None:
        """Return a snapshot of the program that draws on the whole screen; None if none does."""
        if not self._drawing.is_on:
            return None
        snapshot = self._pane.terminal.look()
        # A shell at its prompt: the program that was drawing has ended.
        return None if prompting(snapshot) else snapshot

    async def _match_screen(self) -> Reason | None:
        """Return which pattern matches a row that has changed; None if none does."""
        position = self._scan.position
        if not self._drawing.is_on or self._screen_matched_to == position:
            return None
        if not self._matcher.has_patterns:
            return None
        if self._conditions.timeout_s:
            await self._clock.sleep(self._times.drawing_s)  # the program may draw the rest
        if self._drawer() is None:
            return None
        self._screen_matched_to = position
        rows, is_alternate = await self._capture()
        # The program has left its screen, in output that was not read yet.
        if self._drawing.is_alternate and not is_alternate:
            return None
        # Rows are compared wherever they are, so that a screen that scrolls does not match anew.
        changed = Counter(rows) - Counter(self._origin.rows)
        for number, row in enumerate(rows):
            reason = self._reason_of_row(self._without_echo(row)) if changed[row] else None
            if reason:
                self._matching_row = number
                return reason
        return None

    def _reason_of_row(self, row: str) -> Reason | None:
        # Behind the last character of a row are blanks, which a pattern may end with.
        reason = self._matcher.first([row]) or self._matcher.first([f"{row} "])
        return Reason(reason) if reason else None

    def _without_echo(self, row: str) -> str:
        """Return a row without the keys typed last, and what is before them, if it has them."""
        sent = self._pane.keyboard.last_sent
        # Without keys before the wait nothing is echoed, and full-screen programs don't echo.
        if self._drawing.is_alternate or sent is None or self._origin.before is None:
            return row
        ends = [row.rfind(text) + len(text) for text in sent.texts if text in row]
        return row[max(ends, default=0) :]

    async def _capture(self) -> tuple[list[str], bool]:
        """Return the rows of the screen, none if the pane is gone; and if it is the alternate."""
        with contextlib.suppress(PaneLostError):
            return await capture_screen_rows(self._pane)
        return [], False

    def _idle_s(self) -> float:
        """Return the seconds since something was printed or typed, or the pane was made."""
        quiet_s = self._pane.log.quiet_s()
        sent = self._pane.keyboard.last_sent
        return quiet_s if sent is None else min(quiet_s, self._clock.now() - sent.at)

    async def _read_rest_of_line(self) -> None:
        """Read the rest of the line that matched, if it follows at once."""
        pane, scan = self._pane, self._scan
        deadline = self._clock.now() + self._times.rest_of_line_s
        while not scan.is_at_line_end and not self._drawing.is_on:
            ending = await pane.ending()
            end = ending.cursor if ending else pane.log.size
            data = pane.log.read(scan.position, min(_SLICE_BYTES, end - scan.position))
            line, line_feed, _ = data.partition(b"\n")
            line_end = scan.position + len(line) + len(line_feed)
            await scan.step(line_end, _SLICE_BYTES, self._drawing)
            if len(data) == _SLICE_BYTES:
                return
            if not data:
                if ending or self._clock.now() >= deadline:
                    return
                await self._watch.wait(deadline)

    async def _report(self, reason: Reason, ending: State | None) -> Report:
        pane, scan, origin, conditions = self._pane, self._scan, self._origin, self._conditions
        end = scan.seen_to
        # Without a match, all output of a program that has ended is shown.
        if ending and not reason.is_match:
            end = ending.cursor
        start = min(origin.shown_from, end)
        state = ending or await self._state()
        drawer = None if ending else self._drawer()
        if drawer:
            end = pane.log.size  # the screen shows at least the output up to here
            rows, _ = await self._capture()
            pane.shown = ShownScreen(end, rows, drawer.group)
            row = self._matching_row
            if row is None and reason is Reason.MATCHED:
                matching = (number for number, one in enumerate(rows) if self._reason_of_row(one))
                row = next(matching, None)
            excerpt = screen_excerpt(
                rows, row if reason is Reason.MATCHED else None, conditions.max_characters
            )
            size = pane.log.columns, pane.log.rows
            return Report(reason, pane, state, excerpt, start, end, size, scan.unseen_bytes)
        # All that was read is trimmed from the log already.
        if end < pane.log.kept_from and not reason.is_match:
            end = pane.log.size
        # Output before the program left the alternate screen is gone with that screen.
        left_at = self._drawing.switched_at
        if left_at:
            start = min(end, max(start, origin.cursor + left_at))
        has_crashed = bool(ending and (ending.exit_code or ending.signal))
        last_screen = origin.rows if has_crashed and self._was_drawing else None
        async with pane.events.reading:  # many waits may end at the same time
            excerpt, start = await output_excerpt(
                pane, start, end, last_screen, conditions.max_characters, conditions.advice
            )
        return Report(reason, pane, state, excerpt, start, end, None, scan.unseen_bytes)

    async def _state(self) -> State:
        """Return the state of the pane, as the last look has it if nothing was printed since."""
        pane, activity = self._pane, self._watch.activity
        if activity and self._is_fresh(activity) and not await pane.ending():
            return pane.running(activity)
        return await pane.state()
