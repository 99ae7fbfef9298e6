"""Logs that are kept after the end: a directory for each run of the server, with an index.

::

    DIR/20260130T101546-4711/index.jsonl     a line of JSON for each pane, written when it was made
    DIR/20260130T101546-4711/debug-1.log     what its terminal got, and the mark that tells how it ended

How a pane ended is told by its log alone, so a server that was killed leaves nothing untold. A pane of a run is
read as `RUN/debug-1`, by its window, `RUN/@1`, or by its name, also by later servers. A run that starts removes the
oldest ones where there are too many; never one whose server is alive, which has its directory locked.
"""

import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from . import files, linux
from .display import MAX_COLUMNS, MAX_ROWS
from .errors import PaneNotFoundError, StartError, StorageError
from .logs import Log, PastLog, mark_digest
from .panes import State, ended_state

MAX_RUNS = 100
MAX_KEPT_BYTES = 2 << 30

_INDEX = "index.jsonl"
# An index of more is read so far. A pane takes some 300 bytes, as of a long command the beginning is told.
_MAX_COMMAND_CHARACTERS = 1000
_MAX_INDEX_BYTES = 4 << 20
_MAX_ENTRIES = 10_000
# Ids of windows go on behind those that there are, unless somebody has made them up.
_MAX_WINDOW = 100_000_000
_RUN = re.compile(r"\d{8}T\d{6}-\d{1,10}")
_WINDOW = re.compile(r"@(\d{1,9})")
# A terminal has had at most so many columns and rows, and a pane was made before the year 5138.
_MAX_SIZE = 10_000
_MAX_NAME_CHARACTERS = 1000
_MAX_TIME_S = 1e11
# What an index may say of a pane, for anybody may have written it.
_FACTS: Mapping[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str) and re.fullmatch(r"debug-\d{1,9}", value) is not None,
    "window": lambda value: isinstance(value, str) and _WINDOW.fullmatch(value) is not None,
    "name": lambda value: isinstance(value, str) and value.isprintable() and len(value) <= _MAX_NAME_CHARACTERS,
    "command": lambda value: isinstance(value, str),
    "mark": lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{16}|[0-9a-f]{64}", value) is not None,
    "columns": lambda value: type(value) is int and 0 < value <= _MAX_SIZE,
    "rows": lambda value: type(value) is int and 0 < value <= _MAX_SIZE,
    "started_at": lambda value: isinstance(value, float) and 0 <= value < _MAX_TIME_S,
}


@dataclass(frozen=True, slots=True)
class PastPane:
    """A pane of a run, as its log tells it. Whoever has it must close the log."""

    id: str
    name: str
    command: str
    log: Log
    started_at: float
    is_held: bool  # by a server that runs

    async def state(self) -> State:
        """Return how its program ended; lost, if that was with the server."""
        runtime_s = max(0.0, self.log.written_at - self.started_at)
        mark = self.log.find_mark()
        state = ended_state(mark.exit_code if mark else None, runtime_s, mark.offset if mark else self.log.size)
        return replace(state, may_grow=self.is_held and mark is None)


def names_run(target: str) -> bool:
    """Tell whether what is wanted is a pane of a run, `RUN/ID`; names may have slashes, too."""
    run, slash, _ = target.partition("/")
    return bool(slash and _RUN.fullmatch(run))


