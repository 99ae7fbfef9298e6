"""Where a program draws on the screen, and what is a line beside it, in pieces of any size."""

from pathlib import Path

import pytest

from tmux_debug_mcp.vt.rows import Line, Screen
from tmux_debug_mcp.vt.transcript import Transcript

CORPUS = Path(__file__).parents[1] / "corpus"
STREAMS = {
    b"plain \033[31mred\033[0m\r\n": False,
    b"50%\r60%\r": False,
    b"\033[A\033[2Kone line up\r\n": False,
    b"\033[H\033[2J\033[3J$ ": False,  # clear
    b"\033[H\033[J$ ": False,
    b"\033[2J\033[Hfoo": False,
    b"\033[1;1H\033[Jfoo": False,
    b"\033[?25l\033[Htop - 12:00": True,
    b"\033[H\033[mtop - 12:00": True,
    b"\033[?25l\033[H\033[Jtop - 12:00": True,
    b"\033[?25l\033[?25h\033[H\033[J$ ": False,
    b"\033[H\r\ntop - 12:00": True,
    b"\033[3;4Hx": True,
    b"\033[10fx": True,
    b"\033[5dx": True,
    b"\033[?1049h": True,
    b"\033[?47h": True,
    b"\033[?1049;25hALT": True,
    b"\033[?1;1049hALT\033[?2004;1049l$ ": False,
    b"\033[;5Hfoo": True,
    b"\033[;1H\033[2Jfoo": False,
    b"\033[?1049h\033[4;5Hfoo\033[?1049l$ ": False,
    b"\033[?1049h\033[?1049l\033[4;5Hfoo": True,
    b"\033[4;5Hfoo\033[?2004h$ ": False,  # a line editor
    b"\033[?1049h\033[?2004h\033[4;5Hfoo": True,
    b"\033[4;5Hfoo\033c": False,
    b"\0337\033[50;1H 42%\0338line": False,  # apt's progress bar
    b"\033[4;5Hfoo\0337\033[1;1Hbar\0338": True,
    b"\033[50;1H\r": True,
    b"\033[50;1H\r\n": False,  # which scrolls
    b"\033[49;1H\r\n": True,
    b"\033[1;49r\033[49;1H\n\n\n": True,  # which scrolls a region
    b"\033[1;49r\033[49;1H\033[r\033[49;1H\n\n\n": False,
}


# What may still change of output in lines.
UNFINISHED = {
    b"": [""],
    b"one\r\ntwo": ["two"],
    b"one\r\ntwo\r\n": [""],
    b"50%\r60%": ["60%"],
    b"50%\r\033[K": [""],
    b"x" * 250: ["x" * 250],
    b"x" * 250 + b"\r\n": [""],
    # A block of lines that is written again, and what comes before and after it.
    b"one\r\ntwo\r\nthree\r\n\033[2Atwo": ["two", "three", ""],
    b"one\r\ntwo\r\nthree\r\n\033[2K\033[A\033[2K\033[A\033[2K": ["", "", ""],
    b"one\r\ntwo\r\n\033[Atwo\r\nthree\r\nfour\r\n$ ": ["two", "three", "$"],
    b"one\r\ntwo\r\nthree\r\n\033[3A\033[2B\033[Atwo": ["one", "two", "three", ""],
    b"one\r\ntwo\r\n\033[A\n\r\nthree\r\nfour\r\n\033[Afour": ["four", ""],
    b"one\r\ntwo\r\n\033Mtwo": ["two", ""],
    b"one\r\n\0337two\r\nthree\0338": ["two", "three"],
    # Which are lines of old once an editor or another screen has come, or they have scrolled away.
    b"one\r\ntwo\r\n\033[Atwo\r\n\033[?2004h$ ": ["$"],
    b"one\r\ntwo\r\n\033[Atwo\r\n\033[?1049h\033[?1049l$ ": ["$"],
    b"one\r\ntwo\r\n\033[2Jthree": ["three"],
    b"one\r\ntwo\r\n\033[2J\033[Hone\r\ntwo\r\n": [""],
    b"one\r\ntwo\r\n\033[Atwo\r\n" + b"x\r\n" * 60: [""],
    # Rows outside the region that scrolls.
    b"one\r\n\0337\033[1;49r\033[50;1H 42%\0338two": ["two", " 42%"],
}


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("data", UNFINISHED)
def test_what_may_still_change_of_output_in_lines(data: bytes, size: int) -> None:
    transcript = fed(data, size)
    assert not transcript.is_drawn_on
    assert transcript.unfinished() == UNFINISHED[data]


def fed(data: bytes, size: int, columns: int = 200, rows: int = 50) -> Transcript:
    """Return a terminal that has got some output in pieces of a size."""
    transcript = Transcript(columns, rows, separates_drawing=True)
    for start in range(0, len(data), size):
        transcript.feed(data[start : start + size])
    return transcript


def told(data: bytes, size: int, columns: int = 200, rows: int = 50) -> list[str | list[str]]:
    """Return what is told of output: lines that are not drawn, and in their order screens."""
    transcript = fed(data, size, columns, rows)
    events = [*transcript.take_events(), *transcript.main_lines()]
    return [
        event.text if isinstance(event, Line) else list(event.rows)
        for event in events
        if isinstance(event, Screen) or (isinstance(event, Line) and not event.is_drawn)
    ]


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("stream", STREAMS)
def test_program_that_addresses_the_cursor_or_has_the_alternate_screen_draws(
    stream: bytes, size: int
) -> None:
    assert fed(stream, size).is_drawn_on == STREAMS[stream]


