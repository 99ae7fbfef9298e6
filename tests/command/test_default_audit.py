"""The audit that a detached server keeps when none was chosen, and `audit` without a file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from wire import Server

from .conftest import Shell


@pytest.fixture
def state(shell: Shell, tmp_path: Path) -> Path:
    """Return the state directory of the shell's servers, which doesn't exist yet."""
    shell.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    return tmp_path / "state" / "tmux-debug-mcp"


def commands(shell: Shell, *words: str) -> list[str]:
    """Return the commands that `audit` shows without a file."""
    return shell.out("audit", "--json", *words).split('"command":"')[1:]


def test_what_was_done_can_be_asked_without_options(shell: Shell, state: Path) -> None:
    shell.out("create", "--name", "web", "echo one")
    (shell.cwd / "src").mkdir()

    assert "create web: echo one" in shell.out("audit")
    assert "create web: echo one" in replace(shell, cwd=shell.cwd / "src").out("audit")
    [file] = (state / "audits").iterdir()
    assert file.name.startswith(f"{shell.cwd.name}-")
    assert file.stat().st_mode & 0o777 == 0o600
    for directory in (file.parent, state):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_servers_of_a_directory_continue_its_audit(shell: Shell, state: Path) -> None:
    shell.out("create", "echo one")
    shell.out("stop")
    shell.out("create", "echo two")

    assert len(commands(shell)) == 2
    assert len(list((state / "audits").iterdir())) == 1


def test_each_directory_has_an_audit_of_its_own(shell: Shell, state: Path) -> None:
    (shell.cwd / "other" / ".git").mkdir(parents=True)
    other = replace(shell, cwd=shell.cwd / "other")
    shell.out("create", "echo one")

    refused = other.run("audit")
    assert refused.returncode == 125
    assert "No audit was kept of this directory's servers." in refused.stderr
    (shell.cwd / "link").symlink_to("other")
    shell.out("start", "--cwd", "link")
    other.out("create", "echo two")
    assert commands(other)[0].startswith("echo two")
    assert len(commands(shell)) == 1
    assert len(list((state / "audits").iterdir())) == 2


@pytest.mark.parametrize("chosen", ["none", "a.jsonl"])
def test_chosen_audit_replaces_the_default_one(shell: Shell, state: Path, chosen: str) -> None:
    shell.out("start", "--audit", chosen)
    shell.out("create", "echo one")

    assert not (state / "audits").exists()
    assert (shell.cwd / "none").exists() is False
    assert (shell.cwd / "a.jsonl").exists() is (chosen == "a.jsonl")


def test_server_of_a_client_has_no_default_audit(
    launch: Callable[..., Server], state: Path
) -> None:
    launch().call("tmux_create_pane", command="echo one")

    assert not (state / "audits").exists()


def test_server_starts_without_a_default_audit_and_says_so(shell: Shell) -> None:
    (shell.cwd / "file").write_text("")
    shell.env["XDG_STATE_HOME"] = str(shell.cwd / "file")

    created = shell.run("create", "echo one")

    assert created.returncode == 0
    assert "The audit can't be opened: " in created.stderr
    assert "Calls are not recorded now." in created.stderr
    assert shell.run("create", "echo two").stderr.count("audit") == 0


def test_following_without_a_file_shows_new_calls(shell: Shell, state: Path) -> None:
    shell.out("create", "echo one")
    [file] = (state / "audits").iterdir()
    file.rename(f"{file}.1")
    shell.out("create", "echo two")

    assert [command[:8] for command in commands(shell)] == ["echo one", "echo two"]
    process = shell.start("audit", "--follow", "--json")
    assert process.stdout
    assert "echo two" in process.stdout.readline()
    process.kill()
    process.communicate()
