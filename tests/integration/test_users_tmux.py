"""The toolset `tmux` on the user's own tmux server, which keeps all that is theirs."""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from clocks import with_times
from support import User, eventually, texts, until
from toolsets import Tmux, open_tmux

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.targets import PaneRow
from tmux_debug_mcp.tmux.users_server import UsersServer

COMMAND = "#{pane_current_command}"


async def test_command_that_ends_at_once_has_ids_too(on_users: Tmux) -> None:
    ids = r"window_id=@\d+ pane_id=%\d+; its command has already ended"
    for _ in range(20):  # some end before tmux is asked again, and some later
        answer = await on_users.text("create_session", name="short", command="true")
        assert re.fullmatch(
            rf"Session 'short' created. session_id=\$\d+ ({ids}|window_id=@\d+ pane_id=%\d+)",
            answer,
        )
        await on_users.session_gone("short")
    answer = await on_users.text("create_window", session="mine", command="true")
    assert answer.startswith("Window created in session 'mine'. window_id=@")
    assert (await on_users.text("split_window", target="mine:logs", command="true")).startswith(
        "Pane created. pane_id=%"
    )


async def test_users_sessions_survive_everything_and_nothing_of_theirs_changes(
    settings: Settings, user: User
) -> None:
    before = user.state()
    async with open_tmux(replace(settings, socket=str(user.socket))) as tmux:
        assert {row[0] for row in await tmux.rows("sessions")} == {"mine", "other"}
        assert len(await tmux.rows("panes", target="mine")) == 3
        await tmux.text("read_pane", target="mine:logs.0", line_count=10)
        made = await tmux.text("create_session", name="made", command="exec cat")
        await tmux.text("create_window", session="made", name="second")
        await tmux.text("split_window", target="made:second", horizontal=True)
        await tmux.text(
            "send_keys", target="made:second.1", keys="for i in 1 2; do\necho got-$i\ndone\n"
        )
        await tmux.shows("made:second.1", "got-1\ngot-2")
        await tmux.text("select_pane", target="made:second.0")
        await tmux.text("resize_pane", target="made:second.0", height=8)
        await tmux.text("rename_window", target="made:second", new_name="#(touch pwned)")
        await tmux.text("select_window", target="made:1")
        for kind, target in (
            ("pane", "mine:logs.0"),
            ("window", "mine:logs"),
            ("session", "mine"),
            ("pane", "made"),
        ):
            error = await tmux.error("kill", target=target, type=kind)
            assert error.startswith("Nothing was killed: this tmux server is the user's own")
    assert user.state() == before
    assert "made\n" in user.tmux("list-sessions", "-F", "#{session_name}\n")
    assert made.startswith("Session 'made' created. session_id=$2 ")
    assert user.tmux("list-clients") == ""


async def test_calls_give_the_same_layout_on_either_server(on_users: Tmux, tmux: Tmux) -> None:
    # As with tmux's own commands: a new window is the current one, a new pane the active one.
    shown = []
    for server in (on_users, tmux):
        made = await server.text("create_session", name="w")
        first = made.rpartition("=")[2]
        await server.text("create_window", session="w", name="two")
        await server.text("split_window", target="w")
        await server.text("split_window", target="w", horizontal=True)
        await server.text("split_window", target=first, size="20")
        windows = await server.rows("windows", session="w")
        assert [row[4:6] for row in windows] == [["0", "2 panes"], ["1", "3 panes"]]
        panes = await server.rows("panes", target="w")
        shown.append([row[5] for row in panes])
        # On the right, one pane over the other.
        left, over, under = (list(map(int, row[4].split("x"))) for row in panes[2:])
        assert left[1] == over[1] + under[1] + 1
        assert over[0] == under[0]
    assert shown[0] == shown[1] == ["0", "1", "0", "0", "1"]


