"""Searching the log of a pane for lines that match, without reading all of it as text.

Lines are looked through as bytes without colours and the like, the newest first. What is found is then read as a
terminal shows it, with the lines around it.
"""

import re
from typing import Any

import anyio.lowlevel

from tmux_debug_mcp.vt.marks import FILES, readable, without_paths

from .excerpts import Excerpt, cut_in_the_middle, joined
from .log import Log
from .reading import read_lines_at

MAX_FOUND_CHARACTERS = 40_000
_CONTEXT_LINES = 2
# Pieces grow where nothing is found, and shrink where many lines match, which takes time.
_LEAST_PIECE_BYTES, _MOST_PIECE_BYTES = 1 << 15, 1 << 20
_MOST_MATCHES = 2000
# A line may begin that far before a piece, and its neighbours so far around it.
_LINE_BYTES = 1 << 14
# Of a longer line, so much is shown around what matches.
_AROUND_BYTES = 1000
_INVISIBLE = re.compile(
    rb"\033(?:\[[0-?]*[ -/]*[@-~]|\][^\a\033\n]*(?:\a|\033\\)|[PX^_k][^\033\n]*\033\\|[()][0-9A-Z]|[0-Z\\^-~])|[\a\0]"
)
_CONTROLS = (b"\033", b"\a", b"\0")
_MOVES = re.compile(rb"\r+|\x08+|[^\r\x08]+")


async def search(log: Log, start: int, end: int, pattern: Any, most_lines: int) -> tuple[Excerpt, int]:  # noqa: ANN401
    """Return the lines that match, with two lines around each, and how many were found.

    A marked line with its cursor stands before each group.

    Args:
        log: The log.
        start: Where to begin.
        end: Where to end.
        pattern: A compiled pattern, for bytes; re2 has no types.
        most_lines: How many lines to find: the newest.
    """
    start = max(start, log.kept_from)
    found = await _cursors(log, start, end, pattern, most_lines)
    groups: list[tuple[int, int]] = []
    size = count = 0
    for cursor, at in found:  # the newest first
        first, last = _around(log, cursor, at, start, end)
        if groups and last >= groups[-1][0]:
            size += max(0, groups[-1][0] - first)
            groups[-1] = min(first, groups[-1][0]), groups[-1][1]
        else:
            size += last - first
            groups.append((first, last))
        count += 1
        if size > MAX_FOUND_CHARACTERS:
            break
    shown = [Excerpt([f"[{len(found) - count} older lines that match left out]"], [0])] if count < len(found) else []
    for first, last in reversed(groups):
        text = (await read_lines_at(log, first, last)).removesuffix("\n")
        shown.append(Excerpt([f"[cursor {first}]", *text.split("\n")], [0]))
        await anyio.lowlevel.checkpoint()
    return cut_in_the_middle(joined(*shown), MAX_FOUND_CHARACTERS), len(found)


def _around(log: Log, cursor: int, at: int, start: int, end: int) -> tuple[int, int]:
    """Return where the lines around a line begin and end, given where in the line something matches."""
    first = _lines_back(log, max(start, cursor - _LINE_BYTES), cursor)
    last = _lines_on(log, cursor, end)
    if cursor + at + _AROUND_BYTES > last and last - cursor >= _LINE_BYTES:  # a line that is too long
        return max(cursor, cursor + at - _AROUND_BYTES), min(end, cursor + at + 3 * _AROUND_BYTES)
    return first, last


