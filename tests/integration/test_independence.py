"""What a caller gets of a pane depends on its output and on the caller's own calls alone.

Two panes run the same program. A caller works on one of them, which nobody else knows. Another one
makes the same calls on the other one, while further callers read it, and work on panes of their
own. Both get the same answers.
"""

import random
import re
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from clocks import TIMES
from support import PATIENCE_S, RUN, call_in_session, python, texts

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.engine import Engine, open_engine
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import choose

# Prints for each line that it reads what the words there say, and then how many it has read.
PRINTS = r"""
import sys
read = 0
def out(*texts):
    sys.stdout.write("".join(texts))
out("begun\n")
sys.stdout.flush()
for line in sys.stdin:
    read += 1
    for number, word in enumerate(line.split()):
        name, _, size = word.partition("=")
        size, mark = int(size or 1), f"{read}.{number}"
        if name == "lines":
            out(*(f"{mark}.{at} of {size}\n" for at in range(size)))
        elif name == "long":
            out(mark, " x" * size, "\n")
        elif name == "equal":
            out(*["the same\n"] * size)
        elif name == "bar":
            out(*(f"\r{mark} {at:3}%" for at in range(size)), "\n")
        elif name == "colours":
            out(*(f"\033[3{at % 8}m{mark}.{at}\033[m\n" for at in range(size)))
        elif name == "up":
            out(f"{mark} was\nbelow\n\033[2A{mark} is\n\033[B")
        elif name == "draw":
            out("\033[?1049h\033[2J\033[H", *(f"{mark} row {at}\n" for at in range(size)))
        elif name == "change":
            out(f"\033[{size};1H{mark} changed\033[K")
        elif name == "leave":
            out("\033[?1049l")
        elif name == "clear":
            out("\033[H\033[2J")
    out(f"\ndone {read}\n")
    sys.stdout.flush()
"""
# How large these may be: in a program that prints much, and in one that draws. What is left out is
# counted exactly within 16 KiB after keys; a screen is known if it was drawn in the last 64 KiB.
PRINTED = {
    "lines": (1, 3, 30, 300, 3000),
    "long": (1, 40, 500, 1500),
    "equal": (2, 9, 100),
    "bar": (2, 50, 500),
    "colours": (3, 40),
}
DRAWN = {
    "lines": (1, 3, 30, 100),
    "long": (1, 40, 300),
    "equal": (2, 9, 30),
    "bar": (2, 50),
    "colours": (3, 40),
    "up": (1,),
    "draw": (3, 20, 45),
    "change": (1, 2, 9),
    "leave": (1,),
    "clear": (1,),
}
SIZES = ["80x24", "200x50"]
# What differs between two panes, or from one look to the next.
OWN = re.compile(r"\bdebug-\d+\b|\(pid \d+\)|\b\d+\.\d+ s\b|, awaits input")
FACTS = ("reason", "cursor", "start_cursor", "cut_bytes", "marked_lines", "new_from", "exit_code")


class Reader:
    """A caller with a session of its own."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._session = CallerSession()
        self._toolbox = toolbox

    async def call(self, tool: str, **arguments: Any) -> types.CallToolResult:  # noqa: ANN401
        """Call a tool, and return its result, an error or not."""
        return await call_in_session(self._toolbox, self._session, tool, **arguments)

    async def answer(self, tool: str, **arguments: Any) -> tuple[list[str], dict[str, Any]]:  # noqa: ANN401
        """Return the blocks of a call that succeeds, and what is said of it for programs."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, (tool, arguments, texts(result))
        return texts(result), dict(result.meta or {})


