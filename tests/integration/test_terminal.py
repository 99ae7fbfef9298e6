"""The toolset `terminal`: spec 003, its planned features, and full-screen programs on its screen."""

import base64
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.server.subscriptions import ResourceUpdated
from PIL import Image
from support import PATIENCE_S, Tools, eventually, in_process, python, socket_of

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.panes import recording
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools import terminal
from tmux_debug_mcp.vt.glyphs import CELL_HEIGHT, CELL_WIDTH
from tmux_debug_mcp.vt.key_names import key_name
from tmux_debug_mcp.vt.picture import rgb
from tmux_debug_mcp.vt.rows import cell_width
from tmux_debug_mcp.vt.screen import Cell, Screen

URI = "terminal://screen/default"
WHITE, BLACK = (229, 229, 229), (0, 0, 0)
# Characters in and around all that is not as wide as Unicode's tables say. They are in Unicode since 2015 or before, so
# that every libc has them; what tmux drops is not here, as it need not be the same in each version.
MEASURED = [
    *(0xA1, 0xAD, 0x2FF, *range(0x300, 0x370), *range(0x483, 0x48A), *range(0x591, 0x5C8), *range(0x600, 0x61C)),
    *(0x6DC, 0x6DD, 0x6DE, 0x70F, 0x710, 0x93E, 0x93F, 0x941, 0xE33, 0xE35, 0xE48, *range(0x1100, 0x1200)),
    *(0x1AB0, 0x1ABE, 0x1B43, 0x1B44, 0x1B45, 0x1BAA, 0x1BF2, 0x1BF3, *range(0x200B, 0x2010), 0x202A, 0x202E, 0x2060),
    *(0x20D0, 0x20D7, 0x20DD, 0x20E3, 0x231A, 0x2500, 0x2764, 0x2E80, *range(0x302A, 0x3031), *range(0x3247, 0x3251)),
    *(*range(0x4DC0, 0x4E02), 0x9FA5, 0xA953, 0xA9C0, 0xAC00, 0xD7A3, *range(0xD7B0, 0xD7C7)),
    *(*range(0xD7CB, 0xD7FC), 0xE000, 0xF900, 0xFE00, 0xFE20, 0xFEFF, 0xFF01, 0xFF71, 0xFFE0, 0xFFFD, 0x110BD, 0x111C0),
    *(0x11235, 0x1134D, 0x116B6, *range(0x1D165, 0x1D174), 0x1D400, 0x1F100, 0x1F321, 0x1F600, 0x1F680),
    *(0x20000, 0xE0001, 0xE0041, 0xE0100),
]


@pytest.fixture
async def term(settings: Settings) -> AsyncIterator[Tools]:
    async with in_process(settings, toolsets="terminal") as tools:
        yield tools


async def text(term: Tools, tool: str, /, **arguments: Any) -> str:  # noqa: ANN401
    """Return the one block of a call that succeeds."""
    [block] = await term.blocks(tool, **arguments)
    return block


