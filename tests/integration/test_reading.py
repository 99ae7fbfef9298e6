"""What `since` reads: everything, once, from cursors that stay what they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from support import Gate, Tools, late_log, python, texts, until

from tmux_debug_mcp.logs.retention import MAX_LOG_BYTES


async def read(tools: Tools, pane_id: str, since: int) -> tuple[str, Mapping[str, Any], str]:
    """Return the text, what is said of it for programs, and the last line."""
    [text, status], facts = await tools.answer("capture_pane", pane_id=pane_id, since=since)
    return text, facts, status


async def read_all(tools: Tools, pane_id: str, since: int = 0) -> str:
    """Return all that is read in steps, put together."""
    texts = []
    while True:
        text, meta, _ = await read(tools, pane_id, since)
        texts.append(text)
        if meta["cursor"] == since:
            return "".join(texts)
        since = meta["cursor"]


async def test_reads_put_together_are_the_whole_of_a_hundred_thousand_lines(tools: Tools) -> None:
    pane_id = await tools.create("seq 1 100000")
    await tools.exited(pane_id)

    assert await read_all(tools, pane_id) == "".join(f"{number}\n" for number in range(1, 100_001))


async def test_reads_of_a_program_that_goes_on_are_what_is_new(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    texts, since = [], 0
    for number in range(5):
        await tools.send(pane_id, f"echo {number}-é-$((0+{number})) Enter")
        # In the log, which is behind the screen on a busy machine.
        await tools.blocks("wait", pane_id=pane_id, pattern=f"^{number}-é-{number}$")
        text, meta, _ = await read(tools, pane_id, since)
        since = meta["cursor"]
        texts.append(text)

    whole = await read_all(tools, pane_id)
    assert whole.startswith("".join(texts))
    assert [f"{number}-é-{number}" in texts[number] for number in range(5)] == [True] * 5


async def test_cursor_holds_across_clear_and_the_alternate_screen_and_the_end(tools: Tools) -> None:
    clear, enter, leave = (
        r"printf '\033[H\033[2J'",
        r"printf '\033[?1049h'",
        r"printf '\033[?1049l'",
    )
    pane_id = await tools.create(
        f"echo one; {clear}; echo two; {enter}; echo menu; {leave}; echo three"
    )
    await tools.exited(pane_id)
    _, meta, status = await read(tools, pane_id, 0)

    assert await read_all(tools, pane_id) == "one\ntwo\n[screen]\nmenu\nthree\n"
    assert (await read(tools, pane_id, 5))[0] == "two\n[screen]\nmenu\nthree\n"
    assert meta["marked_lines"] == [2]  # of all that was read
    assert status.endswith(f"; cursor {meta['cursor']}]")
    assert meta["cursor"] == (await tools.state(pane_id))["cursor"]


async def test_read_keeps_to_its_size_with_whole_lines_and_says_how_much_is_left(
    tools: Tools,
) -> None:
    pane_id = await tools.create("seq 1 20000")
    await tools.exited(pane_id)
    text, meta, status = await read(tools, pane_id, 0)

    assert 15_000 < len(text) <= 16_000
    assert text.endswith("\n")
    assert f"; {meta['cut_bytes']} more bytes to read; cursor {meta['cursor']}]" in status
    assert (await read(tools, pane_id, meta["cursor"]))[0].startswith(
        str(text.count("\n") + 1) + "\n"
    )


async def test_line_longer_than_a_read_comes_in_parts(tools: Tools) -> None:
    pane_id = await tools.create(python('print("é" * 100_000, end="")'))
    await tools.exited(pane_id)

    assert await read_all(tools, pane_id) == "é" * 100_000


async def test_character_and_sequence_that_are_not_finished_wait_for_the_rest(tools: Tools) -> None:
    program = (
        'import os; os.write(1, b"a\\xc3"); '
        'input(); os.write(1, b"\\xa9\\033[3"); '
        'input(); os.write(1, b"1mb")'
    )
    pane_id = await tools.create("stty -echo; " + python(program))
    # The log is behind the screen on a busy machine.
    first = await until(lambda: read(tools, pane_id, 0), lambda piece: piece[0] == "a")
    await tools.send(pane_id, "Enter")
    second = await until(
        lambda: read(tools, pane_id, first[1]["cursor"]), lambda piece: piece[0] == "é"
    )
    await tools.send(pane_id, "Enter")
    await tools.exited(pane_id)
    third = await read(tools, pane_id, second[1]["cursor"])

    assert (first[0], second[0], third[0]) == ("a", "é", "b")
    assert "more" not in first[2] + second[2] + third[2]


async def test_what_is_no_longer_kept_is_told_in_bytes(tools: Tools) -> None:
    line = "0123456789" * 12
    pane_id = await tools.create(
        f"yes {line} | head -c {3 * MAX_LOG_BYTES // 2}; echo the end; sleep 60"
    )
    await tools.shows(pane_id, "the end", lines=1)
    tools.engine._retention.trim()
    kept_from = tools.engine.panes[0].log.kept_from
    text, meta, status = await read(tools, pane_id, 1000)

    assert meta["start_cursor"] == kept_from > MAX_LOG_BYTES // 4
    assert f"; {kept_from - 1000} bytes are no longer kept; " in status
    assert line in text
    size = (await tools.state(pane_id))["cursor"]
    assert (await read(tools, pane_id, size - 9))[0] == "the end\n"


async def test_cursor_that_the_pane_has_not_reached_is_an_error(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create(f"cat {gate}; echo hello; cat")
    with late_log(tools.engine.panes[0], monkeypatch):
        await gate.open()
        await tools.shows(pane_id, "hello")

        error = await tools.error("capture_pane", pane_id=pane_id, since=8)
    assert error == "Parameter 'since' is 8, but the pane's cursor is 7. Give at most 7."
    assert (await read(tools, pane_id, 7))[0] == ""
    assert "Omit it, or parameter 'since'." in await tools.error(
        "capture_pane", pane_id=pane_id, since=0, view="ansi"
    )


async def test_cursor_behind_the_end_of_a_program_is_one_error_for_all_tools(tools: Tools) -> None:
    pane_id = await tools.create("echo hello")
    await tools.exited(pane_id)

    error = "Parameter 'since' is 9999, but the pane's cursor is 7. Give at most 7."
    assert await tools.error("capture_pane", pane_id=pane_id, since=9999) == error
    assert await tools.error("capture_pane", pane_id=pane_id, since=9999, pattern="x") == error
    assert await tools.error("wait", pane_id=pane_id, since=9999) == error


async def test_text_that_is_longer_than_its_bytes_keeps_to_the_size_too(tools: Tools) -> None:
    pane_id = await tools.create(python(r'print("\033[190Cok\n" * 2000, end="")'))
    await tools.exited(pane_id)
    text, meta, _ = await read(tools, pane_id, 0)

    assert 15_000 < len(text) <= 16_000
    assert meta["cut_bytes"] > 0
    assert (await read_all(tools, pane_id)).split() == ["ok"] * 2000


async def test_lines_limit_what_a_cursor_reads_and_nothing_is_left_out(tools: Tools) -> None:
    pane_id = await tools.create(r"seq 5; printf 'half\rdone\n'; seq 6 9")
    await tools.exited(pane_id)

    since, texts = 0, []
    for _ in range(4):
        [text, _status], meta = await tools.answer(
            "capture_pane", pane_id=pane_id, since=since, lines=3
        )
        since = meta["cursor"]
        texts.append(text)
    assert texts == ["1\n2\n3\n", "4\n5\ndone\n", "6\n7\n8\n", "9\n"]


# Every control character, U+0080 to U+009F as UTF-8. What reads a string after some is ended.
CONTROLS = "".join(
    f"{number:02x}{chr(number)}{number:02x}\033\\" for number in [*range(0x20), *range(0x7F, 0xA0)]
)


@pytest.mark.parametrize(
    "before", ["", "\033[?1049h", "\033[5;5H"], ids=["lines", "other", "screen"]
)
async def test_no_result_contains_a_control_character(
    tools: Tools, tmp_path: Path, before: str
) -> None:
    (tmp_path / "text").write_text(f"{before}{CONTROLS}\r\nlast\r\n")
    show = f"cat {tmp_path}/text"
    created = await tools.call("create_pane", command=f"{show}; exec cat", wait_for="last")
    shell = await tools.create("bash --norc")
    results = [created]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("capture_pane", {"pane_id": "debug-1"}),
        ("capture_pane", {"pane_id": "debug-1", "since": 0}),
        ("capture_pane", {"pane_id": "debug-1", "pattern": "9b|last"}),
        ("wait", {"pane_id": "debug-1", "pattern": "last", "since": 0}),
        ("wait", {"pane_id": "debug-1", "pattern": "last", "since": 0, "show": "9b|last"}),
        ("run", {"command": show}),
        ("run", {"command": show, "show": "9b|last"}),
        ("run", {"command": show, "pane_id": shell}),
        ("send_keys", {"pane_id": shell, "keys": f"{show}; cat Enter"}),
    ]
    for tool, arguments in calls:
        results.append(await tools.call(tool, **arguments))
    for result in results:
        shown = "".join(texts(result))
        assert "9b" in shown or "unchanged" in shown
        assert {one for one in shown if category(one) == "Cc"} <= {"\t", "\n"}
