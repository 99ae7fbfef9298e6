"""However a server is ended, nothing of it is left when it is gone."""

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import ask_until, marked, python, run_directories
from wire import Server

from tmux_debug_mcp.sockets import servers

MIXTURE = [
    "cat",
    "bash --norc -i",
    "nohup sleep 1001 >/dev/null 2>&1 & cat",
    "setsid sleep 1001 & cat",
    "trap '' HUP INT TERM; sleep 1001; sleep 1001",
    python("import os,signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "exit 3",
]
# These print without end: a call would wait for their rest in vain.
DRIP = "while :; do seq 100; sleep 0.05; done"
# It has left the pane's session, parents and environment.
LOST = "(env -i MCP_DEBUG_TEST=$MCP_DEBUG_TEST $(command -v setsid sleep) 1001 &); echo 100; cat"
# It takes all that the machine has, so only what may have to do with it is tested beside it.
FLOOD = "yes"


def fill(server: Server, *more: str) -> None:
    """Create panes of all kinds, and those of some more commands, which print `y` or `100`."""
    calls: list[dict[str, str]] = [{"command": command} for command in MIXTURE]
    calls += [{"command": command, "wait_for": "^(y|100)$"} for command in (DRIP, *more)]
    numbers = [server.send("tools/call", name="tmux_create_pane", arguments=call) for call in calls]
    assert sorted(server.read()["id"] for _ in numbers) == numbers


def left(census: str, pid: int) -> list[str]:
    """Return the processes and the directories of a server."""
    name = f"{servers.PREFIX}{pid}-"
    sockets = [path for path in servers.directories("") if os.path.basename(path).startswith(name)]
    return [*marked(census), *map(str, run_directories(pid)), *sockets]


def test_end_of_input_ends_everything_at_once_and_calls_at_work_are_answered(
    server: Server, census: str
) -> None:
    fill(server, FLOOD)
    numbers = [server.send("tools/call", name="tmux_list_panes", arguments={}) for _ in range(20)]

    out, error = server.finish()

    assert left(census, server.pid) == []
    assert (error, server.process.returncode) == (b"", 0)
    assert sorted(json.loads(line)["id"] for line in out.splitlines()) == numbers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_everything_at_once(server: Server, census: str, number: int) -> None:
    """SIGTERM is what Gemini sends."""
    fill(server, LOST, *([FLOOD] if number == signal.SIGTERM else []))

    server.process.send_signal(number)
    server.process.wait(60)

    assert left(census, server.pid) == []
    assert server.process.returncode == 0
    assert server.finish() == (b"", b"")


def test_signals_of_a_client_in_a_hurry_leave_nothing_behind(server: Server, census: str) -> None:
    """Claude Code sends these. How long an end takes is a figure of the benchmark."""
    fill(server)

    for number, pause_s in ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.4), (signal.SIGKILL, 0)):
        server.process.send_signal(number)
        time.sleep(pause_s)  # the client's own pauses, which are what is tested
    server.process.wait(60)

    ask_until(lambda: left(census, server.pid), lambda found: found == [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_before_the_first_message_ends_it(
    execute: Callable[..., Server], census: str, number: int
) -> None:
    server = execute()
    with open(f"/proc/{server.pid}/status") as status:
        assert "python" in status.readline()
    os.kill(server.pid, number)
    server.process.wait(60)

    assert left(census, server.pid) == []


def test_signal_ends_a_server_whose_client_has_stopped_reading(server: Server, census: str) -> None:
    server.text("create_pane", command="seq 1 2000; cat")
    for _ in range(200):
        server.send(
            "tools/call", name="tmux_capture_pane", arguments={"pane_id": "debug-1", "lines": 1000}
        )

    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)

    assert left(census, server.pid) == []


def test_end_of_input_ends_a_server_whose_client_has_stopped_reading(
    server: Server, census: str
) -> None:
    server.text("create_pane", command="seq 1 2000; cat")
    for _ in range(200):
        server.send(
            "tools/call", name="tmux_capture_pane", arguments={"pane_id": "debug-1", "lines": 1000}
        )
    assert server.process.stdin
    assert server.process.stderr
    server.process.stdin.close()
    server.process.stdin = None

    server.process.wait(60)

    assert (left(census, server.pid), server.process.returncode, server.process.stderr.read()) == (
        [],
        0,
        b"",
    )


def test_client_that_is_gone_ends_the_server(execute: Callable[..., Server], census: str) -> None:
    server = execute().start()
    fill(server, FLOOD)
    assert server.process.stdin
    assert server.process.stdout
    server.process.stdout.close()
    server.process.stdin.close()
    server.process.stdin = server.process.stdout = None

    server.process.wait(60)

    assert left(census, server.pid) == []


def test_failure_of_the_server_is_told_and_leaves_nothing(
    environment: dict[str, str], tmp_path: Path, census: str
) -> None:
    """Here it can't write its answers: its standard output is a file that may not grow."""
    answers = tmp_path / "answers"
    with answers.open("wb") as out:
        server = Server(environment, stdout=out)
    begin = {"protocolVersion": "2024-11-05", "capabilities": {}}
    server.send("initialize", clientInfo={"name": "test", "version": "1"}, **begin)
    server.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    server.send("tools/call", name="tmux_create_pane", arguments={"command": "sleep 1001"})
    ask_until(answers.read_text, lambda text: "Created pane" in text)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (answers.stat().st_size,) * 2)

    server.send("tools/list")
    server.process.wait(60)
    _, error = server.finish()

    assert server.process.returncode == 1
    assert b"Traceback" in error
    assert b"OSError: [Errno 27] File too large" in error
    assert left(census, server.pid) == []
