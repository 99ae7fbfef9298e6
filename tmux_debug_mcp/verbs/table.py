"""The table of verbs. Pure, and light enough for `tmux-debug --help` without a server."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tmux_debug_mcp.tools import debug_arguments
from tmux_debug_mcp.tools.arguments import Parameter, parameters_of


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: a tool of `debug` on a command line.

    Attributes:
        name: What is typed.
        tool: The name of the tool.
        arguments: The class of the tool's arguments.
        summary: What it does, in one line.
        words: The arguments that are words, in the order in which they are typed. All others are
            flags.
    """

    name: str
    tool: str
    arguments: type | None
    summary: str
    words: Sequence[str] = ()

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters of the tool."""
        return parameters_of(self.arguments) if self.arguments else []

    def flags(self) -> Iterator[tuple[str, Parameter]]:
        """Yield the flags, such as `--timeout`, each with its parameter."""
        for parameter in self.parameters:
            if parameter.name not in self.words:
                yield flag_of(parameter.name), parameter


VERBS = (
    Verb(
        "create",
        "tmux_create_pane",
        debug_arguments.CreatePane,
        "start a command in a new pane",
        ["command"],
    ),
    Verb(
        "send",
        "tmux_send_keys",
        debug_arguments.SendKeys,
        "type text, press keys or send a signal",
        ["pane_id", "keys"],
    ),
    Verb("capture", "tmux_capture_pane", debug_arguments.CapturePane, "read a pane", ["pane_id"]),
    Verb("run", "tmux_run", debug_arguments.Run, "run a command to its end", ["command"]),
    Verb("wait", "tmux_wait", debug_arguments.Wait, "wait until something happens", ["pane_id"]),
    Verb(
        "kill",
        "tmux_kill_pane",
        debug_arguments.KillPane,
        "end a pane and all that it started",
        ["pane_id"],
    ),
    Verb("list", "tmux_list_panes", None, "list the panes as JSON"),
)

BY_NAME: Mapping[str, Verb] = {verb.name: verb for verb in VERBS}


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter: without the unit or the kind that its name ends with."""
    name = parameter.removesuffix("_s").removesuffix("_id")
    return "--" + name.replace("_", "-")
