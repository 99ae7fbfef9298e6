"""Wakes those who wait for logs to grow, by inotify, or by polling if no instance is left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files

from .log import Log


class LogEvents:
    """Wakes the subscribers of logs that grow, with one inotify instance for all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
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
            for watch in set(files.read_watches(self._inotify)):
                self._notify(watch)

    @property
    def load(self) -> int:
        """The number of subscriptions that do not poll, at least 1: a factor for poll intervals."""
        return max(1, sum(map(len, self._subscriptions.values())))

    def notify(self, log: Log) -> None:
        """Wake the subscribers of a log for a reason other than growth, such as a new size."""
        watch = files.watch(self._inotify, log.fd)
        self._notify(watch)
        if watch >= 0 and watch not in self._subscriptions:
            files.unwatch(self._inotify, watch)

    @contextmanager
    def subscribe(self, log: Log) -> Iterator["Subscription"]:
        """Subscribe to a log for the block; no growth within it is missed."""
        watch = files.watch(self._inotify, log.fd)
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

    def _notify(self, watch: int) -> None:
        for subscription in self._subscriptions.get(watch, ()):
            subscription.notify()


class Subscription:
    """A waiter's subscription to a log. If it polls, nobody calls `notify` when the log grows."""

    def __init__(self, clock: Clock, *, polls: bool) -> None:
        self._clock = clock
        self._event = anyio.Event()
        self._polls = polls

    def notify(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        """Wait until the log has grown since the last call, or the timeout expires."""
        if self._polls:
            timeout_s = min(timeout_s, self._clock.times.poll_s)
        with self._clock.move_on_after(timeout_s):
            await self._event.wait()
        self._event = anyio.Event()
