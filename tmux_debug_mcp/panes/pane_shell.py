"""The shell in a pane, and the jobs that it is given one after the other.

A shell takes a job when it is at its prompt and nothing is typed on its line. While a shell that a
job has started is at its prompt, that shell takes the next jobs. When it ends, the first job goes
on.
"""

import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.errors import (
    BusyError,
    ForeignShellError,
    LimitReachedError,
    NotAtPromptError,
    ShellNotReadyError,
    ToolError,
)
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import clean_text, may_be_answered
from tmux_debug_mcp.vt.keys import INTERRUPT
from tmux_debug_mcp.vt.marks import one_line

from .keyboard import Keyboard
from .shells.dialects import Shell, foreground_shell, is_complete, may_go_on
from .shells.jobs import Job
from .tmux_pane import TmuxPane

# Calls that may wait for their turn in one pane.
MAX_WAITING = 16
MAX_INTERRUPTS = 2
# The grace periods of all interrupts together, at most, for descriptions of tools.
MAX_INTERRUPTS_S = MAX_INTERRUPTS * Times().interrupt_s

# A screen and its history name so many commands.
_MAX_COMMANDS = 1000
# A prompt, with all sequences that draw it, is shorter.
_MAX_PROMPT_BYTES = 4096
# Prompts of shells for the rest of a command, and what can't be told from them. Source: PS2.
_PS2 = re.compile(r"[a-z ]*>|")


