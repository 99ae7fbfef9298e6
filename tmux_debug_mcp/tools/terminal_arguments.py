"""The arguments of the tools of `terminal`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS

from .arguments import Cwd, Env, Name, Text
from .schema import Named, Rules

DEFAULT = "default"

_Session = Annotated[Text, Rules(description="Session name (default: default)")]
_Columns = Annotated[int, Rules(minimum=2, maximum=MAX_COLUMNS)]
_Rows = Annotated[int, Rules(minimum=2, maximum=MAX_ROWS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeText:
    """Arguments of type."""

    text: Annotated[Text, Rules(description="Text to type")]
    session: _Session = DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class SendKey:
    """Arguments of sendKey."""

    key: Annotated[Text, Rules(description="Key name, e.g. Ctrl+C")]
    session: _Session = DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class GetContent:
    """Arguments of getContent."""

    visible_only: Annotated[
        bool, Named("visibleOnly"), Rules(description="Only the visible screen (default false)")
    ] = False
    session: _Session = DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeScreenshot:
    """Arguments of takeScreenshot."""

    format: Annotated[Literal["text", "png"], Rules(description="png adds a picture (default text)")] = "text"
    session: _Session = DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSession:
    """Arguments of a tool that takes a session alone."""

    session: _Session = DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Arguments of resize."""

    cols: _Columns
    rows: _Rows
    session: _Session = DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession:
    """Arguments of createSession."""

    name: Name
    cols: Annotated[_Columns | None, Rules(description="Width (default 120, or as configured)")] = None
    rows: Annotated[_Rows | None, Rules(description="Height (default 40, or as configured)")] = None
    cwd: Cwd | None = None
    env: Env | None = None
    command: Annotated[Text | None, Rules(description="Command to run instead of a shell")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecording:
    """Arguments of startRecording."""

    path: Annotated[Text | None, Rules(description="New file (default: a name of its own)")] = None
    session: _Session = DEFAULT
