"""Pacing: output in pieces of at most a turn's work, and what a terminal makes of them."""

import math
from collections.abc import Iterable, Iterator

from tmux_debug_mcp.turns import TURN_WORK, Turns
from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import SOMEWHERE, Line, text_of
from tmux_debug_mcp.vt.transcript import Transcript

# The work for a control character, or for CR LF. Each sequence begins with one, and nothing else
# can make a terminal scroll, or clear a screen of 200 rows.
_CONTROL_WORK = 1 << 5
_CONTROLS = bytes([*range(0x20), 0x7F])
# The work for a line that is fed by itself. After so many lines, short ones are fed together.
LINE_WORK = 1 << 4
_MAX_SINGLE_LINES = 1 << 12
_SEVERAL_BYTES = 1 << 6


def work_of(data: bytes) -> int:
    """Return how much work some output is for a terminal."""
    controls = len(data) - len(data.translate(None, _CONTROLS)) - data.count(b"\r\n")
    return len(data) + _CONTROL_WORK * controls


def pieces(data: bytes | bytearray) -> Iterator[bytes]:
    """Yield output in pieces, each of at most a turn's work."""
    position = 0
    while position < len(data):
        piece = bytes(data[position : position + TURN_WORK])
        work = work_of(piece)
        while work > TURN_WORK:
            piece = piece[: min(len(piece) * TURN_WORK // work, len(piece) * 7 // 8)]
            work = work_of(piece)
        yield piece
        position += len(piece)


class PacedTranscript:
    """A transcript that is fed in turns. It belongs to this object from now on.

    Its text has the commands that shells were given, and screens, only if it `is_annotated`.

    Attributes:
        settled_lines: How many of the lines that were fed one by one can't change any more.
    """

    def __init__(self, transcript: Transcript, *, is_annotated: bool = True) -> None:
        self.settled_lines = 0
        self._is_annotated = is_annotated
        self._transcript = transcript
        self._settled: list[str] = []
        self._settled_starts: dict[int, int] = {}

    @property
    def held_bytes(self) -> int:
        """How many bytes at the end are an unfinished sequence or character, and so not shown."""
        return self._transcript.held_bytes

    async def feed(self, data: bytes | bytearray, turns: Turns | None = None) -> None:
        """Feed the next bytes, in the caller's turns if given, else in its own."""
        turns = turns or Turns()
        for piece in pieces(data):
            await turns.take(work_of(piece))
            self._transcript.feed(piece)
            settled = self._transcript.take_settled(is_annotated=self._is_annotated)
            self._settled.append(text_of(settled))

    async def feed_lines(self, data: bytes, start: int, enough: float = math.inf) -> int:
        """Feed output from a cursor on, line by line, so that lines know where they begin.

        Stop where the text that can't change any more has `enough` characters. Return how much was
        fed.
        """
        turns = Turns()
        position = size = count = 0
        while position < len(data) and size < enough:
            count += 1
            least = _SEVERAL_BYTES if count > _MAX_SINGLE_LINES else 0
            end = data.find(b"\n", position + least) + 1 or len(data)
            for piece in pieces(data[position:end]):
                await turns.take(min(work_of(piece) + LINE_WORK, TURN_WORK))
                self._transcript.feed(piece)
            position = end
            self._transcript.mark_line(start + position)
            settled = self._transcript.take_settled(is_annotated=self._is_annotated)
            text = text_of(settled)
            size += len(text)
            self._settled.append(text)
            self._settled_starts |= _starts_of(settled, self.settled_lines)
            self.settled_lines += text.count("\n")
        return position

    def text(self) -> str:
        """Return the clean text of everything that was fed."""
        open_lines = self._transcript.open_lines(is_annotated=self._is_annotated)
        return without_paths("".join(self._settled) + text_of(open_lines)[:-1])

    def line_starts(self) -> dict[int, int]:
        """Return where in the output lines of the text begin, by their numbers from 0.

        No later output has changed what precedes such a line, so the text can be divided there.
        """
        open_lines = self._transcript.open_lines(is_annotated=self._is_annotated)
        return self._settled_starts | _starts_of(open_lines, self.settled_lines)

    def screen(self) -> str:
        """Return the rows of the screen, without blanks at their ends."""
        return "\n".join(self._transcript.rows())


def _starts_of(lines: Iterable[Line], number: int) -> dict[int, int]:
    """Return where lines begin, as far as they know, by their numbers; the first has this one."""
    starts = {}
    for line in lines:
        if line.begins_at not in (None, SOMEWHERE):
            starts[number] = line.begins_at
        number += not line.goes_on
    return starts
