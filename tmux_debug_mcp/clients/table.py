"""The clients: where each keeps its servers, and what an entry looks like.

Sources: the clients' own documentation, as of November 2026.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tmux_debug_mcp.sockets.servers import current_directory

from . import agent_file, json_file, toml_file, yaml_file
from .editing import Entry, Language


@dataclass(frozen=True, slots=True)
class Homes:
    """A person's directories, according to the environment, and that of the project."""

    environ: Mapping[str, str]
    project: Path

    @classmethod
    def of_caller(cls, environ: Mapping[str, str]) -> Self:
        """Return the directories of who calls us, in the current directory."""
        return cls(environ, Path(current_directory()))

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.environ.get("HOME") or os.path.expanduser("~"))

    @property
    def config(self) -> Path:
        """The base of configuration files. Source: XDG Base Directory Specification."""
        path = self.environ.get("XDG_CONFIG_HOME", "")
        return Path(path) if os.path.isabs(path) else self.home / ".config"

    def of(self, variable: str, default: str) -> Path:
        """Return the directory that a variable names, or else this one in the home directory."""
        path = self.environ.get(variable, "")
        return Path(os.path.abspath(path)) if path else self.home / default

    @property
    def agents(self) -> Path:
        """The directory of the person's subagents in Claude Code."""
        return self.of("CLAUDE_CONFIG_DIR", ".claude") / "agents"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file in which a client looks for servers, and the keys that lead to them there.

    The file may be missing. A project's file may be somebody else's.
    """

    path: Path
    language: Language
    keys: tuple[str, ...]
    is_of_project: bool = False


def _typed(_: str, words: list[str]) -> Entry:
    return {"type": "stdio", "command": words[0], "args": words[1:]}


def _plain(_: str, words: list[str]) -> Entry:
    return {"command": words[0], "args": words[1:]}


def _opencode(_: str, words: list[str]) -> Entry:
    return {"type": "local", "command": words, "enabled": True}


def _goose(name: str, words: list[str]) -> Entry:
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": "Terminals for debugging, over tmux",
        "cmd": words[0],
        "args": words[1:],
        "timeout": 300,  # seconds for a call: goose's default
    }


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client.

    Attributes:
        title: Its name.
        program: The name of its program.
        places: Where its file is, by scope. The first scope is the default.
        language: The language of its files.
        key: The key of the object that contains its servers.
        shape: Returns the entry of a server of this name that starts a command.
        more_files: Returns what it reads besides the files in `places`.
        permission: How a user allows the tools of a server of the name `{}`.
    """

    title: str
    program: str
    places: Mapping[str, Callable[[Homes], Path]]
    language: Language = json_file
    key: str = "mcpServers"
    shape: Callable[[str, list[str]], Entry] = _typed
    more_files: Callable[[Homes], list[ConfigFile]] = lambda _: []
    permission: str = "{} may have to be allowed there."

    def sources(self, homes: Homes) -> list[ConfigFile]:
        """Return everything that it reads, the user's own first, without duplicates."""
        found = [
            ConfigFile(place(homes), self.language, (self.key,), scope == "project")
            for scope, place in self.places.items()
        ]
        unique: dict[tuple[object, ...], ConfigFile] = {}
        for source in (*found, *self.more_files(homes)):
            unique.setdefault((source.path, source.keys), source)
        return list(unique.values())


def _claude_user(homes: Homes) -> Path:
    return homes.of("CLAUDE_CONFIG_DIR", "") / ".claude.json"


def _more_files_of_claude(homes: Homes) -> list[ConfigFile]:
    keys = ("projects", str(homes.project), "mcpServers")
    of_project = ConfigFile(_claude_user(homes), json_file, keys)
    agents = sorted(homes.agents.glob("*.md"))
    return [of_project, *(ConfigFile(path, agent_file, ("mcpServers",)) for path in agents)]


def _more_files_of_opencode(homes: Homes) -> list[ConfigFile]:
    # It reads these besides those with comments.
    return [
        ConfigFile(homes.config / "opencode/opencode.json", json_file, ("mcp",)),
        ConfigFile(homes.project / "opencode.json", json_file, ("mcp",), is_of_project=True),
    ]


def _in_opencode(directory: Path) -> Path:
    """Return the existing file that OpenCode reads last; without comments if there is none."""
    with_comments = directory / "opencode.jsonc"
    return with_comments if with_comments.exists() else directory / "opencode.json"


CLAUDE_CODE = "claude-code"

# Most use JSON with `mcpServers`.
CLIENTS = {
    CLAUDE_CODE: Client(
        "Claude Code",
        "claude",
        # The scopes subagent and command are not in this table.
        {"user": _claude_user, "project": lambda homes: homes.project / ".mcp.json"},
        more_files=_more_files_of_claude,
        permission=(
            "Claude Code asks before it uses a tool. To allow them all, add mcp__{} to "
            "permissions.allow in ~/.claude/settings.json."
        ),
    ),
    "codex": Client(
        "Codex",
        "codex",
        {
            "user": lambda homes: homes.of("CODEX_HOME", ".codex") / "config.toml",
            "project": lambda homes: homes.project / ".codex/config.toml",
        },
        toml_file,
        "mcp_servers",
        _plain,
        permission=(
            "Codex may ask before it uses a tool. To allow them all, add "
            'default_tools_approval_mode = "approve" to the table of {}.'
        ),
    ),
    "gemini": Client(
        "Gemini CLI",
        "gemini",
        {
            "user": lambda homes: homes.of("GEMINI_CLI_HOME", "") / ".gemini/settings.json",
            "project": lambda homes: homes.project / ".gemini/settings.json",
        },
        shape=_plain,
        permission=(
            "Gemini CLI starts servers only in folders that you trust, and asks before it uses a "
            'tool. To allow them all, add "trust": true to the entry of {}.'
        ),
    ),
    "opencode": Client(
        "OpenCode",
        "opencode",
        {
            "user": lambda homes: _in_opencode(homes.config / "opencode"),
            "project": lambda homes: _in_opencode(homes.project),
        },
        key="mcp",
        shape=_opencode,
        more_files=_more_files_of_opencode,
        permission="OpenCode allows the tools of {} unless your permissions say otherwise.",
    ),
    "vscode": Client(
        "VS Code",
        "code",
        {
            "user": lambda homes: homes.config / "Code/User/mcp.json",
            "project": lambda homes: homes.project / ".vscode/mcp.json",
        },
        key="servers",
    ),
    "cursor": Client(
        "Cursor",
        "cursor",
        {
            "user": lambda homes: homes.home / ".cursor/mcp.json",
            "project": lambda homes: homes.project / ".cursor/mcp.json",
        },
    ),
    "zed": Client(
        "Zed",
        "zed",
        {"user": lambda homes: homes.config / "zed/settings.json"},
        key="context_servers",
        shape=_plain,
    ),
    "goose": Client(
        "goose",
        "goose",
        {"user": lambda homes: homes.config / "goose/config.yaml"},
        yaml_file,
        "extensions",
        _goose,
    ),
}
