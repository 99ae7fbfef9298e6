"""Pieces of output are as large as a turn's work allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.logs.pacing import TURN_WORK, pieces, work_of


@given(
    st.lists(
        st.sampled_from([b"\r\n", b"\033[m", b"\r", b"plain text", b"x" * 5000]), max_size=3
    ).map(b"".join),
    st.integers(1, 3000),
)
def test_no_piece_is_more_than_a_turn_of_work_and_none_is_lost(part: bytes, count: int) -> None:
    data = part * count
    found = list(pieces(data))

    assert b"".join(found) == data
    assert all(0 < work_of(piece) <= TURN_WORK for piece in found)


@pytest.mark.parametrize("line", [b"\r\n", b"line 00000000000001\r\n", b"\033[32mok\033[m\r\n"])
def test_pieces_of_lines_fill_most_of_a_turn(line: bytes) -> None:
    *found, _ = pieces(line * 5000)

    assert all(work_of(piece) > TURN_WORK * 3 // 4 for piece in found)
