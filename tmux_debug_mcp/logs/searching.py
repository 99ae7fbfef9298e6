"""Searches a log for lines that match a pattern, the newest first, with the lines around them.

We search what a terminal shows of each line by itself. Most lines are text, colours and titles; the
latter two are removed from many lines at once. Anything else, such as a carriage return or a move,
takes a terminal, which is much slower. Lines that can't leave their rows share one, and what they
erase again, as progress bars do, is not written to it.
"""

import functools
import itertools
import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from tmux_debug_mcp.turns import Turns, next_turn, pieces, work_of
from tmux_debug_mcp.vt.marks import (
    FILES,
    MAX_MARK_BYTES,
    MAX_TO_MARK,
    NONCE,
    readable,
    without_paths,
)
from tmux_debug_mcp.vt.sequences import CANCEL, INVISIBLE, STRING
from tmux_debug_mcp.vt.transcript import Transcript

from .log import Log
from .positioning import sequence_at
from .reading import LogLine, lines_at

MAX_FOUND_CHARACTERS = 16_000
_PIECE_BYTES = 1 << 15
# How far to look for the beginning of a line, and for the lines around it.
_MAX_LINE_BYTES = 1 << 14
# How much of a longer line is shown before the match; three times as much is shown after it.
_AROUND_BYTES = 1000
# The work for a line that matches, in the units of a turn.
_MATCH_WORK = 1 << 5

_STRING = re.compile(STRING.pattern.encode(), re.VERBOSE)
_INVISIBLE = re.compile(INVISIBLE.pattern.encode(), re.VERBOSE)
_CONTROLS = bytes([*range(0x09), *range(0x0B, 0x20), 0x7F])  # all but tab and line feed
_C1_CONTROLS = re.compile(b"\302[\200-\237]")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
# No expression here has possessive quantifiers or atomic groups, which Python 3.11.2 gets wrong.
# Each reads a text in one way only, so that none takes more than linear time.
_PRINTED = rb"[^\0-\010\n-\037\177]*"
_IN_ROW = rb"[^\0-\037\177]*"  # no tab, which is wider than its byte
_PLAIN_LINES = re.compile(rb"(?: %b \n )+" % _PRINTED, re.VERBOSE)


class _Hit(NamedTuple):
    """A line that matches: where it begins and ends, and about where in it, in bytes."""

    line: int
    offset: int
    end: int


class SearchResult(NamedTuple):
    """What a search has found, oldest first.

    Attributes:
        groups: The lines that match, each with those around it; where these overlap or adjoin, they
            make one group.
        matches: Where the pattern matches: a cursor within each line, the oldest first. Those
            older than the groups are of lines for which there is no room.
    """

    groups: Sequence[Sequence[LogLine]]
    matches: Sequence[int]

    @property
    def lines(self) -> list[LogLine]:
        """The lines of all groups."""
        return [line for group in self.groups for line in group]

    @property
    def left_out(self) -> int:
        """How many lines match for which there is no room."""
        return bisect_left(self.matches, self.groups[0][0].start) if self.groups else 0

    def is_match(self, line: LogLine) -> bool:
        """Return whether the line matches, or else stands near a line that does."""
        return bisect_left(self.matches, line.start) < bisect_left(self.matches, line.end)


async def search(
    log: Log,
    start: int,
    end: int,
    pattern: Any,  # noqa: ANN401  re2 has no types
    max_lines: int,
    context: int = 0,
) -> SearchResult:
    """Return the newest lines that match, at most `max_lines`, with so many lines around each.

    They have about as much text as a result has room for. Bytes that are no longer kept are
    skipped. `matching.compiled` has made the pattern, for bytes.
    """
    matches = await _find(log, max(start, log.kept_from), end, pattern, max_lines)
    # The log may be trimmed at each `await`, so what is shown is read at once.
    start = max(start, log.kept_from)
    matches = [match for match in matches if match.line >= start]
    groups = _groups(log, matches, start, end, context)
    found = [(first, last, _with_mark(log, first, last)) for first, last in reversed(groups)]
    lines = [
        [line for line in await lines_at(log, first, data) if line.start < last]
        for first, last, data in found
    ]
    shown = [group for group in lines if group]  # a part of a long line may show nothing
    return SearchResult(shown, [match.line + match.offset for match in reversed(matches)])


