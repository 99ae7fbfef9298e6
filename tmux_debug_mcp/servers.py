"""The tmux servers that the toolset `tmux` works on: our own one, and the user's.

On our own, every pane is one of the session's, with log and all. On the user's nothing is changed that was not asked
for: no option, no pipe, no client that stays; one tmux process runs each command, and what a tool creates is left in
the background, so that nobody types into something else than a moment before.
"""

import contextlib
import errno
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from typing import Protocol

import anyio

from . import linux
from .capturing import capture, capture_rows, capture_screen
from .control_mode import version
from .creation import NewPane, Place, Settings, check, interactive_shell
from .errors import CommandError, KillNotAllowedError, PaneNotFoundError, TmuxStuckError
from .keys import Keystrokes
from .panes import Pane, State
from .screen import captured_lines
from .session import Session
from .targets import PaneRow, panes_format, parse
from .transcript import COLUMNS, ROWS

Command = Sequence[str]

# A tmux server answers within milliseconds. One that is stopped never does.
_ANSWER_S = 10.0
# So much text is typed at once; one argument of a program takes 128 KiB.
_TYPED_CHARACTERS = 4096
# Since this version paste-buffer rewrites control characters unless told not to.
_CLEANS_PASTES = (3, 7)


class TmuxServer(Protocol):
    """A tmux server, by ids alone."""

    async def rows(self) -> list[PaneRow]:
        """Return all panes, in tmux's order; none where no server runs."""

    async def command_of(self, row: PaneRow) -> str:
        """Return the name of the program that has a pane's terminal, or how its program ended."""

    async def run(self, *words: str) -> None:
        """Run a tmux command."""

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        """Resize a pane by flags of resize-pane."""

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> str:
        """Make a session and return its pane."""

    async def create_window(self, session_id: str, name: str | None, command: str | None) -> str:
        """Make a window and return its pane."""

    async def split(self, pane_id: str, flags: Sequence[str], command: str | None) -> str:
        """Split a pane and return the new one."""

    async def send(self, pane_id: str, keystrokes: Keystrokes) -> None:
        """Type and press."""

    async def read(self, pane_id: str, start: int | None, count: int | None) -> str:
        """Return rows from one on, 0 being the screen's first; or the last lines; or the screen."""

    async def kill(self, kind: str, row: PaneRow) -> None:
        """End a session, window or pane."""


