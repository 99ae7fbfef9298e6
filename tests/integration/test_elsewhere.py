"""Running commands in shells elsewhere: each behaves as at home, and nothing else gets much."""

import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from clocks import with_times
from hosts import NoHostError, container, ssh_host
from support import PATIENCE_S, SHELLS, Tools, answers_to, log_writer, run

from tmux_debug_mcp.linux import processes

# Shells that can't be given a file here, but can elsewhere.
OTHERS = {"ksh": "ksh", "mksh": "mksh"}
ELSEWHERE = {**SHELLS, **{name: shell for name, shell in OTHERS.items() if shutil.which(name)}}
# A busy machine may take its time.
PATIENTLY = with_times(answer_elsewhere_s=PATIENCE_S, seems_to_ask_s=PATIENCE_S)
# Keys after a run wait for its prompt, too.
PROMPTED = with_times(answer_elsewhere_s=PATIENCE_S, seems_to_ask_s=PATIENCE_S, prompt_s=PATIENCE_S)
PYTHON = shlex.quote(sys.executable)
RELAY = Path(__file__).parent.parent / "relay.py"


class Doors:
    """Opens panes that lead elsewhere."""

    def __init__(self, tools: Tools, env: dict[str, str]) -> None:
        self.tools = tools
        self.env = env

    async def open(self, door: str, command: str) -> str:
        """Return a pane that leads to a command by a door, once that is quiet."""
        quoted = shlex.quote(command)
        commands = {
            "script": f"exec script --quiet --return --command {quoted} /dev/null",
            "ssh": f"exec ssh -tt build {quoted}",
            "slow line": f"exec {PYTHON} {shlex.quote(str(RELAY))} 0.3 {command}",
            # The program before podman takes one option, and says which container it is.
            "container": f"exec podman exec -it task {command}",
        }
        pane_id = await self.tools.create(commands[door], env=self.env)
        await self.tools.call("wait", pane_id=pane_id, pattern=r"\S")
        await self.tools.call("wait", pane_id=pane_id, idle_s=0.3)
        return pane_id


@pytest.fixture
def doors(tools: Tools, tmp_path: Path) -> Doors:
    (tmp_path / "bin").mkdir()
    return Doors(tools, {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})


@pytest.fixture
def podman(doors: Doors, tmp_path: Path) -> Iterator[Doors]:
    """Let a pane reach a container by `podman exec task`."""
    # podman's paths may have 50 characters.
    with tempfile.TemporaryDirectory(prefix="podman-") as storage:
        try:
            with container(Path(storage), tmp_path, doors.env):
                yield doors
        except NoHostError as error:
            pytest.skip(str(error))


@pytest.fixture
def ssh(doors: Doors, tmp_path: Path) -> Iterator[Doors]:
    """Let a pane reach this machine by `ssh build`."""
    (tmp_path / "home").mkdir()
    try:
        with ssh_host(tmp_path / "home", tmp_path, doors.env):
            yield doors
    except NoHostError as error:
        pytest.skip(str(error))


async def leaves_nothing_in_the_shell(tools: Tools, pane_id: str, shell: str) -> None:
    ours = "${mcp_mark-}${mcp_prompt-}${mcp_status-}${PROMPT_COMMAND-}${precmd_functions-}$PS1"
    shown = f'echo "[{ours}]"; typeset -f mcp_prompt 2>/dev/null'
    if shell == "fish":
        shown = 'echo "[$mcp_status]"; functions --query mcp_prompt; and echo it'

    async def seen() -> str:
        answer = await tools.send(pane_id, f" {shown} Enter", wait_for=r"^\[")
        assert "; matched; " in answer[-1], answer
        row = (await tools.blocks("capture_pane", pane_id=pane_id, pattern=r"^\[", lines=1))[0]
        return row.partition(": ")[2]

    before = await seen()
    await is_interrupted_at_its_timeout(tools, pane_id, shell)
    for _ in range(2):
        await run(tools, "true", pane_id)
        assert await seen() == before


