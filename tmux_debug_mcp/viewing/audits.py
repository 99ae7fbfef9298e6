"""Audits: JSON Lines, a record for each call, which `tmux_debug_mcp.audit` writes.

An audit is read line by line, to its end or as it grows, and several are merged by time. A line
that isn't a record, such as what a killed server left incomplete, becomes a `Damage`, and
reading goes on. A file that begins with several of them is no audit.
"""

import heapq
import json
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tmux_debug_mcp.linux import files
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.vt.printable import visible

# A record contains a call's arguments, at most 1 MiB of text before JSON escapes it.
MAX_LINE_BYTES = 8 << 20

# Half a surrogate pair: JSON allows it and our server writes it, but orjson refuses it.
_SURROGATE = b"\\ud"
# 9999-12-31T00:00Z: later times can't be shown in every time zone.
_MAX_TIME_S = 253_402_214_400.0

# The fields of a record that are not arguments of the call. Those of the outcome count only with a
# `reason`, since `signal` may be an argument, too.
_FACTS = frozenset(
    {"ts", "run", "tool", "caller", "pane_id", "output_bytes", "capture", "cursor"}
    | {"duration_ms", "result", "failed", "error"}
)
_OUTCOME = frozenset({"reason", "exit_code", "signal"})
# The fields that name a call's pane: the answer's, else the arguments of the toolsets.
_PANE_FIELDS = ("pane_id", "window_id", "session", "target")

_STANDARD_INPUT = "-"
# With so many damaged lines before the first record, it is no audit.
_MAX_DAMAGED_FIRST = 3
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK_BYTES = 1 << 18
# No event reports that a file was replaced, or written from another machine.
_LOOK_MS = 1000
# Poll interval without inotify.
_LOOK_WITHOUT_EVENTS_MS = 200


@dataclass(frozen=True, slots=True)
class Damage:
    """A line of an audit, counted from 1, that is not a record.

    The reason says what is wrong with it, as a predicate: "is not JSON".
    """

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        """Return a sentence about it."""
        return f"{self.path}, line {self.line}, {self.reason} and is skipped."


class Result(NamedTuple):
    """How a call came out, in a few words, as the server that answered it says."""

    words: str
    is_failure: bool


class Record(NamedTuple):
    """A call on record. Its properties are computed on demand.

    Lines are counted from 1; `data` lacks the line feed, and `fields` is the same, parsed; `tool`
    in it is a string. The call was answered at `ended_at`, in seconds since the epoch.
    """

    path: Path
    line: int
    data: bytes
    fields: Mapping[str, Any]
    ended_at: float

    @property
    def tool(self) -> str:
        """The tool, without `tmux_`, or the verb."""
        return str(self.fields["tool"])

    @property
    def run(self) -> str:
        """The server run, "" in records of older versions."""
        return _text(self.fields.get("run"))

    @property
    def panes(self) -> tuple[str, ...]:
        """The ids or names of the panes that the call concerned, as recorded."""
        for name in _PANE_FIELDS:
            value = self.fields.get(name)
            if isinstance(value, str) and value:
                return (value,)
            if isinstance(value, list):
                return tuple(pane for pane in value if isinstance(pane, str))
        return ()

    @property
    def pane(self) -> str:
        """The panes that the call concerned, joined by commas; "" if none."""
        return ", ".join(self.panes)

    @property
    def caller(self) -> str:
        """Who called, "" for the server's MCP client."""
        return _text(self.fields.get("caller"))

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the call."""
        facts = _FACTS | _OUTCOME if "reason" in self.fields else _FACTS
        return {name: value for name, value in self.fields.items() if name not in facts}

    @property
    def directory(self) -> str:
        """The directory that the call named, without a slash at its end; "" if it named none."""
        path = _text(self.fields.get("cwd"))
        return path.rstrip("/") or path[:1]

    @property
    def duration_s(self) -> float | None:
        """How long the call took, None if that isn't on record or can't be true."""
        duration_ms = self.fields.get("duration_ms")
        if isinstance(duration_ms, bool) or not isinstance(duration_ms, int | float):
            return None
        # No call began before 1970.
        return duration_ms / 1000 if 0 <= duration_ms <= self.ended_at * 1000 else None

    @property
    def began_at(self) -> float:
        """When the call began, in seconds since the epoch."""
        return self.ended_at - (self.duration_s or 0.0)

    @property
    def error(self) -> str:
        """Why the call was not answered, "" if it was."""
        return _text(self.fields.get("error"))

    @property
    def capture(self) -> str:
        """The name of the capture, the file with the text it returned; "" if none was kept."""
        return _text(self.fields.get("capture"))

    @property
    def result(self) -> Result:
        """How the call came out."""
        words = visible(_text(self.fields.get("result")))
        return Result(words, is_failure=self.fields.get("failed") is True)


class RecordParser:
    """Parses the bytes of an audit into records, however the bytes are split."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 1
        # The beginning of a line whose end has not been fed yet.
        self._begun = b""
        # This line is too long, and its rest is skipped.
        self._is_skipping = False

    def feed(self, data: bytes) -> Iterator[Record | Damage]:
        """Yield the lines that end in these bytes. Exhaust it before feeding more."""
        pieces = data.split(b"\n")
        pieces[0] = self._begun + pieces[0]
        self._begun = pieces.pop()
        for piece in pieces:
            if self._is_skipping:
                self._is_skipping = False
            else:
                yield from self._parsed(piece)
            self._number += 1
        if self._is_skipping:
            self._begun = b""
        elif len(self._begun) > MAX_LINE_BYTES:
            yield from self._parsed(self._begun)
            self._begun = b""
            self._is_skipping = True

    def finish(self) -> Iterator[Record | Damage]:
        """Yield the last line, if it has no line feed. Feed nothing afterwards."""
        if self._begun and not self._is_skipping:
            yield from self._parsed(self._begun, is_whole=False)

    def _parsed(self, data: bytes, *, is_whole: bool = True) -> Iterator[Record | Damage]:
        if len(data) > MAX_LINE_BYTES:
            reason = f"has more than {MAX_LINE_BYTES >> 20} MiB"
            yield Damage(self._path, self._number, reason)
        elif data and not data.isspace():
            yield _record(data, self._path, self._number, is_whole=is_whole)


