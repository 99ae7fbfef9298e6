"""Reads audits: JSON Lines, a record for each call, which `tmux_debug_mcp.audit` has written.

An audit is read one line at a time, so its size does not matter. A line that is no record, such as
one that a killed server has half written, becomes a `Damage`, and the lines behind it are read.

`read` yields records. `Parser` is for those who have only a part of the audit at a time, or need
the bytes of a line as well: it is fed bytes and yields lines, and does no I/O.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

# A record has the arguments of a call, whose text is at most 1 MiB before JSON escapes it.
MAX_LINE_BYTES = 8 << 20

_CHUNK_BYTES = 1 << 18
# Half a surrogate pair, which our server writes as JSON allows it, and orjson refuses.
_SURROGATE = b"\\ud"
# 9999-12-31T00:00Z: what is later can't be shown in every time zone.
_MAX_TIME_S = 253_402_214_400.0

# The fields of a record that are not arguments of the call. How it came out is on record only where
# it has a reason: `signal` may be an argument, too.
_FACTS = frozenset(
    {"ts", "run", "tool", "caller", "pane_id", "output_bytes", "capture", "cursor"}
    | {"duration_ms", "ok", "error"}
)
_OUTCOME = frozenset({"reason", "exit_code", "signal"})
# Results in words, of reasons that are failures whatever the pane's program did.
_FAILURES = {
    "timed_out": "timed out",
    "running": "timed out",
    "shell_interrupted": "timed out",
    "stopped": "stopped",
    "flooded": "flooded",
    "given_up": "given up",
    "shell_ended": "ended",
    "replaced": "replaced",
}
# Arguments that name what is waited for.
_CONDITIONS = ("wait_for", "pattern", "stop_pattern", "idle_s", "port")
OK = "ok"
_SIGNAL = re.compile(r"SIG[A-Z]{1,6}[0-9]?(?:\+[0-9]{1,2})?")
# What names the pane of a call: the answer, else the arguments of the toolsets.
_PANE_FIELDS = ("pane_id", "window_id", "session", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A call, as it is on record.

    Attributes:
        path: The audit.
        line: The number of its line, from 1.
        ended_at: When the call was answered, in seconds since the epoch.
        run: The server run, "" where an older version has not recorded it.
        tool: The tool, without `tmux_`, or the verb.
        pane: The pane's id or name as the record has it, several of them with a comma and a blank
            between them, "" if the call concerned none.
        caller: Who called, "" for the server's MCP client.
        arguments: The arguments of the call.
        duration_s: How long it took, None where that is not on record or can't be.
        result: How it came out, in a word or two: "ok", "failed" where it was not answered, or how
            what it ran or waited for failed: "exit 3", "SIGSEGV", "timed out".
        error: Why it was not answered, "" if it was.
        output_bytes: The size of the text that it returned of the pane, None if it returned none.
        capture: The file beside the captures that has this text, "" where none was kept.
        cursor: The cursor of the pane after the call, None where there is none on record.
    """

    path: Path
    line: int
    ended_at: float
    run: str
    tool: str
    pane: str
    caller: str
    arguments: Mapping[str, Any]
    duration_s: float | None
    result: str
    error: str
    output_bytes: int | None
    capture: str
    cursor: int | None

    @property
    def began_at(self) -> float:
        """When the call began, in seconds since the epoch."""
        return self.ended_at - (self.duration_s or 0.0)


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that is no record.

    Attributes:
        path: The audit.
        line: The number of the line, from 1.
        reason: What is wrong, as a predicate: "is no JSON".
    """

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        """Return a sentence about it."""
        return f"{self.path}, line {self.line}, {self.reason} and is skipped."


class Line(NamedTuple):
    """A line of an audit that has a record. What few lines are asked for is found when asked for.

    Attributes:
        path: The audit.
        number: The number of the line, from 1.
        data: Its bytes, without the line feed.
        fields: The same, parsed. `tool` is a string.
        ended_at: When the call was answered, in seconds since the epoch.
    """

    path: Path
    number: int
    data: bytes
    fields: Mapping[str, Any]
    ended_at: float

    @property
    def tool(self) -> str:
        """The tool, without `tmux_`, or the verb."""
        return str(self.fields["tool"])

    @property
    def run(self) -> str:
        """The server run, "" where an older version has not recorded it."""
        return _text(self.fields.get("run"))

    @property
    def panes(self) -> tuple[str, ...]:
        """The ids or names of the panes that the call concerned, as the record has them."""
        return _panes(self.fields)

    @property
    def caller(self) -> str:
        """Who called, "" for the server's MCP client."""
        return _text(self.fields.get("caller"))

    @property
    def is_answered(self) -> bool:
        """The call was answered, however what it did came out."""
        return self.fields.get("ok") is not False

    @property
    def result(self) -> str:
        """How the call came out; see `Record`."""
        if not self.is_answered:
            return "failed"
        fields = self.fields
        reason = fields.get("reason")
        if not self._has_outcome or reason == "killed":  # which is what was asked for
            return OK
        if reason in _FAILURES:
            return _FAILURES[reason]
        signal, exit_code = _text(fields.get("signal")), _count(fields.get("exit_code"))
        is_signal = _SIGNAL.fullmatch(signal) is not None
        if is_signal or exit_code:
            return signal if is_signal else f"exit {exit_code}"
        names_condition = any(name in fields for name in _CONDITIONS)
        ended_early = reason == "exited" and (exit_code is None or names_condition)
        return "ended" if ended_early else OK

    @property
    def _has_outcome(self) -> bool:
        return self.is_answered and isinstance(self.fields.get("reason"), str)

    def record(self) -> Record:
        """Return the record."""
        fields = self.fields
        duration_ms = _number(fields.get("duration_ms"))
        if duration_ms is not None and duration_ms > self.ended_at * 1000:
            duration_ms = None  # it would have begun before 1970
        facts = _FACTS | _OUTCOME if self._has_outcome else _FACTS
        return Record(
            path=self.path,
            line=self.number,
            ended_at=self.ended_at,
            run=self.run,
            tool=self.tool,
            pane=", ".join(self.panes),
            caller=self.caller,
            arguments={name: given for name, given in fields.items() if name not in facts},
            duration_s=None if duration_ms is None else duration_ms / 1000,
            result=self.result,
            error=_text(fields.get("error")),
            output_bytes=_count(fields.get("output_bytes")),
            capture=_text(fields.get("capture")),
            cursor=_count(fields.get("cursor")),
        )


