"""The toolset `tabs`: the checklists of spec 000 §7 and §8, in their order, and what they leave open."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import PATIENCE_S, Tools, eventually, in_process, python, run_of, socket_of

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.panes import stopping
from tmux_debug_mcp.panes.running import MAX_OUTPUT_CHARACTERS
from tmux_debug_mcp.panes.shell import MAX_WAITING
from tmux_debug_mcp.settings import Settings

# A line every millisecond, numbered, in colour.
NOISE = python("import time\nfor i in range(100000): print(f'\\33[32mline {i}\\33[0m', flush=True); time.sleep(0.001)")


@pytest.fixture
async def tabs(settings: Settings, tmp_path: Path) -> AsyncIterator[Tools]:
    async with in_process(settings, toolsets="tabs", archive=Archive(tmp_path / "logs")) as tools:
        yield tools


@pytest.fixture
async def tab(tabs: Tools) -> str:
    return await new_tab(tabs)


async def new_tab(tabs: Tools, **arguments: Any) -> str:  # noqa: ANN401
    """Return the id of a new tab."""
    return str((await tabs.json("create_tab", **arguments))["window_id"])


async def execute(tabs: Tools, tab: str, command: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """Run a command and return the whole result."""
    result: dict[str, Any] = await tabs.json("execute_command", window_id=tab, command=command, **arguments)
    return result


async def output(tabs: Tools, tab: str, command: str) -> str:
    """Return what a command prints."""
    return str((await execute(tabs, tab, command))["output"])


async def read(tabs: Tools, tab: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """Read a tab's last lines."""
    result: dict[str, Any] = await tabs.json("read_logs_from_tab", window_id=tab, **arguments)
    return result


async def shows(tabs: Tools, tab: str, text: str) -> str:
    """Wait until the log has the text, and return its last lines."""
    content = ""
    with anyio.fail_after(PATIENCE_S):
        while text not in content:
            content = (await read(tabs, tab, strip_ansi=True))["content"]
    return content


async def ends_with(tabs: Tools, tab: str, command: str) -> None:
    """Have a command's output as the last thing in the log: no prompt comes after it."""
    await tabs.json("start_process", window_id=tab, command=f"{command}; echo the-$((1))-end; exec sleep 99")
    await shows(tabs, tab, "\nthe-1-end")


async def rows(tabs: Tools) -> dict[str, dict[str, Any]]:
    """Return what list_tabs has of each tab."""
    return {row["window_id"]: row for row in (await tabs.json("list_tabs"))["tabs"]}


