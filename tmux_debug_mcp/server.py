"""The server: a toolbox on stdio, from the first byte to an end that leaves nothing.

The wire is the SDK's. The two streams are ours, so that no client can hold up our end: one that stops reading,
one that is gone, one that sends signals instead of the end of input.
"""

import logging
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NoReturn

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from . import __version__, linux
from .audit import AuditLog
from .creation import Settings
from .lifetime import on_end_signals, remove_abandoned
from .session import Session, open_session
from .tools import Toolbox, Toolset

# After the end of input, calls at work get this long to answer; and their answers, to be read.
_LAST_CALLS_S = 0.1

# `\ud800` without its other half is no character; JSON parsers refuse the message whole and nobody would be
# answered. As NUL it reaches the check of the arguments, which says what is wrong.
_HALF_PAIR = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    rb"(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


class _Input:
    """Standard input as an async iterator of lines; its end comes when no call is at work or time is up."""

    def __init__(self, fd: int, is_idle: Callable[[], bool]) -> None:
        self._fd = fd
        self._is_idle = is_idle
        # Files and /dev/null can't be waited for, and need not be.
        self._waits = _is_stream(fd) or os.isatty(fd)

    async def __aiter__(self) -> AsyncIterator[str]:
        partial = bytearray()
        while data := await self._read():
            *lines, rest = data.split(b"\n")
            for line in lines:
                partial += line
                yield _HALF_PAIR.sub(rb"\1\\u0000", partial).decode(errors="replace")
                partial = bytearray()
            partial += rest
        with anyio.move_on_after(_LAST_CALLS_S):
            while not self._is_idle():
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
        if _is_stream(fd):
            os.set_blocking(fd, False)

    async def write(self, text: str) -> None:
        self._unsent += text.encode()

    async def sent(self) -> None:
        """Wait until all has been written."""
        while self._unsent:
            await anyio.sleep(0.002)

    async def flush(self) -> None:
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
        **_resource_handlers(toolbox),
    )


def _resource_handlers(toolbox: Toolbox) -> dict[str, Any]:
    """Return the handlers of requests for resources, where a toolset has some."""
    if not toolbox.has_screens:
        return {}
    from .tools.screens import Screens  # noqa: PLC0415  which others need not import

    screens = Screens(toolbox.session)
    return {
        "on_list_resources": screens.list,
        "on_list_resource_templates": screens.templates,
        "on_read_resource": screens.read,
        "on_subscribe_resource": screens.subscribe,
        "on_unsubscribe_resource": screens.unsubscribe,
        "on_subscriptions_listen": screens.listen,
    }


async def serve(toolsets: Sequence[Toolset], settings: Settings, audit: AuditLog | None) -> None:
    """Serve on standard input and output until their end or a signal, which ends the process."""
    linux.become_subreaper()
    remove_abandoned()
    # What the SDK has to say about messages is not for whoever reads our standard error.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    logging.getLogger("mcp").propagate = False
    async with open_session(settings) as session:
        on_end_signals(lambda: _end(session))
        toolbox = Toolbox(toolsets, session, audit)
        fd_in, fd_out = _claim_standard_streams()
        streams = _Input(fd_in, lambda: toolbox.running == 0), _Output(fd_out)
        async with stdio_server(*streams) as (read, write):  # type: ignore[arg-type]
            server = build(toolbox)
            try:
                await server.run(read, write, server.create_initialization_options())
                with anyio.move_on_after(_LAST_CALLS_S):
                    await streams[1].sent()
            finally:
                _end(session)


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


def _end(session: Session) -> NoReturn:
    """End everything at once, and us, whatever else we are at."""
    try:
        session.close()
    finally:
        os._exit(0)
