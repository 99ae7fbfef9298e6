"""Logs: marks, retention that leaves cursors alone, and the share of each."""

import errno
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from clocks import VirtualClock
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.logs.log import Log, Mark
from tmux_debug_mcp.logs.reading import read_chunk
from tmux_debug_mcp.logs.retention import fair_share
from tmux_debug_mcp.vt.marks import PANE_MARK as MARKS

MARK = b"\033\\\033]7777;0123456789abcdef;%d\a"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.create(tmp_path / "log", "0123456789abcdef")


class SetClock(Clock):
    """A clock whose time of day is set by some seconds."""

    set_by_s = 0.0

    def wall(self) -> float:
        return super().wall() + self.set_by_s


def append(log: Log, data: bytes) -> None:
    with log.path.open("ab") as file:
        file.write(data)


async def test_mark_is_found_with_its_offset_and_exit_code(log: Log) -> None:
    append(log, b"output\r\n" + MARK % 3)

    assert await log.find_mark() == Mark(8, 3)


@pytest.mark.parametrize("behind", [0, 1, 65_400, 65_500, 65_536, 200_000])
async def test_mark_is_found_however_much_a_daemon_prints_behind_it(log: Log, behind: int) -> None:
    append(log, b"x" * 100_000 + MARK % 139 + b"y" * behind)

    assert await log.find_mark() == Mark(100_000, 139)


@pytest.mark.parametrize(
    "data", [b"", b"output", MARK[:-1] % 3, MARK % 256, b"\033\\\033]7777;fedcba9876543210;3\a"]
)
async def test_what_is_no_mark_is_none(log: Log, data: bytes) -> None:
    append(log, data)

    assert await log.find_mark() is None


