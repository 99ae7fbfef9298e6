"""Box drawing and block elements as shapes, which meet at the edges of their cells.

The characters' Unicode names say what they look like. Fonts leave gaps between them as soon as a
line is higher than their glyphs.
"""

import functools
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

CELL_WIDTH, CELL_HEIGHT = 9, 18
# Where light lines are, in such a way that they fill whole pixels.
_MIDDLE_X, _MIDDLE_Y = 4.5, 8.5

_FIRST, _LAST = "\u2500", "\u259f"
_LIGHT, _HEAVY, _DOUBLE = "LIGHT", "HEAVY", "DOUBLE"
_WEIGHTS = {_LIGHT: _LIGHT, "SINGLE": _LIGHT, _HEAVY: _HEAVY, _DOUBLE: _DOUBLE}
_ARMS = {
    "LEFT": ("LEFT",),
    "RIGHT": ("RIGHT",),
    "UP": ("UP",),
    "DOWN": ("DOWN",),
    "HORIZONTAL": ("LEFT", "RIGHT"),
    "VERTICAL": ("UP", "DOWN"),
}
_OPPOSITE = {"LEFT": "RIGHT", "RIGHT": "LEFT", "UP": "DOWN", "DOWN": "UP"}
_ACROSS = {"LEFT": "UP DOWN", "RIGHT": "UP DOWN", "UP": "LEFT RIGHT", "DOWN": "LEFT RIGHT"}
_DASHES = {"DOUBLE": 2, "TRIPLE": 3, "QUADRUPLE": 4}
_THICKNESS = {_LIGHT: 1, _HEAVY: 3, _DOUBLE: 1}
# The lines of a double line are this far from the middle.
_DOUBLE_OFFSET = 2.0
# The part of a dash's period that is drawn.
_DASHED = 0.6

# Lower and left blocks have eighths of a cell, and quadrants are bits: upper left, upper right,
# lower left, lower right.
_LOWER, _LEFT, _SHADES = "▁▂▃▄▅▆▇█", "▏▎▍▌▋▊▉█", "░▒▓"
_QUADRANTS = dict(zip("▖▗▘▙▚▛▜▝▞▟", (4, 8, 1, 13, 9, 7, 11, 2, 6, 14), strict=True))
# Characters that look the same when one is drawn over several columns.
_STRETCHED = frozenset("─━═▀█▔" + _LOWER + _SHADES)


class Box(NamedTuple):
    """A rectangle, in pixels of a cell."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What a character looks like.

    Attributes:
        boxes: Rectangles to fill.
        line: The path of a curve or a diagonal to draw, "" for none.
        opacity: How much of what is behind the rectangles they cover, from 0 to 1.
    """

    boxes: tuple[Box, ...] = ()
    line: str = ""
    opacity: float = 1.0


def is_drawn(character: str) -> bool:
    """Tell whether a character has a shape here."""
    return _FIRST <= character <= _LAST


def is_stretched(character: str) -> bool:
    """Tell whether several of a character are one wide shape."""
    return character in _STRETCHED


@functools.cache
def shape(character: str) -> Shape:
    """Return the shape of a character that is drawn."""
    name = unicodedata.name(character)
    if "DIAGONAL" in name:
        return _diagonal(name)
    if "ARC" in name:
        return _arc(name)
    if "DASH" in name:
        return _dashes(name)
    if name.startswith("BOX"):
        return _lines(name)
    return _block(character)


def _diagonal(name: str) -> Shape:
    falling = f"M0 0L{CELL_WIDTH} {CELL_HEIGHT}"
    rising = f"M0 {CELL_HEIGHT}L{CELL_WIDTH} 0"
    if "CROSS" in name:
        return Shape(line=falling + rising)
    return Shape(line=rising if "UPPER RIGHT" in name else falling)


def _arc(name: str) -> Shape:
    x = CELL_WIDTH if "RIGHT" in name else 0
    y = CELL_HEIGHT if "DOWN" in name else 0
    bend = _MIDDLE_Y + (_MIDDLE_X if "DOWN" in name else -_MIDDLE_X)
    corner = f"{_MIDDLE_X} {_MIDDLE_Y}"
    return Shape(line=f"M{x} {_MIDDLE_Y}Q{corner} {_MIDDLE_X} {bend:g}V{y}")


