"""People in panes: a person watches one, works in it, or types a secret that no agent sees.

A person's tmux client gets a session of its own with the window of that pane alone, and its size is
not that of the window. A window may be split. The pane whose keyboard a person has is zoomed: tmux
passes keys to a window's active pane, and a zoomed one has the window to itself. Until they let go,
nothing splits the window or selects another pane there. Who only watches sees the whole window.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from tmux_debug_mcp.errors import (
    CommandError,
    PaneNotFoundError,
    SentenceError,
    TmuxGoneError,
    ToolError,
)
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.vt.keys import Keystrokes
from tmux_debug_mcp.vt.sequences import CONTROLS

from .engine import Engine
from .looking.activity import ActivityTracker, Awaits, Snapshot
from .pane import Pane
from .sizing import arranging, take_sizes

_LEAVE = "C-b d"
# After its name, what a person sees at the bottom of their terminal.
_WATCHING = f" watching; {_LEAVE} leaves "
_WORKING = f" you have the keyboard; {_LEAVE} lets go "

# The bytes that a terminal keeps of a line before its end; it drops the rest. Source: termios(3).
MAX_SECRET_BYTES = 4095
# The echo of a secret is looked for in this much of what is printed while it is typed.
_MAX_ECHO_BYTES = 1 << 16
# Programs print anything shorter by chance, so that it says nothing about echo.
_MIN_ECHO_CHARACTERS = 4


class NotAwaitedError(SentenceError):
    """Raised when a secret is to be typed where none is awaited."""

    pane_id: str
    sentence = (
        "Pane '{pane_id}' does not await hidden input, so a secret could be shown there. Nothing "
        "was typed."
    )


@asynccontextmanager
async def session_for(engine: Engine, pane: Pane, person: str | None) -> AsyncIterator[list[str]]:
    """Make a tmux session that shows a pane to a person, for the time of the block.

    The person gets the keyboard; None only watches. Yields the arguments with which tmux attaches
    a terminal to the session.

    Raises:
        KeyboardHeldError: Another person has the keyboard, or that of another pane of the window.
        PaneNotFoundError: The pane was killed meanwhile.
    """
    name = f"person-{secrets.token_hex(4)}"
    line, flags = _WATCHING, "ignore-size,active-pane,read-only"
    active_before = None
    if person is not None:
        line, flags = _WORKING, "ignore-size"
        async with arranging(engine, pane.window):
            pane.keyboard.hand_over(person)
    pane.viewers.add(name)
    try:
        if person is not None:
            active_before = await _zoom(pane)
        if active_before is not None:
            await take_sizes(pane.client, engine.panes_in(pane.window))
        await _make_session(pane, name, line)
        if pane not in engine.panes:
            raise PaneNotFoundError(pane.id)
        socket = str(pane.client.file("tmux"))
        attach = ("attach-session", "-f", flags, "-t", f"={name}")
        # Of a window that is larger than their terminal, people see the part around their pane.
        yield ["-u", "-S", socket, *attach, ";", "select-pane", "-t", pane.target]
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


async def _make_session(pane: Pane, name: str, line: str) -> None:
    target = f"={name}:"
    await pane.tmux(
        ("new-session", "-d", "-s", name, "-n", "none", "true"),
        # In the place of the window that a new session has.
        ("link-window", "-k", "-s", pane.target, "-t", f"={name}:0"),
        ("set-option", "-t", target, "key-table", "person"),
        ("set-option", "-t", target, "prefix", "None"),
        ("set-option", "-t", target, "status-left-length", "100"),
        ("set-option", "-t", target, "status-left", line),
        ("set-option", "-t", target, "status-right", ""),
    )


async def check_hidden_input(pane: Pane) -> None:
    """Check that a pane awaits hidden input now.

    Raises:
        NotAwaitedError: It does not, or that is not known.
    """
    await pane.check_running()
    activity = await pane.terminal.observe(ActivityTracker(pane.clock.times))
    if activity.awaits is not Awaits.HIDDEN_INPUT:
        raise NotAwaitedError(pane.id)


async def type_secret(pane: Pane, secret: str) -> None:
    """Type a line where hidden input is awaited. It reaches the terminal and nothing else.

    Raises:
        ToolError: The line can't be typed as it is, or the terminal has shown it.
        NotAwaitedError: No hidden input is awaited any more.
    """
    if CONTROLS.search(secret):
        raise ToolError(
            "The secret has a control character, which could end it early and have the rest run "
            "as a command. Nothing was typed. Give a single line of text."
        )
    size = len(secret.encode())
    if size > MAX_SECRET_BYTES:
        raise ToolError(
            f"The secret has {size} bytes, and a terminal keeps {MAX_SECRET_BYTES} of a line. "
            "Nothing was typed. Give it to the program in a file."
        )
    async with pane.keyboard.lock:
        await check_hidden_input(pane)
        modes = terminals.modes(pane.leader.pid)
        if modes and set(modes.special_characters) & set(secret.encode()):
            # This goes on record, so it does not say which one.
            raise ToolError(
                "The secret has a character that erases, ends or interrupts a line in pane "
                f"'{pane.id}', as stty -a shows. Nothing was typed. End the program, run stty "
                "sane in the pane and start it again."
            )
        before = pane.terminal.begin_typing()
        await pane.keyboard.type(Keystrokes(secret, is_paste=False, keys=("Enter",)))
    await _reach_program(pane, before)
    await pane.drain()
    # A program may turn echo on between our look and the typing, or print what it reads.
    printed = pane.log.read(before.printed_bytes, _MAX_ECHO_BYTES)
    if len(secret) >= _MIN_ECHO_CHARACTERS and secret.encode() in printed:
        raise ToolError(
            f"The secret was typed, and pane '{pane.id}' has shown it: echo was on, or the program "
            "has printed it. It is in the pane's log. Change it."
        )


async def _reach_program(pane: Pane, before: Snapshot) -> None:
    """Wait until what was typed has reached the program, with its echo, but for 1 s at most.

    When the machine is busy, the terminal passes it on later than tmux has written it. Other modes
    wake who reads the terminal, too, so then output has to follow.
    """
    clock, times = pane.clock, pane.clock.times
    deadline = clock.now() + times.drain_s
    while clock.now() < deadline:
        now = pane.terminal.look()
        has_run = (now.readers, now.reader_ns) != (before.readers, before.reader_ns)
        if has_run and (now.modes == before.modes or now.printed_bytes > before.printed_bytes):
            return
        await clock.sleep(times.fast_poll_s)
