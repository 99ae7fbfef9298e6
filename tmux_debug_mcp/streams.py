"""The streams of an MCP client: lines in, lines out. No client can delay our end.

That holds for one that stops reading, is gone, or sends signals instead of closing its end. The SDK
reads and writes these streams as if they were files.
"""

import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel

from .wire import EDGE_BYTES, MAX_LINE_BYTES, RefusedError, read_message

# After the end of input: time for running calls to answer, and for the client to read answers.
LAST_CALLS_S = 0.1
# The SDK passes a message on within fewer turns of the event loop.
_TURNS = 50
_POLL_S = 0.002
_READ_BYTES = 1 << 16

Answer = Callable[[str], Awaitable[None]]


class Input:
    """The lines of a client as an async iterator of messages.

    After the end of input, it waits a moment for running calls, until `is_idle`. It answers each
    refused line, and waits to do so while the client reads nothing.
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

    async def _lines(self) -> AsyncIterator[bytes]:
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


class Output:
    """The stream to a client, as the SDK writes to it. Its descriptor becomes non-blocking.

    When the client is gone, what it has not read is dropped.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unsent = bytearray()
        self._sending = anyio.Lock(fast_acquire=True)
        if _is_stream(fd):
            os.set_blocking(fd, False)

    @property
    def is_sending(self) -> bool:
        """Whether a flush is running, which will also send what is written now."""
        return self._sending.locked()

    async def write(self, text: str) -> None:
        """Add text to the buffer; the SDK then calls `flush`."""
        self._unsent += text.encode()

    async def drain(self, max_bytes: int = 0) -> None:
        """Wait until the buffer contains at most so many bytes."""
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


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
