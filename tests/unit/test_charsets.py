"""Character sets: what letters stand for where a log is read from its middle."""

from pathlib import Path

import pytest

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import read_end, read_forward
from tmux_debug_mcp.vt.charsets import CharacterSets, sets_after

BOX = b"\016lqk\017lqk\r\n"


@pytest.mark.parametrize(
    ("data", "sets"),
    [
        (b"", CharacterSets()),
        (b"\033(Btext\033[m\017", CharacterSets()),
        (b"\033(B\033)0text", CharacterSets(g1=True)),
        (b"\033)0\033(0q\033(B\016q", CharacterSets(g1=True, is_shifted=True)),
        (b"\033(0q", CharacterSets(g0=True)),
        (b"\033(0\033)0\016\033ctext", CharacterSets()),
    ],
)
def test_what_output_leaves_on_is_found(data: bytes, sets: CharacterSets) -> None:
    assert sets_after(data) == sets
    assert sets_after(sets.sequences.encode()) == sets


@pytest.mark.parametrize("between", [b"a line\r\n" * 10_000, b"a line\r\n" * 10_000 + b"no line: "])
async def test_lines_are_drawn_with_a_set_that_was_chosen_long_before(
    tmp_path: Path, between: bytes
) -> None:
    log = Log.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(b"\033(B\033)0" + between + BOX * 100)
    start = log.size - len(BOX) * 100

    assert (await read_forward(log, start, log.size, 10_000)).text == "┌─┐lqk\n" * 100
    assert (await read_end(log, 0, log.size, 500)).text.endswith("\n┌─┐lqk\n")
    assert (await read_end(log, start, log.size, 10_000)).text == "┌─┐lqk\n" * 100


async def test_letters_of_a_binary_stay_letters(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", "mark")
    with log.path.open("ab") as file:
        file.write(b"$ cat a.out\r\n" + BOX)

    assert (await read_forward(log, 13, log.size, 100)).text == "lqklqk\n"
