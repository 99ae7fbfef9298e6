"""Audits as text: as lines of JSON, as plain aligned text, and as a table in a terminal.

Rows are printed as they come, so the widths of columns are fixed.
"""

import functools
import shutil
from collections.abc import Mapping
from datetime import datetime
from typing import BinaryIO

from tmux_debug_mcp.vt.printable import visible, visible_json

from .audits import Record
from .columns import BOLD, BOLD_RED, CYAN, DIM, GREEN, RED, Cell, columns_of, row
from .filters import PaneNames
from .phrases import describe

_COLUMNS = ("TIME", "PANE", "TOOK", "RESULT", "CALL")
# "killed by SIGKILL" takes 17 characters; a terminal folds it.
_PLAIN = "{:<19}  {}  {:>7}  {:<17}  {}\n"
_PANE_WIDTH = 10
# In cells. The last column takes the rest of the terminal.
_WIDTHS = {"TIME": 8, "PANE": _PANE_WIDTH, "TOOK": 7, "RESULT": 12}
_GAP = 2
# How many cells wide a terminal must be to show a column.
_NEEDED = {"PANE": 40, "TOOK": 60, "RESULT": 60}
# A terminal cuts longer phrases and errors; plain text does not.
_MAX_CELL_CHARACTERS = 600
_MINUTE_S = 60


class _Phrases:
    """The phrases of a table's calls. They name a directory only when it changes."""

    def __init__(self, names: PaneNames) -> None:
        self._names = names
        self._directory = ""

    def of(self, record: Record) -> str:
        """Return the phrase of the next call, which is safe to print."""
        directory = record.directory
        is_said = directory == self._directory
        if directory and not record.error:
            self._directory = directory
        name = self._names.of(record, record.pane)
        return visible(describe(record, name, "" if is_said else directory))


class JsonOutput:
    """Prints the lines of calls as they are in the audit.

    For a terminal, it escapes characters that the terminal might obey.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._is_terminal = file.isatty()

    def show(self, record: Record) -> None:
        """Print a call."""
        data = record.data
        if self._is_terminal:
            data = visible_json(data.decode()).encode()
        self._file.write(data + b"\n")

    def flush(self) -> None:
        """Print what is buffered."""
        self._file.flush()


class PlainOutput:
    """Prints a line for each call, however long."""

    def __init__(self, file: BinaryIO, names: PaneNames) -> None:
        self._file = file
        self._phrases = _Phrases(names)
        self._has_head = False

    def show(self, record: Record) -> None:
        """Print a call."""
        if not self._has_head:
            self._has_head = True
            self._write_row(*_COLUMNS)
        day, moment = local_time(record.ended_at)
        phrase = self._phrases.of(record)
        if record.caller:
            phrase = f"{phrase}  by {visible(record.caller)}"
        if record.error:
            phrase = f"{phrase}  error: {visible(record.error)}"
        took = duration(record.duration_s)
        self._write_row(f"{day} {moment}", visible(record.pane), took, record.result.words, phrase)

    def flush(self) -> None:
        """Print what is buffered."""
        self._file.flush()

    def _write_row(self, moment: str, pane: str, *cells: str) -> None:
        padded = pane + " " * (_PANE_WIDTH - columns_of(pane))
        self._file.write(_PLAIN.format(moment, padded, *cells).encode())


class TableOutput:
    """Draws a table that is as wide as the terminal at its beginning, or at the last `flush`."""

    def __init__(self, file: BinaryIO, names: PaneNames, *, is_plain: bool) -> None:
        self._file = file
        self._phrases = _Phrases(names)
        self._is_plain = is_plain
        self._day = ""
        self._has_head = False
        self._widths: dict[str, int] = {}

    def show(self, record: Record) -> None:
        """Print a call."""
        if not self._widths:
            self._widths = _widths(shutil.get_terminal_size().columns)
        if not self._has_head:
            self._has_head = True
            self._write({name: [(name, BOLD)] for name in _COLUMNS} | {"TOOK": [("   TOOK", BOLD)]})
        day, moment = local_time(record.ended_at)
        if day != self._day:
            self._day = day
            self._write({"CALL": [(day, BOLD)]})
        result = record.result
        self._write(
            {
                "TIME": [(moment, DIM)],
                "PANE": [(visible(record.pane), CYAN)],
                "TOOK": [(duration(record.duration_s).rjust(_WIDTHS["TOOK"]), DIM)],
                "RESULT": [(result.words, BOLD_RED if result.is_failure else GREEN)],
                "CALL": self._call(record),
            }
        )

    def flush(self) -> None:
        """Print what is buffered."""
        self._file.flush()
        self._widths = {}

    def _write(self, cells: Mapping[str, Cell]) -> None:
        shown = [cells.get(name, ()) for name in self._widths]
        text = row(shown, [*self._widths.values()], _GAP, is_plain=self._is_plain)
        self._file.write(text.encode())

    def _call(self, record: Record) -> Cell:
        pieces = [(_cut(self._phrases.of(record)), "")]
        if record.caller:
            pieces.append((f"  by {visible(record.caller)}", DIM))
        if record.error:
            pieces.append((f"\n{_cut(visible(record.error))}", RED))
        return pieces


def _widths(columns: int) -> dict[str, int]:
    """Return the columns of a table and their widths, for a terminal of so many columns."""
    widths = {name: _WIDTHS.get(name, 0) for name in _COLUMNS if columns >= _NEEDED.get(name, 0)}
    widths["CALL"] = max(1, columns - sum(width + _GAP for width in widths.values()) + _GAP)
    return widths


Output = JsonOutput | PlainOutput | TableOutput


def local_time(moment: float) -> tuple[str, str]:
    """Return the local date and time of a moment in seconds since the epoch."""
    minute, second = divmod(int(moment), _MINUTE_S)
    day, begin = _local_minute(minute)
    return day, f"{begin}:{second:02d}"


@functools.lru_cache(maxsize=1)  # most calls are in the same minute as the call before
def _local_minute(minute: int) -> tuple[str, str]:
    local = datetime.fromtimestamp(minute * _MINUTE_S).astimezone()
    return f"{local:%Y-%m-%d}", f"{local:%H:%M}"


def duration(seconds: float | None) -> str:
    """Return a duration in at most seven characters, up to a year; "" for None."""
    if seconds is None:
        return ""
    if seconds < 0.0995:  # noqa: PLR2004  what rounds to less than 100 ms
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.95:  # noqa: PLR2004  what rounds to less than 100.0 s
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE_S)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 100:  # noqa: PLR2004
        return f"{hours}h {minutes:02d}m"
    return f"{seconds / 86_400:.3g} d"


def _cut(text: str) -> str:
    if len(text) <= _MAX_CELL_CHARACTERS:
        return text
    return f"{text[:_MAX_CELL_CHARACTERS]}…"
