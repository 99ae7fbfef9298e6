"""What a terminal shows of a stream of bytes, line by line: no I/O.

Most output is plain lines, and those pass as they are. Where a program goes back to what it has printed (progress
bars, prompts, menus) the rows that can still be on the screen are kept editable, as a terminal has them. A line is
*settled* once it has left the screen, or the screen was cleared; nothing can change it then.

Rules, measured against tmux:

1. Colours, titles and other sequences that show nothing are left out. Blanks and tabs that were printed stay. Letters
   that stand for line drawing are the characters that a terminal shows for them.
2. A line that is longer than the terminal is wide is one line.
3. The alternate screen shows while it is on, behind what was there before, and leaves nothing when it goes.
4. What is unfinished at the end (a character, a sequence, a carriage return that may belong to a line feed) is
   held back until more comes.
5. Line editors of shells and the like ask for bracketed pastes while they edit, so what they draw can be told.
"""

import re
from collections.abc import Callable, Sequence

from .charsets import LINE_DRAWING, CharacterSets
from .marks import BEGIN, with_command
from .rows import FORGOTTEN, Line, Row, cell_width, join, joined, lines_of, text_of
from .sequences import FRESH_INVISIBLE, TOKEN, ControlSequence, control_sequence, unfinished
from .sizes import COLUMNS, ROWS