async def _cursors(log: Log, start: int, end: int, pattern: Any, most: int) -> list[tuple[int, int]]:  # noqa: ANN401
    """Return where lines begin that match, the newest first, and about where in them."""
    found: list[tuple[int, int]] = []
    size = _LEAST_PIECE_BYTES
    while end > start and len(found) < most:
        begin = _line_start(log, max(start, end - size), start)
        data = log.read(begin, end - begin)
        most_here = _MOST_MATCHES if size > _LEAST_PIECE_BYTES else len(data) + 1
        matches = _matching(data, pattern, most_here)
        if len(matches) == most_here:  # the newest of them are to be found
            size = max(size // 8, _LEAST_PIECE_BYTES)
            continue
        starts = _line_starts(data, [number for number, _ in matches])
        found += [(begin + starts[number], at) for number, at in reversed(matches)]
        size = _LEAST_PIECE_BYTES if matches else min(2 * size, _MOST_PIECE_BYTES)
        end = begin
        await anyio.lowlevel.checkpoint()
    return found[:most]


def _line_start(log: Log, cursor: int, least: int) -> int:
    """Return where the line begins that a cursor is in, or the cursor where the line is too long."""
    if cursor <= least:
        return least
    begin = max(least, cursor - _LINE_BYTES)
    at = log.read(begin, cursor - begin).rfind(b"\n")
    return begin + at + 1 if at >= 0 else cursor


def _matching(data: bytes, pattern: Any, most: int) -> list[tuple[int, int]]:  # noqa: ANN401
    """Return the numbers of the first lines that match, and where in them."""
    text = _plain(data)
    matches: list[tuple[int, int]] = []
    number = line = at = 0
    end = len(text) - text.endswith(b"\n")
    while at <= end and len(matches) < most and (match := pattern.search(text, at)):
        if match.start() > end or not text:
            break
        number += text.count(b"\n", line, match.start())
        line = text.rfind(b"\n", 0, match.start()) + 1
        matches.append((number, match.start() - line))
        at = text.find(b"\n", match.start()) + 1 or end + 1
    return matches


def _plain(data: bytes) -> bytes:
    """Return what a terminal shows of data, nearly: without colours, and with lines as they are in the end."""
    if FILES.encode() in data:
        data = without_paths(readable(data)).encode()
    # Most lines end in both, and to remove one byte is faster than two.
    is_usual = data.count(b"\r") == data.count(b"\n")
    text = data.replace(b"\r", b"") if is_usual else data.replace(b"\r\n", b"\n")
    if any(control in text for control in _CONTROLS):
        text = _INVISIBLE.sub(b"", text)
    if b"\r" in text or b"\b" in text:
        text = b"\n".join(_overwritten(line) if b"\r" in line or b"\b" in line else line for line in text.split(b"\n"))
    return text


def _overwritten(line: bytes) -> bytes:
    """Return a line in which a program went back, as it is in the end; a byte is taken for a cell."""
    shown, at = bytearray(), 0
    for move in _MOVES.finditer(line):
        text = move[0]
        if text[0] == ord("\r"):
            at = 0
        elif text[0] == ord("\b"):
            at = max(0, at - len(text))
        else:
            shown[at : at + len(text)] = text
            at += len(text)
    return bytes(shown)


def _line_starts(data: bytes, numbers: list[int]) -> dict[int, int]:
    """Return where lines begin, by their numbers."""
    starts: dict[int, int] = {}
    number = at = 0
    for wanted in numbers:
        while number < wanted:
            at = data.index(b"\n", at) + 1
            number += 1
        starts[wanted] = at
    return starts


def _lines_back(log: Log, least: int, cursor: int) -> int:
    """Return where the lines before a line begin."""
    data = log.read(least, cursor - least)
    at = len(data)
    for _ in range(_CONTEXT_LINES + 1):
        at = data.rfind(b"\n", 0, max(at, 0))
        if at < 0:
            return least if len(data) < _LINE_BYTES else cursor
    return least + at + 1


def _lines_on(log: Log, cursor: int, end: int) -> int:
    """Return where a line and those behind it end."""
    data = log.read(cursor, min(_LINE_BYTES, end - cursor))
    at = 0
    for _ in range(_CONTEXT_LINES + 1):
        line_end = data.find(b"\n", at)
        if line_end < 0:
            return cursor + len(data)
        at = line_end + 1
    return cursor + at
