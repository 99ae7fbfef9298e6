"""One look at the terminal of a pane: who has it, what it does with keys, and who waits for them.

All of it is asked of the kernel, through /proc; nothing is guessed from what the screen shows. What follows from it is
decided in `doing`, which does no I/O.

A thread waits for the terminal when it is in a system call that returns once something was typed: read(2) of it, or
poll(2), select(2) or epoll_wait(2) with it. That may be hidden from us, as of programs of other users.
"""

import math
import time
from collections.abc import Awaitable, Callable

import anyio

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.log import Log

from .activity import CONFIRM_S, Activity, ActivityTracker, PromptWait, Snapshot
from .dialects import Shell, foreground_shell
from .snapshot import look

# A shell that starts sets up things; keys wait so long for that.
_STARTING_S = 10.0
_LOOK_AGAIN_S = 0.001
# What a pane was made for may be a shell that has not begun after a shorter time.
_YOUNG_S = 0.05


class Terminal:
    """The terminal of a pane, to be looked at.

    Args:
        pane_pid: The process of pane.sh.
        log: The pane's log.
        flush: Waits until tmux has read what was printed, and has answered what a program asked its terminal.

    Attributes:
        before_typing: The snapshot before something was typed last.
    """

    def __init__(self, pane_pid: int, log: Log, flush: Callable[[], Awaitable[object]]) -> None:
        self._pane_pid = pane_pid
        self._log = log
        self._flush = flush
        self._known: set[tuple[int, int]] = set()
        self._made_at = anyio.current_time()
        self._last: Snapshot | None = None
        self._tracker = ActivityTracker()
        self.before_typing: Snapshot | None = None
        self._typed_at = -math.inf

    def look(self) -> Snapshot:
        """Return what one look tells."""
        self._last = look(self._pane_pid, self._log.size)
        self._tracker.step(self._last, anyio.current_time())
        return self._last

    def glance(self) -> Activity:
        """Return what the pane is doing as far as that can be told at once: less than a look where all is as before."""
        if self._last is None or not self._is_as_before(self._last):
            self._last = look(self._pane_pid, self._log.size)
        return self._tracker.step(self._last, anyio.current_time())

    def typed(self, before: Snapshot) -> None:
        """Note that something is typed after a look."""
        self.before_typing = before
        self._typed_at = time.time()
        self._tracker = ActivityTracker(before)
        self._tracker.step(before, anyio.current_time())

    @property
    def typed_s(self) -> float:
        """Seconds since something was typed."""
        return time.time() - self._typed_at

    def _is_as_before(self, last: Snapshot) -> bool:
        """Tell whether those who waited for the terminal have not run since the last look."""
        if not last.readers or last.printed != self._log.size:
            return False
        leader = processes.read_stat(self._pane_pid)
        is_same_group = leader is not None and not leader.reaped and leader.tpgid == last.group
        return is_same_group and sum(processes.cpu_ns(*reader) for reader in last.readers) == last.reader_ns

    async def observe(self, tracker: ActivityTracker) -> Activity:
        """Look once, and once more where that may tell what is awaited."""
        activity = tracker.step(self.look(), anyio.current_time())
        if activity.is_likely and activity.awaits is None and activity.shell is None:
            await self._flush()
            await anyio.sleep(CONFIRM_S)
            activity = tracker.step(self.look(), anyio.current_time())
        return activity

    def _has_begun(self) -> bool:
        """Tell whether the pane's command has begun: what has the terminal is not about to become a shell."""
        if anyio.current_time() < self._made_at + _YOUNG_S:
            return False
        first = next(iter(processes.children(self._pane_pid)), None)
        command = processes.read_stat(first) if first else None
        return command is None or not command.is_fork

    async def prompt(
        self, patience_s: float, *, starting_s: float = _STARTING_S, is_to_run: bool = False
    ) -> Shell | None:
        """Wait until the shell that has the terminal is at its prompt.

        Args:
            patience_s: How long to wait for a shell that has been at its prompt before.
            starting_s: How long to wait for one that has not, as long as it is at work.
            is_to_run: A command is to be run there, so what a starting shell runs itself is waited for, too.

        Returns:
            The shell, or None when none has the terminal, or one that does not come to its prompt.
        """
        tracker, prompt_wait = ActivityTracker(), PromptWait(patience_s, starting_s)
        has_children = False
        begin = anyio.current_time()
        while True:
            if foreground_shell(self._pane_pid) is None:
                if self._has_begun() or anyio.current_time() >= begin + patience_s:
                    return None
                await anyio.sleep(_LOOK_AGAIN_S)
                continue
            activity = await self.observe(tracker)
            shell = activity.snapshot.shell
            if activity.shell or shell is None:
                self._known.update([activity.shell.start] if activity.shell else ())
                return activity.shell
            is_starting = shell.start not in self._known and shell.is_interactive()
            now = anyio.current_time()
            if not prompt_wait.step(activity, now, is_starting=is_starting, has_children=has_children):
                return None
            await anyio.sleep(_LOOK_AGAIN_S)
            # Before the next look: a shell whose last child has ended has run since, and that shows there.
            has_children = is_to_run and bool(processes.children(shell.pid))
