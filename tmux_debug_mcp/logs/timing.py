r"""When a log grew, and when the size of its terminal changed. No I/O.

As text, it is a timing file in script(1)'s advanced format::

    H 0.000000 START_TIME 2026-01-30 10:15:46.250000+00:00
    H 0.000000 COLUMNS 80
    H 0.000000 LINES 24
    O 0.250117 512
    S 1.250030 SIGWINCH ROWS=24 COLS=100

The times are in seconds since the previous entry. `O` gives the number of bytes that were printed
in that time. Source: script(1) and scriptreplay(1) of util-linux.
"""

import contextlib
import re
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from tmux_debug_mcp.vt.sizes import COLUMNS, MAX_COLUMNS, MAX_ROWS, ROWS

# The least time between two noted sizes, to which callers keep at first. It doubles after each
# 10,000 of them, so a program that prints all day has some 50,000.
SAMPLE_S = 0.25
_SAMPLES_UNTIL_DOUBLED = 10_000
# How much of a file is read. Anybody may have written it.
MAX_TIMING_BYTES = 8 << 20
# Times after this, in the year 5138, are invalid; twice this is before the year 10000.
_MAX_TIME_S = 1e11
# Changes of size that are noted. Of more, only the last is noted: a replay makes each of them.
_MAX_RESIZES = 1000
_NUMBER = re.compile(r"[0-9]{1,9}")


class Resize(NamedTuple):
    """A new size of the terminal, and the log's size when it came."""

    cursor: int
    columns: int
    rows: int


@dataclass(slots=True)
class Timing:
    """The times of a log that was made at `began_at`, in seconds since the epoch.

    The terminal had `columns` and `rows` at the beginning, and `resizes` since, oldest first. At
    `times[i]`, in seconds since the beginning, the log was found to have `sizes[i]` bytes.
    """

    began_at: float
    columns: int = COLUMNS
    rows: int = ROWS
    times: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)
    _last_s: float = 0.0

    def begin(self, columns: int, rows: int) -> str:
        """Set the size of the terminal at the beginning; return the first lines of the file."""
        self.columns, self.rows = columns, rows
        moment = datetime.fromtimestamp(self.began_at, UTC)
        return (
            f"H 0.000000 START_TIME {moment.isoformat(' ')}\n"
            f"H 0.000000 COLUMNS {columns}\n"
            f"H 0.000000 LINES {rows}\n"
        )

    def grow(self, at_s: float, size: int, *, always: bool = False) -> str:
        """Note the size of the log; return the line for the file, "" if it is not noted.

        The time is in seconds since the log was made. A size that comes too soon after the last one
        is noted only with `always`.
        """
        last_size = self.sizes[-1] if self.sizes else 0
        doublings = len(self.times) // _SAMPLES_UNTIL_DOUBLED
        is_due = doublings == 0 or at_s - self.times[-1] >= SAMPLE_S * (1 << doublings)
        if size <= last_size or not (always or is_due):
            return ""
        self.times.append(at_s)
        self.sizes.append(size)
        return f"O {self._since_last(at_s):.6f} {size - last_size}\n"

    def resize(self, at_s: float, size: int, columns: int, rows: int) -> str:
        """Note a new size of the terminal, at a size of the log; return the lines for the file."""
        # The line before it gives its cursor.
        line = self.grow(at_s, size, always=True)
        del self.resizes[_MAX_RESIZES - 1 :]
        self.resizes.append(Resize(size, columns, rows))
        return f"{line}S {self._since_last(at_s):.6f} SIGWINCH ROWS={rows} COLS={columns}\n"

    def _since_last(self, at_s: float) -> float:
        delay_s = max(0.0, at_s - self._last_s)
        self._last_s += delay_s
        return delay_s

    def cursor_at(self, at_s: float) -> int:
        """Return the size that the log had at a moment, as far as it was noted."""
        number = bisect_right(self.times, at_s)
        return self.sizes[number - 1] if number else 0

    def time_of(self, cursor: int) -> float:
        """Return when all bytes before a cursor were there, in seconds since the log was made."""
        number = bisect_right(self.sizes, cursor - 1)
        if number < len(self.times):
            return self.times[number]
        return self.times[-1] if self.times else 0.0

    def text(self) -> str:
        """Return what was noted as text that `read` takes over."""
        copy = Timing(self.began_at)
        parts = [copy.begin(self.columns, self.rows)]
        resizes = deque(self.resizes)
        for at_s, size in [(0.0, 0), *zip(self.times, self.sizes, strict=True)]:
            parts.append(copy.grow(at_s, size, always=True))
            while resizes and resizes[0].cursor <= size:
                parts.append(copy.resize(at_s, *resizes.popleft()))
        return "".join(parts)

    def read(self, text: str) -> None:
        """Take over a file's entries, up to the first line that is not one."""
        at_s, size = 0.0, 0
        for line in text.splitlines():
            words = line.split(" ")
            try:
                delay_s = float(words[1])
            except (IndexError, ValueError):
                break  # after what is not an entry, times would be wrong
            if not 0 <= delay_s <= _MAX_TIME_S - at_s:
                break
            at_s += delay_s
            match words:
                case ["O", _, count] if _NUMBER.fullmatch(count):
                    size += int(count)
                    self.grow(at_s, size, always=True)
                case ["S", _, "SIGWINCH", *facts]:
                    self._take_resize(facts, at_s, size)
                case ["H", _, name, *values]:
                    self._take_header(name, " ".join(values))

    def _take_header(self, name: str, value: str) -> None:
        if name == "START_TIME":
            with contextlib.suppress(ValueError, OverflowError):
                began_at = datetime.fromisoformat(value).timestamp()
                if 0 <= began_at < _MAX_TIME_S:
                    self.began_at = began_at
        elif name == "COLUMNS":
            self.columns = _limited(value, MAX_COLUMNS) or self.columns
        elif name == "LINES":
            self.rows = _limited(value, MAX_ROWS) or self.rows

    def _take_resize(self, facts: list[str], at_s: float, size: int) -> None:
        values = dict(fact.split("=", 1) for fact in facts if "=" in fact)
        columns = _limited(values.get("COLS", ""), MAX_COLUMNS)
        rows = _limited(values.get("ROWS", ""), MAX_ROWS)
        if columns and rows:
            self.resize(at_s, size, columns, rows)


def _limited(value: str, maximum: int) -> int:
    """Return a size from a file, at most the maximum; 0 if it is not one."""
    if not _NUMBER.fullmatch(value):
        return 0
    return min(int(value), maximum)
