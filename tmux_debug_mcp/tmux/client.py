"""The control mode connection to a tmux server of ours.

All calls share one connection. Each request is one command line, written whole, and tmux answers
lines in the order in which it reads them.
"""

import contextlib
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import CommandError, StorageError, TmuxGoneError, TmuxStuckError
from tmux_debug_mcp.linux import processes

from .control_mode import Block, ControlModeParser, command_line
from .supervisor import Supervisor
from .targets import Offsets

Command = Sequence[str | bytes]

# How often we send SIGCONT to a tmux that doesn't answer before we give up.
_MAX_WAKES = 5
_MAX_INLINE_CHARACTERS = 1 << 16
_READ_BYTES = 1 << 16
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ControlClient:
    """The connection to the tmux server of a supervisor.

    Attributes:
        offsets: From tmux's ids to ours.
        gone: Set when tmux has ended, or `serve` has.
        last_words: What tmux printed outside control mode: why it could not start.
        session: tmux's id of our session, such as $0. Known after `greet`, like the following.
        server_pid: The process id of the tmux server.
        version: tmux's version, such as 3.3a.
    """

    session: str
    server_pid: int
    version: str

    def __init__(self, supervisor: Supervisor, offsets: Offsets, clock: Clock) -> None:
        self._supervisor = supervisor
        self._clock = clock
        self.offsets = offsets
        self.gone = anyio.Event()
        self._parser = ControlModeParser()
        self._requests: deque[_Request] = deque()  # without an answer yet, oldest first
        self._unsent = bytearray()
        self._has_unsent = anyio.Event()
        self._memory: set[int] = set()  # the files in memory that are open
        self.last_words: list[str] = []

    @property
    def directory(self) -> Path:
        """The directory for files that tmux reads or writes. The supervisor removes it at the end.

        Make files there with `file` and `write`, which make the directory again if it was removed.
        """
        return self._supervisor.directory

    @property
    def supervisor_pid(self) -> int:
        """The process id of the supervisor, which adopts the orphans of panes."""
        return self._supervisor.pid

    def file(self, name: str) -> Path:
        """Return the path of a file for tmux to write. Raises what `Supervisor.file` does.

        If somebody removed the socket, tmux makes it again, so that people can attach. Source:
        tmux(1), "-L socket-name".
        """
        path = self._supervisor.file(name)
        if not os.path.lexists(self.directory / "tmux"):
            processes.send_signals([self.server_pid], signal.SIGUSR1)
        return path

    def write(self, name: str, data: bytes) -> Path:
        """Write a new file, mode 0600, for tmux to read, and return its path.

        Raises:
            StorageError: The file can't be written, most likely because the disk is full.
            TmuxGoneError: The directory was removed and the supervisor was ended.
        """
        path = self.file(name)
        try:
            with open(os.open(path, _NEW_FILE, 0o600), "wb") as file:
                file.write(data)
        except OSError as error:
            raise StorageError(str(self.directory), str(error.strerror)) from error
        return path

    @contextlib.contextmanager
    def memory(self) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of a file in memory, and the path by which tmux opens it.

        If tmux gives no answer in the block, it may write to that path later, where it must not
        find another file. Then the file stays open until tmux has ended.
        """
        was_gone = self.gone.is_set()
        file = os.memfd_create("tmux")
        self._memory.add(file)
        is_stuck = False
        try:
            yield file, f"/proc/{os.getpid()}/fd/{file}"
        except TmuxStuckError:
            is_stuck = True
            raise
        finally:
            if was_gone or not (is_stuck or self.gone.is_set()):
                self._memory.remove(file)
                os.close(file)

    def close_memory(self) -> None:
        """Close the files in memory that are open. tmux must have ended."""
        while self._memory:
            os.close(self._memory.pop())

    def remove(self, name: str) -> None:
        """Remove a file from the directory, if it is there."""
        if not self.directory.is_symlink():
            with contextlib.suppress(OSError):
                (self.directory / name).unlink()

    async def greet(self) -> None:
        """Wait until tmux answers, and set the attributes that depend on it.

        Raises:
            TmuxGoneError: tmux did not start.
        """
        facts = ("display-message", "-p", "#{session_id} #{pid} #{version}")
        session = ""
        while not session:  # on a busy machine tmux may answer before it has made the session
            [[line]] = await self.run(facts)
            session, pid, self.version = line.decode().split(" ", 2)
        self.session = session
        self.server_pid = int(pid)

    async def serve(self) -> None:
        """Carry commands and answers until tmux ends. Calls that still wait then fail."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_unsent)
                await self._receive()
                tasks.cancel_scope.cancel()
        finally:
            self.gone.set()
            while self._requests:
                self._requests.popleft().answered.set()

    async def run(self, *commands: Command) -> list[tuple[bytes, ...]]:
        """Run tmux commands in order, with no other client's command in between.

        A command is its words; an if-shell needs a command for both cases. Returns the lines that
        each command printed. An if-shell yields two items: its own lines, and those of the command
        that it chose.

        Raises:
            CommandError: A command failed. Those before it ran, those after it did not.
            TmuxGoneError: The server ended before it answered.
            ValueError: A word contains a NUL.
        """
        request = _Request(commands)
        # Quoting many characters takes milliseconds, so a thread does it.
        if sum(len(word) for words in commands for word in words) < _MAX_INLINE_CHARACTERS:
            line = command_line(commands)
        else:
            line = await anyio.to_thread.run_sync(command_line, commands)
        if self.gone.is_set():
            raise TmuxGoneError
        self._requests.append(request)
        self._send(line)
        wake_s = self._clock.times.wake_s
        for _ in range(_MAX_WAKES):
            with self._clock.move_on_after(wake_s):
                await request.answered.wait()
                return request.results()
            # It may be stopped. The supervisor's first two children are tmux's client and server.
            tmux = processes.children(self.supervisor_pid)[:2]
            processes.send_signals(tmux, signal.SIGCONT)
        reason = f"no answer in {_MAX_WAKES * wake_s:g} s"
        raise TmuxStuckError(f"{self.directory}/tmux", reason, TmuxStuckError.MAY_HAPPEN)

    def begin(self, *commands: Command) -> None:
        """Run tmux commands before those of later calls, and don't wait for them.

        Failures are ignored.
        """
        if not self.gone.is_set():
            self._requests.append(_Request(commands))
            self._send(command_line(commands))

    def _send(self, line: bytes) -> None:
        """Write as much of a line as the pipe takes now; `_send_unsent` writes the rest."""
        if not self._unsent:
            try:
                line = line[os.write(self._supervisor.control_in, line) :]
            except BlockingIOError:
                pass
            except OSError:  # tmux has ended, and `_receive` sees the end of its output
                return
        if line:
            self._unsent += line
            self._has_unsent.set()

    async def _send_unsent(self) -> None:
        while True:
            await self._has_unsent.wait()
            await anyio.wait_writable(self._supervisor.control_in)
            try:
                sent_bytes = os.write(self._supervisor.control_in, self._unsent)
            except OSError:  # tmux has ended, and `_receive` sees the end of its output
                return
            del self._unsent[:sent_bytes]
            if not self._unsent:
                self._has_unsent = anyio.Event()

    async def _receive(self) -> None:
        while True:
            await anyio.wait_readable(self._supervisor.control_out)
            data = os.read(self._supervisor.control_out, _READ_BYTES)
            if not data:
                return
            for event in self._parser.feed(data):
                if isinstance(event, Block):
                    is_last = self._requests[0].add(event)
                    if is_last:
                        self._requests.popleft().answered.set()
                # A line that is not a notification is the error message of a tmux that can't start.
                elif not event.startswith(b"%"):
                    self.last_words.append(event.decode(errors="replace"))


class _Request:
    """One command line that was sent, and the blocks that answer it."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.answered = anyio.Event()  # the last block has come, or no more will
        self._blocks: list[Block] = []
        self._expected: list[Command] = []  # the command that each block answers
        for words in commands:
            self._expected.append(words)
            # An if-shell prints its own block, and one for the command that it chose.
            if words[0] == "if-shell":
                self._expected.append(words)

    def add(self, block: Block) -> bool:
        """Add a block; return whether it is the last."""
        self._blocks.append(block)
        return not block.ok or len(self._blocks) == len(self._expected)

    def results(self) -> list[tuple[bytes, ...]]:
        """Return the lines of each block. Raise if a command failed, or blocks are missing."""
        for words, block in zip(self._expected, self._blocks, strict=False):
            if not block.ok:
                reason = b" ".join(block.lines).decode(errors="replace")
                raise CommandError(str(words[0]), reason)
        if len(self._blocks) < len(self._expected):
            raise TmuxGoneError
        return [block.lines for block in self._blocks]
