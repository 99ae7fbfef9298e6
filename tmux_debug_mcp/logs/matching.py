"""Lines that a log gets, and patterns for them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.vt.drawing import Drawing
from tmux_debug_mcp.vt.echo import Echo, Echoes, Sent

from .log import Log
from .positioning import transcript_from

MAX_PATTERN_CHARACTERS = 1000
# What a compiled pattern may take; a larger one takes its time, too.
_MAX_PATTERN_BYTES = 1 << 20


class Matcher:
    """The patterns of a wait.

    Raises:
        ArgumentError: One can't be used.
    """

    def __init__(self, pattern: str | None, stop_pattern: str | None) -> None:
        self._patterns = [
            (reason, compiled(name, text))
            for reason, name, text in (
                ("matched", "pattern", pattern),
                ("stopped", "stop_pattern", stop_pattern),
            )
            if text is not None
        ]

    @property
    def has_patterns(self) -> bool:
        """Whether there is one."""
        return bool(self._patterns)

    def first(self, lines: Sequence[str]) -> str | None:
        """Return which pattern matches a line first: `matched`, `stopped` or None."""
        if not self._patterns or not lines:
            return None
        text = "\n".join(lines)
        found = [(match.start(), reason) for reason, pattern in self._patterns if (match := pattern.search(text))]
        return min(found)[1] if found else None


def compiled(name: str, pattern: str, *, is_for_bytes: bool = False) -> Any:  # noqa: ANN401  re2 has no types
    """Return a pattern to search in lines joined by line feeds, of which it matches one at a time.

    Args:
        name: The parameter that has it.
        pattern: A regular expression of RE2, which needs time in proportion to the text at most.
        is_for_bytes: The text is UTF-8, and not characters.

    Raises:
        ArgumentError: It is no regular expression, or too long.
    """
    import re2  # noqa: PLC0415  only who waits for a pattern needs it

    options = re2.Options()
    options.never_nl = True  # no match goes on in the next line
    options.log_errors = False
    options.max_mem = _MAX_PATTERN_BYTES
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ArgumentError(
            f"Parameter '{name}' has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS}. Give a shorter one."
        )
    try:
        text = f"(?m){pattern}"
        return re2.compile(text.encode() if is_for_bytes else text, options=options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace").replace("(?m)", "", 1) if error.args else ""
        raise ArgumentError(
            f"Parameter '{name}' is no regular expression of RE2 ({reason}). "
            "Escape what is meant literally; look-around and back references are not available."
        ) from None


class Scan:
    """The lines that a log gets from a cursor on, without the echo of keys.

    Attributes:
        position: How far it has come.
        unseen_bytes: How much was gone before it came there.
        is_at_line_end: What was read last ended with a line feed.
    """

    def __init__(self, log: Log, start: int, sent: Sequence[Sent]) -> None:
        self._log = log
        self._sent = sent
        self._taken = max((keys.at for keys in sent if keys.cursor < start), default=0.0)
        self._echo = Echo(keys for keys in sent if keys.cursor < start)
        self.unseen_bytes = 0
        self.is_at_line_end = False
        self._begin_at(start)

    @property
    def seen_to(self) -> int:
        """The cursor behind what was understood."""
        return self.position - self._transcript.held_bytes

    def step(self, end: int, most_bytes: int, drawing: Drawing) -> list[str]:
        """Go on by some bytes, not beyond `end`; return the lines that are new, or may have changed."""
        if self.position < (kept_from := self._log.kept_from):
            self.unseen_bytes += kept_from - self.position
            self._begin_at(kept_from)
        for keys in [keys for keys in self._sent if keys.at > self._taken]:
            if keys.cursor > self.position:
                end = min(end, keys.cursor)
                break
            self._taken = keys.at
            if keys.echoes is Echoes.PROGRAM and self._transcript.is_editing:
                keys = dataclasses.replace(keys, echoes=Echoes.EDITOR)  # noqa: PLW2901
            if keys.echoes is Echoes.EDITOR:
                self._transcript.keys_sent()
            self._echo.expect(keys)
        data = self._log.read(self.position, min(most_bytes, end - self.position))
        self._transcript.feed(data)
        drawing.feed(data)
        self.position += len(data)
        if data:
            self.is_at_line_end = data.endswith(b"\n")
        return self._echo.without(self._transcript.take_settled(), self._transcript.main_lines())

    def _begin_at(self, start: int) -> None:
        """Begin with the screen as it was at this cursor, showing nothing of it."""
        self.position = start
        self._transcript = transcript_from(self._log, start)
