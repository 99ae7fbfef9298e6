"""What each caller was shown, so that "unchanged" is said only of what its reader has seen.

The session of a caller is an MCP connection or, for verbs, the shell or script that calls them. A
report compares with what its caller was shown, and carries what it shows itself. That counts once
the answer is handed out, which is when `CallerSession.note` is called.
"""

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from tmux_debug_mcp.vt.captured import ScreenRows

from .readable import Readable
from .shells.jobs import RunEnding

# Of how many panes a session remembers what it was shown: those shown last.
_MAX_PANES = 64


@dataclass(frozen=True, slots=True)
class ShownScreen:
    """A screen that a result showed.

    Attributes:
        cursor: The cursor in that result.
        at: When it was made, by the pane's clock.
        hidden: The numbers of the rows, from 0, that no result so far showed.
        is_filtered: Only rows that match a pattern were shown.
    """

    cursor: int
    at: float
    screen: ScreenRows
    hidden: frozenset[int] = frozenset()
    is_filtered: bool = False

    @property
    def seen_rows(self) -> list[str]:
        """The rows that were shown."""
        return [row for number, row in enumerate(self.screen.rows) if number not in self.hidden]


@dataclass(frozen=True, slots=True)
class PaneView:
    """What is shown of a pane: by a result, or by all so far.

    Attributes:
        cursor: The output was shown up to here; 0 if none was.
        screen: The screen, as it was shown last; None if it was not.
        run: The run whose end was told last; None if none was.
    """

    cursor: int = 0
    screen: ShownScreen | None = None
    run: RunEnding | None = None


NOTHING_SHOWN = PaneView()


class CallerSession:
    """What one caller was shown of each pane. It is forgotten with the pane.

    How a run ended before `begun_at`, by the engine's clock, is no news to this caller.
    """

    def __init__(self, begun_at: float = -math.inf) -> None:
        self._begun_at = begun_at
        self._shown: WeakKeyDictionary[Readable, PaneView] = WeakKeyDictionary()

    def shown(self, pane: Readable) -> PaneView:
        """Return what the caller was shown of a pane."""
        return self._shown.get(pane, NOTHING_SHOWN)

    def news(self, pane: Readable) -> RunEnding | None:
        """Return how a run ended in a pane, if the caller was not told; None if there is no news.

        It is a run whose call returned before its end.
        """
        ending = pane.run_ending()
        if ending is None or ending.at < self._begun_at or ending is self.shown(pane).run:
            return None
        return ending

    def note(self, pane: Readable, shown: PaneView) -> None:
        """Note what the caller is shown of a pane, now that the answer is handed out."""
        before = self._shown.pop(pane, NOTHING_SHOWN)
        self._shown[pane] = PaneView(
            max(before.cursor, shown.cursor),
            shown.screen or before.screen,
            shown.run or before.run,
        )
        for oldest in list(self._shown)[:-_MAX_PANES]:
            del self._shown[oldest]
