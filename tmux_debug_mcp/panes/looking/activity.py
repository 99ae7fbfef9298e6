"""Decides from snapshots of a pane what it is doing. Pure: no I/O and no clock.

What a program awaits:

- A program *awaits* something when one of its threads waits for the terminal and everything that
  was typed has been read. The terminal's modes show what: input, hidden input or keys.
- One snapshot is not enough, since it may come before the program has read what was typed. Two
  snapshots must agree, with no output and no run of the waiting thread between them.
- Where the kernel hides which threads wait, we claim nothing.

When a pane is at rest:

- It has ended, its program is awaiting something, or it has read what was typed and been quiet for
  `Times.quiet_s`.
- A program that also waits for other things, such as one that watches files, must be quiet as well.
  It would take keys, but may have more to do first.
- That is not so for an event loop that sleeps: for a while, only a key or a signal from outside can
  wake it. Two snapshots must agree that nothing has run. After Escape, it must be quiet as well: it
  may wait for the rest of a key's code, and take the next key for that.
"""

import math
from dataclasses import dataclass
from enum import Enum, IntEnum

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.linux.terminals import Modes
from tmux_debug_mcp.panes.shells.dialects import Shell

# Programs that wake up now and then, say to read a clock, count as quiet: 1 % of a processor.
_IDLE_CPU_NS = 3_000_000
# The poll interval is a tenth of the time for which nothing has changed.
_POLLS_PER_WAIT = 10


class Awaits(Enum):
    """What a program awaits from its terminal."""

    INPUT = "input"
    HIDDEN_INPUT = "hidden input"
    KEYS = "keys"


