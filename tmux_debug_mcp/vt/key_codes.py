"""The codes of keys: what a terminal sends to a program when a key is pressed. No I/O.

Sources: xterm's "Control Sequences", PC-Style Function Keys; the entry of tmux in terminfo(5).
"""

from collections.abc import Iterable

# Keys that send `ESC [` and a final character, in cursor mode (DECCKM) `ESC O` instead.
_CURSOR_KEYS = {"Up": "A", "Down": "B", "Right": "C", "Left": "D"}
# All keys that send `ESC [` and a final character; F1 to F4 send `ESC O` instead.
_FINALS = {**_CURSOR_KEYS, "Home": "H", "End": "F", "F1": "P", "F2": "Q", "F3": "R", "F4": "S"}
# Keys that send `ESC [ NUMBER ~`.
_FUNCTION_NUMBERS = {
    f"F{key}": number for key, number in enumerate((15, 17, 18, 19, 20, 21, 23, 24), start=5)
}
_NUMBERS = {"IC": 2, "DC": 3, "PPage": 5, "NPage": 6, **_FUNCTION_NUMBERS}
# Keys that send the same in every mode, except KPEnter.
_CHARACTERS = {
    "Enter": "\r",
    "KPEnter": "\r",
    "Escape": "\033",
    "Tab": "\t",
    "BTab": "\033[Z",
    "Space": " ",
    "BSpace": "\177",
}
# Keys of the keypad, which send `ESC O` and a final character in keypad mode (DECKPAM).
_KEYPAD_DIGITS = {f"KP{digit}": chr(ord("p") + digit) for digit in range(10)}
_KEYPAD_SIGNS = {"KP/": "o", "KP*": "j", "KP-": "m", "KP+": "k", "KP.": "n", "KPEnter": "M"}
_KEYPAD_FINALS = _KEYPAD_DIGITS | _KEYPAD_SIGNS
# What these keys send in cursor or keypad mode.
_IN_MODES = {"Home": "\033[1~", "End": "\033[4~"}

# What each modifier adds to the number 1 in a sequence.
_MODIFIER_VALUES = {"S": 1, "M": 2, "C": 4}
# The bits of a control character.
_CONTROL_BITS = 0x1F


def depend_on_modes(keys: Iterable[str]) -> bool:
    """Tell whether what keys send depends on the cursor and keypad modes."""
    return any(key in _CURSOR_KEYS or key in _IN_MODES or "KP" in key for key in keys)


def encoded(keys: Iterable[str], *, cursor_mode: bool = False, keypad_mode: bool = False) -> str:
    """Return what a terminal sends to the program when keys are pressed one after the other.

    They have tmux's names, as `key_name` returns them. The program may have set the modes of cursor
    keys (DECCKM) and of the keypad (DECKPAM).
    """
    codes = [_code(key, cursor_mode=cursor_mode, keypad_mode=keypad_mode) for key in keys]
    return "".join(codes)


def _code(key: str, *, cursor_mode: bool, keypad_mode: bool) -> str:
    """Return what a key sends. Like most terminals, ignore modifiers that have no code."""
    modifiers = ""
    while key[1:2] == "-" and len(key) > 2:  # noqa: PLR2004
        modifiers += key[0]
        key = key[2:]
    number = 1 + sum(_MODIFIER_VALUES[modifier] for modifier in modifiers)
    if key in _NUMBERS:
        return f"\033[{_NUMBERS[key]};{number}~" if modifiers else f"\033[{_NUMBERS[key]}~"
    if key in _FINALS:
        if modifiers:
            return f"\033[1;{number}{_FINALS[key]}"
        if key in _IN_MODES:
            return _IN_MODES[key] if cursor_mode or keypad_mode else f"\033[{_FINALS[key]}"
        is_normal = key in _CURSOR_KEYS and not cursor_mode
        return f"\033{'[' if is_normal else 'O'}{_FINALS[key]}"
    prefix = "\033" if "M" in modifiers else ""
    if key in _KEYPAD_FINALS and keypad_mode:
        return f"{prefix}\033O{_KEYPAD_FINALS[key]}"
    character = _CHARACTERS.get(key, key.removeprefix("KP"))
    if "C" in modifiers and (key == "Space" or len(key) == 1):
        character = chr(ord(character.upper()) & _CONTROL_BITS)
    return prefix + character
