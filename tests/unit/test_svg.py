"""Pictures of screens as SVG."""

import re
from xml.etree import ElementTree as ET

import pytest

from tmux_debug_mcp.viewing.svg import animation, svg
from tmux_debug_mcp.vt.screen import Screen, captured_cells

TEXT = "{http://www.w3.org/2000/svg}text"


def screen(data: str, columns: int = 20, rows: int = 4) -> Screen:
    cells = captured_cells(data.encode(errors="surrogatepass"), widens_emoji=True)
    return Screen(columns, rows, (0, 0), is_cursor_shown=False, rows=cells)


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314  our own


def texts(picture: str) -> list[ET.Element]:
    return [element for element in parsed(picture).iter(TEXT) if element.get("class") is None]


def test_text_is_text_in_its_columns() -> None:
    [text] = texts(svg(screen("  hello  \n")))

    assert text.text == "hello"
    assert (text.get("x"), text.get("textLength")) == ("16.8", "42.0")


def test_wide_characters_take_two_columns() -> None:
    [wide, after] = texts(svg(screen("日本\033[1mx\n")))

    assert wide.get("textLength") == "33.6"
    assert after.get("x") == "33.6"


def test_styles_are_shown() -> None:
    picture = svg(screen("\033[1;3;4;31ma\033[0;9mb\033[0;48;5;21m \033[0;8mc\033[0m\n"))

    red, struck = texts(picture)
    assert (red.get("fill"), red.get("font-weight")) == ("#ff0000", "bold")
    assert (red.get("font-style"), red.get("text-decoration")) == ("italic", "underline")
    assert struck.get("text-decoration") == "line-through"
    assert '<rect x="16.8" width="8.4" height="18" fill="#0000ff"/>' in picture


@pytest.mark.parametrize(
    "hostile",
    ["<script>alert(1)</script>", "]]>&lt;<!--", '" onload="x', "</svg>", "&#0;", "\x7f\ufffe"],
)
def test_nothing_that_is_printed_becomes_markup(hostile: str) -> None:
    picture = svg(screen(f"{hostile}\n", columns=60), title=hostile)

    tree = parsed(picture)
    assert not [element for element in tree.iter() if "script" in element.tag]
    assert tree.get("onload") is None
    assert "".join(text.text or "" for text in texts(picture)) == hostile.replace(
        "\ufffe", "\ufffd"
    )


def test_animation_has_each_row_once_and_each_screen_at_its_time() -> None:
    frames = [(5.0, screen("one\n")), (6.0, screen("one\ntwo\n")), (7.0, screen("one\ntwo\n"))]

    picture = animation(frames, title="counting")

    parsed(picture)
    assert len(texts(picture)) == 2
    moves = re.findall(r"([\d.]+)%\{transform:translateY\(-(\d+)px\)\}", picture)
    assert moves == [("0.000", "0"), ("20.000", "72"), ("100", "72")]
    assert "film 5.00s steps(1,end) infinite" in picture
    assert "<script" not in picture
