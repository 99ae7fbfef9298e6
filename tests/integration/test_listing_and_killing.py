"""The list tells what is; kill ends all that belongs to a pane; ids and names mean one pane."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import orjson
import pytest
from clocks import with_times
from support import PATIENCE_S, Gate, Tools, ask_until, eventually, python, run, run_directories

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes import creation, engine
from tmux_debug_mcp.panes.looking.snapshot import look
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.place import Place


async def rows(tools: Tools) -> list[dict[str, Any]]:
    [text] = await tools.blocks("list_panes")
    parsed: list[dict[str, Any]] = orjson.loads(text)
    return parsed


async def test_list_says_what_each_pane_is(tools: Tools) -> None:
    await tools.create("echo hello; sleep 60", name="server", timeout_s=30)  # until it is at rest
    await tools.exited(await tools.create("exit 3"))
    await tools.exited(await tools.create("kill -SEGV $$"))

    running, exited, killed = await rows(tools)

    assert {**running, "runtime_s": 0, "pid": 1} == {
        "id": "debug-1",
        "name": "server",
        "status": "running",
        "pid": 1,
        "command": "echo hello; sleep 60",
        "cwd": str(tools.engine.settings.cwd),
        "runtime_s": 0,
        "foreground": "sleep",
        "blocked_on": "sleeps",
        "cursor": 7,
    }
    assert processes.read_stat(running["pid"]).comm == "sleep"  # type: ignore[union-attr]
    assert (exited["status"], exited["exit_code"]) == ("exited", 3)
    assert (killed["status"], killed["signal"], "exit_code" in killed) == (
        "exited",
        "SIGSEGV",
        False,
    )


async def test_list_where_there_is_no_pane_starts_no_tmux(tools: Tools) -> None:
    before = processes.children(os.getpid())
    assert (await tools.text("list_panes")).startswith("No active panes")
    assert processes.children(os.getpid()) == before
    assert run_directories(os.getpid()) == []


async def test_list_has_running_panes_first_and_the_directory_of_each(
    tools: Tools, tmp_path: Path
) -> None:
    await tools.exited(await tools.create("true", cwd=str(tmp_path)))
    await tools.create("cat")
    await tools.create("cat", cwd="/")

    listed = [(row["id"], row["cwd"]) for row in await rows(tools)]

    assert listed == [
        ("debug-2", str(tools.engine.settings.cwd)),
        ("debug-3", "/"),
        ("debug-1", str(tmp_path)),
    ]


async def test_list_is_in_the_order_of_creation_and_shows_the_head_of_long_commands(
    tools: Tools,
) -> None:
    for number in range(12):
        await tools.create(f"cat #{number} " + "x" * 300)

    listed = await rows(tools)

    assert [row["id"] for row in listed] == [f"debug-{number}" for number in range(1, 13)]
    assert {len(row["command"]) for row in listed} == {101}


@pytest.mark.parametrize(
    ("command", "keys", "foreground"),
    [
        ("cat", "", "cat"),
        ("bash --norc", "", "bash"),
        ("bash --norc", "sleep 60 Enter", "sleep"),
        ("sleep 59 | cat", "", "cat"),
    ],
)
async def test_foreground_is_the_program_that_has_the_terminal(
    tools: Tools, command: str, keys: str, foreground: str
) -> None:
    pane_id = await tools.create(command)
    if keys:
        await tools.send(pane_id, keys)

    await tools.shows_foreground(pane_id, foreground)


async def test_program_that_begins_while_it_is_looked_at_has_its_own_name(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell becomes it by exec(2) after its name was read and before its wait is."""
    await tools.shows_foreground(await tools.create("cat"), "cat")
    [pane] = tools.engine.panes
    read_stat = processes.read_stat
    looked_at: list[int] = []

    def before_exec(pid: int) -> processes.Stat | None:
        stat = read_stat(pid)
        if stat is None or stat.comm != "cat" or pid in looked_at:
            return stat
        looked_at.append(pid)
        stat.comm = "sh"
        return stat

    monkeypatch.setattr(processes, "read_stat", before_exec)
    assert look(pane.leader.pid, 0).foreground == "cat"
    assert len(looked_at) == 1


async def test_a_name_is_the_running_pane_or_else_the_newest(tools: Tools) -> None:
    await tools.exited(await tools.create("exit 1", name="server"))
    await tools.exited(await tools.create("exit 2", name="server"))
    assert (await tools.state("server"))["pane_id"] == "debug-2"

    await tools.create("cat", name="server")
    assert (await tools.state("server"))["pane_id"] == "debug-3"


