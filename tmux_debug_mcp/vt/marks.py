r"""Marks of ours in the logs of panes, which no terminal shows: where the output of a command begins and ends. No I/O.

::

    ESC ] 7777 ; NONCE ; S STATUS ; COMMAND BEL     a shell begins to run a command; the status is that of the last one
    ESC ] 7777 ; NONCE ; STATUS BEL                 it is through with it
    ESC \ ESC ] 7777 ; NONCE ; STATUS BEL           the program of a pane has ended, maybe amid a string

Each has a nonce of its own, which nobody else can read before the mark is there.

The command is percent-encoded, so that a shell prints it as it is and a log can tell it: what was typed is a line
that reads the command from a file.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

MAX_MARK_BYTES = 1024

PANE_MARK = re.compile(rb"\033\\\033\]7777;([0-9a-f]{16});(\d{1,3})\a")
JOB_MARK = re.compile(rb"\033\]7777;[0-9a-f]{16};S?-?\d{1,10}(?:;[^\a\033]{0,1000})?\a")
# What may be the beginning of a mark whose end is missing, behind the end of a string for that of a pane.
PART_OF_MARK = re.compile(rb"(?:\033\\)?\033(?:\](?:7(?:7(?:7(?:7(?:;[^\a\033]{0,1000})?)?)?)?)?)?\Z")
# Where a command begins, in what a terminal got.
BEGIN = re.compile(r"\033\]7777;[0-9a-f]{16};S-?\d{1,10};([^\a\033]{0,1000})\a")
# What was typed for it.
_TYPED = re.compile(r"(?: \\?\.| (?:builtin )?source) /\S*/tmux-debug-mcp-\d+-[0-9a-f]{8}/\d+\.\d+-[a-z0-9-]+")

# The files of commands, wherever a shell names them.
FILES = "/tmux-debug-mcp-"
_FILE = re.compile(rf"{FILES}\d+-[0-9a-f]{{8}}/\d+\.\d+-[a-z0-9-]+(?:\.command)?")
# The path of their directory ends before that, and begins behind one of these.
_BEFORE_PATH = re.compile(r"[^\s'\"`:]{0,200}\Z")

_PATH_CHARACTERS = 200

_MOST_CHARACTERS = 300
_MOST_BYTES = 900
_SAFE = ' !#$&()*+,-./:;<=>?@[]^_`{|}~"'
# So far behind what was typed stands the mark at most.
_BETWEEN_CHARACTERS = 2048


def job_marks(begin: str, end: str) -> re.Pattern[bytes]:
    """Return what finds the two marks of a job: group 1 is the status of the first one, group 2 of the last one."""
    begun = rf"{begin};S(-?\d{{1,10}})(?:;[^\a\033]*)?"
    return re.compile(rf"\033\]7777;(?:{begun}|{end};(-?\d{{1,10}}))\a".encode())


def encoded(command: str) -> str:
    """Return a command as it stands in a mark: one line, cut where it is long, without quotes and backslashes."""
    line = " ⏎ ".join(command.strip("\n").split("\n"))
    shown = line[:_MOST_CHARACTERS]
    while len(text := quote(shown + "…" * (shown != line), safe=_SAFE)) > _MOST_BYTES:
        shown = shown[: len(shown) * 3 // 4]
    return text


def decoded(text: str) -> str:
    """Return the command of a mark, as it can be shown."""
    return _printable(unquote_to_bytes(text).decode(errors="replace"))


def one_line(command: str) -> str:
    """Return a command in one line, cut where it is long, as it can be shown."""
    line = " ⏎ ".join(command.strip("\n").split("\n"))
    return _printable(line[:_MOST_CHARACTERS] + "…" * (len(line) > _MOST_CHARACTERS))


def _printable(command: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in command)


def with_command(line: str, text: str) -> str | None:
    """Return a line with the command of a mark in the place of what was typed for it; None where that is not there."""
    all_found = list(_TYPED.finditer(line))
    if not all_found:
        return None
    last = all_found[-1]  # what is typed ahead is shown twice
    return line[: last.start()] + decoded(text) + line[last.end() :]


def without_paths(text: str) -> str:
    """Return a text without the names of the files that commands were in, as shells put them into their messages."""
    if FILES not in text:
        return text
    parts, at = [], 0
    for file in _FILE.finditer(text):
        path = _BEFORE_PATH.search(text, max(at, file.start() - _PATH_CHARACTERS), file.start())
        parts += [text[at : path.start() if path else file.start()], "command"]
        at = file.end()
    return "".join([*parts, text[at:]])


def with_commands(text: str, commands: Mapping[str, str]) -> str:
    """Return a text with commands instead of what was typed for them, given commands by the names of their files."""
    if FILES not in text:
        return text
    shown = _TYPED.sub(lambda typed: commands.get(typed[0].rpartition("/")[2], "command"), text)
    return without_paths(shown)


def is_typed(data: bytes | bytearray) -> bool:
    """Tell whether data ends with a line that has what was typed for a command."""
    line = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :][-_BETWEEN_CHARACTERS:]
    return _TYPED.search(line.decode(errors="replace")) is not None


def readable(data: bytes) -> str:
    """Return raw text without marks, and with commands instead of what was typed for them, as far as that is whole."""
    text = data.decode(errors="replace")
    shown, at = "", 0
    for begin in BEGIN.finditer(text):
        before = text[at : begin.start()]
        near = max(0, len(before) - _BETWEEN_CHARACTERS)
        shown += before[:near] + (with_command(before[near:], begin[1]) or before[near:])
        at = begin.end()
    return JOB_MARK.sub(b"", (shown + text[at:]).encode(errors="replace")).decode(errors="replace")
