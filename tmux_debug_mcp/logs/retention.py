"""The log of a pane: all that its terminal got, byte for byte, written by tmux's pipe-pane.

A *cursor* is an offset into the log, in bytes. Behind the program's last byte stands the mark with its exit
code, which pane.sh writes; the cursor of an ended pane stands before the mark.
"""

import os
from collections.abc import Sequence

import anyio

from tmux_debug_mcp.linux import files

from .log import Log

# A log keeps this much, and all logs of a server together no more than that.
MAX_LOG_BYTES = 16 << 20
MAX_LOGS_BYTES = 512 << 20
# How often logs that grow are trimmed. A terminal prints 40 MB in a second at most.
_TRIM_S = 0.25


class Retention:
    """Trims logs while they grow; at rest it waits for the first byte that any of them gets."""

    def __init__(self) -> None:
        self._fd = files.open_inotify()
        self._logs: set[Log] = set()

    def add(self, log: Log) -> None:
        """Take care of a log until it is closed."""
        self._logs.add(log)
        self._watch(log)

    def close(self) -> None:
        """Close it; `serve` must have ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def serve(self) -> None:
        """Trim until cancelled."""
        sizes: dict[Log, int] = {}
        while True:
            if self._fd >= 0:
                await anyio.wait_readable(self._fd)
                files.read_watches(self._fd)
            is_growing = True
            while is_growing:
                await anyio.sleep(_TRIM_S)
                self._logs = {log for log in self._logs if not log.is_closed}
                self.trim()
                before, sizes = sizes, {log: log.size for log in self._logs}
                is_growing = before != sizes
            for log in self._logs:
                self._watch(log)

    def trim(self) -> None:
        """Trim all logs to what one may keep, or to less where that is too much for all."""
        keep_bytes = fair_share([log.kept_bytes for log in self._logs], MAX_LOG_BYTES, MAX_LOGS_BYTES)
        for log in self._logs:
            log.trim(keep_bytes)

    def _watch(self, log: Log) -> None:
        if self._fd >= 0:
            files.watch(self._fd, log.fd, once=True)


def fair_share(sizes: Sequence[int], most_each: int, most_all: int) -> int:
    """Return the most that each may have, so that all together have no more than `most_all`.

    Those who have less than that leave the rest to the others.
    """
    left = most_all
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return min(share, most_each)
        left -= size
    return most_each
