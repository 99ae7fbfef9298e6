"""Makes the outlines of box drawing and block elements that SVG pictures have, from the font.

Run it where fontTools is installed: `python tests/boxes.py`. Lines come to whole pixels of a cell,
so that they are sharp, and all outlines end at the edges of the cell, where the next one begins.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from fontTools.pens.basePen import BasePen
from fontTools.ttLib import TTFont

FONTS = Path(__file__).resolve().parents[1] / "tmux_debug_mcp" / "pictures" / "fonts"
BOXES, DIAGONALS, BLOCKS = range(0x2500, 0x2580), range(0x2571, 0x2574), range(0x2580, 0x25A0)
# Coordinates of the font's lines and edges, and of the cell: light lines have one pixel, heavy
# ones three.
COLUMNS = [(-20, 0), (376, 3), (456, 3), (536, 4), (696, 5), (776, 6), (856, 6), (1252, 9)]
ROWS = [(-512, 18), (446, 10), (532, 10), (618, 9), (790, 8), (876, 7), (962, 7), (1920, 0)]


class Outline(BasePen):  # type: ignore[misc]  # fontTools has no types
    """Writes an outline as a path of SVG, relative to the corner of its cell."""

    def __init__(self, glyphs: object, columns: list[Any], rows: list[Any]) -> None:
        super().__init__(glyphs)
        self.path = ""
        self._columns, self._rows = columns, rows
        self._start = self._at = (0.0, 0.0)

    def _offset(self, point: tuple[float, float]) -> tuple[float, float]:
        x, y = _between(self._columns, point[0]), _between(self._rows, point[1])
        return round(x - self._at[0], 1), round(y - self._at[1], 1)

    def _go(self, command: str, *offsets: tuple[float, float]) -> None:
        numbers = [f"{number:g}" for offset in offsets for number in offset]
        self.path += command + " ".join(numbers).replace(" -", "-")
        x, y = offsets[-1]
        self._at = (self._at[0] + x, self._at[1] + y)

    def _moveTo(self, pt: tuple[float, float]) -> None:
        self._go("m", self._offset(pt))
        self._start = self._at

    def _lineTo(self, pt: tuple[float, float]) -> None:
        x, y = self._offset(pt)
        if x and y:
            self._go("l", (x, y))
        elif x or y:
            self.path += f"h{x:g}" if x else f"v{y:g}"
            self._at = (self._at[0] + x, self._at[1] + y)

    def _qCurveToOne(self, pt1: tuple[float, float], pt2: tuple[float, float]) -> None:
        self._go("q", self._offset(pt1), self._offset(pt2))

    def _closePath(self) -> None:
        self.path += "z"
        self._at = self._start


def _between(anchors: list[tuple[float, float]], place: float) -> float:
    """Return where a coordinate of the font is in the cell; the edges for what is beyond them."""
    place = min(max(place, anchors[0][0]), anchors[-1][0])
    pairs = pairwise(anchors)
    (start, low), (end, high) = next(pair for pair in pairs if place <= pair[1][0])
    return round(low + (place - start) / (end - start) * (high - low), 1)


def outlines() -> dict[str, str]:
    font = TTFont(FONTS / "DejaVuSansMono.ttf")
    glyphs, names = font.getGlyphSet(), font.getBestCmap()
    found = {}
    for number in (*BOXES, *BLOCKS):
        has_lines = number in BOXES and number not in DIAGONALS
        anchors = (COLUMNS, ROWS) if has_lines else (COLUMNS[::7], ROWS[::7])
        pen = Outline(glyphs, *anchors)
        glyphs[names[number]].draw(pen)
        found[chr(number)] = pen.path
    # Shades are boxes that cover less.
    return found | dict.fromkeys("░▒▓", found["█"])


if __name__ == "__main__":
    text = json.dumps(outlines(), ensure_ascii=False, indent=0)
    (FONTS / "boxes.json").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(text)} bytes\n")
