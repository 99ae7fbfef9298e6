"""Logs as text: forward from a cursor, or the end of a part.

*Clean* text is what a terminal shows; *raw* text is what it got, as far as that is characters.
"""

from tmux_debug_mcp.vt.marks import JOB_MARK, MAX_MARK_BYTES, PART_OF_MARK, readable
from tmux_debug_mcp.vt.sequences import unfinished_character_bytes

from .log import Log
from .reading import _CHARACTER_BYTES, _LINES_BYTES, Piece

# Those of a character's that are not its first.
_INNER_BYTES = bytes(range(0x80, 0xC0))


def read_last_raw_lines(log: Log, end: int, lines: int, most_bytes: int) -> tuple[list[str], bool]:
    """Return the last raw lines before a cursor, without what ends them, and whether there were more."""
    size = _LINES_BYTES
    while True:
        piece = read_raw_end(log, 0, end, min(size, most_bytes))
        found = piece.text.removesuffix("\n").split("\n") if piece.text else []
        if piece.start == log.kept_from or len(found) > lines or size >= most_bytes:
            return found[-lines:], piece.start > 0 or len(found) > lines
        size *= 4


def read_raw_end(log: Log, start: int, end: int, most_bytes: int) -> Piece:
    """Return the end of a part of the log as raw text, whole lines if that costs little, with line feeds between."""
    start = max(start, log.kept_from)
    begin = max(start, end - most_bytes)
    data = log.read(begin, end - begin)
    if begin > start:
        line_end = data.find(b"\n", 0, max(most_bytes // 10, 1))
        cut = line_end + 1 or len(data) - len(data.lstrip(_INNER_BYTES))
        begin, data = begin + cut, data[cut:]
    return Piece(readable(data).replace("\r\n", "\n"), begin, end)


def read_raw(log: Log, start: int, end: int, max_bytes: int, *, is_final: bool) -> Piece:
    """Return the raw text from a cursor on as it is, but for marks of ours: whole characters.

    Args:
        log: The log.
        start: Where to begin; what is no longer kept is passed over.
        end: Where the log ends.
        max_bytes: The most to return; a first character is returned also where it has more.
        is_final: Nothing is to come behind `end`, so what is unfinished there stays so.
    """
    if start < log.kept_from:
        kept = log.read(log.kept_from, _CHARACTER_BYTES)
        start = log.kept_from + len(kept) - len(kept.lstrip(_INNER_BYTES))
    start = min(_behind_mark(log, start), end)
    data = log.read(start, min(max_bytes, end - start))
    is_all = start + len(data) == end
    if not (is_all and is_final):
        whole = data[: len(data) - _unfinished_bytes(data)]
        data = whole or _first_part(log.read(start, min(MAX_MARK_BYTES, end - start)))
    remaining_bytes = 0 if is_all else end - start - len(data)
    return Piece(JOB_MARK.sub(b"", data).decode(errors="replace"), start, start + len(data), remaining_bytes)


def _behind_mark(log: Log, start: int) -> int:
    """Return the end of the mark that a cursor is in, or else the cursor."""
    begin = max(log.kept_from, start - MAX_MARK_BYTES)
    for mark in JOB_MARK.finditer(log.read(begin, 2 * MAX_MARK_BYTES)):
        if begin + mark.start() < start < begin + mark.end():
            return begin + mark.end()
    return start


def _unfinished_bytes(data: bytes) -> int:
    """Return how much at the end is the beginning of a character or a mark whose end is missing."""
    part = PART_OF_MARK.search(data, max(0, len(data) - MAX_MARK_BYTES))
    return len(data) - part.start() if part else unfinished_character_bytes(data)


def _first_part(data: bytes) -> bytes:
    """Return the mark that data begins with, or else its first character, or nothing where that is unfinished."""
    if mark := JOB_MARK.match(data):
        return mark[0]
    if PART_OF_MARK.fullmatch(data):
        return b""
    first = data[:_CHARACTER_BYTES] if data[:1] >= b"\x80" else data[:1]
    return first[: len(first) - unfinished_character_bytes(first)]
