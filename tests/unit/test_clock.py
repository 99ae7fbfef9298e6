"""Virtual time: what sleeps, waits and decides by an engine's clock takes no time in tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest
from clocks import VirtualClock

from tmux_debug_mcp.lease import Lease
from tmux_debug_mcp.logs.events import LogEvents
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes.looking.activity import Activity, ActivityTracker, Snapshot

HOUR_S = 3600.0


async def test_sleepers_wake_in_the_order_of_time_and_at_their_moment(clock: VirtualClock) -> None:
    woken = []

    async def sleep(duration_s: float) -> None:
        await clock.sleep(duration_s)
        woken.append((duration_s, clock.now()))

    async with clock.jumping(), anyio.create_task_group() as tasks:
        for duration_s in (3 * HOUR_S, HOUR_S, 0.0, 2 * HOUR_S):
            tasks.start_soon(sleep, duration_s)

    assert woken == [(at, at) for at in (0.0, HOUR_S, 2 * HOUR_S, 3 * HOUR_S)]


async def test_time_goes_on_as_far_as_it_is_told_to(clock: VirtualClock) -> None:
    ticks = []

    async def tick() -> None:
        while True:
            await clock.sleep(1.0)
            ticks.append(clock.now())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await clock.advance(0.5)
        assert ticks == []
        await clock.advance(2.0)
        assert (ticks, clock.now()) == ([1.0, 2.0], 2.5)
        tasks.cancel_scope.cancel()


async def test_timeout_ends_what_takes_longer_and_nothing_else(clock: VirtualClock) -> None:
    async with clock.jumping():
        with clock.move_on_after(10.0) as first:
            await clock.sleep(9.0)
        with clock.move_on_after(10.0) as second:
            await anyio.sleep_forever()
        with clock.move_on_after(0.0) as third:
            await anyio.sleep_forever()
        with pytest.raises(TimeoutError), clock.fail_after(1.0):
            await clock.sleep(2.0)

    assert [one.cancelled_caught for one in (first, second, third)] == [False, True, True]
    assert clock.now() == 20.0


async def test_wait_for_what_never_comes_is_an_error_at_once(clock: VirtualClock) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match="nothing is due")):
        async with clock.jumping():
            await anyio.Event().wait()


async def test_lease_ends_when_nobody_has_used_the_server_for_its_time(clock: VirtualClock) -> None:
    lease = Lease(HOUR_S, clock)

    async def use() -> None:
        await clock.sleep(HOUR_S / 2)
        with lease.used():
            await clock.sleep(10 * HOUR_S)

    async with clock.jumping(), anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        await lease.wait_until_over()

    assert clock.now() == 11.5 * HOUR_S


class TestWatcher:
    """A watcher that is woken by a log and by the times that a decider asks for."""

    @pytest.fixture
    def log(self, tmp_path: Path, clock: VirtualClock) -> Iterator[Log]:
        log = Log.create(tmp_path / "log", "mark", clock)
        yield log
        log.close()

    @pytest.fixture
    def events(self, clock: VirtualClock) -> Iterator[LogEvents]:
        events = LogEvents(clock)
        yield events
        events.close()

    @staticmethod
    def print_(log: Log, events: LogEvents, text: bytes) -> None:
        with log.path.open("ab") as file:
            file.write(text)
        events.notify(log)

    @staticmethod
    async def moments(log: Log, events: LogEvents, clock: VirtualClock) -> AsyncIterator[Activity]:
        tracker = ActivityTracker(clock.times)
        with events.subscribe(log) as subscription:
            while True:
                snapshot = Snapshot(printed_bytes=log.size)
                activity = tracker.step(snapshot, clock.now())
                yield activity
                await subscription.wait(activity.look_again_s)

    async def test_it_sees_each_piece_as_it_comes_and_then_the_rest(
        self, log: Log, events: LogEvents, clock: VirtualClock
    ) -> None:
        seen: dict[int, float] = {}

        async def program() -> None:
            for duration_s in (0.0, 0.25, 0.25):
                await clock.sleep(duration_s)
                self.print_(log, events, b"x")

        async with clock.jumping(), anyio.create_task_group() as tasks:
            tasks.start_soon(program)
            async for activity in self.moments(log, events, clock):
                seen.setdefault(activity.snapshot.printed_bytes, clock.now())
                if activity.is_at_rest:
                    break

        assert {size: at for size, at in seen.items() if size} == {1: 0.0, 2: 0.25, 3: 0.5}
        rest_at = 0.5 + clock.times.quiet_s
        assert rest_at <= clock.now() < rest_at + clock.times.max_look_s

    async def test_its_deadline_holds_where_the_log_never_stops_growing(
        self, log: Log, events: LogEvents, clock: VirtualClock
    ) -> None:
        async def program() -> None:
            while True:
                self.print_(log, events, b"x")
                await clock.sleep(0.01)

        async with clock.jumping(), anyio.create_task_group() as tasks:
            tasks.start_soon(program)
            with clock.move_on_after(2.0) as waiting:
                async for activity in self.moments(log, events, clock):
                    assert not activity.is_at_rest
            tasks.cancel_scope.cancel()

        assert waiting.cancelled_caught
        assert clock.now() == 2.0
