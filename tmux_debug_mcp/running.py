"""Running a command in a shell's pane, or in a pane of its own: its complete output and its true exit code."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from . import linux, terminals
from .errors import (
    BusyError,
    ForeignShellError,
    JobNotTakenError,
    LimitReachedError,
    LogLostError,
    NotAtPromptError,
    ShellNotReadyError,
    ToolError,
)
from .jobs import Job
from .keys import INTERRUPT
from .logs import Growth
from .panes import Pane, State
from .reading import Piece, may_be_answered, read_end
from .shells import Shell, foreground_shell, unfinished

MAX_OUTPUT_CHARACTERS = 40_000
MAX_WAITING = 16

_INTERRUPTED = 130
_RUNS_SHELL = "it runs a shell, which is at its prompt; what runs there next runs in that"
_HAS_SHELL = ("shell_started", "shell_interrupted")
_SYNTAX_ERROR = 2
# What a shell is still doing when it is asked to run something, such as printing its prompt.
_PROMPT_S = 1.0
_HOOK_S = 0.01
# Shells that do not ask their terminal anything.
_ASK_NOTHING = ("bash", "zsh", "dash")
# That a program has ended is known some milliseconds after it has the terminal no more.
_ENDING_S = 0.5
# Shells wait for so long for what follows Escape.
_ESCAPE_S = 0.06
# A shell reads a line at once, but what it does before a command may take a while.
_TAKE_S = 10.0
# It has done so by then, unless something holds it up.
_BEGIN_S = 0.5
_LEAST_WAIT_S = 0.002
_MOST_INTERRUPTS = 2
# Each interrupt gets this long to end the command; and where C-c is a key like others, this long.
_INTERRUPT_S = 2.0
_KEY_INTERRUPT_S = 0.5
# The most that both come to.
MAX_INTERRUPTS_S = _MOST_INTERRUPTS * _INTERRUPT_S
# How often to look at what leaves no trace in the log: exec, and a shell that gave a command up.
_LOOK_AGAIN_S = 0.05
# All that was printed has come to the log when it has been quiet for so long.
_QUIET_S = 0.25
_LATE_S = 1.0
# A prompt is shorter, with all that draws it.
_PROMPT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        reason: `done`; `interrupted`, by somebody else; `timed_out`, and then it was interrupted; `running`, when
            that did not end it; `given_up` by the shell, for an error; `exited`, the pane's program ended or was
            lost; `shell_ended`, a shell within another one ended; `replaced`, by a program given to `exec`;
            `shell_started`, the command is a shell that is at its prompt now, or has started one;
            `shell_interrupted`, the same after its time was over, so that its start was interrupted.
        exit_code: The command's exit code, where it has one.
        runtime_s: Seconds from its start.
        state: The pane's state then.
        piece: The end of its output.
        start: Where its output begins.
        end: Where it ends.
    """

    reason: str
    exit_code: int | None
    runtime_s: float
    state: State
    piece: Piece
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
            "shell_interrupted": f"timed out after {timeout_s:g} s and interrupted; {_RUNS_SHELL}",
        }.get(self.reason)


