"""Searches a log for lines that match a pattern, the newest first, with the lines around them.

What is searched is what a terminal shows of each line by itself. Most lines are text, colours and
titles: these are removed from many lines at once. What does more, such as a carriage return or a
move, takes a terminal, which is much slower. Lines that can't leave their rows share one, and what
is erased again, as progress bars are, is not written to it.
"""

import functools
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import anyio.lowlevel

from tmux_debug_mcp.vt.marks import FILES, readable, without_paths
from tmux_debug_mcp.vt.sequences import CANCEL, INVISIBLE, STRING
from tmux_debug_mcp.vt.transcript import Transcript

from .excerpts import Excerpt, cut_in_the_middle, joined
from .log import Log
from .pacing import Pace, PacedTranscript
from .positioning import sequence_at
from .reading import clean_text

MAX_FOUND_CHARACTERS = 40_000
# Lines that are shown before and after a line that matches.
_CONTEXT_LINES = 2
# Pieces grow while nothing is found, and shrink where many lines match, since each takes time.
_MIN_PIECE_BYTES = 1 << 13
_MAX_PIECE_BYTES = 1 << 16
# A piece larger than the smallest with more matches than this is read again in smaller pieces.
_MAX_MATCHES = 2000
# How far to look for the beginning of a line, and for the lines around it.
_MAX_LINE_BYTES = 1 << 14
# How much of a longer line is shown before the match; three times as much is shown after it.
_AROUND_BYTES = 1000

_STRING = re.compile(STRING.pattern.encode(), re.VERBOSE)
_INVISIBLE = re.compile(INVISIBLE.pattern.encode(), re.VERBOSE)
_CONTROLS = bytes([*range(0x09), *range(0x0B, 0x20), 0x7F])  # all but tab and line feed
_LONE_RETURN = re.compile(rb"\r(?!\n)")
# No expression here has possessive quantifiers or atomic groups, which Python 3.11.2 gets wrong.
# Each reads a text in one way only, so that none takes more than linear time.
_PLAIN_LINE = rb"[^\0-\010\n-\037\177]* \n"
# Plain lines, which are group 1, or lines that are not plain.
_PARTS = re.compile(
    rb"( (?: %b )+ ) | (?: (?! %b ) [^\n]* \n )+" % (_PLAIN_LINE, _PLAIN_LINE), re.VERBOSE
)
# A long line that only returns the carriage between texts with as many columns as bytes.
_OVERWRITTEN = re.compile(rb"^(?=[^\n]{200})[ -~]*\r[ -~\r]*$", re.MULTILINE)
# What does the same to a line as something simpler.
_SIMPLER = (
    (b"\033[?2004h", b""),
    (b"\033[?2004l", b""),
    (b"\033[0K", b"\033[K"),
    (b"\033[G", b"\r"),
    (b"\033[1G", b"\r"),
    (b"\r\033[2K", b"\r\033[K"),
    (b"\033[2K\r", b"\r\033[K"),
)


class _Match(NamedTuple):
    """A line that matches.

    Attributes:
        line: The cursor where it begins.
        offset: Where in the line the pattern matches, about, in bytes.
    """

    line: int
    offset: int


class _Groups(NamedTuple):
    """Lines to show.

    Attributes:
        parts: The start and end cursors of groups of lines, the newest first.
        matches: How many matches are in them.
    """

    parts: list[tuple[int, int]]
    matches: int


