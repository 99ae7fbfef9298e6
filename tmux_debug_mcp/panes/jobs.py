"""A job: a command that the shell in a pane was given to run, in two files.

The command goes to a file as it is. Another file runs it, and marks in the log where its output begins and ends and
with which exit code. What is typed is one short line that reads the second file. The shell has that open until it is
through with it: so a shell that gave the command up can be told from one that asks for input within it. It
empties itself before the command runs, so that the command can't read the mark of its end.
"""

import contextlib
import os
import re
import secrets
import time

from tmux_debug_mcp.errors import StorageError
from tmux_debug_mcp.linux import limits, processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.vt.keys import Keystrokes
from tmux_debug_mcp.vt.marks import MAX_MARK_BYTES, encoded, job_marks

from .dialects import Shell

_PIECE_BYTES = 1 << 20
_MAX_SLUG_CHARACTERS = 24
# What asks for the exit code of the command before.
_EXIT_CODE = re.compile(r"\$\{?\?|status", re.IGNORECASE)


def _free_fd(pid: int) -> int:
    """Return a number that a shell has no file open at, may have one, and that nobody is likely to choose."""
    taken = processes.open_files(pid)
    highest = min(197, limits.open_files_limit_of(pid) - 1)
    return next(number for number in range(highest, 2, -1) if str(number) not in taken)


class Job:
    """A command that a shell was given.

    Args:
        command: The command.
        shell: The shell.
        log: The log of the shell's pane.
        client: The tmux server of that pane, which has a place for files.
        name: For the file to be read; what was made of the command is added to that.

    Attributes:
        command: The command.
        shell: The shell.
        start: The cursor where the output begins, once it does.
        end: The cursor where it ends, once it has.
        exit_code: The command's exit code then.
        code_before: The exit code of what the shell ran before, once the output begins.

    Raises:
        StorageError: There is no room for the files.
    """

    def __init__(self, command: str, shell: Shell, log: Log, client: ControlClient, name: str) -> None:
        self.command = command
        self.shell = shell
        self.start: int | None = None
        self.end: int | None = None
        self.exit_code: int | None = None
        self.code_before: int | None = None
        self._begun_at = time.monotonic()
        self._is_empty = all(line.lstrip()[:1] in ("", "#") for line in command.splitlines())
        self._log = log
        self._position = log.size
        begin, end = secrets.token_hex(8), secrets.token_hex(8)
        self._marks = job_marks(begin, end)
        slug = re.sub("[^a-z0-9]+", "-", command[:200].lower()).strip("-")[:_MAX_SLUG_CHARACTERS].strip("-")
        self._file = client.file(f"{name}-{slug or 'run'}")
        self._command_file = self._file.with_name(f"{self._file.name}.command")
        restore = shell.dialect.restore if _EXIT_CODE.search(command) else ""
        script = shell.dialect.script.format(
            file=self._command_file,
            itself=self._file,
            fd=_free_fd(shell.pid),
            begin=begin,
            end=end,
            command=encoded(command),
            restore=restore,
        )
        try:
            client.write(self._command_file.name, command.replace("\r\n", "\n").encode() + b"\n")
            client.write(self._file.name, script.encode())
        except StorageError:
            self.remove()
            raise

    @property
    def file_name(self) -> str:
        """The name of the file that is read, as it stands in what is typed."""
        return self._file.name

    @property
    def runtime_s(self) -> float:
        """Seconds since it was given."""
        return time.monotonic() - self._begun_at

    @property
    def line(self) -> Keystrokes:
        """What to type. The blank before it keeps it from the history of most shells."""
        text = f" {self.shell.dialect.source} {self._file}"
        return Keystrokes(text, is_paste=False, keys=("Enter",), done="")

    def is_done(self) -> bool:
        """Look for marks in what is new in the log; tell whether the command is done."""
        size = self._log.size
        while self.end is None and self._position < size:
            start = max(self._position, self._log.kept_from)
            data = self._log.read(start, _PIECE_BYTES)
            for found in self._marks.finditer(data):
                if found[1] and self.start is None:
                    self.start, self.code_before = start + found.end(), int(found[1])
                elif found[2]:
                    # Where there is nothing to run, some shells keep the code of what they ran before.
                    self.end, self.exit_code = start + found.start(), 0 if self._is_empty else int(found[2])
                    break
            if len(data) <= MAX_MARK_BYTES:
                break
            # Pieces overlap by a mark, so that none is cut in two.
            self._position = start + len(data) - MAX_MARK_BYTES
        return self.end is not None

    def is_closed(self) -> bool:
        """Tell whether the shell is through with it, or gone."""
        return not self.shell.is_running() or not processes.has_open(self.shell.pid, str(self._file))

    def cancel(self) -> None:
        """Make what was typed do nothing when it is read."""
        with contextlib.suppress(OSError):
            os.truncate(self._file, 0)

    def remove(self) -> None:
        """Remove its files, which the shell may still have open."""
        for file in (self._file, self._command_file):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
