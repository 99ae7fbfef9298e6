"""What a terminal shows of a stream of bytes, line by line. No I/O.

A line is *settled* once it has left the screen, or the screen was cleared: nothing can change it
any more. The rows that are still on the screen can be edited, as progress bars, prompts and menus
do.

Rules, measured against tmux:

1. Colours, titles and other sequences that show nothing are left out. Printed blanks and tabs stay.
   Letters of the line drawing set become the characters that a terminal shows for them.
2. A line that wraps at the width of the terminal is one line.
3. While the alternate screen is on, it is shown after the lines of the main screen. When it is
   switched off, it disappears; what it showed last is told among the settled lines. So is what was
   drawn on the main screen, if the transcript `separates_drawing`, since that is no line.
4. An incomplete end (part of a character or of a sequence, or a carriage return that may belong to
   a line feed) is held back until more bytes come. Only the beginning of a sequence that is too
   long is held; the rest is dropped as it comes. tmux also gives up on a string after 5 s, which
   bytes don't show; here a string ends at the next escape character at the latest.
5. Line editors, such as those of shells, switch bracketed paste on while they edit. This sets
   what they write apart from a program's output. If an editor ends in an empty row, the line above
   has ended, even if its last row is full; here tmux joins the two.
"""

from collections.abc import Iterable, Iterator

from .charsets import CharacterSets
from .interpreter import Interpreter
from .marks import BEGIN, with_command
from .rows import EMPTY_LINE, SCREEN_NOTE, Event, History, Line, annotated, text_of
from .sequences import CANCEL, MAX_HELD_BYTES, STRING, line_starts, unfinished
from .sizes import COLUMNS, ROWS

# The line that is typed for a command has at least this many characters. Marks that follow each
# other more closely are not ours, so we search for no typed line.
_MIN_TYPED_CHARACTERS = 40
# The line that was typed ends at most this many rows above the mark: a shell's hooks may print.
_MAX_TYPED_ROWS = 6