async def lines_around(log: Log, cursor: int, end: int, context: int) -> list[LogLine]:
    """Return the line that a cursor is in, with so many lines before and after it."""
    line = _line_start(log, cursor, log.kept_from)
    first, last = _around(log, _Hit(line, 0, line), log.kept_from, end, context)
    around = await lines_at(log, first, _with_mark(log, first, last))
    return [near for near in around if near.start < last]


def _with_mark(log: Log, first: int, last: int) -> bytes:
    """Return the bytes between two cursors, with the mark of a line that was typed for a command.

    The mark comes after the line, and has the command that is shown instead.
    """
    data = log.read(first, last - first)
    return data + log.read(last, MAX_TO_MARK + MAX_MARK_BYTES) if FILES.encode() in data else data


def _groups(
    log: Log, matches: list[_Hit], start: int, end: int, context: int
) -> list[tuple[int, int]]:
    """Return the start and end of matches with the lines around them, the newest first.

    There are as many as a result has room for.
    """
    groups: list[tuple[int, int]] = []
    size = 0
    for match in matches:
        first, last = _around(log, match, start, end, context)
        if groups and last >= groups[-1][0]:
            newer_first, newer_last = groups.pop()
            size -= newer_last - newer_first
            first, last = min(first, newer_first), newer_last
        size += last - first
        groups.append((first, last))
        if size > MAX_FOUND_CHARACTERS:
            break
    return groups


def _around(log: Log, match: _Hit, start: int, end: int, context: int) -> tuple[int, int]:
    """Return the cursors where so many lines around a match begin and end.

    Of them, as many as are near it. For a line that is too long, they are those of the part around
    the match.
    """
    oldest = max(start, match.line - _MAX_LINE_BYTES)
    before = log.read(oldest, match.line - oldest)
    lines = before.rsplit(b"\n", context + 1)
    first = match.line - len(b"\n".join(lines[1:]))
    if len(lines) <= context + 1 and len(before) < _MAX_LINE_BYTES:
        first = oldest
    after = log.read(match.line, min(_MAX_LINE_BYTES, end - match.line))
    lines = after[match.end - match.line :].split(b"\n", context + 1)
    last = match.line + len(after)
    if len(lines) > context + 1 or (len(lines) > 1 and len(after) == _MAX_LINE_BYTES):
        last -= len(lines[-1])
    at = match.line + match.offset
    if last - match.line >= _MAX_LINE_BYTES and at + _AROUND_BYTES > last:
        return max(match.line, at - _AROUND_BYTES), min(end, at + 3 * _AROUND_BYTES)
    return first, last


async def _find(log: Log, start: int, end: int, pattern: Any, max_lines: int) -> list[_Hit]:  # noqa: ANN401
    """Return the newest lines that match, the newest first.

    The log is read backward, in pieces that begin with a line, unless that is too long.
    """
    found: list[_Hit] = []
    while end > start and len(found) < max_lines:
        await next_turn()
        begin = _line_start(log, max(start, end - _PIECE_BYTES), start)
        found += reversed(await _matches_in(log, begin, end, pattern))
        end = begin
    return found[:max_lines]


def _line_start(log: Log, cursor: int, oldest: int) -> int:
    """Return where the line that a cursor is in begins, or the cursor if the line is too long."""
    if cursor <= oldest:
        return oldest
    begin = max(oldest, cursor - _MAX_LINE_BYTES)
    line_end = log.read(begin, cursor - begin).rfind(b"\n")
    if line_end < 0:
        return cursor
    return begin + line_end + 1


async def _matches_in(log: Log, begin: int, end: int, pattern: Any) -> list[_Hit]:  # noqa: ANN401
    """Return the lines between two cursors that match, oldest first."""
    data = log.read(begin, end - begin)
    text = _with_line_feeds(data)
    is_plain = not _has_controls(text) and FILES.encode() not in text
    if is_plain and not pattern.search(_C1_CONTROLS.sub(b"", text)):
        return []  # neither as text nor as a part of a string
    sequence = sequence_at(log, begin)
    # A line feed in a string ends no line.
    data = _STRING.sub(lambda string: string[0].replace(b"\n", b" "), sequence + data)
    turns = Turns()
    text, numbers, lines = await _shown(log, data, turns)
    found: list[tuple[int, int]] = []
    row = row_start = 0
    match = pattern.search(text)
    while match:
        await turns.take(_MATCH_WORK)
        at = match.start()
        row += text.count(b"\n", row_start, at)
        row_start = text.rfind(b"\n", 0, at) + 1
        number = numbers[row]
        if not found or found[-1][0] != number:
            # What is shown of a line with moves was printed last.
            has_moves = b"\r" in lines[number]
            found.append((number, len(lines[number]) if has_moves else at - row_start))
        next_row = text.find(b"\n", at) + 1
        match = pattern.search(text, next_row) if next_row else None
    starts = [-len(sequence), *(len(line) + 1 for line in data.split(b"\n"))]
    bounds = [begin + start for start in itertools.accumulate(starts)]
    return [_hit(max(begin, bounds[number]), bounds[number + 1] - 1, at) for number, at in found]


