"""What the tools of `debug` answer: the text, the line that ends it, and the same for programs.

The line tells the pane, what it is doing, what happened and the cursor to go on from::

    [debug-1 web running 12.3 s, foreground python3 (pid 4711), awaits input; matched; cursor 48211]
"""

from collections.abc import Sequence
from typing import Any

from tmux_debug_mcp.logs.excerpts import Excerpt, joined
from tmux_debug_mcp.panes.conditions import Conditions
from tmux_debug_mcp.panes.observations import Observation
from tmux_debug_mcp.panes.outcomes import Outcome
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import Readable
from tmux_debug_mcp.panes.state import State

from .toolset import Answer

_SHOWN_COMMAND_CHARACTERS = 100


def row(pane: Pane | Readable, state: State) -> dict[str, Any]:
    """Return a pane as the list has it."""
    found: dict[str, Any] = {"id": pane.id, "name": pane.name, "status": "running" if state.is_running else "exited"}
    found |= {"awaits": state.awaits and state.awaits.value, "pid": state.pid, "command": shown_command(pane.command)}
    found |= {"exit_code": state.exit_code, "signal": state.signal, "lost": state.is_lost or None}
    found |= {"runtime_s": round(state.runtime_s, 1), "foreground": state.foreground, "cursor": state.cursor}
    return {key: value for key, value in found.items() if value is not None}


def meta(pane: Pane | Readable, state: State, *parts: Excerpt) -> dict[str, Any]:
    """Return what programs are told of a pane and of the text, which may be of several parts."""
    facts = {key: value for key, value in row(pane, state).items() if key not in ("id", "name", "command")}
    text = joined(*parts)
    return {"pane_id": pane.id, **facts, "cut_bytes": text.cut_bytes or None, "marked_lines": text.marked or None}


def status(pane: Pane | Readable, state: State, *notes: str, cursor: int | None = None) -> str:
    """Return the line that ends an answer."""
    name = f" {pane.name}" if pane.name != pane.id else ""
    facts = [f"{pane.id}{name} {state}"]
    if state.foreground:
        facts.append(f"foreground {state.foreground} (pid {state.pid})")
    if state.awaits:
        facts.append(f"awaits {state.awaits.value}")
    said = [", ".join(facts), *notes]
    said += pane.take_notices()
    said.append(f"cursor {state.cursor if cursor is None else cursor}")
    return f"[{'; '.join(said)}]"


def observed(found: Sequence[Observation], conditions: Conditions, *confirmation: str) -> Answer:
    """Return what was observed, of each pane if nothing happened in any."""
    line = " ".join(_observed_status(observation, conditions) for observation in found)
    first = found[0]
    texts = [one.excerpt.text for one in found]
    told = meta(first.pane, first.state, *(one.excerpt for one in found))
    told |= {"reason": first.reason, "cursor": first.end, "start_cursor": first.start}
    # Next to a confirmation, nothing is no block.
    blocks = [*confirmation, *(text for text in texts if text or not confirmation), line]
    return Answer(blocks, told, first.pane.id, "\n".join(texts))


def _observed_status(observation: Observation, conditions: Conditions) -> str:
    late = f"timed out after {conditions.timeout_s:g} s"
    if conditions.is_for_rest:
        late = f"not at rest after {conditions.timeout_s:g} s"
    notes = {
        "matched": ["matched"],
        "stopped": ["stop_pattern matched"],
        "idle": [f"idle for {conditions.idle_s or 0:g} s"],
        "rest": ["at rest"],
        "flooded": ["it floods: more was printed than is kept"],
        "timed_out": [] if conditions.is_look else [late],
    }.get(observation.reason, [])
    if observation.screen:
        columns, rows = observation.screen
        notes.append(f"screen {columns}x{rows}")
    if observation.unseen_bytes:
        notes.append(f"{observation.unseen_bytes} bytes passed too fast to be matched")
    return status(observation.pane, observation.state, *notes, cursor=observation.end)


def ran(pane: Pane, outcome: Outcome, timeout_s: float) -> Answer:
    """Return what a command printed and how it ended."""
    note = outcome.note(timeout_s)
    notes = [note] if note else []
    if outcome.exit_code is not None and outcome.state.is_running:
        notes.append(f"exit code {outcome.exit_code} after {outcome.runtime_s:.1f} s")
    told = meta(pane, outcome.state, outcome.excerpt) | {"reason": outcome.reason, "exit_code": outcome.exit_code}
    told |= {"start_cursor": outcome.start, "run_s": round(outcome.runtime_s, 3)}
    text = outcome.excerpt.text
    return Answer([text, status(pane, outcome.state, *notes)], told, pane.id, text)


def shown_command(command: str) -> str:
    """Return a command as far as a list shows it."""
    if len(command) <= _SHOWN_COMMAND_CHARACTERS:
        return command
    return command[:_SHOWN_COMMAND_CHARACTERS] + "…"
