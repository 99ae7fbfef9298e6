"""The character sets of a terminal, as tmux has them: letters, and DEC's line drawing. No I/O.

A program puts one into G0 (`ESC ( 0`, `ESC ( B`) and one into G1 (`ESC ) 0`, `ESC ) B`), and goes to and fro between
these with SO and SI.
"""

from typing import NamedTuple

# What letters stand for in the set for line drawing.
LINE_DRAWING = str.maketrans("+,-.0`afghijklmnopqrstuvwxyz{|}~", "→←↑↓▮◆▒°±▒☃┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


class CharacterSets(NamedTuple):
    """The sets that are in use.

    Attributes:
        g0: Whether G0 has line drawing.
        g1: The same of G1.
        is_shifted: G1 is used.
    """

    g0: bool = False
    g1: bool = False
    is_shifted: bool = False

    @property
    def is_drawing(self) -> bool:
        """Whether letters are line drawing now."""
        return self.g1 if self.is_shifted else self.g0

    @property
    def is_usual(self) -> bool:
        """Whether letters are letters, and stay so with `ESC ( B` and SI."""
        return not (self.is_shifted or self.g0)

    @property
    def sequences(self) -> str:
        """What a new terminal has to be sent to use them."""
        return "\033(0" * self.g0 + "\033)0" * self.g1 + "\016" * self.is_shifted

    def after(self, control: str) -> "CharacterSets":
        r"""Return those after SO, SI, or `(0`, `(B`, `)0` or `)B` behind an escape character."""
        if control in "\016\017":
            return self._replace(is_shifted=control == "\016")
        is_drawing = control[1] == "0"
        return self._replace(g0=is_drawing) if control[0] == "(" else self._replace(g1=is_drawing)


def sets_after(data: bytes) -> CharacterSets:
    """Return those that a program's output leaves on."""
    data = data[data.rfind(b"\033c") + 1 :]
    return CharacterSets(
        _is_drawn(data, b"\033("), _is_drawn(data, b"\033)"), is_shifted=data.rfind(b"\016") > data.rfind(b"\017")
    )


def _is_drawn(data: bytes, escape: bytes) -> bool:
    at = data.rfind(escape)
    end = at + len(escape)
    return at >= 0 and data[end : end + 1] == b"0"
