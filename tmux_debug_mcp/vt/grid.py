"""The grid of a terminal: the rows of a screen, its cursor, and what control functions do to them.

No I/O. Rows and columns count from 0. Docstrings name the control functions of ECMA-48 and of
xterm's "Control Sequences"; where terminals differ, a grid does what tmux does.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from .rows import (
    EMPTY_LINE,
    FORGOTTEN,
    TAB_COLUMNS,
    History,
    Line,
    Row,
    Screen,
    cell_width,
    joined,
    new_at_start,
)

# The parameter of ED and EL: what they erase.
_TO_END = 0
_TO_START = 1
_ALL = 2

# Characters that take one cell each, or a single character that may take another number of cells.
_RUN = re.compile(r"[ -~]+|[^ -~]")


class Grid:
    """The main screen or the alternate screen.

    Rows that leave the screen go to the history; on the alternate screen, which has none, they are
    dropped. `scroll_region` is the first and the last row of the part that scrolls; None means all.

    While a program draws, what it writes is no line, and lines that it writes over are settled.
    """

    def __init__(self, columns: int, height: int, history: History | None = None) -> None:
        self.columns = columns
        self.height = height
        self.scroll_region: tuple[int, int] | None = None
        self._history = history
        # The last `height` rows are the screen. Rows above them have left it and are not settled.
        # Rows at the end of the screen are missing until the cursor reaches them.
        self._rows = [Row()]
        # The cursor: an index into `_rows`, and a column, which is the width after a full row.
        self._row = 0
        self._column = 0
        # The rows that a drawing program has written to since it last moved to one of them; None
        # while none draws.
        self._drawn: list[Row] | None = None
        # The first and the last of the rows that output went back up to, as indices; None if it did
        # not, or since a line editor or a program that draws began or ended.
        self._redrawn: tuple[int, int] | None = None

    @property
    def is_drawn_on(self) -> bool:
        """Whether a program draws."""
        return self._drawn is not None

    @property
    def _top(self) -> int:
        """The index of the screen's first row."""
        return max(0, len(self._rows) - self.height)

    @property
    def cursor(self) -> tuple[int, int]:
        """The cursor's row on the screen and its column."""
        return self._row - self._top, self._column

    def is_at_new_row(self) -> bool:
        """Tell whether the cursor is at the start of the last row, which is empty.

        Not if the row was forgotten, nor while only a part of the screen scrolls.
        """
        row = self._rows[-1]
        is_empty = not row.cells and not row.text and not row.is_old
        is_at_end = self._column == 0 and self._row == len(self._rows) - 1
        return is_empty and is_at_end and self.scroll_region is None and self._drawn is None

    def draw(self, *, is_begun: bool) -> None:
        """Note that a program draws from here on; `is_begun`: the line at the cursor is drawn."""
        self.settle()
        self._drawn = []
        start = self._row
        while start > self._top and self._rows[start - 1].is_wrapped:
            start -= 1
        for row in self._rows[start : self._row + 1] if is_begun else []:
            row.is_drawn = True

    def take_drawing_for_lines(self) -> None:
        """Note that what a program draws from here on are lines."""
        self._drawn = None

    def end_drawing(self, *, has_scrolled: bool = False, is_restored: bool = False) -> None:
        """Note that no program draws any more: what it drew is no part of later lines.

        If output that goes on in lines has scrolled the screen, these began after the last move. If
        the cursor `is_restored`, output goes on where it was.
        """
        self.settle()
        begun = self._drawn if has_scrolled and self._drawn else []
        if not is_restored:
            self.end_lines()
        self._drawn = self._redrawn = None
        for row in begun:
            row.is_drawn = False
        if self._history is None:
            return
        if any(row.is_drawn for row in self._history.begun):
            self._history.end_begun()
        drawn = [row for row in self._rows if row.is_drawn]
        self._history.lines += [line for row in drawn for line in joined([row]) if line.text]
        if not is_restored:
            shown = ["" if row in begun else str(row).rstrip() for row in self._rows[self._top :]]
            self._history.lines.append(Screen(_without_blank_rows(shown)))
        for row in drawn:
            row.forget()
        self._rows[self._row].is_old = has_scrolled and self._rows[self._row].is_old

    def mark_line(self, cursor: int) -> None:
        """Note where in the output the cursor's row begins, if it is empty and the last.

        Rows below it are only those that were empty when the screen was forgotten.
        """
        row, *below = self._rows[self._row :]
        if self._column or self.scroll_region is not None or str(row):
            return
        if not [other for other in below if other.cells or not other.is_old]:  # faster than `all`
            row.begins_at = cursor

    def unmark_lines(self, index: int | None = None) -> None:
        """Note that output changes rows before this index; without an index, any of the screen."""
        for row in self._rows[self._top if index is None else index :]:
            row.begins_at = None

    def lines(self) -> list[Line]:
        """Return the lines that are not settled, without empty lines below the cursor."""
        line_rows: list[Row] = []
        if self._history is not None:
            line_rows = list(self._history.begun)
        lines: list[Line] = []
        if not line_rows:
            lines = [EMPTY_LINE] * len(new_at_start(self._rows))
        to_cursor = max(self._row + 1, 1)  # how many lines end with the cursor's
        for number in range(len(lines), len(self._rows)):
            row = self._rows[number]
            line_rows.append(row)
            if not row.is_wrapped:
                lines += joined(line_rows)
                line_rows = []
            if number == self._row:
                to_cursor = len(lines) + bool(line_rows)
        lines += joined(line_rows)
        while len(lines) > to_cursor and not lines[-1].text:
            lines.pop()
        return lines

    def shown_lines(self) -> list[Line]:
        """Return the lines that are not settled, without blank lines at the end."""
        return _without_blank_end(self.lines())

    def end_lines(self) -> None:
        """Settle the lines of the screen as they are. What is written to them later is new."""
        if self._history is None:
            return
        self.settle()
        lines = [line for line in self.lines() if not line.is_drawn]
        if lines and not lines[-1].text:
            lines.pop()  # the cursor's line
        self._history.lines += lines
        for row in self._history.begun:
            if not row.is_drawn:
                row.forget()
        self.forget(has_cursor=False)

    def rows(self) -> list[str]:
        """Return the rows of the screen, without trailing blanks and trailing empty rows."""
        return _without_blank_rows([str(row).rstrip() for row in self._rows[self._top :]])

    def unfinished(self) -> list[str]:
        """Return the rows that output in lines may still change, each line that wraps joined.

        These are the cursor's, those that output went back up to, and those that don't scroll.
        """
        top, end = self._top, len(self._rows)
        meant = {self._row}
        if self._redrawn and self._redrawn[0] >= top:
            meant.update(range(self._redrawn[0], self._redrawn[1] + 1))
        if self.scroll_region:
            first, last = self.scroll_region
            meant.update(range(top, top + first), range(top + last + 1, end))
        lines = []
        start = top
        for index in range(top, end):
            if self._rows[index].is_wrapped and index + 1 < end:
                continue
            if not meant.isdisjoint(range(start, index + 1)):
                lines.append("".join(map(str, self._rows[start : index + 1])).rstrip())
            start = index + 1
        return lines

    def keep_above(self) -> None:
        """Note that output in lines does not go back up to what is above the cursor any more."""
        self._redrawn = None

    def lines_above_cursor(self, max_rows: int) -> Iterator[list[Row]]:
        """Yield the rows of each line that ends at most so many rows above the cursor.

        The nearest line is first.
        """
        first = max(self._top, self._row - max_rows)
        start = self._row
        while start > first:
            end = start
            start -= 1
            while start > first and self._rows[start - 1].is_wrapped:
                start -= 1
            yield self._rows[start:end]

    def mark_command(self) -> None:
        """Note that keys were sent while a line editor had its cursor in this row."""
        self._rows[self._row].is_command = True

    def keys_sent(self) -> None:
        """Note that everything written so far was there before keys were sent."""
        for row in (*(self._history.begun if self._history else ()), *self._rows):
            row.keys_sent()

    def line_begins_at(self) -> int | None:
        """Return where in the output the cursor's line begins, if it is the last and known."""
        lines = self.lines()
        return lines[-1].begins_at if lines and self._row == len(self._rows) - 1 else None

    def end_editing(self) -> None:
        """Note that a line editor has ended. In an empty row, the line above has ended, too.

        If a row is exactly full, the editor wraps it, and leaves the row below empty. Here we
        differ from tmux, which joins what is printed next to the full row.
        """
        row = self._rows[self._row]
        if self._column == 0 and not row.new_text.strip(" " + FORGOTTEN):
            self._end_line_above(self._row)
            self._rows[self._row] = Row()
            self._rows[self._row].is_command = row.is_command

    def forget(self, *, has_cursor: bool) -> None:
        """Hide everything written so far.

        If this screen `has_cursor`, because it is on, new output continues the cursor's row.
        """
        self._fill()
        for row in self._rows:
            if not row.is_drawn or has_cursor:
                row.forget()
        if has_cursor:
            self._rows[self._row].is_old = False

    def put(self, characters: str, *, is_edited: bool) -> None:
        """Write printable characters at the cursor, wrapped where they don't fit."""
        self._start_writing(is_edited=is_edited)
        for run in _RUN.findall(characters):
            width = 1
            if not run.isascii():
                width = cell_width(run)
            if width == 0:
                self._rows[self._row].join(self._column, run)
            elif width == 1:
                self._put_cells(run, 1, is_edited=is_edited)
            else:
                self._put_cells([run, ""], width, is_edited=is_edited)

    def _put_cells(self, cells: Sequence[str], width: int, *, is_edited: bool) -> None:
        """Write the cells of characters that are `width` cells wide."""
        end = self._column + len(cells)
        if end <= self.columns:
            self._rows[self._row].put(self._column, cells)
            self._column = end
            return
        while cells:
            if self._column + width > self.columns:
                self._rows[self._row].is_wrapped = True
                self._column = 0
                self.feed_line()
                self._start_writing(is_edited=is_edited)
            part = cells[: max(width, self.columns - self._column)]
            self._rows[self._row].put(self._column, part)
            self._column += len(part)
            cells = cells[len(part) :]

    def _start_writing(self, *, is_edited: bool = False) -> None:
        row = self._rows[self._row]
        if self._drawn is not None:
            if not row.is_drawn:
                if row.new_text.strip(" " + FORGOTTEN):
                    self.end_lines()
                row.is_drawn = True
            if row not in self._drawn[-1:]:
                self._drawn.append(row)
        row.start_writing(self._column, is_edited=is_edited)

    def _start_editing(self) -> Row:
        """Return the cursor's row, prepared for being edited."""
        if self._drawn is not None:
            self._start_writing()
        return self._rows[self._row]

    def put_line(self, line: str) -> None:
        """Write a line at the cursor, which is at a new row.

        The line contains no control characters but tabs. If it contains tabs, or characters that
        are not one cell wide, it fits into a row.
        """
        starts = range(0, max(len(line), 1), self.columns)
        rows = [Row(line[start : start + self.columns], is_wrapped=True) for start in starts]
        rows[-1].is_wrapped = False
        rows[0].begins_at = self._rows[-1].begins_at
        self._rows[-1:] = rows
        self._row = len(self._rows) - 1
        self._column = len(rows[-1].text)
        if "\t" in line or not line.isascii():
            self._column = len(rows[-1].edit())

    def put_lines(self, lines: Sequence[str], starts: Iterable[int]) -> None:
        """Write lines at the cursor, which is at a new row, and move it to the row below them.

        There are at least as many lines as rows on the screen. Each is valid for `put_line` and
        fits into a row. `starts` are the cursors after them, if they are known.
        """
        above = len(lines) - self.height + 1
        begins = [self._rows[-1].begins_at, *starts]
        begins += [None] * (len(lines) + 1 - len(begins))
        self._rows[-1:] = [Row()] * self.height
        self.settle()
        if self._history is not None:
            settled = zip(lines[:above], begins, strict=False)
            self._history.lines += [Line(line, begins_at=start) for line, start in settled]
        self._rows = [Row(line) for line in [*lines[above:], ""]]
        for row, start in zip(self._rows, begins[above:], strict=True):
            row.begins_at = start
        self._row = self.height - 1
        self._redrawn = None

    def move_to(self, row: int, column: int) -> None:
        """Move the cursor to a row and a column, or to the nearest on the screen (CUP)."""
        self._column = min(max(column, 0), self.columns - 1)
        self.move_to_row(max(row, 0) + 1)

    def move_to_row(self, number: int) -> None:
        """Move the cursor to a row, counted from 1; it may stay past the last column (VPA)."""
        self._row = self._top + min(number, self.height) - 1
        if self._row >= len(self._rows) or self._rows[self._row].is_old:
            self.unmark_lines()  # rows are passed over that later output may not show
        self._grow(self._row + 1)
        self.unmark_lines(self._row + 1)

    def return_to(self, row: int, column: int) -> None:
        """Move the cursor to where output in lines was before, and may change what it wrote."""
        before = self._row
        self.move_to(row, column)
        self._go_back_up(before)

    def _go_back_up(self, before: int) -> None:
        """Note that the cursor has moved from a row, perhaps up."""
        if self._row >= before:
            return
        first, last = self._redrawn or (self._row, before)
        if self._row > last:  # a block of its own
            first, last = self._row, before
        self._redrawn = min(first, self._row), max(last, before)

    def _grow(self, length: int) -> None:
        """Add rows at the end until there are this many."""
        self._rows += [self._empty_row() for _ in range(length - len(self._rows))]

    def return_carriage(self) -> None:
        """Move the cursor to the first column (CR)."""
        self._column = 0

    def go_back(self) -> None:
        """Move the cursor one column to the left (BS).

        From the first column it moves to the end of the row above, if that row is wrapped.
        """
        if self._column:
            self._column = min(self._column, self.columns) - 1
        elif self._row > self._top and self._rows[self._row - 1].is_wrapped:
            self._row -= 1
            self._column = self.columns - 1

    def tab(self) -> None:
        """Move the cursor to the next tab stop (HT). After the text of a row, write the tab."""
        row = self._rows[self._row]
        next_stop = (self._column // TAB_COLUMNS + 1) * TAB_COLUMNS
        stop = min(next_stop, self.columns - 1)
        is_behind_text = len(row.edit()) <= self._column
        if is_behind_text and self._column < stop and stop % TAB_COLUMNS == 0:
            row.put(self._column, ["\t", *[""] * (stop - self._column - 1)])
        self._column = max(self._column, stop)

    def tab_back(self, count: int) -> None:
        """Move the cursor back by tab stops (CBT)."""
        stop = (min(self._column, self.columns - 1) - 1) // TAB_COLUMNS - count + 1
        self._column = max(0, stop * TAB_COLUMNS)

    def move_up(self, count: int) -> None:
        """Move the cursor up, not beyond the first row of the scroll region (CUU)."""
        row, column = self.cursor
        first, _ = self._region
        if row < first:
            first = 0
        self.return_to(max(first, row - count), column)

    def move_down(self, count: int) -> None:
        """Move the cursor down, not beyond the last row of the scroll region (CUD)."""
        row, column = self.cursor
        _, last = self._region
        if row > last:
            last = self.height - 1
        self.move_to(min(last, row + count), column)

    def feed_line(self) -> None:
        """Move the cursor down, or scroll at the end of the scroll region (LF, IND)."""
        if self.scroll_region:
            row, _ = self.cursor
            if row == self.scroll_region[1]:
                self.scroll_up(1)
                return
            if row == self.height - 1:  # below the region nothing scrolls
                return
        is_last = self._row + 1 == len(self._rows)
        if is_last and self._drawn is not None and len(self._rows) >= self.height:
            self.end_drawing(has_scrolled=True)
        self._row += 1
        if is_last:
            self._rows.append(self._empty_row())
            if self._drawn is not None:
                self._start_writing()
            if len(self._rows) > 4 * self.height:
                self.settle()
        if self._drawn is None:
            self._rows[self._row].is_old = False

    def reverse_feed_line(self) -> None:
        """Move the cursor up, or scroll down at the start of the scroll region (RI)."""
        row, _ = self.cursor
        if row == self._region[0]:
            self.scroll_down(1)
        elif row:
            self._row -= 1
            self._go_back_up(self._row + 1)
            self.unmark_lines(self._row + 1)

    @property
    def _region(self) -> tuple[int, int]:
        """The first and the last row of the part that scrolls."""
        return self.scroll_region or (0, self.height - 1)

    def scroll_up(self, count: int) -> None:
        """Scroll the region up (SU). On the main screen its first rows go to the history."""
        self._settle_lines()
        first, last = self._region
        for _ in range(min(count, last - first + 1)):
            self._fill()
            if self._history is None:
                self._move_rows(first, first + 1, last - first)
                continue
            top = self._top
            self.unmark_lines()
            self._rows.insert(top + last + 1, Row())
            self._rows.insert(top, self._rows.pop(top + first))
            self._row += 1
            if len(self._rows) > 4 * self.height:
                self.settle()

    def scroll_down(self, count: int) -> None:
        """Scroll the region down (SD)."""
        first, last = self._region
        for _ in range(min(count, last - first + 1)):
            self._move_rows(first + 1, first, last - first)

    def _fill(self) -> None:
        """Add the rows that are missing at the end of the screen."""
        self._grow(self._top + self.height)

    def _move_rows(self, to: int, start: int, count: int) -> None:
        """Move rows of the screen, and empty the rows that they leave, as `grid_move_lines` does.

        The rows above the old place and above the new one end their lines.
        """
        if not count:
            return
        self._settle_lines()
        self._fill()
        top = self._top
        self.unmark_lines()
        self._end_line_above(top + to)
        moved = self._rows[top + start : top + start + count]
        self._rows[top + start : top + start + count] = [self._empty_row() for _ in range(count)]
        self._rows[top + to : top + to + count] = moved
        is_left = start < to or start >= to + count
        if is_left:
            self._end_line_above(top + start)

    def _empty_rows(self, start: int, end: int) -> None:
        """Empty rows of the screen. The row above them ends its line, as in `grid_clear_lines`."""
        self._settle_lines()
        top = self._top
        for index in range(top + start, top + end):
            self._rows[index] = self._empty_row()
        self._end_line_above(top + start)

    def _settle_lines(self) -> None:
        """Settle the lines of the screen before a program that draws changes them."""
        if self._drawn is not None:
            self.end_lines()

    def _empty_row(self) -> Row:
        """Return an empty row, which is no line if a program draws."""
        row = Row()
        if self._drawn is not None:
            row.forget()
        return row

    def settle(self) -> None:
        """Move the rows that have left the screen to the history."""
        count = self._top
        if self._history is not None:
            self._history.add_rows(self._rows[:count])
        del self._rows[:count]
        self._row = max(0, self._row - count)
        if self._redrawn:
            first, last = self._redrawn
            self._redrawn = (first - count, last - count) if first >= count else None

    def clear(self) -> None:
        """Clear the screen (ED 2). Its lines go to the history, as in tmux."""
        self.settle()
        self._redrawn = None
        self.unmark_lines()  # the empty rows above the cursor depend on where a reading begins
        new = new_at_start(self._rows[: self._row + 1])
        if self._history is not None:
            self._history.lines += self.shown_lines()
            self._history.begun = []
        self._rows = new + [row.cleared() for row in self._rows[len(new) : self._row]]
        if self._drawn is not None:
            self._rows = []
        self._grow(self._row + 1)

    def erase_in_display(self, part: int) -> None:
        """Erase the screen from the cursor on, up to the cursor, or all of it (ED 0, 1, 2)."""
        if part == _ALL or (part == _TO_END and self.cursor == (0, 0)):
            self.clear()
            return
        self._settle_lines()
        self.erase_in_line(part)
        if part == _TO_END:
            self.settle()  # with rows above it, the screen would have to stay full
            del self._rows[self._row + 1 :]
            self._rows[self._row].is_wrapped = False
        elif part == _TO_START:
            for row in self._rows[self._top : self._row]:
                row.edit().clear()
                row.is_wrapped = False

    def erase_in_line(self, part: int) -> None:
        """Erase the row from the cursor on, up to the cursor, or all of it (EL 0, 1, 2)."""
        row = self._start_editing()
        is_at_start, is_at_end = self._column == 0, self._column >= self.columns - 1
        is_whole = (part == _TO_END and is_at_start) or (part == _TO_START and is_at_end)
        if is_whole or part == _ALL:
            row.is_wrapped = False
            self._end_line_above(self._row)
            row.edit().clear()
        elif part == _TO_END:
            row.erase(self._column, self.columns, self.columns)
        else:
            row.erase(0, self._column + 1, self.columns)

    def _end_line_above(self, index: int) -> None:
        if index:
            self._rows[index - 1].is_wrapped = False
        elif self._history is not None:
            self._history.end_begun()

    def erase_cells(self, count: int) -> None:
        """Erase cells from the cursor on (ECH)."""
        end = self._column + min(count, self.columns)
        self._start_editing().erase(self._column, end, self.columns)

    def delete_cells(self, count: int) -> None:
        """Delete cells from the cursor on (DCH)."""
        end = self._column + min(count, self.columns)
        self._start_editing().delete(self._column, end, self.columns)

    def insert_blanks(self, count: int) -> None:
        """Insert blanks at the cursor (ICH)."""
        count = min(count, self.columns)
        self._start_editing().insert_blanks(self._column, count, self.columns)

    def insert_rows(self, count: int) -> None:
        """Insert empty rows at the cursor's row (IL).

        Rows move off the end of the scroll region, or of the screen if the cursor is outside it.
        """
        row, end, count, moved = self._rows_to_edit(count)
        self._move_rows(end - moved, row, moved)
        if self._is_in_region(row):  # outside it, tmux leaves these rows
            self._empty_rows(row + moved, row + count)

    def delete_rows(self, count: int) -> None:
        """Delete rows from the cursor's row on; the rows below them move up (DL).

        The last row to move is that of the scroll region, or of the screen if the cursor is
        outside the region.
        """
        row, end, count, moved = self._rows_to_edit(count)
        self._move_rows(row, row + count, moved)
        self._empty_rows(row + moved, end)

    def _is_in_region(self, row: int) -> bool:
        first, last = self._region
        return first <= row <= last

    def _rows_to_edit(self, count: int) -> tuple[int, int, int, int]:
        """Return the cursor's row, the end of the rows to edit, the count, and how many move."""
        self._fill()
        row, _ = self.cursor
        end = self.height
        if self._is_in_region(row):
            end = self._region[1] + 1
        count = min(count, end - row)
        return row, end, count, end - row - count


def _without_blank_rows(rows: list[str]) -> list[str]:
    """Return rows without empty rows at the end."""
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _without_blank_end(lines: list[Line]) -> list[Line]:
    """Return lines without blank lines at the end. Other blank lines become empty."""
    while len(lines) > 1 and not lines[-1].text.strip(" "):
        lines.pop()
    if len(lines) == 1 and not lines[0].text:
        return []
    return [line if line.text.strip(" ") else EMPTY_LINE for line in lines]