def of_tmux(*words: str) -> str:
    """Ask the tmux server of this process, as a person would."""
    command = ["tmux", "-S", socket_of(os.getpid()), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def test_closing_a_tab_that_was_split_closes_all_of_it(settings: Settings) -> None:
    # A tab is a window, and what toolset tmux put beside its first pane is in it.
    async with in_process(settings, toolsets="tabs,tmux") as tools:
        await tools.json("create_tab")
        await tools.blocks("tmux_split_window", target="@1", command="exec sleep 4711")
        await tools.json("create_tab", name="other")
        await tools.json("close_tab", window_id="@1")

        assert [row["name"] for row in (await tools.json("list_tabs"))["tabs"]] == ["other"]
        assert len((await tools.blocks("tmux_list_panes"))[0].splitlines()) == 1


async def test_commands_are_as_they_were_meant(tabs: Tools) -> None:
    # Lines may end as on other systems; a tab of this run may be meant with it; SHELL is a variable like others.
    tab = await new_tab(tabs, env={"SHELL": "/bin/dash"})
    assert await output(tabs, tab, "echo 1\r\necho 2") == "1\n2\n"
    assert await output(tabs, f"{run_of(tabs)}/{tab}", "echo $SHELL") == "/bin/dash\n"


class TestPhase1:
    """tmux correctness and infrastructure."""

    async def test_create_tab_returns_a_window_id_and_a_name_may_have_spaces(self, tabs: Tools) -> None:
        # Ids are tmux's own, so that a person who is attached means the same tab by the same id.
        created = await tabs.json("create_tab", name="my web server")

        assert created == {"window_id": "@1", "name": "my web server"}
        assert "@1" in of_tmux("list-windows", "-a", "-F", "#{window_id}").splitlines()

    async def test_list_tabs_tells_names_with_spaces_and_which_one_is_active(self, tabs: Tools) -> None:
        # The flag is tmux's: what a person who attaches sees first, which is the tab made last.
        await new_tab(tabs, name="a b  c")
        await new_tab(tabs, name="tab\u00e9 'quoted' #{x}")
        listed = await rows(tabs)
        assert [(row["name"], row["active"]) for row in listed.values()] == [
            ("a b  c", False),
            ("tab\u00e9 'quoted' #{x}", True),
        ]

        of_tmux("select-window", "-t", "@1")
        assert [row["active"] for row in (await rows(tabs)).values()] == [True, False]

    async def test_tabs_created_at_once_have_ids_of_their_own(self, tabs: Tools) -> None:
        # Creation is one command to tmux that answers with the id, so calls can't take each other's.
        made: list[str] = []

        async def create(number: int) -> None:
            tab = await new_tab(tabs, env={"NUMBER": str(number)})
            assert await output(tabs, tab, "echo $NUMBER") == f"{number}\n"
            made.append(tab)

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(create, number)

        assert len(set(made)) == 12
        assert set(made) == set(await rows(tabs))

    @pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
    async def test_shell_of_a_tab_is_the_users(self, settings: Settings, shell: str) -> None:
        # A tab is the terminal that the user knows: $SHELL itself, interactive, also where it is not POSIX.
        path = shutil.which(shell) or "it is missing"
        shell_settings = replace(settings, env={**settings.env, "SHELL": path})
        async with in_process(shell_settings, toolsets="tabs") as tabs:
            tab = await new_tab(tabs)
            assert (await rows(tabs))[tab]["foreground"] == shell
            assert (await rows(tabs))[tab]["name"] == shell
            assert (await execute(tabs, tab, "echo $SHELL"))["output"] == f"{path}\n"

    @pytest.mark.usefixtures("tab")
    async def test_history_limit_is_high_and_bounded(self) -> None:
        # A person can scroll back far, and a flood can't fill the memory.
        assert of_tmux("show-options", "-gv", "history-limit") == "50000\n"

    async def test_id_means_one_tab_exactly(self, tabs: Tools) -> None:
        # tmux itself takes a prefix for the whole; @1 must never reach @10 when it is gone.
        for _ in range(10):
            await new_tab(tabs)
        await tabs.json("close_tab", window_id="@1")

        assert "Tab '@1' not found" in await tabs.error("execute_command", window_id="@1", command="true")
        assert "Tab '@' not found" in await tabs.error("close_tab", window_id="@")
        assert "@10" in await rows(tabs)

    async def test_ids_are_not_used_twice_when_tmux_had_to_start_anew(self, tabs: Tools, tab: str) -> None:
        # Else a call for a tab that was lost would go to another.
        of_tmux("kill-server")
        await eventually(lambda: tabs.engine.host.client is None)
        later = await new_tab(tabs)

        assert later not in (tab, "@0")
        assert (await rows(tabs))[tab]["status"] == "exited"
        assert await output(tabs, later, "echo here") == "here\n"
        assert "was lost" in await tabs.error("execute_command", window_id=tab, command="true")


class TestPhase2:
    """Logs by pipe-pane, and read_logs_from_tab."""

    async def test_last_lines_of_a_noisy_process_are_exact(self, tabs: Tools, tab: str) -> None:
        # Whole lines in a row, while more of them come: a log is read without stopping what writes it.
        await tabs.json("start_process", window_id=tab, command=NOISE)
        await shows(tabs, tab, "line 5100")
        for lines in (200, 1000, 5000):
            result = await read(tabs, tab, lines=lines, strip_ansi=True)
            numbers = [int(line.removeprefix("line ")) for line in result["content"].split("\n") if line[5:]]
            first = numbers[0]
            assert numbers == list(range(first, first + len(numbers)))
            assert result["returned_lines"] == lines
            assert len(numbers) >= lines - 1  # the last one may just be coming
            assert result["truncated"]

    async def test_strip_ansi_removes_escape_sequences_and_else_they_stay(self, tabs: Tools, tab: str) -> None:
        # Agents want text, people who replay a log want its colours; the default is the specification's.
        await execute(tabs, tab, r"echo; printf '\033[1;31mred\033[0m \033]0;title\007plain\n'")
        for arguments in ({}, {"strip_ansi": False}, {"strip_ansi": True}):
            lines = (await read(tabs, tab, **arguments))["content"].split("\n")
            is_stripped = arguments == {"strip_ansi": True}
            assert ("red plain" in lines) == is_stripped
            assert ("\033[1;31mred\033[0m \033]0;title\007plain" in lines) != is_stripped

    async def test_truncated_tells_whether_there_were_more_lines(self, tabs: Tools, tab: str) -> None:
        # So that an agent knows whether it has seen the beginning.
        await ends_with(tabs, tab, "seq 1 20")
        everything = await read(tabs, tab)
        assert not everything["truncated"]
        total = everything["returned_lines"]

        assert not (await read(tabs, tab, lines=total))["truncated"]
        assert (await read(tabs, tab, lines=total - 1))["truncated"]
        assert (await read(tabs, tab, lines=total - 1, strip_ansi=True))["truncated"]
        assert not (await read(tabs, tab, lines=total, strip_ansi=True))["truncated"]

    async def test_default_is_500_lines(self, tabs: Tools, tab: str) -> None:
        # The specification's default.
        await execute(tabs, tab, "seq 1 600")
        assert (await read(tabs, tab))["returned_lines"] == 500

    async def test_large_log_is_read_from_its_end_and_bounded(self, tabs: Tools, tab: str) -> None:
        # A line of megabytes or a log of many is neither read whole nor returned whole, and the result says so.
        await execute(tabs, tab, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo END", timeout_ms=20_000)
        for strip in (False, True):
            result = await read(tabs, tab, lines=3, strip_ansi=strip)
            assert "END" in result["content"]
            assert len(result["content"]) <= 400_000
            assert result["truncated"]

    @pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
    async def test_log_shows_the_command_where_a_line_that_reads_it_was_typed(
        self, settings: Settings, shell: str
    ) -> None:
        # What a person who reads the log wants to know is what was run.
        env = {**settings.env, "SHELL": shutil.which(shell) or "it is missing"}
        async with in_process(replace(settings, env=env), toolsets="tabs") as tabs:
            tab = await new_tab(tabs)
            await output(tabs, tab, "echo one\necho é")
            content = (await read(tabs, tab, strip_ansi=True))["content"]
            chunk = await tabs.json("stream_logs_from_tab", window_id=tab, strip_ansi=True)
            raw = (await read(tabs, tab))["content"]

        shown = [line.rstrip() for line in content.split("\n")]
        at = next(number for number, line in enumerate(shown) if line.endswith("echo one ⏎ echo é"))
        assert shown[at + 1 : at + 3] == ["one", "é"]
        assert "tmux-debug-mcp-" not in chunk["chunk"] + content
        assert "7777" not in raw

    @pytest.mark.parametrize("size", [10, 33, 100, 4096, 65_536])
    async def test_clean_streams_have_each_line_once_also_around_full_screen_programs(
        self, tabs: Tools, tab: str, size: int
    ) -> None:
        # Polled while the program is on the screen, and after it; whatever chunks end with, they come to an end.
        gate = "until [ -e go ]; do sleep 0.05; done"
        command = (
            f"seq 1001 1030; printf '\\033[?1049h\\033[2J\\033[Hmenu'; {gate}; printf '\\033[?1049l'; seq 2001 2009"
        )
        await tabs.json("execute_command", window_id=tab, command="cd $(mktemp -d) && pwd")
        await tabs.json("start_process", window_id=tab, command=command)
        await shows(tabs, tab, "menu")
        text, at = await self._stream(tabs, tab, 0, size)
        directory = next(line for line in text.split("\n") if line.startswith("/"))
        Path(directory, "go").touch()
        await shows(tabs, tab, "\n2009\n")
        more, _ = await self._stream(tabs, tab, at, size)

        lines = (text + more).split("\n")
        assert [line for line in lines if line.isdigit()] == [
            *map(str, range(1001, 1031)),
            *map(str, range(2001, 2010)),
        ]

    async def _stream(self, tabs: Tools, tab: str, at: int, size: int) -> tuple[str, int]:
        """Return the clean text from an offset to the end, and the next offset."""
        text, is_end = "", False
        with anyio.fail_after(PATIENCE_S):
            while not is_end:
                chunk = await tabs.json(
                    "stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=size, strip_ansi=True
                )
                text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
        return text, at

    async def test_streams_have_no_marks_of_ours_wherever_chunks_end(self, tabs: Tools, tab: str) -> None:
        # Chunks of all sizes add up to the same, which is what the terminal got but for the marks.
        for number in range(3):
            await output(tabs, tab, f"echo {number} é")
        await tabs.json("execute_command", window_id=tab, command="exit")
        wholes = set()
        for size in (1, 2, 7, 30, 50, 100, 65_536):
            text, at, is_end = "", 0, False
            while not is_end:
                chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=size)
                assert chunk["next_byte"] > at or chunk["eof"]
                text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
            wholes.add(text)
        [whole] = wholes
        assert "7777" not in whole
        for start in range(0, at, 3):
            chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=start)
            assert "777" not in chunk["chunk"]

    async def test_markers_of_ours_are_in_no_line(self, tabs: Tools, tab: str) -> None:
        # What tells us where a command's output begins and ends is not the program's text.
        await execute(tabs, tab, "echo one")
        await execute(tabs, tab, "exit 3")
        for strip in (False, True):
            assert "7777" not in (await read(tabs, tab, strip_ansi=strip))["content"]


