"""Our own tmux server as the toolset `tmux` uses it, over an engine without tmux."""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from tmux_debug_mcp.errors import PaneNotFoundError
from tmux_debug_mcp.tmux.targets import PaneRow
from tmux_debug_mcp.tools.own_server import OwnServer

FIELDS = [field.name for field in fields(PaneRow)]


class Client:
    """A connection to a tmux server that has no panes left."""

    async def run(self, *_commands: object) -> list[list[bytes]]:
        return [[]]


CLIENT = Client()


class Engine:
    """An engine with these panes, one of which somebody else kills at the first kill of ours."""

    def __init__(self, *targets: str, killed_meanwhile: str) -> None:
        self.host = SimpleNamespace(client=CLIENT)
        keyboard = SimpleNamespace(holder=None)
        self.panes = [
            SimpleNamespace(target=target, client=CLIENT, keyboard=keyboard) for target in targets
        ]
        self.killed: list[str] = []
        self._killed_meanwhile = killed_meanwhile

    async def kill(self, pane: SimpleNamespace) -> None:
        self.panes = [
            other
            for other in self.panes
            if other.target not in (pane.target, self._killed_meanwhile)
        ]
        if pane.target == self._killed_meanwhile:
            raise PaneNotFoundError(pane.target)
        self.killed.append(pane.target)


def row(target: str) -> PaneRow:
    """Return the row of a pane in the one session."""
    return PaneRow(**dict.fromkeys(FIELDS, "0") | {"pane_id": target, "tmux_pane": target})


@pytest.mark.parametrize("killed_meanwhile", ["%1", "%2"])
async def test_pane_that_was_killed_meanwhile_does_not_keep_a_session_alive(
    monkeypatch: pytest.MonkeyPatch, killed_meanwhile: str
) -> None:
    engine: Any = Engine("%1", "%2", "%3", killed_meanwhile=killed_meanwhile)
    server = OwnServer(engine)
    before = [row(pane.target) for pane in engine.panes]
    answers = [before]

    async def rows_of_tmux() -> list[PaneRow]:
        return answers.pop() if answers else [row(pane.target) for pane in engine.panes]

    monkeypatch.setattr(server, "rows", rows_of_tmux)
    await server.kill("session", before[0])

    assert engine.panes == []
    assert engine.killed == [name for name in ("%1", "%2", "%3") if name != killed_meanwhile]
