"""Text in columns: what is folded fits, and nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.viewing.columns import BOLD, RED, Cell, columns_of, has_styles, row

TEXT = st.text("ab 日é\u0301", max_size=60)


def shown(cells: list[Cell], *widths: int) -> list[str]:
    return row(cells, widths, 2, is_plain=True).splitlines()


@given(TEXT, TEXT, st.integers(2, 20), st.integers(2, 20))
def test_cells_fit_and_keep_their_text(one: str, two: str, width: int, other_width: int) -> None:
    lines = shown([[(one, BOLD)], [(two, ""), ("x", RED)]], width, other_width)

    assert max(map(columns_of, lines)) <= width + 2 + other_width
    kept = "".join("".join(lines).split())
    assert sorted(kept) == sorted("".join(f"{one}{two}x".split()))
    assert "".join("".join(shown([[(one, "")]], width)).split()) == "".join(one.split())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two", ["one ", "two"]),
        ("one  two", ["one  ", "two"]),
        ("a longer", ["a ", "longe", "r"]),
        ("日本語", ["日本", "語"]),
        ("one\n two", ["one", "two"]),
        (" a b", [" a b"]),
    ],
)
def test_text_is_broken_at_blanks_or_within_long_words(text: str, lines: list[str]) -> None:
    assert shown([[(text, "")]], 5) == lines


def test_columns_begin_where_they_should_and_lines_end_without_blanks() -> None:
    cells: list[Cell] = [[("日", "")], [], [("one two", "")]]
    assert shown(cells, 4, 3, 3) == ["日         one", "           two"]


def test_each_piece_has_its_style() -> None:
    assert row([[("a b", BOLD), ("c", "")]], [2], 1, is_plain=False) == (
        "\x1b[1ma \x1b[0m\n\x1b[1mb\x1b[0mc\n"
    )


@pytest.mark.parametrize(
    ("environ", "expected"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_styles_may_be_unwanted(environ: dict[str, str], *, expected: bool) -> None:
    assert has_styles(environ) is expected
