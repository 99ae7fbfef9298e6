"""The comparison as a page."""

import datetime as dt
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmux_debug_mcp.vt.printable import visible

from .results import Outcome, Result
from .truths import TRUTHS

_INTRODUCTION = """\
# Comparison

This page shows how this and other tools handle {count} things that a terminal for agents has to get right. Repeat the
comparison on your machine:

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
- We don't compare speed, cost in context, and what each tool does that the others don't.
"""
_SEEN = "Each item names what a tool got wrong, and ends with what was seen instead."
_SIGNS = {Outcome.HOLDS: "yes", Outcome.BROKEN: "**no**", Outcome.NOT_OFFERED: "·"}


@dataclass(frozen=True)
class Compared:
    """What came of the truths with one tool, by the number of the truth."""

    title: str
    version: str
    results: Mapping[int, Result]


def page(compared: Sequence[Compared]) -> str:
    """Return the tables in Markdown."""
    today = dt.datetime.now(tz=dt.UTC).date()
    lines = [_INTRODUCTION.format(count=len(TRUTHS)), f"Tried on {today}, {_system()}, with:", ""]
    lines += [f"- {one.title}: {one.version or 'it names no version'}" for one in compared]
    lines += ["", *_summary(compared), ""]
    numbers = sorted(compared[0].results) if compared else []
    for kind in dict.fromkeys(TRUTHS[number].kind for number in numbers):
        of_kind = [number for number in numbers if TRUTHS[number].kind == kind]
        lines += [f"## {kind.capitalize()}", "", *_table(compared, of_kind), ""]
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


def _code(text: str) -> str:
    """Return a text as code on one line of Markdown, whatever is in it."""
    shown = visible(text).replace("`", "'")
    return f"`{shown}`" if shown else ""
