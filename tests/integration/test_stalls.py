"""What is late around a pane never makes a command run twice, nor a result claim too much.

A process that is frozen here can't be woken, as if its disk gave no answer.
"""

import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from clocks import SkippingClock, with_times
from support import (
    PATIENCE_S,
    SHELLS,
    Gate,
    Tools,
    answers_to,
    eventually,
    frozen,
    in_process,
    log_writer,
    run,
    until,
)

from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.steps import Keystrokes

# Short enough that a stall outlasts all of them.
QUICK_TIMES = {
    "prompt_s": 0.1,
    "take_s": 0.3,
    "drain_s": 0.1,
    "mark_s": 0.1,
}
QUICK = with_times(**QUICK_TIMES)
STALL_S = 0.5
# A tmux that is frozen is given up after five of these.
QUICK_TMUX = with_times(prompt_s=0.1, take_s=0.3, drain_s=0.1, wake_s=0.1)


class Count:
    """Counts how often a command has run: each run adds a line to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    @property
    def command(self) -> str:
        """The command that is counted."""
        return f"echo x >>{shlex.quote(str(self._path))}"

    @property
    def runs(self) -> int:
        """How often it has run."""
        return len(self._path.read_text()) // 2


@pytest.fixture
def count(tmp_path: Path) -> Count:
    return Count(tmp_path / "count")


def pane_of(tools: Tools, pane_id: str) -> Pane:
    return next(pane for pane in tools.engine.panes if pane.id == pane_id)


def has_ended(pane: Pane) -> bool:
    """Tell whether the command that was run in a pane has ended, by the kernel."""
    return pane.has_exited or bool(pane.jobs.last and pane.jobs.last.is_closed())


@contextmanager
def stalled(what: str, pane: Pane) -> Iterator[None]:
    """Freeze the writer of a pane's log, or tmux."""
    with frozen(log_writer(pane) if what == "writer" else pane.client.server_pid):
        yield


