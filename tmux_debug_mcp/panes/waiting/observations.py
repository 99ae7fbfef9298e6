"""Observations: what a wait saw first, and an excerpt of the output or the screen until then."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tmux_debug_mcp.logs.excerpts import Excerpt, cut_in_the_middle, folded, joined
from tmux_debug_mcp.logs.reading import Abridgement, read_abridged
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane

# The notes around the last screen of a program that has crashed.
_LAST_SCREEN_NOTE = "[the screen before the last step]"
_OUTPUT_NOTE = "[then]"


class WaitReason(StrEnum):
    """Why a wait ended.

    Attributes:
        MATCHED: A line matches `pattern`.
        STOPPED: A line matches `stop_pattern`.
        IDLE: The pane was idle for `idle_s`.
        REST: The pane is at rest.
        INPUT: The program awaits something.
        EXITED: The program has ended, or the pane is gone.
        FLOODED: More was printed than the log keeps, and no pattern was given.
        TIMED_OUT: The time is over.
    """

    MATCHED = "matched"
    STOPPED = "stopped"
    IDLE = "idle"
    REST = "rest"
    INPUT = "input"
    EXITED = "exited"
    FLOODED = "flooded"
    TIMED_OUT = "timed_out"

    @property
    def is_match(self) -> bool:
        """Whether a pattern matches."""
        return self in (WaitReason.MATCHED, WaitReason.STOPPED)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a wait saw first.

    Attributes:
        reason: Why the wait ended.
        state: The pane's state then.
        start: The cursor where the output to show begins.
        end: The cursor to go on from: output up to here was matched.
        unseen_bytes: Output that was trimmed from the log before it could be matched.
    """

    reason: WaitReason
    state: State
    start: int
    end: int
    unseen_bytes: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What a wait saw first, and what was printed or shown until then.

    Attributes:
        reason: Why the wait ended.
        pane: The pane.
        state: The pane's state then.
        excerpt: The output, or the screen of a program that draws on the whole screen.
        start: The cursor where the output begins.
        end: The cursor to go on from.
        screen: The columns and rows of the screen; None if the excerpt is output.
        unseen_bytes: Output that was trimmed from the log before it could be matched.
    """

    reason: WaitReason
    pane: Pane
    state: State
    excerpt: Excerpt
    start: int
    end: int
    screen: tuple[int, int] | None
    unseen_bytes: int


def observed_screen(
    pane: Pane,
    sighting: Sighting,
    rows: Sequence[str],
    matching_row: int | None,
    max_characters: int,
) -> Observation:
    """Return an observation that shows the screen.

    Args:
        pane: The pane.
        sighting: What the wait saw first.
        rows: The rows of the screen.
        matching_row: The number of a row that the excerpt must not leave out, from 0.
        max_characters: The limit for the excerpt.
    """
    line_to_keep = None
    if matching_row is not None:
        line_to_keep = len(folded(rows[: matching_row + 1]).lines) - 1
    return Observation(
        reason=sighting.reason,
        pane=pane,
        state=sighting.state,
        excerpt=cut_in_the_middle(folded(rows), max_characters, line_to_keep),
        start=sighting.start,
        end=sighting.end,
        screen=(pane.log.columns, pane.log.rows),
        unseen_bytes=sighting.unseen_bytes,
    )


async def observed_output(
    pane: Pane,
    sighting: Sighting,
    last_screen: Sequence[str] | None,
    abridgement: Abridgement,
) -> Observation:
    """Return an observation that shows the output from the sighting's start to its end.

    Args:
        pane: The pane.
        sighting: What the wait saw first.
        last_screen: The rows of a screen to show before the output; None for output alone.
        abridgement: The limit for the excerpt, and what is done with output that exceeds it.
    """
    screen = Excerpt([], [])
    if last_screen is not None:
        max_characters = abridgement.max_characters
        screen = _last_screen(last_screen, max_characters // 2)
        max_characters -= len(screen.text) + 1
        abridgement = replace(abridgement, max_characters=max_characters)
    output, start = await read_abridged(pane.log, sighting.start, sighting.end, abridgement)
    return Observation(
        reason=sighting.reason,
        pane=pane,
        state=sighting.state,
        excerpt=joined(screen, output),
        start=start,
        end=sighting.end,
        screen=None,
        unseen_bytes=sighting.unseen_bytes,
    )


def _last_screen(rows: Sequence[str], max_characters: int) -> Excerpt:
    """Return the screen of a program that has crashed, between two notes."""
    before = Excerpt([_LAST_SCREEN_NOTE], [0])
    after = Excerpt([_OUTPUT_NOTE], [0])
    max_characters -= len(before.text) + len(after.text) + 2  # two line feeds
    return joined(before, cut_in_the_middle(folded(rows), max_characters), after)
