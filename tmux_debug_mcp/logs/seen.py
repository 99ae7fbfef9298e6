"""What was seen of a pane's text: the lines of each step, and the screens between them.

As much is kept as a result can show, however many steps there are.
"""

import copy
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tmux_debug_mcp.vt.marks import without_paths
from tmux_debug_mcp.vt.rows import NOTE, Event, Gap, Line, text_of

from .excerpts import KEPT_CHARACTERS, Excerpt, Part
from .log import Log
from .pane_text import PIECE_BYTES, PaneText

T = TypeVar("T")

# At most so many parts are kept, and screens of the newest steps.
_MAX_PARTS = 40
_MAX_FRAMES = 50
# A line that matches `show` is shown with so much around the match if it is longer.
_MAX_LINE_CHARACTERS = 1 << 14
_AROUND_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The rows that appeared on a screen after a step of keys; or the last screen of a program.

    A program was done with its last screen at the cursor `done_at`, or a little before.
    """

    rows: Sequence[str]
    done_at: int = 0


def found_in(log: Log, excerpt: Excerpt) -> Excerpt:
    """Return an excerpt with the gaps that a log still has, which begin after what is shown."""
    gaps = []
    for gap in excerpt.gaps:
        begin = gap.shown.encode()
        is_plain = log.read(gap.since, len(begin)) == begin
        gaps.append(gap._replace(since=gap.since + len(begin) * is_plain))
    return excerpt._replace(gaps=tuple(gap for gap in gaps if gap.since >= log.kept_from))


def in_pairs(items: Iterable[Part | T]) -> list[Part | T]:
    """Join each second part to the part before it. What is between parts stays in its order."""
    pairs: list[Part | T] = []
    first: Part | None = None
    for item in items:
        if not isinstance(item, Part):
            pairs.append(item)
        elif first:
            first.extend(item)
            first = None
        else:
            first = item.copy()
            pairs.append(first)
    return pairs


class SeenText:
    """What was seen from a cursor on, in order. If `show` is given, only lines that match it.

    Attributes:
        items: Lines and frames; the last item are the newest lines.
        last_screen: The frame of the program that drew last and was done with it, if any.
        has_older_frames: There were older frames, too.
        count: How many lines match `show`.
    """

    def __init__(
        self,
        start: int,
        rows: Sequence[str] = (),
        show: Any = None,  # noqa: ANN401  re2 has no types
    ) -> None:
        self.items: list[Part | Frame] = [Part(start)]
        self.last_screen: Frame | None = None
        self.has_older_frames = False
        self.count = 0
        self._show = show
        self._rows = rows
        self._bounds: set[int] = set()  # where the lines begin that steps were typed in

    @property
    def parts(self) -> list[Part]:
        """The lines, in order."""
        return [item for item in self.items if isinstance(item, Part)]

    @property
    def _newest(self) -> Part:
        return self.items[-1]  # type: ignore[return-value]  # the last is one

    @property
    def lines(self) -> list[str]:
        """The lines that are kept."""
        return [line for part in self.parts for line in part.lines]

    def add(self, events: Iterable[Event], position: int = 0) -> None:
        """Add what was read up to a position."""
        for event in events:
            if isinstance(event, Line):
                if not event.is_drawn:
                    self._add_line(event)
            elif isinstance(event, Gap):
                self._newest.add(event)
            else:
                self.items = [item for item in self.items if item is not self.last_screen]
                self.last_screen = Frame(event.rows, position)
                self._begin_part(None, self.last_screen)

    def _add_line(self, line: Line) -> None:
        if line.begins_at in self._bounds:
            self._begin_part(line.begins_at)
        text = without_paths(line.shown)
        if self._show is not None:
            match = self._show.search(text)
            if match is None:
                return
            self.count += 1
            if len(text) > _MAX_LINE_CHARACTERS:
                start = max(0, match.start() - _AROUND_CHARACTERS)
                text = text[start : match.start() + 3 * _AROUND_CHARACTERS]
        if text != line.text:  # a copy takes as long as all the rest
            line = line._replace(text=text)
        self._newest.add(line)

    def step(
        self, begins_at: int | None, rows: Sequence[str] | None, rows_before: Sequence[str] = ()
    ) -> None:
        """Note that keys are sent now: in the line that begins there, if known.

        `rows` is the screen, if a program draws on it; `rows_before` those when it began.
        """
        if begins_at is not None:
            self._bounds.add(begins_at)
        if rows is not None:
            old = {*self._rows, *rows_before}
            self._begin_part(None, Frame([row for row in rows if row not in old]))
        self._rows = rows or ()

    def _begin_part(self, start: int | None, *frames: Frame) -> None:
        steps = [item for item in self.items if isinstance(item, Frame) and not item.done_at]
        if len(steps) >= _MAX_FRAMES:
            self.has_older_frames = True
            self.items.remove(steps[0])
        if len(self.parts) > _MAX_PARTS:
            self.items = in_pairs(self.items)
        parts = self.parts
        if sum(part.size for part in parts) > 2 * KEPT_CHARACTERS:
            room = KEPT_CHARACTERS
            for count, part in enumerate(sorted(parts, key=lambda part: part.size)):
                part.keep(room // (len(parts) - count))  # what short parts leave is for long parts
                room -= part.size
        self.items += [*frames, Part(start)]

    def with_open(self, lines: Sequence[Line]) -> "SeenText":
        """Return a copy with the lines that may still change; the last is incomplete."""
        extended = copy.copy(self)
        extended.items = [item.copy() if isinstance(item, Part) else item for item in self.items]
        extended.add(lines)
        return extended


async def read_pieces(log: Log, start: int, end: int) -> AsyncIterator[tuple[str, int]]:
    """Yield the text from one cursor to another in pieces, each at most a turn's work.

    Each piece comes with how many bytes before it are no longer kept. Put together, the pieces are
    all that the program printed, without notes of ours.
    """
    text = await PaneText.to_read(log, start, end)
    position = -1
    while position != text.position < end:
        position = text.position
        events, _ = await text.advance(end, PIECE_BYTES)
        yield printed(events), sum(event.size for event in events if isinstance(event, Gap))
    yield printed(text.open_lines).removesuffix("\n"), 0


def printed(events: Iterable[Event]) -> str:
    """Return the lines of the program among events, each with its line feed."""
    lines = (
        event for event in events if isinstance(event, Line) and not event.text.startswith(NOTE)
    )
    return text_of(line._replace(text=without_paths(line.shown)) for line in lines)


async def read_ends(
    text: PaneText, end: int, max_characters: int, *, folds: bool = False
) -> Excerpt:
    """Return a text up to a cursor, without its middle if it is too long, as `Part.excerpt` does.

    The room is 16,000 characters at most.
    """
    seen = SeenText(text.position)
    position = -1
    while position != text.position < end:
        position = text.position
        await text.pass_over(end)
        events, _ = await text.advance(end, PIECE_BYTES)
        seen.add(events, text.position)
    [part] = seen.with_open(text.open_lines).parts
    return found_in(text.log, part.excerpt(max_characters, folds=folds))
