"""Processes of a tab: start_process types, stop_process ends what runs (spec 000, phase 4)."""

import shlex
import shutil
import sys
from dataclasses import replace
from functools import partial
from operator import le
from pathlib import Path
from typing import Any

import anyio
import pytest
from clocks import FallingClock, with_times
from support import PATIENCE_S, SHELLS, eventually, in_process, python, until
from toolsets import NOISE, Tabs, open_tabs

from tmux_debug_mcp.settings import Settings


async def test_process_logs_and_new_lines_are_seen(tabs: Tabs, tab: str) -> None:
    # The main job: a server runs while the agent reads on.
    assert await tabs.json("start_process", window_id=tab, command=NOISE) == {"started": True}
    before = await tabs.shows(tab, "line 3\n")
    after = await tabs.shows(tab, f"line {before.count(chr(10)) + 50}\n")

    assert after.startswith(before)


async def test_process_is_stopped_and_another_one_started(tabs: Tabs, tab: str) -> None:
    # C-c by default; the log has how it ended, and the tab goes on with the same log.
    program = (
        "import time\n"
        "try: print('up-%d' % NUMBER); time.sleep(99)\n"
        "except KeyboardInterrupt: print('bye')"
    )

    async def ends() -> int:
        return int((await tabs.read(tab, strip_ansi=True))["content"].count("\n^Cbye\n"))

    for number in range(1, 4):
        await tabs.json(
            "start_process", window_id=tab, command=python(program.replace("NUMBER", str(number)))
        )
        await tabs.shows(tab, f"up-{number}")
        assert await tabs.json("stop_process", window_id=tab) == {"success": True}
        await until(ends, partial(le, number))


async def test_rapid_starts_and_stops_leave_the_log_whole(tabs: Tabs, tab: str) -> None:
    # Nothing is typed into what is just ending, and every line of every process is there once.
    for number in range(12):
        await tabs.json(
            "start_process", window_id=tab, command=f"echo begin-$(({number}))-; exec_; sleep 50"
        )
        await tabs.json("stop_process", window_id=tab)
    assert await tabs.output(tab, "echo done") == "done\n"

    content = (await tabs.read(tab, strip_ansi=True, lines=5000))["content"].split("\n")
    begun = [line for line in content if line.startswith("begin-")]
    assert begun == sorted(set(begun), key=lambda line: int(line.split("-")[1]))


async def test_start_returns_while_the_process_runs(tabs: Tabs, tab: str) -> None:
    # The agent does not wait for what does not end.
    await tabs.json("start_process", window_id=tab, command="sleep 1000")
    await tabs.shows_foreground(tab, "sleep")


async def test_append_newline_decides_whether_enter_is_pressed(tabs: Tabs, tab: str) -> None:
    # Without it a line can be prepared. The answer says so, for Enter is often forgotten.
    answer = await tabs.json(
        "start_process", window_id=tab, command="echo typed-$((1+1))", append_newline=False
    )
    assert answer == {"started": True, "note": "Enter was not pressed."}
    assert "typed-2" not in await tabs.shows(tab, "typed-$((1+1))")

    await tabs.json("start_process", window_id=tab, command=" && echo more", append_newline=True)
    assert "typed-2\nmore" in await tabs.shows(tab, "typed-2\nmore")


async def test_answers_that_are_enter_or_end_with_it_arrive(
    tabs: Tabs, tab: str, tmp_path: Path
) -> None:
    file = tmp_path / "typed"
    await tabs.json("start_process", window_id=tab, command=f"cat >{shlex.quote(str(file))}")
    await tabs.shows_foreground(tab, "cat")
    note = "It was typed into cat, which is in the foreground."
    arrived = ""
    for command, append_newline, typed in (
        ("", True, "\n"),
        ("\n", True, "\n"),
        ("\n", False, "\n"),
        (" ", True, " \n"),
        ("yes\n", True, "yes\n"),
        ("yes\r\n", False, "yes\n"),
        ("one\n\n", False, "one\n\n"),
    ):
        answer = await tabs.json(
            "start_process", window_id=tab, command=command, append_newline=append_newline
        )
        assert answer == {"started": True, "note": note}
        await tabs.json("start_process", window_id=tab, command="over")
        arrived += f"{typed}over\n"
        await eventually(lambda: file.read_text() == arrived)  # noqa: B023


async def test_key_alone_answers_a_program_that_reads_keys(tabs: Tabs, tab: str) -> None:
    keys = python("import sys, tty; tty.setcbreak(0); print(ascii(sys.stdin.read(1)))")
    await tabs.json("start_process", window_id=tab, command=keys)
    await until(tabs.rows, lambda rows: rows[tab].get("awaits") == "keys")
    await tabs.json("start_process", window_id=tab, command=" ", append_newline=False)
    await tabs.shows(tab, "' '\n")


async def test_nothing_to_type_is_refused(tabs: Tabs, tab: str) -> None:
    error = await tabs.error("start_process", window_id=tab, command="", append_newline=False)
    assert error == (
        "Parameter 'command' is empty, and with append_newline false, nothing would be typed. "
        "Give text, or leave append_newline out to press Enter."
    )


