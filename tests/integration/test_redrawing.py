"""Of a program that draws its rows again, all calls show what is there in the end."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from support import Tools, python, texts

PROGRAM = """
import sys
for line in range({before}):
    print("before", line, "-" * 60)
for frame in range({frames}):
    if frame:
        sys.stdout.write("\\033[20A")
    for row in range(20):
        sys.stdout.write(f"\\033[2Klayer {{row}}: {{frame * (row + 1)}} {{'.' * {width}}}\\n")
print("end")
"""


def program(frames: int, width: int, before: int = 0) -> str:
    return python(PROGRAM.format(frames=frames, width=width, before=before))


def check(text: str, frames: int) -> Sequence[str]:
    """Check that all rows are those of the last frame; return the lines of ours."""
    own = []
    for line in text.removesuffix("\n").split("\n"):
        row = re.match(r"layer (\d+): (\d+) ", line)
        if row:
            assert int(row[2]) == (int(row[1]) + 1) * (frames - 1), text
        elif line != "end" and not line.startswith(("layer", "before")):
            own.append(line)
    return own


@pytest.mark.parametrize(("width", "before"), [(10, 0), (150, 0), (150, 400)])
async def test_rows_of_different_frames_are_never_mixed(
    tools: Tools, width: int, before: int
) -> None:
    command = program(50, width, before)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_pane", {"command": command, "timeout_s": 30}),
        ("create_pane", {"command": command, "wait_for": "never"}),
        ("wait", {"pane_id": "debug-1", "since": 0}),
        ("run", {"command": command}),
        ("capture_pane", {"pane_id": "debug-1", "since": 0}),
    ]
    for tool, arguments in calls:
        text, status = texts(await tools.call(tool, **arguments))[-2:]
        notes = check(text, 50)
        assert len(notes) <= 1
        assert text.endswith("end\n") or " more bytes to read" in status
        if notes:
            advice = re.fullmatch(r"\[\d+ lines? left out: .* since (\d+), lines (\d+)\]", notes[0])
            assert advice
            since, lines = map(int, advice.groups())
            read = {"pane_id": "debug-1", "since": since, "lines": lines}
            rest, _ = texts(await tools.call("capture_pane", **read))
            assert not check(rest, 50)


async def test_show_finds_rows_as_they_are_in_the_end(tools: Tools) -> None:
    command = program(50, 30)
    shown = f"layer 7: 392 {'.' * 30}"
    pane_id = await tools.create(command)
    await tools.exited(pane_id)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_pane", {"command": command, "timeout_s": 30}),
        ("wait", {"pane_id": pane_id, "since": 0}),
        ("run", {"command": command}),
    ]
    for tool, arguments in calls:
        result = await tools.call(tool, **arguments, show="layer 7:")
        assert texts(result)[-2].removesuffix("\n") == shown
        result = await tools.call(tool, **arguments, show="layer 7: 8 ")
        assert texts(result)[-2] == "[no line matches `show`]"


MENU = """
import sys, termios, tty
tty.setcbreak(0)
row = 0
for turn in range(100):
    for number in range(4):
        mark = ">" if number == row else " "
        print(f"\\033[2K{mark} choice {number}")
    key = sys.stdin.read(1)
    if key == "q":
        break
    row = (row + 1) % 4
    print("\\033[4A", end="", flush=True)
print("chosen", row)
sys.stdin.read(1)
"""


async def test_menu_is_shown_as_it_is_after_the_last_of_several_keys(tools: Tools) -> None:
    pane_id = await tools.create(python(MENU), wait_for="choice 3")
    _, text, _ = await tools.send(pane_id, ["j", "j", "j", "q"], wait_for="chosen")

    assert text.splitlines() == [
        *(f"  choice {number}" for number in range(3)),
        "> choice 3",
        "chosen 3",
    ]


# A list that is redrawn in place at each key, from so many rows above.
LIST = """
import os, sys, tty
tty.setcbreak(0)
print("Region:")
names, chosen, above = ["north", "east", "south", "west"], 0, 0
while True:
    rows = [f"{'>' if number == chosen else ' '} {name}" for number, name in enumerate(names)]
    back = f"\\033[{above}A" if above else ""
    print(back + "\\033[J" + "\\n".join(rows), flush=True)
    if os.read(0, 1) == b"q":
        break
    chosen, above = (chosen + 1) % 4, int(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("above", "shown"),
    [
        (4, ["  north", "  east", "> south", "  west"]),
        (3, ["> north", "  north", "  north", "  east", "> south", "  west"]),
    ],
)
async def test_list_that_grows_by_mistake_looks_different_from_one_that_is_redrawn(
    tools: Tools, above: int, shown: list[str]
) -> None:
    pane_id = await tools.create(f"{python(LIST)} {above}", wait_for="west")
    await tools.send(pane_id, ["j", "j", "q"])
    await tools.exited(pane_id)

    assert (await tools.capture(pane_id, since=0)).splitlines() == ["Region:", *shown]
    blocks = await tools.blocks("wait", pane_id=pane_id, since=0)
    text = blocks[0].replace("[the line above: 2 times]\n", "")
    assert text.splitlines() == ["Region:", *shown]


async def test_line_that_is_typed_stands_in_the_line_of_its_prompt(tools: Tools) -> None:
    # So it does where the answer begins with it.
    answers = python("while True: print(input('> '))")
    await tools.create(answers, wait_for="> ")
    _, text, _ = await tools.blocks("send_keys", pane_id="debug-1", keys="price = 12\nprice\n")

    assert text == "price = 12\nprice = 12\n> price\nprice\n> "
