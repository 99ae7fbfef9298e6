"""What a terminal shows of a stream of bytes, line by line. No I/O.

A line is *settled* once it has left the screen, or the screen was cleared: nothing can change it
any more. The rows that are still on the screen can be edited, as progress bars, prompts and menus
do.

Rules, measured against tmux:

1. Colours, titles and other sequences that show nothing are left out. Printed blanks and tabs stay.
   Letters of the line drawing set become the characters that a terminal shows for them.
2. A line that wraps at the width of the terminal is one line.
3. While the alternate screen is on, it is shown after the lines of the main screen. When it is
   switched off, it disappears, unless the transcript `keeps_screens`: then its last state stays
   there, after a note.
4. An incomplete end (part of a character or of a sequence, or a carriage return that may belong to
   a line feed) is held back until more bytes come. Only the beginning of a sequence that is too
   long is held; the rest is dropped as it comes. tmux also gives up on a string after 5 s, which
   bytes don't show; here a string ends at the next escape character at the latest.
5. Line editors, such as those of shells, switch bracketed paste on while they edit. This sets
   what they write apart from a program's output. If one ends in an empty row, the line above has
   ended, even if its last row is full; here tmux joins the two.
"""

from .charsets import CharacterSets
from .interpreter import Interpreter
from .marks import BEGIN, with_command
from .rows import History, Line, text_of
from .sequences import CANCEL, MAX_HELD_BYTES, STRING, unfinished
from .sizes import COLUMNS, ROWS

# The line that is typed for a command has at least this many characters. Marks that follow each
# other more closely are not ours, so we search for no typed line.
_MIN_TYPED_CHARACTERS = 40
# The line that was typed ends at most this many rows above the mark: a shell's hooks may print.
_MAX_TYPED_ROWS = 6


class Transcript:
    """The lines of a terminal's output, which is fed in pieces of any size.

    Once it `shows_commands`, each command that a shell is given replaces the line that was typed
    for it.
    """

    def __init__(self, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.shows_commands = False
        self._history = History()
        self._interpreter = Interpreter(columns, rows, self._history)
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
    def keeps_screens(self) -> bool:
        """Whether what the alternate screen showed last stays, after a note."""
        return self._interpreter.keeps_screens

    @keeps_screens.setter
    def keeps_screens(self, keeps: bool) -> None:
        self._interpreter.keeps_screens = keeps

    def restore(
        self, *, sets: CharacterSets, is_editing: bool = False, sequence: bytes = b""
    ) -> None:
        """Set the state that earlier output left; it ended with this part of a sequence."""
        self._interpreter.sets = sets
        self._interpreter.is_editing = is_editing
        self._hold(sequence)
        self._held_before = len(self._held)

    def feed(self, data: bytes | bytearray) -> None:
        """Write the next bytes to the terminal."""
        data = self._held + data
        rest = unfinished(data)
        if len(rest) < len(data):
            self._held_before = 0
        self._hold(rest)
        text = data[: len(data) - len(rest)].decode(errors="replace")
        if self.shows_commands:
            text = self._write_commands(text)
        self._write(text)

    def mark_line(self, cursor: int) -> None:
        """Note that what was fed ends at this cursor. If a line begins there, it will say so."""
        if not self._held:
            self._interpreter.mark_line(cursor)

    def _hold(self, rest: bytes) -> None:
        """Hold back what is incomplete; if it is too long, one byte more than the maximum."""
        self._held = rest[: MAX_HELD_BYTES + 1]

    def _write_commands(self, text: str) -> str:
        """Write text up to the last mark of a command's beginning; return the text after it."""
        position = 0
        for mark in BEGIN.finditer(text):
            self._write(text[position : mark.start()])
            if self._characters_since_mark >= _MIN_TYPED_CHARACTERS:
                self._characters_since_mark = 0
                self._show_command(mark[1])
            position = mark.end()
        return text[position:]

    def _write(self, text: str) -> None:
        self._characters_since_mark += len(text)
        if "\033" in text:
            text = STRING.sub(CANCEL, text)
        self._interpreter.write(text)

    def _show_command(self, command: str) -> None:
        """Replace the nearest line that was typed for a command with the one in its mark."""
        for rows in self._interpreter.grid.lines_above_cursor(_MAX_TYPED_ROWS):
            line = with_command("".join(map(str, rows)), command)
            if line is None:
                continue
            # The line keeps its number of rows, so that the screen does not move.
            first, *others = rows
            first.replace(line)
            for row in others:
                row.replace("")
            self._interpreter.grid.unmark_lines()
            return

    def keys_sent(self) -> None:
        """Note that keys are sent to a line editor now, which will echo them in its line."""
        self._interpreter.grid.mark_command()

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

    def take_settled(self) -> list[Line]:
        """Return the lines that have been settled since the last call."""
        return self._history.take()

    def text(self) -> str:
        """Return all lines since the start or the last `take_settled`, joined by line feeds."""
        lines = [*self._history.lines, *self.open_lines()]
        return text_of(lines)[:-1]

    def screen(self) -> str:
        """Return the rows of the screen, without trailing blanks and trailing empty rows."""
        return self._interpreter.grid.text()

    def main_lines(self) -> list[Line]:
        """Return the lines of the main screen that are not settled."""
        return self._interpreter.main.lines()

    def open_lines(self) -> list[Line]:
        """Return the lines that are not settled. The last one is incomplete and may be empty."""
        lines = self.main_lines()
        if self._interpreter.alternate is None:
            return lines
        if lines and not lines[-1].text:
            lines.pop()  # the cursor's line when the screen was switched
        shown = self._interpreter.screen_lines()
        if shown and shown[-1].text:
            shown.append(Line(""))  # what follows the alternate screen begins a line
        return lines + shown