async def test_text_for_a_running_program_is_typed_into_it_and_the_answer_says_so(
    tabs: Tabs, tab: str
) -> None:
    # There is no other tool to answer a question with.
    await tabs.json("start_process", window_id=tab, command="cat")
    await tabs.shows_foreground(tab, "cat")
    answer = await tabs.json("start_process", window_id=tab, command="hello; -x")

    assert answer == {"started": True, "note": "It was typed into cat, which is in the foreground."}
    assert "hello; -x\nhello; -x" in await tabs.shows(tab, "hello; -x\nhello; -x")


async def test_program_that_a_line_starts_gets_the_next_one(tabs: Tabs, tab: str) -> None:
    # In a paste the shell would take all lines.
    command = f"{shlex.quote(sys.executable)} -q\nprint(6*7)\nexit()\n"
    assert await tabs.json("start_process", window_id=tab, command=command) == {"started": True}
    assert "\n42\n" in await tabs.shows(tab, "\n42\n")


async def test_several_lines_are_one_command(tabs: Tabs, tab: str) -> None:
    # The shell asks for the lines behind the first one.
    await tabs.json(
        "start_process", window_id=tab, command="for i in 1 2; do\necho loop-$i\ndone\n"
    )
    assert "loop-1\nloop-2" in await tabs.shows(tab, "loop-1\nloop-2")


async def test_tabs_in_a_command_are_typed_and_complete_nothing(tabs: Tabs, tab: str) -> None:
    # A line editor takes a tab for the key, unless it is pasted.
    await tabs.json("start_process", window_id=tab, command="printf 'a\tb-%d\n' 7 | od -An -c")
    assert "a  \\t   b   -   7" in await tabs.shows(tab, "b   -   7")


async def test_pipe_whose_first_program_has_ended_has_a_foreground(tabs: Tabs, tab: str) -> None:
    # The group lives on without its leader, and is what is stopped.
    await tabs.json("start_process", window_id=tab, command="true | sleep 99")
    await tabs.shows_foreground(tab, "sleep")
    assert await tabs.json("stop_process", window_id=tab) == {"success": True}


async def test_line_that_is_not_finished_is_cleared(tabs: Tabs, tab: str) -> None:
    # A quotation that is open takes every command that follows for its text.
    await tabs.json("start_process", window_id=tab, command="echo 'open")
    await tabs.shows(tab, "open\n> ")
    await tabs.json("stop_process", window_id=tab)
    await tabs.json("start_process", window_id=tab, command="echo fr''ee")
    await tabs.shows(tab, "\nfree")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
async def test_program_that_leaves_the_terminal_raw_leaves_a_tab_that_works(
    settings: Settings, shell: str
) -> None:
    # Killed editors and pagers do; dash has no line editor that would mend it.
    path = shutil.which(shell) or "it is missing"
    async with open_tabs(replace(settings, env={**settings.env, "SHELL": path})) as tabs:
        tab = await tabs.new()
        raw = python("import tty, time; tty.setraw(0); print('raw', flush=True); time.sleep(99)")
        result = await tabs.execute(tab, raw, timeout_ms=700)
        assert result["timed_out"]
        if "exit_code" not in result:
            assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
        await tabs.json("start_process", window_id=tab, command=raw)
        await tabs.shows_foreground(tab, Path(sys.executable).name)
        assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
        assert await tabs.output(tab, "echo works") == "works\n"


async def test_pane_of_another_toolset_is_stopped_for_what_it_is(settings: Settings) -> None:
    # One registry: what is not a shell has no prompt that it could be at.
    async with in_process(settings, toolsets="tabs,debug") as tools:
        await tools.blocks("tmux_create_pane", command="exec sleep 100")
        assert await tools.json("stop_process", window_id="@1") == {"success": True}


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
async def test_signals_go_to_the_whole_foreground_process_group(
    tabs: Tabs, tab: str, signal: str
) -> None:
    # A pipeline or a script with children stops as one; the shell and its background jobs do not.
    await tabs.json("start_process", window_id=tab, command="sleep 111 & sleep 112 | sleep 113")
    await tabs.shows_foreground(tab, "sleep")
    assert await tabs.json("stop_process", window_id=tab, signal=signal) == {"success": True}

    left = await tabs.output(tab, "ps --no-headers -o args --ppid $$")
    assert "sleep 111" in left
    assert "sleep 112" not in left
    assert "sleep 113" not in left


@with_times(stop_s=0.2)
async def test_what_ignores_the_signal_is_not_said_to_have_stopped(tabs: Tabs, tab: str) -> None:
    # Success that is not true costs more than a failure.
    await tabs.json(
        "start_process", window_id=tab, command="sh -c 'trap \"\" TERM; echo up; exec sleep 55'"
    )
    await tabs.shows(tab, "\nup")
    answer = await tabs.json("stop_process", window_id=tab, signal="SIGTERM")
    assert answer == {
        "success": False,
        "note": "Not stopped: sleep is still running 0.2 s later; "
        "close_tab ends all that runs there.",
    }

    assert (await tabs.json("stop_process", window_id=tab))["success"]


