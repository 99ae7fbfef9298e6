"""The verbs for people: `attach`, to watch a pane or to work in it, `secret`, and `replay`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tmux_debug_mcp.errors import ArgumentError, ToolError
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.people import check_hidden_input, session_for, type_secret
from tmux_debug_mcp.sockets.listener import Caller, CallerGoneError
from tmux_debug_mcp.tools.records import Call, Records
from tmux_debug_mcp.tools.toolset import Answer
from tmux_debug_mcp.vt.printable import plain_name

from .answers import DONE, REFUSED, Output, in_verbs, send
from .parsing import Request


class People:
    """Answers people.

    Args:
        engine: The engine.
        records: Puts on record what people do.
    """

    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def answer(self, caller: Caller, request: Request, wish: Mapping[str, Any]) -> None:
        """Answer `attach`, `secret` or `replay`.

        Args:
            caller: Who asks.
            request: What is asked for.
            wish: What the caller said first: `person` is who they are.

        Raises:
            CallerGoneError: The caller is gone, or what it says makes no sense.
        """
        person = wish.get("person")
        if not isinstance(person, str):
            raise CallerGoneError
        person = plain_name(person)
        arguments = {"pane_id": request.arguments["pane_id"], "write": request.writes or None}
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            await self._records.answered(
                Call(request.verb, given, person), partial(self._answer, caller, request, person)
            )
        except ToolError as error:
            await send(caller, Output("", f"tmux-debug: {in_verbs(str(error))}\n", REFUSED))

    async def _answer(self, caller: Caller, request: Request, person: str) -> Answer:
        pane = await self._pane(request.arguments["pane_id"])
        if request.verb == "secret":
            await self._type_secret(caller, pane)
        elif request.verb == "replay":
            await self._show_log(caller, pane)
        elif request.writes:
            await self._attach(caller, pane, person)
        else:
            await self._attach(caller, pane, None)
        return Answer([], pane_id=pane.id)

    async def _pane(self, target: str | None) -> Pane:
        """Return the pane of a target, without one the only pane.

        Raises:
            ArgumentError: There is not exactly one.
            PaneNotFoundError: There is none of that id or name.
        """
        if target is not None:
            return await self._engine.find(target)
        panes = self._engine.panes
        if len(panes) == 1:
            return panes[0]
        names = ", ".join(pane.name for pane in panes) or "none"
        raise ArgumentError(f"Give the pane. There is: {names}.")

    async def _attach(self, caller: Caller, pane: Pane, person: str | None) -> None:
        async with session_for(self._engine, pane, person) as arguments:
            await caller.send({"attach": [self._engine.settings.tmux, *arguments]})
            await caller.wait_until_gone()

    async def _type_secret(self, caller: Caller, pane: Pane) -> None:
        await check_hidden_input(pane)
        foreground = (await pane.state()).foreground or "the program"
        await caller.send({"ask": f"Secret for {foreground} in pane '{pane.name}': "})
        secret = (await caller.message()).get("secret")
        if not isinstance(secret, str):
            raise CallerGoneError
        await type_secret(pane, secret)
        await send(caller, Output(f"Typed into pane '{pane.id}'.\n", "", DONE))

    async def _show_log(self, caller: Caller, pane: Pane) -> None:
        """Tell the caller where the log of a pane is; it reads the log itself."""
        await pane.ensure_log_writer()
        pane.log.note_growth()
        facts = {
            "id": pane.id,
            "name": pane.name,
            "command": pane.command,
            "path": pane.log.writable,
            "timing": pane.log.timing.text(),
        }
        await caller.send({"log": facts})
        # The log must stay open until the caller has opened it.
        await caller.wait_until_gone()
