"""A part of a log as an excerpt for a result: without its middle, if it is too long."""

from dataclasses import dataclass, replace

import anyio.lowlevel

from . import excerpts
from .ends import read_end
from .excerpts import Excerpt
from .log import Log
from .reading import MAX_READ_BYTES, read_forward

# Text with repeated lines may be this many times longer before they are folded.
_FOLDING = 4
# How far to look for the first line feed of what is kept.
_MAX_LINE_BYTES = 1 << 15


@dataclass(frozen=True, slots=True)
class Abridgement:
    """How a part of a log becomes an excerpt.

    Attributes:
        max_characters: The maximum length of the excerpt.
        folds: Fold lines that repeat. Without it, the part is the output of a command, which begins
            with a line.
        advice: How to read what is left out, for the note in its place. `{cursor}` stands for the
            cursor where it begins. "" for a note without advice.
    """

    max_characters: int
    folds: bool
    advice: str = ""


async def read_abridged(
    log: Log, start: int, end: int, abridgement: Abridgement
) -> tuple[Excerpt, int]:
    """Return a part of a log, without its middle if it is too long.

    A quarter of the room goes to the beginning, the rest to the end. A note stands for what
    is left out, and for what is no longer kept.

    Args:
        log: The log.
        start: Where the part begins.
        end: Where the part ends.
        abridgement: How long the excerpt may be, and what is done with the lines.

    Returns:
        The excerpt, and the cursor where its text begins.
    """
    text_start = _first_kept_line(log, start, end)
    excerpt = await _read_whole(log, text_start, end, _beside_note(abridgement, text_start - start))
    if excerpt is None:
        # The log may have been trimmed since then.
        text_start = _first_kept_line(log, start, end)
        shorter = _beside_note(abridgement, text_start - start)
        excerpt = await _read_around(log, text_start, end, shorter)
    if text_start > start:
        excerpt = excerpts.joined(_no_longer_kept(text_start - start), excerpt)
    return excerpt, text_start


def _beside_note(abridgement: Abridgement, gone_bytes: int) -> Abridgement:
    """Return an abridgement with room for the note about bytes that are no longer kept."""
    if not gone_bytes:
        return abridgement
    room = abridgement.max_characters - excerpts.GAP_CHARACTERS
    return replace(abridgement, max_characters=room)


def _first_kept_line(log: Log, start: int, end: int) -> int:
    """Return the cursor of a part, or of its first line that is kept as a whole."""
    oldest = min(log.kept_from, end)
    if oldest <= start:
        return min(start, end)
    data = log.read(oldest, min(_MAX_LINE_BYTES, end - oldest))
    return oldest + data.find(b"\n") + 1


def _no_longer_kept(size: int) -> Excerpt:
    return Excerpt([f"[{size} bytes before this are no longer kept]"], [0], size)


async def _read_whole(log: Log, start: int, end: int, abridgement: Abridgement) -> Excerpt | None:
    """Return all of a part, or None if it is too long."""
    folds = abridgement.folds
    max_unfolded = abridgement.max_characters
    if folds:
        max_unfolded *= _FOLDING
    piece = await read_end(log, start, end, max_unfolded, is_line=not folds)
    if piece.start != start:
        return None
    excerpt = _excerpt(piece.text, folds=folds)
    if len(excerpt.text) > abridgement.max_characters:
        return None
    return excerpt


async def _read_around(log: Log, start: int, end: int, abridgement: Abridgement) -> Excerpt:
    """Return the beginning and the end of a part, with a gap between them."""
    folds = abridgement.folds
    room = abridgement.max_characters - excerpts.GAP_CHARACTERS
    head = await read_forward(log, start, end, room // 4)
    tail = await read_end(log, head.end, end, room - room // 4)
    parts = [_excerpt(head.text.removesuffix("\n"), folds=folds)]
    if head.end < tail.start:
        parts.append(await _gap(log, head.end, tail.start, abridgement.advice))
    parts.append(_excerpt(tail.text, folds=folds))
    return excerpts.joined(*parts)


def _excerpt(text: str, *, folds: bool) -> Excerpt:
    lines = text.split("\n")
    if folds:
        return excerpts.folded(lines)
    return Excerpt(lines, [])


async def _gap(log: Log, start: int, end: int, advice: str) -> Excerpt:
    """Return the note for what is left out between two cursors.

    Args:
        log: The log.
        start: The first cursor.
        end: The second one.
        advice: How to read what is left out. It is not given where that is no longer kept.
    """
    lines = 0
    position = max(start, log.kept_from)
    while position < end:
        piece = log.read(position, min(MAX_READ_BYTES, end - position))
        if not piece:
            break
        lines += piece.count(b"\n")
        position += len(piece)
        await anyio.lowlevel.checkpoint()
    if start < log.kept_from:
        return excerpts.gap(lines, end - start)
    return excerpts.gap(lines, end - start, advice.format(cursor=start))
