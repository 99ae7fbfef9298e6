"""The prompt of the shell in a pane: whether the shell is at it, or reaches it soon."""

import math

from .looking.activity import prompting
from .pane import Pane
from .shells.dialects import Shell, foreground_shell
from .watching import Later, Moment, Need, until


class AtPrompt:
    """Decides, as a rule, that the shell in the foreground is at its prompt, or won't reach it.

    A shell that has been at its prompt before gets `timeout_s`, but at least `Times.coming_s` while
    it is at work. A new one gets `starting_s` while it is busy; if it is asked `to_run` something,
    also while it runs programs itself. Another program may have the terminal in a pane that was
    just made, or if a shell is asked `to_run` something, for `timeout_s`; before the pane's command
    has begun, for `starting_s`.
    """

    def __init__(
        self,
        pane: Pane,
        timeout_s: float,
        starting_s: float | None = None,
        *,
        to_run: bool = False,
    ) -> None:
        self.pane = pane
        self._times = times = pane.clock.times
        self._timeout_s = timeout_s
        self._starting_s = times.starting_s if starting_s is None else starting_s
        self._to_run = to_run
        begin, made_at = pane.clock.now(), pane.started_at
        # How long another program may have the terminal: the pane's command, or what is before it.
        self.other_until = begin + timeout_s
        if not to_run:
            self.other_until = min(self.other_until, made_at + times.young_s)
        self._before_until = max(begin + timeout_s, made_at + self._starting_s)
        self._seen_at: float | None = None  # when a shell was first seen in the foreground

    def __call__(self, moment: Moment) -> Shell | bool | Need | Later:
        """Return the shell at its prompt; False if none reaches it."""
        now, activity = moment.now, moment.activity
        if moment.ending:
            return False
        if activity is None:
            return Need.LOOK
        if activity.shell:
            return activity.shell
        shell = activity.snapshot.shell
        if shell:
            is_coming = self._is_coming(shell, activity.same_s, moment)
        else:
            is_coming = now < (self.other_until if moment.has_begun else self._before_until)
        return Later(now + activity.look_again_s) if is_coming else False

    def _is_coming(self, shell: Shell, same_s: float, moment: Moment) -> bool:
        """Return whether a shell that has done nothing for `same_s` may reach its prompt soon."""
        if self._seen_at is None:
            self._seen_at = moment.now
        waited_s = moment.now - self._seen_at
        if waited_s <= self._timeout_s:
            return True
        if same_s < self._timeout_s and waited_s < self._times.coming_s:
            return True
        if shell.start in self.pane.terminal.known_shells or not moment.takes_commands:
            return False
        is_busy = same_s < self._times.asking_s or (self._to_run and moment.has_children)
        return is_busy and waited_s < self._starting_s


async def prompt(rule: AtPrompt, most_s: float = math.inf, *, is_sure: bool = True) -> Shell | None:
    """Return the shell in the foreground once it is at its prompt, None if it does not reach it.

    Without `is_sure`, one look is enough for a shell that has been at its prompt before.
    """
    pane, terminal, now = rule.pane, rule.pane.terminal, rule.pane.clock.now()
    is_over = now >= rule.other_until and terminal.has_begun()
    if is_over:
        known = terminal.unchanged()
        shell = known.snapshot.shell if known else foreground_shell(pane.leader.pid)
        if shell is None:
            return None
    if not is_sure:
        activity = terminal.look()
        likely = prompting(activity.snapshot) if activity.is_likely else None
        if likely and likely.start in terminal.known_shells:
            return likely
    found, _ = await until(pane, rule, now + most_s)
    if not isinstance(found, Shell):
        return None
    terminal.known_shells.add(found.start)
    return found
