"""Time, as an argument: a clock, ways to wait, and how long an engine waits for what.

An engine gets a `Clock` and hands it down. What only decides gets a time in seconds and, where it
needs them, the `Times`. Tests give an engine other times, or a clock of their own.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import anyio

# Timeout of a wait, and of each step of keys, where the call gives none.
DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Times:
    """How long an engine waits for what, in seconds."""

    # Polling. Nothing polls where an event tells.
    # Poll interval for what usually takes a millisecond.
    fast_poll_s: float = 0.001
    # Poll interval for what no event tells of, such as the end of a process.
    poll_s: float = 0.005
    # Poll interval for what a command leaves no trace of in the log: exec, and a shell that gives
    # the command up.
    job_poll_s: float = 0.05
    # Looks at a pane: a tenth of the time for which nothing has changed, within these limits.
    min_look_s: float = 0.002
    max_look_s: float = 0.05

    # What a pane is doing.
    # Minimum time between the two snapshots that show that a program awaits something.
    confirm_s: float = 0.002
    # A pane is at rest after this long without output and without processor time.
    quiet_s: float = 0.3
    # After this time, typed text counts as read even if that left no trace.
    typed_s: float = 0.1
    # Output printed longer ago counts as read by tmux: that usually takes a millisecond.
    printed_s: float = 0.01
    # Limit for a drain: what tmux has read is in the log within a millisecond, later on a busy
    # machine.
    drain_s: float = 1.0

    # A socket that no process of a pane has had open for this long is not the pane's.
    settled_s: float = 1.0

    # A new pane.
    # Time for a new pane to come to rest before its call returns, which then can report a program
    # that dies at once.
    early_death_s: float = 0.05
    # Before this age, the command of a pane may be a shell that is still starting.
    young_s: float = 0.05
    # Timeout for the first observation of a new pane, and after keys.
    rest_s: float = 1.0

    # Shells.
    # Timeout for the prompt of a shell that is at it or about to reach it, such as one that has
    # just got its terminal back.
    prompt_soon_s: float = 0.05
    # The same for one that is at work on a busy machine.
    coming_s: float = 0.5
    # Time for what a shell still does when it is asked to run something, such as printing its
    # prompt.
    prompt_s: float = 1.0
    # A starting shell may work this long on its settings before its first prompt.
    starting_s: float = 10.0
    # A starting shell that does nothing for this long asks for something.
    asking_s: float = 0.5
    # How long shells wait for what follows Escape.
    escape_s: float = 0.06
    # Time for bash to parse a command: 128 kB takes some milliseconds.
    parse_s: float = 1.0

    # Commands that a shell was given.
    # A shell starts on a line within this time, unless something holds it up.
    begin_s: float = 0.5
    # Time for a command that another call runs to end, before a process is started in its shell.
    turn_s: float = 10.0
    # A shell reads a line at once, but its hooks before a command may take a while.
    take_s: float = 10.0
    # Grace period after each interrupt of a command whose time is over.
    interrupt_s: float = 2.0
    # The same for programs that read C-c as a key.
    key_interrupt_s: float = 0.5
    # All output has reached the log when it has not grown for this long. That is not `quiet_s`: the
    # command is over, and only tmux may be late.
    late_output_s: float = 0.25
    # Limit for waiting until then, since background processes may print on.
    max_late_output_s: float = 1.0
    # The end of a program is known some milliseconds after it has lost the terminal.
    ending_s: float = 0.5

    # Waits for output.
    # Minimum pause after much output.
    flood_s: float = 0.01
    # Time for the rest of a line that matches. It follows at once, unless the line is a prompt.
    rest_of_line_s: float = 0.003
    # A program draws its screen in several writes: time for the ones that follow the first.
    drawing_s: float = 0.005
    # Time for a shell to draw its prompt again. It has done so once it printed nothing for a while.
    redraw_s: float = 0.3
    redrawn_quiet_s: float = 0.02
    # tmux passes a new size on to the terminal within 0.25 s, and only the last one of several.
    resize_s: float = 1.0
    # Interval of progress notifications: clients may give up a call that they hear nothing of.
    progress_s: float = 5.0
    # Shortest interval between two notifications of one screen.
    notify_s: float = 0.1
    # Poll interval for what a person who watches a pane is told.
    person_s: float = 1.0
    # Poll interval for a session that takes the place of one that has ended.
    successor_s: float = 0.25
    # Interval between a failure, such as too many open files, and the next try to follow a screen.
    again_s: float = 1.0
    # Interval between trims while a log grows. A terminal prints at most 40 MB in a second.
    trim_s: float = 0.25

    # Stopping a program; results name the first.
    stop_s: float = 5.0
    # A group has had the terminal for this long before it is signalled. A C-c while bash starts a
    # program can leave the terminal with that program, and bash then sees end of input.
    steady_s: float = 0.05
    # A stop signals whatever has the terminal after this long, since programs may come and go.
    unsteady_s: float = 0.5
    # Time for a shell that has just started to come to its prompt. One that is still at work on its
    # settings then is to be stopped itself.
    stop_starting_s: float = 0.5

    # The end of a pane.
    # The end mark follows the end of the program within a millisecond, later on a busy machine.
    mark_s: float = 1.0
    # The mark is late by this long if C-s has stopped the terminal's output.
    stopped_output_s: float = 0.05
    # Grace period between the first signals of a kill and SIGKILL.
    kill_grace_s: float = 0.5
    # Interval of SIGKILLs, for processes that others start meanwhile.
    kill_again_s: float = 0.05
    # Time for killed processes to be gone.
    kill_s: float = 2.0

    # tmux.
    # Timeout for the first answers of tmux, which usually take 20 ms.
    tmux_start_s: float = 10.0
    # tmux answers within milliseconds. When it does not, it may be stopped: it gets SIGCONT after
    # this time, and again, before we give up.
    wake_s: float = 3.0
    # Timeout for the user's tmux server. Only one that is stopped or hangs does not answer at once.
    answer_s: float = 10.0
    # Time for a supervisor to end: hundreds of processes that ignore SIGTERM take some 200 ms, and
    # clients kill a server that takes more than 500 ms.
    supervisor_end_s: float = 0.4


class Clock:
    """The clock of an engine, ways to wait by it, and how long the engine waits for what."""

    def __init__(self, times: Times | None = None) -> None:
        self.times = times or Times()

    def now(self) -> float:
        """Return the seconds since some moment, by a clock that nobody sets."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the seconds since the epoch, by a clock that may be set."""
        return time.time()

    async def sleep(self, duration_s: float) -> None:
        """Sleep; at least let other tasks run."""
        from anyio import sleep  # noqa: PLC0415  as below

        await sleep(duration_s)

    def move_on_after(self, duration_s: float) -> "AbstractContextManager[anyio.CancelScope]":
        """Return a cancel scope that leaves its block after a time."""
        from anyio import move_on_after  # noqa: PLC0415  the help of verbs takes only the times

        return move_on_after(duration_s)

    @contextmanager
    def fail_after(self, duration_s: float) -> Iterator[None]:
        """Leave the block after a time, and raise TimeoutError then."""
        with self.move_on_after(duration_s) as scope:
            yield
        if scope.cancelled_caught:
            raise TimeoutError
