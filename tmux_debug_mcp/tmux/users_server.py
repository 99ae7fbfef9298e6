"""The user's own tmux server, for the toolsets `tmux` and `tabs`.

A call changes only what it asks for: we set no options, open no pipes and attach no client; each
request is a tmux process. It could be another user's server that listens at the socket, and reads
what is typed there: so we look whose the socket is before each call.
"""

import contextlib
import errno
import os
import re
import secrets
import signal
import socket
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import (
    ArgumentError,
    CommandError,
    HiddenInputError,
    KillNotAllowedError,
    PaneExitedError,
    SignalError,
    TmuxGoneError,
    TmuxStuckError,
    UntrustedSocketError,
)
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.sockets.connection import peer_of
from tmux_debug_mcp.turns import in_turns
from tmux_debug_mcp.vt.captured import captured_lines
from tmux_debug_mcp.vt.keys import KEY_MODES, codes_of
from tmux_debug_mcp.vt.steps import Keystrokes, confirmation

from .control_mode import command_line
from .targets import PaneRow, panes_format, parse
from .text import capture_last_lines, paste_commands

# A client of tmux sends at most 16 KiB of arguments: imsg(3), MAX_IMSGSIZE.
MAX_COMMAND_BYTES = 12_000

Command = Sequence[str]

_MADE_FORMAT = "#{session_id} #{window_id} #{window_index} #{pane_id} #{session_name}"
_MADE = re.compile(r"^(\$\d+) (@\d+) (\d+) (%\d+) (.*)$", re.MULTILINE)
# How often we check for the end of a server, which still listens for a few milliseconds.
_MAX_END_CHECKS = 10
# A script for sh -c: its first argument is the soft limit of open files, the rest a command.
_LIMIT_FILES = 'ulimit -S -n "$0"; exec "$@"'
# Results of connect(2): a server that is too busy to accept listens too.
_LISTENING = (0, errno.EAGAIN)
_NOT_LISTENING = (errno.ENOENT, errno.ECONNREFUSED)


class CreatedPane(NamedTuple):
    """A new pane, with our ids.

    Its command may already have ended, with an exit code or by a signal if that is known, and the
    pane may be gone with it.
    """

    session_id: str
    session_name: str
    window_id: str
    window_index: str
    pane_id: str
    is_gone: bool = False
    exit_code: int | None = None
    signal: str | None = None


