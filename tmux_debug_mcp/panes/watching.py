"""Watching a pane: the one loop that looks at what it is doing.

A watch wakes when the pane's log grows, when its program ends, and from time to time, since no
event reports what the program is doing. Callers decide what to make of each moment.
"""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tmux_debug_mcp.logs.growth import Subscription

from .looking.activity import Activity
from .looking.state import State
from .pane import Pane


@dataclass(frozen=True, slots=True)
class Moment:
    """What a pane is doing at one moment.

    Attributes:
        now: The time, by the pane's clock.
        ending: How its program has ended; None while it runs.
        activity: What it was doing at the last look; None if there was none.
    """

    now: float
    ending: State | None
    activity: Activity | None

    @property
    def is_at_rest(self) -> bool:
        """Whether the program has ended, awaits something, or has been quiet for a while."""
        return bool(self.ending or (self.activity and self.activity.is_at_rest))


class Watch:
    """A watch of one pane. Make one with `watching`.

    `activity` is what the pane was doing at the last look; None before that.
    """

    def __init__(self, pane: Pane, subscription: Subscription) -> None:
        self.pane = pane
        self._clock = pane.clock
        self._begun_at = pane.clock.now()
        self._subscription = subscription
        self._look_at = -math.inf
        self.activity: Activity | None = None

    async def moments(self, deadline: float) -> AsyncIterator[Moment]:
        """Yield a moment now and after any news, the last at the program's end or the deadline."""
        while True:
            moment = await self.moment()
            yield moment
            if moment.ending or moment.now >= deadline:
                return
            await self.wait(deadline)

    async def moment(self) -> Moment:
        """Look at the pane, unless that is too early, and return the moment."""
        ending = await self.pane.ending()
        if ending is None and self._clock.now() >= self._look_at:
            await self.look()
        return Moment(self._clock.now(), ending, self.activity)

    async def look(self) -> Activity:
        """Look at the pane, and return what it is doing."""
        self.activity = await self.pane.terminal.observe(self._begun_at)
        # Output wakes a watch much more often than it is worth looking.
        self._look_at = self._clock.now() + self._clock.times.min_look_s
        return self.activity

    async def wait(self, until: float) -> None:
        """Wait until there may be news, or until a time."""
        now = self._clock.now()
        if self.activity:
            load = self.pane.events.load
            look_s = max(self._clock.times.min_look_s, self.activity.look_again_s * load)
            until = min(until, now + look_s)
        await self._subscription.wait(until - now)


@asynccontextmanager
async def watching(pane: Pane) -> AsyncIterator[Watch]:
    """Watch a pane during the block."""
    async with pane.subscribe() as subscription:
        yield Watch(pane, subscription)


async def rest(pane: Pane, timeout_s: float) -> State:
    """Return a pane's state once it is at rest, or at the timeout; 0 takes a single look."""
    deadline = pane.clock.now() + timeout_s
    async with watching(pane) as watch:
        async for moment in watch.moments(deadline):
            if moment.is_at_rest:
                break
        return await pane.state()
