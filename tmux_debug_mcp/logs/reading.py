"""Logs as text: forward from a cursor, or the end of a part.

*Clean* text is what a terminal shows; *raw* text is what it got, as far as that is characters.
"""

import time
from typing import NamedTuple

import anyio.lowlevel

from tmux_debug_mcp.vt.charsets import CharacterSets, sets_after
from tmux_debug_mcp.vt.drawing import last_switch
from tmux_debug_mcp.vt.marks import is_typed, without_paths
from tmux_debug_mcp.vt.rows import text_of
from tmux_debug_mcp.vt.sequences import ANSWERED
from tmux_debug_mcp.vt.transcript import Transcript

from . import excerpts
from .excerpts import Excerpt
from .log import Log

# Lines that repeat are looked for in so many times what is shown.
_FOLDING = 4
# Between pieces other calls get their turn. Most are read at 30 MB/s, and some with a thousandth of that.
_PIECE_BYTES = 1 << 16
_LEAST_BYTES = 1 << 10
_TURN_S = 0.008
# A program that prints little text in many bytes, such as a progress bar, is read this far at once.
_MOST_READ_BYTES = 1 << 20
# How far before a cursor the screen is told from; and the mode of the line editor, and the character sets.
_SCREEN_BYTES = 8192
_MODE_BYTES = 1 << 18
# How far before a cursor a program that has the whole screen may have begun, and what is looked through at once.
_ALTERNATE_BYTES, _ALTERNATE_PIECE_BYTES = 4 << 20, 1 << 16
_EDITOR_MODE = b"\033[?2004"
# Few questions are longer.
_QUESTION_BYTES = 256
# A character has no more bytes.
_CHARACTER_BYTES = 4
# Raw lines are read back from the end in pieces of this size, at first.
_LINES_BYTES = 1 << 15
# Room for what a few bytes may show, such as a screen that is restored.
_LEAST_CHARACTERS = 1 << 18
# How many characters a line has at most, in most cases.
_LINE_CHARACTERS = 200


class Piece(NamedTuple):
    """A piece of a log as text: from one cursor to another, the lines between joined by line feeds.

    Attributes:
        remaining_bytes: How much of what was to be read comes behind it, but for what is unfinished at its end.
    """

    text: str
    start: int
    end: int
    remaining_bytes: int = 0


