"""The text of a pane: what was printed from a cursor on, as its log grows, without a second look.

Waits, steps and their reports read it: it has the lines and the screens, knows where a program
draws, and tells the echo of keys from output.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Self

from tmux_debug_mcp.turns import next_turn, pieces
from tmux_debug_mcp.vt.echo import Echo, Echoer, TypedText
from tmux_debug_mcp.vt.rows import EMPTY_LINE, Event, Gap, Line, annotated
from tmux_debug_mcp.vt.transcript import Transcript

from .log import Log
from .positioning import moving_transcript, reading_transcript, transcript_from

# How much is read in one go if nothing is matched.
PIECE_BYTES = 1 << 16
# If nobody looks for anything, of more output than this only the beginning and the end are read.
_MAX_BEHIND_BYTES = 1 << 20
_END_BYTES = 1 << 18
# How far to look for the beginning of a line.
_MAX_LINE_BYTES = 1 << 15


class PaneText:
    """What was printed from a cursor on, as far as the log was read. `since` makes it.

    It begins with the screen as it was at the cursor, whose lines are not new. `sent` holds the
    keys that were sent to the pane, oldest first. More may be added meanwhile.

    Attributes:
        log: The log of the pane.
        position: The cursor that it has reached.
        unseen_bytes: How many bytes were trimmed, or passed over, before it reached them.
        is_at_line_end: The last bytes that it read end with a line feed.
    """

    def __init__(
        self,
        log: Log,
        cursor: int,
        sent: Sequence[TypedText],
        transcript: Transcript,
        *,
        is_read: bool = False,
    ) -> None:
        self.position = cursor
        self.unseen_bytes = 0
        self.is_at_line_end = False
        self.log = log
        self._sent = sent
        sent_before = [keys for keys in sent if keys.cursor < cursor]
        self._echo = Echo(sent_before)
        self._last_expected = max((keys.number for keys in sent_before), default=-1)
        self._transcript = transcript
        self._is_read = is_read
        self._start = cursor
        self._events: list[Event] = []

    @classmethod
    async def since(cls, log: Log, cursor: int, sent: Sequence[TypedText] = ()) -> Self:
        """Return the text from a cursor on, which the log must have reached."""
        return cls(log, cursor, sent, await transcript_from(log, cursor))

    @classmethod
    async def to_read(cls, log: Log, cursor: int, end: int) -> Self:
        """Return the text from a cursor on as it is read: with what is drawn, and commands."""
        begin = log.read(cursor, min(PIECE_BYTES, end - cursor))
        return cls(log, cursor, (), await reading_transcript(log, cursor, begin), is_read=True)

    @property
    def seen_to(self) -> int:
        """The cursor before what is unfinished at the position."""
        return self.position - self._transcript.held_bytes

    @property
    def is_drawn_on(self) -> bool:
        """Whether a program draws on the screen."""
        return self._transcript.is_drawn_on

    @property
    def is_alternate(self) -> bool:
        """Whether the alternate screen is on."""
        return self._transcript.is_alternate

    @property
    def rows(self) -> list[str]:
        """The rows of the screen."""
        return self._transcript.rows()

    @property
    def rows_before(self) -> list[str]:
        """The rows of the screen when the program began that draws on it."""
        return self._transcript.rows_before

    @property
    def unfinished(self) -> list[str]:
        """The text of what may still change, where no program draws on the screen."""
        return self._transcript.unfinished()

    @property
    def open_lines(self) -> list[Line]:
        """The lines that may still change; the last is incomplete."""
        if self._is_read:
            return self._transcript.open_lines(is_annotated=True) or [EMPTY_LINE]
        return self._transcript.main_lines() or [EMPTY_LINE]

    async def advance(self, end: int, max_bytes: int) -> tuple[list[Event], list[str]]:
        """Read the next bytes, at most a turn's work, and not beyond where keys were sent.

        Returns what can't change any more, and the text of all lines since the last keys that are
        new, or may have changed, without echo.
        """
        await next_turn()
        while self._must_begin_anew():
            await self.skip_to(self.position)
            await next_turn()
        next_keys = self._expect_echo()
        if next_keys is not None:
            end = min(end, next_keys.cursor)
        data = self.log.read(self.position, min(max_bytes, end - self.position))
        data = next(pieces(data), b"")
        self.position += len(data)
        self._transcript.feed(data, self.position)
        if data:
            self.is_at_line_end = data.endswith(b"\n")
        settled_now: Sequence[Event] = self._transcript.take_events()
        if self._is_read:
            settled_now = list(annotated(settled_now))
        events, self._events = [*self._events, *settled_now], []
        settled = [event.new for event in events if isinstance(event, Line)]
        return events, self._echo.without(settled, [line.new for line in self.open_lines])

    def _must_begin_anew(self) -> bool:
        is_resized = self._transcript.size != (self.log.columns, self.log.rows)
        return self.position < self.log.kept_from or (is_resized and self.position == self._start)

    async def skip_to(self, cursor: int, lines: int = 0) -> None:
        """Go on at a cursor, or where what is kept begins. What comes before is passed over.

        So many lines end there.
        """
        begin, open_lines, is_gone = self.position, self.open_lines, cursor == self.position
        self.position = -1
        while self.position < cursor:  # the log may be trimmed meanwhile
            cursor = self._kept_line(cursor)
            make = moving_transcript if self._is_read else transcript_from
            self._transcript, self.position = await make(self.log, cursor), cursor
            cursor = self._kept_line(cursor)
        if cursor > begin:
            self.unseen_bytes += cursor - begin
            last = open_lines[-1]
            if not is_gone and last.begins_at is not None:
                begin = last.begins_at  # the line that is incomplete is passed over whole
            if begin == last.begins_at or not last.text:
                open_lines.pop()
            # What is passed over may have changed what lines without a known beginning showed.
            others = open_lines[1:]
            known = list(itertools.takewhile(lambda line: line.begins_at is not None, others))
            if len(known) < len(others):
                del known[-1:]  # of which only the beginning is known
            self._events += [*open_lines[:1], *known, Gap(cursor - begin, lines, is_gone=is_gone)]

    def _kept_line(self, cursor: int) -> int:
        """Return a cursor if what follows is kept, else where the first line that is begins."""
        kept_from = self.log.kept_from
        if cursor >= kept_from:
            return cursor
        return kept_from + self.log.read(kept_from, _MAX_LINE_BYTES).find(b"\n") + 1

    async def pass_over(self, end: int) -> None:
        """Go on near a cursor if too much is before it, and nobody looks for anything in there.

        The beginning is read first.
        """
        start = self.position
        if start > self._start and end - start > _MAX_BEHIND_BYTES:
            near = end - _END_BYTES
            near += self.log.read(near, _MAX_LINE_BYTES).find(b"\n") + 1
            await self.skip_to(near, await self._line_feeds(start, near))

    async def _line_feeds(self, start: int, end: int) -> int:
        """Return how many lines end in a part of the log, as far as it is kept."""
        lines = 0
        while start < end:
            await next_turn()
            start = max(start, self.log.kept_from)
            piece = self.log.read(start, min(_MAX_BEHIND_BYTES, max(0, end - start)))
            lines += piece.count(b"\n")
            start += len(piece) or end
        return lines

    def keys_sent(self) -> tuple[list[Event], int | None]:
        """Treat all lines so far as old: only what is printed from now on is new.

        Return what can't change any more, and where the line begins that they are typed in, if it
        is the last and known.
        """
        self._echo.without([line.new for line in self.open_lines], ())  # to use up their echo
        self._transcript.end_lines()
        self._transcript.keys_sent()
        return self._transcript.take_events(), self._transcript.line_begins_at()

    def _expect_echo(self) -> TypedText | None:
        """Expect the echo of the keys that were sent up to the position; return the next keys."""
        not_expected = [keys for keys in self._sent if keys.number > self._last_expected]
        for keys in not_expected:
            if keys.cursor > self.position:
                return keys
            self._last_expected = keys.number
            echoer = keys.echoer
            if echoer is Echoer.PROGRAM and self._transcript.is_editing:
                echoer = Echoer.EDITOR
            if echoer is Echoer.EDITOR:
                self._transcript.expect_editor()
            self._echo.expect(dataclasses.replace(keys, echoer=echoer))
        return None
