"""What goes on in panes, as it comes: `wait --follow` and `capture --follow`.

The former tells each event in a line, for shells in the background. However fast a pane prints, it
gets at most 10 lines a second. If it prints too fast to be followed, output is skipped, and the
next line says how much. With `--every`, all panes together get a line in that time: the newest
event, and how many it stands for. A follower that was killed goes on from the cursor in the last
line that it got.

The latter gives all lines of a pane.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio

from tmux_debug_mcp.errors import ArgumentError, CursorError, ToolError, first_of
from tmux_debug_mcp.logs.matching import Matcher, compiled
from tmux_debug_mcp.logs.pane_text import PIECE_BYTES, PaneText
from tmux_debug_mcp.logs.reading import last_lines_at
from tmux_debug_mcp.logs.seen import printed
from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.observing import since_cursor, since_last_keys
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import shown_name
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.panes.waiting import Begin, Conditions, wait
from tmux_debug_mcp.sockets.listener import Caller, CallerGoneError
from tmux_debug_mcp.tools.arguments import ArgumentsParser, parameters_of
from tmux_debug_mcp.tools.captures import MAX_CHARACTERS
from tmux_debug_mcp.tools.debug_arguments import CapturePane, Wait
from tmux_debug_mcp.tools.records import Call, Records
from tmux_debug_mcp.tools.toolset import Answer, Outcome
from tmux_debug_mcp.vt.rows import Gap, Line

from .printing import DONE, GONE, OTHERWISE, TIMED_OUT, Output, refused
from .registry import VERBS
from .requests import Request, in_verbs

# How many lines come first, as with tail(1).
_LAST_LINES = 10
# The time between two lines about one pane, and between two looks for more lines.
_INTERVAL_S = 0.1
# If a pane's end is further ahead, following skips to this far before it.
_MAX_BEHIND_BYTES = 1 << 16
# The length of one wait; another one follows it.
_WAIT_S = 3600.0
_MAX_LINE_CHARACTERS = 500
# Limit for sending the waiting lines to a caller that hangs up.
_HANG_UP_S = 1.0
# Why it ended, for the record.
_REASONS = {
    DONE: "done",
    OTHERWISE: Reason.STOPPED,
    TIMED_OUT: Reason.TIMED_OUT,
}


async def answer(
    engine: Engine, records: Records, caller: Caller, request: Request, program: str
) -> Output:
    """Send events or lines until there are no more, and put that on record; return how it ended."""
    status = DONE

    async def followed() -> Answer:
        nonlocal status
        if request.verb is VERBS["capture"]:
            parser = ArgumentsParser(request.tool, parameters_of(CapturePane))
            pane_id = await _send_lines(
                engine, caller, CapturePane(**parser.parse(request.arguments))
            )
            return Answer([], pane_id=pane_id)
        parser = ArgumentsParser(request.tool, parameters_of(Wait))
        given = Wait(**parser.parse(request.arguments))
        names = [given.pane_id] if isinstance(given.pane_id, str) else given.pane_id
        if given.since is not None and len(names) > 1:
            raise ArgumentError("--since is for one pane. Give one pane, or omit --since.")
        if given.idle_s is not None:
            raise ArgumentError("--idle is for a single wait. Omit it, or omit --follow.")
        panes = list(dict.fromkeys([await engine.find(name) for name in names]))
        for pane in panes:
            if given.since is not None and given.since > pane.log.size:
                raise CursorError(given.since, pane.log.size)
        timeout_s = given.timeout_s if "timeout_s" in request.arguments else None
        status = await follow(Teller(caller, request.every_s), panes, given, timeout_s)
        return Answer([], outcome=Outcome(_REASONS[status]))

    def text_for(error: ToolError) -> str:
        return error.text_for(engine.names_for(request.arguments["pane_id"]))

    call = Call(request.tool, {**request.arguments, "follow": True}, program)
    try:
        await records.answered(call, followed, text_for)
    except ToolError as error:
        return refused(in_verbs(text_for(error), request))
    return Output("", "", status)


async def _send_lines(engine: Engine, caller: Caller, given: CapturePane) -> str:
    """Send the last lines of a pane, and those that come, until it ends; return its id.

    A line is sent once the next one has begun, and not again if it is written over later.
    """
    if not isinstance(given.pane_id, str) or replace(given, lines=None, since=None) != CapturePane(
        given.pane_id
    ):
        raise ArgumentError(
            "--follow prints all lines of one pane, from --since on or the last --lines. For lines "
            "that match, use tmux-debug wait --follow --pattern."
        )
    pane = await engine.find(given.pane_id)
    log, cursor = pane.log, given.since
    if cursor is None:
        last = await last_lines_at(log, log.size, MAX_CHARACTERS, given.lines or _LAST_LINES)
        cursor = last[0].start if last else log.size
    if cursor > log.size:
        raise CursorError(cursor, log.size)
    async with pane.subscribe() as subscription:
        text = await PaneText.to_read(log, cursor, log.size)
        sent = 0  # how many of the lines that may still change
        while True:
            has_ended = await pane.ending() is not None
            while text.position < log.size:
                events, _ = await text.advance(log.size, PIECE_BYTES)
                settled = [event for event in events if isinstance(event, Line)]
                gone_bytes = sum(event.size for event in events if isinstance(event, Gap))
                if gone_bytes:
                    await caller.send({"err": f"{GONE.format(gone_bytes)}\n"})
                await caller.send({"out": printed([*settled, *text.open_lines][sent:-1])})
                sent = len(text.open_lines) - 1
            if has_ended:
                unfinished = printed(text.open_lines[-1:])
                await caller.send({"out": unfinished if unfinished != "\n" else ""})
                return pane.id
            await anyio.sleep(_INTERVAL_S)
            await subscription.wait(_WAIT_S)


@dataclass(slots=True)
class _News:
    """What to tell about a pane: an event, and how many others it stands for.

    Attributes:
        reason: Why it is told.
        what: What has happened: `matched at 4711`, `awaits input`.
        text: The line that matches; "" if none does.
        others: How many earlier matches were not told.
        passed_bytes: How much output was skipped.
    """

    pane: Pane
    reason: Reason
    what: str
    text: str = ""
    others: int = 0
    passed_bytes: int = 0

    def __str__(self) -> str:
        remarks = [f"{self.others} more before it"] if self.others else []
        remarks += [f"{self.passed_bytes} bytes were skipped"] if self.passed_bytes else []
        line = f"[{'; '.join([f'{shown_name(self.pane)} {self.what}', *remarks])}] {self.text}"
        return line.rstrip()[:_MAX_LINE_CHARACTERS]


class Teller:
    """Tells a caller what happens: at once, or at most one line every `every_s` seconds.

    A pane's news waits its turn; of several about one pane, the newest stands for all.
    """

    def __init__(self, caller: Caller, every_s: float) -> None:
        self._caller = caller
        self._every_s = every_s
        self._waiting: dict[str, _News] = {}
        self._has_news = anyio.Event()

    async def tell(self, news: _News) -> None:
        """Tell news, or keep it until its turn."""
        older = self._waiting.get(news.pane.id)  # whose turn it takes
        if older:
            news.passed_bytes += older.passed_bytes
            if news.text or not older.text:
                news.others += older.others + bool(older.text)
            else:  # what comes after a match is told with it
                news.text, news.others = older.text, older.others
                news.what = f"{older.what.partition(';')[0]}; {news.what}"
        self._waiting[news.pane.id] = news
        self._has_news.set()
        if not self._every_s:
            await self.tell_all()

    @property
    def has_to_wait(self) -> bool:
        """Whether any news is waiting to be told."""
        return bool(self._waiting)

    async def tell_all(self) -> None:
        """Tell what still waits."""
        while self._waiting:
            await self._tell_one()

    async def serve(self) -> None:
        """Tell one line after another, each in its turn."""
        while self._every_s:
            await self._has_news.wait()
            await self._tell_one()
            if not self._waiting:
                self._has_news = anyio.Event()
            await anyio.sleep(self._every_s)

    async def _tell_one(self) -> None:
        oldest = self._waiting.pop(next(iter(self._waiting)))
        await self._caller.send({"out": f"{oldest}\n"})


async def follow(
    teller: Teller, panes: Sequence[Pane], given: Wait, timeout_s: float | None
) -> int:
    """Tell each event until all panes have ended or one stops this; return the exit status.

    Without `timeout_s`, there is no time limit; `given.timeout_s` is ignored.

    Raises:
        ArgumentError: A pattern can't be used.
    """
    # Checks them, before anything is told.
    Matcher(given.pattern, given.stop_pattern, gone=given.gone)
    statuses: list[int] = []

    async def follow_one(pane: Pane, scope: anyio.CancelScope) -> None:
        status = await _follow_pane(teller, pane, given)
        statuses.append(status)
        if status != DONE or len(statuses) == len(panes):
            scope.cancel()

    try:
        with anyio.move_on_after(timeout_s) as timing:
            async with anyio.create_task_group() as tasks:
                for pane in panes:
                    tasks.start_soon(follow_one, pane, tasks.cancel_scope)
                tasks.start_soon(teller.serve)
    except BaseExceptionGroup as group:
        raise first_of(group) from None
    except anyio.get_cancelled_exc_class():
        # A caller that hangs up, as at SIGTERM, still reads the waiting lines.
        with anyio.move_on_after(_HANG_UP_S, shield=True), suppress(CallerGoneError):
            await teller.tell_all()
        raise
    await teller.tell_all()
    if timing.cancelled_caught:
        return TIMED_OUT
    return max(statuses)


async def _follow_pane(teller: Teller, pane: Pane, given: Wait) -> int:
    """Tell a pane's events until it has ended or `stop_pattern` matches."""
    conditions = Conditions(
        given.pattern, given.stop_pattern, given.gone, is_for_input=True, timeout_s=_WAIT_S
    )
    begin: Begin = since_last_keys
    if given.since is not None:
        begin = partial(since_cursor, cursor=given.since)
    session = CallerSession()
    input_at = -1  # the cursor when it was last told that something is awaited
    passed_bytes = 0
    told_at = 0.0

    while True:
        size = pane.log.size
        [report] = await wait([pane], conditions, begin, session)
        session.note(pane, report.shown)
        reason, end = report.reason, report.end
        if reason is Reason.TIMED_OUT:
            continue
        if reason in (Reason.GONE, Reason.BACK):  # which is news again only after the other one
            conditions = replace(conditions, is_back=reason is Reason.GONE)
        if reason is Reason.BACK:
            begin = partial(since_cursor, cursor=end)
            continue
        if reason is not Reason.INPUT or end != input_at:
            await anyio.sleep_until(told_at + _INTERVAL_S)
            told_at = anyio.current_time()
            news = await _news(pane, report, given, passed_bytes + report.unseen_bytes)
            if reason is Reason.MATCHED and given.stop_pattern is not None:
                news = await _stop_beside(news, report, given)
            await teller.tell(news)
            reason, passed_bytes = news.reason, 0
        if reason is Reason.EXITED:
            return DONE
        if reason is Reason.STOPPED:
            return OTHERWISE
        newest = pane.log.size - _MAX_BEHIND_BYTES
        passed_bytes += max(0, newest - end)
        begin = partial(since_cursor, cursor=max(end, newest))
        if reason is Reason.INPUT:  # which is news again only after more output
            # What is gone by now counts later.
            is_gone_due = given.gone is not None and end != input_at
            input_at = end
            most_s = pane.clock.times.gone_s if is_gone_due else math.inf
            async with pane.subscribe() as subscription:
                with pane.clock.move_on_after(most_s):
                    while pane.log.size == size and not await pane.ending():
                        await subscription.wait(_WAIT_S)


