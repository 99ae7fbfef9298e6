"""A real Claude Code with a scripted model: each session has its tools, and nothing is left.

    context_isolation.py subagent|main CLIENT...

With `subagent`, an agent file in the home directory has the server: the main session hands over to
the agent, which makes the calls. With `main`, ~/.claude.json has it, and the main session makes
them. The client takes us for the Messages API, so its requests are all that a model would see.
"""

import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

Json = dict[str, Any]
Processes = dict[int, str]  # command lines by process id
Calls = list[tuple[str, Json, str]]  # a tool, its arguments, and what its result must have in it
Assertions = Iterator[tuple[str, bool, object]]  # a sentence, whether it holds, and the facts

AGENT = "tmux-debug"
OURS = f"mcp__{AGENT}__tmux_"
TOOLS = ["create_pane", "send_keys", "capture_pane", "run", "wait", "kill_pane", "list_panes"]
CLIENT_S = 300.0  # it takes 3 s here, and an emulated machine may take a hundred times that
SETTLE_S = 10.0  # the client kills a server that takes more than half a second to end

# In the environment of all that the client starts, and in the arguments of a program in a pane and
# its daemon.
MARK = f"100000.{os.getpid():07}"
TWO = "import os, sys; os.fork() or os.setsid(); os.execvp('sleep', ['sleep', sys.argv[1]])"
SERVICE = (
    f"echo listening on port $((8000 + 80)); exec {shlex.join([sys.executable, '-c', TWO, MARK])}"
)
SERVICE_PANE = {"name": "service", "command": SERVICE, "wait_for": "port 8080"}

CALLS: Calls = [
    (OURS + "create_pane", SERVICE_PANE, "Created pane 'service' (id: debug-1)"),
    (OURS + "run", {"command": "echo six times seven is $((6 * 7))"}, "six times seven is 42"),
    (OURS + "list_panes", {}, '"name":"service","status":"running"'),
    (OURS + "capture_pane", {"pane_id": "service"}, "listening on port 8080"),
]
REPORT = "The service listens, and six times seven is 42."
TASK = {
    "description": "Debug",
    "prompt": "Debug the service.",
    "subagent_type": AGENT,
    "run_in_background": False,
}
SEARCH = {"query": "select:" + ",".join(OURS + name for name in TOOLS), "max_results": len(TOOLS)}
# What each session of a scope calls, one after the other, before it reports.
SCRIPTS: dict[str, dict[str, Calls]] = {
    "subagent": {"main": [("Agent", TASK, REPORT)], "subagent": CALLS},
    "main": {"main": [("ToolSearch", SEARCH, OURS + "wait"), *CALLS]},
}
# Above an agent's report Claude Code 2.1.328 names the tools that it called, which calls none.
CALLED = (
    "<tools-used-before-summary>"
    f"{', '.join(sorted(call[0] for call in CALLS))}</tools-used-before-summary>"
)


