"""What of a pane's output is the echo of keys that were sent: no I/O.

Who types sees what is typed, and so do waits. Rules:

1. A line editor (bash, zsh, fish, Python's prompt) shows keys in the line that it is in when they are sent. All of that
   line is echo. What was typed ahead it shows again at its next prompt.
2. A terminal that echoes shows what is typed once, wherever the program has got to.
3. A program that reads keys itself may show them, then at the end of a line.
4. A terminal that reads lines and does not echo (a password) shows nothing: the same text is an answer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from .rows import Line

# So much of a text at the end of a line is taken for one that a program is about to show.
_LEAST_PART = 4
# So many sendings may be typed ahead of a shell.
_TYPED_AHEAD = 20


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
    """

    cursor: int
    texts: Sequence[str]
    echoes: Echoes
    at: float


class Echo:
    """The echo that is still to come, while the lines of a transcript go by.

    Args:
        before: Keys that were sent before; a line editor may show some of them again.
    """

    def __init__(self, before: Iterable[Sent] = ()) -> None:
        self._typed = [text for sent in list(before)[-_TYPED_AHEAD:] for text in sent.texts]
        self._expected: list[tuple[str, Echoes]] = []

    def expect(self, sent: Sent) -> None:
        """Take note of keys."""
        self._typed += sent.texts
        if sent.echoes in (Echoes.TERMINAL, Echoes.PROGRAM):
            self._expected += [(text, sent.echoes) for text in sent.texts]
        elif sent.echoes is Echoes.EDITOR:  # what follows the first line is shown in lines that are to come
            self._expected += [(text, Echoes.PROGRAM) for text in sent.texts[1:]]

    def without(self, settled: Iterable[Line], still_open: Iterable[Line]) -> list[str]:
        """Return what of the next lines is no echo, without empty lines.

        Args:
            settled: Lines that are new and will not change.
            still_open: All that come behind them and may; they are given again at the next call.
        """
        if not self._typed:
            lines = (*settled, *still_open)
            return [line.text for line in lines if line.text and not line.is_command]
        texts = [self._without(line, is_open=False) for line in settled]
        expected = self._expected
        self._expected = list(expected)
        texts += [self._without(line, is_open=True) for line in still_open]
        self._expected = expected
        return [text for text in texts if text.strip(" ")]

    def _without(self, line: Line, *, is_open: bool) -> str:
        text = line.text
        if line.is_command:
            return ""
        if line.is_edited:
            end = max((text.rfind(typed) + len(typed) for typed in self._typed if typed in text), default=0)
            self._expected = [
                (typed, echoes) for typed, echoes in self._expected if echoes is Echoes.TERMINAL or typed not in text
            ]
            part = max((_part(text[end:], typed) for typed in self._typed), default=0) if is_open else 0
            return text[end : len(text) - part]
        for number, (typed, echoes) in enumerate(self._expected):
            at = text.find(typed) if echoes is Echoes.TERMINAL else _at_end(text, typed)
            if at >= 0:
                del self._expected[: number + 1]
                return text[at + len(typed) :]
        if is_open and self._expected:
            typed, echoes = self._expected[0]
            part = _part(text, typed)
            if echoes is Echoes.TERMINAL or part >= _LEAST_PART:
                return text[: len(text) - part]
        return text


def _at_end(text: str, typed: str) -> int:
    text = text.rstrip(" ")
    return len(text) - len(typed) if text.endswith(typed) else -1


def _part(text: str, typed: str) -> int:
    """Return how many characters at the end of the text are the beginning of what was typed."""
    return next((size for size in range(min(len(text), len(typed)), 0, -1) if text.endswith(typed[:size])), 0)
