"""Running commands: what shells, prompts and settings do to it, its time, its limits and its ends."""

import os
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, SHELLS, Tools, in_process, python, run, texts

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes import following_jobs
from tmux_debug_mcp.panes.dialects import Shell
from tmux_debug_mcp.settings import Settings


@pytest.mark.parametrize("shell", SHELLS)
async def test_state_of_the_shell_stays(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    function = "function f; echo in f; end" if shell == "fish" else "f() { echo in f; }"
    for command in ("cd /dev", "export COLOUR=blue", function, "alias g='echo in g'"):
        assert (await run(tools, command, pane_id))[1]["exit_code"] == 0

    assert (await run(tools, "pwd; echo $COLOUR; f", pane_id))[0] == "/dev\nblue\nin f\n"
    assert (await run(tools, "g", pane_id))[0] == "in g\n"


@pytest.mark.parametrize("shell", SHELLS)
async def test_shell_is_used_the_moment_it_was_created(tools: Tools, shell: str) -> None:
    for _ in range(5):
        pane_id = await tools.create(SHELLS[shell], cwd="/")
        assert (await run(tools, "echo first", pane_id))[0] == "first\n"
        pane_id = await tools.create(SHELLS[shell], cwd="/")
        await tools.send(pane_id, "echo $((20 + 3)) Enter" if shell != "fish" else "math 20 + 3 Enter")
        screen = await tools.shows(pane_id, "\n23")
        assert screen.count("20 + 3") == 1, screen


@pytest.mark.parametrize("shell", SHELLS)
async def test_exit_is_an_answer(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, meta, status = await run(tools, "echo bye; exit 3", pane_id)

    # fish leaves the file and not the shell.
    expected = ("running", "done") if shell == "fish" else ("exited", "exited")
    assert (text, meta["exit_code"], meta["status"], meta["reason"]) == ("bye\n", 3, *expected)
    assert ("exited with code 3" in status) == (shell != "fish")


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
async def test_command_that_takes_too_long_is_interrupted(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, meta, status = await run(tools, "echo begun; sleep 60; echo not reached", pane_id, timeout_s=0.3)

    assert (meta["reason"], meta["exit_code"]) == ("timed_out", 130)
    assert text.startswith("begun\n")
    assert "not reached" not in text
    assert "; timed out after 0.3 s and interrupted; exit code 130 after 0." in status
    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


async def test_command_that_ignores_interrupts_keeps_the_pane_busy_until_it_ends(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    command = "trap '' INT; sleep 5; echo over"
    text, meta, status = await run(tools, f"sh -c {command!r}".replace("'", '"', 0), pane_id, timeout_s=0.1)
    assert (meta["reason"], "exit_code" in meta) == ("running", False), text
    assert "; timed out after 0.1 s, interrupted twice, and still runs; " in status

    error = await tools.error("run", command="echo other", pane_id=pane_id)
    assert error.startswith(f"Pane '{pane_id}' is busy: sh -c ")
    assert "Use tmux_wait to wait for it" in error
    result = await tools.call("wait", pane_id=pane_id, pattern="over$")
    assert result.meta is not None
    assert result.meta["reason"] == "matched"
    await tools.shows_foreground(pane_id, "bash")
    assert (await run(tools, "echo other", pane_id))[0] == "other\n"


async def test_two_runs_at_once_in_one_pane_are_one_too_many(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, "sleep 0.5", pane_id)
        await tools.shows_foreground(pane_id, "sleep")
        assert "is busy: sleep 0.5, 0 s." in await tools.error("run", command="true", pane_id=pane_id)


async def test_cancelled_run_goes_on_and_is_waited_for(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    with anyio.move_on_after(0.3):
        await tools.client.call_tool("tmux_run", {"pane_id": pane_id, "command": "sleep 0.6; echo it went on"})
    assert "is busy" in await tools.error("run", command="true", pane_id=pane_id)
    await tools.call("wait", pane_id=pane_id, pattern="^it went on$")

    assert (await run(tools, "echo other", pane_id))[0] == "other\n"


@pytest.mark.parametrize("shell", SHELLS)
async def test_command_about_to_end_is_waited_for(tools: Tools, shell: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    pane_id = await tools.create(SHELLS[shell])

    async def feed() -> None:
        await anyio.sleep(0.1)
        fifo.write_text("over\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, f"echo begun; read line < {fifo}", pane_id)
        await tools.shows(pane_id, "begun")
        assert "is busy: echo begun" in await tools.error("run", command="true", pane_id=pane_id)
        tasks.start_soon(feed)
        assert (await run(tools, "echo other", pane_id))[0] == "other\n"


async def test_command_that_ends_its_shell_is_waited_for(tools: Tools, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    pane_id = await tools.create("bash --norc")

    async def feed() -> None:
        await anyio.sleep(0.1)
        fifo.write_text("3\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tools, f"echo begun; read code < {fifo}; exit $code", pane_id)
        await tools.shows(pane_id, "begun")
        tasks.start_soon(feed)
        assert "exited with code 3" in await tools.error("run", command="true", pane_id=pane_id)


@pytest.mark.parametrize("shell", SHELLS)
async def test_interrupt_from_the_keyboard_ends_the_run_with_130(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])

    async def interrupt() -> None:
        await tools.shows(pane_id, "\nbegun")
        await tools.send(pane_id, "C-c")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(interrupt)
        _, meta, _ = await run(tools, "echo begun; sleep 60; echo not reached", pane_id)

    assert (meta["exit_code"], meta["status"]) == (130, "running")
    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "busybox", "fish"])
async def test_command_that_reads_the_terminal_is_given_keys(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])

    text, meta, status = await run(tools, "printf 'name? '; head -n 1 | tr a-z A-Z; sh -c 'exit 3'", pane_id)
    assert (text, meta["reason"], meta["awaits"]) == ("name? ", "input", "input")
    assert "awaits input; it runs on; " in status

    _, text, status = await tools.blocks("send_keys", pane_id=pane_id, keys="Bob Enter", timeout_s=PATIENCE_S)
    assert text.startswith("Bob\nBOB\n")
    assert "; run ended with code 3; " in status
    assert (await run(tools, "echo more", pane_id))[0] == "more\n"


async def test_line_editor_within_a_command_is_not_taken_for_the_prompt(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")

    _, meta, _ = await run(tools, "read -e -p 'name? ' x; echo got $x", pane_id)
    assert (meta["reason"], meta["awaits"]) == ("input", "keys")

    _, text, status = await tools.blocks("send_keys", pane_id=pane_id, keys="Bob Enter", wait_for="^got")
    assert "got Bob\n" in text
    assert "run ended with code 0" in status


PROMPTS = {
    "hook": (SHELLS["bash"], "PROMPT_COMMAND='echo hooked; sleep 0.05'"),
    "colour": (SHELLS["bash"], r"PS1='\[\e[31m\]\u\[\e[0m\]\$ '"),
    "lines": (SHELLS["bash"], r"PS1='one\ntwo\nthree> '"),
    "title": (SHELLS["bash"], r"PS1='\[\e]0;\w\a\]$ '"),
    "vi": (SHELLS["bash"], "set -o vi"),
    "no job control": (SHELLS["bash"], "set +m"),
    "strict": (SHELLS["bash"], "set -u; set -o pipefail"),
    "ignored history": (SHELLS["bash"], "HISTCONTROL=ignoreboth"),
    "no clobber": (SHELLS["bash"], "set -C"),
    "right": (SHELLS["zsh"], "RPROMPT='%D{%H:%M:%S} right'; PROMPT='%F{red}%n%f '"),
    "zsh lines": (SHELLS["zsh"], "PROMPT=$'one\\ntwo %# '; setopt transient_rprompt"),
    "zsh hook": (SHELLS["zsh"], "precmd() { echo hooked }; preexec() { echo before }"),
    "fish right": (SHELLS["fish"], "function fish_right_prompt; date; end; function fish_prompt; echo; echo '> '; end"),
}


@pytest.mark.parametrize("name", PROMPTS)
async def test_prompts_and_settings_of_all_kinds_make_no_difference(tools: Tools, name: str) -> None:
    shell, setting = PROMPTS[name]
    pane_id = await tools.create(shell)
    await run(tools, setting, pane_id)
    for number in range(5):
        text, meta, _ = await run(tools, f"echo {number}; sh -c 'exit {number}'", pane_id)
        assert (text, meta["exit_code"]) == (f"{number}\n", number)


@pytest.mark.parametrize("shell", SHELLS)
async def test_window_that_is_narrower_than_the_line_makes_no_difference(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    pane = tools.engine.panes[0]
    await pane.client.run(("resize-window", "-t", pane.target, "-x", "20", "-y", "10"))

    assert (await run(tools, f"echo {'x' * 100}", pane_id))[0] == "x" * 100 + "\n"


@pytest.mark.parametrize("keys", ["half a line", "echo 'open", "C-r", "Escape", "if true; then Enter", "# comment"])
@pytest.mark.parametrize("shell", SHELLS)
async def test_what_was_left_on_the_line_is_not_run(tools: Tools, shell: str, keys: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    await tools.send(pane_id, keys)

    assert (await run(tools, "echo clean", pane_id))[0] == "clean\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("sleep 60", "Pane 'debug-1' runs sleep, not a shell at its prompt. Use tmux_send_keys there"),
        ("cat", "Pane 'debug-1' runs cat, not a shell"),
        ("vi", "Pane 'debug-1' runs "),
        (python("input()"), "Pane 'debug-1' runs python"),
        ("bash -c 'read x; echo $x'", "Pane 'debug-1' runs bash, not a shell at its prompt."),
        ("exit 3", "Pane 'debug-1' exited with code 3"),
    ],
)  # fmt: skip
async def test_pane_without_a_shell_at_its_prompt_is_an_error(tools: Tools, command: str, error: str) -> None:
    if command == "vi" and not shutil.which("vi"):
        command = "busybox vi"
    pane_id = await tools.create(command)

    assert (await tools.error("run", command="echo hello", pane_id=pane_id)).startswith(error)


async def test_shell_of_another_user_is_refused(tools: Tools) -> None:
    if os.geteuid():
        pytest.skip("only root can become somebody else without a password")
    pane_id = await tools.create("setpriv --reuid=65534 --regid=65534 --clear-groups bash --norc")
    await tools.shows_foreground(pane_id, "bash")

    assert "has a bash of another user or in a container" in await tools.error("run", command="id", pane_id=pane_id)


async def test_without_a_pane_it_runs_in_one_of_its_own_that_stays(tools: Tools, tmp_path: Path) -> None:
    text, meta, status = await run(tools, "pwd; echo err >&2; exit 4", cwd=str(tmp_path))

    assert (text, meta["exit_code"], meta["reason"]) == (f"{tmp_path}\nerr\n", 4, "done")
    assert status.startswith("[debug-1 exited with code 4 after 0.")
    assert await tools.capture("debug-1") == f"{tmp_path}\nerr"
    assert "for a new pane" in await tools.error("run", command="pwd", pane_id="debug-1", cwd="/")


async def test_run_in_its_own_pane_is_interrupted_in_time(tools: Tools) -> None:
    _, meta, status = await run(tools, "sleep 60", timeout_s=0.2)

    assert (meta["exit_code"], meta["signal"], meta["reason"]) == (130, "SIGINT", "timed_out")
    assert "killed by SIGINT after 0." in status
    _, meta, status = await run(tools, "trap '' INT; sleep 8; sleep 8", timeout_s=0.2)
    assert (meta["reason"], meta["status"]) == ("running", "running")


@pytest.mark.parametrize("shell", SHELLS)
async def test_large_output_is_cut_in_the_middle_and_read_in_full(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    text, meta, status = await run(tools, "seq 1 30000", pane_id)

    assert 39_000 < len(text) <= 40_000
    lines = text.splitlines()
    [marked] = meta["marked_lines"]
    told = re.fullmatch(
        r"\[(\d+) lines, (\d+) bytes left out: tmux_capture_pane since (\d+) reads them\]", lines[marked]
    )
    assert told is not None
    left_out, remaining_bytes, since = map(int, told.groups())
    assert (remaining_bytes, left_out) == (meta["cut_bytes"], 30_000 - len(lines) + 1)
    assert lines[:marked] == [str(number) for number in range(1, marked + 1)]
    assert lines[marked + 1 :] == [str(number) for number in range(marked + left_out + 1, 30_001)]
    assert "left out" not in status
    texts = ""
    while "\n30000\n" not in texts:
        result = await tools.call("capture_pane", pane_id=pane_id, since=since)
        assert result.meta is not None
        texts, since = texts + result.content[0].text, result.meta["cursor"]  # type: ignore[union-attr]
    assert texts.startswith("".join(f"{number}\n" for number in range(marked + 1, 30_001)))


async def test_two_hundred_megabytes_end_as_they_end(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    line = "x" * 199
    with anyio.fail_after(120):
        arguments = {"pane_id": pane_id, "command": f"yes {line} | head -n 1000000; exit_code=7; (exit 7)"}
        result = await tools.client.call_tool("tmux_run", arguments | {"timeout_s": 110})
    assert result.meta is not None

    assert result.meta["exit_code"] == 7
    lines = result.content[0].text.splitlines()  # type: ignore[union-attr]
    gone, gap = result.meta["marked_lines"]
    assert "no longer kept" in lines[gone]
    assert "left out" in lines[gap]
    assert {text for number, text in enumerate(lines) if number not in (gone, gap)} == {line}
    assert result.meta["cut_bytes"] == (1_000_000 - len(lines) + 2) * 201


async def test_runs_leave_no_files_and_no_line_in_the_history(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "echo one; HISTCONTROL=", pane_id)
    await run(tools, "echo two", pane_id)
    text, _, _ = await run(tools, "history", pane_id)

    directory = tools.engine.panes[0].client.directory
    assert text == ""
    assert sorted(path.name for path in directory.iterdir()) == ["debug-1.mark", "tmux"]


async def test_screen_shows_a_short_line_and_the_output(tools: Tools) -> None:
    pane_id = await tools.create("PS1='$ ' bash --norc")
    await run(tools, "make --version >/dev/null 2>&1; echo built", pane_id)

    expected = "$ make --version >/dev/null 2>&1; echo built\nbuilt\n$"
    assert await tools.shows(pane_id, "built\n$") == expected


async def test_start_up_file_that_ends_amid_a_look_at_the_shell_is_waited_for(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rc").write_text("sleep 1.5; answer=yes")
    children, sleeping_since = processes.children, float("inf")

    def children_later(pid: int) -> list[int]:
        # On a busy machine this process may have to wait for a processor at any point.
        nonlocal sleeping_since
        stats = map(processes.read_stat, children(pid))
        if any(stat and stat.comm == "sleep" for stat in stats):
            sleeping_since = min(sleeping_since, time.monotonic())
            if time.monotonic() > sleeping_since + 1.2:
                time.sleep(0.5)
        return children(pid)

    monkeypatch.setattr(processes, "children", children_later)
    pane_id = await tools.create(f"bash --rcfile {tmp_path}/rc")
    assert (await run(tools, "echo $answer", pane_id))[0] == "yes\n"


async def writer(tools: Tools) -> int:
    """Return the process that writes the log of the only pane."""
    [pane] = tools.engine.panes
    with anyio.fail_after(PATIENCE_S):
        while True:
            children = processes.children(pane.client.server_pid)
            for child in children:
                if processes.program(child) == "cat":
                    return child
            await anyio.sleep(0.005)


async def test_log_whose_writer_ended_is_written_again(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await run(tools, "echo before", pane_id)
    os.kill(await writer(tools), signal.SIGKILL)
    await anyio.sleep(0.05)

    text, _, status = await run(tools, "echo after", pane_id)
    assert (text, "some output was lost: there was no room for it" in status) == ("after\n", True)


async def test_run_whose_end_could_not_be_written_is_not_told_as_not_run(tools: Tools, tmp_path: Path) -> None:
    pane_id = await tools.create("bash --norc", cwd=str(tmp_path))
    error = await tools.error("run", command=f"kill -9 {await writer(tools)}; touch ran", pane_id=pane_id)
    [pane] = tools.engine.panes

    assert error.startswith(f"Pane '{pane_id}': what it printed could not be written to {pane.log.path}. The command")
    assert (tmp_path / "ran").exists()
    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


async def test_log_that_was_removed_is_read_all_the_same(settings: Settings, tmp_path: Path) -> None:
    async with in_process(settings, archive=Archive(tmp_path)) as tools:
        pane_id = await tools.create("bash --norc")
        tools.engine.panes[0].log.path.unlink()
        text, _, status = await run(tools, "echo hello", pane_id)

    assert (text, "lost" in status) == ("hello\n", False)


async def test_log_that_has_no_room_is_told_until_it_has(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc", cwd=str(tmp_path))
    await run(tools, "true", pane_id)
    monkeypatch.setattr(Log, "writable", "/dev/full")
    os.kill(await writer(tools), signal.SIGKILL)
    for name in ("first", "second"):
        assert "could not be written" in await tools.error("run", command=f"touch {name}", pane_id=pane_id)
        assert (tmp_path / name).exists()
    result = await tools.call("wait", pane_id=pane_id, pattern="never", timeout_s=0)
    assert "some output was lost" in texts(result)[-1]
    monkeypatch.undo()

    assert (await run(tools, "echo again", pane_id))[0] == "again\n"


async def test_runs_of_many_panes_do_not_wait_for_each_other(tools: Tools, tmp_path: Path) -> None:
    panes = [await tools.create("bash --norc", cwd=str(tmp_path)) for _ in range(5)]
    async with anyio.create_task_group() as tasks:
        for pane_id in panes:
            command = f"touch {pane_id}; until (($(ls | wc -l) == 5)); do sleep 0.01; done"
            tasks.start_soon(run, tools, command, pane_id)


@pytest.mark.parametrize(
    ("words", "is_interactive"),
    [
        ("bash", True),
        ("bash --norc -i", True),
        ("-bash", True),
        ("bash --rcfile file", True),
        ("bash -O extglob", True),
        ("zsh -f", True),
        ("busybox sh", True),
        ("fish --no-config -C true", True),
        ("bash -c true", False),
        ("bash -lc true", False),
        ("bash -e script", False),
        ("sh script argument", False),
        ("busybox vi file", False),
    ],
)
def test_shells_that_take_commands_from_the_terminal_are_told_by_their_arguments(
    monkeypatch: pytest.MonkeyPatch, words: str, *, is_interactive: bool
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.linux.processes.arguments", lambda _pid: words.split())

    assert Shell(1, words.split(maxsplit=1)[0], (0, 0)).is_interactive() == is_interactive


async def test_keys_for_a_script_that_is_busy_do_not_wait_for_a_prompt(tools: Tools) -> None:
    script = "trap 'echo stopped; exit 3' INT; echo ready; while ((SECONDS < 8)); do :; done; echo late"
    pane_id = await tools.create(f"bash -c {shlex.quote(script)}", wait_for="ready")
    await tools.send(pane_id, "C-c")

    assert "stopped" in (await tools.blocks("wait", pane_id=pane_id))[0]


async def test_kill_of_the_pane_answers_the_run(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    results = []

    async def run_it() -> None:
        results.append(await run(tools, "echo begun; sleep 60", pane_id))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_it)
        await tools.shows(pane_id, "\nbegun")
        await tools.blocks("kill_pane", pane_id=pane_id)
    [(text, meta, _)] = results

    assert (text.splitlines()[0], meta["reason"], meta["status"]) == ("begun", "exited", "exited")


@pytest.mark.parametrize("shell", ["bash", "dash", "busybox"])
async def test_tracing_shows_the_command_and_not_how_it_is_run(tools: Tools, shell: str) -> None:
    pane_id = await tools.create(SHELLS[shell])
    await run(tools, "set -x", pane_id)
    text, meta, _ = await run(tools, "echo traced", pane_id)

    assert "echo traced\n" in text
    assert "traced\n" in text.splitlines(keepends=True)
    assert not {"printf", "7777", "mcp_status"} & set(text.replace("=", " ").split())
    assert meta["exit_code"] == 0


@pytest.mark.parametrize(
    ("shell", "setting", "code"),
    [
        ("zsh", "setopt err_return", 1),
        ("zsh", "setopt no_clobber sh_word_split", 1),
        ("bash", "trap ':' ERR", 1),
        ("bash", "trap 'true' DEBUG; set -o functrace", 1),
        ("bash", "alias printf=false; alias eval=false; command() { false; }; history() { false; }", 1),
        ("dash", "alias printf=false", 1),
    ],
)
async def test_settings_for_errors_do_not_stop_later_commands(
    tools: Tools, shell: str, setting: str, code: int
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    await run(tools, setting, pane_id)
    assert (await run(tools, "sh -c 'exit 1'", pane_id))[1]["exit_code"] == code

    text, meta, _ = await run(tools, "echo later", pane_id)
    assert (text.splitlines()[-1], meta["exit_code"]) == ("later", 0)


@pytest.mark.parametrize(("shell", "code"), [("zsh", -1), ("dash", 1000)])
async def test_exit_codes_that_only_a_shell_has_are_told(tools: Tools, shell: str, code: int) -> None:
    pane_id = await tools.create(SHELLS[shell])

    assert (await run(tools, f"f() {{ return {code}; }}; f", pane_id))[1]["exit_code"] == code


async def test_output_of_what_runs_in_the_background_does_not_hold_up_a_timeout(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    command = "(while :; do echo tick; sleep 0.05; done) & sleep 60"
    _, meta, _ = await run(tools, command, pane_id, timeout_s=0.5)

    assert (meta["reason"], meta["exit_code"]) == ("timed_out", 130)


@pytest.mark.parametrize("spoiler", ["readonly mcp_status", "ulimit -n 4"])
async def test_shell_that_can_not_take_a_command_is_told_soon(
    tools: Tools, spoiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following_jobs, "TAKE_S", 10 * PATIENCE_S)
    pane_id = await tools.create("bash --norc")
    await tools.send(pane_id, f"{spoiler} Enter")
    for _ in range(2):
        error = await tools.error("run", command="echo hello", pane_id=pane_id)
        assert "bash did not take the command, and nothing was run." in error


async def test_cancelled_run_leaves_no_files_once_another_follows(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    with anyio.move_on_after(0.2):
        await tools.client.call_tool("tmux_run", {"pane_id": pane_id, "command": "sleep 0.5"})
    await tools.call("wait", pane_id=pane_id, idle_s=1)
    await run(tools, "true", pane_id)

    directory = tools.engine.panes[0].client.directory
    assert sorted(path.name for path in directory.iterdir()) == ["debug-1.mark", "tmux"]


async def test_death_of_tmux_answers_a_run_in_its_own_pane(tools: Tools) -> None:
    results = []

    async def run_it() -> None:
        results.append(await run(tools, "echo begun; sleep 60"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_it)
        while not tools.engine.panes:
            await anyio.sleep(0.01)
        await tools.shows("debug-1", "begun")
        os.kill(tools.engine.panes[0].client.server_pid, signal.SIGKILL)

    assert (results[0][1]["reason"], results[0][1].get("exit_code")) == ("exited", None)


async def test_command_that_can_not_be_written_is_an_error_and_the_pane_goes_on(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await tools.shows_foreground(pane_id, "bash")
    (tools.engine.panes[0].client.directory / "1.1-true.command").mkdir()

    assert "can't write" in await tools.error("run", command="true", pane_id=pane_id)
    assert (await run(tools, "echo on", pane_id))[0] == "on\n"
    (tools.engine.panes[0].client.directory / "1.1-true.command").rmdir()