async def is_interrupted_at_its_timeout(tools: Tools, pane_id: str, _shell: str) -> None:
    text, meta, _ = await run(tools, "echo on; sleep 60; echo no", pane_id, timeout_s=0.5)
    assert (text.splitlines()[0], meta["reason"], meta["exit_code"]) == ("on", "timed_out", 130)
    assert "no" not in text, text
    for _ in range(2):
        assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"


async def keeps_the_state_of_the_shell(tools: Tools, pane_id: str, shell: str) -> None:
    function = "function f; echo in f; end" if shell == "fish" else "f() { echo in f; }"
    for command in ("cd /dev", "export COLOUR=blue", function, "alias g='echo in g'"):
        assert (await run(tools, command, pane_id))[1]["exit_code"] == 0

    assert (await run(tools, "pwd; echo $COLOUR; f", pane_id))[0] == "/dev\nblue\nin f\n"
    assert (await run(tools, "g", pane_id))[0] == "in g\n"


async def tells_exit_codes_and_leaves_them(tools: Tools, pane_id: str, shell: str) -> None:
    name = "status" if shell == "fish" else "?"
    for code in (0, 3, 127):
        end = f"sh -c 'exit {code}'"
        text, meta, status = await run(tools, end, pane_id)
        assert (text, meta["exit_code"], meta["reason"]) == ("", code, "done"), status
        assert (await run(tools, f"echo ${name}", pane_id))[0] == f"{code}\n"


async def is_not_hurt_by_syntax_errors(tools: Tools, pane_id: str, shell: str) -> None:
    # fish shows its manual for a lone `if`.
    for command in ("echo; if" if shell != "fish" else "end", "echo 'open", "echo $(ls", ")"):
        text, meta, _ = await run(tools, command, pane_id)
        assert text, command
        assert meta["exit_code"], command
        assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"


async def takes_large_scripts_and_odd_characters(tools: Tools, pane_id: str, shell: str) -> None:
    odd = "é 漢 = \\ ' \" $ ` \t | % ! ~ * [a-z] \x7f".replace("'", "")
    text, meta, _ = await run(tools, f"printf '%s\\n' '{odd}'", pane_id)
    expected = odd.replace("\\", "\\") if shell != "fish" else odd
    assert (text, meta["exit_code"]) == (f"{expected.replace(chr(127), '')}\n", 0)
    comment = "# " + "x" * 1000
    command = "\n".join([comment] * 127) + "\necho all of it"
    assert (await run(tools, command, pane_id, timeout_s=PATIENCE_S))[0] == "all of it\n"


async def takes_heredocs(tools: Tools, pane_id: str, shell: str) -> None:
    if shell != "fish":
        command = "n=3; cat <<ONE; cat <<'TWO'\nn is $n\nONE\n$n '\\\nTWO\nsh -c 'exit 7'"
        text, meta, _ = await run(tools, command, pane_id)
        assert (text, meta["exit_code"]) == ("n is 3\n$n '\\\n", 7)


async def may_be_strict(tools: Tools, pane_id: str, shell: str) -> None:
    """Which ends the shell."""
    if shell == "fish":
        return
    name = {"bash": "PROMPT_COMMAND", "posix": "PROMPT_COMMAND", "zsh": "OTHER"}.get(shell, "PS1")
    for command in ("set -u", "set -f", "set -C", "echo $nope", f"readonly {name}"):
        is_error = (await run(tools, command, pane_id))[1]["exit_code"] != 0
        assert is_error is (command == "echo $nope")
        assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"
    assert (await run(tools, "set -e; true", pane_id))[1]["exit_code"] == 0
    _, meta, _ = await run(tools, "echo bye; false; echo no", pane_id)
    assert (meta["reason"], meta["exit_code"]) == ("exited", 1)


