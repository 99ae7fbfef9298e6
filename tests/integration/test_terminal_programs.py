"""Full-screen programs, driven by the tools of `terminal` alone.

Their pictures are compared with tmux's own cells.
"""

import shutil
from pathlib import Path

from pictures import check_cells
from support import eventually
from toolsets import Terminal

from tmux_debug_mcp.panes.capturing import capture_screen


async def check_picture(term: Terminal) -> None:
    """Compare, once the program has drawn all it wants to."""
    pane = await term.engine.find("default")
    image, before, screen = await term.picture(), None, await capture_screen(pane)
    while before != screen:
        before, image, screen = screen, await term.picture(), await capture_screen(pane)
    assert check_cells(image, screen) >= 20, screen.text()


async def start(term: Terminal, command: str) -> None:
    await term.text("type", text=command)
    await term.text("sendKey", key="Enter")


async def test_vim_edits_a_file_and_is_drawn_as_its_cells(term: Terminal, tmp_path: Path) -> None:
    vim = shutil.which("vim") or shutil.which("vim.tiny")
    assert vim, "install vim"
    await start(term, f"{vim} -u NONE -N note.txt")
    await term.shows(lambda content: "~\n~\n" in content)
    await term.text("type", text="ihello wörld\nsecond line")
    await term.text("sendKey", key="Escape")
    await term.shows("hello wörld\nsecond line")
    for key in ("ArrowUp", "Home"):
        await term.text("sendKey", key=key)
    await term.shows_cursor(0, 0)
    await check_picture(term)
    await term.text("type", text=":wq\n")
    await term.shows(lambda content: "~\n~\n" not in content)
    note = tmp_path / "note.txt"
    await eventually(lambda: note.exists() and note.read_text() == "hello wörld\nsecond line\n")


async def test_less_pages_searches_and_is_drawn_as_its_cells(term: Terminal) -> None:
    await start(term, "seq -f 'row %g' 1 500 | less")
    await term.shows("row 39\n:")
    await term.text("sendKey", key="PageDown")
    await term.shows(lambda content: content.startswith("row 40\n"))
    await term.text("type", text="/row 250\n")
    assert (await term.shows("row 250")).startswith("row 250\n")
    await check_picture(term)
    await term.text("type", text="q")
    await term.shows(lambda content: "row 250" not in content)


async def test_top_is_drawn_as_its_cells(term: Terminal) -> None:
    await start(term, "top -d 99")
    await term.shows("PID USER")
    await check_picture(term)
    await term.text("type", text="q")
    await term.shows(lambda content: content.endswith(("#", "$")))


async def test_htop_shows_its_help_and_is_drawn_as_its_cells(term: Terminal) -> None:
    await start(term, "htop -d 100")
    await term.shows("F10Quit")
    await check_picture(term)
    await term.text("sendKey", key="F1")
    await term.shows("Press any key to return")
    await term.text("sendKey", key="Enter")
    await term.shows("F10Quit")
    await term.text("sendKey", key="F10")
    await term.shows(lambda content: "F10Quit" not in content)


async def test_dialog_is_answered_and_drawn_as_its_cells(term: Terminal, tmp_path: Path) -> None:
    await start(term, "dialog --menu 'Choose one' 15 50 5 1 First 2 'Zwölf' 3 日本 2>choice")
    await term.shows("<Cancel>")  # which is drawn last
    await check_picture(term)
    await term.text("sendKey", key="ArrowDown")
    await check_picture(term)
    await term.text("sendKey", key="ArrowDown")
    await term.text("sendKey", key="Enter")
    await eventually(lambda: (tmp_path / "choice").read_text() == "3")
