"""Results on a command line: standard output, standard error and an exit status.

Exit statuses, as in timeout(1) and env(1): 0 done; 1 it ended otherwise; 124 timed out; 125 refused
or wrong; 126 `run` awaits input. Otherwise, `run` exits with its command's exit code.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import orjson

from tmux_debug_mcp.panes.reports import Reason
from tmux_debug_mcp.sockets.listener import Caller
from tmux_debug_mcp.tools.results import NOT_SENT, new_output, way_to_read
from tmux_debug_mcp.vt.printable import terminal_json

from .parsing import Prints, Request, in_verbs
from .registry import VERBS
from .whole_output import LastPiece

DONE = 0
OTHERWISE = 1
TIMED_OUT = 124
REFUSED = 125
AWAITS_INPUT = 126
# As in a shell's `$?`. The caller dies of its signal.
INTERRUPTED = 130

# The verbs whose results begin with a confirmation.
_CONFIRMED = ("create", "send", "resize", "kill")

# What is said of output that a run can't give any more.
_GONE = (
    "tmux-debug: {:,} bytes of the output are no longer kept. For all of it, have the command "
    "write a file."
)

# The arguments that name what `wait` waits for, and what `create` and `send` wait for.
_WAIT_CONDITIONS = ("pattern", "stop_pattern", "gone", "idle_s", "port")
_CONDITIONS = ("wait_for", "port")
_WAIT_STATUSES: Mapping[str, int] = {
    Reason.EXITED: OTHERWISE,
    Reason.FLOODED: OTHERWISE,
    Reason.TIMED_OUT: TIMED_OUT,
}
_RUN_STATUSES: Mapping[str, int] = {
    Reason.TIMED_OUT: TIMED_OUT,
    Reason.RUNNING: TIMED_OUT,
    Reason.HELD: TIMED_OUT,
    Reason.LATE: TIMED_OUT,
    Reason.SHELL_INTERRUPTED: TIMED_OUT,
    Reason.INPUT: AWAITS_INPUT,
    Reason.SHELL_STARTED: AWAITS_INPUT,
}


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints, each text with its last line feed, and its exit status."""

    out: str
    err: str
    status: int


def refused(sentence: str) -> Output:
    """Return what a command that can't be done prints."""
    return Output("", f"tmux-debug: {sentence}\n", REFUSED)


async def send(caller: Caller, output: Output) -> None:
    """Send what a command prints to its caller."""
    if output.out:
        await caller.send({"out": output.out})
    if output.err:
        await caller.send({"err": output.err})
    await caller.send({"exit": output.status})


def output_of(
    request: Request, result: types.CallToolResult, last: LastPiece | None = None
) -> Output:
    """Return what a command prints for a result, and how it ends.

    `last` is for the output of a run, if all before it has been sent.
    """
    status = _status(request, result)
    if request.prints is Prints.JSON:
        line = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return Output(terminal_json(orjson.dumps(line)) + "\n", "", status)
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    texts = _with_flags(request, result.meta or {}, texts)
    if request.verb == "call":  # in the words of tools, as typed
        return refused("\n".join(texts)) if result.is_error else Output(_lines(texts), "", status)
    verb = VERBS[request.verb]
    if result.is_error:
        return refused(in_verbs("\n".join(texts), verb))
    if request.verb == "list":
        [rows] = texts
        if rows.startswith("["):
            return printed(request, _lines(texts), [], status)
        # Without panes, the result is a sentence.
        return printed(request, "[]\n", [in_verbs(rows, verb)], status)
    *shown, status_line = texts
    new_from = (result.meta or {}).get("new_from")
    if new_from is not None:
        status_line = status_line.replace(new_output(new_from), new_output(new_from, "--since"))
    complaints, remarks = [], [status_line]
    if request.verb == "run":  # what the command printed, byte for byte
        text = last.text if last else "".join(shown)
        if last and last.gone_bytes:
            complaints = [_GONE.format(last.gone_bytes)]
        return printed(request, text, remarks, status, complaints)
    if request.verb in _CONFIRMED:
        confirmation, *shown = shown
        if (result.meta or {}).get("reason") == NOT_SENT:
            complaints = [confirmation]
        elif _says_more(request, confirmation):
            remarks = [confirmation, status_line]
    return printed(request, _lines(shown), remarks, status, complaints)


