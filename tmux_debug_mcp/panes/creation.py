"""A new pane: what it is made from, the checks on that, and its start in tmux.

tmux starts pane.sh, which runs the program and prints a mark when it has ended.
"""

import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from tmux_debug_mcp.errors import ArgumentError, TmuxStuckError, ToolError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.gone import REMOVED
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.sockets.servers import inode_of
from tmux_debug_mcp.tmux.client import Command, ControlClient
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS

from .place import PaneId, Place, system_program, writes_log
from .shells.dialects import COMMAND_SHELLS

# MAX_ARG_STRLEN, the limit of one argument, without its final zero. Source: execve(2).
MAX_COMMAND_BYTES = (128 << 10) - 1
MAX_ENV_VALUE_BYTES = 32 << 10

# The ids that we give panes.
_ID = re.compile(r"debug-\d+")

# Room for the arguments and variables that tmux and the shell add.
_ADDED_BYTES = 16 << 10
# Each variable also takes a pointer, an equals sign and a final zero.
_VARIABLE_BYTES = 10

_SH = "/bin/sh"
_PANE_SH = Path(__file__).with_name("pane.sh")
_ENVIRONMENT_PY = Path(__file__).with_name("environment.py")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that pane.sh unsets or tmux sets itself.
_NOT_INHERITED = ("TMUX", "TMUX_PANE", "OLDPWD", "SHELL")
# Variables that describe the terminal, which is tmux, or that tmux and pane.sh set.
_SET_BY_TMUX = (*_NOT_INHERITED, "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PWD")
# The parser of tmux takes some 10,000 words; the file costs 15 ms.
_MAX_CHANGES_IN_WORDS = 1000
# What tmux sets where PATH is not set. Source: _PATH_DEFPATH in paths.h.
_TMUX_PATH = "/usr/bin:/bin"
_FACTS = "#{pane_id} #{pane_pid} #{session_id} #{window_id} #{pane_width} #{pane_height}"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where in tmux to make a pane, as tmux commands.

    Attributes:
        command: The beginning of the command that makes the pane.
        target: The target that means the pane once it is made.
        first: Commands to run before that. One of them fails if the pane can't be made.
        then: A command to run at the end.
        undo: A command that removes the pane if another command fails.
    """

    command: Sequence[str]
    target: str
    first: Sequence[Sequence[str]] = ()
    then: Sequence[str] = ("display-message", "-p", "")
    undo: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from, which is what the panes that it makes inherit.

    Attributes:
        cwd: The directory; that of a pane is relative to it.
        env: The environment, without what panes do not inherit.
    """

    cwd: str | Path
    env: Mapping[str, str]


# Where the call that is being answered comes from; None for the server's own directory and
# environment.
calling: ContextVar[Origin | None] = ContextVar("calling", default=None)


@dataclass(frozen=True, slots=True)
class NewPane:
    """A pane to make.

    Attributes:
        command: The command that a shell runs in the pane. With a `program`, only its description.
        name: The pane's name, None to name it after its id.
        cwd: The directory to start in, relative to the caller's; None for the caller's.
        env: Environment variables in addition to the caller's.
        program: A program and its arguments to run instead of the command.
        is_shown: A person who is attached sees the pane at once.
        is_evictable: The pane may be removed once its program has ended, to make room.
        destination: Where to make the pane, None for a new window.
        inherited: The environment to which `env` is added. The engine sets it: the caller's.
        inode: What identifies the directory, as from `inode_of`; "" if it is not known yet.
    """

    command: str
    name: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    program: Sequence[str] = ()
    columns: int = COLUMNS
    rows: int = ROWS
    is_shown: bool = False
    is_evictable: bool = False
    destination: Destination | None = None
    inherited: Mapping[str, str] = field(default_factory=dict)
    inode: str = ""

    @property
    def place(self) -> str:
        """The directory's path, marked as the kernel does if it no longer leads there."""
        return f"{self.cwd}{REMOVED if inode_of(self.cwd or '') != self.inode else ''}"

    @property
    def variables(self) -> dict[str, str]:
        """The whole environment of the pane."""
        return {**self.inherited, **self.env}