async def search(
    log: Log,
    start: int,
    end: int,
    pattern: Any,  # noqa: ANN401  re2 has no types
    max_lines: int,
) -> tuple[Excerpt, int]:
    """Return the newest lines that match, oldest first, with two lines before and after each.

    A note with the cursor is before each group of lines.

    Args:
        log: The log.
        start: Where to begin; bytes that are no longer kept are skipped.
        end: Where to end.
        pattern: A pattern that `matching.compiled` has returned for bytes.
        max_lines: How many matching lines to find at most.

    Returns:
        At most 40,000 characters, and how many lines were found.
    """
    matches = await _find(log, max(start, log.kept_from), end, pattern, max_lines)
    # The log may be trimmed at each `await`, so what is shown is read at once.
    start = max(start, log.kept_from)
    matches = [match for match in matches if match.line >= start]
    groups = _groups(log, matches, start, end)
    found = [(first, log.read(first, last - first)) for first, last in reversed(groups.parts)]
    parts: list[Excerpt] = []
    older = len(matches) - groups.matches
    if older:
        parts.append(Excerpt([f"[{older} older lines that match left out]"], [0]))
    for first, data in found:
        text = await clean_text(log, data, first, is_line=True)
        lines = text.removesuffix("\n").split("\n")
        parts.append(Excerpt([f"[cursor {first}]", *lines], [0]))
        await anyio.lowlevel.checkpoint()
    return cut_in_the_middle(joined(*parts), MAX_FOUND_CHARACTERS), len(matches)


def _groups(log: Log, matches: list[_Match], start: int, end: int) -> _Groups:
    """Return matches with the lines around them, as many as a result has room for.

    Args:
        log: The log.
        matches: The matches, the newest first. Those whose lines overlap make one group.
        start: Where the search began.
        end: Where it ended.
    """
    parts: list[tuple[int, int]] = []
    size = count = 0
    for match in matches:
        first, last = _around(log, match, start, end)
        if parts and last >= parts[-1][0]:
            newer_first, newer_last = parts[-1]
            size += max(0, newer_first - first)
            parts[-1] = (min(first, newer_first), newer_last)
        else:
            size += last - first
            parts.append((first, last))
        count += 1
        if size > MAX_FOUND_CHARACTERS:
            break
    return _Groups(parts, count)


def _around(log: Log, match: _Match, start: int, end: int) -> tuple[int, int]:
    """Return the cursors of the first and behind the last line around a match.

    Of a line that is too long, it is the part around the match.
    """
    first = _context_start(log, max(start, match.line - _MAX_LINE_BYTES), match.line)
    last = _context_end(log, match.line, end)
    at = match.line + match.offset
    is_long = last - match.line >= _MAX_LINE_BYTES
    if is_long and at + _AROUND_BYTES > last:
        return max(match.line, at - _AROUND_BYTES), min(end, at + 3 * _AROUND_BYTES)
    return first, last


def _context_start(log: Log, oldest: int, line: int) -> int:
    """Return the cursor of the lines before a line, or the line's if they are too long."""
    data = log.read(oldest, line - oldest)
    line_end = len(data)
    for _ in range(_CONTEXT_LINES + 1):
        line_end = data.rfind(b"\n", 0, max(line_end, 0))
        if line_end < 0:
            is_beginning = len(data) < _MAX_LINE_BYTES
            return oldest if is_beginning else line
    return oldest + line_end + 1


def _context_end(log: Log, line: int, end: int) -> int:
    """Return the cursor behind a line and the lines after it, as far as they are not too long."""
    data = log.read(line, min(_MAX_LINE_BYTES, end - line))
    position = 0
    for _ in range(_CONTEXT_LINES + 1):
        line_end = data.find(b"\n", position)
        if line_end < 0:
            return line + len(data)
        position = line_end + 1
    return line + position


