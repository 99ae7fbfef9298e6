"""Clean text of a log is the same however it is read."""

import random
from pathlib import Path

import anyio.lowlevel
import pytest
from support import abridged
from turns import largest_turns

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.positioning import transcript_from
from tmux_debug_mcp.logs.reading import (
    read_chunk,
    read_end,
    read_forward,
)
from tmux_debug_mcp.vt.transcript import Transcript

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.out"))
STRINGS = [
    (b"\033]1337;File=inline=1:", b"iVBORw0KGgo", b"\a"),
    (b"\033]52;c;", b"iVBORw0KGgo=\r\n", b"\033\\"),
    (b"\033P0;1;0q", b"#0;2;0;0;0~-\n", b"\033\\"),
    (b"\033_Ga=T;", b"AAAA", b"\033\\"),
    (b"\033]7;", b"words and blanks ", b"\a"),
]


def log_of(directory: Path, data: bytes) -> Log:
    log = Log.create(directory / "log", "mark")
    log.path.write_bytes(data)
    return log


@pytest.mark.parametrize("size", [20_000, 200_000, 1_200_000])
@pytest.mark.parametrize(("introducer", "payload", "terminator"), STRINGS)
async def test_image_shows_nothing_wherever_reading_begins_and_ends(
    tmp_path: Path, size: int, introducer: bytes, payload: bytes, terminator: bytes
) -> None:
    if b" " in payload:
        size = min(size, 250_000)
    string = introducer + payload * (size // len(payload)) + terminator
    log = log_of(tmp_path, b"before\r\n" + string + b"done\r\n")
    end = log.size

    # Of more than 1 MiB that shows little, the end is read alone.
    assert (await read_end(log, 0, end, 16_000)).text in ("before\ndone\n", "done\n")
    excerpt = await abridged(log, 0, end, 16_000, folds=False)
    shown = [line for index, line in enumerate(excerpt.lines) if index not in excerpt.notes]
    assert shown == ["before", "done", ""]
    choose = random.Random(size)  # noqa: S311
    for _ in range(4):
        cursor = choose.randrange(8, end - len(terminator) - 6)
        first = await read_forward(log, 0, cursor, 40_000)
        rest = await read_forward(log, first.end, end, 40_000)
        while rest.remaining_bytes:
            assert not rest.text
            rest = await read_forward(log, rest.end, end, 40_000)
        assert first.text + rest.text == "before\ndone\n"
        assert (await read_forward(log, cursor, end, 40_000)).text in ("done\n", "")


async def test_pieces_put_together_are_what_a_terminal_shows(tmp_path: Path) -> None:
    choose = random.Random(1)  # noqa: S311
    parts: list[bytes] = []
    for number in range(100):
        parts.append(b"line %d \033[31mred\033[m \xe4\xb8\x96\r\n" % number)
        introducer, payload, terminator = choose.choice(STRINGS)
        if choose.random() < 0.3:
            parts.append(introducer + payload * choose.randrange(2000) + terminator)
    data = b"".join(parts)
    log = log_of(tmp_path, data)
    transcript = Transcript()
    transcript.feed(data)
    for max_bytes in (1000, 5000, 70_000):
        texts: list[str] = []
        cursor = 0
        while cursor < log.size:
            piece = await read_chunk(log, cursor, log.size, max_bytes)
            assert piece.end > cursor
            texts.append(piece.text)
            cursor = piece.end

        assert "".join(texts) == transcript.text()


async def test_cursor_within_a_sequence_is_no_text(tmp_path: Path) -> None:
    log = log_of(tmp_path, b"one\033[3;4")

    for cursor in range(4, log.size + 1):
        piece = await read_forward(log, cursor, log.size, 1000)
        assert (piece.text, piece.end) == ("", cursor)


async def test_cursor_within_a_character_shows_all_of_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, "日本\r\n".encode())

    for cursor in (1, 2):
        assert (await read_forward(log, cursor, log.size, 100)).text == "日本\n"


async def test_line_too_long_before_much_that_shows_little_is_read_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed_bytes = 0
    feed = Transcript.feed

    def counting_feed(transcript: Transcript, data: bytes, end: int | None = None) -> None:
        nonlocal fed_bytes
        fed_bytes += len(data)
        feed(transcript, data, end)

    monkeypatch.setattr(Transcript, "feed", counting_feed)
    again = b"".join(b"\033[A\r%d of many\r\n" % number for number in range(5000))
    log = log_of(tmp_path, b"x" * 16_010 + b"\r\n\r\n" + again)
    piece = await read_forward(log, 0, log.size, 16_000)

    assert 8000 <= len(piece.text) <= 16_000
    assert fed_bytes < 3 * log.size


async def test_no_turn_looks_for_two_things_far_back_in_a_flood(tmp_path: Path) -> None:
    log = log_of(tmp_path, b"123456\n" * (10 << 17))

    with largest_turns() as most:
        await anyio.lowlevel.checkpoint()  # begins a turn that is counted
        await transcript_from(log, log.size)
        await anyio.lowlevel.checkpoint()

    assert (4 << 20) < most["bytes of logs"] < (5 << 20)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
