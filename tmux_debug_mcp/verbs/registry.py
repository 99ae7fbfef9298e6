"""The verbs of `tmux-debug`: a row each, from which dispatch, help, completion and man page come.

This is light: every call of the command line imports it. `parsing` says what a verb's words mean.
"""

from collections.abc import Mapping, Sequence

from tmux_debug_mcp.sockets.choosing import ASKS, CHANGES, LOOKS, MAKES, SHARES

PANES = "panes"
PEOPLE = "people"
SERVERS = "servers"
LOOKING = "looking and setting up"
OTHERS = "others"


class Verb:
    """A verb.

    Attributes:
        name: What is typed.
        summary: What it does, in one line.
        example: A command line.
        tool: The tool of `debug` that it calls; "" for none.
        arguments: The name of the class of its arguments, for tools and for what calls these; "" if
            it has none. Required ones are words, in their order there; all others are flags.
        handler: What does it in the caller's process, as `MODULE:FUNCTION`; "" if the server does.
            The function takes the words after the verb and the environment, in which
            TMUX_DEBUG_SERVER is the server that the command line names, and returns the exit
            status.
        module: The module of the handler.
        need: What it needs a server for, as for `choosing.server_for`.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        example: str,
        tool: str = "",
        arguments: str = "",
        handler: str = "",
        need: str = CHANGES,
    ) -> None:
        self.name = name
        self.summary = summary
        self.example = f"tmux-debug {example}"
        self.tool = tool
        self.arguments = arguments
        self.handler = handler
        self.module = handler.partition(":")[0]
        self.need = need


LOCAL = "tmux_debug_mcp.command.local"
LISTING = "tmux_debug_mcp.command.listing"

# The verbs, by their heading in the help.
SECTIONS: Mapping[str, Sequence[Verb]] = {
    PANES: (
        Verb(
            "create",
            "start a command in a new pane",
            "create --name web --wait-for ready -- python3 app.py",
            "tmux_create_pane",
            "CreatePane",
            need=MAKES,
        ),
        Verb(
            "send",
            "type text, press keys, send a signal or resize",
            "send gdb 'break main' Enter run Enter",
            "tmux_send_keys",
            "SendKeys",
        ),
        Verb(
            "capture",
            "read a pane",
            "capture web --pattern 'Error|Traceback'",
            "tmux_capture_pane",
            "CapturePane",
            need=LOOKS,
        ),
        Verb(
            "run",
            "run a command to completion",
            "run --timeout 300 -- make -j2 test",
            "tmux_run",
            "Run",
            need=MAKES,
        ),
        Verb(
            "wait",
            "wait until something happens",
            "wait web --pattern 'listening on' --timeout 60",
            "tmux_wait",
            "Wait",
            need=LOOKS,
        ),
        Verb(
            "kill",
            "end panes and everything they started",
            "kill web worker",
            "tmux_kill_pane",
            "KillPane",
        ),
        Verb(
            "list",
            "list the running panes as JSON, with --all also those that have ended",
            "list --all",
            "tmux_list_panes",
            need=LOOKS,
        ),
        Verb(
            "resize",
            "give a pane's terminal another size",
            "resize web 100x34",
            arguments="ResizePane",
        ),
        Verb(
            "restart",
            "end a pane and start its command again",
            "restart web --port 8000",
            arguments="RestartPane",
        ),
        Verb(
            "dev",
            "start a development server, or show the running one",
            "dev --port 5173 -- npm run dev",
            handler="tmux_debug_mcp.command.dev:run",
            need=SHARES,
        ),
    ),
    PEOPLE: (
        Verb(
            "attach",
            "watch a pane in this terminal, or with --write work in it",
            "attach --write web",
            need=LOOKS,
        ),
        Verb(
            "secret",
            "type a secret for a program, hidden from the agent",
            "secret web",
            need=ASKS,
        ),
    ),
    SERVERS: (
        Verb(
            "ps",
            "list your servers and their panes (--all: all panes, --follow: live)",
            "ps --follow",
            handler=f"{LISTING}:ps",
            need=LOOKS,
        ),
        Verb(
            "start",
            "start a server that outlives its callers (--keep 60m, and the server's options)",
            "start --keep 2h --audit ~/debug-audit.log",
            handler=f"{LOCAL}:start",
        ),
        Verb(
            "stop",
            "end a server and everything in its panes",
            "--server 4711 stop",
            handler=f"{LOCAL}:stop",
        ),
    ),
    LOOKING: (
        Verb(
            "audit",
            "show what was done, as a table, or with --html as a page",
            "audit --failed --since 2h",
            handler="tmux_debug_mcp.viewing.audit_verb:run",
        ),
        Verb(
            "replay",
            "show a pane's screen at a given time, or record its output",
            "replay web --at -5s --png moment.png",
            handler="tmux_debug_mcp.viewing.replay_verb:run",
            need=LOOKS,
        ),
        Verb(
            "doctor",
            "check this machine for problems and print the fix",
            "doctor --timeout 30",
            handler="tmux_debug_mcp.doctor.doctor_verb:run",
        ),
        Verb(
            "config",
            "show an MCP client's entry for the server; --write adds it",
            "config cursor --write -- --keep 60m",
            handler="tmux_debug_mcp.clients.config_verb:run",
        ),
        Verb(
            "demo",
            "watch an agent debug a test that hangs",
            "demo",
            handler=f"{LOCAL}:demo",
        ),
    ),
    OTHERS: (
        Verb(
            "call",
            "call any tool of the server: call TOOL NAME=VALUE...",
            "call tmux_wait pane_id=web idle_s=2",
        ),
        Verb(
            "completion",
            "print a script for tab completion: completion bash, zsh or fish",
            "completion bash",
            handler=f"{LOCAL}:completion",
        ),
    ),
}
VERBS: Mapping[str, Verb] = {verb.name: verb for verbs in SECTIONS.values() for verb in verbs}
# Verbs whose panes inherit their caller's environment and directory.
INHERITING = ("create", "run", "call")
# Verbs that say what keeps running when they are interrupted.
WAITING = ("create", "run", "wait")
# The verbs that are tools of `debug`.
TOOLS = [verb for verb in SECTIONS[PANES] if verb.tool]
