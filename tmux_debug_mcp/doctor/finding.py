"""Findings, and checks that run at the same time without holding each other up."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MORE_TIME = "Give it more time: tmux-debug doctor --timeout 30"


class State(StrEnum):
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
    state: State
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(name, State.OK, found)


def warning(name: str, found: str, advice: str) -> Finding:
    """Return a finding about something that the server works without."""
    return Finding(name, State.WARNING, found, advice)


def problem(name: str, found: str, advice: str) -> Finding:
    """Return a finding about something that the server does not work without."""
    return Finding(name, State.PROBLEM, found, advice)


def shown(path: Path) -> str:
    """Return a path as a report shows it: with `~` for the home directory."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text.removeprefix(home)}" if text.startswith(f"{home}/") else text


@dataclass(frozen=True, slots=True)
class Check:
    """A look at one part of the machine. If the look fails, its finding has this name.

    `late` are the findings if the look is not done in time; () for a warning that says so.
    """

    name: str
    look: Callable[[], list[Finding]]
    late: Sequence[Finding] = ()


def findings_of(checks: Sequence[Check], timeout_s: float) -> list[Finding]:
    """Run all checks at the same time, and return their findings in the order of the checks.

    A check that fails is a finding, and so is a late one. The thread of a late check keeps running
    until this process ends: a look at a file system that hangs can't be cancelled.
    """
    results: dict[int, Sequence[Finding]] = {}
    done = threading.Semaphore(0)
    deadline = time.monotonic() + timeout_s

    def work(number: int, check: Check) -> None:
        try:
            if time.monotonic() < deadline:  # else nobody would end what it starts
                results[number] = check.look()
        except Exception as error:  # noqa: BLE001  a look that fails is a finding
            reason = str(error) or type(error).__name__
            results[number] = [warning(check.name, f"Can't be checked: {reason}", "")]
        done.release()

    for number, check in enumerate(checks):
        try:
            threading.Thread(target=work, args=(number, check), daemon=True).start()
        except RuntimeError:  # this user has too many threads
            work(number, check)
    for _ in checks:
        if not done.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            break
    findings: list[Finding] = []
    for number, check in enumerate(checks):
        late = [warning(check.name, f"No result within {timeout_s:g} s.", MORE_TIME)]
        findings += results.get(number, check.late or late)
    return findings
