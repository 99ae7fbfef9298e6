"""What a terminal shows of a stream of bytes, line by line: no I/O.

Most output is plain lines, and those pass as they are. Where a program goes back to what it has printed (progress
bars, prompts, menus) the rows that can still be on the screen are kept editable, as a terminal has them. A line is
*settled* once it has left the screen, or the screen was cleared; nothing can change it then.

Rules, measured against tmux:

1. Colours, titles and other sequences that show nothing are left out. Blanks and tabs that were printed stay. Letters
   that stand for line drawing are the characters that a terminal shows for them.
2. A line that is longer than the terminal is wide is one line.
3. The alternate screen shows while it is on, and leaves nothing when it goes.
4. What is unfinished at the end (a character, a sequence, a carriage return that may belong to a line feed) is
   held back until more comes.
5. Line editors of shells and the like ask for bracketed pastes while they edit, so what they draw can be told.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .charsets import LINE_DRAWING, CharacterSets
from .rows import Row, cell_width

COLUMNS = 200
ROWS = 50

# A line of more rows is told in parts, so that nothing takes time that grows with its length.
_MAX_LINE_ROWS = 500
# A string such as a title that is not finished after this much is no string.
_MAX_HELD_BYTES = 4096

_STRING = r"\][^\a\033]*(?:\a|\033\\)|[P_^Xk][^\033]*\033\\"
_SEQUENCE = rf"\033(?:\[([0-?]*)[ -/]*([@-~])|{_STRING}|([()][0B]|[0-Z\\^-~])|[ -/]+[0-~])"
_TOKEN = re.compile(rf"{_SEQUENCE}|([^\0-\037\177]+)|(.)", re.DOTALL)
# Characters that take a cell each, or one that perhaps does not.
_RUN = re.compile(r"[ -~]+|[^ -~]")
# Sequences that move nothing, and a bell: colours, most modes, strings, the usual character sets; and an erasing of the
# rest of the line, where there is none.
_FRESH_INVISIBLE = re.compile(
    rf"\033(?:\[[0-?]*[ -/]*m|\[0?K|\[\?(?!(?:47|1047|1049|2004)[hl])[0-9;]*[hl]|{_STRING}"
    r"|(?!\(0|\)[0B])[ -/]+[0-~]|[=>])|[\a\017\0]"
)
# Stands where something is that is no more to be shown. No terminal shows it.
_FORGOTTEN = "\0"
_NOT_PLAIN = re.compile(r"[\0-\010\013-\037\177]")
_UNFINISHED = re.compile(rb"\033(?:\[[0-?]*[ -/]*|[\]P_^Xk][^\a\033]*\033?|[ -/]*)?\Z")


class Line(NamedTuple):
    """A line of the transcript.

    Attributes:
        text: What it shows.
        is_edited: A line editor wrote in it.
        is_command: It is where a line editor stood when keys were sent, so it shows what they were.
        goes_on: It is a part of a very long line, which goes on in the next.
    """

    text: str
    is_edited: bool = False
    is_command: bool = False
    goes_on: bool = False


class Transcript:
    """The text of a terminal's output, fed in pieces of any size.

    Args:
        columns: The terminal's width.
        rows: Its height.

    Attributes:
        is_editing: Whether a line editor is at work.
        sets: The character sets in use.
    """

    def __init__(self, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.is_editing = False
        self.sets = CharacterSets()
        self._columns, self._height = columns, rows
        self._rows = [Row()]
        self._row = self._column = 0
        self._saved = (0, 0, self.sets)
        self._margins: tuple[int, int] | None = None  # of the part that scrolls, where that is not all
        self._main: tuple[list[Row], int, int] | None = None  # behind the alternate screen
        self._held = b""
        self._settled: list[Line] = []
        self._begun: list[Row] = []  # the settled rows of a line that goes on on the screen

    @property
    def held_bytes(self) -> int:
        """How many bytes at the end of what was fed wait for more."""
        return len(self._held)

    def feed(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""
        data = self._held + data
        self._held = _unfinished(data)
        text = data[: len(data) - len(self._held)].decode(errors="replace")
        line, end, others = text.partition("\n")
        if end:
            self._line(line)
            text = self._take_plain(others) if self._is_fresh() else others
        *lines, rest = text.split("\n")
        for line in lines:
            self._line(line)
        self._write(rest)
        self._settle()

    def keys_sent(self) -> None:
        """Note that keys were sent to a line editor at this point: it shows them in the line that it is in."""
        self._rows[self._row].is_command = True

    def forget(self) -> None:
        """Show nothing of what was fed so far."""
        self._settled, self._begun = [], []
        for number, row in enumerate(self._rows):
            cells = row.edit()
            cells[:] = [cell and _FORGOTTEN for cell in cells]
            row.is_old = number != self._row

    def take_settled(self) -> list[Line]:
        """Return the lines that have been settled since the last call."""
        settled, self._settled = self._settled, []
        return settled

    def text(self) -> str:
        """Return all lines since the beginning or the last `take_settled`, joined by line feeds."""
        lines = (*self._settled, *self.open_lines())
        return "".join([line.text if line.goes_on else line.text + "\n" for line in lines])[:-1]

    def open_lines(self) -> list[Line]:
        """Return the lines that are not settled, the last one being unfinished and perhaps empty."""
        lines, begun = [], list(self._begun) if self._main is None else []
        for row in self._rows:
            begun.append(row)
            if not row.is_wrapped:
                lines += _joined(begun)
                begun = []
        lines += _joined(begun)
        while len(lines) > 1 and not lines[-1].text and len(lines) > self._row + 1:
            lines.pop()  # rows below the cursor that nothing was written to
        return lines

    def _line(self, line: str) -> None:
        """Write a line that ended with a line feed."""
        returns = line.endswith("\r")
        line = line.rstrip("\r") if returns else line
        if not (self._is_fresh() and self._write_plain(line)):
            self._write(line)
        if returns:
            self._column = 0
        self._feed_line()

    def _take_plain(self, text: str) -> str:
        """Write whole lines at once that need no terminal, if they fill the screen; return what is left to write."""
        head, _, rest = text.rpartition("\n")
        head = _FRESH_INVISIBLE.sub("", head.replace("\r\n", "\n").removesuffix("\r"))
        lines = head.split("\n")
        if len(lines) < self._height or self._main is not None or not head.isascii() or _NOT_PLAIN.search(head):
            return text
        if max(map(len, lines if "\t" not in head else [line.expandtabs() for line in lines])) > self._columns:
            return text
        shown = self._height - 1
        self._rows = [*self._rows[:-1], *[Row()] * self._height]
        self._settle()
        self._settled += [Line(line) for line in lines[:-shown]]
        self._rows = [Row(line) for line in [*lines[-shown:], ""]]
        self._row = shown
        return rest

    def _is_fresh(self) -> bool:
        last = self._rows[-1]
        is_empty = not last.cells and not last.text
        is_usual = not self.is_editing and self.sets.is_usual
        return is_empty and is_usual and self._column == 0 and self._row == len(self._rows) - 1

    def _write_plain(self, line: str) -> bool:
        """Write a whole line into a new row, or more of them, if nothing in it needs a terminal."""
        line = _FRESH_INVISIBLE.sub("", line)
        if _NOT_PLAIN.search(line):
            return False
        if "\t" in line and not (line.isascii() and len(line.expandtabs()) < self._columns):
            return False
        if not line.isascii() and len(line) * 2 > self._columns:
            return False
        starts = range(0, len(line), self._columns) or [0]
        parts = [line[start : start + self._columns] for start in starts]
        self._rows[-1:] = [Row(part, is_wrapped=part is not parts[-1]) for part in parts]
        self._row = len(self._rows) - 1
        self._column = len(parts[-1])
        if "\t" in line or not line.isascii():
            self._column = len(self._rows[-1].edit())
        return True

    def _write(self, text: str) -> None:
        for match in _TOKEN.finditer(text):
            parameters, final, escape, characters, control = match.groups()
            if characters:
                self._put(characters)
            elif final:
                self._control_sequence(parameters, final)
            elif escape:
                self._escape(escape)
            elif control:
                self._control(control)

    def _put(self, characters: str) -> None:
        if self.sets.is_drawing:
            characters = characters.translate(LINE_DRAWING)
        cells = self._cells()
        for run in _RUN.findall(characters):
            width = 1 if run.isascii() else cell_width(run)
            if not width:
                at = min(self._column, len(cells)) - 1
                if at >= 0:
                    cells[at] += run
                continue
            written: Sequence[str] = [run, ""] if width > 1 else run
            while written:
                if self._column + width > self._columns:
                    self._rows[self._row].is_wrapped = True
                    self._column = 0
                    self._feed_line()
                    cells = self._cells()
                part = written[: max(width, self._columns - self._column)]
                self._rows[self._row].put(self._column, part)
                self._column += len(part)
                written = written[len(part) :]

    def _cells(self) -> list[str]:
        """Return the cells of the cursor's row, to be written to."""
        row = self._rows[self._row]
        row.is_edited = row.is_edited or self.is_editing
        if row.is_command and not (self.is_editing or self._column or str(row).strip(" ")):
            row.is_command = False  # where a line editor stood and left nothing, output begins
        row.is_old = False
        return row.edit()

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\b":
            self._go_back()
        elif control == "\t":
            self._tab()
        elif control in "\n\v\f":
            self._feed_line()
        elif control in "\016\017":
            self.sets = self.sets.after(control)

    def _tab(self) -> None:
        """Go to the next tab stop; where nothing stands, the tab is kept as such."""
        cells = self._rows[self._row].edit()
        stop = min(self._columns - 1, (self._column // 8 + 1) * 8)
        if len(cells) <= self._column < stop and stop % 8 == 0:
            self._rows[self._row].put(self._column, ["\t", *[""] * (stop - self._column - 1)])
        self._column = max(self._column, stop)

    def _go_back(self) -> None:
        """Move one column back; from the first one, to the row above where that goes on in this one."""
        if self._column:
            self._column = min(self._column, self._columns) - 1
        elif self._row > self._top and self._rows[self._row - 1].is_wrapped:
            self._row, self._column = self._row - 1, self._columns - 1

    def _escape(self, final: str) -> None:
        if final in "DE":
            self._column = 0 if final == "E" else self._column
            self._feed_line()
        elif final == "M" and self._row > self._top:
            self._row -= 1
        elif final == "M":
            self._edit_rows("L", 1)
        elif final == "7":
            self._saved = (self._row - self._top, self._column, self.sets)
        elif final == "8":
            row, column, self.sets = self._saved
            self._move_to(self._top + row, column)
        elif final == "c":
            self._clear()
            self._move_to(self._top, 0)
            self._margins, self.sets = None, CharacterSets()
            self._saved = (0, 0, self.sets)
        elif final[0] in "()":
            self.sets = self.sets.after(final)

    def _control_sequence(self, parameters: str, final: str) -> None:
        if parameters.startswith("?"):
            self._set_modes(parameters[1:].split(";") if final in "hl" else [], is_on=final == "h")
            return
        numbers = [int(word) if word.isdigit() else 0 for word in parameters.split(";")]
        if final in "Hf":
            column = numbers[1] if len(numbers) > 1 else 1
            self._move_to(self._top + max(numbers[0], 1) - 1, max(column, 1) - 1)
        elif final in _MOVES:
            self._move_to(*_MOVES[final](self._row, self._column, max(numbers[0], 1), self._top))
        elif final in "JK":
            self._erase(final, numbers[0])
        elif final in "X@P":
            self._edit_row(final, max(numbers[0], 1))
        elif final == "r":
            last = min(numbers[1] if len(numbers) > 1 and numbers[1] else self._height, self._height) - 1
            first = max(numbers[0], 1) - 1
            self._margins = (first, last) if first < last and (first, last) != (0, self._height - 1) else None
            self._move_to(self._top, 0)
        elif final in "LM":
            self._edit_rows(final, max(numbers[0], 1))
        elif final in "su":
            self._escape("7" if final == "s" else "8")

    def _set_modes(self, modes: list[str], *, is_on: bool) -> None:
        for mode in modes:
            if mode in ("47", "1047", "1049"):
                self._switch_screen(is_alternate=is_on)
            elif mode == "2004":
                self.is_editing = is_on

    @property
    def _top(self) -> int:
        """The index of the screen's first row."""
        return max(0, len(self._rows) - self._height)

    def _move_to(self, row: int, column: int) -> None:
        top = self._top
        self._row = min(max(row, top), top + self._height - 1)
        self._column = min(max(column, 0), self._columns - 1)
        self._rows += [Row() for _ in range(self._row - len(self._rows) + 1)]

    def _feed_line(self) -> None:
        if self._margins and self._row == self._top + self._margins[1]:
            self._scroll_region(*self._margins)
            return
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(Row())
            if len(self._rows) > 4 * self._height:
                self._settle()
        self._rows[self._row].is_old = False

    def _scroll_region(self, first: int, last: int) -> None:
        """Scroll a part of the screen; the row that leaves it comes to stand above the screen, as in tmux."""
        top = self._top
        self._rows += [Row() for _ in range(top + self._height - len(self._rows))]
        row = self._rows.pop(top + first)
        row.is_wrapped = False
        self._rows.insert(top + last, Row())
        if self._main is None:
            self._rows.insert(top, row)
            self._row += 1

    def _settle(self) -> None:
        """Settle the rows that have left the screen."""
        count = self._top
        if self._main is None:
            for row in self._rows[:count]:
                if row.is_wrapped or self._begun or row.cells is not None:
                    self._begun.append(row)
                    if not row.is_wrapped or len(self._begun) == _MAX_LINE_ROWS:
                        self._settled += _joined(self._begun, goes_on=row.is_wrapped)
                        self._begun = []
                else:
                    self._settled.append(Line(row.text))
        del self._rows[:count]
        self._row = max(0, self._row - count)

    def _clear(self) -> None:
        """Clear the screen; what it showed is settled, as tmux keeps it in the history."""
        row, column = self._row - self._top, self._column
        if self._main is None:
            self._settle()
            lines = self.open_lines()
            while lines and not (lines[-1].text if len(lines) == 1 else lines[-1].text.strip(" ")):
                lines.pop()
            self._settled += [line if line.text.strip(" ") else Line("") for line in lines]
            self._begun = []
        self._rows = [Row() for _ in range(row + 1)]
        self._row, self._column = row, column

    def _erase(self, final: str, how: int) -> None:
        is_first = (self._row, self._column) == (self._top, 0)
        if final == "J" and (how == 2 or (how == 0 and is_first)):  # noqa: PLR2004
            self._clear()
            return
        row, column = self._rows[self._row], self._column
        if how == 2 or (column == 0 if how == 0 else column >= self._columns - 1):  # noqa: PLR2004
            self._unwrap(self._row)
            row.edit().clear()
        elif how == 0:
            row.erase(column, self._columns, self._columns)
        elif how == 1:
            row.erase(0, column + 1, self._columns)
        if final == "J" and how == 0:
            self._delete_rows(self._row + 1, self._height)
            row.is_wrapped = False
        elif final == "J" and how == 1:
            for above in self._rows[self._top : self._row]:
                above.edit().clear()
                above.is_wrapped = False

    def _unwrap(self, index: int) -> None:
        """Make a row that is cleared as a whole a line of its own."""
        self._rows[index].is_wrapped = False
        if index:
            self._rows[index - 1].is_wrapped = False

    def _edit_row(self, final: str, count: int) -> None:
        row, start, width = self._rows[self._row], self._column, self._columns
        count = min(count, width)
        if final == "P":
            row.delete(start, start + count, width)
        elif final == "@":
            row.insert_blanks(start, count, width)
        else:
            row.erase(start, start + count, width)

    def _edit_rows(self, final: str, count: int) -> None:
        count = min(count, self._height)
        self._unwrap(self._row)
        if final == "M":
            self._delete_rows(self._row, count)
            self._rows += [Row() for _ in range(self._row - len(self._rows) + 1)]
        else:
            below = self._rows[self._row :][: self._height - (self._row - self._top) - count]
            self._rows[self._row :] = [Row() for _ in range(count)] + below

    def _delete_rows(self, start: int, count: int) -> None:
        """Delete rows of the screen; what is below them moves up."""
        rows = len(self._rows)
        del self._rows[start : start + count]
        if rows > self._height:  # the screen ends with the last row
            self._rows += [Row() for _ in range(rows - len(self._rows))]

    def _switch_screen(self, *, is_alternate: bool) -> None:
        if is_alternate and self._main is None:
            self._settle()
            self._main = (self._rows, self._row, self._column)
            self._rows, self._row, self._column = [Row()], 0, 0
        elif not is_alternate and self._main is not None:
            self._rows, self._row, self._column = self._main
            self._main = None


# Where a sequence moves the cursor: row, column, number and the screen's first row to row and column.
_MOVES: dict[str, Callable[[int, int, int, int], tuple[int, int]]] = {
    "A": lambda row, column, number, _top: (row - number, column),
    "B": lambda row, column, number, _top: (row + number, column),
    "C": lambda row, column, number, _top: (row, column + number),
    "D": lambda row, column, number, _top: (row, column - number),
    "E": lambda row, _column, number, _top: (row + number, 0),
    "F": lambda row, _column, number, _top: (row - number, 0),
    "G": lambda row, _column, number, _top: (row, number - 1),
    "`": lambda row, _column, number, _top: (row, number - 1),
    "d": lambda _row, column, number, top: (top + number - 1, column),
}


def _joined(rows: list[Row], *, goes_on: bool = False) -> list[Line]:
    """Return the line, or part of one, that rows make up, or none if all of it is forgotten."""
    if all(row.is_old for row in rows):
        return []
    text = "".join(map(str, rows)).replace(_FORGOTTEN, "")
    return [Line(text, any(row.is_edited for row in rows), any(row.is_command for row in rows), goes_on)]


def _unfinished(data: bytes) -> bytes:
    """Return the end of the data that needs more to be understood."""
    at = data.rfind(b"\033", max(0, len(data) - _MAX_HELD_BYTES))
    if at > 0 and data[at - 1 : at] != b"\033" and data[at:] == b"\033":
        # Perhaps the first half of the end of a string.
        at = max(at if (start := data.rfind(b"\033", max(0, len(data) - _MAX_HELD_BYTES), at)) < 0 else start, 0)
        if _UNFINISHED.fullmatch(data, at):
            return data[at:]
        at = len(data) - 1
    if at >= 0 and _UNFINISHED.fullmatch(data, at):
        return data[at:]
    if data.endswith(b"\r"):
        return data[len(data.rstrip(b"\r")) :]
    return data[len(data) - unfinished_character_bytes(data) :]


def unfinished_character_bytes(data: bytes) -> int:
    """Return how many bytes at the end of UTF-8 are the beginning of a character whose end is missing."""
    for length in (1, 2, 3):
        lead = data[-length:][:1]
        if len(data) >= length and lead >= b"\xc0":
            needs = 2 if lead < b"\xe0" else 3 if lead < b"\xf0" else 4
            return length if length < needs else 0
        if not b"\x80" <= lead < b"\xc0":
            break
    return 0
