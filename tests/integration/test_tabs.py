"""Tabs (spec 000): making, listing and closing them, their ids, and arguments that are wrong."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import eventually, in_process, own_tmux, socket_of
from toolsets import Tabs, open_tabs

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings


async def test_create_tab_returns_a_window_id_and_a_name_may_have_spaces(tabs: Tabs) -> None:
    # Ids are tmux's own, so that a person who is attached means the same tab by the same id.
    created = await tabs.json("create_tab", name="my web server")

    assert created == {"window_id": "@1", "name": "my web server"}
    assert "@1" in own_tmux("list-windows", "-a", "-F", "#{window_id}").splitlines()


async def test_list_tabs_tells_names_with_spaces_and_which_one_is_active(tabs: Tabs) -> None:
    # The flag is tmux's: what a person who attaches sees first, which is the tab made last.
    await tabs.new(name="a b  c")
    await tabs.new(name="tab\u00e9 'quoted' #{x}")
    listed = await tabs.rows()
    assert [(row["name"], row["active"]) for row in listed.values()] == [
        ("a b  c", False),
        ("tab\u00e9 'quoted' #{x}", True),
    ]

    own_tmux("select-window", "-t", "@1")
    assert [row["active"] for row in (await tabs.rows()).values()] == [True, False]


async def test_tabs_created_at_once_have_ids_of_their_own(tabs: Tabs) -> None:
    # Creation is one command to tmux that answers with the id, so calls can't take each other's.
    made: list[str] = []

    async def create(number: int) -> None:
        tab = await tabs.new(env={"NUMBER": str(number)})
        assert await tabs.output(tab, "echo $NUMBER") == f"{number}\n"
        made.append(tab)

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(create, number)

    assert len(set(made)) == 12
    assert set(made) == set(await tabs.rows())


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
async def test_shell_of_a_tab_is_the_users(settings: Settings, shell: str) -> None:
    # A tab is the terminal that the user knows: an interactive $SHELL, also if it is not POSIX.
    path = shutil.which(shell) or "it is missing"
    shell_settings = replace(settings, env={**settings.env, "SHELL": path})
    async with open_tabs(shell_settings) as tabs:
        tab = await tabs.new()
        assert (await tabs.rows())[tab]["foreground"] == shell
        assert (await tabs.rows())[tab]["name"] == shell
        assert (await tabs.execute(tab, "echo $SHELL"))["output"] == f"{path}\n"


@pytest.mark.usefixtures("tab")
async def test_history_limit_is_high_and_bounded() -> None:
    # A person can scroll back far, and a flood can't fill the memory.
    assert own_tmux("show-options", "-gv", "history-limit") == "50000\n"


async def test_id_means_one_tab_exactly(tabs: Tabs) -> None:
    # tmux itself takes a prefix for the whole; @1 must never reach @10 when it is gone.
    for _ in range(10):
        await tabs.new()
    await tabs.json("close_tab", window_id="@1")

    assert "Tab '@1' not found" in await tabs.error(
        "execute_command", window_id="@1", command="true"
    )
    assert "Tab '@' not found" in await tabs.error("close_tab", window_id="@")
    assert "@10" in await tabs.rows()


async def test_ids_are_not_used_twice_when_tmux_had_to_start_anew(tabs: Tabs, tab: str) -> None:
    # Else a call for a tab that was lost would go to another.
    own_tmux("kill-server")
    await eventually(lambda: tabs.engine.host.client is None)
    later = await tabs.new()

    assert later not in (tab, "@0")
    assert (await tabs.rows())[tab]["status"] == "exited"
    assert await tabs.output(later, "echo here") == "here\n"
    assert "was lost" in await tabs.error("execute_command", window_id=tab, command="true")


async def test_closing_a_tab_that_was_split_closes_all_of_it(settings: Settings) -> None:
    # A tab is a window, and what toolset tmux put beside its first pane is in it.
    async with in_process(settings, toolsets="tabs,tmux") as tools:
        await tools.json("create_tab")
        await tools.blocks("tmux_split_window", target="@1", command="exec sleep 4700")
        await tools.json("create_tab", name="other")
        await tools.json("close_tab", window_id="@1")

        assert [row["name"] for row in (await tools.json("list_tabs"))["tabs"]] == ["other"]
        assert len((await tools.blocks("tmux_list_panes"))[0].splitlines()) == 1


async def test_tab_has_the_directory_and_variables_it_was_given(tabs: Tabs, tmp_path: Path) -> None:
    # The shell starts there, and other tabs do not.
    directory = tmp_path / "with blank"
    directory.mkdir()
    tab = await tabs.new(cwd=str(directory), env={"WHAT": "a b;$c"})
    assert await tabs.output(tab, 'pwd; echo "$WHAT"') == f"{directory}\na b;$c\n"
    other = await tabs.new()
    assert await tabs.output(other, 'pwd; echo "[$WHAT]"') == f"{tmp_path}\n[]\n"


async def test_login_shell_reads_the_profile(tabs: Tabs) -> None:
    # nvm, pyenv and the like live there; without `login` a shell is a plain one.
    Path("~/.bash_profile").expanduser().write_text("export FROM_PROFILE=yes\n")
    login, plain = await tabs.new(login=True), await tabs.new()

    assert (
        await tabs.output(login, "echo [$FROM_PROFILE]; shopt -q login_shell && echo login")
        == "[yes]\nlogin\n"
    )
    assert (
        await tabs.output(plain, "echo [$FROM_PROFILE]; shopt -q login_shell || echo plain")
        == "[]\nplain\n"
    )


async def test_set_history_limit_holds_for_later_tabs_and_says_so(tabs: Tabs, tab: str) -> None:
    # tmux gives a pane its history when it is made; to claim more would be wrong.
    answer = await tabs.json("set_history_limit", limit=1234)
    assert answer == {"success": True, "note": "It applies to tabs created from now on."}
    later = await tabs.new()

    limits = own_tmux("list-panes", "-a", "-F", "#{window_id} #{history_limit}").splitlines()
    assert {f"{tab} 50000", f"{tab} 1234"} & set(limits)  # newer tmux changes it for all
    assert f"{later} 1234" in limits


async def test_history_limit_is_remembered_before_and_after_tmux_runs(tabs: Tabs) -> None:
    # It is the user's wish for the whole run, not for one tmux server.
    await tabs.json("set_history_limit", limit=777)
    await tabs.new()
    assert own_tmux("show-options", "-gv", "history-limit") == "777\n"
    own_tmux("kill-server")
    await eventually(lambda: tabs.engine.host.client is None)
    await tabs.new()
    assert own_tmux("show-options", "-gv", "history-limit") == "777\n"


@pytest.mark.parametrize("limit", [0, -1, 100_001, 1e12])
async def test_history_limit_out_of_range_is_refused(tabs: Tabs, limit: float) -> None:
    # Memory is not for one call to use up.
    assert "It must be a whole number of at least 1 and at most 100000" in await tabs.error(
        "set_history_limit", limit=limit
    )


async def test_closed_tab_ends_all_that_runs_in_it_and_its_log_stays(tabs: Tabs, tab: str) -> None:
    # Also what ignores hanging up; what it printed can be looked at afterwards, by either id.
    sleeps = f"sleep 4{os.getpid()}"  # seconds that no other test sleeps
    await tabs.json(
        "start_process",
        window_id=tab,
        command=f"nohup setsid {sleeps} >/dev/null 2>&1 & echo kept; {sleeps}",
    )
    await tabs.shows_foreground(tab, "sleep")
    closed = await tabs.json("close_tab", window_id=tab)

    assert closed["success"]
    assert closed["ended"].startswith("killed by SIGHUP")
    assert subprocess.run(["pgrep", "-f", f"{sleeps}$"], check=False).returncode == 1
    assert await tabs.rows() == {}
    for window_id in (closed["log"], tab):
        assert "\nkept" in (await tabs.read(window_id, strip_ansi=True))["content"]
    assert "not found" in await tabs.error("close_tab", window_id=tab)
    assert "only its log is left" in await tabs.error(
        "start_process", window_id=closed["log"], command="ls"
    )


async def test_list_has_diagnostics_for_a_person(tabs: Tabs, tab: str) -> None:
    # How to attach, which tmux it is, and where the logs are.
    listed = await tabs.json("list_tabs")
    assert listed["socket"] == socket_of(os.getpid())
    assert Path(listed["log_dir"]).is_dir()
    assert f"tmux {listed['tmux']}\n" == subprocess.check_output(["tmux", "-V"], text=True)
    assert tab == "@1"


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("create_tab", {"cwd": "/no/such"}, "'/no/such', which is not a directory"),
    ("create_tab", {"name": " "}, "It must be printable and not blank"),
    ("create_tab", {"name": "x" * 65}, "a string of 1 to 64 characters"),
    ("create_tab", {"env": {"A": 1}}, "Parameter 'env.A'"),
    ("create_tab", {"login": "yes"}, "It must be true or false"),
    ("create_tab", {"name": "@7"}, "which looks like an id"),
    ("read_logs_from_tab", {"window_id": "@1", "lines": 1.5}, "It must be a whole number"),
    (
        "execute_command",
        {"window_id": "RUN/@1", "command": "x"},
        "Tab 'RUN/@1' not found",
    ),
    ("execute_command", {"window_id": "@1"}, "Parameter 'command' is missing"),
    ("execute_command", {"window_id": "@1", "command": " "}, "Parameter 'command' is blank"),
    ("execute_command", {"window_id": "@1", "command": "x", "timeout_ms": 0}, "at least 1"),
    (
        "execute_command",
        {"window_id": "@99", "command": "x"},
        "Tab '@99' not found. Use list_tabs",
    ),
    ("read_logs_from_tab", {"window_id": "@1", "lines": 0}, "at least 1"),
    ("read_logs_from_tab", {"window_id": "../@1"}, "Tab '../@1' not found"),
    ("read_logs_from_tab", {"window_id": "/@1"}, "Tab '/@1' not found"),
    ("read_logs_from_tab", {"window_id": "bash"}, "Tab 'bash' not found"),
    ("stream_logs_from_tab", {"window_id": "debug-1"}, "Tab 'debug-1' not found"),
    ("stream_logs_from_tab", {"window_id": "@1", "from_byte": -1}, "at least 0"),
    ("stop_process", {"window_id": "@1", "signal": "SIGKILL"}, "one of SIGINT, SIGTERM"),
    ("stop_process", {"window_id": "web"}, "Tab 'web' not found"),
]


async def test_bad_arguments_are_errors_that_say_what_to_do(tabs: Tabs, tab: str) -> None:
    # Errors are for the model to mend its call by.
    for tool, arguments, error in BAD_CALLS:
        assert error in await tabs.error(tool, **arguments)
        assert list(await tabs.rows()) == [tab]


async def test_tab_of_an_earlier_run_has_ended_for_all_that_would_use_it(
    settings: Settings, tmp_path: Path
) -> None:
    async with open_tabs(settings, Archive(tmp_path / "logs")) as tabs:
        tab = await tabs.new()
    later = Archive(tmp_path / "logs")
    later.run = "20990101T000000-1"  # runs of one process in one second have one name
    async with open_tabs(settings, later) as tabs:
        for tool, arguments in {
            "execute_command": {"command": "true"},
            "start_process": {"command": "true"},
            "stop_process": {},
            "close_tab": {},
        }.items():
            error = await tabs.error(tool, window_id=tab, **arguments)
            assert error.startswith(f"Tab '{tab}' has ended")
        assert "not found" in await tabs.error("close_tab", window_id="@77")
