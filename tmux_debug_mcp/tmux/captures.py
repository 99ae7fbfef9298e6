"""How many rows to capture for so many logical lines, which may be wrapped. No I/O."""

from collections.abc import Sequence

_FIRST_ROWS = 200
# No tool returns more of a capture.
_ENOUGH_CHARACTERS = 1 << 19


def first_rows(lines: int) -> int:
    """Return how many rows to look for lines in at first."""
    # The first row may be the rest of a longer line. So one line more; and many rows may be long.
    return min(lines, _FIRST_ROWS) + 1


def more_rows(rows: int, lines: int) -> int:
    """Return how many rows to look in where so many did not do."""
    return rows * 4 if rows > lines else lines + 1


def is_enough(found: Sequence[str], lines: int) -> bool:
    """Tell whether lines that were found are as many as were wanted, or have more text than is returned."""
    return len(found) > lines or sum(map(len, found)) > _ENOUGH_CHARACTERS
