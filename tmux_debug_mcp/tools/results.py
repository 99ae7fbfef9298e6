"""What the tools of `debug` answer: a text, a status line, and the same facts for programs.

The status line ends each answer. It says what the pane is doing, what happened, and the cursor to
go on from::

    [debug-1 web running 12.3 s, foreground python3 (pid 4711), awaits input; matched; cursor 48211]
"""

from collections.abc import Sequence
from typing import Any

from tmux_debug_mcp.logs.excerpts import Excerpt, joined
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import Readable
from tmux_debug_mcp.panes.running.outcomes import Outcome
from tmux_debug_mcp.panes.waiting.conditions import Conditions
from tmux_debug_mcp.panes.waiting.observations import Observation

from .toolset import Answer

_MAX_COMMAND_CHARACTERS = 100


def row(pane: Pane | Readable, state: State) -> dict[str, Any]:
    """Return a pane's row of the list, without the fields that do not apply."""
    fields = {
        "id": pane.id,
        "name": pane.name,
        "status": "running" if state.is_running else "exited",
        "awaits": state.awaits.value if state.awaits else None,
        "pid": state.pid,
        "command": shown_command(pane.command),
        "exit_code": state.exit_code,
        "signal": state.signal,
        "lost": state.is_lost or None,
        "runtime_s": round(state.runtime_s, 1),
        "foreground": state.foreground,
        "cursor": state.cursor,
    }
    return {name: value for name, value in fields.items() if value is not None}


def meta(pane: Pane | Readable, state: State, *parts: Excerpt) -> dict[str, Any]:
    """Return a result's `_meta`: the row of the list, and facts about the text.

    Args:
        pane: The pane.
        state: Its state.
        parts: The parts of the text. `cut_bytes` says how much is left out of them, `marked_lines`
            has the numbers of the lines that are notes of ours.
    """
    fields = row(pane, state)
    for name in ("id", "name", "command"):
        del fields[name]
    text = joined(*parts)
    return {
        "pane_id": pane.id,
        **fields,
        "cut_bytes": text.cut_bytes or None,
        "marked_lines": text.notes or None,
    }


def status(pane: Pane | Readable, state: State, *remarks: str, cursor: int | None = None) -> str:
    """Return the status line of an answer.

    Args:
        pane: The pane. Its notices are taken.
        state: Its state.
        remarks: What happened.
        cursor: The cursor to go on from, where that is not the state's.
    """
    name = pane.id if pane.name == pane.id else f"{pane.id} {pane.name}"
    facts = [f"{name} {state}"]
    if state.foreground:
        facts.append(f"foreground {state.foreground} (pid {state.pid})")
    if state.awaits:
        facts.append(f"awaits {state.awaits.value}")
    if cursor is None:
        cursor = state.cursor
    parts = [", ".join(facts), *remarks, *pane.take_notices(), f"cursor {cursor}"]
    return f"[{'; '.join(parts)}]"


def observed(
    observations: Sequence[Observation], conditions: Conditions, *confirmation: str
) -> Answer:
    """Return the answer of a call that observed.

    Args:
        observations: What was observed: in one pane, or in each pane when nothing happened.
        conditions: What was waited for.
        confirmation: What the call did before, as the first block.
    """
    first = observations[0]
    texts = [one.excerpt.text for one in observations]
    # Beside a confirmation, an empty block says nothing.
    shown = [text for text in texts if text] if confirmation else texts
    blocks = [*confirmation, *shown]
    blocks.append(" ".join(_observed_status(one, conditions) for one in observations))
    facts = {
        **meta(first.pane, first.state, *(one.excerpt for one in observations)),
        "reason": first.reason,
        "cursor": first.end,
        "start_cursor": first.start,
    }
    return Answer(blocks, facts, first.pane.id, "\n".join(texts))


def _observed_status(observation: Observation, conditions: Conditions) -> str:
    remarks = _reason_remarks(observation.reason, conditions)
    if observation.screen:
        columns, rows = observation.screen
        remarks.append(f"screen {columns}x{rows}")
    if observation.unseen_bytes:
        remarks.append(f"{observation.unseen_bytes} bytes passed too fast to be matched")
    return status(observation.pane, observation.state, *remarks, cursor=observation.end)


def _reason_remarks(reason: str, conditions: Conditions) -> list[str]:
    """Return what the status line says of the reason; nothing where the state says it."""
    if reason == "timed_out":
        if conditions.is_look:
            return []
        late = "not at rest" if conditions.is_for_rest else "timed out"
        return [f"{late} after {conditions.timeout_s:g} s"]
    remarks = {
        "matched": "matched",
        "stopped": "stop_pattern matched",
        "idle": f"idle for {conditions.idle_s or 0:g} s",
        "rest": "at rest",
        "flooded": "it floods: more was printed than is kept",
    }
    return [remarks[reason]] if reason in remarks else []


def ran(pane: Pane, outcome: Outcome, timeout_s: float) -> Answer:
    """Return the answer of a run: the command's output, and how it ended."""
    remarks = []
    remark = outcome.remark(timeout_s)
    if remark:
        remarks.append(remark)
    if outcome.exit_code is not None and outcome.state.is_running:
        remarks.append(f"exit code {outcome.exit_code} after {outcome.runtime_s:.1f} s")
    facts = {
        **meta(pane, outcome.state, outcome.excerpt),
        "reason": outcome.reason,
        "exit_code": outcome.exit_code,
        "start_cursor": outcome.start,
        "run_s": round(outcome.runtime_s, 3),
    }
    text = outcome.excerpt.text
    return Answer([text, status(pane, outcome.state, *remarks)], facts, pane.id, text)


def shown_command(command: str) -> str:
    """Return the head of a command, at most 100 characters, with "…" where it was longer."""
    if len(command) <= _MAX_COMMAND_CHARACTERS:
        return command
    return command[:_MAX_COMMAND_CHARACTERS] + "…"