def _hit(line: int, end: int, offset: int) -> _Hit:
    return _Hit(line, max(0, min(offset, end - line - 1)), end)


async def _shown(
    log: Log, data: bytes, turns: Turns
) -> tuple[bytes, Sequence[int], Sequence[bytes]]:
    """Return how a terminal shows lines, each by itself, in rows; and the index of each row's line.

    Also returns the lines as searched: with line feeds alone, and without our paths.
    """
    if FILES.encode() in data or NONCE.encode() in data:
        data = without_paths(readable(data)).encode()
    data = _with_line_feeds(data).removesuffix(b"\n")
    lines = data.split(b"\n")
    text = _INVISIBLE.sub(b"", _STRING.sub(CANCEL.encode(), data))
    plain = text.replace(b"\033[K", b"")  # without moves, there is nothing to erase
    if not _has_controls(plain):
        return _C1_CONTROLS.sub(b"", plain), range(len(lines)), lines
    text = _erased(log.columns).sub(b"", text + b"\n")
    in_rows = _lines_in_rows(log.columns)
    shown: list[bytes] = []
    numbers: list[int] = []
    position = 0
    while position < len(text):
        number = numbers[-1] + 1 if numbers else 0
        several = _PLAIN_LINES.match(text, position) or in_rows.match(text, position)
        if several:
            end = several.end()
            output = several[0][:-1].replace(b"\n", b"\r\n")
        else:
            end = text.index(b"\n", position) + 1
            output = lines[number]
        rows = text[position : end - 1]
        if several is None or several.re is in_rows:
            transcript = Transcript(log.columns, log.rows)
            for piece in pieces(output):
                await turns.take(work_of(piece))
                transcript.feed(piece)
            rows = without_paths(transcript.text()).encode()
        last = number + text.count(b"\n", position, end) - 1
        shown.append(rows)
        numbers += [min(number + row, last) for row in range(rows.count(b"\n") + 1)]
        position = end
    return _C1_CONTROLS.sub(b"", b"\n".join(shown)), numbers, lines


def _has_controls(text: bytes) -> bool:
    return any(control in text for control in _CONTROLS)


@functools.cache
def _erased(columns: int) -> re.Pattern[bytes]:
    """Return an expression for what a line erases again without having left its row.

    A carriage return follows it, then what the row shows, and an erasure of the rest. No
    character has fewer bytes than columns. Progress bars are such lines.
    """
    return re.compile(
        rb"(?m:^) (?: (?= [^\r\n]{0,%d} \r ) %b (?: \033\[[12]?K %b )* \r+ (?!\r) )+"
        rb"(?= [^\0-\037\177]{0,%d} \033\[K )" % (columns, _IN_ROW, _IN_ROW, columns),
        re.VERBOSE,
    )


@functools.cache
def _lines_in_rows(columns: int) -> re.Pattern[bytes]:
    """Return an expression for lines that can't leave their rows.

    Such a line returns the carriage, moves back, or edits the row, before the row is full.
    """
    edited = rb"(?= [^\r\n]{0,%d} [\r\n] ) %b (?: (?: \010 | \033\[[0-9]*[@DKPX] ) %b )*" % (
        columns,
        _IN_ROW,
        _IN_ROW,
    )
    return re.compile(rb"(?: %b (?: \r+ (?!\r) %b )* \n )+" % (edited, edited), re.VERBOSE)


def _with_line_feeds(data: bytes) -> bytes:
    """Return data with line feeds alone between lines."""
    if _LONE_RETURN.search(data):
        return data.replace(b"\r\n", b"\n")
    return data.replace(b"\r", b"")  # faster than replacing two bytes
