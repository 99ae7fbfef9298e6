"""A terminal's screen as cells, read from a capture with attributes (tmux(1), capture-pane -e).

SGR sequences stay in effect on the next lines, and characters between SO and SI are of the line
drawing set. No I/O.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tmux_debug_mcp.vt.charsets import LINE_DRAWING, SHIFT_OUT
from tmux_debug_mcp.vt.rows import EMOJI_SELECTOR, cell_width
from tmux_debug_mcp.vt.sequences import LINK, SGR

from .styles import Style, style_after

# Groups: SGR, SO or SI, a character.
_TOKEN = re.compile(rf"({SGR})|{LINK}|([\016\017])|(.)", re.DOTALL)
_ZERO_WIDTH_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


class Cell(NamedTuple):
    """A character and those that join it, 1 or 2 columns wide."""

    text: str
    width: int
    style: Style


@dataclass(frozen=True, slots=True)
class DrawnScreen:
    """What a terminal shows.

    Attributes:
        columns: The width of the terminal, in cells.
        height: Its height, in rows.
        cursor: The cursor's column and row, from 0.
        is_cursor_shown: The program shows the cursor.
        rows: The cells of each row from the first column on. The columns after them are blank.
    """

    columns: int
    height: int
    cursor: tuple[int, int]
    is_cursor_shown: bool
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)

    def text(self) -> str:
        """Return the rows without trailing blanks, and without blank rows at the end."""
        rows = ["".join([cell.text for cell in row]).rstrip(" ") for row in self.rows]
        return "\n".join(rows).rstrip("\n")

    @property
    def cursor_width(self) -> int:
        """The width in columns of the cell that the cursor is on."""
        cursor_column, number = self.cursor
        column = 0
        for cell in self.rows[number] if number < len(self.rows) else ():
            if column == cursor_column:
                return cell.width
            column += cell.width
        return 1


def captured_cells(data: bytes, *, widens_emoji: bool) -> list[list[Cell]]:
    """Return the cells of each row of a capture with attributes.

    A tmux that `widens_emoji` makes a character followed by U+FE0F two columns wide, and joins
    skin tones to the character before them. Versions before 3.4 do not.
    """
    rows: list[list[Cell]] = []
    style = Style()
    is_drawing = False
    for line in data.decode(errors="replace").removesuffix("\n").split("\n"):
        row: list[Cell] = []
        for match in _TOKEN.finditer(line):
            attributes, shift, character = match.groups()
            if attributes:
                style = style_after(style, attributes[2:-1])
            elif shift:
                is_drawing = shift == SHIFT_OUT
            elif character:
                if is_drawing:
                    character = character.translate(LINE_DRAWING)
                _add(row, character, style, widens_emoji=widens_emoji)
        rows.append(row)
    return rows


def _add(row: list[Cell], character: str, style: Style, *, widens_emoji: bool) -> None:
    """Add a character to a row, in a new cell or in the last."""
    width = cell_width(character)
    if not row:
        if width:
            row.append(Cell(character, width, style))
        return
    last = row[-1]
    is_skin_tone = ord(character) in _SKIN_TONES and last.width > 1
    is_joined = width == 0 or last.text.endswith(_ZERO_WIDTH_JOINER)
    if is_joined or (widens_emoji and is_skin_tone):
        joined_width = last.width
        if widens_emoji and character == EMOJI_SELECTOR:
            joined_width = 2
        row[-1] = last._replace(text=last.text + character, width=joined_width)
    else:
        row.append(Cell(character, width, style))
