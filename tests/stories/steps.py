"""What an agent does while it debugs, in terms of no tool, and our calls for that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that an agent does.

    Attributes:
        shows: What it has to learn: a regular expression that some line or lines match.
        says: What our result has to say beside that.
        ending: How the pane's program has ended then: the words that tools have for it.
    """

    shows: str = ""
    says: str = ""
    ending: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Start(Step):
    """Start a program in a new pane, and wait for a pattern if one is given.

    `show` is a pattern of the only lines that the agent wants to see.
    """

    pane: str
    command: str
    until: str = ""
    show: str = ""


@dataclass(frozen=True, kw_only=True)
class Send(Step):
    """Send keys, lines (with a line feed at their end) and signals, one after the other."""

    pane: str
    keys: Sequence[str]
    until: str = ""
    show: str = ""
    is_secret: bool = False


@dataclass(frozen=True, kw_only=True)
class Await(Step):
    """Wait until a pane has printed something, if it has not yet."""

    pane: str
    pattern: str


@dataclass(frozen=True, kw_only=True)
class Find(Step):
    """Find the last lines that a pane has printed and that match a pattern."""

    pane: str
    pattern: str


@dataclass(frozen=True, kw_only=True)
class Run(Step):
    """Run a command to its end."""

    command: str


Move = Start | Send | Await | Find | Run

# How many lines an agent wants to see of those that match.
FOUND = 5
# How long our calls may take.
MAX_CALL_S = 30.0


def call_of(move: Move, cwd: str, max_s: float = MAX_CALL_S) -> tuple[str, Mapping[str, Any]]:
    """Return our tool and its arguments. A pane has the name that the script calls it."""
    match move:
        case Start(pane=pane, command=command, until=until, show=show):
            return "create_pane", {
                "name": pane,
                "command": command,
                "cwd": cwd,
                **({"wait_for": until} if until else {}),
                **({"show": show} if show else {}),
                "timeout_s": max_s,
            }
        case Send(pane=pane, keys=keys, until=until, show=show, is_secret=is_secret):
            return "send_keys", {
                "pane_id": pane,
                "keys": list(keys),
                **({"wait_for": until} if until else {}),
                **({"show": show} if show else {}),
                "timeout_s": max_s,
                **({"secret": True} if is_secret else {}),
            }
        case Await(pane=pane, pattern=pattern):
            return "wait", {"pane_id": pane, "pattern": pattern, "since": 0, "timeout_s": max_s}
        case Find(pane=pane, pattern=pattern):
            return "capture_pane", {"pane_id": pane, "pattern": pattern, "lines": FOUND}
        case Run(command=command):
            return "run", {"command": command, "cwd": cwd, "timeout_s": max_s}
