"""The sessions of the toolset `terminal`: panes by name, and their recordings.

The session called `default` is made on first use, and again after it was closed.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import anyio

from tmux_debug_mcp.errors import ArgumentError, LimitReachedError, PaneNotFoundError, StorageError
from tmux_debug_mcp.logs.archive import names_run
from tmux_debug_mcp.panes.creation import NewPane, interactive_shell
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.prompts import AtPrompt, prompt
from tmux_debug_mcp.panes.recording import Recording
from tmux_debug_mcp.panes.watching import rest

DEFAULT = "default"


class Sessions:
    """Finds sessions, and makes them.

    Attributes:
        engine: The engine.
        recordings: The recordings of panes.
        drawing: Lets one picture be drawn at a time, since that takes memory.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.recordings = Recordings(engine)
        self.drawing = anyio.CapacityLimiter(1)

    async def find(self, name: str, *, to_write: bool = False) -> Pane:
        """Return a session; make the default one if it is missing or lost.

        `to_write` also replaces a default session that has ended.

        Raises:
            ArgumentError: It belongs to an earlier run.
            PaneNotFoundError: There is none of this name.
            AmbiguousNameError: There are several.
        """
        if name != DEFAULT:
            try:
                return await self.engine.find(name)
            except PaneNotFoundError:
                if not names_run(name):
                    raise
                raise ArgumentError(
                    f"Session '{name[:80]}' has ended; at most its log is left. Use getContent, "
                    "or createSession to make another."
                ) from None
        async with self.engine.naming:
            with contextlib.suppress(PaneNotFoundError):
                pane = await self.engine.find(name)
                state = await pane.state()
                if state.is_running or not (to_write or state.is_lost):
                    return pane
            pane = await self.create(name)
        await wait_for_first_look(pane)
        return pane

    async def create(
        self,
        name: str,
        command: str | None = None,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        columns: int | None = None,
        rows: int | None = None,
        is_only: bool = False,
    ) -> Pane:
        """Make a session with a command or a shell, of the configured size unless one is given.

        With `is_only`, no running one may have its name.

        Raises:
            ArgumentError: The name, the command, the directory or the variables can't be used.
            NameTakenError: A running session has the name.
            PaneLimitError: There are as many sessions as allowed, and all run.
        """
        shell = interactive_shell(self.engine.origin.env)
        configured_columns, configured_rows = self.engine.settings.size
        new = NewPane(
            command or shell,
            name,
            cwd=cwd,
            env=env or {},
            program=() if command else (shell,),
            columns=columns or configured_columns,
            rows=rows or configured_rows,
            is_shown=True,
        )
        return await self.engine.create(new, is_only=is_only)


async def wait_for_first_look(pane: Pane, command: str | None = None) -> None:
    """Wait for what a new session is expected to show: a prompt, or the end of its command."""
    if command:
        await rest(pane, pane.clock.times.early_death_s)
    else:
        await prompt(AtPrompt(pane, pane.clock.times.prompt_soon_s))


class Recordings:
    """The last recording of each pane, until it is stopped.

    When the engine ends, recordings still get the last output.
    """

    def __init__(self, engine: Engine) -> None:
        self._tasks = engine.tasks
        self._recordings: dict[str, Recording] = {}
        engine.at_end(self._finish)

    async def start(self, pane: Pane, path: Path) -> Recording:
        """Start recording a pane.

        Raises:
            ArgumentError: The file exists already or can't be made.
            LimitReachedError: The pane is being recorded already.
            PaneExitedError: Its program has ended.
        """
        await pane.check_running()
        # Nothing is awaited between this check and the entry, so only one of several calls passes.
        other = self.of(pane)
        if other:
            raise LimitReachedError(
                f"'{pane.name}' is already being recorded, to {other.path}. Use stopRecording "
                "first."
            )
        recording = Recording(pane, path)
        self._recordings[pane.id] = recording
        try:
            await recording.begin()
        except BaseException:  # also when the call is cancelled
            if self._recordings.get(pane.id) is recording:  # no other call has stopped it
                del self._recordings[pane.id]
                recording.stop()
                recording.path.unlink(missing_ok=True)
            raise
        self._tasks.start_soon(recording.serve)
        return recording

    def of(self, pane: Pane) -> Recording | None:
        """Return the running recording of a pane, None if there is none."""
        recording = self._recordings.get(pane.id)
        return None if recording is None or recording.is_over else recording

    def stop(self, target: str) -> Recording | None:
        """End and return the last recording of a pane with this id or name, if there is one."""
        for pane_id, recording in reversed(self._recordings.items()):
            if target in (pane_id, recording.pane.name):
                del self._recordings[pane_id]
                if not recording.is_over:
                    recording.take()
                    recording.stop()
                return recording
        return None

    def _finish(self) -> None:
        for recording in self._recordings.values():
            if not recording.is_over:
                with contextlib.suppress(StorageError):
                    recording.take()
