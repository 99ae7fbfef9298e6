"""Pictures of screens, drawn with Pillow in the format PNG.

Every cell is 10 by 20 pixels and holds its character, whatever the font makes of it. Fonts, in this order: DejaVu Sans
Mono, which is in the package; those of the system that have the character; GNU Unifont, whose bitmaps are in the
package, too. Marks are characters of their own in this, and are drawn over the one that they join. The cursor is an
outline, so that it hides nothing, in contrast to each pixel that it is on.
"""

import bisect
import contextlib
import functools
import io
import lzma
import math
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFont

from .rows import cell_width
from .screen import Cell, Screen
from .styles import Colour, Style

CELL_WIDTH, CELL_HEIGHT = 10, 20

_FONTS = Path(__file__).parent / "fonts"
# The size at which DejaVu Sans Mono is 10 pixels wide, and where its baseline is then.
_FONT_SIZE = 16.61
_BASELINE = 16
_UNIFONT_ROWS = 16
_UNIFONT_TOP = 2
# The size of the pictures in fonts of coloured emoji.
_EMOJI_SIZE = 109
_FONTS_S = 5.0
_SLANT = 0.2
_EMBOLDEN = 0.7
_EMOJI = "\ufe0f"
# Marks and letters that only tell how to draw others, or hold a place; Unifont has pictures of them.
_UNSEEN = re.compile("[\u034f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")

_FOREGROUND, _BACKGROUND = (229, 229, 229), (0, 0, 0)
# xterm's.
_PALETTE = (
    *(
        (0, 0, 0),
        (205, 0, 0),
        (0, 205, 0),
        (205, 205, 0),
        (0, 0, 238),
        (205, 0, 205),
        (0, 205, 205),
        (229, 229, 229),
    ),
    *((127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0)),
    *((92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)),
)
_BRIGHT = 8
_CUBE = (0, 95, 135, 175, 215, 255)

_Rgb = tuple[int, int, int]


def draw(screen: Screen) -> bytes:
    """Return a picture of a screen: PNG, of its columns and rows times the size of a cell."""
    image = Image.new(
        "RGB", (screen.columns * CELL_WIDTH, screen.height * CELL_HEIGHT), _BACKGROUND
    )
    painter = _Painter(image)
    for number, row in enumerate(screen.rows[: screen.height]):
        painter.row(number, row)
    if screen.is_cursor_shown:
        _outline(image, screen)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _outline(image: Image.Image, screen: Screen) -> None:
    """Draw the cursor: light where the picture is dark, and dark where it is light."""
    x, y, width = (
        screen.cursor[0] * CELL_WIDTH,
        screen.cursor[1] * CELL_HEIGHT,
        _width_at(screen, screen.cursor),
    )
    box = (x, y, x + width, y + CELL_HEIGHT)
    light, dark = _FOREGROUND[0], _BACKGROUND[0]
    middle = (light + dark) // 2
    contrast = image.crop(box).convert("L").point([light] * middle + [dark] * (256 - middle))
    edge = Image.new("1", contrast.size)
    ImageDraw.Draw(edge).rectangle((0, 0, width - 1, CELL_HEIGHT - 1), outline=1)
    image.paste(contrast.convert("RGB"), box, edge)


def _width_at(screen: Screen, place: tuple[int, int]) -> int:
    """Return the width of the cell at a column of a row."""
    column = 0
    for cell in screen.rows[place[1]] if place[1] < len(screen.rows) else ():
        if column == place[0]:
            return cell.width * CELL_WIDTH
        column += cell.width
    return CELL_WIDTH


