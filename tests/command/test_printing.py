"""What verbs print, and on which stream: all, nothing but errors, or the status in its place."""

import re
import shlex

import pytest
from support import wait_until

from .conftest import PROGRAM, Shell

DEBUG = shlex.join(PROGRAM)


@pytest.mark.parametrize(
    "words",
    [
        ["create", "-q", "echo started; exec cat"],
        ["send", "-q", "sh", "echo sent", "Enter", "--wait-for", "sent"],
        ["send", "-q", "cat", "no line feed"],
        ["wait", "-q", "cat", "--pattern", "hello", "--since", "0"],
        ["run", "-q", "echo ran"],
        ["resize", "-q", "cat", "90x30"],
        ["restart", "-q", "busy"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_quiet_verb_that_does_what_was_asked_prints_nothing(panes: Shell, words: list[str]) -> None:
    done = panes.run(*words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["create", "-q", "exit 5"], 1, "exited with code 5"),
        (["create", "-q", "--wait-for", "up", "exit 5"], 1, "exited with code 5"),
        (["send", "-q", "busy", "x", "Enter", "y", "--timeout", "0.2"], 1, "Sent 1 of 3 steps to"),
        (["wait", "-q", "cat", "--pattern", "x", "--timeout", "0.1"], 124, "timed out after 0.1 s"),
        (["wait", "-q", "sh", "--pattern", "never"], 1, "no line matches"),
        (["run", "-q", "echo x; exit 3"], 3, "exited with code 3"),
        (["run", "-q", "read x"], 126, "awaits input"),
        (["run", "-q", "--timeout", "0.3", "sleep 100"], 124, "timed out after 0.3 s"),
        (["kill", "-q", "nope"], 125, "tmux-debug: Pane 'nope' not found."),
        (["send", "-q", "ended", "x"], 125, "tmux-debug: Pane 'ended' exited with code 7"),
    ],
    ids=lambda given: " ".join(given[:4]) if isinstance(given, list) else None,
)
def test_quiet_verb_that_fails_says_why_and_prints_no_output(
    panes: Shell, words: list[str], status: int, why: str
) -> None:
    done = panes.run(*words)

    assert (done.returncode, done.stdout) == (status, "")
    assert why in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_text_stands_alone_where_it_is_asked_for(shell: Shell) -> None:
    shell.out("create", "--name", "cat", "echo hello; exec cat")
    shell.run("create", "--name", "ended", "exit 7")
    for words, text in (
        (["capture", "--text", "cat", "--at", "7"], "hello\n"),
        (["wait", "--text", "cat", "--pattern", "hello", "--since", "0"], "hello\n"),
        (["create", "--text", "echo started; exec cat"], "started\n"),
        (["send", "--text", "cat", "x", "Enter", "--wait-for", "x"], "x\nx\n"),
        (["capture", "--text", "ended"], ""),
        (["run", "--text", "echo ran; exit 3"], "ran\n"),
    ):
        done = shell.run(*words)
        assert (done.stdout, done.stderr) == (text, ""), words


def test_list_says_nothing_of_ended_panes_where_only_its_rows_are_asked_for(panes: Shell) -> None:
    said, unsaid = panes.run("list"), panes.run("list", "--text")
    assert said.stderr.endswith("see tmux-debug list --all.\n")
    assert unsaid.stdout.startswith('[{"id":')
    assert unsaid.stderr == ""


def test_text_alone_leaves_errors_where_they_were(panes: Shell) -> None:
    refused = panes.run("capture", "--text", "nope")
    unsent = panes.run("send", "--text", "busy", "x", "Enter", "y", "--timeout", "0.2")

    assert refused.stderr.startswith("tmux-debug: Pane 'nope' not found.")
    assert unsent.stderr.startswith("Sent 1 of 3 steps to pane 'busy'.")
    assert (refused.returncode, unsent.returncode) == (125, 1)


def test_quiet_script_stops_where_a_verb_fails_and_its_log_says_why(shell: Shell) -> None:
    script = f"""
        set -e
        {DEBUG} create -q --name cat cat
        {DEBUG} send -q cat hello Enter
        {DEBUG} wait -q cat --pattern never --timeout 0.1 || echo "no match: $?"
        {DEBUG} run -q 'exit 4'
        echo not reached
    """
    done = shell.by_sh(script)

    assert (done.returncode, done.stdout) == (4, "no match: 124\n")
    timed_out, exited = done.stderr.splitlines()
    assert "; timed out after 0.1 s; cursor " in timed_out
    assert " exited with code 4 after " in exited


def test_interrupted_quiet_verb_says_where_its_command_goes_on(shell: Shell) -> None:
    waiting = shell.start("run", "-q", "echo $$ >pid; exec sleep 100")
    wait_until((shell.cwd / "pid").exists)

    waiting.terminate()

    out, err = waiting.communicate(timeout=60)
    assert out == ""
    assert "; wait cancelled; tmux-debug kill debug-1 ends it; cursor" in err


def test_status_stands_after_the_text_where_it_is_asked_for(panes: Shell) -> None:
    script = f"""
        {DEBUG} run --status 'echo one'
        {DEBUG} run --status 'printf two'
        {DEBUG} create --status --name reader 'exec cat'
        {DEBUG} send --status reader three
        {DEBUG} wait --status reader --pattern x --timeout 0
        {DEBUG} capture --status ended
        {DEBUG} capture --status cat --at 7
        {DEBUG} kill --status reader
    """
    done = panes.by_sh(script)

    assert done.stderr == ""
    assert re.sub(r"^\[.*\]$", "[status]", done.stdout, flags=re.MULTILINE).splitlines() == [
        *("one", "[status]", "two", "[status]", "[status]"),
        *("three", "Sent keys to pane 'reader' (Enter not pressed)", "[status]"),
        *("three", "[status]", "[status]", "hello", "[status]", "[status]"),
    ]


def test_status_on_standard_output_leaves_errors_where_they_were(panes: Shell) -> None:
    done = panes.run("capture", "--status", "nope")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("tmux-debug: Pane 'nope' not found.")


def test_flags_of_a_script_count_in_a_pane_too(panes: Shell) -> None:
    script = f"{DEBUG} send cat one; {DEBUG} send -q cat two; {DEBUG} send --status cat three"
    output = panes.out("run", "--cwd", str(panes.cwd), script)
    assert re.sub(r"^\[.*\]$", "[status]", output, flags=re.MULTILINE).splitlines() == [
        "one",
        "three",
        "Sent keys to pane 'cat' (Enter not pressed)",
        "[status]",
    ]
