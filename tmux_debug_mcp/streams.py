"""The streams of an MCP client: messages in, messages out. No client can delay our end.

That holds for one that stops reading, is gone, or sends signals instead of closing its end. The SDK
takes any streams with its protocols `ReadStream` and `WriteStream`, which those of anyio have.
"""

import contextlib
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio
import anyio.lowlevel
from anyio.abc import ObjectReceiveStream, ObjectSendStream, TaskGroup
from mcp.shared.message import SessionMessage

from .wire import EDGE_BYTES, MAX_LINE_BYTES, RefusedError, read_message

# After the end of input: time for running calls to answer, and for the client to read answers.
LAST_CALLS_S = 0.1
# The SDK passes a message on within fewer turns of the event loop.
_TURNS = 50
_POLL_S = 0.002
_READ_BYTES = 1 << 16
# While the client leaves more than this unread, whoever writes waits.
_MAX_UNSENT_BYTES = 1 << 20


class Input(ObjectReceiveStream[SessionMessage]):
    """The messages of a client.

    It answers each refused line by `answer`. After the end of input, it waits a moment for running
    calls, until `is_idle`.
    """

    def __init__(
        self, fd: int, is_idle: Callable[[], bool], answer: Callable[[str], Awaitable[None]]
    ) -> None:
        self._fd = fd
        self._is_idle = is_idle
        self._answer = answer
        # epoll refuses regular files and /dev/null, which never block anyway.
        self._can_block = _is_stream(fd) or os.isatty(fd)
        self._lines = self._read_lines()

    async def receive(self) -> SessionMessage:
        """Return the next message, or raise EndOfStream."""
        async for line in self._lines:
            try:
                message = read_message(line)
            except RefusedError as refused:
                await self._answer(refused.answer())
                await anyio.lowlevel.checkpoint()
                continue
            if message is not None:
                return SessionMessage(message)
        with anyio.move_on_after(LAST_CALLS_S):
            # Also until the SDK has passed on all messages.
            turns = 0
            while turns < _TURNS:
                if self._is_idle():
                    turns += 1
                    await anyio.lowlevel.checkpoint()
                else:
                    turns = 0
                    await anyio.sleep(_POLL_S)
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Read no further lines."""
        await self._lines.aclose()

    async def _read_lines(self) -> AsyncGenerator[bytes]:
        """Yield lines without their line feeds, including a last one that has none.

        A line that is too long loses its middle. The rest may contain the request's id.
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

    async def _read(self) -> bytes:
        if self._can_block:
            await anyio.wait_readable(self._fd)
        else:
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(self._fd, _READ_BYTES)
        except ConnectionError:
            return b""


class Stdout(ObjectSendStream[SessionMessage]):
    """The stream to a client. Its descriptor becomes non-blocking.

    What the client does not take at once is sent by one of `tasks`, where failures end the server.
    When the client is gone, what it has not read is dropped.
    """

    def __init__(self, fd: int, tasks: TaskGroup) -> None:
        self._fd = fd
        self._tasks = tasks
        self._unsent = bytearray()
        self._is_closed = False
        if _is_stream(fd):
            os.set_blocking(fd, False)

    async def send(self, item: SessionMessage) -> None:
        """Write a message, unless the SDK has closed the stream: ClosedResourceError."""
        if self._is_closed:
            raise anyio.ClosedResourceError
        await self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def write(self, line: str) -> None:
        """Write a line, given without its line feed."""
        is_sending = bool(self._unsent)
        self._unsent += line.encode() + b"\n"
        if not is_sending:
            with contextlib.suppress(OSError):  # the task meets it again
                self._send()
            if self._unsent:
                self._tasks.start_soon(self._send_rest)
        await self.drain(_MAX_UNSENT_BYTES)

    async def drain(self, max_bytes: int = 0) -> None:
        """Wait until at most so many bytes are unsent."""
        while len(self._unsent) > max_bytes:
            await anyio.sleep(_POLL_S)

    async def aclose(self) -> None:
        """Take no further messages. What is unsent is still sent."""
        self._is_closed = True

    def _send(self) -> None:
        del self._unsent[: os.write(self._fd, self._unsent)]

    async def _send_rest(self) -> None:
        while self._unsent:
            try:
                self._send()
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            except ConnectionError:
                self._unsent.clear()


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
