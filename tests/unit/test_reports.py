"""How a report shows a screen: whole, or what has changed since a result showed it."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import excerpt_of

from tmux_debug_mcp.logs.excerpts import GAP_CHARACTERS, folded
from tmux_debug_mcp.panes.caller_session import ShownScreen
from tmux_debug_mcp.panes.reports import hidden_rows, screen_excerpt
from tmux_debug_mcp.vt.captured import Highlight, ScreenRows

FIRST = "[row 3 is highlighted: first item]"
MENU = ["Menu", "", "  first item", "  second item", "  third item", "", "Enter chooses"]


def highlight(rows: Sequence[str], number: int | None) -> Highlight | None:
    return None if number is None else Highlight(number, rows[number])


def screen(rows: Sequence[str], highlighted: int | None = None) -> ScreenRows:
    found = highlight(rows, highlighted)
    return ScreenRows(list(rows), (80, 24), is_alternate=True, highlighted=found)


def shown(
    rows: Sequence[str],
    highlighted: int | None = None,
    *,
    hidden: Sequence[int] = (),
    is_filtered: bool = False,
) -> ShownScreen:
    return ShownScreen(100, 0.0, screen(rows, highlighted), frozenset(hidden), is_filtered)


def with_row(number: int, row: str) -> list[str]:
    return [*MENU[:number], row, *MENU[number + 1 :]]


@pytest.mark.parametrize(
    ("now", "before", "lines", "notes"),
    [
        (screen(MENU), None, MENU, []),
        (screen(MENU), shown(MENU), ["[screen unchanged]"], [0]),
        (screen(MENU), shown(MENU, is_filtered=True), MENU, []),
        (screen(MENU), shown(MENU, hidden=[2]), MENU, []),
        (screen(with_row(3, "  2nd")), shown(MENU), ["[row 4]", "  2nd"], [0]),
        (screen(with_row(3, "")), shown(MENU), ["[row 4 blank]"], [0]),
        (
            screen([*with_row(3, "  2nd")[:4], "  3rd", *MENU[5:]]),
            shown(MENU),
            ["[rows 4-5]", "  2nd", "  3rd"],
            [0],
        ),
        (
            screen(["New", *MENU[1:4], "  3rd", *MENU[5:]]),
            shown(MENU),
            ["[row 1]", "New", "[row 5]", "  3rd"],
            [0, 2],
        ),
        (screen(MENU[:-1]), shown(MENU), ["[row 7 blank]"], [0]),
        (screen(MENU[:-3]), shown([*MENU[:-3], "x", "y"]), ["[rows 5-6 blank]"], [0]),
        (screen([*MENU, "", "Help"]), shown(MENU), ["[row 9]", "Help"], [0]),
        # A row that is blank among others that are not, in one group.
        (
            screen([*MENU[:2], "  1st", "", "  3rd", *MENU[5:]]),
            shown(MENU),
            ["[rows 3-5]", "  1st", "", "  3rd"],
            [0],
        ),
        # All has changed: it is cheaper whole.
        (screen(["a", "b"]), shown(["c", "d"]), ["a", "b"], []),
    ],
)
def test_rows_that_have_changed_come_with_their_numbers(
    now: ScreenRows, before: ShownScreen | None, lines: list[str], notes: list[int]
) -> None:
    assert screen_excerpt(now, before, None, 1000) == excerpt_of(lines, notes)


@pytest.mark.parametrize(
    ("now", "before", "lines"),
    [
        (screen(MENU, 2), None, [*MENU, FIRST]),
        (screen(MENU, 3), shown(MENU, 2), ["[row 4 is highlighted: second item]"]),
        (screen(MENU, 3), shown(MENU), ["[row 4 is highlighted: second item]"]),
        (screen(MENU), shown(MENU, 2), ["[no single row is highlighted]"]),
        # All has changed, and no row is highlighted any more.
        (screen(["a", "b"]), shown(MENU, 2), ["a", "b", "[no single row is highlighted]"]),
        (screen(MENU, 2), shown(MENU, 2), ["[screen unchanged]"]),
        (screen(MENU, 2), shown(MENU, 2, is_filtered=True), [*MENU, FIRST]),
        (screen(with_row(3, "  2nd"), 2), shown(MENU, 2), ["[row 4]", "  2nd"]),
        # Another text in the row that was highlighted before.
        (
            screen(with_row(3, "│ 2nd │"), 3),
            shown(MENU, 3),
            ["[row 4]", "│ 2nd │", "[row 4 is highlighted: 2nd]"],
        ),
        (
            screen(with_row(3, "x" * 50), 3),
            shown(MENU, 2),
            ["[row 4]", "x" * 50, f"[row 4 is highlighted: {'x' * 40}…]"],
        ),
    ],
)
def test_row_that_is_highlighted_is_named_when_it_is_new(
    now: ScreenRows, before: ShownScreen | None, lines: list[str]
) -> None:
    excerpt = screen_excerpt(now, before, None, 1000)
    assert excerpt.lines == lines
    assert excerpt.notes == [n for n, line in enumerate(lines) if line.startswith("[")]


@pytest.mark.parametrize("number", range(50))
@pytest.mark.parametrize("is_match", [True, False])
def test_row_that_matches_or_is_highlighted_stays_of_a_screen_that_is_cut(
    number: int, *, is_match: bool
) -> None:
    rows = [f"row {row} ".ljust(90, "x") for row in range(50)]
    now = screen(rows, 49 - number if is_match else number)
    excerpt = screen_excerpt(now, None, number if is_match else None, 1000)

    assert rows[number] in excerpt.lines
    assert excerpt.cut_bytes
    assert len(excerpt.text) <= 1000 + GAP_CHARACTERS


ROWS = st.lists(st.sampled_from(["", "a", "bb", "  c", "dddd"]), max_size=12)


@given(ROWS, ROWS, st.integers(0, 3))
def test_screen_can_be_told_from_the_one_before_and_the_changes(
    before: list[str], now: list[str], blanks: int
) -> None:
    """Whoever has the screen that was shown, and applies what comes now, has the screen."""
    before = [*before, *["x"] * bool(before)]
    now = [*now, *[""] * blanks, *["x"] * bool(now)]
    excerpt = screen_excerpt(screen(now), shown(before), None, 1000)
    if excerpt.lines == ["[screen unchanged]"]:
        assert now == before
        return
    if not excerpt.lines[:1] or not excerpt.lines[0].startswith("[row"):
        assert excerpt == folded(excerpt_of(now, []))
        return
    rows = [*before, *[""] * (len(now) - len(before))]
    lines = iter(excerpt.lines)
    for line in lines:
        found = re.fullmatch(r"\[rows? (\d+)(?:-(\d+))?( blank)?\]", line)
        assert found
        first, last = int(found[1]), int(found[2] or found[1])
        for number in range(first - 1, last):
            rows[number] = "" if found[3] else next(lines)
    while rows and not rows[-1]:
        rows.pop()
    assert rows == now


LONG = [f"{number} " + "x" * 60 for number in range(24)]


def test_screen_that_is_cut_again_is_told_by_its_changes() -> None:
    changed = [*LONG[:9], "nine", *LONG[10:]]
    excerpt = screen_excerpt(screen(changed), shown(LONG, hidden=[6, 8, 9, 10]), None, 1000)
    assert excerpt.lines == ["[row 10]", "nine", "[rows 7, 9, 11 left out]"]
    assert excerpt.notes == [0, 2]


def test_rows_that_were_left_out_are_not_called_unchanged() -> None:
    first = screen_excerpt(screen(LONG), None, None, 1000)
    hidden = hidden_rows(LONG, None, first)
    assert [number for number, row in enumerate(LONG) if row not in first.lines] == sorted(hidden)

    again = screen_excerpt(screen(LONG), shown(LONG, hidden=sorted(hidden)), None, 1000)
    assert again.lines == ["[rows 1-3, 15-24 unchanged]", "[rows 4-14 left out]"]
    assert hidden_rows(LONG, shown(LONG, hidden=sorted(hidden)), again) == hidden


SCREENS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["", *LONG[:3], "short"]), max_size=20),
        st.sampled_from([300, 1000]),
        st.booleans(),
    ),
    max_size=6,
)


@given(SCREENS)
def test_row_that_an_excerpt_does_not_show_was_shown_before_or_is_named(
    screens: list[tuple[list[str], int, bool]],
) -> None:
    before, seen = None, {""}
    for rows, room, is_filtered in screens:
        now = [*rows, "end"]
        excerpt = screen_excerpt(screen(now), before, None, room)
        if is_filtered:
            excerpt = excerpt_of([row for row in now if row == "short"], [])
        seen.update(excerpt.lines)
        hidden = hidden_rows(now, before, excerpt)
        assert {row for number, row in enumerate(now) if number not in hidden} <= seen
        if not excerpt.cut_bytes and not is_filtered:
            named = re.findall(r"^\[rows? (.*) left out\]$", excerpt.text, re.MULTILINE)
            left_out = {int(first) for first in re.findall(r"\d+", " ".join(named))}
            assert bool(hidden) == bool(left_out)
        before = ShownScreen(100, 0.0, screen(now), hidden, is_filtered)
