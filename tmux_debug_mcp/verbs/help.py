"""The help of `tmux-debug` as a whole, and completion for shells. No I/O."""

from collections.abc import Mapping

from .parsing import parser_of
from .registry import SECTIONS, VERBS, Verb

SHELLS = ("bash", "zsh", "fish")

_OVERVIEW = """\
usage: tmux-debug [--server PID] VERB ...

Use the panes of a running tmux-debug-mcp server from a shell.

{sections}
tmux-debug VERB --help shows a verb's flags and an example. Output goes to standard output, the
status line to standard error, with --status after the output, with --text nowhere. -q prints
nothing, or why the exit status isn't 0; --json prints everything. The server is the one that
--server or TMUX_DEBUG_SERVER names, else the server of the pane or MCP client that this shell
belongs to, else that of this directory, or of the nearest one above it in the same repository. A
server of an MCP client is reached by its directory only to look: capture, wait, list, attach,
secret, replay. `ps` shows all servers, and which one is used.
In a script in a pane of the server, verbs print the program's text and errors, and no status line
unless the program has ended meanwhile.

Exit status: 0 done; 1 the stop pattern matched, the program ended or awaited input before a match,
a step was not sent, a created program has failed already, or a capture lacks lines that were asked
for; 124 timed out; 125 refused or a usage error; 126 the command of `run` awaits input. Otherwise,
`run` exits with its command's code.
"""


def overview() -> str:
    """Return the help of the command as a whole."""
    sections = []
    for title, verbs in SECTIONS.items():
        lines = [f"  {verb.name:<11} {verb.summary}\n" for verb in verbs]
        sections.append(f"{title}:\n{''.join(lines)}")
    return _OVERVIEW.format(sections="\n".join(sections))


class _Completed:
    """What completion offers after a verb: its flags, and its words."""

    def __init__(self, verb: Verb) -> None:
        parser = parser_of(verb)
        self.flags = parser.flags
        self.has_panes = any(word.metavar == "PANE" for word in parser.positionals)
        self.choices = [str(choice) for word in parser.positionals for choice in word.choices or ()]


def completion(shell: str) -> str:
    """Return the script that completes words in a shell, one of `SHELLS`."""
    completed = {verb.name: _Completed(verb) for verb in VERBS.values()}
    if shell == "fish":
        return _fish(completed)
    cases = [
        f"    {verb}) flags='{' '.join(offered.flags)}' words='{' '.join(offered.choices)}' ;;"
        for verb, offered in completed.items()
    ]
    script = _BASH.format(
        verbs=" ".join(completed),
        cases="\n".join(cases),
        with_panes="|".join(verb for verb, offered in completed.items() if offered.has_panes),
    )
    return _ZSH.format(script=script) if shell == "zsh" else script


def _fish(completed: Mapping[str, _Completed]) -> str:
    lines = [
        "complete -c tmux-debug -f",
        f"complete -c tmux-debug -n __fish_use_subcommand -a '{' '.join(completed)}'",
    ]
    for verb, offered in completed.items():
        complete = f"complete -c tmux-debug -n '__fish_seen_subcommand_from {verb}'"
        lines += [f"{complete} -l {flag.removeprefix('--')}" for flag in offered.flags]
        if offered.has_panes:
            lines.append(f"{complete} -a '(tmux-debug ps --names 2>/dev/null)'")
        if offered.choices:
            lines.append(f"{complete} -a '{' '.join(offered.choices)}'")
    return "\n".join(lines) + "\n"


# zsh reads the file at the first Tab, as the body of a function that must complete at once.
_ZSH = """\
#compdef tmux-debug
autoload -U +X bashcompinit && bashcompinit
{script}\
if [[ $funcstack[1] == _tmux-debug ]]; then _bash_complete -F _tmux_debug; fi
"""

_BASH = """\
_tmux_debug() {{
  local name word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} flags words
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
        # compgen would run commands in a name, so it isn't used here.
        COMPREPLY=()
        while IFS= read -r name; do
          [[ $name == "$word"* ]] && COMPREPLY+=("$(printf %q "$name")")
        done < <(tmux-debug ps --names 2>/dev/null)
        ;;
      *) COMPREPLY=( $(compgen -W "$words" -- "$word") ) ;;
    esac
  fi
}}
complete -F _tmux_debug tmux-debug
"""
