"""Between callers: what one was shown, another was not; and what nobody got counts for nobody."""

import random
import re
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from clocks import with_times
from mcp import Client
from support import RUN, Tools, call_in_session, eventually, in_process, python, texts

from tmux_debug_mcp.audit import AuditError, AuditLog
from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.panes.caller_session import CallerSession, PaneView
from tmux_debug_mcp.panes.capturing import capture_screen_rows
from tmux_debug_mcp.panes.engine import Engine, open_engine
from tmux_debug_mcp.server import build
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import Answer, choose

# A program that draws all rows anew after each key: a small letter changes a row, a capital one
# makes it as it was before; "!" leaves the screen, prints a line and comes back.
DRAWS = """
import os, sys, tty
tty.setcbreak(0)
height, width = int(sys.argv[1]), int(sys.argv[2])
versions = [[0] for _ in range(height)]
printed = 0
def row(number, version):
    text = f"row {number} version {version} "
    return "" if version % 7 == 6 else text.ljust(width, chr(97 + number % 26))
def draw():
    rows = [row(number, of_row[-1]) for number, of_row in enumerate(versions)]
    sys.stdout.write("\\033[?1049h\\033[H\\033[2J" + "\\r\\n".join(rows))
    sys.stdout.flush()
draw()
while True:
    key = os.read(0, 1).decode()
    if key == "!":
        printed += 1
        sys.stdout.write(f"\\033[?1049lline {printed}\\r\\n")
    elif key.isalpha():
        of_row = versions[(ord(key.lower()) - 97) % height]
        if key.islower():
            of_row.append(max(of_row) + 1)
        elif len(of_row) > 1:
            of_row.append(of_row[-2])
    draw()
"""
# Of the first screen of these sizes, a result shows all, a part without a condition, a part always.
SIZES = {"20x5": (5, 19), "80x24": (24, 79), "200x50": (50, 199)}


def draws(height: int, width: int) -> str:
    return f"{python(DRAWS)} {height} {width}"


@pytest.fixture
async def both(settings: Settings, clock: Clock) -> AsyncIterator[tuple[Tools, Tools]]:
    """Serve two clients, each with a connection of its own, by one server in this process."""
    async with open_engine(settings, None, clock) as engine:
        toolbox = Toolbox(choose("debug"), engine, Records(None, RUN))
        async with Client(build(toolbox)) as one, Client(build(toolbox)) as other:
            yield Tools(one, engine), Tools(other, engine)


class Reader:
    """A caller who remembers all lines that results have shown it of each pane."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.session = CallerSession()
        self.lines: dict[str, set[str]] = {}
        self._toolbox = toolbox

    async def call(self, tool: str, **arguments: Any) -> list[str]:  # noqa: ANN401
        """Call a tool; return the blocks of its result, none if it is an error."""
        result = await call_in_session(self._toolbox, self.session, tool, **arguments)
        return [] if result.is_error else texts(result)

    def reads(self, pane_id: str, text: str) -> set[str]:
        """Read a text about a pane; return all lines that were read of it until now."""
        lines = self.lines.setdefault(pane_id, {""})
        lines.update(text.split("\n"))
        return lines


def left_out(text: str) -> set[int]:
    """Return the numbers of the rows that a text names as left out."""
    numbers: set[int] = set()
    for named in re.findall(r"^\[rows? ([\d, -]+) left out\]$", text, re.MULTILINE):
        for span in named.split(", "):
            first, _, last = span.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


class UnreliableRecords(Records):
    """Records, of which those of some calls can't be written once the call was made."""

    def __init__(self) -> None:
        super().__init__(None, RUN)
        self.fails = False
        self.on_answer: Callable[[], None] | None = None

    async def answered(self, *call: Any) -> Answer:  # noqa: ANN401
        answer = await super().answered(*call)
        if self.on_answer:
            self.on_answer()
            await anyio.lowlevel.checkpoint()
        if self.fails:
            raise AuditError("The call was made, but the audit can't be written.")
        return answer


