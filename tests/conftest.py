"""Fixtures: servers of every kind, and the census that nothing survives a test."""

import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support import Tools, User, in_process, marked, run_directories

from tmux_debug_mcp.cli import pane_environment
from tmux_debug_mcp.settings import Settings

# Ends are bounded by half a second; on a busy machine the census may have to look again.
_CENSUS_S = 5.0


# Whoever started us in the background or with nohup had these ignored, and the servers under test would inherit that.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def census(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the test an environment of its own, and fail it when a process or directory of it survives."""
    tag = f"MCP_DEBUG_TEST={secrets.token_hex(8)}"
    name, value = tag.split("=")
    for variable in [variable for variable in os.environ if variable.startswith(("TMUX", "LC_", "LANG"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHELL", shutil.which("bash") or "/bin/sh")
    home = tmp_path_factory.mktemp("home")
    (home / ".zshrc").touch()  # zsh asks who has none what to put there
    monkeypatch.setenv("HOME", str(home))
    # Clients have half a second for the end of a server; a session that is in this process may take longer.
    monkeypatch.setattr("tmux_debug_mcp.tmux.host._SUPERVISOR_END_S", _CENSUS_S)
    yield tag
    deadline = time.monotonic() + _CENSUS_S
    while (left := [*marked(tag), *map(str, run_directories(os.getpid()))]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a directory for sockets, whose paths have 107 bytes at most, wherever temporary files go."""
    with tempfile.TemporaryDirectory(prefix="mcp-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def user(short_path: Path) -> Iterator[User]:
    configuration = short_path / "user.conf"
    configuration.write_text(
        "set -g base-index 1\nset -g status off\nset -g history-limit 777\nset -s set-clipboard off\n"
    )
    user = User(short_path / "user", configuration)
    user.tmux("new-session", "-d", "-s", "mine", "-x", "100", "-y", "30", "exec cat")
    user.tmux("new-window", "-t", "mine:", "-n", "logs", "exec sleep 1000")
    user.tmux("split-window", "-t", "mine:", "exec sleep 1001")
    user.tmux("new-session", "-d", "-s", "other", "exec sleep 1002")
    user.tmux("set-buffer", "-b", "precious", "text")
    yield user
    user.tmux("kill-server")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(pane_environment(os.environ, ["TMUX*"]), tmp_path, state_dir=tmp_path / "state")


@pytest.fixture
async def tools(settings: Settings) -> AsyncIterator[Tools]:
    async with in_process(settings) as tools:
        yield tools


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What the SDKs' clients pass on to servers, which is no locale; and where our modules are not installed."""
    names = ("HOME", "PATH", "PYTHONPATH", "SHELL", "TERM", "USER", "MCP_DEBUG_TEST")
    return {name: os.environ[name] for name in names if name in os.environ} | {"PWD": str(tmp_path)}
