"""The text of a log: clean, which is what the terminal shows, or raw, which is what was printed.

Raw text keeps its escape sequences, but not our marks. Text is read forward from a cursor
(`read_forward`, `read_chunk`) or backward (`read_end`, `read_last_lines`). Cursors are in bytes. At
each `await`, the log may be trimmed.
"""

import re
from typing import NamedTuple

from tmux_debug_mcp.turns import next_turn
from tmux_debug_mcp.vt.charsets import SHIFT_OUT, CharacterSets
from tmux_debug_mcp.vt.marks import (
    BEGIN,
    JOB_MARK,
    MAX_MARK_BYTES,
    MAX_TO_MARK,
    PART_OF_MARK,
    is_typed,
    readable,
)
from tmux_debug_mcp.vt.rows import NOTE
from tmux_debug_mcp.vt.sequences import ANSWERED, only_appends, unfinished_character_bytes

from . import excerpts
from .log import Log
from .pacing import PacedTranscript
from .positioning import blank_transcript, moving_transcript, reading_transcript

# A program may print little text in many bytes, as progress bars do. One call reads this much.
MAX_READ_BYTES = 1 << 20

# How much to feed before the length of the text is checked.
_PIECE_BYTES = 1 << 16
# How far back a screen is read: programs redraw all of it within this much output.
_REDRAW_BYTES = 1 << 18
# The least limit for the length of a chunk's text: a few bytes can bring back a full screen.
_MIN_CHARACTERS = 1 << 18
# The length of a line that is assumed at first; if the lines are longer, more is read.
_LINE_CHARACTERS = 200
# Pieces that don't end with a line overlap by the length of most sequences.
_SEQUENCE_BYTES = 64
# We search for queries to the terminal in pieces that overlap by the length of a query.
_QUERY_BYTES = 256
_SHIFT_OUT = SHIFT_OUT.encode()
# All bytes of a character in UTF-8, except its first one.
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_MAX_CHARACTER_BYTES = 4
_OWN_LINE = re.compile(rf"^{NOTE}.*\n?", re.MULTILINE)


class Piece(NamedTuple):
    """A part of a log as text, its lines joined by line feeds, from one cursor to another.

    Lines of ours in it begin with `NOTE`. `remaining_bytes` is how much of what was asked for comes
    after it, except what is unfinished at its end.
    """

    marked_text: str
    start: int
    end: int
    remaining_bytes: int = 0

    @property
    def text(self) -> str:
        """The text, with lines of ours as a reader sees them."""
        return self.marked_text.replace(NOTE, "")

    @property
    def printed(self) -> str:
        """The text without lines of ours."""
        return _OWN_LINE.sub("", self.marked_text)

    @property
    def lines(self) -> list[str]:
        """The printed lines; a line feed at the end does not begin another. Empty text has none."""
        if not self.printed:
            return []
        return self.printed.removesuffix("\n").split("\n")


class RawPiece(Piece):
    """A part of a log as raw text, in which no lines are ours."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The text."""
        return self.marked_text

    printed = text


async def _show(log: Log, data: bytes | bytearray, start: int, *, is_line: bool = False) -> Piece:
    """Return what the terminal shows of bytes that were read at a cursor."""
    if is_line or only_appends(data):
        sets = None
        # Nearly all output selects a character set anew in each line, if it selects any.
        if is_line and _SHIFT_OUT not in data:
            sets = CharacterSets()
        transcript = await reading_transcript(log, start, is_line=is_line, sets=sets)
    else:
        transcript = await moving_transcript(log, start)
    paced = PacedTranscript(transcript)
    await paced.feed(data)
    return Piece(paced.text(), start, start + len(data) - paced.held_bytes)


async def clean_text(log: Log, data: bytes, start: int, *, is_line: bool) -> str:
    """Return the clean text of bytes that were read at a cursor; `is_line`: they begin a line."""
    return (await _show(log, data, start, is_line=is_line)).text


