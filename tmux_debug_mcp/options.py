"""The server's options: the table of flags and variables, and their parser.

A flag wins over its variable; an empty variable counts as not set. The command line, `config`,
`doctor` and `--keep` all read options here. This is light, since a process that only reaches a
running server imports it. `settings` says what a value means, and `option_checks` which go
together.
"""

from collections.abc import Mapping, Sequence

# The value of each option, by its flag; "" if it has none.
Values = Mapping[str, str]


class OptionError(Exception):
    """Raised for a command line that can't be read: what is wrong, and what to do, as sentences."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason} {advice}")
        self.reason = reason
        self.advice = advice


class Option:
    """An option: `--flag VALUE`, or the variable TMUX_DEBUG_FLAG.

    Attributes:
        flag: The flag, without its dashes.
        value: What the help calls its value; "" for a switch, which takes none.
        default: Its default, "" for none.
    """

    def __init__(self, flag: str, value: str, default: str, text: str) -> None:
        self.flag = flag
        self.value = value
        self.default = default
        self.help = text
        self.variable = "TMUX_DEBUG_" + flag.upper().replace("-", "_")


# The audit of a server that keeps none.
NO_AUDIT = "none"

OPTIONS = (
    Option(
        "allow-kill",
        "",
        "",
        "with --socket, let tmux_kill, close_tab and stop_process end windows on that tmux server",
    ),
    Option(
        "audit",
        "FILE",
        "",
        "append a record of every call to this file, in JSON Lines; the word none for no audit; "
        "by default, only servers that outlive their clients have one, in the state directory",
    ),
    Option("audit-full", "DIR", "", "save each returned pane text to a file in this directory"),
    Option("cwd", "DIR", "", "the directory where panes start, instead of the server's own"),
    Option(
        "drop-env",
        "PATTERNS",
        "CLAUDE_CODE_*,CLAUDECODE,TMUX*",
        "environment variables that panes do not inherit, separated by commas",
    ),
    Option(
        "env",
        "VARIABLES",
        "",
        "more variables for panes: words NAME=VALUE, separated and quoted as in a shell; not with "
        "--socket",
    ),
    Option(
        "keep",
        "TIME",
        "",
        "serve through a server that outlives its clients and ends after this long without use: "
        "90s, 60m, 2h or 1d",
    ),
    Option(
        "log-dir",
        "DIR",
        "",
        "keep panes' logs in this directory; tools read them afterwards as RUN/ID",
    ),
    Option(
        "secrets",
        "WHO",
        "anyone",
        "who may type when a program reads without echo, as for a password: anyone, or person "
        "(only somebody at a terminal)",
    ),
    Option("shell", "PROGRAM", "", "the shell for panes, instead of $SHELL; not with --socket"),
    Option("size", "COLUMNSxROWS", "120x40", "the size of sessions in toolset terminal"),
    Option(
        "socket",
        "SOCKET",
        "",
        "have toolsets tmux and tabs work on the user's own tmux server: the word default, "
        "or its socket's path",
    ),
    Option("tmux", "PROGRAM", "tmux", "the tmux to use, version 3.3 or newer"),
    Option(
        "toolsets", "NAMES", "debug", "the tools to offer: names of toolsets, separated by commas"
    ),
)

BY_FLAG: Mapping[str, Option] = {option.flag: option for option in OPTIONS}


def value_of(flag: str, environ: Mapping[str, str]) -> str:
    """Return an option's value in the environment, else its default, "" for none."""
    option = BY_FLAG[flag]
    return environ.get(option.variable) or option.default


def default_of(flag: str) -> str:
    """Return the default of an option, "" for none."""
    return BY_FLAG[flag].default


def parse(words: Sequence[str], environ: Mapping[str, str]) -> tuple[Values, list[str]]:
    """Return the values of all options, and the words that are not options, such as `demo`.

    Raises:
        OptionError: An option lacks its value, or a switch has one.
    """
    values = {flag: value_of(flag, environ) for flag in BY_FLAG}
    others = []
    remaining = iter(words)
    for word in remaining:
        flag, has_value, value = word.removeprefix("--").partition("=")
        option = BY_FLAG.get(flag)
        if option is None or not word.startswith("--"):
            others.append(word)
            continue
        if not option.value:
            if has_value:
                raise OptionError(f"Option --{flag} takes no value.", f"Remove '={value}'.")
            value = "1"
        elif not has_value:
            following = next(remaining, None)
            if following is None or (following.startswith("-") and following != "-"):
                raise OptionError(
                    f"Option --{flag} needs a value.", f"Give --{flag}={option.value}."
                )
            value = following
        values[flag] = value
    return values, others


def parse_all(words: Sequence[str], environ: Mapping[str, str]) -> Values:
    """Return the values of all options; OptionError if a word belongs to none."""
    values, others = parse(words, environ)
    if others:
        raise unknown(others[0])
    return values


def unknown(word: str) -> OptionError:
    """Return the error for a word that is not an option."""
    from .errors import nearest  # noqa: PLC0415  it needs difflib

    near = nearest(word.partition("=")[0], [f"--{flag}" for flag in BY_FLAG])
    advice = f"Did you mean {near}?" if near else "tmux-debug-mcp --help lists all options."
    return OptionError(f"Option '{word}' is unknown.", advice)
