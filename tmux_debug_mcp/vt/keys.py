"""The `keys` string: what a person would type, to key presses and text.

One table, `_NAMES`, says which words are keys; `parse` says when a word is one:

1. Only key names, separated by spaces: they are pressed in order. Line feeds after them press Enter.
2. Else text. Line feeds and the word Enter at its end press Enter; line feeds inside make it a paste.
3. What looks like a key and is none, or text with a key before or behind it, is an error: never typed by accident.
4. Literal: no names; every line feed is the Enter key and all else is typed as it is.

CRLF counts as a line feed, but not in literal text.
"""

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tmux_debug_mcp.errors import KeysError, MixedKeysError

MAX_KEYS_BYTES = 1 << 20
# Keys that are pressed, each of which tmux is told by itself.
MAX_PRESSED = 20_000

_SHOWN_CHARACTERS = 40
# No key has a longer name.
_MAX_NAME_CHARACTERS = 40
# So many words tell whether keys were meant.
_TELLING_WORDS = 100
_TELLING_CHARACTERS = 2000

# The word as people write it, to tmux's name. tmux(1), "KEY BINDINGS", with the well-known spellings.
_NAMES = {
    name: tmux_name
    for tmux_name, names in {
        "Enter": "Enter Return",
        "Escape": "Escape Esc",
        "Tab": "Tab",
        "BTab": "BTab",
        "Space": "Space",
        "BSpace": "BSpace Backspace BackSpace",
        "DC": "DC Delete Del",
        "IC": "IC Insert Ins",
        "Up": "Up ArrowUp",
        "Down": "Down ArrowDown",
        "Left": "Left ArrowLeft",
        "Right": "Right ArrowRight",
        "Home": "Home",
        "End": "End",
        "PPage": "PPage PageUp PgUp",
        "NPage": "NPage PageDown PgDn PgDown",
        **{f"F{number}": f"F{number}" for number in range(1, 13)},
        **{f"KP{key}": f"KP{key}" for key in (*"0123456789/*-+.", "Enter")},
    }.items()
    for name in names.split()
}

# What of them may as well begin or end a text.
_ENGLISH = frozenset(
    ("Enter", "Return", "Space", "Delete", "Insert", "Up", "Down", "Left", "Right", "Home", "End", "DC", "IC")
)

_LONG_MODIFIERS = {
    name: modifier
    for modifier, names in {"C": "Ctrl Control ctrl control", "M": "Alt Meta alt meta", "S": "Shift shift"}.items()
    for name in names.split()
}
# Behind the letters only a hyphen, so that C++ is text.
_MODIFIER = re.compile(rf"([CMS])-|({'|'.join(_LONG_MODIFIERS)})[-+]")
_MAX_MODIFIERS = 3
# What is meant as a key, though there is none of that name. Words such as s-expression or meta-data are not.
_LOOKS_LIKE_A_KEY = re.compile(
    rf"(?:[CMS]-|(?i:{'|'.join(_LONG_MODIFIERS)})[-+])+(?:.?|F\d+|(?i:{'|'.join(map(re.escape, _NAMES))}))|\^.|F\d+",
    re.DOTALL,
)

# What Ctrl makes of a character in a terminal, where that is not the letter's own control character.
_CONTROL = {"[": "Escape", "@": "C-Space", "?": "BSpace", "/": "C-_", "m": "Enter", "i": "Tab"} | {
    character: f"C-{character}" for character in "\\]^_"
}

# Keys are separated by blanks, words by all that is blank.
_KEY_WORD = re.compile("[^ ]+")
_WORD = re.compile(r"\S+")
_SPACED = re.compile("[^ \n]+")
# What keys send, where that is not a character of theirs: the last letter of a control sequence, or the number in it.
_LETTERS = {"Up": "A", "Down": "B", "Right": "C", "Left": "D", "Home": "H", "End": "F"} | dict(
    zip(("F1", "F2", "F3", "F4"), "PQRS", strict=True)
)
_NUMBERS = {"IC": 2, "DC": 3, "PPage": 5, "NPage": 6, "F5": 15, "F6": 17, "F7": 18, "F8": 19, "F9": 20, "F10": 21}
_NUMBERS |= {"F11": 23, "F12": 24}
_CHARACTERS = {"Enter": "\r", "KPEnter": "\r", "Escape": "\033", "Tab": "\t", "BTab": "\033[Z", "Space": " "}
_CHARACTERS |= {"BSpace": "\177"}
_KEYPAD = dict(zip("0123456789/*-+.", "pqrstuvwxyojmkn", strict=True)) | {"Enter": "M"}
# In programs that have switched the keypad on, as the terminal description of tmux has it.
_WITH_KEYPAD = {"Home": "\033[1~", "End": "\033[4~"}
_CURSOR_KEYS = ("Up", "Down", "Right", "Left")
_PASTE_END = "\033[201~"

