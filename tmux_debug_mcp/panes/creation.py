"""What a new pane is made of, and what it may be made of."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS

from .dialects import SHELLS

# One argument of a program, MAX_ARG_STRLEN in the kernel, with the zero at its end.
MAX_COMMAND_BYTES = (128 << 10) - 1

MAX_NAME_CHARACTERS = 64
MAX_ENV_VALUE_BYTES = 32 << 10

_ID = re.compile(r"debug-\d+")
# The arguments and environment of a program, with room for what tmux and the shell add.
_ARGUMENTS_SLACK_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Destination:
    """Where in tmux to make a pane.

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
        destination: Where to make it; None for a window of its own among the others.
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


def interactive_shell(settings: Settings) -> str:
    """Return the shell that a person has: $SHELL where it can be run, else bash, else sh."""
    shell = settings.env.get("SHELL", "")
    if os.path.isabs(shell) and os.path.isfile(shell) and os.access(shell, os.X_OK):
        return shell
    return _bash(settings)


def title(name: str) -> str:
    """Return the name as a person sees it: without what tmux or a terminal would act on."""
    return "".join(character if character.isalnum() or character in "_.-" else "_" for character in name)


def command_shell(settings: Settings) -> str:
    """Return the shell that runs commands: $SHELL where it is one that we know, else bash, else sh."""
    shell = settings.env.get("SHELL", "")
    return shell if Path(shell).name in SHELLS and os.access(shell, os.X_OK) else _bash(settings)


def _bash(settings: Settings) -> str:
    return shutil.which("bash", path=settings.env.get("PATH")) or "/bin/sh"