async def end_of_line(log: Log, start: int, end: int, text: str) -> int:
    """Return the cursor after the first line that reads so, or else after one that ends so.

    That is `end` if there is neither. The first line begins at `start`.
    """
    position, ends_so = start, end
    for line in log.read(start, end - start).split(b"\n"):
        shown = await clean_text(log, line, position, is_line=True)
        position = min(position + len(line) + 1, end)
        if shown == text:
            return position
        if shown.endswith(text):
            ends_so = position
    return ends_so


async def read_screen(log: Log, end: int) -> str:
    """Return what the screen showed at a cursor: its rows, without blanks at their ends.

    Empty if the log before the cursor was trimmed.
    """
    start = max(log.kept_from, end - _REDRAW_BYTES)
    paced = PacedTranscript(blank_transcript(log, start))
    await paced.feed(log.read(start, max(0, end - start)))
    return paced.screen()


async def read_forward(
    log: Log, start: int, end: int, max_characters: int, max_lines: int | None = None
) -> Piece:
    """Return the clean text from a cursor on, the oldest first.

    Successive pieces, put together, are the whole text. A piece ends at `end`, or before what
    is unfinished there. It ends earlier where the text would get longer than `max_characters`
    (after a whole line if one fits), after `max_lines`, or after `MAX_READ_BYTES`. Where output
    changes earlier lines, they are as they are left at the `end`, if a piece of them fits. Bytes
    that are no longer kept are skipped.
    """
    start = max(start, log.kept_from)
    # All of it at once: the log may be trimmed at each `await`.
    data = bytearray(log.read(start, min(MAX_READ_BYTES, end - start)))
    if not await _only_appends(log, start, start + len(data)):
        piece = await _read_as_left(log, bytes(data), start, end, max_characters, max_lines)
        if piece:
            return piece
    paced = PacedTranscript(await reading_transcript(log, start))
    size = 0
    text = ""
    # Read until the text has nearly its maximum length, or a little more.
    while size < len(data):
        room = max_characters - len(text)
        if room <= max_characters // 100:
            break
        fed = size + min(_PIECE_BYTES, room)
        if max_lines is not None:
            missing = max_lines - text.count("\n")
            if missing <= 0:
                break
            fed = _lines_end(data, size, fed, missing)
        await paced.feed(data[size:fed])
        size = min(fed, len(data))
        text = paced.text()
    del data[size:]
    shown = Piece(text, start, start + size - paced.held_bytes)
    # Cut it where it ends well. A few bytes that move the cursor can make a long text.
    while True:
        limit = len(data)
        if len(shown.text) > max_characters:
            limit = min(len(data) * max_characters // len(shown.text), len(data) - 1)
        elif start + len(data) >= end:
            break
        size = _last_line_end(data, limit) or limit
        if size == len(data):
            break
        del data[size:]
        shown = await _show(log, data, start)
    return shown._replace(remaining_bytes=max(0, end - start - len(data)))


async def _read_as_left(
    log: Log, data: bytes, start: int, end: int, max_characters: int, max_lines: int | None
) -> Piece | None:
    """Return the first lines of data that what follows them leaves alone, as `read_forward`.

    None if so few lines, or characters, don't end with one.
    """
    paced = PacedTranscript(await moving_transcript(log, start))
    size = await paced.feed_lines(data, start, max_characters)
    text = paced.text()
    lines, starts = text.split("\n"), paced.line_starts()
    most = len(lines) if max_lines is None else max_lines
    if start + size == end:
        count = len(lines) - (not lines[-1])
        if len(text) <= max_characters and count <= most:
            return Piece(text, start, end - paced.held_bytes)
    else:
        most = min(most, paced.settled_lines)
    ending = 0
    length = 0
    for number, line in enumerate(lines[:most], start=1):
        length += len(line) + 1
        if length > max_characters:
            break
        if number in starts:
            ending = number
    if not ending:
        return None
    cursor = starts[ending]
    return Piece("\n".join([*lines[:ending], ""]), start, cursor, end - cursor)


async def _only_appends(log: Log, start: int, end: int) -> bool:
    """Tell whether a part of a log only appends to the terminal's last line."""
    position = start
    while position < end:
        data = log.read(position, min(_PIECE_BYTES, end - position))
        if position + len(data) < end:
            # No sequence contains a line feed.
            data = data[: data.rfind(b"\n") + 1 or max(1, len(data) - _SEQUENCE_BYTES)]
        if not data:
            break
        if not only_appends(data):
            return False
        position += len(data)
        await next_turn()
    return True


def _lines_end(data: bytearray, start: int, end: int, lines: int) -> int:
    """Return where so many lines end, or `end` if that comes first."""
    position = start
    for _ in range(lines):
        position = data.find(b"\n", position, end) + 1
        if not position:
            return end
    return position


def _last_line_end(data: bytearray, limit: int) -> int:
    """Return the end of the last whole line before a limit, or 0 without one."""
    line_end = data.rfind(b"\n", 0, limit) + 1
    # The line typed for a command belongs with the mark after it, which holds the command.
    if is_typed(data[:line_end]):
        line_end = data.rfind(b"\n", 0, line_end - 1) + 1
    return line_end


async def read_chunk(
    log: Log, start: int, end: int, max_bytes: int, *, is_raw: bool = False, is_final: bool = False
) -> Piece:
    """Return the text of a number of bytes. Successive chunks, put together, are the whole text.

    A chunk ends before what is unfinished, and clean text never between the line typed for a
    command and its mark. It takes more bytes than allowed if it would otherwise be empty, as in a
    long sequence; raw text then ends after its first character or mark. Bytes that are no longer
    kept are skipped. `is_final`: the log no longer grows, so raw text includes what is unfinished.
    """
    start = _raw_start(log, start) if is_raw else max(start, log.kept_from)
    start = min(start, end)
    size = max_bytes
    while True:
        stop = min(end, start + size)
        if is_raw:
            piece = _raw_piece(log, start, stop, is_final=is_final and stop == end)
        else:
            stop = min(end, _outside_typed_line(log, start, stop))
            piece = await read_forward(log, start, stop, max(2 * size, _MIN_CHARACTERS))
        if piece.end > start or stop == end:
            return piece._replace(remaining_bytes=end - stop + piece.remaining_bytes)
        size += 1 if is_raw else size


def _raw_start(log: Log, cursor: int) -> int:
    """Return the cursor, or the next one that is kept and not within a mark.

    If the bytes there are no longer kept, that is the first whole character that is.
    """
    if cursor < log.kept_from:
        kept = log.read(log.kept_from, _MAX_CHARACTER_BYTES)
        cursor = log.kept_from + len(kept) - len(kept.lstrip(_CONTINUATION_BYTES))
    begin = max(log.kept_from, cursor - MAX_MARK_BYTES)
    for mark in JOB_MARK.finditer(log.read(begin, 2 * MAX_MARK_BYTES)):
        if begin + mark.start() < cursor < begin + mark.end():
            return begin + mark.end()
    return cursor


def _raw_piece(log: Log, start: int, stop: int, *, is_final: bool) -> Piece:
    """Return raw text; unless it is final, without an unfinished character or mark."""
    data = log.read(start, stop - start)
    if not is_final:
        part_of_mark = PART_OF_MARK.search(data, max(0, len(data) - MAX_MARK_BYTES))
        size = len(data) - unfinished_character_bytes(data)
        data = data[: part_of_mark.start() if part_of_mark else size]
    text = JOB_MARK.sub(b"", data).decode(errors="replace")
    return RawPiece(text, start, start + len(data))


def _outside_typed_line(log: Log, start: int, stop: int) -> int:
    """Return where to stop so that a line typed for a command stays with its mark.

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


async def read_end(
    log: Log,
    start: int,
    end: int,
    max_characters: int,
    *,
    is_line: bool = False,
    is_raw: bool = False,
) -> Piece:
    """Return the end of the text of a part of a log; all of it if it fits.

    It begins with a whole line if that costs at most half of the length. At most `MAX_READ_BYTES`
    are read. Bytes that are no longer kept are skipped. `is_line`: the part begins with a line,
    even if no line feed is before it. In raw text, only line feeds separate lines.
    """

    async def text_of(data: bytes, begin: int, *, is_line: bool) -> str:
        if is_raw:
            return readable(data).replace("\r\n", "\n")
        is_line = is_line and only_appends(data)
        return (await _show(log, data, begin, is_line=is_line)).marked_text

    piece = RawPiece if is_raw else Piece
    size = max_characters + max_characters // 4
    while True:
        oldest = max(start, log.kept_from)
        begin = max(oldest, end - size)
        data = log.read(begin, end - begin)
        text = await text_of(data, begin, is_line=begin > oldest or is_line)
        if len(text) > max_characters:
            kept = excerpts.end_of(text, max_characters)
            return piece(kept, begin + _start_of_end(data, text, kept), end)
        if begin == oldest:
            return piece(text, begin, end)
        if size >= MAX_READ_BYTES:
            break
        size = min(size * 4, MAX_READ_BYTES)
    # Much was read that shows little. It begins within a line.
    first_line_end = data.find(b"\n", 0, -1) + 1
    if first_line_end:
        begin += first_line_end
        text = await text_of(data[first_line_end:], begin, is_line=True)
    return piece(text, begin, end)


def _start_of_end(data: bytes, text: str, kept: str) -> int:
    """Return where in the bytes of a text its end begins, as far as we can tell."""
    is_line = text[: len(text) - len(kept)].endswith("\n")
    # A line feed ends each line of the text, except where a program moved back to earlier lines.
    before, *lines = data.rsplit(b"\n", kept.count("\n") + is_line)
    if not is_line:
        partial_line, _, _ = kept.partition("\n")
        return max(0, len(before.rstrip(b"\r")) - len(partial_line.encode()))
    return len(before) + 1 if lines else 1


async def read_last_lines(
    log: Log, end: int, lines: int, max_characters: int, *, is_raw: bool = False
) -> tuple[list[str], bool]:
    """Return the last lines that were printed before a cursor, and whether there were more.

    The oldest comes first.
    Lines that are no longer kept count as more. The lines have at most `max_characters`.
    """
    size = min(max_characters, lines * _LINE_CHARACTERS)
    while True:
        piece = await read_end(log, 0, end, size, is_raw=is_raw)
        read_lines = piece.lines
        is_all_kept = piece.start <= log.kept_from
        has_more = len(read_lines) > lines
        if is_all_kept or has_more or size >= max_characters:
            return read_lines[-lines:], has_more or piece.start > 0
        size = min(max_characters, size * 4)


async def line_feeds(log: Log, start: int, end: int) -> int:
    """Return how many lines end in a part of a log, as far as it is kept."""
    lines = 0
    position = max(start, log.kept_from)
    while position < end:
        piece = log.read(position, min(MAX_READ_BYTES, end - position))
        if not piece:
            break
        lines += piece.count(b"\n")
        position += len(piece)
        await next_turn()
    return lines


async def may_be_answered(log: Log, start: int, end: int) -> bool:
    """Tell whether a part of a log contains a query that a terminal answers, as if typed."""
    position = max(start, log.kept_from)
    while position < end:
        data = log.read(position, min(_PIECE_BYTES, end - position))
        if ANSWERED.search(data):
            return True
        if position + len(data) >= end:
            break
        position += max(len(data) - _QUERY_BYTES, 1)
        await next_turn()
    return False
