"""Our tmux server: started when it is first needed, and once more after it died."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from tmux_debug_mcp.errors import TmuxGoneError, TmuxStartError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings

from .client import Command, ControlClient
from .supervisor import Supervisor
from .targets import Offsets

_CONFIGURATION = Path(__file__).with_name("tmux.conf")
# tmux takes some 200 bytes for a line of a pane, and 5 kB where each of its 200 characters has a
# colour of its own.
MAX_HISTORY_LINES = 100_000
# The number of the first window that a person opens, apart from those of the panes.
_PERSONS_FIRST_WINDOW = "100000"
# tmux answers its first command after some 20 ms.
_START_S = 10.0
# A supervisor that has hundreds of stubborn processes to end takes some 200 ms. Clients kill their
# server after 500.
_SUPERVISOR_S = 0.4


class TmuxHost:
    """Starts our tmux server, connects to it, and ends it.

    Each server has a supervisor and a control mode connection of its own. Ids of tmux's sessions,
    windows and panes begin anew with each server; ours go on.

    Args:
        settings: The tmux program, the environment, the runtime directory.
        tasks: Where the connection is served.
        first_window: Returns the lowest number for our ids of windows; called at the first start.

    Attributes:
        session: The name of the tmux session that panes are windows of.
    """

    def __init__(self, settings: Settings, tasks: anyio.abc.TaskGroup, first_window: Callable[[], int]) -> None:
        self.session = f"debug-{os.getpid()}"
        self._settings = settings
        self._tasks = tasks
        self._first_window = first_window
        self._offsets: Offsets | None = None
        self._history_limit: int | None = None
        self._starting = anyio.Lock()
        self._client: ControlClient | None = None
        self._served: anyio.Event | None = None
        self._supervisors: set[Supervisor] = set()

    @property
    def client(self) -> ControlClient | None:
        """The connection to the tmux server, None while no server runs."""
        if self._client is None or self._client.gone.is_set():
            return None
        return self._client

    async def connected(self) -> ControlClient:
        """Return the connection to the tmux server, which is started if none runs.

        Raises:
            TmuxStartError: It does not start.
        """
        async with self._starting:
            client = self.client
            if client is None:
                if self._served is not None:
                    await self._served.wait()
                client = self._client = await self._start()
            return client

    def assign_offsets(self, session: str, window: str, pane: str) -> None:
        """Take note that these of our ids are used, so that the next server's begin behind them."""
        if self._offsets:
            self._offsets = self._offsets.behind(session, window, pane)

    async def set_history_limit(self, lines: int) -> None:
        """Set the number of lines that tmux keeps of each pane made from now on."""
        self._history_limit = lines
        if self.client:
            await self.client.run(_history_limit(lines))

    async def active_windows(self) -> set[str]:
        """Return our ids of the windows that attached people see, one for each session."""
        client = self.client
        if client is None:
            return set()
        active = ("list-windows", "-a", "-f", "#{window_active}", "-F", "#{window_id}")
        try:
            [lines] = await client.run(active)
        except TmuxGoneError:
            return set()
        return {client.offsets.window(line.decode()) for line in lines}

    def close(self) -> None:
        """End all tmux servers with everything in them; blocks for some milliseconds."""
        supervisors = tuple(self._supervisors)
        for supervisor in supervisors:
            supervisor.close()
        self._bury(*supervisors)

    async def _start(self) -> ControlClient:
        if self._offsets is None:
            self._offsets = Offsets(windows=self._first_window())
        supervisor = Supervisor(self._argv, self._settings.env, self._settings.runtime_dir)
        self._supervisors.add(supervisor)
        client = ControlClient(supervisor, self._offsets)
        self._served = anyio.Event()
        self._tasks.start_soon(self._serve, client, supervisor, self._served)
        try:
            with anyio.fail_after(_START_S):
                await client.greet()
                numbering = ("base-index", _PERSONS_FIRST_WINDOW)
                await client.run(("set-option", "-t", client.session, *numbering))
                if self._history_limit is not None:
                    await client.run(_history_limit(self._history_limit))
        except (TmuxGoneError, TimeoutError):
            supervisor.end()
            raise TmuxStartError(client.last_words) from None
        return client

    def _argv(self, directory: Path) -> Sequence[str]:
        """Return the command that starts tmux in a directory, with a session for the panes."""
        # The first window stays, so that killing the last pane does not end the session.
        keeper = ["-n", "panes", "printf", "The panes are the other windows."]
        server = [self._settings.tmux, "-u", "-S", f"{directory}/tmux", "-f", str(_CONFIGURATION)]
        session = ["new-session", "-f", "no-output", "-s", self.session, "-x", "200", "-y", "50"]
        return [*server, "-C", *session, *keeper]

    async def _serve(self, client: ControlClient, supervisor: Supervisor, served: anyio.Event) -> None:
        await client.serve()
        # What outlived the tmux server does not outlive its supervisor. Logs stay readable, for
        # they are open.
        supervisor.close()
        await anyio.to_thread.run_sync(self._bury, supervisor)
        served.set()

    def _bury(self, *supervisors: Supervisor) -> None:
        """Wait for the end of supervisors, and end what a supervisor that was killed has left."""
        for supervisor in supervisors:
            supervisor.wait(_SUPERVISOR_S)
            self._supervisors.discard(supervisor)
        if self._settings.is_subreaper:
            others = frozenset(supervisor.pid for supervisor in tuple(self._supervisors))
            processes.end_descendants(os.getpid(), others)
            processes.reap_adopted(others)


def _history_limit(lines: int) -> Command:
    return ("set-option", "-g", "history-limit", str(lines))
