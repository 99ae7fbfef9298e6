"""The syntax of output to a terminal: characters, control characters, escape sequences. No I/O.

Sources: ECMA-48; xterm's "Control Sequences". The name of a control sequence is more than its final
character: a prefix (`<`, `=`, `>`, `?`) and intermediate characters (space to `/`) belong to it.
`CSI u` restores the cursor; `CSI > 5 u` and `CSI 2 SP u` are other sequences.
"""

import codecs
import itertools
import re
from collections.abc import Iterator

from .charsets import SHIFT_OUT

# No more of an incomplete sequence is held. Longer sequences do nothing.
MAX_HELD_BYTES = 4096
# tmux ignores a control sequence whose parameters are longer.
_MAX_PARAMETERS = 63

# Strings: OSC, DCS, PM, APC, SOS and tmux's title (`ESC k`), of any length. CAN, SUB and any other
# sequence end them, so ST (`ESC \`) needs no special case; BEL ends only OSC. Terminals ignore
# everything in them, even line feeds.
STRING = re.compile(
    r"""
    \033 (?:
        \] [^\a\030\032\033]* [\a\030\032]?
        | [P_^Xk] [^\030\032\033]* [\030\032]?
    )
    """,
    re.VERBOSE,
)
_STRING_OF_BYTES = re.compile(STRING.pattern.encode(), re.VERBOSE)
# All sequences that tmux(1) writes into a capture with attributes: SGR, and links (OSC 8).
SGR = r"\033\[[0-9;:]*m"
LINK = r"\033\][^\a\033]*(?:\a|\033\\)"
# Control characters: those of ASCII, and C1 (U+0080 to U+009F), which tmux ignores.
CONTROLS = re.compile("[\0-\037\177-\237]+")
C1_CONTROLS = re.compile("[\200-\237]+")
# Replaces a string that is removed: like a string, it ends a sequence and shows nothing.
CANCEL = "\030"

# The next piece of output, without strings. All groups are empty for a piece that does nothing,
# such as a sequence that is cut off by what can't belong to it.
TOKEN = re.compile(
    r"""
    \033 (?:
        \[ ([ -?]*)                                   # 1: parameters of a control sequence
           ([@-~]?)                                   # 2: its final character
        | ( [()][0B] | [0-Z\\^-~] )                   # 3: an escape sequence, without ESC
        | [ -/]+ [0-~]?
    )
    | ( [^\0-\037\177-\237]+ )                        # 4: printable characters
    | (.)                                             # 5: a control character
    """,
    re.DOTALL | re.VERBOSE,
)

# Sequences that move nothing or are cut off, and control characters that are ignored. An expression
# that begins with a set of characters is found faster than one that begins with alternatives.
_INVISIBLE = r"""
    [\033\a\017\0\030] (?:
        (?<! \033 )                                   # a control character
        | \[ [0-?]* m                                 # colours and attributes
        | \[ \? (?! [0-9;]* (?<! [0-9] ) 0* (?:47|1047|1049|2004%s) [;hl] )
          [0-9;]* [hl]                                # modes, but screens and pastes
        | (?! \(0 | \)[0B] ) [ -/]+ [0-~]             # designations of the usual sets, and others
        | [=>\\]                                      # the keypad's modes, and ST
        | (?: \[ [ -?]* | [ -/]* ) (?= [\0-\037\177] )   # what is cut off by a control character
        %s
    )
"""
# What has no effect anywhere, as long as the usual character sets are in use.
INVISIBLE = re.compile(_INVISIBLE % ("", ""), re.VERBOSE)
# What has no effect on a new, empty row, where there is nothing to erase either, nor on whether a
# program draws on the screen, as that of the cursor's visibility.
FRESH_INVISIBLE = re.compile(_INVISIBLE % ("|25", r"| \[ 0? K"), re.VERBOSE)

# Sequences that no terminal answers, without the escape character.
_SILENT = rb"""(?:
    \[ (?:
        [0-9:;]* [@-HJ-MPSTXZ`a-bd-mrsu]              # moves, erases, scrolls, colours, modes
        | \? [0-9;]* [hlrsJK]                         # private modes
        | > [0-9;]* [mnu] | [<=] [0-9;]* u            # the keyboard
        | [0-9]* \x20 q                               # the cursor's shape
        | ! p                                         # a soft reset
        | 2[23] [;0-9]* t                             # the stack of titles
    )
    | [()*+] [0-9A-Z]                                 # character sets
    | [6-9=>DEHMNOcn|}~] | \#[0-9]                    # escape sequences without a string
    | \] (?: [01278] | 9 | 133 | 633 | 7777 ) [;\a\033]  # a title, a directory, a link, a mark
    | \] [^\a\033?]* [\a\033]                         # a string without a question mark
    | \\                                              # the end of a string
    | \Z
)"""
# The beginning of a sequence that a terminal may answer, as if the answer were typed.
ANSWERED = re.compile(rb"\033 (?!" + _SILENT + rb")", re.VERBOSE)

