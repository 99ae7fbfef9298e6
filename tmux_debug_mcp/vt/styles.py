"""How cells are shown: colours and attributes, and the SGR sequences that set them. No I/O.

Attributes that do not show in a picture, such as blinking, are ignored. What is incomplete or out
of range has the effect that it has in tmux.

Sources: ECMA-48, 8.3.117; xterm's "Control Sequences", SGR; tmux(1), capture-pane -e.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

# The number of a colour, 0 to 255, or its red, green and blue.
Colour = int | tuple[int, int, int]

# Parameters that switch an attribute on, and those that switch attributes off.
_ON = {
    1: "bold",
    2: "dim",
    3: "italic",
    7: "reverse",
    8: "hidden",
    9: "struck",
    53: "overlined",
}
_OFF = {
    22: ("bold", "dim"),
    23: ("italic",),
    27: ("reverse",),
    28: ("hidden",),
    29: ("struck",),
    55: ("overlined",),
}
# tmux 3.3 writes 53 as if it were a kind of blinking.
_MISWRITTEN = {"5:3": "53"}
# Parameters of underlines, and the kind that they mean by themselves. 4 may have another: `4:3`.
_UNDERLINE = 4
_UNDERLINES = {_UNDERLINE: "single", 21: "double", 24: ""}
_UNDERLINE_KINDS = ("", "single", "double", "curly", "dotted", "dashed")
# Parameters that a colour follows, and those of the default colours.
_COLOURS = {38: "foreground", 48: "background", 58: "underline_colour"}
_DEFAULTS = {39: "foreground", 49: "background", 59: "underline_colour"}
# The first of eight parameters, one for each of the colours from a number on.
_BASIC_COLOURS = {
    30: ("foreground", 0),
    40: ("background", 0),
    90: ("foreground", 8),
    100: ("background", 8),
}
_BASIC_COLOUR_COUNT = 8
# The kinds of colours behind 38, 48 and 58.
_INDEXED = 5
_RGB = 2
_COMPONENTS = 3
_MAX_VALUE = 255
# The words of the longest colour behind semicolons: its kind, red, green, blue.
_MAX_COLOUR_WORDS = 4
# A parameter that is left out, or that no terminal takes because it is too long.
_MISSING = -1
_MAX_DIGITS = 9


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
    reverse: bool = False
    hidden: bool = False
    struck: bool = False
    overlined: bool = False


def style_after(style: Style, parameters: str) -> Style:
    """Return the style after an SGR sequence.

    Args:
        style: The style before it.
        parameters: The parameters of the sequence, separated by semicolons. A parameter may have
            subparameters behind colons.
    """
    words = parameters.split(";")
    position = 0
    while position < len(words):
        word = _MISWRITTEN.get(words[position], words[position])
        position += 1
        number, *subparameters = map(_number, word.split(":"))
        changes: dict[str, Any] = {}
        if subparameters:
            changes = _changes_of_subparameters(number, subparameters)
        elif word == "" or number == 0:
            style = Style()
        elif number in _COLOURS:
            changes, taken = _colour_of_words(_COLOURS[number], words[position:])
            position += taken
        else:
            changes = _changes(number)
        if changes:
            style = replace(style, **changes)
    return style


def _number(word: str) -> int:
    """Return the number that a word is, or `_MISSING` if it is none."""
    if word.isdecimal() and len(word) <= _MAX_DIGITS:
        return int(word)
    return _MISSING


def _changes(number: int) -> dict[str, Any]:
    """Return the attributes that a parameter by itself sets; none if it is unknown."""
    if number in _UNDERLINES:
        return {"underline": _UNDERLINES[number]}
    if number in _ON:
        return {_ON[number]: True}
    if number in _OFF:
        return dict.fromkeys(_OFF[number], False)
    if number in _DEFAULTS:
        return {_DEFAULTS[number]: None}
    digit = number % 10
    if number - digit in _BASIC_COLOURS and digit < _BASIC_COLOUR_COUNT:
        name, first = _BASIC_COLOURS[number - digit]
        return {name: first + digit}
    return {}


def _changes_of_subparameters(number: int, values: Sequence[int]) -> dict[str, Any]:
    """Return the attributes that a parameter with subparameters sets: underline or a colour.

    Args:
        number: The parameter.
        values: The subparameters: the kind of an underline, or a colour, such as `5:N`, `2:R:G:B`
            or `2::R:G:B`.
    """
    if number == _UNDERLINE and values[0] != _MISSING:
        kind = "single"
        if values[0] < len(_UNDERLINE_KINDS):
            kind = _UNDERLINE_KINDS[values[0]]
        return {"underline": kind}
    if number not in _COLOURS:
        return {}
    kind_of_colour, *rest = values
    if kind_of_colour == _INDEXED and rest:
        return {_COLOURS[number]: _indexed(rest[0])}
    if kind_of_colour == _RGB:
        has_colour_space = len(rest) > _COMPONENTS
        return _rgb_change(_COLOURS[number], rest[int(has_colour_space) :])
    return {}


def _colour_of_words(name: str, words: Sequence[str]) -> tuple[dict[str, Any], int]:
    """Return the colour that the words behind 38, 48 or 58 set, and how many words it takes.

    Args:
        name: The attribute that the colour is for.
        words: The parameters that follow: `5;N` or `2;R;G;B`, and others.
    """
    numbers = [_number(word) for word in words[:_MAX_COLOUR_WORDS]]
    numbers += [_MISSING] * (_MAX_COLOUR_WORDS - len(numbers))
    kind, *values = numbers
    if kind == _INDEXED:
        return {name: _indexed(values[0])}, 2
    if kind == _RGB:
        change = _rgb_change(name, values)
        if change:
            return change, _MAX_COLOUR_WORDS
    return {}, 1


def _indexed(number: int) -> Colour | None:
    """Return one of the 256 colours, or None, the default, if there is none of this number."""
    if 0 <= number <= _MAX_VALUE:
        return number
    return None


def _rgb_change(name: str, values: Sequence[int]) -> dict[str, Any]:
    """Return the colour of red, green and blue; none if one is missing or out of range."""
    components = tuple(values[:_COMPONENTS])
    is_complete = len(components) == _COMPONENTS
    if is_complete and all(0 <= value <= _MAX_VALUE for value in components):
        return {name: components}
    return {}