async def test_name_of_a_running_pane_is_not_given_again(tools: Tools) -> None:
    await tools.create("cat", name="server")
    answers = []

    async def create() -> None:
        answers.append(await tools.call("create_pane", command="cat", name="other", timeout_s=0))

    error = await tools.error("create_pane", command="cat", name="server")
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(create)

    taken = (
        "Name 'server' belongs to the running pane debug-1. Use that pane, kill it first, or give "
        "another name."
    )
    assert error == taken
    assert [answer.is_error for answer in answers].count(False) == 1
    assert len(await rows(tools)) == 2


async def test_pane_of_a_run_leaves_the_list_at_its_end_and_can_be_read(tools: Tools) -> None:
    await tools.exited(await tools.create("exit 3"))
    await run(tools, "echo one; exit 4")
    _, facts, _ = await run(tools, "read -r word; echo got $word")
    assert [row["id"] for row in await rows(tools)] == ["debug-3", "debug-1"]

    await tools.send("debug-3", "it Enter")
    await tools.exited("debug-3")

    assert [row["id"] for row in await rows(tools)] == ["debug-1"]
    assert await tools.capture("debug-2") == "one"
    assert (await tools.state("debug-2"))["exit_code"] == 4
    assert "got it" in await tools.capture(facts["pane_id"])
    await tools.blocks("kill_pane", pane_id=["debug-1", "debug-2"])
    assert (await tools.text("list_panes")).startswith("No active panes")


async def test_pane_of_a_run_is_kept_until_others_have_ended_after_it(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "KEPT_RUN_PANES", 2)
    await run(tools, "read -r word; echo got $word")
    for number in range(3):
        await run(tools, f"echo {number}")
    await tools.send("debug-1", "it Enter")
    await tools.exited("debug-1")

    await run(tools, "echo last")

    assert [pane.id for pane in tools.engine.panes] == ["debug-1", "debug-5"]


