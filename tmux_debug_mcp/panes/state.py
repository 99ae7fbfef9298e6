"""What a pane is at one moment, and how its program ended. No I/O."""

import signal
from dataclasses import dataclass

from .activity import Awaits


@dataclass(frozen=True, slots=True)
class State:
    """What a pane is at one moment.

    Attributes:
        is_running: Whether its program runs.
        runtime_s: Seconds since its start, or to its end.
        cursor: The end of the program's output, as an offset into the pane's log in bytes.
        foreground: The name of the program that has the terminal, while it runs.
        pid: Its process: the leader of the foreground process group.
        awaits: What it awaits; None also where that is not known.
        exit_code: How it ended, when by itself: 0 to 255.
        signal: How it ended, when by a signal: `SIGSEGV`. 128+n is read as signal n, as in a shell.
        is_lost: The pane is gone from tmux, and how its program ended is not known.
        may_grow: It is not known either whether that is so, since another server had the pane, and still runs.
    """

    is_running: bool
    runtime_s: float
    cursor: int
    foreground: str | None = None
    pid: int | None = None
    awaits: Awaits | None = None
    exit_code: int | None = None
    signal: str | None = None
    is_lost: bool = False
    may_grow: bool = False

    @property
    def is_final(self) -> bool:
        """Whether nothing more will be printed."""
        return not self.is_running and not self.may_grow

    def __str__(self) -> str:
        """Say it behind a pane's id: `exited with code 3 after 2.1 s`."""
        if self.is_running:
            return f"running {self.runtime_s:.1f} s"
        if self.is_lost:
            return f"was lost after {self.runtime_s:.1f} s"
        ending = f"killed by {self.signal}" if self.signal else f"exited with code {self.exit_code}"
        return f"{ending} after {self.runtime_s:.1f} s"


def ended_state(exit_code: int | None, runtime_s: float, cursor: int) -> State:
    """Return the state of a pane whose program ended with an exit code as a shell has it, or of one that is lost."""
    if exit_code is None:
        return State(is_running=False, runtime_s=runtime_s, cursor=cursor, is_lost=True)
    name = _signal_name(exit_code - 128)
    code = None if name else exit_code
    return State(is_running=False, runtime_s=runtime_s, cursor=cursor, exit_code=code, signal=name)


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}" if number in signal.valid_signals() else None
