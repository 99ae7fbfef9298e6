"""Strict JSON: changes one value of a text, and nothing else. No I/O.

The standard library's decoder says where a value ends. What it refuses is not changed.
"""

import json
import re
from dataclasses import dataclass

from .editing import EditError, Entry, Keys, UneditedError

_BLANKS = re.compile(r"[ \t\r\n]*")
_INDENTATION = "  "
# Python's messages end so before a place.
_AT = re.compile("( starting)? at$")


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a member of an object begins, where its value begins, and where both end."""

    start: int
    value: int
    end: int


def load(text: str) -> Entry:
    """Return the value of a text, {} for an empty text."""
    if not text.strip():
        return {}
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        if text.startswith(("//", "/*"), error.pos):
            raise UneditedError(
                "has comments, which config does not edit", error.lineno, error.colno
            ) from error
        reason = f"is not JSON: {_AT.sub('', error.msg)}"
        raise EditError(reason, error.lineno, error.colno) from error
    except RecursionError as error:
        raise EditError("is nested too deeply") from error
    except ValueError as error:  # Python's limit for digits
        raise EditError("has a number of too many digits") from error
    if not isinstance(value, dict):
        raise EditError("is not a JSON object", 1, 1)
    return value


def put(text: str, keys: Keys, value: object) -> str:
    """Return the text with a value at keys. A new member is the last of its object."""
    if not text.strip():
        return f"{_shown(_nested(keys, value), _INDENTATION, '')}\n"
    at = _skipped(text, 0)
    for number, key in enumerate(keys):
        members = _members(text, at)
        if key not in members:
            return _inserted(text, at, members, key, _nested(keys[number + 1 :], value))
        at, end = members[key].value, members[key].end
    return text[:at] + _like(text, value, _indentation(text, at)) + text[end:]


def remove(text: str, keys: Keys, _: Entry) -> str:
    """Return the text without the value at keys, and without objects that have nothing else."""
    at = _skipped(text, 0)
    chain = []
    for key in keys:
        chain.append((at, _members(text, at), key))
        at = chain[-1][1][key].value
    while len(chain) > 1 and len(chain[-1][1]) == 1:
        chain.pop()
    at, members, key = chain[-1]
    names = list(members)
    number = names.index(key)
    if len(names) == 1:
        return text[: at + 1] + text[_skipped(text, members[key].end) :]
    if number:
        return text[: members[names[number - 1]].end] + text[members[key].end :]
    return text[: members[key].start] + text[members[names[1]].start :]


def _inserted(text: str, at: int, members: dict[str, _Member], key: str, value: object) -> str:
    """Return the text with a new member in the object at a place."""
    if not members:
        end = text.index("}", at) + 1
        return text[:at] + _like(text, {key: value}, _indentation(text, at)) + text[end:]
    last = list(members.values())[-1]
    line = text[text.rfind("\n", 0, last.start) + 1 : last.start]
    if line.strip() or "\n" not in text[at : last.start]:
        member = f", {json.dumps(key)}: {_on_one_line(value)}"
    else:
        member = f",{_newline(text)}{line}{json.dumps(key)}: {_like(text, value, line)}"
    return text[: last.end] + member + text[last.end :]


def _members(text: str, at: int) -> dict[str, _Member]:
    members: dict[str, _Member] = {}
    at = _skipped(text, at + 1)
    while text[at] != "}":
        start = at
        key, at = _DECODER.raw_decode(text, at)
        if key in members:
            raise EditError(f"has {json.dumps(key)} twice in one object")
        value = _skipped(text, _skipped(text, at) + 1)
        _, end = _DECODER.raw_decode(text, value)
        members[key] = _Member(start, value, end)
        at = _skipped(text, end)
        if text[at] == ",":
            at = _skipped(text, at + 1)
    return members


def _like(text: str, value: object, indentation: str) -> str:
    """Return a value as the text writes values: on one line, or indented, from a line on."""
    if "\n" not in text.strip() and text.strip("{} \t\r\n"):
        return _on_one_line(value)
    first = _skipped(text, _skipped(text, 0) + 1)
    return _shown(value, _indentation(text, first) or _INDENTATION, indentation, _newline(text))


def _shown(value: object, unit: str, indentation: str, newline: str = "\n") -> str:
    """Return a value: objects on several lines, all else on one."""
    if not isinstance(value, dict) or not value:
        return _on_one_line(value)
    inner = indentation + unit
    members = (
        f"{inner}{json.dumps(key)}: {_shown(member, unit, inner, newline)}"
        for key, member in value.items()
    )
    return f"{{{newline}{f',{newline}'.join(members)}{newline}{indentation}}}"


def _on_one_line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _nested(keys: Keys, value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _indentation(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _newline(text: str) -> str:
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"


def _skipped(text: str, at: int) -> int:
    """Return the place of what follows blanks."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _refuse(constant: str) -> None:
    raise EditError(f"is not JSON: {constant} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
