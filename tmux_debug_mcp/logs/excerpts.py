"""Texts that are too long for an answer: what repeats is counted, and what is left out is said. No I/O.

Lines of ours among those of a program are *marked*: an answer says which they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

# Room for the line that tells of a cut.
GAP_CHARACTERS = 120
# So many equal lines in a row are shown as they are.
_MOST_EQUAL = 3


class Excerpt(NamedTuple):
    """Lines to show.

    Attributes:
        marked: The numbers of those that are ours, from 0.
        cut_bytes: How many bytes are left out.
    """

    lines: list[str]
    marked: list[int]
    cut_bytes: int = 0

    @property
    def text(self) -> str:
        """The lines joined by line feeds."""
        return "\n".join(self.lines)


def folded(lines: Sequence[str]) -> Excerpt:
    """Return lines with each that repeats more than 3 times shown once, and a marked line with the count.

    Of blank lines only the count is shown.
    """
    shown: list[str] = []
    marked: list[int] = []
    at = 0
    while at < len(lines):
        line, begin = lines[at], at
        while at < len(lines) and lines[at] == line:
            at += 1
        count = at - begin
        if count <= _MOST_EQUAL:
            shown += [line] * count
            continue
        told = [line, f"[the line above: {count} times]"] if line else [f"[{count} blank lines]"]
        shown += told
        marked.append(len(shown) - 1)
    return Excerpt(shown, marked)


def joined(*parts: Excerpt) -> Excerpt:
    """Return lines behind each other."""
    lines: list[str] = []
    marked: list[int] = []
    for part in parts:
        marked += [len(lines) + number for number in part.marked]
        lines += part.lines
    return Excerpt(lines, marked, sum(part.cut_bytes for part in parts))


def gap(lines: int, size: int, advice: str = "") -> Excerpt:
    """Return the marked line that tells what is left out."""
    what = f"{lines} {'line' if lines == 1 else 'lines'}, {size} bytes left out"
    return Excerpt([f"[{what}{': ' + advice if advice else ''}]"], [0], size)


def head_of(lines: Sequence[str], most: int) -> int:
    """Return how many lines from the first on have no more characters than that, with their line feeds."""
    return _fitting(lines, most, range(len(lines)))


def tail_of(lines: Sequence[str], most: int) -> int:
    """Return the same for the lines to the last one."""
    return _fitting(lines, most, range(len(lines) - 1, -1, -1))


def _fitting(lines: Sequence[str], most: int, numbers: range) -> int:
    size = 0
    for count, number in enumerate(numbers):
        size += len(lines[number]) + 1
        if size > most + 1:
            return count
    return len(lines)


def cut_in_the_middle(shown: Excerpt, most: int, keep: int | None = None) -> Excerpt:
    """Return lines with the middle left out where they are too long: the first quarter stays, and the last three.

    Args:
        shown: The lines.
        most: The most characters to show.
        keep: The number of a line that has to stay.
    """
    lines = shown.lines
    if len(shown.text) <= most:
        return shown
    most -= GAP_CHARACTERS
    room = most - most // 4
    if keep is not None and keep >= len(lines) - tail_of(lines, most):
        room = max(room, sum(len(line) + 1 for line in lines[keep:]))
    head = head_of(lines, most - room)
    tail = tail_of(lines[head:], room)
    last = len(lines) - tail
    cut = [*lines[head:last]]
    rest: list[str] = []
    left = room - sum(len(line) + 1 for line in lines[last:])
    if left > room // 2:  # whole lines would leave too much out
        rest = [cut[-1][-left:]]
        cut[-1] = cut[-1][: len(cut[-1]) - left]
    remaining_bytes = sum(len(line.encode()) + 1 for line in cut) - len(rest)  # whose line feed is shown
    before = Excerpt(lines[:head], [number for number in shown.marked if number < head])
    marked = [len(rest) + number - last for number in shown.marked if number >= last]
    behind = Excerpt([*rest, *lines[last:]], marked)
    return joined(before, gap(len(cut), remaining_bytes), behind)
