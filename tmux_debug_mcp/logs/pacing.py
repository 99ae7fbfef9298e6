"""Pacing: long logs are processed in pieces of some milliseconds, between which other calls run."""

import time

import anyio.lowlevel

from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import text_of
from tmux_debug_mcp.vt.transcript import Transcript

# Processor time that a turn should not exceed.
_MAX_TURN_S = 0.008
# Bytes of a turn. A transcript takes most output at 30 MB/s, and some a thousand times slower.
_MIN_BYTES = 1 << 10
_MAX_BYTES = 1 << 16


class Pace:
    """Decides how many bytes to process in one turn of the event loop.

    Attributes:
        bytes: How many bytes the next turn should take, from 1 KiB to 64 KiB.
        room: How many of them this turn has left.
    """

    def __init__(self) -> None:
        self.bytes = _MIN_BYTES
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self.room = self.bytes
        self._begun_at = time.thread_time()

    def end(self) -> None:
        """End a turn, and adapt `bytes` to the processor time that it took."""
        took_s = time.thread_time() - self._begun_at
        if took_s < _MAX_TURN_S / 4:
            self.bytes = min(2 * self.bytes, _MAX_BYTES)
        elif took_s > _MAX_TURN_S:
            self.bytes = max(self.bytes // 4, _MIN_BYTES)

    async def spend(self, count: int) -> None:
        """Note that bytes were processed, and begin the next turn if this one has no room left."""
        self.room -= count
        if self.room <= 0:
            self.end()
            await anyio.lowlevel.checkpoint()
            self.begin()


class PacedTranscript:
    """A transcript that is fed in turns, between which other tasks run.

    Args:
        transcript: The transcript, which belongs to this object from now on.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._settled: list[str] = []

    @property
    def held_bytes(self) -> int:
        """How many bytes at the end are an unfinished sequence or character, and so not shown."""
        return self._transcript.held_bytes

    async def feed(self, data: bytes | bytearray, pace: Pace | None = None) -> None:
        """Feed the next bytes.

        Args:
            data: The bytes.
            pace: Turns that go on with what is processed next. Without it the last turn ends here.
        """
        turns = pace or Pace()
        position = 0
        while position < len(data):
            piece = data[position : position + turns.room]
            self._transcript.feed(piece)
            self._settled.append(text_of(self._transcript.take_settled()))
            position += len(piece)
            await turns.spend(len(piece))
        if pace is None:
            await anyio.lowlevel.checkpoint()

    def text(self) -> str:
        """Return the clean text of everything that was fed."""
        open_lines = text_of(self._transcript.open_lines())[:-1]
        return without_paths("".join(self._settled) + open_lines)

    def screen(self) -> str:
        """Return the rows of the screen, without blanks at their ends."""
        return self._transcript.screen()
