"""Has tmux make a pane and start its program there, wrapped in pane.sh."""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tmux_debug_mcp.errors import ToolError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.client import Command, ControlClient

from .creation import Destination, NewPane, command_shell, title
from .place import PaneId, Place
from .tmux_pane import writes_log

_PANE_SH = Path(__file__).with_name("pane.sh")
_ENVIRONMENT_PY = Path(__file__).with_name("environment.py")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that pane.sh unsets or tmux sets itself.
_NOT_INHERITED = ("TMUX", "TMUX_PANE", "OLDPWD", "SHELL")
_FACTS = "#{pane_id} #{pane_pid} #{session_id} #{window_id} #{pane_width} #{pane_height}"


@dataclass(frozen=True, slots=True)
class Start:
    """A pane to start.

    Attributes:
        pane_id: Our id of it.
        new: What to make it of.
        cwd: The directory to start in.
        nonce: The nonce of the mark that tells the program's end.
        log: Its log.
        destination: Where to make it.
    """

    pane_id: PaneId
    new: NewPane
    cwd: Path
    nonce: str
    log: Log
    destination: Destination


@dataclass(frozen=True, slots=True)
class Started:
    """A pane that was started.

    Attributes:
        place: Where it is in tmux.
        ids: Our ids of its session, window and pane: `$N`, `@N` and `%N`. They count on over all
            tmux servers of this server run.
        size: Its columns and rows.
    """

    place: Place
    ids: tuple[str, str, str]
    size: tuple[int, int]


def own_window(client: ControlClient, number: int, name: str, *, is_shown: bool) -> Destination:
    """Return a window of its own as the destination of a pane."""
    window = f"{client.session}:{number}"
    background = [] if is_shown else ["-d"]
    command = ("new-window", *background, "-n", title(name), "-t", window)
    return Destination(command, window, undo=("kill-window", "-t", window))


async def start(client: ControlClient, settings: Settings, wanted: Start) -> Started:
    """Start a pane. When that fails, nothing of it is left.

    Raises:
        CommandError: tmux refuses to make it, as where the destination is gone.
        StorageError: There is no room for the pane's files.
        TmuxGoneError: The tmux server has ended.
        TmuxStuckError: tmux does not answer.
    """
    tag = f"{client.directory.name}/{wanted.pane_id}"
    new, destination = wanted.new, wanted.destination
    size = ("set-option", "-t", client.session, "default-size", f"{new.columns}x{new.rows}")
    usual_size = ("set-option", "-t", client.session, "-u", "default-size")
    try:
        words = _words(settings, wanted, tag, _write_files(client, settings, wanted))
        blocks = await client.run(
            *destination.first,
            size,
            [*destination.command, "-P", "-F", _FACTS, *words],
            writes_log(destination.target, wanted.log),
            # The size of the terminal of a person who attaches does not matter.
            ("set-option", "-w", "-t", destination.target, "window-size", "manual"),
            usual_size,
            destination.then,
        )
    except ToolError:
        await remove(client, usual_size, destination.undo)
        raise
    [line] = blocks[len(destination.first) + 1]
    return _started(client, line.decode(), tag)


async def remove(client: ControlClient, *commands: Command) -> None:
    """Run the commands that remove what a start has left, as far as there is something."""
    with contextlib.suppress(ToolError):
        await client.run(*(command for command in commands if command))


def _started(client: ControlClient, facts: str, tag: str) -> Started:
    target, pid, session, tmux_window, columns, rows = facts.split()
    offsets = client.offsets
    window = offsets.window(tmux_window)
    leader = processes.read_stat(int(pid)) or processes.gone(int(pid))
    place = Place(client, target, window, leader, tag)
    ids = offsets.session(session), window, offsets.pane(target)
    return Started(place, ids, (int(columns), int(rows)))


def _write_files(client: ControlClient, settings: Settings, wanted: Start) -> list[Path]:
    """Write what must not stand in arguments, which other users can read: the nonce, variables."""
    files = [client.write(f"{wanted.pane_id}.mark", f"{wanted.nonce}\n".encode())]
    variables = _odd_variables(settings, wanted.new.env)
    if variables:
        data = b"".join(os.fsencode(f"{name}={value}\0") for name, value in variables.items())
        files.append(client.write(f"{wanted.pane_id}.variables", data))
    return files


def _words(settings: Settings, wanted: Start, tag: str, files: Sequence[Path]) -> list[str]:
    """Return the end of the tmux command: the environment, and the program within pane.sh."""
    new = wanted.new
    mark_file, *variable_files = map(str, files)
    env = [word for name, value in new.env.items() for word in ("-e", f"{name}={value}")]
    sleep = shutil.which("sleep", path=settings.env.get("PATH")) or "sleep"
    wrapper = ["/bin/sh", str(_PANE_SH), mark_file, settings.open_files, sleep, str(wanted.cwd)]
    for variables in variable_files:
        wrapper += [sys.executable, "-I", "-S", str(_ENVIRONMENT_PY), variables]
    program = new.program or [command_shell(settings), "-c", "--", new.command]
    return [*env, "-e", f"{processes.TAG}={tag}", *wrapper, *program]


def _odd_variables(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that don't reach the program through a shell and tmux.

    Shells drop those whose names are no identifiers; others are set or unset on the way.
    """
    both = {**settings.env, **env}
    odd = [name for name in both if not _IDENTIFIER.fullmatch(name)]
    odd += [name for name in _NOT_INHERITED if name in env]
    return {name: both[name] for name in odd}
