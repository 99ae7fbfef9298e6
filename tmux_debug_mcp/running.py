"""Running a command in a shell's pane, or in a pane of its own: its complete output and its true exit code."""

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from . import linux
from .errors import (
    BusyError,
    ForeignShellError,
    JobNotTakenError,
    LimitReachedError,
    LogLostError,
    NotAtPromptError,
    ToolError,
)
from .jobs import Job
from .keys import Keystrokes
from .logs import Growth
from .panes import Pane, State
from .reading import Piece, read_end
from .shells import Shell, foreground_shell

MAX_OUTPUT_CHARACTERS = 40_000
MAX_WAITING = 16

_INTERRUPTED = 130
_SYNTAX_ERROR = 2
_INTERRUPT = Keystrokes("", is_paste=False, keys=("C-c",), done="")
# What a shell is still doing when it is asked to run something, such as printing its prompt.
_PROMPT_S = 1.0
_HOOK_S = 0.01
# Shells wait for so long for what follows Escape.
_ESCAPE_S = 0.06
# A shell reads a line at once, but what it does before a command may take a while.
_TAKE_S = 10.0
_MOST_INTERRUPTS = 2
# Each interrupt gets this long to end the command.
_INTERRUPT_S = 2.0
# How often to look at what leaves no trace in the log: exec, and a shell that gave a command up.
_LOOK_AGAIN_S = 0.05
# All that was printed has come to the log when it has been quiet for so long.
_QUIET_S = 0.25
_LATE_S = 1.0
# A prompt is shorter, with all that draws it.
_PROMPT_BYTES = 4096
# What bash 5.2 corrupts its memory at when it is not finished at the end of a file.
_SUBSTITUTION = re.compile(r"[$<>]\(")
# What a terminal answers as if it were typed, asked for by a program that may not have read the answer.
_QUESTION = re.compile(rb"\x1b[^\x18\x1a\x1b -~]*\[[^\x18\x1a\x1b@-~]*[cn]")
_QUESTION_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        reason: `done`; `interrupted`, by somebody else; `timed_out`, and then it was interrupted; `running`, when
            that did not end it; `given_up` by the shell, for an error; `exited`, the pane's program ended or was
            lost; `shell_ended`, a shell within another one ended; `replaced`, by a program given to `exec`.
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
        }.get(self.reason)


async def run_in_shell(pane: Pane, command: str, timeout_s: float) -> Outcome:
    """Run a command in the shell that is at its prompt in a pane.

    Raises:
        PaneExitedError: The pane's program has ended.
        PaneLostError: The pane is gone.
        BusyError: An earlier command still runs there.
        NotAtPromptError: What has the terminal is no shell at its prompt.
        ForeignShellError: The shell is another user's, or sees other files than we do.
        JobNotTakenError: The shell did not take the command.
        LogLostError: It did, and the log has no room for what came of it.
        StorageError: There is no room for the command's file.
    """
    async with pane.typing:
        await _wait_until_free(pane)
        await pane.check_running()
        await pane.check_log()
        shell = await _shell_at_prompt(pane)
        if error := await _unfinished(shell, command):
            state = await pane.state()
            at = state.cursor
            return Outcome("done", _SYNTAX_ERROR, 0.0, state, Piece(error, at, at), at, at)
        pane.job = job = await _give(pane, shell, command)
    return await _Following(pane, job, timeout_s).outcome()


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
    deadline = anyio.current_time() + timeout_s
    async with pane.growth() as growth:
        while not await pane.ending():
            if anyio.current_time() >= deadline:
                if interrupts == _MOST_INTERRUPTS:
                    break
                await _interrupt(pane, is_second=interrupts > 0)
                interrupts += 1
                deadline = anyio.current_time() + _INTERRUPT_S
            await growth.wait(deadline - anyio.current_time())
        state = await pane.state()
        code = state.exit_code
        reason = "exited" if state.is_lost else "timed_out" if interrupts else "done"
        reason = "running" if state.is_running else reason
        if state.signal:
            code = linux.signal_exit_code(state.signal)
        piece = await read_end(pane.log, 0, state.cursor, MAX_OUTPUT_CHARACTERS)
        return Outcome(reason, code, state.runtime_s, state, piece, 0, state.cursor)


async def _wait_until_free(pane: Pane) -> None:
    """Refuse a pane where an earlier command runs, but when it is over in a moment.

    What it printed last may have been waited for. A shell without a program may be on its way to its prompt.
    """
    begin = anyio.current_time()
    while (job := pane.job) and not _is_over(job):
        await pane.check_running()
        is_at_work = foreground_shell(pane.process.pid) == job.shell
        if not is_at_work or anyio.current_time() > begin + _PROMPT_S:
            raise BusyError(pane.id, job.command, job.runtime_s)
        await anyio.sleep(_HOOK_S)
    if job:
        job.remove()


