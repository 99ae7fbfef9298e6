"""Running a command, in a shell's pane or in a new pane, for its output and exit code.

A run ends with its command, or at its timeout, when it interrupts the command. It also ends when
the command awaits something, since waiting would last until the timeout; the command then goes on
without an interrupt.

A run reads no output. Its caller does, and keeps the log of the pane open from before the run, so
that a kill right after the command was typed leaves the output.

A command runs at most once. Only if it surely has not begun is it given to the shell again, or an
error says that nothing was run.

A job is followed until the shell is done with it, as the kernel tells; of a shell elsewhere, only
its end mark does. That mark, if the shell has printed it, has the exit code. Marks are read from
the log, which may be late: the disk is slow, or tmux is stopped. So the log is drained first.
"""

import math
from enum import Enum

import anyio

from tmux_debug_mcp.errors import (
    JobNotTakenError,
    KeyboardHeldError,
    LogLostError,
    NotAtPromptError,
    OutcomeUnknownError,
    PaneLostError,
    ToolError,
)
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import may_be_answered
from tmux_debug_mcp.panes.looking.activity import Activity, Awaits
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.prompts import MAX_PROMPT_BYTES, is_within_line
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.panes.shells.dialects import syntax_error
from tmux_debug_mcp.panes.shells.jobs import Door, FileJob, Job, TypedJob
from tmux_debug_mcp.panes.watching import Later, Moment, Need, until

from .elsewhere import door_of, give_elsewhere, leads_to
from .giving import (
    MAX_INTERRUPTS,
    at_empty_prompt,
    at_prompt,
    give,
    has_started_shell,
    interrupt,
    last_exit_code,
    wait_until_free,
)

# The exit code that shells report for a syntax error.
_SYNTAX_ERROR = 2
# The exit code that shells report for a command that SIGINT ended.
_INTERRUPTED = 130

# What a reason becomes if we have interrupted the command before.
_WHEN_INTERRUPTED = {
    Reason.DONE: Reason.TIMED_OUT,
    Reason.GIVEN_UP: Reason.TIMED_OUT,
    Reason.SHELL_STARTED: Reason.SHELL_INTERRUPTED,
}


class RunAction(Enum):
    """What to do about a run before it is followed on."""

    INTERRUPT = "interrupt the command, whose time is over"
    TAKE_BACK = "take the command back, which its shell has not begun"
    RESTORE = "restore the terminal's modes, and drop what the shell has read in others"
    FAIL = "give up, since the log had no room for the marks"


class EndOfRun:
    """Decides, as a rule, when and why the run of the command that a pane was made for is over.

    Attributes:
        deadline: When the command's time is over, or the grace period after an interrupt.
        interrupts: How often it was interrupted.
    """

    def __init__(self, pane: Pane, deadline: float) -> None:
        self._pane = pane
        self._times = pane.clock.times
        self.deadline = deadline
        self.interrupts = 0

    def __call__(self, moment: Moment) -> Reason | RunAction | Need | Later:
        """Return why the run is over at this moment, or what to do about it."""
        if moment.ending:
            return Reason.DONE
        if moment.activity is None:
            return Need.LOOK
        if has_started_shell(moment, None):
            return Reason.SHELL_STARTED
        if self._awaits(moment.activity):
            return Need.DRAIN if moment.is_drained is None else Reason.INPUT
        if self._seems_to_ask(moment, 0):
            return Reason.QUIET
        if moment.now < self.deadline:
            return Later(min(self.deadline, moment.now + self._times.job_poll_s))
        if moment.activity.snapshot.is_over:
            return Need.DRAIN if moment.is_drained is None else Reason.LATE
        return RunAction.INTERRUPT

    def _awaits(self, activity: Activity) -> bool:
        """Return whether the command awaits input, or has awaited keys for a while.

        An interrupted command gets its whole grace period, so the answer is no from then on.
        """
        if self.interrupts or not activity.only_awaits:
            return False
        return activity.awaits is not Awaits.KEYS or activity.inactive_s >= self._times.quiet_s

    def _seems_to_ask(self, moment: Moment, start: int) -> bool:
        """Return whether what is hidden from us has long been quiet, within a line."""
        if self.interrupts or moment.activity is None or not moment.activity.is_unclear:
            return False
        is_quiet = moment.now >= moment.touched_at + self._times.seems_to_ask_s
        return is_quiet and is_within_line(self._pane.log, start)


