"""The shells that may be in the foreground: which shell is, and how each runs a command.

A shell here reads the command from a file. A shell elsewhere can't see our files, and reads it from
its terminal. Neither needs any setup.
"""

import re
import shlex
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

# What follows is for shells elsewhere. Words in `@` stand for facts of a job.

# What is typed first to whatever reads a terminal elsewhere. Only fish takes two backslashes in
# single quotes for a single one.
QUESTION = r" printf '\033]7777;@nonce@;%s\007' '\\'"

# Makes a shell read lines from its terminal, without echo, until a line has `@=` and the number of
# characters in all lines before it: should a line get lost, nothing runs. A lone `@=` gives up.
# Each line begins with `@`; what is before that, the terminal has answered to a query of the shell.
# Prints what the lines encode, and on standard error the mark that says which shell reads.
_READER = (
    "s=$(stty -g 2>&-);stty -echo 2>&-;printf>&2 {quote}\\033]7777;@nonce@;%d\\007{quote} {kind};"
    'n=0;while IFS= read -r l&&l=${{l##*@}}&&[ "$l" != "=$n" ]&&[ "$l" != = ];do '
    'n=$((n+${{#l}}));printf %b "$l";done;stty $s 2>&-'
)
_READS_POSIX = _READER.format(quote="'", kind="0${BASH_VERSION:+1}${ZSH_VERSION:+2}")
_READS_FISH = _READER.format(quote='"', kind="3")
BEGINS_LINE = "@"
END_OF_READING = "@="
# How many characters such a line has at most. Some terminals take no more than 1,024.
MAX_LINE_CHARACTERS = 1000

_BEGINS = r"\printf '\033]7777;@begin@;S0;%s\007' '@shown@'"
_ENDS = r"\printf '\033]7777;@end@;%d\007' $mcp_status"


def _elsewhere(before: str, run: str, after: str) -> str:
    """Return the script of a shell elsewhere, given what it does before a command and after it."""
    # Without a terminal of its own, the shell still has the pane's as its output.
    begins, ends = (f"{mark} >/dev/tty || {mark}" for mark in (_BEGINS, _ENDS))
    return "\n".join(
        (
            *("{", "{", before, begins, "} 2>/dev/null", "@restore@", run),
            *("{ mcp_status=$?", after, ends, "} 2>/dev/null"),
            *(r'\eval "\unset mcp_status; (exit $mcp_status)"', "}", ""),
        )
    )


# The end of a command that is interrupted, or that a shell gives up, is told by the next prompt
# alone. So where it may, a script adds a mark to that prompt, and takes it back after the command.
# Shells that the command starts must not show it, so an exported PS1 gets none. (`$_`, which some
# shells export, has the script: so the patterns for it must not match themselves.)
_UNMARK_PS1 = r"""case ${mcp_mark-} in
?*) case ${PS1-} in
*"$mcp_mark"*) (PS1=) && PS1=${PS1%%"$mcp_mark"*}${PS1#*"$mcp_mark"} ;;
esac ;;
esac"""
_POSIX_ELSEWHERE = _elsewhere(
    rf"""{_UNMARK_PS1}
mcp_mark=
if (PS1=${{PS1-}}); then case $(\export -p) in
*'t 'PS1=* | *'x 'PS1=*) ;;
*) mcp_mark=$(\printf '\033]7777;@abort@;$?\007')
PS1=$mcp_mark${{PS1-}} ;;
esac; fi""",
    r"\command eval @command@",
    rf"{_UNMARK_PS1}; \unset mcp_mark",
)
# Bash has a hook for that. In a shell with another pid, which may inherit it, it prints no mark.
_BASH_ELSEWHERE = _elsewhere(
    r"""while [[ $(\builtin history 1) == *'\033]7777;'* ]]; do
\builtin history -d -1 || \builtin break
done
mcp_prompt='{ mcp_status=$?
case $$ in '$$') \builtin printf "\033]7777;@abort@;%d\007" $mcp_status >/dev/tty ;; esac
(PROMPT_COMMAND=) &&
PROMPT_COMMAND=${PROMPT_COMMAND%%"$mcp_prompt"*}${PROMPT_COMMAND#*"$mcp_prompt"}
\builtin unset mcp_prompt
\builtin eval "\builtin unset mcp_status; (exit $mcp_status)"
} 2>/dev/null
'
(PROMPT_COMMAND=) && PROMPT_COMMAND=$mcp_prompt${PROMPT_COMMAND-}""",
    r"\builtin eval @command@",
    r"""case ${PROMPT_COMMAND-} in
*"$mcp_prompt"*) if (PROMPT_COMMAND=); then
PROMPT_COMMAND=${PROMPT_COMMAND%%"$mcp_prompt"*}${PROMPT_COMMAND#*"$mcp_prompt"}
[[ ${PROMPT_COMMAND[*]} ]] || \builtin unset PROMPT_COMMAND
fi ;;
esac
\builtin unset mcp_prompt""",
)
_ZSH_ELSEWHERE = _elsewhere(
    r"""mcp_prompt() {
\builtin printf '\033]7777;@abort@;%d\007' $? >/dev/tty
precmd_functions=("${(@)precmd_functions:#mcp_prompt}")
\builtin unfunction mcp_prompt
}
\builtin typeset -ga precmd_functions
precmd_functions=(mcp_prompt "${(@)precmd_functions}")""",
    r"\builtin eval @command@",
    r"""precmd_functions=("${(@)precmd_functions:#mcp_prompt}")
\builtin unfunction mcp_prompt""",
)
_FISH_ELSEWHERE = rf"""begin
function mcp_prompt --on-event fish_prompt
builtin printf '\033]7777;@abort@;%d\007' $status >/dev/tty
functions --erase mcp_prompt
end
builtin {_BEGINS[1:]} >/dev/tty
@restore@
eval @command@
set -l mcp_status $status
functions --erase mcp_prompt
builtin {_ENDS[1:]} >/dev/tty
command sh -c "exit $mcp_status"
end
"""


