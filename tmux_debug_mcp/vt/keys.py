"""Keys: tmux's names for the words that people write, and what a terminal sends. No I/O.

Modifiers come before the base, as in `C-M-Left` or `Ctrl+c`. Some keys, such as Shift and Enter,
have a code of their own only in a protocol that the program must ask for. Without it, a terminal
sends what it sends for the key without Shift.

Sources: tmux(1), KEY BINDINGS; xterm's "Control Sequences", PC-Style Function Keys and
"modifyOtherKeys"; "Comprehensive keyboard handling in terminals" of kitty; the entry of tmux in
terminfo(5).
"""

import re
import string
from collections.abc import Iterable
from enum import Enum

from tmux_debug_mcp.errors import NoKeyCodeError

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

# What a terminal makes of Ctrl and a character, where that is not Ctrl and this character.
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

# The format that prints the terminal modes which decide what keys send: those of cursor keys
# (DECCKM) and of the keypad (DECKPAM). The last is empty before tmux 3.5, and "Ext" with a
# number if the program asked for modifyOtherKeys and got it.
KEY_MODES = "#{keypad_cursor_flag} #{keypad_flag} #{pane_key_mode}"

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

# The numbers of keys whose modifiers only a protocol can tell.
_KEYPAD_NAMES = (
    *(f"KP{digit}" for digit in range(10)),
    "KP.",
    "KP/",
    "KP*",
    "KP-",
    "KP+",
    "KPEnter",
)
_KITTY_NUMBERS = {name: number for number, name in enumerate(_KEYPAD_NAMES, start=57399)}

# What each modifier adds to the number 1 in a sequence.
_MODIFIER_VALUES = {"S": 1, "M": 2, "C": 4}
# The bits of a control character.
_CONTROL_BITS = 0x1F


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


class Protocol(Enum):
    """How a terminal tells a program about keys that have no code of their own."""

    NONE = "none"
    XTERM = "modifyOtherKeys"
    KITTY = "kitty"


# What asks for a protocol, resets the terminal, or switches to another screen, in groups: a reset
# (RIS), the value of modifyOtherKeys, kitty's action and its numbers, the alternate screen.
_REQUEST = re.compile(
    rb"\033(?:(c)|\[>4(?:;(\d{0,2}))?[mn]|\[([<=>])([\d;]{0,12})u|\[\?(?:47|1047|1049)([hl]))"
)
_MAX_REQUEST_BYTES = 18
# The flags with which kitty tells keys apart: all ambiguous keys, or all keys.
_KITTY_FLAGS = 1 | 8
_MAX_PUSHED = 32


class ProtocolTracker:
    """Follows which protocol programs ask their terminal for, as their output goes by.

    Attributes:
        end: The cursor after the output that went by.
    """

    def __init__(self) -> None:
        self.end = 0
        self._held = b""
        self._reset()

    def _reset(self) -> None:
        self._is_alternate = False
        self._is_xterm = False
        # Flags that were pushed, on the main and on the alternate screen.
        self._pushed: tuple[list[int], list[int]] = ([0], [0])

    @property
    def protocol(self) -> Protocol:
        """The protocol that is in force."""
        if self._pushed[self._is_alternate][-1] & _KITTY_FLAGS:
            return Protocol.KITTY
        return Protocol.XTERM if self._is_xterm else Protocol.NONE

    def feed(self, data: bytes, start: int) -> None:
        """Take the output that begins at a cursor. What lies before it may be lost."""
        if start != self.end:
            self._held = b""
        self.end = start + len(data)
        data = self._held + data
        taken = 0
        for request in _REQUEST.finditer(data):
            taken = request.end()
            self._take(request)
        self._held = data[max(taken, len(data) - _MAX_REQUEST_BYTES) :]

    def _take(self, request: re.Match[bytes]) -> None:
        reset, xterm_value, action, numbers, screen = request.groups()
        flags = self._pushed[self._is_alternate]
        if reset:
            self._reset()
        elif screen:
            self._is_alternate = screen == b"h"
        elif action is None:
            self._is_xterm = bool(int(xterm_value or 0))
        elif action == b"<":
            del flags[-max(1, _number(numbers, 0, 1)) :]
            flags[:] = flags or [0]
        elif action == b">":
            flags.append(_number(numbers, 0, 0))
            del flags[:-_MAX_PUSHED]
        else:
            value, how = _number(numbers, 0, 0), _number(numbers, 1, 1)
            changed = {2: flags[-1] | value, 3: flags[-1] & ~value}
            flags[-1] = changed.get(how, value)


def _number(numbers: bytes, index: int, default: int) -> int:
    """Return one of the numbers between semicolons."""
    parts = numbers.split(b";")
    return int(parts[index]) if index < len(parts) and parts[index] else default


def need_protocol(keys: Iterable[str]) -> bool:
    """Tell whether some keys have a code of their own only in a protocol."""
    return any(_needs_protocol(*_parts(key)) for key in keys)


def depend_on_modes(keys: Iterable[str]) -> bool:
    """Tell whether what keys send depends on the cursor and keypad modes."""
    return any(key in _CURSOR_KEYS or key in _IN_MODES or "KP" in key for key in keys)


def codes_of(keys: Iterable[str], modes: str = "", protocol: Protocol = Protocol.NONE) -> str:
    """Return what a terminal sends to the program when keys are pressed in this order.

    They have tmux's names, as `key_name` returns them. `modes` is what tmux printed for
    `KEY_MODES`; empty for a pane that is gone, or if they don't matter. The program may have asked
    for a protocol that tmux doesn't know.

    Raises:
        NoKeyCodeError: The program would take a key for another.
    """
    flags = modes.split()
    if protocol is Protocol.NONE and flags[2:3] == ["Ext"]:
        protocol = Protocol.XTERM
    cursor_mode, keypad_mode = flags[:1] == ["1"], flags[1:2] == ["1"]
    return "".join(
        [_code(key, protocol, cursor_mode=cursor_mode, keypad_mode=keypad_mode) for key in keys]
    )


def _parts(key: str) -> tuple[str, str]:
    """Return the modifiers of a key, and the key without them."""
    modifiers = ""
    while key[1:2] == "-" and len(key) > 2:  # noqa: PLR2004
        modifiers += key[0]
        key = key[2:]
    return modifiers, key


def _needs_protocol(modifiers: str, key: str) -> bool:
    lost = set(modifiers) & {"C", "S"}
    if key == "Space":
        lost.discard("C")  # it sends NUL
    return bool(lost) and (key in _CHARACTERS or key in _KEYPAD_FINALS)


def _code(key: str, protocol: Protocol, *, cursor_mode: bool, keypad_mode: bool) -> str:
    name = key
    modifiers, key = _parts(name)
    if _needs_protocol(modifiers, key):
        return _code_in(protocol, name, modifiers, key)
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


def _code_in(protocol: Protocol, name: str, modifiers: str, key: str) -> str:
    """Return what a key sends in a protocol."""
    if protocol is Protocol.NONE:
        plain = "M-" * ("M" in modifiers) + key
        raise NoKeyCodeError(name, plain)
    if key == "BTab":  # which is Shift and Tab
        modifiers, key = f"{modifiers}S", "Tab"
    number = 1 + sum(_MODIFIER_VALUES[modifier] for modifier in set(modifiers))
    code = ord(_CHARACTERS.get(key) or key.removeprefix("KP"))
    if protocol is Protocol.XTERM:
        return f"\033[27;{number};{code}~"
    return f"\033[{_KITTY_NUMBERS.get(key, code)};{number}u"
