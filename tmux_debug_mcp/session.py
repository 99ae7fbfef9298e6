"""The session: all panes of one server, each a window of session `debug-PID` on a private tmux server.

That server starts with the first pane. When it dies its panes are lost, and the next one starts another.
"""

import contextlib
import os
import re
import secrets
import shutil
import signal
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from . import linux
from .archive import Archive, PastPane
from .client import ControlClient
from .errors import (
    AmbiguousNameError,
    ArgumentError,
    LimitReachedError,
    PaneNotFoundError,
    StorageError,
    TmuxGoneError,
    TmuxStartError,
    ToolError,
)
from .lifetime import Warden
from .logs import Log, News, Retention
from .panes import SHELLS, Pane, PaneId, State

MAX_PANES = 512
# One argument of a program, MAX_ARG_STRLEN in the kernel, with the zero at its end.
MAX_COMMAND_BYTES = (128 << 10) - 1

_PACKAGE = Path(__file__).parent
# Windows that a person opens are numbered from here, apart from the panes.
_PERSONS_FIRST_WINDOW = "100000"
# tmux answers its first command after some 20 ms. This long after, it never will.
_START_S = 10.0
# A warden that has hundreds of stubborn processes to end takes some 200 ms. Clients lose patience after 500.
_WARDEN_S = 0.4
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSET_BY_PANE_SH = ("TMUX", "TMUX_PANE", "OLDPWD")
# The arguments and environment of a program, with room for what tmux and the shell add.
_ARGUMENTS_SLACK_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Settings:
    """What panes are made with.

    Attributes:
        env: The environment that panes inherit.
        cwd: The directory where they start unless told otherwise.
        tmux: The tmux program, an absolute path or a name to find.
        adopts: Whether this process is a subreaper that only serves the session, so that the descendants of a
            warden that was killed are its to end.
        archive: Where logs are kept after the end, if they are.
    """

    env: Mapping[str, str]
    cwd: Path
    tmux: str = "tmux"
    adopts: bool = False
    archive: Archive | None = None


@dataclass(frozen=True, slots=True)
class NewPane:
    """A pane to make: tmux_create_pane's parameters, `cwd` and `env` in addition to the settings'."""

    command: str
    name: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


