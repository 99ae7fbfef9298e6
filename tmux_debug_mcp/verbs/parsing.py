"""Parses the words of a command line into a verb and its arguments, and makes a verb's help.

No I/O. The parsers of `dev`, `audit`, `replay`, `doctor` and `config` are in their modules.
"""

import argparse
import contextlib
import functools
import importlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn

from tmux_debug_mcp.errors import ArgumentError, nearest
from tmux_debug_mcp.settings import duration_s
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.tools import debug_arguments
from tmux_debug_mcp.tools.arguments import ArgumentsParser, Parameter, parameters_of
from tmux_debug_mcp.vt.printable import visible

from .registry import LISTING, LOCAL, PEOPLE, SECTIONS, TOOLS, VERBS, Verb

# The name of a parameter in a description. One without an underscore may be an ordinary word.
_PARAMETER = re.compile(r"\b[a-z]+_[a-z]+\b")
# The same in an error, which also quotes what was given.
_SUBJECT = re.compile(r"[Pp]arameter '(\w+)(\.\w+)?'")
_IN_ERROR = re.compile(r"(?<![\w'])(?:pane_id|timeout_s|idle_s|wait_for|stop_pattern)(?![\w'])")
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
_PATTERNS = {"show", "stop_pattern", "wait_for"}
# Marks a word that argparse must not take for a flag. No argument of a process contains it.
_LITERAL = "\0"
_QUIET = ("-q", "--quiet")
SHELLS = ("bash", "zsh", "fish")

# Words that people try, and the command that does it.
_OTHER_WORDS = {
    "exec": "run COMMAND",
    "log": "capture PANE",
    "logs": "capture PANE",
    "ls": "list",
    "new": "create COMMAND",
    "read": "capture PANE",
    "signal": "send PANE SIGTERM",
    "status": "ps",
    "tail": "capture --follow PANE",
    "type": "send PANE 'text' Enter",
    "version": "--version",
}


class UsageError(VerbError):
    """Raised for words that can't be read; the text says what is wrong."""


class HelpWanted(Exception):  # noqa: N818  nothing is wrong
    """Raised for `--help`; the text is the help."""


