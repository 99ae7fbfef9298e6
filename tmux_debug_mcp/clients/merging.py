"""Puts our entry into the text of a client's file, brings it up to date, or removes it.

Each result is read again, and may differ from the old value only in our entry. A text that can't be
read, or can't be changed without losing something, is a FormatError; somebody else's entry with our
name is a CommandError.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tmux_debug_mcp.sockets.servers import CommandError

from .formats import Format, FormatError, Path
from .programs import split, words_of

Entry = dict[str, object]
# We set these keys of our entry anew. Other keys are the person's.
_COMMAND_KEYS = ("command", "cmd", "args")


@dataclass(frozen=True, slots=True)
class Slot:
    """Where our entry is in a file: its language, the keys that lead to the entry, and its look.

    `shape` returns the entry that starts a command.
    """

    format: Format
    path: Path
    shape: Callable[[list[str]], Entry]

    def only(self, words: list[str]) -> str:
        """Return a file that contains only the entry that starts a command."""
        return next(self.format.put("", self.path, self.shape(words)))

    def entry(self, text: str) -> object:
        """Return what is in the place of our entry; None if nothing is, "null" for a null."""
        value = self.format.load(text)
        if not isinstance(value, dict):
            raise FormatError("is not a settings object", 1, 1)
        for key in self.path:
            if isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            elif not isinstance(value, dict):
                parents = ".".join(map(str, self.path[:-1]))
                raise FormatError(f"has no object at '{parents}'")
            elif key not in value:
                return None
            else:
                value = value[key]
                value = {} if value is None and key != self.path[-1] else value
        return "null" if value is None else value


def merged(text: str, slot: Slot, program: list[str], options: list[str] | None) -> str:
    """Return the text with our entry; the text of a missing file is "".

    Without options (None), the entry keeps its own.
    """
    existing = slot.entry(text)
    if existing is None:
        wanted = slot.shape([*program, *(options or [])])
        return _changed(text, slot.format.put(text, slot.path, wanted), slot, wanted)
    present = options_of(existing)
    wanted = slot.shape([*program, *(present if options is None else options)])
    entry = dict(existing) if isinstance(existing, dict) else {}
    for key in _COMMAND_KEYS:
        if key in wanted and entry.get(key, []) != wanted[key]:
            entry[key] = wanted[key]
            put = slot.format.put(text, (*slot.path, key), wanted[key])
            text = _changed(text, put, slot, entry)
    return text


def removed(text: str, slot: Slot) -> str | None:
    """Return the text without our entry, None for a text that contains nothing else.

    Objects that contain only our entry go with it. JSON may repeat a key: ours are removed, from
    the last one backwards, up to somebody else's.
    """
    existing = slot.entry(text)
    if existing is None:
        return text
    options_of(existing)
    if text in slot.format.put("", slot.path, existing):
        return None
    while server_options_of(slot.entry(text)) is not None:
        text = _changed(text, slot.format.remove(text, slot.path), slot)
    return text


def options_of(entry: object) -> list[str]:
    """Return the server's options in an entry of ours."""
    options = server_options_of(entry)
    if options is None:
        raise CommandError(
            "An entry with this name exists, but does not start tmux-debug-mcp. Choose another "
            "name with --name, or remove the entry."
        )
    return options


def server_options_of(entry: object) -> list[str] | None:
    """Return the server's options in an entry, None if it is not one of ours."""
    parts = split(words_of(entry))
    return parts[1] if parts else None


def _changed(before: str, texts: Iterable[str], slot: Slot, entry: Entry | None = None) -> str:
    """Return the first changed text that keeps everything else, and has this entry if given."""
    with contextlib.suppress(RecursionError):  # if values are nested too deep to compare
        rest = _without(slot.format.load(before), slot.path)
        for after in texts:
            if after == before:
                continue
            with contextlib.suppress(FormatError):
                has_entry = entry is None or slot.entry(after) == entry
                if has_entry and _without(slot.format.load(after), slot.path) == rest:
                    return after
    raise FormatError("can't be changed without losing something")


def _without(value: Any, path: Path) -> Any:  # noqa: ANN401
    """Return a value without what is at a path and objects then empty; None if nothing is left.

    It copies only what is on the path: a file may be large.
    """
    if not path or not value:
        return None
    key = path[0]
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return [*value[:key], _without(value[key], path[1:]), *value[key + 1 :]]
    if not isinstance(value, dict) or key not in value:
        return value
    rest = {name: member for name, member in value.items() if name != key}
    below = _without(value[key], path[1:])
    if below is not None:
        rest[key] = below
    return rest or None
