"""What is seen of a pane's text, step by step."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.logs.excerpts import KEPT_CHARACTERS, GapNote, Part
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.pane_text import PIECE_BYTES, PaneText
from tmux_debug_mcp.logs.seen import Frame, SeenText, read_ends, read_pieces
from tmux_debug_mcp.turns import TURN_WORK
from tmux_debug_mcp.vt.rows import NOTE, Gap, Line

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.out"))


class Reader:
    """A text that is read as a program prints it, and what is seen of it."""

    def __init__(self, log: Log, text: PaneText) -> None:
        self._log = log
        self._text = text
        self._seen = SeenText(text.position)

    async def read(self, data: bytes) -> list[str]:
        """Read what the program prints; return the lines that are new."""
        with self._log.path.open("ab") as file:
            file.write(data)
        events, lines = await self._text.advance(self._log.size, PIECE_BYTES)
        self._seen.add(events, self._text.position)
        return lines

    def send_keys(self) -> None:
        rows = self._text.rows if self._text.is_drawn_on else None
        events, begins_at = self._text.keys_sent()
        self._seen.add(events, self._text.position)
        self._seen.step(begins_at, rows, self._text.rows_before)

    @property
    def items(self) -> list[list[str]]:
        """The lines and screens, in order."""
        seen = self._seen.with_open(self._text.open_lines)
        return [
            ["screen", *filter(None, item.rows)] if isinstance(item, Frame) else item.lines
            for item in seen.items
        ]

    @property
    def parts(self) -> list[Part]:
        """The parts that have lines, in order."""
        seen = self._seen.with_open(self._text.open_lines)
        return [item for item in seen.items if isinstance(item, Part) and not item.is_blank]


@pytest.fixture
async def reader(tmp_path: Path) -> Reader:
    log = Log.create(tmp_path / "log", "mark")
    log.resize(20, 5)
    return Reader(log, await PaneText.since(log, 0))


BAR = b"\0337\033[5;1H50%"


async def test_lines_beside_what_is_drawn_are_seen_before_the_keys(reader: Reader) -> None:
    assert await reader.read(b"one\r\ntwo\r\n" + BAR) == ["one", "two", "50%"]
    reader.send_keys()

    assert await reader.read(b"\0338three\r\n") == ["three"]
    assert reader.items == [["one", "two"], ["screen", "50%"], ["three", ""]]


async def test_line_behind_screens_is_not_read_from_before_them(reader: Reader) -> None:
    screen = b"\033[?1049hscreen\033[?1049l"
    await reader.read(screen + screen + b"x" * 1000 + screen)

    [part] = reader.parts
    assert part.lines == ["x" * 1000]
    assert _note(part) == ("[860 bytes left out]", ())


def test_lines_with_a_screen_between_them_are_not_read_as_one() -> None:
    def part(start: int | None, begins_at: int) -> Part:
        lines = Part(start)
        for number in range(100):
            lines.add(Line("x" * 8, begins_at=begins_at + 10 * number))
        return lines

    together, behind = part(0, 0), part(None, 2000)
    assert _note(together) == ("[85 lines left out]", (GapNote(4, 40, 85, ""),))
    assert _note(behind) == ("[85 lines left out]", (GapNote(4, 2040, 85, ""),))
    together.extend(behind)
    assert _note(together) == ("[185 lines left out]", ())
    together.keep(1000)
    assert _note(together) == ("[185 lines left out]", ())


def _note(part: Part) -> tuple[str, tuple[GapNote, ...]]:
    excerpt = part.excerpt(260, folds=False)
    [number] = excerpt.notes
    return excerpt.lines[number], excerpt.gaps


def test_output_that_was_passed_over_before_any_line_is_left_out_and_not_gone() -> None:
    part = Part(None)
    part.add(Gap(5000, 40))
    part.add(Line("end"))
    excerpt = part.excerpt(1000)
    assert excerpt.lines == ["[40 lines left out]", "end"]
    assert excerpt[1:] == (5000, ())


def test_lines_that_output_has_changed_are_read_with_what_is_left_out_before_them() -> None:
    part = Part(0)
    part.add(Line(" " * 3 * KEPT_CHARACTERS + " long"))
    part.add(Line("changed"))
    excerpt = part.excerpt(1000, folds=False)
    assert excerpt.lines[0].endswith(" bytes left out]")
    assert excerpt.lines[1].endswith(" long")
    assert excerpt.lines[2:] == ["changed"]
    assert [gap.lines for gap in excerpt.gaps] == [2]


def test_output_that_is_gone_before_any_line_is_told_so() -> None:
    part = Part(100)
    part.add(Gap(5000, 0, is_gone=True))
    part.add(Line("end"))
    excerpt = part.excerpt(1000)
    assert excerpt.lines == ["[5,000 bytes before this are no longer kept]", "end"]


@pytest.mark.parametrize("draws", [False, True])
def test_steps_keep_no_more_than_a_result_can_show_however_many_there_are(*, draws: bool) -> None:
    seen = SeenText(0)
    for step in range(400):
        seen.step(step * 500, [f"screen {step}"] if draws else None)
        seen.add([Line(f"line {n}", begins_at=n) for n in range(step * 500, step * 500 + 500)])
    kept = [len(line) for line in seen.lines]
    assert sum(kept) + 8 * len(kept) <= 4 * KEPT_CHARACTERS
    assert len(seen.items) <= 200

    # The newest ones are whole, and the others have their shares.
    assert seen.parts[-1].lines == [f"line {n}" for n in range(199_500, 200_000)]
    assert seen.lines[0] == "line 0"


def test_steps_with_long_and_short_answers_keep_the_short_ones_whole() -> None:
    seen = SeenText(0)
    for step in range(30):
        seen.step(step * 10_000, None)
        count = 10 if step % 3 else 9000
        seen.add([Line(f"{step}: {n}", begins_at=step * 10_000 + n) for n in range(count)])
    assert {f"{step}: {n}" for step in range(30) if step % 3 for n in range(10)} <= {*seen.lines}


def test_text_that_is_not_there_ends_nothing() -> None:
    part = Part(0)
    part.add(Line("one"))
    part.end_with("two")
    assert part.lines == ["one"]
    part.add(Line("two"))
    part.end_with("one")
    assert part.lines == ["one", ""]


ACTS = st.one_of(
    st.lists(st.integers(0, 300), min_size=1, max_size=30),  # lines of these lengths
    st.sampled_from(["step", "gap", "pair", "keep"]),
)


@given(st.lists(ACTS, max_size=12), st.integers(200, 3000))
def test_lines_that_are_shown_and_left_out_are_all(acts: list[list[int] | str], most: int) -> None:
    """Whatever was cut, joined and cut again, each line is shown, counted, or both in part."""
    parts = [Part(0)]
    count = 0
    for act in acts:
        if act == "step":
            parts.append(Part(10_000 * count))
        elif act == "gap":
            parts[-1].add(Gap(1000, 10))
            count += 10
        elif act == "pair" and len(parts) > 1:
            last = parts.pop()
            parts[-1].extend(last)
        elif act == "keep":
            parts[-1].keep(most)
        elif isinstance(act, list):
            for size in act:
                text = f"{count} ".ljust(size, "x")
                parts[-1].add(Line(text, begins_at=10_000 * count if size % 2 else None))
                count += 1
    for later in parts[1:]:
        parts[0].extend(later)
    excerpt = parts[0].excerpt(most, folds=False)
    shown = {int(line.split(" ")[0]) for line in excerpt.lines if re.match(r"\d+ ", line)}
    gaps = [excerpt.lines[number] for number in excerpt.notes]
    found = [re.fullmatch(r"\[([\d,]+) (lines?|bytes) left out\]", gap) for gap in gaps]
    assert all(found)
    left_out = sum(int(one[1].replace(",", "")) for one in found if one and one[2] != "bytes")
    assert len(found) <= 1
    # The first and the last line that are left out may be shown in part.
    assert count <= len(shown) + left_out + 1
    assert len(shown) + left_out <= count + 2
    assert len(excerpt.text) <= most + 120


@pytest.mark.parametrize("size", [7, 100, 199])
async def test_what_is_passed_over_of_a_flood_is_counted_exactly(tmp_path: Path, size: int) -> None:
    count = (3 << 20) // size
    log = Log.create(tmp_path / "log", "mark")
    log.path.write_bytes((b"x" * size + b"\r\n") * count)
    text = await PaneText.to_read(log, 0, log.size)

    excerpt = await read_ends(text, log.size, 1000)

    [number] = excerpt.notes
    left_out = count - sum(line == "x" * size for line in excerpt.lines)
    assert excerpt.lines[number] == f"[{left_out:,} lines left out]"
    assert excerpt.cut_bytes == left_out * (size + 2)


async def whole(log: Log, start: int, end: int) -> tuple[str, int]:
    """Return the text of all pieces, and how many bytes are gone."""
    pieces = [piece async for piece in read_pieces(log, start, end)]
    assert all(len(text) <= 2 * TURN_WORK for text, _ in pieces)
    return "".join(text for text, _ in pieces), sum(gone for _, gone in pieces)


@pytest.mark.parametrize("last", [b"", b"no line feed", b"50%\r100%"])
async def test_pieces_make_up_all_that_was_printed(tmp_path: Path, last: bytes) -> None:
    log = Log.create(tmp_path / "log", "mark")
    log.resize(20, 5)
    lines = [f"line {number} that is wrapped by the terminal" for number in range(10_000)]
    screen = b"\033[?1049hdrawn\r\nrows\033[?1049l"
    data = "".join(f"{line}\r\n" for line in lines).encode() + screen + last
    log.path.write_bytes(data)

    text, gone = await whole(log, 0, len(data))

    shown = last.rpartition(b"\r")[2].decode()
    assert (text, gone) == ("\n".join([*lines, "drawn", "rows", shown]), 0)
    assert await whole(log, 0, 0) == ("", 0)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
async def test_pieces_have_the_lines_of_an_excerpt_without_its_notes(
    tmp_path: Path, path: Path
) -> None:
    log = Log.create(tmp_path / "log", "mark")
    data = path.read_bytes()
    log.path.write_bytes(data)
    text = await PaneText.to_read(log, 0, len(data))
    excerpt = await read_ends(text, len(data), KEPT_CHARACTERS)
    lines = [line for line in excerpt.marked if not line.startswith(NOTE)]

    assert await whole(log, 0, len(data)) == ("\n".join(lines), 0)


async def test_pieces_say_how_much_is_gone(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", "mark")
    data = b"".join(b"%05d\r\n" % number for number in range(20_000))
    log.path.write_bytes(data)
    log.trim(70_000)

    text, gone = await whole(log, 0, len(data))

    assert text.splitlines()[-1] == "19999"
    assert gone == 7 * int(text.splitlines()[0])
