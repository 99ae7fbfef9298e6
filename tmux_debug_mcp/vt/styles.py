"""How cells are shown: colours and attributes, and the SGR sequences that set them. No I/O.

Sources: ECMA-48, 8.3.117; xterm's "Control Sequences", SGR; tmux(1), capture-pane -e.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

# The number of a colour, 0 to 255, or its red, green and blue.
Colour = int | tuple[int, int, int]

# Parameters that switch an attribute on, and those that switch attributes off.
_ON = {
    1: "bold",
    2: "dim",
    3: "italic",
    5: "blink",
    7: "reverse",
    8: "hidden",
    9: "struck",
    53: "overlined",
}
_OFF = {
    22: ("bold", "dim"),
    23: ("italic",),
    25: ("blink",),
    27: ("reverse",),
    28: ("hidden",),
    29: ("struck",),
    55: ("overlined",),
}
# tmux 3.3 writes 53 as if it were a kind of blinking.
_MISWRITTEN = {"5:3": "53"}
# Parameters of underlines, to the number of the kind: 4 has a kind, `4:3`, or means single.
_UNDERLINES = {4: 1, 21: 2, 24: 0}
_UNDERLINE_KINDS = ("", "single", "double", "curly", "dotted", "dashed")
# Parameters that a colour follows, and those of the default colours.
_COLOURS = {38: "foreground", 48: "background", 58: "underline_colour"}
_DEFAULTS = {39: "foreground", 49: "background", 59: "underline_colour"}
# The first of ten parameters, one for each of the colours from a number on.
_BASIC_COLOURS = {
    30: ("foreground", 0),
    40: ("background", 0),
    90: ("foreground", 8),
    100: ("background", 8),
}
# The kinds of colours behind 38, 48 and 58.
_INDEXED = 5
_RGB = 2


@dataclass(frozen=True, slots=True)
class Style:
    """How a cell is shown.

    Attributes:
        foreground: The colour of the text; None is the terminal's default.
        background: The colour behind the text; None is the terminal's default.
        underline: Empty for none, or `single`, `double`, `curly`, `dotted` or `dashed`.
        underline_colour: None is the colour of the text.
    """

    foreground: Colour | None = None
    background: Colour | None = None
    underline: str = ""
    underline_colour: Colour | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    blink: bool = False
    reverse: bool = False
    hidden: bool = False
    struck: bool = False
    overlined: bool = False


def style_after(style: Style, parameters: str) -> Style:
    """Return the style after an SGR sequence.

    Args:
        style: The style before it.
        parameters: The parameters of the sequence, separated by semicolons.
    """
    words = (_MISWRITTEN.get(word, word) for word in parameters.split(";"))
    for word in words:
        number, *subparameters = [int(part or 0) for part in word.split(":")]
        if number == 0:
            style = Style()
        elif number in _COLOURS:
            style = _with(style, _COLOURS[number], _colour(subparameters, words))
        else:
            changes = _changes(number, subparameters)
            style = replace(style, **changes)
    return style


def _changes(number: int, subparameters: Sequence[int]) -> dict[str, Any]:
    """Return the attributes that a parameter without a colour sets; none if it is unknown."""
    if number in _UNDERLINES:
        return {"underline": _underline(number, subparameters)}
    if number in _ON:
        return {_ON[number]: True}
    if number in _OFF:
        return dict.fromkeys(_OFF[number], False)
    if number in _DEFAULTS:
        return {_DEFAULTS[number]: None}
    digit = number % 10
    if number - digit in _BASIC_COLOURS:
        name, first = _BASIC_COLOURS[number - digit]
        return {name: first + digit}
    return {}


def _with(style: Style, name: str, colour: Colour | None) -> Style:
    changes: dict[str, Any] = {name: colour}
    return replace(style, **changes)


def _underline(number: int, subparameters: Sequence[int]) -> str:
    kind = _UNDERLINES[number]
    if subparameters:
        kind = subparameters[0]
    if kind < len(_UNDERLINE_KINDS):
        return _UNDERLINE_KINDS[kind]
    return "single"


def _colour(subparameters: Sequence[int], words: Iterator[str]) -> Colour | None:
    """Return the colour behind 38, 48 or 58.

    Args:
        subparameters: The colour, if it is given behind colons: `38:5:N`, `38:2::R:G:B`.
        words: Else it is taken from the next parameters: `38;5;N`, `38;2;R;G;B`.
    """
    if subparameters:
        kind, *values = subparameters
        if kind == _INDEXED:
            return values[0] & 255
        if kind == _RGB:
            red, green, blue = subparameters[-3:]
            return red & 255, green & 255, blue & 255
        return None
    kind = _next_number(words)
    if kind == _INDEXED:
        return _next_number(words) & 255
    if kind == _RGB:
        red, green, blue = _next_number(words), _next_number(words), _next_number(words)
        return red & 255, green & 255, blue & 255
    return None


def _next_number(words: Iterator[str]) -> int:
    return int(next(words, "") or 0)
