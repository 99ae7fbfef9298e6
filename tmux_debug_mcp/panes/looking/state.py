"""The state of a pane at one moment, and how its program ended. No I/O."""

import signal
from dataclasses import dataclass

from tmux_debug_mcp.linux import processes

from .activity import Awaits

# A program may end in order after these signals, and then often exits with 128+N itself.
_ORDERLY = ("SIGINT", "SIGTERM")


@dataclass(frozen=True, slots=True)
class State:
    """The state of a pane at one moment.

    Attributes:
        runtime_s: Seconds from the start of the program to now, or to its end.
        cursor: The end of the program's output so far.
        foreground: The name of the program that has the terminal, None after the end.
        pid: The process id of that program, the leader of the foreground process group.
        awaits: What that program awaits; None if nothing, or if that is not known.
        blocked_on: What that program is blocked on, or merely waits for, in words that follow "it",
            such as `sleeps`; None if it runs or awaits something, or if that is not known.
        waits: Those words as a status has them: after `blocked: `, unless it merely waits.
        listens: The addresses on which the pane's processes listen, as ss(8) shows them.
        left: What a program that has ended has left running, such as `python3 (pid 4711)`.
        code: The exit code of a program that has ended, 0 to 255, as a shell reports it.
        is_lost: The pane is gone from tmux, and how its program ended is not known.
        may_grow: Another server made the pane and still runs, so the program may run, too.
    """

    is_running: bool
    runtime_s: float
    cursor: int
    foreground: str | None = None
    pid: int | None = None
    awaits: Awaits | None = None
    blocked_on: str | None = None
    waits: str | None = None
    listens: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    code: int | None = None
    is_lost: bool = False
    may_grow: bool = False

    @property
    def is_final(self) -> bool:
        """Whether nothing more will be printed."""
        return not self.is_running and not self.may_grow

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the program, such as `SIGSEGV`.

        As in a shell, an exit code of 128+N counts as signal N.
        """
        number = processes.exit_code_signal(self.code or 0)
        if number <= 0:  # nearly always; an exception would be slow
            return None
        if signal.SIGRTMIN < number < signal.SIGRTMAX:  # these have no name in Python
            return f"SIGRTMIN+{number - signal.SIGRTMIN}"
        try:
            return signal.Signals(number).name
        except ValueError:
            return None

    @property
    def exit_code(self) -> int | None:
        """The exit code of a program that exited by itself."""
        return None if self.signal else self.code

    @property
    def was_killed(self) -> bool:
        """Whether the signal has surely killed the program."""
        return self.signal is not None and self.signal not in _ORDERLY

    @property
    def ending(self) -> str:
        """How the program ended, as in `exited with code 3`; "" while it runs."""
        if self.is_running:
            return ""
        if self.is_lost:
            return "was lost"
        if self.was_killed:
            return f"killed by {self.signal}"
        return f"exited with code {self.code}" + (f" ({self.signal})" if self.signal else "")

    def __str__(self) -> str:
        """Return the text that follows a pane's id: `exited with code 3 after 2.1 s`."""
        if self.is_running:
            return f"running {self.runtime_s:.1f} s"
        left = f"; still running: {', '.join(self.left)}" if self.left else ""
        return f"{self.ending} after {self.runtime_s:.1f} s{left}"


def ended_state(code: int, runtime_s: float, cursor: int) -> State:
    """Return the state of a pane whose program has ended, with its output ending at the cursor."""
    return State(is_running=False, runtime_s=runtime_s, cursor=cursor, code=code)
