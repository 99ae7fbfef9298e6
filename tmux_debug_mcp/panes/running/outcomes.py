"""The outcome of a run: how a command ended, or why the run did not wait for that. No I/O."""

from dataclasses import dataclass
from enum import StrEnum

from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.panes.looking.state import State

_RUNS_SHELL = "it runs a shell, which is at its prompt; the next command there runs in that shell"


class RunReason(StrEnum):
    """Why a run is over.

    Attributes:
        DONE: The command has ended by itself.
        INTERRUPTED: Somebody else interrupted the command.
        TIMED_OUT: Time ran out, and an interrupt ended the command.
        RUNNING: Time ran out, and the command goes on despite interrupts.
        GIVEN_UP: The shell gave the command up, because of an error in it.
        EXITED: The pane's program has ended, or the pane is gone.
        SHELL_ENDED: The shell that ran the command, inside another one, has ended.
        REPLACED: The shell has replaced itself with a program, by `exec`.
        SHELL_STARTED: The command is, or has started, a shell that is now at its prompt.
        SHELL_INTERRUPTED: The same, but time ran out, so we may have interrupted the shell's start.
        INPUT: The command goes on and awaits something.
    """

    DONE = "done"
    INTERRUPTED = "interrupted"
    TIMED_OUT = "timed_out"
    RUNNING = "running"
    GIVEN_UP = "given_up"
    EXITED = "exited"
    SHELL_ENDED = "shell_ended"
    REPLACED = "replaced"
    SHELL_STARTED = "shell_started"
    SHELL_INTERRUPTED = "shell_interrupted"
    INPUT = "input"

    @property
    def leaves_shell(self) -> bool:
        """Whether the command has left a shell at a prompt."""
        return self in (RunReason.SHELL_STARTED, RunReason.SHELL_INTERRUPTED)

    @property
    def leaves_command(self) -> bool:
        """Whether the command goes on."""
        return self.leaves_shell or self in (RunReason.RUNNING, RunReason.INPUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        exit_code: The exit code, as a shell reports it; None if there is none or it is lost.
        runtime_s: Seconds since the command's start.
        excerpt: The command's output.
        start: The cursor where the output begins.
        end: The cursor where the output ends.
    """

    reason: RunReason
    exit_code: int | None
    runtime_s: float
    state: State
    excerpt: Excerpt
    start: int
    end: int

    def remark(self, timeout_s: float) -> str | None:
        """Return a remark on how the command ended, None if it ended by itself or with its pane."""
        timed_out = f"timed out after {timeout_s:g} s"
        remarks = {
            RunReason.TIMED_OUT: f"{timed_out} and interrupted",
            RunReason.RUNNING: f"{timed_out}, interrupted twice, and still runs",
            RunReason.INTERRUPTED: "interrupted",
            RunReason.GIVEN_UP: "the shell gave up the command",
            RunReason.SHELL_ENDED: "the shell ended",
            RunReason.REPLACED: "the shell was replaced",
            RunReason.SHELL_STARTED: _RUNS_SHELL,
            RunReason.SHELL_INTERRUPTED: f"{timed_out} and interrupted; {_RUNS_SHELL}",
            RunReason.INPUT: "it keeps running",
        }
        return remarks.get(self.reason)