class UsersServer:
    """The user's own tmux server.

    Every method may raise CommandError if tmux refuses a command, TmuxGoneError if the server has
    ended, TmuxStuckError if it does not answer, or if there can't be a socket at its path, and
    UntrustedSocketError if the server may be another user's. A server that a call starts inherits
    the settings' environment and limit of open files.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.clock = clock
        self._settings = settings
        self._path = settings.socket
        self._sessions_in_making = 0
        self._typing = anyio.Lock()

    async def rows(self) -> list[PaneRow]:
        """Return all panes, in tmux's order; none if no server runs."""
        if not self._is_listening():
            return []
        separator = secrets.token_hex(8)
        try:
            output = await self._run(("list-panes", "-a", "-F", panes_format(separator)))
        except TmuxGoneError:
            return []
        return parse(output, separator)

    async def command_of(self, row: PaneRow) -> str:
        """Return the name of a pane's foreground program, or how the pane's program ended."""
        if row.pane_dead != "1":
            return row.pane_current_command
        if row.pane_dead_status:
            return f"exited with code {row.pane_dead_status}"
        return "exited"

    async def commands_of(self, rows: Sequence[PaneRow]) -> list[str]:
        """Return what `command_of` does for each of several panes."""
        return [await self.command_of(row) for row in rows]

    async def run(self, *words: str) -> None:
        """Run a tmux command, given its words."""
        await self._run(words)

    async def rename_window(self, row: PaneRow, name: str) -> None:
        """Give a window a name, which it keeps."""
        await self._run(("rename-window", "-t", row.window_id, "--", escaped(name)))

    async def resize(self, row: PaneRow, flags: Sequence[str]) -> None:
        """Resize a pane, by flags of resize-pane."""
        await self._run(("resize-pane", "-t", row.pane_id, *flags))

    async def select_pane(self, row: PaneRow) -> None:
        """Make a pane the active pane of its window."""
        await self._run(("select-pane", "-t", row.pane_id))

    async def create_session(
        self, name: str, window_name: str | None, command: str | None
    ) -> CreatedPane:
        """Make a session, and start the server if none runs.

        Like all methods that take a command, it raises ArgumentError if that has more than 12,000
        bytes.
        """
        self._prepare_start()
        words = ["new-session", "-d", "-s", escaped(name)]
        if window_name:
            words += ["-n", escaped(window_name)]
        return await self._create(words, command)

    async def create_window(
        self, row: PaneRow, name: str | None, command: str | None, flags: Sequence[str] = ()
    ) -> CreatedPane:
        """Make a window in the session of a row, with further flags of new-window.

        It becomes the session's current window, unless a flag is `-d`.
        """
        words = ["new-window"]
        if name:
            words += ["-n", escaped(name)]
        words += [*flags, "-t", f"{row.tmux_session}:"]
        return await self._create(words, command)

    async def split(self, row: PaneRow, flags: Sequence[str], command: str | None) -> CreatedPane:
        """Split a pane, by flags of split-window. The new pane becomes the window's active pane."""
        return await self._create(["split-window", *flags, "-t", row.tmux_pane], command)

    async def _create(self, words: Sequence[str], command: str | None) -> CreatedPane:
        """Run a command that makes a pane, and return the pane.

        It starts in the settings' directory, unless the command has a flag `-c`: the last wins.
        """
        name, *flags = words
        directory = escaped(str(self._settings.cwd))
        words = [name, "-c", directory, *flags, "-P", "-F", _MADE_FORMAT]
        if command:
            size = len(command.encode())
            if size > MAX_COMMAND_BYTES:
                raise ArgumentError(
                    f"Parameter 'command' has {size} bytes; the user's tmux server takes at most "
                    f"{MAX_COMMAND_BYTES}. Put it into a script."
                )
            words += ["--", command]
        # Variables may be secret, and others can read a process's arguments.
        if "-e" in words:
            output = await self._run(("source-file", "-"), text=command_line([words]).decode())
        else:
            output = await self._run(words)
        made = _MADE.search(output)  # the user's hooks may print as well
        if made is None:
            raise CommandError(words[0], output.strip() or "it printed nothing")
        session_id, window_id, window_index, pane_id, session_name = made.groups()
        is_gone = not any(row.pane_id == pane_id for row in await self.rows())
        return CreatedPane(session_id, session_name, window_id, window_index, pane_id, is_gone)

    async def send(self, row: PaneRow, target: str, steps: Sequence[Keystrokes]) -> str:
        """Send steps in order, and return the confirmation, which names the target.

        Raises:
            PaneExitedError: The pane's program had ended when the row was read.
            HiddenInputError: A step is for a person to type. Those before it were sent.
            SignalError: A signal can't be sent.
        """
        if row.pane_dead == "1":
            raise PaneExitedError(row.pane_id, await self.command_of(row))
        # A paste that is cancelled halfway would leave a buffer, or half of the text.
        with anyio.CancelScope(shield=True):
            async with self._typing:
                for number, step in enumerate(steps):
                    self._check_not_hidden(row, step)
                    if step.signal:
                        _send_signal(row, step.signal)
                    elif not await self._type_step(row, step):
                        why_not = "its text was typed, but Enter was not: nobody reads the text"
                        return confirmation(target, steps, number, why_not)
        return confirmation(target, steps, len(steps), None)

    def _check_not_hidden(self, row: PaneRow, step: Keystrokes) -> None:
        if not self._settings.only_people_type_secrets or step.interrupts:
            return
        modes = terminals.modes_at(row.pane_tty)
        if modes and modes.hides_lines:
            raise HiddenInputError(row.pane_id, "")

    async def _type_step(self, row: PaneRow, step: Keystrokes) -> bool:
        """Type a step, with Enter as its own write where a text box would take it for a paste's.

        Return whether Enter was pressed as well: it isn't while the text is unread.
        """
        modes = terminals.modes_at(row.pane_tty)
        if step.text and step.keys and modes and modes.passes_every_key:
            await self._is_all_read(row)  # the Enter of the step before, too
            await self._type(row.pane_id, replace(step, keys=()))
            is_read = await self._is_all_read(row)
            await self.clock.sleep(self.clock.times.paste_s)
            if not is_read:
                return False
            step = step.only_keys()
        await self._type(row.pane_id, step)
        return True

    async def _is_all_read(self, row: PaneRow) -> bool:
        """Wait until the program has read what was typed, and return whether it has in time."""
        times = self.clock.times
        with self.clock.move_on_after(times.traced_s):
            while True:
                await self.clock.sleep(times.poll_s)  # tmux may still be writing
                modes = terminals.modes_at(row.pane_tty)
                if modes is None or not modes.unread_bytes:
                    return True
        return False

    async def _type(self, pane_id: str, keystrokes: Keystrokes) -> None:
        facts_format = "#{version} " + KEY_MODES
        output = await self._run(("display-message", "-p", "-t", pane_id, facts_format))
        tmux_version, _, modes = output.partition("\n")[0].partition(" ")
        text = keystrokes.text
        keys = codes_of(keystrokes.keys, modes)
        if keystrokes.is_paste:
            await self._paste(pane_id, text, is_bracketed=True, version=tmux_version)
            text = ""
        await self._paste(pane_id, text + keys, is_bracketed=False, version=tmux_version)

    async def _paste(self, pane_id: str, text: str, *, is_bracketed: bool, version: str) -> None:
        """Paste text into one pane, even if it is synchronized, and keep the user's own buffers."""
        if not text:
            return
        buffer = f"keys-{secrets.token_hex(8)}"
        load = ("load-buffer", "-b", buffer, "-")
        commands = paste_commands(pane_id, buffer, load, is_bracketed=is_bracketed, version=version)
        try:
            await self._run(*commands, text=text)
        except CommandError:
            with contextlib.suppress(CommandError):
                await self._run(("delete-buffer", "-b", buffer))
            raise

    async def capture_rows(self, row: PaneRow, start: int, end: int) -> str:
        """Return rows of the screen and its history: 0 is the screen's first, -1 the one above."""
        _, lines = await self._capture(row.pane_id, "-S", str(start), "-E", str(end))
        return "\n".join(lines)

    async def capture_screen(self, row: PaneRow) -> str:
        """Return the rows of the screen."""
        _, lines = await self._capture(row.pane_id)
        return "\n".join(lines)

    async def capture_lines(self, row: PaneRow, lines: int, *, ansi: bool = False) -> str:
        """Return the last lines, in colour with `ansi`; a wrapped line counts as one."""

        async def captured(rows: int) -> tuple[list[str], bool]:
            (is_alternate, history_rows), found = await self._capture(
                row.pane_id, "-J", "-S", f"-{rows}", ansi=ansi
            )
            if is_alternate:  # which has no history: -S would show the main screen's
                _, found = await self._capture(row.pane_id, "-J", ansi=ansi)
            return found, is_alternate or rows >= history_rows

        return await capture_last_lines(captured, lines)

    async def _capture(
        self, pane_id: str, *flags: str, ansi: bool = False
    ) -> tuple[tuple[bool, int], list[str]]:
        """Return `alternate_on` and `history_size` of a pane, and what capture-pane prints."""
        facts_format = "#{alternate_on} #{history_size}"
        output = await self._run(
            ("display-message", "-p", "-t", pane_id, facts_format),
            ("capture-pane", "-p", "-e", "-t", pane_id, *flags),
        )
        facts, *lines = await in_turns(captured_lines(output.encode(), ansi=ansi))
        is_alternate, history_rows = facts.split()
        return (is_alternate == "1", int(history_rows)), lines

    async def kill(self, kind: str, row: PaneRow) -> None:
        """End a `session`, `window` or `pane`.

        Raises:
            KillNotAllowedError: The server was started without --allow-kill.
        """
        if not self._settings.allows_kill:
            raise KillNotAllowedError
        ids = {"session": row.session_id, "window": row.window_id, "pane": row.pane_id}
        await self._run((f"kill-{kind}", "-t", ids[kind]))

    async def _run(self, *commands: Command, text: str = "") -> str:
        """Run commands in order, in one tmux process, and return what they print.

        A server that a new-session starts belongs to the user: it does not end with us. The text is
        the standard input of the process. After CommandError, the commands before the failed one
        have run; after TmuxStuckError, they may still run later.
        """
        argv = self._argv(commands)
        env = dict(self._settings.env)
        times = self.clock.times
        makes_session = commands[0][0] == "new-session" and self._settings.is_subreaper
        with (
            self._orphans_go_to_init() if makes_session else contextlib.nullcontext(),
            self.clock.move_on_after(times.answer_s),
            os.fdopen(os.memfd_create("text"), "w+b") as file,
        ):
            # Not a pipe: if we were killed while writing, tmux would act on half of the text.
            file.write(text.encode())
            file.seek(0)
            completed = await anyio.run_process(argv, stdin=file, check=False, env=env)
            output = completed.stdout.decode(errors="replace")
            errors = completed.stderr.decode(errors="replace")
            # If tmux can't start a server, it prints an error but exits with 0.
            if completed.returncode or (errors and not output):
                for _ in range(_MAX_END_CHECKS):
                    if not self._is_listening():
                        raise TmuxGoneError
                    await self.clock.sleep(times.poll_s)
                raise CommandError(commands[0][0], errors.strip())
            return output
        reason = f"no answer in {times.answer_s:g} s"
        raise TmuxStuckError(self._path, reason, TmuxStuckError.MAY_HAPPEN)

    @contextlib.contextmanager
    def _orphans_go_to_init(self) -> Iterator[None]:
        """Stop being a subreaper during the block, so that init adopts a new tmux server.

        Blocks of several calls may overlap; the last to end makes us a subreaper again.
        """
        if self._sessions_in_making == 0:
            processes.become_subreaper(is_one=False)
        self._sessions_in_making += 1
        try:
            yield
        finally:
            self._sessions_in_making -= 1
            if self._sessions_in_making == 0:
                processes.become_subreaper()

    def _argv(self, commands: Sequence[Command]) -> list[str]:
        argv = [self._settings.tmux, "-u", "-S", self._path]
        for number, command in enumerate(commands):
            if number > 0:
                argv.append(";")
            argv += map(_escaped_semicolon, command)
        if commands[0][0] == "new-session":
            # The server inherits this limit: ours is higher than programs in panes expect.
            return ["/bin/sh", "-c", _LIMIT_FILES, self._settings.open_files, *argv]
        return argv

    def _prepare_start(self) -> None:
        """Check that a server can be started at the socket.

        Make its directory if that is tmux's own for this user, such as /tmp/tmux-UID.
        """
        is_listening = self._is_listening()
        directory = os.path.dirname(self._path)
        if self._is_tmuxs_own(directory) and os.path.isdir(os.path.dirname(directory)):
            os.makedirs(directory, 0o700, exist_ok=True)
        if not os.path.isdir(directory):
            raise TmuxStuckError(self._path, "there is no such directory", "")
        self._check_owners()
        if not is_listening and os.stat(directory).st_mode & stat.S_IWOTH:
            self._distrust("others can write in its directory, and could make the socket first")

    def _is_tmuxs_own(self, directory: str) -> bool:
        return os.path.basename(directory) == f"tmux-{os.geteuid()}"

    def _check_owners(self) -> None:
        """Check that it is a socket, and that no other user can have made it.

        tmux itself checks no more than its own directory, and that only without -S.

        Raises:
            TmuxStuckError: It is not a socket: tmux would remove what is there.
            UntrustedSocketError: Another user can.
        """
        own = os.geteuid()
        path = os.path.dirname(self._path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            directory = os.stat(path)
            others_write = stat.S_IWOTH
            if directory.st_gid != os.getegid():
                others_write |= stat.S_IWGRP
            if directory.st_uid not in (0, own):
                self._distrust(f"its directory belongs to uid {directory.st_uid}")
            if directory.st_mode & others_write and not directory.st_mode & stat.S_ISVTX:
                self._distrust("others can write in its directory")
            is_open = os.path.islink(path) or directory.st_mode & stat.S_IRWXO
            if self._is_tmuxs_own(path) and (is_open or directory.st_uid != own):
                self._distrust(f"{path} is not a directory of this user alone, as tmux needs it")
            made = os.stat(self._path)
            if not stat.S_ISSOCK(made.st_mode):
                raise TmuxStuckError(self._path, "not a socket", "")
            if made.st_uid != own:
                self._distrust(f"the socket belongs to uid {made.st_uid}")
            if made.st_mode & stat.S_IWOTH:
                self._distrust("others can connect to the socket")

    def _distrust(self, reason: str) -> NoReturn:
        raise UntrustedSocketError(self._path, reason)

    def _is_listening(self) -> bool:
        """Return whether a server of this user listens at the socket, busy or not."""
        with contextlib.suppress(OSError):  # connecting tells what is wrong
            self._check_owners()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)  # noqa: FBT003  its own signature
            try:
                number = connection.connect_ex(self._path)
            except OSError:  # a path that is too long for a socket
                number = errno.ENAMETOOLONG
            if number == 0:
                _, user = peer_of(connection)
                if user != os.geteuid():
                    self._distrust(f"its server belongs to uid {user}")
        if number in _LISTENING:
            return True
        if number in _NOT_LISTENING:
            return False
        raise TmuxStuckError(self._path, os.strerror(number), "")


