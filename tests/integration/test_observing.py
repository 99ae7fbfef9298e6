"""What create and send return by default: the output until the pane is at rest, or its screen."""

import re
from pathlib import Path

import anyio
import pytest
from clocks import with_times
from support import PATIENCE_S, SHELLS, Gate, Tools, eventually, late_log, python, texts

# A program that draws only the cells that have changed, as curses does.
LIST = python("""
import curses
def main(screen):
    items = 3
    while True:
        screen.addstr(1, 4, "items to do:")
        screen.addstr(2, 4, str(items) + " items")
        screen.refresh()
        key = screen.getkey()
        if key == "q":
            return
        items += {"a": 1, "d": -1}.get(key, 0)
curses.wrapper(main)
print("bye")
""")


# What shows that they are ready, what is typed, and what shows that this was done.
PROGRAMS: dict[str, tuple[str, str, str | list[str], str]] = {
    "less": ("seq 1 500 >f; less f", "^30$", "G", "^500$"),
    "vim": (
        "$(command -v vim || command -v vim.tiny) -u NONE -N f",
        '"f" .New',
        ["ihello", "Escape", ":r !echo 42\n"],
        "^42",
    ),
    "htop": ("htop", "PID", "h", "htop [0-9.]+"),
    "top": ("top", "PID", "h", "Help for Interactive Commands"),
}


async def observe(tools: Tools, tool: str, **arguments: object) -> tuple[str, str, str]:
    """Return the confirmation, the text and the last line of a create or a send."""
    blocks = texts(await tools.call(tool, **arguments))
    return blocks[0], "\n".join(blocks[1:-1]), blocks[-1]


@pytest.mark.parametrize("shell", SHELLS)
async def test_shell_is_at_rest_at_its_prompt(tools: Tools, shell: str) -> None:
    _, _, status = await observe(tools, "create_pane", command=SHELLS[shell], timeout_s=PATIENCE_S)
    assert f"awaits {'input' if shell == 'dash' else 'keys'}" in status

    _, text, status = await observe(
        tools, "send_keys", pane_id="debug-1", keys="echo so\n", timeout_s=PATIENCE_S
    )
    assert "\nso\n" in text
    assert f"awaits {'input' if shell == 'dash' else 'keys'}" in status


async def test_program_that_goes_on_printing_is_told_when_the_time_is_over(tools: Tools) -> None:
    busy = "while :; do echo tick; for ((n = 0; n < 10000; n++)); do :; done; done"
    _, text, status = await observe(tools, "create_pane", command=busy)

    assert text.startswith("tick\n")
    assert "; not at rest after 1 s; " in status


async def test_timeout_of_0_returns_the_confirmation_alone(tools: Tools) -> None:
    blocks = await tools.blocks("create_pane", command="cat", timeout_s=0)
    assert len(blocks) == 2
    blocks = await tools.blocks("send_keys", pane_id="debug-1", keys="hello Enter", timeout_s=0)
    assert len(blocks) == 2
    assert blocks[0] == "Sent keys to pane 'debug-1'"


async def test_observation_that_nobody_asked_for_is_short(tools: Tools) -> None:
    _, text, _ = await observe(
        tools, "create_pane", command="seq 1 100000; sleep 60", timeout_s=PATIENCE_S
    )
    assert text.startswith("1\n2\n")
    assert text.endswith("\n100000\n")
    assert 900 < len(text) <= 1_000

    _, text, _ = await observe(
        tools, "create_pane", command="seq 1 100000; sleep 60", wait_for="^100000$"
    )
    assert 3_900 < len(text) <= 4_000


async def test_flood_of_one_line_is_counted(tools: Tools) -> None:
    command = "yes no | head -c 1000001; cat"
    blocks, facts = await tools.answer("create_pane", command=command, timeout_s=PATIENCE_S)
    lines = blocks[1].splitlines()

    assert lines[0] == "no"
    assert lines[1].startswith("[the line above: ")
    assert len(lines) <= 6
    marked = facts["marked_lines"]
    assert {line for number, line in enumerate(lines) if number not in marked} <= {"no", "n"}


