"""`capture` and `--show` give lines of the program, and say elsewhere what is missing there."""

import itertools
import shlex
import sys
from functools import partial

import pytest
from support import ask_until

from .conftest import PROGRAM, Shell

DEBUG = shlex.join(PROGRAM)
# Some 300 lines of 155 characters are more than come at once.
WIDE = 'for i in $(seq 300); do printf "%d %0150d\\n" $i 0; done; exec cat'
TOO_MUCH = (
    "tmux-debug: This is not all: at most 1,000 lines and 16,000 characters come at once. Ask for "
    "fewer, or read one pane in pieces with --since."
)


@pytest.fixture(scope="module")
def panes(shared: Shell) -> Shell:
    """Return a shell whose server has a pane with 3,000 lines, and one with long ones."""
    shared.out("create", "--name", "many", "--wait-for", "^3000$", "seq 3000; exec cat")
    shared.out("create", "--name", "wide", "--wait-for", "^300 ", WIDE)
    return shared


def test_capture_gives_as_many_lines_as_were_asked_for(panes: Shell) -> None:
    for count in (1, 100, 1000):
        lines = panes.out("capture", "many", "--lines", str(count)).splitlines()
        assert lines == [str(number) for number in range(3001 - count, 3001)]
    assert len(panes.out("capture", "many", "--since", "0", "--lines", "700").splitlines()) == 700


def test_capture_of_fewer_lines_than_were_asked_for_has_them_all(shell: Shell) -> None:
    shell.out("create", "--name", "few", "seq 3; exec cat")
    assert shell.out("capture", "few", "--lines", "1000") == "1\n2\n3\n"
    assert shell.out("capture", "few", "--since", "0", "--lines", "1000") == "1\n2\n3\n"


def test_capture_that_is_cut_fails_and_says_where_and_has_only_lines_of_the_program(
    panes: Shell,
) -> None:
    done = panes.run("capture", "wide", "--lines", "300")

    numbers = [int(line.split()[0]) for line in done.stdout.splitlines()]
    [(before, after)] = [pair for pair in itertools.pairwise(numbers) if pair[1] != pair[0] + 1]
    gap, why, _status = done.stderr.splitlines()
    assert (numbers[0], numbers[-1], done.returncode) == (1, 300, 1)
    assert gap == f"after line {before}: [{after - before - 1} lines left out]"
    assert why == TOO_MUCH


def test_capture_of_more_lines_than_come_at_once_fails(panes: Shell) -> None:
    done = panes.run("capture", "many", "--lines", "2000")

    assert (len(done.stdout.splitlines()), done.returncode) == (1000, 1)
    assert done.stderr.splitlines()[0] == TOO_MUCH


@pytest.mark.parametrize("flags", ["", "--lines 200"])
def test_lines_of_captures_that_go_on_where_the_last_one_says_are_all(
    panes: Shell, flags: str
) -> None:
    words, numbers = shlex.split(f"capture wide --since 0 {flags}"), []
    while words:
        done = panes.run(*words)
        numbers += [line.split()[0] for line in done.stdout.splitlines()]
        more = done.stderr.splitlines()[0].partition(" more bytes to read: tmux-debug ")[2]
        words = shlex.split(f"{more} {flags}") if more else []
        assert done.returncode == bool(more)

    assert numbers == [str(number) for number in range(1, 301)]


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["wide", "--pattern", "^", "--lines", "300"], "[1"),
        (["wide", "many", "--lines", "300"], "[older lines left out]"),
    ],
    ids=["pattern", "several panes"],
)
def test_capture_that_leaves_out_older_lines_fails_and_has_only_lines(
    panes: Shell, words: list[str], note: str
) -> None:
    done = panes.run("capture", *words)

    assert "left out" not in done.stdout
    assert done.returncode == 1
    left_out, *_others, why, _status = done.stderr.splitlines()
    assert left_out.startswith(note)
    assert why == TOO_MUCH


