"""The glyphs of characters, as fonts draw them into cells of 10 by 20 pixels.

Fonts, in this order: DejaVu Sans Mono, which is in the package; the system's fonts that have the
character; GNU Unifont, whose bitmaps are in the package too. Marks are separate characters here,
drawn over the character that they join.
"""

import bisect
import contextlib
import functools
import lzma
import math
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFont

from tmux_debug_mcp.vt.rows import EMOJI_SELECTOR, cell_width

CELL_WIDTH, CELL_HEIGHT = 10, 20

_FONTS = Path(__file__).parent / "fonts"
# DejaVu Sans Mono is 10 pixels wide at this size, and its baseline leaves room for descenders.
_FONT_SIZE = 16.61
_BASELINE = 16
# Unifont's bitmaps have 16 rows; two rows above and below fill the cell.
_UNIFONT_ROWS = 16
_UNIFONT_TOP = 2
# The only size of the bitmaps in fonts of coloured emoji, and room for one bitmap.
_EMOJI_SIZE = 109
_EMOJI_CANVAS = (_EMOJI_SIZE * 5 // 4, _EMOJI_SIZE * 5 // 4)
# The time for fc-list, which may build its cache first.
_FC_LIST_S = 5.0
# Formats that Pillow reads, and the number of faces in a file that FreeType can address.
_FONT_FILES = (".ttf", ".otf", ".ttc")
_MAX_FACES = 1 << 16
# Italic moves ink by this much for each pixel of height. Bold draws ink twice, at this distance.
_SLANT = 0.2
_EMBOLDEN = 0.7

# Marks and letters without ink, of which Unifont has pictures: joiners, fillers, variation
# selectors.
_WITHOUT_INK = re.compile(
    "[\u034f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# General categories of characters without ink: controls, formats and separators.
_FORMATS = ("Cc", "Cf", "Zl", "Zp")


@dataclass(frozen=True, slots=True)
class SystemFont:
    """A face of a font of the system: the file, and the number of the face in it.

    `ranges` lists the first and the last code point of each range of characters, ascending.
    """

    path: str
    index: int
    is_coloured: bool
    ranges: Sequence[tuple[int, int]]

    def has(self, character: str) -> bool:
        """Return whether the font has a character."""
        number = ord(character)
        following = bisect.bisect_right(self.ranges, (number, sys.maxunicode))
        return following > 0 and number <= self.ranges[following - 1][1]

    def load(self, size: float) -> ImageFont.FreeTypeFont:
        """Return the font in a size.

        The basic layout draws no dotted circle below a lone mark.
        """
        basic = ImageFont.Layout.BASIC
        return ImageFont.truetype(self.path, size, self.index, layout_engine=basic)

    def rank(self) -> tuple[bool, bool, str]:
        """Return a sort key that puts monospaced fonts first, then regular fonts."""
        is_styled = any(style in self.path for style in ("Bold", "Oblique", "Italic"))
        return "Mono" not in self.path, is_styled, self.path


def _system_font(line: str) -> SystemFont | None:
    """Return the font in a line of fc-list, None if Pillow can't read it."""
    path, index, colour, charset = line.split("\t")
    if not path.endswith(_FONT_FILES) or int(index) >= _MAX_FACES:
        return None
    ranges = []
    for word in charset.split():  # such as `20-7e a0`
        first, _, last = word.partition("-")
        ranges.append((int(first, 16), int(last or first, 16)))
    return SystemFont(path, int(index), colour == "True", sorted(ranges))


class Glyphs:
    """The glyphs of cells, each drawn once."""

    def __init__(self) -> None:
        path = _FONTS / "DejaVuSansMono.ttf"
        basic = ImageFont.Layout.BASIC
        self._font = ImageFont.truetype(path, _FONT_SIZE, layout_engine=basic)
        # What the font draws for characters that it lacks.
        self._missing = bytes(self._font.getmask("\uffff"))
        self._masks: dict[tuple[str, int, bool, bool], Image.Image] = {}
        self._pictures: dict[tuple[str, int], Image.Image | None] = {}

    def mask(self, text: str, width: int, *, is_bold: bool, is_italic: bool) -> Image.Image:
        """Return the ink of a cell's character and its marks, in an image as high as a cell.

        `width` is that of the image, in pixels.
        """
        key = (text, width, is_bold, is_italic)
        if key in self._masks:
            return self._masks[key]
        shown = unicodedata.normalize("NFC", text)
        mask = self._ink(shown[0], width, is_bold=is_bold)
        if mask is None:  # a box
            mask = Image.new("L", (width, CELL_HEIGHT))
            left, top = width // 2 - 4, _UNIFONT_TOP + 1
            ImageDraw.Draw(mask).rectangle((left, top, left + 7, top + 13), outline=255)
        for mark in filter(_is_mark, shown[1:]):
            ink = self._ink(mark, width, is_bold=is_bold)
            if ink is not None:
                mask = ImageChops.lighter(mask, ink)
        if is_italic:
            # Slanted around the middle of the height above the baseline.
            matrix = (1, _SLANT, -_SLANT * _BASELINE / 2, 0, 1, 0)
            affine, smooth = Image.Transform.AFFINE, Image.Resampling.BILINEAR
            mask = mask.transform(mask.size, affine, matrix, smooth)
        self._masks[key] = mask
        return mask

    def _ink(self, character: str, width: int, *, is_bold: bool) -> Image.Image | None:
        """Return the ink of one character or mark in its cell; None if no font has it."""
        font = self._font if self._has(character) else self._fitting(character, width)
        if font:
            mask = _ink_of_font(font, character, width, is_bold=is_bold)
        else:
            bits = self._unifont.get(b"%04X" % ord(character))
            if bits is None:
                return None
            data = bytes.fromhex(bits.decode())
            bitmap = Image.frombytes("1", (len(data) * 8 // _UNIFONT_ROWS, _UNIFONT_ROWS), data)
            mask = Image.new("L", (max(width, bitmap.width), CELL_HEIGHT))
            mask.paste(bitmap, ((mask.width - bitmap.width) // 2, _UNIFONT_TOP))
        if mask.width == width:
            return mask
        return mask.resize((width, CELL_HEIGHT), Image.Resampling.BOX)

    def _has(self, character: str) -> bool:
        return character.isascii() or bytes(self._font.getmask(character)) != self._missing

    def _fitting(self, character: str, width: int) -> ImageFont.FreeTypeFont | None:
        """Return the system's font for a character, smaller if it is too wide; None if none has it.

        Marks keep the usual size.
        """
        font = self._found(character, is_coloured=False)
        if font is None:
            return None
        loaded = font.load(_FONT_SIZE)
        length = loaded.getlength(character)
        if cell_width(character) and length > width:
            return font.load(_FONT_SIZE * width / length)
        return loaded

    def picture(self, text: str, width: int) -> Image.Image | None:
        """Return a wide cell as a coloured font draws it; None if it is narrow or none does."""
        if width < 2 * CELL_WIDTH:
            return None
        key = (text, width)
        if key not in self._pictures:
            self._pictures[key] = None
            font = self._found(text[0], is_coloured=True)
            is_text = self._has(text[0]) and EMOJI_SELECTOR not in text
            if font and not is_text:
                with contextlib.suppress(OSError, ValueError):
                    self._pictures[key] = _coloured_glyph(font, text[0], width)
        return self._pictures[key]

    def _found(self, character: str, *, is_coloured: bool) -> SystemFont | None:
        """Return the first of the system's fonts, coloured or not, that has a character."""
        for font in self._system_fonts:
            if font.is_coloured == is_coloured and font.has(character):
                return font
        return None

    @functools.cached_property
    def _system_fonts(self) -> Sequence[SystemFont]:
        """The fonts that fontconfig lists, monospaced fonts first, then regular fonts."""
        if not shutil.which("fc-list"):
            return []
        argv = ["fc-list", "--format", "%{file}\t%{index}\t%{color}\t%{charset}\n"]
        try:
            process = subprocess.run(
                argv, capture_output=True, text=True, timeout=_FC_LIST_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        fonts = filter(None, map(_system_font, process.stdout.splitlines()))
        return sorted(fonts, key=SystemFont.rank)

    @functools.cached_property
    def _unifont(self) -> Mapping[bytes, bytes]:
        """The bitmaps of GNU Unifont in hexadecimal, by code points of four digits or more."""
        lines = lzma.decompress((_FONTS / "unifont.hex.xz").read_bytes()).split()
        return dict(line.split(b":") for line in lines)


def _is_mark(character: str) -> bool:
    """Return whether a character joins another and has ink."""
    if cell_width(character) != 0 or unicodedata.category(character) in _FORMATS:
        return False
    return not _WITHOUT_INK.match(character)


def _ink_of_font(
    font: ImageFont.FreeTypeFont, character: str, width: int, *, is_bold: bool
) -> Image.Image:
    """Return the ink of a character in an image of this width, or wider if it does not fit."""
    start, end = 0.0, font.getlength(character)
    if not cell_width(character):  # a mark has ink beside its advance
        start, _, end, _ = font.getbbox(character, anchor="ls")
    mask = Image.new("L", (max(width, math.ceil(end - start)), CELL_HEIGHT))
    left = (mask.width - end - start) // 2
    draw = ImageDraw.Draw(mask)
    draw.text((left, _BASELINE), character, 255, font, anchor="ls")
    if is_bold:
        draw.text((left + _EMBOLDEN, _BASELINE), character, 255, font, anchor="ls")
    return mask


def _coloured_glyph(font: SystemFont, character: str, width: int) -> Image.Image | None:
    """Return the coloured glyph of a character with a margin, None if it is empty.

    Raises:
        OSError: The font can't be loaded.
        ValueError: The font has no glyphs of the size.
    """
    loaded = ImageFont.truetype(font.path, _EMOJI_SIZE, font.index)
    image = Image.new("RGBA", _EMOJI_CANVAS)
    ImageDraw.Draw(image).text((0, 0), character, font=loaded, embedded_color=True)
    box = image.getbbox()
    if box is None:
        return None
    size = (width - 2, CELL_HEIGHT - 2)
    shown = image.crop(box).resize(size, Image.Resampling.LANCZOS)
    framed = Image.new("RGBA", (width, CELL_HEIGHT))
    framed.paste(shown, (1, 1))
    return framed
