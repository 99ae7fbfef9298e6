"""A part of a server is killed or stopped while a tool is at work.

Whatever comes of the call is right or a sentence, the server works afterwards, and nothing is left.
"""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nursery import Nursery
from support import ask_until
from wire import Server

from tmux_debug_mcp.linux import processes

from .test_killing import parts

# What each tool is called with while its pane's program is a shell that has printed `ready`, and
# what is right of a result that is not an error.
CALLS: Mapping[str, tuple[Mapping[str, Any], Callable[[Any], bool]]] = {
    "create_pane": (
        {"command": "echo made; exec cat"},
        lambda result: shown(result).strip() == "made" or told(result, "Created pane .* was lost"),
    ),
    "send_keys": (
        {"keys": "echo s''ent\n", "timeout_s": 3},
        lambda result: "sent" in shown(result) or told(result, "not typed|lost|killed|stopped|is"),
    ),
    "capture_pane": ({}, lambda result: shown(result).startswith(("ready", "bash"))),
    "run": (
        {"command": "echo $((6 * 7))", "timeout_s": 3},
        lambda result: result["_meta"]["reason"] != "done" or shown(result) == "42\n",
    ),
    "wait": (
        {"pattern": "ready", "since": 0, "timeout_s": 3},
        lambda result: result["_meta"]["reason"] != "matched" or "ready" in shown(result),
    ),
    "kill_pane": ({}, lambda result: told(result, "Killed pane|ended|exited|lost")),
    "list_panes": ({}, lambda result: '"id"' in shown(result) or "No active" in shown(result)),
}
VICTIMS = ("supervisor", "client", "tmux", "writer", "leader", "program")
# What, and when after the call has been sent. A call takes some milliseconds.
FAULTS = tuple(itertools.product((signal.SIGKILL, signal.SIGSTOP), (0.0, 0.004)))
STOP = [sys.executable, "-c", "from tmux_debug_mcp.command.main import main; main()", "stop"]
# A part that is slowed down runs for a tenth of the time.
RUNS_S, STOPS_S = 0.001, 0.009


def shown(result: Any) -> str:  # noqa: ANN401
    """Return what a result shows of the program, or its only text."""
    texts = [block["text"] for block in result["content"]]
    return str(texts[-2] if len(texts) > 1 else texts[0])


def told(result: Any, pattern: str) -> bool:  # noqa: ANN401
    """Return whether a result says something."""
    return bool(re.search(pattern, " ".join(block["text"] for block in result["content"])))


def open_shell(server: Server) -> str:
    """Return a new pane whose shell is at its prompt."""
    created = server.call("create_pane", command="echo ready; exec bash --norc")
    pane: str = created["_meta"]["pane_id"]
    server.call("wait", pane_id=pane, timeout_s=60)
    return pane


def pid_of(server: Server, victim: str, pane: str) -> int:
    """Return the process of a part, or of a pane."""
    if victim in ("leader", "program"):
        rows = server.text("list_panes")
        [program] = re.findall(rf'"id":"{pane}".*?"pid":(\d+)', rows)
        stat = processes.read_stat(int(program))
        assert stat
        return stat.ppid if victim == "leader" else int(program)
    found = parts(server)
    if victim == "writer":
        # The newest one writes the newest pane's log, which has no name.
        children = processes.children(found["tmux"])
        return [pid for pid in children if has_unnamed_output(pid)][-1]
    return found[victim]


def has_unnamed_output(pid: int) -> bool:
    """Return whether a process writes to a file without a name. One that has ended does not."""
    with contextlib.suppress(OSError):  # also "permission denied": it was just waited for
        return os.readlink(f"/proc/{pid}/fd/1").endswith(" (deleted)")
    return False


@contextlib.contextmanager
def slowed(pid: int) -> Iterator[None]:
    """Stop a process most of the time."""
    is_over = threading.Event()

    def stop_and_go() -> None:
        with contextlib.suppress(ProcessLookupError):  # the call has ended it
            while not is_over.wait(RUNS_S):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(STOPS_S)
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def target(tool: str, pane: str) -> dict[str, str]:
    """Return the argument that names the pane, for tools that take it."""
    return {} if tool in ("create_pane", "list_panes") else {"pane_id": pane}


