"""Clean text of a log, forward from a cursor: what the terminal shows of the bytes.

`ends` reads backward from a cursor, `abridging` leaves out the middle, `raw` reads raw text.
"""

from typing import NamedTuple

from tmux_debug_mcp.vt.charsets import SHIFT_OUT
from tmux_debug_mcp.vt.marks import BEGIN, MAX_MARK_BYTES, MAX_TO_MARK, is_typed

from .log import Log
from .pacing import PacedTranscript
from .positioning import blank_transcript, line_transcript, reading_transcript

# A program may print little text in many bytes, such as a progress bar. One call reads this much.
MAX_READ_BYTES = 1 << 20

# How much to feed before the length of the text is checked.
_PIECE_BYTES = 1 << 16
# How far back a screen is read: programs draw all of it anew within so much output.
_REDRAW_BYTES = 1 << 18
# The least limit for the length of the text: a few bytes can bring back a full screen.
_MIN_CHARACTERS = 1 << 18
_SHIFT_OUT = SHIFT_OUT.encode()


class Piece(NamedTuple):
    """A part of a log as text.

    Attributes:
        text: The text, its lines joined by line feeds.
        start: The cursor where it begins.
        end: The cursor where it ends.
        remaining_bytes: How much of what was asked for comes after it, except what is unfinished at
            its end.
    """

    text: str
    start: int
    end: int
    remaining_bytes: int = 0

    @property
    def lines(self) -> list[str]:
        """The lines, where a line feed at the end begins no further one; none of empty text."""
        if not self.text:
            return []
        return self.text.removesuffix("\n").split("\n")


class _Shown(NamedTuple):
    """What a terminal shows of some bytes.

    Attributes:
        text: The clean text.
        held_bytes: How many of the bytes, at their end, are unfinished and not shown.
    """

    text: str
    held_bytes: int


async def read_forward(
    log: Log, start: int, end: int, max_characters: int, max_lines: int | None = None
) -> Piece:
    """Return the clean text from a cursor on, the oldest first.

    Successive pieces, put together, are the whole text. The end of a piece is `end`, or the
    beginning of what is unfinished there. Before that, it is where the text would get too long,
    after a whole line if one fits, after `max_lines`, or where `MAX_READ_BYTES` were read.

    Args:
        log: The log.
        start: Where to begin; bytes that are no longer kept are skipped.
        end: Where to end at the latest.
        max_characters: The maximum length of the text.
        max_lines: The maximum number of lines; None for no such limit.
    """
    start = max(start, log.kept_from)
    data, shown = await _read_until_full(log, start, end, max_characters)
    while True:
        is_all = start + len(data) >= end
        size = _size_to_keep(data, len(shown.text), max_characters, is_all=is_all)
        if size == len(data):
            break
        del data[size:]
        shown = await _show_from(log, start, data)
    if max_lines is not None and len(Piece(shown.text, 0, 0).lines) > max_lines:
        del data[await _size_of_lines(log, start, data, max_lines) :]
        shown = await _show_from(log, start, data)
    read_to = start + len(data)
    return Piece(shown.text, start, read_to - shown.held_bytes, max(0, end - read_to))


async def _read_until_full(
    log: Log, start: int, end: int, max_characters: int
) -> tuple[bytearray, _Shown]:
    """Read until the text has nearly its maximum length, or a little more."""
    paced = PacedTranscript(reading_transcript(log, start))
    # All of it at once: the log may be trimmed at each `await`.
    data = log.read(start, min(MAX_READ_BYTES, end - start))
    read_bytes = 0
    text = ""
    while read_bytes < len(data):
        room = max_characters - len(text)
        if room < max_characters // 100:
            break
        piece = data[read_bytes : read_bytes + min(_PIECE_BYTES, room)]
        await paced.feed(piece)
        read_bytes += len(piece)
        text = paced.text()
    return bytearray(data[:read_bytes]), _Shown(text, paced.held_bytes)


