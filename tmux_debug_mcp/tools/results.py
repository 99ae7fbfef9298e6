"""What the tools of `debug` answer: a text, a status line, and the same facts for programs.

The status line ends each answer. It says what the pane is doing, what happened, and the cursor to
go on from::

    [debug-1 web running 12.3 s, foreground python3 (pid 4711), awaits input; matched; cursor 48211]
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tmux_debug_mcp.errors import head
from tmux_debug_mcp.logs.excerpts import Excerpt, joined
from tmux_debug_mcp.panes.caller_session import PaneView
from tmux_debug_mcp.panes.engine import is_listed
from tmux_debug_mcp.panes.looking.activity import Awaits
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import Readable, shown_name
from tmux_debug_mcp.panes.reports import OldMatch, Reason, Report
from tmux_debug_mcp.panes.waiting import Conditions

from .toolset import Answer, ask_a_person, came_out, run_remark

# The reason of a call that did not send all of its steps.
NOT_SENT = "not_sent"
_MAX_COMMAND_CHARACTERS = 100
_NO_MATCH = "no line matches"
_MAX_ADDRESSES = 4
_REASON_REMARKS = {
    Reason.MATCHED: "matched",
    Reason.STOPPED: "stop pattern matched",
    Reason.GONE: "nothing matches `gone` any more",
    Reason.REST: "at rest",
    Reason.FLOODED: "wait ended: more was printed than the log keeps",
}


def row(pane: Readable, state: State) -> dict[str, Any]:
    """Return a pane's row of the list, without the fields that do not apply."""
    fields = {
        "id": pane.id,
        "name": pane.name,
        "status": "running" if state.is_running else "exited",
        "awaits": state.awaits.value if state.awaits else None,
        "blocked_on": state.blocked_on,
        "listens": list(state.listens) or None,
        "still_running": list(state.left) or None,
        "pid": state.pid,
        "command": shown_command(pane.command),
        "cwd": pane.made_by.cwd if isinstance(pane, Pane) else None,
        "exit_code": state.exit_code,
        "signal": state.signal,
        "lost": state.is_lost or None,
        "runtime_s": round(state.runtime_s, 1),
        "foreground": state.foreground,
        "cursor": state.cursor,
    }
    return {name: value for name, value in fields.items() if value is not None}


def has_ended(pane: Mapping[str, Any]) -> bool:
    """Return whether nothing runs any more in the pane of a row."""
    return pane["status"] != "running" and "still_running" not in pane


def row_for_people(pane: Pane, state: State) -> dict[str, Any]:
    """Return a pane's row of the list, with more for those who don't call tools.

    `line` is the whole command, `shown` the words of a status line and who has the keyboard, and
    `is_listed` says whether lists show the pane.
    """
    shown = described(pane, state)
    if pane.keyboard.holder:
        shown += f", {pane.keyboard.holder} has the keyboard"
    more = {"line": pane.command, "shown": shown, "is_listed": is_listed(pane, state)}
    return row(pane, state) | more


def meta(
    pane: Readable, state: State, *parts: Excerpt, panes: Sequence[Readable] = ()
) -> dict[str, Any]:
    """Return a result's `_meta`: the row of the list, and facts about the text.

    `cut_bytes` says how much is left out of the parts of the text, `marked_lines` lists the numbers
    of the lines that are notes of ours, and `gaps` says for those that stand for lines how to read
    these; a part without text counts as a line, too. Each part is of one of `panes`, if given.
    """
    fields = row(pane, state)
    for name in ("id", "name", "command", "cwd"):
        fields.pop(name, None)
    text = joined(*(part if part.marked else Excerpt([""]) for part in parts))
    owners = [of.id for of, part in zip(panes or [pane], parts, strict=False) for _ in part.gaps]
    return {
        "pane_id": pane.id,
        **fields,
        "cut_bytes": text.cut_bytes or None,
        "marked_lines": text.notes or None,
        "gaps": [
            {"line": gap.line, "pane_id": owner, "since": gap.since, "lines": gap.lines}
            for owner, gap in zip(owners, text.gaps, strict=True)
        ]
        or None,
    }


