"""Reads audits: JSON Lines, a record for each call, which `tmux_debug_mcp.audit` has written.

An audit is read one line at a time, so its size does not matter. A line that is no record, such as
one that a killed server has half written, becomes a `Damage`, and the lines behind it are read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import orjson

# A record has the arguments of a call, whose text is at most 1 MiB before JSON escapes it.
MAX_LINE_BYTES = 8 << 20

# The fields of a record that are not arguments of the call.
_FACTS = frozenset(
    {"ts", "tool", "caller", "pane_id", "output_bytes", "capture", "cursor"}
    | {"duration_ms", "ok", "error"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A call, as it is on record.

    Attributes:
        path: The audit.
        line: The number of its line, from 1.
        ended_at: When the call was answered, in seconds since the epoch.
        tool: The tool, without `tmux_`, or the verb.
        pane: The pane's id or name as the record has it, "" if the call concerned none.
        caller: Who called, "" for the server's MCP client.
        arguments: The arguments of the call.
        duration_s: How long it took, None where an older version has not recorded it.
        is_ok: It did not fail.
        error: Why it failed, "" if it did not.
        output_bytes: The size of the text that it returned of the pane, None if it returned none.
        capture: The file beside the captures that has this text, "" where none was kept.
        cursor: The cursor of the pane after the call, None where there is none on record.
    """

    path: Path
    line: int
    ended_at: float
    tool: str
    pane: str
    caller: str
    arguments: Mapping[str, Any]
    duration_s: float | None
    is_ok: bool
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


def read(file: BinaryIO, path: Path, first_line: int = 1) -> Iterator[Record | Damage]:
    """Yield the records of an audit from a file's position on, and its damaged lines.

    Args:
        file: The audit, open for reading, or a part of it that ends with a line.
        path: Its path.
        first_line: The number of the first line.

    Raises:
        OSError: It can't be read.
    """
    number = first_line - 1
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
            _skip_line(file)
            yield Damage(path, number, f"has more than {MAX_LINE_BYTES >> 20} MiB")
        elif line.strip():
            yield parse(line, path, number)


def parse(line: bytes, path: Path, number: int) -> Record | Damage:
    """Return the record that a line is."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        is_whole = line.endswith(b"\n")
        return Damage(path, number, "is no JSON" if is_whole else "is not written to its end")
    if not isinstance(value, dict):
        return Damage(path, number, "is no record")
    ended_at = _time(value.get("ts"))
    tool = value.get("tool")
    if ended_at is None or not isinstance(tool, str):
        return Damage(path, number, "has no time or no tool")
    duration_ms = _number(value.get("duration_ms"))
    return Record(
        path=path,
        line=number,
        ended_at=ended_at,
        tool=tool,
        pane=_text(value.get("pane_id")),
        caller=_text(value.get("caller")),
        arguments={name: given for name, given in value.items() if name not in _FACTS},
        duration_s=None if duration_ms is None else duration_ms / 1000,
        is_ok=value.get("ok") is not False,
        error=_text(value.get("error")),
        output_bytes=_count(value.get("output_bytes")),
        capture=_text(value.get("capture")),
        cursor=_count(value.get("cursor")),
    )


def _skip_line(file: BinaryIO) -> None:
    while rest := file.readline(MAX_LINE_BYTES):
        if rest.endswith(b"\n"):
            return


def _time(value: object) -> float | None:
    """Return a time of a record in seconds since the epoch, None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    return float(value)


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
