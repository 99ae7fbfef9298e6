"""The file `server.json`: the server's entry in the registry of MCP servers, made from the code.

Run it after a change of an option or the version: `.venv/bin/python tests/tools/registry.py`.
"""

import json
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OPTIONS, Option
from tmux_debug_mcp.server import DESCRIPTION, TITLE

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "server.json"
PACKAGE = "tmux-debug-mcp"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

# What clients may show instead of a field for text.
_FORMATS = {"": "boolean", "FILE": "filepath", "DIR": "filepath", "PROGRAM": "filepath"}


def address() -> str:
    """Return the repository's address, "" before the first release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project.get("urls", {}).get("Repository", ""))


def name() -> str:
    """Return the entry's name: the registry gives the owner of a repository names like this."""
    owner = urlsplit(address()).path.split("/")[1:2]
    return f"io.github.{owner[0]}/{PACKAGE}" if owner else f"unpublished/{PACKAGE}"


def entry() -> dict[str, object]:
    """Return the entry."""
    package = {
        "registryType": "pypi",
        "identifier": PACKAGE,
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "environmentVariables": [_variable(option) for option in OPTIONS],
    }
    url = address()
    return {
        "$schema": SCHEMA,
        "name": name(),
        "title": TITLE,
        "description": DESCRIPTION,
        "version": __version__,
        **({"repository": {"url": url, "source": "github"}} if url else {}),
        "packages": [package],
    }


def text() -> str:
    """Return the text of the file."""
    return json.dumps(entry(), indent=2) + "\n"


def _variable(option: Option) -> dict[str, object]:
    variable: dict[str, object] = {
        "name": option.variable,
        "description": f"{option.help[0].upper()}{option.help[1:]}",
        "format": _FORMATS.get(option.value, "string"),
    }
    if option.default:
        variable["default"] = option.default
    return variable


if __name__ == "__main__":
    ENTRY.write_text(text())