class TestPhase3:
    """execute_command."""

    async def test_output_is_exactly_what_was_printed(self, tabs: Tools, tab: str) -> None:
        # Neither prompt nor echo nor marker, and what goes to standard error is in it.
        result = await execute(tabs, tab, "echo out; echo err >&2; printf 'no line feed'")

        assert result == {"output": "out\nerr\nno line feed", "timed_out": False, "exit_code": 0}
        assert (await execute(tabs, tab, "true"))["output"] == ""

    @pytest.mark.parametrize("code", [1, 2, 127, 255])
    async def test_exit_codes_are_told(self, tabs: Tools, tab: str, code: int) -> None:
        # The agent's next step depends on it.
        assert (await execute(tabs, tab, f"(exit {code})"))["exit_code"] == code

    async def test_timeout_presses_c_c_and_says_so(self, tabs: Tools, tab: str) -> None:
        # A command that hangs does not hang the agent, and the tab can be used at once.
        result = await execute(
            tabs, tab, python("import time\nprint(1, flush=True)\ntime.sleep(99)"), timeout_ms=500, strip_ansi=True
        )

        assert result["timed_out"]
        assert result["output"].startswith("1\n")
        assert "KeyboardInterrupt" in result["output"]
        assert result["note"] == "Timed out after 0.5 s and interrupted."
        assert await output(tabs, tab, "echo next") == "next\n"

    async def test_command_that_ignores_c_c_is_told_to_run_on(self, tabs: Tools, tab: str) -> None:
        # It is the agent's to decide what to do with it; the tab says that it is busy until then.
        result = await execute(tabs, tab, "sh -c 'trap \"\" INT; echo up; exec sleep 60'", timeout_ms=300)
        assert result["timed_out"]
        assert "exit_code" not in result
        assert "still runs" in result["note"]

        assert "is busy: sh -c" in await tabs.error("execute_command", window_id=tab, command="true")
        assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
        assert await output(tabs, tab, "echo next") == "next\n"

    async def test_commands_for_one_tab_run_one_after_the_other(self, tabs: Tools, tab: str) -> None:
        # Nothing of one is in the output of another, and what one leaves behind the next one finds.
        results: dict[int, str] = {}

        async def run(number: int) -> None:
            command = f"for i in 1 2 3; do echo {number}; sleep 0.02; done"
            results[number] = await output(tabs, tab, command)

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(run, number)

        assert results == {number: f"{number}\n" * 3 for number in range(8)}

    async def test_screen_is_not_cleared(self, tabs: Tools, tab: str) -> None:
        # A person who watches keeps what was there.
        await execute(tabs, tab, "echo first")
        await execute(tabs, tab, "echo second")

        assert "first\n" in of_tmux("capture-pane", "-p", "-t", tab)

    async def test_shell_that_is_still_starting_is_waited_for(self, tabs: Tools) -> None:
        # nvm, pyenv and the like keep a start-up file quiet for seconds; the command has time for that.
        Path("~/.bashrc").expanduser().write_text("sleep 1.5; export READY=yes\n")
        assert await output(tabs, await new_tab(tabs), "echo $READY") == "yes\n"

    async def test_tabs_do_not_wait_for_each_other(self, tabs: Tools, tab: str, tmp_path: Path) -> None:
        # A test run in one tab must not keep the agent from the others.
        other = await new_tab(tabs)
        done: list[str] = []

        async def run() -> None:
            await execute(tabs, tab, "until [ -e go ]; do sleep 0.01; done")
            done.append(tab)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await eventually_foreground(tabs, tab, "sleep")
            assert await output(tabs, other, "echo meanwhile") == "meanwhile\n"
            assert done == []
            (tmp_path / "go").touch()

    async def test_command_that_does_not_get_its_turn_in_time_is_not_run(
        self, tabs: Tools, tab: str, tmp_path: Path
    ) -> None:
        # The timeout is the time that the agent is ready to wait, so it is over while another command runs, too.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(execute, tabs, tab, "until [ -e go ]; do sleep 0.01; done"))
            await eventually_foreground(tabs, tab, "sleep")
            error = await tabs.error("execute_command", window_id=tab, command="touch other", timeout_ms=200)
            assert error.startswith(f"Tab '{tab}' is busy: until [ -e go ]; do sleep 0.01; done, ")
            await execute(tabs, await new_tab(tabs), "touch go")
        assert not (tmp_path / "other").exists()

    async def test_calls_that_wait_for_a_tab_are_limited(self, tabs: Tools, tab: str) -> None:
        # A client that runs wild gets an error, not a queue without end.
        errors: list[str] = []

        async def run() -> None:
            result = await tabs.call("execute_command", window_id=tab, command="sleep 0.05")
            if result.is_error:
                assert result.content[0].type == "text"
                errors.append(result.content[0].text)

        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_WAITING + 3):
                tasks.start_soon(run)

        assert errors == [f"{MAX_WAITING} calls wait for this terminal already. Wait for their answers first."] * 2

    async def test_output_that_is_too_much_keeps_its_end_and_says_where_the_rest_is(
        self, tabs: Tools, tab: str
    ) -> None:
        # What fails is at the end; the beginning costs a call, not the context of every call.
        result = await execute(tabs, tab, "seq 1 30000", timeout_ms=20_000)
        assert result["truncated"]
        assert len(result["output"]) <= MAX_OUTPUT_CHARACTERS
        assert result["output"].endswith("\n29999\n30000\n")
        assert result["output"].partition("\n")[0].isdigit()

        chunk = await tabs.json(
            "stream_logs_from_tab", window_id=tab, from_byte=result["from_byte"], max_bytes=20, strip_ansi=True
        )
        assert chunk["chunk"].startswith("1\n2\n3\n")

    async def test_command_that_ends_the_shell_is_an_answer(self, tabs: Tools, tab: str) -> None:
        # The tab stays, with its log and how it ended.
        result = await execute(tabs, tab, "echo bye; exit 4")
        assert (result["output"], result["exit_code"]) == ("bye\n", 4)
        assert result["note"].startswith("The tab has ended: exited with code 4")

        assert (await rows(tabs))[tab]["exit_code"] == 4
        assert "exited with code 4" in await tabs.error("execute_command", window_id=tab, command="true")

    async def test_output_of_a_command_whose_tab_is_closed_is_not_lost(self, tabs: Tools, tab: str) -> None:
        # What was printed until then is the answer, with and without escape sequences.
        for number, strip in enumerate((False, True)):
            where = tab if number == 0 else await new_tab(tabs)
            result: dict[str, Any] = {}

            async def run(where: str = where, strip: object = strip, result: dict[str, Any] = result) -> None:
                result |= await execute(tabs, where, "echo so far; sleep 99", strip_ansi=strip)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await shows(tabs, where, "\nso far")
                await tabs.json("close_tab", window_id=where)
            assert result["output"].startswith("so far\n")
            assert "The tab has ended: " in result["note"]

    async def test_program_in_the_foreground_is_not_typed_into(self, tabs: Tools, tab: str) -> None:
        # A command is for a shell; what has the terminal is named, with the call that helps.
        await tabs.json("start_process", window_id=tab, command="cat")
        await eventually_foreground(tabs, tab, "cat")

        error = await tabs.error("execute_command", window_id=tab, command="echo no")
        assert error.startswith(f"Tab '{tab}' runs cat, not a shell at its prompt. Use stop_process")