def _quoted_for_fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True, slots=True)
class ElsewhereDialect:
    """How a shell elsewhere, which can't read our files, reads a command and runs it.

    Attributes:
        line: The line that makes it read a script, with the fact `nonce`.
        script: The script, with the facts `begin`, `end` and `abort`, nonces of marks; `shown`, the
            command in a mark; `command`, the command in quotes; and `restore`.
        restore: The line that sets `$?`, with the fact `code`.
        quote: Puts a text in quotes.
    """

    line: str
    script: str
    restore: str = "case $- in *e*) ;; *) (exit @code@) ;; esac"
    quote: Callable[[str], str] = shlex.quote


# By what the mark of that line says.
ELSEWHERE: Mapping[str, ElsewhereDialect] = {
    "0": ElsewhereDialect(f' eval "$({_READS_POSIX})"', _POSIX_ELSEWHERE),
    "1": ElsewhereDialect(f' eval "$({_READS_POSIX})"', _BASH_ELSEWHERE),
    "2": ElsewhereDialect(f' eval "$({_READS_POSIX})"', _ZSH_ELSEWHERE),
    "3": ElsewhereDialect(
        f" eval (sh -c '{_READS_FISH}'|string collect)",
        _FISH_ELSEWHERE,
        'command sh -c "exit @code@"',
        _quoted_for_fish,
    ),
}
SH_ELSEWHERE, BASH_ELSEWHERE, FISH_ELSEWHERE = (ELSEWHERE[kind] for kind in "013")


def filled(text: str, **facts: object) -> str:
    """Return a text with facts in place of the words in `@` that stand for them."""
    return re.sub("@([a-z]+)@", lambda word: str(facts[word[1]]), text)


# Shells whose prompts we can't recognize: a pane where one has the terminal counts as stopped.
OTHER_SHELLS = (
    *("ksh", "ksh93", "mksh", "tcsh", "bsd-csh", "csh"),
    *("yash", "elvish", "nu", "xonsh", "pwsh"),
)
# Those that read what is typed for a shell elsewhere.
READING_SHELLS = frozenset({"ksh", "ksh93", "mksh", "yash"})
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


async def syntax_error(clock: Clock, command: str, pid: int | None = None) -> str | None:
    """Look for an open substitution in a command for bash, which would crash it.

    `pid` is the shell's, if it is here. Return bash's error message, None if the command can run.
    """
    if not _SUBSTITUTION.search(command):
        return None
    # The shell's program may merely be called bash; then we must not start it.
    paths = [path for path in (shutil.which("bash"), *_BASH_PATHS) if path]
    if pid:
        paths = [path for path in paths if processes.runs(pid, path)]
    bash = next(iter(paths), None)
    if bash is None:
        return None
    argv = [bash, "--norc", "-O", "extglob", "-n"]
    script = command.encode() + b"\n"
    with clock.move_on_after(clock.times.parse_s):
        check = await anyio.run_process(argv, input=script, check=False, env={"LC_ALL": "C"})
        message = check.stderr.decode(errors="replace").replace(bash, "bash")
        if check.returncode and "matching `)'" in message:
            return message
    return None
