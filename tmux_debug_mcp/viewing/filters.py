"""Which calls of an audit are wanted, and what its panes are called. No I/O."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.verbs.registry import TOOLS
from tmux_debug_mcp.vt.printable import visible

from .audits import Record

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([smhdw])(?: ago)?")
_TIME_OF_DAY = re.compile("([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")

# The tools that make a pane and may name it.
MAKING = frozenset({"create_pane", "create_tab"})
# The tools of `debug`, by their verbs on the command line.
_VERBS = {verb.name: verb.tool.removeprefix("tmux_") for verb in TOOLS}


class PaneNames:
    """The names of panes, from the records of the calls that made them.

    The server run tells panes apart; if it isn't on record, their audit does. If servers that share
    such an audit each have a pane of the same id, the newest pane's name counts.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        # Of all audits without runs: panes of a rotated audit appear in its successor, too.
        self._without_run: dict[str, str] = {}

    def note(self, record: Record) -> None:
        """Remember the name of a pane that a call made. Call it with every record, in order."""
        if record.tool not in MAKING or record.error:
            return
        name = record.fields.get("name")
        if not isinstance(name, str):
            name = ""
        for pane in record.panes:
            self._names[record.run or str(record.path), pane] = name
            if not record.run:
                self._without_run[pane] = name

    def of(self, record: Record, pane: str) -> str:
        """Return the name of a pane of the call's server, "" if it has none."""
        name = self._names.get((record.run or str(record.path), pane))
        if name is None and not record.run:
            name = self._without_run.get(pane)
        return name or ""

    def are_same(self, record: Record, pane: str, wanted: str) -> bool:
        """Return whether an id or a name means this pane of a call."""
        if wanted in (pane, self.of(record, pane)):
            return True
        # A failed call names the pane as its caller did, perhaps by name.
        return pane != "" and self.of(record, wanted) == pane


@dataclass(frozen=True, slots=True)
class Filter:
    """Which calls of an audit are wanted: those that meet every given condition.

    A call concerns one of `panes`, by id or name; its tool is one of `tools`, by their names on
    record; `caller` is a part of its caller's name; it was answered at `since`, in seconds since
    the epoch, or later; with `failed_only`, it failed, or its command or wait did.
    """

    panes: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    caller: str = ""
    since: float = 0.0
    failed_only: bool = False

    def accepts(self, record: Record, names: PaneNames) -> bool:
        """Return whether a call is wanted."""
        if record.ended_at < self.since:
            return False
        if self.failed_only and not record.result.is_failure:
            return False
        if self.tools and record.tool not in self.tools:
            return False
        if self.caller and self.caller not in record.caller:
            return False
        return not self.panes or any(
            names.are_same(record, pane, wanted) for pane in record.panes for wanted in self.panes
        )


def tools_of(words: Iterable[str]) -> frozenset[str]:
    """Return the names on record of tools, given with or without `tmux_`, or as verbs."""
    tools = {word.removeprefix("tmux_") for word in words}
    return frozenset(tools | {_VERBS[word] for word in tools & _VERBS.keys()})


def time_of(word: str, now: datetime) -> float:
    """Return the time that a word means, in seconds since the epoch; `now` is local.

    The word is an ISO 8601 time, local if it names no zone; a time of day, which means its most
    recent occurrence; or how long ago, such as `10m`.
    """
    text, word = word, word.strip()
    try:
        ago = _AGO.fullmatch(word)
        if ago:
            return now.timestamp() - float(ago[1]) * _UNITS_S[ago[2]]
        time_of_day = _TIME_OF_DAY.fullmatch(word)
        if not time_of_day:
            return datetime.fromisoformat(word).timestamp()
        hour, minute, second = (int(part or 0) for part in time_of_day.groups())
        local = now.replace(tzinfo=None)
        moment = local.replace(hour=hour, minute=minute, second=second, microsecond=0)
        if moment > local:
            moment -= timedelta(days=1)
        return moment.timestamp()
    except (ValueError, OverflowError):
        raise VerbError(
            f"--since is '{visible(text)}', which is not a time. Give one such as "
            "2026-01-30T10:15, 10:15, or how long ago: 90s, 10m, 2h, 1d."
        ) from None
