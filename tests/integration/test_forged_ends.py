"""End marks of runs that other programs print: a mark alone ends nothing."""

import os
from functools import partial
from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, SHELLS, Gate, Tools, answers_to, eventually, run

from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.shells.jobs import Job


async def begun(pane: Pane) -> Job:
    """Wait until a command runs in a pane, and return its job."""
    await eventually(lambda: pane.jobs.last is not None and pane.jobs.last.has_begun())
    job = pane.jobs.last
    assert job
    await eventually(lambda: job.has_end_mark() or job.start is not None)
    return job


async def forge_end(pane: Pane, job: Job) -> None:
    """Print the end of a job, as a program does that has read its script before the shell."""
    terminal = os.open(f"/proc/{pane.leader.pid}/fd/3", os.O_WRONLY | os.O_NOCTTY)
    try:
        os.write(terminal, f"\033]7777;{job._end};0\a".encode())
    finally:
        os.close(terminal)
    await eventually(job.has_end_mark)


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
@pytest.mark.parametrize("times", [1, 3])
async def test_run_ends_with_its_command_and_has_its_exit_code(
    tools: Tools, gate: Gate, shell: str, times: int
) -> None:
    pane_id = await tools.create(shell)
    await run(tools, "true", pane_id)
    [pane] = tools.engine.panes
    command = f"echo before; cat {gate}; echo after; sh -c 'exit 9'"
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, command, pane_id, timeout_s=600))
        job = await begun(pane)
        for _ in range(times):
            await forge_end(pane, job)
        await gate.open()

    [(output, facts, _)] = answers
    assert (output, facts["reason"], facts["exit_code"]) == ("before\nafter\n", "done", 9)
    assert (await run(tools, "echo next", pane_id))[0] == "next\n"


# Also the script of the run, but not the file by which bash has its terminal.
_CLOSES_FILES = (
    'for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3 || fd == 255)) || eval "exec $fd>&-"; done'
)


async def test_command_that_closes_its_script_is_followed_to_its_end(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "true", pane_id)
    [pane] = tools.engine.panes
    looks = []  # for an end mark, while the script is closed
    drain = pane.drain

    async def noted_drain() -> bool:
        is_drained = await drain()
        if pane.jobs.last and pane.jobs.last.has_begun() and pane.jobs.last.is_closed():
            looks.append(is_drained)
        return is_drained

    command = f"{_CLOSES_FILES}; cat {gate}; echo after; (exit 7)"
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, command, pane_id, timeout_s=600))
        job = await begun(pane)
        monkeypatch.setattr(pane, "drain", noted_drain)
        await eventually(job.is_closed)
        await eventually(lambda: len(looks) > 1)
        await gate.open()

    [(output, facts, _)] = answers
    assert (output, facts["reason"], facts["exit_code"]) == ("after\n", "done", 7)
    assert (await run(tools, "echo next", pane_id))[0] == "next\n"


async def test_command_that_closes_its_script_is_interrupted_when_its_time_is_over(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create("bash --norc")

    with anyio.fail_after(PATIENCE_S):  # nobody opens the gate
        _, facts, _ = await run(tools, f"{_CLOSES_FILES}; cat {gate}", pane_id, timeout_s=0.2)

    assert facts["reason"] == "timed_out"
    assert (await run(tools, "echo next", pane_id))[0] == "next\n"


async def test_end_of_a_cancelled_run_that_has_closed_its_script_is_told_once_it_has_ended(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create("bash --norc")
    [pane] = tools.engine.panes
    async with anyio.create_task_group() as tasks:
        command = f"{_CLOSES_FILES}; cat {gate}; (exit 7)"
        tasks.start_soon(partial(run, tools, command, pane_id, timeout_s=600))
        job = await begun(pane)
        await eventually(job.is_closed)
        tasks.cancel_scope.cancel()
    await eventually(lambda: pane.jobs.unreported is job)

    assert "; run " not in (await tools.blocks("capture_pane", pane_id=pane_id))[-1]
    await gate.open()
    await eventually(job.is_done)

    assert "; run ended with code 7; " in (await tools.blocks("wait", pane_id=pane_id))[-1]


async def test_command_in_a_shell_that_shows_what_it_reads_can_not_end_its_run(
    tools: Tools, tmp_path: Path
) -> None:
    """With `set -v`, the log and the screen show the nonce of the end mark."""
    pane_id = await tools.create("bash --norc")
    await run(tools, "set -v", pane_id)
    log = tools.engine.panes[0].log.writable
    forges = tmp_path / "forges"
    forges.write_text(
        f"""until [ "$nonce" ]; do  # the log may be late
    nonce=$(grep -aoE '7777;[0-9a-f]{{16}};%d' {log} | tail -1 | cut -d';' -f2)
done
printf '\\033]7777;%s;0\\a' "$nonce" >/dev/tty
echo forged "${{#nonce}}"
exit 9
"""
    )

    output, facts, _ = await run(tools, f"sh {forges}", pane_id)

    assert output.endswith("forged 16\n")
    assert (facts["reason"], facts["exit_code"]) == ("done", 9)


async def test_code_of_a_run_that_went_on_is_not_told_if_it_is_not_known(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create("bash --norc")
    [pane] = tools.engine.panes
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, f"cat {gate}; (exit 9)", pane_id)
        job = await begun(pane)
        await forge_end(pane, job)
        tasks.cancel_scope.cancel()
    await eventually(lambda: pane.jobs.unreported is job)
    assert "outcome" not in (await tools.blocks("capture_pane", pane_id=pane_id))[-1]
    await gate.open()
    await eventually(job.is_done)

    blocks = await tools.blocks("capture_pane", pane_id=pane_id)

    unknown = "the run's outcome is unknown: another program has printed its end, too"
    assert f"; {unknown}; " in blocks[-1]
