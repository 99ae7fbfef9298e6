"""Watching a pane: the one loop that looks at it, until a rule decides.

A rule is a function of moments, without I/O. It returns its verdict, or

- what it needs to know before it can decide, a `Need`: the loop finds that out, reads what was
  printed until then, and asks again about the same moment;
- `Later`: ask again when there is news, but at a time at the latest;
- None: ask again when there is news, and as often as looks at the pane are worth it.

There is news when the pane's log grows or its program ends. No event reports what the program is
doing. So a rule that depends on it needs looks, and the loop decides how often.
"""

import math
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, TypeVar

from tmux_debug_mcp.errors import PaneLostError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.matching import MatchReason

from .looking.activity import Activity
from .looking.state import State
from .pane import Pane

V = TypeVar("V")

# After more output than this between two pauses, the next pause is at least `Times.flood_s`.
_FLOOD_BYTES = 1 << 16


class Need(Enum):
    """What a rule needs to know about a moment, and which attribute of that then says it.

    Attributes:
        LOOK: What the pane is doing: `activity`.
        DRAIN: Whether the log, which may be late, contains all that was printed: `is_drained`. If
            some of it was, what the pane is doing is looked at again.
        LOG: Whether the log contains all that was printed: `is_drained`, without another look.
        PORTS: On which ports the pane's processes listen: `ports`.
        OTHERS: Whether anything else runs in the pane: `runs_others`.
    """

    LOOK = auto()
    DRAIN = auto()
    LOG = auto()
    PORTS = auto()
    OTHERS = auto()


class Later(NamedTuple):
    """A rule's answer: not yet; ask again at this time at the latest."""

    at: float


@dataclass(slots=True)
class Moment:
    """A pane at one moment. The loop adds what a rule needs to know; a rule changes nothing.

    Attributes:
        now: The time, by the pane's clock.
        is_due: The deadline is over.
        ending: How its program has ended; None while it runs.
        size: The end of what was printed, as far as the log has it.
        match: Which pattern matches what was read until now.
        stands: What `gone` matches is still there, as far as the log was read.
        touched_at: When something was last printed or typed, or the pane was made.
        has_person: A person has the keyboard.
        activity: What the pane was doing at the last look, at most `Times.min_look_s` before this
            moment; None if the rule has not asked for it.
        takes_commands: A shell in the foreground was started to take commands from the terminal.
        has_begun: The pane's command had begun before that look, or ended.
        has_children: The shell in the foreground had children before that look.
        is_drained: The log contained all that was printed when the rule asked; False if it is late,
            None if the rule has not asked since the last look.
        ports: The ports on which the pane's processes listen; None if that was not asked.
        runs_others: A program besides the shell at its prompt runs in the pane, or after the end of
            the pane's program, any program; None if that was not asked.
    """

    now: float
    is_due: bool = False
    ending: State | None = None
    size: int = 0
    match: MatchReason | None = None
    stands: bool = False
    touched_at: float = -math.inf
    has_person: bool = False
    activity: Activity | None = None
    takes_commands: bool = False
    has_begun: bool = True
    has_children: bool = False
    is_drained: bool | None = None
    ports: frozenset[int] | None = None
    runs_others: bool | None = None


Rule = Callable[[Moment], V | Need | Later | None]
# Reads what was printed up to the moment's size, and notes in it which pattern matches.
Read = Callable[[Moment], Awaitable[None]]


