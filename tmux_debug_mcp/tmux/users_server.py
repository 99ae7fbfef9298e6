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
from typing import NamedTuple

import anyio

from tmux_debug_mcp.errors import (
    ArgumentError,
    CommandError,
    KillNotAllowedError,
    PaneExitedError,
    TmuxGoneError,
    TmuxStuckError,
)
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.key_codes import encoded
from tmux_debug_mcp.vt.keys import Keystrokes
from tmux_debug_mcp.vt.screen import captured_lines

from .captures import first_rows, is_enough, more_rows
from .control_mode import command_line, version
from .pasting import KEY_MODES, pastes
from .targets import PaneRow, panes_format, parse

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


class UsersServer:
    """The user's own tmux server.

    Args:
        settings: With its socket, and the environment that sessions of a server that we start get.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._typing = anyio.Lock()

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
        with _left_to_init() if self._settings.is_subreaper else contextlib.nullcontext():
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
    processes.become_subreaper(is_one=False)
    try:
        yield
    finally:
        processes.become_subreaper()


def escaped(name: str) -> str:
    """Return a name so that tmux, which expands formats in names, takes it as it is."""
    parts = name.split("#")
    text = parts[0]
    for part in parts[1:]:
        text += ("#" if part.startswith("[") else "##") + part
    return text


def _whole(word: str) -> str:
    """Return an argument so that tmux, for which a semicolon at the end ends a command, takes it as it is."""
    return word[:-1] + "\\;" if word.endswith(";") else word