def _size_to_keep(data: bytearray, characters: int, max_characters: int, *, is_all: bool) -> int:
    """Return how many of the bytes that were read to keep, so that they end well.

    Args:
        data: The bytes.
        characters: The length of their text, which bytes that move the cursor make long.
        max_characters: The maximum length of the text.
        is_all: The bytes reach the end of what is to be read.

    Returns:
        All of them, or fewer. The text of fewer may still be too long.
    """
    is_long = characters > max_characters
    if not is_long and (is_all or data.endswith(b"\n")):
        return len(data)
    limit = len(data)
    if is_long:
        in_proportion = len(data) * max_characters // characters
        limit = min(in_proportion, len(data) - 1)
    line_end = _last_line_end(data, limit)
    if line_end:
        return line_end
    return limit


def _last_line_end(data: bytearray, limit: int) -> int:
    """Return the end of the last whole line before a limit, or 0 without one."""
    line_end = data.rfind(b"\n", 0, limit) + 1
    # The line typed for a command belongs with the mark behind it, which has the command.
    if is_typed(data[:line_end]):
        line_end = data.rfind(b"\n", 0, line_end - 1) + 1
    return line_end


async def _size_of_lines(log: Log, start: int, data: bytearray, lines: int) -> int:
    """Return how many of the bytes show so many lines, which may be more lines of output."""
    paced = PacedTranscript(reading_transcript(log, start))
    size = 0
    missing = lines
    while missing > 0 and size < len(data):
        end = size
        while missing > 0 and end < len(data):
            line_feed = data.find(b"\n", end)
            end = len(data) if line_feed < 0 else line_feed + 1
            missing -= 1
        await paced.feed(data[size:end])
        size = end
        missing = lines - paced.text().count("\n")
    return _last_line_end(data, size) or size


async def _show_from(log: Log, start: int, data: bytearray) -> _Shown:
    paced = PacedTranscript(reading_transcript(log, start))
    await paced.feed(data)
    return _Shown(paced.text(), paced.held_bytes)


async def read_clean(log: Log, start: int, end: int, max_bytes: int) -> Piece:
    """Return the clean text of a number of bytes, like `raw.read_raw` for raw text.

    The piece ends before what is unfinished at its end, and not between the line typed for a
    command and its mark. It has more bytes than allowed if otherwise it would be empty, as for a
    long sequence.

    Args:
        log: The log.
        start: Where to begin; bytes that are no longer kept are skipped.
        end: Where the log ends.
        max_bytes: How many bytes to read.
    """
    start = min(max(start, log.kept_from), end)
    size = max_bytes
    while True:
        stop = min(end, _outside_typed_line(log, start, start + size))
        max_characters = max(2 * size, _MIN_CHARACTERS)
        piece = await read_forward(log, start, stop, max_characters)
        if piece.end > start or stop == end:
            return piece._replace(remaining_bytes=end - stop + piece.remaining_bytes)
        size *= 2


def _outside_typed_line(log: Log, start: int, stop: int) -> int:
    """Return the cursor where to stop so that a line typed for a command stays with its mark.

    That is before the line, or after the mark if the line is the first one.
    """
    begin = max(start, stop - MAX_TO_MARK - MAX_MARK_BYTES)
    around = log.read(begin, stop - begin + MAX_TO_MARK + MAX_MARK_BYTES)
    for mark in BEGIN.finditer(around.decode("latin-1")):  # a character for each byte
        typed_end = around.rfind(b"\n", 0, mark.start()) + 1
        line_start = begin + around.rfind(b"\n", 0, max(0, typed_end - 1)) + 1
        if line_start < stop < begin + mark.end() and is_typed(around[:typed_end]):
            return line_start if line_start > start else begin + mark.end()
    return stop


async def clean_text(log: Log, data: bytes, start: int, *, is_line: bool) -> str:
    """Return the clean text of bytes that were read from a log.

    Args:
        log: The log.
        data: The bytes.
        start: Their cursor.
        is_line: They begin with a line.
    """
    # Nearly all output selects a character set anew in each line, if it selects any.
    if is_line and _SHIFT_OUT not in data:
        transcript = line_transcript(log, start)
    else:
        transcript = reading_transcript(log, start, is_line=is_line)
    paced = PacedTranscript(transcript)
    await paced.feed(data)
    return paced.text()


async def read_screen(log: Log, end: int) -> str:
    """Return what the screen showed at a cursor: its rows, without blanks at their ends."""
    start = max(log.kept_from, end - _REDRAW_BYTES)
    paced = PacedTranscript(blank_transcript(log, start))
    await paced.feed(log.read(start, end - start))
    return paced.screen()