def _is_over(job: Job) -> bool:
    return job.is_done() or (job.runtime_s > _TAKE_S if job.start is None else job.is_left())


async def _shell_at_prompt(pane: Pane) -> Shell:
    """Return the shell at its prompt, with nothing typed there."""
    begin = anyio.current_time()
    # A program that a prompt's hook runs has the terminal for a while.
    while (
        not (shell := await pane.prompts.wait(_PROMPT_S, is_to_run=True)) and anyio.current_time() < begin + _PROMPT_S
    ):
        await anyio.sleep(_HOOK_S)
    if shell and (pane.is_line_used or await pane.is_watched()):
        await _clear_line(pane)
        shell = await pane.prompts.wait(_TAKE_S)
    if shell is None:
        state = await pane.state()
        raise NotAtPromptError(pane.id, state.foreground)
    if not linux.is_in_our_place(shell.pid):
        raise ForeignShellError(pane.id, shell.name)
    return shell


async def _clear_line(pane: Pane) -> None:
    """Press C-c at a prompt until something comes of it; a shell that has just got Escape may swallow one."""
    size = pane.log.size
    async with pane.growth() as growth:
        for _ in range(_MOST_INTERRUPTS):
            await pane.type(_INTERRUPT)
            await growth.wait(_ESCAPE_S)
            if pane.log.size > size:
                return


async def _unfinished(shell: Shell, command: str) -> str | None:
    """Return what bash says of a command whose substitution does not end."""
    if shell.name != "bash" or not _SUBSTITUTION.search(command):
        return None
    argv = [f"/proc/{shell.pid}/exe", "--norc", "-O", "extglob", "-n"]
    checked = await anyio.run_process(argv, input=command.encode() + b"\n", check=False, env={"LC_ALL": "C"})
    said = checked.stderr.decode(errors="replace").replace(argv[0], shell.name)
    return said if checked.returncode and "matching `)'" in said else None


async def _interrupt(pane: Pane, *, is_second: bool) -> None:
    """Press C-c, and the second time also tell the programs in the foreground, which may read that as a key."""
    with anyio.CancelScope(shield=True):
        async with pane.typing:
            await pane.type(_INTERRUPT)
    stat = linux.read_stat(pane.process.pid)
    if is_second and stat and stat.tpgid > 0:
        try:
            os.killpg(stat.tpgid, signal.SIGINT)
        except (ProcessLookupError, PermissionError):
            return


async def _give(pane: Pane, shell: Shell, command: str) -> Job:
    """Have a shell at its prompt run a command."""
    pane.jobs += 1
    job = Job(command, shell, pane.log, pane.client.directory / f"{pane.id.rpartition('-')[2]}.{pane.jobs}")
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

    def __init__(self, pane: Pane, job: Job, timeout_s: float) -> None:
        self._pane = pane
        self._job = job
        self._deadline = anyio.current_time() + timeout_s
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
        end = self._end_of_output(start, state) if job.end is None else job.end
        code = job.exit_code
        if code is None and reason == "timed_out":
            code = _INTERRUPTED
        elif reason == "given_up":
            code = await _last_exit_code(self._pane, job.shell)
            reason = "interrupted" if code == _INTERRUPTED else reason
        elif reason == "exited":
            code = linux.signal_exit_code(state.signal) if state.signal else state.exit_code
        if reason != "running":
            job.remove()
        asked_from = max(start, end - _QUESTION_BYTES)
        if _QUESTION.search(self._pane.log.read(asked_from, end - asked_from)):
            self._pane.is_line_used = True
        end = max(start, end)
        piece = await read_end(self._pane.log, start, end, MAX_OUTPUT_CHARACTERS, is_line=True)
        return Outcome(reason, code, job.runtime_s, state, piece, start, end)

    def _end_of_output(self, start: int, state: State) -> int:
        """Return where the output ends without a mark: before the prompt, if one has come."""
        if not state.is_running or self._job.start is None or not self._job.is_left():
            return state.cursor
        tail_from = max(start, state.cursor - _PROMPT_BYTES)
        tail = self._pane.log.read(tail_from, state.cursor - tail_from)
        return tail_from + tail.rfind(b"\n") + 1

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
            if now >= self._deadline:
                if self._interrupts == _MOST_INTERRUPTS:
                    return "running"
                await _interrupt(pane, is_second=self._interrupts > 0)
                self._interrupts += 1
                self._deadline = anyio.current_time() + _INTERRUPT_S
            await growth.wait(min(_LOOK_AGAIN_S, self._deadline - anyio.current_time()))

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
        if job.shell.name == "dash" and linux.restore_terminal(pane.process.pid):
            await _interrupt(pane, is_second=False)
        if await pane.prompts.wait(_TAKE_S) is None:
            return None
        return "timed_out" if self._interrupts else "given_up"
