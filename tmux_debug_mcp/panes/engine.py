"""The engine: the registry of all panes, with which toolsets make, find and end them.

All panes are on our tmux server. The server starts with the first pane. When it dies, its panes are
lost, and the next pane starts another server.
"""

import contextlib
import errno
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import (
    AmbiguousNameError,
    KeyboardHeldError,
    NameTakenError,
    PaneLimitError,
    PaneNotFoundError,
    StorageError,
)
from tmux_debug_mcp.linux import own_process, processes
from tmux_debug_mcp.linux.sockets import End, Listeners
from tmux_debug_mcp.linux.waits import OutsideReaders
from tmux_debug_mcp.logs.archive import Archive, IndexEntry
from tmux_debug_mcp.logs.events import LogEvents
from tmux_debug_mcp.logs.log import Log, nonce_digest
from tmux_debug_mcp.logs.retention import Retention
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.sockets.servers import inode_of
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.tmux.host import TmuxHost
from tmux_debug_mcp.tmux.supervisor import temporary_directory
from tmux_debug_mcp.tmux.users_server import UsersServer
from tmux_debug_mcp.turns import TURN_WORK, Turns
from tmux_debug_mcp.vt.printable import plain_name

from .creation import NewPane, Origin, calling, check, check_size, directory, remove, start
from .looking.state import State
from .pane import Pane
from .place import PaneId
from .ports import Ports, complaint, foreign_holder, numbers
from .readable import KeptPane, Readable, shown_name

MAX_PANES = 512
# How many of the panes of `tmux_run` whose command has ended stay in the registry: the newest.
KEPT_RUN_PANES = 20
# The work of a look at a pane, in units of `Turns`: at worst it takes about a millisecond.
_LOOK_WORK = TURN_WORK >> 3
# The errors of open(2) for O_TMPFILE on file systems without unnamed files.
_NEEDS_NAMES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS)