class Prints(StrEnum):
    """What a verb prints of a result."""

    ALL = "all"  # the text on standard output, the status line on standard error
    TEXT = "text"  # the text alone
    ENDS = "ends"  # the text, and of what has ended the status; in scripts on a pane's terminal
    STATUS = "status"  # both on standard output
    ERRORS = "errors"  # the status line on standard error, and only if the exit status is not 0
    JSON = "json"  # the whole result as JSON


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

    verb: str
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
        return Request("replay", "replay", {"pane_id": words[1] if words[1:] else None})
    verb = verb_of(words)
    if verb.handler:
        raise UsageError(f"The server can't run verb '{verb.name}'. Run it with tmux-debug.")
    given = parser_of(verb).parse_args(words[1:])
    if verb in SECTIONS[PEOPLE]:
        arguments = {"pane_id": given.pane_id}
        return Request(verb.name, verb.name, arguments, writes=getattr(given, "write", False))
    if verb.name == "call":
        arguments = _named_values(given.tool, given.values, tools)
        return Request("call", given.tool, arguments, _prints(given))
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
    tool = verb.tool
    if verb.name == "resize":
        tool = VERBS["send"].tool
        arguments["keys"] = ""
    return Request(
        verb.name,
        tool,
        arguments,
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


def asks_for_help(words: Sequence[str]) -> bool:
    """Tell whether a command line asks for help; the words of a command that it runs don't.

    Raises:
        UsageError: It has no known verb, or can be read in two ways.
    """
    own, _ = parser_of(verb_of(words)).split(words[1:])
    return any(word in ("-h", "--help") for word in own)


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


def check_arguments(verb: str, arguments: Mapping[str, Any], cwd: str) -> None:
    """Check the arguments of `create` or `run`, called from a directory.

    Raises:
        ArgumentError: An argument is out of range, or no pane can be made so.
    """
    # Help needs neither these nor anyio.
    from tmux_debug_mcp.logs.matching import compiled  # noqa: PLC0415
    from tmux_debug_mcp.panes import creation, sizing  # noqa: PLC0415

    given = ArgumentsParser(VERBS[verb].tool, parameters_of_tool(VERBS[verb])).parse(arguments)
    creation.check(creation.NewPane(given["command"], given.get("name"), env=given.get("env", {})))
    if "pane_id" not in given:
        creation.directory(cwd, given.get("cwd"))
    if "size" in given:
        sizing.given_size(given["size"])
    for name in _PATTERNS & given.keys():
        compiled(name, given[name])


def verb_of(words: Sequence[str]) -> Verb:
    """Return the verb of a command line.

    Raises:
        UsageError: It has no known verb.
    """
    [name] = words[:1] or [""]
    if name in VERBS:
        return VERBS[name]
    kind, known = "Verb", list(VERBS)
    if name.startswith("-"):
        kind, known = "Flag", ["--server", "--version", "--help"]
    near = _near(name.partition("=")[0], known)
    advice = f"Did you mean {near}?" if near else "tmux-debug --help lists all verbs."
    if name in _OTHER_WORDS:
        advice = f"Use: tmux-debug {_OTHER_WORDS[name]}"
    raise UsageError(f"{kind} '{name}' is unknown. {advice}")


def _near(word: str, known: Sequence[str]) -> str:
    """Return the known word that a wrong one resembles, or the only flag that has its letter."""
    begun = [one for one in known if re.fullmatch("-[a-zA-Z]", word) and one[2] == word[1].lower()]
    return nearest(word, known) or (begun[0] if len(begun) == 1 else "")


@functools.cache
def parser_of(verb: Verb) -> "VerbParser":
    """Return the parser of a verb's words, which also makes its help."""
    parser = VerbParser(verb)
    if verb.tool or verb.arguments:
        _add_parameters(parser, verb)
    elif verb.module in ("", LOCAL, LISTING):
        _add_words(parser, verb)
    else:
        importlib.import_module(verb.module).add_arguments(parser)
    return parser


class VerbParser(argparse.ArgumentParser):
    """The parser of a verb, which raises instead of printing and ending the process."""

    def __init__(self, verb: Verb) -> None:
        summary = verb.summary.partition(":")[0]  # the usage says what follows it
        super().__init__(
            prog=f"tmux-debug {verb.name}",
            description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )
        self._example = verb.example
        self.register("type", None, lambda word: word.removeprefix(_LITERAL))

    @property
    def flags(self) -> list[str]:
        """The long flags, such as `--timeout`."""
        return [
            name
            for name, action in self._option_string_actions.items()
            if name.startswith("--") and name in action.option_strings
        ]

    def also_takes(self, flag: str, action: argparse.Action) -> None:
        """Take another spelling of a flag, which help does not show."""
        self._option_string_actions.setdefault(flag, action)

    @property
    def positionals(self) -> list[argparse.Action]:
        """The arguments that are words."""
        return self._get_positional_actions()

    def parse_args(self, words: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """Return the arguments.

        Raises:
            UsageError: They can't be read.
            HelpWanted: They ask for help.
        """
        own, literal = self.split(words)
        marked = [f"{_LITERAL}{word}" for word in literal]
        arguments, others = self.parse_known_intermixed_args([*own, *marked])
        if others:
            self._refuse(others[0])
        return arguments

    def split(self, words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Return the words among which our flags are, and those that are taken as they are.

        A command is taken from its first word on, and so are all words after a `--` before that.

        Raises:
            UsageError: A `--` or a flag may belong to what is typed or run, or may be ours.
        """
        takes_command, takes_keys = self._takes("command"), self._takes("keys")
        before = 0  # words that are neither flags nor their values
        is_value = False
        for place, word in enumerate(words):
            if word == "--":
                if is_value:
                    self.error(f"argument {words[place - 1]}: expected one argument")
                if takes_keys and before > 1:
                    self.error(
                        "'--' stands among KEYS, so it may be one of them or end the flags. Put "
                        "-- before the first of KEYS, and all that follows is typed."
                    )
                return words[:place], words[place + 1 :]
            if not self._is_flag(word) and not is_value:
                if takes_command:
                    self._check_command(words[place:])
                    return words[:place], words[place:]
                before += 1
            action = self._option_string_actions.get(word)
            is_value = action is not None and action.nargs != 0
        return words, []

    def _takes(self, dest: str) -> bool:
        return any(action.dest == dest for action in self.positionals)

    def _is_flag(self, word: str) -> bool:
        """Tell whether argparse takes a word for a flag; one with a blank must be known."""
        is_known = word.partition("=")[0] in self._option_string_actions
        return word.startswith("-") and word != "-" and (is_known or " " not in word)

    def _check_command(self, words: Sequence[str]) -> None:
        """Check that flags after a command line in one word are not meant to be ours."""
        command, *others = words
        ours = [word for word in others if word.partition("=")[0] in self._option_string_actions]
        if " " in command and ours:
            self.error(
                f"'{ours[0]}' follows the command '{command}'. Put our flags before the command; "
                "or -- before it, if it is a program's name."
            )

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"'{word.removeprefix(_LITERAL)}' is one argument too many.")
        flag = word.partition("=")[0]
        if flag == "--server":
            self.error(f"{flag} goes before the verb: {self.prog.replace(' ', f' {flag} PID ')}")
        if flag in _QUIET and "--text" in self.flags:
            verb = self.prog.split()[-1]
            left_out = "remark on ended panes" if verb == "list" else "status line"
            self.error(
                f"{flag} prints nothing but errors, and {verb} only prints. Use --text to leave "
                f"out the {left_out}."
            )
        near = _near(flag, self.flags)
        sentences = [f"Flag '{word}' is unknown."]
        if near:
            sentences.append(f"Did you mean {near}?")
        if self._takes("command") or self._takes("keys"):
            sentences.append("Put -- before words that aren't tmux-debug's flags.")
        if near:
            raise UsageError(" ".join(sentences))
        self.error(" ".join(sentences))

    def format_help(self) -> str:
        """Return the help, which ends with an example."""
        return f"{super().format_help()}\nexample:\n  {self._example}\n"

    def print_help(self, _file: Any = None) -> None:  # noqa: ANN401  as in argparse
        """Raise the help."""
        raise HelpWanted(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with the usage."""
        usage = self.format_usage().removeprefix("usage: ").strip()
        text = f"{message[0].upper()}{message[1:]}"
        raise UsageError(f"{text}\nusage: {usage}")


def parameters_of_tool(verb: Verb) -> list[Parameter]:
    """Return the parameters of a verb's tool, or those of a verb that calls tools."""
    return parameters_of(getattr(debug_arguments, verb.arguments)) if verb.arguments else []


def time_s(word: str) -> float:
    """Return the seconds that a word of a command line stands for."""
    seconds = duration_s(word)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"'{word}' is not a time. Give 10, 0.5, 90s, 10m or 1h.")
    return seconds


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter: its name without a unit or a kind at the end."""
    name = parameter.removesuffix("_s").removesuffix("_id")
    return "--" + name.replace("_", "-")


def in_verbs(text: str, request: Request) -> str:
    """Return a sentence of ours with verbs, flags and words in place of tools and parameters."""
    parameters = parameters_of_tool(VERBS[request.verb])
    words = {one.name: one.value for one in parameters if one.is_required}

    def typed(parameter: str) -> str:
        return words.get(parameter) or flag_of(parameter)

    found = _STEPS.search(text)
    if found:
        line = f"tmux-debug send {shlex.quote(request.arguments['pane_id'])}"
        separate = f"{line} {_separate_words(json.loads(found[1]))}; or use --literal"
        return f"{text[: found.start()]}Give separate words: {separate}{text[found.end() :]}"
    for ours, in_a_shell in _IN_A_SHELL.items():
        text = text.replace(ours, in_a_shell)
    text = _SUBJECT.sub(lambda found: typed(found[1]) + (found[2] or "").replace(".", " "), text)
    text = _IN_ERROR.sub(lambda found: typed(found[0]), text)
    for tool in TOOLS:
        text = text.replace(tool.tool, f"tmux-debug {tool.name}")
    return text


def _separate_words(steps: Sequence[str]) -> str:
    """Return the words of a shell for steps: each key is one, and so is each text without Enter."""
    from tmux_debug_mcp.vt.steps import read  # noqa: PLC0415  help doesn't need it

    words: list[str] = []
    for reading in map(read, steps):
        words += reading.names or (reading.text, *["Enter"] * reading.enters)
    return visible(shlex.join(words), keep="\n")


def _add_parameters(parser: VerbParser, verb: Verb) -> None:
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
    if verb.name == "capture":
        at = (
            "the pane as it was at a cursor or a time, also with --lines or --view: see tmux-debug "
        )
        at += "replay --help"
        parser.add_argument("--at", metavar="WHEN", help=at)
        parser.add_argument(
            "--follow", action="store_true", help="print lines as they come, until the pane ends"
        )
    if verb.name == "wait":
        parser.add_argument(
            "--follow", action="store_true", help="keep waiting, and print each event as a line"
        )
        every = (
            "--follow prints at most one line per TIME, such as 2s, and how many events it skipped"
        )
        parser.add_argument("--every", metavar="TIME", type=time_s, default=0.0, help=every)
    if verb.name == "list":
        ended = "also list the panes that have ended, after those that run"
        parser.add_argument("--all", action="store_true", help=ended)
    if verb.name not in ("capture", "list"):  # they only print
        errors = "print nothing, or why the exit status isn't 0, on standard error"
        _add_print(parser, Prints.ERRORS, errors, *_QUIET)
    _add_print(parser, Prints.TEXT, "print the text and errors, and no status line", "--text")
    if verb.name != "list":
        status = "print the status line on standard output, after the text"
        _add_print(parser, Prints.STATUS, status, "--status")
    _add_json(parser)


def _add_words(parser: VerbParser, verb: Verb) -> None:
    """Add the arguments of a verb whose words are declared neither by a tool nor by a module."""
    match verb.name:
        case "attach":
            parser.description = (
                "Show a pane in this terminal. C-b d leaves it, C-b w takes or returns the "
                "keyboard, C-b PgUp scrolls back, C-b ? shows the keys."
            )
            pane = "pane id or name (default: the only running pane, or one you choose)"
            parser.add_argument("pane_id", metavar="PANE", nargs="?", help=pane)
            writes = "take the keyboard: until you leave, agents can't type, run or signal there"
            parser.add_argument("--write", action="store_true", help=writes)
        case "secret":
            parser.description = (
                "Ask for a secret, or read it from standard input as one line, and type it into a "
                "pane that awaits hidden input. The secret is in no record, and is in a log "
                "only if the pane shows it."
            )
            pane = "pane id or name (default: the one that awaits hidden input)"
            parser.add_argument("pane_id", metavar="PANE", nargs="?", help=pane)
        case "call":
            values = "tool arguments; arrays and objects as JSON"
            names = "tool name; omit it to list all tools and their arguments"
            parser.add_argument("tool", metavar="TOOL", nargs="?", default="", help=names)
            parser.add_argument("values", metavar="NAME=VALUE", nargs="*", help=values)
            _add_json(parser)
        case "ps":
            parser.description = (
                "List the servers: of this directory's, the running panes, of others and of "
                "panes that have ended how many there are."
            )
            everything = "list all panes, running ones first"
            parser.add_argument("--all", action="store_true", help=everything)
            follows = "live view; rings the bell when a program asks for a secret"
            parser.add_argument("--follow", action="store_true", help=follows)
            parser.add_argument("--names", action="store_true", help="list only pane names")
        case "start":
            parser.description = (
                "Start a server that outlives its callers, for the current directory. It takes the "
                "options of `tmux-debug-mcp`(1)."
            )
            keep = "end after TIME without use, such as 90s, 2h or 1d (default 60m)"
            parser.add_argument("--keep", metavar="TIME", help=keep)
            export = "print a line for `eval` that makes this shell use that server"
            parser.add_argument("--export", action="store_true", help=export)
            parser.add_argument("options", metavar="OPTION", nargs="*")
        case "completion":
            parser.description = "Print a script for tab completion in a shell."
            parser.add_argument("shell", choices=SHELLS)


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


def _add_json(parser: VerbParser) -> None:
    _add_print(parser, Prints.JSON, "print the whole result as JSON", "--json")


def _add_print(parser: VerbParser, prints: Prints, text: str, *flags: str) -> None:
    parser.add_argument(*flags, dest="prints", action="append_const", const=prints, help=text)


def _help(schema: Mapping[str, Any]) -> str:
    """Return the help of an argument, which names flags where the schema names parameters.

    What would be an array is several words.
    """
    text = str(schema.get("description", "")).replace("%", "%%").removesuffix(", or an array")
    text = text.replace(", or an array of steps", "; each word is a step")
    if schema.get("type") == "number":
        text += "; or 10m, 1h"
    return _PARAMETER.sub(lambda found: flag_of(found[0]), text)


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
            with contextlib.suppress(json.JSONDecodeError):
                arguments[name] = json.loads(text)
    return arguments
