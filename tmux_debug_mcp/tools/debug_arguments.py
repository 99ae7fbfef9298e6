"""The arguments of the tools of `debug`, and of verbs of `tmux-debug` that call these.

They are here because the help of `tmux-debug` uses them, too, and must not wait for the engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.vt.steps import MAX_STEPS

from .arguments import (
    MAX_TEXT_LINES,
    Declaration,
    Directory,
    Variables,
    argument,
    short_name,
    string,
)

# Lines that a capture returns if no number is given. With `since`, it then reads up to the cap.
LAST_LINES = 100
MATCHING_LINES = 20
_MAX_TIMEOUT_S = 3600
_MAX_PANES = 64


def _timeout(description: str) -> Declaration:
    return argument(description, "TIME", minimum=0, maximum=_MAX_TIMEOUT_S)


def _pattern(description: str) -> Declaration:
    return string(description, "REGEX")


def _one_or_several(description: str, value: str | None = None, **rules: int) -> Declaration:
    item = {"type": "string"}
    return argument(description, value, anyOf=[item, {"type": "array", "items": item, **rules}])


_PaneId = Annotated[str, string("Pane id or name", "PANE")]
_PaneIds = Annotated[
    str | Sequence[str],
    _one_or_several("Pane id, name, or an array", "PANE", minItems=1, maxItems=_MAX_PANES),
]
_WaitFor = Annotated[str | None, _pattern("Regular expression to wait for")]
_StopPattern = Annotated[str | None, _pattern("Another that ends it, e.g. 'panic'")]
_Port = Annotated[int | None, argument("Wait until it listens there", minimum=1, maximum=65535)]
_StartTimeout = Annotated[
    float | None, _timeout("Max seconds to wait (default 1, with wait_for or port 30)")
]
_Show = Annotated[str | None, _pattern("Return only lines that match")]


@dataclass(frozen=True, slots=True)
class CreatePane:
    command: Annotated[str, string("Shell command line, e.g. 'RUST_LOG=debug cargo run'")]
    name: Annotated[str | None, short_name("Name to use instead of the id")] = None
    cwd: Directory = None
    env: Variables = None
    size: Annotated[str | None, string("Terminal size (default 200x50)")] = None
    wait_for: _WaitFor = None
    port: _Port = None
    show: _Show = None
    timeout_s: _StartTimeout = None


@dataclass(frozen=True, slots=True)
class SendKeys:
    pane_id: _PaneId
    keys: Annotated[
        str | Sequence[str],
        _one_or_several("Text or keys, or an array of steps", maxItems=MAX_STEPS),
    ]
    literal: Annotated[bool, argument("Text only, no key names; a line feed is Enter")] = False
    paste: Annotated[bool, argument("Paste it in one write, all as text")] = False
    secret: Annotated[bool, argument("Wait for hidden input; not in the audit")] = False
    size: Annotated[str | None, string("Resize it first, e.g. '80x24'; keys may be ''")] = None
    wait_for: _WaitFor = None
    stop_pattern: _StopPattern = None
    show: _Show = None
    timeout_s: Annotated[
        float | None,
        _timeout("Max seconds to wait (default 1, with wait_for and for each step 30)"),
    ] = None


@dataclass(frozen=True, slots=True)
class CapturePane:
    pane_id: _PaneIds
    lines: Annotated[
        int | None,
        argument(
            f"How many lines (default {LAST_LINES}, with pattern {MATCHING_LINES}; "
            f"max {MAX_TEXT_LINES})",
            "N",
            minimum=1,
        ),
    ] = None
    since: Annotated[
        int | None, argument("Cursor to read on from, oldest first", "CURSOR", minimum=0)
    ] = None
    pattern: Annotated[str | None, _pattern("Regular expression")] = None
    context: Annotated[int | None, argument("Lines around each that matches", "N", minimum=0)] = (
        None
    )
    view: Annotated[
        Literal["lines", "screen", "ansi"],
        argument("screen: rows as they are; ansi: lines in colour"),
    ] = "lines"


@dataclass(frozen=True, slots=True)
class Run:
    command: Annotated[str, string("Shell command or script")]
    pane_id: Annotated[str | None, string("Pane with a shell at its prompt", "PANE")] = None
    cwd: Annotated[str | None, string("Directory to run in, without pane_id", "DIR")] = None
    show: _Show = None
    timeout_s: Annotated[float, _timeout("Seconds to give it (default 30)")] = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Wait:
    pane_id: _PaneIds
    pattern: Annotated[str | None, _pattern("Regular expression for a line")] = None
    stop_pattern: _StopPattern = None
    gone: Annotated[
        str | None, _pattern("Until no row or unfinished line matches, e.g. 'Thinking'")
    ] = None
    idle_s: Annotated[
        float | None, argument("Until no output for so many seconds", "TIME", minimum=0)
    ] = None
    port: _Port = None
    since: Annotated[
        int | None,
        argument("Cursor to begin at (default: the last keys sent)", "CURSOR", minimum=0),
    ] = None
    show: _Show = None
    timeout_s: Annotated[float, _timeout("Max seconds to wait (default 30)")] = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class KillPane:
    pane_id: _PaneIds


@dataclass(frozen=True, slots=True)
class ResizePane:
    pane_id: _PaneId
    size: Annotated[str, string("Columns and rows, e.g. '100x34'")]


@dataclass(frozen=True, slots=True)
class RestartPane:
    pane_id: _PaneId
    command: Annotated[str | None, string("Another command to start there instead")] = None
    wait_for: _WaitFor = None
    port: _Port = None
    show: _Show = None
    timeout_s: _StartTimeout = None
