"""Pictures of screens, pixel by pixel where that matters."""

import functools
import io
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageChops

import tmux_debug_mcp
from tmux_debug_mcp.pictures.glyphs import CELL_HEIGHT, CELL_WIDTH
from tmux_debug_mcp.pictures.png import draw
from tmux_debug_mcp.pictures.screen import Cell, DrawnScreen, captured_cells
from tmux_debug_mcp.pictures.styles import Style, rgb

FONTS = Path(tmux_debug_mcp.__file__).parent / "pictures" / "fonts"
# A picture decompresses the bitmaps when it needs them: here only the first one does.
decompressed = functools.cache(lzma.decompress)


def drawn(text: str, columns: int = 20) -> Image.Image:
    rows = captured_cells(text.encode(), widens_emoji=True)
    screen = DrawnScreen(columns, len(rows), (0, 0), is_cursor_shown=False, rows=rows)
    return Image.open(io.BytesIO(draw(screen))).convert("RGB")


def inked(image: Image.Image, column: int, width: int = 1, row: int = 0) -> bool:
    box = (
        column * CELL_WIDTH,
        row * CELL_HEIGHT,
        (column + width) * CELL_WIDTH,
        (row + 1) * CELL_HEIGHT,
    )
    return image.crop(box).getcolors() != [(width * CELL_WIDTH * CELL_HEIGHT, (0, 0, 0))]