# What is printed, and what is told of it: lines, and screens when they are over.
OUTPUTS: dict[str, tuple[bytes, list[str | list[str]]]] = {
    "between lines": (
        b"one\r\n\033[?1049h\033[Hscreen\033[?1049ltwo\r\n",
        ["one", ["screen"], "two", ""],
    ),
    "until the screen scrolls": (
        b"one\r\n\033[5;1Hstatus\r\ntwo\r\nthree",
        ["one", ["one"], "status", "two", "three"],
    ),
    "until a line editor begins": (
        b"one\r\n\033[3;1Hstatus\r\n\033[?2004h$ ",
        ["one", ["one", "", "status"], "$ "],
    ),
    "over lines": (
        b"one\r\ntwo\r\n\033[?25l\033[Htitle\033[2;2Hx\033[5;1H\r\n$ ",
        ["one", "two", ["title", "txo"], "$ "],
    ),
    "over a line that goes on": (
        b"one \0337\033[1;1HX\0338two",
        ["one ", "two"],
    ),
    "a bar below a line that goes on": (
        b"one \0337\033[5;1H42%\0338two\r\n\0337\033[5;1H43%\0338three",
        ["one two", "three"],
    ),
    "after the screen was cleared, as dialog does": (
        b"one\r\n\033[H\033[Jtitle\033[2;1Hrow\033c",
        ["one", ["title", "row"]],
    ),
    "after lines on a screen that was cleared": (
        b"\033[H\033[Jline\r\n\033[2;1Hrow\033c",
        ["line", ["line", "row"]],
    ),
    "where something is erased": (
        b"one\r\ntwo\r\n\033[1;1H\033[K\033[2;1H\033[2K\033[?2004h$ ",
        ["one", "two", [], "$ "],
    ),
    "in a region that scrolls": (
        b"one\r\n\033[2;4r\033[4;1Hx\r\ny\r\nz\033[r\033[?2004h$ ",
        ["one", ["one", "x", "y", "z"], "$ "],
    ),
    "blank rows between": (
        b"one\r\n\r\ntwo\r\n\033[5;1Hx\r\n\r\n$ ",
        ["one", "", "two", ["one", "", "two"], "x", "", "$ "],
    ),
}


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("name", OUTPUTS)
def test_what_is_drawn_is_told_from_lines(name: str, size: int) -> None:
    output, expected = OUTPUTS[name]
    assert told(output, size, 20, 5) == expected


@pytest.mark.parametrize(
    ("stream", "rows"),
    [
        (b"one\r\n\033[5;1Htwo", ["one"]),
        (b"one\r\n\033[?1049htwo", []),
        (b"one\r\n\033[?25l\033[H\033[2Jtwo", []),
        (b"one\r\n\033[?25l\033[2J\033[Htwo", []),
        (b"one\r\n\033[H\033[Jtitle\033[5;1Htwo\033[6;1H", []),
        (b"\033[5;1Hone\033[?2004h\r$ \033[7;1Htwo", ["", "", "", "", "$ e"]),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_rows_before_are_those_of_when_the_screen_is_addressed_and_erased(
    stream: bytes, rows: list[str], size: int
) -> None:
    assert fed(stream, size).rows_before == rows


def test_what_was_forgotten_stays_on_the_screen_and_is_in_no_line() -> None:
    transcript = fed(b"one\r\n\033[3;1Hstatus: 3\033[1;1H", 100)
    transcript.forget()
    transcript.feed(b"\033[3;9H4")
    assert transcript.rows() == ["one", "", "status: 4"]
    transcript.feed(b"\033[?2004h\r\n$ ")
    assert [one.text for one in transcript.main_lines()] == ["", "$ "]


def test_drawing_may_be_taken_for_lines() -> None:
    transcript = Transcript()
    transcript.feed(b"one\r\n\033[3;1Htwo\r\nthree")
    assert not transcript.is_drawn_on
    assert transcript.text() == "one\n\ntwo\nthree"


# The recordings of programs that draw on the screen; all others print lines. What a progress bar or
# a question draws at one place, and then goes back from, is not a screen.
DRAWS = {
    *("git-log-less", "git-log-less-no-alternate-screen", "helix", "kakoune", "less"),
    *("less-no-alternate-screen", "man-less", "neovim", "pv-many", "top", "vim-9", "watch"),
    *("whiptail", "enlighten"),
}
PROMPT = b"\033[?2004h$ "
# How a program may be started: what is printed before it, and after it.
WAYS = {
    "directly": (b"", b""),
    "by a script": (b"one\r\ntwo\r\n", b"three\r\n"),
    "after another program": (b"\033[?1049h\033[5;5Hfoo\033[?1049l", b""),
    "by a shell": (PROMPT + b"\033[?2004l\r", PROMPT),
}


@pytest.mark.parametrize("way", WAYS)
def test_same_programs_draw_however_they_are_started(way: str) -> None:
    """Of some 190 real programs: for how much of their output a program draws."""
    before, after = WAYS[way]
    drawing = set()
    for file in CORPUS.glob("*.out"):
        data = before + file.read_bytes() + after
        transcript = Transcript(separates_drawing=True)
        drawn = longest = 0
        for start in range(0, len(data), 25):
            transcript.feed(data[start : start + 25])
            drawn = drawn + 25 if transcript.is_drawn_on else 0
            longest = max(longest, drawn)
        if longest > len(data) // 4:
            drawing.add(file.stem)

    assert drawing == DRAWS


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_what_is_told_does_not_depend_on_how_the_output_is_cut(name: str) -> None:
    data = (CORPUS / f"{name}.out").read_bytes()
    assert told(data, 7) == told(data, len(data))


def test_lines_beside_a_progress_bar_are_lines() -> None:
    data = (CORPUS / "apt-get-fancy-progress.out").read_bytes()
    lines = told(data, 1000)
    assert "Unpacking hello (2.10-3) ..." in lines
    assert not any("Progress" in line for line in lines)
