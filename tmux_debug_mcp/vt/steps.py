"""The `keys` of `tmux_send_keys`, what a person would type, as steps of keystrokes. No I/O.

`keys` defines which words are keys. `read` decides what a string means:

1. Only key names, separated by spaces: they are pressed in order. Line feeds at the end press
   Enter.
2. Otherwise text. Line feeds and the word Enter at its end press Enter.
3. A word that only looks like a key, and text with a key before or after it, are errors:
   nothing is typed by accident.

CRLF counts as a line feed. `steps` turns strings into steps, which are sent in order:

1. Each line of a text is a step, with the Enter at its end: a program that a line starts gets the
   next lines.
2. Keys that are pressed together are a step, and so is a signal.
3. A paste is one step, whatever it contains.
"""

import itertools
import json
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from tmux_debug_mcp.errors import KeysError, MixedKeysError

from .keys import key_name, looks_like_key

MAX_KEYS_BYTES = 1 << 20
# Keys that one string may press.
MAX_PRESSED = 20_000

# The longest text that messages show.
_MAX_SHOWN_CHARACTERS = 40
# An error repeats no more of keys, as the steps that they should be.
_MAX_ADVICE_CHARACTERS = 1000
# How many words at the start of a text are checked for keys.
_MAX_CHECKED_WORDS = 100
# How much of the start and end of a text is searched for keys before and after it.
_MAX_CHECKED_CHARACTERS = 2000

# Longer text is pasted into a text box. Programs take it for a paste anyway, in pieces.
_MAX_TYPED_CHARACTERS = 200

# Key names that are English words too, so that a text may begin or end with them.
_ENGLISH = frozenset(
    {"Enter", "Return", "Space", "Delete", "Insert", "DC", "IC"}
    | {"Up", "Down", "Left", "Right", "Home", "End"}
)

# Keys that the terminal turns into signals.
_INTERRUPTS = frozenset(["C-c", "C-\\", "C-z"])

# Key names are separated by spaces, those beside a text also by line feeds.
_KEY_WORD = re.compile("[^ ]+")
_OUTER_WORD = re.compile("[^ \n]+")
# NUL ends arguments of commands, and half a surrogate pair is not a character.
_NOT_TYPEABLE = re.compile("[\0\ud800-\udfff]")
# The end of a bracketed paste. Source: xterm's "Control Sequences", Bracketed Paste Mode.
_PASTE_END = "\033[201~"

MAX_STEPS = 1000

_SIGNALS = frozenset(signal.Signals.__members__)
_LIKE_A_SIGNAL = re.compile("SIG[A-Z0-9]{2,10}")
# Longer strings are text: no list of signals, and no array in a string.
_MAX_SIGNALS_CHARACTERS = 1000
# Longer words get no remark on a key in another case.
_MAX_REMARKED_CHARACTERS = 20
# Remarks that a confirmation makes.
_MAX_REMARKS = 3


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """What to send to a pane: first the text, then the keys; or a signal.

    Attributes:
        text: Typed as it is, with a carriage return for Enter. Empty if only keys are pressed.
        is_paste: The text is pasted: in brackets if the program asks for that.
        keys: tmux's names of the keys to press.
        remark: What the caller may have meant instead, for the confirmation.
        signal: The signal to send instead, such as `SIGTERM`; empty if there is none.
        is_text: The keystrokes come from text, which may be an empty line, not from key names.
    """

    text: str
    is_paste: bool
    keys: tuple[str, ...]
    remark: str = ""
    signal: str = ""
    is_text: bool = True

    @property
    def interrupts(self) -> bool:
        """Whether this is for what runs now, not for what reads the terminal next."""
        only_interrupts = not self.text and _INTERRUPTS.issuperset(self.keys)
        return bool(self.signal) or (only_interrupts and bool(self.keys))

    @property
    def ends_with_escape(self) -> bool:
        """Whether Escape comes last, with which the codes of other keys begin."""
        return self.keys[-1] == "Escape" if self.keys else self.text.endswith("\033")

    def has_line_over(self, max_bytes: int) -> bool:
        """Whether a line of the text has more bytes, without its end."""
        if len(self.text) * 4 <= max_bytes:
            return False
        return any(len(line.encode()) > max_bytes for line in re.split("[\r\n]", self.text))

    def only_text(self) -> "Keystrokes":
        """Return the text without the keys, pasted if it is long and surely is text."""
        is_long = len(self.text) > _MAX_TYPED_CHARACTERS and self.text.isprintable()
        return replace(self, keys=(), is_paste=self.is_paste or is_long)

    def only_keys(self) -> "Keystrokes":
        """Return the keys without the text."""
        return replace(self, text="", is_paste=False)


INTERRUPT = Keystrokes("", is_paste=False, keys=("C-c",))


