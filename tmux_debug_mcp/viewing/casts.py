"""Recordings made from logs: asciicast v2, with the times at which the log was seen to grow.

Source: https://docs.asciinema.org/manual/asciicast/v2/
"""

import codecs
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.vt.marks import JOB_MARK, MAX_MARK_BYTES, PANE_MARK, PART_OF_MARK


class Cast(NamedTuple):
    """A recording.

    Attributes:
        text: Its lines.
        began_at: When it began, in seconds since the epoch.
        times: When the pane printed something, in seconds since then.
    """

    text: str
    began_at: float
    times: Sequence[float]

    def marks(self, maximum: int) -> list[float]:
        """Return moments of output in milliseconds since the epoch, at most so many."""
        every = len(self.times) // maximum + 1
        return [round((self.began_at + at_s) * 1000, 1) for at_s in self.times[::every]]


def cast(log: Log, title: str, idle_s: float | None = None) -> Iterator[bytes]:
    """Yield the lines of a recording.

    Args:
        log: The log.
        title: The title of the recording.
        idle_s: The longest pause that players keep, None for all of them.
    """
    timing = log.timing
    header: dict[str, Any] = {
        "version": 2,
        "width": timing.columns,
        "height": timing.rows,
        "timestamp": int(timing.began_at),
        "title": title,
        "env": {"TERM": "tmux-256color"},
    }
    if idle_s is not None:
        header["idle_time_limit"] = idle_s
    yield orjson.dumps(header) + b"\n"
    resizes = list(timing.resizes)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = b""
    for start, end in pairwise([log.kept_from, *steps(log)]):
        at_s = round(timing.time_of(end), 6)
        while resizes and resizes[0].cursor <= start:
            change = resizes.pop(0)
            yield orjson.dumps([at_s, "r", f"{change.columns}x{change.rows}"]) + b"\n"
        data, held = _without_marks(held + log.read(start, end - start))
        text = decoder.decode(data)
        if text:
            yield orjson.dumps([at_s, "o", text]) + b"\n"


def steps(log: Log) -> list[int]:
    """Return the cursors at which a log was looked at, its end the last one, oldest first."""
    cursors = [size for size in log.timing.sizes if log.kept_from < size < log.size]
    return [*cursors, log.size]


def _without_marks(data: bytes) -> tuple[bytes, bytes]:
    """Return data without our marks, and the beginning of a mark at its end."""
    part = PART_OF_MARK.search(data, max(0, len(data) - MAX_MARK_BYTES))
    end = part.start() if part else len(data)
    return JOB_MARK.sub(b"", PANE_MARK.sub(b"", data[:end])), data[end:]
