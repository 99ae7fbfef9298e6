"""Text out of captures of a terminal's screen and history."""

import re

_COLOUR = re.compile(r"\033\[[0-9;:]*m")


def captured_lines(data: bytes) -> list[str]:
    """Return the lines of a capture, without the blanks at their ends and without blank lines at the end."""
    lines = [_without_end(line) for line in data.decode(errors="replace").split("\n")]
    while lines and not _COLOUR.sub("", lines[-1]):
        lines.pop()
    return lines


def _without_end(line: str) -> str:
    """Return the line without blanks at its end; colours behind them, which capture-pane -e writes, stay."""
    colours = ""
    line = line.rstrip(" \t")
    while line.endswith("m") and (colour := _COLOUR.fullmatch(line, line.rfind("\033"))):
        colours = colour[0] + colours
        line = line[: colour.start()].rstrip(" \t")
    return line + colours
