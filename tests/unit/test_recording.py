"""Recordings of a log, whose marks are ours alone."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes import recording
from tmux_debug_mcp.panes.recording import Recording

MARK = "0123456789abcdef"
END = b"\033\\\033]7777;%s;4\a" % MARK.encode()
JOB = b"\033]7777;fedcba9876543210;S0\a"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.create(tmp_path / "log", MARK)


def recorded(log: Log, path: Path, *pieces: bytes) -> str:
    """Return what a recording has of pieces that come one after the other."""
    pane: Any = SimpleNamespace(log=log, clock=Clock())
    one = Recording(pane, path)
    for piece in pieces:
        with log.path.open("ab") as file:
            file.write(piece)
        one.take()
    one.stop()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert one.events == len(events)
    return "".join(event[2] for event in events)


@pytest.mark.parametrize(
    "data", [b"last " + END, JOB + b"last " + JOB.replace(b"S0", b"-1"), b"la" + JOB + b"st "]
)
def test_marks_are_not_recorded_wherever_they_are_cut(
    log: Log, data: bytes, tmp_path: Path
) -> None:
    for cut in range(len(data)):
        text = recorded(log, tmp_path / str(cut), data[:cut], data[cut:])
        assert text.replace("\033\\", "") == "last "
        assert text == "last " or data[:cut].endswith(b"\033\\")


def test_marks_are_not_recorded_where_pieces_end_within_them(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_PIECE_BYTES", 100)
    data = b"".join(b"x" * length + JOB for length in range(100)) + END

    assert recorded(log, tmp_path / "x", data) == "x" * sum(range(100))


def test_event_that_does_not_fit_is_not_counted(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MAX_RECORDING_BYTES", 200)

    assert recorded(log, tmp_path / "x", b"x" * 90, b"y" * 90, b"z" * 90) == "x" * 90


def test_sequences_of_programs_are_recorded(log: Log, tmp_path: Path) -> None:
    data = b"\033]7;file:///x\033\\\033]0;t\033\\\033]7777;other\a\033[m\033]8;;\033\\"
    assert recorded(log, tmp_path / "x", data) == data.decode()
    assert recorded(log, tmp_path / "y", data, JOB) == data.decode()
    assert recorded(log, tmp_path / "z", data + JOB) == data.decode()
