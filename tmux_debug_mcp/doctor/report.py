"""The report: findings as lines for a person, problems last, where the eye is."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tmux_debug_mcp.vt.printable import visible

from .finding import Finding, State

_ORDER = (State.OK, State.WARNING, State.PROBLEM)
_MARKS = {State.OK: "✓", State.WARNING: "!", State.PROBLEM: "✗"}
_STYLES = {State.OK: "green", State.WARNING: "yellow", State.PROBLEM: "bold red"}
_NAME_COLUMNS = 17
# Beyond this, lines are hard to read.
_MAX_COLUMNS = 100
# Of a text that a file or a program chose.
_MAX_CHARACTERS = 600


def as_json(findings: Sequence[Finding]) -> str:
    """Return a list of objects, in ASCII: `name`, `state`, `found` and `advice`."""
    objects = [
        {"name": one.name, "state": one.state, "found": one.found, "advice": one.advice}
        for one in findings
    ]
    return json.dumps(objects, indent=2) + "\n"


def show(findings: Sequence[Finding], out: IO[str], environ: Mapping[str, str]) -> None:
    """Print the findings and the verdict: in colour and columns on a terminal, else plain.

    Args:
        findings: What was found.
        out: Where to print.
        environ: The environment, of which NO_COLOR is read. Source: no-color.org.
    """
    ordered = sorted(findings, key=lambda finding: _ORDER.index(finding.state))
    if not out.isatty():
        for finding in ordered:
            out.write("".join(f"{line}\n" for line in _plain_lines(finding)))
        out.write(f"{verdict(findings)}\n")
        return
    console = Console(
        file=out,
        width=min(Console(file=out).width, _MAX_COLUMNS),
        no_color=bool(environ.get("NO_COLOR")),
        highlight=False,
    )
    for finding in ordered:
        console.print(_row(finding, console))
    console.print()
    console.print(Text(verdict(findings), style=_STYLES[worst(findings)]))


def worst(findings: Sequence[Finding]) -> State:
    """Return the worst of all states; `OK` for no findings."""
    return max((one.state for one in findings), key=_ORDER.index, default=State.OK)


def verdict(findings: Sequence[Finding]) -> str:
    """Return the line that says whether the server works here."""
    counts = Counter(finding.state for finding in findings)
    problems = _counted(counts[State.PROBLEM], "problem")
    warnings = _counted(counts[State.WARNING], "warning")
    if counts[State.PROBLEM]:
        also = f" and {warnings}" if counts[State.WARNING] else ""
        return f"{problems}{also}: tmux-debug-mcp does not work here yet."
    if counts[State.WARNING]:
        return f"tmux-debug-mcp works here, with {warnings}."
    return "tmux-debug-mcp works here."


def plain(text: str) -> str:
    """Return a text on one line, safe to print: files and programs chose it."""
    line = " ".join(text[: _MAX_CHARACTERS + 1].split())
    if len(line) > _MAX_CHARACTERS:
        line = f"{line[:_MAX_CHARACTERS]}..."
    return visible(line)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _plain_lines(finding: Finding) -> list[str]:
    lines = [f"{finding.state:<8} {plain(finding.name)}: {plain(finding.found)}"]
    if finding.advice:
        lines.append(f"{'':<8} -> {plain(finding.advice)}")
    return lines


def _row(finding: Finding, console: Console) -> Table:
    """Return a finding as a row: its mark, its name, and beside them what was found."""
    marks = _MARKS if console.encoding.startswith("utf") else {one: one[:1] for one in State}
    arrow = "→" if console.encoding.startswith("utf") else "->"
    style = _STYLES[finding.state]
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=_NAME_COLUMNS)
    table.add_column(overflow="fold")
    name = Text(plain(finding.name), style="" if finding.state is State.OK else "bold")
    found = Text(plain(finding.found))
    if finding.advice:
        found.append(f"\n{arrow} {plain(finding.advice)}", style="cyan")
    table.add_row(Text(marks[finding.state], style=style), name, found)
    return table
