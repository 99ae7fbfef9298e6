"""Answers callers of `tmux-debug`: a verb is a call of a tool, audited like any other."""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import anyio

from tmux_debug_mcp.errors import ArgumentError, ToolError
from tmux_debug_mcp.panes.caller_session import CallerSession, PaneView
from tmux_debug_mcp.panes.creation import Origin
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.sockets.choosing import MAKES
from tmux_debug_mcp.sockets.listener import (
    Caller,
    CallerGoneError,
    cancel_when_gone,
    environment_in,
    program_of,
)
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.results import status
from tmux_debug_mcp.tools.toolbox import Toolbox

from . import attaching, following
from .parsing import HelpWanted, UsageError
from .printing import DONE, INTERRUPTED, Output, output_of, printed, refused, send
from .registry import VERBS, Prints
from .requests import Request, check_arguments, in_verbs, parse
from .whole_output import send_but_last

# So many shells and scripts are remembered, those that called last.
_MAX_SESSIONS = 32


class Verbs:
    """Answers verbs, which are tools of `debug`; `call` can call those of `all_tools`."""

    def __init__(
        self, engine: Engine, records: Records, debug: Toolbox, all_tools: Toolbox
    ) -> None:
        self._engine = engine
        self._records = records
        self._debug = debug
        self._all_tools = all_tools
        self._schemas = {tool.name: tool.input_schema for tool in all_tools.definitions()}
        self._sessions: dict[str, CallerSession] = {}

    async def answer(self, caller: Caller, wish: Mapping[str, Any]) -> None:
        """Answer a command line. A call is cancelled when its caller is gone or hangs up.

        In the wish, `words` are the command line, `cwd` is the caller's directory, `environment`
        its environment if the verb makes panes, and `terminal` and `out_terminal` say whether its
        standard error and its standard output are terminals.
        """
        words, cwd = wish.get("words"), wish.get("cwd")
        if not (isinstance(words, list) and isinstance(cwd, str)):
            raise CallerGoneError
        if not all(isinstance(word, str) for word in words):
            raise CallerGoneError
        try:
            request = parse(words, self._schemas)
        except HelpWanted as wanted:
            await send(caller, Output(str(wanted), "", DONE))
            return
        except UsageError as error:
            await send(caller, refused(str(error)))
            return
        if wish.get("terminal") and caller.is_in_pane and request.prints is Prints.ALL:
            request = replace(request, prints=Prints.ENDS)
        if wish.get("out_terminal") or request.prints is Prints.STATUS:
            request = replace(request, is_for_people=True)
        if request.verb.asks_person:
            await attaching.answer(self._engine, self._records, caller, request, wish)
        elif request.verb.names_tool and not request.tool:
            await send(caller, Output(self._tools(), "", DONE))
        else:
            await self._call(caller, request, wish)

    async def _call(self, caller: Caller, request: Request, wish: Mapping[str, Any]) -> None:
        """Call the requested tool, and send what it returns."""
        session = self._session_of(caller)
        origin = None
        if request.verb.makes_panes:
            origin = Origin(wish["cwd"], self._engine.settings.inherited(environment_in(wish)))
        is_secret = "secret" in request.arguments and not request.verb.names_tool
        try:
            if request.verb is VERBS["restart"]:
                request, origin = await self._restarting(request, caller, session)
            elif is_secret:
                request = await self._with_secret(request, caller)
        except ToolError as error:
            # An argument may be the secret, in the wrong place.
            told = error.without_arguments() if is_secret else error
            await send(caller, refused(in_verbs(str(told), request)))
            return
        known = {pane.id for pane in self._engine.panes}
        output = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_when_gone, caller, tasks.cancel_scope)
            program = program_of(caller.parent_pid)
            if request.follows:
                output = await following.answer(
                    self._engine, self._records, caller, request, program
                )
            else:
                toolbox = self._all_tools if request.verb.names_tool else self._debug
                arguments = dict(request.arguments)
                if request.verb.need == MAKES and "pane_id" not in arguments:
                    # So that the record says where it runs.
                    arguments["cwd"] = os.path.join(wish["cwd"], arguments.get("cwd", ""))
                result = await toolbox.call(
                    request.tool, arguments, _report_nothing, session, program, origin
                )
                last = await send_but_last(self._engine, caller, request, result.meta or {})
                output = output_of(request, result, last)
            tasks.cancel_scope.cancel()
        if output is None and request.verb.says_what_runs and not request.follows:
            output = await self._goes_on(request, known, session)
        if output is not None:
            await send(caller, output)

    def _session_of(self, caller: Caller) -> CallerSession:
        """Return the session of the shell or script that called `tmux-debug`.

        If that is not known, it is a new one.
        """
        script = caller.script
        session = self._sessions.pop(script, None) or CallerSession(self._engine.clock.now())
        if script:
            self._sessions[script] = session
        for oldest in list(self._sessions)[:-_MAX_SESSIONS]:
            del self._sessions[oldest]
        return session

    async def _with_secret(self, request: Request, caller: Caller) -> Request:
        """Return a request to type a secret, which the caller gives now.

        It is not among its words, which other users can read.

        Raises:
            ToolError: There is no such pane.
        """
        pane = await self._engine.find(request.arguments["pane_id"])
        secret = await attaching.secret_of(caller, f"Secret for pane '{pane.name}': ")
        keys = {"keys": f"{secret}\n", "literal": True}
        return replace(request, arguments={**request.arguments, **keys})

    async def _restarting(
        self, request: Request, caller: Caller, session: CallerSession
    ) -> tuple[Request, Origin]:
        """End a pane, and return the request that makes it again, from where it was made.

        Raises:
            ToolError: There is no such pane, it was not made by a command, or it can't be made
                again. Then it is left as it is.
        """
        given = dict(request.arguments)
        named = given.pop("pane_id")
        pane = await self._engine.find(named)
        made = self._as_made(pane, named) | given
        create = VERBS["create"]
        check_arguments(create, made, made["cwd"])
        program = program_of(caller.parent_pid)
        kill, its_id = VERBS["kill"].tool, {"pane_id": pane.id}
        killed = await self._debug.call(kill, its_id, _report_nothing, session, program)
        if killed.is_error:
            raise ToolError(
                " ".join(block.text for block in killed.content if block.type == "text")
            )
        origin = Origin(made["cwd"], pane.made_by.inherited)
        return replace(request, verb=create, tool=create.tool, arguments=made), origin

    def _as_made(self, pane: Pane, named: str) -> dict[str, Any]:
        """Return the arguments of `create` that make a pane, as the call named it, as it is.

        Raises:
            ArgumentError: It was not made by a command, or its directory is gone.
        """
        again, cwd = pane.made_by, str(pane.made_by.cwd)
        if again.program:
            raise ArgumentError(
                f"Pane '{named}' was not created from a command. Restart its program in its shell."
            )
        if not os.path.isdir(cwd):
            raise ArgumentError(f"The directory of pane '{named}' is gone: {cwd}. Create it again.")
        size = f"{pane.log.columns}x{pane.log.rows}"
        made: dict[str, Any] = {"command": again.command, "cwd": cwd, "size": size}
        given = {"env": dict(again.env), "name": again.name}
        return made | {name: value for name, value in given.items() if value}

    def _tools(self) -> str:
        """Return the tools that `call` can call, a line each: the name, and what it takes."""
        lines = []
        for name, schema in self._schemas.items():
            required = schema.get("required", [])
            words = [
                *required,
                *(f"[{name}]" for name in schema["properties"] if name not in required),
            ]
            lines.append(" ".join([name, *words]) + "\n")
        return "".join(lines)

    async def _goes_on(
        self, request: Request, known: Collection[str], session: CallerSession
    ) -> Output:
        """Return where the program of a cancelled call keeps running, and how to end it.

        `known` are the panes from before the call. If another call with the same command has made a
        pane since, that is named, too.
        """
        given = request.arguments
        named = given.get("pane_id", [])
        names = [named] if isinstance(named, str) else named
        lines: list[str] = []
        for pane in self._engine.panes:
            is_named = pane.id in names or pane.name in names
            if not is_named and (pane.id in known or pane.command != given.get("command")):
                continue
            state = await pane.state()
            ends = f"tmux-debug kill {pane.id} ends it"
            if request.verb is VERBS["run"] and is_named:  # not the shell
                ends = f"tmux-debug send {pane.id} C-c interrupts it"
            advice = [ends] if state.is_running else []
            shown = PaneView(run=session.news(pane))
            lines.append(status(pane, state, shown, "wait cancelled", *advice))
            session.note(pane, shown)
        return printed(request, "", lines, INTERRUPTED)


async def _report_nothing(_seconds: float) -> None:
    """Report no progress: a shell waits as long as it takes."""
