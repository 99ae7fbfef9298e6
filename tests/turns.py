"""Calls that are a lot of work, and how much of it is done between two awaits.

A turn of the event loop runs all that can go on, and other calls wait for it. Tests count the work
of a turn in units that no machine changes. What it costs in time is a figure of `./dev bench`.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from support import PATIENCE_S, Gate, eventually, in_process, kept_hole, python

from tmux_debug_mcp.linux.sockets import Listeners
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import Matcher
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.control_mode import ControlModeParser
from tmux_debug_mcp.turns import TURN_WORK, work_of
from tmux_debug_mcp.vt import captured
from tmux_debug_mcp.vt.transcript import Transcript

Work = Callable[[Settings], Awaitable[None]]


@contextmanager
def around_turns(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Call functions before and after each turn of the event loop in the block."""
    run_once = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def turn(loop: asyncio.BaseEventLoop) -> None:
        begin()
        run_once(loop)
        end()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.BaseEventLoop, "_run_once", turn)
        yield


@contextmanager
def counted_turns() -> Iterator[Callable[[], int]]:
    """Count the turns of the event loop in the block; yields what returns their number so far."""
    turns = 0

    def end() -> None:
        nonlocal turns
        turns += 1

    with around_turns(lambda: None, end):
        yield lambda: turns


@contextmanager
def largest_turns() -> Iterator[Counter[str]]:
    """Count the work of each turn of the event loop in the block.

    Yields:
        The most of each unit that a turn had.
    """
    most: Counter[str] = Counter()
    now: Counter[str] = Counter()
    loop_thread = threading.get_ident()

    def count(unit: str, size: int) -> None:
        if threading.get_ident() == loop_thread:
            now[unit] += size

    def end() -> None:
        for unit, size in now.items():
            most[unit] = max(most[unit], size)

    def counted(unit: str, called: Callable[..., Any], size: Callable[..., int]) -> Any:  # noqa: ANN401
        """Return a function that calls another one, and counts the size of each call."""

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            result = called(*arguments, **named)
            count(unit, size(result, *arguments))
            return result

        return call

    with pytest.MonkeyPatch.context() as patch, around_turns(now.clear, end):
        for owner, name, unit, size in _COUNTED:
            patch.setattr(owner, name, counted(unit, getattr(owner, name), size))
        yield most


# What is counted: a function, the unit, and the size of a call, given its result and arguments.
_COUNTED: Sequence[tuple[Any, str, str, Callable[..., int]]] = (
    (Transcript, "feed", "work for terminals", lambda _, _self, data, *_more: work_of(data)),
    (Transcript, "take_events", "settled lines", lambda events, _: len(events)),
    (ControlModeParser, "feed", "bytes of tmux", lambda _, _self, data: len(data)),
    (Log, "read", "bytes of logs", lambda data, *_: len(data)),
    (Matcher, "first", "matched characters", lambda _, _self, lines: sum(map(len, lines))),
    (Pane, "state", "states of panes", lambda *_: 1),
    (captured, "_work", "work on captures", lambda size, _: size),
    (Listeners, "read", "lists of sockets", lambda *_: 1),
)
# The most work of a turn. How long that takes is a figure of `./dev bench`.
MOST = {
    "work for terminals": TURN_WORK,
    "settled lines": 1 << 11,
    "bytes of tmux": 1 << 16,
    "work on captures": TURN_WORK,
    "matched characters": 1 << 19,  # of 4 KiB of output, which may repeat characters
    "bytes of logs": 1 << 23,  # around the lines that a search has found
    "states of panes": 8,
    "lists of sockets": 4,  # calls about one pane make their own
}


def too_much(most: Counter[str]) -> dict[str, int]:
    """Return the work of turns that had more than others can wait for."""
    return {unit: size for unit, size in most.items() if size > MOST[unit]}


