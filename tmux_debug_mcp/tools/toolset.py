"""What a toolset is made of: a table of tools, and sentences of its own."""

import importlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import mcp_types as types

from tmux_debug_mcp.errors import StartError, ToolError
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.settings import Settings

from .schema import arguments, parameters_of, schema_of

TOOLSETS = ("debug", "tabs", "terminal", "tmux")

# MCP's tool annotations, by their names in Python. A tool that is not `READS` changes something.
READS: Mapping[str, bool] = {"read_only_hint": True}
CREATES: Mapping[str, bool] = {"destructive_hint": False}
DESTROYS: Mapping[str, bool] = {"destructive_hint": True}

# The object whose methods are a toolset's handlers, and the class of a tool's arguments.
T = TypeVar("T")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers.

    Attributes:
        blocks: Texts, a block of content each.
        meta: Facts for programs, the result's `_meta`; those that are None are left out.
        pane_id: The pane that the call was about.
        output: The part of the blocks that a program in a pane printed; None when there is none.
        image: A PNG to add as a block of its own.
        outcome: How the call came out, for the record; see `came_out`. Empty where it neither
            waited nor ran or ended something.
    """

    blocks: Sequence[str]
    meta: Mapping[str, Any] = field(default_factory=dict)
    pane_id: str | None = None
    output: str | None = None
    image: bytes | None = None
    outcome: Mapping[str, Any] = field(default_factory=dict)


def came_out(reason: str, state: State, exit_code: int | None = None) -> Mapping[str, Any]:
    """Return how a call came out.

    Args:
        reason: Why it was answered: a WaitReason, a RunReason, or one of ours.
        state: The pane's state then.
        exit_code: The exit code of what was run in the pane, if not of the pane's own program.
    """
    if exit_code is None:
        exit_code = state.exit_code
    return {"reason": reason, "exit_code": exit_code, "signal": state.signal}


def started(state: State) -> Mapping[str, Any]:
    """Return how a call came out that made a pane and did not wait for more."""
    return came_out("started" if state.is_running else "exited", state)


@dataclass(frozen=True, slots=True)
class Tool(Generic[T, A]):
    """A row of a toolset's table.

    Attributes:
        name: The tool's name.
        description: What the model reads of it.
        handler: The method that answers calls. It raises a ToolError for the model to read.
        arguments: The class of its arguments, which gives the schema; see `schema`.
        hints: MCP's tool annotations: `READS`, `CREATES` or `DESTROYS`.
        may_take_long: Tells whether to report progress of a call with these arguments.
        meta: The tool's `_meta`, for clients.
        removed: Arguments that the tool once had, with what to do instead.
        is_offered: Tells whether a server with these settings offers it.
    """

    name: str
    description: str
    handler: Callable[[T, A], Awaitable[Answer]]
    arguments: type[A]
    hints: Mapping[str, bool] = field(default_factory=dict)
    may_take_long: Callable[[A], bool] = lambda _arguments: False
    meta: Mapping[str, Any] | None = None
    removed: Mapping[str, str] = field(default_factory=dict)
    is_offered: Callable[[Settings], bool] = lambda _settings: True

    @property
    def title(self) -> str:
        """What clients call it for people: "Create pane" for tmux_create_pane."""
        words = re.findall("[A-Z]?[a-z]+", self.name.removeprefix("tmux_"))
        return " ".join(words).capitalize()

    def definition(self) -> types.Tool:
        """Return the tool as tools/list shows it.

        Some clients look for the title only where early versions of the protocol had it.
        """
        hints = {"title": self.title, **self.hints}
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema_of(parameters_of(self.arguments)),
            annotations=types.ToolAnnotations.model_validate(hints),
            _meta=dict(self.meta) if self.meta else None,
        )


@arguments
class NoArguments:
    """The arguments of a tool that takes none."""


@dataclass(frozen=True, slots=True)
class Toolset(Generic[T]):
    """A vocabulary for the engine.

    Attributes:
        name: One of `TOOLSETS`.
        open: Makes the object whose methods are the handlers; one for each server.
        tools: Its tools.
        instructions: What the server's instructions say of it.
        users_instructions: What they say instead where it works on the user's own tmux server.
        sentences: Its own sentences for errors, instead of those of `debug`. Names in braces stand
            for the facts of the error, the call's arguments and the placeholders.
        placeholders: Values that sentences get for arguments that a call left out.
        resources: Returns the handlers of MCP's requests for resources, by the SDK's names.
        keeps_logs: Logs are kept after the end even where nobody says where.
        uses_socket: It can work on the user's own tmux server.
        uses_size: Its terminals have the size that the server's option says.
    """

    name: str
    open: Callable[[Engine], T]
    tools: Sequence[Tool[T, Any]]
    instructions: str
    sentences: Mapping[type[ToolError], str] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict)
    users_instructions: str = ""
    resources: Callable[[T], Mapping[str, Any]] | None = None
    keeps_logs: bool = False
    uses_socket: bool = False
    uses_size: bool = False

    def instructions_for(self, settings: Settings) -> str:
        """Return what the instructions of a server with these settings say of it."""
        if settings.socket and self.users_instructions:
            return self.users_instructions
        return self.instructions


def may_kill(settings: Settings) -> bool:
    """Tell whether calls may kill: on our own tmux server, or where the user has allowed it."""
    return settings.allows_kill or not settings.socket


def choose(names: str) -> list[Toolset[Any]]:
    """Return the toolsets of these names, which are separated by commas.

    Raises:
        StartError: A name is unknown, or two toolsets have a tool of the same name.
    """
    words = [word.strip() for word in names.split(",")]
    wanted = list(dict.fromkeys(word for word in words if word))
    for name in wanted:
        if name not in TOOLSETS:
            raise StartError(f"There is no toolset '{name}'. Choose of {', '.join(TOOLSETS)}.")
    if not wanted:
        raise StartError(f"No toolset is chosen. Choose of {', '.join(TOOLSETS)}.")
    package = __name__.rpartition(".")[0]
    chosen = [importlib.import_module(f"{package}.{name}").TOOLSET for name in wanted]
    _check_distinct(chosen)
    return chosen


def _check_distinct(toolsets: Sequence[Toolset[Any]]) -> None:
    owners: dict[str, str] = {}
    for toolset in toolsets:
        for tool in toolset.tools:
            other = owners.setdefault(tool.name, toolset.name)
            if other != toolset.name:
                raise StartError(
                    f"Toolsets '{other}' and '{toolset.name}' both have a tool '{tool.name}'. "
                    "Choose one of the two."
                )
