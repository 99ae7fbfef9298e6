"""Reports: what was seen of a pane when a wait ended, and the text that shows it.

A report shows the lines that were printed, and after them the screen if a program draws on it. If
there were several steps, it also shows the rows that appeared on the screen after each. Nothing is
shown twice: what was drawn does not count as lines, and of a screen that the caller was shown, only
the changed rows appear. A program that has crashed leaves no screen, so its last one precedes what
it printed then.

Making a report does not count as showing it: it may never reach the caller.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import groupby

from tmux_debug_mcp.errors import PaneLostError, head
from tmux_debug_mcp.logs.excerpts import (
    NOTHING,
    Excerpt,
    cut_in_the_middle,
    folded,
    joined,
    newest_lines,
    note,
    without_blank_ends,
)
from tmux_debug_mcp.logs.reading import end_of_line
from tmux_debug_mcp.logs.seen import Advice, Frame, Item, Part, Seen, advice_in
from tmux_debug_mcp.vt.captured import ScreenRows

from .capturing import capture_screen_rows
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
# How far back to look for the beginning of the line that matches.
_MAX_LINE_BYTES = 4096

_EARLIER_SCREENS = note("earlier screens left out")
_THEN = note("then")


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
    # Without a match, all output of a program that has ended is shown.
    if ending and not is_given and not (reason.is_match and observation.early is None):
        await observation.read_all(ending.cursor)
    screen = await _screen(observation)
    if end is None:
        end = observation.text.seen_to
        if screen or is_early or (ending and not reason.is_match):  # it is shown up to here
            end = observation.position
    state = await pane.state() if ending else await _state(pane, activity)
    has_matched = reason.is_match and not is_early
    old_match = await _old_match(observation) if has_matched else None
    session = observation.session
    before = session.shown(pane).screen
    seen = observation.seen_now()
    has_crashed = bool(ending and (ending.exit_code or ending.signal))
    text = partial(_text, observation, seen, reason, screen, before, shows, has_crashed=has_crashed)
    excerpt = text()
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
        seen.end_with(match.text)
        excerpt = text()
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
        observation.text.unseen_bytes if observation.matcher.has_patterns else 0,
        Shown(end, shown_screen, session.news(pane)),
        is_early=is_early,
        old_match=old_match,
        was_for_match=observation.matcher.has_patterns,
    )


async def _screen(observation: Observation) -> ScreenRows | None:
    """Return the screen that a program draws on; None if none does."""
    pane = observation.pane
    for _ in range(2):
        if not observation.text.is_drawn_on:
            return None
        try:
            screen = await capture_screen_rows(pane, finds_highlight=True)
        except PaneLostError:
            return None
        if screen.is_alternate == observation.text.is_alternate:
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


def _text(
    observation: Observation,
    seen: Seen,
    reason: Reason,
    screen: ScreenRows | None,
    before: ShownScreen | None,
    shows: Shows,
    *,
    has_crashed: bool,
) -> Excerpt:
    if shows.pattern is not None:
        return _matching(observation, seen, screen)
    room = shows.max_characters
    frames = _newest_frames(seen, screen.rows if screen else (), room // 2)
    frames_size = _size(frames.values())
    room -= frames_size
    drawn = NOTHING
    if screen:
        row = observation.row_that_matches(screen.rows) if reason is Reason.MATCHED else None
        drawn = screen_excerpt(screen, before, row, room)
        room -= min(len(drawn.text), room // 2)

    advice = advice_in(observation.pane.log, shows.advice)
    crash: list[Excerpt] = []
    begin = 0
    if has_crashed and seen.last_screen is not None and not screen:
        begin = seen.until_screen
        known = before.seen_rows if before else []
        crash = _until_crash(seen, frames, known, room, advice)
        room = max(room - (_size(crash) - frames_size), STEP_CHARACTERS)
    after = _in_order(seen.items[begin:], {} if crash else frames, room, advice)
    if screen and not observation.text.is_alternate:  # lines may still be on the main screen
        rows = Counter(drawn.lines)
        after = [one for one in after if not Counter(filter(None, one.lines)) <= rows]
    if not after and crash[-1:] == [_THEN]:
        crash.pop()
    blocks = [*crash, *after]
    if drawn.lines:
        blocks.append(joined(note("screen"), drawn) if blocks else drawn)
    # A line feed at the end shows that the last line is whole.
    return joined(*map(without_blank_ends, blocks[:-1]), *blocks[-1:])


def _until_crash(
    seen: Seen,
    frames: Mapping[Item, Excerpt],
    known: Sequence[str],
    max_characters: int,
    advice: Advice,
) -> list[Excerpt]:
    """Return what a program that drew showed until it crashed, its last screen at the end.

    The caller was shown the `known` rows before.
    """
    room = max_characters // 2
    blocks = _in_order(seen.items[: seen.until_screen], frames, room, advice)
    known = [*known, *(row for excerpt in blocks for row in excerpt.lines)]
    rows = list(seen.last_screen or ())
    # Programs that end clear some rows, such as the last one.
    is_known = all(row == "" or row in known for row in rows)
    if not is_known:
        screen = cut_in_the_middle(folded(Excerpt(rows, [])), room)
        blocks.append(joined(note("the last screen"), screen))
    if not is_known or frames:
        blocks.append(_THEN)
    return blocks


def _size(excerpts: Iterable[Excerpt]) -> int:
    """Return the number of characters of excerpts."""
    return sum(len(excerpt.text) for excerpt in excerpts)


def _in_order(
    items: Sequence[Item],
    frames: Mapping[Item, Excerpt],
    max_characters: int,
    advice: Advice,
) -> list[Excerpt]:
    """Return the lines of parts, each with its share of the room, and frames, in order."""
    parts: dict[Item, Part] = {
        item: item for item in items if isinstance(item, Part) and not item.is_blank
    }
    # Shares smaller than those of a step are worth nothing.
    most = max(2, max_characters // STEP_CHARACTERS)
    while len(parts) > most:
        parts = _in_pairs(parts)
    excerpts: dict[Item, Excerpt] = {
        item: part.excerpt(max_characters, advice) for item, part in parts.items()
    }
    room = max_characters
    if _size(excerpts.values()) + len(excerpts) > room:
        by_size = sorted(excerpts, key=lambda item: len(excerpts[item].text))
        for count, item in enumerate(by_size):
            share = max(STEP_CHARACTERS, room // (len(by_size) - count))
            if len(excerpts[item].text) > share:
                excerpts[item] = parts[item].excerpt(share, advice)
            room -= len(excerpts[item].text) + 1
    shown = [excerpts.get(item) or frames.get(item) or NOTHING for item in items]
    return [excerpt for excerpt in shown if excerpt.text.strip()]


def _in_pairs(parts: Mapping[Item, Part]) -> dict[Item, Part]:
    """Join each second part to the one before it."""
    pairs: dict[Item, Part] = {}
    items = list(parts)
    for first in items[::2]:
        pairs[first] = copy.copy(parts[first])
    for first, second in zip(items[::2], items[1::2], strict=False):
        pairs[first].extend(parts[second])
    return pairs


def _newest_frames(seen: Seen, rows_now: Sequence[str], max_characters: int) -> dict[Item, Excerpt]:
    """Return the newest of the screens after steps, each with its share of the room at most.

    Rows that are on the screen now are left out.
    """
    frames = _frames(seen, lambda row: row not in rows_now)
    newest: dict[Item, Excerpt] = {}
    room = max_characters
    for frame in reversed(frames):
        excerpt = cut_in_the_middle(folded(frames[frame]), STEP_CHARACTERS)
        room -= len(excerpt.text)
        newest[frame] = _EARLIER_SCREENS if room < 0 else excerpt
        if room < 0:
            break
    else:
        if newest and seen.has_older_frames:
            newest[frame] = joined(_EARLIER_SCREENS, newest[frame])
    return newest


def _frames(seen: Seen, is_meant: Callable[[str], object]) -> dict[Item, Excerpt]:
    """Return the screens after steps, with the rows that are meant; blank rows never are."""
    frames: dict[Item, Excerpt] = {}
    for item in seen.items:
        if isinstance(item, Frame):
            rows = [row for row in item.rows if row and is_meant(row)]
            if rows:
                frames[item] = joined(note("screen"), Excerpt(rows, []))
    return frames


def _matching(observation: Observation, seen: Seen, screen: ScreenRows | None) -> Excerpt:
    """Return the newest lines, and the rows of the screen, that match `show`."""
    matches = observation.matcher.shows
    rows_now = screen.rows if screen else ()
    frames = _frames(seen, lambda row: row not in rows_now and matches(row))
    count = seen.count + sum(len(one.lines) - len(one.notes) for one in frames.values())
    found = (
        Excerpt(item.lines(), []) if isinstance(item, Part) else frames.get(item, NOTHING)
        for item in seen.items
    )
    text = newest_lines(joined(*found), MAX_SHOWN_LINES)
    if frames and seen.has_older_frames:
        text = joined(_EARLIER_SCREENS, text)
    shown = len(text.lines) - len(text.notes)
    if count > shown:
        text = joined(note(f"the newest {shown} of {count} lines that match"), text)
    numbers = [number for number, row in enumerate(rows_now) if matches(row)]
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
