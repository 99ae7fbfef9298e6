"""Whether a program draws on the whole screen, told from what it prints: no I/O.

It does when it has switched to the alternate screen, or has moved the cursor to a place of its choice. To go to the
first place and clear the screen, as `clear` does, is nothing but a new beginning, unless the cursor was hidden before.
"""

import re

_SWITCH = re.compile(rb"\033\[\?(?:47|1047|1049)([hl])")
# Groups: the alternate screen; the cursor's visibility; a move to a place; a move to the first place to clear the
# screen. What follows a move has to be there, so that an erasure is not overlooked.
_TOKEN = re.compile(
    rb"\033\[\?(?:47|1047|1049)([hl])|\033\[\?25([hl])"
    rb"|(\033\[(?:\d+;\d+[Hf]|\d+d|\d+[Hf])(?<!\033\[1;1H)(?<!\033\[1;1f)"
    rb"|(?<!\033\[[23]J)(?<!\033\[J)\033\[(?:1;1|;)?[Hf](?=[^\033]|\033[^\[]|\033\[[^0-3J]|\033\[[0-3][^J]))"
    rb"|((?:(?<=\033\[[23]J)|(?<=\033\[J))\033\[(?:1;1|;)?[Hf]|\033\[(?:1;1|;)?[Hf](?=\033\[[0-3]?J))",
    re.DOTALL,
)
# No sequence that is looked for is longer.
_OVERLAP_BYTES = 16


class Drawing:
    """A program at its screen.

    Args:
        is_alternate: It has switched to the alternate screen before.
        has_addressed: It has moved the cursor to a place of its choice before.

    Attributes:
        is_alternate: The alternate screen is on.
        switched_at: How many bytes it had printed when the alternate screen went off the last time.
    """

    def __init__(self, *, is_alternate: bool = False, has_addressed: bool = False) -> None:
        self.is_alternate = is_alternate
        self.switched_at = 0
        self._has_addressed = has_addressed
        self._is_cursor_hidden = False
        self._end = b""
        self._fed = 0

    @property
    def is_on(self) -> bool:
        """Whether it draws on the whole screen."""
        return self.is_alternate or self._has_addressed

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        data = self._end + data
        begin, at = self._fed - len(self._end), 0
        self._fed += len(data) - len(self._end)
        for token in _TOKEN.finditer(data):
            screen, cursor, place, _ = token.groups()
            at = token.end()
            if screen:
                self.is_alternate = screen == b"h"
            elif cursor:
                self._is_cursor_hidden = cursor == b"l"
            elif place or self._is_cursor_hidden:
                self._has_addressed = True
            if screen == b"l":
                self._has_addressed = False
                self.switched_at = begin + at
        self._end = data[max(at, len(data) - _OVERLAP_BYTES) :]


def last_switch(data: bytes) -> bool | None:
    """Return whether the alternate screen is on behind data, or None where that does not switch it."""
    switches = _SWITCH.findall(data)
    return switches[-1] == b"h" if switches else None
