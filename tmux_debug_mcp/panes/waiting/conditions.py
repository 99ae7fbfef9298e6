"""What a wait waits for."""

from dataclasses import dataclass

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S

MAX_OBSERVATION_CHARACTERS = 10_000
# Limit for the text of an observation that the caller has not asked for.
MAX_UNASKED_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Conditions:
    """What ends a wait: the first of these conditions, the program's end, or the timeout.

    Attributes:
        pattern: A regular expression of RE2 that a line of output has to match.
        stop_pattern: Another one, which tells that there is no use in waiting any longer.
        idle_s: Nothing was printed and nothing typed for this long.
        is_for_rest: Wait until the pane is at rest.
        is_for_input: Wait until the program awaits something.
        timeout_s: The time to wait; 0 only looks at what is there.
        max_characters: The limit for the text of the observation.
        advice: How to read output that is left out; `{cursor}` stands for where it begins.
    """

    pattern: str | None = None
    stop_pattern: str | None = None
    idle_s: float | None = None
    is_for_rest: bool = False
    is_for_input: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_characters: int = MAX_OBSERVATION_CHARACTERS
    advice: str = ""

    @property
    def is_look(self) -> bool:
        """Whether there is no condition and no time to wait."""
        look = Conditions(timeout_s=0, max_characters=self.max_characters, advice=self.advice)
        return self == look

    @property
    def depends_on_activity(self) -> bool:
        """Whether a condition depends on what the pane is doing, not only on its output."""
        return self.is_for_rest or self.is_for_input