_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """What goes to the pane, in this order: the text, then the keys.

    Attributes:
        text: Typed exactly as it is, carriage returns being Enter; empty when only keys are pressed.
        is_paste: The text is several lines to paste: bracketed where the program asks for it.
        keys: tmux's names of the keys to press.
        done: What this does, for the confirmation.
        signal: Instead of all that: the signal to send, such as `SIGTERM`.
        is_text: It was given as text, be that an empty line, and not as names of keys.
    """

    text: str
    is_paste: bool
    keys: tuple[str, ...]
    done: str
    signal: str = ""
    is_text: bool = True


INTERRUPT = Keystrokes("", is_paste=False, keys=("C-c",), done="pressed C-c")


def parse(keys: str, *, literal: bool = False) -> Keystrokes:
    """Return what the string types and presses.

    Args:
        keys: What a person would type.
        literal: Take no word for a key.

    Raises:
        KeysError: The string is empty, too long, holds what no keyboard can type, or has a key where
            it can't be told whether it is meant as one.
    """
    check(keys)
    if literal:
        return _literal(keys)
    given = read(keys)
    return pressed(given.names) if given.names else typed(given.body, given.enters)


class Given(NamedTuple):
    """What a string means: names of keys, or a text and how often Enter is pressed behind it."""

    names: tuple[str, ...]
    body: str = ""
    enters: int = 0


def read(keys: str) -> Given:
    """Return what a string means that is not to be taken literally.

    Raises:
        KeysError: As of `parse`.
    """
    keys = keys.replace("\r\n", "\n")
    body = keys.rstrip("\n")
    enters = len(keys) - len(body)
    _check_pressed(enters)
    names = _names(body)
    if names is not None:
        _check_pressed(len(names) + enters)
        return Given((*names, *("Enter",) * enters))
    _reject_wrong_keys([word[0] for word in itertools.islice(_WORD.finditer(body), _TELLING_WORDS)])
    end = len(body)
    while body.endswith((" Enter", "\nEnter"), 0, end):
        end -= len(" Enter")
        enters += 1
        _check_pressed(enters)
    if end < len(body) < len(keys):
        enters -= 1  # the word and the line feed behind it mean the same
    _reject_mixture(body[:end], enters)
    return Given((), body[:end], enters)


def pressed(names: tuple[str, ...]) -> Keystrokes:
    """Return what presses keys."""
    return Keystrokes("", is_paste=False, keys=names, done=f"pressed {_shortened(names)}", is_text=False)


def typed(body: str, enters: int, hint: str = "") -> Keystrokes:
    """Return what types the text, which is a paste where it has several lines, and presses Enter so many times."""
    if "\n" in body:
        return pasted(body, enters)
    done = typing(len(body), enters) + hint
    return Keystrokes(body, is_paste=False, keys=("Enter",) * enters, done=done)


def pasted(body: str, enters: int = 0) -> Keystrokes:
    """Return what pastes the text, bracketed where the program asks for that, and presses Enter so many times."""
    if _PASTE_END in body:
        raise KeysError(
            "Parameter 'keys' has ESC [ 201 ~, which would end the paste before its end, so that the rest is run. "
            "Leave it out, or set literal to type the lines one by one."
        )
    lines = body.count("\n") + 1
    done = typing(len(body), enters, f"pasted {lines} lines," if lines > 1 else "pasted")
    return Keystrokes(body, is_paste=True, keys=("Enter",) * enters, done=done)


