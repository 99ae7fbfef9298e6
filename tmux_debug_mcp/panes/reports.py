"""Reports: what was seen of a pane when a wait ended, and the text that shows it.

A report shows the lines that were printed, and after them the screen if a program draws on it. If
there were several steps, it also shows the rows that appeared on the screen after each. Nothing is
shown twice: what was drawn does not count as lines, and of a screen that the caller was shown, only
the changed rows appear. A program that has crashed leaves no screen, so its last screen precedes
what it printed then.

Making a report does not count as showing it: it may never reach the caller.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, zip_longest

from tmux_debug_mcp.errors import PaneLostError, head
from tmux_debug_mcp.logs.excerpts import (
    NOTHING,
    Excerpt,
    Part,
    cut_in_the_middle,
    folded,
    joined,
    newest_lines,
    note,
    without_blank_ends,
)
from tmux_debug_mcp.logs.seen import Frame, SeenText, found_in, in_pairs
from tmux_debug_mcp.turns import TURN_WORK
from tmux_debug_mcp.vt.captured import ScreenRows

from .caller_session import NOTHING_SHOWN, PaneView, ShownScreen
from .capturing import capture_screen_rows
from .looking.activity import Activity
from .looking.state import State
from .observing import Observation
from .pane import Pane, ScreenAt

# Limits for the text of an observation: if a condition was given, if none was, and for each further
# step of keys.
MAX_ASKED_CHARACTERS = 4_000
MAX_UNASKED_CHARACTERS = 1_000
STEP_CHARACTERS = 200
# A screen that comes for the first time, or in another size, is not cut if it has at most so many
# characters.
WHOLE_SCREEN = 2_000
# The limit for the text of the highlighted row.
_MAX_HIGHLIGHT_CHARACTERS = 40
_FRAME = " |│┃║"
# At most this many lines that match `show` are shown.
MAX_SHOWN_LINES = 50
# A program that crashes has ended at most so long after it was done with its screen.
_MAX_CRASH_S = 5.0
_LEAVES_SCREEN = b"\033[?1049l"

_EARLIER_SCREENS = note("earlier screens left out")


class Reason(StrEnum):
    """Why a wait or a run is over."""

    INPUT = "input"  # the program awaits something; no pattern can match before it gets it
    EXITED = "exited"  # the program has ended, or the pane is gone
    TIMED_OUT = "timed_out"  # the time is over; in a run, an interrupt has then ended the command

    # Of waits.
    MATCHED = "matched"  # a line matches `pattern`
    STOPPED = "stopped"  # a line matches `stop_pattern`
    GONE = "gone"  # nothing matches `gone` any more
    BACK = "back"  # something matches `gone` again
    IDLE = "idle"  # the pane was idle for `idle_s`
    REST = "rest"  # the pane is at rest
    LISTENS = "listens"  # a process of the pane listens on `port`
    FLOODED = "flooded"  # more was printed than the log keeps, and there was no `pattern`

    # Of runs.
    DONE = "done"  # the command has ended by itself
    INTERRUPTED = "interrupted"  # somebody else interrupted the command
    QUIET = "quiet"  # it seems to ask for something, where we can't see what a command awaits
    RUNNING = "running"  # time ran out, and the command goes on despite interrupts
    HELD = "held"  # time ran out; not interrupted, since a person has the keyboard
    LATE = "late"  # time ran out; the command has ended, but its last output is not in the log yet
    GIVEN_UP = "given_up"  # the shell gave the command up, because of an error in it
    SHELL_ENDED = "shell_ended"  # the shell that ran the command, inside another shell, has ended
    REPLACED = "replaced"  # the shell has replaced itself with a program, by `exec`
    SHELL_STARTED = "shell_started"  # the command is, or has started, a shell, now at its prompt
    SHELL_INTERRUPTED = "shell_interrupted"  # the same; an interrupt may have cut its start short

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


_GOES_ON = (Reason.INPUT, Reason.QUIET, Reason.RUNNING, Reason.HELD, Reason.LATE)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a report shows.

    Attributes:
        max_characters: The limit for its text.
        pattern: Show only lines and rows that match this regular expression; None for all.
    """

    max_characters: int = MAX_ASKED_CHARACTERS
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
    shown: PaneView = NOTHING_SHOWN
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
    shows: Selection,
    end: int | None = None,
) -> Report:
    """Return the report of an observation, or of its output up to a cursor.

    `activity` is the last look at the pane.
    """
    pane, log, session = observation.pane, observation.pane.log, observation.session
    has_matched = reason.is_match and observation.early is None
    ending = await pane.ending()
    # Without a match, all output of a program that has ended is shown.
    if ending and end is None and not has_matched:
        await observation.read_all(ending.cursor)
    screen = await _screen(observation)
    if end is None:
        is_all = screen or (not has_matched and (ending or reason.is_match))
        end = observation.position if is_all else observation.text.seen_to
        if ending:  # what was read may have the end mark in it
            end = min(end, ending.cursor)
    if activity and activity.snapshot.printed_bytes == log.size and not await pane.ending():
        state = pane.running(activity)  # nothing was printed since the last look
    else:
        state = await pane.state()
    old_match = await _old_match(observation) if has_matched else None
    seen = observation.seen_now()
    crashed = None if screen else _crashed(pane, seen, ending)
    excerpt = _text(observation, seen, reason, screen, shows, crashed)
    match = observation.match if has_matched and not screen else None
    if match and excerpt.cut_bytes and match.text not in excerpt.text:
        # The line that matches was cut, so what is shown ends with it.
        end = await observation.end_of_match()
        seen.parts[-1].end_with(match.text)
        excerpt = _text(observation, seen, reason, screen, shows, crashed)
    shown_screen = None
    if screen:
        pane.last_screen = ScreenAt(end, screen.rows)
        hidden = hidden_rows(screen.rows, session.shown(pane).screen, excerpt)
        is_filtered = shows.pattern is not None
        shown_screen = ShownScreen(end, pane.clock.now(), screen, hidden, is_filtered)
    has_patterns = observation.matcher.has_patterns
    return Report(
        reason,
        pane,
        state,
        min(observation.cursor, end),
        end,
        excerpt,
        screen.size if screen else None,
        observation.text.unseen_bytes if has_patterns else 0,
        PaneView(end, shown_screen, session.news(pane)),
        is_early=reason.is_match and not has_matched,
        old_match=old_match,
        was_for_match=has_patterns,
    )


