"""Logs that outlive their server are read by the next one, with the cursors that they had."""

import os
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from support import wait_until
from wire import SERVER, Server

from tmux_debug_mcp.logs.growth import MAX_LOG_BYTES


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


def test_index_and_logs_are_the_owners_alone(launch: Callable[..., Server], tmp_path: Path) -> None:
    server = launch("--log-dir", str(tmp_path / "a" / "b")).start()
    server.call("create_pane", command="true", name="a name")
    [run] = (tmp_path / "a" / "b").iterdir()
    [entry] = [orjson.loads(line) for line in (run / "index.jsonl").read_bytes().splitlines()]

    assert (entry["id"], entry["name"], entry["command"]) == ("debug-1", "a name", "true")
    assert abs(entry["started_at"] - time.time()) < 60
    assert [
        stat.S_IMODE(path.stat().st_mode)
        for path in (run, run / "index.jsonl", run / "debug-1.log")
    ] == [
        0o700,
        0o600,
        0o600,
    ]


def test_killed_pane_is_read_by_its_own_server_too(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    server = launch("--log-dir", str(tmp_path)).start()
    server.call("create_pane", command="echo hello; exec cat", wait_for="hello")
    server.call("kill_pane", pane_id="debug-1")
    [run] = runs(tmp_path)

    assert read(server, f"{run}/debug-1")[0] == "hello"


def test_what_an_earlier_server_let_go_is_told_in_bytes(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    server = launch("--log-dir", str(tmp_path)).start()
    size = 3 * MAX_LOG_BYTES // 2
    server.call(
        "create_pane",
        command=f"yes 0123456789012345678901234567890 | head -c {size}; echo END; sleep 60",
    )
    server.call("wait", pane_id="debug-1", pattern="END", timeout_s=60)
    [run] = runs(tmp_path)
    log = tmp_path / run / "debug-1.log"
    wait_until(lambda: log.stat().st_blocks * 512 <= MAX_LOG_BYTES + (1 << 16))
    _, here = read(server, "debug-1", since=100)
    server.finish()

    later = launch("--log-dir", str(tmp_path)).start()
    _, there = read(later, f"{run}/debug-1", since=100)
    assert there["start_cursor"] == here["start_cursor"] > MAX_LOG_BYTES // 4
    assert (
        read(later, f"{run}/debug-1", since=here["start_cursor"])[0]
        == read(later, f"{run}/debug-1", since=100)[0]
    )
    assert read(later, f"{run}/debug-1", lines=1)[0] == "END"


@pytest.mark.parametrize(
    "target",
    [
        "RUN/debug-2",
        "RUN",
        "no/debug-1",
        "../RUN/debug-1",
        "RUN/../RUN/debug-1",
        "../debug-1",
        "./debug-1",
        "/debug-1",
    ],
)
def test_what_is_no_pane_of_a_run_is_not_found(
    launch: Callable[..., Server], tmp_path: Path, target: str
) -> None:
    server = launch("--log-dir", str(tmp_path / "logs")).start()
    server.call("create_pane", command="true")
    server.finish()
    [run] = runs(tmp_path / "logs")
    later = launch("--log-dir", str(tmp_path / "logs")).start()

    assert "not found" in later.text("capture_pane", pane_id=target.replace("RUN", run))


def test_directory_that_can_not_be_made_stops_the_start(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*SERVER, "--log-dir", "/proc/no"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("tmux-debug-mcp: The log directory can't be made: ")


def test_full_disk_is_an_error_of_the_call_and_leaves_no_pane(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    server = launch("--log-dir", str(tmp_path)).start()
    server.call("create_pane", command="true")
    [run] = runs(tmp_path)
    os.rename(tmp_path / run, tmp_path / "away")
    (tmp_path / run).write_text("in the way")

    assert "can't write" in server.text("create_pane", command="true")
    assert server.text("list_panes").count('"id"') == 1
