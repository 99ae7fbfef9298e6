"""What is new in a pane since a cursor: lines of output, rows of the screen, and what matches.

An observation reads the pane's log once, from that cursor on. It begins right before the first step
of keys and learns of each further step. A wait and its report are based on it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tmux_debug_mcp.errors import PaneLostError
from tmux_debug_mcp.logs.matching import Matcher, MatchReason, Scan
from tmux_debug_mcp.logs.pacing import pieces
from tmux_debug_mcp.logs.positioning import sequence_at
from tmux_debug_mcp.turns import next_turn
from tmux_debug_mcp.vt.captured import ScreenRows
from tmux_debug_mcp.vt.drawing import Drawing
from tmux_debug_mcp.vt.echo import rows_without_typed

from .capturing import capture_screen_rows, screen_rows_at
from .keyboard import Sent
from .looking.activity import Snapshot
from .pane import Pane
from .sessions import CallerSession

# The log is matched in slices, so at most this much output is shown after a match.
SLICE_BYTES = 4096
# Without patterns it is read in larger pieces.
_PIECE_BYTES = 1 << 16
# How much of the beginning is kept, in case a flood drives it out of the log.
_HEAD_BYTES = 4096


class Match(NamedTuple):
    """What has matched: a line of the log or a row of the screen, without echo.

    Attributes:
        text: The line, or the row.
        start: The cursor from which it was read.
        end: The cursor up to which it was read.
        row: The number of the row of the screen, from 0; None for a line.
        is_old_row: The row was on the screen that the caller was shown last.
    """

    text: str
    start: int
    end: int
    row: int | None = None
    is_old_row: bool = False


class Observation:
    """What is new in a pane since a cursor, as far as its log was read. Functions below make one.

    Attributes:
        cursor: Where it begins.
        rows: The screen's rows there; empty if they are not known. Only other rows match.
        before: The snapshot before the last keys; None if it does not follow keys.
        steps: The cursors of the steps of keys since then, in order.
        early: The pattern that matched before the last of them; None if none did.
        drawing: Where a program draws on the screen.
        match: What has matched; None if nothing has.
        head: The first output.
        session: The session of the caller. By default, it has been shown nothing.
        shown_to: The cursor up to which the caller was shown the output before; 0 if that does not
            matter. What matches up to there is old.
        begun_at: When it began, by the pane's clock.
    """

    def __init__(
        self,
        pane: Pane,
        matcher: Matcher,
        cursor: int,
        drawing: Drawing,
        rows: Sequence[str] = (),
        before: Snapshot | None = None,
    ) -> None:
        self.pane = pane
        self.cursor = cursor
        self.drawing = drawing
        self.rows = rows
        self.before = before
        self.steps: list[int] = []
        self.early: MatchReason | None = None
        self.match: Match | None = None
        self.head = b""
        self.session = CallerSession()
        self.shown_to = 0
        self.begun_at = pane.clock.now()
        self.matcher = matcher
        self._scan = Scan(pane.log, cursor, pane.keyboard.sent) if matcher.has_patterns else None
        self._position = cursor
        self._rows_at = cursor if rows else -1
        self._screen_matched_to = cursor  # the position when rows were last matched

    @property
    def position(self) -> int:
        """The cursor up to which the log was read."""
        return self._scan.position if self._scan else self._position

    @property
    def seen_to(self) -> int:
        """The position, without what is unfinished there."""
        if self._scan:
            return self._scan.seen_to
        return self._position - len(sequence_at(self.pane.log, self._position))

    @property
    def unseen_bytes(self) -> int:
        """How much output was trimmed from the log before it could be matched."""
        return self._scan.unseen_bytes if self._scan else 0

    @property
    def is_at_line_end(self) -> bool:
        """Whether what was read last ends with a line feed."""
        return self._scan is None or self._scan.is_at_line_end

    async def step(self, sent: Sent) -> None:
        """Note that a step of keys is being sent. What matched before it matched early."""
        if self.steps:
            await self.has_stopped_at(sent.cursor)
            if self._scan:
                self._scan.forget()
        self.steps.append(sent.cursor)
        self.before = sent.before

    async def has_stopped_at(self, end: int) -> bool:
        """Read up to a cursor between two steps; return whether `stop_pattern` has matched.

        A match of the other pattern is an early one.
        """
        position = -1
        while self.early is not MatchReason.STOPPED and position != self.position < end:
            position = self.position
            self.early = await self.read(end) or self.early
        if self.early is not MatchReason.STOPPED:
            self.early = await self.match_screen(is_look=True) or self.early
        return self.early is MatchReason.STOPPED

    async def read(self, end: int, deadline: float = math.inf) -> MatchReason | None:
        """Read and match the output up to a cursor, until the deadline.

        Return which pattern matches. What comes after the matching slice stays unread.
        """
        pane, log = self.pane, self.pane.log
        if len(self.head) < _HEAD_BYTES and log.kept_from <= self.cursor:
            self.head = log.read(self.cursor, min(_HEAD_BYTES, end - self.cursor))
        if self._scan is None:
            await self._follow_drawing(end)
            return None
        position = -1
        while position != self._scan.position:
            position = self._scan.position
            # What is old is read first, which tells whether the match is old.
            slice_end = min(end, self.shown_to) if position < self.shown_to else end
            lines = await self._scan.step(slice_end, SLICE_BYTES, self.drawing)
            reason = self.matcher.first(lines)
            if reason:
                # The rest of the line that has matched may be read later.
                self.match = self.match or self._line_match(lines, position)
                return reason
            if pane.clock.now() > deadline:
                return None
        return None

    def _line_match(self, lines: Sequence[str], start: int) -> Match:
        """Return which line matches of those that were read from a cursor on."""
        line = next((line for line in lines if self.matcher.first([line])), "")
        return Match(line, start, self.position)

    async def _follow_drawing(self, end: int) -> None:
        """Read up to a cursor without patterns, which needs no transcript and little time."""
        log = self.pane.log
        while self._position < end:
            self._position = max(self._position, log.kept_from)
            self.drawing.skip_to(self._position)
            data = log.read(self._position, min(_PIECE_BYTES, end - self._position))
            if not data:
                return
            for piece in pieces(data):
                await next_turn()
                self.drawing.feed(piece)
            self._position += len(data)

    async def match_screen(self, *, is_look: bool) -> MatchReason | None:
        """Match the rows of the screen that have changed, if a program draws on it.

        `is_look`: match what is there now; else first let the program draw the rest of its screen.
        """
        position = self.position
        if not self.drawing.is_on or self._screen_matched_to == position:
            return None
        if not self.matcher.has_patterns:
            return None
        if not is_look:
            await self.pane.clock.sleep(self.pane.clock.times.drawing_s)
        self._screen_matched_to = position
        try:
            screen = await capture_screen_rows(self.pane)
        except PaneLostError:
            return None
        # The program has left its screen, in output that was not read yet.
        if self.drawing.is_alternate and not screen.is_alternate:
            return None
        # Rows are compared wherever they are, so scrolling does not make them match again.
        changed = Counter(screen.rows) - Counter(await self._rows_before())
        without_echo = self._without_echo(screen)
        for number, row in enumerate(screen.rows):
            reason = self._match_row(without_echo[number]) if changed[row] else None
            if reason:
                is_old = self._was_shown(row, screen.rows)
                self.match = Match(row, position, position, number, is_old)
                return reason
        return None

    def _was_shown(self, row: str, rows: Sequence[str]) -> bool:
        """Return whether the caller was shown a row of the screen since the observation's begin."""
        shown = self.session.shown(self.pane).screen
        if shown is None or not self.cursor < shown.cursor <= self.shown_to:
            return False
        return not (Counter(rows) - Counter(shown.seen_rows))[row]

    def row_that_matches(self, rows: Sequence[str]) -> int | None:
        """Return the number of the row that has matched, or of the first that matches now."""
        if self.match and self.match.row is not None:
            return self.match.row
        return next((number for number, row in enumerate(rows) if self._match_row(row)), None)

    def _match_row(self, row: str) -> MatchReason | None:
        # A pattern may end with a blank, and rows have lost those at their ends.
        return self.matcher.first([row]) or self.matcher.first([f"{row} "])

    async def _rows_before(self) -> Sequence[str]:
        """Return the screen's rows where the observation or the drawing began, whichever is later.

        What was printed between the two was matched as lines.
        """
        begin = max(self.cursor, self.drawing.on_since)
        if begin != self._rows_at:
            self.rows = await screen_rows_at(self.pane, begin)
            self._rows_at = begin
        return self.rows

    def _without_echo(self, screen: ScreenRows) -> Sequence[str]:
        """Return the rows of a screen without the keys typed last and what precedes them."""
        sent = self.pane.keyboard.last_sent
        # Without keys before the wait nothing is echoed, and full-screen programs don't echo.
        if self.drawing.is_alternate or sent is None or self.before is None:
            return screen.rows
        columns, _ = screen.size
        return rows_without_typed(screen.rows, columns, sent.texts)


