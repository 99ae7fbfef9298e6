"""Pictures of terminal sessions have each cell as tmux has it."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from pictures import BLACK, WHITE, check_cells, colours
from support import python
from toolsets import Terminal

from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.pictures.styles import rgb
from tmux_debug_mcp.vt.rows import cell_width

# Characters at and around all widths that differ from Unicode's tables. They have been in Unicode
# since 2015, so that every libc has them. What tmux drops is not here: that depends on its version.
# fmt: off
MEASURED = [
    0xA1, 0xAD, 0x2FF, *range(0x300, 0x370), *range(0x483, 0x48A), *range(0x591, 0x5C8),
    *range(0x600, 0x61C), 0x6DC, 0x6DD, 0x6DE, 0x70F, 0x710, 0x93E, 0x93F, 0x941, 0xE33, 0xE35,
    0xE48, *range(0x1100, 0x1200), 0x1AB0, 0x1ABE, 0x1B43, 0x1B44, 0x1B45, 0x1BAA, 0x1BF2, 0x1BF3,
    *range(0x200B, 0x2010), 0x202A, 0x202E, 0x2060, 0x20D0, 0x20D7, 0x20DD, 0x20E3, 0x231A,
    0x2500, 0x2764, 0x2E80, *range(0x302A, 0x3031), *range(0x3247, 0x3251),
    *range(0x4DC0, 0x4E02), 0x9FA5, 0xA953, 0xA9C0, 0xAC00, 0xD7A3, *range(0xD7B0, 0xD7C7),
    *range(0xD7CB, 0xD7FC), 0xE000, 0xF900, 0xFE00, 0xFE20, 0xFEFF, 0xFF01, 0xFF71, 0xFFE0,
    0xFFFD, 0x110BD, 0x111C0, 0x11235, 0x1134D, 0x116B6, *range(0x1D165, 0x1D174), 0x1D400,
    0x1F100, 0x1F321, 0x1F600, 0x1F680, 0x20000, 0xE0001, 0xE0041, 0xE0100,
]
# fmt: on


async def test_each_cell_has_its_colours_whatever_it_holds(term: Terminal) -> None:
    program = python(
        "import sys\n"
        "w = sys.stdout.write\n"
        "w('\\33[2J\\33[H')\n"
        "for i in range(256):\n"
        "    w('\\33[%d;%dH' % (i // 64 + 1, i % 64 + 1))\n"
        "    w('\\33[48;5;%dm\\33[38;5;%dmX' % (i, 255 - i))\n"
        "for i in range(64): w('\\33[6;%dH\\33[48;2;%d;%d;%dm ' % (i + 1, i * 4, 255 - i, i))\n"
        "w('\\33[0m\\33[8;1H日本語|한국|😀🚀|ｱｲ|é|')\n"
        "w('\\33[9;1H\\33[1mB\\33[0;2mD\\33[0;3mI\\33[0;4mU\\33[0;7mR\\33[0;8mH\\33[0;9mS\\33[0m.')\n"
        "w('\\33[10;1H┌─┐█▄▀\\33[11;1H\\33(0lqk\\33(B')\n"
        "sys.stdout.flush(); import time; time.sleep(99)"
    )
    await term.text("createSession", name="p", command=program, cols=64, rows=12)
    await term.shows("┌─┐█▄▀\n┌─┐", session="p")
    image = await term.picture(session="p")
    screen = await capture_screen(await term.engine.find("p"))

    assert check_cells(image, screen) > 280
    for i in range(256):
        assert rgb(i, BLACK) in colours(image, i % 64, i // 64)
        assert rgb(255 - i, BLACK) in colours(image, i % 64, i // 64) or 255 - i == i
    for i in range(64):
        assert colours(image, i, 5) == {(i * 4, 255 - i, i)}
    # Wide characters take two cells, and what follows is where tmux has it.
    row = "".join(cell.text for cell in screen.rows[7])
    assert row.startswith("日本語|한국|😀🚀|ｱｲ|é|")
    for column in (6, 11, 16, 19, 21):
        ink = [
            pixel
            for pixel in range(10)
            if image.getpixel((column * 10 + pixel, 7 * 20 + 10)) != BLACK
        ]
        assert ink
        assert all(3 <= pixel <= 6 for pixel in ink), column
    for column in (0, 2, 4, 7, 9, 12, 14):
        assert len(colours(image, column, 7, 2)) > 1


async def test_attributes_can_be_seen_in_a_picture(term: Terminal) -> None:
    command = (
        r"printf 'M\033[1mM\033[0m\033[2mM\033[0m\033[3mM\033[0m\033[4mM\033[0m\033[7mM\033[0m"
    )
    command += r"\033[8mM\033[0m\033[9mM\033[0m\033[4:3mM\033[0m\033[53mM\033[0m'; sleep 99"
    await term.text("createSession", name="p", command=command, cols=20, rows=3)
    await term.shows("M" * 10, session="p")
    image = await term.picture(session="p")
    plain, *others = [image.crop((x * 10, 0, x * 10 + 10, 20)).tobytes() for x in range(10)]

    assert len({plain, *others}) == 10
    assert colours(image, 6, 0) == {BLACK}  # hidden
    assert WHITE not in colours(image, 2, 0)  # dim


async def test_cursor_is_outlined_where_it_is_shown(term: Terminal) -> None:
    await term.text(
        "createSession",
        name="p",
        command=r"printf '\033[2;3H'; read x; printf '\033[?25l'; sleep 99",
    )
    await term.shows_cursor(2, 1, session="p")
    image = await term.picture(session="p")
    assert image.getpixel((20, 20)) == image.getpixel((29, 39)) == WHITE
    assert image.getpixel((25, 30)) == BLACK
    await term.text("type", text="\n", session="p")
    await term.shows_foreground("p", "sleep")
    assert (await term.picture(session="p")).getcolors() == [(1200 * 800, BLACK)]


async def test_characters_are_as_wide_as_in_tmux(term: Terminal, tmp_path: Path) -> None:
    if b"utf8proc" in Path(shutil.which("tmux") or "").read_bytes():
        pytest.skip("this tmux has its widths from utf8proc, not from libc")
    program = python(
        "import json, os, re, sys, tty\n"
        "tty.setraw(0)\n"
        "columns = []\n"
        "for number in json.load(open('numbers')):\n"
        "    os.write(1, f'\\r\\33[Ka{chr(number)}\\33[6n'.encode())\n"
        "    answer = b''\n"
        "    while not answer.endswith(b'R'): answer += os.read(0, 99)\n"
        "    columns.append(int(re.search(rb';([0-9]+)R', answer)[1]))\n"
        "json.dump(columns, open('columns', 'w'))\n"
        "print('done'); sys.stdin.read()"
    )
    (tmp_path / "numbers").write_text(json.dumps(MEASURED))
    await term.text("createSession", name="w", command=program)
    await term.shows("done", session="w")
    columns = json.loads((tmp_path / "columns").read_text())
    widths = {f"{number:04X}": column - 2 for number, column in zip(MEASURED, columns, strict=True)}

    assert {f"{number:04X}": cell_width(chr(number)) for number in MEASURED} == widths


async def test_without_pillow_the_error_says_what_to_install(
    term: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tmux_debug_mcp.pictures.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    error = await term.error("takeScreenshot", format="png")
    assert f"{shlex.quote(sys.executable)} -m pip install pillow" in error
    assert error.endswith("Use format 'text'.")
    assert "dimensions" in await term.shot()
