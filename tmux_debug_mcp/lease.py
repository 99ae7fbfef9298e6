"""How long a detached server goes on: until nobody has used it for so long."""

import contextlib
import math
from collections.abc import Iterator

import anyio

from .clock import Clock


class Lease:
    """Knows who uses a server, since when nobody does, and for how long that may be.

    Attributes:
        keep_s: Seconds that the server goes on without use; None if its client ends it.
    """

    def __init__(self, keep_s: float | None, clock: Clock | None = None) -> None:
        self.keep_s = keep_s
        self._clock = clock or Clock()
        self._users = 0
        self._unused_since = self._clock.now()
        self._changed = anyio.Event()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Count a caller, or a client that is connected, for the time of the block."""
        self._users += 1
        self._changed.set()
        try:
            yield
        finally:
            self._users -= 1
            self._unused_since = self._clock.now()
            self._changed.set()

    def change(self, keep_s: float) -> None:
        """Change how long the server goes on without use."""
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
