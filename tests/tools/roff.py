"""Manual pages in the language of man(7), from plain text and from argument parsers."""

import argparse
import re
import textwrap
from collections.abc import Container, Iterable, Iterator, Sequence

_SPECIAL = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
    "…": r"\.\.\.",
}
_SENTENCES = re.compile(r"(?<=[a-z0-9)`][.?:]) (?=[A-Z`])")
_CODE = re.compile(r"`([^`]+)`")
# The beginning of a help that explains values: they are typed as they are.
_VALUE = re.compile(r"[\w-]+(?:[:,]| =) ")
_COLUMNS = 78
# Names of options and variables stay whole. groff forgets it behind examples and synopses.
_NO_HYPHENS = ".nh"


def escaped(text: str) -> str:
    """Return text that shows as it is."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def bold(text: str) -> str:
    """Return what is typed as it is."""
    return rf"\fB{escaped(text)}\fR"


def italic(text: str) -> str:
    """Return what stands for something else."""
    return rf"\fI{escaped(text)}\fR"


def marked(text: str) -> str:
    """Return text in which what stands between backticks is bold."""
    parts = _CODE.split(text)
    return "".join(bold(part) if number % 2 else escaped(part) for number, part in enumerate(parts))


def filled(text: str) -> list[str]:
    """Return the lines of a paragraph, each sentence on lines of its own."""
    lines: list[str] = []
    for sentence in _SENTENCES.split(" ".join(text.split())):
        lines += textwrap.wrap(
            marked(sentence), _COLUMNS, break_long_words=False, break_on_hyphens=False
        )
    return [rf"\&{line}" if line.startswith((".", "'")) else line for line in lines]


def paragraphs(text: str) -> list[str]:
    """Return the lines of text whose paragraphs are separated by empty lines.

    A paragraph of lines with a margin is an example.
    """
    lines: list[str] = []
    for number, block in enumerate(re.split(r"\n\s*\n", text.strip("\n"))):
        lines += [".PP"] if number else []
        if block.startswith("    "):
            lines += example(textwrap.dedent(block))
        else:
            lines += filled(block)
    return lines


def example(text: str) -> list[str]:
    """Return the lines of an example."""
    return [".RS 4", *unfilled(text)[:-1], ".RE", _NO_HYPHENS]


def unfilled(text: str) -> list[str]:
    """Return the lines of text that is to be typed as it is, without an indent."""
    return [".EX", *(escaped(line) for line in text.splitlines()), ".EE", _NO_HYPHENS]


def section(title: str, lines: Iterable[str]) -> list[str]:
    """Return the lines of a section."""
    return [f".SH {title}", *lines]


def rows(described: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of a list: each time what it is, as `marked` has it, and what is said."""
    lines: list[str] = []
    for head, text in described:
        lines += [".TP", marked(head), *filled(text)]
    return lines


def synopsis(program: str, words: Iterable[str]) -> list[str]:
    """Return the lines of a command line.

    Args:
        program: What it begins with.
        words: Its other words, escaped.
    """
    return [rf".SY {escaped(program)}", *words, ".YS", _NO_HYPHENS]


def words_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the words of a parser's command line, escaped; options first."""
    ordered = sorted(_shown(parser), key=lambda action: not action.option_strings)
    for action in ordered:
        if action.option_strings:
            word = _option(action, action.option_strings[-1:])
            yield word if action.required else f"[{word}]"
        else:
            yield _positional(action)


def arguments_of(parser: argparse.ArgumentParser, common: Container[str] = ()) -> list[str]:
    """Return the lines that describe the arguments and options of a parser.

    Args:
        parser: The parser.
        common: The descriptions of those to leave out, as sentences.
    """
    lines: list[str] = []
    for action in _shown(parser):
        is_known = not action.help or _sentence(action.help) in common
        if is_known and not isinstance(action, argparse._SubParsersAction):
            continue
        head = _option(action, action.option_strings) if action.option_strings else _name(action)
        lines += [".TP", head, *filled(_sentence(_help(parser, action)))]
        if isinstance(action, argparse._SubParsersAction):
            lines += [".RS", *_choices(action), ".RE"]
    return lines


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in parser._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
    ]


def _choices(action: "argparse._SubParsersAction[argparse.ArgumentParser]") -> list[str]:
    lines: list[str] = []
    for choice in action._choices_actions:
        below = action.choices[choice.dest]
        head = " ".join([bold(choice.dest), *words_of(below)])
        lines += [".TP", head, *filled(_sentence(choice.help or ""))]
        if _shown(below):
            lines += [".RS", *arguments_of(below), ".RE"]
    return lines


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _sentence(text: str) -> str:
    """Return the help of an argument as a sentence."""
    if not text:
        return ""
    begin = text[0] if _VALUE.match(text) else text[0].upper()
    return f"{begin}{text[1:]}".removesuffix(".") + "."


def _option(action: argparse.Action, names: Sequence[str]) -> str:
    shown = ", ".join(bold(name) for name in names)
    return shown if action.nargs == 0 else rf"{shown}\ {_positional(action)}"


def _positional(action: argparse.Action) -> str:
    """Return the value of an argument, with how often it may be there."""
    name = _name(action)
    match action.nargs:
        case "?":
            return f"[{name}]"
        case "*" | argparse.REMAINDER:
            return rf"[{name}\ \.\.\.]"
        case "+":
            return rf"{name}\ \.\.\."
        case int(count):
            return r"\ ".join([name] * count)
    return name


def _name(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return r"\ ".join(map(italic, action.metavar))
    if action.metavar:
        return italic(action.metavar)
    if action.choices:
        return "|".join(bold(str(choice)) for choice in action.choices)
    return italic(action.dest.upper())