MARK = "\\x1b]7777;0123456789abcdef;S0;echo hi\\a"
STREAMS = {
    "combining": "'a' + chr(0x301) * 80_000",
    "combining in lines": "('a' + chr(0x301) * 150 + '\\r\\n') * 3_000",
    "returns": "'x' + '\\r' * 200_000",
    "escapes": "'x' + '\\x1b' * 200_000",
    "control sequence begins": "'\\x1b[' * 100_000",
    "parameters": "'\\x1b[' + '1;' * 100_000",
    "strings begin": "'\\x1b]0;x' * 60_000",
    "strings of another kind begin": "'\\x1bP' * 100_000",
    "colours": "'\\x1b[38;5;7mx' * 20_000",
    "backspaces": "'x' * 100 + '\\b' * 200_000",
    "tabs": "'\\t' * 200_000",
    "one line": "'x' * 600_000",
    "wide": "'漢' * 80_000",
    "no line feeds, moves": "'x\\x1b[C' * 40_000",
    "insert lines": "'\\x1b[H\\x1b[5L' * 20_000",
    "insert characters": "'\\x1b[100@x' * 20_000",
    "delete lines": "'x\\n\\x1b[H\\x1b[50M' * 20_000",
    "clear": "'x\\x1b[2J' * 30_000",
    "alternate": "'x\\x1b[?1049hy\\x1b[?1049l' * 10_000",
    "reverse index": "'\\x1bM' * 60_000",
    "region": "'\\x1b[2;3rx\\n\\n\\n' * 20_000",
    "drawing": "'\\x1b(0qqq\\x1b(B' * 20_000",
    "marks": f"'{MARK}' * 6_000",
    "marks behind text": f"' . /tmp/tmux-debug-mcp-1-00000000/1.1-echo{MARK}' * 3_000",
    "pane marks": "'\\x1b\\\\\\x1b]7777;0123456789abcdef;999\\a' * 6_000",
    "short lines": "'x\\n' * 100_000",
    "empty lines": "'\\n' * 200_000",
    "bracketed": "'\\x1b[?2004hx\\n' * 20_000",
    "repeat": "'x\\x1b[1000b' * 20_000",
    "nul": "'\\0' * 200_000",
    "broken": "'\\udcff\\udcc3' * 60_000",
}


async def _output(text: str, max_bytes: int, settings: Settings) -> None:
    """Print a text, which is waited for, read, captured, and the output of a run."""
    program = (
        f"import sys; data = ({text}).encode(errors='surrogateescape'); "
        f"sys.stdout.buffer.write(data[:{max_bytes}]); print()"
    )
    async with in_process(settings) as tools:
        pane = await tools.create(f"{python(program)} | tee printed; echo the''End")
        await tools.blocks("wait", pane_id=pane, pattern="theEnd", since=0, timeout_s=PATIENCE_S)
        await tools.blocks("capture_pane", pane_id=pane, since=0)
        await tools.blocks("capture_pane", pane_id=pane, lines=1000, view="ansi")
        await tools.blocks("run", command="cat printed", timeout_s=PATIENCE_S)


RAW = "import time, tty; tty.setraw(0); print('ready', flush=True); time.sleep(3600)"
RAW_ECHO = """import os, tty
tty.setraw(0)
print('ready', flush=True)
while True: os.write(1, os.read(0, 4096).replace(b'\\r', b'\\r\\n'))
"""


async def _paste(program: str, lines: int, settings: Settings) -> None:
    """Paste a text into a program."""
    async with in_process(settings) as tools:
        pane = await tools.create(program if program == "cat" else python(program))
        if program != "cat":
            await tools.shows(pane, "ready")
        text = "".join(f"line {number}\n" for number in range(lines))
        await tools.blocks("send_keys", pane_id=pane, keys=text, paste=True)
        await tools.blocks("wait", pane_id=pane, pattern="nothing", timeout_s=0.2)


async def _document(settings: Settings) -> None:
    """Paste a document within a command into a shell."""
    async with in_process(settings) as tools:
        pane = await tools.create("bash --norc")
        text = "".join(f"line {number}\n" for number in range(8_000))
        document = f"cat >/dev/null <<E\n{text}E\necho do''ne\n"
        await tools.blocks("send_keys", pane_id=pane, keys=document, paste=True, timeout_s=0)
        await tools.blocks("send_keys", pane_id=pane, keys="Enter", timeout_s=0)
        [*_, status] = await tools.blocks(
            "wait", pane_id=pane, pattern="^done", timeout_s=5 * PATIENCE_S
        )
        assert "matched" in status


KEYS = {
    "20,000 names": "Up " * 20_000,
    "300,000 names": "Up " * 300_000,
    "line feeds": "\n" * 1_000_000,
    "Enter": "x" + " Enter" * 150_000,
    "single characters": "a " * 500_000,
    "one word": "a" * 1_000_000,
    "lines of text": "é\n" * 300_000,
    "blanks": " " * 1_000_000,
    "beginnings of names": "C-" * 500_000,
    "C-x": "C-x " * 250_000,
    "names and text": "F1 x" * 200_000,
}


async def _keys(keys: str, settings: Settings) -> None:
    """Send keys, most of which are refused, as names, as text and as a paste."""
    async with in_process(settings) as tools:
        pane = await tools.create(python(RAW))
        for how in ({}, {"literal": True}, {"paste": True}):
            await tools.call("send_keys", pane_id=pane, keys=keys, timeout_s=0, **how)