async def run_in_shell(pane: Pane, command: str, timeout_s: float) -> Outcome:
    """Run a command in the shell that is at its prompt in a pane.

    Args:
        pane: The pane.
        command: The command.
        timeout_s: The time for the shell to come to its prompt, and for the command.

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
    await _wait_until_free(pane)
    await pane.check_running()
    await _shell_at_prompt(pane, deadline)  # which may take a while, and others may type meanwhile
    async with pane.typing:
        await _wait_until_free(pane)
        await pane.check_running()
        await pane.check_log()
        shell = await _empty_prompt(pane, deadline)
        if error := await unfinished(shell, command):
            state = await pane.state()
            at = state.cursor
            return Outcome("done", _SYNTAX_ERROR, 0.0, state, Piece(error, at, at), at, at)
        pane.job = job = await _give(pane, shell, command)
    return await _Following(pane, job, deadline).outcome()


async def run_in_turn(pane: Pane, command: str, timeout_s: float) -> Outcome:
    """Run a command in the shell of a pane, after those that wait there already.

    Raises:
        BusyError: It is not their turn before the time for the command is over.
        LimitReachedError: Too many wait.
        ToolError: As `run_in_shell` does.
    """
    async with turn(pane, timeout_s):
        return await run_in_shell(pane, command, timeout_s)


@asynccontextmanager
async def turn(pane: Pane, patience_s: float) -> AsyncIterator[None]:
    """Wait until those who have come before are through with the pane, and have it for the time of the block.

    Raises:
        BusyError: They are not through after so many seconds.
        LimitReachedError: Too many wait.
    """
    if pane.turns.statistics().tasks_waiting >= MAX_WAITING:
        raise LimitReachedError(f"{MAX_WAITING} calls wait for this terminal already. Wait for their answers first.")
    try:
        pane.turns.acquire_nowait()
    except anyio.WouldBlock:
        with anyio.move_on_after(patience_s) as waiting:
            await pane.turns.acquire()
        if waiting.cancelled_caught:
            job = pane.job
            running, runtime_s = (job.command, job.runtime_s) if job else ("another call", patience_s)
            raise BusyError(pane.id, running, runtime_s) from None
    try:
        yield
    finally:
        pane.turns.release()


async def run_in_pane(pane: Pane, timeout_s: float) -> Outcome:
    """Wait for the end of the command that a pane was made for, and interrupt it when its time is over."""
    interrupts = 0
    has_started_shell = False
    deadline = anyio.current_time() + timeout_s
    async with pane.growth() as growth:
        while not await pane.ending():
            if has_started_shell := await _has_started_shell(pane, None):
                break
            if anyio.current_time() >= deadline:
                if interrupts == _MOST_INTERRUPTS:
                    break
                deadline = anyio.current_time() + await _interrupt(pane, is_second=interrupts > 0)
                interrupts += 1
            await growth.wait(min(_LOOK_AGAIN_S, deadline - anyio.current_time()))
        state = await pane.state()
        code = linux.signal_exit_code(state.signal) if state.signal else state.exit_code
        end = state.cursor
        if has_started_shell:
            reason = "shell_interrupted" if interrupts else "shell_started"
            end = _before_prompt(pane, 0, end)
        elif state.is_running:
            reason = "running"
        elif state.is_lost:
            reason = "exited"
        else:
            reason = "timed_out" if interrupts else "done"
        piece = await read_end(pane.log, 0, end, MAX_OUTPUT_CHARACTERS)
        return Outcome(reason, code, state.runtime_s, state, piece, 0, end)


def _before_prompt(pane: Pane, start: int, end: int) -> int:
    """Return where the output ends that begins at `start`, when a prompt is what stands before `end`."""
    tail_from = max(start, end - _PROMPT_BYTES)
    tail = pane.log.read(tail_from, end - tail_from)
    return tail_from + tail.rfind(b"\n") + 1


async def _wait_until_free(pane: Pane) -> None:
    """Refuse a pane where an earlier command runs, but when it is over in a moment.

    What it printed last may have been waited for. A shell without a program may be on its way to its prompt. A command
    that is a shell, or has started one, leaves the pane to that.
    """
    begin = anyio.current_time()
    _return_to_outer_job(pane)
    while (job := pane.job) and not _is_over(job):
        await pane.check_running()
        if await _has_started_shell(pane, job):
            if pane.job is job:
                pane.outer_jobs.append(job)
                pane.job = None
            return
        is_at_work = foreground_shell(pane.process.pid) == job.shell or _is_between_programs(pane)
        if not is_at_work or anyio.current_time() > begin + _PROMPT_S:
            raise BusyError(pane.id, job.command, job.runtime_s)
        await anyio.sleep(_HOOK_S)
    if job:
        job.remove()


def _is_between_programs(pane: Pane) -> bool:
    """Tell whether what had the terminal has ended and nothing has taken its place yet."""
    stat = linux.read_stat(pane.process.pid)
    return stat is not None and stat.tpgid > 0 and not linux.is_alive(stat.tpgid)


def _return_to_outer_job(pane: Pane) -> None:
    """Forget jobs that are over, and have the last one that started a shell again when that is gone."""
    while pane.outer_jobs and (pane.job is None or _is_over(pane.job)):
        outer = pane.outer_jobs[-1]
        shell = foreground_shell(pane.process.pid)
        if not _is_over(outer) and shell is not None and shell != outer.shell:
            return
        if pane.job:
            pane.job.remove()
        pane.job = pane.outer_jobs.pop()


async def _has_started_shell(pane: Pane, job: Job | None) -> bool:
    """Tell whether a shell is at its prompt that is not the one which runs the job: so the job has started it."""
    shell = foreground_shell(pane.process.pid)
    if shell is None or (job and shell == job.shell) or not shell.is_interactive():
        return False
    is_at_prompt = await pane.prompts.wait(0.0, starting_s=0.0) == shell
    # Where that which runs the job has ended meanwhile, this is the one that started it.
    return is_at_prompt and (job is None or job.shell.is_running())


def _is_over(job: Job) -> bool:
    return job.is_done() or (job.runtime_s > _TAKE_S if job.start is None else job.is_left())


async def _shell_at_prompt(pane: Pane, deadline: float) -> Shell:
    """Return the shell at its prompt; wait for one that starts until the deadline, and a moment for another."""
    begin = anyio.current_time()
    while True:
        starting_s = max(0.0, deadline - anyio.current_time())
        shell = await pane.prompts.wait(min(_PROMPT_S, starting_s), starting_s=starting_s, is_to_run=True)
        # A program that a prompt's hook runs has the terminal for a while.
        if shell or anyio.current_time() >= min(begin + _PROMPT_S, deadline):
            break
        await anyio.sleep(_HOOK_S)
    if shell is None:
        raise await _no_prompt(pane)
    if not linux.is_in_our_place(shell.pid):
        raise ForeignShellError(pane.id, shell.name)
    return shell


async def _empty_prompt(pane: Pane, deadline: float) -> Shell:
    """Return the shell at its prompt, with nothing typed there; others who type wait for that."""
    shell = await _shell_at_prompt(pane, min(deadline, anyio.current_time() + _PROMPT_S))
    if not (pane.is_line_used or await _may_have_answers(pane, shell) or await pane.is_watched()):
        return shell
    await _clear_line(pane)
    cleared = await pane.prompts.wait(_TAKE_S)
    if cleared is None:
        raise await _no_prompt(pane)
    return cleared


async def _may_have_answers(pane: Pane, shell: Shell) -> bool:
    """Tell whether what was printed outside of runs may have been answered by the terminal, and nobody read that."""
    end = pane.job.end if pane.job else None
    # Fish asks when it starts, and others at each prompt; they read the answers.
    asks = shell.name not in _ASK_NOTHING if end is None else shell.name == "busybox"
    return not asks and await may_be_answered(pane.log, end or 0, pane.log.size)


async def _no_prompt(pane: Pane) -> ToolError:
    """Return the error that tells what is in the foreground instead of a shell at its prompt.

    Raises:
        PaneExitedError: The pane's program has just ended.
    """
    deadline = anyio.current_time() + _ENDING_S
    while (shell := foreground_shell(pane.process.pid)) is None:
        await pane.check_running()
        foreground = (await pane.state()).foreground
        if foreground or anyio.current_time() > deadline:
            return NotAtPromptError(pane.id, foreground)
        await anyio.sleep(_HOOK_S)
    if shell.is_interactive():
        return ShellNotReadyError(pane.id, shell.name)
    return NotAtPromptError(pane.id, (await pane.state()).foreground)


async def _clear_line(pane: Pane) -> None:
    """Press C-c at a prompt until something comes of it; a shell that has just got Escape may swallow one."""
    size = pane.log.size
    async with pane.growth() as growth:
        for _ in range(_MOST_INTERRUPTS):
            await pane.type(INTERRUPT)
            await growth.wait(_ESCAPE_S)
            if pane.log.size > size:
                return


async def _interrupt(pane: Pane, *, is_second: bool) -> float:
    """Press C-c, and the second time also tell the programs in the foreground, which may read that as a key.

    Returns:
        How many seconds they get to end.
    """
    modes = terminals.modes(pane.process.pid)
    with anyio.CancelScope(shield=True):
        async with pane.typing:
            await pane.type(INTERRUPT)
    stat = linux.read_stat(pane.process.pid)
    if is_second and stat and stat.tpgid > 0:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(stat.tpgid, signal.SIGINT)
    return _INTERRUPT_S if modes is None or modes.has_signal_keys else _KEY_INTERRUPT_S


async def _give(pane: Pane, shell: Shell, command: str) -> Job:
    """Have a shell at its prompt run a command."""
    pane.jobs += 1
    job = Job(command, shell, pane.log, pane.client, f"{pane.id.rpartition('-')[2]}.{pane.jobs}")
    try:
        with anyio.CancelScope(shield=True):
            pane.sent.append(pane.sending(job.line, shell))
            await pane.type(job.line)
    except ToolError:
        job.remove()
        raise
    pane.is_line_used = False
    return job


async def _last_exit_code(pane: Pane, shell: Shell) -> int | None:
    """Return the exit code of what a shell at its prompt ran last."""
    async with pane.typing:
        job = await _give(pane, shell, "# exit code")
    async with pane.growth() as growth:
        with anyio.move_on_after(_INTERRUPT_S):
            while not job.is_done():
                await growth.wait(_LOOK_AGAIN_S)
    job.remove()
    return job.code_before


class _Following:
    """A job on its way to its end."""

    def __init__(self, pane: Pane, job: Job, deadline: float) -> None:
        self._pane = pane
        self._job = job
        self._deadline = deadline
        self._interrupts = 0

    async def outcome(self) -> Outcome:
        """Return how the command ends."""
        async with self._pane.growth() as growth:
            reason = await self._reason(growth)
            return await self._outcome(reason)

    async def _outcome(self, reason: str) -> Outcome:
        job = self._job
        state = await self._pane.state()
        start = state.cursor if job.start is None else job.start
        end = state.cursor if job.end is None else job.end
        has_prompt = reason in _HAS_SHELL or (job.start is not None and job.is_left())
        if job.end is None and state.is_running and has_prompt:
            end = _before_prompt(self._pane, start, end)
        code = job.exit_code
        if code is None and reason == "timed_out":
            code = _INTERRUPTED
        elif reason == "given_up":
            code = await _last_exit_code(self._pane, job.shell)
            reason = "interrupted" if code == _INTERRUPTED else reason
        elif reason == "exited":
            code = linux.signal_exit_code(state.signal) if state.signal else state.exit_code
        if reason not in ("running", *_HAS_SHELL):
            job.remove()
        end = max(start, end)
        # An answer that nobody has read stands on the line.
        self._pane.is_line_used |= await may_be_answered(self._pane.log, start, end)
        piece = await read_end(self._pane.log, start, end, MAX_OUTPUT_CHARACTERS, is_line=True)
        return Outcome(reason, code, job.runtime_s, state, piece, start, end)

    async def _reason(self, growth: Growth) -> str:
        """Wait for the end of the command, or of the patience with it."""
        job, pane = self._job, self._pane
        looked_at = 0.0
        while True:
            ended = await pane.ending()
            if job.is_done():
                return "timed_out" if self._interrupts else "done"
            if ended:
                return "exited"
            now = anyio.current_time()
            if now >= looked_at + _LOOK_AGAIN_S:
                looked_at = now
                if reason := await self._left():
                    return reason
                if await _has_started_shell(pane, job):
                    return "shell_interrupted" if self._interrupts else "shell_started"
            # A shell that has not read the line yet would take C-c for that.
            has_begun = job.start is not None or job.runtime_s > _BEGIN_S
            if now >= self._deadline and has_begun:
                if self._interrupts == _MOST_INTERRUPTS:
                    return "running"
                self._deadline = anyio.current_time() + await _interrupt(pane, is_second=self._interrupts > 0)
                self._interrupts += 1
            await growth.wait(max(_LEAST_WAIT_S, min(_LOOK_AGAIN_S, self._deadline - anyio.current_time())))

    async def _check_log(self) -> None:
        """See that the end of the job could be written."""
        if await self._pane.check_log() and not self._job.is_done():
            self._job.remove()
            self._pane.job = None
            raise LogLostError(self._pane.id, str(self._pane.log.path))

    async def _left(self) -> str | None:
        """Return how the shell left the job without its end, or None where it has not."""
        job, pane = self._job, self._pane
        if not job.is_left():
            return None
        if job.start is None:
            # Where the shell is at its prompt again, the line did nothing.
            is_back = job.runtime_s > _PROMPT_S and await pane.prompts.wait(0.0)
            if not is_back and job.runtime_s < _TAKE_S:
                return None
            await self._check_log()
            job.take_back()
            pane.job = None
            raise JobNotTakenError(pane.id, job.shell.name)
        # What it printed last may still be on its way, and what it left in the background may print on.
        size, until = -1, anyio.current_time() + _LATE_S
        while size != pane.log.size and not job.is_done() and anyio.current_time() < until:
            size = pane.log.size
            await anyio.sleep(_QUIET_S)
        if job.is_done() or await pane.ending():
            return None
        await self._check_log()
        if not job.shell.is_running():
            stat = linux.read_stat(job.shell.pid)
            is_same = stat is not None and stat.starttime == job.shell.start[0] and stat.state != "Z"
            return "replaced" if is_same else "shell_ended"
        # Dash has no line editor that sets the modes which a program left behind, and has read what was typed then.
        if job.shell.name == "dash" and terminals.restore(pane.process.pid):
            await _interrupt(pane, is_second=False)
        if await pane.prompts.wait(_TAKE_S) is None:
            return None
        return "timed_out" if self._interrupts else "given_up"
