"""The session: all panes of one server, each a window of session `debug-PID` on a private tmux server.

That server starts with the first pane. When it dies its panes are lost, and the next one starts another.
"""

import contextlib
import errno
import os
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from . import linux
from .archive import PastPane
from .client import Command, ControlClient
from .creation import NewPane, Place, Settings, check_size, directory, title, variables_file, words
from .errors import (
    AmbiguousNameError,
    LimitReachedError,
    PaneLimitError,
    PaneNotFoundError,
    StorageError,
    TmuxGoneError,
    TmuxStartError,
    ToolError,
)
from .lifetime import Warden, bases
from .logs import Log, News, Retention, UnnamedLog
from .panes import Pane, PaneId, State, writes_log
from .recording import Recording
from .targets import Offsets

MAX_PANES = 512
# Of the panes that were made to run a command and have ended, so many stay.
KEPT_RUNS = 20
# tmux needs some 200 bytes for a line of a pane, and 5 kB where each of 200 characters has a colour of its own.
MAX_HISTORY_LINES = 100_000
_PACKAGE = Path(__file__).parent
# Windows that a person opens are numbered from here, apart from the panes.
_PERSONS_FIRST_WINDOW = "100000"
# tmux answers its first command after some 20 ms. This long after, it never will.
_START_S = 10.0
# A warden that has hundreds of stubborn processes to end takes some 200 ms. Clients lose patience after 500.
_WARDEN_S = 0.4


