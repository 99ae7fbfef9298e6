"""Pictures of screens as SVG: their text is read back from the places where it is drawn."""

import re
import unicodedata
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.pictures.screen import Cell, Screen, captured_cells
from tmux_debug_mcp.pictures.styles import Style
from tmux_debug_mcp.pictures.svg import CELL_HEIGHT, CELL_WIDTH, animation, outlines, svg

SVG = "{http://www.w3.org/2000/svg}"
ORIGIN_PX = (12, 42)
BOX_DRAWING = [chr(number) for number in range(0x2500, 0x25A0)]


def screen_of(text: str, columns: int = 40, height: int = 0, *, has_cursor: bool = False) -> Screen:
    rows = captured_cells(text.encode(errors="surrogatepass"), widens_emoji=True)
    return Screen(columns, height or len(rows), (1, 0), has_cursor, rows)


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314  made here


def offset_of(element: ET.Element) -> tuple[int, int]:
    x, y = re.findall(r"-?\d+", element.get("transform", "translate(0 0)"))
    return int(x), int(y)


def rows_of(picture: str) -> dict[int, list[ET.Element]]:
    """Return the texts of each row that has any."""
    content = parsed(picture).findall(f"{SVG}g")[0]
    assert offset_of(content) == ORIGIN_PX
    return {
        offset_of(row)[1] // CELL_HEIGHT: list(row.iter(f"{SVG}text"))
        for row in content.findall(f"{SVG}g")
    }


def text_of(picture: str) -> str:
    """Return the text that a picture shows, each piece in the column where it stands."""
    rows = rows_of(picture)
    lines = []
    for number in range(max(rows, default=-1) + 1):
        line, end = "", 0
        for piece in rows.get(number, ()):
            column = int(piece.get("x", "")) // CELL_WIDTH
            assert column >= end, (line, piece.text)
            line += " " * (column - end) + (piece.text or "")
            end = column + int(piece.get("textLength", "")) // CELL_WIDTH
        lines.append(line)
    return "\n".join(lines)


def elements(picture: str, tag: str) -> list[ET.Element]:
    content = parsed(picture).findall(f"{SVG}g")[0]
    return list(content.iter(f"{SVG}{tag}"))


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "  indented\n\n    twice   inside",
        "<b>&amp;</b> ]]> <!-- \"quoted\" 'so'",
        "日本語 and 한국어|",
        "naïve Ω ✓ → ● \u2764\ufe0f 😀|",
        "e\u0301 and a\u0308 join",
        "a\033[31mred\033[42mgreen\033[0m b",
    ],
)
def test_text_is_where_it_is_on_the_screen(text: str) -> None:
    screen = screen_of(text)

    assert text_of(svg(screen)) == screen.text()


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec=None, exclude_categories=[]), min_size=1, max_size=3),
            st.sampled_from([1, 2]),
            st.sampled_from([Style(), Style(bold=True), Style(background=4, underline="curly")]),
        ),
        max_size=20,
    ),
    st.text(st.characters(codec=None, exclude_categories=[])),
)
def test_whatever_a_screen_has_is_well_formed(
    cells: list[tuple[str, int, Style]], title: str
) -> None:
    row = [Cell(*cell) for cell in cells]
    screen = Screen(30, 2, (3, 1), is_cursor_shown=True, rows=[row])

    for picture in (svg(screen, title=title), animation([(0, screen)], title=title)):
        parsed(picture.encode().decode())
        assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]", picture)


def test_hostile_characters_become_replacements() -> None:
    rows = [[Cell(text, 1, Style()) for text in ("\0", "\033", "\x9b", "\ud800", "\uffff", "<")]]
    picture = svg(Screen(40, 1, (0, 0), is_cursor_shown=False, rows=rows), title="a\nb\u202e</svg>")

    assert text_of(picture) == "\ufffd" * 5 + "<"
    assert parsed(picture).get("aria-label") == "a\ufffdb</svg>"


def test_what_is_outside_the_screen_is_left_out() -> None:
    screen = screen_of("12345日\nsecond\nthird", columns=6, height=2)

    assert text_of(svg(screen)) == "12345\nsecond"


