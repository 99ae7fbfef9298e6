"""The keyboard of a pane: it types into the pane, and remembers what was typed.

Waits need to know what was typed, to tell its echo from output.
"""

import os
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import BusyError, HiddenInputError, KeyboardHeldError
from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.tmux.text import paste_commands
from tmux_debug_mcp.vt.echo import MAX_TEXTS, Echoer, TypedText
from tmux_debug_mcp.vt.keys import (
    KEY_MODES,
    Protocol,
    ProtocolTracker,
    codes_of,
    depend_on_modes,
    need_protocol,
)
from tmux_debug_mcp.vt.sequences import CONTROLS
from tmux_debug_mcp.vt.steps import Keystrokes

from .looking.activity import Awaits, Snapshot, awaited, prompting_shell
from .looking.pane_terminal import Terminal
from .place import PaneId, Place

# After these keys, a shell's line is empty.
_LEAVE_LINE = (("Enter",), ("C-c",), ("C-u",), ("C-d",))
# A wait can tell the echo of this many steps from output.
_MAX_SENT = 200
# Of more lines, and of longer ones, we remember only that there were some.
_MAX_TYPED_LINES = 20
_MAX_LINE_CHARACTERS = 1000
# How much of a log is searched for requests in one go.
_PIECE_BYTES = 1 << 18
# Longer text goes to tmux in a file, and so does NUL, which no command can hold.
_MAX_IN_COMMAND = 1000


@dataclass(frozen=True, slots=True)
class SentStep(TypedText):
    """Keystrokes that were sent to a pane, and the state of the pane right before.

    Attributes:
        at: When they were sent, by the pane's clock.
        before: The snapshot right before.
        rows: The screen's rows before; empty unless a program drew there and a wait will match what
            it draws next with a pattern.
    """

    at: float
    before: Snapshot
    rows: Sequence[str] = ()


async def acquire(lock: anyio.Lock, clock: Clock, timeout_s: float) -> bool:
    """Acquire a lock, waiting for at most this long; return whether it was acquired."""
    try:
        lock.acquire_nowait()
    except anyio.WouldBlock:
        with clock.move_on_after(timeout_s) as waiting:
            await lock.acquire()
        return not waiting.cancelled_caught
    return True


