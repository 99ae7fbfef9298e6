"""Toolsets: tables of name, description, parameters and handler, and the one place where calls pass.

A handler takes the session and checked arguments and returns an `Answer`, or raises a ToolError for the model
to read. Everything else that a call needs happens in `Toolbox.call`.
"""

import base64
import importlib
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
import mcp_types as types

from tmux_debug_mcp.audit import AuditLog
from tmux_debug_mcp.errors import ArgumentError, OutOfFilesError, StartError, StorageError, ToolError, UnknownToolError
from tmux_debug_mcp.linux import OUT_OF_FILES
from tmux_debug_mcp.session import Session

from .arguments import check

Arguments = Mapping[str, Any]
Report = Callable[[float], Awaitable[None]]

TOOLSETS = ("debug", "tabs", "terminal", "tmux")

# Clients may give up a call that they hear nothing of.
_PROGRESS_S = 5.0

# What a call with `secret` may show; of a parameter that does not exist nobody knows what was meant by it.
_NEVER_SECRET = frozenset({"pane_id", "literal", "secret"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers.

    Attributes:
        blocks: Texts, a block of content each.
        meta: The same for programs, without what is None.
        pane_id: The pane that the call was about.
        output: What of the blocks a program in a pane printed; None when none of it.
        image: A picture to put behind the blocks, in the format PNG.
    """

    blocks: Sequence[str]
    meta: Mapping[str, Any] = field(default_factory=dict)
    pane_id: str | None = None
    output: str | None = None
    image: bytes | None = None


Handler = Callable[[Session, Arguments], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A row of a toolset's table.

    Attributes:
        parameters: The properties of the input's JSON Schema, by name.
        required: The parameters that must be given.
        hints: MCP's tool annotations, by their names in Python.
        may_take_long: Whether a call with these arguments may be one to report progress of.
        meta: The tool's `_meta`, for clients.
        removed: Parameters that it once had, with what to do instead.
    """

    name: str
    description: str
    handler: Handler
    parameters: Mapping[str, Any] = field(default_factory=dict)
    required: Sequence[str] = ()
    hints: Mapping[str, bool] = field(default_factory=dict)
    may_take_long: Callable[[Arguments], bool] = lambda _arguments: False
    meta: Mapping[str, Any] | None = None
    removed: Mapping[str, str] = field(default_factory=dict)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.parameters)}
        return schema | ({"required": list(self.required)} if self.required else {})

    def definition(self) -> types.Tool:
        """Return the tool as tools/list shows it."""
        return types.Tool(
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            annotations=types.ToolAnnotations.model_validate(self.hints),
            _meta=dict(self.meta) if self.meta else None,
        )


@dataclass(frozen=True, slots=True)
class Toolset:
    """A vocabulary for the engine.

    Attributes:
        name: As in `TOOLSETS`.
        tools: Its tools.
        instructions: What the server tells clients of it.
        sentences: What errors say in its words, which are those of `debug` otherwise. A fact of an error is put in
            place of its name in braces, and so are the arguments of the call and the defaults.
        defaults: Arguments that a call may leave out.
        keeps_logs: Logs are kept after the end, also when nobody says where.
        has_screens: The screens of panes are resources of MCP.
        uses_socket: It can work on the user's own tmux server.
    """

    name: str
    tools: Sequence[Tool]
    instructions: str
    sentences: Mapping[type[ToolError], str] = field(default_factory=dict)
    defaults: Arguments = field(default_factory=dict)
    keeps_logs: bool = False
    has_screens: bool = False
    uses_socket: bool = False


def choose(names: str) -> list[Toolset]:
    """Return the toolsets of these names, separated by commas.

    Raises:
        StartError: There is none of a name, or two have a tool of the same name.
    """
    wanted = list(dict.fromkeys(name for word in names.split(",") if (name := word.strip())))
    for name in wanted:
        if name not in TOOLSETS:
            raise StartError(f"There is no toolset '{name}'. Choose of {', '.join(TOOLSETS)}.")
    if not wanted:
        raise StartError(f"No toolset is chosen. Choose of {', '.join(TOOLSETS)}.")
    chosen: list[Toolset] = [importlib.import_module(f"{__name__}.{name}").TOOLSET for name in wanted]
    owners: dict[str, str] = {}
    for toolset in chosen:
        for tool in toolset.tools:
            other = owners.setdefault(tool.name, toolset.name)
            if other != toolset.name:
                both = f"'{other}' and '{toolset.name}'"
                raise StartError(f"Toolsets {both} both have a tool '{tool.name}'. Choose one of the two.")
    return chosen


