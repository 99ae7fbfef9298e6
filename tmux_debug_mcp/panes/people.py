"""People in panes: a person watches one, works in it, or types a secret that no agent sees.

A person's tmux client gets a separate session with only the window of that pane, and does not
change the window's size. If the window is split, the pane whose keyboard a person has is zoomed:
tmux passes keys to a window's active pane, and a zoomed one has the window to itself. Until the
person lets go, nothing splits the window or selects another pane there. A person who only watches
sees the whole window.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio

from tmux_debug_mcp.errors import (
    CommandError,
    NotAwaitedError,
    PaneNotFoundError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.vt.sequences import CONTROLS
from tmux_debug_mcp.vt.steps import Keystrokes

from .engine import Engine
from .hidden_input import Readers, check_hidden_input, check_readers, is_shown
from .looking.activity import Awaits, Snapshot
from .looking.state import State
from .pane import Pane
from .place import PaneId
from .sizing import arranging, take_sizes

# What a person sees at the bottom of their terminal, before and after they press C-b.
_HELP = "C-b ? shows the keys"
_KEYS_WATCHING = "C-b d leaves, C-b w takes the keyboard"
_KEYS_WORKING = "C-b d leaves, C-b w returns the keyboard, C-b C-b types C-b"
_LINE = "#{?#{m:person-*,#{client_key_table}},#{@keys},#{@line}}"

MAX_SECRET_BYTES = terminals.MAX_LINE_BYTES


class PersonsSession:
    """A tmux session that shows a pane to a person. Make one with `session_for`.

    Attributes:
        arguments: tmux's arguments, after its path, that attach a terminal to the session.
    """

    def __init__(self, engine: Engine, pane: Pane, name: str, *, is_working: bool) -> None:
        self._engine = engine
        self._pane = pane
        self._name = name
        self._is_working = is_working
        self._shown: tuple[str, str] | None = None
        flags = "ignore-size" if is_working else "ignore-size,active-pane,read-only"
        attach = ("attach-session", "-f", flags, "-t", f"={name}")
        # If a window is larger than their terminal, people see the part around their pane.
        select = ("select-pane", "-t", pane.target)
        self.arguments = ["-u", "-S", str(pane.client.file("tmux")), *attach, ";", *select]

    async def keep_told(self) -> None:
        """Keep the bottom line of the person's terminal up to date, until cancelled.

        When a program in any pane begins to await hidden input, the terminal also rings.
        """
        asking: set[PaneId] | None = None
        with suppress(CommandError, TmuxGoneError):  # the session has ended
            while True:
                states = await self._engine.states()
                asked = {
                    pane.id: pane.name
                    for pane, state in states
                    if state.awaits is Awaits.HIDDEN_INPUT
                }
                await self._show(self._line(dict(states).get(self._pane), asked))
                if asking is not None and asked.keys() - asking:
                    await self._ring()
                asking = set(asked)
                await self._pane.clock.sleep(self._pane.clock.times.person_s)

    async def _show(self, line: str) -> None:
        """Show a line at the bottom of the person's terminal, and the keys after C-b."""
        shown = line, _KEYS_WORKING if self._is_working else _KEYS_WATCHING
        if shown == self._shown:
            return
        self._shown = shown
        await self._pane.client.run(
            *(
                ("set-option", "-t", f"={self._name}:", option, f" {text.replace('#', '##')} ")
                for option, text in zip(("@line", "@keys"), shown, strict=True)
            )
        )

    def _line(self, state: State | None, asked: Mapping[PaneId, str]) -> str:
        # Whoever has one of the window's keyboards has the whole window.
        panes = self._engine.panes_in(self._pane.window)
        holder = next((pane.keyboard.holder for pane in panes if pane.keyboard.holder), None)
        does = f"{holder} has the keyboard" if holder else "watching"
        if self._is_working:
            does = "you have the keyboard"
        facts = [f"{self._pane.name}: {does}"]
        if state and not state.is_running:
            facts.append(str(state))
        if self._pane.id in asked:
            facts.append("awaits hidden input")
        others = ", ".join(name for pane, name in asked.items() if pane != self._pane.id)
        if others:
            facts.append(f"hidden input is awaited in {others}")
        return "; ".join([*facts, _HELP])

    async def _ring(self) -> None:
        [ttys] = await self._pane.client.run(
            ("list-clients", "-t", f"={self._name}", "-F", "#{client_tty}")
        )
        for tty in ttys:
            with suppress(OSError):  # the person has just left
                terminals.ring(tty)

    async def make(self) -> None:
        """Make the session in tmux."""
        target = f"={self._name}:"
        options = {
            "key-table": "person",
            "prefix": "None",
            "status-format[0]": _LINE,
            # Keys that arrive together, as over a slow line, are not a paste.
            "assume-paste-time": "0",
            # This shell runs the `exit` that ends the person's tmux with a status.
            "default-shell": "/bin/sh",
        }
        await self._pane.tmux(
            ("new-session", "-d", "-s", self._name, "-n", "none", "true"),
            # This replaces the window that a new session has.
            ("link-window", "-k", "-s", self._pane.target, "-t", f"={self._name}:0"),
            *(("set-option", "-t", target, name, value) for name, value in options.items()),
        )
        await self._show(self._line(None, {}))


