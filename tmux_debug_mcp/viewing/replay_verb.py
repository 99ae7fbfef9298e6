"""The verb `replay`: shows a pane of this or an earlier run as it was."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import anyio
import orjson

from tmux_debug_mcp.errors import ToolError, first_of
from tmux_debug_mcp.linux.users import user_name
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.options import value_of
from tmux_debug_mcp.panes.capturing import capture_rows, capture_screen
from tmux_debug_mcp.panes.people import session_for
from tmux_debug_mcp.settings import Settings, pane_environment, path_of, state_directory
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS
from tmux_debug_mcp.vt.printable import visible

from .logs import FoundLog, cast, find, steps
from .player import Player
from .replaying import open_replay

_DESCRIPTION = """\
Show a pane's screen at a given time, or play its output. The pane is one of a running server,
or RUN/ID of a kept log. Without --at, its output is played
in a terminal; elsewhere, its last screen is printed.
"""
# A moment, as a person gives it: remarks about it, and its forms.
_MAX_SHOWN = 60
_AFTER = "--at {} is after the pane's last output. Showing the pane's end."
_BEFORE = "--at {} is before the pane's start. Showing that start."
_CURSOR = re.compile(r"[0-9]{1,18}")
_AGE = re.compile(r"([+-]?)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_ADVICE = (
    "Give a cursor such as 4711, a time since the start such as 12.5s or 1m30s, one before the end "
    "such as -5s, or a time of day such as 14:05:30."
)
# Roughly the most pictures that an animation contains.
_MAX_FRAMES = 400
_MAX_NUMBER = 1e6
# What a shell's `$?` is after SIGPIPE ended a program.
_BROKEN_PIPE = 128 + signal.SIGPIPE


@dataclass(frozen=True, slots=True)
class _Wish:
    """What to replay: a log up to a cursor, as the arguments say, with these settings."""

    found: FoundLog
    cursor: int
    arguments: argparse.Namespace
    settings: Settings


def add_arguments(replay: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    replay.description = _DESCRIPTION
    add = replay.add_argument
    add("pane", metavar="PANE", nargs="?", default="", help="pane id or name, or RUN/ID")
    add(
        "--at",
        metavar="WHEN",
        help="a cursor (4711), a time since the start (12.5s, 1m30s) or before the end (-5s), or "
        "a time of day (14:05:30)",
    )
    add("--speed", metavar="N", type=_positive, default=1.0, help="play N times as fast")
    add(
        "--idle",
        metavar="SECONDS",
        type=_positive,
        default=2.0,
        help="the longest pause to keep (default 2)",
    )
    files = replay.add_mutually_exclusive_group()
    files.add_argument("--png", metavar="FILE", help="write a picture")
    pictures = "write a picture, or an animation without --at"
    files.add_argument("--svg", metavar="FILE", help=pictures)
    files.add_argument("--cast", metavar="FILE", help="write a recording, asciicast v2")
    files.add_argument("--json", action="store_true", help="print the screen as JSON")
    add("--log-dir", metavar="DIR", help="where the logs are kept (TMUX_DEBUG_LOG_DIR)")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < _MAX_NUMBER:  # also no NaN
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Run the verb and return its exit status; CommandError if it can't be done."""
    arguments = parser_of(VERBS["replay"]).parse_args(_joined(words))
    given = arguments.log_dir or value_of("log-dir", environ)
    directory = path_of(given) or state_directory(environ) / "logs"
    found = find(arguments.pane, directory, user_name(), environ)
    cursor = found.log.size
    if arguments.at is not None:
        cursor, remark = cursor_of(arguments.at, found.log.timing, cursor)
        if remark:
            sys.stderr.write(f"tmux-debug: {remark}\n")
    tmux = value_of("tmux", environ)
    settings = Settings(
        env=pane_environment(environ, ["TMUX*"]),
        cwd=Path("/"),
        tmux=shutil.which(tmux) or tmux,
        runtime_dir=environ.get("XDG_RUNTIME_DIR", ""),
    )
    wish = _Wish(found, cursor, arguments, settings)
    # A pipe without a reader must not end this process, which has to end its tmux server.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        return _shown(wish)
    except (ToolError, OSError, BaseExceptionGroup) as error:
        cause = first_of(error)
        if isinstance(cause, BrokenPipeError):  # of standard output
            os._exit(_BROKEN_PIPE)
        if isinstance(cause, ToolError | CommandError):
            raise CommandError(str(cause)) from error
        raise
    finally:
        found.log.close()


def _joined(words: list[str]) -> list[str]:
    """Return the words with `--at -5s` as one: argparse takes the second word for a flag."""
    if "--at" not in words[:-1]:
        return words
    place = words.index("--at")
    return [*words[:place], f"--at={words[place + 1]}", *words[place + 2 :]]


def cursor_of(moment: str, timing: Timing, end: int) -> tuple[int, str]:
    """Return the cursor of a moment in a log, and a remark about it, "" for none.

    A person may give `4711`, `12.5s`, `-5s`, `14:05:30` or an ISO 8601 time.
    """
    given = visible(moment)
    if _CURSOR.fullmatch(moment):
        cursor = int(moment)
        return min(cursor, end), _AFTER.format(given) if cursor > end else ""
    age = _AGE.fullmatch(moment)
    if age and any(age.groups()[1:]):
        hours, minutes, rest_s = (float(part or 0) for part in age.groups()[1:])
        seconds = hours * 3600 + minutes * 60 + rest_s
        if age[1] == "-":
            seconds = _last_s(timing) - seconds
    else:
        seconds = _seconds_to(moment, timing)
    remark = ""
    if seconds > _last_s(timing):
        remark = _AFTER.format(given)
    elif seconds < 0:
        remark = _BEFORE.format(given)
    return min(timing.cursor_at(seconds), end), remark


