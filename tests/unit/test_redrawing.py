"""What a program has written over is read, and cut, as it is in the end."""

import functools
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import category

import pytest
from support import abridged

from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.pane_text import PIECE_BYTES, PaneText
from tmux_debug_mcp.logs.reading import read_forward
from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import NOTE, Line, text_of
from tmux_debug_mcp.vt.sequences import only_appends
from tmux_debug_mcp.vt.transcript import Transcript

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.out"))
# What programs print in lines, and what they go back with; what is in lines may be in any order.
IN_LINES = [
    *(
        "\x9b3A\x85".encode(),
        b"\177",
        b"a",
        b"bc",
        b"word ",
        b"x" * 19,
        b"y" * 40,
        b"z" * 130,
        "é 日本".encode(),
        b"\t",
    ),
    *(b"\r\n", b"\r\n", b"\r\n", b"\r\n\r\n", b"\r\r\n", b"\033[K", b"\033[0K"),
    *(b"\033[1;32m", b"\033[m", b"\033]0;title\a", b"\033[?25l", b"\033[3C"),
    *(b"\033[3b", b"\033(B", b"\017", b"\0337", b"\033="),
]
GOING_BACK = [
    *(b"\r", b"\r\033[K", b"\033[2K", b"\033[2D", b"\033[G", b"\033[2P", b"\033[2@", b"\033[3X"),
    *(
        b"\b\b",
        b"\033[A",
        b"\033[2A",
        b"\033[3A\r",
        b"\033[9A",
        b"\033[B",
        b"\033[2B",
        b"\033[E",
        b"\033[2F",
    ),
    *(b"\033M", b"\033D", b"\033E", b"\n", b"\033[J", b"\r\033[J", b"\033[2J", b"\0337", b"\0338"),
    *(b"\033[H", b"\033[4;2H", b"\033[3d", b"\033[L", b"\033[2M", b"\033[S", b"\033[T", b"\033c"),
    *(b"\033[2;5r", b"\033[r", b"\033[?1049h", b"\033[?1049l", b"\033(0lq", b"\016", b"\v"),
    *(b"\033[?2004h", b"\033[?2004l", b"\033[s", b"\033[u", b"\033[1J"),
]


@contextmanager
def log_of(directory: Path, data: bytes, columns: int = 200, rows: int = 50) -> Iterator[Log]:
    log = Log.create(directory / "log", "mark")
    log.path.write_bytes(data)
    log.resize(columns, rows)
    yield log
    log.close()
    log.path.unlink()


async def lines_from(log: Log, cursor: int) -> list[Line]:
    """Return the lines from a cursor on, with screens."""
    text = await PaneText.to_read(log, cursor, log.size)
    lines: list[Line] = []
    while text.position < log.size:
        events, _ = await text.advance(log.size, PIECE_BYTES)
        lines += [event for event in events if isinstance(event, Line)]
    return [*lines, *text.open_lines]


def whole_text(log: Log) -> str:
    """Return the text of a whole log, as one terminal shows it."""
    transcript = Transcript(log.columns, log.rows)
    transcript.feed(log.read(0, log.size))
    settled = text_of(transcript.take_settled(is_annotated=True))
    text = settled + text_of(transcript.open_lines(is_annotated=True))[:-1]
    return without_paths(text).replace(NOTE, "")


def garbage(seed: int, *, goes_back: bool) -> bytes:
    choose = random.Random(seed)  # noqa: S311
    most = choose.choice([30, 300])
    pieces = IN_LINES
    if goes_back:
        pieces = [*IN_LINES, *choose.sample(GOING_BACK, choose.choice([1, 3, len(GOING_BACK)]))]
    return b"".join(choose.choice(pieces) for _ in range(choose.randrange(most)))


@functools.cache
def frames(count: int, rows: int, *, moves_up: bytes = b"\033[%dA") -> bytes:
    """Return rows that are drawn again and again where they are, between lines that stay."""
    drawn = [
        b"".join(
            b"\033[2Klayer %d: %d %s\r\n" % (row, frame * (row + 1), b"." * 30)
            for row in range(rows)
        )
        for frame in range(count)
    ]
    return b"begin\r\n" + (moves_up % rows).join(drawn) + b"end\r\n"


def outputs() -> Iterator[bytes]:
    """Yield what programs print, those of the corpus and random ones."""
    yield from (path.read_bytes() for path in CORPUS)
    for seed in range(120):
        yield garbage(seed, goes_back=seed % 3 > 0)
    yield frames(50, 20)


