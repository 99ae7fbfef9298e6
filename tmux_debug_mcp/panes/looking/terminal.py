"""The terminal of a pane over time: snapshots of it, and waiting for a shell's prompt."""

import math
from collections.abc import Awaitable, Callable, Iterable

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.blocking import Blocked, blocked_on
from tmux_debug_mcp.linux.waits import HiddenWaits
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes.shells.dialects import Shell, foreground_shell
from tmux_debug_mcp.vt.printable import plain_name

from .activity import Activity, ActivityTracker, PromptWait, Snapshot, Waiting
from .snapshot import look


class Terminal:
    """The terminal of a pane.

    `flush` waits until tmux has read what was printed so far, and has answered the queries that
    programs sent to their terminal. `members` returns all processes of the pane. `before_typing`
    is the last snapshot before something was typed, None if nothing was.
    """

    def __init__(
        self,
        pane_pid: int,
        log: Log,
        clock: Clock,
        flush: Callable[[], Awaitable[object]],
        members: Callable[[], Iterable[int]],
    ) -> None:
        self._pane_pid = pane_pid
        self._log = log
        self._clock = clock
        self._times = clock.times
        self._flush = flush
        self._members = members
        # What the foreground was blocked on at the last look, the key of the snapshot then, and
        # since when that has been so.
        self._blocked: Blocked | None = None
        self._blocked_key: object = None
        self._blocked_since = -math.inf
        # The shells that were at their prompt before, by `Shell.start`.
        self._known_shells: set[tuple[int, int]] = set()
        self._made_at = self._clock.now()
        self._last: Snapshot | None = None
        self._hidden_waits = HiddenWaits()
        self._tracker = ActivityTracker(self._times)
        self.before_typing: Snapshot | None = None
        self._typed_at = -math.inf

    def look(self) -> Snapshot:
        """Return a new snapshot."""
        self._last = look(self._pane_pid, self._log.size, self._hidden_waits)
        self._tracker.step(self._last, self._clock.now())
        return self._last

    def glance(self) -> Activity:
        """Return what the pane is doing, without waiting for a second snapshot.

        If nothing has happened since the last snapshot, no new one is taken.
        """
        if self._last is None or not self._is_unchanged(self._last):
            self._last = look(self._pane_pid, self._log.size, self._hidden_waits)
        return self._tracker.step(self._last, self._clock.now())

    def _is_unchanged(self, last: Snapshot) -> bool:
        """Tell whether the threads that wait for the terminal have not run since a snapshot.

        Where none does, all threads count that could begin to.
        """
        threads, spent_ns = last.readers, last.reader_ns
        if not threads and not last.is_at_work:
            threads, spent_ns = last.threads, last.threads_ns
        if not threads or last.printed_bytes != self._log.size:
            return False
        leader = processes.read_stat(self._pane_pid)
        if leader is None or leader.reaped or leader.tpgid != last.group:
            return False
        return sum(processes.cpu_ns(*thread) for thread in threads) == spent_ns

    def blocked_on(self, activity: Activity) -> str | None:
        """Return what the program is blocked on that has the terminal, at rest.

        None if it is not at rest, may await something of the terminal, or the kernel does not tell.
        """
        snapshot = activity.snapshot
        may_await = activity.is_awaiting or snapshot.waiting is not Waiting.NONE
        if snapshot.is_over or snapshot.pid is None or may_await or not activity.is_at_rest:
            return None
        found = self._blocked
        is_same = found is not None and snapshot.change_key == self._blocked_key
        if found and is_same and found.groups != {snapshot.group}:
            is_same = found.is_still_so()
        if not is_same:
            found = blocked_on(snapshot.pid, plain_name, self._members)
            if found != self._blocked:
                self._blocked_since = self._clock.now()
            self._blocked, self._blocked_key = found, snapshot.change_key
        if found is None:
            return None
        # That the foreground group is at rest says nothing about other groups.
        is_of_group = found.groups == {snapshot.group}
        if not is_of_group and self._clock.now() < self._blocked_since + self._times.quiet_s:
            return None
        return found.text

    def typed(self, before: Snapshot) -> None:
        """Note that something is typed now, given the snapshot from just before."""
        self.before_typing = before
        self._typed_at = self._clock.now()
        self._tracker = ActivityTracker(self._times, before)
        self._tracker.step(before, self._clock.now())

    def tmux_has_typed(self) -> None:
        """Note that tmux has taken what was typed: only now may the program read it."""
        if self.before_typing:
            self.typed(self.before_typing)

    @property
    def typed_s(self) -> float:
        """Seconds since tmux took what was typed, infinite if nothing was."""
        return self._clock.now() - self._typed_at

    async def observe(self, tracker: ActivityTracker) -> Activity:
        """Return what the pane is doing, from a new snapshot and those that the tracker had before.

        If the snapshot shows that the program may await something, a second one is taken 2 ms
        later, since only two can tell.
        """
        activity = tracker.step(self.look(), self._clock.now())
        if activity.is_likely and activity.awaits is None and activity.shell is None:
            await self._flush()
            await self._clock.sleep(self._times.confirm_s)
            activity = tracker.step(self.look(), self._clock.now())
        return activity

    async def prompt(
        self, timeout_s: float, *, starting_s: float | None = None, is_to_run: bool = False
    ) -> Shell | None:
        """Return the shell in the foreground once it is at its prompt.

        None if no shell is in the foreground or it does not get to its prompt in time. A shell that
        has been at its prompt before gets `timeout_s`, but at least 0.5 s while it is at work. One
        that has not gets `starting_s` as long as it is busy; by default `Times.starting_s`. If a
        command is to be run there, the wait also covers the programs that a starting shell runs
        itself.
        """
        # A shell that has not yet read what was typed only seems to be at its prompt.
        before = self.before_typing if self.typed_s < self._times.typed_s else None
        tracker = ActivityTracker(self._times, before)
        if starting_s is None:
            starting_s = self._times.starting_s
        prompt_wait = PromptWait(self._times, timeout_s, starting_s)
        deadline = self._clock.now() + timeout_s
        has_children = False
        while await self._wait_for_shell(deadline):
            activity = await self.observe(tracker)
            if activity.shell:
                self._known_shells.add(activity.shell.start)
                return activity.shell
            shell = activity.snapshot.shell
            if shell is None:
                return None
            is_starting = shell.start not in self._known_shells and shell.is_interactive()
            now = self._clock.now()
            if not prompt_wait.step(
                activity, now, is_starting=is_starting, has_children=has_children
            ):
                return None
            await self._clock.sleep(self._times.fast_poll_s)
            # Read before the next snapshot, which then shows a shell whose last child has ended as
            # one that has run since.
            has_children = is_to_run and bool(processes.children(shell.pid))
        return None

    async def _wait_for_shell(self, deadline: float) -> bool:
        """Wait until a shell is in the foreground of a pane whose command has not begun.

        Return whether one is: False as soon as the command, which may be a shell, has begun as
        another program, or after the deadline.
        """
        while foreground_shell(self._pane_pid) is None:
            if self._clock.now() >= deadline:
                return False
            if self._clock.now() >= self._made_at + self._times.young_s:
                children = processes.children(self._pane_pid)
                command = processes.read_stat(children[0]) if children else None
                if command is None or not command.is_fork:
                    return False
            await self._clock.sleep(self._times.fast_poll_s)
        return True
