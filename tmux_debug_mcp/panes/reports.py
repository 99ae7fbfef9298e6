"""Reports: what was seen of a pane when a wait ended, and the text that shows it.

A report shows the lines that were printed, and after them the screen if a program draws on it. If
there were several steps, it also shows the rows that appeared on the screen after each. Nothing is
shown twice: what was drawn does not count as lines, and of a screen that the caller was shown, only
the changed rows appear. A program that has crashed leaves no screen, so its last one precedes what
it printed then.

Making a report does not count as showing it: it may never reach the caller.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby, pairwise
from operator import itemgetter

from tmux_debug_mcp.errors import PaneLostError, head
from tmux_debug_mcp.logs.excerpts import (
    NOTHING,
    Excerpt,
    cut_in_the_middle,
    excerpt_of,
    folded,
    gap,
    joined,
    newest_lines,
    note,
    without_blank_ends,
)
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.logs.reading import (
    clean_text,
    end_of_line,
    lasting_cursors,
    lasting_text,
    read_abridged,
)
from tmux_debug_mcp.logs.searching import matching_lines
from tmux_debug_mcp.turns import Turns
from tmux_debug_mcp.vt.captured import ScreenRows

from .capturing import capture_screen_rows, screen_rows_at, screens_at
from .looking.activity import Activity
from .looking.state import State
from .observing import Observation
from .pane import Pane, ScreenAt
from .sessions import NOTHING_SHOWN, Shown, ShownScreen

# Limits for the text of an observation: if a condition was given, if none was, and for each further
# step of keys.
MAX_ASKED_CHARACTERS = 4_000
MAX_UNASKED_CHARACTERS = 1_000
STEP_CHARACTERS = 200
# The limit for the text of the highlighted row.
_MAX_HIGHLIGHT_CHARACTERS = 40
_FRAME = " |│┃║"
# At most this many lines that match `show` are shown.
MAX_SHOWN_LINES = 50
# Many parts are read as one if they have at most this much in all.
_TOGETHER_BYTES = 1 << 16
# How far back to look for the beginning of the line that a step was typed in.
_MAX_LINE_BYTES = 4096

# The work of finding the line of a step, in units of `Turns`: some microseconds.
_STEP_WORK = 1 << 4
# Of this many steps at most, the newest, screens are worked out.
_MAX_STEPS = 50

_EARLIER_SCREENS = note("earlier screens left out")
_THEN = note("then")

# An excerpt, and the cursor of what it shows.
Placed = tuple[int, Excerpt]


class Reason(StrEnum):
    """Why a wait or a run is over.

    Attributes:
        INPUT: The program awaits something; no pattern can match before it gets it.
        EXITED: The program has ended, or the pane is gone.
        TIMED_OUT: The time is over. In a run, an interrupt has then ended the command.

    Of waits:
        MATCHED: A line matches `pattern`.
        STOPPED: A line matches `stop_pattern`.
        IDLE: The pane was idle for `idle_s`.
        REST: The pane is at rest.
        LISTENS: A process of the pane listens on `port`.
        FLOODED: More was printed than the log keeps, and no pattern was given.

    Of runs:
        DONE: The command has ended by itself.
        INTERRUPTED: Somebody else interrupted the command.
        RUNNING: Time ran out, and the command goes on despite interrupts.
        HELD: Time ran out, and a person has the keyboard, so the command was not interrupted.
        LATE: Time ran out. The command has ended, but its last output is not in the log yet.
        GIVEN_UP: The shell gave the command up, because of an error in it.
        SHELL_ENDED: The shell that ran the command, inside another one, has ended.
        REPLACED: The shell has replaced itself with a program, by `exec`.
        SHELL_STARTED: The command is, or has started, a shell that is now at its prompt.
        SHELL_INTERRUPTED: The same, but time ran out, so we may have interrupted the shell's start.
    """

    INPUT = "input"
    EXITED = "exited"
    TIMED_OUT = "timed_out"

    MATCHED = "matched"
    STOPPED = "stopped"
    IDLE = "idle"
    REST = "rest"
    LISTENS = "listens"
    FLOODED = "flooded"

    DONE = "done"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    HELD = "held"
    LATE = "late"
    GIVEN_UP = "given_up"
    SHELL_ENDED = "shell_ended"
    REPLACED = "replaced"
    SHELL_STARTED = "shell_started"
    SHELL_INTERRUPTED = "shell_interrupted"

    @property
    def is_match(self) -> bool:
        """Whether a pattern matches."""
        return self in (Reason.MATCHED, Reason.STOPPED)

    @property
    def leaves_shell(self) -> bool:
        """Whether the command of a run has left a shell at a prompt."""
        return self in (Reason.SHELL_STARTED, Reason.SHELL_INTERRUPTED)

    @property
    def leaves_command(self) -> bool:
        """Whether the command of a run goes on, or its end is not known yet."""
        return self.leaves_shell or self in _GOES_ON


_GOES_ON = (Reason.INPUT, Reason.RUNNING, Reason.HELD, Reason.LATE)


@dataclass(frozen=True, slots=True)
class Shows:
    """What a report shows.

    Attributes:
        max_characters: The limit for its text.
        advice: How to read output that is left out: `{cursor}` stands for where it begins,
            `{lines}` for its number of lines.
        pattern: Show only lines and rows that match this regular expression; None for all.
    """

    max_characters: int = MAX_ASKED_CHARACTERS
    advice: str = ""
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class OldMatch:
    """A match in what the caller had been shown before the call.

    Attributes:
        age_s: How long before the call it was printed; for a row of the screen, shown.
        is_row: It is a row of the screen.
        new_from: The cursor where output begins that the caller has not been shown.
    """

    age_s: float
    is_row: bool
    new_from: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a wait saw first, or how a run came out, and what was printed or shown until then.

    Attributes:
        reason: Why it is over.
        pane: The pane.
        state: The pane's state then.
        excerpt: What was printed, and the screen where a program draws on it. A run leaves it empty
            for its caller to read, unless the text is in no log.
        start: The cursor where the output begins.
        end: The cursor to go on from.
        screen: The columns and rows of the screen; None where no program draws on it.
        unseen_bytes: Output that was trimmed from the log before it could be matched.
        shown: What it shows the caller, once it is handed out.
        is_early: What matched came before the last step of keys.
        old_match: What matched, if the caller had been shown it before.
        was_for_match: The wait was for a pattern.
        exit_code: That of a run's command, as a shell reports it; None if there is none or it is
            lost.
        runtime_s: Seconds since the start of a run's command.
        interrupted: The state of the pane when a run's time was over, right before its command was
            interrupted; None if it was not over.
    """

    reason: Reason
    pane: Pane
    state: State
    start: int
    end: int
    excerpt: Excerpt = NOTHING
    screen: tuple[int, int] | None = None
    unseen_bytes: int = 0
    shown: Shown = NOTHING_SHOWN
    is_early: bool = False
    old_match: OldMatch | None = None
    was_for_match: bool = False
    exit_code: int | None = None
    runtime_s: float = 0.0
    interrupted: State | None = None


