"""Searching the log of a pane for lines that match, without reading all of it as text.

Lines are looked through as bytes without colours and the like, the newest first. What is found is then read as a
terminal shows it, with the lines around it.
"""

import re
from typing import Any

import anyio.lowlevel

from .logs import Log
from .reading import read_lines_at
from .texts import Shown, joined

MAX_FOUND_CHARACTERS = 40_000
_CONTEXT_LINES = 2
# Pieces grow where nothing is found, and shrink to what leaves time for others where each line matches.
_LEAST_PIECE_BYTES, _MOST_PIECE_BYTES = 1 << 17, 1 << 20
# A line may begin that far before a piece, and its neighbours so far around it.
_LINE_BYTES = 1 << 14
_INVISIBLE = re.compile(
    rb"\033(?:\[[0-?]*[ -/]*[@-~]|\][^\a\033\n]*(?:\a|\033\\)|[PX^_k][^\033\n]*\033\\|[()][0-9A-Z]|[0-Z\\^-~])|[\a\0]"
)
_CONTROLS = (b"\033", b"\a", b"\b", b"\0")
_BACKSPACED = re.compile(rb"[^\n\x08]\x08")
_OVERWRITTEN = re.compile(rb"[^\n]*\r(?=[^\n])")


async def search(log: Log, start: int, end: int, pattern: Any, most_lines: int) -> tuple[Shown, int]:  # noqa: ANN401
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
    groups: list[Shown] = []
    size, before = 0, end
    for cursor in found:  # the newest first
        if cursor >= before:
            continue  # which a group has that is there
        first = _lines_back(log, max(start, cursor - _LINE_BYTES), cursor)
        last = min(before, _lines_on(log, cursor, end))
        while (earlier := next((one for one in found if first <= one < cursor), None)) is not None:
            cursor = earlier  # noqa: PLW2901
            first = _lines_back(log, max(start, cursor - _LINE_BYTES), cursor)
        text = await read_lines_at(log, first, last)
        group = Shown([f"[cursor {first}]", *text.removesuffix("\n").split("\n")], [0])
        size += len(group.text) + 1
        if groups and size > MAX_FOUND_CHARACTERS:
            break
        groups.append(group)
        before = first
        await anyio.lowlevel.checkpoint()
    return joined(*reversed(groups)), len(found)


async def _cursors(log: Log, start: int, end: int, pattern: Any, most: int) -> list[int]:  # noqa: ANN401
    """Return where lines begin that match, the newest first."""
    found: list[int] = []
    size = _LEAST_PIECE_BYTES
    while end > start and len(found) < most:
        begin = _line_start(log, max(start, end - size), start)
        data = log.read(begin, end - begin)
        numbers = _matching(data, pattern)
        if numbers:
            starts = _line_starts(data, numbers)
            found += [begin + starts[number] for number in reversed(numbers)]
        size = _LEAST_PIECE_BYTES if numbers else min(2 * size, _MOST_PIECE_BYTES)
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


def _matching(data: bytes, pattern: Any) -> list[int]:  # noqa: ANN401
    """Return the numbers of the lines that match."""
    text = _plain(data)
    numbers: list[int] = []
    number = at = 0
    for match in pattern.finditer(text):
        number += text.count(b"\n", at, match.start())
        at = match.start()
        if not numbers or numbers[-1] != number:
            numbers.append(number)
    return numbers


def _plain(data: bytes) -> bytes:
    """Return what a terminal shows of data, nearly: without colours, and without what was overwritten in its line."""
    # Most lines end in both, and to remove one byte is faster than two.
    is_usual = data.count(b"\r") == data.count(b"\n")
    text = data.replace(b"\r", b"") if is_usual else data.replace(b"\r\n", b"\n")
    if any(control in text for control in _CONTROLS):
        text = _INVISIBLE.sub(b"", text)
        while b"\b" in text and (shorter := _BACKSPACED.sub(b"", text)) != text:
            text = shorter
    return _OVERWRITTEN.sub(b"", text) if b"\r" in text else text


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
