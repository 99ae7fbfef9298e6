"""Interprets a program's output: what text, control characters and sequences do to a terminal.

No I/O. Sources: ECMA-48, xterm's "Control Sequences", and tmux where terminals differ. Sequences
that show nothing and move nothing are ignored.
"""

import itertools
import re
from collections.abc import Callable, Iterator

from .charsets import LINE_DRAWING, SHIFT_IN, SHIFT_OUT, CharacterSets
from .grid import Grid
from .rows import History, Screen, cell_width
from .sequences import FRESH_INVISIBLE, TOKEN, control_sequence

# All control characters but tab and line feed.
_NOT_PLAIN = re.compile(r"[\0-\010\013-\037\177-\237]")
# Private modes that DECSET and DECRST switch.
_ALTERNATE_SCREEN = (47, 1047, 1049)
_BRACKETED_PASTE = 2004
_CURSOR = 25

# How control sequences move the cursor: the new row and column from the old and the parameter.
# CUU, CUD, CNL and CPL stop at the scroll region.
_MOVES: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "C": lambda row, column, count: (row, column + count),  # CUF
    "D": lambda row, column, count: (row, column - count),  # CUB
    "G": lambda row, _column, number: (row, number - 1),  # CHA
    "`": lambda row, _column, number: (row, number - 1),  # HPA
}
# Control sequences that edit the screen or move within the scroll region, with a count.
_EDITS: dict[str, Callable[[Grid, int], None]] = {
    "@": Grid.insert_blanks,  # ICH
    "A": Grid.move_up,  # CUU
    "B": Grid.move_down,  # CUD
    "E": Grid.move_down,  # CNL, which also returns the carriage
    "F": Grid.move_up,  # CPL, likewise
    "L": Grid.insert_rows,  # IL
    "M": Grid.delete_rows,  # DL
    "P": Grid.delete_cells,  # DCH
    "S": Grid.scroll_up,  # SU
    "T": Grid.scroll_down,  # SD
    "X": Grid.erase_cells,  # ECH
    "Z": Grid.tab_back,  # CBT
}
# Control sequences that move the cursor to a place: CUP, HVP and VPA.
_PLACES = ("H", "f", "d")

# The highest parameter of ED and EL that changes the screen. ED 3 erases the history; we keep it.
_MAX_ERASURE = 2


