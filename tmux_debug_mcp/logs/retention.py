"""Trims logs that grow, and keeps when they grew, by inotify or by polling as `events` does."""

import asyncio
import math
import os
from collections.abc import Sequence

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files

from .log import Log

# The limit of one log, and of all logs of a server together.
MAX_LOG_BYTES = 16 << 20
MAX_LOGS_BYTES = 512 << 20
# We are woken within this time after a log begins to grow, unless all is busy.
_WAKING_S = 0.005
# What is written within one look is told apart by so much.
_MOMENT_S = 2e-6


class Retention:
    """Notes when logs grow, and trims them and keeps their timing at intervals while any does.

    While one of several logs grows, all are looked at so often that the order is known in which
    they grow. While none grows, nothing runs, unless a log can't be watched: then it is looked at
    at intervals, all the time. Nothing is freed where the file system can't punch holes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inotify = files.open_inotify()
        self._watched: dict[int, Log] = {}
        self._polled: set[Log] = set()
        self._untrimmed: set[Log] = set()
        self._has_grown = anyio.Event()
        self._looked_at = self._grew_at = -math.inf
        self._next_look: asyncio.TimerHandle | None = None

    def add(self, log: Log) -> None:
        """Look after a log from now on, until it is closed."""
        watch = files.watch(self._inotify, log.fd) if self._inotify >= 0 else -1
        if watch >= 0:
            self._watched[watch] = log
        else:
            self._polled.add(log)
            self._has_grown.set()
        log.note_growth()  # what was written before
        if self._next_look:
            self._next_look.cancel()
            self._look()  # from now on more often

    def close(self) -> None:
        """Close the inotify instance. `serve` must have ended."""
        if self._inotify >= 0:
            os.close(self._inotify)
            self._inotify = -1

    async def serve(self) -> None:
        """Look after the logs until cancelled."""
        loop = asyncio.get_running_loop()
        if self._inotify >= 0:
            loop.add_reader(self._inotify, self._wake)
        try:
            while True:
                if not self._polled:
                    await self._has_grown.wait()
                self._has_grown = anyio.Event()
                await self._clock.sleep(self._clock.times.trim_s)
                self.trim()
        finally:
            if self._inotify >= 0:
                loop.remove_reader(self._inotify)
            if self._next_look:
                self._next_look.cancel()

    def _wake(self) -> None:
        """Look at logs that have just begun to grow, and go on while any does."""
        asyncio.get_running_loop().remove_reader(self._inotify)
        self._looked_at = self._clock.now() - _WAKING_S
        self._look()

    def _look(self) -> None:
        """Note which logs have grown, in this order, as far as the kernel tells it."""
        now, times = self._clock.now(), self._clock.times
        numbers = files.read_watches(self._inotify)
        moments: dict[int, list[float]] = {}
        step_s = min(_MOMENT_S, times.fast_poll_s / max(len(numbers), 1))
        for place, number in enumerate(numbers):
            moments.setdefault(number, []).append(now + place * step_s)
        for number in self._watched if files.OVERFLOW in moments else moments:
            log = self._watched.get(number)
            if log and log.note_growth(self._looked_at, moments.get(number, ())):
                self._untrimmed.add(log)
                self._grew_at = now
        self._looked_at = now
        if self._untrimmed:
            self._has_grown.set()
        loop = asyncio.get_running_loop()
        if now - self._grew_at > times.max_look_s:
            self._next_look = None
            loop.add_reader(self._inotify, self._wake)
            return
        # A task that sleeps so often would take twice the time.
        pause_s = times.order_s if len(self._watched) > 1 else times.trim_s
        self._next_look = loop.call_later(pause_s, self._look)

    def trim(self) -> None:
        """Trim all logs to `MAX_LOG_BYTES`, or to less if together they exceed `MAX_LOGS_BYTES`."""
        for number in [number for number, log in self._watched.items() if log.is_closed]:
            files.unwatch(self._inotify, number)
            del self._watched[number]
        self._polled = {log for log in self._polled if not log.is_closed}
        for log in self._polled:
            log.note_growth()
        logs = {*self._watched.values(), *self._polled}
        sizes = [log.kept_bytes for log in logs]
        keep_bytes = fair_share(sizes, MAX_LOG_BYTES, MAX_LOGS_BYTES)
        for log in logs:
            log.trim(keep_bytes)
        is_quiet = self._clock.now() - self._grew_at > self._clock.times.max_look_s
        for log in logs & (self._untrimmed | self._polled):
            log.keep_timing(is_quiet=is_quiet)
        if is_quiet:
            self._untrimmed.clear()
        else:
            self._has_grown.set()  # once more, for the last of it


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
