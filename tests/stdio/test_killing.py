"""SIGKILL, of whoever and whenever, leaves nothing either."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import PATIENCE_S, POLL_S, ask_until, marked, run_directories, wait_until
from wire import Server

from tmux_debug_mcp.linux import processes

from .test_ending import FLOOD, LOST, fill, left


def check_gone(census: str, pid: int) -> None:
    """Check that soon nothing of a server is left."""
    ask_until(partial(left, census, pid), lambda found: found == [])


def parts(server: Server) -> dict[str, int]:
    """Return the processes that a server with panes is made of."""
    [supervisor] = processes.children(server.pid)
    children = map(processes.read_stat, processes.children(supervisor))
    names = {child.comm: child.pid for child in children if child}
    return {
        "server": server.pid,
        "supervisor": supervisor,
        "client": names["tmux: client"],
        "tmux": names["tmux: server"],
    }


def attach(server: Server) -> None:
    """Have a person watch, in a terminal of another server of ours."""
    [directory] = run_directories(server.pid)
    server.text("create_pane", command=f"tmux -S {directory}/tmux attach -r", name="person")
    list_panes = partial(server.text, "list_panes")
    ask_until(list_panes, lambda panes: '"foreground":"tmux: client"' in panes)


def test_sigkill_of_the_server_leaves_nothing_behind(server: Server, census: str) -> None:
    fill(server, LOST, FLOOD)

    server.process.kill()

    check_gone(census, server.pid)


def test_sigkill_of_a_server_that_a_person_watches_leaves_nothing_behind(
    server: Server, census: str
) -> None:
    fill(server)
    attach(server)

    server.process.kill()

    check_gone(census, server.pid)


def test_sigkill_of_a_server_with_a_hundred_panes_leaves_nothing_behind(
    server: Server, census: str
) -> None:
    numbers = [
        server.send("tools/call", name="tmux_create_pane", arguments={"command": "exec cat"})
        for _ in range(100)
    ]
    assert sorted(server.read()["id"] for _ in numbers) == numbers

    server.process.kill()

    check_gone(census, server.pid)


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "end of input"])
def test_daemon_that_has_emptied_its_environment_does_not_outlive_the_server(
    server: Server, tmp_path: Path, end: str
) -> None:
    """A census finds processes by their environment, so this one says itself who it is."""
    escapes = (
        f"env -i $(command -v sh) -c 'echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid"
    )
    escapes += '; trap "" HUP INT TERM; exec sleep 1001\''
    server.text("create_pane", command=f"(setsid {escapes} >/dev/null 2>&1 &); cat")
    wait_until((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    assert processes.is_alive(pid)

    if end == "end of input":
        server.finish()
    else:
        server.process.send_signal(signal.Signals[end])
        server.process.wait(PATIENCE_S)

    wait_until(lambda: not processes.is_alive(pid))


VICTIMS = ("supervisor", "client", "tmux")


def lose(server: Server, victim: str) -> None:
    """Kill a part of a server, which says then that its panes are lost, and makes others."""
    lost = server.text("list_panes").count('"lost":true')
    os.kill(parts(server)[victim], signal.SIGKILL)
    list_panes = partial(server.text, "list_panes")
    ask_until(list_panes, lambda panes: panes.count('"lost":true') > lost)
    assert "Created pane" in server.text("create_pane", command="cat")
    # What a supervisor owned falls to the server, which ends it.
    wait_until(lambda: len(processes.children(server.pid)) == 1)


@pytest.mark.parametrize("victim", VICTIMS)
def test_sigkill_of_a_part_loses_the_panes_and_the_server_goes_on(
    server: Server, census: str, victim: str
) -> None:
    fill(server)
    lose(server, victim)
    wait_until(lambda: not any("1001" in line for line in marked(census)))
    server.text("create_pane", command="nohup sleep 1001 >/dev/null")

    server.process.kill()

    check_gone(census, server.pid)


def test_server_goes_on_whatever_part_it_loses_and_ends_as_usual(
    server: Server, census: str
) -> None:
    server.text("create_pane", command="cat")
    for victim in VICTIMS:
        lose(server, victim)
    server.finish()

    assert left(census, server.pid) == []


def test_next_start_removes_what_server_and_supervisor_killed_at_once_leave(
    server: Server, launch: Callable[..., Server], census: str
) -> None:
    fill(server)
    [directory] = run_directories(server.pid)
    server.process.send_signal(signal.SIGSTOP)
    os.kill(parts(server)["supervisor"], signal.SIGKILL)
    server.process.kill()
    server.process.wait()
    assert any("1001" in line for line in marked(census))

    later = time.time() + 3600
    os.utime(directory, (later, later))  # young, however long all this takes
    young = launch().start()
    assert young.text("list_panes").startswith("No active panes")
    assert directory.exists(), "it may be one that is being made"
    young.finish()
    for path in left(census, server.pid):
        if os.path.isdir(path):
            os.utime(path, (0, 0))

    def remaining() -> list[str]:
        launch().start().finish()  # which gives up after half a second, for the next start to go on
        return left(census, server.pid)

    ask_until(remaining, lambda found: found == [])


def test_sigkill_of_the_server_leaves_the_users_directory_empty(
    launch: Callable[..., Server], census: str, short_path: Path
) -> None:
    short_path.chmod(0o700)
    server = launch(XDG_RUNTIME_DIR=str(short_path)).start()
    fill(server)
    found = {directory.name.startswith("tmux-debug-mcp-") for directory in short_path.iterdir()}
    assert found == {True, False}  # of the tmux server, and of our own socket
    server.process.kill()

    check_gone(census, server.pid)
    ask_until(lambda: list(short_path.iterdir()), lambda found: found == [])


def test_next_start_continues_a_supervisor_that_was_stopped(
    server: Server, launch: Callable[..., Server], census: str
) -> None:
    fill(server)
    [directory] = run_directories(server.pid)
    os.kill(parts(server)["supervisor"], signal.SIGSTOP)
    server.process.kill()
    server.process.wait()
    os.utime(directory, (0, 0))
    launch().start().finish()

    check_gone(census, server.pid)


def test_end_of_input_ends_everything_though_the_supervisor_was_stopped(
    server: Server, census: str
) -> None:
    fill(server, FLOOD)
    os.kill(parts(server)["supervisor"], signal.SIGSTOP)
    server.finish()

    check_gone(census, server.pid)


def test_start_leaves_the_directories_of_live_servers_alone(
    server: Server, launch: Callable[..., Server]
) -> None:
    server.text("create_pane", command="cat")
    [directory] = run_directories(server.pid)
    os.utime(directory, (0, 0))
    launch().start().finish()

    assert "running" in server.text("list_panes")
    assert directory.exists()


@pytest.mark.parametrize("moment", range(6))
def test_sigkill_at_any_moment_leaves_nothing_behind(
    execute: Callable[..., Server], census: str, moment: int
) -> None:
    """From before the first import to the middle of a flood, with calls at work."""
    server = execute()
    # A thread, so that the moment does not depend on what the server answers.
    delay_s = random.Random(moment).random() * 1.2  # noqa: S311
    killer = threading.Timer(delay_s, server.process.kill)
    killer.start()
    try:
        server.start()
        for number in range(1000):
            server.text(
                "create_pane",
                command=("yes", "nohup sleep 1001 >/dev/null & cat", "setsid sleep 1001 & cat")[
                    number % 3
                ],
            )
            server.send("tools/call", name="tmux_capture_pane", arguments={"pane_id": "debug-1"})
            server.read()
    except (BrokenPipeError, ValueError):
        pass
    killer.join()

    # Before the first pane, nobody is there to remove the socket's directory but the next start.
    ask_until(
        lambda: [*marked(census), *map(str, run_directories(server.pid))],
        lambda found: found == [],
    )


@pytest.mark.parametrize(
    "schedule",
    [
        [("close", 0.0), (signal.SIGTERM, 0.0)],
        [("close", 2.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 0.0)],
        [(signal.SIGTERM, 0.0), (signal.SIGTERM, 0.0), (signal.SIGHUP, 0.0), (signal.SIGINT, 0.0)],
    ],
    ids=["Codex", "SDK", "impatient"],
)
def test_ways_in_which_real_clients_end_their_servers_leave_nothing_behind(
    server: Server, census: str, schedule: list[tuple[str | int, float]]
) -> None:
    """Ways that are not in `test_ending`: there are Claude Code's and Gemini's."""
    fill(server)
    for what, pause_s in schedule:
        if server.process.poll() is None:
            if isinstance(what, int):
                server.process.send_signal(what)
            elif server.process.stdin:
                server.process.stdin.close()
                server.process.stdin = None
            deadline = time.monotonic() + pause_s
            while server.process.poll() is None and time.monotonic() < deadline:
                time.sleep(POLL_S)  # the client's own patience, which is what is tested
    server.process.wait(PATIENCE_S)

    check_gone(census, server.pid)
    assert not Path(f"/proc/{server.pid}/stat").exists()
