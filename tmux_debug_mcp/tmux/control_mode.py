"""tmux's control mode: bytes to blocks and notifications, arguments to command lines.

No I/O, no clock, no process. The rules:

1. Output is lines. `%begin T N F` opens a block; `%end T N F` or `%error T N F` with the same three
   words closes it. T is a time in seconds, N the server's command counter. F is 1 for a command of
   ours and 0 for a command that the server ran on its own. All lines in between belong to the
   block, even if they look like a guard of another block.
2. A command line is answered by one block per command, up to and including the first that fails.
3. Lines outside a block are notifications. Some tmux versions print notifications that a command
   causes inside that command's block.
4. A program in a pane could forge guards if its text were printed here. So formats are limited to
   ids and numbers, and captures go through files.

Source: tmux(1), "CONTROL MODE", for 1 and 3; experiments, for 2 and 4.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Bytes to write as \ooo in double quotes: non-ASCII, control characters and `"`, `\`, `$`, `~`.
# tmux's lexer expands the last four, and in tmux 3.3 it takes a byte 0xff for the end of file.
_OCTAL = {
    byte: f"\\{byte:03o}" for byte in range(256) if byte not in range(32, 127) or byte in b'"\\$~'
}

_GUARD = re.compile(rb"%(begin|end|error) (\d+ \d+ (\d+))")


@dataclass(frozen=True, slots=True)
class Block:
    """The answer to one command of ours: what it printed, or its error; without line feeds."""

    ok: bool
    lines: tuple[bytes, ...]


def quote(argument: str | bytes) -> str:
    """Return an argument as one double-quoted word of a command line, in ASCII.

    A NUL, which a command line can't hold, is a ValueError.
    """
    data = argument
    if isinstance(data, str):
        # os.fsdecode turns bytes in file names that are not UTF-8 into surrogates.
        data = data.encode(errors="surrogateescape")
    if 0 in data:
        raise ValueError(argument)
    return '"' + data.decode("latin-1").translate(_OCTAL) + '"'


def command_line(commands: Iterable[Sequence[str | bytes]]) -> bytes:
    """Return the line, with its line feed, that runs commands in order until one fails.

    tmux runs the commands of one line without interruption: no other client's command and no output
    of a pane comes between them. A NUL in a word is a ValueError.
    """
    quoted = [" ".join(map(quote, words)) for words in commands]
    return " ; ".join(quoted).encode("ascii") + b"\n"


class ControlModeParser:
    """Parses a stream of control mode output, fed in pieces of any size."""

    def __init__(self) -> None:
        self._partial_line = bytearray()
        self._open_guard: bytes | None = None  # the three words of the open block's %begin
        self._is_ours = False
        self._lines: list[bytes] = []

    def feed(self, data: bytes) -> list[Block | bytes]:
        """Return the blocks and notifications that the bytes complete, in order.

        A notification is a line without its line feed. Blocks of commands that the server ran on
        its own are left out.
        """
        start = len(self._partial_line)
        self._partial_line += data
        if self._partial_line.find(b"\n", start) < 0:
            return []
        *lines, self._partial_line = self._partial_line.split(b"\n")
        events: list[Block | bytes] = []
        for line in map(bytes, lines):
            guard = _GUARD.fullmatch(line)
            if self._open_guard is None:
                if guard and guard[1] == b"begin":
                    self._open_guard = guard[2]
                    self._is_ours = guard[3] == b"1"
                    self._lines = []
                else:
                    events.append(line)
            elif guard is None or guard[1] == b"begin" or guard[2] != self._open_guard:
                self._lines.append(line)
            else:
                self._open_guard = None
                if self._is_ours:
                    events.append(Block(guard[1] == b"end", tuple(self._lines)))
        return events
