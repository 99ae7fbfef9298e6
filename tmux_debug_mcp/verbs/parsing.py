"""Reads the words of a command line: which verb, and the arguments of its tool. No I/O."""

import argparse
import functools
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tmux_debug_mcp.tools.arguments import Parameter, Parser

from .table import BY_NAME, VERBS, Verb, flag_of

# What the help calls the value of a flag, where its name does not say it.
_VALUES = {
    "cwd": "DIR",
    "lines": "N",
    "name": "NAME",
    "pane_id": "PANE",
    "since": "CURSOR",
}
_WORDS = {"pane_id": "PANE", "command": "COMMAND", "keys": "KEYS"}
# The name of a parameter in a description. Words without an underscore may be words.
_PARAMETER = re.compile(r"\b[a-z]+_[a-z]+\b")
_PROGRAM = "tmux-debug"
# Verbs for people, which are no tools.
PEOPLES = ("attach", "secret", "replay")


class UsageError(Exception):
    """Raised for words that can't be read, and for `--help`.

    Args:
        text: What to print.
        is_help: Help was asked for, so nothing is wrong.
    """

    def __init__(self, text: str, *, is_help: bool = False) -> None:
        super().__init__(text)
        self.is_help = is_help


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asks for.

    Attributes:
        verb: The name of the verb.
        tool: The tool to call.
        arguments: Its arguments, as a client would send them.
        is_json: The result is wanted as JSON.
        follows: `wait --follow`: print one event after the other.
        writes: `attach --write`: the person takes the keyboard.
    """

    verb: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_json: bool = False
    follows: bool = False
    writes: bool = False


def parse(words: Sequence[str], tools: Mapping[str, Mapping[str, Any]]) -> Request:
    """Return what a command line asks for.

    Args:
        words: The words behind `tmux-debug`, at least a verb.
        tools: The schemas of the tools that `call` can call, by the tools' names.

    Raises:
        UsageError: They can't be read, or ask for help.
    """
    given = parser().parse_args(words)
    if given.verb in PEOPLES:
        arguments = {"pane_id": given.pane_id}
        return Request(given.verb, given.verb, arguments, writes=getattr(given, "write", False))
    if given.verb == "call":
        arguments = _named_values(given.tool, given.values, tools)
        return Request("call", given.tool, arguments, is_json=given.json)
    verb: Verb = given.row
    arguments = {}
    for parameter in verb.parameters:
        value = getattr(given, parameter.name)
        if value is not None:
            arguments[parameter.name] = _argument(parameter, value)
    follows = getattr(given, "follow", False)
    return Request(verb.name, verb.tool, arguments, is_json=given.json, follows=follows)


def check(words: Sequence[str]) -> Request:
    """Check the words of `create` or `run` before a server is started for them.

    Returns:
        What they ask for.

    Raises:
        UsageError: They can't be read.
        ArgumentError: An argument is out of range, or no pane can be made from it.
    """
    from tmux_debug_mcp.panes import creation  # noqa: PLC0415  help needs neither it nor anyio

    request = parse(words, {})
    verb = BY_NAME[request.verb]
    if verb.arguments:
        given: Any = Parser(verb.tool, verb.arguments).parse(request.arguments)
        name, env = request.arguments.get("name"), request.arguments.get("env", {})
        creation.check(creation.NewPane(given.command, name, env=env))
    return request


@functools.cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    top = _Parser(prog=_PROGRAM, add_help=False, allow_abbrev=False)
    verbs = top.add_subparsers(dest="verb", required=True, parser_class=_Parser)
    for verb in VERBS:
        _add_verb(verbs, verb)
    _add_peoples(verbs)
    call = verbs.add_parser("call", help="call any tool of the server", allow_abbrev=False)
    call.add_argument("tool", metavar="TOOL", help="its name")
    call.add_argument(
        "values", metavar="NAME=VALUE", nargs="*", help="its arguments; arrays and objects as JSON"
    )
    _add_json(call)
    return top


def _add_peoples(verbs: Any) -> None:  # noqa: ANN401  as below
    """Add the verbs for people, which are no tools."""
    attach = verbs.add_parser(
        "attach",
        help="watch a pane, or work in it",
        description="Show a pane in this terminal. C-b d leaves it.",
        allow_abbrev=False,
    )
    attach.add_argument("pane_id", metavar="PANE", nargs="?", help="pane id or name")
    attach.add_argument(
        "--write",
        action="store_true",
        help="take the keyboard: until you leave, no agent types, runs or signals there",
    )
    secret = verbs.add_parser(
        "secret",
        help="type a secret that a program asks for",
        description="Ask for a secret, or read a line of standard input, and type it where hidden "
        "input is awaited. It is on no record and in no log.",
        allow_abbrev=False,
    )
    secret.add_argument("pane_id", metavar="PANE", help="pane id or name")
    # The command line has the flags of this one, and asks the server for the log alone.
    replay = verbs.add_parser("replay", allow_abbrev=False)
    replay.add_argument("pane_id", metavar="PANE", nargs="?", help="pane id or name")


def _add_verb(verbs: Any, verb: Verb) -> None:  # noqa: ANN401  argparse has no name for it
    added = verbs.add_parser(
        verb.name, help=verb.summary, description=_sentence(verb.summary), allow_abbrev=False
    )
    added.set_defaults(row=verb)
    parameters = {parameter.name: parameter for parameter in verb.parameters}
    for name in verb.words:
        schema = parameters[name].schema
        several = "+" if name == "command" or "anyOf" in schema else None
        added.add_argument(name, metavar=_WORDS[name], nargs=several, help=_help(schema))
    for flag, parameter in verb.flags():
        _add_flag(added, flag, parameter)
    if verb.name == "wait":
        added.add_argument(
            "--follow", action="store_true", help="go on, and print each event as a line"
        )
    _add_json(added)


def _add_flag(added: argparse.ArgumentParser, flag: str, parameter: Parameter) -> None:
    schema = parameter.schema
    text = _help(schema)
    if schema.get("type") == "boolean":
        added.add_argument(flag, dest=parameter.name, action="store_const", const=True, help=text)
        return
    if schema.get("type") == "object":
        added.add_argument(
            flag, dest=parameter.name, action="append", metavar="NAME=VALUE", help=text
        )
        return
    convert = {"integer": int, "number": float}.get(str(schema.get("type")), str)
    metavar = "SECONDS" if parameter.name.endswith("_s") else _VALUES.get(parameter.name, "REGEX")
    added.add_argument(flag, dest=parameter.name, type=convert, metavar=metavar, help=text)


def _add_json(added: argparse.ArgumentParser) -> None:
    added.add_argument("--json", action="store_true", help="print the whole result as JSON")


def _help(schema: Mapping[str, Any]) -> str:
    """Return the help of an argument, which names flags where the schema names parameters."""
    text = str(schema.get("description", "")).replace("%", "%%")
    return _PARAMETER.sub(lambda found: flag_of(found[0]), text)


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def _argument(parameter: Parameter, value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return the argument that words or a flag's value stand for."""
    if parameter.name == "command":
        return value[0] if len(value) == 1 else shlex.join(value)
    if parameter.schema.get("type") == "object":
        return dict(_variable(flag_of(parameter.name), text) for text in value)
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _variable(flag: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise UsageError(f"{flag} is '{text}', which is no NAME=VALUE.")
    return name, value


def _named_values(
    tool: str, values: Sequence[str], tools: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the arguments of `call`; which are text and which are JSON, the schema tells.

    An argument that the schema does not have is passed on as text: the tool says what is wrong.
    """
    properties: Mapping[str, Any] = tools.get(tool, {}).get("properties", {})
    arguments: dict[str, Any] = {}
    for text in values:
        name, value = _variable("The argument", text)
        arguments[name] = _value(properties.get(name, {"type": "string"}), value)
    return arguments


def _value(schema: Mapping[str, Any], text: str) -> Any:  # noqa: ANN401  any JSON value
    is_text = schema.get("type") == "string"
    is_text_or_array = "anyOf" in schema
    if is_text or (is_text_or_array and not text.startswith("[")):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing and ending the process."""

    def print_help(self, _file: Any = None) -> None:  # noqa: ANN401  as argparse has it
        """Raise the help."""
        raise UsageError(self.format_help(), is_help=True)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with the usage."""
        usage = self.format_usage().removeprefix("usage: ").strip()
        raise UsageError(f"{message}\nusage: {usage}")
