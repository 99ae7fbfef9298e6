"""JSON with comments and trailing commas: puts and removes members by splicing the text.

All other bytes stay as they are: comments, order, indentation, the style of commas and newlines.
What `put` has added to an object, `remove` takes away to the byte. Of members with the same key the
last one counts, as in JSON.parse.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from .formats import BOM, MAX_DEPTH, FormatError, Path, at, nested, newline

_SPACE = " \t\r\n"
_DEFAULT_UNIT = "  "
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(//[^\r\n]*|/\*.*?\*/)", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a text.

    Attributes:
        start: Where it begins, an offset in characters.
        end: Where it ends.
        value: What it is for Python.
        members: Its members, if it is an object.
    """

    start: int
    end: int
    value: object
    members: tuple["Member", ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object.

    Attributes:
        key: Its key.
        start: Where the key begins.
        node: Its value.
        comma: The offset of the comma behind it, -1 if there is none.
    """

    key: str
    start: int
    node: Node
    comma: int


def parse(text: str) -> Node | None:
    """Return the value of a text, None if the text has nothing but space and comments.

    Raises:
        FormatError: It is no JSON with comments.
    """
    parser = _Parser(text)
    if parser.is_at_end():
        return None
    root = parser.value(0)
    if not parser.is_at_end():
        raise parser.error("has more behind its value")
    return root


def load(text: str) -> object:
    """Return the value of a text for Python, {} of an empty one.

    Raises:
        FormatError: It is no JSON with comments.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):  # it has comments, say, or is wrong
        root = parse(text)
        return {} if root is None else root.value


