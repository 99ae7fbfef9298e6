"""A pane: a program in a terminal of our own tmux server.

tmux and the kernel are asked what a pane is doing; kept here is what they cannot tell: our id, the given name
and command, and how the program ended once that is known.

Only typing takes the pane's lock. Captures and ending take none.
"""

import contextlib
import math
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NewType

import anyio

from . import linux, terminals
from .client import Command, ControlClient
from .doing import Awaits, Facts, awaited
from .errors import CommandError, PaneExitedError, PaneLostError, TmuxGoneError, ToolError
from .jobs import Job
from .keyboard import Keyboard
from .logs import Growth, Log, Mark, News
from .looking import Terminal, has_input

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
class State:
    """What a pane is at one moment.

    Attributes:
        is_running: Whether its program runs.
        runtime_s: Seconds since its start, or to its end.
        cursor: The end of the program's output, as an offset into the pane's log in bytes.
        foreground: The name of the program that has the terminal, while it runs.
        pid: Its process: the leader of the foreground process group.
        awaits: What it awaits; None also where that is not known.
        exit_code: How it ended, when by itself: 0 to 255.
        signal: How it ended, when by a signal: `SIGSEGV`. 128+n is read as signal n, as in a shell.
        is_lost: The pane is gone from tmux, and how its program ended is not known.
        may_grow: It is not known either whether that is so, since another server had the pane, and still runs.
    """

    is_running: bool
    runtime_s: float
    cursor: int
    foreground: str | None = None
    pid: int | None = None
    awaits: Awaits | None = None
    exit_code: int | None = None
    signal: str | None = None
    is_lost: bool = False
    may_grow: bool = False

    @property
    def is_final(self) -> bool:
        """Whether nothing more will be printed."""
        return not self.is_running and not self.may_grow

    def __str__(self) -> str:
        """Say it behind a pane's id: `exited with code 3 after 2.1 s`."""
        if self.is_running:
            return f"running {self.runtime_s:.1f} s"
        if self.is_lost:
            return f"was lost after {self.runtime_s:.1f} s"
        ending = f"killed by {self.signal}" if self.signal else f"exited with code {self.exit_code}"
        return f"{ending} after {self.runtime_s:.1f} s"


