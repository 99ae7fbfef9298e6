"""Text out of captures of a terminal's screen and history."""

import re

# What capture-pane -e writes besides text: colours and attributes, also behind blanks at a line's end.
_COLOURS = re.compile(r"\033\[[0-9;:]*m")
_TRAILING_BLANKS = re.compile(rf"[ \t]+((?:{_COLOURS.pattern})*)$")


def captured_lines(data: bytes) -> list[str]:
    """Return the lines of a capture, without the blanks at their ends and without blank lines at the end."""
    lines = [_TRAILING_BLANKS.sub(r"\1", line) for line in data.decode(errors="replace").split("\n")]
    while lines and not _COLOURS.sub("", lines[-1]):
        lines.pop()
    return lines