@asynccontextmanager
async def session_for(
    engine: Engine, pane: Pane, person: str | None
) -> AsyncIterator[PersonsSession]:
    """Make a tmux session that shows a pane to a person during the block.

    A named `person` gets the keyboard; with None, the person only watches.

    Raises:
        KeyboardHeldError: Another person has the keyboard, or that of another pane in the window.
        PaneNotFoundError: The pane was killed meanwhile.
    """
    name = f"person-{secrets.token_hex(4)}"
    active_before = None
    if person is not None:
        async with arranging(engine, pane.window):
            pane.keyboard.hand_over(person)
    pane.viewers.add(name)
    try:
        if person is not None:
            active_before = await _zoom(pane)
        if active_before is not None:
            await take_sizes(pane.client, engine.panes_in(pane.window))
        session = PersonsSession(engine, pane, name, is_working=person is not None)
        await session.make()
        if pane not in engine.panes:
            raise PaneNotFoundError(pane.id)
        yield session
    finally:
        pane.viewers.discard(name)
        with anyio.CancelScope(shield=True):
            async with engine.arranging:
                if person is not None:
                    pane.keyboard.take_back()
                with suppress(CommandError, TmuxGoneError):
                    await pane.client.run(("kill-session", "-t", f"={name}"))
                if active_before is not None:
                    await _unzoom(pane, active_before)
        if active_before is not None:
            await take_sizes(pane.client, engine.panes_in(pane.window))


async def _zoom(pane: Pane) -> str | None:
    """Zoom a pane of a split window, and return the pane that was active; None if it is alone."""
    active_pane = ("list-panes", "-t", pane.target, "-f", "#{pane_active}", "-F", "#{pane_id}")
    [panes, [active]] = await pane.tmux(("list-panes", "-t", pane.target), active_pane)
    if len(panes) == 1:
        return None
    resize = ("resize-pane", "-t", pane.target)  # without a size, it ends any zoom
    await pane.tmux(resize, (*resize, "-Z"))
    return active.decode()


async def _unzoom(pane: Pane, active: str) -> None:
    """Undo the zoom of a pane, and make another pane the active one."""
    with suppress(CommandError, TmuxGoneError):  # either pane may be gone
        await pane.client.run(("resize-pane", "-t", pane.target), ("select-pane", "-t", active))


async def type_secret(pane: Pane, secret: str, readers: Readers) -> None:
    """Type a line for those who read hidden input when it was asked for. It reaches only them.

    Raises:
        ToolError: The line can't be typed as it is, or the terminal has shown it.
        NotAwaitedError: Hidden input is no longer awaited.
        OtherReaderError: Another program awaits it.
    """
    if CONTROLS.search(secret):
        raise ToolError(
            "The secret contains a control character, which could end it early and run the rest as "
            "a command. Nothing was typed. Give a single line of text."
        )
    size = len(secret.encode())
    if size > MAX_SECRET_BYTES:
        raise ToolError(
            f"The secret has {size} bytes, but a terminal line holds {MAX_SECRET_BYTES}. Nothing "
            "was typed. Give it to the program in a file."
        )
    await check_hidden_input(pane)
    async with pane.keyboard.lock:
        if pane.terminal.look().awaits is not Awaits.HIDDEN_INPUT:
            raise NotAwaitedError(pane.id)
        modes = terminals.modes(pane.leader.pid)
        if modes and set(modes.special_characters) & set(secret.encode()):
            # This goes on record, so it does not say which one.
            raise ToolError(
                "The secret contains a character that erases, ends or interrupts a line in pane "
                f"'{pane.id}' (see stty -a). Nothing was typed. End the program, run stty sane in "
                "the pane, and start the program again."
            )
        check_readers(pane, readers)
        before = pane.terminal.begin_typing()
        await pane.keyboard.type(Keystrokes(secret, is_paste=False, keys=("Enter",)))
    await _reach_program(pane, before)
    await pane.drain()
    if await is_shown(pane, secret, before.printed_bytes):
        raise ToolError(
            f"The secret was typed, and pane '{pane.id}' showed it: echo was on, or the program "
            "printed it. The pane's log has it now, so change the secret."
        )


async def _reach_program(pane: Pane, before: Snapshot) -> None:
    """Wait until what was typed has reached the program, with its echo, but for 1 s at most.

    On a busy machine, the terminal passes it on some time after tmux has written it. A change of
    modes also wakes the terminal's readers, so after one, output has to follow.
    """
    clock, times = pane.clock, pane.clock.times
    deadline = clock.now() + times.drain_s
    while clock.now() < deadline:
        now = pane.terminal.look().snapshot
        has_run = (now.readers, now.reader_ns) != (before.readers, before.reader_ns)
        if has_run and (now.modes == before.modes or now.printed_bytes > before.printed_bytes):
            return
        await clock.sleep(times.fast_poll_s)
