"""Recognises from output alone where a program draws on the whole screen. No I/O.

A program draws on the screen once it

- switches to the alternate screen, until it switches back, or
- moves the cursor to a place on the main screen (CUP, HVP, VPA), until output continues in lines:
  the whole screen scrolls, a line editor begins (it switches bracketed paste on), the cursor
  returns to where it was saved before, or the terminal is reset.

Moving the cursor to the first place and clearing the screen, as `clear` does, is not drawing,
unless the cursor is hidden or moves to another place before the first line ends.
"""

import copy
import re

from .sizes import ROWS

# Group: `h` switches to the alternate screen, `l` back to the main screen. The second also finds
# sequences that switch another mode first, and takes three times as long.
_SWITCH = re.compile(rb"\033\[\?(?:47|1047|1049)(?:;\d{1,4})?([hl])")
_ANY_SWITCH = re.compile(rb"\033\[\?(?:\d{1,4};)?(?:47|1047|1049)(?:;\d{1,4})?([hl])")
# Sequences that matter. No terminal takes numbers of more digits.
_TOKEN = re.compile(
    rb"""
    \033 (?:
        \[ \? (?:\d{1,4};)? (?:47|1047|1049) (?:;\d{1,4})? ([hl]) # 1: the alternate screen
      | \[ \? 25 ([hl])                         # 2: the visibility of the cursor
      | \[ (?: (?: [01]?;[01]? )? [Hf] ) ()    # 3: a move to the first place
      | \[ (?: (\d{0,9}) ; \d{0,9} [Hf] | (\d{1,9}) [dHf] ) # 4, 5: a move to another one: its row
      | \[ (\d{0,9}) (?: ; (\d{0,9}) )? r       # 6, 7: the scroll region (DECSTBM)
      | (c | \[\?2004h)                         # 8: a reset (RIS); a line editor begins
      | (7 | \[s)                               # 9: the cursor is saved (DECSC)
      | (8 | \[u)                               # 10: and restored (DECRC)
    )
    """,
    re.VERBOSE,
)
# An erasure of the screen (ED), and what may become one with more bytes.
_ERASURE = re.compile(rb"\033\[[0-3]?J")
_PART_OF_ERASURE = re.compile(rb"(?:\033(?:\[[0-3]?)?)?")
_ERASURE_BYTES = 4
# Bytes that are searched again with the next ones. No sequence that matters is longer.
_OVERLAP_BYTES = 22
# The group of a move to the first place.
_HOME = 3
# Of more spans than this, some in the middle are forgotten. No result shows lines between so many.
_MAX_SPANS = 512
_FIRST_SPANS = 64


