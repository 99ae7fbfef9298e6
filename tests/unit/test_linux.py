"""Processes, as /proc tells of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tmux_debug_mcp
from tmux_debug_mcp.linux import processes


@pytest.fixture
def others() -> frozenset[int]:
    """Return the children that other tests have left to this process: a nursery, a browser."""
    return frozenset(processes.children(os.getpid()))


@pytest.fixture
def sleeping() -> Iterator[int]:
    with subprocess.Popen(["sleep", "1001"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def zombie() -> Iterator[int]:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


def test_child_of_one_that_ends_during_the_look_is_found(
    sleeping: int, zombie: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading of /proc is a stand-in here: the moment can't be had."""
    reads = iter([[zombie], [zombie, sleeping]])
    monkeypatch.setattr(
        processes, "children", lambda pid: next(reads) if pid == os.getpid() else []
    )

    assert processes.descendants(os.getpid()) == [sleeping]


def test_zombies_that_stay_are_no_descendants(others: frozenset[int], zombie: int) -> None:
    assert zombie in processes.children(os.getpid())
    assert processes.descendants(os.getpid(), others) == []


def test_spared_processes_are_no_descendants(others: frozenset[int], sleeping: int) -> None:
    assert processes.descendants(os.getpid(), others) == [sleeping]
    assert processes.descendants(os.getpid(), others | {sleeping}) == []


def test_process_is_the_same_until_it_ends_or_its_id_is_another_process(
    sleeping: int, zombie: int
) -> None:
    stat, ended = processes.read_stat(sleeping), processes.read_stat(zombie)
    assert stat is not None
    assert ended is not None

    found = processes.read_living(sleeping, stat.starttime)
    assert found is not None
    assert found.pid == sleeping
    assert processes.read_living(sleeping, stat.starttime - 1) is None
    assert processes.read_living(zombie, ended.starttime) is None


def test_long_list_is_read_to_its_end() -> None:
    """The kernel ends each read between two lines, so the reads are shorter than was asked for."""
    program = [sys.executable, "-I", "-c", "import ssl; print(); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        mappings = Path(f"/proc/{process.pid}/maps")
        read, whole = processes.read(str(mappings)), mappings.read_bytes()
        process.kill()

    assert len(whole) > 4096
    assert read == whole


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGKILL, signal.SIGRTMIN, signal.SIGRTMIN + 3]
)
def test_exit_code_of_a_signal_tells_the_signal(number: int) -> None:
    script = f"kill -{number} $$"
    killed = subprocess.run(["sh", "-c", f"sh -c '{script}'; exit $?"], check=False)

    assert killed.returncode == processes.signal_exit_code(number)
    assert processes.exit_code_signal(killed.returncode) == number
    assert number in signal.valid_signals()


def test_supervisor_starts_without_what_takes_most_of_the_time() -> None:
    """There is one for each tmux server, and each call of a fresh server waits for it."""
    program = (
        "import sys; sys.path.append(sys.argv[1]); import tmux_debug_mcp.linux.supervise; "
        "print(*{'enum', 're', 'typing'} & set(sys.modules))"
    )
    root = Path(tmux_debug_mcp.__file__).parents[1]
    command = [sys.executable, "-I", "-S", "-c", program, str(root)]
    shown = subprocess.run(command, capture_output=True, check=True, text=True)

    assert shown.stdout.split() == []
