"""Running a command, in a shell's pane or in a new one, for its output and exit code.

A run ends with its command, or at its timeout, when it interrupts the command. It also ends when
the command awaits something, since waiting would last until the timeout; the command then goes on
without an interrupt.

A run reads no output. Its caller does, and keeps the log of the pane open from before the run, so
that a kill right after the command was typed leaves the output.

A command runs at most once. Only if it surely has not begun is it given to the shell again, or an
error says that nothing was run.
"""

import anyio

from tmux_debug_mcp.errors import (
    JobNotTakenError,
    LogLostError,
    OutcomeUnknownError,
    ToolError,
)
from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.panes.shells.dialects import unfinished

from .following import follow_job, follow_pane
from .giving import at_empty_prompt, at_prompt, give, wait_until_free

MAX_OUTPUT_CHARACTERS = 40_000
# The exit code that shells report for a syntax error.
_SYNTAX_ERROR = 2


async def run_in_shell(pane: Pane, command: str, timeout_s: float) -> Report:
    """Run a command in the shell that is at its prompt in a pane.

    The timeout covers both reaching the prompt and the command.

    Raises:
        BusyError: An earlier command still runs there.
        NotAtPromptError: The program that has the terminal is not a shell.
        ShellNotReadyError: A shell has the terminal, but does not reach its prompt in time.
        ForeignShellError: The shell is another user's, or sees other files than we do.
        JobNotTakenError: The shell did not take the command.
        LogLostError: The shell took it, but its output could not be written to the log.
        OutcomeUnknownError: The shell may have taken it, but tmux no longer answers.
    """
    deadline = pane.clock.now() + timeout_s
    try:
        return await _run_once(pane, command, deadline)
    except JobNotTakenError:
        # A late answer of the terminal became the beginning of our line, or swallowed a key of it.
        # Now the answer is gone.
        return await _run_once(pane, command, deadline)


async def _run_once(pane: Pane, command: str, deadline: float) -> Report:
    await wait_until_free(pane)
    await pane.check_running()
    pane.keyboard.check_free()
    # Before the other calls are kept waiting, since this may take a while.
    await at_prompt(pane, deadline)
    async with pane.keyboard.in_sequence(deadline - pane.clock.now()):
        await wait_until_free(pane)
        await pane.check_running()
        await pane.ensure_log_writer()
        shell = await at_empty_prompt(pane, deadline)
        error = await unfinished(pane.clock, shell, command)
        if error:  # the shell does not get it
            state = await pane.state()
            excerpt = Excerpt(error.removesuffix("\n").split("\n"), [])
            end = state.cursor
            return Report(Reason.DONE, pane, state, end, end, excerpt, exit_code=_SYNTAX_ERROR)
        job = pane.jobs.last = await give(pane, shell, command)
    try:
        return await follow_job(pane, job, deadline)
    except anyio.get_cancelled_exc_class():
        pane.leave_run(job)  # it goes on
        raise
    except (JobNotTakenError, LogLostError):
        raise
    except ToolError as cause:
        pane.leave_run(job)
        raise OutcomeUnknownError(str(cause)) from cause


async def run_in_pane(pane: Pane, timeout_s: float) -> Report:
    """Follow the command that a pane was made for to its end; interrupt it at the timeout.

    Raises:
        OutcomeUnknownError: tmux no longer answers.
    """
    deadline = pane.clock.now() + timeout_s
    try:
        return await follow_pane(pane, deadline)
    except ToolError as error:
        raise OutcomeUnknownError(str(error)) from error
