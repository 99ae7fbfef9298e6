"""Whether a program draws on the whole screen, told from its bytes, in pieces of any size."""

import pytest

from tmux_debug_mcp.vt.drawing import Drawing, last_switch

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
    b"\033[?1049h\033[4;5Hfoo\033[?1049l$ ": False,
    b"\033[?1049h\033[?1049l\033[4;5Hfoo": True,
}


@pytest.mark.parametrize("stream", STREAMS)
def test_program_that_addresses_the_cursor_or_has_the_alternate_screen_draws(stream: bytes) -> None:
    whole, bytewise = Drawing(), Drawing()
    whole.feed(stream)
    for number in range(len(stream)):
        bytewise.feed(stream[number : number + 1])

    assert (whole.is_on, bytewise.is_on) == (STREAMS[stream], STREAMS[stream])
    assert whole.switched_at == bytewise.switched_at == stream.find(b"l", stream.find(b"49l")) + 1


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
