"""The server: its tools for the MCP client that started it and for callers of its socket.

When it ends, it leaves nothing behind. The protocol is the SDK's, the streams are ours.
"""

import base64
import contextlib
import functools
import logging
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tmux_debug_mcp import __version__
from tmux_debug_mcp.linux import own_process, processes
from tmux_debug_mcp.logs.archive import Archive, new_run
from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.creation import Origin
from tmux_debug_mcp.panes.engine import Engine, open_engine
from tmux_debug_mcp.tmux import supervisor
from tmux_debug_mcp.tools.arguments import import_validation_soon
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.results import row_for_people
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import Toolset, choose

from .audit import AuditLog
from .errors import StartError
from .lease import Lease
from .settings import Settings, seconds_of
from .sockets import servers
from .sockets.inside import add_program
from .sockets.listener import (
    Caller,
    CallerGoneError,
    Greeting,
    Listener,
    cancel_when_gone,
    environment_in,
    new_directory,
    program_of,
    remove_killed,
)
from .streams import LAST_CALLS_S, Input, Stdout

if TYPE_CHECKING:
    from .verbs.answering import Verbs

# What clients tell people about the server; models don't see it.
TITLE = "Terminals for debugging"
DESCRIPTION = (
    "Real terminals for debugging agents: tmux panes to start, type into, wait for, read and end."
)
_NAME = "tmux-debug"
_NAME_AND_VERSION = {"name": _NAME, "version": __version__}
_ICON = Path(__file__).with_name("icon.svg")

_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Poll interval, at the end of a lease, for callers that have yet to say what they want.
_GREETING_POLL_S = 0.01
# Limit for telling which panes end with the server.
_LAST_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a server offers, and how.

    With an audit, calls are recorded; with an archive, logs are kept after the end.
    """

    toolsets: Sequence[Toolset[Any]]
    settings: Settings
    audit: AuditLog | None = None
    archive: Archive | None = None


def build(toolbox: Toolbox, caller: str = "", origin: Origin | None = None) -> Server[None]:
    """Return the SDK's server for a toolbox, for one connection.

    `caller` and `origin` are as in `Toolbox.call`.
    """
    session = CallerSession()
    icon = base64.b64encode(_ICON.read_bytes()).decode()

    async def list_tools(
        _ctx: ServerRequestContext[None], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        import_validation_soon()
        return types.ListToolsResult(tools=toolbox.definitions())

    async def call_tool(
        ctx: ServerRequestContext[None], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async def report(seconds: float) -> None:
            # Sends nothing unless the client asked for progress.
            await ctx.session.report_progress(seconds, message=f"{seconds:g} s")

        arguments = params.arguments or {}
        result = await toolbox.call(params.name, arguments, report, session, caller, origin)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # Every result names its server. The SDK would add the icon to each, too.
            meta = {**(result.meta or {}), types.SERVER_INFO_META_KEY: _NAME_AND_VERSION}
            return result.model_copy(update={"meta": meta})
        return result

    server: Server[None] = Server(
        _NAME,
        title=TITLE,
        version=__version__,
        description=DESCRIPTION,
        # As a data URI, so that no client has to fetch it.
        icons=[
            types.Icon(
                src=f"data:image/svg+xml;base64,{icon}", mime_type="image/svg+xml", sizes=["any"]
            )
        ],
        instructions=toolbox.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **toolbox.resource_handlers(),
    )
    server.middleware.append(_name_missing_initialize)
    return server


async def _name_missing_initialize(
    ctx: ServerRequestContext[None], call_next: CallNext
) -> HandlerResult:
    """Name what is missing, where the SDK says only that the parameters are invalid."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        if error.code == types.INVALID_PARAMS and error.data == "":
            sentence = (
                f"{ctx.method} came before initialize. Send initialize first, then "
                "notifications/initialized."
            )
            raise MCPError(types.INVALID_REQUEST, sentence) from error
        raise


