"""The arguments of the tools of `tmux`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS

from .arguments import Name, Text
from .schema import Named, Rules

_Pane = Annotated[Text, Rules(description="Pane: %3 or session:window.pane")]
_Window = Annotated[Text, Rules(description="Window: @1 or session:window")]
_Session = Annotated[Text, Rules(description="Session: name or $0")]
_NewName = Annotated[Name, Rules(description="New name")]
_Command = Annotated[Text | None, Rules(description="Command to run instead of a shell")]
_Columns = Annotated[int, Rules(minimum=1, maximum=MAX_COLUMNS)]
_Rows = Annotated[int, Rules(minimum=1, maximum=MAX_ROWS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession:
    """Arguments of tmux_create_session."""

    name: Annotated[Name, Rules(description="Name for the session")]
    command: _Command = None
    window_name: Annotated[Name | None, Rules(description="Name for its window")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameSession:
    """Arguments of tmux_rename_session."""

    old_name: _Session
    new_name: _NewName


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Arguments of tmux_kill."""

    target: Annotated[Text, Rules(description="Target of that type")]
    kind: Annotated[
        Literal["session", "window", "pane"], Named("type"), Rules(description="What to end (default pane)")
    ] = "pane"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWindows:
    """Arguments of tmux_list_windows."""

    session: Annotated[_Session | None, Rules(description="Only those of this session")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWindow:
    """Arguments of tmux_create_window."""

    session: _Session
    name: Annotated[Name | None, Rules(description="Name for the window")] = None
    command: _Command = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectWindow:
    """Arguments of tmux_select_window."""

    target: _Window


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameWindow:
    """Arguments of tmux_rename_window."""

    target: _Window
    new_name: _NewName


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPanes:
    """Arguments of tmux_list_panes."""

    target: Annotated[Text | None, Rules(description="Only those of this session or window")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitWindow:
    """Arguments of tmux_split_window."""

    target: Annotated[Text, Rules(description="Pane or window to split")]
    horizontal: Annotated[
        bool,
        Rules(description="Divide by a horizontal line, top and bottom (default false: left and right)"),
    ] = False
    size: Annotated[str | None, Rules(description="Size of the new pane: '50%', or lines or columns '20'")] = None
    command: _Command = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectPane:
    """Arguments of tmux_select_pane."""

    target: _Pane


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizePane:
    """Arguments of tmux_resize_pane."""

    target: _Pane
    direction: Annotated[Literal["up", "down", "left", "right"] | None, Rules(description="Direction to grow")] = None
    amount: Annotated[_Columns, Rules(description="Cells to grow by (default 5)")] = 5
    width: Annotated[_Columns | None, Rules(description="Columns to have, instead")] = None
    height: Annotated[_Rows | None, Rules(description="Rows to have, instead")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendKeys:
    """Arguments of tmux_send_keys."""

    target: _Pane
    keys: Annotated[str, Rules(description="Text to type, or keys to press")]
    literal: Annotated[bool, Rules(description="Type exactly this, key names too; a line feed is Enter")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPane:
    """Arguments of tmux_read_pane."""

    target: _Pane
    line_count: Annotated[int | None, Rules(minimum=1, description="How many (max 1000)")] = None
    start_line: Annotated[
        int | None,
        Rules(description="First line: 0 is the top of the screen, -1 the last of the history"),
    ] = None
