"""What panes share: no call on one of them delays another, whatever it prints and is asked for."""

import asyncio
import contextvars
import os
import signal
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import hypothesis
import pytest
from clocks import with_times
from hypothesis import strategies as st
from support import PATIENCE_S, Gate, Tools, eventually, in_process, python
from turns import STREAMS, counted_turns, largest_turns, too_much

from tmux_debug_mcp.logs import reading, searching
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.pane_text import PaneText
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.turns import Turns


class Halt:
    """Stops whoever makes text of some output, once it has come, until the end of the block."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self._over = anyio.Event()

    @contextmanager
    def at(self, output: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        async def advance(
            self_: PaneText,
            *arguments: Any,  # noqa: ANN401
            advance: Any = PaneText.advance,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            read = await advance(self_, *arguments)
            if output.decode() in "\n".join(read[1]).lower():
                self.reached.set()
                await self._over.wait()
            return read

        async def read(
            log: Log,
            start: int,
            data: bytes,
            *arguments: Any,  # noqa: ANN401
            read: Any = reading._read,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            if output in data.lower():
                self.reached.set()
                await self._over.wait()
            return await read(log, start, data, *arguments)

        async def shown(
            log: Log,
            data: bytes,
            turns: Turns,
            shown: Any = searching._shown,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            if output in data.lower():
                self.reached.set()
                await self._over.wait()
            return await shown(log, data, turns)

        with monkeypatch.context() as patch:
            patch.setattr(PaneText, "advance", advance)
            patch.setattr(reading, "_read", read)
            patch.setattr(searching, "_shown", shown)
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
async def test_what_a_wait_has_read_is_told_though_it_is_no_longer_kept(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 16)
    program = f"""{FLASHES.format(300)}
