"""The control mode parser and quoting: values in, values out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.tmux.control_mode import Block, ControlModeParser, command_line, quote

OURS = b"%begin 17 5 1\nline\n%end 17 5 1\n"


def parse(data: bytes, size: int = 1 << 20) -> list[Block | bytes]:
    parser = ControlModeParser()
    return [
        event
        for start in range(0, len(data), size)
        for event in parser.feed(data[start : start + size])
    ]


def test_block_of_ours_is_its_lines() -> None:
    assert parse(OURS) == [Block(ok=True, lines=(b"line",))]


def test_error_block_is_not_ok_and_has_the_reason() -> None:
    data = b"%begin 17 5 1\ncan't find pane: %9\n%error 17 5 1\n"

    assert parse(data) == [Block(ok=False, lines=(b"can't find pane: %9",))]


def test_block_that_the_server_began_on_its_own_is_left_out() -> None:
    assert parse(b"%begin 17 4 0\nx\n%end 17 4 0\n" + OURS) == parse(OURS)


def test_lines_between_blocks_are_notifications() -> None:
    assert parse(b"%window-add @1\n" + OURS + b"%exit\n") == [
        b"%window-add @1",
        *parse(OURS),
        b"%exit",
    ]


@pytest.mark.parametrize(
    "forged", [b"%end 17 6 1", b"%end 17 5 0", b"%end 17 5 1 ", b"%begin 17 5 1", b"%error", b""]
)
def test_captured_line_that_looks_like_a_guard_does_not_close_the_block(forged: bytes) -> None:
    data = b"%begin 17 5 1\n" + forged + b"\nlast\n%end 17 5 1\n"

    assert parse(data) == [Block(ok=True, lines=(forged, b"last"))]


def test_carriage_return_stays_in_the_line() -> None:
    assert parse(b"%begin 1 2 1\na\r\n%end 1 2 1\n") == [Block(ok=True, lines=(b"a\r",))]


@given(
    st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=10),
    st.integers(1, 7),
)
def test_pieces_of_any_size_give_the_same_events(lines: list[bytes], size: int) -> None:
    data = (
        b"%window-add @1\n%begin 17 5 1\n"
        + b"".join(line + b"\n" for line in lines)
        + b"%end 17 5 1\n"
    )

    assert parse(data, size) == parse(data)


def unquote(line: str) -> bytes:
    """Return what tmux's lexer reads, by the rules that quoting relies on."""
    assert line[0] == line[-1] == '"'
    assert not re.search(r'(?<!\\)["$~]|[^ -~]', line[1:-1])
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), line[1:-1].encode())


@given(st.binary().filter(lambda data: 0 not in data))
def test_quoted_bytes_come_out_of_the_lexer_as_they_were(data: bytes) -> None:
    assert unquote(quote(data)) == data


def test_nul_is_refused_rather_than_lost() -> None:
    with pytest.raises(ValueError, match="a\0b"):
        quote("a\0b")


def test_command_line_is_one_line_with_every_word_quoted() -> None:
    line = command_line([["set-buffer", "a\nb;"], ["kill-pane", "-t", "%1"]])

    assert line == b'"set-buffer" "a\\012b;" ; "kill-pane" "-t" "%1"\n'
