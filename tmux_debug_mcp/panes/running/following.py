"""Following a command to its end, and interrupting it when its time is over.

A follower asks at each moment: has the command ended, has it started a shell, does it await
something, is its time over?

A job is followed until the shell is done with it, as the kernel tells. Then its end mark, if the
shell has printed one, has the exit code. Marks are read from the log, which may be late: the disk
is slow, or tmux is stopped. So the log is drained first.
"""

from tmux_debug_mcp.errors import JobNotTakenError, KeyboardHeldError, LogLostError, PaneLostError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import may_be_answered
from tmux_debug_mcp.panes.looking.activity import Activity, Awaits
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.panes.shells.jobs import Job
from tmux_debug_mcp.panes.watching import Watch

from .giving import (
    MAX_INTERRUPTS,
    MAX_PROMPT_BYTES,
    has_started_shell,
    interrupt,
    last_exit_code,
)

# The exit code that shells report for a command that SIGINT ended.
_INTERRUPTED = 130

# What a reason becomes if we have interrupted the command before.
_WHEN_INTERRUPTED = {
    Reason.DONE: Reason.TIMED_OUT,
    Reason.GIVEN_UP: Reason.TIMED_OUT,
    Reason.SHELL_STARTED: Reason.SHELL_INTERRUPTED,
}


class Follower:
    """What following a job and following the command of a pane have in common.

    The deadline is by the pane's clock.
    """

    def __init__(self, watch: Watch, deadline: float) -> None:
        self._watch = watch
        self._pane = watch.pane
        self._clock = watch.pane.clock
        self._times = watch.pane.clock.times
        self._deadline = deadline
        self._interrupts = 0
        # What the pane was doing right before the first interrupt.
        self._interrupted: State | None = None

    def _unless_interrupted(self, reason: Reason) -> Reason:
        if self._interrupts:
            return _WHEN_INTERRUPTED[reason]
        return reason

    async def _awaits_something(self) -> bool:
        """Return whether the command awaits something. Look at the pane, unless it is too early.

        An interrupted command gets its whole grace period, so the answer is no from then on.
        """
        if self._interrupts:
            return False
        activity = await self._watch.look()
        return activity is not None and self._is_awaiting(activity)

    def _is_awaiting(self, activity: Activity) -> bool:
        """Return whether the command awaits input, or has awaited keys for a while."""
        if not activity.is_awaiting:
            return False
        return activity.awaits is not Awaits.KEYS or activity.quiet_s >= self._times.quiet_s

    @property
    def _is_due(self) -> bool:
        """Whether the command's time is over, or the grace period after an interrupt."""
        return self._clock.now() >= self._deadline

    async def _interrupt(self) -> Reason | None:
        """Interrupt the command, whose time is over; return why not if that is of no use.

        A person who has the keyboard decides alone what is interrupted.
        """
        pane = self._pane
        if self._interrupts == MAX_INTERRUPTS:
            return Reason.RUNNING
        if self._interrupted is None:
            self._interrupted = await pane.state()
        try:
            grace_s = await interrupt(pane, is_second=self._interrupts > 0)
        except KeyboardHeldError:
            return Reason.HELD
        self._deadline = self._clock.now() + grace_s
        self._interrupts += 1
        return None

    async def _wait(self, most_s: float) -> None:
        """Wait until there may be news, or something is due, for a time at most."""
        now = self._clock.now()
        until = min(self._deadline, now + most_s)
        await self._watch.wait(max(until, now + self._times.min_look_s))

    async def _state(self, reason: Reason) -> State:
        pane, activity = self._pane, self._watch.activity
        if reason is Reason.INPUT and activity and not await pane.ending():
            return pane.running(activity)
        return await pane.state()