class TestPhase4:
    """start_process and stop_process."""

    async def test_process_logs_and_new_lines_are_seen(self, tabs: Tools, tab: str) -> None:
        # The main job: a server runs while the agent reads on.
        assert await tabs.json("start_process", window_id=tab, command=NOISE) == {"started": True}
        before = await shows(tabs, tab, "line 3\n")
        after = await shows(tabs, tab, f"line {before.count(chr(10)) + 50}\n")

        assert after.startswith(before)

    async def test_process_is_stopped_and_another_one_started(self, tabs: Tools, tab: str) -> None:
        # C-c by default; the log has how it ended, and the tab goes on with the same log.
        program = "import time\ntry:\n  print('up-%d' % NUMBER); time.sleep(99)\nexcept KeyboardInterrupt: print('bye')"
        for number in range(1, 4):
            await tabs.json("start_process", window_id=tab, command=python(program.replace("NUMBER", str(number))))
            await shows(tabs, tab, f"up-{number}")
            assert await tabs.json("stop_process", window_id=tab) == {"success": True}
            with anyio.fail_after(PATIENCE_S):
                while (await read(tabs, tab, strip_ansi=True))["content"].count("\n^Cbye\n") < number:
                    await anyio.sleep(0.005)

    async def test_rapid_starts_and_stops_leave_the_log_whole(self, tabs: Tools, tab: str) -> None:
        # Nothing is typed into what is just ending, and every line of every process is there once.
        for number in range(12):
            await tabs.json("start_process", window_id=tab, command=f"echo begin-$(({number}))-; exec_; sleep 50")
            await tabs.json("stop_process", window_id=tab)
        assert await output(tabs, tab, "echo done") == "done\n"

        content = (await read(tabs, tab, strip_ansi=True, lines=5000))["content"].split("\n")
        begun = [line for line in content if line.startswith("begin-")]
        assert begun == sorted(set(begun), key=lambda line: int(line.split("-")[1]))

    async def test_start_returns_while_the_process_runs(self, tabs: Tools, tab: str) -> None:
        # The agent does not wait for what does not end.
        await tabs.json("start_process", window_id=tab, command="sleep 1000")
        await eventually_foreground(tabs, tab, "sleep")

    async def test_append_newline_decides_whether_enter_is_pressed(self, tabs: Tools, tab: str) -> None:
        # Without it, a line can be prepared; the answer says so, because a forgotten Enter is a common mistake.
        answer = await tabs.json("start_process", window_id=tab, command="echo typed-$((1+1))", append_newline=False)
        assert answer == {"started": True, "note": "Enter was not pressed."}
        assert "typed-2" not in await shows(tabs, tab, "typed-$((1+1))")

        await tabs.json("start_process", window_id=tab, command=" && echo more", append_newline=True)
        assert "typed-2\nmore" in await shows(tabs, tab, "typed-2\nmore")

    async def test_text_for_a_running_program_is_typed_into_it_and_the_answer_says_so(
        self, tabs: Tools, tab: str
    ) -> None:
        # There is no other tool to answer a question with.
        await tabs.json("start_process", window_id=tab, command="cat")
        await eventually_foreground(tabs, tab, "cat")
        answer = await tabs.json("start_process", window_id=tab, command="hello; -x")

        assert answer == {"started": True, "note": "It was typed into cat, which is in the foreground."}
        assert "hello; -x\nhello; -x" in await shows(tabs, tab, "hello; -x\nhello; -x")

    async def test_several_lines_are_one_command(self, tabs: Tools, tab: str) -> None:
        # A paste, as a person would do it.
        await tabs.json("start_process", window_id=tab, command="for i in 1 2; do\necho loop-$i\ndone\n")
        assert "loop-1\nloop-2" in await shows(tabs, tab, "loop-1\nloop-2")

    async def test_tabs_in_a_command_are_typed_and_complete_nothing(self, tabs: Tools, tab: str) -> None:
        # A line editor takes a tab for the key, unless it is pasted.
        await tabs.json("start_process", window_id=tab, command="printf 'a\tb-%d\n' 7 | od -An -c")
        assert "a  \\t   b   -   7" in await shows(tabs, tab, "b   -   7")

    async def test_pipe_whose_first_program_has_ended_has_a_foreground(self, tabs: Tools, tab: str) -> None:
        # The group lives on without its leader, and is what is stopped.
        await tabs.json("start_process", window_id=tab, command="true | sleep 99")
        await eventually_foreground(tabs, tab, "sleep")
        assert await tabs.json("stop_process", window_id=tab) == {"success": True}

    async def test_line_that_is_not_finished_is_cleared(self, tabs: Tools, tab: str) -> None:
        # A quotation that is open takes every command that follows for its text.
        await tabs.json("start_process", window_id=tab, command="echo 'open")
        await shows(tabs, tab, "open\n> ")
        await tabs.json("stop_process", window_id=tab)
        await tabs.json("start_process", window_id=tab, command="echo fr''ee")
        await shows(tabs, tab, "\nfree")

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
    async def test_program_that_leaves_the_terminal_raw_leaves_a_tab_that_works(
        self, settings: Settings, shell: str
    ) -> None:
        # Killed editors and pagers do; dash has no line editor that would mend it.
        path = shutil.which(shell) or "it is missing"
        async with in_process(replace(settings, env={**settings.env, "SHELL": path}), toolsets="tabs") as tabs:
            tab = await new_tab(tabs)
            raw = python("import tty, time; tty.setraw(0); print('raw', flush=True); time.sleep(99)")
            result = await execute(tabs, tab, raw, timeout_ms=700)
            assert result["timed_out"]
            if "exit_code" not in result:
                assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
            await tabs.json("start_process", window_id=tab, command=raw)
            await eventually_foreground(tabs, tab, Path(sys.executable).name)
            assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
            assert await output(tabs, tab, "echo works") == "works\n"

    async def test_pane_of_another_toolset_is_stopped_for_what_it_is(self, settings: Settings) -> None:
        # One registry: what is no shell has no prompt that it could be at.
        async with in_process(settings, toolsets="tabs,debug") as tools:
            await tools.blocks("tmux_create_pane", command="exec sleep 100")
            assert await tools.json("stop_process", window_id="@1") == {"success": True}

    @pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
    async def test_signals_go_to_the_whole_foreground_process_group(self, tabs: Tools, tab: str, signal: str) -> None:
        # A pipeline or a script with children stops as one, and the shell and what it has in the background do not.
        await tabs.json("start_process", window_id=tab, command="sleep 111 & sleep 112 | sleep 113")
        await eventually_foreground(tabs, tab, "sleep")
        assert await tabs.json("stop_process", window_id=tab, signal=signal) == {"success": True}

        left = await output(tabs, tab, "ps --no-headers -o args --ppid $$")
        assert "sleep 111" in left
        assert "sleep 112" not in left
        assert "sleep 113" not in left

    async def test_what_ignores_the_signal_is_not_said_to_have_stopped(
        self, tabs: Tools, tab: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Success that is not true costs more than a failure.
        monkeypatch.setattr(stopping, "STOP_S", 0.2)
        await tabs.json("start_process", window_id=tab, command="sh -c 'trap \"\" TERM; echo up; exec sleep 55'")
        await shows(tabs, tab, "\nup")
        answer = await tabs.json("stop_process", window_id=tab, signal="SIGTERM")
        assert answer == {
            "success": False,
            "note": "Not stopped: sleep still runs 0.2 s after that; close_tab ends all that runs there.",
        }

        monkeypatch.undo()
        assert (await tabs.json("stop_process", window_id=tab))["success"]

    async def test_commands_that_follow_in_a_list_are_stopped_too(self, tabs: Tools, tab: str) -> None:
        # A program that handles C-c makes the shell go on; what is wanted is a tab that is free.
        polite = python("import time\ntry:\n  print('up'); time.sleep(99)\nexcept KeyboardInterrupt: pass")
        await tabs.json("start_process", window_id=tab, command=f"{polite}; {polite}; sleep 99")
        await eventually_foreground(tabs, tab, Path(sys.executable).name)

        assert await tabs.json("stop_process", window_id=tab) == {"success": True}
        assert await output(tabs, tab, "echo free") == "free\n"

    async def test_nothing_to_stop_is_said_and_the_shell_lives(self, tabs: Tools, tab: str) -> None:
        # An agent that stops twice must not lose the tab.
        for signal in ("SIGINT", "SIGTERM"):
            answer = await tabs.json("stop_process", window_id=tab, signal=signal)
            assert answer == {"success": False, "note": "Not stopped: nothing runs there, the shell is at its prompt."}
        assert await output(tabs, tab, "echo alive") == "alive\n"

    async def test_loop_of_the_shell_itself_is_stopped_by_c_c_alone(self, tabs: Tools, tab: str) -> None:
        # SIGTERM would go to the shell, and some of them would end.
        await tabs.json("start_process", window_id=tab, command="echo go; while :; do :; done")
        await shows(tabs, tab, "\ngo")
        answer = await tabs.json("stop_process", window_id=tab, signal="SIGTERM")
        assert answer["note"] == "Not stopped: the shell itself is at work, which only SIGINT stops."

        assert await tabs.json("stop_process", window_id=tab) == {"success": True}
        assert await output(tabs, tab, "echo alive") == "alive\n"

    async def test_command_that_is_being_executed_can_be_stopped(self, tabs: Tools, tab: str) -> None:
        # stop_process does not wait for its turn: it is what ends the turn of another.
        result: dict[str, Any] = {}

        async def run() -> None:
            result.update(await execute(tabs, tab, "sleep 99"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await eventually_foreground(tabs, tab, "sleep")
            assert await tabs.json("stop_process", window_id=tab) == {"success": True}

        assert result["exit_code"] == 130
        assert not result["timed_out"]


class TestPhase5:
    """stream_logs_from_tab."""

    async def test_chunks_in_a_row_are_the_log_without_gaps(self, tabs: Tools, tab: str) -> None:
        # Byte for byte what the terminal got, whatever the size of the chunks, and no character in two halves.
        await ends_with(tabs, tab, "for i in $(seq 200); do printf '%s é 日本 😀\\n' $i; done")
        log = tabs.engine.panes[0].log
        for max_bytes in (1, 2, 3, 7, 100, 4096):
            text, at, is_end = "", 0, False
            while not is_end:
                chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=max_bytes)
                assert len(chunk["chunk"].encode()) == chunk["next_byte"] - at <= max(max_bytes, 4)
                assert "\ufffd" not in chunk["chunk"]
                text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
                if max_bytes < 7 and at > 400:
                    break
            assert text.encode() == log.read(0, at)
        assert at == log.size

    async def test_clean_chunks_in_a_row_are_the_clean_log(self, tabs: Tools, tab: str) -> None:
        # Also where a chunk ends amid an escape sequence.
        await ends_with(tabs, tab, r"for i in $(seq 99); do printf '\033[38;5;%dmline %d\033[0m\n' $i $i; done")
        clean = (await read(tabs, tab, strip_ansi=True))["content"]
        for max_bytes in (1, 10, 64, 1000):
            text, at, is_end = "", 0, False
            while not is_end:
                chunk = await tabs.json(
                    "stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=max_bytes, strip_ansi=True
                )
                text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
            assert text.rstrip("\n").split("\n")[-101:] == clean.rstrip("\n").split("\n")[-101:]

    async def test_smaller_offset_reads_again(self, tabs: Tools, tab: str) -> None:
        # Backwards seeking: offsets are absolute, and reading takes nothing away.
        await ends_with(tabs, tab, "echo one; echo two")
        first = await tabs.json("stream_logs_from_tab", window_id=tab)
        assert await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=0) == first
        at = first["chunk"].encode().index(b"two\r\n")

        assert (await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=3))["chunk"] == "two"

    async def test_end_is_told_and_goes_on_when_more_comes(self, tabs: Tools, tab: str) -> None:
        # eof is the end for now; next_byte is where to look for more.
        await tabs.json(
            "start_process", window_id=tab, command="stty -echo; echo o-$((1)); read x; echo $x; exec sleep 99"
        )
        await shows(tabs, tab, "\no-1")
        whole = await tabs.json("stream_logs_from_tab", window_id=tab)
        assert whole["eof"]
        at = whole["next_byte"]
        again = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at)
        assert again == {"chunk": "", "next_byte": at, "eof": True}

        await tabs.json("start_process", window_id=tab, command="more-of-it")
        await shows(tabs, tab, "more-of-it")
        later = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=6)
        assert later == {"chunk": "more-o", "next_byte": at + 6, "eof": False}
        last = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at + 6)
        assert last == {"chunk": "f-it\r\n", "next_byte": at + 12, "eof": True}

    async def test_default_chunk_is_64_kib_and_a_megabyte_the_most(self, tabs: Tools, tab: str) -> None:
        # A log of gigabytes is read in pieces that fit into memory and context.
        await execute(tabs, tab, "seq 1 300000", timeout_ms=30_000)
        assert (await tabs.json("stream_logs_from_tab", window_id=tab))["next_byte"] == 65_536
        arguments = {"window_id": tab, "max_bytes": 1 << 20}
        assert (await tabs.json("stream_logs_from_tab", **arguments))["next_byte"] == 1 << 20
        error = await tabs.error("stream_logs_from_tab", window_id=tab, max_bytes=(1 << 20) + 1)
        assert "at most 1048576" in error

    async def test_offset_beyond_the_end_is_an_error_with_the_end(self, tabs: Tools, tab: str) -> None:
        # An offset of another tab is a mistake that should not read as "nothing new".
        await ends_with(tabs, tab, "true")
        size = tabs.engine.panes[0].log.size
        error = await tabs.error("stream_logs_from_tab", window_id=tab, from_byte=size + 1)
        assert error == f"Parameter 'from_byte' is {size + 1}, and the log has {size} bytes. Give one up to that."

    async def test_character_that_is_coming_is_held_back_and_one_that_never_came_is_told(
        self, tabs: Tools, tab: str
    ) -> None:
        # Half a character now would be two wrong ones; at the program's end it stays half.
        await tabs.json("start_process", window_id=tab, command=r"stty -echo; clear; printf 'x\303'; exec sleep 50")
        log = tabs.engine.panes[0].log
        await eventually(lambda: log.read(log.size - 2, 2) == b"x\303")
        size = log.size
        chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=size - 2)
        assert chunk == {"chunk": "x", "next_byte": size - 1, "eof": True}

        assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
        with anyio.fail_after(PATIENCE_S):
            while (await rows(tabs))[tab]["status"] == "running":
                await anyio.sleep(0.005)
        chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=size - 2)
        assert chunk == {"chunk": "x\ufffd", "next_byte": size, "eof": True}


