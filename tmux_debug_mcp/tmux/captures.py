"""The last logical lines of a terminal's history and screen. No I/O."""

from collections.abc import Awaitable, Callable

# Enough for most calls.
_FIRST_ROWS = 200
# tmux takes more for none, without an error. Source: cmd-capture-pane.c, INT_MIN.
_MAX_ROWS = (1 << 31) - 1
# No tool returns more text from a capture.
_MAX_CHARACTERS = 1 << 19


async def last_lines(
    capture: Callable[[int], Awaitable[tuple[list[str], bool]]], lines: int
) -> str:
    """Return the last lines, joined by line feeds.

    capture-pane -S counts rows, but with -J it prints logical lines, and a wrapped line takes
    several rows. So we capture more rows until they contain the wanted lines whole, or more text
    than any tool returns.

    `capture` takes a number of rows of history to capture with the screen. It returns the logical
    lines, and whether there are no more.
    """
    # One more than wanted: the first row may be the end of a longer line.
    rows = min(lines, _FIRST_ROWS) + 1
    while True:
        captured, is_all = await capture(min(rows, _MAX_ROWS))
        if is_all or len(captured) > lines or sum(map(len, captured)) > _MAX_CHARACTERS:
            return "\n".join(captured[-lines:])
        rows = rows * 4 if rows > lines else lines + 1
