"""The arguments of the tools of `terminal`."""

from collections.abc import Mapping
from typing import Any, Literal

from tmux_debug_mcp.vt.sizes import (
    MAX_COLUMNS,
    MAX_ROWS,
    MIN_SIZE,
    SESSION_COLUMNS,
    SESSION_ROWS,
)

from .schema import argument, arguments, short_name, string, variables

DEFAULT = "default"


def _session() -> Any:  # noqa: ANN401  as `argument`
    return string("Session name (default: default)", default=DEFAULT)


@arguments
class TypeText:
    """Arguments of type."""

    text: str = string("Text to type")
    session: str = _session()


@arguments
class SendKey:
    """Arguments of sendKey."""

    key: str = string("Key name, e.g. Ctrl+C")
    session: str = _session()


@arguments
class GetContent:
    """Arguments of getContent."""

    visible_only: bool = argument(
        "Only the visible screen (default false)", called="visibleOnly", default=False
    )
    session: str = _session()


@arguments
class TakeScreenshot:
    """Arguments of takeScreenshot."""

    format: Literal["text", "png"] = argument("png adds a picture (default text)", default="text")
    session: str = _session()


@arguments
class OfSession:
    """Arguments of a tool that takes a session alone."""

    session: str = _session()


@arguments
class Resize:
    """Arguments of resize."""

    cols: int = argument(minimum=MIN_SIZE, maximum=MAX_COLUMNS)
    rows: int = argument(minimum=MIN_SIZE, maximum=MAX_ROWS)
    session: str = _session()


@arguments
class CreateSession:
    """Arguments of createSession."""

    name: str = short_name()
    cols: int | None = argument(
        f"Width (default {SESSION_COLUMNS}, or as configured)",
        default=None,
        minimum=MIN_SIZE,
        maximum=MAX_COLUMNS,
    )
    rows: int | None = argument(
        f"Height (default {SESSION_ROWS}, or as configured)",
        default=None,
        minimum=MIN_SIZE,
        maximum=MAX_ROWS,
    )
    cwd: str | None = string("Directory to start in", default=None)
    env: Mapping[str, str] | None = variables()
    command: str | None = string("Command to run instead of a shell", default=None)


@arguments
class StartRecording:
    """Arguments of startRecording."""

    path: str | None = string("New file (default: a name of its own)", default=None)
    session: str = _session()
