"""The animated picture of the demo in the README: `docs/demo.svg`.

The demo runs in a terminal of our own server, with a real shell. What it has printed is then shown
piece by piece in another terminal, at a pace for reading, and drawn. What differs from run to run
and from one Python to another is the same in the picture as in the README. Run as a program, this
writes the picture; with `--check` it compares.
"""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
from support import PATIENCE_S, in_process

from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.creation import NewPane
from tmux_debug_mcp.panes.engine import open_engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.pictures.screen import Screen
from tmux_debug_mcp.pictures.svg import animation
from tmux_debug_mcp.settings import Settings, pane_environment

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
COMMAND = "tmux-debug-mcp demo"
TITLE = COMMAND
COLUMNS, ROWS = 92, 27
MAX_BYTES = 150_000

# The pace, in seconds: before and between keys, before the demo begins, before an answer, and for
# reading a text and each line of it.
_FIRST_KEY_S, _KEY_S, _BEGIN_S, _ANSWER_S = 0.8, 0.06, 0.4, 0.7
_READ_S, _LINE_S = 0.9, 0.13
_HOLD_S = 4.0

_SGR = r"(?:\033\[[\d;]*m)*"
# Where a call and its answer begin.
_PIECE = re.compile(
    rf"(?=^{_SGR}\n# )|(?=^{_SGR}  (?:Created|HTTP|Traceback|Sent|\[\{{))", re.MULTILINE
)
_CURSORS = re.compile(r'(?<=cursor )\d+|(?<="cursor":)\d+')
_SHOWN_CURSORS = ("43", "39", "572", "1183")
# What else differs, and how it is shown. Frames of Python's own modules and marks below lines
# depend on its version.
_VARIES = (
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "40371"),
    (re.compile(r"(?<=pid )\d+"), "4711"),
    (re.compile(r"\d+\.\d(?= s\b)"), "0.2"),
    (re.compile(r'(?<="runtime_s":)[\d.]+'), "0.2"),
    (re.compile(r"\d+/\w+/\d+ [\d:]+(?=\] )"), "30/Jan/2026 10:15:46"),
    (re.compile(r'(?<=File ")[^"]*/(?=shop\.py")'), ""),
    (re.compile(r'( *File "/[^\n]*\n(?:    +[^\n]*\n)+)+'), "    …\n"),
    (re.compile(r"^ +(?:\^+|~+\^{2,}~*) *\n", re.MULTILINE), ""),
)


class Step(NamedTuple):
    """A piece of text, and when it appears: seconds after the piece before."""

    delay_s: float
    text: str


def picture() -> str:
    """Return the picture of what the demo shows now."""
    return anyio.run(_picture)


async def _picture() -> str:
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(pane_environment(os.environ, ["TMUX*"]), Path(directory))
        printed = await _printed(settings)
        frames = await _frames(settings, steps(stable(printed)))
    return animation(frames, title=TITLE, hold_s=_HOLD_S)


async def _printed(settings: Settings) -> str:
    """Run the demo in a shell, as a person would, and return what the terminal got."""
    program = settings.cwd / COMMAND.split(maxsplit=1)[0]
    run = "from tmux_debug_mcp.command.serve import main; main()"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-c", run])} "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{settings.cwd}:{os.environ['PATH']}", "PS1": "$ "}
    async with in_process(settings) as tools:
        await tools.blocks("create_pane", command="exec bash --norc", name="demo", env=env)
        await tools.blocks(
            "send_keys", pane_id="demo", keys=f"{COMMAND} Enter", wait_for="Found in shop"
        )
        await tools.blocks("wait", pane_id="demo")
        log = (await tools.engine.find("demo")).log
        data = log.read(log.kept_from, log.size)
    text = data.decode().replace("\r\n", "\n")
    return text[text.index(COMMAND) :]


def stable(printed: str) -> str:
    """Return what the demo has printed without what differs from run to run."""
    # The shell's next prompt follows the demo's last line.
    before, last, error = printed.rpartition("TypeError")
    printed = before + last + error.partition("\n")[0]
    for varying, shown in _VARIES:
        printed = varying.sub(shown, printed)
    cursors = list(dict.fromkeys(_CURSORS.findall(printed)))
    names = dict(zip(cursors, _SHOWN_CURSORS, strict=True))
    return _CURSORS.sub(lambda found: names[found[0]], printed)


def steps(printed: str) -> list[Step]:
    """Return the pieces in which a text is shown: the prompt, each key, each call, each answer."""
    _, _, output = printed.partition("\n")
    shown = [Step(0.0, "$ ")]
    shown += [Step(_KEY_S if number else _FIRST_KEY_S, key) for number, key in enumerate(COMMAND)]
    pieces = ["\n", *filter(None, _PIECE.split(output))]
    delay_s = _BEGIN_S
    for piece in pieces:
        shown.append(Step(delay_s, piece))
        is_call = "\n# " in piece
        delay_s = _ANSWER_S if is_call else _READ_S + _LINE_S * piece.count("\n")
    return shown


async def _frames(settings: Settings, shown: Sequence[Step]) -> list[tuple[float, Screen]]:
    """Return the screens of a terminal that gets text in steps, and when each appears."""
    frames = []
    at_s = 0.0
    pipe = settings.cwd / "pipe"
    os.mkfifo(pipe)
    async with open_engine(settings) as engine:
        command = f"exec cat {shlex.quote(str(pipe))}"
        pane = await engine.create(NewPane(command, columns=COLUMNS, rows=ROWS))
        with pipe.open("w") as file:
            for number, step in enumerate(shown):
                # A title shows nothing, and tells that the terminal has got what is before it.
                mark = f"\033]0;step {number}\a"
                file.write(step.text + mark)
                file.flush()
                await _until_printed(pane, mark.encode())
                at_s += step.delay_s
                frames.append((round(at_s, 3), await capture_screen(pane)))
    return frames


async def _until_printed(pane: Pane, mark: bytes) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with pane.subscribe() as subscription:
            while mark not in pane.log.read(pane.log.kept_from, pane.log.size):
                await subscription.wait(PATIENCE_S)


def main(words: Sequence[str]) -> int:
    """Write the picture, or compare it with `--check`; return the exit status."""
    now = picture()
    if "--check" in words:
        return int(PICTURE.read_text() != now)
    PICTURE.write_text(now)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
