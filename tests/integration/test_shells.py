"""Shells that are not at their prompt: they start, ask for something, or run another shell."""

import contextlib
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import anyio
import pytest
from clocks import with_times
from support import PATIENCE_S, SHELLS, Gate, Tools, eventually, python, run
from toolsets import open_tabs

from tmux_debug_mcp.panes.looking.activity import Activity
from tmux_debug_mcp.panes.shells.dialects import foreground_shell
from tmux_debug_mcp.settings import Settings

# A start-up file that asks, as zsh's own does for new users: with one key.
ASKS = {
    "bash": ("bash --rcfile {file}", "read -rsn1 -p 'Type one of the keys '"),
    "zsh": ("ZDOTDIR={directory} zsh -d", "read -k 1 '?Type one of the keys '"),
}
RAW = python(
    "import signal, sys, time, tty\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "tty.setraw(0)\nprint('raw')\ntime.sleep(60)"
)


class TestShellWithinAShell:
    @pytest.mark.parametrize(
        ("outer", "inner"), [*zip(SHELLS, [*SHELLS][1:] + [*SHELLS][:1], strict=True)]
    )
    async def test_it_is_used_like_any_other_and_so_is_the_outer_one_after_it(
        self, tools: Tools, outer: str, inner: str
    ) -> None:
        pane_id = await tools.create(SHELLS[outer])
        await run(tools, "cd /", pane_id)
        text, meta, status = await run(tools, SHELLS[inner], pane_id)
        assert (meta["reason"], meta.get("exit_code")) == ("shell_started", None)
        assert not text.rstrip().endswith(("#", "$", "%", ">"))  # its prompt
        assert "it runs a shell, which is at its prompt" in status

        await run(tools, "cd /usr", pane_id)
        assert (await run(tools, "pwd", pane_id))[0] == "/usr\n"
        if inner == "fish":  # whose exit leaves the file that it reads
            await tools.send(pane_id, "exit Enter")
        else:
            assert (await run(tools, "exit", pane_id))[1]["reason"] == "shell_ended"
        await tools.shows_foreground(pane_id, outer)
        assert (await run(tools, "pwd", pane_id))[0] == "/\n"

    async def test_its_own_run_is_over_once_it_is_left_by_hand(self, tools: Tools) -> None:
        pane_id = await tools.create("bash --norc")
        for _ in range(3):
            assert (await run(tools, "bash --norc", pane_id))[1]["reason"] == "shell_started"
            assert (await run(tools, "echo $SHLVL", pane_id))[1]["exit_code"] == 0
        for _ in range(3):
            await tools.blocks("send_keys", pane_id=pane_id, keys="exit Enter")
        await run(tools, "true", pane_id)

        directory = tools.engine.panes[0].client.directory
        assert sorted(path.name for path in directory.iterdir()) == ["debug-1.mark", "tmux"]

    async def test_shell_of_a_run_may_end_while_the_next_one_looks_at_it(
        self, tools: Tools, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pane_id = await tools.create("bash --norc")
        pane = await tools.engine.find(pane_id)
        await run(tools, "true", pane_id)
        outer = foreground_shell(pane.leader.pid)
        await run(tools, "bash --norc", pane_id)
        inner = foreground_shell(pane.leader.pid)
        await run(tools, "bash --norc; while :; do :; done", pane_id)
        innermost = foreground_shell(pane.leader.pid)
        assert inner is not None
        assert innermost is not None
        os.kill(innermost.pid, signal.SIGHUP)
        await eventually(lambda: foreground_shell(pane.leader.pid) == inner)
        look = pane.terminal.observe

        async def end_and_look(since: float) -> Activity:
            with contextlib.suppress(ProcessLookupError):
                os.kill(inner.pid, signal.SIGKILL)
            await eventually(lambda: foreground_shell(pane.leader.pid) == outer)
            return await look(since)

        monkeypatch.setattr(pane.terminal, "observe", end_and_look)
        assert (await run(tools, "echo outer", pane_id))[0] == "outer\n"

    async def test_what_its_own_run_does_after_it_keeps_the_pane(self, tools: Tools) -> None:
        pane_id = await tools.create("bash --norc")
        await run(tools, "bash --norc; read -e line; echo got $line", pane_id)
        assert (await run(tools, "exit", pane_id))[1]["reason"] == "shell_ended"
        error = await tools.error("run", pane_id=pane_id, command="echo second")
        assert "is busy: bash --norc; read -e line" in error
        await tools.send(pane_id, "answer Enter", wait_for="^got answer")

        assert (await run(tools, "echo third", pane_id))[0] == "third\n"

    async def test_start_that_is_interrupted_is_an_answer(
        self, tools: Tools, tmp_path: Path
    ) -> None:
        (tmp_path / "rc").write_text("sleep 30; READY=yes\n")
        pane_id = await tools.create("bash --norc")
        _, meta, status = await run(tools, f"bash --rcfile {tmp_path}/rc", pane_id, timeout_s=0.5)

        assert meta["reason"] == "shell_interrupted"
        assert re.search(r"timed out after 0\.5 s, .*; interrupted; it runs a shell", status)

    @with_times(interrupt_s=0.2)
    async def test_one_that_comes_after_the_timeout_is_used_too(
        self, tools: Tools, gate: Gate
    ) -> None:
        # A program that ignores C-c runs on and then starts a shell, as wrappers may.
        pane_id = await tools.create("bash --norc")
        wrapper = f"sh -c \"trap '' INT; cat {gate}\"; bash --norc"
        _, meta, _ = await run(tools, wrapper, pane_id, timeout_s=1)
        assert meta["reason"] == "running"
        assert "busy" in await tools.error("run", pane_id=pane_id, command="echo hello")
        await gate.open()
        await tools.blocks("wait", pane_id=pane_id, pattern="[#$] $")

        assert (await run(tools, "echo hello", pane_id))[0] == "hello\n"

    async def test_one_in_a_pane_of_its_own_answers_at_once(self, tools: Tools) -> None:
        _, meta, _ = await run(tools, "echo one; exec bash --norc", timeout_s=60)

        assert (meta["reason"], meta["status"]) == ("shell_started", "running")
        assert (await run(tools, "echo two", meta["pane_id"]))[0] == "two\n"

    @pytest.mark.parametrize(
        "command",
        [
            "bash -c 'read -r line; echo got $line'",
            "dash < fifo",
            "cat fifo | dash",
            "bash --norc -c 'read -e line; echo got $line'",
            "(read -e line; echo got $line)",
        ],
    )
    async def test_what_only_reads_is_no_shell_at_its_prompt(
        self, tools: Tools, command: str, tmp_path: Path
    ) -> None:
        pane_id = await tools.create("bash --norc", cwd=str(tmp_path))
        await run(tools, "mkfifo fifo; exec 5<>fifo", pane_id)
        timeout_s, reason = (0.7, "timed_out") if "fifo" in command else (PATIENCE_S, "input")
        _, meta, _ = await run(tools, command, pane_id, timeout_s=timeout_s)

        assert meta["reason"] == reason


class TestShellThatStarts:
    async def test_timeout_is_for_its_start_too(self, tools: Tools, tmp_path: Path) -> None:
        (tmp_path / "rc").write_text("while read -t 0.1 < /dev/tty; do :; done; sleep 60\n")
        pane_id = await tools.create(f"bash --rcfile {tmp_path}/rc")
        error = await tools.error("run", pane_id=pane_id, command="touch ran", timeout_s=0.7)

        assert error.startswith(
            f"Pane '{pane_id}': bash is not at its prompt; it is busy or asking for something."
        )
        assert "Nothing was run." in error

    @with_times(starting_s=0.5)  # as much longer as the start takes
    async def test_it_gets_all_of_a_long_timeout_and_others_type_meanwhile(
        self, tools: Tools, tmp_path: Path
    ) -> None:
        (tmp_path / "rc").write_text(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; PS1='$ '\n")
        pane_id = await tools.create(f"bash --rcfile {tmp_path}/rc")
        outputs = []

        async def run_it() -> None:
            outputs.append((await run(tools, "echo ran", pane_id))[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_it)
            await anyio.sleep(1)  # the time that is tested: longer than a start usually gets
            await tools.send(pane_id, "x")
            assert outputs == []
            (tmp_path / "go").touch()
        assert outputs == ["ran\n"]

    @pytest.mark.parametrize("shell", ASKS)
    async def test_question_is_told_and_never_answered_by_a_command(
        self, tools: Tools, shell: str, tmp_path: Path
    ) -> None:
        command, question = ASKS[shell]
        file = tmp_path / f".{shell}rc"
        file.write_text(f"{question}; PS1='ready> '\n")
        pane_id = await tools.create(
            command.format(file=file, directory=tmp_path), wait_for="Type one"
        )
        error = await tools.error("run", pane_id=pane_id, command="echo hello", timeout_s=20)
        assert f"{shell} is not at its prompt; it is busy or asking for something" in error
        assert (await tools.capture(pane_id)).rstrip() == "Type one of the keys"

        await tools.send(pane_id, "q", wait_for="ready> $")
        assert (await run(tools, "echo hello", pane_id))[0] == "hello\n"


@pytest.mark.parametrize("timeout_s", [0, 0.001, 0.005, 0.02])
async def test_short_timeout_is_never_told_as_a_shell_that_did_not_take_the_command(
    tools: Tools, timeout_s: float
) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "true", pane_id)
    for _ in range(5):
        result = await tools.call("run", pane_id=pane_id, command="echo ok", timeout_s=timeout_s)
        [said] = [block.text for block in result.content if block.type == "text"][-1:]
        assert "did not take" not in said
        await run(tools, "true", pane_id)


class TestProgramThatIgnoresInterrupts:
    @pytest.mark.parametrize("has_pane", [True, False])
    @with_times(interrupt_s=3 * PATIENCE_S)
    async def test_one_that_takes_them_for_keys_is_told_soon(
        self, tools: Tools, *, has_pane: bool
    ) -> None:
        pane_id = await tools.create("bash --norc") if has_pane else None
        text, meta, _ = await run(tools, RAW, pane_id, timeout_s=1)

        assert (text.strip(), meta["reason"]) == ("raw", "running")


async def test_shells_of_tabs_say_the_same_in_the_words_of_tabs(
    settings: Settings, tmp_path: Path
) -> None:
    shell = tmp_path / "bash"
    shell.symlink_to(shutil.which("bash") or "bash is missing")
    (tmp_path / ".bashrc").write_text("read -rsn1 -p 'Type one of the keys '\n")
    env = {**settings.env, "SHELL": str(shell), "HOME": str(tmp_path)}
    async with open_tabs(Settings(env, tmp_path, state_dir=tmp_path / "state")) as tabs:
        tab = (await tabs.json("create_tab"))["window_id"]
        error = await tabs.error("execute_command", window_id=tab, command="echo hello")
        assert error.startswith(
            f"Tab '{tab}': bash is not at its prompt; it is busy or asking for something."
        )

        assert (await tabs.json("stop_process", window_id=tab))["success"]
        nested = await tabs.json(
            "execute_command", window_id=tab, command=f"{shlex.quote(str(shell))} --norc"
        )
        assert (
            nested["note"]
            == "It runs a shell, which is at its prompt; the next command there runs in that shell."
        )
        assert "exit_code" not in nested
        assert (await tabs.json("execute_command", window_id=tab, command="echo in"))[
            "output"
        ] == "in\n"
        stopped = await tabs.json("stop_process", window_id=tab)
        assert stopped == {
            "success": False,
            "note": "Not stopped: nothing runs there: the shell is at its prompt.",
        }