class OwnServer:
    """Our own tmux server, as far as it has panes of the session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def rows(self) -> list[PaneRow]:
        client = self._session.client
        if client is None:
            return []
        separator = secrets.token_hex(8)
        [lines] = await client.run(("list-panes", "-a", "-F", panes_format(separator)))
        rows = parse("\n".join(line.decode(errors="replace") for line in lines), separator)
        ours = {pane.target for pane in self._session.panes if pane.client is client}
        return [row for row in rows if row.pane_id in ours]

    async def command_of(self, row: PaneRow) -> str:
        try:
            state = await self._pane(row.pane_id).state()
        except PaneNotFoundError:  # it was killed meanwhile
            return "killed"
        return state.foreground or "" if state.is_running else _ending(state)

    async def run(self, *words: str) -> None:
        if client := self._session.client:
            await client.run(words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        window = [other for other in await self.rows() if other.window_id == row.window_id]
        # Alone a pane has its window's size.
        is_window = len(window) == 1 and flags[0] in ("-x", "-y")
        await self.run("resize-window" if is_window else "resize-pane", "-t", row.pane_id, *flags)
        await self._take_sizes()

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> str:
        # The name that tmux makes of one is told by tmux alone, so the session has another one at first.
        first = secrets.token_hex(8)
        title = escaped(window_name or _title(self._session.settings, command))
        words = ["new-session", "-d", "-s", first, "-x", str(COLUMNS), "-y", str(ROWS), "-n", title]
        rename = ("rename-session", "-t", f"={first}", "--", escaped(name))
        place = Place(words, f"={first}:", rename, undo=("kill-session", "-t", f"={first}"))
        return await self._create(name, command, place)

    async def create_window(self, session_id: str, name: str | None, command: str | None) -> str:
        title = escaped(name or _title(self._session.settings, command))
        words = ["new-window", "-n", title, "-t", f"{session_id}:"]
        return await self._create(name, command, Place(words, f"{session_id}:"))

    async def split(self, pane_id: str, flags: Sequence[str], command: str | None) -> str:
        window = self._pane(pane_id).window
        new = await self._create(None, command, Place(["split-window", *flags, "-t", pane_id], window))
        await self._take_sizes()
        return new

    async def send(self, pane_id: str, keystrokes: Keystrokes) -> None:
        await self._pane(pane_id).send(keystrokes)

    async def read(self, pane_id: str, start: int | None, count: int | None) -> str:
        pane = self._pane(pane_id)
        if start is not None:
            return await capture_rows(pane, start, None if count is None else start + count - 1)
        return (await capture_screen(pane)).text() if count is None else await capture(pane, count)

    async def kill(self, kind: str, row: PaneRow) -> None:
        for other in await self.rows():
            if _is_in(other, kind, row):
                await self._session.kill(self._pane(other.pane_id))
        await self._take_sizes()

    async def _create(self, name: str | None, command: str | None, place: Place) -> str:
        shell = interactive_shell(self._session.settings)
        new = NewPane(command or shell, name, program=() if command else (shell,), place=place)
        check(new)
        pane, _ = await self._session.create(new)
        return pane.target

    async def _take_sizes(self) -> None:
        """Take note of what size the terminals of all panes have."""
        for row in await self.rows():
            log = self._pane(row.pane_id).log
            log.columns, log.rows = int(row.pane_width), int(row.pane_height)

    def _pane(self, pane_id: str) -> Pane:
        client = self._session.client
        for pane in self._session.panes:
            if pane.target == pane_id and pane.client is client:
                return pane
        raise PaneNotFoundError(pane_id)


class UsersServer:
    """The user's own tmux server.

    Args:
        settings: With its socket, and the environment that sessions of a server that we start get.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def rows(self) -> list[PaneRow]:
        if not self._is_running():
            return []
        separator = secrets.token_hex(8)
        return parse(await self._ask("list-panes", "-a", "-F", panes_format(separator)), separator)

    async def command_of(self, row: PaneRow) -> str:
        if row.pane_dead == "1":
            return f"exited with code {row.pane_dead_status}" if row.pane_dead_status else "exited"
        shell = linux.read_stat(int(row.pane_pid))
        leader = linux.read_stat(shell.tpgid) if shell else None
        name = (leader or shell).comm if shell else ""
        return "".join(character if character.isprintable() else "?" for character in name)

    async def run(self, *words: str) -> None:
        await self._ask(*words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        await self._ask("resize-pane", "-t", row.pane_id, *flags)

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> str:
        title = ["-n", escaped(window_name)] if window_name else []
        cwd = ["-c", escaped(str(self._settings.cwd))]
        # A server that this starts is the user's from then on, and not ours to end.
        with _left_to_init() if self._settings.adopts else contextlib.nullcontext():
            return await self._create(["new-session", "-d", "-s", escaped(name), *title, *cwd], command)

    async def create_window(self, session_id: str, name: str | None, command: str | None) -> str:
        title = ["-n", escaped(name)] if name else []
        return await self._create(["new-window", "-d", *title, "-t", f"{session_id}:"], command)

    async def split(self, pane_id: str, flags: Sequence[str], command: str | None) -> str:
        return await self._create(["split-window", "-d", *flags, "-t", pane_id], command)

    async def send(self, pane_id: str, keystrokes: Keystrokes) -> None:
        await self._ask("copy-mode", "-q", "-t", pane_id)  # which swallows keys
        if keystrokes.is_paste:
            await self._paste(pane_id, keystrokes.text)
        else:
            for start in range(0, len(keystrokes.text), _TYPED_CHARACTERS):
                text = keystrokes.text[start : start + _TYPED_CHARACTERS]
                await self._ask("send-keys", "-l", "-t", pane_id, "--", text)
        if keystrokes.keys:
            await self._ask("send-keys", "-t", pane_id, "--", *keystrokes.keys)

    async def read(self, pane_id: str, start: int | None, count: int | None) -> str:
        words = ["capture-pane", "-p", "-t", pane_id]
        if start is None and count is not None:
            captured = await self._ask(*words, "-J", "-S", f"-{count}")
            return "\n".join(captured_lines(captured.encode())[-count:])
        if start is not None:
            words += ["-S", str(start), *(["-E", str(start + count - 1)] if count is not None else [])]
        return "\n".join(captured_lines((await self._ask(*words)).encode()))

    async def kill(self, kind: str, row: PaneRow) -> None:
        if not self._settings.allows_kill:
            raise KillNotAllowedError
        target = {"session": row.session_id, "window": row.window_id, "pane": row.pane_id}[kind]
        await self._ask(f"kill-{kind}", "-t", target)

    async def _create(self, words: Sequence[str], command: str | None) -> str:
        made = await self._ask(*words, "-P", "-F", "#{pane_id}", *(["--", command] if command else []))
        return made.strip()

    async def _paste(self, pane_id: str, text: str) -> None:
        """Paste text, bracketed where the program asks for that; the user's own buffers stay as they are."""
        buffer = f"keys-{secrets.token_hex(8)}"
        number = version(await self._ask("display-message", "-p", "#{version}"))
        exactly = ["-S"] if number is None or number >= _CLEANS_PASTES else []
        await self._ask("load-buffer", "-b", buffer, "-", text=text)
        await self._ask("paste-buffer", "-d", "-p", *exactly, "-b", buffer, "-t", pane_id)

    async def _ask(self, *words: str, text: str = "") -> str:
        """Run a command and return what it prints.

        Raises:
            CommandError: tmux refused it.
            TmuxStuckError: tmux does not answer.
        """
        argv = [self._settings.tmux, "-u", "-S", self._settings.socket, *map(_whole, words)]
        with anyio.move_on_after(_ANSWER_S):
            done = await anyio.run_process(
                argv, input=text.encode(), stderr=subprocess.PIPE, check=False, env=dict(self._settings.env)
            )
            # A server that can't be started is no failure to tmux.
            if done.returncode or (done.stderr and not done.stdout):
                raise CommandError(words[0], done.stderr.decode(errors="replace").strip())
            return done.stdout.decode(errors="replace")
        raise TmuxStuckError(self._settings.socket, f"no answer in {_ANSWER_S:g} s")

    def _is_running(self) -> bool:
        """Tell whether a server listens at the socket, busy or not.

        Raises:
            TmuxStuckError: That can't be told.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)  # noqa: FBT003  its own signature
            try:
                reason = connection.connect_ex(self._settings.socket)
            except OSError:  # a path that is too long
                reason = errno.ENAMETOOLONG
        if reason in (0, errno.EAGAIN, errno.ENOENT, errno.ECONNREFUSED):
            return reason in (0, errno.EAGAIN)
        raise TmuxStuckError(self._settings.socket, os.strerror(reason))


@contextlib.contextmanager
def _left_to_init() -> Iterator[None]:
    """Leave what our children leave behind, for the time of the block, to init."""
    linux.become_subreaper(is_one=False)
    try:
        yield
    finally:
        linux.become_subreaper()


def escaped(name: str) -> str:
    """Return a name so that tmux, which expands formats in names, takes it as it is."""
    parts = name.split("#")
    text = parts[0]
    for part in parts[1:]:
        text += ("#" if part.startswith("[") else "##") + part
    return text


def _title(settings: Settings, command: str | None) -> str:
    """Return the name that tmux itself gives to a window: that of its program."""
    return os.path.basename(command.split()[0]) if command else os.path.basename(interactive_shell(settings))


def _whole(word: str) -> str:
    """Return an argument so that tmux, for which a semicolon at the end ends a command, takes it as it is."""
    return word[:-1] + "\\;" if word.endswith(";") else word


def _is_in(row: PaneRow, kind: str, other: PaneRow) -> bool:
    """Tell whether a pane goes when the session, window or pane of another row does."""
    key = {"session": "session_id", "window": "window_id", "pane": "pane_id"}[kind]
    return bool(getattr(row, key) == getattr(other, key))


def _ending(state: State) -> str:
    if state.is_lost:
        return "lost"
    return f"killed by {state.signal}" if state.signal else f"exited with code {state.exit_code}"
