"""YAML: puts and removes entries of mappings by splicing the text.

ruamel.yaml says where things are. It does not write: its round trip turns `bundled: null`, which
goose writes, into `bundled:`, and moves comments. Scalars are quoted as in JSON where a plain one
might mean something else.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from .formats import BOM, FormatError, Path, nested, newline

_UNIT = 2
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./ ()-]*[A-Za-z0-9_./)]")
# Words that YAML 1.1 or 1.2 takes for something other than text.
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def load(text: str) -> object:
    """Return the value of a text, {} for an empty one. Several documents are an error."""
    try:
        value = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise FormatError(f"is not YAML: {reason}", line, column) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise FormatError("is not YAML") from error
    return {} if value is None else value


def put(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield texts with this value at a path.

    An entry goes before all others of its mapping, or to the end of the text: YAML doesn't say
    where a mapping ends, and which comments still belong to it.
    """
    chain = _chain(text, path)
    missing = path[len(chain) :]
    key, node = chain[-1] if chain else (None, _compose(text))
    start = node.start_mark.index if node else 0
    if node and not missing:
        yield text[:start] + _scalar(value) + text[_end(node) :]
        return
    entry = nested(missing, value)
    if isinstance(node, MappingNode) and node.flow_style and node.value:
        yield f"{text[: start + 1]}{_flow(entry)[1:-1]}, {text[start + 1 :]}"
        return
    before, behind = text, ""
    column = node.start_mark.column if node else 0
    if key and node:
        if not node.value or str(node.tag).endswith(":null"):
            column = key.start_mark.column + _UNIT
            before = text[:start].rstrip(" ") + text[_end(node) :]
        position = before.find("\n", _end(key)) + 1 or len(before)
        before, behind = before[:position], before[position:]
    if before.strip(BOM) and not before.endswith("\n"):
        before += newline(text)
    yield before + _lines(text, entry, column) + behind


def remove(text: str, path: Path) -> Iterator[str]:
    """Yield texts without the entry at a path: as lines, and from a mapping in flow style.

    A mapping on the way goes with it if it is then empty, unless a comment precedes the entry.
    """
    chain = _chain(text, path)
    level = len(path) - 1
    while level > 0 and _is_alone(text, *chain[level - 1], chain[level][0]):
        level -= 1
    start, end = chain[level][0].start_mark.index, _end(chain[level][1])
    first = text.rfind("\n", 0, start) + 1
    last = end if text[end - 1] == "\n" else text.find("\n", end) + 1 or len(text)
    yield text[:first] + text[last:]
    yield text[:start] + re.sub(r"\A\s*,[ \t]*", "", text[end:])
    yield re.sub(r",\s*\Z", "", text[:start]) + text[end:]


def dump(value: dict[str, object]) -> str:
    """Return a mapping as a text in block style."""
    return _lines("", value, 0)


def _compose(text: str) -> Node | None:
    node: Node | None = YAML(typ="safe", pure=True).compose(text)
    return node


def _chain(text: str, path: Path) -> list[tuple[Node, Node]]:
    """Return key and value of each entry on a path, as far as it exists.

    An item of a sequence is its own key.
    """
    load(text)
    node = _compose(text)
    chain: list[tuple[Node, Node]] = []
    for key in path:
        if isinstance(node, SequenceNode):
            entries = list(enumerate(zip(node.value, node.value, strict=True)))
        elif isinstance(node, MappingNode):
            entries = [(entry[0].value, entry) for entry in node.value]
        else:
            break
        found = [entry for name, entry in entries if name == key]
        if not found:
            break
        chain.append(found[0])
        node = found[0][1]
    return chain


def _lines(text: str, value: dict[str, object], indent: int) -> str:
    """Return the lines of a mapping in block style, with the newlines of this text."""
    lines = ""
    for key, member in value.items():
        lines += f"{' ' * indent}{_scalar(key)}:"
        if isinstance(member, dict) and member:
            lines += newline(text) + _lines(text, member, indent + _UNIT)
        else:
            lines += f" {_scalar(member)}{newline(text)}"
    return lines


def _scalar(value: object) -> str:
    """Return a value on one line. A text has quotes only where it needs them."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else _flow(value)


def _flow(value: object) -> str:
    """Return a value as JSON, which is YAML except for some characters.

    Source: YAML 1.2.2, 5.7, escaped characters.
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in text)


def _is_alone(text: str, key: Node, value: Node, first: Node) -> bool:
    """Return whether a mapping contains only the entry with this key, and no comment before it."""
    between = text[_end(key) : first.start_mark.index]
    return len(value.value) == 1 and not between.strip(": \t\r\n{")


def _end(node: Node) -> int:
    """Return where a node ends. A mapping in block style ends where its last entry does."""
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last: Any = node.value[-1]
        return _end(last[1] if isinstance(node, MappingNode) else last)
    return int(node.end_mark.index)