async def _screen(observation: Observation) -> ScreenRows | None:
    """Return the screen that a program draws on; None if none does."""
    pane = observation.pane
    for _ in range(2):
        if not observation.text.is_drawn_on:
            return None
        try:
            screen = await capture_screen_rows(pane, finds_highlight=True)
            if screen.is_alternate == observation.text.is_alternate:
                return screen
            # It has switched screens, in output that was not read yet.
            await pane.drain()
        except PaneLostError:
            return None
        await observation.read(pane.log.size)
    return screen


async def _old_match(observation: Observation) -> OldMatch | None:
    """Return what has matched if the caller had been shown it before the call, else None."""
    match, pane, new_from = observation.match, observation.pane, observation.shown_to
    shown = observation.session.shown(pane).screen
    if match and match.is_old_row and shown:
        at = shown.at
    elif match and match.row is None and match.end <= new_from:
        at = pane.clock.now() - pane.log.age_s(await observation.end_of_match())
    else:
        return None
    return OldMatch(max(0.0, observation.begun_at - at), match.is_old_row, new_from)


def _crashed(pane: Pane, seen: SeenText, ending: State | None) -> Frame | None:
    """Return the last screen of a program that has failed soon after it was done with it."""
    screen = seen.last_screen
    if screen is None or ending is None or not ending.code:
        return None
    read_from = max(pane.log.kept_from, screen.done_at - TURN_WORK)
    read = pane.log.read(read_from, screen.done_at - read_from)
    done_at = read_from + read.rfind(_LEAVES_SCREEN) if _LEAVES_SCREEN in read else screen.done_at
    ended_at = pane.started_at + ending.runtime_s
    is_soon = ended_at - (pane.clock.now() - pane.log.age_s(done_at)) <= _MAX_CRASH_S
    return screen if is_soon else None


