"""Patterns of a call, which match lines."""

import re
from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Any

from tmux_debug_mcp.errors import ArgumentError, PatternError

MAX_PATTERN_CHARACTERS = 1000
# The memory of a compiled pattern, which also limits the time for it.
_MAX_PATTERN_BYTES = 1 << 20
# Put before the client's pattern, so that `^` and `$` match at each line.
_MULTILINE = "(?m)"
# What is not a line feed in a pattern: quoted text, sets of characters, and other escapes.
_NO_LINE_FEED = re.compile(r"\\Q.*?(\\E|$)|\[\^?\]?(\\.|[^\]\\])*\]|\\[^n]", re.DOTALL)
_LINE_FEED = re.compile(r"(\\n|\n)(?![?*])")


class MatchReason(StrEnum):
    """Which pattern of a wait matches: what to wait for, or what ends the wait in failure."""

    MATCHED = "matched"
    STOPPED = "stopped"


class Matcher:
    """The patterns of a wait, if any; ArgumentError if a pattern is invalid or too long.

    Attributes:
        show: What lines match that are to be shown, compiled; None for all.
        gone: What is waited for to be gone, compiled; None for nothing.
    """

    def __init__(
        self,
        pattern: str | None = None,
        stop_pattern: str | None = None,
        show: str | None = None,
        gone: str | None = None,
    ) -> None:
        self.show = None if show is None else compiled("show", show)
        self.gone = None if gone is None else compiled("gone", gone)
        self._patterns: list[tuple[MatchReason, Any]] = []
        if pattern is not None:
            self._patterns.append((MatchReason.MATCHED, compiled("pattern", pattern)))
        if stop_pattern is not None:
            self._patterns.append((MatchReason.STOPPED, compiled("stop_pattern", stop_pattern)))

    def shows(self, line: str) -> bool:
        """Return whether a line is to be shown."""
        return self.show is None or self.show.search(line) is not None

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
        _, first_reason = min(matches, key=itemgetter(0))  # of equal ones, the first in the list
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
