"""Time, as an argument: a clock, ways to wait, and how long an engine waits for what.

An engine gets a `Clock` and hands it down. Code that only decides gets a time in seconds and, if it
needs them, the `Times`. Tests give an engine other times, or another clock.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import anyio

# Timeout of a wait, and of each step of keys, if the call gives none.
DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Times:
    """How long an engine waits for what, in seconds."""

    # Poll intervals, only for what no event reports.
    # For what usually takes a millisecond.
    fast_poll_s: float = 0.001
    # For most, such as the end of a process.
    poll_s: float = 0.005
    # For what leaves no trace in the log: exec, and a shell that gives a command up.
    job_poll_s: float = 0.05
    # Interval of looks at a pane: a tenth of the time since the last change, within these limits.
    min_look_s: float = 0.002
    max_look_s: float = 0.05

    # What a pane is doing.
    # Minimum time between the two snapshots that show that a program awaits something.
    confirm_s: float = 0.002
    # A pane is at rest after this long without output or processor time.
    quiet_s: float = 0.3
    # An event loop sleeps if nothing but a key or a signal from outside wakes it within this time.
    asleep_s: float = 0.3
    # After this time, typed text counts as read even if that left no trace.
    typed_s: float = 0.1
    # After this time, typed text counts as read even without the trace that it is sure to leave, on
    # a busy machine late.
    traced_s: float = 2.0
    # Text boxes take an Enter for a part of a paste up to 0.12 s after they have read text.
    paste_s: float = 0.13
    # Older output counts as read by tmux, which usually takes a millisecond.
    printed_s: float = 0.01
    # Limit for a drain: what tmux has read is in the log within a millisecond, later on a busy
    # machine.
    drain_s: float = 1.0

    # A socket that isn't found open in a pane's processes for this long is not the pane's.
    foreign_socket_s: float = 1.0

    # A new pane.
    # Time for a new pane to come to rest before its call returns, so that the call can report a
    # program that dies at once.
    early_death_s: float = 0.05
    # Before this age, the command of a pane may be a shell that is still starting.
    young_s: float = 0.05
    # Timeout for the first observation of a new pane, and after keys.
    rest_s: float = 1.0

    # Shells.
    # Timeout for the prompt of a shell that is at it or about to reach it, such as one that has
    # just got its terminal back.
    prompt_soon_s: float = 0.05
    # Timeout for the prompt of a shell that was at its prompt before and is at work, as on a busy
    # machine.
    coming_s: float = 0.5
    # Time for a shell that is asked to run something to finish what it is doing, such as printing
    # its prompt.
    prompt_s: float = 1.0
    # A starting shell may work this long on its settings before its first prompt.
    starting_s: float = 10.0
    # A starting shell that does nothing for this long is asking for something.
    asking_s: float = 0.5
    # How long shells wait for what follows Escape.
    escape_s: float = 0.06
    # Time for bash to parse a command: 128 kB takes a few milliseconds.
    parse_s: float = 1.0

    # Commands that a shell was given.
    # A shell starts on a line within this time, unless something holds it up.
    begin_s: float = 0.5
    # Time for another call's command to end, before a process is started in its shell.
    reserve_s: float = 10.0
    # A shell reads a line at once, but its hooks before a command may take a while.
    take_s: float = 10.0
    # A shell elsewhere answers a question within this time.
    answer_elsewhere_s: float = 2.0
    # Where we can't see what a command awaits, one that has printed nothing for this long since a
    # line without its end seems to ask for something.
    seems_to_ask_s: float = 3.0
    # Grace period after each interrupt of a command that has timed out.
    interrupt_s: float = 2.0
    # Grace period after each C-c for programs that read it as a key.
    key_interrupt_s: float = 0.5

    # Waits for output.
    # Minimum pause after much output.
    flood_s: float = 0.01
    # What `gone` matches is gone once it was not there for this long: spinners are redrawn about
    # ten times a second, and some progress bars come back half a second after a message.
    gone_s: float = 1.0
    # Time for the rest of a line that matches. It follows at once, unless the line is a prompt.
    rest_of_line_s: float = 0.003
    # Time for a program to end after a line that matches, which may be its last. Only one that is
    # at work gets it.
    ending_soon_s: float = 0.02
    # A program draws its screen in several writes: time for those after the first.
    drawing_s: float = 0.005
    # Time for a shell to redraw its prompt. It is done once it has printed nothing for a while.
    redraw_s: float = 0.3
    redrawn_quiet_s: float = 0.02
    # tmux passes a new size on to the terminal within 0.25 s, and of several only the last.
    resize_s: float = 1.0
    # Interval of progress notifications: clients may give up on a call that sends none.
    progress_s: float = 5.0
    # Shortest interval between two notifications about one screen.
    notify_s: float = 0.1
    # Poll interval for updating a person who watches a pane.
    person_s: float = 1.0
    # Poll interval for a session that takes the place of one that has ended.
    successor_s: float = 0.25
    # Pause after a failure, such as too many open files, before a screen is followed again.
    again_s: float = 1.0
    # Interval between trims while a log grows. A terminal prints at most 40 MB a second.
    trim_s: float = 0.25
    # Interval of looks at several logs that grow, so that the order of what they print is known.
    order_s: float = 0.005

    # Stopping a program. Results name the first time.
    stop_s: float = 5.0
    # A group is signalled only after it has had the terminal for this long. A C-c while bash starts
    # a program can leave the terminal with that program, and bash then sees end of input.
    steady_s: float = 0.05
    # A stop signals whatever has the terminal after this long, since programs may come and go.
    unsteady_s: float = 0.5
    # Time for a new shell to reach its prompt. One that is still at work on its settings then is
    # itself stopped.
    stop_starting_s: float = 0.5

    # The end of a pane.
    # The end mark follows the end of the program within a millisecond, later on a busy machine.
    mark_s: float = 1.0
    # If the mark is this late, C-s may have stopped the terminal's output.
    stopped_output_s: float = 0.05
    # Grace period between the first signals of a kill and SIGKILL.
    kill_grace_s: float = 0.5
    # Interval between SIGKILLs, for processes that others start meanwhile.
    kill_again_s: float = 0.05
    # Time for killed processes to be gone.
    kill_s: float = 2.0

    # tmux.
    # Timeout for the first answers of tmux, which usually take 20 ms.
    tmux_start_s: float = 10.0
    # tmux answers within milliseconds. If it doesn't, it may be stopped: it gets SIGCONT each time
    # this has passed, until we give up.
    wake_s: float = 3.0
    # Timeout for the user's tmux server. It answers at once, unless it is stopped or hangs.
    answer_s: float = 10.0
    # Time for a supervisor to end: hundreds of processes that ignore SIGTERM take about 200 ms, and
    # clients kill a server that takes more than 500 ms.
    supervisor_end_s: float = 0.4


class Clock:
    """The clock of an engine, ways to wait by it, and how long the engine waits for what."""

    def __init__(self, times: Times | None = None) -> None:
        self.times = times or Times()

    def now(self) -> float:
        """Return the seconds since some moment, by a clock that nobody can set."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the seconds since the epoch, by a clock that may be set."""
        return time.time()

    def ahead(self) -> float:
        """Return by how many seconds `wall` is ahead of `now`; each call differs a little."""
        return self.wall() - self.now()

    async def sleep(self, duration_s: float) -> None:
        """Sleep, or at least let other tasks run."""
        from anyio import sleep  # noqa: PLC0415  as below

        await sleep(duration_s)

    def move_on_after(self, duration_s: float) -> "AbstractContextManager[anyio.CancelScope]":
        """Return a cancel scope that leaves its block after a time."""
        from anyio import move_on_after  # noqa: PLC0415  the help of verbs needs only the times

        return move_on_after(duration_s)

    @contextmanager
    def fail_after(self, duration_s: float) -> Iterator[None]:
        """Leave the block after a time, and raise TimeoutError."""
        with self.move_on_after(duration_s) as scope:
            yield
        if scope.cancelled_caught:
            raise TimeoutError
