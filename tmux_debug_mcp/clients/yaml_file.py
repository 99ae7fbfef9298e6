"""YAML, which we show and don't read. No I/O."""

import json

from .editing import Entry, Keys, UneditedError

_UNIT = "  "


def load(_: str) -> Entry:
    """Raise UneditedError: no text is read."""
    raise UneditedError("is YAML, which config does not edit")


def put(_: str, keys: Keys, value: object) -> str:
    """Return a file that contains only a value at keys."""
    for key in reversed(keys):
        value = {key: value}
    return "".join(f"{line}\n" for line in lines(value))


def remove(_: str, __: Keys, ___: Entry) -> str:
    """Raise UneditedError."""
    raise UneditedError("is YAML, which config does not edit")


def lines(value: object) -> list[str]:
    """Return the lines of a mapping in block style, its scalars and lists as JSON."""
    if not isinstance(value, dict):
        return []
    found = []
    for key, member in value.items():
        below = lines(member)
        found.append(f"{key}:" if below else f"{key}: {scalar(member)}")
        found += [f"{_UNIT}{line}" for line in below]
    return found


def scalar(value: object) -> str:
    """Return a value as JSON, which is YAML except for some characters.

    Source: YAML 1.2.2, 5.7, escaped characters.
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(
        character if character.isprintable() else f"\\U{ord(character):08x}" for character in text
    )
