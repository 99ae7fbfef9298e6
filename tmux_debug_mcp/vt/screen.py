"""Reads captures of a terminal's screen and history as text and as cells. No I/O.

A capture with attributes (tmux(1), capture-pane -e) has SGR sequences, whose effect goes on in the
next lines, and SO and SI around letters of the line drawing set.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .charsets import LINE_DRAWING, SHIFT_IN, SHIFT_OUT
from .rows import EMOJI_SELECTOR, Row, cell_width
from .styles import Style, style_after

_SGR = re.compile(r"\033\[[0-9;:]*m")
# Links (OSC 8).
_STRING = r"\033\][^\a\033]*(?:\a|\033\\)"
_INVISIBLE = re.compile(rf"\033\[[0-9;:]*m|{_STRING}")
# Groups: the parameters of SGR, SO or SI, a character.
_TOKEN = re.compile(rf"\033\[([0-9;:]*)m|{_STRING}|([\016\017])|(.)", re.DOTALL)

# Letters of the line drawing set, between SO and SI, and an SI by itself.
_DRAWN = re.compile(r"\016([^\017]*)|\017")
# Group: a sequence among these letters.
_LETTERS = re.compile(rf"({_INVISIBLE.pattern})|[^\033]+")

_ZERO_WIDTH_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


class Cell(NamedTuple):
    """A character.

    Attributes:
        text: The character, and the ones that join it.
        width: Its width in columns, 1 or 2.
        style: How it is shown.
    """

    text: str
    width: int
    style: Style


@dataclass(frozen=True, slots=True)
class Screen:
    """What a terminal shows.

    Attributes:
        columns: The width of the terminal.
        height: The number of its rows.
        cursor: The cursor's column and row, from 0.
        is_cursor_shown: The program shows the cursor.
        rows: The cells of each row from the first column on. The columns behind them are blank.
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


def captured_lines(data: bytes, *, ansi: bool = False) -> list[str]:
    """Return the lines of a capture with attributes, with line drawing in place of its letters.

    Args:
        data: The capture.
        ansi: Keep the attributes.

    Returns:
        The lines without trailing blanks, and without blank lines at the end.
    """
    text = data.decode(errors="replace")
    is_plain = "\033" not in text and SHIFT_OUT not in text and SHIFT_IN not in text
    if not is_plain:
        text = with_line_drawing(text)
        if not ansi:
            text = _INVISIBLE.sub("", text)
    lines = [_without_end(line) for line in text.split("\n")]
    while lines and not _SGR.sub("", lines[-1]):
        lines.pop()
    return lines


def _without_end(line: str) -> str:
    """Return a line without blanks at its end; SGR sequences behind or between these stay."""
    kept = ""
    line = line.rstrip(" \t")
    while line.endswith("m"):
        sequence = _SGR.fullmatch(line, line.rfind("\033"))
        if sequence is None:
            break
        kept = sequence[0] + kept
        line = line[: sequence.start()].rstrip(" \t")
    return line + kept


def with_line_drawing(capture: str) -> str:
    """Return a capture with line drawing in place of the letters between SO and SI."""
    if SHIFT_OUT not in capture and SHIFT_IN not in capture:
        return capture  # much faster than to search for both at once
    return _DRAWN.sub(_as_line_drawing, capture)


def _as_line_drawing(drawn: re.Match[str]) -> str:
    letters = drawn[1] or ""
    return _LETTERS.sub(_translated, letters)


def _translated(part: re.Match[str]) -> str:
    """Return a sequence as it is, and letters as line drawing."""
    sequence = part[1]
    if sequence:
        return sequence
    letters = part[0].replace(SHIFT_OUT, "")  # newer versions of tmux repeat SO
    return letters.translate(LINE_DRAWING)


def row_alone(rows: Sequence[str], number: int, columns: int) -> str:
    """Return a row of a capture with attributes so that it can be printed by itself.

    Args:
        rows: The rows of the capture.
        number: The index of the row; beyond the capture it is the last row.
        columns: The width of the screen, to which the row is filled with blanks.
    """
    *before, row = rows[: number + 1]
    attributes = "".join(_INVISIBLE.findall("".join(before)))
    width = len(Row(_INVISIBLE.sub("", row)).edit())
    return attributes + row + "\033[0m" + " " * (columns - width)


def captured_cells(data: bytes, *, widens_emoji: bool) -> list[list[Cell]]:
    """Return the cells of each row of a capture with attributes.

    Args:
        data: The capture.
        widens_emoji: This version of tmux makes a character two columns wide that is followed by
            U+FE0F, and joins skin tones to the character before. Versions before 3.4 do not.
    """
    rows: list[list[Cell]] = []
    style = Style()
    is_drawing = False
    for line in data.decode(errors="replace").removesuffix("\n").split("\n"):
        row: list[Cell] = []
        for match in _TOKEN.finditer(line):
            parameters, shift, character = match.groups()
            if parameters is not None:
                style = style_after(style, parameters)
            elif shift:
                is_drawing = shift == SHIFT_OUT
            elif character:
                if is_drawing:
                    character = character.translate(LINE_DRAWING)
                _add(row, character, style, widens_emoji=widens_emoji)
        rows.append(row)
    return rows


def _add(row: list[Cell], character: str, style: Style, *, widens_emoji: bool) -> None:
    """Add a character to a row, in a cell of its own or in the last one."""
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
