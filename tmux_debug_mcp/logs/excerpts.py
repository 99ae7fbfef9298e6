"""Excerpts: text that is cut to the length of a result. Repeated lines are counted. No I/O.

Some lines of an excerpt may be notes of ours. They begin with `NOTE`, which no text of a program
contains, so that a result can tell them from lines of a program.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tmux_debug_mcp.vt.rows import EMPTY_LINE, NOTE, Gap, Line

# Room for the line that a gap takes. What is shorter is cheaper whole.
GAP_CHARACTERS = 120
# As much of a text is kept as a result of 16,000 characters can show: text with repeated lines may
# be 4 times longer before they are folded. A line counts for so many more characters.
_FOLDING = 4
KEPT_CHARACTERS = _FOLDING << 14
_LINE_CHARACTERS = 8
_NO_GAP = Gap(0, 0)
# Up to this many equal lines in a row are shown as they are.
_MAX_EQUAL_LINES = 3
# A text whose repetitions fill half of a line, and at least so many characters, is shown once.
_MIN_REPEATED_CHARACTERS = 200
_MAX_PERIOD = 100
# The note for blank lines in a row.
_BLANK_LINES = re.compile(rf"{NOTE}\[\d+ blank lines\]")


class GapNote(NamedTuple):
    """The note in place of a gap, which says how to read what is left out.

    Attributes:
        line: The index of the note among the lines of its excerpt.
        since: The cursor from which to read.
        lines: How many lines to read from there on.
        shown: How much of the first of them is shown before the note.
    """

    line: int
    since: int
    lines: int
    shown: str


class Excerpt(NamedTuple):
    """Lines to show, without line feeds; ours begin with `NOTE`.

    `cut_bytes` of the program's text are left out, not counting what shows nothing. `gaps` are the
    notes for what can be read from a cursor. The line of such a note doesn't say how: whoever
    prints it does.
    """

    marked: Sequence[str]
    cut_bytes: int = 0
    gaps: tuple[GapNote, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines as a reader sees them."""
        return [line.removeprefix(NOTE) for line in self.marked]

    @property
    def notes(self) -> list[int]:
        """The indexes of our own lines, from 0, in order."""
        return [index for index, line in enumerate(self.marked) if line.startswith(NOTE)]

    @property
    def text(self) -> str:
        """The lines joined by line feeds."""
        return "\n".join(self.lines)


NOTHING = Excerpt([])


def note(text: str) -> Excerpt:
    """Return a line of ours, in brackets."""
    return Excerpt([f"{NOTE}[{text}]"])


def folded(excerpt: Excerpt) -> Excerpt:
    """Return an excerpt with runs of more than 3 equal lines, and repetitions in a line, folded.

    What repeats is shown once, then a note with the count; for blank lines, only the count.
    """
    parts: list[Excerpt] = []
    for line, equal in itertools.groupby(excerpt.marked):
        count = len(list(equal))
        if line.startswith(NOTE):
            parts.append(Excerpt([line] * count))
        elif count <= _MAX_EQUAL_LINES:
            parts += [_folded_within(line)] * count
        elif line:
            parts += [_folded_within(line), note(f"the line above: {count} times")]
        else:
            parts.append(note(f"{count} blank lines"))  # see `_BLANK_LINES`
    return joined(*parts)._replace(cut_bytes=excerpt.cut_bytes)


