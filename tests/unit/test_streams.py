"""A client gets all messages, however late it reads; after its end it gets none."""

import os
from collections.abc import Iterator

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from tmux_debug_mcp.streams import Stdout

_LINE_BYTES = 1 << 19
PING = SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method="ping"))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def read(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(fd, size)
    return data


async def test_client_that_reads_late_gets_all_lines_in_order(pipe: tuple[int, int]) -> None:
    lines = [letter * _LINE_BYTES for letter in "abc"]
    async with anyio.create_task_group() as tasks:
        output = Stdout(pipe[1], tasks)

        async def write() -> None:
            for line in lines:
                await output.write(line)
            await output.drain()
            tasks.cancel_scope.cancel()

        tasks.start_soon(write)
        size = sum(len(line) + 1 for line in lines)
        data = await anyio.to_thread.run_sync(read, pipe[0], size)

    assert data.decode().split("\n") == [*lines, ""]


async def test_messages_before_the_end_are_sent_and_later_ones_refused(
    pipe: tuple[int, int],
) -> None:
    async with anyio.create_task_group() as tasks:
        output = Stdout(pipe[1], tasks)
        await output.write("x" * _LINE_BYTES)
        await output.send(PING)
        await output.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await output.send(PING)
        ping = PING.message.model_dump_json(by_alias=True, exclude_unset=True)
        data = await anyio.to_thread.run_sync(read, pipe[0], _LINE_BYTES + 2 + len(ping))

    assert data.decode().splitlines()[1:] == [ping]