@PROMPTED
@pytest.mark.parametrize("shell", ELSEWHERE)
async def test_shell_elsewhere_behaves_as_at_home(tools: Tools, doors: Doors, shell: str) -> None:
    pane_id = await doors.open("script", ELSEWHERE[shell])
    for behaves in (
        leaves_nothing_in_the_shell,
        keeps_the_state_of_the_shell,
        tells_exit_codes_and_leaves_them,
        is_not_hurt_by_syntax_errors,
        takes_large_scripts_and_odd_characters,
        takes_heredocs,
        may_be_strict,
    ):
        await behaves(tools, pane_id, shell)


async def counts(tools: Tools, pane_id: str, foreground: str) -> None:
    for number in range(3):
        text, meta, status = await run(tools, f"echo {number}; sh -c 'exit {number}'", pane_id)
        assert (text, meta["exit_code"], meta["reason"]) == (f"{number}\n", number, "done")
        assert f"foreground {foreground}" in status


@PATIENTLY
async def test_behind_ssh(tools: Tools, ssh: Doors) -> None:
    for shell in ELSEWHERE.values():
        await counts(tools, await ssh.open("ssh", shell), "ssh")


@PATIENTLY
async def test_in_a_container(tools: Tools, podman: Doors) -> None:
    for shell in ("bash", "busybox", "fish"):
        await counts(tools, await podman.open("container", SHELLS[shell]), "podman")


async def refused(tools: Tools, pane_id: str) -> str:
    """Return the error of a run, after which nothing was typed."""
    return await tools.error("run", command="echo typed", pane_id=pane_id)


async def test_nothing_is_typed_where_a_program_draws(tools: Tools, ssh: Doors) -> None:
    for program in ("less /etc/services", "vi", "htop"):
        pane_id = await ssh.open("ssh", f"TERM=xterm {program}")

        assert "a program draws on the screen" in await refused(tools, pane_id), program
        assert not (await tools.engine.find(pane_id)).keyboard.sent


async def test_nothing_is_typed_where_a_secret_is_asked(tools: Tools, ssh: Doors) -> None:
    for asks in (
        *("Password: ", "Enter passphrase for key '/x': "),
        *("OTP code?", "Enter PEM pass phrase:"),
    ):
        pane_id = await ssh.open("ssh", f"read -rsp {shlex.quote(asks)} secret")

        error = await refused(tools, pane_id)
        assert f"something is asked there, not a command: {asks.strip()}" in error
        assert not (await tools.engine.find(pane_id)).keyboard.sent


@PATIENTLY
async def test_nothing_is_typed_where_the_kernel_tells_that_something_is_asked(
    tools: Tools, doors: Doors
) -> None:
    for command in ("read -rsp 'So? ' secret", "read -rp 'So? ' line"):
        pane_id = await doors.open("script", f"bash --norc -c {shlex.quote(command)}")
        assert "something is asked there, not a command: So?" in await refused(tools, pane_id)


async def test_nothing_is_typed_where_something_prints(tools: Tools, ssh: Doors) -> None:
    pane_id = await tools.create(
        "ssh -tt build 'while echo tick; do sleep 0.05; done'", env=ssh.env
    )
    await tools.shows(pane_id, "tick\ntick")
    assert "something prints there" in await refused(tools, pane_id)


async def test_nothing_is_typed_after_text_without_enter(tools: Tools, ssh: Doors) -> None:
    pane_id = await ssh.open("ssh", "bash --norc")
    await tools.send(pane_id, "rm -rf build")
    assert "may still be on the line" in await refused(tools, pane_id)

    await tools.send(pane_id, "C-c")
    assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"


async def test_what_is_no_shell_gets_one_line(tools: Tools, ssh: Doors) -> None:
    pane_id = await ssh.open("ssh", f"{PYTHON} -q")
    pane = await tools.engine.find(pane_id)

    error = await refused(tools, pane_id)
    assert re.search(r"no shell answered within 2 s. Typed was `printf '.*'`; the last", error)
    assert "the last line is `>>>`" in error
    assert len(pane.keyboard.sent) == 1


