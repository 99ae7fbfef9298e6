"""Captures of a terminal's screen and history as text. No I/O.

A capture with attributes (tmux(1), capture-pane -e) contains SGR sequences, whose effect continues
in the next lines, and SO and SI around letters of the line drawing set. It may have megabytes, as
each cell may have its own colours. So functions yield, before each piece of work, how much that is
(see `turns.py`), and return what they find.
"""

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from .charsets import LINE_DRAWING, SHIFT_IN, SHIFT_OUT
from .rows import Row
from .sequences import C1_CONTROLS, LINK, SGR

# The background of letters, "" for the usual background, and whether they are reversed.
Style = tuple[str, bool]
_USUAL: Style = ("", False)

_BLANKS = " \t"
_NO_BLANKS = dict.fromkeys(map(ord, _BLANKS))
_INVISIBLE = re.compile(f"{SGR}|{LINK}")
# Blanks and SGR sequences, the last first and each reversed.
_END = re.compile(r"[ \t]*(?:m[0-9;:]*\[\033[ \t]*)*")
# A piece ends within no sequence and no character.
_PIECE_BYTES = 1 << 13
_END_CHARACTERS = 1 << 13
_SEQUENCE = re.compile(rb"%b|\033\\" % _INVISIBLE.pattern.encode())
# The bytes of a character after its first. Source: UTF-8.
_CONTINUATION = bytes(range(0x80, 0xC0))
_MAX_CONTINUATION_BYTES = 3
# So many bytes of text are as much work as a sequence.
_TEXT_BYTES = 1 << 6
# Letters of the line drawing set, between SO and SI, and an SI by itself.
_DRAWN = re.compile(r"\016([^\017]*)|\017")
# Letters that stand for lines of boxes, in one row.
_FRAMES = re.compile(r"(?<=\016)[a-z`~]+")
# SGR's parameters for a background: 40 to 47, and bright colours.
_BACKGROUND = re.compile("4[0-7]|10[0-7]")
# Groups: the parameters of an SGR, and text; neither for a link.
_SGR_OR_TEXT = re.compile(rf"\033\[([0-9;:]*)m|{LINK}|([^\033]+|\033)")
# A sequence is so much more work where its style is looked at.
_STYLE_WORK = 4
# Group: a sequence among these letters.
_LETTERS = re.compile(rf"({_INVISIBLE.pattern})|[^\033]+")


def captured_lines(data: bytes, *, ansi: bool = False) -> Generator[int, None, list[str]]:
    """Return the lines of a capture with attributes, with line drawing in place of its letters.

    They have no trailing blanks, and no blank lines at the end. `ansi` keeps the attributes.
    """
    parts = []
    is_drawn = False  # between SO and SI
    for piece in _pieces(data):
        yield _work(piece)
        text = piece.decode(errors="replace")
        if not text.isascii():  # a link's address, chosen by a program, may contain any of them
            text = C1_CONTROLS.sub("", text)
        if is_drawn:
            text = SHIFT_OUT + text
        is_drawn = text.rfind(SHIFT_OUT) > text.rfind(SHIFT_IN)
        text = with_line_drawing(text)
        parts.append(text if ansi else _INVISIBLE.sub("", text))
    lines = []
    count = 0  # up to the last line that is not blank
    for line in "".join(parts).split("\n"):
        shown, end = yield from _split_end(line)
        lines.append(shown + end)
        if shown:
            count = len(lines)
    return lines[:count]


