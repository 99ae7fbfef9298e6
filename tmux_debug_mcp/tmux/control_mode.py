"""tmux's control mode: bytes to blocks and notifications, arguments to command lines.

No I/O, no clock, no process. The rules, from tmux(1), "CONTROL MODE", and from trying:

1. Output is lines. `%begin T N F` opens a block and `%end T N F` or `%error T N F` with the same three
   words closes it: T seconds, N the server's counter, F 1 for our lines and 0 for what the server did on
   its own. Every other line inside is the block's, also one that looks like a guard of another block.
2. A command line answers with a block per command, up to and including the first that failed.
3. Lines outside a block are notifications. Some versions print notifications that a command causes inside
   that command's block.
4. Bytes from a pane would make guards forgeable. So no format with text that a pane chooses goes through
   here: formats are ids and numbers, captures go through files.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Inside double quotes tmux's lexer acts on `"`, `\`, `$` and `~`, and its 3.3 takes the byte 0xff for the end
# of the file. What is not printable ASCII goes as three-digit octal: safe for every byte but NUL.
_OCTAL = {byte: f"\\{byte:03o}" for byte in range(256) if byte not in range(32, 127) or byte in b'"\\$~'}

_GUARD = re.compile(rb"%(begin|end|error) (\d+ \d+ (\d+))")


@dataclass(frozen=True, slots=True)
class Block:
    """The answer to one command of ours: its lines without line feeds, and whether tmux did it."""

    ok: bool
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Notification:
    """A line that tmux printed outside our blocks, without its line feed."""

    line: bytes


def quote(argument: str | bytes) -> str:
    """Return the argument as one word of a command line.

    Raises:
        ValueError: It has a NUL, which tmux can't be told in a command line.
    """
    # File names may hold bytes that are no characters; os.fsdecode has made surrogates of them.
    data = argument.encode(errors="surrogateescape") if isinstance(argument, str) else argument
    if 0 in data:
        raise ValueError(argument)
    return '"' + data.decode("latin-1").translate(_OCTAL) + '"'


def command_line(commands: Iterable[Sequence[str | bytes]]) -> bytes:
    """Return the line that runs the commands in order until one fails, each given as its words.

    The commands of a line run without anything between them: no other client's command and no output
    of a pane.
    """
    return " ; ".join(" ".join(map(quote, words)) for words in commands).encode("ascii") + b"\n"


def version(text: str) -> tuple[int, int] | None:
    """Return major and minor of what `tmux -V` or `#{version}` says, or None for a version without a number.

    Such a version is that of newer sources: `tmux master`.
    """
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


class Parser:
    """A stream of control mode output, fed in pieces of any size."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._open: bytes | None = None  # the words that close the open block
        self._ours = False
        self._lines: list[bytes] = []

    def feed(self, data: bytes) -> list[Block | Notification]:
        """Return what the bytes complete, in order.

        Blocks that the server began on its own are left out.
        """
        start = len(self._partial)
        self._partial += data
        if self._partial.find(b"\n", start) < 0:
            return []
        *lines, rest = self._partial.split(b"\n")
        self._partial = rest
        events = (self._line(bytes(line)) for line in lines)
        return [event for event in events if event is not None]

    def _line(self, line: bytes) -> Block | Notification | None:
        guard = _GUARD.fullmatch(line)
        if self._open is None:
            if guard is None or guard[1] != b"begin":
                return Notification(line)
            self._open, self._ours, self._lines = guard[2], guard[3] == b"1", []
            return None
        if guard is None or guard[1] == b"begin" or guard[2] != self._open:
            self._lines.append(line)
            return None
        self._open = None
        return Block(guard[1] == b"end", tuple(self._lines)) if self._ours else None