async def report(
    observation: Observation,
    reason: Reason,
    activity: Activity | None,
    shows: Shows,
    end: int | None = None,
) -> Report:
    """Return the report of an observation, or of its output up to a cursor.

    `activity` is the last look at the pane.
    """
    pane, log = observation.pane, observation.pane.log
    is_early = reason.is_match and observation.early is not None
    ending = await pane.ending()
    is_given = end is not None
    if end is None:
        end = observation.seen_to
        # Without a match, all output of a program that has ended is shown.
        if ending and not reason.is_match:
            end = ending.cursor
    screen = await _screen(observation)
    if (screen or is_early) and not is_given:  # the screen shows the output up to here
        end = ending.cursor if ending else max(end, observation.position)
    # Everything that was read is already trimmed from the log.
    if end < log.kept_from and not reason.is_match:
        end = log.size
    state = await pane.state() if ending else await _state(pane, activity)
    has_matched = reason.is_match and not is_early
    old_match = await _old_match(observation) if has_matched else None
    session = observation.session
    before = session.shown(pane).screen
    excerpt = await _text(observation, reason, ending, end, screen, before, shows)
    match = observation.match
    if (
        has_matched
        and match
        and not screen
        and excerpt.cut_bytes
        and match.text not in excerpt.text
    ):
        # The line that matches was cut, so what is shown ends with it.
        start = max(match.start, log.kept_from, end - _MAX_LINE_BYTES)
        end = await end_of_line(log, start, end, match.text)
        excerpt = await _text(observation, reason, ending, end, screen, before, shows)
    shown_screen = None
    if screen:
        pane.last_screen = ScreenAt(end, screen.rows)
        hidden = hidden_rows(screen.rows, before, excerpt)
        is_filtered = shows.pattern is not None
        shown_screen = ShownScreen(end, pane.clock.now(), screen, hidden, is_filtered)
    return Report(
        reason,
        pane,
        state,
        min(observation.cursor, end),
        end,
        excerpt,
        screen.size if screen else None,
        observation.unseen_bytes,
        Shown(end, shown_screen, session.news(pane)),
        is_early=is_early,
        old_match=old_match,
        was_for_match=observation.matcher.has_patterns,
    )


