"""Reading the end of a log costs what the end has, not what the log has."""

import os
from pathlib import Path

import pytest

from tmux_debug_mcp.logs import Log
from tmux_debug_mcp.reading import read_end


class CountingLog(Log):
    """A log that counts what is read of it."""

    read_bytes = 0

    def read(self, start: int, size: int) -> bytes:
        data = super().read(start, size)
        self.read_bytes += len(data)
        return data


@pytest.mark.parametrize("line", [b"a line of text\r\n", b"x" * 190 + b"\r\n", b"\033[32mgreen\033[0m\r\n", b"x"])
async def test_end_of_a_gigabyte_is_read_with_four_times_its_bytes_at_most(tmp_path: Path, line: bytes) -> None:
    log = CountingLog(tmp_path / "log", "mark")
    os.truncate(log.path, 1 << 30)
    end = b"\r\n" * (line != b"x") + line * (100_000 // len(line))
    with log.path.open("ab") as file:
        file.write(end)
    piece = await read_end(log, 0, log.size, 10_000)

    assert 9000 < len(piece.text) <= 10_000
    assert log.read_bytes <= 4 * (piece.end - piece.start)
    assert piece.end == log.size


@pytest.mark.parametrize(
    ("data", "most", "text", "start"),
    [
        (b"", 10, "", 0),
        (b"one\r\ntwo\r\n", 100, "one\ntwo\n", 0),
        (b"one\r\ntwo\r\n", 4, "two\n", 5),
        (b"one\r\ntwo\r\n", 5, "two\n", 5),
        (b"one\r\ntwo", 3, "two", 5),
        (b"x" * 100, 10, "x" * 10, 90),
        ("é".encode() * 100, 10, "é" * 10, 180),
    ],
)
async def test_end_is_whole_lines_where_that_costs_little(
    tmp_path: Path, data: bytes, most: int, text: str, start: int
) -> None:
    log = Log(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(data)

    assert await read_end(log, 0, log.size, most) == (text, start, log.size, 0)
