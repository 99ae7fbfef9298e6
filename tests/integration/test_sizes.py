"""The size of a terminal, which `tmux_create_pane` and `tmux_send_keys` take."""

import pytest
from support import Tools, python, run

# Prints its size whenever it is told of another one.
TELLS = python("""
import os, signal
def tell(*_):
    columns, rows = os.get_terminal_size()
    print(rows, columns, flush=True)
signal.signal(signal.SIGWINCH, tell)
tell()
while True:
    print("got", input(), flush=True)
""")
# Draws its size in the last row of the alternate screen, at the start and when that changes.
DRAWS = python(r"""
import os, signal, sys
def draw(*_):
    columns, rows = os.get_terminal_size()
    sys.stdout.write(f"\33[2J\33[{rows};1H{columns} columns, {rows} rows")
    sys.stdout.flush()
signal.signal(signal.SIGWINCH, draw)
sys.stdout.write("\33[?1049h")
draw()
while key := sys.stdin.readline():
    pass
""")


async def test_pane_has_its_size_before_its_program_prints_a_byte(tools: Tools) -> None:
    [confirmed, text, _] = await tools.blocks(
        "create_pane", command="stty size; cat", size="80x24", timeout_s=5
    )

    assert confirmed.startswith("Created pane 'debug-1'")
    assert text.splitlines() == ["24 80"]
    pane = await tools.engine.find("debug-1")
    assert (pane.log.columns, pane.log.rows) == (80, 24)
    # The next one has the usual size again.
    assert (await run(tools, "stty size"))[0] == "50 200\n"


async def test_program_is_told_of_a_size_before_keys_are_typed(tools: Tools) -> None:
    pane_id = await tools.create(TELLS, wait_for="50 200")

    # tmux tells a terminal of no two sizes within a quarter of a second.
    for columns, rows in ((81, 23), (82, 24), (500, 200), (2, 2)):
        blocks = await tools.send(
            pane_id, "x Enter", size=f"{columns}x{rows}", wait_for="^got x", timeout_s=30
        )
        assert blocks[0] == "Sent keys to pane 'debug-1'"
        # The terminal shows keys at once, also before the program has done what it does.
        printed = [line for line in blocks[1].splitlines() if line != "x"]
        assert printed[:2] == [f"{rows} {columns}", "got x"]


@pytest.mark.parametrize("keys", ["", []])
async def test_size_without_keys_shows_what_the_program_makes_of_it(
    tools: Tools, keys: str | list[str]
) -> None:
    pane_id = await tools.create(TELLS, wait_for="50 200")

    confirmed, text, status = await tools.send(pane_id, keys, size="100x30", timeout_s=5)

    assert confirmed == "Resized pane 'debug-1' to 100x30"
    assert text.splitlines() == ["30 100"]
    assert "awaits input" in status


async def test_full_screen_program_is_shown_in_its_new_size(tools: Tools) -> None:
    pane_id = await tools.create(DRAWS, wait_for="200 columns, 50 rows")

    blocks = await tools.send(pane_id, "", size="40x10", wait_for="40 columns")

    assert blocks[1].split("\n")[-1] == "40 columns, 10 rows"
    assert len(blocks[1].split("\n")) <= 10
    assert "screen 40x10" in blocks[2]
    assert "matched" in blocks[2]


async def test_wait_after_a_resize_begins_there(tools: Tools) -> None:
    pane_id = await tools.create(TELLS, wait_for="50 200")
    await tools.send(pane_id, "one Enter", wait_for="got one")

    await tools.send(pane_id, "", size="100x30")
    blocks, facts = await tools.answer("wait", pane_id=pane_id, pattern="^(got|30 )")

    assert (blocks[0].splitlines(), facts["reason"]) == (["30 100"], "matched")


async def test_keys_are_still_needed_where_there_is_no_size(tools: Tools) -> None:
    pane_id = await tools.create("cat")
    wanted = (
        "Parameter 'keys' is empty. Give the text to type or the keys to press, such as 'ls Enter'."
    )

    assert await tools.error("send_keys", pane_id=pane_id, keys="") == wanted
    assert await tools.error("send_keys", pane_id=pane_id, keys=[]) == wanted
    assert await tools.error("send_keys", pane_id=pane_id, keys=[""], size="80x24") == wanted


@pytest.mark.parametrize("size", ["80", "80x", "x24", "80X24", "80x24 ", "1x24", "501x24", "8x201"])
async def test_what_is_no_size_is_refused_before_anything_is_done(tools: Tools, size: str) -> None:
    pane_id = await tools.create("stty size; cat", wait_for="50 200")
    refused = (
        f"Parameter 'size' is '{size}'. Give columns and rows, such as 80x24, of at most 500x200."
    )

    assert await tools.error("create_pane", command="cat", size=size) == refused
    assert await tools.error("send_keys", pane_id=pane_id, keys="x", size=size) == refused
    assert len(await tools.json("list_panes")) == 1
    assert await tools.capture(pane_id) == "50 200"


async def test_pane_that_has_ended_is_not_resized(tools: Tools) -> None:
    pane_id = await tools.create("true")
    await tools.exited(pane_id)

    error = await tools.error("send_keys", pane_id=pane_id, keys="", size="80x24")

    assert "exited with code 0" in error
    pane = await tools.engine.find(pane_id)
    assert (pane.log.columns, pane.log.rows) == (200, 50)
