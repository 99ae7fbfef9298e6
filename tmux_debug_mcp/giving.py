"""Giving a shell a command: when it is free, at its prompt, and with nothing typed on its line."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from . import linux, terminals
from .errors import (
    BusyError,
    ForeignShellError,
    LimitReachedError,
    NotAtPromptError,
    ShellNotReadyError,
    ToolError,
)
from .jobs import Job
from .keys import INTERRUPT
from .marks import shown
from .panes import Pane
from .reading import may_be_answered
from .shells import Shell, foreground_shell

MAX_WAITING = 16
# What a shell is still doing when it is asked to run something, such as printing its prompt.
PROMPT_S = 1.0
# A shell reads a line at once, but what it does before a command may take a while.
TAKE_S = 10.0
MOST_INTERRUPTS = 2
# Each interrupt gets this long to end the command; and where C-c is a key like others, this long.
_INTERRUPT_S = 2.0
_KEY_INTERRUPT_S = 0.5
# The most that both come to.
MAX_INTERRUPTS_S = MOST_INTERRUPTS * _INTERRUPT_S

# A screen and its history name so many commands.
_REMEMBERED = 1000
_HOOK_S = 0.01
# That a program has ended is known some milliseconds after it has the terminal no more.
_ENDING_S = 0.5
# Shells wait for so long for what follows Escape.
_ESCAPE_S = 0.06
# How often to look at what leaves no trace in the log.
_LOOK_AGAIN_S = 0.05
# A prompt is shorter, with all that draws it.
_PROMPT_BYTES = 4096


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


def before_prompt(pane: Pane, start: int, end: int) -> int:
    """Return where the output ends that begins at `start`, when a prompt is what stands before `end`."""
    tail_from = max(start, end - _PROMPT_BYTES)
    tail = pane.log.read(tail_from, end - tail_from)
    return tail_from + tail.rfind(b"\n") + 1


async def wait_until_free(pane: Pane) -> None:
    """Refuse a pane where an earlier command runs, but when it is over in a moment.

    What it printed last may have been waited for. A shell without a program may be on its way to its prompt. A command
    that is a shell, or has started one, leaves the pane to that.
    """
    begin = anyio.current_time()
    _return_to_outer_job(pane)
    while (job := pane.job) and not _is_over(job):
        await pane.check_running()
        if await has_started_shell(pane, job):
            if pane.job is job:
                pane.outer_jobs.append(job)
                pane.job = None
            return
        is_at_work = foreground_shell(pane.process.pid) == job.shell or _is_between_programs(pane)
        if not is_at_work or anyio.current_time() > begin + PROMPT_S:
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


async def has_started_shell(pane: Pane, job: Job | None) -> bool:
    """Tell whether a shell is at its prompt that is not the one which runs the job: so the job has started it."""
    shell = foreground_shell(pane.process.pid)
    if shell is None or (job and shell == job.shell) or not shell.is_interactive():
        return False
    is_at_prompt = await pane.terminal.prompt(0.0, starting_s=0.0) == shell
    # Where that which runs the job has ended meanwhile, this is the one that started it.
    return is_at_prompt and (job is None or job.shell.is_running())


def _is_over(job: Job) -> bool:
    return job.is_done() or (job.runtime_s > TAKE_S if job.start is None else job.is_left())


async def shell_at_prompt(pane: Pane, deadline: float) -> Shell:
    """Return the shell at its prompt; wait for one that starts until the deadline, and a moment for another."""
    begin = anyio.current_time()
    while True:
        starting_s = max(0.0, deadline - anyio.current_time())
        shell = await pane.terminal.prompt(min(PROMPT_S, starting_s), starting_s=starting_s, is_to_run=True)
        # A program that a prompt's hook runs has the terminal for a while.
        if shell or anyio.current_time() >= min(begin + PROMPT_S, deadline):
            break
        await anyio.sleep(_HOOK_S)
    if shell is None:
        raise await _no_prompt(pane)
    if not linux.is_in_our_place(shell.pid):
        raise ForeignShellError(pane.id, shell.name)
    return shell


async def empty_prompt(pane: Pane, deadline: float) -> Shell:
    """Return the shell at its prompt, with nothing typed there; others who type wait for that."""
    shell = await shell_at_prompt(pane, min(deadline, anyio.current_time() + PROMPT_S))
    if not (pane.keyboard.is_line_used or await _may_have_answers(pane, shell) or await pane.is_watched()):
        return shell
    await _clear_line(pane)
    cleared = await pane.terminal.prompt(TAKE_S)
    if cleared is None:
        raise await _no_prompt(pane)
    return cleared


async def _may_have_answers(pane: Pane, shell: Shell) -> bool:
    """Tell whether what was printed outside of runs may have been answered by the terminal, and nobody read that."""
    end = pane.job.end if pane.job else None
    # They read the answers.
    asks = shell.kind.asks or (end is None and shell.kind.asks_when_starting)
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
        for _ in range(MOST_INTERRUPTS):
            await pane.keyboard.type(INTERRUPT)
            await growth.wait(_ESCAPE_S)
            if pane.log.size > size:
                return


async def interrupt(pane: Pane, *, is_second: bool) -> float:
    """Press C-c, and the second time also tell the programs in the foreground, which may read that as a key.

    Returns:
        How many seconds they get to end.
    """
    modes = terminals.modes(pane.process.pid)
    await pane.keyboard.press(INTERRUPT)
    stat = linux.read_stat(pane.process.pid)
    if is_second and stat and stat.tpgid > 0:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(stat.tpgid, signal.SIGINT)
    return _INTERRUPT_S if modes is None or modes.has_signal_keys else _KEY_INTERRUPT_S


async def give(pane: Pane, shell: Shell, command: str) -> Job:
    """Have a shell at its prompt run a command."""
    pane.jobs += 1
    job = Job(command, shell, pane.log, pane.client, f"{pane.id.rpartition('-')[2]}.{pane.jobs}")
    try:
        with anyio.CancelScope(shield=True):
            pane.keyboard.expect_echo(job.line, shell)
            await pane.keyboard.type(job.line)
    except ToolError:
        job.remove()
        raise
    pane.keyboard.is_line_used = False
    pane.commands[job.file_name] = shown(command)
    while len(pane.commands) > _REMEMBERED:
        del pane.commands[next(iter(pane.commands))]
    return job


async def last_exit_code(pane: Pane, shell: Shell) -> int | None:
    """Return the exit code of what a shell at its prompt ran last."""
    async with pane.keyboard.lock:
        job = await give(pane, shell, "# exit code")
    async with pane.growth() as growth:
        with anyio.move_on_after(_INTERRUPT_S):
            while not job.is_done():
                await growth.wait(_LOOK_AGAIN_S)
    job.remove()
    return job.code_before
