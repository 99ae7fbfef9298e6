"""Recordings of terminal sessions are whole, and play as the screen was."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import eventually, few_files
from toolsets import Terminal, open_terminal

from tmux_debug_mcp.panes import recording
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.pictures.screen import DrawnScreen
from tmux_debug_mcp.settings import Settings


async def screen_after(term: Terminal, name: str, command: str, end: bytes) -> DrawnScreen:
    """Return the screen of a session once this was printed; a command makes the session first."""
    if command:
        await term.text("createSession", name=name, cols=40, rows=12, command=command)
    pane = await term.engine.find(name)
    await eventually(lambda: end in pane.log.read(0, 9999))
    return await capture_screen(pane)


async def replayed(
    term: Terminal, path: Path, before: str, after: str
) -> tuple[DrawnScreen, DrawnScreen]:
    """Record a program that prints something after what it printed before.

    Returns:
        The screen that it left, and the one that its recording leaves.
    """
    end = "\\033]7;%s\\a"
    program = f"stty -echo; printf '{before}{end}' 1; read x; printf '{after}{end}' 2; sleep 99"
    screen = await screen_after(term, "program", program, b"\033]7;1\a")
    await term.text("startRecording", session="program", path=str(path))
    await term.text("type", text="\n", session="program")
    screen = await screen_after(term, "program", "", b"\033]7;2\a")
    await term.text("stopRecording", session="program")
    events = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    printed = path.with_suffix(".out")
    printed.write_text("".join(event[2] for event in events))
    show = f"stty raw -echo; cat {printed}; sleep 99"
    return screen, await screen_after(term, "replay", show, b"\033]7;2\a")


async def test_recording_has_what_was_there_what_came_and_when(
    term: Terminal, tmp_path: Path
) -> None:
    await term.text("type", text="echo before-$((1))\n")
    await term.shows("before-1")
    path = tmp_path / "new" / "my.cast"
    answer = await term.text("startRecording", path=str(path))
    assert answer == f"Recording session 'default' to {path}"
    assert "is already being recorded" in await term.error("startRecording")
    await term.text("type", text="printf 'd\\303\\251j\\303\\240 \\033[31mred\\033[0m\\n'\n")
    await term.shows("déjà red\n")
    await term.text("resize", cols=90, rows=20)
    await term.text("type", text="echo after-$((2))\n")
    await term.shows("after-2")
    answer = await term.text("stopRecording")
    assert answer.endswith(f" events: {path}")

    header, *events = [json.loads(line) for line in path.read_text().splitlines()]
    assert (header["version"], header["width"], header["height"]) == (2, 120, 40)
    assert "before-1" in events[0][2]
    assert [event[2] for event in events if event[1] == "r"] == ["90x20"]
    assert "déjà \033[31mred\033[0m\r\n" in "".join(event[2] for event in events)
    assert [event[0] for event in events] == sorted(event[0] for event in events)
    assert path.stat().st_mode & 0o777 == 0o600
    assert "is not being recorded" in await term.error("stopRecording")


async def test_asciinema_plays_a_recording(term: Terminal, tmp_path: Path) -> None:
    await term.text("startRecording", path="x.cast")
    await term.text("type", text="echo played-$((3))\n")
    await term.shows("played-3")
    await term.text("stopRecording")
    player = shutil.which("asciinema", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert player, "install asciinema"
    command = [player, "cat", str(tmp_path / "x.cast")]
    played = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )

    assert b"played-3\r\n" in played.stdout


async def test_line_drawing_is_recorded_as_it_is_shown(term: Terminal, tmp_path: Path) -> None:
    before = r"\033(0lq\033[31mqk\033(B\033[mT\033)0\n"
    screen, replay = await replayed(term, tmp_path / "x.cast", before, r"\016x\017x")

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
    term: Terminal, tmp_path: Path, before: str, after: str
) -> None:
    screen, replay = await replayed(term, tmp_path / "x.cast", before, after)

    assert (replay.text(), replay.cursor) == (screen.text(), screen.cursor)
    assert replay.is_cursor_shown == screen.is_cursor_shown
    first, expected = (
        [row[0] for row in one.rows if row and row[0].text > " "] for one in (replay, screen)
    )
    assert first == expected


async def test_recording_is_whole_when_the_program_or_the_server_ends(settings: Settings) -> None:
    async with open_terminal(settings) as term:
        await term.text("createSession", name="s", command="read x; echo last words; exit 4")
        await term.text("startRecording", session="s")
        await term.text("type", text="\n", session="s")
        await term.exited("s")
        await term.stopped_recording()
        first = Path((await term.text("stopRecording", session="s")).partition(": ")[2])
        await term.text("startRecording")
        await term.text("type", text="echo still-$((4))\n")
        await term.shows("still-4")
        second = Path((await term.json("listSessions"))[-1]["recording"])
    for path, words in ((first, "last words"), (second, "still-4")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert words in "".join(event[2] for event in lines[1:])
        assert "]7777;" not in path.read_text()
        assert path.parent == settings.state_dir / "recordings"


async def test_recording_of_a_session_that_was_closed_is_told(term: Terminal) -> None:
    await term.text("createSession", name="s", command="echo x; sleep 99")
    await term.text("startRecording", session="s", path="s.cast")
    await term.text("closeSession", session="s")
    assert (await term.text("stopRecording", session="s")).endswith("/s.cast")


async def test_file_that_is_there_is_not_written_over(term: Terminal, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    assert "which already exists" in await term.error("startRecording", path="mine")


async def test_file_on_the_way_to_a_recording_is_an_error_that_says_so(
    term: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("precious")
    for path in ("mine/s.cast", "mine/more/s.cast"):
        error = await term.error("startRecording", path=path)
        assert "which can't be written (Not a directory). Give another path." in error
    assert (tmp_path / "mine").read_text() == "precious"
    assert "which can't be written (No such file" in await term.error(
        "startRecording", path="/proc/x"
    )
    assert (tmp_path / "mine").read_text() == "precious"
    assert (await term.text("startRecording", path="other")).endswith("/other")


async def test_full_disk_ends_a_recording_at_a_whole_line(
    term: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await term.text("startRecording", path="x.cast")
    write = os.write

    def write_some(fd: int, data: bytes) -> int:
        return write(fd, data[:9] if b'"o"' in data else data)

    monkeypatch.setattr(os, "write", write_some)
    await term.text("type", text="echo more\n")
    await term.stopped_recording()
    assert " s until No space left on device, " in await term.text("stopRecording")
    for line in (tmp_path / "x.cast").read_text().splitlines():
        json.loads(line)


async def test_recording_has_a_limit(
    term: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recording, "MAX_RECORDING_BYTES", 3000)
    await term.text("startRecording", path="x.cast")
    await term.text("type", text="seq 1 5000\n")
    await term.shows("\n5000\n")
    await term.stopped_recording()

    assert " s until it reached 0 MiB, " in await term.text("stopRecording")
    assert (tmp_path / "x.cast").stat().st_size <= 3000
    [json.loads(line) for line in (tmp_path / "x.cast").read_text().splitlines()]


async def test_recording_that_runs_out_of_files_says_so_and_ends_nothing_else(
    term: Terminal, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.01; done; echo out; read x; echo in; sleep 99"
    await term.text("createSession", name="s", command=command)
    [pane] = term.engine.panes
    await term.text("startRecording", session="s", path="x.cast")
    with few_files(0):
        gate.mkdir()
        await eventually(lambda: b"out" in pane.log.read(0, 99))
        await eventually(lambda: pane.subscribers == 0)

    stopped = await term.text("stopRecording", session="s")
    assert " s until Too many open files, " in stopped
    await term.text("type", text="\n", session="s")
    await term.shows("in", session="s")
    assert "Recording" in await term.text("startRecording", session="s", path="y.cast")