async def test_transcript_that_goes_on_from_an_earlier_cursor_is_as_one_made_anew(
    tmp_path: Path, path: Path
) -> None:
    """Those made anew know the log from its beginning here."""
    log = log_of(tmp_path, path.read_bytes()[:8192])
    choose = random.Random(path.stem)  # noqa: S311
    for cursor in sorted(choose.randrange(log.size) for _ in range(4)):
        going_on = await transcript_from(log, cursor)
        known, log.checkpoint = log.checkpoint, None
        assert known
        assert known.cursor == cursor
        anew = await transcript_from(log, cursor)
        log.checkpoint = known
        for transcript in (going_on, anew):
            transcript.feed(log.read(cursor, log.size - cursor))
        assert going_on.text() == anew.text()
        assert going_on.rows() == anew.rows()


async def test_transcript_goes_on_only_from_what_is_near_and_of_the_same_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, b"%\r\n" * 40_000)
    read = log.read
    sizes: list[int] = []

    def counted(start: int, size: int) -> bytes:
        data = read(start, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(log, "read", counted)

    async def bytes_for(cursor: int) -> int:
        sizes.clear()
        await transcript_from(log, cursor)
        return sum(sizes)

    assert await bytes_for(60_000) > 8192
    assert await bytes_for(60_100) == 100
    assert await bytes_for(90_000) > 8192
    assert await bytes_for(50_000) > 8192
    assert await bytes_for(90_010) == 10
    log.resize(40, 10)
    assert await bytes_for(90_010) > 8192
    log.kept_from = 90_020
    assert await bytes_for(90_050) > 40  # what was in between is gone


@pytest.mark.parametrize("max_characters", [1, 2, 7, 50, 99, 100, 101, 150])
async def test_small_pieces_put_together_are_the_whole_text(
    tmp_path: Path, max_characters: int
) -> None:
    """However small the pieces are, reading comes to an end, and nothing is lost between them."""
    numbers = b"".join(b"%d\r\n" % number for number in range(60))
    log = log_of(tmp_path, numbers + b"x" * 120 + b"\r\nend\r\n")
    text, cursor = "", 0
    while cursor < log.size:
        piece = await read_forward(log, cursor, log.size, max_characters)
        assert piece.end > cursor
        text, cursor = text + piece.text, piece.end
    assert text == numbers.replace(b"\r", b"").decode() + "x" * 120 + "\nend\n"


async def test_reading_goes_on_in_the_middle_of_the_alternate_screen(tmp_path: Path) -> None:
    before = b"before\r\n\033[?1049h\033[H\033[2Jmenu 1\r\nmenu 2\r\n"
    after = b"\033[H\033[2Jpage two\r\nstatus: 3 files\r\033[?1049lAFTER\r\n"
    log = log_of(tmp_path, before + after)

    first = await read_forward(log, 0, len(before), 1000)
    rest = await read_forward(log, first.end, log.size, 1000)

    assert first.text == "before\n[screen]\nmenu 1\nmenu 2\n"
    assert rest.text == "[screen]\npage two\nstatus: 3 files\nAFTER\n"


NUMBERS = "".join(f"{number}\n" for number in range(1, 401))


@pytest.mark.parametrize(
    "text",
    [
        NUMBERS + " ".join(map(str, range(400))) + "\n",
        " ".join(map(str, range(4000))),
        "one\n" + " ".join(map(str, range(4000))) + "\n" + NUMBERS,
        NUMBERS + "\033[?1049h" + NUMBERS + "\033[?1049l" + NUMBERS,
    ],
    ids=["a long line at the end", "one line", "a long line at the beginning", "a screen"],
)
async def test_gap_tells_what_is_left_out(tmp_path: Path, text: str) -> None:
    log = log_of(tmp_path, text.replace("\n", "\r\n").encode())

    excerpt = await abridged(log, 0, log.size, 1000, folds=False)
    [number], [gap] = excerpt.notes, excerpt.gaps
    assert gap.line == number
    read = await read_forward(log, gap.since, log.size, 100_000, gap.lines)

    whole = (await read_forward(log, 0, log.size, 100_000)).text
    start = whole.index(read.text)
    assert whole[:start].removesuffix("\n") == "\n".join(excerpt.lines[:number])
    # A line whose end is shown is read to its end.
    rest = whole[start + len(read.text) :]
    shown = "\n".join(excerpt.lines[number + 1 :])
    assert shown.endswith(rest)
    assert shown.removesuffix(rest).count("\n") <= 1
    assert (read.text + rest).endswith(shown)


async def test_line_typed_for_a_command_that_is_too_long_is_divided(tmp_path: Path) -> None:
    typed = b"$ . /run/tmux-debug-mcp-0-01234567/1.1-swift-otter\r\n"
    mark = b"\033]7777;0123456789abcdef;S0;make everything\a"
    log = log_of(tmp_path, typed + mark + b"done\r\n")

    piece = await read_forward(log, 0, len(typed + mark), 5)

    assert 0 < piece.end < log.size
    assert len(piece.text) <= 5
