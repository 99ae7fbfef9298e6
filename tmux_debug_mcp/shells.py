"""Shells in terminals: which one has a terminal, whether it is at its prompt, and how to run a file in it.

Told by the kernel alone, not by what prompts look like. No shell is set up for this, and no hook is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import anyio

from . import linux
from .logs import Log

# A look that finds a shell at its prompt may have come before it has read what was typed last. So there are two.
_LOOK_AGAIN_S = 0.003
# A shell that starts sets up things, and may take that long; or it asks for something, and is quiet.
_STARTING_S = 10.0
_QUIET_S = 0.5


@dataclass(frozen=True, slots=True)
class Kind:
    """What differs between shells.

    Attributes:
        script: The lines of the file that runs another and tells its exit code, with the places `{file}`, `{itself}`
            and `{mark}`. While it runs, the shell has it open.
        source: The command that reads a file.
    """

    script: str
    source: str = "."


_POSIX = r"""mcp_status=$?
command printf '\033]7777;{mark};S\007' >/dev/tty
(exit "$mcp_status")
command . '{file}'
mcp_status=$?
command printf '\033]7777;{mark};%d\007' "$mcp_status" >/dev/tty
eval "command unset mcp_status; return $mcp_status"
"""

# Bash reads a file whole and closes it, so it is held open; numbers to 63 are in use for <(command).
_BASH = r"""{{
mcp_status=$?
case ":$HISTCONTROL:" in
*:ignorespace:* | *:ignoreboth:*) ;;
*) [[ $(builtin history 1) == *'{itself}'* ]] && builtin history -d -1 ;;
esac
builtin printf '\033]7777;{mark};S\007' >/dev/tty
(exit "$mcp_status")
builtin . '{file}'
mcp_status=$?
builtin printf '\033]7777;{mark};%d\007' "$mcp_status" >/dev/tty
}} 97<'{itself}'
builtin eval "builtin unset mcp_status; builtin return $mcp_status"
"""

_ZSH = r"""mcp_status=$?
builtin printf '\033]7777;{mark};S\007' >/dev/tty
(exit "$mcp_status")
builtin . '{file}'
mcp_status=$?
builtin printf '\033]7777;{mark};%d\007' "$mcp_status" >/dev/tty
builtin eval "builtin unset mcp_status; builtin return $mcp_status"
"""

_FISH = r"""set -l mcp_status $status
builtin printf '\033]7777;{mark};S\007' >/dev/tty
test $mcp_status -eq 0; or command sh -c "exit $mcp_status"
source '{file}'
set mcp_status $status
builtin printf '\033]7777;{mark};%d\007' $mcp_status >/dev/tty
return $mcp_status
"""

# By the names of their programs. One called busybox is many, and tells by its first argument.
KINDS: Mapping[str, Kind] = {
    "bash": Kind(_BASH),
    "zsh": Kind(_ZSH),
    "dash": Kind(_POSIX),
    "busybox": Kind(_POSIX),
    "fish": Kind(_FISH, "source"),
}
_BUSYBOX_SHELLS = ("sh", "ash")


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell that has a terminal.

    Attributes:
        pid: Its process.
        name: Of its program; one of `KINDS`.
        start: What tells it from another process of this id and from what replaces its program.
    """

    pid: int
    name: str
    start: tuple[int, int]

    @property
    def kind(self) -> Kind:
        """How to run a file in it."""
        return KINDS[self.name]

    def is_running(self) -> bool:
        """Tell whether it is still there, and not replaced by what `exec` was given."""
        stat = linux.read_stat(self.pid)
        return stat is not None and stat.state != "Z" and (stat.starttime, stat.start_stack) == self.start

    def is_interactive(self) -> bool:
        """Tell whether it takes commands from the terminal: it was started without a script or command."""
        words = linux.arguments(self.pid)
        words = words[2:] if self.name == "busybox" and words[:1] == ["busybox"] else words[1:]
        return not any(word[:1] not in "-+" or (word[:1] == "-" and word[1:2] != "-" and "c" in word) for word in words)

    def is_at_prompt(self) -> bool:
        """Tell whether it waits for a command, as far as one look can tell."""
        stat = linux.read_stat(self.pid)
        if stat is None or stat.state != "S" or stat.tpgid != stat.pgrp:
            return False
        modes = linux.terminal_modes(self.pid)
        if modes is None or modes.unread_bytes:
            return False
        if self.name == "dash":  # it has no line editor
            return modes.is_canonical and linux.is_reading_lines(self.pid)
        return not modes.is_canonical and not modes.echoes and modes.is_raw


def foreground_shell(pane_pid: int) -> Shell | None:
    """Return the shell that has a pane's terminal, or None when something else has it."""
    stat = linux.read_stat(pane_pid)
    if stat is None:
        return None
    pid = stat.tpgid
    if pid == stat.pgrp:  # the command is in pane.sh's own group
        below = linux.children(pane_pid)
        pid = below[0] if below else -1
    leader = linux.read_stat(pid) if pid > 0 else None
    if leader is None:
        return None
    name = linux.program(leader.pid)
    if name == "busybox":
        words = [word.rpartition("/")[2] for word in linux.arguments(leader.pid)[:2]]
        word = (words[1:] if words[:1] == ["busybox"] else words)[:1]
        name = name if word and word[0].removeprefix("-") in _BUSYBOX_SHELLS else ""
    return Shell(leader.pid, name, (leader.starttime, leader.start_stack)) if name in KINDS else None


async def wait_for_prompt(pane_pid: int, log: Log, patience_s: float, known: set[tuple[int, int]]) -> Shell | None:
    """Wait until the shell that has the pane's terminal is at its prompt.

    Args:
        pane_pid: The process of pane.sh.
        log: The pane's log; a shell that starts and prints nothing for a while waits for something.
        patience_s: How long to wait for a shell that has been at its prompt before.
        known: The shells that have been, by their `start`; this one is added.

    Returns:
        The shell, or None when none has the terminal, or one that does not come to its prompt.
    """
    begin = quiet_since = anyio.current_time()
    size, used = log.size, b""
    while shell := foreground_shell(pane_pid):
        before = linux.cpu_time(shell.pid)
        if shell.is_at_prompt():
            await anyio.sleep(_LOOK_AGAIN_S)
            if shell.is_at_prompt() and linux.cpu_time(shell.pid) == before:
                known.add(shell.start)
                return shell
        else:
            await anyio.sleep(0.001)
        now = anyio.current_time()
        if (log.size, before) != (size, used):
            size, used, quiet_since = log.size, before, now
        is_starting = shell.start not in known and now < begin + _STARTING_S and now < quiet_since + _QUIET_S
        if not is_starting and now > begin + patience_s:
            return None
    return None