def printed(
    request: Request, text: str, remarks: list[str], status: int, complaints: Sequence[str] = ()
) -> Output:
    """Return what a command prints where: its text, what is wrong with it, and remarks on it."""
    match request.prints:
        case Prints.TEXT:
            return Output(text, _lines(complaints), status)
        case Prints.ERRORS:
            return Output("", _lines([*complaints, *remarks]) if status else "", status)
        case Prints.STATUS:
            return Output(_lines([text, *complaints, *remarks]), "", status)
        case _:
            return Output(text, _lines([*complaints, *remarks]), status)


def _says_more(request: Request, confirmation: str) -> bool:
    """Tell whether a confirmation says what neither the exit status nor the status line does."""
    if request.verb not in ("send", "resize"):
        return False
    return confirmation != f"Sent keys to pane '{request.arguments['pane_id']}'"


def _with_flags(request: Request, facts: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
    """Return a result's texts, where our notes name a verb and its flags instead of a tool.

    `facts` are the result's `_meta`, which tells these notes from lines of programs.
    """
    gaps = facts.get("gaps", ())
    if not gaps or request.verb == "call":
        return list(texts)
    # All texts but a confirmation and the status line are from panes.
    first = 1 if request.verb in ("create", "send", "resize") else 0
    shown = texts[first:-1]
    named = request.arguments.get("pane_id", request.arguments.get("name"))
    panes = [facts["pane_id"]]
    if isinstance(named, str) and not named.startswith("-"):
        panes = [named]
    elif len(shown) > 1:  # nothing happened in any of them
        panes = facts["panes"]
    with_flags = []
    first_line = 0
    for text, pane in zip(shown, panes, strict=True):
        lines = text.split("\n")
        for gap in gaps:
            index, since, count = gap["line"] - first_line, gap["since"], gap["lines"]
            if 0 <= index < len(lines):
                capture = f"tmux-debug capture {shlex.quote(pane)} --since {since} --lines {count}"
                lines[index] = lines[index].replace(way_to_read(since, count), capture)
        first_line += len(lines)
        with_flags.append("\n".join(lines))
    return [*texts[:first], *with_flags, *texts[-1:]]


def _lines(texts: Sequence[str]) -> str:
    """Return the texts that are not empty, joined, each ending with a line feed."""
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts if text)


def _status(request: Request, result: types.CallToolResult) -> int:
    if result.is_error:
        return REFUSED
    facts: Mapping[str, Any] = result.meta or {}
    reason, given = facts.get("reason", ""), request.arguments
    if request.tool == VERBS["run"].tool:
        exit_code = facts.get("exit_code")
        return _RUN_STATUSES.get(reason, REFUSED if exit_code is None else exit_code)
    if reason in (NOT_SENT, Reason.STOPPED):
        return OTHERWISE
    is_wait = request.tool == VERBS["wait"].tool
    conditions = _WAIT_CONDITIONS if is_wait else _CONDITIONS
    names_condition = not given.keys().isdisjoint(conditions)
    if reason == Reason.INPUT and names_condition:
        return OTHERWISE  # no line matches, and none can any more
    if names_condition or (is_wait and reason != Reason.EXITED):
        return _WAIT_STATUSES.get(reason, DONE)
    # Without a condition, a wait is also for the end, and create and send only wait briefly for
    # output.
    is_create = request.tool == VERBS["create"].tool
    has_failed = facts.get("status") == "exited" and facts.get("exit_code") != 0
    return OTHERWISE if is_create and has_failed else DONE
