"""Sizes of terminals, in character cells."""

import re

# The size of a pane by default.
COLUMNS, ROWS = 200, 50
# The size of a session of the toolset `terminal` by default.
SESSION_COLUMNS, SESSION_ROWS = 120, 40
# The fewest columns and rows, and the most, that a call or an option may ask for.
MIN_SIZE = 2
MAX_COLUMNS, MAX_ROWS = 500, 200

# Columns and rows.
Size = tuple[int, int]

_SIZE = re.compile(r"([0-9]{1,4})x([0-9]{1,4})")


def size_of(text: str) -> Size | None:
    """Return columns and rows of a size such as `80x24`; None if it is invalid or out of range."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    columns, rows = int(found[1]), int(found[2])
    is_allowed = MIN_SIZE <= columns <= MAX_COLUMNS and MIN_SIZE <= rows <= MAX_ROWS
    return (columns, rows) if is_allowed else None


def above_line(columns: int, rows: int) -> str:
    """Return the size of a pane in a person's terminal of this size, above tmux' own line there."""
    columns, rows = max(columns, MIN_SIZE), max(rows - 1, MIN_SIZE)
    return f"{min(columns, MAX_COLUMNS)}x{min(rows, MAX_ROWS)}"
