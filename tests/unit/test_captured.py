"""Captures with attributes as lines: whatever they contain, and in work that grows with them."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import done

from tmux_debug_mcp.turns import TURN_WORK
from tmux_debug_mcp.vt import captured
from tmux_debug_mcp.vt.captured import captured_lines, highlighted_row

# What tmux writes into a capture.
PARTS = st.sampled_from(
    [
        *("\033[m", "\033[48;2;10;20;30m", "\033[7m", "\033]8;;http://a.b\033\\", "\033]8;;\033\\"),
        *(" ", "   ", "\t", "m", "text", "漢", "\n", "\n\n", "\016", "qx\017", "\017"),
    ]
)
SGR = re.compile(r"\033\[[0-9;:]*m")
COLOURS = "".join(f"\033[48;2;{number % 256};7;7m{{}}" for number in range(500))


def without_blank_end(line: str) -> str:
    """Return a line without blanks at its end, one character after the other."""
    kept = ""
    while True:
        line = line.rstrip(" \t")
        last = SGR.search(line, max(0, line.rfind("\033")))
        if last is None or last.end() < len(line):
            return line + kept
        line, kept = line[: last.start()], last[0] + kept


@given(st.lists(PARTS), st.integers(1, 40))
def test_capture_has_the_same_lines_in_whatever_pieces_it_is_read(
    parts: list[str], size: int
) -> None:
    data = "".join(parts)
    whole = done(captured_lines(data.encode(), ansi=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captured, "_PIECE_BYTES", size)
        assert done(captured_lines(data.encode(), ansi=True)) == whole
        plain = done(captured_lines(data.encode()))
    expected = [without_blank_end(line) for line in captured.with_line_drawing(data).split("\n")]
    assert whole == expected[: len(whole)]
    assert not any(SGR.sub("", line) for line in expected[len(whole) :])
    assert all(line == line.rstrip(" \t") and "\033" not in line for line in plain)


def pieces_of_work(data: str) -> Iterator[int]:
    yield from captured_lines(data.encode(), ansi=True)
    yield from highlighted_row(data.encode(), 200)


@pytest.mark.parametrize("cell", ["x", " ", "\033[m ", "\033]8;;http://a.b\033\\x\033]8;;\033\\"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_work_on_a_capture_grows_with_it_and_is_done_in_small_pieces(cell: str, end: str) -> None:
    row = COLOURS.format(*[cell] * 500) + end
    works = [list(pieces_of_work(row * rows)) for rows in (40, 80)]

    assert sum(works[1]) < 2.1 * sum(works[0])
    if end:
        assert max(works[1]) < 2 * TURN_WORK


def test_end_of_a_line_with_a_million_coloured_blanks_is_found() -> None:
    line = "x" + "\033[44m " * 1_000_000

    assert done(captured_lines(line.encode(), ansi=True)) == ["x" + "\033[44m" * 1_000_000]
    assert done(captured_lines(line.encode())) == ["x"]
