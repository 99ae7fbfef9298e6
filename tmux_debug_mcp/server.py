"""The MCP server: serves a toolbox on standard input and output, and ends without leaving anything.

The SDK implements the protocol. Reading standard input and writing standard output is ours, so that
the process ends promptly at the end of input, at a signal, and when the client no longer reads.
"""

import logging
import os
import signal
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NoReturn

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from tmux_debug_mcp import __version__
from tmux_debug_mcp.linux import limits, processes
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.panes.engine import Engine, open_engine
from tmux_debug_mcp.tmux.supervisor import remove_abandoned
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import Toolset

from .audit import AuditLog
from .settings import Settings
from .wire import EDGE_BYTES, MAX_LINE_BYTES, RefusedError, read_message

# After the end of input: time for calls at work to answer, and for their answers to be read.
_LAST_CALLS_S = 0.1
# While more than this is unread by the client, no further lines are refused.
_MAX_UNSENT_BYTES = 1 << 20
# The SDK passes a message on to the toolbox within fewer turns of the event loop.
_TURNS = 50
_POLL_S = 0.002
_READ_BYTES = 1 << 16

Answer = Callable[[str], Awaitable[None]]


class _Input:
    """Standard input as an async iterator of messages.

    After the end of input it waits up to 0.1 s for the calls at work.

    Args:
        fd: The file descriptor.
        is_idle: Tells whether no call is at work.
        answer: Sends the answer to a line that was refused; waits while the client reads nothing.
    """

    def __init__(self, fd: int, is_idle: Callable[[], bool], answer: Answer) -> None:
        self._fd = fd
        self._is_idle = is_idle
        self._answer = answer
        # epoll refuses regular files and /dev/null, which never block anyway.
        self._can_block = _is_stream(fd) or os.isatty(fd)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines():
            try:
                message = read_message(line)
            except RefusedError as refused:
                await self._answer(refused.answer())
                await anyio.lowlevel.checkpoint()
                continue
            if message is not None:
                yield message
        with anyio.move_on_after(_LAST_CALLS_S):
            await self._wait_until_idle()

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield lines without their line feeds, the last one too if it has none.

        A line that is too long loses its middle. The request's id may be in what is left.
        """
        line = bytearray()
        while data := await self._read():
            *ends, rest = data.split(b"\n")
            for end in ends:
                yield bytes(line + end)
                line = bytearray()
            line += rest
            if len(line) > 2 * MAX_LINE_BYTES:
                del line[MAX_LINE_BYTES:-EDGE_BYTES]
        yield bytes(line)

    async def _wait_until_idle(self) -> None:
        """Wait until no call is at work and the SDK holds no message that it has not passed on."""
        turns = 0
        while turns < _TURNS:
            if self._is_idle():
                turns += 1
                await anyio.lowlevel.checkpoint()
            else:
                turns = 0
                await anyio.sleep(_POLL_S)

    async def _read(self) -> bytes:
        if self._can_block:
            await anyio.wait_readable(self._fd)
        else:
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(self._fd, _READ_BYTES)
        except ConnectionError:
            return b""


class _Output:
    """Standard output, as the SDK writes to it.

    When the client has closed its end, unsent bytes are dropped.

    Args:
        fd: The file descriptor, which becomes non-blocking.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unsent = bytearray()
        self._sending = anyio.Lock(fast_acquire=True)
        if _is_stream(fd):
            os.set_blocking(fd, False)

    @property
    def is_sending(self) -> bool:
        """Whether a flush is at work, which will send what is put now too."""
        return self._sending.locked()

    async def write(self, text: str) -> None:
        """Put text into the buffer; the SDK calls `flush` then."""
        self.put(text)

    def put(self, text: str) -> None:
        """Put text into the buffer."""
        self._unsent += text.encode()

    async def drain(self, max_bytes: int = 0) -> None:
        """Wait until at most so many bytes of the buffer are unsent."""
        while len(self._unsent) > max_bytes:
            await anyio.sleep(_POLL_S)

    async def flush(self) -> None:
        """Send the buffer."""
        async with self._sending:
            while self._unsent:
                try:
                    del self._unsent[: os.write(self._fd, self._unsent)]
                except BlockingIOError:
                    await anyio.wait_writable(self._fd)
                except ConnectionError:
                    self._unsent.clear()


def build(toolbox: Toolbox) -> Server[None]:
    """Return the SDK's server for a toolbox."""

    async def list_tools(
        _ctx: ServerRequestContext[None], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=toolbox.definitions())

    async def call_tool(
        ctx: ServerRequestContext[None], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async def report(seconds: float) -> None:
            # Sends nothing unless the client asked for progress.
            await ctx.session.report_progress(seconds, message=f"{seconds:g} s")

        return await toolbox.call(params.name, params.arguments or {}, report)

    return Server(
        "tmux-debug",
        version=__version__,
        instructions=toolbox.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **toolbox.resource_handlers,
    )


async def serve(
    toolsets: Sequence[Toolset[Any]],
    settings: Settings,
    audit: AuditLog | None,
    archive: Archive | None,
) -> None:
    """Serve on standard input and output until the end of input or a signal, then end the process.

    Args:
        toolsets: The toolsets to offer.
        settings: The configuration.
        audit: Where calls are recorded, None to record none.
        archive: Where logs are kept after the end, None to keep none.
    """
    processes.become_subreaper()
    limits.raise_open_files_limit()
    remove_abandoned(settings.runtime_dir)
    # The SDK logs warnings about messages of the client. They don't belong on standard error.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False
    async with open_engine(settings, archive) as engine, anyio.create_task_group() as tasks:
        _end_at_signals(engine)
        toolbox = Toolbox(toolsets, engine, audit)
        fd_in, fd_out = _take_standard_streams()
        output = _Output(fd_out)

        async def answer(message: str) -> None:
            output.put(message + "\n")
            if not output.is_sending:
                tasks.start_soon(output.flush)
            await output.drain(_MAX_UNSENT_BYTES)

        lines = _Input(fd_in, lambda: toolbox.running == 0, answer)
        async with stdio_server(lines, output) as (read, write):  # type: ignore[arg-type]
            server = build(toolbox)
            try:
                await server.run(read, write, server.create_initialization_options())
                with anyio.move_on_after(_LAST_CALLS_S):
                    await output.drain()
            finally:
                _end(engine)


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


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


def _end_at_signals(engine: Engine) -> None:
    """End the process at SIGINT, SIGTERM and SIGHUP, whatever it is doing."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: _end(engine))


def _end(engine: Engine) -> NoReturn:
    """End everything at once, and this process."""
    try:
        engine.close()
    finally:
        os._exit(0)