async def test_sessions_are_created_in_the_background(on_users: Tmux, user: User) -> None:
    before = user.state_of("mine")
    await on_users.text("create_session", name="new", command="exec sleep 1003")
    assert user.state_of("mine") == before


async def test_what_is_created_starts_in_the_given_directory(
    settings: Settings, user: User, tmp_path: Path
) -> None:
    directory = tmp_path / "#{pane_id} %H"
    directory.mkdir()
    there = replace(settings, socket=str(user.socket), cwd=directory)
    async with open_tmux(there) as tmux:
        await tmux.text("create_session", name="w", command="exec sleep 1005")
        await tmux.text("create_window", session="w", command="exec sleep 1006")
        await tmux.text("split_window", target="w", command="exec sleep 1007")
        paths = ("list-panes", "-s", "-t", "=w:", "-F", "#{pane_current_path}")
        await eventually(lambda: user.tmux(*paths).splitlines() == [str(directory)] * 3)


@pytest.mark.parametrize(
    "keys",
    ["a;", ";", "-x", "#{pane_id} #(id)", "$HOME `id` ~ \"q\" 'r' \\", "é日😀", "x" * 9000 + ";"],
)
async def test_text_arrives_as_it_is(on_users: Tmux, user: User, tmp_path: Path, keys: str) -> None:
    await on_users.text(
        "create_session", name="c", command=f"stty raw -echo; exec cat >{tmp_path}/typed"
    )
    await on_users.runs("c", "cat")
    await on_users.text("send_keys", target="c", keys=keys, literal=True)
    await eventually(lambda: (tmp_path / "typed").read_text() == keys)
    assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"


@pytest.mark.parametrize("scrolls", [False, True])
async def test_lines_are_typed_and_not_pasted(
    on_users: Tmux, user: User, tmp_path: Path, *, scrolls: bool
) -> None:
    command = f"stty raw -echo; printf '\\033[?2004h'; exec cat >{tmp_path}/typed"
    await on_users.text("create_session", name="c", command=command)
    await on_users.runs("c", "cat")
    if scrolls:
        user.tmux("copy-mode", "-t", "=c:")
    answer = await on_users.text("send_keys", target="c", keys="one\ntwo\n")
    assert answer == "Sent keys to pane 'c'"
    await eventually(lambda: (tmp_path / "typed").read_bytes() == b"one\rtwo\r")


async def test_signal_goes_to_the_program_that_a_shell_has_started(on_users: Tmux) -> None:
    await on_users.text("create_session", name="c", command="exec bash --norc")
    await on_users.text("send_keys", target="c", keys="sleep 100 Enter")
    await on_users.runs("c", "sleep")
    await on_users.text("send_keys", target="c", keys="SIGTERM")

    # Until the shell has the terminal again, the signal goes to what has just ended.
    again = partial(on_users.call, "send_keys", target="c", keys="SIGTERM")
    refused = await until(again, lambda result: result.is_error is True)

    assert texts(refused)[0].startswith("SIGTERM was not sent: only the pane's own program runs")


async def test_pane_that_the_user_scrolls_through_gets_its_keys(on_users: Tmux, user: User) -> None:
    user.tmux("copy-mode", "-t", "=mine:1.0")
    await on_users.text("send_keys", target="mine:1", keys="typed Enter")
    assert "typed\ntyped" in await on_users.shows("mine:1", "typed\ntyped")


async def test_user_goes_on_to_scroll_while_keys_are_sent(on_users: Tmux, user: User) -> None:
    user.tmux("copy-mode", "-t", "=mine:1.0")
    for keys in ("C-l", "echo typed Enter", "Up C-u", "two Enter"):
        await on_users.text("send_keys", target="mine:1", keys=keys)
    await eventually(lambda: "two" in user.tmux("capture-pane", "-p", "-t", "=mine:1.0"))
    assert user.tmux("display-message", "-p", "-t", "=mine:1.0", "#{pane_in_mode}") == "1\n"


