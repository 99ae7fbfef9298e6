"""Giving commands to the shell in a pane, as jobs, one after another.

A shell takes a job when it is at its prompt and its line is empty. While a shell that a job started
is at its prompt, that shell takes the next jobs. When it ends, the outer job goes on.
"""

import contextlib
import math
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.errors import (
    BusyError,
    LimitReachedError,
    NotAtPromptError,
    OutcomeUnknownError,
    ShellNotReadyError,
    TmuxStuckError,
    ToolError,
)
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.reading import may_be_answered
from tmux_debug_mcp.panes.keyboard import acquire
from tmux_debug_mcp.panes.looking.activity import prompting_shell
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.prompts import AtPrompt, prompt
from tmux_debug_mcp.panes.shells.dialects import Shell, foreground_shell, is_complete, may_go_on
from tmux_debug_mcp.panes.shells.jobs import FileJob, Job, TypedJob
from tmux_debug_mcp.panes.watching import Later, Moment, Need, until
from tmux_debug_mcp.vt.steps import INTERRUPT

from .elsewhere import last_line, opens_at, passes_keys_on

# How many calls may wait for the shell of one pane.
MAX_WAITING = 16
MAX_INTERRUPTS = 2
# The most that the grace periods of all interrupts take together, for descriptions of tools.
MAX_INTERRUPTS_S = MAX_INTERRUPTS * Times().interrupt_s

# Prompts of shells for the rest of a command, and what looks the same. Source: PS2.
_PS2 = re.compile(r"[a-z ]*>|")


@asynccontextmanager
async def reserved_shell(pane: Pane, timeout_s: float = math.inf) -> AsyncIterator[None]:
    """Wait for the calls that came before, and reserve the pane's shell for the block.

    Raises:
        BusyError: Another call still has the shell at the timeout.
        LimitReachedError: Too many calls wait.
    """
    lock = pane.jobs.lock
    if lock.statistics().tasks_waiting >= MAX_WAITING:
        raise LimitReachedError(
            f"{MAX_WAITING} calls are already waiting for this terminal. Wait for their "
            "answers first."
        )
    if not await acquire(lock, pane.clock, timeout_s):
        if pane.jobs.last:
            raise _busy(pane, pane.jobs.last)
        raise BusyError(pane.id, "another call", timeout_s)
    try:
        yield
    finally:
        lock.release()


def _busy(pane: Pane, job: Job) -> BusyError:
    return BusyError(pane.id, " ".join(job.command.split()), job.runtime_s)


async def wait_until_free(pane: Pane) -> None:
    """Give the previous job a moment to end: the caller may have seen its last output.

    Raises:
        BusyError: It still runs.
    """
    times, jobs = pane.clock.times, pane.jobs

    def is_free(moment: Moment) -> bool | Need | Later:
        _return_to_outer_job(pane)
        job = jobs.last
        if job is None or moment.ending or _is_over(job, times):
            return True
        if moment.activity is None:
            return Need.LOOK
        opens = opens_at(moment, job, pane.keyboard.last_sent, times)
        if has_started_shell(moment, job) or moment.now >= opens:
            # The shell that it started is free until that shell ends.
            jobs.outer.append(job)
            jobs.last = None
            return True
        if opens < math.inf:
            return Later(opens)
        return Later(moment.now + times.poll_s) if _may_end_soon(pane, job) else False

    is_now_free, _ = await until(pane, is_free, pane.clock.now() + times.prompt_s)
    if jobs.last and not _is_over(jobs.last, times):
        await pane.check_running()
        if not is_now_free:
            raise _busy(pane, jobs.last)
    if jobs.last:
        jobs.last.remove()


def _is_over(job: Job, times: Times) -> bool:
    if not job.has_begun():
        return job.runtime_s > times.take_s
    return job.is_closed()


def _may_end_soon(pane: Pane, job: Job) -> bool:
    """Return whether the job may be about to end.

    Its shell has the terminal or has ended, or nobody has the terminal: between two programs, or
    after the shell has given it back to pane.sh, right before the shell ends.
    """
    is_back = foreground_shell(pane.leader.pid) == job.shell
    # Check the shell last: once it has ended, pane.sh starts other programs.
    return is_back or _is_terminal_free(pane.leader.pid) or not job.shell.is_running()


