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
from pathlib import Path
from typing import Any

from tmux_debug_mcp.clients import programs
from tmux_debug_mcp.clients.editing import EditError, UneditedError
from tmux_debug_mcp.clients.storage import read_data, text_of
from tmux_debug_mcp.clients.table import CLIENTS, ConfigFile, Homes
from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.option_checks import checked
from tmux_debug_mcp.options import OPTIONS, OptionError, parse_all

from .probe import Answers, Complaint, Trial, environment
from .report import Finding, Severity, ok, problem, shown, warning

_NAME = "tmux-debug"
_SET_UP = "To give it this server: tmux-debug config CLIENT --write"

# The words of a command, the program by its absolute path, and the variables that a client adds.
_Command = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """A server of ours in a client's configuration.

    `client` is the client's program, and `name` what the server is called there. There is at least
    one word. `env` holds the variables that the client adds.
    """

    client: str
    source: ConfigFile
    name: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    is_enabled: bool

    def __str__(self) -> str:
        """Return where it is."""
        return f"{shown(self.source.path)} ('{self.name}')"


class Clients:
    """The clients of a person, as their files describe them.

    Attributes:
        findings: What there is to say of them without starting anything.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._commands: dict[_Command, list[ConfiguredServer]] = {}
        entries, self.findings = read(environ)
        for entry in entries:
            outcome = _judged(entry, environ)
            if isinstance(outcome, Finding):
                self.findings.append(outcome)
            else:
                self._commands.setdefault(outcome, []).append(entry)
        if not entries and not self.findings:
            text = "none found on PATH, and no configuration file"
            self.findings.append(ok("clients", text))

    def trials(self, directory: str) -> list[Trial]:
        """Return the servers to start, which keep their files in a directory."""
        return [
            Trial(words, environment({**self._environ, **dict(added)}, directory))
            for words, added in self._commands
        ]

    def tried(self, outcomes: Sequence[Answers | str], own: Answers | str) -> list[Finding]:
        """Return all findings, in the order of the clients' programs, given what came of trials.

        `own` is what came of the server that no client has. What it says is not repeated.
        """
        found = [*self.findings]
        for ((words, _), entries), outcome in zip(self._commands.items(), outcomes, strict=True):
            if isinstance(outcome, Complaint) and outcome == own:
                state, advice = Severity.OK, ""
                text = "can be judged only when a server works here"
            elif isinstance(outcome, str):
                state, text = Severity.PROBLEM, f"does not work. {outcome}"
                advice = f"See what it says: {shlex.join(words)} </dev/null"
            else:
                state, advice = Severity.OK, ""
                text = f"works: version {outcome.version}, {outcome.tools} tools"
            found += [Finding(entry.client, state, f"{entry} {text}", advice) for entry in entries]
        return sorted(found, key=lambda finding: finding.name)


def refusal(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return why a server does not start with options and an environment; "" if it does."""
    try:
        values = parse_all(words, environ)
        # The directory that a server starts in is its client's affair.
        checked({**values, "cwd": values["cwd"] or os.sep}, environ)
    except (OptionError, StartError) as error:
        return str(error)
    return ""


def read(environ: Mapping[str, str]) -> tuple[list[ConfiguredServer], list[Finding]]:
    """Return our servers in clients' files, and findings about files and clients without any."""
    homes = Homes.of_caller(environ)
    entries: list[ConfiguredServer] = []
    found: list[Finding] = []
    for client in CLIENTS.values():
        name = client.program
        own: list[ConfiguredServer | Finding] = []
        for source in client.sources(homes):
            own += _read(name, source)
        program = shutil.which(name, path=environ.get("PATH"))
        if program and not own:
            text = f"{program}, not set up for this server"
            found.append(Finding(name, Severity.OK, text, _SET_UP))
        entries += [result for result in own if isinstance(result, ConfiguredServer)]
        found += [result for result in own if isinstance(result, Finding)]
    return entries, found


