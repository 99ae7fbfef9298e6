"""A job: a command that the shell in a pane runs, from a file or from what is typed.

A job from a file has two. One contains the command as it is. The other is a script that runs the
command and prints two marks: one where the output begins, and one with the exit code where it ends.
We type one short line that makes the shell read the script.

The shell keeps the script open until it is done with it. That distinguishes a shell that gave the
command up from a program in the command that asks for input. The script empties its own file first,
so the command can't read the nonce of its end mark there. An empty script also shows that the shell
has begun the command, whatever the log, which may be late, has to say.

Another program may have read the nonce before, or the shell may show it. So a mark alone ends
nothing: it counts once the shell is done with the script, which the kernel tells. If there are
several by then, they don't tell the exit code, and the shell is asked.

A shell elsewhere can't see our files, and the kernel tells nothing of it. There the first mark ends
the job.
"""

import contextlib
import os
import re
import secrets
import string
from collections.abc import Iterator
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import StorageError
from tmux_debug_mcp.linux import own_process, processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.vt.marks import JOB_MARK, MAX_MARK_BYTES, encoded, one_line
from tmux_debug_mcp.vt.steps import Keystrokes

from .dialects import (
    BEGINS_LINE,
    END_OF_READING,
    MAX_LINE_CHARACTERS,
    ElsewhereDialect,
    Shell,
    filled,
)

# Captures can show this many of the last commands.
_MAX_COMMANDS = 1000
# The log is searched for marks in pieces of this size.
_PIECE_BYTES = 1 << 20
# The part of a command that its slug is made from, and the length of the slug.
_SLUG_SOURCE_CHARACTERS = 200
_MAX_SLUG_CHARACTERS = 24
# A command with any of these may read the exit code of the command before it.
_READS_EXIT_CODE = re.compile(r"\$\{?\?|status", re.IGNORECASE)
# A script holds itself open at a high number, which a command is not likely to use.
_HIGHEST_FD = 197
_LOWEST_FD = 3

# What terminals, `printf %b`, and shells that take it for a command leave as it is.
_TYPED_AS_IT_IS = frozenset(string.ascii_letters + string.digits + "_,./:-")
# What is above this tells of a signal in its lowest bits.
_MAX_EXIT_CODE = 255
_SIGNAL_BITS = 0x7F


@dataclass(frozen=True, slots=True)
class Door:
    """A program in a pane that leads to a shell elsewhere, such as ssh; or a shell of another user.

    `start` is when its process was started.
    """

    pid: int
    name: str
    start: int

    def is_running(self) -> bool:
        """Return whether the program still runs."""
        return processes.read_living(self.pid, self.start) is not None


class Job:
    """A command that a shell was given to run.

    Attributes:
        shell: The shell, or the door to it.
        key: What is typed for the command tells by this which command it is.
        start: The cursor where the command's output begins, None before that. It is too early if
            the log was trimmed before the mark there was read.
        end: The cursor where the output ends, None before that.
        next_from: The cursor where the shell was given the next job, None before that.
        exit_code: The command's exit code; None before it is concluded, or if it is not known.
        code_before: The exit code of the shell's last command before this job, None until the mark
            at `start` is read, or if there are several.
        is_concluded: The shell is done with the script, and what it printed for the job is known.
    """

    def __init__(self, command: str, shell: Shell | Door, log: Log, key: str, clock: Clock) -> None:
        self.command = command
        self.shell = shell
        self.key = key
        self.start: int | None = None
        self.end: int | None = None
        self.next_from: int | None = None
        self.exit_code: int | None = None
        self.code_before: int | None = None
        self.is_concluded = False
        self._begin_marks = self._end_marks = 0
        self._code = 0  # in the newest end mark
        self._clock = clock
        self._begun_at = clock.now()
        # Only blank lines and comments.
        self._is_empty = all(line.lstrip()[:1] in ("", "#") for line in command.splitlines())
        self._log = log
        self._position = self._searched_to = log.size
        self._begin = secrets.token_hex(8)
        self._end = secrets.token_hex(8)

    @property
    def runtime_s(self) -> float:
        """Seconds since the job was made."""
        return self._clock.now() - self._begun_at

    @property
    def _lines(self) -> str:
        return self.command.replace("\r\n", "\n") + "\n"

    def has_end_mark(self) -> bool:
        """Search the new part of the log for marks; return whether there is an end mark."""
        size = self._log.size
        while not self.is_concluded and self._position < size:
            start = max(self._position, self._log.kept_from)
            if start > self._position and self.start is None:
                # The mark was most likely trimmed. If it wasn't, it is still to come.
                self.start = self._position
            data = self._log.read(start, _PIECE_BYTES)
            for mark in JOB_MARK.finditer(data):
                if start + mark.start() < self._searched_to:
                    continue  # also in the piece before
                self._searched_to = start + mark.end()
                nonce = mark[1].decode()
                code_before, exit_code = (part and part.decode() for part in mark.groups()[1:])
                if nonce == self._begin and code_before:
                    self._begin_marks += 1
                    if self._begin_marks == 1:
                        self.start = start + mark.end()
                    self.code_before = int(code_before) if self._begin_marks == 1 else None
                elif exit_code and self._is_of_end(nonce):
                    self._end_marks += 1
                    self.end = start + mark.start()
                    self._code = int(exit_code)
            if len(data) <= MAX_MARK_BYTES:
                break
            # Pieces overlap by the length of a mark, so that none is cut in two.
            self._position = start + len(data) - MAX_MARK_BYTES
        return self.end is not None

    def _is_of_end(self, nonce: str) -> bool:
        return nonce == self._end

    def is_done(self) -> bool:
        """Return whether the command has ended, as a mark and the kernel say."""
        return self.has_end_mark() and self.is_closed()

    def conclude(self) -> None:
        """Take as known what the log has of the job, with which the shell is done."""
        if self.has_end_mark() and self._end_marks == 1:
            # Some shells keep the previous exit code if a file contains no command.
            self.exit_code = 0 if self._is_empty else self._code
        self.is_concluded = True

    def has_begun(self) -> bool:
        """Return whether the shell may have begun the command: False is certain at this moment."""
        return self.start is not None

    def is_closed(self) -> bool:
        """Return whether the shell is done with the command, or gone."""
        raise NotImplementedError

    def cancel(self) -> bool:
        """Take the command back. Return whether it surely has not run and never will."""
        return False

    def remove(self) -> None:
        """Remove what the shell no longer needs."""


