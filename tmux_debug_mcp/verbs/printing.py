"""Results on a command line: standard output, standard error and an exit status.

Exit statuses, as in timeout(1) and env(1): 0 done; 1 it ended otherwise, or not all that was asked
for is there; 124 timed out; 125 refused or wrong; 126 `run` awaits input; 130 interrupted.
Otherwise, `run` exits with its command's exit code, 1 if that is not known.
"""

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types
import orjson

from tmux_debug_mcp.panes.reports import Reason
from tmux_debug_mcp.sockets.listener import Caller
from tmux_debug_mcp.tools.arguments import MAX_TEXT_LINES
from tmux_debug_mcp.tools.captures import MAX_CHARACTERS
from tmux_debug_mcp.tools.results import NOT_SENT, has_ended, new_output, way_to_read
from tmux_debug_mcp.tools.toolset import compact
from tmux_debug_mcp.vt.printable import terminal_json

from .registry import VERBS, Prints
from .requests import Request, in_verbs
from .whole_output import LastPiece

DONE = 0
OTHERWISE = 1
TIMED_OUT = 124
REFUSED = 125
AWAITS_INPUT = 126
# As in a shell's `$?`. The caller dies of its signal.
INTERRUPTED = 130

# What is said of output that a run or a capture can't give.
_GONE_OF_RUN = (
    "tmux-debug: {:,} bytes of the output are no longer kept. For all of it, have the command "
    "write a file."
)
GONE = "tmux-debug: {:,} bytes before this are no longer kept."
# How to read a gap, or more.
_READ = "tmux-debug capture {pane_id} --since {since} --lines {lines}"
_MORE = "tmux-debug: {:,} more bytes to read: tmux-debug capture {} --since {}"
_TOO_MUCH = (
    f"tmux-debug: This is not all: at most {MAX_TEXT_LINES:,} lines and {MAX_CHARACTERS:,} "
    "characters come at once. Ask for fewer, or read one pane in pieces with --since."
)

# Notes that only say what stands below them, such as rows of a screen.
_HEADING = re.compile(r"\[(?:screen|the last screen|then|rows? [\d, -]+)\]")

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
    Reason.QUIET: AWAITS_INPUT,
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
    facts: Mapping[str, Any] = result.meta or {}
    request = _telling_ends(request, facts)
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    lacking, status = [], REFUSED
    if not result.is_error:
        lacking = _lacking(request, facts, texts)
        status = _status(request, facts, texts[0]) or (OTHERWISE if lacking else DONE)
    if request.prints is Prints.JSON:
        line = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return Output(terminal_json(orjson.dumps(line)) + "\n", "", status)
    if request.verb.names_tool:  # in the words of tools, as typed
        return refused("\n".join(texts)) if result.is_error else Output(_lines(texts), "", status)
    if result.is_error:
        return refused(in_verbs("\n".join(texts), request))
    if request.verb is VERBS["list"]:
        return _listed(request, texts[0], status)
    confirmation = texts.pop(0) if request.verb.confirms else ""
    *shown, status_line = texts
    shown, notes = _shown(request, facts, shown)
    new_from = facts.get("new_from")
    if new_from is not None:
        status_line = status_line.replace(new_output(new_from), new_output(new_from, "--since"))
    complaints, remarks = [*notes, *lacking], [status_line]
    if request.verb is VERBS["run"]:  # what the command printed, byte for byte
        if last is None:
            text = _lines(shown) if "show" in request.arguments else "".join(shown)
            return printed(request, text, remarks, status, complaints)
        gone = [_GONE_OF_RUN.format(last.gone_bytes)] if last.gone_bytes else []
        return printed(request, last.text, remarks, status, gone)
    if request.verb is VERBS["resize"] and "show" not in request.arguments:
        return printed(request, "", remarks, status)
    # What neither the exit status nor the status line says.
    is_plain = confirmation == f"Sent keys to pane '{request.arguments.get('pane_id')}'"
    if facts.get("reason") == NOT_SENT:
        complaints.append(confirmation)
    elif request.tool == VERBS["send"].tool and not is_plain:
        remarks = [confirmation, status_line]
    return printed(request, _lines(shown), remarks, status, complaints)


def _telling_ends(request: Request, facts: Mapping[str, Any]) -> Request:
    """Return a request of a script in a pane as one that does or does not print the status."""
    if request.prints is not Prints.ENDS:
        return request
    has_ended = facts.get("status") == "exited" and request.verb.may_end
    return replace(request, prints=Prints.ALL if has_ended else Prints.TEXT)