async def since_cursor(
    pane: Pane, matcher: Matcher, cursor: int, before: Snapshot | None = None
) -> Observation:
    """Return an observation of a pane from a cursor on, which the pane's log must have reached.

    The screen's rows there are known if the last keys were sent there and a pattern may match them,
    or if a report captured them there. `before` is the snapshot before the last keys, if these were
    sent elsewhere.
    """
    sent, screen = pane.keyboard.last_sent, pane.last_screen
    rows: Sequence[str] = ()
    if sent and sent.cursor == cursor:
        before, rows = before or sent.before, sent.rows
    if not rows and screen and screen.cursor == cursor:
        rows = screen.rows
    return Observation(pane, matcher, cursor, await pane.drawing_at(cursor), rows, before)


async def since_last_keys(pane: Pane, matcher: Matcher) -> Observation:
    """Return one from the last keys or the shell's last job, the later one, else from the start."""
    job, sent = pane.jobs.last, pane.keyboard.last_sent
    job_start = job.start if job and job.start is not None else 0
    if sent is None or job_start > sent.cursor:
        return await since_cursor(pane, matcher, job_start, pane.terminal.before_typing)
    return await since_cursor(pane, matcher, sent.cursor)


async def rows_now(pane: Pane, matcher: Matcher) -> Sequence[str]:
    """Return the rows of the screen, if a program draws there and a pattern may match them."""
    if not matcher.has_patterns:
        return ()
    drawing = await pane.drawing_at(pane.log.size)
    if not drawing.is_on:
        return ()
    if pane.last_screen and pane.last_screen.cursor == pane.log.size:
        return pane.last_screen.rows
    return (await capture_screen_rows(pane)).rows
