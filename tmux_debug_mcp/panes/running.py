"""Running a command in a shell's pane, or in a pane of its own: its complete output and its true exit code.

A command that awaits something would wait for its timeout in vain. So that is an answer: the command runs on, and is
not interrupted any more.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.errors import JobNotTakenError, LogLostError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.raw import may_be_answered
from tmux_debug_mcp.logs.subscriptions import Subscription

from .activity import QUIET_S, Activity, ActivityTracker, Awaits, Snapshot
from .dialects import unfinished
from .jobs import Job
from .pane import Pane
from .shell import MAX_INTERRUPTS, PROMPT_S, TAKE_S
from .state import State

MAX_OUTPUT_CHARACTERS = 40_000

_INTERRUPTED = 130
_RUNS_SHELL = "it runs a shell, which is at its prompt; what runs there next runs in that"
_HAS_SHELL = ("shell_started", "shell_interrupted")
_SYNTAX_ERROR = 2
# A shell has begun with a line by then, unless something holds it up.
_BEGIN_S = 0.5
_LEAST_WAIT_S = 0.002
# How often to look at what leaves no trace in the log: exec, and a shell that gave a command up.
_LOOK_AGAIN_S = 0.05
# All that was printed has come to the log when it has been quiet for so long.
_QUIET_S = 0.25
_LATE_S = 1.0

# A prompt, with all that draws it, is shorter.
_PROMPT_BYTES = 4096

# Reads a part of a log, of which a line begins at the start.
Show = Callable[[Log, int, int], Awaitable[Excerpt]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        reason: `done`; `interrupted`, by somebody else; `timed_out`, and then it was interrupted; `running`, when
            that did not end it; `given_up` by the shell, for an error; `exited`, the pane's program ended or was
            lost; `shell_ended`, a shell within another one ended; `replaced`, by a program given to `exec`;
            `shell_started`, the command is a shell that is at its prompt now, or has started one;
            `shell_interrupted`, the same after its time was over, so that its start was interrupted; `input`, it
            runs on and awaits something.
        exit_code: The command's exit code, where it has one.
        runtime_s: Seconds from its start.
        state: The pane's state then.
        excerpt: Its output, as `show` has read it.
        start: Where its output begins.
        end: Where it ends.
    """

    reason: str
    exit_code: int | None
    runtime_s: float
    state: State
    excerpt: Excerpt
    start: int
    end: int

    def note(self, timeout_s: float) -> str | None:
        """Say how it ended other than by itself, given the time that it had."""
        return {
            "timed_out": f"timed out after {timeout_s:g} s and interrupted",
            "running": f"timed out after {timeout_s:g} s, interrupted twice, and still runs",
            "interrupted": "interrupted",
            "given_up": "the shell gave it up",
            "shell_ended": "the shell ended",
            "replaced": "the shell was replaced",
            "shell_started": _RUNS_SHELL,
            "input": "it runs on",
            "shell_interrupted": f"timed out after {timeout_s:g} s and interrupted; {_RUNS_SHELL}",
        }.get(self.reason)


async def run_in_shell(pane: Pane, command: str, timeout_s: float, show: Show) -> Outcome:
    """Run a command in the shell that is at its prompt in a pane.

    Args:
        pane: The pane.
        command: The command.
        timeout_s: The time for the shell to come to its prompt, and for the command.
        show: Reads the output.

    Raises:
        PaneExitedError: The pane's program has ended.
        PaneLostError: The pane is gone.
        BusyError: An earlier command still runs there.
        NotAtPromptError: What has the terminal is no shell.
        ShellNotReadyError: It is one, which does not come to its prompt in that time.
        ForeignShellError: The shell is another user's, or sees other files than we do.
        JobNotTakenError: The shell did not take the command.
        LogLostError: It did, and the log has no room for what came of it.
        StorageError: There is no room for the command's file.
    """
    deadline = anyio.current_time() + timeout_s
    await pane.shell.wait_until_free()
    await pane.check_running()
    await pane.shell.at_prompt(deadline)  # which may take a while, and others may type meanwhile
    async with pane.keyboard.lock:
        await pane.shell.wait_until_free()
        await pane.check_running()
        await pane.ensure_log_writer()
        shell = await pane.shell.at_empty_prompt(deadline)
        if error := await unfinished(shell, command):
            state = await pane.state()
            shown = Excerpt(error.removesuffix("\n").split("\n"), [])
            return Outcome("done", _SYNTAX_ERROR, 0.0, state, shown, state.cursor, state.cursor)
        before = pane.begin_typing()
        job = await pane.shell.give(shell, command)
    return await _InShell(pane, job, before, deadline, show).outcome()


