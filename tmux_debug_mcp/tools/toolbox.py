"""All tools of a server, and the one place that all calls go through.

It checks a call, puts it on record, answers it and, if it takes long, reports progress.
"""

import base64
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio
import mcp_types as types

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import OutOfFilesError, StorageError, ToolError, UnknownToolError
from tmux_debug_mcp.linux.processes import OUT_OF_FILES
from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.creation import Origin, calling
from tmux_debug_mcp.panes.engine import Engine

from .arguments import ArgumentsParser, is_secret
from .records import Arguments, Call, Records
from .toolset import Answer, Tool, Toolset

Report = Callable[[float], Awaitable[None]]


class _Entry(NamedTuple):
    """A tool with its toolset, and what the toolset's handlers work with."""

    tool: Tool[Any]
    toolset: Toolset[Any]
    opened: Any


class Toolbox:
    """The tools of the chosen toolsets.

    Attributes:
        running: The number of running calls.
    """

    def __init__(self, toolsets: Sequence[Toolset[Any]], engine: Engine, records: Records) -> None:
        self.running = 0
        self._engine = engine
        self._records = records
        self._opened = [(toolset, toolset.open(engine)) for toolset in toolsets]
        self._entries = {
            tool.name: _Entry(tool, toolset, opened)
            for toolset, opened in self._opened
            for tool in toolset.tools
        }

    def definitions(self) -> list[types.Tool]:
        """Return the tools as tools/list shows them.

        A tool that could only refuse is left out. Calling it still returns the reason.
        """
        return [tool.definition() for tool in self._offered()]

    def _offered(self) -> list[Tool[Any]]:
        tools = [entry.tool for entry in self._entries.values()]
        return [tool for tool in tools if tool.is_offered(self._engine.settings)]

    @property
    def instructions(self) -> str:
        """What the server tells clients about the tools."""
        settings = self._engine.settings
        return "\n\n".join(toolset.instructions_for(settings) for toolset, _ in self._opened)

    def resource_handlers(self) -> dict[str, Any]:
        """Return handlers of one client's requests for resources, by the SDK's names; often none.

        A client's subscriptions are its own, and end with its connection.
        """
        handlers: dict[str, Any] = {}
        for toolset, opened in self._opened:
            if toolset.resources:
                handlers |= toolset.resources(opened)
        return handlers

    async def call(
        self,
        name: str,
        arguments: Arguments,
        report: Report,
        session: CallerSession,
        caller: str = "",
        origin: Origin | None = None,
    ) -> types.CallToolResult:
        """Call a tool.

        While a long call runs, `report` is called every 5 s with the seconds so far. What the
        answer shows is noted in the session of the caller. For the record, `caller` is who calls;
        "" for the client that started the server. New panes inherit from the origin.

        Return the answer or, with `is_error`, a sentence on how to call better. A bug of ours is
        raised, and its traceback printed to standard error.
        """
        self.running += 1
        calling.set(origin)
        try:
            answer = await self._records.answered(
                Call(name, arguments, caller, self._parser(name)),
                partial(self._answer, name, arguments, report, session),
                partial(self._text_for, name, arguments),
            )
        except ToolError as error:
            text = self._text_for(name, arguments, error)
            return types.CallToolResult(content=[_text(text)], is_error=True)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            raise
        finally:
            self.running -= 1
        for pane, shown in answer.shown.items():
            session.note(pane, shown)
        return _result(answer)

    async def _answer(
        self, name: str, arguments: Arguments, report: Report, session: CallerSession
    ) -> Answer:
        entry = self._entries.get(name)
        if entry is None:
            raise UnknownToolError(name, ", ".join(tool.name for tool in self._offered()))
        tool, _, opened = entry
        try:
            given = tool.parser.parse(arguments)
            if not tool.may_take_long:
                return await tool.handler(opened, session, **given)
            async with _reporting(self._engine.clock, report):
                return await tool.handler(opened, session, **given)
        except Exception as error:
            if _is_out_of_files(error):
                raise OutOfFilesError from error
            if isinstance(error, OSError) and error.filename:
                raise StorageError(str(error.filename), str(error.strerror)) from error
            raise

    def _parser(self, name: str) -> ArgumentsParser:
        """Return what checks the arguments of a tool; one that does not exist takes none."""
        entry = self._entries.get(name)
        return entry.tool.parser if entry else ArgumentsParser(name, [])

    def _text_for(self, name: str, arguments: Arguments, error: ToolError) -> str:
        if is_secret(arguments):
            error = error.without_arguments()
        entry = self._entries.get(name)
        if entry is None:
            return str(error)
        names = self._engine.names_for(arguments["pane_id"]) if "pane_id" in arguments else {}
        return error.text_for(names, entry.toolset.words, arguments)


def _result(answer: Answer) -> types.CallToolResult:
    meta = {key: value for key, value in answer.meta.items() if value is not None}
    content: list[types.ContentBlock] = [_text(block) for block in answer.blocks]
    if answer.image is not None:
        data = base64.b64encode(answer.image).decode()
        content.append(types.ImageContent(type="image", data=data, mime_type="image/png"))
    if not meta:
        return types.CallToolResult(content=content)
    return types.CallToolResult(content=content, _meta=meta)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _is_out_of_files(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_out_of_files, error.exceptions))
    if isinstance(error, StorageError) and error.__cause__:
        return _is_out_of_files(error.__cause__)
    return isinstance(error, OSError) and error.errno in OUT_OF_FILES


@asynccontextmanager
async def _reporting(clock: Clock, report: Report) -> AsyncIterator[None]:
    """Report progress while the block runs. An exception of the block is raised unwrapped."""
    raised: Exception | None = None
    begin = clock.now()

    async def report_on() -> None:
        while True:
            await clock.sleep(clock.times.progress_s)
            await report(round(clock.now() - begin))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report_on)
        try:
            yield
        except Exception as error:  # noqa: BLE001  it is raised again, outside of the group
            raised = error
        tasks.cancel_scope.cancel()
    if raised:
        raise raised