class Session:
    """All panes of one server; make one with `open_session`."""

    def __init__(self, settings: Settings, tasks: anyio.abc.TaskGroup) -> None:
        self._settings = settings
        self._tasks = tasks
        self._panes: dict[PaneId, Pane] = {}
        self._made = 0
        self._starting = anyio.Lock()
        self._client: ControlClient | None = None
        self._served: anyio.Event | None = None
        self._news = News()
        self._tasks.start_soon(self._news.serve)
        self._retention = Retention()
        self._tasks.start_soon(self._retention.serve)
        self._wardens: set[Warden] = set()

    @property
    def panes(self) -> list[Pane]:
        """All panes, oldest first."""
        return list(self._panes.values())

    async def create(self, new: NewPane) -> tuple[Pane, State]:
        """Start a command in a new pane.

        Returns:
            The pane, and its state when the program had time to die young.

        Raises:
            ArgumentError: There is no such directory, or command and environment are too large.
            LimitReachedError: There are 512 panes.
            TmuxStartError: tmux did not start.
            StorageError: There is no room for the pane's log.
        """
        if len(self._panes) >= MAX_PANES:
            raise LimitReachedError(
                f"There are {MAX_PANES} panes, the most there can be. "
                "Use tmux_kill_pane to remove those that are no longer needed."
            )
        cwd = self._directory(new.cwd)
        self._check_size(new)
        with anyio.CancelScope(shield=True):  # a pane that was made is told, and on record
            pane = await self._make(new, cwd)
            await pane.settle()
            state = await pane.state()
        return pane, state

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
            archive = self._settings.archive
            if archive is None:
                raise
            run, _, pane_id = target.rpartition("/")
            if run == archive.run and (pane := self._panes.get(PaneId(pane_id))):
                return pane
            return archive.find(target)

    async def kill(self, pane: Pane, first: Iterable[int] = (signal.SIGHUP, signal.SIGTERM)) -> State:
        """End a pane with all that belongs to it; return how its program ended.

        Raises:
            PaneNotFoundError: It was killed meanwhile.
        """
        if self._panes.pop(pane.id, None) is None:
            raise PaneNotFoundError(pane.id)
        return await pane.end(first)

    def close(self) -> None:
        """End tmux and everything in it; blocks until that is done, some milliseconds."""
        wardens = tuple(self._wardens)
        for warden in wardens:
            warden.close()
        self._bury(*wardens)
        self._news.close()
        self._retention.close()
        for pane in self.panes:
            pane.log.close()

    def _directory(self, cwd: str | None) -> Path:
        path = os.path.join(self._settings.cwd, os.path.expanduser(cwd or "."))
        if not os.path.isdir(path):
            raise ArgumentError(f"Parameter 'cwd' is '{cwd}', which is no directory. Give one that exists.")
        if not os.access(path, os.X_OK):
            raise ArgumentError(f"Parameter 'cwd' is '{cwd}', which we may not enter. Give another directory.")
        return Path(path)

    def _check_size(self, new: NewPane) -> None:
        size = len(new.command.encode()) + _ARGUMENTS_SLACK_BYTES
        for name, value in (*self._settings.env.items(), *new.env.items()):
            # A pointer to each, and a zero at its end.
            size += len(os.fsencode(name)) + len(os.fsencode(value)) + 10
        if size > (limit := os.sysconf("SC_ARG_MAX")):
            raise ArgumentError(
                f"Parameters 'command' and 'env' come to {size} bytes with the inherited environment; "
                f"the system takes {limit}. Put large values into files."
            )

    async def _make(self, new: NewPane, cwd: Path) -> Pane:
        client = await self._connected()
        self._made += 1
        number = self._made
        pane_id = PaneId(f"debug-{number}")
        mark = secrets.token_hex(8)
        marker = f"{client.directory.name}/{pane_id}"
        log = self._new_log(client.directory, pane_id, new, mark)
        # The path in a command of tmux has no character that tmux or the shell would act on.
        path = client.directory / log.path.name
        window = f"{client.session}:{number}"
        env = [word for name, value in new.env.items() for word in ("-e", f"{name}={value}")]
        wrapper = ["/bin/sh", str(_PACKAGE / "pane.sh"), mark, *self._limits, str(cwd)]
        program = [*wrapper, *self._odd_variables(new.env), self._shell, "-c", "--", new.command]
        title = _title(new.name or pane_id)
        new_window = ["new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", window, "-n", title]
        try:
            [[line], _, _] = await client.run(
                [*new_window, *env, "-e", f"{linux.MARKER}={marker}", *program],
                ("pipe-pane", "-t", window, f"exec cat >>'{path}'"),
                # A person with a small terminal who attaches does not change it.
                ("set-option", "-w", "-t", window, "window-size", "manual"),
            )
        except ToolError:
            log.close()
            with contextlib.suppress(ToolError):
                await client.run(("kill-window", "-t", window))
            raise
        target, pid = line.decode().split()
        process = linux.read_stat(int(pid)) or _gone(int(pid))
        name = new.name or pane_id
        pane = Pane(pane_id, name, new.command, log, self._news, client, target, process, marker)
        self._panes[pane_id] = pane
        self._retention.add(log)
        return pane

    def _new_log(self, directory: Path, pane_id: PaneId, new: NewPane, mark: str) -> Log:
        """Return a log that can be written at `directory / log.path.name`."""
        archive = self._settings.archive
        try:
            if archive is None:
                return Log(directory / f"{pane_id}.log", mark)
            log = archive.new_log(pane_id, new.name or pane_id, new.command, mark)
            (directory / log.path.name).symlink_to(log.path)
        except OSError as error:
            raise StorageError(str(directory), str(error.strerror)) from error
        return log

    def _odd_variables(self, env: Mapping[str, str]) -> list[str]:
        """Return the words that set what a shell would drop: names that are none to it, and TMUX on request."""
        both = {**self._settings.env, **env}
        odd = [name for name in both if not _IDENTIFIER.fullmatch(name)]
        odd += [name for name in _UNSET_BY_PANE_SH if name in env]
        return ["env", "--", *(f"{name}={both[name]}" for name in odd)] if odd else []

    @property
    def _limits(self) -> tuple[str, str]:
        """The limit of open files that panes have, and the program that pane.sh sleeps with."""
        files = linux.open_files_limit()
        return files, shutil.which("sleep", path=self._settings.env.get("PATH")) or "sleep"

    @property
    def _shell(self) -> str:
        shell = self._settings.env.get("SHELL", "")
        if Path(shell).name in SHELLS and os.access(shell, os.X_OK):
            return shell
        return shutil.which("bash", path=self._settings.env.get("PATH")) or "/bin/sh"

    async def _connected(self) -> ControlClient:
        async with self._starting:
            if self._client is None or self._client.gone.is_set():
                if self._served is not None:
                    await self._served.wait()
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> ControlClient:
        name = f"debug-{os.getpid()}"

        def tmux(directory: Path) -> list[str]:
            server = [self._settings.tmux, "-u", "-S", f"{directory}/tmux", "-f", str(_PACKAGE / "tmux.conf")]
            # A window that stays, so that killing the last pane does not end the session.
            keeper = ["-n", "panes", "printf", "The panes are the other windows."]
            return [
                *server,
                "-C",
                "new-session",
                "-f",
                "no-output",
                "-s",
                name,
                "-x",
                "200",
                "-y",
                "50",
                *keeper,
            ]

        warden = Warden(tmux, self._settings.env)
        self._wardens.add(warden)
        client = ControlClient(warden)
        self._served = anyio.Event()
        self._tasks.start_soon(self._serve, client, warden, self._served)
        try:
            with anyio.fail_after(_START_S):
                await client.greet()
                await client.run(("set-option", "-g", "base-index", _PERSONS_FIRST_WINDOW))
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
        if self._settings.adopts:
            others = frozenset(warden.pid for warden in tuple(self._wardens))
            linux.end_descendants(os.getpid(), others)
            linux.reap_adopted(others)


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


def _title(name: str) -> str:
    """Return the name as a person sees it: without what tmux or a terminal would act on."""
    return "".join(character if character.isalnum() or character in "_.-" else "_" for character in name)


def _gone(pid: int) -> linux.Stat:
    return linux.Stat(pid, "", "X", 0, pid, pid, -1, reaped=False, starttime=-1, start_stack=0)