class Interpreter:
    """A terminal that text is written to.

    Most output is plain lines. At a new row these are stored as they are, without a look at each
    character; everything else is split into characters, control characters and sequences.

    Attributes:
        main: The main screen, whose lines go to the history when they leave it.
        alternate: The alternate screen, None unless it is on.
        grid: The screen that is on.
        sets: The character sets in use.
        is_editing: A line editor has switched bracketed paste on.
        rows_before: The rows of the screen when a program began to draw, if that is separate.

    A program draws on the whole screen once it

    - switches to the alternate screen, until it switches back, or
    - moves the cursor to a place on the main screen (CUP, HVP, VPA), until output continues in
      lines: the whole screen scrolls, a line editor begins (it switches bracketed paste on), the
      cursor returns to where it was saved before, or the terminal is reset.

    Moving the cursor to the first place and clearing the screen, as `clear` does, is not drawing,
    unless the cursor is hidden or moves to another place before the first line ends.

    What is drawn on the main screen is told from lines only if `separates_drawing`.
    """

    def __init__(
        self, columns: int, height: int, history: History, *, separates_drawing: bool = False
    ) -> None:
        self.main = Grid(columns, height, history)
        self.alternate: Grid | None = None
        self.sets = CharacterSets()
        self.is_editing = False
        self.rows_before: list[str] = []
        self.grid = self.main
        self._history = history
        self._separates_drawing = separates_drawing
        self._saved = (0, 0, self.sets)  # what DECSC saved: row, column, sets
        self._was_drawn_on = False  # then
        self._last = ""  # the character that REP repeats, empty unless it was printed last
        self._is_cursor_hidden = False
        self._is_erased = False  # the screen was erased right before
        self._is_home = False  # the cursor was moved to the first place right before
        self._is_cleared = False  # both, and no line has ended since

    @property
    def is_drawn_on(self) -> bool:
        """Whether a program draws on the whole screen."""
        return self.alternate is not None or self.main.is_drawn_on

    def switch_screen(self, *, is_alternate: bool) -> None:
        """Switch to the alternate screen, which is empty at first, or back to the main screen.

        As in tmux, both screens have the same scroll region.
        """
        if is_alternate == (self.alternate is not None):
            return
        self._end_drawing()
        self.main.keep_above()
        region = self.grid.scroll_region
        self.grid.settle()
        if self.alternate is None:
            self.main.end_lines()
            self.grid = self.alternate = Grid(self.main.columns, self.main.height)
            self.rows_before = []
        else:
            self._history.lines.append(Screen(self.grid.rows(), self.grid.shown_lines()))
            self.grid = self.main
            self.alternate = None
        self.grid.scroll_region = region

    def take_drawing_for_lines(self) -> None:
        """Take what is drawn on the main screen from here on for lines."""
        self._separates_drawing = False
        self.main.take_drawing_for_lines()

    def _draw(self) -> None:
        """Note that a program draws on the screen from here on."""
        if self._separates_drawing and not self.is_drawn_on:
            self.rows_before = [] if self._is_cleared else self.grid.rows()
            self.main.draw(is_begun=self._is_cleared)
        elif self.main.is_drawn_on:
            self.main.draw(is_begun=False)
        self._is_cleared = False

    def _end_drawing(self, *, is_restored: bool = False) -> None:
        """Note that what is written to the main screen from here on are lines."""
        self._is_cleared = False
        if self.main.is_drawn_on and self.alternate is None:
            self.main.end_drawing(is_restored=is_restored)

    def write(self, text: str, starts: Iterator[int]) -> None:
        """Write text, and settle the rows that it has moved off the screen.

        `starts` yields the cursor after each line feed, if that is known.
        """
        line, line_feed, rest = text.partition("\n")
        if line_feed:
            self._write_line(line, starts)
            text = self._write_plain_lines(rest, starts)
        *lines, rest = text.split("\n")
        for line in lines:
            self._write_line(line, starts)
        self._interpret(rest)
        self.grid.settle()

    def _write_line(self, line: str, starts: Iterator[int]) -> None:
        """Write a line and the line feed after it: at once if it is plain and at a new row."""
        has_return = line.endswith("\r")
        if has_return:
            line = line.rstrip("\r")
        visible = line
        is_at_new_row = self._is_at_new_row()
        if is_at_new_row:
            visible = FRESH_INVISIBLE.sub("", line)
        if is_at_new_row and _is_plain(visible, self.grid.columns):
            self.grid.put_line(visible)
        else:
            self._interpret(line)
        if self._is_home:
            self._leave_home(is_erased=False)
        self._is_cleared = self._is_erased = False
        if has_return:
            self.grid.return_carriage()
        self.grid.feed_line()
        self._last = ""
        start = next(starts, None)
        if start is not None and self.alternate is None:
            self.grid.mark_line(start)

    def _write_plain_lines(self, text: str, starts: Iterator[int]) -> str:
        """Write lines at once if all are plain and fill the screen; return what is left."""
        if self.alternate is not None or not self._is_at_new_row():
            return text
        head, end_of_line, rest = text.rpartition("\r\n")
        # A line feed alone keeps the column.
        if not end_of_line or head.count("\n") != head.count("\r\n"):
            return text
        head = head.replace("\r\n", "\n")
        head = FRESH_INVISIBLE.sub("", head)
        lines = head.split("\n")
        if len(lines) < self.grid.height or not head.isascii() or _NOT_PLAIN.search(head):
            return text
        expanded = head.expandtabs().split("\n") if "\t" in head else lines
        if max(map(len, expanded)) > self.grid.columns:
            return text
        self.grid.put_lines(lines, itertools.islice(starts, len(lines)))
        self._is_cleared = self._is_erased = False
        return rest

    def _is_at_new_row(self) -> bool:
        """Tell whether the next line, if it is plain, can be stored as it is."""
        is_free = not self.is_editing and not self._is_home and self.sets.is_usual
        return is_free and self.grid.is_at_new_row()

    def _interpret(self, text: str) -> None:
        for match in TOKEN.finditer(text):
            parameters, final, escape, characters, control = match.groups()
            last = self._last
            self._last = ""
            is_erased, self._is_erased = self._is_erased, False
            if self._is_home:
                self._leave_home(is_erased=final == "J")
            if characters:
                self._print(characters)
                if characters[-1].isascii():
                    self._last = characters[-1]
            elif final == "b":
                self._repeat(last, parameters)
            elif final:
                self._control_sequence(parameters, final, is_erased=is_erased)
            elif escape:
                self._escape_sequence(escape)
            elif control:
                self._control_character(control)

    def _print(self, characters: str) -> None:
        if self.sets.is_drawing:
            characters = characters.translate(LINE_DRAWING)
        self.grid.put(characters, is_edited=self.is_editing)

    def _repeat(self, character: str, parameters: str) -> None:
        """Print a character again, up to the end of its row (REP)."""
        name, numbers = control_sequence(parameters, "b") or ("", [])
        if character and name == "b":
            _, column = self.grid.cursor
            count = max(numbers[0], 1)
            self._print(character * min(count, self.grid.columns - column))

    def _control_character(self, control: str) -> None:
        if control == "\r":
            self.grid.return_carriage()
        elif control == "\b":
            self.grid.go_back()
        elif control == "\t":
            self.grid.tab()
        elif control in "\n\v\f":
            self._is_cleared = False
            self.grid.feed_line()
        elif control in (SHIFT_OUT, SHIFT_IN):
            self.sets = self.sets.after(control)

    def _escape_sequence(self, sequence: str) -> None:
        """Do what an escape sequence asks for, given what follows ESC."""
        grid = self.grid
        match sequence:
            case "D":  # IND
                grid.feed_line()
            case "E":  # NEL
                grid.return_carriage()
                grid.feed_line()
            case "M":  # RI
                grid.reverse_feed_line()
            case "7":  # DECSC
                self._saved = (*grid.cursor, self.sets)
                self._was_drawn_on = self.main.is_drawn_on
            case "8":  # DECRC
                row, column, self.sets = self._saved
                returns = grid.move_to if self.is_drawn_on else grid.return_to
                if not self._was_drawn_on:
                    self._end_drawing(is_restored=True)
                returns(row, column)
            case "c":  # RIS
                self._end_drawing()
                grid.clear()
                grid.move_to(0, 0)
                grid.scroll_region = None
                self.sets = CharacterSets()
                self._saved = (0, 0, self.sets)
            case "(0" | "(B" | ")0" | ")B":
                self.sets = self.sets.after(sequence)

    def _control_sequence(self, parameters: str, final: str, *, is_erased: bool) -> None:
        if final == "m":  # SGR: the most frequent sequence shows nothing
            return
        sequence = control_sequence(parameters, final)
        if sequence is None:
            return
        name, numbers = sequence
        grid = self.grid
        count = max(numbers[0], 1)
        if name in _MOVES:
            row, column = grid.cursor
            grid.move_to(*_MOVES[name](row, column, count))
        elif name in _EDITS:
            if name in ("E", "F"):
                grid.return_carriage()
            _EDITS[name](grid, count)
        elif name in ("J", "K"):
            erase = grid.erase_in_display if name == "J" else grid.erase_in_line  # ED and EL
            if numbers[0] <= _MAX_ERASURE:
                erase(numbers[0])
            self._is_erased = name == "J"
        else:
            if name in _PLACES:
                self._move(numbers, is_erased=is_erased, has_column=name != "d")
            self._set(name, numbers)

    def _leave_home(self, *, is_erased: bool) -> None:
        """Note that something follows a move to the first place: the screen is erased, or not."""
        self._is_home = False
        if is_erased and not self._is_cursor_hidden:
            self._is_cleared = not self.is_drawn_on
            return
        self._draw()
        if is_erased:
            self.rows_before = []

    def _move(self, numbers: list[int], *, is_erased: bool, has_column: bool) -> None:
        """Note that the cursor moves to a place."""
        is_first = has_column and max(numbers[:2]) <= 1
        if not is_first:
            self._draw()
        elif is_erased and not self._is_cursor_hidden:
            self._is_cleared = not self.is_drawn_on
        else:
            self._is_home = True

    def _set(self, name: str, numbers: list[int]) -> None:
        """Set the cursor, the scroll region or modes."""
        match name:
            case "H" | "f":  # CUP and HVP
                row, column = [*numbers, 1][:2]  # they count from 1, and 0 means 1
                self.grid.move_to(max(row, 1) - 1, max(column, 1) - 1)
            case "d":  # VPA
                self.grid.move_to_row(max(numbers[0], 1))
            case "r":  # DECSTBM
                self._set_scroll_region(*numbers[:2])
            case "s":  # SCOSC
                self._escape_sequence("7")
            case "u":  # SCORC
                self._escape_sequence("8")
            case "?h" | "?l":  # DECSET and DECRST
                is_on = name == "?h"
                for mode in numbers:
                    if mode in _ALTERNATE_SCREEN:
                        self.switch_screen(is_alternate=is_on)
                    elif mode == _BRACKETED_PASTE:
                        self._edit(is_on=is_on)
                    elif mode == _CURSOR:
                        self._is_cursor_hidden = not is_on

    def _edit(self, *, is_on: bool) -> None:
        """Note that a line editor begins or ends."""
        if is_on:
            self._end_drawing()
        elif self.is_editing:
            self.grid.end_editing()
        self.grid.keep_above()
        self.is_editing = is_on

    def _set_scroll_region(self, first: int, last: int = 0) -> None:
        """Set the rows that scroll, counted from 1; 0 means the first or the last row.

        As in tmux, a region of fewer than two rows is ignored.
        """
        height = self.grid.height
        if last == 0:
            last = height
        region = (max(first, 1) - 1, min(last, height) - 1)
        if region[0] >= region[1]:
            return
        self.grid.scroll_region = None if region == (0, height - 1) else region
        self.grid.move_to(0, 0)


def _is_plain(line: str, columns: int) -> bool:
    """Tell whether a line has no control characters but tabs, and none that join others.

    A line with tabs or with characters outside ASCII must also fit into a row.
    """
    if _NOT_PLAIN.search(line):
        return False
    if line.isascii():
        return "\t" not in line or len(line.expandtabs()) < columns
    if "\t" in line or len(line) * 2 > columns:
        return False
    return all(map(cell_width, line))
