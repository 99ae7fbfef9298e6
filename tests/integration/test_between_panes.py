"""What panes share: no call on one of them delays another, whatever it prints and is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from support import PATIENCE_S, Tools, python

from tmux_debug_mcp.logs.pacing import PacedTranscript


class Halt:
    """Stops whoever makes text of some output, once it has come, until the end of the block."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self._over = anyio.Event()

    @contextmanager
    def at(self, output: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        async def feed(
            self_: PacedTranscript,
            data: bytes,
            turns: Any = None,  # noqa: ANN401
            feed: Any = PacedTranscript.feed,  # noqa: ANN401
        ) -> None:
            if output in data:
                self.reached.set()
                await self._over.wait()
            await feed(self_, data, turns)

        with monkeypatch.context() as patch:
            patch.setattr(PacedTranscript, "feed", feed)
            yield
            self._over.set()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("wait", {"since": 0, "pattern": "the end"}),
        ("wait", {"since": 0, "idle_s": 0.01}),
        ("wait", {"since": 0, "pattern": "the end", "show": "much"}),
        ("capture_pane", {"since": 0}),
        ("capture_pane", {"pattern": "much"}),
    ],
)
async def test_while_a_report_of_one_pane_is_made_the_others_are_told_of_theirs(
    tools: Tools, tool: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loud = await tools.create(python("print('much\\rMuch\\n' * 1000 + 'the end'); input()"))
    quiet = await tools.create("cat")
    await tools.shows(loud, "the end")
    halt = Halt()
    async with anyio.create_task_group() as tasks:
        with halt.at(b"much", monkeypatch):
            tasks.start_soon(partial(tools.blocks, tool, pane_id=loud, **arguments))
            with anyio.fail_after(PATIENCE_S):
                await halt.reached.wait()
                assert "quiet" in (await tools.send(quiet, "quiet\n", wait_for="quiet"))[1]
                await tools.blocks("wait", pane_id=quiet, pattern="quiet", since=0)
                await tools.blocks("wait", pane_id=quiet, idle_s=0.01)
                await tools.blocks("run", command="echo done")
                await tools.blocks("list_panes")
                assert await tools.capture(quiet) == "quiet\nquiet"
