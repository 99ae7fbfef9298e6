"""The codes of keys: what a terminal sends to a program when a key is pressed. No I/O.

Sources: xterm's "Control Sequences", PC-Style Function Keys; the entry of tmux in terminfo(5).
"""

from collections.abc import Iterable

# Keys that send `ESC [` and a final character; F1 to F4 send `ESC O` instead.
_FINALS = {
    "Up": "A",
    "Down": "B",
    "Right": "C",
    "Left": "D",
    "Home": "H",
    "End": "F",
    "F1": "P",
    "F2": "Q",
    "F3": "R",
    "F4": "S",
}
# Keys that send `ESC [ NUMBER ~`.
_NUMBERS = {
    "IC": 2,
    "DC": 3,
    "PPage": 5,
    "NPage": 6,
    "F5": 15,
    "F6": 17,
    "F7": 18,
    "F8": 19,
    "F9": 20,
    "F10": 21,
    "F11": 23,
    "F12": 24,
}
# Keys that send the same whatever the modes are.
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
_KEYPAD_FINALS = {
    "KP0": "p",
    "KP1": "q",
    "KP2": "r",
    "KP3": "s",
    "KP4": "t",
    "KP5": "u",
    "KP6": "v",
    "KP7": "w",
    "KP8": "x",
    "KP9": "y",
    "KP/": "o",
    "KP*": "j",
    "KP-": "m",
    "KP+": "k",
    "KP.": "n",
    "KPEnter": "M",
}
# What these keys send in cursor or keypad mode.
_IN_MODES = {"Home": "\033[1~", "End": "\033[4~"}
# Keys that send `ESC O` and the final character in cursor mode (DECCKM).
_CURSOR_KEYS = ("Up", "Down", "Right", "Left")

# What each modifier adds to the number 1 in a sequence.
_MODIFIER_VALUES = {"S": 1, "M": 2, "C": 4}
# The bits of a control character.
_CONTROL_BITS = 0x1F


def depend_on_modes(keys: Iterable[str]) -> bool:
    """Tell whether what keys send depends on the cursor and keypad modes."""
    return any(key in _CURSOR_KEYS or key in _IN_MODES or "KP" in key for key in keys)


def encoded(keys: Iterable[str], *, cursor_mode: bool = False, keypad_mode: bool = False) -> str:
    """Return what a terminal sends to the program when keys are pressed one after the other.

    Args:
        keys: tmux's names, as `key_name` returns them.
        cursor_mode: The program has set the mode of cursor keys (DECCKM).
        keypad_mode: The program has set the mode of the keypad (DECKPAM).
    """
    codes = [_code(key, cursor_mode=cursor_mode, keypad_mode=keypad_mode) for key in keys]
    return "".join(codes)


def _code(key: str, *, cursor_mode: bool, keypad_mode: bool) -> str:
    modifiers = ""
    while key[1:2] == "-" and len(key) > 2:  # noqa: PLR2004
        modifiers += key[0]
        key = key[2:]
    if key in _NUMBERS:
        return _numbered_code(_NUMBERS[key], modifiers)
    if key in _FINALS and modifiers:
        return f"\033[1;{_modifier_number(modifiers)}{_FINALS[key]}"
    if key in _IN_MODES and (cursor_mode or keypad_mode):
        return _IN_MODES[key]
    if key in _FINALS:
        return _plain_code(key, cursor_mode=cursor_mode)
    prefix = ""
    if "M" in modifiers:
        prefix = "\033"
    if key in _KEYPAD_FINALS and keypad_mode:
        return f"{prefix}\033O{_KEYPAD_FINALS[key]}"
    return prefix + _character(key, has_control="C" in modifiers)


def _numbered_code(number: int, modifiers: str) -> str:
    if modifiers:
        return f"\033[{number};{_modifier_number(modifiers)}~"
    return f"\033[{number}~"


def _modifier_number(modifiers: str) -> int:
    return 1 + sum(_MODIFIER_VALUES[modifier] for modifier in modifiers)


def _plain_code(key: str, *, cursor_mode: bool) -> str:
    """Return what a key with a final character sends without modifiers."""
    is_normal_cursor_key = key in _CURSOR_KEYS and not cursor_mode
    if is_normal_cursor_key or key in _IN_MODES:
        return f"\033[{_FINALS[key]}"
    return f"\033O{_FINALS[key]}"


def _character(key: str, *, has_control: bool) -> str:
    """Return the character or sequence of a key that has no codes for modifiers.

    Like most terminals, ignore modifiers for which there is no code.
    """
    character = _CHARACTERS.get(key, key.removeprefix("KP"))
    has_control_code = key == "Space" or len(key) == 1
    if has_control and has_control_code:
        return chr(ord(character.upper()) & _CONTROL_BITS)
    return character