async def test_synchronized_panes_do_not_get_the_keys_of_another(
    on_users: Tmux, user: User, tmp_path: Path
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
        await on_users.text("send_keys", target=panes[0], keys=keys)
    expected = b"typed\r\033[A\3a\rb\r"
    await eventually(lambda: (tmp_path / "one").read_bytes() == expected)
    assert (tmp_path / "two").read_bytes() == b""


async def test_no_name_of_a_program_forges_a_row(on_users: Tmux, user: User) -> None:
    program = r"exec -a $'x\n%9\tforged; matched' bash -c 'while :; do sleep 60; done'"
    user.tmux(
        "new-window",
        "-d",
        "-t",
        "mine:",
        "-n",
        "odd",
        "exec " + shlex.join(["bash", "-c", program]),
    )
    ask = ("display-message", "-p", "-t", "=mine:odd")
    arguments = Path("/proc", user.tmux(*ask, "#{pane_pid}").strip(), "cmdline")
    await eventually(lambda: arguments.read_bytes().startswith(b"x\n"))
    found = await on_users.text("list_panes")
    assert len(found.splitlines()) == len(user.tmux("list-panes", "-a").splitlines())
    # tmux 3.8 has no name for it.
    assert ("x?%9?forged" in found) == ("forged" in user.tmux(*ask, COMMAND))


async def test_keys_for_a_dead_pane_are_refused_and_end_no_server(
    on_users: Tmux, user: User
) -> None:
    # tmux 3.3 itself ends, with all sessions, when something is pasted into a dead pane.
    user.tmux("set-option", "-g", "remain-on-exit", "on")
    user.tmux("new-window", "-d", "-t", "mine:", "-n", "dead", "exit 3")
    await eventually(
        lambda: user.tmux("display-message", "-p", "-t", "=mine:dead", "#{pane_dead}") == "1\n"
    )
    for keys in ("one\ntwo", "ls Enter"):
        error = await on_users.error("send_keys", target="mine:dead", keys=keys)
        assert error.startswith("Pane 'mine:dead' exited")


async def test_pane_that_dies_while_it_is_typed_to_ends_no_server(
    on_users: Tmux, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.tmux("set-option", "-g", "remain-on-exit", "on")
    user.tmux("new-window", "-d", "-t", "mine:", "-n", "dead", "exit 3")
    await eventually(
        lambda: user.tmux("display-message", "-p", "-t", "=mine:dead", "#{pane_dead}") == "1\n"
    )
    looked_up = UsersServer.rows

    async def before_it_died(server: UsersServer) -> list[PaneRow]:
        return [replace(row, pane_dead="0") for row in await looked_up(server)]

    monkeypatch.setattr(UsersServer, "rows", before_it_died)
    await on_users.text("send_keys", target="mine:dead", keys="one\ntwo")
    assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"


async def test_pane_that_goes_while_it_is_typed_to_leaves_no_buffer(
    on_users: Tmux, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = UsersServer.rows

    async def before_it_went(server: UsersServer) -> list[PaneRow]:
        return [replace(row, pane_id="%99") for row in await looked_up(server)]

    monkeypatch.setattr(UsersServer, "rows", before_it_went)
    assert "can't find pane" in await on_users.error("send_keys", target="mine", keys="one\ntwo")
    assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"


async def test_cancelled_paste_arrives_whole_and_leaves_no_buffer(
    on_users: Tmux, user: User, tmp_path: Path
) -> None:
    await on_users.text(
        "create_session", name="c", command=f"stty raw -echo; exec cat >{tmp_path}/typed"
    )
    await on_users.runs("c", "cat")
    for delay in range(12):
        with anyio.move_on_after(delay / 1000):
            await on_users.client.call_tool("tmux_send_keys", {"target": "c", "keys": "one\ntwo"})
    await on_users.text("send_keys", target="c", keys="end")
    await eventually(lambda: (tmp_path / "typed").read_text().endswith("end"))
    assert set((tmp_path / "typed").read_bytes().removesuffix(b"end").split(b"one\rtwo")) == {b""}
    assert user.tmux("list-buffers", "-F", "#{buffer_name}") == "precious\n"


async def test_keys_of_concurrent_calls_do_not_mix(on_users: Tmux, tmp_path: Path) -> None:
    await on_users.text(
        "create_session", name="c", command=f"stty raw -echo; exec cat >{tmp_path}/typed"
    )
    await on_users.runs("c", "cat")
    texts = [letter * 20_000 for letter in "abcde"]
    async with anyio.create_task_group() as tasks:
        for typed in texts:
            tasks.start_soon(partial(on_users.text, "send_keys", target="c", keys=f"{typed} Enter"))
    await eventually(lambda: (tmp_path / "typed").stat().st_size == 5 * 20_001)
    assert sorted((tmp_path / "typed").read_bytes().decode().split("\r")) == ["", *texts]


async def test_lines_that_wrap_are_read_whole(on_users: Tmux) -> None:
    command = "for x in a b c; do printf \"%9000s\\n\" $x | tr ' ' $x; done; exec cat"
    await on_users.text("create_session", name="c", command=command)
    await on_users.shows("c", "ccc")
    assert (
        await on_users.text("read_pane", target="c", line_count=2) == f"{'b' * 9000}\n{'c' * 9000}"
    )


async def test_command_longer_than_tmux_takes_is_an_error(on_users: Tmux) -> None:
    error = await on_users.error("create_window", session="mine", command=f"echo {'x' * 17_000}")
    assert error == (
        "Parameter 'command' has 17005 bytes; the user's tmux server takes at most 12000. "
        "Put it into a script."
    )


async def test_windows_that_are_linked_are_told_apart(on_users: Tmux, user: User) -> None:
    user.tmux("link-window", "-s", "=mine:logs", "-t", "other:7")
    user.tmux("link-window", "-s", "=mine:logs", "-t", "mine:9")
    assert [row[:2] for row in await on_users.rows("windows", session="mine")] == [
        ["mine", "1"],
        ["mine", "2"],
        ["mine", "9"],
    ]
    assert [row[5] for row in await on_users.rows("windows", session="mine")] == [
        "1 panes",
        "2 panes",
        "2 panes",
    ]
    assert len(await on_users.rows("panes", target="mine:9")) == 2
    await on_users.text("select_window", target="mine:9")
    assert user.tmux("display-message", "-p", "-t", "=mine:", "#{window_index}") == "9\n"


async def test_hooks_that_print_are_no_part_of_an_answer(on_users: Tmux, user: User) -> None:
    user.tmux("set-hook", "-g", "after-new-window", "display-message -p 'win made'")
    answer = await on_users.text("create_window", session="mine", command="exec sleep 1005")
    assert answer.startswith("Window created in session 'mine'. window_id=@")


async def test_command_is_the_one_that_tmux_tells(on_users: Tmux, tmp_path: Path) -> None:
    (tmp_path / "averyveryverylongprogramname").symlink_to(shutil.which("bash") or "")
    command = f"exec {tmp_path}/averyveryverylongprogramname -c 'sleep 99; true'"
    await on_users.text("create_session", name="c", command=command)
    await on_users.runs("c", "averyveryverylongprogramname")


async def test_killing_that_was_allowed_kills_just_that(settings: Settings, user: User) -> None:
    allowed = replace(settings, socket=str(user.socket), allows_kill=True)
    async with open_tmux(allowed) as tmux:
        assert "not found" in await tmux.error("kill", target="min", type="session")
        await tmux.text("kill", target="mine:logs.1")
        await tmux.text("kill", target="other", type="session")
    assert (
        user.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_name}.#{pane_index}").count(
            "mine:"
        )
        == 2
    )


async def test_server_that_is_not_there_is_started_and_stays(
    settings: Settings, short_path: Path
) -> None:
    socket = short_path / "new"
    try:
        async with open_tmux(replace(settings, socket=str(socket))) as tmux:
            assert await tmux.text("list_sessions") == "No sessions found."
            answer = await tmux.text("create_session", name="fresh")
            assert answer == "Session 'fresh' created. session_id=$0 window_id=@0 pane_id=%0"
        listed = ["tmux", "-S", str(socket), "list-sessions", "-F", "#{session_name}"]
        assert (
            subprocess.run(listed, capture_output=True, text=True, check=True).stdout == "fresh\n"
        )
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)


