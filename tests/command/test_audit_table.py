"""`tmux-debug audit`: a person reads audits as they are and as they grow."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import pytest
from nursery import Copy
from sessions import fenced
from support import PATIENCE_S, ask_until, with_result
from wire import Server

from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS

from .conftest import PROGRAM, Shell

PAGE = Path(__file__).parents[2] / "docs" / "look-back.md"
documented = pytest.mark.skipif(not PAGE.exists(), reason="Nix builds without the documents")

HEAD = "TIME                 PANE           TOOK  RESULT             CALL\n"
HOSTILE = "\x1b]0;owned\a\x1b[2J\x9b31m\u202edlrow\r\n[red]x[/red]\x1b[?1049h"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202edlrow\r\n[red]x[/red]\x1b[?1049h"


def record(second: int, tool: str = "run", **fields: object) -> str:
    """Return a line of an audit, of 30 January 2026, 10:15:SECOND UTC."""
    ts = f"2026-01-30T10:15:{second:02d}.120Z"
    facts = with_result({"ts": ts, "tool": tool, "duration_ms": 1.9, **fields})
    return json.dumps(facts, separators=(",", ":")) + "\n"


def ran(second: int, command: str) -> str:
    """Return what is shown of `record(second, command=command)`."""
    return f"2026-01-30 10:15:{second:02d}                 2 ms  ok                 run {command}\n"


# The audit that the page shows.
DOCUMENTED = "".join(
    [
        record(
            46,
            "create_pane",
            pane_id="debug-1",
            command="bash",
            name="shop",
            reason="input",
            duration_ms=401.7,
        ),
        record(
            46,
            "send_keys",
            pane_id="debug-1",
            keys="python3 shop.py serve Enter",
            wait_for="listening",
            reason="matched",
            duration_ms=131.2,
        ),
        record(
            48,
            pane_id="debug-2",
            command="python3 shop.py order cake 2",
            reason="done",
            exit_code=1,
            duration_ms=148.9,
        ),
        record(49, "capture_pane", caller="bash (pid 4711)", pane_id="debug-1", pattern="Error"),
        record(
            52,
            "send_keys",
            pane_id="web",
            keys=["C-c"],
            duration_ms=0.2,
            error="Pane 'web' not found. Use tmux_list_panes to see active panes.",
        ),
        record(
            53,
            "send_keys",
            pane_id="debug-1",
            keys=["C-c", "python3 shop.py serve Enter"],
            wait_for="listening",
            reason="matched",
            duration_ms=309.4,
        ),
    ]
)


@pytest.fixture
def audit(shell: Shell) -> Path:
    """Return the path of an audit to be, `audit.log`, in the directory of the shell."""
    shell.env["TZ"] = "UTC"
    return shell.cwd / "audit.log"


@pytest.fixture
def follow(shell: Shell) -> Iterator[Callable[..., Copy]]:
    """Return what starts `audit --follow` with these words."""
    started: list[Copy] = []
    # What waits for a line that does not come gets the end instead.
    ends: list[threading.Timer] = []

    def follow(*words: str) -> Copy:
        process = shell.start("audit", "--follow", *words)
        started.append(process)
        ends.append(threading.Timer(PATIENCE_S, process.kill))
        ends[-1].start()
        return process

    yield follow
    for process, end in zip(started, ends, strict=True):
        end.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream
            stream.close()


def read_line(process: "Copy | subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline()


def in_terminal(shell: Shell, *words: str, columns: int = 80, **env: str) -> str:
    """Return all that a terminal gets from `tmux-debug audit`."""
    keyboard, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*PROGRAM, "audit", *words],
        env=shell.env | {"TERM": "xterm-256color"} | env,
        cwd=shell.cwd,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen = b""
    try:
        while data := os.read(keyboard, 65536):
            seen += data
    except OSError:  # the end of what a terminal gets
        pass
    os.close(keyboard)
    process.wait(60)
    return seen.decode()


def drawn(seen: str) -> list[str]:
    """Return the lines that a terminal shows, without the blanks at their ends."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    return [line.rstrip() for line in text.split("\r\n")]