class PaneFollower(Follower):
    """Follows the command that a pane was made for. It isn't typed, so there is no `before`."""

    async def report(self) -> Report:
        """Follow the command until the run is over, and return the report of the run."""
        pane = self._pane
        reason = await self._follow()
        state = await self._state(reason)
        end = state.cursor
        if reason.leaves_shell:
            end = _before_prompt(pane.log, 0, end)
        elif state.is_lost:
            reason = Reason.EXITED
        return Report(
            reason,
            pane,
            state,
            0,
            end,
            exit_code=_exit_code_of(state),
            runtime_s=state.runtime_s,
            interrupted=self._interrupted,
        )

    async def _follow(self) -> Reason:
        pane = self._pane
        while not await pane.ending():
            if await has_started_shell(pane, None):
                return self._unless_interrupted(Reason.SHELL_STARTED)
            if await self._awaits_something():
                await pane.drain()
                return Reason.INPUT
            if self._is_due and pane.has_exited:
                await pane.drain()
                if not await pane.ending():
                    return Reason.LATE
            elif self._is_due:
                reason = await self._interrupt()
                if reason:
                    return reason
            await self._wait(self._times.job_poll_s)
        return self._unless_interrupted(Reason.DONE)


class JobFollower(Follower):
    """Follows a job, which its shell was just given."""

    def __init__(self, watch: Watch, job: Job, deadline: float) -> None:
        super().__init__(watch, deadline)
        self._job = job

    async def report(self) -> Report:
        """Follow the job until the run is over, and return the report of the run.

        Raises:
            JobNotTakenError: The shell did not take the job.
            LogLostError: The shell took it, but its output could not be written to the log.
        """
        pane, job = self._pane, self._job
        try:
            reason = await self._follow()
        except PaneLostError:
            reason = Reason.EXITED
        state = await self._state(reason)
        start, end = self._output_range(reason, state)
        exit_code = job.exit_code
        is_unknown = exit_code is None and reason in (Reason.DONE, Reason.GIVEN_UP)
        if is_unknown and job.shell.is_running() and not pane.keyboard.holder:
            exit_code = await last_exit_code(pane, job.shell)
            if reason is Reason.GIVEN_UP and exit_code == _INTERRUPTED:
                reason = Reason.INTERRUPTED
        elif reason is Reason.EXITED:
            exit_code = _exit_code_of(state)
        elif reason is Reason.TIMED_OUT and exit_code is None:
            exit_code = _INTERRUPTED
        if not reason.leaves_command:
            job.remove()
        # The terminal answers queries as if somebody typed. Answers that no program has read end up
        # on the shell's command line.
        if await may_be_answered(pane.log, start, end):
            pane.keyboard.use_line()
        if reason.leaves_command and not reason.leaves_shell:
            pane.leave_run(job)
        return Report(
            reason,
            pane,
            state,
            start,
            end,
            exit_code=exit_code,
            runtime_s=job.runtime_s,
            interrupted=self._interrupted,
        )

    async def _follow(self) -> Reason:
        job, pane = self._job, self._pane
        poll_at = 0.0
        while True:
            if await pane.ending():
                job.settle()
                return self._unless_interrupted(Reason.DONE) if job.is_done() else Reason.EXITED
            # The kernel is asked when there is a mark, and for what leaves no trace in the log.
            if job.has_end_mark() or self._clock.now() >= poll_at:
                poll_at = self._clock.now() + self._times.job_poll_s
                reason = await self._reason_of_end()
                if reason:
                    return reason
                if await has_started_shell(pane, job):
                    return self._unless_interrupted(Reason.SHELL_STARTED)
            if job.has_begun() and await self._awaits_something() and not job.is_done():
                await pane.drain()
                return Reason.INPUT
            # A shell that has not read the line yet would take C-c as a key of that line.
            is_typing = not job.has_begun() and job.runtime_s <= self._times.begin_s
            if self._is_due and not is_typing and not await self._is_over():
                reason = await self._interrupt()
                if reason:
                    return reason
            await self._wait(self._times.poll_s if job.has_end_mark() else self._times.job_poll_s)

    async def _is_over(self) -> bool:
        """Return whether the shell is done with the job, so that there is nothing to interrupt.

        A command that closes all files closes the script, too, but has no prompt.
        """
        if not self._job.has_begun() or not self._job.is_closed():
            return False
        return await self._pane.terminal.prompt(self._times.prompt_soon_s) is not None

    async def _reason_of_end(self) -> Reason | None:
        """Return why the run is over once the shell is done with the job; None before.

        By then, the shell has printed all that it ever prints for the job, but that may come late
        in the log.
        """
        job, pane = self._job, self._pane
        # In this order: a shell that has begun has the script open until it is done.
        has_begun = job.has_begun()
        if not job.is_closed():
            return None
        if not has_begun:
            await self._take_back()
            return None
        if not job.has_end_mark():
            await self._check_log()
        if not await pane.drain():
            return Reason.LATE if self._is_due else None
        if job.is_done():
            job.settle()
            return self._unless_interrupted(Reason.DONE)
        shell = job.shell
        if not shell.is_running():
            job.settle()
            # Its process may still be there, running another program, which may end at once.
            until = self._clock.now() + self._times.quiet_s
            while self._clock.now() < until:
                if await pane.ending():
                    return Reason.EXITED
                await self._watch.wait(until)
            if not any(map(processes.is_alive, processes.children(pane.leader.pid))):
                return Reason.LATE if self._is_due else None  # pane.sh is about to tell its end
            has_ended = processes.read_living(shell.pid, shell.start[0]) is None
            return Reason.SHELL_ENDED if has_ended else Reason.REPLACED
        # Without a line editor, as in dash, a shell does not reset the modes that a program left.
        # C-c then drops what it has read in those modes.
        is_without_editor = not shell.dialect.has_editor and not pane.keyboard.holder
        if is_without_editor and terminals.restore(pane.leader.pid):
            await interrupt(pane, is_second=False)
        # A command may have closed the script, as one does that closes all files: then it has ended
        # only now.
        if not await pane.terminal.prompt(self._times.prompt_soon_s) or not await pane.drain():
            return None
        job.settle()
        return self._unless_interrupted(Reason.DONE if job.is_done() else Reason.GIVEN_UP)

    async def _take_back(self) -> None:
        """Raise JobNotTakenError if the shell has not opened the job, and surely never will.

        The shell may be back at its prompt, or need more time.
        """
        job, pane = self._job, self._pane
        is_back = job.runtime_s > self._times.prompt_s and await pane.terminal.prompt(0.0)
        if (is_back or job.runtime_s >= self._times.take_s) and job.cancel():
            pane.jobs.last = None
            raise JobNotTakenError(pane.id, job.shell.name)

    async def _check_log(self) -> None:
        """Check that the log had room for the job's marks."""
        pane = self._pane
        has_lost_output = await pane.ensure_log_writer()
        if has_lost_output and not self._job.has_end_mark():
            self._job.remove()
            pane.jobs.last = None
            raise LogLostError(pane.id, str(pane.log.path))

    def _is_awaiting(self, activity: Activity) -> bool:
        """Return whether the command awaits something; at a shell's prompt, only after a while.

        What looks like a prompt may be the line editor of the shell that runs the job, as for
        `read -e`, or of a shell that runs a script.
        """
        shell = activity.shell
        if shell is None:
            return super()._is_awaiting(activity)
        if activity.quiet_s < self._times.quiet_s:
            return False
        if shell == self._job.shell:
            return not self._job.is_closed()
        return not shell.is_interactive()

    def _output_range(self, reason: Reason, state: State) -> tuple[int, int]:
        job, log = self._job, self._pane.log
        start = state.cursor if job.start is None else job.start
        if job.end is not None:
            return start, max(start, job.end)
        end = state.cursor
        is_at_prompt = reason.leaves_shell or (job.start is not None and job.is_closed())
        if is_at_prompt and state.is_running:
            end = _before_prompt(log, start, end)
        return start, max(start, end)


def _before_prompt(log: Log, start: int, end: int) -> int:
    """Return where the line that ends at `end` begins: it is a prompt, not output."""
    tail_start = max(start, end - MAX_PROMPT_BYTES)
    tail = log.read(tail_start, end - tail_start)
    return tail_start + tail.rfind(b"\n") + 1


def _exit_code_of(state: State) -> int | None:
    """Return the exit code that a shell would report for a program; None if it runs or is lost."""
    if state.signal:
        return processes.signal_exit_code(processes.signal_number(state.signal))
    return state.exit_code
