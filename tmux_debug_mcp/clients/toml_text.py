"""TOML: appends a table, changes its keys and removes it, and leaves all else as it is.

A table is appended and removed as lines, because a library that removes one takes the comments
behind it, too. Where lines can't do it, as in `mcp_servers = { … }`, tomlkit does.
"""

import copy
import re
import tomllib
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .faults import FormatError
from .jsonc import MAX_DEPTH, Path

_BOM = "\ufeff"
_HEADER = re.compile(r"[ \t]*\[")
_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def load(text: str) -> object:
    """Return the value of a text.

    Raises:
        FormatError: It is no TOML.
    """
    try:
        values = tomllib.loads(_plain(text))
    except tomllib.TOMLDecodeError as error:
        raise _fault(str(error), text) from error
    except ValueError as error:
        raise FormatError("has an integer that is too long") from error
    except RecursionError as error:
        raise _too_deep() from error
    _check_depth(values)
    return values


def put(text: str, path: Path, value: object) -> str:
    """Return the text with this value at a path: a table at its end, or the value of a key.

    Raises:
        FormatError: It is no TOML, or what is on the way is no table.
    """
    wanted = _with(load(text), path, value)
    if isinstance(value, dict):
        appended = _appended(text, path, value)
        if _loads_as(appended, wanted):
            return appended
    return _by_library(text, wanted, lambda table: table.__setitem__(path[-1], value), path)


def remove(text: str, path: Path, *, keeps_parents: bool = False) -> str:
    """Return the text without the table or the key at a path.

    Args:
        text: The text.
        path: The path. The text stays as it is if nothing is there.
        keeps_parents: Keep a table that becomes empty, if it has a header of its own.

    Raises:
        FormatError: As in `put`.
    """
    values = load(text)
    if _lookup(values, path) is None:
        return text
    wanted = _without(values, path, keeps_parents=keeps_parents)
    removed = _without_lines(text, path)
    if _loads_as(removed, wanted):
        return removed
    is_alone = len(path) > 1 and _lookup(wanted, path[:-1]) is None
    target = path[:-1] if is_alone else path
    return _by_library(text, wanted, lambda table: table.__delitem__(target[-1]), target)


def _appended(text: str, path: Path, value: dict[str, object]) -> str:
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    lines = [f"[{'.'.join(path)}]"]
    lines += [f"{key} = {tomlkit.item(member).as_string()}" for key, member in value.items()]
    start = text
    if start and not start.endswith("\n"):
        start += newline
    if _plain(start).strip():
        start += newline
    return start + "".join(line + newline for line in lines)


def _without_lines(text: str, path: Path) -> str:
    """Return the text without the lines of a table, and of the tables in it."""
    name = r"[ \t]*\.[ \t]*".join(
        f"(?:{re.escape(key)}|[\"']{re.escape(key)}[\"'])" for key in path
    )
    own = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*[\].]")
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    index = 0
    while index < len(lines):
        if not own.match(lines[index].removeprefix(_BOM)):
            kept.append(lines[index])
            index += 1
            continue
        end = index + 1
        while end < len(lines) and not _HEADER.match(lines[end]):
            end += 1
        body = lines[index:end]
        while len(body) > 1 and _is_of_what_follows(body[-1]):
            body.pop()
        rest = lines[index + len(body) : end]
        if kept and not kept[-1].strip() and (end == len(lines) or not rest or not rest[0].strip()):
            kept.pop()  # the empty line before the table
        kept += rest
        index = end
    return "".join(kept)


def _is_of_what_follows(line: str) -> bool:
    """Tell whether a line at the end of a table may belong to what is behind the table."""
    return not line.strip() or line.lstrip().startswith("#")


def _by_library(
    text: str,
    wanted: object,
    change: Callable[[MutableMapping[str, Any]], None],
    path: Path,
) -> str:
    """Return the text as tomlkit changes it.

    Raises:
        FormatError: The result is not what is wanted.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    try:
        document = tomlkit.parse(text.removeprefix(_BOM))
        table: MutableMapping[str, Any] = document
        for key in path[:-1]:
            table = table.setdefault(key, tomlkit.table())
        change(table)
        changed = bom + tomlkit.dumps(document)
    except (TOMLKitError, TypeError, KeyError, AttributeError) as error:
        raise FormatError("can't be changed without losing something") from error
    if not _loads_as(changed, wanted):
        raise FormatError("can't be changed without losing something")
    return changed


def _with(values: object, path: Path, value: object) -> object:
    values = copy.deepcopy(values)
    table = values
    for depth, key in enumerate(path[:-1]):
        table = cast("dict[str, object]", table).setdefault(key, {})
        if not isinstance(table, dict):
            raise FormatError(f"has no table at '{'.'.join(path[: depth + 1])}'")
    cast("dict[str, object]", table)[path[-1]] = value
    return values


def _without(values: object, path: Path, *, keeps_parents: bool) -> object:
    values = copy.deepcopy(values)
    parent = cast("dict[str, object]", _lookup(values, path[:-1]))
    del parent[path[-1]]
    if not parent and len(path) > 1 and not keeps_parents:
        del cast("dict[str, object]", _lookup(values, path[:-2]))[path[-2]]
    return values


def _lookup(values: object, path: Path) -> object:
    """Return what is at a path, None if nothing is."""
    for key in path:
        if not isinstance(values, dict):
            raise FormatError(f"has no table at '{'.'.join(path[:-1])}'")
        values = values.get(key)
        if values is None:
            return None
    return values


def _check_depth(values: object) -> None:
    """Check that values can be copied and compared: dotted keys nest without recursion.

    Raises:
        FormatError: They are nested too deep.
    """
    level = [values]
    for _ in range(MAX_DEPTH):
        level = [member for value in level for member in _members(value)]
        if not level:
            return
    raise _too_deep()


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> FormatError:
    return FormatError(f"is nested more than {MAX_DEPTH} deep")


def _loads_as(text: str, wanted: object) -> bool:
    try:
        return load(text) == wanted
    except FormatError:
        return False


def _plain(text: str) -> str:
    return text.removeprefix(_BOM)


def _fault(message: str, text: str) -> FormatError:
    """Return the error for what tomllib says, which has the place at its end."""
    found = _PLACE.fullmatch(message)
    if not found:
        return FormatError(f"is no TOML: {message}")
    line, column = int(found[2] or text.count("\n") + 1), int(found[3] or 1)
    return FormatError(f"is no TOML: {found[1]}", line, column)
