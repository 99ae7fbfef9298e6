"""What the words of a command line ask of a server: a tool, its arguments, and what is printed.

The only I/O is to look whether a directory is there.
"""

import argparse
import contextlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.panes import creation, sizing
from tmux_debug_mcp.tools.arguments import ArgumentsParser, Parameter
from tmux_debug_mcp.vt.printable import visible
from tmux_debug_mcp.vt.steps import read

from .parsing import UsageError, parser_of, verb_of
from .registry import TOOLS, VERBS, Prints, Verb
from .words import flag_of, parameters_of_tool

# What else errors say to a model, in the words of a person's shell.
_STEPS = re.compile(r"Give an array of steps: (\[.*\]); or set literal")
_IN_A_SHELL = {
    "Give the array itself": "Give its strings as separate words",
    "a string or an array of ": "",
    ", each a string.": " words.",
    "set literal": "use --literal",
    "Set literal": "Use --literal",
    "Ask the user to look": "Look",
    "Ask the user to check": "Check",
}
_VERBS = {verb.tool: f"tmux-debug {verb.name}" for verb in TOOLS}
# What is in our words, and what is not since the caller has given it, in quotes.
_OURS = re.compile(
    r"[Pp]arameter '(?P<subject>\w+)(?P<part>\.\w+)?'"
    r"|(?<!\w)'[^']*'(?!\w)"
    rf"|(?P<phrase>{'|'.join(map(re.escape, _IN_A_SHELL))})"
    r"|(?<!\w)(?P<parameter>pane_id|timeout_s|idle_s|wait_for|stop_pattern)(?!\w)"
    rf"|(?P<tool>{'|'.join(_VERBS)})"
)
_PATTERNS = {"show", "stop_pattern", "wait_for"}


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asks for: a call of a tool, with arguments as a client would send them.

    Attributes:
        prints: What is printed of the result.
        is_for_people: Standard output is a terminal, or is to have the status line too.
        lists_all: `list --all`: list panes that have ended, too.
        follows: `--follow`: print events, or the lines of a pane, as they come.
        every_s: The minimum time between two events, in seconds.
        writes: `attach --write`: the person takes the keyboard.
    """

    verb: Verb
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prints: Prints = Prints.ALL
    is_for_people: bool = False
    lists_all: bool = False
    follows: bool = False
    every_s: float = 0.0
    writes: bool = False


def parse(words: Sequence[str], tools: Mapping[str, Mapping[str, Any]]) -> Request:
    """Return what the words after `tmux-debug` ask of the server.

    `tools` are the schemas of the tools that `call` can call, by name.

    Raises:
        UsageError: They can't be read.
        HelpWanted: They ask for help.
    """
    if words[:1] == ["replay"]:  # the caller has read the flags, and only asks for the log
        return Request(VERBS["replay"], "", {"pane_id": words[1] if words[1:] else None})
    verb = verb_of(words)
    if verb.handler:
        raise UsageError(f"The server can't run verb '{verb.name}'. Run it with tmux-debug.")
    given = parser_of(verb).parse_args(words[1:])
    if verb.asks_person:
        arguments = {"pane_id": given.pane_id}
        return Request(verb, "", arguments, writes=getattr(given, "write", False))
    if verb.names_tool:
        arguments = _named_values(given.tool, given.values, tools)
        return Request(verb, given.tool, arguments, _prints(given))
    arguments = {
        parameter.name: _argument(parameter, getattr(given, parameter.name))
        for parameter in parameters_of_tool(verb)
        if getattr(given, parameter.name) is not None
    }
    if arguments.get("secret") and arguments.get("keys"):
        raise UsageError(
            "Other users can read the words of a command, so --secret takes no KEYS. It asks for "
            "the line, or reads it from standard input."
        )
    return Request(
        verb,
        verb.tool,
        {**arguments, **verb.always},
        _prints(given),
        lists_all=getattr(given, "all", False),
        follows=getattr(given, "follow", False),
        every_s=getattr(given, "every", 0.0),
    )


def _prints(given: argparse.Namespace) -> Prints:
    if getattr(given, "every", 0.0) and not given.follow:
        raise UsageError("--every is only for --follow. Give both.")
    chosen: set[Prints] = {*(given.prints or [Prints.ALL])}
    if given.prints and getattr(given, "follow", False):
        raise UsageError(
            "--follow prints lines as they come. Omit -q, --text, --status and --json, or --follow."
        )
    if len(chosen) > 1:
        raise UsageError(
            "-q, --text, --status and --json each say what is printed. Give one of them."
        )
    return chosen.pop()


def check(words: Sequence[str], cwd: str) -> Request:
    """Check the words of `create` or `run` before a server is started; return what they ask for.

    `cwd` is the caller's directory.

    Raises:
        UsageError: They can't be read, an argument is out of range, or no pane can be made so.
        HelpWanted: They ask for help.
    """
    request = parse(words, {})
    try:
        check_arguments(request.verb, request.arguments, cwd)
    except ArgumentError as error:
        raise UsageError(in_verbs(str(error), request)) from None
    return request


def check_arguments(verb: Verb, arguments: Mapping[str, Any], cwd: str) -> None:
    """Check the arguments of `create` or `run`, called from a directory.

    Raises:
        ArgumentError: An argument is out of range, or no pane can be made so.
    """
    given = ArgumentsParser(verb.tool, parameters_of_tool(verb)).parse(arguments)
    creation.check(creation.NewPane(given["command"], given.get("name"), env=given.get("env", {})))
    if "pane_id" not in given:
        creation.directory(cwd, given.get("cwd"))
    if "size" in given:
        sizing.given_size(given["size"])
    for name in _PATTERNS & given.keys():
        compiled(name, given[name])


def in_verbs(text: str, request: Request) -> str:
    """Return a sentence of ours with verbs, flags and words in place of tools and parameters."""
    parameters = parameters_of_tool(request.verb)
    words = {parameter.name: parameter.value for parameter in parameters if parameter.is_required}

    def typed(parameter: str) -> str:
        return words.get(parameter) or flag_of(parameter)

    found = _STEPS.search(text)
    if found:
        line = f"tmux-debug send {shlex.quote(request.arguments['pane_id'])}"
        separate = f"{line} {_separate_words(json.loads(found[1]))}; or use --literal"
        return f"{text[: found.start()]}Give separate words: {separate}{text[found.end() :]}"

    def told(found: re.Match[str]) -> str:
        if found["subject"]:
            return typed(found["subject"]) + (found["part"] or "").replace(".", " ")
        if found["parameter"]:
            return typed(found["parameter"])
        if found["phrase"]:
            return _IN_A_SHELL[found["phrase"]]
        return _VERBS.get(found["tool"], found[0])

    return _OURS.sub(told, text)


def _separate_words(steps: Sequence[str]) -> str:
    """Return the words of a shell for steps: each key is one, and so is each text without Enter."""
    words: list[str] = []
    for reading in map(read, steps):
        words += reading.names or (reading.text, *["Enter"] * reading.enters)
    return visible(shlex.join(words), keep="\n")


def _argument(parameter: Parameter, value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return the argument that words or a flag's value stand for."""
    if parameter.name == "command" and parameter.is_required:
        return value[0] if len(value) == 1 else shlex.join(value)
    if parameter.schema.get("type") == "object":
        return dict(_variable(flag_of(parameter.name), text) for text in value)
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _variable(flag: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise UsageError(f"{flag} is '{text}', which is not NAME=VALUE.")
    return name, value


def _named_values(
    tool: str, values: Sequence[str], tools: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the arguments of `call`; the schema says which are text and which are JSON.

    An argument that is not in the schema is passed on as text: the tool says what is wrong.
    """
    properties: Mapping[str, Any] = tools.get(tool, {}).get("properties", {})
    arguments: dict[str, Any] = dict(_variable("The argument", text) for text in values)
    for name, text in arguments.items():
        schema = properties.get(name, {"type": "string"})
        is_text_or_array = "anyOf" in schema
        if schema.get("type") != "string" and (text.startswith("[") or not is_text_or_array):
            with contextlib.suppress(ValueError, RecursionError):  # not JSON, or too much of it
                arguments[name] = json.loads(text)
    return arguments
