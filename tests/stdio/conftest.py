"""Fixtures for servers in processes of their own."""

from collections.abc import Callable, Iterator

import pytest
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