def _folded_within(line: str) -> Excerpt:
    """Return a line in which a text whose repetitions fill half of it is shown once."""
    whole = Excerpt([line])
    if len(line) < _MIN_REPEATED_CHARACTERS or line.isspace():
        return whole
    # Such a text is in the middle.
    middle = len(line) // 2
    size = min(_MAX_PERIOD, len(line) - middle - 1)
    period = line.find(line[middle : middle + size], middle + 1, middle + size + _MAX_PERIOD)
    period -= middle
    if period <= 0:
        return whole
    end = middle + period + _equal(line[middle:], line[middle + period :])
    start = middle - _equal(line[:middle][::-1], line[: middle + period][::-1])
    times = (end - start) // period
    if times * period < max(_MIN_REPEATED_CHARACTERS, len(line) // 2):
        return whole
    text = line[start : start + period]
    shown = line[:start] + text + line[start + times * period :]
    return joined(Excerpt([shown]), note(f"{text!r} in the line above: {times} times"))


def _equal(left: str, right: str) -> int:
    """Return how many characters two texts have in common at the beginning."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def joined(*parts: Excerpt) -> Excerpt:
    """Return one excerpt of several, in their order."""
    marked: list[str] = []
    gaps: list[GapNote] = []
    for part in parts:
        gaps += [gap._replace(line=len(marked) + gap.line) for gap in part.gaps]
        marked += part.marked
    return Excerpt(marked, sum(part.cut_bytes for part in parts), tuple(gaps))


def without_blank_ends(excerpt: Excerpt) -> Excerpt:
    """Return an excerpt without blank lines at its ends, even folded."""
    filled = [
        index
        for index, line in enumerate(excerpt.marked)
        if line.strip() and not _BLANK_LINES.fullmatch(line)
    ]
    start, end = (filled[0], filled[-1] + 1) if filled else (0, 0)
    gaps = tuple(gap._replace(line=gap.line - start) for gap in excerpt.gaps)
    return Excerpt(excerpt.marked[start:end], excerpt.cut_bytes, gaps)


def newest_lines(excerpt: Excerpt, most: int) -> Excerpt:
    """Return so many of the newest lines of an excerpt, with the notes before and among them."""
    marked, notes = excerpt.marked, set(excerpt.notes)
    numbers = [number for number in range(len(marked)) if number not in notes]
    if len(numbers) <= most:
        return excerpt
    start = numbers[-most]
    while start - 1 in notes:
        start -= 1
    return Excerpt(marked[start:], excerpt.cut_bytes)


def end_of(text: str, max_characters: int, max_lines: int | None = None) -> str:
    """Return the end of a text, or all of it if it fits.

    The end begins with a whole line if that costs at most half of the length.
    """
    if max_lines is not None:
        text = "\n".join(text.split("\n")[-max_lines:])
    if len(text) <= max_characters:
        return text
    end = text[-max_characters:]
    if text[-max_characters - 1] == "\n":
        return end
    partial_line, _, lines = end.partition("\n")
    if lines and len(partial_line) <= max_characters // 2:
        return lines
    return end


def cut_in_the_middle(excerpt: Excerpt, max_characters: int, keep: int | None = None) -> Excerpt:
    """Return an excerpt without its middle if it is too long, as `Part.excerpt` does.

    The line with the index `keep` stays, if the room suffices.
    """
    if len(excerpt.text) <= max_characters + GAP_CHARACTERS:
        return excerpt
    part = Part(None, list(map(Line, excerpt.marked)), line_end_bytes=1)
    shown = part.excerpt(max_characters, folds=False)
    if keep is None or excerpt.marked[keep] in shown.marked:
        return shown
    halves = Excerpt(excerpt.marked[: keep + 1]), Excerpt(excerpt.marked[keep + 1 :])
    return joined(*(cut_in_the_middle(half, max_characters // 2) for half in halves))


@dataclass(eq=False)
class Part:
    """Lines that follow each other. If they are too many, some in the middle are left out.

    Attributes:
        start: The cursor where the first line begins, None if that is not known.
        head: The lines before the gap; all, if there is no gap. The last may go on.
        tail: The lines after it.
        gap: What is left out between them. So many lines end in it.
        gap_start: Where the first line begins that is left out, or a part of it; None if unknown.
        gone_bytes: How much was gone before the first line was read.
        is_divided: Something was drawn on the screen between the lines.
        line_end_bytes: How many bytes end a line: CR LF in the output of a terminal.
        size: How many characters are kept, and `_LINE_CHARACTERS` for each line.
    """

    start: int | None
    head: list[Line] = field(default_factory=list)
    tail: list[Line] = field(default_factory=list)
    gap: Gap = _NO_GAP
    gap_start: int | None = None
    gone_bytes: int = 0
    is_divided: bool = False
    line_end_bytes: int = 2
    size: int = 0

    def copy(self) -> "Part":
        """Return another part of the same lines."""
        return replace(self, head=list(self.head), tail=list(self.tail))

    @property
    def lines(self) -> list[str]:
        """The lines that are kept."""
        return [line.text for line in (*self.head, *self.tail)]

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to show."""
        is_whole = not (self.gap.size or self.gone_bytes)
        return is_whole and not any(map(str.strip, self.lines))

    def add(self, event: Line | Gap) -> None:
        """Add the next line, or a gap before it."""
        if isinstance(event, Gap):
            if event.is_gone and not self.head:
                self.gone_bytes += event.size
            else:
                self._leave_out(self.tail, event)
                self.tail = []
            return
        lines = self.tail if self.gap.size else self.head
        is_first = not (self.head or self.gap.size)
        if lines and lines[-1].goes_on:
            begun = lines.pop()
            self.size -= len(begun.text) + _LINE_CHARACTERS
            event = begun._replace(text=begun.text + event.text, goes_on=event.goes_on)
        elif is_first and event.begins_at is None and self.start is not None:
            event = event._replace(begins_at=self.start + self.gone_bytes)
        lines.append(event)
        self.size += len(event.text) + _LINE_CHARACTERS
        if self.size > 2 * KEPT_CHARACTERS:
            self.keep(KEPT_CHARACTERS)

    def extend(self, other: "Part") -> None:
        """Add what was added to another part."""
        if not self.head:
            self.start = other.start
        self.is_divided |= other.is_divided or (bool(self.head) and other.start is None)
        gap_start = self.gap_start if self.gap.size else other.gap_start
        events: list[Line | Gap] = [Gap(other.gone_bytes, 0, is_gone=True), *other.head, other.gap]
        for event in (*events, *other.tail):
            if isinstance(event, Line) or event.size:
                self.add(event)
        self.gap_start = gap_start

    def end_with(self, text: str) -> None:
        """Leave out what comes after the newest line that reads so, or ends so."""
        lines = self.tail if self.gap.size else self.head
        for number in reversed(range(len(lines))):
            if lines[number].text.endswith(text):
                lines[number + 1 :] = [EMPTY_LINE]  # the line is whole
                return

    def keep(self, room: int) -> None:
        """Keep at most so much of the lines as is measured by `size`."""
        if self.size > room:
            self.shorten(room, _LINE_CHARACTERS)

    def shorten(self, room: int, line_characters: int = 1) -> None:
        """Leave out lines in the middle, so that the others fit into a room.

        A quarter of the room goes to the beginning, the rest to the end. Lines stay whole, unless
        that would leave more than half of either empty. What is left out begins with a line that
        can be read from where it begins, and ends before such a line if that costs little.
        """
        head, rest = _head_within(self.head, room // 4, line_characters)
        lines = self.tail if self.gap.size else rest
        left_out, tail = _tail_within(lines, room - room // 4, line_characters)
        if self.gap.size:
            left_out = [*rest, *left_out]
        if left_out:
            self.gap_start = rest[0].begins_at if rest else self.gap_start
            self.head, self.tail = head, tail
            self._leave_out(left_out, _NO_GAP)
            self.size = _size([*head, *tail], _LINE_CHARACTERS)

    def _leave_out(self, lines: Sequence[Line], more: Gap) -> None:
        ends = sum(not line.goes_on for line in lines)
        size = self.gap.size + self._bytes_of(lines) + more.size
        self.gap = Gap(size, self.gap.lines + ends + more.lines)

    def excerpt(self, max_characters: int, *, folds: bool = True) -> Excerpt:
        """Return the lines, without the middle if they are too long; what repeats is folded.

        A note replaces what is left out, another tells of what is no longer kept. Text that is
        only a little too long stays whole.
        """
        gone = NOTHING
        if self.gone_bytes:
            gone = note(f"{self.gone_bytes:,} bytes before this are no longer kept")
            gone = gone._replace(cut_bytes=self.gone_bytes)
        if not self.gap.size and _size(self.head, 1) <= max_characters * _FOLDING:
            whole = Excerpt(self.lines) if self.lines != [""] else NOTHING
            whole = folded(whole) if folds else whole
            if len(whole.text) <= max_characters + GAP_CHARACTERS:
                return joined(gone, whole)
        short = self.copy()
        short.shorten(max_characters - GAP_CHARACTERS)
        head, tail = (Excerpt([line.text for line in end]) for end in (short.head, short.tail))
        if folds:
            head, tail = folded(head), folded(tail)
        return joined(gone, head, short.gap_note(), tail)

    def gap_note(self) -> Excerpt:
        """Return the note for what is left out."""
        size, lines, _ = self.gap
        if not size:
            return NOTHING
        shown = self.head[-1].text if self.head and self.head[-1].goes_on else ""
        is_within = bool(self.tail) and self.tail[0].is_rest
        lines += is_within
        what = "1 line" if lines == 1 else f"{lines:,} lines"
        if not lines or (lines == 1 and (shown or is_within)):
            what = f"{size:,} bytes"
        text = note(f"{what} left out")._replace(cut_bytes=size)
        if self.gap_start is None or self.is_divided:
            return text
        # Lines that output has changed can only be read together with those before them.
        lines += _changed(self.tail[is_within:])
        return text._replace(gaps=(GapNote(0, self.gap_start, lines, shown),))

    def _bytes_of(self, lines: Iterable[Line]) -> int:
        """Return how many bytes lines have in the output, except for what shows nothing."""
        ends = self.line_end_bytes
        return sum(len(line.text.encode()) + ends * (not line.goes_on) for line in lines)


def _size(lines: Iterable[Line], line_characters: int) -> int:
    return sum(len(line.text) + line_characters for line in lines)


def _fitting(lines: Iterable[Line], room: int, line_characters: int) -> tuple[int, int]:
    """Return how many of the first lines fit into a room, and how much they leave of it."""
    count = 0
    for line in lines:
        rest = room - len(line.text) - line_characters
        if rest < -1:  # the last line feed does not count
            break
        room = rest
        count += 1
    return count, room


def _split(line: Line, at: int) -> tuple[Line, Line]:
    first = line._replace(text=line.text[:at], goes_on=True)
    return first, line._replace(text=line.text[at:], is_rest=True)


def _head_within(
    lines: list[Line], room: int, line_characters: int
) -> tuple[list[Line], list[Line]]:
    """Return lines in two parts, the first of which fits into a room."""
    count, unused = _fitting(lines, room, line_characters)
    if count == len(lines):
        return lines, []
    changed = _changed(reversed(lines[: count + 1]))
    if 0 < changed <= count:
        return lines[: count - changed], lines[count - changed :]
    head, rest = lines[:count], lines[count:]
    if unused > room // 2 and rest[0].text[:unused].strip():
        begun, rest[0] = _split(rest[0], unused)
        head.append(begun)
    return head, rest


def _tail_within(
    lines: list[Line], room: int, line_characters: int
) -> tuple[list[Line], list[Line]]:
    """Return lines in two parts, the second of which fits into a room."""
    count, unused = _fitting(reversed(lines), room, line_characters)
    if count == len(lines):
        return [], lines
    rest, tail = lines[: len(lines) - count], lines[len(lines) - count :]
    changed = _changed(tail)
    if 0 < changed < count and _size(tail[:changed], 1) <= room // 2:
        return [*rest, *tail[:changed]], tail[changed:]
    if unused > room // 2 and rest[-1].text[-unused:].strip():
        rest[-1], ended = _split(rest[-1], max(0, len(rest[-1].text) - unused))
        tail.insert(0, ended)
    return rest, tail


def _changed(lines: Iterable[Line]) -> int:
    """Return how many lines come before the first that can be read from where it begins."""
    return sum(1 for _ in itertools.takewhile(lambda line: line.begins_at is None, lines))
