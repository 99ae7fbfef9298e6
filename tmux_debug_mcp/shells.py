"""Shells in terminals: which one has a terminal, whether it is at its prompt, and how to run a file in it.

Told by the kernel alone, not by what prompts look like. No shell is set up for this, and no hook is used.
"""

import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio

from . import linux, terminals
from .logs import Log

# A look that finds a shell at its prompt may have come before it has read what was typed last. So there are two.
_LOOK_AGAIN_S = 0.002
# A shell that starts sets up things; keys wait so long for that. Or it asks for something, and is quiet.
_STARTING_S = 10.0
_QUIET_S = 0.5
# A process that could go on if the machine were not busy: it wants a processor or waits for a disk.
_AT_WORK = "RD"
# A shell that is at work may be on its way to its prompt, on a busy machine.
_COMING_S = 0.5
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
class Kind:
    """What differs between shells.

    Attributes:
        script: The lines of the file that runs another and tells its exit code, with the places `{file}`, `{itself}`,
            `{fd}`, `{begin}`, `{end}`, `{command}` and `{restore}`. While it runs, the shell has it open.
        source: The command that reads a file.
        restore: The line that makes an exit code the last one.
    """

    script: str
    source: str = r"\."  # which no alias stands for
    restore: str = _RESTORE


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
KINDS: Mapping[str, Kind] = {
    "bash": Kind(_BASH),
    "zsh": Kind(_ZSH),
    "dash": Kind(_POSIX),
    "busybox": Kind(_POSIX),
    "fish": Kind(_FISH, "builtin source", _FISH_RESTORE),
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
    def kind(self) -> Kind:
        """How to run a file in it."""
        return KINDS[self.name]

    def is_running(self) -> bool:
        """Tell whether it is still there, and not replaced by what `exec` was given."""
        stat = linux.read_stat(self.pid)
        return stat is not None and stat.state != "Z" and (stat.starttime, stat.start_stack) == self.start

    def is_interactive(self) -> bool:
        """Tell whether it takes commands from the terminal: it was started without a script or command."""
        words = iter(linux.arguments(self.pid)[1:])
        for word in words:
            if word in _OPTIONS_WITH_ARGUMENT:
                next(words, None)
            elif word[:1] not in ("-", "+"):
                return self.name == "busybox" and word in _BUSYBOX_SHELLS
            elif word[:2] not in ("--", "-o") and "c" in word:
                return False
        return True

    def is_at_prompt(self) -> bool:
        """Tell whether it waits for a command, as far as one look can tell."""
        stat = linux.read_stat(self.pid)
        if stat is None or stat.state != "S" or stat.tpgid != stat.pgrp:
            return False
        modes = terminals.modes(self.pid)
        if modes is None or modes.unread_bytes:
            return False
        # Dash has no line editor, and busybox does not use its own where the terminal does not echo.
        has_no_editor = self.name == "dash" or (self.name == "busybox" and modes.is_canonical and not modes.echoes)
        if has_no_editor:
            return modes.is_canonical and linux.is_reading_lines(self.pid)
        return not modes.is_canonical and not modes.echoes and modes.is_raw


def foreground_shell(pane_pid: int) -> Shell | None:
    """Return the shell that has a pane's terminal, or None when something else has it, be it a part of a shell."""
    stat = linux.read_stat(pane_pid)
    if stat is None:
        return None
    pid = stat.tpgid
    if pid == stat.pgrp:  # the command is in pane.sh's own group
        below = linux.children(pane_pid)
        pid = below[0] if below else -1
    leader = linux.read_stat(pid) if pid > 0 else None
    if leader is None or leader.is_fork:
        return None
    name = linux.program(leader.pid)
    if name == "busybox":
        words = [word.rpartition("/")[2] for word in linux.arguments(leader.pid)[:2]]
        word = (words[1:] if words[:1] == ["busybox"] else words)[:1]
        name = name if word and word[0].removeprefix("-") in _BUSYBOX_SHELLS else ""
    return Shell(leader.pid, name, (leader.starttime, leader.start_stack)) if name in KINDS else None


async def unfinished(shell: Shell, command: str) -> str | None:
    """Return what bash says of a command whose substitution does not end."""
    if shell.name != "bash" or not _SUBSTITUTION.search(command):
        return None
    # A program may have the name of one, and is not to be started by us.
    bash = next((path for path in (shutil.which("bash"), *_BASHES) if path and linux.runs(shell.pid, path)), None)
    if bash is None:
        return None
    argv = [bash, "--norc", "-O", "extglob", "-n"]
    with anyio.move_on_after(_CHECK_S):
        checked = await anyio.run_process(argv, input=command.encode() + b"\n", check=False, env={"LC_ALL": "C"})
        said = checked.stderr.decode(errors="replace").replace(argv[0], shell.name)
        if checked.returncode and "matching `)'" in said:
            return said
    return None


class Prompts:
    """The prompts of a pane's shells.

    Args:
        pane_pid: The process of pane.sh.
        log: The pane's log; a shell that starts and prints nothing for a while waits for something.
        flush: Waits until tmux has read what was printed, and has answered what a shell asked its terminal.
    """

    def __init__(self, pane_pid: int, log: Log, flush: Callable[[], Awaitable[object]]) -> None:
        self._pane_pid = pane_pid
        self._log = log
        self._flush = flush
        self._known: set[tuple[int, int]] = set()

    async def wait(
        self, patience_s: float, *, starting_s: float = _STARTING_S, is_to_run: bool = False
    ) -> Shell | None:
        """Wait until the shell that has the pane's terminal is at its prompt.

        Args:
            patience_s: How long to wait for a shell that has been at its prompt before.
            starting_s: How long to wait for one that has not, as long as it is at work.
            is_to_run: A command is to be run there, so what a starting shell runs itself is waited for, too.

        Returns:
            The shell, or None when none has the terminal, or one that does not come to its prompt.
        """
        begin = quiet_since = anyio.current_time()
        before = None
        while shell := foreground_shell(self._pane_pid):
            if shell.is_at_prompt() and await self._stays_at_prompt(shell):
                self._known.add(shell.start)
                return shell
            await anyio.sleep(0.001)
            # Looked at first: a shell whose last child has ended has run since, and that shows below.
            has_children = is_to_run and bool(linux.children(shell.pid))
            now, look = anyio.current_time(), self._look(shell)
            stat = linux.read_stat(shell.pid)
            if look != before or (stat and stat.state in _AT_WORK):
                before, quiet_since = look, now
            is_busy = has_children or now < quiet_since + _QUIET_S
            is_starting = shell.start not in self._known and now < begin + starting_s and is_busy
            is_starting = is_starting and shell.is_interactive()
            is_coming = now < quiet_since + patience_s and now < begin + _COMING_S
            if not is_starting and not is_coming and now > begin + patience_s:
                return None
        return None

    async def _stays_at_prompt(self, shell: Shell) -> bool:
        look = self._look(shell)
        await self._flush()
        await anyio.sleep(_LOOK_AGAIN_S)
        # It may have replaced itself, as `bash -c zsh` does, since it was found.
        return shell.is_running() and shell.is_at_prompt() and self._look(shell) == look

    def _look(self, shell: Shell) -> tuple[bytes, int]:
        return linux.cpu_time(shell.pid), self._log.size