open({str(gate)!r}).read()
print('much ' * 100_000)
open({str(gate)!r}).read()
{FLASHES.format(3)}
print('the end'); input()"""
    pane_id = await tools.create(python(program))
    [pane] = tools.engine.panes
    told: list[str] = []
    positions = [0]

    async def advance(
        self: PaneText,
        *arguments: Any,  # noqa: ANN401
        advance: Any = PaneText.advance,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        read = await advance(self, *arguments)
        positions.append(self.position)
        return read

    monkeypatch.setattr(PaneText, "advance", advance)

    async def wait() -> None:
        told.extend(await tools.blocks("wait", pane_id=pane_id, pattern="the end", since=0))

    await tools.shows(pane_id, "line 299")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await eventually(lambda: positions[-1] == pane.log.size)
        await gate.open()
        await eventually(lambda: pane.log.kept_from > 100_000)
        await gate.open()

    assert told[0].startswith("line 0\nline 1\nline 2\n")
    assert told[0].count(" left out]") == 1
    assert told[0].endswith("line 0\nline 1\nline 2\nthe end\n")


async def test_end_of_a_program_without_a_mark_in_a_long_log_delays_nobody(tools: Tools) -> None:
    pane_id = await tools.create("exec sleep 1000")
    [pane] = tools.engine.panes
    os.truncate(pane.log.writable, 64 << 30)
    os.kill(pane.leader.pid, signal.SIGKILL)
    with largest_turns() as most, counted_turns() as turns:
        await tools.exited(pane_id)
        await tools.blocks("list_panes")
        assert turns() < 2000

    assert too_much(most) == {}


# What follows holds for any output, any terminal and any call. `--hypothesis-profile long` tries
# other examples, for a quarter of an hour; `--hypothesis-seed` repeats them.
CORPUS = Path(__file__).parents[1] / "corpus"
COLOURED = "".join(
    f"\033[48;2;{number % 256};{number % 7};9m{chr(97 + number % 26)}" for number in range(20_000)
)
TEXTS: dict[str, Callable[[], bytes]] = {
    **{path.name: path.read_bytes for path in sorted(CORPUS.glob("*.out"))},
    **{
        name: partial(lambda text: eval(text).encode(errors="surrogateescape"), text)  # noqa: S307
        for name, text in STREAMS.items()
    },
    "coloured cells": COLOURED.encode,
    "coloured blanks": lambda: b"\033[44m " * 30_000,
    "screens for a moment": lambda: b"a\r\n\033[?1049hb\033[?1049l" * 4_000,
    "moves": lambda: b"\033[7;7Hx\r\n" * 10_000,
    "pixels": lambda: b"\033[H" + COLOURED.encode(),
}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "capture": ("capture_pane", {}),
    "capture in colours": ("capture_pane", {"lines": 1000, "view": "ansi"}),
    "read on": ("capture_pane", {"since": 0}),
    "read the middle": ("capture_pane", {"since": 70_000}),
    "search": ("capture_pane", {"pattern": "e", "lines": 1000}),
    "search in vain": ("capture_pane", {"pattern": "never .* printed"}),
    "wait": ("wait", {"pattern": "[a-z]$", "since": 0}),
    "wait in vain": ("wait", {"pattern": "never .* printed", "since": 0, "timeout_s": 0.3}),
    "wait until it is idle": ("wait", {"idle_s": 0.05, "since": 0}),
    "show": ("wait", {"idle_s": 0.05, "since": 0, "show": "e"}),
    "type": ("send_keys", {"keys": "more\n", "wait_for": "more", "timeout_s": 0.3}),
    "resize": ("send_keys", {"keys": "", "size": "91x31", "timeout_s": 0.3}),
    "kill": ("kill_pane", {}),
}


@dataclass(frozen=True)
class Example:
    """A call on a pane that has printed something.

    Attributes:
        texts: The names of what it printed, one after the other, again and again.
        call: The name of the call.
        max_bytes: How much that was in all.
        size: The size of its terminal.
        hole: How many bytes of its log are no longer kept.
        is_late: It prints while the call is made, not before.
        has_ended: Its program ends after that.
    """

    texts: tuple[str, ...]
    call: str
    max_bytes: int = 200_000
    size: tuple[int, int] = (80, 24)
    hole: int = 0
    is_late: bool = False
    has_ended: bool = False


EXAMPLES = st.builds(
    Example,
    st.lists(st.sampled_from(list(TEXTS)), min_size=1, max_size=3).map(tuple),
    st.sampled_from(list(CALLS)),
    max_bytes=st.sampled_from([5_000, 100_000, 300_000]),
    size=st.sampled_from([(80, 24), (200, 50), (500, 200), (20, 5), (7, 200)]),
    hole=st.sampled_from([0, 1 << 20, 64 << 30]),
    is_late=st.booleans(),
    has_ended=st.booleans(),
)
HARD_EXAMPLES = [
    Example(("pixels",), "wait until it is idle", size=(500, 200)),
    Example(("coloured cells",), "capture in colours", size=(500, 200), has_ended=True),
    Example(("coloured blanks",), "capture in colours", size=(500, 200)),
    Example(("screens for a moment",), "wait in vain", 100_000, is_late=True),
    Example(("returns",), "wait until it is idle"),
    Example(("backspaces",), "show"),
    Example(("one line",), "show", hole=64 << 30, is_late=True, has_ended=True),
]


def any_example(
    share: int,
) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Try a test with hard examples, and with a share of as many others as is usual."""

    def with_examples(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        for hard in HARD_EXAMPLES:
            test = hypothesis.example(example=hard)(test)
        return hypothesis.settings(
            deadline=None,
            max_examples=hypothesis.settings().max_examples // share,
            # Shrinking takes minutes.
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )(hypothesis.given(example=EXAMPLES)(test))

    return with_examples


class Busy:
    """A server with a pane that has printed an example's texts, and one that has printed nothing.

    Attributes:
        call: Makes the example's call.
    """

    def __init__(self, tools: Tools, call: Callable[[], Awaitable[object]], quiet: str) -> None:
        self._tools = tools
        self.call = call
        self._quiet = quiet
        [self._log] = [pane.log for pane in tools.engine.panes if pane.id == quiet]

    async def do_nothing(self) -> None:
        """Make a call that does nothing."""
        # A list waits for the end of a program's output, or until it is known to be at rest.
        assert "not found" in await self._tools.error("capture_pane", pane_id="debug-9")

    async def wait(self, line: str) -> None:
        """Have the quiet pane print a line, and wait until a wait is told of it."""
        cursor = self._log.size
        os.pwrite(self._log.fd, f"{line}\r\n".encode(), cursor)
        arguments = {"pane_id": self._quiet, "pattern": f"^{line}$", "since": cursor}
        blocks = await self._tools.blocks("wait", **arguments)
        assert "matched" in blocks[-1]

    async def beside(self, one: Callable[[int], Coroutine[Any, Any, None]], times: int) -> None:
        """Do something again and again while the example's call is made, and at least so often."""
        is_over = False

        async def call() -> None:
            nonlocal is_over
            await self.call()
            is_over = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            number = 0
            while number < times or not is_over:
                # Each call has a task of its own, as in a server.
                await asyncio.create_task(one(number), context=contextvars.Context())
                number += 1


async def busy(
    settings: Settings, example: Example, work: Callable[[Busy], Awaitable[None]]
) -> None:
    """Do something with a server, as an example says."""
    output = b"".join(TEXTS[name]() for name in example.texts)
    output = (output * (example.max_bytes // len(output) + 1))[: example.max_bytes]
    directory = Path(tempfile.mkdtemp(dir=settings.cwd))
    (directory / "printed").write_bytes(output)
    gate = Gate(directory / "gate")
    columns, rows = example.size
    async with in_process(replace(settings, cwd=directory)) as tools:
        quiet = await tools.create("exec sleep 1000")
        program = "" if example.has_ended else "; exec sleep 1000"
        loud = await tools.create(
            f"stty raw -echo; cat gate printed{program}", size=f"{columns}x{rows}"
        )
        log = tools.engine.panes[-1].log
        os.truncate(log.writable, example.hole)
        log.trim(0)
        if not example.is_late:
            await gate.open()
            await eventually(lambda: log.size >= example.hole + len(output))

        async def call() -> None:
            tool, arguments = CALLS[example.call]
            async with anyio.create_task_group() as tasks:
                if example.is_late:
                    tasks.start_soon(gate.open)
                result = await tools.call(tool, pane_id=loud, **arguments)
                tasks.cancel_scope.cancel()
            is_too_late = example.has_ended and tool == "send_keys"
            assert is_too_late or not result.is_error, result

        await work(Busy(tools, call, quiet))


@any_example(8)
async def test_call_that_does_nothing_takes_few_and_short_turns_beside_any_other(
    settings: Settings, example: Example
) -> None:
    async def work(busy: Busy) -> None:
        taken: list[int] = []

        async def do_nothing(_: int) -> None:
            before = turns()
            await busy.do_nothing()
            taken.append(turns() - before)

        with largest_turns() as most, counted_turns() as turns:
            await busy.beside(do_nothing, 3)
        assert max(taken) <= 10
        assert too_much(most) == {}

    await busy(settings, example, work)


@any_example(8)
async def test_wait_is_told_of_its_line_in_few_turns_beside_any_call_on_another_pane(
    settings: Settings, example: Example
) -> None:
    async def work(busy: Busy) -> None:
        taken: list[int] = []

        async def wait(number: int) -> None:
            before = turns()
            await busy.wait(f"line {number}")
            taken.append(turns() - before)

        with counted_turns() as turns:
            await busy.beside(wait, 3)
        assert max(taken) <= 40

    await busy(settings, example, work)


@any_example(25)  # what counts memory takes long
async def test_call_takes_bounded_memory_and_gives_it_back(
    settings: Settings, example: Example
) -> None:
    async def work(busy: Busy) -> None:
        await busy.do_nothing()
        tracemalloc.start()
        try:
            await busy.call()
            left, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most <= 8 << 20
        assert left <= 1 << 20

    await busy(settings, example, work)
