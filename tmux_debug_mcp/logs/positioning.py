"""Transcripts that begin in the middle of a log, with the terminal in the state that it had there.

What bytes mean depends on the terminal's screen, modes and character sets. A log does not record
these. They are derived from the bytes before the cursor, as far back as nearly all programs need.
"""

import copy
import re

from tmux_debug_mcp.turns import next_turn, pieces
from tmux_debug_mcp.vt.charsets import CharacterSets, sets_after
from tmux_debug_mcp.vt.sequences import (
    MAX_HELD_BYTES,
    only_appends,
    unfinished_character_bytes,
    unfinished_sequence,
)
from tmux_debug_mcp.vt.transcript import Transcript

from .log import Checkpoint, Log

# How far back to look for what the screen shows: in lines, and where a program moves to places. And
# for the line editor and the character sets.
_SCREEN_BYTES = 8192
_DRAWING_BYTES = 1 << 16
_MODE_BYTES = 1 << 18
# How far back to look for a switch to the alternate screen, and for the beginning of a string, in
# pieces. Those for the switch overlap by the length of the longest sequence that switches.
_FAR_BYTES = 4 << 20
_PIECE_BYTES = 1 << 16
_OVERLAP_BYTES = 20
_FIRST_BYTES = 1 << 12
# Line editors switch bracketed paste on while they edit: this and "h". With "l" they switch it off.
_BRACKETED_PASTE = b"\033[?2004"
# Group: `h` switches to the alternate screen, `l` back to the main screen. The second also finds
# sequences that switch another mode first, and takes three times as long.
_SWITCH = re.compile(rb"\033\[\?(?:47|1047|1049)(?:;\d{1,4})?([hl])")
_ANY_SWITCH = re.compile(rb"\033\[\?(?:\d{1,4};)?(?:47|1047|1049)(?:;\d{1,4})?([hl])")
# A program may draw.
_MAY_DRAW = re.compile(rb"\033\[(?:[0-9;]+[Hfd]|\?25l|\?[0-9;]*(?:47|1047|1049))")


async def transcript_from(log: Log, cursor: int) -> Transcript:
    """Return a transcript whose screen is as it was at a cursor.

    Its text contains only what comes after the cursor, not what the screen showed there. The log
    keeps the last transcript as its checkpoint, which goes on to a cursor that is near.
    """
    checkpoint, log.checkpoint = log.checkpoint, None
    size = log.columns, log.rows
    oldest = max(log.kept_from, cursor - _DRAWING_BYTES)
    is_near = checkpoint is not None and oldest <= checkpoint.cursor <= cursor
    if checkpoint and is_near and checkpoint.transcript.size == size:
        start, transcript = checkpoint
    else:
        transcript, start = await _new_transcript(log, cursor)
    # All of it at once: the log may be trimmed at each `await`.
    for piece in pieces(log.read(start, cursor - start)):
        await next_turn()
        transcript.feed(piece)
    transcript.forget()
    is_newest = checkpoint is None or checkpoint.cursor <= cursor
    log.checkpoint = Checkpoint(cursor, transcript) if is_newest else checkpoint
    return copy.deepcopy(transcript)


async def _new_transcript(log: Log, cursor: int) -> tuple[Transcript, int]:
    """Return a transcript with a blank screen, and the cursor from which it is to be fed."""
    oldest = max(log.kept_from, cursor - _DRAWING_BYTES)
    start = max(oldest, cursor - _SCREEN_BYTES)
    # Each looks far back where a flood has no escape character, so each gets its own turn.
    await next_turn()
    is_alternate = is_alternate_at(log, cursor)
    if is_alternate or _MAY_DRAW.search(log.read(oldest, cursor - oldest)):
        start = oldest
        await next_turn()
        is_alternate = is_alternate_at(log, start)
    await next_turn()
    before = _modes_before(log, start)
    switch = before.rfind(_BRACKETED_PASTE)
    is_editing = switch >= 0 and before.startswith(b"h", switch + len(_BRACKETED_PASTE))
    transcript = Transcript(log.columns, log.rows, separates_drawing=True)
    transcript.restore(
        sets=sets_after(before), is_editing=is_editing, sequence=sequence_at(log, start)
    )
    if is_alternate:
        transcript.begin_alternate()
    return transcript, start