class Engine:
    """All panes of one server. Make one with `open_engine`.

    Attributes:
        archive: Where logs are kept after the end, None to keep none. The engine closes it.
        tasks: The task group for what runs as long as the engine. Toolsets use it, too.
        host: Our tmux server.
        users_server: The user's own tmux server, None without a socket to it.
        naming: Lock held from the check of a new pane's name until the pane is made.
        listeners: The sockets that listen on this machine.
        arranging: Lock held while panes of a window change places, or a person gets a keyboard.
    """

    def __init__(
        self,
        settings: Settings,
        archive: Archive | None,
        tasks: anyio.abc.TaskGroup,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.archive = archive
        self.tasks = tasks
        self.clock = clock
        first_window = archive.free_window if archive else lambda: 0
        self.host = TmuxHost(settings, tasks, clock, first_window)
        self.users_server = UsersServer(settings, clock) if settings.socket else None
        self.naming = anyio.Lock()
        self.arranging = anyio.Lock()
        self._panes: dict[PaneId, Pane] = {}
        self._made = 0
        self._in_making = 0
        self.listeners = Listeners()
        self._events = LogEvents(clock)
        self._outside = OutsideReaders()
        self._retention = Retention(clock)
        self._at_end: list[Callable[[], None]] = []
        tasks.start_soon(self._events.serve)
        tasks.start_soon(self._retention.serve)

    @property
    def panes(self) -> list[Pane]:
        """All panes, oldest first."""
        return list(self._panes.values())

    @property
    def origin(self) -> Origin:
        """Where the call that is being answered comes from."""
        return calling.get() or Origin(self.settings.cwd, self.settings.env)

    async def states(self, panes: Sequence[Pane] | None = None) -> list[tuple[Pane, State]]:
        """Return panes with their current states; by default all, oldest first.

        Other calls run meanwhile.
        """
        turns = Turns()
        listening = self.listeners.read()
        states = []
        for pane in self.panes if panes is None else panes:
            await turns.take(_LOOK_WORK)
            states.append((pane, await pane.state(listening)))
        return states

    async def listed(self) -> list[tuple[Pane, State]]:
        """Return the panes that lists show, with their states: not those of runs that are over."""
        return [(pane, state) for pane, state in await self.states() if is_listed(pane, state)]

    def panes_in(self, window: str) -> list[Pane]:
        """Return the panes of a window, our id `@N`, oldest first; several if it is split."""
        return [pane for pane in self.panes if pane.window == window]

    async def taken_port(
        self, pane: Pane, state: State, text: str, asked: int | None
    ) -> str | None:
        """Return which port a program could not get, and who has it: `port 80: held by …`.

        None if the program does not say so, unless it has failed and a port is `asked`; or if no
        process of our user or of a pane has such a port.

        Args:
            pane: The pane of the program.
            state: Its state.
            text: What the program has printed.
            asked: The port that the call named, if any.
        """
        named = complaint(text)
        if named is None and not (asked and state.code):
            return None
        ports = [asked] if asked else []
        ports += (named or []) + ([] if named is None else numbers(pane.command))
        listening = self.listeners.read()
        taken = {end.port for end in listening}
        for port in dict.fromkeys(port for port in ports if port in taken):
            holder = await self._holder(pane, state, port, listening)
            if holder:
                return f"port {port}: held by {holder}"
        return None

    async def _holder(
        self, asker: Pane, state: State, port: int, listening: Sequence[End]
    ) -> str | None:
        """Return who listens on a port, None if it is the asking program, or not known."""
        for pane in self.panes:
            pid = pane.ports.holder(port, listening)
            if pid is None:
                continue
            if pane is not asker:
                return shown_name(pane)
            process = processes.read_stat(pid)
            if process is None or (state.is_running and process.pgrp == state.pid):
                return None
            return f"{plain_name(process.comm)} (pid {pid}) of this pane"
        process = await anyio.to_thread.run_sync(foreign_holder, port, listening)
        return f"{plain_name(process.comm)} (pid {process.pid})" if process else None

    async def create(self, new: NewPane, *, is_only: bool = False) -> Pane:
        """Start a command in a new pane; with `is_only`, unless a running one has its name.

        Raises:
            ArgumentError: The command, the name, the directory or the environment can't be used.
            NameTakenError: A running pane has the name.
            PaneLimitError: There are 512 panes, each running or with a subscriber.
            TmuxStartError: tmux did not start.
            TmuxGoneError: The tmux server ended before the pane was made.
            CommandError: tmux refuses to make the pane at its destination.
        """
        check(new)
        if not (is_only and new.name):
            return await self._create(new)
        async with self.naming:
            running = await self._running_panes(new.name)
            if running:
                raise NameTakenError(new.name, running[0].id)
            return await self._create(new)

    async def _create(self, new: NewPane) -> Pane:
        origin = self.origin
        # It is checked before another pane has to make room.
        cwd = str(directory(origin.cwd, new.cwd))
        new = replace(new, cwd=cwd, inode=inode_of(cwd), inherited=origin.env)
        check_size(new)
        while len(self._panes) + self._in_making >= MAX_PANES:
            await self._make_room()
        # From here on the pane is made and registered, even if the call is cancelled.
        with anyio.CancelScope(shield=True):
            self._in_making += 1
            try:
                pane = await self._make(new)
            finally:
                self._in_making -= 1
        return pane

    async def _make(self, new: NewPane) -> Pane:
        client = await self.host.connected()
        self._made += 1
        pane_id = PaneId(f"debug-{self._made}")
        nonce = secrets.token_hex(8)
        log = self._new_log(client, pane_id, nonce)
        self._retention.add(log)
        before = self.listeners.version
        try:
            place = await start(client, self.settings, pane_id, new, log, nonce)
            self.host.assign_offsets(*place.ids)
            ports = Ports(place, self.listeners, before, self.clock)
            pane = Pane(
                pane_id,
                new,
                place,
                log,
                self._events,
                ports,
                self.clock,
                self._outside,
                only_people_type_secrets=self.settings.only_people_type_secrets,
            )
            if self.archive:
                await self._record(self.archive, pane, nonce)
        except BaseException:
            log.close()
            if self.archive:
                self.archive.discard(log)
            raise
        self._panes[pane_id] = pane
        return pane

    async def _record(self, archive: Archive, pane: Pane, nonce: str) -> None:
        """Write a new pane into the archive's index; kill the pane if that fails."""
        entry = IndexEntry(
            id=pane.id,
            window=pane.window,
            name=pane.name,
            command=pane.command,
            mark=nonce_digest(nonce),
            columns=pane.log.columns,
            rows=pane.log.rows,
            started_at=self.clock.wall(),
        )
        try:
            archive.record(entry)
        except StorageError:
            await remove(pane.client, pane.id, ("kill-pane", "-t", pane.target))
            raise

    def _new_log(self, client: ControlClient, pane_id: PaneId, nonce: str) -> Log:
        """Return the log of a new pane: a kept log, or a file without a name.

        A file without a name is gone when nobody has it open. It is in the temporary directory, or
        if that does not support such files, in the client's, which may be in memory.
        """
        if self.archive:
            return self.archive.new_log(pane_id, nonce, self.clock)
        temporary = Path(temporary_directory())
        try:
            return Log.unnamed(temporary, nonce, self.clock)
        except OSError as error:
            if error.errno not in _NEEDS_NAMES:
                raise StorageError(str(temporary), str(error.strerror)) from error
        path = client.file(f"{pane_id}.log")
        try:
            return Log.unlinked(path, nonce, self.clock)
        except OSError as error:
            raise StorageError(str(path.parent), str(error.strerror)) from error

    async def _make_room(self) -> None:
        """Kill the oldest pane that has ended and is not in use, evictable ones first."""
        evictable_first = sorted(self.panes, key=lambda pane: not pane.made_by.is_evictable)
        for pane in evictable_first:
            is_unused = not pane.subscribers and await pane.ending() and not pane.left()
            if is_unused and await self._evict(pane):
                return
        raise PaneLimitError(MAX_PANES)

    async def retire_run_panes(self) -> None:
        """Kill evictable panes that have ended, except the 20 that ended last and those in use.

        A pane is in use while it has a subscriber, or something that its program has left runs.
        """
        ended: list[tuple[float, Pane]] = []
        for pane in self.panes:
            ending = await pane.ending() if pane.made_by.is_evictable else None
            if ending:
                ended.append((pane.started_at + ending.runtime_s, pane))
        ended.sort(key=lambda entry: entry[0])
        for _, pane in ended[:-KEPT_RUN_PANES]:
            if not pane.subscribers and not pane.left():
                await self._evict(pane)

    async def _evict(self, pane: Pane) -> bool:
        """Kill a pane, unless a person works beside it; return whether it is gone."""
        try:
            await self.kill(pane)
        except KeyboardHeldError:
            return False
        except PaneNotFoundError:  # another call was faster
            pass
        return True

    def names_for(self, targets: object) -> dict[str, str]:
        """Return how errors name the panes that a call meant by a name or several, by their ids."""
        named = targets if isinstance(targets, list) else [targets]
        return {pane.id: pane.name for pane in self.panes if pane.name in named}

    async def find(self, target: str) -> Pane:
        """Return the pane with an id, or the running pane with a name, else the newest with it.

        Raises:
            PaneNotFoundError: There is none.
            AmbiguousNameError: Several running panes have the name.
        """
        pane = self._panes.get(PaneId(target))
        if pane:
            return pane
        running = await self._running_panes(target)
        if len(running) > 1:
            raise AmbiguousNameError(target, len(running), ", ".join(pane.id for pane in running))
        if running:
            return running[0]
        ended = [pane for pane in self.panes if pane.name == target]
        if not ended:
            raise PaneNotFoundError(target)
        return ended[-1]

    async def _running_panes(self, name: str) -> list[Pane]:
        named = [pane for pane in self.panes if pane.name == name]
        return [pane for pane in named if await pane.ending() is None]

    @asynccontextmanager
    async def open_readable(self, target: str) -> AsyncIterator[Readable]:
        """Open a pane for reading during the block: one of ours, or a kept log `RUN/ID`.

        Raises:
            PaneNotFoundError: There is none.
            AmbiguousNameError: Several running panes have the name.
        """
        readable = await self._readable(target)
        try:
            yield readable
        finally:
            if isinstance(readable, KeptPane):
                readable.log.close()

    async def _readable(self, target: str) -> Readable:
        try:
            return await self.find(target)
        except PaneNotFoundError:
            if self.archive is None:
                raise
        run, _, own = target.partition("/")
        if run == self.archive.run:
            for pane in self.panes:
                if own in (pane.id, pane.window):
                    return pane
        return KeptPane(self.archive.find(target))

    async def kill(self, pane: Pane) -> State:
        """End a pane and everything in it, and return how its program ended.

        Processes get 0.5 s to end by themselves. If some can't be killed, such as another user's,
        this gives up after 10 s at most. It can't be cancelled.

        Raises:
            PaneNotFoundError: It was killed meanwhile.
            KeyboardHeldError: A person has the keyboard of another pane in its window, and would
                see the rest of the window then.
            TmuxStuckError: tmux does not answer. The pane stays in the registry.
        """
        for other in self.panes_in(pane.window):
            if other is not pane:
                other.keyboard.check_free()
        if self._panes.pop(pane.id, None) is None:
            raise PaneNotFoundError(pane.id)
        try:
            ended = await pane.end((signal.SIGHUP, signal.SIGTERM))
        except Exception:  # its processes may live on
            panes = sorted([*self.panes, pane], key=lambda pane: pane.started_at)
            self._panes = {pane.id: pane for pane in panes}
            raise
        if not self._panes:
            own_process.give_back_memory()
        return ended

    async def kill_all(self, panes: Iterable[Pane]) -> None:
        """End panes, as `kill` does, but for those that were killed meanwhile."""
        for pane in panes:
            with contextlib.suppress(PaneNotFoundError):
                await self.kill(pane)

    def at_end(self, finish: Callable[[], None]) -> None:
        """Have `close` call a function when tmux has ended and the logs can still be read."""
        self._at_end.append(finish)

    def close(self) -> None:
        """End tmux and everything in it, and close all files; blocks for a few milliseconds."""
        self.host.close()
        self._events.close()
        self._retention.close()
        for finish in self._at_end:
            finish()
        for pane in self.panes:
            pane.log.close()
        if self.archive:
            self.archive.close()


def is_listed(pane: Pane, state: State) -> bool:
    """Return whether lists show a pane: not one of `tmux_run` once nothing runs in it."""
    return bool(not pane.made_by.is_evictable or state.is_running or state.left)


@asynccontextmanager
async def open_engine(
    settings: Settings, archive: Archive | None = None, clock: Clock | None = None
) -> AsyncIterator[Engine]:
    """Open an engine without panes. The end of the block leaves nothing of it behind."""
    engine = None
    try:
        async with anyio.create_task_group() as tasks:
            engine = Engine(settings, archive, tasks, clock or Clock())
            yield engine
            tasks.cancel_scope.cancel()
    finally:
        if engine:
            engine.close()
