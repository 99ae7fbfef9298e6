"""A terminal by others, pyte, shows the recordings as we read them: a second judge beside tmux.

Where the two terminals differ by design, `Second` does as tmux does. Blank rows are left out, since
what they leave of a cleared screen differs, and so is what pyte doesn't know (`UNKNOWN`).
"""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from tmux_debug_mcp.vt.rows import Row, cell_width
from tmux_debug_mcp.vt.transcript import Transcript

pytest.importorskip("pyte", reason="pyte is not installed; ./dev test installs it")

import pyte
from pyte.screens import HistoryScreen

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.out"))
COLUMNS, ROWS = 200, 50
# Device control strings, private sequences other than those of DEC, and clearing the history, which
# we read on after.
UNKNOWN = re.compile(rb"\033P.*?\033\\|\033\[[<=>][^@-~]*[@-~]|\033\[3J", re.DOTALL)
# pyte draws no lines in UTF-8, and gives each character of an emoji sequence its own cell.
ONLY_WITH_TMUX = {"terminal-strings", "wide-characters"}
_ALTERNATE = {47, 1047, 1049}


class Second(HistoryScreen):  # type: ignore[misc]
    """A terminal of pyte's with an alternate screen, one saved cursor, and tmux's history."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, ROWS, history=1_000_000)
        self._main: tuple[Any, Any] | None = None

    def text(self) -> list[str]:
        """Return all rows that are not blank, without blanks at their ends."""
        rows = [*self.history.top, *(self.buffer[number] for number in range(ROWS))]
        texts = ["".join(row[column].data for column in range(COLUMNS)).rstrip() for row in rows]
        return [text for text in texts if text]

    def set_mode(self, *modes: int, private: bool = False, **_: Any) -> None:  # noqa: ANN401
        if private and _ALTERNATE & set(modes) and self._main is None:
            self._main = copy.deepcopy(self.buffer), copy.copy(self.cursor)
            super().erase_in_display(2)
        super().set_mode(*modes, private=private)

    def reset_mode(self, *modes: int, private: bool = False, **_: Any) -> None:  # noqa: ANN401
        if private and _ALTERNATE & set(modes) and self._main:
            rows, self.cursor = self._main
            self._main = None
            self.buffer.clear()
            self.buffer.update(rows)
        super().reset_mode(*modes, private=private)

    def index(self) -> None:
        if self._main is None:
            super().index()
        else:  # without the history
            super(HistoryScreen, self).index()

    def reset(self) -> None:
        if hasattr(self, "_main"):  # after __init__
            kept = self._kept()
            super().reset()
            self.history.top.extend(kept)
        else:
            super().reset()

    def erase_in_display(self, how: int = 0, *_: Any, **__: Any) -> None:  # noqa: ANN401
        is_all = how == 2 or (how == 0 and (self.cursor.x, self.cursor.y) == (0, 0))
        if is_all and self._main is None:
            self.history.top.extend(self._kept()[len(self.history.top) :])
        super().erase_in_display(how)

    def restore_cursor(self) -> None:
        if self.savepoints:
            self.savepoints.append(copy.deepcopy(self.savepoints[-1]))
        super().restore_cursor()

    def report_device_status(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
        """Answer nothing: a recording contains what followed from the answer."""

    report_device_attributes = report_device_status

    def _kept(self) -> list[Any]:
        """Return the history, with the rows of the screen behind it."""
        return [*self.history.top, *(copy.deepcopy(self.buffer[number]) for number in range(ROWS))]


def rows_of(line: str) -> list[str]:
    """Return the rows that a line takes on the screen."""
    row = Row(line)
    row.insert_blanks(0, 0, 1_000_000)  # what moves loses its tabs
    cells: list[str] = []
    for character in str(row):
        width = cell_width(character)
        if width == 0 and cells:
            cells[-1] += character
        else:
            if width == 2 and len(cells) % COLUMNS == COLUMNS - 1:
                cells.append(" ")
            cells += [character, *[""] * (width - 1)]
    return ["".join(cells[at : at + COLUMNS]).rstrip() for at in range(0, len(cells), COLUMNS)]


@pytest.mark.parametrize(
    "path", [path for path in CORPUS if path.stem not in ONLY_WITH_TMUX], ids=lambda path: path.stem
)
def test_recording_reads_as_another_terminal_shows_it(path: Path) -> None:
    data = UNKNOWN.sub(b"", path.read_bytes())
    second, transcript = Second(), Transcript(COLUMNS, ROWS)
    pyte.ByteStream(second).feed(data)
    transcript.feed(data)

    rows = [row for line in transcript.text().split("\n") for row in rows_of(line)]
    assert [row for row in rows if row] == second.text()
