"""What a program leaves running lives on, is told, and is ended only by a call that says so."""

import re
import signal
from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, Gate, Tools, eventually, python, run, until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes import engine
from tmux_debug_mcp.panes.pane import Pane

# A server, in a line of Python, that prints its port and each line that it gets.
SERVER = python(
    "import socket\n"
    "server = socket.create_server(('127.0.0.1', 0))\n"
    "print('port', server.getsockname()[1], flush=True)\n"
    "while True:\n"
    "    connection, _ = server.accept()\n"
    "    print('got', connection.recv(99).decode(), flush=True)\n"
)


async def started(tools: Tools) -> tuple[str, int]:
    """Run a command that leaves a server running; return the pane's id and the port."""
    _, facts, _ = await run(tools, f"{SERVER} & echo done")
    pane_id = facts["pane_id"]
    text = await tools.shows(pane_id, "port ")
    return pane_id, int(re.findall(r"port (\d+)", text)[0])


async def say(port: int, text: str) -> None:
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(text.encode())


def pane_of(tools: Tools, pane_id: str) -> Pane:
    return next(pane for pane in tools.engine.panes if pane.id == pane_id)


class TestServerInTheBackground:
    async def test_it_outlives_the_command_and_is_told(self, tools: Tools) -> None:
        pane_id, port = await started(tools)
        await say(port, "hello")
        assert "got hello" in await tools.shows(pane_id, "got ")
        # pane.sh would have ended by now, and the terminal with it.
        await anyio.sleep(1)
        await say(port, "again")
        assert "got again" in await tools.shows(pane_id, "again")

        *_, status = await tools.blocks("capture_pane", pane_id=pane_id)
        expected = (
            rf"\[{pane_id} exited with code 0 after \d+\.\d s; still running: python3?\S* "
            rf"\(pid \d+\), listens 127\.0\.0\.1:{port}; cursor \d+\]"
        )
        assert re.fullmatch(expected, status)
        [row] = await tools.json("list_panes")
        assert (row["status"], row["exit_code"], row["listens"]) == (
            "exited",
            0,
            [f"127.0.0.1:{port}"],
        )
        [left] = row["still_running"]
        assert left.startswith("python")

    async def test_what_it_prints_is_read_by_cursor(self, tools: Tools) -> None:
        pane_id, port = await started(tools)
        cursor = (await tools.state(pane_id))["cursor"]
        await say(port, "hello")
        await tools.shows(pane_id, "got hello")

        text, status = await tools.blocks("capture_pane", pane_id=pane_id, since=cursor)
        assert text == "got hello\n"
        assert "cursor" in status

    async def test_lines_that_it_prints_are_waited_for(self, tools: Tools) -> None:
        pane_id, port = await started(tools)
        cursor = (await tools.state(pane_id))["cursor"]
        answers = []

        async def wait() -> None:
            arguments = {"pattern": "^got hello", "since": cursor, "timeout_s": PATIENCE_S}
            answers.append(await tools.blocks("wait", pane_id=pane_id, **arguments))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await eventually(lambda: pane_of(tools, pane_id).subscribers > 0)
            await say(port, "hello")

        assert answers[0][0] == "got hello\n"
        assert "; matched; " in answers[0][1]

    async def test_it_is_listed(self, tools: Tools) -> None:
        pane_id, _ = await started(tools)
        await run(tools, "true")
        assert [row["id"] for row in await tools.json("list_panes")] == [pane_id]

    async def test_it_is_not_retired(self, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "KEPT_RUN_PANES", 2)
        pane_id, port = await started(tools)
        for number in range(5):
            await run(tools, f"echo {number}")
        await say(port, "hello")

        ids = [pane.id for pane in tools.engine.panes]
        assert ids == [pane_id, "debug-5", "debug-6"]

    async def test_its_pane_makes_no_room_for_others(
        self, tools: Tools, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine, "MAX_PANES", 2)
        pane_id, _ = await started(tools)
        await run(tools, "true")
        await tools.create("cat")

        assert [pane.id for pane in tools.engine.panes] == [pane_id, "debug-3"]
        assert "All 2 panes are running" in await tools.error("run", command="true")

    async def test_kill_says_what_it_ended(self, tools: Tools) -> None:
        pane_id, port = await started(tools)
        confirmed, status = await tools.blocks("kill_pane", pane_id=pane_id)

        ended = r"exited with code 0 after \d+\.\d s"
        assert re.fullmatch(rf"Killed pane '{pane_id}' \({ended}\)", confirmed)
        assert re.search(rf"{ended}; ended python3?\S* \(pid \d+\); cursor", status)
        with pytest.raises(OSError, match="All connection attempts failed"):
            await say(port, "anybody there?")

    async def test_pane_is_over_when_it_has_ended(self, tools: Tools) -> None:
        pane_id, _ = await started(tools)
        pane = pane_of(tools, pane_id)
        processes.send_signals(pane.place.members(), signal.SIGKILL)
        state = await until(pane.state, lambda state: not state.left)

        assert state.exit_code == 0
        await eventually(lambda: pane.place.living_leader() is None)
        *_, status = await tools.blocks("capture_pane", pane_id=pane_id)
        assert "still running" not in status


async def test_port_of_a_daemon_is_waited_for(tools: Tools, gate: Gate, tmp_path: Path) -> None:
    script = tmp_path / "daemon.py"
    script.write_text(
        "import os, socket, sys\n"
        "server = socket.socket()\n"
        "server.bind(('127.0.0.1', 0))\n"
        "print(server.getsockname()[1], flush=True)\n"
        "if os.fork():\n"
        "    sys.exit(0)\n"
        "os.setsid()\n"
        f"open({str(gate)!r}).read()\n"
        "server.listen()\n"
        "server.accept()\n"
    )
    pane_id = await tools.create(f"python3 {script}")
    await tools.exited(pane_id)
    port = int(await tools.capture(pane_id))
    answers = []

    async def wait() -> None:
        answers.append(await tools.answer("wait", pane_id=pane_id, port=port, timeout_s=PATIENCE_S))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await gate.open()

    [(_, facts)] = answers
    assert facts["reason"] == "listens"
    assert facts["listens"] == [f"127.0.0.1:{port}"]


async def test_failure_ends_a_wait_at_once(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create(f"cat {gate} & exit 3", wait_for="never")

    async def status() -> str:
        return (await tools.blocks("capture_pane", pane_id=pane_id))[-1]

    # bash is still to become cat, perhaps.
    assert "exited with code 3" in await until(status, lambda text: "still running: cat" in text)
    await gate.open()


async def test_wait_for_a_port_ends_with_all_processes(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create(f"cat {gate} & true")
    await tools.exited(pane_id)
    answers = []

    async def wait() -> None:
        answers.append(await tools.answer("wait", pane_id=pane_id, port=1, timeout_s=PATIENCE_S))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await gate.open()

    [(_, facts)] = answers
    assert (facts["reason"], facts["exit_code"]) == ("exited", 0)