# A line of more rows is told in parts, so that nothing takes time that grows with its length.
_MAX_LINE_ROWS = 500
# What was typed for a command has so many characters at least, and stands so many rows above its output at most.
_LEAST_TYPED = 40
_TYPED_ROWS = 6
# Characters that take a cell each, or one that perhaps does not.
_RUN = re.compile(r"[ -~]+|[^ -~]")
_NOT_PLAIN = re.compile(r"[\0-\010\013-\037\177]")
# Modes that programs switch on and off.
_ALTERNATE_SCREEN = (47, 1047, 1049)
_BRACKETED_PASTE = 2004


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
        self._fed = 0  # characters since the last mark of a command
        self.shows_commands = self.is_editing = False
        self.sets = CharacterSets()
        self._columns, self._height = columns, rows
        self._rows = [Row()]
        self._row = self._column = 0
        self._saved = (0, 0, self.sets)
        self._last = ""  # what was printed before, if that is a character of ASCII
        self._margins: tuple[int, int] | None = None  # of the part that scrolls, where that is not all
        self._main: tuple[list[Row], int, int] | None = None  # behind the alternate screen
        self._held = b""
        self._settled: list[Line] = []
        self._begun: list[Row] = []  # the settled rows of a line that goes on on the screen

    def restore(self, *, sets: CharacterSets, is_editing: bool = False) -> None:
        """Begin with the character sets that are in use, and with a line editor that is at work."""
        self.sets, self.is_editing = sets, is_editing

    def show_commands(self) -> None:
        """From now on, show commands that a shell was given in the place of what was typed."""
        self.shows_commands = True

    @property
    def held_bytes(self) -> int:
        """How many bytes at the end of what was fed wait for more."""
        return len(self._held)

    def feed(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""
        data = self._held + data
        self._held = unfinished(data)
        text = data[: len(data) - len(self._held)].decode(errors="replace")
        at = 0
        for begin in BEGIN.finditer(text) if self.shows_commands else ():
            self._feed(text[at : begin.start()])
            if self._fed >= _LEAST_TYPED:  # others that look like marks of ours are cheap
                self._fed = 0
                self._show_command(begin[1])
            at = begin.end()
        self._feed(text[at:])

    def _feed(self, text: str) -> None:
        self._fed += len(text)
        line, end, others = text.partition("\n")
        if end:
            self._line(line)
            text = self._take_plain(others) if self._is_fresh() else others
        *lines, rest = text.split("\n")
        for line in lines:
            self._line(line)
        self._write(rest)
        self._settle()

    def _show_command(self, command: str) -> None:
        """Show a command in the last line that what was typed for it stands in, if that is near."""
        first = max(self._top, self._row - _TYPED_ROWS)
        index = self._row
        while index > first:
            end = index
            index -= 1
            while index > first and self._rows[index - 1].is_wrapped:
                index -= 1
            rows = self._rows[index:end]
            line = with_command("".join(map(str, rows)), command)
            if line is not None:
                # The screen keeps as many rows as it has.
                for row, text in zip(rows, [line, *[""] * (len(rows) - 1)], strict=True):
                    row.text, row.cells = text, None
                return

    def keys_sent(self) -> None:
        """Note that keys were sent to a line editor at this point: it shows them in the line that it is in."""
        self._rows[self._row].is_command = True

    def begin_alternate(self) -> None:
        """Be on the alternate screen, if that is not so."""
        self._switch_screen(is_alternate=True)

    def forget(self) -> None:
        """Show nothing of what was fed so far."""
        self._settled, self._begun = [], []
        current = self._rows[self._row]
        for row in [*self._rows, *(self._main[0] if self._main else ())]:
            cells = row.edit()
            cells[:] = [cell and FORGOTTEN for cell in cells]
            row.is_old = row is not current

    def take_settled(self) -> list[Line]:
        """Return the lines that have been settled since the last call."""
        settled, self._settled = self._settled, []
        return settled

    def text(self) -> str:
        """Return all lines since the beginning or the last `take_settled`, joined by line feeds."""
        return text_of((*self._settled, *self.open_lines()))[:-1]

    def screen(self) -> str:
        """Return the rows of the screen, without blanks at their ends and without blank rows at the end."""
        rows = (str(row).replace(FORGOTTEN, " ").rstrip() for row in self._rows[self._top :])
        return "\n".join(rows).rstrip("\n")

    def main_lines(self) -> list[Line]:
        """Return the lines that are not settled, but those of the alternate screen."""
        if self._main is None:
            return self.open_lines()
        rows, row, _ = self._main
        return lines_of([*self._begun], rows, row)

    def open_lines(self) -> list[Line]:
        """Return the lines that are not settled, the last one being unfinished and perhaps empty."""
        if self._main is None:
            return lines_of([*self._begun], self._rows, self._row)
        rows, row, _ = self._main
        behind, shown = lines_of([*self._begun], rows, row), lines_of([], self._rows, self._row)
        if behind and not behind[-1].text:
            behind.pop()  # where the program that has the screen was started
        if shown and shown[-1].text:
            shown.append(Line(""))  # what comes after it begins a line
        return behind + shown

    def _line(self, line: str) -> None:
        """Write a line that ended with a line feed."""
        self._last = ""
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
        head = FRESH_INVISIBLE.sub("", head.replace("\r\n", "\n").removesuffix("\r"))
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
        line = FRESH_INVISIBLE.sub("", line)
        if _NOT_PLAIN.search(line):
            return False
        if "\t" in line and not (line.isascii() and len(line.expandtabs()) < self._columns):
            return False
        if not line.isascii() and (len(line) * 2 > self._columns or not all(map(cell_width, line))):
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
        for match in TOKEN.finditer(text):
            before, final, escape, characters, control = match.groups()
            last, self._last = self._last, ""
            if characters:
                self._put(characters)
                self._last = characters[-1] if characters[-1].isascii() else ""
            elif final == "b" and last:
                self._repeat(last, before)
            elif final:
                if sequence := control_sequence(before, final):
                    self._control_sequence(sequence)
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
                    join(cells, at, run)
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

    def _control_sequence(self, sequence: ControlSequence) -> None:
        """Do what a control sequence says; one that is unknown says nothing."""
        name, numbers = sequence
        if name in ("?h", "?l"):
            self._set_modes(numbers, is_on=name == "?h")
        elif name in _MOVES:
            self._move_to(*_MOVES[name](self._row, self._column, max(numbers[0], 1), self._top))
        elif name in ("H", "f"):
            column = numbers[1] if len(numbers) > 1 else 1
            self._move_to(self._top + max(numbers[0], 1) - 1, max(column, 1) - 1)
        elif name in ("J", "K"):
            self._erase(name, numbers[0])
        elif name in ("X", "@", "P"):
            self._edit_row(name, max(numbers[0], 1))
        elif name in ("L", "M"):
            self._edit_rows(name, max(numbers[0], 1))
        elif name == "r":
            self._set_margins(*numbers[:2])
        elif name in ("s", "u"):
            self._escape("7" if name == "s" else "8")

    def _repeat(self, character: str, parameters: str) -> None:
        """Write a character again, in this row."""
        sequence = control_sequence(parameters, "b")
        if sequence and sequence.name == "b":
            count = max(sequence.numbers[0], 1)
            self._put(character * min(count, self._columns - self._column))

    def _set_margins(self, first: int, last: int = 0) -> None:
        """Let only these rows of the screen scroll, counted from 1; 0 is the first or the last there is."""
        last = min(last or self._height, self._height) - 1
        first = max(first, 1) - 1
        self._margins = (first, last) if first < last and (first, last) != (0, self._height - 1) else None
        self._move_to(self._top, 0)

    def _set_modes(self, modes: list[int], *, is_on: bool) -> None:
        for mode in modes:
            if mode in _ALTERNATE_SCREEN:
                self._switch_screen(is_alternate=is_on)
            elif mode == _BRACKETED_PASTE:
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
                        self._settled += joined(self._begun, goes_on=row.is_wrapped)
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