def blank_transcript(log: Log, cursor: int) -> Transcript:
    """Return a transcript with a blank main screen, and the modes at a cursor."""
    return _blank(log, cursor, _modes_before(log, cursor))


def _blank(log: Log, cursor: int, before: bytes) -> Transcript:
    transcript = Transcript(log.columns, log.rows)
    begun = sequence_at(log, cursor) or before[len(before) - unfinished_character_bytes(before) :]
    transcript.restore(sets=sets_after(before), sequence=begun)
    return transcript


async def reading_transcript(log: Log, cursor: int, begin: bytes) -> Transcript:
    """Return a transcript for clean text from a cursor on, which begins with these bytes.

    If they only append to the main screen, it does not matter what it showed before, except in
    which column a tab is.
    """
    before = _modes_before(log, cursor)
    has_tab = b"\t" in begin.partition(b"\n")[0] and before[-1:] not in (b"", b"\n")
    if only_appends(begin) and not has_tab and not _last_switch(before):
        return _blank(log, cursor, before)
    return await moving_transcript(log, cursor)


async def moving_transcript(log: Log, cursor: int) -> Transcript:
    """Return a transcript for clean text from a cursor on that may move up on the screen there."""
    if cursor <= log.kept_from:
        return blank_transcript(log, cursor)
    transcript = await transcript_from(log, cursor)
    transcript.take_drawing_for_lines()
    return transcript


def is_alternate_at(log: Log, cursor: int) -> bool:
    """Tell whether the alternate screen was on at a cursor."""
    oldest = max(log.kept_from, cursor - _FAR_BYTES)
    end = cursor
    while end > oldest:
        start = max(oldest, end - _PIECE_BYTES)
        is_on = _last_switch(log.read(start, end - start))
        if is_on is not None:
            return is_on
        if start == oldest:
            break
        end = start + _OVERLAP_BYTES
    return False


def _last_switch(data: bytes) -> bool | None:
    """Tell whether the alternate screen is on after data; None if the data does not switch it."""
    pattern = _ANY_SWITCH if b";1049" in data else _SWITCH
    switches = pattern.findall(data)
    return switches[-1] == b"h" if switches else None


def sets_at(log: Log, cursor: int) -> CharacterSets:
    """Return the character sets in use at a cursor."""
    return sets_after(_modes_before(log, cursor))


def sequence_at(log: Log, cursor: int) -> bytes:
    """Return the beginning of the sequence or string that a cursor is in, or b"" if in none.

    A string that is longer than 4 MiB before the cursor, or 256 KiB with blanks, is taken for text.
    Images and other payloads contain no blanks; nearly all text does.
    """
    oldest = max(log.kept_from, cursor - _FAR_BYTES)
    has_blanks = False
    size = _FIRST_BYTES
    start = cursor
    while start > oldest:
        end = start
        start = max(oldest, end - size)
        size = min(2 * size, _PIECE_BYTES)
        piece = log.read(start, end - start)
        escape = piece.rfind(b"\033")
        if escape >= 0:
            begin = start + escape
            return unfinished_sequence(log.read(begin, cursor - begin))[: MAX_HELD_BYTES + 1]
        has_blanks = has_blanks or b" " in piece
        if has_blanks and cursor - start >= _MODE_BYTES:
            break
    return b""


def _modes_before(log: Log, cursor: int) -> bytes:
    """Return the bytes before a cursor that decide the modes there."""
    start = max(log.kept_from, cursor - _MODE_BYTES)
    return log.read(start, cursor - start)