async def shot(term: Tools, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """Take a screenshot as text."""
    result: dict[str, Any] = await term.json("takeScreenshot", **arguments)
    return result


async def shows(term: Tools, wanted: str | Callable[[str], bool], **arguments: Any) -> str:  # noqa: ANN401
    """Wait until the screen has a text, or is as wanted."""
    content = ""
    with anyio.fail_after(PATIENCE_S):
        while not (wanted in content if isinstance(wanted, str) else wanted(content)):
            await anyio.sleep(0.01)
            content = (await shot(term, **arguments))["content"]
    return content


async def picture(term: Tools, **arguments: Any) -> Image.Image:  # noqa: ANN401
    """Take a screenshot as a picture."""
    result = await term.call("takeScreenshot", format="png", **arguments)
    [first, second] = result.content
    assert first.type == "text"
    assert set(json.loads(first.text)) == {"content", "cursor", "dimensions"}
    assert second.type == "image"
    assert second.mime_type == "image/png"
    return Image.open(io.BytesIO(base64.b64decode(second.data))).convert("RGB")


def of_tmux(*words: str) -> str:
    command = ["tmux", "-S", socket_of(os.getpid()), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def colours(image: Image.Image, column: int, row: int, width: int = 1) -> set[tuple[int, int, int]]:
    """Return the colours of the pixels of a cell."""
    x, y = column * CELL_WIDTH, row * CELL_HEIGHT
    box = (x, y, x + width * CELL_WIDTH, y + CELL_HEIGHT)
    found = image.crop(box).getcolors(1 << 16)
    assert found
    return {colour for _, colour in found if isinstance(colour, tuple)}  # type: ignore[misc]


def check_cells(image: Image.Image, screen: Screen) -> int:
    """See that each cell of a picture has its background and, if it has a character, ink; count those."""
    assert image.size == (screen.columns * CELL_WIDTH, screen.height * CELL_HEIGHT)
    inked = 0
    for number, row in enumerate(screen.rows):
        column = 0
        for cell in row:
            if (column, number) != screen.cursor:
                check_cell(image, cell, column, number)
                inked += bool(cell.text.strip())
            column += cell.width
    return inked


def check_cell(image: Image.Image, cell: Cell, column: int, row: int) -> None:
    style = cell.style
    number = style.foreground
    if style.bold and isinstance(number, int) and number < 8:
        number += 8
    foreground, background = rgb(number, WHITE), rgb(style.background, BLACK)
    if style.reverse:
        foreground, background = background, foreground
    found = colours(image, column, row, cell.width)
    assert background in found or cell.text in "█▀▄", (cell, column, row, found)
    has_lines = style.underline or style.struck or style.overlined
    if cell.text.isspace() and not has_lines:
        assert found == {background}, (cell, column, row)
    if cell.text.strip() and foreground != background and not style.hidden:
        assert len(found) > 1, (cell, column, row)


class TestInput:
    async def test_text_is_typed_as_it_is_and_counted(self, term: Tools) -> None:
        await text(term, "createSession", name="c", command="stty raw -echo; exec cat -vT")
        await eventually_foreground(term, "c", "cat")
        trick = "a;b; -x #{pane_id} $(id) é😀 \\n 'q' \"d\" Enter C-c ^C ~"
        answer = await text(term, "type", text=trick, session="c")

        assert answer == f"Typed {len(trick)} character(s) to terminal"
        assert (await shows(term, "^C ~", session="c")).startswith("a;b; -x #{pane_id} $(id) ")

    async def test_line_feed_in_text_is_enter(self, term: Tools) -> None:
        assert await text(term, "type", text="echo $((40+2))\n") == "Typed 15 character(s) to terminal"
        assert "\n42\n" in await shows(term, "\n42\n")

    @pytest.mark.parametrize(
        ("key", "sent"),
        [
            ("Enter", "^M"), ("Tab", "^I"), ("Escape", "^["), ("Backspace", "^?"), ("Delete", "^[[3~"),
            ("Insert", "^[[2~"), ("Home", "^[[H"), ("End", "^[[F"), ("PageUp", "^[[5~"), ("PageDown", "^[[6~"),
            ("ArrowUp", "^[[A"), ("ArrowDown", "^[[B"), ("ArrowLeft", "^[[D"), ("ArrowRight", "^[[C"),
            ("F1", "^[OP"), ("F4", "^[OS"), ("F5", "^[[15~"), ("F12", "^[[24~"),
            ("Ctrl+A", "^A"), ("Ctrl+c", "^C"), ("ctrl+c", "^C"), ("Ctrl+Z", "^Z"), ("Ctrl+[", "^["),
            ("Ctrl+\\", "^\\"), ("Ctrl+Space", "^@"),
        ],
    )  # fmt: skip
    async def test_keys_are_those_of_a_terminal(self, term: Tools, key: str, sent: str) -> None:
        await text(term, "createSession", name="c", command="stty raw -echo; exec cat -vT")
        await eventually_foreground(term, "c", "cat")

        assert await text(term, "sendKey", key=key, session="c") == f"Sent key: {key}"
        await shows(term, lambda content: content.replace("\n", "").rstrip() == sent, session="c")

    @pytest.mark.parametrize("letter", "BDEFGHIJKLMNOPQRSTUVWXY")
    async def test_every_letter_is_a_key_with_ctrl(self, letter: str) -> None:
        assert key_name(f"Ctrl+{letter}")

    async def test_unknown_key_is_an_error_that_lists_the_keys(self, term: Tools) -> None:
        for key in ("Foo", "Ctrl+", "F13", "a", "enter", ""):
            error = await term.error("sendKey", key=key)
            assert "ArrowUp" in error or "not empty" in error
        assert await term.json("listSessions") == []

    async def test_missing_or_huge_text_is_an_error(self, term: Tools) -> None:
        assert "Parameter 'text' is missing" in await term.error("type")
        assert "is not empty" in await term.error("type", text="")
        assert "at most 1048576 go at once" in await term.error("type", text="é" * 600_000)


@pytest.fixture
async def at_root(settings: Settings) -> AsyncIterator[Tools]:
    """Serve where the prompts of shells, which may have the directory in them, are short."""
    async with in_process(replace(settings, cwd=Path("/")), toolsets="terminal") as tools:
        yield tools


class TestContent:
    async def test_default_session_is_a_shell_of_120_by_40_and_shows_its_prompt_at_once(self, at_root: Tools) -> None:
        term = at_root
        first = await shot(term)
        assert first["dimensions"] == {"cols": 120, "rows": 40}
        assert first["cursor"]["y"] == 0
        assert first["cursor"]["x"] > len(first["content"]) - 1 > 0

        await text(term, "type", text="stty size\n")
        assert "\n40 120\n" in await shows(term, "\n40 120\n")

    async def test_content_has_the_scrollback_and_visible_only_has_not(self, at_root: Tools) -> None:
        term = at_root
        await text(term, "type", text="seq 1 300\n")
        await shows(term, "\n300\n")
        everything = await text(term, "getContent")
        visible = await text(term, "getContent", visibleOnly=True)

        assert "\n1\n2\n3\n" in everything
        assert "\n1\n" not in visible
        assert visible.startswith("262\n")
        assert everything.endswith(visible)

    async def test_nothing_shown_is_said(self, term: Tools) -> None:
        await text(term, "createSession", name="silent", command="sleep 99")
        assert await text(term, "getContent", session="silent") == "(empty terminal)"
        assert (await shot(term, session="silent"))["content"] == ""

    async def test_long_content_keeps_its_end_and_says_so(self, term: Tools) -> None:
        command = python("for i in range(900): print(i, 'x' * 100)")
        await text(term, "createSession", name="long", command=f"{command}; sleep 99")
        await shows(term, "899 x", session="long")
        shown, note = await term.blocks("getContent", session="long")

        assert terminal.MAX_CONTENT_CHARACTERS - 110 < len(shown) <= terminal.MAX_CONTENT_CHARACTERS
        assert shown.endswith("x")
        assert shown.startswith(f"{899 - shown.count(chr(10))} x")
        assert note == f"[the last {shown.count(chr(10)) + 1} lines; what came before is left out]"

    async def test_cursor_is_where_the_program_put_it(self, term: Tools) -> None:
        await text(term, "createSession", name="c", command=r"printf '\033[2J\033[7;21Hhere\033[3;5H'; sleep 99")
        await shows(term, "here", session="c")
        result = await shot(term, session="c")

        assert result["cursor"] == {"x": 4, "y": 2}
        assert result["content"].split("\n")[6] == " " * 20 + "here"

    async def test_clear_leaves_a_prompt_and_no_scrollback(self, term: Tools) -> None:
        for shell in ("bash --norc", "zsh -f", "fish --no-config", "dash"):
            name = shell.split()[0]
            await text(term, "createSession", name=name, command=shell)
            await text(term, "type", text="seq 1 99\n", session=name)
            await shows(term, "\n99\n", session=name)
            assert await text(term, "clear", session=name) == "Terminal cleared"
            content = await shows(term, lambda content: "99" not in content and content != "", session=name)
            assert len(content.strip().split("\n")) == 1
            assert "99" not in await text(term, "getContent", session=name)
            await text(term, "type", text="expr 6 '*' 7\n", session=name)
            await shows(term, "\n42", session=name)

    async def test_clear_while_a_program_runs_types_nothing_into_it(self, term: Tools) -> None:
        await text(term, "createSession", name="c", command="echo old; exec cat")
        await shows(term, "old", session="c")
        await eventually_foreground(term, "c", "cat")
        await text(term, "clear", session="c")
        assert await text(term, "getContent", session="c") == "(empty terminal)"
        await text(term, "type", text="new\n", session="c")
        assert await shows(term, "new\nnew", session="c") == "new\nnew"


class TestSessions:
    async def test_default_is_made_again_when_it_was_closed_or_has_ended(self, term: Tools) -> None:
        await text(term, "type", text="echo first-$((1))\n")
        await shows(term, "first-1")
        assert (await text(term, "closeSession")).startswith("Closed session 'default' (killed by SIGHUP after ")
        assert "not found" in await term.error("closeSession")
        assert "first-1" not in (await shot(term))["content"]

        await text(term, "type", text="echo second-$((2)); exit 3\n")
        await shows(term, "second-2")
        with anyio.fail_after(PATIENCE_S):
            while (await term.json("listSessions"))[0]["status"] == "running":
                await anyio.sleep(0.005)
        assert "second-2" in await text(term, "getContent")  # what it showed last can be read
        await text(term, "type", text="echo third-$((3))\n")
        assert "second-2" not in await shows(term, "third-3")
        assert [row["status"] for row in await term.json("listSessions")] == ["running"]

    async def test_default_is_made_once_for_calls_that_come_together(self, term: Tools) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(shot, term)
        assert len(await term.json("listSessions")) == 1

    async def test_named_sessions_are_apart(self, term: Tools, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        answer = await text(
            term, "createSession", name="a b", cols=60, rows=10, cwd=str(tmp_path / "in"), env={"VAR": "val ue"}
        )
        assert answer == "Created session 'a b' (60x10)"
        await text(term, "type", text='echo "$PWD $VAR"; stty size\n', session="a b")
        assert "val ue" in await shows(term, "\n10 60\n", session="a b")
        assert "val ue" not in (await shot(term))["content"]
        rows = await term.json("listSessions")
        assert [(row["session"], row["cols"], row["rows"], row["foreground"]) for row in rows] == [
            ("a b", 60, 10, "bash"),
            ("default", 120, 40, "bash"),
        ]

    async def test_session_that_is_there_or_is_not_is_told(self, term: Tools) -> None:
        await text(term, "createSession", name="one")
        assert "is there already" in await term.error("createSession", name="one")
        error = "Session 'two' not found. Use listSessions to see the sessions, or createSession."
        for tool, arguments in (("type", {"text": "x"}), ("getContent", {}), ("clear", {}), ("stopRecording", {})):
            assert await term.error(tool, session="two", **arguments) == error

    async def test_program_that_ended_is_told_by_the_words_of_these_tools(self, term: Tools) -> None:
        await text(term, "createSession", name="one", command="echo bye; exit 7")
        await shows(term, "bye", session="one")
        await eventually_exited(term, "one")
        error = await term.error("sendKey", key="Enter", session="one")
        assert error.startswith("Session 'one' has ended (exited with code 7 after ")
        assert error.endswith("Use getContent to read its last output, or createSession to start anew.")
        assert (await text(term, "createSession", name="one")).startswith("Created")

    async def test_resize_changes_the_terminal_and_programs_are_told(self, term: Tools) -> None:
        await text(term, "createSession", name="s", command="trap 'stty size' WINCH; while :; do sleep 0.05; done")
        await eventually_foreground(term, "s", "sleep")
        assert await text(term, "resize", cols=101, rows=33, session="s") == "Terminal resized to 101x33"

        assert "33 101" in await shows(term, "33 101", session="s")
        assert (await shot(term, session="s"))["dimensions"] == {"cols": 101, "rows": 33}
        for size in ({"cols": 1, "rows": 10}, {"cols": 10, "rows": 201}, {"cols": 501, "rows": 10}, {"cols": 10}):
            assert "Parameter '" in await term.error("resize", session="s", **size)

    async def test_sessions_of_an_earlier_run_are_listed_and_read(self, settings: Settings, tmp_path: Path) -> None:
        archive = Archive(tmp_path / "logs")
        async with in_process(settings, toolsets="terminal", archive=archive) as term:
            await text(term, "type", text="echo kept-$((1))\n")
            await shows(term, "kept-1")
        later = Archive(tmp_path / "logs")
        later.run = "20990101T000000-1"
        async with in_process(settings, toolsets="terminal", archive=later) as term:
            [row] = await term.json("listSessions")
            assert row == {"session": f"{archive.run}/default", "status": "exited"}
            assert "\nkept-1\n" in await text(term, "getContent", session=row["session"])


class TestRecordings:
    async def test_recording_has_what_was_there_what_came_and_when(self, term: Tools, tmp_path: Path) -> None:
        await text(term, "type", text="echo before-$((1))\n")
        await shows(term, "before-1")
        path = tmp_path / "new" / "my.cast"
        assert await text(term, "startRecording", path=str(path)) == f"Recording session 'default' to {path}"
        assert "is being recorded already" in await term.error("startRecording")
        await text(term, "type", text="printf 'd\\303\\251j\\303\\240 \\033[31mred\\033[0m\\n'\n")
        await shows(term, "déjà red\n")
        await text(term, "resize", cols=90, rows=20)
        await text(term, "type", text="echo after-$((2))\n")
        await shows(term, "after-2")
        answer = await text(term, "stopRecording")
        assert answer.endswith(f" events: {path}")

        header, *events = [json.loads(line) for line in path.read_text().splitlines()]
        assert (header["version"], header["width"], header["height"]) == (2, 120, 40)
        assert "before-1" in events[0][2]
        assert [event[2] for event in events if event[1] == "r"] == ["90x20"]
        assert "déjà \033[31mred\033[0m\r\n" in "".join(event[2] for event in events)
        assert [event[0] for event in events] == sorted(event[0] for event in events)
        assert path.stat().st_mode & 0o777 == 0o600
        assert "is not being recorded" in await term.error("stopRecording")

    async def test_public_player_takes_it(self, term: Tools, tmp_path: Path) -> None:
        await text(term, "startRecording", path="x.cast")
        await text(term, "type", text="echo played-$((3))\n")
        await shows(term, "played-3")
        await text(term, "stopRecording")
        player = shutil.which("asciinema", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert player, "install asciinema"
        command = [player, "cat", str(tmp_path / "x.cast")]
        played = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})

        assert b"played-3\r\n" in played.stdout

    async def replayed(self, term: Tools, path: Path, before: str, after: str) -> tuple[Screen, Screen]:
        """Return the screen that a program left that was recorded between two things to print, and the replay's."""
        end = "\\033]7;%s\\a"
        program = f"stty -echo; printf '{before}{end}' 1; read x; printf '{after}{end}' 2; sleep 99"
        screen = await self.screen_after(term, "program", program, b"\033]7;1\a")
        await text(term, "startRecording", session="program", path=str(path))
        await text(term, "type", text="\n", session="program")
        screen = await self.screen_after(term, "program", "", b"\033]7;2\a")
        await text(term, "stopRecording", session="program")
        events = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        printed = path.with_suffix(".out")
        printed.write_text("".join(event[2] for event in events))
        show = f"stty raw -echo; cat {printed}; sleep 99"
        return screen, await self.screen_after(term, "replay", show, b"\033]7;2\a")

    async def screen_after(self, term: Tools, name: str, command: str, end: bytes) -> Screen:
        """Return the screen of a session, which is made if there is a command, once this was printed."""
        if command:
            await text(term, "createSession", name=name, cols=40, rows=12, command=command)
        pane = await term.engine.find(name)
        await eventually(lambda: end in pane.log.read(0, 9999))
        return await capture_screen(pane)

    async def test_line_drawing_is_recorded_as_it_is_shown(self, term: Tools, tmp_path: Path) -> None:
        before = r"\033(0lq\033[31mqk\033(B\033[mT\033)0\n"
        screen, replay = await self.replayed(term, tmp_path / "x.cast", before, r"\016x\017x")

        assert screen.text() == replay.text() == "┌──┐T\n│x"
        assert "\033[31m─┐\033[" in (tmp_path / "x.out").read_text()

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (r"one\ntwo\nthree\nfour\033[2;3r\033[3;1H", r"\nfive\nsix"),
            (r"one\ntwo\nthree\nfour\033[2;3r\033[?6h\033[2;2H", r"X\033[1;1HY\033[9;9HZ"),
            (r"one\033[9;9r\033[11;3H", r"\nfive\nsix\nseven"),
            (r"\033[2;1H" + "x" * 40, r"y\033[3;4Hz"),
            (r"\033[31m\033[11;1Hred\n" + "x" * 40 + r"\033[m", r"z\033[?25l"),
            (r"one\r\033[4h", r"two\033[4l\rX"),
            (r"\033[?7l\033[2;39H", r"abcd"),
            (r"\033[?1049h\033[3;40Hx\033[2K\033[?25l", r"yz"),
            (r"日本\033[3;37H日本", r"語"),
        ],
    )
    async def test_replay_goes_on_where_the_screen_was(
        self, term: Tools, tmp_path: Path, before: str, after: str
    ) -> None:
        screen, replay = await self.replayed(term, tmp_path / "x.cast", before, after)

        assert (replay.text(), replay.cursor) == (screen.text(), screen.cursor)
        assert replay.is_cursor_shown == screen.is_cursor_shown
        first, expected = ([row[0] for row in one.rows if row and row[0].text > " "] for one in (replay, screen))
        assert first == expected

    async def test_recording_is_whole_when_the_program_or_the_server_ends(self, settings: Settings) -> None:
        async with in_process(settings, toolsets="terminal") as term:
            await text(term, "createSession", name="s", command="read x; echo last words; exit 4")
            await text(term, "startRecording", session="s")
            await text(term, "type", text="\n", session="s")
            await eventually_exited(term, "s")
            await eventually_not_recording(term)
            first = Path((await text(term, "stopRecording", session="s")).partition(": ")[2])
            await text(term, "startRecording")
            await text(term, "type", text="echo still-$((4))\n")
            await shows(term, "still-4")
            second = Path((await term.json("listSessions"))[-1]["recording"])
        for path, words in ((first, "last words"), (second, "still-4")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert words in "".join(event[2] for event in lines[1:])
            assert "]7777;" not in path.read_text()
            assert path.parent == settings.state_dir / "recordings"

    async def test_recording_of_a_session_that_was_closed_is_told(self, term: Tools) -> None:
        await text(term, "createSession", name="s", command="echo x; sleep 99")
        await text(term, "startRecording", session="s", path="s.cast")
        await text(term, "closeSession", session="s")
        assert (await text(term, "stopRecording", session="s")).endswith("/s.cast")

    async def test_file_that_is_there_is_not_written_over(self, term: Tools, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("precious")
        assert "which is there already" in await term.error("startRecording", path="mine")
        assert "which can't be written (No such file" in await term.error("startRecording", path="/proc/x")
        assert (tmp_path / "mine").read_text() == "precious"
        assert (await text(term, "startRecording", path="other")).endswith("/other")

    async def test_full_disk_ends_a_recording_at_a_whole_line(
        self, term: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        await text(term, "startRecording", path="x.cast")
        write = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:9] if b'"o"' in data else data))
        await text(term, "type", text="echo more\n")
        await eventually_not_recording(term)
        assert " s until No space left on device, " in await text(term, "stopRecording")
        for line in (tmp_path / "x.cast").read_text().splitlines():
            json.loads(line)

    async def test_recording_has_a_limit(self, term: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(recording, "MAX_RECORDING_BYTES", 3000)
        await text(term, "startRecording", path="x.cast")
        await text(term, "type", text="seq 1 5000\n")
        await shows(term, "\n5000\n")
        await eventually_not_recording(term)

        assert " s until it came to 0 MiB, " in await text(term, "stopRecording")
        assert (tmp_path / "x.cast").stat().st_size <= 3000
        [json.loads(line) for line in (tmp_path / "x.cast").read_text().splitlines()]


class TestResources:
    async def test_screens_are_resources(self, term: Tools) -> None:
        await text(term, "createSession", name="a/b c", command="echo hello; sleep 99")
        await shows(term, "hello", session="a/b c")
        listed = (await term.client.list_resources()).resources
        assert [(one.name, one.uri, one.mime_type) for one in listed] == [
            ("default", URI, "text/plain"),
            ("a/b c", "terminal://screen/a%2Fb%20c", "text/plain"),
        ]
        [content] = (await term.client.read_resource(listed[1].uri)).contents
        assert isinstance(content.model_dump()["text"], str)
        assert content.model_dump()["text"] == "hello"
        with pytest.raises(MCPError, match="Session 'no' not found"):
            await term.client.read_resource("terminal://screen/no")
        with pytest.raises(MCPError, match="There is no resource 'file:///etc/passwd'"):
            await term.client.read_resource("file:///etc/passwd")

    async def test_who_listens_hears_of_changes_and_nothing_runs_for_others(self, term: Tools) -> None:
        await shot(term)
        before = term.engine.panes[0].subscribers
        async with term.client.listen(resource_subscriptions=[URI]) as events:
            await eventually(lambda: term.engine.panes[0].subscribers == before + 1)
            for number in range(3):
                await text(term, "type", text=f"echo news-$((40+{number}))\n")
                with anyio.fail_after(PATIENCE_S):
                    async for event in events:
                        assert event == ResourceUpdated(uri=URI)
                        [content] = (await term.client.read_resource(URI, cache_mode="bypass")).contents
                        if f"news-{40 + number}" in content.model_dump()["text"]:
                            break
        await eventually(lambda: term.engine.panes[0].subscribers == before)

    async def test_who_listens_hears_of_another_size(self, term: Tools) -> None:
        await text(term, "createSession", name="quiet", command="sleep 100")
        uri = "terminal://screen/quiet"
        async with term.client.listen(resource_subscriptions=[uri]) as events:
            await eventually(lambda: term.engine.panes[0].subscribers > 0)
            await text(term, "resize", cols=70, rows=20, session="quiet")
            with anyio.fail_after(PATIENCE_S):
                async for event in events:
                    assert event == ResourceUpdated(uri=uri)
                    break

    async def test_other_toolsets_have_no_resources(self, settings: Settings) -> None:
        async with in_process(settings) as tools:
            assert tools.client.server_capabilities.resources is None


class TestPictures:
    async def test_each_cell_has_its_colours_whatever_it_holds(self, term: Tools) -> None:
        program = python(
            "import sys\n"
            "w = sys.stdout.write\n"
            "w('\\33[2J\\33[H')\n"
            "for i in range(256): w('\\33[%d;%dH\\33[48;5;%dm\\33[38;5;%dmX' % (i // 64 + 1, i % 64 + 1, i, 255 - i))\n"
            "for i in range(64): w('\\33[6;%dH\\33[48;2;%d;%d;%dm ' % (i + 1, i * 4, 255 - i, i))\n"
            "w('\\33[0m\\33[8;1H日本語|한국|😀🚀|ｱｲ|é|')\n"
            "w('\\33[9;1H\\33[1mB\\33[0;2mD\\33[0;3mI\\33[0;4mU\\33[0;7mR\\33[0;8mH\\33[0;9mS\\33[0m.')\n"
            "w('\\33[10;1H┌─┐█▄▀\\33[11;1H\\33(0lqk\\33(B')\n"
            "sys.stdout.flush(); import time; time.sleep(99)"
        )
        await text(term, "createSession", name="p", command=program, cols=64, rows=12)
        await shows(term, "┌─┐█▄▀\n┌─┐", session="p")
        image = await picture(term, session="p")
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
            ink = [pixel for pixel in range(10) if image.getpixel((column * 10 + pixel, 7 * 20 + 10)) != BLACK]
            assert ink
            assert all(3 <= pixel <= 6 for pixel in ink), column
        for column in (0, 2, 4, 7, 9, 12, 14):
            assert len(colours(image, column, 7, 2)) > 1

    async def test_attributes_are_to_be_seen(self, term: Tools) -> None:
        command = r"printf 'M\033[1mM\033[0m\033[2mM\033[0m\033[3mM\033[0m\033[4mM\033[0m\033[7mM\033[0m"
        command += r"\033[8mM\033[0m\033[9mM\033[0m\033[4:3mM\033[0m\033[53mM\033[0m'; sleep 99"
        await text(term, "createSession", name="p", command=command, cols=20, rows=3)
        await shows(term, "M" * 10, session="p")
        image = await picture(term, session="p")
        plain, *others = [image.crop((x * 10, 0, x * 10 + 10, 20)).tobytes() for x in range(10)]

        assert len({plain, *others}) == 10
        assert colours(image, 6, 0) == {BLACK}  # hidden
        assert WHITE not in colours(image, 2, 0)  # dim

    async def test_cursor_is_outlined_where_it_is_shown(self, term: Tools) -> None:
        await text(term, "createSession", name="p", command=r"printf '\033[2;3H'; read x; printf '\033[?25l'; sleep 99")
        await eventually(lambda: bool(term.engine.panes))
        with anyio.fail_after(PATIENCE_S):
            while (await shot(term, session="p"))["cursor"] != {"x": 2, "y": 1}:
                await anyio.sleep(0.01)
        image = await picture(term, session="p")
        assert image.getpixel((20, 20)) == image.getpixel((29, 39)) == WHITE
        assert image.getpixel((25, 30)) == BLACK
        await text(term, "type", text="\n", session="p")
        await eventually_foreground(term, "p", "sleep")
        assert (await picture(term, session="p")).getcolors() == [(1200 * 800, BLACK)]

    async def test_characters_are_as_wide_as_in_tmux(self, term: Tools, tmp_path: Path) -> None:
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
        await text(term, "createSession", name="w", command=program)
        await shows(term, "done", session="w")
        columns = json.loads((tmp_path / "columns").read_text())
        widths = {f"{number:04X}": column - 2 for number, column in zip(MEASURED, columns, strict=True)}

        assert {f"{number:04X}": cell_width(chr(number)) for number in MEASURED} == widths

    async def test_without_pillow_the_error_says_what_to_install(
        self, term: Tools, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(sys.modules, "tmux_debug_mcp.vt.picture")
        monkeypatch.setitem(sys.modules, "PIL", None)
        error = await term.error("takeScreenshot", format="png")
        assert f"{sys.executable} -m pip install pillow" in error
        assert error.endswith("Use format 'text'.")
        assert "dimensions" in await shot(term)


class TestFullScreenPrograms:
    """Programs as people use them, driven by these tools alone; the picture is compared with tmux's own cells."""

    async def check_picture(self, term: Tools) -> None:
        """Compare, once the program has drawn all it wants to."""
        pane = await term.engine.find("default")
        image, before, screen = await picture(term), None, await capture_screen(pane)
        while before != screen:
            before, image, screen = screen, await picture(term), await capture_screen(pane)
        assert check_cells(image, screen) >= 20, screen.text()

    async def start(self, term: Tools, command: str) -> None:
        await text(term, "type", text=command)
        await text(term, "sendKey", key="Enter")

    async def test_vim(self, term: Tools, tmp_path: Path) -> None:
        vim = shutil.which("vim") or shutil.which("vim.tiny")
        assert vim, "install vim"
        await self.start(term, f"{vim} -u NONE -N note.txt")
        await shows(term, lambda content: "~\n~\n" in content)
        await text(term, "type", text="ihello wörld\nsecond line")
        await text(term, "sendKey", key="Escape")
        await shows(term, "hello wörld\nsecond line")
        for key in ("ArrowUp", "Home"):
            await text(term, "sendKey", key=key)
        with anyio.fail_after(PATIENCE_S):
            while (await shot(term))["cursor"] != {"x": 0, "y": 0}:
                await anyio.sleep(0.01)
        await self.check_picture(term)
        await text(term, "type", text=":wq\n")
        await shows(term, lambda content: "~\n~\n" not in content)
        note = tmp_path / "note.txt"
        await eventually(lambda: note.exists() and note.read_text() == "hello wörld\nsecond line\n")

    async def test_less(self, term: Tools) -> None:
        await self.start(term, "seq -f 'row %g' 1 500 | less")
        await shows(term, "row 39\n:")
        await text(term, "sendKey", key="PageDown")
        await shows(term, lambda content: content.startswith("row 40\n"))
        await text(term, "type", text="/row 250\n")
        assert (await shows(term, "row 250")).startswith("row 250\n")
        await self.check_picture(term)
        await text(term, "type", text="q")
        await shows(term, lambda content: "row 250" not in content)

    async def test_top(self, term: Tools) -> None:
        await self.start(term, "top -d 99")
        await shows(term, "PID USER")
        await self.check_picture(term)
        await text(term, "type", text="q")
        await shows(term, lambda content: content.endswith(("#", "$")))

    async def test_htop(self, term: Tools) -> None:
        await self.start(term, "htop -d 100")
        await shows(term, "F10Quit")
        await self.check_picture(term)
        await text(term, "sendKey", key="F1")
        await shows(term, "Press any key to return")
        await text(term, "sendKey", key="Enter")
        await shows(term, "F10Quit")
        await text(term, "sendKey", key="F10")
        await shows(term, lambda content: "F10Quit" not in content)

    async def test_dialog(self, term: Tools, tmp_path: Path) -> None:
        await self.start(term, "dialog --menu 'Choose one' 15 50 5 1 First 2 'Zwölf' 3 日本 2>choice")
        await shows(term, "<Cancel>")  # which is drawn last
        await self.check_picture(term)
        await text(term, "sendKey", key="ArrowDown")
        await self.check_picture(term)
        await text(term, "sendKey", key="ArrowDown")
        await text(term, "sendKey", key="Enter")
        await shows(term, lambda content: "Choose one" not in content)
        await eventually(lambda: (tmp_path / "choice").read_text() == "3")


async def eventually_foreground(term: Tools, session: str, name: str) -> None:
    """Wait until this program has the session's terminal."""
    with anyio.fail_after(PATIENCE_S):
        while {row["session"]: row for row in await term.json("listSessions")}[session].get("foreground") != name:
            await anyio.sleep(0.005)


async def eventually_not_recording(term: Tools) -> None:
    with anyio.fail_after(PATIENCE_S):
        while any("recording" in row for row in await term.json("listSessions")):
            await anyio.sleep(0.005)


async def eventually_exited(term: Tools, session: str) -> None:
    """Wait until the session's program has ended."""
    with anyio.fail_after(PATIENCE_S):
        while {row["session"]: row for row in await term.json("listSessions")}[session]["status"] == "running":
            await anyio.sleep(0.005)
