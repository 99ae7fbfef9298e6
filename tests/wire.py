"""A server process, spoken to in raw lines, as no client would."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

SERVER = [sys.executable, "-m", "tmux_debug_mcp"]


class Server:
    """A server process with pipes; `ask` speaks JSON-RPC."""

    def __init__(self, env: Mapping[str, str] | None, *arguments: str, command: Sequence[str] = SERVER) -> None:
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
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
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode())
        return self._id

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

    def finish(self) -> tuple[bytes, bytes]:
        """Close standard input, wait for the end, and return what is left on standard output and error."""
        return self.process.communicate(timeout=20)
