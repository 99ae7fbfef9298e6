"""Raw text of a log: the bytes that the terminal got, decoded as UTF-8, without our marks.

Escape sequences stay in it.
"""

import anyio.lowlevel

from tmux_debug_mcp.vt.marks import JOB_MARK, MAX_MARK_BYTES, PART_OF_MARK, readable
from tmux_debug_mcp.vt.sequences import ANSWERED, unfinished_character_bytes

from .log import Log
from .reading import Piece

_MAX_CHARACTER_BYTES = 4
# All bytes of a character in UTF-8, except its first one.
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
# How much to read for the last lines, at first.
_LINES_BYTES = 1 << 15
# Queries to the terminal are searched in pieces, which overlap by the length of a query.
_PIECE_BYTES = 1 << 16
_QUERY_BYTES = 256


def read_raw(log: Log, start: int, end: int, max_bytes: int, *, is_final: bool) -> Piece:
    """Return the raw text from a cursor on, without our marks: whole characters.

    Args:
        log: The log.
        start: Where to begin; bytes that are no longer kept are skipped.
        end: Where the log ends.
        max_bytes: The maximum length. A first character or mark that is longer is read anyway.
        is_final: The log does not grow any more, so an unfinished character at its end is read too.
    """
    start = min(_text_start(log, start), end)
    data = log.read(start, min(max_bytes, end - start))
    is_all = start + len(data) == end
    if not (is_all and is_final):
        data = data[: len(data) - _unfinished_bytes(data)]
        if not data:
            data = _first_part(log.read(start, min(MAX_MARK_BYTES, end - start)))
    remaining_bytes = 0
    if not is_all:
        remaining_bytes = end - start - len(data)
    text = JOB_MARK.sub(b"", data).decode(errors="replace")
    return Piece(text, start, start + len(data), remaining_bytes)


def _text_start(log: Log, cursor: int) -> int:
    """Return the cursor, or the next one that is kept and within no character and no mark."""
    if cursor < log.kept_from:
        kept = log.read(log.kept_from, _MAX_CHARACTER_BYTES)
        cursor = log.kept_from + _continuation_bytes(kept)
    begin = max(log.kept_from, cursor - MAX_MARK_BYTES)
    for mark in JOB_MARK.finditer(log.read(begin, 2 * MAX_MARK_BYTES)):
        if begin + mark.start() < cursor < begin + mark.end():
            return begin + mark.end()
    return cursor


def _continuation_bytes(data: bytes) -> int:
    """Return how many bytes at the start belong to a character that began before them."""
    return len(data) - len(data.lstrip(_CONTINUATION_BYTES))


def _unfinished_bytes(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of a character or of a mark."""
    part = PART_OF_MARK.search(data, max(0, len(data) - MAX_MARK_BYTES))
    if part:
        return len(data) - part.start()
    return unfinished_character_bytes(data)


def _first_part(data: bytes) -> bytes:
    """Return the mark or the character at the start of data, or b"" if it is unfinished."""
    mark = JOB_MARK.match(data)
    if mark:
        return mark[0]
    if PART_OF_MARK.fullmatch(data):
        return b""
    if data[:1] < b"\x80":
        return data[:1]
    first = data[:_MAX_CHARACTER_BYTES]
    return first[: len(first) - unfinished_character_bytes(first)]


def read_last_raw_lines(log: Log, end: int, lines: int, max_bytes: int) -> tuple[list[str], bool]:
    """Return the last raw lines before a cursor, oldest first, and whether there were more.

    Lines that are no longer kept count as more.

    Args:
        log: The log.
        end: The cursor.
        lines: The maximum number of lines.
        max_bytes: The maximum length of all of them.
    """
    size = _LINES_BYTES
    while True:
        piece = read_raw_end(log, 0, end, min(size, max_bytes))
        read_lines = piece.lines
        has_more = len(read_lines) > lines
        if piece.start == log.kept_from or has_more or size >= max_bytes:
            return read_lines[-lines:], has_more or piece.start > 0
        size *= 4


def read_raw_end(log: Log, start: int, end: int, max_bytes: int) -> Piece:
    """Return the end of a part of a log as raw text, with line feeds alone between lines.

    It begins with a whole line if that costs at most a tenth of the length.

    Args:
        log: The log.
        start: Where the part begins; bytes that are no longer kept are skipped.
        end: Where the part ends.
        max_bytes: The maximum length.
    """
    start = max(start, log.kept_from)
    begin = max(start, end - max_bytes)
    data = log.read(begin, end - begin)
    if begin > start:
        partial_bytes = data.find(b"\n", 0, max(max_bytes // 10, 1)) + 1
        if not partial_bytes:
            partial_bytes = _continuation_bytes(data)
        begin += partial_bytes
        data = data[partial_bytes:]
    return Piece(readable(data).replace("\r\n", "\n"), begin, end)


async def may_be_answered(log: Log, start: int, end: int) -> bool:
    """Tell whether a part of a log has a query that a terminal answers, as if it were typed."""
    position = max(start, log.kept_from)
    while position < end:
        data = log.read(position, min(_PIECE_BYTES, end - position))
        if ANSWERED.search(data):
            return True
        if position + len(data) >= end:
            break
        position += max(len(data) - _QUERY_BYTES, 1)
        await anyio.lowlevel.checkpoint()
    return False
