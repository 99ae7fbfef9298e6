"""Commands of a tab: what execute_command returns (spec 000, phase 3)."""

import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from clocks import with_times
from support import PATIENCE_S, Gate, eventually, own_tmux, run_of
from toolsets import Tabs

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.panes.running.giving import MAX_WAITING
from tmux_debug_mcp.tools.tabs import MAX_OUTPUT_CHARACTERS


async def test_commands_run_whatever_their_line_ends_and_id_of_the_tab(tabs: Tabs) -> None:
    # Lines may end as on other systems, an id may have this run in it, and SHELL is a variable.
    tab = await tabs.new(env={"SHELL": "/bin/dash"})
    assert await tabs.output(tab, "echo 1\r\necho 2") == "1\n2\n"
    assert await tabs.output(f"{run_of(tabs)}/{tab}", "echo $SHELL") == "/bin/dash\n"


async def test_output_is_exactly_what_was_printed(tabs: Tabs, tab: str) -> None:
    # Neither prompt nor echo nor marker, and what goes to standard error is in it.
    result = await tabs.execute(tab, "echo out; echo err >&2; printf 'no line feed'")

    assert result == {"output": "out\nerr\nno line feed", "timed_out": False, "exit_code": 0}
    assert (await tabs.execute(tab, "true"))["output"] == ""


@with_times(answer_elsewhere_s=PATIENCE_S)
async def test_commands_run_in_a_shell_on_another_terminal(tabs: Tabs, tab: str) -> None:
    # A tab that leads elsewhere is used as any other.
    door = "script --quiet --command 'env PS1=there: bash --norc' /dev/null"
    await tabs.json("start_process", window_id=tab, command=door)
    await tabs.shows(tab, "there:")
    assert (await tabs.execute(tab, "cd /dev; false"))["exit_code"] == 1
    assert await tabs.output(tab, "pwd") == "/dev\n"


async def test_timeout_presses_c_c_and_says_so(tabs: Tabs, tab: str) -> None:
    # A command that hangs does not hang the agent, and the tab can be used at once.
    command = "sh -c 'trap \"echo interrupted; exit\" INT; echo begun; sleep 99'"
    result = await tabs.execute(tab, command, timeout_ms=1000, strip_ansi=True)

    assert result["timed_out"]
    assert result["output"].startswith("begun\n")
    assert result["output"].endswith("interrupted\n")
    assert re.fullmatch(r"Timed out after 1 s, .*; interrupted\.", result["note"])
    assert await tabs.output(tab, "echo next") == "next\n"


@with_times(interrupt_s=0.2)
async def test_answer_says_that_a_command_that_ignores_c_c_runs_on(tabs: Tabs, tab: str) -> None:
    # It is the agent's to decide what to do with it; the tab says that it is busy until then.
    result = await tabs.execute(
        tab, "sh -c 'trap \"\" INT; echo up; exec sleep 60'", timeout_ms=1000
    )
    assert result["timed_out"]
    assert "exit_code" not in result
    assert "still runs" in result["note"]

    assert "is busy: sh -c" in await tabs.error("execute_command", window_id=tab, command="true")
    assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
    assert await tabs.output(tab, "echo next") == "next\n"


async def test_commands_for_one_tab_run_one_after_the_other(tabs: Tabs, tab: str) -> None:
    # Nothing of one is in the output of another, and what one leaves behind the next one finds.
    results: dict[int, str] = {}

    async def run(number: int) -> None:
        command = f"for i in 1 2 3; do echo {number}; sleep 0.02; done"
        results[number] = await tabs.output(tab, command)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(run, number)

    assert results == {number: f"{number}\n" * 3 for number in range(8)}


async def test_screen_is_not_cleared(tabs: Tabs, tab: str) -> None:
    # A person who watches keeps what was there.
    await tabs.execute(tab, "echo first")
    await tabs.execute(tab, "echo second")

    assert "first\n" in own_tmux("capture-pane", "-p", "-t", tab)