def worded(excerpt: Excerpt) -> str:
    """Return the text of an excerpt, in which the notes of gaps say how to read these."""
    lines = excerpt.lines
    for gap in excerpt.gaps:
        line = lines[gap.line].removesuffix("]")
        lines[gap.line] = f"{line}: {way_to_read(gap.since, gap.lines)}]"
    return "\n".join(lines)


def way_to_read(since: int, lines: int) -> str:
    """Return the words that say how to read a gap."""
    return f"tmux_capture_pane since {since}, lines {lines}"


def status(
    pane: Readable, state: State, shown: PaneView, *remarks: str, cursor: int | None = None
) -> str:
    """Return the status line of an answer, with remarks on what happened.

    The answer shows so much of the pane. `cursor` is where to go on from, by default the state's.
    """
    if cursor is None:
        cursor = state.cursor
    if state.awaits is Awaits.HIDDEN_INPUT:
        remarks += (ask_a_person(pane),)
    if shown.run:
        remarks += (shown.run.outcome,)
    parts = [described(pane, state), *remarks, *pane.remarks(), f"cursor {cursor}"]
    return f"[{'; '.join(parts)}]"


def described(pane: Readable, state: State) -> str:
    """Return what is known of a pane, as in status lines."""
    facts = [f"{shown_name(pane)} {state}"]
    if state.foreground:
        facts.append(f"foreground {state.foreground} (pid {state.pid})")
    if state.awaits:
        facts.append(f"awaits {state.awaits.value}")
    if state.listens:
        facts.append(f"listens {_some(state.listens)}")
    if state.waits and not _only_accepts(state):
        facts.append(state.waits)
    return ", ".join(facts)


def _some(addresses: Sequence[str]) -> str:
    """Return addresses for a status line: the first few, and how many more there are."""
    more = len(addresses) - _MAX_ADDRESSES
    shown = " ".join(addresses[:_MAX_ADDRESSES])
    return f"{shown} and {more} more" if more > 0 else shown


def _only_accepts(state: State) -> bool:
    """Tell whether a program only waits for connections to where it listens."""
    accepts = {f"accepts on {address}" for address in state.listens}
    return set((state.blocked_on or "").split(" or ")) <= accepts


def observed(
    reports: Sequence[Report],
    conditions: Conditions,
    *confirmation: str,
    remarks: Sequence[str | None],
) -> Answer:
    """Return the answer of a call that observed: in one pane, or in each when nothing happened.

    `confirmation` is what the call did before, as the first block. `remarks` has one for each
    report, None if there is nothing to add.
    """
    first = reports[0]
    excerpts = [report.excerpt for report in reports]
    statuses = [
        _observed_status(report, conditions, remark)
        for report, remark in zip(reports, remarks, strict=True)
    ]
    texts = list(map(worded, excerpts))
    # Beside a confirmation, an empty block says nothing.
    shown_texts = [text for text in texts if text or not confirmation]
    reason: str = first.reason
    if conditions.is_for_rest and first.reason is Reason.TIMED_OUT:
        reason = "busy"  # nothing that was asked for is missing
    facts = {
        **meta(first.pane, first.state, *excerpts, panes=[report.pane for report in reports]),
        "reason": reason,
        "cursor": first.end,
        "start_cursor": first.start,
        "match_age_s": first.old_match and round(first.old_match.age_s, 1),
        "new_from": first.old_match and first.old_match.new_from,
    }
    return Answer(
        blocks=[*confirmation, *shown_texts, "\n".join(statuses)],
        meta=facts,
        pane_id=first.pane.id,
        output="\n".join(texts),
        outcome=came_out(reason, first.state, missed=_missed(first, conditions)),
        shown={report.pane: report.shown for report in reports},
    )