class FileJob(Job):
    """A job that a shell here reads from files.

    The files are in the client's directory. Their names begin with `name` and a slug of the
    command.
    """

    shell: Shell

    def __init__(
        self,
        command: str,
        shell: Shell,
        log: Log,
        client: ControlClient,
        name: str,
        clock: Clock,
    ) -> None:
        self._script_file = client.file(f"{name}-{_slug(command)}")
        self._command_file = self._script_file.with_name(f"{self._script_file.name}.command")
        super().__init__(command, shell, log, self._script_file.name, clock)
        self._is_removed = False
        self._script_status = self._write_files(client)

    def _write_files(self, client: ControlClient) -> os.stat_result:
        """Write both files; return the status of the script, whose inode identifies it."""
        dialect = self.shell.dialect
        script = dialect.script.format(
            file=self._command_file,
            itself=self._script_file,
            fd=_free_fd(self.shell.pid),
            begin=self._begin,
            end=self._end,
            command=encoded(self.command),
            restore=dialect.restore if _READS_EXIT_CODE.search(self.command) else "",
        )
        try:
            client.write(self._command_file.name, self._lines.encode())
            path = client.write(self._script_file.name, script.encode())
            return path.stat()
        except StorageError:
            self.remove()
            raise
        except OSError as error:
            self.remove()
            raise StorageError(str(self._script_file), str(error.strerror)) from error

    @property
    def line(self) -> Keystrokes:
        """The line to type. Its leading blank keeps it out of the history of most shells."""
        text = f" {self.shell.dialect.source} {self._script_file}"
        return Keystrokes(text, is_paste=False, keys=("Enter",))

    def has_begun(self) -> bool:
        """Return whether the shell may have begun the command: False is certain at this moment."""
        if super().has_begun():
            return True
        try:
            return self._script_file.stat().st_size == 0
        except OSError:  # somebody has removed it, maybe the command
            return True

    def is_closed(self) -> bool:
        """Return whether the shell is done with the script, or gone."""
        # A script is removed once the shell is done with it. Another file may get its inode then.
        if self._is_removed or not self.shell.is_running():
            return True
        return not processes.has_open(self.shell.pid, self._script_status)

    def cancel(self) -> bool:
        """Take the command back. Return whether it surely has not run and never will.

        The shell empties the script and then opens the command's file. We remove that file and then
        look at the script, so one of the two sees what the other has done.
        """
        try:
            self._command_file.unlink(missing_ok=True)
            if self.has_begun():
                return False
            # The typed line then does nothing when the shell reads it.
            os.truncate(self._script_file, 0)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the job's files, which the shell no longer needs."""
        self._is_removed = True
        for file in (self._script_file, self._command_file):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