def _send_signal(row: PaneRow, name: str) -> None:
    """Send a signal to the program that a pane's shell started."""
    leader = processes.read_stat(int(row.pane_pid))
    if leader is None or leader.tpgid <= 0 or not terminals.is_at(row.pane_tty, leader.tty):
        raise SignalError(name, "the processes of that pane can't be seen from here")
    if leader.tpgid == leader.pgrp:
        reason = "only the pane's own program runs there, and ending it would close the pane"
        raise SignalError(name, reason)
    try:
        os.killpg(leader.tpgid, signal.Signals[name])
    except ProcessLookupError:
        raise SignalError(name, "the program has just ended") from None
    except PermissionError:
        raise SignalError(name, "the program belongs to another user") from None


def escaped(name: str) -> str:
    """Return a name escaped for an argument in which tmux expands formats.

    Source: tmux(1), "FORMATS": `##` is a `#`. But tmux keeps `#[`, so we must not double that.
    """
    return re.sub(r"#(?!\[)", "##", name)


def _escaped_semicolon(word: str) -> str:
    r"""Return a word with `\;` for a semicolon at its end, which would end the command.

    Source: tmux(1), "COMMAND PARSING AND EXECUTION".
    """
    if word.endswith(";"):
        return word[:-1] + "\\;"
    return word
