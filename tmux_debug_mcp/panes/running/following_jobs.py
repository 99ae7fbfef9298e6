"""Following a job to its end mark, or until the shell has dropped it without one."""

import anyio

from tmux_debug_mcp.errors import JobNotTakenError, LogLostError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.growth import Subscription
from tmux_debug_mcp.logs.reading import may_be_answered
from tmux_debug_mcp.panes.looking.activity import QUIET_S, Activity, Snapshot
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.shells.jobs import Job
from tmux_debug_mcp.panes.shells.pane_shell import POLL_S, PROMPT_S, TAKE_S

from .following import Follower, ReadOutput, before_prompt, exit_code_of
from .outcomes import Outcome, RunReason

# The exit code of shells for a command that SIGINT ended.
_INTERRUPTED = 130
# A shell starts on a line within this time, unless something holds it up.
_BEGIN_S = 0.5
# All output has reached the log when it has not grown for this long. That is not QUIET_S: the
# command is over, and only tmux may be late.
_LATE_OUTPUT_S = 0.25
# Limit for waiting until then, since background processes may print on.
_MAX_LATE_OUTPUT_S = 1.0


class JobFollower(Follower):
    """Follows a job of a shell.

    Args:
        pane: The pane.
        job: The job, which the shell was just given.
        before: The snapshot before that.
        deadline: The end of the command's time, on the clock of anyio.current_time().
    """

    def __init__(self, pane: Pane, job: Job, before: Snapshot, deadline: float) -> None:
        super().__init__(pane, deadline, before)
        self._job = job
        self._poll_at = 0.0

    async def outcome(self, read_output: ReadOutput) -> Outcome:
        """Follow the job until the run is over, and return its outcome.

        Raises:
            JobNotTakenError: The shell did not take the job.
            LogLostError: The shell took it, but its output could not be written to the log.
            PaneLostError: The pane is gone.
        """
        pane, job = self._pane, self._job
        async with pane.subscribe() as subscription:
            reason = await self._follow(subscription)
            state = await self._state(reason)
            start, end = self._output_range(reason, state)
            exit_code = await self._job_exit_code(reason, state)
            if reason is RunReason.GIVEN_UP and exit_code == _INTERRUPTED:
                reason = RunReason.INTERRUPTED
            if not reason.leaves_command:
                job.remove()
            # The terminal answers queries as if somebody typed. The shell gets the answers that
            # no program has read, on its command line.
            if await may_be_answered(pane.log, start, end):
                pane.keyboard.use_line()
            excerpt = await read_output(pane.log, start, end)
            return Outcome(
                reason=reason,
                exit_code=exit_code,
                runtime_s=job.runtime_s,
                state=state,
                excerpt=excerpt,
                start=start,
                end=end,
            )

    async def _follow(self, subscription: Subscription) -> RunReason:
        job, pane = self._job, self._pane
        while True:
            ending = await pane.ending()
            if job.is_done():
                return self._unless_interrupted(RunReason.DONE)
            if ending:
                return RunReason.EXITED
            reason = await self._poll()
            if reason:
                return reason
            if job.start is not None and await self._awaits_something() and not job.is_done():
                await pane.drain()
                pane.shell.report_later(job)
                return RunReason.INPUT
            # A shell that has not read the line yet would take C-c as a key of that line.
            has_begun = job.start is not None or job.runtime_s > _BEGIN_S
            if await self._resists_interrupts(has_begun=has_begun):
                pane.shell.report_later(job)
                return RunReason.RUNNING
            await self._wait(subscription)

    async def _poll(self) -> RunReason | None:
        """Check for what leaves no trace in the log, unless it is too early.

        Returns:
            Why the run is over; None if it goes on.
        """
        if anyio.current_time() < self._poll_at:
            return None
        self._poll_at = anyio.current_time() + POLL_S
        reason = await self._reason_without_end()
        if reason:
            return reason
        if await self._pane.shell.has_started_shell(self._job):
            return self._unless_interrupted(RunReason.SHELL_STARTED)
        return None

    async def _reason_without_end(self) -> RunReason | None:
        """Return why the shell has dropped the job without an end mark.

        Returns:
            None if the shell is not through with the job, or the mark came in the meantime.

        Raises:
            JobNotTakenError: The shell has not taken the job.
            LogLostError: The log could not be written.
        """
        job = self._job
        if not job.is_closed():
            return None
        has_begun = job.start is not None
        if not has_begun:
            await self._check_taken()
            return None
        # The shell is through with the job, so the end mark is on its way or was never printed.
        await self._wait_for_late_output()
        if job.is_done() or await self._pane.ending():
            return None
        # A mark that had no room in the log would be missing, too.
        await self._check_log()
        if not job.shell.is_running():
            return self._reason_without_shell()
        if await self._is_back_at_prompt():
            return self._unless_interrupted(RunReason.GIVEN_UP)
        return None

    async def _is_back_at_prompt(self) -> bool:
        """Tell whether the job's shell comes to its prompt, once its terminal is fit for that."""
        pane = self._pane
        # Without a line editor, as in dash, a shell does not reset the modes that a program left.
        # C-c then drops what it has read in those modes.
        if not self._job.shell.dialect.has_editor and terminals.restore(pane.leader.pid):
            await pane.shell.interrupt(is_second=False)
        return await pane.terminal.prompt(TAKE_S) is not None

    async def _check_taken(self) -> None:
        """Check that the shell can still take a job that it has not opened yet.

        Raises:
            JobNotTakenError: It is back at its prompt, or had enough time.
            LogLostError: The log could not be written.
        """
        job, pane = self._job, self._pane
        is_back = job.runtime_s > PROMPT_S and await pane.terminal.prompt(0.0)
        if not is_back and job.runtime_s < TAKE_S:
            return
        await self._check_log()
        job.cancel()
        pane.shell.drop_job()
        raise JobNotTakenError(pane.id, job.shell.name)

    async def _wait_for_late_output(self) -> None:
        """Wait until the log has the job's end mark or stops growing, 1 s at most."""
        job, log = self._job, self._pane.log
        size = -1
        deadline = anyio.current_time() + _MAX_LATE_OUTPUT_S
        while size != log.size and not job.is_done() and anyio.current_time() < deadline:
            size = log.size
            await anyio.sleep(_LATE_OUTPUT_S)

    async def _check_log(self) -> None:
        """Check that the job's marks could be written to the log.

        Raises:
            LogLostError: They could not, most likely because the disk is full.
        """
        pane = self._pane
        has_lost_output = await pane.ensure_log_writer()
        if has_lost_output and not self._job.is_done():
            self._job.remove()
            pane.shell.drop_job()
            raise LogLostError(pane.id, str(pane.log.path))

    def _reason_without_shell(self) -> RunReason:
        """Return how the job's shell went: its process may be there, running another program."""
        shell = self._job.shell
        starttime, _ = shell.start
        if processes.read_living(shell.pid, starttime) is None:
            return RunReason.SHELL_ENDED
        return RunReason.REPLACED

    def _is_awaiting(self, activity: Activity) -> bool:
        """Tell whether the command awaits something; at a shell's prompt, after a while.

        The line editor that waits may be the one of the shell that runs the job: a command such as
        `read -e` uses it. Or it is that of a shell which runs a script.
        """
        shell = activity.shell
        if shell is None:
            return super()._is_awaiting(activity)
        if activity.quiet_s < QUIET_S:
            return False
        if shell == self._job.shell:
            return not self._job.is_closed()
        return not shell.is_interactive()

    def _output_range(self, reason: RunReason, state: State) -> tuple[int, int]:
        """Return the cursors where the job's output begins and ends."""
        job, log = self._job, self._pane.log
        start = state.cursor if job.start is None else job.start
        if job.end is not None:
            return start, max(start, job.end)
        end = state.cursor
        is_at_prompt = reason.leaves_shell or (job.start is not None and job.is_closed())
        if is_at_prompt and state.is_running:
            end = before_prompt(log, start, end)
        return start, max(start, end)

    async def _job_exit_code(self, reason: RunReason, state: State) -> int | None:
        """Return the exit code of the job's command, None if there is none."""
        job = self._job
        if reason is RunReason.GIVEN_UP:
            return await self._pane.shell.last_exit_code(job.shell)
        if reason is RunReason.EXITED:
            return exit_code_of(state)
        if reason is RunReason.TIMED_OUT and job.exit_code is None:
            return _INTERRUPTED
        return job.exit_code