def _around_match(line: str, pattern: Any) -> str:  # noqa: ANN401  re2 has no types
    """Return a line; if it is long, without most of what precedes the match."""
    found = pattern.search(line)
    if found is None or len(line) <= _MAX_LINE_CHARACTERS:
        return line
    return line[max(0, found.start() - _MAX_LINE_CHARACTERS // 2) :]


async def _news(pane: Pane, report: Report, given: Wait, passed_bytes: int) -> _News:
    """Return what to tell: of all lines that match, the newest."""
    reason, what, text, others = report.reason, str(report.state), "", 0
    if reason is Reason.INPUT:
        what = f"awaits {report.state.awaits.value if report.state.awaits else 'input'}"
    elif reason is Reason.GONE:
        what = str(reason)
    elif reason.is_match:
        name = "pattern" if reason is Reason.MATCHED else "stop_pattern"
        text, count = await _found(pane, report, name, getattr(given, name))
        what, others = str(reason), count - 1
    return _News(pane, reason, f"{what} at {report.end}", text, others, passed_bytes)


async def _stop_beside(matched: _News, report: Report, given: Wait) -> _News:
    """Return the news of a line that stops, if one came with the matches; else `matched`."""
    pane = matched.pane
    conditions = Conditions(stop_pattern=given.stop_pattern, timeout_s=0)
    [stop] = await wait([pane], conditions, partial(since_cursor, cursor=report.start))
    if stop.reason is not Reason.STOPPED:
        return matched
    news = await _news(pane, stop, given, matched.passed_bytes)
    news.others = matched.others + (matched.text != news.text)
    return news


async def _found(pane: Pane, report: Report, name: str, given: str) -> tuple[str, int]:
    """Return the newest line of a report that matches its pattern, and how many do."""
    pattern = compiled(name, given)
    observation = await since_cursor(pane, Matcher(show=given), report.start)
    await observation.read_all(report.end)
    seen = observation.seen_now()
    lines, count = seen.lines[-1:], seen.count
    if not lines:  # it is a row of a screen
        rows = report.excerpt.text.split("\n")
        lines, count = [row for row in rows if pattern.search(row)][-1:], 1
    return _around_match("".join(lines), pattern), count