def check_cut(excerpt: Excerpt, whole: list[str]) -> list[str]:
    """Check that an excerpt is the whole text, or its ends. Return the lines that are left out."""
    gaps = [index for index in excerpt.notes if " left out" in excerpt.lines[index]]
    if not gaps:
        assert excerpt.lines == whole
        return []
    [index] = gaps
    before, note, after = excerpt.lines[:index], excerpt.lines[index], excerpt.lines[index + 1 :]
    found = re.match(r"\[([\d,]+) (lines?|bytes) left out", note)
    assert found
    if found[2] == "bytes":  # of one line; a tab in its middle has become blanks
        text = "".join("\n".join(whole).split())
        assert text.startswith("".join("".join(before).split()))
        assert text.endswith("".join("".join(after).split()))
        return []
    count = int(found[1].replace(",", ""))
    # The first and the last line that are left out may be there in part.
    for first in range(max(0, len(before) - 1), len(before) + 1):
        rest = whole[first + count :]
        is_after = after == rest or (after[1:] == rest and len(after) == len(rest) + 1)
        if before[:first] == whole[:first] and is_after:
            return whole[first : first + count]
    raise AssertionError((excerpt, whole))


async def test_cut_text_is_both_ends_of_what_the_terminal_shows(tmp_path: Path) -> None:
    for data in outputs():
        columns, rows = random.Random(data).choice([(200, 50), (80, 24), (40, 6)])  # noqa: S311
        with log_of(tmp_path, data, columns, rows) as log:
            text = whole_text(log)
            assert {one for one in text if category(one) == "Cc"} <= {"\t", "\n"}
            whole = text.split("\n") if text else []
            for most in random.Random(data).sample((150, 400, 1000, 4000, 16_000), 2):  # noqa: S311
                excerpt = await abridged(log, 0, log.size, most, folds=False)
                left_out = check_cut(excerpt, whole)
                for gap in excerpt.gaps if left_out else ():
                    piece = await read_forward(log, gap.since, log.size, 100_000, gap.lines)
                    # A line that is there in part is read from where it was cut.
                    assert "\n".join(left_out[1:]) in piece.text
                    assert piece.text in "\n".join([*whole, ""])


@pytest.mark.parametrize("most", [600, 1000, 4000])
async def test_lines_that_were_drawn_again_are_left_out_together(tmp_path: Path, most: int) -> None:
    """What the note says is read, put in its place, is the whole text."""
    menu = b"".join(b"item %d of the menu\r\n" % number for number in range(7))
    drawn = menu + b"\033[7A" + menu
    lines = b"".join(b"line %d\r\n" % number for number in range(25))
    for count in range(1, 9):
        data = (drawn * count + lines) * 20 + drawn * 3 + b"x" * 17 * count + b"\r\n" + drawn
        with log_of(tmp_path, data, 80, 24) as log:
            whole = whole_text(log)
            excerpt = await abridged(log, 0, log.size, most)
            [gap] = excerpt.gaps
            assert excerpt.notes == [gap.line]
            piece = await read_forward(log, gap.since, log.size, 100_000, gap.lines)
            parts = [*excerpt.lines[: gap.line], piece.text.removesuffix("\n")]
            assert "\n".join([*parts, *excerpt.lines[gap.line + 1 :]]) == whole


async def test_line_that_says_where_it_begins_is_read_from_there(tmp_path: Path) -> None:
    for data in outputs():
        with log_of(tmp_path, data, 80, 24) as log:
            lines = await lines_from(log, 0)
            known = [number for number, line in enumerate(lines) if line.begins_at is not None]
            for number in random.Random(data).sample(known, min(len(known), 20)):  # noqa: S311
                cursor = lines[number].begins_at
                assert cursor is not None
                rest = await lines_from(log, cursor)
                assert text_of(rest) == text_of(lines[number:]), (data, cursor)


async def test_output_in_lines_is_the_same_whichever_line_it_is_read_from(tmp_path: Path) -> None:
    count = 0
    for data in outputs():
        if not only_appends(data):
            continue
        count += 1
        with log_of(tmp_path, data, 80, 24) as log:
            lines = whole_text(log).split("\n")
            assert len(lines) == data.count(b"\n") + 1
            starts = [0, *(found.end() for found in re.finditer(b"\n", data))]
            for number in random.Random(data).sample(range(len(starts)), min(len(starts), 10)):  # noqa: S311
                piece = await read_forward(log, starts[number], log.size, 1 << 20)
                # What is unfinished at the end is held back.
                assert piece.text.split("\n") == lines[number:], (data, starts[number])
    assert count > 100


@pytest.mark.parametrize("up", [b"\033[%dA", b"\033[%dF", b"\0338\0337%.0d"])
@pytest.mark.parametrize("count", [50, 1000])
async def test_only_the_last_of_many_frames_is_shown(tmp_path: Path, up: bytes, count: int) -> None:
    data = frames(count, 20, moves_up=up).replace(b"begin\r\n", b"begin\r\n\0337")
    with log_of(tmp_path, data) as log:
        whole = whole_text(log).split("\n")
        assert len(whole) == 23
        assert whole[20].startswith(f"layer 19: {20 * (count - 1)} ")

        for most in (300, 16_000):
            excerpt = await abridged(log, 0, log.size, most, folds=True)

            shown = [
                line for number, line in enumerate(excerpt.lines) if number not in excerpt.notes
            ]
            assert all(line in "\n".join(whole) for line in shown)
            assert excerpt.lines[-3:] == whole[-3:]
            # All rows are there, or there is a note.
            assert len(shown) == len(whole) or excerpt.cut_bytes