class EndOfJob(EndOfRun):
    """Decides, as a rule, when and why the run of a job is over, which its shell was just given."""

    def __init__(self, pane: Pane, job: FileJob, deadline: float) -> None:
        super().__init__(pane, deadline)
        self._job = job
        self._losses = pane.losses
        self._is_restored = False
        # The kernel is asked when there is a mark, and for what leaves no trace in the log.
        self._poll_at = -math.inf
        self._gone_at: float | None = None

    def __call__(self, moment: Moment) -> Reason | RunAction | Need | Later:
        """Return why the run is over at this moment, or what to do about it."""
        job, times = self._job, self._times
        if moment.ending:
            return Reason.DONE if job.is_done() else Reason.EXITED
        # In this order: a shell that has begun has the script open until it is done.
        has_begun = job.has_begun()
        is_polled = job.has_end_mark() or moment.now >= self._poll_at
        is_closed = is_polled and job.is_closed()
        if is_closed:
            answer = self._closed(moment) if has_begun else self._not_taken(moment)
            if answer:
                return answer
        if has_begun:
            if moment.activity is None:
                return Need.LOOK
            if has_started_shell(moment, job):
                return Reason.SHELL_STARTED
            if self._awaits(moment.activity) and not job.is_done():
                return Need.DRAIN if moment.is_drained is None else Reason.INPUT
            if self._seems_to_ask(moment, job.start or 0):
                return Reason.QUIET
        # A shell that has not read the line yet would take C-c as a key of that line.
        is_typing = not has_begun and job.runtime_s <= times.begin_s
        if moment.now >= self.deadline and not is_typing and not self._is_over(moment):
            return RunAction.INTERRUPT
        if is_polled:
            self._poll_at = moment.now + times.job_poll_s
        later = moment.now + (times.poll_s if job.has_end_mark() else times.job_poll_s)
        return Later(min(later, self.deadline) if moment.now < self.deadline else later)

    def _closed(self, moment: Moment) -> Reason | RunAction | Need | Later | None:
        """Return why the run is over now that the shell is done with the script, if it is.

        By then, the shell has printed all that it ever prints for the job, but that may come late
        in the log.
        """
        job, times, is_due = self._job, self._times, moment.now >= self.deadline
        if moment.is_drained is None:
            return Need.DRAIN
        if not job.has_end_mark() and self._pane.losses != self._losses:
            return RunAction.FAIL
        if not moment.is_drained:
            return Reason.LATE if is_due else None
        if job.is_done():
            return Reason.DONE
        if not job.shell.is_running():
            # Its process may still be there, running another program, which may end at once.
            self._gone_at = self._gone_at or moment.now
            if moment.now < self._gone_at + times.quiet_s:
                return Later(self._gone_at + times.quiet_s)
            if not any(map(processes.is_alive, processes.children(self._pane.leader.pid))):
                return Reason.LATE if is_due else None  # pane.sh is about to tell its end
            pid, (starttime, _) = job.shell.pid, job.shell.start
            is_gone = processes.read_living(pid, starttime) is None
            return Reason.SHELL_ENDED if is_gone else Reason.REPLACED
        # Without a line editor, as in dash, a shell does not reset the modes that a program left.
        # C-c then drops what it has read in those modes.
        if not (job.shell.dialect.has_editor or self._is_restored or moment.has_person):
            self._is_restored = True
            return RunAction.RESTORE
        # A command may have closed the script, along with all its files: then it has ended
        # only when the shell is at its prompt. What it printed until then is drained after a look.
        if moment.activity is None:
            return Need.LOOK
        return Reason.GIVEN_UP if moment.activity.shell else None

    def _not_taken(self, moment: Moment) -> RunAction | Need | None:
        """Return whether the shell has not opened the job, and surely never will.

        The shell may be back at its prompt, or need more time.
        """
        is_late = self._job.runtime_s > self._times.prompt_s
        if is_late and moment.activity is None:
            return Need.LOOK
        is_back = is_late and moment.activity is not None and moment.activity.shell is not None
        is_over = is_back or self._job.runtime_s >= self._times.take_s
        return RunAction.TAKE_BACK if is_over else None

    def _is_over(self, moment: Moment) -> bool:
        """Return whether the shell is done with the job, so that there is nothing to interrupt.

        A command that closes all files closes the script, too, but has no prompt.
        """
        if not self._job.has_begun() or not self._job.is_closed():
            return False
        is_at_prompt = moment.activity is not None and moment.activity.shell is not None
        return is_at_prompt or moment.now < self.deadline + self._times.prompt_soon_s

    def _awaits(self, activity: Activity) -> bool:
        """Return whether the command awaits something; at a shell's prompt, only after a while.

        What looks like a prompt may be the line editor of the shell that runs the job, as for
        `read -e`, or of a shell that runs a script.
        """
        shell = activity.shell
        if shell is None or self.interrupts:
            return super()._awaits(activity)
        if activity.inactive_s < self._times.quiet_s:
            return False
        if shell == self._job.shell:
            return not self._job.is_closed()
        return not shell.is_interactive()