async def serve_client(
    toolbox: Toolbox,
    fd_in: int,
    fd_out: int,
    *,
    caller: str = "",
    origin: Origin | None = None,
    end: Callable[[], None] | None = None,
) -> None:
    """Serve an MCP client until it closes its end. `fd_out` becomes non-blocking.

    `end` is called then, even if the client has not read the last answer yet.
    """
    async with anyio.create_task_group() as tasks:
        output = Stdout(fd_out, tasks)
        messages = Input(fd_in, lambda: toolbox.running == 0, output.write)
        server = build(toolbox, caller, origin)
        await server.run(messages, output, server.create_initialization_options())
        with anyio.move_on_after(LAST_CALLS_S):
            await output.drain()
        if end:
            end()
        tasks.cancel_scope.cancel()


class RunningServer:
    """A server with its engine, its tools and, if one could be made, its socket.

    It may go unused for `keep_s` seconds; None if it ends with its client.
    """

    def __init__(
        self,
        configuration: Configuration,
        engine: Engine,
        listener: Listener | None,
        keep_s: float | None = None,
    ) -> None:
        self._inode = _held_inode(configuration.settings.cwd)
        self._configuration = configuration
        self._engine = engine
        self._listener = listener
        self._clients: list[int] = []
        self.lease = Lease(keep_s)
        archive = configuration.archive
        self._records = Records(configuration.audit, archive.run if archive else new_run())
        self.toolbox = Toolbox(configuration.toolsets, engine, self._records)
        self._describe()

    @contextlib.contextmanager
    def connected(self, client: int) -> Iterator[None]:
        """Count the MCP client with this process id as connected while the block runs."""
        self._clients.append(client)
        self._describe()
        try:
            with self.lease.used():
                yield
        finally:
            self._clients.remove(client)
            self._describe()

    def _describe(self) -> None:
        """Write what callers choose a server by. If that fails, the previous description stays."""
        if self._listener is None:
            return
        toolsets = self._configuration.toolsets
        with contextlib.suppress(OSError):
            self._listener.describe(
                {
                    "pid": os.getpid(),
                    "clients": self._clients,
                    "cwd": str(self._configuration.settings.cwd),
                    "inode": self._inode,
                    "toolsets": ",".join(toolset.name for toolset in toolsets),
                    "version": __version__,
                    "keep_s": self.lease.keep_s,
                }
            )

    async def answer(self, caller: Caller, greeting: Greeting) -> None:
        """Answer what a caller says first."""
        if greeting.wish.get("want") == "panes":
            # Looking is neither a call nor a use: people and completions don't prolong the lease.
            await self._tell_of_panes(caller)
            return
        # Calls from panes don't prolong the lease: a loop there would keep the server forever.
        with contextlib.nullcontext() if caller.is_in_pane else self.lease.used():
            match greeting.wish.get("want"):
                case "verb":
                    await self._verbs.answer(caller, greeting.wish)
                case "mcp":
                    await self._serve_client(caller, greeting)
                case "keep":
                    await self._keep(caller, greeting)
                case "stop":
                    with (
                        contextlib.suppress(CallerGoneError),
                        self._engine.clock.move_on_after(_LAST_LOOK_S),
                    ):
                        await self._tell_of_panes(caller)
                    self.end()

    async def _tell_of_panes(self, caller: Caller) -> None:
        rows = [
            row_for_people(pane, state)
            | {"directory": pane.made_by.place, "inode": pane.made_by.inode}
            for pane, state in await self._engine.states()
        ]
        await caller.send({"panes": rows})

    async def _keep(self, caller: Caller, greeting: Greeting) -> None:
        """Answer `start`: change the lease of a detached server, if the caller asks for it."""
        keep = greeting.wish.get("keep")
        is_changed = False
        if keep and self.lease.keep_s is not None:
            try:
                keep_s = seconds_of(str(keep))
            except StartError as error:
                caller.send_away(str(error))
                return
            is_changed = keep_s != self.lease.keep_s
            self.lease.change(keep_s)
            self._describe()
        await caller.send({"pid": os.getpid(), "changed": is_changed})

    @functools.cached_property
    def _verbs(self) -> "Verbs":
        """What answers verbs, made for the first one."""
        from .verbs.answering import Verbs  # noqa: PLC0415  tools/list need not wait for these

        debug = self.toolbox
        if all(toolset.name != "debug" for toolset in self._configuration.toolsets):
            debug = Toolbox(choose("debug"), self._engine, self._records)
        return Verbs(self._engine, self._records, debug, self.toolbox)

    async def _serve_client(self, caller: Caller, greeting: Greeting) -> None:
        client = servers.client_of(caller.pid)
        try:
            fd_in, fd_out = greeting.fds
        except ValueError as error:
            raise CallerGoneError from error
        settings = self._configuration.settings
        origin = Origin(settings.cwd, settings.inherited(environment_in(greeting.wish)))
        with self.connected(client):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel_when_gone, caller, tasks.cancel_scope)
                name = program_of(client)
                await serve_client(self.toolbox, fd_in, fd_out, caller=name, origin=origin)
                # The client learns of the end from its streams, and the caller from this.
                greeting.close()
                await caller.send({"exit": 0})
                tasks.cancel_scope.cancel()

    def end(self) -> NoReturn:
        """End everything at once, including this process."""
        for number in _END_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        status = 1
        try:
            # First, so that later callers find no server.
            if self._listener:
                self._listener.close()
            self._engine.close()
            status = 0
        except Exception:  # noqa: BLE001  this is the end of the process
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)


