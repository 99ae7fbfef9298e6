"""Turns of the event loop: long work is done in pieces, between which other calls run.

A turn has one piece of work of one task. Every second turn goes to a task that has had the fewest
turns, so a call with little to do is answered soon, however many calls have much to do; the rest go
to the tasks that have waited longest. So no task needs a lock to leave time for others. Work is
counted, not timed, so a turn ends at the same byte on each machine: `work_of` counts it for output,
and `pieces` divides output by it. `./dev bench` reports how long the slowest takes: up to 8 ms on
ours, so two fit into 50 ms on a machine a third as fast.
"""

import itertools
import re
from collections.abc import Generator, Iterator
from contextvars import ContextVar
from typing import TypeVar

import anyio
from anyio.lowlevel import RunVar

T = TypeVar("T")

# The most work of a turn. The unit is what a terminal takes at worst for a printed byte.
TURN_WORK = 1 << 13
# The work for a control character, or for CR LF. Each sequence begins with one, and nothing else
# can make a terminal scroll.
_CONTROL_WORK = 1 << 5
# The work for clearing the screen (ED, RIS), which may settle a line for each of its 200 rows.
_CLEAR_WORK = 1 << 10
_CLEAR = re.compile(rb"\x1b(?:\[[0-9;]*J|c)")
_CONTROLS = bytes([*range(0x20), 0x7F])


class _Line:
    """The tasks of an event loop that wait for their turns."""

    def __init__(self) -> None:
        # Who has waited longest comes first: how many turns each has had, its number, its call.
        self._waiting: list[tuple[int, int, anyio.Event]] = []
        self._numbers = itertools.count()
        self._is_called = False  # somebody has the next turn
        self._is_for_least = False  # it was somebody with the fewest turns

    async def turn(self, turns: int) -> None:
        """Wait for a task's turn, given how many it has had."""
        place = (turns, next(self._numbers), anyio.Event())
        self._waiting.append(place)
        if not self._is_called:
            self._call_next()
        *_, called = place
        try:
            await called.wait()
        except BaseException:
            if called.is_set():
                self._call_next()
            else:
                self._waiting.remove(place)
            raise
        # Who is called now runs in the next turn of the loop, after this task's work.
        self._call_next()

    def _call_next(self) -> None:
        self._is_called = bool(self._waiting)
        if self._waiting:
            self._is_for_least = not self._is_for_least
            place = min(self._waiting) if self._is_for_least else self._waiting[0]
            self._waiting.remove(place)
            *_, called = place
            called.set()


_LINE = RunVar[_Line]("line")
# How many turns a task has had.
_TURNS = ContextVar("turns", default=0)


async def next_turn() -> None:
    """Wait for a turn of the event loop in which no other task does a piece of such work."""
    line = _LINE.get(None)
    if line is None:
        line = _Line()
        _LINE.set(line)
    turns = _TURNS.get()
    _TURNS.set(turns + 1)
    await line.turn(turns)


class Turns:
    """Counts the work of a task, which waits for its next turn when a turn's work is done."""

    def __init__(self) -> None:
        self._room = 0

    async def take(self, work: int) -> None:
        """Begin the next turn unless this one has room for so much more work."""
        if work > self._room:
            await next_turn()
            self._room = TURN_WORK
        self._room -= work


async def in_turns(work: Generator[int, None, T]) -> T:
    """Do work that yields, before each piece, how much that is; return what it returns."""
    turns = Turns()
    while True:
        try:
            size = next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        await turns.take(size)


def work_of(data: bytes) -> int:
    """Return how much work some output is for a terminal."""
    controls = len(data) - len(data.translate(None, _CONTROLS)) - data.count(b"\r\n")
    clears = len(_CLEAR.findall(data))
    return len(data) + _CONTROL_WORK * controls + _CLEAR_WORK * clears


def pieces(data: bytes | bytearray) -> Iterator[bytes]:
    """Yield output in pieces, each of at most a turn's work."""
    position = 0
    while position < len(data):
        piece = bytes(data[position : position + TURN_WORK])
        work = work_of(piece)
        while work > TURN_WORK:
            piece = piece[: min(len(piece) * TURN_WORK // work, len(piece) * 7 // 8)]
            work = work_of(piece)
        yield piece
        position += len(piece)