async def run_in_turn(pane: Pane, command: str, timeout_s: float, show: Show) -> Outcome:
    """Run a command in the shell of a pane, after those that wait there already.

    Raises:
        BusyError: It is not their turn before the time for the command is over.
        LimitReachedError: Too many wait.
        ToolError: As `run_in_shell` does.
    """
    async with pane.shell.turn(timeout_s):
        return await run_in_shell(pane, command, timeout_s, show)


async def run_in_pane(pane: Pane, timeout_s: float, show: Show) -> Outcome:
    """Wait for the end of the command that a pane was made for, and interrupt it when its time is over."""
    return await _InPane(pane, anyio.current_time() + timeout_s, show).outcome()


def _before_prompt(log: Log, start: int, end: int) -> int:
    """Return where the output ends that begins at `start`, when a prompt stands before `end`."""
    tail_from = max(start, end - _PROMPT_BYTES)
    tail = log.read(tail_from, end - tail_from)
    return tail_from + tail.rfind(b"\n") + 1


class _Following:
    """A command on its way to its end: what is done for that at each look.

    Args:
        pane: The pane.
        deadline: The end of its time, as anyio.current_time() has it.
        before: The last look before it began.
    """

    def __init__(self, pane: Pane, deadline: float, before: Snapshot | None = None) -> None:
        self.pane = pane
        self.interrupts = 0
        self._deadline = deadline
        self._activity = ActivityTracker(before)
        self._look_at = 0.0
        self._doing: Activity | None = None

    def or_interrupted(self, reason: str) -> str:
        """Return another reason where the command was interrupted."""
        interrupted = {"done": "timed_out", "given_up": "timed_out", "shell_started": "shell_interrupted"}
        return interrupted[reason] if self.interrupts else reason

    async def awaits(self) -> bool:
        """Tell whether the command awaits something that nobody is about to give it."""
        now = anyio.current_time()
        if self.interrupts or now < self._look_at:
            return False
        async with self.pane.events.looking:
            activity = await self.pane.terminal.observe(self._activity)
        self._look_at = anyio.current_time() + activity.look_again_s * self.pane.events.load
        self._doing = activity
        return self.is_awaited(activity)

    async def state(self, reason: str) -> State:
        """Return the pane's state at the end."""
        if reason == "input" and self._doing and not await self.pane.ending():
            return self.pane.running(self._doing.snapshot, self._doing.awaits)
        return await self.pane.state()

    def is_awaited(self, activity: Activity) -> bool:
        """Tell whether a look says so: of input at once, of keys after a while."""
        return activity.is_awaiting and (activity.awaits is not Awaits.KEYS or activity.quiet_s >= QUIET_S)

    async def is_given_up(self, *, has_begun: bool) -> bool:
        """Interrupt the command where its time is over; tell whether that did not help."""
        if anyio.current_time() < self._deadline or not has_begun:
            return False
        if self.interrupts == MAX_INTERRUPTS:
            return True
        self._deadline = anyio.current_time() + await self.pane.shell.interrupt(is_second=self.interrupts > 0)
        self.interrupts += 1
        return False

    async def wait(self, subscription: Subscription) -> None:
        """Wait until there may be something to do."""
        now = anyio.current_time()
        until = min(self._deadline, now + _LOOK_AGAIN_S, max(self._look_at, now))
        await subscription.wait(max(_LEAST_WAIT_S, until - now))


class _InPane(_Following):
    """The command that a pane was made for."""

    def __init__(self, pane: Pane, deadline: float, show: Show) -> None:
        super().__init__(pane, deadline)
        self._show = show

    async def outcome(self) -> Outcome:
        """Return how the command ends."""
        pane = self.pane
        async with pane.subscribe() as subscription:
            reason = await self._reason(subscription)
            state = await self.state(reason)
            code = processes.signal_exit_code(state.signal) if state.signal else state.exit_code
            end = state.cursor
            if reason in _HAS_SHELL:
                end = _before_prompt(pane.log, 0, end)
            elif state.is_lost:
                reason = "exited"
            shown = await self._show(pane.log, 0, end)
            return Outcome(reason, code, state.runtime_s, state, shown, 0, end)

    async def _reason(self, subscription: Subscription) -> str:
        pane = self.pane
        while not await pane.ending():
            if await pane.shell.has_started_shell(None):
                return self.or_interrupted("shell_started")
            if await self.awaits():
                await pane.drain()
                return "input"
            if await self.is_given_up(has_begun=True):
                return "running"
            await self.wait(subscription)
        return self.or_interrupted("done")