def depend_on_modes(keys: Iterable[str]) -> bool:
    """Tell whether what keys send depends on modes that the program has set."""
    return any(key in _CURSOR_KEYS or key in _WITH_KEYPAD or "KP" in key for key in keys)


def encoded(keys: Iterable[str], *, cursor_mode: bool = False, keypad_mode: bool = False) -> str:
    """Return what a terminal sends to the program when keys are pressed.

    Args:
        keys: Names that `key_name` returned.
        cursor_mode: Whether the program has cursor keys send other sequences (DECCKM).
        keypad_mode: Whether it has the keypad send sequences (DECKPAM).
    """
    return "".join(_encoded(key, cursor_mode=cursor_mode, keypad_mode=keypad_mode) for key in keys)


def _encoded(key: str, *, cursor_mode: bool, keypad_mode: bool) -> str:
    modifiers = ""
    while key[1:2] == "-" and len(key) > 2:  # noqa: PLR2004
        modifiers, key = modifiers + key[0], key[2:]
    number = 1 + ("S" in modifiers) + 2 * ("M" in modifiers) + 4 * ("C" in modifiers)
    if key in _LETTERS:
        if number > 1:
            return f"\033[1;{number}{_LETTERS[key]}"
        if key in _WITH_KEYPAD and (cursor_mode or keypad_mode):
            return _WITH_KEYPAD[key]
        is_cursor = key in _CURSOR_KEYS and not cursor_mode
        return f"\033{'[' if is_cursor or key in _WITH_KEYPAD else 'O'}{_LETTERS[key]}"
    if key in _NUMBERS:
        return f"\033[{_NUMBERS[key]};{number}~" if number > 1 else f"\033[{_NUMBERS[key]}~"
    prefix = "\033" if "M" in modifiers else ""
    if key[:2] == "KP" and keypad_mode:
        return f"{prefix}\033O{_KEYPAD[key[2:]]}"
    # What modifiers there are no codes for do nothing, as in most terminals.
    character = _CHARACTERS.get(key, key.removeprefix("KP"))
    if "C" in modifiers and (key == "Space" or len(key) == 1):
        character = chr(ord(character.upper()) & 0x1F)
    return prefix + character


def key_name(word: str) -> str | None:
    """Return tmux's name for a key, or None when the word is no key.

    A single character is no key; `^` and one character is one.
    """
    if len(word) == 2 and word[0] == "^":  # noqa: PLR2004
        return _modified("C", word[1])
    if len(word) > _MAX_NAME_CHARACTERS:
        return None
    modifiers = ""
    base = word
    while len(modifiers) < _MAX_MODIFIERS and (match := _MODIFIER.match(base)):
        modifier = match[1] or _LONG_MODIFIERS[match[2]]
        if modifier in modifiers:
            return None
        modifiers += modifier
        base = base[match.end() :]
    return _modified("".join(sorted(modifiers)), base) if modifiers else _NAMES.get(base)


def _modified(modifiers: str, base: str) -> str | None:
    if base in _NAMES:
        name = _NAMES[base]
        if name == "Tab" and "S" in modifiers:
            name, modifiers = "BTab", modifiers.replace("S", "")
    elif len(base) != 1 or not base.isprintable() or base == " " or "S" in modifiers:
        return None
    elif "C" in modifiers:
        lower = base.lower()
        control = _CONTROL.get(lower, f"C-{lower}" if "a" <= lower <= "z" else None)
        if control is None:
            return None
        name, modifiers = control.removeprefix("C-"), modifiers.replace("C", "")
        if control.startswith("C-"):
            modifiers = "C" + modifiers
    else:
        name = base
    return "".join(f"{modifier}-" for modifier in modifiers) + name


def _names(body: str) -> list[str] | None:
    """Return the names of the keys that a text consists of, or None where it has other words, or blanks alone."""
    names: list[str] = []
    for word in _KEY_WORD.finditer(body):
        name = key_name(word[0])
        if name is None:
            return None
        names.append(name)
        _check_pressed(len(names))
    return names if names or not body else None


def _check_pressed(count: int) -> None:
    if count > MAX_PRESSED:
        raise KeysError(
            f"Parameter 'keys' presses more than {MAX_PRESSED} keys. Send them in parts; "
            "set literal to type this as text, with a line feed for Enter."
        )


