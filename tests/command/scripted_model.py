"""A model with a script, which stands in for a real one: real clients ask it what to do.

It calls `tmux_run` once, and then says what came of that. It speaks the three protocols that the
clients use: OpenAI's responses and chat completions, and Gemini's.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMAND = "echo $((6 * 7)) from a pane"
PRINTED = "42 from a pane"
_TOOL = re.compile(r'"name": "([^"]*tmux_run)"')
_ARGUMENTS = {"command": COMMAND}


class _Handler(BaseHTTPRequestHandler):
    """Answers one request: with a call of the tool, with its result, or with a word."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = next(kind for kind in (_Responses, _Gemini, _Chat) if kind.path in self.path)
        result = kind.result_of(request)
        tool = _TOOL.search(json.dumps(request.get("tools", [])))
        if result is None and tool:
            events = kind.call(tool[1])
        else:
            events = kind.text("done" if result is None else f"It printed: {result}")
        body = "".join(f"data: {one}\n\n" for one in events).encode()
        if "stream" not in self.path and not request.get("stream"):
            body = events[0].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Responses:
    """OpenAI's responses, which Codex uses."""

    path = "/responses"

    @staticmethod
    def result_of(request: Any) -> str | None:  # noqa: ANN401
        """Return the result of the tool, if a request has one."""
        items = [one for one in request["input"] if one.get("type") == "function_call_output"]
        return json.dumps(items[0]["output"]) if items else None

    @staticmethod
    def call(tool: str) -> list[str]:
        """Return the events of a call."""
        arguments = json.dumps(_ARGUMENTS)
        item = {"type": "function_call", "call_id": "call", "name": tool, "arguments": arguments}
        return _Responses._events({**item, "namespace": "mcp__tmux_debug"})

    @staticmethod
    def text(text: str) -> list[str]:
        """Return the events of a text."""
        content = [{"type": "output_text", "text": text}]
        return _Responses._events({"type": "message", "role": "assistant", "content": content})

    @staticmethod
    def _events(item: dict[str, Any]) -> list[str]:
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            json.dumps({"type": "response.created", "response": {"id": "one"}}),
            json.dumps({"type": "response.output_item.done", "item": item}),
            json.dumps({"type": "response.completed", "response": {"id": "one", "usage": usage}}),
        ]


class _Chat:
    """OpenAI's chat completions, which OpenCode uses."""

    path = "/chat/completions"

    @staticmethod
    def result_of(request: Any) -> str | None:  # noqa: ANN401
        """Return the result of the tool, if a request has one."""
        messages = [one for one in request["messages"] if one["role"] == "tool"]
        return json.dumps(messages[0]["content"]) if messages else None

    @staticmethod
    def call(tool: str) -> list[str]:
        """Return the events of a call."""
        function = {"name": tool, "arguments": json.dumps(_ARGUMENTS)}
        calls = [{"index": 0, "id": "call", "type": "function", "function": function}]
        return _Chat._events({"role": "assistant", "tool_calls": calls}, "tool_calls")

    @staticmethod
    def text(text: str) -> list[str]:
        """Return the events of a text."""
        return _Chat._events({"role": "assistant", "content": text}, "stop")

    @staticmethod
    def _events(delta: dict[str, Any], reason: str) -> list[str]:
        def chunk(delta: dict[str, Any], reason: str | None) -> str:
            choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
            return json.dumps(
                {"id": "one", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
                | {"choices": choices}
            )

        return [chunk(delta, None), chunk({}, reason), "[DONE]"]


class _Gemini:
    """Gemini's own protocol."""

    path = "enerateContent"

    @staticmethod
    def result_of(request: Any) -> str | None:  # noqa: ANN401
        """Return the result of the tool, if a request has one."""
        parts = [part for content in request["contents"] for part in content["parts"]]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return json.dumps(results[0]["response"]) if results else None

    @staticmethod
    def call(tool: str) -> list[str]:
        """Return the events of a call."""
        return _Gemini._events({"functionCall": {"name": tool, "args": _ARGUMENTS}})

    @staticmethod
    def text(text: str) -> list[str]:
        """Return the events of a text."""
        return _Gemini._events({"text": text})

    @staticmethod
    def _events(part: dict[str, Any]) -> list[str]:
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [json.dumps({"candidates": [candidate], "usageMetadata": usage})]


@contextmanager
def scripted_model() -> Iterator[str]:
    """Serve the model, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
