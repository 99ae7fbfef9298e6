"""Text and cells out of captures of a terminal's screen and history: no I/O.

A capture with attributes is text with `m` sequences, which hold on across lines, and the control characters SO and SI
around letters that stand for line drawing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .charsets import LINE_DRAWING
from .rows import Row, cell_width

Colour = int | tuple[int, int, int]

_COLOUR = re.compile(r"\033\[[0-9;:]*m")
_INVISIBLE = re.compile(r"\033\[[0-9;:]*m|\033\][^\a\033]*(?:\a|\033\\)")
_TOKEN = re.compile(r"\033\[([0-9;:]*)m|\033\][^\a\033]*(?:\a|\033\\)|([\016\017])|(.)", re.DOTALL)

# Letters that stand for line drawing, and among them what are none.
_DRAWN = re.compile(r"\016([^\017]*)|\017")
_LETTERS = re.compile(rf"({_INVISIBLE.pattern})|[^\033]+")

_JOINER = "\u200d"
_EMOJI = "\ufe0f"
_SKIN_TONES = range(0x1F3FB, 0x1F400)

# SGR, "select graphic rendition": attributes that are on or off.
_ON = {1: "bold", 2: "dim", 3: "italic", 5: "blink", 7: "reverse", 8: "hidden", 9: "struck", 53: "overlined"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 25: ("blink",), 27: ("reverse",), 28: ("hidden",), 29: ("struck",)} | {
    55: ("overlined",)
}
# How tmux 3.3 writes 53, as if it were a kind of blinking.
_MISWRITTEN = {"5:3": "53"}
_UNDERLINES = ("", "single", "double", "curly", "dotted", "dashed")
_COLOURS = {38: "foreground", 48: "background", 58: "underline_colour"}
_DEFAULTS = {39: "foreground", 49: "background", 59: "underline_colour"}


@dataclass(frozen=True, slots=True)
class Style:
    """How a cell is shown.

    Attributes:
        foreground: The number of a colour, 0 to 255, or red, green and blue; None is the terminal's own.
        background: The same.
        underline: Empty for none, or `single`, `double`, `curly`, `dotted` or `dashed`.
        underline_colour: None is that of the text.
    """

    foreground: Colour | None = None
    background: Colour | None = None
    underline: str = ""
    underline_colour: Colour | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    blink: bool = False
    reverse: bool = False
    hidden: bool = False
    struck: bool = False
    overlined: bool = False


class Cell(NamedTuple):
    """A character with what joins it, and the one or two columns that it takes."""

    text: str
    width: int
    style: Style


@dataclass(frozen=True, slots=True)
class Screen:
    """What a terminal shows.

    Attributes:
        columns: Its width.
        height: How many rows it has.
        cursor: The cursor's column and row, from 0.
        is_cursor_shown: Whether the program shows it.
        rows: The cells of each row, from its first column on; what is behind them is blank.
    """

    columns: int
    height: int
    cursor: tuple[int, int]
    is_cursor_shown: bool
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)

    def text(self) -> str:
        """Return the rows without blanks at their ends, joined by line feeds, without blank rows at the end."""
        return "\n".join("".join(cell.text for cell in row).rstrip(" ") for row in self.rows).rstrip("\n")


def captured_lines(data: bytes, *, ansi: bool = False) -> list[str]:
    """Return the lines of a capture with attributes, which tells line drawing from letters.

    Args:
        data: The capture.
        ansi: Keep the attributes.

    Returns:
        The lines without the blanks at their ends and without blank lines at the end.
    """
    text = data.decode(errors="replace")
    if "\033" in text or "\016" in text or "\017" in text:
        text = with_line_drawing(text)
        text = text if ansi else _INVISIBLE.sub("", text)
    lines = [_without_end(line) for line in text.split("\n")]
    while lines and not _COLOUR.sub("", lines[-1]):
        lines.pop()
    return lines


def captured_cells(data: bytes, *, widens_emoji: bool) -> list[list[Cell]]:
    """Return the cells of each row of a capture with attributes.

    Args:
        data: The capture.
        widens_emoji: Whether this tmux takes what asks for an emoji (U+FE0F), or a skin tone, for a part of a
            character of two columns; before 3.4 it does not.
    """
    rows: list[list[Cell]] = []
    style, is_drawing = Style(), False
    for line in data.decode(errors="replace").removesuffix("\n").split("\n"):
        row: list[Cell] = []
        for match in _TOKEN.finditer(line):
            parameters, shift, character = match.groups()
            if parameters is not None:
                style = _styled(style, parameters)
            elif shift:
                is_drawing = shift == "\016"
            elif character:
                _add(row, character.translate(LINE_DRAWING) if is_drawing else character, style, widens=widens_emoji)
        rows.append(row)
    return rows


def with_line_drawing(capture: str) -> str:
    """Return a capture with attributes with the characters that its letters between SO and SI stand for."""
    return _DRAWN.sub(lambda drawn: _LETTERS.sub(_as_line_drawing, drawn[1] or ""), capture)


def _as_line_drawing(part: re.Match[str]) -> str:
    return part[1] or part[0].replace("\016", "").translate(LINE_DRAWING)  # newer tmux says it twice


def row_alone(rows: Sequence[str], number: int, columns: int) -> str:
    """Return a row of a capture with attributes by itself, as wide as the screen."""
    [*before, row] = rows[: number + 1]
    width = len(Row(_INVISIBLE.sub("", row)).edit())
    return "".join(_INVISIBLE.findall("".join(before))) + row + "\033[0m" + " " * (columns - width)


def _add(row: list[Cell], character: str, style: Style, *, widens: bool) -> None:
    width = cell_width(character)
    is_joined = width == 0 or (row and row[-1].text.endswith(_JOINER))
    if row and (is_joined or (widens and ord(character) in _SKIN_TONES and row[-1].width > 1)):
        last = row[-1]
        row[-1] = last._replace(text=last.text + character, width=2 if widens and character == _EMOJI else last.width)
    elif width:
        row.append(Cell(character, width, style))


def _styled(style: Style, parameters: str) -> Style:
    """Return the style after a sequence."""
    words = (_MISWRITTEN.get(word, word) for word in parameters.split(";"))
    for word in words:
        number, *more = (int(part) if part else 0 for part in word.split(":"))
        if number == 0:
            style = Style()
        elif number in _COLOURS:
            style = _with(style, _COLOURS[number], _colour(more, words))
        elif number in (4, 21, 24):
            kind = more[0] if more else {4: 1, 21: 2, 24: 0}[number]
            style = _with(style, "underline", _UNDERLINES[kind] if kind < len(_UNDERLINES) else "single")
        elif number in _ON:
            style = _with(style, _ON[number], True)  # noqa: FBT003
        elif number in _OFF:
            for name in _OFF[number]:
                style = _with(style, name, False)  # noqa: FBT003
        elif number in _DEFAULTS:
            style = _with(style, _DEFAULTS[number], None)
        elif (base := number - number % 10) in (30, 40, 90, 100):
            name = "foreground" if base in (30, 90) else "background"
            style = _with(style, name, number % 10 + (8 if base >= 90 else 0))  # noqa: PLR2004
    return style


def _with(style: Style, name: str, value: Any) -> Style:  # noqa: ANN401  whatever the attribute is
    return replace(style, **{name: value})


def _colour(more: Sequence[int], words: Iterator[str]) -> Colour | None:
    """Return a colour that is given behind 38, 48 or 58: behind colons, or as the next words."""
    parts = list(more) or [int(next(words, "") or 0)]
    if parts[0] == 5:  # noqa: PLR2004
        return (parts[1] if more else int(next(words, "") or 0)) & 255
    if parts[0] != 2:  # noqa: PLR2004
        return None
    red, green, blue = parts[-3:] if more else [int(next(words, "") or 0) for _ in range(3)]
    return red & 255, green & 255, blue & 255


def _without_end(line: str) -> str:
    """Return the line without blanks at its end; colours behind them, which capture-pane -e writes, stay."""
    colours = ""
    line = line.rstrip(" \t")
    while line.endswith("m") and (colour := _COLOUR.fullmatch(line, line.rfind("\033"))):
        colours = colour[0] + colours
        line = line[: colour.start()].rstrip(" \t")
    return line + colours