class Parser:
    """Makes lines of the bytes of an audit, however they are cut into parts.

    Args:
        path: The audit's path, for the lines.
        first_line: The number of the first line.
    """

    def __init__(self, path: Path, first_line: int = 1) -> None:
        self._path = path
        self._number = first_line
        # The beginning of a line whose end has not been fed yet.
        self._begun = b""
        # The rest of this line is skipped: it is too long.
        self._is_skipping = False

    def feed(self, data: bytes) -> Iterator[Line | Damage]:
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
            yield self._too_long()
            self._begun = b""
            self._is_skipping = True

    def finish(self) -> Iterator[Line | Damage]:
        """Yield the last line, if it has no line feed. Nothing can be fed any more."""
        if self._begun and not self._is_skipping:
            yield from self._parsed(self._begun, is_whole=False)

    def _parsed(self, data: bytes, *, is_whole: bool = True) -> Iterator[Line | Damage]:
        if len(data) > MAX_LINE_BYTES:
            yield self._too_long()
        elif data and not data.isspace():
            yield _line(data, self._path, self._number, is_whole=is_whole)

    def _too_long(self) -> Damage:
        return Damage(self._path, self._number, f"has more than {MAX_LINE_BYTES >> 20} MiB")


def read(file: BinaryIO, path: Path, first_line: int = 1) -> Iterator[Record | Damage]:
    """Yield the records of an audit from a file's position on, and its damaged lines.

    Args:
        file: The audit, open for reading, or a part of it that ends with a line.
        path: Its path.
        first_line: The number of the first line.

    Raises:
        OSError: It can't be read.
    """
    parser = Parser(path, first_line)
    while data := file.read(_CHUNK_BYTES):
        for line in parser.feed(data):
            yield line if isinstance(line, Damage) else line.record()
    for line in parser.finish():
        yield line if isinstance(line, Damage) else line.record()


def parse(line: bytes, path: Path, number: int) -> Record | Damage:
    """Return the record that a line is."""
    data = line.removesuffix(b"\n")
    parsed = _line(data, path, number, is_whole=line.endswith(b"\n"))
    return parsed if isinstance(parsed, Damage) else parsed.record()


def _line(data: bytes, path: Path, number: int, *, is_whole: bool) -> Line | Damage:
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError:
        fields = _with_surrogates(data)
        if fields is None:
            return Damage(path, number, "is no JSON" if is_whole else "is not written to its end")
    if not isinstance(fields, dict):
        return Damage(path, number, "is no record")
    ended_at = _time(fields.get("ts"))
    if ended_at is None or not isinstance(fields.get("tool"), str):
        return Damage(path, number, "has no time or no tool")
    return Line(path, number, data, fields, ended_at)


def _with_surrogates(data: bytes) -> object:
    """Return what JSON means that may have half a surrogate pair in it, None if it is no JSON."""
    if _SURROGATE not in data.lower():
        return None
    try:
        value: object = json.loads(data.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> None:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(constant)


def _time(value: object) -> float | None:
    """Return a time of a record in seconds since the epoch, None if it is none."""
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


def _panes(fields: Mapping[str, Any]) -> tuple[str, ...]:
    for name in _PANE_FIELDS:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return (value,)
        if isinstance(value, list):
            return tuple(pane for pane in value if isinstance(pane, str))
    return ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
