r"""The marks in the logs of panes: where a command begins and ends. No I/O.

Marks are escape sequences of ours, which terminals don't show.

::

    ESC ] 7777 ; NONCE ; S STATUS ; COMMAND BEL    a shell begins a command, after one with STATUS
    ESC ] 7777 ; NONCE ; STATUS BEL                the command has ended
    ESC ] 7777 ; NONCE ; \ BEL                     a fish shell has read a line; `\\`: another shell
    ESC \ ESC ] 7777 ; NONCE ; STATUS BEL          the program of a pane has ended

The last begins with the end of a string, because a program may be killed within a string. Each mark
has a nonce of its own, which a program has to look for in our files.

For a command, we type a line that makes the shell read the command from a file; elsewhere, from its
terminal. The mark holds the command itself, percent-encoded, so that the text of a log can show it.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

from .printable import visible

# No mark is longer.
MAX_MARK_BYTES = 1024

PANE_MARK = re.compile(rb"\033\\\033\]7777;([0-9a-f]{16});(\d{1,3})\a")
# Groups: the nonce, the status before a command, and that of a command which has ended.
JOB_MARK = re.compile(
    rb"\033\]7777;([0-9a-f]{16});"
    rb"(?:S(-?\d{1,10})(?:;[^\a\033]{0,1000})?|(-?\d{1,10})|\\{1,2})\a"
)
# The beginning of a mark at the end of data.
PART_OF_MARK = re.compile(
    rb"(?:\033\\)?\033(?:\](?:7(?:7(?:7(?:7(?:;[^\a\033]{0,1000})?)?)?)?)?)?\Z"
)
# The mark of a command's beginning. Group: the command, percent-encoded.
BEGIN = re.compile(r"\033\]7777;[0-9a-f]{16};S-?\d{1,10};([^\a\033]{0,1000})\a")

# The line that is typed for a command: `.` or `source`, and the path of the command's file; or what
# reads the command from the terminal, which has a nonce in it.
_TYPED = re.compile(
    r"""
    (?<! \+ ) (?: \x20 \\?\. | \x20 (?:builtin\x20)? source )  # a trace has `+` before it
    \x20 / \S* / (?P<file> tmux-debug-mcp-\d+-[0-9a-f]{8} / \d+\.\d+-[a-z0-9-]+ ) (?![\w.-])
    | \x20 eval\x20 [("] [^\n]{0,70} \\033\]7777; (?P<nonce> [0-9a-f]{16} ) ; [^\n]{0,180}
    (?: \|string\x20collect\) | 2>&-\)" )
    """,
    re.VERBOSE,
)

# The directory of commands' files, in any path; and what precedes a nonce where it is typed.
FILES = "/tmux-debug-mcp-"
NONCE = "\\033]7777;"
_PATH = rf"(?:/[^\s'\"`:]{{0,200}})?{FILES}\d+-[0-9a-f]{{8}}/\d+\.\d+-[a-z0-9-]+(?:\.command)?"
# A line that a shell prints about what it runs, up to the path of a command's file. In raw text,
# the line may begin with what the line editor leaves there.
_MESSAGE = re.compile(
    rf"""
    (?: \r | \033\[[\d;?]*[A-Za-z] )*
    (?: (?:[\w./-]+:\x20 (?:\d+:\x20)?)? (?P<error> {_PATH} ) (?= : | \x20\(line\x20\d+\): )
      | \++ (?P<trace> {_PATH} ) (?= : )
      | \++ \x20 (?:(?:builtin|command)\x20)? \\?\.\x20 (?P<source> {_PATH} ) (?= \r?$ )
      | (?: from\x20sourcing | [\t\x20]+called\x20on\x20line\x20\d+\x20of ) \x20file\x20
        (?P<frame> {_PATH} ) (?= \r?$ )
      | source:\x20Error\x20while\x20reading\x20file\x20' (?P<file> {_PATH} ) (?= '\r?$ )
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
# A path that begins further into its line is not part of a message.
_MAX_BEFORE_FILE = 500

# The longest command that is shown, and the longest that fits into a mark once it is encoded.
_MAX_SHOWN_CHARACTERS = 300
_MAX_ENCODED_BYTES = 900
# Characters that need no encoding: no quotes, backslashes, percent signs or control characters.
_SAFE = ' !#$&()*+,-./:;<=>?@[]^_`{|}~"'
# The mark comes within this many characters of the typed line.
MAX_TO_MARK = 2048


def encoded(command: str) -> str:
    """Return a command as a mark holds it: in one line, shortened, percent-encoded."""
    line = _joined(command)
    shown = line[:_MAX_SHOWN_CHARACTERS]
    while True:
        text = quote(shown if shown == line else f"{shown}…", safe=_SAFE)
        if len(text) <= _MAX_ENCODED_BYTES:
            return text
        shown = shown[: len(shown) * 3 // 4]


def _joined(command: str) -> str:
    return " ⏎ ".join(command.strip("\n").split("\n"))


def decoded(text: str) -> str:
    """Return the command in a mark, safe to print."""
    return visible(unquote_to_bytes(text).decode(errors="replace"))


def one_line(command: str) -> str:
    """Return a command in one line, shortened, safe to print."""
    line = _joined(command)
    if len(line) > _MAX_SHOWN_CHARACTERS:
        line = line[:_MAX_SHOWN_CHARACTERS] + "…"
    return visible(line)


def with_command(line: str, text: str) -> str | None:
    """Return a line with a mark's command, given encoded, in place of what was typed for it.

    None if nothing was typed for a command in this line.
    """
    matches = list(_TYPED.finditer(line))
    if not matches:
        return None
    typed = matches[-1]  # text typed ahead of a prompt is echoed twice
    return line[: typed.start()] + decoded(text) + line[typed.end() :]


def without_paths(text: str) -> str:
    """Return a text with `command` for the path of a command's file in the messages of shells.

    The path stays wherever else a program has printed it.
    """
    if FILES not in text:
        return text
    parts: list[str] = []
    position = 0
    found = text.find(FILES)
    while found >= 0:
        start = text.rfind("\n", 0, found) + 1
        message = None
        if found - start <= _MAX_BEFORE_FILE:
            message = _MESSAGE.match(text, start)
        if message and message.lastgroup:
            parts += [text[position : message.start(message.lastgroup)], "command"]
            position = message.end(message.lastgroup)
        line_end = text.find("\n", found)
        found = text.find(FILES, line_end) if line_end >= 0 else -1
    return "".join([*parts, text[position:]])


def with_commands(text: str, commands: Mapping[str, str]) -> str:
    """Return a text with commands in place of what was typed for them.

    `commands` maps the names of their files, or the nonces, to them. Others are shown as `command`.
    """
    if FILES not in text and NONCE not in text:
        return text

    def command_of(typed: re.Match[str]) -> str:
        _, _, name = (typed["file"] or typed["nonce"]).rpartition("/")
        return commands.get(name, "command")

    return without_paths(_TYPED.sub(command_of, text))


def without_marks(data: bytes) -> tuple[bytes, bytes]:
    """Return data without marks, and separately the beginning of a mark at its end."""
    part = PART_OF_MARK.search(data, max(0, len(data) - MAX_MARK_BYTES))
    end = part.start() if part else len(data)
    return JOB_MARK.sub(b"", PANE_MARK.sub(b"", data[:end])), data[end:]


def is_typed(data: bytes | bytearray) -> bool:
    """Tell whether the last line of data contains what is typed for a command."""
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    line = data[start:][-MAX_TO_MARK:]
    return _TYPED.search(line.decode(errors="replace")) is not None


def readable(data: bytes) -> str:
    """Return raw text without marks, and with commands in place of what was typed for them.

    An incomplete mark at the end of the data stays.
    """
    text = data.decode(errors="replace")
    parts: list[str] = []
    position = 0
    for mark in BEGIN.finditer(text):
        before = text[position : mark.start()]
        start = max(0, len(before) - MAX_TO_MARK)
        near = before[start:]
        parts += [before[:start], with_command(near, mark[1]) or near]
        position = mark.end()
    parts.append(text[position:])
    without_begins = "".join(parts).encode(errors="replace")
    return JOB_MARK.sub(b"", without_begins).decode(errors="replace")
