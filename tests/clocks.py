"""Clocks for tests: ones that stand still or skip time when told to, and one that is set back."""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import anyio
import pytest

from tmux_debug_mcp.clock import Clock, Times

# Rounds of the event loop in which all tasks wait, until nothing goes on by itself any more.
_ROUNDS = 3
# Clients give a server half a second to end; an engine in this process may take longer.
TIMES = Times(supervisor_end_s=5.0)


def with_times(**times_s: float) -> pytest.MarkDecorator:
    """Have the fixtures of a test serve with other times, given by their names in `Times`."""
    name = ", ".join(f"{name}={value:g}" for name, value in times_s.items())
    return pytest.mark.parametrize("clock", [Clock(replace(TIMES, **times_s))], ids=[name])


class FallingClock(Clock):
    """A clock whose time of day is set back by an hour at each look."""

    def __init__(self) -> None:
        super().__init__(TIMES)
        self._readings = itertools.count(time.time(), -3600.0)

    def wall(self) -> float:
        return next(self._readings)


class SkippingClock(Clock):
    """A clock that runs as usual, and skips some time when it is told to.

    Args:
        times_s: Other times, by their names in `Times`.
    """

    def __init__(self, **times_s: float) -> None:
        super().__init__(replace(TIMES, **times_s))
        self._skipped_s = 0.0

    def now(self) -> float:
        return super().now() + self._skipped_s

    def skip(self, duration_s: float) -> None:
        self._skipped_s += duration_s


class VirtualClock(Clock):
    """A clock that goes on only when it is told to, by `advance`, or within `jumping`.

    Between two moments all tasks go on until each of them waits for something. What happens outside
    of this process takes no virtual time: a test that waits for that waits in real time.

    Args:
        times: How long is waited for what; the usual times unless given.
    """

    def __init__(self, times: Times | None = None) -> None:
        super().__init__(times)
        self._now = 0.0
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []  # a heap, the next one first
        self._numbers = itertools.count()

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return 1_769_768_146.0 + self._now

    async def sleep(self, duration_s: float) -> None:
        over = anyio.Event()
        with self._alarm(duration_s, over.set):
            await over.wait()

    @contextmanager
    def move_on_after(self, duration_s: float) -> Iterator[anyio.CancelScope]:
        with anyio.CancelScope() as scope, self._alarm(duration_s, scope.cancel):
            yield scope

    @contextmanager
    def _alarm(self, duration_s: float, ring: Callable[[], None]) -> Iterator[None]:
        """Have a function called when some time has passed within the block; at once if none."""
        if duration_s <= 0:
            ring()
            yield
            return
        alarm = (self._now + duration_s, next(self._numbers), ring)
        heapq.heappush(self._alarms, alarm)
        try:
            yield
        finally:
            if alarm in self._alarms:
                self._alarms.remove(alarm)
                heapq.heapify(self._alarms)

    async def advance(self, duration_s: float) -> None:
        """Go on by some time, and stop on the way at each moment at which something is due."""
        end = self._now + duration_s
        await _all_others_wait()
        while self._alarms and self._alarms[0][0] <= end:
            await self._jump()
        self._now = end

    @asynccontextmanager
    async def jumping(self) -> AsyncIterator[None]:
        """Within the block, go on to what is due next as soon as each task waits for something."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_jumping)
            yield
            tasks.cancel_scope.cancel()

    async def _keep_jumping(self) -> None:
        while True:
            await _all_others_wait()
            assert self._alarms, "each task waits for something, and nothing is due"
            await self._jump()

    async def _jump(self) -> None:
        self._now, _, ring = heapq.heappop(self._alarms)
        ring()
        await _all_others_wait()


async def _all_others_wait() -> None:
    """Let all other tasks go on until each of them waits for something."""
    this_task = asyncio.current_task()
    rounds = 0
    # What has just ended wakes others through callbacks, which take a round each.
    while rounds < _ROUNDS:
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {this_task}
        waiters = [task._fut_waiter for task in others]  # type: ignore[attr-defined]
        are_waiting = all(waiter is not None and not waiter.done() for waiter in waiters)
        rounds = rounds + 1 if are_waiting else 0
