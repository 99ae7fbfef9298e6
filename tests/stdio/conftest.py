"""Fixtures for servers in processes of their own."""

import os
import secrets
from collections.abc import Callable, Iterator

import pytest
from support import ask_until, marked, run_directories
from wire import Server


@pytest.fixture
def launch(environment: dict[str, str]) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def launch(*arguments: str, **env: str) -> Server:
        servers.append(Server(environment | env, *arguments))
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
    tmp_path_factory: pytest.TempPathFactory,
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
        servers.append(Server(environment, *arguments))
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
