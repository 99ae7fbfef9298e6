"""Screens of terminal sessions as resources, and who hears of their changes."""

import anyio
import pytest
from mcp import MCPError
from mcp.server.subscriptions import ResourceUpdated
from support import PATIENCE_S, eventually, in_process
from toolsets import Terminal

from tmux_debug_mcp.settings import Settings

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


async def test_other_toolsets_have_no_resources(settings: Settings) -> None:
    async with in_process(settings) as tools:
        assert tools.client.server_capabilities.resources is None