async def test_what_is_seen_to_be_no_shell_gets_nothing(tools: Tools, doors: Doors) -> None:
    pane_id = await doors.open("script", f"{PYTHON} -q")
    pane = await tools.engine.find(pane_id)

    assert "python3" in await refused(tools, pane_id)
    assert not pane.keyboard.sent


@PROMPTED
async def test_keys_after_a_run_wait_for_the_prompt(tools: Tools, doors: Doors) -> None:
    """Which dash would print in front of their output."""
    pane_id = await doors.open("script", "PS1='$(sleep 0.5)> ' dash")
    await run(tools, "true", pane_id)

    answer = await tools.send(pane_id, "echo '['now] Enter", wait_for=r"^\[now")

    assert "; matched; " in answer[-1], answer


async def test_run_that_seems_to_ask_returns(tools: Tools, ssh: Doors) -> None:
    pane_id = await ssh.open("ssh", "bash --norc")
    command = "echo first; read -rp 'Name? ' name; echo hello $name; (exit 4)"
    text, meta, status = await run(tools, command, pane_id)

    assert (text, meta["reason"]) == ("first\nName? ", "quiet")
    assert "no output for 3 s after an unfinished line; it keeps running" in status
    assert not {"awaits", "blocked_on"} & meta.keys()  # nothing is claimed
    assert "is busy: echo first;" in await tools.error("run", command="true", pane_id=pane_id)
    *_, status = await tools.blocks("send_keys", pane_id=pane_id, keys=["bob Enter"])
    assert "run ended with code 4" in status


@PATIENTLY
async def test_run_there_is_interrupted_by_a_key_told_the_size_and_ended_by_exit(
    tools: Tools, ssh: Doors
) -> None:
    pane_id = await ssh.open("ssh", "bash --norc")
    async with anyio.create_task_group() as tasks:
        answers = answers_to(tasks, run(tools, "echo on; sleep 60; echo no", pane_id))
        await tools.shows(pane_id, "\non")
        busy = await tools.error("run", command="true", pane_id=pane_id)
        assert "is busy: echo on; sleep 60" in busy
        await tools.send(pane_id, "C-c")
    [(text, meta, _)] = answers
    assert (text, meta["reason"], meta["exit_code"]) == ("on\n^C\n", "interrupted", 130)

    async with anyio.create_task_group() as tasks:
        sizes = answers_to(tasks, run(tools, "echo go''on; read -r line; stty size", pane_id))
        await tools.shows(pane_id, "\ngoon")
        await tools.call("send_keys", pane_id=pane_id, keys="", size="90x33")
        await tools.send(pane_id, "go Enter")
    [(text, meta, _)] = sizes
    assert (text.splitlines()[-1], meta["exit_code"]) == ("33 90", 0)

    text, meta, _ = await run(tools, "echo bye; exit 3", pane_id)
    assert (text.splitlines()[0], meta["reason"], meta["exit_code"]) == ("bye", "exited", 3)


async def test_doors_in_a_shell_here(tools: Tools, ssh: Doors) -> None:
    pane_id = await tools.create("bash --norc", env=ssh.env)
    for code in (5, 6):
        _, meta, _ = await run(tools, "ssh -tt build exec bash --norc", pane_id)
        assert meta["reason"] == "quiet"
        assert (await run(tools, "cd /dev; pwd", pane_id))[0] == "/dev\n"
        _, meta, status = await run(tools, f"exit {code}", pane_id)
        assert meta["reason"] == "shell_ended", status
        assert (await run(tools, "echo home", pane_id))[0] == "home\n"


