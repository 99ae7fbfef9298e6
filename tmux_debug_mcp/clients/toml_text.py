"""TOML: appends a table, changes its keys and removes it, and leaves the rest as it is.

We append and remove a table as lines, because a library that removes one also takes the comments
after it. Where lines won't do, as in `mcp_servers = { … }`, tomlkit does it.
"""

import re
import tomllib
from collections.abc import Iterator, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .formats import BOM, FormatError, Path, newline

_BEFORE_HEADER = re.compile(r"^(?=[ \t]*\[)", re.MULTILINE)
_BLANK_OR_COMMENT = re.compile(r"\s*(?:#|\Z)")
_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def load(text: str) -> object:
    """Return the value of a text."""
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.fullmatch(str(error))
        if not found:
            raise FormatError(f"is not TOML: {error}") from error
        line, column = int(found[2] or text.count("\n") + 1), int(found[3] or 1)
        raise FormatError(f"is not TOML: {found[1]}", line, column) from error
    except ValueError as error:
        raise FormatError("has an integer that is too long") from error
    except RecursionError as error:
        raise FormatError("is nested too deeply") from error


def put(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield texts with this value at a path: a table at their end, or the value of a key."""
    if isinstance(value, dict):
        end = newline(text)
        start = text if not text or text.endswith("\n") else text + end
        if start.removeprefix(BOM).strip():
            start += end
        lines = [f"[{'.'.join(path)}]"]
        lines += [f"{key} = {tomlkit.item(member).as_string()}" for key, member in value.items()]
        yield start + "".join(f"{line}{end}" for line in lines)
    yield from _by_library(text, path, value)


def remove(text: str, path: Path) -> Iterator[str]:
    """Yield texts without the table or the key at a path.

    Tables on the way go with it if they are then empty; the first text keeps those with a header.
    """
    yield _without_lines(text, path)
    yield from _by_library(text, path)


def _without_lines(text: str, path: Path) -> str:
    """Return the text without the lines of a table, and of the tables in it."""
    name = r"[ \t]*\.[ \t]*".join(
        f"(?:{re.escape(key)}|[\"']{re.escape(key)}[\"'])" for key in path
    )
    own = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*[\].]")
    kept: list[str] = []
    tables = _BEFORE_HEADER.split(text)
    for number, table in enumerate(tables, 1):
        lines = table.splitlines(keepends=True)
        if own.match(table.removeprefix(BOM)):
            end = len(lines)
            # Comments at the end of a table may belong to what follows it.
            while end > 1 and _BLANK_OR_COMMENT.match(lines[end - 1]):
                end -= 1
            lines = lines[end:]
            is_apart = number == len(tables) or not lines or not lines[0].strip()
            if is_apart and kept and not kept[-1].strip():
                kept.pop()  # the empty line before the table
        kept += lines
    return "".join(kept)


def _by_library(text: str, path: Path, value: object = None) -> Iterator[str]:
    """Yield the text as tomlkit changes it: with a value at a path, or without what is there."""
    bom = BOM if text.startswith(BOM) else ""
    try:
        document = tomlkit.parse(text.removeprefix(BOM))
        tables: list[MutableMapping[str, Any]] = [document]
        for key in path[:-1]:
            tables.append(tables[-1].setdefault(key, {}))
        if value is not None:
            tables[-1][path[-1]] = value
        else:
            for table, key in zip(reversed(tables), reversed(path), strict=True):
                del table[key]
                if table:
                    break
        changed = tomlkit.dumps(document)
    except (TOMLKitError, TypeError, KeyError, AttributeError):
        return  # tomlkit can't do it either
    yield bom + changed