class Drawing:
    """Tracks where a program draws on the whole screen, as its output goes by.

    Attributes:
        start: The cursor of the first byte.
        rows: How many rows the screen has.
        is_alternate: The alternate screen is on.
        spans: The parts of the output that drew, each from one cursor to another, in order,
            without the current one. If there are many, only the first and the newest.
        forgotten: The part of the output from the first to the last span between these that is
            forgotten, with all that was printed between them; None if none is.
        on_since: Where the last drawing began: the cursor after its first sequence, and after an
            erasure of the screen right after that.
    """

    def __init__(
        self,
        start: int = 0,
        rows: int = ROWS,
        *,
        is_alternate: bool = False,
    ) -> None:
        self.start = start
        self.is_alternate = is_alternate
        self.spans: list[tuple[int, int]] = []
        self.forgotten: tuple[int, int] | None = None
        self.rows = rows
        self._is_addressed = False
        self.on_since = start
        self._begun_at = start if is_alternate else 0
        self._moved_to = 0  # where the last move to a place ends
        self._row = 0  # the row of that move
        self._cleared_at = -1  # where the screen was cleared, if no line has ended since
        self._line_feeds = 0  # since then
        self._has_region = False
        self._was_addressed = False  # when the cursor was saved
        self._is_cursor_hidden = False
        self._overlap = b""
        self._end = start

    @property
    def is_on(self) -> bool:
        """A program draws on the whole screen."""
        return self.is_alternate or self._is_addressed

    @property
    def end(self) -> int:
        """The cursor after the bytes that went by."""
        return self._end

    def copy(self, rows: int | None = None) -> "Drawing":
        """Return a drawing that continues this one, on a screen of so many rows."""
        other = copy.copy(self)
        other.spans = list(self.spans)
        other.rows = rows or self.rows
        return other

    def all_spans(self) -> list[tuple[int, int]]:
        """Return the spans, what is forgotten as one, and the current one up to the end."""
        spans = list(self.spans)
        if self.forgotten:
            spans.insert(_FIRST_SPANS, self.forgotten)
        if self.is_on:
            spans.append((self._begun_at, self._end))
        return spans

    def forget(self) -> None:
        """Forget the spans so far; a current one begins here."""
        self.start = self._begun_at = self._moved_to = self._end
        self.spans.clear()
        self.forgotten = None

    def skip_to(self, cursor: int) -> None:
        """Go on at a cursor; the output before it that did not go by is no longer to be had."""
        if cursor > self._end:
            self._end = cursor
            self._overlap = b""

    def feed(self, data: bytes | bytearray) -> None:
        """Take the next bytes of output."""
        begin = self._end - len(self._overlap)
        self._end += len(data)
        data = self._overlap + data
        counted = len(self._overlap)  # line feeds before this are counted
        end = 0
        for token in _TOKEN.finditer(data):
            self._count_line_feeds(data, counted, token.start())
            if token.lastindex == _HOME and _PART_OF_ERASURE.fullmatch(data, token.end()):
                counted = max(counted, token.start())
                break  # the next bytes decide what it is
            end = token.end()
            counted = max(counted, end)
            self._take(token, begin)
        self._count_line_feeds(data, counted, len(data))
        self._overlap = data[max(end, len(data) - _OVERLAP_BYTES) :]

    def _count_line_feeds(self, data: bytes | bytearray, start: int, end: int) -> None:
        """Count line feeds after a move on the main screen. Drawing ends if they scroll it."""
        if not self._is_addressed or self.is_alternate:
            if data.find(b"\n", start, end) >= 0:
                self._cleared_at = -1
            return
        self._line_feeds += data.count(b"\n", start, end)
        if self._row + self._line_feeds > self.rows and not self._has_region:
            self._stop(self._moved_to)

    def _take(self, token: re.Match[bytes], begin: int) -> None:
        """Take a sequence that matters; `begin` is the cursor of the data that contains it."""
        screen, cursor, home, row, line, top, bottom, reset, save, restore = token.groups()
        start, end = begin + token.start(), begin + token.end()
        if screen:
            self._switch(start, end, is_alternate=screen == b"h")
        elif cursor:
            self._is_cursor_hidden = cursor == b"l"
        elif row is not None or line or home is not None:
            erased_at = _erased_at(token) if home is not None else None
            if erased_at is None or self._is_cursor_hidden:
                self._move(start, end, int(row or line or 1), begin + (erased_at or token.end()))
            elif not self.is_on:
                self._cleared_at = start
        elif reset:
            self._cleared_at = -1
            self._stop_on_main(start)
            self._has_region = False
        elif save:
            self._was_addressed = self._is_addressed
        elif restore:
            if not self._was_addressed:
                self._stop_on_main(end)
        else:
            is_whole = int(top or 1) <= 1 and int(bottom or self.rows) >= self.rows
            self._has_region = not is_whole

    def _move(self, start: int, end: int, row: int, on_since: int) -> None:
        """Take a move to a row, between two cursors: that is drawing."""
        self._begin(start if self._cleared_at < 0 else self._cleared_at, on_since)
        self._cleared_at = -1
        self._is_addressed = True
        self._moved_to = max(end, self.start)
        self._row = row
        self._line_feeds = 0

    def _switch(self, start: int, end: int, *, is_alternate: bool) -> None:
        self._cleared_at = -1
        if is_alternate:
            self._begin(start, end)
            self.is_alternate = True
        else:
            self._stop(start)

    def _begin(self, cursor: int, on_since: int) -> None:
        if not self.is_on:
            self._begun_at = max(cursor, self.start)
            self.on_since = on_since

    def _stop_on_main(self, cursor: int) -> None:
        if not self.is_alternate:
            self._stop(cursor)

    def _stop(self, cursor: int) -> None:
        if self.is_on and cursor > self._begun_at:
            self.spans.append((self._begun_at, cursor))
        if len(self.spans) > _MAX_SPANS:
            middle = slice(_FIRST_SPANS, _MAX_SPANS // 2)
            first, *_, last = self.spans[middle]
            start, _ = self.forgotten or first
            self.forgotten = (start, last[1])
            del self.spans[middle]
        self.is_alternate = self._is_addressed = False


def _erased_at(home: re.Match[bytes]) -> int | None:
    """Return where a move to the first place and an erasure of the screen beside it end.

    None without an erasure.
    """
    data, start, end = home.string, home.start(), home.end()
    if erasure := _ERASURE.match(data, end):
        return erasure.end()
    before = data[max(0, start - _ERASURE_BYTES) : start]
    return end if re.search(_ERASURE.pattern + rb"$", before) else None


def last_switch(data: bytes) -> bool | None:
    """Tell whether the alternate screen is on after data; None if the data does not switch it."""
    pattern = _ANY_SWITCH if b";1049" in data else _SWITCH
    switches = pattern.findall(data)
    if not switches:
        return None
    return bool(switches[-1] == b"h")