def test_real_calls_are_told_in_short(
    shell: Shell, launch: Callable[..., Server], audit: Path
) -> None:
    server = launch("--audit", str(audit))
    server.call("create_pane", command="cat", name="web")
    server.call("send_keys", pane_id="web", keys=["hello Enter"], wait_for="hello")
    server.call("capture_pane", pane_id="web")
    server.call("run", command="echo done")
    server.call("kill_pane", pane_id="nothing")
    server.call("kill_pane", pane_id="web")

    head, *lines = shell.out("audit", "audit.log").splitlines(keepends=True)
    told = [re.sub(r"^[-0-9]{10} [0-9:]{8}  ", "", line) for line in lines]
    told = [re.sub(r" +[0-9.]+ m?s  ", "  ", line) for line in told]

    error = "Pane 'nothing' not found. Use tmux_list_panes to see active panes."
    assert head == HEAD
    # What a new pane does when its call returns is not ours to say.
    assert re.fullmatch("debug-1  .{17}  create web: cat\n", told.pop(0))
    assert told == [
        "debug-1  matched            send web: 'hello' Enter, until /hello/\n",
        "debug-1  ok                 capture web\n",
        "debug-2  exited 0           run echo done\n",
        f"nothing  failed             kill  error: {error}\n",
        "debug-1  killed             kill web\n",
    ]
    assert shell.out("audit", "--json", "audit.log") == audit.read_text()


def test_calls_of_verbs_are_told_with_their_caller(
    shell: Shell, launch: Callable[..., Server], audit: Path
) -> None:
    launch("--audit", str(audit))
    shell.out("create", "--name", "web", "cat")

    [told] = shell.out("audit", "audit.log", "--caller", "pid", "--tool", "create").splitlines()[1:]
    assert re.search(r"create web: cat, in /.*  by .* \(pid [0-9]+\)$", told)
    assert shell.out("audit", "audit.log", "--caller", "somebody") == ""


def test_audits_are_merged(shell: Shell, audit: Path) -> None:
    audit.write_text(record(1, command="a") + record(4, command="d"))
    (shell.cwd / "other").write_text(record(2, command="b") + record(3, command="c"))

    lines = [ran(number, command) for number, command in enumerate("abcd", 1)]
    assert shell.out("audit", "audit.log", "other") == HEAD + "".join(lines)


def test_plain_lines_are_whole_and_aligned(shell: Shell, audit: Path) -> None:
    long = "x" * 5000
    audit.write_text(
        record(1, command=long, pane_id="漢字", duration_ms=7_325_000)
        + record(2, command="a\tb", error="no")
    )

    assert shell.out("audit", "audit.log") == (
        f"{HEAD}2026-01-30 10:15:01  漢字         2h 02m  ok                 run {long}\n"
        "2026-01-30 10:15:02                 2 ms  failed             run a\\tb  error: no\n"
    )


def test_directory_stands_where_it_changes(shell: Shell, audit: Path) -> None:
    home, other, missing = "/srv/shop", "/srv/shop/src", "/srv/none"
    audit.write_text(
        record(1, command="a", cwd=home)
        + record(2, command="b")
        + record(3, command="c", cwd=f"{home}/")
        + record(4, command="d", cwd=missing, error="no")
        + record(5, command="e", cwd=home)
        + record(6, command="f", cwd=other)
        + record(7, command="g", cwd=other)
        + record(8, command="h", cwd=home)
    )
    told = [
        f"run a, in {home}",
        "run b",
        "run c",
        f"run d, in {missing}",
        "run e",
        f"run f, in {other}",
        "run g",
        f"run h, in {home}",
    ]

    lines = shell.out("audit", "audit.log").splitlines()[1:]
    assert [line[61:].removesuffix("  error: no") for line in lines] == told
    drawn_calls = [line[45:] for line in drawn(in_terminal(shell, "audit.log"))]
    assert [line for line in drawn_calls if line.startswith("run")] == told


def test_times_are_local(shell: Shell, audit: Path) -> None:
    audit.write_text(record(1, command="a"))

    assert "2026-01-31 00:15:01 " in shell.run("audit", "audit.log", TZ="UTC-14").stdout


