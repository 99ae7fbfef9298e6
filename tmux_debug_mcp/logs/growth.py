"""What happens while logs grow: who waits for one is woken, and the oldest bytes are trimmed.

Both use inotify, and poll where the system has no instance left. Nothing runs while no log grows.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files

from .log import Log

# The limit of one log, and of all logs of a server together.
MAX_LOG_BYTES = 16 << 20
MAX_LOGS_BYTES = 512 << 20


class Subscription:
    """One waiter's subscription to logs. If it polls, not every growth calls `notify`."""

    def __init__(self, clock: Clock, *, polls: bool) -> None:
        self._clock = clock
        self._event = anyio.Event()
        self._polls = polls

    def notify(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        """Wait until a log has grown since the last call, or the timeout is over."""
        if self._polls:
            timeout_s = min(timeout_s, self._clock.times.poll_s)
        with self._clock.move_on_after(timeout_s):
            await self._event.wait()
        self._event = anyio.Event()


class LogEvents:
    """Wakes the subscribers of logs that grow, and trims logs, by one inotify instance for all.

    Attributes:
        reading: Lock for reading one piece of a log, so that many waiters leave time to other
            calls.
        looking: Lock for taking one snapshot of a pane, for the same reason.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reading = anyio.Lock()
        self.looking = anyio.Lock()
        self._inotify = files.open_inotify()
        # By the numbers of the watches; -1 is that of logs that can't have one.
        self._subscriptions: dict[int, set[Subscription]] = {}
        self._trimmed: set[Log] = set()
        self._trimming = Subscription(clock, polls=False)

    def close(self) -> None:
        """Close the inotify instance. From then on no subscriber is woken."""
        if self._inotify >= 0:
            os.close(self._inotify)
            self._inotify = -1

    async def serve(self) -> None:
        """Dispatch events and trim logs until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._trim_while_growing)
            while self._inotify >= 0:
                await anyio.wait_readable(self._inotify)
                for watch in files.read_watches(self._inotify):
                    self._notify(watch)

    @property
    def load(self) -> int:
        """The number of waiters, at least 1: what to multiply a poll interval by."""
        subscriptions = set[Subscription]().union(*self._subscriptions.values())
        return max(1, len(subscriptions - {self._trimming}))

    def notify(self, log: Log) -> None:
        """Wake the subscribers of a log for another reason than growth, such as a new size."""
        watch = files.watch(self._inotify, log.fd)
        self._notify(watch)
        if watch not in self._subscriptions:
            files.unwatch(self._inotify, watch)

    @contextmanager
    def subscribe(self, *logs: Log) -> Iterator[Subscription]:
        """Subscribe to logs for the time of the block; no growth within it is missed."""
        watches = {files.watch(self._inotify, log.fd) for log in logs}
        subscription = Subscription(self._clock, polls=-1 in watches)
        for watch in watches:
            self._subscriptions.setdefault(watch, set()).add(subscription)
        try:
            yield subscription
        finally:
            for watch in watches:
                others = self._subscriptions[watch]
                others.discard(subscription)
                if not others:
                    del self._subscriptions[watch]
                    files.unwatch(self._inotify, watch)

    def _notify(self, watch: int) -> None:
        for subscription in self._subscriptions.get(watch, ()):
            subscription.notify()

    def add(self, log: Log) -> None:
        """Trim a log from now on, until it is closed."""
        self._trimmed.add(log)
        log.note_growth()
        self._trimming.notify()

    async def _trim_while_growing(self) -> None:
        """Trim logs at intervals while any of them grows, and sleep while none does."""
        sizes: dict[Log, int] = {}
        while True:
            last_sizes = sizes
            sizes = {log: log.size for log in self._trimmed}
            if sizes == last_sizes:
                with self.subscribe(*self._trimmed) as self._trimming:
                    for log in self._trimmed:  # what was written before it was watched
                        log.note_growth()
                    await self._trimming.wait(math.inf)
                for log in self._trimmed:
                    log.note_growth()
            await self._clock.sleep(self._clock.times.trim_s)
            self._trimmed = {log for log in self._trimmed if not log.is_closed}
            self.trim()
            for log in self._trimmed:
                log.note_growth()

    def trim(self) -> None:
        """Trim all logs to `MAX_LOG_BYTES`, or to less if together they exceed `MAX_LOGS_BYTES`."""
        sizes = [log.kept_bytes for log in self._trimmed]
        keep_bytes = fair_share(sizes, MAX_LOG_BYTES, MAX_LOGS_BYTES)
        for log in self._trimmed:
            log.trim(keep_bytes)


def fair_share(sizes: Sequence[int], max_each: int, max_total: int) -> int:
    """Return the largest size, at most `max_each`, to limit each log to so that the total holds.

    Logs below the limit leave the rest of their share to the others.
    """
    available = max_total
    for number, size in enumerate(sorted(sizes)):
        share = available // (len(sizes) - number)
        if size > share:
            return min(share, max_each)
        available -= size
    return max_each