async def test_list_tells_what_is_awaited(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    await tools.create("read -r _; exec sleep 60", timeout_s=PATIENCE_S)
    assert [row.get("awaits") for row in await rows(tools)] == ["keys", "input"]

    await tools.send("debug-2", "go Enter", timeout_s=PATIENCE_S)
    assert [row.get("awaits") for row in await rows(tools)] == ["keys", None]


async def test_no_pane_is_hit_by_what_is_not_its_id_or_name(tools: Tools) -> None:
    await tools.create("cat", name="server")

    for target in ("debug-10", "debug", "serv", "server2", "%1", "", " server", "0", "@1"):
        error = await tools.error("kill_pane", pane_id=target)

        if target:
            assert error == f"Pane '{target}' not found. Use tmux_list_panes to see active panes."
        assert len(await rows(tools)) == 1, target


async def test_vanished_id_does_not_hit_the_pane_whose_id_begins_with_it(tools: Tools) -> None:
    for _ in range(10):
        await tools.create("cat")
    await tools.blocks("kill_pane", pane_id="debug-1")

    assert "not found" in await tools.error("kill_pane", pane_id="debug-1")
    assert [row["id"] for row in await rows(tools)] == [
        f"debug-{number}" for number in range(2, 11)
    ]
    assert await tools.create("cat") == "debug-11"


async def test_kill_says_how_the_program_ended(tools: Tools) -> None:
    await tools.create("cat")
    await tools.create(
        "trap 'exit 7' TERM; trap '' HUP; echo ready; while :; do sleep 0.01; done", name="server"
    )
    await tools.create("exit 3")
    await tools.shows("server", "ready")

    answers = [
        await tools.blocks("kill_pane", pane_id=pane_id)
        for pane_id in ("debug-1", "server", "debug-3")
    ]

    assert answers[0][0].startswith("Killed pane 'debug-1' (killed by SIGHUP after ")
    assert answers[1][0].startswith("Killed pane 'server' (exited with code 7 after ")
    assert answers[2][0].startswith("Killed pane 'debug-3' (exited with code 3 after ")
    assert await tools.blocks("list_panes") == [
        "No active panes. Use tmux_create_pane to start one."
    ]


async def test_kill_of_several_panes_says_how_each_ended(tools: Tools) -> None:
    await tools.create("cat", name="web")
    await tools.exited(await tools.create("exit 3"))
    await tools.create("cat")

    confirmed, statuses = await tools.blocks("kill_pane", pane_id=["web", "debug-2", "debug-1"])

    assert confirmed == "Killed 2 panes"
    assert [line.partition(" after ")[0] for line in statuses.split("\n")] == [
        "[debug-1 web killed by SIGHUP",
        "[debug-2 exited with code 3",
    ]
    assert [row["id"] for row in await rows(tools)] == ["debug-3"]


async def test_nothing_is_ended_if_one_of_several_panes_is_not_there(tools: Tools) -> None:
    await tools.create("cat", name="web")
    await tools.create("cat")

    error = await tools.error("kill_pane", pane_id=["web", "wbe", "debug-2"])

    assert error == "Pane 'wbe' not found. Use tmux_list_panes to see active panes."
    assert [row["status"] for row in await rows(tools)] == ["running", "running"]


@with_times(kill_grace_s=PATIENCE_S, kill_s=PATIENCE_S)
async def test_several_panes_are_ended_at_once(tools: Tools, gate: Gate) -> None:
    """Each program ends only when the other one has been told to end, too."""
    for ends in (f"cat {gate}", f"echo >{gate}"):
        traps = f"trap '{ends}; exit 7' TERM; trap '' HUP"
        await tools.create(f"{traps}; echo ready; while :; do sleep 0.01; done")
    names = ["debug-1", "debug-2"]
    for name in names:
        await tools.shows(name, "ready")

    [_, statuses] = await tools.blocks("kill_pane", pane_id=names)

    assert statuses.count(" exited with code 7 after ") == 2


async def test_error_of_a_kill_says_which_panes_have_ended(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools.create("cat", name="web")
    await tools.create("cat", name="db")
    kill = tools.engine.kill

    async def kill_twice(pane: Pane) -> object:
        if pane.name == "db":  # another call is faster
            await kill(pane)
        return await kill(pane)

    monkeypatch.setattr(tools.engine, "kill", kill_twice)
    web, db = (await tools.error("kill_pane", pane_id=["web", "db"])).split("\n")

    assert web.startswith("Killed pane 'web' (killed by SIGHUP")
    assert db == "Pane 'db' not found. Use tmux_list_panes to see active panes."


STUBBORN = {
    "nohup": "nohup sleep 1001 >/dev/null 2>&1 &",
    "ignores": python(
        "import signal,time\nfor n in (1,2,15): signal.signal(n, 1)\ntime.sleep(1001)"
    )
    + " &",
    "setsid": "setsid sleep 1001 &",
    "daemon": "(setsid setsid sleep 1001 >/dev/null 2>&1 &);",
    "stopped": python(
        "import os,signal,time\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1001)"
    )
    + " &",
    "other environment": "env -i $(command -v setsid) $(command -v sleep) 1001 &",
}


@pytest.mark.parametrize("kind", STUBBORN)
async def test_kill_takes_the_most_stubborn_children_and_answers_when_they_are_gone(
    tools: Tools, kind: str
) -> None:
    other = await tools.create("sleep 1001")
    pane_id = await tools.create(f"{STUBBORN[kind]} echo ready; exec cat")
    await tools.shows(pane_id, "ready")
    supervisor = tools.engine.panes[0].client.supervisor_pid

    def sleeping() -> list[int]:
        return [
            pid
            for pid in processes.descendants(supervisor)
            if "1001" in " ".join(processes.arguments(pid)).split("pane.sh")[0]
        ]

    await eventually(lambda: len(sleeping()) == 2)
    await tools.blocks("kill_pane", pane_id=pane_id)

    assert len(sleeping()) == 1
    assert (await tools.state(other))["status"] == "running"


async def test_kill_of_a_stopped_pane_ends_it(tools: Tools) -> None:
    pane_id = await tools.create("exec sleep 1001")
    os.kill(tools.engine.panes[0].leader.pid, signal.SIGSTOP)

    [text, _] = await tools.blocks("kill_pane", pane_id=pane_id)

    assert "killed by SIGHUP" in text
    assert tools.engine.panes == []


@with_times(kill_grace_s=PATIENCE_S, kill_s=PATIENCE_S)
@pytest.mark.parametrize("follows", ['cd -- "$7"', 'exec "$@"'], ids=["fork", "exec"])
async def test_kill_signals_a_command_that_is_just_beginning_once_it_has_begun(
    tools: Tools, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, follows: str
) -> None:
    """Until then, pane.sh and its fork, which may still have its traps, catch all signals."""
    script = creation._PANE_SH.read_text()
    assert script.count(follows) == 1
    slow = tmp_path / "pane.sh"
    slow.write_text(script.replace(follows, f"trap : HUP TERM; read -r _ <{gate}; {follows}"))
    monkeypatch.setattr(creation, "_PANE_SH", slow)
    await tools.blocks("create_pane", command="exec cat", timeout_s=0)
    end_processes, kills = Place.end_processes, []
    answers = []

    async def noted_end(place: Place, clock: Clock, *arguments: Any) -> None:  # noqa: ANN401
        kills.append(place)
        await end_processes(place, clock, *arguments)

    async def kill() -> None:
        answers.append(await tools.blocks("kill_pane", pane_id="debug-1"))

    monkeypatch.setattr(Place, "end_processes", noted_end)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        await eventually(lambda: bool(kills))
        await gate.open()

    assert answers[0][0].startswith("Killed pane 'debug-1' (killed by SIGHUP after ")


async def test_what_pane_sh_runs_after_its_command_is_not_of_the_pane(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command may end while its processes are listed."""
    await tools.create("exec cat")
    place = tools.engine.panes[0].place
    descendants = processes.descendants

    def ends_while_listed(pid: int) -> list[int]:
        processes.send_signals(descendants(pid), signal.SIGKILL)
        ask_until(lambda: tools.engine.panes[0].has_exited, bool)
        return [pid]  # as if this were its sleep

    monkeypatch.setattr(processes, "descendants", ends_while_listed)

    assert place.members() == []


@with_times(mark_s=0.1, kill_s=0.1)
@pytest.mark.parametrize("told", ["was lost after", "killed by SIGKILL after"])
async def test_kill_that_tmux_has_not_noticed_is_an_end(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    pane_id = await tools.create("exec sleep 1000")
    [pane] = tools.engine.panes
    asked = anyio.Event()

    async def has_not_noticed(_pane: Pane) -> None:
        asked.set()
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(Pane, "_ask_for_ending", has_not_noticed)

    async def find_no_mark() -> None:
        pass

    monkeypatch.setattr(pane.log, "find_mark", find_no_mark)
    waited: list[str] = []

    async def wait() -> None:
        waited.extend(await tools.blocks("wait", pane_id=pane_id, pattern="never"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await eventually(lambda: pane.subscribers > 0)
        if told.startswith("was lost"):
            os.kill(pane.leader.pid, signal.SIGKILL)
            await asked.wait()
        killed = await tools.blocks("kill_pane", pane_id=pane_id)

    assert told in killed[0]
    assert f"[debug-1 {told}" in waited[-1]


async def test_killed_pane_leaves_no_log_and_no_window(tools: Tools) -> None:
    pane_id = await tools.create("cat")
    pane = tools.engine.panes[0]
    await tools.blocks("kill_pane", pane_id=pane_id)

    assert pane.log.is_closed
    [windows] = await pane.client.run(("list-windows", "-F", "#{window_index}"))
    assert windows == (b"0",)


async def test_person_who_attaches_does_not_change_what_panes_show(tools: Tools) -> None:
    pane_id = await tools.create(f"echo {'x' * 190}; cat")
    before = await tools.shows(pane_id, "x")
    client = tools.engine.panes[0].client
    person = await tools.create(f"stty cols 60 rows 10; tmux -S {client.directory}/tmux attach")
    await tools.shows_foreground(person, "tmux: client")

    assert await tools.capture(pane_id) == before
    [[size]] = await client.run(
        (
            "display-message",
            "-p",
            "-t",
            tools.engine.panes[0].target,
            "#{window_width}x#{window_height}",
        )
    )
    assert size == b"200x50"


SIBLING = """
import ctypes, os, platform, time
CLONE_PARENT, SIGCHLD = 0x8000, 17
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
child = ctypes.CDLL(None).syscall(clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
while os.path.exists(f"/proc/{child}"):
    time.sleep(0.001)
print("alone", flush=True)
time.sleep(3600)
"""


async def test_program_whose_sibling_has_ended_still_runs(tools: Tools) -> None:
    """A program can add a child to its parent, which is pane.sh."""
    pane_id = await tools.create(f"exec {python(SIBLING)}")
    await tools.shows(pane_id, "alone")

    [row] = await tools.json("list_panes")

    assert row["status"] == "running"
    assert not tools.engine.panes[0].has_exited
    assert row["pid"] in tools.engine.panes[0].place.members()
