"""The shells that may be in the foreground: which one is, and how each runs a file.

Shells need no setup and no hooks for this.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.terminals import Modes

# Shells that take `-c -- COMMAND`. Source: POSIX, sh.
COMMAND_SHELLS = frozenset({"bash", "zsh", "ksh", "dash"})

# bash 5.2 corrupts its memory if a file ends inside such a substitution.
_SUBSTITUTION = re.compile(r"[$<>]\(")
# Where systems install bash.
_BASH_PATHS = ("/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash")

# Commands and lists of commands without substitutions, groups or redirections. Quoted words contain
# no character that some shell takes for the closing quote, or that shells read differently.
_SIMPLE = re.compile(r"""(?: [\w./,:@%+=~$?;\x20-] | '[^'\\\n]*' | "[^"\\$`!\n]*" )*""", re.VERBOSE)
# Words that begin or continue a command of several lines in some shell.
_RESERVED_WORDS = frozenset(
    (
        *("and", "begin", "case", "coproc", "do", "elif", "else", "for", "foreach", "function"),
        *("if", "nocorrect", "not", "or", "repeat", "select", "switch", "then", "time", "until"),
        "while",
    )
)
# Signs that a command goes on in the next line. Unpaired quotes and brackets are signs, too.
_GOES_ON = re.compile(r"<<|[\\|&]\s*$")
_QUOTES = "'\"`"
_BRACKETS = (("(", ")"), ("{", "}"), ("[", "]"))

# The options of shells that take the next word as their argument.
_OPTIONS_WITH_ARGUMENT = (
    *("--rcfile", "--init-file", "--init-command"),
    *("-C", "-O", "+O", "-o", "+o"),
)
_BUSYBOX_SHELLS = ("sh", "ash")

# Sets `$?` to the exit code from before the job. `set -e` or an ERR trap would act on that
# code, so only a command that reads it gets this line.
_RESTORE = 'case $- in *e*) ;; *) (exit "$mcp_status") ;; esac'


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between shells.

    Attributes:
        script: The lines of a job's script, a template for str.format() with the fields `{file}`,
            `{itself}`, `{fd}`, `{begin}`, `{end}`, `{command}` and `{restore}`. The shell keeps the
            script open while it runs.
        source: The command that runs a file in the shell itself.
        restore: The line that sets `$?` to the exit code in `mcp_status`.
        reads_with_editor: Whether, given the terminal's modes, the shell would read a command with
            its line editor now; else it reads lines, as any program does.
        has_editor: The shell has a line editor, which sets the terminal's modes at each prompt.
        asks: The shell sends a query to its terminal at each prompt.
        asks_when_starting: The shell sends a query to its terminal when it starts.
    """

    script: str
    source: str
    restore: str
    reads_with_editor: Callable[[Modes], bool]
    has_editor: bool = True
    asks: bool = False
    asks_when_starting: bool = False


# A script is one command, so a shell has read it all before the file is emptied. Backslashes
# keep words from being aliases, and `2>/dev/null` keeps the lines out of a `set -x` trace.
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

# Bash reads the whole file and closes it, so the script holds it open as `{fd}`.
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

# zsh's `command` runs only programs.
_ZSH = _POSIX.replace("command ", "builtin ")

# While fish reads a file, its programs get their own process groups only with full job control.
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

# The backslash keeps `.` from being an alias.
_POSIX_SOURCE = r"\."


# The dialects by the name of the shell's program.
DIALECTS: Mapping[str, Dialect] = {
    "bash": Dialect(_BASH, _POSIX_SOURCE, _RESTORE, lambda _: True),
    "zsh": Dialect(_ZSH, _POSIX_SOURCE, _RESTORE, lambda _: True),
    "dash": Dialect(_POSIX, _POSIX_SOURCE, _RESTORE, lambda _: False, has_editor=False),
    "busybox": Dialect(
        _POSIX,
        _POSIX_SOURCE,
        _RESTORE,
        # After `stty -echo`, busybox does not use its line editor and reads whole lines.
        lambda modes: modes.echoes or not modes.is_canonical,
        asks=True,
    ),
    "fish": Dialect(
        _FISH, "builtin source", _FISH_RESTORE, lambda _: True, asks_when_starting=True
    ),
}

# Shells whose prompts we can't recognize: a pane where one has the terminal counts as stopped.
OTHER_SHELLS = (
    *("ksh", "ksh93", "mksh", "tcsh", "bsd-csh", "csh"),
    *("yash", "elvish", "nu", "xonsh", "pwsh"),
)
# The programs that count as shells where only the name is known.
SHELLS = frozenset({*DIALECTS, *OTHER_SHELLS, "sh", "ash"})


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell in the foreground of a terminal.

    `name` is its program's, a key of `DIALECTS`. `start` is its start time and the start of its
    stack, which together identify it among all programs that this pid ever runs: an `exec` changes
    the stack.
    """

    pid: int
    name: str
    start: tuple[int, int]

    @property
    def dialect(self) -> Dialect:
        """Its dialect."""
        return DIALECTS[self.name]

    def is_running(self) -> bool:
        """Return whether the shell still runs, and `exec` has not replaced it."""
        starttime, start_stack = self.start
        stat = processes.read_living(self.pid, starttime)
        return stat is not None and stat.start_stack == start_stack

    def is_interactive(self) -> bool:
        """Return whether the shell was started without a script or a command."""
        words = iter(processes.arguments(self.pid)[1:])
        for word in words:
            if word in _OPTIONS_WITH_ARGUMENT:
                next(words, None)
            elif not word.startswith(("-", "+")):
                # The first operand is a script, or the name of the shell in `busybox sh`.
                return self.name == "busybox" and word in _BUSYBOX_SHELLS
            elif "c" in word and not word.startswith(("--", "-o")):
                return False
        return True


