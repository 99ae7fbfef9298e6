"""Text that programs and files chose, made safe to print. No I/O.

A terminal would obey its escape sequences, and characters that reorder or hide text would show
something other than what is there.
"""

import json
import re
import unicodedata

# What may not be printable: all but the printable characters of ASCII.
_SPECIAL = re.compile("[^ -~]")
# Characters that names of programs do not have. Some have blanks, such as `tmux: server`.
_NOT_IN_NAME = re.compile(r"[^\w .:+@%~/#=-]")


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with escapes such as `\x1b` for what is not printable, line feeds included.

    Not printable are control characters, characters that only direct others (such as overrides of
    the direction of writing), separators of lines, halves of surrogate pairs, private and
    unassigned characters. Blanks of every width are left, and the control characters to keep.
    """
    if text.isprintable():
        return text

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        if character.isprintable() or character in keep or unicodedata.category(character) == "Zs":
            return character
        return character.encode("unicode_escape").decode()

    return _SPECIAL.sub(shown, text)


def visible_json(text: str) -> str:
    r"""Return JSON that means the same, with escapes such as `\u009b` for what is not printable.

    The JSON is in one line: control characters below U+0020 are blanks between tokens.
    """

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        if character < " ":
            return " "
        if character == "\x7f":
            return r"\u007f"  # which `dumps` leaves as it is
        return character if character.isprintable() else json.dumps(character)[1:-1]

    return _SPECIAL.sub(shown, text)


def plain_name(name: str) -> str:
    """Return a program's name with `?` for each character that names don't have.

    A program can choose any name, and in a status line it must not look like other facts.
    """
    return _NOT_IN_NAME.sub("?", name)
