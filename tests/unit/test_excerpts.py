"""Texts that are cut, and lines that are counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.logs.excerpts import Excerpt, cut_in_the_middle, folded, gap, joined


def test_lines_that_repeat_more_than_three_times_stand_once_with_their_count() -> None:
    assert folded(["a", "b", "b", "b", "c"]) == Excerpt(["a", "b", "b", "b", "c"], [])
    assert folded(["a", *["b"] * 4, "c"]) == Excerpt(
        ["a", "b", "[the line above: 4 times]", "c"], [2]
    )


def test_blank_lines_are_counted_alone() -> None:
    assert folded(["a", *[""] * 9, "b"]) == Excerpt(["a", "[9 blank lines]", "b"], [1])
    assert folded(["", "", "", "b"]).notes == []


def test_text_that_fits_is_not_cut() -> None:
    shown = Excerpt(["one", "two"], [1])
    assert cut_in_the_middle(shown, 7) is shown


def test_text_that_is_too_long_loses_its_middle_and_says_so() -> None:
    lines = [f"line {number}" for number in range(1000)]
    shown = cut_in_the_middle(Excerpt(lines, []), 1000)

    [marked] = shown.notes
    left_out = 1000 - len(shown.lines) + 1
    assert shown.lines[marked] == f"[{left_out} lines, {shown.cut_bytes} bytes left out]"
    assert shown.lines[:marked] == lines[:marked]
    assert shown.lines[marked + 1 :] == lines[marked + left_out :]
    assert marked * 2 < len(shown.lines) - marked
    assert len(shown.text) <= 1000


def test_line_that_is_too_long_is_cut_itself() -> None:
    shown = cut_in_the_middle(Excerpt(["a", "begin" + "x" * 5000 + "end"], []), 1000)

    line, head, note, tail = shown.lines
    assert (line, head[:6], tail[-4:]) == ("a", "beginx", "xend")
    assert note == f"[{shown.cut_bytes} bytes left out]"
    assert len(head) + shown.cut_bytes + len(tail) == 5008
    assert 900 < len(shown.text) <= 1000


@given(
    st.lists(st.integers(0, 1500).map(lambda size: "é" * size), min_size=1, max_size=9),
    st.integers(200, 3000),
)
def test_what_is_shown_and_what_is_left_out_is_all_of_it(
    lines: list[str], max_characters: int
) -> None:
    shown = cut_in_the_middle(Excerpt(lines, []), max_characters)

    assert len(shown.text) <= max_characters
    kept = [line for index, line in enumerate(shown.lines) if index not in shown.notes]
    joined_bytes = len("\n".join(lines).encode())
    assert abs(sum(len(line.encode()) + 1 for line in kept) + shown.cut_bytes - joined_bytes) <= 2


def test_marks_keep_their_places_when_parts_are_joined() -> None:
    text = joined(Excerpt(["a"], []), gap(2, 10, "read them"), Excerpt(["b", "c"], [1]))
    assert text == Excerpt(["a", "[2 lines, 10 bytes left out: read them]", "b", "c"], [1, 3], 10)


@given(
    st.lists(st.text(st.characters(exclude_characters="\n"), max_size=300), min_size=1),
    st.integers(200, 2000),
)
def test_no_text_is_longer_than_it_may_be_and_nothing_is_invented(
    lines: list[str], most: int
) -> None:
    shown = cut_in_the_middle(Excerpt(lines, []), most)
    assert len(shown.text) <= most
    for number, line in enumerate(shown.lines):
        assert number in shown.notes or any(other.endswith(line) for other in lines)


@pytest.mark.parametrize("count", [4, 5, 100])
def test_folding_loses_no_count(count: int) -> None:
    assert folded(["x"] * count).lines == ["x", f"[the line above: {count} times]"]


@pytest.mark.parametrize("keep", range(50))
def test_line_that_has_to_stay_stays(keep: int) -> None:
    lines = [f"row {number} " + "x" * 190 for number in range(50)]
    shown = cut_in_the_middle(Excerpt(lines, []), 9_500, keep)
    assert lines[keep] in shown.lines
    assert len(shown.text) <= 9_500
