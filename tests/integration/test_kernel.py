"""What the kernel tells of panes: what their programs are blocked on, and where they listen."""

import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clocks import with_times
from support import PATIENCE_S, Gate, Tools, eventually, python, until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.sockets import End
from tmux_debug_mcp.panes.ports import Ports

READS_ITSELF = python("import os; os.read(os.pipe()[0], 1)")
SERVE = """import socket, sys, time
server = socket.create_server(('127.0.0.1', int(sys.argv[1])))
print('port', server.getsockname()[1], flush=True)
time.sleep(1000)
"""
# Serves once it is let to, and tells nobody.
SERVE_LATER = """import socket, sys, time
open(sys.argv[2]).read()
server = socket.create_server(('127.0.0.1', int(sys.argv[1])))
time.sleep(1000)
"""


@pytest.fixture
def port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port on which a process listens that is in no pane."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


async def listed(tools: Tools, pane_id: str) -> Mapping[str, Any]:
    rows = await tools.json("list_panes")
    return next(row for row in rows if row["id"] == pane_id)


async def serve(tools: Tools, port: int, **arguments: Any) -> str:  # noqa: ANN401
    return await tools.create(f"{python(SERVE)} {port}", wait_for="port", **arguments)


@pytest.mark.parametrize("arguments", [None, {}, {"since": 0}, {"pattern": "x"}], ids=str)
async def test_list_and_capture_tell_what_a_program_waits_in_that_nobody_has_seen_at_rest(
    tools: Tools, tmp_path: Path, arguments: Mapping[str, Any] | None
) -> None:
    done = tmp_path / "done"
    program = f"sum(range(10**7)); open({str(done)!r}, 'w'); import time; time.sleep(600)"
    pane_id = await tools.create(python(program), timeout_s=0)
    await eventually(done.exists)
    [pane] = tools.engine.panes

    def is_quiet() -> bool:
        """Tell whether nothing was printed for a while, and everything is asleep."""
        below = processes.descendants(pane.leader.pid)
        are_asleep = all(processes.is_asleep(pid, str(pid)) for pid in below)
        return are_asleep and pane.clock.now() > pane.log.grew_at() + pane.clock.times.quiet_s

    await eventually(is_quiet)
    if arguments is None:
        assert (await listed(tools, pane_id))["blocked_on"] == "sleeps"
        return
    blocks, facts = await tools.answer("capture_pane", pane_id=pane_id, **arguments)

    assert "), sleeps; " in blocks[-1]
    assert facts["blocked_on"] == "sleeps"


async def test_blocked_program_is_told_by_status_list_and_facts(tools: Tools) -> None:
    blocks, facts = await tools.answer("create_pane", command=READS_ITSELF, timeout_s=30)
    said = r"reads a pipe that only it writes \(fd \d+\)"

    assert re.search(rf", foreground \S+ \(pid \d+\), blocked: {said}; at rest;", blocks[-1])
    assert re.fullmatch(said, facts["blocked_on"])
    assert (await listed(tools, facts["pane_id"]))["blocked_on"] == facts["blocked_on"]


async def test_child_that_a_script_waits_for_is_named(tools: Tools) -> None:
    script = "bash --norc -c 'sleep 1000; :'; :"
    _, facts = await tools.answer("create_pane", command=script, timeout_s=30)

    assert re.fullmatch(r"waits for sleep \(pid \d+\), which sleeps", facts["blocked_on"])


def parent(command: str) -> str:
    """Return a command that waits for a child."""
    return f"bash --norc -c {shlex.quote(f'{command}; :')}; :"


ACCEPTS = "import socket; s = socket.socket({}); s.bind({!r}); s.listen(); s.accept()"
# Healthy servers and their parents, and a parent whose child is stuck: what a status says of each.
WAITS = {
    python(ACCEPTS.format("socket.AF_UNIX", "sock")): "accepts on sock",
    parent(python(ACCEPTS.format("", ("127.0.0.1", 0)))): (
        r"listens \S+, waits for \S+ \(pid \d+\), which accepts on \S+"
    ),
    parent(READS_ITSELF): r"blocked: waits for \S+ \(pid \d+\), which reads a pipe .* \(fd \d+\)",
}


