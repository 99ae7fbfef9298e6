"""Logs that are kept after the end: a directory for each run of the server, with an index.

::

    DIR/20260130T101546-4711/index.jsonl     a line of JSON for each pane, written when it is made
    DIR/20260130T101546-4711/debug-1.log     what its terminal got, and the mark that tells how it ended

How a pane ended is told by its log alone, so a server that was killed leaves nothing untold. A pane of a run is
read as `RUN/debug-1`, also by later servers.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from .errors import PaneNotFoundError, StartError, StorageError
from .logs import Log, PastLog
from .panes import State, ended_state

_INDEX = "index.jsonl"


@dataclass(frozen=True, slots=True)
class PastPane:
    """A pane of a run, as its log tells it. Whoever has it must close the log."""

    id: str
    name: str
    command: str
    log: Log
    started_at: float

    async def state(self) -> State:
        """Return how its program ended; lost, if that was with the server."""
        runtime_s = max(0.0, self.log.written_at - self.started_at)
        mark = self.log.find_mark()
        return ended_state(mark.exit_code if mark else None, runtime_s, mark.offset if mark else self.log.size)


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
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StartError(f"The log directory can't be made: {error}. Give a path that can be written.") from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StartError(f"The log directory {directory} can't be written. Give another one.")

    def new_log(self, pane_id: str, name: str, command: str, mark: str) -> Log:
        """Return the log of a new pane, which is in the index then.

        Raises:
            StorageError: There is no room for it.
        """
        directory = self._directory / self.run
        entry = {"id": pane_id, "name": name, "command": command, "mark": mark, "started_at": time.time()}
        log = None
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            log = Log(directory / f"{pane_id}.log", mark, is_kept=True)
            fd = os.open(directory / _INDEX, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, orjson.dumps(entry) + b"\n")
            finally:
                os.close(fd)
        except OSError as error:
            if log:
                log.close()
            raise StorageError(str(directory), str(error.strerror)) from error
        return log

    def find(self, target: str) -> PastPane:
        """Return the pane `RUN/ID`, of this run or an earlier one.

        Raises:
            PaneNotFoundError: There is none.
        """
        run, _, pane_id = target.rpartition("/")
        index = self._directory / run / _INDEX
        if run in ("", ".", "..") or "/" in run:
            raise PaneNotFoundError(target)
        try:
            for line in index.read_bytes().splitlines():
                entry = orjson.loads(line)
                if entry["id"] == pane_id:
                    log = PastLog(index.with_name(f"{pane_id}.log"), entry["mark"])
                    return PastPane(target, entry["name"], entry["command"], log, entry["started_at"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PaneNotFoundError(target) from error
        raise PaneNotFoundError(target)