class Archive:
    """The kept logs in a directory, which is made.

    Attributes:
        run: The name of this run.

    Raises:
        StartError: The directory can't be made or written.
    """

    def __init__(self, directory: Path) -> None:
        self.run = f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
        self._directory = directory
        self._held = -1
        self._closed: deque[tuple[Path, int]] = deque()  # logs of panes that were killed, with their bytes
        self._known: dict[str, tuple[tuple[int, ...], list[dict[str, Any]]]] = {}  # indexes, as they were
        self._closed_bytes = 0
        self._other_bytes = 0  # of other runs
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StartError(f"The log directory can't be made: {error}. Give a path that can be written.") from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StartError(f"The log directory {directory} can't be written. Give another one.")

    def close(self) -> None:
        """Let go of this run's directory."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    @property
    def directory(self) -> Path:
        """The directory of this run."""
        return self._directory / self.run

    def new_log(self, pane_id: str, mark: str) -> Log:
        """Return the log of a pane that is to be made.

        Raises:
            StorageError: There is no room for it.
        """
        try:
            if not self._is_there():  # somebody may have removed it
                self.close()
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._held = linux.hold(str(self.directory))
                self._remove_oldest()
            return Log(self.directory / f"{pane_id}.log", mark, keeper=self._take_closed)
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error

    def _is_there(self) -> bool:
        try:
            return self._held >= 0 and os.path.samestat(os.fstat(self._held), self.directory.lstat())
        except FileNotFoundError:
            return False

    def record(self, entry: Mapping[str, Any]) -> None:
        """Put a pane that was made into the index.

        Args:
            entry: Its `id`, `window`, `name`, `command` and `mark`, and its terminal's `columns` and `rows`. The mark's
                digest is written, for what runs in the pane can read that.

        Raises:
            StorageError: There is no room for it.
        """
        facts = {**entry, "command": entry["command"][:_MAX_COMMAND_CHARACTERS], "started_at": time.time()}
        facts["mark"] = mark_digest(entry["mark"])
        line = orjson.dumps(facts) + b"\n"
        try:
            fd = os.open(self.directory / _INDEX, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error

    def find(self, target: str) -> PastPane:
        """Return the pane `RUN/ID`, `RUN/@N` or `RUN/NAME`, of this run or an earlier one; the last of a name.

        Raises:
            PaneNotFoundError: There is none.
        """
        run, _, own = target.partition("/")
        try:
            entries = list(reversed(self._entries(run)))
            for entry in sorted(entries, key=lambda entry: own not in (entry["id"], entry["window"])):
                if own in (entry["id"], entry["window"], entry["name"]):
                    log = PastLog(self._directory / run / f"{entry['id']}.log", entry["mark"])
                    log.columns, log.rows = min(entry["columns"], MAX_COLUMNS), min(entry["rows"], MAX_ROWS)
                    with linux.unheld(str(self._directory / run)) as is_over:
                        return PastPane(
                            target, entry["name"], entry["command"], log, entry["started_at"], is_held=not is_over
                        )
        except OSError as error:
            raise PaneNotFoundError(target) from error
        raise PaneNotFoundError(target)

    def free_window(self) -> int:
        """Return a number that no window of any run has, nor any higher one: those of a new run begin there."""
        numbers = [-1]
        for run in self._runs():
            with contextlib.suppress(OSError):
                for entry in self._entries(run):
                    found = _WINDOW.fullmatch(str(entry["window"]))
                    numbers += [int(found[1])] if found else []
        return max(number for number in numbers if number < _MAX_WINDOW) + 1

    def runs_with(self, window: str) -> list[str]:
        """Return the other runs that have a window of this id, the newest first."""
        found = []
        for run in reversed(self._runs()):
            with contextlib.suppress(OSError):
                if any(entry["window"] == window for entry in self._entries(run)):
                    found.append(run)
        return found

    def earlier(self) -> Iterator[tuple[str, str, str]]:
        """Yield run, window and name of the panes of runs whose server has ended, the newest run first."""
        for run in reversed(self._runs()):
            with contextlib.suppress(OSError), linux.unheld(str(self._directory / run)) as is_over:
                for entry in self._entries(run) if is_over else ():
                    yield run, entry["window"], entry["name"]

    def _entries(self, run: str) -> list[dict[str, Any]]:
        """Return what the index of a run has of its panes; nothing where there is no such run.

        Raises:
            OSError: There is no such index.
        """
        if not _RUN.fullmatch(run) or (self._directory / run).is_symlink():
            return []
        with open(files.open_file(str(self._directory / run / _INDEX)), "rb") as file:
            status = os.fstat(file.fileno())
            state = status.st_ino, status.st_size, status.st_mtime_ns
            known = self._known.get(run)
            if known is None or known[0] != state:
                known = self._known[run] = state, _entries_of(file.read(_MAX_INDEX_BYTES))
        return known[1]

    def _runs(self) -> list[str]:
        """Return the names of the other runs, the oldest first."""
        names = os.listdir(self._directory) if self._directory.exists() else []
        return sorted(name for name in names if _RUN.fullmatch(name) and name != self.run)

    def _take_closed(self, log: Log) -> None:
        """Take note of a log of this run that has been closed, and remove old ones where that makes too many."""
        with contextlib.suppress(OSError):
            size = log.path.stat().st_blocks * 512
            self._closed.append((log.path, size))
            self._closed_bytes += size
        if self._closed_bytes + self._other_bytes > MAX_KEPT_BYTES:
            self._remove_oldest()
        while self._closed and self._closed_bytes + self._other_bytes > MAX_KEPT_BYTES:
            path, size = self._closed.popleft()
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            self._closed_bytes -= size

    def _remove_oldest(self) -> None:
        """Remove the oldest runs that are too many or, with what this one has of killed panes, too large."""
        self._other_bytes = 0
        for number, run in enumerate(reversed(self._runs()), start=2):
            directory = self._directory / run
            with contextlib.suppress(OSError), linux.unheld(str(directory)) as is_free:
                size = sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in os.scandir(directory))
                is_too_much = self._closed_bytes + self._other_bytes + size > MAX_KEPT_BYTES
                if is_free and (number > MAX_RUNS or is_too_much):
                    linux.remove(str(directory))
                else:
                    self._other_bytes += size


def _entries_of(index: bytes) -> list[dict[str, Any]]:
    """Return what an index has of panes."""
    entries: list[dict[str, Any]] = []
    for line in index.split(b"\n", _MAX_ENTRIES)[:_MAX_ENTRIES]:
        with contextlib.suppress(ValueError):  # of a server that ended amid a line
            entry = orjson.loads(line)
            entries += [entry] if _is_entry(entry) else []
    return entries


def _is_entry(value: object) -> bool:
    """Tell whether a line of an index is what we have written there."""
    return isinstance(value, dict) and all(name in value and is_so(value[name]) for name, is_so in _FACTS.items())