def _record(data: bytes, path: Path, number: int, *, is_whole: bool) -> Record | Damage:
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError:
        fields = _with_surrogates(data)
        if fields is None:
            return Damage(path, number, "is not JSON" if is_whole else "is incomplete")
    if not isinstance(fields, dict):
        return Damage(path, number, "is not a record")
    ended_at = _time(fields.get("ts"))
    if ended_at is None or not isinstance(fields.get("tool"), str):
        return Damage(path, number, "has no time or no tool")
    return Record(path, number, data, fields, ended_at)


def _with_surrogates(data: bytes) -> Any:  # noqa: ANN401  what JSON has
    """Return the value of JSON that may contain half a surrogate pair, None if it is not JSON."""

    def refuse(constant: str) -> None:  # NaN and the infinities, which JSON lacks
        raise ValueError(constant)

    if _SURROGATE not in data.lower():
        return None
    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def _time(value: object) -> float | None:
    """Return a record's time in seconds since the epoch, None if it is not a time."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < _MAX_TIME_S else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class AuditFile:
    """An open audit, by its path or `-` for standard input; VerbError if it can't be opened.

    It calls `before_waiting` before a read that may wait for a writer. The descriptor `fd` changes
    when the audit's file is replaced. Reading raises VerbError if it is no audit.
    """

    def __init__(self, word: str, before_waiting: Callable[[], None]) -> None:
        self._before_waiting = before_waiting
        self._is_input = word == _STANDARD_INPUT
        self.path = Path("standard input" if self._is_input else word)
        try:
            self.fd = os.dup(0) if self._is_input else os.open(self.path, _OPEN_FLAGS)
        except OSError as error:
            raise self._unreadable(error) from None
        self._parser = RecordParser(self.path)
        self._position = 0
        self._has_record = False
        self._damaged_first: list[Damage] = []
        self._is_regular = stat.S_ISREG(os.fstat(self.fd).st_mode)

    def check_can_be_followed(self) -> None:
        """Raise VerbError unless this is a regular file, and not standard input."""
        if self._is_input or not self._is_regular:
            raise VerbError(
                f"--follow needs a regular file, which {visible(str(self.path))} is not. Omit "
                "--follow: the input is then read to its end as it arrives."
            )

    def check_is_not(self, out: str) -> None:
        """Raise VerbError if a page written there would replace this audit."""
        if not self._is_regular or not os.path.exists(out):
            return
        if os.path.samestat(os.stat(out), os.fstat(self.fd)):
            raise VerbError(
                f"The page '{visible(out)}' would replace the audit that it shows. Choose another "
                "file."
            )

    def to_end(self) -> Iterator[Record | Damage]:
        """Yield all lines, even a last line without a line feed."""
        yield from self._rest()
        if self._damaged_first:
            raise self._no_audit()

    def new(self) -> Iterator[Record | Damage]:
        """Yield the whole lines written since the last time.

        If the file was replaced or truncated, it is read from its beginning.
        """
        if os.fstat(self.fd).st_size < self._position:
            self._begin()
        yield from self._written()
        while True:
            fd = self._made_anew()
            if fd < 0:
                return
            # What was written to the old file after our last look.
            yield from self._rest()
            os.close(self.fd)
            self.fd = fd
            self._begin()
            yield from self._written()

    def _begin(self) -> None:
        os.lseek(self.fd, 0, os.SEEK_SET)
        self._position = 0
        self._parser = RecordParser(self.path)

    def _rest(self) -> Iterator[Record | Damage]:
        yield from self._written()
        yield from self._checked(self._parser.finish())

    def _written(self) -> Iterator[Record | Damage]:
        while data := self._read():
            self._position += len(data)
            yield from self._checked(self._parser.feed(data))

    def _checked(self, lines: Iterator[Record | Damage]) -> Iterator[Record | Damage]:
        """Yield lines; damaged lines at the beginning wait for the first record."""
        for line in lines:
            if isinstance(line, Record):
                yield from self._damaged_first
                self._damaged_first = []
                self._has_record = True
            elif not self._has_record:
                self._damaged_first.append(line)
                if len(self._damaged_first) == _MAX_DAMAGED_FIRST:
                    raise self._no_audit()
                continue
            yield line

    def _read(self) -> bytes:
        if not self._is_regular:
            self._before_waiting()
        try:
            return os.read(self.fd, _CHUNK_BYTES)
        except OSError as error:
            raise self._unreadable(error) from None

    def _made_anew(self) -> int:
        """Open the file at the path if it is another; return -1 if it is the same or gone."""
        try:
            if os.path.samestat(self.path.stat(), os.fstat(self.fd)):
                return -1
            return os.open(self.path, _OPEN_FLAGS | os.O_NONBLOCK)
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise self._unreadable(error) from None

    def _no_audit(self) -> VerbError:
        first = self._damaged_first[0]
        return self._refusal(f"is no audit: line {first.line} {first.reason}")

    def _unreadable(self, error: OSError) -> VerbError:
        return self._refusal(f"can't be read: {error.strerror}")

    def _refusal(self, reason: str) -> VerbError:
        return VerbError(
            f"{visible(str(self.path))} {reason}. Give the path of an audit, written with --audit."
        )


class Growth:
    """Waits until audits have grown."""

    def __init__(self, sources: Sequence[AuditFile]) -> None:
        self._sources = sources
        self._inotify = files.open_inotify()
        self._poll = select.poll()
        if self._inotify >= 0:
            self._poll.register(self._inotify, select.POLLIN)
        # Reports only that the reader of our output is gone.
        self._poll.register(1, 0)
        self._watch()

    def _watch(self) -> None:
        """Watch the audits' present files; their earlier files may wake us for nothing."""
        for source in self._sources:
            files.watch(self._inotify, source.fd)

    def wait(self) -> bool:
        """Wait until an audit grows, or a moment; False if nobody reads our output any more."""
        self._watch()
        is_blind = self._inotify < 0
        events = dict(self._poll.poll(_LOOK_WITHOUT_EVENTS_MS if is_blind else _LOOK_MS))
        if events.get(1, 0) & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            return False
        if self._inotify in events:
            files.read_watches(self._inotify)
        return True


def merged(sources: Iterable[Iterator[Record]]) -> Iterator[Record]:
    """Yield the records of audits by time, holding one of each in memory."""
    iterators = list(sources)
    if len(iterators) == 1:
        return iterators[0]
    return heapq.merge(*iterators, key=attrgetter("ended_at"))
