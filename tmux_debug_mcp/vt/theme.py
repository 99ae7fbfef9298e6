"""The colours that pictures of screens have: those of a dark terminal, xterm's. No I/O."""

from collections.abc import Sequence

from .styles import Colour, Style

Rgb = tuple[int, int, int]

FOREGROUND: Rgb = (229, 229, 229)
BACKGROUND: Rgb = (0, 0, 0)
# The first 16 of the 256 colours, xterm's defaults: from black to white, then the bright ones.
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
# A bold colour below this is shown as the bright one, this many further on.
_BRIGHT = 8
# A cube of 6 by 6 by 6 colours with these values follows, then shades of grey. Source: xterm.
_CUBE_START = len(_PALETTE)
_CUBE = (0, 95, 135, 175, 215, 255)
_GREY_START = _CUBE_START + len(_CUBE) ** 3


def colours(style: Style) -> tuple[Rgb, Rgb]:
    """Return the colours of the text and of what is behind it, given its attributes."""
    number = style.foreground
    if style.bold and isinstance(number, int) and number < _BRIGHT:
        number += _BRIGHT  # as in xterm
    foreground = rgb(number, FOREGROUND)
    background = rgb(style.background, BACKGROUND)
    if style.reverse:
        foreground, background = background, foreground
    if style.dim:
        foreground = _mixed(foreground, background)
    return foreground, background


def _mixed(one: Rgb, other: Rgb) -> Rgb:
    red, green, blue = [(first + second) // 2 for first, second in zip(one, other, strict=True)]
    return red, green, blue


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