@pytest.mark.parametrize("command", WAITS)
async def test_only_what_is_stuck_is_told_to_be_blocked(tools: Tools, command: str) -> None:
    blocks, facts = await tools.answer("create_pane", command=command, timeout_s=30)

    assert re.search(rf", foreground \S+ \(pid \d+\), ({WAITS[command]}); at rest;", blocks[-1])
    assert facts["blocked_on"] in blocks[-1]


# What a script does beside a child in the background, and what is told of it.
BESIDE_A_JOB = {
    "opens a FIFO": ("read line <fifo", "opens the FIFO fifo, which nobody writes", None),
    "reads the terminal": ("read line", None, "input"),
    "waits for another": ("python3 -c 'import time; time.sleep(1000)'; :", "sleeps", None),
}


@pytest.mark.parametrize("does", BESIDE_A_JOB)
async def test_script_beside_its_jobs_is_told_by_what_it_does(
    tools: Tools, tmp_path: Path, does: str
) -> None:
    text, blocked_on, awaits = BESIDE_A_JOB[does]
    os.mkfifo(tmp_path / "fifo")
    _, facts = await tools.answer("create_pane", command=f"sleep 1000 & {text}", timeout_s=30)
    row = await listed(tools, facts["pane_id"])

    assert (facts.get("blocked_on"), facts.get("awaits")) == (blocked_on, awaits)
    assert row["foreground"] == ("python3" if "python3" in text else "bash")


async def test_group_of_its_own_is_told_once_it_was_quiet(tools: Tools) -> None:
    pane_id = await tools.create("timeout 1000 sleep 1000; :")

    facts = await until(partial(tools.state, pane_id), lambda state: "blocked_on" in state)

    assert re.fullmatch(r"waits for sleep \(pid \d+\), which sleeps", facts["blocked_on"])


# It wakes up after half a second, and works for a moment.
TICKS = python(
    "import select, socket\ns = socket.create_server(('127.0.0.1', 0))\n"
    "while not select.select([s], [], [], 0.5)[0]: sum(range(1000))"
)
ACCEPTING = r"which accepts on 127\.0\.0\.1:\d+"
# What is in front of a program, and what the list says of it, whether or not anybody has looked.
IN_FRONT = {
    "nothing": (TICKS, r"accepts on 127\.0\.0\.1:\d+"),
    "tee": (f"{TICKS} | tee copy", rf"reads a pipe \(fd 0\) from \S+ \(pid \d+\), {ACCEPTING}"),
    "timeout": (f"timeout 1000 {TICKS}", rf"waits for \S+ \(pid \d+\), {ACCEPTING}"),
    "timeout and tee": (
        f"timeout 1000 {READS_ITSELF} | tee copy",
        (
            r"reads a pipe \(fd 0\) from timeout \(pid \d+\), which waits for \S+ \(pid \d+\), "
            r"which reads a pipe that only it writes \(fd \d+\)"
        ),
    ),
    "setsid": (f"setsid -w {TICKS}", rf"waits for \S+ \(pid \d+\), {ACCEPTING}"),
    "env and nice": (f"env A=b nice {TICKS}", r"accepts on 127\.0\.0\.1:\d+"),
    "script": (
        f"script -qc {shlex.quote(TICKS)} typescript",
        rf"waits for \S+ \(pid \d+\), {ACCEPTING}",
    ),
    "strace": (f"strace -f -o trace {TICKS}", rf"waits for \S+ \(pid \d+\), {ACCEPTING}"),
    "strace with a filter": (
        f"strace -o '|cat >trace' {READS_ITSELF}",
        r"waits for \S+ \(pid \d+\), which reads a pipe that only it writes \(fd \d+\)",
    ),
    "strace of another": (
        f"{READS_ITSELF} & exec strace -qq -o trace -p $!",
        r"waits for \S+ \(pid \d+\), which reads a pipe that only it writes \(fd \d+\)",
    ),
    "strace and tee": (
        f"strace -f {TICKS} 2>&1 | tee copy",
        (
            rf"reads a pipe \(fd 0\) from strace \(pid \d+\), which waits for \S+ \(pid \d+\), "
            rf"{ACCEPTING}"
        ),
    ),
    "gdb": (
        f"gdb -nx -q --batch -ex run --args {READS_ITSELF}",
        r"reads a pipe that only it writes \(fd \d+\)",
    ),
}