class Twins:
    """Callers who make the same calls on two panes that run the same, one of them undisturbed."""

    def __init__(self, engine: Engine, seed: int, words: dict[str, tuple[int, ...]]) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._words = words
        toolbox = Toolbox(choose("debug"), engine, Records(None, RUN))
        self._alone, self._beside = Reader(toolbox), Reader(toolbox)
        self._noise = [Reader(toolbox) for _ in range(3)]
        self._lines = 0
        self._cursors = [0]
        self.panes: list[str] = []
        self.others: list[str] = []

    async def begin(self, command: str, size: str) -> None:
        """Make both panes, and two for the other callers."""
        arguments = {"command": command, "size": size, "timeout_s": PATIENCE_S}
        for reader in (self._alone, self._beside):
            facts = (await reader.answer("create_pane", wait_for="begun", **arguments))[1]
            self.panes.append(facts["pane_id"])
            await reader.answer("wait", pane_id=facts["pane_id"], timeout_s=PATIENCE_S)
        for reader in self._noise[:2]:
            facts = (await reader.answer("create_pane", wait_for="begun", **arguments))[1]
            self.others.append(facts["pane_id"])

    async def act(self) -> None:
        """Make a call on each pane, and compare the answers."""
        tool, arguments = self._call()
        quiet = await self._alone.answer(tool, pane_id=self.panes[0], **arguments)
        async with anyio.create_task_group() as tasks:
            for noise in self._noise:
                tasks.start_soon(self._disturb, noise, random.Random(self._random.random()))  # noqa: S311
            loud = await self._beside.answer(tool, pane_id=self.panes[1], **arguments)
            tasks.cancel_scope.cancel()
        assert _comparable(*loud) == _comparable(*quiet), (tool, arguments)
        self._cursors.append(quiet[1]["cursor"])

    def _call(self) -> tuple[str, dict[str, Any]]:
        """Return a tool, and what it is called with; when its answer is made is never by chance."""
        choose = self._random
        kind = choose.choice(["type", "type", "steps", "wait", "read", "capture", "search", "find"])
        show = {"show": choose.choice(["[05]", "was|done", "row"])} if choose.random() < 0.2 else {}
        since = choose.choice([self._cursors[-1], choose.choice(self._cursors)])
        if kind == "type":
            return "send_keys", {"keys": self._line(), "timeout_s": PATIENCE_S, **show}
        if kind == "steps":
            keys = [self._line() for _ in range(choose.randint(2, 4))]
            return "send_keys", {"keys": keys, "timeout_s": PATIENCE_S, **show}
        if kind == "wait":
            given = {"since": since} if choose.random() < 0.6 else {}
            return "wait", {"timeout_s": PATIENCE_S, **given, **show}
        if kind == "find":
            pattern = choose.choice(["done", "row 1", "was", "never", f"done {self._lines}"])
            return "wait", {"pattern": pattern, "since": since, "timeout_s": 0, **show}
        if kind == "read":
            lines = choose.choice([{}, {}, {"lines": 7}])
            return "capture_pane", {"since": since, **lines}
        if kind == "search":
            return "capture_pane", {"pattern": choose.choice(["done", "[05]", "changed"])}
        return "capture_pane", choose.choice([{}, {"lines": 5}, {"lines": 1000}])

    def _line(self) -> str:
        """Return a line to type."""
        self._lines += 1
        names = self._random.choices(list(self._words), k=self._random.randint(1, 3))
        words = [f"{name}={self._random.choice(self._words[name])}" for name in names]
        return " ".join(words) + "\n"

    async def _disturb(self, reader: Reader, choose: random.Random) -> None:
        """Read the pane that is worked on, and work on others, until cancelled."""
        while True:
            pane = choose.choice([self.panes[1], self.panes[1], *self.others])
            mine = choose.choice(self.others)
            calls: list[tuple[str, dict[str, Any]]] = [
                ("wait", {"pane_id": pane, "timeout_s": 0}),
                ("wait", {"pane_id": [*self.panes, *self.others], "timeout_s": 0}),
                ("wait", {"pane_id": pane, "pattern": "never", "timeout_s": 0.05}),
                ("wait", {"pane_id": pane, "pattern": "done", "since": 0, "timeout_s": 1}),
                ("wait", {"pane_id": pane, "idle_s": 0.01, "timeout_s": 1}),
                ("wait", {"pane_id": pane, "show": "[1-3]", "timeout_s": 1}),
                ("capture_pane", {"pane_id": pane}),
                ("capture_pane", {"pane_id": pane, "since": choose.choice(self._cursors)}),
                ("capture_pane", {"pane_id": pane, "pattern": "done"}),
                ("list_panes", {}),
                ("send_keys", {"pane_id": mine, "keys": "lines=30 draw=20\n", "timeout_s": 0.2}),
                ("send_keys", {"pane_id": mine, "keys": "leave up\n", "wait_for": "done"}),
            ]
            tool, arguments = choose.choice(calls)
            with anyio.move_on_after(choose.choice([None, choose.random() / 20])):
                await reader.call(tool, **arguments)
            await anyio.lowlevel.checkpoint()


def _comparable(blocks: list[str], facts: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return what of an answer has to be the same."""
    return [OWN.sub("…", block) for block in blocks], {name: facts.get(name) for name in FACTS}


@pytest.mark.parametrize("words", [PRINTED, DRAWN], ids=["prints", "draws"])
async def test_answers_are_the_same_whatever_other_callers_do(
    settings: Settings, random_seed: int, words: dict[str, tuple[int, ...]]
) -> None:
    with anyio.fail_after(5 * PATIENCE_S):
        async with open_engine(settings, None, Clock(TIMES)) as engine:
            twins = Twins(engine, random_seed, words)
            await twins.begin(python(PRINTS), random.Random(random_seed).choice(SIZES))  # noqa: S311
            for _ in range(15):
                await twins.act()
