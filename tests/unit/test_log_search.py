"""A search finds in a log what a terminal shows of its lines, and takes turns."""

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.logs.searching import search
from tmux_debug_mcp.turns import TURN_WORK, work_of
from tmux_debug_mcp.vt.transcript import Transcript


def log_of(directory: Path, data: bytes) -> Log:
    log = Log.create(directory / "log", "mark")
    log.path.write_bytes(data)
    return log


async def matching(log: Log, pattern: str) -> int:
    """Return how many lines match."""
    expression = compiled("pattern", pattern, is_for_bytes=True)
    return len((await search(log, 0, log.size, expression, 1000)).matches)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"12345\r\033[Kok", "ok"),
        ("o\x9b\x85k".encode(), "ok"),
        ("no\ro\x9b\x85k".encode(), "ok"),
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
    found = await search(log, 0, log.size, expression, 1, context=2)
    assert [line.text for line in found.lines] == ["first", shown, "last"]
    assert [found.is_match(line) for line in found.lines] == [False, False, True]


PARTS = [
    *(b"ab", b"c ", b"K", b"x" * 19, b"y" * 20, b"z" * 41),
    *(" ä".encode(), "日本".encode(), "e\u0301".encode(), "⠋".encode()),
    *(b"\r", b"\r", b"\r", b"\r\r", b"\b", b"\b\b", b"\a", b"\0", b"\030", b"\177\xc2\x9b"),
    *(b"\033[K", b"\033[K", b"\033[0K", b"\033[1K", b"\033[2K", b"\033[2K\r"),
    *(b"\033[1G", b"\033[G", b"\033[7G", b"\033[3C", b"\033[2D", b"\033[5b"),
    *(b"\033[2P", b"\033[2@", b"\033[3X", b"\033[A", b"\033[B", b"\033M", b"\0337", b"\0338"),
    *(b"\033[J", b"\033[2J", b"\033[H", b"\033c", b"\033[2;3r"),
    *(b"\033[31m", b"\033[m", b"\033]0;title\a", b"\033Pq#0\033\\", b"\033[?25l"),
    *(b"\033[?2004h", b"\033[?2004l", b"\033[?1049h", b"\033[?1049l"),
    *(b"\033(0lqk\033(B", b"\033(0q", b"\033(B", b"\033)0", b"\016q", b"\017"),
    *(b"\033", b"\033[", b"\033[3", b"\033("),
]

OVERWRITING = [b"ab", b"c ", b"x" * 19, b"y" * 20, b"z" * 41, b"\r", b"\r", b"\r"]


@pytest.mark.parametrize("seed", range(15))
async def test_each_line_is_searched_as_if_a_terminal_showed_it_alone(
    tmp_path: Path, seed: int
) -> None:
    choose = random.Random(seed)  # noqa: S311
    parts, max_parts = choose.sample(PARTS, 12), 8
    if seed % 5 == 0:
        parts, max_parts = OVERWRITING, 80
    lines = [b"".join(choose.choices(parts, k=choose.randint(0, max_parts))) for _ in range(100)]
    log = log_of(tmp_path, b"".join(line + b"\r\n" for line in lines))
    log.begin(20, 5)
    shown: Counter[str] = Counter()
    for line in lines:
        transcript = Transcript(20, 5)
        transcript.feed(line)
        shown.update(set(transcript.text().split("\n")))

    for row in choose.sample(sorted(shown), min(len(shown), 15)):
        assert await matching(log, f"^{re.escape(row)}$") == shown[row]


SPINNERS: list[Callable[[int], bytes]] = [
    lambda n: b"\r%c compiling unit %d" % (b"|/-\\"[n % 4], n),
    lambda n: b"%d%%\r%d%%\033[K\r\n" % (n, n + 1),
    lambda n: f"\r⠋ building {n}\033[K".encode(),
]


@pytest.mark.parametrize("spinner", SPINNERS, ids=["bare", "lines", "erasing"])
async def test_search_of_spinners_takes_many_turns(
    tmp_path: Path, spinner: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(map(spinner, range(60_000)))
    log = log_of(tmp_path, data)
    feed = Transcript.feed
    fed = most_in_a_turn = turns = 0

    def counting_feed(transcript: Transcript, data: bytes) -> None:
        nonlocal fed
        fed += work_of(data)
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
        await anyio.lowlevel.checkpoint()  # it begins to count
        assert await matching(log, "never there") == 0
        tasks.cancel_scope.cancel()

    assert 0 < most_in_a_turn <= TURN_WORK
    assert turns > len(data) >> 16


@pytest.mark.parametrize(
    "pattern", [r"[^\n]+x", r"[]\n]", r"C:\\new", r"\Qa\nb\E", r"x\n?", r"\[x\n*"]
)
def test_pattern_that_can_match_beside_a_line_feed_is_taken(pattern: str) -> None:
    assert compiled("pattern", pattern)


@pytest.mark.parametrize("pattern", [r"x\n", "x\ny", r"\\\n", r"[a]\n$", r"\r?\n", r"\[\n]"])
def test_pattern_of_several_lines_is_refused(pattern: str) -> None:
    with pytest.raises(ArgumentError, match="is matched line by line"):
        compiled("pattern", pattern)
