"""Commands run whatever the shell, its prompt, its settings and its line are."""

import itertools
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from clocks import with_times
from support import (
    PATIENCE_S,
    SHELLS,
    Gate,
    Tools,
    eventually,
    in_process,
    late_log,
    python,
    run,
    until,
    wait_until,
)

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes.shells.dialects import Shell, foreground_shell
from tmux_debug_mcp.settings import Settings

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
    "fish right": (
        SHELLS["fish"],
        "function fish_right_prompt; date; end; function fish_prompt; echo; echo '> '; end",
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
async def test_prompts_and_settings_of_all_kinds_make_no_difference(
    tools: Tools, name: str
) -> None:
    shell, setting = PROMPTS[name]
    pane_id = await tools.create(shell)
    await run(tools, setting, pane_id)
    for number in range(2):
        text, meta, _ = await run(tools, f"echo {number}; sh -c 'exit {number}'", pane_id)
        assert (text, meta["exit_code"]) == (f"{number}\n", number)


@pytest.mark.parametrize("shell", SHELLS)
async def test_window_that_is_narrower_than_the_line_makes_no_difference(
    tools: Tools, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    pane = tools.engine.panes[0]
    await pane.client.run(("resize-window", "-t", pane.target, "-x", "20", "-y", "10"))

    assert (await run(tools, f"echo {'x' * 100}", pane_id))[0] == "x" * 100 + "\n"


LEFT = ["half a line", "echo 'open", "C-r", "Escape", "if true; then Enter", "# comment"]


@pytest.mark.parametrize("shell", SHELLS)
async def test_what_was_left_on_the_line_is_not_run(tools: Tools, shell: str) -> None:
    for keys in LEFT:
        pane_id = await tools.create(SHELLS[shell])
        await tools.send(pane_id, keys)

        assert (await run(tools, "echo clean", pane_id))[0] == "clean\n", keys
        await tools.blocks("kill_pane", pane_id=pane_id)


def _exits_with(shell: str, code: int) -> str:
    """Return a command that leaves an exit code."""
    return f"sh -c 'exit {code}'" if shell == "fish" else f"(exit {code})"


def _status(shell: str) -> str:
    """Return a command that prints the exit code of the command before it."""
    return "echo $status" if shell == "fish" else "echo $?"


@pytest.mark.parametrize("shell", SHELLS)
async def test_run_sees_the_exit_code_of_what_was_typed(tools: Tools, shell: str) -> None:
    # Shells set it to 130 when C-c clears a line, so that is not pressed at a new prompt.
    pane_id = await tools.create(SHELLS[shell])
    for code in (7, 8):
        await tools.send(pane_id, _exits_with(shell, code) + " Enter", timeout_s=PATIENCE_S)
        assert (await run(tools, _status(shell), pane_id))[0] == f"{code}\n"

    assert "^C" not in (await tools.blocks("capture_pane", pane_id=pane_id))[0]


async def test_prompt_that_is_late_in_the_log_does_not_cost_the_exit_code(
    tools: Tools, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create(f"echo begun; cat {gate}; exec {SHELLS['bash']}")
    await tools.shows(pane_id, "begun")
    pane = await tools.engine.find(pane_id)
    with late_log(pane, monkeypatch):
        await gate.open()
        await eventually(lambda: foreground_shell(pane.leader.pid) is not None)
        await tools.send(pane_id, "(exit 7) Enter", timeout_s=PATIENCE_S)
        text, _, _ = await run(tools, "echo $?", pane_id)

    assert text == "7\n"


@pytest.mark.parametrize(
    ("shell", "setting"),
    [
        ("bash", r"PS1='\w \$? '"),
        ("zsh", "PROMPT='%~ %? '"),
        ("fish", "function fish_prompt; echo -n $status $PWD ''; end"),
    ],
)
async def test_prompt_that_changes_does_not_cost_the_exit_code(
    tools: Tools, shell: str, setting: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    await run(tools, setting, pane_id)
    await tools.send(pane_id, ["cd /usr Enter", "cd lib; false Enter"])

    assert (await run(tools, _status(shell), pane_id))[0] == "1\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "busybox"])
async def test_run_sees_the_exit_code_of_a_run_that_got_its_answer(
    tools: Tools, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    _, meta, _ = await run(tools, "read -r answer; (exit 9)", pane_id)
    assert meta["reason"] == "input"
    await tools.send(pane_id, "a few words Enter", timeout_s=PATIENCE_S)

    assert (await run(tools, "echo $? $answer", pane_id))[0] == "9 a few words\n"


# Lines that a shell does not take for a whole command, and what is typed after them.
INCOMPLETE = {
    "quotation": ["touch '{file} Enter"],
    "backslash": ["touch {file} \\ Enter"],
    "document": ["touch {file} <<end Enter"],
    "list": ["touch {file} && Enter"],
    "substitution": ["touch {file} $( Enter"],
    "compound": ["if touch {file} Enter"],
    "after a whole one": ["true Enter", "touch {file} \\ Enter"],
    "in two lines": ["touch {file} \\ Enter", "{file} | Enter"],
    "half a line": ["echo it Enter", "touch {file}"],
    "escape": ["echo it Enter", "Escape"],
}


@pytest.mark.parametrize("shell", SHELLS)
async def test_run_is_no_part_of_a_command_that_was_not_finished(
    tools: Tools, short_path: Path, shell: str
) -> None:
    file = short_path / "touched"
    for name, typed in INCOMPLETE.items():
        pane_id = await tools.create(SHELLS[shell])
        await tools.send(pane_id, [step.format(file=file) for step in typed])

        text, meta, _ = await run(tools, "echo clean", pane_id)
        assert (text, meta["exit_code"]) == ("clean\n", 0), name
        assert not file.exists(), name
        await tools.blocks("kill_pane", pane_id=pane_id)


@pytest.mark.parametrize(
    "prompts", ["PS1='> '", "PS1='$ ' PS2='$ '", "PS1= PS2=", r"PS1='\w$ ' PS2='\w$ '"]
)
async def test_prompts_that_look_alike_are_not_mistaken(
    tools: Tools, short_path: Path, prompts: str
) -> None:
    pane_id = await tools.create(SHELLS["bash"])
    file = short_path / "touched"
    await run(tools, prompts, pane_id)
    await tools.send(pane_id, f"touch {file} \\ Enter")

    assert (await run(tools, "echo clean", pane_id))[0] == "clean\n"
    assert not file.exists()


async def test_line_editor_within_a_command_is_not_taken_for_the_prompt(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")

    _, meta, _ = await run(tools, "read -e -p 'name? ' x; echo got $x", pane_id)
    assert (meta["reason"], meta["awaits"]) == ("input", "keys")

    _, text, status = await tools.blocks(
        "send_keys", pane_id=pane_id, keys="Bob Enter", wait_for="^got"
    )
    assert "got Bob\n" in text
    if "run ended" not in status:  # its last line was seen before its end
        capture = partial(tools.blocks, "capture_pane", pane_id=pane_id)
        *_, status = await until(capture, lambda blocks: "; run " in blocks[-1])
    assert "run ended with code 0" in status


async def test_link_on_the_way_to_the_files_of_a_run_makes_no_difference(
    settings: Settings, short_path: Path
) -> None:
    directory = short_path / "directory"
    directory.mkdir(0o700)
    link = short_path / "link"
    link.symlink_to(directory)
    async with in_process(replace(settings, runtime_dir=str(link))) as tools:
        pane_id = await tools.create("bash --norc")
        assert tools.engine.panes[0].client.directory.parent == link

        command = "read -e -p 'passphrase? ' x; echo \"[$x]\""
        _, meta, _ = await run(tools, command, pane_id)
        assert (meta["reason"], meta["awaits"]) == ("input", "keys")

        answer = await tools.send(pane_id, "open sesame Enter", wait_for="]$")
        assert "[open sesame]\n" in answer[1]


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
        (
            "bash",
            "alias printf=false; alias eval=false; command() { false; }; history() { false; }",
            1,
        ),
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


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (
            "sleep 60",
            "Pane 'debug-1' is running sleep, not a shell at its prompt. Use tmux_send_keys there",
        ),
        ("cat", "Pane 'debug-1' is running cat, not a shell"),
        ("vi", "Pane 'debug-1' is running "),
        (python("input()"), "Pane 'debug-1' is running python"),
        ("bash -c 'read x; echo $x'", "Pane 'debug-1' is running bash, not a shell at its prompt."),
        ("exit 3", "Pane 'debug-1' exited with code 3"),
    ],
)  # fmt: skip
async def test_pane_without_a_shell_at_its_prompt_is_an_error(
    tools: Tools, command: str, error: str
) -> None:
    if command == "vi" and not shutil.which("vi"):
        command = "busybox vi"
    pane_id = await tools.create(command)

    assert (await tools.error("run", command="echo hello", pane_id=pane_id)).startswith(error)


# It shows when it reads, and keeps what it has read.
READER = """import os, termios, tty
modes = termios.tcgetattr(0)
tty.setraw(0)
with open("/dev/tty", "w") as terminal: terminal.write("reading keys")
keys = b""
while not keys.endswith(b"q"): keys += os.read(0, 1)
open("keys", "wb").write(keys)
termios.tcsetattr(0, termios.TCSANOW, modes)"""
# The line that runs a program in the process group of each shell.
SHARING = {
    "substitution": dict.fromkeys(SHELLS, "x=$({})") | {"fish": "set x ({})"},
    "no job control": dict.fromkeys(SHELLS, "set +m; {}") | {"fish": "status job-control none; {}"},
}


@pytest.mark.parametrize(("shell", "way"), [*zip(SHELLS, itertools.cycle(SHARING), strict=False)])
async def test_program_in_the_group_of_its_shell_gets_no_command(
    tools: Tools, tmp_path: Path, shell: str, way: str
) -> None:
    pane_id = await tools.create(SHELLS[shell], cwd=str(tmp_path))
    await tools.send(pane_id, f"{SHARING[way][shell].format(python(READER))}\n")
    await tools.shows(pane_id, "reading keys")
    state = await until(partial(tools.state, pane_id), lambda state: "awaits" in state)

    error = await tools.error("run", command="echo hello", pane_id=pane_id)

    assert state["foreground"].startswith("python")
    assert error.startswith(f"Pane 'debug-1' is running {state['foreground']}, not a shell at its")
    await tools.send(pane_id, "q")
    assert (await run(tools, "echo hello", pane_id))[0] == "hello\n"
    assert (tmp_path / "keys").read_bytes() == b"q"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_editor_in_a_command_substitution_gets_no_command(
    tools: Tools, tmp_path: Path, shell: str
) -> None:
    vim = shutil.which("vim") or shutil.which("vim.tiny")
    if vim is None:
        pytest.skip("there is no vim")
    pane_id = await tools.create(SHELLS[shell], cwd=str(tmp_path))
    edit = f"{vim} -u NONE -N file >/dev/tty"
    await tools.send(pane_id, f"{SHARING['substitution'][shell].format(edit)}\n")
    await tools.shows(pane_id, '"file" [New')
    await until(partial(tools.state, pane_id), lambda state: "awaits" in state)

    error = await tools.error("run", command="echo hello", pane_id=pane_id)
    await tools.send(pane_id, [":wq Enter"])

    assert error.startswith("Pane 'debug-1' is running vim")
    await eventually((tmp_path / "file").exists)
    assert (tmp_path / "file").read_bytes() == b""


async def test_command_that_has_a_program_read_keys_for_its_output_answers_at_once(
    tools: Tools, tmp_path: Path
) -> None:
    pane_id = await tools.create(SHELLS["bash"], cwd=str(tmp_path))

    _, meta, _ = await run(tools, f"x=$({python(READER)})", pane_id, timeout_s=PATIENCE_S)

    assert (meta["reason"], meta["awaits"]) == ("input", "keys")
    await tools.send(pane_id, "q")
    assert (await run(tools, "echo hello", pane_id))[0] == "hello\n"
    assert (tmp_path / "keys").read_bytes() == b"q"


@pytest.mark.parametrize("spoiler", ["readonly mcp_status", "ulimit -n 4"])
@with_times(take_s=10 * PATIENCE_S)
async def test_shell_that_can_not_take_a_command_is_told_soon(tools: Tools, spoiler: str) -> None:
    pane_id = await tools.create("bash --norc")
    await tools.send(pane_id, f"{spoiler} Enter")
    for _ in range(2):
        error = await tools.error("run", command="echo hello", pane_id=pane_id)
        assert "bash did not take the command, and nothing was run." in error


# A look at a shell that the start-up file has kept busy for a while.
LATE_LOOK = 20


async def test_start_up_file_that_ends_amid_a_look_at_the_shell_is_waited_for(
    tools: Tools, tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rc").write_text(f"cat {gate}; answer=yes")
    children, looks = processes.children, itertools.count(1)

    def is_starting(pid: int) -> bool:
        stats = map(processes.read_stat, children(pid))
        return any(stat and stat.comm == "cat" for stat in stats)

    def children_later(pid: int) -> list[int]:
        # On a busy machine this process may have to wait for a processor at any point.
        if is_starting(pid) and next(looks) == LATE_LOOK and gate.opens():
            wait_until(lambda: not is_starting(pid))
        return children(pid)

    monkeypatch.setattr(processes, "children", children_later)
    pane_id = await tools.create(f"bash --rcfile {tmp_path}/rc")
    assert (await run(tools, "echo $answer", pane_id))[0] == "yes\n"