class Pace:
    """How many bytes to take in one turn of the event loop, which others wait for."""

    def __init__(self) -> None:
        self.bytes = _LEAST_BYTES
        self._begun_at = 0.0

    def begin(self) -> None:
        """Begin a turn."""
        self._begun_at = time.thread_time()

    def end(self) -> None:
        """End it: the next one takes more where there was time for that, or less."""
        took_s = time.thread_time() - self._begun_at
        if took_s < _TURN_S / 4:
            self.bytes = min(2 * self.bytes, _PIECE_BYTES)
        elif took_s > _TURN_S:
            self.bytes = max(self.bytes // 4, _LEAST_BYTES)


class _PacedTranscript:
    """A transcript that is fed turn by turn, and the text that it shows."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self._settled: list[str] = []

    async def feed(self, data: bytes | bytearray) -> None:
        pace, at = Pace(), 0
        while at < len(data):
            pace.begin()
            piece = data[at : at + pace.bytes]
            self.transcript.feed(piece)
            self._settled.append(text_of(self.transcript.take_settled()))
            pace.end()
            at += len(piece)
            await anyio.lowlevel.checkpoint()

    def text(self) -> str:
        return without_paths("".join(self._settled) + text_of(self.transcript.open_lines())[:-1])


async def read_forward(log: Log, start: int, end: int, most_characters: int) -> Piece:
    """Return what a terminal shows of the log from a cursor on, the oldest first.

    Pieces that follow each other make up the whole text when they are put together. One ends at `end`, or before
    what is unfinished there, or where the text would be longer than allowed: behind a line where one fits. It
    begins behind `start` where the log no longer has that.
    """
    start = max(start, log.kept_from)
    paced, data, text = _PacedTranscript(_transcript_at(log, start)), bytearray(), ""
    while start + len(data) < end and len(data) < _MOST_READ_BYTES:
        room = most_characters - len(text)
        if room < most_characters // 100:
            break
        piece = log.read(start + len(data), min(_PIECE_BYTES, room, end - start - len(data)))
        if not piece:
            break
        await paced.feed(piece)
        data += piece
        text = paced.text()
    # Bytes that move the cursor make more text than they are.
    while (is_long := len(text) > most_characters) or (start + len(data) < end and data[-1:] != b"\n"):
        most = min(len(data) * most_characters // len(text), len(data) - 1) if is_long else len(data)
        line_end = data.rfind(b"\n", 0, most) + 1
        if is_typed(data[:line_end]):  # what was typed for a command is told with the mark behind it
            line_end = data.rfind(b"\n", 0, line_end - 1) + 1
        if not line_end and not is_long:
            break  # a part of a line
        del data[line_end or most :]
        paced = _PacedTranscript(_transcript_at(log, start))
        await paced.feed(data)
        text = paced.text()
    read = start + len(data)
    return Piece(text, start, read - paced.transcript.held_bytes, max(0, end - read))


async def read_end(log: Log, start: int, end: int, most_characters: int, *, is_line: bool = False) -> Piece:
    """Return the end of what a terminal shows of a part of the log: all of it, or whole lines if that costs little.

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
        text = await _shown(data, log, begin, is_line=begin > start or is_line)
        if len(text) > most_characters:
            return _end(data, begin, text, most_characters)
        if begin == start:
            return Piece(text, begin, end)
        if size >= _MOST_READ_BYTES:
            cut = data.find(b"\n", 0, -1) + 1
            return Piece(await _shown(data[cut:], log, begin + cut, is_line=True) if cut else text, begin + cut, end)
        size = min(size * 4, _MOST_READ_BYTES)


async def read_middle(log: Log, start: int, end: int, most_characters: int, *, folds: bool) -> tuple[Excerpt, int]:
    """Return a part of the log without its middle where it is too long, and the cursor where the text begins.

    Args:
        log: The log.
        start: Where the part begins.
        end: Where it ends.
        most_characters: The most to return: a quarter from the beginning, the rest from the end.
        folds: Show lines that repeat once. Without that it is a command's output, which begins with a line.
    """
    gone = max(0, min(log.kept_from, end) - start)
    if gone:  # what is kept begins amid a line
        gone += log.read(start + gone, min(_LINES_BYTES, end - start - gone)).find(b"\n") + 1
    most_characters -= excerpts.GAP_CHARACTERS if gone else 0
    start = min(start + gone, end)
    before = [_no_longer_kept(gone)] if gone else []
    window = most_characters * _FOLDING if folds else most_characters
    whole = await read_end(log, start, end, window, is_line=not folds)
    if whole.start == start:
        lines = _lines(whole.text, folds=folds)
        if len(lines.text) <= most_characters:
            return excerpts.joined(*before, lines), start
    most_characters -= excerpts.GAP_CHARACTERS
    head = await read_forward(log, start, end, most_characters // 4)
    tail = await read_end(log, head.end, end, most_characters - most_characters // 4)
    gap = await _gap(log, head.end, tail.start)
    shown = _lines(head.text.removesuffix("\n"), folds=folds), *gap, _lines(tail.text, folds=folds)
    return excerpts.joined(*before, *shown), start


def _lines(text: str, *, folds: bool) -> Excerpt:
    lines = text.split("\n")
    return excerpts.folded(lines) if folds else Excerpt(lines, [])


def _no_longer_kept(size: int) -> Excerpt:
    return Excerpt([f"[{size} bytes before this are no longer kept]"], [0], size)


async def _gap(log: Log, start: int, end: int) -> list[Excerpt]:
    """Return the line that tells what is left out between two cursors, and how to read it."""
    lines, at = 0, max(start, log.kept_from)
    while at < end:
        piece = log.read(at, min(_MOST_READ_BYTES, end - at))
        if not piece:
            break
        lines += piece.count(b"\n")
        at += len(piece)
        await anyio.lowlevel.checkpoint()
    if start >= end:
        return []
    is_kept = start >= log.kept_from
    return [excerpts.gap(lines, end - start, f"tmux_capture_pane since {start} reads them" if is_kept else "")]


async def read_last_lines(log: Log, end: int, lines: int, most_characters: int) -> tuple[list[str], bool]:
    """Return the last clean lines before a cursor, and whether there were more."""
    most = min(most_characters, lines * _LINE_CHARACTERS)
    while True:
        piece = await read_end(log, 0, end, most)
        found = piece.text.removesuffix("\n").split("\n") if piece.text else []
        is_all = piece.start == 0
        if is_all or len(found) > lines or most >= most_characters:
            return found[-lines:], not is_all or len(found) > lines
        most = min(most_characters, most * 4)


async def read_screen(log: Log, end: int) -> str:
    """Return what the screen showed at a cursor."""
    start = max(log.kept_from, end - _MODE_BYTES)
    transcript = Transcript(log.columns, log.rows)
    transcript.restore(sets=sets_at(log, start))
    await _PacedTranscript(transcript).feed(log.read(start, end - start))
    return transcript.screen()


async def read_lines_at(log: Log, start: int, end: int) -> str:
    """Return what a terminal shows of a part of the log that begins with a line."""
    return await _shown(log.read(start, end - start), log, start, is_line=True)


async def read_clean(log: Log, start: int, end: int, max_bytes: int) -> Piece:
    """Return the clean text of what `read_raw` would return, up to the beginning of what is unfinished there."""
    start = min(max(start, log.kept_from), end)
    most = max_bytes
    while True:
        stop = min(end, start + most)
        # What is restored behind a full-screen program may be more than the bytes that do that.
        piece = await read_forward(log, start, stop, max(2 * most, _LEAST_CHARACTERS))
        if piece.end > start or stop == end:
            return piece._replace(remaining_bytes=end - stop + piece.remaining_bytes)
        most *= 2  # a sequence that is longer


def transcript_from(log: Log, start: int) -> Transcript:
    """Return a transcript that begins with the screen as it was at a cursor, and shows nothing of it."""
    before = _before(log, start)
    transcript = Transcript(log.columns, log.rows)
    mode = before.rfind(_EDITOR_MODE) + len(_EDITOR_MODE)
    is_editing = mode >= len(_EDITOR_MODE) and before[mode : mode + 1] == b"h"
    transcript.restore(sets=sets_after(before), is_editing=is_editing)
    transcript.feed(before[-_SCREEN_BYTES:])
    if is_alternate_at(log, start):
        transcript.begin_alternate()
    transcript.forget()
    return transcript


def is_alternate_at(log: Log, cursor: int) -> bool:
    """Tell whether the alternate screen was on at a cursor."""
    end, least = cursor, max(log.kept_from, cursor - _ALTERNATE_BYTES)
    while end > least:
        start = max(least, end - _ALTERNATE_PIECE_BYTES)
        is_on = last_switch(log.read(start, end - start))
        if is_on is not None:
            return is_on
        # Pieces overlap, so that no sequence is cut in two.
        end = start + _CHARACTER_BYTES * 4 if start > least else least
    return False


async def may_be_answered(log: Log, start: int, end: int) -> bool:
    """Tell whether a part of the log has something that a terminal answers, as if the answer were typed."""
    at = max(start, log.kept_from)
    while at < end:
        data = log.read(at, min(_PIECE_BYTES, end - at))
        if ANSWERED.search(data):
            return True
        # Pieces overlap, so that no question is cut in two.
        at += max(len(data) - _QUESTION_BYTES, 1) if at + len(data) < end else len(data)
        await anyio.lowlevel.checkpoint()
    return False


def sets_at(log: Log, cursor: int) -> CharacterSets:
    """Return the character sets in use at a cursor."""
    return sets_after(_before(log, cursor))


def _before(log: Log, cursor: int) -> bytes:
    start = max(log.kept_from, cursor - _MODE_BYTES)
    return log.read(start, cursor - start)


async def _shown(data: bytes, log: Log, start: int, *, is_line: bool) -> str:
    """Return what a terminal shows of data, which begins at a cursor, where a line may begin."""
    # Most output uses no other set than the first, and in each line anew.
    is_usual = is_line and b"\016" not in data
    transcript = Transcript(log.columns, log.rows) if is_usual else _transcript_at(log, start, is_line=is_line)
    transcript.show_commands()
    paced = _PacedTranscript(transcript)
    await paced.feed(data)
    return paced.text()


def _transcript_at(log: Log, start: int, *, is_line: bool = False) -> Transcript:
    """Return the same for a cursor that most likely stands at the beginning of a line, where all screens are equal."""
    if not is_line and start > log.kept_from and log.read(start - 1, 1) != b"\n":
        transcript = transcript_from(log, start)
    else:
        transcript = Transcript(log.columns, log.rows)
        transcript.restore(sets=sets_at(log, start))
    transcript.show_commands()
    return transcript


def end_of(text: str, most_characters: int) -> str:
    """Return the end of a text that may be too long; it begins with a whole line if that costs little."""
    if len(text) <= most_characters:
        return text
    shown = text[-most_characters:]
    if text[-most_characters - 1] == "\n":
        return shown
    partial, _, lines = shown.partition("\n")
    return lines if lines and len(partial) <= most_characters // 10 else shown


def _end(data: bytes, begin: int, text: str, most_characters: int) -> Piece:
    """Return the end of the text, which is too long."""
    shown = end_of(text, most_characters)
    at = len(data)
    if text[: len(text) - len(shown)].endswith("\n"):
        # Each line of the text ended with a line feed, but where a program went back to what it had printed.
        lines = data.rsplit(b"\n", shown.count("\n") + 1)
        at = len(lines[0]) if len(lines) > 1 else 0
        return Piece(shown, begin + at + 1, begin + len(data))
    return Piece(shown, begin + max(0, at - len(shown.encode())), begin + at)
