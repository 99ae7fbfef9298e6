"""The comparison in Markdown: its summary, and all rows."""

import datetime as dt
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import orjson

from tmux_debug_mcp.vt.printable import visible

from .results import Effort, Outcome, Result
from .truths import TRUTHS

_SEEN = "Each item states what should have happened, then what was seen instead."
_SIGNS = {Outcome.HOLDS: "yes", Outcome.BROKEN: "**no**", Outcome.NOT_OFFERED: "not offered"}


@dataclass
class Compared:
    """What came with one tool of truths, by their numbers, and of tasks, by their names."""

    title: str
    version: str = ""
    results: dict[int, Result] = field(default_factory=dict)
    efforts: dict[str, Effort] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return it with the sentences of the truths, as their numbers change."""
        of_truths = {TRUTHS[number].sentence: result for number, result in self.results.items()}
        return orjson.dumps(vars(self) | {"results": of_truths}, option=orjson.OPT_INDENT_2)

    @classmethod
    def from_json(cls, data: bytes) -> "Compared":
        """Return what `to_json` has written."""
        fields = orjson.loads(data)
        numbers = {truth.sentence: number for number, truth in enumerate(TRUTHS)}
        results = {
            numbers[sentence]: Result(Outcome(one["outcome"]), one["seen"])
            for sentence, one in fields["results"].items()
            if sentence in numbers  # others are of an earlier version
        }
        efforts = {name: Effort(**effort) for name, effort in fields["efforts"].items()}
        return cls(fields["title"], fields["version"], results, efforts)


def summary(compared: Sequence[Compared]) -> str:
    """Return which tools were tried, and how each did by kind of truth and group of tasks."""
    today = dt.datetime.now(tz=dt.UTC).date()
    kinds = Counter(TRUTHS[number].kind for number in _numbers(compared))
    groups = Counter(_group(name) for name in _names(compared))
    return "\n".join(
        [
            f"Tried on {today}, {_system()}, with:",
            "",
            *(f"- {one.title}: {one.version or 'it names no version'}" for one in compared),
            "",
            *_table(
                ["holds", *_sizes(kinds), f"all ({kinds.total()})", "not offered"],
                *([one.title, *_held(one, kinds)] for one in compared),
            ),
            *_table(
                ["tasks", "solved", "turns", "kB", "seconds", "wrong", *_sizes(groups)],
                *([one.title, *_taken(one, groups)] for one in compared),
            ),
        ]
    )


def page(compared: Sequence[Compared]) -> str:
    """Return the summary and all rows: each truth, each task, and what was seen instead."""
    titles = [one.title for one in compared]
    numbers = _numbers(compared)
    lines = ["# Comparison", "", summary(compared)]
    for kind in dict.fromkeys(TRUTHS[number].kind for number in numbers):
        signs = (
            [TRUTHS[number].sentence, *(_SIGNS[one.results[number].outcome] for one in compared)]
            for number in numbers
            if TRUTHS[number].kind == kind
        )
        lines += [f"## {kind.capitalize()}", "", *_table(["", *titles], *signs)]
    costs = ([name, *(_cost([one.efforts[name]]) for one in compared)] for name in _names(compared))
    lines += ["## Tasks", "", *_table(["turns, kB", *titles], *costs)]
    lines += ["## What was seen instead", "", _SEEN, ""]
    for one in compared:
        broken = [(n, r) for n, r in one.results.items() if r.outcome is Outcome.BROKEN]
        if broken:
            lines += [f"**{one.title}**", ""]
            lines += [f"- {TRUTHS[n].sentence} {_code(r.seen)}" for n, r in broken] + [""]
    return "\n".join(lines)


def _numbers(compared: Sequence[Compared]) -> list[int]:
    return sorted(compared[0].results) if compared else []


def _names(compared: Sequence[Compared]) -> list[str]:
    return list(compared[0].efforts) if compared else []


def _group(task: str) -> str:
    return task.partition(":")[0]


def _system() -> str:
    release = platform.freedesktop_os_release()
    return f"{release.get('PRETTY_NAME', 'Linux')}, Linux {platform.release().split('-')[0]}"


def _table(*rows: Sequence[object]) -> list[str]:
    head, *body = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [head, "|---" * len(rows[0]) + "|", *body, ""]


def _sizes(counts: Counter[str]) -> list[str]:
    return [f"{name} ({count})" for name, count in counts.items()]


def _held(one: Compared, kinds: Iterable[str]) -> list[int]:
    """Return how many truths hold, of each kind and of all, and how many can't be tried."""
    counts = Counter((r.outcome, TRUTHS[n].kind) for n, r in one.results.items())
    held = [counts[Outcome.HOLDS, kind] for kind in kinds]
    not_offered = sum(result.outcome is Outcome.NOT_OFFERED for result in one.results.values())
    return [*held, sum(held), not_offered]


def _taken(one: Compared, groups: Iterable[str]) -> list[str]:
    """Return what all tasks took, and what the solved ones of each group did."""
    efforts = one.efforts.values()
    return [
        f"{sum(not effort.missed for effort in efforts)} of {len(efforts)}",
        f"{sum(effort.turns for effort in efforts)}",
        f"{sum(effort.bytes for effort in efforts) / 1000:.1f}",
        f"{sum(effort.seconds for effort in efforts):.0f}",
        f"{sum(effort.wrong for effort in efforts)}",
        *(
            _cost([effort for name, effort in one.efforts.items() if _group(name) == group])
            for group in groups
        ),
    ]


def _cost(efforts: Sequence[Effort]) -> str:
    """Return the turns and kB of the tasks that were solved, and how many were not."""
    solved = [effort for effort in efforts if not effort.missed]
    kilobytes = sum(effort.bytes for effort in solved) / 1000
    cost = [f"{sum(effort.turns for effort in solved)}, {kilobytes:.1f}"] if solved else []
    unsolved = len(efforts) - len(solved)
    return ", ".join(cost + [f"{unsolved} unsolved"] * bool(unsolved))


def _code(text: str) -> str:
    """Return a text as code on one line of Markdown, whatever is in it."""
    shown = visible(text).replace("`", "'")
    return f"`{shown}`" if shown else ""