def _listed(request: Request, text: str, status: int) -> Output:
    """Return what `list` prints: rows as JSON, and how many it leaves out."""
    if not text.startswith("["):  # without panes, the result is a sentence
        return printed(request, "[]\n", [in_verbs(text, request)], status)
    rows = orjson.loads(text)
    listed = [row for row in rows if request.lists_all or not has_ended(row)]
    left_out = len(rows) - len(listed)
    ended = "1 pane has ended" if left_out == 1 else f"{left_out} panes have ended"
    remarks = [f"{ended}: see tmux-debug list --all."] if left_out else []
    return printed(request, f"{compact(listed)}\n", remarks, status)


def printed(
    request: Request, text: str, remarks: list[str], status: int, complaints: Sequence[str] = ()
) -> Output:
    """Return what a command prints where: its text, what is wrong with it, and remarks on it."""
    match request.prints:
        case Prints.TEXT | Prints.ENDS:
            return Output(text, _lines(complaints), status)
        case Prints.ERRORS:
            return Output("", _lines([*complaints, *remarks]) if status else "", status)
        case Prints.STATUS:
            return Output(_lines([text, *complaints, *remarks]), "", status)
        case _:
            return Output(text, _lines([*complaints, *remarks]), status)


def _shown(
    request: Request, facts: Mapping[str, Any], texts: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the texts of panes as they are printed, and notes of ours that are told elsewhere.

    `facts` are the result's `_meta`, which tells our notes from lines of programs. Notes of gaps
    name a verb and its flags instead of a tool. A program that reads the output takes notes for
    lines, so it is told where they stood, unless they only head what is below them. They stay where
    people read, and in what tells what has happened, such as which rows of a screen have changed.
    """
    asks_for_lines = request.verb in (VERBS["run"], VERBS["capture"]) or "show" in request.arguments
    stay = request.is_for_people or not asks_for_lines or "context" in request.arguments
    elsewhere = () if stay else facts.get("marked_lines", ())
    ways = {
        gap["line"]: (way_to_read(gap["since"], gap["lines"]), _READ.format(**gap))
        for gap in facts.get("gaps", ())
    }
    shown: list[str] = []
    notes: list[str] = []
    numbers, count = itertools.count(), 0
    for text in texts:
        lines = []
        for line, number in zip(text.split("\n"), numbers, strict=False):
            told = line.replace(*ways[number]) if number in ways else line
            if number not in elsewhere:
                lines.append(told)
                count += bool(text)
            elif not _HEADING.fullmatch(line):
                notes.append(f"after line {count}: {told}" if count else told)
        shown.append("\n".join(lines))
    return shown, notes


def _lacking(request: Request, facts: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
    """Return what a capture lacks of the lines that were asked for; nothing if it has them all."""
    if request.tool != VERBS["capture"].tool:
        return []
    given, cut_bytes = request.arguments, facts.get("cut_bytes", 0)
    text, wanted, since = texts[0], given.get("lines"), given.get("since")
    notes = len(facts.get("marked_lines", ()))
    count = text.count("\n") + (text[-1:] not in ("", "\n")) - notes
    is_search = "pattern" in given
    if since is None or is_search:
        is_limited = wanted is not None and wanted > MAX_TEXT_LINES <= count
        has_older = is_search and "context" not in given and notes > 0
        return [_TOO_MUCH] if cut_bytes or is_limited or has_older else []
    gone_bytes = facts["start_cursor"] - since
    lacking = [GONE.format(gone_bytes)] if gone_bytes > 0 else []
    if cut_bytes and (wanted is None or count < wanted):
        pane = shlex.quote(given["pane_id"])
        lacking.append(_MORE.format(cut_bytes, pane, facts["cursor"]))
    return lacking


def _lines(texts: Sequence[str]) -> str:
    """Return the texts that are not empty, joined, each ending with a line feed."""
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts if text)


def _status(request: Request, facts: Mapping[str, Any], text: str) -> int:
    reason, given = facts.get("reason", ""), request.arguments
    if request.tool == VERBS["capture"].tool:  # as for grep(1)
        return OTHERWISE if "pattern" in given and not text else DONE
    if request.tool == VERBS["run"].tool:
        exit_code = facts.get("exit_code")
        return _RUN_STATUSES.get(reason, OTHERWISE if exit_code is None else exit_code)
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
