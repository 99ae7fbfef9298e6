"""The keyboard of a pane: what is typed goes to its program, and is remembered for those who wait for the answer."""

import re
import secrets
import time
from collections import deque
from collections.abc import Sequence

import anyio

from tmux_debug_mcp.linux import terminals
from tmux_debug_mcp.tmux.pasting import KEY_MODES, pastes
from tmux_debug_mcp.vt.echo import MAX_TEXTS, Echoes, Sent
from tmux_debug_mcp.vt.key_codes import depend_on_modes, encoded
from tmux_debug_mcp.vt.keys import Keystrokes

from .dialects import Shell
from .tmux_pane import TmuxPane

# Waits tell the echo of so many sendings from output.
_REMEMBERED = 200
_CONTROL = re.compile("[\0-\037\177]+")


class Keyboard:
    """The keyboard of a pane.

    Args:
        pane: The pane.

    Attributes:
        lock: Held while something is typed.
        sequence: Held while a call types its steps of text.
        sent: What was typed, the newest last.
        is_line_used: Something was typed since the shell was given its last command, so its line
            may not be empty.
    """

    def __init__(self, pane: TmuxPane) -> None:
        self._pane = pane
        self.lock = anyio.Lock()
        self.sequence = anyio.Lock()
        self.sent: deque[Sent] = deque(maxlen=_REMEMBERED)
        self.is_line_used = False

    def use_line(self) -> None:
        """Note that something may be on the shell's line."""
        self.is_line_used = True

    def release_line(self) -> None:
        """Note that the shell's line is empty."""
        self.is_line_used = False

    def expect_echo(self, keystrokes: Keystrokes, shell: Shell | None, rows: Sequence[str] = ()) -> Sent:
        """Remember keys that are to be typed now.

        Args:
            keystrokes: The keys.
            shell: The shell that is at its prompt, if one is.
            rows: What the screen shows, where a program draws there.
        """
        modes = terminals.modes(self._pane.leader.pid)
        echoes = Echoes.TERMINAL if modes and modes.echoes else Echoes.PROGRAM
        if modes and modes.is_canonical and not modes.echoes:
            echoes = Echoes.NOBODY
        elif shell and echoes is Echoes.PROGRAM:
            echoes = Echoes.EDITOR
        texts = [text.strip(" ") for text in _CONTROL.split(keystrokes.text, MAX_TEXTS)[:MAX_TEXTS]]
        sent = Sent(self._pane.log.size, [text for text in texts if text], echoes, time.time(), rows)
        self.sent.append(sent)
        return sent

    async def press(self, keystrokes: Keystrokes) -> None:
        """Press keys at once, whoever reads them; nobody waits for what comes of them."""
        with anyio.CancelScope(shield=True):
            async with self.lock:
                await self.type(keystrokes)

    async def type(self, keystrokes: Keystrokes) -> None:
        """Type and press; the lock must be held.

        All of it is pasted: so it does not go to a mode that a person is in, such as to scroll. That has to be left for
        a bracketed paste alone, since tmux then looks at the mode for whether the program asks for brackets.
        """
        keys = await self._encoded(keystrokes.keys)
        pasted, typed = (keystrokes.text, keys) if keystrokes.is_paste else ("", keystrokes.text + keys)
        for text, how in ((pasted, "-p"), (typed, "-r")):
            if text:
                await self._paste(text, how)

    async def _paste(self, text: str, how: str) -> None:
        name = f"keys-{secrets.token_hex(8)}"
        file = self._pane.client.write(name, text.encode())
        flags = how + (" -S" if self._pane.client.cleans_pastes else "")
        try:
            await self._pane.tmux(("load-buffer", "-b", name, str(file)), *pastes(self._pane.target, name, flags))
        finally:
            self._pane.client.remove(name)

    async def _encoded(self, keys: Sequence[str]) -> str:
        """Return what keys send to the program."""
        if not depend_on_modes(keys):
            return encoded(keys)
        [[line]] = await self._pane.tmux(("display-message", "-p", "-t", self._pane.target, KEY_MODES))
        modes = line.split()  # of a pane that is gone there are none
        return encoded(keys, cursor_mode=modes[:1] == [b"1"], keypad_mode=modes[1:] == [b"1"])
