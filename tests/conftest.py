"""Fixtures: servers of every kind, and the census that nothing survives a test."""

import gc
import itertools
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from browsers import CHROMIUM, chromium
from clocks import TIMES
from nursery import Nursery
from support import Gate, Tools, User, ask_until, in_process, last_pid, marked, run_directories

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.settings import Settings, pane_environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Neither a busy machine nor chance decides whether a property holds. `--hypothesis-profile default`
# tries more and other examples in each run, `--hypothesis-profile long` many more.
hypothesis.settings.register_profile(
    "same examples",
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=4000)
hypothesis.settings.load_profile("same examples")

# Variables whose values would make another test of a test.
_NOT_FOR_TESTS = ("TMUX", "LC_", "LANG")

# Who started us in the background or with nohup had these ignored, which servers would inherit.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests that work at random be run for longer, with other seeds."""
    parser.addoption("--seeds", default="1-3", help="seeds of random work: FIRST-LAST")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that works at random with each seed."""
    if "random_seed" in metafunc.fixturenames:
        first, last = map(int, metafunc.config.getoption("--seeds").split("-"))
        metafunc.parametrize("random_seed", range(first, last + 1))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module that has none of the tests that `./dev test` runs alone, for those.

    None leaves it to others.
    """
    is_for_few = config.option.markexpr == "alone" and collection_path.suffix == ".py"
    return (is_for_few and "mark.alone" not in collection_path.read_text()) or None


def pytest_collection_finish() -> None:
    """Leave what lives until the end, such as all tests, out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Return the argument's name for a long text: tests' names are in the environment of children.

    None has pytest make the id. Linux takes variables of up to 128 KiB.
    """
    return argname if isinstance(val, str | bytes) and len(val) > 1000 else None


# The numbers of home directories. Where pytest gives them, it reads the names of all others.
HOMES = itertools.count()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Return what starts programs of ours without their imports, as often as tests like."""
    nursery = Nursery(
        {name: value for name, value in os.environ.items() if not name.startswith(_NOT_FOR_TESTS)}
    )
    yield nursery
    nursery.close()


@pytest.fixture(autouse=True)
def census(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Give the test an environment of its own, and fail it when something of it survives."""
    tag = f"MCP_DEBUG_TEST={secrets.token_hex(8)}"
    before = last_pid()
    name, value = tag.split("=")
    for variable in list(os.environ):
        if variable.startswith(_NOT_FOR_TESTS):
            monkeypatch.delenv(variable)
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHELL", shutil.which("bash") or "/bin/sh")
    home = tmp_path_factory.mktemp(f"home{next(HOMES)}", numbered=False)
    (home / ".zshrc").touch()  # zsh asks who has none what to put there
    monkeypatch.setenv("HOME", str(home))
    yield tag
    ask_until(
        lambda: [*marked(tag, before), *map(str, run_directories(os.getpid()))],
        lambda left: left == [],
    )


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a directory for sockets, whose paths have 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="mcp-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def user(short_path: Path) -> Iterator[User]:
    configuration = short_path / "user.conf"
    configuration.write_text(
        "set -g base-index 1\n"
        "set -g status off\n"
        "set -g history-limit 777\n"
        "set -s set-clipboard off\n"
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
def clock() -> Clock:
    """Return the clock of engines in this process; `with_times` replaces it."""
    return Clock(TIMES)


@pytest.fixture
async def tools(settings: Settings, clock: Clock) -> AsyncIterator[Tools]:
    async with in_process(settings, clock=clock) as tools:
        yield tools


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables that the clients of the SDKs pass on to servers, and our own."""
    names = ("HOME", "PATH", "PYTHONPATH", "SHELL", "TERM", "USER", "MCP_DEBUG_TEST")
    return {name: os.environ[name] for name in names if name in os.environ} | {"PWD": str(tmp_path)}


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Return Chromium without a window."""
    pytest.importorskip("playwright", reason="needs playwright")
    if not CHROMIUM:
        pytest.skip("needs chromium")
    with chromium() as browser:
        yield browser