def put(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield the text with this value at a path. Objects on the way are made.

    Raises:
        FormatError: It is no JSON with comments, or what is on the way is no object.
    """
    root = parse(text)
    if root is None:
        yield _with_root(text, nested(path, value))
        return
    node = root
    for depth, key in enumerate(path):
        _check_object(text, node, path[:depth])
        member = _last(node, key)
        if member is None:
            yield _Insertion(text, root, node).of(key, nested(path[depth + 1 :], value))
            return
        node = member.node
    written = _dumped(value, _indent_at(text, node.start), _unit(text, root), newline(text))
    yield text[: node.start] + written + text[node.end :]


def remove(text: str, path: Path) -> Iterator[str]:
    """Yield the text without the member at a path.

    Objects on the way that are empty then go with it in the first text, but for those with
    comments. They stay in the second: without one, an earlier member of its key would count.

    Raises:
        FormatError: As in `put`.
    """
    chain = _chain(text, path)
    level = len(chain) - 1
    while level > 0 and _is_alone(text, *chain[level]):
        level -= 1
    yield _without(text, *chain[level])
    yield _without(text, *chain[-1])


class _Parser:
    """Reads a text from its beginning.

    Args:
        text: The text. It may begin with a byte order mark.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 1 if text.startswith(BOM) else 0

    def error(self, reason: str) -> FormatError:
        """Return the error for the place where the parser is."""
        return at(self._text, self._position, reason)

    def is_at_end(self) -> bool:
        """Skip space and comments, and tell whether that was all."""
        self._skip()
        return self._position == len(self._text)

    def value(self, depth: int) -> Node:
        """Return the value that begins here."""
        if depth > MAX_DEPTH:
            raise self.error(f"is nested more than {MAX_DEPTH} deep")
        if self._text.startswith("{", self._position):
            return self._object(depth)
        if self._text.startswith("[", self._position):
            return self._array(depth)
        found = _STRING.match(self._text, self._position)
        found = found or _WORD.match(self._text, self._position)
        if not found:
            raise self.error("has no JSON value here")
        self._position = found.end()
        return Node(found.start(), found.end(), _decoded(found[0]))

    def _object(self, depth: int) -> Node:
        start = self._position
        members: list[Member] = []
        self._position += 1
        while not self._takes("}"):
            if members and members[-1].comma < 0:
                raise self.error("lacks a comma or a '}' here")
            key = _STRING.match(self._text, self._position)
            if not key:
                raise self.error("has no key in double quotes here")
            self._position = key.end()
            if not self._takes(":"):
                raise self.error("lacks a ':' here")
            self._skip()
            node = self.value(depth + 1)
            comma = self._position - 1 if self._takes(",") else -1
            members.append(Member(str(json.loads(key[0])), key.start(), node, comma))
        value = {member.key: member.node.value for member in members}
        return Node(start, self._position, value, tuple(members))

    def _array(self, depth: int) -> Node:
        start = self._position
        values: list[object] = []
        has_comma = True
        self._position += 1
        while not self._takes("]"):
            if not has_comma:
                raise self.error("lacks a comma or a ']' here")
            values.append(self.value(depth + 1).value)
            has_comma = self._takes(",")
        return Node(start, self._position, values)

    def _takes(self, mark: str) -> bool:
        """Skip space and comments, and this mark if it is next."""
        self._skip()
        if not self._text.startswith(mark, self._position):
            return False
        self._position += 1
        return True

    def _skip(self) -> None:
        found = _TRIVIA.match(self._text, self._position)
        if found:
            self._position = found.end()
        if self._text.startswith("/*", self._position):
            raise self.error("has a comment that is not closed")


class _Insertion:
    """Inserts a member at the end of an object.

    Args:
        text: The text.
        root: Its value.
        node: The object.
    """

    def __init__(self, text: str, root: Node, node: Node) -> None:
        self._text = text
        self._node = node
        self._newline = newline(text)
        self._unit = _unit(text, root)
        self._base = _indent_at(text, node.start)
        # All of the text is on one line, and it is more than an empty object.
        self._is_line = bool(root.members) and "\n" not in text[root.start : root.end]

    def of(self, key: str, value: object) -> str:
        """Return the text with this member."""
        if self._node.members:
            return self._behind(self._node.members[-1], key, value)
        comments = _comments(self._text, self._node.start + 1, self._node.end - 1)
        if comments:
            return self._behind_comment(comments[-1][1], key, value)
        position = self._node.start + 1
        before = after = ""
        if not self._is_line:
            before = f"{self._newline}{self._base}{self._unit}"
            after = f"{self._newline}{self._base}"
        return self._spliced(position, before + self._member(before, key, value) + after)

    def _behind(self, last: Member, key: str, value: object) -> str:
        """Insert it behind the last member, and behind the comments on the line of that."""
        text = self._text
        end = last.node.end if last.comma < 0 else last.comma + 1
        position, is_line_comment = _end_of_comments(text, end)
        separator = self._separator(last)
        if is_line_comment and "\n" not in separator:
            separator = f"{self._newline}{_indent_at(text, last.start)}"
        inserted = separator + self._member(separator, key, value)
        if last.comma >= 0:
            return self._spliced(position, f"{inserted},")
        return f"{text[:end]},{text[end:position]}{inserted}{text[position:]}"

    def _behind_comment(self, position: int, key: str, value: object) -> str:
        is_last_line = "\n" not in self._text[position : self._node.end]
        separator = " " if is_last_line else f"{self._newline}{self._base}{self._unit}"
        return self._spliced(position, separator + self._member(separator, key, value))

    def _separator(self, last: Member) -> str:
        """Return the space between two members of the object, as the last one has it before."""
        text = self._text
        space = text[len(text[: last.start].rstrip(_SPACE)) : last.start]
        if "\n" in space:
            return f"{self._newline}{space.rpartition(chr(10))[2]}"
        if len(self._node.members) > 1:
            return space
        return " " if self._is_spacious(last) else ""

    def _is_spacious(self, last: Member) -> bool:
        return self._text[last.node.start - 1] in _SPACE

    def _member(self, separator: str, key: str, value: object) -> str:
        """Return a member: on lines of its own behind a separator that has a newline."""
        if "\n" in separator:
            indent = separator.rpartition("\n")[2]
            written = _dumped(value, indent, self._unit, self._newline)
            return f"{_quoted(key)}: {written}"
        members = self._node.members
        is_spacious = not members or self._is_spacious(members[-1])
        comma, colon = (", ", ": ") if is_spacious else (",", ":")
        written = json.dumps(value, ensure_ascii=False, separators=(comma, colon))
        return f"{_quoted(key)}{colon}{written}"

    def _spliced(self, position: int, inserted: str) -> str:
        return self._text[:position] + inserted + self._text[position:]


def _without(text: str, node: Node, index: int) -> str:
    """Return the text without a member of an object, and without the space before it."""
    member = node.members[index]
    previous = node.members[index - 1] if index else None
    before_end = node.start + 1 if previous is None else max(previous.comma + 1, previous.node.end)
    before, after = text[: member.start], text[member.node.end :]
    if member.comma >= 0:
        between = text[member.node.end : member.comma]  # comments in it stay
        after = (between if between.strip(_SPACE) else "") + text[member.comma + 1 :]
    comments = _comments(text, before_end, member.start)
    is_after_line_comment = bool(comments) and text.startswith("//", comments[-1][0])
    if is_after_line_comment and not re.match(r"[ \t]*[\r\n]", after):
        after = after.lstrip(" \t")
    else:
        kept = comments[-1][1] if comments else before_end  # a // comment may end with spaces
        before = before[:kept] + before[kept:].rstrip(_SPACE)
    if previous is not None and member.comma < 0:
        before = before[: previous.comma] + before[previous.comma + 1 :]
    closing = f"{newline(text)}{_indent_at(text, node.start)}"
    if len(node.members) == 1 and len(before) == node.start + 1 and after.startswith(closing):
        after = after.removeprefix(closing)
    return before + after


def _chain(text: str, path: Path) -> list[tuple[Node, int]]:
    """Return each object on a path with the index of the member, [] if there is none."""
    node = parse(text)
    chain: list[tuple[Node, int]] = []
    for depth, key in enumerate(path):
        if node is None:
            return []
        _check_object(text, node, path[:depth])
        found = [index for index, member in enumerate(node.members) if member.key == key]
        if not found:
            return []
        chain.append((node, found[-1]))
        node = node.members[found[-1]].node
    return chain


def _is_alone(text: str, node: Node, index: int) -> bool:
    """Tell whether a member is all that its object has."""
    member = node.members[index]
    outside = _comments(text, node.start + 1, member.start)
    outside += _comments(text, member.node.end, node.end - 1)
    return len(node.members) == 1 and not outside


def _last(node: Node, key: str) -> Member | None:
    return next((member for member in reversed(node.members) if member.key == key), None)


def _check_object(text: str, node: Node, path: Path) -> None:
    if not isinstance(node.value, dict):
        reason = f"has no object at '{'.'.join(path)}'" if path else "is no JSON object"
        raise at(text, node.start, reason)


def _comments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the comments in a piece that has only space, commas and comments."""
    return [found.span() for found in _COMMENT.finditer(text, start, end)]


def _end_of_comments(text: str, position: int) -> tuple[int, bool]:
    """Return where the comments end that follow on this line, and whether one is a // comment."""
    is_line_comment = False
    for found in _following_comments(text, position):
        position = found.end()
        is_line_comment = found[1].startswith("//")
    return position, is_line_comment


def _following_comments(text: str, position: int) -> Iterator[re.Match[str]]:
    while found := _REST_OF_LINE.match(text, position):
        yield found
        position = found.end()


def _with_root(text: str, value: object) -> str:
    """Return a text that has only space and comments with a value behind them."""
    end_of_line = newline(text)
    comments = _comments(text, 0, len(text))
    written = _dumped(value, "", _DEFAULT_UNIT, end_of_line)
    if not comments:
        start = BOM if text.startswith(BOM) else ""
        return f"{start}{written}{end_of_line}"
    end = comments[-1][1]
    return f"{text[:end]}{end_of_line}{written}{text[end:] or end_of_line}"


def _dumped(value: object, indent: str, unit: str, newline: str) -> str:
    """Return JSON with a member on each line. Arrays are on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = f"{newline}{indent}{unit}"
    members = [
        f"{_quoted(key)}: {_dumped(member, indent + unit, unit, newline)}"
        for key, member in value.items()
    ]
    return "{" + inner + f",{inner}".join(members) + f"{newline}{indent}}}"


def _refuse(word: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python takes for JSON."""
    raise ValueError(word)


def _decoded(word: str) -> object:
    try:
        return json.loads(word)
    except ValueError:  # an integer with more digits than Python converts
        return float(word)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _indent_at(text: str, position: int) -> str:
    """Return the space at the beginning of the line of a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: Node) -> str:
    """Return the indentation of one level: that of the first member."""
    if not root.members:
        return _DEFAULT_UNIT
    start = root.members[0].start
    indent = _indent_at(text, start)
    is_first_on_line = text[text.rfind("\n", 0, start) + 1 : start] == indent
    unit = indent.removeprefix(_indent_at(text, root.start))
    return unit if is_first_on_line and unit else _DEFAULT_UNIT
