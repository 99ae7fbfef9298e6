"""The control mode connection to a tmux server.

One connection serves all calls at once: a call writes its line whole, and tmux answers lines in order.
"""

import contextlib
import itertools
import os
import signal
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from tmux_debug_mcp.errors import CommandError, TmuxGoneError, TmuxStuckError
from tmux_debug_mcp.linux import processes

from . import control_mode
from .control_mode import Block, Notification, Parser, command_line
from .supervisor import Supervisor
from .targets import Offsets

Command = Sequence[str | bytes]

# tmux answers within milliseconds. One that was stopped is sent SIGCONT after this long, several times.
_WAKE_S = 3.0
_WAKES = 5
# A command of more takes milliseconds to be written down.
_LONG_CHARACTERS = 1 << 16
# Since this version paste-buffer rewrites control characters unless told not to.
_CLEANS_PASTES = (3, 7)


class _Request:
    """One line on its way: how many blocks it still wants, and those it has.

    Attributes:
        commands: The command of each block that is to come.
    """

    def __init__(self, commands: Sequence[Command]) -> None:
        # An if-shell answers for itself, and then for what it chose.
        self.commands = [words for words in commands for _ in range(2 if words[0] == "if-shell" else 1)]
        self.blocks: list[Block] = []
        self.answered = anyio.Event()

    def add(self, block: Block) -> bool:
        """Take a block; tell whether it was the last one."""
        self.blocks.append(block)
        return not block.ok or len(self.blocks) == len(self.commands)


class ControlClient:
    """The connection to the tmux server of a warden.

    Attributes:
        gone: Set when tmux has ended, or `serve` has.
        session: tmux's id of our session, such as $0. Known after `greet`, like the rest.
        server_pid: The tmux server's process.
        version: tmux's version, such as 3.3a.
        cleans_pastes: Whether paste-buffer rewrites control characters unless told not to.
        offsets: From tmux's ids to ours.
    """

    session: str
    server_pid: int
    version: str
    cleans_pastes: bool

    def __init__(self, supervisor: Supervisor, offsets: Offsets) -> None:
        self._supervisor = supervisor
        self.offsets = offsets
        self._parser = Parser()
        self._waiting: deque[_Request] = deque()
        self._unsent = bytearray()
        self._has_unsent = anyio.Event()
        self._last_words: list[str] = []
        self.gone = anyio.Event()

    @property
    def directory(self) -> Path:
        """Where files may be put for tmux to read and write, by `file` and `write`; it goes with the server."""
        return self._supervisor.directory

    def file(self, name: str) -> Path:
        """Return the path of a file for tmux to write.

        Raises:
            StorageError: The directory was removed, and can't be made again.
        """
        path = self._supervisor.file(name)
        self._mend_socket()
        return path

    def write(self, name: str, data: bytes) -> Path:
        """Write a new file for tmux to read, which no other user can, and return its path.

        Raises:
            StorageError: There is no room for it.
        """
        path = self._supervisor.write(name, data)
        self._mend_socket()
        return path

    def remove(self, name: str) -> None:
        """Remove a file that was written there, if it is."""
        if not self.directory.is_symlink():
            with contextlib.suppress(OSError):
                (self.directory / name).unlink()

    def _mend_socket(self) -> None:
        """Have tmux make its socket again where somebody has removed it, so that people can attach."""
        if not os.path.lexists(self.directory / "tmux"):
            processes.send_signals([self.server_pid], signal.SIGUSR1)

    @property
    def supervisor_pid(self) -> int:
        """The process that orphans of panes fall to."""
        return self._supervisor.pid

    async def greet(self) -> None:
        """Wait until tmux answers, and learn about it.

        Raises:
            TmuxGoneError: It did not start.
        """
        session = ""
        while not session:  # on a busy machine tmux may answer before the session is there
            [[line]] = await self.run(("display-message", "-p", "#{session_id} #{pid} #{version}"))
            session, pid, self.version = line.decode().split(" ", 2)
        self.session, self.server_pid = session, int(pid)
        self.cleans_pastes = self.is_at_least(_CLEANS_PASTES)

    def is_at_least(self, version: tuple[int, int]) -> bool:
        """Tell whether this tmux is of this version or newer."""
        number = control_mode.version(self.version)
        return number is None or number >= version

    async def serve(self) -> None:
        """Carry commands and answers until tmux ends; then every call that still waits fails."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_unsent)
                await self._read()
                tasks.cancel_scope.cancel()
        finally:
            self.gone.set()
            while self._waiting:
                self._waiting.popleft().answered.set()

    async def run(self, *commands: Command) -> list[tuple[bytes, ...]]:
        """Run tmux commands, each given as its words, in order and without anything between them.

        Returns:
            The lines that each command printed; behind those of an if-shell, which must have a command for both cases,
            those of the one that it chose.

        Raises:
            CommandError: A command failed; the ones before it are done, the ones after it are not.
            TmuxGoneError: The server ended before it answered.
            TmuxStuckError: It does not answer.
            ValueError: A word has a NUL.
        """
        request = _Request(commands)
        if sum(map(len, itertools.chain(*commands))) < _LONG_CHARACTERS:
            line = command_line(commands)
        else:
            line = await anyio.to_thread.run_sync(command_line, commands)  # while others are served
        if self.gone.is_set():
            raise TmuxGoneError
        self._waiting.append(request)
        self._write(line)
        await self._wait_for(request)
        for words, block in zip(request.commands, request.blocks, strict=False):
            if not block.ok:
                raise CommandError(str(words[0]), b" ".join(block.lines).decode(errors="replace"))
        if len(request.blocks) < len(request.commands):
            raise TmuxGoneError
        return [block.lines for block in request.blocks]

    async def _wait_for(self, request: _Request) -> None:
        """Wait for the answer; a tmux that was stopped is told to go on.

        Raises:
            TmuxStuckError: There is none.
        """
        for _ in range(_WAKES):
            with anyio.move_on_after(_WAKE_S):
                await request.answered.wait()
                return
            # Its first two children are tmux's client and server.
            processes.send_signals(processes.children(self.supervisor_pid)[:2], signal.SIGCONT)
        raise TmuxStuckError(f"{self.directory}/tmux", f"no answer in {_WAKES * _WAKE_S:g} s")

    @property
    def last_words(self) -> str:
        """What tmux said that was no answer: why it could not start."""
        return " ".join(self._last_words)

    def _write(self, line: bytes) -> None:
        if not self._unsent:
            try:
                line = line[os.write(self._supervisor.control_in, line) :]
            except BlockingIOError:
                pass
            except OSError:
                return  # the reader notices too
        if line:
            self._unsent += line
            self._has_unsent.set()

    async def _send_unsent(self) -> None:
        while True:
            await self._has_unsent.wait()
            await anyio.wait_writable(self._supervisor.control_in)
            try:
                del self._unsent[: os.write(self._supervisor.control_in, self._unsent)]
            except OSError:
                return  # the reader notices too
            if not self._unsent:
                self._has_unsent = anyio.Event()

    async def _read(self) -> None:
        while True:
            await anyio.wait_readable(self._supervisor.control_out)
            data = os.read(self._supervisor.control_out, 1 << 16)
            if not data:
                return
            for event in self._parser.feed(data):
                self._take(event)

    def _take(self, event: Block | Notification) -> None:
        if isinstance(event, Notification):
            # What is no notification is an error message of a tmux that can't start.
            if not event.line.startswith(b"%"):
                self._last_words.append(event.line.decode(errors="replace"))
        elif self._waiting[0].add(event):
            self._waiting.popleft().answered.set()