def _is_terminal_free(leader_pid: int) -> bool:
    """Return whether only pane.sh has the terminal, or a group that has ended."""
    leader = processes.read_stat(leader_pid)
    if leader is None or leader.tpgid <= 0:
        return False
    if leader.tpgid != leader_pid:
        return not processes.is_alive(leader.tpgid)
    below = map(processes.read_stat, processes.children(leader_pid))
    return all(process is None or process.pgrp != leader_pid for process in below)


def _return_to_outer_job(pane: Pane) -> None:
    """Go back to the job that started an inner shell, once that shell is gone."""
    jobs, times = pane.jobs, pane.clock.times
    while jobs.outer and (jobs.last is None or _is_over(jobs.last, times)):
        outer = jobs.outer[-1]
        shell = foreground_shell(pane.leader.pid)
        is_elsewhere = isinstance(jobs.last, TypedJob) and jobs.last.shell.is_running()
        is_inside = is_elsewhere if shell is None else shell != outer.shell
        if is_inside and not _is_over(outer, times):
            return
        if jobs.last:
            jobs.last.remove()
        jobs.last = jobs.outer.pop()


def has_started_shell(moment: Moment, job: Job | None) -> bool:
    """Return whether a job, or else the pane's command, started a shell that is at its prompt."""
    shell = moment.activity.shell if moment.activity else None
    if shell is None or not moment.takes_commands:
        return False
    # If the shell that runs the job has just ended, this is the shell that started it.
    return job is None or (shell != job.shell and job.shell.is_running())


async def at_prompt(pane: Pane, deadline: float) -> Shell:
    """Wait for the shell to be at its prompt, and return it.

    A starting shell has until the deadline, any other 1 s at most.

    Raises:
        NotAtPromptError: No shell has the terminal.
        ShellNotReadyError: The shell that has it does not reach its prompt.
        PaneExitedError: The pane's program has just ended.
    """
    starting_s = max(0.0, deadline - pane.clock.now())
    timeout_s = min(pane.clock.times.prompt_s, starting_s)
    # A program that a prompt hook runs has the terminal for a while.
    shell = await prompt(AtPrompt(pane, timeout_s, starting_s, to_run=True))
    if shell is None:
        raise await _no_prompt(pane)
    return shell


async def at_empty_prompt(pane: Pane, deadline: float) -> Shell:
    """Wait for the shell to be at its prompt, clear its line if needed, and return it.

    No other call may type meanwhile: see `Keyboard.in_sequence`.

    Raises:
        ToolError: As `at_prompt` does.
    """
    clock, times = pane.clock, pane.clock.times
    shell = await at_prompt(pane, min(deadline, clock.now() + times.prompt_s))
    if await _may_have_text(pane, shell):
        # A shell that just got Escape may swallow a C-c.
        size = pane.log.size
        for _ in range(MAX_INTERRUPTS):
            await pane.keyboard.press(INTERRUPT)
            deadline = clock.now() + times.escape_s
            if (await until(pane, lambda moment: moment.size > size or None, deadline))[0]:
                break
        cleared = await prompt(AtPrompt(pane, times.take_s))
        if cleared is None:
            raise await _no_prompt(pane)
        shell = cleared
    pane.keyboard.release_line()
    return shell


async def _may_have_text(pane: Pane, shell: Shell) -> bool:
    """Return whether the shell's line may contain text from a call, a person or the terminal."""
    if pane.keyboard.is_line_used and not await _has_new_prompt(pane):
        return True
    # The terminal may have answered a query outside of jobs, and nobody has read the answer.
    end = pane.jobs.last.end if pane.jobs.last else None
    dialect = shell.dialect
    reads_answers = dialect.asks or (end is None and dialect.asks_when_starting)
    if not reads_answers:
        await pane.drain_prompt()
        if await may_be_answered(pane.log, end or 0, pane.log.size):
            return True
    return await pane.is_attended()