def test_filters_choose(shell: Shell, audit: Path) -> None:
    created = record(1, "create_pane", command="cat", pane_id="debug-1", name="web")
    sent = record(2, "send_keys", keys="a", pane_id="debug-1")
    failed = record(3, "send_keys", keys="b", pane_id="web", error="no")
    other = record(4, command="ls", pane_id="debug-2", caller="bash (pid 4711)")
    crashed = record(5, pane_id="debug-3", command="./a.out", reason="done", signal="SIGSEGV")
    audit.write_text(created + sent + failed + other + crashed)

    def chosen(*words: str) -> str:
        return shell.out("audit", "--json", "audit.log", *words)

    assert chosen("--pane", "web") == created + sent + failed
    assert chosen("--pane", "debug-1", "--tool", "tmux_send_keys") == sent + failed
    assert chosen("--tool", "create", "--tool", "run") == created + other + crashed
    assert chosen("--pane", "debug-2", "--pane", "web") == created + sent + failed + other
    assert chosen("--failed") == failed + crashed
    assert chosen("--caller", "bash") == other
    assert chosen("--since", "2026-01-30T10:15:03") == failed + other + crashed
    assert chosen("--since", "1m") == ""


def test_lines_of_json_are_the_bytes_of_the_audit(shell: Shell, audit: Path) -> None:
    odd = record(1).replace(",", " ,  ").replace("\n", "\r\n") + record(2, x="\ud800é\x1b")
    audit.write_bytes(odd.encode() + b"\n" + record(3).rstrip().encode())

    assert shell.out("audit", "--json", "audit.log") == odd.replace("\r", "") + record(3)


def test_damaged_line_is_reported_and_the_rest_is_shown(shell: Shell, audit: Path) -> None:
    audit.write_text("junk\n" + record(1, command="a") + record(2)[:30])

    done = shell.run("audit", "audit.log")

    assert done.returncode == 1
    assert done.stdout == HEAD + ran(1, "a")
    assert done.stderr == (
        "tmux-debug: audit.log, line 1, is not JSON and is skipped.\ntmux-debug: audit.log, line "
        "3, is incomplete and is skipped.\n"
    )


def test_damaged_lines_are_not_reported_without_end(shell: Shell, audit: Path) -> None:
    audit.write_text("junk\n" * 2 + record(1) + "junk\n" * 4998)

    done = shell.run("audit", "audit.log")

    assert (done.returncode, done.stdout.count("\n")) == (1, 2)
    *lines, last = done.stderr.splitlines()
    assert len(lines) == 100
    assert last == "tmux-debug: audit.log has 4900 more damaged lines."


@pytest.mark.parametrize("options", [[], ["--json"], ["--html", "page.html"]], ids=str)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"junk\n" * 5000, "line 1 is not JSON"),
        (b"\x7fELF\0\n\n\0\n\0\n" + b"\xff" * 99, "line 1 is not JSON"),
        (b'{"version":2,"width":80}\n[0.1,"o","x"]\n[0.2,"o","x"]\n', "line 1 has no time or no"),
        (b"\n{}\njunk", "line 2 has no time or no tool"),
        (b"junk", "line 1 is incomplete"),
    ],
    ids=["text", "program", "recording", "short", "word"],
)
def test_file_that_is_no_audit_is_refused(
    shell: Shell, audit: Path, content: bytes, reason: str, options: list[str]
) -> None:
    audit.write_bytes(content)

    done = shell.run("audit", "audit.log", *options)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"tmux-debug: audit.log is no audit: {reason}")
    assert done.stderr.endswith(". Give the path of an audit, written with --audit.\n")
    assert not (audit.parent / "page.html").exists()


def test_what_can_not_become_an_audit_is_not_followed(shell: Shell, audit: Path) -> None:
    audit.write_text("junk\n" * 3)

    done = shell.run("audit", "--follow", "audit.log")

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("tmux-debug: audit.log is no audit: line 1 is not JSON.")


