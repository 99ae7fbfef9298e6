"""Packages made from the checkout, and environments of their own to install them into, with uv.

uv makes an environment with all dependencies in a second where pip takes twenty, and `uvx` is what
most people start a server with.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Variables of a test run that a run of other tests must not inherit.
_OF_TESTS = ("PYTEST_", "COV_")


def checkout(directory: Path) -> Path:
    """Copy what git has of this checkout, as it is now, and return the copy's directory."""
    for name in tracked():
        copy = directory / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy)
    return directory


def tracked() -> list[str]:
    """Return the files that git has, and those that it would have with the next commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = dict.fromkeys(output.split("\0"))
    return [name for name in names if name and (ROOT / name).exists()]


def install(directory: Path, *requirements: str) -> Path:
    """Make a virtual environment with these requirements, and return the directory of its programs.

    Args:
        directory: Where to make it.
        requirements: Packages, as pip takes them.
    """
    run_uv("venv", "--quiet", "--python", sys.executable, str(directory))
    run_uv("pip", "install", "--quiet", "--python", str(directory), *requirements)
    return directory / "bin"


def run_uv(*words: str) -> str:
    """Run uv, and return what it prints. The test is skipped where uv can't do its work."""
    uv = pytest.importorskip("uv", reason="uv is not installed; ./dev test installs it")
    done = subprocess.run(
        [uv.find_uv_bin(), *words],
        env=environment() | {"UV_PYTHON_DOWNLOADS": "never"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "error sending request" in done.stderr and not os.environ.get("CI"):
        pytest.skip("uv can't reach a package index")
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    """Return the environment, without what belongs to this test run or its interpreter."""
    ours = (*_OF_TESTS, "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
