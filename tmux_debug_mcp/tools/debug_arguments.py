"""The arguments of the tools of `debug`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tmux_debug_mcp.panes.conditions import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.vt.steps import MAX_STEPS

from .arguments import Cwd, Env, Name, Text
from .schema import Rules

_PaneName = Annotated[str, Rules(minLength=1, description="Pane id or name")]
_Timeout = Annotated[float, Rules(minimum=0, maximum=3600)]
_Cursor = Annotated[int, Rules(minimum=0)]
_WaitFor = Annotated[
    Text | None,
    Rules(
        description="Wait for this regular expression, in a line that is new or has changed",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePane:
    """Arguments of tmux_create_pane."""

    command: Annotated[Text, Rules(description="Shell command line, e.g. 'RUST_LOG=debug cargo run'")]
    name: Annotated[Name | None, Rules(description="Name to use instead of the id")] = None
    cwd: Cwd | None = None
    env: Env | None = None
    wait_for: _WaitFor = None
    timeout_s: Annotated[
        _Timeout | None,
        Rules(description="Most seconds to wait (default 1, with wait_for 30); 0 returns at once"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendKeys:
    """Arguments of tmux_send_keys."""

    pane_id: _PaneName
    keys: Annotated[
        str | Annotated[Sequence[str], Rules(minItems=1, maxItems=MAX_STEPS)],
        Rules(description="Text or keys, or an array of steps"),
    ]
    literal: Annotated[bool, Rules(description="Text only, no key names; a line feed is Enter")] = False
    paste: Annotated[bool, Rules(description="Paste it in one piece, not line by line")] = False
    secret: Annotated[bool, Rules(description="Keep the keys out of the audit log")] = False
    wait_for: _WaitFor = None
    timeout_s: Annotated[
        _Timeout | None,
        Rules(description="Most seconds to wait (default 1, with wait_for and for each step 30); 0 returns at once"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePane:
    """Arguments of tmux_capture_pane."""

    pane_id: _PaneName
    lines: Annotated[int, Rules(minimum=1, description="How many lines (default 100, max 1000)")] = 100
    since: Annotated[_Cursor | None, Rules(description="Cursor to read on from, oldest first")] = None
    pattern: Annotated[Text | None, Rules(description="Regular expression")] = None
    ansi: Annotated[bool, Rules(description="Keep colours of the last lines")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Arguments of tmux_run."""

    command: Annotated[Text, Rules(description="Shell command; may have several lines")]
    pane_id: Annotated[_PaneName | None, Rules(description="Pane with a shell at its prompt")] = None
    cwd: Annotated[Cwd | None, Rules(description="Directory to run in, without pane_id")] = None
    timeout_s: Annotated[_Timeout, Rules(description="Seconds to give it (default 30)")] = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Arguments of tmux_wait."""

    pane_id: Annotated[
        Text | Annotated[Sequence[Text], Rules(minItems=1, maxItems=64)],
        Rules(description="Pane id or name, or an array of them"),
    ]
    pattern: Annotated[Text | None, Rules(description="Regular expression for a line")] = None
    stop_pattern: Annotated[Text | None, Rules(description="Another one that ends the wait, such as 'error|panic'")] = (
        None
    )
    idle_s: Annotated[
        float | None,
        Rules(minimum=0, description="Until nothing is printed for so many seconds"),
    ] = None
    since: Annotated[_Cursor | None, Rules(description="Cursor to begin at (default: the last keys sent)")] = None
    timeout_s: Annotated[_Timeout, Rules(description="Most seconds to wait (default 30); 0 looks now")] = (
        DEFAULT_TIMEOUT_S
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KillPane:
    """Arguments of tmux_kill_pane."""

    pane_id: _PaneName