def test_text_is_fitted_into_its_columns() -> None:
    pieces = rows_of(svg(screen_of("ab 日 ✓")))[0]

    assert [(piece.get("x"), piece.get("textLength")) for piece in pieces] == [
        ("0", "18"),
        ("27", "18"),
        ("54", "9"),
    ]


def test_words_of_a_table_are_placed_each_by_itself() -> None:
    pieces = rows_of(svg(screen_of("PID   USER  one two ")))[0]

    assert [piece.text for piece in pieces] == ["PID", "USER", "one two"]


def test_title_is_shown_and_shortened() -> None:
    picture = svg(screen_of("x", columns=40), title="a title that is much too long for it")

    label = parsed(picture).get("aria-label")
    assert label == "a title that is much to…"
    assert f">{label}</text>" in picture


def test_styles_are_shown() -> None:
    picture = svg(screen_of("\033[1;3;31ma\033[0m\033[2mb\033[0m\033[38;2;1;2;3mc"))

    bold, dim, coloured = elements(picture, "text")
    assert (bold.get("font-weight"), bold.get("font-style")) == ("bold", "italic")
    assert bold.get("fill") == "#ff0000"
    assert dim.get("fill") == "#727272"
    assert coloured.get("fill") == "#010203"


def test_reverse_has_a_background_and_hidden_text_is_not_there() -> None:
    picture = svg(screen_of("\033[7m on \033[0m\033[8;41msecret"))

    backgrounds = [(path.get("d"), path.get("fill")) for path in elements(picture, "path")]
    assert backgrounds == [("M0 0h36v18h-36z", "#e5e5e5"), ("M36 0h54v18h-54z", "#cd0000")]
    assert "secret" not in picture


@pytest.mark.parametrize(
    ("kind", "dashes", "path"),
    [
        ("4", None, "M0 16.5H18"),
        ("4:2", None, "M0 16.5H18M0 14.5H18"),
        ("4:3", None, "M0 15.5q2.25 -2 4.5 0t4.5 0q2.25 -2 4.5 0t4.5 0"),
        ("4:4", "1 2", "M0 16.5H18"),
        ("4:5", "4 2", "M0 16.5H18"),
        ("9", None, "M0 9.5H18"),
        ("53", None, "M0 0.5H18"),
    ],
)
def test_lines_are_drawn(kind: str, dashes: str | None, path: str) -> None:
    [line] = elements(svg(screen_of(f"\033[{kind};58;5;1m  ")), "path")

    assert (line.get("d"), line.get("stroke-dasharray")) == (path, dashes)
    assert line.get("stroke") == ("#cd0000" if kind[0] == "4" else "#e5e5e5")


def test_cursor_outlines_its_cell() -> None:
    [cursor] = elements(svg(screen_of("ab", has_cursor=True)), "path")

    assert cursor.get("d") == "M9.5 0.5h8v17h-8z"


def points_of(character: str) -> list[tuple[float, float]]:
    """Return the corners of a character's outline, in pixels of its cell."""
    points: list[tuple[float, float]] = []
    x = y = 0.0
    for contour in outlines()[character].split("z")[:-1]:
        start = len(points)
        for command, text in re.findall(r"([mhvlq])([-. \d]*)", contour):
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", text)]
            if command == "h":
                dx, dy = numbers[0], 0.0
            elif command == "v":
                dx, dy = 0.0, numbers[0]
            else:
                dx, dy = numbers[-2:]
            x, y = round(x + dx, 2), round(y + dy, 2)
            points.append((x, y))
        x, y = points[start]
    return points


@pytest.mark.parametrize("character", BOX_DRAWING, ids=unicodedata.name)
def test_box_drawing_has_an_outline_within_its_cell(character: str) -> None:
    for x, y in points_of(character):
        assert 0 <= x <= CELL_WIDTH
        assert 0 <= y <= CELL_HEIGHT
    assert character not in svg(screen_of(character))


def edges(character: str) -> dict[str, list[float]]:
    """Return where a character meets the edges of its cell."""
    points = sorted(points_of(character))
    return {
        "l": [y for x, y in points if x == 0],
        "r": [y for x, y in points if x == CELL_WIDTH],
        "u": [x for x, y in points if y == 0],
        "d": [x for x, y in points if y == CELL_HEIGHT],
    }