@pytest.mark.parametrize("victim", VICTIMS)
def test_fault_amid_a_call(server: Server, victim: str) -> None:
    # Pairs, not the product: each tool and each victim has each fault at each moment.
    for number, (tool, (arguments, _)) in enumerate(CALLS.items(), VICTIMS.index(victim)):
        fault, delay_s = FAULTS[number % len(FAULTS)]
        pane = open_shell(server)
        pid = pid_of(server, victim, pane)

        sent = server.send(
            "tools/call", name=f"tmux_{tool}", arguments={**arguments, **target(tool, pane)}
        )
        time.sleep(delay_s)
        with contextlib.suppress(ProcessLookupError):  # the call has ended it
            os.kill(pid, fault)
        message = server.read()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

        assert message["id"] == sent
        check_right(tool, message["result"])
        check_works(server)
    server.finish()


@pytest.mark.parametrize("victim", ["server", *VICTIMS])
def test_slow_part_makes_no_call_wrong(server: Server, victim: str) -> None:
    for tool, (arguments, _) in CALLS.items():
        pane = open_shell(server)
        with slowed(pid_of(server, victim, pane)):
            result = server.call(tool, **{**arguments, **target(tool, pane)})

        # A shell that is stopped is not at its prompt.
        assert victim == "program" or not result.get("isError"), result
        check_right(tool, result)
        check_works(server)
    server.finish()


def check_right(tool: str, result: Any) -> None:  # noqa: ANN401
    """Check that a call's result is right, or an error with a sentence."""
    _, is_right = CALLS[tool]
    if result.get("isError"):
        assert re.search(r"\w.*\.$", shown(result)), result
    else:
        assert is_right(result), result


def check_works(server: Server) -> None:
    """Check that a command runs, after calls that learn of the loss.

    One may be the run itself, in a pane of a tmux server that is about to end.
    """
    run = partial(server.call, "run", command="echo alive", timeout_s=60)
    lost = r"^\s*\[debug-\d+ was lost"

    result = ask_until(run, lambda result: not (result.get("isError") or told(result, lost)))

    assert shown(result) == "alive\n"


def test_fault_of_a_client_of_a_detached_server_harms_no_other(
    nursery: Nursery, environment: dict[str, str], short_path: Path
) -> None:
    env = environment | {"XDG_RUNTIME_DIR": str(short_path)}
    words = ["--keep", "10m"]

    def connected() -> Server:
        process = nursery.start("tmux-debug-mcp", words, env=env, cwd=short_path, has_input=True)
        return Server(process=process).start()

    other = connected()
    for tool, fault in itertools.product(CALLS, (signal.SIGKILL, signal.SIGSTOP)):
        victim = connected()
        pane = open_shell(victim)
        arguments, _ = CALLS[tool]

        victim.send(
            "tools/call", name=f"tmux_{tool}", arguments={**arguments, **target(tool, pane)}
        )
        victim.process.send_signal(fault)
        check_works(other)
        check_right("list_panes", other.call("list_panes"))

        victim.process.kill()
        victim.finish()
    other.finish()
    subprocess.run(STOP, env=env, cwd=short_path, check=True)


def test_cancelled_calls_leave_nothing(server: Server) -> None:
    pane = open_shell(server)
    arguments = {"pane_id": pane, "pattern": "never", "timeout_s": 1000}

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{server.pid}/fd"))

    before = descriptors()
    for _ in range(1000):
        number = server.send("tools/call", name="tmux_wait", arguments=arguments)
        server.notify("notifications/cancelled", requestId=number)

    assert '"id"' in server.text("list_panes")
    assert shown(server.call("run", pane_id=pane, command="echo alive")) == "alive\n"
    ask_until(descriptors, lambda count: count <= before)
