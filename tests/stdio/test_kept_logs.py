"""Logs that outlive their server are read by the next one, with the cursors that they had."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wire import Server


def runs(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def read(server: Server, pane_id: str, **arguments: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    result = server.call("capture_pane", pane_id=pane_id, **arguments)
    assert not result.get("isError"), result
    return result["content"][0]["text"], result["_meta"]


@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "SIGKILL"])
def test_next_server_reads_what_panes_printed_and_how_they_ended(
    launch: Callable[..., Server], tmp_path: Path, end: str
) -> None:
    logs = tmp_path / "it's 100% #{mine}"
    server = launch("--log-dir", str(logs)).start()
    server.call("create_pane", command="echo one; echo two; exit 3", name="first")
    server.call("create_pane", command="echo killed; exec cat", wait_for="killed")
    server.call("send_keys", pane_id="debug-2", keys="SIGKILL")
    server.call("kill_pane", pane_id="debug-2")
    result = server.call("create_pane", command="printf 'still é'; exec cat", wait_for="é")
    cursor = result["_meta"]["cursor"]
    server.call("wait", pane_id="first")
    if end == "end of input":
        server.finish()
    else:
        server.process.send_signal(15 if end == "SIGTERM" else 9)
        server.process.wait()
        server.finish()
    [run] = runs(logs)

    later = launch(TMUX_DEBUG_LOG_DIR=str(logs)).start()
    text, meta = read(later, f"{run}/debug-1")
    assert (text, meta["exit_code"], meta["status"], meta["cursor"]) == (
        "one\ntwo",
        3,
        "exited",
        10,
    )
    assert read(later, f"{run}/debug-1", lines=1)[0] == "two"
    assert read(later, f"{run}/debug-1", since=5)[0] == "two\n"
    text, meta = read(later, f"{run}/debug-2")
    assert (text, meta["signal"]) == ("killed", "SIGKILL")
    text, meta = read(later, f"{run}/debug-3")
    assert text == "still é"
    assert read(later, f"{run}/debug-3", since=cursor - 2)[0] == "é"
    assert "not found" in later.text("send_keys", pane_id=f"{run}/debug-3", keys="x")
    assert runs(logs) == [run]
    later.finish()