class WaitKind(IntEnum):
    """How the foreground waits for the terminal.

    A process's kind is the highest of its threads'. A pane's is the highest of its processes', but
    at most AMONG_OTHERS unless all wait for the terminal alone, or for a process that does.

    Attributes:
        NONE: No thread waits for the terminal.
        UNKNOWN: No thread is seen to wait, and the kernel hides some threads from us.
        AMONG_OTHERS: A thread waits for the terminal, but also for other files or a timeout, or
            beside other threads.
        ALONE: The only thread of a process waits for the terminal and nothing else.
        BYTEWISE: Like ALONE, and it reads a single byte, as shells do for `read`.
    """

    NONE = 0
    UNKNOWN = 1
    AMONG_OTHERS = 2
    ALONE = 3
    BYTEWISE = 4


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at a pane through /proc.

    Attributes:
        tty: The terminal, as in /proc/PID/stat.
        group: The foreground process group, -1 if there is none.
        pid: The process that has the terminal: usually the group leader.
        foreground: The name of that process.
        inside: The process that has the terminal which a relay has made, if we see it.
        shell: That process as a shell, if we know the shell.
        modes: None if the terminal's modes can't be read.
        own_modes: Those of the pane's own terminal; a relay has made the one of `modes`.
        waiting: How the foreground waits for the terminal.
        sleeps_s: How long the foreground sleeps in all if no key and no signal from outside wakes
            it; 0 if something else may.
        shell_waiting: How the shell itself waits for it.
        relays: A reader passes keys on to a program that we can't see, as ssh does.
        asks_for_secret: A reader is a program that only asks for secrets, key by key.
        readers: The threads that wait for the terminal, as process and thread id.
        outside: The processes of other sessions that may wait for it, if no other process does.
        reader_ns: The processor time of these threads.
        is_at_work: A process of the group, or a reader, wants a processor or waits for a disk.
        cpu_ns: The processor time of the group, and of readers outside of it.
        printed_bytes: The size of the pane's log.
        gets_keys: Keys are typed right after it that do more than interrupt.
        gets_escape: The last of them is Escape, with which the codes of other keys begin.
        runs: The processes of the pane, and the processor time that each had used; none if some
            were left out. Until one of them runs, nothing else in the snapshot changes but the
            modes and what is printed.
    """

    is_over: bool = False
    tty: int = 0
    group: int = -1
    pid: int | None = None
    foreground: str | None = None
    inside: int | None = None
    shell: Shell | None = None
    modes: Modes | None = None
    own_modes: Modes | None = None
    waiting: WaitKind = WaitKind.NONE
    sleeps_s: float = 0.0
    shell_waiting: WaitKind = WaitKind.NONE
    relays: bool = False
    asks_for_secret: bool = False
    readers: tuple[tuple[int, str], ...] = ()
    outside: tuple[int, ...] = ()
    reader_ns: int = 0
    is_at_work: bool = False
    cpu_ns: int = 0
    printed_bytes: int = 0
    gets_keys: bool = False
    gets_escape: bool = False
    runs: tuple[tuple[int, int], ...] = ()

    @property
    def wait_key(self) -> object:
        """A value that stays equal as long as the same wait for the terminal goes on."""
        waits = self.waiting, self.shell_waiting
        return self.group, self.shell, self.modes, waits, self.reader_ns, self.printed_bytes

    @property
    def change_key(self) -> object:
        """A value that stays equal as long as nothing happens."""
        return self.is_over, self.pid, self.cpu_ns, self.wait_key


@dataclass(frozen=True, slots=True)
class Activity:
    """What a pane is doing.

    Attributes:
        awaits: What the program awaits; None if nothing, or if that is not known.
        is_likely: The last snapshot shows a program that awaits something or a shell at its
            prompt. A second snapshot can confirm it.
        shell: The shell at its prompt, if there is one.
        only_awaits: The program awaits something and does nothing else until it gets it.
        is_unclear: The kernel can't tell whether the program awaits something.
        has_read: What was typed has been read: that has left a trace, or has had the time to.
        is_at_rest: The program has ended, only awaits something, or has read what was typed and
            been quiet for `Times.quiet_s`.
        inactive_s: Seconds since the pane last printed or worked.
        unchanged_s: Seconds since anything changed.
        look_again_s: Seconds to wait before the next snapshot.
    """

    snapshot: Snapshot
    awaits: Awaits | None
    is_likely: bool
    shell: Shell | None
    only_awaits: bool
    is_unclear: bool
    has_read: bool
    is_at_rest: bool
    inactive_s: float
    unchanged_s: float
    look_again_s: float


def awaited(snapshot: Snapshot) -> Awaits | None:
    """Return what the program seems to await, judged by one snapshot."""
    modes = snapshot.modes
    waiting = snapshot.waiting
    if snapshot.is_over or waiting in (WaitKind.NONE, WaitKind.UNKNOWN):
        return None
    if modes is None or modes.unread_bytes:
        return None
    if modes.hides_lines or (snapshot.asks_for_secret and not modes.echoes):
        return Awaits.HIDDEN_INPUT
    # A relay also waits for its other side, so its wait says nothing about the program there.
    if snapshot.relays and waiting is WaitKind.AMONG_OTHERS:
        return None
    return Awaits.INPUT if modes.is_canonical else Awaits.KEYS


def prompting_shell(snapshot: Snapshot) -> Shell | None:
    """Return the shell that seems to be at its prompt, judged by one snapshot.

    It waits for the terminal itself: a program in a command substitution has the shell's group. The
    terminal's modes distinguish a prompt from a shell's other reads: see `Dialect`.
    """
    shell = snapshot.shell
    modes = snapshot.modes
    if shell is None or snapshot.shell_waiting is WaitKind.NONE:
        return None
    if modes is None or modes.unread_bytes:
        return None
    if shell.dialect.reads_with_editor(modes):
        # `read -n1` leaves canonical mode as well, but does not make the terminal raw.
        is_at_prompt = not modes.is_canonical and not modes.echoes and modes.is_raw
    else:
        # Such a shell reads commands line by line, but byte by byte for `read`.
        is_at_prompt = modes.is_canonical and snapshot.shell_waiting is not WaitKind.BYTEWISE
    return shell if is_at_prompt else None


class ActivityTracker:
    """Decides what a pane is doing, snapshot by snapshot.

    Until text typed after the snapshot `before` has been read, it does not report that the program
    awaits anything, nor that a quiet pane is at rest.
    """

    def __init__(self, times: Times, before: Snapshot | None = None) -> None:
        self._times = times
        self._before = before
        self._begun_at: float | None = None
        # The last value of each key, and since when it has been the same.
        self._same: tuple[object, float] = (None, 0.0)
        self._wait: tuple[object, float] = (None, 0.0)
        self._last_active: Snapshot | None = None
        self._active_at = 0.0

    def step(
        self,
        snapshot: Snapshot,
        now: float,
        *,
        took_s: float = 0.0,
        since: float = -math.inf,
        is_flushed: bool = True,
    ) -> Activity:
        """Return what the pane is doing, given the next snapshot and when the look at it began.

        The look took `took_s`, and what it saw may be as new as its end. Quiet and sameness count
        from `since` on, when the caller began to look. Unless tmux `is_flushed` since the wait for
        the terminal was first seen, the program may wait for an answer of tmux to a query.
        """
        times, seen_at = self._times, now + took_s
        if self._begun_at is None:
            self._begun_at = now
        if snapshot.is_at_work or snapshot.change_key != self._same[0]:
            self._same = snapshot.change_key, seen_at
        if snapshot.wait_key != self._wait[0]:
            self._wait = snapshot.wait_key, seen_at
        unchanged_s = max(0.0, now - max(since, self._same[1]))
        wait_s = now - self._wait[1]
        if self._is_active(snapshot):
            self._last_active = snapshot
            self._active_at = seen_at
        inactive_s = max(0.0, now - max(since, self._active_at))
        is_quiet = inactive_s >= times.quiet_s

        # What this snapshot alone shows.
        awaits = awaited(snapshot)
        shell = prompting_shell(snapshot)
        has_read = self._has_read(snapshot, now - self._begun_at)
        is_likely = has_read and (awaits is not None or shell is not None)

        # Together with earlier snapshots, it shows that the same wait goes on.
        is_confirmed = is_likely and wait_s >= (times.confirm_s if is_flushed else times.printed_s)
        if not is_confirmed:
            awaits = None
            shell = None

        # A shell at its prompt does nothing else, even if its editor waits for other files, too. A
        # loop that sleeps doesn't either, unless it may be waiting for the rest of a key's code.
        is_among_others = snapshot.waiting in (WaitKind.AMONG_OTHERS, WaitKind.UNKNOWN)
        is_seen_twice = now - self._same[1] >= times.confirm_s
        is_asleep = snapshot.sleeps_s >= times.asleep_s and is_seen_twice
        awaits_code = self._before is not None and self._before.gets_escape
        may_do_more = shell is None and is_among_others and (awaits_code or not is_asleep)
        only_awaits = is_confirmed and (is_quiet or not may_do_more)
        is_hidden = snapshot.modes is None or snapshot.waiting is WaitKind.UNKNOWN
        return Activity(
            snapshot=snapshot,
            awaits=awaits,
            is_likely=is_likely,
            shell=shell,
            only_awaits=only_awaits,
            is_unclear=is_hidden or snapshot.relays,
            has_read=has_read,
            is_at_rest=snapshot.is_over or only_awaits or (is_quiet and has_read),
            inactive_s=inactive_s,
            unchanged_s=unchanged_s,
            look_again_s=max(
                times.min_look_s, min(times.max_look_s, unchanged_s / _POLLS_PER_WAIT)
            ),
        )

    def _has_read(self, snapshot: Snapshot, typed_s: float) -> bool:
        """Return whether what was typed `typed_s` ago has been read, if anything was.

        It has left a trace then, or has had long enough to leave one. A trace is sure to come if
        the terminal echoes keys, or if the program waited for single keys.
        """
        before = self._before
        if before is None or snapshot.wait_key != before.wait_key:
            return True
        modes, is_traced = before.modes, False
        if before.gets_keys and modes is not None:
            waits_for_keys = not modes.is_canonical and before.waiting >= WaitKind.AMONG_OTHERS
            is_traced = modes.echoes or waits_for_keys
        return typed_s >= (self._times.traced_s if is_traced else self._times.typed_s)

    def _is_active(self, snapshot: Snapshot) -> bool:
        """Return whether the pane has printed or used processor time since it was last active."""
        last = self._last_active
        if last is None or snapshot.is_at_work:
            return True
        if snapshot.printed_bytes != last.printed_bytes or snapshot.group != last.group:
            return True
        return abs(snapshot.cpu_ns - last.cpu_ns) > _IDLE_CPU_NS
