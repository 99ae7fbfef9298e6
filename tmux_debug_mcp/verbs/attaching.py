"""The verbs for people: `attach`, to watch a pane or to work in it, `secret`, and `replay`."""

import os
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from tmux_debug_mcp.errors import (
    ArgumentError,
    KeyboardHeldError,
    PaneNotFoundError,
    ToolError,
)
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.hidden_input import check_hidden_input
from tmux_debug_mcp.panes.looking.activity import Awaits
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.people import PersonsSession, session_for, type_secret
from tmux_debug_mcp.sockets.listener import Caller, CallerGoneError
from tmux_debug_mcp.tools.records import Call, Records
from tmux_debug_mcp.tools.results import row_for_people
from tmux_debug_mcp.tools.toolset import Answer
from tmux_debug_mcp.vt.printable import plain_name
from tmux_debug_mcp.vt.sizes import Size, size_of

from .printing import DONE, Output, refused, send
from .registry import VERBS
from .requests import Request, in_verbs


async def answer(
    engine: Engine, records: Records, caller: Caller, request: Request, wish: Mapping[str, Any]
) -> None:
    """Answer `attach`, `secret` or `replay`; put all but the last on record, with their `person`.

    If `chooses` is true in the wish, as for `attach` and `secret` in a terminal, a person who has
    not named a pane is asked for one.
    """
    person = wish.get("person")
    if not isinstance(person, str):
        raise CallerGoneError
    is_at_terminal = wish.get("terminal") is True and not caller.is_in_pane
    is_kept_out = engine.settings.only_people_type_secrets and caller.is_in_pane
    if is_kept_out and request.verb is VERBS["attach"]:
        await send(caller, refused("Only a person at their own terminal may attach here."))
        return
    visit = _Attachment(
        engine,
        records,
        caller,
        request,
        plain_name(person),
        _size_in(wish),
        is_at_terminal=is_at_terminal,
    )
    try:
        await visit.choose_pane(can_ask=wish.get("chooses") is True)
        match request.verb.name:
            case "secret":
                await visit.on_record(visit.type_secret)
            case "replay":
                await visit.show_log()
            case _:
                await visit.attach()
    except ToolError as error:
        await send(caller, refused(in_verbs(visit.text_for(error), request)))


async def secret_of(caller: Caller, question: str) -> str:
    """Return the secret that a caller types when asked, or has in its standard input.

    Raises:
        CallerGoneError: It gives none.
    """
    await caller.send({"ask": question})
    secret = (await caller.message()).get("secret")
    if not isinstance(secret, str):
        raise CallerGoneError
    return secret


def _size_in(message: Mapping[str, Any]) -> Size | None:
    """Return the size that a person's terminal has for a pane; None if the message gives none."""
    size = message.get("size")
    return size_of(size) if isinstance(size, str) else None


