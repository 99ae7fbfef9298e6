"""The terminal of a pane over time: what snapshots of it show, one after the other."""

import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.blocking import Blockage, blocked_on
from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.linux.waits import HiddenWaits, OutsideReaders
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.turns import next_turn
from tmux_debug_mcp.vt.printable import plain_name

from .activity import Activity, ActivityTracker, Awaits, Snapshot, WaitKind, awaited
from .snapshot import has_outside_news, has_run, look


class Terminal:
    """The terminal of a pane, whose session leader is its pane.sh.

    `flush` waits until tmux has read what was printed so far, and has answered the queries that
    programs sent to their terminal. `members` returns all processes of the pane. All terminals
    share `outside`.

    Attributes:
        known_shells: The shells that were at their prompt before, by `Shell.start`.
        before_typing: The last snapshot before something was typed, None if nothing was.
        wait_number: How many different waits for the terminal were seen.
        is_blocked_soon: More could be told of what the program is blocked on if other groups were
            known to be at rest.
    """

    def __init__(
        self,
        leader: Stat,
        log: Log,
        clock: Clock,
        flush: Callable[[], Awaitable[object]],
        members: Callable[[], Iterable[int]],
        outside: OutsideReaders,
    ) -> None:
        self._leader = leader
        self._log = log
        self._clock = clock
        self._times = clock.times
        self._flush = flush
        self._members = members
        self._outside = outside
        # What the foreground was blocked on at the last look, that snapshot's key, and since when.
        self._blocked: Blockage | None = None
        self._blocked_key: object = None
        self._blocked_since = -math.inf
        self.known_shells: set[tuple[int, int]] = set()
        self._is_begun = False  # its command has called execve(2), or has ended
        self._last: Snapshot | None = None
        self.wait_number = 0
        self.is_blocked_soon = False
        self._flushed_wait = 0
        self._hidden_waits = HiddenWaits()
        self._tracker = ActivityTracker(self._times)
        self.before_typing: Snapshot | None = None
        self._typed_at = -math.inf
        self._typed_earlier: tuple[Snapshot | None, float, ActivityTracker]

    def look(self, since: float = -math.inf) -> Activity:
        """Take a new snapshot, and return what the pane is doing.

        Whoever began to look `since` then counts how long the pane is quiet from there.
        """
        begin = self._clock.now()
        snapshot = self.snapshot()
        if self._last is None or self._last.wait_key != snapshot.wait_key:
            self.wait_number += 1
        self._last = snapshot
        return self._tracker.step(
            snapshot,
            begin,
            took_s=self._clock.now() - begin,
            since=since,
            is_flushed=self._flushed_wait == self.wait_number,
        )

    def snapshot(self) -> Snapshot:
        """Return a new snapshot, which counts for no later look."""
        size, waits = self._log.size, self._hidden_waits
        return look(self._leader.pid, size, waits, self._last, self._outside)

    async def observe(self, since: float = -math.inf) -> Activity:
        """Look, and if the program may await something, look again to confirm it.

        The second look comes when tmux has answered what programs have asked it, and 2 ms later.
        """
        await next_turn()
        activity = self.look(since)
        if not activity.is_likely or activity.awaits or activity.shell:
            return activity
        number = self.wait_number
        await self._flush()
        self._flushed_wait = number
        await self._clock.sleep(self._times.confirm_s)
        await next_turn()
        return self.look(since)

    def unchanged(self) -> Activity | None:
        """Return what the pane is doing; None if something may have happened since the last look.

        Nothing has if no process has run and nothing was printed.
        """
        last = self._last
        if last is None or last.is_at_work or last.printed_bytes != self._log.size or has_run(last):
            return None
        if has_outside_news(last, self._outside):
            return None
        return self._tracker.step(last, self._clock.now())

    def seems_to_await(self, activity: Activity) -> Awaits | None:
        """Return what the program awaits, as far as a single look can tell."""
        has_read = activity.has_read and self.typed_s >= self._times.typed_s
        # One snapshot is enough if nothing can be on its way to or from the program.
        is_enough = has_read and not self.has_just_printed
        return awaited(activity.snapshot) if is_enough else activity.awaits

    @property
    def has_just_printed(self) -> bool:
        """Whether the program has just printed, so that more may be on its way to the log."""
        return self._clock.now() < self._log.grew_at() + self._times.printed_s

    def begin_typing(self, *, gets_keys: bool = False, gets_escape: bool = False) -> Snapshot:
        """Note that something is typed now, and return the snapshot from just before."""
        before = replace(self.look().snapshot, gets_keys=gets_keys, gets_escape=gets_escape)
        self._typed_earlier = self.before_typing, self._typed_at, self._tracker
        self.typed(before)
        return before

    def undo_typing(self) -> None:
        """Note that nothing was typed since the last call of `begin_typing`."""
        self.before_typing, self._typed_at, self._tracker = self._typed_earlier

    def blocked_on(self, activity: Activity) -> Blockage | None:
        """Return what the program in the foreground is blocked on, or merely waits for.

        None if it is not at rest, may await something from the terminal, or the kernel doesn't say.
        """
        self.is_blocked_soon = False
        snapshot = activity.snapshot
        may_await = activity.only_awaits or snapshot.waiting is not WaitKind.NONE
        if snapshot.is_over or may_await or not activity.is_at_rest:
            return None
        # A command that has left the foreground, as timeout(1) does, is what pane.sh waits for.
        pid = snapshot.inside or snapshot.pid or self._leader.pid
        ask = partial(
            blocked_on, pid, plain_name, self._members, is_inside=snapshot.inside is not None
        )
        found = self._blocked
        is_same = found is not None and snapshot.change_key == self._blocked_key
        if found and is_same and found.groups != {snapshot.group}:
            is_same = found.is_still_so()
        if not is_same:
            found = ask()
            if found != self._blocked:
                self._blocked_since = self._clock.now()
            self._blocked, self._blocked_key = found, snapshot.change_key
        if found is None:
            return None
        # A foreground group at rest says nothing about other groups.
        is_of_group = found.groups == {snapshot.group}
        if is_of_group or self._clock.now() >= self._blocked_since + self._times.quiet_s:
            return found
        self.is_blocked_soon = True
        found = ask(is_for_group=True)
        return found if found and found.groups == {snapshot.group} else None

    def typed(self, before: Snapshot) -> None:
        """Note that something is typed now, given the snapshot from just before."""
        self.before_typing = before
        self._typed_at = self._clock.now()
        self._tracker = ActivityTracker(self._times, before)
        self._tracker.step(before, self._clock.now())

    def tmux_has_typed(self) -> None:
        """Note that tmux has taken what was typed: only now can the program read it."""
        if self.before_typing:
            self.typed(self.before_typing)

    @property
    def typed_s(self) -> float:
        """Seconds since tmux took what was typed, infinite if nothing was."""
        return self._clock.now() - self._typed_at

    def has_begun(self) -> bool:
        """Return whether the pane's command has called execve(2), or has ended."""
        if not self._is_begun:
            leader = processes.read_living(self._leader.pid, self._leader.starttime)
            self._is_begun = leader is None or leader.has_begun_command
        return self._is_begun
