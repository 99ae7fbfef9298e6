"""The clients: where each has its servers, and how it writes one down.

Sources: the clients' own documentation, as of November 2026.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import jsonc, toml_text, yaml_text
from .formats import Format
from .merging import Entry

# Seconds that goose lets a call take, which is its own default.
_GOOSE_TIMEOUT_S = 300
_GOOSE_DESCRIPTION = "Terminals for debugging, over tmux"


@dataclass(frozen=True, slots=True)
class Homes:
    """The directories of a person.

    Args:
        environ: The environment.
        project: The directory of the project.
    """

    environ: Mapping[str, str]
    project: Path

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.environ.get("HOME") or os.path.expanduser("~"))

    @property
    def config(self) -> Path:
        """The base of configuration files. Source: XDG Base Directory Specification."""
        given = self.environ.get("XDG_CONFIG_HOME", "")
        return Path(given) if os.path.isabs(given) else self.home / ".config"

    def of(self, variable: str, default: str) -> Path:
        """Return the directory that a variable names, or else this one in the home directory."""
        given = self.environ.get(variable, "")
        return Path(os.path.abspath(given)) if given else self.home / default


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client.

    Attributes:
        title: Its name.
        format: The language of its files.
        key: The key of the object that has its servers.
        shape: Returns the entry of a server of this name that starts a command.
        places: Where its file is, by scope. The first scope is the default.
        check: What shows that it has the server.
    """

    title: str
    format: Format
    key: str
    shape: Callable[[str, list[str]], Entry]
    places: Mapping[str, Callable[[Homes], Path]]
    check: str


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
        "description": _GOOSE_DESCRIPTION,
        "cmd": words[0],
        "args": words[1:],
        "timeout": _GOOSE_TIMEOUT_S,
    }


def _claude_user(homes: Homes) -> Path:
    return homes.of("CLAUDE_CONFIG_DIR", "") / ".claude.json"


def agents_directory(homes: Homes) -> Path:
    """Return the directory of the person's subagents in Claude Code."""
    return homes.of("CLAUDE_CONFIG_DIR", ".claude") / "agents"


def _in_opencode(directory: Path) -> Path:
    """Return the file that OpenCode reads last of those that are there."""
    with_comments = directory / "opencode.jsonc"
    return with_comments if with_comments.exists() else directory / "opencode.json"


def _in_project(path: str) -> Callable[[Homes], Path]:
    return lambda homes: homes.project / path


CLAUDE_CODE = "claude-code"

CLIENTS = {
    CLAUDE_CODE: Client(
        "Claude Code",
        jsonc,
        "mcpServers",
        _typed,
        # The scopes subagent and command are not of this table.
        {"user": _claude_user, "project": _in_project(".mcp.json")},
        "claude mcp list",
    ),
    "codex": Client(
        "Codex",
        toml_text,
        "mcp_servers",
        _plain,
        {
            "user": lambda homes: homes.of("CODEX_HOME", ".codex") / "config.toml",
            "project": _in_project(".codex/config.toml"),
        },
        "codex mcp list",
    ),
    "gemini": Client(
        "Gemini CLI",
        jsonc,
        "mcpServers",
        _plain,
        {
            "user": lambda homes: homes.of("GEMINI_CLI_HOME", "") / ".gemini/settings.json",
            "project": _in_project(".gemini/settings.json"),
        },
        "gemini mcp list",
    ),
    "opencode": Client(
        "OpenCode",
        jsonc,
        "mcp",
        _opencode,
        {
            "user": lambda homes: _in_opencode(homes.config / "opencode"),
            "project": lambda homes: _in_opencode(homes.project),
        },
        "opencode mcp list",
    ),
    "vscode": Client(
        "VS Code",
        jsonc,
        "servers",
        _typed,
        {
            "user": lambda homes: homes.config / "Code/User/mcp.json",
            "project": _in_project(".vscode/mcp.json"),
        },
        "MCP: List Servers",
    ),
    "cursor": Client(
        "Cursor",
        jsonc,
        "mcpServers",
        _typed,
        {
            "user": lambda homes: homes.home / ".cursor/mcp.json",
            "project": _in_project(".cursor/mcp.json"),
        },
        "cursor-agent mcp list",
    ),
    "zed": Client(
        "Zed",
        jsonc,
        "context_servers",
        _plain,
        {"user": lambda homes: homes.config / "zed/settings.json"},
        "agent: open settings",
    ),
    "goose": Client(
        "goose",
        yaml_text,
        "extensions",
        _goose,
        {"user": lambda homes: homes.config / "goose/config.yaml"},
        "goose info -v",
    ),
}