class _Attachment:
    """A person at the caller's terminal, and the pane that they want."""

    def __init__(
        self,
        engine: Engine,
        records: Records,
        caller: Caller,
        request: Request,
        person: str,
        size: Size | None,
        *,
        is_at_terminal: bool,
    ) -> None:
        self._engine = engine
        self._records = records
        self._caller = caller
        self._request = request
        self._person = person
        self._size = size
        self._is_at_terminal = is_at_terminal
        self._target = request.arguments["pane_id"]

    @property
    def _named(self) -> str:
        """The pane as the person named it, or its id."""
        return str(self._request.arguments["pane_id"] or self._target)

    def text_for(self, error: ToolError) -> str:
        """Return the text of an error, which names the pane as the person did."""
        return error.text_for(self._engine.names_for(self._named))

    async def choose_pane(self, *, can_ask: bool) -> None:
        """If no pane is named, take the only one that can be meant, or ask for one.

        `secret` can mean those that await hidden input, `attach` those that run, if there are any.
        """
        if self._target is not None:
            return
        states = await self._engine.listed()
        if self._request.verb is VERBS["secret"]:
            states = [(pane, now) for pane, now in states if now.awaits is Awaits.HIDDEN_INPUT]
            if not states:
                raise ArgumentError("No pane awaits hidden input, so there is nothing to type.")
        elif self._request.verb is VERBS["attach"]:
            states = [(pane, now) for pane, now in states if now.is_running] or states
        if len(states) == 1:
            self._target = states[0][0].id
        elif states and can_ask:
            await self._caller.send({"choose": [row_for_people(*listed) for listed in states]})
            self._target = str((await self._caller.message()).get("pane"))
        else:
            names = ", ".join(pane.name for pane, _ in states) or "none"
            raise ArgumentError(f"Choose a pane: {names}.")

    async def on_record(
        self, act: Callable[[Pane], Awaitable[None]], *, writes: bool = False
    ) -> None:
        """Do something with the pane, and put it on record."""

        async def served() -> Answer:
            pane = await self._engine.find(self._target)
            self._target = pane.id  # even if another one gets its name
            await act(pane)
            return Answer([], pane_id=pane.id)

        arguments = {"pane_id": self._target} | ({"write": True} if writes else {})
        call = Call(self._request.verb.name, arguments, self._person)
        await self._records.answered(call, served, self.text_for)

    async def attach(self) -> None:
        """Show the pane until the person leaves. Each time that they watch or work goes on record.

        If they want the keyboard while they watch, and somebody else has it, they keep watching.
        """
        shown: Pane | None = None
        writes = self._request.writes
        is_leaving = False

        async def show(pane: Pane) -> None:
            nonlocal shown, is_leaving
            person = self._person if writes else None
            async with session_for(self._engine, pane, person, self._size) as session:
                shown = pane
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(session.keep_told)
                    is_leaving = await self._look_at(session)
                    tasks.cancel_scope.cancel()

        while not is_leaving:
            try:
                await self.on_record(show, writes=writes)
                writes = not writes
            except KeyboardHeldError:
                if shown is None:
                    raise
                writes = False
            except PaneNotFoundError:
                if shown is None:
                    raise
                is_leaving = True
        if shown is not None:
            await send(self._caller, Output(f"{await self._left(shown)}\n", "", DONE))

    async def _look_at(self, session: PersonsSession) -> bool:
        """Show a session until the person leaves, or takes the keyboard or gives it back.

        Return whether they leave.

        Raises:
            PaneNotFoundError: The pane was killed.
        """
        wish = ""
        while True:
            arguments = await session.arguments(scrolls=wish == "scroll")
            await self._caller.send({"attach": [self._engine.settings.tmux, *arguments]})
            wish = ""
            while not wish:
                try:
                    message = await self._caller.message()
                except CallerGoneError:
                    return True
                wish = str(message.get("wish", ""))
                self._size = _size_in(message) or self._size
                if self._size and not wish:
                    await session.fit(self._size)
            if wish == "return" and session.shows_end:
                return True
            if wish == "switch":
                return False

    async def _left(self, pane: Pane) -> str:
        """Return what to tell a person who has left a pane."""
        if pane not in self._engine.panes:
            return f"'{pane.name}' was killed."
        state = await pane.state()
        if state.is_running:
            again = f"{own_command()} --server {os.getpid()} attach {shlex.quote(pane.name)}"
            return f"'{pane.name}' keeps running. To see it again: {again}"
        return f"'{pane.name}' {state}."

    async def type_secret(self, pane: Pane) -> None:
        """Ask for a secret, and type it into the pane."""
        if self._engine.settings.only_people_type_secrets and not self._is_at_terminal:
            raise ArgumentError("Only a person at their own terminal may type secrets here.")
        readers = await check_hidden_input(pane)
        foreground = (await pane.state()).foreground or "the program"
        question = f"Secret for {foreground} in pane '{pane.name}': "
        secret = await secret_of(self._caller, question)
        self._records.keep_out([secret])
        await type_secret(pane, secret, readers)
        # What is shown later can't be told: nobody waits for it.
        typed = (
            f"Typed into pane '{self._named}'. Only its output so far was checked for the secret."
        )
        await send(self._caller, Output(f"{typed}\n", "", DONE))

    async def show_log(self) -> None:
        """Tell the caller where the log of the pane is; it reads the log itself."""
        pane = await self._engine.find(self._target)
        await pane.ensure_log_writer()
        pane.log.note_growth()
        facts = {
            "id": pane.id,
            "name": pane.name,
            "path": pane.log.writable,
            "timing": pane.log.timing.text(),
        }
        await self._caller.send({"log": facts})
        # The log must stay open until the caller has opened it.
        await self._caller.wait_until_gone()
