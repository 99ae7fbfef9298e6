"""Pacing: long logs are processed in turns of bounded work, between which other calls run.

Work is counted, not timed, so a turn ends at the same byte on each machine. `./dev bench` reports
how long the slowest takes: up to 8 ms on ours, so two fit into 50 ms on a machine a third as fast.
"""

from collections.abc import Iterator

import anyio.lowlevel

from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import text_of
from tmux_debug_mcp.vt.transcript import Transcript

# The most work of a turn. The unit is what a terminal takes at worst for a printed byte.
TURN_WORK = 1 << 13
# The work for a control character, or for CR LF. Each sequence begins with one, and nothing else
# can make a terminal scroll, or clear a screen of 200 rows.
_CONTROL_WORK = 1 << 5
_CONTROLS = bytes([*range(0x20), 0x7F])


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


class Turns:
    """Counts the work of a task, and lets others run when a turn's is done."""

    def __init__(self) -> None:
        self._room = TURN_WORK

    async def take(self, work: int) -> None:
        """Begin the next turn unless this one has room for so much more work."""
        if work > self._room:
            await anyio.lowlevel.checkpoint()
            self._room = TURN_WORK
        self._room -= work


class PacedTranscript:
    """A transcript that is fed in turns. It belongs to this object from now on."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._settled: list[str] = []

    @property
    def held_bytes(self) -> int:
        """How many bytes at the end are an unfinished sequence or character, and so not shown."""
        return self._transcript.held_bytes

    async def feed(self, data: bytes | bytearray, turns: Turns | None = None) -> None:
        """Feed the next bytes, in the caller's turns if given, else in its own."""
        counted = turns or Turns()
        for piece in pieces(data):
            await counted.take(work_of(piece))
            self._transcript.feed(piece)
            self._settled.append(text_of(self._transcript.take_settled()))
        if turns is None:
            await anyio.lowlevel.checkpoint()

    def text(self) -> str:
        """Return the clean text of everything that was fed."""
        open_lines = text_of(self._transcript.open_lines())[:-1]
        return without_paths("".join(self._settled) + open_lines)

    def screen(self) -> str:
        """Return the rows of the screen, without blanks at their ends."""
        return self._transcript.screen()