class TestRuns:
    @QUICK
    @pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
    async def test_log_that_is_late_from_the_beginning(
        self, tools: Tools, shell: str, count: Count
    ) -> None:
        pane_id = await tools.create(shell)
        await run(tools, "true", pane_id)
        answers = []

        async def call() -> None:
            answers.append(await run(tools, f"{count.command}; echo out; sh -c 'exit 3'", pane_id))

        async with anyio.create_task_group() as tasks:
            with stalled("writer", pane_of(tools, pane_id)):
                tasks.start_soon(call)
                await eventually(lambda: count.runs > 0)
                await anyio.sleep(STALL_S)
                assert answers == []

        [(output, facts, _)] = answers
        assert (output, facts["reason"], facts["exit_code"]) == ("out\n", "done", 3)
        assert count.runs == 1
        assert (await run(tools, "echo next", pane_id))[0] == "next\n"

    # After the stall, a busy machine needs some of this time to go on.
    @with_times(**QUICK_TIMES | {"prompt_s": 2.0, "take_s": 2.0})
    @pytest.mark.parametrize("when", ["before the call", "while it runs", "when it ends"])
    @pytest.mark.parametrize("what", ["writer", "tmux"])
    async def test_stall_that_ends_is_only_waited_for(
        self, tools: Tools, count: Count, gate: Gate, what: str, when: str
    ) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "true", pane_id)
        pane, answers = pane_of(tools, pane_id), []
        command = f"{count.command}; cat {gate}; echo out; echo ended >{gate}-ended; (exit 3)"
        ended = Path(f"{gate}-ended")

        async def call() -> None:
            answers.append(await run(tools, command, pane_id))

        async with anyio.create_task_group() as tasks:
            if when == "before the call":
                with stalled(what, pane):
                    tasks.start_soon(call)
                    await anyio.sleep(STALL_S)
                await gate.open()
            else:
                tasks.start_soon(call)
                await eventually(lambda: count.runs > 0)
                with stalled(what, pane):
                    if when == "when it ends":
                        await gate.open()
                        await eventually(ended.exists)
                    await anyio.sleep(STALL_S)
                if when != "when it ends":
                    await gate.open()

        [(output, facts, _)] = answers
        assert (output, facts["reason"], facts["exit_code"]) == ("out\n", "done", 3)
        assert count.runs == 1

    @pytest.mark.parametrize("clock", [SkippingClock(**QUICK_TIMES)], ids=[""])
    @pytest.mark.parametrize("is_in_shell", [True, False])
    async def test_end_that_is_not_in_the_log_is_told_later(
        self, tools: Tools, clock: SkippingClock, count: Count, gate: Gate, *, is_in_shell: bool
    ) -> None:
        shell = await tools.create("bash --norc") if is_in_shell else None
        command = f"({count.command}; cat {gate}; exit 3)"
        async with anyio.create_task_group() as tasks:
            answers = answers_to(tasks, run(tools, command, shell, timeout_s=600))
            await eventually(lambda: count.runs > 0 and len(tools.engine.panes) > 0)
            [pane] = tools.engine.panes
            with stalled("writer", pane):
                await gate.open()
                await eventually(lambda: has_ended(pane))
                clock.skip(600)
                await eventually(lambda: len(answers) > 0)
                [(output, facts, status)] = answers
                assert (output, facts["reason"], facts.get("exit_code")) == ("", "late", None)
                told = "timed out after 600 s; the command has ended, but how is not known yet; "
                assert f"; {told}output is late: its log is not being written; " in status
        blocks = await tools.blocks("wait", pane_id=pane.id, pattern="never", timeout_s=0.1)

        assert ("run ended with code 3" if is_in_shell else "exited with code 3") in blocks[-1]
        assert count.runs == 1

    @QUICK
    @pytest.mark.parametrize("shell", ["bash --norc", "dash"])
    async def test_end_of_a_shell_is_told_with_the_end_of_its_pane_however_late(
        self, tools: Tools, gate: Gate, shell: str
    ) -> None:
        pane_id = await tools.create(shell)
        await run(tools, "true", pane_id)
        pane = pane_of(tools, pane_id)

        async with anyio.create_task_group() as tasks:
            answers = answers_to(tasks, run(tools, f"cat {gate}; exit 3", pane_id))
            await tools.shows_foreground(pane_id, "cat")
            with frozen(pane.leader.pid):
                await gate.open()
                await eventually(lambda: has_ended(pane))
                await anyio.sleep(STALL_S)
                assert answers == []

        [(_, facts, status)] = answers
        assert (facts["reason"], facts["exit_code"]) == ("exited", 3)
        assert "exited with code 3" in status

    @QUICK_TMUX
    async def test_tmux_that_freezes_before_the_command_runs_it_never(
        self, tools: Tools, count: Count
    ) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "true", pane_id)
        with stalled("tmux", pane_of(tools, pane_id)):
            error = await tools.error("run", command=count.command, pane_id=pane_id)

        assert "does not answer (no answer in 0.5 s)" in error
        assert (await run(tools, "echo next", pane_id))[0] == "next\n"
        assert count.runs == 0

    @QUICK_TMUX
    async def test_line_that_tmux_types_late_runs_nothing(
        self, tools: Tools, count: Count, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "true", pane_id)
        pane = pane_of(tools, pane_id)
        type_line, freezer = pane.keyboard.type, ExitStack()

        async def type_when_frozen(keystrokes: Keystrokes) -> None:
            freezer.enter_context(stalled("tmux", pane))
            await type_line(keystrokes)

        monkeypatch.setattr(pane.keyboard, "type", type_when_frozen)
        with freezer:
            error = await tools.error("run", command=count.command, pane_id=pane_id)
        monkeypatch.undo()

        assert error.endswith("Nothing was run, and nothing will be. Ask the user to look at it.")
        assert (await run(tools, "echo next", pane_id))[0] == "next\n"
        assert count.runs == 0

    @pytest.mark.parametrize("clock", [SkippingClock(wake_s=0.1)], ids=[""])
    async def test_tmux_that_freezes_while_it_runs_leaves_its_outcome_unknown(
        self, tools: Tools, clock: SkippingClock, count: Count
    ) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "true", pane_id)
        errors = []

        async def call() -> None:
            command = f"{count.command}; sleep 1000"
            arguments = {"command": command, "pane_id": pane_id, "timeout_s": 600}
            errors.append(await tools.error("run", **arguments))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: count.runs > 0)
            with stalled("tmux", pane_of(tools, pane_id)):
                clock.skip(600)
                await eventually(lambda: len(errors) > 0)

        assert errors[0].startswith("The command may have run, and may still run;")
        # tmux then presses the C-c for which it had not answered.
        blocks = await tools.blocks("wait", pane_id=pane_id, timeout_s=PATIENCE_S)
        assert "run was interrupted or given up by the shell" in blocks[-1]
        assert count.runs == 1

    async def test_tmux_that_dies_while_it_runs_is_told_as_the_pane_s_end(
        self, tools: Tools, count: Count
    ) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "true", pane_id)

        async with anyio.create_task_group() as tasks:
            answers = answers_to(tasks, run(tools, f"{count.command}; sleep 1000", pane_id))
            await eventually(lambda: count.runs > 0)
            os.kill(pane_of(tools, pane_id).client.server_pid, signal.SIGKILL)

        assert answers[0][1]["reason"] == "exited"
        assert count.runs == 1

    @pytest.mark.parametrize("clock", [SkippingClock()], ids=[""])
    @pytest.mark.parametrize("is_in_shell", [True, False])
    async def test_run_whose_time_is_over_while_a_person_types_goes_on(
        self, tools: Tools, clock: SkippingClock, count: Count, gate: Gate, *, is_in_shell: bool
    ) -> None:
        shell = await tools.create("bash --norc") if is_in_shell else None
        command = f"({count.command}; cat {gate}; exit 3)"
        async with anyio.create_task_group() as tasks:
            answers = answers_to(tasks, run(tools, command, shell, timeout_s=600))
            await eventually(lambda: count.runs > 0 and len(tools.engine.panes) > 0)
            [pane] = tools.engine.panes
            pane.keyboard.hand_over("ann")
            clock.skip(600)
        _, facts, status = answers[0]
        assert facts["reason"] == "held"
        assert re.search(
            r"; timed out after 600 s, .*; it keeps running; ann has the keyboard; ", status
        )
        await gate.open()
        await eventually(lambda: has_ended(pane))
        blocks = await tools.blocks("capture_pane", pane_id=pane.id)
        assert ("run ended with code 3" if is_in_shell else "exited with code 3") in blocks[-1]
        assert count.runs == 1

    async def test_end_of_a_run_whose_call_was_cancelled_is_told_later(
        self, tools: Tools, count: Count, gate: Gate
    ) -> None:
        pane_id = await tools.create("bash --norc")
        pane = pane_of(tools, pane_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, tools, f"({count.command}; cat {gate}; exit 3)", pane_id)
            await eventually(lambda: count.runs > 0)
            tasks.cancel_scope.cancel()
        await eventually(lambda: pane.jobs.unreported is not None)
        await gate.open()
        await eventually(lambda: bool(pane.jobs.last and pane.jobs.last.is_done()))

        blocks = await tools.blocks("capture_pane", pane_id=pane_id)
        assert "run ended with code 3" in blocks[-1]
        assert count.runs == 1

    async def test_end_of_each_of_two_runs_is_told(self, tools: Tools) -> None:
        pane_id = await tools.create("bash --norc")
        pane = pane_of(tools, pane_id)
        for code in (3, 4):
            _, facts, status = await run(tools, f"read answer; (exit {code})", pane_id)
            assert facts["reason"] == "input"
            assert ("run ended with code 3" in status) == (code == 4)
            # As a person types, so that no result tells the end.
            await pane.client.run(("send-keys", "-t", pane.target, "Enter"))
            await eventually(lambda: bool(pane.jobs.last and pane.jobs.last.is_done()))

        blocks = await tools.blocks("capture_pane", pane_id=pane_id)
        assert "; run ended with code 4; " in blocks[-1]

    async def test_pane_that_is_lost_amid_a_run_is_listed_and_killed(self, tools: Tools) -> None:
        pane_id = await tools.create("bash --norc")
        pane = pane_of(tools, pane_id)
        await run(tools, "read answer", pane_id)
        os.kill(pane.client.server_pid, signal.SIGKILL)
        await eventually(pane.client.gone.is_set)

        [row] = await tools.json("list_panes")
        assert row["lost"]
        assert "Killed" in (await tools.blocks("kill_pane", pane_id=pane_id))[0]


