"""Maps the words that people write for a key to tmux's name for it. No I/O.

Modifiers come before the base, as in `C-M-Left` or `Ctrl+c`. Source: tmux(1), KEY BINDINGS.
"""

import re
import string

# No key has a longer name.
_MAX_NAME_CHARACTERS = 40

# tmux's names, with other well-known spellings.
_SPELLINGS = {
    "Enter": ("Return",),
    "Escape": ("Esc",),
    "Tab": (),
    "BTab": (),
    "Space": (),
    "BSpace": ("Backspace", "BackSpace"),
    "DC": ("Delete", "Del"),
    "IC": ("Insert", "Ins"),
    "Up": ("ArrowUp",),
    "Down": ("ArrowDown",),
    "Left": ("ArrowLeft",),
    "Right": ("ArrowRight",),
    "Home": (),
    "End": (),
    "PPage": ("PageUp", "PgUp"),
    "NPage": ("PageDown", "PgDn", "PgDown"),
}
_FUNCTION_KEYS = [f"F{number}" for number in range(1, 13)]
_KEYPAD_KEYS = ["KPEnter", *(f"KP{character}" for character in "0123456789/*-+.")]
_NAMES = {name: name for name in [*_SPELLINGS, *_FUNCTION_KEYS, *_KEYPAD_KEYS]} | {
    spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings
}

# Maps modifiers that are written out to tmux's letters.
_CAPITALIZED = {"Ctrl": "C", "Control": "C", "Alt": "M", "Meta": "M", "Shift": "S"}
_LONG_MODIFIERS = _CAPITALIZED | {word.lower(): letter for word, letter in _CAPITALIZED.items()}
_MAX_MODIFIERS = 3
# Only a hyphen follows a letter: `C++` is text.
_MODIFIER = re.compile(rf"([CMS])-|({'|'.join(_LONG_MODIFIERS)})[-+]")

# What a terminal makes of Ctrl and a character, where that is not Ctrl and the same one.
_CONTROL_KEYS = {"[": "Escape", "i": "Tab", "m": "Enter", "?": "BSpace", "@": "C-Space", "/": "C-_"}
_WITH_CONTROL = frozenset(string.ascii_lowercase + "\\]^_")

# Words that are meant as keys, even if no key has that name. Words such as `s-expression` and
# `meta-data` are not.
_LIKE_A_KEY = re.compile(
    rf"""
    (?: [CMS]- | (?i: {"|".join(_LONG_MODIFIERS)} ) [-+] )+
    (?: .? | F\d+ | (?i: {"|".join(map(re.escape, _NAMES))} ) )
    | \^.
    | F\d+
    """,
    re.DOTALL | re.VERBOSE,
)


def key_name(word: str) -> str | None:
    """Return tmux's name for a key, or None if the word is not the name of a key.

    A single character is not a name. `^` and a character means Ctrl and that character.
    """
    if word in _NAMES:
        return _NAMES[word]
    if len(word) == 2 and word[0] == "^":  # noqa: PLR2004
        return _modified("C", word[1])
    if len(word) > _MAX_NAME_CHARACTERS:
        return None
    modifiers = ""
    base = word
    for _ in range(_MAX_MODIFIERS):
        match = _MODIFIER.match(base)
        if match is None:
            break
        modifier = match[1] or _LONG_MODIFIERS[match[2]]
        if modifier in modifiers:
            return None
        modifiers += modifier
        base = base[match.end() :]
    if not modifiers:
        return None
    return _modified("".join(sorted(modifiers)), base)


def _modified(modifiers: str, base: str) -> str | None:
    """Return tmux's name for a key with modifiers, which are letters in alphabetical order."""
    if base in _NAMES:
        name = _NAMES[base]
        if name == "Tab" and "S" in modifiers:
            modifiers, name = modifiers.replace("S", ""), "BTab"
        return "-".join([*modifiers, name])
    is_character = len(base) == 1 and base.isprintable() and base != " "
    if not is_character or "S" in modifiers:
        return None
    if "C" in modifiers:
        base = base.lower()
        name = _CONTROL_KEYS.get(base, f"C-{base}")
        if base not in _CONTROL_KEYS and base not in _WITH_CONTROL:
            return None
        base = name.removeprefix("C-")
        if base == name:
            modifiers = modifiers.replace("C", "")
    return "-".join([*modifiers, base])


def looks_like_key(word: str) -> bool:
    """Tell whether a word, or its beginning if it is long, looks like a key's name."""
    return _LIKE_A_KEY.fullmatch(word[:_MAX_NAME_CHARACTERS]) is not None