class Transcript:
    """The lines of a terminal's output, which is fed in pieces of any size.

    Attributes:
        size: The columns and rows of the terminal.
    """

    def __init__(
        self, columns: int = COLUMNS, rows: int = ROWS, *, separates_drawing: bool = False
    ) -> None:
        self.size = columns, rows
        self._history = History()
        self._interpreter = Interpreter(
            columns, rows, self._history, separates_drawing=separates_drawing
        )
        self._held = b""
        self._held_before = 0  # how many of the held bytes are from before what was to be shown
        self._characters_since_mark = 0

    @property
    def is_editing(self) -> bool:
        """A line editor is at work."""
        return self._interpreter.is_editing

    @property
    def held_bytes(self) -> int:
        """The number of bytes at the end of the input that are held back.

        0 in a sequence that is too long to be held: the input may be continued there.
        """
        if len(self._held) > MAX_HELD_BYTES:
            return 0
        return len(self._held) - self._held_before

    @property
    def is_drawn_on(self) -> bool:
        """Whether a program draws on the screen."""
        return self._interpreter.is_drawn_on

    @property
    def is_alternate(self) -> bool:
        """Whether the alternate screen is on."""
        return self._interpreter.alternate is not None

    @property
    def rows_before(self) -> list[str]:
        """The rows of the screen when the program began that draws on it."""
        return self._interpreter.rows_before

    def restore(
        self, *, sets: CharacterSets, is_editing: bool = False, sequence: bytes = b""
    ) -> None:
        """Set the state that earlier output left; it ended with this part of a sequence."""
        self._interpreter.sets = sets
        self._interpreter.is_editing = is_editing
        self._hold(sequence)
        self._held_before = len(self._held)

    def feed(self, data: bytes | bytearray, end: int | None = None) -> None:
        """Write the next bytes to the terminal; `end` is the cursor after them.

        With it, lines know where they begin.
        """
        data = self._held + data
        rest = unfinished(data)
        if len(rest) < len(data):
            self._held_before = 0
        self._hold(rest)
        written = data[: len(data) - len(rest)]
        starts = iter(() if end is None else line_starts(written, end - len(rest)))
        text = self._write_commands(written.decode(errors="replace"), starts)
        self._write(text, starts)

    def _hold(self, rest: bytes) -> None:
        """Hold back what is incomplete; if it is too long, a byte more than the maximum."""
        self._held = rest[: MAX_HELD_BYTES + 1]

    def _write_commands(self, text: str, starts: Iterator[int]) -> str:
        """Write text up to the last mark of a command's beginning; return the text after it."""
        position = 0
        for mark in BEGIN.finditer(text):
            self._write(text[position : mark.start()], starts)
            if self._characters_since_mark >= _MIN_TYPED_CHARACTERS:
                self._characters_since_mark = 0
                self._note_command(mark[1])
            position = mark.end()
        return text[position:]

    def _write(self, text: str, starts: Iterator[int]) -> None:
        self._characters_since_mark += len(text)
        if "\033" in text:
            text = STRING.sub(CANCEL, text)
        self._interpreter.write(text, starts)

    def _note_command(self, command: str) -> None:
        """Note the command in a mark with the nearest line that was typed for a command."""
        for rows in self._interpreter.grid.lines_above_cursor(_MAX_TYPED_ROWS):
            if with_command("".join(map(str, rows)), command) is not None:
                rows[0].command = command
                self._interpreter.grid.unmark_lines()
                return

    def expect_editor(self) -> None:
        """Note that keys are sent to a line editor now, which will echo them in its line."""
        self._interpreter.grid.mark_command()

    def keys_sent(self) -> None:
        """Note that keys are sent now: lines tell what was written since then."""
        self._interpreter.main.keys_sent()

    def line_begins_at(self) -> int | None:
        """Return where in the output the cursor's line begins, if it is the last and known."""
        return None if self.is_drawn_on else self._interpreter.main.line_begins_at()

    def end_lines(self) -> None:
        """Settle the lines of a screen that a program draws on."""
        if self.is_drawn_on:
            self._interpreter.main.end_lines()

    def take_drawing_for_lines(self) -> None:
        """Take what is drawn on the main screen from here on for lines."""
        self._interpreter.take_drawing_for_lines()

    def begin_alternate(self) -> None:
        """Switch to the alternate screen, unless it is on."""
        self._interpreter.switch_screen(is_alternate=True)

    def forget(self) -> None:
        """Hide everything fed so far. Later output keeps its place."""
        self._history.lines, self._history.begun = [], []
        self._held_before = len(self._held)
        terminal = self._interpreter
        terminal.main.forget(has_cursor=terminal.alternate is None)
        if terminal.alternate is not None:
            terminal.alternate.forget(has_cursor=True)

    def take_events(self) -> list[Event]:
        """Return what has been settled since the last call: lines, and what was drawn."""
        return self._history.take()

    def take_settled(self, *, is_annotated: bool = False) -> list[Line]:
        """Return the lines that have been settled since the last call."""
        return _lines(self._history.take(), is_annotated=is_annotated)

    def text(self, *, is_annotated: bool = False) -> str:
        """Return all lines since the start or the last call of `take_settled`.

        They are joined by line feeds.
        """
        settled = _lines(self._history.lines, is_annotated=is_annotated)
        return text_of([*settled, *self.open_lines(is_annotated=is_annotated)])[:-1]

    def rows(self) -> list[str]:
        """Return the rows of the screen, without trailing blanks and trailing empty rows."""
        return self._interpreter.grid.rows()

    def unfinished(self) -> list[str]:
        """Return the text of what may still change, where no program draws on the screen.

        It is the unfinished line; the rows that output went back up to, as spinners of several
        lines do; and rows that don't scroll.
        """
        return self._interpreter.grid.unfinished()

    def main_lines(self) -> list[Line]:
        """Return the lines of the main screen that are not settled."""
        return self._interpreter.main.lines()

    def open_lines(self, *, is_annotated: bool = False) -> list[Line]:
        """Return the lines that are not settled. The last is incomplete and may be empty."""
        lines = self.main_lines()
        if self._interpreter.alternate is not None:
            if lines and not lines[-1].text:
                lines.pop()  # the cursor's line when the screen was switched
            shown = self._interpreter.alternate.shown_lines()
            lines += [SCREEN_NOTE] * (is_annotated and bool(shown)) + shown
            if not shown or shown[-1].text:
                lines.append(EMPTY_LINE)  # what follows the alternate screen begins a line
        return list(annotated(lines)) if is_annotated else lines


def _lines(events: Iterable[Event], *, is_annotated: bool) -> list[Line]:
    if is_annotated:
        return list(annotated(events))
    return [event for event in events if isinstance(event, Line)]
