"""The arguments of the tools of `tabs`."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from tmux_debug_mcp.tmux.host import MAX_HISTORY_LINES

from .schema import argument, arguments, short_name, string, variables, whole

TAB_ID = re.compile(r"@\d+")
MAX_CHUNK_BYTES = 1 << 20


def _tab() -> Any:  # noqa: ANN401  as `argument`
    return string("Tab id, e.g. @3")


def _readable_tab() -> Any:  # noqa: ANN401
    return string("Tab id, e.g. @3; of an earlier run, RUN/@3")


def _strip_ansi() -> Any:  # noqa: ANN401
    return argument("Remove ANSI sequences (default false)", default=False)


@arguments
class CreateTab:
    """Arguments of create_tab."""

    name: str | None = short_name("Name for the tab", default=None)
    cwd: str | None = string("Directory to start in", default=None)
    env: Mapping[str, str] | None = variables()
    login: bool | None = argument(
        "Start a login shell, which reads the user's profile", default=None
    )


@arguments
class ReadLogs:
    """Arguments of read_logs_from_tab."""

    window_id: str = _readable_tab()
    lines: int = whole("Lines from the end (default 500)", default=500, minimum=1)
    strip_ansi: bool = _strip_ansi()


@arguments
class ExecuteCommand:
    """Arguments of execute_command."""

    window_id: str = _tab()
    command: str = string("Shell command; may have several lines")
    timeout_ms: float = argument(
        "Milliseconds to give it (default 10000)", default=10_000, minimum=1, maximum=3_600_000
    )
    strip_ansi: bool = _strip_ansi()


@arguments
class StartProcess:
    """Arguments of start_process."""

    window_id: str = _tab()
    command: str = string("Shell command")
    append_newline: bool = argument("Press Enter after it (default true)", default=True)


@arguments
class StopProcess:
    """Arguments of stop_process."""

    window_id: str = _tab()
    signal: Literal["SIGINT", "SIGTERM"] = argument(
        "SIGINT, which is C-c (default), or SIGTERM", default="SIGINT"
    )


@arguments
class StreamLogs:
    """Arguments of stream_logs_from_tab."""

    window_id: str = _readable_tab()
    from_byte: int = whole("Offset to start at (default 0)", default=0, minimum=0)
    max_bytes: int = whole(
        "Most bytes to read (default 65536)", default=65_536, minimum=1, maximum=MAX_CHUNK_BYTES
    )
    strip_ansi: bool = _strip_ansi()


@arguments
class SetHistoryLimit:
    """Arguments of set_history_limit."""

    limit: int = whole("Lines", minimum=1, maximum=MAX_HISTORY_LINES)


@arguments
class CloseTab:
    """Arguments of close_tab."""

    window_id: str = _tab()
