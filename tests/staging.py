"""A pane on a stage: a test says what it prints, and how its program waits, in virtual time.

All decisions are the product's. What is not there is tmux and the processes: looks at them return
the snapshot that the test has set, and the log gets what the test prints.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from clocks import VirtualClock

from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.linux.sockets import End
from tmux_debug_mcp.linux.terminals import Modes
from tmux_debug_mcp.linux.waits import OutsideReaders
from tmux_debug_mcp.logs.events import LogEvents, Subscription
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes.creation import NewPane
from tmux_debug_mcp.panes.keyboard import SentStep
from tmux_debug_mcp.panes.looking.activity import Snapshot, WaitKind
from tmux_debug_mcp.panes.looking.state import State, ended_state
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.place import PaneId, Place
from tmux_debug_mcp.panes.shells.dialects import Shell
from tmux_debug_mcp.vt.echo import Echoer

if TYPE_CHECKING:
    from tmux_debug_mcp.panes.ports import Ports

LINES = Modes(is_canonical=True, echoes=True, is_raw=False, has_signal_keys=True, unread_bytes=0)
EDITING = Modes(is_canonical=False, echoes=False, is_raw=True, has_signal_keys=True, unread_bytes=0)
BUSY = Snapshot(group=7, pid=7, foreground="make", modes=LINES, is_at_work=True)
BLOCKED = replace(BUSY, is_at_work=False)  # it reads nothing, and sleeps
READING = replace(BLOCKED, waiting=WaitKind.ALONE)
SECRET = replace(READING, modes=LINES._replace(echoes=False))
PROMPT = replace(
    READING,
    modes=EDITING,
    foreground="bash",
    shell=Shell(1, "bash", (1, 2)),
    shell_waiting=WaitKind.ALONE,
)


class StagedPane(Pane):
    """A pane whose test is its program, its tmux and its kernel."""

    def __init__(self, directory: Path, clock: VirtualClock) -> None:
        events = LogEvents(clock)
        log = Log.create(directory / "log", "mark", clock)
        place = cast("Place", _Place())
        ports = cast("Ports", _Ports())
        outside = OutsideReaders()
        super().__init__(
            PaneId("debug-1"), NewPane("make"), place, log, events, ports, clock, outside
        )
        self.snapshot = BUSY
        self.echoes = Echoer.NOBODY
        self.looks = 0
        self.end_state: State | None = None
        self.runs_others = False
        self.is_stalled = False
        self._late = ""
        self.terminal.snapshot = self._snapshot  # type: ignore[method-assign]
        self.terminal.unchanged = lambda: None  # type: ignore[method-assign]

    def _snapshot(self) -> Snapshot:
        self.looks += 1
        return replace(self.snapshot, printed_bytes=self.log.size)

    def print(self, text: str) -> None:
        """Have the program print something. It is late in the log while that is stalled."""
        if self.is_stalled:
            self._late += text
            return
        with self.log.path.open("ab") as file:
            file.write(text.replace("\n", "\r\n").encode())
        self.log.note_growth()
        self.events.notify(self.log)

    def catch_up(self) -> None:
        """Have the log get what is late."""
        self.is_stalled = False
        late, self._late = self._late, ""
        self.print(late)

    def exit(self, code: int) -> None:
        """Have the program end."""
        self.end_state = ended_state(code, self.clock.now(), self.log.size)
        self.events.notify(self.log)

    def type(self, *texts: str) -> SentStep:
        """Have keys typed, and return how it was before. Who echoes them is `echoes`."""
        before = self.terminal.begin_typing()
        number = len(self.keyboard.sent)
        sent = SentStep(self.log.size, texts, self.echoes, number, self.clock.now(), before)
        self.keyboard.sent.append(sent)
        return sent

    def is_alone(self, shell: Shell) -> bool:  # noqa: ARG002  as in Pane
        return not self.runs_others

    async def ending(self) -> State | None:
        return self.end_state

    async def ensure_log_writer(self) -> bool:
        return False

    async def flush(self) -> None:
        pass

    async def drain(self) -> bool:
        deadline = self.clock.now() + self.clock.times.drain_s
        while self.is_stalled and self.clock.now() < deadline:
            await self.clock.sleep(0.25)
        return not self.is_stalled

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        with self.events.subscribe(self.log) as subscription:
            yield subscription

    def close(self) -> None:
        self.log.close()
        self.events.close()


class _Ports:
    def ends(self, _listening: object) -> list[End]:
        return []


class _Place:
    members = list
    living_leader = staticmethod(lambda: None)
    leader = Stat(pid=-1)
    client: Any = None
    target = "%0"
    ids = "$0", "@0", "%0"
