"""Patterns of a wait, and the lines to match them with, as a log gets them."""

import dataclasses
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from tmux_debug_mcp.errors import ArgumentError, PatternError
from tmux_debug_mcp.turns import next_turn
from tmux_debug_mcp.vt.drawing import Drawing
from tmux_debug_mcp.vt.echo import Echo, Echoes, Typed
from tmux_debug_mcp.vt.transcript import Transcript

from .log import Log
from .pacing import pieces
from .positioning import transcript_from

MAX_PATTERN_CHARACTERS = 1000
# The memory of a compiled pattern, which also limits the time for it.
_MAX_PATTERN_BYTES = 1 << 20
# Put before the client's pattern, so that `^` and `$` match at each line.
_MULTILINE = "(?m)"
# What is not a line feed in a pattern: quoted text, sets of characters, and other escapes.
_NO_LINE_FEED = re.compile(r"\\Q.*?(\\E|$)|\[\^?\]?(\\.|[^\]\\])*\]|\\[^n]", re.DOTALL)
_LINE_FEED = re.compile(r"(\\n|\n)(?![?*])")


class MatchReason(StrEnum):
    """Which pattern of a wait matches: the one to wait for, or the one that ends it in failure."""

    MATCHED = "matched"
    STOPPED = "stopped"


class Matcher:
    """The patterns of a wait, if it has any; ArgumentError if one is invalid or too long."""

    def __init__(self, pattern: str | None, stop_pattern: str | None) -> None:
        self._patterns: list[tuple[MatchReason, Any]] = []
        if pattern is not None:
            self._patterns.append((MatchReason.MATCHED, compiled("pattern", pattern)))
        if stop_pattern is not None:
            self._patterns.append((MatchReason.STOPPED, compiled("stop_pattern", stop_pattern)))

    @property
    def has_patterns(self) -> bool:
        """Whether there is a pattern at all."""
        return bool(self._patterns)

    @property
    def has_stop_pattern(self) -> bool:
        """Whether there is a pattern that ends a wait in failure."""
        return any(reason is MatchReason.STOPPED for reason, _ in self._patterns)

    def first(self, lines: Sequence[str]) -> MatchReason | None:
        """Return which pattern matches first in some lines, MATCHED if both match there."""
        if not self._patterns or not lines:
            return None
        text = "\n".join(lines)
        matches: list[tuple[int, MatchReason]] = []
        for reason, pattern in self._patterns:
            match = pattern.search(text)
            if match:
                matches.append((match.start(), reason))
        if not matches:
            return None
        _, first_reason = min(matches)
        return first_reason


def compiled(name: str, pattern: str, *, is_for_bytes: bool = False) -> Any:  # noqa: ANN401  re2 has no types
    """Compile a pattern for searching text of several lines. It matches within one line.

    RE2 takes time that is linear in the length of the text, which is a string, or UTF-8 bytes.
    ArgumentError names the parameter if it is invalid, too long, or contains a line feed.
    """
    import re2  # noqa: PLC0415  loaded for the first pattern: most servers never need it

    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ArgumentError(
            f"Parameter '{name}' has {len(pattern)} characters; the limit is "
            f"{MAX_PATTERN_CHARACTERS}. Give a shorter one."
        )
    if _LINE_FEED.search(_NO_LINE_FEED.sub(".", pattern)):
        raise ArgumentError(
            f"Parameter '{name}' is matched line by line, so it never matches a line feed (\\n). "
            "Use ^ and $ for the ends of a line, and look for one line."
        )
    options = re2.Options()
    options.never_nl = True  # a match does not extend over a line feed
    options.log_errors = False
    options.max_mem = _MAX_PATTERN_BYTES
    text = _MULTILINE + pattern
    try:
        return re2.compile(text.encode() if is_for_bytes else text, options=options)
    except re2.error as error:
        explanation: bytes = error.args[0] if error.args else b""
        reason = explanation.decode(errors="replace").replace(_MULTILINE, "", 1)
        raise PatternError(name, reason) from None


class Scan:
    """Goes through a log from a cursor on, and yields its new lines without the echo of keys.

    It begins with the screen as it was at the cursor, whose lines are not new. `sent` holds the
    keys that were sent to the pane, oldest first. More may be added meanwhile.

    Attributes:
        position: The cursor that it has reached.
        unseen_bytes: How many bytes were trimmed before it reached them.
        is_at_line_end: The last bytes that it read end with a line feed.
    """

    def __init__(self, log: Log, start: int, sent: Sequence[Typed]) -> None:
        self.position = start
        self.unseen_bytes = 0
        self.is_at_line_end = False
        self._log = log
        self._sent = sent
        sent_before = [keys for keys in sent if keys.cursor < start]
        self._echo = Echo(sent_before)
        self._last_expected = max((keys.number for keys in sent_before), default=-1)
        self._transcript: Transcript | None = None

    @property
    def seen_to(self) -> int:
        """The cursor before what is unfinished at the position."""
        held_bytes = self._transcript.held_bytes if self._transcript else 0
        return self.position - held_bytes

    async def step(self, end: int, max_bytes: int, drawing: Drawing) -> list[str]:
        """Read the next bytes, at most a turn's work; the drawing gets the same bytes.

        Returns the lines that are new, or may have changed.
        """
        await next_turn()
        transcript = self._transcript
        while transcript is None or self.position < self._log.kept_from:
            kept = max(self.position, self._log.kept_from)
            self.unseen_bytes += kept - self.position
            self.position = kept
            drawing.skip_to(kept)
            transcript = self._transcript = await transcript_from(self._log, kept)
            await next_turn()
        next_keys = self._expect_echo(transcript)
        if next_keys is not None:
            end = min(end, next_keys.cursor)
        data = self._log.read(self.position, min(max_bytes, end - self.position))
        data = next(pieces(data), b"")
        transcript.feed(data)
        drawing.feed(data)
        self.position += len(data)
        if data:
            self.is_at_line_end = data.endswith(b"\n")
        return self._echo.without(transcript.take_settled(), transcript.main_lines())

    def forget(self) -> None:
        """Treat all lines so far as old: only what is printed from now on is new."""
        if self._transcript is not None:
            self._echo.without(self._transcript.main_lines(), ())  # to use up their echo
            self._transcript.forget()

    def _expect_echo(self, transcript: Transcript) -> Typed | None:
        """Expect the echo of the keys that were sent up to the position; return the next ones."""
        not_expected = [keys for keys in self._sent if keys.number > self._last_expected]
        for keys in not_expected:
            if keys.cursor > self.position:
                return keys
            self._last_expected = keys.number
            echoes = keys.echoes
            if echoes is Echoes.PROGRAM and transcript.is_editing:
                echoes = Echoes.EDITOR
            if echoes is Echoes.EDITOR:
                transcript.keys_sent()
            self._echo.expect(dataclasses.replace(keys, echoes=echoes))
        return None
