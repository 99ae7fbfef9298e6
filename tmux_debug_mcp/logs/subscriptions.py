"""Subscriptions to logs: waiters are woken when a log grows. Nothing runs while nobody waits."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files

from .log import Log


class LogEvents:
    """Wakes the subscribers of logs that grow, by one inotify instance for all of them.

    Where the system has no inotify instance left, subscribers poll.

    Args:
        clock: The engine's clock.

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
        self._subscriptions: dict[int, set[Subscription]] = {}

    def close(self) -> None:
        """Close the inotify instance. From then on no subscriber is woken."""
        if self._inotify >= 0:
            os.close(self._inotify)
            self._inotify = -1

    async def serve(self) -> None:
        """Dispatch events until cancelled."""
        while self._inotify >= 0:
            await anyio.wait_readable(self._inotify)
            for watch in files.read_watches(self._inotify):
                self._notify(watch)

    @property
    def load(self) -> int:
        """The number of subscriptions, at least 1: what to multiply a poll interval by."""
        return max(1, sum(map(len, self._subscriptions.values())))

    def notify(self, log: Log) -> None:
        """Wake the subscribers of a log for another reason than growth, such as a new size."""
        watch = self._watch(log)
        self._notify(watch)
        if watch >= 0 and watch not in self._subscriptions:
            files.unwatch(self._inotify, watch)

    @contextmanager
    def subscribe(self, log: Log) -> Iterator["Subscription"]:
        """Subscribe to a log for the time of the block; no growth within it is missed."""
        watch = self._watch(log)
        subscription = Subscription(self._clock, polls=watch < 0)
        if watch < 0:
            yield subscription
            return
        self._subscriptions.setdefault(watch, set()).add(subscription)
        try:
            yield subscription
        finally:
            others = self._subscriptions[watch]
            others.discard(subscription)
            if not others:
                del self._subscriptions[watch]
                files.unwatch(self._inotify, watch)

    def _watch(self, log: Log) -> int:
        """Return the number of the log's inotify watch, or -1 where it can't have one."""
        if self._inotify < 0:
            return -1
        return files.watch(self._inotify, log.fd)

    def _notify(self, watch: int) -> None:
        for subscription in self._subscriptions.get(watch, ()):
            subscription.notify()


class Subscription:
    """One waiter's subscription to one log.

    Args:
        clock: The engine's clock.
        polls: Nobody calls `notify` when the log grows, so `wait` returns after the poll interval.
    """

    def __init__(self, clock: Clock, *, polls: bool) -> None:
        self._clock = clock
        self._event = anyio.Event()
        self._polls = polls

    def notify(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        """Wait until the log has grown since the last call, or the timeout is over."""
        if self._polls:
            timeout_s = min(timeout_s, self._clock.times.poll_s)
        with self._clock.move_on_after(timeout_s):
            await self._event.wait()
        self._event = anyio.Event()
