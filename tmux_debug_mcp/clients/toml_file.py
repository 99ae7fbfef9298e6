"""TOML: our table is appended, and changed or removed if each of its values has a line. No I/O.

Any other form is left to the person. We know of no library that keeps the comments after a table
that it removes, and that takes time in proportion to the text.
"""

import json
import math
import re
import tomllib
from itertools import takewhile

from .editing import EditError, Entry, Keys

# tomllib takes time in proportion to the square of a key's parts, which stand on one line.
_MAX_DOTS = 256
_MAX_CHARACTERS = 1 << 18


def load(text: str) -> Entry:
    """Return the value of a text."""
    if len(text) > _MAX_CHARACTERS:
        raise EditError(f"has more than {_MAX_CHARACTERS >> 10} KiB")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MAX_DOTS:
            raise EditError(f"has more than {_MAX_DOTS} dots in a line", number, 1)
    try:
        return tomllib.loads(text, parse_float=_float)
    except RecursionError as error:
        raise EditError("is nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        raise EditError(f"is not TOML: {error}") from error
    except ValueError as error:  # Python's limit for digits
        raise EditError("has a number of too many digits") from error


def put(text: str, keys: Keys, value: object) -> str:
    """Return the text with a table at its end, or with another value of a key in our table."""
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    if text and not text.endswith("\n"):
        text += newline
    if isinstance(value, dict):
        if text.strip():
            text += newline
        new = (_header(keys), *(_line(key, member) for key, member in value.items()))
        return text + "".join(f"{line}{newline}" for line in new)
    *table, key = keys
    own_line = _line(key, value) + newline
    lines = _lines(text)
    first = _header_number(lines, tuple(table)) + 1
    table_lines = takewhile(lambda line: not _begins_table(line), lines[first:])
    present = [number for number, line in enumerate(table_lines, first) if key in _value(line)]
    if present:
        lines[present[0]] = own_line
    else:
        lines.insert(first + 1, own_line)  # after the command
    return "".join(lines)


def remove(text: str, keys: Keys, value: Entry) -> str:
    """Return the text without our table and those in it, and without an empty line before each."""
    lines = _lines(text)
    start = _header_number(lines, keys)
    end = start + 1
    own: Entry = {}
    while end < len(lines) and not _begins_table(lines[end]) and _value(lines[end]):
        own |= _value(lines[end])
        end += 1
    has_gap_after = end == len(lines) or not lines[end].strip()
    if start and not lines[start - 1].strip() and has_gap_after:
        start -= 1
    text = "".join(lines[:start] + lines[end:])
    # What is not in the lines of our table has a table of its own, such as `env`.
    for key, member in value.items():
        if key not in own and isinstance(member, dict):
            text = remove(text, (*keys, key), member)
    return text


def _lines(text: str) -> list[str]:
    """Return the lines with their line feeds. Strings may have other characters that end lines."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _header_number(lines: list[str], table: Keys) -> int:
    """Return the number of the line with a table's header; EditError unless there is one."""
    numbers = [number for number, line in enumerate(lines) if line.strip() == _header(table)]
    if len(numbers) != 1:
        raise EditError("has our table in another form than config writes")
    return numbers[0]


def _begins_table(line: str) -> bool:
    return line.lstrip().startswith("[")


def _header(table: Keys) -> str:
    return f"[{'.'.join(table)}]"


def _line(key: str, value: object) -> str:
    """Return the line for a value whose JSON is TOML: a scalar, or a list of these."""
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"


def _value(line: str) -> Entry:
    """Return the key and value in a line; {} if there are none, or what may be a comment."""
    try:
        return {} if "#" in line else tomllib.loads(line)
    except (ValueError, RecursionError):
        return {}


def _float(text: str) -> float:
    """Return the value of a float: for any NaN the same object, so that lists of it are equal."""
    value = float(text)
    return math.nan if math.isnan(value) else value