async def until(
    pane: Pane, rule: Rule[V], deadline: float, read: Read | None = None
) -> tuple[V | None, Moment]:
    """Watch a pane until a rule decides; return the verdict and its moment.

    The verdict is None if there is none at the deadline. Nothing runs between two moments, and no
    lock is held.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(pane.keeping_log())
        clock, times = pane.clock, pane.clock.times
        watch = _Watch(pane, deadline, read)
        subscription = None
        size = pane.log.size
        while True:
            try:
                answer, moment = await watch.ask(rule)
            except PaneLostError:  # now its program is known to have ended
                continue
            if not (answer is None or isinstance(answer, Later)):
                return answer, moment
            if moment.is_due:
                return None, moment
            if subscription is None:  # many rules decide at once
                subscription = await stack.enter_async_context(pane.subscribe())
                continue
            wait_s = watch.next_at(answer, moment) - clock.now()
            if moment.size - size > _FLOOD_BYTES:
                await clock.sleep(min(times.flood_s, max(0.0, wait_s)))
            else:
                await subscription.wait(wait_s)
            size = moment.size


class _Watch:
    """Makes moments of a pane, and says when the next one is due."""

    def __init__(self, pane: Pane, deadline: float, read: Read | None) -> None:
        self._pane = pane
        self._deadline = deadline
        self._read = read
        self._begun_at = pane.clock.now()
        self._look_at = -math.inf
        self._activity: Activity | None = None
        self._has_begun = True
        self._has_children = False
        self._takes_commands = False

    async def ask(self, rule: Rule[V]) -> tuple[V | Later | None, Moment]:
        """Ask a rule about this moment, and find out all that it needs to know."""
        pane = self._pane
        moment = Moment(0.0, ending=await pane.ending())
        while True:
            ending = moment.ending
            moment.size = ending.cursor if ending else pane.log.size
            if self._read:
                moment.match = None
                await self._read(moment)
            now, sent = pane.clock.now(), pane.keyboard.last_sent
            moment.now, moment.is_due = now, now >= self._deadline
            moment.touched_at = max(pane.log.grew_at(), sent.at if sent else -math.inf)
            moment.has_person = pane.keyboard.holder is not None
            answer = rule(moment)
            if not isinstance(answer, Need):
                return answer, moment
            await self._find_out(answer, moment)

    async def _find_out(self, need: Need, moment: Moment) -> None:
        pane = self._pane
        if need is Need.LOOK:
            await self._look(moment)
            moment.is_drained = None
        elif need is Need.PORTS:
            moment.ports = frozenset(end.port for end in pane.ports.ends())
        elif need is Need.OTHERS:
            shell = moment.activity.shell if moment.activity else None
            is_alone = not pane.left() if moment.ending else bool(shell and pane.is_alone(shell))
            moment.runs_others = not is_alone
        else:
            await self._drain(moment, looks=need is Need.DRAIN)

    async def _drain(self, moment: Moment, *, looks: bool) -> None:
        pane = self._pane
        try:
            moment.is_drained = await pane.drain()
        except PaneLostError:
            if moment.ending is None:
                raise
            moment.is_drained = True  # nothing more can come
        moment.ending = await pane.ending()
        activity = moment.activity
        if looks and activity and activity.snapshot.printed_bytes != pane.log.size:
            self._look_at = -math.inf  # it was printed before that look, or after it
            await self._look(moment)

    async def _look(self, moment: Moment) -> None:
        """Look at the pane. Output wakes a watch much more often than it is worth looking."""
        clock, terminal = self._pane.clock, self._pane.terminal
        if self._activity is None or clock.now() >= self._look_at:
            # Read first: if a command begins in between, or a last child ends, the look shows that
            # it is there, or that the shell has run.
            self._has_begun = terminal.has_begun()
            before = self._activity.snapshot.shell if self._activity else None
            self._has_children = bool(before and processes.children(before.pid))
            self._activity = await terminal.observe(self._begun_at)
            self._look_at = clock.now() + clock.times.min_look_s
            shell = self._activity.snapshot.shell
            if shell != before:
                self._takes_commands = shell is not None and shell.is_interactive()
        moment.activity = self._activity
        moment.takes_commands = self._takes_commands
        moment.has_begun = self._has_begun
        moment.has_children = self._has_children

    def next_at(self, answer: Later | None, moment: Moment) -> float:
        """Return when to ask again even without news."""
        pane, times, now = self._pane, self._pane.clock.times, self._pane.clock.now()
        at = min(self._deadline, answer.at if answer else math.inf)
        if moment.activity:
            look_again_s = moment.activity.look_again_s * pane.events.load
            return min(at, now + max(times.min_look_s, look_again_s))
        # After the program's end, which is about to be known, or after which the rule goes on.
        return min(at, now + times.max_look_s) if pane.has_exited else at


def at_rest(moment: Moment) -> bool | Need | None:
    """Decide, as a rule, that a program has ended, awaits something, or was quiet for a while."""
    if moment.ending:
        return True
    if moment.activity is None:
        return Need.LOOK
    return moment.activity.is_at_rest or None


async def rest(pane: Pane, timeout_s: float) -> State:
    """Return a pane's state once it is at rest, or at the timeout; 0 takes a single look."""
    await until(pane, at_rest, pane.clock.now() + timeout_s)
    return await pane.state()
