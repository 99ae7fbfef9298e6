"""Interprets a program's output: what text, control characters and sequences do to a terminal.

No I/O. Sources: ECMA-48, xterm's "Control Sequences", and tmux where terminals differ. Sequences
that show nothing and move nothing are ignored.
"""

import re
from collections.abc import Callable

from .charsets import LINE_DRAWING, SHIFT_IN, SHIFT_OUT, CharacterSets
from .grid import Grid
from .rows import History, Line, cell_width
from .sequences import FRESH_INVISIBLE, TOKEN, control_sequence

# All control characters but tab and line feed.
_NOT_PLAIN = re.compile(r"[\0-\010\013-\037\177-\237]")
# Private modes that DECSET and DECRST switch.
_ALTERNATE_SCREEN = (47, 1047, 1049)
_BRACKETED_PASTE = 2004

# How control sequences move the cursor: the new row and column from the old ones and the parameter.
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
    "d": Grid.move_to_row,  # VPA
}
# Begins a line of ours: clean text from a program never contains this character.
NOTE = "\x02"
_SCREEN = Line(f"{NOTE}[screen]")

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
        keeps_screens: What the alternate screen shows when it is switched off stays, as lines
            after a note.
    """

    def __init__(self, columns: int, height: int, history: History) -> None:
        self.main = Grid(columns, height, history)
        self.alternate: Grid | None = None
        self.sets = CharacterSets()
        self.is_editing = False
        self.keeps_screens = False
        self.grid = self.main
        self._history = history
        self._saved = (0, 0, self.sets)  # what DECSC saved: row, column, sets
        self._last = ""  # the character that REP repeats, empty unless it was printed last

    def switch_screen(self, *, is_alternate: bool) -> None:
        """Switch to the alternate screen, which is empty at first, or back to the main screen.

        As in tmux, both screens have the same scroll region.
        """
        if is_alternate == (self.alternate is not None):
            return
        region = self.grid.scroll_region
        self.grid.settle()
        if is_alternate:
            if self.keeps_screens:
                self.main.end_lines()
            self.grid = Grid(self.main.columns, self.main.height)
            self.alternate = self.grid
        else:
            if self.keeps_screens:
                self._history.lines += self.screen_lines()
            self.grid = self.main
            self.alternate = None
        self.grid.scroll_region = region

    def screen_lines(self) -> list[Line]:
        """Return the written lines of the alternate screen, after a note if it keeps screens."""
        shown = self.alternate.shown_lines() if self.alternate else []
        return [_SCREEN, *shown] if shown and self.keeps_screens else shown

    def write(self, text: str) -> None:
        """Write text, and settle the rows that it has moved off the screen."""
        line, line_feed, rest = text.partition("\n")
        if line_feed:
            self._write_line(line)
            text = self._write_plain_lines(rest)
        *lines, rest = text.split("\n")
        for line in lines:
            self._write_line(line)
        self._interpret(rest)
        self.grid.settle()

    def _write_line(self, line: str) -> None:
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
        if has_return:
            self.grid.return_carriage()
        self.grid.feed_line()
        self._last = ""

    def _write_plain_lines(self, text: str) -> str:
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
        self.grid.put_lines(lines)
        return rest

    def mark_line(self, cursor: int) -> None:
        """Note where in the output a line of the main screen begins, if one begins here."""
        if self.alternate is None:
            self.grid.mark_line(cursor)

    def _is_at_new_row(self) -> bool:
        """Tell whether the next line, if it is plain, can be stored as it is."""
        return not self.is_editing and self.sets.is_usual and self.grid.is_at_new_row()

    def _interpret(self, text: str) -> None:
        for match in TOKEN.finditer(text):
            parameters, final, escape, characters, control = match.groups()
            last = self._last
            self._last = ""
            if characters:
                self._print(characters)
                if characters[-1].isascii():
                    self._last = characters[-1]
            elif final == "b":
                self._repeat(last, parameters)
            elif final:
                self._control_sequence(parameters, final)
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
            case "8":  # DECRC
                row, column, self.sets = self._saved
                grid.move_to(row, column)
            case "c":  # RIS
                grid.clear()
                grid.move_to(0, 0)
                grid.scroll_region = None
                self.sets = CharacterSets()
                self._saved = (0, 0, self.sets)
            case "(0" | "(B" | ")0" | ")B":
                self.sets = self.sets.after(sequence)

    def _control_sequence(self, parameters: str, final: str) -> None:
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
        else:
            self._set(name, numbers)

    def _set(self, name: str, numbers: list[int]) -> None:
        """Set the cursor, the scroll region or modes."""
        match name:
            case "H" | "f":  # CUP and HVP
                row, column = [*numbers, 1][:2]  # they count from 1, and 0 means 1
                self.grid.move_to(max(row, 1) - 1, max(column, 1) - 1)
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
                        if self.is_editing and not is_on:
                            self.grid.end_editing()
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