@pytest.mark.parametrize(
    ("character", "like"),
    [("┼", "─│"), ("╋", "━┃"), ("╬", "═║"), ("╪", "═│"), ("╫", "─║"), ("╀", "─┃│"), ("┿", "━│")],
)
def test_lines_meet_at_the_edges(character: str, like: str) -> None:
    horizontal, *verticals = list(like)
    met = edges(character)
    assert met["l"] == met["r"] == edges(horizontal)["l"]
    assert [met["u"], met["d"]] == [edges(verticals[0])["u"], edges(verticals[-1])["d"]]


def test_long_line_is_one_box() -> None:
    [path] = elements(svg(screen_of("┌" + "─" * 30 + "┐")), "path")

    assert (path.get("d") or "").count("z") == 3
    assert "h270" in (path.get("d") or "")


def visible_at(picture: str, at_s: float) -> list[str]:
    """Return the texts that an animation shows at a time."""
    root = parsed(picture)
    sheet = next(root.iter(f"{SVG}style")).text or ""
    steps = dict(re.findall(r"@keyframes (\w+)\{((?:[\w.%]+\{[^}]*\})*)\}", sheet))
    [length] = set(re.findall(r"\{animation:\w+ ([\d.]+)s", sheet)) or ["1"]
    shown = []
    for row in root.findall(f"{SVG}g")[0].findall(f"{SVG}g"):
        state = "visible"
        for share, new in re.findall(
            r"([\d.]+)%\{visibility:(\w+)\}", steps.get(row.get("class", ""), "")
        ):
            if float(share) <= 100 * at_s / float(length):
                state = new
        if state == "visible":
            shown.append("".join(text.text or "" for text in row.iter(f"{SVG}text")))
    return shown


def test_animation_shows_each_screen_at_its_time() -> None:
    frames = [
        (0.0, screen_of("one\nsame")),
        (1.0, screen_of("two\nsame")),
        (2.5, screen_of("one\nsame\nthird")),
    ]
    picture = animation(frames, hold_s=1.5)

    assert visible_at(picture, 0.5) == ["one", "same"]
    assert visible_at(picture, 1.01) == ["two", "same"]
    assert visible_at(picture, 2.4) == ["two", "same"]
    assert visible_at(picture, 2.51) == ["one", "same", "third"]
    assert picture.count(">one</text>") == picture.count(">same</text>") == 1
    assert "4s step-end infinite" in picture


def test_without_animation_the_last_screen_is_shown() -> None:
    picture = animation([(0, screen_of("first\nsame")), (1, screen_of("last\nsame"))])

    rows = parsed(picture).findall(f"{SVG}g")[0].findall(f"{SVG}g")
    still = [row for row in rows if row.get("visibility") != "hidden"]
    assert ["".join(row.itertext()) for row in still] == ["last", "same"]
    assert "prefers-reduced-motion" in picture


def test_animation_of_one_screen_is_still() -> None:
    picture = animation([(7.0, screen_of("only"))])

    assert text_of(picture) == "only"
    assert "@keyframes" not in picture


def test_animation_has_room_for_its_largest_screen() -> None:
    picture = animation([(0, screen_of("a", columns=30)), (1, screen_of("a\nb", columns=20))])

    assert parsed(picture).get("viewBox") == f"0 0 {30 * 9 + 24} {2 * 18 + 24 + 30}"


def test_animation_needs_a_frame() -> None:
    with pytest.raises(ValueError, match="needs a frame"):
        animation([])


@pytest.mark.parametrize("make", [svg, lambda screen: animation([(0, screen)])])
def test_nothing_is_loaded_and_nothing_is_run(make: object) -> None:
    assert callable(make)
    picture = make(screen_of("https://example.org/ <script>alert(1)</script>"))

    assert {element.tag.removeprefix(SVG) for element in parsed(picture).iter()} <= {
        *("svg", "g", "rect", "circle", "path", "text", "style")
    }
    assert not re.search(
        r"\b(href|src|url\(|@import|on\w+=)", re.sub("<text.*?</text>", "", picture)
    )
