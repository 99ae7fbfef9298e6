"""Draws pictures of screens with Pillow, as PNG.

Each cell has 10 by 20 pixels, and draws nothing outside them. The cursor is an outline that
contrasts with each pixel under it, so that it hides nothing.
"""

import io

from PIL import Image, ImageDraw

from .glyphs import CELL_HEIGHT, CELL_WIDTH, Glyphs
from .screen import Cell, DrawnScreen
from .styles import BACKGROUND, FOREGROUND, Rgb, colours, rgb

_Point = tuple[int, int]

# The rows of pixels of lines within a cell.
_STRUCK_Y = CELL_HEIGHT // 2 - 1
_UNDERLINE_Y = CELL_HEIGHT - 2
# The period of dotted and dashed underlines, and how many of its pixels are drawn.
_DASHES = {"dotted": (2, 1), "dashed": (5, 3)}
# The heights of a curly underline, two pixels each.
_CURL = (0, 1, 2, 1)


def draw(screen: DrawnScreen) -> bytes:
    """Return a picture of a screen as PNG: its columns and rows times the size of a cell."""
    size = (screen.columns * CELL_WIDTH, screen.height * CELL_HEIGHT)
    image = Image.new("RGB", size, BACKGROUND)
    painter = _Painter(image)
    for number, row in enumerate(screen.rows[: screen.height]):
        x = 0
        for cell in row:
            painter.draw_cell(cell, (x, number * CELL_HEIGHT))
            x += cell.width * CELL_WIDTH
    if screen.is_cursor_shown:
        _draw_cursor(image, screen)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


class _Painter:
    """Draws cells on an image."""

    def __init__(self, image: Image.Image) -> None:
        self._image = image
        self._draw = ImageDraw.Draw(image)
        self._glyphs = Glyphs()

    def draw_cell(self, cell: Cell, corner: _Point) -> None:
        """Draw a cell, given its upper left corner."""
        foreground, background = colours(cell.style)
        style = cell.style
        width = cell.width * CELL_WIDTH
        if background != BACKGROUND:
            x, y = corner
            box = (x, y, x + width - 1, y + CELL_HEIGHT - 1)
            self._draw.rectangle(box, fill=background)
        if style.hidden:
            return
        picture = None if cell.text.isspace() else self._glyphs.picture(cell.text, width)
        if picture is not None:
            self._image.paste(picture, corner, picture)
        elif not cell.text.isspace():
            mask = self._glyphs.mask(cell.text, width, is_bold=style.bold, is_italic=style.italic)
            self._image.paste(foreground, corner, mask)
        self._draw_lines(cell, corner, foreground)

    def _draw_lines(self, cell: Cell, corner: _Point, foreground: Rgb) -> None:
        x, y = corner
        right = x + cell.width * CELL_WIDTH - 1
        style = cell.style
        if style.struck:
            self._draw.line((x, y + _STRUCK_Y, right, y + _STRUCK_Y), foreground)
        if style.overlined:
            self._draw.line((x, y, right, y), foreground)
        colour = rgb(style.underline_colour, foreground)
        kind = style.underline
        y += _UNDERLINE_Y
        offsets = range(right + 1 - x)
        points: list[_Point] = []
        if kind in ("single", "double"):
            self._draw.line((x, y, right, y), colour)
        if kind == "double":
            self._draw.line((x, y - 2, right, y - 2), colour)
        if kind in _DASHES:
            period, on = _DASHES[kind]
            points = [(x + offset, y) for offset in offsets if offset % period < on]
        if kind == "curly":
            heights = [_CURL[offset // 2 % len(_CURL)] for offset in offsets]
            points = [(x + offset, y - heights[offset] + 1) for offset in offsets]
        self._draw.point(points, colour)


def _draw_cursor(image: Image.Image, screen: DrawnScreen) -> None:
    """Outline the cursor's cell: light where the picture is dark, dark where it is light."""
    column, row = screen.cursor
    x = column * CELL_WIDTH
    y = row * CELL_HEIGHT
    width = screen.cursor_width * CELL_WIDTH
    box = (x, y, x + width, y + CELL_HEIGHT)
    light, dark = FOREGROUND[0], BACKGROUND[0]
    middle = (light + dark) // 2
    opposites = [light] * middle + [dark] * (256 - middle)
    contrast = image.crop(box).convert("L").point(opposites)
    edge = Image.new("1", contrast.size)
    ImageDraw.Draw(edge).rectangle((0, 0, width - 1, CELL_HEIGHT - 1), outline=1)
    image.paste(contrast.convert("RGB"), box, edge)
