"""The log of a pane is searched without being read."""

import re

import pytest
from support import PATIENCE_S, Tools, python, texts

LINES = python("""
for number in range(20_000):
    colour = number % 7 == 0
    line = f"line {number} " + "x" * 60
    print(f"\\033[31m{line}\\033[0m" if colour else line)
    if number in (5, 10_000, 19_998):
        print(f"ERROR at {number}")
""")


async def found(tools: Tools, **arguments: object) -> tuple[list[str], str]:
    """Return the lines that a search returns, and the last line of the answer."""
    result = await tools.call("capture_pane", pane_id="debug-1", **arguments)
    text, status = texts(result)
    return text.split("\n"), status


async def test_lines_that_match_are_found_behind_their_cursors(tools: Tools) -> None:
    await tools.create(LINES, timeout_s=PATIENCE_S)
    lines, status = await found(tools, pattern="^ERROR")

    places = [re.fullmatch(r"(\d+): (ERROR at \d+)", line) for line in lines]
    assert [place and place[2] for place in places] == [
        "ERROR at 5",
        "ERROR at 10000",
        "ERROR at 19998",
    ]
    assert "; 3 lines match; " in status
    for place in filter(None, places):
        assert await tools.capture("debug-1", since=int(place[1]), lines=1) == f"{place[2]}\n"


async def test_lines_around_those_that_match_stand_once_as_in_grep(tools: Tools) -> None:
    await tools.create(LINES, timeout_s=PATIENCE_S)
    lines, status = await found(tools, pattern="^ERROR|^line 10001", context=1)

    assert [re.sub(r"^\d+|[ x]+$", "", line) for line in lines] == [
        *("- line 5", ": ERROR at 5", "- line 6"),
        "[...]",
        *("- line 10000", ": ERROR at 10000", ": line 10001", "- line 10002"),
        "[...]",
        *("- line 19998", ": ERROR at 19998", "- line 19999"),
    ]
    assert "; 4 lines match; " in status
    first = re.match(r"\d+", lines[0])
    assert first
    assert (await tools.capture("debug-1", since=int(first[0]))).startswith("line 5 ")


async def test_newest_lines_are_found(tools: Tools) -> None:
    await tools.create(LINES, timeout_s=PATIENCE_S)
    lines, status = await found(tools, pattern="^line 1999", lines=4)

    assert [line.split()[2] for line in lines] == ["19996", "19997", "19998", "19999"]
    assert "; the newest 4 lines that match; " in status
    _, status = await found(tools, pattern="^line 1999", lines=1)
    assert "; the newest line that matches; " in status


async def test_colours_and_what_was_overwritten_do_not_hide_or_show_a_line(tools: Tools) -> None:
    program = "printf '\\033[1mbo\\033[0mld\\n10%%\\r20%%\\rready\\ntypo\\b\\b\\b\\bright\\n'"
    await tools.create(program, timeout_s=PATIENCE_S)

    for word in ("bold", "ready", "right"):
        [line], _ = await found(tools, pattern=f"^{word}$")
        assert line.endswith(f": {word}")
    assert (await found(tools, pattern="10%"))[1].startswith("[debug-1 exited")
    assert "no line matches" in (await found(tools, pattern="10%"))[1]


async def test_pattern_may_be_a_word_that_is_a_default_elsewhere(tools: Tools) -> None:
    await tools.create("printf '%s\\n' two lines long", timeout_s=PATIENCE_S)

    lines, _ = await found(tools, pattern="lines", context=1)
    assert [re.sub(r"^\d+", "", line) for line in lines] == ["- two", ": lines", "- long"]


async def test_search_begins_at_a_cursor(tools: Tools) -> None:
    await tools.create("echo one; echo two; echo one", timeout_s=PATIENCE_S)

    assert "; 2 lines match; " in (await found(tools, pattern="one"))[1]
    assert "; 1 line matches; " in (await found(tools, pattern="one", since=4))[1]
    assert "no line matches" in (await found(tools, pattern="three"))[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "("}, "is not an RE2 regular expression"),
        (
            {"pattern": "x", "view": "ansi"},
            "Parameter 'view' is 'ansi', which shows the pane as it is now. Omit it, or parameter",
        ),
        ({"view": "screen", "lines": 5}, "or parameter 'lines'."),
        ({"view": "screen", "pattern": "lines"}, "or parameter 'pattern'."),
        ({"view": "rows"}, "It must be one of lines, screen, ansi"),
        ({"context": 2}, "Give parameter 'pattern', too."),
        ({"pattern": "x", "since": 99}, "Parameter 'since' is 99, but the pane's cursor is"),
        ({"pattern": ""}, "Parameter 'pattern' is"),
    ],
)
async def test_bad_searches_are_errors(
    tools: Tools, arguments: dict[str, object], message: str
) -> None:
    await tools.create("cat")
    assert message in await tools.error("capture_pane", pane_id="debug-1", **arguments)


async def test_result_is_bounded_and_keeps_the_newest(tools: Tools) -> None:
    await tools.create(LINES, timeout_s=PATIENCE_S)
    lines, _ = await found(tools, pattern="0 x", lines=1000)

    assert sum(map(len, lines)) <= 40_000
    assert re.match(r"\d+: line 1999", lines[-1])


@pytest.mark.parametrize(
    ("program", "pattern", "count"),
    [
        ("print('HTTP/1.1 200 OK', end='\\r\\n')", "200 OK$", 1),
        ("print('abcdefghij\\rXY')", "^XYcdef", 1),
        ("print('abc\\b\\b')", "^abc$", 1),
        ("print('one'); print('two')", "^", 2),
        ("print('one'); print('two')", "x*", 2),
        ("print('one'); print('two')", "^$", 0),
        ("print('k' * 30000 + 'DEEP' + 'k' * 100)", "DEEP", 1),
    ],
)
async def test_what_is_searched_is_what_a_terminal_shows(
    tools: Tools, program: str, pattern: str, count: int
) -> None:
    await tools.create(python(program), timeout_s=PATIENCE_S)
    lines, status = await found(tools, pattern=pattern)

    assert {0: "no line matches", 1: "; 1 line matches; "}.get(
        count, f"; {count} lines match; "
    ) in status
    if pattern == "DEEP":
        assert "DEEP" in "".join(lines)


async def test_command_is_found_and_no_private_path(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    await tools.blocks("run", pane_id="debug-1", command="echo marker-out")

    assert "no line matches" in (await found(tools, pattern="tmux-debug"))[1]
    assert "; 2 lines match; " in (await found(tools, pattern="marker-out"))[1]


async def test_what_does_not_fit_into_a_result_is_counted(tools: Tools) -> None:
    await tools.create(
        python("for n in range(3000): print('hit', n, 'z' * 90)"), timeout_s=PATIENCE_S
    )
    result = await tools.call("capture_pane", pane_id="debug-1", pattern="hit", lines=1000)
    text, status = texts(result)

    assert len(text) <= 40_000
    assert "; the newest 1000 lines that match; " in status
    assert "older matching lines left out]" in text.split("\n")[0]
    assert "hit 2999 " in text
