"""`tmux-debug replay`, and `capture --at`: a pane of this or an earlier run, as it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from people import Person
from support import ask_until, wait_until
from wire import Server

from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.viewing.replay_verb import cursor_of

from .conftest import PROGRAM, Shell

# The PATH on which asciinema is.
WITH_PLAYER = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
THREE = "for word in one two three; do echo $word; read; done"
KEPT = "20260101T000000-1/debug-1"
TWO = "echo first; sleep 1; echo second; sleep 100"


@pytest.fixture(scope="module")
def with_words(shared: Shell) -> Shell:
    """Return a shell whose pane `words` has printed three, one after the other."""
    shared.out("create", "--name", "words", THREE)
    for _ in range(2):
        time.sleep(0.8)
        shared.out("send", "words", "Enter")
    return shared


@pytest.fixture
def kept(shell: Shell, tmp_path: Path) -> Callable[[str], str]:
    """Return what runs a command in a server that keeps logs, and returns `RUN/ID`.

    It kills the server when the command has printed "second", and when that was is noted.
    """

    def run(command: str) -> str:
        shell.out("start", "--log-dir", str(tmp_path / "logs"))
        shell.out("create", command)
        [directory] = (tmp_path / "logs").iterdir()
        log = directory / "debug-1.log"
        timing = directory / "debug-1.timing"
        wait_until(lambda: b"second" in log.read_bytes())
        wait_until(lambda: noted_bytes(timing) == log.stat().st_size)
        [server] = shell.servers()
        os.kill(server.pid, signal.SIGKILL)
        ask_until(shell.servers, lambda living: living == [])
        return f"{directory.name}/debug-1"

    return run


def noted_bytes(timing: Path) -> int:
    """Return how many bytes a file of times tells of."""
    return sum(int(line.split()[2]) for line in timing.read_text().splitlines() if line[0] == "O")


def at(shell: Shell, *words: str) -> list[str]:
    """Return the words of the screen that a replay shows, at the end unless `--at` is given."""
    return shell.out("replay", *words, *([] if "--at" in words else ["--at", "-0s"])).split()


def test_pane_as_it_was_at_a_cursor(with_words: Shell) -> None:
    done = with_words.run("replay", "words", "--at", "5")

    assert done.stdout == "one\n"
    assert done.stderr.startswith("[debug-1 words at cursor 5 of ")
    assert done.stderr.endswith("; screen 200x50]\n")
    assert at(with_words, "words") == ["one", "two", "three"]
    assert at(with_words, "words", "--at", "999999") == ["one", "two", "three"]
    assert at(with_words, "words", "--at", "0") == []


def test_pane_as_it_was_at_a_moment(with_words: Shell) -> None:
    began, first = (
        datetime.fromisoformat(
            json.loads(with_words.out("replay", "words", "--at", cursor, "--json"))["ts"]
        )
        for cursor in ("0", "5")
    )
    since_s = (first - began).total_seconds()
    assert at(with_words, "words", "--at", f"{since_s + 0.4:.2f}s") == ["one"]
    assert at(with_words, "words", "--at", "-0.4s") == ["one", "two"]
    assert at(with_words, "words", "--at", "1h2m3s") == ["one", "two", "three"]
    assert at(with_words, "words", "--at", "2000-01-01T00:00:00Z") == []
    soon = time.localtime(time.time() + 1)
    assert at(with_words, "words", "--at", time.strftime("%H:%M:%S", soon)) == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.parametrize(
    ("moment", "words", "remark"),
    [
        (
            "99h",
            ["one", "two", "three"],
            "is after the pane's last output. Showing the pane's end.",
        ),
        (
            "999999",
            ["one", "two", "three"],
            "is after the pane's last output. Showing the pane's end.",
        ),
        ("-99h", [], "is before the pane's start. Showing that start."),
    ],
)
def test_moment_at_which_there_was_nothing_is_told(
    with_words: Shell, moment: str, words: list[str], remark: str
) -> None:
    done = with_words.run("replay", "words", "--at", moment)

    assert done.stdout.split() == words
    assert done.stderr.splitlines()[0] == f"tmux-debug: --at {moment} {remark}"
    assert "Showing" not in with_words.run("replay", "words", "--at", "5").stderr


@pytest.mark.parametrize("given", ["9:05:30", "09:05:30", "9:05:30.5", "9:05"])
def test_hour_of_a_time_of_day_may_have_one_digit(given: str) -> None:
    morning = datetime.fromisoformat("2026-01-30T09:05:00").astimezone().timestamp()
    timing = Timing(began_at=morning - 60, times=[5.0, 55.0, 65.0, 95.0], sizes=[1, 2, 3, 4])

    assert cursor_of(given, timing, 4) == (2 if given == "9:05" else 3, "")


NIGHT = datetime.fromisoformat("2026-01-30T23:50:00").astimezone().timestamp()


@pytest.mark.parametrize(
    ("given", "cursor", "remark"),
    [
        ("23:55", 1, ""),
        ("00:20", 2, ""),
        ("0:20:00.5", 2, ""),
        ("00:30", 3, ""),
        ("00:31", 3, "is after the pane's last output"),
        ("23:49", 0, "is before the pane's start"),
    ],
)
def test_time_of_day_is_the_one_within_a_log_that_passes_midnight(
    given: str, cursor: int, remark: str
) -> None:
    timing = Timing(began_at=NIGHT, times=[60.0, 1200.0, 2400.0], sizes=[1, 2, 3])

    found, told = cursor_of(given, timing, 3)

    assert (found, remark in told, bool(told)) == (cursor, True, bool(remark))


def test_time_of_day_that_came_twice_needs_its_date() -> None:
    timing = Timing(began_at=NIGHT, times=[60.0, 200_000.0], sizes=[1, 2])

    with pytest.raises(VerbError) as refused:
        cursor_of("00:20", timing, 2)
    assert str(refused.value) == (
        "It was 00:20 3 times while the pane ran. Give the date, such as --at 2026-02-01T00:20:00 "
        "or 2026-02-02T00:20:00."
    )
    assert cursor_of("2026-02-01T00:20:00", timing, 2) == (1, "")


def test_capture_shows_earlier_moments_too(with_words: Shell) -> None:
    assert with_words.out("capture", "words", "--at", "5") == "one\n"
    assert with_words.out("capture", "--at=5", "words") == "one\n"


def test_capture_takes_its_flags_with_a_moment(with_words: Shell) -> None:
    def at_end(*flags: str) -> subprocess.CompletedProcess[str]:
        return with_words.run("capture", "words", "--at", "-0s", *flags)

    assert at_end("--lines", "1").stdout == "three\n"
    assert at_end("--view", "ansi").stdout.split() == ["one", "two", "three"]
    assert (at_end("--text").stdout.split(), at_end("--text").stderr) == (
        ["one", "two", "three"],
        "",
    )
    assert json.loads(at_end("--json").stdout)["text"].split() == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--pattern", "x"], "--pattern can't be combined with --at, which shows the pane at one"),
        (["--since", "5"], "--since can't be combined with --at, which shows the pane at one"),
        (["--lines", "0"], "--lines is 0. It must be"),
        (["--at"], "Argument --at: expected one argument"),
        (["--frob"], "Flag '--frob' is unknown.\nusage: tmux-debug capture "),
    ],
    ids=" ".join,
)
def test_capture_of_a_moment_refuses_other_flags_in_its_own_words(
    with_words: Shell, flags: list[str], complaint: str
) -> None:
    done = with_words.run("capture", "words", "--at", "5", *flags)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"tmux-debug: {complaint}")


def test_only_pane_need_not_be_named(with_words: Shell) -> None:
    assert at(with_words) == ["one", "two", "three"]


def test_json_has_the_screen_and_the_moment(with_words: Shell) -> None:
    facts = json.loads(with_words.out("replay", "words", "--at", "5", "--json"))

    assert facts.pop("ts").startswith("20")
    assert facts == {"pane": "debug-1", "cursor": 5, "columns": 200, "rows": 50, "text": "one"}


def test_files(with_words: Shell, tmp_path: Path) -> None:
    with_words.out("replay", "words", "--cast", str(tmp_path / "words.cast"))
    with_words.out("replay", "words", "--png", str(tmp_path / "words.png"))

    header, *events = (tmp_path / "words.cast").read_text().splitlines()
    assert json.loads(header)["title"] == "words"
    assert "".join(json.loads(event)[2] for event in events).split() == ["one", "two", "three"]
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(header)["idle_time_limit"] == 2.0
    assert with_words.out("replay", "words", "--cast", "-").splitlines()[0] == header


def test_pane_of_a_run_whose_server_was_killed(
    shell: Shell, kept: Callable[[str], str], tmp_path: Path
) -> None:
    target = kept(TWO)
    logs = ["--log-dir", str(tmp_path / "logs")]
    (tmp_path / "logs").chmod(0o500)  # as somebody else's: whoever reads writes nothing

    assert at(shell, target, *logs) == ["first", "second"]
    assert at(shell, target, *logs, "--at", "-0.5s") == ["first"]
    done = shell.run("replay", target, "--at", "-0s", TMUX_DEBUG_LOG_DIR=str(tmp_path / "logs"))
    assert done.stdout == "first\nsecond\n"
    done = shell.run("capture", target, "--at", "-0s", TMUX_DEBUG_LOG_DIR=str(tmp_path / "logs"))
    assert done.stdout == "first\nsecond\n"


def test_times_of_a_kept_log_are_those_of_script(
    kept: Callable[[str], str], tmp_path: Path
) -> None:
    """So that scriptreplay(1) plays it, behind the header line that it skips."""
    log = tmp_path / "logs" / f"{kept(TWO)}.log"
    typescript = tmp_path / "typescript"
    typescript.write_bytes(b"header\n" + log.read_bytes())

    done = subprocess.run(
        ["scriptreplay", "--timing", log.with_suffix(".timing"), "--log-out", typescript],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )

    assert b"first" in done.stdout
    assert b"second" in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nope", "--json"], "Pane 'nope' not found"),
        (["words", "--at", "soon"], "--at is 'soon', which is neither a time nor a cursor. Give"),
        (["words", "--at", "9" * 5000], "--at is '9999"),
        (["words", "--at", "0001-01-01"], "--at is '0001-01-01', which is neither a time nor a"),
        (
            ["words", "--json", "--log-dir", "~nobody-here"],
            "'~nobody-here' begins with the home",
        ),
        (["words", "--at", "1", "--png", "/nope/x"], "/nope/x can't be written"),
        (["words", "--at", "1", "--cast", "x"], "--cast records the whole log, and --at is one"),
        (["words", "--at", "25:00:00"], "--at is '25:00:00', which is neither a time nor a"),
        (
            [KEPT, "--json", "--log-dir", "/nope"],
            "There are no kept logs in /nope.",
        ),
        (
            [KEPT, "--json", "--log-dir", "/"],
            f"There is no log of '{KEPT}'",
        ),
        (["words", "--cast", "/nope/x"], "/nope/x can't be written (No such file or directory)."),
    ],
)
def test_what_can_not_be_shown_is_refused_with_a_sentence(
    with_words: Shell, words: list[str], complaint: str
) -> None:
    done = with_words.run("replay", *words)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"tmux-debug: {complaint}")


def test_replay_without_tmux_says_so(with_words: Shell) -> None:
    done = with_words.run("replay", "words", "--at", "1", TMUX_DEBUG_TMUX="/nonexistent")

    assert done.returncode == 125
    assert done.stderr.startswith("tmux-debug: tmux did not start: /nonexistent: No such file")


def test_replay_is_not_on_record(shell: Shell, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    shell.out("start", "--audit", str(audit))
    shell.out("create", "--name", "words", "echo one")
    shell.out("replay", "words", "--json")
    shell.out("capture", "words", "--at", "4")
    shell.out("kill", "words")

    tools = [json.loads(line)["tool"] for line in audit.read_text().splitlines()]
    assert tools == ["create_pane", "kill_pane"]


def test_nothing_is_left_of_a_killed_replay(with_words: Shell) -> None:
    before = with_words.left()
    for after_s in (0.0, 0.2, 0.4, 0.6):
        process = with_words.start("replay", "words", "--at", "5")
        time.sleep(after_s)
        process.kill()
        process.communicate()

    ask_until(with_words.left, lambda left: left == before)


def test_nothing_is_left_of_a_replay_that_is_killed_while_it_shows(
    with_words: Shell, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = with_words.left()
    env = with_words.env | {"TMPDIR": str(temporary), "PATH": WITH_PLAYER}
    with closing(Person([*PROGRAM, "replay", "words"], env, with_words.cwd)) as person:
        person.sees("one")
        person.process.kill()

    ask_until(with_words.left, lambda left: left == before)
    assert list(temporary.iterdir()) == []


def test_asciinema_plays_a_pane(with_words: Shell) -> None:
    env = with_words.env | {"PATH": WITH_PLAYER}
    with closing(Person([*PROGRAM, "replay", "words"], env, with_words.cwd)) as person:
        person.sees("three")
        assert person.process.wait(60) == 0


def test_without_asciinema_a_line_says_what_to_do(with_words: Shell, tmp_path: Path) -> None:
    done = with_words.run("replay", "words", PATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (125, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("tmux-debug: asciinema, which plays recordings, is not on PATH. Install")
    assert "--cast FILE" in line
    assert "--at" in line


def test_client_of_the_server_is_not_disturbed(shell: Shell, launch: Callable[..., Server]) -> None:
    server = launch()
    server.call("create_pane", command="cat", name="c")
    server.call("send_keys", pane_id="c", keys="hello Enter")

    assert at(shell, "c") == ["hello", "hello"]
    assert "hello" in server.text("capture_pane", pane_id="c")
