"""Waiting for what a pane prints or does: its log is read on, and nothing is done while it does not grow."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from .echo import Echo, Echoes, Sent
from .errors import ArgumentError, CursorError
from .logs import Growth, Log
from .panes import Pane, State
from .reading import Pace, Piece, read_end, transcript_from

MAX_OBSERVATION_CHARACTERS = 10_000
MAX_PATTERN_CHARACTERS = 1000
DEFAULT_TIMEOUT_S = 30.0
# What a compiled pattern may take; a larger one takes its time, too.
_MAX_PATTERN_BYTES = 1 << 20
# A line that matches is shown with what came before it, so this much at most comes behind it.
_SLICE_BYTES = 8192
# Who prints this much at once is looked at a hundred times a second.
_FLOOD_BYTES = 1 << 16
_FLOOD_S = 0.01
# The rest of a line that matches before it is whole comes at once, unless it is a prompt.
_REST_OF_LINE_S = 0.003
# Clocks of files and processes differ by so much.
_IDLE_SLACK_S = 0.001


@dataclass(frozen=True, slots=True)
class Conditions:
    """What to wait for: the first of these, the program's end or the end of the time.

    Attributes:
        pattern: A regular expression, for a line.
        stop_pattern: Another one.
        idle_s: Nothing printed and nothing sent for so long.
        timeout_s: How long to wait; 0 looks at what is there.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    idle_s: float | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Observation:
    """What happened first, and what was printed from where the wait began until then.

    Attributes:
        reason: `matched`, `stopped`, `idle`, `exited` or `timed_out`.
        state: The pane's state then.
        piece: The end of what was printed.
        start: Where the wait began.
        unseen_bytes: How much was no longer kept when it was to be looked at.
    """

    reason: str
    pane: Pane
    state: State
    piece: Piece
    start: int
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

    def first(self, lines: Sequence[str]) -> str | None:
        """Return which pattern matches a line first: `matched`, `stopped` or None."""
        if not self._patterns or not lines:
            return None
        text = "\n".join(lines)
        found = [(match.start(), reason) for reason, pattern in self._patterns if (match := pattern.search(text))]
        return min(found)[1] if found else None


def compiled(name: str, pattern: str) -> Any:  # noqa: ANN401  re2 has no types
    """Return a pattern to search in lines joined by line feeds, of which it matches one at a time.

    Args:
        name: The parameter that has it.
        pattern: A regular expression of RE2, which needs time in proportion to the text at most.

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
        return re2.compile(f"(?m){pattern}", options=options)
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

    def step(self, end: int, most_bytes: int = _SLICE_BYTES) -> list[str]:
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
        start: The cursor to begin at.
        matcher: The conditions' patterns.
    """

    def __init__(self, pane: Pane, conditions: Conditions, start: int, matcher: Matcher) -> None:
        self._pane = pane
        self._conditions = conditions
        self._start = start
        self._matcher = matcher
        self._scan = Scan(pane.log, start, pane.sent)

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
                reason = await self._look(ended, deadline)
                if reason is None and ended:
                    reason = "exited"
                wait_s = deadline - anyio.current_time()
                if reason is None and self._conditions.idle_s is not None:
                    idle_s = self._conditions.idle_s - self._quiet_s()
                    reason = "idle" if idle_s <= 0 else None
                    wait_s = min(wait_s, idle_s + _IDLE_SLACK_S)
                if reason is None and deadline <= anyio.current_time():
                    reason = "timed_out"
                    await self._pane.check_log()
                if reason in ("matched", "stopped"):
                    await self._take_rest_of_line(growth)
                if reason:
                    return await self._observation(reason, ended)
                if self._scan.position - before > _FLOOD_BYTES:
                    await anyio.sleep(min(_FLOOD_S, max(0.0, wait_s)))
                else:
                    await growth.wait(wait_s)

    async def _look(self, ended: State | None, deadline: float) -> str | None:
        """Look at all that is new, if there is time for that; return which pattern matches, or None."""
        end, before = ended.cursor if ended else self._pane.log.size, -1
        pace = Pace()
        while before != self._scan.position:
            before = self._scan.position
            async with self._pane.news.reading:
                pace.begin()
                reason = self._matcher.first(self._scan.step(end, min(pace.bytes, _SLICE_BYTES)))
                pace.end()
            if reason:
                return reason
            if self._conditions.timeout_s and anyio.current_time() > deadline:
                break
        return None

    async def _take_rest_of_line(self, growth: Growth) -> None:
        """Take the end of the line that was read last, if that is there or comes at once."""
        scan, log = self._scan, self._pane.log
        deadline = anyio.current_time() + _REST_OF_LINE_S
        while not scan.is_at_line_end:
            ended = await self._pane.ending()
            end = ended.cursor if ended else log.size
            rest = log.read(scan.position, min(_SLICE_BYTES, end - scan.position))
            scan.step(scan.position + (rest.find(b"\n") + 1 or len(rest)))
            wait_s = deadline - anyio.current_time()
            if len(rest) == _SLICE_BYTES or (not rest and (ended or wait_s <= 0)):
                return
            if not rest:
                await growth.wait(wait_s)

    def _quiet_s(self) -> float:
        """Return for how long nothing has been printed, nor sent."""
        pane = self._pane
        last = max(pane.log.written_at, pane.sent[-1].at if pane.sent else 0.0)
        return min(time.time() - last, time.monotonic() - pane.started_at)

    async def _observation(self, reason: str, ended: State | None) -> Observation:
        pane, scan = self._pane, self._scan
        end = scan.seen_to if ended is None or reason in ("matched", "stopped") else ended.cursor
        state = ended or await pane.state()
        piece = await read_end(pane.log, min(self._start, end), end, MAX_OBSERVATION_CHARACTERS)
        return Observation(reason, pane, state, piece, self._start, scan.unseen_bytes)


async def wait(panes: Sequence[Pane], conditions: Conditions, start: int | None) -> list[Observation]:
    """Wait for the first thing that happens in any of the panes.

    Args:
        panes: The panes.
        conditions: What to wait for in each.
        start: The cursor to begin at; None for the last keys that were sent to the pane or command that was run in
            its shell, or else its beginning.

    Returns:
        What happened; when the time was over before anything did, that of each pane.

    Raises:
        ArgumentError: A pattern can't be used.
        CursorError: The pane has not come to the cursor yet.
    """
    matcher = Matcher(conditions)
    deadline = anyio.current_time() + conditions.timeout_s
    watches = [Watch(pane, conditions, _begin(pane, start), matcher) for pane in panes]
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


def _begin(pane: Pane, start: int | None) -> int:
    if start is None:
        ran_from = pane.job.start if pane.job else None
        return max(ran_from or 0, pane.sent[-1].cursor if pane.sent else 0)
    if start > pane.log.size:
        raise CursorError(start, pane.log.size)
    return start
