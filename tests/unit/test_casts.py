"""Recordings of logs take little memory, however large the log claims to be."""

import os
import tracemalloc
from pathlib import Path

from support import kept_hole

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.viewing.logs import cast, kept_casts

MIB = 1 << 20


def test_recording_is_made_piece_by_piece(tmp_path: Path) -> None:
    kept = kept_hole(tmp_path, b"first\n")
    os.truncate(kept, 32 * MIB)
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


def test_log_with_too_large_a_recording_is_given_up_at_the_limit(tmp_path: Path) -> None:
    kept = kept_hole(tmp_path, b"first\n")
    run, cast_of = kept.parent.name, kept_casts(tmp_path)
    tracemalloc.start()
    try:
        assert cast_of(run, "debug-1", MIB) is None
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 8 * MIB

    kept.write_bytes(b"first\n")
    small = cast_of(run, "debug-1", MIB)
    assert small is not None
    assert b'"first\\n"' in small.text
    assert cast_of(run, "debug-1", len(small.text)) == small
    assert cast_of(run, "debug-1", len(small.text) - 1) is None
