"""Retention: trims the oldest bytes of logs, so that the logs of a server don't fill the disk.

It looks at logs that grow anyway, so it also notes when they do.
"""

import os
from collections.abc import Sequence

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import files

from .log import Log

# The limit of one log, and of all logs of a server together.
MAX_LOG_BYTES = 16 << 20
MAX_LOGS_BYTES = 512 << 20


class Retention:
    """Trims logs at intervals while any of them grows, and sleeps while none does.

    Where the system has no inotify instance left, it trims at intervals all the time.

    Args:
        clock: The engine's clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inotify = files.open_inotify()
        self._logs: set[Log] = set()

    def add(self, log: Log) -> None:
        """Trim a log from now on, until it is closed."""
        self._logs.add(log)
        self._watch(log)

    def close(self) -> None:
        """Close the inotify instance. `serve` must have ended."""
        if self._inotify >= 0:
            os.close(self._inotify)
            self._inotify = -1

    async def serve(self) -> None:
        """Trim until cancelled."""
        while True:
            if self._inotify >= 0:
                await anyio.wait_readable(self._inotify)
                files.read_watches(self._inotify)
            self._note_growth()
            await self._trim_while_growing()
            for log in self._logs:
                self._watch(log)

    async def _trim_while_growing(self) -> None:
        sizes: dict[Log, int] = {}
        is_growing = True
        while is_growing:
            await self._clock.sleep(self._clock.times.trim_s)
            self._logs = {log for log in self._logs if not log.is_closed}
            self.trim()
            self._note_growth()
            last_sizes = sizes
            sizes = {log: log.size for log in self._logs}
            is_growing = sizes != last_sizes

    def _note_growth(self) -> None:
        for log in self._logs:
            if not log.is_closed:
                log.note_growth()

    def trim(self) -> None:
        """Trim all logs to `MAX_LOG_BYTES`, or to less if together they exceed `MAX_LOGS_BYTES`."""
        sizes = [log.kept_bytes for log in self._logs]
        keep_bytes = fair_share(sizes, MAX_LOG_BYTES, MAX_LOGS_BYTES)
        for log in self._logs:
            log.trim(keep_bytes)

    def _watch(self, log: Log) -> None:
        """Be woken by the next write to a log, and note what was written before."""
        if self._inotify >= 0:
            files.watch(self._inotify, log.fd, once=True)
        log.note_growth()


def fair_share(sizes: Sequence[int], max_each: int, max_total: int) -> int:
    """Return the size to limit each log to, so that all together don't exceed a total.

    Logs below the limit leave the rest of their share to the others.

    Args:
        sizes: The sizes of the logs.
        max_each: The limit if the total is no problem.
        max_total: The limit of the sum.

    Returns:
        The largest limit that keeps the total, at most `max_each`.
    """
    available = max_total
    for number, size in enumerate(sorted(sizes)):
        share = available // (len(sizes) - number)
        if size > share:
            return min(share, max_each)
        available -= size
    return max_each
