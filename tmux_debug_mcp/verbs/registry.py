"""The verbs of `tmux-debug`, a row each: its words, what it needs, and what does it.

Dispatch, help, completion and man page come from here. What few verbs do in a way of their own,
such as `restart`, is in `answering` and `printing`. This is light: every call of the command
line imports it. `parsing` makes the parsers, and `requests` says what the words of tools mean.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from tmux_debug_mcp.sockets.choosing import ASKS, CHANGES, LOOKS, MAKES, SHARES

PANES = "panes"
PEOPLE = "people"
SERVERS = "servers"
LOOKING = "looking and setting up"
OTHERS = "others"


class Prints(StrEnum):
    """What a verb prints of a result."""

    ALL = "all"  # the text on standard output, the status line on standard error
    TEXT = "text"  # the text alone
    ENDS = "ends"  # the text, and of what has ended the status; in scripts on a pane's terminal
    STATUS = "status"  # both on standard output
    ERRORS = "errors"  # the status line on standard error, and only if the exit status is not 0
    JSON = "json"  # the whole result as JSON


# What a verb of a tool may be asked to print; those that only print can't be silent.
_ANY = (Prints.ERRORS, Prints.TEXT, Prints.STATUS, Prints.JSON)
_ONLY_PRINTS = (Prints.TEXT, Prints.STATUS, Prints.JSON)
_NO_STATUS = (Prints.TEXT, Prints.JSON)


class Verb:
    """A verb.

    Attributes:
        name: What is typed.
        summary: What it does, in one line.
        example: A command line; it is given without `tmux-debug`.
        tool: The tool of `debug` that it calls; "" for none.
        arguments: The name of the class of its arguments, for tools and for what calls these; "" if
            it has none. Required ones are words, in their order there; all others are flags.
        always: Arguments of the tool that it always gives.
        handler: What does it in the caller's process, as `MODULE:FUNCTION`; "" if the server does.
            The function takes the words after the verb and the environment, in which
            TMUX_DEBUG_SERVER is the server that the command line names, and returns the exit
            status.
        words: What adds arguments to its parser beyond those of the tool, as `MODULE:FUNCTION`; ""
            if there are none.
        prints: What flags may have it print of a result; by default anything if it has arguments.
        names_tool: Its words name the tool, which may be one of any toolset.
        need: What it needs a server for, as for `choosing.server_for`.
        asks_person: The server is told who calls, and may ask them.
        makes_panes: Panes that it makes inherit its caller's environment and directory.
        says_what_runs: When it is interrupted, it says what keeps running.
        confirms: Its results begin with a confirmation.
        may_end: The program may end meanwhile, which neither text nor exit status tells.
    """

    def __init__(
        self,
        *,
        name: str,
        summary: str,
        example: str,
        tool: str = "",
        arguments: str = "",
        always: Sequence[tuple[str, str]] = (),
        handler: str = "",
        words: str = "",
        prints: Sequence[Prints] | None = None,
        names_tool: bool = False,
        need: str = CHANGES,
        asks_person: bool = False,
        makes_panes: bool = False,
        says_what_runs: bool = False,
        confirms: bool = False,
        may_end: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.example = f"tmux-debug {example}"
        self.tool = tool
        self.arguments = arguments
        self.always = dict(always)
        self.handler = handler
        self.words = words
        default = _ANY if arguments else ()
        self.prints = default if prints is None else prints
        self.names_tool = names_tool
        self.need = need
        self.asks_person = asks_person
        self.makes_panes = makes_panes
        self.says_what_runs = says_what_runs
        self.confirms = confirms
        self.may_end = may_end


_LOCAL = "tmux_debug_mcp.command.local"
_WORDS = "tmux_debug_mcp.verbs.words"

# The verbs, by their heading in the help.
SECTIONS: Mapping[str, Sequence[Verb]] = {
    PANES: (
        Verb(
            name="create",
            summary="start a command in a new pane",
            example="create --name web --wait-for ready -- python3 app.py",
            tool="tmux_create_pane",
            arguments="CreatePane",
            need=MAKES,
            makes_panes=True,
            says_what_runs=True,
            confirms=True,
        ),
        Verb(
            name="send",
            summary="type text, press keys, send a signal or resize",
            example="send gdb 'break main' Enter run Enter",
            tool="tmux_send_keys",
            arguments="SendKeys",
            confirms=True,
            may_end=True,
        ),
        Verb(
            name="capture",
            summary="read a pane",
            example="capture web --pattern 'Error|Traceback'",
            tool="tmux_capture_pane",
            arguments="CapturePane",
            words=f"{_WORDS}:capture",
            prints=_ONLY_PRINTS,
            need=LOOKS,
        ),
        Verb(
            name="run",
            summary="run a command to completion",
            example="run --timeout 300 -- make -j2 test",
            tool="tmux_run",
            arguments="Run",
            need=MAKES,
            makes_panes=True,
            says_what_runs=True,
        ),
        Verb(
            name="wait",
            summary="wait until something happens",
            example="wait web --pattern 'listening on' --timeout 60",
            tool="tmux_wait",
            arguments="Wait",
            words=f"{_WORDS}:wait",
            need=LOOKS,
            says_what_runs=True,
            may_end=True,
        ),
        Verb(
            name="kill",
            summary="end panes and everything they started",
            example="kill web worker",
            tool="tmux_kill_pane",
            arguments="KillPane",
            confirms=True,
        ),
        Verb(
            name="list",
            summary="list the running panes as JSON, with --all also those that have ended",
            example="list --all",
            tool="tmux_list_panes",
            words=f"{_WORDS}:list_panes",
            prints=_NO_STATUS,
            need=LOOKS,
        ),
        Verb(
            name="resize",
            summary="give a pane's terminal another size",
            example="resize web 100x34",
            tool="tmux_send_keys",
            arguments="ResizePane",
            always=[("keys", "")],
            confirms=True,
            may_end=True,
        ),
        Verb(
            name="restart",
            summary="end a pane and start its command again",
            example="restart web --port 8000",
            arguments="RestartPane",
        ),
        Verb(
            name="dev",
            summary="start a development server, or show the running one",
            example="dev --port 5173 -- npm run dev",
            handler="tmux_debug_mcp.command.dev:run",
            words="tmux_debug_mcp.command.dev:add_arguments",
            need=SHARES,
        ),
    ),
    PEOPLE: (
        Verb(
            name="attach",
            summary="watch a pane in this terminal, or with --write work in it",
            example="attach --write web",
            words=f"{_WORDS}:attach",
            need=LOOKS,
            asks_person=True,
        ),
        Verb(
            name="secret",
            summary="type a secret for a program, hidden from the agent",
            example="secret web",
            words=f"{_WORDS}:secret",
            need=ASKS,
            asks_person=True,
        ),
    ),
    SERVERS: (
        Verb(
            name="ps",
            summary="list your servers and their panes (--all: all panes, --follow: live)",
            example="ps --follow",
            handler="tmux_debug_mcp.command.listing:ps",
            words="tmux_debug_mcp.command.listing:add_arguments",
            need=LOOKS,
        ),
        Verb(
            name="start",
            summary="start a server that outlives its callers (--keep 60m, and the server's "
            "options)",
            example="start --keep 2h --audit ~/debug-audit.log",
            handler=f"{_LOCAL}:start",
            words=f"{_LOCAL}:add_start_arguments",
        ),
        Verb(
            name="stop",
            summary="end a server and everything in its panes",
            example="--server 4711 stop",
            handler=f"{_LOCAL}:stop",
        ),
    ),
    LOOKING: (
        Verb(
            name="audit",
            summary="show what was done, as a table, or with --html as a page",
            example="audit --failed --since 2h",
            handler="tmux_debug_mcp.viewing.audit_verb:run",
            words="tmux_debug_mcp.viewing.audit_verb:add_arguments",
        ),
        Verb(
            name="replay",
            summary="show a pane's screen at a given time, or record its output",
            example="replay web --at -5s --png moment.png",
            handler="tmux_debug_mcp.viewing.replay_verb:run",
            words="tmux_debug_mcp.viewing.replay_verb:add_arguments",
            need=LOOKS,
            asks_person=True,
        ),
        Verb(
            name="doctor",
            summary="check this machine for problems and print the fix",
            example="doctor --timeout 30",
            handler="tmux_debug_mcp.doctor.doctor_verb:run",
            words="tmux_debug_mcp.doctor.doctor_verb:add_arguments",
        ),
        Verb(
            name="config",
            summary="show an MCP client's entry for the server; --write adds it",
            example="config cursor --write -- --keep 60m",
            handler="tmux_debug_mcp.clients.config_verb:run",
            words="tmux_debug_mcp.clients.config_verb:add_arguments",
        ),
        Verb(
            name="demo",
            summary="watch an agent debug a test that hangs",
            example="demo",
            handler=f"{_LOCAL}:demo",
        ),
    ),
    OTHERS: (
        Verb(
            name="call",
            summary="call any tool of the server: call TOOL NAME=VALUE...",
            example="call tmux_wait pane_id=web idle_s=2",
            words=f"{_WORDS}:call",
            prints=(Prints.JSON,),
            names_tool=True,
            makes_panes=True,
        ),
        Verb(
            name="completion",
            summary="print a script for tab completion: completion bash, zsh or fish",
            example="completion bash",
            handler=f"{_LOCAL}:completion",
            words=f"{_LOCAL}:add_completion_arguments",
        ),
    ),
}
VERBS: Mapping[str, Verb] = {verb.name: verb for verbs in SECTIONS.values() for verb in verbs}
# The verbs that are tools of `debug`.
TOOLS = [verb for verb in VERBS.values() if verb.tool and not verb.always]


def loaded(name: str) -> Callable[..., Any]:
    """Return what a row of the registry names as `MODULE:FUNCTION`."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
