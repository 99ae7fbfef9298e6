"""What happens while logs grow: waiters wake up, and the oldest bytes are trimmed.

Both use inotify, or poll where the system has no instance left. With inotify, nothing runs while no
log grows.
"""

import asyncio
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


class LogEvents:
    """Wakes the subscribers of logs that grow, with one inotify instance for all of them."""

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
            for watch in files.read_watches(self._inotify):
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
    """One waiter's subscription to one log. If it polls, nobody calls `notify` when that grows."""

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


class Retention:
    """Notes when logs grow, and trims them and keeps their timing at intervals while any does.

    Several logs are looked at so often that the order is known in which they grow. While none
    grows, nothing runs, unless the system has no inotify instance left: then it looks at intervals
    all the time. Nothing is freed where the file system can't punch holes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inotify = files.open_inotify()
        self._logs: set[Log] = set()
        self._watched: dict[int, Log] = {}
        # Logs that are not watched, with the moment when they were last seen to grow.
        self._growing: dict[Log, float] = {}
        self._untrimmed: set[Log] = set()
        self._next_look: asyncio.TimerHandle | None = None

    def add(self, log: Log) -> None:
        """Look after a log from now on, until it is closed."""
        self._logs.add(log)
        self._watch(log)

    def close(self) -> None:
        """Close the inotify instance. `serve` must have ended."""
        if self._inotify >= 0:
            os.close(self._inotify)
            self._inotify = -1

    async def serve(self) -> None:
        """Look after the logs until cancelled."""
        try:
            while True:
                if self._inotify >= 0 and not self._growing:
                    await anyio.wait_readable(self._inotify)
                    self._look()
                await self._clock.sleep(self._clock.times.trim_s)
                self._look()
                self.trim()
        finally:
            if self._next_look:
                self._next_look.cancel()

    def _look(self) -> None:
        """Note which logs have grown. Those that no longer grow are watched instead."""
        if self._next_look:
            self._next_look.cancel()
        now, times = self._clock.now(), self._clock.times
        if self._inotify >= 0:
            for number in files.read_watches(self._inotify):
                log = self._watched.pop(number, None)
                if log:
                    log.note_growth(has_just_begun=True)
                    self._growing[log] = now
        for log, grew_at in list(self._growing.items()):
            if log.note_growth():
                self._growing[log] = now
            elif log.is_closed:
                del self._growing[log]
            elif now - grew_at > times.max_look_s:
                self._watch(log)
        self._untrimmed.update(self._growing)
        # A task that sleeps so often would take twice the time.
        if len(self._logs) > 1 and self._growing and self._inotify >= 0:
            loop = asyncio.get_running_loop()
            self._next_look = loop.call_later(times.order_s, self._look)

    def trim(self) -> None:
        """Trim all logs to `MAX_LOG_BYTES`, or to less if together they exceed `MAX_LOGS_BYTES`."""
        self._logs = {log for log in self._logs if not log.is_closed}
        sizes = [log.kept_bytes for log in self._logs]
        keep_bytes = fair_share(sizes, MAX_LOG_BYTES, MAX_LOGS_BYTES)
        for log in self._logs:
            log.trim(keep_bytes)
        for log in self._untrimmed & self._logs:
            log.keep_timing(is_settled=log not in self._growing)
        self._untrimmed.clear()

    def _watch(self, log: Log) -> None:
        """Watch for the next write to a log, and note what was written before."""
        watch = files.watch(self._inotify, log.fd, once=True) if self._inotify >= 0 else -1
        if watch >= 0:
            self._watched[watch] = log
            self._growing.pop(log, None)
        else:
            self._growing.setdefault(log, self._clock.now())
        log.note_growth()


def fair_share(sizes: Sequence[int], max_each: int, max_total: int) -> int:
    """Return the largest limit per log, at most `max_each`, that keeps all within the total.

    Logs below the limit leave the rest of their share to the others.
    """
    available = max_total
    for number, size in enumerate(sorted(sizes)):
        share = available // (len(sizes) - number)
        if size > share:
            return min(share, max_each)
        available -= size
    return max_each