class TestKeys:
    @QUICK_TMUX
    async def test_keys_that_tmux_did_not_take_may_still_be_typed_once(
        self, tools: Tools, tmp_path: Path
    ) -> None:
        pane_id = await tools.create(f"cat >{tmp_path}/typed")
        with stalled("tmux", pane_of(tools, pane_id)):
            error = await tools.error("send_keys", pane_id=pane_id, keys="hello Enter")

        assert error.endswith(
            "(no answer in 0.5 s). What this call was to do may still happen. Ask the user to look "
            "at it."
        )
        await tools.send(pane_id, ["C-d"], timeout_s=PATIENCE_S)
        await tools.exited(pane_id)
        assert (tmp_path / "typed").read_text() in ("", "hello\n")


class TestDraining:
    async def test_log_that_is_drained_has_all_that_tmux_has_kept_for_it(
        self, tools: Tools, gate: Gate
    ) -> None:
        pane_id = await tools.create(f"cat {gate}; head -c 4000000 /dev/zero; exec sleep 1000")
        pane = pane_of(tools, pane_id)
        os.kill(log_writer(pane), signal.SIGSTOP)
        await gate.open()
        await tools.shows_foreground(pane_id, "sleep")  # so tmux has got all
        await until(pane.drain, bool)
        assert pane.log.size == 4_000_000


