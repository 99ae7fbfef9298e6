"""Reading panes: live panes, and those of which only a kept log is left."""

import contextlib
from collections.abc import Sequence

import anyio

from tmux_debug_mcp.errors import PaneLostError
from tmux_debug_mcp.logs.archive import ArchivedPane
from tmux_debug_mcp.logs.reading import read_last_lines, read_screen

from .capturing import capture, capture_screen
from .looking.activity import Activity, WaitKind
from .looking.state import State, ended_state
from .pane import Pane
from .shells.jobs import RunEnding
from .watching import Moment, Need, at_rest, until


class KeptPane:
    """A pane of which only the log is left. It can be read like a live pane.

    Its id is `RUN/ID`. Whoever opens it must close its log.
    """

    has_gaps = False

    def __init__(self, kept: ArchivedPane) -> None:
        self._kept = kept
        self.id = kept.target
        self.name = kept.entry.name
        self.command = kept.entry.command
        self.log = kept.log

    async def state(self) -> State:
        """Return how the program ended: lost, if it ended with its server."""
        runtime_s = max(0.0, self.log.written_at - self._kept.entry.started_at)
        mark = await self.log.find_mark()
        if mark:
            return ended_state(mark.exit_code, runtime_s, mark.output_end(self.log.size))
        return State(
            is_running=False,
            runtime_s=runtime_s,
            cursor=self.log.size,
            is_lost=True,
            may_grow=self._kept.is_held,
        )

    async def ensure_log_writer(self) -> bool:
        """Return False: the log is complete, or another server's."""
        return False

    def remarks(self) -> list[str]:
        """Return no remarks: a kept log needs none."""
        return []

    def run_ending(self) -> RunEnding | None:
        """Return None: no call awaits the end of a run there."""
        return None


Readable = Pane | KeptPane


def shown_name(pane: Readable) -> str:
    """Return a pane's id, with its name if any, in quotes if that has blanks."""
    if pane.name == pane.id:
        return str(pane.id)
    return f"{pane.id} '{pane.name}'" if " " in pane.name else f"{pane.id} {pane.name}"


async def confirmed_state(pane: Readable) -> State:
    """Return a pane's state. If the program may be at rest, first find out whether it is.

    Only if it is, the state says what it is blocked on. A single look can't tell how long the
    program has not run, so this may take a little more than `Times.quiet_s`. It takes twice that if
    the program works for a moment meanwhile, or waits for other groups of processes; if it goes on
    working, this ends.
    """
    state = await pane.state()
    if not state.is_running or not isinstance(pane, Pane):
        return state
    clock, quiet_s = pane.clock, pane.clock.times.quiet_s
    activity = pane.terminal.unchanged() or pane.terminal.look()
    snapshot = activity.snapshot
    may_rest = snapshot.waiting is WaitKind.NONE and not (snapshot.is_over or snapshot.is_at_work)
    if not may_rest or clock.now() < pane.log.grew_at() + quiet_s:
        return state
    last: Activity | None = None
    works = 0

    def is_certain(moment: Moment) -> bool | Need | None:
        nonlocal last, works
        activity = moment.activity
        if activity is not last:
            works += last is not None and activity is not None and not activity.inactive_s
            last = activity
        return works > 1 or at_rest(moment)

    if not activity.is_at_rest:
        await until(pane, is_certain, clock.now() + 2 * quiet_s)
        state = await pane.state()
    until_s = clock.now() + 2 * quiet_s
    while pane.terminal.is_blocked_soon and clock.now() < until_s:
        await clock.sleep(clock.times.max_look_s)
        state = await pane.state()
    return state


async def confirmed_states(states: Sequence[tuple[Pane, State]]) -> list[tuple[Pane, State]]:
    """Return panes with these states, or confirmed ones where these don't say what is awaited."""
    confirmed = dict(states)

    async def confirm(pane: Pane) -> None:
        confirmed[pane] = await confirmed_state(pane)

    async with anyio.create_task_group() as tasks:
        for pane, state in states:
            if state.is_running and not (state.awaits or state.blocked_on):
                tasks.start_soon(confirm, pane)
    return list(confirmed.items())


async def last_lines(pane: Readable, lines: int, max_characters: int, *, ansi: bool = False) -> str:
    """Return the last lines of the screen and its history, or of the alternate screen alone.

    A line that the terminal wrapped counts as one. If the pane is gone, return the last lines of
    its log, without colours and attributes, and at most `max_characters`.
    """
    if isinstance(pane, Pane):
        with contextlib.suppress(PaneLostError):
            return await capture(pane, lines, ansi=ansi)
    found, _ = await read_last_lines(pane.log, (await pane.state()).cursor, lines, max_characters)
    return "\n".join(found).rstrip(" \n")


async def shown_screen(pane: Readable) -> str:
    """Return what the screen shows, or showed at the end if the pane is gone."""
    if isinstance(pane, Pane):
        with contextlib.suppress(PaneLostError):
            return (await capture_screen(pane)).text()
    return await read_screen(pane.log, (await pane.state()).cursor)
