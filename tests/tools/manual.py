"""What a package installs beside the code: manual pages and completions, made from the code.

Run it after a change of a verb, an option or the version: `.venv/bin/python tests/tools/manual.py`.
"""

from pathlib import Path

import roff
from roff import filled, paragraphs, rows, section

from tmux_debug_mcp import __version__
from tmux_debug_mcp.options import OPTIONS, Option
from tmux_debug_mcp.tools.toolset import TOOLSETS
from tmux_debug_mcp.verbs import help as texts
from tmux_debug_mcp.verbs import parsing
from tmux_debug_mcp.verbs.registry import LOOKING, SECTIONS, Verb

DATA = Path(__file__).parents[2] / "data"

# The last change that a reader of the pages would notice.
_DATE = "2026-11-29"

_SYNOPSIS = [
    (r"[\fB\-\-server\fR \fIPID\fR]", r"\fIVERB\fR", r"[\fIARGUMENT\fR \.\.\.]"),
    (r"\fIVERB\fR", r"\fB\-\-help\fR"),
    (r"\fB\-\-version\fR",),
]

_COMMAND = """\
`tmux-debug` gives shells, scripts and people access to the panes of a `tmux-debug-mcp`(1) server. A
pane is a terminal in a private tmux server. Its program keeps running between calls.

Output goes to standard output, the status line to standard error. The status line says whether the
program runs, what it awaits or how it ended, and gives a cursor: the number of bytes that the pane
has printed.
"""

_VERBS = """\
The first seven verbs are tools of the server with their arguments as flags. Flags go before a
command: everything from its first word on is the command's. Put `--` before a command or before
keys whose first word begins with a dash. Several words of a command keep their quoting. PANE is
the id or the name of a pane, REGEX a regular expression. `--json` prints the whole result as one
line of JSON, `--status` prints the status line on standard output, after the text; `--text` prints
none. `-q` prints nothing, or why the exit status isn't 0, on standard error.
"""

# Descriptions of arguments that the text above has.
_COMMON = (
    "Pane id or name.",
    "Pane ids or names.",
    "Regular expression.",
    "Print the whole result as JSON.",
    "Print the status line on standard output, after the text.",
    "Print the text and errors, and no status line.",
    "Print nothing, or why the exit status isn't 0, on standard error.",
)

_CHOICE = """\
Every server listens on a Unix socket that only its user can reach. `tmux-debug` uses the server
that `--server` or `TMUX_DEBUG_SERVER` names by its process id; else that of the pane or of the MCP
client that the caller belongs to; else that of the caller's directory, or of the nearest directory
above it, up to the root of the repository, but not of the home or above. There a detached one comes
first; one of an MCP client is only for `attach`, `secret`, `capture`, `wait`, `list`, `ps` and
`replay`. If several match, the name of a pane decides. If none is found, `create`, `run` and `dev`
start one for the current directory, which ends after 60 minutes without use. `ps` lists all
servers, and says which one is used and why.
"""

_STATUSES = [
    ("`0`", "Done, matched, or at rest."),
    (
        "`1`",
        (
            "The stop pattern matched; the program ended or awaited input first; a step wasn't "
            "sent; the program of `create` has failed already; or `capture` found no match, or "
            "couldn't print all that was asked for."
        ),
    ),
    ("`124`", "Timed out."),
    ("`125`", "Refused or wrong. Standard error says why."),
    ("`126`", "The command of `run` awaits input, or started a shell. Answer it with `send`."),
    ("other", "The exit code of the command of `run`."),
]

_AFTER_STATUSES = """\
If a command may itself end with 124 to 126, see `reason` in what `--json` prints.
"""

_VARIABLES = [
    ("`TMUX_DEBUG_SERVER`", "The process id of the server, as for `--server`."),
    (
        "`TMUX_DEBUG_KEEP`",
        "How long a new server runs without use, as for `start --keep`.",
    ),
    ("`TMUX_DEBUG_…`", "The options of a server that is started: see `tmux-debug-mcp`(1)."),
    ("`XDG_RUNTIME_DIR`", "The directory of sockets; else `/run/user/UID`, else `/tmp`."),
]

_FILES = [
    ("`$XDG_RUNTIME_DIR/tmux-debug-…/`", "The directory of a server with its `socket`."),
]

