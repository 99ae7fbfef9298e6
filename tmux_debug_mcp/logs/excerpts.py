"""Excerpts: text that is cut to the length of a result. Repeated lines are counted. No I/O.

Some lines of an excerpt may be notes of ours. The excerpt keeps their indexes, so that a result can
tell them from lines of a program.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tmux_debug_mcp.vt.rows import NOTE

# Room for the line that a gap takes. What is shorter is cheaper whole.
GAP_CHARACTERS = 120
# Up to this many equal lines in a row are shown as they are.
_MAX_EQUAL_LINES = 3
# A text whose repetitions fill half of a line, and at least so many characters, is shown once.
_MIN_REPEATED_CHARACTERS = 200
_MAX_PERIOD = 100
# The note for blank lines in a row.
_BLANK_LINES = re.compile(r"\[\d+ blank lines\]")


class Excerpt(NamedTuple):
    """Lines to show, without line feeds.

    `notes` holds the indexes of our own lines, from 0, in order; `cut_bytes` of the program's text
    are left out.
    """

    lines: list[str]
    notes: list[int]
    cut_bytes: int = 0

    @property
    def text(self) -> str:
        """The lines joined by line feeds."""
        return "\n".join(self.lines)


NOTHING = Excerpt([], [])


class LeftOut(NamedTuple):
    """What is left out of an excerpt before the line with this index: bytes and lines."""

    before: int
    size: int
    lines: int


def excerpt_of(marked_text: str) -> Excerpt:
    """Return text, in which lines of ours begin with `NOTE`, as an excerpt; no lines if empty."""
    if not marked_text:
        return NOTHING
    lines = marked_text.split("\n")
    if NOTE not in marked_text:
        return Excerpt(lines, [])
    notes = [index for index, line in enumerate(lines) if line.startswith(NOTE)]
    return Excerpt([line.removeprefix(NOTE) for line in lines], notes)


def note(text: str) -> Excerpt:
    """Return a line of ours, in brackets."""
    return Excerpt([f"[{text}]"], [0])


def folded(excerpt: Excerpt) -> Excerpt:
    """Return an excerpt with runs of more than 3 equal lines, and repetitions in a line, folded.

    What repeats is shown once, then a note with the count; for blank lines, only the count.
    """
    parts: list[Excerpt] = []
    own = frozenset(excerpt.notes)
    numbered = enumerate(excerpt.lines)
    for (line, is_own), equal in itertools.groupby(numbered, lambda one: (one[1], one[0] in own)):
        count = len(list(equal))
        if is_own:
            parts.append(Excerpt([line] * count, list(range(count))))
        elif count <= _MAX_EQUAL_LINES:
            parts += [_folded_within(line)] * count
        elif line:
            parts += [_folded_within(line), note(f"the line above: {count} times")]
        else:
            parts.append(note(f"{count} blank lines"))  # see `_BLANK_LINES`
    return joined(*parts)._replace(cut_bytes=excerpt.cut_bytes)


def _folded_within(line: str) -> Excerpt:
    """Return a line in which a text whose repetitions fill half of it is shown once."""
    whole = Excerpt([line], [])
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
    return joined(Excerpt([shown], []), note(f"{text!r} in the line above: {times} times"))


def _equal(one: str, other: str) -> int:
    """Return how many characters two texts have in common at the beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def joined(*parts: Excerpt) -> Excerpt:
    """Return one excerpt of several, in their order."""
    lines: list[str] = []
    notes: list[int] = []
    cut_bytes = 0
    for part in parts:
        notes += [len(lines) + index for index in part.notes]
        lines += part.lines
        cut_bytes += part.cut_bytes
    return Excerpt(lines, notes, cut_bytes)


def without_blank_ends(excerpt: Excerpt) -> Excerpt:
    """Return an excerpt without blank lines at its ends, folded ones included."""
    notes = set(excerpt.notes)
    filled = [
        index
        for index, line in enumerate(excerpt.lines)
        if line.strip() and not (index in notes and _BLANK_LINES.fullmatch(line))
    ]
    if not filled:
        return NOTHING._replace(cut_bytes=excerpt.cut_bytes)
    start, end = filled[0], filled[-1] + 1
    kept = [index - start for index in excerpt.notes if start <= index < end]
    return Excerpt(excerpt.lines[start:end], kept, excerpt.cut_bytes)


