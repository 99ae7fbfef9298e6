"""What is new in a pane since a cursor: lines of output, rows of the screen, and what matches.

An observation reads the pane's log once, from that cursor on. It begins right before the first step
of keys and learns of each further step. A wait and its report are based on it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tmux_debug_mcp.errors import PaneLostError
from tmux_debug_mcp.logs.matching import Matcher, MatchReason
from tmux_debug_mcp.logs.pane_text import PIECE_BYTES, PaneText
from tmux_debug_mcp.logs.reading import end_of_line
from tmux_debug_mcp.logs.seen import SeenText
from tmux_debug_mcp.vt.captured import ScreenRows
from tmux_debug_mcp.vt.echo import rows_without_typed
from tmux_debug_mcp.vt.marks import with_commands

from .caller_session import CallerSession
from .capturing import capture_screen_rows
from .keyboard import SentStep
from .looking.activity import Snapshot
from .pane import Pane

# The log is matched in slices, so at most this much output is shown after a match.
SLICE_BYTES = 4096


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
    """What is new in a pane since a cursor, as far as its log was read. Functions below make it.

    Attributes:
        cursor: Where it begins.
        rows: The screen's rows there; empty if they are not known. Only other rows match.
        before: The snapshot before the last keys; None if it does not follow keys.
        steps: The cursors of the steps of keys since then, in order.
        early: The pattern that matched before the last of them; None if none did.
        text: The text since then.
        seen: What was seen of it, as a report shows it.
        match: What has matched; None if nothing has.
        session: The session of the caller. By default, it has been shown nothing.
        shown_to: The cursor up to which the caller was shown the output before; 0 if that does not
            matter. What matches up to there is old.
        begun_at: When it began, by the pane's clock.
    """

    def __init__(
        self,
        pane: Pane,
        matcher: Matcher,
        text: PaneText,
        rows: Sequence[str] = (),
        before: Snapshot | None = None,
    ) -> None:
        self.pane = pane
        self.cursor = text.position
        self.text = text
        self.before = before
        self.steps: list[int] = []
        self.early: MatchReason | None = None
        self.match: Match | None = None
        self.session = CallerSession()
        self.shown_to = 0
        self.begun_at = pane.clock.now()
        self.matcher = matcher
        self._screen_matched_to = self.cursor  # the position when rows were last matched
        self._screen_at = -1  # the position when the screen was last captured, and what it was
        self._screen_there: ScreenRows | None = None
        self._first_drawing = text.rows_before  # the drawing that was on there, if any
        first_rows = self._rows() or ()
        self.rows = rows or first_rows
        self.seen = SeenText(self.cursor, first_rows, matcher.show)

    @property
    def position(self) -> int:
        """The cursor up to which the log was read."""
        return self.text.position

    async def step(self, sent: SentStep) -> None:
        """Note that a step of keys is being sent. What matched before it matched early."""
        if self.steps:
            await self.has_stopped_at(sent.cursor)
            events, begins_at = self.text.keys_sent()
            self.seen.add(events, self.position)
            rows_before = self._with_commands(self.text.rows_before)
            self.seen.step(begins_at, self._rows(), rows_before)
        self.steps.append(sent.cursor)
        self.before = sent.before

    async def has_stopped_at(self, end: int) -> bool:
        """Read up to a cursor between two steps; return whether `stop_pattern` has matched.

        A match of the other pattern is early.
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
        position = -1
        while position != self.position:
            position = self.position
            # What is old is read first, which tells whether the match is old.
            slice_end = min(end, self.shown_to) if position < self.shown_to else end
            lines = await self._advance(slice_end)
            reason = self.matcher.first(lines)
            if reason:
                # The rest of the line that has matched may be read later.
                line = next((line for line in lines if self.matcher.first([line])), "")
                self.match = self.match or Match(line, position, self.position)
                return reason
            if self.pane.clock.now() > deadline:
                return None
        return None

    async def _advance(self, end: int) -> list[str]:
        """Read a slice; return the lines in it that are new."""
        if not (self.matcher.has_patterns or self.matcher.show):
            await self.text.pass_over(end)
        size = SLICE_BYTES if self.matcher.has_patterns else PIECE_BYTES
        events, lines = await self.text.advance(end, size)
        self.seen.add(events, self.position)
        return lines

    async def read_all(self, end: int) -> None:
        """Read up to a cursor, whatever matches."""
        position = -1
        while position != self.position < end:
            position = self.position
            await self._advance(end)

    def seen_now(self) -> SeenText:
        """Return what was seen, with the lines that may still change."""
        return self.seen.with_open(self.text.open_lines)

    async def end_of_match(self) -> int:
        """Return the cursor after the line that has matched."""
        if self.match is None:
            return self.position
        log, match = self.pane.log, self.match
        oldest = max(log.kept_from, match.start - SLICE_BYTES)
        start = oldest + log.read(oldest, match.start - oldest).rfind(b"\n") + 1
        return await end_of_line(log, start, match.end, match.text)

    async def match_screen(self, *, is_look: bool) -> MatchReason | None:
        """Match the rows of the screen that have changed, if a program draws on it.

        `is_look`: match what is there now; else first let the program draw the rest of its screen.
        """
        position = self.position
        if not self.text.is_drawn_on or self._screen_matched_to == position:
            return None
        if not self.matcher.has_patterns:
            return None
        screen = await self._screen(is_look=is_look)
        self._screen_matched_to = position
        if screen is None:
            return None
        # Rows are compared wherever they are, so scrolling does not make them match again.
        is_first = self.text.rows_before is self._first_drawing
        before = self.rows if is_first else self._with_commands(self.text.rows_before)
        changed = Counter(screen.rows) - Counter(before)
        without_echo: Sequence[str] = screen.rows
        sent = self.pane.keyboard.last_sent
        # Without keys before the wait nothing is echoed, and full-screen programs don't echo.
        if self.before and sent and not self.text.is_alternate:
            without_echo = rows_without_typed(screen.rows, screen.size[0], sent.texts)
        for number, row in enumerate(screen.rows):
            reason = self._match_row(without_echo[number]) if changed[row] else None
            if reason:
                is_old = self._was_shown(row, screen.rows)
                self.match = Match(row, position, position, number, is_old)
                return reason
        return None

    async def stands(self, *, is_look: bool) -> bool:
        """Return whether `gone` matches a row of the screen, if a program draws on it.

        If none does, it is what may still change that counts, such as the unfinished line.
        `is_look`: as above.
        """
        gone = self.matcher.gone
        if gone is None:
            return False
        lines: Sequence[str] = self.text.unfinished
        if self.text.is_drawn_on:
            screen = await self._screen(is_look=is_look)
            if screen is None:  # what follows in the log tells
                return True
            lines = screen.rows
        return any(gone.search(line) or gone.search(f"{line} ") for line in lines)

    async def _screen(self, *, is_look: bool) -> ScreenRows | None:
        """Return the screen that a program draws on; None if it has just left it, or is lost."""
        position = self.position
        if self._screen_at == position:
            return self._screen_there
        if not is_look:
            await self.pane.clock.sleep(self.pane.clock.times.drawing_s)
        self._screen_at, self._screen_there = position, None
        try:
            screen = await capture_screen_rows(self.pane)
        except PaneLostError:
            return None
        # The program has left its screen, in output that was not read yet.
        if not self.text.is_alternate or screen.is_alternate:
            self._screen_there = screen
        return self._screen_there

    def _rows(self) -> Sequence[str] | None:
        """Return the rows of the screen, if a program draws on it at the position."""
        return self._with_commands(self.text.rows) if self.text.is_drawn_on else None

    def _with_commands(self, rows: Sequence[str]) -> list[str]:
        return with_commands("\n".join(rows), self.pane.jobs.commands).split("\n")

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
    text = await PaneText.since(pane.log, cursor, pane.keyboard.sent)
    return Observation(pane, matcher, text, rows, before)


async def since_last_keys(pane: Pane, matcher: Matcher) -> Observation:
    """Observe from the last keys or the shell's last job, the later of them, or the start."""
    job, sent = pane.jobs.last, pane.keyboard.last_sent
    job_start = job.start if job and job.start is not None else 0
    if sent is None or job_start > sent.cursor:
        return await since_cursor(pane, matcher, job_start, pane.terminal.before_typing)
    return await since_cursor(pane, matcher, sent.cursor)


async def rows_now(pane: Pane, matcher: Matcher) -> Sequence[str]:
    """Return the rows of the screen, if a program draws there and a pattern may match them."""
    if not (matcher.has_patterns and await pane.is_drawn_on()):
        return ()
    if pane.last_screen and pane.last_screen.cursor == pane.log.size:
        return pane.last_screen.rows
    return (await capture_screen_rows(pane)).rows
