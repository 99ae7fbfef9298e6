"""What was seen of a pane's text: the lines of each step, and the screens between them.

Only the ends of long parts are kept.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import EMPTY_LINE, NOTE, SOMEWHERE, Event, Gap, Line, Screen

from .excerpts import (
    GAP_CHARACTERS,
    NOTHING,
    Excerpt,
    LeftOut,
    cut_in_the_middle,
    folded,
    joined,
    note,
)
from .log import Log
from .text import PIECE_BYTES, PaneText

# How much is kept at both ends of the newest part, and of each earlier one, in characters. The text
# of a result is shorter, even if it is a quarter of this after folding.
_NEWEST_CHARACTERS = 1 << 14, 1 << 16
_EARLIER_CHARACTERS = 1 << 12, 3 << 12
# Text with repeated lines may be this many times longer before they are folded.
_FOLDING = 4
# Of this many steps at most, the newest, screens are kept.
_MAX_FRAMES = 50
# A line that matches `show` is shown with so much around the match if it is longer.
_MAX_LINE_CHARACTERS = 1 << 14
_AROUND_CHARACTERS = 1000

# In place of the cursor of a line that can't be read from where it begins.
_CHANGED = -2
# What a line costs beside its characters.
_LINE_CHARACTERS = 8

# Words how to read lines that are left out: so many from a cursor on.
Advice = Callable[[int, int], str]


def _size(line: Line) -> int:
    return len(line.text) + _LINE_CHARACTERS


def advice_in(log: Log, words: str) -> Advice:
    """Return advice in words with `{cursor}` and `{lines}`; none for what a log no longer has."""

    def advice(cursor: int, lines: int) -> str:
        return words.format(cursor=cursor, lines=lines) if cursor >= log.kept_from else ""

    return advice


class Part:
    """Lines that were printed one after another, by one step; what is in the middle may be gone.

    Attributes:
        start: The cursor where the first line begins; `SOMEWHERE` if that is not known.
        gone_bytes: How much was gone before the first line was read.
        is_divided: Something was drawn on the screen between the lines.
    """

    def __init__(self, start: int, limits: tuple[int, int] = _NEWEST_CHARACTERS) -> None:
        self.start = start
        self.gone_bytes = 0
        self.is_divided = False
        self._head: list[Line] = []
        self._tail: deque[Line] = deque()
        self._sizes = [0, 0]
        self._left_out = Gap(0, 0)
        self._limits = limits

    def __copy__(self) -> "Part":
        other = Part(self.start)
        other.__dict__ |= self.__dict__
        other._head, other._tail = list(self._head), deque(self._tail)
        other._sizes = list(self._sizes)
        return other

    @property
    def events(self) -> Iterator[Line | Gap]:
        """What was added, as far as it is kept."""
        if self.gone_bytes:
            yield Gap(self.gone_bytes, 0, is_gone=True)
        yield from self._head
        if self._left_out.size:
            yield self._left_out
        yield from self._tail

    def add(self, event: Line | Gap) -> None:
        """Add the next line, or a gap before it."""
        if isinstance(event, Gap):
            self._skip(event)
            return
        line = event
        room = self._limits[0] - self._sizes[0]
        if room > 0 and not self._tail and not self._left_out.size:
            is_whole = len(line.text) <= room
            head = line if is_whole else line._replace(text=line.text[:room], goes_on=True)
            self._head.append(head)
            self._sizes[0] += _size(head)
            if is_whole:
                return
            line = line._replace(text=line.text[room:], begins_at=None)
        self._tail.append(line)
        self._sizes[1] += _size(line)
        self._limit_tail()

    def _skip(self, gap: Gap) -> None:
        if gap.is_gone and not self._head:
            self.gone_bytes += gap.size
            return
        for line in self._tail:
            self._leave_out(line.text, is_line=not line.goes_on)
        self._tail.clear()
        self._sizes[1] = 0
        self._left_out = Gap(self._left_out.size + gap.size, self._left_out.lines + gap.lines)

    def closed(self) -> "Part":
        """Return a part of the same lines that keeps less, since no more lines come."""
        part = Part(SOMEWHERE, _EARLIER_CHARACTERS)
        part.extend(self)
        return part

    def _limit_tail(self) -> None:
        while self._sizes[1] > self._limits[1]:
            excess = self._sizes[1] - self._limits[1]
            line = self._tail.popleft()
            self._sizes[1] -= _size(line)
            if len(line.text) > excess:  # a part of a line stays
                rest = line._replace(text=line.text[excess:], begins_at=None)
                self._leave_out(line.text[:excess], is_line=False)
                self._tail.appendleft(rest)
                self._sizes[1] += _size(rest)
                continue
            self._leave_out(line.text, is_line=not line.goes_on)

    def _leave_out(self, text: str, *, is_line: bool) -> None:
        size, lines, _ = self._left_out
        self._left_out = Gap(size + len(text.encode()) + is_line, lines + is_line)

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to show."""
        return not any(isinstance(one, Gap) or one.text.strip() for one in self.events)

    def extend(self, other: "Part") -> None:
        """Add what was added to another part."""
        if not self._head:
            self.start, self.is_divided = other.start, other.is_divided
        else:
            self.is_divided |= other.is_divided or other.start == SOMEWHERE
        for event in other.events:
            self.add(event)

    def end_with(self, text: str) -> None:
        """Leave out what comes after the newest line that reads so, or ends so."""
        for lines in (self._tail, self._head):
            for number in range(len(lines) - 1, -1, -1):
                if lines[number].text.endswith(text):
                    while len(lines) > number + 1:
                        self._sizes[lines is self._tail] -= _size(lines.pop())
                    self.add(EMPTY_LINE)  # the line is whole
                    return
            if self._left_out.size:
                return
            lines.clear()

    def lines(self) -> list[str]:
        """Return the lines that are kept."""
        return [text for text, _ in self._texts(self._head) + self._texts(self._tail)]

    def excerpt(self, max_characters: int, advice: Advice, *, folds: bool = True) -> Excerpt:
        """Return the lines, without the middle if they are too long; what repeats is folded."""
        head, tail = self._texts(self._head), self._texts(self._tail)
        numbered = head + tail
        if self._head and self._head[-1].goes_on and tail and not self._left_out.size:
            numbered[len(head) - 1 : len(head) + 1] = [(head[-1][0] + tail[0][0], head[-1][1])]
        own = [number for number, (text, _) in enumerate(numbered) if text.startswith(NOTE)]
        whole = Excerpt([text.removeprefix(NOTE) for text, _ in numbered], own)
        if whole.lines == [""]:
            whole = NOTHING
        gone = NOTHING
        if self.gone_bytes:
            gone = note(f"{self.gone_bytes:,} bytes before this are no longer kept")
            gone = gone._replace(cut_bytes=self.gone_bytes)
        size, lines, _ = self._left_out
        if size and self._head and self._head[-1].goes_on:
            lines -= 1  # the rest of the line is left out, or follows
        left_out = LeftOut(len(head), size, lines) if size else None
        if left_out is None and len(whole.text) <= max_characters * _FOLDING:
            excerpt = folded(whole) if folds else whole
            if len(excerpt.text) <= max_characters + GAP_CHARACTERS:
                return joined(gone, excerpt)

        def advice_for(first: int, last: int) -> tuple[str, int | None]:
            """Return how to read some lines, with those around them that belong together."""
            starts = [_CHANGED if one is None else one for _, one in numbered]
            if starts[0] < 0 <= self.start:
                starts[0] = self.start + self.gone_bytes
            begin = starts[first]
            while first and starts[first] < 0:
                first -= 1
            while last < len(starts) and starts[last] == _CHANGED:
                last += 1
            start = starts[first]
            is_known = start >= 0 and not self.is_divided
            words = advice(start, last - first + lines) if is_known else ""
            # The next cursor that is known, and what is shown before it.
            known = next((n for n in range(last, len(starts)) if starts[n] >= 0), None)
            if begin < 0 or known is None:
                return words, None
            shown = [len(text.encode()) + 2 for text, _ in numbered[last:known]]  # CR LF
            return words, starts[known] - begin - sum(shown)

        cut = cut_in_the_middle(whole, max_characters, advice=advice_for, left_out=left_out)
        return joined(gone, folded(cut) if folds else cut)

    @staticmethod
    def _texts(lines: Iterable[Line]) -> list[tuple[str, int | None]]:
        """Return the texts of whole lines, and where each begins in the output."""
        texts: list[tuple[str, int | None]] = []
        goes_on = False
        for line in lines:
            if goes_on:
                text, begins_at = texts.pop()
                texts.append((text + line.text, begins_at))
            else:
                texts.append((line.text, line.begins_at))
            goes_on = line.goes_on
        return texts


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The rows that appeared on a screen after a step of keys."""

    rows: Sequence[str]


Item = Part | Frame


class Seen:
    """What was seen from a cursor on, in order. If `show` is given, only lines that match it.

    Attributes:
        items: Lines and frames.
        last_screen: The screen when the program that drew was done with it; None if none was.
        until_screen: How many of the items came before that.
        has_older_frames: There were more frames, older ones.
        count: How many lines match `show`.
    """

    def __init__(
        self,
        start: int,
        rows: Sequence[str],
        show: Any = None,  # noqa: ANN401  re2 has no types
    ) -> None:
        self.items: list[Item] = [Part(start)]
        self.last_screen: Sequence[str] | None = None
        self.until_screen = 0
        self.has_older_frames = False
        self.count = 0
        self._show = show
        self._rows = rows
        self._bounds: set[int] = set()  # where the lines begin that steps were typed in

    @property
    def _part(self) -> Part:
        """The newest part."""
        return next(item for item in reversed(self.items) if isinstance(item, Part))

    def add(self, events: Iterable[Event]) -> None:
        """Add what was read."""
        for event in events:
            if isinstance(event, Gap):
                self._part.add(event)
            elif isinstance(event, Screen):
                self._note_screen(event.rows)
            elif not event.is_drawn:
                self._add_line(event)

    def _add_line(self, line: Line) -> None:
        if line.begins_at in self._bounds:
            self._begin_part(line.begins_at or 0)
        text = without_paths(line.shown)
        if self._show is not None:
            match = self._show.search(text)
            if match is None:
                return
            self.count += 1
            if len(text) > _MAX_LINE_CHARACTERS:
                start = max(0, match.start() - _AROUND_CHARACTERS)
                text = text[start : match.start() + 3 * _AROUND_CHARACTERS]
        self._part.add(line._replace(text=text))

    def _note_screen(self, rows: Sequence[str]) -> None:
        """Note that a program is done with its screen. Only the last such place is known."""
        self.last_screen = rows
        earlier, last = ([None, *self.items])[-2:]
        if self.until_screen == len(self.items) - 1 and isinstance(earlier, Part):
            if isinstance(last, Part):
                earlier.extend(last)
            self.items[-1] = Part(SOMEWHERE)
        else:
            self.items.append(Part(SOMEWHERE))
        self.until_screen = len(self.items) - 1

    def _begin_part(self, start: int) -> None:
        last = self.items[-1]
        if isinstance(last, Part):
            self.items[-1] = last.closed()
        self.items.append(Part(start))

    def step(
        self, begins_at: int | None, rows: Sequence[str] | None, rows_before: Sequence[str] = ()
    ) -> None:
        """Note that keys are sent now: in the line that begins there, if known.

        `rows` is the screen, if a program draws on it; `rows_before` those when it began.
        """
        if begins_at is not None:
            self._bounds.add(begins_at)
        if rows is not None:
            old = {*self._rows, *rows_before}
            self.items += [Frame([row for row in rows if row not in old]), Part(SOMEWHERE)]
            frames = [number for number, item in enumerate(self.items) if isinstance(item, Frame)]
            if len(frames) > _MAX_FRAMES:
                self.has_older_frames = True
                del self.items[frames[0]]
                self.until_screen -= frames[0] < self.until_screen
        self._rows = rows or ()

    def lines(self) -> list[str]:
        """Return the lines that are kept."""
        return [line for item in self.items if isinstance(item, Part) for line in item.lines()]

    def end_with(self, text: str) -> None:
        """Leave out what comes after the first line of the newest part that reads or ends so."""
        self._part.end_with(text)

    def with_open(self, lines: Sequence[Line]) -> "Seen":
        """Return the same with the lines that may still change; the last one is incomplete."""
        other = copy.copy(self)
        other.items = [copy.copy(item) if item is self._part else item for item in self.items]
        other.add(lines)
        return other

    def excerpt(self, max_characters: int, advice: Advice, *, folds: bool = True) -> Excerpt:
        """Return the lines of the newest part."""
        return self._part.excerpt(max_characters, advice, folds=folds)


async def read_ends(
    text: PaneText, end: int, max_characters: int, advice: Advice, *, folds: bool = False
) -> Excerpt:
    """Return a text up to a cursor, without its middle if it is too long.

    A quarter of the room goes to the beginning, the rest to the end, in whole lines where they fit.
    A note replaces what is left out, with advice on how to read just that. Another note replaces
    what is no longer kept. Text that is only a little too long stays whole. The room is 16,000
    characters at most.
    """
    seen = Seen(text.position, ())
    position = -1
    while position != text.position < end:
        position = text.position
        await text.pass_over(end)
        events, _ = await text.advance(end, PIECE_BYTES)
        seen.add(events)
    return seen.with_open(text.open_lines).excerpt(max_characters, advice, folds=folds)