async def _find(log: Log, start: int, end: int, pattern: Any, max_lines: int) -> list[_Match]:  # noqa: ANN401
    """Return the newest lines that match, the newest first.

    The log is read backward, in pieces that begin with a line, unless that is too long.
    """
    found: list[_Match] = []
    size = _MIN_PIECE_BYTES
    while end > start and len(found) < max_lines:
        begin = _line_start(log, max(start, end - size), start)
        max_matches = _MAX_MATCHES
        if size == _MIN_PIECE_BYTES:
            max_matches = end - begin  # no piece has more lines
        matches = await _matches_in(log, begin, end, pattern, max_matches)
        if matches is None:
            size = max(size // 8, _MIN_PIECE_BYTES)
            continue
        found += reversed(matches)
        size = min(2 * size, _MAX_PIECE_BYTES)
        if matches:
            size = _MIN_PIECE_BYTES
        end = begin
        await anyio.lowlevel.checkpoint()
    return found[:max_lines]


async def _matches_in(
    log: Log,
    begin: int,
    end: int,
    pattern: Any,  # noqa: ANN401
    max_matches: int,
) -> list[_Match] | None:
    """Return the lines of a piece that match, oldest first; None if there are too many.

    Args:
        log: The log.
        begin: Where the piece begins.
        end: Where it ends.
        pattern: The pattern.
        max_matches: The maximum number of lines.
    """
    data = log.read(begin, end - begin)
    text = _with_line_feeds(data)
    if not _has_controls(text) and FILES.encode() not in text and not pattern.search(text):
        return []  # neither as text nor as a part of a string
    sequence = sequence_at(log, begin)
    data = _STRING.sub(_in_one_line, sequence + data)
    numbered = await _matching_lines(log, data, pattern, max_matches + 1)
    if len(numbered) > max_matches:
        return None
    starts = _line_starts(data, [number for number, _ in numbered])
    return [
        _Match(begin + max(0, starts[number] - len(sequence)), offset)
        for number, offset in numbered
    ]


def _in_one_line(string: re.Match[bytes]) -> bytes:
    """Return a string without line feeds, since it ends no line, and as long as it was."""
    return string[0].replace(b"\n", b" ")


def _line_start(log: Log, cursor: int, oldest: int) -> int:
    """Return where the line begins that a cursor is in, or the cursor if the line is too long."""
    if cursor <= oldest:
        return oldest
    begin = max(oldest, cursor - _MAX_LINE_BYTES)
    line_end = log.read(begin, cursor - begin).rfind(b"\n")
    if line_end < 0:
        return cursor
    return begin + line_end + 1


async def _matching_lines(
    log: Log,
    data: bytes,
    pattern: Any,  # noqa: ANN401
    max_matches: int,
) -> list[tuple[int, int]]:
    """Return the first lines that match: their numbers, from 0, and about where in them."""
    if FILES.encode() in data:
        data = without_paths(readable(data)).encode()
    data = _with_line_feeds(data).removesuffix(b"\n")
    text = _INVISIBLE.sub(b"", _STRING.sub(CANCEL.encode(), data))
    plain = text.replace(b"\033[K", b"")  # without moves, nothing is there to erase
    if _has_controls(plain):
        return await _matching_edited_lines(log, data, text, pattern, max_matches)
    return _matching_plain_lines(plain, pattern, max_matches)


async def _matching_edited_lines(
    log: Log,
    data: bytes,
    text: bytes,
    pattern: Any,  # noqa: ANN401
    max_matches: int,
) -> list[tuple[int, int]]:
    """Return the first lines that match, like `_matching_lines`, where some lines have moves.

    Args:
        log: The log.
        data: The lines.
        text: The same lines without what is invisible while the usual character sets are in use.
        pattern: The pattern.
        max_matches: The maximum number of lines.
    """
    lines = data.split(b"\n")
    matches: list[tuple[int, int]] = []
    number = 0
    async for count, shown in _shown(log, lines, text):
        max_found = max_matches
        if count == 1:
            max_found = 1  # in any row of the line
        found = _matching_plain_lines(shown, pattern, max_found)
        matches += [(number + min(index, count - 1), offset) for index, offset in found]
        number += count
    # What is shown of a line with moves was printed last.
    return [
        (index, len(lines[index]) if b"\r" in lines[index] else offset)
        for index, offset in matches[:max_matches]
    ]


async def _shown(log: Log, lines: Sequence[bytes], text: bytes) -> AsyncIterator[tuple[int, bytes]]:
    """Yield how a terminal shows lines, each by itself.

    Args:
        log: The log.
        lines: The lines.
        text: The same lines as in `_matching_edited_lines`.

    Yields:
        A number of lines, and as many lines of text; but of one line it is all rows.
    """
    pace = Pace()
    in_rows = _lines_in_rows(log.columns)
    number = 0
    for part in _PARTS.finditer(text + b"\n"):
        if part[1]:
            count = part[0].count(b"\n")
            number += count
            yield count, part[0][:-1]
            continue
        edited = _without_erased(part[0], log.columns)
        position = 0
        while position < len(edited):
            shared = in_rows.match(edited, position)
            if shared:
                count, end = shared[0].count(b"\n"), shared.end()
                output = shared[0][:-1].replace(b"\n", b"\r\n")
            else:
                count, end = 1, edited.index(b"\n", position) + 1
                output = lines[number]
            paced = PacedTranscript(Transcript(log.columns, log.rows))
            await paced.feed(output, pace)
            yield count, paced.text().encode()
            number += count
            position = end


def _without_erased(text: bytes, columns: int) -> bytes:
    """Return lines without what they erase or overwrite again without having left the row."""
    for sequence, simpler in _SIMPLER:
        text = text.replace(sequence, simpler)
    text = _erased(columns).sub(b"", text)
    return _OVERWRITTEN.sub(functools.partial(_without_overwritten, columns), text)


def _without_overwritten(columns: int, line: re.Match[bytes]) -> bytes:
    """Return a line of ASCII without what a text that is as long overwrites at once."""
    *texts, last = line[0].split(b"\r")
    following = [*texts[1:], last]
    kept = [
        text
        for text, cover in zip(texts, following, strict=True)
        if len(text) > min(len(cover), columns)
    ]
    return b"\r".join([*kept, last])


def _has_controls(text: bytes) -> bool:
    return any(control in text for control in _CONTROLS)


@functools.cache
def _erased(columns: int) -> re.Pattern[bytes]:
    """Return an expression for what a line erases again without having left its row.

    Behind it a carriage return was printed, then what the row shows, and the rest was erased. No
    character has fewer bytes than columns.
    """
    printed = rb"[^\0-\037\177]"
    return re.compile(
        rb"(?m:^)"
        rb"(?: (?= [^\r\n]{0,%d} \r ) %b* (?: \033\[[12]?K %b* )* \r+ (?!\r) )+"
        rb"(?= %b{0,%d} \033\[K )" % (columns, printed, printed, printed, columns),
        re.VERBOSE,
    )


@functools.cache
def _lines_in_rows(columns: int) -> re.Pattern[bytes]:
    """Return an expression for lines that are plain, or surely don't leave their rows.

    Such a line returns the carriage, moves back, or edits the row, before the row is full.
    """
    printed = rb"[^\0-\037\177]*"
    edited = rb"(?= [^\r\n]{0,%d} [\r\n] ) %b (?: (?: \010 | \033\[[0-9]*[@DKPX] ) %b )*" % (
        columns,
        printed,
        printed,
    )
    return re.compile(
        rb"(?: %b | %b (?: \r+ (?!\r) %b )* \n )+" % (_PLAIN_LINE, edited, edited), re.VERBOSE
    )


def _matching_plain_lines(text: bytes, pattern: Any, max_matches: int) -> list[tuple[int, int]]:  # noqa: ANN401
    """Return the first lines of a text that match: their numbers, from 0, and where in them."""
    matches: list[tuple[int, int]] = []
    number = line = position = 0
    while len(matches) < max_matches:
        match = pattern.search(text, position)
        if match is None:
            break
        at = match.start()
        number += text.count(b"\n", line, at)
        line = text.rfind(b"\n", 0, at) + 1
        matches.append((number, at - line))
        next_line = text.find(b"\n", at) + 1
        if not next_line:
            break
        position = next_line
    return matches


def _line_starts(data: bytes, numbers: list[int]) -> dict[int, int]:
    """Return where lines begin in data, by their numbers, which are in order."""
    starts: dict[int, int] = {}
    number = position = 0
    for wanted in numbers:
        while number < wanted:
            position = data.index(b"\n", position) + 1
            number += 1
        starts[wanted] = position
    return starts


def _with_line_feeds(data: bytes) -> bytes:
    """Return data with line feeds alone between lines."""
    if _LONE_RETURN.search(data):
        return data.replace(b"\r\n", b"\n")
    return data.replace(b"\r", b"")  # faster than to replace two bytes
