"""Recordings of what panes print, with the times: asciicast v2, a header and one event per line.

Source: https://docs.asciinema.org/manual/asciicast/v2/

A recording begins with what the screen shows then. Each event is written as soon as it happens, so
the file is complete whatever ends the recording.
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

    Args:
        pane: The pane to record.
        path: The file to make. Directories on its way are made, too.

    Attributes:
        pane: The pane.
        path: The file.
        events: The number of events in the file.
        is_over: The recording has ended.
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
        """Write the header, and what the screen shows.

        Raises:
            PaneLostError: The pane is gone.
            StorageError: There is no room in the file.
        """
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

        A failure ends the recording and nothing else; `reason` tells it.
        """
        try:
            await self._follow()
        except Exception as error:  # noqa: BLE001  a background task's failure is its own
            traceback.print_exc(file=sys.stderr)
            self.stop(_reason(error))

    async def _follow(self) -> None:
        async with self.pane.subscribe() as subscription:
            while not self.is_over:
                # Asked before the output is taken, which is complete if the program has ended.
                ending = await self.pane.ending()
                with contextlib.suppress(StorageError):
                    self.take()
                if ending:
                    self.stop()
                else:
                    await subscription.wait(math.inf)

    def take(self) -> None:
        """Write what was printed since the last time.

        Raises:
            StorageError: There is no room in the file. The recording has ended then.
        """
        log = self.pane.log
        self._take_size((log.columns, log.rows))
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

    def _take_size(self, size: tuple[int, int]) -> None:
        if size != self._size:
            self._size = size
            self._write_event("r", f"{size[0]}x{size[1]}")

    def stop(self, reason: str = "") -> None:
        """End the recording.

        Args:
            reason: Why the recording ends by itself, "" if the user ends it.
        """
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
        """Write a line, or end the recording if there is no room for it.

        Returns:
            Whether it was written.

        Raises:
            StorageError: The disk is full.
        """
        line = orjson.dumps(value) + b"\n"
        if self.is_over:
            return False
        if self._written + len(line) > MAX_RECORDING_BYTES:
            self.stop(f"it came to {MAX_RECORDING_BYTES >> 20} MiB")
            return False
        try:
            self._append(line)
        except OSError as error:
            self.stop(str(error.strerror))
            raise StorageError(str(self.path), str(error.strerror)) from error
        return True

    def _append(self, line: bytes) -> None:
        if os.write(self._fd, line) < len(line):
            # Players read whole lines only.
            os.ftruncate(self._fd, self._written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._written += len(line)


def _reason(error: BaseException) -> str:
    """Return in a few words why a recording failed."""
    cause = first_of(error)
    if isinstance(cause, OSError):
        return str(cause.strerror)
    return str(cause) or type(cause).__name__


def _create(path: Path) -> int:
    """Make the file of a recording and return its descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        with contextlib.suppress(FileExistsError):  # something else: opening the file tells so
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)
    except FileExistsError:
        raise ArgumentError(
            f"Parameter 'path' is '{path}', which is there already. Give another one."
        ) from None
    except OSError as error:
        raise ArgumentError(
            f"Parameter 'path' is '{path}', which can't be written ({error.strerror}). "
            "Give another one."
        ) from error
