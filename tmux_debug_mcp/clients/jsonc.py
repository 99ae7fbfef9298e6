"""JSON with comments and trailing commas: puts and removes members by splicing the text.

All other bytes stay as they are: comments, order, indentation, the style of commas and newlines.
What `put` added to an object, `remove` takes out, to the byte. Of members with the same key, the
last one counts, as in JSON.parse. Python's own reader gets the text with blanks for what isn't
JSON, so that offsets stay.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from .formats import BOM, FormatError, Path, nested, newline

_SPACE = " \t\r\n"
_DEFAULT_UNIT = "  "
_STRING = r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"'
_COMMENT = r"//[^\r\n]*|/\*.*?\*/"
_COMMENTS = re.compile(_COMMENT, re.DOTALL)
_COMMENTS_OF_LINE = re.compile(rf"(?:[ \t]*({_COMMENT}))*", re.DOTALL)
# The group in each matches what JSON lacks.
_COMMENT_OR_STRING = re.compile(rf"{_STRING}|({_COMMENT})", re.DOTALL)
_COMMA_OR_STRING = re.compile(rf"{_STRING}|[\[{{]\s*,|(,)(?=\s*[\]}}])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: its key, and the offsets of its parts, in characters.

    `end` is just after the value; `comma` is that of the comma after it, -1 if there is none.
    """

    key: str
    start: int
    value: int
    end: int
    comma: int


@dataclass(frozen=True, slots=True)
class Object:
    """An object: the offsets of its braces, and its members."""

    start: int
    closing: int
    members: list[Member]


def load(text: str) -> object:
    """Return the value of a text, {} for an empty one."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):  # it contains comments, say, or is wrong
        return Document(text).root


def put(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield the text with this value at a path. Every value on the way must be an object."""
    document = Document(text)
    if document.is_empty:
        end_of_line = newline(text)
        written = _dumped(nested(path, value), "", _DEFAULT_UNIT, end_of_line)
        comments = [*_COMMENTS.finditer(text)]
        if comments:
            end = comments[-1].end()
            yield f"{text[:end]}{end_of_line}{written}{text[end:] or end_of_line}"
        else:
            yield f"{BOM if text.startswith(BOM) else ''}{written}{end_of_line}"
        return
    start = document.start
    for depth, key in enumerate(path):
        object_ = document.object_at(start, path[:depth])
        found = [member for member in object_.members if member.key == key]
        if not found:
            yield document.with_member(object_, key, nested(path[depth + 1 :], value))
            return
        start = found[-1].value
    written = _dumped(value, _indent_at(text, start), document.unit, newline(text))
    yield text[:start] + written + text[found[-1].end :]


def remove(text: str, path: Path) -> Iterator[str]:
    """Yield the text without the member at a path, which must exist.

    In the first text, objects on the way go with it if they are then empty, even of comments. In
    the second they stay: without one, an earlier member with its key would count.
    """
    document = Document(text)
    start = document.start
    removals: list[tuple[Object, Member]] = []
    for depth, key in enumerate(path):
        object_ = document.object_at(start, path[:depth])
        member = [member for member in object_.members if member.key == key][-1]
        removals.append((object_, member))
        start = member.value
    level = len(removals) - 1
    while level > 0 and document.is_alone(*removals[level]):
        level -= 1
    yield document.without_member(*removals[level])
    yield document.without_member(*removals[-1])


