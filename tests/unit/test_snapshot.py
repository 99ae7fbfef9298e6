"""Snapshots of a terminal that changes while they are taken."""

import os
import shlex
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from own_terminals import Reading, on_terminal
from support import Gate, ask_until, python, wait_until

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.waits import HiddenWaits, KernelWait, OutsideReaders, wait_of
from tmux_debug_mcp.panes.looking import snapshot
from tmux_debug_mcp.panes.looking.activity import (
    ActivityTracker,
    Awaits,
    Snapshot,
    WaitKind,
    awaited,
)
from tmux_debug_mcp.panes.looking.snapshot import has_run, look

# A program whose threads end all the time.
SHORT_THREADS = """import threading
while True:
    threads = [threading.Thread(target=int) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
LOOKING_S = 0.5


@pytest.fixture
def reading() -> Iterator[Reading]:
    with on_terminal("(exec cat); :") as reading:
        ask_until(lambda: awaited(look(reading.leader, 0)), lambda awaits: awaits is Awaits.INPUT)
        yield reading


# A thread with a table of files of its own reads a pipe as its standard input.
READING_A_PIPE = """import ctypes, os, threading
def read():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.read(0, 1)
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""


@pytest.fixture
def hides_system_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what threads wait for, as the kernel does with other users' programs.

    Nothing is hidden from root, and another user's program is not at hand.
    """
    really_open = os.open

    def refuse(path: str, flags: int) -> int:
        if path.endswith("/syscall"):
            raise PermissionError(path)
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", refuse)


@contextmanager
def running(*command: str) -> Iterator[int]:
    """Run a program during the block, and yield its pid."""
    with subprocess.Popen(command) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _is_for_terminal(wait: KernelWait | None) -> bool:
    return wait is not None and wait.is_for_terminal


def test_modes_from_before_a_program_set_its_own_are_not_those_it_reads_with(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as `more`, which sets the modes and reads while the snapshot is taken."""

    def late(pid: int, thread: str, number: int) -> KernelWait | None:
        tty.setraw(reading.keyboard)
        # The kernel wakes a reader when the modes change.
        return ask_until(lambda: wait_of(pid, thread, number), _is_for_terminal)

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "wait_of", late)
        changed = look(reading.leader, 0)

    assert awaited(changed) is None
    assert changed.readers == ()
    assert awaited(look(reading.leader, 0)) is Awaits.KEYS


