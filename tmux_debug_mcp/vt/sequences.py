"""What a stream of bytes to a terminal is made of: characters, control characters and escape sequences. No I/O.

The final character of a control sequence is not its whole name: a prefix (`<`, `=`, `>`, `?`) and intermediate
characters (blank to `/`) belong to that. `CSI u` moves the cursor, `CSI > 5 u` and `CSI 2 SP u` are others.
"""

import re
from typing import NamedTuple

# A string such as a title that is not finished after this much is no string.
_MAX_HELD_BYTES = 4096

_STRING = r"\][^\a\033]*(?:\a|\033\\)|[P_^Xk][^\033]*\033\\"
# A control sequence that is broken off, by another one, by CAN or by SUB, does nothing.
_SEQUENCE = rf"\033(?:\[([ -?]*)(?:([@-~])|[\030\032]|(?=\033)|\Z)|{_STRING}|([()][0B]|[0-Z\\^-~])|[ -/]+[0-~])"
# Groups: a control sequence up to its final character, and that; another sequence without the escape character; printed
# characters; a control character. All are empty for what does nothing.
TOKEN = re.compile(rf"{_SEQUENCE}|([^\0-\037\177]+)|(.)", re.DOTALL)
# Sequences that move nothing, and a bell: colours, most modes, strings, the usual character sets; and an erasing of the
# rest of the line, where there is none.
FRESH_INVISIBLE = re.compile(
    rf"\033(?:\[[0-?]*m|\[0?K|\[\?(?!(?:47|1047|1049|2004)[hl])[0-9;]*[hl]|{_STRING}"
    r"|(?!\(0|\)[0B])[ -/]+[0-~]|[=>])|[\a\017\0]"
)

# What a terminal may answer: any sequence but those that surely have no answer. These are control sequences that move,
# erase, scroll, colour or set modes, those for the cursor's shape, the keyboard and the title's stack, escape sequences
# without a string, and strings that set a title, a link, a directory or a mark, or have no question mark.
_SILENT = (
    rb"\[(?:[0-9:;]*[@-HJ-MPSTXZ`a-bd-mrsu]|\?[0-9;]*[hlrsJK]|>[0-9;]*[mnu]|[<=][0-9;]*u|[0-9]* q|!p|2[23][;0-9]*t)"
    rb"|[()*+][0-9A-Z]|[6-9=>DEHMNOcn|}~]|#[0-9]|\](?:[01278]|9|133|633|7777)[;\a\033]|\][^\a\033?]*[\a\033]|\\|\Z"
)
ANSWERED = re.compile(rb"\033(?!" + _SILENT + rb")")

# Blanks are in the names of some programs, such as `tmux: server`.
_NO_NAME = re.compile(r"[^\w .:+@%~/#=-]")

# A number of more digits is none that a terminal knows.
_PARAMETERS = re.compile(r"([<-?]?)((?:[0-9]{0,9};)*[0-9]{0,9})([ -/]*)")
_UNFINISHED = re.compile(rb"\033(?:\[[ -?]*|[\]P_^Xk][^\a\033]*\033?|[ -/]*)?\Z")


class ControlSequence(NamedTuple):
    """A control sequence.

    Attributes:
        name: Its prefix, intermediate characters and final character, such as `H`, `?h` or ` q`.
        numbers: Its parameters; one that is left out is 0.
    """

    name: str
    numbers: list[int]


def control_sequence(before: str, final: str) -> ControlSequence | None:
    """Return what `CSI before final` is, or None when it is malformed or has parameters of parts, as colours have."""
    found = _PARAMETERS.fullmatch(before)
    if found is None:
        return None
    prefix, parameters, intermediates = found.groups()
    return ControlSequence(prefix + intermediates + final, [int(word or 0) for word in parameters.split(";")])


def unfinished(data: bytes) -> bytes:
    """Return the end of the data that needs more to be understood."""
    start = max(0, len(data) - _MAX_HELD_BYTES)
    at = data.rfind(b"\033", start)
    if at > 0 and data[at:] == b"\033" and data[at - 1 : at] != b"\033":
        # Perhaps the first half of the end of a string.
        string = data.rfind(b"\033", start, at)
        if string >= 0 and _UNFINISHED.fullmatch(data, string):
            return data[string:]
    if at >= 0 and _UNFINISHED.fullmatch(data, at):
        return data[at:]
    if data.endswith(b"\r"):
        return b"\r"
    return data[len(data) - unfinished_character_bytes(data) :]


def unfinished_character_bytes(data: bytes) -> int:
    """Return how many bytes at the end of UTF-8 are the beginning of a character whose end is missing."""
    for length in (1, 2, 3):
        lead = data[-length:][:1]
        if len(data) >= length and lead >= b"\xc0":
            needs = 2 if lead < b"\xe0" else 3 if lead < b"\xf0" else 4
            return length if length < needs else 0
        if not b"\x80" <= lead < b"\xc0":
            break
    return 0


def plain_name(name: str) -> str:
    """Return the name of a program, which may have chosen any, as one word that is no more than a name."""
    return _NO_NAME.sub("?", name)
