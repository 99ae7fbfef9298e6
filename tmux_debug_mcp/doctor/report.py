"""Findings, and the report: lines for a person, problems last, where the eye is."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from tmux_debug_mcp.viewing.columns import BOLD, BOLD_RED, CYAN, GREEN, YELLOW, has_styles, row
from tmux_debug_mcp.vt.printable import visible


class Severity(StrEnum):
    """What a finding means for the server, from the best to the worst."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing.

    Attributes:
        name: The thing, in a few words.
        state: `OK`; `WARNING`: the server works with reduced features; `PROBLEM`: it does
            not work, or a client can't start it.
        found: What was found. It may contain any characters, such as those of files and programs.
        advice: What to do: a line to type or a setting to change; "" for nothing.
    """

    name: str
    state: Severity
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(name, Severity.OK, found)


def warning(name: str, found: str, advice: str) -> Finding:
    """Return a finding about something that the server works without."""
    return Finding(name, Severity.WARNING, found, advice)


def problem(name: str, found: str, advice: str) -> Finding:
    """Return a finding about something that the server does not work without."""
    return Finding(name, Severity.PROBLEM, found, advice)


def shown(path: Path) -> str:
    """Return a path as a report shows it: with `~` for the home directory."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text.removeprefix(home)}" if text.startswith(f"{home}/") else text


_ORDER = tuple(Severity)
_MARKS = {Severity.OK: "✓", Severity.WARNING: "!", Severity.PROBLEM: "✗"}
_STYLES = {Severity.OK: GREEN, Severity.WARNING: YELLOW, Severity.PROBLEM: BOLD_RED}
_NAME_COLUMNS = 17
# Beyond this, lines are hard to read.
_MAX_COLUMNS = 100
# For text that a file or a program chose.
_MAX_CHARACTERS = 600


def as_json(findings: Sequence[Finding]) -> str:
    """Return a JSON list of objects, in ASCII: `name`, `state`, `found` and `advice`."""
    return json.dumps([asdict(finding) for finding in findings], indent=2) + "\n"


def show(findings: Sequence[Finding], out: TextIO, environ: Mapping[str, str]) -> None:
    """Print the findings and the verdict: in colour and columns on a terminal, else plain.

    Of the environment, NO_COLOR is read. Source: no-color.org.
    """
    ordered = sorted(findings, key=lambda finding: _ORDER.index(finding.state))
    if not out.isatty():
        for finding in ordered:
            out.write(f"{finding.state:<8} {plain(finding.name)}: {plain(finding.found)}\n")
            if finding.advice:
                out.write(f"{'':<8} -> {plain(finding.advice)}\n")
        out.write(f"{verdict(findings)}\n")
        return
    is_plain = not has_styles(environ)
    is_unicode = (out.encoding or "utf-8").lower().startswith("utf")
    columns = min(shutil.get_terminal_size().columns, _MAX_COLUMNS)
    widths = [1, _NAME_COLUMNS, max(1, columns - _NAME_COLUMNS - 3)]
    for finding in ordered:
        mark, arrow = (_MARKS[finding.state], "→") if is_unicode else (finding.state[:1], "->")
        name = (plain(finding.name), "" if finding.state is Severity.OK else BOLD)
        found = [(plain(finding.found), "")]
        if finding.advice:
            found.append((f"\n{arrow} {plain(finding.advice)}", CYAN))
        out.write(
            row([[(mark, _STYLES[finding.state])], [name], found], widths, 1, is_plain=is_plain)
        )
    last = [(verdict(findings), _STYLES[worst(findings)])]
    out.write("\n" + row([last], [columns], 1, is_plain=is_plain))


def worst(findings: Sequence[Finding]) -> Severity:
    """Return the worst of all states; `OK` for no findings."""
    return max((finding.state for finding in findings), key=_ORDER.index, default=Severity.OK)


def verdict(findings: Sequence[Finding]) -> str:
    """Return the line that says whether the server works here."""
    counts = Counter(finding.state for finding in findings)
    problems, warnings = (
        f"{counts[state]} {state}{'s' if counts[state] > 1 else ''}"
        for state in (Severity.PROBLEM, Severity.WARNING)
    )
    if counts[Severity.PROBLEM]:
        also = f" and {warnings}" if counts[Severity.WARNING] else ""
        return f"{problems}{also}: tmux-debug-mcp does not work here yet."
    if counts[Severity.WARNING]:
        return f"tmux-debug-mcp works here, with {warnings}."
    return "tmux-debug-mcp works here."


def plain(text: str) -> str:
    """Return text that files and programs chose, shortened to one line that is safe to print."""
    line = " ".join(text[: _MAX_CHARACTERS + 1].split())
    if len(line) > _MAX_CHARACTERS:
        line = f"{line[:_MAX_CHARACTERS]}..."
    return visible(line)
