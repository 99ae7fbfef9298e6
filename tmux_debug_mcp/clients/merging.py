"""What becomes of a client's file: our entry put into its text, brought up to date, or removed.

Each result is read again, and must be the old value with our entry and without anything else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tmux_debug_mcp.sockets.servers import CommandError

from .faults import FormatError
from .programs import server_words

Entry = dict[str, object]
# Of an entry of ours, these are set anew. Others are the person's.
_COMMAND_KEYS = ("command", "cmd", "args")


class Format(Protocol):
    """A language of files: one of the modules `jsonc`, `toml_text`, `yaml_text`."""

    def load(self, text: str) -> object:
        """Return the value of a text."""

    def put(self, text: str, path: Any, value: object) -> str:  # noqa: ANN401  keys and indices
        """Return the text with a value at a path."""

    def remove(self, text: str, path: Any, *, keeps_parents: bool = False) -> str:  # noqa: ANN401
        """Return the text without what is at a path."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where our entry is in a file, and what it looks like.

    Attributes:
        format: The language of the file.
        path: The keys that lead to the entry.
        shape: Returns the entry that starts a command.
    """

    format: Format
    path: tuple[str | int, ...]
    shape: Callable[[list[str]], Entry]

    def entry(self, text: str) -> object:
        """Return what is at the place of our entry, None if nothing is.

        Raises:
            FormatError: The text can't be read, or has something else on the way.
        """
        value = self.format.load(text)
        if not isinstance(value, dict):
            raise FormatError("is no object with settings", 1, 1)
        for key in self.path:
            if isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            elif not isinstance(value, dict):
                raise FormatError(f"has no object at '{self._parents()}'")
            elif key not in value:
                return None
            else:
                value = value[key]
                value = {} if value is None and key != self.path[-1] else value
        return "null" if value is None else value

    def _parents(self) -> str:
        return ".".join(str(key) for key in self.path[:-1])


def merged(text: str, slot: Slot, program: list[str], options: list[str] | None) -> str:
    """Return the text with our entry.

    Args:
        text: The text of the file, "" for a file that is not there.
        slot: Where the entry is.
        program: The command that starts the server.
        options: The server's options, None for those that the entry has already.

    Raises:
        FormatError: The text can't be read, or can't be changed without losing something.
        CommandError: An entry of somebody else has the name.
    """
    existing = slot.entry(text)
    if existing is None:
        wanted = slot.shape([*program, *(options or [])])
        return _checked(text, slot.format.put(text, slot.path, wanted), slot, wanted)
    present = options_of(existing)
    wanted = slot.shape([*program, *(present if options is None else options)])
    entry = dict(existing) if isinstance(existing, dict) else {}
    changed = text
    for key in _COMMAND_KEYS:
        if key in wanted and entry.get(key, []) != wanted[key]:
            changed = slot.format.put(changed, (*slot.path, key), wanted[key])
            entry[key] = wanted[key]
    return _checked(text, changed, slot, entry)


def removed(text: str, slot: Slot, earlier: list[str]) -> str | None:
    """Return the text without our entry, None where nothing else was ever in the file.

    Args:
        text: The text of the file.
        slot: Where the entry is.
        earlier: Texts that the file had before, the newest first. If putting our entry into one of
            them gives this text, it is the result.

    Raises:
        FormatError: The text can't be read, or can't be changed without losing something.
        CommandError: An entry of somebody else has the name.
    """
    existing = slot.entry(text)
    if existing is None:
        return text
    options_of(existing)
    for before in earlier:
        if _put_gives(before, slot, existing, text):
            return before
    if _put_gives("", slot, existing, text):
        return None
    had_parent = any(_has_parent(before, slot) for before in earlier)
    # A parent may not be able to stay (dotted keys of TOML) or to go (a key that JSON has twice).
    for keeps_parents in (had_parent, not had_parent):
        changed = _without_ours(text, slot, keeps_parents=keeps_parents)
        if changed is not None:
            return changed
    raise FormatError("can't be changed without losing something")


def options_of(entry: object) -> list[str]:
    """Return the server's options in an entry of ours.

    Raises:
        CommandError: It is somebody else's.
    """
    options = server_options_of(entry)
    if options is None:
        raise CommandError(
            "An entry of this name is there, and does not start tmux-debug-mcp. Choose another "
            "name with --name, or remove the entry."
        )
    return options


def server_options_of(entry: object) -> list[str] | None:
    """Return the server's options in an entry, None if it is not one of ours."""
    words: list[str] = []
    if isinstance(entry, dict):
        for key in _COMMAND_KEYS:
            value = entry.get(key, [])
            words += [str(word) for word in value] if isinstance(value, list) else [str(value)]
    return server_words(words)


def _without_ours(text: str, slot: Slot, *, keeps_parents: bool) -> str | None:
    """Return the text without our entries, None if something else would be lost.

    JSON may have a key several times: ours are removed up to one of somebody else.
    """
    changed = text
    try:
        while server_options_of(slot.entry(changed)) is not None:
            changed = slot.format.remove(changed, slot.path, keeps_parents=keeps_parents)
    except FormatError:
        return None
    return changed if _without_entry(slot, changed) == _without_entry(slot, text) else None


def _checked(before: str, after: str, slot: Slot, entry: Entry) -> str:
    """Return the changed text.

    Raises:
        FormatError: It has lost something, or has not the entry.
    """
    try:
        is_there = slot.entry(after) == entry
        if is_there and _without_entry(slot, after) == _without_entry(slot, before):
            return after
    except FormatError:
        pass  # its place would be one in the changed text
    raise FormatError("can't be changed without losing something")


def _put_gives(before: str, slot: Slot, entry: object, text: str) -> bool:
    try:
        return slot.entry(before) is None and slot.format.put(before, slot.path, entry) == text
    except FormatError:
        return False


def _has_parent(text: str, slot: Slot) -> bool:
    try:
        value: Any = slot.format.load(text)
    except FormatError:
        return False
    for key in slot.path[:-1]:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _without_entry(slot: Slot, text: str) -> object:
    """Return the value of a text without our entry, and without objects that are empty then."""
    value, _ = _pruned(slot.format.load(text), slot.path)
    return value


def _pruned(value: Any, path: tuple[str | int, ...]) -> tuple[Any, bool]:  # noqa: ANN401
    """Return a value without what is at a path, and whether nothing is left of it.

    What is not on the path is not copied: a file may be large.
    """
    if not path:
        return None, True
    key = path[0]
    if isinstance(value, dict) and key in value:
        below, is_empty = _pruned(value[key], path[1:])
        rest = {name: member for name, member in value.items() if name != key or not is_empty}
        if not is_empty:
            rest[key] = below
        return rest, not rest
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        below, _ = _pruned(value[key], path[1:])
        return [*value[:key], below, *value[key + 1 :]], False
    return value, not value
