"""The toolset `tabs` on the user's own tmux server reads, types and lists, and changes nothing."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from clocks import with_times
from support import User, eventually, run_of
from toolsets import Tabs, open_tabs

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools.tabs import TOOLSET


@pytest.fixture
async def tabs(settings: Settings, clock: Clock, user: User, tmp_path: Path) -> AsyncIterator[Tabs]:
    there = replace(settings, socket=str(user.socket))
    async with open_tabs(there, Archive(tmp_path / "logs"), clock) as tabs:
        yield tabs


async def shell_tab(tabs: Tabs, user: User, shell: str = "bash --norc") -> str:
    """Return the id of a tab with a shell at its prompt, which the user has made."""
    tab = user.tmux(
        "new-window", "-d", "-P", "-F", "#{window_id}", "-t", "mine:", f"PS1='$ ' exec {shell}"
    ).strip()
    await tabs.shows(tab, "$")
    return tab


async def test_users_windows_are_listed(tabs: Tabs, user: User) -> None:
    listed = await tabs.json("list_tabs")

    assert listed["socket"] == str(user.socket)
    assert [
        (row["session"], row["active"], row["status"], row["foreground"]) for row in listed["tabs"]
    ] == [
        ("mine", False, "running", "cat"),
        ("mine", True, "running", "sleep"),
        ("other", True, "running", "sleep"),
    ]
    assert listed["tabs"][1]["name"] == "logs"
    windows = user.tmux("list-windows", "-a", "-F", "#{window_id}").split()
    assert [row["window_id"] for row in listed["tabs"]] == windows


async def test_what_was_printed_before_is_read_and_commands_are_typed(
    tabs: Tabs, user: User
) -> None:
    before = user.state()
    tab = await shell_tab(tabs, user)
    started = await tabs.json(
        "start_process", window_id=tab, command="seq 1 100; printf '\\033[31mred\\033[0m\\n'; cat"
    )
    assert started == {"started": True}
    await tabs.shows(tab, "\nred")
    await tabs.shows_foreground(tab, "cat")
    result = await tabs.read(tab, strip_ansi=True)
    assert (result["content"].split("\n")[-3:], result["truncated"]) == (
        ["99", "100", "red"],
        False,
    )
    result = await tabs.json("read_logs_from_tab", window_id=tab, lines=2)
    assert (result["returned_lines"], result["truncated"]) == (2, True)
    assert result["content"].startswith("100\n\033[31mred")
    started = await tabs.json(
        "start_process", window_id=tab, command="to cat", append_newline=False
    )
    assert (
        started["note"]
        == "Enter was not pressed. It was typed into cat, which is in the foreground."
    )

    user.tmux("kill-window", "-t", tab)
    assert user.state() == before


@pytest.mark.parametrize(("lines", "is_full"), [(1000, True), (100, False)])
async def test_lines_that_tmux_has_dropped_are_told(
    tabs: Tabs, user: User, lines: int, *, is_full: bool
) -> None:
    user.tmux("set-option", "-g", "history-limit", "200")
    tab = await shell_tab(tabs, user)
    await tabs.json("start_process", window_id=tab, command=f"seq 1 {lines}; cat")
    await tabs.shows(tab, f"\n{lines}")
    result = await tabs.read(tab, lines=5000)
    note = "tmux keeps 200 lines of history there, and may have dropped earlier ones."
    assert (result["truncated"], result.get("note")) == (is_full, note if is_full else None)
    assert ("\n1\n2\n" not in result["content"]) == is_full


async def test_more_lines_than_tmux_can_count_are_all_lines(tabs: Tabs, user: User) -> None:
    tab = await shell_tab(tabs, user)
    await tabs.json("start_process", window_id=tab, command="seq 1 400; cat")
    await tabs.shows(tab, "\n400")
    for lines in (2**31 - 2, 2**31 - 1, 2**31, 10**10, 10**30):
        result = await tabs.json("read_logs_from_tab", window_id=tab, lines=lines)
        assert "\n1\n2\n3\n" in result["content"], lines
        assert not result["truncated"]


@pytest.mark.parametrize("shell", ["bash --norc", "zsh -f", "dash"])
async def test_process_is_stopped_and_the_shell_stays(tabs: Tabs, user: User, shell: str) -> None:
    tab = await shell_tab(tabs, user, shell)
    for how in ("SIGINT", "SIGTERM"):
        idle = await tabs.json("stop_process", window_id=tab, signal=how)
        assert idle == {
            "success": False,
            "note": "Not stopped: nothing runs there: the shell has the terminal.",
        }
        await tabs.json("start_process", window_id=tab, command=f"echo up {how}; sleep 60")
        await tabs.shows(tab, f"\nup {how}")
        assert await tabs.json("stop_process", window_id=tab, signal=how) == {"success": True}
        await tabs.json("start_process", window_id=tab, command=f"echo still $((40 + 2)) {how}")
        await tabs.shows(tab, f"\nstill 42 {how}")


async def test_what_follows_in_a_list_is_stopped_too(tabs: Tabs, user: User) -> None:
    tab = await shell_tab(tabs, user)
    await tabs.json(
        "start_process", window_id=tab, command="echo up; (sleep 60; sleep 61); sleep 62; echo over"
    )
    await tabs.shows(tab, "\nup")
    assert await tabs.json("stop_process", window_id=tab, signal="SIGTERM") == {"success": True}
    assert (await tabs.rows())[tab]["foreground"] == "bash"


async def test_tab_whose_program_has_ended_is_told_and_nobody_gets_a_signal(
    tabs: Tabs, user: User
) -> None:
    user.tmux("set-option", "-wg", "remain-on-exit", "on")
    tab = user.tmux("new-window", "-d", "-P", "-F", "#{window_id}", "-t", "mine:", "exit 3").strip()
    await tabs.exited(tab)
    for signal in ("SIGINT", "SIGTERM"):
        error = await tabs.error("stop_process", window_id=tab, signal=signal)
        # tmux 3.3 itself does not always know the code.
        assert re.match(rf"Tab '{tab}' exited( with code 3)?:", error)


async def test_shell_within_a_shell_is_not_stopped(tabs: Tabs, user: User) -> None:
    tab = await shell_tab(tabs, user)
    await tabs.json("start_process", window_id=tab, command="PS1='inner> ' bash --norc")
    await tabs.shows(tab, "inner> ")
    await tabs.json(
        "start_process", window_id=tab, command="left on the line", append_newline=False
    )
    stopped = await tabs.json("stop_process", window_id=tab)
    assert stopped == {
        "success": False,
        "note": "Not stopped: nothing runs there: the shell has the terminal.",
    }
    await tabs.json("start_process", window_id=tab, command="echo clean $((40 + 2))")
    await tabs.shows(tab, "\nclean 42")


@with_times(stop_s=0.3)
async def test_stop_of_a_program_that_goes_on_is_not_a_success(tabs: Tabs, user: User) -> None:
    tab = await shell_tab(tabs, user)
    await tabs.json(
        "start_process",
        window_id=tab,
        command="sh -c 'trap : INT; echo up; while :; do sleep 60; done'",
    )
    await tabs.shows(tab, "\nup")
    stopped = await tabs.json("stop_process", window_id=tab)

    assert stopped["success"] is False
    assert stopped["note"].endswith(" is still running 0.3 s later; SIGTERM may help.")


async def test_what_is_not_possible_there_says_so_and_does_nothing(tabs: Tabs, user: User) -> None:
    before = user.state()
    for tool, arguments, reason in (
        ("execute_command", {"window_id": "@99", "command": "x"}, "Tab '@99' not found."),
        ("stream_logs_from_tab", {"window_id": "@99"}, "Tab '@99' not found."),
        ("create_tab", {"env": {"A": "x" * 20_000}}, "the user's tmux server takes at most"),
        (
            "execute_command",
            {"window_id": "@0", "command": "echo hello"},
            "exit code can't be determined there",
        ),
        ("stream_logs_from_tab", {"window_id": "@0"}, "there are no offsets to read from"),
        ("set_history_limit", {"limit": 1000}, "was not changed"),
        (
            "close_tab",
            {"window_id": "@0"},
            "Nothing was killed: this tmux server is the user's own",
        ),
        ("create_tab", {"name": "@7"}, "Parameter 'name' is '@7', which looks like an id."),
        ("create_tab", {}, "has several sessions (mine, other), and none is attached"),
    ):
        assert reason in await tabs.error(tool, **arguments)
    assert await tabs.error("start_process", window_id="@99", command="x") == (
        "Tab '@99' not found. Use list_tabs to see active tabs."
    )
    assert "nothing would be typed" in await tabs.error(
        "start_process", window_id="@0", command="", append_newline=False
    )
    assert user.state() == before


async def test_tools_that_could_only_refuse_there_are_not_offered(
    settings: Settings, user: User, tabs: Tabs
) -> None:
    async def offered(tabs: Tabs) -> set[str]:
        return {tool.name for tool in (await tabs.client.list_tools()).tools}

    names = {tool.name for tool in TOOLSET.tools}
    own = {"execute_command", "set_history_limit"}
    assert await offered(tabs) == names - own - {"close_tab"}
    assert "execute_command" not in (tabs.client.instructions or "")
    unknown = await tabs.error("nothing")
    assert unknown.startswith("Unknown tool 'nothing'. Use one of: create_tab, ")
    assert not [name for name in own if name in unknown]
    allowed = replace(settings, socket=str(user.socket), allows_kill=True)
    async with open_tabs(allowed) as on_users:
        assert await offered(on_users) == names - own
    async with open_tabs(settings) as on_ours:
        assert await offered(on_ours) == names


@pytest.mark.parametrize("command", ["exec sleep 1000", "sleep 1000; true"])
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
async def test_program_with_which_the_window_would_close_is_stopped_only_where_that_is_allowed(
    settings: Settings, tabs: Tabs, user: User, how: str, command: str
) -> None:
    tab = user.tmux(
        "new-window", "-d", "-P", "-F", "#{window_id}", "-t", "mine:", f"echo up; {command}"
    ).strip()
    await tabs.shows(tab, "up")

    refused = await tabs.error("stop_process", window_id=tab, signal=how)

    assert refused.startswith("Nothing was killed: this tmux server is the user's own")
    assert (await tabs.rows())[tab]["status"] == "running"
    async with open_tabs(replace(settings, socket=str(user.socket), allows_kill=True)) as allowed:
        assert await allowed.json("stop_process", window_id=tab, signal=how) == {"success": True}
        assert tab not in await allowed.rows()


async def test_tab_is_made_in_the_background_of_the_only_session(
    tabs: Tabs, user: User, tmp_path: Path
) -> None:
    user.tmux("kill-session", "-t", "other")
    (tmp_path / "#{pane_id}").mkdir()
    before = user.state_of("mine")
    made = await tabs.json(
        "create_tab", name="a b #S", cwd=str(tmp_path / "#{pane_id}"), env={"A": "x;"}
    )
    assert made["name"] == "a b #S"
    await tabs.json("start_process", window_id=made["window_id"], command="echo $A-$PWD-")
    await tabs.shows(made["window_id"], f"\nx;-{tmp_path}/#{{pane_id}}-")
    user.tmux("kill-window", "-t", made["window_id"])

    assert user.state_of("mine") == before


async def test_no_secret_stands_in_arguments_of_tmux(
    tabs: Tabs, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.tmux("kill-session", "-t", "other")
    started: list[str] = []
    run_process = anyio.run_process

    async def recorded(argv: list[str], **arguments: Any) -> Any:  # noqa: ANN401
        started.append(" ".join(argv))
        return await run_process(argv, **arguments)

    monkeypatch.setattr(anyio, "run_process", recorded)
    value = "s3cret; $HOME #{pane_id} \"'\\ é\n;"
    made = await tabs.json("create_tab", env={"TOKEN": value, "my-token": "s3cret"})
    await tabs.json(
        "start_process", window_id=made["window_id"], command="printf '%s|s3cret\\n' \"$TOKEN\""
    )
    await tabs.shows(made["window_id"], f"\n{value}|s3cret\n")

    assert len(started) > 2
    assert not [words for words in started if "s3cret" in words]


async def test_tab_is_closed_where_that_is_allowed(settings: Settings, user: User) -> None:
    allowed = replace(settings, socket=str(user.socket), allows_kill=True)
    async with open_tabs(allowed) as tabs:
        assert await tabs.json("close_tab", window_id="@1") == {"success": True}

    assert user.tmux("list-windows", "-a", "-F", "#{window_id}").split() == ["@0", "@2"]


async def test_without_a_server_there_are_no_tabs(settings: Settings, short_path: Path) -> None:
    async with open_tabs(replace(settings, socket=str(short_path / "none"))) as tabs:
        assert (await tabs.json("list_tabs"))["tabs"] == []
        assert "not found" in await tabs.error("read_logs_from_tab", window_id="@1")
        assert "has no session" in await tabs.error("create_tab")


async def test_tabs_of_earlier_runs_can_still_be_read(
    settings: Settings, user: User, tmp_path: Path
) -> None:
    async with open_tabs(settings, Archive(tmp_path)) as tabs:
        await tabs.json("create_tab")
        await tabs.json("execute_command", window_id="@1", command="echo kept")
        run = run_of(tabs)
    there = replace(settings, socket=str(user.socket))
    async with open_tabs(there, Archive(tmp_path)) as tabs:
        content = (await tabs.json("read_logs_from_tab", window_id=f"{run}/@1", strip_ansi=True))[
            "content"
        ]
        assert content.splitlines()[1:2] == ["kept"]
        assert "kept" in (await tabs.json("stream_logs_from_tab", window_id=f"{run}/@1"))["chunk"]


async def test_enter_alone_and_given_line_feeds_arrive(
    tabs: Tabs, user: User, tmp_path: Path
) -> None:
    tab = await shell_tab(tabs, user)
    file = tmp_path / "typed"
    await tabs.json("start_process", window_id=tab, command=f"cat >{file}")
    await eventually(file.exists)
    for command, append_newline in (("", True), ("yes\n", False), ("no", True)):
        answer = await tabs.json(
            "start_process", window_id=tab, command=command, append_newline=append_newline
        )
        assert "Enter was not pressed" not in answer.get("note", "")
    await eventually(lambda: file.read_text() == "\nyes\nno\n")