@dataclass(eq=False, slots=True)
class Pane:
    """A pane that was made, whether or not its program still runs."""

    id: PaneId
    name: str
    command: str
    log: Log
    news: News
    client: ControlClient
    target: str  # tmux's id, such as %3
    window: str  # our id of the window that it was made in, such as @3
    process: linux.Stat  # pane.sh, the session leader
    marker: str  # linux.MARKER in the environment of all that it started
    gives_way: bool = False  # to another one, once its program has ended
    started_at: float = field(default_factory=time.monotonic)
    turns: anyio.Lock = field(default_factory=anyio.Lock)  # of those who use its shell one after the other
    ended: State | None = None
    keyboard: Keyboard = field(init=False)
    terminal: Terminal = field(init=False)
    jobs: int = 0  # that its shells were given
    job: Job | None = None  # the last of them
    commands: dict[str, str] = field(default_factory=dict)  # the last ones, by the names of their files
    open_job: Job | None = None  # one that was answered before its end, which nobody was told of
    outer_jobs: list[Job] = field(default_factory=list)  # which have started the shells that others were given to
    last_screen: tuple[int, Sequence[str]] = (-1, ())  # the cursor and the rows of the last one that was shown
    drawn_by: int | None = None  # the process group that draws on its whole screen, once that was seen
    watchers: int = 0  # who read the log as it grows
    is_killed: bool = False
    watching_end: anyio.Lock = field(default_factory=anyio.Lock)  # held by the one who waits for its process
    log_writer: int | None = None  # the process, once it was looked for
    has_gaps: bool = False  # some output had no room in the log

    def __post_init__(self) -> None:
        self.keyboard = Keyboard(self.client, self.target, self.process.pid, self.log, self.tmux)
        self.terminal = Terminal(self.process.pid, self.log, self.flush)

    async def state(self) -> State:
        """Return what the pane is now; when its program has ended, its output is complete."""
        if ending := await self.ending():
            return ending
        doing = self.terminal.glance()
        # One look will do where all has been quiet.
        is_new = time.time() < self.log.written_at + _PRINTED_S or self._typed_s() < _TYPED_S
        return self.running(doing.facts, doing.awaits if is_new else doing.awaits or awaited(doing.facts))

    def running(self, facts: Facts, awaits: Awaits | None) -> State:
        """Return the state of the running program, given a look at it."""
        return State(
            is_running=True,
            runtime_s=time.monotonic() - self.started_at,
            cursor=self.log.size,
            foreground=facts.foreground,
            pid=facts.pid,
            awaits=awaits,
        )

    def _typed_s(self) -> float:
        """Return for how many seconds nothing was typed."""
        return time.time() - self.keyboard.sent[-1].at if self.keyboard.sent else math.inf

    async def ending(self) -> State | None:
        """Return how the program ended, or None while it runs."""
        return self.ended or await self._ending_of(self._shell())

    async def _ending_of(self, shell: linux.Stat | None) -> State | None:
        if self.ended is None and (shell is None or shell.reaped):
            self.ended = await self._ending()
        return self.ended

    @asynccontextmanager
    async def growth(self) -> AsyncIterator[Growth]:
        """Watch the pane's log, and its end too if that leaves no mark in the log."""
        error = None
        self.watchers += 1
        try:
            with self.news.of(self.log) as growth:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._tell_of_end, growth)
                    try:
                        yield growth
                    except ToolError as reason:  # which is to come out as itself, not in a group
                        error = reason
                    tasks.cancel_scope.cancel()
        finally:
            self.watchers -= 1
            self._close_log()
        if error:
            raise error

    def _close_log(self) -> None:
        """Close the log of a pane that was killed, when nobody reads it any more."""
        if self.is_killed and not self.watchers:
            self.log.close()
            self.client.remove(f"{self.id}.mark")

    async def _tell_of_end(self, growth: Growth) -> None:
        async with self.watching_end:
            if self._shell():
                await _wait_for_end([self.process.pid], math.inf)
        growth.tell()

    def _shell(self) -> linux.Stat | None:
        """Return pane.sh's state, or None when it has ended."""
        stat = linux.read_stat(self.process.pid)
        is_ours = stat is not None and stat.state != "Z" and stat.starttime == self.process.starttime
        return stat if is_ours else None

    async def _ending(self) -> State | None:
        """Return how the program ended, as soon as its output is complete; None when it can't be told."""
        begin = anyio.current_time()
        with self.news.of(self.log) as growth:
            while True:
                if mark := self.log.find_mark():
                    return self._ended_with(mark.exit_code, mark)
                shell = self._shell()
                if shell is None and (ending := await self._ending_by_tmux()):
                    return ending
                if anyio.current_time() > begin + _MARK_S:
                    return None
                if shell and anyio.current_time() > begin + _MARK_S / 20:
                    terminals.restart_output(shell.pid)
                await growth.wait(_LOOK_AGAIN_S)

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
        linux.send_signals([self.client.server_pid], signal.SIGCHLD)
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

    async def check_log(self) -> bool:
        """See that the log of a running pane is written, which ends where there is no room; begin again if it is not.

        Returns:
            Whether it was not, so that some output is lost.
        """
        # tmux itself notices that only when it has more for it.
        if self.log_writer is None or not linux.is_alive(self.log_writer):
            children = linux.children(self.client.server_pid)
            self.log_writer = next((pid for pid in children if self.log.is_at(f"/proc/{pid}/fd/1")), None)
        if self.log_writer or not self.log.size or await self.ending():
            return False
        self.has_gaps = True
        with contextlib.suppress(PaneLostError):
            await self.tmux(writes_log(self.target, self.log))
        return True

    def take_job_end(self) -> str | None:
        """Say how a command ended that was answered before its end, if it has and that was not said."""
        job = self.open_job
        if job is None or not (job.is_done() or job.is_left() or self.ended):
            return None
        self.open_job = None
        job.remove()
        if job.exit_code is not None:
            return f"run ended with code {job.exit_code}"
        if not job.shell.is_running():
            return None if self.ended else "the shell that ran it has ended or was replaced"
        return "run was interrupted or given up by the shell"

    async def is_watched(self) -> bool:
        """Tell whether a person is attached."""
        [[line]] = await self.tmux(("display-message", "-p", "-t", self.target, "#{session_attached}"))
        return int(line) > 1

    async def flush(self) -> None:
        """Wait until tmux has done what it had to do before."""
        await self.tmux(("display-message", "-p", ""))

    async def drain(self) -> None:
        """Wait until what tmux has read of the pane has come to its log."""
        await self.check_log()
        deadline = anyio.current_time() + _IN_FLIGHT_S
        while self.log_writer and has_input(self.log_writer) and anyio.current_time() < deadline:
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
        self.ended = self.ended or (self._ended_with(mark.exit_code, mark) if mark else self._lost())
        return PaneLostError(self.id)

    async def end(self, first: Iterable[int]) -> State:
        """End all processes that belong to the pane, then the pane, and return how its program ended.

        Args:
            first: The signals to begin with. What is left 500 ms later is killed.
        """
        with anyio.CancelScope(shield=True):
            await self._end_processes(tuple(first), _KILL_GRACE_S)
            self.ended = state = await self._last_state()
            rest = [self.process.pid, *linux.children(self.process.pid)] if self._shell() else []
            linux.send_signals(rest, signal.SIGKILL)
            if state.is_running:  # pane.sh could not tell how the command ended
                self.ended = state = await self.state()
            with contextlib.suppress(CommandError, TmuxGoneError):  # when it was gone already
                await self.client.run(("kill-pane", "-t", self.target))
            await _wait_for_end(rest, _KILL_S)
            await self._end_processes((signal.SIGKILL,), 0.0)
        self.is_killed = True
        self._close_log()
        return state

    async def _last_state(self) -> State:
        """Return how the command ended, once pane.sh has noticed."""
        begin = anyio.current_time()
        with self.news.of(self.log) as growth:
            while (state := await self.state()).is_running and anyio.current_time() < begin + _MARK_S:
                await growth.wait(_LOOK_AGAIN_S)
        return state

    async def _end_processes(self, first: tuple[int, ...], grace_s: float) -> None:
        """End what belongs to the pane but pane.sh, which is to tell how the command ended."""
        begin = anyio.current_time()
        signalled: set[int] = set()
        if self._shell():
            linux.send_signals([self.process.pid], signal.SIGCONT)
        while (living := self._belongings()) and anyio.current_time() < begin + _KILL_S:
            left_s = begin + grace_s - anyio.current_time()
            if left_s > 0:
                linux.send_signals([pid for pid in living if pid not in signalled], *first, signal.SIGCONT)
                signalled.update(living)
            else:
                linux.send_signals(living, signal.SIGKILL)
            await _wait_for_end(living, left_s if left_s > 0 else 0.05)

    def _belongings(self) -> list[int]:
        """Return the pane's processes but pane.sh: descendants, and orphans of its session or environment."""
        shell = self._shell()
        # After the command pane.sh only sleeps, so that tmux reads all output.
        found = [] if shell is None or shell.reaped else linux.descendants(shell.pid)
        # Orphans come last: what leaves the tree while this looks is one of them then.
        orphans = linux.living_children(
            self.client.warden_pid,
            lambda stat: stat.session == self.process.pid or linux.marker(stat.pid) == self.marker,
        )
        return [*found, *orphans, *(pid for orphan in orphans for pid in linux.descendants(orphan))]


def writes_log(target: str, log: Log) -> Command:
    """Return the command that has what a pane prints written to a log."""
    return ("pipe-pane", "-t", target, f"exec cat >>{log.writable}")


def ended_state(exit_code: int | None, runtime_s: float, cursor: int) -> State:
    """Return the state of a pane whose program ended with an exit code as a shell has it, or of one that is lost."""
    if exit_code is None:
        return State(is_running=False, runtime_s=runtime_s, cursor=cursor, is_lost=True)
    name = _signal_name(exit_code - 128)
    code = None if name else exit_code
    return State(is_running=False, runtime_s=runtime_s, cursor=cursor, exit_code=code, signal=name)


async def _wait_for_end(pids: Iterable[int], timeout_s: float) -> None:
    """Wait until the processes have ended or the time is over."""
    with anyio.move_on_after(timeout_s):
        for pid in pids:
            fd = linux.open_pidfd(pid)
            if fd >= 0:
                try:
                    await anyio.wait_readable(fd)
                finally:
                    os.close(fd)


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}" if number in signal.valid_signals() else None
