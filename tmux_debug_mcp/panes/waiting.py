"""Waiting for what a pane prints or does: its log is read on, and nothing is done while it does not grow.

Only who waits for rest, or for what a program awaits, looks at the pane in between: the kernel does not tell of that.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.errors import CursorError, PaneLostError
from tmux_debug_mcp.logs.abridging import read_middle
from tmux_debug_mcp.logs.excerpts import Excerpt, cut_in_the_middle, folded, joined
from tmux_debug_mcp.logs.matching import Matcher, Scan
from tmux_debug_mcp.logs.pacing import Pace
from tmux_debug_mcp.logs.positioning import is_alternate_at
from tmux_debug_mcp.logs.retention import MAX_LOG_BYTES
from tmux_debug_mcp.logs.subscriptions import Subscription
from tmux_debug_mcp.vt.drawing import Drawing

from .activity import Activity, ActivityTracker, Snapshot, prompting
from .capturing import capture_screen_rows
from .pane import Pane
from .state import State

MAX_OBSERVATION_CHARACTERS = 10_000
# One that nobody asked for.
MAX_UNASKED_CHARACTERS = 2_000
DEFAULT_TIMEOUT_S = 30.0
# A line that matches is shown with what came before it, so this much at most comes behind it.
_SLICE_BYTES = 4096
# Who prints this much at once is looked at a hundred times a second.
_FLOOD_BYTES = 1 << 16
_FLOOD_S = 0.01
# The rest of a line that matches before it is whole comes at once, unless it is a prompt.
_REST_OF_LINE_S = 0.003
# A program that dies this soon is told by who makes a pane.
EARLY_DEATH_S = 0.05
# A pane is looked at so often at most.
_LOOK_AGAIN_S = 0.002
# A program draws its screen in several pieces.
_DRAWN_S = 0.005
# How much of what was printed tells whether its program draws on the whole screen.
_DRAWING_BYTES = 1 << 20
# Clocks of files and processes differ by so much.
_IDLE_SLACK_S = 0.001


@dataclass(frozen=True, slots=True)
class Conditions:
    """What to wait for: the first of these, the program's end or the end of the time.

    Attributes:
        pattern: A regular expression, for a line.
        stop_pattern: Another one.
        idle_s: Nothing printed and nothing sent for so long.
        is_for_rest: Until the pane is at rest.
        is_for_input: Until the program awaits something.
        timeout_s: How long to wait; 0 looks at what is there.
        max_characters: The most text to show.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    idle_s: float | None = None
    is_for_rest: bool = False
    is_for_input: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_characters: int = MAX_OBSERVATION_CHARACTERS

    @property
    def is_look(self) -> bool:
        """Whether nothing is waited for."""
        return self == Conditions(timeout_s=0, max_characters=self.max_characters)

    @property
    def needs_looks(self) -> bool:
        """Whether the pane has to be looked at."""
        return self.is_for_rest or self.is_for_input


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a wait begins.

    Attributes:
        cursor: What is printed from here on is looked at.
        shown_from: What is printed from here on is shown.
        rows: What the screen showed then, as far as it matters.
        before: The last look before something was typed.
    """

    cursor: int
    shown_from: int
    rows: Sequence[str] = ()
    before: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What happened first, and what was printed from where the wait began until then, or what the screen shows.

    Attributes:
        reason: `matched`, `stopped`, `idle`, `rest`, `input`, `exited`, `flooded` or `timed_out`.
        state: The pane's state then.
        excerpt: The text.
        start: Where the text begins.
        end: The cursor to go on from.
        screen: The columns and rows of the screen, where that is the text.
        unseen_bytes: How much was no longer kept when it was to be looked at.
    """

    reason: str
    pane: Pane
    state: State
    excerpt: Excerpt
    start: int
    end: int
    screen: tuple[int, int] | None
    unseen_bytes: int


