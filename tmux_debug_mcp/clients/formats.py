"""What the languages of clients' files have in common.

A language proposes texts, the best first, and `merging` takes the first that has lost nothing.
"""

from collections.abc import Iterator
from typing import Any, Protocol

BOM = "\ufeff"

# Keys of objects, and indices of lists.
Path = tuple[Any, ...]


class FormatError(Exception):
    """Raised when a text can't be read, or can't be changed without losing something.

    The reason is a predicate: "has no value here". Line and column, in characters, count from 1;
    they are 0 where the place is not known.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """Return the reason, with the place behind it."""
        place = f" (line {self.line}, column {self.column})" if self.line else ""
        return f"{self.reason}{place}"


class Format(Protocol):
    """A language of files: one of the modules `jsonc`, `toml_text`, `yaml_text`, `agent_file`.

    Each method raises `FormatError` for a text that is not of the language.
    """

    def load(self, text: str) -> object:
        """Return the value of a text, {} of an empty one."""

    def put(self, text: str, path: Path, value: object) -> Iterator[str]:
        """Yield texts that may have a value at a path. Objects on the way are made."""

    def remove(self, text: str, path: Path) -> Iterator[str]:
        """Yield texts that may be without what is at a path, and without what is empty then."""


def nested(path: Path, value: object) -> Any:  # noqa: ANN401
    """Return objects in each other that have a value at a path."""
    for key in reversed(path):
        value = {key: value}
    return value


def newline(text: str) -> str:
    """Return the newline of a text: that of its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
