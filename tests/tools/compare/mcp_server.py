"""What the adapters of MCP servers have in common: the client."""

import json
import shlex
import subprocess
from typing import Any, ClassVar

from .tools import Tool

_CLIENT = {"name": "compare", "version": "1"}


class CallError(Exception):
    """A call was answered with an error."""


class McpServer(Tool):
    """An MCP server over stdio."""

    default_command: ClassVar[str] = ""

    def start(self) -> None:
        """Start the server and shake hands."""
        self._number = 0
        self._process = subprocess.Popen(
            shlex.split(self.command or self.default_command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.home / "stderr").open("wb"),
            env=self.env,
            cwd=self.home,
        )
        hello = self._ask(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=_CLIENT
        )
        self._info = hello["serverInfo"]
        self._write({"method": "notifications/initialized"})

    def version(self) -> str:
        """Return what the server says of itself."""
        return f"{self._info['name']} {self._info['version']}"

    def finish(self) -> None:
        """Close the server's standard input, and wait for its end."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.terminate()

    def die(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.wait()

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Call a tool, and return its result.

        Raises:
            CallError: The result is an error.
        """
        result = self._ask("tools/call", name=tool, arguments=arguments)
        self.turns += 1
        self.received += len(text_of(result).encode())
        if result.get("isError"):
            raise CallError(text_of(result))
        return result

    def text(self, tool: str, /, **arguments: Any) -> str:  # noqa: ANN401
        """Call a tool, and return the text of its result."""
        return text_of(self.call(tool, **arguments))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        assert self._process.stdout
        for line in self._process.stdout:
            # Some servers print other things, too.
            answer = json.loads(line) if line.startswith(b"{") else {}
            if answer.get("id") == self._number and "method" not in answer:
                if "error" in answer:
                    raise CallError(answer["error"]["message"])
                result: dict[str, Any] = answer["result"]
                return result
        raise CallError("The server has ended.")

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def text_of(result: dict[str, Any]) -> str:
    """Return the text blocks of a result, one after the other."""
    return "\n".join(block.get("text", "") for block in result.get("content", ()))
