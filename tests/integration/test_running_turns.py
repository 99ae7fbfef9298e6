"""Commands that take their time: timeouts, one command at a time, and cancelled ones."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from clocks import SkippingClock, with_times
from support import PATIENCE_S, SHELLS, Gate, Tools, answers_to, eventually, python, run, until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.running import giving, runs
from tmux_debug_mcp.panes.shells.jobs import Job


@pytest.mark.parametrize("shell", SHELLS)
async def test_command_that_takes_too_long_is_interrupted(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, meta, status = await run(
        tools, "echo begun; sleep 60; echo not reached", pane_id, timeout_s=1
    )

    assert (meta["reason"], meta["exit_code"]) == ("timed_out", 130)
    assert text.startswith("begun\n")
    assert "not reached" not in text
    was = r"(sleeps|foreground \S+ \(pid \d+\))"  # which is not blocked
    assert re.search(f"; timed out after 1 s, {was}; interrupted; exit code 130 after ", status)
    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


@pytest.mark.parametrize("is_in_shell", [True, False])
@pytest.mark.parametrize("clock", [SkippingClock()], ids=[""])
async def test_what_a_command_was_blocked_on_is_told_when_it_is_interrupted(
    tools: Tools, clock: SkippingClock, *, is_in_shell: bool
) -> None:
    shell = await tools.create("bash --norc") if is_in_shell else None
    command = python("import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()")

    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, command, shell, timeout_s=600))
        await eventually(lambda: len(tools.engine.panes) > 0)
        [pane] = tools.engine.panes
        await until(pane.state, lambda state: "futex" in (state.blocked_on or ""))
        clock.skip(600)

    [(_, facts, status)] = answers
    assert facts["reason"] == "timed_out"
    assert re.search(r"; timed out after 600 s, blocked: [^;]*futex[^;]*; interrupted; ", status)


@with_times(interrupt_s=0.2)
async def test_command_that_ignores_interrupts_keeps_the_pane_busy_until_it_ends(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create("bash --norc")
    script = f"trap '' INT; cat {gate}; echo over"
    command = f"sh -c {shlex.quote(script)}"
    text, meta, status = await run(tools, command, pane_id, timeout_s=1)
    assert (meta["reason"], "exit_code" in meta) == ("running", False), text
    assert re.search("; timed out after 1 s, .*; interrupted twice, and still runs; ", status)

    error = await tools.error("run", command="echo other", pane_id=pane_id)
    assert error.startswith(f"Pane '{pane_id}' is busy: sh -c ")
    assert "Use tmux_wait to wait for it" in error
    await gate.open()
    _, facts = await tools.answer("wait", pane_id=pane_id, pattern="over$", since=0)
    assert facts["reason"] == "matched"
    await tools.shows_foreground(pane_id, "bash")
    assert (await run(tools, "echo other", pane_id))[0] == "other\n"


async def test_two_runs_at_once_in_one_pane_are_one_too_many(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create("bash --norc")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, f"cat {gate}", pane_id)
        await tools.shows_foreground(pane_id, "cat")
        assert "is busy: cat /" in await tools.error("run", command="true", pane_id=pane_id)
        await gate.open()


async def test_run_whose_end_is_seen_after_the_next_one_tells_only_of_itself(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "true", pane_id)
    follow = runs._follow
    has_ended, is_next_over = anyio.Event(), anyio.Event()

    async def follow_late(pane: Pane, *rest: Any) -> Any:  # noqa: ANN401
        reason, state, interrupted = await follow(pane, *rest)
        if not has_ended.is_set():
            has_ended.set()
            await is_next_over.wait()
            state = await pane.state()
        return reason, state, interrupted

    monkeypatch.setattr(runs, "_follow", follow_late)
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, "echo own; sleep 1000", pane_id, timeout_s=0.5))
        await has_ended.wait()
        assert (await run(tools, "echo other", pane_id))[0] == "other\n"
        is_next_over.set()

    [(text, facts, _)] = answers
    assert (text, facts["exit_code"]) == ("own\n^C\n", 130)


async def run_interrupted(tools: Tools, pane_id: str, gate: Gate) -> Mapping[str, Any]:
    """Run a command that C-c interrupts, so that the shell gives it up; return the run's facts."""
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, f"cat {gate}", pane_id))
        await tools.shows_foreground(pane_id, "cat")
        await tools.send(pane_id, "C-c", timeout_s=0)
    [(_, facts, _)] = answers
    return facts


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("", ("interrupted", 130)),
        ("echo on", ("given_up", None)),
        ("cat Enter", ("given_up", None)),
        ("(exit 3) Enter", ("given_up", None)),
    ],
)
async def test_exit_code_is_asked_for_only_if_nobody_has_typed_at_the_prompt_since(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch, keys: str, told: object
) -> None:
    pane_id = await tools.create("bash --norc")
    follow = runs._follow

    async def follow_late(pane: Pane, *rest: Any) -> Any:  # noqa: ANN401
        answer = await follow(pane, *rest)
        if keys:
            await tools.send(pane_id, keys)
        return answer

    monkeypatch.setattr(runs, "_follow", follow_late)
    facts = await run_interrupted(tools, pane_id, gate)
    assert (facts["reason"], facts.get("exit_code")) == told
    assert len(tools.engine.panes[0].jobs.commands) == (1 if keys else 2)


