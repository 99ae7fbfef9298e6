"""Waiting for what a pane prints or does: its log is read on, and nothing is done while it does not grow.

Only who waits for rest, or for what a program awaits, looks at the pane in between: the kernel does not tell of that.
"""

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from .capturing import capture_screen_rows
from .doing import Activity, Doing, Facts
from .drawing import Drawing
from .echo import Echo, Echoes, Sent
from .errors import ArgumentError, CursorError, PaneLostError
from .logs import MAX_LOG_BYTES, Growth, Log
from .panes import Pane, State
from .reading import Pace, is_alternate_at, read_middle, transcript_from
from .texts import Shown, cut_in_the_middle, folded, joined

MAX_OBSERVATION_CHARACTERS = 10_000
# One that nobody asked for.
MAX_UNASKED_CHARACTERS = 2_000
MAX_PATTERN_CHARACTERS = 1000
DEFAULT_TIMEOUT_S = 30.0
# What a compiled pattern may take; a larger one takes its time, too.
_MAX_PATTERN_BYTES = 1 << 20
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
        most_characters: The most text to show.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    idle_s: float | None = None
    is_for_rest: bool = False
    is_for_input: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    most_characters: int = MAX_OBSERVATION_CHARACTERS

    @property
    def needs_looks(self) -> bool:
        """Whether the pane has to be looked at."""
        return self.is_for_rest or self.is_for_input