class World:
    """Callers who work at random on panes, and whose results are checked."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._panes = {str(pane.id): pane for pane in engine.panes}
        self._records = UnreliableRecords()
        toolbox = Toolbox(choose("debug"), engine, self._records)
        self._readers = [Reader(toolbox) for _ in range(3)]
        self.checked: Counter[str] = Counter()

    async def act(self) -> None:
        """Have a caller make a call, and check what it is shown."""
        choose = self._random
        reader = choose.choice(self._readers)
        tool, arguments = self._call()
        is_filtered = tool != "capture_pane" and choose.random() < 0.15
        if is_filtered:
            arguments["show"] = "version [1-3]"
        blocks: list[str] = []
        self._records.fails = choose.random() < 0.1
        until_s = choose.random() * 0.05 if choose.random() < 0.2 else None
        with anyio.move_on_after(until_s):
            blocks = await reader.call(tool, **arguments)
        if tool != "capture_pane" and blocks:
            await self._check(reader, blocks, is_filtered=is_filtered)

    def _call(self) -> tuple[str, dict[str, Any]]:
        """Return a tool, and what it is called with."""
        choose = self._random
        pane, panes = choose.choice([*self._panes]), [*self._panes]
        keys = ["".join(choose.choices("abcxyzABCXYZ!", k=choose.randint(1, 3)))]
        keys += ["e"] * choose.randint(0, 1)
        calls: list[tuple[str, dict[str, Any]]] = [
            ("send_keys", {"pane_id": pane, "keys": keys}),
            ("send_keys", {"pane_id": pane, "keys": keys, "wait_for": "version"}),
            ("send_keys", {"pane_id": pane, "keys": keys, "timeout_s": 0}),
            ("wait", {"pane_id": pane}),
            ("wait", {"pane_id": panes}),
            ("wait", {"pane_id": pane, "pattern": "never", "timeout_s": 0.01}),
            ("wait", {"pane_id": panes, "pattern": "never", "timeout_s": 0.01}),
            ("wait", {"pane_id": pane, "pattern": "version", "timeout_s": 0.3}),
            ("capture_pane", {"pane_id": pane}),
        ]
        return choose.choice(calls)

    async def _check(self, reader: Reader, blocks: list[str], *, is_filtered: bool) -> None:
        """Check that of each screen the caller knows all rows but those that are left out."""
        *bodies, statuses = blocks
        if bodies[0].startswith("Sent "):
            del bodies[0]
        told = re.findall(r"\[(debug-\d+) [^\]]*?; (screen \d+x\d+; )?cursor (\d+)\]", statuses)
        for (pane_id, screen, cursor), text in zip(told, bodies, strict=bool(bodies)):
            lines = reader.reads(pane_id, text)
            pane = self._panes[pane_id]
            rows = (await capture_screen_rows(pane)).rows
            # Of lines that match, nothing is called unchanged; what was drawn since is not known.
            if is_filtered or not screen or pane.log.size != int(cursor):
                continue
            out = left_out(text)
            is_cut = re.search(r"^\[[\d,]+ (lines?|bytes) left out", text, re.MULTILINE)
            self.checked["cut" if out or is_cut else "whole"] += 1
            self.checked["unchanged"] += "[screen unchanged]" in text
            unknown = [
                number
                for number, row in enumerate(rows, 1)
                if row not in lines and number not in out
            ]
            assert is_cut or not unknown, (pane_id, unknown, text)


@with_times(quiet_s=0.1)
async def test_row_that_is_called_unchanged_was_shown_to_this_caller(
    settings: Settings, clock: Clock, random_seed: int
) -> None:
    async with open_engine(settings, None, clock) as engine:
        maker = Reader(Toolbox(choose("debug"), engine, Records(None, RUN)))
        for size, (height, width) in SIZES.items():
            command = draws(height, width)
            await maker.call("create_pane", command=command, size=size, wait_for="row 0")
        world = World(engine, random_seed)
        for _ in range(100):
            await world.act()
    assert min(world.checked[kind] for kind in ("whole", "cut", "unchanged")) > 3, world.checked


SCREEN = draws(5, 19)
ROWS = "\n".join(f"row {number} version 0 {3 * chr(97 + number)}" for number in range(5))


async def test_each_client_is_shown_a_whole_screen_first(both: tuple[Tools, Tools]) -> None:
    for client in both:
        pane_id = await both[0].create(SCREEN) if client is both[0] else "debug-1"
        assert (await client.blocks("wait", pane_id=pane_id))[0] == ROWS
    for client in both:
        assert (await client.blocks("wait", pane_id="debug-1"))[0] == "[screen unchanged]"
    blocks = await both[0].blocks("send_keys", pane_id="debug-1", keys="c")
    assert blocks[1] == "[row 3]\nrow 2 version 1 ccc"
    # To the other client, this row is new, too.
    assert (await both[1].blocks("wait", pane_id="debug-1"))[0] == blocks[1]


async def test_of_several_panes_only_the_one_that_is_told_counts_as_shown(tools: Tools) -> None:
    toolbox = Toolbox(choose("debug"), tools.engine, Records(None, RUN))
    panes = [await tools.create(SCREEN, wait_for="row 4") for _ in range(2)]
    for _ in range(10):
        reader = Reader(toolbox)
        text, status = await reader.call("wait", pane_id=panes)
        assert text == ROWS
        [told] = [pane for pane in panes if status.startswith(f"[{pane} ")]
        for pane in panes:
            [text, _] = await reader.call("wait", pane_id=pane)
            assert text == ("[screen unchanged]" if pane == told else ROWS)


async def test_call_that_can_not_be_put_on_record_shows_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.create(SCREEN)
        path.rename(tmp_path / "moved")
        path.mkdir()
        assert "the audit can't be written" in await tools.error("wait", pane_id="debug-1")
        path.rmdir()

        assert (await tools.blocks("wait", pane_id="debug-1"))[0] == ROWS


async def test_cancelled_call_shows_nothing(tools: Tools) -> None:
    records = UnreliableRecords()
    reader = Reader(Toolbox(choose("debug"), tools.engine, records))
    await tools.create(SCREEN)
    async with anyio.create_task_group() as tasks:
        records.on_answer = tasks.cancel_scope.cancel
        tasks.start_soon(partial(reader.call, "wait", pane_id="debug-1"))
    records.on_answer = None

    assert (await reader.call("wait", pane_id="debug-1"))[0] == ROWS


async def test_end_of_a_run_is_told_once_to_each_client(both: tuple[Tools, Tools]) -> None:
    one, other = both
    await one.create("bash --norc", wait_for=r"\$ ")
    await one.blocks("run", pane_id="debug-1", command="read -r code; (exit $code)")
    # The other one answers, and is the first to see the end.
    status = (await other.blocks("send_keys", pane_id="debug-1", keys="3 Enter"))[-1]
    if "run ended" not in status:  # the shell was seen before its end mark
        status = (await other.blocks("wait", pane_id="debug-1"))[-1]
    assert "; run ended with code 3; " in status

    assert "; run ended with code 3; " in (await one.blocks("wait", pane_id="debug-1"))[-1]
    for client in both:
        assert "run ended" not in (await client.blocks("wait", pane_id="debug-1"))[-1]


async def test_end_of_a_run_is_no_news_to_a_caller_who_comes_later(tools: Tools) -> None:
    await tools.create("bash --norc", wait_for=r"\$ ")
    await tools.blocks("run", pane_id="debug-1", command="read -r code; (exit $code)")
    await tools.send("debug-1", "3 Enter")
    [pane] = tools.engine.panes
    await eventually(lambda: pane.run_ending() is not None)

    assert CallerSession(pane.clock.now()).news(pane) is None
    assert CallerSession().news(pane) is pane.run_ending()


OLD = r"; matched output from (\d+\.\d) s before this call; since (\d+) for new output; cursor"
OLD_ROW = r"; matched a row shown \d+\.\d s before this call; since (\d+) for new output; screen"


async def test_match_in_what_was_shown_says_how_old_it_is_and_where_to_go_on(
    both: tuple[Tools, Tools],
) -> None:
    one, other = both
    await one.create("echo change; cat")
    blocks, facts = await one.answer("wait", pane_id="debug-1", pattern="change")
    assert "; matched; cursor" in blocks[-1]
    assert "new_from" not in facts

    blocks, facts = await one.answer("wait", pane_id="debug-1", pattern="change")
    old = re.search(OLD, blocks[-1])
    assert old, blocks
    assert blocks[0] == "change\n"
    assert float(old[1]) == facts["match_age_s"]
    assert int(old[2]) == facts["new_from"] == len("change\r\n")
    stopped = {"pattern": "never", "stop_pattern": "change"}
    blocks = await one.blocks("wait", pane_id="debug-1", **stopped)
    assert "; stop pattern matched output from " in blocks[-1]
    # To the other client, it is new.
    assert "; matched; cursor" in (await other.blocks("wait", pane_id="debug-1", pattern="ch"))[-1]

    # New output is new, and so is the answer to keys.
    await other.blocks("send_keys", pane_id="debug-1", keys="change again Enter", timeout_s=0)
    wait = {"pane_id": "debug-1", "pattern": "^change", "since": int(old[2])}
    assert "; matched; cursor" in (await one.blocks("wait", **wait))[-1]
    for _ in range(2):
        keys = {"pane_id": "debug-1", "keys": "change\n", "wait_for": "^change"}
        assert "; matched; cursor" in (await one.blocks("send_keys", **keys))[-1]


async def test_row_that_was_shown_and_matches_again_says_so(both: tuple[Tools, Tools]) -> None:
    one, other = both
    await one.create(SCREEN)
    wait = {"pane_id": "debug-1", "pattern": "version 0"}
    await one.blocks("wait", pane_id="debug-1")
    assert "; matched; screen " in (await other.blocks("wait", **wait))[-1]

    blocks, facts = await one.answer("wait", **wait)
    assert blocks[0] == "[screen unchanged]"
    old = re.search(OLD_ROW, blocks[-1])
    assert old, blocks
    assert facts["new_from"] == int(old[1])

    keys = {"pane_id": "debug-1", "keys": "c", "wait_for": "version 1"}
    assert "; matched; screen " in (await one.blocks("send_keys", **keys))[-1]


async def test_wait_names_a_pane_that_is_named_twice_once(tools: Tools) -> None:
    await tools.create("cat", name="web")
    await tools.create("cat", name="db")
    panes = ["web", "debug-1", "db", "web"]
    blocks = await tools.blocks("wait", pane_id=panes, pattern="never", timeout_s=0)

    assert len(blocks) == 3
    assert re.findall(r"\[(debug-\d) \w+ ", blocks[-1]) == ["debug-1", "debug-2"]


async def test_confirmations_and_errors_name_a_pane_as_the_call_did(tools: Tools) -> None:
    await tools.create("cat", name="web")
    typed = "Sent keys to pane '{}'"
    for name in ("web", "debug-1"):
        blocks = await tools.send(name, "x Enter")
        assert blocks[0] == typed.format(name)
        assert blocks[-1].startswith("[debug-1 web running ")
        blocks = await tools.send(name, "", size="80x24")
        assert blocks[0] == f"Resized pane '{name}' to 80x24"
        error = await tools.error("run", pane_id=name, command="true")
        assert error.startswith(f"Pane '{name}' is running cat, not a shell at its prompt. ")
    await tools.send("web", "C-d")
    await tools.exited("debug-1")
    for name in ("web", "debug-1"):
        error = await tools.error("send_keys", pane_id=name, keys="x Enter")
        assert error.startswith(f"Pane '{name}' exited with code 0 after ")

    [killed, status] = await tools.blocks("kill_pane", pane_id="web")
    assert killed.startswith("Killed pane 'web' (exited with code 0 after ")
    assert status.startswith("[debug-1 web exited ")
    assert (await tools.error("kill_pane", pane_id="web")).startswith("Pane 'web' not found. ")


async def test_pane_that_another_call_has_killed_is_named_as_the_call_did(tools: Tools) -> None:
    await tools.create("cat", name="web")
    answers: dict[str, str] = {}

    async def kill(name: str) -> None:
        answers[name] = texts(await tools.call("kill_pane", pane_id=name))[0]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill, "debug-1")
        tasks.start_soon(kill, "web")
    assert sorted(answers) == ["debug-1", "web"]
    for name, answer in answers.items():
        assert re.match(f"(Killed p|P)ane '{name}' (not found|\\()", answer)


class Something:
    """What can be remembered and forgotten."""


def test_session_remembers_the_panes_it_was_shown_last() -> None:
    session = CallerSession()
    panes: list[Any] = [Something() for _ in range(100)]
    for pane in panes:
        session.note(pane, PaneView(1))
    session.note(panes[50], PaneView(2))
    remembered = [pane for pane in panes if session.shown(pane).cursor]
    assert len(remembered) == 64
    assert session.shown(panes[50]).cursor == 2
    assert panes[-1] in remembered
    assert panes[0] not in remembered
    del pane, remembered
    gone = weakref.ref(panes.pop())
    assert gone() is None
