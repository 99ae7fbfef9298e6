"""Fixtures: clients of every toolset, with the server in this process."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import User
from toolsets import Tabs, Terminal, Tmux, open_tabs, open_terminal, open_tmux

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings


@pytest.fixture
async def tabs(settings: Settings, clock: Clock, tmp_path: Path) -> AsyncIterator[Tabs]:
    async with open_tabs(settings, Archive(tmp_path / "logs"), clock) as tabs:
        yield tabs


@pytest.fixture
async def tab(tabs: Tabs) -> str:
    """Return the id of a new tab."""
    return await tabs.new()


@pytest.fixture
async def term(settings: Settings) -> AsyncIterator[Terminal]:
    async with open_terminal(settings) as term:
        yield term


@pytest.fixture
async def tmux(settings: Settings) -> AsyncIterator[Tmux]:
    """Serve the toolset `tmux`, whose tmux server is one of ours."""
    async with open_tmux(settings) as tmux:
        yield tmux


@pytest.fixture
async def on_users(settings: Settings, clock: Clock, user: User) -> AsyncIterator[Tmux]:
    """Serve the toolset `tmux` on the user's own tmux server."""
    async with open_tmux(replace(settings, socket=str(user.socket)), clock) as tmux:
        yield tmux
