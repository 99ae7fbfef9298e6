"""Finds the log of a pane: of a running server, or of an earlier run whose logs were kept."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmux_debug_mcp.errors import PaneNotFoundError
from tmux_debug_mcp.logs.archive import Archive, names_run
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError
from tmux_debug_mcp.sockets.servers import CommandError, choose, running

from .casts import Cast, cast


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The log of a pane, open for reading.

    Attributes:
        id: The id of the pane, or `RUN/ID`.
        name: Its name.
        command: Its command.
        log: Its log, with the timing.
    """

    id: str
    name: str
    command: str
    log: Log

    @property
    def timing(self) -> Timing:
        """When the log grew."""
        return self.log.timing


def find(target: str, directory: Path, person: str, environ: Mapping[str, str]) -> FoundLog:
    """Return the log of a pane.

    Args:
        target: The pane's id or name, `RUN/ID` of a kept log, or "" for the only pane.
        directory: The directory of kept logs.
        person: Who asks, for the server's record.
        environ: The environment.

    Raises:
        CommandError: There is no such pane.
    """
    if names_run(target):
        return _kept(target, directory)
    return _of_server(target, person, environ)


def _kept(target: str, directory: Path) -> FoundLog:
    if not directory.is_dir():
        raise CommandError(f"There are no kept logs in {directory}. Name theirs with --log-dir.")
    try:
        found = Archive(directory).find(target)
    except PaneNotFoundError:
        raise CommandError(
            f"There is no log of '{target}' in {directory}. Name another with --log-dir."
        ) from None
    found.log.read_timing(found.entry.started_at)
    return FoundLog(target, found.entry.name, found.entry.command, found.log)


def _of_server(target: str, person: str, environ: Mapping[str, str]) -> FoundLog:
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    wanted = environ.get("TMUX_DEBUG_SERVER", "")
    server = choose(running(runtime), wanted, os.getpid(), runtime)
    connection = Connection(server.socket)
    words = ["replay", *([target] if target else [])]
    connection.send({"want": "verb", "words": words, "cwd": "/", "person": person})
    for message in connection.messages():
        if "err" in message:
            raise CommandError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
        if "log" in message:
            try:
                return _shared(message["log"])
            finally:
                connection.close()
    raise ServerGoneError("The server has ended.")


def _shared(facts: Any) -> FoundLog:  # noqa: ANN401  what our server says
    timing = Timing(0.0)
    timing.read(facts["timing"])
    try:
        log = Log.shared(Path(facts["path"]), timing)
    except OSError as error:
        raise CommandError(f"The log can't be read: {error}. Call again.") from error
    return FoundLog(facts["id"], facts["name"], facts["command"], log)


class KeptCasts:
    """Recordings made of kept logs.

    Args:
        directory: The directory of kept logs.
    """

    def __init__(self, directory: Path) -> None:
        self._archive = Archive(directory) if directory.is_dir() else None

    def cast_of(self, run: str, pane: str) -> Cast | None:
        """Return the recording of a pane.

        Args:
            run: The server run.
            pane: The pane's id.

        Returns:
            None if its log was not kept.
        """
        target = f"{run}/{pane}"
        if self._archive is None or not names_run(target):
            return None
        try:
            found = self._archive.find(target)
        except PaneNotFoundError:
            return None
        log = found.log
        try:
            log.read_timing(found.entry.started_at)
            text = b"".join(cast(log, found.entry.name)).decode()
            return Cast(text, log.timing.began_at, log.timing.times)
        finally:
            log.close()
