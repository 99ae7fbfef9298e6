"""Transcripts that begin in the middle of a log, with the terminal in the state that it had there.

What bytes mean depends on the terminal's screen, modes and character sets. A log does not record
these. They are derived from the bytes before the cursor, as far back as nearly all programs need.
"""

import copy

from tmux_debug_mcp.turns import next_turn
from tmux_debug_mcp.vt.charsets import CharacterSets, sets_after
from tmux_debug_mcp.vt.drawing import Drawing, last_switch
from tmux_debug_mcp.vt.sequences import MAX_HELD_BYTES, unfinished_sequence
from tmux_debug_mcp.vt.transcript import Transcript

from .log import Known, Log
from .pacing import pieces

# How far back to look for what the screen shows, and for the line editor and the character sets.
_SCREEN_BYTES = 8192
_MODE_BYTES = 1 << 18
# How far back to look for a switch to the alternate screen, and for the beginning of a string, in
# pieces. The former overlap by the length of the longest sequence that switches.
_FAR_BYTES = 4 << 20
_PIECE_BYTES = 1 << 16
_OVERLAP_BYTES = 20
_FIRST_BYTES = 1 << 12
# Line editors switch bracketed paste on while they edit: this and "h". With "l" they switch it off.
_BRACKETED_PASTE = b"\033[?2004"


async def transcript_from(log: Log, cursor: int) -> Transcript:
    """Return a transcript whose screen is as it was at a cursor.

    Its text contains only what comes after the cursor, not what the screen showed there. The last
    one is kept with the log, and goes on from its cursor to one that is near.
    """
    known, log.known = log.known, None
    size = log.columns, log.rows
    oldest = max(log.kept_from, cursor - _SCREEN_BYTES)
    if known and known.size == size and oldest <= known.cursor <= cursor:
        transcript = known.transcript
        for piece in pieces(log.read(known.cursor, cursor - known.cursor)):
            await next_turn()
            transcript.feed(piece)
        transcript.forget()
    else:
        transcript = await _new_transcript(log, cursor)
    is_newest = known is None or known.cursor <= cursor
    log.known = Known(cursor, size, transcript) if is_newest else known
    return copy.deepcopy(transcript)


async def _new_transcript(log: Log, cursor: int) -> Transcript:
    before = _modes_before(log, cursor)
    screen = before[-_SCREEN_BYTES:]
    switch = before.rfind(_BRACKETED_PASTE)
    is_editing = switch >= 0 and before.startswith(b"h", switch + len(_BRACKETED_PASTE))
    transcript = Transcript(log.columns, log.rows)
    transcript.restore(
        sets=sets_after(before),
        is_editing=is_editing,
        sequence=sequence_at(log, cursor - len(screen)),
    )
    # Both look far back where a flood has no escape character, so each gets its own turn.
    await next_turn()
    is_alternate = is_alternate_at(log, cursor)
    for piece in pieces(screen):
        await next_turn()
        transcript.feed(piece)
    if is_alternate:
        transcript.begin_alternate()
    transcript.forget()
    return transcript


def blank_transcript(log: Log, cursor: int, sets: CharacterSets | None = None) -> Transcript:
    """Return a transcript with a blank screen; without `sets`, with those in use at the cursor."""
    if sets is None:
        sets = sets_at(log, cursor)
    transcript = Transcript(log.columns, log.rows)
    transcript.restore(sets=sets, sequence=sequence_at(log, cursor))
    return transcript


async def reading_transcript(
    log: Log, cursor: int, *, is_line: bool = False, sets: CharacterSets | None = None
) -> Transcript:
    """Return a transcript for clean text from a cursor on, which shows commands and screens.

    At the beginning of a line of the main screen, or with `is_line`, we take the screen before it
    as blank, since programs rarely move back to earlier lines, and the character sets may be known.
    """
    is_new = is_line or cursor <= log.kept_from
    if not is_new and log.read(cursor - 1, 1) == b"\n":
        is_new = not is_alternate_at(log, cursor)
    if is_new:
        transcript = blank_transcript(log, cursor, sets)
    else:
        transcript = await transcript_from(log, cursor)
    transcript.shows_commands = True
    transcript.keeps_screens = True
    return transcript


def is_alternate_at(log: Log, cursor: int) -> bool:
    """Tell whether the alternate screen was on at a cursor."""
    oldest = max(log.kept_from, cursor - _FAR_BYTES)
    end = cursor
    while end > oldest:
        start = max(oldest, end - _PIECE_BYTES)
        is_on = last_switch(log.read(start, end - start))
        if is_on is not None:
            return is_on
        if start == oldest:
            break
        end = start + _OVERLAP_BYTES
    return False


async def drawing_at(log: Log, cursor: int, known: Drawing | None = None) -> Drawing:
    """Return a drawing that continues at a cursor: the output before decides whether it is on.

    A `known` one that ends at an earlier cursor saves looking back from there.
    """
    start = max(log.kept_from, cursor - _MODE_BYTES)
    if known and start <= known.end <= cursor:
        drawing = known.copy(log.rows)
        start = known.end
    else:
        drawing = Drawing(start, log.rows, is_alternate=is_alternate_at(log, start))
    # All of it at once: the log may be trimmed at each `await`.
    before = log.read(start, cursor - start)
    for piece in pieces(before):
        await next_turn()
        drawing.feed(piece)
    drawing.forget()
    return drawing


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
