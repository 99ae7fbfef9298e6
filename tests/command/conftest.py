"""Fixtures for `tmux-debug`: servers with sockets in a runtime directory of the test's own."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from nursery import Copy, Nursery
from support import ask_until
from wire import Server

from tmux_debug_mcp.sockets import servers

PROGRAM = [sys.executable, "-c", "from tmux_debug_mcp.command.main import main; main()"]


@dataclass
class Shell:
    """A shell that calls `tmux-debug`.

    Attributes:
        nursery: Where the programs come from.
        env: Its environment.
        cwd: Its directory.
    """

    nursery: Nursery
    env: dict[str, str]
    cwd: Path

    def start(self, *words: str, **env: str) -> Copy:
        """Start a command line, without input."""
        return self.nursery.start(
            "tmux-debug", words, env=self.env | env, cwd=self.cwd, encoding="utf-8"
        )

    def launch(self, *arguments: str, cwd: Path | None = None) -> Server:
        """Start a server as an MCP client does, in the directory of the tests, or in another."""
        process = self.nursery.start(
            "tmux-debug-mcp", arguments, env=self.env, cwd=cwd or Path.cwd(), has_input=True
        )
        return Server(process=process).start()

    def run(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run a command line to its end."""
        process = self.start(*words, **env)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.wait(), out, err)

    def by_sh(self, script: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run a script by sh to its end."""
        return subprocess.run(
            ["sh", "-c", script],
            env=self.env | env,
            cwd=self.cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    def by_person(self, *words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a command line of a person, whose shell is not a child of a client."""
        return subprocess.run(
            [*PROGRAM, *words],
            env=self.env,
            cwd=cwd or self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def out(self, *words: str) -> str:
        """Return what a command line prints that succeeds."""
        done = self.run(*words)
        assert done.returncode == 0, done
        return done.stdout

    @property
    def naming_env(self) -> dict[str, str]:
        """An environment that names the one server, for who is not a child of its client."""
        [server] = self.servers()
        return self.env | {"TMUX_DEBUG_SERVER": str(server.pid)}

    @property
    def runtime(self) -> Path:
        """The directory of the servers' directories."""
        return Path(self.env["XDG_RUNTIME_DIR"])

    def servers(self) -> list[servers.Server]:
        """Return the servers that run."""
        found = servers.running(str(self.runtime))
        return [one for one in found if one.directory.startswith(str(self.runtime))]

    def left(self) -> list[str]:
        """Return what is in the runtime directory."""
        return sorted(os.listdir(self.runtime))


@contextmanager
def shell_in(
    nursery: Nursery, environment: dict[str, str], runtime: Path, cwd: Path
) -> Iterator[Shell]:
    """Give a shell without a server; the servers that it starts end with the block."""
    shell = Shell(nursery, environment | {"XDG_RUNTIME_DIR": str(runtime)}, cwd)
    yield shell
    for server in shell.servers():
        shell.run("--server", str(server.pid), "stop")
    for directory in servers.directories(str(runtime)):
        if directory.startswith(str(runtime)) and not servers.is_held(directory):
            # Of a server that was killed, or is about to remove it.
            shutil.rmtree(directory, ignore_errors=True)
    ask_until(shell.left, lambda left: left == [])


@pytest.fixture
def shell(
    nursery: Nursery, environment: dict[str, str], short_path: Path, tmp_path: Path
) -> Iterator[Shell]:
    with shell_in(nursery, environment, short_path, tmp_path) as shell:
        yield shell


@pytest.fixture(scope="module")
def shared(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a shell for those tests of a file that leave its servers and panes as they are."""
    directory = tmp_path_factory.mktemp("shared")
    env = {"HOME": str(directory), "PATH": os.environ["PATH"], "SHELL": shutil.which("bash") or ""}
    with (
        tempfile.TemporaryDirectory(prefix="mcp-", dir="/tmp") as runtime,
        shell_in(nursery, env, Path(runtime), directory) as shell,
    ):
        yield shell


@pytest.fixture(scope="module")
def panes(shared: Shell) -> Shell:
    """Return a shell whose server has a shell, a reader, a sleeper, and a pane that has ended."""
    shared.out("create", "--name", "sh", "bash --norc")
    shared.out("create", "--name", "cat", "echo hello; exec cat")
    shared.run("create", "--name", "ended", "exit 7")
    shared.run("create", "--name", "busy", "exec sleep 1000")
    return shared


@pytest.fixture
def on_path(tmp_path: Path) -> Path:
    """Return a directory for PATH that has `tmux-debug`."""
    program = tmp_path / "bin" / "tmux-debug"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    return program.parent


@pytest.fixture
def launch(shell: Shell) -> Iterator[Callable[..., Server]]:
    """Return what starts a server of an MCP client with these options."""
    started: list[Server] = []

    def launch(*arguments: str, cwd: Path | None = None) -> Server:
        started.append(shell.launch(*arguments, cwd=cwd))
        return started[-1]

    yield launch
    for server in started:
        if server.process.poll() is None:
            server.process.terminate()
        server.process.communicate()


@pytest.fixture
def server(launch: Callable[..., Server]) -> Server:
    return launch()