class PaneShell:
    """The shell in a pane, which is given commands as jobs.

    Only this changes which job the pane has.

    Args:
        pane: The pane.
        keyboard: Its keyboard.

    Attributes:
        job: The job that the shell was given last, unless it was dropped.
    """

    def __init__(self, pane: TmuxPane, keyboard: Keyboard) -> None:
        self._pane = pane
        self._clock = pane.clock
        self._times = pane.clock.times
        self._keyboard = keyboard
        self.job: Job | None = None
        self._given = 0
        self._commands: dict[str, str] = {}
        self._unreported: Job | None = None
        self._outer: list[Job] = []  # jobs that have started the shells which got later ones
        self._turns = anyio.Lock()

    @property
    def commands(self) -> Mapping[str, str]:
        """The last 1,000 commands, each in one line, by the names of their files."""
        return self._commands

    @asynccontextmanager
    async def turn(self, timeout_s: float) -> AsyncIterator[None]:
        """Have the pane for the time of the block, after the calls that came before.

        Args:
            timeout_s: The time to wait for this call's turn.

        Raises:
            BusyError: It is not this call's turn within the timeout.
            LimitReachedError: Too many calls wait.
        """
        if self._turns.statistics().tasks_waiting >= MAX_WAITING:
            raise LimitReachedError(
                f"{MAX_WAITING} calls wait for this terminal already. Wait for their answers first."
            )
        await self._acquire_turn(timeout_s)
        try:
            yield
        finally:
            self._turns.release()

    async def _acquire_turn(self, timeout_s: float) -> None:
        try:
            self._turns.acquire_nowait()
        except anyio.WouldBlock:
            with self._clock.move_on_after(timeout_s) as waiting:
                await self._turns.acquire()
            if not waiting.cancelled_caught:
                return
            if self.job:
                raise self._busy(self.job) from None
            raise BusyError(self._pane.id, "another call", timeout_s) from None

    def _busy(self, job: Job) -> BusyError:
        return BusyError(self._pane.id, job.command, job.runtime_s)

    async def wait_until_free(self) -> None:
        """Wait a moment for the end of the job before, whose last output the caller may have seen.

        Raises:
            BusyError: It goes on.
            PaneExitedError: The pane's program has ended.
            PaneLostError: The pane is gone.
        """
        deadline = self._clock.now() + self._times.prompt_s
        self._return_to_outer_job()
        while self.job and not self._is_over(self.job):
            job = self.job
            await self._pane.check_running()
            if await self.has_started_shell(job):
                self._make_outer(job)
                return
            if not self._may_end_soon(job) or self._clock.now() > deadline:
                raise self._busy(job)
            await self._clock.sleep(self._times.poll_s)
            self._return_to_outer_job()
        if self.job:
            self.job.remove()

    def _make_outer(self, job: Job) -> None:
        """Put a job aside until the shell that it has started ends; that shell is free."""
        # Unless another call did so while this one looked at the pane.
        if self.job is job:
            self._outer.append(job)
            self.job = None

    def _is_over(self, job: Job) -> bool:
        if job.is_done():
            return True
        if job.start is None:
            return job.runtime_s > self._times.take_s
        return job.is_closed()

    def _may_end_soon(self, job: Job) -> bool:
        """Tell whether the job's end may be on its way.

        Its shell has the terminal or has ended, or nobody has the terminal between two programs.
        """
        if not job.shell.is_running():
            return True
        leader = self._pane.leader.pid
        if foreground_shell(leader) == job.shell:
            return True
        stat = processes.read_stat(leader)
        return stat is not None and stat.tpgid > 0 and not processes.is_alive(stat.tpgid)

    def _return_to_outer_job(self) -> None:
        """Go back to the job that started an inner shell, once that shell is gone."""
        while self._outer and (self.job is None or self._is_over(self.job)):
            outer = self._outer[-1]
            shell = foreground_shell(self._pane.leader.pid)
            if not self._is_over(outer) and shell is not None and shell != outer.shell:
                return
            if self.job:
                self.job.remove()
            self.job = self._outer.pop()

    async def has_started_shell(self, job: Job | None) -> bool:
        """Tell whether a job has started a shell that is at its prompt.

        Args:
            job: The job; None for the command that the pane was made for.
        """
        shell = foreground_shell(self._pane.leader.pid)
        if shell is None or (job and shell == job.shell) or not shell.is_interactive():
            return False
        is_at_prompt = await self._pane.terminal.prompt(0.0, starting_s=0.0) == shell
        # When the shell that runs the job has ended meanwhile, this is the shell that started it.
        return is_at_prompt and (job is None or job.shell.is_running())

    async def at_prompt(self, deadline: float) -> Shell:
        """Return the shell at its prompt.

        Args:
            deadline: The end of the time for a shell that starts. Another gets 1 s at most.

        Raises:
            NotAtPromptError: No shell has the terminal.
            ShellNotReadyError: One has, which does not come to its prompt.
            ForeignShellError: It is another user's, or sees other files than we do.
            PaneExitedError: The pane's program has just ended.
        """
        terminal = self._pane.terminal
        begin = self._clock.now()
        while True:
            starting_s = max(0.0, deadline - self._clock.now())
            timeout_s = min(self._times.prompt_s, starting_s)
            shell = await terminal.prompt(timeout_s, starting_s=starting_s, is_to_run=True)
            # A program that a prompt's hook runs has the terminal for a while.
            if shell or self._clock.now() >= min(begin + self._times.prompt_s, deadline):
                break
            await self._clock.sleep(self._times.poll_s)
        if shell is None:
            raise await self._no_prompt()
        if not processes.shares_our_files(shell.pid):
            raise ForeignShellError(self._pane.id, shell.name)
        return shell

    async def at_empty_prompt(self, deadline: float) -> Shell:
        """Return the shell at its prompt with nothing typed there.

        The keyboard's lock must be held.

        Raises:
            ToolError: As `at_prompt` does.
        """
        shell = await self.at_prompt(min(deadline, self._clock.now() + self._times.prompt_s))
        if await self._may_have_text(shell):
            await self._clear_line()
            cleared = await self._pane.terminal.prompt(self._times.take_s)
            if cleared is None:
                raise await self._no_prompt()
            shell = cleared
        self._keyboard.release_line()
        return shell

    async def _may_have_text(self, shell: Shell) -> bool:
        """Tell whether the shell's line may have text, of a call, a person or a terminal."""
        if self._keyboard.is_line_used and not await self._has_new_prompt():
            return True
        return await self._may_have_answers(shell) or await self._pane.is_attended()

    async def _has_new_prompt(self) -> bool:
        """Tell whether the shell shows a new prompt for a command since Enter was pressed last.

        After an incomplete line it shows another prompt (PS2), where the next line would become a
        part of that command. So the prompt has to be the one from before the typed lines, and none
        of them to look incomplete; or, where prompts change, all of them to be surely complete.
        """
        keyboard, log = self._keyboard, self._pane.log
        sent = keyboard.last_sent
        lines = [line for line in keyboard.typed_lines if line is not None]
        if sent is None or keyboard.typed_lines[-1] is None:
            return False
        await self._pane.drain()
        prompt = await _last_line(log, sent.cursor, log.size)
        if _PS2.fullmatch(prompt):
            return False
        if len(lines) == len(keyboard.typed_lines) and all(map(is_complete, lines)):
            return True
        before = keyboard.empty_prompt
        is_same = before is not None and prompt == await _last_line(log, 0, before)
        return is_same and not any(map(may_go_on, lines))

    async def _may_have_answers(self, shell: Shell) -> bool:
        """Tell whether the terminal may have answered output outside of jobs, with no reader."""
        end = self.job.end if self.job else None
        dialect = shell.dialect
        reads_answers = dialect.asks or (end is None and dialect.asks_when_starting)
        log = self._pane.log
        return not reads_answers and await may_be_answered(log, end or 0, log.size)

    async def _no_prompt(self) -> ToolError:
        """Return the error that names what has the terminal instead of a shell at its prompt.

        Raises:
            PaneExitedError: The pane's program has just ended.
        """
        pane = self._pane
        deadline = self._clock.now() + self._times.ending_s
        while True:
            shell = foreground_shell(pane.leader.pid)
            if shell:
                break
            await pane.check_running()
            foreground = (await pane.state()).foreground
            if foreground or self._clock.now() > deadline:
                return NotAtPromptError(pane.id, foreground or "a program")
            await self._clock.sleep(self._times.poll_s)
        if shell.is_interactive():
            return ShellNotReadyError(pane.id, shell.name)
        foreground = (await pane.state()).foreground
        return NotAtPromptError(pane.id, foreground or "a program")

    async def _clear_line(self) -> None:
        """Press C-c at a prompt until it works; a shell that just got Escape may eat one."""
        log = self._pane.log
        size = log.size
        async with self._pane.subscribe() as subscription:
            for _ in range(MAX_INTERRUPTS):
                await self._keyboard.type(INTERRUPT)
                await subscription.wait(self._times.escape_s)
                if log.size > size:
                    return

    async def interrupt(self, *, is_second: bool) -> float:
        """Press C-c, and the second time also send SIGINT to programs that read C-c as a key.

        Returns:
            The grace period in seconds.
        """
        leader = self._pane.leader.pid
        modes = terminals.modes(leader)
        await self._keyboard.press(INTERRUPT)
        stat = processes.read_stat(leader)
        if is_second and stat and stat.tpgid > 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(stat.tpgid, signal.SIGINT)
        if modes is None or modes.has_signal_keys:
            return self._times.interrupt_s
        return self._times.key_interrupt_s

    async def give(self, shell: Shell, command: str) -> Job:
        """Give a shell at its empty prompt a command to run. The keyboard's lock must be held.

        Raises:
            PaneLostError: The pane is gone.
            StorageError: There is no room for the job's files.
        """
        self.job = await self._type_job(shell, command)
        return self.job

    async def _type_job(self, shell: Shell, command: str) -> Job:
        pane = self._pane
        self._given += 1
        name = f"{pane.id.rpartition('-')[2]}.{self._given}"
        job = Job(command, shell, pane.log, pane.client, name, self._clock)
        try:
            with anyio.CancelScope(shield=True):
                self._keyboard.expect_echo(job.line, shell)
                await self._keyboard.type(job.line)
        except ToolError:
            job.remove()
            raise
        self._keyboard.release_line()
        self._commands[job.file_name] = one_line(command)
        while len(self._commands) > _MAX_COMMANDS:
            del self._commands[next(iter(self._commands))]
        return job

    def drop_job(self) -> None:
        """Forget the job that the shell was given last, which it has not run."""
        self.job = None

    def report_later(self, job: Job) -> None:
        """Report the end of a job in a later result, since its call returned before it ended."""
        self._unreported = job

    def take_run_result(self) -> str | None:
        """Return how a job ended that was answered before its end, once; None while it runs."""
        job = self._unreported
        if job is None or not (job.is_done() or job.is_closed() or self._pane.has_ended):
            return None
        # The shell closes the script right after it has printed the end mark, which may not be in
        # the log yet. A later result tells the end then.
        if not job.is_done() and self._pane.has_just_printed:
            return None
        self._unreported = None
        job.remove()
        if job.exit_code is not None:
            return f"run ended with code {job.exit_code}"
        if job.shell.is_running():
            return "run was interrupted or given up by the shell"
        if self._pane.has_ended:
            return None
        return "the shell that ran it has ended or was replaced"

    async def last_exit_code(self, shell: Shell) -> int | None:
        """Return the exit code of what a shell at its prompt ran last, None without an answer."""
        async with self._keyboard.lock:
            job = await self._type_job(shell, "# exit code")
        async with self._pane.subscribe() as subscription:
            with self._clock.move_on_after(self._times.interrupt_s):
                while not job.is_done():
                    await subscription.wait(self._times.job_poll_s)
        job.remove()
        return job.code_before


async def _last_line(log: Log, start: int, end: int) -> str:
    """Return the clean text of the last line in a part of a log, without blanks around it."""
    start = max(start, log.kept_from, end - _MAX_PROMPT_BYTES)
    data = log.read(start, end - start)
    text = await clean_text(log, data, start, is_line=False)
    return text.rpartition("\n")[2].strip()
