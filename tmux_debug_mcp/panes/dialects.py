"""Shells in terminals: which one has a terminal, how to run a file in it, and what else differs between shells.

No shell is set up for this, and no hook is used.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.terminals import Modes

# Shells that understand `-c -- COMMAND` as POSIX has it.
SHELLS = frozenset({"bash", "zsh", "ksh", "dash"})

# What bash 5.2 corrupts its memory at when it is not finished at the end of a file.
_SUBSTITUTION = re.compile(r"[$<>]\(")
# Where systems have bash.
_BASHES = ("/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash")
# It parses a command of 128 kB in some milliseconds.
_CHECK_S = 1.0

# What is traced with `set -x` is the command, not this. A trap or option for errors would act on a code that is
# restored, so that is done only for a command that asks for it.
_RESTORE = 'case $- in *e*) ;; *) (exit "$mcp_status") ;; esac'


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between shells.

    Attributes:
        script: The lines of the file that runs another and tells its exit code, with the places `{file}`, `{itself}`,
            `{fd}`, `{begin}`, `{end}`, `{command}` and `{restore}`. While it runs, the shell has it open.
        source: The command that reads a file.
        restore: The line that makes an exit code the last one.
        edits: Tells whether its line editor is at work at a prompt, given the terminal's modes.
        has_editor: It has one, which sets the modes of the terminal that it needs.
        asks: It asks its terminal something at each prompt.
        asks_when_starting: It does when it starts.
    """

    script: str
    source: str = r"\."  # which no alias stands for
    restore: str = _RESTORE
    edits: Callable[[Modes], bool] = lambda _modes: True
    has_editor: bool = True
    asks: bool = False
    asks_when_starting: bool = False


# Each is one command, so that a shell has read all of it before the file is emptied; no alias stands for a quoted word.
_POSIX = r"""{{
{{ mcp_status=$?
\: >|'{itself}'
\command printf '\033]7777;{begin};S%d;%s\007' "$mcp_status" '{command}' >/dev/tty
{restore}
}} 2>/dev/null
\command . '{file}'
{{ mcp_status=$?
\command printf '\033]7777;{end};%d\007' "$mcp_status" >/dev/tty
\eval "\command unset mcp_status; \return $mcp_status"
}} 2>/dev/null
}}
"""

# Bash reads a file whole and closes it, so it is held open.
_BASH = r"""{{
{{ mcp_status=$?
\builtin : >|'{itself}'
case ":${{HISTCONTROL-}}:" in
*:ignorespace:* | *:ignoreboth:*) ;;
*) [[ $(\builtin history 1) == *'{itself}'* ]] && \builtin history -d -1 ;;
esac
\builtin printf '\033]7777;{begin};S%d;%s\007' "$mcp_status" '{command}' >/dev/tty
{restore}
}} 2>/dev/null
\builtin . '{file}'
{{ mcp_status=$?
\builtin printf '\033]7777;{end};%d\007' "$mcp_status" >/dev/tty
}} 2>/dev/null
}} {fd}<'{itself}'
{{ \builtin eval "\builtin unset mcp_status; \builtin return $mcp_status"; }} 2>/dev/null
"""

_ZSH = _POSIX.replace("command ", "builtin ")  # its `command` runs programs only

# In a file that it reads, fish gives programs a process group of their own only if it is told to.
_FISH = r"""begin
set -l mcp_status $status
builtin printf '' >'{itself}'
set -l mcp_jobs interactive
status is-full-job-control && set mcp_jobs full
status job-control full
builtin printf '\033]7777;{begin};S%d;%s\007' "$mcp_status" '{command}' >/dev/tty
{restore}
builtin source '{file}'
set mcp_status $status
status job-control $mcp_jobs
builtin printf '\033]7777;{end};%d\007' $mcp_status >/dev/tty
return $mcp_status
end
"""
_FISH_RESTORE = 'command sh -c "exit $mcp_status"'

# By the names of their programs. One called busybox is many, and tells by its first argument.
DIALECTS: Mapping[str, Dialect] = {
    "bash": Dialect(_BASH),
    "zsh": Dialect(_ZSH),
    "dash": Dialect(_POSIX, edits=lambda _modes: False, has_editor=False),
    "busybox": Dialect(_POSIX, edits=lambda modes: modes.echoes or not modes.is_canonical, asks=True),
    "fish": Dialect(_FISH, "builtin source", _FISH_RESTORE, asks_when_starting=True),
}
_OPTIONS_WITH_ARGUMENT = ("--rcfile", "--init-file", "--init-command", "-C", "-O", "+O", "-o", "+o")
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
    def dialect(self) -> Dialect:
        """How to run a file in it."""
        return DIALECTS[self.name]

    def is_running(self) -> bool:
        """Tell whether it is still there, and not replaced by what `exec` was given."""
        stat = processes.read_stat(self.pid)
        return stat is not None and stat.state != "Z" and (stat.starttime, stat.start_stack) == self.start

    def is_interactive(self) -> bool:
        """Tell whether it takes commands from the terminal: it was started without a script or command."""
        words = iter(processes.arguments(self.pid)[1:])
        for word in words:
            if word in _OPTIONS_WITH_ARGUMENT:
                next(words, None)
            elif word[:1] not in ("-", "+"):
                return self.name == "busybox" and word in _BUSYBOX_SHELLS
            elif word[:2] not in ("--", "-o") and "c" in word:
                return False
        return True


def foreground_shell(pane_pid: int) -> Shell | None:
    """Return the shell that has a pane's terminal, or None when something else has it, be it a part of a shell."""
    stat = processes.read_stat(pane_pid)
    if stat is None:
        return None
    pid = stat.tpgid
    if pid == stat.pgrp:  # the command is in pane.sh's own group
        below = processes.children(pane_pid)
        pid = below[0] if below else -1
    leader = processes.read_stat(pid) if pid > 0 else None
    if leader is None or leader.is_fork:
        return None
    name = processes.program(leader.pid)
    if name == "busybox":
        words = [word.rpartition("/")[2] for word in processes.arguments(leader.pid)[:2]]
        word = (words[1:] if words[:1] == ["busybox"] else words)[:1]
        name = name if word and word[0].removeprefix("-") in _BUSYBOX_SHELLS else ""
    return Shell(leader.pid, name, (leader.starttime, leader.start_stack)) if name in DIALECTS else None


async def unfinished(shell: Shell, command: str) -> str | None:
    """Return what bash says of a command whose substitution does not end."""
    if shell.name != "bash" or not _SUBSTITUTION.search(command):
        return None
    # A program may have the name of one, and is not to be started by us.
    bash = next((path for path in (shutil.which("bash"), *_BASHES) if path and processes.runs(shell.pid, path)), None)
    if bash is None:
        return None
    argv = [bash, "--norc", "-O", "extglob", "-n"]
    with anyio.move_on_after(_CHECK_S):
        checked = await anyio.run_process(argv, input=command.encode() + b"\n", check=False, env={"LC_ALL": "C"})
        said = checked.stderr.decode(errors="replace").replace(argv[0], shell.name)
        if checked.returncode and "matching `)'" in said:
            return said
    return None
