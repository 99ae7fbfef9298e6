"""What `tmux_capture_pane` reads: a pane's last lines, its screen, its log; or several in order."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import NamedTuple

from tmux_debug_mcp.errors import ArgumentError, CursorError, PaneLostError
from tmux_debug_mcp.logs.excerpts import Excerpt, cut_in_the_middle, joined, note
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.logs.reading import LogLine, last_lines_at, read_forward, read_screen
from tmux_debug_mcp.logs.searching import lines_around, search
from tmux_debug_mcp.panes.caller_session import CallerSession, PaneView, ShownScreen
from tmux_debug_mcp.panes.capturing import capture_screen_rows
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import Readable, confirmed_state, last_lines

from .arguments import MAX_TEXT_LINES
from .debug_arguments import LAST_LINES, MATCHING_LINES, CapturePane
from .results import meta, screen_remark, status
from .toolset import Answer

# Limit for text that was asked for.
MAX_CHARACTERS = 16_000
# How far apart what two panes print must be for the order of their logs to be that of the programs.
_PASSED_ON_S = 0.001


async def capture(engine: Engine, session: CallerSession, arguments: CapturePane) -> Answer:
    """Return what a call of the tool asks for.

    Raises:
        ArgumentError: Arguments can't be combined.
        CursorError: The log has not reached the cursor.
        PaneNotFoundError: There is no such pane.
    """
    _check(arguments)
    if not isinstance(arguments.pane_id, str):
        return await _in_order(engine, session, arguments, arguments.pane_id)
    async with engine.open_readable(arguments.pane_id) as pane:
        if arguments.pattern is not None:
            return await _matching(pane, session, arguments, arguments.pattern)
        if arguments.since is not None:
            return await _since(pane, session, arguments, arguments.since)
        if arguments.view == "screen":
            return await _screen(pane, session)
        return await _last_lines(pane, session, arguments)


def _check(arguments: CapturePane) -> None:
    """Check that what is given goes together."""
    given = [
        field.name
        for field in fields(arguments)
        if field.name != "pane_id" and getattr(arguments, field.name) != field.default
    ]
    for other in given if "view" in given else ():
        if other != "view" and (arguments.view, other) != ("ansi", "lines"):
            raise ArgumentError(
                f"Parameter 'view' is '{arguments.view}', which shows the pane as it is now. Omit "
                f"it, or parameter '{other}'."
            )
    if "context" in given and "pattern" not in given:
        raise ArgumentError(
            "Parameter 'context' is for lines that match. Give parameter 'pattern', too."
        )
    if isinstance(arguments.pane_id, str):
        return
    for other in ("since", "view"):
        if other in given:
            raise ArgumentError(f"Parameter '{other}' is for one pane. Give one pane, or omit it.")


async def _last_lines(pane: Readable, session: CallerSession, arguments: CapturePane) -> Answer:
    # The state first: if it says that the program has ended, the capture includes its last line.
    state = await confirmed_state(pane)
    lines = min(arguments.lines or LAST_LINES, MAX_TEXT_LINES)
    is_coloured = arguments.view == "ansi"
    text = await last_lines(pane, lines, MAX_CHARACTERS, ansi=is_coloured)
    ending = await pane.ending() if isinstance(pane, Pane) else None
    if ending and ending.is_lost:  # the capture has found that tmux no longer has it
        state = ending
    remarks = []
    if isinstance(pane, Pane) and await pane.is_drawn_on():
        remarks.append(screen_remark((pane.log.columns, pane.log.rows)))
    excerpt = cut_in_the_middle(Excerpt(text.split("\n")), MAX_CHARACTERS)
    shown = PaneView(state.cursor, run=session.news(pane))
    return _captured(pane, state, excerpt, shown, *remarks)


async def _screen(pane: Readable, session: CallerSession) -> Answer:
    """Return the rows of the screen as a person sees them, or saw them if the pane is gone."""
    state = await confirmed_state(pane)
    run = session.news(pane)
    size = screen_remark((pane.log.columns, pane.log.rows))
    if isinstance(pane, Pane):
        with contextlib.suppress(PaneLostError):
            screen = await capture_screen_rows(pane)
            column, row = screen.cursor
            size = f"{screen_remark(screen.size)}, cursor at row {row + 1}, column {column + 1}"
            seen = ShownScreen(state.cursor, pane.clock.now(), screen)
            rows = _all_rows(screen.rows, screen.size[1])
            return _captured(pane, state, rows, PaneView(state.cursor, seen, run), size)
    rows = _all_rows((await read_screen(pane.log, state.cursor)).split("\n"), pane.log.rows)
    return _captured(pane, state, rows, PaneView(run=run), size)


def _all_rows(rows: Sequence[str], height: int) -> Excerpt:
    """Return the rows of a screen, blank ones at its end too, each with a line feed."""
    return Excerpt([*rows, *[""] * (height - len(rows) + 1)])


async def _since(
    pane: Readable, session: CallerSession, arguments: CapturePane, since: int
) -> Answer:
    state = await confirmed_state(pane)
    await pane.ensure_log_writer()
    await check_cursor(pane, since)
    end = max(since, state.cursor)
    lines = None if arguments.lines is None else min(arguments.lines, MAX_TEXT_LINES)
    piece = await read_forward(pane.log, since, end, MAX_CHARACTERS, lines)
    # What a program left unfinished stays so once it has ended.
    cursor = end if state.is_final and not piece.remaining_bytes else piece.end
    remarks = []
    if piece.start > since:
        remarks.append(f"{piece.start - since} bytes are no longer kept")
    if piece.remaining_bytes:
        remarks.append(f"{piece.remaining_bytes} more bytes to read")
    excerpt = Excerpt(piece.marked_text.split("\n"), piece.remaining_bytes)
    shown = PaneView(cursor, run=session.news(pane))
    answer = _captured(pane, state, excerpt, shown, *remarks, cursor=cursor)
    facts = {"start_cursor": piece.start, "cursor": cursor}
    return replace(answer, meta={**answer.meta, **facts})


async def _matching(
    pane: Readable, session: CallerSession, arguments: CapturePane, pattern: str
) -> Answer:
    expression = compiled("pattern", pattern, is_for_bytes=True)
    since = arguments.since or 0
    most = min(arguments.lines or MATCHING_LINES, MAX_TEXT_LINES)
    state = await confirmed_state(pane)
    await check_cursor(pane, since)
    context = arguments.context or 0
    found = await search(pane.log, since, state.cursor, expression, most, context)
    parts = [note(f"{found.left_out} older matching lines left out")] if found.left_out else []
    for group in found.groups:
        if context and parts:
            parts.append(note("..."))
        parts.append(
            Excerpt([f"{line.start}{'-:'[found.is_match(line)]} {line.text}" for line in group])
        )
    excerpt = cut_in_the_middle(joined(*parts), MAX_CHARACTERS)
    remark = _count(len(found.matches), most)
    return _captured(pane, state, excerpt, PaneView(run=session.news(pane)), remark)


def _count(count: int, most: int) -> str:
    """Return the remark on how many lines match."""
    if count == most:
        return (
            "the newest line that matches" if count == 1 else f"the newest {count} lines that match"
        )
    return {0: "no line matches", 1: "1 line matches"}.get(count, f"{count} lines match")


class Printed(NamedTuple):
    """A line that a pane has printed, between two moments in seconds since the epoch."""

    after: float
    at: float
    name: str
    start: int
    text: str

    def shown(self, width: int, *, is_sure: bool) -> str:
        """Return the line behind its time and its pane, whose names take so many columns."""
        moment = datetime.fromtimestamp(self.at).astimezone()
        time = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"
        return f"{'' if is_sure else '~'}{time} {self.name:{width}} {self.text}".rstrip()


async def _in_order(
    engine: Engine, session: CallerSession, arguments: CapturePane, names: Sequence[str]
) -> Answer:
    """Return the newest lines of several panes in the order in which they were printed."""
    async with contextlib.AsyncExitStack() as stack:
        panes: dict[Readable, str] = {}
        for name in names:
            panes.setdefault(await stack.enter_async_context(engine.open_readable(name)), name)
        states = {pane: await confirmed_state(pane) for pane in panes}
        ends = {pane: state.cursor for pane, state in states.items()}
        excerpt, remarks = await _merged(panes, ends, arguments, engine.clock.ahead())
    shown = {pane: PaneView(run=session.news(pane)) for pane in panes}
    statuses = [status(pane, state, shown[pane]) for pane, state in states.items()]
    first = next(iter(panes))
    facts = {**meta(first, states[first], excerpt), "panes": [*panes.values()]}
    if remarks:
        statuses.insert(0, f"[{'; '.join(remarks)}]")
    about = [pane.id for pane in panes]
    return Answer([excerpt.text, " ".join(statuses)], facts, about, excerpt.text, shown=shown)


async def _merged(
    panes: Mapping[Readable, str],
    ends: Mapping[Readable, int],
    arguments: CapturePane,
    ahead_s: float,
) -> tuple[Excerpt, list[str]]:
    """Return the newest lines that are asked for, and remarks on them.

    `ahead_s` is what `Clock.ahead` returns, once for all, so that panes can be compared.
    """
    remarks, starts = [], [0]
    began = {pane: pane.log.began_at(ahead_s) for pane in panes}
    if arguments.pattern is None:
        most = min(arguments.lines or LAST_LINES, MAX_TEXT_LINES)
        printed = []
        for pane, name in panes.items():
            lines = await last_lines_at(pane.log, ends[pane], MAX_CHARACTERS, most)
            printed += _printed(pane.log, began[pane], name, lines)
        printed = sorted(printed, key=lambda line: line.at)[-most:]
    else:
        expression = compiled("pattern", arguments.pattern, is_for_bytes=True)
        most = min(arguments.lines or MATCHING_LINES, MAX_TEXT_LINES)
        printed = []
        for pane, name in panes.items():
            found = await search(pane.log, 0, ends[pane], expression, most)
            printed += _printed(pane.log, began[pane], name, found.lines)
        printed = sorted(printed, key=lambda line: line.at)[-most:]
        remarks.append(_count(len(printed), most))
        if arguments.context:
            printed, starts = await _with_neighbours(panes, began, ends, printed, arguments.context)
    unsure = unsure_of(printed)
    if unsure:
        remarks.append("~: may have come before those above it")
    width = max((len(line.name) for line in printed), default=0)
    shown = [line.shown(width, is_sure=place not in unsure) for place, line in enumerate(printed)]
    for start in reversed(starts[1:]):
        shown[start:start] = note("...").marked
    return _newest(shown), remarks


def _printed(log: Log, began_at: float, name: str, lines: Sequence[LogLine]) -> list[Printed]:
    """Return lines with the times between which they were complete."""
    log.note_growth()
    printed = []
    for line in lines:
        after_s, at_s = log.timing.span_of(line.end)
        printed.append(Printed(began_at + after_s, began_at + at_s, name, line.start, line.text))
    return printed


def unsure_of(lines: Sequence[Printed]) -> set[int]:
    """Return which lines may have come before one of another pane that stands before them.

    They are given in the order of the time by which they were complete, and returned by number.
    What two panes print within a millisecond may be passed on to their logs in any order.
    """
    unsure: set[int] = set()
    latest: dict[str, float] = {}
    for number, line in enumerate(lines):
        after = line.after - _PASSED_ON_S
        if any(at >= after for name, at in latest.items() if name != line.name):
            unsure.add(number)
        latest[line.name] = line.at
    return unsure


async def _with_neighbours(
    panes: Mapping[Readable, str],
    began: Mapping[Readable, float],
    ends: Mapping[Readable, int],
    matches: Sequence[Printed],
    context: int,
) -> tuple[list[Printed], list[int]]:
    """Return the newest of lines that match with so many lines before and after each, of all panes.

    Also return where groups of lines begin between which there are others.
    """
    near: dict[tuple[str, int], Printed] = {}
    wanted: set[tuple[str, int]] = set()
    size = 0
    for match in reversed(matches):
        for pane, name in panes.items():
            log = pane.log
            cursor = match.start
            if name != match.name:
                cursor = log.timing.cursor_at(match.at - began[pane])
            lines = await lines_around(log, cursor, ends[pane], context)
            near |= {
                (line.name, line.start): line for line in _printed(log, began[pane], name, lines)
            }
        wanted.add((match.name, match.start))
        size += len(match.text) * (1 + 2 * context)
        if size > MAX_CHARACTERS:
            break
    ordered = sorted(near.values(), key=lambda line: (line.at, line.name, line.start))
    places = [place for place, line in enumerate(ordered) if (line.name, line.start) in wanted]
    shown = sorted(
        {
            other
            for place in places
            for other in range(max(0, place - context), place + context + 1)
            if other < len(ordered)
        }
    )
    starts = [
        number for number, place in enumerate(shown) if not number or shown[number - 1] != place - 1
    ]
    return [ordered[place] for place in shown], starts


def _newest(lines: Sequence[str]) -> Excerpt:
    """Return the newest of lines, as many as a result has room for."""
    room, count = MAX_CHARACTERS, 0
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        count += 1
    older, newest = lines[: len(lines) - count], lines[len(lines) - count :]
    if not older:
        return Excerpt(newest)
    cut_bytes = sum(len(line.encode()) + 1 for line in older)
    return joined(note("older lines left out"), Excerpt(newest, cut_bytes))


def _captured(
    pane: Readable,
    state: State,
    excerpt: Excerpt,
    shown: PaneView,
    *remarks: str,
    cursor: int | None = None,
) -> Answer:
    text = excerpt.text
    blocks = [text, status(pane, state, shown, *remarks, cursor=cursor)]
    return Answer(blocks, meta(pane, state, excerpt), pane.id, text, shown={pane: shown})


async def check_cursor(pane: Readable, since: int) -> None:
    """Check that a pane's log has reached a cursor.

    Raises:
        CursorError: It has not.
    """
    if since > pane.log.size and isinstance(pane, Pane):
        with contextlib.suppress(PaneLostError):
            await pane.drain()  # so that the error counts all that was printed
    if since > pane.log.size:
        state = await pane.state()
        raise CursorError(since, state.cursor)