class EndOfTypedJob(EndOfRun):
    """Decides, as a rule, when and why the run of a job in a shell elsewhere is over."""

    def __init__(self, pane: Pane, job: TypedJob, deadline: float) -> None:
        super().__init__(pane, deadline)
        self._job = job

    def __call__(self, moment: Moment) -> Reason | RunAction | Need | Later:
        """Return why the run is over at this moment, or what to do about it."""
        job, times = self._job, self._times
        if job.has_end_mark():
            return Reason.GIVEN_UP if job.is_aborted else Reason.DONE
        if moment.ending:
            return Reason.EXITED
        if not job.shell.is_running():
            # Its last output may be late, or the pane about to end.
            if moment.is_drained is None:
                return Need.LOG
            ended_at = moment.touched_at + times.quiet_s
            return Reason.SHELL_ENDED if moment.now >= ended_at else Later(ended_at)
        if moment.activity is None:
            return Need.LOOK
        if self._awaits(moment.activity):
            return Need.DRAIN if moment.is_drained is None else Reason.INPUT
        if self._seems_to_ask(moment, job.start or 0):
            return Reason.QUIET
        if moment.now >= self.deadline:
            # C-c would end a door such as `ssh -T`, and the end mark may only be late.
            return Need.LOG if moment.is_drained is None else RunAction.INTERRUPT
        return Later(min(self.deadline, moment.now + times.job_poll_s))


async def run_in_shell(pane: Pane, command: str, timeout_s: float) -> Report:
    """Run a command in the shell that is at its prompt in a pane, or that the pane leads to.

    The timeout covers both reaching the prompt and the command.

    Raises:
        BusyError: An earlier command still runs there.
        NotAtPromptError: The program that has the terminal is not a shell.
        ShellNotReadyError: A shell has the terminal, but does not reach its prompt in time.
        ElsewhereError: No shell answers where the pane leads, or may be asked.
        JobNotTakenError: The shell did not take the command.
        LogLostError: The shell took it, but its output could not be written to the log.
        OutcomeUnknownError: The shell may have taken it, but tmux no longer answers.
    """
    deadline = pane.clock.now() + timeout_s
    try:
        return await _run_once(pane, command, deadline)
    except JobNotTakenError:
        if leads_to(pane):
            raise
        # A late answer of the terminal became the beginning of our line, or swallowed a key of it.
        # Now the answer is gone.
        return await _run_once(pane, command, deadline)


async def _run_once(pane: Pane, command: str, deadline: float) -> Report:
    await wait_until_free(pane)
    await pane.check_running()
    pane.keyboard.check_free()
    # Before the other calls are kept waiting, since this may take a while.
    to = leads_to(pane) or await _at_prompt_or_door(pane, deadline)
    async with pane.keyboard.in_sequence(deadline - pane.clock.now()):
        await wait_until_free(pane)
        await pane.check_running()
        await pane.ensure_log_writer()
        job_or_complaint = await _give(pane, leads_to(pane, to), command, deadline)
        if isinstance(job_or_complaint, str):  # the shell does not get it
            state = await pane.state()
            excerpt = Excerpt(job_or_complaint.removesuffix("\n").split("\n"))
            end = state.cursor
            return Report(Reason.DONE, pane, state, end, end, excerpt, exit_code=_SYNTAX_ERROR)
        job = pane.jobs.last = job_or_complaint
    try:
        return await _follow_job(pane, job, deadline)
    except anyio.get_cancelled_exc_class():
        pane.leave_run(job)  # it goes on
        raise
    except (JobNotTakenError, LogLostError):
        raise
    except ToolError as cause:
        pane.leave_run(job)
        raise OutcomeUnknownError(str(cause)) from cause


async def _at_prompt_or_door(pane: Pane, deadline: float) -> Door | None:
    """Wait for the shell to be at its prompt; return what leads elsewhere instead, if anything."""
    try:
        await at_prompt(pane, deadline)
    except NotAtPromptError:
        to = leads_to(pane)
        if to is None:
            raise
        return to
    return None


async def _give(
    pane: Pane, to: Door | None, command: str, deadline: float
) -> FileJob | TypedJob | str:
    """Give a command to the shell in a pane, or behind a door.

    Return bash's message if it can't run the command.
    """
    if to:
        return await give_elsewhere(pane, to, None, command, deadline)
    shell = await at_empty_prompt(pane, deadline)
    if not processes.shares_our_files(shell.pid):
        return await give_elsewhere(pane, door_of(shell), shell, command, deadline)
    error = await syntax_error(pane.clock, command, shell.pid) if shell.name == "bash" else None
    return error or await give(pane, shell, command)


