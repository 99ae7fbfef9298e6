"""The steps of `tmux_send_keys`: strings to keystrokes, which are sent one after the other. No I/O.

1. Each line of a text is a step, with the Enter at its end: a program that one line starts gets the
   next ones.
2. Keys that are pressed together are a step, and so is a signal.
3. A paste is one step, whatever it contains.
"""

import re
import signal
from collections.abc import Sequence

import orjson

from tmux_debug_mcp.errors import KeysError

from .key_names import key_name
from .keys import Keystrokes, check, pasted, pressed, read, typed

MAX_STEPS = 1000

_SIGNALS = frozenset(signal.Signals.__members__)
_LIKE_A_SIGNAL = re.compile("SIG[A-Z0-9]{2,10}")
# Longer strings are text: no list of signals, and no array in a string.
_MAX_SIGNALS_CHARACTERS = 1000
# Longer words get no hint at a key in another case.
_MAX_HINTED_CHARACTERS = 20
# Remarks that a confirmation makes.
_MAX_REMARKS = 3


def steps(
    keys: str | Sequence[str], *, literal: bool = False, paste: bool = False
) -> list[Keystrokes]:
    """Return what the steps type and press, in order.

    In literal strings no word is a key or a signal, and a line feed is Enter. Strings to paste are
    left as they are.

    Raises:
        KeysError: A string is not valid, as for `keys.read`, or looks like a signal but isn't one;
            one of several strings that are literal or pasted is the name of a key; or there are no
            steps, or more than 1,000.
    """
    strings = [keys] if isinstance(keys, str) else keys or [""]
    if len(strings) > 1 and (literal or paste):
        _reject_keys(strings, "literal" if literal else "paste")
    result: list[Keystrokes] = []
    for string in strings:
        check(string)
        if isinstance(keys, str) and not literal and not paste:
            _reject_json(string)
        has_only_enters = not literal and not string.strip("\n")
        lines = 1 if paste or has_only_enters else string.count("\n")
        if len(result) + lines > MAX_STEPS:
            raise KeysError(
                f"Parameter 'keys' has more than {MAX_STEPS} steps (each line is one). Send them "
                "in parts, or write the text to a file."
            )
        if paste:
            result.append(pasted(string))
        elif literal:
            result += [typed(line, 1) for line in string.split("\n")]
            last = result.pop().text
            if last:
                result.append(typed(last, 0))
        else:
            result += _steps(string)
    return result


def command_lines(text: str, enters: int) -> list[Keystrokes]:
    """Return the steps that type a command at the prompt of a shell, line by line.

    A line editor takes tabs and control characters literally only in a paste. Enter is pressed
    after each line, and `enters` times after the last one.
    """
    *lines, last = text.split("\n")
    counts = [*[1] * len(lines), enters]
    return [
        typed(line, count) if line.isprintable() else pasted(line, count)
        for line, count in zip([*lines, last], counts, strict=True)
    ]


def _reject_keys(strings: Sequence[str], argument: str) -> None:
    """Refuse key names among several strings that an argument makes text."""
    key = next((string for string in strings if key_name(string)), None)
    if key:
        raise KeysError(
            f"'{key}' is a key name, but with {argument} it would be typed as text, like every "
            f"other string of this call. Send keys in a call without {argument}: those of one "
            "string, such as 'Down Enter', go out in one write, those of several one by one. To "
            "type the name itself, send it alone."
        )


def _reject_json(string: str) -> None:
    """Refuse an array of strings that is given as a string."""
    has_start = string[:_MAX_SIGNALS_CHARACTERS].lstrip().startswith("[")
    if not has_start or not string.rstrip().endswith("]"):
        return
    try:
        value = orjson.loads(string)
    except orjson.JSONDecodeError:
        return
    if value and all(isinstance(item, str) for item in value):
        raise KeysError(
            "Parameter 'keys' is a string that holds a JSON array. "
            "Give the array itself, or set literal to type it."
        )


def _steps(string: str) -> list[Keystrokes]:
    words = string[:_MAX_SIGNALS_CHARACTERS].replace("\n", " Enter ").split()
    if len(words) == 1 and _LIKE_A_SIGNAL.fullmatch(words[0]) and words[0] not in _SIGNALS:
        raise KeysError(
            f"'{words[0]}' looks like a signal, but isn't one. Set literal to type it as text."
        )
    if len(string) <= _MAX_SIGNALS_CHARACTERS and not _SIGNALS.isdisjoint(words):
        signals_and_keys = [_signal_or_key(word) for word in words]
        if all(signals_and_keys):
            return [step for step in signals_and_keys if step]
    reading = read(string)
    if reading.names:
        return [pressed(reading.names)]
    *lines, last = reading.text.split("\n")
    result = [typed(line, 1) for line in lines]
    result.append(typed(last, reading.enters, _hint(string)))
    return result


def _signal_or_key(word: str) -> Keystrokes | None:
    if word in _SIGNALS:
        return Keystrokes("", is_paste=False, keys=(), signal=word, is_text=False)
    name = key_name(word)
    return pressed((name,)) if name else None


def _hint(string: str) -> str:
    """Return a hint if a word differs from a key or a signal only in case, else an empty string."""
    if " " in string or len(string) > _MAX_HINTED_CHARACTERS:
        return ""
    modifiers, hyphen, base = string.rpartition("-")
    for variant in (f"{modifiers.upper()}{hyphen}{base}", string.capitalize(), string.upper()):
        if variant in _SIGNALS:
            return f"'{variant}' is the signal"
        if key_name(variant):
            return f"'{variant}' is the key"
    return ""


def confirmation(
    pane: str,
    steps: Sequence[Keystrokes],
    done: int,
    why_not: str | None,
    *,
    notes: Sequence[str] = (),
    is_for_screen: bool = False,
) -> str:
    """Return the confirmation of a call that sends steps to the pane of this name.

    It says more only where something may be wrong. The first `done` of all steps were sent.
    `why_not` says why the next one was not; None when all were. `notes` say what became of text
    that was typed. `is_for_screen`: a program draws on the screen, so text without Enter is usual.
    """
    hints = (step.hint for step in steps[:done] if step.hint)
    remarks = list(dict.fromkeys([*notes, *hints]))
    last = steps[max(0, done - 1)]
    # A single character is a key to most programs.
    is_unfinished = last.is_text and not last.keys and not last.text.endswith(("\n", "\r"))
    if done and is_unfinished and len(last.text) > 1 and not is_for_screen:
        remarks.insert(0, "Enter not pressed")
    sent = "Sent keys" if why_not is None else f"Sent {done} of {len(steps)} steps"
    shown = f" ({'; '.join(remarks[:_MAX_REMARKS])})" if remarks else ""
    text = f"{sent} to pane '{pane}'{shown}"
    if why_not is None:
        return text
    return f"{text}. Step {done + 1} was not sent: {why_not}."
