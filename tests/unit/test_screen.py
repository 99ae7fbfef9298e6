"""Captures with attributes become cells."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.pictures.screen import Cell, DrawnScreen, captured_cells
from tmux_debug_mcp.pictures.styles import Style


def cells(text: str, *, widens_emoji: bool = True) -> list[Cell]:
    [row] = captured_cells(text.encode(), widens_emoji=widens_emoji)
    return row


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("31", {"foreground": 1}),
        ("97", {"foreground": 15}),
        ("40", {"background": 0}),
        ("107", {"background": 15}),
        ("38;5;208", {"foreground": 208}),
        ("48:5:17", {"background": 17}),
        ("38;2;1;2;3", {"foreground": (1, 2, 3)}),
        ("48:2::4:5:6", {"background": (4, 5, 6)}),
        ("58:2::7:8:9", {"underline_colour": (7, 8, 9)}),
        ("58;5;9", {"underline_colour": 9}),
        ("1;3;4;5;7;8;9;53", {"bold": True, "italic": True, "underline": "single"}
         | {"reverse": True, "hidden": True, "struck": True, "overlined": True}),
        ("2", {"dim": True}),
        ("4:2", {"underline": "double"}),
        ("4:3", {"underline": "curly"}),
        ("4:4", {"underline": "dotted"}),
        ("4:5", {"underline": "dashed"}),
        ("21", {"underline": "double"}),
        ("5:3", {"overlined": True}),
        ("1;5;5:3", {"bold": True, "overlined": True}),
        ("5:9", {}),
        ("31;41;0", {}),
        ("", {}),
        ("31;39;41;49;58;5;1;59", {}),
        ("1;2;3;4;5;7;8;9;53;22;23;24;25;27;28;29;55", {}),
        ("38", {}),
        ("38;7", {}),
        ("4:9", {"underline": "single"}),
        ("999", {}),
        ("90;100", {"foreground": 8, "background": 8}),
        ("98;99;108;109", {}),
        # What is incomplete or out of range, as tmux 3.3 takes it.
        ("31;38", {"foreground": 1}),
        ("31;38;5", {}),
        ("31;38;5;", {}),
        ("31;38;5;256", {}),
        ("31;38:5", {"foreground": 1}),
        ("31;38:5:", {}),
        ("31;38:5:300", {}),
        ("31;38:6:1", {"foreground": 1}),
        ("41;48:2", {"background": 1}),
        ("41;48:2:1:2", {"background": 1}),
        ("41;48:2::1:2", {"background": 1}),
        ("41;48:2:::1:2", {"background": 1}),
        ("41;48:2:1:2:300", {"background": 1}),
        ("48:2:1:2:3", {"background": (1, 2, 3)}),
        ("48:2:1:2:3:4:5", {"background": (2, 3, 4)}),
        ("38:5;1", {"bold": True}),
        ("38;2;1", {"bold": True}),
        ("38;2;1;3", {"bold": True, "italic": True}),
        ("38;2;300;1;3", {"bold": True, "italic": True}),
        ("31;38;2;;;", {}),
        ("1:2", {}),
        ("31;" + "9" * 5000, {"foreground": 1}),
    ],
)  # fmt: skip
def test_attributes_are_read(parameters: str, expected: dict[str, Any]) -> None:
    assert cells(f"\033[{parameters}mx") == [Cell("x", 1, Style(**expected))]


def test_attributes_go_on_in_the_next_row() -> None:
    rows = captured_cells(b"a\033[1mb\nc\033[0md\n", widens_emoji=True)

    assert [[cell.style.bold for cell in row] for row in rows] == [[False, True], [True, False]]


@pytest.mark.parametrize(
    ("text", "tmux", "expected"),
    [
        ("日本", "3.4", [("日", 2), ("本", 2)]),
        ("e\u0301x", "3.4", [("e\u0301", 1), ("x", 1)]),
        ("\u2764\ufe0fx", "3.4", [("\u2764\ufe0f", 2), ("x", 1)]),
        ("\u2764\ufe0fx", "3.3", [("\u2764\ufe0f", 1), ("x", 1)]),
        ("👍🏽x", "3.4", [("👍🏽", 2), ("x", 1)]),
        ("👍🏽x", "3.3", [("👍", 2), ("🏽", 2), ("x", 1)]),
        ("👨\u200d👩\u200d👧x", "3.4", [("👨\u200d👩\u200d👧", 2), ("x", 1)]),
        ("\u1100\u1161\u11a8x", "3.3", [("\u1100\u1161\u11a8", 2), ("x", 1)]),
        ("䷀㉈x", "3.3", [("䷀", 2), ("㉈", 2), ("x", 1)]),
        ("\u0601\u1b44x", "3.3", [("\u0601", 1), ("\u1b44", 1), ("x", 1)]),
        ("\u302ex", "3.3", [("\u302e", 2), ("x", 1)]),
        ("a\u2028\x85x", "3.3", [("a\u2028\x85", 1), ("x", 1)]),
        ("\016lqk\017lqk", "3.4", [("┌", 1), ("─", 1), ("┐", 1), ("l", 1), ("q", 1), ("k", 1)]),
        (
            "\033]8;;http://x\033\\link\033]8;;\033\\",
            "3.4",
            [("l", 1), ("i", 1), ("n", 1), ("k", 1)],
        ),
    ],
)
def test_characters_take_the_columns_that_tmux_gives_them(
    text: str,
    tmux: str,
    expected: list[tuple[str, int]],
) -> None:
    assert [(cell.text, cell.width) for cell in cells(text, widens_emoji=tmux != "3.3")] == expected


def test_text_of_a_screen_has_no_blanks_at_its_ends() -> None:
    rows = captured_cells(b"  a  \n\n b\033[41m \033[0m\n\n\n", widens_emoji=True)

    assert DrawnScreen(10, 5, (0, 0), is_cursor_shown=True, rows=rows).text() == "  a\n\n b"


@given(
    st.text(
        alphabet=st.sampled_from("ab日é\u0301\u200d\ufe0f👍🏽\033[]0123456789;:mqx\016\017\a\\\n "),
        max_size=80,
    )
)
def test_no_capture_is_too_odd(text: str) -> None:
    for row in captured_cells(text.encode(), widens_emoji=True):
        assert all(cell.width in (1, 2) and cell.text for cell in row)
