"""Rows of a terminal's screen, and the lines that they make up: no I/O."""

import functools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_TAB_COLUMNS = 8

# Where libc, which tmux asks, has other widths than categories and East Asian widths tell: Arabic and other signs that
# go around what follows them, Hangul's vowels and finals, numbers in circles and hexagrams.
_WIDTHS = (
    *((0x0600, 0x0605, 1), (0x06DD, 0x06DD, 1), (0x070F, 0x070F, 1), (0x0890, 0x0891, 1), (0x08E2, 0x08E2, 1)),
    *((0x1160, 0x11FF, 0), (0x3248, 0x324F, 2), (0x4DC0, 0x4DFF, 2), (0xD7B0, 0xD7FF, 0)),
    *((0x110BD, 0x110BD, 1), (0x110CD, 0x110CD, 1)),
)
# Marks and formats, which join; and separators, which tmux drops.
_NO_WIDTH = ("Mn", "Me", "Cf", "Zl", "Zp")
# A cell of tmux takes 21 bytes, a newer one 32.
_CELL_BYTES = 32
# Stands where something is that is no more to be shown. No terminal shows it.
FORGOTTEN = "\0"
# More than most screens have, in any language.
_WIDTHS_KEPT = 1 << 12


class Line(NamedTuple):
    """A line of the transcript.

    Attributes:
        text: What it shows.
        is_edited: A line editor wrote in it.
        is_command: It is where a line editor stood when keys were sent, so it shows what they were.
        goes_on: It is a part of a very long line, which goes on in the next.
    """

    text: str
    is_edited: bool = False
    is_command: bool = False
    goes_on: bool = False


class Row:
    """A row of the screen: its text, or its cells once it was edited.

    A wide character or a tab has its first cell; the others are empty. Columns count from 0. To erase, delete and
    insert leaves a row that goes on in the next one as wide as the terminal.

    Attributes:
        is_wrapped: It goes on in the next row.
        is_edited: A line editor wrote in it.
        is_command: A line editor stood in it when keys were sent.
        is_old: Nothing was written to it since all that was there was forgotten.
    """

    __slots__ = ("cells", "is_command", "is_edited", "is_old", "is_wrapped", "text")

    def __init__(self, text: str = "", *, is_wrapped: bool = False) -> None:
        self.text = text
        self.cells: list[str] | None = None
        self.is_wrapped = is_wrapped
        self.is_edited = self.is_command = self.is_old = False

    def __str__(self) -> str:
        return self.text if self.cells is None else "".join(self.cells)

    def edit(self) -> list[str]:
        """Return its cells, to be changed."""
        if self.cells is None:
            self.cells = []
            for character in self.text:
                width = _TAB_COLUMNS - len(self.cells) % _TAB_COLUMNS if character == "\t" else cell_width(character)
                if width or not self.cells:
                    self.cells += [character, *[""] * (width - 1)]
                else:
                    join(self.cells, -1, character)
        return self.cells

    def put(self, column: int, characters: Sequence[str]) -> None:
        """Write cells over what is there."""
        cells = self.edit()
        end = column + len(characters)
        if column < len(cells):
            _split(cells, column)
            _split(cells, end)
        else:
            cells += " " * (column - len(cells))
        cells[column:end] = characters

    def erase(self, start: int, end: int, width: int) -> None:
        """Make blanks of cells, or the row shorter."""
        cells = self.edit()
        _split(cells, start)
        _split(cells, end)
        if start < len(cells):
            cells[start:end] = " " * (end - start) if end < len(cells) else ""
        self._fill(width)

    def delete(self, start: int, end: int, width: int) -> None:
        """Delete cells; what is behind them moves up."""
        cells = self.edit()
        _split(cells, start)
        _split(cells, end)
        _make_tabs_blanks(cells)
        del cells[start:end]
        self._fill(width)

    def insert_blanks(self, column: int, count: int, width: int) -> None:
        """Insert blanks; what is pushed out of the row is lost."""
        cells = self.edit()
        cells += " " * (column - len(cells))
        _split(cells, column)
        _make_tabs_blanks(cells)
        cells[column:column] = " " * count
        del cells[width:]
        self._fill(width)

    def _fill(self, width: int) -> None:
        if self.is_wrapped:
            cells = self.edit()
            cells += " " * (width - len(cells))


def text_of(lines: Iterable[Line]) -> str:
    """Return lines with a line feed behind each that is whole."""
    return "".join([line.text if line.goes_on else line.text + "\n" for line in lines])


def lines_of(begun: list[Row], rows: Sequence[Row], cursor: int) -> list[Line]:
    """Return the lines of a screen whose first one has begun above it."""
    lines: list[Line] = []
    for row in rows:
        begun.append(row)
        if not row.is_wrapped:
            lines += joined(begun)
            begun = []
    lines += joined(begun)
    while len(lines) > 1 and not lines[-1].text and len(lines) > cursor + 1:
        lines.pop()  # rows below the cursor that nothing was written to
    return lines


def joined(rows: list[Row], *, goes_on: bool = False) -> list[Line]:
    """Return the line, or part of one, that rows make up, or none if all of it is forgotten."""
    if len(rows) == 1:
        [row] = rows
        text = str(row).replace(FORGOTTEN, "")
        return [] if row.is_old else [Line(text, row.is_edited, row.is_command, goes_on)]
    if all(row.is_old for row in rows):
        return []
    text = "".join(map(str, rows)).replace(FORGOTTEN, "")
    return [Line(text, any(row.is_edited for row in rows), any(row.is_command for row in rows), goes_on)]


@functools.lru_cache(_WIDTHS_KEPT)
def cell_width(character: str) -> int:
    """Return how many cells tmux gives a character: 0 when it joins the one before, or is not shown."""
    if character < "\u0300":
        return int(not "\x80" <= character <= "\x9f")
    number = ord(character)
    for first, last, width in _WIDTHS:
        if first <= number <= last:
            return width
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def join(cells: list[str], at: int, character: str) -> None:
    """Join a character without a width to a cell; one that is full stays as it is, as in tmux."""
    if len((cells[at] + character).encode()) <= _CELL_BYTES:
        cells[at] += character


def _split(cells: list[str], column: int) -> None:
    """Make blanks of a wide character or tab that a change from this column on would leave a part of."""
    if not 0 < column < len(cells) or cells[column]:
        return
    start = end = column
    while not cells[start]:
        start -= 1
    while end < len(cells) and not cells[end]:
        end += 1
    cells[start:end] = " " * (end - start)


def _make_tabs_blanks(cells: list[str]) -> None:
    """Make blanks of tabs, whose width is that of their place, before they move."""
    is_tab = False
    for at, cell in enumerate(cells):
        is_tab = cell == "\t" or (is_tab and not cell)
        if is_tab:
            cells[at] = " "
