"""What a new pane is made from, and the checks of that."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS

from .names import check_name
from .shells.dialects import COMMAND_SHELLS

# One argument of a program with its final zero: MAX_ARG_STRLEN. Source: execve(2).
MAX_COMMAND_BYTES = (128 << 10) - 1

MAX_ENV_VALUE_BYTES = 32 << 10

# Room for the arguments and variables that tmux and the shell add.
_ADDED_BYTES = 16 << 10
# Each variable also takes a pointer, an equals sign and a final zero.
_VARIABLE_BYTES = 10


@dataclass(frozen=True, slots=True)
class Destination:
    """Where in tmux to make a pane, as tmux commands.

    Attributes:
        command: The beginning of the command that makes the pane.
        target: The target that means the pane once it is made.
        first: Commands to run before that. One of them fails if the pane can't be made.
        then: A command to run at the end.
        undo: A command that removes the pane after any other command has failed.
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
        command: The command that a shell runs in the pane. With a `program`, only its description.
        name: The pane's name, None to name it after its id.
        cwd: The directory to start in, relative to that of the settings. None means the latter.
        env: Environment variables in addition to those of the settings.
        program: A program and its arguments to run instead of the command.
        columns: The width of the terminal.
        rows: The height of the terminal.
        is_shown: A person who is attached is shown the pane at once.
        is_evictable: The pane may be removed once its program has ended, to make room.
        destination: Where to make the pane, None for a window of its own.
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


def check(new: NewPane) -> None:
    """Check the command, the name and the variables of a new pane.

    Raises:
        ArgumentError: The command is blank or too long, the name is not printable or looks like
            an id, or a variable is too long.
    """
    _check_command(new.command)
    if new.name is not None:
        check_name(new.name)
    for name, value in new.env.items():
        size = len(value.encode())
        if size > MAX_ENV_VALUE_BYTES:
            raise ArgumentError(
                f"Parameter 'env.{name}' has {size} bytes; at most {MAX_ENV_VALUE_BYTES}. "
                "Put it into a file."
            )


def _check_command(command: str) -> None:
    if not command.strip():
        raise ArgumentError(
            "Parameter 'command' is blank. Give a shell command, or a shell such as 'bash'."
        )
    size = len(command.encode())
    if size > MAX_COMMAND_BYTES:
        raise ArgumentError(
            f"Parameter 'command' has {size} bytes; at most {MAX_COMMAND_BYTES}. "
            "Write a script and run that."
        )


def directory(settings: Settings, cwd: str | None) -> Path:
    """Return the directory that a pane starts in.

    Raises:
        ArgumentError: There is no such directory, or we may not enter it.
    """
    path = os.path.join(settings.cwd, os.path.expanduser(cwd or "."))
    if not os.path.isdir(path):
        raise ArgumentError(
            f"Parameter 'cwd' is '{cwd}', which is no directory. Give one that exists."
        )
    if not os.access(path, os.X_OK):
        raise ArgumentError(
            f"Parameter 'cwd' is '{cwd}', which we may not enter. Give another directory."
        )
    return Path(path)


def check_size(settings: Settings, new: NewPane) -> None:
    """Check that the kernel takes the command and the environment together. Source: execve(2).

    Raises:
        ArgumentError: They are too large.
    """
    size = len(new.command.encode()) + _ADDED_BYTES
    for name, value in (*settings.env.items(), *new.env.items()):
        size += len(os.fsencode(name)) + len(os.fsencode(value)) + _VARIABLE_BYTES
    limit = os.sysconf("SC_ARG_MAX")
    if size > limit:
        raise ArgumentError(
            f"Parameters 'command' and 'env' come to {size} bytes with the inherited environment; "
            f"the system takes {limit}. Put large values into files."
        )


def interactive_shell(settings: Settings) -> str:
    """Return the shell of the user: $SHELL if that can be run, else bash, else sh."""
    shell = settings.env.get("SHELL", "")
    if os.path.isabs(shell) and os.path.isfile(shell) and os.access(shell, os.X_OK):
        return shell
    return _bash(settings)


def command_shell(settings: Settings) -> str:
    """Return the shell that runs commands: $SHELL if it is a known one, else bash, else sh."""
    shell = settings.env.get("SHELL", "")
    if Path(shell).name in COMMAND_SHELLS and os.access(shell, os.X_OK):
        return shell
    return _bash(settings)


def _bash(settings: Settings) -> str:
    return shutil.which("bash", path=settings.env.get("PATH")) or "/bin/sh"


def title(name: str) -> str:
    """Return a name for tmux, with `_` for all that tmux or a terminal would interpret."""
    characters = []
    for character in name:
        is_safe = character.isalnum() or character in "_.-"
        characters.append(character if is_safe else "_")
    return "".join(characters)