# What does more to a terminal than to append to its last line: it goes back, goes to another row,
# edits rows, or changes how later lines are shown.
_MORE_THAN_APPENDS = re.compile(
    rb"""
    \033 (?:
        \[ (?:
            [0-9;]* (?: [@ABD-HJLMPSTXZ`dfru] | [1-9] K )
            | \? [0-9;]* (?:47|1047|1049) [;0-9]* [hl]
        )
        | [8DEMc] | [()]0
    )
    """,
    re.VERBOSE,
)
_LONE_RETURN = re.compile(rb"\r(?!\r*\n)")
_GOING_ELSEWHERE = (b"\b", b"\v", b"\f", SHIFT_OUT.encode())

# The part of a control sequence before its final character: prefix, parameters, intermediates. No
# terminal takes numbers of more than nine digits.
_PARAMETERS = re.compile(r"([<-?]?) ((?:[0-9]{0,9};)*[0-9]{0,9}) ([\x20-/]*)", re.VERBOSE)

# An incomplete sequence at the end of data.
_UNFINISHED = re.compile(
    rb"""
    \033 (?:
        \[ [ -?]*                                     # a control sequence
        | \] [^\a\030\032\033]*                      # OSC
        | [P_^Xk] [^\030\032\033]*                   # another string
        | [ -/]*                                      # another escape sequence
    )? \Z
    """,
    re.VERBOSE,
)


def control_sequence(parameters: str, final: str) -> tuple[str, list[int]] | None:
    """Return the name and the parameters of the control sequence `CSI parameters final`.

    Names look like `H`, `?h` or ` q`. There is at least one parameter; 0 stands for what is
    left out. None if the sequence is malformed or too long, or if a parameter has subparameters, as
    those of colours may.
    """
    match = _PARAMETERS.fullmatch(parameters)
    if match is None or len(parameters) > _MAX_PARAMETERS:
        return None
    prefix, words, intermediates = match.groups()
    numbers = [int(word or 0) for word in words.split(";")]
    return prefix + intermediates + final, numbers


def only_appends(data: bytes | bytearray) -> bool:
    """Tell whether output only appends to the terminal's last line, or ends it.

    If so, each of its lines can be shown by itself, and there are as many as line feeds.
    """
    if any(control in data for control in _GOING_ELSEWHERE):
        return False
    if data.count(b"\n") != data.count(b"\r\n"):  # a line feed alone keeps the column
        return False
    return not _MORE_THAN_APPENDS.search(data) and not _LONE_RETURN.search(data)


def line_starts(data: bytes | bytearray, end: int) -> Iterator[int]:
    """Yield the cursor after each line feed in data that ends at a cursor.

    Line feeds in strings end no line.
    """
    if b"\033" in data:
        data = without_feeds_in_strings(data)
    sizes = map(len, data.split(b"\n")[:-1])
    starts = itertools.accumulate(
        sizes, lambda start, size: start + size + 1, initial=end - len(data)
    )
    return itertools.islice(starts, 1, None)


def without_feeds_in_strings(data: bytes | bytearray) -> bytes:
    """Return data with blanks in place of the line feeds in strings."""
    return _STRING_OF_BYTES.sub(lambda string: string[0].replace(b"\n", b" "), data)


def unfinished(data: bytes) -> bytes:
    """Return the end of data that can't be interpreted without the bytes that follow.

    This is part of a sequence, a carriage return, or part of a character. It is empty if the data
    is complete.
    """
    sequence = unfinished_sequence(data)
    if sequence:
        return sequence
    if data.endswith(b"\r"):
        return b"\r"
    return data[len(data) - unfinished_character_bytes(data) :]


def unfinished_sequence(data: bytes) -> bytes:
    """Return the part of a sequence or string at the end of data, or b"" if there is none."""
    escape = data.rfind(b"\033")
    if escape >= 0 and _UNFINISHED.fullmatch(data, escape):
        return data[escape:]
    return b""


def unfinished_character_bytes(data: bytes) -> int:
    """Return the number of bytes at the end that begin a character of UTF-8 without ending it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-3:])
    held, _ = decoder.getstate()
    return len(held)
