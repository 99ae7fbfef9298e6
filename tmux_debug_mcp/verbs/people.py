"""The verbs for people: `attach`, to watch a pane or to work in it, `secret`, and `replay`."""

from collections.abc import Mapping
from typing import Any

from tmux_debug_mcp.errors import ArgumentError, ToolError
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.people import check_hidden_input, session_for, type_secret
from tmux_debug_mcp.sockets.listener import Caller, CallerGoneError
from tmux_debug_mcp.tools.records import Call, Records
from tmux_debug_mcp.tools.toolset import Answer
from tmux_debug_mcp.vt.printable import plain_name

from .answers import DONE, Output, refused, send
from .parsing import Request, in_verbs
from .registry import VERBS


async def answer(
    engine: Engine, records: Records, caller: Caller, request: Request, wish: Mapping[str, Any]
) -> None:
    """Answer `attach`, `secret` or `replay`, and put it on record with the `person` of the wish."""
    person = wish.get("person")
    if not isinstance(person, str):
        raise CallerGoneError
    person = plain_name(person)
    target = request.arguments["pane_id"]

    async def served() -> Answer:
        pane = await _find(engine, target)
        if request.verb == "secret":
            await _type_secret(caller, pane)
        elif request.verb == "replay":
            await _show_log(caller, pane)
        else:
            writer = person if request.writes else None
            async with session_for(engine, pane, writer) as arguments:
                await caller.send({"attach": [engine.settings.tmux, *arguments]})
                await caller.wait_until_gone()
        return Answer([], pane_id=pane.id)

    arguments = {"pane_id": target, "write": request.writes or None}
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        await records.answered(Call(request.verb, given, person), served)
    except ToolError as error:
        await send(caller, refused(in_verbs(str(error), VERBS[request.verb])))


async def _find(engine: Engine, target: str | None) -> Pane:
    """Return the pane of a target, without one the only pane."""
    if target is not None:
        return await engine.find(target)
    if len(engine.panes) == 1:
        return engine.panes[0]
    names = ", ".join(pane.name for pane in engine.panes) or "none"
    raise ArgumentError(f"Give the pane. There is: {names}.")


async def _type_secret(caller: Caller, pane: Pane) -> None:
    await check_hidden_input(pane)
    foreground = (await pane.state()).foreground or "the program"
    await caller.send({"ask": f"Secret for {foreground} in pane '{pane.name}': "})
    secret = (await caller.message()).get("secret")
    if not isinstance(secret, str):
        raise CallerGoneError
    await type_secret(pane, secret)
    await send(caller, Output(f"Typed into pane '{pane.id}'.\n", "", DONE))


async def _show_log(caller: Caller, pane: Pane) -> None:
    """Tell the caller where the log of a pane is; it reads the log itself."""
    await pane.ensure_log_writer()
    pane.log.note_growth()
    facts = {
        "id": pane.id,
        "name": pane.name,
        "path": pane.log.writable,
        "timing": pane.log.timing.text(),
    }
    await caller.send({"log": facts})
    # The log must stay open until the caller has opened it.
    await caller.wait_until_gone()