class TestTools:
    """Testing criteria by tool."""

    async def test_tab_has_the_directory_and_variables_it_was_given(self, tabs: Tools, tmp_path: Path) -> None:
        # The shell starts there, and other tabs do not.
        directory = tmp_path / "with blank"
        directory.mkdir()
        tab = await new_tab(tabs, cwd=str(directory), env={"WHAT": "a b;$c"})
        assert await output(tabs, tab, 'pwd; echo "$WHAT"') == f"{directory}\na b;$c\n"
        other = await new_tab(tabs)
        assert await output(tabs, other, 'pwd; echo "[$WHAT]"') == f"{tmp_path}\n[]\n"

    async def test_login_shell_reads_the_profile(self, tabs: Tools) -> None:
        # nvm, pyenv and the like live there; without `login` a shell is a plain one.
        Path("~/.bash_profile").expanduser().write_text("export FROM_PROFILE=yes\n")
        login, plain = await new_tab(tabs, login=True), await new_tab(tabs)

        assert await output(tabs, login, "echo [$FROM_PROFILE]; shopt -q login_shell && echo login") == "[yes]\nlogin\n"
        assert await output(tabs, plain, "echo [$FROM_PROFILE]; shopt -q login_shell || echo plain") == "[]\nplain\n"

    async def test_state_of_the_shell_stays_between_commands(self, tabs: Tools, tab: str) -> None:
        # A tab is a place to work in.
        await execute(tabs, tab, "cd /; export KEPT=1; greet() { echo hi $1; }")
        assert await output(tabs, tab, "pwd; echo $KEPT; greet you") == "/\n1\nhi you\n"

    async def test_set_history_limit_holds_for_later_tabs_and_says_so(self, tabs: Tools, tab: str) -> None:
        # tmux gives a pane its history when it is made; to claim more would be wrong.
        answer = await tabs.json("set_history_limit", limit=1234)
        assert answer == {"success": True, "note": "It holds for tabs that are created from now on."}
        later = await new_tab(tabs)

        limits = of_tmux("list-panes", "-a", "-F", "#{window_id} #{history_limit}").splitlines()
        assert {f"{tab} 50000", f"{tab} 1234"} & set(limits)  # newer tmux changes it for all
        assert f"{later} 1234" in limits

    async def test_history_limit_is_remembered_before_and_after_tmux_runs(self, tabs: Tools) -> None:
        # It is the user's wish for the session, not for one tmux server.
        await tabs.json("set_history_limit", limit=777)
        await new_tab(tabs)
        assert of_tmux("show-options", "-gv", "history-limit") == "777\n"
        of_tmux("kill-server")
        await eventually(lambda: tabs.engine.host.client is None)
        await new_tab(tabs)
        assert of_tmux("show-options", "-gv", "history-limit") == "777\n"

    @pytest.mark.parametrize("limit", [0, -1, 100_001, 1e12])
    async def test_history_limit_out_of_range_is_refused(self, tabs: Tools, limit: float) -> None:
        # Memory is not for one call to use up.
        assert "It must be a whole number of at least 1 and at most 100000" in await tabs.error(
            "set_history_limit", limit=limit
        )

    async def test_closed_tab_ends_all_that_runs_in_it_and_its_log_stays(self, tabs: Tools, tab: str) -> None:
        # Also what ignores hanging up; what it printed can be looked at afterwards, by either id.
        await tabs.json(
            "start_process", window_id=tab, command="nohup setsid sleep 4711 >/dev/null 2>&1 & echo kept; sleep 4712"
        )
        await eventually_foreground(tabs, tab, "sleep")
        closed = await tabs.json("close_tab", window_id=tab)

        assert closed["success"]
        assert closed["ended"].startswith("killed by SIGHUP")
        assert subprocess.run(["pgrep", "-f", "sleep 471[12]"], check=False).returncode == 1
        assert await rows(tabs) == {}
        for window_id in (closed["log"], tab):
            assert "\nkept" in (await read(tabs, window_id, strip_ansi=True))["content"]
        assert "not found" in await tabs.error("close_tab", window_id=tab)
        assert "at best its log is left" in await tabs.error("start_process", window_id=closed["log"], command="ls")

    async def test_list_has_diagnostics_for_a_person(self, tabs: Tools, tab: str) -> None:
        # How to attach, which tmux it is, and where the logs are.
        listed = await tabs.json("list_tabs")
        assert listed["socket"] == socket_of(os.getpid())
        assert Path(listed["log_dir"]).is_dir()
        assert f"tmux {listed['tmux']}\n" == subprocess.check_output(["tmux", "-V"], text=True)
        assert tab == "@1"

    @pytest.mark.parametrize(
        ("tool", "arguments", "error"),
        [
            ("create_tab", {"cwd": "/no/such"}, "'/no/such', which is no directory"),
            ("create_tab", {"name": " "}, "It must be printable and not blank"),
            ("create_tab", {"name": "x" * 65}, "at most 64 characters"),
            ("create_tab", {"env": {"A": 1}}, "Parameter 'env.A'"),
            ("create_tab", {"login": "yes"}, "It must be true or false"),
            ("create_tab", {"name": "@7"}, "which looks like an id"),
            ("read_logs_from_tab", {"window_id": "@1", "lines": 1.5}, "It must be a whole number"),
            ("execute_command", {"window_id": "RUN/@1", "command": "x"}, "has ended, and at best its log is left"),
            ("execute_command", {"window_id": "@1"}, "Parameter 'command' is missing"),
            ("execute_command", {"window_id": "@1", "command": " "}, "Parameter 'command' is blank"),
            ("execute_command", {"window_id": "@1", "command": "x", "timeout_ms": 0}, "at least 1"),
            ("execute_command", {"window_id": "@99", "command": "x"}, "Tab '@99' not found. Use list_tabs"),
            ("read_logs_from_tab", {"window_id": "@1", "lines": 0}, "at least 1"),
            ("read_logs_from_tab", {"window_id": "../@1"}, "Tab '../@1' not found"),
            ("read_logs_from_tab", {"window_id": "bash"}, "Tab 'bash' not found"),
            ("stream_logs_from_tab", {"window_id": "debug-1"}, "Tab 'debug-1' not found"),
            ("stream_logs_from_tab", {"window_id": "@1", "from_byte": -1}, "at least 0"),
            ("stop_process", {"window_id": "@1", "signal": "SIGKILL"}, "one of SIGINT, SIGTERM"),
            ("stop_process", {"window_id": "web"}, "Tab 'web' not found"),
        ],
    )
    async def test_bad_input_is_told_what_to_do(
        self, tabs: Tools, tab: str, tool: str, arguments: dict[str, Any], error: str
    ) -> None:
        # Errors are for the model to mend its call by.
        assert error in await tabs.error(tool, **arguments)
        assert list(await rows(tabs)) == [tab]


