"""Running tmux commands on the user's own tmux server: one tmux process for each request.

No client of ours stays attached, so the server is the same before and after, apart from what was
asked for.
"""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator, Sequence

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import CommandError, TmuxGoneError, TmuxStuckError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings

from .control_mode import command_line

Command = Sequence[str]

# A server that is ending still listens for a few milliseconds: how often that is checked.
_MAX_END_CHECKS = 10
# A script for sh -c: its first argument is the soft limit of open files, the rest a command.
_LIMIT_FILES = 'ulimit -S -n "$0"; exec "$@"'
# Results of connect(2): a server that is too busy to accept listens too.
_LISTENING = (0, errno.EAGAIN)
_NOT_LISTENING = (errno.ENOENT, errno.ECONNREFUSED)


class UsersSocket:
    """The socket of the user's own tmux server.

    Args:
        settings: The configuration; of it the socket, the tmux program, and what a server that a
            request starts inherits: the environment and the limit of open files.
        clock: The engine's clock.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._path = settings.socket
        self._sessions_in_making = 0

    async def run(self, *commands: Command, text: str = "") -> str:
        """Run commands in order, in one tmux process, and return what they print.

        A server that a new-session starts belongs to the user: it does not end with us.

        Args:
            commands: The words of each command.
            text: The standard input of the process.

        Raises:
            CommandError: A command failed. Those before it were done.
            TmuxGoneError: The server has ended, or none was running.
            TmuxStuckError: The server does not answer. The commands may still be done later.
        """
        if commands[0][0] == "new-session" and self._settings.is_subreaper:
            with self._orphans_go_to_init():
                return await self._run(commands, text)
        return await self._run(commands, text)

    @contextlib.contextmanager
    def _orphans_go_to_init(self) -> Iterator[None]:
        """Stop being a subreaper for the time of the block, so that init adopts a new tmux server.

        Blocks of several calls may overlap; the last one to end makes us a subreaper again.
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

    async def _run(self, commands: Sequence[Command], text: str) -> str:
        argv = self._argv(commands)
        env = dict(self._settings.env)
        answer_s = self._clock.times.answer_s
        with (
            self._clock.move_on_after(answer_s),
            os.fdopen(os.memfd_create("text"), "w+b") as file,
        ):
            # Not a pipe: if we were killed while writing, tmux would act on half of the text.
            file.write(text.encode())
            file.seek(0)
            completed = await anyio.run_process(argv, stdin=file, check=False, env=env)
            output = completed.stdout.decode(errors="replace")
            errors = completed.stderr.decode(errors="replace")
            # tmux exits with 0 where it can't start a server, and only prints an error.
            if completed.returncode or (errors and not output):
                await self._check_not_ended()
                raise CommandError(commands[0][0], errors.strip())
            return output
        reason = f"no answer in {answer_s:g} s; it may yet do what it was asked"
        raise TmuxStuckError(self._path, reason)

    async def run_hidden(self, words: Command) -> str:
        """Run a command that must not appear in a process's arguments, which other users can read.

        Raises:
            ToolError: As `run` does.
        """
        return await self.run(("source-file", "-"), text=command_line([words]).decode())

    def prepare_start(self) -> None:
        """Check that a server can be started at the socket, and make the directory for it.

        Raises:
            TmuxStuckError: There can't be a socket at the path.
        """
        self.is_listening()  # raises if the path is not a socket: tmux would remove what is there
        self._make_directory()

    def is_listening(self) -> bool:
        """Tell whether a server listens at the socket, busy or not.

        Raises:
            TmuxStuckError: The path is not a socket, or we may not connect to it.
        """
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.stat(self._path).st_mode):
                raise TmuxStuckError(self._path, "it is no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)  # noqa: FBT003  its own signature
            try:
                number = connection.connect_ex(self._path)
            except OSError:  # a path that is too long for a socket
                number = errno.ENAMETOOLONG
        if number in _LISTENING:
            return True
        if number in _NOT_LISTENING:
            return False
        raise TmuxStuckError(self._path, os.strerror(number))

    def _argv(self, commands: Sequence[Command]) -> list[str]:
        """Return the command line of the tmux process that runs commands."""
        argv = [self._settings.tmux, "-u", "-S", self._path]
        for number, command in enumerate(commands):
            if number > 0:
                argv.append(";")
            argv += map(_escaped_semicolon, command)
        if commands[0][0] == "new-session":
            # The server inherits this limit: ours is higher than programs in panes expect.
            return ["/bin/sh", "-c", _LIMIT_FILES, self._settings.open_files, *argv]
        return argv

    async def _check_not_ended(self) -> None:
        """Check that a server still listens after a command that failed.

        Raises:
            TmuxGoneError: None does.
            TmuxStuckError: As `is_listening` does.
        """
        for _ in range(_MAX_END_CHECKS):
            if not self.is_listening():
                raise TmuxGoneError
            await self._clock.sleep(self._clock.times.poll_s)

    def _make_directory(self) -> None:
        """Make the directory of the socket if it is tmux's own for this user, /tmp/tmux-UID.

        Raises:
            TmuxStuckError: The directory does not exist, and is not that one.
        """
        directory = os.path.dirname(self._path)
        uid = os.getuid()
        is_tmuxs_own = os.path.basename(directory) == f"tmux-{uid}"
        if is_tmuxs_own and os.path.isdir(os.path.dirname(directory)):
            os.makedirs(directory, 0o700, exist_ok=True)
        if not os.path.isdir(directory):
            raise TmuxStuckError(self._path, "there is no such directory")


def _escaped_semicolon(word: str) -> str:
    r"""Return a word with `\;` for a semicolon at its end, which would end the command.

    Source: tmux(1), "COMMAND PARSING AND EXECUTION".
    """
    if word.endswith(";"):
        return word[:-1] + "\\;"
    return word
