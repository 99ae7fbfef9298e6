"""Logs that are kept after the end: a directory for each server run, with an index.

::

    DIR/20260130T101546-4711/index.jsonl     a line of JSON for each pane, written when it was made
    DIR/20260130T101546-4711/debug-1.log     what its terminal got, and its program's end mark
    DIR/20260130T101546-4711/debug-1.timing  when it grew, in script(1)'s format

The log alone says how a program ended, so a server that was killed loses nothing. A pane of any run
is read as `RUN/debug-1`, as `RUN/@1` by its window, or as `RUN/NAME`. A run that starts removes the
oldest runs beyond the limits, but none whose server is alive: it holds a lock on its directory.
Anybody may have written into a log directory, so we check every value that we read.
"""

import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import orjson

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import PaneNotFoundError, StartError, StorageError
from tmux_debug_mcp.linux import files
from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS

from .log import Log, timing_path

MAX_SERVER_RUNS = 100
MAX_KEPT_BYTES = 2 << 30

_INDEX = "index.jsonl"
# How much of an index is read.
_MAX_INDEX_BYTES = 4 << 20
# Window numbers continue after those in the archive, unless somebody has made these up.
_MAX_WINDOW = 100_000_000
# A pane takes some 300 bytes: only the start of a long command is recorded.
_MAX_COMMAND_CHARACTERS = 1000
_MAX_ENTRIES = 10_000
_MAX_NAME_CHARACTERS = 1000
# No terminal had more columns or rows, and no pane was made after the year 5138.
_MAX_SIZE = 10_000
_MAX_TIME_S = 1e11

