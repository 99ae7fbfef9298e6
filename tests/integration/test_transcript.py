"""What we make of a program's bytes is what tmux itself shows of them."""

import random
from pathlib import Path

import pytest
from support import Tools

from tmux_debug_mcp.panes.capturing import capture
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


def garbage(seed: int) -> bytes:
    """Return what a program may print that goes back to what it has printed; no wide characters."""
    choose = random.Random(seed)  # noqa: S311
    text = bytearray()
    for _ in range(choose.randrange(1, 400)):
        if choose.random() < 0.5:
            text += choose.choice(
                [b"a", b"bc", b"word ", b"x" * choose.randrange(1, 260), "lqk é".encode()]
            )
        else:
            text += choose.choice(PIECES[: choose.choice([6, 15, len(PIECES)])])
    return bytes(text)


async def as_tmux_shows_it(tools: Tools, data: bytes, directory: Path) -> list[str]:
    """Return all lines of a terminal that got these bytes."""
    (directory / "data").write_bytes(data)
    pane_id = await tools.create(f"stty raw -echo; cat {directory}/data")
    await tools.exited(pane_id)
    pane = await tools.engine.find(pane_id)
    lines = (await capture(pane, 100_000)).split("\n")
    await tools.blocks("kill_pane", pane_id=pane_id)
    return comparable(lines)


def as_we_read_it(data: bytes, size: int) -> list[str]:
    """Return the lines of the transcript that is fed pieces of this size."""
    transcript = Transcript()
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


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: str(path.stem))
async def test_output_of_a_real_program_reads_as_tmux_shows_it(
    tools: Tools, path: Path, tmp_path: Path
) -> None:
    data = path.read_bytes().replace(b"\033[3J", b"")  # tmux clears the history, and we read on
    expected = await as_tmux_shows_it(tools, data, tmp_path)
    assert as_we_read_it(data, len(data)) == expected
    assert as_we_read_it(data, 7) == expected


async def test_output_that_goes_back_and_forth_reads_as_tmux_shows_it(
    tools: Tools, tmp_path: Path
) -> None:
    for seed in range(60):
        data = garbage(seed)
        expected = await as_tmux_shows_it(tools, data, tmp_path)
        assert as_we_read_it(data, len(data)) == expected, (seed, data)
        assert as_we_read_it(data, 1) == expected, (seed, data)
