"""Our entry in the text of a client's file: put there, brought up to date, or removed.

Only what is certainly ours is changed, and each result is read again: all else has to be as before.
Where that can't be had, the text is left to the person. No I/O.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .programs import split, words_of

Entry = dict[str, Any]
Keys = tuple[str, ...]
# We set these keys of our entry. Other keys are the person's.
_COMMAND_KEYS = ("command", "cmd", "args")


class EditError(Exception):
    """Raised when a text can't be read, or can't be changed with certainty.

    The reason is a predicate: "is not JSON". Line and column, in characters, count from 1; they are
    0 if the place is not known.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """Return the reason, followed by the place."""
        place = f" (line {self.line}, column {self.column})" if self.line else ""
        return f"{self.reason}{place}"


class UneditedError(EditError):
    """Raised for what a client may read well and we don't: YAML, and JSON with comments."""


class Language(Protocol):
    """A language of files: a module such as `json_file`.

    `load` takes time in proportion to the text. `put` and `remove` take a text that `load` has
    read, and may return a text with an error. `remove` also removes objects that are then empty.
    """

    def load(self, text: str) -> Entry:
        """Return the value of a text, {} for an empty text."""

    def put(self, text: str, keys: Keys, value: Any) -> str:  # noqa: ANN401
        """Return the text with a value at keys."""

    def remove(self, text: str, keys: Keys, value: Entry) -> str:
        """Return the text without the value at keys."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where our entry is in a file: its language, the keys that lead to the entry, and its look.

    `shape` returns the entry that starts a command. A new entry has the `defaults` as options,
    unless the caller gives options.
    """

    language: Language
    keys: Keys
    shape: Callable[[list[str]], Entry]
    defaults: Sequence[str] = ()

    def only(self, program: list[str], options: list[str] | None) -> str:
        """Return a file that contains only a new entry."""
        return self.language.put("", self.keys, self._new(program, options))

    def _new(self, program: list[str], options: list[str] | None) -> Entry:
        return self.shape([*program, *(self.defaults if options is None else options)])

    def entry(self, text: str) -> Any:  # noqa: ANN401  a file may contain anything
        """Return what is in the place of our entry, None if nothing is."""
        return _at(self.language.load(text), self.keys)

    def merged(self, text: str, program: list[str], options: list[str] | None) -> str:
        """Return the text with our entry; the text of a missing file is "".

        Without options (None), the entry keeps its own.
        """
        existing = self.entry(text)
        if existing is None:
            return self._changed(text, self.keys, self._new(program, options))
        present = options_of(existing)
        wanted = self.shape([*program, *(present if options is None else options)])
        for key in _COMMAND_KEYS:
            if key in wanted and existing.get(key, []) != wanted[key]:
                text = self._changed(text, (*self.keys, key), wanted[key])
        return text

    def removed(self, text: str) -> str:
        """Return the text without our entry; "" if it contains nothing else."""
        existing = self.entry(text)
        if existing is None:
            return text
        options_of(existing)
        is_alone = text == self.language.put("", self.keys, existing)
        return "" if is_alone else self._changed(text, self.keys)

    def _changed(self, text: str, keys: Keys, value: object = None) -> str:
        """Return the text with a value at keys, or with None without what is there."""
        language = self.language
        before = language.load(text)
        try:
            if value is None:
                after = language.remove(text, keys, _at(before, keys))
            else:
                after = language.put(text, keys, value)
            if self._is_only_change(before, after, keys, value):
                return after
        except RecursionError as error:  # it could just be loaded
            raise EditError("is nested too deeply") from error
        raise EditError("has no place where config can change this entry alone")

    def _is_only_change(self, before: Entry, text: str, keys: Keys, value: object) -> bool:
        try:
            after = self.language.load(text)
        except EditError:
            return False
        return bool(_at(after, keys) == value) and _without(after, keys) == _without(before, keys)


def options_of(entry: object) -> list[str]:
    """Return the server's options in an entry of ours."""
    parts = split(words_of(entry))
    if parts is None:
        raise EditError(
            "has an entry of this name that may start something else, or in another way than "
            "config writes. Choose another name with --name, or replace the entry"
        )
    return parts[1]


def _at(value: Any, keys: Keys) -> Any:  # noqa: ANN401  a file may contain anything
    """Return what is at keys, None if nothing is."""
    for number, key in enumerate(keys):
        if not isinstance(value, dict):
            raise EditError(f"has no object at '{'.'.join(keys[:number])}'")
        if key not in value:
            return None
        value = value[key]
        if value is None:
            raise EditError(f"has null at '{'.'.join(keys[: number + 1])}'")
    return value


def _without(value: Entry, keys: Keys) -> Entry:
    """Return a value without what is at keys, and without objects that are then empty."""
    rest = {key: member for key, member in value.items() if key != keys[0]}
    member = value.get(keys[0])
    if len(keys) > 1 and isinstance(member, dict):
        below = _without(member, keys[1:])
        rest |= {keys[0]: below} if below else {}
    return rest
