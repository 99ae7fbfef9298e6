"""Sessions as pages show them: calls, each with the result that it returns.

A call begins with `> `, its result is indented by two blanks. `…` in a line stands for any text.

A result is as shown if it has the lines that are shown, in their order, and ends with the last of
them, which is the status. Programs word things differently from version to version: a result may
have other lines between these, whether or not the page has a line `…` there, and the page has only
those that it talks about. What differs from run to run (times, process ids, ports, cursors) need
not be equal, nor do the marks under code in a traceback.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_VARIES = re.compile(
    r"(?P<cursor>(?<=cursor )\d+|^\d+(?=[:-] ))|(?P<port>(?<=127\.0\.0\.1:)\d{2,5})"
    r"|(?P<run>\b\d{8}T\d{6}-\d+)"
    r"|(?P<other>\b\d+\.\d(?= s)|(?<=pid )\d+|(?<=--server )\d+|(?<=bash-)\d\.\d\$|…)"
)
_MARKS = re.compile(r"^ +[~^]+\n", re.MULTILINE)
_IN_ARGUMENTS = re.compile(r"(?<=127\.0\.0\.1:)\d{2,5}")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a session.

    Attributes:
        tool: The tool's name.
        arguments: Its arguments.
        result: What is shown of its result, with a line feed behind each line.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: str


def fenced(text: str, language: str) -> list[str]:
    """Return the blocks of this language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def sessions_of(text: str) -> list[list[Call]]:
    """Return the sessions that a page shows."""
    return [
        calls_of(block) for block in fenced(text, "text") if re.search("^> ", block, re.MULTILINE)
    ]


def calls_of(session: str) -> list[Call]:
    """Return the calls of a session."""
    calls = []
    for part in re.split("^> ", session, flags=re.MULTILINE)[1:]:
        call, *lines = part.splitlines()
        while lines and (not lines[-1] or lines[-1].startswith("# ")):
            lines.pop()
        tool, arguments = _parsed(call)
        calls.append(
            Call(tool, arguments, "".join(line.removeprefix("  ") + "\n" for line in lines))
        )
    return calls


def with_facts(arguments: Mapping[str, Any], facts: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments with what this run has in place of what the page shows."""
    return {name: _with_facts(value, facts) for name, value in arguments.items()}


def facts_of(shown: str, actual: str) -> dict[str, str] | None:
    """Return a result's values of the shown cursors and ports, None if it is another result.

    Nothing is shown to have come where no line is shown. Behind a last line `…` any lines may come.
    """
    wanted = [line for line in _MARKS.sub("", shown).splitlines() if line]
    left = actual.splitlines()
    if not wanted:
        return None if left else {}
    facts: dict[str, str] = {}
    if wanted[-1] != "…":
        found = _found(wanted.pop(), left[-1:])
        if found is None:
            return None
        facts |= found[0]
        left.pop()
    for line in wanted:
        found = _found(line, left) if line != "…" else ({}, 0)
        if found is None:
            return None
        facts |= found[0]
        left = left[found[1] :]
    return facts


def joined(texts: Sequence[str]) -> str:
    """Return the texts of a result's blocks as pages show them."""
    return "".join(f"{text.rstrip()}\n" for text in texts if text)


def _parsed(call: str) -> tuple[str, dict[str, Any]]:
    tree = ast.parse(
        re.sub(r"=(true|false)\b", lambda found: f"={found[1].title()}", call), mode="eval"
    ).body
    assert isinstance(tree, ast.Call), call
    arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in tree.keywords}
    return ast.unparse(tree.func), arguments


def _found(line: str, left: Sequence[str]) -> tuple[dict[str, str], int] | None:
    """Return the facts of the first line that is as shown, and how many lines end with it."""
    names: list[str] = []
    pattern = re.compile(_pattern(line, names) + " *")
    for number, actual in enumerate(left, 1):
        found = pattern.fullmatch(actual)
        if found:
            return dict(zip(names, found.groups(), strict=True)), number
    return None


def _pattern(line: str, names: list[str]) -> str:
    """Return the expression for a line, and add what it has groups for to the names."""
    pattern, end = "", 0
    for found in _VARIES.finditer(line):
        pattern += re.escape(line[end : found.start()])
        if found["other"]:
            pattern += ".*"
        else:
            names.append(found[0])
            pattern += r"([\dT-]+)"
        end = found.end()
    return pattern + re.escape(line[end:])


def _with_facts(value: Any, facts: Mapping[str, str]) -> Any:  # noqa: ANN401
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(facts.get(str(value), value))
    if isinstance(value, str):
        for shown, actual in facts.items():
            if "-" in shown:
                value = value.replace(shown, actual)
        return _IN_ARGUMENTS.sub(lambda found: facts.get(found[0], found[0]), value)
    return value
