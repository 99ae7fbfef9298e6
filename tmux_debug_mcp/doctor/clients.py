"""The MCP clients of this user, and what their configurations say of our server. Reads only."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tmux_debug_mcp.clients import agent_file
from tmux_debug_mcp.clients.files import read_data
from tmux_debug_mcp.clients.formats import FormatError
from tmux_debug_mcp.clients.table import CLAUDE_CODE, CLIENTS, Homes, agents_directory

_OURS = ("tmux-debug-mcp", "tmux_debug_mcp")
_NAME = "tmux-debug"
# Where the program has another name than `config` has for the client.
_PROGRAMS = {CLAUDE_CODE: "claude", "vscode": "code"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A server of ours in a client's configuration.

    Attributes:
        path: The file.
        name: What the server is called there.
        words: Its command line, which has at least one word.
        env: The variables that the client adds.
        is_enabled: The client starts it.
        is_of_project: The file is in the current directory, and so perhaps somebody else's.
    """

    path: Path
    name: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    is_enabled: bool
    is_of_project: bool


@dataclass(frozen=True, slots=True)
class Client:
    """A client that was found.

    Attributes:
        name: Its name, which is that of its program.
        program: Where the program is, "" where only its configuration was found.
        entries: Our servers in its configuration.
        faults: Configuration files that can't be read, each with the reason.
    """

    name: str
    program: str
    entries: tuple[Entry, ...]
    faults: tuple[tuple[Path, str], ...]


# What a file says of servers: name and description of each.
_Servers = Iterator[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class _Source:
    """A file that may have servers.

    Attributes:
        path: The file; its name may be a pattern.
        parse: Makes data of its text.
        keys: The keys that lead to the table of servers.
        is_of_project: As for `Entry`.
    """

    path: Path
    parse: Callable[[str], Any]
    keys: tuple[str, ...]
    is_of_project: bool = False


def clients_found(environ: Mapping[str, str]) -> list[Client]:
    """Return the clients on PATH or with a configuration, in the order of their names.

    Args:
        environ: The environment.
    """
    found = []
    for name, sources in _sources(environ).items():
        program = shutil.which(name, path=environ.get("PATH")) or ""
        entries: list[Entry] = []
        faults = []
        paths = list(dict.fromkeys(_paths(sources)))
        for path, source in paths:
            try:
                entries += _entries(path, source)
            except (OSError, ValueError, RecursionError, FormatError) as error:
                faults.append((path, _reason(error)))
        if program or entries or faults:
            found.append(Client(name, program, tuple(entries), tuple(faults)))
    return sorted(found, key=lambda client: client.name)


def _sources(environ: Mapping[str, str]) -> dict[str, list[_Source]]:
    """Return the files that may have servers, by the client's program, the user's own first."""
    homes = Homes(environ, Path.cwd())
    sources: dict[str, list[_Source]] = {}
    for name, client in CLIENTS.items():
        places: dict[Path, bool] = {}
        for scope, place in client.places.items():
            places.setdefault(place(homes), scope == "project")
        sources[_PROGRAMS.get(name, name)] = [
            _Source(path, client.format.load, (client.key,), is_of_project)
            for path, is_of_project in places.items()
        ]
    claude = CLIENTS[CLAUDE_CODE]
    state = claude.places["user"](homes)
    of_directory = ("projects", str(homes.project), claude.key)
    sources["claude"] += [
        _Source(state, claude.format.load, of_directory),
        _Source(agents_directory(homes) / "*.md", agent_file.load, (claude.key,)),
    ]
    # OpenCode reads a file without comments, too, where there are both.
    sources["opencode"] += [
        replace(source, path=source.path.with_suffix(".json"))
        for source in sources["opencode"]
        if source.path.suffix == ".jsonc"
    ]
    return sources


def _paths(sources: list[_Source]) -> Iterator[tuple[Path, _Source]]:
    """Yield the files that are there."""
    for source in sources:
        if "*" not in source.path.name:
            if os.path.isfile(source.path):
                yield source.path, source
            continue
        for path in sorted(source.path.parent.glob(source.path.name)):
            if os.path.isfile(path):
                yield path, source


def _entries(path: Path, source: _Source) -> Iterator[Entry]:
    """Yield our servers in a file.

    Raises:
        OSError: It can't be read.
        ValueError: It is not what the client reads.
    """
    text, _ = read_data(Path(os.path.realpath(path)))
    data = source.parse(text.decode())
    for key in source.keys:
        data = _table(data).get(key)
    for name, facts in _tables(data):
        words = _words(facts)
        has_our_name = bool(words) and name == _NAME
        if has_our_name or any(ours in word for word in words for ours in _OURS):
            is_enabled = facts.get("enabled", True) is not False
            is_enabled = is_enabled and facts.get("disabled", False) is not True
            yield Entry(path, name, words, _env(facts), is_enabled, source.is_of_project)


def _table(data: object) -> Mapping[str, Any]:
    """Return a table, an empty one for anything else."""
    return data if isinstance(data, dict) else {}


def _tables(data: object) -> _Servers:
    """Yield name and description of each server, of a table or a list of tables."""
    tables = data if isinstance(data, list) else [data]
    for table in tables:
        if isinstance(table, dict):
            for name, facts in table.items():
                if isinstance(facts, dict):
                    yield str(name), facts


def _words(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command line of a server, as one of the clients writes it."""
    command: Any = facts.get("command", facts.get("cmd"))
    arguments = facts.get("args", [])
    if isinstance(command, dict):  # Zed
        program, arguments = [command.get("path")], command.get("args", [])
    else:
        program = command if isinstance(command, list) else [command]
    rest = arguments if isinstance(arguments, list) else []
    words = [*program, *rest]
    return tuple(words) if all(isinstance(word, str) for word in words) else ()


def _env(facts: Mapping[str, Any]) -> Mapping[str, str]:
    command = facts.get("command")
    places = [facts.get(key) for key in ("env", "envs", "environment")]
    if isinstance(command, dict):
        places.append(command.get("env"))
    found: dict[str, str] = {}
    for place in places:
        if isinstance(place, dict):
            found |= {str(name): str(value) for name, value in place.items()}
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return str(error.strerror)
    return str(error) or type(error).__name__
