"""The toolset `tmux` (spec 004) on a server of ours: making, listing, naming, killing, and ids."""

import os
import signal
import subprocess
from pathlib import Path

import anyio
import pytest
from support import eventually, in_process, run_directories, socket_of, until
from toolsets import Tmux

from tmux_debug_mcp.errors import CommandError
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.panes.creation import Destination, NewPane
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.state import State
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.settings import Settings

EXPLAINED = "Use tmux_list_panes to see all panes."


async def test_empty_lists_and_unknown_targets_say_so(tmux: Tmux) -> None:
    for what in ("sessions", "windows", "panes"):
        nothing, which = await tmux.blocks(f"list_{what}")
        assert nothing == f"No {what} found."
        assert "a private tmux server" in which
        assert "--socket default" in which
    assert "on a private tmux server" in (tmux.client.instructions or "")
    error = await tmux.error("send_keys", target="work", keys="x")
    assert error == f"Target 'work' not found: there is no session 'work'. {EXPLAINED}"


async def test_creation_returns_the_ids_of_what_was_made(tmux: Tmux) -> None:
    answer = await tmux.text("create_session", name="work", window_name="first")
    assert answer == "Session 'work' created. session_id=$1 window_id=@1 pane_id=%1"
    answer = await tmux.text("create_window", session="work", name="second", command="exec cat")
    assert answer == "Window created in session 'work'. window_id=@2 window_index=1 pane_id=%2"
    assert await tmux.text("split_window", target="work:second", command="exec sleep 99") == (
        "Pane created. pane_id=%3"
    )
    await tmux.runs("%3", "sleep")
    assert await tmux.rows("sessions") == [["work", "$1", "2 windows", "0 attached"]]
    assert await tmux.rows("windows") == [
        ["work", "0", "@1", "first", "0", "1 panes", "%1"],
        ["work", "1", "@2", "second", "1", "2 panes", "%3"],
    ]
    assert await tmux.rows("panes") == [
        ["work", "0", "%1", "0", "200x50", "1", "bash"],
        ["work", "1", "%2", "0", "100x50", "0", "cat"],
        ["work", "1", "%3", "1", "99x50", "1", "sleep"],
    ]


async def test_names_of_unnamed_windows_follow_their_program(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    await tmux.text("create_window", session="w")
    await tmux.text("create_window", session="w", name="named", command="exec bash --norc")
    await tmux.text("create_window", session="w", command="cd /; A=1 sleep 100; true")

    async def names() -> list[str]:
        return [row[3] for row in await tmux.rows("windows")]

    await until(names, lambda found: found == ["bash", "bash", "named", "sleep"])
    for target in ("w:0", "w:1", "w:named"):
        await tmux.text("send_keys", target=target, keys="cat Enter")
    await until(names, lambda found: found == ["cat", "cat", "named", "sleep"])
    assert "Target 'w:cat' matches 2 windows" in await tmux.error("read_pane", target="w:cat")

    await tmux.text("rename_window", target="w:0", new_name="kept")
    assert (await tmux.blocks("read_pane", target="w:cat.%2"))[0].endswith("cat")
    for target in ("w:0", "w:1", "w:named"):
        await tmux.text("send_keys", target=target, keys="C-d")
    await until(names, lambda found: found == ["kept", "bash", "named", "sleep"])


async def test_lists_of_a_part_have_all_of_it_and_nothing_else(tmux: Tmux) -> None:
    await tmux.text("create_session", name="one")
    await tmux.text("create_window", session="one")
    await tmux.text("create_session", name="two")

    assert len(await tmux.rows("panes", target="one")) == 2  # of all its windows
    assert len(await tmux.rows("panes", target="one:1")) == 1
    assert len(await tmux.rows("panes", target="@1")) == 1
    assert [row[0] for row in await tmux.rows("windows", session="two")] == ["two"]
    assert "no session 'o'" in await tmux.error("list_panes", target="o")
    assert "no session 'o'" in await tmux.error("list_windows", session="o")


async def test_windows_and_panes_are_selected_and_renamed(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    await tmux.text("create_window", session="w", name="b")
    await tmux.text("split_window", target="w:b")
    assert await tmux.text("select_window", target="w:0") == "Selected window 'w:0'."
    assert [row[4] for row in await tmux.rows("windows")] == ["1", "0"]
    assert await tmux.text("select_pane", target="w:b.0") == "Selected pane 'w:b.0'."
    assert [row[5] for row in await tmux.rows("panes", target="w:b")] == ["1", "0"]
    assert (
        await tmux.text("rename_window", target="w:b", new_name="c d")
        == "Window 'w:b' renamed to 'c d'."
    )
    assert (
        await tmux.text("rename_session", old_name="w", new_name="v")
        == "Session 'w' renamed to 'v'."
    )
    assert [row[0] for row in await tmux.rows("panes", target="v:c d")] == ["v", "v"]
    await tmux.text("create_session", name="w")
    assert "duplicate session: v" in await tmux.error("rename_session", old_name="w", new_name="v")


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "#S",
        "#(touch pwned)",
        "##",
        "#[fg=red]x",
        "é日😀",
        "-t",
        "%1x",
        "{x}",
        "~'\"$;",
        "a,b=c",
    ],
)
async def test_names_are_data(tmux: Tmux, tmp_path: Path, name: str) -> None:
    await tmux.text("create_session", name=name, window_name=name)
    assert [row[0] for row in await tmux.rows("sessions")] == [name]
    assert [row[3] for row in await tmux.rows("windows", session=name)] == [name]
    await tmux.text("rename_session", old_name=name, new_name="x")
    await tmux.text("rename_session", old_name="x", new_name=name)
    await tmux.text("rename_window", target=f"{name}:0", new_name="x")
    await tmux.text("rename_window", target=f"{name}:x", new_name=name)
    assert [row[3] for row in await tmux.rows("windows", session=name)] == [name]
    await tmux.text("send_keys", target=f"{name}:{name}.0", keys="C-l")
    assert not (tmp_path / "pwned").exists()


