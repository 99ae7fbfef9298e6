"""Starts servers of ours as clients would, asks them for their tools, and ends them.

They get a directory of their own for what they write. The SDK ends what it starts, with its process
group, when it is cancelled, too.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

_VARIABLES = "TMUX_DEBUG_"
# The options that decide how panes are. Others say where to write, what to offer, or how to serve.
_KEPT = ("TMUX_DEBUG_DROP_ENV", "TMUX_DEBUG_ENV", "TMUX_DEBUG_SHELL")
_OWN_NAME = "tmux-debug-mcp: "
_MAX_COMPLAINT_CHARACTERS = 300
_MAX_STRANGE_CHARACTERS = 80
# A command awaits input within milliseconds; if that can't be seen, this time passes.
_RUN_S = 3.0


@dataclass(frozen=True, slots=True)
class Trial:
    """A server to start: the words of its command, its environment, and what it runs in a pane.

    With "" for what it runs, it makes no pane.
    """

    words: Sequence[str]
    env: Mapping[str, str]
    command: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """A server's version, its number of tools, and how long it took.

    `output` is what its pane printed, and `reason` is why the call that ran the command ended.
    """

    version: str
    tools: int
    elapsed_s: float
    output: str = ""
    reason: str = ""


class Complaint(str):
    """What a server said before it ended, in one line."""

    __slots__ = ()


class _TrialError(Exception):
    """Raised when a server does not do what it was asked for; the text says what it did."""


def ask(trials: Sequence[Trial], directory: str, timeout_s: float) -> list[Answers | str]:
    """Start all servers in a directory, and return for each what it answers, or why it doesn't."""
    return anyio.run(_ask_all, trials, directory, timeout_s)


async def _ask_all(
    trials: Sequence[Trial], directory: str, timeout_s: float
) -> list[Answers | str]:
    outcomes: list[Answers | str] = [f"It did not answer within {timeout_s:g} s."] * len(trials)

    async def add(number: int, trial: Trial) -> None:
        with anyio.move_on_after(timeout_s):
            outcomes[number] = await _outcome(trial, directory)

    async with anyio.create_task_group() as group:
        for number, trial in enumerate(trials):
            group.start_soon(add, number, trial)
    return outcomes


async def _outcome(trial: Trial, directory: str) -> Answers | str:
    with tempfile.TemporaryFile("w+", errors="replace", dir=directory) as errors:
        try:
            return await _ask(trial, directory, errors)
        except (ExceptionGroup, _TrialError, MCPError, OSError, ValueError) as error:
            cause: Exception = error
            while isinstance(cause, ExceptionGroup):  # as task groups raise it
                cause = cause.exceptions[0]
        if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
            errors.seek(0)
            last = (errors.read().strip() or "It ended before it answered.").splitlines()[-1]
            return Complaint(last.removeprefix(_OWN_NAME)[:_MAX_COMPLAINT_CHARACTERS])
    if isinstance(cause, MCPError):
        return f"It answers with an error: {cause.message}."
    if isinstance(cause, ValidationError):
        return "It answers with something other than MCP."
    if isinstance(cause, OSError):
        return f"It can't be started: {cause.strerror}."
    if isinstance(cause, ValueError):
        return "It can't be started: no program can be given its words or variables."
    if isinstance(cause, _TrialError):
        return str(cause)
    raise cause


async def _ask(trial: Trial, directory: str, errors: TextIO) -> Answers:
    strange = ""

    async def heed(message: object) -> None:
        nonlocal strange
        if isinstance(message, ValidationError):  # for a line that is not a message
            strange = str(message.errors()[0]["input"])[:_MAX_STRANGE_CHARACTERS]
            scope.cancel()

    begin = anyio.current_time()
    program, *words = trial.words
    server = StdioServerParameters(command=program, args=words, env=dict(trial.env), cwd=directory)
    with anyio.CancelScope() as scope:
        async with Client(
            stdio_client(server, errors), mode="legacy", message_handler=heed
        ) as client:
            tools = (await client.list_tools()).tools
            output = reason = ""
            if trial.command:
                arguments = {"command": trial.command, "timeout_s": _RUN_S}
                result = await client.call_tool("tmux_run", arguments)
                # What the pane is doing follows what it printed.
                [output, *_] = [block.text for block in result.content if block.type == "text"]
                if result.is_error:
                    raise _TrialError(output)
                reason = (result.meta or {}).get("reason", "")
            version = client.server_info.version if client.server_info else ""
            elapsed_s = anyio.current_time() - begin
            return Answers(version, len(tools), elapsed_s, output, reason)
    raise _TrialError(f"It prints something other than MCP: {strange}")


def environment(environ: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return the environment of a server that keeps its files in a directory."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_VARIABLES) or name in _KEPT
    }
    tmux = environ.get(f"{_VARIABLES}TMUX")
    if tmux is not None:  # perhaps relative to the caller's directory
        is_path = "/" in tmux
        kept[f"{_VARIABLES}TMUX"] = os.path.abspath(os.path.expanduser(tmux)) if is_path else tmux
    own = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR")
    return kept | dict.fromkeys(own, directory) | {"PYTHONDONTWRITEBYTECODE": "1"}
