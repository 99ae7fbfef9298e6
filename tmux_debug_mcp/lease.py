"""How long a detached server goes on: until nobody has used it for so long."""

import contextlib
from collections.abc import Iterator

import anyio


class Lease:
    """Knows who uses a server, and since when nobody does."""

    def __init__(self) -> None:
        self._users = 0
        self._unused_since = anyio.current_time()
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
            self._unused_since = anyio.current_time()
            self._changed.set()

    async def wait_until_over(self, keep_s: float) -> None:
        """Wait until nobody has used the server for this long."""
        while True:
            self._changed = anyio.Event()
            if self._users:
                await self._changed.wait()
                continue
            remaining_s = self._unused_since + keep_s - anyio.current_time()
            if remaining_s <= 0:
                return
            with anyio.move_on_after(remaining_s):
                await self._changed.wait()