def test_capture_that_has_what_was_asked_for_is_done(panes: Shell) -> None:
    for words in (["many", "--pattern", "7$"], ["many", "wide", "--lines", "9"]):
        assert panes.out("capture", *words)
    found = panes.out("capture", "many", "--pattern", "^7.7$", "--context", "1", "--lines", "2")
    assert "[...]" in found  # between two groups


def test_capture_says_how_much_is_no_longer_kept(shell: Shell) -> None:
    shell.out("run", "-q", "yes $(seq 100) | head -c 18000000")

    # Logs are trimmed at intervals.
    since = partial(shell.run, "capture", "debug-1", "--since", "7", "--lines", "5")
    done = ask_until(since, lambda done: done.returncode != 0)

    assert (len(done.stdout.splitlines()), done.returncode) == (5, 1)
    assert done.stderr.splitlines()[0].endswith(" bytes before this are no longer kept.")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--show", "nothing", "echo out"],
        ["send", "many", "out", "Enter", "--show", "nothing"],
        ["wait", "many", "--timeout", "0", "--show", "nothing"],
        ["create", "--show", "nothing", "echo out; exec cat"],
    ],
    ids=lambda words: words[0],
)
def test_pattern_to_show_that_matches_nothing_prints_no_line(
    panes: Shell, words: list[str]
) -> None:
    done = panes.run(*words)
    assert (done.stdout, done.returncode) == ("", 0)
    assert done.stderr.splitlines()[0] == "[no line matches `show`]"


def test_all_lines_are_the_programs_where_they_match_what_is_to_be_shown(panes: Shell) -> None:
    done = panes.run("run", "--show", "1", "seq 3000")
    assert [line for line in done.stdout.splitlines() if "1" not in line] == []
    assert done.stdout.count("\n") == 50
    assert done.stderr.splitlines()[0] == "[the newest 50 of 1542 lines that match]"


@pytest.mark.parametrize(
    "words",
    [["create", "--show", "item", "--wait-for", "item 2"], ["run", "--show", "item"], ["run"]],
    ids=" ".join,
)
def test_note_that_only_heads_a_screen_is_not_told(shell: Shell, words: list[str]) -> None:
    draw = r"echo item 1; printf '\033[?1049h\033[2J\033[Hitem 2\n'; read key"
    done = shell.run(*words, draw)

    assert done.stdout.splitlines() == ["item 1", "item 2"]
    [status] = done.stderr.splitlines()
    assert "; screen 200x50; " in status


def test_note_of_what_is_left_out_of_a_screen_is_told(shell: Shell) -> None:
    draw = r"seq -f 'item %g' 99; printf '\033[?1049h\033[2J\033[Hitem 100\n'; read key"
    done = shell.run("create", "--show", "item", "--wait-for", "item 100", draw)

    assert done.stdout.splitlines() == [f"item {number}" for number in range(50, 101)]
    [left_out, status] = done.stderr.splitlines()
    assert left_out.startswith("[the newest 50 of ")
    assert "; screen 200x50; " in status


def test_capture_of_an_earlier_time_gives_as_many_lines_as_were_asked_for(panes: Shell) -> None:
    lines = panes.out("capture", "many", "--lines", "2000", "--at", "16893").splitlines()
    assert lines == [str(number) for number in range(1001, 3001)]


def test_script_in_a_pane_is_told_too(panes: Shell) -> None:
    script = f"{DEBUG} capture wide --lines 300 | grep -c left"
    after, why, count = panes.run("run", script).stdout.splitlines()
    assert (after.split("[")[0][:11], why, count) == ("after line ", TOO_MUCH, "0")


def test_notes_stand_among_the_lines_where_people_read_them(panes: Shell) -> None:
    capture = "capture wide --lines 300"
    on_terminal = f"import pty; pty.spawn({[*PROGRAM, *shlex.split(capture)]})"
    done = panes.by_sh(f"{shlex.join([sys.executable, '-c', on_terminal])} 2>&1")
    with_status = panes.run(*shlex.split(f"{capture} --status"))

    for text in (done.stdout, with_status.stdout):
        numbers = [line.split()[0] for line in text.splitlines()]
        assert numbers[numbers.index("[199") - 1] == "25"
    assert with_status.stderr == ""
    assert with_status.returncode == 1
