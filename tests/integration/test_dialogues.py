"""What a result shows of several steps, of screens among lines, and of floods."""

import re

import pytest
from clocks import with_times
from support import PATIENCE_S, Tools, late_log, python

from tmux_debug_mcp.panes.reports import MAX_ASKED_CHARACTERS

SCREEN = "printf '\\033[?1049h\\033[Htitle\\033[3;1Hbody'; read -rsn1; printf '\\033[?1049l'"


async def test_lines_before_and_after_a_screen_are_shown_and_the_screen_once(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    blocks = await tools.blocks(
        "send_keys",
        pane_id="debug-1",
        keys=f"echo one; {SCREEN}; echo two\n",
        wait_for="^body",
    )
    before, _, drawn = blocks[1].partition("\n[screen]\n")
    assert before.endswith("\none")
    assert drawn == "title\n\nbody"

    _, text, _ = await tools.blocks("send_keys", pane_id="debug-1", keys="q", timeout_s=PATIENCE_S)
    assert text.startswith("two\n")
    assert "body" not in text
    since = await tools.capture("debug-1", since=0)
    assert "\none\n[screen]\ntitle\n\nbody\ntwo\n" in since


async def test_lines_among_many_screens_are_all_there_once(tools: Tools) -> None:
    program = python(
        "for n in range(300): print(f'line {n}\\n\\033[?1049hdrawn\\033[?1049l', end='')\n"
        "print('end')"
    )
    _, text, _ = await tools.blocks(
        "create_pane", command=program, wait_for="^end$", timeout_s=PATIENCE_S
    )
    assert text == "".join(f"line {number}\n" for number in range(300)) + "end\n"


async def test_each_step_keeps_its_share_and_what_is_left_out_can_be_read(tools: Tools) -> None:
    program = python(
        "while True:\n n = input('? ')\n for row in range(int(n) % 3 * 40 + 2): print(n, row)"
    )
    await tools.create(program, wait_for=r"\? $")
    blocks, facts = await tools.answer(
        "send_keys",
        pane_id="debug-1",
        keys="".join(f"{number}\n" for number in range(31)),
        timeout_s=PATIENCE_S,
    )
    text = blocks[1]
    assert 2_000 < len(text) <= 4_500
    lines = text.split("\n")
    assert {line.split()[0] for line in lines if re.fullmatch(r"\d+ \d+", line)} >= {
        str(number) for number in range(31) if number % 3
    }

    # What the notes say, followed to the letter, returns what is missing, in its place.
    whole: list[str] = []
    for number, line in enumerate(lines):
        if number not in facts["marked_lines"]:
            whole.append(line)
            continue
        advice = re.fullmatch(
            r"\[[\d,]+ lines? left out: tmux_capture_pane since (\d+), lines (\d+)\]", line
        )
        assert advice, line
        part = await tools.capture("debug-1", since=int(advice[1]), lines=int(advice[2]))
        whole += part.removesuffix("\n").split("\n")
    printed = [f"{number} {row}" for number in range(31) for row in range(number % 3 * 40 + 2)]
    assert [line for line in whole if re.fullmatch(r"\d+ \d+", line)] == printed


@with_times(trim_s=0.01)
async def test_flood_within_one_line_shows_its_beginning_and_its_end(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 20)
    command = "echo begin; yes | head -c 8000000 | tr -d '\\n'; echo; echo end; cat"
    _, text, status = await tools.blocks(
        "create_pane", command=command, wait_for="^end$", timeout_s=PATIENCE_S
    )
    assert text.startswith("begin\n")
    assert text.endswith("\nend\n")
    assert "'y' in the line above: " in text
    assert "matched" in status
    assert len(text) < 1_000


async def test_what_was_printed_on_the_alternate_screen_stays_in_the_log(tools: Tools) -> None:
    program = python(
        "import sys\nprint('before')\nprint('\\033[?1049h\\033[H', end='', flush=True)\n"
        "try: 1 / 0\nexcept ZeroDivisionError:\n"
        " import traceback\n traceback.print_exc(file=sys.stdout)\n"
        "print('\\033[?1049l', end='')\nprint('after')"
    )
    await tools.create(program, timeout_s=PATIENCE_S)
    since = await tools.capture("debug-1", since=0)
    before, _, rest = since.partition("[screen]\n")
    assert before == "before\n"
    assert rest.startswith("Traceback (most recent call last):\n")
    assert rest.endswith("ZeroDivisionError: division by zero\nafter\n")
    found = await tools.capture("debug-1", pattern="ZeroDivisionError")
    assert re.fullmatch(r"\d+: ZeroDivisionError: division by zero", found)


async def test_wait_for_counts_from_the_first_step_and_says_what_came_early(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    _, text, status = await tools.blocks(
        "send_keys", pane_id="debug-1", keys="echo re''ady\necho two\n", wait_for="^ready$"
    )
    assert "ready\n" in text
    assert "two\n" in text
    assert "matched" in status
    assert "before the last step" in status

    blocks = await tools.blocks(
        "send_keys", pane_id="debug-1", keys="echo one\necho re''ady\n", wait_for="^ready$"
    )
    assert "matched" in blocks[-1]
    assert "before the last step" not in blocks[-1]


async def test_stop_pattern_stops_between_steps_and_says_at_which(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    blocks, facts = await tools.answer(
        "send_keys",
        pane_id="debug-1",
        keys=["echo one\n", "echo FA''ILED\n", "echo three\n"],
        stop_pattern="^FAILED$",
        timeout_s=PATIENCE_S,
    )
    assert blocks[0] == (
        "Sent 2 of 3 steps to pane 'debug-1'. Step 3 was not sent: stop pattern matches."
    )
    assert facts["reason"] == "stopped"
    assert "three" not in await tools.capture("debug-1")


@pytest.mark.parametrize("shell", ["bash --norc", "dash"])
async def test_wait_in_vain_ends_at_a_prompt_where_nothing_else_runs(
    tools: Tools, shell: str
) -> None:
    await tools.create(shell, timeout_s=PATIENCE_S)
    blocks, facts = await tools.answer(
        "send_keys", pane_id="debug-1", keys="echo one\n", wait_for="never", timeout_s=PATIENCE_S
    )
    assert facts["reason"] == "input"
    assert "no line matches" in blocks[-1]

    # A job in the background may print yet.
    await tools.send("debug-1", "sleep 1001 &\n", timeout_s=PATIENCE_S)
    _, facts = await tools.answer("wait", pane_id="debug-1", pattern="never", timeout_s=1.5)
    assert facts["reason"] == "timed_out"


async def test_wait_in_vain_ends_where_hidden_input_is_awaited(tools: Tools) -> None:
    command = "read -rsp 'password: ' word; echo got it; cat"
    _, facts = await tools.answer(
        "create_pane", command=f'bash -c "{command}"', wait_for="never", timeout_s=PATIENCE_S
    )
    assert facts["reason"] == "input"
    assert facts["awaits"] == "hidden input"


# Draws on the screen: the number of keys so far, the last one, and a row that never changes.
DRAWS_KEYS = (
    'bash --norc -c \'printf "\\033[?1049h"; n=0; key=none; while '
    'printf "\\033[H\\033[2Jline %d of it\\r\\nkey %s\\r\\nline of all" $n $key; '
    "read -rsn1 key; do [ $key = q ] && break; n=$((n + 1)); done; "
    'printf "\\033[?1049lline that ends it\\n"\''
)


async def test_show_finds_rows_on_the_screen_after_each_step(tools: Tools) -> None:
    await tools.create(DRAWS_KEYS, show="^line")
    blocks = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["a", "b", "c"], show="^line|b$"
    )
    assert blocks[1].split("\n") == [
        *("[screen]", "line 1 of it"),
        *("[screen]", "line 2 of it", "key b"),
        *("[screen]", "line 3 of it", "line of all"),
    ]
    # Without a screen at the end.
    blocks = await tools.blocks("send_keys", pane_id="debug-1", keys=["d", "q"], show="^line")
    assert blocks[1].split("\n") == ["[screen]", "line 4 of it", "line that ends it"]
    # The program is started by the first step.
    await tools.create("bash --norc")
    blocks = await tools.blocks(
        "send_keys", pane_id="debug-2", keys=[f"{DRAWS_KEYS} Enter", "x"], show="^line"
    )
    assert blocks[1].split("\n")[:2] == ["[screen]", "line 0 of it"]
    assert blocks[1].split("\n")[2:] == ["[screen]", "line 1 of it", "line of all"]


async def test_screen_after_a_step_is_shown_though_the_log_is_late(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools.create(DRAWS_KEYS)
    with late_log(tools.engine.panes[0], monkeypatch):
        blocks = await tools.blocks(
            "send_keys", pane_id="debug-1", keys=["a", "b"], show="^line [0-9]"
        )

    assert blocks[1].split("\n") == [*("[screen]", "line 1 of it"), *("[screen]", "line 2 of it")]


@pytest.mark.parametrize("show", [None, "^line"])
async def test_screens_after_many_steps_are_the_newest(tools: Tools, show: str | None) -> None:
    await tools.create(DRAWS_KEYS)
    arguments = {"show": show} if show else {}
    blocks = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["x"] * 120, timeout_s=PATIENCE_S, **arguments
    )
    lines = blocks[1].split("\n")
    assert lines[0] == "[earlier screens left out]"
    assert len(blocks[1]) < MAX_ASKED_CHARACTERS
    numbers = [
        int(line.split()[1]) for line in lines if line.startswith("line ") and line[5] != "o"
    ]
    assert len(numbers) >= 50
    assert numbers == list(range(121 - len(numbers), 121))


async def test_show_leaves_only_lines_that_match(tools: Tools) -> None:
    command = "seq 1 200; printf 'the end\\n'; cat"
    blocks, facts = await tools.answer(
        "create_pane", command=command, show="^1?[0-9]?5$", wait_for="^the end"
    )
    expected = [str(number) for number in range(5, 200, 10)]
    assert blocks[1].split("\n") == expected
    blocks = await tools.blocks("wait", pane_id="debug-1", since=0, show=".", timeout_s=0)
    lines = blocks[0].split("\n")
    assert lines[0] == "[the newest 50 of 201 lines that match]"
    assert lines[1:] == [*map(str, range(152, 201)), "the end"]
    blocks = await tools.blocks("wait", pane_id="debug-1", since=0, show="nothing", timeout_s=0)
    assert blocks[0] == "[no line matches `show`]"
    text = await tools.capture("debug-1", since=facts["start_cursor"])
    assert text.startswith("1\n2\n3\n")
