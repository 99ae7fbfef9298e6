"""Readers of a log that is trimmed between their turns: all that they return was printed."""

from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from clocks import VirtualClock
from support import abridged, eventually

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.logs.reading import read_end, read_forward
from tmux_debug_mcp.logs.retention import Retention
from tmux_debug_mcp.logs.searching import search
from tmux_debug_mcp.logs.timing import Timing

LINES = [f"{number:06} {'x' * 100}" for number in range(40_000)]
LINE_BYTES = len(LINES[0]) + 2
KEEP_BYTES = 1 << 20


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log.create(tmp_path / "log", "mark")
    log.path.write_bytes("".join(f"{line}\r\n" for line in LINES).encode())
    return log


async def trim_at_each_turn(log: Log) -> None:
    """Trim a log in each turn of the loop, by an eighth, down to `KEEP_BYTES`."""
    while log.kept_bytes > KEEP_BYTES + 8192:
        await anyio.lowlevel.checkpoint()
        assert log.trim(max(KEEP_BYTES, log.kept_bytes * 7 // 8))


@pytest.mark.parametrize("max_characters", [1000, 2000, 16_000])
@pytest.mark.parametrize("folds", [False, True])
async def test_abridged_part_begins_with_a_whole_line_and_tells_what_is_gone(
    log: Log, max_characters: int, *, folds: bool
) -> None:
    log.trim(log.size - 5000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trim_at_each_turn, log)
        excerpt = await abridged(log, 0, log.size, max_characters, folds=folds)
        tasks.cancel_scope.cancel()

    note, first, *_ = excerpt.text.split("\n")
    start = LINES.index(first) * LINE_BYTES
    assert note == f"[{start:,} bytes before this are no longer kept]"
    assert 0 < start <= log.kept_from + LINE_BYTES
    shown = [line for line in excerpt.text.split("\n") if not line.startswith("[")]
    assert set(shown) <= {*LINES, ""}
    assert shown == [*sorted(set(shown) - {""}), ""]


async def test_what_is_printed_before_a_log_is_watched_is_noted(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it was printed, a replay shows it, even if nothing follows."""

    def late(inotify: int, fd: int) -> int:
        with log.path.open("ab") as file:
            file.write(b"too early to be told of\r\n")
        return watch(inotify, fd)

    watch = files.watch
    monkeypatch.setattr(files, "watch", late)
    retention = Retention(Clock())
    retention.add(log)
    assert log.timing.sizes == [log.size]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(retention.serve)
        with log.path.open("ab") as file:
            file.write(b"told of\r\n")
        await eventually(lambda: log.timing.sizes[-1] == log.size)
        tasks.cancel_scope.cancel()
    retention.close()


async def test_times_are_kept_up_to_the_last_growth(tmp_path: Path, clock: VirtualClock) -> None:
    retention = Retention(clock)
    log = Log.create(tmp_path / "log", "mark", clock)
    retention.add(log)
    log.timing._entered = 50_000  # so that entries are rare: one in 160 ms
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(retention.serve)
        for _ in range(2):
            with log.path.open("ab") as file:
                file.write(b"line\r\n")
            await eventually(partial(has_noted, log, log.size))
            retention.trim()  # as if it were time for that
        await clock.advance(1.0)
        tasks.cancel_scope.cancel()

    kept = Timing(0.0)
    kept.read(log.path.with_suffix(".timing").read_text())
    assert kept.sizes[-1] == log.size
    retention.close()


def has_noted(log: Log, size: int) -> bool:
    return log.timing.sizes[-1:] == [size]


async def test_logs_that_pause_are_noted_in_the_order_in_which_they_grow(tmp_path: Path) -> None:
    clock = Clock()
    retention = Retention(clock)
    logs = [Log.create(tmp_path / name, "mark", clock) for name in ("one", "two", "three")]
    for log in logs:
        retention.add(log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(retention.serve)
        # Longer than a log that pauses is looked at, and shorter than the interval of trims.
        for pause_s in (0.0, 0.06, 0.1, 0.3):
            await anyio.sleep(pause_s)
            for log in (logs[1], logs[0], logs[2]):
                with log.path.open("ab") as file:
                    file.write(b"line\r\n")
            noted = [partial(has_noted, log, log.size) for log in logs]
            await eventually(lambda: all(is_noted() for is_noted in noted))  # noqa: B023
            ahead_s = clock.ahead()
            first, second, third = (log.began_at(ahead_s) + log.timing.times[-1] for log in logs)
            assert second < first < third
        tasks.cancel_scope.cancel()
    retention.close()


async def test_text_from_a_cursor_on_is_all_there(log: Log) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trim_at_each_turn, log)
        piece = await read_forward(log, 0, log.size, 500_000)
        tasks.cancel_scope.cancel()

    assert piece.lines == LINES[: len(piece.lines)]
    assert len(piece.text) > 490_000
    assert piece.end == len(piece.lines) * LINE_BYTES


async def test_end_of_a_part_has_no_hole(log: Log) -> None:
    end = log.size - KEEP_BYTES
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trim_at_each_turn, log)
        piece = await read_end(log, 0, end, 200_000)
        tasks.cancel_scope.cancel()

    last = end // LINE_BYTES
    assert piece.lines[:-1] == LINES[last - len(piece.lines) + 1 : last]


@pytest.mark.parametrize("turns", [1, 4, 16, 64, 80])
async def test_lines_that_are_found_are_whole(log: Log, turns: int) -> None:
    async def trim_later() -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        log.trim(50_000)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trim_later)
        pattern = compiled("pattern", "00 x", is_for_bytes=True)
        found = await search(log, 0, log.size, pattern, 60, context=2)
        tasks.cancel_scope.cancel()

    shown = [line.text for line in found.lines]
    assert set(shown) <= set(LINES)
    assert [line.start for line in found.lines] == [
        LINES.index(text) * LINE_BYTES for text in shown
    ]
    count = len(found.matches) - found.left_out
    assert sum("00 x" in line for line in shown) == count >= 1
    assert [("00 x" in line.text) for line in found.lines] == list(map(found.is_match, found.lines))
    assert len(shown) >= 3 * count