@PATIENTLY
async def test_what_bash_does_before_a_prompt_stays(tools: Tools, doors: Doors) -> None:
    pane_id = await doors.open("script", "bash --norc")
    await run(tools, "HISTCONTROL=; history -c", pane_id)
    await run(tools, 'PROMPT_COMMAND="hooked=1${PROMPT_COMMAND:+;$PROMPT_COMMAND}"', pane_id)
    assert (await run(tools, "echo $hooked; history", pane_id))[0] == "1\n"
    await run(tools, "PROMPT_COMMAND=('' 'hooked=2')", pane_id)
    assert (await run(tools, "echo $hooked ${#PROMPT_COMMAND[@]}", pane_id))[0] == "2 2\n"
    _, meta, _ = await run(tools, "sleep 60", pane_id, timeout_s=0.5)
    assert meta["reason"] == "timed_out"
    assert (await run(tools, "echo ${#PROMPT_COMMAND[@]}", pane_id))[0] == "2\n"


@PATIENTLY
async def test_terminal_echoes_after_a_command_that_is_no_whole(tools: Tools, doors: Doors) -> None:
    pane_id = await doors.open("script", "bash --norc")
    assert (await run(tools, "echo $(ls", pane_id))[1]["exit_code"] == 2
    assert " echo " in (await run(tools, "stty -a", pane_id))[0]


@pytest.mark.parametrize("shell", ["dash", "busybox"])
async def test_exported_prompt_tells_nothing_of_inner_shells(
    tools: Tools, doors: Doors, shell: str
) -> None:
    pane_id = await doors.open("script", ELSEWHERE[shell])
    await run(tools, "export PS1='$ '", pane_id)
    assert (await run(tools, ELSEWHERE[shell], pane_id))[1]["reason"] in ("input", "quiet")


async def test_shell_that_replaced_itself_takes_commands_once_something_was_typed(
    tools: Tools, ssh: Doors
) -> None:
    pane_id = await ssh.open("ssh", "bash --norc")
    assert (await run(tools, "exec bash --norc", pane_id))[1]["reason"] == "quiet"
    assert "is busy" in await tools.error("run", command="true", pane_id=pane_id)
    await tools.send(pane_id, "Enter")
    for number in range(2):
        assert (await run(tools, f"echo {number}", pane_id))[0] == f"{number}\n"


@PATIENTLY
async def test_two_doors_at_once(tools: Tools, ssh: Doors) -> None:
    pane_id = await ssh.open("script", "ssh -tt build bash --norc")
    assert (await run(tools, "echo behind both; false", pane_id))[1]["exit_code"] == 1


@PATIENTLY
async def test_shell_without_a_terminal(tools: Tools, ssh: Doors) -> None:
    for shell in ("bash --norc", "dash", "busybox sh"):
        command = f"ssh -T build {shlex.quote(f'echo there; exec {shell}')}"
        pane_id = await tools.create(command, env=ssh.env, wait_for="there", timeout_s=PATIENCE_S)
        for number in range(2):
            text, meta, _ = await run(tools, f"echo {number}; cd /dev; (exit 3)", pane_id)
            assert (text, meta["exit_code"], meta["reason"]) == (f"{number}\n", 3, "done")
        assert (await run(tools, "pwd", pane_id))[0] == "/dev\n"


async def test_nothing_is_typed_into_a_tmux_within(
    tools: Tools, doors: Doors, short_path: Path
) -> None:
    pane_id = await tools.create(f"tmux -S {short_path}/inner new bash --norc", env=doors.env)
    await tools.call("wait", pane_id=pane_id, pattern=r"bash-", timeout_s=PATIENCE_S)
    assert "a program draws on the screen" in await refused(tools, pane_id)


@PATIENTLY
async def test_door_behind_a_door(tools: Tools, ssh: Doors) -> None:
    pane_id = await ssh.open("ssh", "bash --norc")
    await tools.send(pane_id, "dash Enter")
    assert (await run(tools, "cd /dev; pwd", pane_id))[0] == "/dev\n"
    assert (await run(tools, "echo ${BASH-none}", pane_id))[0] == "none\n"
    await tools.send(pane_id, "exit Enter")
    assert (await run(tools, "echo ${BASH-none}", pane_id))[0] != "none\n"


