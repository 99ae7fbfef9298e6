"""The text of a log: clean, which is what the terminal shows, or raw, which is what was printed.

Raw text keeps its escape sequences, but not our marks. Text is read forward from a cursor
(`read_forward`, `read_chunk`) or backward (`read_end`, `read_last_lines`). Cursors are in bytes. At
each `await`, the log may be trimmed.
"""

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from tmux_debug_mcp.turns import next_turn, pieces
from tmux_debug_mcp.vt.marks import (
    BEGIN,
    FILES,
    JOB_MARK,
    MAX_MARK_BYTES,
    MAX_TO_MARK,
    PART_OF_MARK,
    is_typed,
    readable,
    without_paths,
)
from tmux_debug_mcp.vt.rows import EMPTY_LINE, NOTE, SCREEN_NOTE, Line, text_of
from tmux_debug_mcp.vt.sequences import ANSWERED, only_appends, unfinished_character_bytes

from . import excerpts
from .log import Log
from .pane_text import PIECE_BYTES
from .positioning import blank_transcript, reading_transcript

# A program may print little text in many bytes, as progress bars do. One call reads this much.
MAX_READ_BYTES = 1 << 20

# How far back a screen is read: programs redraw all of it within this much output.
_REDRAW_BYTES = 1 << 18
# The least limit for the length of a chunk's text: a few bytes can bring back a full screen.
_MIN_CHARACTERS = 1 << 18
# The length of a line that is assumed at first; if the lines are longer, more is read.
_LINE_CHARACTERS = 200
# We search for queries to the terminal in pieces that overlap by the length of a query.
_QUERY_BYTES = 256
# All bytes of a character in UTF-8, except its first.
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


async def clean_text(log: Log, start: int, data: bytes) -> str:
    """Return the clean text of bytes that were read at a cursor."""
    return (await _read(log, start, data)).text


class LogLine(NamedTuple):
    """A line of a log as clean text, and the cursors where it begins and ends."""

    text: str
    start: int
    end: int


async def lines_at(log: Log, start: int, data: bytes) -> list[LogLine]:
    """Return the printed lines of bytes that were read at a cursor; an empty last line is none.

    A line that can't be read apart from those before it begins where the first of them does.
    """
    texts, begins = [""], [start]
    goes_on = True
    for line in (await _read(log, start, data)).lines:
        if line == SCREEN_NOTE:
            continue
        if not goes_on:
            texts.append("")
            begins.append(line.begins_at or begins[-1])
        texts[-1] += line.text
        goes_on = line.goes_on
    if not texts[-1]:
        texts.pop()
    ends = [*begins, start + len(data)]
    return [
        LogLine(text, begin, ends[bisect_right(begins, begin)])
        for text, begin in zip(texts, begins, strict=False)
    ]


async def last_lines_at(log: Log, end: int, max_characters: int, max_lines: int) -> list[LogLine]:
    """Return the last clean lines before a cursor, as many as fit, with their cursors."""
    piece = await read_end(log, 0, end, max_characters, max_lines)
    return await lines_at(log, piece.start, log.read(piece.start, end - piece.start))


async def end_of_line(log: Log, start: int, end: int, text: str) -> int:
    """Return the cursor after the first line that reads so, or else after a line that ends so.

    That is `end` if there is neither. The first line begins at `start`.
    """
    lines = (await _read(log, start, log.read(start, end - start))).lines
    ends_so = end
    for line, following in itertools.zip_longest(
        lines, lines[1:], fillvalue=Line("", begins_at=end)
    ):
        if line.text == text:
            return following.begins_at or end
        if line.text.endswith(text):
            ends_so = following.begins_at or end
    return ends_so


async def read_screen(log: Log, end: int) -> str:
    """Return what the screen showed at a cursor: its rows, without blanks at their ends.

    Empty if the log before the cursor was trimmed.
    """
    start = max(log.kept_from, end - _REDRAW_BYTES)
    transcript = blank_transcript(log, start)
    for piece in pieces(log.read(start, max(0, end - start))):
        await next_turn()
        transcript.feed(piece)
    return "\n".join(transcript.rows())