_EXAMPLES = """\
Start a server and wait until it listens. Send it a request. See what it logged, and end it:

    tmux-debug create --name web --wait-for listening 'python3 app.py'
    tmux-debug run 'curl -s http://localhost:8000/'
    tmux-debug capture web --pattern 'Error|Traceback'
    tmux-debug kill web

Drive a debugger, one step after the other:

    tmux-debug create --name gdb gdb ./a.out
    tmux-debug send gdb 'break main' Enter run Enter 'info locals' Enter

Watch a pane, and type a password that no agent gets to see:

    tmux-debug attach web
    pass show db | tmux-debug secret web
"""

_SERVER = """\
`tmux-debug-mcp` is an MCP server that gives a debugging agent real terminals. An MCP client starts
it and talks to it on standard input and output. The agent starts programs in panes of a private
tmux server, types into them, reads them and waits for them. After every call it learns whether the
program runs, what it awaits, or how it ended.

The server ends at the end of its input, and at `SIGTERM`, `SIGINT` and `SIGHUP`. Everything that it
started ends with it, even after `SIGKILL`, unless it was told to `--keep` it. It reads no
configuration of tmux, and touches no session of yours, unless it is given your `--socket`.
"""

_OPTIONS = """\
Each option is a flag, or a variable in the environment. A flag wins over its variable. An empty
variable counts as not set.
"""

_TOOLSETS = {
    "debug": "Panes: starting, typing, reading, waiting, running commands. The default.",
    "tabs": "Shells in tabs, commands with exit codes, logs that outlive the server.",
    "terminal": "A terminal with named keys, pictures and recordings.",
    "tmux": "Sessions, windows and panes by tmux targets.",
}

_SERVERS_STATUSES = [
    ("`0`", "The client has closed standard input, or a signal ended the server."),
    ("`1`", "The server can't start here. Standard error says why, and what to do."),
    ("`2`", "The command line is wrong."),
]

_SERVERS_VARIABLES = [
    (
        "`SHELL`",
        (
            "The shell of panes, unless `--shell` names another; for commands only if it is bash, "
            "zsh, ksh or dash."
        ),
    ),
    ("`XDG_RUNTIME_DIR`", "Where sockets are; else `/run/user/UID`, else `/tmp`."),
    ("`XDG_STATE_HOME`", "Where audits and logs are kept by default; else `~/.local/state`."),
]

_SERVERS_FILES = [
    ("`$XDG_STATE_HOME/tmux-debug-mcp/audits`", "Default audits: see `--audit`."),
    ("`$XDG_RUNTIME_DIR/tmux-debug-…/socket`", "Where `tmux-debug`(1) reaches the server."),
    (
        "`$XDG_STATE_HOME/tmux-debug-mcp/logs`",
        "Logs of the toolsets `tabs` and `terminal`, unless `--log-dir` names another directory.",
    ),
]

_SERVERS_EXAMPLES = """\
Add the server to Claude Code, for all projects:

    claude mcp add --scope user tmux-debug -- tmux-debug-mcp

Keep panes for an hour after the client has ended, and a record of every call:

    tmux-debug-mcp --keep 60m --audit ~/debug-audit.log

Work on the windows of your own tmux sessions:

    tmux-debug-mcp --toolsets tabs --socket default
"""


def files() -> dict[Path, str]:
    """Return what is installed below the prefix, by its path there."""
    completions = {
        "bash": Path("share/bash-completion/completions/tmux-debug"),
        "zsh": Path("share/zsh/site-functions/_tmux-debug"),
        "fish": Path("share/fish/vendor_completions.d/tmux-debug.fish"),
    }
    pages = Path("share/man/man1")
    return {
        pages / "tmux-debug.1": page_of_command(),
        pages / "tmux-debug-mcp.1": page_of_server(),
    } | {completions[shell]: texts.completion(shell) for shell in texts.SHELLS}


def page_of_command() -> str:
    """Return tmux-debug(1)."""
    synopsis = [line for words in _SYNOPSIS for line in roff.synopsis("tmux-debug", words)]
    lines = [
        *_head("tmux-debug", "terminals for scripts, agents and people, from a shell"),
        *section("SYNOPSIS", synopsis),
        *section("DESCRIPTION", paragraphs(_COMMAND)),
        *section("VERBS", [*paragraphs(_VERBS), *_verbs()]),
        *section("WHICH SERVER", paragraphs(_CHOICE)),
        *section("EXIT STATUS", [*rows(_STATUSES), ".PP", *paragraphs(_AFTER_STATUSES)]),
        *section("ENVIRONMENT", rows(_VARIABLES)),
        *section("FILES", rows(_FILES)),
        *section("EXAMPLES", paragraphs(_EXAMPLES)),
        *section("SEE ALSO", filled("`tmux-debug-mcp`(1), `tmux`(1)")),
    ]
    return "\n".join(lines) + "\n"


