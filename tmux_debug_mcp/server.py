"""The server: a toolbox on stdio, from the first byte to an end that leaves nothing.

The wire is the SDK's. The two streams are ours, so that no client can hold up our end: one that stops reading,
one that is gone, one that sends signals instead of the end of input. What the SDK would drop without an answer is
answered here, before it gets there.
"""

import logging
import os
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
from tmux_debug_mcp.tmux.supervisor import on_end_signals, remove_abandoned
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import Toolset

from .audit import AuditLog
from .settings import Settings
from .wire import EDGE_BYTES, MAX_LINE_BYTES, RefusedError, read_message

# After the end of input, calls at work get this long to answer; and their answers, to be read.
_LAST_CALLS_S = 0.1

# Answers to lines that are refused go on to be made until so much is not read.
_MOST_UNSENT_BYTES = 1 << 20

# The SDK passes a message on in several turns of the event loop. A server is idle when it was so for more of them.
_TURNS = 50


class _Input:
    """Standard input as an async iterator of messages; its end comes when no call is at work or time is up.

    Args:
        fd: The file descriptor.
        is_idle: Whether no call is at work.
        answer: Sends an answer to a line that is refused; waits where the client reads none.
    """

    def __init__(self, fd: int, is_idle: Callable[[], bool], answer: Callable[[str], Awaitable[None]]) -> None:
        self._fd = fd
        self._is_idle = is_idle
        self._answer = answer
        # Files and /dev/null can't be waited for, and need not be.
        self._waits = _is_stream(fd) or os.isatty(fd)

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
            await self._idle()

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield lines without their ends, also a last one that has none. Of a line too long its middle is left out."""
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

    async def _idle(self) -> None:
        """Wait until no call is at work, nor on its way through the SDK."""
        turns = 0
        while turns < _TURNS:
            if self._is_idle():
                turns += 1
                await anyio.lowlevel.checkpoint()
            else:
                turns = 0
                await anyio.sleep(0.002)

    async def _read(self) -> bytes:
        if self._waits:
            await anyio.wait_readable(self._fd)
        else:
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(self._fd, 1 << 16)
        except ConnectionError:
            return b""


class _Output:
    """Standard output as the SDK writes it. A reader that is gone is as good as one that reads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unsent = bytearray()
        self._sending = anyio.Lock(fast_acquire=True)
        if _is_stream(fd):
            os.set_blocking(fd, False)

    @property
    def is_sending(self) -> bool:
        """Whether all that was written is being sent."""
        return self._sending.locked()

    async def write(self, text: str) -> None:
        self.put(text)

    def put(self, text: str) -> None:
        """Write text that the next flush sends, or the one at work."""
        self._unsent += text.encode()

    async def sent(self, but_bytes: int = 0) -> None:
        """Wait until all has been written, but so much."""
        while len(self._unsent) > but_bytes:
            await anyio.sleep(0.002)

    async def flush(self) -> None:
        async with self._sending:
            while self._unsent:
                try:
                    del self._unsent[: os.write(self._fd, self._unsent)]
                except BlockingIOError:
                    await anyio.wait_writable(self._fd)
                except ConnectionError:
                    self._unsent.clear()


def build(toolbox: Toolbox) -> Server[None]:
    """Return the MCP server of a toolbox."""

    async def list_tools(
        _ctx: ServerRequestContext[None], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=toolbox.definitions())

    async def call_tool(ctx: ServerRequestContext[None], params: types.CallToolRequestParams) -> types.CallToolResult:
        async def report(seconds: float) -> None:
            await ctx.session.report_progress(seconds, message=f"{seconds:g} s")  # if the client asks for it

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
    """Serve on standard input and output until their end or a signal, which ends the process."""
    processes.become_subreaper()
    limits.raise_open_files_limit()
    remove_abandoned(settings.runtime_dir)
    # What the SDK has to say about messages is not for whoever reads our standard error.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False
    async with open_engine(settings, archive) as engine, anyio.create_task_group() as tasks:
        on_end_signals(lambda: _end(engine))
        toolbox = Toolbox(toolsets, engine, audit)
        fd_in, fd_out = _claim_standard_streams()
        output = _Output(fd_out)

        async def answer(message: str) -> None:
            output.put(message + "\n")
            if not output.is_sending:
                tasks.start_soon(output.flush)
            await output.sent(_MOST_UNSENT_BYTES)

        lines = _Input(fd_in, lambda: toolbox.running == 0, answer)
        async with stdio_server(lines, output) as (read, write):  # type: ignore[arg-type]
            server = build(toolbox)
            try:
                await server.run(read, write, server.create_initialization_options())
                with anyio.move_on_after(_LAST_CALLS_S):
                    await output.sent()
            finally:
                _end(engine)


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _claim_standard_streams() -> tuple[int, int]:
    """Return private standard streams; in their place children and stray prints get nothing and stderr."""
    fd_in, fd_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return fd_in, fd_out


def _end(engine: Engine) -> NoReturn:
    """End everything at once, and us, whatever else we are at."""
    try:
        engine.close()
    finally:
        os._exit(0)
