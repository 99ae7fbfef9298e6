"""The MCP clients of this user, and what their configurations say of our server. Reads only."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# `~/.claude.json` also has the history of the client.
_MAX_FILE_BYTES = 32 << 20
_OURS = ("tmux-debug-mcp", "tmux_debug_mcp")
# Strings, which stay, or comments; strings, or commas before the end of an array or object.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[\]}])')
_FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---\s", re.DOTALL)


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
            except (OSError, ValueError, RecursionError) as error:
                faults.append((path, _reason(error)))
        if program or entries or faults:
            found.append(Client(name, program, tuple(entries), tuple(faults)))
    return sorted(found, key=lambda client: client.name)


def lenient_json(text: str) -> Any:  # noqa: ANN401  whatever the file has
    """Return what JSON with comments and trailing commas says.

    Raises:
        ValueError: It is no such JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        plain = _COMMENT.sub(lambda found: found[1] or " ", text)
        return json.loads(_LAST_COMMA.sub(lambda found: found[1] or "", plain) or "{}")


def front_matter(text: str) -> Any:  # noqa: ANN401
    """Return the YAML at the beginning of a Markdown file, None where it has none.

    Raises:
        ValueError: It is no YAML.
    """
    found = _FRONT_MATTER.match(text)
    return _yaml(found[1]) if found else None


def _yaml(text: str) -> Any:  # noqa: ANN401
    """Return what a YAML document says.

    Raises:
        ValueError: It is no YAML.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415  few clients have YAML
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _sources(environ: Mapping[str, str]) -> dict[str, list[_Source]]:
    """Return the files that may have servers, by the client's name, the user's own first."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    claude = Path(environ["CLAUDE_CONFIG_DIR"]) if environ.get("CLAUDE_CONFIG_DIR") else None
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    here = Path.cwd()
    usual = ("mcpServers",)
    state = (claude or home) / ".claude.json"
    agents = (claude or home / ".claude") / "agents" / "*.md"
    return {
        "claude": [
            _Source(state, lenient_json, usual),
            _Source(state, lenient_json, ("projects", str(here), "mcpServers")),
            _Source(agents, front_matter, usual),
            _Source(here / ".mcp.json", lenient_json, usual, is_of_project=True),
        ],
        "code": [
            _Source(config / "Code/User/mcp.json", lenient_json, ("servers",)),
            _Source(here / ".vscode/mcp.json", lenient_json, ("servers",), is_of_project=True),
        ],
        "codex": [_Source(codex / "config.toml", tomllib.loads, ("mcp_servers",))],
        "cursor": _both(home, here, ".cursor/mcp.json"),
        "gemini": _both(home, here, ".gemini/settings.json"),
        "goose": [_Source(config / "goose/config.yaml", _yaml, ("extensions",))],
        "opencode": [
            _Source(config / "opencode/opencode.json*", lenient_json, ("mcp",)),
            _Source(here / "opencode.json*", lenient_json, ("mcp",), is_of_project=True),
        ],
        "zed": [_Source(config / "zed/settings.json", lenient_json, ("context_servers",))],
    }


def _both(home: Path, here: Path, name: str) -> list[_Source]:
    """Return the same file of the user and of the project."""
    own = _Source(home / name, lenient_json, ("mcpServers",))
    if home == here:
        return [own]
    return [own, _Source(here / name, lenient_json, ("mcpServers",), is_of_project=True)]


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
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError("too large")
    data = source.parse(path.read_text())
    for key in source.keys:
        data = _table(data).get(key)
    for name, facts in _tables(data):
        words = _words(facts)
        if any(ours in word for word in words for ours in _OURS):
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
