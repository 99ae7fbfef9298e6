"""What the tools of `tabs` answer: compact JSON."""

import signal
from collections.abc import Mapping
from typing import Any

import orjson

from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import read_end
from tmux_debug_mcp.panes.looking.activity import Awaits
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.running.outcomes import Outcome, RunReason
from tmux_debug_mcp.panes.running.runs import MAX_OUTPUT_CHARACTERS

from .toolset import Answer

_TIMED_OUT = (RunReason.TIMED_OUT, RunReason.RUNNING, RunReason.SHELL_INTERRUPTED)


def answer(
    window_id: str,
    result: Mapping[str, Any],
    output: str | None = None,
    outcome: Mapping[str, Any] | None = None,
) -> Answer:
    """Return the answer of a call about a tab."""
    return Answer([compact(result)], pane_id=window_id, output=output, outcome=outcome or {})


def compact(result: Mapping[str, Any]) -> str:
    """Return compact JSON."""
    return orjson.dumps(result).decode()


def tab_row(pane: Pane, state: State, *, is_active: bool) -> dict[str, Any]:
    """Return a tab as the list has it."""
    row: dict[str, Any] = {
        "window_id": pane.window,
        "name": pane.name,
        "active": is_active,
        "status": "running" if state.is_running else "exited",
    }
    facts: dict[str, Any] = {
        "foreground": state.foreground,
        "exit_code": state.exit_code,
        "signal": state.signal,
        "awaits": state.awaits and state.awaits.value,
        "lost": state.is_lost or None,
        "note": _ask_a_person(pane) if state.awaits is Awaits.HIDDEN_INPUT else None,
    }
    return row | {key: value for key, value in facts.items() if value is not None}


def ran(pane: Pane, outcome: Outcome, timeout_s: float) -> dict[str, Any]:
    """Return the result of a command."""
    result: dict[str, Any] = {
        "output": outcome.excerpt.text,
        "timed_out": outcome.reason in _TIMED_OUT,
    }
    if outcome.exit_code is not None:
        result["exit_code"] = outcome.exit_code
    remarks = []
    if outcome.reason is RunReason.INPUT:
        awaits = outcome.state.awaits or Awaits.KEYS
        result["awaits"] = awaits.value
        if awaits is Awaits.HIDDEN_INPUT:
            remarks.append(f"It runs on and awaits hidden input; {_ask_a_person(pane)}.")
        else:
            remarks.append(
                "It runs on and awaits that: answer with start_process, or stop it with "
                "stop_process."
            )
    if outcome.excerpt.cut_bytes:
        begin = max(outcome.start, pane.log.kept_from)
        remarks.append(f"The beginning is cut: use stream_logs_from_tab with from_byte {begin}.")
        result |= {"truncated": True, "from_byte": begin, "next_byte": outcome.end}
        if begin > outcome.start:
            result["skipped_bytes"] = begin - outcome.start
            remarks.append(f"The first {begin - outcome.start} bytes are no longer kept.")
    remark = outcome.remark(timeout_s)
    if remark and outcome.reason is not RunReason.INPUT:
        remarks.append(f"{remark[0].upper()}{remark[1:]}.")
    if not outcome.state.is_running:
        remarks.append(f"The tab has ended: {outcome.state}.")
    if remarks:
        result["note"] = " ".join(remarks)
    return result


def _ask_a_person(pane: Pane) -> str:
    """Return how a secret is typed: what start_process types is put on record."""
    return f"a person can type it: tmux-debug secret {pane.id}"


async def clean_output(log: Log, start: int, end: int) -> Excerpt:
    """Return the end of a command's output."""
    piece = await read_end(log, start, end, MAX_OUTPUT_CHARACTERS, is_line=True)
    return Excerpt(piece.text.split("\n"), [], piece.start - start)


async def raw_output(log: Log, start: int, end: int) -> Excerpt:
    """Return the end of a command's output with escape sequences."""
    piece = await read_end(log, start, end, MAX_OUTPUT_CHARACTERS, is_raw=True)
    return Excerpt(piece.text.split("\n"), [], piece.start - start)


def advice(number: signal.Signals) -> str:
    """Return what to try next when a signal did not stop a program."""
    if number == signal.SIGINT:
        return "SIGTERM may help"
    return "close_tab ends all that runs there"