async def test_only_what_was_printed_is_in_any_output(tabs: Tabs, tab: str) -> None:
    # No line of ours tells where a full-screen program began: a program could print the same.
    draw = r"printf '\033[?1049h\033[2J\033[Hmenu\033[?1049l'; echo '[screen]'; echo after"
    output = (await tabs.execute(tab, draw, strip_ansi=True))["output"]
    assert output == "menu\n[screen]\nafter\n"

    read = await tabs.read(tab, strip_ansi=True)
    assert output in read["content"] + "\n"  # the prompt may be still to come
    assert read["returned_lines"] == len(read["content"].split("\n"))
    streamed, _ = await tabs.stream(tab, strip_ansi=True)
    assert output in streamed
    assert streamed.split("\n").count("[screen]") == 1


async def test_shell_that_is_still_starting_is_waited_for(tabs: Tabs) -> None:
    # nvm, pyenv and the like keep a start-up file quiet for seconds; the command has time for that.
    Path("~/.bashrc").expanduser().write_text("sleep 1.5; export READY=yes\n")
    assert await tabs.output(await tabs.new(), "echo $READY") == "yes\n"


async def test_tabs_do_not_wait_for_each_other(tabs: Tabs, tab: str, gate: Gate) -> None:
    # A test run in one tab must not keep the agent from the others.
    other = await tabs.new()
    done: list[str] = []

    async def run() -> None:
        await tabs.execute(tab, f"cat {gate}")
        done.append(tab)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await tabs.shows_foreground(tab, "cat")
        assert await tabs.output(other, "echo meanwhile") == "meanwhile\n"
        assert done == []
        await gate.open()


async def test_time_of_a_command_counts_from_when_its_turn_comes(
    tabs: Tabs, tab: str, clock: Clock, gate: Gate
) -> None:
    # It would otherwise be refused because of the commands before it, which no caller can foresee.
    refused: list[bool | None] = []
    timeout_s = 1.0
    [pane] = tabs.engine.panes

    async def run() -> None:
        result = await tabs.call(
            "execute_command", window_id=tab, command="true", timeout_ms=timeout_s * 1000
        )
        refused.append(result.is_error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tabs.execute, tab, f"cat {gate}")
        await tabs.shows_foreground(tab, "cat")
        tasks.start_soon(run)
        await eventually(lambda: pane.jobs.lock.statistics().tasks_waiting == 1)
        begin = clock.now()
        await eventually(lambda: clock.now() > begin + timeout_s)
        assert refused == []
        await gate.open()
    assert refused == [False]


async def test_calls_that_wait_for_a_tab_are_limited(tabs: Tabs, tab: str, gate: Gate) -> None:
    # A client that runs wild gets an error, not a queue without end.
    errors: list[str] = []

    async def run() -> None:
        result = await tabs.call("execute_command", window_id=tab, command="true")
        if result.is_error:
            assert result.content[0].type == "text"
            errors.append(result.content[0].text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tabs.execute, tab, f"cat {gate}")
        await tabs.shows_foreground(tab, "cat")
        for _ in range(MAX_WAITING + 2):
            tasks.start_soon(run)
        await eventually(lambda: len(errors) == 2)
        await gate.open()

    sentence = (
        f"{MAX_WAITING} calls are already waiting for this terminal. Wait for their answers first."
    )
    assert errors == [sentence] * 2


async def test_output_that_is_too_much_keeps_its_end_and_says_where_the_rest_is(
    tabs: Tabs, tab: str
) -> None:
    # What fails is at the end; the beginning costs a call, not the context of every call.
    result = await tabs.execute(tab, "seq 1 30000", timeout_ms=20_000)
    assert result["truncated"]
    assert len(result["output"]) <= MAX_OUTPUT_CHARACTERS
    assert result["output"].endswith("\n29999\n30000\n")
    assert result["output"].partition("\n")[0].isdigit()

    chunk = await tabs.json(
        "stream_logs_from_tab",
        window_id=tab,
        from_byte=result["from_byte"],
        max_bytes=20,
        strip_ansi=True,
    )
    assert chunk["chunk"].startswith("1\n2\n3\n")


