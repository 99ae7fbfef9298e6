"""Nix, on this repository's flake, with tests/nix/hostpkgs in place of nixpkgs."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[2]
HOSTPKGS = ROOT / "tests" / "nix" / "hostpkgs"
SYSTEM = f"{os.uname().machine}-linux"

_SCRATCH = tempfile.TemporaryDirectory()


def published(name: str) -> Path:
    """Return the directory of Nix code as its project publishes it; skip the test without it.

    Args:
        name: A directory in the one that the variable NIX_SOURCES names: nixpkgs, nixpkgs-lib,
            home-manager, flake-parts, mcp-servers-nix or wrapix.
    """
    sources = os.environ.get("NIX_SOURCES")
    if not sources:
        pytest.skip(f"needs {name}, in the directory that NIX_SOURCES names")
    return Path(sources, name).resolve(strict=True)


def nix(
    *arguments: str, cwd: Path = ROOT, nixpkgs: Path = HOSTPKGS
) -> subprocess.CompletedProcess[str]:
    command, *rest = arguments
    return subprocess.run(
        ["nix", *command.split(), "--override-input", "nixpkgs", f"path:{nixpkgs}", *rest],
        cwd=cwd,
        # `nix develop` of Nix 2.8 leaves a directory in this one.
        env=os.environ | {"TMPDIR": _SCRATCH.name},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def output(*arguments: str, cwd: Path = ROOT, nixpkgs: Path = HOSTPKGS) -> str:
    done = nix(*arguments, cwd=cwd, nixpkgs=nixpkgs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def evaluate(
    attribute: str, function: str = "x: x", *options: str, nixpkgs: Path = HOSTPKGS
) -> Any:  # noqa: ANN401
    text = output("eval", "--json", attribute, "--apply", function, *options, nixpkgs=nixpkgs)
    return json.loads(text)


async def tools_of(server: Mapping[str, Any], environment: dict[str, str]) -> list[str]:
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env=environment | dict(server["env"])
    )
    async with Client(parameters) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


def fenced(language: str, text: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
