"""Recordings of logs take little memory, however large the log claims to be."""

import tracemalloc
from pathlib import Path

import pytest

from tmux_debug_mcp.logs.archive import Entry
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.viewing.logs import cast, kept_casts

RUN = "20260101T000000-4711"
MIB = 1 << 20


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return the file of a kept log, which is a hole of 64 GiB after its first line."""
    run = tmp_path / RUN
    run.mkdir()
    entry = Entry(
        id="debug-1",
        window="@1",
        name="web",
        command="true",
        mark="0" * 64,
        columns=80,
        rows=24,
        started_at=1769768146.0,
    )
    (run / "index.jsonl").write_bytes(entry.line())
    log = run / "debug-1.log"
    log.write_bytes(b"first\n")
    with log.open("r+b") as file:
        file.truncate(64 << 30)
    return log


def test_recording_is_made_piece_by_piece(kept: Path) -> None:
    with kept.open("r+b") as file:
        file.truncate(32 * MIB)
    log = Log.shared(kept, Timing(0.0))
    tracemalloc.start()
    try:
        lines = sum(1 for _ in cast(log, "web"))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        log.close()

    assert lines > 100
    assert most_bytes < 8 * MIB


def test_log_with_too_large_a_recording_is_given_up_at_the_limit(
    kept: Path, tmp_path: Path
) -> None:
    cast_of = kept_casts(tmp_path)
    tracemalloc.start()
    try:
        assert cast_of(RUN, "debug-1", MIB) is None
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 8 * MIB

    kept.write_bytes(b"first\n")
    small = cast_of(RUN, "debug-1", MIB)
    assert small is not None
    assert b'"first\\n"' in small.text
    assert cast_of(RUN, "debug-1", len(small.text)) == small
    assert cast_of(RUN, "debug-1", len(small.text) - 1) is None
