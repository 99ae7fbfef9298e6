"""Waiting for the first thing that happens in a pane, or in one of several.

A wait reads the pane's log as it grows, and does nothing in between. If a condition depends on what
the program is doing, it also looks at the pane from time to time. A program that draws on the whole
screen prints no lines, so the wait matches the rows that have changed since it began.

What ends a wait are the rules in `EndOfWait`. The log may be late, so a rule drains it before it
says that something was not printed.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S, Times
from tmux_debug_mcp.errors import PaneLostError, ToolError
from tmux_debug_mcp.logs.matching import Matcher, MatchReason
from tmux_debug_mcp.logs.retention import MAX_LOG_BYTES
from tmux_debug_mcp.turns import next_turn

from .caller_session import CallerSession
from .looking.activity import Awaits
from .observing import SLICE_BYTES, Observation
from .pane import Pane
from .reports import Reason, Report, Selection, report
from .watching import Later, Moment, Need, at_rest, until

# Begins the observation of a wait, given its pane and its patterns.
Begin = Callable[[Pane, Matcher], Awaitable[Observation]]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What ends a wait: the first of these conditions, the program's end, or the timeout.

    A wait for patterns also ends when nothing more can come: a shell is at its prompt and nothing
    else runs in the pane, or the program awaits hidden input.

    Attributes:
        pattern: A regular expression of RE2 that a line of output must match.
        stop_pattern: A pattern whose match means that there is no point in waiting longer.
        gone: A pattern that nothing on the screen matches any more; see `Observation.stands`.
        is_back: Wait until something matches `gone` instead.
        idle_s: Nothing was printed and nothing typed for this long.
        is_for_rest: Wait until the pane is at rest.
        is_for_input: Wait until the program awaits something.
        port: A process of the pane listens on this TCP port.
        timeout_s: The time to wait; 0 only looks at what is there.
        shows: What the report shows.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    gone: str | None = None
    is_back: bool = False
    idle_s: float | None = None
    is_for_rest: bool = False
    is_for_input: bool = False
    port: int | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    shows: Selection = field(default_factory=Selection)

    @property
    def is_look(self) -> bool:
        """Whether there is no condition and no time to wait."""
        return self == Conditions(timeout_s=0, shows=self.shows)

    def matcher(self) -> Matcher:
        """Return the compiled patterns; ArgumentError if any is not valid."""
        return Matcher(self.pattern, self.stop_pattern, self.shows.pattern, self.gone)


async def wait(
    panes: Sequence[Pane],
    conditions: Conditions,
    begin: Begin,
    session: CallerSession | None = None,
) -> list[Report]:
    """Wait for the first thing that happens in any of one or more panes, for the caller's session.

    Returns:
        A single report of what happened; if nothing did before the timeout, a report for each
        pane, in the order of `panes`.

    Raises:
        ArgumentError: A pattern is not valid.
    """
    matcher = conditions.matcher()
    deadline = panes[0].clock.now() + conditions.timeout_s
    first: Report | ToolError | None = None
    timed_out: dict[int, Report] = {}

    async def wait_for_one(number: int) -> None:
        nonlocal first
        result: Report | ToolError
        try:
            observation = await begin(panes[number], matcher)
            if session:
                observation.session = session
                observation.shown_to = session.shown(panes[number]).cursor
            result = await observe(observation, conditions, deadline)
        except ToolError as error:  # raised below, since the task group would wrap it
            result = error
        if isinstance(result, Report) and result.reason is Reason.TIMED_OUT:
            timed_out[number] = result
        else:
            first = first or result
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for number in range(len(panes)):
            tasks.start_soon(wait_for_one, number)
    if isinstance(first, ToolError):
        raise first
    return [first] if first else [timed_out[number] for number in sorted(timed_out)]


class EndOfWait:
    """Decides, as a rule, when and why a wait ends.

    `cursor` is where its output begins, and `early` what matched before the last step of keys.
    """

    def __init__(
        self, times: Times, conditions: Conditions, cursor: int, early: MatchReason | None
    ) -> None:
        self._times = times
        self._conditions = conditions
        self._cursor = cursor
        self._early = Reason(early) if early else None
        # What the program does can end the wait.
        self._is_for_activity = bool(conditions.is_for_rest or conditions.is_for_input or early)
        # The size of the log when it was last seen to have grown, and how long the pane must be
        # quiet before the next check whether anything can come.
        self._size = cursor
        self._check_s = times.quiet_s
        # Since when nothing matches `gone`; None while something does.
        self._gone_since: float | None = None
        # Of several rules that hold, the first counts.
        self._rules = (
            self._stopped_early,
            self._matched,
            self._exited,
            self._gone,
            self._listens,
            self._rested,
            self._idle,
            self._flooded,
            self._timed_out,
            self._hopeless,
        )

    def __call__(self, moment: Moment) -> Reason | Need | Later | None:
        """Return why the wait ends at this moment."""
        later: Later | None = None
        for rule in self._rules:
            answer = rule(moment)
            if isinstance(answer, Later):
                later = min(later or answer, answer)
            elif answer:
                return answer
        return later

    def _stopped_early(self, _: Moment) -> Reason | None:
        return self._early if self._early is Reason.STOPPED else None

    def _matched(self, moment: Moment) -> Reason | None:
        return Reason(moment.match) if moment.match else None

    def _exited(self, moment: Moment) -> Reason | Need | None:
        """After code 0, what is left running may still print or listen."""
        if moment.ending is None:
            return None
        if self._is_for_activity:
            return self._early or Reason.EXITED
        if moment.ending.code == 0 and moment.runs_others is None:
            return Need.OTHERS
        if moment.ending.code == 0 and moment.runs_others:
            return None
        return Reason.EXITED if self._conditions.gone is None else Reason.GONE

    def _gone(self, moment: Moment) -> Reason | Need | Later | None:
        """Between two frames of a spinner, nothing is there either, so that it lasts counts."""
        if self._conditions.gone is None:
            return None
        if moment.stands:
            self._gone_since = None
            return Reason.BACK if self._conditions.is_back else None
        if self._gone_since is None:
            # What is there has changed when something was printed. Keys may still bring it.
            self._gone_since = moment.touched_at
        gone_at = self._gone_since + self._times.gone_s
        if self._conditions.is_back:
            return None
        if moment.now < gone_at:
            return Later(gone_at)
        if moment.is_drained is None:
            return Need.DRAIN
        return Reason.GONE if moment.is_drained else None

    def _listens(self, moment: Moment) -> Reason | Need | Later | None:
        if self._conditions.port is None:
            return None
        if moment.ports is None:
            return Need.PORTS
        if self._conditions.port in moment.ports:
            return Reason.LISTENS
        return Later(moment.now + self._times.max_look_s)

    def _rested(self, moment: Moment) -> Reason | Need | None:
        """The program awaits something, or is at rest, or matched early and is at rest by now."""
        if moment.ending or not self._is_for_activity:
            return None
        if moment.activity is None:
            return Need.LOOK
        activity, reason = moment.activity, self._early
        if reason is None:
            reason = Reason.INPUT if activity.only_awaits else Reason.REST
        is_over = activity.is_at_rest and (
            reason is not Reason.REST or self._conditions.is_for_rest
        )
        if not is_over or activity.snapshot.is_over:
            return None
        return Need.DRAIN if moment.is_drained is None else reason

    def _idle(self, moment: Moment) -> Reason | Need | Later | None:
        idle_s = self._conditions.idle_s
        if idle_s is None:
            return None
        if moment.now < moment.touched_at + idle_s:
            return Later(moment.touched_at + idle_s)
        if moment.is_drained is None:
            return Need.DRAIN
        return Reason.IDLE if moment.is_drained else None

    def _flooded(self, moment: Moment) -> Reason | None:
        is_flood = moment.size - self._cursor > MAX_LOG_BYTES
        return Reason.FLOODED if is_flood and self._conditions.pattern is None else None

    def _timed_out(self, moment: Moment) -> Reason | Need | None:
        if not moment.is_due:
            return None
        return Need.DRAIN if moment.is_drained is None else self._early or Reason.TIMED_OUT

    def _hopeless(self, moment: Moment) -> Reason | Need | Later | None:
        """No pattern can match until somebody types. Checked rarely while nothing is printed."""
        if moment.size != self._size:
            self._size, self._check_s = moment.size, self._times.quiet_s
        conditions = self._conditions
        if conditions.pattern is conditions.stop_pattern is conditions.gone is None:
            return None
        if moment.ending or not self._conditions.timeout_s:
            return None
        if moment.now + self._times.min_look_s < moment.touched_at + self._check_s:
            return Later(moment.touched_at + self._check_s)
        answer = None if moment.has_person else self._awaits_somebody(moment)
        if answer is not None:
            return answer
        self._check_s = max(moment.now - moment.touched_at, self._check_s) * 2
        return Later(moment.touched_at + self._check_s)

    def _awaits_somebody(self, moment: Moment) -> Reason | Need | None:
        """Hidden input is awaited, or a shell is at its prompt and nothing else runs."""
        if moment.activity is None:
            return Need.LOOK
        is_secret = moment.activity.awaits is Awaits.HIDDEN_INPUT
        if not moment.activity.only_awaits or not (is_secret or moment.activity.shell):
            return None
        if moment.is_drained is None:
            return Need.DRAIN
        if not is_secret and moment.runs_others is None:
            return Need.OTHERS
        if not moment.is_drained or moment.runs_others:
            return None
        is_gone = self._conditions.gone is not None and not moment.stands
        return Reason.GONE if is_gone else Reason.INPUT


async def observe(observation: Observation, conditions: Conditions, deadline: float) -> Report:
    """Continue an observation until a condition is met, and report what there is then."""
    pane, clock, times = observation.pane, observation.pane.clock, observation.pane.clock.times

    async def read(moment: Moment) -> None:
        if observation.early is MatchReason.STOPPED:
            return
        # All that there is can be read, which takes a while, if it is the last look.
        is_look = not conditions.timeout_s
        last_s = times.starting_s if is_look or moment.ending else 0.0
        moment.match = await observation.read(moment.size, deadline + last_s)
        if not (moment.match or moment.ending):
            moment.match = await observation.match_screen(is_look=is_look)
        moment.stands = await observation.stands(is_look=is_look)

    with pane.keeping_log():
        await next_turn()
        await pane.ensure_log_writer()
        rule = EndOfWait(times, conditions, observation.cursor, observation.early)
        verdict, moment = await until(pane, rule, deadline, read)
        reason = verdict or Reason.TIMED_OUT  # the rule itself says so at the deadline
        if moment.match:  # an early match no longer counts
            observation.early = None
            await _read_rest_of_line(observation)
        if reason.is_match and pane.terminal.look().snapshot.is_at_work:
            # Let a program end that is about to, so that the result has its exit code.
            await until(pane, _ended_or_idle, clock.now() + times.ending_soon_s)
        if reason is Reason.LISTENS and conditions.shows.pattern is not None:
            # Servers tell of their ports late.
            await until(pane, at_rest, min(deadline, clock.now() + times.rest_s))
            with contextlib.suppress(PaneLostError):  # the report tells how it ended
                await pane.drain()
            await observation.read(pane.log.size)
        return await report(observation, reason, moment.activity, conditions.shows)


async def _read_rest_of_line(observation: Observation) -> None:
    """Read the rest of the line that has matched, if it follows at once."""
    clock, log = observation.pane.clock, observation.pane.log

    async def read(moment: Moment) -> None:
        if observation.text.is_at_line_end or observation.text.is_drawn_on:
            return
        data = log.read(observation.position, min(SLICE_BYTES, moment.size - observation.position))
        line, line_feed, _rest = data.partition(b"\n")
        await observation.read(observation.position + len(line) + len(line_feed))

    def is_whole(moment: Moment) -> bool | None:
        return (
            bool(observation.text.is_at_line_end or observation.text.is_drawn_on or moment.ending)
            or None
        )

    await until(observation.pane, is_whole, clock.now() + clock.times.rest_of_line_s, read)


def _ended_or_idle(moment: Moment) -> bool | Need | Later | None:
    """Decide, as a rule, that a program has ended, or that it no longer works."""
    if moment.ending:
        return True
    if moment.activity is None:
        return Need.LOOK
    snapshot = moment.activity.snapshot
    return not (snapshot.is_over or snapshot.is_at_work) or None
