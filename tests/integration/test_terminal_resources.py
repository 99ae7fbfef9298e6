"""Screens of terminal sessions as resources, and who hears of their changes."""

from pathlib import Path

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.server.subscriptions import ResourceUpdated
from support import PATIENCE_S, RUN, eventually, few_files, in_process, own_tmux
from toolsets import Terminal

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.panes.engine import open_engine
from tmux_debug_mcp.server import build
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import choose

URI = "terminal://screen/default"


async def test_screens_are_resources(term: Terminal) -> None:
    await term.text("createSession", name="a/b c", command="echo hello; sleep 99")
    await term.shows("hello", session="a/b c")
    listed = (await term.client.list_resources()).resources
    assert [(one.name, one.uri, one.mime_type) for one in listed] == [
        ("default", URI, "text/plain"),
        ("a/b c", "terminal://screen/a%2Fb%20c", "text/plain"),
    ]
    [content] = (await term.client.read_resource(listed[1].uri)).contents
    assert isinstance(content.model_dump()["text"], str)
    assert content.model_dump()["text"] == "hello"
    with pytest.raises(MCPError, match="Session 'no' not found"):
        await term.client.read_resource("terminal://screen/no")
    with pytest.raises(MCPError, match="There is no resource 'file:///etc/passwd'"):
        await term.client.read_resource("file:///etc/passwd")


async def test_screen_of_a_lost_session_is_refused_in_the_words_of_the_toolset(
    term: Terminal, capfd: pytest.CaptureFixture[str]
) -> None:
    await term.text("createSession", name="a", command="sleep 99")
    [pane] = term.engine.panes
    own_tmux("kill-pane", "-t", pane.target)
    told = "Session 'a' was lost: .* Use createSession to start it again"
    with pytest.raises(MCPError, match=told):
        await term.client.read_resource("terminal://screen/a")
    assert "Traceback" not in capfd.readouterr().err


async def test_subscriber_hears_of_changes_and_nothing_runs_without_one(term: Terminal) -> None:
    await term.shot()
    before = term.engine.panes[0].subscribers
    async with term.client.listen(resource_subscriptions=[URI]) as events:
        await eventually(lambda: term.engine.panes[0].subscribers == before + 1)
        for number in range(3):
            await term.text("type", text=f"echo news-$((40+{number}))\n")
            with anyio.fail_after(PATIENCE_S):
                async for event in events:
                    assert event == ResourceUpdated(uri=URI)
                    [content] = (await term.client.read_resource(URI, cache_mode="bypass")).contents
                    if f"news-{40 + number}" in content.model_dump()["text"]:
                        break
    await eventually(lambda: term.engine.panes[0].subscribers == before)


async def test_subscriber_hears_of_another_size(term: Terminal) -> None:
    await term.text("createSession", name="quiet", command="sleep 100")
    uri = "terminal://screen/quiet"
    async with term.client.listen(resource_subscriptions=[uri]) as events:
        await eventually(lambda: term.engine.panes[0].subscribers > 0)
        await term.text("resize", cols=70, rows=20, session="quiet")
        with anyio.fail_after(PATIENCE_S):
            async for event in events:
                assert event == ResourceUpdated(uri=uri)
                break


class Subscriber:
    """A client of the first protocol, which subscribes."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.client = Client(build(toolbox), mode="legacy", message_handler=self._hear)
        self.heard = 0

    async def _hear(self, message: object) -> None:
        await anyio.lowlevel.checkpoint()
        self.heard += isinstance(message, types.ResourceUpdatedNotification)


@pytest.mark.filterwarnings("ignore:resources/.* is removed")
async def test_subscription_of_a_client_is_its_own(settings: Settings, clock: Clock) -> None:
    async with open_engine(settings, clock=clock) as engine:
        toolbox = Toolbox(choose("terminal"), engine, Records(None, RUN))
        one, other, third = (Subscriber(toolbox) for _ in range(3))

        async def hears(subscriber: Subscriber) -> None:
            """Have the screen change until a client hears of it."""
            before = subscriber.heard
            with anyio.fail_after(PATIENCE_S):
                while subscriber.heard == before:
                    await other.client.call_tool("type", {"text": "x"})

        async with other.client:
            async with third.client:
                async with one.client:
                    for subscriber in (one, other, third):
                        await subscriber.client.subscribe_resource(URI)
                    for subscriber in (one, other, third):
                        await hears(subscriber)
                    await one.client.unsubscribe_resource(URI)
                    await hears(other)
                await hears(third)
            await hears(other)
            [pane] = engine.panes
            await eventually(lambda: pane.subscribers == 1)
            await other.client.unsubscribe_resource(URI)
            await eventually(lambda: pane.subscribers == 0)


async def test_subscriber_hears_of_changes_after_files_ran_out(
    term: Terminal, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.01; done; echo out; while read x; do echo $x; done"
    await term.text("createSession", name="s", command=command)
    [pane] = term.engine.panes
    async with term.client.listen(resource_subscriptions=["terminal://screen/s"]) as events:
        await eventually(lambda: pane.subscribers == 1)
        with few_files(0):
            gate.mkdir()
            await eventually(lambda: pane.subscribers == 0)
        await eventually(lambda: pane.subscribers == 1)
        await term.text("type", text="on\n", session="s")
        with anyio.fail_after(PATIENCE_S):
            async for _ in events:
                break


async def test_other_toolsets_have_no_resources(settings: Settings) -> None:
    async with in_process(settings) as tools:
        assert tools.client.server_capabilities.resources is None
