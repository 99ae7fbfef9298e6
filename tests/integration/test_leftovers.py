"""What is left on a shell's line, or can be read by what runs there, changes no run."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import SHELLS, Gate, Tools, late_log, run

# What terminals answer, and tmux most of it.
QUESTIONS = {
    "version": r"\033[>q",
    "attributes": r"\033[c",
    "secondary attributes": r"\033[>c",
    "cursor": r"\033[6n",
    "size": r"\033[18t",
    "colour": r"\033]11;?\007",
    "mode": r"\033[?25$p",
    "setting": r"\033P$qm\033\\",
}


@pytest.mark.parametrize("name", SHELLS)
async def test_what_the_terminal_answered_is_not_run(
    tools: Tools, tmp_path: Path, name: str
) -> None:
    pane_id = await tools.create(SHELLS[name], cwd=str(tmp_path))
    for question in QUESTIONS.values():
        await run(tools, f"printf '{question}'", pane_id)
        assert (await run(tools, "echo fine", pane_id))[0] == "fine\n", question
    await run(tools, r"printf '\033[c'; head -c 70000 /dev/zero | tr '\0' x; echo", pane_id)
    assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["bash", "dash", "zsh", "fish"])
async def test_what_the_terminal_answered_between_runs_is_not_run(
    tools: Tools, tmp_path: Path, short_path: Path, name: str
) -> None:
    gate = Gate(short_path / "gate")
    before = (
        "" if name == "fish" else r"printf '\033[>q'; "
    )  # fish asks something itself when it starts
    pane_id = await tools.create(f"{before}exec {SHELLS[name]}", cwd=str(tmp_path))
    assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"
    await run(tools, rf"""sh -c "cat {gate}; printf '\033[>qdone\n'" &""", pane_id)
    await gate.open()
    await tools.blocks("wait", pane_id=pane_id, pattern="done$", since=0)
    assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"

    assert list(tmp_path.iterdir()) == []


async def test_what_the_terminal_answered_is_not_run_where_the_query_is_late_in_the_log(
    tools: Tools, tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(short_path / "gate")
    pane_id = await tools.create(rf"cat {gate}; printf '\033[>q'; exec dash", cwd=str(tmp_path))
    with late_log(await tools.engine.find(pane_id), monkeypatch):
        await gate.open()
        for _ in range(2):
            assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SHELLS)
async def test_command_can_not_learn_how_its_end_is_marked(
    tools: Tools, tmp_path: Path, name: str
) -> None:
    pane_id = await tools.create(SHELLS[name])
    [pane] = tools.engine.panes
    directory, shell = pane.client.directory, "busybox sh" if name == "busybox" else name
    for number in (1, 2, 3):
        printed = pane.log.read(0, pane.log.size)
        # BusyBox asks where the cursor is. The answer could be echoed at any time, also
        # after the end.
        (tmp_path / "printed").write_bytes(printed.replace(b"\033[6n", b""))
        files = f"{directory}/1.{number}-*"
        shown = (
            f'cat {tmp_path}/printed; echo; printf "$(cat {files} {directory}/debug-1.mark)"; '
            f"{shell} {files}"
        )
        output, meta, _ = await run(
            tools, f"echo begin; {shown}; echo end; sh -c 'exit 3'", pane_id
        )

        assert output.startswith("begin\n")
        assert output.endswith("end\n")
        assert meta["exit_code"] == 3


@pytest.mark.parametrize("name", SHELLS)
async def test_names_that_were_given_to_other_things_make_no_difference(
    tools: Tools, name: str
) -> None:
    pane_id = await tools.create(SHELLS[name])
    for word in (".", "source", "command", "printf", "eval", ":", "return"):
        if not (name == "fish" and word == "."):
            await tools.send(pane_id, f"alias {word}=false Enter")

    assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"


@pytest.mark.parametrize("name", SHELLS)
async def test_shell_whose_terminal_does_not_echo_takes_commands(tools: Tools, name: str) -> None:
    pane_id = await tools.create(SHELLS[name])
    await run(tools, "stty -echo", pane_id)
    for number in range(3):
        assert (await run(tools, f"echo {number}", pane_id))[0] == f"{number}\n"


async def test_open_files_of_the_shell_are_its_own(tools: Tools, tmp_path: Path) -> None:
    pane_id = await tools.create("bash --norc", cwd=str(tmp_path))
    await run(tools, "exec 97>mine 98>other", pane_id)
    await run(tools, "echo one >&97; echo two >&98", pane_id)

    assert ((tmp_path / "mine").read_text(), (tmp_path / "other").read_text()) == ("one\n", "two\n")


async def test_program_that_is_called_bash_is_not_started_by_us(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    run_process = anyio.run_process

    async def recorded(argv: list[str], **arguments: Any) -> Any:  # noqa: ANN401
        started.append(argv)
        return await run_process(argv, **arguments)

    monkeypatch.setattr(anyio, "run_process", recorded)
    program = tmp_path / "bash"
    shutil.copy(os.path.realpath(sys.executable), program)
    raw = f"{program} -c 'import time, tty; tty.setraw(0); time.sleep(60)'"
    pane_id = await tools.create(raw, env={"PYTHONHOME": sys.base_prefix})
    await tools.shows_foreground(pane_id, "bash")
    await tools.call("run", command="echo $(echo one", pane_id=pane_id, timeout_s=1)
    assert started == []

    real = await tools.create("bash --norc")
    assert (await run(tools, "echo $(echo one", real))[1]["exit_code"] == 2
    assert [argv[0].rpartition("/")[2] for argv in started] == ["bash"]
