"""Clients: whether each has our server, and whether the command in its configuration works.

We start a command only if it is ours and nothing else: no launcher, which would install something,
and from a project's file only a program that this user has anyway. It gets neither the options nor
the directories of the configuration.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tmux_debug_mcp.clients import programs
from tmux_debug_mcp.clients.files import read_data
from tmux_debug_mcp.clients.formats import FormatError
from tmux_debug_mcp.clients.table import CLIENTS, Homes, Source

from .finding import MORE_TIME, Check, Finding, State, findings_of, ok, problem, shown, warning
from .options import fault_of
from .probe import ProbeError, Surroundings, ask, environment

_OURS = (programs.NAME, programs.MODULE)
_NAME = "tmux-debug"
_SET_UP = "To give it this server: tmux-debug config CLIENT --write"
# Each takes half a second of processor time.
_MAX_PROBES = 4

# The words of a command, the program by its absolute path, and the variables that a client adds.
Command = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A server of ours in a client's configuration.

    `client` is the client's program, and `name` what the server is called there. There is at least
    one word. `env` holds the variables that the client adds.
    """

    client: str
    source: Source
    name: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    is_enabled: bool

    def __str__(self) -> str:
        """Return where it is."""
        return f"{shown(self.source.path)} ('{self.name}')"


def clients(here: Surroundings) -> list[Finding]:
    """Return the findings about each client, in the order of their programs."""
    entries, found = read(here.environ)
    if not entries and not found:
        return [ok("clients", "none found on PATH, and no configuration file")]
    commands: dict[Command, list[Entry]] = {}
    for entry in entries:
        outcome = _judged(entry, here.environ)
        if isinstance(outcome, Finding):
            found.append(outcome)
        else:
            commands.setdefault(outcome, []).append(entry)
    checks = []
    for number, (command, those) in enumerate(commands.items()):
        if here.directory is None:
            reason = "not tried, as there is no directory for its files"
            found += [ok(entry.client, f"{entry}: {reason}") for entry in those]
        elif number >= _MAX_PROBES:
            found += [ok(entry.client, f"{entry} was not tried") for entry in those]
        else:
            text = f"was started and did not answer within {here.timeout_s:g} s."
            late = [warning(entry.client, f"{entry} {text}", MORE_TIME) for entry in those]
            look = partial(_tried, command, those, here.environ, here.directory)
            checks.append(Check(those[0].client, look, late))
    found += findings_of(checks, here.seconds_left)
    return sorted(found, key=lambda finding: finding.name)


def read(environ: Mapping[str, str]) -> tuple[list[Entry], list[Finding]]:
    """Return our servers in clients' files, and findings about files and clients without any."""
    homes = Homes(environ, Path.cwd())
    entries: list[Entry] = []
    found = []
    for client in CLIENTS.values():
        name = client.program
        own: list[Entry] = []
        for source in client.sources(homes):
            try:
                own += _entries(name, source)
            except (OSError, ValueError, RecursionError, FormatError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                text = f"{shown(source.path)} can't be read: {reason or type(error).__name__}."
                advice = f"Correct it: {name} can't read it either."
                found.append(warning(name, text, advice))
        program = shutil.which(name, path=environ.get("PATH"))
        if program and not own:
            text = f"{program}, not set up for this server"
            found.append(Finding(name, State.OK, text, _SET_UP))
        entries += own
    return entries, found


def _entries(client: str, source: Source) -> Iterator[Entry]:
    """Yield our servers in a file, if it exists. `read` turns errors into findings."""
    if not os.path.isfile(source.path):
        return
    text, _ = read_data(Path(os.path.realpath(source.path)))
    servers = source.format.load(text.decode())
    for key in source.keys:
        servers = servers.get(key) if isinstance(servers, dict) else None
    # A subagent of Claude Code contains a list of tables.
    for table in servers if isinstance(servers, list) else [servers]:
        for name, facts in table.items() if isinstance(table, dict) else ():
            entry = _entry(client, source, str(name), facts)
            if entry:
                yield entry


def _entry(client: str, source: Source, name: str, facts: Any) -> Entry | None:  # noqa: ANN401
    if not isinstance(facts, dict):
        return None
    command = facts.get("command")
    if isinstance(command, dict):  # as in older files of Zed
        facts = {**facts, **command, "command": [command.get("path")]}
    words = programs.words_of(facts)
    is_ours = name == _NAME or any(ours in word for word in words for ours in _OURS)
    if not is_ours or not words:
        return None
    env: dict[str, str] = {}
    for key in ("env", "envs", "environment"):
        given = facts.get(key)
        if isinstance(given, dict):
            env |= {str(variable): str(value) for variable, value in given.items()}
    is_enabled = facts.get("enabled", True) is not False and facts.get("disabled") is not True
    return Entry(client, source, name, tuple(words), env, is_enabled)


def _judged(entry: Entry, environ: Mapping[str, str]) -> Finding | Command:
    """Return a finding about an entry without starting it, or how to start it."""
    name, named = entry.client, entry.words[0]
    if not entry.is_enabled:
        return ok(name, f"{entry} is disabled")
    own_path = environ.get("PATH")
    found = shutil.which(named, path=entry.env.get("PATH") or own_path)
    beside = f"{sys.prefix}/bin/{programs.NAME}"
    if found is None:
        text = f"{entry} names {named}, which is missing or can't be run."
        own = [beside] if os.path.exists(beside) else [sys.executable, "-m", programs.MODULE]
        return problem(name, text, f"Change it to: {shlex.join(own)}")
    program = os.path.abspath(found)
    parts = programs.split(list(entry.words))
    if parts is None or not programs.is_direct(parts[0]):
        return ok(name, f"{entry} starts the server with {named}; not tried")
    start, options = parts
    is_of_project = entry.source.is_of_project
    added = {} if is_of_project else entry.env
    fault = fault_of(options, added, environ)
    if fault:
        reason, advice = fault
        return problem(name, f"{entry}: {reason}", advice)
    is_relative = "/" in named and not os.path.isabs(named)
    # What this user starts as ours without the project. Links are not resolved: an interpreter is
    # the same file in every virtual environment.
    trusted = (sys.executable, beside, shutil.which(programs.NAME, path=own_path))
    if (is_of_project or is_relative) and program not in trusted:
        return ok(name, f"{entry} names {named}; not tried, since it belongs to the project")
    return (program, *start[1:]), tuple(sorted(added.items()))


def _tried(
    command: Command, entries: Sequence[Entry], environ: Mapping[str, str], directory: str
) -> list[Finding]:
    """Start a command, and return the finding for each entry that has it."""
    words, added = command
    try:
        answers = ask(words, environment({**environ, **dict(added)}, directory), directory)
    except ProbeError as error:
        state, advice = State.PROBLEM, f"See what it says: {shlex.join(words)} --version"
        text = f"does not work. {error}"
    else:
        state, advice = State.OK, ""
        text = f"works: version {answers.version}, {answers.tools} tools, {answers.elapsed_s:.1f} s"
    return [Finding(entry.client, state, f"{entry} {text}", advice) for entry in entries]