def processes() -> Processes:
    """Return this run's processes; one that has ended and is only not waited for is none."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environ = (directory / "environ").read_bytes().split(b"\0")
            line = (
                (directory / "cmdline")
                .read_bytes()
                .decode(errors="replace")
                .rstrip("\0")
                .replace("\0", " ")
            )
            if f"CONTEXT_ISOLATION={MARK}".encode() in environ or MARK in line:
                found[int(directory.name)] = line
    return found


def ours() -> Processes:
    """Return those that are the server, what keeps its panes, or what runs in one."""
    return {
        pid: line for pid, line in processes().items() if f"{AGENT}-mcp" in line or MARK in line
    }


def both_run(running: Processes) -> bool:
    """Tell whether the program in the pane and its daemon run."""
    return sum(line.endswith(f"sleep {MARK}") for line in running.values()) == 2


def until(holds: Callable[[], bool]) -> None:
    """Wait for something, though not for long."""
    deadline = time.monotonic() + SETTLE_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


def size(tools: list[Json]) -> int:
    """Return how many bytes tools have in a request."""
    return sum(
        len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")).encode()) for tool in tools
    )


class Request(NamedTuple):
    """A request, and what of ours ran when it was answered."""

    body: Json
    running: Processes

    def tools(self) -> list[Json]:
        """Return our tools that it offers."""
        return [tool for tool in self.body.get("tools", []) if tool["name"].startswith(OURS)]

    def has_schemas(self) -> bool:
        """Tell whether it offers all our tools, each with a description and its schema."""
        schemas = {
            tool["name"]: tool["input_schema"] for tool in self.tools() if tool["description"]
        }
        with_parameters = {name for name, schema in schemas.items() if schema["properties"]}
        return (
            set(schemas)
            == {OURS + name for name in TOOLS}
            == with_parameters | {OURS + "list_panes"}
        )

    def result(self, step: int) -> str:
        """Return what came back of a call of its session; nothing when that was an error."""
        blocks = [
            block
            for message in self.body["messages"]
            for block in message["content"]
            if isinstance(block, dict)
        ]
        results = [block for block in blocks if block.get("tool_use_id") == f"toolu_{step}"]
        parts = [
            part for result in results if not result.get("is_error") for part in result["content"]
        ]
        return "\n".join(
            part.get("text") or part.get("tool_name", "")
            for part in parts
            if isinstance(part, dict)
        )


class Model(ThreadingHTTPServer):
    """The Messages API; its model does what its scripts say and keeps what each session asked.

    It knows the agent's session by the text of the agent file, as JSON, in the system prompt.
    """

    daemon_threads = True

    def __init__(self, scripts: dict[str, Calls], agent_prompt: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts = scripts
        self.agent_prompt = agent_prompt
        self.requests: dict[str, list[Request]] = {session: [] for session in scripts}

    def answer(self, body: Json) -> Json:
        """Return the message that is next in a session; how far it is, its request tells."""
        session = "subagent" if self.agent_prompt in json.dumps(body.get("system")) else "main"
        is_first = not self.requests[session]
        if is_first and Request(body, {}).tools():
            # A client that offers all tools from the first has nothing to look up.
            self.scripts[session] = [
                call for call in self.scripts[session] if call[0] != "ToolSearch"
            ]
        calls = self.scripts[session]
        step = sum(message["role"] == "assistant" for message in body["messages"])
        if step == len(calls):
            until(lambda: both_run(ours()) if CALLS[0] in calls else not ours())
        self.requests[session].append(Request(body, ours()))
        block: Json = {"type": "text", "text": REPORT}
        if step < len(calls):
            name, arguments, _ = calls[step]
            block = {"type": "tool_use", "id": f"toolu_{step}", "name": name, "input": arguments}
        message = {
            "id": f"msg_{step}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
        }
        message |= {
            "stop_reason": "tool_use" if step < len(calls) else "end_turn",
            "stop_sequence": None,
        }
        return message | {"content": [block], "usage": {"input_tokens": 1, "output_tokens": 1}}


class Handler(BaseHTTPRequestHandler):
    """A request to the API; what does not ask for a message gets next to nothing."""

    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        if self.path.partition("?")[0] != "/v1/messages":
            self._send("application/json", '{"input_tokens": 1}')
        elif body.get("stream"):
            self._send("text/event-stream", "".join(events(self.server.answer(body))))
        else:
            self._send("application/json", json.dumps(self.server.answer(body)))

    def do_HEAD(self) -> None:
        self._send("application/json", "")

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())


def events(message: Json) -> Iterator[str]:
    """Return the events in which a message of one block is streamed."""
    (block,) = message["content"]
    start, delta = block | {"text": ""}, {"type": "text_delta", "text": block.get("text")}
    if block["type"] == "tool_use":
        start, delta = (
            block | {"input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
        )
    for event in [
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"]},
            "usage": message["usage"],
        },
        {"type": "message_stop"},
    ]:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def run(client: list[str], port: int) -> str:
    """Run the client to its end, and return what it printed, or how it failed."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANTHROPIC", "CLAUDE"))
    }
    env |= {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "none",
        "NO_PROXY": "127.0.0.1",
    }
    env |= {f"DISABLE_{what}": "1" for what in ("AUTOUPDATER", "ERROR_REPORTING", "TELEMETRY")}
    env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CONTEXT_ISOLATION": MARK}
    # Without this the main session begins after two seconds, its servers started or not.
    env |= dict.fromkeys(
        ["CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "MCP_TIMEOUT"], str(int(CLIENT_S * 1000))
    )
    command = [*client, "-p", "Debug the service.", "--allowedTools", f"mcp__{AGENT}"]
    try:
        return subprocess.check_output(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=CLIENT_S,
            text=True,
        )
    except subprocess.SubprocessError as error:
        return repr(vars(error))


def about_subagent(main: list[Request], subagent: list[Request]) -> Assertions:
    """What holds when an agent file has the server."""
    texts = [json.dumps(request.body, ensure_ascii=False) for request in main]
    offered = [tool for request in main for tool in request.tools()]
    yield "no request of the main session offers a tool of ours", not offered, offered
    named = re.findall(
        rf"mcp__{AGENT}\w*|tmux_\w*", texts[0] + "".join(texts[1:]).replace(CALLED, "")
    )
    called = texts[-1].count(CALLED) * len(CALLED)
    yield (
        f"none names one, but for the client's {called} bytes on what the agent called",
        not named,
        set(named),
    )
    lines = [line for line in texts[0].split(r"\n") if AGENT in line]
    told = len("".join(lines).encode()) + 1
    yield (
        f"all that the main session has of the agent before it calls it is {told} bytes",
        len(lines) == 1,
        lines,
    )
    first, last = main[0].running, main[-1].running
    yield "no server runs when the main session first asks", not first, first
    yield "what the agent leaves running runs when the main session last asks", both_run(last), last
    yield (
        "a session has the agent file's text in its system prompt",
        bool(subagent),
        texts[-1][-1000:],
    )
    without = [request.tools() for request in subagent if not request.has_schemas()]
    yield "each of its requests offers all our tools with their schemas", not without, without


def about_main(main: list[Request]) -> Assertions:
    """What holds when ~/.claude.json has the server.

    Newer clients tell names, and offer what is looked up.
    """
    named = [name for name in TOOLS if OURS + name in json.dumps(main[0].body)]
    yield "the main session is told the names of all our tools", named == TOOLS, named
    looks_up = not main[0].tools()
    when = "once they are looked up" if looks_up else "from the first"
    without = [request.tools() for request in main[looks_up:] if not request.has_schemas()]
    yield f"each request offers all our tools with their schemas, {when}", not without, without


def about_all(model: Model) -> Assertions:
    """What holds wherever the server is."""
    for session, calls in model.scripts.items():
        last = model.requests[session][-1]
        for step, (tool, _, result) in enumerate(calls):
            yield (
                f"{tool} answers the {session} session",
                result in last.result(step),
                last.body["messages"],
            )
    yield (
        "the server, a program and its daemon ran until the session had called",
        both_run(last.running),
        last.running,
    )
    if "subagent" in model.scripts:  # its server outlives it for a while
        stopped = subprocess.run(["tmux-debug", "stop"], capture_output=True, check=False)
        yield "the main session ends it", stopped.returncode == 0, stopped
    until(lambda: not processes())
    yield "no process is left of them, nor of the client", not processes(), processes()
    directories = set(
        re.findall(rf"/\S*/{AGENT}-mcp-\d+-[0-9a-f]+", "\n".join(last.running.values()))
    )
    left = [directory for directory in directories if Path(directory).exists()]
    yield "the server's directory is gone", len(directories) == 1 and not left, directories


def main() -> int:
    """Run the client, print what holds, and return the exit status."""
    scope, *client = sys.argv[1:]
    file = Path.home() / ".claude" / "agents" / f"{AGENT}.md"
    prompt = file.read_text().split("\n---\n", 1)[1].strip() if file.exists() else "\0"
    model = Model(SCRIPTS[scope], json.dumps(prompt)[1:-1])
    Thread(target=model.serve_forever, daemon=True).start()
    begin = time.monotonic()
    output = run(client, model.server_port)
    seconds = time.monotonic() - begin
    about_scope = about_subagent if scope == "subagent" else about_main
    answered = ("the client prints the model's report", output.strip() == REPORT, output)
    assertions = itertools.chain(
        [answered], about_scope(*model.requests.values()), about_all(model)
    )
    try:
        for sentence, holds, facts in assertions:
            if not holds:
                print(f"FAIL: {sentence}\n{facts!r:.3000}", file=sys.stderr)
                return 1
            print(f"ok: {sentence}", flush=True)
    finally:
        for pid in processes():
            os.kill(pid, signal.SIGKILL)
    for session, (*_, last) in model.requests.items():
        sizes = f"{size(last.body['tools'])} bytes of tools, {size(last.tools())} of them ours"
        print(f"{session}: {len(model.requests[session])} requests, {sizes}", end="; ")
    print(f"{seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
