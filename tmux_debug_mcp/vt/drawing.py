"""Recognises that a program draws on the whole screen, from what it prints. No I/O.

A program does that when it has switched to the alternate screen, or has moved the cursor to a place
(CUP, HVP, VPA). To move it to the first place and clear the screen, as `clear` does, is no drawing
unless the cursor is hidden.
"""

import re

# Group: `h` switches to the alternate screen, `l` back to the main screen.
_SWITCH = re.compile(rb"\033\[\?(?:47|1047|1049)([hl])")
# Sequences that tell. What follows a move to the first place has to be there, so that an erasure of
# the screen (ED) behind it is not overlooked. Lookbehinds in Python need a fixed width.
_TOKEN = re.compile(
    rb"""
    \033\[ \? (?:47|1047|1049) ([hl])                 # 1: the alternate screen
    | \033\[ \?25 ([hl])                              # 2: the visibility of the cursor
    | (                                               # 3: a move that is drawing
        \033\[ (?: \d+;\d+[Hf] | \d+d | \d+[Hf] ) (?<! \033\[1;1H ) (?<! \033\[1;1f )
        | (?<! \033\[[23]J ) (?<! \033\[J )           #    to the first place, without an ED before
          \033\[ (?: 1;1 | ; )? [Hf]
          (?= [^\033] | \033[^\[] | \033\[[^0-3J] | \033\[[0-3][^J] )   # and without one behind
      )
    | (                                               # 4: a move to the first place, with an ED
        (?: (?<= \033\[[23]J ) | (?<= \033\[J ) ) \033\[ (?: 1;1 | ; )? [Hf]
        | \033\[ (?: 1;1 | ; )? [Hf] (?= \033\[[0-3]?J )
      )
    """,
    re.DOTALL | re.VERBOSE,
)
# Bytes that are searched again with the next ones. No sequence that tells is longer.
_OVERLAP_BYTES = 16


class Drawing:
    """Whether a program draws on the whole screen, while its output goes by.

    It may have switched to the alternate screen before, or moved the cursor to a place.

    Attributes:
        is_alternate: The alternate screen is on.
        switched_at: The number of bytes fed when the alternate screen was last switched off.
    """

    def __init__(self, *, is_alternate: bool = False, has_addressed: bool = False) -> None:
        self.is_alternate = is_alternate
        self.switched_at = 0
        self._has_addressed = has_addressed
        self._is_cursor_hidden = False
        self._overlap = b""
        self._fed = 0

    @property
    def is_on(self) -> bool:
        """The program draws on the whole screen."""
        return self.is_alternate or self._has_addressed

    def feed(self, data: bytes) -> None:
        """Take the next bytes of output."""
        start = self._fed - len(self._overlap)
        self._fed += len(data)
        data = self._overlap + data
        end = 0
        for token in _TOKEN.finditer(data):
            screen, cursor, move, _ = token.groups()
            end = token.end()
            if screen:
                self.is_alternate = screen == b"h"
                if not self.is_alternate:
                    self._has_addressed = False
                    self.switched_at = start + end
            elif cursor:
                self._is_cursor_hidden = cursor == b"l"
            elif move or self._is_cursor_hidden:
                self._has_addressed = True
        self._overlap = data[max(end, len(data) - _OVERLAP_BYTES) :]


def last_switch(data: bytes) -> bool | None:
    """Tell whether the alternate screen is on after data; None if the data does not switch it."""
    switches = _SWITCH.findall(data)
    if not switches:
        return None
    return bool(switches[-1] == b"h")