class TestWaits:
    async def test_look_at_a_pane_that_has_ended_reads_all_lines(self, tools: Tools) -> None:
        pane_id = await tools.create("seq 20000; echo READY")
        await tools.exited(pane_id)
        for timeout_s in (0, 0.01):
            arguments = {"pane_id": pane_id, "pattern": "READY", "timeout_s": timeout_s}
            blocks = await tools.blocks("wait", **arguments, since=0)
            assert "; matched" in blocks[-1]

    @QUICK
    async def test_line_that_is_late_in_the_log_matches(self, tools: Tools) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "true", pane_id)
        pane, answers = pane_of(tools, pane_id), []

        async def call() -> None:
            answers.append(
                await tools.send(pane_id, "echo re''ady Enter", wait_for="^ready$", timeout_s=20)
            )

        async with anyio.create_task_group() as tasks:
            with stalled("writer", pane):
                tasks.start_soon(call)
                await eventually(lambda: pane.keyboard.is_line_used)
                await anyio.sleep(STALL_S)
                assert answers == []
        assert "; matched; " in answers[0][-1]

    @QUICK
    async def test_writer_that_does_not_write_is_told(self, tools: Tools) -> None:
        pane_id = await tools.create("cat")
        with stalled("writer", pane_of(tools, pane_id)):
            await tools.send(pane_id, "hello Enter")
            waited = await tools.blocks("wait", pane_id=pane_id, pattern="hello", timeout_s=0.2)
            assert (
                "; timed out after 0.2 s; output is late: its log is not being written; "
                in waited[-1]
            )
        waited = await tools.blocks("wait", pane_id=pane_id, pattern="hello", timeout_s=PATIENCE_S)
        assert "output is late" not in waited[-1]

    async def test_writer_that_was_stopped_goes_on(self, tools: Tools) -> None:
        pane_id = await tools.create("cat")
        os.kill(log_writer(pane_of(tools, pane_id)), signal.SIGSTOP)
        await tools.send(pane_id, "hello Enter")
        waited = await tools.blocks("wait", pane_id=pane_id, pattern="hello", timeout_s=1)
        assert "; matched; " in waited[-1]


class TestCreating:
    @QUICK_TMUX
    async def test_pane_that_tmux_makes_late_runs_nothing(self, tools: Tools, count: Count) -> None:
        other = await tools.create("cat")
        with stalled("tmux", pane_of(tools, other)):
            error = await tools.error("create_pane", command=count.command)
        assert error.endswith("Nothing was run, and nothing will be. Ask the user to look at it.")

        await tools.create("true", wait_for="never")  # tmux carries out its commands in order
        assert count.runs == 0
        assert [pane.command for pane in tools.engine.panes] == ["cat", "true"]


class TestKilling:
    @QUICK_TMUX
    async def test_pane_that_tmux_keeps_is_killed_by_the_next_call(
        self, tools: Tools, tmp_path: Path
    ) -> None:
        script = f"trap 'echo x >>{tmp_path}/ended' EXIT; echo ready; sleep 1000"
        pane_id = await tools.create(f"bash -c {shlex.quote(script)}", wait_for="ready")
        with stalled("tmux", pane_of(tools, pane_id)):
            answer = await tools.call("kill_pane", pane_id=pane_id)
            assert (tmp_path / "ended").read_text() == "x\n"
        assert answer.is_error == (pane_id in [pane.id for pane in tools.engine.panes])

        if answer.is_error:
            assert "Killed" in (await tools.blocks("kill_pane", pane_id=pane_id))[0]
        assert tools.engine.panes == []


async def test_output_is_logged_though_path_has_no_cat(settings: Settings, tmp_path: Path) -> None:
    bad = tmp_path / "bin"
    bad.mkdir()
    (bad / "tmux").symlink_to(shutil.which("tmux") or "tmux is missing")
    (bad / "cat").write_text("#!/bin/sh\nexit 1\n")
    (bad / "cat").chmod(0o755)
    for path in (str(bad), f"{bad}:{settings.env['PATH']}"):
        env = {**settings.env, "PATH": path}
        async with in_process(replace(settings, env=env)) as tools:
            output, facts, _ = await run(tools, "echo hello")
            assert (output, facts["exit_code"]) == ("hello\n", 0)


async def test_end_without_its_mark_is_told_as_lost_output(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create(f"cat {gate}; echo hello; exit 3")
    pane = pane_of(tools, pane_id)
    # Nobody writes the log from now on, as where no program can be started.
    monkeypatch.setattr(
        pane, "place", replace(pane.place, writes_log=("display-message", "-p", ""))
    )
    os.kill(log_writer(pane), signal.SIGKILL)
    await gate.open()
    await tools.exited(pane_id)

    *_, status = await tools.blocks("capture_pane", pane_id=pane_id)
    assert "exited with code 3" in status
    assert "; some output was lost: there was no room for it; " in status
