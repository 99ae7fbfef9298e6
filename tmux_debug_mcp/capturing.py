"""Captures of what a pane's terminal shows, and of its history.

They come in files: text that programs choose is nothing for control mode.
"""

import secrets

import anyio

from .client import Command
from .errors import CommandError, StorageError
from .panes import Pane
from .screen import Screen, captured_cells, captured_lines, with_line_drawing

# From this version on tmux joins emoji and what makes others of them.
_WIDENS_EMOJI = (3, 4)

_FACTS = ("alternate_on", "history_size", "pane_width", "pane_height", "cursor_x", "cursor_y", "cursor_flag")


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
    words = ["capture-pane", "-J", *(["-e"] if ansi else [])]
    # The first row may be the rest of a longer line. So one line more, or all there is.
    rows = lines + 1
    while True:
        captured, [_, history_rows, *_] = await _captured(pane, [*words, "-S", f"-{rows}"], words)
        found = captured_lines(captured)
        if len(found) > lines or rows >= history_rows:
            return "\n".join(found[-lines:])
        rows *= 4


async def capture_screen(pane: Pane) -> Screen:
    """Return what the terminal shows: cells, with their colours and attributes, and the cursor.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-e", "-N"]
    captured, facts = await _captured(pane, words, words)
    columns, height, x, y, is_cursor_shown = facts[2:]
    rows = captured_cells(captured, widens_emoji=pane.client.is_at_least(_WIDENS_EMOJI))
    return Screen(columns, height, (min(x, columns - 1), y), bool(is_cursor_shown), rows)


async def capture_rows(pane: Pane, start: int, end: int | None) -> str:
    """Return rows of the screen and its history as they are shown, without blanks at their ends.

    Args:
        pane: The pane.
        start: The first row: 0 is the screen's first, -1 the last of the history.
        end: The last row, or None for the screen's last.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-S", str(start), *(["-E", str(end)] if end is not None else [])]
    captured, _ = await _captured(pane, words, words)
    return "\n".join(captured_lines(captured))


async def capture_screen_as_text(pane: Pane) -> str:
    """Return what a terminal that is new has to be sent to show the same.

    Raises:
        PaneLostError: The pane is gone.
        StorageError: There is no room for the capture.
    """
    words = ["capture-pane", "-e", "-N"]
    captured, facts = await _captured(pane, words, words)
    is_alternate, x, y, is_cursor_shown = facts[0], facts[4], facts[5], facts[6]
    text = with_line_drawing(captured.decode(errors="replace")).rstrip("\n").replace("\n", "\r\n")
    before = "\033[?1049h" if is_alternate else ""
    after = f"\033[0m\033[{y + 1};{x + 1}H" + ("" if is_cursor_shown else "\033[?25l")
    return f"{before}\033[H{text}{after}"


async def _captured(pane: Pane, words: Command, alternate_words: Command) -> tuple[bytes, list[int]]:
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
        numbers = [int(word) for word in line.split()]
        if numbers[0] and words != alternate_words:
            # As before, in case that the program has left it meanwhile: then this is an empty history.
            [_, sizes] = await pane.tmux((*alternate_words, *target), size)
            numbers[1] = 0
        if sizes:
            data = await _buffer(pane, buffer, int(sizes[0]))
    return data, numbers


async def _buffer(pane: Pane, buffer: str, size: int) -> bytes:
    """Return a buffer of tmux and delete it."""
    file = pane.client.directory / buffer
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
