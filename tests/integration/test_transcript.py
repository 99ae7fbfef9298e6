"""What we make of a program's bytes is what tmux itself shows of them."""

import random
from collections.abc import Mapping
from pathlib import Path

import anyio
from support import Tools

from tmux_debug_mcp.panes.capturing import capture
from tmux_debug_mcp.panes.creation import NewPane
from tmux_debug_mcp.vt.rows import Row
from tmux_debug_mcp.vt.transcript import Transcript

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.out"))

# What programs that do not address the cursor print, and what they go back with.
PIECES = [
    b"\r\n", b"\r\n", b"\n", b"\r", b"\b", b"\b\b", b"\033[K", b"\r\033[K", b"\033[1K", b"\033[2K",
    b"\033[0m", b"\033[1;32m", b"\033]0;a title\a", b"\033]8;;http://x\033\\", b"\033[A",
    b"\033[2A", b"\033[B", b"\033[C", b"\033[3D", b"\033[G", b"\033[J", b"\033[?25l",
    b"\033[?2004h", b"\033[?2004l", b"\033(B", b"\033[2P", b"\033[2@", b"\033[3X", b"\033[L",
    b"\033[M", b"\033E", b"\0337", b"\0338", b"\a", b"\0", b"\033(0", b"\033)0", b"\033)B",
    b"\016", b"\017", b"\033c", b"\033[=5u", b"\033[>1u", b"\033[<u", b"\033[?u", b"\033[?4m",
    b"\033[>4;2m", b"\033[2 q", b"\033[2 @", b"\033[>2K", b"\033[=1A", b"\033[1?A", b"\033[1 2A",
    b"\033[1:2A", b"\033[?2J", b"\033[1;2\030", b"\033[1;\033[m",
]  # fmt: skip

# Scroll regions, what moves in and out of them, and what scrolls or stops there.
REGION_PIECES = [
    b"\n", b"\r\n", b"\r\n", b"\033[2;5r", b"\033[4;7r", b"\033[1;3r", b"\033[5;8r", b"\033[r",
    b"\033[L", b"\033[2L", b"\033[9L", b"\033[M", b"\033[2M", b"\033[9M", b"\033M", b"\033D",
    b"\033E", b"\033[S", b"\033[2S", b"\033[T", b"\033[2T", b"\033[9T", b"\033[A", b"\033[3A",
    b"\033[B", b"\033[3B", b"\033[2E", b"\033[2F", b"\033[H", b"\033[8;1H", b"\033[2;9H",
    b"\033[5;3H", b"\033[7d", b"\033[K", b"\r", b"\b", b"\033[Z", b"\033[2Z", b"\033[9Z",
]  # fmt: skip
# Sixel is not among them: a tmux that shows images moves the cursor below one.
STRINGS = [
    b"\033]1337;File=inline=1:" + b"iVBORw0KGgo" * 100 + b"\a",
    b"\033]52;c;" + b"TWFu\r\n" * 100 + b"\033\\",
    b"\033P0;1|" + b"17/0f1b\n" * 100 + b"\033\\",
    b"\033_Ga=T;" + b"AAAA" * 100 + b"\033\\",
    b"\033Ptmux;\033\033]52;c;TWFu\a\033\\",
    *(b"\033]0;cut\030", b"\033^cut\032", b"\033X\r\nsos\033\\", b"\033]0;cut\033[31m"),
    b"\033[" + b"1;" * 100 + b"A",
]


def garbage(seed: int) -> bytes:
    """Return what a program may print that goes back to what it has printed; no wide characters."""
    choose = random.Random(seed)  # noqa: S311
    text = bytearray()
    for _ in range(choose.randrange(1, 400)):
        if choose.random() < 0.02:
            text += choose.choice(STRINGS)
        if choose.random() < 0.5:
            text += choose.choice(
                [b"a", b"bc", b"word ", b"x" * choose.randrange(1, 260), "lqk é".encode()]
            )
        else:
            text += choose.choice(PIECES[: choose.choice([6, 15, len(PIECES)])])
    return bytes(text)


def garbage_in_a_region(seed: int) -> bytes:
    """Return what a program may print that scrolls parts of a terminal of 8 rows."""
    choose = random.Random(seed)  # noqa: S311
    text = bytearray()
    for number in range(choose.randrange(1, 200)):
        if choose.random() < 0.4:
            text += b"%d" % number + b"x" * choose.choice([0, 0, 3, 38, 90])
        else:
            text += choose.choice(REGION_PIECES)
    return bytes(text)


async def as_tmux_shows_it(
    tools: Tools, data: bytes, file: Path, columns: int = 200, rows: int = 50
) -> list[str]:
    """Return all lines of a terminal that got these bytes, by way of a file."""
    file.write_bytes(data)
    command = f"stty raw -echo; cat {file}"
    pane = await tools.engine.create(NewPane(command, columns=columns, rows=rows))
    await tools.exited(pane.id)
    lines = (await capture(pane, 100_000)).split("\n")
    await tools.blocks("kill_pane", pane_id=pane.id)
    return comparable(lines)


async def check_as_tmux_shows_it(
    tools: Tools, outputs: Mapping[str, bytes], size: int, columns: int = 200, rows: int = 50
) -> None:
    """Check that outputs read as tmux shows them, at once and in pieces of a size."""
    room = anyio.CapacityLimiter(8)

    async def check(name: str, data: bytes) -> None:
        async with room:
            file = tools.engine.settings.cwd / name
            expected = await as_tmux_shows_it(tools, data, file, columns, rows)
        assert as_we_read_it(data, len(data), columns, rows) == expected, (name, data)
        assert as_we_read_it(data, size, columns, rows) == expected, (name, data)

    async with anyio.create_task_group() as tasks:
        for name, data in outputs.items():
            tasks.start_soon(check, name, data)


def as_we_read_it(data: bytes, size: int, columns: int = 200, rows: int = 50) -> list[str]:
    """Return the lines of the transcript that is fed pieces of this size."""
    transcript = Transcript(columns, rows)
    for start in range(0, len(data), size):
        transcript.feed(data[start : start + size])
    return comparable(transcript.text().split("\n"))


def comparable(lines: list[str]) -> list[str]:
    """Return the lines without what depends on tmux's version: tabs, and blanks at their ends."""
    rows = [Row(line) for line in lines]
    for row in rows:
        row.insert_blanks(0, 0, 1_000_000)  # what moves loses its tabs
    lines = [str(row).rstrip(" ") for row in rows]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def test_corpus_is_a_hundred_real_programs_and_more() -> None:
    assert len({path.read_bytes() for path in CORPUS}) > 100


async def test_output_of_real_programs_reads_as_tmux_shows_it(tools: Tools) -> None:
    # tmux clears the history, and we read on.
    outputs = {path.stem: path.read_bytes().replace(b"\033[3J", b"") for path in CORPUS}
    await check_as_tmux_shows_it(tools, outputs, 7)


async def test_output_that_goes_back_and_forth_reads_as_tmux_shows_it(tools: Tools) -> None:
    await check_as_tmux_shows_it(tools, {f"{seed}": garbage(seed) for seed in range(30)}, 1)


async def test_regions_that_scroll_read_as_tmux_shows_them(tools: Tools) -> None:
    outputs = {f"{seed}": garbage_in_a_region(seed) for seed in range(30)}
    await check_as_tmux_shows_it(tools, outputs, 1, 40, 8)