def _dashes(name: str) -> Shape:
    words = name.split()
    weight = _WEIGHTS[words[2]]
    count = _DASHES[words[3]]
    thickness = _THICKNESS[weight]
    boxes = []
    for number in range(count):
        if "HORIZONTAL" in words:
            period = CELL_WIDTH / count
            y = _MIDDLE_Y - thickness / 2
            boxes.append(Box(number * period, y, period * _DASHED, thickness))
        else:
            period = CELL_HEIGHT / count
            x = _MIDDLE_X - thickness / 2
            boxes.append(Box(x, number * period, thickness, period * _DASHED))
    return Shape(tuple(boxes))


def _lines(name: str) -> Shape:
    arms = _arms(name.removeprefix("BOX DRAWINGS "))
    boxes = []
    for direction, weight in arms.items():
        if weight != _DOUBLE:
            start = _start_of_single(direction, arms)
            boxes.append(_arm(direction, 0, _THICKNESS[weight], start))
            continue
        for side in _ACROSS[direction].split():
            offset = _DOUBLE_OFFSET if side in ("RIGHT", "DOWN") else -_DOUBLE_OFFSET
            start = _start_of_double(side, direction, arms)
            boxes.append(_arm(direction, offset, _THICKNESS[weight], start))
    return Shape(tuple(boxes))


def _arms(text: str) -> dict[str, str]:
    """Return the weight of each arm: of `DOWN LIGHT AND RIGHT HEAVY`, or `LIGHT DOWN AND RIGHT`."""
    parts = [part.split() for part in text.split(" AND ")]
    common = next((_WEIGHTS[word] for part in parts for word in part if word in _WEIGHTS), _LIGHT)
    arms: dict[str, str] = {}
    for part in parts:
        weight = next((_WEIGHTS[word] for word in part if word in _WEIGHTS), common)
        for word in part:
            arms |= dict.fromkeys(_ARMS.get(word, ()), weight)
    return arms


def _start_of_single(direction: str, arms: dict[str, str]) -> float:
    """Return where a line starts, in pixels from the middle towards its end."""
    across = [arms.get(side, "") for side in _ACROSS[direction].split()]
    if _DOUBLE in across:
        if _OPPOSITE[direction] in arms:
            return 0
        return _DOUBLE_OFFSET if all(across) else -_DOUBLE_OFFSET - 0.5
    # Corners are filled by the thickest line.
    return -max([_THICKNESS[weight] for weight in across if weight], default=0) / 2


def _start_of_double(side: str, direction: str, arms: dict[str, str]) -> float:
    """Return where the line on a side of a double line starts."""
    if arms.get(side) == _DOUBLE:
        return _DOUBLE_OFFSET - 0.5
    if arms.get(_OPPOSITE[side]) == _DOUBLE and _OPPOSITE[direction] not in arms:
        return -_DOUBLE_OFFSET - 0.5
    return 0


def _arm(direction: str, offset: float, thickness: float, start: float) -> Box:
    """Return the box of a line from the middle to an edge.

    Args:
        direction: The edge.
        offset: How far the line is from the middle, to the right or down.
        thickness: Its thickness.
        start: Where it starts: 0 is the middle, and what is positive is nearer to the edge.
    """
    left, top = _MIDDLE_X + offset - thickness / 2, _MIDDLE_Y + offset - thickness / 2
    if direction == "LEFT":
        return Box(0, top, _MIDDLE_X - start, thickness)
    if direction == "RIGHT":
        return Box(_MIDDLE_X + start, top, CELL_WIDTH - _MIDDLE_X - start, thickness)
    if direction == "UP":
        return Box(left, 0, thickness, _MIDDLE_Y - start)
    return Box(left, _MIDDLE_Y + start, thickness, CELL_HEIGHT - _MIDDLE_Y - start)


def _block(character: str) -> Shape:
    width, height = float(CELL_WIDTH), float(CELL_HEIGHT)
    if character in _LOWER:
        part = height * (_LOWER.index(character) + 1) / 8
        return Shape((Box(0, height - part, width, part),))
    if character in _LEFT:
        return Shape((Box(0, 0, width * (_LEFT.index(character) + 1) / 8, height),))
    if character in _SHADES:
        opacity = (_SHADES.index(character) + 1) / 4
        return Shape((Box(0, 0, width, height),), opacity=opacity)
    others = {
        "▀": Box(0, 0, width, height / 2),
        "▐": Box(width / 2, 0, width / 2, height),
        "▔": Box(0, 0, width, height / 8),
        "▕": Box(width * 7 / 8, 0, width / 8, height),
    }
    if character in others:
        return Shape((others[character],))
    quarters = (Box(x, y, width / 2, height / 2) for y in (0, height / 2) for x in (0, width / 2))
    bits = _QUADRANTS[character]
    return Shape(tuple(box for bit, box in enumerate(quarters) if bits >> bit & 1))