async def run_in_pane(pane: Pane, timeout_s: float) -> Report:
    """Follow the command that a pane was made for to its end; interrupt it at the timeout.

    Raises:
        OutcomeUnknownError: tmux no longer answers.
    """
    rule = EndOfRun(pane, pane.clock.now() + timeout_s)
    try:
        reason, state, interrupted = await _follow(pane, rule, None)
    except ToolError as error:
        raise OutcomeUnknownError(str(error)) from error
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
        exit_code=state.code,
        runtime_s=state.runtime_s,
        interrupted=interrupted,
    )


async def _follow_job(pane: Pane, job: FileJob | TypedJob, deadline: float) -> Report:
    """Follow a job until its run is over, and return the report of the run.

    Raises:
        JobNotTakenError: The shell did not take the job.
        LogLostError: The shell took it, but its output could not be written to the log.
    """
    rule: EndOfRun
    if isinstance(job, TypedJob):
        rule = EndOfTypedJob(pane, job, deadline)
    else:
        rule = EndOfJob(pane, job, deadline)
    reason, state, interrupted = await _follow(pane, rule, job)
    if not reason.leaves_command:
        job.conclude()
    start, end = _output_range(pane.log, job, reason, state)
    exit_code = await _exit_code(pane, job, reason, state)
    if reason is Reason.GIVEN_UP and exit_code == _INTERRUPTED:
        reason = Reason.INTERRUPTED
    if not reason.leaves_command:
        job.remove()
    # The terminal answers queries as if somebody typed. Answers that no program has read end up on
    # the shell's command line.
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
        interrupted=interrupted,
    )


async def _exit_code(
    pane: Pane, job: FileJob | TypedJob, reason: Reason, state: State
) -> int | None:
    """Return the exit code of a job whose run is over, None if it is not known."""
    # A command that ended its pane may have forged the mark of its end.
    if reason is Reason.EXITED:
        return state.code
    if job.exit_code is not None:
        return job.exit_code
    if reason is Reason.TIMED_OUT:
        return _INTERRUPTED
    if isinstance(job, TypedJob):
        return None
    if reason in (Reason.DONE, Reason.GIVEN_UP) and job.shell.is_running():
        return await last_exit_code(pane, job)
    return None


async def _follow(
    pane: Pane, rule: EndOfRun, job: Job | None
) -> tuple[Reason, State, State | None]:
    """Follow a run as its rule says.

    Return why it is over, the pane's state then, and its state before the first interrupt.
    """
    interrupted: State | None = None
    reason: Reason | None = None
    while reason is None:
        verdict, moment = await until(pane, rule, math.inf)
        if verdict is RunAction.FAIL and job:
            job.remove()
            pane.jobs.last = None
            raise LogLostError(pane.id, str(pane.log.path))
        if verdict is RunAction.TAKE_BACK and job and job.cancel():
            pane.jobs.last = None
            raise JobNotTakenError(pane.id, job.shell.name)
        if isinstance(verdict, Reason):
            reason = _WHEN_INTERRUPTED.get(verdict, verdict) if rule.interrupts else verdict
        elif verdict is RunAction.INTERRUPT and rule.interrupts == MAX_INTERRUPTS:
            reason = Reason.RUNNING
        try:
            if verdict is RunAction.RESTORE and terminals.restore(pane.leader.pid):
                await interrupt(pane, is_second=False)
            if verdict is RunAction.INTERRUPT and reason is None:
                interrupted = interrupted or await pane.state()
                grace_s = await interrupt(pane, is_second=rule.interrupts > 0)
                rule.deadline = pane.clock.now() + grace_s
                rule.interrupts += 1
        except KeyboardHeldError:  # a person decides alone what is interrupted
            reason = Reason.HELD
        except PaneLostError:  # now its program is known to have ended
            pass
    if reason is Reason.INPUT and moment.activity and not await pane.ending():
        return reason, pane.running(moment.activity), interrupted
    return reason, await pane.state(), interrupted


def _output_range(log: Log, job: Job, reason: Reason, state: State) -> tuple[int, int]:
    start = state.cursor if job.start is None else job.start
    if job.end is not None:
        is_prompted = isinstance(job, TypedJob) and job.is_aborted
        end = _before_prompt(log, start, job.end) if is_prompted else job.end
        return start, max(start, end)
    end = state.cursor if job.next_from is None else job.next_from
    is_at_prompt = reason.leaves_shell or (job.start is not None and job.is_closed())
    if is_at_prompt and state.is_running:
        end = _before_prompt(log, start, end)
    return start, max(start, end)


def _before_prompt(log: Log, start: int, end: int) -> int:
    """Return where the line that ends at `end` begins: it is a prompt, not output."""
    tail_start = max(start, end - MAX_PROMPT_BYTES)
    tail = log.read(tail_start, end - tail_start)
    return tail_start + tail.rfind(b"\n") + 1
