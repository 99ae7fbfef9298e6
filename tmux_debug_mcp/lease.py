"""How long a detached server keeps running after its last use."""

import contextlib
import math
from collections.abc import Iterator

import anyio

from .clock import Clock


class Lease:
    """Counts a server's users, and knows how long it may go unused.

    Attributes:
        keep_s: Seconds that the server may go unused; None if its client ends it.
    """

    def __init__(self, keep_s: float | None, clock: Clock | None = None) -> None:
        self.keep_s = keep_s
        self._clock = clock or Clock()
        self._users = 0
        self._unused_since = self._clock.now()
        self._changed = anyio.Event()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Count a caller or a connected client while the block runs."""
        self._users += 1
        self._changed.set()
        try:
            yield
        finally:
            self._users -= 1
            self._unused_since = self._clock.now()
            self._changed.set()

    def change(self, keep_s: float) -> None:
        """Change how long the server may go unused."""
        self.keep_s = keep_s
        self._changed.set()

    async def wait_until_over(self) -> None:
        """Wait until nobody has used the server for `keep_s`."""
        while True:
            self._changed = anyio.Event()
            if self._users:
                await self._changed.wait()
                continue
            keep_s = math.inf if self.keep_s is None else self.keep_s
            remaining_s = self._unused_since + keep_s - self._clock.now()
            if remaining_s <= 0:
                return
            with self._clock.move_on_after(remaining_s):
                await self._changed.wait()
