"""Clients: whether each has our server, and whether the command in its configuration works.

A command is started only if it is ours and nothing else: no launcher that would install something,
and from a project's file only a program that this user has anyway. It gets neither the options nor
the directories of the configuration.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .clients import Client, Entry, clients_found
from .finding import MORE_TIME, Check, Finding, State, findings_of, ok, problem, shown, warning
from .options import fault_of
from .probe import LateError, Probe, ProbeError, Surroundings, environment

_PROGRAM = "tmux-debug-mcp"
_MODULE = ("-m", "tmux_debug_mcp")
_SET_UP = "To give it this server: tmux-debug config"
# Each takes half a second of processor time.
_MAX_PROBES = 4
# Time for a probe that is late to say so.
_LATE_S = 0.5


@dataclass(frozen=True, slots=True)
class Trial:
    """A command that was found in configurations, and where.

    Attributes:
        words: The command to start, the program by its absolute path.
        env: The variables that a client adds.
        places: Name of the client and entry, of each that has it.
    """

    words: Sequence[str]
    env: Mapping[str, str]
    places: list[tuple[str, Entry]]


def clients(here: Surroundings) -> list[Finding]:
    """Return what is found about each client."""
    environ = here.environ
    found: list[Finding] = []
    trials: dict[tuple[object, ...], Trial] = {}
    present = clients_found(environ)
    for client in present:
        found += _of_files(client)
        for entry in client.entries:
            place = (client.name, entry)
            outcome = _judged(place, environ)
            if isinstance(outcome, Finding):
                found.append(outcome)
                continue
            key = (*outcome.words, *sorted(outcome.env.items()))
            trials.setdefault(key, outcome).places.append(place)
    if not present:
        return [ok("clients", "none found on PATH, and no configuration of one")]
    found += _tried(list(trials.values()), here)
    return sorted(found, key=lambda finding: finding.name)


def _of_files(client: Client) -> list[Finding]:
    """Return a finding for each file that can't be read, and one for a client without us."""
    found = [
        warning(
            client.name,
            f"{shown(path)} can't be read: {reason}.",
            f"Correct it, since {client.name} can't read it either.",
        )
        for path, reason in client.faults
    ]
    if client.program and not client.entries:
        text = f"{client.program}, not set up for this server"
        found.append(Finding(client.name, State.OK, text, _SET_UP))
    return found


def _judged(place: tuple[str, Entry], environ: Mapping[str, str]) -> Finding | Trial:
    """Return what is found about an entry without starting it, or how to start it."""
    name, entry = place
    where = _where(entry)
    if not entry.is_enabled:
        return ok(name, f"{where} is disabled there")
    program = _program(entry, environ)
    if program is None:
        text = f"{where} names {entry.words[0]}, which is not there or can't be run."
        return problem(name, text, f"Name this one there: {own_command()}")
    parts = start_of(entry.words)
    if parts is None:
        return ok(name, f"{where} starts it with {entry.words[0]}; not tried")
    start, options = parts
    added = {} if entry.is_of_project else entry.env
    fault = fault_of(options, added, environ)
    if fault:
        reason, advice = fault
        return problem(name, f"{where}: {reason}", advice)
    if _is_of_project(entry) and not _is_trusted(program, environ):
        text = f"{where} names {entry.words[0]}; not tried, since it is the project's"
        return ok(name, text)
    return Trial([program, *start[1:]], added, [])


def start_of(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]] | None:
    """Split the command line of a server of ours into what starts it and its options.

    Returns:
        None for other programs, such as those that first install the server.
    """
    name = os.path.basename(words[0])
    if name == _PROGRAM:
        return words[:1], words[1:]
    if name.startswith("python") and tuple(words[1:3]) == _MODULE:
        return words[:3], words[3:]
    return None


def own_command() -> str:
    """Return the command that starts this package's server, as for a shell."""
    own = Path(sys.prefix) / "bin" / _PROGRAM
    words = [str(own)] if own.exists() else [sys.executable, *_MODULE]
    return shlex.join(words)


def _program(entry: Entry, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of an entry's program, None if it can't be run."""
    path = entry.env.get("PATH") or environ.get("PATH")
    found = shutil.which(entry.words[0], path=path)
    return os.path.abspath(found) if found else None


def _is_of_project(entry: Entry) -> bool:
    """Tell whether the current directory decides what an entry starts."""
    is_relative = "/" in entry.words[0] and not os.path.isabs(entry.words[0])
    return entry.is_of_project or is_relative


def _is_trusted(program: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a program is one that this user starts as ours without the project."""
    own = [
        sys.executable,
        f"{sys.prefix}/bin/{_PROGRAM}",
        shutil.which(_PROGRAM, path=environ.get("PATH")) or "",
    ]
    # Not what links lead to: an interpreter is the same file in every virtual environment.
    return program in own


def _tried(trials: Sequence[Trial], here: Surroundings) -> list[Finding]:
    """Start the commands at the same time, and return what came of each."""
    checks = [
        Check(trial.places[0][0], partial(_outcome, trial, here)) for trial in trials[:_MAX_PROBES]
    ]
    found = findings_of(checks, here.seconds_left + _LATE_S)
    for trial in trials[_MAX_PROBES:]:
        found += [ok(name, f"{_where(entry)} was not tried") for name, entry in trial.places]
    return found


def _outcome(trial: Trial, here: Surroundings) -> list[Finding]:
    """Start a command, and return what came of it, for each place that has it."""
    if here.directory is None:
        reason = "not tried, as there is no directory for its files"
        return [ok(name, f"{_where(entry)}: {reason}") for name, entry in trial.places]
    probe = Probe(trial.words, environment(here.environ, here.directory, trial.env), here)
    try:
        answers = probe.answers()
    except LateError:
        text = f"was started and did not answer within {here.timeout_s:g} s"
        return [
            warning(name, f"{_where(entry)} {text}.", MORE_TIME) for name, entry in trial.places
        ]
    except ProbeError as error:
        line = shlex.join(trial.words)
        advice = f"See what it says: {line} --version"
        return [
            problem(name, f"{_where(entry)} does not work. {error}", advice)
            for name, entry in trial.places
        ]
    text = f"works: version {answers.version}, {answers.tools} tools, {answers.elapsed_s:.1f} s"
    return [ok(name, f"{_where(entry)} {text}") for name, entry in trial.places]


def _where(entry: Entry) -> str:
    return f"{shown(entry.path)} ('{entry.name}')"
