"""What a result leaves out can be read: its gap names where, and what is there is all of it."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.pane_text import PIECE_BYTES, PaneText
from tmux_debug_mcp.logs.reading import read_forward
from tmux_debug_mcp.logs.seen import SeenText, found_in, read_ends

# Kinds of output that only add to the last line, by their names. Each makes one line or more, given
# a number, which no other line has, and how long it is.
APPENDING: dict[str, Callable[[int, int], str]] = {
    "plain": lambda number, size: f"{number} {'x' * size}\n",
    "words": lambda number, size: f"{number} " + " ".join(map(str, range(size))) + "\n",
    "coloured": lambda number, size: f"\033[31m{number}\033[m {'c' * size}\033[K\n",
    "wide": lambda number, size: f"{number} {'漢' * size}\n",
    "combining": lambda number, size: f"{number} {'é' * size}\n",
    "bar": lambda number, size: "".join(f"\r{number} {at}%" for at in range(size)) + "\n",
    "backspaces": lambda number, size: f"{number} " + "|\b/\b-\b" * size + "\n",
    "tabs": lambda number, size: f"{number}" + "\tt" * size + "\n",
    "lines": lambda number, size: "".join(f"{number}.{at}\n" for at in range(size)),
    "blank": lambda number, size: f"{number}" + "\n" * min(size + 1, 3),
    "titles": lambda number, size: f"\033]0;{'t' * size}\a{number}\n",
}


@dataclass(frozen=True)
class Output:
    """What a program prints.

    Attributes:
        parts: Names of kinds, and their sizes.
        ends_with: How it ends.
    """

    parts: tuple[tuple[str, int], ...]
    ends_with: str = ""

    @property
    def data(self) -> bytes:
        """The bytes as a terminal gets them."""
        text = "".join(
            APPENDING[kind](number, size) for number, (kind, size) in enumerate(self.parts)
        )
        return (text + self.ends_with).replace("\n", "\r\n").encode()


def outputs() -> st.SearchStrategy[Output]:
    sizes = st.sampled_from([0, 1, 5, 30, 78, 79, 80, 200, 1500])
    part = st.tuples(st.sampled_from(list(APPENDING)), sizes)
    parts = st.lists(part, min_size=1, max_size=60).map(tuple)
    ends = st.sampled_from(["", "\n", "$ ", "last line", "x" * 500, "\033[3", "é"])
    return st.builds(Output, parts, ends)


@contextmanager
def log_of(data: bytes) -> Iterator[Log]:
    with tempfile.TemporaryDirectory() as directory:
        log = Log.create(Path(directory) / "log", "mark")
        log.resize(80, 24)
        log.path.write_bytes(data)
        yield log
        log.close()


async def whole(log: Log, start: int, end: int, max_characters: int = 1 << 20) -> str:
    """Return all that is read from one cursor to another, in pieces."""
    text, cursor = "", start
    while True:
        piece = await read_forward(log, cursor, end, max_characters)
        text += piece.text
        if not piece.remaining_bytes:
            return text
        assert piece.end > cursor
        cursor = piece.end


async def check_gap(log: Log, excerpt: Excerpt, text: str) -> None:
    """Check that an excerpt is a text if what its gap names is put in its place.

    A line of which a part is shown may be read whole.
    """
    if not excerpt.notes:
        assert excerpt.text == text
        return
    [number], [gap] = excerpt.notes, excerpt.gaps
    assert gap.line == number
    piece = await read_forward(log, gap.since, log.size, 1 << 20, gap.lines)
    before, after = excerpt.lines[:number], excerpt.lines[number + 1 :]
    assert text.startswith("\n".join(before))
    assert text.endswith("\n".join(after))
    start = len(await whole(log, 0, gap.since))
    end = start + len(piece.text)
    assert text[start:end] == piece.text
    last_shown, first_shown = len("\n".join(before)), len(text) - len("\n".join(after))
    assert len("\n".join(before[:-1])) <= start <= last_shown + 1
    assert first_shown - 1 <= end <= first_shown + len(after[0] if after else "") + 1


@hypothesis.given(output=outputs(), room=st.sampled_from([300, 1000, 4000]))
async def test_gap_of_a_run_names_exactly_what_is_left_out(output: Output, room: int) -> None:
    with log_of(output.data) as log:
        text = await PaneText.to_read(log, 0, log.size)
        excerpt = await read_ends(text, log.size, room)
        await check_gap(log, excerpt, await whole(log, 0, log.size))


@hypothesis.given(
    output=outputs(),
    room=st.sampled_from([300, 1000, 4000]),
    pieces=st.lists(st.integers(1, 5000), max_size=10),
)
async def test_gap_of_a_wait_names_exactly_what_is_left_out(
    output: Output, room: int, pieces: list[int]
) -> None:
    with log_of(b"") as log:
        text = await PaneText.since(log, 0)
        seen = SeenText(0, ())
        data = output.data
        with log.path.open("ab") as file:
            for size in [*pieces, len(data)]:
                file.write(data[:size])
                file.flush()
                data = data[size:]
                while text.position < log.size:
                    events, _ = await text.advance(log.size, PIECE_BYTES)
                    seen.add(events)
        [part] = seen.with_open(text.open_lines).parts
        excerpt = found_in(log, part.excerpt(room, folds=False))
        await check_gap(log, excerpt, await whole(log, 0, log.size))


@hypothesis.given(output=outputs(), room=st.sampled_from([100, 300, 1000, 16_000]))
async def test_pieces_of_any_size_put_together_are_the_whole_text(
    output: Output, room: int
) -> None:
    with log_of(output.data) as log:
        assert await whole(log, 0, log.size, room) == await whole(log, 0, log.size)