@pytest.fixture(autouse=True)
def no_fonts_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what the package itself can draw, wherever the tests run."""
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    monkeypatch.setattr(lzma, "decompress", decompressed)


def test_fonts_are_at_most_a_megabyte() -> None:
    assert sum(path.stat().st_size for path in FONTS.iterdir()) <= 1 << 20


@pytest.mark.parametrize(
    "text",
    [*"aZ0~é█│Ωж→✔日한ｱ⠿ไ😀🚀🀄", "\u2764\ufe0f", "e\u0301", "👨\u200d👩\u200d👧", "\U000e0041"],
)
@pytest.mark.parametrize("style", ["", "\033[1m", "\033[3m", "\033[1;3m"])
def test_character_is_in_its_cell_and_nowhere_else(text: str, style: str) -> None:
    image = drawn(f"  {style}{text}\033[0m|")
    [row] = captured_cells(f"  {text}|".encode(), widens_emoji=True)
    width = sum(cell.width for cell in row) - 3

    assert not inked(image, 1)
    assert not width or inked(image, 2, width)
    assert inked(image, 2 + width)
    assert not inked(image, 3 + width)


def test_box_of_lines_is_closed() -> None:
    image = drawn("┌─┐\n│ │\n└─┘", columns=3)
    middle_x, middle_y = CELL_WIDTH // 2, CELL_HEIGHT // 2
    columns = [
        x for x in range(CELL_WIDTH) if image.getpixel((x, CELL_HEIGHT + middle_y)) != (0, 0, 0)
    ]
    rows = [
        y for y in range(CELL_HEIGHT) if image.getpixel((CELL_WIDTH + middle_x, y)) != (0, 0, 0)
    ]

    assert any(
        all(image.getpixel((x, y)) != (0, 0, 0) for y in range(12, 2 * CELL_HEIGHT + 8))
        for x in columns
    )
    assert any(
        all(image.getpixel((x, y)) != (0, 0, 0) for x in range(6, 2 * CELL_WIDTH + 4)) for y in rows
    )


@pytest.mark.parametrize("base", ["x", "ท", "日", "█"])
@pytest.mark.parametrize("mark", [*"\u0338\u0489\u0350\u0e35\u0e48\u20d7\u20dd\u20e3\u3099\u1161"])
def test_mark_is_drawn_over_its_character_by_the_first_font_that_has_it(
    base: str, mark: str
) -> None:
    width = captured_cells(base.encode(), widens_emoji=True)[0][0].width
    of_mark, marked = drawn(f"{' ' if width == 1 else '　'}{mark}"), drawn(base + mark)

    assert inked(of_mark, 0, width)
    assert marked.tobytes() == ImageChops.lighter(drawn(base), of_mark).tobytes()
    assert not inked(marked, width)


def test_marks_of_one_character_are_all_there() -> None:
    assert (
        len(
            {
                drawn(f"{base}{mark}").tobytes()
                for base in "ทน"
                for mark in ("", "\u0e35", "\u0e48", "\u0e35\u0e48")
            }
        )
        == 8
    )


@pytest.mark.parametrize(
    "unseen", ["\ufe0e", "\U000e0100", "\u034f", "\u180b", "\u1160", "\u200b", "\U0001e8d0"]
)
def test_what_only_tells_how_to_draw_and_marks_of_no_font_are_not_drawn(unseen: str) -> None:
    assert drawn(f"x{unseen}|").tobytes() == drawn("x|").tobytes()


def test_character_that_only_unifont_has_is_its_bitmap() -> None:
    lines = lzma.decompress((FONTS / "unifont.hex.xz").read_bytes()).split()
    [bits] = [bytes.fromhex(line[5:].decode()) for line in lines if line.startswith(b"65E5:")]
    bitmap = Image.frombytes("1", (16, 16), bits).convert("L")

    shown = drawn("日").convert("L").point(lambda level: 255 if level else 0)
    assert shown.crop((2, 2, 18, 18)).tobytes() == bitmap.tobytes()


def test_what_no_font_has_is_a_box() -> None:
    assert drawn("\U000f1234").tobytes() == drawn("\U000f4321").tobytes()
    assert inked(drawn("\U000f1234"), 0)


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        (1, (205, 0, 0)), (12, (92, 92, 255)), (16, (0, 0, 0)), (196, (255, 0, 0)),
        (231, (255, 255, 255)), (67, (95, 135, 175)), (232, (8, 8, 8)), (255, (238, 238, 238)),
        ((1, 2, 3), (1, 2, 3)), (None, (9, 9, 9)),
    ],
)  # fmt: skip
def test_colours_are_xterms(
    colour: int | tuple[int, int, int] | None, expected: tuple[int, int, int]
) -> None:
    assert rgb(colour, (9, 9, 9)) == expected


@pytest.mark.parametrize("underline", ["single", "double", "curly", "dotted", "dashed"])
def test_underlines_differ_and_have_their_colour(underline: str) -> None:
    def of(style: Style) -> Image.Image:
        screen = DrawnScreen(4, 1, (0, 0), is_cursor_shown=False, rows=[[Cell(" ", 1, style)] * 4])
        return Image.open(io.BytesIO(draw(screen))).convert("RGB")

    image = of(Style(underline=underline, underline_colour=(1, 200, 3)))
    found = image.getcolors()
    assert found
    assert {colour for _, colour in found} == {(0, 0, 0), (1, 200, 3)}
    others = {"single", "double", "curly", "dotted", "dashed"} - {underline}
    assert all(
        of(Style(underline=other, underline_colour=(1, 200, 3))).tobytes() != image.tobytes()
        for other in others
    )


def test_fonts_of_the_system_are_used_for_what_ours_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*_words: object, **_options: object) -> "subprocess.CompletedProcess[str]":
        font = FONTS / "DejaVuSansMono.ttf"  # which stands in for one that has this character
        return subprocess.CompletedProcess(
            [], 0, f"{font}\t0\tFalse\t65e5 672c-672f\nbroken\t0\tTrue\t1f600\n", ""
        )

    plain = drawn("日")
    monkeypatch.setattr(shutil, "which", lambda _program: "/usr/bin/fc-list")
    monkeypatch.setattr(subprocess, "run", listed)
    assert drawn("日").tobytes() != plain.tobytes()
    assert inked(drawn("😀"), 0, 2)  # a font that can't be read is passed over


def test_bold_text_in_a_dark_colour_is_bright_as_in_xterm() -> None:
    assert inked(drawn("\033[1;30mX"), 0)
    assert drawn("\033[1;31mX").tobytes() == drawn("\033[1;91mX").tobytes()
    assert drawn("\033[1;37;47mX").getcolors() != [(200, (229, 229, 229)), (3800, (0, 0, 0))]


def test_cursor_on_a_wide_character_is_as_wide() -> None:
    rows = captured_cells("日x".encode(), widens_emoji=True)
    picture = Image.open(
        io.BytesIO(draw(DrawnScreen(4, 1, (0, 0), is_cursor_shown=True, rows=rows)))
    ).convert("RGB")

    assert picture.getpixel((19, 0)) == picture.getpixel((0, 19)) == (229, 229, 229)
    assert picture.getpixel((9, 1)) == (0, 0, 0)


@pytest.mark.parametrize(
    "style",
    [
        "",
        "7",
        "47",
        "107",
        "43",
        "46",
        "48;5;244",
        "48;5;243",
        "44",
        "30;107",
        "8;7",
        "7;2",
        "34;44",
        "37;47",
    ],
)
@pytest.mark.parametrize("character", " x日█▀┼")
def test_cursor_is_to_be_seen_on_each_background_and_character(style: str, character: str) -> None:
    rows = captured_cells(f"\033[{style}m{character}".encode(), widens_emoji=True)
    without, outlined = (
        Image.open(
            io.BytesIO(draw(DrawnScreen(2, 1, (0, 0), is_cursor_shown=shown, rows=rows)))
        ).convert("L")
        for shown in (False, True)
    )
    right = rows[0][0].width * CELL_WIDTH - 1
    edge = {
        (x, y)
        for x in range(right + 1)
        for y in range(CELL_HEIGHT)
        if x in (0, right) or y in (0, 19)
    }
    changes = {
        (x, y): abs(int(without.getpixel((x, y))) - int(outlined.getpixel((x, y))))  # type: ignore[arg-type]
        for x in range(2 * CELL_WIDTH)
        for y in range(CELL_HEIGHT)
    }

    assert all(change >= 100 if place in edge else not change for place, change in changes.items())