def _missed(report: Report, conditions: Conditions) -> str:
    """Return what a call waited for and did not get, for the record; "" if it got that."""
    if report.reason not in (Reason.INPUT, Reason.EXITED):
        return ""
    if conditions.gone is not None:
        return "not gone"
    # A call that sends keys is at rest then, as it should be.
    if report.was_for_match and not (conditions.is_for_rest and conditions.pattern is None):
        return "no match"
    is_for_more = conditions.idle_s is not None or conditions.port is not None
    return "ended early" if is_for_more and report.reason is Reason.EXITED else ""


def _observed_status(report: Report, conditions: Conditions, remark: str | None) -> str:
    remarks = []
    reason_remark = _reason_remark(report.reason, conditions)
    if report.reason in (Reason.INPUT, Reason.EXITED) and report.was_for_match:
        reason_remark = _NO_MATCH
    if reason_remark and report.old_match:
        reason_remark += _of_old_match(report.old_match)
    if reason_remark:
        remarks.append(reason_remark)
    if report.is_early:
        remarks.append("before the last step")
    if report.screen:
        remarks.append(screen_remark(report.screen))
    if report.unseen_bytes:
        remarks.append(f"{report.unseen_bytes} bytes passed too fast to be matched")
    if remark:
        remarks.append(remark)
    return status(report.pane, report.state, report.shown, *remarks, cursor=report.end)


def _of_old_match(old: OldMatch) -> str:
    """Return what follows "matched" where the caller had been shown what matches."""
    what = "a row shown" if old.is_row else "output from"
    return f" {what} {old.age_s:.1f} s before this call; {new_output(old.new_from)}"


def new_output(cursor: int, flag: str = "since") -> str:
    """Return the remark on where output begins that the caller has not been shown."""
    return f"{flag} {cursor} for new output"


def _reason_remark(reason: Reason, conditions: Conditions) -> str | None:
    """Return a remark on why a wait ended, None if the state says it or the call only looked."""
    if reason is Reason.IDLE and conditions.idle_s is not None:
        return f"idle for {conditions.idle_s:g} s"
    if reason is not Reason.TIMED_OUT:
        return _REASON_REMARKS.get(reason)
    if conditions.is_look:
        return None
    waited = "not at rest" if conditions.is_for_rest else "timed out"
    return f"{waited} after {conditions.timeout_s:g} s"


def screen_remark(size: tuple[int, int]) -> str:
    """Return the remark that a program draws on a screen of so many columns and rows."""
    columns, rows = size
    return f"screen {columns}x{rows}"


def ran(run: Report, timeout_s: float, remark: str | None) -> Answer:
    """Return the answer of a run: the command's output, or its screen, and how it ended.

    `remark` is None if there is nothing to add.
    """
    facts = {
        **meta(run.pane, run.state, run.excerpt),
        "reason": run.reason,
        "exit_code": run.exit_code,
        "start_cursor": run.start,
        # Where the output ends in the log, if it is there to be read.
        "end_cursor": run.end if run.end > run.start and not run.screen else None,
        "run_s": round(run.runtime_s, 3),
    }
    remarks = [run_remark(run, timeout_s)]
    if run.screen:
        remarks.append(screen_remark(run.screen))
    if run.exit_code is not None and run.state.is_running:  # else the state says so
        remarks.append(f"exit code {run.exit_code} after {run.runtime_s:.1f} s")
    remarks.append(remark)
    output = worded(run.excerpt)
    blocks = [output, status(run.pane, run.state, run.shown, *filter(None, remarks))]
    came = came_out(run.reason, run.state, run.exit_code)
    shown: dict[Readable, PaneView] = {run.pane: run.shown}
    return Answer(blocks, facts, run.pane.id, output, outcome=came, shown=shown)


def shown_command(command: str) -> str:
    """Return the head of a command, at most 100 characters, with "…" if it was longer."""
    return head(command, _MAX_COMMAND_CHARACTERS)
