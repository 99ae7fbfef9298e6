"""Fixtures for servers in processes of their own."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from nursery import Nursery
from support import ask_until, marked, run_directories
from wire import Server


def serve(nursery: Nursery, env: Mapping[str, str], *arguments: str) -> Server:
    """Start a server, whose own start is not what the test is about."""
    process = nursery.start("tmux-debug-mcp", arguments, env=env, cwd=Path.cwd(), has_input=True)
    return Server(process=process)


@pytest.fixture
def launch(nursery: Nursery, environment: dict[str, str]) -> Iterator[Callable[..., Server]]:
    with launching(
        lambda *arguments, **env: serve(nursery, environment | env, *arguments)
    ) as start:
        yield start


@pytest.fixture
def execute(environment: dict[str, str]) -> Iterator[Callable[..., Server]]:
    """Return what starts servers that are not copies, where that makes a difference."""
    with launching(lambda *arguments, **env: Server(environment | env, *arguments)) as start:
        yield start


@contextmanager
def launching(start: Callable[..., Server]) -> Iterator[Callable[..., Server]]:
    """Return a function that starts servers, which end with the block."""
    servers: list[Server] = []

    def launch(*arguments: str, **env: str) -> Server:
        servers.append(start(*arguments, **env))
        return servers[-1]

    yield launch
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


@pytest.fixture
def server(launch: Callable[..., Server]) -> Server:
    return launch().start()


@pytest.fixture(scope="module")
def launch_shared(
    nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Return what starts servers that the tests of a module share.

    They are for tests that are not about the start or the end of a server. Their processes have a
    tag of their own, so no test's census counts them; that nothing of them survives is looked at
    behind the last test.
    """
    passed = ("PATH", "PYTHONPATH", "SHELL", "TERM", "USER")
    name, value = "MCP_DEBUG_TEST", secrets.token_hex(8)
    environment = {variable: os.environ[variable] for variable in passed if variable in os.environ}
    environment |= {"HOME": str(tmp_path_factory.mktemp("shared-home")), name: value}
    servers: list[Server] = []

    def launch(*arguments: str) -> Server:
        servers.append(serve(nursery, environment, *arguments))
        return servers[-1]

    yield launch
    for server in servers:
        server.finish()
        assert run_directories(server.pid) == []
    ask_until(lambda: list(marked(f"{name}={value}")), lambda left: left == [])


@pytest.fixture(scope="module")
def shared(launch_shared: Callable[..., Server]) -> Server:
    """Return a server with the toolset `debug` that the tests of a module share."""
    return launch_shared().start()
