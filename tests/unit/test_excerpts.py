"""Texts that are cut, and lines that are counted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import excerpt_of

from tmux_debug_mcp.logs.excerpts import (
    GAP_CHARACTERS,
    Excerpt,
    GapNote,
    cut_in_the_middle,
    folded,
    joined,
    newest_lines,
    without_blank_ends,
)


def folded_lines(*lines: str) -> Excerpt:
    return folded(excerpt_of(list(lines), []))


def test_lines_that_repeat_more_than_three_times_stand_once_with_their_count() -> None:
    assert folded_lines("a", "b", "b", "b", "c") == excerpt_of(["a", "b", "b", "b", "c"], [])
    assert folded_lines("a", *["b"] * 4, "c") == excerpt_of(
        ["a", "b", "[the line above: 4 times]", "c"], [2]
    )


def test_blank_lines_are_counted_alone() -> None:
    assert folded_lines("a", *[""] * 9, "b") == excerpt_of(["a", "[9 blank lines]", "b"], [1])
    assert folded_lines("", "", "", "b").notes == []


def test_notes_are_neither_folded_nor_counted_with_lines_that_look_like_them() -> None:
    shown = excerpt_of(["[screen]"] * 6, [0, 5], 7)
    assert folded(shown) == excerpt_of(
        ["[screen]", "[screen]", "[the line above: 4 times]", "[screen]"], [0, 2, 3], 7
    )


@pytest.mark.parametrize(
    ("line", "shown", "note"),
    [
        ("y" * 200, "y", "'y' in the line above: 200 times"),
        ("begin " + "ab" * 500 + "! end", "begin ab! end", "'ab' in the line above: 500 times"),
        ("ab" * 500 + "a", "aba", "'ab' in the line above: 500 times"),
        ("x" * 100 + "-" * 150, None, "'-' in the line above: 150 times"),
        ("0123456789" * 10_000, "0123456789", "'0123456789' in the line above: 10000 times"),
        ("é日" * 200, "é日", "'é日' in the line above: 200 times"),
        ("\t'" * 200, "\t'", '"\\t\'" in the line above: 200 times'),
    ],
)
def test_text_that_repeats_within_a_line_stands_once_with_its_count(
    line: str, shown: str | None, note: str
) -> None:
    if shown is None:
        assert folded_lines(line) == excerpt_of([line], [])
    else:
        assert folded_lines("one", line, "two") == excerpt_of(
            ["one", shown, f"[{note}]", "two"], [2]
        )


@pytest.mark.parametrize(
    "line",
    [
        "y" * 199,  # short
        " ".join(map(str, range(1000))),  # nothing repeats
        "".join(chr(0x4E00 + number) for number in range(101)) * 10,  # a long text repeats
        "".join(map(str, range(100))) + "y" * 180 + "".join(map(str, range(100))),  # a small part
        " " * 1000,
        "",
    ],
)
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert folded_lines(line) == excerpt_of([line], [])


@given(
    st.text(st.sampled_from("abc"), max_size=120),
    st.text(st.sampled_from("abc"), min_size=1, max_size=12),
    st.integers(1, 400),
    st.text(st.sampled_from("abc"), max_size=120),
)
def test_folded_line_can_be_told_in_full(before: str, text: str, count: int, after: str) -> None:
    """What is folded is the line that there was, with the text as often as the note says."""
    line = before + text * count + after
    shown = folded_lines(line)
    if not shown.notes:
        assert shown.lines == [line]
        return
    short, note = shown.lines
    found = re.fullmatch(r"\['([abc]+)' in the line above: (\d+) times\]", note)
    assert found
    repeated, times = found[1], int(found[2])
    places = [at for at in range(len(short)) if short.startswith(repeated, at)]
    assert any(short[:at] + repeated * (times - 1) + short[at:] == line for at in places)


def test_text_that_fits_is_not_cut() -> None:
    shown = excerpt_of(["one", "two"], [1])
    assert cut_in_the_middle(shown, 7) is shown


def test_what_is_little_longer_than_the_limit_is_cheaper_whole() -> None:
    fits = excerpt_of(["x" * 100] * 10, [])
    most = len(fits.text) - GAP_CHARACTERS
    assert cut_in_the_middle(fits, most) is fits
    assert cut_in_the_middle(fits, most - 1).cut_bytes > GAP_CHARACTERS


def test_text_that_is_too_long_loses_its_middle_and_says_so() -> None:
    lines = [f"line {number}" for number in range(1000)]
    shown = cut_in_the_middle(excerpt_of(lines, []), 1000)

    [marked] = shown.notes
    left_out = 1000 - len(shown.lines) + 1
    assert shown.lines[marked] == f"[{left_out} lines left out]"
    assert shown.cut_bytes == sum(map(len, lines[marked : marked + left_out])) + left_out
    assert shown.lines[:marked] == lines[:marked]
    assert shown.lines[marked + 1 :] == lines[marked + left_out :]
    assert marked * 2 < len(shown.lines) - marked
    assert len(shown.text) <= 1000


def test_line_that_is_too_long_is_cut_itself() -> None:
    shown = cut_in_the_middle(excerpt_of(["a", "begin" + "x" * 5000 + "end"], []), 1000)

    line, head, note, tail = shown.lines
    assert (line, head[:6], tail[-4:]) == ("a", "beginx", "xend")
    assert note == f"[{shown.cut_bytes:,} bytes left out]"
    assert len(head) + shown.cut_bytes + len(tail) == 5008
    assert 900 < len(shown.text) <= 1000


@given(
    st.lists(st.integers(0, 1500).map(lambda size: "é" * size), min_size=1, max_size=9),
    st.integers(200, 3000),
)
def test_what_is_shown_and_what_is_left_out_is_all_of_it(
    lines: list[str], max_characters: int
) -> None:
    shown = cut_in_the_middle(excerpt_of(lines, []), max_characters)

    assert len(shown.text) <= max_characters + (0 if shown.notes else GAP_CHARACTERS)
    kept = [line for index, line in enumerate(shown.lines) if index not in shown.notes]
    joined_bytes = len("\n".join(lines).encode())
    assert abs(sum(len(line.encode()) + 1 for line in kept) + shown.cut_bytes - joined_bytes) <= 2


def test_marks_keep_their_places_when_parts_are_joined() -> None:
    gap = excerpt_of(["[2 lines left out]"], [0], 10)._replace(gaps=(GapNote(0, 7, 2, ""),))
    text = joined(excerpt_of(["", "a"], []), gap, excerpt_of(["b", "c"], [1]))
    lines = ["a", "[2 lines left out]", "b", "c"]
    gaps = (GapNote(1, 7, 2, ""),)
    assert without_blank_ends(text) == excerpt_of(lines, [1, 3], 10)._replace(gaps=gaps)


@given(
    st.lists(st.text(st.characters(exclude_characters="\n"), max_size=300), min_size=1),
    st.integers(200, 2000),
)
def test_no_text_is_longer_than_it_may_be_and_nothing_is_invented(
    lines: list[str], most: int
) -> None:
    shown = cut_in_the_middle(excerpt_of(lines, []), most)
    assert len(shown.text) <= most + (0 if shown.notes else GAP_CHARACTERS)
    for number, line in enumerate(shown.lines):
        assert number in shown.notes or any(other.endswith(line) for other in lines)


@pytest.mark.parametrize("count", [4, 5, 100])
def test_folding_loses_no_count(count: int) -> None:
    assert folded_lines(*["x"] * count).lines == ["x", f"[the line above: {count} times]"]


@pytest.mark.parametrize("keep", range(50))
def test_line_that_has_to_stay_stays(keep: int) -> None:
    lines = [f"row {number} " + "x" * 190 for number in range(50)]
    shown = cut_in_the_middle(excerpt_of(lines, []), 9_500, keep)
    assert lines[keep] in shown.lines
    assert len(shown.text) <= 9_500


@pytest.mark.parametrize(
    ("most", "lines"),
    [(1, ["[b]", "3"]), (2, ["2", "[b]", "3"]), (3, ["[a]", "1", "2", "[b]", "3"]), (9, None)],
)
def test_newest_lines_keep_the_notes_before_and_among_them(
    most: int, lines: list[str] | None
) -> None:
    excerpt = excerpt_of(["[a]", "1", "2", "[b]", "3"], [0, 3], 7)

    found = newest_lines(excerpt, most)

    assert found.lines == (lines or excerpt.lines)
    assert [found.lines[number][0] for number in found.notes] == ["["] * len(found.notes)
    assert found.cut_bytes == 7


def test_blank_ends_are_left_out_folded_ones_too() -> None:
    blank = [""] * 20
    excerpt = folded(excerpt_of([*blank, "one", *blank, "[20 blank lines]", *blank], []))

    assert without_blank_ends(excerpt) == excerpt_of(
        ["one", "[20 blank lines]", "[20 blank lines]"], [1]
    )
    assert without_blank_ends(folded(excerpt_of(blank, []))).lines == []


def test_part_of_a_line_that_stays_is_not_blank() -> None:
    excerpt = excerpt_of([" " * 40 + "one" + " " * 40] * 9, [])
    assert not any(line.isspace() for line in cut_in_the_middle(excerpt, 200).lines)
