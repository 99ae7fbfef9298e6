"""The index of a server run's logs: a line of JSON for each pane, written when it was made. No I/O.

Anybody may have written into a log directory, so every value that is read is checked.
"""

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

import orjson

# A pane takes some 300 bytes: of a long command only the head is recorded.
_MAX_COMMAND_CHARACTERS = 1000
_MAX_ENTRIES = 10_000
_MAX_NAME_CHARACTERS = 1000
# No terminal had more columns or rows, and no pane was made after the year 5138.
_MAX_SIZE = 10_000
_MAX_TIME_S = 1e11

_ID = re.compile(r"debug-\d{1,9}")
_WINDOW = re.compile(r"@(\d{1,9})")
# A nonce, or the SHA-256 of one.
_MARK = re.compile(r"[0-9a-f]{16}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A pane, as the index has it.

    Attributes:
        id: Our id of the pane, `debug-N`; the log's file is named after it.
        window: Our id of the window that it was made in, `@N`.
        name: Its name.
        command: Its command, at most 1,000 characters.
        mark: The digest of its end mark's nonce.
        columns: The terminal's columns when it was made.
        rows: The terminal's rows.
        started_at: When it was made, in seconds since the epoch.
    """

    id: str
    window: str
    name: str
    command: str
    mark: str
    columns: int
    rows: int
    started_at: float

    @property
    def window_number(self) -> int:
        """The number in the window's id."""
        return int(self.window.removeprefix("@"))

    def has_id(self, target: str) -> bool:
        """Tell whether a target is the id of the pane or of its window."""
        return target in (self.id, self.window)

    def line(self) -> bytes:
        """Return the line of the index, with its line feed."""
        facts = asdict(self)
        facts["command"] = self.command[:_MAX_COMMAND_CHARACTERS]
        return orjson.dumps(facts) + b"\n"


def parse(index: bytes) -> list[Entry]:
    """Return the entries of an index, oldest first, at most 10,000; what is no entry is ignored."""
    entries = []
    for line in index.split(b"\n", _MAX_ENTRIES)[:_MAX_ENTRIES]:
        entry = _entry(line)
        if entry is not None:
            entries.append(entry)
    return entries


def _entry(line: bytes) -> Entry | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:  # of a server that was killed within a write
        return None
    if not isinstance(value, dict):
        return None
    names = [field.name for field in fields(Entry)]
    if any(name not in value for name in names):
        return None
    facts = {name: value[name] for name in names}
    return Entry(**facts) if _is_valid(facts) else None


def _is_valid(facts: dict[str, Any]) -> bool:
    texts = [facts[name] for name in ("id", "window", "name", "command", "mark")]
    if not all(isinstance(text, str) for text in texts):
        return False
    sizes = [facts["columns"], facts["rows"]]
    if not all(type(size) is int and 0 < size <= _MAX_SIZE for size in sizes):
        return False
    started_at, name = facts["started_at"], facts["name"]
    if not isinstance(started_at, float) or not 0 <= started_at < _MAX_TIME_S:
        return False
    if not name.isprintable() or len(name) > _MAX_NAME_CHARACTERS:
        return False
    formats = ((_ID, "id"), (_WINDOW, "window"), (_MARK, "mark"))
    return all(pattern.fullmatch(facts[field]) for pattern, field in formats)