async def serve(configuration: Configuration) -> None:
    """Serve on standard input and output until their end or a signal, then end the process."""
    settings = configuration.settings
    _prepare(settings)
    listener = None
    try:
        listener = Listener(new_directory(servers.bases(settings.runtime_dir)[0]))
    except OSError as error:
        sys.stderr.write(f"tmux-debug can't reach this server: {error}\n")
    client = servers.client_of(os.getpid())
    fd_in, fd_out = _take_standard_streams()
    async with _running(configuration, listener) as server:
        with server.connected(client):
            await serve_client(server.toolbox, fd_in, fd_out, end=server.end)


async def serve_detached(
    configuration: Configuration,
    listener: Listener,
    keep_s: float,
    ready: Callable[[], None],
) -> None:
    """Serve callers of a socket until nobody has used it for `keep_s`, then end the process.

    Call `ready` once callers are served.
    """
    _prepare(configuration.settings)
    async with _running(configuration, listener, keep_s) as server:
        ready()
        await server.lease.wait_until_over()
        while not listener.withdraw():
            await anyio.sleep(_GREETING_POLL_S)  # a caller is about to say what it wants
            await server.lease.wait_until_over()


@contextlib.asynccontextmanager
async def _running(
    configuration: Configuration,
    listener: Listener | None,
    keep_s: float | None = None,
) -> AsyncIterator[RunningServer]:
    """Run a server while the block runs; then, or at a signal, end this process.

    The exit status is 0, or 1 after an exception of the block or of a task that the server can't do
    without. The exception's traceback is printed.
    """
    settings = configuration.settings
    if listener:
        settings = replace(settings, socket_dir=listener.directory)
        try:
            settings = replace(settings, programs_dir=add_program(listener.directory))
        except OSError as error:  # panes do without it
            sys.stderr.write(f"tmux-debug is not on the PATH of panes: {error}\n")
    try:
        async with open_engine(settings, configuration.archive) as engine:
            server = RunningServer(configuration, engine, listener, keep_s)
            for number in _END_SIGNALS:  # whatever it is doing
                signal.signal(number, lambda _number, _frame: server.end())
            if listener:
                engine.tasks.start_soon(listener.serve, server.answer)
            yield server
            server.end()
    except BaseException:  # noqa: BLE001  this is the end of the process
        traceback.print_exc(file=sys.stderr)
        if listener:
            listener.close()
        os._exit(1)


def _held_inode(directory: Path) -> str:
    """Return what identifies a directory, "" if it is gone. It stays open while we live.

    So no directory that takes its path is taken for it.
    """
    try:
        return servers.inode_of(os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return ""


def _prepare(settings: Settings) -> None:
    processes.become_subreaper()
    own_process.raise_open_files_limit()
    supervisor.remove_abandoned(settings.runtime_dir)
    remove_killed(settings.runtime_dir)
    # The SDK logs complaints about messages, which are not for whoever reads our standard error.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False


def _take_standard_streams() -> tuple[int, int]:
    """Return private duplicates of the standard streams.

    Children and stray prints get /dev/null and standard error in their place.
    """
    fd_in, fd_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return fd_in, fd_out