def _may_trace_others() -> bool:
    """Return whether Yama lets us trace programs that are no children of the tracer."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.geteuid() == 0 or not scope.exists() or scope.read_text() == "0\n"


@pytest.mark.parametrize("name", IN_FRONT)
async def test_list_says_what_a_program_waits_in_behind_another_one(
    tools: Tools, name: str
) -> None:
    command, said = IN_FRONT[name]
    for program in set(name.split()) & {"strace", "gdb"}:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if name == "strace of another" and not _may_trace_others():
        pytest.skip("only root may trace what is no child")
    pane_id = await tools.create(command)

    async def row() -> Mapping[str, Any]:
        return await listed(tools, pane_id)

    def is_said(row: Mapping[str, Any]) -> bool:
        return re.fullmatch(said, row.get("blocked_on", "")) is not None

    await until(row, is_said)


@pytest.mark.parametrize("command", ["bash --norc", "cat", "bash --norc -c 'read -s x'"])
async def test_program_that_awaits_the_terminal_is_not_blocked(tools: Tools, command: str) -> None:
    _, facts = await tools.answer("create_pane", command=command, timeout_s=30)

    assert facts["reason"] == "input"
    assert "blocked_on" not in facts


async def test_program_that_runs_is_not_blocked(tools: Tools) -> None:
    command = "timeout 1000 sh -c 'while :; do :; done'; :"
    _, facts = await tools.answer("create_pane", command=command, timeout_s=1)

    assert facts["status"] == "running"
    assert "blocked_on" not in facts


async def test_what_a_pane_listens_on_is_told_while_it_does(tools: Tools, port: int) -> None:
    shell = await tools.create("bash --norc", wait_for="[$#] $")
    assert "listens" not in await tools.state(shell)

    await tools.send(shell, f"{python(SERVE)} {port} & Enter", wait_for=f"port {port}")
    blocks, facts = await tools.answer("wait", pane_id=shell)
    assert facts["listens"] == [f"127.0.0.1:{port}"]
    assert f", awaits keys, listens 127.0.0.1:{port};" in blocks[-1]
    assert (await listed(tools, shell))["listens"] == facts["listens"]

    await tools.send(shell, "kill %1; wait Enter", wait_for="Terminated")
    assert "listens" not in await tools.state(shell)


async def test_status_tells_only_where_a_server_listens_that_accepts(tools: Tools) -> None:
    accepts = python(
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s); s.accept()"
    )
    blocks, facts = await tools.answer("create_pane", command=accepts, timeout_s=30)
    [address] = facts["listens"]

    assert facts["blocked_on"] == f"accepts on {address}"
    assert f", listens {address}; at rest;" in blocks[-1]


async def test_port_of_another_pane_is_not_told(tools: Tools, port: int) -> None:
    before = await tools.create("sleep 1000")
    server = await serve(tools, port)
    after = await tools.create("sleep 1000")

    rows = {row["id"]: row.get("listens") for row in await tools.json("list_panes")}

    assert rows == {before: None, server: [f"127.0.0.1:{port}"], after: None}


async def test_create_returns_once_its_program_listens(tools: Tools, port: int, gate: Gate) -> None:
    command = f"{python(SERVE_LATER)} {port} {gate} & wait"
    pane_id = await tools.create(command)
    assert (await tools.answer("wait", pane_id=pane_id, port=port, timeout_s=0))[1][
        "reason"
    ] == "timed_out"
    await gate.open()

    blocks, facts = await tools.answer("wait", pane_id=pane_id, port=port)

    assert facts["reason"] == "listens"
    assert re.search(rf", listens \S+:{port}; cursor", blocks[-1])
    assert facts["listens"] == [f"127.0.0.1:{port}"]


async def test_wait_of_a_new_pane_for_its_port_ends(tools: Tools, port: int) -> None:
    command = f"{python(SERVE)} {port}"
    _, facts = await tools.answer("create_pane", command=command, port=port)

    assert facts["reason"] == "listens"


# Prints that it is ready only once it is let to, after it has listened, and is at work until then.
READY_LATER = """import os, socket, sys, time
server = socket.create_server(('127.0.0.1', int(sys.argv[1])))
print('listening', flush=True)
while not os.path.exists(sys.argv[2]): pass
print('ready', flush=True)
time.sleep(1000)
"""


@with_times(rest_s=PATIENCE_S)
async def test_line_to_show_that_comes_after_the_port_is_shown(
    tools: Tools, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    ends = Ports.ends

    def ends_and_lets_go(ports: Ports, listening: Sequence[End] | None = None) -> list[End]:
        found = ends(ports, listening)
        if any(end.port == port for end in found):
            go.touch()
        return found

    monkeypatch.setattr(Ports, "ends", ends_and_lets_go)
    command = f"{python(READY_LATER)} {port} {go}"
    blocks, facts = await tools.answer("create_pane", command=command, port=port, show="ready")

    assert facts["reason"] == "listens"
    assert blocks[1].startswith("ready")


async def test_wait_for_a_port_ends_with_its_program(tools: Tools, port: int) -> None:
    _, facts = await tools.answer("create_pane", command="exit 3", port=port)

    assert (facts["reason"], facts["exit_code"]) == ("exited", 3)


async def test_port_that_another_pane_has_is_named(tools: Tools, port: int) -> None:
    server = await serve(tools, port, name="my web")
    blocks, facts = await tools.answer(
        "create_pane", command=f"{python(SERVE)} {port}", timeout_s=30
    )

    assert facts["exit_code"] == 1
    assert f"; port {port}: held by {server} 'my web'; cursor" in blocks[-1]


async def test_port_that_a_process_elsewhere_has_is_named(tools: Tools, taken: int) -> None:
    blocks, facts = await tools.answer("create_pane", command="exit 1", port=taken)

    assert facts["reason"] == "exited"
    assert re.search(rf"; port {taken}: held by \S+ \(pid \d+\); cursor", blocks[-1])


async def test_run_names_who_has_its_port(tools: Tools, taken: int) -> None:
    message = f"Error: listen EADDRINUSE: address already in use :::{taken}"
    blocks, _ = await tools.answer("run", command=f"echo '{message}'; exit 1")

    assert re.search(rf"; port {taken}: held by \S+ \(pid \d+\); cursor", blocks[-1])


async def test_port_that_was_left_by_the_pane_itself_is_named(tools: Tools, port: int) -> None:
    shell = await tools.create("bash --norc", wait_for="[$#] $")
    line = f"{python(SERVE)} {port}"
    await tools.send(shell, f"{line} & Enter", wait_for=f"port {port}")

    blocks = await tools.send(shell, f"{line} Enter", wait_for="already in use")

    assert re.search(rf"; port {port}: held by \S+ \(pid \d+\) of this pane;", blocks[-1])


async def test_port_that_nobody_has_is_not_named(tools: Tools, port: int) -> None:
    message = json.dumps(f"bind: address already in use: 127.0.0.1:{port}")
    blocks, _ = await tools.answer("run", command=f"echo {message}; exit 1")

    assert "held by" not in blocks[-1]
