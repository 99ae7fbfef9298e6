"""Audits as text: as lines of JSON, as plain aligned text, and as a table in a terminal.

Rows are printed as they come, so the widths of columns are fixed.
"""

import functools
from datetime import datetime
from typing import BinaryIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tmux_debug_mcp.vt.printable import visible, visible_json

from .audits import Record
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
# Rows that are drawn together: rich is slow to begin a table.
_MAX_ROWS = 200
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
        if directory and record.is_answered:
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
        padded = pane + " " * (_PANE_WIDTH - cell_len(pane))
        self._file.write(_PLAIN.format(moment, padded, *cells).encode())


class TableOutput:
    """Draws a table in a terminal, piece by piece, each as wide as the terminal at that time."""

    def __init__(self, console: Console, names: PaneNames) -> None:
        self._console = console
        self._phrases = _Phrases(names)
        self._day = ""
        self._has_head = False
        self._columns: list[str] = []
        self._table: Table | None = None

    def show(self, record: Record) -> None:
        """Keep a call for the next piece of the table."""
        if self._table is None:
            width = self._console.width
            self._columns = [name for name in _COLUMNS if width >= _NEEDED.get(name, 0)]
            self._table = self._new_table()
        day, moment = local_time(record.ended_at)
        if day != self._day:
            self._day = day
            self._table.add_row(*[""] * (len(self._columns) - 1), Text(day, "bold"))
        result = record.result
        cells = {
            "TIME": Text(moment, "dim"),
            "PANE": Text(visible(record.pane), "cyan"),
            "TOOK": Text(duration(record.duration_s), "dim"),
            "RESULT": Text(result.words, "bold red" if result.is_failure else "green"),
            "CALL": self._call(record),
        }
        self._table.add_row(*(cells[name] for name in self._columns))
        if self._table.row_count >= _MAX_ROWS:
            self.flush()

    def flush(self) -> None:
        """Draw the kept calls."""
        if self._table is not None:
            self._console.print(self._table)
            self._console.file.flush()
            self._table = None
            self._has_head = True

    def _new_table(self) -> Table:
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, _GAP, 0, 0),
            show_header=not self._has_head,
            header_style="bold",
        )
        rest = self._console.width - sum(_WIDTHS[name] + _GAP for name in self._columns[:-1])
        for name in self._columns:
            table.add_column(
                name,
                width=_WIDTHS.get(name, max(rest, 1)),
                overflow="fold",
                justify="right" if name == "TOOK" else "left",
            )
        return table

    def _call(self, record: Record) -> Text:
        text = Text(_cut(self._phrases.of(record)))
        if record.caller:
            text.append(f"  by {visible(record.caller)}", "dim")
        if record.error:
            text.append(f"\n{_cut(visible(record.error))}", "red")
        return text


Output = JsonOutput | PlainOutput | TableOutput


def local_time(moment: float) -> tuple[str, str]:
    """Return the local date and time of a moment in seconds since the epoch."""
    minute, second = divmod(int(moment), _MINUTE_S)
    day, begin = _local_minute(minute)
    return day, f"{begin}:{second:02d}"


@functools.lru_cache(maxsize=1)  # most calls are in the same minute as the one before
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