def _text(
    observation: Observation,
    seen: SeenText,
    reason: Reason,
    screen: ScreenRows | None,
    shows: Selection,
    crashed: Frame | None,
) -> Excerpt:
    if shows.pattern is not None:
        return _matching(observation, seen, screen)
    before = observation.session.shown(observation.pane).screen
    frames = _newest_frames(seen, screen.rows if screen else (), shows.max_characters // 2)
    room = shows.max_characters - sum(len(excerpt.text) for excerpt in frames.values())
    blocks, drawn = _blocks(seen.items, frames), NOTHING
    if screen:
        same_size = before is not None and before.screen.size == screen.size
        row = observation.row_that_matches(screen.rows) if reason is Reason.MATCHED else None
        drawn = screen_excerpt(screen, before, row, room if same_size else max(room, WHOLE_SCREEN))
        room -= min(len(drawn.text), room // 2)
    elif crashed:
        blocks, room = _with_last_screen(crashed, seen, frames, before, room)
    excerpts = _in_order(blocks, room)
    if screen and not observation.text.is_alternate:  # lines may still be on the main screen
        rows_now = Counter(drawn.marked)
        excerpts = [part for part in excerpts if not Counter(filter(None, part.marked)) <= rows_now]
    if drawn.marked:
        excerpts.append(joined(note("screen"), drawn) if excerpts else drawn)
    # A line feed at the end shows that the last line is whole.
    shown = joined(*map(without_blank_ends, excerpts[:-1]), *excerpts[-1:])
    return found_in(observation.pane.log, shown)


def _blocks(
    items: Sequence[Part | Frame], frames: Mapping[Part | Frame, Excerpt]
) -> list[Part | Excerpt]:
    """Return what is shown of items, in their order."""
    blocks: list[Part | Excerpt] = []
    for item in items:
        if item in frames:
            blocks.append(frames[item])
        elif isinstance(item, Part) and not item.is_blank:
            blocks.append(item)
    return blocks


def _with_last_screen(
    crashed: Frame,
    seen: SeenText,
    frames: Mapping[Part | Frame, Excerpt],
    before: ShownScreen | None,
    room: int,
) -> tuple[list[Part | Excerpt], int]:
    """Return what is shown of a program that crashed, with its last screen, and the room left."""
    place = seen.items.index(crashed)
    blocks, later = _blocks(seen.items[:place], frames), _blocks(seen.items[place:], frames)
    known = {"", *(before.seen_rows if before else ())}
    known.update(line for block in blocks for line in block.lines)
    # Programs that end clear some rows, such as the last.
    is_known = known.issuperset(crashed.rows)
    if not is_known:
        rows = cut_in_the_middle(folded(Excerpt(list(crashed.rows))), room // 2)
        blocks.append(joined(note("the last screen"), rows))
        room -= min(len(rows.text), room // 2)
    if later and (frames or not is_known):
        blocks.append(note("then"))
    return [*blocks, *later], room


def _in_order(blocks: Sequence[Part | Excerpt], room: int) -> list[Excerpt]:
    """Return excerpts of parts, each with its share of the room, among others."""
    # Shares smaller than those of a step are worth nothing.
    while sum(isinstance(block, Part) for block in blocks) > max(2, room // STEP_CHARACTERS):
        blocks = in_pairs(blocks)
    excerpts = [block.excerpt(room) if isinstance(block, Part) else block for block in blocks]
    parts = [number for number, block in enumerate(blocks) if isinstance(block, Part)]
    for count, number in enumerate(sorted(parts, key=lambda part: len(excerpts[part].text))):
        share = max(STEP_CHARACTERS, room // (len(parts) - count))
        block, size = blocks[number], len(excerpts[number].text) + 1
        if isinstance(block, Part) and size > share + 1:
            excerpts[number] = block.excerpt(share)
            size = share  # with the words for its gap
        room -= size
    return excerpts


def _newest_frames(
    seen: SeenText, rows_now: Sequence[str], max_characters: int
) -> dict[Part | Frame, Excerpt]:
    """Return the newest of the screens after steps, without the rows that are there now."""
    frames = _frames(seen, lambda row: row not in rows_now)
    newest: dict[Part | Frame, Excerpt] = {}
    for frame, excerpt in reversed(frames.items()):
        newest[frame] = cut_in_the_middle(folded(excerpt), STEP_CHARACTERS)
        max_characters -= len(newest[frame].text)
        if max_characters < 0:
            newest[frame] = _EARLIER_SCREENS
            break
    else:
        if newest and seen.has_older_frames:
            newest[frame] = joined(_EARLIER_SCREENS, newest[frame])
    return newest


def _frames(seen: SeenText, is_meant: Callable[[str], object]) -> dict[Part | Frame, Excerpt]:
    """Return the screens after steps, with the rows that are meant; blank rows never are."""
    frames: dict[Part | Frame, Excerpt] = {}
    for item in seen.items:
        if isinstance(item, Frame) and item is not seen.last_screen:
            rows = [row for row in item.rows if row and is_meant(row)]
            if rows:
                frames[item] = joined(note("screen"), Excerpt(rows))
    return frames


def _matching(observation: Observation, seen: SeenText, screen: ScreenRows | None) -> Excerpt:
    """Return the newest lines, and the rows of the screen, that match `show`."""
    matches = observation.matcher.shows
    rows_now = screen.rows if screen else ()
    frames = _frames(seen, lambda row: row not in rows_now and matches(row))
    count = seen.count + sum(len(frame.lines) - len(frame.notes) for frame in frames.values())
    found = (
        Excerpt(item.lines) if isinstance(item, Part) else frames.get(item, NOTHING)
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
        return text if text.marked else note("no line matches `show`")
    drawn = Excerpt([screen.rows[number] for number in numbers])
    if screen.highlighted and screen.highlighted.row in numbers:
        drawn = joined(drawn, note(_highlight(screen)))
    return joined(text, note("screen"), drawn) if text.marked else drawn


def screen_excerpt(
    screen: ScreenRows, shown: ShownScreen | None, matching_row: int | None, max_characters: int
) -> Excerpt:
    """Return the rows of a screen; of one `shown` in its size, the changed rows if that is shorter.

    If a whole screen is too long, leave out its middle, but not the matching or highlighted row.
    """
    rows = screen.rows
    whole = folded(Excerpt(rows))
    keep = matching_row
    if matching_row is None and screen.highlighted:
        keep = screen.highlighted.row
    if keep is not None:
        keep = len(folded(Excerpt(rows[: keep + 1])).marked) - 1
    excerpt = cut_in_the_middle(whole, max_characters, keep)
    highlight = _highlight(screen)
    # Now there is room for rows that were left out.
    is_new = bool(shown and shown.hidden and not excerpt.cut_bytes)
    is_comparable = shown and (shown.screen.size == screen.size or shown.screen.rows == rows)
    if shown and is_comparable and not shown.is_filtered and not is_new:
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

    An excerpt shows the screen to a caller who was shown another screen before, if any.
    """
    shown = set(excerpt.marked)
    known = set(enumerate(before.screen.rows)) if before else set()
    hidden = before.hidden if before else frozenset()

    def is_shown(number: int, row: str) -> bool:
        if (number, row) in known and number not in hidden:
            return True
        return not row or folded(Excerpt([row])).marked[0] in shown

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
    pairs = list(zip_longest(rows, shown.screen.rows, fillvalue=""))
    changed = [number for number, (now, before) in enumerate(pairs) if now != before]
    hidden = sorted(shown.hidden.difference(changed))
    if not changed and not hidden:
        return note("screen unchanged")
    parts = []
    if not changed:
        seen = [number for number in range(len(pairs)) if number not in shown.hidden]
        parts.append(note(f"{_named(seen)} unchanged"))
    for numbers in _consecutive(changed):
        texts = [pairs[number][0] for number in numbers]
        if any(texts):
            parts += [note(_named(numbers)), Excerpt(texts)]
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
    # They have the same difference between index and number.
    groups = groupby(enumerate(numbers), lambda indexed: indexed[0] - indexed[1])
    return [[number for _, number in group] for _, group in groups]
