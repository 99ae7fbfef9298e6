"""A program that draws is seen to draw however it is started, and however soon it is at rest."""

from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, Gate, Tools, python, texts

# Programs, and a row that each draws. The last two draw on the main screen.
PROGRAMS = {
    "curses": (
        python("import curses; curses.wrapper(lambda s: (s.addstr(3, 2, 'drawn'), s.getch()))"),
        "  drawn",
    ),
    "less": ("seq 1 300 | less -c", "3"),
    "vim": ("$(command -v vim || command -v vim.tiny) -u NONE -N", "~"),
    "dialog": ("dialog --menu Which 10 40 3 a first b second", "second"),
    "top": ("top -d 60", "PID"),
    "tput": ("tput cup 5 0; echo 'drawn there'; tput cup 9 9; read -r x", "drawn there"),
}
# How a program is started, as a command and what is typed into it. `{gate}` lets it begin.
WAYS = {
    "directly": ("{gate} {program}", None),
    "by a script": ("echo first >/dev/null; echo before; {gate} bash {script}", None),
    "after another command": ("echo before; {gate} {program}; echo after; read -r y", None),
    "by a shell": ("bash --norc", "echo before; {gate} {program} Enter"),
}


async def start(tools: Tools, way: str, program: str, gate: str, script: Path) -> str:
    """Start a program in a pane of its own, with or without a gate; return the pane's id."""
    script.write_text(f"{program}\n")
    command, keys = WAYS[way]
    facts = {"program": program, "script": script, "gate": gate}
    pane_id = await tools.create(command.format_map(facts), timeout_s=0)
    if keys:
        await tools.call("wait", pane_id=pane_id, pattern=r"[$#] $")
        await tools.send(pane_id, keys.format_map(facts), timeout_s=0)
    return pane_id


@pytest.mark.parametrize("name", PROGRAMS)
async def test_screen_is_seen_however_its_program_is_started(
    tools: Tools, tmp_path: Path, name: str
) -> None:
    program, row = PROGRAMS[name]
    for way in WAYS:
        for is_slow in (False, True):
            gate = Gate(tmp_path / f"gate {way} {is_slow}")
            wait = f"cat {gate} >/dev/null;" if is_slow else ""
            pane_id = await start(tools, way, program, wait, tmp_path / "script")
            async with anyio.create_task_group() as tasks:
                if is_slow:
                    tasks.start_soon(gate.open)
                result = await tools.call(
                    "wait", pane_id=pane_id, pattern=row, timeout_s=PATIENCE_S
                )
            *_, text, status = texts(result)
            assert "; matched; screen 200x50; " in status, (way, is_slow)
            assert row in text, (way, is_slow)
            assert ("before" in text.split("[screen]")[0]) == (way != "directly"), (way, is_slow)
            await tools.call("kill_pane", pane_id=pane_id)


BOARD = python("""
import curses
def draw(screen):
    for row in range(23):
        screen.addstr(row, 0, f"row {row} " + "x" * 60)
    while screen.getch() != ord("q"):
        screen.addstr(5, 0, "changed ")
curses.wrapper(draw)
""")


async def test_usual_screen_is_shown_whole_the_first_time(tools: Tools) -> None:
    # It is longer than what an observation shows that nobody asked for.
    blocks = await tools.blocks("create_pane", command=BOARD, size="80x24", timeout_s=PATIENCE_S)
    assert [row.split(" x")[0] for row in blocks[1].split("\n")] == [f"row {n}" for n in range(23)]

    blocks = await tools.blocks("send_keys", pane_id="debug-1", keys="c", show="row 1|changed")
    shown = [row.split("x")[0].strip() for row in blocks[1].split("\n")]
    assert shown == ["row 1", "changed", *(f"row {n}" for n in range(10, 20))]
