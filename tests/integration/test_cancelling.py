"""A call that is cancelled at any moment leaves nothing held: another caller's next call works."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.lowlevel
from support import PATIENCE_S, RUN, Tools, call_in_session, eventually, python, texts
from turns import around_turns

from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import choose

# At most so many turns of the event loop after its begin, a call is cancelled.
MOST_TURNS = 60
DRAWS = python(
    "import os, tty; tty.setcbreak(0)\n"
    "while True: print('\\033[?1049h\\033[Hscreen', end='', flush=True); os.read(0, 1)"
)
# Calls on each kind of pane.
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "shell": [
        ("run", {"command": "echo out"}),
        ("run", {"command": "echo out; sleep 1000", "timeout_s": 0.01}),
        ("run", {"command": "read -r word"}),
        ("send_keys", {"keys": "echo typed\n"}),
        ("send_keys", {"keys": ["echo one\n", "echo two\n", "C-c"]}),
        ("send_keys", {"keys": "C-c"}),
        ("wait", {"pattern": "never", "timeout_s": 5}),
    ],
    "cat": [
        ("send_keys", {"keys": "text\n", "wait_for": "^text"}),
        ("send_keys", {"keys": "a\nb\nc\n", "stop_pattern": "b"}),
        ("send_keys", {"keys": "text\n", "paste": True}),
        ("send_keys", {"keys": "x\n", "size": "90x30"}),
        ("wait", {"pattern": "text", "since": 0}),
        ("wait", {"idle_s": 0.01, "show": "t"}),
        ("capture_pane", {"since": 0}),
        ("capture_pane", {"pattern": "t"}),
    ],
    "screen": [
        ("send_keys", {"keys": "x"}),
        ("send_keys", {"keys": ["x", "y"], "wait_for": "screen"}),
        ("wait", {"pattern": "screen", "since": 0}),
        ("wait", {}),
        ("capture_pane", {}),
    ],
}
CALLS["elsewhere"] = CALLS["shell"]
COMMANDS = {"shell": "bash --norc", "cat": "cat", "screen": DRAWS}
COMMANDS["elsewhere"] = "script --quiet --command 'bash --norc' /dev/null"


@contextmanager
def cancelled_after(turns: int, scope: anyio.CancelScope) -> Iterator[None]:
    """Cancel a scope after so many turns of the event loop in the block."""
    left = turns

    def end() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            scope.cancel()

    with around_turns(lambda: None, end):
        yield


class Callers:
    """Callers of one server, one of which cancels its calls."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._engine = engine
        self._toolbox = Toolbox(choose("debug"), engine, Records(None, RUN))
        self._panes: dict[str, str] = {}
        self._typed = 0

    async def call(self, tool: str, **arguments: Any) -> str:  # noqa: ANN401
        """Make a call as a new caller; return the text of its answer, or of its error."""
        result = await call_in_session(self._toolbox, CallerSession(), tool, **arguments)
        return "\n".join(texts(result))

    async def act(self) -> None:
        """Make a call, cancel it, and check that other callers are served."""
        choose = self._random
        kind = choose.choice([*COMMANDS])
        pane_id = self._panes.get(kind)
        tool, arguments = choose.choice(CALLS[kind])
        if pane_id is None or choose.random() < 0.1:
            tool, arguments = choose.choice(
                [
                    ("create_pane", {"command": COMMANDS[kind], "name": f"name-{self._typed}"}),
                    ("run", {"command": "echo own pane"}),
                    ("list_panes", {}),
                    *([("kill_pane", {"pane_id": pane_id})] if pane_id else []),
                ]
            )
        else:
            arguments = {"pane_id": pane_id, **arguments}
        with anyio.CancelScope() as scope:
            with cancelled_after(choose.randint(1, MOST_TURNS), scope):
                await self.call(tool, **arguments)
        await self._check(kind, (tool, arguments))

    async def _check(self, kind: str, cancelled: object) -> None:
        """Check that all locks are free once nothing is in flight, and that each tool works."""
        try:
            with anyio.fail_after(PATIENCE_S):
                await eventually(lambda: not self._held())
                pane_id = self._panes.get(kind)
                if pane_id is None or f'"id":"{pane_id}"' not in await self.call("list_panes"):
                    created = await self.call(
                        "create_pane", command=COMMANDS[kind], timeout_s=PATIENCE_S
                    )
                    self._panes[kind] = pane_id = created.partition("(id: ")[2].partition(")")[0]
                await self._use(kind, pane_id)
        except (TimeoutError, AssertionError) as error:
            message = f"after {cancelled} was cancelled, held: {self._held()}"
            raise AssertionError(message) from error

    async def _use(self, kind: str, pane_id: str) -> None:
        self._typed += 1
        text = f"next {self._typed}"
        await self.call("capture_pane", pane_id=pane_id)
        if kind in ("shell", "elsewhere"):
            # What was cancelled may still run there.
            for _ in range(3):
                await self.call("send_keys", pane_id=pane_id, keys="C-c", timeout_s=PATIENCE_S)
                told = await self.call("run", pane_id=pane_id, command=f"echo {text}")
                if told.startswith(f"{text}\n"):
                    return
            raise AssertionError(told)
        if kind == "cat":
            told = await self.call(
                "send_keys", pane_id=pane_id, keys=f"{text}\n", wait_for=f"^{text}$"
            )
            assert "; matched; " in told, told
            return
        told = await self.call("send_keys", pane_id=pane_id, keys="x", timeout_s=PATIENCE_S)
        assert told.startswith("Sent keys"), told

    def _held(self) -> list[str]:
        """Return the names of the locks that are held."""
        engine = self._engine
        locks = {"naming": engine.naming, "arranging": engine.arranging}
        for pane in engine.panes:
            locks |= {
                f"{pane.id} lock": pane.keyboard.lock,
                f"{pane.id} sequence": pane.keyboard.sequence,
                f"{pane.id} turns": pane.jobs.lock,
            }
        held = [name for name, lock in locks.items() if lock.locked()]
        return held + [f"{pane.id} is watched" for pane in engine.panes if pane.subscribers]


async def test_call_that_is_cancelled_anywhere_leaves_no_lock_held(
    tools: Tools, random_seed: int
) -> None:
    callers = Callers(tools.engine, random_seed)
    for _ in range(15):
        await callers.act()