def test_no_call_is_said_to_match(shell: Shell, audit: Path) -> None:
    audit.write_text("")

    done = shell.run("audit", "audit.log")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "tmux-debug: No call matches.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--captures", ".", "-"], "--captures is only for a page. Add --html OUT, or omit"),
        (["--log-dir", ".", "-"], "--log-dir is only for a page. Add --html OUT, or omit"),
        (
            ["--html", "page", "--captures", "none", "-"],
            "--captures is 'none', which is not a",
        ),
        (
            ["--html", "page", "--log-dir", "none", "-"],
            "--log-dir is 'none', which is not a",
        ),
        (["--html", "page", "--json", "-"], "--json and --html exclude each other. Omit"),
        (["missing"], "missing can't be read: No such file or directory. Give the path of"),
        (["."], ". can't be read: Is a directory. Give the path of"),
        (["--follow", "-"], "--follow needs a regular file, which standard input is not."),
        (["--follow", "/dev/null"], "--follow needs a regular file, which /dev/null is not."),
        (["--since", "soon", "-"], "--since is 'soon', which is not a time. Give one such as"),
    ],
)
def test_what_can_not_be_done_is_said(shell: Shell, words: list[str], sentence: str) -> None:
    done = shell.run("audit", *words)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"tmux-debug: {sentence}")


@pytest.mark.parametrize("make", [None, os.symlink, os.link])
def test_page_does_not_replace_the_audit_that_it_shows(
    shell: Shell, audit: Path, make: Callable[[Path, Path], None] | None
) -> None:
    audit.write_text(record(1))
    out = audit
    if make:
        out = audit.with_name("page.html")
        make(audit, out)

    done = shell.run("audit", "audit.log", "--html", out.name)

    assert done.returncode == 125
    assert done.stderr == (
        f"tmux-debug: The page '{out.name}' would replace the audit that it shows. Choose another "
        "file.\n"
    )
    assert audit.read_text() == record(1)