class _InShell(_Following):
    """A job of a shell."""

    def __init__(self, pane: Pane, job: Job, before: Snapshot, deadline: float, show: Show) -> None:
        super().__init__(pane, deadline, before)
        self._job = job
        self._show = show

    async def outcome(self) -> Outcome:
        """Return how the command ends."""
        async with self.pane.subscribe() as subscription:
            reason = await self._reason(subscription)
            return await self._outcome(reason)

    async def _outcome(self, reason: str) -> Outcome:
        job = self._job
        state = await self.state(reason)
        start = state.cursor if job.start is None else job.start
        end = state.cursor if job.end is None else job.end
        has_prompt = reason in _HAS_SHELL or (job.start is not None and job.is_closed())
        if job.end is None and state.is_running and has_prompt:
            end = _before_prompt(self.pane.log, start, end)
        code = job.exit_code
        if code is None and reason == "timed_out":
            code = _INTERRUPTED
        elif reason == "given_up":
            code = await self.pane.shell.last_exit_code(job.shell)
            reason = "interrupted" if code == _INTERRUPTED else reason
        elif reason == "exited":
            code = processes.signal_exit_code(state.signal) if state.signal else state.exit_code
        if reason not in ("running", "input", *_HAS_SHELL):
            job.remove()
        end = max(start, end)
        # An answer that nobody has read stands on the line.
        if await may_be_answered(self.pane.log, start, end):
            self.pane.keyboard.use_line()
        shown = await self._show(self.pane.log, start, end)
        return Outcome(reason, code, job.runtime_s, state, shown, start, end)

    async def _reason(self, subscription: Subscription) -> str:
        """Wait for the end of the command, or of the patience with it."""
        job, pane = self._job, self.pane
        looked_at = 0.0
        while True:
            ended = await pane.ending()
            if job.is_done():
                return self.or_interrupted("done")
            if ended:
                return "exited"
            if anyio.current_time() >= looked_at + _LOOK_AGAIN_S:
                looked_at = anyio.current_time()
                if reason := await self._left():
                    return reason
                if await pane.shell.has_started_shell(job):
                    return self.or_interrupted("shell_started")
            if job.start is not None and await self.awaits() and not job.is_done():
                await pane.drain()
                pane.shell.report_later(job)
                return "input"
            # A shell that has not read the line yet would take C-c for that.
            if await self.is_given_up(has_begun=job.start is not None or job.runtime_s > _BEGIN_S):
                pane.shell.report_later(job)
                return "running"
            await self.wait(subscription)

    def is_awaited(self, activity: Activity) -> bool:
        """Tell the same; the shell's own line editor may be used by a command, and has then to be quiet for a while."""
        if activity.shell is None:
            return super().is_awaited(activity)
        is_in_job = (
            not self._job.is_closed() if activity.shell == self._job.shell else not activity.shell.is_interactive()
        )
        return is_in_job and activity.quiet_s >= QUIET_S

    async def _ensure_log_writer(self) -> None:
        """See that the end of the job could be written."""
        if await self.pane.ensure_log_writer() and not self._job.is_done():
            self._job.remove()
            self.pane.shell.drop_job()
            raise LogLostError(self.pane.id, str(self.pane.log.path))

    async def _left(self) -> str | None:
        """Return how the shell left the job without its end, or None where it has not."""
        job, pane = self._job, self.pane
        if not job.is_closed():
            return None
        if job.start is None:
            # Where the shell is at its prompt again, the line did nothing.
            is_back = job.runtime_s > PROMPT_S and await pane.terminal.prompt(0.0)
            if not is_back and job.runtime_s < TAKE_S:
                return None
            await self._ensure_log_writer()
            job.cancel()
            pane.shell.drop_job()
            raise JobNotTakenError(pane.id, job.shell.name)
        # What it printed last may still be on its way, and what it left in the background may print on.
        size, until = -1, anyio.current_time() + _LATE_S
        while size != pane.log.size and not job.is_done() and anyio.current_time() < until:
            size = pane.log.size
            await anyio.sleep(_QUIET_S)
        if job.is_done() or await pane.ending():
            return None
        await self._ensure_log_writer()
        if not job.shell.is_running():
            stat = processes.read_stat(job.shell.pid)
            is_same = stat is not None and stat.starttime == job.shell.start[0] and stat.state != "Z"
            return "replaced" if is_same else "shell_ended"
        # Dash has no line editor that sets the modes which a program left behind, and has read what was typed then.
        if not job.shell.dialect.has_editor and terminals.restore(pane.leader.pid):
            await pane.shell.interrupt(is_second=False)
        if await pane.terminal.prompt(TAKE_S) is None:
            return None
        return self.or_interrupted("given_up")