def newest_lines(excerpt: Excerpt, most: int) -> Excerpt:
    """Return so many of the newest lines of an excerpt, with the notes before and among them."""
    notes = set(excerpt.notes)
    numbers = [number for number in range(len(excerpt.lines)) if number not in notes]
    if len(numbers) <= most:
        return excerpt
    start = numbers[-most]
    while start - 1 in notes:
        start -= 1
    later = [number - start for number in excerpt.notes if number >= start]
    return Excerpt(excerpt.lines[start:], later, excerpt.cut_bytes)


def gap(lines: int, size: int, advice: str = "") -> Excerpt:
    """Return the note for so many lines and bytes that are left out; 0 lines for a part of one."""
    what = f"{size:,} bytes"
    if lines:
        what = "1 line" if lines == 1 else f"{lines:,} lines"
    advice = f": {advice}" if advice else ""
    return note(f"{what} left out{advice}")._replace(cut_bytes=size)


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


def cut_in_the_middle(
    excerpt: Excerpt,
    max_characters: int,
    keep: int | None = None,
    advice: Callable[[int, int], tuple[str, int | None]] | None = None,
    left_out: LeftOut | None = None,
) -> Excerpt:
    """Return an excerpt with a gap in the middle, if it is too long with its line feeds.

    A quarter of the room goes to the beginning, the rest to the end. Lines stay whole, unless that
    would leave more than half of either empty. The line with the index `keep` stays, if the room
    suffices. `advice` says how to read the lines from one index to another, and how many bytes they
    have in the output, if known. What is `left_out`
    already belongs to the gap.
    """
    if left_out is None and len(excerpt.text) <= max_characters + GAP_CHARACTERS:
        return excerpt
    lines = excerpt.lines
    room = max_characters - GAP_CHARACTERS
    tail_room = room - room // 4
    middle = left_out.before if left_out else None
    head_end = _fitting(lines[:middle], room - tail_room)
    tail = lines[head_end if middle is None else middle :]
    tail_start = len(lines) - _fitting(reversed(tail), tail_room)
    if keep is not None and head_end <= keep < tail_start:
        before, after = _slice(excerpt, 0, keep + 1), _slice(excerpt, keep + 1, len(lines))
        room = max_characters // 2
        return joined(cut_in_the_middle(before, room), cut_in_the_middle(after, room))
    head_room = _room_for_part(room - tail_room, lines[:head_end])
    tail_room = _room_for_part(tail_room, lines[tail_start:])
    words, size = advice(head_end, tail_start) if advice else ("", None)
    return joined(
        _slice(excerpt, 0, head_end),
        _gap_for(
            lines[head_end:tail_start],
            head_room if head_end != middle else 0,
            tail_room if tail_start != middle else 0,
            words,
            left_out or LeftOut(0, 0, 0),
            size,
        ),
        _slice(excerpt, tail_start, len(lines)),
    )


def _room_for_part(room: int, lines: Sequence[str]) -> int:
    """Return the room for a part of the next line, or 0 if whole lines fill half of the room."""
    unused = room - _size(lines)
    return unused if unused > room // 2 else 0


def _fitting(lines: Iterable[str], max_characters: int) -> int:
    """Return how many of the first lines fit into a length, joined by line feeds."""
    size = count = 0
    for line in lines:
        size += len(line) + 1
        if size > max_characters + 1:  # the last line feed does not count
            break
        count += 1
    return count


def _slice(excerpt: Excerpt, start: int, end: int) -> Excerpt:
    notes = [index - start for index in excerpt.notes if start <= index < end]
    return Excerpt(excerpt.lines[start:end], notes)


def _gap_for(
    cut: list[str],
    first_characters: int,
    last_characters: int,
    advice: str,
    more: LeftOut,
    size: int | None,
) -> Excerpt:
    """Return the gap that replaces lines, between what stays of the first and of the last one.

    More than these is left out. In the output, all of it has this size, if known.
    """
    text = "".join([line + "\n" for line in cut])
    first = cut[0][:first_characters] if cut else ""
    last = cut[-1][-last_characters:] if last_characters else ""
    # Blanks alone say nothing.
    first, last = first if first.strip() else "", last if last.strip() else ""
    left_out = text[len(first) :]
    if last:
        left_out = left_out[: -len(last) - 1]
    if size is None:
        size = len(left_out.encode()) + more.size
    else:
        size -= len(first.encode()) + len(last.encode())
    lines = len(cut) + more.lines
    if lines == 1 and (first or last):
        lines = 0
    return joined(
        Excerpt([first] if first else [], []),
        gap(lines, size, advice),
        Excerpt([last] if last else [], []),
    )


def _size(lines: Sequence[str]) -> int:
    """Return the number of characters of lines, each with a line feed."""
    return sum(len(line) + 1 for line in lines)
