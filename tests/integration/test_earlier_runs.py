"""What a server says of panes and tabs of earlier runs, whose logs are kept."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import orjson
import pytest
from support import Tools, eventually, in_process, run_of
from toolsets import Tabs, open_tabs

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings

NextTools = Callable[[], AbstractAsyncContextManager[Tools]]
NextTabs = Callable[[], AbstractAsyncContextManager[Tabs]]


def next_run(logs: Path) -> Archive:
    """Return the archive of a run that is later than all in this directory."""
    archive = Archive(logs)
    number = len(list(logs.iterdir())) if logs.exists() else 0
    archive.run = f"20990101T{number:06}-1"  # runs of one process in one second have one name
    return archive


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def next_tools(settings: Settings, logs: Path) -> NextTools:
    """Return what serves the toolset `debug` in a run of its own."""
    return lambda: in_process(settings, archive=next_run(logs))


@pytest.fixture
def next_tabs(settings: Settings, logs: Path) -> NextTabs:
    """Return what serves the toolset `tabs` in a run of its own."""
    return lambda: open_tabs(settings, next_run(logs))


async def test_index_and_logs_are_the_owners_alone(settings: Settings, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "a" / "b")
    archive.prepare()
    async with in_process(settings, archive=archive) as tools:
        await tools.create("true", name="a name")
        [run] = (tmp_path / "a" / "b").iterdir()
        [entry] = [orjson.loads(line) for line in (run / "index.jsonl").read_bytes().splitlines()]

        assert (entry["id"], entry["name"], entry["command"]) == ("debug-1", "a name", "true")
        assert abs(entry["started_at"] - time.time()) < 60
        paths = (run, run / "index.jsonl", run / "debug-1.log")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in paths]
        assert modes == [0o700, 0o600, 0o600]


async def test_killed_pane_is_read_by_its_own_server_too(next_tools: NextTools) -> None:
    async with next_tools() as tools:
        pane_id = await tools.create("echo hello; exec cat", wait_for="hello")
        await tools.blocks("kill_pane", pane_id=pane_id)

        assert await tools.capture(f"{run_of(tools)}/{pane_id}") == "hello"


async def test_what_an_earlier_server_let_go_is_told_in_bytes(
    next_tools: NextTools, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 20)
    command = "yes 0123456789012345678901234567890 | head -c 1500000; echo END; sleep 60"
    async with next_tools() as tools:
        pane_id = await tools.create(command, wait_for="END", timeout_s=60)
        target = f"{run_of(tools)}/{pane_id}"
        log = logs / f"{target}.log"
        await eventually(lambda: log.stat().st_blocks * 512 <= (1 << 20) + (1 << 16))
        _, here = await tools.answer("capture_pane", pane_id=pane_id, since=100)

    async with next_tools() as tools:
        [text, *_], there = await tools.answer("capture_pane", pane_id=target, since=100)
        assert there["start_cursor"] == here["start_cursor"] > (1 << 20) // 4
        assert await tools.capture(target, since=here["start_cursor"]) == text
        assert await tools.capture(target, lines=1) == "END"


async def test_what_is_no_pane_of_a_run_is_not_found(next_tools: NextTools) -> None:
    async with next_tools() as tools:
        await tools.create("true")
        run = run_of(tools)
    targets = f"{run}/debug-2 {run} no/debug-1 ../{run}/debug-1 {run}/../{run}/debug-1"

    async with next_tools() as tools:
        for target in [*targets.split(), "../debug-1", "./debug-1", "/debug-1"]:
            assert "not found" in await tools.error("capture_pane", pane_id=target), target


async def test_log_that_can_not_be_made_is_an_error_of_the_call_and_leaves_no_pane(
    next_tools: NextTools, logs: Path
) -> None:
    async with next_tools() as tools:
        await tools.create("true")
        run = logs / run_of(tools)
        os.rename(run, logs / "away")
        run.write_text("in the way")

        assert "can't write" in await tools.error("create_pane", command="true")
        assert (await tools.text("list_panes")).count('"id"') == 1


async def test_offset_that_was_stored_is_for_the_same_log_in_every_later_run(
    next_tabs: NextTabs,
) -> None:
    # Spec 000: next_byte across restarts. Ids go on where those of the last run ended, so that a
    # stored one never means another tab.
    stored: list[tuple[str, int]] = []
    for number in range(3):
        async with next_tabs() as tabs:
            tab = await tabs.new()
            await tabs.execute(tab, f"seq 1 5; echo run {number}")
            chunk = await tabs.json("stream_logs_from_tab", window_id=tab, max_bytes=40)
            stored.append((tab, chunk["next_byte"]))
            for run, (old, at) in enumerate(stored):
                chunk = await tabs.json("stream_logs_from_tab", window_id=old, from_byte=at)
                assert f"\r\nrun {run}\r\n" in chunk["chunk"]

    assert len({tab for tab, _ in stored}) == 3


async def test_tabs_of_the_new_run_and_the_old_one_do_not_meet(next_tabs: NextTabs) -> None:
    async with next_tabs() as tabs:
        old = await tabs.new()
        await tabs.execute(old, "echo old")
        old_run = run_of(tabs)
    async with next_tabs() as tabs:
        new = await tabs.new()
        await tabs.execute(new, "echo new")

        assert "old" not in (await tabs.read(new))["content"]
        assert list(await tabs.rows()) == [new, f"{old_run}/{old}"]
        for target in (old, f"{old_run}/{old}"):
            assert "\nold" in (await tabs.read(target, strip_ansi=True))["content"]
        await tabs.error("execute_command", window_id=old, command="true")


async def test_tab_of_another_server_that_runs_is_not_said_to_have_ended(
    next_tabs: NextTabs,
) -> None:
    async with next_tabs() as other:
        tab = f"{run_of(other)}/{await other.new()}"
        async with next_tabs() as tabs:
            await tabs.new()
            for tool in ("execute_command", "start_process"):
                error = await tabs.error(tool, window_id=tab, command="true")
                assert error == (
                    f"Tab '{tab}' belongs to another server, which still runs; here, it can only "
                    "be read. Use read_logs_from_tab, or create_tab to make another."
                )
            assert tab not in await tabs.rows()
    async with next_tabs() as tabs:
        error = await tabs.error("stop_process", window_id=tab)
        assert error.startswith(f"Tab '{tab}' has ended; only its log is left.")


async def test_only_the_tabs_of_the_last_run_are_listed_and_the_others_counted(
    next_tabs: NextTabs,
) -> None:
    runs = []
    for count in (1, 2):
        async with next_tabs() as tabs:
            runs += [f"{run_of(tabs)}/{await tabs.new()}" for _ in range(count)]
    async with next_tabs() as tabs:
        listed = await tabs.json("list_tabs")

    assert [row["window_id"] for row in listed["tabs"]] == runs[1:]
    assert listed["earlier_tabs_not_shown"] == 1


async def test_id_that_several_runs_have_is_an_error_that_names_them(
    next_tabs: NextTabs, logs: Path
) -> None:
    # Servers that run at the same time may give an id twice: only the run tells which is meant.
    async with next_tabs() as tabs:
        await tabs.new()
        run = run_of(tabs)
    shutil.copytree(logs / run, logs / "20260101T000000-1")
    async with next_tabs() as tabs:
        error = await tabs.error("read_logs_from_tab", window_id="@1")

    assert (
        error == f"Several runs had a tab '@1': {run}/@1, 20260101T000000-1/@1. Give one of these."
    )