_ID = re.compile(r"debug-\d{1,9}")
_WINDOW = re.compile(r"@\d{1,9}")
# A nonce, or its SHA-256.
_MARK = re.compile(r"[0-9a-f]{16}|[0-9a-f]{64}")
_RUN = re.compile(r"\d{8}T\d{6}-\d{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A pane when it was made, as the index records it.

    `id` is our id of the pane, which names the log's file, and `window` that of its window. The
    index holds at most 1,000 characters of the command, `mark` is the digest of the end mark's
    nonce, and the time is in seconds since the epoch.
    """

    id: str
    window: str
    name: str
    command: str
    mark: str
    columns: int
    rows: int
    started_at: float

    def line(self) -> bytes:
        """Return the line of the index, with its line feed."""
        facts = asdict(self)
        facts["command"] = self.command[:_MAX_COMMAND_CHARACTERS]
        return orjson.dumps(facts) + b"\n"


@dataclass(frozen=True, slots=True)
class ArchivedPane:
    """A pane found by a target such as `RUN/ID`; it is held while the server of that run is alive.

    The caller must close `log`.
    """

    target: str
    entry: IndexEntry
    log: Log
    is_held: bool


def new_run() -> str:
    """Return the name of a server run that begins now."""
    return f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"


def names_run(target: str) -> bool:
    """Tell whether a target is a pane of a run, `RUN/ID`; names may contain slashes, too."""
    run, slash, _ = target.partition("/")
    return bool(slash and _RUN.fullmatch(run))


class Archive:
    """The kept logs in a directory, in which each server run has its own, made with its first log.

    Attributes:
        run: The name of this server run.
    """

    def __init__(self, directory: Path) -> None:
        self.run = new_run()
        self._directory = directory
        self._lock = -1
        self._closed: deque[tuple[Path, int]] = deque()  # killed panes' logs, with their bytes
        self._closed_bytes = 0
        self._other_bytes = 0  # of other runs
        # The entries of each index that was read, and its version, to see whether it has changed.
        self._indexes: dict[str, tuple[tuple[int, ...], list[IndexEntry]]] = {}

    def prepare(self) -> None:
        """Make the directory if it is missing; StartError if it can't be made or written."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StartError(
                f"The log directory can't be created: {error}. Give a writable path."
            ) from error
        if not os.access(self._directory, os.W_OK | os.X_OK):
            raise StartError(
                f"The log directory {self._directory} can't be written. Give another one."
            )

    def close(self) -> None:
        """Release this run's directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def directory(self) -> Path:
        """The directory of this run."""
        return self._directory / self.run

    def new_log(self, pane_id: str, nonce: str, clock: Clock | None = None) -> Log:
        """Return a new log for a pane; StorageError if it can't be made."""
        try:
            if not self._is_locked():
                self.close()
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock = files.hold(str(self.directory))
                self._remove_oldest()
            path = self.directory / f"{pane_id}.log"
            return Log.create(path, nonce, clock, on_close=self._count_closed)
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error

    def discard(self, log: Log) -> None:
        """Remove the files of a log whose pane could not be made."""
        for path in (log.path, timing_path(log.path)):
            with contextlib.suppress(OSError):
                path.unlink()

    def _is_locked(self) -> bool:
        """Tell whether this run's directory is there and ours; somebody may have removed it."""
        if self._lock < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._lock), self.directory.lstat())
        except FileNotFoundError:
            return False

    def record(self, entry: IndexEntry) -> None:
        """Record a new pane in the index; StorageError if that is impossible."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            with open(os.open(self.directory / _INDEX, flags, 0o600), "ab", 0) as file:
                file.write(entry.line())
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error

    def find(self, target: str) -> ArchivedPane:
        """Return the pane of `RUN/ID`, `RUN/@N` or `RUN/NAME`, of this or an earlier run.

        An id takes precedence over a name, and the newest pane of a name over older ones.

        Raises:
            PaneNotFoundError: There is none, or its log can't be read.
        """
        run, _, own = target.partition("/")
        try:
            for entry in self._matching(run, own):
                path = self._directory / run / f"{entry.id}.log"
                with files.unheld(str(self._directory / run)) as is_unheld:
                    log = Log.kept(path, entry.mark)
                log.begin(min(entry.columns, MAX_COLUMNS), min(entry.rows, MAX_ROWS))
                return ArchivedPane(target, entry, log, is_held=not is_unheld)
        except OSError as error:
            raise PaneNotFoundError(target) from error
        raise PaneNotFoundError(target)

    def has(self, target: str) -> bool:
        """Tell whether `find` finds a pane."""
        run, _, own = target.partition("/")
        with contextlib.suppress(OSError):
            entries = self._matching(run, own)
            return any((self._directory / run / f"{entry.id}.log").exists() for entry in entries)
        return False

    def _matching(self, run: str, own: str) -> list[IndexEntry]:
        """Return the entries of a run that a target means, the best first."""
        newest_first = list(reversed(self._entries(run)))
        by_id = [entry for entry in newest_first if own in (entry.id, entry.window)]
        by_name = [entry for entry in newest_first if entry.name == own]
        return by_id + by_name

    def free_window(self) -> int:
        """Return the lowest number above those of all windows of other runs, or raise OSError."""
        numbers = [-1]
        for _, entries in self._others():
            numbers += [int(entry.window.removeprefix("@")) for entry in entries]
        return max(number for number in numbers if number < _MAX_WINDOW) + 1

    def runs_with(self, window: str) -> list[str]:
        """Return the other runs that have a window of this id, newest first, or raise OSError."""
        others = list(self._others())
        return [run for run, entries in others if window in [entry.window for entry in entries]]

    def _others(self) -> Iterator[tuple[str, list[IndexEntry]]]:
        """Yield the other runs that have an index, newest first, with its entries."""
        for run in reversed(self._other_runs()):
            with contextlib.suppress(OSError):
                yield run, self._entries(run)

    def earlier(self) -> Iterator[tuple[str, IndexEntry]]:
        """Yield the run and entry of each pane whose server has ended, newest run first."""
        for run in reversed(self._other_runs()):
            with (
                contextlib.suppress(OSError),
                files.unheld(str(self._directory / run)) as is_unheld,
            ):
                for entry in self._entries(run) if is_unheld else ():
                    yield run, entry

    def latest(self, most: int) -> tuple[list[tuple[str, IndexEntry]], int]:
        """Return the newest panes of the last run that has ended, and how many more are kept."""
        earlier = list(self.earlier())
        latest = [(run, entry) for run, entry in earlier if run == earlier[0][0]][-most:]
        return latest, len(earlier) - len(latest)

    def _entries(self, run: str) -> list[IndexEntry]:
        """Return the index of a run; none for a wrong name or a link; OSError without an index."""
        if not _RUN.fullmatch(run) or (self._directory / run).is_symlink():
            return []
        with open(files.open_file(str(self._directory / run / _INDEX)), "rb") as file:
            status = os.fstat(file.fileno())
            version = (status.st_ino, status.st_size, status.st_mtime_ns)
            known_version, entries = self._indexes.get(run, ((), []))
            if version != known_version:
                entries = parsed(file.read(_MAX_INDEX_BYTES))
                self._indexes[run] = version, entries
        return entries

    def _other_runs(self) -> list[str]:
        """Return the names of the other runs, oldest first."""
        names = os.listdir(self._directory) if self._directory.exists() else []
        return sorted(name for name in names if _RUN.fullmatch(name) and name != self.run)

    def _count_closed(self, log: Log) -> None:
        """Count a log of this run that was closed, and remove old logs beyond the limit."""
        with contextlib.suppress(OSError):
            size = log.path.stat().st_blocks * 512
            self._closed.append((log.path, size))
            self._closed_bytes += size
        if self._is_over_limit():
            self._remove_oldest()
        while self._closed and self._is_over_limit():
            path, size = self._closed.popleft()
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                timing_path(path).unlink(missing_ok=True)
            self._closed_bytes -= size

    def _is_over_limit(self, more_bytes: int = 0) -> bool:
        return self._closed_bytes + self._other_bytes + more_bytes > MAX_KEPT_BYTES

    def _remove_oldest(self) -> None:
        self._other_bytes = 0
        for number, run in enumerate(reversed(self._other_runs()), start=2):
            directory = self._directory / run
            with contextlib.suppress(OSError), files.unheld(str(directory)) as is_unheld:
                with os.scandir(directory) as entries:
                    blocks = [entry.stat(follow_symlinks=False).st_blocks for entry in entries]
                size = sum(blocks) * 512
                if is_unheld and (number > MAX_SERVER_RUNS or self._is_over_limit(size)):
                    files.remove(str(directory))
                else:
                    self._other_bytes += size


def parsed(index: bytes) -> list[IndexEntry]:
    """Return the entries of an index, oldest first, at most 10,000; other lines are ignored."""
    entries = []
    for line in index.split(b"\n", _MAX_ENTRIES)[:_MAX_ENTRIES]:
        entry = _entry(line)
        if entry is not None:
            entries.append(entry)
    return entries


def _entry(line: bytes) -> IndexEntry | None:
    try:
        value = orjson.loads(line)
        facts = {field.name: value[field.name] for field in fields(IndexEntry)}
    except (orjson.JSONDecodeError, KeyError, TypeError):  # as of a server killed during a write
        return None
    if any(type(facts[field.name]) is not field.type for field in fields(IndexEntry)):
        return None
    entry = IndexEntry(**facts)
    checks = (
        _ID.fullmatch(entry.id),
        _WINDOW.fullmatch(entry.window),
        _MARK.fullmatch(entry.mark),
        entry.name.isprintable() and len(entry.name) <= _MAX_NAME_CHARACTERS,
        0 < entry.columns <= _MAX_SIZE,
        0 < entry.rows <= _MAX_SIZE,
        0 <= entry.started_at < _MAX_TIME_S,
    )
    return entry if all(checks) else None
