"""What of a pane's output is the echo of keys that were sent: no I/O.

Who types sees what is typed, and so do waits. Rules:

1. A line editor (bash, zsh, fish, Python's prompt) shows keys in the line that it is in when they are sent. All of that
   line is echo. What was typed ahead it shows again at its next prompt.
2. A terminal that echoes shows what is typed once, wherever the program has got to.
3. A program that reads keys itself may show them, then at the end of a line.
4. A terminal that reads lines and does not echo (a password) shows nothing: the same text is an answer.

Many lines may have been typed, and each line of output is compared with them. So a text is looked for in the middle of
a line only if its turn is near, for texts are shown in their order; at the end of a line, all are looked up at once.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from .rows import Line

# So much of a text at the end of a line is taken for one that a program is about to show.
_LEAST_PART = 4
# So many sendings may be typed ahead of a shell.
_TYPED_AHEAD = 20
# So many lines of a text are remembered.
MAX_TEXTS = 50_000
# So many texts are near: those that are expected next, and those that were shown last.
_NEXT = 32
_LAST = 16
# A text of more characters is long, and so is a line of more.
_LONG, _LONG_LINE = 64, 10_000
# The part of a text that a line ends with is looked for at so many places in the line.
_PLACES = 64


class Echoes(Enum):
    """Who shows what is typed."""

    NOBODY = "nobody"
    TERMINAL = "terminal"
    PROGRAM = "program"
    EDITOR = "line editor"


@dataclass(frozen=True, slots=True)
class Sent:
    """Keys that were sent to a pane.

    Attributes:
        cursor: Where the pane's log ended before.
        texts: What was typed, in pieces without control characters or blanks around them.
        echoes: Who shows it, as far as the kernel can tell: a program may have a line editor.
        at: When, as time.time() has it.
        rows: What the screen of a program that draws there showed before.
    """

    cursor: int
    texts: Sequence[str]
    echoes: Echoes
    at: float
    rows: Sequence[str] = ()


class _Texts:
    """Texts in an order, of which some are near.

    Attributes:
        next: The number of the one that is expected next.
    """

    def __init__(self) -> None:
        self.next = 0
        self._texts: list[str] = []
        self._last: dict[str, int] = {}
        self._lengths: list[int] = []

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def add(self, texts: Sequence[str]) -> None:
        """Add texts behind the others."""
        self._last.update(zip(texts, itertools.count(len(self._texts)), strict=False))
        self._texts += texts
        self._lengths = sorted({*self._lengths, *map(len, texts)})

    def near(self) -> range:
        """Return the numbers of the texts that were shown last and that are expected next."""
        return range(max(0, self.next - _LAST), min(len(self._texts), self.next + _NEXT))

    def at_end(self, line: str) -> int | None:
        """Return the number of the longest text that a line ends with: of equal ones the next expected, or the last."""
        number = None
        for length in itertools.takewhile(len(line).__ge__, self._lengths):
            text = line[-length:]
            last = self._last.get(text)
            if last is not None:
                number = last if last < self.next else self._texts.index(text, self.next)
        return number


class Echo:
    """The echo that is still to come, while the lines of a transcript go by.

    Args:
        before: Keys that were sent before; a line editor may show some of them again.
    """

    def __init__(self, before: Iterable[Sent] = ()) -> None:
        self._typed = _Texts()
        self._expected = _Texts()
        self._echoes: list[Echoes] = []  # of what is expected
        self._shown: frozenset[int] = frozenset()  # of that, by a line editor ahead of its turn
        sent = list(before)[-_TYPED_AHEAD:]
        while sum(len(keys.texts) for keys in sent[:-1]) > MAX_TEXTS:
            del sent[0]
        for keys in sent:
            self._typed.add(keys.texts)
        self._typed.next = max(0, len(self._typed) - _NEXT)

    def expect(self, sent: Sent) -> None:
        """Take note of keys."""
        self._typed.add(sent.texts)
        echoes, texts = sent.echoes, sent.texts
        if echoes is Echoes.EDITOR:  # what follows the first line is shown in lines that are to come
            echoes, texts = Echoes.PROGRAM, sent.texts[1:]
        if echoes is not Echoes.NOBODY:
            self._expected.add(texts)
            self._echoes += [echoes] * len(texts)

    def without(self, settled: Iterable[Line], still_open: Sequence[Line]) -> list[str]:
        """Return what of the next lines is no echo, without empty lines.

        Args:
            settled: Lines that are new and will not change.
            still_open: All that come behind them and may; they are given again at the next call.
        """
        if not self._typed:
            lines = (*settled, *still_open)
            return [line.text for line in lines if line.text and not line.is_command]
        texts = [self._without(line, is_last=False) for line in settled]
        before = self._typed.next, self._expected.next, self._shown
        texts += [self._without(line, is_last=line is still_open[-1]) for line in still_open]
        self._typed.next, self._expected.next, self._shown = before
        return [text for text in texts if text.strip(" ")]

    def _without(self, line: Line, *, is_last: bool) -> str:
        if line.is_command or not line.text:
            return ""
        if line.is_edited:
            return self._without_edited(line.text, is_last=is_last)
        if shown := self._shown_in(line.text):
            number, end = shown
            self._expected.next = number + 1
            self._shown = frozenset(later for later in self._shown if later > number)
            return line.text[end:]
        following = next(self._next_expected(), None)
        if is_last and following is not None:
            part = _part(line.text, self._expected[following])
            if self._echoes[following] is Echoes.TERMINAL or part >= _LEAST_PART:
                return line.text[: len(line.text) - part]
        return line.text

    def _without_edited(self, text: str, *, is_last: bool) -> str:
        """Return what stands behind all that was typed in a line that a line editor wrote.

        What was expected and is shown there is no longer expected.
        """
        end = 0
        trimmed = text.strip(" ")
        at_end = self._typed.at_end(trimmed)
        if at_end is not None:
            self._typed.next = at_end + 1
        for number in self._typed.near():
            typed = self._typed[number]
            # The search for the last place takes time that grows with both.
            at = text.find(typed) if len(typed) > _LONG else text.rfind(typed, max(0, len(text) - _LONG_LINE))
            if at >= 0:
                end = max(end, at + len(typed))
                self._typed.next = max(self._typed.next, number + 1)
            elif _LEAST_PART <= len(trimmed) < len(typed) <= _LONG_LINE and trimmed in typed:
                end = len(text)  # a row of it, as zsh breaks what is too wide
        for number in self._next_expected():
            if self._echoes[number] is Echoes.PROGRAM and self._expected[number] in text:
                self._shown |= {number}
        while self._expected.next in self._shown:
            self._expected.next += 1
        self._shown = frozenset(number for number in self._shown if number > self._expected.next)
        rest = text[end:]
        part = max((_part(rest, self._typed[number]) for number in self._typed.near()), default=0) if is_last else 0
        return rest[: len(rest) - part]

    def _next_expected(self) -> Iterator[int]:
        """Yield the numbers of what is expected next."""
        first = self._expected.next
        shown = self._shown
        return (number for number in range(first, min(first + _NEXT, len(self._expected))) if number not in shown)

    def _shown_in(self, text: str) -> tuple[int, int] | None:
        """Return the number of the expected text that a line shows, and where in the line that ends."""
        trimmed = text.rstrip(" ")
        at_end = self._expected.at_end(trimmed)
        if at_end is not None and at_end >= self._expected.next and at_end not in self._shown:
            return at_end, len(trimmed)
        for number in self._next_expected():
            expected = self._expected[number]
            at = text.find(expected) if self._echoes[number] is Echoes.TERMINAL else -1
            if at >= 0:
                return number, at + len(expected)
        return None


def _part(text: str, typed: str) -> int:
    """Return how many characters at the end of the text are the beginning of what was typed."""
    at = max(0, len(text) - len(typed))
    for _ in range(_PLACES):
        at = text.find(typed[0], at)
        if at < 0:
            return 0
        if typed.startswith(text[at:]):
            return len(text) - at
        at += 1
    # All that is there is looked at only where little is.
    return next((size for size in range(min(_PLACES, len(typed)), 0, -1) if text.endswith(typed[:size])), 0)
