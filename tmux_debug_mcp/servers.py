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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import anyio

from . import linux
from .capturing import capture, capture_rows, first_rows, is_enough, more_rows
from .control_mode import command_line, version
from .creation import NewPane, Place, Settings, check, interactive_shell
from .display import take_size
from .errors import (
    ArgumentError,
    CommandError,
    KillNotAllowedError,
    PaneExitedError,
    PaneNotFoundError,
    TmuxGoneError,
    TmuxStuckError,
)
from .keyboard import KEY_MODES, pastes
from .keys import Keystrokes, encoded
from .panes import Pane, State
from .screen import captured_lines
from .sending import send_one
from .session import Session
from .targets import PaneRow, panes_format, parse
from .transcript import COLUMNS, ROWS
from .waiting import EARLY_DEATH_S, rest

Command = Sequence[str]

# A tmux server answers within milliseconds. One that is stopped never does.
_ANSWER_S = 10.0
# A server that is about to end still listens for a moment.
_ENDING_LOOKS = 10
_LOOK_AGAIN_S = 0.005
# A client of tmux takes 16 KiB of commands.
MAX_COMMAND_BYTES = 12_000
_MADE = re.compile(r"^(\$\d+) (@\d+) (\d+) (%\d+) (.*)$", re.MULTILINE)
# Since this version paste-buffer rewrites control characters unless told not to.
_CLEANS_PASTES = (3, 7)


