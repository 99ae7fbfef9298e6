"""Replays show what tmux showed: corpus programs and random resizes, at random cursors."""

import os
import random
import shlex
from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, Tools, python

from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.sizing import resize
from tmux_debug_mcp.pictures.screen import DrawnScreen
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.viewing.logs import cast
from tmux_debug_mcp.viewing.replaying import open_replay

CORPUS = sorted((Path(__file__).parent.parent / "corpus").glob("*.out"))
# REPLAY_EVERY=1 replays all programs; each one takes half a second.
EVERY = int(os.environ.get("REPLAY_EVERY", "16"))
SCREENS = 3

# Prints the next bytes of a file whenever it is told how many.
PROGRAM = r"""
import os, re, sys, tty
tty.setraw(0)
data = open(sys.argv[1], "rb").read()
os.write(1, b"ready")
while True:
    got = b""
    while not re.search(rb"go \d+\r", got):  # among answers of the terminal
        got += os.read(0, 1)
    count = int(got.rpartition(b" ")[2])
    while count:
        written = os.write(1, data[:count])
        data, count = data[written:], count - written
"""


async def shown(pane: Pane, cursor: int) -> DrawnScreen:
    """Return the screen of a pane when its log has come to a cursor."""
    with anyio.fail_after(PATIENCE_S):
        while pane.log.size < cursor:
            await anyio.sleep(0.002)
    return await capture_screen(pane)


async def recorded(
    tools: Tools, program: Path, choose: random.Random
) -> tuple[Pane, dict[int, DrawnScreen]]:
    """Run a program of the corpus, resize it at random; return its pane, and screens by cursor."""
    size = program.stat().st_size
    pane_id = await tools.create(f"{python(PROGRAM)} {shlex.quote(str(program))}", wait_for="ready")
    pane = await tools.engine.find(pane_id)
    screens = {pane.log.size: await capture_screen(pane)}
    stops = sorted(choose.sample(range(1, size + 1), min(SCREENS, size)))
    start = 0
    for stop in stops:
        cursor = pane.log.size + stop - start
        await tools.send(pane_id, f"go {stop - start}\n", literal=True, timeout_s=0)
        screens[cursor] = await shown(pane, cursor)
        start = stop
        if choose.random() < 0.5:
            await resize(tools.engine, pane, choose.randrange(20, 250), choose.randrange(5, 60))
            screens[cursor] = await capture_screen(pane)
    return pane, screens


@pytest.mark.parametrize("program", CORPUS[::EVERY], ids=lambda path: path.stem)
async def test_replay_shows_what_tmux_showed(
    tools: Tools, settings: Settings, program: Path
) -> None:
    pane, screens = await recorded(tools, program, random.Random(program.stem))  # noqa: S311

    async with open_replay(pane.log, settings) as replay:
        for cursor, screen in screens.items():
            await replay.advance(cursor)
            assert await capture_screen(replay.pane) == screen
    [last] = list(screens)[-1:]
    async with open_replay(pane.log, settings) as replay:
        await replay.advance(last)
        assert await capture_screen(replay.pane) == screens[last]


async def test_replay_of_a_log_whose_beginning_is_gone_shows_its_end(
    tools: Tools, settings: Settings
) -> None:
    pane_id = await tools.create("seq 1 20000; cat", wait_for="20000")
    pane = await tools.engine.find(pane_id)
    assert pane.log.trim(8192)

    async with open_replay(pane.log, settings) as replay:
        assert replay.cursor == pane.log.kept_from > 0
        await replay.advance(pane.log.size)
        assert (await capture_screen(replay.pane)).rows == (await capture_screen(pane)).rows


async def test_recording_has_all_that_was_printed(tools: Tools) -> None:
    pane_id = await tools.create("printf 'one\\303\\244'; sleep 0.6; echo two; bash --norc")
    await tools.send(pane_id, "echo three\n", wait_for="^three")
    pane = await tools.engine.find(pane_id)
    pane.log.note_growth()

    header, *events = b"".join(cast(pane.log, "it", 2.0)).splitlines()

    assert b'"width":200,"height":50' in header
    text = b"".join(events).decode()
    assert "oneä" in text
    assert "three" in text
    assert "]7777;" not in text  # times may contain the number
    times = [float(event[1:].split(b",")[0]) for event in events]
    assert times == sorted(times)
    assert len(times) > 1
