"""Captures of what a pane's terminal shows, and of its history.

They come in files: text that programs choose is nothing for control mode.
"""

import secrets
from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import anyio.to_thread

from tmux_debug_mcp.errors import CommandError, StorageError
from tmux_debug_mcp.tmux.captures import first_rows, is_enough, more_rows
from tmux_debug_mcp.tmux.client import Command
from tmux_debug_mcp.vt.marks import with_commands
from tmux_debug_mcp.vt.screen import Screen, captured_cells, captured_lines, row_alone, with_line_drawing

from .pane import Pane

# From this version on tmux joins emoji and what makes others of them.
_WIDENS_EMOJI = (3, 4)

_FACTS = (
    *("alternate_on", "history_size", "pane_width", "pane_height", "cursor_x", "cursor_y", "cursor_flag"),
    *("scroll_region_upper", "scroll_region_lower", "origin_flag", "insert_flag", "wrap_flag"),
)
# Modes of a terminal: what they are in a new one, and what changes them.
_MODES = (("insert_flag", 0, "\033[4h"), ("wrap_flag", 1, "\033[?7l"), ("cursor_flag", 1, "\033[?25l"))


async def capture(pane: Pane, lines: int, *, ansi: bool = False) -> str:
    r"""Return the last lines of the screen and its history, or of the alternate screen alone.

    Args:
        pane: The pane.
        lines: At most how many logical lines; a line that the terminal wrapped is one.
        ansi: Keep colours and attributes as escape sequences.

    Returns:
        The lines joined by `\n`, without blanks at their ends and without blank lines at the end.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-J", "-e"]
    rows = first_rows(lines)
    while True:
        captured, facts = await _captured(pane, [*words, "-S", f"-{rows}"], words)
        found = captured_lines(captured, ansi=ansi)
        if rows >= facts["history_size"] or is_enough(found, lines):
            return with_commands("\n".join(found[-lines:]), pane.shell.commands)
        rows = more_rows(rows, lines)


async def capture_screen(pane: Pane) -> Screen:
    """Return what the terminal shows: cells, with their colours and attributes, and the cursor.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-e", "-N"]
    captured, facts = await _captured(pane, words, words)
    columns, height = facts["pane_width"], facts["pane_height"]
    cursor = min(facts["cursor_x"], columns - 1), facts["cursor_y"]
    parse = partial(captured_cells, captured, widens_emoji=pane.client.is_at_least(_WIDENS_EMOJI))
    rows = await anyio.to_thread.run_sync(parse)  # of 100,000 cells, while others are served
    return Screen(columns, height, cursor, bool(facts["cursor_flag"]), rows)


async def capture_screen_rows(pane: Pane) -> tuple[list[str], bool]:
    """Return the rows that the terminal shows, without blanks, and whether these are the alternate screen's.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-J", "-e"]  # joined, as captures are
    captured, facts = await _captured(pane, words, words)
    text = with_commands("\n".join(captured_lines(captured)), pane.shell.commands)
    return text.split("\n"), bool(facts["alternate_on"])


async def capture_rows(pane: Pane, start: int, end: int) -> str:
    """Return rows of the screen and its history as they are shown, without blanks at their ends.

    Args:
        pane: The pane.
        start: The first row: 0 is the screen's first, -1 the last of the history.
        end: The last row.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-e", "-S", str(start), "-E", str(end)]
    captured, _ = await _captured(pane, words, words)
    return with_commands("\n".join(captured_lines(captured)), pane.shell.commands)


async def capture_screen_as_text(pane: Pane) -> str:
    """Return what a terminal that is new has to be sent to show the same, and go on in the same way.

    What tmux does not tell is missing: the colours and attributes of what is printed next, tabs and what is saved.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-e", "-N"]
    captured, facts = await _captured(pane, words, words)
    text = with_line_drawing(captured.decode(errors="replace")).removesuffix("\n")
    before = "\033[?1049h" if facts["alternate_on"] else ""
    after = _state(facts, text.split("\n"))
    return before + "\033[H" + text.rstrip("\n").replace("\n", "\r\n") + "\033[0m" + after


def _state(facts: Mapping[str, int], rows: Sequence[str]) -> str:
    """Return what brings a terminal that shows these rows to the same state."""
    columns, x, y = facts["pane_width"], facts["cursor_x"], facts["cursor_y"]
    first, last = facts["scroll_region_upper"], facts["scroll_region_lower"]
    text = f"\033[{first + 1};{last + 1}r" if (first, last) != (0, facts["pane_height"] - 1) else ""
    if facts["origin_flag"]:
        text += "\033[?6h"
        y -= first
    text += f"\033[{y + 1};{min(x, columns - 1) + 1}H"
    if x >= columns:
        # The cursor is behind the last column, where only printing there brings it.
        text += "\r" + row_alone(rows, facts["cursor_y"], columns)
    return text + "".join(sequence for name, usual, sequence in _MODES if facts[name] != usual)


async def _captured(pane: Pane, words: Command, alternate_words: Command) -> tuple[bytes, dict[str, int]]:
    """Return a capture, and the facts of the same moment.

    Args:
        pane: The pane.
        words: The command.
        alternate_words: The command for the alternate screen, which has no history.
    """
    buffer = f"capture-{secrets.token_hex(8)}"
    target = ("-b", buffer, "-t", pane.target)
    facts = ("display-message", "-p", "-t", pane.target, " ".join(f"#{{{name}}}" for name in _FACTS))
    size = ("list-buffers", "-F", "#{buffer_size}", "-f", f"#{{==:#{{buffer_name}},{buffer}}}")
    data = b""
    with anyio.CancelScope(shield=True):  # else a buffer could stay behind in tmux
        [[line], _, sizes] = await pane.tmux(facts, (*words, *target), size)
        values = dict(zip(_FACTS, map(int, line.split()), strict=True))
        if values["alternate_on"] and words != alternate_words:
            # As before, in case that the program has left it meanwhile: then this is an empty history.
            [_, sizes] = await pane.tmux((*alternate_words, *target), size)
            values["history_size"] = 0
        if sizes:
            data = await _buffer(pane, buffer, int(sizes[0]))
    return data, values


async def _buffer(pane: Pane, buffer: str, size: int) -> bytes:
    """Return a buffer of tmux and delete it."""
    file = pane.client.file(buffer)
    try:
        await pane.tmux(("save-buffer", "-b", buffer, str(file)))
        data = file.read_bytes()
    except (CommandError, OSError) as error:
        raise StorageError(str(file.parent), str(error)) from error
    finally:
        file.unlink(missing_ok=True)
        await pane.tmux(("delete-buffer", "-b", buffer))
    if len(data) != size:
        # tmux does not look whether all was written.
        raise StorageError(str(file.parent), f"{len(data)} of {size} bytes written")
    return data
