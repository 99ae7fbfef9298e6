"""The wire: every protocol era, nothing but protocol, and answers to the worst of messages."""

import base64
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from support import Tools, wait_until
from wire import SERVER, Server

from tmux_debug_mcp import __version__
from tmux_debug_mcp.server import DESCRIPTION, TITLE
from tmux_debug_mcp.tools.debug import INSTRUCTIONS

pytestmark = pytest.mark.xdist_group("protocol")


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_every_protocol_era_is_spoken(environment: dict[str, str], mode: str) -> None:
    parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=environment)
    async with Client(parameters, mode=mode) as client:
        tools = Tools(client)
        pane_id = await tools.create("cat")
        await tools.send(pane_id, "hello Enter")
        await tools.shows(pane_id, "hello\nhello")
        assert "Unknown tool 'tmux_nothing'. Use one of: tmux_create_pane" in await tools.error(
            "nothing"
        )
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed][:2] == ["tmux_create_pane", "tmux_send_keys"]
        assert [tool.title for tool in listed][:2] == ["Create pane", "Send keys"]
        result = await client.call_tool("tmux_list_panes", {})
        shown = client.server_info

    if mode != "legacy":
        check_results_have_no_icon(result)
    if mode != "2026-07-28":
        check_title_and_icon(shown)


def check_results_have_no_icon(result: types.CallToolResult) -> None:
    assert result.meta is not None
    assert result.meta["io.modelcontextprotocol/serverInfo"] == {
        "name": "tmux-debug",
        "version": __version__,
    }


def check_title_and_icon(shown: types.Implementation | None) -> None:
    assert shown is not None
    assert (shown.title, shown.description) == (TITLE, DESCRIPTION)
    assert shown.icons
    kind, data = shown.icons[0].src.split(",")
    assert kind == "data:image/svg+xml;base64"
    svg = base64.b64decode(data).decode()
    assert len(svg) <= 1024
    assert set(re.findall(r"<(\w+)", svg)) == {"svg", "clipPath", "g", "rect", "path", "circle"}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_of_the_handshake_is_agreed_to(shared: Server, version: str) -> None:
    client = {"name": "test", "version": "1"}
    answer = shared.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=client)

    assert answer["protocolVersion"] == version
    assert answer["serverInfo"]["name"] == "tmux-debug"
    assert answer["instructions"] == INSTRUCTIONS
    assert len(INSTRUCTIONS) <= 600


def test_request_before_the_handshake_is_told_what_is_missing(
    launch: Callable[..., Server],
) -> None:
    server = launch()
    sentence = "came before initialize. Send initialize first, then notifications/initialized."
    for method in ("tools/list", "tools/call"):
        arguments = {"name": "tmux_list_panes"} if method == "tools/call" else {}
        assert server.ask(method, **arguments) == {
            "code": -32600,
            "message": f"{method} {sentence}",
        }
    server.write(b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}')
    answer = server.read()
    assert (answer["id"], answer["error"]["message"]) == (7, f"tools/list {sentence}")
    assert server.start().ask("tools/list")["tools"]


MALFORMED = [
    b"",
    b" ",
    b"not json",
    b"{",
    b"[]",
    b"[1]",
    b"null",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/nothing"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
    b'{"jsonrpc":"2.0","id":9}',
    b'{"jsonrpc":"2.0","id":9,"result":{}}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b"[" * 100_000,
    b'{"a":' * 10_000,
    b"x" * 1_000_000,
]


def test_malformed_messages_neither_end_the_server_nor_make_it_talk(server: Server) -> None:
    for _ in range(20):
        for line in MALFORMED:
            server.write(line)

    message: dict[str, Any] = {}
    while message.get("result") != {}:
        assert not message or "error" in message
        server.send("ping")
        message = server.read()
    out, error = server.finish()
    assert b"Traceback" not in error
    assert error == b""
    del out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            '{"pane_id":"debug-1","keys":"a\\ud800b"}',
            "Parameter 'keys' contains a NUL character or half a surrogate pair.",
        ),
        ('{"pane_id":"debug-1","keys":"a\\udc00\\ud800"}', "half a surrogate pair"),
        ('{"pane_id":"debug-1","keys":"a\\u0000"}', "Parameter 'keys' contains a NUL character"),
        (
            '{"pane_id":7,"keys":"a"}',
            "Parameter 'pane_id' is 7. It must be a string that is not empty.",
        ),
        (
            '{"pane_id":"debug-1"}',
            "Parameter 'keys' is missing. tmux_send_keys needs pane_id and keys.",
        ),
        ("null", "Parameter 'pane_id' is missing."),
    ],
)
def test_arguments_that_no_string_can_hold_are_answered(
    shared: Server, arguments: str, sentence: str
) -> None:
    shared.write(
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"tmux_send_keys","arguments":'
        + arguments.encode()
        + b"}}"
    )

    result = shared.read()["result"]
    assert result["isError"] is True
    assert sentence in result["content"][0]["text"]


def test_whole_surrogate_pairs_and_escaped_backslashes_arrive(shared: Server) -> None:
    shared.text("create_pane", command="cat", name="cat")
    shared.write(
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"tmux_send_keys",'
        b'"arguments":{"pane_id":"cat","keys":"\\ud83d\\ude00 \\\\ud800"}}}'
    )
    shared.read()
    assert "\0" not in shared.shows("cat", "\U0001f600 \\ud800")


def test_what_children_print_on_standard_output_is_not_protocol(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    chatty = tmp_path / "chatty"
    chatty.write_text('#!/bin/sh\n[ "$1" = -V ] || echo stray\nexec tmux "$@"\n')
    chatty.chmod(0o755)
    server = launch("--tmux", str(chatty)).start()
    assert server.text("create_pane", command="cat").startswith("Created pane")
    assert server.finish() == (b"", b"")


def test_what_checks_arguments_is_imported_after_tools_list_and_before_the_first_call(
    execute: Callable[..., Server],
) -> None:
    server = execute()
    maps = Path(f"/proc/{server.pid}/maps")

    server.start()
    assert "rpds" not in maps.read_text()  # a library that only jsonschema needs
    server.ask("tools/list")
    wait_until(lambda: "rpds" in maps.read_text())


def test_only_python_is_needed_to_run(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tmux_debug_mcp", "--version"],
        env=environment,
        capture_output=True,
        check=True,
    )

    assert done.stdout.startswith(b"tmux-debug-mcp ")
