"""Matching patterns on the screen, for programs that draw on all of it.

Such programs do not print lines. So a wait matches its patterns against the rows of the screen that
have changed since it began.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence

from tmux_debug_mcp.errors import PaneLostError
from tmux_debug_mcp.logs.matching import Matcher
from tmux_debug_mcp.logs.positioning import is_alternate_at
from tmux_debug_mcp.panes.capturing import capture_screen_rows
from tmux_debug_mcp.panes.looking.activity import Snapshot, prompting
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.vt.drawing import Drawing

from .observations import WaitReason
from .origins import Origin


class DrawnScreen:
    """The screen of a pane, for one wait.

    Args:
        pane: The pane.
        origin: Where the wait began to look.
        matcher: The patterns of the wait.

    Attributes:
        drawing: Tells from the output whether the program draws on the whole screen. The wait feeds
            it all output from the origin on.
    """

    def __init__(self, pane: Pane, origin: Origin, matcher: Matcher) -> None:
        self._pane = pane
        self._origin = origin
        self._matcher = matcher
        self.drawing = Drawing(
            is_alternate=is_alternate_at(pane.log, origin.cursor),
            has_addressed=_has_shown_screen(pane, origin),
        )
        self._was_on = self.drawing.is_on
        self._matched_to = origin.cursor  # output up to here had been printed at the last match
        self._matching_row: int | None = None

    @property
    def rows_at_origin(self) -> Sequence[str] | None:
        """The rows of the screen where the wait began; None if no program was drawing there."""
        if not self._was_on:
            return None
        return self._origin.rows

    def drawer(self) -> Snapshot | None:
        """Return a snapshot of the program that draws on the whole screen; None if none does."""
        if not self.drawing.is_on:
            return None
        snapshot = self._pane.terminal.look()
        # A shell at its prompt: the program that was drawing has ended.
        if prompting(snapshot):
            return None
        return snapshot

    async def rows(self) -> list[str]:
        """Return the rows of the screen, none if the pane is gone.

        Raises:
            StorageError: There is no room for the capture.
        """
        rows, _ = await self._capture()
        return rows

    async def match(self, position: int, *, may_wait: bool) -> WaitReason | None:
        """Return which pattern matches a row that has changed; None if none does.

        Args:
            position: The cursor up to which the output was read. Does nothing if that is where it
                was at the last call.
            may_wait: Wait until the program has drawn the rest of its screen.

        Raises:
            StorageError: There is no room for the capture.
        """
        if not self.drawing.is_on or self._matched_to == position:
            return None
        if not self._matcher.has_patterns:
            return None
        if may_wait:
            await self._pane.clock.sleep(self._pane.clock.times.drawing_s)
        if self.drawer() is None:
            return None
        self._matched_to = position
        rows, is_alternate = await self._capture()
        # The program has left its screen, in output that was not read yet.
        if self.drawing.is_alternate and not is_alternate:
            return None
        return self._match_changed(rows)

    def _match_changed(self, rows: Sequence[str]) -> WaitReason | None:
        # Rows are compared wherever they are, so that a screen that scrolls does not match anew.
        changed = Counter(rows) - Counter(self._origin.rows)
        for number, row in enumerate(rows):
            if not changed[row]:
                continue
            text = self._without_echo(row)
            # Behind the last character of a row are blanks, which a pattern may end with.
            reason = self._matcher.first([text]) or self._matcher.first([f"{text} "])
            if reason:
                self._matching_row = number
                return WaitReason(reason)
        return None

    def _without_echo(self, row: str) -> str:
        """Return a row without the keys typed last, and what is before them, if it has them."""
        sent = self._pane.keyboard.last_sent
        # Without keys before the wait nothing is echoed, and full-screen programs don't echo.
        if self.drawing.is_alternate or sent is None or self._origin.before is None:
            return row
        ends = [row.rfind(text) + len(text) for text in sent.texts if text in row]
        return row[max(ends, default=0) :]

    def matching_row(self, rows: Sequence[str]) -> int | None:
        """Return the number of the row that matched, else of the first that does, from 0."""
        if self._matching_row is not None:
            return self._matching_row
        for number, row in enumerate(rows):
            if self._matcher.first([row]) or self._matcher.first([f"{row} "]):
                return number
        return None

    async def _capture(self) -> tuple[list[str], bool]:
        """Return the rows of the screen, and whether it is the alternate screen."""
        with contextlib.suppress(PaneLostError):
            return await capture_screen_rows(self._pane)
        return [], False


def _has_shown_screen(pane: Pane, origin: Origin) -> bool:
    """Tell whether a result has shown the screen of the program that got the last keys."""
    if origin.before is None or pane.shown is None:
        return False
    return origin.before.group == pane.shown.group
