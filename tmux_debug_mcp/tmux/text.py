"""Text into panes and out of them: the commands that paste it, and the last lines. No I/O.

Text that is typed goes through a buffer, not through send-keys: a pasted buffer reaches the program
even while a person has the pane in copy mode. The exception is a bracketed paste, which leaves that
mode first: in it, tmux asks the mode, not the program, whether it wants brackets.

Source: tmux(1), "BUFFERS", and experiments.
"""

from collections.abc import Awaitable, Callable

from .versions import CLEANS_PASTES, is_at_least

# Enough for most calls.
_FIRST_ROWS = 200
# tmux takes more for none, without an error. Source: cmd-capture-pane.c, INT_MIN.
_MAX_ROWS = (1 << 31) - 1
# No tool returns more text from a capture.
_MAX_CHARACTERS = 1 << 19


def paste_commands(
    target: str, buffer: str, load: tuple[str, ...], *, is_bracketed: bool, version: str
) -> list[tuple[str, ...]]:
    r"""Return the commands that load a buffer, paste it into a pane, and delete it.

    They fail if the pane is gone. A dead pane gets nothing: pasting there ends tmux 3.3. `load`
    is the command that loads the buffer, and `version` is tmux's. With `is_bracketed`, tmux puts
    the text in brackets (`\e[200~`) if the program asks for them.
    """
    flags = "-p" if is_bracketed else "-r"
    if is_at_least(version, CLEANS_PASTES):
        flags += " -S"
    paste = f"paste-buffer -d {flags} -b {buffer} -t {target}"
    delete = f"delete-buffer -b {buffer}"
    commands: list[tuple[str, ...]] = [
        # If its target is gone, if-shell does not fail: it takes the current pane instead.
        ("has-session", "-t", target),
        load,
    ]
    if is_bracketed:
        commands.append(("copy-mode", "-q", "-t", target))
    commands.append(("if-shell", "-F", "-t", target, "#{pane_dead}", delete, paste))
    return commands


async def capture_last_lines(
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
