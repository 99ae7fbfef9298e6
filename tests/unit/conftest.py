"""The programs that the package's own tests may start: those that Nix builds have. Staged panes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from clocks import VirtualClock
from staging import StagedPane

# The packages of Nix' stdenv have more.
_PROGRAMS = ("bash", "cat", "mkfifo", "nice", "sh", "sleep", "stty", "tail", "timeout", "true")


@pytest.fixture(scope="session")
def few_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    for name in _PROGRAMS:
        program = shutil.which(name)
        assert program
        (directory / name).symlink_to(program)
    return directory


@pytest.fixture(autouse=True)
def path_with_few_programs(monkeypatch: pytest.MonkeyPatch, few_programs: Path) -> None:
    """Have a test fail here if it needs a program that a build doesn't have."""
    monkeypatch.setenv("PATH", str(few_programs))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def pane(tmp_path: Path, clock: VirtualClock) -> Iterator[StagedPane]:
    pane = StagedPane(tmp_path, clock)
    yield pane
    pane.close()
