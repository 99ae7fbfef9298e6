"""YAML: puts and removes entries of mappings by splicing the text.

ruamel.yaml says where things are. It does not write, because it would also lay out anew what has
not changed. Scalars are quoted as in JSON where a plain one might mean something else.
"""

import json
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from .faults import FormatError, at

Path = tuple[str | int, ...]

_UNIT = 2
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./ ()-]*[A-Za-z0-9_./)]")
# What YAML 1.1 and 1.2 take for something else than a text.
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def load(text: str) -> object:
    """Return the value of a text, {} of an empty one.

    Raises:
        FormatError: It is no YAML, or has several documents.
    """
    try:
        value = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        raise _fault(error) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise FormatError("is no YAML") from error
    return {} if value is None else value


def put(text: str, path: Path, value: object) -> str:
    """Return the text with this value at a path.

    Raises:
        FormatError: It is no YAML, or what is on the way is no mapping.
    """
    load(text)
    node = _compose(text)
    if node is None:
        return _appended(text, 0, _nested(path, value))
    position = 0  # where the key ends that has the mapping
    for depth, key in enumerate(path):
        found = _child(text, node, key)
        if found is None:
            return _inserted(text, node, position, _nested(path[depth:], value))
        column, position = node.start_mark.column, _end(found[0])
        node = found[1]
        if depth + 1 < len(path) and _is_null(node):
            bare = text[: node.start_mark.index] + text[node.end_mark.index :]
            lines = _block(_nested(path[depth + 1 :], value), column + _UNIT)
            return _behind_line(bare, position, lines)
    start, end = node.start_mark.index, _end(node)
    return text[:start] + _scalar(value) + text[end:]


def remove(text: str, path: Path, *, keeps_parents: bool = False) -> str:
    """Return the text without the entry at a path.

    Args:
        text: The text.
        path: The path. The text stays as it is if nothing is there.
        keeps_parents: Keep mappings on the way that become empty. Those with comments always stay.

    Raises:
        FormatError: As in `put`.
    """
    load(text)
    node = _compose(text)
    chain: list[tuple[Node, Node, Node]] = []
    for key in path:
        found = node and _child(text, node, key)
        if node is None or not found:
            return text
        chain.append((node, *found))
        node = found[1]
    level = len(chain) - 1
    while not keeps_parents and level > 0 and _is_alone(text, chain[level - 1], chain[level]):
        level -= 1
    return _without(text, *chain[level])


def dump(value: dict[str, object]) -> str:
    """Return a mapping as a text in block style."""
    return "".join(f"{line}\n" for line in _block(value, 0))


def _compose(text: str) -> Node | None:
    node: Node | None = YAML(typ="safe", pure=True).compose(text)
    return node


def _child(text: str, node: Node, key: str | int) -> tuple[Node, Node] | None:
    """Return the key and the value of an entry. An item of a sequence is its own key."""
    if isinstance(key, int):
        if isinstance(node, SequenceNode) and key < len(node.value):
            return node.value[key], node.value[key]
        return None
    if not isinstance(node, MappingNode):
        raise at(text, node.start_mark.index, "has no mapping here")
    for key_node, value in node.value:
        if isinstance(key_node, ScalarNode) and key_node.value == key:
            return key_node, value
    return None


def _inserted(text: str, node: Node, position: int, entry: dict[str, object]) -> str:
    """Return the text with an entry at the beginning of a mapping, or at the end of the text.

    Where a mapping in block style ends, and which comments are still its own, is not in the YAML.

    Args:
        text: The text.
        node: The mapping.
        position: The end of its key, 0 if it is the value of the text.
        entry: The entry.
    """
    if _is_flow(node):
        start = node.start_mark.index + 1
        separator = ", " if node.value else ""
        return text[:start] + _flow(entry)[1:-1] + separator + text[start:]
    if position == 0:
        return _appended(text, node.start_mark.column, entry)
    return _behind_line(text, position, _block(entry, node.start_mark.column))


def _behind_line(text: str, position: int, lines: list[str]) -> str:
    """Return the text with lines behind the line of a position."""
    end = text.find("\n", position) + 1
    if not end:
        return f"{text}\n{_join(text, lines)}"
    return text[:end] + _join(text, lines) + text[end:]


def _appended(text: str, indent: int, entry: dict[str, object]) -> str:
    start = text
    if start.strip("\ufeff") and not start.endswith("\n"):
        start += _newline(text)
    return start + _join(text, _block(entry, indent))


def _block(value: dict[str, object], indent: int) -> list[str]:
    """Return the lines of a mapping in block style."""
    lines = []
    for key, member in value.items():
        start = f"{' ' * indent}{_scalar(key)}:"
        if isinstance(member, dict) and member:
            lines += [start, *_block(member, indent + _UNIT)]
        else:
            lines.append(f"{start} {_scalar(member)}")
    return lines


def _flow(value: object) -> str:
    """Return a value on one line."""
    if isinstance(value, dict):
        members = [f"{_quoted(key)}: {_flow(member)}" for key, member in value.items()]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return f"[{', '.join(_flow(item) for item in value)}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _scalar(value: object) -> str:
    """Return a value in a mapping in block style. A text has quotes only where it needs them."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else _flow(value)


def _quoted(text: str) -> str:
    """Return a text in double quotes. Source: YAML 1.2.2, 5.7, escaped characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def _nested(path: Path, value: object) -> dict[str, object]:
    """Return the mapping that has a value at a path of one key or more."""
    [first, *others] = path
    return {str(first): _nested(tuple(others), value) if others else value}


def _without(text: str, parent: Node, key: Node, value: Node) -> str:
    """Return the text without an entry of a mapping."""
    start, end = key.start_mark.index, _end(value)
    if _is_flow(parent):
        behind = re.match(r"\s*,[ \t]*", text[end:])
        if behind:
            return text[:start] + text[end + behind.end() :]
        return re.sub(r",\s*\Z", "", text[:start]) + text[end:]
    first = text.rfind("\n", 0, start) + 1
    if text[first:start].strip("\ufeff "):
        raise at(text, start, "has our entry on a line with something else")
    if end > first and text[end - 1 : end] == "\n":
        return text[:first] + text[end:]
    line_end = text.find("\n", end) + 1 or len(text)
    return text[:first] + text[line_end:]


def _is_alone(text: str, above: tuple[Node, Node, Node], own: tuple[Node, Node, Node]) -> bool:
    """Tell whether an entry is all that its mapping has, without a comment before it."""
    between = text[_end(above[1]) : own[1].start_mark.index]
    return len(own[0].value) == 1 and not between.strip(": \t\r\n{")


def _end(node: Node) -> int:
    """Return where a node ends. A mapping in block style ends where its last entry does."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last: Any = node.value[-1]
        return _end(last[1] if isinstance(node, MappingNode) else last)
    return int(node.end_mark.index)


def _is_flow(node: Node) -> bool:
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and str(node.tag).endswith(":null")


def _join(text: str, lines: list[str]) -> str:
    return "".join(line + _newline(text) for line in lines)


def _newline(text: str) -> str:
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"


def _fault(error: MarkedYAMLError) -> FormatError:
    mark = error.problem_mark or error.context_mark
    reason = ", ".join(part for part in (error.context, error.problem) if part)
    reason = f"is no YAML: {reason}"
    if mark is None:
        return FormatError(reason)
    return FormatError(reason, mark.line + 1, mark.column + 1)
