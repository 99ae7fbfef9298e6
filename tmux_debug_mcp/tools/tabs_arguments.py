"""The arguments of the tools of `tabs`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tmux_debug_mcp.tmux.host import MAX_HISTORY_LINES

from .arguments import Cwd, Env, Name, Text
from .schema import Rules

MAX_CHUNK_BYTES = 1 << 20

_WindowId = Annotated[str, Rules(minLength=1, description="Tab id, e.g. @3")]
_ReadableId = Annotated[_WindowId, Rules(description="Tab id, e.g. @3; of an earlier run, RUN/@3")]
_Whole = Annotated[int, Rules(type="number", multipleOf=1)]
_StripAnsi = Annotated[bool, Rules(description="Remove ANSI sequences (default false)")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTab:
    """Arguments of create_tab."""

    name: Annotated[Name | None, Rules(description="Name for the tab")] = None
    cwd: Cwd | None = None
    env: Env | None = None
    login: Annotated[bool | None, Rules(description="Start a login shell, which reads the user's profile")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLogs:
    """Arguments of read_logs_from_tab."""

    window_id: _ReadableId
    lines: Annotated[_Whole, Rules(minimum=1, description="Lines from the end (default 500)")] = 500
    strip_ansi: _StripAnsi = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteCommand:
    """Arguments of execute_command."""

    window_id: _WindowId
    command: Annotated[Text, Rules(description="Shell command; may have several lines")]
    timeout_ms: Annotated[
        float,
        Rules(minimum=1, maximum=3_600_000, description="Milliseconds to give it (default 10000)"),
    ] = 10_000
    strip_ansi: _StripAnsi = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProcess:
    """Arguments of start_process."""

    window_id: _WindowId
    command: Annotated[Text, Rules(description="Shell command")]
    append_newline: Annotated[bool, Rules(description="Press Enter after it (default true)")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StopProcess:
    """Arguments of stop_process."""

    window_id: _WindowId
    signal: Annotated[
        Literal["SIGINT", "SIGTERM"],
        Rules(description="SIGINT, which is C-c (default), or SIGTERM"),
    ] = "SIGINT"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLogs:
    """Arguments of stream_logs_from_tab."""

    window_id: _ReadableId
    from_byte: Annotated[_Whole, Rules(minimum=0, description="Offset to start at (default 0)")] = 0
    max_bytes: Annotated[
        _Whole,
        Rules(minimum=1, maximum=MAX_CHUNK_BYTES, description="Most bytes to read (default 65536)"),
    ] = 65_536
    strip_ansi: _StripAnsi = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHistoryLimit:
    """Arguments of set_history_limit."""

    limit: Annotated[_Whole, Rules(minimum=1, maximum=MAX_HISTORY_LINES, description="Lines")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseTab:
    """Arguments of close_tab."""

    window_id: _WindowId