async def eventually_foreground(tabs: Tools, tab: str, name: str) -> None:
    """Wait until this program has the tab's terminal."""
    with anyio.fail_after(PATIENCE_S):
        while (await rows(tabs))[tab].get("foreground") != name:
            await anyio.sleep(0.005)


async def test_log_directory_that_somebody_removes_is_made_again(tabs: Tools, tab: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "logs")
    assert set(await rows(tabs)) == {tab}
    assert await output(tabs, tab, "echo still here") == "still here\n"
    other = await new_tab(tabs)
    assert await output(tabs, other, "echo kept") == "kept\n"
    assert [path.name for path in (tmp_path / "logs").glob("*/*.log")] == ["debug-2.log"]


async def test_tab_of_a_server_that_runs_is_streamed_in_whole_characters(
    settings: Settings, tabs: Tools, tab: str, tmp_path: Path
) -> None:
    run = run_of(tabs)
    async with in_process(settings, toolsets="tabs", archive=Archive(tmp_path / "logs")) as others:
        await tabs.json("start_process", window_id=tab, command=r"printf 'half\xe2\x82'; sleep 99")
        await shows(tabs, tab, "\nhalf")
        with anyio.fail_after(PATIENCE_S):
            size = -1
            while (await others.json("stream_logs_from_tab", window_id=f"{run}/{tab}"))["next_byte"] != size:
                size = (tmp_path / "logs" / str(run) / "debug-1.log").stat().st_size - 2
        first = await others.json("stream_logs_from_tab", window_id=f"{run}/{tab}")
        assert (first["chunk"][-4:], first["next_byte"]) == ("half", size)
