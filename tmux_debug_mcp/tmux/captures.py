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
    """Return how many rows of history to capture first.

    Args:
        lines: The number of logical lines wanted.
    """
    # One more than wanted: the first row may be the end of a longer line.
    return min(lines, _FIRST_ROWS) + 1


def more_rows(rows: int, lines: int) -> int:
    """Return how many rows to capture next, after a capture that was not enough.

    Args:
        rows: The number of rows that were captured.
        lines: The number of logical lines wanted.
    """
    if rows > lines:
        return rows * 4
    return lines + 1


def is_enough(captured: Sequence[str], lines: int) -> bool:
    """Tell whether a capture has the wanted lines whole, or more text than any tool returns.

    Args:
        captured: The logical lines of the capture.
        lines: The number of logical lines wanted.
    """
    if len(captured) > lines:
        return True
    return sum(map(len, captured)) > _MAX_CHARACTERS