class ParsedKeys(NamedTuple):
    """What a `keys` string means: tmux's names of keys, or a text if there are none.

    The text leaves out what presses Enter after it, `enters` times.
    """

    names: tuple[str, ...]
    text: str = ""
    enters: int = 0


def check(keys: str, called: str = "Parameter 'keys'") -> None:
    """Check that a string can be typed; errors call it as given.

    Raises:
        KeysError: The string is empty or too long, or contains a character that can't be typed.
    """
    if not keys:
        raise KeysError(
            f"{called} is empty. Give the text to type or the keys to press, such as 'ls Enter'."
        )
    if _NOT_TYPEABLE.search(keys):
        raise KeysError(
            f"{called} contains a NUL character or half a surrogate pair. Remove it; 'C-Space' "
            "sends NUL."
        )
    size = len(keys.encode())
    if size > MAX_KEYS_BYTES:
        raise KeysError(
            f"{called} has {size} bytes; one call takes at most {MAX_KEYS_BYTES}. "
            "Send it in parts, or write a file and use that."
        )


def read(keys: str) -> ParsedKeys:
    """Return what a string that is not literal and has passed `check` means.

    Raises:
        KeysError: A word only looks like a key, or the string presses too many keys.
        MixedKeysError: It contains text, and a key before or after it.
    """
    keys = keys.replace("\r\n", "\n")
    body = keys.rstrip("\n")
    enters = len(keys) - len(body)
    _check_pressed(enters)
    names = _key_names(body)
    if names is not None:
        _check_pressed(len(names) + enters)
        return ParsedKeys((*names, *["Enter"] * enters))
    _reject_wrong_keys(body)
    end = len(body)
    words = 0
    while body.endswith((" Enter", "\nEnter"), 0, end):
        end -= len(" Enter")
        words += 1
        _check_pressed(enters + words)
    if words:
        # The last word and the line feed after it mean the same Enter.
        enters = words + max(enters - 1, 0)
    text = body[:end]
    _reject_mixture(text, enters)
    return ParsedKeys((), text, enters)


def _check_pressed(count: int) -> None:
    if count > MAX_PRESSED:
        raise KeysError(
            f"Parameter 'keys' presses more than {MAX_PRESSED} keys. Send them in parts, "
            "or set literal to type this as text, with line feeds for Enter."
        )


def _key_names(body: str) -> list[str] | None:
    """Return tmux's names for the keys in a string; None if it has other words, or only blanks."""
    if body and not body.strip(" "):
        return None
    names: list[str] = []
    known: dict[str, str] = {}  # most strings repeat a few keys
    for match in _KEY_WORD.finditer(body):
        word = match[0]
        name = known.get(word) or key_name(word)
        if name is None:
            return None
        known[word] = name
        names.append(name)
        _check_pressed(len(names))
    return names


def _reject_wrong_keys(body: str) -> None:
    """Refuse a string of keys in which some words only look like keys."""
    words = body.split(maxsplit=_MAX_CHECKED_WORDS)[:_MAX_CHECKED_WORDS]
    wrong = [word for word in words if key_name(word) is None]
    if wrong and all(looks_like_key(word) for word in wrong):
        raise KeysError(
            f"'{wrong[0][:_MAX_SHOWN_CHARACTERS]}' looks like a key, but isn't one. Keys are named "
            "like Enter, Escape, Up, F5, C-c, M-x, S-Up; set literal to type exactly this, with a "
            "line feed for Enter."
        )


def _reject_mixture(text: str, enters: int) -> None:
    """Refuse text that begins or ends with keys, unless their names are English words."""
    # Of a long text, the first and the last words.
    first = _OUTER_WORD.finditer(text, 0, _MAX_CHECKED_CHARACTERS)
    last = _OUTER_WORD.finditer(text, max(0, len(text) - _MAX_CHECKED_CHARACTERS))
    by_start = {match.start(): match for match in itertools.chain(first, last)}
    matches = [by_start[start] for start in sorted(by_start)]
    words = [match[0] for match in matches]
    are_keys = [key_name(word) is not None for word in words]
    if all(are_keys):
        return
    head = tail = 0
    # Several words, all keys or single characters, as in `Up j`.
    are_short = len(words) > 1 and all(
        is_key or len(word) == 1 for word, is_key in zip(words, are_keys, strict=True)
    )
    if are_keys[0] and (are_short or words[0] not in _ENGLISH):
        head = are_keys.index(False)
    if are_keys[-1] and words[-1] not in _ENGLISH:
        tail = are_keys[::-1].index(False)
    if not head and not tail:
        return
    start = matches[head].start() if head else 0
    end = matches[-tail - 1].end() if tail else len(text)
    parts = [" ".join(words[:head]), text[start:end], " ".join(words[len(words) - tail :])]
    better = [part for part in parts if part]
    better[-1] += " Enter" * enters
    shown = json.dumps(better, ensure_ascii=False)
    if len(shown) > _MAX_ADVICE_CHARACTERS:
        better = [part if len(part) <= _MAX_SHOWN_CHARACTERS else "the text" for part in better]
        shown = json.dumps(better, ensure_ascii=False)
    raise MixedKeysError(words[0 if head else -1], shown)