def page_of_server() -> str:
    """Return tmux-debug-mcp(1)."""
    usage = [f"[{_flag(option)}]" for option in OPTIONS]
    others = [rf"\fB{verb.name}\fR" for verb in SECTIONS[LOOKING]]
    lines = [
        *_head("tmux-debug-mcp", "MCP server that gives a debugging agent real terminals"),
        *section(
            "SYNOPSIS",
            [
                *roff.synopsis("tmux-debug-mcp", usage),
                *roff.synopsis("tmux-debug-mcp", ["|".join(others), r"[\fIARGUMENT\fR \.\.\.]"]),
            ],
        ),
        *section("DESCRIPTION", paragraphs(_SERVER)),
        *section("OPTIONS", [*paragraphs(_OPTIONS), *_options()]),
        *section("COMMANDS", _commands()),
        *section("TOOLSETS", rows([(f"`{name}`", _TOOLSETS[name]) for name in TOOLSETS])),
        *section("EXIT STATUS", rows(_SERVERS_STATUSES)),
        *section("ENVIRONMENT", rows(_SERVERS_VARIABLES)),
        *section("FILES", rows(_SERVERS_FILES)),
        *section("EXAMPLES", paragraphs(_SERVERS_EXAMPLES)),
        *section("SEE ALSO", filled("`tmux-debug`(1), `tmux`(1)")),
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, summary: str) -> list[str]:
    """Return the lines that every page begins with."""
    version = f"tmux-debug-mcp {__version__}"
    return [
        r".\" Made by tests/tools/manual.py",
        f'.TH {name.upper()} 1 "{_DATE}" "{version}" "User Commands"',
        ".ad l",
        ".nh",
        *section("NAME", [rf"{roff.escaped(name)} \- {summary}"]),
    ]


def _options() -> list[str]:
    lines: list[str] = []
    for option in OPTIONS:
        text = f"{option.help[0].upper()}{option.help[1:]}."
        facts = f"Variable `{option.variable}`"
        facts += f"; default `{option.default}`." if option.default else "."
        lines += [".TP", _flag(option), *filled(text), *filled(facts)]
    return [
        *lines,
        *rows([("`--version`", "Print the version."), ("`-h`, `--help`", "Print help.")]),
    ]


def _flag(option: Option) -> str:
    flag = roff.bold(f"--{option.flag}")
    return rf"{flag}\ {roff.italic(option.value)}" if option.value else flag


def _commands() -> list[str]:
    """Return the lines about what the server's program does instead of serving."""
    described = [(f"`{verb.name}`", _sentence(verb.summary)) for verb in SECTIONS[LOOKING]]
    theirs = "They are verbs of `tmux-debug`(1), with its exit statuses."
    return [*rows(described), ".PP", *filled(theirs)]


def _verbs() -> list[str]:
    lines: list[str] = []
    for title, verbs in SECTIONS.items():
        lines.append(f".SS {title.capitalize()}")
        for verb in verbs:
            lines += _verb(verb)
    return lines


def _verb(verb: Verb) -> list[str]:
    """Return the lines about a verb."""
    parser = parsing.parser_of(verb)
    head = " ".join([roff.bold(verb.name), *roff.words_of(parser)])
    texts = [text.replace("%%", "%") for text in (parser.description, parser.epilog) if text]
    lines = [".TP", head]
    for text in texts:
        lines += [*filled(text), ".IP"]
    lines += roff.unfilled(verb.example)
    arguments = roff.arguments_of(parser, _COMMON)
    return [*lines, ".RS", *arguments, ".RE"] if arguments else lines


def _sentence(summary: str) -> str:
    """Return a verb's summary as a sentence. Behind a colon it has what a synopsis says."""
    summary = summary.partition(":")[0]
    return f"{summary[0].upper()}{summary[1:]}."


if __name__ == "__main__":
    for path, text in files().items():
        (DATA / path).parent.mkdir(parents=True, exist_ok=True)
        (DATA / path).write_text(text)