class Keyboard:
    """The keyboard of a pane.

    Attributes:
        lock: Held while tmux types keystrokes.
        sequence: Held by `in_sequence`.
        sent: What was typed, oldest first; the last 200 steps.
        holder: The person who has the keyboard, None if calls have it.
        typed_lines: What was typed since the shell's command line was last known to be empty: each
            line, or None for what is not known or did not end in Enter.
        empty_prompt: The cursor after the shell's prompt when something was last typed on a line
            known to be empty; None before that.
    """

    def __init__(
        self,
        pane_id: PaneId,
        place: Place,
        log: Log,
        terminal: Terminal,
        clock: Clock,
        tmux: Callable[..., Awaitable[Sequence[Sequence[bytes]]]],
        *,
        only_people_type_secrets: bool,
    ) -> None:
        self._pane_id = pane_id
        self._place = place
        self._log = log
        self._terminal = terminal
        self._clock = clock
        self._tmux = tmux
        self._only_people_type_secrets = only_people_type_secrets
        self.lock = anyio.Lock()
        self.sequence = anyio.Lock()
        self.sent: deque[SentStep] = deque(maxlen=_MAX_SENT)
        self.holder: str | None = None
        self.typed_lines: list[str | None] = []
        self.empty_prompt: int | None = None
        self._has_left_line = False  # with what was typed last
        self._requests = ProtocolTracker()

    def hand_over(self, person: str) -> None:
        """Give a person the keyboard. Until they let go, calls can't type, run or signal."""
        self.check_free()
        self.holder = person

    def take_back(self) -> None:
        """Take the keyboard back from the person. They may have left text on the command line."""
        self.holder = None
        self.use_line()

    def check_free(self) -> None:
        """Raise KeyboardHeldError if a person has the keyboard."""
        if self.holder is not None:
            raise KeyboardHeldError(self.holder, self._pane_id)

    @asynccontextmanager
    async def in_sequence(self, timeout_s: float) -> AsyncIterator[None]:
        """Keep other calls from typing, except for interrupts, while the block waits for programs.

        Raises:
            BusyError: Another call still does so at the timeout.
        """
        timeout_s = max(0.0, timeout_s)
        if not await acquire(self.sequence, self._clock, timeout_s):
            raise BusyError(self._pane_id, "another call is sending keys", timeout_s)
        try:
            yield
        finally:
            self.sequence.release()

    def check_not_hidden(self, keystrokes: Keystrokes) -> None:
        """Raise HiddenInputError if only a person may type these now. Calls may interrupt."""
        if not self._only_people_type_secrets or keystrokes.interrupts:
            return
        # A program may ask on a terminal that it has made within the pane's, or read key by key.
        snapshot = self._terminal.look().snapshot
        both = (terminals.modes(self._place.leader.pid), snapshot.modes)
        are_hidden = any(modes and modes.hides_lines for modes in both)
        if are_hidden or awaited(snapshot) is Awaits.HIDDEN_INPUT:
            how = f": {own_command()} --server {os.getpid()} secret {self._pane_id}"
            raise HiddenInputError(self._pane_id, how)

    @property
    def last_sent(self) -> SentStep | None:
        """What was typed last; None before anything was."""
        return self.sent[-1] if self.sent else None

    @property
    def is_line_used(self) -> bool:
        """Whether something was typed since the shell's command line was known to be empty."""
        return bool(self.typed_lines)

    @property
    def may_have_text(self) -> bool:
        """Whether what was typed last, by a call or a person, may have left text on a line."""
        if not self.typed_lines or self.typed_lines[-1] is not None:
            return False
        return not self._has_left_line

    def use_line(self, keystrokes: Keystrokes | None = None) -> None:
        """Note that something is typed on the shell's command line: keystrokes, if known."""
        line = None
        self._has_left_line = bool(keystrokes and keystrokes.keys[-1:] in _LEAVE_LINE)
        if keystrokes and set(keystrokes.keys) == {"Enter"} and not keystrokes.is_paste:
            line = keystrokes.text
        if line and len(line) > _MAX_LINE_CHARACTERS:
            line = None
        self.typed_lines.append(line)
        if len(self.typed_lines) > _MAX_TYPED_LINES:
            self.typed_lines[:2] = [None]

    def release_line(self) -> None:
        """Note that the shell's command line is empty."""
        self.typed_lines.clear()

    def begin(self, keystrokes: Keystrokes, rows: Sequence[str] = ()) -> SentStep:
        """Take a snapshot and remember keystrokes that are about to be typed.

        Comparing later snapshots with it shows whether the program has read them. `rows` are the
        screen's rows before, for waits on a program that draws there.
        """
        gets_keys = bool(keystrokes.text or keystrokes.keys) and not keystrokes.interrupts
        before = self._terminal.begin_typing(
            gets_keys=gets_keys, gets_escape=keystrokes.ends_with_escape
        )
        shell, modes = prompting_shell(before), before.own_modes
        if modes and modes.echoes:
            echoer = Echoer.TERMINAL
        elif modes and modes.hides_lines:
            echoer = Echoer.NOBODY
        else:
            echoer = Echoer.EDITOR if shell else Echoer.PROGRAM
        pieces = CONTROLS.split(keystrokes.text, MAX_TEXTS)[:MAX_TEXTS]
        texts = [piece.strip(" ") for piece in pieces]
        sent = SentStep(
            cursor=self._log.size,
            texts=[text for text in texts if text],
            echoer=echoer,
            number=self.last_sent.number + 1 if self.last_sent else 0,
            at=self._clock.now(),
            before=before,
            rows=rows,
        )
        self.sent.append(sent)
        if shell and not self.is_line_used:
            self.empty_prompt = sent.cursor
        return sent

    def undo(self, sent: SentStep) -> None:
        """Note that keystrokes were not typed after all, nor used the shell's line."""
        if self.last_sent is sent:
            self.sent.pop()
            self._terminal.undo_typing()
            del self.typed_lines[-1:]

    async def press(self, keystrokes: Keystrokes) -> None:
        """Type keystrokes at once: don't wait for the program, and don't expect an echo."""
        with anyio.CancelScope(shield=True):
            async with self.lock:
                await self.type(keystrokes)

    async def type(self, keystrokes: Keystrokes) -> None:
        """Type text and press keys. The lock must be held."""
        self.check_free()
        if keystrokes.interrupts:
            # What is typed before an interrupt is handled is lost, so later looks must see that
            # the program has handled it.
            self._terminal.typed(self._terminal.look().snapshot)
        text = keystrokes.text
        keys = await self._codes(keystrokes.keys)
        if keystrokes.is_paste:
            await self._paste(text, is_bracketed=True)
            text = ""
        await self._paste(text + keys, is_bracketed=False)
        self._terminal.tmux_has_typed()

    async def check_codes(self, keys: Sequence[str]) -> None:
        """Raise NoKeyCodeError if the program would take a key for another."""
        if need_protocol(keys):
            codes_of(keys, "", await self.protocol())

    async def _codes(self, keys: Sequence[str]) -> str:
        """Return the characters that keys send to the program in its terminal's modes."""
        modes, protocol = b"", Protocol.NONE
        if depend_on_modes(keys):
            ask = ("display-message", "-p", "-t", self._place.target, KEY_MODES)
            [[modes]] = await self._tmux(ask)
        if need_protocol(keys):
            protocol = await self.protocol()
        return codes_of(keys, modes.decode(), protocol)

    async def protocol(self) -> Protocol:
        """Return the protocol for keys that the output in the log has asked for last."""
        log, requests = self._log, self._requests
        size = log.size
        while requests.end < size:
            start = max(requests.end, log.kept_from)
            data = log.read(start, min(_PIECE_BYTES, size - start))
            if not data:
                break
            requests.feed(data, start)
            await anyio.lowlevel.checkpoint()
        return requests.protocol

    async def _paste(self, text: str, *, is_bracketed: bool) -> None:
        if not text:
            return
        client = self._place.client
        buffer = f"keys-{secrets.token_hex(8)}"
        is_short = len(text) <= _MAX_IN_COMMAND and "\0" not in text
        load: tuple[str, ...] = ("set-buffer", "-b", buffer, "--", text)
        if not is_short:
            load = ("load-buffer", "-b", buffer, str(client.write(buffer, text.encode())))
        commands = paste_commands(
            self._place.target, buffer, load, is_bracketed=is_bracketed, version=client.version
        )
        try:
            await self._tmux(*commands)
        finally:
            if not is_short:
                client.remove(buffer)
