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

# So many samples are kept in memory. When there are more, older samples are joined, to a quarter.
_MAX_SAMPLES = 1 << 15
# The least time between two entries of the file while a log grows. It doubles after each 10,000 of
# them, so a program that prints all day has some 110,000.
_ENTRY_S = 0.005
_ENTRIES_UNTIL_DOUBLED = 10_000
# After so many entries, none is made only because the log is quiet.
_MAX_FOR_QUIET = 100_000
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
    `times[i]`, in seconds since the beginning, the log had `sizes[i]` bytes; those that it did not
    have at the sample before came after `afters[i]`. The newest samples are the finest.
    """

    began_at: float
    columns: int = COLUMNS
    rows: int = ROWS
    times: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    afters: list[float] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)
    # The entries that are still to be written, how many there were, and what the last says.
    _entries: list[str] = field(default_factory=list, compare=False)
    _entered: int = field(default=0, compare=False)
    _last_s: float = field(default=0.0, compare=False)
    _last_size: int = field(default=0, compare=False)

    def begin(self, columns: int, rows: int) -> None:
        """Set the size of the terminal at the beginning."""
        self.columns, self.rows = columns, rows
        self._entries += self._head()

    def _head(self) -> list[str]:
        moment = datetime.fromtimestamp(self.began_at, UTC)
        return [
            f"H 0.000000 START_TIME {moment.isoformat(' ')}\n",
            f"H 0.000000 COLUMNS {self.columns}\n",
            f"H 0.000000 LINES {self.rows}\n",
        ]

    def grow(self, at_s: float, size: int, after_s: float | None = None) -> None:
        """Note the size of the log at a moment, in seconds since the log was made.

        What is new came after `after_s`, by default after the sample before.
        """
        if size <= (self.sizes[-1] if self.sizes else 0):
            return
        if after_s is None:
            after_s = self.times[-1] if self.times else 0.0
        self.times.append(at_s)
        self.sizes.append(size)
        self.afters.append(after_s)
        if at_s - self._last_s >= _ENTRY_S * (1 << self._entered // _ENTRIES_UNTIL_DOUBLED):
            self._enter(at_s, size)
        if len(self.times) > _MAX_SAMPLES:
            self._join_older()

    def _join_older(self) -> None:
        """Join samples of the older half, so that at most half of them are left."""
        half = _MAX_SAMPLES // 2
        times = self.times[:half]
        every_s = (times[-1] - times[0]) / (half // 2) or 1.0
        slots = [int(at_s / every_s) for at_s in times]
        last = [number for number in range(half - 1) if slots[number] != slots[number + 1]]
        last.append(half - 1)
        first = [0, *(number + 1 for number in last[:-1])]
        self.times[:half] = [times[number] for number in last]
        self.sizes[:half] = [self.sizes[number] for number in last]
        self.afters[:half] = [self.afters[number] for number in first]

    def resize(self, at_s: float, size: int, columns: int, rows: int) -> None:
        """Note a new size of the terminal, at a size of the log."""
        self.grow(at_s, size)
        self._enter(at_s, size)  # gives its cursor
        del self.resizes[_MAX_RESIZES - 1 :]
        self.resizes.append(Resize(size, columns, rows))
        delay_s = self._since_last(at_s)
        self._entries.append(f"S {delay_s:.6f} SIGWINCH ROWS={rows} COLS={columns}\n")

    def _enter(self, at_s: float, size: int) -> None:
        if size > self._last_size:
            delay_s = self._since_last(at_s)
            self._entries.append(f"O {delay_s:.6f} {size - self._last_size}\n")
            self._last_size = size
            self._entered += 1

    def _since_last(self, at_s: float) -> float:
        delay_s = max(0.0, at_s - self._last_s)
        self._last_s += delay_s
        return delay_s

    def entries(self, *, is_quiet: bool = True) -> str:
        """Return the entries for the file that are new since the last call.

        They go up to the last sample if the log `is_quiet`: it may not grow for a long time.
        """
        if is_quiet and self.sizes and self._entered < _MAX_FOR_QUIET:
            self._enter(self.times[-1], self.sizes[-1])
        entries, self._entries = self._entries, []
        return "".join(entries)

    def cursor_at(self, at_s: float) -> int:
        """Return the size that the log had at a moment, as far as it was noted."""
        number = bisect_right(self.times, at_s)
        return self.sizes[number - 1] if number else 0

    def time_of(self, cursor: int) -> float:
        """Return when all bytes before a cursor were there, in seconds since the log was made."""
        return self.span_of(cursor)[1]

    def span_of(self, cursor: int) -> tuple[float, float]:
        """Return between which moments the byte before a cursor came."""
        if not self.times:
            return 0.0, 0.0
        sample = min(bisect_right(self.sizes, cursor - 1), len(self.times) - 1)
        return self.afters[sample], self.times[sample]

    def text(self) -> str:
        """Return what was noted as text that `read` takes over."""
        copy = Timing(self.began_at)
        copy.begin(self.columns, self.rows)
        resizes = deque(self.resizes)
        for at_s, size in [(0.0, 0), *zip(self.times, self.sizes, strict=True)]:
            copy.grow(at_s, size)
            copy._enter(at_s, size)
            while resizes and resizes[0].cursor <= size:
                copy.resize(at_s, *resizes.popleft())
        return copy.entries()

    def read(self, text: str) -> None:
        """Take over a file's entries, up to the first line that is not an entry."""
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
                    self.grow(at_s, size)
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
    """Return a size from a file, at most the maximum; 0 if it is not a size."""
    if not _NUMBER.fullmatch(value):
        return 0
    return min(int(value), maximum)