async def _has_new_prompt(pane: Pane) -> bool:
    """Return whether the shell has shown a new prompt for a command since the last Enter.

    After an incomplete line it shows another prompt (PS2), where the next line would continue the
    command. So the prompt must be the one from before the typed lines, and none of them may look
    incomplete; or, where prompts change, all of them must surely be complete.
    """
    keyboard, log = pane.keyboard, pane.log
    sent = keyboard.last_sent
    lines = [line for line in keyboard.typed_lines if line is not None]
    if sent is None or keyboard.typed_lines[-1] is None:
        return False
    await pane.drain_prompt()
    prompt = await last_line(log, sent.cursor, log.size)
    if _PS2.fullmatch(prompt):
        return False
    if len(lines) == len(keyboard.typed_lines) and all(map(is_complete, lines)):
        return True
    before = keyboard.empty_prompt
    is_same = before is not None and prompt == await last_line(log, 0, before)
    return is_same and not any(map(may_go_on, lines))


async def _no_prompt(pane: Pane) -> ToolError:
    """Return the error that names what has the terminal instead of a shell at its prompt."""
    await pane.check_running()
    shell, state = foreground_shell(pane.leader.pid), await pane.state()
    if shell and shell.is_interactive() and state.pid in (None, shell.pid):
        return ShellNotReadyError(pane.id, shell.name)
    return NotAtPromptError(pane.id, state.foreground or "a program")


async def interrupt(pane: Pane, *, is_second: bool) -> float:
    """Press C-c, and the second time also send SIGINT, for programs that read C-c as a key.

    What passes keys on only gets the key. Return the grace period in seconds.
    """
    times, leader = pane.clock.times, pane.leader.pid
    modes = terminals.modes(leader)
    is_passed_on = passes_keys_on(pane)
    await pane.keyboard.press(INTERRUPT)
    stat = processes.read_stat(leader)
    if is_second and stat and stat.tpgid > 0 and not is_passed_on:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(stat.tpgid, signal.SIGINT)
    if modes is None or modes.has_signal_keys or is_passed_on:
        return times.interrupt_s
    return times.key_interrupt_s


async def give(pane: Pane, shell: Shell, command: str) -> FileJob:
    """Give a shell at its empty prompt a command to run.

    Raises:
        OutcomeUnknownError: tmux does not answer, and the shell may have begun.
        ToolError: The line could not be typed. Nothing was run, and nothing will be.
    """
    name = pane.jobs.new_name(pane.id)
    if pane.jobs.last:  # its output has ended, which its own call may not have seen yet
        pane.jobs.last.next_from = pane.log.size
    job = FileJob(command, shell, pane.log, pane.client, name, pane.clock)
    try:
        with anyio.CancelScope(shield=True):
            async with pane.keyboard.lock:
                pane.keyboard.begin(job.line)
                await pane.keyboard.type(job.line)
    except ToolError as error:
        if not job.cancel():
            pane.jobs.last = job
            pane.leave_run(job)
            raise OutcomeUnknownError(str(error)) from error
        if isinstance(error, TmuxStuckError):
            nothing_run = TmuxStuckError.NOTHING_RUN
            raise TmuxStuckError(error.socket, error.reason, nothing_run) from error
        raise
    pane.keyboard.release_line()
    pane.jobs.typed(job)
    return job


async def last_exit_code(pane: Pane, job: FileJob) -> int | None:
    """Return the exit code of what a job's shell, which is at its prompt, has run last.

    None without an answer, or if somebody is typing, or has typed at the prompt since the job.
    """
    keyboard, times = pane.keyboard, pane.clock.times
    if keyboard.holder or keyboard.sequence.locked():
        return None
    async with keyboard.in_sequence(0):
        start = job.start or 0
        if any(sent.cursor >= start and prompting_shell(sent.before) for sent in keyboard.sent):
            return None
        asked = await give(pane, job.shell, "# exit code")

        def is_done(moment: Moment) -> bool | Need | Later:
            if not (asked.is_done() or moment.ending):
                return Later(moment.now + times.job_poll_s)
            return Need.DRAIN if moment.is_drained is None else True

        await until(pane, is_done, pane.clock.now() + times.interrupt_s)
    asked.conclude()
    asked.remove()
    return asked.code_before