def check(keys: str) -> None:
    """See that a string can be typed.

    Raises:
        KeysError: It is empty, too long, or holds what no keyboard can type.
    """
    if not keys:
        raise KeysError("Parameter 'keys' is empty. Give the text to type or the keys to press, such as 'ls Enter'.")
    if _NO_CHARACTER.search(keys):
        raise KeysError(
            "Parameter 'keys' has a NUL character or half a surrogate pair. Leave it out; 'C-Space' sends NUL."
        )
    if (size := len(keys.encode())) > MAX_KEYS_BYTES:
        raise KeysError(
            f"Parameter 'keys' has {size} bytes; at most {MAX_KEYS_BYTES} go at once. "
            "Send it in parts, or write a file and use that."
        )


def _reject_wrong_keys(words: list[str]) -> None:
    """Refuse what consists of keys, and of words that look like keys and are none."""
    bad = next((word for word in words if not key_name(word)), None)
    if bad and all(key_name(word) or _LOOKS_LIKE_A_KEY.fullmatch(word[:_MAX_NAME_CHARACTERS]) for word in words):
        raise KeysError(
            f"'{bad[:_SHOWN_CHARACTERS]}' looks like a key and is none. "
            "Keys are named like Enter, Escape, Up, F5, C-c, M-x, S-Up; "
            "set literal to type exactly this, with a line feed for Enter."
        )


def _reject_mixture(body: str, enters: int) -> None:
    """Refuse text that begins or ends with a key's name, if that is no English word."""
    words = [(word[0], word.start(), word.end()) for word in _outer_words(body)]
    names = [word for word, _, _ in words]
    if not names:
        return
    head = tail = 0
    if _is_meant_as_key(names[0]) or (key_name(names[0]) and _are_keys_or_characters(names)):
        head = next((at for at, name in enumerate(names) if not key_name(name)), 0)
    if _is_meant_as_key(names[-1]):
        tail = next((at for at, name in enumerate(reversed(names)) if not key_name(name)), 0)
    if not head and not tail:
        return
    begin = words[head][1] if head else 0
    end = words[len(words) - tail - 1][2] if tail else len(body)
    enter = " Enter" * enters
    steps = [" ".join(names[:head])] if head else []
    steps += [body[begin:end], " ".join(names[len(names) - tail :]) + enter] if tail else [body[begin:end] + enter]
    if sum(map(len, steps)) > _TELLING_CHARACTERS:
        steps = [step if len(step) <= _SHOWN_CHARACTERS else "the text" for step in steps]
    raise MixedKeysError(names[0] if head else names[-1], json.dumps(steps, ensure_ascii=False))


def _outer_words(body: str) -> list[re.Match[str]]:
    """Return the words of a text, of a long one the first and the last."""
    first = _SPACED.finditer(body, 0, _TELLING_CHARACTERS)
    last = _SPACED.finditer(body, max(0, len(body) - _TELLING_CHARACTERS))
    found = {word.start(): word for word in (*first, *last)}
    return [found[start] for start in sorted(found)]


def _is_meant_as_key(word: str) -> bool:
    return word not in _ENGLISH and key_name(word) is not None


def _are_keys_or_characters(words: list[str]) -> bool:
    """Tell whether a text is keys and single characters alone, as in `Up j`, more than one."""
    return len(words) > 1 and all(len(word) == 1 or key_name(word) for word in words)


def _literal(keys: str) -> Keystrokes:
    enters = keys.count("\n")
    done = typing(len(keys) - enters, enters)
    return Keystrokes(keys.replace("\n", "\r"), is_paste=False, keys=(), done=done)


def typing(characters: int, enters: int, verb: str = "typed") -> str:
    """Say what was typed."""
    text = f"{verb} {characters} character" + ("s" if characters != 1 else "")
    if not enters:
        return f"{text}; Enter not pressed"
    return f"{text}; Enter pressed" + (f" {enters} times" if enters > 1 else "")


def _shortened(pressed: tuple[str, ...]) -> str:
    shown = " ".join(pressed[:20])
    return f"{shown} and {len(pressed) - 20} more" if len(pressed) > 20 else shown  # noqa: PLR2004
