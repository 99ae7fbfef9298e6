"""The verb `replay`, and `capture --at`: a pane of this or an earlier run, as it was."""

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import TypeVar

import anyio
import orjson

from tmux_debug_mcp.errors import ArgumentError, ToolError, first_of
from tmux_debug_mcp.linux.own_process import user_name
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.options import value_of
from tmux_debug_mcp.panes.capturing import capture, capture_rows, capture_screen
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.pictures.pillow import how_to_add_pillow
from tmux_debug_mcp.settings import Settings, pane_environment, path_of, state_directory
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.tools.arguments import ArgumentsParser
from tmux_debug_mcp.tools.debug_arguments import LAST_LINES
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS, Prints
from tmux_debug_mcp.verbs.requests import in_verbs, parse
from tmux_debug_mcp.verbs.words import flag_of, parameters_of_tool
from tmux_debug_mcp.vt.printable import visible

from .logs import FoundLog, cast, find
from .replaying import open_replay

_DESCRIPTION = """\
Show a pane's screen as it was at a given time, or write a recording of its output. The pane is one
of a running server, or RUN/ID of a kept log. Without --at, --png, --json or --cast, asciinema plays
the recording.
"""
_NO_PLAYER = (
    "asciinema, which plays recordings, is not on PATH. Install it (https://asciinema.org), write "
    "the recording with --cast FILE, or print the screen of one moment: --at -5s; --at -0s is the "
    "end."
)
# A moment, as a person gives it: notes about it, and its forms.
_MAX_SHOWN = 60
_AFTER = "--at {} is after the pane's last output. Showing the pane's end."
_BEFORE = "--at {} is before the pane's start. Showing that start."
_CURSOR = re.compile(r"[0-9]{1,18}")
_AGE = re.compile(r"([+-]?)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?")
_ADVICE = (
    "Give a cursor such as 4711, a time since the start such as 12.5s or 1m30s, one before the end "
    "such as -5s, or a time of day such as 14:05:30."
)
# What a shell's `$?` is after a signal ended a program, without the signal's number.
_SIGNALLED = 128
# Players shorten longer pauses of a recording to this.
_IDLE_S = 2.0
# The flags of `capture` that go with --at. The others read a log on, or search it.
_WITH_AT = ("lines", "view")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _LogPrefix:
    """A log up to a cursor. The environment says which tmux is to show it."""

    found: FoundLog
    cursor: int
    environ: Mapping[str, str]


