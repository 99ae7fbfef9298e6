"""The arguments of the tools of `tmux`."""

from typing import Any, Literal

from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS

from .limits import MAX_TEXT_LINES
from .schema import argument, arguments, short_name, string


def _pane() -> Any:  # noqa: ANN401  as `argument`
    return string("Pane: %3 or session:window.pane")


def _window() -> Any:  # noqa: ANN401
    return string("Window: @1 or session:window")


def _command() -> Any:  # noqa: ANN401
    return string("Command to run instead of a shell", default=None)


@arguments
class CreateSession:
    """Arguments of tmux_create_session."""

    name: str = short_name("Name for the session")
    command: str | None = _command()
    window_name: str | None = short_name("Name for its window", default=None)


@arguments
class RenameSession:
    """Arguments of tmux_rename_session."""

    old_name: str = string("Session: name or $0")
    new_name: str = short_name("New name")


@arguments
class Kill:
    """Arguments of tmux_kill."""

    target: str = string("Target of that type")
    kind: Literal["session", "window", "pane"] = argument(
        "What to end (default pane)", called="type", default="pane"
    )


@arguments
class ListWindows:
    """Arguments of tmux_list_windows."""

    session: str | None = string("Only those of this session", default=None)


@arguments
class CreateWindow:
    """Arguments of tmux_create_window."""

    session: str = string("Session: name or $0")
    name: str | None = short_name("Name for the window", default=None)
    command: str | None = _command()


@arguments
class SelectWindow:
    """Arguments of tmux_select_window."""

    target: str = _window()


@arguments
class RenameWindow:
    """Arguments of tmux_rename_window."""

    target: str = _window()
    new_name: str = short_name("New name")


@arguments
class ListPanes:
    """Arguments of tmux_list_panes."""

    target: str | None = string("Only those of this session or window", default=None)


@arguments
class SplitWindow:
    """Arguments of tmux_split_window."""

    target: str = string("Pane or window to split")
    horizontal: bool = argument(
        "Divide by a horizontal line, top and bottom (default false: left and right)", default=False
    )
    size: str | None = argument(
        "Size of the new pane: '50%', or lines or columns '20'", default=None
    )
    command: str | None = _command()


@arguments
class SelectPane:
    """Arguments of tmux_select_pane."""

    target: str = _pane()


@arguments
class ResizePane:
    """Arguments of tmux_resize_pane."""

    target: str = _pane()
    direction: Literal["up", "down", "left", "right"] | None = argument(
        "Direction to grow", default=None
    )
    amount: int = argument(
        "Cells to grow by (default 5)", default=5, minimum=1, maximum=MAX_COLUMNS
    )
    width: int | None = argument(
        "Columns to have, instead", default=None, minimum=1, maximum=MAX_COLUMNS
    )
    height: int | None = argument(
        "Rows to have, instead", default=None, minimum=1, maximum=MAX_ROWS
    )


@arguments
class SendKeys:
    """Arguments of tmux_send_keys."""

    target: str = _pane()
    keys: str = argument("Text to type, or keys to press")
    literal: bool = argument(
        "Type exactly this, key names too; a line feed is Enter", default=False
    )


@arguments
class ReadPane:
    """Arguments of tmux_read_pane."""

    target: str = _pane()
    line_count: int | None = argument(f"How many (max {MAX_TEXT_LINES})", default=None, minimum=1)
    start_line: int | None = argument(
        "First line: 0 is the top of the screen, -1 the last of the history", default=None
    )
