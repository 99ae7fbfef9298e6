"""The user's own tmux server, for the toolsets `tmux` and `tabs`.

Nothing on it changes but what a call asks for: no option, no pipe, no attached client. What a call
creates stays in the background, so that the user goes on typing into the same pane.
"""

import contextlib
import os
import re
import secrets
import signal
from collections.abc import Sequence
from typing import NamedTuple

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import (
    ArgumentError,
    CommandError,
    KillNotAllowedError,
    PaneExitedError,
    SignalError,
    TmuxGoneError,
)
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.captured import captured_lines
from tmux_debug_mcp.vt.keys import Keystrokes
from tmux_debug_mcp.vt.steps import confirmation

from .captures import first_rows, is_enough, more_rows
from .control_mode import version
from .pasting import CLEANS_PASTES, KEY_MODES, encoded_for_modes, paste_commands
from .targets import PaneRow, panes_format, parse
from .users_socket import UsersSocket

# A client of tmux sends at most 16 KiB of arguments: imsg(3), MAX_IMSGSIZE.
MAX_COMMAND_BYTES = 12_000

_MADE_FORMAT = "#{session_id} #{window_id} #{window_index} #{pane_id} #{session_name}"
_MADE = re.compile(r"^(\$\d+) (@\d+) (\d+) (%\d+) (.*)$", re.MULTILINE)


class Made(NamedTuple):
    """A pane that was made, with our ids.

    Attributes:
        is_gone: Its command has ended already, and the pane with it.
        exit_code: The exit code of a command that has ended already; None where it is not known.
        signal: The signal that ended it already.
    """

    session_id: str
    session_name: str
    window_id: str
    window_index: str
    pane_id: str
    is_gone: bool = False
    exit_code: int | None = None
    signal: str | None = None


class _Capture(NamedTuple):
    """What capture-pane printed, and facts about the pane at that moment.

    Attributes:
        is_alternate: The pane shows the alternate screen.
        history_rows: The number of rows in its history.
        lines: The captured lines.
    """

    is_alternate: bool
    history_rows: int
    lines: list[str]


