"""The prompt of the shell in a pane: whether the shell is at it, or reaches it soon."""

import math

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.vt.sequences import INVISIBLE, STRING

from .looking.activity import prompting_shell
from .pane import Pane
from .shells.dialects import Shell, foreground_shell
from .watching import Later, Moment, Need, until

# Prompts are shorter, including the sequences that draw them.
MAX_PROMPT_BYTES = 4096


class AtPrompt:
    """Decides, as a rule, that the shell in the foreground is at its prompt, or won't reach it.

    How long it waits depends on what has the terminal:

    - A shell that was at its prompt before gets `timeout_s`, and until `Times.coming_s` while it is
      at work.
    - A new shell gets `starting_s` while it is busy; if it is asked `to_run` something, also while
      it runs programs itself.
    - Another program gets `timeout_s` if a shell is asked `to_run` something, or while the pane is
      young. Before the pane's command has begun, it gets `starting_s`.
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
        deadline, made_at = pane.clock.now() + timeout_s, pane.started_at
        # Until when another program may have the terminal.
        self.program_until = deadline if to_run else min(deadline, made_at + times.young_s)
        # Until when it may before the pane's command has begun.
        self._begin_until = max(deadline, made_at + self._starting_s)
        self._shell_seen_at: float | None = None  # when a shell was first in the foreground

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
            may_come = self._may_reach_prompt(shell, activity.unchanged_s, moment)
        else:
            may_come = now < (self.program_until if moment.has_begun else self._begin_until)
        return Later(now + activity.look_again_s) if may_come else False

    def _may_reach_prompt(self, shell: Shell, unchanged_s: float, moment: Moment) -> bool:
        if self._shell_seen_at is None:
            self._shell_seen_at = moment.now
        waited_s = moment.now - self._shell_seen_at
        is_at_work = unchanged_s < self._timeout_s
        if waited_s <= self._timeout_s or (is_at_work and waited_s < self._times.coming_s):
            return True
        is_new = shell.start not in self.pane.terminal.known_shells
        if not is_new or not moment.takes_commands:
            return False
        is_busy = unchanged_s < self._times.asking_s or (self._to_run and moment.has_children)
        return is_busy and waited_s < self._starting_s


async def prompt(rule: AtPrompt, most_s: float = math.inf, *, is_sure: bool = True) -> Shell | None:
    """Return the shell in the foreground once it is at its prompt, None if it does not reach it.

    It waits for at most `most_s`. Without `is_sure`, one look is enough for a shell that has been
    at its prompt before.
    """
    pane, terminal, now = rule.pane, rule.pane.terminal, rule.pane.clock.now()
    if now >= rule.program_until and terminal.has_begun():
        # No wait, and often no look, for a program that has the terminal instead of a shell.
        known = terminal.unchanged()
        shell = known.snapshot.shell if known else foreground_shell(pane.leader.pid)
        if shell is None:
            return None
    if not is_sure:
        activity = terminal.look()
        likely = prompting_shell(activity.snapshot) if activity.is_likely else None
        if likely and likely.start in terminal.known_shells:
            return likely
    found, _ = await until(pane, rule, now + most_s)
    if not isinstance(found, Shell):
        return None
    terminal.known_shells.add(found.start)
    return found


def is_within_line(log: Log, start: int) -> bool:
    """Tell whether output since a cursor ends within a line, as a prompt does."""
    tail_start = max(start, log.kept_from, log.size - MAX_PROMPT_BYTES)
    tail = log.read(tail_start, log.size - tail_start).decode(errors="replace")
    return INVISIBLE.sub("", STRING.sub("", tail))[-1:] not in ("", "\r", "\n")
