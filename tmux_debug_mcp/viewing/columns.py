"""Rows of columns in a terminal: text that is folded to a width, padded and coloured. No I/O."""

import itertools
from collections.abc import Mapping, Sequence
from operator import itemgetter

from tmux_debug_mcp.vt.rows import cell_width

# Styles, as the parameters of SGR. Source: ECMA-48.
BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
BOLD_RED = "1;31"
# Pieces of text, each with its style, "" for none.
Cell = Sequence[tuple[str, str]]


def has_styles(environ: Mapping[str, str]) -> bool:
    """Return whether a terminal is to get styles. Source: no-color.org."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def columns_of(text: str) -> int:
    """Return how many columns a text takes."""
    return sum(map(cell_width, text))


def row(cells: Sequence[Cell], widths: Sequence[int], gap: int, *, is_plain: bool) -> str:
    """Return the lines of a row, in which each cell is folded to a width, in columns."""
    lines = []
    for parts in itertools.zip_longest(*map(_folded, cells, widths), fillvalue=[]):
        line, end, start = "", 0, 0
        for part, width in zip(parts, widths, strict=True):
            if part:
                line += " " * (start - end)
                end = start
            for text, style in part:
                line += text if is_plain or not style else f"\x1b[{style}m{text}\x1b[0m"
                end += columns_of(text)
            start += width + gap
        lines.append(f"{line}\n")
    return "".join(lines)


def _folded(cell: Cell, width: int) -> list[list[tuple[str, str]]]:
    """Return the lines of a cell: broken at blanks, and within words that are wider than it."""
    text = "".join(text for text, _ in cell)
    if "\n" not in text and columns_of(text) <= width:  # as most are
        return [[piece for piece in cell if piece[0]]]
    lines: list[list[tuple[str, str]]] = [[]]
    used = 0
    for character, style in ((letter, style) for text, style in cell for letter in text):
        if character == "\n":
            lines.append([])
            used = 0
            continue
        line = lines[-1]
        while line and used + cell_width(character) > width:
            blanks = [place for place, (letter, _) in enumerate(line) if letter == " "]
            start = blanks[-1] + 1 if blanks and character != " " else len(line)
            lines.append(line[start:])
            del line[start:]
            line = lines[-1]
            used = sum(cell_width(letter) for letter, _ in line)
        if line or character != " " or len(lines) == 1:
            line.append((character, style))
            used += cell_width(character)
    return [_joined(line) for line in lines]


def _joined(line: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    groups = itertools.groupby(line, key=itemgetter(1))
    return [("".join(character for character, _ in group), style) for style, group in groups]
