"""The verbs of `tmux-debug`: what they print where, and their exit statuses."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support import wait_until
from wire import Server

from .conftest import PROGRAM, Shell

pytestmark = pytest.mark.usefixtures("server")


def test_output_is_on_standard_output_and_the_status_line_on_standard_error(shell: Shell) -> None:
    done = shell.run("create", "--name", "sum", "echo $((20 + 22)); exec cat")

    assert done.stdout == "42\n"
    assert done.stderr.startswith("[debug-1 sum running ")
    assert done.stderr.endswith("awaits input; cursor 4]\n")
    assert done.returncode == 0
    assert shell.out("capture", "sum") == "42\n"


def test_session_in_a_shell(shell: Shell) -> None:
    shell.out("create", "--name", "sh", "--env", "GREETING=good day", "bash --norc")
    assert "good day" in shell.out("send", "sh", "echo $GREETING", "Enter")
    assert shell.out("run", "--pane", "sh", "echo $GREETING") == "good day\n"
    assert shell.out("wait", "sh", "--pattern", "good", "--since", "0").splitlines()[-1]
    [row] = json.loads(shell.out("list"))
    assert (row["name"], row["awaits"]) == ("sh", "keys")
    assert shell.out("kill", "sh") == ""
    listed = shell.run("list")
    assert (listed.stdout, listed.returncode) == ("[]\n", 0)
    assert listed.stderr == "No active panes. Use tmux-debug create to start one.\n"


def test_several_panes_are_killed_in_one_call(shell: Shell) -> None:
    for name in ("one", "two"):
        shell.out("create", "--name", name, "cat")

    refused = shell.run("kill", "one", "tow")
    assert refused.stderr == (
        "tmux-debug: Pane 'tow' not found. Use tmux-debug list to see active panes.\n"
    )
    assert (refused.returncode, len(json.loads(shell.out("list")))) == (125, 2)

    done = shell.run("kill", "one", "two")
    assert (done.stdout, done.returncode) == ("", 0)
    assert re.fullmatch(r"\[debug-1 one killed by .*\]\n\[debug-2 two killed .*\]\n", done.stderr)
    assert json.loads(shell.out("list")) == []


def test_list_has_what_runs_and_says_how_many_have_ended(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    shell.out("create", "--name", "done", "true")
    shell.out("create", "--name", "cat", "--cwd", "below", "cat")

    def names(*flags: str) -> tuple[list[str], str]:
        done = shell.run("list", *flags)
        return [row["name"] for row in json.loads(done.stdout)], done.stderr

    assert names() == (["cat"], "1 pane has ended: see tmux-debug list --all.\n")
    assert names("--all") == (["cat", "done"], "")
    assert json.loads(shell.out("list"))[0]["cwd"] == f"{tmp_path}/below"
    shell.out("kill", "cat")
    assert names() == ([], "1 pane has ended: see tmux-debug list --all.\n")
    [row] = json.loads(shell.out("list", "--all"))
    assert (row["status"], row["exit_code"]) == ("exited", 0)


def test_pane_whose_program_has_left_another_one_running_is_listed(shell: Shell) -> None:
    shell.out("create", "--name", "parent", "sleep 1000 & disown; exit 0")

    done = shell.run("list")

    [row] = json.loads(done.stdout)
    assert (row["name"], row["status"], done.stderr) == ("parent", "exited", "")
    assert "parent exited with code 0" in shell.out("ps")


def test_refusal_names_verbs_and_flags_and_not_tools_and_parameters(shell: Shell) -> None:
    assert shell.run("capture", "nope").stderr == (
        "tmux-debug: Pane 'nope' not found. Use tmux-debug list to see active panes.\n"
    )
    shell.out("create", "--name", "cat", "cat")
    error = shell.run("run", "--pane", "cat", "ls").stderr
    assert "Use tmux-debug send there, or tmux-debug run without --pane. " in error


def test_note_of_a_cut_is_a_command_that_reads_the_rest(shell: Shell) -> None:
    lines = shell.out("create", "--name", "shop", "seq 900; exec cat").splitlines()
    [cut] = [number for number, line in enumerate(lines) if line.startswith("[")]
    command = lines[cut].removesuffix("]").partition(": ")[2]

    assert re.fullmatch(r"tmux-debug capture debug-1 --since \d+ --lines \d+", command)
    left_out = shell.out(*shlex.split(command)[1:]).splitlines()
    numbers = [*lines[:cut], *left_out, *lines[cut + 1 :]]
    assert numbers == [str(number) for number in range(1, 901)]


def test_notes_of_several_panes_name_each_its_own(shell: Shell) -> None:
    shell.out("create", "--name", "silent", "exec cat")
    for name in ("one", "two"):
        shell.out("create", "--name", name, "seq 2000; exec cat")
    panes = ("silent", "one", "debug-2", "two")  # one of them twice
    done = shell.run("wait", *panes, "--pattern", "never", "--timeout", "0")

    notes = [line for line in done.stdout.splitlines() if line.startswith("[")]
    captures = [note.partition(": ")[2].partition(" --since ")[0] for note in notes]
    assert captures == ["tmux-debug capture debug-2", "tmux-debug capture debug-3"]


def test_line_of_a_program_that_looks_like_a_note_stays(shell: Shell) -> None:
    line = "[3 lines left out: tmux_capture_pane since 7, lines 3]"
    first, *others = shell.out("create", f"echo '{line}'; seq 900; exec cat").splitlines()

    assert first == line
    [note] = [other for other in others if "left out" in other]
    assert ": tmux-debug capture debug-1 --since " in note


def test_json_has_everything(shell: Shell) -> None:
    done = shell.run("run", "--json", "echo out; exit 3")

    result = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (3, "")
    assert result["content"][0]["text"] == "out\n"
    assert result["_meta"]["reason"] == "done"
    assert result["_meta"]["exit_code"] == 3


def test_programs_start_in_the_directory_of_the_caller(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    caller = replace(shell, cwd=tmp_path / "here")

    assert caller.out("run", "pwd") == f"{tmp_path}/here\n"
    assert caller.out("run", "--cwd", "below", "pwd") == f"{tmp_path}/here/below\n"
    assert f"{tmp_path}/here\n" in caller.out("create", "--name", "sh", "pwd; exec bash --norc")
    assert caller.out("run", "--pane", "sh", "pwd") == f"{tmp_path}/here\n"


def test_words_of_a_command_stay_words(shell: Shell) -> None:
    words = ["printf", "%s|", "a b", "--", "--json", "$HOME", "--"]
    for dashes in ([], ["--"]):
        assert shell.out("run", *dashes, *words) == "a b|--|--json|$HOME|--|"
        assert shell.out("create", *dashes, *words) == "a b|--|--json|$HOME|--|\n"
    shell.out("create", "--name", "cat", "cat")
    assert shell.out("send", "cat", "--", "--", "Enter").splitlines() == ["--", "--"]


def test_size_goes_before_keys_wherever_it_stands_and_without_any(shell: Shell) -> None:
    started = shell.out("create", "--name", "sh", "--size", "80x24", "stty size; exec bash --norc")
    assert "24 80" in started

    assert "20 70" in shell.out("send", "sh", "--size", "70x20", "stty size", "Enter")
    assert "21 71" in shell.out("send", "sh", "stty size", "--size=71x21", "Enter")
    assert "-l" in shell.out("send", "--size", "72x22", "sh", "--", "-l", "C-c")
    assert shell.run("send", "sh", "--size", "73x23").returncode == 0
    assert shell.out("run", "--pane", "sh", "stty size") == "23 73\n"
    done = shell.run("send", "sh")
    assert (done.returncode, done.stderr.split(".")[0]) == (125, "tmux-debug: KEYS is empty")
    done = shell.run("send", "sh", "a", "", "b")
    assert (done.returncode, done.stderr.split(".")[0]) == (125, "tmux-debug: Step 2 is empty")


def test_keys_that_are_refused_are_told_as_the_words_that_type_them(shell: Shell) -> None:
    shell.out("create", "--name", "sh", "bash --norc")
    refused = shell.run("send", "sh", "C-c echo it  works Enter")
    [advice] = re.findall("Give separate words: (.*); or use --literal ", refused.stderr)

    assert (refused.returncode, advice) == (125, "tmux-debug send sh C-c 'echo it  works' Enter")
    assert "it works" in shell.out(*shlex.split(advice)[1:], "--wait-for", "^it works")


def test_what_was_done_is_said_where_it_is_not_all_that_was_asked_for(shell: Shell) -> None:
    assert shell.run("create", "--name", "cat", "cat").stderr.startswith("[debug-1 cat running ")

    done = shell.run("send", "cat", "first")
    assert done.stdout == "first\n"
    confirmation, status = done.stderr.splitlines()
    assert confirmation == "Sent keys to pane 'cat' (Enter not pressed)"
    assert status.startswith("[debug-1 cat running ")
    assert shell.run("send", "cat", "Enter").stderr.startswith("[debug-1 cat running ")


def test_several_keys_are_steps(shell: Shell) -> None:
    shell.out("create", "--name", "cat", "cat")

    out = shell.out("send", "cat", "first", "Enter", "second", "Enter")

    assert out.splitlines() == ["first", "first", "second", "second"]


def test_key_among_literal_words_is_refused_and_nothing_is_typed(shell: Shell) -> None:
    shell.out("create", "--name", "cat", "cat")

    done = shell.run("send", "cat", "!1", "Enter", "--literal")

    assert done.returncode == 125
    assert done.stderr.startswith("tmux-debug: 'Enter' is a key name, but with --literal it ")
    assert shell.out("capture", "cat") == ""
    assert shell.out("send", "cat", "!1", "Enter").splitlines() == ["!1", "!1"]


def test_call_reaches_the_tools_of_every_toolset(
    shell: Shell, launch: Callable[..., Server]
) -> None:
    other = launch("--toolsets", "tabs")
    at_other = ("--server", str(other.pid))

    made = json.loads(shell.out(*at_other, "call", "create_tab", "name=work"))
    line = f"window_id={made['window_id']}"
    done = json.loads(
        shell.out(*at_other, "call", "execute_command", line, "command=echo 4$((1+1))")
    )

    assert done["output"] == "42\n"
    # The verbs are there whatever the toolsets are.
    assert [row["name"] for row in json.loads(shell.out(*at_other, "list"))] == ["work"]


def test_call_lists_the_tools_of_every_toolset(shell: Shell, launch: Callable[..., Server]) -> None:
    both = ("--server", str(launch("--toolsets", "debug,tabs").pid), "call")
    lines = shell.out(*both).splitlines()

    assert "tmux_kill_pane pane_id" in lines
    assert "tmux_run command [pane_id] [cwd] [show] [timeout_s]" in lines
    assert any(line.startswith("execute_command window_id command ") for line in lines)
    assert "Use one of: tmux_create_pane, tmux_send_keys," in shell.run(*both, "nope").stderr


def test_call_reads_arrays_as_json(shell: Shell) -> None:
    shell.out("create", "--name", "cat", "cat")

    shell.out("call", "tmux_send_keys", "pane_id=cat", 'keys=["one", "Enter"]', "timeout_s=1")

    assert shell.out("call", "tmux_capture_pane", "pane_id=cat", "lines=5").startswith("one\none")


def test_interrupted_caller_cancels_its_call(shell: Shell, server: Server) -> None:
    waiting = shell.start("run", "sleep 100")
    while not json.loads(shell.out("list", "--json"))["content"][0]["text"].startswith("[{"):
        pass
    waiting.kill()
    waiting.communicate()

    assert shell.out("run", "echo on") == "on\n"
    assert server.text("list_panes")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("words", "where", "ends"),
    [
        (["run", "echo $$ >pid; exec sleep 100"], "debug-2 running", "kill debug-2 ends it"),
        (
            ["create", "--wait-for", "x", "echo $$ >pid; exec sleep 100"],
            "debug-2 running",
            "kill debug-2 ends it",
        ),
        (
            ["run", "--pane", "sh", "echo $$ >pid; sleep 100"],
            "debug-1 sh running",
            "send debug-1 C-c interrupts it",
        ),
    ],
    ids=["run", "create", "run in a shell"],
)
def test_interrupted_caller_is_told_where_its_command_goes_on(
    shell: Shell, words: list[str], where: str, ends: str, number: int, tmp_path: Path
) -> None:
    shell.out("create", "--name", "sh", "bash --norc")
    waiting = shell.start(*words)
    wait_until((tmp_path / "pid").exists)

    waiting.send_signal(number)

    out, err = waiting.communicate(timeout=60)
    assert out == ""
    assert err.startswith(f"[{where} ")
    assert "; wait cancelled;" in err
    assert f"; tmux-debug {ends}; cursor" in err
    assert waiting.returncode == -number
    assert any(row["status"] == "running" for row in json.loads(shell.out("list")))


# Gets C-c as soon as the command has begun, before the next line of the program.
INTERRUPTED_AT_ONCE = """
import os, signal, time
from tmux_debug_mcp.command.main import main
from tmux_debug_mcp.sockets.connection import Connection
send = Connection.send
def interrupted(connection, message):
    send(connection, message)
    while not os.path.exists("pid"):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
