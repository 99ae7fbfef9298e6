"""Pacing: output in pieces of at most a turn's work."""

from collections.abc import Iterator

from tmux_debug_mcp.turns import TURN_WORK

# The work for a control character, or for CR LF. Each sequence begins with one, and nothing else
# can make a terminal scroll, or clear a screen of 200 rows.
_CONTROL_WORK = 1 << 5
_CONTROLS = bytes([*range(0x20), 0x7F])


def work_of(data: bytes) -> int:
    """Return how much work some output is for a terminal."""
    controls = len(data) - len(data.translate(None, _CONTROLS)) - data.count(b"\r\n")
    return len(data) + _CONTROL_WORK * controls


def pieces(data: bytes | bytearray) -> Iterator[bytes]:
    """Yield output in pieces, each of at most a turn's work."""
    position = 0
    while position < len(data):
        piece = bytes(data[position : position + TURN_WORK])
        work = work_of(piece)
        while work > TURN_WORK:
            piece = piece[: min(len(piece) * TURN_WORK // work, len(piece) * 7 // 8)]
            work = work_of(piece)
        yield piece
        position += len(piece)