def _last_s(timing: Timing) -> float:
    return timing.times[-1] if timing.times else 0.0


def _seconds_to(moment: str, timing: Timing) -> float:
    """Return the seconds from the start to a time, or to a time of day on the start's date."""
    began = datetime.fromtimestamp(timing.began_at).astimezone()
    given = moment
    if re.fullmatch(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?", moment):
        hours, _, others = moment.partition(":")
        given = f"{began:%Y-%m-%d}T{hours:0>2}:{others}"
    try:
        return datetime.fromisoformat(given).astimezone().timestamp() - timing.began_at
    except (ValueError, OverflowError):  # the latter before the year 1 or after 9999
        shown = visible(moment[:_MAX_SHOWN])
        raise CommandError(
            f"--at is '{shown}', which is neither a time nor a cursor. {_ADVICE}"
        ) from None


def _shown(wish: _Wish) -> int:
    arguments = wish.arguments
    if arguments.cast:
        pieces = cast(wish.found.log, wish.found.name, arguments.idle)
        _write(arguments.cast, b"".join(pieces))
        return 0
    if arguments.png:
        try:
            import PIL  # noqa: F401, PLC0415
        except ImportError:
            raise CommandError(
                "--png needs Pillow; --svg doesn't. Install it: pip install "
                "'tmux-debug-mcp[screenshot]'"
            ) from None
    is_file = arguments.png or arguments.svg or arguments.json
    plays = arguments.at is None and not is_file and os.isatty(0) and os.isatty(1)
    if plays:
        return anyio.run(_play, wish)
    if arguments.svg and arguments.at is None:
        return anyio.run(_animate, wish)
    return anyio.run(_show_moment, wish)


async def _show_moment(wish: _Wish) -> int:
    arguments = wish.arguments
    async with open_replay(wish.found.log, wish.settings) as replay:
        await replay.advance(wish.cursor)
        screen = await capture_screen(replay.pane)
        if arguments.png:
            from tmux_debug_mcp.pictures.png import draw  # noqa: PLC0415  it needs Pillow

            _write(arguments.png, draw(screen))
        elif arguments.svg:
            from tmux_debug_mcp.pictures.svg import svg  # noqa: PLC0415

            _write(arguments.svg, svg(screen, title=wish.found.name).encode())
        else:
            in_colour = sys.stdout.isatty() and not arguments.json
            text = await capture_rows(replay.pane, 0, screen.height - 1, ansi=in_colour)
            _print_moment(wish, text.rstrip("\n"), (screen.columns, screen.height))
    return 0


def _print_moment(wish: _Wish, text: str, size: tuple[int, int]) -> None:
    timing = wish.found.log.timing
    at_s = min(timing.time_of(wish.cursor), _last_s(timing))
    moment = datetime.fromtimestamp(timing.began_at + at_s).astimezone()
    columns, rows = size
    if wish.arguments.json:
        facts = {
            "pane": wish.found.id,
            "cursor": wish.cursor,
            "ts": moment.isoformat(timespec="milliseconds"),
            "columns": columns,
            "rows": rows,
            "text": text,
        }
        sys.stdout.write(orjson.dumps(facts).decode() + "\n")
        return
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    status = (
        f"[{wish.found.id} {wish.found.name} at cursor {wish.cursor} of {wish.found.log.size}, "
        f"{at_s:.1f} s after its start, {moment:%Y-%m-%d %H:%M:%S}; screen {columns}x{rows}]"
    )
    sys.stderr.write(status + "\n")


async def _animate(wish: _Wish) -> int:
    from tmux_debug_mcp.pictures.svg import animation  # noqa: PLC0415

    frames = []
    at_s = 0.0
    cursors = steps(wish.found.log)
    every = len(cursors) // _MAX_FRAMES + 1
    async with open_replay(wish.found.log, wish.settings) as replay:
        for cursor, pause_s in _paced(cursors[::every] + cursors[-1:], wish):
            await replay.advance(cursor)
            at_s += pause_s
            frames.append((at_s, await capture_screen(replay.pane)))
    picture = animation(frames, title=wish.found.name)
    _write(wish.arguments.svg, picture.encode())
    return 0


def _paced(cursors: Iterable[int], wish: _Wish) -> Iterator[tuple[int, float]]:
    """Yield cursors, each with the seconds since the one before, at the wanted speed."""
    last_s = 0.0
    for cursor in cursors:
        now_s = wish.found.log.timing.time_of(cursor)
        yield cursor, min(now_s - last_s, wish.arguments.idle) / wish.arguments.speed
        last_s = now_s


async def _play(wish: _Wish) -> int:
    """Play the log in this terminal, until the person leaves."""
    found, arguments = wish.found, wish.arguments
    cursors = {cursor: found.log.timing.time_of(cursor) for cursor in steps(found.log)}
    async with (
        open_replay(found.log, wish.settings) as replay,
        session_for(replay.engine, replay.pane, "you") as session,
        anyio.create_task_group() as tasks,
    ):
        player = Player(replay, session, found.name, arguments.speed, arguments.idle)
        tasks.start_soon(player.play, cursors)
        argv = [wish.settings.tmux, *session.arguments]
        # tmux's message when it ends is not news.
        await anyio.run_process(
            argv, stdout=subprocess.DEVNULL, stderr=None, check=False, env=wish.settings.env
        )
        tasks.cancel_scope.cancel()
    return 0


def _write(path: str, data: bytes) -> None:
    if path == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise CommandError(
            f"{path} can't be written ({error.strerror}). Choose another file."
        ) from error
