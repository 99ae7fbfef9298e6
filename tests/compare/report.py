"""The comparison as a page."""

import datetime as dt
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from tmux_debug_mcp.vt.printable import visible

from .results import Effort, Outcome, Result
from .tasks import LOOKS
from .truths import TRUTHS

_INTRODUCTION = """\
# Comparison

This page shows how this and other tools handle {count} things that a terminal for agents has to get right, and what it
takes to debug {tasks} broken programs with them. Repeat the comparison on your machine:

```console
$ ./dev compare --page comparison.md
```

`--tools` chooses tools and `--server TOOL=COMMAND` adds an MCP server, as in
`--server 'nickgnd=node tmux-mcp/build/index.js'`. `./dev compare --help` lists the servers it knows.

- Each thing is tried once, in a new process and directory, with each tool's default settings. The adapters in
  `tests/compare` do what a good agent would do: they use a tool's own waiting and running if it has any, and otherwise
  look every half second and type commands with markers around them.
- `·` means that the tool doesn't offer what the row needs.
- We chose what is tried, and we make one of the tools. pexpect and libtmux are libraries: a program that uses them can
  add much of what they lack here.
- We don't compare what each tool does that the others don't.
"""
_TASKS = """\
## Tasks

Each task is a broken program, with a script of what a good agent does to find the cause (`tests/stories`,
`tests/compare/tasks.py`). A task is solved once the tool has shown the cause.

- **Turns** counts how often the agent acts: each call of an MCP server, or each script in a shell or in Python. A script
  can have several steps, wait for a pattern and filter what it prints.
- **kB** is the text that the tool sent the agent; of what a script prints, at most 40,000 characters a turn. We don't
  count what the agent wrote; scripts are longer than calls.
- **Wrong** counts programs whose exit code or signal the tool got wrong.
- If a server can't wait, the agent looks again after two seconds, at most {looks} times. No call takes longer than two
  minutes. If output is lost, the agent runs the program again with its output in a file.
- The scripts know the cause in advance. We don't measure what an agent needs to find the right steps, or how a
  misleading result affects it.
- mini_nightmare has ten bugs. We leave one out: it needs pandas and data from the internet.
"""
_SEEN = "Each item states what should have happened, then what was seen instead."
_SIGNS = {Outcome.HOLDS: "yes", Outcome.BROKEN: "**no**", Outcome.NOT_OFFERED: "·"}


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


def page(compared: Sequence[Compared]) -> str:
    """Return the tables in Markdown."""
    today = dt.datetime.now(tz=dt.UTC).date()
    names = list(compared[0].efforts) if compared else []
    introduction = _INTRODUCTION.format(count=len(TRUTHS), tasks=len(names))
    lines = [introduction, f"Tried on {today}, {_system()}, with:", ""]
    lines += [f"- {one.title}: {one.version or 'it names no version'}" for one in compared]
    lines += ["", *_summary(compared), ""]
    numbers = sorted(compared[0].results) if compared else []
    for kind in dict.fromkeys(TRUTHS[number].kind for number in numbers):
        of_kind = [number for number in numbers if TRUTHS[number].kind == kind]
        lines += [f"## {kind.capitalize()}", "", *_table(compared, of_kind), ""]
    lines += [_TASKS.format(looks=LOOKS), *_totals(compared), "", *_efforts(compared, names), ""]
    lines += ["## What was seen instead", "", _SEEN, ""]
    for one in compared:
        broken = [(n, r) for n, r in one.results.items() if r.outcome is Outcome.BROKEN]
        if broken:
            lines += [f"**{one.title}**", ""]
            lines += [f"- {TRUTHS[n].sentence} {_code(r.seen)}" for n, r in broken] + [""]
    return "\n".join(lines)


def _system() -> str:
    release = platform.freedesktop_os_release()
    return f"{release.get('PRETTY_NAME', 'Linux')}, Linux {platform.release().split('-')[0]}"


def _summary(compared: Sequence[Compared]) -> list[str]:
    rows = ["| | yes | no | not offered |", "|---|---|---|---|"]
    for one in compared:
        counts = [
            sum(result.outcome is outcome for result in one.results.values()) for outcome in Outcome
        ]
        rows.append(f"| {one.title} | {' | '.join(map(str, counts))} |")
    return rows


def _table(compared: Sequence[Compared], numbers: Sequence[int]) -> list[str]:
    rows = [
        f"| | {' | '.join(one.title for one in compared)} |",
        "|---|" + "---|" * len(compared),
    ]
    for number in numbers:
        signs = " | ".join(_SIGNS[one.results[number].outcome] for one in compared)
        rows.append(f"| {TRUTHS[number].sentence} | {signs} |")
    return rows


def _totals(compared: Sequence[Compared]) -> list[str]:
    rows = ["| | solved | turns | kB | seconds | wrong |", "|---|---|---|---|---|---|"]
    for one in compared:
        efforts = list(one.efforts.values())
        rows.append(
            f"| {one.title} | {sum(not effort.missed for effort in efforts)} of {len(efforts)} "
            f"| {sum(effort.turns for effort in efforts)} "
            f"| {sum(effort.bytes for effort in efforts) / 1000:.1f} "
            f"| {sum(effort.seconds for effort in efforts):.0f} "
            f"| {sum(effort.wrong for effort in efforts)} |"
        )
    return rows


def _efforts(compared: Sequence[Compared], names: Sequence[str]) -> list[str]:
    """Return the turns and kB of each task."""
    rows = [
        f"| turns, kB | {' | '.join(one.title for one in compared)} |",
        "|---|" + "---|" * len(compared),
    ]
    for name in names:
        efforts = [one.efforts[name] for one in compared]
        cells = [
            "unsolved" if effort.missed else f"{effort.turns}, {effort.bytes / 1000:.1f}"
            for effort in efforts
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def _code(text: str) -> str:
    """Return a text as code on one line of Markdown, whatever is in it."""
    shown = visible(text).replace("`", "'")
    return f"`{shown}`" if shown else ""
