"""Reports: what was seen of a pane when a wait ended, and the text that shows it.

A report shows the screen of a program that draws on all of it, else the output. A program that has
crashed leaves no screen, so the one from before stands before the output.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tmux_debug_mcp.logs.excerpts import Excerpt, cut_in_the_middle, folded, joined
from tmux_debug_mcp.logs.reading import read_abridged

from .looking.state import State
from .pane import Pane

# The notes around the last screen of a program that has crashed.
_LAST_SCREEN_NOTE = "[the screen before the last step]"
_OUTPUT_NOTE = "[then]"


class Reason(StrEnum):
    """Why a wait ended.

    Attributes:
        MATCHED: A line matches `pattern`.
        STOPPED: A line matches `stop_pattern`.
        IDLE: The pane was idle for `idle_s`.
        REST: The pane is at rest.
        INPUT: The program awaits something.
        LISTENS: A process of the pane listens on `port`.
        EXITED: The program has ended, or the pane is gone.
        FLOODED: More was printed than the log keeps, and no pattern was given.
        TIMED_OUT: The time is over.
    """

    MATCHED = "matched"
    STOPPED = "stopped"
    IDLE = "idle"
    REST = "rest"
    INPUT = "input"
    LISTENS = "listens"
    EXITED = "exited"
    FLOODED = "flooded"
    TIMED_OUT = "timed_out"

    @property
    def is_match(self) -> bool:
        """Whether a pattern matches."""
        return self in (Reason.MATCHED, Reason.STOPPED)


@dataclass(frozen=True, slots=True)
class Report:
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

    reason: Reason
    pane: Pane
    state: State
    excerpt: Excerpt
    start: int
    end: int
    screen: tuple[int, int] | None = None
    unseen_bytes: int = 0


def screen_excerpt(rows: Sequence[str], matching_row: int | None, max_characters: int) -> Excerpt:
    """Return the rows of a screen, without its middle if they are too long.

    `matching_row` is the number of a row that must not be left out, from 0.
    """
    line_to_keep = None
    if matching_row is not None:
        line_to_keep = len(folded(rows[: matching_row + 1]).lines) - 1
    return cut_in_the_middle(folded(rows), max_characters, line_to_keep)


async def output_excerpt(
    pane: Pane,
    start: int,
    end: int,
    last_screen: Sequence[str] | None,
    max_characters: int,
    advice: str,
) -> tuple[Excerpt, int]:
    """Return the output between two cursors, and the cursor where its text begins.

    `last_screen` has the rows of a screen to show before it; None for output alone.
    """
    before = Excerpt([], [])
    if last_screen is not None:
        notes = [Excerpt([note], [0]) for note in (_LAST_SCREEN_NOTE, _OUTPUT_NOTE)]
        room = max_characters // 2 - len(_LAST_SCREEN_NOTE) - len(_OUTPUT_NOTE) - 2
        before = joined(notes[0], cut_in_the_middle(folded(last_screen), room), notes[1])
        max_characters -= len(before.text) + 1
    output, start = await read_abridged(
        pane.log, start, end, max_characters, folds=True, advice=advice
    )
    return joined(before, output), start
