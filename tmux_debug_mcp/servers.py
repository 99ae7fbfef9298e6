"""The tmux servers that the toolset `tmux` works on: our own one, and the user's.

On our own, every pane is one of the session's, with log and all. On the user's nothing is changed that was not asked
for: no option, no pipe, no client that stays; one tmux process runs each command, and what a tool creates is left in
the background, so that nobody types into something else than a moment before.
"""

import contextlib
import errno
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import anyio

from . import linux
from .capturing import capture, capture_rows, capture_screen
from .control_mode import version
from .creation import NewPane, Place, Settings, check, interactive_shell
from .errors import (
    ArgumentError,
    CommandError,
    KillNotAllowedError,
    PaneExitedError,
    PaneNotFoundError,
    TmuxStuckError,
)
from .keys import Keystrokes
from .panes import Pane, State, pastes
from .screen import captured_lines
from .session import Session
from .targets import PaneRow, panes_format, parse
from .transcript import COLUMNS, ROWS

Command = Sequence[str]

# A tmux server answers within milliseconds. One that is stopped never does.
_ANSWER_S = 10.0
# A client of tmux takes 16 KiB of commands: so much for text, of which a character takes 4 bytes at most, and for all.
_TYPED_CHARACTERS = 2000
_KEYS_A_COMMAND = 200
MAX_COMMAND_BYTES = 12_000
_PANE_ID = re.compile(r"%\d+")
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

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        """Type and press, whole and in order."""

    async def read_rows(self, pane_id: str, start: int, end: int) -> str:
        """Return rows of the screen and its history, 0 being the screen's first."""

    async def read_lines(self, pane_id: str, lines: int) -> str:
        """Return the last lines; one that the terminal wrapped is one."""

    async def read_screen(self, pane_id: str) -> str:
        """Return what the screen shows."""

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

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        await self._pane(row.pane_id).send(keystrokes)

    async def read_rows(self, pane_id: str, start: int, end: int) -> str:
        return await capture_rows(self._pane(pane_id), start, end)

    async def read_lines(self, pane_id: str, lines: int) -> str:
        return await capture(self._pane(pane_id), lines)

    async def read_screen(self, pane_id: str) -> str:
        return (await capture_screen(self._pane(pane_id))).text()

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
        typing: Held by who types, so that keys do not mix.
    """

    def __init__(self, settings: Settings, typing: anyio.Lock) -> None:
        self._settings = settings
        self._typing = typing

    async def rows(self) -> list[PaneRow]:
        if not self._is_running():
            return []
        separator = secrets.token_hex(8)
        return parse(await self._ask(("list-panes", "-a", "-F", panes_format(separator))), separator)

    async def command_of(self, row: PaneRow) -> str:
        if row.pane_dead == "1":
            return f"exited with code {row.pane_dead_status}" if row.pane_dead_status else "exited"
        return row.pane_current_command

    async def run(self, *words: str) -> None:
        await self._ask(words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        await self._ask(("resize-pane", "-t", row.pane_id, *flags))

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> str:
        self._is_running()  # tmux itself would remove what is in the place of its socket
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

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        if row.pane_dead == "1":
            raise PaneExitedError(row.pane_id, await self.command_of(row))
        pane_id, text, keys = row.pane_id, keystrokes.text, keystrokes.keys
        typed = [text[at : at + _TYPED_CHARACTERS] for at in range(0, len(text), _TYPED_CHARACTERS)]
        pressed = [keys[at : at + _KEYS_A_COMMAND] for at in range(0, len(keys), _KEYS_A_COMMAND)]
        commands: list[Command] = [("copy-mode", "-q", "-t", pane_id)]  # which swallows keys
        if not keystrokes.is_paste:
            commands += [("send-keys", "-l", "-t", pane_id, "--", piece) for piece in typed]
        with anyio.CancelScope(shield=True):
            async with self._typing:
                if keystrokes.is_paste:
                    await self._paste(pane_id, text)
                for batch in _batches([*commands, *(("send-keys", "-t", pane_id, "--", *some) for some in pressed)]):
                    await self._ask(*batch)

    async def read_rows(self, pane_id: str, start: int, end: int) -> str:
        return "\n".join((await self._captured(pane_id, "-S", str(start), "-E", str(end)))[1:])

    async def read_lines(self, pane_id: str, lines: int) -> str:
        # The first row may be the rest of a longer line. So one line more, or all there is.
        rows = lines + 1
        while True:
            [facts, *found] = await self._captured(pane_id, "-J", "-S", f"-{rows}")
            is_alternate, history_rows = map(int, facts.split())
            if is_alternate:  # it has no history
                found = (await self._captured(pane_id, "-J"))[1:]
            if len(found) > lines or rows >= history_rows or is_alternate:
                return "\n".join(found[-lines:])
            rows *= 4

    async def read_screen(self, pane_id: str) -> str:
        return "\n".join((await self._captured(pane_id))[1:])

    async def kill(self, kind: str, row: PaneRow) -> None:
        if not self._settings.allows_kill:
            raise KillNotAllowedError
        target = {"session": row.session_id, "window": row.window_id, "pane": row.pane_id}[kind]
        await self._ask((f"kill-{kind}", "-t", target))

    async def _create(self, words: Sequence[str], command: str | None) -> str:
        if command and len(command.encode()) > MAX_COMMAND_BYTES:
            raise ArgumentError(
                f"Parameter 'command' has {len(command.encode())} bytes; on a user's tmux server at most "
                f"{MAX_COMMAND_BYTES}. Put it into a script."
            )
        made = await self._ask((*words, "-P", "-F", "#{pane_id}", *(["--", command] if command else [])))
        return next(filter(_PANE_ID.fullmatch, made.splitlines()), made.strip())  # hooks may print, too

    async def _captured(self, pane_id: str, *flags: str) -> list[str]:
        """Return whether the screen is the alternate one, with the number of rows of the history, and what it shows."""
        facts = ("display-message", "-p", "-t", pane_id, "#{alternate_on} #{history_size}")
        return captured_lines((await self._ask(facts, ("capture-pane", "-p", "-e", "-t", pane_id, *flags))).encode())

    async def _paste(self, pane_id: str, text: str) -> None:
        """Paste text, bracketed where the program asks for that; the user's own buffers stay as they are."""
        buffer = f"keys-{secrets.token_hex(8)}"
        number = version(await self._ask(("display-message", "-p", "#{version}")))
        how = "-p -S" if number is None or number >= _CLEANS_PASTES else "-p"
        try:
            leave_mode = ("copy-mode", "-q", "-t", pane_id)
            await self._ask(leave_mode, ("load-buffer", "-b", buffer, "-"), pastes(pane_id, buffer, how), text=text)
        except CommandError:
            with contextlib.suppress(CommandError):
                await self._ask(("delete-buffer", "-b", buffer))
            raise

    async def _ask(self, *commands: Command, text: str = "") -> str:
        """Run commands in one tmux process, which gets a text, and return what they print.

        Raises:
            CommandError: tmux refused it.
            TmuxStuckError: tmux does not answer.
        """
        argv = [self._settings.tmux, "-u", "-S", self._settings.socket]
        for command in commands:
            argv += [*map(_whole, command), ";"]
        with anyio.move_on_after(_ANSWER_S), os.fdopen(os.memfd_create("text"), "w+b") as file:
            # A file and no pipe, whose end would come too early if we were killed.
            file.write(text.encode())
            file.seek(0)
            done = await anyio.run_process(argv[:-1], stdin=file, check=False, env=dict(self._settings.env))
            # A server that can't be started is no failure to tmux.
            if done.returncode or (done.stderr and not done.stdout):
                raise CommandError(commands[0][0], done.stderr.decode(errors="replace").strip())
            return done.stdout.decode(errors="replace")
        reason = f"no answer in {_ANSWER_S:g} s; it may yet do what it was asked"
        raise TmuxStuckError(self._settings.socket, reason)

    def _is_running(self) -> bool:
        """Tell whether a server listens at the socket, busy or not.

        Raises:
            TmuxStuckError: That can't be told, or something else is there.
        """
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.stat(self._settings.socket).st_mode):
                raise TmuxStuckError(self._settings.socket, "it is no socket")
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


def _batches(commands: Iterable[Command]) -> Iterator[list[Command]]:
    """Return commands in groups that a client of tmux takes."""
    batch: list[Command] = []
    size = 0
    for command in commands:
        more = sum(len(word.encode()) + 1 for word in command)
        if batch and size + more > MAX_COMMAND_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(command)
        size += more
    yield batch


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
