"""What a pane is doing, from looks at it: no I/O and no clock.

A program *awaits* input (a line), hidden input (a secret) or keys when one of its threads waits for the terminal, and
nothing that was typed is unread. One look may come before that was read; so it takes two, between which nothing was
printed and that thread did not run. Where the kernel can't tell, nothing is claimed.

A pane is *at rest* when it has ended, awaits something, or was quiet for a while. A program that waits for other things
as well, such as one that watches files, has to be quiet too: it would take keys, but may have more to do first.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

from tmux_debug_mcp.linux.terminals import Modes

from .dialects import Shell

# Between the two looks that tell an awaiting program.
CONFIRM_S = 0.002
# Nothing printed and no processor time used for so long is rest.
QUIET_S = 0.3
# Programs that wake up now and then, such as to look at a clock, are quiet: 1 % of a processor.
_IDLE_CPU_NS = 3_000_000
# What was typed has been read by then, or has left a trace.
_TAKE_S = 0.1
# A shell that starts and is quiet for so long asks for something.
_ASKING_S = 0.5
# A shell that is at work may be on its way to its prompt, on a busy machine.
_COMING_S = 0.5
# What has the terminal is told once it has had it for so long. A C-c that comes while bash starts a program can leave
# the terminal with that, and then bash takes its end of input for its own.
STEADY_S = 0.05
# Programs that come and go are told after so long.
_LATE_S = 0.5
# Looks come soon while things change, and then more rarely.
_LEAST_LOOK_S, _MOST_LOOK_S = 0.002, 0.05
_LOOKS_PER_WAIT = 10


class Awaits(Enum):
    """What a program awaits of its terminal."""

    INPUT = "input"
    HIDDEN_INPUT = "hidden input"
    KEYS = "keys"


class Reader(IntEnum):
    """Who of the foreground waits for the terminal.

    Attributes:
        NOBODY: No thread does.
        UNKNOWN: None is seen to, and some can't be looked at.
        AMONG_OTHERS: One does, for other files or a time as well, or beside other threads.
        ALONE: One does, and the process has no other.
        BYTES: The same, for a single byte, as shells do that run `read`.
    """

    NOBODY = 0
    UNKNOWN = 1
    AMONG_OTHERS = 2
    ALONE = 3
    BYTES = 4


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at a pane.

    Attributes:
        is_over: Its program has ended.
        group: The foreground process group.
        pid: The process that has the terminal: that group's leader.
        foreground: Its name.
        shell: The same, where it is a shell that we know.
        modes: What the terminal does with what is typed; None when that can't be told.
        reader: Who waits for what is typed.
        relays: That one passes keys on to a program that we can't see.
        readers: The threads that do: process and thread.
        reader_ns: The processor time that they have used.
        is_at_work: One of the group wants a processor or waits for a disk.
        cpu_ns: The processor time that the group has used.
        printed: How many bytes the pane has printed.
    """

    is_over: bool = False
    group: int = -1
    pid: int | None = None
    foreground: str | None = None
    shell: Shell | None = None
    modes: Modes | None = None
    reader: Reader = Reader.NOBODY
    relays: bool = False
    readers: tuple[tuple[int, str], ...] = ()
    reader_ns: int = 0
    is_at_work: bool = False
    cpu_ns: int = 0
    printed: int = 0

    @property
    def wait(self) -> object:
        """What stays the same as long as the terminal is waited for."""
        return self.group, self.shell, self.modes, self.reader, self.reader_ns, self.printed

    @property
    def trace(self) -> object:
        """What changes when something happens."""
        return self.is_over, self.pid, self.cpu_ns, self.wait


@dataclass(frozen=True, slots=True)
class Activity:
    """What a pane is doing.

    Attributes:
        snapshot: The last look.
        awaits: What it awaits; None also where that is not known.
        is_likely: One look tells so, and a second one is to confirm it.
        shell: The shell that is at its prompt.
        is_awaiting: It awaits something, and will do nothing else until it gets that.
        is_unclear: The kernel can't tell whether it does.
        is_at_rest: It has ended, is awaiting something, or was quiet for a while.
        quiet_s: For how long it has been quiet.
        same_s: For how long nothing at all has happened.
        look_again_s: When to look again, if that is not all.
    """

    snapshot: Snapshot
    awaits: Awaits | None
    is_likely: bool
    shell: Shell | None
    is_awaiting: bool
    is_unclear: bool
    is_at_rest: bool
    quiet_s: float
    same_s: float
    look_again_s: float


def awaited(snapshot: Snapshot) -> Awaits | None:
    """Return what a program awaits, as far as one look can tell."""
    modes = snapshot.modes
    if snapshot.is_over or modes is None or modes.unread_bytes:
        return None
    is_hidden = modes.is_canonical and not modes.echoes
    if snapshot.reader is Reader.UNKNOWN:
        # Only who asks for a secret has such a terminal. Programs that do are often another user's.
        return Awaits.HIDDEN_INPUT if is_hidden else None
    if snapshot.reader is Reader.NOBODY:
        return None
    if is_hidden:
        return Awaits.HIDDEN_INPUT
    if snapshot.relays and snapshot.reader is Reader.AMONG_OTHERS:  # it waits for what it passes on, too
        return None
    return Awaits.INPUT if modes.is_canonical else Awaits.KEYS


def prompting(snapshot: Snapshot) -> Shell | None:
    """Return the shell that waits for a command, as far as one look can tell."""
    shell, modes = snapshot.shell, snapshot.modes
    if shell is None or modes is None or modes.unread_bytes or snapshot.reader is Reader.NOBODY:
        return None
    if shell.dialect.edits(modes):
        is_editing = not modes.is_canonical and not modes.echoes and modes.is_raw
        return shell if is_editing else None
    return shell if modes.is_canonical and snapshot.reader is not Reader.BYTES else None


