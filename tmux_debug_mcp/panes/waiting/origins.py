"""Where a wait begins to look."""

from collections.abc import Sequence
from dataclasses import dataclass

from tmux_debug_mcp.panes.looking.activity import Snapshot
from tmux_debug_mcp.panes.pane import Pane


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a wait begins to look.

    Attributes:
        cursor: Output from this cursor on can match.
        shown_from: Output from this cursor on is shown; at most `cursor`.
        rows: The rows that the screen had at `cursor`; empty if they are not known. Only other
            rows can match.
        before: The snapshot before the last keys; None if the wait does not follow keys.
    """

    cursor: int
    shown_from: int
    rows: Sequence[str] = ()
    before: Snapshot | None = None


def since_last_keys(pane: Pane) -> Origin:
    """Return the origin at the last keys or the last job of the pane's shell, else at its start."""
    job = pane.jobs.last
    job_start = 0
    if job and job.start is not None:
        job_start = job.start
    sent = pane.keyboard.last_sent
    before = pane.terminal.before_typing
    if sent is None or job_start > sent.cursor:
        return Origin(job_start, job_start, before=before)
    rows = sent.rows or _rows_shown_at(pane, sent.cursor)
    return Origin(sent.cursor, sent.cursor, rows, before)


def since_cursor(pane: Pane, cursor: int) -> Origin:
    """Return the origin at a cursor, which the pane's log must have reached."""
    last_keys = since_last_keys(pane)
    if cursor == last_keys.cursor:
        return last_keys
    return Origin(cursor, cursor, _rows_shown_at(pane, cursor))


def _rows_shown_at(pane: Pane, cursor: int) -> Sequence[str]:
    """Return the rows of the screen at a cursor; none unless the last result showed them."""
    shown = pane.shown
    if shown is None or shown.cursor != cursor:
        return ()
    return shown.rows