def add_arguments(replay: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    replay.description = _DESCRIPTION
    add = replay.add_argument
    add("pane", metavar="PANE", nargs="?", default="", help="pane id or name, or RUN/ID")
    add(
        "--at",
        metavar="WHEN",
        help="print the screen as it was at a cursor (4711), a time since the start (12.5s, "
        "1m30s) or before the end (-5s), or a time of day (14:05:30)",
    )
    forms = replay.add_mutually_exclusive_group()
    forms.add_argument("--png", metavar="FILE", help="write the screen, or the last, as a picture")
    forms.add_argument("--json", action="store_true", help="print the screen, or the last, as JSON")
    forms.add_argument("--cast", metavar="FILE", help="write a recording, asciicast v2")
    add("--log-dir", metavar="DIR", help="where the logs are kept (TMUX_DEBUG_LOG_DIR)")


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Run the verb and return its exit status; VerbError if it can't be done."""
    arguments = parser_of(VERBS["replay"]).parse_args(_joined(words))
    if arguments.cast and arguments.at is not None:
        raise VerbError("--cast records the whole log, and --at is one moment. Omit one.")
    if arguments.png:
        _check_pillow()
    plays = arguments.at is None and not (arguments.png or arguments.json or arguments.cast)
    found = _find(arguments.pane, arguments.log_dir, environ)
    with closing(found.log):
        if plays:
            return _play(found, environ)
        if arguments.cast:
            _write(arguments.cast, cast(found.log, found.name, _IDLE_S))
        else:
            moment = _LogPrefix(found, _cursor(arguments.at, found), environ)
            if arguments.png:
                _write(arguments.png, [_at(moment, _drawn)])
            else:
                _print(moment, _screen, Prints.JSON if arguments.json else Prints.ALL)
    return 0


def run_capture(words: list[str], environ: Mapping[str, str]) -> int:
    """Run `capture --at`: print what `capture` would have printed at that moment."""
    verb = VERBS["capture"]
    words = _joined(words)
    request = parse([verb.name, *words], {})
    moment_given = parser_of(verb).parse_args(words).at
    for name in request.arguments.keys() - {"pane_id", *_WITH_AT}:
        raise VerbError(
            f"{flag_of(name)} can't be combined with --at, which shows the pane at one moment. "
            "Omit one of them."
        )
    try:
        arguments = ArgumentsParser(verb.tool, parameters_of_tool(verb)).parse(request.arguments)
    except ArgumentError as error:
        raise VerbError(in_verbs(str(error), request)) from None
    lines = arguments.get("lines", LAST_LINES)

    async def captured(pane: Pane) -> str:
        if arguments.get("view") == "screen":
            return await _screen(pane)
        return await capture(pane, lines, ansi=arguments.get("view") == "ansi")

    found = _find(arguments["pane_id"], "", environ)
    with closing(found.log):
        cursor = _cursor(moment_given, found)
        moment = _LogPrefix(found, cursor, environ)
        _print(moment, captured, request.prints)
    return 0


def _joined(words: list[str]) -> list[str]:
    """Join `--at -5s` into a word: argparse takes the second word for a flag."""
    if "--at" not in words[:-1]:
        return words
    place = words.index("--at")
    return [*words[:place], f"--at={words[place + 1]}", *words[place + 2 :]]


def _find(target: str, log_dir: str | None, environ: Mapping[str, str]) -> FoundLog:
    path = log_dir or value_of("log-dir", environ)
    directory = path_of(path) or state_directory(environ) / "logs"
    return find(target, directory, user_name(), environ)


def _cursor(moment: str | None, found: FoundLog) -> int:
    """Return the cursor of a moment, the end for None; what is odd about it is printed."""
    if moment is None:
        return found.log.size
    cursor, note = cursor_of(moment, found.log.timing, found.log.size)
    if note:
        sys.stderr.write(f"tmux-debug: {note}\n")
    return cursor


def cursor_of(moment: str, timing: Timing, end: int) -> tuple[int, str]:
    """Return the cursor of a moment in a log, and a note about it, "" for none.

    A person may give `4711`, `12.5s`, `-5s`, `14:05:30` or an ISO 8601 time.
    """
    shown = visible(moment)
    if _CURSOR.fullmatch(moment):
        cursor = int(moment)
        return min(cursor, end), _AFTER.format(shown) if cursor > end else ""
    age = _AGE.fullmatch(moment)
    if age and any(age.groups()[1:]):
        hours, minutes, rest_s = (float(part or 0) for part in age.groups()[1:])
        seconds = hours * 3600 + minutes * 60 + rest_s
        if age[1] == "-":
            seconds = _last_s(timing) - seconds
    else:
        seconds = _seconds_to(moment, timing)
    note = ""
    if seconds > _last_s(timing):
        note = _AFTER.format(shown)
    elif seconds < 0:
        note = _BEFORE.format(shown)
    return min(timing.cursor_at(seconds), end), note


def _last_s(timing: Timing) -> float:
    return timing.times[-1] if timing.times else 0.0


def _seconds_to(moment: str, timing: Timing) -> float:
    """Return the seconds from the start to a time or a time of day."""
    try:
        if _TIME_OF_DAY.fullmatch(moment):
            return _seconds_to_time_of_day(moment, timing)
        return datetime.fromisoformat(moment).astimezone().timestamp() - timing.began_at
    except (ValueError, OverflowError):  # the latter before the year 1 or after 9999
        shown = visible(moment[:_MAX_SHOWN])
        raise VerbError(
            f"--at is '{shown}', which is neither a time nor a cursor. {_ADVICE}"
        ) from None


def _seconds_to_time_of_day(moment: str, timing: Timing) -> float:
    """Return the seconds to when it was that time during the log, or nearest to the log."""
    hours, _, others = moment.partition(":")
    wanted = time.fromisoformat(f"{hours:0>2}:{others}")
    last_s = _last_s(timing)
    first, last = (
        datetime.fromtimestamp(timing.began_at + at_s).astimezone().date() for at_s in (0.0, last_s)
    )
    times = [
        datetime.combine(first + timedelta(days=day), wanted).astimezone()
        for day in range(-1, (last - first).days + 2)
    ]
    seconds = {at: at.timestamp() - timing.began_at for at in times}
    within = [at for at in times if 0 <= seconds[at] <= last_s]
    if len(within) > 1:
        dates = " or ".join(f"{at:%Y-%m-%dT}{at:%H:%M:%S}" for at in within[-2:])
        raise VerbError(
            f"It was {visible(moment)} {len(within)} times while the pane ran. Give the date, such "
            f"as --at {dates}."
        )
    return seconds[min(times, key=lambda at: max(-seconds[at], seconds[at] - last_s, 0.0))]


def _at(moment: _LogPrefix, read: Callable[[Pane], Awaitable[_T]]) -> _T:
    """Return what is read of a pane that shows the moment."""
    tmux = value_of("tmux", moment.environ)
    settings = Settings(
        env=pane_environment(moment.environ, ["TMUX*"]),
        cwd=Path("/"),
        tmux=shutil.which(tmux) or tmux,
        runtime_dir=moment.environ.get("XDG_RUNTIME_DIR", ""),
    )

    async def shown() -> _T:
        async with open_replay(moment.found.log, settings) as replay:
            await replay.advance(moment.cursor)
            return await read(replay.pane)

    # If the program in the pane ends, that must not end this process, which has a tmux server.
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        return anyio.run(shown)
    except (ToolError, BaseExceptionGroup) as error:
        cause = first_of(error)
        if isinstance(cause, ToolError | VerbError):
            raise VerbError(str(cause)) from error
        raise
    finally:
        signal.signal(signal.SIGPIPE, before)


def _check_pillow() -> None:
    try:
        import PIL  # noqa: F401, PLC0415
    except ImportError:
        raise VerbError(f"--png needs Pillow. Install it: {how_to_add_pillow()}") from None


async def _drawn(pane: Pane) -> bytes:
    from tmux_debug_mcp.pictures.png import draw  # noqa: PLC0415  it needs Pillow

    return draw(await capture_screen(pane))


async def _screen(pane: Pane) -> str:
    text = await capture_rows(pane, 0, pane.log.rows - 1, ansi=sys.stdout.isatty())
    return text.rstrip("\n")


def _print(moment: _LogPrefix, read: Callable[[Pane], Awaitable[str]], prints: Prints) -> None:
    """Print what is read of a pane that shows the moment, and then which moment it is."""

    async def with_size(pane: Pane) -> tuple[str, int, int]:
        return await read(pane), pane.log.columns, pane.log.rows

    text, columns, rows = _at(moment, with_size)
    found, timing = moment.found, moment.found.log.timing
    at_s = min(timing.time_of(moment.cursor), _last_s(timing))
    when = datetime.fromtimestamp(timing.began_at + at_s).astimezone()
    if prints is Prints.JSON:
        facts = {
            "pane": found.id,
            "cursor": moment.cursor,
            "ts": when.isoformat(timespec="milliseconds"),
            "columns": columns,
            "rows": rows,
            "text": text,
        }
        sys.stdout.write(orjson.dumps(facts).decode() + "\n")
        return
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    if prints is Prints.TEXT:
        return
    status = sys.stdout if prints is Prints.STATUS else sys.stderr
    status.write(
        f"[{found.id} {found.name} at cursor {moment.cursor} of {found.log.size}, "
        f"{at_s:.1f} s after its start, {when:%Y-%m-%d %H:%M:%S}; screen {columns}x{rows}]\n"
    )


def _play(found: FoundLog, environ: Mapping[str, str]) -> int:
    """Have asciinema play a log, and return its exit status."""
    player = shutil.which("asciinema", path=environ.get("PATH"))
    if player is None:
        raise VerbError(_NO_PLAYER)
    with tempfile.TemporaryFile() as file:  # it has no name, so nothing is left of it
        file.writelines(cast(found.log, found.name, _IDLE_S))
        file.flush()
        argv = [player, "play", f"/proc/self/fd/{file.fileno()}"]
        status = subprocess.run(argv, pass_fds=[file.fileno()], check=False).returncode
    return status if status >= 0 else _SIGNALLED - status


def _write(path: str, pieces: Iterable[bytes]) -> None:
    if path == "-":
        sys.stdout.buffer.writelines(pieces)
        return
    try:
        with open(path, "wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise VerbError(
            f"{path} can't be written ({error.strerror}). Choose another file."
        ) from error
