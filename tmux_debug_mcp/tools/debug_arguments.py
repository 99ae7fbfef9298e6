"""The arguments of the tools of `debug`.

They stand here because the help of `tmux-debug` has them, too, and must not wait for the engine.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S
from tmux_debug_mcp.vt.steps import MAX_STEPS

from .arguments import MAX_TEXT_LINES, argument, arguments, short_name, string, variables

_MAX_TIMEOUT_S = 3600
_MAX_PANES = 64


def _timeout(description: str, default: float | None) -> Any:  # noqa: ANN401  as `argument`
    return argument(description, default=default, minimum=0, maximum=_MAX_TIMEOUT_S)


def _one_or_several(description: str, max_items: int, **rules: int) -> Any:  # noqa: ANN401
    item = {"type": "string", **rules}
    several = {"type": "array", "items": item, "minItems": 1, "maxItems": max_items}
    return argument(description, anyOf=[item, several])


@arguments
class CreatePane:
    command: str = string("Shell command line, e.g. 'RUST_LOG=debug cargo run'")
    name: str | None = short_name("Name to use instead of the id", default=None)
    cwd: str | None = string("Directory to start in", default=None)
    env: Mapping[str, str] | None = variables()
    wait_for: str | None = string(
        "Wait for this regular expression, in a line that is new or has changed", default=None
    )
    timeout_s: float | None = _timeout(
        "Most seconds to wait (default 1, with wait_for 30); 0 returns at once", None
    )


@arguments
class SendKeys:
    pane_id: str = string("Pane id or name")
    keys: str | Sequence[str] = _one_or_several("Text or keys, or an array of steps", MAX_STEPS)
    literal: bool = argument("Text only, no key names; a line feed is Enter", default=False)
    paste: bool = argument("Paste it in one piece, not line by line", default=False)
    secret: bool = argument("Keep the keys out of the audit log", default=False)
    wait_for: str | None = string(
        "Wait for this regular expression, in a line that is new or has changed", default=None
    )
    timeout_s: float | None = _timeout(
        "Most seconds to wait (default 1, with wait_for and for each step 30); 0 returns at once",
        None,
    )


@arguments
class CapturePane:
    pane_id: str = string("Pane id or name")
    lines: int | None = argument(
        f"How many lines (default 100, max {MAX_TEXT_LINES})", default=None, minimum=1
    )
    since: int | None = argument("Cursor to read on from, oldest first", default=None, minimum=0)
    pattern: str | None = string("Regular expression", default=None)
    ansi: bool = argument("Keep colours of the last lines", default=False)


@arguments
class Run:
    command: str = string("Shell command; may have several lines")
    pane_id: str | None = string("Pane with a shell at its prompt", default=None)
    cwd: str | None = string("Directory to run in, without pane_id", default=None)
    timeout_s: float = _timeout("Seconds to give it (default 30)", DEFAULT_TIMEOUT_S)


@arguments
class Wait:
    pane_id: str | Sequence[str] = _one_or_several(
        "Pane id or name, or an array of them", _MAX_PANES, minLength=1
    )
    pattern: str | None = string("Regular expression for a line", default=None)
    stop_pattern: str | None = string(
        "Another one that ends the wait, such as 'error|panic'", default=None
    )
    idle_s: float | None = argument(
        "Until nothing is printed for so many seconds", default=None, minimum=0
    )
    since: int | None = argument(
        "Cursor to begin at (default: the last keys sent)", default=None, minimum=0
    )
    timeout_s: float = _timeout("Most seconds to wait (default 30); 0 looks now", DEFAULT_TIMEOUT_S)


@arguments
class KillPane:
    pane_id: str = string("Pane id or name")