async def test_flood_ends_a_wait_for_quiet(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmux_debug_mcp.panes.waiting.MAX_LOG_BYTES", 1 << 20)
    await tools.create("yes 0123456789012345678901234567890123456789")
    blocks, facts = await tools.answer("wait", pane_id="debug-1", idle_s=5, timeout_s=PATIENCE_S)

    assert facts["reason"] == "flooded"
    assert "wait ended: more was printed than the log keeps" in blocks[-1]


@with_times(trim_s=0.01)
async def test_what_advice_says_can_be_done(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that tells of a cut names a cursor only if that can still be read from."""
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 20)
    result = await tools.call(
        "create_pane",
        command="seq 1 400000; echo end; sleep 60",
        wait_for="^end",
        timeout_s=PATIENCE_S,
    )
    text = texts(result)[1]
    for cursor in re.findall(r"tmux_capture_pane since (\d+)", text):
        assert (
            "no longer kept"
            not in (await tools.blocks("capture_pane", pane_id="debug-1", since=int(cursor)))[-1]
        )


async def test_wait_without_a_condition_ends_when_input_is_awaited(
    tools: Tools, gate: Gate
) -> None:
    await tools.create(f"cat {gate}; read -r line; echo got $line")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.open)
        _, facts = await tools.answer("wait", pane_id="debug-1", timeout_s=PATIENCE_S)
    assert facts["reason"] == "input"

    await tools.send("debug-1", "x Enter")
    blocks, facts = await tools.answer("wait", pane_id="debug-1", timeout_s=PATIENCE_S)
    assert facts["reason"] == "exited"
    assert "got x\n" in blocks[0]


class TestScreens:
    async def test_screen_is_returned_trimmed_and_with_its_size(self, tools: Tools) -> None:
        _, text, status = await observe(tools, "create_pane", command=LIST, timeout_s=PATIENCE_S)

        assert text == "\n    items to do:\n    3 items"
        assert "awaits keys; screen 200x50; " in status

    async def test_row_whose_cells_have_changed_matches_as_a_person_reads_it(
        self, tools: Tools
    ) -> None:
        await tools.create(LIST, wait_for="3 items")
        confirmation, text, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys=["d", "d", "d"], wait_for="^ +0 items$"
        )

        assert confirmation == "Sent keys to pane 'debug-1'"
        before = "[screen]\n    2 items\n[screen]\n    1 items\n"  # after each other step
        assert text == f"{before}[screen]\n[row 3]\n    0 items"
        assert "; matched; screen 200x50; " in status

    async def test_row_that_has_not_changed_does_not_match(self, tools: Tools) -> None:
        await tools.create(LIST, wait_for="3 items")
        _, _, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys="a", wait_for="items to do", timeout_s=0.5
        )
        assert "timed out after 0.5 s" in status

        result = await tools.call(
            "wait", pane_id="debug-1", pattern="^ +4 items", timeout_s=PATIENCE_S
        )
        assert (result.meta or {})["reason"] == "matched"

    async def test_end_of_the_program_shows_text_again(self, tools: Tools) -> None:
        await tools.create("bash --norc", timeout_s=PATIENCE_S)
        await tools.send("debug-1", f"{LIST} Enter", wait_for="3 items")
        _, text, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys="q", wait_for="bye"
        )

        assert text.startswith("bye\n")
        assert "screen" not in status

    @pytest.mark.parametrize("name", PROGRAMS)
    async def test_well_known_programs_are_read_as_people_read_them(
        self, tools: Tools, tmp_path: Path, name: str
    ) -> None:
        command, ready, keys, shown = PROGRAMS[name]
        await tools.blocks(
            "create_pane", command=command, cwd=str(tmp_path), wait_for=ready, timeout_s=PATIENCE_S
        )
        _, text, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys=keys, wait_for=shown, timeout_s=PATIENCE_S
        )

        assert "; matched; screen 200x50; " in status
        assert not any(line.endswith(" ") for line in text.split("\n"))

    async def test_screen_on_which_no_text_has_changed_tells_what_is_highlighted(
        self, tools: Tools
    ) -> None:
        _, text, _ = await observe(
            tools,
            "create_pane",
            command="dialog --begin 2 2 --menu Which 10 40 3 a first b second",
            timeout_s=PATIENCE_S,
        )
        rows = text.split("\n")
        assert rows[2].startswith("  ┌──")  # of what is before the screen, nothing is shown
        number = next(number for number, row in enumerate(rows, 1) if "second" in row)
        assert rows[-1] == f"[row {number - 1} is highlighted: a  first]"

        blocks, facts = await tools.answer("send_keys", pane_id="debug-1", keys="Down")
        assert blocks[1] == f"[row {number} is highlighted: b  second]"
        assert facts["marked_lines"] == [0]
        assert "; screen 200x50; " in blocks[-1]

        # The same again: the menu has no further item.
        blocks = await tools.blocks("send_keys", pane_id="debug-1", keys="Down")
        assert blocks[1] == "[screen unchanged]"

    async def test_program_that_crashes_is_told_with_its_last_screen(self, tools: Tools) -> None:
        await tools.create(
            LIST.replace("str(items)", "str(1 // items * items)"), wait_for="items to do"
        )
        _, text, status = await observe(tools, "send_keys", pane_id="debug-1", keys=["d", "d", "d"])

        before, _, then = text.partition("\n[then]\n")
        assert before == "[screen]\n    1 items"  # the last screen has nothing else that is new
        assert then.startswith("Traceback (most recent call last):\n")
        assert then.endswith("ZeroDivisionError: integer division or modulo by zero\n")
        assert "exited with code 1" in status

    async def test_program_that_crashes_at_once_is_told_with_its_last_screen(
        self, tools: Tools
    ) -> None:
        _, text, _ = await observe(
            tools, "create_pane", command=LIST.replace("getkey()", "get_no_key()")
        )

        before, _, then = text.partition("\n[then]\n")
        assert before == "[the last screen]\n\n    items to do:\n    3 items"
        assert then.startswith("Traceback (most recent call last):\n")

    async def test_crash_leaves_out_a_last_screen_that_was_shown(self, tools: Tools) -> None:
        program = python(
            "import curses\ndef main(screen):\n"
            " for row in range(49): screen.addstr(row, 0, f'row {row}')\n"
            " screen.getkey()\n screen.erase()\n screen.addstr(99, 0, 'nowhere')\n"
            "curses.wrapper(main)"
        )
        _, text, _ = await observe(tools, "create_pane", command=program, wait_for="row 48")
        assert text.startswith("row 0\nrow 1\n")

        _, text, status = await observe(tools, "send_keys", pane_id="debug-1", keys="x")
        assert text.startswith("Traceback (most recent call last):\n")
        assert "exited with code 1" in status

    @pytest.mark.parametrize(
        "draws",
        [r"one\ntwo\n\033[5;1H'; exit 1", r"\0337one\ntwo\n\033[5;1H\0338'; exit 1"],
        ids=["on the screen", "before the end"],
    )
    async def test_lines_that_are_on_the_screen_are_shown_once(
        self, tools: Tools, draws: str
    ) -> None:
        command = f"printf '{draws}"
        _, text, _ = await observe(tools, "create_pane", command=command, wait_for="nothing")
        assert text.removesuffix("\n") == "one\ntwo"

    async def test_crash_with_a_full_screen_and_much_to_say_is_within_the_limit(
        self, tools: Tools
    ) -> None:
        program = python(
            "import curses\ndef main(screen):\n"
            " for row in range(49): screen.addstr(row, 0, f'row {row} ' + 'x' * 150)\n"
            " screen.getkey()\n"
            "curses.wrapper(main)\nfor n in range(500): print('line', n)\nraise SystemExit(3)"
        )
        await tools.create(program, wait_for="row 48")
        _, text, status = await observe(tools, "send_keys", pane_id="debug-1", keys="q")

        assert "exited with code 3" in status
        assert len(text) <= 1_000
        assert "\n[then]\nline 0\n" in text
        assert text.endswith("line 499\n")

    async def test_pattern_may_end_with_a_blank_of_a_row(self, tools: Tools) -> None:
        program = python(
            "import curses\ndef main(screen):\n screen.addstr(0, 0, 'file')\n screen.getkey()\n"
            " screen.addstr(3, 0, 'search: ')\n screen.getkey()\ncurses.wrapper(main)"
        )
        await tools.create(program, wait_for="file", timeout_s=PATIENCE_S)

        assert "matched" in (await tools.send("debug-1", "/", wait_for="search: "))[-1]

    async def test_shell_after_a_program_that_drew_is_text_again(self, tools: Tools) -> None:
        await tools.create("bash --norc", timeout_s=PATIENCE_S)
        await tools.send("debug-1", "top Enter", wait_for="PID")
        await observe(tools, "send_keys", pane_id="debug-1", keys="q")
        _, text, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys="echo after Enter"
        )

        assert text == "echo after\nafter\nbash-5.2# " or text.startswith("echo after\nafter\n")
        assert "screen" not in status

    @pytest.mark.parametrize("size", ["200x50", "40x50"])  # the echo on one row, and on several
    async def test_neither_old_rows_nor_the_echo_of_keys_match_on_a_screen(
        self, tools: Tools, size: str, gate: Gate
    ) -> None:
        pattern = "READY|DONE$|DONE;"
        await tools.create("bash --norc", size=size, timeout_s=PATIENCE_S)
        await tools.send("debug-1", "echo old READY Enter", wait_for="^old READY")
        await tools.call("run", command="true READY", pane_id="debug-1")
        draws = f"tput cup 20 0; echo working; cat {gate}; echo DONE; sleep 60 Enter"
        _, _, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys=draws, wait_for=pattern, timeout_s=0.5
        )
        assert "; timed out" in status

        await gate.open()
        result = await tools.call("wait", pane_id="debug-1", pattern=pattern, timeout_s=PATIENCE_S)
        assert "; matched; " in texts(result)[-1]
        assert (await tools.capture("debug-1")).endswith("\nDONE")

    async def test_echo_over_several_rows_does_not_match_where_a_program_draws(
        self, tools: Tools
    ) -> None:
        asks = "printf '\\033[5;1H> '; read answer; printf '\\033[9;1Hdone\\n'; exec sleep 60"
        await tools.create(asks, size="30x24", wait_for="> ", timeout_s=PATIENCE_S)
        keys = "an answer that goes over several rows: done; not done Enter"
        await tools.send("debug-1", keys, wait_for="done$|done;", timeout_s=PATIENCE_S)
        assert (await tools.capture("debug-1")).endswith("\ndone")

    async def test_row_that_a_program_draws_anew_matches_when_it_is_started_again(
        self, tools: Tools
    ) -> None:
        await tools.create("bash --norc", timeout_s=PATIENCE_S)
        for _ in range(2):
            await tools.send("debug-1", "top Enter", wait_for="PID +USER", timeout_s=PATIENCE_S)
            await tools.send("debug-1", "q", wait_for=r"\$ $", timeout_s=PATIENCE_S)

    async def test_rows_before_a_cursor_that_no_result_has_shown_do_not_match(
        self, tools: Tools, gate: Gate
    ) -> None:
        await tools.create(f"printf '\\033[5;1HREADY\\n'; cat {gate}; printf 'READY 2\\n'")
        log = tools.engine.panes[0].log
        await eventually(lambda: b"READY" in log.read(0, log.size))
        cursor = log.size
        await gate.open()
        result = await tools.call(
            "wait", pane_id="debug-1", pattern="READY$", since=cursor, timeout_s=PATIENCE_S
        )
        assert (result.meta or {})["reason"] == "exited"

    async def test_row_that_was_there_at_a_cursor_does_not_match(self, tools: Tools) -> None:
        result = await tools.call("create_pane", command=LIST, wait_for="3 items")
        cursor = (result.meta or {})["cursor"]
        await tools.send("debug-1", "a")
        result = await tools.call(
            "wait", pane_id="debug-1", pattern="items to do", since=cursor, timeout_s=0.3
        )
        assert (result.meta or {})["reason"] == "timed_out"

    async def test_line_before_the_alternate_screen_matches(self, tools: Tools) -> None:
        program = "printf 'BUILD OK\\n\\033[?1049h\\033[HSCREEN'; exec sleep 60"
        _, _, status = await observe(
            tools, "create_pane", command=program, wait_for="BUILD OK", timeout_s=PATIENCE_S
        )
        assert "matched" in status

    async def test_row_that_matches_is_shown_of_the_fullest_screen(self, tools: Tools) -> None:
        full = python(
            "import time\n"
            "for n in range(50):\n"
            "    row = f'row{n} '.ljust(200, 'x')\n"
            "    print(f'\\033[{n + 1};1H{row}', end='', flush=True)\n"
            "time.sleep(60)"
        )
        for row in (0, 12, 13, 49):
            _, text, status = await observe(
                tools, "create_pane", command=full, wait_for=f"^row{row} ", name=f"r{row}"
            )
            assert f"row{row} " in text
            assert "matched" in status

    async def test_clear_at_a_prompt_is_not_taken_for_a_screen(self, tools: Tools) -> None:
        await tools.create("bash --norc", timeout_s=PATIENCE_S)
        _, text, status = await observe(
            tools, "send_keys", pane_id="debug-1", keys="clear; seq 1 3\n", timeout_s=PATIENCE_S
        )
        assert "1\n2\n3\n" in text
        assert "screen" not in status


async def test_many_who_wait_for_rest_leave_time_for_others(tools: Tools) -> None:
    answers = []

    async def create() -> None:
        answers.append(
            await tools.client.call_tool(
                "tmux_create_pane", {"command": "exec sleep 60", "timeout_s": 20}
            )
        )

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(create)

    assert {(answer.meta or {})["reason"] for answer in answers} == {"rest"}


async def test_observation_has_all_that_was_printed_before_the_program_awaited(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late the writer of the log is."""
    pane_id = await tools.create("cat", timeout_s=PATIENCE_S)
    await tools.send(pane_id, "first Enter", wait_for="first")
    pane = await tools.engine.find(pane_id)
    with late_log(pane, monkeypatch):
        _, text, status = await observe(
            tools, "send_keys", pane_id=pane_id, keys="late Enter", timeout_s=PATIENCE_S
        )

    assert text == "late\nlate\n"
    assert "awaits input" in status
