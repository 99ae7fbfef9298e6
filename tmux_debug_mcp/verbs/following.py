"""`wait --follow`: a line for each thing that happens in panes, for shells in the background.

However fast a pane prints, it gets 10 lines a second at most. A pane that prints faster than it can
be followed is followed from where it is now, and the next line says what was passed over.
"""

from collections.abc import Sequence
from functools import partial

import anyio

from tmux_debug_mcp.errors import ArgumentError, CursorError, ToolError, first_of
from tmux_debug_mcp.logs.matching import Matcher
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.observing import since_cursor, since_last_keys
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.panes.waiting import Begin, Conditions, wait
from tmux_debug_mcp.sockets.listener import Caller
from tmux_debug_mcp.tools.arguments import Parser, parameters_of
from tmux_debug_mcp.tools.debug_arguments import Wait
from tmux_debug_mcp.tools.records import Call, Records
from tmux_debug_mcp.tools.results import shown_name
from tmux_debug_mcp.tools.toolset import Answer

from .answers import DONE, OTHERWISE, TIMED_OUT, Output, refused
from .parsing import Request, in_verbs
from .registry import VERBS

# The time between two lines about one pane.
_INTERVAL_S = 0.1
# A pane that is further ahead is followed from this far behind its end.
_MAX_BEHIND_BYTES = 1 << 16
# One wait; another one follows it.
_WAIT_S = 3600.0
_MAX_LINE_CHARACTERS = 500
# Why it ended, for the record.
_REASONS = {
    DONE: "done",
    OTHERWISE: Reason.STOPPED,
    TIMED_OUT: Reason.TIMED_OUT,
}


async def answer(
    engine: Engine, records: Records, caller: Caller, request: Request, program: str
) -> Output:
    """Send events until there are no more, and put that on record; return how it ended."""
    status = DONE

    async def followed() -> Answer:
        nonlocal status
        parser = Parser(VERBS["wait"].tool, parameters_of(Wait))
        given = Wait(**parser.parse(request.arguments))
        names = [given.pane_id] if isinstance(given.pane_id, str) else given.pane_id
        if given.since is not None and len(names) > 1:
            raise ArgumentError("--since is a cursor of one pane. Give one pane, or leave it out.")
        if given.idle_s is not None:
            raise ArgumentError("--idle is for a single wait. Leave it out, or leave out --follow.")
        panes = [await engine.find(name) for name in dict.fromkeys(names)]
        for pane in panes:
            if given.since is not None and given.since > pane.log.size:
                raise CursorError(given.since, pane.log.size)
        timeout_s = given.timeout_s if "timeout_s" in request.arguments else None
        status = await follow(caller, panes, given, timeout_s)
        return Answer([], outcome={"reason": _REASONS[status]})

    call = Call(request.tool, {**request.arguments, "follow": True}, program)
    try:
        await records.answered(call, followed)
    except ToolError as error:
        return refused(in_verbs(str(error), VERBS[request.verb]))
    return Output("", "", status)


async def follow(
    caller: Caller, panes: Sequence[Pane], given: Wait, timeout_s: float | None
) -> int:
    """Send a line for each event until all panes have ended; return the exit status.

    Without `timeout_s`, there is no end; the one that is given is ignored.

    Raises:
        ArgumentError: A pattern can't be used.
    """
    matcher = Matcher(given.pattern, given.stop_pattern)
    statuses: list[int] = []

    async def follow_one(pane: Pane, scope: anyio.CancelScope) -> None:
        status = await _follow_pane(caller, pane, given, matcher)
        statuses.append(status)
        if status != DONE:
            scope.cancel()

    try:
        with anyio.move_on_after(timeout_s) as timing:
            async with anyio.create_task_group() as tasks:
                for pane in panes:
                    tasks.start_soon(follow_one, pane, tasks.cancel_scope)
    except BaseExceptionGroup as group:
        raise first_of(group) from None
    if timing.cancelled_caught:
        return TIMED_OUT
    return max(statuses)


async def _follow_pane(caller: Caller, pane: Pane, given: Wait, matcher: Matcher) -> int:
    """Send a pane's events until it has ended or `stop_pattern` matches."""
    conditions = Conditions(given.pattern, given.stop_pattern, is_for_input=True, timeout_s=_WAIT_S)
    begin: Begin = since_last_keys
    if given.since is not None:
        begin = partial(since_cursor, cursor=given.since)
    input_at = -1  # the cursor where it was last told that something is awaited
    passed_bytes = 0
    told_at = 0.0

    while True:
        size = pane.log.size
        [report] = await wait([pane], conditions, begin)
        reason, end = report.reason, report.end
        if reason is Reason.TIMED_OUT:
            continue
        if reason is not Reason.INPUT or end != input_at:
            await anyio.sleep_until(told_at + _INTERVAL_S)
            told_at = anyio.current_time()
            line = _line(pane, report, matcher, passed_bytes + report.unseen_bytes)
            await caller.send({"out": f"{line}\n"})
            passed_bytes = 0
        if reason is Reason.EXITED:
            return DONE
        if reason is Reason.STOPPED:
            return OTHERWISE
        newest = pane.log.size - _MAX_BEHIND_BYTES
        passed_bytes += max(0, newest - end)
        begin = partial(since_cursor, cursor=max(end, newest))
        if reason is Reason.INPUT:  # which is news again once it has printed more
            input_at = end
            async with pane.subscribe() as subscription:
                while pane.log.size == size and not await pane.ending():
                    await subscription.wait(_WAIT_S)


def _line(pane: Pane, report: Report, matcher: Matcher, passed_bytes: int) -> str:
    name = shown_name(pane)
    remark = f"; {passed_bytes} bytes were passed over" if passed_bytes else ""
    match report.reason:
        case Reason.MATCHED | Reason.STOPPED:
            lines = report.excerpt.text.split("\n")
            matching = [line for line in lines if matcher.first([line])] or lines
            line = matching[-1][:_MAX_LINE_CHARACTERS]
            return f"[{name} {report.reason} at {report.end}{remark}] {line}"
        case Reason.INPUT:
            awaits = report.state.awaits
            return f"[{name} awaits {awaits.value if awaits else 'input'}{remark}]"
        case _:
            return f"[{name} {report.state}{remark}]"