def foreground_shell(pane_pid: int) -> Shell | None:
    """Return the shell in the foreground of a pane, given the pid of its pane.sh.

    None if another program or a subshell is there.
    """
    stat = processes.read_stat(pane_pid)
    if stat is None:
        return None
    return shell_of(processes.read_stat(in_front(stat, processes.children(pane_pid))))


def in_front(session_leader: processes.Stat, children: Sequence[int]) -> int:
    """Return the pid of the program whose shell is at work in a pane, 0 if there is none.

    That is the leader of the foreground group; but the pane's command, the first of pane.sh's
    children, if pane.sh's own group is in the foreground.
    """
    if session_leader.tpgid != session_leader.pgrp:
        return session_leader.tpgid
    return children[0] if children else 0


def shell_of(process: processes.Stat | None) -> Shell | None:
    """Return a process as a shell; None if there is none, or another program or a subshell."""
    if process is None or process.is_fork:
        return None
    name = processes.program(process.pid)
    if name not in DIALECTS:
        return None
    if name == "busybox":
        # Its first words say which of its programs it is.
        words = [word.rpartition("/")[2] for word in processes.arguments(process.pid)[:2]]
        if words and words[0] == "busybox":
            words = words[1:]
        if not words or words[0].removeprefix("-") not in _BUSYBOX_SHELLS:
            return None
    return Shell(process.pid, name, (process.starttime, process.start_stack))


def is_complete(line: str) -> bool:
    """Return whether a line is surely a complete command for every shell, aliases aside."""
    if not _SIMPLE.fullmatch(line):
        return False
    return _RESERVED_WORDS.isdisjoint(re.split("[ ;]", line))


def may_go_on(line: str) -> bool:
    """Return whether a line looks like the beginning of a longer command."""
    is_quoting = any(line.count(quote) % 2 for quote in _QUOTES)
    is_grouping = any(line.count(opening) != line.count(closing) for opening, closing in _BRACKETS)
    has_reserved_word = not _RESERVED_WORDS.isdisjoint(re.split(r"[\s;]", line))
    return is_quoting or is_grouping or has_reserved_word or bool(_GOES_ON.search(line))


async def unfinished(clock: Clock, shell: Shell, command: str) -> str | None:
    """Check that a command closes its substitutions, since bash would crash on an open one.

    Return bash's error message, None if the command can run.
    """
    if shell.name != "bash" or not _SUBSTITUTION.search(command):
        return None
    # The shell's program may merely be called bash; then we must not start it.
    paths = (shutil.which("bash"), *_BASH_PATHS)
    bash = next((path for path in paths if path and processes.runs(shell.pid, path)), None)
    if bash is None:
        return None
    argv = [bash, "--norc", "-O", "extglob", "-n"]
    script = command.encode() + b"\n"
    with clock.move_on_after(clock.times.parse_s):
        check = await anyio.run_process(argv, input=script, check=False, env={"LC_ALL": "C"})
        message = check.stderr.decode(errors="replace").replace(bash, shell.name)
        if check.returncode and "matching `)'" in message:
            return message
    return None