async def test_mark_is_found_behind_a_hole_and_only_what_is_new_is_searched_again(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(self: Log, start: int, size: int, read_log: Any = Log.read) -> bytes:  # noqa: ANN401
        data: bytes = read_log(self, start, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(Log, "read", counted)
    append(log, b"output\r\n")
    os.truncate(log.path, 64 << 30)
    assert await log.find_mark() is None
    assert sum(read) <= 33 << 20
    read.clear()
    append(log, b"more" + (MARK % 3)[:-1])
    assert await log.find_mark() is None
    append(log, b"\a")
    assert await log.find_mark() == Mark((64 << 30) + 4, 3)
    assert sum(read) <= 4096


async def test_what_is_no_longer_kept_is_not_searched(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[int] = []

    def noted(self: Log, start: int, size: int, read_log: Any = Log.read) -> bytes:  # noqa: ANN401
        starts.append(start)
        data: bytes = read_log(self, start, size)
        return data

    monkeypatch.setattr(Log, "read", noted)
    append(log, bytes(1 << 20))
    log.trim(1 << 16)
    await log.find_mark()

    assert min(starts) == log.kept_from > 0


@given(
    st.lists(st.sampled_from([MARK % 3, MARK % 0, MARK[:20], b"x" * 3, bytes(40_000)]), max_size=9),
    st.lists(st.tuples(st.integers(1, 60_000) | st.integers(1, 60), st.booleans()), max_size=99),
)
async def test_mark_is_found_whenever_it_is_searched_for(
    tmp_path_factory: pytest.TempPathFactory, output: list[bytes], steps: list[tuple[int, bool]]
) -> None:
    rest = b"".join(output)
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as directory:
        log = Log.create(Path(directory) / "log", "0123456789abcdef")
        for size, is_trimmed in [*steps, (len(rest), False)]:
            append(log, rest[:size])
            rest = rest[size:]
            if is_trimmed:
                log.trim(size)
            kept = log.read(log.kept_from, log.kept_bytes)
            marks = [(log.kept_from + mark.start(), int(mark[2])) for mark in MARKS.finditer(kept)]
            assert await log.find_mark() == (marks[-1] if marks else None)
        log.close()


@pytest.mark.parametrize("set_by_s", [0.0, -3600.0, 3600.0])
def test_clock_that_is_set_does_not_change_when_a_log_grew(tmp_path: Path, set_by_s: float) -> None:
    clock = SetClock()
    log = Log.create(tmp_path / "log", "0123456789abcdef", clock)
    begin = time.monotonic()
    log.grew_at()
    append(log, b"output")
    clock.set_by_s = set_by_s

    grew_at = log.grew_at()
    assert begin <= grew_at <= time.monotonic()
    assert log.grew_at() == grew_at


@pytest.mark.parametrize(
    ("moments", "notes"),
    [
        ((), [(10, 59.0, 60.0)]),
        ((59.5,), [(10, 59.5, 59.5)]),  # all of it was written before anything else was
        ((59.5, 59.75), [(5, 59.5, 59.5), (10, 59.75, 59.75)]),
        ((59.25, 59.5, 59.75), [(10, 59.0, 59.75)]),  # who knows which writes were which lines?
    ],
)
async def test_it_is_noted_when_a_log_grew_as_far_as_that_is_known(
    tmp_path: Path,
    clock: VirtualClock,
    moments: tuple[float, ...],
    notes: list[tuple[int, float, float]],
) -> None:
    log = Log.create(tmp_path / "log", "0123456789abcdef", clock)
    await clock.advance(60.0)
    append(log, b"one\r\ntwo\r\n")

    assert log.note_growth(59.0, moments)
    assert not log.note_growth()
    timing = log.timing
    assert [*zip(timing.sizes, timing.afters, timing.times, strict=True)] == notes


async def test_trimmed_log_keeps_its_end_at_the_same_cursor(log: Log) -> None:
    append(log, bytes(range(256)) * 4096)
    log.trim(100_000)
    append(log, MARK % 3)

    assert log.size == 1 << 20 | len(MARK % 3)
    assert await log.find_mark() == Mark(1 << 20, 3)
    assert 100_000 <= log.kept_bytes <= 100_000 + 8192
    assert log.path.stat().st_blocks * 512 <= 100_000 + 16_384
    with log.path.open("rb") as file:
        file.seek(log.kept_from)
        assert file.read(256) == bytes(range(256))


def test_log_below_its_limit_is_left_alone(log: Log) -> None:
    append(log, b"x" * 5000)

    assert log.trim(5000)
    assert log.kept_from == 0


async def test_raw_text_begins_with_a_whole_character_where_the_beginning_is_gone(log: Log) -> None:
    append(log, "日本語".encode() * 20_000)
    log.trim(50_000)

    piece = await read_chunk(log, 0, log.size, 1000, is_raw=True)
    assert 0 < piece.start - log.kept_from < 3
    assert set(piece.text) == set("日本語")


def test_log_without_room_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file system that is full is not to be had without rights.
    fields = list(os.statvfs(tmp_path))
    fields[3] = fields[4] = 0  # f_bfree, f_bavail
    monkeypatch.setattr(os, "fstatvfs", lambda _: os.statvfs_result(fields))
    with pytest.raises(OSError, match="No space left"):
        Log.create(tmp_path / "log", "mark")
    assert not list(tmp_path.iterdir())


def test_log_that_loses_its_name_can_still_be_read(tmp_path: Path) -> None:
    log = Log.unlinked(tmp_path / "log", "mark")
    with open(log.writable, "ab") as file:
        file.write(b"output")

    assert log.read(0, 100) == b"output"
    assert not list(tmp_path.iterdir())
    log.close()


def test_log_whose_name_stays_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "unlink", refuse)
    open_before = os.listdir("/proc/self/fd")
    with pytest.raises(PermissionError):
        Log.unlinked(tmp_path / "log", "mark")

    assert os.listdir("/proc/self/fd") == open_before


async def test_closed_log_tells_what_it_was(log: Log) -> None:
    append(log, b"x" * 5000)
    log.close()
    log.close()

    assert (log.size, await log.find_mark(), log.is_closed) == (5000, None, True)
    assert log.read(0, 100) == b""


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(1, 50), st.integers(1, 500))
def test_shares_are_as_large_as_they_can_be(
    sizes: list[int], most_each: int, most_all: int
) -> None:
    share = fair_share(sizes, most_each, most_all)

    assert share <= most_each
    assert sum(min(size, share) for size in sizes) <= most_all
    larger = sum(min(size, share + 1) for size in sizes)
    assert share == most_each or larger > most_all
