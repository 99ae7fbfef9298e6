"""How many rows to capture in order to get a number of logical lines. No I/O.

capture-pane -S counts rows, but with -J it prints logical lines, and a wrapped line takes several
rows. So a caller captures `first_rows`, then `more_rows` until the capture `is_enough`, or has the
whole history.
"""

from collections.abc import Sequence

# Enough for most calls.
_FIRST_ROWS = 200
# No tool returns more text of a capture.
_MAX_CHARACTERS = 1 << 19


def first_rows(lines: int) -> int:
    """Return how many rows of history to capture first, to get a number of logical lines."""
    # One more than wanted: the first row may be the end of a longer line.
    return min(lines, _FIRST_ROWS) + 1


def more_rows(rows: int, lines: int) -> int:
    """Return how many rows to capture after a capture of `rows` that was not enough."""
    return rows * 4 if rows > lines else lines + 1


def is_enough(captured: Sequence[str], lines: int) -> bool:
    """Tell whether a capture has the wanted lines whole, or more text than any tool returns."""
    return len(captured) > lines or sum(map(len, captured)) > _MAX_CHARACTERS
