"""`wait --follow`: events as they come, 10 a second at most; and `capture --follow`: all lines."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import PATIENCE_S, ask_until, wait_until
from wire import Server

from tmux_debug_mcp.panes.reports import Reason
from tmux_debug_mcp.verbs.following import Teller, _News

from .conftest import Shell

# A line about matches: its cursor, how many others it stands for, and the newest one.
TOLD = (
    r"\[debug-1 web matched at (\d+)(?:; awaits input at \d+)?"
    r"(?:; (\d+) more before it)?\] (.*)\n"
)
SERVER = 'echo up; while read x; do echo "got $x"; done; exit 3'


def test_each_event_is_a_line(shell: Shell, server: Server) -> None:
    server.call("create_pane", command=SERVER, name="web")
    following = shell.start("wait", "web", "--follow", "--pattern", "got", "--since", "0")
    assert following.stdout
    assert following.stdout.readline() == "[debug-1 web awaits input at 4]\n"
    for word in ("one", "two"):
        server.call("send_keys", pane_id="web", keys=f"{word} Enter")
        # What it awaits is news only to a follower that looks before the next keys.
        told = sorted(following.stdout.readline() for _ in range(2))
        assert re.fullmatch(r"\[debug-1 web awaits input at \d+\]\n", told[0])
        assert re.fullmatch(rf"\[debug-1 web matched at \d+\] got {word}\n", told[1])
    server.call("send_keys", pane_id="web", keys="C-d")

    out, err = following.communicate(timeout=60)

    assert err == ""
    assert re.fullmatch(r"\[debug-1 web exited with code 3 after .*\]\n", out)
    assert following.returncode == 0


def test_what_is_followed_is_not_shown_to_the_shell(shell: Shell, server: Server) -> None:
    draws = "stty -echo; printf '\\033[?1049h\\033[Hthe first row of a screen\\r\\ntwo'; cat"
    server.call("create_pane", command=draws, name="ui")
    following = shell.start("wait", "ui", "--follow", "--pattern", "two", "--since", "0")
    assert following.stdout
    assert following.stdout.readline().endswith("] two\n")

    whole = "the first row of a screen\ntwo\n"
    assert [shell.out("wait", "ui") for _ in range(2)] == [whole, "[screen unchanged]\n"]
    following.kill()
    following.communicate()


def test_what_is_gone_is_told_each_time(shell: Shell, server: Server) -> None:
    thinks = "while read x; do printf 'Thinking'; read x; printf '\\r\\033[K'; done; exit 3"
    server.call("create_pane", command=f"stty -echo; {thinks}", name="ai")
    following = shell.start("wait", "ai", "--follow", "--gone", "Think", "--since", "0")
    assert following.stdout
    told = sorted(following.stdout.readline() for _ in range(2))
    assert told == ["[debug-1 ai awaits hidden input at 0]\n", "[debug-1 ai gone at 0]\n"]
    for number in (1, 2):
        for _ in range(2):
            server.call("send_keys", pane_id="ai", keys="Enter")
        line = ""
        while "gone" not in line:
            line = following.stdout.readline()
            assert line
        assert line == f"[debug-1 ai gone at {12 * number}]\n"
    server.call("send_keys", pane_id="ai", keys="C-d")

    out, _ = following.communicate(timeout=60)
    assert "exited with code 3" in out.splitlines()[-1]
    assert following.returncode == 0


def test_stop_pattern_and_timeout_end_it(shell: Shell, server: Server) -> None:
    server.call("create_pane", command=SERVER, name="web")
    words = ("wait", "web", "--follow", "--stop-pattern", "got bad", "--since", "0")
    stopped = shell.start(*words)
    server.call("send_keys", pane_id="web", keys="bad Enter")
    out, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 1
    assert re.fullmatch(r"\[debug-1 web stopped at \d+\] got bad", out.splitlines()[-1])

    assert shell.run("wait", "web", "--follow", "--timeout", "0.3").returncode == 124


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("ERROR", "; 2 more before it] FATAL b"),
        ("ERROR|FATAL", "; 3 more before it] FATAL b"),
        ("FATAL", "] FATAL b"),
    ],
)
def test_line_that_stops_is_told_also_where_others_match_beside_it(
    shell: Shell, server: Server, pattern: str, told: str
) -> None:
    server.call("create_pane", command=r"printf 'ERROR a\nFATAL b\nERROR c\n'; cat", name="web")
    words = ("--follow", "--pattern", pattern, "--stop-pattern", "FATAL", "--since", "0")

    done = shell.run("wait", "web", *words)

    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert re.fullmatch(r"\[debug-1 web stopped at \d+" + re.escape(told), line)


def test_what_was_typed_stops_nothing(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="bash --norc", name="web")
    words = ("--follow", "--pattern", "^done", "--stop-pattern", "FATAL")
    following = shell.start("wait", "web", *words)
    assert following.stdout
    assert "awaits keys" in following.stdout.readline()

    server.call("send_keys", pane_id="web", keys=": FATAL; echo do'ne' 1 Enter")
    server.call("send_keys", pane_id="web", keys="exit 3 Enter")

    out, _ = following.communicate(timeout=60)
    assert following.returncode == 0
    assert re.search(r"\[debug-1 web matched at \d+.*\] done 1\n", out)


def test_several_panes_are_followed_until_all_have_ended(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="read x; exit 1", name="one")
    server.call("create_pane", command="read x; exit 2", name="two")
    following = shell.start("wait", "one", "two", "--follow")
    assert following.stdout
    for _ in range(2):
        assert "awaits input" in following.stdout.readline()
    server.call("send_keys", pane_id="two", keys="Enter")
    server.call("send_keys", pane_id="one", keys="Enter")

    out, _ = following.communicate(timeout=60)

    ended = [line for line in out.splitlines() if "exited" in line]
    assert [line.split()[1] for line in ended] == ["two", "one"]


def test_flood_is_ten_lines_a_second_and_what_is_passed_over_is_told(
    shell: Shell, server: Server
) -> None:
    server.call("create_pane", command="yes error", name="flood", timeout_s=0)
    begin = time.monotonic()

    following = shell.start("wait", "flood", "--follow", "--pattern", "error")
    assert following.stdout
    lines = [following.stdout.readline() for _ in range(11)]
    took_s = time.monotonic() - begin
    server.call("kill_pane", pane_id="flood")
    following.communicate(timeout=60)

    assert took_s >= 1
    assert any("bytes were skipped] error" in line for line in lines)


def test_line_in_a_time_stands_for_all_and_a_follower_that_was_killed_misses_nothing(
    shell: Shell, server: Server
) -> None:
    server.call("create_pane", command=SERVER, name="web")
    every = ("--every", "1s", "--timeout", f"{PATIENCE_S}")
    words = ("wait", "web", "--follow", *every, "--pattern", "got", "--since")

    def send(first: int, last: int) -> None:
        keys = [key for number in range(first, last) for key in (f"{number}", "Enter")]
        server.call("send_keys", pane_id="web", keys=keys, timeout_s=60)

    def told(line: str) -> tuple[int, int, str]:
        """Return the cursor of a line, how many matches it stands for, and the newest one."""
        found = re.fullmatch(TOLD, line)
        assert found, line
        return int(found[1]), int(found[2] or 0) + 1, found[3]

    def follow(since: int, until: str) -> tuple[int, int]:
        """Follow from a cursor until a line is told; return the last cursor, and all matches."""
        following = shell.start(*words, str(since))
        assert following.stdout
        matches, newest = 0, ""
        while newest != until:
            line = following.stdout.readline()
            assert len(line) <= 501
            if " matched at " in line or not line:
                since, number, newest = told(line)
                matches += number
        following.kill()
        following.communicate()
        return since, matches

    send(0, 30)
    cursor, before = follow(0, "got 29")
    send(30, 50)
    _, after = follow(cursor, "got 49")

    assert (before, after) == (30, 20)


def test_equal_lines_are_counted_and_a_long_one_is_told_where_it_matches(
    shell: Shell, server: Server
) -> None:
    lines = "for i in $(seq 300); do echo ERROR: no; done"
    program = f"read x; {lines}; read x; printf '%4000s ERROR %4000s\\n'"
    server.call("create_pane", command=program, name="web")
    words = (
        "wait",
        "web",
        "--follow",
        "--timeout",
        f"{PATIENCE_S}",
        "--pattern",
        "ERROR",
        "--since",
    )
    first = shell.start(*words, "0")
    assert first.stdout
    assert "awaits input" in first.stdout.readline()
    server.call("send_keys", pane_id="web", keys="Enter")
    told = 0
    while told < 300:
        line = first.stdout.readline()
        assert line, "its time is over"
        found = re.fullmatch(TOLD, line)
        told += 1 + int(found[2] or 0) if found else 0
    first.kill()
    first.communicate()
    assert told == 300
    assert found

    server.call("send_keys", pane_id="web", keys="Enter")
    out = shell.out(*words, found[1])
    assert re.search(r"matched at \d+\].* ERROR", out), out


async def test_pane_that_prints_all_the_time_has_its_turn() -> None:
    told: list[str] = []

    class Listener:
        async def send(self, message: dict[str, str]) -> None:
            told.append(message["out"].split()[0])

    def pane(name: str) -> Any:  # noqa: ANN401
        return SimpleNamespace(id=name, name=name)

    teller = Teller(Listener(), 1.0)  # type: ignore[arg-type]
    for name in ("busy", "other", "busy"):
        await teller.tell(_News(pane(name), Reason.MATCHED, "matched at 1"))
    await teller.tell_all()

    assert told == ["[busy", "[other"]


def test_time_between_lines_is_for_events(shell: Shell) -> None:
    shell.out("create", "--name", "web", "cat")

    done = shell.run("wait", "web", "--every", "2s")
    assert (done.returncode, done.stderr) == (
        125,
        "tmux-debug: --every is only for --follow. Give both.\n",
    )


@pytest.fixture(scope="module")
def with_panes(shared: Shell) -> Shell:
    """Return a shell whose server has panes."""
    shared.out("create", "--name", "web", "cat")
    shared.out("create", "--name", "other", "cat")
    return shared


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nope"], "Pane 'nope' not found. Use tmux-debug list to see active panes."),
        (["web", "--pattern", "("], "--pattern is not an RE2 regular expression"),
        (["web", "--idle", "1"], "--idle is for a single wait."),
        (["web", "--since", "99"], "--since is 99"),
        (["web", "--since=-5"], "--since is -5. It must be a whole number of at least 0"),
        (["web", "--timeout", "2h"], "--timeout is 7200.0. It must be a number"),
        (["web", "other", "--since", "0"], "--since is for one pane."),
    ],
)
def test_what_can_not_be_followed_is_refused(
    with_panes: Shell, words: list[str], complaint: str
) -> None:
    done = with_panes.run("wait", "--follow", *words)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"tmux-debug: {complaint}")


def test_follower_that_is_gone_is_on_record(
    shell: Shell, launch: Callable[..., Server], tmp_path: Path
) -> None:
    records = tmp_path / "audit.jsonl"
    server = launch("--audit", str(records))
    server.call("create_pane", command="cat", name="web")
    following = shell.start("wait", "web", "--follow")
    assert following.stdout
    assert following.stdout.readline() == "[debug-1 web awaits input at 0]\n"

    following.kill()
    following.communicate()

    texts = ask_until(lambda: records.read_text().splitlines(), lambda texts: len(texts) == 2)
    record = json.loads(texts[1])
    assert (record["tool"], record["follow"], record["failed"]) == ("wait", True, True)


def test_lines_are_followed_until_the_pane_ends(shell: Shell, server: Server) -> None:
    says = (
        "seq 100; while read x; do printf '\\033[32mgot %s\\033[m\\r\\n' \"$x\"; done; printf end"
    )
    server.call("create_pane", command=f"stty -echo; {says}", name="web", wait_for="^100")
    following = shell.start("capture", "web", "--follow", "--lines", "2")
    assert following.stdout
    assert [following.stdout.readline() for _ in range(2)] == ["99\n", "100\n"]
    for word in ("one", "two"):
        server.call("send_keys", pane_id="web", keys=f"{word} Enter")
        assert following.stdout.readline() == f"got {word}\n"
    server.call("send_keys", pane_id="web", keys="C-d")

    assert following.communicate(timeout=60) == ("end\n", "")
    assert following.returncode == 0
    since, _, _ = server.text("capture_pane", pane_id="web", pattern="got two").partition(":")
    assert shell.out("capture", "web", "--follow", "--since", since) == "got two\nend\n"
    assert shell.out("capture", "web", "--follow", "--since", "0") == "".join(
        f"{line}\n" for line in [*range(1, 101), "got one", "got two", "end"]
    )


def test_pane_that_is_killed_ends_its_lines(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="echo up; exec cat", name="web", wait_for="up")
    following = shell.start("capture", "web", "--follow")
    assert following.stdout
    assert following.stdout.readline() == "up\n"

    server.call("kill_pane", pane_id="web")

    assert following.communicate(timeout=60) == ("", "")


@pytest.mark.parametrize(
    "words", [["web", "other"], ["web", "--pattern", "x"], ["web", "--view", "screen"]]
)
def test_only_all_lines_of_one_pane_are_followed(
    shell: Shell, server: Server, words: list[str]
) -> None:
    server.call("create_pane", command="cat", name="web")
    server.call("create_pane", command="cat", name="other")

    done = shell.run("capture", *words, "--follow")

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("tmux-debug: --follow prints all lines of one pane, from ")


def test_lines_that_are_no_longer_kept_are_said(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="yes $(seq 1000) | head -c 18000000; cat", name="web")
    wait_until(lambda: "no longer kept" in shell.run("capture", "web", "--since", "0").stderr)
    server.call("send_keys", pane_id="web", keys=["last Enter", "C-d"])

    done = shell.run("capture", "web", "--follow", "--since", "0")

    assert " bytes before this are no longer kept.\n" in done.stderr
    assert done.stdout.endswith("last\nlast\n")
