"""`run` on a command line gives all that its command printed, however much that is."""

import json
import shlex

import pytest
from support import wait_until

from .conftest import PROGRAM, Shell

DEBUG = shlex.join(PROGRAM)
# More than a result has room for.
LINES = "".join(f"{number}\n" for number in range(1, 20_001))


@pytest.mark.parametrize("flags", [[], ["--pane", "sh"]], ids=["pane of its own", "shell"])
def test_run_gives_all_of_its_output(shared: Shell, flags: list[str]) -> None:
    if flags:
        shared.out("create", "--name", "sh", "bash --norc")

    done = shared.run("run", *flags, "seq 20000; printf end; (exit 3)")

    assert (done.stdout, done.returncode) == (f"{LINES}end", 3)
    [status] = done.stderr.splitlines()
    assert " code 3 after " in status


def test_run_that_awaits_input_gives_all_of_its_output_so_far(shared: Shell) -> None:
    done = shared.run("run", "yes same | head -n 20; seq 20000; read x")
    assert (done.stdout, done.returncode) == ("same\n" * 20 + LINES, 126)


def test_run_gives_all_of_its_output_to_a_terminal_too(shared: Shell) -> None:
    # The inner one prints to its pane.
    assert shared.out("run", f"{DEBUG} run 'seq 20000'") == LINES


def test_status_follows_all_of_the_output(shared: Shell) -> None:
    *lines, status = shared.out("run", "--status", "seq 20000; printf end").splitlines()
    assert lines == [*LINES.splitlines(), "end"]
    assert " exited with code 0 after " in status


def test_result_as_json_and_matching_lines_stay_short(shared: Shell) -> None:
    assert shared.run("run", "-q", "seq 20000").stdout == ""
    text = json.loads(shared.out("run", "--json", "seq 20000"))["content"][0]["text"]
    assert len(text) < 17_000
    assert len(shared.out("run", "--show", "1", "seq 20000").splitlines()) <= 51


@pytest.mark.parametrize("code", [0, 7])
def test_output_that_is_no_longer_kept_is_said_and_hides_no_exit_code(
    shell: Shell, code: int
) -> None:
    trimmed = shell.cwd / "trimmed"
    until_trimmed = f"until [ -e {shlex.quote(str(trimmed))} ]; do sleep 0.02; done"
    running = shell.start(
        "run", f"yes $(seq 1000) | head -c 18000000; {until_trimmed}; exit {code}"
    )
    wait_until(lambda: "no longer kept" in shell.run("capture", "--since", "0", "debug-1").stderr)
    trimmed.touch()

    out, err = running.communicate(timeout=60)

    assert running.returncode == code
    assert (15 << 20) < len(out) < 18_000_000
    gone, _status = err.splitlines()
    sentence = "bytes of the output are no longer kept. For all of it, have the command write a"
    assert f" {sentence} file." in gone


def test_caller_that_reads_slowly_keeps_nobody_waiting_and_misses_nothing(shell: Shell) -> None:
    running = shell.start("run", "echo first; seq 20000 | sed 's/$/ of many long lines/'")
    assert running.stdout
    first = running.stdout.readline()

    assert shell.out("run", "echo other") == "other\n"
    shell.out("kill", "debug-1")

    assert first == "first\n"
    lines = running.stdout.read().splitlines()
    assert lines == [f"{number} of many long lines" for number in LINES.split()]
    running.communicate()