async def _large_terminals(settings: Settings) -> None:
    """Read and draw the largest terminals, with a long line and with many colours."""
    line = python("import sys; sys.stdout.write('0123456789' * 100_000)")
    row = "''.join(f'\\033[38;2;{number};{column % 256};7mx' for column in range(490))"
    coloured = python(f"for number in range(255): print({row})")
    async with in_process(settings, toolsets="tmux,terminal") as tmux:
        for name, program in (("line", line), ("colours", coloured)):
            gate = Gate(settings.cwd / f"{name}-gate")
            command = f"cat {gate}; {program}; touch {name}; exec cat"
            await tmux.blocks("tmux_create_session", name=name, command=command)
            await tmux.blocks("tmux_resize_pane", target=name, width=500, height=200)
            await gate.open()
            await eventually((settings.cwd / name).exists)
            for arguments in (
                {},
                {"line_count": 1},
                {"line_count": 1000},
                {"start_line": -500, "line_count": 1000},
            ):
                await tmux.blocks("tmux_read_pane", target=name, **arguments)
            await tmux.blocks("takeScreenshot", session=name)
            await tmux.blocks("getContent", session=name)


async def _many_waits(settings: Settings) -> None:
    """Wait for four floods, sixty times at once."""
    async with in_process(settings) as tools:
        panes = [await tools.create("while :; do seq 1000; done") for _ in range(4)]
        async with anyio.create_task_group() as tasks:
            for number in range(60):
                pane = panes[number % 4]
                tasks.start_soon(
                    partial(tools.call, "wait", pane_id=pane, pattern="never", timeout_s=0.3)
                )
                await anyio.lowlevel.checkpoint()  # not all of them begin in one turn
        for pane in panes:
            await tools.call("kill_pane", pane_id=pane)


async def _list(settings: Settings) -> None:
    """List many panes."""
    async with in_process(settings) as tools:
        for _ in range(30):
            await tools.create("exec cat")
        await tools.blocks("list_panes")
    async with in_process(settings, toolsets="tmux") as tmux:
        await tmux.blocks("tmux_create_session", name="many", command="exec cat")
        for _ in range(30):
            await tmux.blocks("tmux_create_window", session="many", command="exec cat")
        await tmux.blocks("tmux_list_panes")


HARD_LOGS = {
    "a long line beside a carriage return": (
        "print('50%', end='\\r'); print('100%'); print('x' * 500_000)"
    ),
    "backspaces": "print('x' * 100_000 + '\\b' * 100_000)",
    "spinners": "print(('[======>      ] 44% ' * 4 + '\\b' * 80) * 1_500)",
    "short lines": "print('a\\n' * 700_000 + 'b\\n' * 500_000)",
    "blank lines": "print('\\n' * 1_200_000 + 'b\\n' * 500_000)",
    "what looks like a private path": (
        "print('/tmp/tmux-debug-mcp-1-00000000/1.1-x ' + 'x' * 300_000)"
    ),
}


async def _search(program: str, settings: Settings) -> None:
    """Search a log and read it."""
    async with in_process(settings) as tools:
        pane = await tools.create(python(program))
        await tools.exited(pane)
        for pattern in ("zzz", "a", ".", "x*", "^$"):
            await tools.blocks("capture_pane", pane_id=pane, pattern=pattern)
        await tools.blocks("capture_pane", pane_id=pane)
        await tools.blocks("capture_pane", pane_id=pane, since=0)


async def _kept_hole(settings: Settings) -> None:
    """Read a kept log of 64 GiB that takes 4 KiB: its end is missing, as after a crash."""
    run = kept_hole(settings.cwd / "logs", b"line\n" * 800).parent
    async with in_process(settings, archive=Archive(run.parent)) as tools:
        for arguments in ({}, {"since": 0}, {"since": 32 << 30}):
            await tools.blocks("capture_pane", pane_id=f"{run.name}/debug-1", **arguments)


PASTES = {
    "paste: 500 lines, cat": partial(_paste, "cat", 500),
    "paste: 5000 lines, raw": partial(_paste, RAW, 5_000),
    "paste: 60000 lines, raw with echo": partial(_paste, RAW_ECHO, 60_000),
    "paste: 60000 lines, cat": partial(_paste, "cat", 60_000),
}


def works(max_bytes: int) -> dict[str, Work]:
    """Return what is a lot of work, by a name.

    Args:
        max_bytes: How much of each stream is printed.
    """
    return {
        **{f"output: {name}": partial(_output, text, max_bytes) for name, text in STREAMS.items()},
        **PASTES,
        "document": _document,
        **{f"keys: {name}": partial(_keys, keys) for name, keys in KEYS.items()},
        "large terminals": _large_terminals,
        "waits for floods": _many_waits,
        "list": _list,
        "kept hole": _kept_hole,
        **{f"search: {name}": partial(_search, program) for name, program in HARD_LOGS.items()},
    }
