"""Text that programs and files chose, made safe to print. No I/O.

A terminal would obey its escape sequences, and characters that reorder or hide text would show
something other than what is there.
"""

import json
import re
import unicodedata

# Characters that might not be printable: all but printable ASCII.
_SPECIAL = re.compile("[^ -~]")
# Control characters that orjson doesn't escape.
_UNESCAPED = re.compile("[\177-\237]")
# Characters that names of programs don't contain. Some contain blanks, such as `tmux: server`.
_NOT_IN_NAME = re.compile(r"[^\w .:+@%~/#=-]")


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with escapes such as `\x1b` for what is not printable, line feeds included.

    Control characters, characters that only direct others (such as overrides of the direction of
    writing), line separators, halves of surrogate pairs, private and unassigned characters are not
    printable. Blanks of every width stay, and so do the characters in `keep`.
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

    The result is one line: control characters below U+0020, between tokens, become blanks.
    """

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        if character < " ":
            return " "
        if character == "\x7f":
            return r"\u007f"  # which `dumps` leaves as it is
        return character if character.isprintable() else json.dumps(character)[1:-1]

    return _SPECIAL.sub(shown, text)


def terminal_json(data: bytes) -> str:
    r"""Return JSON of orjson, with escapes such as `\u009b` for DEL and C1 control characters.

    orjson escapes all other control characters, which a terminal would obey as well.
    """
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", data.decode())


def plain_name(name: str) -> str:
    """Return a program's name with `?` for each character that names don't contain.

    A program can choose any name, and in a status line it must not look like other facts.
    """
    return _NOT_IN_NAME.sub("?", name)