Connection.send = interrupted
main()
"""


@pytest.mark.parametrize(
    "words", [["run", "echo $$ >pid; exec sleep 100"], ["wait", "debug-1", "--pattern", "never"]]
)
def test_caller_that_is_interrupted_as_soon_as_it_has_asked_is_told_too(
    shell: Shell, words: list[str]
) -> None:
    if words[0] == "wait":
        shell.out("create", "touch pid; exec sleep 100")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_ONCE, *words],
        env=shell.naming_env,
        cwd=shell.cwd,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (-signal.SIGINT, ""), done.stderr
    assert done.stderr.startswith("[debug-1 running ")
    assert "; wait cancelled; tmux-debug kill debug-1 ends it; cursor" in done.stderr


def test_second_interrupt_ends_a_verb_whose_server_does_not_answer(
    shell: Shell, server: Server, tmp_path: Path
) -> None:
    waiting = shell.start("run", "echo $$ >pid; exec sleep 100")
    wait_until((tmp_path / "pid").exists)
    os.kill(server.pid, signal.SIGSTOP)

    def is_caught() -> bool:
        status = Path(f"/proc/{waiting.pid}/status").read_text()
        [signals] = re.findall(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
        return bool(int(signals, 16) >> (signal.SIGINT - 1) & 1)

    try:
        assert is_caught()
        waiting.send_signal(signal.SIGINT)
        wait_until(lambda: not is_caught())
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == -signal.SIGINT
    finally:
        os.kill(server.pid, signal.SIGCONT)
    waiting.communicate()


@pytest.mark.parametrize("text", ["abc", r"abc\n"])
def test_status_line_begins_a_line_where_both_outputs_are_one(shell: Shell, text: str) -> None:
    words = ["run", f"printf '{text}'"]
    together = shell.by_sh(f"{shlex.join([*PROGRAM, *words])} 2>&1")
    apart = shell.run(*words)

    assert together.stdout.startswith("abc\n[debug-")
    assert apart.stdout == text.replace(r"\n", "\n")
    assert apart.stderr.startswith("[debug-")


def test_arguments_that_are_no_text_are_refused(shell: Shell) -> None:
    assert shell.run("run", os.fsdecode(b"echo \xff")).stderr == (
        "tmux-debug: The arguments are not UTF-8. Give UTF-8.\n"
    )


def test_verb_imports_neither_the_sdk_nor_anyio(shell: Shell) -> None:
    program = (
        "import os, sys; os._exit = lambda status: sys.exit(status);"
        "from tmux_debug_mcp.command.main import main\n"
        "try: main()\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "list"],
        env=shell.naming_env,
        capture_output=True,
        text=True,
        check=True,
    )

    heavy = {"anyio", "asyncio", "dataclasses", "mcp", "mcp_types", "orjson"}
    assert not heavy & set(done.stderr.split())


def test_no_control_character_of_a_program_reaches_standard_output(shell: Shell) -> None:
    show = r"printf 'C1: \302\2330mx\302\235y\302\220z\302\205\177.\n'"
    shown = "C1: 0mxyz.\n"

    assert shell.out("create", "--name", "one", f"{show}; exec cat") == shown
    assert shell.out("wait", "one", "--pattern", r"^C1: 0mxyz\.$", "--since", "0") == shown
    assert shell.out("capture", "one", "--since", "0") == shown
    assert shell.out("capture", "one", "--pattern", "mxyz") == f"0: {shown}"
    assert shell.out("run", show) == shown
    name = "\x9b31mred\x7f"
    in_json = shell.out("create", "--json", "--timeout", "0", f"exec cat # {name}")
    in_json += shell.out("list")
    assert not {*map(chr, range(0x7F, 0xA0))} & set(in_json)