def _pieces(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = start + _PIECE_BYTES
        escape = data.rfind(b"\033", start, end)
        sequence = _SEQUENCE.match(data, escape) if escape >= 0 else None
        if sequence:
            end = max(end, sequence.end())
        rest = data[end : end + _MAX_CONTINUATION_BYTES]
        end += len(rest) - len(rest.lstrip(_CONTINUATION))
        yield data[start:end]
        start = end


def _work(piece: bytes) -> int:
    return 1 + piece.count(b"\033") + len(piece) // _TEXT_BYTES


def _split_end(line: str) -> Generator[int, None, tuple[str, str]]:
    """Return a line up to its blank end, and the SGR sequences that stay of that."""
    if not line.endswith("m"):
        line = line.rstrip(_BLANKS)
    if not line.endswith("m"):
        return line, ""
    reversed_line = line[::-1]
    size = 0
    is_end = True
    while is_end:
        yield _END_CHARACTERS // _TEXT_BYTES
        end = _END.match(reversed_line, size, size + _END_CHARACTERS)
        is_end = end is not None and end.end() > size
        size = end.end() if end else size
    shown = len(line) - size
    return line[:shown], line[shown:].translate(_NO_BLANKS)


def with_line_drawing(capture: str) -> str:
    """Return a capture with line drawing in place of the letters between SO and SI."""
    if SHIFT_OUT not in capture and SHIFT_IN not in capture:
        return capture  # much faster than searching for both at once

    def translated(part: re.Match[str]) -> str:
        sequence = part[1]
        # Newer versions of tmux repeat SO.
        return sequence or part[0].replace(SHIFT_OUT, "").translate(LINE_DRAWING)

    return _DRAWN.sub(lambda drawn: _LETTERS.sub(translated, drawn[1] or ""), capture)


def row_alone(rows: Sequence[str], number: int, columns: int) -> str:
    """Return a row of a capture with attributes, ready to be printed by itself.

    Blanks fill it up to the screen's columns. A number beyond the capture gives the last row.
    """
    *before, row = rows[: number + 1]
    attributes = "".join(_INVISIBLE.findall("".join(before)))
    width = len(Row(_INVISIBLE.sub("", row)).edit())
    return attributes + row + "\033[0m" + " " * (columns - width)


class Highlight(NamedTuple):
    """What is highlighted on a screen.

    Attributes:
        row: The number of its row, from 0.
        text: What is highlighted there, with the blanks around it.
    """

    row: int
    text: str


class ScreenRows(NamedTuple):
    """The rows of a screen, without trailing blanks and without blank rows at the end.

    Attributes:
        size: The screen's columns and rows.
        is_alternate: It is the alternate screen.
        highlighted: The only highlighted row; None if there are none or several.
        cursor: The column and row of the cursor, from 0.
    """

    rows: list[str]
    size: tuple[int, int]
    is_alternate: bool
    highlighted: Highlight | None = None
    cursor: tuple[int, int] = (0, 0)


def highlighted_row(data: bytes, height: int) -> Generator[int, None, Highlight | None]:
    """Return the row that is highlighted among rows that are not.

    Most of its letters are reversed or on a different background from the rows next to it. The
    first row with text counts as a title. The last row counts as a status line at the bottom of a
    screen of this height; elsewhere it must differ from all rows, since it may belong to a box.
    Without such a row, it is the row of the button that is highlighted among others. None if no row
    is highlighted, or several are.
    """
    rows = yield from _texts_by_style(data)
    numbers = list(rows)
    styles = {number: next(iter(texts)) for number, texts in rows.items()}
    found = []
    for above, number, below in zip(numbers, numbers[1:], numbers[2:], strict=False):
        style = styles[number]
        if style != _USUAL and style not in (styles[above], styles[below]):
            found.append(number)
    if numbers[1:] and numbers[-1] < height - 1:
        *others, last = styles.values()
        if last not in (_USUAL, *others):
            found.append(numbers[-1])
    if not found:
        return _button(rows, height)
    return Highlight(found[0], rows[found[0]][styles[found[0]]]) if len(found) == 1 else None


def _texts_by_style(data: bytes) -> Generator[int, None, dict[int, dict[Style, str]]]:
    """Return the texts of each row with letters, by their styles, that of most letters first."""
    rows: dict[int, dict[Style, str]] = {}
    background, is_reversed = _USUAL
    for number, row in enumerate(data.split(b"\n")):
        yield _STYLE_WORK * _work(row)
        line = _FRAMES.sub("", row.decode(errors="replace"))
        letters: Counter[Style] = Counter()
        spans: dict[Style, tuple[int, int]] = {}
        plain = ""
        for part in _SGR_OR_TEXT.finditer(line):
            if part[1] is not None:
                background, is_reversed = _style_after(part[1], background, is_reversed)
            elif part[2]:
                count = sum(map(str.isalnum, part[2]))
                start = len(plain)
                plain += part[2]
                if count:
                    style = background, is_reversed
                    letters[style] += count
                    spans[style] = spans.get(style, (start,))[0], len(plain)
        if letters:
            ordered = letters.most_common()
            rows[number] = {style: plain[slice(*spans[style])] for style, _ in ordered}
    return rows


def _button(rows: Mapping[int, Mapping[Style, str]], height: int) -> Highlight | None:
    """Return the only text in its style, in a row where other letters have a background, too."""
    counts = Counter(style for texts in rows.values() for style in texts)
    first = next(iter(rows), None)
    found = []
    for number, (usual, *others) in rows.items():
        if usual != _USUAL and first != number < height - 1:
            alone = [style for style in others if style != _USUAL and counts[style] == 1]
            found += [Highlight(number, rows[number][style]) for style in alone]
    return found[0] if len(found) == 1 else None


def _style_after(parameters: str, background: str, is_reversed: bool) -> tuple[str, bool]:  # noqa: FBT001
    """Return the background after an SGR, "" for the usual, and whether it is reversed."""
    codes = parameters.replace(":", ";").split(";")
    while codes:
        code = codes.pop(0)
        if code in ("", "0"):
            background, is_reversed = "", False
        elif code in ("7", "27"):
            is_reversed = code == "7"
        elif code == "49":
            background = ""
        elif code in ("38", "48"):
            # 5 and a number, or 2 and three of them.
            count = 2 if codes[:1] == ["5"] else 4
            if code == "48":
                background = ";".join(codes[:count])
            del codes[:count]
        elif _BACKGROUND.fullmatch(code):
            background = code
    return background, is_reversed
