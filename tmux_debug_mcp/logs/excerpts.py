"""Excerpts: text that is cut to the length of a result. Repeated lines are counted. No I/O.

Some lines of an excerpt may be notes of ours. The excerpt has their indexes, so that a result can
tell them from lines of a program.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Room for the line that a gap takes.
GAP_CHARACTERS = 120
# Up to this many equal lines in a row are shown as they are.
_MAX_EQUAL_LINES = 3


class Excerpt(NamedTuple):
    """Lines to show, without line feeds.

    `notes` has the indexes of our own lines, from 0, in order; `cut_bytes` of the program's text
    are left out.
    """

    lines: list[str]
    notes: list[int]
    cut_bytes: int = 0

    @property
    def text(self) -> str:
        """The lines joined by line feeds."""
        return "\n".join(self.lines)


def folded(lines: Sequence[str]) -> Excerpt:
    """Return lines with each run of more than 3 equal lines folded.

    The line is shown once, and then a note with the count; of blank lines only the count.
    """
    folded_lines: list[str] = []
    notes: list[int] = []
    for line, equal in itertools.groupby(lines):
        count = len(list(equal))
        if count <= _MAX_EQUAL_LINES:
            folded_lines += [line] * count
            continue
        if line:
            folded_lines += [line, f"[the line above: {count} times]"]
        else:
            folded_lines.append(f"[{count} blank lines]")
        notes.append(len(folded_lines) - 1)
    return Excerpt(folded_lines, notes)


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


def gap(lines: int, size: int, advice: str = "") -> Excerpt:
    """Return the note for so many lines and bytes that are left out; 0 lines for a part of one."""
    note = f"{size} bytes left out"
    if lines:
        noun = "line" if lines == 1 else "lines"
        note = f"{lines} {noun}, {note}"
    if advice:
        note = f"{note}: {advice}"
    return Excerpt([f"[{note}]"], [0], size)


def end_of(text: str, max_characters: int) -> str:
    """Return the end of a text, or all of it if it fits.

    The end begins with a whole line if that costs at most a tenth of the length.
    """
    if len(text) <= max_characters:
        return text
    end = text[-max_characters:]
    if text[-max_characters - 1] == "\n":
        return end
    partial_line, _, lines = end.partition("\n")
    if lines and len(partial_line) <= max_characters // 10:
        return lines
    return end


def cut_in_the_middle(excerpt: Excerpt, max_characters: int, keep: int | None = None) -> Excerpt:
    """Return an excerpt with a gap in the middle, if it is too long with its line feeds.

    A quarter of the room goes to the beginning, the rest to the end. Lines stay whole, unless that
    would leave more than half of either empty. The line with the index `keep` stays, if the room
    suffices: the end begins there or before it.
    """
    if len(excerpt.text) <= max_characters:
        return excerpt
    lines = excerpt.lines
    room = max_characters - GAP_CHARACTERS
    tail_room = room - room // 4
    if keep is not None and keep >= len(lines) - _fitting(reversed(lines), room):
        tail_room = max(tail_room, _size(lines[keep:]))
    head_end = _fitting(lines, room - tail_room)
    tail_start = len(lines) - _fitting(reversed(lines[head_end:]), tail_room)
    cut = lines[head_end:tail_start]
    head_room = room - tail_room
    return joined(
        _slice(excerpt, 0, head_end),
        _gap_for(
            cut,
            _room_for_part(head_room, lines[:head_end]),
            _room_for_part(tail_room, lines[tail_start:]),
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


def _gap_for(cut: list[str], first_characters: int, last_characters: int) -> Excerpt:
    """Return the gap that replaces lines, between what stays of the first and of the last one."""
    text = "\n".join(cut) + "\n"
    first = cut[0][:first_characters]
    last = cut[-1][-last_characters:] if last_characters else ""
    left_out = text[len(first) :]
    if last:
        left_out = left_out[: -len(last) - 1]
    lines = len(cut)
    if len(cut) == 1 and (first or last):
        lines = 0
    return joined(
        Excerpt([first] if first else [], []),
        gap(lines, len(left_out.encode())),
        Excerpt([last] if last else [], []),
    )


def _size(lines: Sequence[str]) -> int:
    """Return the characters of lines, each with a line feed."""
    return sum(len(line) + 1 for line in lines)
