"""Captures of what a pane's terminal shows, and of its history.

tmux writes a capture into memory of ours, since a program's text in control mode could pass for
tmux's lines.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import anyio.to_thread

from tmux_debug_mcp.errors import CommandError, StorageError
from tmux_debug_mcp.pictures.screen import DrawnScreen, captured_cells
from tmux_debug_mcp.tmux.text import capture_last_lines
from tmux_debug_mcp.tmux.versions import WIDENS_EMOJI, is_at_least
from tmux_debug_mcp.turns import in_turns
from tmux_debug_mcp.vt.captured import (
    ScreenRows,
    captured_lines,
    highlighted_row,
    row_alone,
    with_line_drawing,
)
from tmux_debug_mcp.vt.marks import with_commands

from .pane import Pane

# The options of capture-pane, tmux(1): -e keeps colours and attributes, -J joins wrapped lines,
# -N keeps blanks at the ends of rows.
_JOINED_LINES = ("capture-pane", "-J", "-e")
_ROWS = ("capture-pane", "-e")
_WHOLE_ROWS = ("capture-pane", "-e", "-N")

# The formats that each capture asks for; all are numbers. Source: tmux(1), FORMATS.
_FACTS = (
    *("alternate_on", "history_size", "pane_width", "pane_height"),
    *("cursor_x", "cursor_y", "cursor_flag"),
    *("scroll_region_upper", "scroll_region_lower", "origin_flag", "insert_flag", "wrap_flag"),
)

# Modes of a terminal by their formats: the value in a new terminal, and the sequence that sets the
# other value: IRM, DECAWM and DECTCEM. Source: ECMA-48, xterm control sequences.
_MODES = (
    ("insert_flag", 0, "\033[4h"),
    ("wrap_flag", 1, "\033[?7l"),
    ("cursor_flag", 1, "\033[?25l"),
)
_ALTERNATE_SCREEN = "\033[?1049h"
_ORIGIN_MODE = "\033[?6h"
_HOME = "\033[H"
_NO_ATTRIBUTES = "\033[0m"


async def capture(pane: Pane, lines: int, *, ansi: bool = False) -> str:
    """Return the last lines of the screen and its history, or of the alternate screen alone.

    A line that the terminal wrapped counts as one. Lines are joined by line feeds, without trailing
    blanks or blank lines at the end. With `ansi`, escape sequences keep colours and attributes.
    """

    async def captured(rows: int) -> tuple[list[str], bool]:
        with_history = (*_JOINED_LINES, "-S", f"-{rows}")
        data, facts = await _capture(pane, with_history, _JOINED_LINES)
        return await in_turns(captured_lines(data, ansi=ansi)), rows >= facts["history_size"]

    return with_commands(await capture_last_lines(captured, lines), pane.jobs.commands)


async def capture_screen(pane: Pane) -> DrawnScreen:
    """Return the screen: its cells with their colours and attributes, and the cursor."""
    data, facts = await _capture(pane, _WHOLE_ROWS)
    columns = facts["pane_width"]
    # A cursor past the last column is drawn on it.
    x = min(facts["cursor_x"], columns - 1)
    widens_emoji = is_at_least(pane.client.version, WIDENS_EMOJI)
    # In a thread, since 100,000 cells take a while.
    parse = partial(captured_cells, data, widens_emoji=widens_emoji)
    cells = await anyio.to_thread.run_sync(parse)
    cursor = (x, facts["cursor_y"])
    return DrawnScreen(columns, facts["pane_height"], cursor, bool(facts["cursor_flag"]), cells)


async def capture_screen_rows(pane: Pane, *, finds_highlight: bool = False) -> ScreenRows:
    """Return the rows of the screen. The highlighted row is found only if asked for.

    Raises:
        PaneLostError: The pane is gone.
    """
    data, facts = await _capture(pane, _ROWS)
    text = "\n".join(await in_turns(captured_lines(data)))
    rows = with_commands(text, pane.jobs.commands).split("\n")
    size = facts["pane_width"], facts["pane_height"]
    highlighted = None
    if finds_highlight:
        highlighted = await in_turns(highlighted_row(data, facts["pane_height"]))
    cursor = facts["cursor_x"], facts["cursor_y"]
    return ScreenRows(rows, size, bool(facts["alternate_on"]), highlighted, cursor)


async def capture_rows(pane: Pane, start: int, end: int, *, ansi: bool = False) -> str:
    """Return rows of the screen and its history, without trailing blanks.

    Row 0 is the screen's first, row -1 the last of the history; `end` is the last row returned.
    With `ansi`, escape sequences keep colours and attributes.
    """
    data, _ = await _capture(pane, (*_ROWS, "-S", str(start), "-E", str(end)))
    lines = await in_turns(captured_lines(data, ansi=ansi))
    return with_commands("\n".join(lines), pane.jobs.commands)


async def capture_screen_as_text(pane: Pane) -> str:
    """Return the text that makes a new terminal show the same screen and behave the same.

    What tmux does not reveal is missing: the colours and attributes of the next output, tab stops,
    and the saved cursor.
    """
    data, facts = await _capture(pane, _WHOLE_ROWS)
    text = with_line_drawing(data.decode(errors="replace")).removesuffix("\n")
    rows = text.split("\n")
    screen = text.rstrip("\n").replace("\n", "\r\n")
    before = _HOME
    if facts["alternate_on"]:
        before = _ALTERNATE_SCREEN + _HOME
    return before + screen + _NO_ATTRIBUTES + _sequences_for_state(facts, rows)


def _sequences_for_state(facts: Mapping[str, int], rows: Sequence[str]) -> str:
    """Return the sequences that set the margins, cursor and modes of a terminal with these rows."""
    columns, x, y = facts["pane_width"], facts["cursor_x"], facts["cursor_y"]
    top, bottom = facts["scroll_region_upper"], facts["scroll_region_lower"]
    text = ""
    if (top, bottom) != (0, facts["pane_height"] - 1):
        text += f"\033[{top + 1};{bottom + 1}r"
    if facts["origin_flag"]:
        # Rows count from the upper margin then.
        text += _ORIGIN_MODE
        y -= top
    text += f"\033[{y + 1};{min(x, columns - 1) + 1}H"
    if x >= columns:
        # Only printing in the last column puts the cursor past it.
        text += "\r" + row_alone(rows, facts["cursor_y"], columns)
    for name, initial, sequence in _MODES:
        if facts[name] != initial:
            text += sequence
    return text


async def _capture(
    pane: Pane, command: Sequence[str], alternate_command: Sequence[str] | None = None
) -> tuple[bytes, dict[str, int]]:
    """Return a capture, and the facts of the same moment.

    `alternate_command` is for the alternate screen, which has no history.
    """
    buffer = f"capture-{secrets.token_hex(8)}"
    formats = " ".join(f"#{{{name}}}" for name in _FACTS)
    ask_facts = ("display-message", "-p", "-t", pane.target, formats)
    into_buffer = ("-b", buffer, "-t", pane.target)
    take = (*command, *into_buffer)
    if alternate_command:
        choice = " ".join((*alternate_command, *into_buffer)), " ".join(take)
        take = ("if-shell", "-F", "-t", pane.target, "#{alternate_on}", *choice)
    is_buffer = f"#{{==:#{{buffer_name}},{buffer}}}"
    ask_size = ("list-buffers", "-F", "#{buffer_size}", "-f", is_buffer)
    delete = ("delete-buffer", "-b", buffer)
    # Shielded, since tmux still writes into the memory of a cancelled call.
    with anyio.CancelScope(shield=True), pane.client.memory() as (file, path):
        save = ("save-buffer", "-b", buffer, path)
        try:
            blocks = await pane.tmux(ask_facts, take, ask_size, save, delete)
            [line], [size] = blocks[0], blocks[-3]
        except CommandError as error:
            if error.tmux_command != save[0]:
                raise
            [[line], sizes] = await pane.tmux(ask_facts, ask_size)
            if sizes:
                await pane.tmux(delete)
                raise StorageError(path, str(error)) from error
            size = b"0"  # tmux makes no buffer for an empty capture
        data = os.pread(file, int(size) + 1, 0)
    # tmux does not check whether everything was written.
    if len(data) != int(size):
        raise StorageError(path, f"{len(data)} of {int(size)} bytes written")
    facts = dict(zip(_FACTS, map(int, line.split()), strict=True))
    if facts["alternate_on"] and alternate_command:
        facts["history_size"] = 0
    return data, facts
