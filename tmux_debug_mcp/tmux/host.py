"""Our tmux server: started when first needed, and again after it died."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import TmuxGoneError, TmuxStartError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS

from .client import Command, ControlClient
from .supervisor import Supervisor
from .targets import Offsets

_CONFIGURATION = Path(__file__).with_name("tmux.conf")
# In tmux a line of 200 columns takes some 200 bytes, or 5 kB if each character has its own colour.
MAX_HISTORY_LINES = 100_000
# tmux's base-index: windows that a person opens are numbered from here on, after those of panes.
_PERSONS_FIRST_WINDOW = "100000"


class TmuxHost:
    """Starts our tmux server, connects to it, and ends it.

    Each server has its own supervisor and its own control mode connection. tmux's ids of sessions,
    windows and panes start at 0 in each server; ours go on. `first_window` returns the lowest
    number for our ids of windows, and is called at the first start.

    Attributes:
        session: The name of the tmux session whose windows are the panes.
    """

    def __init__(
        self,
        settings: Settings,
        tasks: anyio.abc.TaskGroup,
        clock: Clock,
        first_window: Callable[[], int],
    ) -> None:
        self.session = f"debug-{os.getpid()}"
        self._settings = settings
        self._tasks = tasks
        self._clock = clock
        self._first_window = first_window
        self._offsets: Offsets | None = None
        self._history_limit: int | None = None
        self._starting = anyio.Lock()
        self._client: ControlClient | None = None
        self._served: anyio.Event | None = None  # set when the last server has been ended
        self._supervisors: set[Supervisor] = set()

    @property
    def client(self) -> ControlClient | None:
        """The connection to the running tmux server; None while no server runs."""
        if self._client is None or self._client.gone.is_set():
            return None
        return self._client

    async def connected(self) -> ControlClient:
        """Return the connection to the running tmux server; start a server if none runs.

        Raises:
            OSError: Too many files are open.
            TmuxStartError: tmux does not start.
        """
        async with self._starting:
            client = self.client
            if client is None:
                if self._served is not None:
                    await self._served.wait()
                client = self._client = await self._start()
            return client

    def assign_offsets(self, session: str, window: str, pane: str) -> None:
        """Record our ids of a new pane, so that the ids of the next server follow them."""
        if self._offsets:
            self._offsets = self._offsets.behind(session, window, pane)

    async def set_history_limit(self, lines: int) -> None:
        """Set how many lines of history tmux keeps for panes that are made from now on.

        Raises:
            TmuxGoneError: The server ended meanwhile. The limit is set for the next server.
        """
        self._history_limit = lines
        if self.client:
            await self.client.run(_history_limit(lines))

    async def active_windows(self) -> set[str]:
        """Return our ids of the active windows, one for each session; none while no server runs."""
        client = self.client
        if client is None:
            return set()
        active = ("list-windows", "-a", "-f", "#{window_active}", "-F", "#{window_id}")
        try:
            [lines] = await client.run(active)
        except TmuxGoneError:
            return set()
        return {client.offsets.ours(line.decode()) for line in lines}

    def close(self) -> None:
        """End all tmux servers with everything in them. Blocks for some milliseconds."""
        supervisors = tuple(self._supervisors)
        for supervisor in supervisors:
            supervisor.close()
        self._reap(*supervisors)

    async def _start(self) -> ControlClient:
        if self._offsets is None:
            self._offsets = Offsets(windows=self._first_window())
        settings = self._settings
        try:
            supervisor = Supervisor(
                self._argv, settings.env, settings.runtime_dir, settings.socket_dir
            )
        except OSError as error:
            if error.errno in processes.OUT_OF_FILES:
                raise
            raise TmuxStartError(str(error)) from error
        self._supervisors.add(supervisor)
        client = ControlClient(supervisor, self._offsets, self._clock)
        self._served = anyio.Event()
        self._tasks.start_soon(self._serve, client, supervisor, self._served)
        try:
            with self._clock.fail_after(self._clock.times.tmux_start_s):
                await client.greet()
                await self._configure(client)
        except (TmuxGoneError, TimeoutError):
            supervisor.end()
            raise TmuxStartError(" ".join(client.last_words) or "it said nothing") from None
        except BaseException:
            # The call may have been cancelled, and only this method knows of the new server.
            supervisor.end()
            raise
        return client

    async def _configure(self, client: ControlClient) -> None:
        """Set the options that are not in tmux.conf."""
        base_index = ("base-index", _PERSONS_FIRST_WINDOW)
        await client.run(("set-option", "-t", client.session, *base_index))
        if self._history_limit is not None:
            await client.run(_history_limit(self._history_limit))

    def _argv(self, directory: Path) -> Sequence[str]:
        """Return the command that starts tmux, with its socket in a directory and one session."""
        server = [self._settings.tmux, "-u", "-S", f"{directory}/tmux", "-f", str(_CONFIGURATION)]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        session = ["new-session", "-f", "no-output", "-s", self.session, *size]
        # A window that is not a pane of ours keeps tmux running when the last pane is killed.
        window = ["-n", "panes", "printf", "The panes are the other windows."]
        return [*server, "-C", *session, *window]

    async def _serve(
        self, client: ControlClient, supervisor: Supervisor, served: anyio.Event
    ) -> None:
        """Serve a connection until tmux ends, then end the supervisor and set `served`.

        A failure costs the panes of this tmux server and nothing else.
        """
        try:
            try:
                await client.serve()
            finally:
                # Ends processes that outlived tmux. Logs stay readable: they are open.
                supervisor.close()
            await anyio.to_thread.run_sync(self._reap, supervisor)
        except Exception:  # noqa: BLE001  a background task's failure is its own
            traceback.print_exc(file=sys.stderr)
        finally:
            client.close_memory()
            served.set()

    def _reap(self, *supervisors: Supervisor) -> None:
        """Wait for supervisors to end, and end the descendants that killed supervisors left.

        Only a subreaper gets such descendants. It spares those of supervisors that still run.
        """
        for supervisor in supervisors:
            supervisor.wait(self._clock.times.supervisor_end_s)
            self._supervisors.discard(supervisor)
        if self._settings.is_subreaper:
            others = frozenset(supervisor.pid for supervisor in tuple(self._supervisors))
            processes.end_descendants(os.getpid(), others)
            processes.reap_adopted(others)


def _history_limit(lines: int) -> Command:
    return ("set-option", "-g", "history-limit", str(lines))
