"""What is followed while panes go on: nothing that is printed between two waits is missed."""

import socket
from collections.abc import Mapping
from typing import Any

import anyio
from support import PATIENCE_S, Tools, eventually

from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.sockets.listener import Caller
from tmux_debug_mcp.tools.debug_arguments import Wait
from tmux_debug_mcp.verbs.following import Teller, follow
from tmux_debug_mcp.verbs.printing import OTHERWISE


class Answering(Caller):
    """Somebody who answers a program before they take the line that says it awaits input.

    Args:
        tools: What answers.
        pane: The program's pane.
        answers: The lines to type, the first one first.
    """

    def __init__(self, tools: Tools, pane: Pane, answers: list[str]) -> None:
        near, self._far = socket.socketpair()
        super().__init__(near)
        self._tools = tools
        self._pane = pane
        self._answers = answers
        self.lines: list[str] = []

    def close(self) -> None:
        super().close()
        self._far.close()

    async def send(self, message: Mapping[str, Any]) -> None:
        line = message["out"]
        self.lines.append(line)
        if "awaits input" not in line or not self._answers:
            return
        size = self._pane.log.size
        answer = self._answers.pop(0)
        await self._tools.send(str(self._pane.id), f"{answer} Enter")
        await eventually(lambda: f"got {answer}" in self._printed_since(size))

    def _printed_since(self, cursor: int) -> str:
        log = self._pane.log
        return log.read(cursor, log.size - cursor).decode()


async def test_answer_is_seen_that_is_there_before_the_line_is_taken(tools: Tools) -> None:
    await tools.create('while read x; do echo "got $x"; done')
    [pane] = tools.engine.panes
    caller = Answering(tools, pane, ["one", "bad"])
    given = Wait(pane_id="debug-1", stop_pattern="got bad", since=0)
    try:
        with anyio.fail_after(PATIENCE_S):
            assert await follow(Teller(caller, 0.0), [pane], given, None) == OTHERWISE
    finally:
        caller.close()

    *awaiting, stopped = caller.lines
    assert [line.partition(" at ")[0] for line in awaiting] == ["[debug-1 awaits input"] * 2
    assert stopped.endswith("] got bad\n")


async def test_what_waits_for_its_turn_is_told_when_the_caller_hangs_up(tools: Tools) -> None:
    await tools.create("echo one; read x; echo two; cat")
    [pane] = tools.engine.panes
    caller = Answering(tools, pane, [])
    teller = Teller(caller, every_s=3600)
    given = Wait(pane_id="debug-1", pattern="one|two", since=0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, teller, [pane], given, None)
            await eventually(lambda: len(caller.lines) == 1)
            await tools.send("debug-1", "Enter")
            await eventually(lambda: teller.has_to_wait)
            tasks.cancel_scope.cancel()
    finally:
        caller.close()

    assert len(caller.lines) == 2
    assert caller.lines[0].endswith("] one\n")
