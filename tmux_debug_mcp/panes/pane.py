"""A pane: its place in tmux, its log, its terminal, its keyboard, and the jobs of its shell.

We ask tmux and the kernel what a pane is doing, and keep only how the program ended. No call waits
here for another call.
"""

import contextlib
import math
import signal
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import NamedTuple

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import (
    CommandError,
    PaneExitedError,
    PaneLostError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.linux.sockets import End
from tmux_debug_mcp.linux.waits import OutsideReaders
from tmux_debug_mcp.logs.events import LogEvents, Subscription
from tmux_debug_mcp.logs.log import Log, Mark
from tmux_debug_mcp.logs.positioning import transcript_from
from tmux_debug_mcp.tmux.client import Command
from tmux_debug_mcp.vt.printable import plain_name

from .creation import NewPane
from .keyboard import Keyboard
from .looking.activity import Activity, Awaits, prompting_shell
from .looking.pane_terminal import Terminal
from .looking.state import State, ended_state
from .place import PaneId, Place, wait_for_exit
from .ports import Ports
from .shells.dialects import Shell
from .shells.jobs import Job, Jobs, RunEnding

# A state names this many processes that a program has left running.
_MAX_LEFT = 3
_ENDING_FACTS = "#{pane_id} #{pane_dead} #{pane_dead_status} x#{pane_dead_signal}"


class ScreenAt(NamedTuple):
    """The rows of a screen, and the cursor at which it was captured."""

    cursor: int
    rows: Sequence[str]


class Pane:
    """A pane, whether or not its program still runs.

    Once it is killed and has no subscriber, it closes its log.

    Attributes:
        id: Our id of the pane, `debug-N`.
        started_at: When the pane was made, by the clock.
        name: The name that the call gave, or else the id.
        made_by: What it was made from.
        client: The connection to its tmux server.
        target: tmux's id of the pane.
        window: Our id of the window that the pane was made in, `@N`.
        leader: pane.sh, the session leader of its terminal.
        jobs: The jobs that the shell in the pane was given.
        ports: The ports on which the pane's processes listen.
        last_screen: The screen that a report captured last; None if none did.
        subscribers: How many read its log, or wait for it to grow.
        viewers: The tmux sessions that show it to people.
        has_gaps: Some output is missing from the log, since there was no room for it.
        losses: How often the log's writer had ended when it was started again.
        is_log_late: At the last drain, the log did not contain everything printed so far.
    """

    def __init__(
        self,
        pane_id: PaneId,
        new: NewPane,
        place: Place,
        log: Log,
        events: LogEvents,
        ports: Ports,
        clock: Clock,
        outside: OutsideReaders,
        *,
        only_people_type_secrets: bool = False,
    ) -> None:
        self.id = pane_id
        self.started_at = clock.now()
        self.name = new.name or pane_id
        self.command = new.command
        self.made_by = new
        self.place = place
        self.client = place.client
        self.target = place.target
        _, self.window, _ = place.ids
        self.leader = place.leader
        self.log = log
        self.events = events
        self.clock = clock
        self.terminal = Terminal(place.leader, log, clock, self.flush, place.members, outside)
        self.ports = ports
        self.keyboard = Keyboard(
            pane_id,
            place,
            log,
            self.terminal,
            clock,
            self.tmux,
            only_people_type_secrets=only_people_type_secrets,
        )
        self.jobs = Jobs()
        self.last_screen: ScreenAt | None = None
        self.subscribers = 0
        self.viewers: set[str] = set()
        self.has_gaps = False
        self.losses = 0
        self.is_log_late = False
        # How the program ended, once that is known.
        self._ended: State | None = None
        self._mark: Mark | None = None
        self._is_empty = False  # nothing of it lives
        self._is_killed = False
        # Held by the one subscriber that waits for the end of pane.sh.
        self._end_watch = anyio.Lock()
        # The log contains everything printed before the wait for the terminal with this number.
        self._drained_wait = 0
        # The process that writes the log, once we have looked for it.
        self._log_writer: int | None = None

    async def state(self, listening: Sequence[End] | None = None) -> State:
        """Return the current state. If the program has ended, its output is complete.

        `listening` is all sockets that listen, for callers that ask for the states of many panes.
        """
        is_still_late = self.is_log_late and not self._is_log_written()
        if not is_still_late and self._closed_job():
            with contextlib.suppress(PaneLostError):  # the program is now known to have ended
                await self.drain()
        activity = None if self._ended else self.terminal.unchanged()
        if activity is None:
            ending = await self.ending()
            if ending:
                return self._with_left(ending, listening)
            activity = self.terminal.look()
        return self.running(activity, self.terminal.seems_to_await(activity), listening)

    def running(
        self,
        activity: Activity,
        awaits: Awaits | None = None,
        listening: Sequence[End] | None = None,
    ) -> State:
        """Return the state of the running program, given what it is doing.

        `awaits` is what it seems to await, if two looks have not confirmed that.
        """
        snapshot = activity.snapshot
        awaits = awaits or activity.awaits
        blocked = None if awaits else self.terminal.blocked_on(activity)
        return State(
            is_running=True,
            runtime_s=self.clock.now() - self.started_at,
            cursor=self.log.size,
            foreground=snapshot.foreground,
            pid=snapshot.pid,
            awaits=awaits,
            blocked_on=blocked.text if blocked else None,
            waits=str(blocked) if blocked else None,
            listens=self._listens(listening),
        )

    async def ending(self) -> State | None:
        """Return how the program ended, with its output complete; None while it runs."""
        if self._ended is None and self.has_exited:
            ended = await self._wait_for_ending()
            self._ended = self._ended or ended  # a kill may have ended it meanwhile
        if self._ended and self._mark:
            cursor = self._mark.output_end(self.log.size)
            if cursor != self._ended.cursor:
                self._ended = replace(self._ended, cursor=cursor)
        return self._ended

    def left(self) -> list[processes.Stat]:
        """Return the processes that the program, which has ended, has left running.

        Processes that another of them has started are left out.
        """
        if self._is_empty:
            return []
        pids = self.place.members()
        # From an empty pane nothing can come.
        self._is_empty = not pids and self.place.living_leader() is None
        stats = [stat for stat in map(processes.read_stat, pids) if stat]
        return [stat for stat in stats if stat.ppid not in pids]

    def _with_left(self, ending: State, listening: Sequence[End] | None) -> State:
        """Return how the program ended, with what it has left running."""
        left = self.left()
        if not left:
            return ending
        return replace(
            ending,
            left=tuple(f"{plain_name(stat.comm)} (pid {stat.pid})" for stat in left[:_MAX_LEFT]),
            listens=self._listens(listening),
        )

    def _listens(self, listening: Sequence[End] | None) -> tuple[str, ...]:
        return tuple(dict.fromkeys(end.address for end in self.ports.ends(listening)))

    @property
    def has_exited(self) -> bool:
        """Whether the program has ended. Its last output may not be in the log yet."""
        leader = None if self._ended else self.place.living_leader()
        return leader is None or leader.has_ended_command

    async def _wait_for_ending(self) -> State | None:
        """Return how the program ended, None if that stays unknown for `Times.mark_s`.

        pane.sh writes a mark with the exit code after the program's output. If something killed
        pane.sh first, we ask tmux how pane.sh ended.
        """
        times = self.clock.times
        begin = self.clock.now()
        with self.events.subscribe(self.log) as subscription:
            while True:
                mark = await self.log.find_mark()
                if mark:
                    return self._ended_with(mark)
                leader = self.place.living_leader()
                if leader is None:
                    state = await self._ask_for_ending()
                    if state:
                        return state
                waited_s = self.clock.now() - begin
                if waited_s > times.mark_s:
                    return None
                if leader and waited_s > times.stopped_output_s:
                    terminals.restart_output(leader.pid)
                await subscription.wait(times.poll_s)

    async def _ask_for_ending(self) -> State | None:
        """Return how pane.sh ended without writing its mark, None if tmux has not noticed yet."""
        ask = ("display-message", "-p", "-t", self.target, _ENDING_FACTS)
        try:
            [[line]] = await self.client.run(ask)
        except (CommandError, TmuxGoneError):
            return await self._lost()
        pane_id, _, status, signal_word = line.decode().split(" ")
        if pane_id != self.target:
            return await self._lost()
        # pane.sh may have written its mark all the same, and the log is late.
        try:
            if not await self.drain():
                return None
        except PaneLostError:
            return self._ended
        mark = await self.log.find_mark()
        if mark:
            return self._ended_with(mark)
        if status:
            self.has_gaps = True  # pane.sh has ended by itself, but its mark is missing
            return self._ended_now(int(status))
        number = signal_word.removeprefix("x")
        if number:
            return self._ended_now(processes.signal_exit_code(int(number)))
        # tmux 3.3 may miss the SIGCHLD of a child. Another signal makes it look.
        processes.send_signals([self.client.server_pid], signal.SIGCHLD)
        return None

    def _ended_with(self, mark: Mark) -> State:
        self._mark = mark
        # The log grew last when the mark was printed.
        runtime_s = self.log.grew_at() - self.started_at
        cursor = mark.output_end(self.log.size)
        return ended_state(mark.exit_code, max(0.0, runtime_s), cursor)

    def _ended_now(self, exit_code: int) -> State:
        return ended_state(exit_code, self.clock.now() - self.started_at, self.log.size)

    async def _lost(self) -> State:
        """Note that the pane is gone from tmux; return how the program ended, as far as known."""
        if self._ended is None:
            mark = await self.log.find_mark()
            runtime_s, size = self.clock.now() - self.started_at, self.log.size
            lost = State(is_running=False, runtime_s=runtime_s, cursor=size, is_lost=True)
            ended = self._ended_with(mark) if mark else lost
            self._ended = self._ended or ended  # another call may have noted it meanwhile
        return self._ended

    async def check_running(self) -> None:
        """Raise PaneExitedError or PaneLostError unless the program still runs."""
        ending = await self.ending()
        if ending is None:
            return
        if ending.is_lost:
            raise PaneLostError(self.id)
        raise PaneExitedError(self.id, str(ending))

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        """Subscribe to the pane's log, and to the end of pane.sh, during the block."""
        error: ToolError | None = None
        with self.keeping_log(), self.events.subscribe(self.log) as subscription:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._notify_of_end, subscription)
                try:
                    yield subscription
                except ToolError as raised:
                    # Raised below, since the task group would wrap it in a group.
                    error = raised
                tasks.cancel_scope.cancel()
        if error:
            raise error

    @contextmanager
    def keeping_log(self) -> Iterator[None]:
        """Keep the log open during the block, even if the pane is killed."""
        self.subscribers += 1
        try:
            yield
        finally:
            self.subscribers -= 1
            self._close_log_if_unused()

    async def _notify_of_end(self, subscription: Subscription) -> None:
        async with self._end_watch:
            if self.place.living_leader():
                await wait_for_exit(self.clock, [self.leader.pid], math.inf)
        subscription.notify()

    def is_alone(self, shell: Shell) -> bool:
        """Return whether nothing but a shell, and what waits for it, runs in the pane."""
        waiting = {self.leader.pid}
        pid = shell.pid
        while pid > 1 and pid not in waiting:
            waiting.add(pid)
            stat = processes.read_stat(pid)
            pid = stat.ppid if stat else 0
        return waiting.issuperset(processes.descendants(self.leader.pid))

    def _close_log_if_unused(self) -> None:
        if self._is_killed and not self.subscribers:
            self.log.close()
            self.client.remove(f"{self.id}.mark")

    async def is_drawn_on(self) -> bool:
        """Return whether a program draws on the screen."""
        return (await transcript_from(self.log, self.log.size)).is_drawn_on

    async def ensure_log_writer(self) -> bool:
        """Start the log's writer again if it has ended, as it does when there is no room.

        Return whether it had ended, so that output is lost. False if pane.sh has ended.
        """
        # tmux itself notices the end of the writer only at the next output.
        if self._log_writer and not processes.is_alive(self._log_writer):
            self._log_writer = None
        if not self._has_lost_log_writer() or self._ended or not self.place.living_leader():
            return False
        self.has_gaps = True
        self.losses += 1
        with contextlib.suppress(PaneLostError):
            await self.tmux(self.place.writes_log)
        return True

    def _has_lost_log_writer(self) -> bool:
        """Look for the log's writer if it isn't known, and return whether it has ended."""
        # Read first, since a new writer may open the log and write to it while we look for it.
        has_output = self.log.size > 0
        if self._log_writer is None:
            self._log_writer = self._find_log_writer()
        return self._log_writer is None and has_output

    def _find_log_writer(self) -> int | None:
        before: list[int] | None = None
        while True:
            children = processes.children(self.client.server_pid)
            # tmux has two for each pane, and we mostly look for the writer of a new pane.
            for pid in reversed(children):
                if self.log.is_at(f"/proc/{pid}/fd/1"):
                    return pid
            # The kernel may leave some out while others end. Source: proc(5), `children`.
            if children == before:
                return None
            before = children

    async def drain(self) -> bool:
        """Wait until the log contains everything printed so far, but for 1 s at most.

        Return whether it does. If not, nothing follows from what it does not contain.
        """
        closed_job, wait = self._closed_job(), self.terminal.wait_number
        await self.flush()  # tmux has read it from the terminal
        await self.flush()  # and passed it on to the writer
        await self.ensure_log_writer()
        deadline = self.clock.now() + self.clock.times.drain_s
        size = -1
        # A writer that sleeps may be about to get more from tmux: then the log grows.
        while not self._is_log_written() or self.log.size != size:
            if self.clock.now() >= deadline:
                self.is_log_late = True
                return False
            if self._is_log_written():
                size = self.log.size
                await self.flush()
                continue
            if self._log_writer is not None:  # it may be stopped
                processes.send_signals([self._log_writer], signal.SIGCONT)
            await self.clock.sleep(self.clock.times.fast_poll_s)
        await self.ensure_log_writer()  # it may have ended instead of writing
        self._drained_wait = wait
        self.is_log_late = False
        if closed_job:
            closed_job.conclude()
        return True

    async def drain_prompt(self) -> None:
        """Drain, unless we have drained since the shell was first seen to wait at its prompt."""
        if self._drained_wait != self.terminal.wait_number:
            await self.drain()

    def _is_log_written(self) -> bool:
        if self._has_lost_log_writer():
            return True
        # A new writer may not have opened the log yet, but pane.sh would have waited for it.
        if self._log_writer is None and self.place.living_leader() is None:
            return True
        return self._log_writer is not None and not processes.is_busy(self._log_writer)

    async def flush(self) -> None:
        """Wait until tmux has done everything pending, such as reading output."""
        await self.tmux(("display-message", "-p", ""))

    async def is_attended(self) -> bool:
        """Return whether a person is attached to our tmux server."""
        # Our own client is in control mode.
        [clients] = await self.tmux(("list-clients", "-F", "#{client_control_mode}"))
        return b"0" in clients

    async def tmux(self, *commands: Command) -> list[tuple[bytes, ...]]:
        """Run tmux commands on the pane and return the lines that each one printed.

        Raises:
            PaneLostError: The pane is gone. Its program then counts as ended.
            CommandError: tmux refuses a command for another reason.
        """
        try:
            return await self.client.run(*commands)
        except TmuxGoneError:
            pass
        except CommandError:
            try:
                await self.client.run(("list-panes", "-t", self.target))
            except (CommandError, TmuxGoneError):
                pass
            else:
                raise
        await self._lost()
        raise PaneLostError(self.id)

    async def end(self, signals: Iterable[int]) -> State:
        """End all processes that belong to the pane, then the pane itself.

        Each process gets the signals first, and SIGKILL 500 ms later. Return how the program
        ended.
        """
        clock, times = self.clock, self.clock.times
        with anyio.CancelScope(shield=True):
            await self.place.end_processes(clock, tuple(signals), times.kill_grace_s)
            # Give pane.sh a while to report how the command ended.
            deadline = clock.now() + times.mark_s
            with self.events.subscribe(self.log) as subscription:
                ending = await self.ending()
                while ending is None and clock.now() < deadline:
                    await subscription.wait(times.poll_s)
                    ending = await self.ending()
            killed: list[int] = []
            if self.place.living_leader():
                killed = [self.leader.pid, *processes.children(self.leader.pid)]
                processes.send_signals(killed, signal.SIGKILL)
            if ending is None:
                # pane.sh could not report how the command ended. tmux reports how pane.sh did.
                await wait_for_exit(clock, killed, times.kill_s)
                # If tmux has not noticed, it can only be our SIGKILL, or a loss before that.
                ending = await self.ending()
                if ending is None and killed:
                    ending = self._ended_now(processes.signal_exit_code(signal.SIGKILL))
                ending = self._ended = ending or await self._lost()
            # In a split window, a viewer's keyboard would go to the next pane.
            for name in self.viewers:
                self.client.begin(("kill-session", "-t", f"={name}"))
            # Not awaited: for this, tmux runs a program that removes a record from utmp, which
            # takes a millisecond.
            self.client.begin(("kill-pane", "-t", self.target))
            await wait_for_exit(clock, killed, times.kill_s)
            # Orphans of pane.sh, and what other processes have just started.
            are_gone = await self.place.end_processes(clock, (signal.SIGKILL,), 0.0)
            state = ending if are_gone else self._with_left(ending, None)
        self._is_killed = True
        self._close_log_if_unused()
        return state

    def remarks(self) -> list[str]:
        """Return the remarks that every status line about this pane makes.

        Its output is stopped, a person has the keyboard, or output is late or lost.
        """
        remarks = []
        # In a flood, the terminal may be full for a moment.
        is_quiet = self.clock.now() >= self.log.grew_at() + self.clock.times.quiet_s
        if is_quiet and self._ended is None and terminals.is_output_stopped(self.leader.pid):
            remarks.append("C-s has stopped its output: C-q resumes it")
        if self.keyboard.holder:
            remarks.append(f"{self.keyboard.holder} has the keyboard")
        if self.is_log_late and not self._is_log_written():
            remarks.append("output is late: its log is not being written")
        if self.has_gaps:
            remarks.append("some output was lost: there was no room for it")
        return remarks

    def _closed_job(self) -> Job | None:
        """Return the job whose call returned before its end, if its shell is done with it by now.

        Its end mark, if any, is in the log after a drain.
        """
        job = self.jobs.unreported
        if job is None or job.is_concluded:
            return None
        has_begun = job.has_begun()  # before it is seen to be closed, else it may just begin
        if not job.is_closed():
            return None
        if has_begun:
            # A command may have closed the script, too, but then its shell is not at its prompt.
            is_back = (
                not job.shell.is_running()
                or prompting_shell(self.terminal.look().snapshot) == job.shell
            )
            return job if is_back else None
        # A shell that is slow to open the script seems to have closed it.
        if job.runtime_s > self.clock.times.take_s and job.cancel():
            job.conclude()
        return None

    def leave_run(self, job: Job) -> None:
        """Note that the call of a run returns before its end, which later results tell."""
        self.run_ending()  # of an earlier run, before this run takes its place
        self.jobs.unreported = job

    def run_ending(self) -> RunEnding | None:
        """Return how the last run ended whose call returned before its end; None if none has."""
        job = self.jobs.unreported
        if job is not None and (job.is_concluded or job.is_done() or self._ended):
            job.conclude()
            self.jobs.unreported = None
            job.remove()
            outcome = self._outcome(job)
            if outcome:
                self.jobs.ending = RunEnding(outcome, self.clock.now())
        return self.jobs.ending

    def _outcome(self, job: Job) -> str | None:
        """Return how a job ended, None if the pane's state says it."""
        if job.exit_code is not None:
            return f"run ended with code {job.exit_code}"
        if job.end is not None:
            return "the run's outcome is unknown: another program has printed its end, too"
        if self.has_gaps:  # its end mark may be what was lost
            return "the run's outcome is unknown: some output was lost"
        if job.shell.is_running():
            return "run was interrupted or given up by the shell"
        if self._ended:
            return None
        return "the run's outcome is unknown: its shell ended or was replaced"
