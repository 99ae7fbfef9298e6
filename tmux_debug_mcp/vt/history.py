"""The lines that have left the screen of a terminal and can't change any more. No I/O."""

from collections.abc import Iterable, Sequence

from .rows import Line, Row, joined

# Longer lines are settled in parts, so that no operation takes time that grows with the length.
_MAX_LINE_ROWS = 500


class History:
    """Settled lines, until they are taken."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._begun: list[Row] = []

    @property
    def lines(self) -> Sequence[Line]:
        """The lines that have been settled since the last `take`."""
        return self._lines

    @property
    def begun(self) -> Sequence[Row]:
        """The settled rows of a line that continues in rows that are not settled."""
        return self._begun

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Settle rows; the first one continues the line that has begun."""
        for row in rows:
            if row.cells is None and not row.is_wrapped and not self._begun:
                self._lines.append(Line(row.text))
                continue
            self._begun.append(row)
            if not row.is_wrapped or len(self._begun) == _MAX_LINE_ROWS:
                self._lines += joined(self._begun, goes_on=row.is_wrapped)
                self._begun = []

    def add_lines(self, lines: Iterable[Line]) -> None:
        """Settle lines."""
        self._lines += lines

    def end_begun(self) -> None:
        """Settle the line that has begun: it does not continue in the next row any more."""
        if self._begun:
            self._lines += joined(self._begun)
            self._begun = []

    def drop_begun(self) -> None:
        """Drop the rows of the line that has begun."""
        self._begun = []

    def take(self) -> list[Line]:
        """Return the lines that have been settled since the last call."""
        lines = self._lines
        self._lines = []
        return lines

    def clear(self) -> None:
        """Drop all lines and rows."""
        self._lines = []
        self._begun = []
