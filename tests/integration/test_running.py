"""Running commands: the shell stays what it is, and every end is an answer."""

import os
import signal
from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, SHELLS, Tools, answers_to, eventually, run

from tmux_debug_mcp.panes.keyboard import Keyboard
from tmux_debug_mcp.vt.steps import Keystrokes


@pytest.mark.parametrize("shell", SHELLS)
async def test_state_of_the_shell_stays_and_exit_is_an_answer(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    function = "function f; echo in f; end" if shell == "fish" else "f() { echo in f; }"
    for command in ("cd /dev", "export COLOUR=blue", function, "alias g='echo in g'"):
        assert (await run(tools, command, pane_id))[1]["exit_code"] == 0

    assert (await run(tools, "pwd; echo $COLOUR; f", pane_id))[0] == "/dev\nblue\nin f\n"
    assert (await run(tools, "g", pane_id))[0] == "in g\n"

    text, meta, status = await run(tools, "echo bye; exit 3", pane_id)

    # fish leaves the file and not the shell.
    expected = ("running", "done") if shell == "fish" else ("exited", "exited")
    assert (text, meta["exit_code"], meta["status"], meta["reason"]) == ("bye\n", 3, *expected)
    assert ("exited with code 3" in status) == (shell != "fish")


@pytest.mark.parametrize("shell", SHELLS)
async def test_shell_is_used_the_moment_it_was_created(tools: Tools, shell: str) -> None:
    for _ in range(3):
        pane_id = await tools.create(SHELLS[shell], cwd="/")
        assert (await run(tools, "echo first", pane_id))[0] == "first\n"
        pane_id = await tools.create(SHELLS[shell], cwd="/")
        keys = "echo $((20 + 3)) Enter" if shell != "fish" else "math 20 + 3 Enter"
        await tools.send(pane_id, keys, timeout_s=PATIENCE_S)
        screen = await tools.shows(pane_id, "\n23")
        assert screen.count("20 + 3") == 1, screen


@pytest.mark.parametrize("shell", SHELLS)
async def test_exec_is_an_answer(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    assert (await run(tools, "exec true", pane_id))[1]["reason"] == "exited"
    pane_id = await tools.create(SHELLS[shell])
    _, meta, status = await run(tools, "exec sleep 60", pane_id)

    assert (meta["reason"], meta["status"]) == ("replaced", "running")
    assert "; the shell was replaced; " in status


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "busybox"])
async def test_shell_that_ends_at_an_error_is_an_answer(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, meta, _ = await run(tools, "echo one; set -e; false; echo two", pane_id)

    assert (text, meta["reason"], meta["exit_code"]) == ("one\n", "exited", 1)


@pytest.mark.parametrize("shell", SHELLS)
async def test_end_of_a_nested_shell_is_an_answer(tools: Tools, shell: str) -> None:
    pane_id = await tools.create("bash --norc")
    await tools.send(pane_id, f"{SHELLS[shell]} Enter")
    await tools.shows_foreground(pane_id, shell)
    assert (await run(tools, "echo nested", pane_id))[0] == "nested\n"
    end = "exec true" if shell == "fish" else "echo bye; exit 3"
    _, meta, status = await run(tools, end, pane_id)

    assert (meta["reason"], meta["status"]) == ("shell_ended", "running")
    assert "; the shell ended; " in status
    assert (await run(tools, "echo outside", pane_id))[0] == "outside\n"


@pytest.mark.parametrize("shell", SHELLS)
async def test_command_that_reads_the_terminal_is_given_keys_and_c_c(
    tools: Tools, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])

    text, meta, status = await run(
        tools, "printf 'name? '; head -n 1 | tr a-z A-Z; sh -c 'exit 3'", pane_id
    )
    assert (text, meta["reason"], meta["awaits"]) == ("name? ", "input", "input")
    assert "awaits input; it keeps running; " in status

    _, text, status = await tools.blocks(
        "send_keys", pane_id=pane_id, keys="Bob Enter", timeout_s=PATIENCE_S
    )
    assert text.startswith("Bob\nBOB\n")
    assert "; run ended with code 3; " in status

    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, "echo begun; sleep 60; echo not reached", pane_id))
        await tools.shows(pane_id, "\nbegun")
        await tools.send(pane_id, "C-c")
    [(_, meta, _)] = answers

    assert (meta["exit_code"], meta["status"]) == (130, "running")
    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


async def test_without_a_pane_it_runs_in_one_of_its_own_that_stays(
    tools: Tools, tmp_path: Path
) -> None:
    text, meta, status = await run(tools, "pwd; echo err >&2; exit 4", cwd=str(tmp_path))

    assert (text, meta["exit_code"], meta["reason"]) == (f"{tmp_path}\nerr\n", 4, "done")
    assert status.startswith("[debug-1 exited with code 4 after ")
    assert await tools.capture("debug-1") == f"{tmp_path}\nerr"
    assert "for a new pane" in await tools.error("run", command="pwd", pane_id="debug-1", cwd="/")


async def test_kill_of_the_pane_answers_the_run(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, "echo begun; sleep 60", pane_id))
        await tools.shows(pane_id, "\nbegun")
        await tools.blocks("kill_pane", pane_id=pane_id)
    [(text, meta, _)] = answers

    assert (text.splitlines()[0], meta["reason"], meta["status"]) == ("begun", "exited", "exited")


@pytest.fixture
def killed_when_typed(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pane debug-1 killed once it shows what was typed, before anybody else looks."""
    really_type = Keyboard.type

    async def type_and_lose_the_pane(keyboard: Keyboard, keystrokes: Keystrokes) -> None:
        await really_type(keyboard, keystrokes)
        await tools.shows("debug-1", "\nbegun")
        await tools.blocks("kill_pane", pane_id="debug-1")

    monkeypatch.setattr(Keyboard, "type", type_and_lose_the_pane)


@pytest.mark.usefixtures("killed_when_typed")
async def test_kill_right_after_the_command_was_typed_leaves_its_output(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    text, meta, _ = await run(tools, "echo begun; sleep 60", pane_id)

    assert (text.splitlines()[0], meta["reason"]) == ("begun", "exited")


@pytest.mark.usefixtures("killed_when_typed")
async def test_kill_right_after_keys_were_typed_leaves_what_they_caused(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    answer = await tools.blocks("send_keys", pane_id=pane_id, keys="echo begun; sleep 60\n")

    assert "\nbegun" in answer[1]


@pytest.mark.parametrize(("shell", "code"), [("zsh", -1), ("dash", 1000)])
async def test_exit_codes_that_only_a_shell_has_are_told(
    tools: Tools, shell: str, code: int
) -> None:
    pane_id = await tools.create(SHELLS[shell])

    assert (await run(tools, f"f() {{ return {code}; }}; f", pane_id))[1]["exit_code"] == code


async def test_death_of_tmux_answers_a_run_in_its_own_pane(tools: Tools) -> None:
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, "echo begun; sleep 60"))
        await eventually(lambda: bool(tools.engine.panes))
        await tools.shows("debug-1", "begun")
        os.kill(tools.engine.panes[0].client.server_pid, signal.SIGKILL)
    [(_, meta, _)] = answers

    assert (meta["reason"], meta.get("exit_code")) == ("exited", None)