async def test_server_that_has_just_ended_is_no_server(on_users: Tmux, user: User) -> None:
    for _ in range(3):
        user.tmux("kill-server")
        assert await on_users.text("list_panes") == "No panes found."
        assert "not found" in await on_users.error("read_pane", target="%0")
        user.tmux("new-session", "-d", "-s", "again", "exec cat")


@with_times(answer_s=0.3)
async def test_server_that_hangs_is_an_error(on_users: Tmux, user: User) -> None:
    pid = int(user.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, 19)
    try:
        error = await on_users.error("list_sessions")
    finally:
        os.kill(pid, 18)
    assert error == (
        f"The tmux server at {user.socket} does not answer (no answer in 0.3 s). What this "
        "call was to do may still happen. Ask the user to look at it."
    )
    assert len(await on_users.rows("sessions")) == 2


@pytest.mark.parametrize(
    ("path", "listed", "created"),
    [
        ("no/such", "No sessions found.", "The tmux server at "),
        (".", "does not answer (not a socket)", "The tmux server at "),
        ("notes.txt", "does not answer (not a socket)", "The tmux server at "),
        ("x" * 120, "does not answer (File name too long)", "The tmux server at "),
    ],
)
async def test_path_that_is_no_socket_is_an_error(
    settings: Settings, short_path: Path, path: str, listed: str, created: str
) -> None:
    (short_path / "notes.txt").write_text("precious")
    async with open_tmux(replace(settings, socket=str(short_path / path))) as tmux:
        result = await tmux.call("list_sessions")
        assert result.content[0].type == "text"
        assert listed in result.content[0].text
        assert (await tmux.error("create_session", name="x")).startswith(created)
    assert (short_path / "notes.txt").read_text() == "precious"


