"""Recordings of what panes print, with the times: asciicast v2, a line of JSON for a header and each event.

https://docs.asciinema.org/manual/asciicast/v2/. A recording begins with what the screen shows then. Each event is in
the file as soon as it has happened, so a recording is good whatever ends it.
"""

import codecs
import contextlib
import errno
import os
import time
from pathlib import Path

import orjson

from tmux_debug_mcp.errors import ArgumentError, StorageError
from tmux_debug_mcp.logs.positioning import sets_at
from tmux_debug_mcp.vt.marks import JOB_MARK, MAX_MARK_BYTES, PANE_MARK, PART_OF_MARK

from .capturing import capture_screen_as_text
from .pane import Pane

MAX_RECORDING_BYTES = 256 << 20
_PIECE_BYTES = 1 << 16
_LOOK_AGAIN_S = 3600.0


class Recording:
    """A recording that goes on until `stop`, or the end of the pane's program.

    Attributes:
        pane: What it is of.
        path: Its file.
        events: How many it has.
        is_over: Whether it has ended.
        reason: Why it ended before its time, if it did.
    """

    def __init__(self, pane: Pane, path: Path) -> None:
        self.path = path
        self.events = 0
        self.is_over = False
        self.reason = ""
        self.pane = pane
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._position = pane.log.size
        self._size = pane.log.columns, pane.log.rows
        self._written = 0
        self._begun_at = time.monotonic()
        self.duration_s = 0.0
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise ArgumentError(f"Parameter 'path' is '{path}', which is there already. Give another one.") from None
        except OSError as error:
            raise ArgumentError(
                f"Parameter 'path' is '{path}', which can't be written ({error.strerror}). Give another one."
            ) from error

    async def begin(self) -> None:
        """Write the header, and what the screen shows.

        Raises:
            PaneLostError: The pane is gone.
            StorageError: There is no room.
        """
        header = {"version": 2, "width": self._size[0], "height": self._size[1], "timestamp": int(time.time())}
        self._write(header | {"title": self.pane.name, "env": {"TERM": "tmux-256color"}})
        self._position = self.pane.log.size
        sets = sets_at(self.pane.log, self._position)
        self._event("o", await capture_screen_as_text(self.pane) + sets.sequences)

    async def serve(self) -> None:
        """Record until the end, or until there is no more room."""
        async with self.pane.subscribe() as subscription:
            while not self.is_over:
                ended = await self.pane.ending()
                with contextlib.suppress(StorageError):
                    self.take()
                if ended:
                    self.stop()
                else:
                    await subscription.wait(_LOOK_AGAIN_S)

    def take(self) -> None:
        """Write what has been printed since the last time.

        Raises:
            StorageError: There is no room; the recording is over then.
        """
        log = self.pane.log
        if (size := (log.columns, log.rows)) != self._size:
            self._size = size
            self._event("r", f"{size[0]}x{size[1]}")
        while not self.is_over and (data := log.read(max(self._position, log.kept_from), _PIECE_BYTES)):
            part = PART_OF_MARK.search(data, max(0, len(data) - MAX_MARK_BYTES))
            whole = data[: part.start()] if part else data
            if not whole:
                break
            self._position = max(self._position, log.kept_from) + len(whole)
            if text := self._decoder.decode(JOB_MARK.sub(b"", PANE_MARK.sub(b"", whole))):
                self._event("o", text)

    def stop(self, reason: str = "") -> None:
        """End it, for a reason if it is none of the user's."""
        if not self.is_over:
            self.is_over = True
            self.reason = reason
            self.duration_s = time.monotonic() - self._begun_at
            os.close(self._fd)

    def _event(self, kind: str, data: str) -> None:
        self._write([round(time.monotonic() - self._begun_at, 6), kind, data])
        self.events += 1

    def _write(self, value: object) -> None:
        line = orjson.dumps(value) + b"\n"
        if self.is_over:
            return
        if self._written + len(line) > MAX_RECORDING_BYTES:
            self.stop(f"it came to {MAX_RECORDING_BYTES >> 20} MiB")
            return
        try:
            self._append(line)
        except OSError as error:
            self.stop(str(error.strerror))
            raise StorageError(str(self.path), str(error.strerror)) from error

    def _append(self, line: bytes) -> None:
        if os.write(self._fd, line) < len(line):
            os.ftruncate(self._fd, self._written)  # players want whole lines
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._written += len(line)
