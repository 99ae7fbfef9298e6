"""Logs as text: forward from a cursor, or the end of a part."""

from typing import NamedTuple

import anyio.lowlevel

from .logs import Log
from .transcript import Transcript

# Between pieces of this size other calls get their turn.
_PIECE_BYTES = 1 << 16
# A program that prints little text in many bytes, such as a progress bar, is read this far at once.
_MOST_READ_BYTES = 1 << 20
# How far before a cursor the screen is told from, and the mode of the line editor.
_SCREEN_BYTES = 8192
_MODE_BYTES = 1 << 18
_EDITOR_MODE = b"\033[?2004"


class Piece(NamedTuple):
    """A piece of a log as text: from one cursor to another, the lines between joined by line feeds.

    Attributes:
        left_bytes: How much of what was to be read comes behind it.
    """

    text: str
    start: int
    end: int
    left_bytes: int = 0


async def read_forward(log: Log, start: int, end: int, most_characters: int) -> Piece:
    """Return what a terminal shows of the log from a cursor on, the oldest first.

    Pieces that follow each other make up the whole text when they are put together. One ends at `end`, or before
    what is unfinished there, or where the text would be longer than allowed: behind a line where one fits. It
    begins behind `start` where the log no longer has that.
    """
    start = max(start, log.kept_from)
    transcript, data, text = _transcript_at(log, start), bytearray(), ""
    while start + len(data) < end and len(data) < _MOST_READ_BYTES:
        room = most_characters - len(text)
        if room < most_characters // 100:
            break
        piece = log.read(start + len(data), min(_PIECE_BYTES, room, end - start - len(data)))
        if not piece:
            break
        transcript.feed(piece)
        data += piece
        text = transcript.text()
        await anyio.lowlevel.checkpoint()
    # Bytes that move the cursor make more text than they are.
    while (is_long := len(text) > most_characters) or (start + len(data) < end and data[-1:] != b"\n"):
        most = min(len(data) * most_characters // len(text), len(data) - 1) if is_long else len(data)
        line_end = data.rfind(b"\n", 0, most) + 1
        if not line_end and not is_long:
            break  # a part of a line
        del data[line_end or most :]
        transcript = _transcript_at(log, start)
        transcript.feed(data)
        text = transcript.text()
        await anyio.lowlevel.checkpoint()
    read = start + len(data)
    return Piece(text, start, read - transcript.held_bytes, max(0, end - read))


async def read_end(log: Log, start: int, end: int, most_characters: int, *, is_line: bool = False) -> Piece:
    """Return the end of what a terminal shows of a part of the log: all of it, or whole lines if that is any.

    Args:
        log: The log.
        start: Where the part begins.
        end: Where it ends.
        most_characters: The most to return.
        is_line: A line begins at the start of the part, whatever the screen looked like before.
    """
    start = max(start, log.kept_from)
    size = most_characters + most_characters // 4
    while True:
        begin = max(start, end - size)
        data = log.read(begin, end - begin)
        if begin > start:
            begin += (cut := data.find(b"\n") + 1)
            data = data[cut:]
        transcript = Transcript() if begin > start or is_line else _transcript_at(log, start)
        transcript.feed(data)
        text = transcript.text()
        await anyio.lowlevel.checkpoint()
        if len(text) > most_characters:
            return _end(data, begin, text, most_characters)
        if begin == start or size >= _MOST_READ_BYTES:
            return Piece(text, begin, end)
        size *= 4


def transcript_from(log: Log, start: int) -> Transcript:
    """Return a transcript that begins with the screen as it was at a cursor, and shows nothing of it."""
    before = log.read(mode_from := max(log.kept_from, start - _MODE_BYTES), start - mode_from)
    transcript = Transcript()
    mode = before.rfind(_EDITOR_MODE) + len(_EDITOR_MODE)
    transcript.is_editing = mode >= len(_EDITOR_MODE) and before[mode : mode + 1] == b"h"
    transcript.feed(before[-_SCREEN_BYTES:])
    transcript.forget()
    return transcript


def _transcript_at(log: Log, start: int) -> Transcript:
    """Return the same for a cursor that most likely stands at the beginning of a line, where all are equal."""
    is_in_line = start > log.kept_from and log.read(start - 1, 1) != b"\n"
    return transcript_from(log, start) if is_in_line else Transcript()


def _end(data: bytes, begin: int, text: str, most_characters: int) -> Piece:
    """Return the end of the text that is not too long, whole lines if that costs little."""
    shown, is_whole = text[-most_characters:], text[-most_characters - 1] == "\n"
    partial, _, lines = shown.partition("\n")
    if not is_whole and lines and len(partial) <= most_characters // 10:
        shown, is_whole = lines, True
    at = len(data)
    if is_whole:
        # Each line of the text ended with a line feed, but where a program went back to what it had printed.
        for _ in range(shown.count("\n") + 1):
            at = max(0, data.rfind(b"\n", 0, at))
        return Piece(shown, begin + at + 1, begin + len(data))
    return Piece(shown, begin + max(0, at - len(shown.encode())), begin + at)