async def _screen(observation: Observation) -> ScreenRows | None:
    """Return the screen that a program draws on; None if none does."""
    pane = observation.pane
    for _ in range(2):
        if not observation.drawing.is_on:
            return None
        try:
            screen = await capture_screen_rows(pane, finds_highlight=True)
        except PaneLostError:
            return None
        if screen.is_alternate == observation.drawing.is_alternate:
            return screen
        # It has switched screens, in output that was not read yet.
        await pane.drain()
        await observation.read(pane.log.size)
    return screen


async def _state(pane: Pane, activity: Activity | None) -> State:
    """Return the state of a running pane, from the last look if nothing was printed since."""
    if activity and activity.snapshot.printed_bytes == pane.log.size and not await pane.ending():
        return pane.running(activity)
    return await pane.state()


async def _old_match(observation: Observation) -> OldMatch | None:
    """Return what has matched if the caller had been shown it before the call, else None."""
    match, pane, new_from = observation.match, observation.pane, observation.shown_to
    shown = observation.session.shown(pane).screen
    if match is None:
        return None
    if match.row is not None:
        if not (match.is_old_row and shown):
            return None
        at = shown.at
    elif match.end > new_from:
        return None
    else:
        log = pane.log
        begin = max(log.kept_from, match.start - _MAX_LINE_BYTES)
        start = begin + log.read(begin, match.start - begin).rfind(b"\n") + 1
        at = pane.clock.now() - log.age_s(await end_of_line(log, start, match.end, match.text))
    return OldMatch(max(0.0, observation.begun_at - at), match.row is not None, new_from)


