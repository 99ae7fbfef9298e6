"""Panes of the toolset `tmux` (spec 004): splitting, resizing, typing and reading."""

import shlex
import sys

from support import User
from toolsets import Tmux


async def test_splits_have_the_direction_and_size_that_were_asked_for(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    await tmux.text("split_window", target="w", horizontal=True, size="10")
    await tmux.text("split_window", target="w:0.0", size="25%")

    shapes = {row[2]: row[4] for row in await tmux.rows("panes")}
    assert shapes == {"%1": "149x39", "%2": "200x10", "%3": "50x39"}
    for size in ("half", "0", "0%", "101%", "-5", ""):
        error = await tmux.error("split_window", target="w", size=size)
        assert error.startswith(f"Parameter 'size' is '{size}'.")


async def test_resizing_moves_borders_as_far_as_there_is_room(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    await tmux.text("split_window", target="w")
    before = int((await tmux.rows("panes"))[0][4].partition("x")[0])
    resized = "Pane 'w:0.0' resized."
    assert await tmux.text("resize_pane", target="w:0.0", direction="right") == resized
    assert (await tmux.rows("panes"))[0][4] == f"{before + 5}x50"
    await tmux.text("resize_pane", target="w:0.0", width=30)
    assert (await tmux.rows("panes"))[0][4] == "30x50"
    # The terminal's size is known to what reads its log.
    assert [pane.log.columns for pane in tmux.engine.panes] == [30, 169]

    assert "Give 'direction'" in await tmux.error("resize_pane", target="w")
    assert "one of up, down, left, right" in await tmux.error(
        "resize_pane", target="w", direction="over"
    )
    # A resize that changes nothing is not an error, as in tmux.
    for arguments in ({"direction": "up"}, {"height": 20}, {"width": 30}):
        assert await tmux.text("resize_pane", target="w:0.0", **arguments) == resized
        assert (await tmux.rows("panes"))[0][4] == "30x50"
    assert await tmux.text("resize_pane", target="w:0.0", width=300) == resized
    assert (await tmux.rows("panes"))[0][4] == "198x50"
    await tmux.text("create_window", session="w")
    await tmux.text("resize_pane", target="w:1", width=80, height=24)  # alone in its window
    assert (await tmux.rows("panes", target="w:1"))[0][4] == "80x24"


async def test_size_that_no_terminal_has_is_refused(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    for size in ({"width": 501}, {"height": 201}, {"direction": "up", "amount": 501}):
        assert "and at most" in await tmux.error("resize_pane", target="w:0.0", **size)


async def test_programs_have_the_size_when_resizing_answers(tmux: Tmux) -> None:
    # tmux tells a terminal of no two sizes within a quarter of a second.
    await tmux.text("create_session", name="w", command="bash --norc")
    for width, height in ((120, 40), (80, 24), (132, 43)):
        await tmux.text("resize_pane", target="w", width=width, height=height)
        await tmux.text("send_keys", target="w", keys="echo $(stty size)- Enter")
        assert f"\n{height} {width}-" in await tmux.shows("w", f"\n{height} {width}-")


async def test_keys_are_typed_and_what_came_of_them_is_read(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    answer = await tmux.text("send_keys", target="w", keys="echo $((40+2)); echo '-x;' Enter")
    assert answer == "Sent keys to pane 'w'"
    assert "\n42\n-x;" in await tmux.shows("w", "\n-x;")
    await tmux.text("send_keys", target="w", keys="echo Enter;", literal=True)
    assert "Enter;" in await tmux.shows("w", "Enter;")
    await tmux.text("send_keys", target="w", keys="C-c")
    assert "looks like a key, but isn't one" in await tmux.error("send_keys", target="w", keys="C-")


async def test_keys_have_the_grammar_of_all_toolsets(tmux: Tmux) -> None:
    python = f"{shlex.quote(sys.executable)} -q\nprint(6*7)\n"
    await tmux.text("create_session", name="w", command="bash --norc")
    answer = await tmux.text("send_keys", target="w", keys=python)
    assert answer == "Sent keys to pane 'w'"
    assert "\n42\n" in await tmux.shows("w", "\n42\n")

    answer = await tmux.text("send_keys", target="w", keys="enter")
    assert answer == "Sent keys to pane 'w' (Enter not pressed; 'Enter' is the key)"
    answer = await tmux.text("send_keys", target="w", keys="SIGTERM")
    assert answer == "Sent keys to pane 'w'"
    await tmux.shows("w", "Terminated")


async def test_lines_are_read_from_where_they_are_asked_for(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w", command="seq 1 80; exec sleep 99")
    await tmux.shows("w", "\n80")

    assert (await tmux.text("read_pane", target="w")).startswith("32\n33\n")
    assert await tmux.text("read_pane", target="w", line_count=3) == "78\n79\n80"
    assert await tmux.text("read_pane", target="w", start_line=0, line_count=2) == "32\n33"
    assert await tmux.text("read_pane", target="w", start_line=-2, line_count=3) == "30\n31\n32"
    assert (await tmux.text("read_pane", target="w", start_line=-31)).startswith("1\n2\n")
    assert await tmux.text("read_pane", target="w", start_line=-(10**12), line_count=2) == "1\n2"
    assert await tmux.text("read_pane", target="w", start_line=10**12) == ""


async def test_line_drawing_is_read_as_what_is_seen(tmux: Tmux, on_users: Tmux) -> None:
    command = r"printf '\033[31mred\033(0lqqk\033(B\033[m lqqk  \n'; exec sleep 99"
    for server in (tmux, on_users):
        await server.text("create_session", name="w", command=command)
        await server.shows("w", "red")
        for part in ({}, {"line_count": 3}, {"start_line": 0, "line_count": 1}):
            assert await server.text("read_pane", target="w", **part) == "red┌──┐ lqqk"


async def test_rows_that_are_too_many_for_one_result_are_read_in_parts(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w", command="seq -f %0150.0f 1 2000; exec sleep 99")
    await tmux.shows("w", "2000")
    start, found = -1951, list[str]()
    while True:
        shown, *notes = await tmux.blocks("read_pane", target="w", start_line=start)
        assert len(shown) <= 40_000
        found += shown.split("\n")
        if not notes:
            break
        start = int(notes[0].removeprefix("[continue with start_line ").removesuffix("]"))
    assert list(map(int, found)) == list(range(1, 2001))
    shown, *notes = await tmux.blocks("read_pane", target="w", line_count=1000)
    assert (shown[-4:], len(shown) <= 40_000, notes) == (
        "2000",
        True,
        ["[earlier lines are left out]"],
    )
    assert "at least 1" in await tmux.error("read_pane", target="w", line_count=0)


async def test_line_that_is_longer_than_a_result_is_cut_and_not_left_out(
    tmux: Tmux, on_users: Tmux
) -> None:
    command = "head -c 60000 /dev/zero | tr '\\0' x; echo; echo end; exec sleep 99"
    for server in (tmux, on_users):
        await server.text("create_session", name="long", command=command)
        await server.shows("long", "end")
        shown, note = await server.blocks("read_pane", target="long", line_count=10)
        assert (set(shown[:-4]), shown[-4:], len(shown)) == ({"x"}, "\nend", 40_000)
        assert note == "[earlier lines are left out]"


async def test_nothing_is_said_to_be_left_out_of_exactly_as_many_lines_as_are_shown(
    tmux: Tmux, on_users: Tmux, user: User
) -> None:
    user.tmux("set-option", "-g", "history-limit", "5000")
    for server in (tmux, on_users):
        for lines, notes in ((1000, []), (1001, ["[earlier lines are left out]"])):
            name = f"lines{lines}"
            command = f"seq 1 {lines}; exec sleep 99"
            await server.text("create_session", name=name, command=command)
            await server.shows(name, str(lines))
            for asked in (1001, 5000):
                shown, *said = await server.blocks("read_pane", target=name, line_count=asked)
                expected = list(range(lines - 999, lines + 1))
                assert (list(map(int, shown.split("\n"))), said) == (expected, notes)
            shown, *said = await server.blocks("read_pane", target=name, line_count=1000)
            assert (len(shown.split("\n")), said) == (1000, [])


async def test_result_says_which_lines_are_left_out(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w", command="seq 1 3000; exec sleep 99")
    await tmux.shows("w", "3000")
    shown, note = await tmux.blocks("read_pane", target="w", line_count=2000)
    assert (shown.split("\n")[0], note) == ("2001", "[earlier lines are left out]")
    shown, note = await tmux.blocks("read_pane", target="w", start_line=-5000, line_count=1500)
    assert (shown.split("\n")[-1], note) == ("1000", "[continue with start_line -1951]")


async def test_panes_stay_when_their_program_exits(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w", command="echo last; exit 3")
    await tmux.runs("w", "exited with code 3")
    assert await tmux.text("read_pane", target="w") == "last"
    error = await tmux.error("send_keys", target="w", keys="x")
    assert error.startswith("Pane 'w' exited with code 3 after ")
    assert error.endswith(
        "Use tmux_read_pane to read its last output or tmux_create_window to start again."
    )