class TypedJob(Job):
    """A job that a shell elsewhere reads from its terminal.

    Attributes:
        shell: The door to the shell.
        dialect: How the shell reads it.
        sent: The number of what was typed last for it.
        is_aborted: The shell gave the command up, or it was interrupted.
    """

    shell: Door

    def __init__(self, command: str, door: Door, log: Log, clock: Clock) -> None:
        super().__init__(command, door, log, secrets.token_hex(8), clock)
        self.dialect: ElsewhereDialect | None = None
        self.sent: int | None = None
        self._abort = secrets.token_hex(8)
        self.is_aborted = False

    def keys(self, dialect: ElsewhereDialect, code_before: int) -> str:
        """Return what to type once the shell reads its terminal, given the exit code before."""
        self.dialect = dialect
        restore = dialect.restore if _READS_EXIT_CODE.search(self.command) else ""
        script = filled(
            dialect.script,
            begin=self._begin,
            end=self._end,
            abort=self._abort,
            shown=encoded(self.command),
            command=dialect.quote(self._lines),
            restore=filled(restore, code=code_before),
        )
        return "".join(f"{line}\r" for line in _typed_lines(script))

    def _is_of_end(self, nonce: str) -> bool:
        if self.end is not None:  # prompts may show the mark again
            return False
        self.is_aborted = nonce == self._abort
        return self.is_aborted or super()._is_of_end(nonce)

    def conclude(self) -> None:
        """Take as known what the log has of the job, with which the shell is done."""
        super().conclude()
        if self.exit_code is not None and self.exit_code > _MAX_EXIT_CODE:  # of ksh and yash
            self.exit_code = processes.signal_exit_code(self.exit_code & _SIGNAL_BITS)

    def is_closed(self) -> bool:
        """Return whether the shell is done with the command, or can't be reached any more."""
        return self.has_end_mark() or not self.shell.is_running()


@dataclass(frozen=True, slots=True, eq=False)
class RunEnding:
    """How a run ended whose call had returned before.

    Attributes:
        outcome: How it ended, as a remark.
        at: When that was seen, by the pane's clock.
    """

    outcome: str
    at: float


class Jobs:
    """The jobs that the shell in a pane was given, one after another.

    Attributes:
        last: The job that was given last, unless it was dropped.
        outer: The jobs that started the shells in which later jobs run, the outermost first.
        unreported: A job whose call returned before its end; a later result reports that.
        ending: How the last of the unreported jobs ended.
        lock: Held by the call that gives jobs to the shell.
        commands: The last 1,000 commands, each on one line, by the names of their files.
    """

    def __init__(self) -> None:
        self.last: Job | None = None
        self.outer: list[Job] = []
        self.unreported: Job | None = None
        self.ending: RunEnding | None = None
        self.lock = anyio.Lock()
        self._made = 0
        self.commands: dict[str, str] = {}

    def new_name(self, pane_id: str) -> str:
        """Return the name of the next job's files."""
        self._made += 1
        return f"{pane_id.rpartition('-')[2]}.{self._made}"

    def typed(self, job: Job) -> None:
        """Note that a job's line was typed; captures show the command in its place."""
        self.commands[job.key] = one_line(job.command)
        while len(self.commands) > _MAX_COMMANDS:
            del self.commands[next(iter(self.commands))]


def _typed_lines(script: str) -> Iterator[str]:
    """Yield a script as a reader takes it: lines for `printf %b`, and how long they are.

    Should the door end, a shell here may get some of the lines. Each is one word, which is no
    command's name.
    """
    line, size = BEGINS_LINE, 0
    for byte in script.encode():
        character = chr(byte)
        part = character if character in _TYPED_AS_IT_IS else f"\\0{byte:03o}"
        if len(line) + len(part) > MAX_LINE_CHARACTERS:
            yield line
            line = BEGINS_LINE
        line += part
        size += len(part)
    yield line
    yield f"{END_OF_READING}{size}"


def _slug(command: str) -> str:
    """Return the first words of a command for a file name, `run` if there are none."""
    start = command[:_SLUG_SOURCE_CHARACTERS].lower()
    slug = re.sub("[^a-z0-9]+", "-", start).strip("-")
    return slug[:_MAX_SLUG_CHARACTERS].strip("-") or "run"


def _free_fd(pid: int) -> int:
    """Return the number of a file descriptor that a process may open and has not.

    If none is free, return 3; the shell replaces what is open there while the script runs.
    """
    taken = set(processes.open_files(pid))
    highest = min(_HIGHEST_FD, own_process.open_files_limit_of(pid) - 1)
    free = (number for number in range(highest, _LOWEST_FD, -1) if str(number) not in taken)
    return next(free, _LOWEST_FD)
