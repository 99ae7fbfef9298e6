"""Reading the end of a log costs what the end has, not what the log has."""

import os
from pathlib import Path

import pytest
from support import abridged

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import read_chunk, read_end, read_last_lines

# What is read of text to tell that it is not within a string, and which modes are on: of ever more
# of the end, so 5 times.
MAX_LOOK_BACK_BYTES = 5 * (1 << 19)


class CountingLog(Log):
    """A log that counts what is read of it."""

    read_bytes = 0

    def read(self, start: int, size: int) -> bytes:
        data = super().read(start, size)
        self.read_bytes += len(data)
        return data


@pytest.mark.parametrize(
    "line", [b"a line of text\r\n", b"x" * 190 + b"\r\n", b"\033[32mgreen\033[0m\r\n", b"x"]
)
async def test_end_of_a_gigabyte_is_read_with_four_times_its_bytes_at_most(
    tmp_path: Path, line: bytes
) -> None:
    log = CountingLog.create(tmp_path / "log", "mark")
    os.truncate(log.path, 1 << 30)
    end = b"\r\n" * (line != b"x") + line * (100_000 // len(line))
    with log.path.open("ab") as file:
        file.write(b"words of text\r\n" * 30_000 + end)
    piece = await read_end(log, 0, log.size, 10_000)

    assert 9000 < len(piece.text) <= 10_000
    assert log.read_bytes <= 4 * (piece.end - piece.start) + MAX_LOOK_BACK_BYTES
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
    log = Log.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(data)

    assert await read_end(log, 0, log.size, most) == (text, start, log.size, 0)


async def test_line_longer_than_what_is_read_is_shown_in_part(tmp_path: Path) -> None:
    log = CountingLog.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(b"first\r\n" + b" x" * 1_500_000 + b"\r\nEND\r\n")
    line = (" x" * 5000)[-9995:]
    shown = line + "\nEND\n"
    lines = [line, "END"]

    assert (await read_end(log, 0, log.size, 10_000)).text == shown
    raw = await read_end(log, 0, log.size, 10_000, is_raw=True)
    assert raw == (shown, log.size - 10_002, log.size, 0)
    assert await read_last_lines(log, log.size, 5, 10_000) == (lines, True)
    assert await read_last_lines(log, log.size, 5, 10_000, is_raw=True) == (lines, True)
    assert log.read_bytes < 200_000 + MAX_LOOK_BACK_BYTES


async def test_last_lines_of_a_trimmed_log_are_read_no_further_back_than_it_is_kept(
    tmp_path: Path,
) -> None:
    log = CountingLog.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write((b"x" * 3000 + b"\r\n") * 100)
    log.trim(8192)
    found, is_cut = await read_last_lines(log, log.size, 5, 400_000)

    assert found[-1] == "x" * 3000
    assert is_cut
    assert log.read_bytes <= 5 * log.kept_bytes


async def test_lines_that_are_asked_for_are_whole(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(b"".join(b"%d-%s\r\n" % (number, b"x" * 9000) for number in range(20)))
    for count in (1, 3, 4, 19):
        lines = [f"{number}-{'x' * 9000}" for number in range(20 - count, 20)]

        assert await read_last_lines(log, log.size, count, 400_000) == (lines, True)
        assert await read_last_lines(log, log.size, count, 400_000, is_raw=True) == (lines, True)


async def test_last_line_is_found_though_only_lines_above_it_were_drawn_again(
    tmp_path: Path,
) -> None:
    log = Log.create(tmp_path / "log", "mark")
    again = b"".join(b"\033[2A\rone %d\r\ntwo %d\r\n" % (at, at) for at in range(50))
    log.path.write_bytes(b"one\r\ntwo\r\nthree" + again)

    assert await read_last_lines(log, log.size, 1, 16_000) == (["three"], True)


async def test_lines_of_ours_are_told_from_the_same_text_of_a_program(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(b"[screen]\r\n\033[?1049hmenu\033[?1049l\r\nend\r\n")

    excerpt = await abridged(log, 0, log.size, 1000, folds=False)
    assert excerpt.lines.count("[screen]") == 2
    assert excerpt.notes == [excerpt.lines.index("[screen]", 1)]


async def test_raw_text_is_as_it_was_printed(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(b"\x02packet\x03\r\n")

    assert (await read_end(log, 0, log.size, 1000, is_raw=True)).text == "\x02packet\x03\n"
    assert (await read_chunk(log, 0, log.size, 1000, is_raw=True)).text == "\x02packet\x03\r\n"
