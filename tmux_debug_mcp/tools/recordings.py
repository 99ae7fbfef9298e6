"""The recordings that the toolset `terminal` has begun."""

import contextlib
from pathlib import Path

from tmux_debug_mcp.errors import LimitReachedError, StorageError
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.recording import Recording


class Recordings:
    """The last recording of each pane, until it is stopped.

    Args:
        engine: The engine, at whose end the recordings get the last output.
    """

    def __init__(self, engine: Engine) -> None:
        self._tasks = engine.tasks
        self._recordings: dict[str, Recording] = {}
        engine.at_end(self._finish)

    async def start(self, pane: Pane, path: Path) -> Recording:
        """Begin to record a pane.

        Raises:
            ArgumentError: There is such a file already, or it can't be written.
            LimitReachedError: The pane is being recorded already.
            PaneExitedError: Its program has ended.
            PaneLostError: It is gone.
            StorageError: There is no room in the file.
        """
        await pane.check_running()
        # Nothing is awaited between this check and the entry: of several calls, one gets through.
        other = self.of(pane)
        if other:
            raise LimitReachedError(f"'{pane.name}' is being recorded already, to {other.path}.")
        recording = Recording(pane, path)
        self._recordings[pane.id] = recording
        try:
            await recording.begin()
        except BaseException:  # also when the call is cancelled
            self._discard(recording)
            raise
        self._tasks.start_soon(recording.serve)
        return recording

    def _discard(self, recording: Recording) -> None:
        """Remove a recording that could not begin, unless another call has stopped it already."""
        pane_id = recording.pane.id
        if self._recordings.get(pane_id) is not recording:
            return
        del self._recordings[pane_id]
        recording.stop()
        recording.path.unlink(missing_ok=True)

    def of(self, pane: Pane) -> Recording | None:
        """Return the recording of a pane that goes on, None if there is none."""
        recording = self._recordings.get(pane.id)
        return None if recording is None or recording.is_over else recording

    def stop(self, target: str) -> Recording | None:
        """End the last recording of a pane of this id or name, and return it.

        Raises:
            StorageError: There is no room for the last output.
        """
        for pane_id, recording in reversed(self._recordings.items()):
            if target in (pane_id, recording.pane.name):
                del self._recordings[pane_id]
                if not recording.is_over:
                    recording.take()
                    recording.stop()
                return recording
        return None

    def _finish(self) -> None:
        """Record the last output."""
        for recording in self._recordings.values():
            if not recording.is_over:
                with contextlib.suppress(StorageError):
                    recording.take()