@PATIENTLY
async def test_lost_connection_is_an_answer(tools: Tools, ssh: Doors) -> None:
    pane_id = await tools.create("bash --norc", env=ssh.env)
    await tools.send(pane_id, "ssh -tt build exec bash --norc Enter", timeout_s=2)
    results: list[Any] = []

    async def run_it() -> None:
        results.append(await run(tools, "echo on; sleep 60", pane_id))

    pane = await tools.engine.find(pane_id)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_it)
        await tools.shows(pane_id, "\non")
        [door] = [
            pid for pid in processes.descendants(pane.leader.pid) if processes.program(pid) == "ssh"
        ]
        os.kill(door, signal.SIGKILL)
    [(text, meta, status)] = results
    assert (text.splitlines()[0], meta["reason"]) == ("on", "shell_ended")
    assert "the shell ended" in status
    assert (await run(tools, "echo home", pane_id))[0] == "home\n"


@PATIENTLY
async def test_large_output(tools: Tools, ssh: Doors) -> None:
    pane_id = await ssh.open("ssh", "bash --norc")
    _, meta, _ = await run(tools, "seq 2000000; false", pane_id, timeout_s=PATIENCE_S)
    printed = len("\r\n".join(map(str, range(1, 2_000_001)))) + 2
    assert meta["exit_code"] == 1
    assert meta["end_cursor"] - meta["start_cursor"] == printed


async def test_answer_that_is_late_in_the_log(tools: Tools, doors: Doors) -> None:
    pane_id = await doors.open("script", "bash --norc")
    pane = await tools.engine.find(pane_id)
    os.kill(log_writer(pane), signal.SIGSTOP)
    assert (await run(tools, "echo fine", pane_id))[0] == "fine\n"


@PATIENTLY
async def test_slow_line(tools: Tools, doors: Doors) -> None:
    pane_id = await doors.open("slow line", "bash --norc")
    for number in range(2):
        text, meta, _ = await run(tools, f"echo {number}; (exit 3)", pane_id)
        assert (text, meta["exit_code"]) == (f"{number}\n", 3)
    _, meta, _ = await run(tools, "sleep 60", pane_id, timeout_s=1.5)
    assert (meta["reason"], meta["exit_code"]) == ("timed_out", 130)


@PATIENTLY
@pytest.mark.skipif(os.geteuid() != 0, reason="su asks others than root for a password")
@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish"])
async def test_shell_of_another_user(tools: Tools, shell: str) -> None:
    path = shutil.which(shell)
    pane_id = await tools.create(f"su --shell {path} nobody", wait_for=r"\S", timeout_s=PATIENCE_S)
    await tools.call("wait", pane_id=pane_id, idle_s=0.3)
    text, meta, _ = await run(tools, "id -un; sh -c 'exit 3'", pane_id)
    assert (text, meta["exit_code"], meta["reason"]) == ("nobody\n", 3, "done")
    command = "read line" if shell == "fish" else "read line; echo got $line"
    assert (await run(tools, command, pane_id))[1]["reason"] == "input"


@PATIENTLY
async def test_what_a_program_in_a_container_awaits(tools: Tools, podman: Doors) -> None:
    pane_id = await podman.open("container", "bash --norc")
    text, meta, status = await run(tools, "read -rp 'Name? ' name; echo hello $name", pane_id)
    assert (text, meta["reason"], meta["awaits"]) == ("Name? ", "input", "input"), status
    *_, status = await tools.blocks("send_keys", pane_id=pane_id, keys="bob Enter")
    assert "run ended with code 0" in status
    _, meta, status = await run(tools, "read -rsp 'Secret? ' secret", pane_id)
    assert (meta["reason"], meta["awaits"]) == ("input", "hidden input"), status
