"""What a new pane is made of: the program with its directory and environment, as words for tmux."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import linux
from .archive import Archive
from .errors import ArgumentError
from .shells import SHELLS
from .transcript import COLUMNS, ROWS

# One argument of a program, MAX_ARG_STRLEN in the kernel, with the zero at its end.
MAX_COMMAND_BYTES = (128 << 10) - 1

MAX_NAME_CHARACTERS = 64
MAX_ENV_VALUE_BYTES = 32 << 10

_PANE_SH = Path(__file__).parent / "pane.sh"
_ENVIRONMENT_PY = Path(__file__).parent / "environment.py"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ID = re.compile(r"debug-\d+")
# What pane.sh unsets, and what tmux sets itself.
_NOT_PASSED_ON = ("TMUX", "TMUX_PANE", "OLDPWD", "SHELL")
# The arguments and environment of a program, with room for what tmux and the shell add.
_ARGUMENTS_SLACK_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Settings:
    """What panes are made with.

    Attributes:
        env: The environment that panes inherit.
        cwd: The directory where they start unless told otherwise.
        tmux: The tmux program, an absolute path or a name to find.
        adopts: Whether this process is a subreaper that only serves the session, so that the descendants of a
            warden that was killed are its to end.
        archive: Where logs are kept after the end, if they are.
        state: A directory for what is to outlive us.
        open_files: How many files programs in panes may have open, as `ulimit -n` has it.
        runtime: The user's directory for sockets and the like, as the environment has it.
        size: Columns and rows of sessions of the toolset `terminal`.
        socket: That of the user's own tmux server, for the toolset `tmux`, if it is to work there.
        allows_kill: Whether it may kill there.
    """

    env: Mapping[str, str]
    cwd: Path
    tmux: str = "tmux"
    adopts: bool = False
    archive: Archive | None = None
    state: Path = Path("tmux-debug-mcp")
    runtime: str = ""
    open_files: str = field(default_factory=linux.open_files_limit)
    size: tuple[int, int] = (120, 40)
    socket: str = ""
    allows_kill: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where in tmux a pane is to be made, other than in a window of its own among the others.

    Attributes:
        command: The beginning of the tmux command that makes it.
        target: What means the pane once that is done.
        first: Commands to run before that, of which one fails where the pane can't be made.
        then: A command to run at last.
        undo: A command that removes it, whichever of the others failed.
    """

    command: Sequence[str]
    target: str
    first: Sequence[Sequence[str]] = ()
    then: Sequence[str] = ("display-message", "-p", "")
    undo: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NewPane:
    """A pane to make.

    Attributes:
        command: What a shell is to run in it; of a pane with a program of its own, what to call that.
        name: Its name, which is its id otherwise.
        cwd: Its directory, from that of the settings.
        env: Variables in addition to the settings'.
        program: A program and its arguments to run, and no command.
        columns: Its width.
        rows: Its height.
        is_shown: A person who is attached is shown it at once.
        gives_way: It may be removed once its program has ended, where there is no room for another one.
        place: Where to make it.
    """

    command: str
    name: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    program: Sequence[str] = ()
    columns: int = COLUMNS
    rows: int = ROWS
    is_shown: bool = False
    gives_way: bool = False
    place: Place | None = None


def check(new: NewPane) -> None:
    """See that a pane can be made like this.

    Raises:
        ArgumentError: It can't.
    """
    if not new.command.strip():
        raise ArgumentError("Parameter 'command' is blank. Give a shell command, or a shell such as 'bash'.")
    if (size := len(new.command.encode())) > MAX_COMMAND_BYTES:
        raise ArgumentError(
            f"Parameter 'command' has {size} bytes; at most {MAX_COMMAND_BYTES}. Write a script and run that."
        )
    if new.name is not None and not (new.name.isprintable() and new.name.strip()):
        raise ArgumentError(f"Parameter 'name' is {new.name!a}. It must be printable and not blank.")
    if new.name is not None and _ID.fullmatch(new.name):
        raise ArgumentError(f"Parameter 'name' is '{new.name}', which looks like an id. Give another name.")
    for name, value in new.env.items():
        if (size := len(value.encode())) > MAX_ENV_VALUE_BYTES:
            raise ArgumentError(
                f"Parameter 'env.{name}' has {size} bytes; at most {MAX_ENV_VALUE_BYTES}. Put it into a file."
            )


