"""A search finds in a log what a terminal shows of its lines, and takes turns."""

from pathlib import Path

import anyio
import pytest

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.logs.searching import search
from tmux_debug_mcp.vt.transcript import Transcript


def log_of(directory: Path, data: bytes) -> Log:
    log = Log(directory / "log", "mark")
    log.path.write_bytes(data)
    return log


async def matching(log: Log, pattern: str) -> int:
    """Return how many lines match."""
    expression = compiled("pattern", pattern, is_for_bytes=True)
    _, count = await search(log, 0, log.size, expression, 1000)
    return count


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"12345\r\033[Kok", "ok"),
        (b"10%\r\033[2K20%\r\033[0Kready", "ready"),
        (b"ab\033[3Ccd", "ab   cd"),
        (b"abcd\033[2DXY", "abXY"),
        (b"abcd\033[1GXY", "XYcd"),
        (b"ab\033[5b", "abbbbbb"),
        (b"\033(0lqk\033(B", "┌─┐"),
        (b"a\tb\rXY", "XY      b"),
        (b"abcdef\033[3D\033[K", "abc"),
        (b"abcdef\033[4D\033[2P", "abef"),
        (b"abcdef\033[4D\033[2@", "ab  cdef"),
        (b"abcdef\033[4D\033[2X", "ab  ef"),
        ("日本\r語".encode(), "語本"),
        (b"\033[?2004h$ ls\b\bps\033[?2004l", "$ ps"),
        (b"\033]0;title\033\\\033[1;31mred\033[m\033[K", "red"),
        (b"one\033]52;c;" + b"TWFu\r\n" * 500 + b"\atwo", "onetwo"),
        (b"one\033P0q" + b"T\r\n" * 500 + b"\030two", "onetwo"),
    ],
)
async def test_line_is_found_as_a_terminal_shows_it(
    tmp_path: Path, line: bytes, shown: str
) -> None:
    transcript = Transcript()
    transcript.feed(line)
    assert transcript.text() == shown
    log = log_of(tmp_path, b"first\r\n" + line + b"\r\n" + b"last\r\n")

    assert await matching(log, f"^{shown.replace('$', '[$]')}$") == 1
    assert await matching(log, "^") == 3
    assert await matching(log, "TWFu|title|12345|10%") == 0
    if b"\n" in line:  # what surrounds a line is counted in line feeds
        return
    expression = compiled("pattern", "^last$", is_for_bytes=True)
    excerpt, _ = await search(log, 0, log.size, expression, 1)
    assert excerpt.lines[1:] == ["first", shown, "last"]


SPINNERS = [
    b"".join(b"\r%c compiling unit %d" % (b"|/-\\"[n % 4], n) for n in range(60_000)),
    b"".join(b"%d%%\r%d%%\033[K\r\n" % (n, n + 1) for n in range(60_000)),
    b"".join(f"\r⠋ building {n}\033[K".encode() for n in range(60_000)),
]


@pytest.mark.parametrize("data", SPINNERS)
async def test_search_of_spinners_takes_many_turns(
    tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, data)
    feed = Transcript.feed
    fed = most_in_a_turn = turns = 0

    def counting_feed(transcript: Transcript, data: bytes) -> None:
        nonlocal fed
        fed += len(data)
        feed(transcript, data)

    async def take_turns() -> None:
        nonlocal turns, most_in_a_turn, fed
        while True:
            await anyio.lowlevel.checkpoint()
            most_in_a_turn = max(most_in_a_turn, fed)
            turns += 1
            fed = 0

    monkeypatch.setattr(Transcript, "feed", counting_feed)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        assert await matching(log, "never there") == 0
        tasks.cancel_scope.cancel()

    assert 0 < most_in_a_turn <= 1 << 16
    assert turns > len(data) >> 16