def test_run_of_a_reader_after_it_was_seen_to_wait_is_noticed(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early(pid: int, thread: str, number: int) -> KernelWait | None:
        wait = ask_until(lambda: wait_of(pid, thread, number), _is_for_terminal)
        os.write(reading.keyboard, b"x\n")
        shown = b""
        while shown.count(b"x") < 2:  # the echo and what `cat` prints
            shown += os.read(reading.keyboard, 100)
        return wait

    monkeypatch.setattr(snapshot, "wait_of", early)
    seen = look(reading.leader, 0)
    [(pid, thread)] = seen.readers

    assert seen.reader_ns < processes.cpu_ns(pid, thread)


def test_second_look_reads_little_if_nothing_has_run(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = processes.read
    paths: list[str] = []

    def counted(path: str) -> bytes:
        paths.append(path)
        return read(path)

    monkeypatch.setattr(processes, "read", counted)

    def twice() -> tuple[Snapshot, Snapshot]:
        last = look(reading.leader, 0)
        paths.clear()
        return last, look(reading.leader, 1, last=last)

    last, again = ask_until(twice, lambda looks: not has_run(looks[0]))

    assert again == replace(last, printed_bytes=1)
    assert paths == [f"/proc/{last.pid}/stat"]


def test_second_look_sees_what_has_changed(reading: Reading) -> None:
    last = look(reading.leader, 0)
    os.write(reading.keyboard, b"x\n")
    assert b"x" in os.read(reading.keyboard, 100)
    has_read = ask_until(
        lambda: look(reading.leader, 0, last=last), lambda seen: seen.reader_ns > last.reader_ns
    )
    assert has_run(last)
    assert has_read.pid == last.pid

    os.write(reading.keyboard, b"\x04")
    ended = ask_until(lambda: look(reading.leader, 0, last=has_read), lambda seen: seen.is_over)
    assert look(reading.leader, 0, last=ended).is_over


def test_second_look_sees_a_program_that_was_woken_and_has_not_run(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made up, since on most machines it runs at once."""
    last = ask_until(lambda: look(reading.leader, 0), lambda seen: not has_run(seen))
    read_stat = processes.read_stat

    def woken(pid: int) -> processes.Stat | None:
        stat = read_stat(pid)
        if stat and pid == last.pid:
            stat.state = "R"
        return stat

    monkeypatch.setattr(processes, "read_stat", woken)

    assert look(reading.leader, 0, last=last).is_at_work


def test_second_look_sees_modes_that_another_program_has_set(reading: Reading) -> None:
    last = look(reading.leader, 0)
    tty.setraw(reading.keyboard)

    again = look(reading.leader, 0, last=last)

    assert [seen.modes and seen.modes.is_canonical for seen in (last, again)] == [True, False]


class NotAsked(OutsideReaders):
    def find(self, tty: int) -> list[int]:
        raise AssertionError(tty)


def test_readers_of_other_sessions_are_not_looked_for_before_the_command_has_begun() -> None:
    with on_terminal("read line") as terminal:
        seen = look(terminal.leader, 0, outside=NotAsked())

    assert not seen.is_over
    assert seen.waiting is WaitKind.NONE


def test_process_that_begins_to_wait_while_others_are_searched_is_seen_by_the_second_look(
    gate: Gate,
) -> None:
    with on_terminal(f"(read line <{gate}; exec cat); :") as reading:
        [pid] = ask_until(lambda: processes.children(reading.leader), bool)
        # It has come to the gate, where it sleeps.
        wait_until(lambda: processes.is_asleep(pid, str(pid)))

        class Outside(OutsideReaders):
            def find(self, tty: int) -> list[int]:  # noqa: ARG002  as there
                wait_until(gate.opens)
                ask_until(lambda: awaited(look(reading.leader, 0)), bool)
                return [pid]

        first = look(reading.leader, 0, outside=Outside())
        assert first.waiting is WaitKind.NONE
        assert look(reading.leader, 0, last=first).waiting is WaitKind.ALONE


def test_who_has_the_terminal_is_read_after_the_processor_times(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a process that hands it over in between would have run without a trace."""
    [child] = processes.children(reading.leader)
    group = look(reading.leader, 0).group
    read_stat, run_ns = processes.read_stat, processes.run_ns
    timed: set[int] = set()

    def noted(pid: int) -> int:
        timed.add(pid)
        return run_ns(pid)

    def handed_over(pid: int) -> processes.Stat | None:
        stat = read_stat(pid)
        if stat and pid == reading.leader and child not in timed:
            stat.tpgid = -1
        return stat

    monkeypatch.setattr(processes, "run_ns", noted)
    monkeypatch.setattr(processes, "read_stat", handed_over)

    assert look(reading.leader, 0).group == group


def test_look_that_leaves_processes_out_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot, "_MAX_PROCESSES", 2)
    with on_terminal("sleep 1001 & sleep 1001 & sleep 1001 & (exec cat); :") as terminal:
        wait_until(lambda: len(processes.children(terminal.leader)) == 4)

        assert has_run(look(terminal.leader, 0))


def test_look_that_finds_a_listed_process_gone_is_not_used_again(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may have left another one out of the list."""
    children_of = processes.children_of
    gone = subprocess.Popen(["true"])
    gone.wait()

    def with_one_more(pid: int, thread: str) -> list[int]:
        return [*children_of(pid, thread), *([gone.pid] if pid == reading.leader else [])]

    monkeypatch.setattr(processes, "children_of", with_one_more)

    assert has_run(look(reading.leader, 0))


def test_one_process_with_many_children_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_MAX_PROCESSES", 8)
    looked_at: list[int] = []
    read_stat = processes.read_stat

    def counted(pid: int) -> processes.Stat | None:
        looked_at.append(pid)
        return read_stat(pid)

    monkeypatch.setattr(processes, "read_stat", counted)
    children = "sleep 1001 & " * 40
    with on_terminal(f"set -m; {children} cat; :") as terminal:
        ask_until(lambda: awaited(look(terminal.leader, 0)), lambda awaits: awaits is Awaits.INPUT)
        looked_at.clear()
        look(terminal.leader, 0)
        count = len(looked_at)

    assert count < 20


def test_process_with_many_threads_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = 64
    program = (
        "import threading; held = threading.Event();"
        f" [threading.Thread(target=held.wait, daemon=True).start() for _ in range({threads})];"
        " input()"
    )
    read_files: list[str] = []
    read = processes.read

    def counted(path: str) -> bytes:
        read_files.append(path)
        return read(path)

    with on_terminal(f"(exec {python(program)}); :") as terminal:
        ask_until(lambda: awaited(look(terminal.leader, 0)), lambda awaits: awaits is Awaits.INPUT)
        monkeypatch.setattr(snapshot, "_MAX_THREADS", 8)
        monkeypatch.setattr(processes, "read", counted)
        look(terminal.leader, 0)
        monkeypatch.undo()

    read_threads = {path for path in read_files if "/task/" in path and path.endswith("/children")}
    assert 0 < len(read_threads) <= 8


def test_thread_that_reads_a_pipe_as_its_own_standard_input_awaits_nothing_from_the_terminal() -> (
    None
):
    program = shlex.join([sys.executable, "-c", READING_A_PIPE])
    with on_terminal(f"exec {program}") as terminal:
        pid = terminal.leader

        def reads_0() -> bool:
            others = [thread for thread in processes.threads(pid) if thread != str(pid)]
            calls = [processes.read(f"/proc/{pid}/task/{thread}/syscall") for thread in others]
            return [call.split()[1:2] for call in calls] == [[b"0x0"]]

        wait_until(reads_0)
        process = processes.read_stat(pid)
        assert process is not None
        waits = [wait_of(pid, thread, process.tty) for thread in processes.threads(pid)]

    assert len(waits) == 2
    assert not any(_is_for_terminal(wait) for wait in waits)


def test_ending_threads_do_not_count_as_hidden() -> None:
    """The kernel lets nobody but root look into a thread that ends, so root sees no difference."""
    looks = 0
    with running(sys.executable, "-c", SHORT_THREADS) as pid:
        deadline = time.monotonic() + LOOKING_S
        while time.monotonic() < deadline:
            for thread in processes.threads(pid):
                looks += 1
                assert wait_of(pid, thread, 0) is not None

    assert looks


@pytest.mark.parametrize(
    ("command", "expected"), [("exec sleep 1001", None), ("while :; do :; done", KernelWait())]
)
@pytest.mark.usefixtures("hides_system_calls")
def test_hidden_thread_may_wait_only_while_it_sleeps(
    command: str, expected: KernelWait | None
) -> None:
    with running("sh", "-c", command) as pid:
        ask_until(lambda: wait_of(pid, str(pid), 0), lambda wait: wait == expected)


# Programs that have a terminal without echo, and await it or something else.
SECRETS = {
    "read": "stty -echo; exec cat",
    "read by the child of a shell": "stty -echo; sh -c 'cat; :'",
    "poll": f"stty -echo; exec {python('import select; select.select([0], [], [])')}",
}
TICKER = "import time\nwhile True: time.sleep(0.002)"
NO_SECRETS = {
    "sleep": "stty -echo; exec sleep 1001",
    "wait for a child": "stty -echo; sh -c 'sleep 1001; :'",
    "pipe": "stty -echo; sleep 1001 | cat",
    "ticker": f"stty -echo; exec {python(TICKER)}",
}


@pytest.mark.usefixtures("hides_system_calls")
@pytest.mark.parametrize("script", SECRETS.values(), ids=SECRETS)
def test_hidden_reader_of_a_terminal_without_echo_is_found_and_left_waiting(script: str) -> None:
    waits = HiddenWaits()
    with on_terminal(f"({script}); :") as reading:
        ask_until(
            lambda: look(reading.leader, 0, waits),
            lambda found: awaited(found) is Awaits.HIDDEN_INPUT,
        )

        # On a busy machine, a reader may still be about to go on waiting, or wait for a processor.
        found, again = ask_until(
            lambda: [look(reading.leader, 0, waits) for _ in range(2)],
            lambda looks: (
                looks[0].reader_ns == looks[1].reader_ns
                and awaited(looks[1]) is Awaits.HIDDEN_INPUT
            ),
        )

        assert again.modes == found.modes


@pytest.mark.usefixtures("hides_system_calls")
@pytest.mark.parametrize("script", NO_SECRETS.values(), ids=NO_SECRETS)
def test_hidden_program_that_reads_no_terminal_awaits_nothing(script: str) -> None:
    waits, tracker = HiddenWaits(), ActivityTracker(Times())
    with on_terminal(f"({script}); :") as reading:
        seen = ask_until(lambda: look(reading.leader, 0, waits), _is_hidden_sleeper)
        for _ in range(100):
            activity = tracker.step(seen, time.monotonic())
            assert activity.awaits is None
            time.sleep(Times().confirm_s)
            seen = look(reading.leader, 0, waits)


def _is_hidden_sleeper(seen: Snapshot) -> bool:
    hides_lines = seen.modes is not None and seen.modes.hides_lines
    return hides_lines and seen.waiting is WaitKind.UNKNOWN