def check(new: NewPane) -> None:
    """Check the command, the name and the variables of a new pane; ArgumentError for each."""
    check_command(new.command)
    if new.name is not None:
        check_name(new.name)
    check_env(new.env)


def check_command(command: str) -> None:
    """Check a command that a shell is to run; ArgumentError if it is blank or too long."""
    if not command.strip():
        raise ArgumentError(
            "Parameter 'command' is blank. Give a shell command, or a shell such as 'bash'."
        )
    check_length(command)


def check_length(command: str) -> None:
    """Check the length of a command or an answer, which may be blank; ArgumentError if too long."""
    _check_bytes("command", command, MAX_COMMAND_BYTES, "Write a script and run that.")


def check_env(env: Mapping[str, str]) -> None:
    """Check the environment variables of a new pane; ArgumentError if any is too long."""
    for name, value in env.items():
        _check_bytes(f"env.{name}", value, MAX_ENV_VALUE_BYTES, "Put it into a file.")


def _check_bytes(parameter: str, value: str, limit: int, advice: str) -> None:
    size = len(value.encode())
    if size > limit:
        raise ArgumentError(
            f"Parameter '{parameter}' has {size} bytes; the limit is {limit}. {advice}"
        )


def check_name(name: str, parameter: str = "name", ids: re.Pattern[str] = _ID) -> None:
    """Check the name of a pane, a window or a session, given as a parameter.

    ArgumentError if it is blank or not printable, or looks like an id, as `ids` match them.
    """
    if not name.isprintable() or not name.strip():
        raise ArgumentError(
            f"Parameter '{parameter}' is {name!a}. It must be printable and not blank."
        )
    if ids.fullmatch(name):
        raise ArgumentError(
            f"Parameter '{parameter}' is '{name}', which looks like an id. Give another name."
        )


def path_of(base: str | Path, cwd: str | None) -> Path:
    """Return the path of a directory that a call names; `base` is the server's.

    `..` after a link means the directory that has the link, as for a shell's cd.
    """
    return Path(os.path.normpath(Path(base, os.path.expanduser(cwd or ""))))


def directory(base: str | Path, cwd: str | None) -> Path:
    """Return the directory that a pane starts in; `base` is the server's.

    Raises:
        ArgumentError: There is no such directory, or we may not enter it.
    """
    path = path_of(base, cwd)
    if cwd is None and not os.path.isdir(path):
        raise ArgumentError(
            f"The directory that panes start in is gone: {path}. Make it again, or give parameter "
            "'cwd'."
        )
    if not os.path.isdir(path):
        raise ArgumentError(
            f"Parameter 'cwd' is '{cwd}', which is not a directory. Give one that exists."
        )
    if not os.access(path, os.X_OK):
        raise ArgumentError(
            f"Parameter 'cwd' is '{cwd or path}', which can't be entered. Give another directory."
        )
    return path


def check_size(new: NewPane) -> None:
    """Check that the kernel accepts the command with the environment; ArgumentError if not.

    Source: execve(2).
    """
    size = len(new.command.encode()) + _ADDED_BYTES
    for name, value in new.variables.items():
        size += len(os.fsencode(name)) + len(os.fsencode(value)) + _VARIABLE_BYTES
    limit = os.sysconf("SC_ARG_MAX")
    if size > limit:
        raise ArgumentError(
            f"Parameter 'command', parameter 'env' and the inherited environment have {size} "
            f"bytes; the limit is {limit}. Put large values into files."
        )


def interactive_shell(env: Mapping[str, str]) -> str:
    """Return the user's shell in an environment: $SHELL if that can run, else bash, else sh."""
    shell = env.get("SHELL", "")
    if os.path.isabs(shell) and os.path.isfile(shell) and os.access(shell, os.X_OK):
        return shell
    return _bash(env)