async def test_window_whose_program_ends_at_once_is_an_answer(on_users: Tmux) -> None:
    # There panes do not stay, unless the user has it so.
    result = await on_users.call("create_window", session="mine", command="true")
    assert result.content[0].type == "text"
    assert result.content[0].text.startswith(("Window created", "Pane '%"))


async def test_orphans_go_to_init_until_the_last_new_session_is_made(
    settings: Settings, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that one call starts is not ours because another call has ended."""
    set_to: list[bool] = []
    monkeypatch.setattr(processes, "become_subreaper", lambda *, is_one=True: set_to.append(is_one))
    tmux = short_path / "tmux"  # ends when somebody has written into the pipe of its session
    tmux.write_text(f"#!/bin/sh\nfor name; do :; done\nread _ < {short_path}/$name\n")
    tmux.chmod(0o700)
    settings = replace(settings, tmux=str(tmux), socket=str(short_path / "none"), is_subreaper=True)
    server = UsersServer(settings, Clock())
    made = {name: anyio.Event() for name in ("first", "second")}

    async def make(name: str) -> None:
        await server.run("new-session", name)
        made[name].set()

    async with anyio.create_task_group() as tasks:
        for name in made:
            os.mkfifo(short_path / name)
            tasks.start_soon(make, name)
        for name, expected in (("first", [False]), ("second", [False, True])):
            await anyio.Path(short_path / name).write_text("end\n")
            await made[name].wait()
            assert set_to == expected