class Watch:
    """The wait for one pane.

    Args:
        pane: The pane.
        conditions: What to wait for.
        begin: Where to begin.
        matcher: The conditions' patterns.
    """

    def __init__(self, pane: Pane, conditions: Conditions, begin: Origin, matcher: Matcher) -> None:
        self._pane = pane
        self._conditions = conditions
        self._begin = begin
        self._matcher = matcher
        self._scan = Scan(pane.log, begin.cursor, pane.keyboard.sent)
        self._drawing = Drawing(
            is_alternate=is_alternate_at(pane.log, begin.cursor),
            has_addressed=begin.before is not None
            and pane.shown is not None
            and begin.before.group == pane.shown.group,
        )
        self._drew = self._drawing.is_on
        self._drawn = begin.cursor  # how far the program had printed when its screen was looked at
        self._row: int | None = None  # of the screen, which has matched
        self._activity = ActivityTracker(begin.before)
        self._doing: Activity | None = None
        self._look_at = 0.0

    async def first(self, deadline: float) -> Observation:
        """Return what happens first.

        Args:
            deadline: The end of the time, as anyio.current_time() has it.
        """
        async with self._pane.subscribe() as subscription:
            async with self._pane.events.reading:
                await self._pane.ensure_log_writer()
            while True:
                ended = await self._pane.ending()
                before = self._scan.position
                reason = await self._reason(ended, deadline)
                if reason in ("matched", "stopped"):
                    await self._take_rest_of_line(subscription)
                if reason:
                    return await self._observation(reason, ended)
                wait_s = self._wait_s(deadline)
                if self._scan.position - before > _FLOOD_BYTES:
                    await anyio.sleep(min(_FLOOD_S, max(0.0, wait_s)))
                else:
                    await subscription.wait(wait_s)

    async def _reason(self, ended: State | None, deadline: float) -> str | None:
        """Return what has happened, or None."""
        # The pane first: what it has printed until then is looked at.
        resting = None if ended else await self._resting()
        seen = await self._look(ended, deadline)
        return seen or ("exited" if ended else resting or await self._late(deadline))

    async def _late(self, deadline: float) -> str | None:
        """Return whether time or room is over."""
        conditions = self._conditions
        if conditions.idle_s is not None and self._quiet_s() >= conditions.idle_s:
            return "idle"
        printed = self._scan.position - self._begin.cursor
        if conditions.pattern is None and printed > MAX_LOG_BYTES:
            return "flooded"
        if deadline <= anyio.current_time():
            await self._pane.ensure_log_writer()
            return "timed_out"
        return None

    async def _resting(self) -> str | None:
        """Look at the pane; return whether that is what is waited for."""
        if not self._conditions.needs_looks or anyio.current_time() < self._look_at:
            return None
        async with self._pane.events.looking:
            activity = self._doing = await self._pane.terminal.observe(self._activity)
        # Output wakes those who wait, and is no reason to look more often.
        self._look_at = anyio.current_time() + _LOOK_AGAIN_S
        if activity.snapshot.is_over:
            return None
        if activity.is_awaiting:
            reason = "input"
        elif activity.is_at_rest and self._conditions.is_for_rest:
            reason = "rest"
        else:
            return None
        await self._pane.drain()
        return reason

    def _wait_s(self, deadline: float) -> float:
        """Return for how long there is nothing to do, unless something is printed."""
        wait_s = deadline - anyio.current_time()
        if self._conditions.idle_s is not None:
            wait_s = min(wait_s, self._conditions.idle_s - self._quiet_s() + _IDLE_SLACK_S)
        if self._doing:
            wait_s = min(wait_s, max(_LOOK_AGAIN_S, self._doing.look_again_s * self._pane.events.load))
        return wait_s

    async def _look(self, ended: State | None, deadline: float) -> str | None:
        """Look at all that is new, if there is time for that; return which pattern matches, or None."""
        end, before = ended.cursor if ended else self._pane.log.size, -1
        pace = Pace()
        while before != self._scan.position:
            before = self._scan.position
            async with self._pane.events.reading:
                pace.begin()
                lines = self._scan.step(end, min(pace.bytes, _SLICE_BYTES), self._drawing)
                reason = self._matcher.first(lines)
                pace.end()
            if reason:
                return reason
            if self._conditions.timeout_s and anyio.current_time() > deadline:
                break
        return None if ended else await self._look_at_screen()

    async def _look_at_screen(self) -> str | None:
        """Look at the rows that have changed on the screen of a program that draws there."""
        if not self._drawing.is_on or self._drawn == self._scan.position or not self._matcher.has_patterns:
            return None
        if self._conditions.timeout_s:
            await anyio.sleep(_DRAWN_S)
        if prompting(self._pane.terminal.look()):  # the program that drew has ended
            return None
        self._drawn = self._scan.position
        rows, is_alternate = await self._screen_rows()
        if self._drawing.is_alternate and not is_alternate:  # it has gone, which is not read yet
            return None
        changed = Counter(rows) - Counter(self._begin.rows)
        for number, row in enumerate(rows):
            if changed[row] and (reason := self._matcher.first([self._without_echo(row)])):
                self._row = number
                return reason
        return None

    def _without_echo(self, row: str) -> str:
        """Return a row without what was typed, where a terminal may have shown it there."""
        sent = self._pane.keyboard.sent
        if self._drawing.is_alternate or not sent or not self._begin.before:
            return row
        ends = [row.rfind(text) + len(text) for text in sent[-1].texts if text in row]
        return row[max(ends, default=0) :]

    async def _screen_rows(self) -> tuple[list[str], bool]:
        """Return the rows of the screen and whether it is the alternate one; none when the pane is gone."""
        with contextlib.suppress(PaneLostError):
            return await capture_screen_rows(self._pane)
        return [], False

    async def _take_rest_of_line(self, subscription: Subscription) -> None:
        """Take the end of the line that was read last, if that is there or comes at once."""
        scan, log = self._scan, self._pane.log
        deadline = anyio.current_time() + _REST_OF_LINE_S
        while not (scan.is_at_line_end or self._drawing.is_on):
            ended = await self._pane.ending()
            end = ended.cursor if ended else log.size
            rest = log.read(scan.position, min(_SLICE_BYTES, end - scan.position))
            scan.step(scan.position + (rest.find(b"\n") + 1 or len(rest)), _SLICE_BYTES, self._drawing)
            wait_s = deadline - anyio.current_time()
            if len(rest) == _SLICE_BYTES or (not rest and (ended or wait_s <= 0)):
                return
            if not rest:
                await subscription.wait(wait_s)

    def _quiet_s(self) -> float:
        """Return for how long nothing has been printed, nor sent."""
        pane = self._pane
        last = max(pane.log.written_at, pane.keyboard.sent[-1].at if pane.keyboard.sent else 0.0)
        return min(time.time() - last, time.monotonic() - pane.started_at)

    async def _observation(self, reason: str, ended: State | None) -> Observation:
        pane, scan = self._pane, self._scan
        end = scan.seen_to if ended is None or reason in ("matched", "stopped") else ended.cursor
        state = ended or await self._state()
        start, most = min(self._begin.shown_from, end), self._conditions.max_characters
        unseen_bytes = scan.unseen_bytes
        if ended is None and self._drawing.is_on and not prompting(snapshot := pane.terminal.look()):
            end = pane.log.size  # which the screen shows at least
            rows, _ = await self._screen_rows()
            pane.show(end, rows, snapshot.group)
            shown = cut_in_the_middle(folded(rows), most, self._shown_row(rows) if reason == "matched" else None)
            screen = pane.log.columns, pane.log.rows
            return Observation(reason, pane, state, shown, start, end, screen, unseen_bytes)
        if end < pane.log.kept_from and reason not in ("matched", "stopped"):
            end = pane.log.size
        if self._drawing.switched_at:  # what was drawn before is gone with the screen that it was drawn on
            start = min(end, max(start, self._begin.cursor + self._drawing.switched_at))
        before = Excerpt([], [])
        if self._drew and ended and (ended.exit_code or ended.signal):
            before = _last_screen(self._begin.rows, most // 2)
            most -= len(before.text) + 1
        shown, start = await read_middle(pane.log, start, end, most, folds=True)
        return Observation(reason, pane, state, joined(before, shown), start, end, None, unseen_bytes)

    def _shown_row(self, rows: Sequence[str]) -> int | None:
        """Return the number of the row that has matched among those that are shown."""
        found = (number for number, row in enumerate(rows) if self._matcher.first([row]))
        row = next(found, None) if self._row is None else self._row
        return None if row is None else len(folded(rows[: row + 1]).lines) - 1

    async def _state(self) -> State:
        """Return the running pane's state; what was waited for has just been seen."""
        activity = self._doing
        if activity and activity.snapshot.printed == self._pane.log.size and not await self._pane.ending():
            return self._pane.running(activity.snapshot, activity.awaits)
        return await self._pane.state()


def _last_screen(rows: Sequence[str], most: int) -> Excerpt:
    """Return what a program showed that has crashed: its screen went with it."""
    title, end = "[the screen before the last step]", "[then]"
    screen = cut_in_the_middle(folded(rows), most - len(title) - len(end) - 2)
    return joined(Excerpt([title], [0]), screen, Excerpt([end], [0]))


async def wait(panes: Sequence[Pane], conditions: Conditions, begin: Callable[[Pane], Origin]) -> list[Observation]:
    """Wait for the first thing that happens in any of the panes.

    Args:
        panes: The panes.
        conditions: What to wait for in each.
        begin: Says where to begin.

    Returns:
        What happened; when the time was over before anything did, that of each pane.

    Raises:
        ArgumentError: A pattern can't be used.
    """
    matcher = Matcher(conditions.pattern, conditions.stop_pattern)
    deadline = anyio.current_time() + conditions.timeout_s
    watches = [Watch(pane, conditions, begin(pane), matcher) for pane in panes]
    found: list[Observation] = []
    late: dict[int, Observation] = {}
    async with anyio.create_task_group() as tasks:

        async def watch(number: int) -> None:
            observation = await watches[number].first(deadline)
            if observation.reason == "timed_out":
                late[number] = observation
            elif not found:
                found.append(observation)
                tasks.cancel_scope.cancel()

        for number in range(len(watches)):
            tasks.start_soon(watch, number)
    return found or [late[number] for number in sorted(late)]


async def rest(pane: Pane, timeout_s: float) -> State:
    """Wait until a pane is at rest, or the time is over, and return its state then."""
    deadline = anyio.current_time() + timeout_s
    tracker = ActivityTracker(pane.terminal.before_typing)
    async with pane.subscribe() as subscription:
        while not await pane.ending():
            async with pane.events.looking:
                activity = await pane.terminal.observe(tracker)
            wait_s = deadline - anyio.current_time()
            if activity.is_at_rest or wait_s <= 0:
                break
            await subscription.wait(min(wait_s, activity.look_again_s * pane.events.load))
        return await pane.state()


def since_cursor(pane: Pane, cursor: int) -> Origin:
    """Return where a wait begins that is for what was printed from a cursor on.

    Raises:
        CursorError: The pane has not come to the cursor yet.
    """
    if cursor > pane.log.size:
        raise CursorError(cursor, pane.log.size)
    last = since_last_keys(pane)
    return last if cursor == last.cursor else Origin(cursor, cursor, _rows_at(pane, cursor))


def _rows_at(pane: Pane, cursor: int) -> Sequence[str]:
    """Return what the screen showed at a cursor, if it was looked at then."""
    shown = pane.shown
    return shown.rows if shown and shown.cursor == cursor else ()


def since_last_keys(pane: Pane) -> Origin:
    """Return where a wait begins that follows the last keys or the last command of the pane's shell, or its start."""
    ran_from = pane.shell.job.start if pane.shell.job else None
    sent = pane.keyboard.sent[-1] if pane.keyboard.sent else None
    before = pane.terminal.before_typing
    if sent is None or (ran_from or 0) > sent.cursor:
        return Origin(ran_from or 0, ran_from or 0, before=before)
    return Origin(sent.cursor, sent.cursor, sent.rows or _rows_at(pane, sent.cursor), before)