def command_shell(env: Mapping[str, str]) -> str:
    """Return the shell that runs commands: $SHELL if we know that shell, else bash, else sh."""
    shell = env.get("SHELL", "")
    if Path(shell).name in COMMAND_SHELLS and os.access(shell, os.X_OK):
        return shell
    return _bash(env)


def _bash(env: Mapping[str, str]) -> str:
    return shutil.which("bash", path=env.get("PATH")) or "/bin/sh"


def title(name: str) -> str:
    """Return a name for tmux, with `_` for whatever tmux or a terminal might interpret."""
    return re.sub(r"[^\w.-]", "_", name)


async def start(
    client: ControlClient,
    settings: Settings,
    pane_id: PaneId,
    new: NewPane,
    log: Log,
    nonce: str,
) -> Place:
    """Start a pane that writes its output, and then a mark with the nonce, to a log.

    A failure leaves nothing behind, and the command does not run, unless tmux has stopped answering
    when it had begun.

    Raises:
        ArgumentError: The directory is gone.
        CommandError: tmux refuses to make it, as when the destination is gone.
        TmuxGoneError: The tmux server has ended.
        TmuxStuckError: The tmux server does not answer. It says whether the command may run.
    """
    destination = new.destination
    if destination is None:
        index = f"{client.session}:{pane_id.rpartition('-')[2]}"
        background = [] if new.is_shown else ["-d"]
        command = ("new-window", *background, "-n", title(new.name or pane_id), "-t", index)
        destination = Destination(command, index, undo=("kill-window", "-t", index))
    tag = f"{client.directory.name}/{pane_id}"
    path = settings.env.get("PATH")
    size = ("set-option", "-t", client.session, "default-size", f"{new.columns}x{new.rows}")
    usual_size = ("set-option", "-t", client.session, "-u", "default-size")
    try:
        mark_file = client.write(f"{pane_id}.mark", f"{nonce}\n".encode())
        words = _words(client, settings, pane_id, new, tag, mark_file, log)
        blocks = await client.run(
            *destination.first,
            size,
            [*destination.command, "-P", "-F", _FACTS, *words],
            writes_log(destination.target, log, path),
            # The terminal size of a person who attaches does not matter.
            ("set-option", "-w", "-t", destination.target, "window-size", "manual"),
            usual_size,
            destination.then,
        )
    except TmuxStuckError as error:
        client.begin(*filter(None, (usual_size, destination.undo)))
        client.remove(f"{pane_id}.variables")
        if not _taken_back(client, mark_file):
            raise
        raise TmuxStuckError(error.socket, error.reason, TmuxStuckError.NOTHING_RUN) from error
    except ToolError:
        await remove(client, pane_id, usual_size, destination.undo)
        raise
    [line] = blocks[len(destination.first) + 1]
    target, pid, session, window, columns, rows = line.decode().split()
    log.begin(int(columns), int(rows))
    ours = client.offsets.ours
    ids = ours(session), ours(window), ours(target)
    leader = processes.read_stat(int(pid)) or processes.gone(int(pid))
    return Place(client, target, ids, leader, tag, writes_log(target, log, path))


def _taken_back(client: ControlClient, mark_file: Path) -> bool:
    """Keep a pane.sh that may start later from running its program; return whether that is sure.

    pane.sh empties its file and then looks for ours. We make ours and then look at its file, so one
    of the two sees what the other has done.
    """
    client.write(f"{mark_file.name}.void", b"")
    try:
        return mark_file.stat().st_size > 0
    except OSError:
        return False


async def remove(client: ControlClient, pane_id: PaneId, *commands: Command) -> None:
    """Remove what a failed start has left: in tmux by these commands, and the pane's files."""
    with contextlib.suppress(ToolError):
        await client.run(*(command for command in commands if command))
    for kind in ("mark", "variables"):
        client.remove(f"{pane_id}.{kind}")


