"""Pieces of output are as large as a turn's work allows, and tasks take turns with them."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from turns import around_turns

from tmux_debug_mcp.turns import TURN_WORK, Turns, next_turn, pieces, work_of

PARTS = (b"\r\n", b"\033[m", b"\033[2J", b"\r", b"plain text", b"x" * 5000)


@given(
    st.lists(st.sampled_from(PARTS), max_size=3).map(b"".join),
    st.integers(1, 3000),
)
def test_no_piece_is_more_than_a_turn_of_work_and_none_is_lost(part: bytes, count: int) -> None:
    data = part * count
    found = list(pieces(data))

    assert b"".join(found) == data
    assert all(0 < work_of(piece) <= TURN_WORK for piece in found)


@pytest.mark.parametrize("line", [b"\r\n", b"line 00000000000001\r\n", b"\033[32mok\033[m\r\n"])
def test_pieces_of_lines_fill_most_of_a_turn(line: bytes) -> None:
    *found, _ = pieces(line * 5000)

    assert all(work_of(piece) > TURN_WORK * 3 // 4 for piece in found)


async def test_turn_of_the_loop_has_the_work_of_one_task_and_all_go_on_alike() -> None:
    worked: list[int] = []
    in_a_turn: list[int] = []

    async def work(number: int) -> None:
        turns = Turns()
        for _ in range(5):
            await turns.take(TURN_WORK)
            worked.append(number)

    def end() -> None:
        in_a_turn.append(len(worked) - sum(in_a_turn))

    with around_turns(lambda: None, end):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(work, number)

    assert max(in_a_turn) == 1
    assert worked == list(range(10)) * 5


async def test_task_with_little_work_is_done_before_those_with_much() -> None:
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            await next_turn()
            turns += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(work)
        while turns < 20_000:
            await anyio.lowlevel.checkpoint()
        for _ in range(3):  # one after the other, with the work of others in between
            before = turns
            for _ in range(20):
                await next_turn()
            assert turns - before <= 2 * 20
            while turns < before + 20_000:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_task_that_is_cancelled_while_it_waits_for_its_turn_holds_up_nobody() -> None:
    async def work() -> None:
        while True:
            await next_turn()

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(work)
        for _ in range(20):
            await next_turn()
        tasks.cancel_scope.cancel()
    await next_turn()
