"""The entry in the registry of MCP servers is that of this package, as the registry takes it."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
import registry

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OPTIONS
from tmux_debug_mcp.tools.toolset import TOOLSETS

ROOT = Path(__file__).parents[1]
ENTRY = json.loads(registry.ENTRY.read_text())

# What the registry's schema of 2025-12-11 asks of a server on PyPI. Of what it allows beyond this,
# the entry has nothing: a member with a typo would be ignored.
_TEXT = {"type": "string", "minLength": 1}
_URI = {"type": "string", "format": "uri", "pattern": "^https://"}
_VARIABLE = {
    "type": "object",
    "required": ["name", "description"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^TMUX_DEBUG_[A-Z_]+$"},
        "description": _TEXT,
        "default": _TEXT,
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
    },
}
_PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "version", "runtimeHint", "transport"],
    "additionalProperties": False,
    "properties": {
        "registryType": {"const": "pypi"},
        "identifier": _TEXT,
        "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+"},
        "runtimeHint": {"const": "uvx"},
        "transport": {"const": {"type": "stdio"}},
        "environmentVariables": {"type": "array", "items": _VARIABLE},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": _URI,
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "maxLength": 200},
        "title": {**_TEXT, "maxLength": 100},
        "description": {**_TEXT, "maxLength": 100},
        "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+"},
        "repository": {
            "type": "object",
            "required": ["url", "source"],
            "additionalProperties": False,
            "properties": {"url": _URI, "source": {"const": "github"}},
        },
        "packages": {"type": "array", "items": _PACKAGE, "minItems": 1},
    },
}


def test_entry_is_that_of_the_code() -> None:
    """After a change that is meant, write the file anew: see CONTRIBUTING.md."""
    assert registry.ENTRY.read_text() == registry.text()


def test_entry_is_as_the_registry_takes_it() -> None:
    jsonschema.validate(ENTRY, SCHEMA)


@pytest.mark.parametrize("member", ["name", "version", "packages"])
def test_entry_without_what_the_registry_needs_would_be_found(member: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({key: ENTRY[key] for key in ENTRY if key != member}, SCHEMA)


def test_entry_has_the_package_that_is_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [package] = ENTRY["packages"]

    assert package["identifier"] == project["name"]
    # uvx runs the script of the package's name.
    assert project["name"] in project["scripts"]
    assert {ENTRY["version"], package["version"]} == {__version__}


def test_entry_has_every_option() -> None:
    [package] = ENTRY["packages"]
    variables = {one["name"]: one for one in package["environmentVariables"]}

    assert list(variables) == [option.variable for option in OPTIONS]
    for option in OPTIONS:
        assert variables[option.variable].get("default", "") == option.default


def test_readme_names_the_entry() -> None:
    """The registry believes a package on PyPI that names the entry in its description."""
    readme = (ROOT / "README.md").read_text()

    is_published = "repository" in ENTRY
    assert re.findall(r"mcp-name: (\S+)", readme) == [ENTRY["name"]] * is_published


def test_nix_knows_the_toolsets() -> None:
    text = (ROOT / "lib" / "mcp" / "tmux" / "options.nix").read_text()
    [names] = re.findall(r"toolsets = \[(.*?)\];", text, re.DOTALL)

    assert re.findall(r'"(\w+)"', names) == list(TOOLSETS)