@functools.cache
def _default_signals(path: str | None) -> tuple[str, ...]:
    """Return the words before a program that restore the signals that tmux ignores.

    Then a program that reads the terminal in the background is stopped, as in any other terminal.
    There are no words if env(1) can't do that: busybox's, or GNU coreutils' before 8.31.
    """
    words = (system_program("env", path), "--default-signal=TTIN,TTOU")
    with contextlib.suppress(OSError):
        tried = subprocess.run([*words, "true"], capture_output=True, check=False)
        return words if tried.returncode == 0 else ()
    return ()


def _shell(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words before pane.sh, which must not find functions in its environment.

    Where sh is bash, functions that a user has exported would take the place of its commands. With
    `-p`, bash only passes them on.
    """
    if any(name.startswith("BASH_FUNC_") for name in env) and _is_bash(_SH):
        return (_SH, "-p")
    return (_SH,)


@functools.cache
def _is_bash(shell: str) -> bool:
    command = [shell, "-c", 'case "$BASH_VERSION" in "") exit 1 ;; esac']
    return subprocess.run(command, env={}, check=False).returncode == 0


_Change = tuple[str, str | None]


def _changes(settings: Settings, new: NewPane) -> tuple[list[_Change], list[_Change]]:
    """Return how a pane's environment differs from tmux's: in words of the command, and in a file.

    Each change is a variable and its value, None to unset it. tmux has the variables of the
    settings. The file is for those that don't reach the program through tmux and a shell: shells
    drop variables whose names are not identifiers; tmux or pane.sh sets or unsets the others. It is
    for all where tmux would get too many words.
    """
    variables, theirs = new.variables, settings.env
    if settings.programs_dir:
        first = variables.get("PATH", _TMUX_PATH)
        if first.rpartition(":")[2] != settings.programs_dir:  # the caller is not in a pane
            variables["PATH"] = f"{first}:{settings.programs_dir}"
    lost = {name for name in variables if not _IDENTIFIER.fullmatch(name)}
    lost.update(name for name in _NOT_INHERITED if name in new.env)
    if variables.get("SHELL", theirs.get("SHELL")) != theirs.get("SHELL"):
        lost.add("SHELL")
    in_words = [
        (name, variables.get(name))
        for name in {**theirs, **variables}
        if variables.get(name) != theirs.get(name)
        and name not in lost
        and (name in new.env or name not in _SET_BY_TMUX)
    ]
    in_file: list[_Change] = [(name, variables[name]) for name in lost]
    if len(in_words) > _MAX_CHANGES_IN_WORDS:
        return [], in_file + in_words
    return in_words, in_file


def _words(
    client: ControlClient,
    settings: Settings,
    pane_id: PaneId,
    new: NewPane,
    tag: str,
    mark_file: Path,
    log: Log,
) -> list[str]:
    """Return the end of the tmux command: the environment, and the program within pane.sh.

    Two files contain what must stay out of arguments, which other users can read: the nonce of the
    mark, and variables for environment.py. This writes the file of variables.
    """
    in_words, in_file = _changes(settings, new)
    env = [f"-e{name}={value}" for name, value in in_words if value is not None]
    unset = [name for name, value in in_words if value is None]
    path = settings.env.get("PATH")
    wrapper = [*_default_signals(path)]
    if unset:
        wrapper = wrapper or [system_program("env", path)]
        wrapper += [word for name in unset for word in ("-u", name)]
    wrapper += [*_shell({**settings.env, **new.variables}), str(_PANE_SH), str(mark_file)]
    wrapper += [log.writable, settings.open_files]
    wrapper += [system_program("sleep", path), system_program("tail", path)]
    wrapper += [str(client.supervisor_pid), str(directory(settings.cwd, new.cwd))]
    if in_file:
        entries = (name if value is None else f"{name}={value}" for name, value in in_file)
        data = b"".join(os.fsencode(entry) + b"\0" for entry in entries)
        variables_file = client.write(f"{pane_id}.variables", data)
        wrapper += [sys.executable, "-I", "-S", str(_ENVIRONMENT_PY), str(variables_file)]
    program = new.program or [command_shell(new.variables), "-c", "--", new.command]
    return [*env, f"-e{processes.TAG}={tag}", *wrapper, *program]
