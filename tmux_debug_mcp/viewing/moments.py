"""Moments of a log, as a person gives them: a cursor, a time, or a time since the start. Pure."""

import re
from datetime import datetime

from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.vt.printable import visible

_MAX_SHOWN = 60
_AFTER = "--at {} is after the pane's last output. This is its end."
_BEFORE = "--at {} is before the pane's start. This is its start."
_CURSOR = re.compile(r"[0-9]{1,18}")
_AGE = re.compile(r"([+-]?)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_ADVICE = (
    "Give a cursor such as 4711, a time since the start such as 12.5s or 1m30s, one before the end "
    "such as -5s, or a time of day such as 14:05:30."
)


def cursor_of(moment: str, timing: Timing, end: int) -> tuple[int, str]:
    """Return the cursor of a moment, and what is to be said of it, "" for nothing.

    Args:
        moment: What a person gave: `4711`, `12.5s`, `-5s`, `14:05:30` or an ISO 8601 time.
        timing: The timing of the log.
        end: The cursor of its end.

    Raises:
        CommandError: It is no moment.
    """
    given = visible(moment)
    if _CURSOR.fullmatch(moment):
        cursor = int(moment)
        return min(cursor, end), _AFTER.format(given) if cursor > end else ""
    seconds = _seconds(moment, timing)
    if seconds is None:
        seconds = _time_of_day(moment, timing)
    remark = ""
    if seconds > _last_s(timing):
        remark = _AFTER.format(given)
    elif seconds < 0:
        remark = _BEFORE.format(given)
    return min(timing.cursor_at(seconds), end), remark


def _last_s(timing: Timing) -> float:
    return timing.times[-1] if timing.times else 0.0


def _seconds(moment: str, timing: Timing) -> float | None:
    """Return a time since the beginning, None if the moment is given otherwise."""
    found = _AGE.fullmatch(moment)
    if not found or not any(found.groups()[1:]):
        return None
    hours, minutes, seconds = (float(part or 0) for part in found.groups()[1:])
    duration_s = hours * 3600 + minutes * 60 + seconds
    if found[1] == "-":
        return _last_s(timing) - duration_s
    return duration_s


def _time_of_day(moment: str, timing: Timing) -> float:
    began = datetime.fromtimestamp(timing.began_at).astimezone()
    try:
        if re.fullmatch(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?", moment):
            # On the day of the beginning.
            hours, _, others = moment.partition(":")
            given = datetime.fromisoformat(f"{began:%Y-%m-%d}T{hours:0>2}:{others}")
        else:
            given = datetime.fromisoformat(moment)
        return given.astimezone().timestamp() - timing.began_at
    except (ValueError, OverflowError):  # the latter before the year 1 or behind 9999
        shown = visible(moment[:_MAX_SHOWN])
        raise CommandError(f"--at is '{shown}', which is no moment. {_ADVICE}") from None
