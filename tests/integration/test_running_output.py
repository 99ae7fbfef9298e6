"""The output of a command: exact, cut where it is large, and reported where its log has a gap."""

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from clocks import with_times
from support import (
    PATIENCE_S,
    SHELLS,
    Gate,
    Tools,
    eventually,
    in_process,
    log_writer,
    run,
    texts,
    wait_until,
)

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.panes.shells.jobs import FileJob
from tmux_debug_mcp.settings import Settings


async def writer(tools: Tools) -> int:
    """Return the process that writes the log of the only pane."""
    [pane] = tools.engine.panes

    def writers() -> list[int]:
        children = processes.children(pane.client.server_pid)
        return [child for child in children if processes.program(child) == "cat"]

    await eventually(lambda: bool(writers()))
    return writers()[0]


@pytest.mark.parametrize("shell", SHELLS)
async def test_large_output_is_cut_in_the_middle_and_read_in_full(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, meta, status = await run(tools, "seq 1 30000", pane_id)

    assert 15_000 < len(text) <= 16_000
    lines = text.splitlines()
    [marked] = meta["marked_lines"]
    told = re.fullmatch(
        r"\[([\d,]+) lines left out: tmux_capture_pane since (\d+), lines (\d+)\]",
        lines[marked],
    )
    assert told is not None
    since, left_out = int(told[2]), int(told[3])
    assert (told[1], left_out) == (f"{left_out:,}", 30_000 - len(lines) + 1)
    assert lines[:marked] == [str(number) for number in range(1, marked + 1)]
    assert lines[marked + 1 :] == [str(number) for number in range(marked + left_out + 1, 30_001)]
    assert meta["cut_bytes"] == sum(
        len(f"{number}\r\n") for number in range(marked + 1, marked + left_out + 1)
    )
    assert "left out" not in status
    text = ""
    while "\n30000\n" not in text:
        blocks, facts = await tools.answer("capture_pane", pane_id=pane_id, since=since)
        text, since = text + blocks[0], facts["cursor"]
    assert text.startswith("".join(f"{number}\n" for number in range(marked + 1, 30_001)))


async def test_fifty_megabytes_end_with_the_code_of_their_command(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    line = "x" * 199
    with anyio.fail_after(120):
        arguments = {
            "pane_id": pane_id,
            "command": f"yes {line} | head -n 250000; exit_code=7; (exit 7)",
        }
        result = await tools.client.call_tool("tmux_run", arguments | {"timeout_s": 110})
    assert result.meta is not None

    assert result.meta["exit_code"] == 7
    lines = texts(result)[0].splitlines()
    gone, gap = result.meta["marked_lines"]
    assert "no longer kept" in lines[gone]
    assert "left out" in lines[gap]
    assert {text for number, text in enumerate(lines) if number not in (gone, gap)} == {line}
    assert result.meta["cut_bytes"] == (250_000 - len(lines) + 2) * 201


async def test_output_whose_beginning_is_gone_before_it_was_seen_is_reported(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "true", pane_id)
    [pane] = tools.engine.panes
    before = pane.log.size

    async def stall() -> None:
        """Hold up the server once the typed line is echoed, and trim the log at the end of that."""
        while not re.search(rb"-yes-head.*\n", pane.log.read(before, 1000)):
            await anyio.lowlevel.checkpoint()
        deadline = time.monotonic() + 60
        while pane.log.size < 2_000_000 and time.monotonic() < deadline:
            time.sleep(0.1)  # noqa: ASYNC251  nothing else may run
        assert pane.log.trim(1_000_000)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stall)
        text, meta, _ = await run(tools, "yes | head -n 1000000; (exit 7)", pane_id)

    gone, *lines = text.splitlines()
    told = re.fullmatch(r"\[([\d,]+) bytes before this are no longer kept\]", gone)
    assert meta["exit_code"] == 7
    assert told is not None
    start = pane.log.kept_from - int(told[1].replace(",", ""))
    assert before - 3 <= start < before + 500  # after a prompt and the line that was typed
    assert lines[0] == lines[-1] == "y"


async def test_runs_leave_no_files_and_no_line_in_the_history(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "echo one; HISTCONTROL=", pane_id)
    await run(tools, "echo two", pane_id)
    text, _, _ = await run(tools, "history", pane_id)

    directory = tools.engine.panes[0].client.directory
    assert text == ""
    assert sorted(path.name for path in directory.iterdir()) == ["debug-1.mark", "tmux"]


async def test_screen_shows_a_short_line_and_the_output(tools: Tools) -> None:
    pane_id = await tools.create("PS1='$ ' bash --norc")
    await run(tools, "make --version >/dev/null 2>&1; echo built", pane_id)

    expected = "$ make --version >/dev/null 2>&1; echo built\nbuilt\n$"
    assert await tools.shows(pane_id, "built\n$") == expected


async def test_log_whose_writer_ended_is_written_again(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "echo before", pane_id)
    killed = await writer(tools)
    os.kill(killed, signal.SIGKILL)
    await eventually(lambda: not processes.is_alive(killed))

    text, _, status = await run(tools, "echo after", pane_id)
    assert (text, "some output was lost: there was no room for it" in status) == ("after\n", True)


async def test_writer_that_ends_while_it_has_output_to_write_is_told_in_the_same_result(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("exec cat")
    await tools.send(pane_id, "before Enter")
    [pane] = tools.engine.panes
    await eventually(lambda: pane.log.size > 0)
    writing, is_written = log_writer(pane), pane._is_log_written

    def kill_it() -> bool:
        os.kill(writing, signal.SIGKILL)
        wait_until(lambda: not processes.is_alive(writing))
        monkeypatch.setattr(pane, "_is_log_written", is_written)
        return True

    monkeypatch.setattr(pane, "_is_log_written", kill_it)
    await pane.drain()

    assert "some output was lost" in (await tools.answer("capture_pane", pane_id=pane_id))[0][-1]


@with_times(drain_s=10 * PATIENCE_S)
async def test_run_whose_end_is_late_in_the_log_ends_when_it_comes(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    [pane] = tools.engine.panes
    writing = log_writer(pane)
    is_closed, closed = FileJob.is_closed, anyio.Event()

    def is_closed_now(job: FileJob) -> bool:
        if is_closed(job):
            closed.set()
        return is_closed(job)

    monkeypatch.setattr(FileJob, "is_closed", is_closed_now)

    async def write_late() -> None:
        await eventually(lambda: pane.jobs.last is not None and pane.jobs.last.start is not None)
        os.kill(writing, signal.SIGSTOP)
        await gate.open()
        await closed.wait()
        os.kill(writing, signal.SIGCONT)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write_late)
            text, facts, _ = await run(tools, f"cat {gate}; echo after", pane_id, timeout_s=600)
    assert (text, facts["reason"], facts["exit_code"]) == ("after\n", "done", 0)


async def test_run_whose_end_could_not_be_written_is_not_told_as_not_run(
    tools: Tools, tmp_path: Path
) -> None:
    pane_id = await tools.create("bash --norc", cwd=str(tmp_path))
    error = await tools.error(
        "run", command=f"kill -9 {await writer(tools)}; touch ran", pane_id=pane_id
    )
    [pane] = tools.engine.panes

    assert error.startswith(
        f"Pane '{pane_id}': its output could not be written to {pane.log.path}. Make room"
    )
    assert (tmp_path / "ran").exists()
    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


async def test_log_that_was_removed_is_read_all_the_same(
    settings: Settings, tmp_path: Path
) -> None:
    async with in_process(settings, archive=Archive(tmp_path)) as tools:
        pane_id = await tools.create("bash --norc")
        tools.engine.panes[0].log.path.unlink()
        text, _, status = await run(tools, "echo hello", pane_id)

    assert (text, "lost" in status) == ("hello\n", False)


async def test_writer_that_the_kernel_leaves_out_of_a_list_has_not_ended(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools.create("echo ready; cat", wait_for="ready")
    [pane] = tools.engine.panes
    children = processes.children
    lists = iter([[], [1], children(pane.client.server_pid)])
    pane._log_writer = None
    monkeypatch.setattr(processes, "children", lambda _pid: next(lists))

    assert not await pane.ensure_log_writer()
    assert not pane.has_gaps
    assert pane._log_writer


async def test_writer_that_begins_while_it_is_looked_for_has_not_ended(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools.create("cat")
    [pane] = tools.engine.panes
    assert pane.log.size == 0

    def prints_meanwhile(_pid: int) -> list[int]:
        Path(pane.log.writable).write_bytes(b"ready")
        return []

    pane._log_writer = None
    monkeypatch.setattr(processes, "children", prints_meanwhile)

    assert not await pane.ensure_log_writer()
    assert not pane.has_gaps


async def test_log_that_has_no_room_is_told_until_it_has(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc", cwd=str(tmp_path))
    await run(tools, "true", pane_id)
    [pane] = tools.engine.panes
    into_full = ("pipe-pane", "-t", pane.target, "exec cat >>/dev/full")
    monkeypatch.setattr(pane, "place", replace(pane.place, writes_log=into_full))
    os.kill(await writer(tools), signal.SIGKILL)
    for name in ("first", "second"):
        assert "could not be written" in await tools.error(
            "run", command=f"touch {name}", pane_id=pane_id
        )
        assert (tmp_path / name).exists()
    result = await tools.call("wait", pane_id=pane_id, pattern="never", timeout_s=0)
    assert "some output was lost" in texts(result)[-1]
    monkeypatch.undo()

    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


async def test_command_that_can_not_be_written_is_an_error_and_the_pane_goes_on(
    tools: Tools,
) -> None:
    pane_id = await tools.create("bash --norc")
    await tools.shows_foreground(pane_id, "bash")
    (tools.engine.panes[0].client.directory / "1.1-true.command").mkdir()

    assert "can't write" in await tools.error("run", command="true", pane_id=pane_id)
    assert (await run(tools, "echo on", pane_id))[0] == "on\n"
    (tools.engine.panes[0].client.directory / "1.1-true.command").rmdir()


@pytest.mark.parametrize("shell", SHELLS)
async def test_messages_of_shells_do_not_name_the_file_that_has_the_command(
    tools: Tools, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, _, _ = await run(tools, "echo first\nno-such-command", pane_id)
    assert text.startswith("first\n")
    assert "no-such-command" in text
    assert "/tmux-debug-mcp-" not in text

    found = await tools.capture(pane_id, pattern="no-such-command")
    assert "/tmux-debug-mcp-" not in found


@pytest.mark.parametrize("shell", SHELLS)
async def test_path_of_such_a_file_stays_where_a_program_prints_it(
    tools: Tools, short_path: Path, shell: str
) -> None:
    path = "/run/user/1000/tmux-debug-mcp-4711-0a1b2c3d/12.3-echo-hi"
    printed = f"{path}.command\nopen('{path}.command', 'r')\nit says: {path}:3\n  . {path}.sh\n"
    file = short_path / "printed"
    file.write_text(printed)
    pane_id = await tools.create(SHELLS[shell])

    assert (await run(tools, f"cat {file}", pane_id))[0] == printed
    assert printed.rstrip("\n") in await tools.capture(pane_id)
    assert f"{path}.command" in await tools.capture(pane_id, pattern=r"12\.3-echo-hi.command$")


async def test_command_is_read_from_a_cursor_without_the_prompt_before_it(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "echo first", pane_id)
    await tools.shows(pane_id, "first\nbash-")  # a run may end before the next prompt
    cursor = (await tools.state(pane_id))["cursor"]
    await run(tools, "seq 200", pane_id)
    text = (await tools.blocks("capture_pane", pane_id=pane_id, since=cursor))[0]

    assert text.startswith("seq 200\n1\n2\n")


async def test_error_that_keeps_a_command_from_running_is_shown_whatever_show_says(
    tools: Tools,
) -> None:
    pane_id = await tools.create("bash --norc")
    text, facts, _ = await run(tools, "echo $(", pane_id, show="unexpected")

    assert "matching `)'" in text
    assert facts["exit_code"] == 2