@dataclass(frozen=True, slots=True)
class Begin:
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
    before: Facts | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What happened first, and what was printed from where the wait began until then, or what the screen shows.

    Attributes:
        reason: `matched`, `stopped`, `idle`, `rest`, `input`, `exited`, `flooded` or `timed_out`.
        state: The pane's state then.
        shown: The text.
        start: Where the text begins.
        end: The cursor to go on from.
        screen: The columns and rows of the screen, where that is the text.
        unseen_bytes: How much was no longer kept when it was to be looked at.
    """

    reason: str
    pane: Pane
    state: State
    shown: Shown
    start: int
    end: int
    screen: tuple[int, int] | None
    unseen_bytes: int


class Matcher:
    """The patterns of conditions."""

    def __init__(self, conditions: Conditions) -> None:
        self._patterns = [
            (reason, compiled(name, pattern))
            for reason, name, pattern in (
                ("matched", "pattern", conditions.pattern),
                ("stopped", "stop_pattern", conditions.stop_pattern),
            )
            if pattern is not None
        ]

    @property
    def has_patterns(self) -> bool:
        """Whether there is one."""
        return bool(self._patterns)

    def first(self, lines: Sequence[str]) -> str | None:
        """Return which pattern matches a line first: `matched`, `stopped` or None."""
        if not self._patterns or not lines:
            return None
        text = "\n".join(lines)
        found = [(match.start(), reason) for reason, pattern in self._patterns if (match := pattern.search(text))]
        return min(found)[1] if found else None


def compiled(name: str, pattern: str, *, is_for_bytes: bool = False) -> Any:  # noqa: ANN401  re2 has no types
    """Return a pattern to search in lines joined by line feeds, of which it matches one at a time.

    Args:
        name: The parameter that has it.
        pattern: A regular expression of RE2, which needs time in proportion to the text at most.
        is_for_bytes: The text is UTF-8, and not characters.

    Raises:
        ArgumentError: It is no regular expression, or too long.
    """
    import re2  # noqa: PLC0415  only who waits for a pattern needs it

    options = re2.Options()
    options.never_nl = True  # no match goes on in the next line
    options.log_errors = False
    options.max_mem = _MAX_PATTERN_BYTES
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ArgumentError(
            f"Parameter '{name}' has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS}. Give a shorter one."
        )
    try:
        text = f"(?m){pattern}"
        return re2.compile(text.encode() if is_for_bytes else text, options=options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace").replace("(?m)", "", 1) if error.args else ""
        raise ArgumentError(
            f"Parameter '{name}' is no regular expression of RE2 ({reason}). "
            "Escape what is meant literally; look-around and back references are not available."
        ) from None


class Scan:
    """The lines that a log gets from a cursor on, without the echo of keys.

    Attributes:
        position: How far it has come.
        unseen_bytes: How much was gone before it came there.
        is_at_line_end: What was read last ended with a line feed.
    """

    def __init__(self, log: Log, start: int, sent: Sequence[Sent]) -> None:
        self._log = log
        self._sent = sent
        self._taken = max((keys.at for keys in sent if keys.cursor < start), default=0.0)
        self._echo = Echo(keys for keys in sent if keys.cursor < start)
        self.unseen_bytes = 0
        self.is_at_line_end = False
        self._begin_at(start)

    @property
    def seen_to(self) -> int:
        """The cursor behind what was understood."""
        return self.position - self._transcript.held_bytes

    def step(self, end: int, most_bytes: int, drawing: Drawing) -> list[str]:
        """Go on by some bytes, not beyond `end`; return the lines that are new, or may have changed."""
        if self.position < (kept_from := self._log.kept_from):
            self.unseen_bytes += kept_from - self.position
            self._begin_at(kept_from)
        for keys in [keys for keys in self._sent if keys.at > self._taken]:
            if keys.cursor > self.position:
                end = min(end, keys.cursor)
                break
            self._taken = keys.at
            if keys.echoes is Echoes.PROGRAM and self._transcript.is_editing:
                keys = dataclasses.replace(keys, echoes=Echoes.EDITOR)  # noqa: PLW2901
            if keys.echoes is Echoes.EDITOR:
                self._transcript.keys_sent()
            self._echo.expect(keys)
        data = self._log.read(self.position, min(most_bytes, end - self.position))
        self._transcript.feed(data)
        drawing.feed(data)
        self.position += len(data)
        if data:
            self.is_at_line_end = data.endswith(b"\n")
        return self._echo.without(self._transcript.take_settled(), self._transcript.open_lines())

    def _begin_at(self, start: int) -> None:
        """Begin with the screen as it was at this cursor, showing nothing of it."""
        self.position = start
        self._transcript = transcript_from(self._log, start)


class Watch:
    """The wait for one pane.

    Args:
        pane: The pane.
        conditions: What to wait for.
        begin: Where to begin.
        matcher: The conditions' patterns.
    """

    def __init__(self, pane: Pane, conditions: Conditions, begin: Begin, matcher: Matcher) -> None:
        self._pane = pane
        self._conditions = conditions
        self._begin = begin
        self._matcher = matcher
        self._scan = Scan(pane.log, begin.cursor, pane.keyboard.sent)
        self._drawing = Drawing(
            is_alternate=is_alternate_at(pane.log, begin.cursor),
            has_addressed=begin.before is not None and begin.before.group == pane.drawn_by,
        )
        self._drew = self._drawing.is_on
        self._drawn = -1  # how far the program had printed when its screen was looked at
        self._activity = Activity(begin.before)
        self._doing: Doing | None = None
        self._look_at = 0.0

    async def first(self, deadline: float) -> Observation:
        """Return what happens first.

        Args:
            deadline: The end of the time, as anyio.current_time() has it.
        """
        async with self._pane.growth() as growth:
            async with self._pane.news.reading:
                await self._pane.check_log()
            while True:
                ended = await self._pane.ending()
                before = self._scan.position
                reason = await self._reason(ended, deadline)
                if reason in ("matched", "stopped"):
                    await self._take_rest_of_line(growth)
                if reason:
                    return await self._observation(reason, ended)
                wait_s = self._wait_s(deadline)
                if self._scan.position - before > _FLOOD_BYTES:
                    await anyio.sleep(min(_FLOOD_S, max(0.0, wait_s)))
                else:
                    await growth.wait(wait_s)

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
            await self._pane.check_log()
            return "timed_out"
        return None

    async def _resting(self) -> str | None:
        """Look at the pane; return whether that is what is waited for."""
        if not self._conditions.needs_looks or anyio.current_time() < self._look_at:
            return None
        async with self._pane.news.looking:
            doing = self._doing = await self._pane.terminal.doing(self._activity)
        # Output wakes those who wait, and is no reason to look more often.
        self._look_at = anyio.current_time() + _LOOK_AGAIN_S
        if doing.facts.is_over:
            return None
        if doing.is_awaiting:
            reason = "input"
        elif doing.is_at_rest and self._conditions.is_for_rest:
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
            wait_s = min(wait_s, max(_LOOK_AGAIN_S, self._doing.look_again_s * self._pane.news.waiters))
        return wait_s

    async def _look(self, ended: State | None, deadline: float) -> str | None:
        """Look at all that is new, if there is time for that; return which pattern matches, or None."""
        end, before = ended.cursor if ended else self._pane.log.size, -1
        pace = Pace()
        while before != self._scan.position:
            before = self._scan.position
            async with self._pane.news.reading:
                pace.begin()
                lines = self._scan.step(end, min(pace.bytes, _SLICE_BYTES), self._drawing)
                # What is on the screen is read there.
                reason = None if self._drawing.is_alternate else self._matcher.first(lines)
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
        self._drawn = self._scan.position
        rows, is_alternate = await self._screen_rows()
        if self._drawing.is_alternate and not is_alternate:  # it has gone, which is not read yet
            return None
        changed = Counter(rows) - Counter(self._begin.rows)
        return self._matcher.first(list(changed.elements()))

    async def _screen_rows(self) -> tuple[list[str], bool]:
        """Return the rows of the screen and whether it is the alternate one; none when the pane is gone."""
        with contextlib.suppress(PaneLostError):
            return await capture_screen_rows(self._pane)
        return [], False

    async def _take_rest_of_line(self, growth: Growth) -> None:
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
                await growth.wait(wait_s)

    def _quiet_s(self) -> float:
        """Return for how long nothing has been printed, nor sent."""
        pane = self._pane
        last = max(pane.log.written_at, pane.keyboard.sent[-1].at if pane.keyboard.sent else 0.0)
        return min(time.time() - last, time.monotonic() - pane.started_at)

    async def _observation(self, reason: str, ended: State | None) -> Observation:
        pane, scan = self._pane, self._scan
        end = scan.seen_to if ended is None or reason in ("matched", "stopped") else ended.cursor
        state = ended or await self._state()
        start, most = min(self._begin.shown_from, end), self._conditions.most_characters
        unseen_bytes = scan.unseen_bytes
        if self._drawing.is_on and ended is None:
            pane.drawn_by = pane.terminal.look().group
            rows, _ = await self._screen_rows()
            shown = cut_in_the_middle(folded(rows), most)
            screen = pane.log.columns, pane.log.rows
            return Observation(reason, pane, state, shown, start, end, screen, unseen_bytes)
        if self._drawing.switched_at:  # what was drawn before is gone with the screen that it was drawn on
            start = min(end, max(start, self._begin.cursor + self._drawing.switched_at))
        shown, start = await read_middle(pane.log, start, end, most, folds=True)
        if self._drew and ended and (ended.exit_code or ended.signal):
            shown = joined(_last_screen(self._begin.rows, most), shown)
        return Observation(reason, pane, state, shown, start, end, None, unseen_bytes)

    async def _state(self) -> State:
        """Return the running pane's state; what was waited for has just been seen."""
        doing = self._doing
        if doing and doing.facts.printed == self._pane.log.size and not await self._pane.ending():
            return self._pane.running(doing.facts, doing.awaits)
        return await self._pane.state()