class UsersServer:
    """The user's own tmux server.

    Every method may raise CommandError where tmux refuses a command, TmuxGoneError where the server
    has ended, and TmuxStuckError where it does not answer.

    Args:
        settings: The configuration; of it the socket, the directory and environment of what is
            created, and whether calls may kill are used.
        clock: The engine's clock.

    Attributes:
        clock: The same.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.clock = clock
        self._settings = settings
        self._socket = UsersSocket(settings, clock)
        self._typing = anyio.Lock()

    async def rows(self) -> list[PaneRow]:
        """Return all panes, in tmux's order; none where no server runs."""
        if not self._socket.is_listening():
            return []
        separator = secrets.token_hex(8)
        try:
            output = await self._socket.run(("list-panes", "-a", "-F", panes_format(separator)))
        except TmuxGoneError:
            return []
        return parse(output, separator)

    async def command_of(self, row: PaneRow) -> str:
        """Return the name of the program that has a pane's terminal, or how its program ended."""
        if row.pane_dead != "1":
            return row.pane_current_command
        if row.pane_dead_status:
            return f"exited with code {row.pane_dead_status}"
        return "exited"

    async def run(self, *words: str) -> None:
        """Run a tmux command."""
        await self._socket.run(words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        """Resize a pane, by flags of resize-pane."""
        await self._socket.run(("resize-pane", "-t", row.pane_id, *flags))

    async def select_pane(self, row: PaneRow) -> None:
        """Make a pane the active one of its window."""
        await self._socket.run(("select-pane", "-t", row.pane_id))

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> Made:
        """Make a session, and start the server if none runs.

        Raises:
            ArgumentError: The command is longer than 12,000 bytes.
        """
        self._socket.prepare_start()
        words = ["new-session", "-d", "-s", escaped(name)]
        if window_name:
            words += ["-n", escaped(window_name)]
        words += ["-c", escaped(str(self._settings.cwd))]
        return await self._create(words, command)

    async def create_window(
        self, row: PaneRow, name: str | None, command: str | None, flags: Sequence[str] = ()
    ) -> Made:
        """Make a window in the session of a row, with further flags of new-window.

        Raises:
            ArgumentError: The command is longer than 12,000 bytes.
        """
        words = ["new-window", "-d"]
        if name:
            words += ["-n", escaped(name)]
        words += [*flags, "-t", f"{row.tmux_session}:"]
        return await self._create(words, command)

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> Made:
        """Split a pane, by flags of split-window.

        Raises:
            ArgumentError: The command is longer than 12,000 bytes.
        """
        return await self._create(["split-window", "-d", *flags, "-t", row.tmux_pane], command)

    async def _create(self, words: Sequence[str], command: str | None) -> Made:
        """Run a command that makes a pane, and return the pane."""
        words = [*words, "-P", "-F", _MADE_FORMAT]
        if command:
            _check_size(command)
            words += ["--", command]
        # Variables may be secret.
        if "-e" in words:
            output = await self._socket.run_hidden(words)
        else:
            output = await self._socket.run(words)
        made = _MADE.search(output)  # the user's hooks may print as well
        if made is None:
            raise CommandError(words[0], output.strip() or "it printed nothing")
        session_id, window_id, window_index, pane_id, session_name = made.groups()
        is_gone = not any(row.pane_id == pane_id for row in await self.rows())
        return Made(session_id, session_name, window_id, window_index, pane_id, is_gone)

    async def send(self, row: PaneRow, target: str, steps: Sequence[Keystrokes]) -> str:
        """Send steps one after the other, and return the confirmation.

        Args:
            row: The pane.
            target: What the call names it.
            steps: The steps.

        Raises:
            PaneExitedError: The pane's program had ended when the row was read.
            SignalError: A signal can't be sent.
        """
        if row.pane_dead == "1":
            raise PaneExitedError(row.pane_id, await self.command_of(row))
        # A paste that is cancelled halfway would leave a buffer, or half of the text.
        with anyio.CancelScope(shield=True):
            async with self._typing:
                for step in steps:
                    if step.signal:
                        _send_signal(row, step.signal)
                    else:
                        await self._type(row.pane_id, step)
        return confirmation(target, steps, len(steps), None, 0)

    async def _type(self, pane_id: str, keystrokes: Keystrokes) -> None:
        facts_format = "#{version} " + KEY_MODES
        output = await self._socket.run(("display-message", "-p", "-t", pane_id, facts_format))
        tmux_version, _, modes = output.partition("\n")[0].partition(" ")
        number = version(tmux_version)
        cleans_pastes = number is None or number >= CLEANS_PASTES
        text = keystrokes.text
        keys = encoded_for_modes(keystrokes.keys, modes)
        if keystrokes.is_paste:
            await self._paste(pane_id, text, is_bracketed=True, cleans_pastes=cleans_pastes)
            text = ""
        await self._paste(pane_id, text + keys, is_bracketed=False, cleans_pastes=cleans_pastes)

    async def _paste(
        self, pane_id: str, text: str, *, is_bracketed: bool, cleans_pastes: bool
    ) -> None:
        """Paste text into one pane, also where keys go to several; keep the user's own buffers."""
        if not text:
            return
        buffer = f"keys-{secrets.token_hex(8)}"
        commands = paste_commands(
            pane_id, buffer, "-", is_bracketed=is_bracketed, cleans_pastes=cleans_pastes
        )
        try:
            await self._socket.run(*commands, text=text)
        except CommandError:
            with contextlib.suppress(CommandError):
                await self._socket.run(("delete-buffer", "-b", buffer))
            raise

    async def capture_rows(self, row: PaneRow, start: int, end: int) -> str:
        """Return rows of the screen and its history: 0 is the screen's first, -1 the one above."""
        capture = await self._capture(row.pane_id, "-S", str(start), "-E", str(end))
        return "\n".join(capture.lines)

    async def capture_screen(self, row: PaneRow) -> str:
        """Return the rows of the screen."""
        capture = await self._capture(row.pane_id)
        return "\n".join(capture.lines)

    async def capture_lines(self, row: PaneRow, lines: int, *, ansi: bool = False) -> str:
        """Return the last lines; a line that the terminal wrapped is one.

        Args:
            row: The pane.
            lines: The most lines to return.
            ansi: Keep colours and attributes as escape sequences.
        """
        rows = first_rows(lines)
        while True:
            capture = await self._capture(row.pane_id, "-J", "-S", f"-{rows}", ansi=ansi)
            if capture.is_alternate:  # which has no history: -S would show the main screen's
                capture = await self._capture(row.pane_id, "-J", ansi=ansi)
                break
            if rows >= capture.history_rows or is_enough(capture.lines, lines):
                break
            rows = more_rows(rows, lines)
        return "\n".join(capture.lines[-lines:])

    async def _capture(self, pane_id: str, *flags: str, ansi: bool = False) -> _Capture:
        """Capture a pane, by flags of capture-pane."""
        facts_format = "#{alternate_on} #{history_size}"
        output = await self._socket.run(
            ("display-message", "-p", "-t", pane_id, facts_format),
            ("capture-pane", "-p", "-e", "-t", pane_id, *flags),
        )
        facts, *lines = captured_lines(output.encode(), ansi=ansi)
        is_alternate, history_rows = map(int, facts.split())
        return _Capture(bool(is_alternate), history_rows, lines)

    async def kill(self, kind: str, row: PaneRow) -> None:
        """End a `session`, `window` or `pane`.

        Raises:
            KillNotAllowedError: The server was started without --allow-kill.
        """
        if not self._settings.allows_kill:
            raise KillNotAllowedError
        ids = {"session": row.session_id, "window": row.window_id, "pane": row.pane_id}
        await self._socket.run((f"kill-{kind}", "-t", ids[kind]))


def _send_signal(row: PaneRow, name: str) -> None:
    """Send a signal to the program that a pane's shell has started.

    Raises:
        SignalError: There is none, or it belongs to another user.
    """
    leader = processes.read_stat(int(row.pane_pid))
    if leader is None or leader.tpgid <= 0 or not processes.is_on_terminal(leader, row.pane_tty):
        raise SignalError(name, "the processes of that pane can't be seen from here")
    if leader.tpgid == leader.pgrp:
        raise SignalError(name, "only the pane's own program runs there, and closes it at its end")
    try:
        os.killpg(leader.tpgid, signal.Signals[name])
    except ProcessLookupError:
        raise SignalError(name, "the program has just ended") from None
    except PermissionError:
        raise SignalError(name, "the program belongs to another user") from None


def escaped(name: str) -> str:
    """Return a name for an argument in which tmux expands formats, so that tmux takes it literally.

    Source: tmux(1), "FORMATS": `##` is a `#`. But `#[` stays as it is, and so must not be doubled.
    """
    first, *others = name.split("#")
    text = first
    for part in others:
        if part.startswith("["):
            text += "#" + part
        else:
            text += "##" + part
    return text


def _check_size(command: str) -> None:
    """Check that a client of tmux can send a command to its server.

    Raises:
        ArgumentError: It is too long.
    """
    size = len(command.encode())
    if size > MAX_COMMAND_BYTES:
        raise ArgumentError(
            f"Parameter 'command' has {size} bytes; on a user's tmux server at most "
            f"{MAX_COMMAND_BYTES}. Put it into a script."
        )