@pytest.mark.parametrize("options", ["", "--json", "--follow"])
def test_reader_that_has_seen_enough_ends_it_quietly(
    shell: Shell, audit: Path, options: str
) -> None:
    audit.write_text(record(1, command="a") * 5000)
    done = shell.by_sh(f"{shlex.join(PROGRAM)} audit audit.log {options} | head -n 1")

    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_standard_input_is_shown_as_it_comes(shell: Shell, audit: Path) -> None:
    assert not audit.exists()
    process = subprocess.Popen(
        [*PROGRAM, "audit", "-"],
        env=shell.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    process.stdin.write(record(1, command="a"))
    process.stdin.flush()

    assert [read_line(process), read_line(process)] == [HEAD, ran(1, "a")]
    assert process.communicate(record(2, command="b").rstrip(), timeout=60)[0] == ran(2, "b")
    assert process.returncode == 0


class TestFollowing:
    def test_records_are_shown_as_they_are_written(
        self, audit: Path, follow: Callable[..., Copy]
    ) -> None:
        audit.write_text(record(1, command="a"))
        process = follow("audit.log")
        assert [read_line(process), read_line(process)] == [HEAD, ran(1, "a")]

        with audit.open("a") as file:
            file.write(record(2, command="b") + record(3, command="c")[:40])
            file.flush()
            assert read_line(process) == ran(2, "b")
            file.write(record(3, command="c")[40:])
        assert read_line(process) == ran(3, "c")

    def test_audit_that_is_moved_away_is_followed_where_it_is_made_anew(
        self, audit: Path, follow: Callable[..., Copy]
    ) -> None:
        audit.write_text(record(1))
        process = follow("--json", "audit.log")
        assert read_line(process) == record(1)

        for number in range(2, 8, 2):
            audit.rename(audit.with_name("audit.log.1"))
            with audit.with_name("audit.log.1").open("a") as file:
                file.write(record(number))
            audit.write_text(record(number + 1))
            assert [read_line(process), read_line(process)] == [record(number), record(number + 1)]

    def test_audit_that_is_truncated_is_followed_from_its_beginning(
        self, audit: Path, follow: Callable[..., Copy]
    ) -> None:
        audit.write_text(record(1, command="a long one") + record(2)[:20])
        process = follow("--json", "audit.log")
        assert read_line(process) == record(1, command="a long one")

        audit.write_text(record(3))
        assert read_line(process) == record(3)

    def test_several_audits_are_followed_and_filtered(
        self, shell: Shell, audit: Path, follow: Callable[..., Copy]
    ) -> None:
        other = shell.cwd / "other"
        audit.write_text(record(2))
        other.write_text(record(1) + record(3, "wait"))
        process = follow("--json", "--tool", "run", "audit.log", "other")
        assert [read_line(process), read_line(process)] == [record(1), record(2)]

        with other.open("a") as file:
            file.write(record(4, "wait") + record(5))
        assert read_line(process) == record(5)

    def test_damaged_line_is_reported_once_it_is_whole(
        self, audit: Path, follow: Callable[..., Copy]
    ) -> None:
        audit.write_text("junk")
        process = follow("--json", "audit.log")
        with audit.open("a") as file:
            file.write("\n" + record(1))

        assert read_line(process) == record(1)
        assert process.stderr
        assert process.stderr.readline().endswith(
            "audit.log, line 1, is not JSON and is skipped.\n"
        )

    def test_calls_of_a_server_are_followed(
        self,
        launch: Callable[..., Server],
        audit: Path,
        follow: Callable[..., Copy],
    ) -> None:
        server = launch("--audit", str(audit))
        process = follow("audit.log")
        server.call("run", command="echo one")
        assert read_line(process) == HEAD
        assert read_line(process).endswith("  exited 0           run echo one\n")

        audit.unlink()
        server.call("run", command="echo two")
        assert read_line(process).endswith("  exited 0           run echo two\n")

    def test_interrupt_ends_it_quietly(self, audit: Path, follow: Callable[..., Copy]) -> None:
        audit.write_text(record(1))
        process = follow("--json", "audit.log")
        read_line(process)
        process.send_signal(signal.SIGINT)

        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == -signal.SIGINT

    def test_it_ends_when_nobody_reads_any_more(
        self, audit: Path, follow: Callable[..., Copy]
    ) -> None:
        audit.write_text(record(1))
        process = follow("--json", "audit.log")
        read_line(process)
        assert process.stdout
        process.stdout.close()

        assert process.wait(60) == 0


class TestInTerminal:
    def test_table_fits_and_dates_stand_where_they_change(self, shell: Shell, audit: Path) -> None:
        late = record(3, "kill_pane", pane_id="debug-12").replace("01-30", "02-01")
        audit.write_text(
            record(1, "create_pane", pane_id="debug-1", name="web", command="make " * 20)
            + record(2, error="It is not there.", command="ls", caller="me")
            + late
        )

        seen = in_terminal(shell, "audit.log")

        assert drawn(seen) == [
            "TIME      PANE           TOOK  RESULT        CALL",
            "                                             2026-01-30",
            "10:15:01  debug-1        2 ms  ok            create web: make make make make",
            "                                             make make make make make make make",
            "                                             make make make make make make make",
            "                                             make make",
            "10:15:02                 2 ms  failed        run ls  by me",
            "                                             It is not there.",
            "                                             2026-02-01",
            "10:15:03  debug-12       2 ms  ok            kill",
            "",
        ]
        assert "\x1b[31mIt is not there.\x1b[0m" in seen

    def test_results_are_in_green_and_failures_in_red(self, shell: Shell, audit: Path) -> None:
        killed = record(2, command="b", reason="done", exit_code=137, signal="SIGKILL")
        audit.write_text(record(1, command="a", reason="done", exit_code=0) + killed)

        seen = in_terminal(shell, "audit.log")

        assert "\x1b[32mexited 0" in seen
        assert "\x1b[1;31mkilled by" in seen
        assert drawn(seen)[2:-1] == [
            "10:15:01                 2 ms  exited 0      run a",
            "10:15:02                 2 ms  killed by     run b",
            "                               SIGKILL",
        ]

    @pytest.mark.parametrize("columns", [12, 20, 39, 40, 59, 60, 200])
    def test_table_fits_any_width(self, shell: Shell, audit: Path, columns: int) -> None:
        audit.write_text(
            record(
                1,
                pane_id="debug-1",
                command="make " * 20,
                error="no " * 99,
            )
        )

        seen = in_terminal(shell, "audit.log", columns=columns)

        assert "10:15:01" in seen
        assert max(len(line) for line in drawn(seen)) <= columns

    def test_colours_may_be_unwanted(self, shell: Shell, audit: Path) -> None:
        audit.write_text(record(1, command="a", error="no"))

        assert not re.search(r"\x1b\[[0-9;]*3[0-9]", in_terminal(shell, "audit.log", NO_COLOR="1"))
        assert "\x1b" not in in_terminal(shell, "audit.log", TERM="dumb")

    def test_colours_may_be_wanted_in_a_pipe(self, shell: Shell, audit: Path) -> None:
        audit.write_text(record(1, command="a", error="no"))

        assert "\x1b[1;31mfailed" in shell.run("audit", "audit.log", FORCE_COLOR="1").stdout

    def test_widths_stay_the_same_through_a_long_table(self, shell: Shell, audit: Path) -> None:
        audit.write_text("".join(record(number % 60, command="a") for number in range(1000)))

        lines = drawn(in_terminal(shell, "audit.log"))
        assert len(lines) == 1000 + len(["head", "date", "end"])
        assert {line[45:] for line in lines[2:-1]} == {"run a"}
        assert len([line for line in lines if "TIME" in line]) == 1

    def test_long_cell_is_cut(self, shell: Shell, audit: Path) -> None:
        audit.write_text(record(1, command="x" * 100_000))

        lines = drawn(in_terminal(shell, "audit.log"))
        assert len(lines) < 25
        assert lines[-2].endswith("x…")


@pytest.mark.parametrize(
    "field", ["tool", "pane_id", "caller", "error", "command", "name", HOSTILE]
)
def test_nothing_hostile_reaches_the_terminal(shell: Shell, audit: Path, field: str) -> None:
    facts: dict[str, object] = {"error": "no", field: HOSTILE}
    audit.write_text(record(1, str(facts.pop("tool", "create_pane")), **facts))

    plain = shell.out("audit", "audit.log")
    seen = in_terminal(shell, "audit.log", columns=200)

    assert SHOWN in plain
    for text in (plain.replace("\n", ""), "".join(drawn(seen))):
        assert text.isprintable()
    assert r"\x1b]0;" in "".join(drawn(seen))


def test_nothing_hostile_reaches_the_terminal_with_json(shell: Shell, audit: Path) -> None:
    line = json.dumps({"ts": "2026-01-30T10:15:01Z", "tool": "run", "command": HOSTILE + "\x7f"})
    raw = re.sub(r"\\u(009b|202e|007f)", lambda found: chr(int(found[1], 16)), line)
    audit.write_text(raw.replace(" ", "\r\t") + "\n")

    seen = in_terminal(shell, "--json", "audit.log", columns=1000)

    assert seen.rstrip("\r\n").isprintable()
    assert json.loads(seen) == json.loads(line)


def test_hostile_name_of_a_file_does_not_reach_the_terminal(shell: Shell, audit: Path) -> None:
    path = audit.with_name("\x1b[2Jaudit")
    path.write_text("junk\n")

    assert shell.run("audit", path.name).stderr.startswith("tmux-debug: \\x1b[2Jaudit is no audit")
    assert "\x1b" not in shell.run("audit", "\x1b[2Jmissing").stderr


def test_terminal_of_a_pane_shows_what_hostile_records_have(server: Server, audit: Path) -> None:
    audit.write_text(record(1, command=HOSTILE) + record(2, command="behind it"))
    command = shlex.join(["env", "TZ=UTC", *PROGRAM, "audit", str(audit)])
    server.call("create_pane", command=command, name="view", wait_for="behind it")

    screen = server.text("capture_pane", pane_id="view")

    assert screen.splitlines()[0].startswith("TIME ")
    assert f"run {SHOWN}" in screen
    ask_until(lambda: server.text("list_panes"), lambda text: '"exited"' in text)


@documented
def test_sessions_on_the_page_are_what_happens(shell: Shell, on_path: Path, audit: Path) -> None:
    page = PAGE.read_text().partition("## Looking at an audit\n")[2].partition("## Replays\n")[0]
    audit.write_text(DOCUMENTED)
    path = f"{on_path}:{Path(PROGRAM[0]).parent}:{shell.env['PATH']}"
    sessions = fenced(page, "console")
    parts = [part for session in sessions for part in session.split("$ ") if part]

    assert len(parts) == 3
    for part in parts:
        line, shown = part.split("\n", 1)
        if "jq" in line and shutil.which("jq") is None:
            continue
        done = shell.by_sh(line, PATH=path)
        assert (done.returncode, done.stdout) == (0, shown)


@documented
def test_page_has_every_flag() -> None:
    for flag in set(parser_of(VERBS["audit"]).flags) - {"--help"}:
        assert f"`{flag}" in PAGE.read_text()