PYTHON = Path(sys.executable).name


@pytest.mark.parametrize(
    ("command", "name", "awaits"),
    [
        (f"{shlex.quote(sys.executable)} -q", PYTHON, "keys"),
        ("seq 1000 | less", "less", "keys"),
        ("vi -u NONE -N", "vi", "keys"),
        (
            python("while True:\n try: input()\n except KeyboardInterrupt: pass"),
            PYTHON,
            "input",
        ),
    ],
)
@with_times(stop_s=PATIENCE_S)
async def test_program_that_awaits_input_after_c_c_is_told_at_once(
    tabs: Tabs, tab: str, command: str, name: str, awaits: str
) -> None:
    # C-c is a key there, or leads back to the prompt.
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    await tabs.json("start_process", window_id=tab, command=command)
    await tabs.shows_foreground(tab, name)
    await until(tabs.rows, lambda rows: rows[tab].get("awaits") == awaits)

    answer = await tabs.json("stop_process", window_id=tab)

    note = f"Not stopped: {name} keeps running and awaits {awaits}; SIGTERM may help."
    assert answer == {"success": False, "note": note}
    assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]


async def test_commands_that_follow_in_a_list_are_stopped_too(tabs: Tabs, tab: str) -> None:
    # A program that handles C-c makes the shell go on; what is wanted is a tab that is free.
    polite = python(
        "import time\ntry:\n  print('up'); time.sleep(99)\nexcept KeyboardInterrupt: pass"
    )
    await tabs.json("start_process", window_id=tab, command=f"{polite}; {polite}; sleep 99")
    await tabs.shows_foreground(tab, Path(sys.executable).name)

    assert await tabs.json("stop_process", window_id=tab) == {"success": True}
    assert await tabs.output(tab, "echo free") == "free\n"


async def test_nothing_to_stop_is_said_and_the_shell_lives(tabs: Tabs, tab: str) -> None:
    # An agent that stops twice must not lose the tab.
    for signal in ("SIGINT", "SIGTERM"):
        answer = await tabs.json("stop_process", window_id=tab, signal=signal)
        assert answer == {
            "success": False,
            "note": "Not stopped: nothing runs there: the shell is at its prompt.",
        }
    assert await tabs.output(tab, "echo alive") == "alive\n"


@pytest.mark.parametrize("clock", [FallingClock()], ids=["falling"])
async def test_stop_has_an_end_where_the_clock_is_set_back(tabs: Tabs, tab: str) -> None:
    await tabs.json("start_process", window_id=tab, command="echo one")
    await tabs.shows(tab, "\none")

    answer = await tabs.json("stop_process", window_id=tab)
    assert "the shell is at its prompt" in answer["note"]


async def test_loop_of_the_shell_itself_is_stopped_by_c_c_alone(tabs: Tabs, tab: str) -> None:
    # SIGTERM would go to the shell, and some of them would end.
    await tabs.json("start_process", window_id=tab, command="echo go; while :; do :; done")
    await tabs.shows(tab, "\ngo")
    answer = await tabs.json("stop_process", window_id=tab, signal="SIGTERM")
    assert answer["note"] == "Not stopped: the shell itself is busy, and only SIGINT stops it."

    assert await tabs.json("stop_process", window_id=tab) == {"success": True}
    assert await tabs.output(tab, "echo alive") == "alive\n"


LOOPS = (
    "while :; do sleep 1000; done",
    "sleep 1000; sleep 1000; sleep 1000; echo end''ed",
    "while :; do sh -c 'trap \"\" INT; exec sleep 1000'; done",  # which ignores C-c
)


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "busybox", "fish"])
async def test_sigterm_stops_a_loop_or_list_of_programs(tabs: Tabs, tab: str, shell: str) -> None:
    # Shells ignore it, and go on with the next program.
    await tabs.json("start_process", window_id=tab, command=SHELLS[shell])
    await tabs.shows_foreground(tab, SHELLS[shell].split()[0])
    for loop in LOOPS:
        command = loop.replace(":; do", "true;").replace("done", "end") if shell == "fish" else loop
        await tabs.json("start_process", window_id=tab, command=command)
        await tabs.shows_foreground(tab, "sleep")

        answer = await tabs.json("stop_process", window_id=tab, signal="SIGTERM")
        assert answer == {"success": True}, loop
        assert await tabs.output(tab, "echo alive") == "alive\n"
    assert "ended" not in (await tabs.read(tab, strip_ansi=True))["content"]


async def test_command_that_is_being_executed_can_be_stopped(tabs: Tabs, tab: str) -> None:
    # stop_process does not wait for its turn: it is what ends the turn of another.
    result: dict[str, Any] = {}

    async def run() -> None:
        result.update(await tabs.execute(tab, "sleep 99"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await tabs.shows_foreground(tab, "sleep")
        assert await tabs.json("stop_process", window_id=tab) == {"success": True}

    assert result["exit_code"] == 130
    assert not result["timed_out"]