async def test_exit_code_is_not_asked_for_between_the_keys_of_another_call(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    follow, is_over = runs._follow, anyio.Event()

    async def type_slowly(pane: Pane, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with pane.keyboard.in_sequence(PATIENCE_S):
            task_status.started()
            await is_over.wait()

    async def follow_late(pane: Pane, *rest: Any) -> Any:  # noqa: ANN401
        answer = await follow(pane, *rest)
        await tasks.start(type_slowly, pane)
        return answer

    monkeypatch.setattr(runs, "_follow", follow_late)
    async with anyio.create_task_group() as tasks:
        facts = await run_interrupted(tools, pane_id, gate)
        is_over.set()
    assert (facts["reason"], facts.get("exit_code")) == ("given_up", None)


def waits_at(gate: Gate) -> bool:
    """Tell whether a `cat` has come to a gate, and leave it there."""
    calls = (processes.arguments(pid) for pid in processes.descendants(os.getpid()))
    return ["cat", shlex.split(str(gate))[0]] in map(list, calls)


async def cancelled_run(tools: Tools, pane_id: str, gate: Gate) -> None:
    """Run what waits at a gate and then prints, and cancel the call meanwhile."""
    arguments = {"pane_id": pane_id, "command": f"cat {gate}; echo it went on"}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tools.client.call_tool, "tmux_run", arguments)
        await tools.shows_foreground(pane_id, "cat")
        tasks.cancel_scope.cancel()


async def test_cancelled_run_goes_on_and_is_waited_for(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create("bash --norc")
    await cancelled_run(tools, pane_id, gate)
    assert "is busy" in await tools.error("run", command="true", pane_id=pane_id)
    await gate.open()
    await tools.blocks("wait", pane_id=pane_id, pattern="^it went on$", since=0)

    assert (await run(tools, "echo other", pane_id))[0] == "other\n"


async def test_end_of_a_cancelled_run_is_told_later(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create("bash --norc")
    await cancelled_run(tools, pane_id, gate)
    job = tools.engine.panes[0].jobs.last
    assert job
    await eventually(lambda: tools.engine.panes[0].jobs.unreported is job)
    await gate.open()
    await eventually(job.is_done)

    assert "; run ended with code 0; " in (await tools.blocks("wait", pane_id=pane_id))[-1]
    assert "run ended" not in (await tools.blocks("wait", pane_id=pane_id))[-1]


@with_times(take_s=600.0)
async def test_cancelled_run_that_its_shell_has_not_begun_goes_on(
    tools: Tools, gate: Gate, tmp_path: Path
) -> None:
    pane_id = await tools.create("bash --norc")
    pane = tools.engine.panes[0]
    # The next command waits at the gate before the shell begins it.
    await tools.send(pane_id, f"trap 'trap - DEBUG; cat {gate}' DEBUG Enter")
    async with anyio.create_task_group() as tasks:
        arguments = {"pane_id": pane_id, "command": f"touch {tmp_path}/ran"}
        tasks.start_soon(tools.client.call_tool, "tmux_run", arguments)
        await tools.shows_foreground(pane_id, "cat")
        tasks.cancel_scope.cancel()
    await eventually(
        lambda: pane.jobs.unreported is not None and not pane.terminal.has_just_printed
    )

    assert "run " not in (await tools.blocks("capture_pane", pane_id=pane_id))[-1]
    await gate.open()
    await eventually((tmp_path / "ran").exists)


@with_times(take_s=600.0)
async def test_interrupt_does_not_wait_for_a_run_that_clears_the_line_of_its_shell(
    tools: Tools, gate: Gate, tmp_path: Path
) -> None:
    pane_id = await tools.create("bash --norc", timeout_s=PATIENCE_S)
    slow = tmp_path / "slow"
    await tools.send(pane_id, f"PS1='$([ -e {slow} ] && (trap \"\" INT; cat {gate}))> ' Enter")
    await tools.blocks("wait", pane_id=pane_id, pattern="^> $")
    slow.touch()
    await tools.send(pane_id, "left over")
    runs: list[str] = []

    async def run_once() -> None:
        runs.append((await run(tools, "echo ran", pane_id))[0])

    async with anyio.create_task_group() as tasks:
        # The run presses C-c, and the shell comes to the gate before its next prompt.
        tasks.start_soon(run_once)
        await eventually(lambda: waits_at(gate))
        await tools.send(pane_id, "C-c")
        assert runs == []
        slow.unlink()
        await gate.open()

    assert runs == ["ran\n"]


async def test_cancelled_run_leaves_no_files_once_another_follows(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create("bash --norc")
    await cancelled_run(tools, pane_id, gate)
    await gate.open()
    await tools.shows_foreground(pane_id, "bash")
    await run(tools, "true", pane_id)

    directory = tools.engine.panes[0].client.directory
    assert sorted(path.name for path in directory.iterdir()) == ["debug-1.mark", "tmux"]


def open_meanwhile(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open the gate once a call waits for the command before it."""
    may_end_soon = giving._may_end_soon

    def look(pane: Pane, job: Job) -> bool:
        gate.opens()
        return may_end_soon(pane, job)

    monkeypatch.setattr(giving, "_may_end_soon", look)


@pytest.mark.parametrize("shell", SHELLS)
async def test_command_about_to_end_is_waited_for(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, f"echo begun; read line < {gate}", pane_id)
        await tools.shows(pane_id, "begun")
        assert "is busy: echo begun" in await tools.error("run", command="true", pane_id=pane_id)
        open_meanwhile(gate, monkeypatch)
        assert (await run(tools, "echo other", pane_id))[0] == "other\n"


async def test_command_that_ends_its_shell_is_waited_for(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, f"echo begun; read line < {gate}; exit 3", pane_id)
        await tools.shows(pane_id, "begun")
        open_meanwhile(gate, monkeypatch)
        assert "exited with code 3" in await tools.error("run", command="true", pane_id=pane_id)


async def test_shell_that_has_given_the_terminal_back_is_waited_for(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell gives it to whoever started the shell, right before it ends."""
    pane_id = await tools.create("bash --norc")
    [pane] = tools.engine.panes
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, gives_its_terminal_back(pane, gate), pane_id)
        await tools.shows(pane_id, "begun")
        await eventually(lambda: has_terminal(pane.leader.pid))
        open_meanwhile(gate, monkeypatch)
        assert "exited with code 3" in await tools.error("run", command="true", pane_id=pane_id)


async def test_shell_that_ends_while_it_is_looked_at_is_waited_for(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    [pane] = tools.engine.panes
    children = processes.children

    def children_after_the_end(pid: int) -> list[int]:
        """Return the children once pane.sh waits for its log, with a process of its own group."""
        gate.opens()
        while pid == pane.leader.pid:
            stats = [processes.read_stat(child) for child in children(pid)]
            if any(stat and stat.pgrp == pid for stat in stats):
                break
        return children(pid)

    may_end_soon = giving._may_end_soon

    def look(pane: Pane, job: Job) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(processes, "children", children_after_the_end)
            return may_end_soon(pane, job)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, gives_its_terminal_back(pane, gate), pane_id)
        await tools.shows(pane_id, "begun")
        await eventually(lambda: has_terminal(pane.leader.pid))
        monkeypatch.setattr(giving, "_may_end_soon", look)
        assert "exited with code 3" in await tools.error("run", command="true", pane_id=pane_id)


def gives_its_terminal_back(pane: Pane, gate: Gate) -> str:
    """Return a command that gives the terminal to pane.sh, and ends its shell after the gate."""
    gives_it_back = python(
        "import os, signal; signal.signal(signal.SIGTTOU, signal.SIG_IGN);"
        f"os.tcsetpgrp(0, {pane.leader.pid})"
    )
    return f"echo begun; {gives_it_back} & read line < {gate}; exit 3"


def has_terminal(pid: int) -> bool:
    stat = processes.read_stat(pid)
    return stat is not None and stat.tpgid == pid


async def test_runs_of_many_panes_do_not_wait_for_each_other(tools: Tools, tmp_path: Path) -> None:
    panes = [await tools.create("bash --norc", cwd=str(tmp_path)) for _ in range(5)]
    async with anyio.create_task_group() as tasks:
        for pane_id in panes:
            command = f"touch {pane_id}; until (($(ls | wc -l) == 5)); do sleep 0.01; done"
            tasks.start_soon(run, tools, command, pane_id)


async def test_output_of_what_runs_in_the_background_does_not_hold_up_a_timeout(
    tools: Tools,
) -> None:
    pane_id = await tools.create("bash --norc")
    command = "(while :; do echo tick; sleep 0.05; done) & sleep 60"
    _, meta, _ = await run(tools, command, pane_id, timeout_s=0.5)

    assert (meta["reason"], meta["exit_code"]) == ("timed_out", 130)


async def test_run_in_its_own_pane_is_interrupted_in_time(tools: Tools) -> None:
    _, meta, status = await run(tools, "sleep 60", timeout_s=1)

    assert (meta["exit_code"], meta["signal"], meta["reason"]) == (130, "SIGINT", "timed_out")
    assert "exited with code 130 (SIGINT) after " in status


@with_times(interrupt_s=0.2)
async def test_run_in_its_own_pane_that_ignores_interrupts_goes_on(tools: Tools) -> None:
    _, meta, _ = await run(tools, "trap '' INT; sleep 60; sleep 60", timeout_s=1)
    assert (meta["reason"], meta["status"]) == ("running", "running")


async def test_keys_for_a_script_that_is_busy_do_not_wait_for_a_prompt(tools: Tools) -> None:
    script = "trap 'echo stopped; exit 3' INT; echo ready; while :; do :; done"
    pane_id = await tools.create(f"bash -c {shlex.quote(script)}", wait_for="ready")
    await tools.send(pane_id, "C-c")

    assert "stopped" in (await tools.blocks("wait", pane_id=pane_id))[0]