class _Lines(NamedTuple):
    """Lines of data at a cursor, without those that may still change unless all data was read.

    The first `settled_count` of them are settled. `end` is the cursor up to which the log was read,
    and `seen_to` the cursor before what is unfinished.
    """

    lines: Sequence[Line]
    settled_count: int
    end: int
    seen_to: int

    @property
    def text(self) -> str:
        """The lines, joined by line feeds."""
        return text_of(self.lines)[:-1]


async def _read(
    log: Log,
    start: int,
    data: bytes,
    max_characters: float = math.inf,
    max_lines: float = math.inf,
) -> _Lines:
    """Return the lines of bytes that were read at a cursor, or some more of them than wanted."""
    transcript = await reading_transcript(log, start, data[:PIECE_BYTES])
    lines: list[Line] = []
    size = 0
    position = start
    for piece in pieces(data):
        if size > max_characters or len(lines) > max_lines:
            break
        await next_turn()
        position += len(piece)
        transcript.feed(piece, position)
        settled = transcript.take_settled(is_annotated=True)
        lines += settled
        size += sum(len(line.text) + 1 for line in settled)
    count = len(lines)
    if position == start + len(data):
        lines += transcript.open_lines(is_annotated=True) or [EMPTY_LINE]
    if FILES.encode() in data:
        lines = [line._replace(text=without_paths(line.text)) for line in lines]
    return _Lines(lines, count, position, position - transcript.held_bytes)


