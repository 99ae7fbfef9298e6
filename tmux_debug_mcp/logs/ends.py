"""Clean text of a log, backward from a cursor: the end of a part, or the last lines."""

from .excerpts import end_of
from .log import Log
from .reading import MAX_READ_BYTES, Piece, clean_text

# The length of a line that is assumed at first; if the lines are longer, more is read.
_LINE_CHARACTERS = 200


async def read_end(
    log: Log, start: int, end: int, max_characters: int, *, is_line: bool = False
) -> Piece:
    """Return the end of the clean text of a part of a log; all of it if it fits.

    It begins with a whole line if that costs at most a tenth of the length. Of more than
    `MAX_READ_BYTES`, only so many are read.

    Args:
        log: The log.
        start: Where the part begins; bytes that are no longer kept are skipped.
        end: Where the part ends.
        max_characters: The maximum length of the text.
        is_line: The part begins with a line, even if no line feed is before it.
    """
    size = max_characters + max_characters // 4
    while True:
        # The log may be trimmed at each `await`.
        oldest = max(start, log.kept_from)
        begin = max(oldest, end - size)
        data = log.read(begin, end - begin)
        text = await clean_text(log, data, begin, is_line=begin > oldest or is_line)
        if len(text) > max_characters:
            return _end_piece(data, begin, text, max_characters)
        if begin == oldest:
            return Piece(text, begin, end)
        if size >= MAX_READ_BYTES:
            break
        size = min(size * 4, MAX_READ_BYTES)
    # Much was read that shows little. What it begins with is a part of a line.
    first_line_end = data.find(b"\n", 0, -1) + 1
    if first_line_end:
        begin += first_line_end
        text = await clean_text(log, data[first_line_end:], begin, is_line=True)
    return Piece(text, begin, end)


def _end_piece(data: bytes, begin: int, text: str, max_characters: int) -> Piece:
    """Return the end of a text that is too long, with its cursors as far as they can be told.

    Args:
        data: The bytes of the text.
        begin: Their cursor.
        text: The text.
        max_characters: The maximum length of its end.
    """
    kept = end_of(text, max_characters)
    end = begin + len(data)
    has_whole_lines = text[: len(text) - len(kept)].endswith("\n")
    if not has_whole_lines:
        return Piece(kept, max(begin, end - len(kept.encode())), end)
    # A line feed ends each line of the text, except where a program moved back to earlier lines.
    before, *lines = data.rsplit(b"\n", kept.count("\n") + 1)
    if not lines:
        return Piece(kept, begin + 1, end)
    return Piece(kept, begin + len(before) + 1, end)


async def read_last_lines(
    log: Log, end: int, lines: int, max_characters: int
) -> tuple[list[str], bool]:
    """Return the last clean lines before a cursor, oldest first, and whether there were more.

    Lines that are no longer kept count as more.

    Args:
        log: The log.
        end: The cursor.
        lines: The maximum number of lines.
        max_characters: The maximum length of all of them.
    """
    size = min(max_characters, lines * _LINE_CHARACTERS)
    while True:
        piece = await read_end(log, 0, end, size)
        read_lines = piece.lines
        is_all_kept = piece.start <= log.kept_from
        has_more = len(read_lines) > lines
        if is_all_kept or has_more or size >= max_characters:
            return read_lines[-lines:], has_more or piece.start > 0
        size = min(max_characters, size * 4)