def directory(settings: Settings, cwd: str | None) -> Path:
    """Return the directory that a pane starts in.

    Raises:
        ArgumentError: There is no such directory.
    """
    path = os.path.join(settings.cwd, os.path.expanduser(cwd or "."))
    if not os.path.isdir(path):
        raise ArgumentError(f"Parameter 'cwd' is '{cwd}', which is no directory. Give one that exists.")
    if not os.access(path, os.X_OK):
        raise ArgumentError(f"Parameter 'cwd' is '{cwd}', which we may not enter. Give another directory.")
    return Path(path)


def check_size(settings: Settings, new: NewPane) -> None:
    """See that the system takes the command and the environment.

    Raises:
        ArgumentError: They are too large.
    """
    size = len(new.command.encode()) + _ARGUMENTS_SLACK_BYTES
    for name, value in (*settings.env.items(), *new.env.items()):
        # A pointer to each, and a zero at its end.
        size += len(os.fsencode(name)) + len(os.fsencode(value)) + 10
    if size > (limit := os.sysconf("SC_ARG_MAX")):
        raise ArgumentError(
            f"Parameters 'command' and 'env' come to {size} bytes with the inherited environment; "
            f"the system takes {limit}. Put large values into files."
        )


def words(settings: Settings, new: NewPane, cwd: Path, marker: str, files: Sequence[Path]) -> list[str]:
    """Return the end of the tmux command that makes the pane: its environment and its program, within pane.sh.

    Args:
        settings: The settings.
        new: The pane.
        cwd: The directory to start in.
        marker: The value of linux.MARKER in the environment of all that is started there.
        files: One with the mark that pane.sh tells the end of the program with, and one with what `variables_file`
            returns, if that is anything. Arguments can be read by other users.
    """
    env = [word for name, value in new.env.items() for word in ("-e", f"{name}={value}")]
    sleep = shutil.which("sleep", path=settings.env.get("PATH")) or "sleep"
    wrapper = ["/bin/sh", str(_PANE_SH), str(files[0]), settings.open_files, sleep, str(cwd)]
    for variables in files[1:]:
        wrapper += [sys.executable, "-I", "-S", str(_ENVIRONMENT_PY), str(variables)]
    program = new.program or [_command_shell(settings), "-c", "--", new.command]
    return [*env, "-e", f"{linux.MARKER}={marker}", *wrapper, *program]


def variables_file(settings: Settings, new: NewPane) -> bytes:
    """Return the variables that a shell does not pass on, each with a zero byte behind it."""
    odd = _odd_variables(settings, new.env)
    return b"".join(os.fsencode(f"{name}={value}\0") for name, value in odd.items())


def interactive_shell(settings: Settings) -> str:
    """Return the shell that a person has: $SHELL where it can be run, else bash, else sh."""
    shell = settings.env.get("SHELL", "")
    if os.path.isabs(shell) and os.path.isfile(shell) and os.access(shell, os.X_OK):
        return shell
    return _bash(settings)


def title(name: str) -> str:
    """Return the name as a person sees it: without what tmux or a terminal would act on."""
    return "".join(character if character.isalnum() or character in "_.-" else "_" for character in name)


def _command_shell(settings: Settings) -> str:
    shell = settings.env.get("SHELL", "")
    return shell if Path(shell).name in SHELLS and os.access(shell, os.X_OK) else _bash(settings)


def _bash(settings: Settings) -> str:
    return shutil.which("bash", path=settings.env.get("PATH")) or "/bin/sh"


def _odd_variables(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """Return what else is dropped: variables whose names are none to a shell, and TMUX and SHELL on request."""
    both = {**settings.env, **env}
    odd = [name for name in both if not _IDENTIFIER.fullmatch(name)]
    odd += [name for name in _NOT_PASSED_ON if name in env]
    return {name: both[name] for name in odd}
