"""Logs of panes, of a running server or kept from an earlier run, and recordings made from them.

Recordings are asciicast v2, with the times at which the log was seen to grow. Source:
https://docs.asciinema.org/manual/asciicast/v2/
"""

import codecs
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tmux_debug_mcp.errors import PaneNotFoundError
from tmux_debug_mcp.logs.archive import Archive, names_run
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.sockets.choosing import LOOKS, server_for
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.vt.marks import without_marks

# How much of a log is read at a time.
_PIECE_BYTES = 1 << 16


class FoundLog(NamedTuple):
    """The log of a pane, open for reading, with its timing. `id` is the pane's, or `RUN/ID`."""

    id: str
    name: str
    log: Log


def find(target: str, directory: Path, person: str, environ: Mapping[str, str]) -> FoundLog:
    """Return the log of a pane: its id or name, `RUN/ID` of a kept log, or "" for the only log.

    `directory` is where logs are kept, and `person` is who asks.
    """
    if not names_run(target):
        return _of_server(target, person, environ)
    if not directory.is_dir():
        raise VerbError(
            f"There are no kept logs in {directory}. Give their directory with --log-dir."
        )
    try:
        found = Archive(directory).find(target)
    except PaneNotFoundError:
        raise VerbError(
            f"There is no log of '{target}' in {directory}. Give another directory with --log-dir."
        ) from None
    found.log.read_timing(found.entry.started_at)
    return FoundLog(target, found.entry.name, found.log)


def _of_server(target: str, person: str, environ: Mapping[str, str]) -> FoundLog:
    server = server_for(environ, LOOKS, lambda: [target] if target else [])
    connection = Connection(server.socket)
    words = ["replay", *([target] if target else [])]
    connection.send({"want": "verb", "words": words, "cwd": "/", "person": person})
    for message in connection.answers():
        if "log" in message:
            facts: Any = message["log"]  # what our server says
            timing = Timing(0.0)
            try:
                timing.read(facts["timing"])
                log = Log.shared(Path(facts["path"]), timing)
            except OSError as error:
                raise VerbError(f"The log can't be read: {error}. Try again.") from error
            finally:
                connection.close()
            return FoundLog(facts["id"], facts["name"], log)
    raise ServerGoneError("The server has ended.")


class Cast(NamedTuple):
    """A recording, when it began, in seconds since the epoch, and when the pane printed since."""

    text: bytes
    began_at: float
    times: Sequence[float]

    def marks(self, maximum: int) -> list[float]:
        """Return at most `maximum` moments of output, in milliseconds since the epoch."""
        every = len(self.times) // maximum + 1
        return [round((self.began_at + at_s) * 1000, 1) for at_s in self.times[::every]]


def cast(log: Log, title: str, idle_s: float | None = None) -> Iterator[bytes]:
    """Yield the lines of a recording; players limit its pauses to `idle_s` seconds, if given.

    No line holds more than a piece of the log.
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
    resizes = deque(timing.resizes)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = b""
    for start, end in pairwise(_steps(log)):
        at_s = round(timing.time_of(end), 6)
        while resizes and resizes[0].cursor <= start:
            change = resizes.popleft()
            yield orjson.dumps([at_s, "r", f"{change.columns}x{change.rows}"]) + b"\n"
        for begin in range(start, end, _PIECE_BYTES):
            data, held = without_marks(held + log.read(begin, min(_PIECE_BYTES, end - begin)))
            text = decoder.decode(data)
            if text:
                yield orjson.dumps([at_s, "o", text]) + b"\n"


def _steps(log: Log) -> Iterator[int]:
    """Yield the cursors at which a log was looked at, oldest first, up to its end."""
    size = log.size
    yield log.kept_from
    yield from (cursor for cursor in log.timing.sizes if log.kept_from < cursor < size)
    yield size


def kept_casts(directory: Path) -> Callable[[str, str, int], Cast | None]:
    """Return a function that records a log in a directory, given its server run and pane id.

    It returns None for a log that was not kept, or whose recording has more bytes than it is given.
    """
    archive = Archive(directory) if directory.is_dir() else None

    def cast_of(run: str, pane: str, max_bytes: int) -> Cast | None:
        target = f"{run}/{pane}"
        if archive is None or not names_run(target):
            return None
        try:
            found = archive.find(target)
        except PaneNotFoundError:
            return None
        with contextlib.closing(found.log) as log:
            log.read_timing(found.entry.started_at)
            lines, size = [], 0
            for line in cast(log, found.entry.name):
                size += len(line)
                if size > max_bytes:
                    return None
                lines.append(line)
            return Cast(b"".join(lines), log.timing.began_at, log.timing.times)

    return cast_of
