"""People in panes: a person watches a pane, works in it, or types a secret that no agent sees.

A person's tmux client gets a separate session with only the window of that pane. With the keyboard,
the pane has the size of their terminal. If the window is split, it keeps its size, and the pane is
zoomed: tmux passes keys to a window's active pane, and a zoomed pane has the window to itself.
Until the person lets go, nothing splits the window or selects another pane there. A person who only
watches sees the whole window, or if it is larger, the part around the cursor.

To scroll back, they get a second session with a copy of the pane's text in tmux' copy mode. The
pane itself goes on for all others. A program that has ended has no cursor, and tmux would show the
top of a larger window: so its text is shown to its end, in the same way.
"""

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

from tmux_debug_mcp.errors import (
    CommandError,
    NotAwaitedError,
    PaneLostError,
    PaneNotFoundError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.vt.sequences import CONTROLS
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS, Size
from tmux_debug_mcp.vt.steps import Keystrokes

from .engine import Engine
from .hidden_input import Readers, check_hidden_input, check_readers, is_shown
from .looking.activity import Awaits, Snapshot
from .looking.state import State
from .pane import Pane
from .place import PaneId
from .sizing import arranging, set_size, take_sizes

# What a person sees at the bottom of their terminal, before and after they press C-b.
_HELP = "C-b ? shows the keys"
_KEYS_WATCHING = "C-b d leaves, C-b w takes the keyboard, C-b PgUp scrolls"
_KEYS_WORKING = "C-b d leaves, C-b w returns the keyboard, C-b PgUp scrolls, C-b C-b types C-b"
_LINE = "#{?#{m:person-*,#{client_key_table}},#{@keys},#{@line}}"

MAX_SECRET_BYTES = terminals.MAX_LINE_BYTES


class PersonsSession:
    """A tmux session that shows a pane to a person. `session_for` makes it.

    Attributes:
        shows_end: They see the text of a program that has ended.
    """

    def __init__(self, engine: Engine, pane: Pane, size: Size | None, *, is_working: bool) -> None:
        self._engine = engine
        self._pane = pane
        self._name = f"person-{secrets.token_hex(4)}"
        self._copy = f"{self._name}-copy"
        self._size = size
        self._is_working = is_working
        self._shown = ""
        self.shows_end = False

    @property
    def _is_alone(self) -> bool:
        return len(self._engine.panes_in(self._pane.window)) == 1

    @property
    def _keys(self) -> str:
        return _KEYS_WORKING if self._is_working else _KEYS_WATCHING

    async def arguments(self, *, scrolls: bool) -> list[str]:
        """Return tmux's arguments, after its path, that attach a terminal to what is shown.

        That is the pane; a copy of its text if the person `scrolls`, or if its program has ended.

        Raises:
            PaneNotFoundError: The pane was killed meanwhile.
        """
        if self._pane not in self._engine.panes:
            raise PaneNotFoundError(self._pane.id)
        state = await self._pane.state()
        self.shows_end = self._is_alone and not state.is_running
        attach = ["-u", "-S", str(self._pane.client.file("tmux")), "attach-session"]
        if scrolls or self.shows_end:
            await self._copy_text(state)
            return [*attach, "-t", f"={self._copy}"]
        flags = "ignore-size" if self._is_working else "ignore-size,active-pane,read-only"
        # If a window is larger than their terminal, people see the part around their pane.
        select = ("select-pane", "-t", self._pane.target)
        return [*attach, "-f", flags, "-t", f"={self._name}", ";", *select]

    async def _copy_text(self, state: State) -> None:
        """Show a copy of the pane's text, which ends where the pane is, or a page above that."""
        target = f"={self._copy}:"
        if self._copy not in self._pane.viewers:
            columns, rows = self._size or (COLUMNS, ROWS)
            size = ("-x", str(columns), "-y", str(rows))
            returns = f"detach-client -s ={self._copy} -E 'exit 6'"
            await self._pane.tmux(
                ("new-session", "-d", "-s", self._copy, "-n", "copy", *size, "true"),
                *_settings(target, "person"),
                ("set-hook", "-w", "-t", target, "pane-mode-changed", returns),
            )
            self._pane.viewers.add(self._copy)
        copy = ("copy-mode", "-s", self._pane.target, "-t", target)
        does, ends = (str(state), "leaves") if self.shows_end else ("scrolled back", "returns")
        await self._pane.tmux(
            ("copy-mode", "-q", "-t", target),
            copy if self.shows_end else (*copy, "-eu"),
            *_at_bottom(
                target, f"{self._pane.name}: {does}; q {ends}, PgUp and PgDn scroll", self._keys
            ),
        )

    async def fit(self, size: Size) -> None:
        """Take the size that their terminal has for a pane. With the keyboard, the pane has it."""
        self._size = size
        async with self._engine.arranging:
            if self._is_working and self._is_alone and not self._pane.has_exited:
                await set_size(self._pane, *size)

    async def keep_told(self) -> None:
        """Keep the bottom line of the person's terminal up to date, until cancelled.

        When a program in any pane begins to await hidden input, the terminal also rings. When the
        pane's own ends, they are shown its end.
        """
        asking: set[PaneId] | None = None
        with suppress(CommandError, TmuxGoneError):  # the session has ended
            while True:
                states = await self._engine.states()
                state = dict(states).get(self._pane)
                asked = {
                    pane.id: pane.name
                    for pane, state in states
                    if state.awaits is Awaits.HIDDEN_INPUT
                }
                await self._show(self._line(state, asked))
                if asking is not None and asked.keys() - asking:
                    await self._ring()
                has_ended = state is not None and not state.is_running and self._is_alone
                if has_ended and not self.shows_end:
                    to_end = ("detach-client", "-s", f"={self._name}", "-E", "exit 5")
                    await self._pane.client.run(to_end)
                asking = set(asked)
                await self._pane.clock.sleep(self._pane.clock.times.person_s)

    async def _show(self, line: str) -> None:
        """Show a line at the bottom of the person's terminal, and the keys after C-b."""
        if line != self._shown:
            self._shown = line
            await self._pane.client.run(*_at_bottom(f"={self._name}:", line, self._keys))

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
        self._pane.viewers.add(self._name)
        await self._pane.tmux(
            ("new-session", "-d", "-s", self._name, "-n", "none", "true"),
            # This replaces the window that a new session has.
            ("link-window", "-k", "-s", self._pane.target, "-t", f"={self._name}:0"),
            *_settings(target, "person" if self._is_working else "watcher"),
        )
        await self._show(self._line(None, {}))

    async def close(self) -> None:
        """End what is left of it in tmux."""
        for name in {self._name, self._copy} & self._pane.viewers:
            self._pane.viewers.discard(name)
            with suppress(CommandError, TmuxGoneError):
                await self._pane.client.run(("kill-session", "-t", f"={name}"))


def _settings(target: str, keys: str) -> Iterator[Sequence[str]]:
    """Yield the commands that set up a session for a person, who has this table of keys."""
    options = {
        "key-table": keys,
        "prefix": "None",
        "mouse": "on",
        "status-format[0]": _LINE,
        # Keys that arrive together, as over a slow line, are not a paste.
        "assume-paste-time": "0",
        # This shell runs the `exit` that ends the person's tmux with a status.
        "default-shell": "/bin/sh",
    }
    for name, value in options.items():
        yield "set-option", "-t", target, name, value


def _at_bottom(target: str, line: str, keys: str) -> Iterator[Sequence[str]]:
    """Yield the commands that show a line at the bottom of a session, and keys after C-b."""
    for option, text in (("@line", line), ("@keys", keys)):
        yield "set-option", "-t", target, option, f" {text.replace('#', '##')} "


@asynccontextmanager
async def session_for(
    engine: Engine, pane: Pane, person: str | None, size: Size | None
) -> AsyncIterator[PersonsSession]:
    """Make a tmux session that shows a pane to a person during the block.

    A named `person` gets the keyboard; with None, the person only watches. `size` is what their
    terminal has for a pane, if that is known.

    Raises:
        KeyboardHeldError: Another person has the keyboard, or that of another pane in the window.
        PaneNotFoundError: The pane was killed meanwhile.
    """
    session = PersonsSession(engine, pane, size, is_working=person is not None)
    active_before = None
    size_before = pane.log.columns, pane.log.rows
    if person is not None:
        async with arranging(engine, pane.window):
            pane.keyboard.hand_over(person)
    try:
        if person is not None:
            active_before = await _zoom(pane)
        if active_before is not None:
            await take_sizes(pane.client, engine.panes_in(pane.window))
        elif size:
            await session.fit(size)
        await session.make()
        yield session
    finally:
        with anyio.CancelScope(shield=True):
            async with engine.arranging:
                await session.close()
                if active_before is not None:
                    await _unzoom(pane, active_before)
                elif person is not None and not pane.has_exited:
                    with suppress(CommandError, TmuxGoneError, PaneLostError):
                        await set_size(pane, *size_before)
                if person is not None:
                    pane.keyboard.take_back()
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
            # This goes on record, so it does not say which character.
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
    modes also wakes the terminal's readers, so after a change, output has to follow.
    """
    clock, times = pane.clock, pane.clock.times
    deadline = clock.now() + times.drain_s
    while clock.now() < deadline:
        now = pane.terminal.look().snapshot
        has_run = (now.readers, now.reader_ns) != (before.readers, before.reader_ns)
        if has_run and (now.modes == before.modes or now.printed_bytes > before.printed_bytes):
            return
        await clock.sleep(times.fast_poll_s)
