"""What panes share: no call on one of them delays another, whatever it prints and is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from clocks import with_times
from support import PATIENCE_S, Gate, Tools, eventually, python

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


FLASHES = "for i in range({}): print(f'line {{i}}\\033[?1049hdrawn\\033[?1049l')"


async def test_lines_between_many_screens_are_told_by_the_first_and_the_newest(
    tools: Tools,
) -> None:
    pane = await tools.create(python(f"{FLASHES.format(3000)}\nprint('the end'); input()"))
    [text, status] = await tools.blocks("wait", pane_id=pane, pattern="the end", since=0)
    lines = text.splitlines()
    gap = next(number for number, line in enumerate(lines) if "left out" in line)

    assert "matched" in status
    assert lines[:gap] == [f"line {number}" for number in range(gap)]
    newest = [line for line in lines[gap + 1 : -1] if line]
    assert newest == [f"line {number}" for number in range(3000 - len(newest), 3000)]
    assert min(gap, len(newest)) > 3
    assert lines[-1] == "the end"

    arguments = {"pane_id": pane, "pattern": "the end", "since": 0, "show": "line|end"}
    [text, _] = await tools.blocks("wait", **arguments)
    assert "line 2999\nthe end" in text
    assert "drawn" not in text


@with_times(trim_s=0.01)
async def test_screens_that_are_no_longer_kept_are_told_once(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.growth.MAX_LOG_BYTES", 1 << 16)
    program = f"""{FLASHES.format(300)}
open({str(gate)!r}).read()
print('much ' * 100_000)
open({str(gate)!r}).read()
{FLASHES.format(3)}
print('the end'); input()"""
    pane_id = await tools.create(python(program))
    [pane] = tools.engine.panes
    told: list[str] = []

    async def wait() -> None:
        told.extend(await tools.blocks("wait", pane_id=pane_id, pattern="the end", since=0))

    await tools.shows(pane_id, "line 299")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await eventually(lambda: pane.subscribers > 0)
        await gate.open()
        await eventually(lambda: pane.log.kept_from > 100_000)
        await gate.open()

    assert told[0].count("no longer kept") == 1
    assert told[0].endswith("line 0\nline 1\nline 2\nthe end\n")