async def test_colons_and_dots_in_names_are_as_tmux_keeps_them(tmux: Tmux) -> None:
    # Before 3.7 they become underscores.
    answer = await tmux.text("create_session", name="a.b:c")
    name = answer.split("'")[1]
    assert name in ("a_b_c", "a.b:c")
    for target in (name, f"{name}:0", f"{name}:0.0"):
        assert len(await tmux.rows("panes", target=target)) == 1
    assert len(await tmux.rows("windows", session=name)) == 1


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[31m"])
async def test_blank_and_unprintable_names_are_errors(tmux: Tmux, name: str) -> None:
    assert await tmux.error("create_session", name=name)
    await tmux.text("create_session", name="ok")
    assert await tmux.error("rename_session", old_name="ok", new_name=name)


async def test_name_that_looks_like_an_id_is_an_error_that_names_the_parameter(tmux: Tmux) -> None:
    await tmux.text("create_session", name="ok")
    for tool, arguments, parameter in (
        ("create_session", {}, "name"),
        ("create_session", {"name": "fine"}, "window_name"),
        ("create_window", {"session": "ok"}, "name"),
        ("rename_session", {"old_name": "ok"}, "new_name"),
        ("rename_window", {"target": "ok"}, "new_name"),
    ):
        error = await tmux.error(tool, **arguments, **{parameter: "@7"})
        assert error.startswith(f"Parameter '{parameter}' is '@7', which looks like an id.")


async def test_kill_of_a_session_ends_panes_that_are_added_meanwhile(
    tmux: Tmux, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tmux.text("create_session", name="w", command="sleep 1000")
    really_kill = Engine.kill
    added: list[Pane] = []

    async def add_and_kill(engine: Engine, pane: Pane) -> State:
        if not added:
            window = Destination(["new-window", "-t", "=w:"], "=w:")
            added.append(await engine.create(NewPane("sleep 1000", destination=window)))
        return await really_kill(engine, pane)

    monkeypatch.setattr(Engine, "kill", add_and_kill)
    await tmux.text("kill", target="w", type="session")

    assert len(added) == 1
    assert await tmux.rows("sessions") == [["No sessions found."]]


@pytest.mark.parametrize("logs", [None, "logs"])
async def test_refused_destination_leaves_no_file(
    settings: Settings, tmp_path: Path, logs: str | None
) -> None:
    archive = Archive(tmp_path / logs) if logs else None
    async with in_process(settings, archive=archive, toolsets="tmux") as tools:
        await tools.engine.create(NewPane("sleep 1000"))
        directories = [*run_directories(os.getpid()), tmp_path]

        def files() -> set[Path]:
            return {file for one in directories for file in one.rglob("*") if file.is_file()}

        before = files()
        nowhere = Destination(["new-window", "-t", "=nowhere:"], "=nowhere:")
        with pytest.raises(CommandError):
            await tools.engine.create(NewPane("true", env={"a-b": "x"}, destination=nowhere))
        assert files() == before


async def test_kill_ends_what_was_meant_and_all_that_runs_in_it(tmux: Tmux) -> None:
    await tmux.text("create_session", name="a", command="nohup setsid sleep 4801 & exec sleep 4802")
    await tmux.text("create_window", session="a", name="w", command="exec sleep 4803")
    await tmux.text("split_window", target="a:w", command="exec sleep 4804")
    await tmux.text("create_session", name="aa")
    await tmux.runs("a:w.1", "sleep")
    assert await tmux.text("kill", target="a:w.1") == "Killed pane 'a:w.1'."
    assert subprocess.run(["pgrep", "-f", "sleep 4804"], check=False).returncode == 1
    assert await tmux.text("kill", target="a:w", type="window") == "Killed window 'a:w'."
    assert await tmux.text("kill", target="a", type="session") == "Killed session 'a'."
    assert subprocess.run(["pgrep", "-f", "sleep 480[1234]"], check=False).returncode == 1
    assert [row[0] for row in await tmux.rows("sessions")] == ["aa"]
    assert "not found" in await tmux.error("kill", target="a", type="session")
    assert "one of session, window, pane" in await tmux.error("kill", target="aa", type="server")


async def test_lists_and_keys_during_kills_do_not_fail(tmux: Tmux) -> None:
    await tmux.text("create_session", name="keep")
    for number in range(4):
        await tmux.text("create_session", name=f"s{number}", command="exec cat")

    async def end(name: str) -> None:
        await tmux.call("kill", target=name, type="session")

    async def send(name: str) -> None:
        await tmux.call("send_keys", target=name, keys="x")

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(end, f"s{number}")
            tasks.start_soon(tmux.text, "list_panes")
            tasks.start_soon(send, f"s{number}")
    assert [row[0] for row in await tmux.rows("sessions")] == ["keep"]


async def test_what_fails_leaves_others_alone(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w", command="exec cat")
    await tmux.text("split_window", target="w", size="1", command="exec cat")
    error = await tmux.error("split_window", target="w:0.1")
    assert error.startswith("tmux split-window failed: ")
    assert error.endswith(EXPLAINED)
    assert "duplicate session: w" in await tmux.error("create_session", name="w")

    assert len(await tmux.rows("panes")) == 2
    assert len(await tmux.rows("sessions")) == 1
    assert len(tmux.engine.panes) == 2
    await tmux.runs("w:0.1", "cat")


async def test_session_that_holds_the_panes_of_other_toolsets_hides_what_is_ours(
    settings: Settings,
) -> None:
    async with in_process(settings, toolsets="tmux,tabs") as tools:
        [tab] = await tools.blocks("create_tab", name="shell")
        listed = [
            line.split("\t") for line in (await tools.blocks("tmux_list_windows"))[0].splitlines()
        ]
        assert '"window_id":"@1"' in tab
        assert [(row[0], row[2], row[3]) for row in listed] == [
            (f"debug-{os.getpid()}", "@1", "shell")
        ]
        await tools.blocks("tmux_split_window", target="@1", command="exec cat")
        assert len((await tools.blocks("tmux_list_panes", target="@1"))[0].splitlines()) == 2
        listed_tabs = (await tools.json("list_tabs"))["tabs"]
        assert [row["window_id"] for row in listed_tabs] == ["@1"]
        await tools.blocks("tmux_kill", target=f"debug-{os.getpid()}", type="session")
        assert (await tools.blocks("tmux_list_panes"))[0] == "No panes found."
        await tools.blocks("create_tab")  # our session is still there


@pytest.mark.parametrize("name", ["a", "b:c", "debug-PID"])
async def test_nothing_is_started_for_a_name_that_is_taken(
    tmux: Tmux, on_users: Tmux, tmp_path: Path, name: str
) -> None:
    name = name.replace("PID", str(os.getpid()))
    for server in (tmux, on_users):
        if not name.startswith("debug-"):
            await server.text("create_session", name=name)
        elif server is on_users:
            continue
        before = await tmux.rows("panes")
        error = await server.error("create_session", name=name, command=f"touch {tmp_path}/started")
        assert "duplicate session: " in error
        assert await tmux.rows("panes") == before
    await tmux.text("create_session", name="other")  # by which time it would have run
    await tmux.text("create_window", session="other", command="true")
    await tmux.runs("other", "exited with code 0")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("command", [" ", "\t\n"])
async def test_blank_command_is_an_error_and_nothing_is_made(
    tmux: Tmux, on_users: Tmux, command: str
) -> None:
    for server in (tmux, on_users):
        await server.text("create_session", name="w")
        before = await server.rows("panes")
        for tool, place in (
            ("create_session", {"name": "x"}),
            ("create_window", {"session": "w"}),
            ("split_window", {"target": "w"}),
        ):
            error = await server.error(tool, command=command, **place)
            assert error.startswith("Parameter 'command' is blank.")
        assert await server.rows("panes") == before


async def test_session_is_not_killed_by_a_part_of_it(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    await tmux.text("create_window", session="w")
    for target in ("w:1", "@1", "%2", "w:0.0"):
        assert await tmux.error("kill", target=target, type="session") == (
            f"Target '{target}' is not a session but a part of session 'w'. Give the session."
        )
    assert len(await tmux.rows("windows")) == 2
    assert await tmux.text("kill", target="w", type="session") == "Killed session 'w'."


async def test_ids_mean_one_thing_also_when_tmux_had_to_start_anew(tmux: Tmux) -> None:
    # Else keys for a pane that is gone would go to another one.
    await tmux.text("create_session", name="w")
    for _ in range(3):
        await tmux.text("split_window", target="w")
    [old] = {pane.client for pane in tmux.engine.panes}
    os.kill(old.server_pid, signal.SIGKILL)
    await eventually(old.gone.is_set)

    answer = await tmux.text("create_session", name="w")
    assert answer == "Session 'w' created. session_id=$3 window_id=@3 pane_id=%6"
    assert await tmux.text("split_window", target="%6") == "Pane created. pane_id=%7"
    for target in ("%1", "%4", "%5", "@1", "@2", "$1:0", "$2"):
        assert "not found" in await tmux.error("send_keys", target=target, keys="x")
    assert [row[2] for row in await tmux.rows("panes", target="@3")] == ["%6", "%7"]
    await tmux.text("select_pane", target="%6")
    await tmux.text("resize_pane", target="%6", width=20)
    await tmux.text("rename_window", target="@3", new_name="again")
    await tmux.text("send_keys", target="%6", keys="echo $((6*7)) Enter")
    assert "\n42" in await tmux.shows("$3:again.%6", "\n42")
    assert await tmux.rows("sessions") == [["w", "$3", "1 windows", "0 attached"]]
    assert await tmux.text("kill", target="$3", type="session") == "Killed session '$3'."


async def test_sessions_do_not_count_our_own_connection(settings: Settings) -> None:
    async with in_process(settings, toolsets="tmux,tabs") as tools:
        await tools.blocks("create_tab")
        [listed] = await tools.blocks("tmux_list_sessions")
    assert listed == f"debug-{os.getpid()}\t$0\t1 windows\t0 attached"


async def test_ids_are_those_of_tmux(tmux: Tmux) -> None:
    await tmux.text("create_session", name="w")
    command = ["tmux", "-S", socket_of(os.getpid()), "list-panes", "-t", "=w:", "-F", "#{pane_id}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "%1\n"
