"""TOML: appends a table of ours, and changes and removes one whose values have a line each. No I/O.

Any other form is left to the person. We know of no library that keeps the comments behind a table
that it removes, and that takes time in proportion to the text.
"""

import json
import math
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
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    if isinstance(value, dict):
        start = text if not text or text.endswith("\n") else text + end
        start += end if start.strip() else ""
        values = (_line(key, member) for key, member in value.items())
        return start + "".join(f"{line}{end}" for line in (_header(keys), *values))
    *table, key = keys
    lines = text.splitlines(keepends=True)
    first = _place(lines, tuple(table)) + 1
    own = takewhile(lambda line: not line.lstrip().startswith("["), lines[first:])
    places = [place for place, line in enumerate(own, first) if key in _value(line)]
    # A new key follows the first one, the command.
    place, behind = (places[0], places[0] + 1) if places else (first + 1, first + 1)
    lines[place:behind] = [_line(key, value) + end]
    return "".join(lines)


def remove(text: str, keys: Keys, value: Entry) -> str:
    """Return the text without our table and those in it, and without empty lines before them."""
    lines = text.splitlines(keepends=True)
    start = _place(lines, keys)
    own: Entry = {}
    end = start + 1
    while end < len(lines) and not lines[end].lstrip().startswith("[") and _value(lines[end]):
        own |= _value(lines[end])
        end += 1
    is_apart = end == len(lines) or not lines[end].strip()
    if start and not lines[start - 1].strip() and is_apart:
        start -= 1
    text = "".join(lines[:start] + lines[end:])
    for key, member in value.items():
        if key not in own and isinstance(member, dict):
            text = remove(text, (*keys, key), member)
    return text


def _place(lines: list[str], table: Keys) -> int:
    """Return the number of the line with a table's header."""
    places = [place for place, line in enumerate(lines) if line.strip() == _header(table)]
    if len(places) != 1:
        raise EditError("has our table in another form than config writes")
    return places[0]


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
    """Return the value of a float. No two NaNs are equal, but lists of the same one are."""
    value = float(text)
    return math.nan if math.isnan(value) else value
