"""The toolset `terminal` over stdio: what only the wire shows."""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support import ask_until
from wire import Server

pytestmark = pytest.mark.xdist_group("stdio terminal")

URI = "terminal://screen/default"


class TerminalServer:
    """A server with the toolset, whose notifications come between its answers."""

    def __init__(self, server: Server) -> None:
        self.server = server.start()
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401
        number = self.server.send(method, **params)
        message = self.server.read()
        while message.get("id") != number:
            self.events.append(message)
            message = self.server.read()
        result: dict[str, Any] = message["result"] if "result" in message else message["error"]
        return result

    def call(self, tool: str, /, **arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        result = self.ask("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        content: list[dict[str, Any]] = result["content"]
        return content

    def hear(self) -> None:
        """Wait for a notification."""
        if not self.events:
            self.events.append(self.server.read())
        assert all(one["method"] == "notifications/resources/updated" for one in self.events)
        assert all(one["params"]["uri"] == URI for one in self.events)
        self.events.clear()

    def shows(self, text: str, uri: str = URI) -> None:
        """Wait until the resource of a screen has the text."""
        read = partial(self.ask, "resources/read", uri=uri)
        ask_until(read, lambda result: text in result["contents"][0]["text"])


@pytest.fixture(scope="module")
def terminal(launch_shared: Callable[..., Server]) -> TerminalServer:
    return TerminalServer(launch_shared("--toolsets", "terminal"))


def test_template_tells_the_screen_of_any_session(terminal: TerminalServer) -> None:
    [template] = terminal.ask("resources/templates/list")["resourceTemplates"]
    terminal.call("createSession", name="a", command="echo here; cat")
    uri = template["uriTemplate"].replace("{session}", "a")
    terminal.shows("here", uri)


def test_subscriber_hears_of_changes_until_it_unsubscribes(terminal: TerminalServer) -> None:
    assert terminal.ask("resources/subscribe", uri=URI) == {}
    terminal.call("type", text="echo one-$((1))\n")
    terminal.hear()
    terminal.shows("one-1")

    # A session that was closed and made again is the same one to a subscriber.
    terminal.call("closeSession")
    terminal.call("type", text="echo two-$((2))\n")
    terminal.hear()
    terminal.shows("two-2")

    assert terminal.ask("resources/unsubscribe", uri=URI) == {}
    terminal.ask("ping")
    terminal.events.clear()
    terminal.call("type", text="echo three-$((3))\n")
    terminal.shows("three-3")
    assert terminal.events == []
    assert (
        "not found"
        in terminal.ask("resources/subscribe", uri="terminal://screen/nobody")["message"]
    )


def test_resources_are_a_capability_only_with_this_toolset(
    terminal: TerminalServer, shared: Server
) -> None:
    client = {"name": "test", "version": "1"}
    arguments = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    with_it, without = (
        server.ask("initialize", **arguments)["capabilities"] for server in (terminal, shared)
    )

    assert with_it["resources"]["subscribe"] is True
    assert "resources" not in without


def test_picture_is_an_image_block_behind_the_text(terminal: TerminalServer) -> None:
    text, image = terminal.call("takeScreenshot", format="png")

    assert text["type"] == "text"
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG\r\n")
