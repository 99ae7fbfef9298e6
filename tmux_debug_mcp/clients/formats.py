"""What the languages of clients' files have in common.

A language proposes texts, the best first, and `merging` takes the first that loses nothing.
"""

from collections.abc import Iterator
from typing import Any, Protocol

BOM = "\ufeff"

# Keys of objects, and indices of lists.
Path = tuple[Any, ...]


class FormatError(Exception):
    """Raised when a text can't be read, or can't be changed without losing something.

    The reason is a predicate: "has no value here". Line and column, in characters, count from 1;
    they are 0 if the place is not known.
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


class Format(Protocol):
    """A language of files: one of the modules `jsonc`, `toml_text`, `yaml_text`, `agent_file`.

    Each method raises `FormatError` for a text that is not of the language.
    """

    def load(self, text: str) -> object:
        """Return the value of a text, {} for an empty one."""

    def put(self, text: str, path: Path, value: object) -> Iterator[str]:
        """Yield candidates with a value at a path, and with the objects that lead there."""

    def remove(self, text: str, path: Path) -> Iterator[str]:
        """Yield candidates without the value at a path, and without what is then empty."""


def nested(path: Path, value: object) -> Any:  # noqa: ANN401
    """Return nested objects with a value at a path."""
    for key in reversed(path):
        value = {key: value}
    return value


def newline(text: str) -> str:
    """Return the newline of a text: that of its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
