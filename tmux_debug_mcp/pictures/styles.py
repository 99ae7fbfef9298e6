"""How cells are shown: colours and attributes, and the SGR sequences that set them. No I/O.

Attributes that do not show in a picture, such as blinking, are ignored. Incomplete sequences and
values out of range have the same effect as in tmux. Pictures have xterm's colours, on black.

Sources: ECMA-48, 8.3.117; xterm's "Control Sequences", SGR; tmux(1), capture-pane -e.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

# The number of a colour, 0 to 255, or its red, green and blue.
Colour = int | tuple[int, int, int]
Rgb = tuple[int, int, int]

FOREGROUND: Rgb = (229, 229, 229)
BACKGROUND: Rgb = (0, 0, 0)
# The first 16 of the 256 colours, xterm's defaults: from black to white, then the bright colours.
_PALETTE: Sequence[Rgb] = (
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
)
# A bold colour below this is shown as the bright colour, this many further on.
_BRIGHT = 8
# A cube of 6 by 6 by 6 colours with these values follows, then shades of grey. Source: xterm.
_CUBE_START = len(_PALETTE)
_CUBE = (0, 95, 135, 175, 215, 255)
_GREY_START = _CUBE_START + len(_CUBE) ** 3


def _basic(name: str, first: int, colour: int) -> dict[int, dict[str, Any]]:
    """Return what eight parameters set: the colours from a number on."""
    return {first + number: {name: colour + number} for number in range(8)}


# What each parameter sets on its own.
_CHANGES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": "single"},
    7: {"reverse": True},
    8: {"hidden": True},
    9: {"struck": True},
    21: {"underline": "double"},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": ""},
    27: {"reverse": False},
    28: {"hidden": False},
    29: {"struck": False},
    39: {"foreground": None},
    49: {"background": None},
    53: {"overlined": True},
    55: {"overlined": False},
    59: {"underline_colour": None},
    **_basic("foreground", 30, 0),
    **_basic("background", 40, 0),
    **_basic("foreground", 90, 8),
    **_basic("background", 100, 8),
}
# tmux 3.3 writes 53 as if it were a kind of blinking.
_MISWRITTEN = {"5:3": "53"}
# The parameter that the kind of an underline may follow: `4:3`.
_UNDERLINE = 4
_UNDERLINE_KINDS = ("", "single", "double", "curly", "dotted", "dashed")
# Parameters that a colour follows, and the kinds of colours.
_COLOURS = {38: "foreground", 48: "background", 58: "underline_colour"}
_INDEXED = 5
_RGB = 2
_COMPONENTS = 3
_MAX_VALUE = 255
# The words of the longest colour with semicolons: its kind, red, green, blue.
_MAX_COLOUR_WORDS = 4
# A parameter that is left out, or that no terminal takes because it is too long.
_MISSING = -1
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Style:
    """How a cell is shown.

    None is the terminal's default colour, or the text's for an underline. The underline is empty
    for none, or `single`, `double`, `curly`, `dotted` or `dashed`.
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
    """Return the style after an SGR sequence, given its parameters, separated by semicolons.

    A parameter may have subparameters after colons.
    """
    words = parameters.split(";")
    while words:
        word = words.pop(0)
        number, *values = map(_number, _MISWRITTEN.get(word, word).split(":"))
        changes: dict[str, Any] = {}
        if values:
            changes = _changes_of_subparameters(number, values)
        elif word == "" or number == 0:
            style = Style()
        elif number in _COLOURS:
            values = [_number(word) for word in words[:_MAX_COLOUR_WORDS]]
            values += [_MISSING] * (_MAX_COLOUR_WORDS - len(values))
            changes = _colour(_COLOURS[number], values)
            # What belongs to 38, 48 or 58, even if it is not a colour.
            if values[0] == _INDEXED:
                del words[:2]
            else:
                del words[: _MAX_COLOUR_WORDS if changes else 1]
        else:
            changes = _CHANGES.get(number, {})
        if changes:
            style = replace(style, **changes)
    return style


def _number(word: str) -> int:
    """Return the number in a word, or `_MISSING` if it isn't a number."""
    if word.isdecimal() and len(word) <= _MAX_DIGITS:
        return int(word)
    return _MISSING


def _changes_of_subparameters(number: int, values: Sequence[int]) -> dict[str, Any]:
    """Return what a parameter with subparameters sets: the kind of an underline, or a colour.

    The subparameters of colours are `5:N`, `2:R:G:B` or `2::R:G:B`.
    """
    kind, *rest = values
    if number == _UNDERLINE and kind != _MISSING:
        is_known = kind < len(_UNDERLINE_KINDS)
        return {"underline": _UNDERLINE_KINDS[kind] if is_known else "single"}
    if number not in _COLOURS:
        return {}
    has_colour_space = kind == _RGB and len(rest) > _COMPONENTS
    return _colour(_COLOURS[number], [kind, *rest[has_colour_space:]])


def _colour(name: str, values: Sequence[int]) -> dict[str, Any]:
    """Return the change of a colour; {} if its kind is unknown, or red, green or blue invalid.

    The values are the kind of the colour, and its number or its red, green and blue.
    """
    kind, *components = values
    are_valid = [0 <= value <= _MAX_VALUE for value in components[:_COMPONENTS]]
    if kind == _INDEXED and components:
        # The default, if there is no colour of this number.
        return {name: components[0] if are_valid[0] else None}
    if kind == _RGB and len(are_valid) == _COMPONENTS and all(are_valid):
        return {name: tuple(components[:_COMPONENTS])}
    return {}


def colours(style: Style) -> tuple[Rgb, Rgb]:
    """Return the colours of the text and its background, given its attributes."""
    number = style.foreground
    if style.bold and isinstance(number, int) and number < _BRIGHT:
        number += _BRIGHT  # as in xterm
    foreground = rgb(number, FOREGROUND)
    background = rgb(style.background, BACKGROUND)
    if style.reverse:
        foreground, background = background, foreground
    if style.dim:
        pairs = zip(foreground, background, strict=True)
        red, green, blue = [(ahead + behind) // 2 for ahead, behind in pairs]
        foreground = red, green, blue
    return foreground, background


def rgb(colour: Colour | None, default: Rgb) -> Rgb:
    """Return red, green and blue of a colour, each from 0 to 255."""
    if colour is None:
        return default
    if isinstance(colour, tuple):
        return colour
    if colour < _CUBE_START:
        return _PALETTE[colour]
    if colour < _GREY_START:
        red, rest = divmod(colour - _CUBE_START, 36)
        green, blue = divmod(rest, 6)
        return _CUBE[red], _CUBE[green], _CUBE[blue]
    grey = 8 + 10 * (colour - _GREY_START)
    return grey, grey, grey