class ActivityTracker:
    """What a pane is doing, look by look.

    Args:
        before: The last look before something was typed: what is awaited since is told only once that left a trace.
    """

    def __init__(self, before: Snapshot | None = None) -> None:
        self._before = before
        self._trace: object = None
        self._wait: object = None
        self._begun_at = self._same_since = self._waits_since = self._quiet_since = -1.0
        self._printed = self._cpu_ns = self._group = -1

    def step(self, snapshot: Snapshot, now: float) -> Activity:
        """Return what a pane is doing, given the next look at it."""
        if self._begun_at < 0:
            self._begun_at = now
        if snapshot.trace != self._trace or snapshot.is_at_work:
            self._trace, self._same_since = snapshot.trace, now
        if snapshot.wait != self._wait:
            self._wait, self._waits_since = snapshot.wait, now
        self._note_work(snapshot, now)
        quiet_s = now - self._quiet_since
        same_s = now - self._same_since
        awaits, shell = awaited(snapshot), prompting(snapshot)
        is_likely = (awaits or shell) is not None and self._is_taken(snapshot, now)
        is_confirmed = is_likely and now - self._waits_since >= CONFIRM_S
        waits_for_more = snapshot.reader in (Reader.AMONG_OTHERS, Reader.UNKNOWN) and shell is None
        is_awaiting = is_confirmed and (not waits_for_more or quiet_s >= QUIET_S)
        return Activity(
            snapshot=snapshot,
            awaits=awaits if is_confirmed else None,
            is_likely=is_likely,
            shell=shell if is_confirmed else None,
            is_awaiting=is_awaiting,
            is_unclear=snapshot.modes is None or snapshot.relays or snapshot.reader is Reader.UNKNOWN,
            is_at_rest=snapshot.is_over or is_awaiting or quiet_s >= QUIET_S,
            quiet_s=quiet_s,
            same_s=same_s,
            look_again_s=max(_LEAST_LOOK_S, min(_MOST_LOOK_S, same_s / _LOOKS_PER_WAIT)),
        )

    def _note_work(self, snapshot: Snapshot, now: float) -> None:
        """Begin to count quiet time anew where something was printed or done."""
        has_printed = snapshot.printed != self._printed or snapshot.group != self._group
        has_worked = abs(snapshot.cpu_ns - self._cpu_ns) > _IDLE_CPU_NS
        if has_printed or has_worked or snapshot.is_at_work:
            self._quiet_since = now
            self._printed, self._cpu_ns, self._group = snapshot.printed, snapshot.cpu_ns, snapshot.group

    def _is_taken(self, snapshot: Snapshot, now: float) -> bool:
        """Tell whether what was typed before has come to the program."""
        before = self._before
        return before is None or snapshot.wait != before.wait or now >= self._begun_at + _TAKE_S


class PromptWait:
    """Whether it is worth waiting for a shell to come to its prompt.

    Args:
        patience_s: How long to wait for a shell that has been at its prompt before.
        starting_s: How long to wait for one that has not, as long as it is at work.
    """

    def __init__(self, patience_s: float, starting_s: float) -> None:
        self._patience_s = patience_s
        self._starting_s = starting_s
        self._begun_at = -1.0

    def step(self, activity: Activity, now: float, *, is_starting: bool, has_children: bool) -> bool:
        """Tell whether to look again.

        Args:
            activity: What the pane is doing.
            now: The time.
            is_starting: The shell that has the terminal takes commands there, and was not at its prompt yet.
            has_children: It runs something that is to be waited for.
        """
        if self._begun_at < 0:
            self._begun_at = now
        waited_s = now - self._begun_at
        is_busy = has_children or activity.same_s < _ASKING_S
        if is_starting and waited_s < self._starting_s and is_busy:
            return True
        if activity.same_s < self._patience_s and waited_s < _COMING_S:
            return True
        return waited_s <= self._patience_s


class StopAction(Enum):
    """What to do to stop a program."""

    WAIT = "wait"
    SIGNAL = "tell the process group that has the terminal"
    RESTORE = "restore the terminal's modes"
    REFUSE = "refuse"


class StopPlan:
    """When to tell what runs in a shell to stop, program after program, until the shell has the terminal.

    Args:
        is_interrupt: It is told by C-c, which a shell heeds as well.
    """

    def __init__(self, *, is_interrupt: bool) -> None:
        self._is_interrupt = is_interrupt
        self._begun_at = self._since = -1.0
        self._group = -1
        self._told: set[int] = set()

    def step(self, snapshot: Snapshot, now: float, *, is_interactive: bool) -> StopAction:
        """Return what to do after a look.

        Args:
            snapshot: The look.
            now: The time.
            is_interactive: A shell has the terminal that takes commands there.
        """
        if self._begun_at < 0:
            self._begun_at = now
        if snapshot.group != self._group:
            self._group, self._since = snapshot.group, now
        is_late = now > self._begun_at + _LATE_S
        if now <= self._since + STEADY_S and not is_late:
            return StopAction.WAIT
        if not is_interactive:
            return self._tell(snapshot.group)
        # A shell without a line editor does not set the modes which a program left behind.
        if snapshot.shell and not snapshot.shell.dialect.has_editor and self._told:
            return StopAction.RESTORE
        if self._told:
            return StopAction.WAIT
        if self._is_interrupt:
            return self._tell(snapshot.group)
        return StopAction.REFUSE if is_late else StopAction.WAIT

    def _tell(self, group: int) -> StopAction:
        if group in self._told:
            return StopAction.WAIT
        self._told.add(group)
        return StopAction.SIGNAL