class Toolbox:
    """The tools of a server, at work on its session.

    Attributes:
        instructions: What the server tells clients of them.
        running: How many calls are being made.
        session: All panes.
        has_screens: Whether the screens of panes are resources of MCP.
    """

    def __init__(self, toolsets: Sequence[Toolset], session: Session, audit: AuditLog | None) -> None:
        self._tools = {tool.name: tool for toolset in toolsets for tool in toolset.tools}
        self._toolsets = {tool.name: toolset for toolset in toolsets for tool in toolset.tools}
        self.instructions = "\n\n".join(toolset.instructions for toolset in toolsets)
        self.session = session
        self.has_screens = any(toolset.has_screens for toolset in toolsets)
        self._audit = audit
        self.running = 0

    def definitions(self) -> list[types.Tool]:
        """Return the tools as tools/list shows them."""
        return [tool.definition() for tool in self._tools.values()]

    async def call(self, name: str, arguments: Arguments, report: Report) -> types.CallToolResult:
        """Call a tool; what the caller can mend is a result with `is_error`, a bug of ours an exception.

        Args:
            name: The tool's name.
            arguments: As the client gave them.
            report: Whom to tell every few seconds that the call is at work.
        """
        self.running += 1
        try:
            tool = self._tools.get(name)
            if tool is None or not tool.may_take_long(arguments):
                return await self._result(name, arguments)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report, report)
                result = await self._result(name, arguments)
                tasks.cancel_scope.cancel()
            return result
        finally:
            self.running -= 1

    async def _result(self, name: str, arguments: Arguments) -> types.CallToolResult:
        try:
            if self._audit is None:
                answer = await self._answer(name, arguments)
            else:
                self._audit.check()
                answer = await self._audited(self._audit, name, arguments)
        except ToolError as error:
            return types.CallToolResult(content=[_text(self._told(error, name, arguments))], is_error=True)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            raise
        meta = {key: value for key, value in answer.meta.items() if value is not None}
        content: list[types.ContentBlock] = [_text(block) for block in answer.blocks]
        if answer.image is not None:
            data = base64.b64encode(answer.image).decode()
            content.append(types.ImageContent(type="image", data=data, mime_type="image/png"))
        return types.CallToolResult(content=content, _meta=meta) if meta else types.CallToolResult(content=content)

    def _told(self, error: ToolError, name: str, arguments: Arguments) -> str:
        """Return an error in the words of the tool that was called."""
        toolset = self._toolsets.get(name)
        return error.told(toolset.sentences, {**toolset.defaults, **arguments}) if toolset else str(error)

    async def _answer(self, name: str, arguments: Arguments) -> Answer:
        tool = self._tools.get(name)
        if tool is None:
            raise UnknownToolError(name, list(self._tools))
        for parameter, instead in tool.removed.items():
            if parameter in arguments:
                raise ArgumentError(f"{tool.name} has no parameter '{parameter}'. {instead}")
        given = check(tool.name, tool.input_schema, arguments)
        try:
            return await tool.handler(self.session, given)
        except Exception as error:
            if _is_out_of_files(error):
                raise OutOfFilesError from error
            if isinstance(error, OSError) and error.filename:
                raise StorageError(str(error.filename), str(error.strerror)) from error
            raise

    async def _audited(self, audit: AuditLog, name: str, arguments: Arguments) -> Answer:
        begin = time.monotonic()
        answer: Answer | None = None
        error: str | None = "cancelled"
        try:
            answer = await self._answer(name, arguments)
            error = None
        except ToolError as reason:
            error = self._told(reason, name, arguments)
            raise
        except Exception as reason:
            error = str(reason)
            raise
        finally:
            # Also when the call was cancelled.
            duration_ms = round((time.monotonic() - begin) * 1000, 3)
            record = _call_record(name, arguments, answer)
            ok = {"ok": error is None} | ({} if error is None else {"error": error})
            audit.record(record | {"duration_ms": duration_ms} | ok)
        if answer.output is not None and answer.pane_id is not None:
            audit.capture(answer.pane_id, answer.output)
        return answer


def _call_record(name: str, arguments: Arguments, answer: Answer | None) -> dict[str, Any]:
    """Return a call as it is put on record: without values that are or may be secrets."""
    given = dict(arguments)
    if given.get("secret", False) is not False:  # also what was meant as that
        given = {key: value for key, value in given.items() if key in _NEVER_SECRET}
    if "env" in given:
        given["env"] = list(given["env"]) if isinstance(given["env"], Mapping) else type(given["env"]).__name__
    record = {
        "ts": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "tool": name.removeprefix("tmux_"),
    }
    record |= {"pane_id": answer.pane_id} if answer and answer.pane_id else {}
    record |= {key: value for key, value in given.items() if key not in record}
    return record | ({} if answer is None or answer.output is None else {"output_bytes": len(answer.output.encode())})


def _is_out_of_files(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_out_of_files, error.exceptions))
    return isinstance(error, OSError) and error.errno in OUT_OF_FILES


async def _report(report: Report) -> None:
    begin = anyio.current_time()
    while True:
        await anyio.sleep(_PROGRESS_S)
        await report(round(anyio.current_time() - begin))


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)