async def test_output_that_is_no_longer_kept_is_told(
    tabs: Tabs, tab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 20)
    [pane] = tabs.engine.panes
    trimmed = tmp_path / "trimmed"
    result: dict[str, Any] = {}

    async def run() -> None:
        command = f"seq 1 400000; until [ -e {trimmed} ]; do sleep 0.01; done; seq 1 9000"
        result.update(await tabs.execute(tab, command, timeout_ms=20_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await tabs.shows(tab, "\n400000")
        await eventually(lambda: pane.log.kept_from > 1 << 20)
        monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 30)
        trimmed.touch()

    skipped = result["skipped_bytes"]
    assert result["from_byte"] == pane.log.kept_from
    assert 0 < skipped <= result["from_byte"]
    assert result["note"] == (
        f"The beginning is cut: use stream_logs_from_tab with from_byte {result['from_byte']}. The "
        f"first {skipped} bytes are no longer kept."
    )


@pytest.mark.parametrize(
    "command", ["read -rsp 'Password: ' x", "stty -echo; read x; stty echo"], ids=["shell", "stty"]
)
async def test_password_is_for_a_person_to_type(tabs: Tabs, tab: str, command: str) -> None:
    # What start_process types is in the audit.
    result = await tabs.execute(tab, command)

    assert result["awaits"] == "hidden input"
    line = f"a person can type it: {own_command()} --server {os.getpid()} secret debug-1"
    assert result["note"] == f"The command keeps running and awaits hidden input; {line}."
    row = (await tabs.rows())[tab]
    assert row["note"] == line


async def test_command_that_ends_the_shell_is_an_answer(tabs: Tabs, tab: str) -> None:
    # The tab stays, with its log and how it ended.
    result = await tabs.execute(tab, "echo bye; exit 4")
    assert (result["output"], result["exit_code"]) == ("bye\n", 4)
    assert result["note"].startswith("The tab has ended: exited with code 4")

    assert (await tabs.rows())[tab]["exit_code"] == 4
    assert "exited with code 4" in await tabs.error(
        "execute_command", window_id=tab, command="true"
    )


async def test_output_of_a_command_whose_tab_is_closed_is_not_lost(tabs: Tabs, tab: str) -> None:
    # What was printed until then is the answer, with and without escape sequences.
    for number, strip in enumerate((False, True)):
        where = tab if number == 0 else await tabs.new()
        result: dict[str, Any] = {}

        async def run(
            where: str = where, strip: object = strip, result: dict[str, Any] = result
        ) -> None:
            result |= await tabs.execute(where, "echo so far; sleep 99", strip_ansi=strip)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await tabs.shows(where, "\nso far")
            await tabs.json("close_tab", window_id=where)
        assert result["output"].startswith("so far\n")
        assert "The tab has ended: " in result["note"]


async def test_program_in_the_foreground_is_not_typed_into(tabs: Tabs, tab: str) -> None:
    # A command is for a shell; what has the terminal is named, with the call that helps.
    await tabs.json("start_process", window_id=tab, command="cat")
    await tabs.shows_foreground(tab, "cat")

    error = await tabs.error("execute_command", window_id=tab, command="echo no")
    assert error.startswith(
        f"Tab '{tab}' is running cat, not a shell at its prompt. If it awaits input, answer with "
        "start_process. Or stop it with stop_process, or use another tab."
    )


async def test_state_of_the_shell_stays_between_commands(tabs: Tabs, tab: str) -> None:
    # A tab is a place to work in.
    await tabs.execute(tab, "cd /; export KEPT=1; greet() { echo hi $1; }")
    assert await tabs.output(tab, "pwd; echo $KEPT; greet you") == "/\n1\nhi you\n"