class Made(NamedTuple):
    """A pane that was made, by our ids.

    Attributes:
        is_gone: Its command has ended since, and the pane with it.
    """

    session_id: str
    session_name: str
    window_id: str
    window_index: str
    pane_id: str
    is_gone: bool = False


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

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> Made:
        """Make a session."""

    async def create_window(self, row: PaneRow, name: str | None, command: str | None) -> Made:
        """Make a window in the session of a row."""

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> Made:
        """Split a pane."""

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        """Type and press, whole and in order."""

    async def read_rows(self, row: PaneRow, start: int, end: int) -> str:
        """Return rows of the screen and its history, 0 being the screen's first."""

    async def read_lines(self, row: PaneRow, lines: int) -> str:
        """Return the last lines; one that the terminal wrapped is one."""

    async def read_screen(self, row: PaneRow) -> str:
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
        rows = parse("\n".join(line.decode(errors="replace") for line in lines), separator, client.offsets)
        ours = {pane.target for pane in self._session.panes if pane.client is client}
        return [_without_us(row, client.session) for row in rows if row.tmux_pane in ours]

    async def command_of(self, row: PaneRow) -> str:
        try:
            state = await self._pane(row).state()
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
        await self.run("resize-window" if is_window else "resize-pane", "-t", row.tmux_pane, *flags)
        await self._take_sizes()

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> Made:
        client = await self._session.connected()
        keeper = self._session.name
        if name == keeper:
            raise CommandError("new-session", f"duplicate session: {name}")
        # The name that tmux makes of one is told by tmux alone. So a session of ours has it for a moment, which fails
        # before anything is started; and the new one has another name at first.
        probe = ("rename-session", "-t", client.session, "--", escaped(name))
        back = ("rename-session", "-t", client.session, "--", keeper)
        first = secrets.token_hex(8)
        title = escaped(window_name or _title(self._session.settings, command))
        words = ["new-session", "-d", "-s", first, "-x", str(COLUMNS), "-y", str(ROWS), "-n", title]
        rename = ("rename-session", "-t", f"={first}", "--", escaped(name))
        undo = ("kill-session", "-t", f"={first}")
        try:
            return await self._create(name, command, Place(words, f"={first}:", (probe, back), rename, undo))
        except CommandError as error:
            raise CommandError("new-session", error.reason) from error

    async def create_window(self, row: PaneRow, name: str | None, command: str | None) -> Made:
        title = escaped(name or _title(self._session.settings, command))
        words = ["new-window", "-n", title, "-t", f"{row.tmux_session}:"]
        return await self._create(name, command, Place(words, f"{row.tmux_session}:"))

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> Made:
        place = Place(["split-window", *flags, "-t", row.tmux_pane], row.tmux_window)
        made = await self._create(None, command, place)
        await self._take_sizes()
        return made

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        await send_one(self._pane(row), keystrokes)

    async def read_rows(self, row: PaneRow, start: int, end: int) -> str:
        return await capture_rows(self._pane(row), start, end)

    async def read_lines(self, row: PaneRow, lines: int) -> str:
        return await capture(self._pane(row), lines)

    async def read_screen(self, row: PaneRow) -> str:
        return await capture_rows(self._pane(row), 0, int(row.pane_height) - 1)

    async def kill(self, kind: str, row: PaneRow) -> None:
        for other in await self.rows():
            if _is_in(other, kind, row):
                await self._session.kill(self._pane(other))
        await self._take_sizes()

    async def _create(self, name: str | None, command: str | None, place: Place) -> Made:
        shell = interactive_shell(self._session.settings)
        new = NewPane(command or shell, name, program=() if command else (shell,), place=place)
        check(new)
        pane = await self._session.create(new)
        await rest(pane, EARLY_DEATH_S)
        for row in await self.rows():
            if row.tmux_pane == pane.target:
                return Made(row.session_id, row.session_name, row.window_id, row.window_index, row.pane_id)
        raise PaneNotFoundError(name or pane.id)  # it was killed meanwhile

    async def _take_sizes(self) -> None:
        """Take note of what size all panes have, and wait until their terminals have it."""
        for row in await self.rows():
            with contextlib.suppress(PaneNotFoundError):  # it was killed meanwhile
                await take_size(self._pane(row), int(row.pane_width), int(row.pane_height))

    def _pane(self, row: PaneRow) -> Pane:
        client = self._session.client
        for pane in self._session.panes:
            if pane.target == row.tmux_pane and pane.client is client:
                return pane
        raise PaneNotFoundError(row.pane_id)


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
        try:
            return parse(await self._ask(("list-panes", "-a", "-F", panes_format(separator))), separator)
        except TmuxGoneError:
            return []

    async def command_of(self, row: PaneRow) -> str:
        if row.pane_dead == "1":
            return f"exited with code {row.pane_dead_status}" if row.pane_dead_status else "exited"
        return row.pane_current_command

    async def run(self, *words: str) -> None:
        await self._ask(words)

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        await self._ask(("resize-pane", "-t", row.pane_id, *flags))

    async def create_session(self, name: str, window_name: str | None, command: str | None) -> Made:
        self._is_running()  # tmux itself would remove what is in the place of its socket
        self._make_directory()
        title = ["-n", escaped(window_name)] if window_name else []
        cwd = ["-c", escaped(str(self._settings.cwd))]
        # A server that this starts is the user's from then on, and not ours to end.
        with _left_to_init() if self._settings.adopts else contextlib.nullcontext():
            return await self._create(["new-session", "-d", "-s", escaped(name), *title, *cwd], command)

    async def create_window(
        self, row: PaneRow, name: str | None, command: str | None, flags: Sequence[str] = ()
    ) -> Made:
        title = ["-n", escaped(name)] if name else []
        return await self._create(["new-window", "-d", *title, *flags, "-t", f"{row.tmux_session}:"], command)

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> Made:
        return await self._create(["split-window", "-d", *flags, "-t", row.tmux_pane], command)

    async def send(self, row: PaneRow, keystrokes: Keystrokes) -> None:
        if row.pane_dead == "1":
            raise PaneExitedError(row.pane_id, await self.command_of(row))
        with anyio.CancelScope(shield=True):
            async with self._typing:
                facts = await self._ask(("display-message", "-p", "-t", row.pane_id, "#{version} " + KEY_MODES))
                number, *modes = facts.partition("\n")[0].split(" ")  # of a pane that is gone there are none
                is_old = (version(number) or _CLEANS_PASTES) < _CLEANS_PASTES
                how = "" if is_old else " -S"
                keys = encoded(keystrokes.keys, cursor_mode=modes[:1] == ["1"], keypad_mode=modes[1:] == ["1"])
                if keystrokes.is_paste:
                    await self._paste(row.pane_id, keystrokes.text, "-p" + how)
                    await self._paste(row.pane_id, keys, "-r" + how)
                else:
                    await self._paste(row.pane_id, keystrokes.text + keys, "-r" + how)

    async def read_rows(self, row: PaneRow, start: int, end: int) -> str:
        return "\n".join((await self._captured(row.pane_id, "-S", str(start), "-E", str(end)))[1:])

    async def read_lines(self, row: PaneRow, lines: int, *, ansi: bool = False) -> str:
        rows = first_rows(lines)
        while True:
            [facts, *found] = await self._captured(row.pane_id, "-J", "-S", f"-{rows}", ansi=ansi)
            is_alternate, history_rows = map(int, facts.split())
            if is_alternate:  # it has no history
                found = (await self._captured(row.pane_id, "-J", ansi=ansi))[1:]
            if is_alternate or rows >= history_rows or is_enough(found, lines):
                return "\n".join(found[-lines:])
            rows = more_rows(rows, lines)

    async def read_screen(self, row: PaneRow) -> str:
        return "\n".join((await self._captured(row.pane_id))[1:])

    async def kill(self, kind: str, row: PaneRow) -> None:
        if not self._settings.allows_kill:
            raise KillNotAllowedError
        target = {"session": row.session_id, "window": row.window_id, "pane": row.pane_id}[kind]
        await self._ask((f"kill-{kind}", "-t", target))

    async def _create(self, words: Sequence[str], command: str | None) -> Made:
        if command and len(command.encode()) > MAX_COMMAND_BYTES:
            raise ArgumentError(
                f"Parameter 'command' has {len(command.encode())} bytes; on a user's tmux server at most "
                f"{MAX_COMMAND_BYTES}. Put it into a script."
            )
        facts = "#{session_id} #{window_id} #{window_index} #{pane_id} #{session_name}"
        words = [*words, "-P", "-F", facts, *(["--", command] if command else [])]
        # Arguments can be read by other users, and variables may be secret.
        printed = await (self._source(words) if "-e" in words else self._ask(words))
        found = _MADE.search(printed)  # hooks may print, too
        if found is None:
            raise CommandError(words[0], printed.strip() or "it printed nothing")
        session_id, window_id, window_index, pane_id, session_name = found.groups()
        is_gone = not any(row.pane_id == pane_id for row in await self.rows())
        return Made(session_id, session_name, window_id, window_index, pane_id, is_gone)

    async def _captured(self, pane_id: str, *flags: str, ansi: bool = False) -> list[str]:
        """Return whether the screen is the alternate one, with the number of rows of the history, and what it shows."""
        facts = ("display-message", "-p", "-t", pane_id, "#{alternate_on} #{history_size}")
        captured = await self._ask(facts, ("capture-pane", "-p", "-e", "-t", pane_id, *flags))
        return captured_lines(captured.encode(), ansi=ansi)

    async def _paste(self, pane_id: str, text: str, how: str) -> None:
        """Paste text by flags of paste-buffer; the user's own buffers stay as they are.

        It goes to no other pane that keys are sent to as well, nor to a mode that the user is in, which is left for a
        bracketed paste alone.
        """
        if not text:
            return
        buffer = f"keys-{secrets.token_hex(8)}"
        try:
            await self._ask(("load-buffer", "-b", buffer, "-"), *pastes(pane_id, buffer, how), text=text)
        except CommandError:
            with contextlib.suppress(CommandError):
                await self._ask(("delete-buffer", "-b", buffer))
            raise

    async def _source(self, words: Command) -> str:
        """Run a command that tmux reads from its standard input."""
        return await self._ask(("source-file", "-"), text=command_line([words]).decode())

    async def _ask(self, *commands: Command, text: str = "") -> str:
        """Run commands in one tmux process, which gets a text, and return what they print.

        Raises:
            CommandError: tmux refused it.
            TmuxStuckError: tmux does not answer.
        """
        # A server that this starts, and its panes, may have as many files open as programs usually may.
        limited = ["/bin/sh", "-c", 'ulimit -S -n "$0"; exec "$@"', self._settings.open_files]
        argv = limited if commands[0][0] == "new-session" else []
        argv = [*argv, self._settings.tmux, "-u", "-S", self._settings.socket]
        for command in commands:
            argv += [*map(_whole, command), ";"]
        with anyio.move_on_after(_ANSWER_S), os.fdopen(os.memfd_create("text"), "w+b") as file:
            # A file and no pipe, whose end would come too early if we were killed.
            file.write(text.encode())
            file.seek(0)
            done = await anyio.run_process(argv[:-1], stdin=file, check=False, env=dict(self._settings.env))
            # A server that can't be started is no failure to tmux.
            if done.returncode or (done.stderr and not done.stdout):
                await self._check_ended()
                raise CommandError(commands[0][0], done.stderr.decode(errors="replace").strip())
            return done.stdout.decode(errors="replace")
        reason = f"no answer in {_ANSWER_S:g} s; it may yet do what it was asked"
        raise TmuxStuckError(self._settings.socket, reason)

    def _make_directory(self) -> None:
        """Make the directory that tmux has its sockets in, as it does itself where it is given a name.

        Raises:
            TmuxStuckError: There is no such directory.
        """
        directory, uid = os.path.dirname(self._settings.socket), os.getuid()
        if os.path.basename(directory) == f"tmux-{uid}" and os.path.isdir(os.path.dirname(directory)):
            os.makedirs(directory, 0o700, exist_ok=True)
        if not os.path.isdir(directory):
            raise TmuxStuckError(self._settings.socket, "there is no such directory")

    async def _check_ended(self) -> None:
        """See that the server has not ended, which it takes some milliseconds for.

        Raises:
            TmuxGoneError: It has.
        """
        for _ in range(_ENDING_LOOKS):
            if not self._is_running():
                raise TmuxGoneError
            await anyio.sleep(_LOOK_AGAIN_S)

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


def _without_us(row: PaneRow, session: str) -> PaneRow:
    """Return a row that does not count our own connection, which is attached to a session of ours."""
    if row.tmux_session != session:
        return row
    return replace(row, session_attached=str(int(row.session_attached) - 1))


def _ending(state: State) -> str:
    if state.is_lost:
        return "lost"
    return f"killed by {state.signal}" if state.signal else f"exited with code {state.exit_code}"
