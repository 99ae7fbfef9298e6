"""What a person types for our command."""

import sys
from pathlib import Path

import pytest

from tmux_debug_mcp.own_command import own_command, own_program


@pytest.fixture
def started_as(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with both programs, of which the server was started; it is not on PATH."""
    directory = tmp_path / "it's here"
    directory.mkdir()
    for name in ("tmux-debug", "tmux-debug-mcp"):
        (directory / name).touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(directory / "tmux-debug-mcp")])
    monkeypatch.setenv("PATH", "/usr/bin")
    return directory


def test_path_is_for_a_shell_where_the_name_leads_nowhere(started_as: Path) -> None:
    assert own_program() == str(started_as / "tmux-debug")
    quoted = str(started_as).replace("'", "'\\''")
    assert own_command() == f"'{quoted}/tmux-debug'"


def test_name_is_enough_where_path_leads_to_it(
    started_as: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmux-debug").symlink_to(started_as / "tmux-debug")
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")

    assert own_command() == "tmux-debug"


def test_name_of_another_program_does_not_do(
    started_as: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmux-debug").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert own_program() == str(started_as / "tmux-debug")


def test_path_is_as_it_was_typed_for_who_typed_it(
    started_as: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(started_as.parent)
    monkeypatch.setattr(sys, "argv", [f"{started_as.name}/tmux-debug"])

    assert own_program(is_for_here=True) == "it's here/tmux-debug"
    assert own_program() == str(started_as / "tmux-debug")


def test_name_is_enough_for_a_module_where_path_leads_to_one(
    started_as: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(started_as / "python3"))
    assert own_program() == str(started_as / "tmux-debug")

    (tmp_path / "tmux-debug").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_program() == "tmux-debug"
