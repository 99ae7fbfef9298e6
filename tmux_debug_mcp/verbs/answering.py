"""Answers callers of `tmux-debug`: a verb is a call of a tool, audited like any other."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import anyio

from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.sockets.listener import Caller, CallerGoneError, cancel_when_gone, program_of
from tmux_debug_mcp.tools.results import row, status
from tmux_debug_mcp.tools.toolbox import Toolbox

from .answers import DONE, INTERRUPTED, REFUSED, Output, output_of, send
from .following import Followings
from .parsing import HelpWanted, Request, UsageError, parse
from .people import People
from .registry import VERBS

# Verbs that start a program do so in the caller's directory.
_STARTING = (VERBS["create"].tool, VERBS["run"].tool)


class Verbs:
    """Answers verbs.

    Args:
        engine: The engine.
        debug: The tools of `debug`, which the verbs are.
        all_tools: The tools that `call` can call.
        people: Answers the verbs for people.
        followings: Answers `wait --follow`.
    """

    def __init__(
        self,
        engine: Engine,
        debug: Toolbox,
        all_tools: Toolbox,
        people: People,
        followings: Followings,
    ) -> None:
        self._engine = engine
        self._people = people
        self._followings = followings
        self._debug = debug
        self._all_tools = all_tools
        self._schemas = {tool.name: tool.input_schema for tool in all_tools.definitions()}

    async def answer(self, caller: Caller, wish: Mapping[str, Any]) -> None:
        """Answer a command line. A call is cancelled when its caller is gone or hangs up.

        Args:
            caller: Who asks, and gets the answer.
            wish: `words`, the command line, and `cwd`, the caller's directory.

        Raises:
            CallerGoneError: The caller is gone, or its wish makes no sense.
        """
        words, cwd = wish.get("words"), wish.get("cwd")
        if not (isinstance(words, list) and isinstance(cwd, str) and _are_texts(words)):
            raise CallerGoneError
        try:
            request = parse(words, self._schemas)
        except HelpWanted as wanted:
            await send(caller, Output(str(wanted), "", DONE))
            return
        except UsageError as error:
            await send(caller, Output("", f"tmux-debug: {error}\n", REFUSED))
            return
        if request.verb in ("attach", "secret", "replay"):
            await self._people.answer(caller, request, wish)
            return
        known = {pane.id for pane in self._engine.panes}
        output = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_when_gone, caller, tasks.cancel_scope)
            program = program_of(caller.parent_pid)
            if request.follows:
                output = await self._followings.answer(caller, request, program)
            else:
                output = await self._called(request, cwd, program)
            tasks.cancel_scope.cancel()
        if output is None and request.tool in _STARTING and request.verb != "call":
            output = await self._goes_on(request, known)
        if output is not None:
            await send(caller, output)

    async def _goes_on(self, request: Request, known: Collection[str]) -> Output:
        """Return where the command of a cancelled call goes on.

        Args:
            request: What the call asked for.
            known: The panes that were there before it. Another call with the same command may
                have made a pane meanwhile; then that is named, too.
        """
        given = request.arguments
        lines = []
        for pane in self._engine.panes:
            if pane.id not in known and pane.command == given["command"]:
                advice = f"tmux-debug kill {pane.id} ends it"
                lines.append(status(pane, await pane.state(), "no longer waited for", advice))
            elif given.get("pane_id") in (pane.id, pane.name):
                lines.append(status(pane, await pane.state(), "no longer waited for"))
        return Output("", "".join(f"{line}\n" for line in lines), INTERRUPTED)

    async def show_panes(self, caller: Caller) -> None:
        """Tell a caller what the panes are, which is not a call.

        Raises:
            CallerGoneError: The caller is gone.
        """
        rows = [row(pane, await pane.state()) for pane in self._engine.panes]
        await caller.send({"panes": rows})

    async def _called(self, request: Request, cwd: str, program: str) -> Output:
        toolbox = self._all_tools if request.verb == "call" else self._debug
        arguments = _in_directory(request, cwd)
        result = await toolbox.call(request.tool, arguments, _report_nothing, program)
        return output_of(request, result)


async def _report_nothing(_seconds: float) -> None:
    """Report no progress: a shell waits as long as it takes."""


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _in_directory(request: Request, cwd: str) -> dict[str, Any]:
    """Return the arguments, with the caller's directory where a program is started."""
    arguments = dict(request.arguments)
    is_in_pane = "pane_id" in arguments
    if request.verb != "call" and request.tool in _STARTING and not is_in_pane:
        arguments["cwd"] = os.path.join(cwd, arguments.get("cwd", ""))
    return arguments
