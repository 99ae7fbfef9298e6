"""The character sets of a terminal that tmux knows: ASCII, and DEC's line drawing set. No I/O.

A program designates a set as G0 (`ESC ( 0`, `ESC ( B`) or as G1 (`ESC ) 0`, `ESC ) B`), and invokes
G1 with SO and G0 with SI. Sources: ECMA-35; xterm's "Control Sequences", SCS.
"""

from typing import NamedTuple

# Maps letters to the characters that they show in the line drawing set.
LINE_DRAWING = str.maketrans("+,-.0`afghijklmnopqrstuvwxyz{|}~", "→←↑↓▮◆▒°±▒☃┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

# The control characters SO and SI.
SHIFT_OUT = "\016"
SHIFT_IN = "\017"


class CharacterSets(NamedTuple):
    """Whether G0 and G1 are the line drawing set, and whether SO has put G1 in use."""

    g0: bool = False
    g1: bool = False
    is_shifted: bool = False

    @property
    def is_drawing(self) -> bool:
        """Letters show line drawing."""
        return self.g1 if self.is_shifted else self.g0

    @property
    def is_usual(self) -> bool:
        """Letters show letters, and `ESC ( B` and SI change nothing."""
        return not (self.is_shifted or self.g0)

    @property
    def sequences(self) -> str:
        """What to send to a new terminal so that it uses these sets."""
        sequences = ""
        if self.g0:
            sequences += "\033(0"
        if self.g1:
            sequences += "\033)0"
        if self.is_shifted:
            sequences += SHIFT_OUT
        return sequences

    def after(self, control: str) -> "CharacterSets":
        """Return the sets after SO, SI or what follows ESC in a designation, such as `(0`."""
        if control in (SHIFT_OUT, SHIFT_IN):
            return self._replace(is_shifted=control == SHIFT_OUT)
        is_drawing = control[1] == "0"
        if control[0] == "(":
            return self._replace(g0=is_drawing)
        return self._replace(g1=is_drawing)


def sets_after(data: bytes) -> CharacterSets:
    """Return the sets that are in use after a program's output, which began with the usual sets."""
    since_reset = data[data.rfind(b"\033c") + 1 :]
    return CharacterSets(
        g0=_is_drawing_designated(since_reset, b"\033("),
        g1=_is_drawing_designated(since_reset, b"\033)"),
        is_shifted=since_reset.rfind(SHIFT_OUT.encode()) > since_reset.rfind(SHIFT_IN.encode()),
    )


def _is_drawing_designated(data: bytes, escape: bytes) -> bool:
    """Tell whether the last designation of a set is that of line drawing."""
    start = data.rfind(escape)
    return start >= 0 and data.startswith(escape + b"0", start)
