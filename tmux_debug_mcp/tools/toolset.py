"""What a toolset is made of: tools, each declared where it is answered, and its own words."""

import importlib
import inspect
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Concatenate, Generic, TypeVar

import mcp_types as types
import orjson

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.errors import DEBUG, StartError, Words
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.panes.caller_session import CallerSession, PaneView
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.readable import Readable
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.printable import terminal_json

from .arguments import ArgumentsParser, parameters_of

TOOLSETS = ("debug", "tabs", "terminal", "tmux")

# MCP's tool annotations, by their names in Python. A tool that is not `READS` changes something.
READS: Mapping[str, bool] = {"read_only_hint": True}
CREATES: Mapping[str, bool] = {"destructive_hint": False}
DESTROYS: Mapping[str, bool] = {"destructive_hint": True}

_RUNS_SHELL = "it runs a shell, which is at its prompt; the next command there runs in that shell"

_SEEMS_TO_ASK = (
    f"no output for {Times().seems_to_ask_s:g} s after an unfinished line; it keeps running"
)

_GO_ON = (Reason.RUNNING, Reason.HELD)

# What a toolset's handlers work with.
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers.

    Attributes:
        blocks: Texts, each a block of content.
        meta: Facts for programs, the result's `_meta`; those that are None are left out.
        pane_id: The pane, or the panes, that the call was about.
        output: The part of the blocks that a program in a pane printed; None when there is none.
        image: A PNG to add as another block.
        outcome: How the call came out, for the record. None if it neither waited nor started, ran
            or ended something.
        shown: What it shows of panes. The caller's session notes that when it is handed out.
    """

    blocks: Sequence[str]
    meta: Mapping[str, Any] = field(default_factory=dict)
    pane_id: str | Sequence[str] | None = None
    output: str | None = None
    image: bytes | None = None
    outcome: "Outcome | None" = None
    shown: Mapping[Readable, PaneView] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call came out, as the record says it.

    Attributes:
        reason: A Reason, or one of `started`, `busy`, `killed` and `not_sent`.
        exit_code: That of the program in the pane, or of the command that ran there.
        signal: The signal that ended it.
        missed: What a wait was for and did not get, in a few words; "" if it got that.
    """

    reason: str
    exit_code: int | None = None
    signal: str | None = None
    missed: str = ""

    @property
    def failure(self) -> str:
        """How the call, its program or its wait failed, in a few words; "" if none did."""
        if self.reason == "killed":  # as the call asked
            return ""
        if self.reason in _FAILURES:
            return self._words
        if self.signal:
            return f"killed by {self.signal}"
        if self.exit_code:
            return f"exited {self.exit_code}"
        if self.missed:
            return self.missed
        # Nobody knows how the program ended.
        return "ended" if self.reason == Reason.EXITED and self.exit_code is None else ""

    @property
    def record(self) -> dict[str, Any]:
        """The fields of a record that say it: in words, whether it is a failure, and the facts."""
        words = self.failure or self._words
        if words == self._words and self.exit_code == 0 and self.reason in _ENDS:
            words = "exited 0"
        facts = {"reason": self.reason, "exit_code": self.exit_code, "signal": self.signal}
        return {
            "result": words,
            "failed": bool(self.failure),
            **{name: fact for name, fact in facts.items() if fact is not None},
        }

    @property
    def _words(self) -> str:
        return _WORDS.get(self.reason, self.reason.replace("_", " "))


# Reasons by which a call failed, whatever the program did.
_FAILURES = frozenset(
    {Reason.TIMED_OUT, Reason.RUNNING, Reason.HELD, Reason.LATE, Reason.SHELL_INTERRUPTED}
    | {Reason.STOPPED, Reason.INTERRUPTED, Reason.FLOODED, Reason.GIVEN_UP, Reason.SHELL_ENDED}
    | {Reason.REPLACED, "not_sent"}
)
_ENDS = (Reason.DONE, Reason.EXITED)
# Words for reasons whose names are not words.
_WORDS: Mapping[str, str] = {
    Reason.REST: "at rest",
    Reason.INPUT: "awaits input",
    Reason.BACK: "not gone",
    **dict.fromkeys(
        (Reason.RUNNING, Reason.HELD, Reason.LATE, Reason.SHELL_INTERRUPTED), "timed out"
    ),
}


