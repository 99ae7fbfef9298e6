"""What came of a truth or a task with a tool."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Whether a truth holds.

    Attributes:
        HOLDS: It does.
        BROKEN: It does not.
        NOT_OFFERED: The tool has no way to do what it is about.
    """

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_OFFERED = "not offered"


@dataclass(frozen=True)
class Result:
    """What came of it, and what was seen if it does not hold."""

    outcome: Outcome
    seen: str = ""


@dataclass(frozen=True)
class Effort:
    """What a task took.

    Attributes:
        missed: What was not shown, where the task was not solved.
        wrong: What was told and is not so.
        bytes: How much text the agent was sent.
    """

    turns: int
    bytes: int
    seconds: float
    missed: str = ""
    wrong: int = 0