async def _text(
    observation: Observation,
    reason: Reason,
    ending: State | None,
    end: int,
    screen: ScreenRows | None,
    before: ShownScreen | None,
    shows: Shows,
) -> Excerpt:
    spans = _spans(observation, end)
    parts = await _parts(observation, spans, end)
    if shows.pattern is not None:
        return await _matching(observation, parts, spans, screen, shows.pattern)
    room = shows.max_characters
    steps = await _screens_of_steps(observation, spans, screen)
    steps = _newest_screens(steps, room // 2)
    steps_size = _size(excerpt for _, excerpt in steps)
    room -= steps_size
    drawn = NOTHING
    if screen:
        row = observation.row_that_matches(screen.rows) if reason is Reason.MATCHED else None
        drawn = screen_excerpt(screen, before, row, room)
        room -= min(len(drawn.text), room // 2)
    has_crashed = bool(ending and (ending.exit_code or ending.signal))
    crash: list[Excerpt] = []
    if has_crashed and spans and not screen:
        _, crashed_at = spans[-1]
        earlier = [part for part in parts if part[1] <= crashed_at]
        parts = parts[len(earlier) :]
        known = before.seen_rows if before else []
        crash = await _until_crash(observation, crashed_at, earlier, steps, known, room, shows)
        room = max(room - (_size(crash) - steps_size), STEP_CHARACTERS)
        steps = []
    lines = await _lines(observation, parts, room, shows)
    if screen and not screen.is_alternate:  # lines of the main screen may still be on it
        rows = Counter(drawn.lines)
        lines = [one for one in lines if not Counter(filter(None, one[1].lines)) <= rows]
    after = _in_order(steps, lines)
    if not after and crash[-1:] == [_THEN]:
        crash.pop()
    blocks = [*crash, *after]
    if drawn.lines:
        blocks.append(joined(note("screen"), drawn) if blocks else drawn)
    # A line feed at the end shows that the last line is whole.
    return joined(*map(without_blank_ends, blocks[:-1]), *blocks[-1:])


async def _until_crash(
    observation: Observation,
    crashed_at: int,
    parts: Sequence[tuple[int, int]],
    steps: Sequence[Placed],
    known: Sequence[str],
    max_characters: int,
    shows: Shows,
) -> list[Excerpt]:
    """Return what a program that drew showed until it crashed, its last screen at the end.

    The caller was shown the `known` rows before.
    """
    room = max_characters // 2
    blocks = _in_order(steps, await _lines(observation, parts, room, shows))
    known = [*known, *(row for excerpt in blocks for row in excerpt.lines)]
    screen = await _last_screen(observation, crashed_at, known, room)
    if screen.lines:
        blocks.append(joined(note("the last screen"), screen))
    if screen.lines or steps:
        blocks.append(_THEN)
    return blocks


def _size(excerpts: Iterable[Excerpt]) -> int:
    """Return the number of characters of excerpts."""
    return sum(len(excerpt.text) for excerpt in excerpts)


def _spans(observation: Observation, end: int) -> list[tuple[int, int]]:
    """Return the parts of the observed output, up to a cursor, that were drawn on the screen.

    They are in order. Those that are no longer kept are left out, like all that was printed there.
    """
    spans, kept_from = observation.drawing.all_spans(), observation.pane.log.kept_from
    return [(first, min(last, end)) for first, last in spans if first < end and last > kept_from]


def _forgotten(
    observation: Observation, parts: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """Return the part between others of which it is no longer known what was drawn, if any."""
    part = observation.drawing.forgotten
    if not part or not parts or part[1] <= observation.pane.log.kept_from:
        return []
    return [part] if parts[0][0] < part[0] < parts[-1][0] else []


async def _parts(
    observation: Observation, spans: Sequence[tuple[int, int]], end: int
) -> list[tuple[int, int]]:
    """Return the parts of the output that are lines: those outside the spans, step by step.

    Each step but the first begins with the line that it was typed in. Steps that a program has
    written over later, as menus do, are one part.
    """
    log, start = observation.pane.log, min(observation.cursor, end)
    bounds = {start, end}
    turns = Turns()
    for cursor in observation.steps[1:]:
        await turns.take(_STEP_WORK)
        begin = max(log.kept_from, start, cursor - _MAX_LINE_BYTES)
        line_end = log.read(begin, max(0, cursor - begin)).rfind(b"\n")
        if line_end >= 0:
            bounds.add(min(end, begin + line_end + 1))
    drawn = set(spans)
    last_of = dict(spans)
    firsts = sorted(last_of)
    for bound in list(bounds):
        number = bisect_left(firsts, bound)  # of the first span that does not begin before it
        if number and bound < last_of[firsts[number - 1]]:
            bounds.remove(bound)
    steps = sorted(bounds)
    parts: list[tuple[int, int]] = []
    for first, last in pairwise(sorted({*({start, end} & bounds), *chain(*spans)})):
        if (first, last) in drawn:
            continue
        inside = steps[bisect_right(steps, first) : bisect_left(steps, last)]
        parts += pairwise([first, *await lasting_cursors(log, first, last, inside), last])
    return parts


async def _lines(
    observation: Observation, parts: Sequence[tuple[int, int]], max_characters: int, shows: Shows
) -> list[Placed]:
    """Return the lines of parts of the log, each with its share of the room."""
    # Shares smaller than those of a step are worth nothing.
    most = max(2, max_characters // STEP_CHARACTERS)
    parts = _fewer(parts, most)
    extra = max(0, len(parts) - most)
    forgotten = _forgotten(observation, parts)
    if extra and not forgotten and sum(end - start for start, end in parts) <= _TOGETHER_BYTES:
        together = await _read_together(observation.pane.log, parts, max_characters)
        return [(parts[0][0], together)]
    # The middle is left out, as in a long text.
    head_count = most // 4
    left_out = [*parts[head_count : head_count + extra], *forgotten]
    parts = [*parts[:head_count], *parts[head_count + extra :]]
    excerpts = [await _read(observation, part, max_characters, shows) for part in parts]
    room = max_characters
    if sum(len(one.text) + 1 for one in excerpts) > room:
        by_size = sorted(range(len(excerpts)), key=lambda index: len(excerpts[index].text))
        for count, index in enumerate(by_size):
            share = max(STEP_CHARACTERS, room // (len(by_size) - count))
            if len(excerpts[index].text) > share:
                excerpts[index] = await _read(observation, parts[index], share, shows)
            room -= len(excerpts[index].text) + 1
    placed = [(start, one) for (start, _), one in zip(parts, excerpts, strict=True)]
    if left_out:
        size = sum(end - start for start, end in left_out)
        placed.insert(head_count, (left_out[0][0], gap(0, size)))
    return [(start, one) for start, one in placed if one.text.strip()]


def _in_order(*placed: Sequence[Placed]) -> list[Excerpt]:
    """Return excerpts in the order of their cursors; of those at the same, the first given."""
    return [excerpt for _, excerpt in sorted(chain(*placed), key=itemgetter(0))]


async def _read_together(
    log: Log, parts: Sequence[tuple[int, int]], max_characters: int
) -> Excerpt:
    """Return the lines of many short parts, as if nothing had been drawn between them."""
    data = b"".join(log.read(start, end - start) for start, end in parts)
    text = await clean_text(log, data, parts[0][0], is_line=False)
    return cut_in_the_middle(folded(excerpt_of(text)), max_characters)


def _fewer(parts: Sequence[tuple[int, int]], most: int) -> Sequence[tuple[int, int]]:
    """Join adjacent parts in pairs until at most `most` are left, or none can be joined."""
    while len(parts) > most:
        fewer: list[tuple[int, int]] = []
        is_pair = True
        for start, end in parts:
            # What was drawn between two parts stays out.
            is_pair = not is_pair and fewer[-1][1] == start
            if is_pair:
                fewer[-1] = (fewer[-1][0], end)
            else:
                fewer.append((start, end))
        if len(fewer) == len(parts):
            break
        parts = fewer
    return parts


async def _read(
    observation: Observation, part: tuple[int, int], max_characters: int, shows: Shows
) -> Excerpt:
    """Return the lines of a part of the log. A flood is shown by its beginning and its end."""
    log, (start, end) = observation.pane.log, part
    head = NOTHING
    if observation.head and start == observation.cursor < log.kept_from:
        first = observation.head[: end - start]
        text = await lasting_text(log, first, start)
        whole, line_feed, rest = text[: max_characters // 4].rpartition("\n")
        head = folded(excerpt_of(whole if line_feed else rest))
        start += len(first)
        max_characters -= len(head.text)
    tail, _ = await read_abridged(log, start, end, max_characters, folds=True, advice=shows.advice)
    is_ended = tail.lines[-1:] == [""]
    tail = without_blank_ends(tail)
    if is_ended and tail.lines:
        return joined(head, tail, Excerpt([""], []))
    return joined(head, tail)


async def _last_screen(
    observation: Observation, end: int, known: Sequence[str], max_characters: int
) -> Excerpt:
    """Return the last screen of a program that has crashed; nothing if all its rows are known."""
    rows = await screen_rows_at(observation.pane, end)
    # Programs that end clear some rows, such as the last one.
    if all(row == "" or row in known for row in rows):
        return NOTHING
    return cut_in_the_middle(folded(Excerpt(rows, [])), max_characters)


async def _screens_of_steps(
    observation: Observation,
    spans: Sequence[tuple[int, int]],
    screen: ScreenRows | None,
    is_meant: Callable[[str], bool] = bool,
) -> list[Placed]:
    """Return the rows that appeared on the screen after each step but the last, if any did.

    They come with the cursor of the next step. Only rows that are meant and are not on the `screen`
    now are among them; blank rows are never meant.
    """
    start, *later = observation.steps or [observation.cursor]
    drawn = [cursor for cursor in later if any(first < cursor <= last for first, last in spans)]
    if not drawn:
        return []
    cursors = [start, *drawn][-_MAX_STEPS - 1 :]
    screens = await screens_at(observation.pane, cursors)
    if cursors[0] == start < spans[0][0]:  # no program drew then
        screens[0] = []
    rows_now = screen.rows if screen else ()
    placed = [(start, _EARLIER_SCREENS)] if len(drawn) > _MAX_STEPS else []
    for cursor, (before, rows) in zip(cursors[1:], pairwise(screens), strict=True):
        new = [row for row in rows if row not in before and row not in rows_now]
        new = [row for row in new if row and is_meant(row)]
        if new:
            placed.append((cursor, joined(note("screen"), Excerpt(new, []))))
    return placed


def _newest_screens(placed: Sequence[Placed], max_characters: int) -> list[Placed]:
    """Return the newest of the screens after steps, each with its share of the room at most."""
    newest: list[Placed] = []
    room = max_characters
    for cursor, excerpt in reversed(placed):
        part = cut_in_the_middle(folded(excerpt), STEP_CHARACTERS)
        room -= len(part.text)
        if room < 0:
            newest.append((cursor, _EARLIER_SCREENS))
            break
        newest.append((cursor, part))
    return newest[::-1]


async def _matching(
    observation: Observation,
    parts: Sequence[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
    screen: ScreenRows | None,
    pattern: str,
) -> Excerpt:
    """Return the newest lines, and the rows of the screen, that match a pattern."""
    log = observation.pane.log
    expression = compiled("show", pattern, is_for_bytes=True)

    def matches(row: str) -> bool:
        return expression.search(row.encode()) is not None

    steps = await _screens_of_steps(observation, spans, screen, matches)
    count = sum(len(one.lines) - len(one.notes) for _, one in steps)
    found = []
    for start, end in parts:
        lines, number = await matching_lines(log, start, end, expression, MAX_SHOWN_LINES)
        found.append((start, Excerpt(lines, [])))
        count += number
    found += [(start, gap(0, end - start)) for start, end in _forgotten(observation, parts)]
    text = newest_lines(joined(*_in_order(steps, found)), MAX_SHOWN_LINES)
    shown = len(text.lines) - len(text.notes)
    if count > shown:
        text = joined(note(f"the newest {shown} of {count} lines that match"), text)
    numbers = []
    if screen:
        numbers = [number for number, row in enumerate(screen.rows) if matches(row)]
    if not screen or not numbers:
        return text if text.lines else note("no line matches `show`")
    drawn = Excerpt([screen.rows[number] for number in numbers], [])
    if screen.highlighted and screen.highlighted.row in numbers:
        drawn = joined(drawn, note(_highlight(screen)))
    return joined(text, note("screen"), drawn) if text.lines else drawn


def screen_excerpt(
    screen: ScreenRows, shown: ShownScreen | None, matching_row: int | None, max_characters: int
) -> Excerpt:
    """Return the rows of a screen; of one `shown` before, the changed rows if that is shorter.

    If a whole screen is too long, leave out its middle, but not the matching or highlighted row.
    """
    rows = screen.rows
    whole = folded(Excerpt(rows, []))
    keep = matching_row
    if matching_row is None and screen.highlighted:
        keep = screen.highlighted.row
    if keep is not None:
        keep = len(folded(Excerpt(rows[: keep + 1], [])).lines) - 1
    excerpt = cut_in_the_middle(whole, max_characters, keep)
    highlight = _highlight(screen)
    # Now there is room for rows that were left out.
    is_new = bool(shown and shown.hidden and not excerpt.cut_bytes)
    if shown and not shown.is_filtered and not is_new:
        before = _highlight(shown.screen)
        changes = _changes(rows, shown)
        if len(changes.text) < len(excerpt.text):
            excerpt = cut_in_the_middle(changes, max_characters)
            if highlight == before:
                return excerpt
            if rows == shown.screen.rows and not shown.hidden:
                excerpt = NOTHING
        if before:
            highlight = highlight or "no single row is highlighted"
    return joined(excerpt, note(highlight)) if highlight else excerpt


def hidden_rows(
    rows: Sequence[str], before: ShownScreen | None, excerpt: Excerpt
) -> frozenset[int]:
    """Return the numbers of the rows of a screen that its caller has not been shown.

    An excerpt shows the screen to a caller who was shown another one before, if any.
    """
    notes = frozenset(excerpt.notes)
    shown = {line for number, line in enumerate(excerpt.lines) if number not in notes}
    known = set(enumerate(before.screen.rows)) if before else set()
    hidden = before.hidden if before else frozenset()

    def is_shown(number: int, row: str) -> bool:
        if (number, row) in known and number not in hidden:
            return True
        return not row or folded(Excerpt([row], [])).lines[0] in shown

    return frozenset(number for number, row in enumerate(rows) if not is_shown(number, row))


def _highlight(screen: ScreenRows) -> str:
    """Return which row is highlighted, without the frame of its box; "" if none is."""
    if screen.highlighted is None:
        return ""
    text = head(screen.highlighted.text.strip(_FRAME), _MAX_HIGHLIGHT_CHARACTERS)
    return f"row {screen.highlighted.row + 1} is highlighted: {text}"


def _changes(rows: Sequence[str], shown: ShownScreen) -> Excerpt:
    """Return the rows that differ from those shown before, with their numbers, from 1.

    Rows that were never shown are only named: whether they have changed says nothing.
    """
    old = shown.screen.rows
    count = max(len(rows), len(old))
    now = [*rows, *[""] * (count - len(rows))]
    before = [*old, *[""] * (count - len(old))]
    changed = [number for number in range(count) if now[number] != before[number]]
    hidden = sorted(shown.hidden.difference(changed))
    if not changed and not hidden:
        return note("screen unchanged")
    parts = []
    if not changed:
        seen = [number for number in range(count) if number not in shown.hidden]
        parts.append(note(f"{_named(seen)} unchanged"))
    for numbers in _consecutive(changed):
        texts = [now[number] for number in numbers]
        if any(texts):
            parts += [note(_named(numbers)), Excerpt(texts, [])]
        else:
            parts.append(note(f"{_named(numbers)} blank"))
    if hidden:
        parts.append(note(f"{_named(hidden)} left out"))
    return joined(*parts)


def _named(numbers: Sequence[int]) -> str:
    """Return the name of rows by their numbers, from 0: `row 3`, `rows 3-5, 7`."""
    spans = [(group[0] + 1, group[-1] + 1) for group in _consecutive(numbers)]
    named = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)
    return f"row {named}" if len(numbers) == 1 else f"rows {named}"


def _consecutive(numbers: Sequence[int]) -> list[list[int]]:
    """Return groups of consecutive numbers."""
    # They have the same difference between number and index.
    numbered = groupby(enumerate(numbers), lambda one: one[1] - one[0])
    return [[number for _, number in group] for _, group in numbered]
