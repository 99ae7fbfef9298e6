"""Sessions of the toolset `terminal` (spec 003): names, sizes, ends, and those of earlier runs."""

import json
import os
from pathlib import Path

import anyio
from support import eventually, run_of
from toolsets import Terminal, open_terminal

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings


async def test_default_is_made_again_when_it_was_closed_or_has_ended(term: Terminal) -> None:
    await term.text("type", text="echo first-$((1))\n")
    await term.shows("first-1")
    assert (await term.text("closeSession")).startswith(
        "Closed session 'default' (killed by SIGHUP after "
    )
    assert "not found" in await term.error("closeSession")
    assert "first-1" not in (await term.shot())["content"]

    await term.text("type", text="echo second-$((2)); exit 3\n")
    await term.shows("second-2")
    await term.exited()
    assert "second-2" in await term.text("getContent")  # what it showed last can be read
    await term.text("type", text="echo third-$((3))\n")
    assert "second-2" not in await term.shows("third-3")
    assert [row["status"] for row in await term.json("listSessions")] == ["running"]


async def test_default_is_made_once_for_calls_that_come_together(term: Terminal) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(term.shot)
    assert len(await term.json("listSessions")) == 1


async def test_named_sessions_are_apart(term: Terminal, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    answer = await term.text(
        "createSession",
        name="a b",
        cols=60,
        rows=10,
        cwd=str(tmp_path / "in"),
        env={"VAR": "val ue"},
    )
    assert answer == "Created session 'a b' (60x10)"
    await term.text("type", text='echo "$PWD $VAR"; stty size\n', session="a b")
    assert "val ue" in await term.shows("\n10 60\n", session="a b")
    assert "val ue" not in (await term.shot())["content"]
    rows = await term.json("listSessions")
    assert [(row["session"], row["cols"], row["rows"], row["foreground"]) for row in rows] == [
        ("a b", 60, 10, "bash"),
        ("default", 120, 40, "bash"),
    ]


async def test_session_name_that_is_taken_or_unknown_is_an_error(term: Terminal) -> None:
    await term.text("createSession", name="one")
    assert "already exists" in await term.error("createSession", name="one")
    error = "Session 'two' not found. Use listSessions to see active sessions."
    for tool, arguments in (
        ("type", {"text": "x"}),
        ("getContent", {}),
        ("clear", {}),
        ("stopRecording", {}),
    ):
        assert await term.error(tool, session="two", **arguments) == error


async def test_keys_for_a_program_that_ended_are_an_error_that_says_how_it_ended(
    term: Terminal,
) -> None:
    await term.text("createSession", name="one", command="echo bye; exit 7")
    await term.shows("bye", session="one")
    await term.exited("one")
    error = await term.error("sendKey", key="Enter", session="one")
    assert error.startswith("Session 'one' exited with code 7 after ")
    assert error.endswith("Use getContent to read its last output or createSession to start again.")
    assert (await term.text("createSession", name="one")).startswith("Created")


async def test_resize_changes_the_terminal_and_programs_are_told(term: Terminal) -> None:
    await term.text(
        "createSession", name="s", command="trap 'stty size' WINCH; while :; do sleep 0.05; done"
    )
    await term.shows_foreground("s", "sleep")
    assert await term.text("resize", cols=101, rows=33, session="s") == "Terminal resized to 101x33"

    assert "33 101" in await term.shows("33 101", session="s")
    assert (await term.shot(session="s"))["dimensions"] == {"cols": 101, "rows": 33}
    for size in (
        {"cols": 1, "rows": 10},
        {"cols": 10, "rows": 201},
        {"cols": 501, "rows": 10},
        {"cols": 10},
    ):
        assert "Parameter '" in await term.error("resize", session="s", **size)


async def test_sessions_of_an_earlier_run_are_listed_and_read(
    settings: Settings, tmp_path: Path
) -> None:
    archive = Archive(tmp_path / "logs")
    async with open_terminal(settings, archive) as term:
        await term.text("type", text="echo kept-$((1))\n")
        await term.shows("kept-1")
    later = Archive(tmp_path / "logs")
    later.run = "20990101T000000-1"
    async with open_terminal(settings, later) as term:
        [row] = await term.json("listSessions")
        assert row == {"session": f"{archive.run}/default", "status": "exited"}
        assert "\nkept-1\n" in await term.text("getContent", session=row["session"])


async def test_only_the_sessions_of_the_last_run_are_listed_and_the_others_counted(
    settings: Settings, tmp_path: Path
) -> None:
    for run in ("20260101T000000-1", "20260102T000000-1"):
        archive = Archive(tmp_path)
        archive.run = run
        async with open_terminal(settings, archive) as term:
            for name in ("a", "b"):
                await term.blocks("createSession", name=name, command="true")
    async with open_terminal(settings, Archive(tmp_path)) as term:
        [listed, note] = await term.blocks("listSessions")

    assert [row["session"] for row in json.loads(listed)] == [f"{run}/a", f"{run}/b"]
    assert note == "[sessions of earlier runs that are not listed: 2]"


async def test_session_that_was_closed_is_gone_with_those_that_had_its_name_before(
    term: Terminal,
) -> None:
    for number in range(3):
        await term.blocks("createSession", name="a", command=f"echo {number}")
        await term.exited("a")
    assert [row["session"] for row in await term.json("listSessions")] == ["a"]
    assert await term.shows("2", session="a") == "2"
    assert await term.text("getContent", session="a") == "2"
    await term.blocks("closeSession", session="a")

    assert "Session 'a' not found." in await term.error("getContent", session="a")
    assert await term.json("listSessions") == []


async def test_sessions_of_earlier_runs_are_told_apart(settings: Settings, tmp_path: Path) -> None:
    async with open_terminal(settings, Archive(tmp_path)) as term:
        for number in range(2):
            await term.blocks("createSession", name="a", command=f"echo {number}")
            await term.exited("a")
        run = run_of(term)
    later = Archive(tmp_path)
    later.run = "29991231T235959-1"
    async with open_terminal(settings, later) as term:
        listed = await term.json("listSessions")
        assert [(row["session"], row.get("name")) for row in listed] == [
            (f"{run}/@1", "a"),
            (f"{run}/a", None),
        ]
        assert (await term.blocks("getContent", session=f"{run}/a"))[0] == "1"
        assert (await term.blocks("getContent", session=f"{run}/@1"))[0] == "0"


async def test_name_with_a_slash_is_not_taken_for_that_of_an_earlier_run(term: Terminal) -> None:
    await term.blocks("createSession", name="a/b", command="exec cat")
    await term.blocks("closeSession", session="a/b")
    for tool, arguments in (("type", {"text": "x"}), ("getContent", {}), ("takeScreenshot", {})):
        error = await term.error(tool, session="a/b", **arguments)
        assert error.startswith("Session 'a/b' not found.")


async def test_session_that_has_ended_has_nothing_to_record(term: Terminal) -> None:
    await term.blocks("createSession", name="a", command="exit 3")
    await term.exited("a")
    error = await term.error("startRecording", session="a")

    assert error.startswith("Session 'a' exited with code 3 after ")
    assert error.endswith("Use getContent to read its last output or createSession to start again.")


async def test_screen_of_an_earlier_run_is_what_was_visible(
    settings: Settings, tmp_path: Path
) -> None:
    # Of a session that ended in a full-screen program, that program's screen.
    commands = {
        "rows": "seq 1 100; exit",
        "program": "seq 1 9; printf '\\033[?1049h\\033[2J\\033[3;5Hmenu'; exit",
    }
    visible = {}
    async with open_terminal(settings, Archive(tmp_path)) as term:
        for name, command in commands.items():
            await term.blocks("createSession", name=name, command=command, rows=24)
            await term.exited(name)
            [visible[name]] = await term.blocks("getContent", session=name, visibleOnly=True)
        run = run_of(term)
    async with open_terminal(settings, Archive(tmp_path)) as term:
        for name, screen in visible.items():
            assert await term.blocks("getContent", session=f"{run}/{name}", visibleOnly=True) == [
                screen
            ]
        [whole] = await term.blocks("getContent", session=f"{run}/rows")

    assert visible["rows"].split("\n") == [str(number) for number in range(78, 101)]
    assert visible["program"] == "\n\n    menu"
    assert whole.split("\n")[0] == "1"


async def test_programs_have_the_size_when_resize_answers(term: Terminal) -> None:
    # tmux tells a terminal of no two sizes within a quarter of a second.
    await term.blocks("createSession", name="a", command="bash --norc")
    for columns, rows in ((100, 30), (90, 28), (80, 24)):
        await term.blocks("resize", session="a", cols=columns, rows=rows)
        await term.blocks("type", session="a", text=f"echo {rows}=$(stty size)-\n")
        assert f"\n{rows}={rows} {columns}-" in await term.shows(f"\n{rows}=", session="a")


async def test_shell_that_reads_its_settings_holds_up_no_other_session(
    term: Terminal, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    Path(os.environ["HOME"], ".bashrc").write_text(f"until [ -e {gate} ]; do :; done\n")
    made: list[str] = []

    async def create() -> None:
        made.append(await term.text("createSession", name="slow"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create)
        await eventually(lambda: len(term.engine.panes) == 1)
        await term.text("createSession", name="other", command="cat")
        assert made == []
        gate.touch()