def _read(client: str, source: ConfigFile) -> list[ConfiguredServer] | list[Finding]:
    """Return our servers in a file, or why they aren't known; nothing if there is no such file."""
    if not os.path.isfile(source.path):
        return []
    text = ""
    try:
        target = Path(os.path.realpath(source.path))
        data, _ = read_data(target, is_of_project=source.is_of_project)
        text = text_of(data)
        return list(_entries(client, source, source.language.load(text)))
    except UneditedError as error:
        if not _is_ours(text):
            return []
        line = f"line {error.line}: " if error.line else "it "
        return [
            ok(client, f"{shown(source.path)} names this server; not tried: {line}{error.reason}")
        ]
    except EditError as error:
        fault = str(error)
    except OSError as error:
        fault = f"can't be read: {error.strerror}"
    advice = f"Correct it: perhaps {client} can't read it either."
    return [warning(client, f"{shown(source.path)} {fault}.", advice)]


def _is_ours(text: str) -> bool:
    return programs.NAME in text or programs.MODULE in text


def _entries(client: str, source: ConfigFile, servers: Any) -> Iterator[ConfiguredServer]:  # noqa: ANN401
    """Yield our servers in the value of a file, which may be anything."""
    for key in source.keys:
        servers = servers.get(key) if isinstance(servers, dict) else None
    for name, entry in servers.items() if isinstance(servers, dict) else ():
        if not isinstance(entry, dict):
            continue
        command, facts = entry.get("command"), entry
        if isinstance(command, dict):  # as in older files of Zed
            facts = {**entry, **command, "command": [command.get("path")]}
        words = programs.words_of(facts)
        if not words or not (name == _NAME or any(map(_is_ours, words))):
            continue
        env: dict[str, str] = {}
        for key in ("env", "envs", "environment"):
            variables = facts.get(key)
            if isinstance(variables, dict):
                env |= {str(variable): str(value) for variable, value in variables.items()}
        is_enabled = facts.get("enabled", True) is not False and facts.get("disabled") is not True
        yield ConfiguredServer(client, source, name, tuple(words), env, is_enabled)


def _judged(entry: ConfiguredServer, environ: Mapping[str, str]) -> Finding | _Command:
    """Return a finding about an entry without starting it, or how to start it."""
    name, named = entry.client, entry.words[0]
    if not entry.is_enabled:
        return ok(name, f"{entry} is disabled")
    own_path = environ.get("PATH")
    found = shutil.which(named, path=entry.env.get("PATH") or own_path)
    beside = f"{sys.prefix}/bin/{programs.NAME}"
    if found is None:
        text = f"{entry} names {named}, which is missing or can't be run."
        # With -P, Python takes no module from the directory where a client starts it.
        own = [beside] if os.path.exists(beside) else [sys.executable, "-P", "-m", programs.MODULE]
        return problem(name, text, f"Change it to: {shlex.join(own)}")
    program = os.path.abspath(found)
    parts = programs.split(list(entry.words))
    if parts is None or not programs.is_direct(parts[0]):
        return ok(name, f"{entry} starts the server with {named}; not tried")
    start, options = parts
    is_of_project = entry.source.is_of_project
    added = {} if is_of_project else entry.env
    ours = {option.variable for option in OPTIONS}
    others = {variable: value for variable, value in environ.items() if variable not in ours}
    reason = refusal(options, {**others, **added})
    if reason:
        return problem(name, f"{entry}: {reason}", "Correct it in the client's configuration.")
    is_relative = "/" in named and not os.path.isabs(named)
    # What this user starts as ours without the project. Links are not resolved: an interpreter is
    # the same file in every virtual environment.
    trusted = (sys.executable, beside, shutil.which(programs.NAME, path=own_path))
    if (is_of_project or is_relative) and program not in trusted:
        return ok(name, f"{entry} names {named}; not tried, since it belongs to the project")
    return (program, *start[1:]), tuple(sorted(added.items()))
