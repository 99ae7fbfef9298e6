"""The steps of `tmux_send_keys`: a string or an array of them, to what is typed one after the other. No I/O.

1. Each line of a text is a step, with the Enter behind it: a program that one line starts gets the next ones.
2. Keys that are pressed together, and a signal, are a step each.
3. A paste is one step, whatever it has in it.
"""

import re
import signal
from collections.abc import Sequence

import orjson

from tmux_debug_mcp.errors import KeysError

from .keys import Keystrokes, check, key_name, pasted, pressed, read, typed, typing

MAX_STEPS = 1000

_SIGNALS = frozenset(signal.Signals.__members__)
_LIKE_A_SIGNAL = re.compile("SIG[A-Z0-9]{2,10}")
_MAX_HINTED_CHARACTERS = 20
_MAX_SIGNALS_CHARACTERS = 1000


def steps(keys: str | Sequence[str], *, literal: bool = False, paste: bool = False) -> list[Keystrokes]:
    """Return what the steps type and press.

    Args:
        keys: A string, or an array of strings.
        literal: Take no word for a key or a signal; a line feed is Enter.
        paste: Paste each string as it is.

    Raises:
        KeysError: A string is empty, too long, has what no keyboard can type or a mixture of keys and text, or
            there are too many steps.
    """
    strings = [keys] if isinstance(keys, str) else keys
    found: list[Keystrokes] = []
    for string in strings:
        check(string)
        if isinstance(keys, str) and not (literal or paste):
            _reject_json(string)
        is_one = paste or not (literal or string.strip("\n"))  # line feeds alone are keys
        lines = 1 if is_one else string.count("\n")
        if len(found) + lines > MAX_STEPS:
            raise KeysError(
                f"Parameter 'keys' has more than {MAX_STEPS} steps, of which each line is one. Set paste to send the "
                "text in one piece, or write it to a file."
            )
        found += [pasted(string)] if paste else _steps(string, literal=literal)
    return found


def summary(done: Sequence[Keystrokes]) -> str:
    """Say what steps have done, for the confirmation."""
    if len(done) == 1:
        return done[0].done
    characters = sum(len(step.text) for step in done)
    enters = sum(step.keys.count("Enter") for step in done if step.is_text)
    others = [step.done for step in done if not step.is_text]
    said = [f"{len(done)} steps"]
    if any(step.is_text for step in done):
        said.append(typing(characters, enters))
    said += others[:3]
    return "; ".join(said) + ("; …" if len(others) > 3 else "")  # noqa: PLR2004


def _steps(string: str, *, literal: bool) -> list[Keystrokes]:
    if literal:
        *lines, last = string.split("\n")
        return [*(typed(line, 1) for line in lines), *([typed(last, 0)] if last else [])]
    words = string[:_MAX_SIGNALS_CHARACTERS].replace("\n", " Enter ").split()
    if len(words) == 1 and _LIKE_A_SIGNAL.fullmatch(words[0]) and words[0] not in _SIGNALS:
        raise KeysError(f"'{words[0]}' looks like a signal and is none. Set literal to type it as text.")
    is_short = len(string) <= _MAX_SIGNALS_CHARACTERS
    if is_short and _SIGNALS.intersection(words) and all(word in _SIGNALS or key_name(word) for word in words):
        return [_signal_or_key(word) for word in words]
    names, body, enters = read(string)
    if names:
        return [pressed(names)]
    *lines, last = body.split("\n")
    return [*(typed(line, 1) for line in lines), typed(last, enters, _hint(string))]


def _signal_or_key(word: str) -> Keystrokes:
    if word in _SIGNALS:
        return Keystrokes("", is_paste=False, keys=(), done=f"sent {word}", signal=word, is_text=False)
    return pressed((key_name(word) or word,))


def _hint(string: str) -> str:
    """Say that a word is a key's name but for its case, where it is one."""
    if " " in string or len(string) > _MAX_HINTED_CHARACTERS:
        return ""
    modifiers, hyphen, base = string.rpartition("-")
    variants = (f"{modifiers.upper()}{hyphen}{base}", string.capitalize(), string.upper())
    name = next((word for word in variants if word in _SIGNALS or key_name(word)), None)
    return f"; '{name}' is the {'signal' if name in _SIGNALS else 'key'}" if name else ""


def _reject_json(string: str) -> None:
    """Refuse an array that was given as a string."""
    if not (string[:_MAX_SIGNALS_CHARACTERS].lstrip().startswith("[") and string.rstrip().endswith("]")):
        return
    try:
        value = orjson.loads(string)
    except orjson.JSONDecodeError:
        return
    if value and all(isinstance(item, str) for item in value):
        raise KeysError(
            "Parameter 'keys' is a string that holds a JSON array. Give the array itself, or set literal to type it."
        )
