"""Starts a server of ours as a client would, asks it for its tools, and ends it.

It gets its own directories, so that it neither reads nor changes the user's. Whatever is started
has its own process group, and doesn't outlive this process.
"""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from tmux_debug_mcp.linux import processes

_VARIABLES = "TMUX_DEBUG_"
_OWN_NAME = "tmux-debug-mcp: "
_MAX_COMPLAINT_CHARACTERS = 300
_MAX_STRANGE_CHARACTERS = 80
# A server of ours ends within this time after SIGTERM.
_GRACE_S = 0.4
_POLL_S = 0.01


class ProbeError(Exception):
    """Raised when a server does not do what it was asked for; the text says what it did."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where to try something, and for how long.

    `directory` is a private one for what is started, None if none can be made. Everything may take
    `timeout_s`, and trials end at `deadline`, by time.monotonic().
    """

    environ: Mapping[str, str]
    directory: str | None
    timeout_s: float
    deadline: float

    @property
    def seconds_left(self) -> float:
        """How much time is left; 0 for none."""
        return max(self.deadline - time.monotonic(), 0.0)


@dataclass(frozen=True, slots=True)
class Answers:
    """A server's version and number of tools, what its pane printed, and how long it took."""

    version: str
    tools: int
    output: str
    elapsed_s: float


def ask(words: Sequence[str], env: Mapping[str, str], directory: str, command: str = "") -> Answers:
    """Start a server in a directory, have it run a command in a pane unless that is "", and end it.

    It may take any time; `end_children` ends it early.

    Raises:
        ProbeError: It does not start, ends too early, or does not answer as it should.
    """
    with tempfile.TemporaryFile("w+", errors="replace", dir=directory) as errors:
        try:
            return anyio.run(_ask, words, env, directory, command, errors)
        except (ExceptionGroup, ProbeError, MCPError, OSError, ValueError) as error:
            cause: Exception = error
            while isinstance(cause, ExceptionGroup):  # as task groups raise it
                cause = cause.exceptions[0]
        if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
            errors.seek(0)
            last = (errors.read().strip() or "It ended before it answered.").splitlines()[-1]
            raise ProbeError(last.removeprefix(_OWN_NAME)[:_MAX_COMPLAINT_CHARACTERS])
    if isinstance(cause, MCPError):
        raise ProbeError(f"It answers with an error: {cause.message}.")
    if isinstance(cause, ValidationError):
        raise ProbeError("It answers with something other than MCP.")
    if isinstance(cause, OSError | ValueError):
        raise ProbeError(f"It can't be started: {cause}.")
    raise cause


async def _ask(
    words: Sequence[str], env: Mapping[str, str], directory: str, command: str, errors: TextIO
) -> Answers:
    strange = ""

    async def heed(message: object) -> None:
        nonlocal strange
        if isinstance(message, ValidationError):  # for a line that is not a message
            strange = str(message.errors()[0]["input"])[:_MAX_STRANGE_CHARACTERS]
            scope.cancel()

    begin = time.monotonic()
    server = StdioServerParameters(
        command=words[0], args=list(words[1:]), env=dict(env), cwd=directory
    )
    with anyio.CancelScope() as scope:
        async with Client(
            stdio_client(server, errors), mode="legacy", message_handler=heed
        ) as client:
            tools = (await client.list_tools()).tools
            output = ""
            if command:
                result = await client.call_tool("tmux_run", {"command": command})
                # What the pane is doing follows what it printed.
                [output, *_] = [block.text for block in result.content if block.type == "text"]
                if result.is_error:
                    raise ProbeError(output)
            version = client.server_info.version if client.server_info else ""
            return Answers(version, len(tools), output, time.monotonic() - begin)
    raise ProbeError(f"It prints something other than MCP: {strange}")


def environment(environ: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return the environment of a server that keeps its files in a directory.

    Of our variables, it keeps only the one for tmux: others say where to write, or what to do.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_VARIABLES)}
    tmux = environ.get(f"{_VARIABLES}TMUX")
    if tmux is not None:  # perhaps relative to the caller's directory
        is_path = "/" in tmux
        kept[f"{_VARIABLES}TMUX"] = os.path.abspath(os.path.expanduser(tmux)) if is_path else tmux
    own = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR")
    return kept | dict.fromkeys(own, directory) | {"PYTHONDONTWRITEBYTECODE": "1"}


def end_children() -> None:
    """End the children of this process, with their process groups.

    SIGTERM comes first: a server of ours then takes its panes and files with it.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        for pid in processes.children(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)
        while any(map(processes.is_alive, processes.children(os.getpid()))):
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
