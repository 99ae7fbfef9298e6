"""A pane of our own tmux server: its processes, its log, and how its program ends.

tmux and the kernel are asked what a pane is doing. Kept here is what they can't tell: how the
program ended, once that is known. Nothing here takes a lock that another call waits for.
"""

import contextlib
import math
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NewType

import anyio

from tmux_debug_mcp.errors import CommandError, PaneExitedError, PaneLostError, TmuxGoneError, ToolError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.log import Log, Mark
from tmux_debug_mcp.logs.subscriptions import LogEvents, Subscription
from tmux_debug_mcp.tmux.client import Command, ControlClient

from .activity import Awaits, Snapshot, awaited
from .state import State, ended_state
from .terminal import Terminal

PaneId = NewType("PaneId", str)

# A mark follows its program's end within a millisecond; on a machine with no time left, later.
_MARK_S = 1.0
# The log tells when it grows, but not when a process ends.
_LOOK_AGAIN_S = 0.005
# How long a killed pane's processes get to end themselves, and then to be gone after SIGKILL.
_KILL_GRACE_S = 0.5
_KILL_S = 2.0
# What was printed so long ago has been read, and what was typed so long ago has been, too.
_PRINTED_S, _TYPED_S = 0.01, 0.1
# On its way to the log output is a millisecond, but on a busy machine.
_IN_FLIGHT_S = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pane is in tmux.

    Attributes:
        client: The connection to its tmux server.
        target: tmux's own id of the pane, such as %3.
        window: Our id of the window that it was made in, such as @3.
        leader: pane.sh, the session leader of its terminal.
        tag: The value of `processes.TAG` in the environment of all that it started.
    """

    client: ControlClient
    target: str
    window: str
    leader: processes.Stat
    tag: str


class TmuxPane:
    """A pane that was made, whether or not its program still runs.

    Args:
        pane_id: Our id of it.
        place: Where it is in tmux.
        log: Its log, which it closes once it was killed and nobody reads it.
        events: Wakes the subscribers of logs.

    Attributes:
        terminal: Its terminal.
        started_at: When it was made, on the clock of time.monotonic().
        subscribers: How many wait for its log to grow.
        has_gaps: Some output had no room in the log.
    """

    def __init__(self, pane_id: PaneId, place: Place, log: Log, events: LogEvents) -> None:
        self.id = pane_id
        self.place = place
        self.log = log
        self.events = events
        self.client, self.target, self.leader = place.client, place.target, place.leader
        self.terminal = Terminal(self.leader.pid, log, self.flush)
        self.started_at = time.monotonic()
        self.subscribers = 0
        self.has_gaps = False
        self._ended: State | None = None
        self._is_killed = False
        self._watching_end = anyio.Lock()  # held by the subscriber that waits for the process
        self._log_writer: int | None = None  # the process, once it was looked for

    async def state(self) -> State:
        """Return what the pane is now; when its program has ended, its output is complete."""
        if ending := await self.ending():
            return ending
        activity = self.terminal.glance()
        # One look will do where all has been quiet.
        is_new = time.time() < self.log.written_at + _PRINTED_S or self.terminal.typed_s < _TYPED_S
        return self.running(
            activity.snapshot, activity.awaits if is_new else activity.awaits or awaited(activity.snapshot)
        )

    def running(self, snapshot: Snapshot, awaits: Awaits | None) -> State:
        """Return the state of the running program, given a look at it."""
        return State(
            is_running=True,
            runtime_s=time.monotonic() - self.started_at,
            cursor=self.log.size,
            foreground=snapshot.foreground,
            pid=snapshot.pid,
            awaits=awaits,
        )

    @property
    def has_ended(self) -> bool:
        """Whether it is known that the program has ended."""
        return self._ended is not None

    async def ending(self) -> State | None:
        """Return how the program ended, or None while it runs."""
        return self._ended or await self._ending_of(self._living_leader())

    async def _ending_of(self, shell: processes.Stat | None) -> State | None:
        if self._ended is None and (shell is None or shell.reaped):
            self._ended = await self._ending()
        return self._ended

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        """Watch the pane's log, and its end too if that leaves no mark in the log."""
        error = None
        self.subscribers += 1
        try:
            with self.events.subscribe(self.log) as subscription:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._notify_of_end, subscription)
                    try:
                        yield subscription
                    except ToolError as reason:  # which is to come out as itself, not in a group
                        error = reason
                    tasks.cancel_scope.cancel()
        finally:
            self.subscribers -= 1
            self._close_log()
        if error:
            raise error

    def _close_log(self) -> None:
        """Close the log of a pane that was killed, when nobody reads it any more."""
        if self._is_killed and not self.subscribers:
            self.log.close()
            self.client.remove(f"{self.id}.mark")

    async def _notify_of_end(self, subscription: Subscription) -> None:
        async with self._watching_end:
            if self._living_leader():
                await _wait_for_end([self.leader.pid], math.inf)
        subscription.notify()

    def _living_leader(self) -> processes.Stat | None:
        """Return pane.sh's state, or None when it has ended."""
        stat = processes.read_stat(self.leader.pid)
        is_ours = stat is not None and stat.state != "Z" and stat.starttime == self.leader.starttime
        return stat if is_ours else None

    async def _ending(self) -> State | None:
        """Return how the program ended, as soon as its output is complete; None when it can't be told."""
        begin = anyio.current_time()
        with self.events.subscribe(self.log) as subscription:
            while True:
                if mark := self.log.find_mark():
                    return self._ended_with(mark.exit_code, mark)
                shell = self._living_leader()
                if shell is None and (ending := await self._ending_by_tmux()):
                    return ending
                if anyio.current_time() > begin + _MARK_S:
                    return None
                if shell and anyio.current_time() > begin + _MARK_S / 20:
                    terminals.restart_output(shell.pid)
                await subscription.wait(_LOOK_AGAIN_S)

    async def _ending_by_tmux(self) -> State | None:
        """Return how pane.sh ended when something killed it before it could leave its mark."""
        words = "#{pane_id} #{pane_dead} #{pane_dead_status} x#{pane_dead_signal}"
        try:
            [[line]] = await self.client.run(("display-message", "-p", "-t", self.target, words))
        except (CommandError, TmuxGoneError):
            return self._lost()
        found = line.decode().split(" ")
        if found[0] != self.target:
            return self._lost()
        if found[2]:
            return self._ended_with(int(found[2]))
        if found[3] != "x":
            return self._ended_with(128 + int(found[3][1:]))
        # tmux 3.3 may miss the news that a child ended; being told again it looks.
        processes.send_signals([self.client.server_pid], signal.SIGCHLD)
        return None

    def _ended_with(self, exit_code: int, mark: Mark | None = None) -> State:
        """Return the state after the end; without a mark, the end is now, when it was noticed."""
        end = self.log.written_at if mark else time.time()
        return ended_state(exit_code, self._runtime_s(end), mark.offset if mark else self.log.size)

    def _lost(self) -> State:
        return ended_state(None, self._runtime_s(time.time()), self.log.size)

    def _runtime_s(self, end: float) -> float:
        """Return the seconds to a moment of the recent past, which is told as time.time() has it."""
        return max(0.0, time.monotonic() - self.started_at - (time.time() - end))

    async def check_running(self) -> None:
        """See that the program runs.

        Raises:
            PaneExitedError: It has ended.
            PaneLostError: The pane is gone.
        """
        if ending := await self.ending():
            raise PaneLostError(self.id) if ending.is_lost else PaneExitedError(self.id, str(ending))

    async def ensure_log_writer(self) -> bool:
        """See that the log of a running pane is written, which ends where there is no room; begin again if it is not.

        Returns:
            Whether it was not, so that some output is lost.
        """
        # tmux itself notices that only when it has more for it.
        if self._log_writer is None or not processes.is_alive(self._log_writer):
            children = processes.children(self.client.server_pid)
            self._log_writer = next((pid for pid in children if self.log.is_at(f"/proc/{pid}/fd/1")), None)
        if self._log_writer or not self.log.size or await self.ending():
            return False
        self.has_gaps = True
        with contextlib.suppress(PaneLostError):
            await self.tmux(writes_log(self.target, self.log))
        return True

    async def is_watched(self) -> bool:
        """Tell whether a person is attached."""
        [[line]] = await self.tmux(("display-message", "-p", "-t", self.target, "#{session_attached}"))
        return int(line) > 1

    async def flush(self) -> None:
        """Wait until tmux has done what it had to do before."""
        await self.tmux(("display-message", "-p", ""))

    async def drain(self) -> None:
        """Wait until what tmux has read of the pane has come to its log."""
        await self.ensure_log_writer()
        deadline = anyio.current_time() + _IN_FLIGHT_S
        while self._log_writer and processes.has_input(self._log_writer) and anyio.current_time() < deadline:
            await anyio.sleep(0.001)

    async def tmux(self, *commands: Command) -> list[tuple[bytes, ...]]:
        """Run commands on the pane; a pane that is gone is told as such, and not by tmux's words for it."""
        try:
            return await self.client.run(*commands)
        except TmuxGoneError:
            raise self._gone() from None
        except CommandError:
            try:
                await self.client.run(("list-panes", "-t", self.target))
            except (CommandError, TmuxGoneError):
                raise self._gone() from None
            raise

    def _gone(self) -> PaneLostError:
        """Take the pane for ended, which its processes may not be yet, since tmux has it no more."""
        mark = self.log.find_mark()
        self._ended = self._ended or (self._ended_with(mark.exit_code, mark) if mark else self._lost())
        return PaneLostError(self.id)

    async def end(self, first: Iterable[int]) -> State:
        """End all processes that belong to the pane, then the pane, and return how its program ended.

        Args:
            first: The signals to begin with. What is left 500 ms later is killed.
        """
        with anyio.CancelScope(shield=True):
            await self._end_processes(tuple(first), _KILL_GRACE_S)
            self._ended = state = await self._last_state()
            rest = [self.leader.pid, *processes.children(self.leader.pid)] if self._living_leader() else []
            processes.send_signals(rest, signal.SIGKILL)
            if state.is_running:  # pane.sh could not tell how the command ended
                self._ended = state = await self.state()
            with contextlib.suppress(CommandError, TmuxGoneError):  # when it was gone already
                await self.client.run(("kill-pane", "-t", self.target))
            await _wait_for_end(rest, _KILL_S)
            await self._end_processes((signal.SIGKILL,), 0.0)
        self._is_killed = True
        self._close_log()
        return state

    async def _last_state(self) -> State:
        """Return how the command ended, once pane.sh has noticed."""
        begin = anyio.current_time()
        with self.events.subscribe(self.log) as subscription:
            while (state := await self.state()).is_running and anyio.current_time() < begin + _MARK_S:
                await subscription.wait(_LOOK_AGAIN_S)
        return state

    async def _end_processes(self, first: tuple[int, ...], grace_s: float) -> None:
        """End what belongs to the pane but pane.sh, which is to tell how the command ended."""
        begin = anyio.current_time()
        signalled: set[int] = set()
        if self._living_leader():
            processes.send_signals([self.leader.pid], signal.SIGCONT)
        while (living := self._belongings()) and anyio.current_time() < begin + _KILL_S:
            left_s = begin + grace_s - anyio.current_time()
            if left_s > 0:
                processes.send_signals([pid for pid in living if pid not in signalled], *first, signal.SIGCONT)
                signalled.update(living)
            else:
                processes.send_signals(living, signal.SIGKILL)
            await _wait_for_end(living, left_s if left_s > 0 else 0.05)

    def _belongings(self) -> list[int]:
        """Return the pane's processes but pane.sh: descendants, and orphans of its session or environment."""
        shell = self._living_leader()
        # After the command pane.sh only sleeps, so that tmux reads all output.
        found = [] if shell is None or shell.reaped else processes.descendants(shell.pid)
        # Orphans come last: what leaves the tree while this looks is one of them then.
        orphans = processes.living_children(
            self.client.supervisor_pid,
            lambda stat: stat.session == self.leader.pid or processes.tag(stat.pid) == self.place.tag,
        )
        return [*found, *orphans, *(pid for orphan in orphans for pid in processes.descendants(orphan))]


def writes_log(target: str, log: Log) -> Command:
    """Return the command that has what a pane prints written to a log."""
    return ("pipe-pane", "-t", target, f"exec cat >>{log.writable}")


async def _wait_for_end(pids: Iterable[int], timeout_s: float) -> None:
    """Wait until the processes have ended or the time is over."""
    with anyio.move_on_after(timeout_s):
        for pid in pids:
            fd = processes.open_pidfd(pid)
            if fd >= 0:
                try:
                    await anyio.wait_readable(fd)
                finally:
                    os.close(fd)