class Session:
    """All panes of one server; make one with `open_session`.

    Attributes:
        settings: What panes are made with.
        tasks: Where what is to run as long as the session can be started.
        name: That of the tmux session that panes are windows of.
        naming: Held by who makes a pane of a name unless there is one.
        typing: Held by who types on the user's tmux server.
        drawing: Has room for one who draws a picture, which takes memory.
    """

    def __init__(self, settings: Settings, tasks: anyio.abc.TaskGroup) -> None:
        self.settings = settings
        self.tasks = tasks
        self.name = f"debug-{os.getpid()}"
        self._panes: dict[PaneId, Pane] = {}
        self._made = self._making = 0
        self._free: Offsets | None = None  # for the next tmux server, once that is known
        self._history_limit: int | None = None
        self._starting = anyio.Lock()
        self._client: ControlClient | None = None
        self._served: anyio.Event | None = None
        self._news = News()
        self.tasks.start_soon(self._news.serve)
        self._retention = Retention()
        self.tasks.start_soon(self._retention.serve)
        self._wardens: set[Warden] = set()
        self._recordings: dict[PaneId, Recording] = {}
        self.naming = anyio.Lock()
        self.typing = anyio.Lock()
        self.drawing = anyio.CapacityLimiter(1)

    @property
    def panes(self) -> list[Pane]:
        """All panes, oldest first."""
        return list(self._panes.values())

    @property
    def client(self) -> ControlClient | None:
        """The connection to our tmux server, if that runs."""
        return None if self._client is None or self._client.gone.is_set() else self._client

    @property
    def run(self) -> str | None:
        """The name of this run, where logs are kept."""
        return self.settings.archive.run if self.settings.archive else None

    def earlier(self) -> list[tuple[str, str, str]]:
        """Return run, window and name of the panes of earlier runs, the newest run first."""
        return list(self.settings.archive.earlier()) if self.settings.archive else []

    def earlier_runs_with(self, window: str) -> list[str]:
        """Return the earlier runs that had a window of this id, the newest first."""
        return self.settings.archive.runs_with(window) if self.settings.archive else []

    def diagnostics(self) -> dict[str, str]:
        """Return what a person may want to know: tmux's version and socket, and where logs are kept."""
        found = {"log_dir": str(self.settings.archive.directory)} if self.settings.archive else {}
        if client := self.client:
            found |= {"tmux": client.version, "socket": f"{client.directory}/tmux"}
        return found

    async def active_windows(self) -> set[str]:
        """Return the windows that a person who is attached sees, one for each session."""
        client = self.client
        if client is None:
            return set()
        try:
            [lines] = await client.run(("list-windows", "-a", "-f", "#{window_active}", "-F", "#{window_id}"))
        except TmuxGoneError:
            return set()
        return {client.offsets.window(line.decode()) for line in lines}

    async def set_history_limit(self, lines: int) -> None:
        """Set how many lines tmux keeps of panes that are to be made."""
        self._history_limit = lines
        if self.client:
            await self.client.run(_history_limit(lines))

    async def create(self, new: NewPane) -> Pane:
        """Start a command in a new pane.

        Raises:
            ArgumentError: There is no such directory, or command and environment are too large.
            PaneLimitError: There are 512 panes.
            TmuxStartError: tmux did not start.
            StorageError: There is no room for the pane's log.
        """
        cwd = directory(self.settings, new.cwd)
        check_size(self.settings, new)
        while len(self._panes) + self._making >= MAX_PANES:
            await self._make_room()
        with anyio.CancelScope(shield=True):  # a pane that was made is told, and on record
            self._making += 1
            try:
                pane = await self._make(new, cwd)
            finally:
                self._making -= 1
        return pane

    async def _make_room(self) -> None:
        """Kill the oldest pane that has ended and that nobody waits for, first of those that were made for a command.

        Raises:
            PaneLimitError: All are running.
        """
        for pane in sorted(self.panes, key=lambda pane: not pane.gives_way):
            if not pane.watchers and await pane.ending():
                await self._remove(pane)
                return
        raise PaneLimitError(MAX_PANES)

    async def retire(self) -> None:
        """Kill panes that were made to run a command, when many newer ones have ended."""
        ended = [pane for pane in self.panes if pane.gives_way and await pane.ending()]
        for pane in ended[:-KEPT_RUNS]:
            if not pane.watchers:
                await self._remove(pane)

    async def _remove(self, pane: Pane) -> None:
        with contextlib.suppress(PaneNotFoundError):  # somebody else was faster
            await self.kill(pane)

    async def find(self, target: str) -> Pane:
        """Return the pane with this id, or the running one of this name, or else the last one of this name.

        Raises:
            PaneNotFoundError: There is none.
            AmbiguousNameError: Several running panes have the name.
        """
        if pane := self._panes.get(PaneId(target)):
            return pane
        named = [pane for pane in self.panes if pane.name == target]
        running = [pane for pane in named if (await pane.state()).is_running]
        if len(running) > 1:
            raise AmbiguousNameError(target, [pane.id for pane in running])
        if not named:
            raise PaneNotFoundError(target)
        return (running or named)[-1]

    async def find_readable(self, target: str) -> Pane | PastPane:
        """Return a pane, or one whose log was kept: `RUN/ID`.

        Raises:
            PaneNotFoundError: There is none.
            AmbiguousNameError: Several running panes have the name.
        """
        try:
            return await self.find(target)
        except PaneNotFoundError:
            archive = self.settings.archive
            if archive is None:
                raise
            run, _, own = target.partition("/")
            if run == archive.run:
                for pane in self.panes:
                    if own in (pane.id, pane.window):
                        return pane
            return archive.find(target)

    async def kill(self, pane: Pane) -> State:
        """End a pane with all that belongs to it; return how its program ended.

        Raises:
            PaneNotFoundError: It was killed meanwhile.
        """
        if self._panes.pop(pane.id, None) is None:
            raise PaneNotFoundError(pane.id)
        try:
            return await pane.end((signal.SIGHUP, signal.SIGTERM))
        except Exception:  # it may live on
            panes = [*self.panes, pane]
            self._panes = {one.id: one for one in sorted(panes, key=lambda one: one.started_at)}
            raise

    async def record(self, pane: Pane, path: Path) -> Recording:
        """Begin to record a pane.

        Raises:
            ArgumentError: There is such a file already.
            LimitReachedError: It is being recorded already.
            PaneLostError: The pane is gone.
            StorageError: The file can't be written.
        """
        if (other := self.recording(pane)) and not other.is_over:
            raise LimitReachedError(f"'{pane.name}' is being recorded already, to {other.path}.")
        await pane.check_running()
        self._recordings[pane.id] = recording = Recording(pane, path)
        await recording.begin()
        self.tasks.start_soon(recording.serve)
        return recording

    def recording(self, pane: Pane) -> Recording | None:
        """Return the recording of a pane that was begun last, unless it was taken."""
        return self._recordings.get(pane.id)

    def take_recording(self, target: str) -> Recording | None:
        """End the last recording of a pane with this id or name, if it has not ended with it, and return it."""
        for pane_id, recording in reversed(self._recordings.items()):
            if target in (pane_id, recording.pane.name):
                del self._recordings[pane_id]
                if not recording.is_over:
                    recording.take()
                    recording.stop()
                return recording
        return None

    def close(self) -> None:
        """End tmux and everything in it; blocks until that is done, some milliseconds."""
        wardens = tuple(self._wardens)
        for warden in wardens:
            warden.close()
        self._bury(*wardens)
        self._news.close()
        self._retention.close()
        for recording in self._recordings.values():
            if not recording.is_over:
                with contextlib.suppress(StorageError):
                    recording.take()
        for pane in self.panes:
            pane.log.close()
        if self.settings.archive:
            self.settings.archive.close()

    async def _make(self, new: NewPane, cwd: Path) -> Pane:
        client = await self.connected()
        self._made += 1
        number = self._made
        pane_id = PaneId(f"debug-{number}")
        name = new.name or pane_id
        mark = secrets.token_hex(8)
        marker = f"{client.directory.name}/{pane_id}"
        log = self._new_log(client, pane_id, mark)
        variables = variables_file(self.settings, new)
        place = new.place or self._place(client, number, new, name)
        size = ("set-option", "-t", client.session, "default-size", f"{new.columns}x{new.rows}")
        usual_size = ("set-option", "-t", client.session, "-u", "default-size")
        target = ""
        facts = "#{pane_id} #{pane_pid} #{session_id} #{window_id} #{pane_width} #{pane_height}"
        command = [*place.command, "-P", "-F", facts]
        try:
            files = [client.write(f"{pane_id}.mark", f"{mark}\n".encode())]
            files += [client.write(f"{pane_id}.variables", variables)] if variables else []
            blocks = await client.run(
                *place.first,
                size,
                [*command, *words(self.settings, new, cwd, marker, files)],
                writes_log(place.target, log),
                # A person with a small terminal who attaches does not change it.
                ("set-option", "-w", "-t", place.target, "window-size", "manual"),
                usual_size,
                place.then,
            )
            [line] = blocks[len(place.first) + 1]
            target, pid, session_id, tmux_window, *shape = line.decode().split()
            log.columns, log.rows = map(int, shape)
            window = client.offsets.window(tmux_window)
            ours = client.offsets.session(session_id), window, client.offsets.pane(target)
            self._free = (self._free or client.offsets).behind(*ours)
            if archive := self.settings.archive:
                entry = {"id": pane_id, "window": window, "name": name, "command": new.command, "mark": mark}
                archive.record(entry | {"columns": log.columns, "rows": log.rows})
        except ToolError:
            log.close()
            undo = ("kill-pane", "-t", target) if target else place.undo
            with contextlib.suppress(ToolError):
                await client.run(usual_size, *filter(None, [undo]))
            raise
        process = linux.read_stat(int(pid)) or _gone(int(pid))
        pane = Pane(pane_id, name, new.command, log, self._news, client, target, window, process, marker, new.gives_way)
        self._panes[pane_id] = pane
        self._retention.add(log)
        return pane

    @staticmethod
    def _place(client: ControlClient, number: int, new: NewPane, name: str) -> Place:
        window = f"{client.session}:{number}"
        command = ("new-window", *([] if new.is_shown else ["-d"]), "-n", title(name), "-t", window)
        return Place(command, window, undo=("kill-window", "-t", window))

    def _new_log(self, client: ControlClient, pane_id: PaneId, mark: str) -> Log:
        """Return the log of a pane: one that is kept, or a file without a name, which is gone when nobody has it open.

        That is not in the directory of the client, which may be in memory, where the file system can do without names.
        """
        if self.settings.archive:
            return self.settings.archive.new_log(pane_id, mark)
        directory = bases(self.settings.runtime)[-1]
        try:
            return UnnamedLog(directory, mark)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS):
                raise StorageError(str(directory), str(error.strerror)) from error
        path = client.file(f"{pane_id}.log")
        try:
            log = Log(path, mark)
            path.unlink()
        except OSError as error:
            raise StorageError(str(path.parent), str(error.strerror)) from error
        return log

    async def connected(self) -> ControlClient:
        """Return the connection to our tmux server, which is started if it does not run.

        Raises:
            TmuxStartError: It does not start.
        """
        async with self._starting:
            if self._client is None or self.client is None:
                if self._served is not None:
                    await self._served.wait()
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> ControlClient:
        if self._free is None:
            archive = self.settings.archive
            self._free = Offsets(windows=archive.free_window() if archive else 0)

        def tmux(directory: Path) -> list[str]:
            server = [self.settings.tmux, "-u", "-S", f"{directory}/tmux", "-f", str(_PACKAGE / "tmux.conf")]
            # A window that stays, so that killing the last pane does not end the session.
            keeper = ["-n", "panes", "printf", "The panes are the other windows."]
            return [
                *server,
                "-C",
                "new-session",
                "-f",
                "no-output",
                "-s",
                self.name,
                "-x",
                "200",
                "-y",
                "50",
                *keeper,
            ]

        warden = Warden(tmux, self.settings.env, self.settings.runtime)
        self._wardens.add(warden)
        client = ControlClient(warden, self._free)
        self._served = anyio.Event()
        self.tasks.start_soon(self._serve, client, warden, self._served)
        try:
            with anyio.fail_after(_START_S):
                await client.greet()
                await client.run(("set-option", "-t", client.session, "base-index", _PERSONS_FIRST_WINDOW))
                if self._history_limit is not None:
                    await client.run(_history_limit(self._history_limit))
        except (TmuxGoneError, TimeoutError):
            warden.end()
            raise TmuxStartError(client.last_words) from None
        return client

    async def _serve(self, client: ControlClient, warden: Warden, served: anyio.Event) -> None:
        await client.serve()
        # What outlived the tmux server does not outlive its warden. Logs can still be read: they are open.
        warden.close()
        await anyio.to_thread.run_sync(self._bury, warden)
        served.set()

    def _bury(self, *wardens: Warden) -> None:
        for warden in wardens:
            warden.wait(_WARDEN_S)
            self._wardens.discard(warden)
        if self.settings.adopts:
            others = frozenset(warden.pid for warden in tuple(self._wardens))
            linux.end_descendants(os.getpid(), others)
            linux.reap_adopted(others)


def _history_limit(lines: int) -> Command:
    return ("set-option", "-g", "history-limit", str(lines))


@asynccontextmanager
async def open_session(settings: Settings) -> AsyncIterator[Session]:
    """Open a session without panes. At the end of the block nothing of it is left."""
    session = None
    try:
        async with anyio.create_task_group() as tasks:
            session = Session(settings, tasks)
            yield session
            tasks.cancel_scope.cancel()
    finally:
        if session:
            session.close()


def _gone(pid: int) -> linux.Stat:
    return linux.Stat(pid, "", "X", 0, pid, pid, 0, -1, is_fork=False, reaped=False, starttime=-1, start_stack=0)
