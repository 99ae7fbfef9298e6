"""A server process, spoken to in raw lines, as no client would."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import IO, Any

import orjson
from nursery import Copy
from support import ask_until

SERVER = [sys.executable, "-m", "tmux_debug_mcp"]


class Server:
    """A server process with pipes, started here or by a nursery; `ask` speaks JSON-RPC."""

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        *arguments: str,
        command: Sequence[str] = SERVER,
        stdout: IO[bytes] | int = subprocess.PIPE,
        process: Copy | subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.process = process or subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=env,
        )
        self.pid = self.process.pid
        self._id = 0

    def write(self, line: bytes) -> None:
        """Write a line as it is."""
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Read a message."""
        assert self.process.stdout
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def send(self, method: str, **params: Any) -> int:  # noqa: ANN401
        """Send a request and return its id."""
        self._id += 1
        self.write(
            json.dumps(
                {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
            ).encode()
        )
        return self._id

    def notify(self, method: str, **params: Any) -> None:  # noqa: ANN401
        """Send a notification."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def ask(self, method: str, **params: Any) -> Any:  # noqa: ANN401
        """Send a request and return the answer to it, which is the next message."""
        number = self.send(method, **params)
        message = self.read()
        assert message["id"] == number
        return message.get("result", message.get("error"))

    def start(self) -> "Server":
        """Shake hands as clients of the first protocol do."""
        client = {"name": "test", "version": "1"}
        self.ask("initialize", protocolVersion="2024-11-05", capabilities={}, clientInfo=client)
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return self

    def call(self, tool: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        """Call a tool of the toolset `debug` and return its result."""
        return self.call_tool(f"tmux_{tool}", **arguments)

    def call_tool(self, tool: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        """Call a tool and return its result."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def text(self, tool: str, **arguments: Any) -> str:  # noqa: ANN401
        """Return the first block of a call."""
        text: str = self.call(tool, **arguments)["content"][0]["text"]
        return text

    def shows(self, pane_id: str, text: str, **arguments: Any) -> str:  # noqa: ANN401
        """Wait until a capture of the pane has the text, and return the capture."""
        capture = partial(self.text, "capture_pane", pane_id=pane_id, **arguments)
        return ask_until(capture, lambda captured: text in captured)

    def finish(self) -> tuple[bytes, bytes]:
        """Close standard input and wait for the end.

        Returns:
            What is left on standard output and on standard error.
        """
        return self.process.communicate(timeout=60)


def connected(env: Mapping[str, str], directory: str) -> Server:
    """Return a client of the detached server of a directory, which the first client starts."""
    process = subprocess.Popen(
        [*SERVER, "--keep", "10m"],
        env=env,
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return Server(process=process).start()


class TabsServer:
    """A server process with the toolset `tabs`, whose results are JSON.

    Args:
        server: The server, which has not shaken hands yet.
    """

    def __init__(self, server: Server) -> None:
        self.server = server.start()

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the result of a call that succeeds: one text block of JSON."""
        result = self.server.call_tool(tool, **arguments)
        assert not result.get("isError"), result
        [block] = result["content"]
        assert block["type"] == "text"
        assert "structuredContent" not in result
        answer: dict[str, Any] = orjson.loads(block["text"])
        return answer

    def create(self, **arguments: Any) -> str:  # noqa: ANN401
        """Return the id of a new tab."""
        return str(self.call("create_tab", **arguments)["window_id"])

    def shows(self, tab: str, text: str) -> str:
        """Wait until a tab's log has the text, and return its last lines."""
        read = partial(self.call, "read_logs_from_tab", window_id=tab, strip_ansi=True)
        return str(ask_until(read, lambda result: text in result["content"])["content"])
