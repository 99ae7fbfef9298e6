"""The parsers of `tmux-debug`'s verbs, which also make their help. No I/O.

This is light: `requests` says what the words of tools' verbs mean.
"""

import argparse
import functools
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from tmux_debug_mcp.sockets.servers import VerbError

from .registry import VERBS, Prints, Verb, loaded

# Marks a word that argparse must not take for a flag. No argument of a process contains it.
_LITERAL = "\0"
# What adds the flags and words for the parameters of a tool.
_PARAMETERS = "tmux_debug_mcp.verbs.words:add_parameters"
_QUIET = ("-q", "--quiet")
_HELP = {"-h", "--help"}
_PRINTS = {
    Prints.ERRORS: (_QUIET, "print nothing, or why the exit status isn't 0, on standard error"),
    Prints.TEXT: (("--text",), "print the text and errors, and no status line"),
    Prints.STATUS: (("--status",), "print the status line on standard output, after the text"),
    Prints.JSON: (("--json",), "print the whole result as JSON"),
}

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


def verb_of(words: Sequence[str]) -> Verb:
    """Return the verb of a command line.

    Raises:
        UsageError: It has no known verb.
    """
    [name] = words[:1] or [""]
    if name in VERBS:
        return VERBS[name]
    kind, known, advice = "Verb", list(VERBS), "tmux-debug --help lists all verbs."
    if name.startswith("-"):
        kind, known = "Flag", ["--server", "--version", "--help"]
        advice = f"Before a verb, there are {', '.join(known)}."
    near = _near(name.partition("=")[0], known)
    if near:
        advice = f"Did you mean {near}?"
    if name in _OTHER_WORDS:
        advice = f"Use: tmux-debug {_OTHER_WORDS[name]}"
    raise UsageError(f"{kind} '{name}' is unknown. {advice}")


def _near(word: str, known: Sequence[str]) -> str:
    """Return the known word that a wrong one resembles, or the only flag that has its letter."""
    begun = [
        flag for flag in known if re.fullmatch("-[a-zA-Z]", word) and flag[2] == word[1].lower()
    ]
    from tmux_debug_mcp.errors import nearest  # noqa: PLC0415  only errors need it

    return nearest(word, known) or (begun[0] if len(begun) == 1 else "")


@functools.cache
def parser_of(verb: Verb) -> "VerbParser":
    """Return the parser of a verb's words, which also makes its help."""
    parser = VerbParser(verb)
    if verb.arguments:
        loaded(_PARAMETERS)(parser, verb)
    if verb.words:
        loaded(verb.words)(parser)
    for prints in verb.prints:
        flags, text = _PRINTS[prints]
        parser.add_argument(*flags, dest="prints", action="append_const", const=prints, help=text)
    return parser


def asks_for_help(words: Sequence[str]) -> bool:
    """Tell whether a command line asks for help; the words of a command that it runs don't.

    Raises:
        UsageError: It has no known verb, or can be read in two ways.
    """
    if _HELP.isdisjoint(words):
        return False
    own, _ = parser_of(verb_of(words)).split(words[1:])
    return not _HELP.isdisjoint(own)


class VerbParser(argparse.ArgumentParser):
    """The parser of a verb, which raises instead of printing and ending the process."""

    def __init__(self, verb: Verb) -> None:
        summary = verb.summary.partition(":")[0]  # the usage says what follows it
        super().__init__(
            prog=f"tmux-debug {verb.name}",
            description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )
        self._verb = verb
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
        if flag in _QUIET and Prints.TEXT in self._verb.prints:
            has_status = Prints.STATUS in self._verb.prints
            left_out = "status line" if has_status else "remark on ended panes"
            self.error(
                f"{flag} prints nothing but errors, and {self._verb.name} only prints. Use --text "
                f"to leave out the {left_out}."
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
        return f"{super().format_help()}\nexample:\n  {self._verb.example}\n"

    def print_help(self, _file: Any = None) -> None:  # noqa: ANN401  as in argparse
        """Raise the help."""
        raise HelpWanted(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with the usage."""
        usage = self.format_usage().removeprefix("usage: ").strip()
        text = f"{message[0].upper()}{message[1:]}"
        raise UsageError(f"{text}\nusage: {usage}")