def rgb(colour: Colour | None, default: _Rgb) -> _Rgb:
    """Return red, green and blue of a colour."""
    if colour is None:
        return default
    if isinstance(colour, tuple):
        return colour
    if colour < len(_PALETTE):
        return _PALETTE[colour]
    if colour < 232:  # noqa: PLR2004
        red, rest = divmod(colour - 16, 36)
        return _CUBE[red], _CUBE[rest // 6], _CUBE[rest % 6]
    return (8 + 10 * (colour - 232),) * 3


class _Painter:
    """Draws rows of cells on an image."""

    def __init__(self, image: Image.Image) -> None:
        self._image = image
        self._draw = ImageDraw.Draw(image)
        self._fonts = _Fonts()

    def row(self, number: int, row: Sequence[Cell]) -> None:
        """Draw a row, cell by cell: nothing of one is in another."""
        x, y = 0, number * CELL_HEIGHT
        for cell in row:
            width = cell.width * CELL_WIDTH
            foreground, background = _colours(cell.style)
            if background != _BACKGROUND:
                self._draw.rectangle((x, y, x + width - 1, y + CELL_HEIGHT - 1), fill=background)
            if not cell.style.hidden:
                if not cell.text.isspace():
                    self._text(cell, (x, y), foreground)
                self._lines(cell.style, (x, y), width, foreground)
            x += width

    def _text(self, cell: Cell, corner: tuple[int, int], colour: _Rgb) -> None:
        width, style = cell.width * CELL_WIDTH, cell.style
        if picture := self._fonts.picture(cell.text, width):
            self._image.paste(picture, corner, picture)
        else:
            mask = self._fonts.mask(cell.text, width, is_bold=style.bold, is_italic=style.italic)
            self._image.paste(colour, corner, mask)

    def _lines(self, style: Style, corner: tuple[int, int], width: int, foreground: _Rgb) -> None:
        """Draw underlines and the like."""
        x, y = corner
        right = x + width - 1
        if style.struck:
            self._draw.line((x, y + 9, right, y + 9), foreground)
        if style.overlined:
            self._draw.line((x, y, right, y), foreground)
        colour, base = rgb(style.underline_colour, foreground), y + CELL_HEIGHT - 2
        if style.underline in ("single", "double"):
            self._draw.line((x, base, right, base), colour)
        if style.underline == "double":
            self._draw.line((x, base - 2, right, base - 2), colour)
        period, on = {"dotted": (2, 1), "dashed": (5, 3)}.get(style.underline, (1, 0))
        points = [(at, base) for at in range(x, right + 1) if (at - x) % period < on]
        if style.underline == "curly":
            points = [
                (at, base - (0, 1, 2, 1)[(at - x) // 2 % 4] + 1) for at in range(x, right + 1)
            ]
        self._draw.point(points, colour)


def _colours(style: Style) -> tuple[_Rgb, _Rgb]:
    """Return the colours of a style's text and background."""
    number = style.foreground
    if style.bold and isinstance(number, int) and number < _BRIGHT:
        number += _BRIGHT  # as in xterm
    foreground, background = rgb(number, _FOREGROUND), rgb(style.background, _BACKGROUND)
    if style.reverse:
        foreground, background = background, foreground
    if style.dim:
        red, green, blue = (
            (one + other) // 2 for one, other in zip(foreground, background, strict=True)
        )
        foreground = (red, green, blue)
    return foreground, background


@dataclass(frozen=True, slots=True)
class _SystemFont:
    path: str
    index: int
    is_coloured: bool
    ranges: Sequence[tuple[int, int]]  # in order

    def has(self, character: str) -> bool:
        number = ord(character)
        at = bisect.bisect_right(self.ranges, number, key=lambda span: span[0])
        return at > 0 and number <= self.ranges[at - 1][1]


class _Fonts:
    """The fonts, and what they make of characters."""

    def __init__(self) -> None:
        self._font = ImageFont.truetype(
            _FONTS / "DejaVuSansMono.ttf", _FONT_SIZE, layout_engine=ImageFont.Layout.BASIC
        )
        self._missing = bytes(self._font.getmask("\uffff"))
        self._masks: dict[tuple[str, int, bool, bool], Image.Image] = {}
        self._pictures: dict[tuple[str, int], Image.Image | None] = {}

    def mask(self, text: str, width: int, *, is_bold: bool, is_italic: bool) -> Image.Image:
        """Return where a cell has ink, in an image of this width and a cell's height."""
        key = (text, width, is_bold, is_italic)
        if key not in self._masks:
            mask = self._drawn(unicodedata.normalize("NFC", text), width, is_bold=is_bold)
            if is_italic:
                slanted = (1, _SLANT, -_SLANT * _BASELINE / 2, 0, 1, 0)
                mask = mask.transform(
                    mask.size, Image.Transform.AFFINE, slanted, Image.Resampling.BILINEAR
                )
            self._masks[key] = mask
        return self._masks[key]

    def _drawn(self, text: str, width: int, *, is_bold: bool) -> Image.Image:
        mask = self._ink(text[0], width, is_bold=is_bold) or _box(width)
        for mark in filter(_is_mark, text[1:]):
            if ink := self._ink(mark, width, is_bold=is_bold):
                mask = ImageChops.lighter(mask, ink)
        return mask

    def _ink(self, character: str, width: int, *, is_bold: bool) -> Image.Image | None:
        """Return the ink of a character or mark in a cell by itself; None if no font has it."""
        font: ImageFont.FreeTypeFont | None = self._font
        if not self._has(character):
            found = self._system_font(character, is_coloured=False)
            font = _fitting(found, character, width) if found else None
        if font:
            start, end = _extent(font, character)
            mask = Image.new("L", (max(width, math.ceil(end - start)), CELL_HEIGHT))
            left = (mask.width - end - start) // 2
            for shift in (0.0, _EMBOLDEN) if is_bold else (0.0,):
                ImageDraw.Draw(mask).text(
                    (left + shift, _BASELINE), character, 255, font, anchor="ls"
                )
        elif glyph := self._unifont(character):
            mask = Image.new("L", (max(width, glyph.width), CELL_HEIGHT))
            mask.paste(glyph, ((mask.width - glyph.width) // 2, _UNIFONT_TOP))
        else:
            return None
        return (
            mask if mask.width == width else mask.resize((width, CELL_HEIGHT), Image.Resampling.BOX)
        )

    def _has(self, character: str) -> bool:
        return character.isascii() or bytes(self._font.getmask(character)) != self._missing

    def picture(self, text: str, width: int) -> Image.Image | None:
        """Return a wide character that has colours of its own, if there is a font with it."""
        if width < 2 * CELL_WIDTH:
            return None
        if (text, width) not in self._pictures:
            self._pictures[text, width] = self._coloured(text, width)
        return self._pictures[text, width]

    def _coloured(self, text: str, width: int) -> Image.Image | None:
        character = text[0]
        font = self._system_font(character, is_coloured=True)
        if font is None or (self._has(character) and _EMOJI not in text):
            return None
        with contextlib.suppress(OSError, ValueError):
            loaded = ImageFont.truetype(font.path, _EMOJI_SIZE, font.index)
            image = Image.new("RGBA", (_EMOJI_SIZE * 5 // 4, _EMOJI_SIZE * 5 // 4))
            ImageDraw.Draw(image).text((0, 0), character, font=loaded, embedded_color=True)
            if box := image.getbbox():
                shown = image.crop(box).resize(
                    (width - 2, CELL_HEIGHT - 2), Image.Resampling.LANCZOS
                )
                framed = Image.new("RGBA", (width, CELL_HEIGHT))
                framed.paste(shown, (1, 1))
                return framed
        return None

    def _system_font(self, character: str, *, is_coloured: bool) -> _SystemFont | None:
        fonts = (
            font
            for font in self._system_fonts
            if font.is_coloured == is_coloured and font.has(character)
        )
        return next(fonts, None)

    @functools.cached_property
    def _system_fonts(self) -> list[_SystemFont]:
        """The system's fonts, those of one width first; none where there is no fontconfig."""
        if not shutil.which("fc-list"):
            return []
        words = ["fc-list", "--format", "%{file}\t%{index}\t%{color}\t%{charset}\n"]
        try:
            listed = subprocess.run(
                words, capture_output=True, text=True, timeout=_FONTS_S, check=False
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return []
        fonts = []
        for line in listed.splitlines():
            path, index, colour, ranges = line.split("\t")
            if path.endswith((".ttf", ".otf", ".ttc")) and int(index) < 1 << 16:
                pairs = (word.partition("-") for word in ranges.split())
                spans = sorted((int(start, 16), int(end or start, 16)) for start, _, end in pairs)
                fonts.append(_SystemFont(path, int(index), colour == "True", spans))
        styles = ("Bold", "Oblique", "Italic")
        return sorted(
            fonts,
            key=lambda font: (
                "Mono" not in font.path,
                any(word in font.path for word in styles),
                font.path,
            ),
        )

    def _unifont(self, character: str) -> Image.Image | None:
        """Return a bitmap of 8 or 16 by 16, if Unifont has the character."""
        number, bitmaps = ord(character), self._bitmaps
        # The lines are in the order of their numbers; this is the end of the last one that has no greater number.
        at = (
            bisect.bisect_right(
                range(len(bitmaps)), number, key=lambda place: _number_at(bitmaps, place)
            )
            - 1
        )
        if at < 0 or _number_at(bitmaps, at) != number:
            return None
        line = bitmaps[bitmaps.rfind(b"\n", 0, at) + 1 : at]
        bits = bytes.fromhex(line.partition(b":")[2].decode())
        return Image.frombytes("1", (len(bits) * 8 // _UNIFONT_ROWS, _UNIFONT_ROWS), bits)

    @functools.cached_property
    def _bitmaps(self) -> bytes:
        return lzma.decompress((_FONTS / "unifont.hex.xz").read_bytes()).lstrip()


def _number_at(bitmaps: bytes, place: int) -> int:
    """Return the number of the character whose line is, with its end, at this place of Unifont's lines."""
    start = bitmaps.rfind(b"\n", 0, place) + 1
    return int(bitmaps[start : bitmaps.index(b":", start)], 16)


def _is_mark(character: str) -> bool:
    """Return whether a character that is in a cell with another has ink of its own."""
    is_format = unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")
    return cell_width(character) == 0 and not is_format and not _UNSEEN.match(character)


def _box(width: int) -> Image.Image:
    """Return the ink of a character that no font has."""
    mask = Image.new("L", (width, CELL_HEIGHT))
    left, top = width // 2 - 4, _UNIFONT_TOP + 1
    ImageDraw.Draw(mask).rectangle((left, top, left + 7, top + 13), outline=255)
    return mask


def _extent(font: ImageFont.FreeTypeFont, character: str) -> tuple[float, float]:
    """Return where a character starts and ends on its line: what it takes there, or a mark's ink."""
    if cell_width(character):
        return 0, font.getlength(character)
    start, _, end, _ = font.getbbox(character, anchor="ls")
    return start, end


def _fitting(font: _SystemFont, character: str, width: int) -> ImageFont.FreeTypeFont:
    """Return a font in the largest size at which the character fits; marks are as large as characters that do."""
    loaded = _loaded(font, _FONT_SIZE)
    if cell_width(character) and (length := loaded.getlength(character)) > width:
        loaded = _loaded(font, _FONT_SIZE * width / length)
    return loaded


def _loaded(font: _SystemFont, size: float) -> ImageFont.FreeTypeFont:
    """Return a font without the layout that draws a circle below marks that are by themselves."""
    return ImageFont.truetype(font.path, size, font.index, layout_engine=ImageFont.Layout.BASIC)
