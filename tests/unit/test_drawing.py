"""Whether a program draws on the whole screen, told from its bytes, in pieces of any size."""

from pathlib import Path

import pytest

from tmux_debug_mcp.vt.drawing import Drawing, last_switch

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
    b"\033[1;49r\033[49;1H\033[r\n\n\n": False,
}


@pytest.mark.parametrize("stream", STREAMS)
def test_program_that_addresses_the_cursor_or_has_the_alternate_screen_draws(stream: bytes) -> None:
    whole, bytewise = Drawing(), Drawing()
    whole.feed(stream)
    for number in range(len(stream)):
        bytewise.feed(stream[number : number + 1])

    assert (whole.is_on, bytewise.is_on) == (STREAMS[stream], STREAMS[stream])
    assert whole.all_spans() == bytewise.all_spans()


def test_spans_are_what_was_drawn() -> None:
    drawing = Drawing(100, 24)
    drawing.feed(b"one\r\n\033[?1049h\033[Hscreen\033[?1049ltwo\r\n")
    drawing.feed(b"\033[24;1Hstatus\r\nthree\r\n\033[5;5Hagain")

    assert drawing.spans == [(105, 122), (135, 142)]
    assert drawing.all_spans()[-1] == (157, 168)
    drawing.forget()
    assert drawing.spans == []
    assert drawing.all_spans() == [(168, 168)]


def test_of_many_spans_the_first_and_the_newest_are_kept_and_the_rest_as_one() -> None:
    flash = b"a\033[?1049hx\033[?1049l"
    drawing, bytewise = Drawing(), Drawing()
    for number in range(1, 5001):
        drawing.feed(flash)
        for byte in range(len(flash)):
            bytewise.feed(flash[byte : byte + 1])
        spans = [(start + 1, start + 10) for start in range(0, number * len(flash), len(flash))]
        known = drawing.all_spans()
        if drawing.forgotten is None:
            assert known == spans
        else:
            at = known.index(drawing.forgotten)
            (start, _), (_, end) = spans[at], spans[len(spans) - len(known) + at]
            assert known == [*spans[:at], (start, end), *spans[len(spans) - len(known) + at + 1 :]]
        assert len(known) <= 520

    assert bytewise.all_spans() == drawing.all_spans()
    copy = drawing.copy()
    copy.feed(flash)
    assert bytewise.all_spans() == drawing.all_spans()
    drawing.forget()
    assert drawing.forgotten is None


@pytest.mark.parametrize(
    ("stream", "span"),
    [
        (b"one\r\n\033[H\033[Jtitle\033[2;1Hrow", (5, 25)),  # as dialog does
        (b"one\r\n\033[2J\033[Htitle\033[2;1Hrow", (9, 26)),
        (b"\033[?1049hx\033[?1049l\033[H\033[Jtitle\033[2;1Hrow", (17, 37)),
        (b"\033[H\033[J\033[H\033[Jtitle\033[2;1Hrow", (6, 26)),
        (b"\033[H\033[Jline\r\n\033[2;1Hrow", (12, 21)),
        (b"\033[H\033[J$ \033[?2004h\033[2;1Hrow", (16, 25)),
        (b"\033[H\033[Jline\033[?1049hrow", (10, 21)),
    ],
)
def test_row_that_is_printed_after_the_screen_was_cleared_is_drawn_with_the_others(
    stream: bytes, span: tuple[int, int]
) -> None:
    whole, bytewise = Drawing(), Drawing()
    whole.feed(stream)
    for number in range(len(stream)):
        bytewise.feed(stream[number : number + 1])
    assert whole.all_spans()[-1] == bytewise.all_spans()[-1] == span


@pytest.mark.parametrize(
    ("stream", "since"),
    [
        (b"one\n\033[5;1Htwo", 10),
        (b"one\n\033[?1049htwo", 12),
        (b"\033[?25l\033[H\033[2Jtwo", 13),
        (b"\033[?25l\033[2J\033[Htwo", 13),
        (b"\033[H\033[Jone\033[5;1Htwo\033[6;1H", 15),
        (b"\033[5;1Hone\033[?2004h$ \033[7;1H", 25),
    ],
)
def test_drawing_is_on_since_the_screen_is_addressed_and_erased(stream: bytes, since: int) -> None:
    whole, bytewise = Drawing(), Drawing()
    whole.feed(stream)
    for number in range(len(stream)):
        bytewise.feed(stream[number : number + 1])
    assert whole.on_since == bytewise.on_since == since


def test_alternate_screen_that_was_on_before_is_on_until_it_goes() -> None:
    drawing = Drawing(is_alternate=True)
    assert drawing.is_on
    drawing.feed(b"\033[?1049l")
    assert not drawing.is_on


@pytest.mark.parametrize(
    ("data", "is_on"),
    [
        (b"", None),
        (b"\033[?1049h", True),
        (b"\033[?1049h..\033[?1049l", False),
        (b"\033[?25h", None),
    ],
)
def test_last_switch_counts(data: bytes, *, is_on: bool | None) -> None:
    assert last_switch(data) is is_on


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


def spans_of(data: bytes, size: int) -> list[tuple[int, int]]:
    """Return what of some output is drawn, which is fed in pieces of a size."""
    drawing = Drawing()
    for start in range(0, len(data), size):
        drawing.feed(data[start : start + size])
    return drawing.all_spans()


@pytest.mark.parametrize("size", [1 << 20, 100], ids=["at once", "slowly"])
@pytest.mark.parametrize("way", WAYS)
def test_same_programs_draw_however_they_are_started(way: str, size: int) -> None:
    """Of some 190 real programs, whose output comes whole or in pieces."""
    before, after = WAYS[way]
    drawing = set()
    for file in CORPUS.glob("*.out"):
        data = file.read_bytes()
        spans = spans_of(before + data + after, size)
        longest = max((end - start for start, end in spans if end > len(before)), default=0)
        if longest > len(data) // 4:
            drawing.add(file.stem)

    assert drawing == DRAWS


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_spans_do_not_depend_on_how_the_output_is_cut(name: str) -> None:
    data = (CORPUS / f"{name}.out").read_bytes()
    assert spans_of(data, 7) == spans_of(data, len(data))


def test_lines_beside_a_progress_bar_are_lines() -> None:
    data = (CORPUS / "apt-get-fancy-progress.out").read_bytes()
    drawing = Drawing()
    drawing.feed(data)

    lines = data
    for start, end in reversed(drawing.all_spans()):
        lines = lines[:start] + lines[end:]
    assert b"Unpacking hello (2.10-3) ...\r\n" in lines
    assert b"Progress" not in lines