def _last_screen(rows: Sequence[str], most: int) -> Shown:
    """Return what a program showed that has crashed: its screen went with it."""
    screen = cut_in_the_middle(folded(rows), most)
    return joined(Shown(["[the screen before the last step]"], [0]), screen, Shown(["[then]"], [0]))


async def wait(panes: Sequence[Pane], conditions: Conditions, begin: Callable[[Pane], Begin]) -> list[Observation]:
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
    matcher = Matcher(conditions)
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
    activity = Activity(pane.keyboard.before)
    async with pane.growth() as growth:
        while not await pane.ending():
            async with pane.news.looking:
                doing = await pane.terminal.doing(activity)
            wait_s = deadline - anyio.current_time()
            if doing.is_at_rest or wait_s <= 0:
                break
            await growth.wait(min(wait_s, doing.look_again_s * pane.news.waiters))
        return await pane.state()


def since_cursor(pane: Pane, cursor: int) -> Begin:
    """Return where a wait begins that is for what was printed from a cursor on.

    Raises:
        CursorError: The pane has not come to the cursor yet.
    """
    if cursor > pane.log.size:
        raise CursorError(cursor, pane.log.size)
    last = since_last_keys(pane)
    return last if cursor == last.cursor else Begin(cursor, cursor)


def since_last_keys(pane: Pane) -> Begin:
    """Return where a wait begins that follows the last keys or the last command of the pane's shell, or its start."""
    ran_from = pane.job.start if pane.job else None
    sent = pane.keyboard.sent[-1] if pane.keyboard.sent else None
    before = pane.keyboard.before
    if sent is None or (ran_from or 0) > sent.cursor:
        return Begin(ran_from or 0, ran_from or 0, before=before)
    return Begin(sent.cursor, sent.cursor, sent.rows, before)
