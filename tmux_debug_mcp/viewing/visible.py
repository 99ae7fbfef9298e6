"""Text from files, made safe to print. No I/O.

What a file holds may have been printed by any program. A terminal would obey its escape sequences,
and characters that reorder or hide text would show something other than what is there.
"""

import json
import re
import unicodedata

_ASCII_NOT_PRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


def visible(text: str) -> str:
    r"""Return a text in one line, with escapes such as `\x1b` for what is not printable.

    Not printable are control characters, characters that only direct others (such as overrides of
    the direction of writing), separators of lines, halves of surrogate pairs, private and
    unassigned characters. Blanks of every width are left.
    """
    if text.isprintable():
        return text
    if text.isascii():
        return _ASCII_NOT_PRINTABLE.sub(lambda found: _escaped(found[0]), text)
    return "".join(
        character if character.isprintable() else _escaped(character) for character in text
    )


def visible_json(text: str) -> str:
    r"""Return JSON that means the same, with escapes such as `\u009b` for what is not printable.

    Args:
        text: Valid JSON in one line. Its control characters below U+0020 are blanks between tokens.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escaped_in_json(character) for character in text
    )


def _escaped_in_json(character: str) -> str:
    if character < " ":
        return " "
    if character == "\x7f":
        return r"\u007f"  # which `dumps` leaves as it is
    return json.dumps(character)[1:-1]


def _escaped(character: str) -> str:
    if unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()
