"""The toolset `tmux`: spec 004, on our own server and on the user's."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import PATIENCE_S, Tools, User, eventually, in_process, socket_of

from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.targets import PaneRow
from tmux_debug_mcp.tmux.users_server import UsersServer

EXPLAINED = "Use tmux_list_panes to see what is there."


@pytest.fixture
async def tools(settings: Settings) -> AsyncIterator[Tools]:
    async with in_process(settings, toolsets="tmux") as tools:
        tools.prefix = "tmux_"
        yield tools


@pytest.fixture
async def on_users(settings: Settings, user: User) -> AsyncIterator[Tools]:
    async with in_process(replace(settings, socket=str(user.socket)), toolsets="tmux") as tools:
        tools.prefix = "tmux_"
        yield tools


async def text(tools: Tools, tool: str, /, **arguments: Any) -> str:  # noqa: ANN401
    [block] = await tools.blocks(tool, **arguments)
    return block


async def rows(tools: Tools, what: str, **arguments: Any) -> list[list[str]]:  # noqa: ANN401
    return [line.split("\t") for line in (await text(tools, f"list_{what}", **arguments)).splitlines()]


async def eventually_gone(tools: Tools, session: str) -> None:
    """Wait until there is no session of this name."""
    with anyio.fail_after(PATIENCE_S):
        while session in [row[0] for row in await rows(tools, "sessions")]:
            await anyio.sleep(0.005)


async def shows(tools: Tools, target: str, wanted: str) -> str:
    """Wait until a pane shows a text."""
    content = ""
    with anyio.fail_after(PATIENCE_S):
        while wanted not in content:
            await anyio.sleep(0.005)
            content = await text(tools, "read_pane", target=target)
    return content


class TestOwnServer:
    async def test_nothing_is_there_and_that_is_said(self, tools: Tools) -> None:
        assert await text(tools, "list_sessions") == "No sessions found."
        assert await text(tools, "list_windows") == "No windows found."
        assert await text(tools, "list_panes") == "No panes found."
        error = await tools.error("send_keys", target="work", keys="x")
        assert error == f"Target 'work' not found: there is no session 'work'. {EXPLAINED}"

    async def test_creation_returns_the_ids_of_what_was_made(self, tools: Tools) -> None:
        answer = await text(tools, "create_session", name="work", window_name="first")
        assert answer == "Session 'work' created. session_id=$1 window_id=@1 pane_id=%1"
        answer = await text(tools, "create_window", session="work", name="second", command="exec cat")
        assert answer == "Window created in session 'work'. window_id=@2 window_index=1 pane_id=%2"
        assert await text(tools, "split_window", target="work:second", command="exec sleep 99") == (
            "Pane created. pane_id=%3"
        )
        await eventually_runs(tools, "%3", "sleep")
        assert await rows(tools, "sessions") == [["work", "$1", "2 windows", "0 attached"]]
        assert await rows(tools, "windows") == [
            ["work", "0", "@1", "first", "0", "1 panes", "%1"],
            ["work", "1", "@2", "second", "1", "2 panes", "%3"],
        ]
        assert await rows(tools, "panes") == [
            ["work", "0", "%1", "0", "200x50", "1", "bash"],
            ["work", "1", "%2", "0", "100x50", "0", "cat"],
            ["work", "1", "%3", "1", "99x50", "1", "sleep"],
        ]

    async def test_lists_of_a_part_have_all_of_it_and_nothing_else(self, tools: Tools) -> None:
        await text(tools, "create_session", name="one")
        await text(tools, "create_window", session="one")
        await text(tools, "create_session", name="two")

        assert len(await rows(tools, "panes", target="one")) == 2  # of all its windows
        assert len(await rows(tools, "panes", target="one:1")) == 1
        assert len(await rows(tools, "panes", target="@1")) == 1
        assert [row[0] for row in await rows(tools, "windows", session="two")] == ["two"]
        assert "no session 'o'" in await tools.error("list_panes", target="o")
        assert "no session 'o'" in await tools.error("list_windows", session="o")

    async def test_splits_are_as_the_eye_has_them(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        await text(tools, "split_window", target="w", horizontal=True, size="10")
        await text(tools, "split_window", target="w:0.0", size="25%")

        shapes = {row[2]: row[4] for row in await rows(tools, "panes")}
        assert shapes == {"%1": "149x39", "%2": "200x10", "%3": "50x39"}
        assert "Parameter 'size' is 'half'" in await tools.error("split_window", target="w", size="half")

    async def test_resizing_moves_borders_or_says_why_not(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        await text(tools, "split_window", target="w")
        before = int((await rows(tools, "panes"))[0][4].partition("x")[0])
        assert await text(tools, "resize_pane", target="w:0.0", direction="right") == (
            f"Pane 'w:0.0' resized. It is {before + 5}x50 now."
        )
        assert (await rows(tools, "panes"))[0][4] == f"{before + 5}x50"
        await text(tools, "resize_pane", target="w:0.0", width=30)
        assert (await rows(tools, "panes"))[0][4] == "30x50"
        # The terminal's size is known to what reads its log.
        assert [pane.log.columns for pane in tools.engine.panes] == [30, 169]

        assert "Give 'direction'" in await tools.error("resize_pane", target="w")
        assert "one of up, down, left, right" in await tools.error("resize_pane", target="w", direction="over")
        assert "stays 30x50" in await tools.error("resize_pane", target="w:0.0", direction="up")
        await text(tools, "create_window", session="w")
        await text(tools, "resize_pane", target="w:1", width=80, height=24)  # alone in its window
        assert (await rows(tools, "panes", target="w:1"))[0][4] == "80x24"

    async def test_size_that_came_out_is_said_and_none_is_too_large(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        await text(tools, "split_window", target="w")
        assert await text(tools, "resize_pane", target="w:0.0", width=300) == (
            "Pane 'w:0.0' resized. It is 198x50 now, which is what its window has room for."
        )
        for size in ({"width": 501}, {"height": 201}, {"direction": "up", "amount": 501}):
            assert "and at most" in await tools.error("resize_pane", target="w:0.0", **size)

    async def test_programs_have_the_size_when_resizing_answers(self, tools: Tools) -> None:
        # tmux tells a terminal of no two sizes within a quarter of a second.
        await text(tools, "create_session", name="w", command="bash --norc")
        for width, height in ((120, 40), (80, 24), (132, 43)):
            await text(tools, "resize_pane", target="w", width=width, height=height)
            await text(tools, "send_keys", target="w", keys="echo $(stty size)- Enter")
            assert f"\n{height} {width}-" in await shows(tools, "w", f"\n{height} {width}-")

    async def test_keys_are_typed_and_what_came_of_them_is_read(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        answer = await text(tools, "send_keys", target="w", keys="echo $((40+2)); echo '-x;' Enter")
        assert answer == "Sent keys to pane 'w' (typed 26 characters; Enter pressed)"
        assert "\n42\n-x;\n" in await shows(tools, "w", "\n-x;")
        await text(tools, "send_keys", target="w", keys="echo Enter;", literal=True)
        assert "Enter;" in await shows(tools, "w", "Enter;")
        await text(tools, "send_keys", target="w", keys="C-c")
        assert "looks like a key and is none" in await tools.error("send_keys", target="w", keys="C-")

    async def test_lines_are_read_from_where_they_are_asked_for(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w", command="seq 1 80; exec sleep 99")
        await shows(tools, "w", "\n80")

        assert (await text(tools, "read_pane", target="w")).startswith("32\n33\n")
        assert await text(tools, "read_pane", target="w", line_count=3) == "78\n79\n80"
        assert await text(tools, "read_pane", target="w", start_line=0, line_count=2) == "32\n33"
        assert await text(tools, "read_pane", target="w", start_line=-2, line_count=3) == "30\n31\n32"
        assert (await text(tools, "read_pane", target="w", start_line=-31)).startswith("1\n2\n")
        assert await text(tools, "read_pane", target="w", start_line=-(10**12), line_count=2) == "1\n2"
        assert await text(tools, "read_pane", target="w", start_line=10**12) == ""

    async def test_line_drawing_is_read_as_what_is_seen(self, tools: Tools, on_users: Tools) -> None:
        command = r"printf '\033[31mred\033(0lqqk\033(B\033[m lqqk  \n'; exec sleep 99"
        for server in (tools, on_users):
            await text(server, "create_session", name="w", command=command)
            await shows(server, "w", "red")
            for part in ({}, {"line_count": 3}, {"start_line": 0, "line_count": 1}):
                assert await text(server, "read_pane", target="w", **part) == "red┌──┐ lqqk"

    async def test_rows_that_are_too_many_are_read_in_turn(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w", command="seq -f %0150.0f 1 2000; exec sleep 99")
        await shows(tools, "w", "2000")
        start, found = -1951, list[str]()
        while True:
            shown, *notes = await tools.blocks("read_pane", target="w", start_line=start)
            assert len(shown) <= 40_000
            found += shown.split("\n")
            if not notes:
                break
            start = int(notes[0].removeprefix("[go on with start_line ").removesuffix("]"))
        assert list(map(int, found)) == list(range(1, 2001))
        shown, *notes = await tools.blocks("read_pane", target="w", line_count=1000)
        assert (shown[-4:], len(shown) <= 40_000, notes) == ("2000", True, ["[what came before is left out]"])
        assert "at least 1" in await tools.error("read_pane", target="w", line_count=0)

    async def test_selecting_and_renaming(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        await text(tools, "create_window", session="w", name="b")
        await text(tools, "split_window", target="w:b")
        assert await text(tools, "select_window", target="w:0") == "Selected window 'w:0'."
        assert [row[4] for row in await rows(tools, "windows")] == ["1", "0"]
        assert await text(tools, "select_pane", target="w:b.0") == "Selected pane 'w:b.0'."
        assert [row[5] for row in await rows(tools, "panes", target="w:b")] == ["1", "0"]
        assert await text(tools, "rename_window", target="w:b", new_name="c d") == "Window 'w:b' renamed to 'c d'."
        assert await text(tools, "rename_session", old_name="w", new_name="v") == "Session 'w' renamed to 'v'."
        assert [row[0] for row in await rows(tools, "panes", target="v:c d")] == ["v", "v"]
        await text(tools, "create_session", name="w")
        assert "duplicate session: v" in await tools.error("rename_session", old_name="w", new_name="v")

    @pytest.mark.parametrize(
        "name", ["a b", "#S", "#(touch pwned)", "##", "#[fg=red]x", "é日😀", "-t", "%1x", "{x}", "~'\"$;", "a,b=c"]
    )
    async def test_names_are_data(self, tools: Tools, tmp_path: Path, name: str) -> None:
        await text(tools, "create_session", name=name, window_name=name)
        assert [row[0] for row in await rows(tools, "sessions")] == [name]
        assert [row[3] for row in await rows(tools, "windows", session=name)] == [name]
        await text(tools, "rename_session", old_name=name, new_name="x")
        await text(tools, "rename_session", old_name="x", new_name=name)
        await text(tools, "rename_window", target=f"{name}:0", new_name="x")
        await text(tools, "rename_window", target=f"{name}:x", new_name=name)
        assert [row[3] for row in await rows(tools, "windows", session=name)] == [name]
        await text(tools, "send_keys", target=f"{name}:{name}.0", keys="C-l")
        assert not (tmp_path / "pwned").exists()

    async def test_colons_and_dots_in_names_are_as_tmux_keeps_them(self, tools: Tools) -> None:
        # Before 3.7 they become underscores.
        answer = await text(tools, "create_session", name="a.b:c")
        name = answer.split("'")[1]
        assert name in ("a_b_c", "a.b:c")
        for target in (name, f"{name}:0", f"{name}:0.0"):
            assert len(await rows(tools, "panes", target=target)) == 1
        assert len(await rows(tools, "windows", session=name)) == 1

    @pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[31m"])
    async def test_what_is_no_name_is_told(self, tools: Tools, name: str) -> None:
        assert await tools.error("create_session", name=name)
        await text(tools, "create_session", name="ok")
        assert await tools.error("rename_session", old_name="ok", new_name=name)

    async def test_kill_ends_what_was_meant_and_all_that_runs_in_it(self, tools: Tools) -> None:
        await text(tools, "create_session", name="a", command="nohup setsid sleep 4801 & exec sleep 4802")
        await text(tools, "create_window", session="a", name="w", command="exec sleep 4803")
        await text(tools, "split_window", target="a:w", command="exec sleep 4804")
        await text(tools, "create_session", name="aa")
        await eventually_runs(tools, "a:w.1", "sleep")
        assert await text(tools, "kill", target="a:w.1") == "Killed pane 'a:w.1'."
        assert subprocess.run(["pgrep", "-f", "sleep 4804"], check=False).returncode == 1
        assert await text(tools, "kill", target="a:w", type="window") == "Killed window 'a:w'."
        assert await text(tools, "kill", target="a", type="session") == "Killed session 'a'."
        assert subprocess.run(["pgrep", "-f", "sleep 480[1234]"], check=False).returncode == 1
        assert [row[0] for row in await rows(tools, "sessions")] == ["aa"]
        assert "not found" in await tools.error("kill", target="a", type="session")
        assert "one of session, window, pane" in await tools.error("kill", target="aa", type="server")

    async def test_lists_and_kills_at_the_same_time_do_not_trip(self, tools: Tools) -> None:
        await text(tools, "create_session", name="keep")
        for number in range(4):
            await text(tools, "create_session", name=f"s{number}", command="exec cat")

        async def end(name: str) -> None:
            await tools.call("kill", target=name, type="session")

        async def send(name: str) -> None:
            await tools.call("send_keys", target=name, keys="x")

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(end, f"s{number}")
                tasks.start_soon(text, tools, "list_panes")
                tasks.start_soon(send, f"s{number}")
        assert [row[0] for row in await rows(tools, "sessions")] == ["keep"]

    async def test_panes_stay_when_their_program_exits(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w", command="echo last; exit 3")
        await eventually_runs(tools, "w", "exited with code 3")
        assert await text(tools, "read_pane", target="w") == "last"
        error = await tools.error("send_keys", target="w", keys="x")
        assert error.startswith("Pane 'w' has ended (exited with code 3 after ")
        assert error.endswith("Use tmux_read_pane to read its last output or tmux_create_window to start anew.")

    async def test_what_fails_leaves_others_alone(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w", command="exec cat")
        await text(tools, "split_window", target="w", size="1", command="exec cat")
        error = await tools.error("split_window", target="w:0.1")
        assert error.startswith("tmux split-window failed: ")
        assert error.endswith(EXPLAINED)
        assert "duplicate session: w" in await tools.error("create_session", name="w")

        assert len(await rows(tools, "panes")) == 2
        assert len(await rows(tools, "sessions")) == 1
        assert len(tools.engine.panes) == 2
        await eventually_runs(tools, "w:0.1", "cat")

    async def test_session_that_holds_the_panes_of_other_toolsets_hides_what_is_ours(self, settings: Settings) -> None:
        async with in_process(settings, toolsets="tmux,tabs") as tools:
            [tab] = await tools.blocks("create_tab", name="shell")
            listed = [line.split("\t") for line in (await tools.blocks("tmux_list_windows"))[0].splitlines()]
            assert '"window_id":"@1"' in tab
            assert [(row[0], row[2], row[3]) for row in listed] == [(f"debug-{os.getpid()}", "@1", "shell")]
            await tools.blocks("tmux_split_window", target="@1", command="exec cat")
            assert len((await tools.blocks("tmux_list_panes", target="@1"))[0].splitlines()) == 2
            listed_tabs = (await tools.json("list_tabs"))["tabs"]
            assert [row["window_id"] for row in listed_tabs] == ["@1"]
            await tools.blocks("tmux_kill", target=f"debug-{os.getpid()}", type="session")
            assert (await tools.blocks("tmux_list_panes"))[0] == "No panes found."
            await tools.blocks("create_tab")  # our session is still there

    async def test_line_that_is_longer_than_a_result_is_cut_and_not_left_out(
        self, tools: Tools, on_users: Tools
    ) -> None:
        command = "head -c 60000 /dev/zero | tr '\\0' x; echo; echo end; exec sleep 99"
        for server in (tools, on_users):
            await text(server, "create_session", name="long", command=command)
            await shows(server, "long", "end")
            shown, note = await server.blocks("read_pane", target="long", line_count=10)
            assert (set(shown[:-4]), shown[-4:], len(shown)) == ({"x"}, "\nend", 40_000)
            assert note == "[what came before is left out]"

    @pytest.mark.parametrize("name", ["a", "b:c", "debug-PID"])
    async def test_nothing_is_started_for_a_name_that_is_taken(
        self, tools: Tools, on_users: Tools, tmp_path: Path, name: str
    ) -> None:
        name = name.replace("PID", str(os.getpid()))
        for server in (tools, on_users):
            if not name.startswith("debug-"):
                await text(server, "create_session", name=name)
            elif server is on_users:
                continue
            before = await rows(tools, "panes")
            error = await server.error("create_session", name=name, command=f"touch {tmp_path}/started")
            assert "duplicate session: " in error
            assert await rows(tools, "panes") == before
        await text(tools, "create_session", name="other")  # by which time it would have run
        await text(tools, "create_window", session="other", command="true")
        await eventually_runs(tools, "other", "exited with code 0")
        assert not (tmp_path / "started").exists()

    @pytest.mark.parametrize("command", [" ", "\t\n"])
    async def test_blank_command_is_told_and_nothing_is_made(self, tools: Tools, on_users: Tools, command: str) -> None:
        for server in (tools, on_users):
            await text(server, "create_session", name="w")
            before = await rows(server, "panes")
            for tool, place in (
                ("create_session", {"name": "x"}),
                ("create_window", {"session": "w"}),
                ("split_window", {"target": "w"}),
            ):
                error = await server.error(tool, command=command, **place)
                assert error.startswith("Parameter 'command' is blank.")
            assert await rows(server, "panes") == before

    async def test_lines_that_are_left_out_are_told(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w", command="seq 1 3000; exec sleep 99")
        await shows(tools, "w", "3000")
        shown, note = await tools.blocks("read_pane", target="w", line_count=2000)
        assert (shown.split("\n")[0], note) == ("2001", "[what came before is left out]")
        shown, note = await tools.blocks("read_pane", target="w", start_line=-5000, line_count=1500)
        assert (shown.split("\n")[-1], note) == ("1000", "[go on with start_line -1951]")

    async def test_session_is_not_killed_by_a_part_of_it(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        await text(tools, "create_window", session="w")
        for target in ("w:1", "@1", "%2", "w:0.0"):
            assert await tools.error("kill", target=target, type="session") == (
                f"Target '{target}' is no session but a part of session 'w'. Give that."
            )
        assert len(await rows(tools, "windows")) == 2
        assert await text(tools, "kill", target="w", type="session") == "Killed session 'w'."

    async def test_ids_mean_one_thing_also_when_tmux_had_to_start_anew(self, tools: Tools) -> None:
        # Else keys for a pane that is gone would go to another one.
        await text(tools, "create_session", name="w")
        for _ in range(3):
            await text(tools, "split_window", target="w")
        [old] = {pane.client for pane in tools.engine.panes}
        os.kill(old.server_pid, signal.SIGKILL)
        await eventually(old.gone.is_set)

        answer = await text(tools, "create_session", name="w")
        assert answer == "Session 'w' created. session_id=$3 window_id=@3 pane_id=%6"
        assert await text(tools, "split_window", target="%6") == "Pane created. pane_id=%7"
        for target in ("%1", "%4", "%5", "@1", "@2", "$1:0", "$2"):
            assert "not found" in await tools.error("send_keys", target=target, keys="x")
        assert [row[2] for row in await rows(tools, "panes", target="@3")] == ["%6", "%7"]
        await text(tools, "select_pane", target="%6")
        await text(tools, "resize_pane", target="%6", width=20)
        await text(tools, "rename_window", target="@3", new_name="again")
        await text(tools, "send_keys", target="%6", keys="echo $((6*7)) Enter")
        assert "\n42" in await shows(tools, "$3:again.%6", "\n42")
        assert await rows(tools, "sessions") == [["w", "$3", "1 windows", "0 attached"]]
        assert await text(tools, "kill", target="$3", type="session") == "Killed session '$3'."

    async def test_sessions_do_not_count_our_own_connection(self, settings: Settings) -> None:
        async with in_process(settings, toolsets="tmux,tabs") as tools:
            await tools.blocks("create_tab")
            [listed] = await tools.blocks("tmux_list_sessions")
        assert listed == f"debug-{os.getpid()}\t$0\t1 windows\t0 attached"

    async def test_ids_are_tmuxs(self, tools: Tools) -> None:
        await text(tools, "create_session", name="w")
        command = ["tmux", "-S", socket_of(os.getpid()), "list-panes", "-t", "=w:", "-F", "#{pane_id}"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "%1\n"


COMMAND = "#{pane_current_command}"


class TestUsersServer:
    async def test_command_that_ends_at_once_has_ids_too(self, on_users: Tools) -> None:
        ids = r"window_id=@\d+ pane_id=%\d+; its command has ended already"
        for _ in range(20):  # some end before tmux is asked again, and some later
            answer = await text(on_users, "create_session", name="short", command="true")
            assert re.fullmatch(
                rf"Session 'short' created. session_id=\$\d+ ({ids}|window_id=@\d+ pane_id=%\d+)", answer
            )
            await eventually_gone(on_users, "short")
        answer = await text(on_users, "create_window", session="mine", command="true")
        assert answer.startswith("Window created in session 'mine'. window_id=@")
        assert (await text(on_users, "split_window", target="mine", command="true")).startswith(
            "Pane created. pane_id=%"
        )

    async def test_users_sessions_survive_everything_and_nothing_of_theirs_changes(
        self, settings: Settings, user: User
    ) -> None:
        before = user.state()
        async with in_process(replace(settings, socket=str(user.socket)), toolsets="tmux") as tools:
            tools.prefix = "tmux_"
            assert {row[0] for row in await rows(tools, "sessions")} == {"mine", "other"}
            assert len(await rows(tools, "panes", target="mine")) == 3
            await text(tools, "read_pane", target="mine:logs.0", line_count=10)
            made = await text(tools, "create_session", name="made", command="exec cat")
            await text(tools, "create_window", session="made", name="second")
            await text(tools, "split_window", target="made:second", horizontal=True)
            await text(tools, "send_keys", target="made:second.1", keys="for i in 1 2; do\necho got-$i\ndone\n")
            await shows(tools, "made:second.1", "got-1\ngot-2")
            await text(tools, "select_pane", target="made:second.0")
            await text(tools, "resize_pane", target="made:second.0", height=8)
            await text(tools, "rename_window", target="made:second", new_name="#(touch pwned)")
            await text(tools, "select_window", target="made:1")
            for kind, target in (
                ("pane", "mine:logs.0"),
                ("window", "mine:logs"),
                ("session", "mine"),
                ("pane", "made"),
            ):
                error = await tools.error("kill", target=target, type=kind)
                assert error.startswith("Nothing was killed: this tmux server is the user's own")
        assert user.state() == before
        assert "made\n" in user.tmux("list-sessions", "-F", "#{session_name}\n")
        assert made.startswith("Session 'made' created. session_id=$2 ")
        assert user.tmux("list-clients") == ""

    async def test_what_is_created_does_not_take_the_users_place(self, on_users: Tools, user: User) -> None:
        # Whoever is typing goes on typing into the same pane.
        before = user.tmux("list-windows", "-t", "=mine:", "-F", "#{window_id} #{window_active} #{window_layout}")
        await text(on_users, "create_window", session="mine", name="new", command="exec sleep 1003")
        windows = user.tmux("list-windows", "-t", "=mine:", "-F", "#{window_id} #{window_active} #{window_layout}")
        assert windows.startswith(before)
        await text(on_users, "split_window", target="mine:logs", command="exec sleep 1004")
        active = user.tmux("list-panes", "-t", "=mine:logs", "-F", "#{pane_active} #{pane_start_command}")
        assert "1" not in {line[0] for line in active.splitlines() if "1004" in line}

    @pytest.mark.parametrize(
        "keys", ["a;", ";", "-x", "#{pane_id} #(id)", "$HOME `id` ~ \"q\" 'r' \\", "é日😀", "x" * 9000 + ";"]
    )
    async def test_text_arrives_as_it_is(self, on_users: Tools, user: User, tmp_path: Path, keys: str) -> None:
        await text(on_users, "create_session", name="c", command=f"stty raw -echo; exec cat >{tmp_path}/typed")
        await eventually_runs(on_users, "c", "cat")
        await text(on_users, "send_keys", target="c", keys=keys, literal=True)
        await eventually(lambda: (tmp_path / "typed").read_text() == keys)
        assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"

    async def test_paste_is_bracketed_where_that_is_asked_for(self, on_users: Tools, tmp_path: Path) -> None:
        command = f"stty raw -echo; printf '\\033[?2004h'; exec cat >{tmp_path}/typed"
        await text(on_users, "create_session", name="c", command=command)
        await eventually_runs(on_users, "c", "cat")
        await text(on_users, "send_keys", target="c", keys="one\ntwo\n")
        await eventually(lambda: (tmp_path / "typed").read_bytes() == b"\033[200~one\rtwo\033[201~\r")

    async def test_pane_that_the_user_scrolls_through_gets_its_keys(self, on_users: Tools, user: User) -> None:
        user.tmux("copy-mode", "-t", "=mine:1.0")
        await text(on_users, "send_keys", target="mine:1", keys="typed Enter")
        assert "typed\ntyped" in await shows(on_users, "mine:1", "typed\ntyped")

    async def test_user_goes_on_to_scroll_while_keys_are_sent(self, on_users: Tools, user: User) -> None:
        user.tmux("copy-mode", "-t", "=mine:1.0")
        for keys in ("C-l", "echo typed Enter", "Up C-u", "two Enter"):
            await text(on_users, "send_keys", target="mine:1", keys=keys)
        await eventually(lambda: "two" in user.tmux("capture-pane", "-p", "-t", "=mine:1.0"))
        assert user.tmux("display-message", "-p", "-t", "=mine:1.0", "#{pane_in_mode}") == "1\n"

    async def test_paste_is_bracketed_where_the_user_scrolls_too(
        self, on_users: Tools, user: User, tmp_path: Path
    ) -> None:
        command = f"stty raw -echo; printf '\\033[?2004h'; exec cat >{tmp_path}/typed"
        await text(on_users, "create_session", name="c", command=command)
        await eventually_runs(on_users, "c", "cat")
        user.tmux("copy-mode", "-t", "=c:")
        await text(on_users, "send_keys", target="c", keys="one\ntwo\n")
        await eventually(lambda: (tmp_path / "typed").read_bytes() == b"\033[200~one\rtwo\033[201~\r")

    async def test_synchronized_panes_do_not_get_the_keys_of_another(
        self, on_users: Tools, user: User, tmp_path: Path
    ) -> None:
        made = [["new-session", "-d", "-s", "sync"], ["split-window", "-d", "-t", "=sync:"]]
        show = ["-P", "-F", "#{pane_id}"]
        panes = [
            user.tmux(*words, *show, f"stty raw -echo; exec cat >{tmp_path}/{name}").strip()
            for words, name in zip(made, ("one", "two"), strict=True)
        ]
        user.tmux("set-option", "-w", "-t", "=sync:", "synchronize-panes", "on")
        await eventually(lambda: user.tmux("list-panes", "-t", "=sync:", "-F", COMMAND) == "cat\ncat\n")
        for keys in ("typed Enter", "Up C-c", "a\nb\n"):
            await text(on_users, "send_keys", target=panes[0], keys=keys)
        expected = b"typed\r\033[A\3a\rb\r"
        await eventually(lambda: (tmp_path / "one").read_bytes() == expected)
        assert (tmp_path / "two").read_bytes() == b""

    async def test_no_name_of_a_program_forges_a_row(self, on_users: Tools, user: User) -> None:
        program = r"exec -a $'x\n%9\tforged; matched' bash -c 'while :; do sleep 60; done'"
        user.tmux("new-window", "-d", "-t", "mine:", "-n", "odd", "exec " + shlex.join(["bash", "-c", program]))
        await eventually(lambda: "forged" in user.tmux("display-message", "-p", "-t", "=mine:odd", COMMAND))
        found = await text(on_users, "list_panes")
        assert len(found.splitlines()) == len(user.tmux("list-panes", "-a").splitlines())
        assert "x?%9?forged" in found

    async def test_keys_for_a_dead_pane_are_refused_and_end_no_server(self, on_users: Tools, user: User) -> None:
        # tmux 3.3 itself ends, with all sessions, when something is pasted into a dead pane.
        user.tmux("set-option", "-g", "remain-on-exit", "on")
        user.tmux("new-window", "-d", "-t", "mine:", "-n", "dead", "exit 3")
        await eventually(lambda: user.tmux("display-message", "-p", "-t", "=mine:dead", "#{pane_dead}") == "1\n")
        for keys in ("one\ntwo", "ls Enter"):
            error = await on_users.error("send_keys", target="mine:dead", keys=keys)
            assert error.startswith("Pane 'mine:dead' has ended (exited")

    async def test_pane_that_dies_while_it_is_typed_to_ends_no_server(
        self, on_users: Tools, user: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user.tmux("set-option", "-g", "remain-on-exit", "on")
        user.tmux("new-window", "-d", "-t", "mine:", "-n", "dead", "exit 3")
        await eventually(lambda: user.tmux("display-message", "-p", "-t", "=mine:dead", "#{pane_dead}") == "1\n")
        looked_up = UsersServer.rows

        async def before_it_died(server: UsersServer) -> list[PaneRow]:
            return [replace(row, pane_dead="0") for row in await looked_up(server)]

        monkeypatch.setattr(UsersServer, "rows", before_it_died)
        await text(on_users, "send_keys", target="mine:dead", keys="one\ntwo")
        assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"

    async def test_pane_that_goes_while_it_is_typed_to_leaves_no_buffer(
        self, on_users: Tools, user: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked_up = UsersServer.rows

        async def before_it_went(server: UsersServer) -> list[PaneRow]:
            return [replace(row, pane_id="%99") for row in await looked_up(server)]

        monkeypatch.setattr(UsersServer, "rows", before_it_went)
        assert "can't find pane" in await on_users.error("send_keys", target="mine", keys="one\ntwo")
        assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"

    async def test_cancelled_paste_arrives_whole_and_leaves_no_buffer(
        self, on_users: Tools, user: User, tmp_path: Path
    ) -> None:
        await text(on_users, "create_session", name="c", command=f"stty raw -echo; exec cat >{tmp_path}/typed")
        await eventually_runs(on_users, "c", "cat")
        for delay in range(12):
            with anyio.move_on_after(delay / 1000):
                await on_users.client.call_tool("tmux_send_keys", {"target": "c", "keys": "one\ntwo"})
        await text(on_users, "send_keys", target="c", keys="end")
        await eventually(lambda: (tmp_path / "typed").read_text().endswith("end"))
        assert set((tmp_path / "typed").read_bytes().removesuffix(b"end").split(b"one\rtwo")) == {b""}
        assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"

    async def test_keys_of_concurrent_calls_do_not_mix(self, on_users: Tools, tmp_path: Path) -> None:
        await text(on_users, "create_session", name="c", command=f"stty raw -echo; exec cat >{tmp_path}/typed")
        await eventually_runs(on_users, "c", "cat")
        texts = [letter * 20_000 for letter in "abcde"]
        async with anyio.create_task_group() as tasks:
            for typed in texts:
                tasks.start_soon(partial(text, on_users, "send_keys", target="c", keys=f"{typed} Enter"))
        await eventually(lambda: (tmp_path / "typed").stat().st_size == 5 * 20_001)
        assert sorted((tmp_path / "typed").read_bytes().decode().split("\r")) == ["", *texts]

    async def test_lines_that_wrap_are_read_whole(self, on_users: Tools) -> None:
        command = "for x in a b c; do printf \"%9000s\\n\" $x | tr ' ' $x; done; exec cat"
        await text(on_users, "create_session", name="c", command=command)
        await shows(on_users, "c", "ccc")
        assert await text(on_users, "read_pane", target="c", line_count=2) == f"{'b' * 9000}\n{'c' * 9000}"

    async def test_command_longer_than_tmux_takes_is_told(self, on_users: Tools) -> None:
        error = await on_users.error("create_window", session="mine", command=f"echo {'x' * 17_000}")
        assert error == (
            "Parameter 'command' has 17005 bytes; on a user's tmux server at most 12000. Put it into a script."
        )

    async def test_windows_that_are_linked_are_told_apart(self, on_users: Tools, user: User) -> None:
        user.tmux("link-window", "-s", "=mine:logs", "-t", "other:7")
        user.tmux("link-window", "-s", "=mine:logs", "-t", "mine:9")
        assert [row[:2] for row in await rows(on_users, "windows", session="mine")] == [
            ["mine", "1"],
            ["mine", "2"],
            ["mine", "9"],
        ]
        assert [row[5] for row in await rows(on_users, "windows", session="mine")] == ["1 panes", "2 panes", "2 panes"]
        assert len(await rows(on_users, "panes", target="mine:9")) == 2
        await text(on_users, "select_window", target="mine:9")
        assert user.tmux("display-message", "-p", "-t", "=mine:", "#{window_index}") == "9\n"

    async def test_hooks_that_print_are_no_part_of_an_answer(self, on_users: Tools, user: User) -> None:
        user.tmux("set-hook", "-g", "after-new-window", "display-message -p 'win made'")
        answer = await text(on_users, "create_window", session="mine", command="exec sleep 1005")
        assert answer.startswith("Window created in session 'mine'. window_id=@")

    async def test_command_is_the_one_that_tmux_tells(self, on_users: Tools, tmp_path: Path) -> None:
        (tmp_path / "averyveryverylongprogramname").symlink_to(shutil.which("bash") or "")
        command = f"exec {tmp_path}/averyveryverylongprogramname -c 'sleep 99; true'"
        await text(on_users, "create_session", name="c", command=command)
        await eventually_runs(on_users, "c", "averyveryverylongprogramname")

    async def test_killing_that_was_allowed_kills_just_that(self, settings: Settings, user: User) -> None:
        allowed = replace(settings, socket=str(user.socket), allows_kill=True)
        async with in_process(allowed, toolsets="tmux") as tools:
            tools.prefix = "tmux_"
            assert "not found" in await tools.error("kill", target="min", type="session")
            await text(tools, "kill", target="mine:logs.1")
            await text(tools, "kill", target="other", type="session")
        assert user.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_name}.#{pane_index}").count("mine:") == 2

    async def test_server_that_is_not_there_is_started_and_stays(self, settings: Settings, short_path: Path) -> None:
        socket = short_path / "new"
        try:
            async with in_process(replace(settings, socket=str(socket)), toolsets="tmux") as tools:
                tools.prefix = "tmux_"
                assert await text(tools, "list_sessions") == "No sessions found."
                answer = await text(tools, "create_session", name="fresh")
                assert answer == "Session 'fresh' created. session_id=$0 window_id=@0 pane_id=%0"
            listed = ["tmux", "-S", str(socket), "list-sessions", "-F", "#{session_name}"]
            assert subprocess.run(listed, capture_output=True, text=True, check=True).stdout == "fresh\n"
        finally:
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)

    async def test_server_that_has_just_ended_is_no_server(self, on_users: Tools, user: User) -> None:
        for _ in range(3):
            user.tmux("kill-server")
            assert await text(on_users, "list_panes") == "No panes found."
            assert "not found" in await on_users.error("read_pane", target="%0")
            user.tmux("new-session", "-d", "-s", "again", "exec cat")

    async def test_server_that_hangs_is_told(
        self, on_users: Tools, user: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tmux_debug_mcp.tmux.users_socket._ANSWER_S", 0.3)
        pid = int(user.tmux("display-message", "-p", "#{pid}"))
        os.kill(pid, 19)
        try:
            error = await on_users.error("list_sessions")
        finally:
            os.kill(pid, 18)
        assert error == (
            f"The tmux server at {user.socket} can't be asked (no answer in 0.3 s; it may yet do what it was asked). "
            "Ask the user to look at it."
        )
        assert len(await rows(on_users, "sessions")) == 2

    @pytest.mark.parametrize(
        ("path", "listed", "created"),
        [
            ("no/such", "No sessions found.", "The tmux server at "),
            (".", "can't be asked (it is no socket)", "The tmux server at "),
            ("notes.txt", "can't be asked (it is no socket)", "The tmux server at "),
            ("x" * 120, "can't be asked (File name too long)", "The tmux server at "),
        ],
    )
    async def test_what_is_no_socket_is_told(
        self, settings: Settings, short_path: Path, path: str, listed: str, created: str
    ) -> None:
        (short_path / "notes.txt").write_text("precious")
        async with in_process(replace(settings, socket=str(short_path / path)), toolsets="tmux") as tools:
            result = await tools.call("tmux_list_sessions")
            assert result.content[0].type == "text"
            assert listed in result.content[0].text
            assert (await tools.error("tmux_create_session", name="x")).startswith(created)
        assert (short_path / "notes.txt").read_text() == "precious"

    async def test_program_that_ends_at_once_is_told(self, on_users: Tools) -> None:
        # There panes do not stay, unless the user has it so.
        result = await on_users.call("create_window", session="mine", command="true")
        assert result.content[0].type == "text"
        assert result.content[0].text.startswith(("Window created", "Pane '%"))


async def eventually_runs(tools: Tools, target: str, command: str) -> None:
    """Wait until a pane's last column is this."""
    row: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        while not row or row[-1] != command:
            found = await rows(tools, "panes", target=target)
            row = next((one for one in found if target in (one[2], f"{one[0]}:{one[1]}.{one[3]}")), found[-1])
            await anyio.sleep(0.005)
