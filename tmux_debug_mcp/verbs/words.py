"""The words and flags of the verbs of tools, from the table of the tool's arguments, and of others.

The parsers of verbs with a module of their own are there.
"""

import argparse
import re
from collections.abc import Mapping
from typing import Any

from tmux_debug_mcp.settings import duration_s
from tmux_debug_mcp.tools import debug_arguments
from tmux_debug_mcp.tools.arguments import Parameter, parameters_of

from .parsing import VerbParser
from .registry import Verb

# The name of a parameter in a description. One without an underscore may be an ordinary word.
_PARAMETER = re.compile(r"\b[a-z]+_[a-z]+\b")


def parameters_of_tool(verb: Verb) -> list[Parameter]:
    """Return the parameters of a verb's tool, or those of a verb that calls tools."""
    return parameters_of(getattr(debug_arguments, verb.arguments)) if verb.arguments else []


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter: its name without a unit or a kind at the end."""
    name = parameter.removesuffix("_s").removesuffix("_id")
    return "--" + name.replace("_", "-")


def time_s(word: str) -> float:
    """Return the seconds that a word of a command line stands for."""
    seconds = duration_s(word)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"'{word}' is not a time. Give 10, 0.5, 90s, 10m or 1h.")
    return seconds


def add_parameters(parser: VerbParser, verb: Verb) -> None:
    """Add the parameters of a verb's tool."""
    for parameter in parameters_of_tool(verb):
        if not parameter.is_required:
            _add_flag(parser, parameter)
            continue
        nargs = None
        if parameter.name == "command" or "anyOf" in parameter.schema:
            nargs = "*" if parameter.name == "keys" else "+"
        parser.add_argument(
            parameter.name,
            metavar=parameter.value,
            nargs=nargs,
            help=_help(parameter.schema),
        )


def _add_flag(parser: VerbParser, parameter: Parameter) -> None:
    name, kind = parameter.name, str(parameter.schema.get("type"))
    options: dict[str, Any] = {"metavar": parameter.value}
    if kind == "boolean":
        options = {"action": "store_const", "const": True}
    elif kind == "object":
        options["action"] = "append"
    else:
        options["type"] = {"integer": int, "number": time_s}.get(kind, str)
    text = _help(parameter.schema)
    if name == "secret":
        text += ". It takes no KEYS: type a line that is asked for, or read from standard input"
    action = parser.add_argument(flag_of(name), dest=name, help=text, **options)
    # Those who know the tools know this name.
    parser.also_takes(f"--{name.replace('_', '-')}", action)


def _help(schema: Mapping[str, Any]) -> str:
    """Return the help of an argument, which names flags where the schema names parameters.

    What would be an array is several words.
    """
    text = str(schema.get("description", "")).replace("%", "%%")
    text = text.replace("Pane id, name, or an array", "Pane ids or names")
    text = text.replace(", or an array of steps", "; each word is a step")
    if schema.get("type") == "number":
        text += "; or 10m, 1h"
    return _PARAMETER.sub(lambda found: flag_of(found[0]), text)


def capture(parser: VerbParser) -> None:
    """Add what only `capture` takes."""
    at = "the pane as it was at a cursor or a time, also with --lines or --view: see tmux-debug "
    at += "replay --help"
    parser.add_argument("--at", metavar="WHEN", help=at)
    follows = "print lines as they come, until the pane ends"
    parser.add_argument("--follow", action="store_true", help=follows)


def wait(parser: VerbParser) -> None:
    """Add what only `wait` takes."""
    follows = "keep waiting, and print each event as a line"
    parser.add_argument("--follow", action="store_true", help=follows)
    every = "--follow prints at most one line per TIME, such as 2s, and how many events it skipped"
    parser.add_argument("--every", metavar="TIME", type=time_s, default=0.0, help=every)


def list_panes(parser: VerbParser) -> None:
    """Add what only `list` takes."""
    ended = "also list the panes that have ended, after those that run"
    parser.add_argument("--all", action="store_true", help=ended)


def attach(parser: VerbParser) -> None:
    """Add what only `attach` takes."""
    parser.description = (
        "Show a pane in this terminal. C-b d leaves it, C-b w takes or returns the keyboard, C-b "
        "PgUp scrolls back, C-b ? shows the keys."
    )
    pane = "pane id or name (default: the only running pane, or one you choose)"
    parser.add_argument("pane_id", metavar="PANE", nargs="?", help=pane)
    writes = "take the keyboard: until you leave, agents can't type, run or signal there"
    parser.add_argument("--write", action="store_true", help=writes)


def secret(parser: VerbParser) -> None:
    """Add what only `secret` takes."""
    parser.description = (
        "Ask for a secret, or read it from standard input as one line, and type it into a pane "
        "that awaits hidden input. The secret is in no record, and is in a log only if the pane "
        "shows it."
    )
    pane = "pane id or name (default: the one that awaits hidden input)"
    parser.add_argument("pane_id", metavar="PANE", nargs="?", help=pane)


def call(parser: VerbParser) -> None:
    """Add what only `call` takes."""
    names = "tool name; omit it to list all tools and their arguments"
    parser.add_argument("tool", metavar="TOOL", nargs="?", default="", help=names)
    values = "tool arguments; arrays and objects as JSON"
    parser.add_argument("values", metavar="NAME=VALUE", nargs="*", help=values)
