"""The keyboard of a pane: what is typed goes to its program, and is remembered for those who wait for the answer."""

import re
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import anyio

from . import terminals
from .client import ControlClient
from .doing import Facts  # noqa: TC001  as others
from .echo import MAX_TEXTS, Echoes, Sent
from .keys import Keystrokes, depend_on_modes, encoded
from .logs import Log
from .shells import Shell

# Waits tell the echo of so many sendings from output.
_REMEMBERED = 200
_CONTROL = re.compile("[\0-\037\177]+")
# tmux's variables of the modes that keys depend on.
KEY_MODES = "#{keypad_cursor_flag} #{keypad_flag}"

Run = Callable[..., Awaitable[list[tuple[bytes, ...]]]]


class Keyboard:
    """The keyboard of a pane.

    Args:
        client: The tmux server of the pane.
        target: tmux's id of it.
        process: Its session leader.
        log: Its log.
        run: Runs tmux commands on it.

    Attributes:
        lock: Held by who types.
        sequence: Held by who types text, step after step.
        sent: What was typed, the newest last.
        is_line_used: Keys were sent since the shell was given its last command.
        before: The last look at the pane before something was typed.
    """

    def __init__(self, client: ControlClient, target: str, process: int, log: Log, run: Run) -> None:
        self._client = client
        self._target = target
        self._process = process
        self._log = log
        self._run = run
        self.lock = anyio.Lock()
        self.sequence = anyio.Lock()
        self.sent: deque[Sent] = deque(maxlen=_REMEMBERED)
        self.is_line_used = False
        self.before: Facts | None = None

    def expect_echo(self, keystrokes: Keystrokes, shell: Shell | None, rows: Sequence[str] = ()) -> Sent:
        """Remember keys that are to be typed now.

        Args:
            keystrokes: The keys.
            shell: The shell that is at its prompt, if one is.
            rows: What the screen shows, where a program draws there.
        """
        modes = terminals.modes(self._process)
        echoes = Echoes.TERMINAL if modes and modes.echoes else Echoes.PROGRAM
        if modes and modes.is_canonical and not modes.echoes:
            echoes = Echoes.NOBODY
        elif shell and echoes is Echoes.PROGRAM:
            echoes = Echoes.EDITOR
        texts = [text.strip(" ") for text in _CONTROL.split(keystrokes.text, MAX_TEXTS)[:MAX_TEXTS]]
        sent = Sent(self._log.size, [text for text in texts if text], echoes, time.time(), rows)
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
        file = self._client.write(name, text.encode())
        flags = how + (" -S" if self._client.cleans_pastes else "")
        try:
            await self._run(("load-buffer", "-b", name, str(file)), *pastes(self._target, name, flags))
        finally:
            self._client.remove(name)

    async def _encoded(self, keys: Sequence[str]) -> str:
        """Return what keys send to the program."""
        if not depend_on_modes(keys):
            return encoded(keys)
        [[line]] = await self._run(("display-message", "-p", "-t", self._target, KEY_MODES))
        modes = line.split()  # of a pane that is gone there are none
        return encoded(keys, cursor_mode=modes[:1] == [b"1"], keypad_mode=modes[1:] == [b"1"])


def pastes(target: str, buffer: str, flags: str) -> list[tuple[str, ...]]:
    """Return the commands that paste a buffer and delete it; tmux 3.3 ends when that is done to a dead pane."""
    paste = f"paste-buffer -d {flags} -b {buffer} -t {target}"
    leave: list[tuple[str, ...]] = [("copy-mode", "-q", "-t", target)] if "-p" in flags else []
    return [*leave, ("if-shell", "-F", "-t", target, "#{pane_dead}", f"delete-buffer -b {buffer}", paste)]
