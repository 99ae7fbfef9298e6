"""Pacing: output in pieces of at most a turn's work, and what a terminal makes of them."""

from collections.abc import Iterator

from tmux_debug_mcp.turns import TURN_WORK, Turns
from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import text_of
from tmux_debug_mcp.vt.transcript import Transcript

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
        turns = turns or Turns()
        for piece in pieces(data):
            await turns.take(work_of(piece))
            self._transcript.feed(piece)
            self._settled.append(text_of(self._transcript.take_settled()))

    def text(self) -> str:
        """Return the clean text of everything that was fed."""
        open_lines = text_of(self._transcript.open_lines())[:-1]
        return without_paths("".join(self._settled) + open_lines)

    def screen(self) -> str:
        """Return the rows of the screen, without blanks at their ends."""
        return self._transcript.screen()
