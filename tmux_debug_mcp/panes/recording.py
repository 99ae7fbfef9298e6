"""Recordings of what panes print, with times: asciicast v2, a header and one event per line.

Source: https://docs.asciinema.org/manual/asciicast/v2/

A recording begins with the current screen. Each event is written as soon as it happens, so the file
is complete whatever ends the recording.
"""

import codecs
import contextlib
import errno
import math
import os
import sys
import traceback
from pathlib import Path

import orjson

from tmux_debug_mcp.errors import ArgumentError, StorageError, first_of
from tmux_debug_mcp.logs.positioning import sets_at
from tmux_debug_mcp.vt.marks import without_marks

from .capturing import capture_screen_as_text
from .pane import Pane

MAX_RECORDING_BYTES = 256 << 20
# The log is read in pieces of this size.
_PIECE_BYTES = 1 << 16


class Recording:
    """A recording that goes on until `stop`, or until the end of the pane's program.

    Missing directories above its file are made, too.

    Attributes:
        events: The number of events in the file.
        reason: Why the recording ended by itself, "" if it did not.
        duration_s: The length of the recording in seconds, 0 until it has ended.

    Raises:
        ArgumentError: The file exists already or can't be made.
    """

    def __init__(self, pane: Pane, path: Path) -> None:
        self.pane = pane
        self.path = path
        self.events = 0
        self.is_over = False
        self.reason = ""
        self.duration_s = 0.0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._position = pane.log.size
        self._size = (pane.log.columns, pane.log.rows)
        self._written = 0
        self._begun_at = pane.clock.now()
        self._fd = _create(path)

    async def begin(self) -> None:
        """Write the header, and what the screen shows."""
        columns, rows = self._size
        header = {
            "version": 2,
            "width": columns,
            "height": rows,
            "timestamp": int(self.pane.clock.wall()),
            "title": self.pane.name,
            "env": {"TERM": "tmux-256color"},
        }
        self._write(header)
        self._position = self.pane.log.size
        sets = sets_at(self.pane.log, self._position)
        screen = await capture_screen_as_text(self.pane)
        self._write_event("o", screen + sets.sequences)

    async def serve(self) -> None:
        """Record until the recording is stopped, the program ends or something fails.

        A failure ends only the recording; `reason` describes it.
        """
        try:
            async with self.pane.subscribe() as subscription:
                while not self.is_over:
                    # Asked before taking the output, which is complete if the program has ended.
                    ending = await self.pane.ending()
                    with contextlib.suppress(StorageError):
                        self.take()
                    if ending:
                        self.stop()
                    else:
                        await subscription.wait(math.inf)
        except Exception as error:  # noqa: BLE001  a background task's failure is its own
            traceback.print_exc(file=sys.stderr)
            cause = first_of(error)
            reason = cause.strerror if isinstance(cause, OSError) else str(cause)
            self.stop(reason or type(cause).__name__)

    def take(self) -> None:
        """Write what was printed since the last time.

        Raises:
            StorageError: The file can't be written. The recording has ended then.
        """
        log = self.pane.log
        size = (log.columns, log.rows)
        if size != self._size:
            self._size = size
            self._write_event("r", f"{log.columns}x{log.rows}")
        while not self.is_over:
            start = max(self._position, log.kept_from)
            data = log.read(start, _PIECE_BYTES)
            # The beginning of a mark is read again with the rest of it.
            printed, part_of_mark = without_marks(data)
            if len(part_of_mark) == len(data):
                return
            self._position = start + len(data) - len(part_of_mark)
            text = self._decoder.decode(printed)
            if text:
                self._write_event("o", text)

    def stop(self, reason: str = "") -> None:
        """End the recording. A reason says why it ends by itself."""
        if self.is_over:
            return
        self.is_over = True
        self.reason = reason
        self.duration_s = self.pane.clock.now() - self._begun_at
        os.close(self._fd)

    def _write_event(self, kind: str, data: str) -> None:
        elapsed_s = self.pane.clock.now() - self._begun_at
        if self._write([round(elapsed_s, 6), kind, data]):
            self.events += 1

    def _write(self, value: object) -> bool:
        """Write a line; return False if the recording is over, or ends now at the size limit.

        A failed write ends the recording, too, and raises StorageError.
        """
        line = orjson.dumps(value) + b"\n"
        if self.is_over:
            return False
        if self._written + len(line) > MAX_RECORDING_BYTES:
            self.stop(f"it reached {MAX_RECORDING_BYTES >> 20} MiB")
            return False
        cause = None
        try:
            if os.write(self._fd, line) == len(line):
                self._written += len(line)
                return True
            # Players read only whole lines.
            os.ftruncate(self._fd, self._written)
            why = os.strerror(errno.ENOSPC)
        except OSError as error:
            cause, why = error, str(error.strerror)
        self.stop(why)
        raise StorageError(str(self.path), why) from cause


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        with contextlib.suppress(FileExistsError):  # not a directory, so opening the file fails
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)
    except FileExistsError:
        raise ArgumentError(
            f"Parameter 'path' is '{path}', which already exists. Give another path."
        ) from None
    except OSError as error:
        raise ArgumentError(
            f"Parameter 'path' is '{path}', which can't be written ({error.strerror}). "
            "Give another path."
        ) from error
