"""Captures of a terminal's screen and history as text. No I/O.

A capture with attributes (tmux(1), capture-pane -e) has SGR sequences, whose effect goes on in the
next lines, and SO and SI around letters of the line drawing set.
"""

import re
from collections.abc import Sequence

from .charsets import LINE_DRAWING, SHIFT_IN, SHIFT_OUT
from .rows import Row
from .sequences import LINK, SGR

_SGR = re.compile(SGR)
_INVISIBLE = re.compile(f"{SGR}|{LINK}")
# Letters of the line drawing set, between SO and SI, and an SI by itself.
_DRAWN = re.compile(r"\016([^\017]*)|\017")
# Group: a sequence among these letters.
_LETTERS = re.compile(rf"({_INVISIBLE.pattern})|[^\033]+")


def captured_lines(data: bytes, *, ansi: bool = False) -> list[str]:
    """Return the lines of a capture with attributes, with line drawing in place of its letters.

    They have no trailing blanks, and no blank lines at the end. `ansi` keeps the attributes.
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

    def translated(part: re.Match[str]) -> str:
        sequence = part[1]
        # Newer versions of tmux repeat SO.
        return sequence or part[0].replace(SHIFT_OUT, "").translate(LINE_DRAWING)

    return _DRAWN.sub(lambda drawn: _LETTERS.sub(translated, drawn[1] or ""), capture)


def row_alone(rows: Sequence[str], number: int, columns: int) -> str:
    """Return a row of a capture with attributes so that it can be printed by itself.

    It is filled with blanks to the columns of the screen. Beyond the capture it is the last row.
    """
    *before, row = rows[: number + 1]
    attributes = "".join(_INVISIBLE.findall("".join(before)))
    width = len(Row(_INVISIBLE.sub("", row)).edit())
    return attributes + row + "\033[0m" + " " * (columns - width)
