"""Separates a program's output from the echo of keys that were sent to its pane. No I/O.

What is typed appears in the output too, so a wait has to tell the two apart. Rules:

1. A line editor (bash, zsh, fish, Python's prompt) echoes keys in the line that its cursor is in
   when they are sent. All of that line is echo. Text typed ahead is echoed again at the next
   prompt.
2. A terminal that echoes shows typed text once, wherever the program's output has got to.
3. A program that reads keys itself may echo them, at the end of a line.
4. A terminal that reads lines without echo (for a password) shows nothing: the same text in the
   output is output.

Many lines may have been typed, and each line of output is compared with them. Texts are echoed in
order, so only those whose turn is near are searched for within a line. The end of a line is looked
up among all texts at once.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from .rows import Line, cell_width

# How many texts are remembered.
MAX_TEXTS = 50_000

# At the end of the last line, this much of a text means that a program is about to echo the rest.
_MIN_PART = 4
# How many times text may be typed ahead of a shell.
_MAX_TYPED_AHEAD = 20
# Texts that are near: the next to be echoed, and the last that were.
_NEAR_NEXT = 32
_NEAR_LAST = 16
# Searching backwards takes time that grows with text and line, so both are limited.
_MAX_BACKWARD_TEXT = 64
_MAX_BACKWARD_LINE = 10_000
# Longer texts are not searched for one of their rows.
_MAX_WRAPPED_TEXT = 10_000
# Places in a line at which the beginning of a text is tried.
_MAX_PLACES = 64


class Echoer(Enum):
    """Who echoes what is typed."""

    NOBODY = "nobody"
    TERMINAL = "terminal"
    PROGRAM = "program"
    EDITOR = "line editor"


@dataclass(frozen=True, slots=True)
class TypedText:
    """Text that was typed into a pane.

    Attributes:
        cursor: The size of the pane's log before.
        texts: The text in pieces, split at control characters, without surrounding blanks.
        echoer: Who echoes it, as far as the kernel knows: a program may have a line editor.
        number: How many times something was typed into the pane before.
    """

    cursor: int
    texts: Sequence[str]
    echoer: Echoer
    number: int


class _Texts:
    """Typed texts in order, identified by their numbers from 0; `next` is expected next."""

    def __init__(self) -> None:
        self.next = 0
        self.texts: list[str] = []
        self._last_numbers: dict[str, int] = {}
        self._lengths: list[int] = []  # in ascending order, each once

    def add(self, texts: Sequence[str]) -> None:
        first = len(self.texts)
        numbers = range(first, first + len(texts))
        self._last_numbers.update(zip(texts, numbers, strict=True))
        self.texts += texts
        self._lengths = sorted({*self._lengths, *map(len, texts)})

    def near(self) -> Iterable[tuple[int, str]]:
        """Return the numbers and texts of the last echoed texts and of the next."""
        first = max(0, self.next - _NEAR_LAST)
        return enumerate(self.texts[first : self.next + _NEAR_NEXT], start=first)

    def at_end_of(self, line: str) -> int | None:
        """Return the number of the longest text that a line ends with, or None.

        Among equal texts, it is the next that is expected, or else the last.
        """
        number = None
        for length in itertools.takewhile(len(line).__ge__, self._lengths):
            text = line[-length:]
            last = self._last_numbers.get(text)
            if last is None:
                continue
            number = last
            if last >= self.next:
                number = self.texts.index(text, self.next)
        return number


class Echo:
    """The echo that is expected while the lines of a transcript go by.

    A line editor may echo some earlier keys again.
    """

    def __init__(self, before: Iterable[TypedText] = ()) -> None:
        self._typed = _Texts()
        self._expected = _Texts()
        self._echoes: list[Echoer] = []  # for each expected text
        # The numbers of expected texts that a line editor has echoed before their turn.
        self._early: frozenset[int] = frozenset()
        latest = list(before)[-_MAX_TYPED_AHEAD:]
        while sum(len(sent.texts) for sent in latest[:-1]) > MAX_TEXTS:
            del latest[0]
        for sent in latest:
            self._typed.add(sent.texts)
        self._typed.next = max(0, len(self._typed.texts) - _NEAR_NEXT)

    def expect(self, sent: TypedText) -> None:
        """Expect the echo of keys that are sent now."""
        self._typed.add(sent.texts)
        if sent.echoer is Echoer.NOBODY:
            return
        echoer, texts = sent.echoer, sent.texts
        if echoer is Echoer.EDITOR:
            # The editor's line shows the first text; later lines echo the others.
            echoer, texts = Echoer.PROGRAM, texts[1:]
        self._expected.add(texts)
        self._echoes += [echoer] * len(texts)

    def without(self, settled: Iterable[Line], still_open: Sequence[Line]) -> list[str]:
        """Return the text of the next lines without echo, and without empty lines.

        Settled lines are new and will not change. All lines after them are still open: they may
        change, and are passed again next time.
        """
        if not self._typed.texts:
            lines = (*settled, *still_open)
            return [line.text for line in lines if line.text and not line.is_command]
        texts = [self._without_echo(line, is_last=False) for line in settled]
        # Open lines are passed again, so afterwards the same echo is expected as before.
        typed_next, expected_next, early = self._typed.next, self._expected.next, self._early
        texts += [self._without_echo(line, is_last=line is still_open[-1]) for line in still_open]
        self._typed.next = typed_next
        self._expected.next = expected_next
        self._early = early
        return [text for text in texts if text.strip(" ")]

    def _without_echo(self, line: Line, *, is_last: bool) -> str:
        if line.is_command or not line.text:
            return ""
        if line.is_edited:
            return self._without_editor_echo(line.text, is_last=is_last)
        echoed = self._find_expected(line.text)
        if echoed is not None:
            number, end = echoed
            self._expected.next = number + 1
            self._early = frozenset(early for early in self._early if early > number)
            return line.text[end:]
        following = next(self._next_expected(), None)
        if not is_last or following is None:
            return line.text
        # The last line may end with the beginning of the next expected text.
        part = _overlap(line.text, self._expected.texts[following])
        if self._echoes[following] is Echoer.TERMINAL or part >= _MIN_PART:
            return line.text[: len(line.text) - part]
        return line.text

    def _find_expected(self, text: str) -> tuple[int, int] | None:
        """Return the number of the expected text in a line, and where in the line it ends."""
        trimmed = text.rstrip(" ")
        at_end = self._expected.at_end_of(trimmed)
        if at_end is not None and at_end >= self._expected.next and at_end not in self._early:
            return at_end, len(trimmed)
        for number in self._next_expected():
            if self._echoes[number] is not Echoer.TERMINAL:
                continue
            expected = self._expected.texts[number]
            start = text.find(expected)
            if start >= 0:
                return number, start + len(expected)
        return None

    def _next_expected(self) -> Iterator[int]:
        """Yield the numbers of the next expected texts that a line editor has not echoed early."""
        first = self._expected.next
        last = min(first + _NEAR_NEXT, len(self._expected.texts))
        early = self._early
        return (number for number in range(first, last) if number not in early)

    def _without_editor_echo(self, text: str, *, is_last: bool) -> str:
        """Return what follows all typed text in a line that a line editor wrote.

        Expected texts in this line are no longer expected.
        """
        rest = text[self._end_of_typed(text) :]
        expected = self._expected
        for number in self._next_expected():
            if self._echoes[number] is Echoer.PROGRAM and expected.texts[number] in text:
                self._early |= {number}
        while expected.next in self._early:
            expected.next += 1
        self._early = frozenset(number for number in self._early if number > expected.next)
        if not is_last:
            return rest
        part = max((_overlap(rest, typed) for _, typed in self._typed.near()), default=0)
        return rest[: len(rest) - part]

    def _end_of_typed(self, text: str) -> int:
        """Return where the last typed text ends in a line, 0 if there is none.

        The text after the last in the line is expected next.
        """
        trimmed = text.strip(" ")
        # Only near texts are searched for. The text at the end of a line shows which are near.
        at_end = self._typed.at_end_of(trimmed)
        if at_end is not None:
            self._typed.next = at_end + 1
        end = 0
        for number, typed in self._typed.near():
            if len(typed) > _MAX_BACKWARD_TEXT:
                start = text.find(typed)
            else:
                start = text.rfind(typed, max(0, len(text) - _MAX_BACKWARD_LINE))
            if start >= 0:
                end = max(end, start + len(typed))
                self._typed.next = max(self._typed.next, number + 1)
            elif _MIN_PART <= len(trimmed) < len(typed) <= _MAX_WRAPPED_TEXT and trimmed in typed:
                end = len(text)  # zsh prints each row of a longer text as a line
        return end


def rows_without_typed(rows: Sequence[str], columns: int, texts: Iterable[str]) -> list[str]:
    """Return the rows of a screen without typed texts and what precedes them.

    A text may span several rows of so many columns.
    """
    padded = [row + " " * (columns - sum(map(cell_width, row))) for row in rows]
    starts = list(itertools.accumulate(map(len, padded[:-1]), initial=0))
    whole = "".join(padded)
    behind = [0] * len(rows)  # where in each row typed text ends
    for text in texts:
        start = whole.find(text)
        while start >= 0:
            end = start + len(text)
            for number in range(bisect_right(starts, start) - 1, bisect_left(starts, end)):
                behind[number] = max(behind[number], end - starts[number])
            start = whole.find(text, end)
    return [row[end:] for row, end in zip(rows, behind, strict=True)]


def _overlap(text: str, typed: str) -> int:
    """Return the number of characters at the end of a text that begin the typed text."""
    start = max(0, len(text) - len(typed))
    for _ in range(_MAX_PLACES):
        start = text.find(typed[0], start)
        if start < 0:
            return 0
        if typed.startswith(text[start:]):
            return len(text) - start
        start += 1
    # Too many places: find a short overlap only.
    for size in range(min(_MAX_PLACES, len(typed)), 0, -1):
        if text.endswith(typed[:size]):
            return size
    return 0