class Document:
    """A text, perhaps with a byte order mark, and the places of its parts.

    `root` is its value, {} if it has none, and `start` is where that begins.

    Raises:
        FormatError: It is not JSON with comments.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        bare = f" {text[1:]}" if text.startswith(BOM) else text
        self._bare = _blanked(_COMMENT_OR_STRING, bare)
        self._json = _blanked(_COMMA_OR_STRING, self._bare)
        self.start = self._skip(0)
        try:
            self.root: object = {} if self.is_empty else _DECODER.decode(self._json)
        except json.JSONDecodeError as error:
            raise FormatError(f"is not JSON: {error.msg}", error.lineno, error.colno) from None
        except RecursionError:
            raise FormatError("is nested too deeply") from None

    @property
    def is_empty(self) -> bool:
        """Whether it contains nothing but space and comments."""
        return self.start == len(self._text)

    @property
    def unit(self) -> str:
        """The indentation of one level: that of the first member."""
        members = self.object_at(self.start, ()).members
        if not members:
            return _DEFAULT_UNIT
        start = members[0].start
        indent = _indent_at(self._text, start)
        is_first_on_line = self._text[self._text.rfind("\n", 0, start) + 1 : start] == indent
        unit = indent.removeprefix(_indent_at(self._text, self.start))
        return unit if is_first_on_line and unit else _DEFAULT_UNIT

    def object_at(self, start: int, path: Path) -> Object:
        """Return the object that begins here. If there is none, the error names the path to it."""
        if self._bare[start] != "{":
            reason = f"has no object at '{'.'.join(path)}'" if path else "is not a JSON object"
            line = self._text.count("\n", 0, start) + 1
            raise FormatError(reason, line, start - self._text.rfind("\n", 0, start))
        members = []
        position = self._skip(start + 1)
        while self._bare[position] != "}":
            key, colon = _DECODER.raw_decode(self._json, position)
            value = self._skip(self._skip(colon) + 1)
            _, end = _DECODER.raw_decode(self._json, value)
            comma = self._skip(end)
            has_comma = self._bare[comma] == ","
            members.append(Member(key, position, value, end, comma if has_comma else -1))
            position = self._skip(comma + has_comma)
        return Object(start, position, members)

    def with_member(self, object_: Object, key: str, value: object) -> str:
        """Return the text with a new member at the end of an object.

        It goes after the comments on the line of the last member, or after all comments of an
        object without members.
        """
        text = self._text
        end_of_line, unit = newline(text), self.unit
        closing_line = f"{end_of_line}{_indent_at(text, object_.start)}"
        comments = self._comments(object_.start + 1, object_.closing)
        before = after = ""
        is_spacious = True
        if object_.members:
            last = object_.members[-1]
            is_spacious = text[last.value - 1] in _SPACE
            if last.comma < 0:
                text = f"{text[: last.end]},{text[last.end :]}"
            else:
                after = ","
            position = max(last.end, last.comma) + 1
            before = self._separator(object_.members)
            found = _COMMENTS_OF_LINE.match(text, position)
            if found:
                position = found.end()
                if "\n" not in before and (found[1] or "").startswith("//"):
                    before = f"{end_of_line}{_indent_at(text, last.start)}"
        elif comments:
            position = comments[-1].end()
            is_on_own_line = "\n" in text[position : object_.closing]
            before = f"{closing_line}{unit}" if is_on_own_line else " "
        else:
            position = object_.start + 1
            root = self.object_at(self.start, ())
            if object_.start == self.start or "\n" in text[self.start : root.closing]:
                before, after = f"{closing_line}{unit}", closing_line
        if "\n" in before:
            indent = before.rpartition("\n")[2]
            written = f"{_quoted(key)}: {_dumped(value, indent, unit, end_of_line)}"
        else:
            comma, colon = (", ", ": ") if is_spacious else (",", ":")
            line = json.dumps(value, ensure_ascii=False, separators=(comma, colon))
            written = f"{_quoted(key)}{colon}{line}"
        return text[:position] + before + written + after + text[position:]

    def without_member(self, object_: Object, member: Member) -> str:
        """Return the text without a member of an object, and without the space before it."""
        text, start = self._text, object_.start
        index = object_.members.index(member)
        previous = object_.members[index - 1] if index else None
        begin = previous.comma + 1 if previous else start + 1
        before, after = text[: member.start], text[member.end :]
        if member.comma >= 0:
            between = text[member.end : member.comma]  # comments in it stay
            after = (between if between.strip(_SPACE) else "") + text[member.comma + 1 :]
        comments = self._comments(begin, member.start)
        is_after_line_comment = bool(comments) and comments[-1][0].startswith("//")
        if is_after_line_comment and not re.match(r"[ \t]*[\r\n]", after):
            after = after.lstrip(" \t")
        else:
            kept = comments[-1].end() if comments else begin  # a // comment may end with spaces
            before = before[:kept] + before[kept:].rstrip(_SPACE)
        if previous and member.comma < 0:
            before = before[: previous.comma] + before[previous.comma + 1 :]
        if len(object_.members) == 1 and len(before) == start + 1:
            after = after.removeprefix(f"{newline(text)}{_indent_at(text, start)}")
        return before + after

    def is_alone(self, object_: Object, member: Member) -> bool:
        """Return whether an object contains only this member, and no comments around it."""
        before = self._comments(object_.start + 1, member.start)
        behind = self._comments(member.end, object_.closing)
        return len(object_.members) == 1 and not before and not behind

    def _separator(self, members: list[Member]) -> str:
        """Return the space before a new member, like that before the last one."""
        text, last = self._text, members[-1]
        space = text[len(text[: last.start].rstrip(_SPACE)) : last.start]
        if "\n" in space:
            return f"{newline(text)}{space.rpartition(chr(10))[2]}"
        if len(members) > 1:
            return space
        return " " if text[last.value - 1] in _SPACE else ""

    def _comments(self, start: int, end: int) -> list[re.Match[str]]:
        """Return the comments in a piece that contains only space, commas and comments."""
        return [*_COMMENTS.finditer(self._text, start, end)]

    def _skip(self, position: int) -> int:
        """Return the position of the next character that is not space."""
        length = len(self._bare)
        while position < length and self._bare[position] in _SPACE:
            position += 1
        return position


def _dumped(value: object, indent: str, unit: str, end_of_line: str) -> str:
    """Return JSON with a member on each line. Arrays are on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = f"{end_of_line}{indent}{unit}"
    members = [
        f"{_quoted(key)}: {_dumped(member, indent + unit, unit, end_of_line)}"
        for key, member in value.items()
    ]
    return "{" + inner + f",{inner}".join(members) + f"{end_of_line}{indent}}}"


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with blanks for what the group of a pattern matches. Lines stay."""
    return pattern.sub(
        lambda found: re.sub(r"[^\r\n]", " ", found[0]) if found[1] else found[0], text
    )


def _refuse(word: str) -> NoReturn:  # NaN and Infinity, which Python accepts
    raise FormatError(f"is not JSON: {word}")


def _integer(digits: str) -> Any:  # noqa: ANN401
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return float(digits)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=_integer)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _indent_at(text: str, position: int) -> str:
    """Return the space at the beginning of a position's line."""
    line = text[text.rfind("\n", 0, position) + 1 : position].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
