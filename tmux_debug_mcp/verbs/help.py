"""The help of `tmux-debug`, and completion for shells; both from the table of verbs. No I/O."""

import re
from collections.abc import Mapping, Sequence

from .parsing import UsageError, parser
from .table import VERBS

_PEOPLES_SUMMARIES = {
    "attach": "watch a pane in this terminal, or with --write work in it",
    "secret": "type a secret that a program asks for, past the agent",
}
_SERVERS_SUMMARIES = {
    "ps": "list the servers and their panes (--follow: live)",
    "start": "start a server that outlives its callers (--keep 60m, and the server's options)",
    "stop": "end a server with everything in its panes",
}
_LOOKING_SUMMARIES = {
    "audit": "show audits as a table, or with --html as a page",
    "replay": "show a pane as it was at any moment",
    "doctor": "check what the server needs here, and say what to do",
    "config": "set up an MCP client: config CLIENT, with --write in its own file",
    "demo": "watch a client debug a small broken web service",
}
_OTHERS_SUMMARIES = {
    "call": "call any tool of the server: call TOOL NAME=VALUE...",
    "completion": "print a script for tab completion: completion bash, zsh or fish",
}
SHELLS = ("bash", "zsh", "fish")
# The words behind a verb that are panes.
_WITH_PANES = ("send", "capture", "wait", "kill", "attach", "secret", "replay")
_LOCAL_FLAGS = {
    "ps": ["--follow"],
    "start": ["--keep"],
    "stop": [],
    "completion": [],
    "demo": [],
}

_OVERVIEW = """\
usage: tmux-debug [--server PID] VERB ...

The panes of a running tmux-debug-mcp server, from a shell.

{sections}
tmux-debug VERB --help has the flags of a verb. Standard output has what was printed, standard
error the status line, and --json both. The server is the one that --server or TMUX_DEBUG_SERVER
names, else the one of the MCP client that this shell belongs to, else the only one.

Exit status: 0 done; 1 it ended otherwise; 124 timed out; 125 refused or wrong; 126 `run` awaits
input. `run` has else the exit code of its command.
"""


def overview() -> str:
    """Return the help of the command as a whole."""
    sections = [
        _section("panes", {verb.name: verb.summary for verb in VERBS}),
        _section("people", _PEOPLES_SUMMARIES),
        _section("servers", _SERVERS_SUMMARIES),
        _section("looking and setting up", _LOOKING_SUMMARIES),
        _section("others", _OTHERS_SUMMARIES),
    ]
    return _OVERVIEW.format(sections="\n".join(sections))


def _section(title: str, summaries: dict[str, str]) -> str:
    lines = [f"  {verb:<11} {summary}\n" for verb, summary in summaries.items()]
    return f"{title}:\n{''.join(lines)}"


def help_of(words: Sequence[str]) -> str:
    """Return the help that a command line with `--help` asks for."""
    verb = words[0]
    try:
        parser().parse_args([verb, "--help"])
    except UsageError as error:
        if error.is_help:
            return str(error)
    return overview()


def completion(shell: str, looking: Mapping[str, str]) -> str:
    """Return the script that completes words in a shell.

    Args:
        shell: One of `SHELLS`.
        looking: The verbs that look at files and at this machine, each with its help.
    """
    flags = {verb.name: _flags_of(verb.name) for verb in VERBS}
    flags |= {verb: _flags_of(verb) for verb in ("attach", "secret", "call")}
    flags |= {verb: _flags_in(text) for verb, text in looking.items()}
    flags |= _LOCAL_FLAGS
    if shell == "fish":
        return _fish(flags)
    script = _BASH.format(
        verbs=" ".join(flags),
        cases="\n".join(f"    {verb}) flags='{' '.join(flags[verb])}' ;;" for verb in flags),
        with_panes="|".join(_WITH_PANES),
    )
    if shell == "zsh":
        return _ZSH.format(script=script)
    return script


def _flags_of(verb: str) -> list[str]:
    """Return the flags of a verb that the server answers."""
    return _flags_in(help_of([verb]))


def _flags_in(text: str) -> list[str]:
    found = re.findall(r"--[a-z][a-z-]*", text)
    return list(dict.fromkeys(found))


def _fish(flags: dict[str, list[str]]) -> str:
    lines = [
        "complete -c tmux-debug -f",
        f"complete -c tmux-debug -n __fish_use_subcommand -a '{' '.join(flags)}'",
    ]
    for verb, names in flags.items():
        condition = f"'__fish_seen_subcommand_from {verb}'"
        lines += [
            f"complete -c tmux-debug -n {condition} -l {name.removeprefix('--')}" for name in names
        ]
        if verb in _WITH_PANES:
            lines.append(
                f"complete -c tmux-debug -n {condition} -a '(tmux-debug ps --names 2>/dev/null)'"
            )
    return "\n".join(lines) + "\n"


# zsh reads the file at the first Tab, as the body of a function that is to complete at once.
_ZSH = """\
#compdef tmux-debug
autoload -U +X bashcompinit && bashcompinit
{script}\
if [[ $funcstack[1] == _tmux-debug ]]; then _bash_complete -F _tmux_debug; fi
"""

_BASH = """\
_tmux_debug() {{
  local name word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} flags=
  case $verb in
{cases}
  esac
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=( $(compgen -W '{verbs}' -- "$word") )
  elif [[ $word == -* ]]; then
    COMPREPLY=( $(compgen -W "$flags" -- "$word") )
  else
    case $verb in
      {with_panes})
        # Not by compgen, which would run the commands that stand in a name.
        COMPREPLY=()
        while IFS= read -r name; do
          [[ $name == "$word"* ]] && COMPREPLY+=("$(printf %q "$name")")
        done < <(tmux-debug ps --names 2>/dev/null)
        ;;
      completion) COMPREPLY=( $(compgen -W 'bash zsh fish' -- "$word") ) ;;
    esac
  fi
}}
complete -F _tmux_debug tmux-debug
"""