async def read_forward(
    log: Log, start: int, end: int, max_characters: int, max_lines: int | None = None
) -> Piece:
    """Return the clean text from a cursor on, the oldest first.

    Successive pieces, put together, are the whole text. A piece ends at `end`, or before what
    is unfinished there. It ends earlier where the text would get longer than `max_characters`
    (after a whole line if one fits), after `max_lines`, or after `MAX_READ_BYTES`. Where output
    changes earlier lines, they are as they are left at the `end`, if a piece of them fits; there
    may then be more lines, which can't be read apart. Bytes that are no longer kept are skipped.
    """
    start = max(start, log.kept_from)
    most = math.inf if max_lines is None else max_lines
    # All of it at once: the log may be trimmed at each `await`.
    data = log.read(start, min(MAX_READ_BYTES, end - start))
    limit = len(data)
    while True:
        read = await _read(log, start, data, max_characters, most)
        shown = read.text
        count = shown.count("\n") + bool(read.lines and read.lines[-1].text)
        is_all, fits = read.end == start + len(data), len(shown) <= max_characters
        if read.end < end or not fits or count > most:
            lines = read.lines if read.end == end else read.lines[: read.settled_count]
            ending, cursor = _division(lines, max_characters, most)
            if ending:
                return Piece(text_of(lines[:ending]), start, cursor, end - cursor)
        if is_all and fits:
            return Piece(shown, start, read.seen_to, end - read.end)
        # It can't be divided where a line begins, so it is read up to fewer bytes: about as many as
        # fit, and soon far fewer, since much output may show little.
        size = read.end - start
        limit = min(size * max_characters // max(len(shown), 1), size - 1, limit)
        outside = _outside_typed_line(log, start, start + limit) - start
        data = data[: outside if outside < size else limit]
        limit //= 2


def _division(lines: Sequence[Line], max_characters: int, max_lines: float) -> tuple[int, int]:
    """Return how many lines make a piece, and the cursor where the next piece begins; 0 if none do.

    A line that knows where it begins can be read from there: no later output has changed what
    precedes it.
    """
    ending, cursor = 0, 0
    size = count = 0
    for number, line in enumerate(lines):
        if number and line.begins_at is not None:
            ending, cursor = number, line.begins_at
        size += len(line.text) + (not line.goes_on)
        count += not line.goes_on
        if size > max_characters or count > max_lines:
            break
    return ending, cursor


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
    """Return the first cursor from this on that is kept and not within a mark.

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

    That is before the line, or after the mark if the line is the first.
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
    max_lines: int | None = None,
    *,
    is_raw: bool = False,
) -> Piece:
    """Return the end of the text of a part of a log; all of it if it fits.

    It begins with a whole line if that costs at most half of the length. At most `MAX_READ_BYTES`
    are read. Bytes that are no longer kept are skipped. In raw text, only line feeds separate
    lines.
    """
    most = math.inf if max_lines is None else max_lines
    size = int(min(max_characters, most * _LINE_CHARACTERS))
    size += size // 4
    while True:
        oldest = max(start, log.kept_from)
        begin = max(oldest, end - size)
        data = log.read(begin, end - begin)
        lines = _raw_lines(log, begin, end) if is_raw else (await _read(log, begin, data)).lines
        text = text_of(lines)[:-1]
        # Output that moves may change a few of many lines, so it takes more to show the last lines.
        is_much = is_raw or len(text) > most * _LINE_CHARACTERS or only_appends(data)
        if begin == oldest or len(text) > max_characters or (_count(text) > most and is_much):
            break
        if size >= MAX_READ_BYTES:  # much was read that shows little, and it begins within a line
            rest = text_of(lines[1:])[:-1]
            if rest:
                text, begin = rest, lines[1].begins_at or begin
            break
        size = min(size * 4, MAX_READ_BYTES)
    kept = excerpts.end_of(text, max_characters)
    while _count(kept) > most:
        *_, kept = kept.split("\n", int(_count(kept) - most))
    if len(kept) < len(text):
        begin = max(begin + 1, _start_of_end(lines, kept, end))
    return (RawPiece if is_raw else Piece)(kept, begin, end)


def _start_of_end(lines: Sequence[Line], kept: str, end: int) -> int:
    """Return where the end of lines that were read up to a cursor begins, as far as we can tell."""
    before = [EMPTY_LINE, *lines]
    whole = [line for line, last in zip(lines, before, strict=False) if not last.goes_on]
    line = whole[-1 - kept.count("\n")]
    first, _, _ = kept.partition("\n")
    cut = len(line.text) - len(first)
    if line.begins_at is None:
        return end - len(kept.replace("\n", "\r\n").encode())
    return line.begins_at + len(line.text[:cut].encode())


def _count(text: str) -> int:
    """Return how many lines of the program a text has; a line feed at the end begins no other."""
    return text.count("\n") + (text[-1:] not in ("", "\n")) - text.count(NOTE)


def _raw_lines(log: Log, start: int, end: int) -> list[Line]:
    """Return the lines of raw text, which only line feeds separate."""
    data = log.read(start, end - start)
    sizes = [len(line) + 1 for line in data.split(b"\n")]
    starts = itertools.accumulate(sizes, initial=start)
    text = readable(data).replace("\r\n", "\n")
    return [
        Line(line, begins_at=begin) for line, begin in zip(text.split("\n"), starts, strict=False)
    ]


async def read_last_lines(
    log: Log, end: int, lines: int, max_characters: int, *, is_raw: bool = False
) -> tuple[list[str], bool]:
    """Return the last lines that were printed before a cursor, and whether there were more.

    The oldest comes first. Lines that are no longer kept count as more. The lines have at most
    `max_characters`.
    """
    piece = await read_end(log, 0, end, max_characters, lines, is_raw=is_raw)
    return piece.lines, piece.start > 0


async def may_be_answered(log: Log, start: int, end: int) -> bool:
    """Tell whether a part of a log contains a query that a terminal answers, as if typed."""
    position = max(start, log.kept_from)
    while position < end:
        data = log.read(position, min(PIECE_BYTES, end - position))
        if ANSWERED.search(data):
            return True
        if position + len(data) >= end:
            break
        position += max(len(data) - _QUERY_BYTES, 1)
        await next_turn()
    return False