def pressed(names: tuple[str, ...]) -> Keystrokes:
    """Return the keystrokes that press keys, given tmux's names of them."""
    return Keystrokes("", is_paste=False, keys=names, is_text=False)


def typed(text: str, enters: int, remark: str = "") -> Keystrokes:
    """Return the keystrokes that type a line; the confirmation makes the remark."""
    return Keystrokes(text, is_paste=False, keys=("Enter",) * enters, remark=remark)


def typed_at_once(text: str) -> Keystrokes:
    """Return the keystrokes that type all lines of a text at once, each line feed as Enter.

    Raises:
        KeysError: The text is empty or too long, or contains a character that can't be typed.
    """
    check(text)
    lines = text.removesuffix("\n")
    keys = ("Enter",) if lines != text else ()
    return Keystrokes(lines.replace("\n", "\r"), is_paste=False, keys=keys)


def pasted(text: str, enters: int = 0) -> Keystrokes:
    """Return the keystrokes that paste a text and press Enter after it.

    Raises:
        KeysError: The text contains the sequence that ends a paste.
    """
    if _PASTE_END in text:
        raise KeysError(
            "Parameter 'keys' contains ESC [ 201 ~, which would end the paste early and run the "
            "rest. Remove it, or set literal to type the lines one by one."
        )
    return Keystrokes(text, is_paste=True, keys=("Enter",) * enters)


def steps(
    keys: str | Sequence[str], *, literal: bool = False, paste: bool = False
) -> list[Keystrokes]:
    """Return what the steps type and press, in order.

    In literal strings no word is a key or a signal, and a line feed is Enter. Strings to paste are
    left as they are.

    Raises:
        KeysError: A string is not valid, as for `read`, or only looks like a signal; one of
            several strings that are literal or pasted is the name of a key; or there are no steps,
            or more than 1,000.
    """
    strings = [keys] if isinstance(keys, str) else keys or [""]
    if len(strings) > 1 and (literal or paste):
        _reject_keys(strings, "literal" if literal else "paste")
    result: list[Keystrokes] = []
    for number, string in enumerate(strings, 1):
        if len(strings) == 1:
            check(string)
        else:
            check(string, f"Step {number}")
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
    after each line, and `enters` times after the last.
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
            f"'{key}' is a key name, but with parameter '{argument}' it would be typed as text, "
            "like the rest. A line feed at the end of the text is Enter in the same write. Send "
            "other keys separately. To type the name itself, send it alone."
        )


def _reject_json(string: str) -> None:
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
    result.append(typed(last, reading.enters, _remark_on(string)))
    return result


def _signal_or_key(word: str) -> Keystrokes | None:
    if word in _SIGNALS:
        return Keystrokes("", is_paste=False, keys=(), signal=word, is_text=False)
    name = key_name(word)
    return pressed((name,)) if name else None


def _remark_on(string: str) -> str:
    """Return a remark if a word may be meant as a key or a signal, else an empty string.

    It is all that is typed and differs from a name only in case, or it is a name before other text.
    """
    first, _, others = string[:_MAX_REMARKED_CHARACTERS].partition(" ")
    if others and key_name(first):
        return f"'{first}' is typed as text"
    if others or len(string) > _MAX_REMARKED_CHARACTERS:
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
    remarks: Sequence[str] = (),
    is_for_screen: bool = False,
) -> str:
    """Return the confirmation of a call that sends steps to the pane of this name.

    It says more only where something may be wrong. The first `done` of all steps were sent.
    `why_not` says why the next step was not; None when all were. `remarks` say what became of
    typed text. `is_for_screen`: a program draws on the screen, so text without Enter is usual.
    """
    on_steps = (step.remark for step in steps[:done] if step.remark)
    all_remarks = list(dict.fromkeys([*remarks, *on_steps]))
    last = steps[max(0, done - 1)]
    # A single character is a key to most programs.
    is_unfinished = last.is_text and not last.keys and not last.text.endswith(("\n", "\r"))
    if done and is_unfinished and len(last.text) > 1 and not is_for_screen:
        all_remarks.insert(0, "Enter not pressed")
    sent = "Sent keys" if why_not is None else f"Sent {done} of {len(steps)} steps"
    shown = f" ({'; '.join(all_remarks[:_MAX_REMARKS])})" if all_remarks else ""
    text = f"{sent} to pane '{pane}'{shown}"
    if why_not is None:
        return text
    return f"{text}. Step {done + 1} was not sent: {why_not}."
