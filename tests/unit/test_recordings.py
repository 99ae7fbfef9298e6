"""Recordings of panes, one at a time for each, over an engine and panes without tmux."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import LimitReachedError, StorageError
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes import recording
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.tools.sessions import Recordings


class RunningPane:
    """A pane whose program runs."""

    id = "debug-1"
    name = "web"
    clock = Clock()

    def __init__(self, log: Log) -> None:
        self.log = log

    async def check_running(self) -> None:
        await anyio.lowlevel.checkpoint()


@pytest.fixture
def pane(tmp_path: Path) -> Pane:
    return cast("Pane", RunningPane(Log.create(tmp_path / "log", "0123456789abcdef")))


@pytest.fixture
def recordings() -> Recordings:
    engine: Any = SimpleNamespace(
        tasks=SimpleNamespace(start_soon=lambda _serve: None), at_end=lambda _finish: None
    )
    return Recordings(engine)


@pytest.fixture
def is_captured(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Return what has to be set for screens to be captured."""
    event = anyio.Event()

    async def capture(_pane: object) -> str:
        await event.wait()
        return ""

    monkeypatch.setattr(recording, "capture_screen_as_text", capture)
    return event


async def test_of_two_recordings_begun_at_once_one_is_refused(
    recordings: Recordings,
    pane: Pane,
    is_captured: anyio.Event,
    tmp_path: Path,
) -> None:
    begun = []
    errors = []

    async def start(name: str) -> None:
        try:
            begun.append(await recordings.start(pane, tmp_path / name))
        except LimitReachedError as error:
            errors.append(str(error))

    is_captured.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start, "one")
        tasks.start_soon(start, "two")

    [recorded] = begun
    assert errors == [
        f"'web' is already being recorded, to {recorded.path}. Use stopRecording first."
    ]
    assert [path.name for path in tmp_path.iterdir() if path.name != "log"] == [recorded.path.name]
    assert recordings.stop("web") is recorded
    assert recordings.stop("web") is None


async def test_cancelled_start_leaves_nothing_and_can_be_made_again(
    recordings: Recordings,
    pane: Pane,
    is_captured: anyio.Event,
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.cast"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(recordings.start, pane, path)
        await anyio.wait_all_tasks_blocked()
        assert recordings.of(pane)
        tasks.cancel_scope.cancel()

    assert recordings.of(pane) is None
    assert recordings.stop("web") is None
    assert not path.exists()
    is_captured.set()
    again = await recordings.start(pane, path)
    assert recordings.stop("web") is again
    assert path.exists()


async def test_recording_that_finds_no_room_leaves_nothing(
    recordings: Recordings,
    pane: Pane,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("os.write", lambda _fd, _data: 0)
    with pytest.raises(StorageError):
        await recordings.start(pane, tmp_path / "x.cast")

    assert recordings.stop("web") is None
    assert not (tmp_path / "x.cast").exists()


@pytest.mark.usefixtures("is_captured")
async def test_recording_that_was_stopped_while_it_began_is_kept(
    recordings: Recordings,
    pane: Pane,
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.cast"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(recordings.start, pane, path)
        await anyio.wait_all_tasks_blocked()
        assert recordings.stop("web")
        tasks.cancel_scope.cancel()

    assert path.exists()