def came_out(reason: str, state: State, exit_code: int | None = None, missed: str = "") -> Outcome:
    """Return how a call came out that left a pane in this state.

    `exit_code` is that of what ran in the pane, if it was not the pane's own program.
    """
    return Outcome(
        reason, state.exit_code if exit_code is None else exit_code, state.signal, missed
    )


def started(state: State) -> Outcome:
    """Return the outcome of a call that made a pane and did not wait for more."""
    return came_out("started" if state.is_running else Reason.EXITED, state)


def ask_a_person(pane: Readable) -> str:
    """Return how a person types a secret, since what a tool types is put on record.

    A person's shell is not a child of ours, so the line names the server.
    """
    return f"a person can type it: {own_command()} --server {os.getpid()} secret {pane.id}"


def json_answer(
    pane_id: str | None,
    result: Mapping[str, Any],
    output: str | None = None,
    outcome: Outcome | None = None,
) -> Answer:
    """Return an answer whose one block is compact JSON."""
    return Answer([compact(result)], pane_id=pane_id, output=output, outcome=outcome)


def compact(value: object) -> str:
    """Return compact JSON."""
    return terminal_json(orjson.dumps(value))


def state_facts(state: State) -> dict[str, Any]:
    """Return what lists of tabs and sessions say about a pane's state, as far as it applies."""
    facts = {
        "foreground": state.foreground,
        "exit_code": state.exit_code,
        "signal": state.signal,
        "awaits": state.awaits and state.awaits.value,
        "lost": state.is_lost or None,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def run_remark(run: Report, timeout_s: float) -> str | None:
    """Return a remark on how a run came out, None if its command or its pane ended by itself.

    If it timed out, the remark says what the command was doing right before it was interrupted.
    """
    timed_out = f"timed out after {timeout_s:g} s"
    before = run.interrupted
    if before and before.waits:
        timed_out += f", {before.waits}"
    # A program that leads elsewhere, which the state names, is not what was interrupted.
    elif before and before.foreground and (before.pid != run.state.pid or run.reason in _GO_ON):
        timed_out += f", foreground {before.foreground} (pid {before.pid})"
    remarks = {
        Reason.TIMED_OUT: f"{timed_out}; interrupted",
        Reason.RUNNING: f"{timed_out}; interrupted twice, and still runs",
        Reason.HELD: f"{timed_out}; it keeps running",
        Reason.LATE: f"{timed_out}; the command has ended, but how is not known yet",
        Reason.INTERRUPTED: "interrupted",
        Reason.GIVEN_UP: "the shell gave up the command",
        Reason.SHELL_ENDED: "the shell ended",
        Reason.REPLACED: "the shell was replaced",
        Reason.SHELL_STARTED: _RUNS_SHELL,
        Reason.SHELL_INTERRUPTED: f"{timed_out}; interrupted; {_RUNS_SHELL}",
        Reason.INPUT: "it keeps running",
        Reason.QUIET: _SEEMS_TO_ASK,
    }
    return remarks.get(run.reason)


Handler = Callable[Concatenate[T, ...], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Tool(Generic[T]):
    """A tool; `Toolset.tool` explains its attributes."""

    name: str
    description: str
    hints: Mapping[str, bool]
    handler: Handler[T]
    parser: ArgumentsParser
    may_take_long: bool
    meta: Mapping[str, Any] | None
    is_offered: Callable[[Settings], bool]

    @property
    def title(self) -> str:
        """What clients show people: "Create pane" for tmux_create_pane."""
        words = re.findall("[A-Z]?[a-z]+", self.name.removeprefix("tmux_"))
        return " ".join(words).capitalize()

    def definition(self) -> types.Tool:
        """Return the tool as tools/list shows it.

        Some clients look for the title only where early versions of the protocol put it.
        """
        hints = {"title": self.title, **self.hints}
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.parser.schema,
            annotations=types.ToolAnnotations.model_validate(hints),
            _meta=dict(self.meta) if self.meta else None,
        )


@dataclass(frozen=True, slots=True)
class Toolset(Generic[T]):
    """A vocabulary for the engine.

    Attributes:
        open: Makes what the handlers work with; once for each server.
        instructions: What the server's instructions say about it.
        users_instructions: What they say instead if it works on the user's own tmux server.
        words: Its words in the sentences of errors.
        resources: Returns the handlers of MCP's requests for resources, by the SDK's names.
        keeps_logs: Logs are kept after the end even if no directory is given.
        uses_socket: It can work on the user's own tmux server.
        uses_size: Its terminals have the size that the server's option gives.
    """

    name: str
    open: Callable[[Engine], T]
    instructions: str
    users_instructions: str = ""
    words: Words = DEBUG
    resources: Callable[[T], Mapping[str, Any]] | None = None
    keeps_logs: bool = False
    uses_socket: bool = False
    uses_size: bool = False
    tools: list[Tool[T]] = field(default_factory=list, init=False)

    def tool(
        self,
        name: str,
        description: str,
        hints: Mapping[str, bool],
        *,
        may_take_long: bool = False,
        meta: Mapping[str, Any] | None = None,
        is_offered: Callable[[Settings], bool] = lambda _settings: True,
    ) -> Callable[[Handler[T]], Handler[T]]:
        """Declare a tool that the decorated function answers.

        The function takes what `open` made and the arguments of the call: each as a parameter, or
        all in a dataclass that declares them. Between these two, it may also take the session of
        the caller. It raises a ToolError for the model to read.

        The hints are MCP's tool annotations: `READS`, `CREATES` or `DESTROYS`. Calls that
        `may_take_long` report progress. `meta` is the tool's `_meta`, for clients.
        """

        def declare(handler: Handler[T]) -> Handler[T]:
            _, *declared = inspect.signature(handler).parameters.values()
            arguments: Callable[..., object] = declared[-1].annotation if declared else handler
            is_in_one = is_dataclass(arguments)
            takes_session = is_in_one and len(declared) > 1
            parser = ArgumentsParser(name, parameters_of(arguments if is_in_one else handler))

            def answer(opened: T, session: CallerSession, /, **given: object) -> Awaitable[Answer]:
                if not is_in_one:
                    return handler(opened, **given)
                first = (opened, session) if takes_session else (opened,)
                return handler(*first, arguments(**given))

            self.tools.append(
                Tool(name, description, hints, answer, parser, may_take_long, meta, is_offered)
            )
            return handler

        return declare

    def instructions_for(self, settings: Settings) -> str:
        """Return what the instructions of a server with these settings say about it."""
        if settings.socket and self.users_instructions:
            return self.users_instructions
        return self.instructions


def may_kill(settings: Settings) -> bool:
    """Tell whether calls may kill: on our own tmux server, or where the user has allowed it."""
    return settings.allows_kill or not settings.socket


def choose(names: str) -> list[Toolset[Any]]:
    """Return the toolsets of these comma-separated names.

    Raises:
        StartError: No name is given, one is unknown, or two toolsets have a tool of the same name.
    """
    words = [word.strip() for word in names.split(",")]
    wanted = list(dict.fromkeys(word for word in words if word))
    for name in wanted:
        if name not in TOOLSETS:
            raise StartError(f"There is no toolset '{name}'. Choose from {', '.join(TOOLSETS)}.")
    if not wanted:
        raise StartError(f"No toolset is chosen. Choose from {', '.join(TOOLSETS)}.")
    package = __name__.rpartition(".")[0]
    chosen = [importlib.import_module(f"{package}.{name}").TOOLSET for name in wanted]
    owners: dict[str, str] = {}
    for toolset in chosen:
        for tool in toolset.tools:
            other = owners.setdefault(tool.name, toolset.name)
            if other != toolset.name:
                raise StartError(
                    f"Toolsets '{other}' and '{toolset.name}' both have a tool '{tool.name}'. "
                    "Choose one of the two."
                )
    return chosen
